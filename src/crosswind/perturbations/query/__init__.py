"""Perturbations of the query axis.

_changes.py, _details.py    when the user may still speak up; details that can be left out of a request
"""
