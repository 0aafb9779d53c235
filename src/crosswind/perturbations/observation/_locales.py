"""Dates, times and numbers as they are written in other parts of the world; not a perturbation itself.

Each form is named by how it writes 3 May 2031, 14:30 or 1234.5, and `text/values` reads all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from crosswind.core.types import Split
from crosswind.perturbations._dates import read_date, write_date
from crosswind.perturbations.observation._shapes import sort_of
from crosswind.words import banks


@dataclass(frozen=True, slots=True)
class Notation:
    """A way to write values of one sort, and to read them again; None: it is not written so."""

    write: Callable[[Any], str | None]
    read: Callable[[str], Any]


# ---------------------------------------------------------------- dates


def _date(style: str) -> Notation:
    return Notation(partial(write_date, style=style), partial(read_date, style=style))


# ---------------------------------------------------------------- times


def _clock(mark: str, after: str) -> Notation:
    """Twenty-four hours, with something after them."""

    def write(value: str) -> str:
        return f"{int(value[:2])}{mark}{value[3:]}{after}"

    def read(text: str) -> str | None:
        hour, found, minute = text.removesuffix(after).partition(mark)
        right = text.endswith(after) and found and hour.isdigit() and minute.isdigit() and len(minute) == 2
        return f"{int(hour):02d}:{minute}" if right else None

    return Notation(write, read)


def _half(mark: str, early: str, late: str) -> Notation:
    """Twice twelve hours."""

    def write(value: str) -> str:
        hour = int(value[:2])
        return f"{(hour - 1) % 12 + 1}{mark}{value[3:]} {late if hour >= 12 else early}"

    def read(text: str) -> str | None:
        clock, _, half = text.partition(" ")
        hour, found, minute = clock.partition(mark)
        if half not in (early, late) or not found or not hour.isdigit() or not minute.isdigit():
            return None
        return f"{int(hour) % 12 + (12 if half == late else 0):02d}:{minute}"

    return Notation(write, read)


# ---------------------------------------------------------------- numbers

_WIDE = {ord("0") + n: chr(0xFF10 + n) for n in range(10)} | {ord("-"): "\uff0d"}
_NARROW = {ord(wide): chr(code) for code, wide in _WIDE.items()}


def _number(group: str, point: str, *, decimals: int = 0, wide: bool = False) -> Notation:
    """Digits in groups, with a mark before the decimals; at least this many of these."""

    def write(value: float) -> str | None:
        text = f"{value:,}"
        if "e" in text or "n" in text:  # too large, or no number
            return None
        whole, dot, rest = text.partition(".")
        out = whole.replace(",", group) + (point + rest.ljust(decimals, "0") if dot else "")
        return out.translate(_WIDE) if wide else out

    def read(text: str) -> float | None:
        if wide and text.isascii():
            return None
        plain = text.translate(_NARROW) if wide else text
        whole, dot, rest = plain.partition(point)
        digits = whole.replace(group, "")
        if not (dot or group in whole) or not (digits.removeprefix("-") + rest).isdigit():
            return None
        return float(f"{digits}.{rest}") if dot else int(digits)

    return Notation(write, read)


FORMS: Mapping[str, Mapping[str, Notation]] = {
    "date": {
        "3.5.2031": _date("D.M.YYYY"),
        "03.05.2031": _date("DD.MM.YYYY"),
        "3 May 2031": _date("D Month YYYY"),
        "03-May-2031": _date("DD-Mon-YYYY"),
        "May 3, 2031": _date("Month D, YYYY"),
        "2031/05/03": _date("YYYY/MM/DD"),
    },
    "time": {
        "14h30": _clock("h", ""),
        "14.30 Uhr": _clock(".", " Uhr"),
        "2.30 p.m.": _half(".", "a.m.", "p.m."),
        "14:30 h": _clock(":", " h"),
        "2:30 pm": _half(":", "am", "pm"),
        "2:30 P.M.": _half(":", "A.M.", "P.M."),
    },
    "number": {
        "1 234,5": _number(" ", ","),
        "1 234,50": _number(" ", ",", decimals=2),
        "1'234,5": _number("'", ","),
        "1'234,50": _number("'", ",", decimals=2),
        "１，２３４．５": _number("，", "．", wide=True),
        "１，２３４．５０": _number("，", "．", decimals=2, wide=True),
    },
}
OF_SPLIT: Mapping[Split, Mapping[str, tuple[str, ...]]] = banks.own("locale_format", "forms")
Forms = Mapping[str, Sequence[str]]  # sort of value -> the forms that take turns


class Localiser:
    """Writes the values of one result in forms that take turns."""

    def __init__(self, forms: Forms) -> None:
        self.forms = forms
        self.count = dict.fromkeys(forms, 0)

    def __call__(self, value: Any) -> Any:
        """A value in the form whose turn it is; the same object where its sort has none."""
        sort = sort_of(value)
        forms = self.forms.get(sort)
        if forms is None:
            return value
        text = FORMS[sort][forms[self.count[sort] % len(forms)]].write(value)
        self.count[sort] += 1
        return value if text is None else text


def canonical(value: Any, forms: Forms) -> Any:
    """A value as tools write it."""
    if isinstance(value, str):
        for sort, names in forms.items():
            for name in names:
                read = FORMS[sort][name].read(value)
                if read is not None:
                    return read
    return value
