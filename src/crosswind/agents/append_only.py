"""Learns each tool and each fact once and never again."""

from __future__ import annotations

from crosswind.agents._learning import Learner
from crosswind.agents._scripted import agent
from crosswind.core.memory import Telling


@agent("append_only")
class AppendOnly(Learner):
    """In a stream, learns the first change of each tool and keeps to it: a memory that nothing supersedes."""

    def learn(self, seen: dict[str, str]) -> dict[str, str]:
        return {**seen, **self.known}

    def hear(self, telling: Telling) -> None:
        if telling.by != "hearsay" and telling.how == "set":
            self.belief.usual.setdefault(telling.fact, telling.value)
