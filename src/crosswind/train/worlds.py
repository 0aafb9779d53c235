"""Many generated domains under one name: `generated:train-0..999` is a thousand of them, `generated:train-0..` has no
end. A few demonstrations in a row come from one of them, so that it is not made for one alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from crosswind.base.errors import UnknownName
from crosswind.core.flow import rng_for
from crosswind.core.registry import domains

RANGE = re.compile(r"(generated:(?:(?:train|dev|test)-)?)([0-9]{1,18})\.\.([0-9]{0,18})")
ROW = 8  # demonstrations that come from one world of a range
FIRST = 4  # worlds of a range that a model is measured in while it is trained


@dataclass(frozen=True, slots=True)
class Worlds:
    """Generated domains whose seeds are numbers in a row."""

    start: str  # of their names
    first: int
    last: int | None  # None: without end

    def at(self, seed: int, index: int, pick: int = 0) -> str:
        """The world of a demonstration: of those without end each in its turn, of others any."""
        turn = index // ROW + pick
        number = self.first + turn
        if self.last is not None:
            number = rng_for("world", seed, turn).randint(self.first, self.last)
        return f"{self.start}{number}"

    def first_names(self) -> list[str]:
        """The names of the first few domains."""
        end = self.first + FIRST if self.last is None else min(self.last + 1, self.first + FIRST)
        return [f"{self.start}{number}" for number in range(self.first, end)]


def worlds_of(name: str) -> Worlds | None:
    """The range that a name stands for; None where it is a domain's own."""
    found = RANGE.fullmatch(name)
    if not found:
        return None
    first, last = int(found[2]), int(found[3]) if found[3] else None
    if last is not None and last < first:
        raise UnknownName(f"the domains {name!r} end before they begin; write the smaller number first")
    return Worlds(found[1], first, last)


def some_of(names: Iterable[str]) -> list[str]:
    """Domains by name, of every range the first few."""
    parts = ([name] if (worlds := worlds_of(name)) is None else worlds.first_names() for name in names)
    return list(dict.fromkeys(one for part in parts for one in part))


def unknown(name: str) -> str:
    """Why no domain has a name; empty where one has, or where it names a range."""
    try:
        if worlds_of(name) is not None or name in domains:
            return ""
    except UnknownName as error:
        return str(error)
    return f"no domain {name!r}; {domains.meant(name)}"
