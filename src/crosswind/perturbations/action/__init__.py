"""Perturbations of the action axis."""
