"""The numbers of a text as claims."""

from __future__ import annotations

import re

from crosswind.text.answers.claims import Claim, Expected, Kind, claim_of, start_of
from crosswind.text.answers.reading import AnswerText
from crosswind.text.answers.request import COUNT_ASKED, LEFT_ASKED, condition_units, stem
from crosswind.text.values.found import Found, is_inside
from crosswind.text.values.money import CURRENCY
from crosswind.text.values.number import is_close
from crosswind.text.values.reading import number_of

_COMPOSITE = re.compile(
    r"(?<![0-9a-z.,])([0-9]{1,3})\s?(?:h|hrs?|hours?)[\s,]{0,2}(?:and\s)?([0-9]{1,2})\s?(?:m|mins?|minutes?)(?![a-z])"
)
_LABEL = re.compile(
    r"\b(?P<label>step|option|day|item|line|note|part|section|figure|table|stage|rank|room|gate|platform|track|seat"
    r"|terminal|floor|chapter|page|route|bus|tram|no\.|nr\.?|version|level|row|zone|leg|week|night|round|question"
    r"|phase|top|hotel|museum|place|hall)\s?$|#\s?$"
)
_SERIAL = re.compile(
    r"(?:\b(?!(?:the|a|total|final|exact|overall|correct|right|this|that|its|their|and)\s)[a-z]{2,20}\s(?:number|no\.?|nr\.?)"
    r"|\b(?:review|prescription|reservation|appointment|booking|order|slot)(?:\s?#)?)\s?$|#\s?$"
)
_YEAR_BEFORE = re.compile(r"\b(?:in|since|year|by|until|during|of|summer|winter|spring|autumn|fall)\s$")


def number_claims(reading: AnswerText, expected: Expected, given: AnswerText) -> list[Claim]:
    """The numbers of a text as claims: composite durations count as one, amounts and labels are soft."""
    wanted = number_of(expected.value)
    if wanted is None:
        return []
    composites = [
        (match.start(), match.end(), int(match[1]), int(match[2])) for match in _COMPOSITE.finditer(reading.low)
    ]
    claims = []
    for start, end, hours, minutes in composites:
        total = 60.0 * hours + minutes
        fits = is_close(total, wanted, expected.tolerance) or is_close(total / 60, wanted, expected.tolerance)
        claims.append(Claim(start, end, wanted if fits else total, fits))
    amounts = [(item.start, item.end) for item in reading.moneys]
    counted = bool(COUNT_ASKED.search(given.low)) and not CURRENCY.search(given.low)
    units = condition_units(given.low) if counted else set()
    for item in reading.numbers:
        if item.note == "%" or is_inside(item.start, amounts) or is_inside(item.end - 1, amounts):
            if counted:
                continue
            soft = True
        elif is_inside(item.start, composites):
            continue
        else:
            if counted and _SERIAL.search(reading.low[max(0, item.start - 30) : item.start]):
                continue
            soft = _is_label(reading.low, item, given.low) or is_difference(reading.low, item)
            unit = _UNIT_SAID.match(reading.low, item.end) if units and not soft else None
            soft = soft or (unit is not None and stem(unit[1]) in units)
        claims.append(claim_of(item, item.value, is_close(item.value, wanted, expected.tolerance), soft))
    claims += zero_claims(reading, expected.kind, wanted, given)
    claims.sort(key=start_of)
    return claims


_UNIT_SAID = re.compile(r"(?:\s(?:or|and|to)\s[0-9]{1,6})?[\s-]([a-z]{3,12})")

_NONE = re.compile(
    r"\b(?:none|nothing|no\s(?!problem|worr|doubt|longer|more\b|less\b|fewer\b|later\b|one\b|matter|need|idea"
    r"|info|data|answer"
    r"|way|access|later|earlier|further|other|and\b|or\b|it\b|there\b|i\b|you\b|that\b|the\b)(?=[a-z])"
    r"|not\s(?:have\s)?any\b)|n't\s(?:have\s)?any\b"
)
_FREE = re.compile(
    r"\b(?:free(?!\s(?:days?|rooms?|seats?|slots?|tables?|places?|time))|no\s(?:charge|cost|fee)|gratis"
    r"|complimentary)\b"
)
_BUT = re.compile(r"\b(?:but|however,|yet|of\swhich|of\sthese|of\sthem)\s?$")
_OF_WHICH = re.compile(r"\sof\s(?:which|whom|these|those|them)\b")


def zero_claims(reading: AnswerText, kind: Kind, wanted: float, given: AnswerText) -> list[Claim]:
    """The words that say that there are none or that it is free.

    They are firm only after "but" and in "none of which", and where they say that nothing is left if that is asked.
    """
    found = list(_NONE.finditer(reading.low))
    if kind == "money":
        found += _FREE.finditer(reading.low)
    left = bool(LEFT_ASKED.search(given.low))
    claims = []
    for match in found:
        firm = (
            _BUT.search(reading.low, max(0, match.start() - 12), match.start())
            or _OF_WHICH.match(reading.low, match.end())
            or (left and LEFT_AFTER.match(reading.low, match.end()))
        )
        claims.append(Claim(match.start(), match.end(), 0.0, wanted == 0.0, soft=not firm, words=True))
    return claims


LEFT_AFTER = re.compile(
    r"(?:\sof\s(?:it|the|its|their|that|this)(?:\s[a-z]+){0,3})?(?:\s(?:is|are|was|were|will|would|be|can|could|may|still"
    r"|transfers?|orders?|meetings?|deployments?|units?|then|that|day|you|they)){0,5}"
    r"\s(?:left|remain(?:s|ing)?|available|unused|be\s(?:sent|used|spent))\b"
)
LEFT_BEFORE = re.compile(
    r"\b(?:(?:left|remain(?:s|ing|der)?)(?!\s(?:of|from)\b)|leav(?:es|ing)|available|still\s(?:free|open|unused|send|has"
    r"|have|pay|use|transfer))\b[^.;,0-9]{0,30}$"
)

_DIFFERENCE_AFTER = re.compile(
    r"(?:\s[a-z]{1,12})?\s(?:(?:less|more|fewer)\sthan|cheaper|pricier|dearer|lower|higher|faster|slower|closer"
    r"|off\b|discount)"
)
_DIFFERENCE_BEFORE = re.compile(r"\bby\s[€$]?$")


def is_difference(low: str, item: Found) -> bool:
    """Whether a number says by how much two others differ ("2 euros less than", "cheaper by 2 euros")."""
    before = low[max(0, item.start - 6) : item.start]
    return bool(_DIFFERENCE_AFTER.match(low, item.end) or _DIFFERENCE_BEFORE.search(before))


def _is_label(low: str, item: Found, given: str) -> bool:
    """Whether a number names a thing ("room 12") or a year, and the request does not ask for just that."""
    before = low[max(0, item.start - 14) : item.start]
    if item.end - item.start == 4 and 1900 <= item.value <= 2100 and _YEAR_BEFORE.search(before):
        return True
    label = _LABEL.search(before)
    return label is not None and not (label["label"] and label["label"] in given)
