"""Claims that are joined by "and", "or", a comma, a range or an arrow."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from crosswind.text.answers.claims import MARKUP, NAMED, Claim, Kind

_ARROW = re.compile(r"-{1,2}>|=>|[→⇒➔➜⟶]")
_RANGE = re.compile(r"\s?(?:[a-z€$]{1,8}\s?)?(?:-|–|—|to|through)\s?(?:€|\$)?\s?")
BETWEEN = re.compile(r"\bbetween\s(?:the\s)?$")
_STRICTLY = re.compile(r"\s?(?:,|,?\s?(?:and|&|as\swell\sas|plus))\s?(?:the\s|also\s|hotel\s|museum\s|on\s|at\s)?")
_ALTERNATIVE = re.compile(
    r"[^.;:!?\n]{0,25}?(?:\bor|\balternatively|\bversus|\bvs\.?)\s(?:(?:maybe|perhaps|possibly|even|the|at|on"
    r"|about|around|a"
    r"|just|up|to|as|much|else|hotel|by)\s){0,3}"
)
_ASIDE = re.compile(r"\s?\([^()]{0,60}\)")


def _gap(low: str, left: Claim, right: Claim) -> str:
    """What stands between two claims, without markup and asides; a dot if they are far apart."""
    if right.start - left.end > 80:
        return "."
    return _ASIDE.sub("", low[left.end : right.start].translate(MARKUP))


def are_linked(low: str, claims: Sequence[Claim]) -> list[bool]:
    """For each claim whether it is coordinated with the one before; after "and" a comma starts anew."""
    links, closed = [False], False
    for left, right in pairwise(claims):
        gap = _gap(low, left, right)
        linked = bool(_STRICTLY.fullmatch(gap.strip("\"'_"))) and not (closed and gap.strip() == ",")
        closed = linked and gap.strip() != ","
        links.append(linked)
    return links


def join_claims(low: str, claims: list[Claim], kind: Kind, ranged: bool) -> None:
    """Spread what is said of one claim to those it is joined with, in place."""
    links = are_linked(low, claims)
    for index in range(1, len(claims)):
        left, right = claims[index - 1], claims[index]
        if left.value == right.value and left.match == right.match:
            continue
        gap = _gap(low, left, right)
        if kind in ("date", "time") and not ranged and len(gap) < 40 and "\n" not in gap and _ARROW.search(gap):
            claims[index - 1] = replace(left, dropped=True)
        elif kind in ("number", "money") and _RANGE.fullmatch(gap):
            claims[index - 1], claims[index] = replace(left, approximate=True), replace(right, approximate=True)
        elif _ALTERNATIVE.fullmatch(gap.rstrip("\"'_([€$")) or (kind in NAMED and gap.strip() == "/"):
            _join_alternatives(low, claims, index)
        elif links[index]:
            between = left.alternative and bool(BETWEEN.search(low[max(0, left.start - 12) : left.start]))
            dropped = left.dropped and (kind in NAMED or "," not in gap)
            claims[index] = replace(right, dropped=right.dropped or dropped, alternative=right.alternative or between)
    for index in range(len(claims) - 1, 0, -1):
        if claims[index].dismissed and links[index]:
            claims[index - 1] = replace(claims[index - 1], dismissed=True)


def _join_alternatives(low: str, claims: list[Claim], index: int) -> None:
    """Mark two claims joined by "or", and those listed before them, as alternatives or as negated alike."""
    left, right = claims[index - 1], claims[index]
    if left.dropped:
        claims[index] = replace(right, dropped=True)
        return
    claims[index - 1], claims[index] = replace(left, alternative=True), replace(right, alternative=True)
    for at in range(index - 1, 0, -1):
        if low[claims[at - 1].end : claims[at].start].strip(" *_") != ",":
            break
        claims[at - 1] = replace(claims[at - 1], alternative=True)
