"""Several expected values: whether names and values, starts and ends, go together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from crosswind.text.answers.claims import NAMED, Expected
from crosswind.text.answers.finders import FINDERS
from crosswind.text.answers.reading import AnswerText
from crosswind.text.answers.request import asked_roles
from crosswind.text.answers.roles import roles_of


def is_paired(reading: AnswerText, expected: Sequence[Expected], given: AnswerText) -> bool:
    """Whether names and the values listed after them occur in matching order."""
    pairs = [
        (left, right)
        for left, right in pairwise(expected)
        if left.kind in NAMED and right.kind not in NAMED and right.kind != "yesno"
    ]
    for kind in {right.kind for _, right in pairs}:
        same = [pair for pair in pairs if pair[1].kind == kind]
        if (
            len(same) > 1
            and len({str(right.value) for _, right in same}) == len(same)
            and not _in_order(reading, same, given)
        ):
            return False
    return True


def _in_order(reading: AnswerText, pairs: Sequence[tuple[Expected, Expected]], given: AnswerText) -> bool:
    """Whether the first mentions of the names are in the order of the first mentions of their values."""
    return _order(reading, [left for left, _ in pairs], given) == _order(reading, [right for _, right in pairs], given)


def _order(reading: AnswerText, expected: Sequence[Expected], given: AnswerText) -> list[int]:
    """The indices of expected values by first mention."""
    firsts = []
    for index, item in enumerate(expected):
        found = [claim.start for claim in FINDERS[item.kind](reading, item, given) if claim.match]
        firsts.append((min(found, default=0), index))
    return [index for _, index in sorted(firsts)]


def is_assigned(reading: AnswerText, expected: Sequence[Expected], given: AnswerText) -> bool:
    """Whether a start and an end that the request asks for are not given the other way round."""
    asked = asked_roles(given.low)
    for kind in ("time", "date"):
        wanted = [item for item in expected if item.kind == kind]
        if len(asked) != 2 or len(wanted) != 2:
            continue
        for item, role in zip(wanted, asked, strict=True):
            claims = FINDERS[kind](reading, item, given)
            said = {said for claim, said in zip(claims, roles_of(reading, claims), strict=True) if claim.match and said}
            if said and role not in said:
                return False
    return True
