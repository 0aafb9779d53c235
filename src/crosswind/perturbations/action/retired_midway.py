"""A tool disappears while the agent works, and its successor appears."""

from __future__ import annotations

from random import Random
from typing import Literal, Self

from pydantic import Field

from crosswind.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.types import Flow, ToolCall, Tools, ToolSpec, failed
from crosswind.words import renamed


@perturbation
class RetiredMidway(Perturbation):
    """From some call on, a tool is gone from the list; calling it names the successor that took its place."""

    kind: Literal["retired_midway"] = "retired_midway"
    axis, tier, rank = "action", "interaction", "fault"
    severities = "How many tools on the way retire: 1, 1, 2, 2, 3; from 4 on the error no longer names the successor."
    successors: dict[str, str]
    at: int = Field(ge=1)
    told: bool

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        gold, tools = scene.gold, scene.tools
        last: dict[str, int] = {}
        for i, step in enumerate(gold):
            if step.call.tool in tools:
                last[step.call.tool] = i
        later = [name for name, i in last.items() if i > 0]
        if not later:
            return None
        chosen = rng.sample(later, min(len(later), (severity + 1) // 2))
        at = rng.randint(1, min(last[name] for name in chosen))
        taken, successors = scene.names, {}
        for name in chosen:
            successors[name] = renamed(name, rng, taken)
            taken.add(successors[name])
        return cls(successors=successors, at=at, told=severity < 4)

    def turns(self) -> tuple[int, ...]:
        return (self.at,)

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        if nth < self.at:
            return tools
        out: list[ToolSpec] = []
        for tool in tools:
            new = self.successors.get(tool.name)
            out += [tool] if new is None else [tool.but(listed=False), tool.made(new)]
        return tuple(out)

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        if memo.nth >= self.at:
            if new := self.successors.get(call.tool):
                memo.fire()
                way = f"; use {{{new}}}" if self.told else ""
                return failed("gone", f"This tool was retired{way}.")
            for old, new in self.successors.items():
                if call.tool == new:
                    memo.fire()
                    return (yield call.named(old))
        return (yield call)

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        new = self.successors.get(call.tool)
        if new is None:
            return (yield call)
        if call.tool not in memo.notes:
            result = yield call
            if not (result.error and result.error.code == "gone"):
                return result
            memo.notes[call.tool] = True
        return (yield call.named(new))
