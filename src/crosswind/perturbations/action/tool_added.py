"""Tools that the request needs are added to the list only while the agent works."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal, Self

from crosswind.core.perturbation import Perturbation, Scene, perturbation
from crosswind.core.types import Step, Task, Tools
from crosswind.perturbations.query._changes import wording

ADDED = {1: 1, 2: 1, 3: 2, 4: 2, 5: 3}


@perturbation
class ToolAdded(Perturbation):
    """Some needed tools are missing at first and appear later; the policy says that more will come."""

    kind: Literal["tool_added"] = "tool_added"
    axis, tier, rank, group = "action", "interaction", "fault", "listing"
    severities = (
        "Tools in the solution that appear later: 1, 1, 2, 2, 3; at 1 and 3 after the first call, otherwise as late "
        "as the solution allows."
    )
    needs = "a tool in the solution that is not called first, and that no other tool's description mentions"
    way = "start with the tools available, and list the tools again before giving up"
    joins: dict[str, int]  # tool -> the call from which on it is listed
    notice: str

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        tools, first = scene.tools, dict[str, int]()
        for i, step in enumerate(scene.gold):
            first.setdefault(step.call.tool, i)
        policy = scene.task.brief.policy
        later = [
            name
            for name, i in first.items()
            if i and name in tools
            if not any(
                f"{{{id}}}" in text for id in tools[name].ids for text in (policy, *(t.doc for t in tools.values()))
            )
        ]
        if not later:
            return None
        chosen = rng.sample(later, min(len(later), ADDED[severity]))
        # the list changes with a call and is read after it, so a tool joins one call before it is needed
        joins = {name: 1 if severity in (1, 3) else max(1, first[name] - 1) for name in sorted(chosen)}
        return cls(joins=joins, notice=wording("tool_added", "notices", scene.task.split, rng))

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        """The calls for which each of them is not there."""
        return sum(self.joins.values()) + len(self.joins)

    def turns(self) -> tuple[int, ...]:
        return tuple(sorted(set(self.joins.values())))

    def on_task(self, task: Task) -> Task:
        return task.briefed(policy=f"{task.brief.policy} {self.notice}".strip())

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        return tuple(t for t in tools if nth >= self.joins.get(t.name, 0))
