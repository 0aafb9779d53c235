"""Picks tools by their descriptions."""

from __future__ import annotations

from crosswind.agents._scripted import agent
from crosswind.agents._solver import Solver
from crosswind.core.laws import match
from crosswind.core.types import ASK, ToolCall, Tools


@agent("by_description")
class ByDescription(Solver):
    """Solves the task with the tools whose descriptions come nearest to what it wants; names mean nothing to it."""

    repeats = 1

    def named(self, call: ToolCall, tools: Tools) -> ToolCall:
        wanted = self.drawn.domain.world_class.entries[call.tool].spec
        return call.named(match(wanted, [t for t in tools if t.name != ASK]))
