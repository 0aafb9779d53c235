"""A tool disappears while the agent works, and its successor appears."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal, Self

from pydantic import Field

from crosswind.core.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.core.types import Flow, Step, ToolCall, Tools, ToolSpec, failed
from crosswind.words import banks

RETIRED = {1: 1, 2: 2, 3: 2, 4: 3, 5: 4}


@perturbation
class RetiredMidway(Perturbation):
    """After some call, a tool disappears from the list; calling it returns the name of its successor."""

    kind: Literal["retired_midway"] = "retired_midway"
    axis, tier, rank = "action", "interaction", "fault"
    severities = (
        "How many tools in the solution retire: 1, 2, 2, 3, 4; from 3 on the error no longer names the successor."
    )
    needs = "a call in the solution after the first one"
    way = "list the tools again and continue with the successor"
    successors: dict[str, str]
    at: int = Field(ge=1)
    text: str
    hints: dict[str, str]  # successor -> the sentence that names it; empty where nobody does

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        gold, tools, split = scene.gold, scene.tools, scene.task.split
        last: dict[str, int] = {}
        for i, step in enumerate(gold):
            if step.call.tool in tools:
                last[step.call.tool] = i
        later = [name for name, i in last.items() if i > 0]
        if not later:
            return None
        chosen = rng.sample(later, min(len(later), RETIRED[severity]))
        at = rng.randint(1, min(last[name] for name in chosen))
        taken, successors = scene.names, {}
        for name in chosen:
            new = banks.tool_name(scene.domain.name, tools[name], split, rng, taken) or f"{name}_next"
            if new in taken:
                return None
            successors[name] = new
            taken.add(new)
        named = successors.values() if severity < 3 else ()
        hints = {new: banks.phrase("successor", split, rng, new=new) for new in named}
        return cls(successors=successors, at=at, text=banks.phrase("gone", split, rng), hints=hints)

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        untold = len(self.successors) - len(self.hints)
        return super().difficulty(gold, place) + untold

    def turns(self) -> tuple[int, ...]:
        return (self.at,)

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        if nth < self.at:
            return tools
        out: list[ToolSpec] = []
        for tool in tools:
            new = self.successors.get(tool.name)
            out += [tool] if new is None else [tool.replace(listed=False), tool.made(new)]
        return tuple(out)

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        if memo.nth >= self.at:
            if new := self.successors.get(call.tool):
                memo.fire()
                return failed("gone", f"{self.text} {self.hints.get(new, '')}".rstrip())
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
