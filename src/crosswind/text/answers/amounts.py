"""The amounts of a text as claims."""

from __future__ import annotations

import re
from dataclasses import replace

from crosswind.text.answers.claims import Claim, Expected, claim_of, start_of
from crosswind.text.answers.numbers import is_difference, number_claims, zero_claims
from crosswind.text.answers.reading import AnswerText
from crosswind.text.answers.request import EACH_ASKED, asks_for_one
from crosswind.text.values.money import CURRENCIES, CURRENCY
from crosswind.text.values.name import LONGEST_NAME
from crosswind.text.values.number import is_close
from crosswind.text.values.reading import TextValues, moneys, number_of


def _currency(expected: Expected, given: AnswerText) -> str:
    """The currency of an expected amount: its own, else the only one of the request, else euros."""
    if isinstance(expected.value, str):
        for item in TextValues(expected.value[:LONGEST_NAME]).moneys:
            return item.note or "EUR"
    named = {CURRENCIES.get(word) for word in CURRENCY.findall(given.low)}
    return str(named.pop()) if len(named) == 1 else "EUR"


def money_claims(reading: AnswerText, expected: Expected, given: AnswerText) -> list[Claim]:
    """The amounts of a text in the expected currency; bare numbers only if it holds no amount."""
    if isinstance(expected.value, str) and len(expected.value) <= LONGEST_NAME and (own := moneys(expected.value)):
        wanted: float | None = own[0]
    else:
        wanted = number_of(expected.value)
    if wanted is None:
        return []
    if not reading.moneys:
        return _bare_amounts(reading, replace(expected, value=wanted), given)
    currency = _currency(expected, given)
    shared = bool(EACH_ASKED.search(given.low)) or asks_for_one(given.low)
    claims = [
        claim_of(
            item,
            item.value,
            is_close(item.value, wanted, expected.tolerance),
            is_difference(reading.low, item) or (not shared and bool(EACH.match(reading.low, item.end))),
        )
        for item in reading.moneys
        if item.note in ("", currency)
    ]
    claims += zero_claims(reading, expected.kind, wanted, given)
    return sorted(claims, key=start_of)


_PRICE_WORD = (
    r"(?:prices?|priced|costs?|fees?|tickets?|total|sum|charges?|charged|amount|pays?|entry|entrance|admission)"
)
_PRICE_HEAD = re.compile(rf"\b{_PRICE_WORD}\b")
_PRICE_LABEL = re.compile(
    rf"\b(?:[a-z]{{1,12}}_)?{_PRICE_WORD}(?:_[a-z]{{1,12}})?\b[\s\"'`*|]{{0,6}}(?:\([^()\n]{{0,12}}\)\s?)?"
    r"(?:[:=]|is\b|are\b|was\b|of\b|at\b|to\b|comes\sto\b|you\b|be\b)?[\s\"'`*]{0,4}"
    r"(?:(?:only|just|exactly|you|be|is|of|at)\s){0,2}$"
)
_OTHER_WORD = (
    r"(?:ratings?|rated|scor(?:e|es|ed|ing)|stars?|reviews?|seats?|distance|duration|travel\stime|time|minutes|mins?"
    r"|floor|capacity|count|rank(?:ed|s)?|age|percent(?:age)?|places|people|slots?|votes|points|there\s(?:is|are|were))"
)
_OTHER_HEAD = re.compile(rf"\b{_OTHER_WORD}\b")
_OTHER_LABEL = re.compile(
    rf"\b{_OTHER_WORD}\b[\s\"'`*|]{{0,6}}(?:[:=]|is\b|are\b|was\b|of\b|at\b|with\b|it\b)?[\s\"'`*]{{0,4}}"
    r"(?:(?:only|just|exactly|a|about|at|of|an?\saverage)\s){0,2}$"
)
# Any plural noun after a number says what it counts; the verbs and the like that also end in "s" are named.
_OTHER_UNIT = re.compile(
    r"[\s*_`-]{0,3}(?:%|percent|/\s?(?:5|10|100)\b|out\sof|stars?|min\b|minute|hour|h\b|km\b|m\b|metres?|meters?|miles?"
    r"|people|persons?|children|review|seat|slot"
    r"|(?:(?!(?:and|but|or|for|per|in|on|at|so|it|with|which|that|to|each|if|as|is|was)\b)[a-z]{2,14}\s)?"
    r"(?!(?:is|was|as|has|its|this|plus|less|includes|covers|costs|buys|gets|bucks|means|applies|always|adults|across"
    r"|unless|thus|yes|euros|cents|besides|perhaps|regardless|his|hers|theirs|ours)\b)[a-z]{3,}s\b)"
)


def _bare_amounts(reading: AnswerText, expected: Expected, given: AnswerText) -> list[Claim]:
    """The numbers that may be amounts: those labelled as prices, else those that measure nothing else."""
    known = {item.start: item for item in reading.numbers}
    priced, bare = [], []
    for claim in number_claims(reading, expected, given):
        item = known.get(claim.start)
        if item is None or claim.words:
            bare.append(claim)
            continue
        if item.note == "%" or _OTHER_UNIT.match(reading.low, item.end):
            continue
        column = reading.column(item.start)
        before = reading.low[max(0, item.start - 40) : item.start]
        if _PRICE_HEAD.search(column) or _PRICE_LABEL.search(before):
            priced.append(claim)
        elif not (_OTHER_HEAD.search(column) or _OTHER_LABEL.search(before)):
            bare.append(claim)
    return sorted([*priced, *(replace(claim, soft=claim.soft or bool(priced)) for claim in bare)], key=start_of)


EACH = re.compile(r"\s?(?:\*\*\s?)?(?:/\s?|\(?(?:per|an?)\s|\(?each\b|apiece\b|pp\b)(?!total)")
