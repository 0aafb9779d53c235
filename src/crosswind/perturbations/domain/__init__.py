"""Perturbations of the domain axis.

_blocking.py    tools that never work
"""
