"""All values of one text, each type found on first use; and whether a text shows a given value."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from math import isfinite
from typing import Any, Generic, TypeVar

from crosswind.text.values.moments import find_dates, find_times
from crosswind.text.values.names import LONGEST_NAME, WIDE_TOKEN, find_ids, id_places, name_places
from crosswind.text.values.numbers import find_moneys, find_numbers, is_close
from crosswind.text.values.plain import DIGIT, Found, blank_out, both_ends, plain_text

LONGEST_READ = 100_000  # characters; of a longer text the beginning and the end are read
_Result = TypeVar("_Result")
_WEB = re.compile(r"(?:https?://|www\.)[^\s<>\"']{1,2000}|[\w.+-]{1,64}@[\w.-]{1,128}|24/7")


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
            found = None if year is None else self.all_dates(None)
            if found is None or not all(item.value for item in found):
                found = find_dates(self.plain, self.low, year)
            self._dates[year] = found
        return self._dates[year]

    def dates(self, year: int | None) -> list[Found]:
        """The resolved dates."""
        return [item for item in self.all_dates(year) if item.value]

    @lazy
    def times(self) -> list[Found]:
        return find_times(self.low)

    @lazy
    def clockless(self) -> str:
        """The lower-case text with dates and times blanked."""
        return blank_out(self.low, self.all_dates(None), self.times)

    @lazy
    def ids(self) -> list[Found]:
        return find_ids(self.plain, self.clockless) if DIGIT.search(self.low) else []

    @lazy
    def numbers(self) -> list[Found]:
        return find_numbers(self.low, self._hidden)

    @lazy
    def moneys(self) -> list[Found]:
        found = find_moneys(self.low)
        # Only in a span ("3 May and 15 euros") can a part of a date be taken for an amount.
        if any(right.start - left.end < 6 for left, right in pairwise(found)):
            found = find_moneys(self.clockless)
        return found

    @property
    def _hidden(self) -> str:
        """The lower-case text with dates, times, ids and addresses blanked."""
        hidden = blank_out(self.clockless, self.ids)
        if "://" in self.low or "@" in self.low or "www." in self.low or "24/7" in self.low:
            hidden = blank_out(hidden, [Found(*match.span(), None) for match in _WEB.finditer(self.low)])
        return hidden


_CACHED_LENGTH = 50_000
_cached_values = lru_cache(maxsize=128)(TextValues)


def values_of(text: str) -> TextValues:
    """The values of a text; callers ask for several types of one text in turn, so recent ones are kept."""
    return _cached_values(text) if len(text) <= _CACHED_LENGTH else TextValues(text)


def dates(text: str, *, year: int | None = None) -> list[str]:
    """The dates in a text as ISO strings, in order of appearance; `year` completes forms without one."""
    return [item.value for item in values_of(text).dates(year)]


def times(text: str) -> list[str]:
    """The times in a text as 24-hour "HH:MM", in order of appearance."""
    return [item.value for item in values_of(text).times]


def numbers(text: str) -> list[float]:
    """The numbers in a text that do not belong to dates, times or ids, in order of appearance."""
    return [item.value for item in values_of(text).numbers]


def moneys(text: str) -> list[float]:
    """The amounts with a currency in a text, in order of appearance."""
    return [item.value for item in values_of(text).moneys]


def ids(text: str, pattern: str | None = None) -> list[str]:
    """The id tokens in a text, case kept; with `pattern`, the whole tokens that the regex matches fully."""
    if pattern is None:
        return [item.value for item in values_of(text).ids]
    full = re.compile(pattern)
    return [match[0] for match in WIDE_TOKEN.finditer(values_of(text).plain) if full.fullmatch(match[0])]


def searchable(text: str) -> str:
    """All of a text in plain lower case, however long."""
    return values_of(text).low if len(text) <= LONGEST_READ else plain_text(text).lower()


def mentions(text: str, name: str) -> int:
    """How often a name is said in a text, regardless of case, accents, spacing and markup."""
    return len(name_places(searchable(text), name))


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


# ---------------------------------------------------------------- is a value visible?

_ISO_DATE = re.compile(r"([0-9]{4})-[0-9]{2}-[0-9]{2}")
_ISO_MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2})(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(?:Z|[+-][0-9:]{4,6})?"
)
_CLOCK_TIME = re.compile(r"([0-9]{1,2}:[0-9]{2})(?::00)?")
_DECIMAL = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,12})?")
_LONGEST_FORM = 32
_OTHER_ID = re.compile(r"([A-Za-z]{1,12})[-_.:/#]?([0-9]{2,15})")
_JOINT = re.compile(r"[-_]")


def _shows_date(value: str, text: str) -> bool:
    """Whether a date is visible; a form of unknown order shows both dates that it may mean."""
    found = values_of(text).all_dates(int(value[:4]))
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
    if len(value) <= _LONGEST_FORM and DIGIT.search(value) and _shows_form(value, text):
        return True
    if DIGIT.search(value) and not any(char.isspace() for char in value):
        return bool(id_places(searchable(text), value))
    return mentions(text, value) > 0


def _shows_form(value: str, text: str) -> bool:
    """Whether a date that is written in another form, or an id with another separator, is visible."""
    if other := _OTHER_ID.fullmatch(value):
        bare = (other[1] + other[2]).lower()
        return other[2] in text and any(_JOINT.sub("", item.value).lower() == bare for item in values_of(text).ids)
    found = values_of(value).all_dates(None)
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
