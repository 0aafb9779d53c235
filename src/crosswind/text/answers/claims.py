"""Expected values, and the claims of a text about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from crosswind.text.values.found import Found

Kind = Literal["number", "money", "date", "time", "name", "id", "choice", "yesno"]


@dataclass(frozen=True, slots=True)
class Expected:
    """A value that an answer has to state, with the rivals that it must not claim instead."""

    kind: Kind
    value: Any
    others: tuple[str, ...] = ()
    tolerance: float = 0.0


class Context(NamedTuple):
    """The text just before and after a claim, within its sentence and without markup."""

    before: str
    after: str


_NO_CONTEXT = Context("", "")


@dataclass(frozen=True, slots=True)
class Claim:
    """An occurrence of a value of the expected kind and what the text says about it."""

    start: int
    end: int
    value: Any
    match: bool
    soft: bool = False  # serves only if nothing firmer is there
    dropped: bool = False  # not claimed at all
    approximate: bool = False
    alternative: bool = False
    dismissed: bool = False  # spoken against, as far as rivals go
    words: bool = False  # a zero in words such as "none"
    better: bool = False  # what a comparison of the sense asked for is about
    context: Context = _NO_CONTEXT


def start_of(claim: Claim) -> int:
    return claim.start


def claim_of(found: Found, value: Any, match: bool, soft: bool = False) -> Claim:
    return Claim(found.start, found.end, value, match, soft)


NAMED = ("name", "id", "choice")
MARKUP = str.maketrans("", "", "*`")
