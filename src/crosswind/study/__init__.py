"""Experiments: arms, suites and seeds, run and told as a matrix of results."""
