"""Starts and ends: which of two dates or times is which."""

from __future__ import annotations

import re

from crosswind.text.answers.claims import Claim
from crosswind.text.answers.reading import AnswerText

_ROLE = re.compile(
    r"\b(?:(?P<start>open(?:s|ed|ing)?|start(?:s|ing)?|begin(?:s|ning)?|depart(?:s|ure|ing)?|leav(?:es?|ing)|from"
    r"|check-?\s?in"
    r"|boards?|boarding)|(?P<end>clos(?:es?|ing)|end(?:s|ing)?|finish(?:es)?|arriv(?:es?|al|ing)|until|till|to"
    r"|check-?\s?out"
    r"|returns?|back|reach(?:es)?))\b"
)
_DASH = re.compile(r"\s?(?:-|–|—|to|until|till)\s?")


def roles_of(reading: AnswerText, claims: list[Claim]) -> list[str]:
    """For each claimed date or time whether it is said to be a start or an end ("" if neither)."""
    roles: list[str] = []
    for index, claim in enumerate(claims):
        previous = claims[index - 1].end if index else 0
        gap = reading.low[previous : claim.start]
        if index and len(gap) < 12 and _DASH.fullmatch(gap):
            roles[-1] = roles[-1] or "start"
            roles.append("end")
            continue
        last = ""
        sentence = reading.sentences[reading.sentence(claim.start)]
        for match in _ROLE.finditer(reading.low, max(previous, sentence.start, claim.start - 60), claim.start):
            last = match.lastgroup or ""
        roles.append(last)
    return roles
