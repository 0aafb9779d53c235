"""Schemas full of things that no request needs."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Literal, Self

from crosswind.core.perturbation import Perturbation, Scene, perturbation
from crosswind.core.types import Param, Step, ToolCall, Tools
from crosswind.perturbations.action._renaming import share
from crosswind.words import banks

EACH = {1: 1, 2: 2, 3: 2, 4: 3, 5: 4}
MARKS: tuple[dict[str, Any], ...] = (
    {"title": "Field"}, {"examples": ["n/a"]}, {"x-order": 3}, {"readOnly": False}, {"$comment": "generated"},
    {"deprecated": False}, {"x-source": "import"},
)  # fmt: skip


@perturbation
class SchemaNoise(Perturbation):
    """Tools get optional parameters without effect, and their schemas get meaningless annotations."""

    kind: Literal["schema_noise"] = "schema_noise"
    axis, tier, rank = "action", "perception", "form"
    severities = (
        "Tools in the solution with noise: 1 one, 2 half, 3 all, 4 also half of the other tools, 5 all tools; idle "
        "parameters in each: 1, 2, 2, 3, 4."
    )
    needs = "a tool in the solution"
    way = "fill in the required parameters and ignore the rest"
    idle: dict[str, tuple[str, ...]]  # tool further in -> parameters that do nothing
    marks: dict[str, Any]  # keywords in every schema of theirs

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        names = list(banks.entries("extras", scene.task.split))
        idle = {}
        for tool in share(scene, rng, severity):
            free = [n for n in names if n not in scene.tools[tool].params]
            idle[tool] = tuple(rng.sample(free, EACH[severity]))
        marks: dict[str, Any] = {}
        for mark in rng.sample(MARKS, min(severity, 3)):
            marks |= mark
        return cls(idle=idle, marks=marks) if idle else None

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        return sum(len(idle) for idle in self.idle.values())

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        out = []
        for tool in tools:
            idle = self.idle.get(tool.name)
            if idle is None:
                out.append(tool)
                continue
            params = {
                name: Param(p.type, p.doc, p.required, p.enum, {**p.extra, **self.marks})
                for name, p in tool.params.items()
            }
            out.append(tool.replace(params=params | {name: Param("string", "", False) for name in idle}))
        return tuple(out)

    def decode_call(self, call: ToolCall) -> ToolCall:
        idle = self.idle.get(call.tool)
        return call if idle is None or not any(k in idle for k in call.args) else call.without(*idle)
