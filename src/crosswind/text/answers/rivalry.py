"""The claims that compete in a text, and which of them a cue singles out."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import Any

from crosswind.text.answers.claims import Claim, Kind
from crosswind.text.answers.joined import are_linked
from crosswind.text.answers.reading import AnswerText
from crosswind.text.values.found import is_inside

_COPULA = re.compile(
    r"(?:\b(?:is|are|=|was|makes?|be|equals|costs?|to|at|of|pay|says)|[:=])(?:\s(?:the|hotel|only|just|then))?\s?$"
)
_BREAKDOWN = re.compile(r"[^,;.:\n]{0,40}:\s")


def distinct(claims: Iterable[Claim]) -> set[Any]:
    """The values of claims, all matching ones as one."""
    return {"expected" if claim.match else (claim.value,) for claim in claims}


def _grouped(low: str, claims: list[Claim], chosen: list[Claim]) -> list[Claim]:
    """The chosen claims with those coordinated with them."""
    starts = {claim.start for claim in chosen}
    result = list(chosen)
    for (left, right), linked in zip(pairwise(claims), are_linked(low, claims)[1:], strict=True):
        if linked and (left.start in starts) != (right.start in starts):
            result.append(right if left.start in starts else left)
            starts.add(result[-1].start)
    return result


@dataclass(slots=True)
class Rivalry:
    """The claims that compete in a text, and the request that they answer."""

    reading: AnswerText
    claims: list[Claim]
    kind: Kind
    given: AnswerText

    def single(self, chosen: list[Claim]) -> bool | None:
        """Whether the chosen claims single out the expected value; None if they single out none."""
        if not chosen:
            return None
        values = distinct(_grouped(self.reading.low, self.claims, chosen))
        return values == {"expected"} if len(values) == 1 else None

    def outside(self, claims: list[Claim]) -> list[Claim]:
        """The claims that are not asides in parentheses, or all of them if all are."""
        claims = [claim for claim in claims if not is_inside(claim.start, self.reading.parens)] or claims
        if self.kind in ("number", "money") and len(claims) > 1:
            # "14 sessions: 5 on Friday, 9 on Saturday" is one value and its breakdown.
            head = _BREAKDOWN.match(self.reading.low, claims[0].end, claims[1].start)
            end = self.reading.sentences[self.reading.sentence(claims[1].start)].end
            first = bisect_left(self.reading.numbers, claims[1].start, key=itemgetter(0))
            parts = [item for item in self.reading.numbers[first : first + 2] if item.start < end]
            return claims[:1] if head and len(parts) == 2 else claims
        return claims

    def between(self, start: int, end: int) -> list[Claim]:
        return [claim for claim in self.claims if start <= claim.start < end]

    def best(self, claims: list[Claim]) -> list[Claim]:
        """Of the claims after a cue, all if they agree, else those outside parentheses, else those after a copula."""
        for chosen in (claims, self.outside(claims)):
            if len(distinct(chosen)) == 1:
                return chosen
        copula = [claim for claim in self.outside(claims) if _COPULA.search(claim.context.before)]
        return copula if len(distinct(copula)) == 1 else []
