"""The vocabulary of desks: what a domain calls its parts, and which table and column plays which role.

The map of a desk is `banks/desks/<domain>.yaml`; `MAKERS` turns its parts into what is defined here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date as Date
from datetime import timedelta
from functools import lru_cache
from importlib.resources import files
from typing import Any, ClassVar, NamedTuple, Protocol

from crosswind.base.errors import BadFile
from crosswind.core.domain import shifted_number
from crosswind.core.names import Namer, Numbering
from crosswind.core.types import Row, Split

PER_GROUP, DAYS, SLOTS, HELD = 24, 10, 5, 5  # things in a group, dates, slots a day, bookings of a person at most


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What a domain calls the parts of the graphs. A world fills in its tools."""

    # tools
    search: str = ""  # (group, kind) -> things with a score
    details: str = ""  # (thing) -> fee and more
    entries: str = ""  # (thing) -> dated entries with an amount
    outlook: str = ""  # (group, date) -> a figure; lower is better
    distance: str = ""  # (source, target) -> a figure; lower is nearer
    slots: str = ""  # (thing, date) -> slots with a time and room
    bookings: str = ""  # (who) -> what a person holds
    permit: str = ""  # (slot, who) -> a code
    hold: str = ""  # (slot, who, need, code) -> a booking
    settle: str = ""  # (booking, means) -> a receipt
    cancel: str = ""  # (booking)
    move: str = ""  # (booking, slot, code)
    # arguments, most of them details of requests, keys of results and columns too
    group: str
    kind: str
    thing: str
    date: str = "date"
    who: str
    need: str
    slot: str
    booking: str
    means: str
    code: str
    source: str
    target: str
    # keys of results
    score: str
    fee: str
    amount: str
    figure: str  # of the outlook
    far: str  # of the distance
    room: str
    receipt: str
    status: str = "status"
    # other details of requests
    new_date: str = "new_date"
    other_date: str = "other_date"
    floor: str = "at_least"
    first: str = "first"
    second: str = "second"
    name: str = "name"
    time: str = "time"
    # values of the status
    held: str = "held"
    settled: str = "settled"
    cancelled: str = "cancelled"


@dataclass(frozen=True, kw_only=True)
class Tables:
    """The tables of a desk, and those columns that go by another name than in `Terms`."""

    things: str
    slots: str
    people: str
    bookings: str
    permits: str
    entries: str
    outlook: str
    distance: str = ""  # empty: the distance is worked out from columns of the things
    attached: str = ""  # rows with the id of a booking, which cancelling removes
    room: str  # of a slot, as the seed gives it
    home: str  # of a person: the group they are at home in
    standing: str  # of a person
    good: str  # the standing of those who may book
    barred: str  # the standing of those who may not
    person: str = "name"  # of a person: the made-up name
    amount: str = ""  # of an entry; empty: as in `Terms`
    means_attached: bool = False  # the means are a column of the attached row, and not of the booking


class Names(NamedTuple):
    """Made-up names."""

    group: Namer
    thing: Namer
    person: Namer


def named(train: str, dev: str, test: str, salt: int = 0) -> Namer:
    """Names with these endings, each of which belongs to one split."""
    return Namer(tuple(tuple(endings.split()) for endings in (train, dev, test)), salt)


class Ids(NamedTuple):
    """How rows are numbered."""

    thing: Numbering
    slot: Numbering
    person: Numbering
    booking: Numbering


class Thing(NamedTuple):
    id: str
    name: str
    score: float
    fee: int


class Slot(NamedTuple):
    id: str
    time: str
    room: int


class Booking(NamedTuple):
    id: str
    slot: str
    thing: str
    date: str
    need: int
    live: bool


# ---------------------------------------------------------------- parts of a table map


