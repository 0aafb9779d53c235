"""The canonical worlds, one file each; `graphs` holds the task graphs they have in common.

The domains are desks: `records.py` derives their rows, `tools.py` their tools, and `desk.py` puts a domain together.
Policies, details and the sentences of requests are written in `banks/requests/*.yaml`, outside the package, and compiled
into `data/requests`; `requests.py` reads them.
"""
