"""Legends: do the texts that were shown say how one value is to be read as another?

No machine understands every sentence. Asked is whether the constants that decide the meaning were shown: a factor, a
difference, a unit, a pair of words. They may be in the tool's description, in the policy, in an error, or beside the
value in the result. A sentence that speaks of another figure of the same result does not count for this one.
"""

from __future__ import annotations

import base64
import codecs
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, timedelta
from typing import Any
from urllib.parse import unquote

from crosswind.text import values

# Words that say by what a number is to be multiplied or divided.
SCALES: Mapping[str, tuple[float, ...]] = {
    **dict.fromkeys(("cent", "percent", "hundred", "hundredth", "centi", "penny", "pence", "ct"), (100.0,)),
    **dict.fromkeys(("thousand", "thousandth", "kilo", "milli", "gram", "metre", "meter", "km", "kg"), (1000.0,)),
    **dict.fromkeys(("million", "millionth", "micro", "mega"), (1e6,)),
    **dict.fromkeys(("double", "doubled", "twice", "half", "halve", "halved", "pair"), (2.0,)),
    **dict.fromkeys(("ten", "tenth", "deci"), (10.0,)),
    **dict.fromkeys(("triple", "tripled", "third", "three"), (3.0,)),
    **dict.fromkeys(("quarter", "four", "fourth"), (4.0,)),
    **dict.fromkeys(("fifth", "five"), (5.0,)),
    **dict.fromkeys(("twentieth", "twenty", "score"), (20.0,)),
    **dict.fromkeys(("second", "minute"), (60.0, 3600.0)),
    **dict.fromkeys(("hour",), (60.0, 3600.0, 24.0)),
    **dict.fromkeys(("day",), (24.0, 7.0, 1440.0, 86400.0)),
    **dict.fromkeys(("week",), (7.0, 168.0)),
    **dict.fromkeys(("month", "year", "dozen"), (12.0,)),
    **dict.fromkeys(("mile",), (1.609344, 1609.344)),
    **dict.fromkeys(("inch", "inche"), (2.54, 25.4, 39.3701, 12.0)),
    **dict.fromkeys(("foot", "feet"), (3.28084, 30.48, 12.0, 3.0)),
    **dict.fromkeys(("yard",), (1.0936133, 91.44, 3.0, 36.0)),
    **dict.fromkeys(("pound", "lb"), (2.2046226, 453.59237, 16.0)),
    **dict.fromkeys(("ounce", "oz"), (28.349523, 16.0)),
    **dict.fromkeys(("knot", "nautical"), (1.852,)),
    **dict.fromkeys(("gallon",), (3.785411784, 4.54609)),
}
# Words for a formula that everybody can look up, and the formulas.
FORMULAS: Mapping[str, tuple[Callable[[float], float], ...]] = {
    **dict.fromkeys(("fahrenheit", "celsius"), (lambda s: (s - 32) / 1.8, lambda s: s * 1.8 + 32)),
    "kelvin": (lambda s: s - 273.15, lambda s: s + 273.15),
    **dict.fromkeys(("logarithm", "log"), (lambda s: 10**s, math.exp, lambda s: 2**s)),
    **dict.fromkeys(("square", "squared", "root"), (lambda s: math.sqrt(s), lambda s: s * s)),
    **dict.fromkeys(("negative", "negated", "minus", "sign", "opposite"), (lambda s: -s,)),
    **dict.fromkeys(("reciprocal", "inverse", "inverted"), (lambda s: 1 / s,)),
}
BASES: Mapping[str, int] = {"hexadecimal": 16, "hex": 16, "binary": 2, "octal": 8, "ternary": 3, "duodecimal": 12}
_BASE = re.compile(r"\b(?:base|radix)[ -]?(?:of )?(\d+|[a-z]+)\b|\bbase-?(\d+)\b", re.IGNORECASE)
OTHERS = frozenset({"roman", "epoch", "unix"})  # ways of writing that need no constant
CODECS: Mapping[str, Callable[[str], str]] = {  # by a part of the word that names it
    "base64|base-64|base 64": lambda text: base64.b64decode(text, validate=True).decode(),
    "base32|base-32|base 32": lambda text: base64.b32decode(text).decode(),
    "hex": lambda text: bytes.fromhex(text).decode(),
    "revers|backward|mirror|right to left": lambda text: text[::-1],
    "rot13|rot-13|rot 13": lambda text: codecs.decode(text, "rot13"),
    "percent|url|escaped|encoded": unquote,
    "upper|capital": str.lower,
    "lower|small": str.upper,
}
WORD = re.compile(r"[a-z]+")
CLAUSE = re.compile(r"[,;.|\n]")
SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_SWAPPED = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_DAY_FIRST = re.compile(r"dd?\W?mm?\b|\bday\b.*\bmonth\b|\bmonth\b.*\b(last|end)\b", re.DOTALL)  # year, day, month
_ORDERS = re.compile(r"\b(multiply|divide|add|subtract|deduct)\b[^.;]*?\bto (?:get|obtain|have|find)\b", re.IGNORECASE)
Beside = Sequence[tuple[tuple[str, ...], Any]]  # values of the result that are not the figure, each with its keys


