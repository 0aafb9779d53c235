"""The canonical worlds, one file each; `graphs` holds the task graphs they have in common.

poi.py, medical.py, retail.py, workspace.py, banking.py, operations.py    the six domains

They are desks: `layout.py` has the parts of a table map, `records.py` derives rows (`whole_records.py` where a booking
takes its slot whole), `tools.py` has the common
tools, `notes.py` what the oracle writes down, and `desk.py` puts a domain together.

The table maps and shared tools of the domains are written in `banks/desks/*.yaml`, policies, details and the sentences
of requests in `banks/requests/*.yaml`, outside the package, and compiled into `data`. `requests.py` reads the latter.
"""
