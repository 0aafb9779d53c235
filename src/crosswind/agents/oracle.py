"""Walks the certified way."""

from __future__ import annotations

from crosswind.agents._scripted import Reciter, agent, lines_of
from crosswind.core.draw import Drawn


@agent("oracle")
class Oracle(Reciter):
    """Walks the certified way: what a capable agent can do at best."""

    def __init__(self, drawn: Drawn) -> None:
        super().__init__(lines_of(drawn.certificate.gold), drawn.certificate.gold)
