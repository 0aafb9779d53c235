"""Repeats any call that fails."""

from __future__ import annotations

from crosswind.agents._scripted import agent
from crosswind.agents._solver import Solver


@agent("retrier")
class Retrier(Solver):
    """Solves the task on the clean interface and repeats any failed call at once, up to three times."""

    repeats = 3
