"""Agents, one file each. Scripted ones are baselines: they are handed the certified draw they play in."""
