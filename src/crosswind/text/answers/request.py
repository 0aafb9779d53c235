"""What a request asks for: which words, units, roles and amounts."""

from __future__ import annotations

import re

# A request for a count: an amount, a percentage or the number of a thing ("review number 4") is none.
COUNT_ASKED = re.compile(r"\b(?:how\smany|count(?:\sof)?|number\sof)\b(?!\spercent)")

_UNIT_GIVEN = re.compile(r"[0-9](?:\s?or\s[a-z]{4,6})?\s([a-z]{3,12})")


def condition_units(given: str) -> set[str]:
    """The units of the numbers of a request ("4 stars or more") that are not what it asks to count."""
    return {stem(match[1]) for match in _UNIT_GIVEN.finditer(given)} - asked_words(given)


# What is left of something, in a request and beside a value.
LEFT_ASKED = re.compile(r"\b(?:how\s(?:much|many)|what)\b[^.?!]{0,120}\b(?:left|remain(?:s|ing)?|still)\b(?!\sunread)")

_ONE_ASKED = re.compile(
    r"\b(?:ticket\sprice|price\sof\s(?:a|one|the)|a\s(?:ticket|consultation|visit)|(?:what|how\smuch)\s(?:does"
    r"|do|is|are)\b"
    r"|the\s(?:price|fee|cost)|what\sfee|which\sfee)"
)
_SUM_ASKED = re.compile(
    r"\b(?:together|total|sum|add\sup|altogether|in\sall|overall|(?:for|of)\s(?:[0-9]+|two|three|four|five|six"
    r"|us|all)\b)"
)


def asks_for_one(given: str) -> bool:
    """Whether a request asks what one ticket or visit costs."""
    return bool(_ONE_ASKED.search(given)) and not _SUM_ASKED.search(given)


EACH_ASKED = re.compile(r"\b(?:each|apiece|per\s[a-z]+|a\s(?:person|night|day|ticket|head)|one\s[a-z]+)\b")
HOURS_ASKED = re.compile(r"\b(?:open|opens|opening\s(?:time|hour)s?|close|closes|closing)\b")

ORDER = re.compile(r"\b(?:second|third|then|next|order|rank)\b")

_START_ASKED = re.compile(
    r"\b(?:open|opens|opening|start|starts|begin|begins|depart|departs|departure|leave|leaves|check-?\s?in|board)\b"
)
_END_ASKED = re.compile(
    r"\b(?:close|closes|closing|end|ends|finish|finishes|arrive|arrives|arrival|check-?\s?out|until|return)\b"
)


def asked_roles(given: str) -> list[str]:
    """The roles that a request asks for, in its order."""
    start, end = _START_ASKED.search(given), _END_ASKED.search(given)
    found = [(match.start(), name) for match, name in ((start, "start"), (end, "end")) if match]
    return [name for _, name in sorted(found)]


_ASKED = re.compile(
    r"\b(?:how\smany|number\sof|count\sof|what(?:\sis|'s|\swas)\sthe)((?:\s(?!are\b|is\b|do\b|does\b|did\b|can\b"
    r"|will\b|have\b|has\b|in\b|at\b|of\b|on\b|for\b|with\b|that\b|there\b|i\b|we\b|you\b|would\b|should\b|to\b"
    r"|from\b)[a-z-]{2,20}){1,4})"
)
_UNITS_ASKED = (
    (re.compile(r"\bhow\slong\b"), ("minute", "min", "hour", "h", "day", "night", "week")),
    (re.compile(r"\bhow\sfar\b"), ("km", "kilometer", "kilometre", "mile", "m", "meter", "metre")),
    (re.compile(r"\bhow\s(?:hot|warm|cold)\b|\btemperature\b"), ("c", "celsius", "degree", "f", "fahrenheit")),
    (re.compile(r"\brat(?:ing|ed)\b"), ("star",)),
)
LETTERS = re.compile(r"[a-z]+")


def stem(word: str) -> str:
    """A word without its plural ending."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and len(word) > 3 else word


def asked_words(given: str) -> set[str]:
    """The things whose number a request asks for."""
    found = {stem(match[1].split()[-1]) for match in _ASKED.finditer(given)}
    for pattern, units in _UNITS_ASKED:
        if pattern.search(given):
            found.update(units)
    return found


_STATE_ASKED = re.compile(r"\bhow\smany\b[^.?!]{0,120}?\b(?:is|are|was|were)\s(?:still\s)?([a-z-]{3,20})")


def states_asked_for(given: str) -> set[str]:
    """How the things are whose number a request asks for: "unread", of "how many unread mails" and the like."""
    adjectives = {word for match in _ASKED.finditer(given) for word in match[1].split()[:-1]}
    return adjectives | {match[1] for match in _STATE_ASKED.finditer(given)}
