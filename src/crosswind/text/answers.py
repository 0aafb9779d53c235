"""Whether an answer in free text states the expected values.

The module is not a language model and does not understand a text: it finds the values that `text.values` reads,
applies the fixed rule below, and where the text leaves two readings open it prefers to say "not stated".  It does not
know what a number counts, whether a claim is true, or who "she" is beyond the name just before.

The rule of `states`
--------------------
A text states the expected values if it commits to each of them:

1.  *Presence.*  The value occurs in a form of its kind.  Names match regardless of case,
    accents, quotes, markup, hyphens and a leading "the" or title; ids regardless of case; both
    only as whole words, and the longest candidate wins ("Alda Nord" is no mention of "Alda" when
    both are candidates).  An amount is in euros, unless the value is a string with a currency or
    the request (`given`) names one other currency; where the text holds no amount at all a bare number
    serves, one labelled as a price ("price: 4", a column of prices) first, never one that measures
    something else ("4 stars", "rating 4", "4 theatres"); an amount in another currency never serves.
    A date without a year is read in the year of the expected one.  Numbers are equal up to rounding
    (1e-6) or `tolerance`; a percentage is its number (40% states 40, not 0.4); "1 hour 35 minutes" is
    95 (minutes) or 1.5833 (hours), never 35; no other units are converted or compared.
2.  *Claim.*  An occurrence counts only if it is claimed.  Not claimed are: what stands in a
    question or an if-clause; what is negated ("not 12", "isn't Alda", "12 is wrong", "rather
    than"); what is compared with ("than Brisa", "over Brisa", "followed by") or comes second
    ("then Brisa", "Brisa second"); what comes out worse in the sense that `given` asks for ("Brisa is
    dearer" if it asks for the cheaper; of two candidates the other one is then claimed); moments that
    held before ("Old: 11:00", "11:00 -> 11:45"); what was only looked at ("I compared Brisa and
    Cosmo"); operands and intermediate results ("12 + 15 = 27"); list numbers; the whole of a part
    ("3 of the 7", "4.3/5").
3.  *Soft claims* serve only if nothing firmer of the kind is claimed: for a number amounts and
    percentages (never if `given` asks for a count), numbers with the unit of a condition of `given`
    ("4 stars"), differences ("2 less than"), labels ("room 12") and years; for an amount differences
    and, unless asked for, prices per head; for dates and times bounds ("by 14:00").
4.  *Hedges.*  "about", "at least", "up to", "from", "12+", "after 14:00", ranges, "or", "either",
    "between", "maybe", "probably", "might be", "not sure whether" leave the value uncommitted.  "About 12"
    states 12 only if the expected value has a tolerance.  "I think it is 12" is a statement.
    For times and dates "from X to Y" is a statement of both ends, "between" only if both
    ends are expected.
5.  *Rivals.*  Other claimed values of the same kind are rivals: other numbers, amounts of the
    same currency, dates, times; for names, ids and choices the `others`; for ids also tokens of
    the same shape.  No rivals are: values that another expected value asks for; values that
    echo `given` (for names and ids only if `given` does not hold the expected one too, for
    choices never); approximations; names and times that the text dismisses ("Brisa is fully
    booked"); opening hours, unless asked for.
6.  *Commitment.*  Without rivals the value is committed.  With rivals the first of these cues
    that singles out one value decides:
    (a) the last "answer is / answer: / \\boxed", or a correction ("no wait, it's 13");
    (b) what is so "now"; what is "left", "remaining" or "still available", if `given` asks for that;
    (c) the words of `given`: "how many museums" - "3 museums"; "of which 4 have ..."; "how many
        unread mails" - "2 are unread"; "when does
        it close" - "closes at 17:00"; "moved from X to Y" is Y;
        of a price per head and a total the former if `given` asks what a ticket costs;
    (d) the last "so / therefore / total / that makes / which is / in total";
    (e) "=";
    (f) a comparison in the sense of `given` ("Alda costs less"), then a superlative or a choice ("the
        cheapest is", "I recommend"), that of `given` first; two superlatives for two values commit to
        neither;
    (g) emphasis (bold, code, quotes) if only one value has it;
    (h) the first sentence that holds a value, if it holds just one; else the last such sentence.
        What stands in parentheses or breaks a number down after a colon does not count here.
    Bullets, table rows and sentences of one pattern ("Alda costs 12. Brisa costs 15.") are a
    listing and commit to nothing.  Values coordinated by "and" or commas are singled out
    together or not at all.  A "maybe 15" beside the value can be overruled by (a) only.
7.  *Zero.*  "none", "no reviews", "not any", "nothing" are soft claims of the number 0, "free" of
    the amount 0; "but none ...", "none of which ..." and, if `given` asks what is left, "nothing is left"
    are firm ones.
8.  *Yes and no.*  The first of yes, yep, true, correct / no, nope, false, incorrect outside
    questions decides, an explicit "answer: no" before it; "not correct" is no; "yes and no",
    "maybe", "not sure" are neither.  A "no" before a noun ("no seats") is no answer.
9.  *Lists.*  All expected values must be stated, in any order.  But if names alternate with values
    (Alda, 12, Brisa, 15), the text must first mention names and values in matching order, so a
    swapped pair fails; if `given` asks for a start and an end, the text must not assign them the
    other way round.

An answer of more than `LONGEST` characters is judged by its beginning and its end; of more than `MOST_CLAIMS` values of
one kind the first and the last are weighed.  Thoughts before "</think>" are not part of an answer.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from operator import itemgetter
from typing import Any, Literal, NamedTuple

from crosswind.text.values import (
    CURRENCIES,
    CURRENCY,
    LONGEST_NAME,
    Found,
    TextValues,
    both_ends,
    dates,
    found_start,
    id_places,
    is_close,
    is_inside,
    lazy,
    moneys,
    name_places,
    number_of,
    plain_text,
    times,
)

__all__ = ["Expected", "states"]

LONGEST = 20_000
MOST_CLAIMS = 200

Kind = Literal["number", "money", "date", "time", "name", "id", "choice", "yesno"]


# --- readings -------------------------------------------------------------------------------

_BREAK = re.compile(r"[.!?]{1,8}[\"')\]*_`]{0,4}(?=\s|$)|;(?=\s|$)|\n+")
_NO_BREAK = re.compile(
    r"(?:\b(?:approx|ca|e\.g|i\.e|no|nr|st|dr|mr|mrs|ms|vs|incl|excl)|^\s*[#>*(-]{0,3}\s{0,4}[0-9]{1,3})$"
)
_HALF_DAY = re.compile(r"\b[ap]\.m$")
_EMPHASIS = re.compile(
    r"\*\*[^*\n]{1,160}\*\*|__[^_\n]{1,160}__|\*[^*\s][^*\n]{0,80}\*|`[^`\n]{1,80}`|\"[^\"\n]{1,80}\""
)
_PAREN = re.compile(r"[(\[][^()\[\]\n]{1,200}[)\]]")
_BULLET = re.compile(r"[ \t]{0,12}(?:[-*+>|–—]\s|\||[0-9]{1,3}[.)]\s|\(?[a-z0-9]\)\s|#{1,6}\s)")
_NUMBERING = re.compile(r"^[ \t]{0,12}(?:[-*+>#]{1,3}\s{0,3})?[*_]{0,2}\(?([0-9]{1,3})[.)](?=[\s*_])", re.MULTILINE)
_TABLE_LINE = re.compile(r"^[^|\n]{0,200}\|[^|\n]{0,200}\|[^\n]{0,1000}$", re.MULTILINE)


class _Sentence(NamedTuple):
    """A sentence or line of a text."""

    start: int
    end: int
    question: bool
    bullet: bool


_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z_]{0,20})\s?/?>")


def _untagged(text: str) -> str:
    """The text without tags; an answer tag becomes an answer cue, and thoughts are not part of the answer."""
    if "<" not in text:
        return text
    text = text[max(0, text.rfind("</think")) :]
    return _TAG.sub(lambda match: "\nanswer: " if match[2].lower() == "answer" and not match[1] else " ", text)


class _Reading(TextValues):
    """An answer: its values, and what its sentences and marks say about them."""

    def __init__(self, text: str) -> None:
        super().__init__(_untagged(both_ends(text, LONGEST)))

    @lazy
    def sentences(self) -> list[_Sentence]:
        return list(_sentences(self.plain, self.low))

    @lazy
    def _starts(self) -> list[int]:
        return [sentence.start for sentence in self.sentences]

    def sentence(self, at: int) -> int:
        """The index of the sentence that holds a place."""
        return max(0, bisect_right(self._starts, at) - 1)

    @lazy
    def emphasis(self) -> list[tuple[int, int]]:
        return [match.span() for match in _EMPHASIS.finditer(self.low)]

    @lazy
    def parens(self) -> list[tuple[int, int]]:
        return [match.span() for match in _PAREN.finditer(self.low)]

    @lazy
    def numbering(self) -> set[int]:
        """The places of list numbers; a single "12." at the start of a text is an answer, not a list."""
        found = [(match.start(1), match[1]) for match in _NUMBERING.finditer(self.low)]
        if len(found) == 1 and found[0][1] != "1":
            return set()
        return {start for start, _ in found}

    @lazy
    def _tables(self) -> list[tuple[int, int, list[str]]]:
        """The tables of a text, each with the cells of its first line."""
        found: list[tuple[int, int, list[str]]] = []
        for match in _TABLE_LINE.finditer(self.low):
            if found and found[-1][1] + 1 == match.start():
                found[-1] = (found[-1][0], match.end(), found[-1][2])
            else:
                found.append((*match.span(), match[0].split("|")))
        return found

    def column(self, at: int) -> str:
        """The head of the table column that holds a place, or nothing."""
        index = bisect_right(self._tables, at, key=itemgetter(0)) - 1
        if index < 0 or at >= self._tables[index][1]:
            return ""
        heads = self._tables[index][2]
        cell = self.low.count("|", max(0, self.low.rfind("\n", 0, at)), at)
        return heads[cell].strip() if cell < len(heads) else ""

    @lazy
    def quantities(self) -> set[float]:
        """The numbers and amounts, rounded so that equal ones can be looked up."""
        return {round(item.value, 6) for item in (*self.numbers, *self.moneys)}

    @lazy
    def operands(self) -> tuple[set[int], dict[float, int]]:
        """The places of operands, and the last place where each value is one."""
        return _operands(self.low, self.numbers)


def _sentences(plain: str, low: str) -> Iterator[_Sentence]:
    """The sentences of a text; every line ends one."""
    start = 0
    for match in _BREAK.finditer(low):
        if match[0][0] == ".":
            before = low[max(start, match.start() - 12) : match.start()]
            if _NO_BREAK.search(before):
                continue
            if _HALF_DAY.search(before) and not plain[match.end() : match.end() + 2].strip().isupper():
                continue
        yield _sentence(low, start, match.end(), "?" in match[0])
        start = match.end()
    if low[start:].strip() or start == 0:
        yield _sentence(low, start, len(low), False)


def _sentence(low: str, start: int, end: int, question: bool) -> _Sentence:
    line = start == 0 or low[start - 1] == "\n" or low[start : start + 1] == "\n"
    return _Sentence(start, end, question, line and bool(_BULLET.match(low, start)))


_OPERATOR = re.compile(
    r"\s?(?:[a-z]{1,12}(?:\s[a-z]{1,12})?\s?|€|\$|\))?\s?(?:\+|\*|×|x|÷|plus|minus|times|multiplied\sby|divided\sby)"
    r"\s?(?:€|\$|\(|eur\s)?\s?"
)
_MINUS = re.compile(r"\s?(?:[a-z]{1,12}\s|€|\$)?\s?[-–/:]\s?(?:€|\$)?\s?")
_EQUALS_AFTER = re.compile(r"[^\n=.;]{0,30}=")


def _operands(low: str, found: Sequence[Found]) -> tuple[set[int], dict[float, int]]:
    """The numbers that stand on either side of an operator."""
    places: set[int] = set()
    last: dict[float, int] = {}
    for left, right in pairwise(found):
        gap = low[left.end : right.start] if right.start - left.end < 40 else "."
        if _OPERATOR.fullmatch(gap) or (_MINUS.fullmatch(gap) and _EQUALS_AFTER.match(low, right.end)):
            for item in (left, right):
                places.add(item.start)
                last[item.value] = item.start
    return places, last


# --- expected values and claims -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Expected:
    """A value that an answer has to state, with the rivals that it must not claim instead."""

    kind: Kind
    value: Any
    others: tuple[str, ...] = ()
    tolerance: float = 0.0


class _Context(NamedTuple):
    """The text just before and after a claim, within its sentence and without markup."""

    before: str
    after: str


_NO_CONTEXT = _Context("", "")


@dataclass(frozen=True, slots=True)
class _Claim:
    """An occurrence of a value of the expected kind and what the text says about it."""

    start: int
    end: int
    value: Any
    match: bool
    soft: bool = False  # serves only if nothing firmer is there
    dropped: bool = False  # not claimed at all
    approximate: bool = False
    alternative: bool = False
    dismissed: bool = False  # spoken against, as far as rivals go
    words: bool = False  # a zero in words such as "none"
    better: bool = False  # what a comparison of the sense asked for is about
    context: _Context = _NO_CONTEXT


def _place(claim: _Claim) -> int:
    return claim.start


def _clipped(found: Found, value: Any, match: bool, soft: bool = False) -> _Claim:
    return _Claim(found.start, found.end, value, match, soft)


_COMPOSITE = re.compile(
    r"(?<![0-9a-z.,])([0-9]{1,3})\s?(?:h|hrs?|hours?)[\s,]{0,2}(?:and\s)?([0-9]{1,2})\s?(?:m|mins?|minutes?)(?![a-z])"
)
_LABEL = re.compile(
    r"\b(?P<label>step|option|day|item|line|note|part|section|figure|table|stage|rank|room|gate|platform|track|seat"
    r"|terminal|floor|chapter|page|route|bus|tram|no\.|nr\.?|version|level|row|zone|leg|week|night|round|question"
    r"|phase|top|hotel|museum|place|hall)\s?$|#\s?$"
)
# A request for a count: an amount, a percentage or the number of a thing ("review number 4") is none.
_COUNT_ASKED = re.compile(r"\b(?:how\smany|count(?:\sof)?|number\sof)\b(?!\spercent)")
_SERIAL = re.compile(
    r"(?:\b(?!(?:the|a|total|final|exact|overall|correct|right|this|that|its|their|and)\s)[a-z]{2,20}\s(?:number|no\.?|nr\.?)"
    r"|\b(?:review|prescription|reservation|appointment|booking|order|slot)(?:\s?#)?)\s?$|#\s?$"
)
_YEAR_BEFORE = re.compile(r"\b(?:in|since|year|by|until|during|of|summer|winter|spring|autumn|fall)\s$")


def _number_claims(reading: _Reading, expected: Expected, given: _Reading) -> list[_Claim]:
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
        claims.append(_Claim(start, end, wanted if fits else total, fits))
    amounts = [(item.start, item.end) for item in reading.moneys]
    counted = bool(_COUNT_ASKED.search(given.low)) and not CURRENCY.search(given.low)
    units = _condition_units(given.low) if counted else set()
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
            soft = _is_label(reading.low, item, given.low) or _is_difference(reading.low, item)
            unit = _UNIT_SAID.match(reading.low, item.end) if units and not soft else None
            soft = soft or (unit is not None and _stem(unit[1]) in units)
        claims.append(_clipped(item, item.value, is_close(item.value, wanted, expected.tolerance), soft))
    claims += _zero_claims(reading, expected.kind, wanted, given)
    claims.sort(key=_place)
    return claims


_UNIT_GIVEN = re.compile(r"[0-9](?:\s?or\s[a-z]{4,6})?\s([a-z]{3,12})")
_UNIT_SAID = re.compile(r"(?:\s(?:or|and|to)\s[0-9]{1,6})?[\s-]([a-z]{3,12})")


def _condition_units(given: str) -> set[str]:
    """The units of the numbers of a request ("4 stars or more") that are not what it asks to count."""
    return {_stem(match[1]) for match in _UNIT_GIVEN.finditer(given)} - _asked_words(given)


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


def _zero_claims(reading: _Reading, kind: Kind, wanted: float, given: _Reading) -> list[_Claim]:
    """The words that say that there are none or that it is free.

    They are firm only after "but" and in "none of which", and where they say that nothing is left if that is asked.
    """
    found = list(_NONE.finditer(reading.low))
    if kind == "money":
        found += _FREE.finditer(reading.low)
    left = bool(_LEFT_ASKED.search(given.low))
    claims = []
    for match in found:
        firm = (
            _BUT.search(reading.low, max(0, match.start() - 12), match.start())
            or _OF_WHICH.match(reading.low, match.end())
            or (left and _LEFT_AFTER.match(reading.low, match.end()))
        )
        claims.append(_Claim(match.start(), match.end(), 0.0, wanted == 0.0, soft=not firm, words=True))
    return claims


# What is left of something, in a request and beside a value.
_LEFT_ASKED = re.compile(r"\b(?:how\s(?:much|many)|what)\b[^.?!]{0,120}\b(?:left|remain(?:s|ing)?|still)\b(?!\sunread)")
_LEFT_AFTER = re.compile(
    r"(?:\sof\s(?:it|the|its|their|that|this)(?:\s[a-z]+){0,3})?(?:\s(?:is|are|was|were|will|would|be|can|could|may|still"
    r"|transfers?|orders?|meetings?|deployments?|units?|then|that|day|you|they)){0,5}"
    r"\s(?:left|remain(?:s|ing)?|available|unused|be\s(?:sent|used|spent))\b"
)
_LEFT_BEFORE = re.compile(
    r"\b(?:(?:left|remain(?:s|ing|der)?)(?!\s(?:of|from)\b)|leav(?:es|ing)|available|still\s(?:free|open|unused|send|has"
    r"|have|pay|use|transfer))\b[^.;,0-9]{0,30}$"
)

_DIFFERENCE_AFTER = re.compile(
    r"(?:\s[a-z]{1,12})?\s(?:(?:less|more|fewer)\sthan|cheaper|pricier|dearer|lower|higher|faster|slower|closer"
    r"|off\b|discount)"
)
_DIFFERENCE_BEFORE = re.compile(r"\bby\s[€$]?$")


def _is_difference(low: str, item: Found) -> bool:
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


def _currency(expected: Expected, given: _Reading) -> str:
    """The currency of an expected amount: its own, else the only one of the request, else euros."""
    if isinstance(expected.value, str):
        for item in TextValues(expected.value[:LONGEST_NAME]).moneys:
            return item.note or "EUR"
    named = {CURRENCIES.get(word) for word in CURRENCY.findall(given.low)}
    return str(named.pop()) if len(named) == 1 else "EUR"


def _money_claims(reading: _Reading, expected: Expected, given: _Reading) -> list[_Claim]:
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
    shared = bool(_EACH_ASKED.search(given.low)) or _asks_for_one(given.low)
    claims = [
        _clipped(
            item,
            item.value,
            is_close(item.value, wanted, expected.tolerance),
            _is_difference(reading.low, item) or (not shared and bool(_EACH.match(reading.low, item.end))),
        )
        for item in reading.moneys
        if item.note in ("", currency)
    ]
    claims += _zero_claims(reading, expected.kind, wanted, given)
    return sorted(claims, key=_place)


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


def _bare_amounts(reading: _Reading, expected: Expected, given: _Reading) -> list[_Claim]:
    """The numbers that may be amounts: those labelled as prices, else those that measure nothing else."""
    known = {item.start: item for item in reading.numbers}
    priced, bare = [], []
    for claim in _number_claims(reading, expected, given):
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
    return sorted([*priced, *(replace(claim, soft=claim.soft or bool(priced)) for claim in bare)], key=_place)


_ONE_ASKED = re.compile(
    r"\b(?:ticket\sprice|price\sof\s(?:a|one|the)|a\s(?:ticket|consultation|visit)|(?:what|how\smuch)\s(?:does|do|is|are)\b"
    r"|the\s(?:price|fee|cost)|what\sfee|which\sfee)"
)
_SUM_ASKED = re.compile(
    r"\b(?:together|total|sum|add\sup|altogether|in\sall|overall|(?:for|of)\s(?:[0-9]+|two|three|four|five|six|us|all)\b)"
)


def _asks_for_one(given: str) -> bool:
    """Whether a request asks what one ticket or visit costs."""
    return bool(_ONE_ASKED.search(given)) and not _SUM_ASKED.search(given)


_EACH = re.compile(r"\s?(?:\*\*\s?)?(?:/\s?|\(?(?:per|an?)\s|\(?each\b|apiece\b|pp\b)(?!total)")
_EACH_ASKED = re.compile(r"\b(?:each|apiece|per\s[a-z]+|a\s(?:person|night|day|ticket|head)|one\s[a-z]+)\b")
_BY = re.compile(r"\b(?:by|since)\s(?:the\s|on\s|at\s)?$")


def _moment_claims(low: str, found: Iterable[Found], wanted: str) -> list[_Claim]:
    """Dates or times as claims; those that only bound another ("by 14:00") are soft."""
    return [
        _clipped(
            item,
            item.value,
            item.value == wanted,
            bool(_BY.search(low[max(0, item.start - 20) : item.start])),
        )
        for item in found
    ]


def _date_claims(reading: _Reading, expected: Expected, given: _Reading) -> list[_Claim]:
    known = dates(str(expected.value)[:LONGEST_NAME])
    if not known:
        return []
    return _moment_claims(reading.low, reading.dates(int(known[0][:4])), known[0])


def _time_claims(reading: _Reading, expected: Expected, given: _Reading) -> list[_Claim]:
    known = times(str(expected.value)[:LONGEST_NAME])
    return _moment_claims(reading.low, reading.times, known[0]) if known else []


_LONE_AFTER = re.compile(r"\s*(?:[).,:;*_\"'\]!?–-]|$|(?:or|and|is|was|because|since)\b)")
_LONE_BEFORE = re.compile(r"(?:\b(?:option|answer|choice|is|pick|choose|or|and|be)|[:(,=])\s?[\"'*_(]{0,3}$")


def _lone_letter(reading: _Reading, letter: str) -> list[tuple[int, int]]:
    """The places of an option such as "B": case counts, and the article "A" is no option."""
    found = []
    for match in re.finditer(rf"(?<![\w']){re.escape(letter)}(?![\w'])", reading.plain):
        article = letter in "AI" and match.end() < len(reading.plain)
        before = reading.low[max(0, match.start() - 12) : match.start()]
        if not article or _LONE_AFTER.match(reading.low, match.end()) or _LONE_BEFORE.search(before):
            found.append(match.span())
    return found


def _places(reading: _Reading, name: str, kind: Kind) -> list[tuple[int, int]]:
    """The places where a candidate name, id or choice stands."""
    if kind == "id":
        return id_places(reading.low, name)
    if len(name) == 1 and name.isalpha():
        return _lone_letter(reading, name)
    return name_places(reading.low, name)


def _name_claims(reading: _Reading, expected: Expected, given: _Reading) -> list[_Claim]:
    """The mentions of the candidates; where one lies within another, the longer one stands."""
    wanted = str(expected.value)
    rivals = [other for other in expected.others if plain_text(other).lower() != plain_text(wanted).lower()]
    if expected.kind == "id":
        rivals += _alike(reading, wanted)
    found = [(start, end, wanted) for start, end in _places(reading, wanted, expected.kind)]
    for rival in dict.fromkeys(rivals):
        found += ((start, end, rival) for start, end in _places(reading, rival, expected.kind))
    found.sort(key=lambda item: (item[0], -item[1], item[2] != wanted))
    claims: list[_Claim] = []
    for start, end, name in found:
        if not claims or start >= claims[-1].end:
            claims.append(_Claim(start, end, name, name == wanted))
    return claims


def _shape(token: str) -> tuple[str, int, tuple[int, ...]]:
    """What ids of one series share: the first letter, the length and the places of separators."""
    return token[0].lower(), len(token), tuple(at for at, char in enumerate(token) if char in "-_")


def _alike(reading: _Reading, wanted: str) -> list[str]:
    """The ids in a text that have the shape of the expected one."""
    if not wanted:
        return []
    shape = _shape(wanted)
    return [item.value for item in reading.ids if item.value.lower() != wanted.lower() and _shape(item.value) == shape]


_FINDERS: dict[str, Callable[[_Reading, Expected, _Reading], list[_Claim]]] = {
    "number": _number_claims,
    "money": _money_claims,
    "date": _date_claims,
    "time": _time_claims,
    "name": _name_claims,
    "id": _name_claims,
    "choice": _name_claims,
}
_NAMED = ("name", "id", "choice")


# --- comparisons ----------------------------------------------------------------------------

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


class _Comparison(NamedTuple):
    """Where the claims stand that a text calls the better or the worse ones in the sense of the request."""

    better: frozenset[int] = frozenset()
    worse: frozenset[int] = frozenset()
    unnamed: frozenset[int] = frozenset()  # worse than something that the text leaves unnamed
    lost: frozenset[str] = frozenset()  # the names that only come out worse, wherever they stand


_NO_COMPARISON = _Comparison()


def _asked_senses(given: str) -> tuple[re.Pattern[str], re.Pattern[str]] | None:
    """The patterns of the sense that a request asks for and of its opposite; None if it asks for none or both."""
    found = []
    for little, much in _SENSES:
        for asked, opposite in ((little, much), (much, little)):
            if any(not _SENSE_OF_RANK.match(given, match.end() + 1) for match in asked.finditer(given)):
                found.append((asked, opposite))
    return found[0] if len(found) == 1 else None


def _compared(reading: _Reading, claims: Sequence[_Claim], two: bool, given: str) -> _Comparison:
    """What the comparatives and superlatives of a text say about the claimed names, of which there may be two."""
    senses = _asked_senses(given) if claims else None
    if senses is None:
        return _NO_COMPARISON
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
    return _Comparison(frozenset(better - worse), frozenset(worse), frozenset(unnamed), frozenset(lost))


def _marked(low: str, claims: Sequence[_Claim]) -> str:
    """The text with each claimed name overwritten by "<<<>" or the like, same length."""
    pieces: list[str] = []
    at = 0
    for claim in claims:
        pieces += (low[at : claim.start].replace("<", " ").replace(">", " "), "<" * (claim.end - claim.start - 1), ">")
        at = claim.end
    pieces.append(low[at:].replace("<", " ").replace(">", " "))
    return "".join(pieces).replace("<'s", "<  ").replace(">'s", ">  ")


def _compared_one(marked: str, claims: Sequence[_Claim], floor: int, start: int, end: int) -> int | None:
    """Where the claim stands that a comparative between `start` and `end` is about."""
    floor = max(floor, start - 300)
    after = _THE_ONE.match(marked, end) if marked[max(0, start - 4) : start] == "the " else None
    if after:
        return after.end()
    index = bisect_left(claims, start, key=_place)
    breaks = [match.end() for match in _CLAUSE.finditer(marked, floor, start)]
    lowest = max([floor, *breaks])
    for claim in reversed(claims[max(0, index - 4) : index]):
        if claim.start < lowest:
            break
        if not _COMPARED.search(marked, max(lowest, claim.start - 40), claim.start):
            return claim.start
    after = _AT.match(marked, end)
    if after:
        return after.end()
    if index and _IT.search(marked, max(0, lowest - 2, start - 40), start):
        return claims[index - 1].start
    return None


# --- what the text says about a claim -------------------------------------------------------

_FILLER = (
    r"(?:\s(?:the|a|an|at|on|in|by|be|is|it|it's|its|for|to|exactly|just|really|actually|called|named|hotel"
    r"|museum|place"
    r"|room|option|take|choose|pick|book|recommend|go|with|use|visit|cost|costs|take|takes|as|of|total|even|only"
    r"|say|before|after|until)){0,4}\s?$"
)
_NEGATED = re.compile(
    r"(?:\b(?:not(?!\sonly)|never|neither|nor|rather\sthan|instead\sof|unlike|except(?:\sfor)?|excluding"
    r"|no\slonger|avoid"
    r"|other\sthan|apart\sfrom|aside\sfrom|besides|ruled\sout|rejected|skipped|wrongly|cannot)|n't)" + _FILLER
)
_DOUBTED = re.compile(
    r"\b(?:not\ssure|unsure|not\scertain|uncertain|no\sidea|whether|if|unless|assuming|suppose|supposing|unable\sto"
    r"|(?:do\snot|don't|didn't|did\snot|cannot|can't|could\snot|couldn't)\s(?:think|believe|know|say|tell|confirm"
    r"|determine"
    r"|verify|find))\b[^,;:]{0,60}$"
)
_COMPARED = re.compile(
    r"\b(?:than|compared\s(?:to|with)|versus|vs\.?|unlike)(?![a-z])"
    r"(?:(?!\b(?:and|but|so|is|are|costs?|at|with|for|which|or)\b)[^,;.]){0,40}$"
)
_BEATEN = re.compile(
    r"(?:\b(?:over|ahead\sof|before|beats?|beating|outranks|undercuts?|outscores?|edges\sout|outperforms?"
    r"|surpasses|followed\s(?:closely\s)?by|against|next\sto|near|behind"
    r"|replaces|replacing|replaced|cancell?ed|formerly|previously)|\b(?:against|vs\.?|versus"
    r"|to)\s[0-9.]{1,6}\sfor)(?:\s(?:the|hotel|museum)){0,2}\s?$"
)
_NARRATED = re.compile(
    r"\b(?:looked\s(?:at|up)|looking\s(?:at|up)|check(?:ed|ing)|search(?:ed|ing)|compar(?:ed|ing)|consider(?:ed|ing)"
    r"|(?:first|initially|originally|previously)\s(?:thought|said|assumed|counted|found)|went\sthrough|going\sthrough"
    r"|(?:asked|asking)\s(?:for|about)|review(?:ed|ing))\b"
    r"(?:(?!\b(?:and|so|but|that|is|it|found|was|for|on|in|from)\b)[^,.;:]){0,50}$"
)
_APPROXIMATE = re.compile(
    r"(?:\b(?:about|around|approximately|approx\.?|roughly|circa|ca\.?|nearly|almost|close\sto|at\s(?:least|most)"
    r"|up\sto"
    r"|over|under|above|below|as\s(?:much|many|few|little)\sas|upwards\sof|exceeds|starting\s(?:at|from)|minimum\sof"
    r"|maximum\sof|(?:min|max)\.?|some|estimated?(?:\s(?:at|to\sbe))?|shortly\s(?:after|before)|just\s(?:after"
    r"|before|under|over))"
    r"(?:\s(?:a|the|total|of)){0,3}|[~≈<>≥≤])\s?$"
)
_BOUND = re.compile(r"\b(?:after|before|(?:later|earlier)\sthan|prior\sto)(?:\s(?:the|on|at))?\s?$")
_FROM = re.compile(r"\bfrom\s?$")
# What held before: "Old: 11:00", "originally at 11:00", "(was 11:00)".
_OLD = re.compile(
    r"(?:\b(?P<word>old|previous|former|original|used\sto\sbe|prior)(?:ly)?\b"
    r"(?:(?!\b(?:and|but|to|is|now|for|booked|moved)\b)[^.;,\n]){0,30}|\(was(?:\s(?:at|on))?|\bbefore:)\s?$"
)
_HOURS_ASKED = re.compile(r"\b(?:open|opens|opening\s(?:time|hour)s?|close|closes|closing)\b")
_ARROW = re.compile(r"-{1,2}>|=>|[→⇒➔➜⟶]")
_HOURS = re.compile(r"\b(?:opens?|opened|closes?|(?:opening|closing)\s(?:time|hour)s?)\b[^.;,\n0-9]{0,25}$")
_MAYBE = re.compile(
    r"\b(?:maybe|perhaps|possibly|probably|presumably|likely|potentially|might|may|could|either|between|guess(?:ing)?"
    r"|alternatively|or)(?:\s(?:be|have|cost|costs|take|takes|it|it's|is|its|on|at|the|a|by|as|in|about|around"
    r"|even|maybe"
    r"|perhaps|also|hotel|museum|open|opens|leave|leaves|well|something|somewhere|like)){0,3}\s?$"
)
_TAIL_HEDGE = re.compile(
    r"(?:\+(?!\s?[0-9(€$])|-?ish\b|\s?(?:euros?|minutes?|hours?|[a-z]{1,12})?,?\s(?:or\s(?:so|more|less|fewer"
    r"|under|over|later"
    r"|earlier|thereabouts)|at\s(?:least|most)(?=\s?(?:[.,;:!)]|$))|give\sor\stake|approximately|approx|roughly)\b)"
)
_TAIL_DOUBT = re.compile(
    r"[^.;!?\n]{0,15}?(?:\b(?:i\sguess|perhaps|maybe|probably|possibly)\b"
    r"|(?:\bi'm|\bi\sam|\bam)\snot\s(?:sure|certain)|\b(?:could\snot|couldn't|can't|cannot)\s(?:confirm|verify)"
    r"|\bunsure"
    r"|\bthere\s(?:may|might|could)\sbe\s(?:more|fewer|others))|\s(?:might|may|could)\sbe\b|\sis\s(?:probably"
    r"|possibly|perhaps|likely)\b"
)
_REFUTED = re.compile(
    r"(?:'s)?\s(?:is|was|are|were|would\sbe|seems)?\s?(?:not\b|wrong\b|incorrect\b|false\b|ruled\sout)|\s(?:isn't"
    r"|wasn't|aren't|weren't"
    r"|can't\sbe|cannot\sbe|won't|wouldn't)\b"
)
_DISMISSED = re.compile(
    r"(?:(?!\b(?:and|but|while)\b)[^.;,]){0,20}?\b(?:is|are|was|were|looks|seems|costs?|has|have|asks?|charges?"
    r"|would\sbe)\s"
    r"(?:already\s|also\s|currently\s|completely\s|both\s|all\s|slightly\s|much\s|a\sbit\s|far\s|even\s|the\s)?"
    r"(?P<word>fully\sbooked|full|closed|sold\sout|unavailable|too\s[a-z]+|more|pricier|dearer|slower|farther"
    r"|further|worse"
    r"|cancelled|excluded|not|no|later|higher|second|third|next)\b|\s(?:does\snot|do\snot|doesn't|don't|cannot"
    r"|can't|did\snot)\b"
)
_WHOLE = re.compile(
    r"(?:\bout\sof(?:\s(?:the|a\spossible))?|\bof\s(?:the|those|these|all|its|their|our|your|her|his|my)|\bamong(?:\s(?:the"
    r"|all|those))?"
    r"|\bfrom\samong|[0-9]\sof|%\sof|^\W*of|\bscale\sof"
    r"|(?:^\W*(?:out\s)?|\b(?:left|remains?)\s)of\s(?:the|its|their|your|an?)(?:\s[a-z]+){1,3}\sof)(?:\s(?:total|top|available|only|all)){0,2}\s?$"
)
_SLASHED = re.compile(r"[0-9]\s?/\s?$")
_RANGE = re.compile(r"\s?(?:[a-z€$]{1,8}\s?)?(?:-|–|—|to|through)\s?(?:€|\$)?\s?")
_BETWEEN = re.compile(r"\bbetween\s(?:the\s)?$")
_STRICTLY = re.compile(r"\s?(?:,|,?\s?(?:and|&|as\swell\sas|plus))\s?(?:the\s|also\s|hotel\s|museum\s|on\s|at\s)?")
_ALTERNATIVE = re.compile(
    r"[^.;:!?\n]{0,25}?(?:\bor|\balternatively|\bversus|\bvs\.?)\s(?:(?:maybe|perhaps|possibly|even|the|at|on"
    r"|about|around|a"
    r"|just|up|to|as|much|else|hotel|by)\s){0,3}"
)
_AMONG = re.compile(r"\b(?:among|amongst|between|out\sof)(?:\s(?:the|hotels?|museums?)){0,2}\s?$")
_CONCEDED = re.compile(r"^\W*(?:while|although|though|even\sthough|despite|whereas)\b[^,;.]*$")
_ASIDE = re.compile(r"\s?\([^()]{0,60}\)")
_MARKUP = str.maketrans("", "", "*`")
_OPENERS = " \t\"'_([{€$£~"


def _context(reading: _Reading, start: int, end: int, previous: int) -> _Context:
    """The context of a span; what comes before ends at the previous claim."""
    sentence = reading.sentences[reading.sentence(start)]
    before = reading.low[max(sentence.start, previous, start - 90) : start].translate(_MARKUP)
    after = reading.low[end : min(max(sentence.end, end), end + 60)].translate(_MARKUP)
    tilde = "~" if before.rstrip(" (*€$").endswith("~") else ""
    before = before.rstrip(_OPENERS)
    before = before[:-4] if before.endswith(" eur") else before
    return _Context(before.replace("\n", " ") + tilde, after.lstrip("\"'_").rstrip("\n"))


def _judged(
    reading: _Reading, claims: list[_Claim], expected: Expected, allies: Sequence[Expected], given: str
) -> list[_Claim]:
    """The claims with everything that the text says about each."""
    judged: list[_Claim] = []
    ranged = expected.kind in ("date", "time") and any(ally.kind == expected.kind for ally in allies)
    ranked = expected.kind in _NAMED and not any(ally.kind in _NAMED for ally in allies) and not _ORDER.search(given)
    comparison = _compared(reading, claims, len(expected.others) == 1, given) if ranked else _NO_COMPARISON
    named = expected.kind in _NAMED
    timed = expected.kind == "time"
    slots = timed and not _HOURS_ASKED.search(given)
    for index, claim in enumerate(claims):
        previous = claims[index - 1].end if index else 0
        context = _context(reading, claim.start, claim.end, previous)
        judged.append(
            replace(
                claim,
                context=context,
                dropped=_is_dropped(reading, claim, context, expected.kind, given, comparison)
                or (ranked and _is_later(reading, claim, context, previous)),
                better=claim.start in comparison.better,
                approximate=not named and _is_approximate(context, expected),
                alternative=_is_alternative(context, ranged),
                dismissed=bool(_CONCEDED.search(context.before))
                or ((named or timed) and _is_dismissed(context, given))
                or (slots and bool(_HOURS.search(context.before))),
            )
        )
    _join(reading.low, judged, expected.kind, ranged)
    judged = [replace(claim, dropped=True) if claim.value in comparison.lost else claim for claim in judged]
    if comparison.unnamed and len(expected.others) == 1 and not any(claim.match for claim in claims):
        # "Kairo is more expensive" names the other of two.
        judged += [replace(claim, match=True, dropped=False) for claim in judged if claim.start in comparison.unnamed]
    return judged


_ORDER = re.compile(r"\b(?:second|third|then|next|order|rank)\b")
_LATER_BEFORE = re.compile(
    r"(?:[,;]\s?(?:and\s)?(?:then|next|second|third|lastly|finally|after\s(?:that|which|him|her|it))|\b(?:2nd|3rd|[4-9]th))"
    r"(?:\s(?:comes|is|by|would\sbe|place))?[:,]?\s?$"
)
_LATER_AFTER = re.compile(
    r"(?:\s\([^()]{0,60}\))?\s(?:comes\s|is\s|would\sbe\s|follows\s)?(?:in\s)?(?:second|third|fourth|next|last)"
    r"(?=\s?(?:[.,;!)]|$|and\b|place\b))"
)


def _is_later(reading: _Reading, claim: _Claim, context: _Context, previous: int) -> bool:
    """Whether a name comes only after another in the order that a sentence gives."""
    if not previous or reading.sentence(previous - 1) != reading.sentence(claim.start):
        return False
    return bool(_LATER_BEFORE.search(context.before) or _LATER_AFTER.match(context.after))


def _is_dropped(
    reading: _Reading, claim: _Claim, context: _Context, kind: Kind, given: str, comparison: _Comparison
) -> bool:
    """Whether an occurrence is not claimed: asked, negated, compared with, looked at, an operand, a whole."""
    before = context.before
    if reading.sentences[reading.sentence(claim.start)].question:
        return True
    if _NEGATED.search(before) or _DOUBTED.search(before) or _NARRATED.search(before):
        return True
    if claim.start in comparison.worse or (_COMPARED.search(before) and claim.start not in comparison.better):
        return True
    if _REFUTED.match(context.after):
        return True
    if kind in _NAMED:
        return bool(_BEATEN.search(before) or _AMONG.search(before))
    if kind in ("number", "money"):
        return _is_part(reading, claim, context)
    old = _OLD.search(before)
    return old is not None and (old["word"] or "was at") not in given


def _is_part(reading: _Reading, claim: _Claim, context: _Context) -> bool:
    """Whether a number is a list number, an operand, an intermediate result or the whole of a part."""
    if claim.start in reading.numbering or _WHOLE.search(context.before):
        return True
    places, last = reading.operands
    first = bisect_left(reading.numbers, claim.start, key=found_start)
    covered = takewhile(lambda item: item.start < claim.end, reading.numbers[first : first + 4])
    if any(item.start in places or last.get(item.value, -1) > item.start for item in covered):
        return True
    before = reading.low[max(0, claim.start - 6) : claim.start]
    return bool(_SLASHED.search(before)) and not _EQUALS_AFTER.match(reading.low, claim.end)


def _is_approximate(context: _Context, expected: Expected) -> bool:
    """Whether a number, amount, date or time is only bounded or estimated."""
    if expected.tolerance > 0:
        return False
    if _APPROXIMATE.search(context.before) or _TAIL_HEDGE.match(context.after):
        return True
    if expected.kind in ("number", "money"):
        return bool(_FROM.search(context.before))
    return bool(_BOUND.search(context.before))


def _is_alternative(context: _Context, ranged: bool) -> bool:
    """Whether a value is one of several possibilities or in doubt."""
    if ranged and _BETWEEN.search(context.before + " "):
        return False
    return bool(_MAYBE.search(context.before) or _TAIL_DOUBT.match(context.after))


def _is_dismissed(context: _Context, given: str) -> bool:
    """Whether a text speaks against a named thing, in words that the request did not ask for."""
    found = _DISMISSED.match(context.after)
    if found is None:
        return False
    word = found["word"] or "not"
    return word not in given and not (word == "not" and "n't" in given)


def _gap(low: str, left: _Claim, right: _Claim) -> str:
    """What stands between two claims, without markup and asides; a dot if they are far apart."""
    if right.start - left.end > 80:
        return "."
    return _ASIDE.sub("", low[left.end : right.start].translate(_MARKUP))


def _links(low: str, claims: Sequence[_Claim]) -> list[bool]:
    """For each claim whether it is coordinated with the one before; after "and" a comma starts anew."""
    links, closed = [False], False
    for left, right in pairwise(claims):
        gap = _gap(low, left, right)
        linked = bool(_STRICTLY.fullmatch(gap.strip("\"'_"))) and not (closed and gap.strip() == ",")
        closed = linked and gap.strip() != ","
        links.append(linked)
    return links


def _join(low: str, claims: list[_Claim], kind: Kind, ranged: bool) -> None:
    """Spread what is said of one claim to those it is joined with, in place."""
    links = _links(low, claims)
    for index in range(1, len(claims)):
        left, right = claims[index - 1], claims[index]
        if left.value == right.value and left.match == right.match:
            continue
        gap = _gap(low, left, right)
        if kind in ("date", "time") and not ranged and len(gap) < 40 and "\n" not in gap and _ARROW.search(gap):
            claims[index - 1] = replace(left, dropped=True)
        elif kind in ("number", "money") and _RANGE.fullmatch(gap):
            claims[index - 1], claims[index] = replace(left, approximate=True), replace(right, approximate=True)
        elif _ALTERNATIVE.fullmatch(gap.rstrip("\"'_([€$")) or (kind in _NAMED and gap.strip() == "/"):
            _join_alternatives(low, claims, index)
        elif links[index]:
            between = left.alternative and bool(_BETWEEN.search(low[max(0, left.start - 12) : left.start]))
            dropped = left.dropped and (kind in _NAMED or "," not in gap)
            claims[index] = replace(right, dropped=right.dropped or dropped, alternative=right.alternative or between)
    for index in range(len(claims) - 1, 0, -1):
        if claims[index].dismissed and links[index]:
            claims[index - 1] = replace(claims[index - 1], dismissed=True)


def _join_alternatives(low: str, claims: list[_Claim], index: int) -> None:
    """Mark two claims joined by "or", and those listed before them, as alternatives or as negated alike."""
    left, right = claims[index - 1], claims[index]
    if left.dropped:
        claims[index] = replace(right, dropped=True)
        return
    claims[index - 1], claims[index] = replace(left, alternative=True), replace(right, alternative=True)
    for at in range(index - 1, 0, -1):
        if low[claims[at - 1].end : claims[at].start].strip(" *_") != ",":
            break
        claims[at - 1] = replace(claims[at - 1], alternative=True)


# --- which claim the text commits to --------------------------------------------------------

_ANSWER = re.compile(
    r"\b(?:final\s(?:answer|result)|answer|result|solution|conclusion|my\s(?:pick|choice|recommendation))"
    r"[\"'*_`\s]{0,6}(?:\bis\b|\bare\b|=|:|–|—|\bwould\sbe\b|\bshould\sbe\b|\bremains\b)|\\boxed\{"
    r"|\b(?:correction|no,?\swait|wait,|scratch\sthat|oops|on\ssecond\sthought|i\swas\swrong|let\sme\scorrect"
    r"|(?:a|my)\smistake)\b"
)
_CONCLUSION = re.compile(
    r"\b(?:so(?!\s(?:that|far|many|much|long))|therefore|thus|hence|consequently|overall|altogether|in\stotal|in\sall"
    r"|total(?:s(?!:)|ling)?|sums?|(?:that|which)\s(?:makes|gives|leaves|means)|makes|making|giving|comes?\sto"
    r"|amounts?\sto"
    r"|adds?\sup\sto|equals|leaving|in\sshort|actually)\b"
)
_WHICH_IS = re.compile(r"(?:\b(?:which|that)\s(?:is|are|equals)|\bi\.e\.,?|\bnamely|\bin\sother\swords,?|\bmake)\s?$")
_BUT_ONLY = re.compile(r"\bbut\s(?:only\s)?(?:the\s)?(?:one\sat\s)?$|\bbut\sonly$")
_HAS = re.compile(r"\s(?:one\s|slot\s)?(?:has|have|fits|works|can|offers)\b")
_TOTAL_AFTER = re.compile(
    r"(?:\s[a-z]+){0,2}\s?\(?(?:in\s(?:total|all|sum)|altogether|overall|total|all\s(?:together|in|told)|combined)\b"
)
_SUPERLATIVE = re.compile(
    r"(?<!second\s)(?<!third\s)(?<!next\s)\b(?:cheapest|earliest|latest|best|closest|nearest|fastest|quickest"
    r"|shortest|longest"
    r"|highest|lowest|largest|biggest|smallest|oldest|newest|soonest|worst|(?:most|least)\s[a-z]+|winner|wins|right"
    r"|correct|recommend(?:ed|ation)?|suggest"
    r"|pick(?:ed)?|choice|choose|chose|chosen|opt(?:ed)?\sfor|select(?:ed)?|cheaper|closer|faster|better|booked"
    r"|reserved"
    r"|should\s(?:take|stay|visit|go|choose|book|pick|use)|take|beats|first|last|next"
    r"|lower|higher|greater|shorter|quicker|earlier|later|larger|smaller|bigger|longer)\b"
)
# These single out a value only where the request asks in these words.
_ASKED_ONLY = frozenset("lower higher greater shorter quicker earlier later larger smaller bigger longer".split())
_SUPERLATIVE_AFTER = re.compile(
    r"(?:'s)?(?:\s\([^)]{0,60}\))?(?:\s(?:is|are|was|were|has|have|offers|would\sbe|comes\sout|remains|being"
    r"|clearly|then|also"
    r"|by\sfar|as|therefore|thus|the|still|just|indeed|hotel|museum|one|option|with|a|your|my|our)){0,5}"
    r"\s(?:cheapest|earliest|latest|best|closest|nearest|fastest|quickest|shortest|longest|highest|lowest|largest"
    r"|biggest"
    r"|smallest|oldest|newest|soonest|worst|(?:most|least)\s[a-z]+|winner|wins|right|correct|recommended|cheaper|closer"
    r"|faster|better"
    r"|beats|answer|lower|higher|greater|shorter|quicker|earlier|later|larger|smaller|bigger|longer)\b"
)
_PRONOUN = re.compile(
    r"(?:\b(?:she|he|it|they|this|that|which|one|and)\s(?:is|are|was|has|have|offers|would\sbe)"
    r"|\bmaking\s(?:it|them|her|him|this))(?:\s(?:the|a|also|clearly|thus|therefore)){0,3}\s?$"
)
_COPULA = re.compile(
    r"(?:\b(?:is|are|=|was|makes?|be|equals|costs?|to|at|of|pay|says)|[:=])(?:\s(?:the|hotel|only|just|then))?\s?$"
)
_CLAUSE_END = re.compile(r"[;\n]|\.(?=\s|$)|,?\s(?:but|while|whereas|although|though|compared)\b")
_NEXT_PHRASE = re.compile(r",|\band\b")
_STRICT = re.compile(r"est\b|\bmost\b|\bleast\b|\bwinner\b")
_EQUALS = re.compile(r"=\s?$")
_BREAKDOWN = re.compile(r"[^,;.:\n]{0,40}:\s")


def _distinct(claims: Iterable[_Claim]) -> set[Any]:
    """The values of claims, all matching ones as one."""
    return {"expected" if claim.match else (claim.value,) for claim in claims}


def _grouped(low: str, claims: list[_Claim], chosen: list[_Claim]) -> list[_Claim]:
    """The chosen claims with those coordinated with them."""
    starts = {claim.start for claim in chosen}
    result = list(chosen)
    for (left, right), linked in zip(pairwise(claims), _links(low, claims)[1:], strict=True):
        if linked and (left.start in starts) != (right.start in starts):
            result.append(right if left.start in starts else left)
            starts.add(result[-1].start)
    return result


@dataclass(slots=True)
class _Trial:
    """The claims that compete in a text, and the request that they answer."""

    reading: _Reading
    claims: list[_Claim]
    kind: Kind
    given: _Reading

    def single(self, chosen: list[_Claim]) -> bool | None:
        """Whether the chosen claims single out the expected value; None if they single out none."""
        if not chosen:
            return None
        values = _distinct(_grouped(self.reading.low, self.claims, chosen))
        return values == {"expected"} if len(values) == 1 else None

    def outside(self, claims: list[_Claim]) -> list[_Claim]:
        """The claims that are not asides in parentheses, or all of them if all are."""
        claims = [claim for claim in claims if not is_inside(claim.start, self.reading.parens)] or claims
        if self.kind in ("number", "money") and len(claims) > 1:
            # "14 sessions: 5 on Friday, 9 on Saturday" is one value and its breakdown.
            head = _BREAKDOWN.match(self.reading.low, claims[0].end, claims[1].start)
            end = self.reading.sentences[self.reading.sentence(claims[1].start)].end
            first = bisect_left(self.reading.numbers, claims[1].start, key=found_start)
            parts = [item for item in self.reading.numbers[first : first + 2] if item.start < end]
            return claims[:1] if head and len(parts) == 2 else claims
        return claims

    def between(self, start: int, end: int) -> list[_Claim]:
        return [claim for claim in self.claims if start <= claim.start < end]

    def best(self, claims: list[_Claim]) -> list[_Claim]:
        """Of the claims after a cue, all if they agree, else those outside parentheses, else those after a copula."""
        for chosen in (claims, self.outside(claims)):
            if len(_distinct(chosen)) == 1:
                return chosen
        copula = [claim for claim in self.outside(claims) if _COPULA.search(claim.context.before)]
        return copula if len(_distinct(copula)) == 1 else []


def _by_answer(trial: _Trial) -> bool | None:
    """The last explicit answer decides."""
    verdict = None
    for match in _ANSWER.finditer(trial.reading.low):
        later = [claim for claim in trial.claims if match.end() <= claim.start < match.end() + 100]
        if later:
            sentence = trial.reading.sentences[trial.reading.sentence(later[0].start)]
            chosen = trial.best(trial.between(later[0].start, sentence.end)) or later[:1]
            verdict = trial.single(chosen) is True
    return verdict


_START_ASKED = re.compile(
    r"\b(?:open|opens|opening|start|starts|begin|begins|depart|departs|departure|leave|leaves|check-?\s?in|board)\b"
)
_END_ASKED = re.compile(
    r"\b(?:close|closes|closing|end|ends|finish|finishes|arrive|arrives|arrival|check-?\s?out|until|return)\b"
)
_ROLE = re.compile(
    r"\b(?:(?P<start>open(?:s|ed|ing)?|start(?:s|ing)?|begin(?:s|ning)?|depart(?:s|ure|ing)?|leav(?:es?|ing)|from"
    r"|check-?\s?in"
    r"|boards?|boarding)|(?P<end>clos(?:es?|ing)|end(?:s|ing)?|finish(?:es)?|arriv(?:es?|al|ing)|until|till|to"
    r"|check-?\s?out"
    r"|returns?|back|reach(?:es)?))\b"
)
_MOVED = re.compile(r"\b(?:moved|changed|rescheduled|postponed|shifted|transferred|switched|brought\sforward)\b")
_WHEN = re.compile(r"\bwhen\b|\bwhat\stime\b|\bwhich\s(?:date|day|time|slot)\b|\bearliest\b")
_DASH = re.compile(r"\s?(?:-|–|—|to|until|till)\s?")


def _roles(reading: _Reading, claims: list[_Claim]) -> list[str]:
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


def _asked_roles(given: str) -> list[str]:
    """The roles that a request asks for, in its order."""
    start, end = _START_ASKED.search(given), _END_ASKED.search(given)
    found = [(match.start(), name) for match, name in ((start, "start"), (end, "end")) if match]
    return [name for _, name in sorted(found)]


_ASKED = re.compile(
    r"\b(?:how\smany|number\sof|count\sof|what(?:\sis|'s|\swas)\sthe)((?:\s(?!are\b|is\b|do\b|does\b|did\b|can\b"
    r"|will\b|have\b|has\b"
    r"|in\b|at\b|of\b|on\b|for\b|with\b|that\b|there\b|i\b|we\b|you\b|would\b|should\b|to\b"
    r"|from\b)[a-z-]{2,20}){1,4})"
)
_UNITS_ASKED = (
    (re.compile(r"\bhow\slong\b"), ("minute", "min", "hour", "h", "day", "night", "week")),
    (re.compile(r"\bhow\sfar\b"), ("km", "kilometer", "kilometre", "mile", "m", "meter", "metre")),
    (re.compile(r"\bhow\s(?:hot|warm|cold)\b|\btemperature\b"), ("c", "celsius", "degree", "f", "fahrenheit")),
    (re.compile(r"\brat(?:ing|ed)\b"), ("star",)),
)
_LETTERS = re.compile(r"[a-z]+")


def _stem(word: str) -> str:
    """A word without its plural ending."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and len(word) > 3 else word