def stems(text: str) -> set[str]:
    """Words of a text, with and without an s at the end."""
    words = set(WORD.findall(text.lower()))
    return words | {w.removesuffix("s") for w in words}


class Legend:
    """What texts say that were shown for a call, besides what its tool says without layers."""

    def __init__(self, texts: Sequence[str], keys: Iterable[str]) -> None:
        self.texts = texts
        self.whole = "\n".join(texts).lower()
        self.sentences = [
            (part, stems(part.replace("_", " "))) for text in texts for part in SENTENCE.split(text) if part
        ]
        self.keys = {key: stems(key.replace("_", " ")) for key in keys}

    def about(self, key: str) -> list[str]:
        """The sentences that speak of a key, or of no other."""
        own = {w for w in stems(key.replace("_", " ")) if len(w) > 2}
        others = [words for name, words in self.keys.items() if name != key and words and not words & own]
        return [text for text, said in self.sentences if said & own or not any(words <= said for words in others)]

    def names(self, key: str) -> bool:
        """Does a text speak of a key by its own words?"""
        own = {w for w in stems(key.replace("_", " ")) if len(w) > 2}
        return any(said & own for _, said in self.sentences)

    def number(self, key: str, rivals: Sequence[Any], meant: float, beside: Beside) -> bool:
        """Do the constants that were shown lead from a number that was shown to the one meant?"""
        text = "\n".join([*self.about(key), *(f"{' '.join(path)} {value}".replace("_", " ") for path, value in beside)])
        words = stems(text) | stems(key.replace("_", " "))
        if words & OTHERS:
            return True
        bases = {BASES[w] for w in words & BASES.keys()} | {
            int(n) for found in _BASE.finditer(text) for n in values.numbers(found[1] or found[2]) if 2 <= n <= 36
        }
        if any(_in_base(str(r), base) == meant for base in bases for r in rivals):
            return True
        figures = [n for r in rivals for n in ([r] if _is_number(r) else values.numbers(str(r)))]
        words |= set().union(*(stems(r) for r in rivals if isinstance(r, str)))
        numbers = {abs(n) for n in values.numbers(text)} - {0.0}
        scales = {n for word in words & SCALES.keys() for n in SCALES[word]}
        percent = "%" in text or "percent" in words
        if orders := {found[1].lower() for found in _ORDERS.finditer(text)}:
            return any(_obeys(order, s, n, meant) for order in orders for s in figures for n in numbers | scales)
        return any(_leads(s, meant, numbers, scales, words, percent=percent) for s in figures)

    def contradicts(self, shown: str, meant: str, others: Iterable[str]) -> str:
        """Another word that is beside what was shown, where the one meant does not; empty: there is none."""
        clauses = [clause for text in self.texts for clause in CLAUSE.split(text) if values.shown(shown, clause)]
        if any(values.shown(meant, clause) for clause in clauses):
            return ""
        rivals = [other for other in others if other not in (shown, meant)]
        return next((o for o in rivals for clause in clauses if values.shown(o, clause)), "")

    def word(self, rivals: Sequence[Any], meant: str) -> bool:
        """Does a legend name a word and what was shown in its place, or a way to get from one to the other?"""
        beside = "\n".join(text for text in self.texts if values.shown(meant, text))
        if beside and any(values.shown(r, beside) for r in rivals):
            return True
        return any(isinstance(r, str) and (self.decodes(r, meant) or self._moved(r, meant)) for r in rivals)

    def decodes(self, text: str, meant: str) -> bool | None:
        """Does a text hold what is meant in a way of writing that is named? None: in none that is known."""
        found = None
        for names, decode in CODECS.items():
            try:
                held = decode(text)
            except (ValueError, TypeError):
                continue
            if held != text and meant in held:
                if any(name in self.whole for name in names.split("|")):
                    return True
                found = False
        return found

    def misleads(self, shown: str, meant: str) -> bool:
        """Would a reader take a date, a time or a known way of writing for something else than is meant?"""
        return self.decodes(shown, meant) is False or any(True for _ in apart(shown, meant))

    def _moved(self, shown: str, meant: str) -> bool:
        """Is a date, a time or each letter moved by a number that is named?"""
        numbers = {abs(n) for n in values.numbers(self.whole)} | {
            n for w in stems(self.whole) & SCALES.keys() for n in SCALES[w]
        }
        numbers |= {60 * n for n in numbers} | {7 * n for n in numbers}  # hours, weeks
        if len(shown) == len(meant) and shown.isalpha() and meant.isalpha():
            steps = {(ord(a) - ord(b)) % 26 for a, b in zip(shown.lower(), meant.lower(), strict=True)}
            return len(steps) == 1 and bool({*steps, *(26 - n for n in steps)} & numbers)
        if len(shown) < len(meant) and meant[:1].lower() == shown[:1].lower() and _is_within(shown, meant):
            return any(
                word in self.whole for word in ("abbrev", "short", "letter", "initial", "vowel", "truncat", "cut")
            )
        if _SWAPPED.sub(r"\1-\3-\2", shown) == meant:
            return _DAY_FIRST.search(self.whole) is not None
        return any(n in numbers for n in apart(shown, meant))


