"""One finder of claims for each kind of value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from crosswind.text.answers.amounts import money_claims
from crosswind.text.answers.claims import Claim, Expected, claim_of
from crosswind.text.answers.names import name_claims
from crosswind.text.answers.numbers import number_claims
from crosswind.text.answers.reading import AnswerText
from crosswind.text.values.found import Found
from crosswind.text.values.name import LONGEST_NAME
from crosswind.text.values.reading import dates, times

_BY = re.compile(r"\b(?:by|since)\s(?:the\s|on\s|at\s)?$")


def _moment_claims(low: str, found: Iterable[Found], wanted: str) -> list[Claim]:
    """Dates or times as claims; those that only bound another ("by 14:00") are soft."""
    return [
        claim_of(
            item,
            item.value,
            item.value == wanted,
            bool(_BY.search(low[max(0, item.start - 20) : item.start])),
        )
        for item in found
    ]


def _date_claims(reading: AnswerText, expected: Expected, given: AnswerText) -> list[Claim]:
    known = dates(str(expected.value)[:LONGEST_NAME])
    if not known:
        return []
    return _moment_claims(reading.low, reading.dates(int(known[0][:4])), known[0])


def _time_claims(reading: AnswerText, expected: Expected, given: AnswerText) -> list[Claim]:
    known = times(str(expected.value)[:LONGEST_NAME])
    return _moment_claims(reading.low, reading.times, known[0]) if known else []


FINDERS: dict[str, Callable[[AnswerText, Expected, AnswerText], list[Claim]]] = {
    "number": number_claims,
    "money": money_claims,
    "date": _date_claims,
    "time": _time_claims,
    "name": name_claims,
    "id": name_claims,
    "choice": name_claims,
}
