"""Helpers for every room that know nothing of agents.

errors.py, extras.py, version.py    exceptions; packages that an extra brings; the version
files.py, yaml_files.py    files that survive a crash, and locks; YAML read strictly, with lines
terminal.py, process_guard.py    text made harmless, tables; children that end with us
"""
