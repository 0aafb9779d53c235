"""Dates and times of day as people write them.

Dates are ISO, year/month/day, day month year, month day year, dotted day.month.year, and ranges ("3 to 5 May 2031"
gives both ends). With slashes or hyphens (03/05/2031) the order is unknown: the form is a date only if one part is
above 12 or both are equal; otherwise it is neither a date nor a number. A form without a year takes the year of a date
it is joined to ("May 3 to May 5, 2031"), else `year`; else it is no date. Weekdays are not checked.

Times are read as 24-hour "HH:MM". Without am/pm or a part of the day, "2:30" is 02:30; 24:00 is 00:00. "2h30m" is a
duration and not a time.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from crosswind.text.values.plain import DIGIT, Found, is_inside

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
CLOCK_PART = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(?:z|[+-][0-9]{2}:?[0-9]{2})?"

_NUMERIC_DATE = re.compile(
    r"([0-9](?<![0-9a-z][0-9])(?<![0-9a-z][-._][0-9])(?:[0-9]{3}|[0-9]?))([-/.])([0-9]{1,2})\2([0-9]{4}|[0-9]{1,2})"
    rf"(?:t{CLOCK_PART})?(?![0-9a-z])(?![-_][0-9a-z])(?!\.[0-9])(?!/[0-9]{{1,3}}(?![0-9]))"
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
        found.sort(key=itemgetter(0))
    return found


def find_dates(plain: str, low: str, year: int | None) -> list[Found]:
    """All dates of a text; those that cannot be resolved have the value None but keep their span."""
    if not DIGIT.search(low):
        return []
    found = list(_numeric_dates(low))
    named = _named_dates(plain, low)
    years = _adopted(low, named)
    for item, known in zip(named, years, strict=True):
        found += _resolved(item, year if known is None else known)
    if len(found) > 1:
        found.sort(key=itemgetter(0))
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


# ---------------------------------------------------------------- times of day

_PART = r"\s(?:in\sthe|at)\s(morning|afternoon|evening|night)(?![a-z])"
_HALF = r"\s?([ap])\.?m(?:\.|(?![a-z]))"
_TIME = re.compile(
    r"([0-9](?<![0-9a-zª:+][0-9])(?<![0-9][.,][0-9])[0-9]?)(?:"
    rf":([0-5][0-9])(?::[0-5][0-9](?:\.[0-9]{{1,9}})?)?(?![0-9]|:[0-9])(?:{_HALF}|{_PART})?"
    r"|h([0-5][0-9])(?![0-9a-z])"
    rf"|(?:\.([0-5][0-9]))?(?:{_HALF}|\suhr(?![a-z])|\so'?clock(?:{_PART})?|{_PART}))"
)
_ISO_TIME = re.compile(rf"[0-9]t({CLOCK_PART})(?![0-9:])")
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


def find_times(low: str) -> list[Found]:
    """All times of a text in order; a span of two ("9 to 11 am") gives both."""
    if not DIGIT.search(low) and "noon" not in low and "mid" not in low:
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
