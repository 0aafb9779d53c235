"""A verdict for CI: demands on a run, decided by paired statistics.

gate.py        rules over groups of episodes
decision.py    pass, fail or inconclusive, with the confidence that each needs
junit.py, markdown.py    the verdict for CI systems
"""
