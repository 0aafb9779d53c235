"""A tool that the request needs does not exist here: refusing is right."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal, Self

from crosswind.core.domain import Family
from crosswind.core.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.core.types import Flow, Step, Task, ToolCall, Tools, failed
from crosswind.perturbations.domain._blocking import needed

WHY = "is not offered"
NO_TOOL = "no tool here does what is needed"  # the reason of a refusal


@perturbation
class MissingTool(Perturbation):
    """A tool that the request needs is not offered; the request must be refused."""

    kind: Literal["missing_tool"] = "missing_tool"
    axis, tier, rank, goal, group = "domain", "internalization", "domain", "refuse", "refusal"
    severities = "Which tool in the solution is missing, from the first (1) to the last (5)."
    needs = "a tool in the solution without which the request provably cannot be met"
    way = "notice that no tool does what is needed, leave nothing changed, and refuse"
    tool: str

    @classmethod
    def fits(cls, family: Family) -> bool:
        return not family.refusal

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        name = needed(scene, rng, severity, WHY, silent=True)
        return cls(tool=name) if name else None

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        """Every call that still works is a reason to go on."""
        return 1 + len(gold)

    def on_task(self, task: Task) -> Task:
        return task.replace(blocked={**task.blocked, self.tool: WHY})

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        return tuple(t for t in tools if t.name != self.tool)

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        if call.tool == self.tool:
            return failed("missing", NO_TOOL)
        return (yield call)
