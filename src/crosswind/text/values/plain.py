"""Text as it is compared, without accents, invisible marks and typographic variants; and spans of values in it."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, NamedTuple

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


def both_ends(text: str, limit: int) -> str:
    """The text, or its beginning and end if it is longer than the limit."""
    return text if len(text) <= limit else f"{text[: limit // 2]}\n{text[-limit // 2 :]}"


# ---------------------------------------------------------------- places of values

DIGIT = re.compile(r"[0-9]")


class Found(NamedTuple):
    """A value found in a text: where, which, and a note that depends on its kind."""

    start: int
    end: int
    value: Any
    note: str = ""


BLANK = "ª"  # a letter that no plain text holds and that belongs to no value


def blank_out(text: str, *groups: Sequence[Found]) -> str:
    """The text with the found values overwritten, same length."""
    found = [item for group in groups for item in group]
    if not found:
        return text
    if len(found) > 1:
        found.sort(key=itemgetter(0))
    pieces: list[str] = []
    at = 0
    for start, end, *_ in found:
        if end > at:
            pieces += (text[at:start], BLANK * (end - max(start, at)))
            at = end
    pieces.append(text[at:])
    return "".join(pieces)


def is_inside(place: int, spans: Sequence[tuple[Any, ...]]) -> bool:
    """Whether a place lies in one of the spans, which are in order and apart."""
    at = bisect_right(spans, place, key=itemgetter(0))
    return at > 0 and place < spans[at - 1][1]
