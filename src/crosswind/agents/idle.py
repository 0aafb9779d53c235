"""Says nothing and does nothing."""

from __future__ import annotations

from crosswind.agents._scripted import Reciter, agent
from crosswind.core.draw import Drawn


@agent("idle")
class Idle(Reciter):
    """Says nothing and does nothing: what comes for free."""

    def __init__(self, drawn: Drawn) -> None:
        super().__init__(())