def _asked_words(given: str) -> set[str]:
    """The things whose number a request asks for."""
    found = {_stem(match[1].split()[-1]) for match in _ASKED.finditer(given)}
    for pattern, units in _UNITS_ASKED:
        if pattern.search(given):
            found.update(units)
    return found


_STATE_ASKED = re.compile(r"\bhow\smany\b[^.?!]{0,120}?\b(?:is|are|was|were)\s(?:still\s)?([a-z-]{3,20})")
_IS_SO = re.compile(
    r"(?:\sof\s(?:them|these|those|which|the[a-z]{0,3}|her|his|its))?(?:\s[0-9]{1,4})?(?:\s(?!and\b|or\b|is\b|are\b)[a-z]{1,12}){0,2}"
    r"\s(?:is|are|was|were)\s(?:still\s)?([a-z-]{3,20})"
)


def _asked_states(given: str) -> set[str]:
    """How the things are whose number a request asks for: "unread", of "how many unread mails" and the like."""
    adjectives = {word for match in _ASKED.finditer(given) for word in match[1].split()[:-1]}
    return adjectives | {match[1] for match in _STATE_ASKED.finditer(given)}


_NOW_BEFORE = re.compile(r"\bnow\b[^,;.]{0,30}$")
_NOW_AFTER = re.compile(r"(?:(?!\b(?:and|but|to|is|was)\b)[^,;.]){0,25}\bnow\b")


