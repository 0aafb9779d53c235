"""The names, ids and choices of a text as claims."""

from __future__ import annotations

import re

from crosswind.text.answers.claims import Claim, Expected, Kind
from crosswind.text.answers.reading import AnswerText
from crosswind.text.values.id import id_places
from crosswind.text.values.name import name_places
from crosswind.text.values.plain import plain_text

_LONE_AFTER = re.compile(r"\s*(?:[).,:;*_\"'\]!?–-]|$|(?:or|and|is|was|because|since)\b)")
_LONE_BEFORE = re.compile(r"(?:\b(?:option|answer|choice|is|pick|choose|or|and|be)|[:(,=])\s?[\"'*_(]{0,3}$")


def _lone_letter(reading: AnswerText, letter: str) -> list[tuple[int, int]]:
    """The places of an option such as "B": case counts, and the article "A" is no option."""
    found = []
    for match in re.finditer(rf"(?<![\w']){re.escape(letter)}(?![\w'])", reading.plain):
        article = letter in "AI" and match.end() < len(reading.plain)
        before = reading.low[max(0, match.start() - 12) : match.start()]
        if not article or _LONE_AFTER.match(reading.low, match.end()) or _LONE_BEFORE.search(before):
            found.append(match.span())
    return found


def candidate_places(reading: AnswerText, name: str, kind: Kind) -> list[tuple[int, int]]:
    """The places where a candidate name, id or choice stands."""
    if kind == "id":
        return id_places(reading.low, name)
    if len(name) == 1 and name.isalpha():
        return _lone_letter(reading, name)
    return name_places(reading.low, name)


def name_claims(reading: AnswerText, expected: Expected, given: AnswerText) -> list[Claim]:
    """The mentions of the candidates; where one lies within another, the longer one stands."""
    wanted = str(expected.value)
    rivals = [other for other in expected.others if plain_text(other).lower() != plain_text(wanted).lower()]
    if expected.kind == "id":
        rivals += _alike(reading, wanted)
    found = [(start, end, wanted) for start, end in candidate_places(reading, wanted, expected.kind)]
    for rival in dict.fromkeys(rivals):
        found += ((start, end, rival) for start, end in candidate_places(reading, rival, expected.kind))
    found.sort(key=lambda item: (item[0], -item[1], item[2] != wanted))
    claims: list[Claim] = []
    for start, end, name in found:
        if not claims or start >= claims[-1].end:
            claims.append(Claim(start, end, name, name == wanted))
    return claims


def _shape(token: str) -> tuple[str, int, tuple[int, ...]]:
    """What ids of one series share: the first letter, the length and the places of separators."""
    return token[0].lower(), len(token), tuple(at for at, char in enumerate(token) if char in "-_")


def _alike(reading: AnswerText, wanted: str) -> list[str]:
    """The ids in a text that have the shape of the expected one."""
    if not wanted:
        return []
    shape = _shape(wanted)
    return [item.value for item in reading.ids if item.value.lower() != wanted.lower() and _shape(item.value) == shape]
