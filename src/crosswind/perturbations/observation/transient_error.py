"""Calls fail for a while before anything has happened; repeating them is right."""

from __future__ import annotations

from random import Random
from typing import Literal, Self

from crosswind.core.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.core.types import Flow, ToolCall, failed
from crosswind.words import banks


@perturbation
class TransientError(Perturbation):
    """The first calls of a tool fail with an error, before they have any effect."""

    kind: Literal["transient_error"] = "transient_error"
    axis, tier, rank = "observation", "interaction", "fault"
    severities = "Tools in the solution that fail, times how often each does: 1x1, 1x2, 2x2, 3x2, all x3."
    needs = "a tool in the solution"
    way = "repeat the call"
    release_note = "The first calls of a tool fail before anything happens, and say so."
    tools: tuple[str, ...]
    times: int
    text: str

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        path = list(dict.fromkeys(scene.path))
        if not path:
            return None
        count, times = {1: (1, 1), 2: (1, 2), 3: (2, 2), 4: (3, 2), 5: (len(path), 3)}[severity]
        chosen = rng.sample(path, min(count, len(path)))
        return cls(tools=tuple(sorted(chosen)), times=times, text=banks.phrase("unavailable", scene.task.split, rng))

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        failures = memo.notes.get(call.tool, 0)
        if call.tool in self.tools and failures < self.times:
            memo.notes[call.tool] = failures + 1
            memo.fire()
            return failed("unavailable", self.text, retryable=True)
        return (yield call)
