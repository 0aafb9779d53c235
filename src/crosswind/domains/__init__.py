"""The canonical worlds, one file each; `graphs.py` holds the task graphs they have in common."""
