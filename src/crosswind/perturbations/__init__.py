"""The perturbations, one file each, named by its kind, in a folder for its axis.

_added_names.py, _catalogue.py, _describing.py    names of what is added, large lists of tools, other descriptions
_dates.py, _time.py                               dates in other styles; time that passes
"""