def _by_now(trial: _Trial) -> bool | None:
    """What is said to hold now decides over what held before."""
    return trial.single(
        [c for c in trial.claims if _NOW_BEFORE.search(c.context.before) or _NOW_AFTER.match(c.context.after)]
    )


def _by_remainder(trial: _Trial) -> bool | None:
    """What is said to be left decides over what it was taken from, if the request asks for that."""
    if trial.kind not in ("number", "money") or not _LEFT_ASKED.search(trial.given.low):
        return None
    return trial.single(
        [c for c in trial.claims if _LEFT_AFTER.match(c.context.after) or _LEFT_BEFORE.search(c.context.before)]
    )


def _by_question(trial: _Trial) -> bool | None:
    """The word that the request asks for decides."""
    if trial.kind in ("date", "time"):
        asked = _asked_roles(trial.given.low)
        roles = _roles(trial.reading, trial.claims)
        if _MOVED.search(trial.reading.low) and "start" in roles:
            asked = ["end"]
        elif not asked and "start" in roles and "end" in roles and _WHEN.search(trial.given.low):
            asked = ["start"]
        chosen = [
            claim for claim, role in zip(trial.claims, roles, strict=True) if len(asked) == 1 and role == asked[0]
        ]
        return trial.single(chosen)
    if trial.kind == "money" and _asks_for_one(trial.given.low):
        return trial.single([claim for claim in trial.claims if _EACH.match(claim.context.after)])
    if trial.kind != "number":
        return None
    states = _asked_states(trial.given.low)
    so = [claim for claim in trial.claims if (match := _IS_SO.match(claim.context.after)) and match[1] in states]
    if so:
        return trial.single(so)
    spoken = {word for word in _LETTERS.findall(trial.given.low) if len(word) > 3}
    negated = bool(_NOT.search(trial.given.low))
    subset = [claim for claim in trial.claims if _is_asked_subset(claim.context, spoken, negated)]
    if subset:
        return trial.single(subset)
    words = _asked_words(trial.given.low)
    return trial.single([claim for claim in trial.claims if words and _is_asked(claim.context, words)])


