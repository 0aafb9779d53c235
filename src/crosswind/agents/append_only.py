"""Learns each tool once and never again."""

from __future__ import annotations

from crosswind.agents._learning import Learner
from crosswind.agents._scripted import agent


@agent("append_only")
class AppendOnly(Learner):
    """In a stream, learns the first change of each tool and keeps to it: a memory that nothing supersedes."""

    updates = False
