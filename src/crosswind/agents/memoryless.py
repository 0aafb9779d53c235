"""Reads tools and results afresh in every episode, and remembers nothing."""

from __future__ import annotations

from crosswind.agents._learning import said
from crosswind.agents._scripted import Reciter, agent
from crosswind.core.draw import Drawn
from crosswind.core.memory import Belief


@agent("memoryless")
class Memoryless(Reciter):
    """Always reads afresh: no change of an interface harms it, and it fails what needs an earlier episode."""

    def __init__(self, drawn: Drawn) -> None:
        super().__init__(*said(drawn, Belief()))
