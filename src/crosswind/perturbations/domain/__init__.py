"""Perturbations of the domain axis."""