_SUBSET = re.compile(r"\b(?:of\s(?:which|these|those|them),?(?:\s(?:only|just|exactly))?|but)\s?$")
_LEAVING = re.compile(r"\b(?:leaving|leaves)(?:\s(?:only|just|exactly|you\swith))?\s?$")
_NOT = re.compile(r"\bnot\b|n't\b|\bnon-")
_SUBSET_AFTER = re.compile(r"(?:\s[a-z]{1,12})?\sof\s(?:which|these|those|them|its|the)\b")


def _is_asked_subset(context: _Context, spoken: set[str], negated: bool) -> bool:
    """Whether a number counts those of a larger set that the request asks for ("of which 4 have a rating ...")."""
    if _LEAVING.search(context.before):
        return True
    if not (_SUBSET.search(context.before) or _SUBSET_AFTER.match(context.after)):
        return False
    return negated == bool(_NOT.search(context.after)) and not spoken.isdisjoint(_LETTERS.findall(context.after))


_PHRASE_END = re.compile(r"[.,;:()0-9]|\b(?:and|or|with|in|on|for|from|per|by|out)\b")


def _is_asked(context: _Context, words: set[str]) -> bool:
    """Whether a number stands with one of the words asked for: "3 museums", "a rating of 4.6"."""
    after = _PHRASE_END.split(context.after, maxsplit=1)[0]
    if any(_stem(word) in words for word in _LETTERS.findall(after)[:3]):
        return True
    before = _LETTERS.findall(re.split(r"[.,;()]", context.before)[-1])[-4:]
    if not before:
        return False
    if context.before.endswith(":"):
        return _stem(before[-1]) in words
    return before[-1] in ("is", "of", "at", "was", "are") and any(_stem(word) in words for word in before)


