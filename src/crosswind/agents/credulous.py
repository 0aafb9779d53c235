"""Believes the latest statement on everything, whoever makes it."""

from __future__ import annotations

from crosswind.agents._scripted import agent
from crosswind.agents.updater import Updater
from crosswind.core.memory import Telling


@agent("credulous")
class Credulous(Updater):
    """In a career, takes hearsay for fact: it fails where a less trusted source contradicted what it was told."""

    def hear(self, telling: Telling) -> None:
        self.belief.hear(telling.model_copy(update={"by": "user"}))
