"""A tool that the request needs does not exist here: refusing is right."""

from __future__ import annotations

from random import Random
from typing import Literal, Self

from crosswind.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.types import Flow, Task, ToolCall, Tools, failed


@perturbation
class MissingTool(Perturbation):
    """A tool that the request cannot do without is not offered; the request must be refused."""

    kind: Literal["missing_tool"] = "missing_tool"
    axis, tier, rank, goal, group = "domain", "internalization", "domain", "refuse", "refusal"
    severities = "Which tool on the way is missing, from the first (1) to the last (5)."
    tool: str

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        task = scene.task
        if task.refuse:
            return None
        path = [
            name for name in dict.fromkeys(scene.path) if not any(f"{{{name}}}" in t.doc for t in scene.tools.values())
        ]
        middle = (severity - 1) / 4 * (len(path) - 1) + rng.uniform(-0.6, 0.6)
        for name in sorted(path, key=lambda name: abs(path.index(name) - middle)):
            if scene.provable(task.but(blocked={name: "is not offered"})):
                return cls(tool=name)
        return None

    def on_task(self, task: Task) -> Task:
        return task.but(blocked={**task.blocked, self.tool: "is not offered"})

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        return tuple(t for t in tools if t.name != self.tool)

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        if call.tool == self.tool:
            return failed("missing", "no tool here does what is needed")
        return (yield call)
