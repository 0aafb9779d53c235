"""Tools of the neighbourhood that no request needs."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal, Self

from crosswind.core.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.core.types import Flow, Model, Param, ToolCall, ToolResult, Tools, ToolSpec
from crosswind.words import banks

COUNT = {1: 2, 2: 4, 3: 8, 4: 14, 5: 24}


class IdleTool(Model):
    """A tool that answers and does nothing."""

    name: str
    doc: str
    params: dict[str, str]  # name -> type
    at: float  # where it is in the list, from 0 to 1

    def spec(self) -> ToolSpec:
        return ToolSpec.new(self.name, self.doc, {name: Param(type_) for name, type_ in self.params.items()})


@perturbation
class DistractorTools(Perturbation):
    """Irrelevant tools are added; they answer when called, but help with no request."""

    kind: Literal["distractor_tools"] = "distractor_tools"
    axis, tier, rank, receipt_source, counts = "action", "perception", "structure", "tools", "tools"
    severities = "How many tools are added: 2, 4, 8, 14, 24."
    needs = "a tool in the solution"
    way = "find the right tools among irrelevant ones"
    tools: tuple[IdleTool, ...]

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        if not scene.path:
            return None
        taken, made = scene.names, []
        for _ in range(COUNT[severity]):
            spec = banks.distractor(scene.domain.name, scene.task.split, rng, taken)
            taken.add(spec.name)
            params = {name: param.type for name, param in spec.params.items()}
            made.append(IdleTool(name=spec.name, doc=spec.doc, params=params, at=round(rng.random(), 3)))
        return cls(tools=tuple(made))

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        return mixed(tools, [(idle.at, idle.spec()) for idle in self.tools])

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        if any(idle.name == call.tool for idle in self.tools):
            return ToolResult({"status": "ok", "items": []})
        return (yield call)


def mixed(tools: Tools, more: Sequence[tuple[float, ToolSpec]]) -> Tools:
    """A list with more tools in it, each where its number says."""
    out = list(tools)
    for at, spec in more:
        out.insert(round(at * len(out)), spec)
    return tuple(out)
