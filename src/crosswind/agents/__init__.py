"""Scripted agents, one file each: baselines whose score is known beforehand.

Agents on models are in `models/`; `models/spec.py` turns a spec such as `openai:MODEL` into one.
_scripted.py, _solver.py, _learning.py have what several need: a loop, a way to work out the task, what is kept.
"""
