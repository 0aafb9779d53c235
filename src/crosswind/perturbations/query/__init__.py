"""Perturbations of the query axis."""
