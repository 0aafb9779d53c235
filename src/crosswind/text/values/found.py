"""Values found in a text, and the spans that they cover."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, NamedTuple

DIGIT = re.compile(r"[0-9]")


class Found(NamedTuple):
    """A value found in a text: where, which, and a note that depends on its kind."""

    start: int
    end: int
    value: Any
    note: str = ""


BLANK = "ª"  # a letter that no plain text holds and that belongs to no value


def blank_out(text: str, *groups: Sequence[Found]) -> str:
    """The text with the found values overwritten, same length."""
    found = [item for group in groups for item in group]
    if not found:
        return text
    if len(found) > 1:
        found.sort(key=itemgetter(0))
    pieces: list[str] = []
    at = 0
    for start, end, *_ in found:
        if end > at:
            pieces += (text[at:start], BLANK * (end - max(start, at)))
            at = end
    pieces.append(text[at:])
    return "".join(pieces)


def is_inside(place: int, spans: Sequence[tuple[Any, ...]]) -> bool:
    """Whether a place lies in one of the spans, which are in order and apart."""
    at = bisect_right(spans, place, key=itemgetter(0))
    return at > 0 and place < spans[at - 1][1]
