"""Perturbations of the action axis.

_links.py, _renaming.py    writes that need one another; what renamings have in common
"""
