"""Learns each tool anew when it changes."""

from __future__ import annotations

from crosswind.agents._learning import Learner
from crosswind.agents._scripted import agent


@agent("updater")
class Updater(Learner):
    """In a stream, fails once for each change of a tool, then knows it: a perfect memory that is kept up to date."""

    updates = True
