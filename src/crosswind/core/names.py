"""Made-up names, one for each number, that can be told from one another and from other kinds of names.

A name is start + middle + ending, the first two of fixed length, so it is taken apart in one way only. Endings belong
to one kind of entity and one split: no two splits share a name, and a name in a text says what it names.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date as Date
from datetime import timedelta
from functools import cached_property, lru_cache

from crosswind.core.flow import digest
from crosswind.core.types import SPLITS, Split

STARTS = tuple(
    "Bal Bor Cal Cor Dal Dor Fal Fen Gal Gor Hal Hel Jar Jor Kal Kel Lan Lor Mal Mir "
    "Nal Nor Pal Per Ral Ros Sal Ser Tal Tor Val Ver Wal Wen Yar Yor Zan Zel Bru Tri".split()
)
STRIDE = 22_801_763_489  # a large prime, no factor of any size: walks through all numbers without repeating
MIDDLES = tuple(c + v for c in "bdfgklmnrstvz" for v in "aeiou")
STEMS = tuple(start + middle for start in STARTS for middle in MIDDLES)
PLACE = {split: place for place, split in enumerate(SPLITS)}


@dataclass(frozen=True)
class Namer:
    """Names of one kind of entity: `endings` holds those of train, dev and test, in this order."""

    endings: tuple[tuple[str, ...], ...]
    salt: int = field(default=0)

    def capacity(self, split: Split) -> int:
        return len(STEMS) * len(self.endings[PLACE[split]])

    def name(self, split: Split, seed: int, n: int) -> str:
        """The n-th name of a world; different for every n below the capacity."""
        endings = self.endings[PLACE[split]]
        count = len(endings)
        stem, e = divmod((n * STRIDE + seed * 7919 + self.salt) % (len(STEMS) * count), count)
        return STEMS[stem] + endings[e]

    def number(self, split: Split, seed: int, name: str) -> int | None:
        """Which n has this name; None where no number has."""
        found = self._pattern.fullmatch(name)
        endings = self.endings[PLACE[split]]
        if not found or found.group(3) not in endings:
            return None
        code = STEMS.index(found.group(1) + found.group(2)) * len(endings) + endings.index(found.group(3))
        size = self.capacity(split)
        back = pow(STRIDE, -1, size)
        n: int = (code - seed * 7919 - self.salt) * back % size
        return n

    def find(self, text: str) -> list[str]:
        """Names of this kind in a text, in order."""
        return [m.group(0) for m in self._pattern.finditer(text)]

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        every = sorted({e for split in self.endings for e in split}, key=len, reverse=True)
        return re.compile(rf"\b({'|'.join(STARTS)})({'|'.join(MIDDLES)})({'|'.join(every)})\b")


class Numbering:
    """Ids such as P0012345, one for each number and different in each split; scattered, not in order."""

    def __init__(self, prefix: str, digits: int) -> None:
        self.prefix, self.digits = prefix, digits
        self._form, self._length, self._start = f"{prefix}%0{digits}d", len(prefix) + digits, len(prefix)
        self._size: int = 10**digits // 3
        self._back: int = pow(STRIDE, -1, self._size)

    def id(self, split: Split, seed: int, n: int) -> str:
        code: int = 3 * ((n * STRIDE + seed * 15_485_863) % self._size) + PLACE[split]
        return self._form % code

    def number(self, split: Split, seed: int, id: str) -> int | None:
        """Which n has this id; None where it is not an id of this split."""
        digits = id[self._start :]
        if len(id) != self._length or not (id.startswith(self.prefix) and digits.isascii() and digits.isdigit()):
            return None
        code, residue = divmod(int(digits), 3)
        if residue != PLACE[split] or code >= self._size:
            return None
        n: int = (code - seed * 15_485_863) * self._back % self._size
        return n


def made_of(prefix: str, digits: int, *parts: object) -> str:
    """An id made of the content that it stands for."""
    return f"{prefix}{int.from_bytes(digest(*parts), 'big') % 10**digits:0{digits}d}"


def unused(taken: Callable[[str], bool], prefix: str, digits: int, *parts: object, times: int) -> str:
    """An id made of content and of how often the same was made before; the next one where it is taken."""
    while taken(id := made_of(prefix, digits, *parts, times)):
        times += 1
    return id


@lru_cache(maxsize=512)
def dates_from(year: int, month: int, day: int, skip: int, count: int) -> list[str]:
    """`count` days in a row, the first of them `skip` days after a date."""
    first = Date(year, month, day) + timedelta(days=skip)
    return [(first + timedelta(days=n)).isoformat() for n in range(count)]