def _by_conclusion(trial: _Trial) -> bool | None:
    """The last conclusion that singles out a value decides."""
    verdicts: list[tuple[int, bool]] = []
    for match in _CONCLUSION.finditer(trial.reading.low):
        sentence = trial.reading.sentences[trial.reading.sentence(match.start())]
        ends = sentence.end if sentence.end - match.end() > 2 else sentence.end + 40
        verdict = trial.single(trial.best(trial.between(match.end(), ends)))
        if verdict is not None:
            verdicts.append((match.start(), verdict))
    for claim in trial.claims:
        adjacent = trial.kind not in _NAMED and _WHICH_IS.search(claim.context.before)
        only = _BUT_ONLY.search(claim.context.before) and _HAS.match(claim.context.after)
        if adjacent or only or _TOTAL_AFTER.match(claim.context.after):
            verdicts.append((claim.start, claim.match))
    return max(verdicts)[1] if verdicts else None


def _by_equation(trial: _Trial) -> bool | None:
    """The result of the only equation decides."""
    return trial.single([claim for claim in trial.claims if _EQUALS.search(claim.context.before)])


def _counts(word: str, asked: set[str]) -> bool:
    """Whether a superlative or comparative says anything about the answer."""
    last = word.split()[-1]
    return last not in _ASKED_ONLY or last in asked