def _obeys(order: str, shown: float, by: float, meant: float) -> bool:
    """Does what a text says to do with a number give the one meant?"""
    made = {"multiply": shown * by, "divide": shown / by, "add": shown + by}.get(order, shown - by)
    return abs(made - meant) <= 1e-6 * max(1.0, abs(meant)) + 0.0051 * (meant != int(meant))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _in_base(text: str, base: int) -> int | None:
    try:
        return int(text, base)
    except ValueError:
        return None


def _is_within(part: str, whole: str) -> bool:
    letters = iter(whole.lower())
    return all(c in letters for c in part.lower() if c.isalnum())


def apart(one: str, two: str) -> Iterator[float]:
    """By how many days or minutes two dates or times differ."""
    with suppress(ValueError):
        yield abs((date.fromisoformat(one) - date.fromisoformat(two)).days)
    times = [re.fullmatch(r"(\d\d?):(\d\d)", text) for text in (one, two)]
    if times[0] and times[1]:
        minutes = [60 * int(t[1]) + int(t[2]) for t in times if t]
        between = abs(minutes[0] - minutes[1])
        yield from (between, 1440 - between)


_AWAY = re.compile(r"\b(\w+) (day|week)s?\b", re.IGNORECASE)
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_ADVERBS: Mapping[str, int] = {"today": 0, "tomorrow": 1, "yesterday": -1, "day after tomorrow": 2, "next week": 7}


def counted(text: str, dates: Iterable[str]) -> set[str]:
    """The dates that a text counts from others: "in 4 days", "a week before", "tomorrow", "on Friday"."""
    low = text.lower()
    away = {days for word, days in _ADVERBS.items() if word in low}
    for found in _AWAY.finditer(low):
        many = [1.0] if found[1] in ("a", "one", "next", "last") else values.numbers(found[1])
        away |= {sign * int(n) * (7 if found[2] == "week" else 1) for n in many for sign in (1, -1) if n < 10_000}
    named = {i for i, day in enumerate(_DAYS) if day in low}
    out: set[str] = set()
    for start in map(date.fromisoformat, dates):
        out |= {(start + timedelta(days)).isoformat() for days in away}
        near = (start + timedelta(days) for days in range(-7, 15))
        out |= {day.isoformat() for day in near if day.weekday() in named} if named else set()
    return out


_PART = re.compile(
    r"\b(first|leading|initial|last|final|trailing)\s+(?:(\w+)\s+)?(character|letter|digit|symbol|sign|figure)s?\b",
    re.IGNORECASE,
)


def made_of(text: str, sources: Iterable[Any]) -> Iterator[str]:
    """What a text says to make of values: their last three characters, their length, the sum of their digits."""
    low = text.lower()
    parts = [
        (m[1] in ("first", "leading", "initial"), values.numbers(m[2] or "one"), m[3]) for m in _PART.finditer(low)
    ]
    for source in map(str, sources):
        digits = [c for c in source if c.isdigit()]
        for is_head, count, what in parts:
            held = {"digit": digits, "letter": [c for c in source if c.isalpha()]}.get(what, list(source))
            n = int(count[0]) if count else 1
            yield "".join(held[:n] if is_head else held[-n:])
        if "length" in low or "number of character" in low:
            yield str(len(source))
        if "sum of" in low and "digit" in low:
            yield str(sum(map(int, digits)))
        if "backward" in low or "revers" in low:
            yield source[::-1]


def _leads(
    shown: float, meant: float, numbers: set[float], scales: set[float], words: set[str], *, percent: bool
) -> bool:
    """Is there a short formula with these constants that gives one number for the other?"""
    places = len(f"{shown:.6f}".rstrip("0").partition(".")[2])
    grain = 0.51 * 10**-places if places else 0.0

    def is_it(made: float, by: float = 1.0) -> bool:
        return abs(made - meant) <= 1e-6 * max(1.0, abs(meant)) + (0.0051 if meant != int(meant) else 0.0) + grain * by

    for n in numbers | scales:
        if is_it(shown * n, n) or is_it(shown / n, 1 / n):
            return True
    for n in numbers:
        if is_it(shown + n) or is_it(shown - n) or is_it(n - shown):
            return True
        if percent and (is_it(shown / (1 + n / 100)) or (n < 100 and is_it(shown / (1 - n / 100)))):
            return True
    for word in words & FORMULAS.keys():
        for formula in FORMULAS[word]:
            try:
                if is_it(formula(shown)):
                    return True
            except (ValueError, OverflowError, ZeroDivisionError):
                continue
    if len(numbers) > 4:
        return False  # some two of many would do by chance
    for a in numbers | scales:
        for b in numbers - {a}:
            if any(map(is_it, ((shown - b) / a, (shown + b) / a, shown * a + b, shown * a - b, shown / a + b))):
                return True
            if any(map(is_it, ((b - shown) / a, (b - shown) * a, b - shown / a, (shown - b) * a, (shown + b) * a))):
                return True
    return False
