"""Experiments: arms, suites and seeds, run and reported as a matrix of results.

A study is a folder such as `studies/fragility`. Its `definition.yaml` is read by definition.py, and its own rules and
tables are in `findings.py` there; this room has only what every study needs.
"""
