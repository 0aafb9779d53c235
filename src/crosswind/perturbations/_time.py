"""Simulated time: what o'clock it is, and a tool to wait; not a perturbation itself.

An episode begins at nine, and every call takes a minute. Nothing else passes time but the tool to wait.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import ceil
from random import Random
from typing import TYPE_CHECKING

from crosswind.core.perturbation import Memo, Perturbation, Scene
from crosswind.core.types import Param, Split, Step, Task, ToolCall, ToolResult, ToolSpec, failed
from crosswind.perturbations._added_names import new_tool
from crosswind.perturbations.query._changes import wording
from crosswind.words import banks

BEGIN = 9 * 60  # minutes after midnight
TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
SLACK = {1: 3.0, 2: 2.5, 3: 2.2, 4: 1.9, 5: 1.6}  # severity -> time by the time that the certified way takes
UNTIL = "until"  # the parameter of the tool to wait


def clock(minutes: int) -> str:
    """Minutes since the episode began as the time of day."""
    hour, minute = divmod(BEGIN + minutes, 60)
    return f"{hour % 24:02d}:{minute:02d}"


def time_in(text: str) -> str:
    """The last time of day that a text names."""
    found = list(TIME.finditer(text))
    return found[-1][0] if found else ""


class UntilThen(Perturbation):
    """A kind under which every call takes a minute and something holds until a time of day, as the policy says.

    `handle` notes each call that had to be in time. A kind has the fields `until`, the minute of the episode, and
    `notice`, made by `limited`.
    """

    axis, tier, rank, group = "action", "interaction", "form", "time"
    if TYPE_CHECKING:
        until: int
        notice: str

    @staticmethod
    def limited(scene: Scene, severity: int, last: int, **holes: str) -> tuple[int, dict[str, str]]:
        """The minute until which there is time for the certified way's steps up to one, and what texts say of it.

        Questions take time as well.
        """
        until = ceil((last + 1 + len(scene.task.withheld)) * SLACK[severity])
        return until, {"begin": clock(0), "end": clock(until), **holes}

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        """How much of the time that there is the way takes, in steps of five in a hundred."""
        last = max((i for i, step in enumerate(gold) if place in step.fired), default=0)
        return round(20 * (last + 1) / self.until)

    def on_task(self, task: Task) -> Task:
        return task.briefed(policy=f"{task.brief.policy} {self.notice}".strip())

    def slack(self, memo: Memo) -> float | None:
        last = memo.notes.get("last")
        return None if last is None else self.until / (last + 1)


def waiting(split: Split, rng: Random, taken: set[str]) -> tuple[str, str]:
    """The name and the description of a tool to wait."""
    return new_tool(banks.own("late_approval", "waits"), split, rng, taken), wording(
        "late_approval", "docs", split, rng
    )


def wait_spec(name: str, doc: str) -> ToolSpec:
    return ToolSpec.new(name, doc, {UNTIL: Param("string", "HH:MM")})


def waited(call: ToolCall, memo: Memo) -> ToolResult:
    """Pass time until the time of day that a call names."""
    found = TIME.fullmatch(str(call.args[UNTIL]).strip())
    if found is None:
        return failed("bad_arguments", f"'{UNTIL}' must look like 09:45, got {str(call.args[UNTIL])[:20]!r}")
    memo.wait(int(found[1]) * 60 + int(found[2]) - BEGIN - memo.now - 1)
    return ToolResult({"time": clock(memo.now + 1)})
