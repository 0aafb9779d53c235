"""Refuses everything."""

from __future__ import annotations

from crosswind.agents._scripted import Reciter, agent
from crosswind.core.draw import Drawn
from crosswind.core.types import Message


@agent("refuser")
class Refuser(Reciter):
    """Refuses everything at once: right only where refusing is."""

    def __init__(self, drawn: Drawn) -> None:
        super().__init__([Message(role="assistant", content="I am sorry, but I cannot do this.")])
