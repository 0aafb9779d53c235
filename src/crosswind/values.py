"""Typed values in free text: dates, times, numbers, amounts, ids and names as people write them.

The module recognises values by type and says whether an answer *states* an expected value.
It is not a language model and does not understand a text: it reads surface forms in English
(with the number and date formats of other languages), applies the fixed rule below, and where
the text leaves two readings open it prefers to say "not stated".  It does not know what a
number counts, whether a claim is true, or who "she" is beyond the name just before.

How values are read
-------------------
* Dates: ISO, year/month/day, day month year, month day year, dotted day.month.year, ranges
  ("3 to 5 May 2031" gives both ends).  With slashes or hyphens (03/05/2031) the order is
  unknown: the form is a date only if one part is above 12 or both are equal; otherwise it is
  no date and no number either.  A form without a year takes the year of a date it is joined
  to ("May 3 to May 5, 2031"), else `year`; else it is no date.  Weekdays are not checked.
* Times: 24-hour "HH:MM".  Without am/pm or a part of the day, "2:30" is 02:30; 24:00 is 00:00.
  "2h30m" is a duration and no time.
* Numbers: "1,234" and "1 234" are thousands, "12,5" and "12,50" are decimals, "1.234" is a
  decimal (but a thousand in an amount of money, which never has three decimals), "1.234.567"
  and "1.234,5" are European.  "12%" is 12, "1.2k" is 1200, "1 hour 35 minutes" is two numbers.
  Ordinals ("3rd") and digits inside dates, times, ids and web addresses are no numbers.  "one"
  counts only where it is a number and not a pronoun.
* Amounts: a number with a currency; cents are hundredths; both ends of "12 to 15 euros".
* Ids: tokens that hold both letters and digits and are not a number with its unit ("35min").

The rule of `states`
--------------------
A text states the expected values if it commits to each of them:

1.  *Presence.*  The value occurs in a form of its kind.  Names match regardless of case,
    accents, quotes, markup, hyphens and a leading "the" or title; ids regardless of case; both
    only as whole words, and the longest candidate wins ("Alda Nord" is no mention of "Alda" when
    both are candidates).  An amount is in euros, unless the value is a string with a currency or
    the request (`given`) names one other currency; a bare number serves when the text holds no
    amount at all; an amount in another currency never serves.  A date without a year is read in
    the year of the expected one.  Numbers are equal up to rounding (1e-6) or `tolerance`; a
    percentage is its number (40% states 40, not 0.4); "1 hour 35 minutes" is 95 (minutes) or
    1.5833 (hours), never 35; no other units are converted or compared.
2.  *Claim.*  An occurrence counts only if it is claimed.  Not claimed are: what stands in a
    question or an if-clause; what is negated ("not 12", "isn't Alda", "12 is wrong", "rather
    than"); what is compared with ("than Brisa", "over Brisa", "followed by"; but in "costs more
    than Alda" it is Alda that comes out better); what was only looked at ("I compared Brisa and
    Cosmo"); operands and intermediate results ("12 + 15 = 27"); list numbers; the whole of a part
    ("3 of the 7", "4.3/5").
3.  *Soft claims* serve only if nothing firmer of the kind is claimed: for a number amounts,
    percentages, differences ("2 less than"), labels ("room 12") and years; for an amount
    differences and, unless asked for, prices per head; for dates and times bounds ("after 14:00").
4.  *Hedges.*  "about", "at least", "up to", "from", "12+", ranges, "or", "either", "between",
    "maybe", "probably", "might be", "not sure whether" leave the value uncommitted.  "About 12"
    states 12 only if the expected value has a tolerance.  "I think it is 12" is a statement.
    For times and dates "from X to Y" is a statement of both ends, "between" only if both
    ends are expected.
5.  *Rivals.*  Other claimed values of the same kind are rivals: other numbers, amounts of the
    same currency, dates, times; for names, ids and choices the `others`; for ids also tokens of
    the same shape.  No rivals are: values that another expected value asks for; values that
    echo `given` (for names and ids only if `given` does not hold the expected one too, for
    choices never); approximations; names that the text dismisses ("Brisa is fully booked").
6.  *Commitment.*  Without rivals the value is committed.  With rivals the first of these cues
    that singles out one value decides:
    (a) the last "answer is / answer: / \\boxed", or a correction ("no wait, it's 13");
    (b) what is so "now";
    (c) the words of `given`: "how many museums" - "3 museums"; "of which 4 have ..."; "when does
        it close" - "closes at 17:00"; "moved from X to Y" is Y;
    (d) the last "so / therefore / total / that makes / which is / in total";
    (e) "=";
    (f) a superlative or a choice ("the cheapest is", "I recommend"), that of `given` first; two
        superlatives for two values commit to neither;
    (g) emphasis (bold, code, quotes) if only one value has it;
    (h) the first sentence that holds a value, if it holds just one; else the last such sentence.
        What stands in parentheses or breaks a number down after a colon does not count here.
    Bullets, table rows and sentences of one pattern ("Alda costs 12. Brisa costs 15.") are a
    listing and commit to nothing.  Values coordinated by "and" or commas are singled out
    together or not at all.  A "maybe 15" beside the value can be overruled by (a) only.
7.  *Zero.*  "none", "no reviews", "not any", "nothing" are soft claims of the number 0, "free" of
    the amount 0; "but none ..." is a firm one.
8.  *Yes and no.*  The first of yes, yep, true, correct / no, nope, false, incorrect outside
    questions decides, an explicit "answer: no" before it; "not correct" is no; "yes and no",
    "maybe", "not sure" are neither.  A "no" before a noun ("no seats") is no answer.
9.  *Lists.*  All expected values must be stated, in any order.  But if names alternate with values
    (Alda, 12, Brisa, 15), the text must first mention names and values in matching order, so a
    swapped pair fails; if `given` asks for a start and an end, the text must not assign them the
    other way round.

A text of more than `LONGEST_READ` characters is read for values, and an answer of more than
`LONGEST` characters is judged, by its beginning and its end; of more than `MOST_CLAIMS` values of
one kind the first and the last are weighed.  Thoughts before "</think>" are not part of an answer.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from itertools import pairwise, takewhile
from math import isfinite
from operator import itemgetter
from typing import Any, Generic, Literal, NamedTuple, TypeVar

__all__ = ["Expected", "dates", "ids", "mentions", "moneys", "numbers", "shown", "states", "times"]

LONGEST = 20_000
LONGEST_READ = 100_000
MOST_CLAIMS = 200

_Result = TypeVar("_Result")
Kind = Literal["number", "money", "date", "time", "name", "id", "choice", "yesno"]


# --- plain text -----------------------------------------------------------------------------

_SPELLED = {
    "‘": "'", "’": "'", "‚": "'", "‛": "'", "´": "'", "′": "'", "“": '"', "”": '"', "„": '"', "‟": '"',
    "«": '"', "»": '"', "‹": "'", "›": "'", "‐": "-", "‑": "-", "−": "-", "⁄": "/", "\u2028": "\n", "\u2029": "\n",
    "\x85": "\n", "ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ı": "i", "Æ": "AE", "Œ": "OE",
    "Ø": "O", "Ł": "L", "Đ": "D", "\u20e3": ")", "、": ", ", "。": ". ", "•": "-", "…": "...", "ª": "a",
}  # fmt: skip
_FOLDING_LIMIT = 20_000


class _Folding(dict[int, int | str | None]):
    """A translation table that drops accents and invisible marks and unifies quotes, digits and spaces."""

    def __missing__(self, code: int) -> int | str | None:
        folded = _folded(code)
        # A hostile text may hold every code point there is; the table need not remember them all.
        if len(self) < _FOLDING_LIMIT:
            self[code] = folded
        return folded


def _folded(code: int) -> int | str | None:
    """The plain spelling of one character, or None for a mark that is dropped."""
    char = chr(code)
    if char in _SPELLED:
        return _SPELLED[char]
    category = unicodedata.category(char)
    if category in ("Mn", "Me", "Cf"):
        return None
    if category == "Zs":
        return " "
    if category == "Nd":
        return str(unicodedata.decimal(char))
    if 0xFF01 <= code <= 0xFF5E:  # full-width forms of ASCII
        return code - 0xFEE0
    parts = unicodedata.normalize("NFD", char)
    if len(parts) > 1 and all(unicodedata.category(part)[0] == "M" for part in parts[1:]):
        return parts[0]
    return code


_FOLDING = _Folding()
_FOREIGN = re.compile(r"[^\x00-\x7f€£–—×°]+")


def _plain(text: str) -> str:
    """The text without accents, invisible marks and typographic variants."""
    if text.isascii():
        return text
    return _FOREIGN.sub(lambda match: match[0].translate(_FOLDING), text)


class _Found(NamedTuple):
    """A value found in a text: where, which, and a note that depends on its kind."""

    start: int
    end: int
    value: Any
    note: str = ""


_BLANK = "ª"  # a letter that no plain text holds and that belongs to no value


def _blanked(text: str, *groups: Sequence[_Found]) -> str:
    """The text with the found values overwritten, same length."""
    found = [item for group in groups for item in group]
    if not found:
        return text
    if len(found) > 1:
        found.sort(key=_start)
    pieces: list[str] = []
    at = 0
    for start, end, *_ in found:
        if end > at:
            pieces += (text[at:start], _BLANK * (end - max(start, at)))
            at = end
    pieces.append(text[at:])
    return "".join(pieces)


# The patterns below start with a plain character class and look behind only after it: the
# regex engine can then skip to the few characters of that class, which halves the time.

_DIGIT = re.compile(r"[0-9]")


# --- dates ----------------------------------------------------------------------------------

_MONTHS = {
    name: 1 + index
    for index, name in enumerate(("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"))
}
_MONTH_REST = (
    r"(?:an(?:uary)?|eb(?:ruary)?|ar(?:ch)?|pr(?:il)?|ay|une?|uly?|ug(?:ust)?|ep(?:t(?:ember)?)?|ct(?:ober)?"
    r"|ov(?:ember)?|ec(?:ember)?)(?![a-z])"
)
_TH = r"(?:st|nd|rd|th)"
_YEAR = r"[12][0-9]{3}(?![0-9])"
_CLOCK_PART = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(?:z|[+-][0-9]{2}:?[0-9]{2})?"

_NUMERIC_DATE = re.compile(
    r"([0-9](?<![0-9a-z][0-9])(?<![0-9a-z][-._][0-9])(?:[0-9]{3}|[0-9]?))([-/.])([0-9]{1,2})\2([0-9]{4}|[0-9]{1,2})"
    rf"(?:t{_CLOCK_PART})?(?![0-9a-z])(?![-_][0-9a-z])(?!\.[0-9])(?!/[0-9]{{1,3}}(?![0-9]))"
)
_DAY_MONTH = re.compile(
    rf"([0-9](?<![0-9a-zª][0-9])(?<![0-9][.,:/][0-9])[0-9]?)(?:{_TH}|\.)?"
    rf"(?:\s?(?:-|–|—|to|until|through|and|or|&)\s?(?:the\s)?([0-9]{{1,2}})(?:{_TH}|\.)?)?"
    rf"(?:\s{{1,2}}|-)(?:of\s)?([jfmasond]{_MONTH_REST})\.?(?:,?[\s-]\s?({_YEAR}))?"
)
_MONTH_DAY = re.compile(
    rf"([jfmasond](?<![0-9a-z].){_MONTH_REST})\.?(?:,?\s{{1,2}}({_YEAR})"
    rf"|\s{{1,2}}(?:the\s)?([0-9]{{1,2}})(?:{_TH})?(?![0-9a-z])(?![:.,][0-9])(?!\s?(?:[ap]\.?m\b|%|€|h\b))"
    rf"(?:\s?(?:-|–|—|to|until|through|&)\s?(?:the\s)?([0-9]{{1,2}})(?:{_TH})?(?![0-9a-z])(?![:.,][0-9])"
    rf"|\s(?:and|or)\s(?:the\s)?([0-9]{{1,2}})(?:{_TH}|(?=,?\s{_YEAR})|(?=[.;)]|$)))?"
    rf"(?:(?:,\s?|\s)({_YEAR})(?!:))?)"
)
_JOINED = re.compile(
    r"[\s,]{0,4}(?:(?:-|–|—|to|till|until|through|and|or|&)\s?)?(?:(?:from|the|on)\s)?"
    r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6},?\s)?(?:the\s)?"
)
# "12 may be" is a verb; "12 may at noon" is a date.
_SUBJECT = re.compile(r"\b(?:you|i|we|they|it|he|she|this|that|which|who|one)\s$")
_MODAL = re.compile(r"\s(?!(?:at|on|in|for|from|to|and|or|is|was|until|till|with|by|if|please|there|the)\b)[a-z]")


def _iso(year: int, month: int, day: int) -> str | None:
    """The ISO form of a date, or None if there is no such day."""
    try:
        return date(year, month, day).isoformat()
    except ValueError:
        return None


def _readings(first: str, mark: str, second: str, third: str) -> list[str]:
    """The dates that a numeric form may mean: none, one, or two where the order is unknown."""
    if len(first) == 4:
        found = [_iso(int(first), int(second), int(third))]
    else:
        year = int(third) if len(third) == 4 else 2000 + int(third)
        found = [_iso(year, int(second), int(first))]
        if mark != ".":
            found.append(_iso(year, int(first), int(second)))
    return list(dict.fromkeys(item for item in found if item))


def _numeric_dates(low: str) -> Iterator[_Found]:
    """The dates in digits; one that may mean two days has no value but notes both."""
    for match in _NUMERIC_DATE.finditer(low):
        first, mark, second, third = match.groups()
        lengths = (len(first), len(third))
        # 1.2.3 is a version and 1-3-12 part of an id; two digits are a year only in 03.05.31.
        short = lengths == (2, 2) and len(second) == 2 and mark != "-"
        if not short and lengths not in ((4, 1), (4, 2), (1, 4), (2, 4)):
            continue
        found = _readings(first, mark, second, third)
        yield _Found(match.start(), match.end(), found[0] if len(found) == 1 else None, "/".join(found))


class _Named(NamedTuple):
    """A date with a written month: the spans of one or two days, the month and perhaps the year."""

    start: int
    end: int
    days: list[tuple[int, int, int]]
    month: int
    year: int | None


def _start(item: _Named | _Found) -> int:
    return item.start


def _named_date(match: re.Match[str], month: str, year: str | None, groups: Sequence[int]) -> _Named | None:
    """The date of a match, or None if its word is no month or its numbers are no days."""
    number = _MONTHS.get(month[:3])
    if number is None:
        return None
    days: list[tuple[int, int, int]] = []
    for group in groups:
        written = match[group]
        if written:
            day = int(written)
            if not 1 <= day <= 31:
                return None
            days.append((match.start(group), match.end(group), day))
    return _Named(match.start(), match.end(), days, number, int(year) if year else None)


def _named_dates(plain: str, low: str) -> list[_Named]:
    """The dates with a written month in order, with the year only if it is written there."""
    found: list[_Named] = []
    for match in _DAY_MONTH.finditer(low):
        start = match.start(3)
        if match[4] is None and plain[start : start + 3] == "may" and _MODAL.match(low, match.end()):
            continue
        named = _named_date(match, match[3], match[4], (1, 2))
        if named is not None:
            found.append(named)
    ends = [item.end for item in found]
    for match in _MONTH_DAY.finditer(low):
        # The month of "3 May 2031" has been taken already.
        at = bisect_right(ends, match.start(1))
        if at < len(ends) and found[at].start <= match.start(1):
            continue
        start = match.start(1)
        if (
            not (match[2] or match[6])
            and plain[start : start + 4] == "may "
            and _SUBJECT.search(low, max(0, start - 9), start)
        ):
            continue
        named = _named_date(match, match[1], match[2] or match[6], (3, 4, 5))
        if named is not None:
            found.append(named)
    if len(found) > len(ends) > 0:
        found.sort(key=_start)
    return found


def _dates(plain: str, low: str, year: int | None) -> list[_Found]:
    """All dates of a text; those that cannot be resolved have the value None but keep their span."""
    if not _DIGIT.search(low):
        return []
    found = list(_numeric_dates(low))
    named = _named_dates(plain, low)
    years = _adopted(low, named)
    for item, known in zip(named, years, strict=True):
        found += _resolved(item, year if known is None else known)
    if len(found) > 1:
        found.sort(key=_start)
    return found


def _adopted(low: str, named: Sequence[_Named]) -> list[int | None]:
    """The years of dates, where one without takes that of the date it is joined to ("May 3 to May 5, 2031")."""
    years = [item.year for item in named]
    if len(named) < 2 or None not in years:
        return years
    joined = [_is_joined(low, left.end, right.start) for left, right in pairwise(named)]
    for at in range(len(named) - 2, -1, -1):
        if years[at] is None and joined[at]:
            years[at] = years[at + 1]
    for at in range(1, len(named)):
        if years[at] is None and joined[at - 1]:
            years[at] = years[at - 1]
    return years


def _is_joined(low: str, start: int, end: int) -> bool:
    """Whether only a connective stands between two dates."""
    return end - start < 24 and _JOINED.fullmatch(low, start, end) is not None


def _resolved(item: _Named, year: int | None) -> list[_Found]:
    """The dates that a form with a written month stands for in a year."""
    if not item.days:
        return [_Found(item.start, item.end, None)]
    values = [None if year is None else _iso(year, item.month, day) for _, _, day in item.days]
    if len(values) == 1:
        return [_Found(item.start, item.end, values[0])]
    return [_Found(item.start, item.days[0][1], values[0]), _Found(item.days[1][0], item.end, values[1])]


# --- times ----------------------------------------------------------------------------------

_PART = r"\s(?:in\sthe|at)\s(morning|afternoon|evening|night)(?![a-z])"
_HALF = r"\s?([ap])\.?m(?:\.|(?![a-z]))"
_TIME = re.compile(
    r"([0-9](?<![0-9a-zª:+][0-9])(?<![0-9][.,][0-9])[0-9]?)(?:"
    rf":([0-5][0-9])(?::[0-5][0-9](?:\.[0-9]{{1,9}})?)?(?![0-9:])(?:{_HALF}|{_PART})?"
    r"|h([0-5][0-9])(?![0-9a-z])"
    rf"|(?:\.([0-5][0-9]))?(?:{_HALF}|\suhr(?![a-z])|\so'?clock(?:{_PART})?|{_PART}))"
)
_ISO_TIME = re.compile(rf"[0-9]t({_CLOCK_PART})(?![0-9:])")
_FIRST_TIME = re.compile(r"(?<![0-9a-z:.])([0-9]{1,2})(?:[:.]([0-5][0-9]))?\s?(?:-|–|—|to)\s?$")
_NAMED_TIME = re.compile(r"(?<![a-z])(?:12\s)?(?:noon|midday|midnight)(?![a-z])")
_LATE = {"a": False, "morning": False, "p": True, "afternoon": True, "evening": True, "night": True}


def _clock(hour: int, minute: int, part: str | None) -> str | None:
    """The 24-hour form of a clock time with an optional part of the day, or None if there is none."""
    if part is not None and hour <= 12:
        early = not _LATE[part] or (part == "night" and (hour == 12 or hour < 5))
        hour = hour % 12 + (0 if early else 12)
    elif part is not None and not _LATE[part]:
        return None
    if hour == 24 and minute == 0:
        hour = 0
    return f"{hour:02d}:{minute:02d}" if hour < 24 else None


def _times(low: str) -> list[_Found]:
    """All times of a text in order; a span of two ("9 to 11 am") gives both."""
    if not _DIGIT.search(low) and "noon" not in low and "mid" not in low:
        return []
    found: list[_Found] = []
    for match in _TIME.finditer(low):
        hour, minute, half, day, minute_h, minute_dot, half_only, day_clock, day_only = match.groups()
        part = half or day or half_only or day_clock or day_only
        value = _clock(int(hour), int(minute or minute_h or minute_dot or 0), part)
        if value is not None:
            if part:
                found += _first_times(low, match.start(), part, value)
            found.append(_Found(match.start(), match.end(), value))
    moments = list(_iso_times(low))
    if moments:  # the offset of a moment is no time
        found = [item for item in found if not _inside(item.start, moments)]
    others = [*moments, *_named_times(low)]
    return sorted(found + others) if others else found


def _first_times(low: str, end: int, part: str, last: str) -> Iterator[_Found]:
    """The first time of a span, which takes the part of the day of the last ("11-2 pm" starts at 11 am)."""
    match = _FIRST_TIME.search(low, max(0, end - 12), end)
    # With a colon it is a time of its own and has been found already.
    if match is None or low[match.end(1) : match.end(1) + 1] == ":":
        return
    hour, minute = int(match[1]), int(match[2] or 0)
    value = _clock(hour, minute, part)
    if value is not None and value > last:
        value = _clock(hour, minute, None)
    if value is not None:
        yield _Found(match.start(1), match.end(2) if match[2] else match.end(1), value)


def _iso_times(low: str) -> Iterator[_Found]:
    """The times of ISO moments; the span takes in the date, so that what is said before it is said of the time."""
    for match in _ISO_TIME.finditer(low):
        value = _clock(int(match[1][:2]), int(match[1][3:5]), None)
        if value is not None and int(value[3:]) < 60:
            yield _Found(max(match.start() - 9, 0), match.end(), value)


def _named_times(low: str) -> Iterator[_Found]:
    """Noon and midnight."""
    if "noon" in low or "mid" in low:
        for match in _NAMED_TIME.finditer(low):
            yield _Found(match.start(), match.end(), "00:00" if match[0].endswith("night") else "12:00")


# --- ids ------------------------------------------------------------------------------------

_TOKEN = re.compile(
    r"[^\W_](?<![^\W_].)(?<![^\W_][-_].)(?:(?<=[0-9])|(?=[a-z_-]{0,40}[0-9]))"
    r"[^\W_]{0,127}(?:[-_][^\W_]{1,128}){0,12}(?![^\W_])(?![-_][^\W_])"
)
_TOKEN_MARK = re.compile(r"[0-9](?:(?<=[^\W0-9ª].)|(?<=-.)|(?=[^\W0-9ª])|(?=-))")  # where an id may be
_TOKEN_HEAD = re.compile(r"[^\W_][\w-]{0,64}$")
_RUN = re.compile(r"[\w-]*")
_NO_ID = re.compile(
    r"[0-9]+(?:[-_][0-9]+)*[½¼¾]?"
    r"|[0-9]+-?(?:st|nd|rd|th|s|h|hrs?|hours?|m|mins?|minutes?|secs?|d|days?|nights?|weeks?|km|kms|mi|miles?|cm|mm|ft"
    r"|kgs?|g|lbs?|l|ml|kb|mb|gb|tb|kw|kwh|w|v|hz|c|f|x|k|am|pm|eur|euros?|usd|chf|gbp|pp|pax|px|pts?|p|stars?"
    r"|k?m[2²])"
    r"|[0-9]+(?:-[a-z]+)+|[0-9]+[hx][0-9]+(?:m|min)?|x[0-9]+"
    r"|(?:mid|pre|post|top|under|over|non|plus|early|late|the|day|and|or|to|eur|usd|chf|gbp)-?[0-9]+"
)
_WIDE_TOKEN = re.compile(
    r"[^\W_](?<![^\W_].)(?<![^\W_][-_].)[^\W_]{0,127}(?:[-_][^\W_]{1,128}){0,12}(?![^\W_])(?![-_][^\W_])"
)


def _ids(plain: str, clockless: str) -> list[_Found]:
    """The id tokens of a text whose dates and times are blanked in `clockless`."""
    found: list[_Found] = []
    at = 0
    for mark in _TOKEN_MARK.finditer(clockless):
        if mark.start() < at:
            continue
        head = _TOKEN_HEAD.search(clockless, max(at, mark.start() - 64), mark.end())
        run = _RUN.match(clockless, mark.start())
        at = run.end() if run else mark.end()
        for match in _TOKEN.finditer(clockless, head.start() if head else mark.start(), at):
            token = match[0]
            if not token.isdigit() and _BLANK not in token and not _NO_ID.fullmatch(token):
                found.append(_Found(match.start(), match.end(), plain[match.start() : match.end()]))
    return found


# --- numbers --------------------------------------------------------------------------------

_NUM_REST = (
    r"[0-9]{0,2}(?:(?<![0-9],[0-9])(?<![0-9],[0-9]{2})(?:,[0-9]{3}){1,5}(?![0-9,])(?:\.[0-9]{1,12})?"
    r"|(?:\.[0-9]{3}){1,5},[0-9]{1,9}|(?:\.[0-9]{3}){2,5}"
    r"|(?:[ '][0-9]{3}){1,5}(?![0-9])(?:[.,][0-9]{1,2}(?![0-9]))?"
    r"|[0-9]{0,12}(?:\.[0-9]{1,12}|(?<![\[,][0-9])(?<![\[,][0-9]{2}),[0-9]{1,2}(?![0-9\]]"
    r"|,[0-9]))?)(?![0-9])(?!\.[0-9])"
)
_SCALE = r"(?:(k)(?![a-z])|\s(hundred|thousand|million|billion|dozen)(?![a-z]))"
_NUMBER = re.compile(
    rf"([0-9](?<![0-9a-wyzª].)(?<![^0-9]x.)(?<![0-9a-zª]\..){_NUM_REST})(?!(?:st|nd|rd|th)(?![a-z]))"
    rf"([½¼¾]|\sand\sa\shalf(?![a-z]))?(?:\s?(%|percent|per\scent)|{_SCALE})?"
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
_SCALES = {"k": 1e3, "hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "dozen": 12.0}
_SMALL = r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|[a-z]{3,5}teen|[a-z]{3,4}ty)"
_WORD_NUMBER = re.compile(
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
_WEB = re.compile(r"(?:https?://|www\.)[^\s<>\"']{1,2000}|[\w.+-]{1,64}@[\w.-]{1,128}|24/7")


def _parsed(token: str, *, money: bool = False) -> float:
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


def _spelled(words: str) -> float | None:
    """The value of a number in words, or None if they are no number ("a hotel")."""
    if words.startswith("half"):
        return 6.0
    total, known = 0.0, False
    for word in words.replace("-", " ").split():
        if word in _SCALES:
            total, known = (total or 1.0) * _SCALES[word], True
        elif word in _UNITS or word in _TENS:
            total, known = total + _UNITS.get(word, _TENS.get(word, 0.0)), True
        elif word not in ("a", "an", "and"):
            return None
    return total if known else None


def _is_negative(low: str, start: int) -> bool:
    """Whether the number at a place has a minus sign, not a hyphen or a bullet, before it."""
    if low[start - 1 : start] in ("€", "$", "£"):
        start -= 1
    if low[start - 1 : start] == "-":
        before = low[max(0, start - 2) : start - 1]
        return not (before.isalnum() or (before and before in ")]%€$-_"))
    return low[start - 1 : start] == " " and low.endswith("minus", 0, start - 1)


def _numeral(low: str, match: re.Match[str]) -> _Found:
    """The number of a match with its sign, fraction and scale."""
    start, end = match.span()
    number, fraction, percent, k, scale = match.groups()
    value = float(number) if number.isdigit() else _parsed(number)
    before = low[max(0, start - 2) : start]
    if before[-1:] == "." and number.isdigit() and before != "..":  # .5
        value = float(f"0.{number}")
    if fraction:
        value += _HALVES.get(fraction, 0.5)
    if k or scale:
        value *= _SCALES[k or scale]
    if before and (before[-1] in "-€$£" or before == "s ") and _is_negative(low, start):
        start, value = start - 1, -value
    return _Found(start, end, value, "%" if percent else "")


def _is_pronoun(low: str, match: re.Match[str]) -> bool:
    """Whether a matched "one" stands for a thing and not for a number."""
    before = low[max(0, match.start() - 24) : match.start()]
    if _ONE_PRONOUN.search(before) or _ONE_OF.match(low, match.end()):
        return True
    return not (_ONE_AFTER.match(low, match.end()) or _ONE_BEFORE.search(before))


def _word_numbers(low: str) -> Iterator[_Found]:
    """The numbers written in words."""
    for match in _WORD_NUMBER.finditer(low):
        words = match["w"]
        value = _spelled(words)
        if value is None or (words == "one" and not match["half"] and not match["pct"] and _is_pronoun(low, match)):
            continue
        value += 0.5 if match["half"] else 0.0
        negative = _is_negative(low, match.start())
        yield _Found(match.start(), match.end(), -value if negative else value, "%" if match["pct"] else "")


def _numbers(low: str, hidden: str) -> list[_Found]:
    """All numbers of a text whose dates, times, ids and addresses are blanked in `hidden`."""
    found: list[_Found] = []
    for match in _NUMBER.finditer(hidden):
        start, end = match.span()
        if (
            match.lastindex == 1
            and hidden[start - 1 : start] in ("", " ", "(", "*")
            and hidden[start - 2 : start] != "s "
        ):
            found.append(_Found(start, end, _parsed(match[1])))  # the usual case: no sign, no fraction, no scale
        else:
            found.append(_numeral(low, match))
    words = list(_word_numbers(low))
    if words:
        found = sorted(found + words) if found else words
    return found


# --- amounts of money -----------------------------------------------------------------------

_CURRENCIES = {
    "€": "EUR", "eur": "EUR", "euro": "EUR", "euros": "EUR", "$": "USD", "usd": "USD", "dollar": "USD",
    "dollars": "USD", "bucks": "USD", "£": "GBP", "gbp": "GBP", "pound": "GBP", "pounds": "GBP", "¥": "JPY",
    "jpy": "JPY", "yen": "JPY", "chf": "CHF", "franc": "CHF", "francs": "CHF",
}  # fmt: skip
_CURRENCY = re.compile(r"[€$£¥]|(?<![a-z])(?:eur|euros?|usd|dollars?|bucks|gbp|pounds?|jpy|yen|chf|francs?)(?![a-z])")
_MONEY_MARK = re.compile(r"[€$£¥]|eur|usd|dollar|bucks|gbp|pound|jpy|yen|chf|franc|cent|ct")
_CODES = ("eur", "euro", "euros", "usd", "gbp", "chf", "jpy")
_AMOUNT = re.compile(rf"([0-9](?<![0-9ª].)(?<![0-9ª][.:].){_NUM_REST}){_SCALE}?")
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
        value = _parsed(number, money=True)
        if k or scale:
            value *= _SCALES[k or scale]
        found.append(_Sum(match.start(), match.end(), value))
    words = [_Sum(item.start, item.end, item.value) for item in _worded_sums(low)]
    return sorted(found + words) if words else found


def _worded_sums(low: str) -> Iterator[_Sum]:
    """The numbers in words that a currency follows."""
    for match in _WORD_NUMBER.finditer(low):
        value = _spelled(match["w"])
        if value is not None and _UNIT_AFTER.match(low, match.end()):
            yield _Sum(match.start(), match.end(), value)


def _priced(low: str, item: _Sum) -> _Found | None:
    """The amount that a number and the currency beside it make, or None without a currency."""
    after = _UNIT_AFTER.match(low, item.end)
    if after is None:
        if low[item.start - 1 : item.start] not in tuple("€$£¥- rosdpfy"):
            return None
        before = _UNIT_BEFORE.search(low, max(0, item.start - 7), item.start)
        if before is None:
            return None
        negative = low[item.start - 1] == "-" or low[before.start() - 1 : before.start()] == "-"
        return _Found(before.start(), item.end, -item.value if negative else item.value, _CURRENCIES[before["c"]])
    value = item.value / 100.0 if after["cents"] else item.value
    if after["fr"] or after["ct"]:
        cents = after["fr"] or after["ct"]
        value += (float(cents) if cents.isdigit() else _spelled(cents) or 0.0) / 100.0
    start = item.start - 1 if _is_negative(low, item.start) else item.start
    before = _UNIT_BEFORE.search(low, max(0, item.start - 7), item.start)
    currency = _CURRENCIES[after["c"]] if after["c"] else ""
    return _Found(before.start() if before else start, after.end(), value if start == item.start else -value, currency)


def _moneys(low: str) -> list[_Found]:
    """All amounts with the currency as note ("" for bare cents); both ends of a span have its currency."""
    if not _MONEY_MARK.search(low):
        return []
    found: list[_Found] = []
    bare: _Sum | None = None  # the number just before, if it had no currency of its own
    signed = False  # whether the amount just before had its sign in front ("€12-15")
    for item in _sums(low):
        if found and item.start < found[-1].end:
            continue
        amount = _priced(low, item)
        if amount is None:
            if signed and _SPAN.fullmatch(low, found[-1].end, item.start) and not _NO_UNIT.match(low, item.end):
                amount = _Found(item.start, item.end, item.value, found[-1].note)
            else:
                bare, signed = item, False
                continue
        elif bare is not None and _SPAN.fullmatch(low, bare.end, amount.start):
            value = bare.value if amount.note or "cent" not in low[item.end : amount.end] else bare.value / 100.0
            found.append(_Found(bare.start, bare.end, value, amount.note))
        found.append(amount)
        bare, signed = None, amount.start < item.start
    return found


# --- names ----------------------------------------------------------------------------------

_LONGEST_NAME = 400
_GAP = r"[\s*_`\"'-]{1,8}"
_NAME_SPLIT = re.compile(r"[\s*_`\"-]+")


@lru_cache(maxsize=4096)
def _name_pattern(name: str) -> re.Pattern[str] | None:
    """The regex of a name in plain lower-case text, or None if there is nothing to look for."""
    words = [word for word in _NAME_SPLIT.split(_plain(name).lower()) if word.strip("'")]
    if len(words) > 2 and words[0] in ("the", "dr", "dr.", "prof", "prof.", "mr", "mr.", "mrs", "mrs.", "ms", "ms."):
        words = words[1:]
    if not words or sum(map(len, words)) > _LONGEST_NAME:
        return None
    pattern = _word_pattern(words[0])
    for left, right in pairwise(words):
        pattern += (_GAP if "&" not in (left, right) else _GAP.replace("1", "0")) + _word_pattern(right)
    if words[0] == "and":
        pattern = rf"(?<![^\W_]){pattern}"
    elif words[0][0].isalnum():
        # The boundary stands behind the first letter so that the search can skip to that letter.
        pattern = rf"{words[0][0]}(?<![^\W_].){pattern[1:]}"
    return re.compile(pattern + (r"(?![^\W_])" if words[-1][-1].isalnum() else ""))


def _word_pattern(word: str) -> str:
    """The regex of one word of a name: "&" is also "and", a final dot or an apostrophe may be missing."""
    if word in ("&", "and"):
        return "(?:&|and)"
    escaped = re.escape(word).replace("'", "'?")
    return escaped[:-2] + r"\.?" if word.endswith(".") and len(word) > 1 else escaped


def _long_mentions(low: str, name: str) -> list[tuple[int, int]]:
    """The places of a name too long for a regex, by its exact wording."""
    found: list[tuple[int, int]] = []
    at = low.find(name)
    while at >= 0:
        end = at + len(name)
        if not low[max(at - 1, 0) : at].isalnum() and not low[end : end + 1].isalnum():
            found.append((at, end))
        at = low.find(name, end)
    return found


def _mentions(low: str, name: str) -> list[tuple[int, int]]:
    """The places where a name stands in plain lower-case text."""
    pattern = _name_pattern(name) if len(name) <= 4 * _LONGEST_NAME else None
    if pattern is not None:
        return [match.span() for match in pattern.finditer(low)]
    folded = _plain(name).lower().strip()
    return _long_mentions(low, folded) if folded else []


@lru_cache(maxsize=4096)
def _id_pattern(value: str) -> re.Pattern[str]:
    """The regex of an id as a whole token in lower-case text."""
    return re.compile(rf"(?<![^\W_])(?<![^\W_][-_])(?<!\w\.){re.escape(value)}(?![^\W_])(?![-_][^\W_])(?!\.[0-9])")


def _id_places(low: str, value: str) -> list[tuple[int, int]]:
    folded = _plain(value).lower().strip()
    if not folded or folded not in low:
        return []
    if len(folded) > _LONGEST_NAME:
        return _long_mentions(low, folded)
    return [match.span() for match in _id_pattern(folded).finditer(low)]


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


def _ends(text: str, limit: int) -> str:
    """The text, or its beginning and end if it is longer than the limit."""
    return text if len(text) <= limit else f"{text[: limit // 2]}\n{text[-limit // 2 :]}"


class _lazy(Generic[_Result]):
    """An attribute that is found on first use; unlike functools.cached_property it takes no lock."""

    def __init__(self, find: Callable[[Any], _Result]) -> None:
        self.find = find
        self.name = find.__name__

    def __get__(self, owner: Any, kind: type) -> _Result:
        value = owner.__dict__[self.name] = self.find(owner)
        return value


class _Values:
    """The values of a text by type, each type found on first use."""

    def __init__(self, text: str) -> None:
        self.plain = _plain(_ends(text, LONGEST_READ))
        self.low = self.plain.lower()
        self._dates: dict[int | None, list[_Found]] = {}

    def all_dates(self, year: int | None) -> list[_Found]:
        """The dates, with forms without a year read in `year`; unresolved ones have no value."""
        if year not in self._dates:
            self._dates[year] = _dates(self.plain, self.low, year)
        return self._dates[year]

    def dates(self, year: int | None) -> list[_Found]:
        """The resolved dates."""
        return [item for item in self.all_dates(year) if item.value]

    @_lazy
    def times(self) -> list[_Found]:
        return _times(self.low)

    @_lazy
    def clockless(self) -> str:
        """The lower-case text with dates and times blanked."""
        return _blanked(self.low, self.all_dates(None), self.times)

    @_lazy
    def ids(self) -> list[_Found]:
        return _ids(self.plain, self.clockless) if _DIGIT.search(self.low) else []

    @_lazy
    def numbers(self) -> list[_Found]:
        return _numbers(self.low, self._hidden)

    @_lazy
    def moneys(self) -> list[_Found]:
        found = _moneys(self.low)
        # Only in a span ("3 May and 15 euros") can a part of a date be taken for an amount.
        if any(right.start - left.end < 6 for left, right in pairwise(found)):
            found = _moneys(self.clockless)
        return found

    @property
    def _hidden(self) -> str:
        """The lower-case text with dates, times, ids and addresses blanked."""
        hidden = _blanked(self.clockless, self.ids)
        if "://" in self.low or "@" in self.low or "www." in self.low or "24/7" in self.low:
            hidden = _blanked(hidden, [_Found(*match.span(), None) for match in _WEB.finditer(self.low)])
        return hidden


_CACHED_LENGTH = 50_000
_cached_values = lru_cache(maxsize=128)(_Values)


def _values(text: str) -> _Values:
    """The values of a text; callers ask for several types of one text in turn, so recent ones are kept."""
    return _cached_values(text) if len(text) <= _CACHED_LENGTH else _Values(text)


def dates(text: str, *, year: int | None = None) -> list[str]:
    """The dates in a text as ISO strings, in order of appearance; `year` completes forms without one."""
    return [item.value for item in _values(text).dates(year)]


def times(text: str) -> list[str]:
    """The times in a text as 24-hour "HH:MM", in order of appearance."""
    return [item.value for item in _values(text).times]


def numbers(text: str) -> list[float]:
    """The numbers in a text that do not belong to dates, times or ids, in order of appearance."""
    return [item.value for item in _values(text).numbers]


def moneys(text: str) -> list[float]:
    """The amounts with a currency in a text, in order of appearance."""
    return [item.value for item in _values(text).moneys]


def ids(text: str, pattern: str | None = None) -> list[str]:
    """The id tokens in a text, case kept; with `pattern`, the whole tokens that the regex matches fully."""
    if pattern is None:
        return [item.value for item in _values(text).ids]
    full = re.compile(pattern)
    return [match[0] for match in _WIDE_TOKEN.finditer(_values(text).plain) if full.fullmatch(match[0])]


def _whole(text: str) -> str:
    """All of a text in plain lower case, however long."""
    return _values(text).low if len(text) <= LONGEST_READ else _plain(text).lower()


def mentions(text: str, name: str) -> int:
    """How often a name is said in a text, regardless of case, accents, spacing and markup."""
    return len(_mentions(_whole(text), name))


class _Reading(_Values):
    """An answer: its values, and what its sentences and marks say about them."""

    def __init__(self, text: str) -> None:
        super().__init__(_untagged(_ends(text, LONGEST)))

    @_lazy
    def sentences(self) -> list[_Sentence]:
        return list(_sentences(self.plain, self.low))

    @_lazy
    def _starts(self) -> list[int]:
        return [sentence.start for sentence in self.sentences]

    def sentence(self, at: int) -> int:
        """The index of the sentence that holds a place."""
        return max(0, bisect_right(self._starts, at) - 1)

    @_lazy
    def emphasis(self) -> list[tuple[int, int]]:
        return [match.span() for match in _EMPHASIS.finditer(self.low)]

    @_lazy
    def parens(self) -> list[tuple[int, int]]:
        return [match.span() for match in _PAREN.finditer(self.low)]

    @_lazy
    def numbering(self) -> set[int]:
        """The places of list numbers; a single "12." at the start of a text is an answer, not a list."""
        found = [(match.start(1), match[1]) for match in _NUMBERING.finditer(self.low)]
        if len(found) == 1 and found[0][1] != "1":
            return set()
        return {start for start, _ in found}

    @_lazy
    def quantities(self) -> set[float]:
        """The numbers and amounts, rounded so that equal ones can be looked up."""
        return {round(item.value, 6) for item in (*self.numbers, *self.moneys)}

    @_lazy
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


def _operands(low: str, found: Sequence[_Found]) -> tuple[set[int], dict[float, int]]:
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
    context: _Context = _NO_CONTEXT


def _float(value: Any) -> float | None:
    """The number that a value stands for, or None."""
    if isinstance(value, (int, float)):
        try:
            return float(value) if isfinite(value) else None
        except OverflowError:
            return None
    text = str(value)
    found = numbers(text) if len(text) <= _LONGEST_NAME else []
    return found[0] if len(found) == 1 else None


def _close(left: float, right: float, tolerance: float) -> bool:
    """Whether two numbers are equal up to a tolerance, or up to rounding."""
    return abs(left - right) <= max(tolerance, 1e-6)


def _clipped(found: _Found, value: Any, match: bool, soft: bool = False) -> _Claim:
    return _Claim(found.start, found.end, value, match, soft)


_COMPOSITE = re.compile(
    r"(?<![0-9a-z.,])([0-9]{1,3})\s?(?:h|hrs?|hours?)[\s,]{0,2}(?:and\s)?([0-9]{1,2})\s?(?:m|mins?|minutes?)(?![a-z])"
)
_LABEL = re.compile(
    r"\b(?P<label>step|option|day|item|line|note|part|section|figure|table|stage|rank|room|gate|platform|track|seat"
    r"|terminal|floor|chapter|page|route|bus|tram|no\.|nr\.?|version|level|row|zone|leg|week|night|round|question"
    r"|phase|top|hotel|museum|place|hall)\s?$|#\s?$"
)
_YEAR_BEFORE = re.compile(r"\b(?:in|since|year|by|until|during|of|summer|winter|spring|autumn|fall)\s$")


def _number_claims(reading: _Reading, expected: Expected, given: _Reading) -> list[_Claim]:
    """The numbers of a text as claims: composite durations count as one, amounts and labels are soft."""
    wanted = _float(expected.value)
    if wanted is None:
        return []
    composites = [
        (match.start(), match.end(), int(match[1]), int(match[2])) for match in _COMPOSITE.finditer(reading.low)
    ]
    claims = []
    for start, end, hours, minutes in composites:
        total = 60.0 * hours + minutes
        fits = _close(total, wanted, expected.tolerance) or _close(total / 60, wanted, expected.tolerance)
        claims.append(_Claim(start, end, wanted if fits else total, fits))
    amounts = [(item.start, item.end) for item in reading.moneys]
    for item in reading.numbers:
        if _inside(item.start, amounts) or _inside(item.end - 1, amounts):
            soft = True
        elif _inside(item.start, composites):
            continue
        else:
            soft = item.note == "%" or _is_label(reading.low, item, given.low) or _is_difference(reading.low, item)
        claims.append(_clipped(item, item.value, _close(item.value, wanted, expected.tolerance), soft))
    claims += _zero_claims(reading, expected.kind, wanted)
    claims.sort(key=lambda claim: claim.start)
    return claims


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


def _zero_claims(reading: _Reading, kind: Kind, wanted: float) -> list[_Claim]:
    """The words that say that there are none or that it is free; they are firm only after "but"."""
    found = list(_NONE.finditer(reading.low))
    if kind == "money":
        found += _FREE.finditer(reading.low)
    claims = []
    for match in found:
        firm = _BUT.search(reading.low, max(0, match.start() - 12), match.start())
        claims.append(_Claim(match.start(), match.end(), 0.0, wanted == 0.0, soft=not firm, words=True))
    return claims


_DIFFERENCE_AFTER = re.compile(
    r"(?:\s[a-z]{1,12})?\s(?:(?:less|more|fewer)\sthan|cheaper|pricier|dearer|lower|higher|faster|slower|closer"
    r"|off\b|discount)"
)
_DIFFERENCE_BEFORE = re.compile(r"\bby\s[€$]?$")


def _is_difference(low: str, item: _Found) -> bool:
    """Whether a number says by how much two others differ ("2 euros less than", "cheaper by 2 euros")."""
    before = low[max(0, item.start - 6) : item.start]
    return bool(_DIFFERENCE_AFTER.match(low, item.end) or _DIFFERENCE_BEFORE.search(before))


def _is_label(low: str, item: _Found, given: str) -> bool:
    """Whether a number names a thing ("room 12") or a year, and the request does not ask for just that."""
    before = low[max(0, item.start - 14) : item.start]
    if item.end - item.start == 4 and 1900 <= item.value <= 2100 and _YEAR_BEFORE.search(before):
        return True
    label = _LABEL.search(before)
    return label is not None and not (label["label"] and label["label"] in given)


def _inside(place: int, spans: Sequence[tuple[Any, ...]]) -> bool:
    """Whether a place lies in one of the spans, which are in order and apart."""
    at = bisect_right(spans, place, key=itemgetter(0))
    return at > 0 and place < spans[at - 1][1]


def _currency(expected: Expected, given: _Reading) -> str:
    """The currency of an expected amount: its own, else the only one of the request, else euros."""
    if isinstance(expected.value, str):
        for item in _moneys(_plain(expected.value[:_LONGEST_NAME]).lower()):
            return item.note or "EUR"
    named = {_CURRENCIES.get(word) for word in _CURRENCY.findall(given.low)}
    return str(named.pop()) if len(named) == 1 else "EUR"


def _money_claims(reading: _Reading, expected: Expected, given: _Reading) -> list[_Claim]:
    """The amounts of a text in the expected currency; bare numbers only if it holds no amount."""
    if isinstance(expected.value, str) and len(expected.value) <= _LONGEST_NAME and (own := moneys(expected.value)):
        wanted: float | None = own[0]
    else:
        wanted = _float(expected.value)
    if wanted is None:
        return []
    if not reading.moneys:
        return _number_claims(reading, replace(expected, value=wanted), given)
    currency = _currency(expected, given)
    shared = bool(_EACH_ASKED.search(given.low))
    claims = [
        _clipped(
            item,
            item.value,
            _close(item.value, wanted, expected.tolerance),
            _is_difference(reading.low, item) or (not shared and bool(_EACH.match(reading.low, item.end))),
        )
        for item in reading.moneys
        if item.note in ("", currency)
    ]
    claims += _zero_claims(reading, expected.kind, wanted)
    return sorted(claims, key=lambda claim: claim.start)


_EACH = re.compile(r"\s?(?:\*\*\s?)?(?:/\s?|\(?(?:per|an?)\s|\(?each\b|apiece\b|pp\b)(?!total)")
_EACH_ASKED = re.compile(r"\b(?:each|apiece|per\s[a-z]+|a\s(?:person|night|day|ticket|head)|one\s[a-z]+)\b")
_AFTER_BEFORE = re.compile(r"\b(?:after|before|by|since|later than|earlier than|prior to)\s(?:the\s|on\s|at\s)?$")


def _moment_claims(low: str, found: Iterable[_Found], wanted: str) -> list[_Claim]:
    """Dates or times as claims; those that only bound another ("after 14:00") are soft."""
    return [
        _clipped(
            item,
            item.value,
            item.value == wanted,
            bool(_AFTER_BEFORE.search(low[max(0, item.start - 20) : item.start])),
        )
        for item in found
    ]


def _date_claims(reading: _Reading, expected: Expected, given: _Reading) -> list[_Claim]:
    known = dates(str(expected.value)[:_LONGEST_NAME])
    if not known:
        return []
    return _moment_claims(reading.low, reading.dates(int(known[0][:4])), known[0])


def _time_claims(reading: _Reading, expected: Expected, given: _Reading) -> list[_Claim]:
    known = times(str(expected.value)[:_LONGEST_NAME])
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
        return _id_places(reading.low, name)
    if len(name) == 1 and name.isalpha():
        return _lone_letter(reading, name)
    return _mentions(reading.low, name)


def _name_claims(reading: _Reading, expected: Expected, given: _Reading) -> list[_Claim]:
    """The mentions of the candidates; where one lies within another, the longer one stands."""
    wanted = str(expected.value)
    rivals = [other for other in expected.others if _plain(other).lower() != _plain(wanted).lower()]
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
_WORSE = re.compile(
    r"\b(more|pricier|dearer|slower|farther|further|worse)(?:\s(?:expensive|costly|away))?\sthan\s(?:the\s|hotel\s)?$"
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
_FROM = re.compile(r"\bfrom\s?$")
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
    r"(?:\bout\sof(?:\s(?:the|a\spossible))?|\bof\s(?:the|those|these|all|its|their|our|your)|\bamong(?:\s(?:the"
    r"|all|those))?"
    r"|\bfrom\samong|[0-9]\sof|%\sof|^\W*of|\bscale\sof)(?:\s(?:total|top|available|only|all)){0,2}\s?$"
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


def _judged(reading: _Reading, claims: list[_Claim], expected: Expected, ranged: bool, given: str) -> list[_Claim]:
    """The claims with everything that the text says about each."""
    judged: list[_Claim] = []
    named = expected.kind in _NAMED
    for index, claim in enumerate(claims):
        previous = claims[index - 1].end if index else 0
        context = _context(reading, claim.start, claim.end, previous)
        judged.append(
            replace(
                claim,
                context=context,
                dropped=_is_dropped(reading, claim, context, expected.kind, given),
                approximate=not named and _is_approximate(context, expected),
                alternative=_is_alternative(context, ranged),
                dismissed=bool(_CONCEDED.search(context.before)) or (named and _is_dismissed(context, given)),
            )
        )
    _join(reading.low, judged, expected.kind, ranged)
    return judged


def _is_better(reading: _Reading, claim: _Claim, given: str) -> bool:
    """Whether what something else is compared with comes out better, and the request asks for the better."""
    found = _WORSE.search(reading.low, max(0, claim.start - 50), claim.start)
    return found is not None and found[1] not in given and bool(_SUPERLATIVE.search(given))


def _is_dropped(reading: _Reading, claim: _Claim, context: _Context, kind: Kind, given: str) -> bool:
    """Whether an occurrence is not claimed: asked, negated, compared with, looked at, an operand, a whole."""
    before = context.before
    if reading.sentences[reading.sentence(claim.start)].question:
        return True
    if _NEGATED.search(before) or _DOUBTED.search(before) or _NARRATED.search(before):
        return True
    if _COMPARED.search(before) and not _is_better(reading, claim, given):
        return True
    if _REFUTED.match(context.after):
        return True
    if kind in _NAMED:
        return bool(_BEATEN.search(before) or _AMONG.search(before))
    if kind in ("number", "money"):
        return _is_part(reading, claim, context)
    return False


def _is_part(reading: _Reading, claim: _Claim, context: _Context) -> bool:
    """Whether a number is a list number, an operand, an intermediate result or the whole of a part."""
    if claim.start in reading.numbering or _WHOLE.search(context.before):
        return True
    places, last = reading.operands
    first = bisect_left(reading.numbers, claim.start, key=_start)
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
    return expected.kind in ("number", "money") and bool(_FROM.search(context.before))


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
        if kind in ("number", "money") and _RANGE.fullmatch(gap):
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
    r"|total(?:s|ling)?|sums?|(?:that|which)\s(?:makes|gives|leaves|means)|makes|making|giving|comes?\sto"
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
    r"|highest|lowest|largest|biggest|smallest|oldest|newest|soonest|(?:most|least)\s[a-z]+|winner|wins|right"
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
    r"|smallest|oldest|newest|soonest|(?:most|least)\s[a-z]+|winner|wins|right|correct|recommended|cheaper|closer"
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
        claims = [claim for claim in claims if not _inside(claim.start, self.reading.parens)] or claims
        if self.kind in ("number", "money") and len(claims) > 2:
            # "14 sessions: 5 on Friday, 9 on Saturday" is one value and its breakdown.
            head = _BREAKDOWN.match(self.reading.low, claims[0].end, claims[1].start)
            return claims[:1] if head else claims
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


_NOW_BEFORE = re.compile(r"\bnow\b[^,;.]{0,30}$")
_NOW_AFTER = re.compile(r"(?:(?!\b(?:and|but|to|is|was)\b)[^,;.]){0,25}\bnow\b")


def _by_now(trial: _Trial) -> bool | None:
    """What is said to hold now decides over what held before."""
    return trial.single(
        [c for c in trial.claims if _NOW_BEFORE.search(c.context.before) or _NOW_AFTER.match(c.context.after)]
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
    if trial.kind != "number":
        return None
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


def _by_superlative(trial: _Trial) -> bool | None:
    """What is called the cheapest, the best or the choice decides."""
    low = trial.reading.low
    asked = {match[0] for match in _SUPERLATIVE.finditer(trial.given.low)}
    found: list[tuple[str, list[_Claim]]] = []
    taken: set[int] = set()
    for claim in trial.claims:
        after = _SUPERLATIVE_AFTER.match(low[claim.end : claim.end + 120].translate(_MARKUP))
        if after is not None and trial.kind in _NAMED and _counts(after[0], asked):
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
    return trial.single([claim for claim in trial.claims if _inside(claim.start, trial.reading.emphasis)])


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
    _by_question,
    _by_conclusion,
    _by_equation,
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
            if expected.kind in _NAMED and _plain(str(ally.value)).lower() == _plain(str(claim.value)).lower():
                return True
        elif ally.kind in ("number", "money"):
            wanted = _float(ally.value)
            if isinstance(claim.value, float) and wanted is not None and _close(claim.value, wanted, ally.tolerance):
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
    ranged = any(ally.kind == expected.kind for ally in allies) and expected.kind in ("date", "time")
    claims = _judged(reading, found, expected, ranged, given.low)
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
    trial = _Trial(reading, sorted(own + rivals, key=lambda claim: claim.start), kind, given)
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


# --- shown ----------------------------------------------------------------------------------

_ISO_DATE = re.compile(r"([0-9]{4})-[0-9]{2}-[0-9]{2}")
_ISO_MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2})(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(?:Z|[+-][0-9:]{4,6})?"
)
_CLOCK_TIME = re.compile(r"([0-9]{1,2}:[0-9]{2})(?::00)?")
_DECIMAL = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,12})?")


def _shows_date(value: str, text: str) -> bool:
    """Whether a date is visible; a form of unknown order shows both dates that it may mean."""
    found = _values(text).all_dates(int(value[:4]))
    return any(item.value == value or value in item.note.split("/") for item in found)


def _shows_number(value: float, text: str) -> bool:
    """Whether a number is visible as a number or an amount."""
    return any(_close(item, value, 0.0) for item in numbers(text)) or any(
        _close(item, value, 0.0) for item in moneys(text)
    )


def _shows_string(value: str, text: str) -> bool:
    """Whether a string is visible in a form of the type that it looks like."""
    if _ISO_DATE.fullmatch(value):
        return _shows_date(value, text)
    if moment := _ISO_MOMENT.fullmatch(value):
        return _shows_date(moment[1], text) and moment[2] in times(text)
    if clock := _CLOCK_TIME.fullmatch(value):
        return clock[1].zfill(5) in times(text)
    if _DECIMAL.fullmatch(value) and _shows_number(float(value), text):
        return True
    if _DIGIT.search(value) and not any(char.isspace() for char in value):
        return bool(_id_places(_whole(text), value))
    return mentions(text, value) > 0


def shown(value: Any, text: str) -> bool:
    """Whether a scalar value is visible in a text in some form of its type."""
    if value is None:
        return False
    if isinstance(value, bool):
        return mentions(text, "true" if value else "false") > 0 or mentions(text, "yes" if value else "no") > 0
    if isinstance(value, (int, float)):
        number = _float(value)
        return number is not None and _shows_number(number, text)
    value = str(value).strip()
    return bool(value) and _shows_string(value, text)