def _by_comparison(trial: _Trial) -> bool | None:
    """The name that comes out as what the request asks for decides."""
    return trial.single([claim for claim in trial.claims if claim.better])


def _by_superlative(trial: _Trial) -> bool | None:
    """What is called the cheapest, the best or the choice decides."""
    low = trial.reading.low
    asked = {match[0] for match in _SUPERLATIVE.finditer(trial.given.low)}
    found: list[tuple[str, list[_Claim]]] = []
    taken: set[int] = set()
    for claim in trial.claims:
        after = _SUPERLATIVE_AFTER.match(low[claim.end : claim.end + 120].translate(_MARKUP))
        if after is not None and trial.kind not in ("number", "money") and _counts(after[0], asked):
            found.append((after[0], [claim]))
            taken.add(trial.reading.sentence(claim.start))
    for match in _SUPERLATIVE.finditer(low):
        index = trial.reading.sentence(match.start())
        if index in taken or not _counts(match[0], asked):
            continue
        subject = trial.between(trial.reading.sentences[index].start, match.start())[-1:]
        if (
            trial.kind in _NAMED
            and subject
            and _PRONOUN.search(low, max(subject[0].end, match.start() - 40), match.start())
        ):
            found.append((match[0], subject))
            continue
        limit = _clause_end(trial, match.end(), trial.reading.sentences[index].end)
        found.append((match[0], trial.best(trial.between(match.end(), limit))))
    fitting = [item for item in found if any(word in item[0] for word in asked)] or found
    verdict = trial.single([claim for _, chosen in fitting for claim in chosen])
    strict = [claim for word, chosen in fitting if _STRICT.search(word) for claim in chosen]
    # "Earliest: 3 May; latest: 5 May" is a choice between two, not a matter for weaker cues.
    return False if verdict is None and len(_distinct(strict)) > 1 else verdict


