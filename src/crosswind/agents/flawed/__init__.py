"""Agents with one planted flaw each, to try the diagnosis on: all else they do as the oracle does."""
