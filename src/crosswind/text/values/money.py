"""Amounts of money: a number with a currency.

Cents are hundredths; "12 to 15 euros" gives both ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from crosswind.text.values.found import Found
from crosswind.text.values.number import (
    NUM_REST,
    SCALE,
    SCALES,
    WORD_NUMBER,
    is_negative,
    number_in_words,
    parse_number,
)

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
    r"(?:(?P<fr>(?<=€)[0-9]{2}(?![0-9]))|,?\s(?:and\s)?(?P<ct>[0-9]{1,2}|[a-z-]{3,12})\s?(?:cents?|ct)(?![a-z]))?"
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