def _clause_end(trial: _Trial, start: int, limit: int) -> int:
    """Where the clause after a superlative ends; for numbers and moments the first one closes it."""
    low = trial.reading.low
    end = _CLAUSE_END.search(low, start, limit)
    limit = end.start() if end else limit
    first = trial.between(start, limit)[:1]
    if first and trial.kind not in _NAMED:
        end = _NEXT_PHRASE.search(low, first[0].end, limit)
        return end.start() if end else limit
    return limit


def _by_emphasis(trial: _Trial) -> bool | None:
    """The only emphasised value decides."""
    return trial.single([claim for claim in trial.claims if is_inside(claim.start, trial.reading.emphasis)])


_VARIABLE = re.compile(r"[0-9][0-9.,:]*|\b[A-Z][\w'-]*|[€$£]")


def _pattern_of(trial: _Trial, index: int) -> str:
    """A sentence with names and numbers left out, to see whether sentences are of one pattern."""
    sentence = trial.reading.sentences[index]
    pieces, at = [], sentence.start
    for claim in trial.between(sentence.start, sentence.end):
        pieces.append(trial.reading.plain[at : claim.start])
        at = max(at, claim.end)
    pieces.append(trial.reading.plain[at : sentence.end])
    return " ".join(_VARIABLE.sub("#", "#".join(pieces)).translate(_MARKUP).lower().split()).strip(" .!;")


