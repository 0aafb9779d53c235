"""Scripted agents, one file each: baselines whose score is known beforehand.

Agents on models are in `models/`; `models/spec.py` turns a spec such as `openai:MODEL` into one.
"""
