"""Perturbations of the observation axis.

_rows.py, _shapes.py, _locales.py    the content of results; its shape; other ways of writing values
"""
