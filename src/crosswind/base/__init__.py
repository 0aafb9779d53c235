"""Helpers for every room that know nothing of agents: errors, YAML files, the terminal, processes."""
