"""Reads the list of tools in every episode, and takes results for what they always were."""

from __future__ import annotations

from crosswind.agents._learning import LOST, said
from crosswind.agents._scripted import Reciter, agent
from crosswind.core.draw import Drawn
from crosswind.core.memory import Belief
from crosswind.core.types import Message


@agent("relister")
class Relister(Reciter):
    """Finds every tool and parameter under its present name, but fails where results or errors differ from usual."""

    def __init__(self, drawn: Drawn) -> None:
        gold = drawn.certificate.gold
        usual = all(not step.inner or step.result == step.inner[-1][1] for step in gold.calls)
        lines, way = said(drawn, Belief())
        super().__init__(lines if usual else [Message(role="assistant", content=LOST)], way)
