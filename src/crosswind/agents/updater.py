"""Relearns each tool when it changes, and keeps the facts it hears up to date."""

from __future__ import annotations

from crosswind.agents._learning import Learner
from crosswind.agents._scripted import agent
from crosswind.core.memory import Telling


@agent("updater")
class Updater(Learner):
    """In a stream, fails once for each change of a tool, then knows it: a perfect memory that is kept up to date."""

    def learn(self, seen: dict[str, str]) -> dict[str, str]:
        return {**self.known, **seen}

    def hear(self, telling: Telling) -> None:
        self.belief.hear(telling)
