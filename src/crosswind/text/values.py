"""Typed values in free text: dates, times, numbers, amounts, ids and names as people write them.

The module recognises values by type.  It is not a language model: it reads surface forms in English
(with the number and date formats of other languages).  Whether an answer states a value is decided in
`crosswind.text.answers`.

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

A text of more than `LONGEST_READ` characters is read by its beginning and its end.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from functools import lru_cache
from itertools import pairwise
from math import isfinite
from operator import itemgetter
from typing import Any, Generic, NamedTuple, TypeVar

__all__ = ["dates", "ids", "mentions", "moneys", "numbers", "shown", "times"]

LONGEST_READ = 100_000

_Result = TypeVar("_Result")


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


def plain_text(text: str) -> str:
    """The text without accents, invisible marks and typographic variants."""
    if text.isascii():
        return text
    return _FOREIGN.sub(lambda match: match[0].translate(_FOLDING), text)


class Found(NamedTuple):
    """A value found in a text: where, which, and a note that depends on its kind."""

    start: int
    end: int
    value: Any
    note: str = ""


_BLANK = "ª"  # a letter that no plain text holds and that belongs to no value


def _blanked(text: str, *groups: Sequence[Found]) -> str:
    """The text with the found values overwritten, same length."""
    found = [item for group in groups for item in group]
    if not found:
        return text
    if len(found) > 1:
        found.sort(key=found_start)
    pieces: list[str] = []
    at = 0
    for start, end, *_ in found:
        if end > at:
            pieces += (text[at:start], _BLANK * (end - max(start, at)))
            at = end
    pieces.append(text[at:])
    return "".join(pieces)


def is_inside(place: int, spans: Sequence[tuple[Any, ...]]) -> bool:
    """Whether a place lies in one of the spans, which are in order and apart."""
    at = bisect_right(spans, place, key=itemgetter(0))
    return at > 0 and place < spans[at - 1][1]


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


def _numeric_dates(low: str) -> Iterator[Found]:
    """The dates in digits; one that may mean two days has no value but notes both."""
    for match in _NUMERIC_DATE.finditer(low):
        first, mark, second, third = match.groups()
        lengths = (len(first), len(third))
        # 1.2.3 is a version and 1-3-12 part of an id; two digits are a year only in 03.05.31.
        short = lengths == (2, 2) and len(second) == 2 and mark != "-"
        if not short and lengths not in ((4, 1), (4, 2), (1, 4), (2, 4)):
            continue
        found = _readings(first, mark, second, third)
        yield Found(match.start(), match.end(), found[0] if len(found) == 1 else None, "/".join(found))


class _Named(NamedTuple):
    """A date with a written month: the spans of one or two days, the month and perhaps the year."""

    start: int
    end: int
    days: list[tuple[int, int, int]]
    month: int
    year: int | None


def found_start(item: _Named | Found) -> int:
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
        found.sort(key=found_start)
    return found


def _dates(plain: str, low: str, year: int | None) -> list[Found]:
    """All dates of a text; those that cannot be resolved have the value None but keep their span."""
    if not _DIGIT.search(low):
        return []
    found = list(_numeric_dates(low))
    named = _named_dates(plain, low)
    years = _adopted(low, named)
    for item, known in zip(named, years, strict=True):
        found += _resolved(item, year if known is None else known)
    if len(found) > 1:
        found.sort(key=found_start)
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


def _resolved(item: _Named, year: int | None) -> list[Found]:
    """The dates that a form with a written month stands for in a year."""
    if not item.days:
        return [Found(item.start, item.end, None)]
    values = [None if year is None else _iso(year, item.month, day) for _, _, day in item.days]
    if len(values) == 1:
        return [Found(item.start, item.end, values[0])]
    return [Found(item.start, item.days[0][1], values[0]), Found(item.days[1][0], item.end, values[1])]


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


def _times(low: str) -> list[Found]:
    """All times of a text in order; a span of two ("9 to 11 am") gives both."""
    if not _DIGIT.search(low) and "noon" not in low and "mid" not in low:
        return []
    found: list[Found] = []
    for match in _TIME.finditer(low):
        hour, minute, half, day, minute_h, minute_dot, half_only, day_clock, day_only = match.groups()
        part = half or day or half_only or day_clock or day_only
        value = _clock(int(hour), int(minute or minute_h or minute_dot or 0), part)
        if value is not None:
            if part:
                found += _first_times(low, match.start(), part, value)
            found.append(Found(match.start(), match.end(), value))
    moments = list(_iso_times(low))
    if moments:  # the offset of a moment is no time
        found = [item for item in found if not is_inside(item.start, moments)]
    others = [*moments, *_named_times(low)]
    return sorted(found + others) if others else found


def _first_times(low: str, end: int, part: str, last: str) -> Iterator[Found]:
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
        yield Found(match.start(1), match.end(2) if match[2] else match.end(1), value)


def _iso_times(low: str) -> Iterator[Found]:
    """The times of ISO moments; the span takes in the date, so that what is said before it is said of the time."""
    for match in _ISO_TIME.finditer(low):
        value = _clock(int(match[1][:2]), int(match[1][3:5]), None)
        if value is not None and int(value[3:]) < 60:
            yield Found(max(match.start() - 9, 0), match.end(), value)


def _named_times(low: str) -> Iterator[Found]:
    """Noon and midnight."""
    if "noon" in low or "mid" in low:
        for match in _NAMED_TIME.finditer(low):
            yield Found(match.start(), match.end(), "00:00" if match[0].endswith("night") else "12:00")


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


def _ids(plain: str, clockless: str) -> list[Found]:
    """The id tokens of a text whose dates and times are blanked in `clockless`."""
    found: list[Found] = []
    at = 0
    for mark in _TOKEN_MARK.finditer(clockless):
        if mark.start() < at:
            continue
        head = _TOKEN_HEAD.search(clockless, max(at, mark.start() - 64), mark.end())
        run = _RUN.match(clockless, mark.start())
        at = run.end() if run else mark.end()
        for match in _TOKEN.finditer(clockless, head.start() if head else mark.start(), at):
            token = match[0]
            if _DIGIT.search(token) and not token.isdigit() and _BLANK not in token and not _NO_ID.fullmatch(token):
                found.append(Found(match.start(), match.end(), plain[match.start() : match.end()]))
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


def _numeral(low: str, match: re.Match[str]) -> Found:
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
    return Found(start, end, value, "%" if percent else "")


def _is_pronoun(low: str, match: re.Match[str]) -> bool:
    """Whether a matched "one" stands for a thing and not for a number."""
    before = low[max(0, match.start() - 24) : match.start()]
    if _ONE_PRONOUN.search(before) or _ONE_OF.match(low, match.end()):
        return True
    return not (_ONE_AFTER.match(low, match.end()) or _ONE_BEFORE.search(before))


def _word_numbers(low: str) -> Iterator[Found]:
    """The numbers written in words."""
    for match in _WORD_NUMBER.finditer(low):
        words = match["w"]
        value = _spelled(words)
        if value is None or (words == "one" and not match["half"] and not match["pct"] and _is_pronoun(low, match)):
            continue
        value += 0.5 if match["half"] else 0.0
        negative = _is_negative(low, match.start())
        yield Found(match.start(), match.end(), -value if negative else value, "%" if match["pct"] else "")


def _numbers(low: str, hidden: str) -> list[Found]:
    """All numbers of a text whose dates, times, ids and addresses are blanked in `hidden`."""
    found: list[Found] = []
    for match in _NUMBER.finditer(hidden):
        start, end = match.span()
        if (
            match.lastindex == 1
            and hidden[start - 1 : start] in ("", " ", "(", "*")
            and hidden[start - 2 : start] != "s "
        ):
            found.append(Found(start, end, _parsed(match[1])))  # the usual case: no sign, no fraction, no scale
        else:
            found.append(_numeral(low, match))
    words = list(_word_numbers(low))
    if words:
        found = sorted(found + words) if found else words
    return found


# --- amounts of money -----------------------------------------------------------------------

CURRENCIES = {
    "€": "EUR", "eur": "EUR", "euro": "EUR", "euros": "EUR", "$": "USD", "usd": "USD", "dollar": "USD",
    "dollars": "USD", "bucks": "USD", "£": "GBP", "gbp": "GBP", "pound": "GBP", "pounds": "GBP", "¥": "JPY",
    "jpy": "JPY", "yen": "JPY", "chf": "CHF", "franc": "CHF", "francs": "CHF",
}  # fmt: skip
CURRENCY = re.compile(r"[€$£¥]|(?<![a-z])(?:eur|euros?|usd|dollars?|bucks|gbp|pounds?|jpy|yen|chf|francs?)(?![a-z])")
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
        value += (float(cents) if cents.isdigit() else _spelled(cents) or 0.0) / 100.0
    start = item.start - 1 if _is_negative(low, item.start) else item.start
    before = _UNIT_BEFORE.search(low, max(0, item.start - 7), item.start)
    currency = CURRENCIES[after["c"]] if after["c"] else ""
    return Found(before.start() if before else start, after.end(), value if start == item.start else -value, currency)


def _moneys(low: str) -> list[Found]:
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


# --- names ----------------------------------------------------------------------------------

LONGEST_NAME = 400
SHORT_TEXT = 4000  # in which a name or an id is found sooner than a regex of it is made
_GAP = r"[\s*_`\"'-]{1,8}"
_NAME_SPLIT = re.compile(r"[\s*_`\"-]+")


_GAP_HERE = re.compile(_GAP)


@lru_cache(maxsize=4096)
def _name_words(name: str) -> tuple[str, ...]:
    """The words by which a name is looked up in plain lower-case text; none where there is nothing to look for."""
    words = [word for word in _NAME_SPLIT.split(plain_text(name).lower()) if word.strip("'")]
    if len(words) > 2 and words[0] in ("the", "dr", "dr.", "prof", "prof.", "mr", "mr.", "mrs", "mrs.", "ms", "ms."):
        words = words[1:]
    return tuple(words) if sum(map(len, words)) <= LONGEST_NAME else ()


@lru_cache(maxsize=4096)
def _name_pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    """The regex of a name in plain lower-case text."""
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


def _word_places(low: str, words: tuple[str, ...]) -> list[tuple[int, int]]:
    """What the regex of a name finds, for words of letters and digits alone, without the time to make it."""
    found: list[tuple[int, int]] = []
    at = low.find(words[0])
    while at >= 0:
        end = at + len(words[0])
        whole = not (at and low[at - 1].isalnum())
        for word in words[1:]:
            gap = _GAP_HERE.match(low, end) if whole else None
            whole = gap is not None and low.startswith(word, gap.end())
            end = gap.end() + len(word) if gap else end
        whole = whole and not low[end : end + 1].isalnum()
        if whole:
            found.append((at, end))
        at = low.find(words[0], end if whole else at + 1)
    return found


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


def name_places(low: str, name: str) -> list[tuple[int, int]]:
    """The places where a name stands in plain lower-case text."""
    words = _name_words(name) if len(name) <= 4 * LONGEST_NAME else ()
    if words and len(low) <= SHORT_TEXT and "and" not in words and all(map(str.isalnum, words)):
        return _word_places(low, words)
    if words:
        return [match.span() for match in _name_pattern(words).finditer(low)]
    folded = plain_text(name).lower().strip()
    return _long_mentions(low, folded) if folded else []


# What stands around an id that is a whole token.
_ID_BEFORE = re.compile(r"(?<![^\W_])(?<![^\W_][-_])(?<!\w\.)")
_ID_AFTER = re.compile(r"(?![^\W_])(?![-_][^\W_])(?!\.[0-9])")


@lru_cache(maxsize=4096)
def _id_pattern(value: str) -> re.Pattern[str]:
    """The regex of an id as a whole token in lower-case text."""
    return re.compile(_ID_BEFORE.pattern + re.escape(value) + _ID_AFTER.pattern)


def id_places(low: str, value: str) -> list[tuple[int, int]]:
    folded = plain_text(value).lower().strip()
    if not folded or folded not in low:
        return []
    if len(folded) > LONGEST_NAME:
        return _long_mentions(low, folded)
    if len(low) > SHORT_TEXT:
        return [match.span() for match in _id_pattern(folded).finditer(low)]
    found, at = list[tuple[int, int]](), low.find(folded)
    while at >= 0:
        end = at + len(folded)
        whole = _ID_BEFORE.match(low, at) and _ID_AFTER.match(low, end)
        if whole:
            found.append((at, end))
        at = low.find(folded, end if whole else at + 1)
    return found


# --- readings -------------------------------------------------------------------------------


def both_ends(text: str, limit: int) -> str:
    """The text, or its beginning and end if it is longer than the limit."""
    return text if len(text) <= limit else f"{text[: limit // 2]}\n{text[-limit // 2 :]}"


class lazy(Generic[_Result]):
    """An attribute that is found on first use; unlike functools.cached_property it takes no lock."""

    def __init__(self, find: Callable[[Any], _Result]) -> None:
        self.find = find
        self.name = find.__name__

    def __get__(self, owner: Any, kind: type) -> _Result:
        value = owner.__dict__[self.name] = self.find(owner)
        return value


class TextValues:
    """The values of a text by type, each type found on first use."""

    def __init__(self, text: str) -> None:
        self.plain = plain_text(both_ends(text, LONGEST_READ))
        self.low = self.plain.lower()
        self._dates: dict[int | None, list[Found]] = {}

    def all_dates(self, year: int | None) -> list[Found]:
        """The dates, with forms without a year read in `year`; unresolved ones have no value."""
        if year not in self._dates:
            self._dates[year] = _dates(self.plain, self.low, year)
        return self._dates[year]

    def dates(self, year: int | None) -> list[Found]:
        """The resolved dates."""
        return [item for item in self.all_dates(year) if item.value]

    @lazy
    def times(self) -> list[Found]:
        return _times(self.low)

    @lazy
    def clockless(self) -> str:
        """The lower-case text with dates and times blanked."""
        return _blanked(self.low, self.all_dates(None), self.times)

    @lazy
    def ids(self) -> list[Found]:
        return _ids(self.plain, self.clockless) if _DIGIT.search(self.low) else []

    @lazy
    def numbers(self) -> list[Found]:
        return _numbers(self.low, self._hidden)

    @lazy
    def moneys(self) -> list[Found]:
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
            hidden = _blanked(hidden, [Found(*match.span(), None) for match in _WEB.finditer(self.low)])
        return hidden


_CACHED_LENGTH = 50_000
_cached_values = lru_cache(maxsize=128)(TextValues)


def _values(text: str) -> TextValues:
    """The values of a text; callers ask for several types of one text in turn, so recent ones are kept."""
    return _cached_values(text) if len(text) <= _CACHED_LENGTH else TextValues(text)


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
    return _values(text).low if len(text) <= LONGEST_READ else plain_text(text).lower()


def mentions(text: str, name: str) -> int:
    """How often a name is said in a text, regardless of case, accents, spacing and markup."""
    return len(name_places(_whole(text), name))


# --- shown ----------------------------------------------------------------------------------

_ISO_DATE = re.compile(r"([0-9]{4})-[0-9]{2}-[0-9]{2}")
_ISO_MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2})(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(?:Z|[+-][0-9:]{4,6})?"
)
_CLOCK_TIME = re.compile(r"([0-9]{1,2}:[0-9]{2})(?::00)?")
_DECIMAL = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,12})?")
_LONGEST_FORM = 32
_OTHER_ID = re.compile(r"([A-Za-z]{1,12})[-_.:/#]?([0-9]{2,15})")
_JOINT = re.compile(r"[-_]")


def number_of(value: Any) -> float | None:
    """The number that a value stands for, or None."""
    if isinstance(value, (int, float)):
        try:
            return float(value) if isfinite(value) else None
        except OverflowError:
            return None
    text = str(value)
    found = numbers(text) if len(text) <= LONGEST_NAME else []
    return found[0] if len(found) == 1 else None


def is_close(left: float, right: float, tolerance: float) -> bool:
    """Whether two numbers are equal up to a tolerance, or up to rounding."""
    return abs(left - right) <= max(tolerance, 1e-6)


def _shows_date(value: str, text: str) -> bool:
    """Whether a date is visible; a form of unknown order shows both dates that it may mean."""
    found = _values(text).all_dates(int(value[:4]))
    return any(item.value == value or value in item.note.split("/") for item in found)


def _shows_number(value: float, text: str) -> bool:
    """Whether a number is visible as a number or an amount."""
    return any(is_close(item, value, 0.0) for item in numbers(text)) or any(
        is_close(item, value, 0.0) for item in moneys(text)
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
    if len(value) <= _LONGEST_FORM and _DIGIT.search(value) and _shows_form(value, text):
        return True
    if _DIGIT.search(value) and not any(char.isspace() for char in value):
        return bool(id_places(_whole(text), value))
    return mentions(text, value) > 0


def _shows_form(value: str, text: str) -> bool:
    """Whether a date that is written in another form, or an id with another separator, is visible."""
    if other := _OTHER_ID.fullmatch(value):
        bare = (other[1] + other[2]).lower()
        return other[2] in text and any(_JOINT.sub("", item.value).lower() == bare for item in _values(text).ids)
    found = _values(value).all_dates(None)
    if len(found) != 1 or found[0].end - found[0].start < len(value):
        return False
    return any(_shows_date(day, text) for day in (found[0].value or found[0].note).split("/") if day)


def shown(value: Any, text: str) -> bool:
    """Whether a scalar value is visible in a text in some form of its type."""
    if value is None:
        return False
    if isinstance(value, bool):
        return mentions(text, "true" if value else "false") > 0 or mentions(text, "yes" if value else "no") > 0
    if isinstance(value, (int, float)):
        number = number_of(value)
        return number is not None and _shows_number(number, text)
    value = str(value).strip()
    return bool(value) and _shows_string(value, text)
