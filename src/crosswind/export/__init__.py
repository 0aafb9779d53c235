"""Runs in the formats of other viewers.

write.py       `export`: choose the format
inspect.py, atif.py    Inspect AI's log, Harbor's trajectories; turns.py, output.py: what both need
parquet.py     a table with a row for each episode
"""
