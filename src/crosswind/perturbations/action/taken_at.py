"""Somebody else takes what the request needs at a time of day, and every call takes a minute."""

from __future__ import annotations

from random import Random
from typing import Any, Literal, Self

from crosswind.core.perturbation import Memo, Scene, perturbation
from crosswind.core.types import Flow, ToolCall, ToolResult, failed
from crosswind.perturbations._time import UntilThen
from crosswind.perturbations.query._changes import wording


@perturbation
class TakenAt(UntilThen):
    """At a certain time, somebody else takes what the request needs: it is no longer listed or available."""

    kind: Literal["taken_at"] = "taken_at"
    severities = (
        "Time until it is taken, as a multiple of the time that the solution takes to secure it: 3, 2.5, 2.2, 1.9, 1.6."
    )
    needs = "a write of something that the request does not name and that a list showed before"
    way = "make no unnecessary calls, so that the item is secured in time"
    release_note = "What was free is taken by somebody else at a time of day: it is listed no more, and cannot be had."
    id: str  # of what is taken
    until: int  # the minute of the episode at which it is
    notice: str
    text: str

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        found = _chosen(scene)
        if found is None:
            return None
        id, last = found
        (until, holes), split = cls.limited(scene, severity, last), scene.task.split
        return cls(
            id=id,
            until=until,
            notice=wording("taken_at", "notices", split, rng, **holes),
            text=wording("taken_at", "texts", split, rng, **holes),
        )

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        tool = memo.tools.get(call.tool)
        wanted = tool is not None and tool.writes and self.id in call.args.values()
        if wanted:
            memo.fire()
            if not memo.notes.get("had"):
                memo.notes["last"] = memo.now
        if memo.now < self.until or memo.notes.get("had"):
            result = yield call
            if wanted and result.error is None:
                memo.notes["had"] = True  # whoever has it keeps it
            return result
        if wanted:
            return failed("taken", self.text)
        result = yield call
        left = _without(result.content, self.id)
        return result if left == result.content else ToolResult(left, result.error)


def _chosen(scene: Scene) -> tuple[str, int] | None:
    """What the way writes and only a list showed, and the number of the last call that needs it to be free."""
    tools, given, listed = scene.tools, scene.task.given, set[str]()
    for i, step in enumerate(scene.gold):
        tool = tools.get(step.call.tool)
        if tool is not None and tool.writes and step.result.error is None:
            for value in step.call.args.values():
                if isinstance(value, str) and value in listed and value not in given:
                    return value, i
            return None  # the first write settles what is had
        if isinstance(step.result.content, list):
            listed |= {
                v for row in step.result.content if isinstance(row, dict) for v in row.values() if isinstance(v, str)
            }
    return None


def _without(content: Any, id: str) -> Any:
    """A result without the rows of lists that hold a value."""
    if isinstance(content, list):
        kept = (row for row in content if not (isinstance(row, dict) and id in row.values()))
        return [_without(row, id) for row in kept]
    if isinstance(content, dict):
        return {key: _without(value, id) for key, value in content.items()}
    return content
