"""Reads come from a cache that is out of date, unless they are asked for fresh."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal, Self

from crosswind.core.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.core.types import Flow, Step, ToolCall, ToolResult, Tools
from crosswind.perturbations._added_names import new_word
from crosswind.perturbations.observation._rows import distorted
from crosswind.perturbations.observation._shapes import reading
from crosswind.words import banks

PARAMS = banks.own("stale_read", "params")
NOTES = banks.own("stale_read", "notes")  # on the parameter
MARKS = banks.own("stale_read", "marks")  # keys of old results


@perturbation
class StaleRead(Perturbation):
    """Reading tools return outdated values unless a parameter asks for fresh ones."""

    kind: Literal["stale_read"] = "stale_read"
    axis, tier, rank = "observation", "interaction", "fault"
    severities = (
        "Reading tools in the solution that answer from a cache: 1, 2, all; from 4 on old results are not marked, and "
        "at 5 only the parameter's own description mentions it."
    )
    needs = "a reading tool in the solution that returns numbers"
    way = "set the parameter that requests fresh values"
    tools: tuple[str, ...]
    param: str
    note: str
    doc: str  # what the descriptions say; empty where they say nothing
    mark: str  # a key of old results; empty where they have none
    salt: int

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        reads, split = list(reading(scene)), scene.task.split
        tools = rng.sample(reads, min(len(reads), severity if severity < 3 else len(reads)))
        param = new_word(PARAMS, split, rng, {p for name in tools for p in scene.tools[name].params})
        if not tools or param is None:
            return None
        return cls(
            tools=tuple(sorted(tools)),
            param=param,
            note=rng.choice(NOTES[split]),
            doc=banks.phrase("fresh_doc", split, rng, param=param) if severity < 5 else "",
            mark=(new_word(MARKS, split, rng) or "") if severity < 4 else "",
            salt=rng.randrange(10**6),
        )

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        """Each read, once more where an old result is not marked, and once more where no description warns."""
        return super().difficulty(gold, place) * (1 + (not self.mark) + (not self.doc))

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        return tuple(
            t.with_param(self.param, "boolean", self.note, says=self.doc) if t.name in self.tools else t for t in tools
        )

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        if call.tool not in self.tools:
            return (yield call)
        memo.fire()
        inner = call.without(self.param)
        result = yield inner
        if result.error or call.args.get(self.param):
            return result
        old = distorted(result.content, inner, self.salt)
        if self.mark:
            rows = old if isinstance(old, list) else [old]
            marked = [{**row, self.mark: True} if isinstance(row, dict) else row for row in rows]
            old = marked if isinstance(old, list) else marked[0]
        return ToolResult(old)

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        return (yield call.with_args(**{self.param: True}) if call.tool in self.tools else call)
