"""Slips: mistakes that models make and the oracle does not, so that the way back from them can be learnt.

A slip is put in front of a step of a walk: a tool's name from memory or misspelt, an argument by another name, one left
out. It is refused before it reaches the world, and the walk goes on with what was meant. The slip itself is not learnt
(`rows.Demonstration.slipped`), what follows it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from random import Random
from typing import NamedTuple

from crosswind.core.session import NAME
from crosswind.core.types import ToolCall, ToolResult, ToolSpec
from crosswind.core.world import refused

PARTS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+")


class Slip(NamedTuple):
    """A mistaken call, and what it is answered with."""

    call: ToolCall
    result: ToolResult


def slip(rng: Random, call: ToolCall, meant: ToolCall, menu: Mapping[str, ToolSpec]) -> Slip | None:
    """A mistake in the place of a call; None where none was found. `meant` is the call that it is made for: what is
    needed for it may be forgotten."""
    if meant.tool != call.tool and (result := refused(meant, menu.get(meant.tool))):
        return Slip(meant, result)
    if call.tool not in menu:
        return None
    for _ in range(4):
        made: ToolCall | None = None
        if rng.random() < 0.5:
            known = sorted(id for id in menu[call.tool].ids if id not in menu)
            made = ToolCall(rng.choice(known) if known and rng.random() < 0.5 else misspelt(rng, call.tool), call.args)
        elif call.args:
            key = rng.choice(list(call.args))
            if rng.random() < 0.5:
                made = call.without(key)
            else:
                made = ToolCall(call.tool, {misspelt(rng, k) if k == key else k: v for k, v in call.args.items()})
        if made is not None and NAME.fullmatch(made.tool) and (result := refused(made, menu.get(made.tool))):
            return Slip(made, result)
    return None


def misspelt(rng: Random, name: str) -> str:
    """A name as somebody remembers it who did not look: a part or some letters of it are missing."""
    parts: list[str] = PARTS.findall(name)
    way = rng.randrange(3)
    if way == 0 and len(parts) > 1:
        gone = rng.choice(parts)
        return re.sub(r"^[_-]+|[_-]+$|(?<=[_-])[_-]+", "", name.replace(gone, "", 1))
    if way == 1 and len(name) > 6:
        return name[: -rng.randint(1, 3)].rstrip("_-")
    at = rng.randrange(1, max(2, len(name) - 1))
    return name[:at] + name[at + 1 :]
