"""Whether a text shows a value in some form of its type."""

from __future__ import annotations

import re
from typing import Any

from crosswind.text.values.found import DIGIT
from crosswind.text.values.id import id_places
from crosswind.text.values.number import is_close
from crosswind.text.values.reading import mentions, moneys, number_of, numbers, searchable, times, values_of

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
