"""Perturbations of the observation axis."""