class SeedLike(Protocol):
    """What every row of a world depends on. A `State` has it, and so has `Seed`."""

    @property
    def seed(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def split(self) -> Split: ...


class Seed(NamedTuple):
    """The same, with what many rows ask for."""

    seed: int
    size: int
    split: Split
    things: int  # how many there are
    dates: list[str]


@dataclass(frozen=True)
class Hours:
    """Slots that begin in an hour of their own: `first`, `apart` hours later, ..., up to `late` - 1 hours late."""

    first: int
    apart: int
    late: int
    step: int  # minutes past the hour are multiples of it
    used: ClassVar[int] = 2  # bytes of the hash that a time takes

    def time(self, j: int, h: bytes) -> str:
        """The time of the j-th slot of a day."""
        return f"{self.first + self.apart * j + h[0] % self.late:02d}:{self.step * (h[1] % (60 // self.step)):02d}"

    def moved(self, time: str, salt: object) -> str:
        """The same minutes past another hour of the day."""
        last = self.first + self.apart * SLOTS - 1
        return f"{shifted_number(int(time[:2]), salt, self.first, last, 1):02d}{time[2:]}"


@dataclass(frozen=True)
class Minutes:
    """Slots `apart` minutes from one to the next, each fewer than `late` steps late."""

    first: int
    apart: int
    step: int
    late: int
    used: ClassVar[int] = 1

    def time(self, j: int, h: bytes) -> str:
        return self._at(j, h[0] % self.late)

    def moved(self, time: str, salt: object) -> str:
        """Some steps earlier or later, so that slots stay apart."""
        j, late = divmod(60 * int(time[:2]) + int(time[3:]) - self.first, self.apart)
        return self._at(j, shifted_number(late // self.step, salt, 0, self.late - 1, 1))

    def _at(self, j: int, late: int) -> str:
        hour, minute = divmod(self.first + self.apart * j + self.step * late, 60)
        return f"{hour:02d}:{minute:02d}"


@dataclass(frozen=True)
class Token:
    """Means such as card-1234."""

    prefix: str
    digits: int

    def of(self, number: int) -> str:
        return f"{self.prefix}{number % 10**self.digits:0{self.digits}d}"

    @property
    def example(self) -> str:
        return self.prefix + "123456789"[: self.digits]

    def is_like(self, text: str) -> bool:
        """Does a text look like such means?"""
        return text.startswith(self.prefix) and len(text) <= 20


# The `reader` of a column takes its value from the hash of a row. It is made once, since rows are made by the thousand.


@dataclass(frozen=True, slots=True)
class Number:
    """A column that holds one of `count` numbers from `least` on. It varies within that range unless it is fixed."""

    byte: int  # of the row's hash
    least: int
    count: int
    step: int = 1
    fixed: bool = False

    def reader(self) -> Callable[[bytes], int]:
        byte, least, count, step = self.byte, self.least, self.count, self.step
        return lambda h: least + step * (h[byte] % count)

    @property
    def range(self) -> Range | None:
        return None if self.fixed else (self.least, self.least + self.step * (self.count - 1), self.step)


@dataclass(frozen=True, slots=True)
class Score:
    """A column that holds one of `count` scores from `least` on, a unit of the last digit apart. It varies up to `most`."""

    least: int
    count: int
    digits: int
    most: float

    def reader(self) -> Callable[[bytes], float]:
        count, grain = self.count, 10**self.digits
        scores = [round(self.least + n / grain, self.digits) for n in range(count)]
        return lambda h: scores[(h[1] * 256 + h[2]) % count]

    @property
    def range(self) -> Range:
        return float(self.least), self.most, 1 / 10**self.digits


@dataclass(frozen=True, slots=True)
class Text:
    """A column that holds a text with a number in it, a date some days after a start, or one of a few words."""

    byte: int
    form: str = ""
    least: int = 0
    count: int = 256
    step: int = 1
    after: str = ""
    words: tuple[str, ...] = ()
    range: ClassVar[None] = None

    def reader(self) -> Callable[[bytes], str]:
        numbers = [self.least + self.step * n for n in range(self.count)]
        texts = self.words or [days_after(self.after, n) if self.after else self.form % n for n in numbers]
        byte, count = self.byte, len(texts)
        return lambda h: texts[h[byte] % count]


Range = tuple[float, float, float]  # the least, the greatest, the step
Columns = Mapping[str, Mapping[str, Number | Score | Text]]  # by table
Kinds = Mapping[str, tuple[str, ...]]  # with other words for each
Maker = Callable[[Seed, str], Row | None]


def choices(text: str) -> Kinds:
    """Words to choose from, each with others that mean the same: `cache proxy/proxies`."""
    return {word: tuple(others) for word, *others in (part.split("/") for part in text.split())}


def _numbers(made: Any) -> Sequence[int]:
    """Numbers as a list, or all from the first to the last."""
    return range(made["first"], made["last"] + 1, made.get("step", 1)) if isinstance(made, dict) else tuple(made)


def _part(made: Mapping[str, Mapping[str, Any]]) -> Any:
    """A part by the name of its sort: `{number: {byte: 3, least: 4, count: 60}}`."""
    ((sort, options),) = made.items()
    return {"hours": Hours, "minutes": Minutes, "number": Number, "score": Score, "text": Text}[sort](**options)


# how the parts of a map become attributes of `Records`; the others stay as they are
MAKERS: Mapping[str, Callable[[Any], Any]] = {
    "terms": lambda made: Terms(**made),
    "tables": lambda made: Tables(**made),
    "names": lambda made: Names(**{sort: named(**endings) for sort, endings in made.items()}),
    "ids": lambda made: Ids(**{of: Numbering(*parts) for of, parts in made.items()}),
    "kinds": choices,
    "means": lambda made: Token(**made) if isinstance(made, dict) else tuple(made),
    **dict.fromkeys(("needs", "floors"), _numbers),
    "clock": _part,
    "columns": lambda made: {table: {n: _part(c) for n, c in columns.items()} for table, columns in made.items()},
}


def packaged(folder: str, domain: str) -> tuple[Any, str]:
    """What `banks/<folder>/<domain>.yaml` says, as the package carries it, and words for where that is."""
    where = f"{folder} of {domain} (banks/{folder}/{domain}.yaml, compiled by banks/make.py)"
    path = files("crosswind") / "data" / folder / f"{domain}.json"
    try:
        return json.loads(path.read_text(encoding="utf-8")), where
    except FileNotFoundError:
        raise BadFile(f"{where}: are missing; write the file and run banks/make.py") from None
    except ValueError as error:
        raise BadFile(f"{where}: cannot be read as JSON ({error}); run banks/make.py") from None


def singular(plural: str) -> str:
    """The name of one row of a table: `latencies` -> `latency`."""
    return f"{plural[:-3]}y" if plural.endswith("ies") else plural.removesuffix("s")


def number(h: bytes) -> int:
    """Bytes of a hash as a number."""
    return int.from_bytes(h, "big")


def days_after(start: str, days: int) -> str:
    return (Date.fromisoformat(start) + timedelta(days=days)).isoformat()


@lru_cache(maxsize=256)
def inverse(stride: int, size: int) -> int:
    """What undoes a stride modulo a size."""
    return pow(stride, -1, size)
