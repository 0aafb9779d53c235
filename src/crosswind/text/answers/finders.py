"""The claims of a text about an expected value, by kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from crosswind.text.answers.reading import AnswerText, Claim, Expected, Kind, claim_of, start_of
from crosswind.text.answers.request import COUNT_ASKED, EACH_ASKED, LEFT_ASKED, asks_for_one, condition_units, stem
from crosswind.text.values.names import LONGEST_NAME, id_places, name_places
from crosswind.text.values.numbers import CURRENCIES, CURRENCY, is_close
from crosswind.text.values.plain import Found, is_inside, plain_text
from crosswind.text.values.reading import TextValues, dates, moneys, number_of, times

_COMPOSITE = re.compile(
    r"(?<![0-9a-z.,])([0-9]{1,3})\s?(?:h|hrs?|hours?)[\s,]{0,2}(?:and\s)?([0-9]{1,2})\s?(?:m|mins?|minutes?)(?![a-z])"
)
_LABEL = re.compile(
    r"\b(?P<label>step|option|day|item|line|note|part|section|figure|table|stage|rank|room|gate|platform|track|seat"
    r"|terminal|floor|chapter|page|route|bus|tram|no\.|nr\.?|version|level|row|zone|leg|week|night|round|question"
    r"|phase|top|hotel|museum|place|hall)\s?$|#\s?$"
)
_SERIAL = re.compile(
    r"(?:\b(?!(?:the|a|total|final|exact|overall|correct|right|this|that|its|their"
    r"|and)\s)[a-z]{2,20}\s(?:number|no\.?|nr\.?)"
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
    r"|info|data|answer|way|access|later|earlier|further|other|and\b|or\b|it\b|there\b|i\b|you\b|that\b|the\b)(?=[a-z])"
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
    r"(?:\sof\s(?:it|the|its|their|that|this)(?:\s[a-z]+){0,3})?(?:\s(?:is|are|was|were|will|would|be|can"
    r"|could|may|still"
    r"|transfers?|orders?|meetings?|deployments?|units?|then|that|day|you|they)){0,5}"
    r"\s(?:left|remain(?:s|ing)?|available|unused|be\s(?:sent|used|spent))\b"
)
LEFT_BEFORE = re.compile(
    r"\b(?:(?:left|remain(?:s|ing|der)?)(?!\s(?:of|from)\b)|leav(?:es|ing)|available|still\s(?:free|open"
    r"|unused|send|has"
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


# ---------------------------------------------------------------- amounts


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


# ---------------------------------------------------------------- names, ids and choices

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


# ---------------------------------------------------------------- all kinds

_BY = re.compile(r"\b(?:by|since)\s(?:the\s|on\s|at\s)?$")


def _moment_claims(low: str, found: Iterable[Found], wanted: str) -> list[Claim]:
    """Dates or times as claims; those that only bound another ("by 14:00") are soft."""
    return [
        claim_of(item, item.value, item.value == wanted, bool(_BY.search(low[max(0, item.start - 20) : item.start])))
        for item in found
    ]


def _date_claims(reading: AnswerText, expected: Expected, given: AnswerText) -> list[Claim]:
    known = dates(str(expected.value)[:LONGEST_NAME])
    if not known:
        return []
    return _moment_claims(reading.low, reading.dates(int(known[0][:4])), known[0])


def _time_claims(reading: AnswerText, expected: Expected, given: AnswerText) -> list[Claim]:
    known = times(str(expected.value)[:LONGEST_NAME])
    return _moment_claims(reading.low, reading.times, known[0]) if known else []


FINDERS: dict[str, Callable[[AnswerText, Expected, AnswerText], list[Claim]]] = {
    "number": number_claims,
    "money": money_claims,
    "date": _date_claims,
    "time": _time_claims,
    "name": name_claims,
    "id": name_claims,
    "choice": name_claims,
}
