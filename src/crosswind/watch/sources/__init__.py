"""Readers of log formats: each gives neutral episodes, one at a time, so that a log of any size fits in memory.

`opening` finds out what a path holds: `runs` of ours, `spans` (each episode a `conversation`), `trajectories` of
others, `listings` of tools. Unknown fields are ignored; what cannot be read is a `BadFile` in one line.
"""
