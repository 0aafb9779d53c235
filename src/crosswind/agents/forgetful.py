"""Forgets what it was told after ten episodes."""

from __future__ import annotations

from typing import Any

from crosswind.agents._learning import said
from crosswind.agents._scripted import Reciter, agent
from crosswind.core.draw import Drawn
from crosswind.core.memory import Belief, Telling

SPAN = 10  # episodes over which it remembers


@agent("forgetful")
class Forgetful(Reciter):
    """In a career, knows what it was told in the last ten episodes and nothing older; always reads tools afresh."""

    def __init__(self, drawn: Drawn) -> None:
        self.drawn, self.heard = drawn, list[tuple[int, dict[str, Any]]]()  # episodes ago, and what was told
        super().__init__(())

    def restore(self, state: Any) -> None:
        """Take up what was heard lately, an episode later."""
        self.heard = [(ago + 1, telling) for ago, telling in state or () if ago < SPAN]
        super().__init__(*said(self.drawn, Belief(Telling.model_validate(telling) for _, telling in self.heard)))

    def save(self) -> list[tuple[int, dict[str, Any]]]:
        told = self.drawn.recall.told if self.drawn.recall else ()
        return [*self.heard, *((0, telling.model_dump()) for telling in told)]
