"""Writes are accepted until a time of day, and every call takes a minute."""

from __future__ import annotations

from random import Random
from typing import Literal, Self

from crosswind.core.perturbation import Memo, Scene, perturbation
from crosswind.core.types import Flow, ToolCall, failed
from crosswind.perturbations._time import UntilThen
from crosswind.perturbations.query._changes import wording


@perturbation
class Deadline(UntilThen):
    """Every call takes a simulated minute, and after a deadline the writing tools reject all calls."""

    kind: Literal["deadline"] = "deadline"
    severities = (
        "Time available for the last write, as a multiple of the time that the solution takes: 3, 2.5, 2.2, 1.9, 1.6."
    )
    needs = "a tool in the solution that writes"
    way = "make no unnecessary calls, so that the last write is in time"
    release_note = "Every call takes a minute, and from some time on the tools that write accept nothing more."
    tools: tuple[str, ...]
    until: int  # the minute of the episode from which on nothing is accepted
    notice: str
    late: str

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        tools, split = scene.tools, scene.task.split
        writes = [i for i, step in enumerate(scene.gold) if step.call.tool in tools and tools[step.call.tool].writes]
        if not writes:
            return None
        until, holes = cls.limited(scene, severity, writes[-1])
        return cls(
            tools=tuple(sorted(name for name, tool in tools.items() if tool.writes)),
            until=until,
            notice=wording("deadline", "notices", split, rng, **holes),
            late=wording("deadline", "late", split, rng, **holes),
        )

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        if call.tool not in self.tools:
            return (yield call)
        memo.fire()
        memo.notes["last"] = memo.now
        if memo.now >= self.until:
            return failed("too_late", self.late)
        return (yield call)
