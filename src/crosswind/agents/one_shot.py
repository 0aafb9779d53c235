"""Gives up at the first error."""

from __future__ import annotations

from crosswind.agents._scripted import agent
from crosswind.agents._solver import Solver


@agent("one_shot")
class OneShot(Solver):
    """Solves the task on the clean interface and never repeats a call: whatever fails is the end."""
