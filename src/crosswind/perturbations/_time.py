"""Simulated time: what o'clock it is, and a tool to wait; not a perturbation itself.

An episode begins at nine, and every call takes a minute. Nothing else passes time but the tool to wait.
"""

from __future__ import annotations

import re
from random import Random

from crosswind.core.perturbation import Memo
from crosswind.core.types import Param, Split, ToolCall, ToolResult, ToolSpec, failed
from crosswind.perturbations._added_names import new_tool
from crosswind.perturbations.query._changes import wording
from crosswind.words import banks

BEGIN = 9 * 60  # minutes after midnight
TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
UNTIL = "until"  # the parameter of the tool to wait


def clock(minutes: int) -> str:
    """Minutes since the episode began as the time of day."""
    hour, minute = divmod(BEGIN + minutes, 60)
    return f"{hour % 24:02d}:{minute:02d}"


def time_in(text: str) -> str:
    """The last time of day that a text names."""
    found = list(TIME.finditer(text))
    return found[-1][0] if found else ""


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
