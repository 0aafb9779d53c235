"""Exit statuses of the commands; `gate` and `adapt` add those of their verdicts (`gate/gate.py`, `adapt/loop.py`)."""

from __future__ import annotations

FAILED = 1  # something asked about is wrong: a domain, a training, an arm; for `watch`, a change that costs the agent
MISTAKE = 2
STOPPED = 3  # the infrastructure failed: the provider, the server or the disk
HARMLESS = 4  # of `watch`
BUG = 70  # in crosswind, or in the agent's code
INTERRUPTED = 130

EVERYWHERE = {0: "done", MISTAKE: "a mistake in the command or in a file it reads", INTERRUPTED: "interrupted"}
