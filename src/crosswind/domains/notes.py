"""The working that a solution writes down before it acts: what is compared, counted or added up, in a line.

A note is yielded like a call and reaches no world; a demonstration shows it as a thought (`train/rows.py`). It is made
of canonical values that the results gave, and it reads from left to right, so that a small model can work it out token
by token. What it says last is what the next call or the final message is made of.

Most walks are never shown to anybody, so a note is put into words only where it is read: what it is given must not
change afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from itertools import pairwise
from typing import Any, ParamSpec

from crosswind.core.types import NOTE, ToolCall

MOST = 9  # rows that are gone through one by one; of more, only those that matter are named
Parts = tuple[str, ...]
P = ParamSpec("P")


class Working:
    """Some working, put into words as often as it is read as text."""

    __slots__ = ("parts",)

    def __init__(self, parts: Callable[[], Parts]) -> None:
        self.parts = parts

    def __str__(self) -> str:
        return ": ".join(part for part in self.parts() if part)


def working(parts: Callable[P, Parts]) -> Callable[P, ToolCall]:
    """A function that gives the parts of a note as one that gives the note, as a solution yields it."""

    @wraps(parts)
    def noted(*args: P.args, **kwargs: P.kwargs) -> ToolCall:
        return ToolCall(NOTE, {"text": Working(partial(parts, *args, **kwargs))})

    return noted


@working
def note(*parts: str) -> Parts:
    """Working that stands as it is said."""
    return parts


@working
def choice(values: Mapping[str, Any], taken: str, how: str) -> Parts:
    """What each of several has, held against the best so far: `P1 3.1, P2 4.5>3.1 yes, P3 2.0>4.5 no: most P2`."""
    sign, better = (">", max) if how == "most" else ("<", min)
    said: list[str] = []
    best: Any = None
    for key, value in values.items():
        if not said:
            said, best = [f"{key} {value}"], value
            continue
        ahead = value != best and better(value, best) == value
        if ahead or len(values) <= MOST:
            said.append(f"{key} {value}{sign}{best} {'yes' if ahead else 'no'}")
        best = value if ahead else best
    return ", ".join(said), f"{how} {taken}"


@working
def first_fit(
    rows: Sequence[tuple[str, int]], need: int, spare: int = 0, *, latest: bool = False, last: str | None
) -> Parts:
    """Which of several times has room: `earliest, need 4+0=4: 08:30 2 no, 11:15 6 yes: 11:15 S7`.

    A row is a time and its room; `last` is what the working comes to, None where nothing fits. Times in order are gone
    through up to the one taken.
    """
    least = need + spare
    fits = [row for row in rows if row[1] >= least]
    if fits and not latest and all(a[0] <= b[0] for a, b in pairwise(rows)):
        rows = rows[: rows.index(fits[0]) + 1]
    gone = rows if len(rows) <= MOST else fits
    return (
        f"{'latest' if latest else 'earliest'}, need {need}+{spare}={least}",
        ", ".join(f"{time} {room} {'yes' if room >= least else 'no'}" for time, room in gone),
        "none" if last is None else last,
    )


@working
def pick(marks: Sequence[tuple[str, bool]], last: str | None) -> Parts:
    """Which of several is meant, gone through up to it: `2031-05-27 no, 2031-05-23 yes: R7 P2`; `last` is what of it is
    needed later, None where none is."""
    said = []
    for label, meant in marks:
        if meant or len(marks) <= MOST:
            said.append(f"{label} {'yes' if meant else 'no'}")
        if meant:
            break
    return ", ".join(said), "none" if last is None else last


@working
def count(marks: Sequence[tuple[Any, bool]], what: str = "") -> Parts:
    """Which of several count, and how many do so far: `at least 4: 5 yes 1, 3 no, 4 yes 2: 2`."""
    said, found = [], 0
    for label, counts in marks:
        found += counts
        if counts or len(marks) <= MOST:
            said.append(f"{label} yes {found}" if counts else f"{label} no")
    return what, ", ".join(said), str(found)


@working
def fitting(marks: Sequence[tuple[str, bool]]) -> Parts:
    """Which of several will do: `R1 open yes, R2 shut no`."""
    said = [f"{label} {'yes' if fits else 'no'}" for label, fits in marks if fits or len(marks) <= MOST]
    return ", ".join(said) or "none", ""


@working
def total(amounts: Sequence[float], more: int | None = None, of: Sequence[str] = ()) -> Parts:
    """A sum, term by term and place by place: `4, 4+20=24+3=27, 27+10=37+3=40`.

    `more` is what a rule adds to every term: `plus 2 each: 4+2=6, 6+20=26+3=29+2=31`; said where it is nothing, too.
    `of` is what the terms belong to: `P1 4, P2 4+20=24+3=27`, so that none is taken twice.
    """
    said: list[str] = []
    whole: float = 0
    for n, amount in enumerate(amounts):
        term = _sum(whole, amount) if said else str(amount)
        said.append(f"{of[n]} {term}" if of else term)
        whole += amount
        if more:
            whole += more
            said[-1] += f"+{more}={whole}"
    return "" if more is None else f"plus {more} each", ", ".join(said) or "0"


def _sum(one: float, two: float) -> str:
    """`58+40=98+5=103`: a number added place by place; one that is not whole is added at once."""
    if not (isinstance(one, int) and isinstance(two, int)):
        return f"{round(one, 6)}+{two}={round(one + two, 6)}"
    digits = str(two)
    out = str(one)
    for n, digit in enumerate(digits):
        part = int(digit) * 10 ** (len(digits) - n - 1)
        if part or two == 0 == n:
            one += part
            out += f"+{part}={one}"
    return out
