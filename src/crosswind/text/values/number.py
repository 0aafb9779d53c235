"""Numbers in digits and in words.

"1,234" and "1 234" are thousands, "12,5" and "12,50" are decimals, "1.234" is a decimal (but a thousand in an amount of
money, which never has three decimals), "1.234.567" and "1.234,5" are European. "12%" is 12, "1.2k" is 1200,
"1 hour 35 minutes" is two numbers. Ordinals ("3rd") and digits inside dates, times, ids and web addresses are not
numbers. "one" counts only where it is a number and not a pronoun.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from crosswind.text.values.found import Found

NUM_REST = (
    r"[0-9]{0,2}(?:(?<![0-9],[0-9])(?<![0-9],[0-9]{2})(?:,[0-9]{3}){1,5}(?![0-9,])(?:\.[0-9]{1,12})?"
    r"|(?:\.[0-9]{3}){1,5},[0-9]{1,9}|(?:\.[0-9]{3}){2,5}"
    r"|(?:[ '][0-9]{3}){1,5}(?![0-9])(?:[.,][0-9]{1,2}(?![0-9]))?"
    r"|[0-9]{0,12}(?:\.[0-9]{1,12}|(?<![\[,][0-9])(?<![\[,][0-9]{2}),[0-9]{1,2}(?![0-9\]]"
    r"|,[0-9]))?)(?![0-9])(?!\.[0-9])"
)
SCALE = r"(?:(k)(?![a-z])|\s(hundred|thousand|million|billion|dozen)(?![a-z]))"
_NUMBER = re.compile(
    rf"([0-9](?<![0-9a-wyzª].)(?<![^0-9]x.)(?<![0-9a-zª]\..){NUM_REST})(?!(?:st|nd|rd|th)(?![a-z]))"
    rf"([½¼¾]|\sand\sa\shalf(?![a-z]))?(?:\s?(%|percent|per\scent)|{SCALE})?"
)
_UNITS = {
    word: float(index)
    for index, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen".split()
    )
}
_TENS = {
    word: 10.0 * (2 + index)
    for index, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split())
}
SCALES = {"k": 1e3, "hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "dozen": 12.0}
_SMALL = r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|[a-z]{3,5}teen|[a-z]{3,4}ty)"
WORD_NUMBER = re.compile(
    r"(?P<w>[ahotfsenz](?<![a-z0-9-].)(?:ne|wo|hree|our(?:teen)?|ive|ix(?:teen|ty)?|even(?:teen|ty)?|ight(?:een|y)?"
    r"|ine(?:teen|ty)?|en|leven|welve|hirteen|ifteen|wenty|hirty|orty|ifty|ero|alf\sa(?=\sdozen)"
    r"|n?(?=\s(?:[htmbd])))(?![a-z])"
    rf"(?:[\s-](?:one|two|three|four|five|six|seven|eight|nine)(?![a-z]))?"
    rf"(?:\s(?:hundred(?:\s(?:and\s)?{_SMALL}(?:[\s-](?:one|two|three|four|five|six|seven|eight|nine))?(?![a-z]))?"
    r"|thousand|million|billion|dozen)(?![a-z]))?)"
    r"(?P<half>\sand\sa\shalf(?![a-z]))?(?P<pct>\spercent|\sper\scent)?"
)
_HALVES = {"½": 0.5, "¼": 0.25, "¾": 0.75}
# "one" is mostly a pronoun: it counts when it is said of something or is said to be the number.
_ONE_BEFORE = re.compile(
    r"(?:\b(?:is|are|was|just|only|exactly|has|have|found|be)|[:=*(])\s{0,2}[*_]{0,3}$|^[\s*_\"']*$"
)
_ONE_AFTER = re.compile(
    r"\s(?!of\b|that\b|which\b|who\b|with\b|is\b|was\b|are\b|and\b|or\b|can\b|for\b|from\b|in\b|on\b|at\b|by\b|has\b"
    r"|another\b|more\b|way\b|day\b|to\b|the\b|a\b|you\b|i\b|should\b|would\b|will\b|as\b|than\b|if\b|it\b)[a-z]{3,}"
)
_ONE_OF = re.compile(r"\sof\s(?:the|its|their|our|your|my)\s(?:[a-z]{1,12}est\b|most\b|top\b|many\b|few\b)")
_ONE_PRONOUN = re.compile(r"\b(?:this|that|the|which|no|any|every|each|another|a|[a-z]{2,12}est|[a-z]{3,12}er)\s$")


def parse_number(token: str, *, money: bool = False) -> float:
    """The value of a written number; in money three digits after a single dot are thousands."""
    if token.isdigit() or (not money and token.count(".") == 1 and token.replace(".", "", 1).isdigit()):
        return float(token)
    token = token.replace(" ", "").replace("'", "")
    comma, dot = token.rfind(","), token.rfind(".")
    if comma >= 0 and dot >= 0:
        marks = (",", ".") if dot > comma else (".", ",")
        return float(token.replace(marks[0], "").replace(marks[1], "."))
    mark, at = (",", comma) if comma >= 0 else (".", dot)
    if at < 0:
        return float(token)
    grouped = len(token) - at == 4 and (mark == "," or money) and token[0] != "0"
    if token.count(mark) > 1 or grouped:
        return float(token.replace(mark, ""))
    return float(token.replace(mark, "."))


def number_in_words(words: str) -> float | None:
    """The value of a number in words, or None if they are no number ("a hotel")."""
    if words.startswith("half"):
        return 6.0
    total, known = 0.0, False
    for word in words.replace("-", " ").split():
        if word in SCALES:
            total, known = (total or 1.0) * SCALES[word], True
        elif word in _UNITS or word in _TENS:
            total, known = total + _UNITS.get(word, _TENS.get(word, 0.0)), True
        elif word not in ("a", "an", "and"):
            return None
    return total if known else None


def is_negative(low: str, start: int) -> bool:
    """Whether the number at a place has a minus sign, not a hyphen or a bullet, before it."""
    if low[start - 1 : start] in ("€", "$", "£"):
        start -= 1
    if low[start - 1 : start] == "-":
        before = low[max(0, start - 2) : start - 1]
        return not (before.isalnum() or (before and before in ")]%€$-_"))
    return low[start - 1 : start] == " " and low.endswith("minus", 0, start - 1)


def _numeral(low: str, match: re.Match[str]) -> Found:
    """The number of a match with its sign, fraction and scale."""
    start, end = match.span()
    number, fraction, percent, k, scale = match.groups()
    value = float(number) if number.isdigit() else parse_number(number)
    before = low[max(0, start - 2) : start]
    if before[-1:] == "." and number.isdigit() and before != "..":  # .5
        value = float(f"0.{number}")
    if fraction:
        value += _HALVES.get(fraction, 0.5)
    if k or scale:
        value *= SCALES[k or scale]
    if before and (before[-1] in "-€$£" or before == "s ") and is_negative(low, start):
        start, value = start - 1, -value
    return Found(start, end, value, "%" if percent else "")


def _is_pronoun(low: str, match: re.Match[str]) -> bool:
    """Whether a matched "one" stands for a thing and not for a number."""
    before = low[max(0, match.start() - 24) : match.start()]
    if _ONE_PRONOUN.search(before) or _ONE_OF.match(low, match.end()):
        return True
    return not (_ONE_AFTER.match(low, match.end()) or _ONE_BEFORE.search(before))


def _word_numbers(low: str) -> Iterator[Found]:
    """The numbers written in words."""
    for match in WORD_NUMBER.finditer(low):
        words = match["w"]
        value = number_in_words(words)
        if value is None or (words == "one" and not match["half"] and not match["pct"] and _is_pronoun(low, match)):
            continue
        value += 0.5 if match["half"] else 0.0
        negative = is_negative(low, match.start())
        yield Found(match.start(), match.end(), -value if negative else value, "%" if match["pct"] else "")


def find_numbers(low: str, hidden: str) -> list[Found]:
    """All numbers of a text whose dates, times, ids and addresses are blanked in `hidden`."""
    found: list[Found] = []
    for match in _NUMBER.finditer(hidden):
        start, end = match.span()
        if (
            match.lastindex == 1
            and hidden[start - 1 : start] in ("", " ", "(", "*")
            and hidden[start - 2 : start] != "s "
        ):
            found.append(Found(start, end, parse_number(match[1])))  # the usual case: no sign, no fraction, no scale
        else:
            found.append(_numeral(low, match))
    words = list(_word_numbers(low))
    if words:
        found = sorted(found + words) if found else words
    return found


def is_close(left: float, right: float, tolerance: float) -> bool:
    """Whether two numbers are equal up to a tolerance, or up to rounding."""
    return abs(left - right) <= max(tolerance, 1e-6)
