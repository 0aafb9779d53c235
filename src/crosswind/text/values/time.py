"""Times of day as people write them, as 24-hour "HH:MM".

Without am/pm or a part of the day, "2:30" is 02:30; 24:00 is 00:00. "2h30m" is a duration and not a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from crosswind.text.values.date import CLOCK_PART
from crosswind.text.values.found import DIGIT, Found, is_inside

_PART = r"\s(?:in\sthe|at)\s(morning|afternoon|evening|night)(?![a-z])"
_HALF = r"\s?([ap])\.?m(?:\.|(?![a-z]))"
_TIME = re.compile(
    r"([0-9](?<![0-9a-zª:+][0-9])(?<![0-9][.,][0-9])[0-9]?)(?:"
    rf":([0-5][0-9])(?::[0-5][0-9](?:\.[0-9]{{1,9}})?)?(?![0-9:])(?:{_HALF}|{_PART})?"
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
