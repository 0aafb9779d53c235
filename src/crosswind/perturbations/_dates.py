"""Dates in other styles, such as "D Month YYYY", written and read back; not a perturbation itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date as Date
from functools import lru_cache

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
MONTH_OF = {name: i for i, month in enumerate(MONTHS, 1) for name in (month, month[:3])}
PIECES = {"YYYY": "{0:04}", "Month": "{3}", "Mon": "{4}", "MM": "{1:02}", "M": "{1}", "DD": "{2:02}", "D": "{2}"}
LOOKS = {
    "YYYY": "(?P<y>[0-9]{4})",
    "Month": "(?P<name>[A-Z][a-z]+)",
    "Mon": "(?P<name>[A-Z][a-z]+)",
    "MM": "(?P<m>[0-9]{2})",
    "M": "(?P<m>[0-9]{1,2})",
    "DD": "(?P<d>[0-9]{2})",
    "D": "(?P<d>[0-9]{1,2})",
}
_PIECE = re.compile("|".join(PIECES))


def _spelt(style: str, pieces: Mapping[str, str]) -> str:
    return _PIECE.sub(lambda m: pieces[m[0]], style)


@lru_cache(maxsize=64)
def _forms(style: str) -> tuple[str, re.Pattern[str]]:
    """How to write a style, and what it looks like."""
    return _spelt(style, PIECES), re.compile(_spelt(style.replace(".", "[.]"), LOOKS))


def write_date(value: str, style: str) -> str:
    """An ISO date in a style."""
    year, month, day = map(int, value.split("-"))
    name = MONTHS[month - 1]
    return _forms(style)[0].format(year, month, day, name, name[:3])


def read_date(text: str, style: str) -> str | None:
    """The ISO date that a text gives in a style; None where it gives none."""
    found = _forms(style)[1].fullmatch(text)
    if found is None:
        return None
    parts = found.groupdict()
    month = MONTH_OF.get(parts["name"], 0) if "name" in parts else int(parts["m"])
    try:
        return Date(int(parts["y"]), month, int(parts["d"])).isoformat()
    except ValueError:
        return None
