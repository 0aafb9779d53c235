"""Runs in the formats of other viewers."""
