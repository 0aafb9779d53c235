"""Comparatives and superlatives: which names come out better or worse in the sense asked for."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from crosswind.text.answers.claims import Claim, start_of
from crosswind.text.answers.reading import AnswerText

_FEE = r"(?:fees?|prices?|costs?|charges?|rates?|tickets?|ticket\sprices?|amount|entry|admission)"
_PAYING = r"(?:costs?|cost\syou|costs\syou|charg(?:es?|ing)|asks?(?:\sfor)?|pays?|paying|priced)"
_WAY = r"(?:time|wait|trip|travel|way|journey|ride|route|distance|drive|walk|travel\stime)"
# What may be compared, each in its two senses: little and much.
_SENSES = (
    (
        re.compile(
            rf"\b(?:cheap(?:er|est)|(?:less|least|lower|lowest)(?:\s|-)(?:expensive|costly|pric(?:ed|ey))|more\saffordable"
            rf"|most\saffordable|(?:lower|lowest|smaller|smallest)\s(?:[a-z]{{3,12}}\s)?{_FEE}"
            rf"|{_PAYING}\s(?:(?:a\sbit|much|far|slightly|even|the)\s)?(?:less|least)|less\sthan(?=\s<)"
            rf"|{_FEE}\s(?:[^.;,<>]{{0,20}}\s)?(?:is|are|was)\s(?:the\s|slightly\s|much\s)?(?:lower|lowest|smaller|less))\b"
        ),
        re.compile(
            rf"\b(?:pric(?:ier|iest)|dear(?:er|est)|costl(?:ier|iest)|(?:more|most|higher|highest)(?:\s|-)(?:expensive|costly"
            rf"|pric(?:ed|ey))|(?:higher|highest|bigger|larger|greater)\s(?:[a-z]{{3,12}}\s)?{_FEE}"
            rf"|{_PAYING}\s(?:(?:a\sbit|much|far|slightly|even|the)\s)?(?:more|most)|more\sthan(?=\s<)"
            rf"|{_FEE}\s(?:[^.;,<>]{{0,20}}\s)?(?:is|are|was)\s(?:the\s|slightly\s|much\s)?(?:higher|highest|greater|more))\b"
        ),
    ),
    (
        re.compile(
            rf"\b(?:clos(?:er|est)|near(?:er|est)|quick(?:er|est)|fast(?:er|est)|soon(?:er|est)|short(?:er|est)|earli(?:er|est)"
            rf"|(?:least|less)\s(?:travel\s)?{_WAY})\b"
        ),
        re.compile(
            rf"\b(?:farther|farthest|furthest|further(?=\s(?:away|off|from|than|to)\b|[.,;!]|$)|slow(?:er|est)|latest"
            rf"|(?<!no\s)(?<!open\s)long(?:er|est)|(?:more|most)\s(?:distant|remote)|(?:more|most)\s(?:travel\s)?{_WAY})\b"
        ),
    ),
)
_SENSE_OF_RANK = re.compile(r"\b(?:rat(?:ing|ed)|scor(?:e|ed)|slot|opening|appointment|reservation)\b")
_NOT_SO = re.compile(
    r"(?:\b(?:not|no|never|hardly|neither|nor)|n't)(?:\s(?:the|a|any|much|be|have|really|necessarily)){0,2}\s?$"
)
_THAN = re.compile(
    r"[^.;,<>]{0,30}?\bthan\s(?:(?:that|the|those|at|with|for|in|of|by|going|to|fee|price|hotel|museum|one|ones)\s){0,4}"
    r"[\"'*_`]{0,3}(?=<)"
)
_THAN_OTHER = re.compile(r"[^.;,<>]{0,30}?\bthan\b")
_THE_ONE = re.compile(
    r"(?:\s(?:one|option|choice|place|hotel|of\sthe\s(?:two|pair|four|three)|fee|price|to\s(?:reach|get\sto)|away)){0,3}"
    r"\s?(?::|\bis\b|\bwould\sbe\b|\bbelongs\sto\b|\bis\scharged\sby\b|\bgoes\sto\b)\s?(?:the\s|that\sof\s)?[\"'*_`]{0,3}(?=<)"
)
_AT = re.compile(r"(?:\s(?:one|it))?\s(?:at|by|with|for|in|to)\s(?:the\s)?[\"'*_`]{0,3}(?=<)")
_CLAUSE = re.compile(r"[;\n]|\.(?=\s)|,?\s(?:but|while|whereas|although|though)\s(?=[^.;]{0,30}<)")
_IT = re.compile(
    r"(?:^|[.;,\n]\s?|\b(?:and|but|so|because)\s)(?:it|she|he|they|(?:this|that)(?:\sone)?)(?:'s)?\s[^.;,<>]{0,25}$"
)


class ComparedNames(NamedTuple):
    """Where the claims stand that a text calls the better or the worse ones in the sense of the request."""

    better: frozenset[int] = frozenset()
    worse: frozenset[int] = frozenset()
    unnamed: frozenset[int] = frozenset()  # worse than something that the text leaves unnamed
    lost: frozenset[str] = frozenset()  # the names that only come out worse, wherever they stand


NO_COMPARISON = ComparedNames()


def _asked_senses(given: str) -> tuple[re.Pattern[str], re.Pattern[str]] | None:
    """The patterns of the sense that a request asks for and of its opposite; None if it asks for none or both."""
    found = []
    for little, much in _SENSES:
        for asked, opposite in ((little, much), (much, little)):
            if any(not _SENSE_OF_RANK.match(given, match.end() + 1) for match in asked.finditer(given)):
                found.append((asked, opposite))
    return found[0] if len(found) == 1 else None


def compare(reading: AnswerText, claims: Sequence[Claim], two: bool, given: str) -> ComparedNames:
    """What the comparatives and superlatives of a text say about the claimed names, of which there may be two."""
    senses = _asked_senses(given) if claims else None
    if senses is None:
        return NO_COMPARISON
    marked = _marked(reading.low, claims)
    better: set[int] = set()
    worse: set[int] = set()
    unnamed: set[int] = set()
    for pattern, chosen, beaten in ((senses[0], better, worse), (senses[1], worse, better)):
        for match in pattern.finditer(marked):
            sentence = reading.sentences[reading.sentence(match.start())]
            if sentence.question:
                continue
            if _NOT_SO.search(marked, max(sentence.start, match.start() - 30), match.start()):
                denied = _compared_one(marked, claims, sentence.start, match.start(), match.end())
                worse.update([denied] if denied is not None and beaten is worse else [])
                continue
            start = match.end() - 5 if match[0].endswith(" than") else match.end()
            subject = _compared_one(marked, claims, sentence.start, match.start(), match.end())
            than = _THAN.match(marked, start)
            if subject is not None:
                chosen.add(subject)
                if beaten is better and not _THAN_OTHER.match(marked, start):
                    unnamed.add(subject)
            if than and (two or beaten is worse):
                beaten.add(than.end())
    won = {claim.value for claim in claims if claim.start in better - worse}
    lost = {claim.value for claim in claims if claim.start in worse} - won
    return ComparedNames(frozenset(better - worse), frozenset(worse), frozenset(unnamed), frozenset(lost))


def _marked(low: str, claims: Sequence[Claim]) -> str:
    """The text with each claimed name overwritten by "<<<>" or the like, same length."""
    pieces: list[str] = []
    at = 0
    for claim in claims:
        pieces += (low[at : claim.start].replace("<", " ").replace(">", " "), "<" * (claim.end - claim.start - 1), ">")
        at = claim.end
    pieces.append(low[at:].replace("<", " ").replace(">", " "))
    return "".join(pieces).replace("<'s", "<  ").replace(">'s", ">  ")


def _compared_one(marked: str, claims: Sequence[Claim], floor: int, start: int, end: int) -> int | None:
    """Where the claim stands that a comparative between `start` and `end` is about."""
    floor = max(floor, start - 300)
    after = _THE_ONE.match(marked, end) if marked[max(0, start - 4) : start] == "the " else None
    if after:
        return after.end()
    index = bisect_left(claims, start, key=start_of)
    breaks = [match.end() for match in _CLAUSE.finditer(marked, floor, start)]
    lowest = max([floor, *breaks])
    for claim in reversed(claims[max(0, index - 4) : index]):
        if claim.start < lowest:
            break
        if not COMPARED.search(marked, max(lowest, claim.start - 40), claim.start):
            return claim.start
    after = _AT.match(marked, end)
    if after:
        return after.end()
    if index and _IT.search(marked, max(0, lowest - 2, start - 40), start):
        return claims[index - 1].start
    return None


COMPARED = re.compile(
    r"\b(?:than|compared\s(?:to|with)|versus|vs\.?|unlike)(?![a-z])"
    r"(?:(?!\b(?:and|but|so|is|are|costs?|at|with|for|which|or)\b)[^,;.]){0,40}$"
)