def _by_sentence(trial: _Trial) -> bool | None:
    """The first sentence that holds one value decides, else the last; listings do not count."""
    holding: dict[int, list[_Claim]] = {}
    for claim in trial.claims:
        holding.setdefault(trial.reading.sentence(claim.start), []).append(claim)
    patterns = {index: _pattern_of(trial, index) for index in holding}
    bullets = [index for index in holding if trial.reading.sentences[index].bullet]
    listed = set(bullets) if len(bullets) > 1 else set()
    listed |= {index for index, pattern in patterns.items() if list(patterns.values()).count(pattern) > 1}
    free = [index for index in sorted(holding) if index not in listed]
    for index in (*free[:1], *free[-1:]):
        verdict = trial.single(trial.outside(holding[index]))
        if verdict is not None:
            return verdict
    return None


_CUES: tuple[Callable[[_Trial], bool | None], ...] = (
    _by_now,
    _by_remainder,
    _by_question,
    _by_conclusion,
    _by_equation,
    _by_comparison,
    _by_superlative,
    _by_emphasis,
    _by_sentence,
)


# --- states ---------------------------------------------------------------------------------


def _echoes(claim: _Claim, kind: Kind, given: _Reading, expected: Expected) -> bool:
    """Whether a claim only repeats a value of the request."""
    if kind == "choice" or not given.low:
        return False
    if kind in _NAMED:
        return bool(_places(given, str(claim.value), kind)) and not _places(given, str(expected.value), kind)
    if kind in ("number", "money"):
        return round(claim.value, 6) in given.quantities
    found = given.times if kind == "time" else given.dates(int(str(claim.value)[:4]))
    return any(item.value == claim.value for item in found)


def _is_allied(claim: _Claim, expected: Expected, allies: Sequence[Expected]) -> bool:
    """Whether a claim is the value of another expected one."""
    for ally in allies:
        if ally.kind in _NAMED:
            if expected.kind in _NAMED and plain_text(str(ally.value)).lower() == plain_text(str(claim.value)).lower():
                return True
        elif ally.kind in ("number", "money"):
            wanted = number_of(ally.value)
            if isinstance(claim.value, float) and wanted is not None and is_close(claim.value, wanted, ally.tolerance):
                return True
        elif ally.kind == expected.kind and str(ally.value)[:10] == str(claim.value):
            return True
    return False


def _is_stated(reading: _Reading, expected: Expected, allies: Sequence[Expected], given: _Reading) -> bool:
    """Whether a text commits to one expected value."""
    if expected.kind == "yesno":
        return _answers(reading, expected.value)
    found = _FINDERS[expected.kind](reading, expected, given)
    if len(found) > MOST_CLAIMS:
        found = found[: MOST_CLAIMS // 2] + found[-MOST_CLAIMS // 2 :]
    claims = _judged(reading, found, expected, allies, given.low)
    claims = [claim for claim in claims if not claim.dropped]
    rivals = [
        claim
        for claim in claims
        if not (claim.match or claim.approximate or claim.dismissed)
        and not _echoes(claim, expected.kind, given, expected)
        and not _is_allied(claim, expected, allies)
    ]
    own = [claim for claim in claims if claim.match and not claim.approximate and not claim.alternative]
    if not own or (all(claim.soft for claim in own) and any(not rival.soft for rival in rivals)):
        return False
    if any(claim.words or not claim.soft for claim in own):
        rivals = [rival for rival in rivals if not rival.soft]
    return not rivals or _is_committed(reading, expected.kind, own, rivals, given)


def _is_committed(reading: _Reading, kind: Kind, own: list[_Claim], rivals: list[_Claim], given: _Reading) -> bool:
    """Whether the cues of a text single out the expected value among its rivals."""
    trial = _Trial(reading, sorted(own + rivals, key=_place), kind, given)
    verdict = _by_answer(trial)
    if verdict is not None or any(rival.alternative for rival in rivals):
        return bool(verdict)
    for cue in _CUES:
        verdict = cue(trial)
        if verdict is not None:
            return verdict
    return False


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


def _answers(reading: _Reading, value: Any) -> bool:
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
    for cue in _ANSWER.finditer(low):
        at = bisect_left(verdicts, cue.end(), key=itemgetter(0))
        if at < len(verdicts) and verdicts[at][0] - cue.end() < 12:
            return verdicts[at][1] is bool(value)
    if not verdicts or any(reading.sentences[index].start < verdicts[0][0] for index in unsure):
        return False
    return verdicts[0][1] is bool(value)


def _is_paired(reading: _Reading, expected: Sequence[Expected], given: _Reading) -> bool:
    """Whether names and the values listed after them occur in matching order."""
    pairs = [
        (left, right)
        for left, right in pairwise(expected)
        if left.kind in _NAMED and right.kind not in _NAMED and right.kind != "yesno"
    ]
    for kind in {right.kind for _, right in pairs}:
        same = [pair for pair in pairs if pair[1].kind == kind]
        if (
            len(same) > 1
            and len({str(right.value) for _, right in same}) == len(same)
            and not _in_order(reading, same, given)
        ):
            return False
    return True


def _in_order(reading: _Reading, pairs: Sequence[tuple[Expected, Expected]], given: _Reading) -> bool:
    """Whether the first mentions of the names are in the order of the first mentions of their values."""
    return _order(reading, [left for left, _ in pairs], given) == _order(reading, [right for _, right in pairs], given)


def _order(reading: _Reading, expected: Sequence[Expected], given: _Reading) -> list[int]:
    """The indices of expected values by first mention."""
    firsts = []
    for index, item in enumerate(expected):
        found = [claim.start for claim in _FINDERS[item.kind](reading, item, given) if claim.match]
        firsts.append((min(found, default=0), index))
    return [index for _, index in sorted(firsts)]


def _is_assigned(reading: _Reading, expected: Sequence[Expected], given: _Reading) -> bool:
    """Whether a start and an end that the request asks for are not given the other way round."""
    asked = _asked_roles(given.low)
    for kind in ("time", "date"):
        wanted = [item for item in expected if item.kind == kind]
        if len(asked) != 2 or len(wanted) != 2:
            continue
        for item, role in zip(wanted, asked, strict=True):
            claims = _FINDERS[kind](reading, item, given)
            said = {said for claim, said in zip(claims, _roles(reading, claims), strict=True) if claim.match and said}
            if said and role not in said:
                return False
    return True


def states(text: str, expected: Sequence[Expected], *, given: str = "") -> bool:
    """Whether a text commits to every expected value; the rule is in the module's docstring."""
    reading, request = _Reading(text), _Reading(given)
    for index, item in enumerate(expected):
        allies = (*expected[:index], *expected[index + 1 :])
        if not _is_stated(reading, item, allies, request):
            return False
    if len(expected) < 2:
        return True
    return _is_paired(reading, expected, request) and _is_assigned(reading, expected, request)
