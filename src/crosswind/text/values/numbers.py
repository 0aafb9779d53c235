"""Numbers in digits and in words, and amounts of money: a number with a currency.

"1,234" and "1 234" are thousands, "12,5" and "12,50" are decimals, "1.234" is a decimal (but a thousand in an amount of
money, which never has three decimals), "1.234.567" and "1.234,5" are European. "12%" is 12, "1.2k" is 1200,
"1 hour 35 minutes" is two numbers. Ordinals ("3rd") and digits inside dates, times, ids and web addresses are not
numbers. "one" counts only where it is a number and not a pronoun.

Cents are hundredths; "12 to 15 euros" gives both ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from crosswind.text.values.plain import Found

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
    r"|another\b|more\b|finds?\b|gets?\b|sees?\b|counts?\b|arrives?\b|ends?\b|may\b|might\b|could\b|must\b|way\b|day\b|to\b|the\b|a\b|you\b|i\b|should\b|would\b|will\b|as\b|than\b|if\b|it\b)[a-z]{3,}"
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


# ---------------------------------------------------------------- amounts of money

CURRENCIES = {
    "€": "EUR", "eur": "EUR", "euro": "EUR", "euros": "EUR", "$": "USD", "usd": "USD", "dollar": "USD",
    "dollars": "USD", "bucks": "USD", "£": "GBP", "gbp": "GBP", "pound": "GBP", "pounds": "GBP", "¥": "JPY",
    "jpy": "JPY", "yen": "JPY", "chf": "CHF", "franc": "CHF", "francs": "CHF",
}  # fmt: skip
CURRENCY = re.compile(r"[€$£¥]|(?<![a-z])(?:eur|euros?|usd|dollars?|bucks|gbp|pounds?|jpy|yen|chf|francs?)(?![a-z])")
_MONEY_MARK = re.compile(r"[€$£¥]|eur|usd|dollar|bucks|gbp|pound|jpy|yen|chf|franc|cent|ct")
_CODES = ("eur", "euro", "euros", "usd", "gbp", "chf", "jpy")
_AMOUNT = re.compile(rf"([0-9](?<![0-9ª].)(?<![0-9ª][.:].){NUM_REST}){SCALE}?")
_UNIT_AFTER = re.compile(
    r"\s?(?:(?P<c>[€$£¥]|(?:eur|euros?|usd|dollars?|bucks|gbp|pounds?|jpy|yen|chf|francs?)(?![a-z]))"
    r"(?:(?P<fr>(?<=€)[0-9]{2}(?![0-9]))|,?\s(?:and\s)?(?P<ct>[0-9]{1,2}|[a-z-]{3,12}(?=\s))\s?(?:cents?|ct)(?![a-z]))?"
    r"|-?(?P<cents>cents?|ct)(?![a-z]))"
)
_UNIT_BEFORE = re.compile(r"(?P<c>[€$£¥]|(?<![a-z])(?:eur|euros?|usd|gbp|chf|jpy))\s?-?$")
_SPAN = re.compile(r"\s?(?:-|–|—|to|and|or)\s?")
_NO_UNIT = re.compile(r"\s?[a-z%:]")


class _Sum(NamedTuple):
    """A number in digits or words that may be an amount."""

    start: int
    end: int
    value: float


def _sums(low: str) -> list[_Sum]:
    """The numbers of a text as amounts, with no regard to a currency."""
    found = []
    for match in _AMOUNT.finditer(low):
        start = match.start()
        if low[max(0, start - 1) : start].isalpha() and not low.endswith(_CODES, max(0, start - 6), start):
            continue  # part of an id
        number, k, scale = match.groups()
        value = parse_number(number, money=True)
        if k or scale:
            value *= SCALES[k or scale]
        found.append(_Sum(match.start(), match.end(), value))
    words = [_Sum(item.start, item.end, item.value) for item in _worded_sums(low)]
    return sorted(found + words) if words else found


def _worded_sums(low: str) -> Iterator[_Sum]:
    """The numbers in words that a currency follows."""
    for match in WORD_NUMBER.finditer(low):
        value = number_in_words(match["w"])
        if value is not None and _UNIT_AFTER.match(low, match.end()):
            yield _Sum(match.start(), match.end(), value)


def _priced(low: str, item: _Sum) -> Found | None:
    """The amount that a number and the currency beside it make, or None without a currency."""
    after = _UNIT_AFTER.match(low, item.end)
    if after is None:
        if low[item.start - 1 : item.start] not in tuple("€$£¥- rosdpfy"):
            return None
        before = _UNIT_BEFORE.search(low, max(0, item.start - 7), item.start)
        if before is None:
            return None
        negative = low[item.start - 1] == "-" or low[before.start() - 1 : before.start()] == "-"
        return Found(before.start(), item.end, -item.value if negative else item.value, CURRENCIES[before["c"]])
    value = item.value / 100.0 if after["cents"] else item.value
    if after["fr"] or after["ct"]:
        cents = after["fr"] or after["ct"]
        value += (float(cents) if cents.isdigit() else number_in_words(cents) or 0.0) / 100.0
    start = item.start - 1 if is_negative(low, item.start) else item.start
    before = _UNIT_BEFORE.search(low, max(0, item.start - 7), item.start)
    currency = CURRENCIES[after["c"]] if after["c"] else ""
    return Found(before.start() if before else start, after.end(), value if start == item.start else -value, currency)


def find_moneys(low: str) -> list[Found]:
    """All amounts with the currency as note ("" for bare cents); both ends of a span have its currency."""
    if not _MONEY_MARK.search(low):
        return []
    found: list[Found] = []
    bare: _Sum | None = None  # the number just before, if it had no currency of its own
    signed = False  # whether the amount just before had its sign in front ("€12-15")
    for item in _sums(low):
        if found and item.start < found[-1].end:
            continue
        amount = _priced(low, item)
        if amount is None:
            if signed and _SPAN.fullmatch(low, found[-1].end, item.start) and not _NO_UNIT.match(low, item.end):
                amount = Found(item.start, item.end, item.value, found[-1].note)
            else:
                bare, signed = item, False
                continue
        elif bare is not None and _SPAN.fullmatch(low, bare.end, amount.start):
            value = bare.value if amount.note or "cent" not in low[item.end : amount.end] else bare.value / 100.0
            found.append(Found(bare.start, bare.end, value, amount.note))
        found.append(amount)
        bare, signed = None, amount.start < item.start
    return found
