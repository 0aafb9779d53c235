"""Answers to yes-or-no questions."""

from __future__ import annotations

import re
from bisect import bisect_left
from operator import itemgetter
from typing import Any

from crosswind.text.answers.cues import ANSWER
from crosswind.text.answers.reading import AnswerText

_YES_NO = re.compile(
    r"(?P<both>\byes\s(?:and|or)\sno\b|\byes\s?/\s?no\b)"
    r"|(?P<not>(?:\bnot|n't)\s(?:quite\s|entirely\s|really\s)?)?\b(?:(?P<yes>yes|yep|yeah|yup|affirmative|(?:true"
    r"|correct|right)"
    r"(?=\s*(?:[.,!;:}\])*\"'–—-]|$|that\b|\n)))|(?P<no>nope|nah|(?:false|incorrect"
    r"|wrong)(?=\s*(?:[.,!;:}\])*\"'–—-]|$|that\b|\n))"
    r"|(?P<bare>no(?![\w'-]))))(?![a-z])"
)
_NO_AFTER = re.compile(
    r"\s*[*_\"'`]{0,3}\s*(?:[.,!;:}(\])–—-]|$|\n|it\b|there\b|you\b|the\b|they\b|he\b|she\b|that\b|this\b|i\b"
    r"|we\b|not\b)"
)
_UNSURE = re.compile(
    r"\b(?:not\s(?:sure|certain)|unsure|uncertain|maybe|perhaps|possibly|probably|do\snot\sknow|don't\sknow|unclear"
    r"|(?:cannot|can't|could\snot|couldn't)\s(?:say|tell|confirm|determine|verify))\b"
)


def _polarity(match: re.Match[str], low: str) -> bool | None:
    """Whether a match says yes or no; None if it says neither."""
    if match["both"]:
        return None
    if match["bare"] and not _NO_AFTER.match(low, match.end("bare")):
        return None
    return bool(match["yes"]) != bool(match["not"])


def answers_yes_no(reading: AnswerText, value: Any) -> bool:
    """Whether a text answers a yes-or-no question as expected."""
    if isinstance(value, str):
        value = value.strip().lower() in ("yes", "true")
    low = reading.low
    unsure = {reading.sentence(match.start()) for match in _UNSURE.finditer(low)}
    verdicts: list[tuple[int, bool]] = []
    for match in _YES_NO.finditer(low):
        index = reading.sentence(match.start())
        polarity = _polarity(match, low)
        if polarity is not None and index not in unsure and not reading.sentences[index].question:
            verdicts.append((match.start(), polarity))
    for cue in ANSWER.finditer(low):
        at = bisect_left(verdicts, cue.end(), key=itemgetter(0))
        if at < len(verdicts) and verdicts[at][0] - cue.end() < 12:
            return verdicts[at][1] is bool(value)
    if not verdicts or any(reading.sentences[index].start < verdicts[0][0] for index in unsure):
        return False
    return verdicts[0][1] is bool(value)
