"""Rows of a declared world: which there are, what they go by and what they hold, each found from its number alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date as Date
from datetime import timedelta
from functools import cached_property
from typing import Any, NamedTuple

from crosswind.authoring.yaml_domain.schema import NAMES, Column, ColumnTest, Declaration, YamlTable, minutes
from crosswind.core.domain import shifted_number
from crosswind.core.flow import digest
from crosswind.core.names import Namer, Numbering
from crosswind.core.state import Derive, State
from crosswind.core.types import Row, Split

LARGEST = 300_000  # entities of a world for which ids are long enough
PARENTS = 512  # parents whose rows are remembered
Found = Mapping[str, Mapping[str, Any]]  # what each step gave


class At(NamedTuple):
    """Which world."""

    split: Split
    seed: int
    size: int


def at(state: State) -> At:
    return At(state.split, state.seed, state.size)


def _hash(*parts: object) -> int:
    return int.from_bytes(digest(*parts), "big")


class TableShape:
    """One table: which rows there are, what they go by and what they hold, each found from its number alone."""

    def __init__(self, name: str, table: YamlTable, shapes: Mapping[str, TableShape]) -> None:
        self.name, self.table, self.shapes = name, table, shapes
        self.key = table.id.key
        self.label = self.key.removesuffix("_id").replace("_", " ")
        self.parent = shapes[table.of] if table.of else None
        self.least = table.most if table.least is None else table.least
        self.fixed = {c: made.fixed for c, made in table.columns.items() if made.fixed is not None}
        self.namer = Namer(NAMES[table.id.names], _hash("names", name) % 9973) if table.id.names else None
        self.digits = next(d for d in range(6, 18) if 10**d // 3 > self.most)
        self.numbering = Numbering(table.id.prefix, self.digits)
        self.namers = {c: Namer(NAMES[m.name], _hash(name, c) % 9973) for c, m in table.columns.items() if m.name}

    @cached_property
    def columns(self) -> dict[str, Column]:
        """All columns of a row, the key of what it belongs to first."""
        of = {self.parent.key: Column(refer=self.parent.name)} if self.parent else {}
        return {**of, **self.table.columns}

    @property
    def most(self) -> int:
        """Rows in the largest world."""
        return self.parent.most * self.table.most if self.parent else LARGEST // max(1, self.table.one_per)

    def total(self, at: At) -> int:
        """Numbers below this one may stand for rows."""
        if self.parent:
            return self.parent.total(at) * self.table.most
        if not self.table.one_per:
            return 0
        most = self.namer.capacity(at.split) if self.namer else 10**self.digits // 3
        return max(1, min(at.size // self.table.one_per, most))

    def under(self, at: At, n: int) -> int:
        """How many rows lie under the n-th of the parent."""
        return self.least + _hash(at.split, at.seed, self.name, "under", n) % (self.table.most - self.least + 1)

    def exists(self, at: At, n: int) -> bool:
        if n >= self.total(at):
            return False
        if not self.parent:
            return True
        above, k = divmod(n, self.table.most)
        return k < self.under(at, above) and self.parent.exists(at, above)

    def id(self, at: At, n: int) -> str:
        return (self.namer.name if self.namer else self.numbering.id)(at.split, at.seed, n)

    def number(self, at: At, id: str) -> int | None:
        n = (self.namer.number if self.namer else self.numbering.number)(at.split, at.seed, id)
        return n if n is not None and self.exists(at, n) else None

    def sample_row(self, at: At, chance: int) -> int | None:
        """The number of some row, by a large number from which it is drawn."""
        if not self.parent:
            return chance % self.total(at) if self.total(at) else None
        above = self.parent.sample_row(at, chance)
        there = 0 if above is None or not self.table.most else self.under(at, above)
        return above * self.table.most + (chance >> 20) % there if above is not None and there else None

    def row(self, at: At, n: int) -> Row:
        out: dict[str, Any] = {}
        if self.parent:
            out[self.parent.key] = self.parent.id(at, n // self.table.most)
        for name, column in self.table.columns.items():
            out[name] = self.value(at, name, column, n, _hash(at.split, at.seed, self.name, name, n))
        return out

    def value(self, at: At, name: str, column: Column, n: int, chance: int) -> Any:
        """A value that a column may hold from the start."""
        if column.name:
            return self.namers[name].name(at.split, at.seed, n)
        if column.choice:
            weights = column.weights or (1,) * len(column.choice)
            rest = chance % sum(weights)
            for choice, weight in zip(column.choice, weights, strict=True):
                if rest < weight:
                    return choice
                rest -= weight
        if column.number:
            low, high, step = column.number.low, column.number.high, column.number.step
            value = low + chance % (round((high - low) / step) + 1) * step
            return value if column.whole else round(float(value), 6)
        if column.date:
            return (Date.fromisoformat(column.date.first) + timedelta(days=chance % column.date.days)).isoformat()
        if column.time:
            first, last = minutes(column.time.first) or 0, minutes(column.time.last) or 0
            return _clock(first + chance % ((last - first) // column.time.minutes + 1) * column.time.minutes)
        if column.refer:
            shape = self.shapes[column.refer]
            return shape.id(at, shape.sample_row(at, chance) or 0)
        return column.fixed

    def varied(self, at: At, name: str, value: Any, salt: object) -> Any:
        """Another value that the column may hold from the start; the same where it holds no other."""
        column = self.table.columns.get(name)
        if column is None or column.fixed is not None:
            return value
        if column.name:
            namer = self.namers[name]
            n = namer.number(at.split, at.seed, value) or 0
            return namer.name(at.split, at.seed, shifted_number(n, salt, 0, namer.capacity(at.split) - 1, 1))
        if column.choice:
            options = column.drawn
            if value not in options or len(options) < 2 or _hash("stays", salt) % 2:
                return value  # every second time: a world in which no row is fit any more tells nothing
            return options[shifted_number(options.index(value), salt, 0, len(options) - 1, 1)]
        if column.number:
            return shifted_number(value, salt, column.number.low, column.number.high, column.number.step)
        for turn in range(8):  # dates, times and references: draw until it is another one
            other = self.value(at, name, column, 0, _hash("vary", self.name, name, salt, turn))
            if other != value:
                return other
        return value


def _clock(minute: int) -> str:
    return f"{minute // 60:02d}:{minute % 60:02d}"


class TableShapes(dict[str, TableShape]):
    """All tables of a domain, and look-ups over the rows of a state."""

    def __init__(self, declared: Declaration) -> None:
        super().__init__()
        self._ids: dict[tuple[At, str, str], dict[str, int]] = {}
        self._numbers: dict[tuple[At, str], dict[str, int]] = {}  # of all those rows
        for name, table in declared.tables.items():
            self[name] = TableShape(name, table, self)

    def namer(self, of: str) -> Namer | None:
        """The made-up names of a table's keys or of a column."""
        table, _, column = of.partition(".")
        return self[table].namers.get(column) if column else self[table].namer

    def derive(self, where: At) -> Derive:
        def row(table: str, id: str) -> Row | None:
            shape = self.get(table)
            n = self._numbers.get((where, table), {}).get(id)
            if n is None and shape:
                n = shape.number(where, id)
            return shape.row(where, n) if shape and n is not None else None

        return row

    def under(self, state: State, table: str, parent: str) -> list[tuple[str, Row]]:
        """The rows that belong to one of the parent, those of the seed first."""
        shape = self[table]
        assert shape.parent is not None
        ids: Iterable[str] = self._ids_under(at(state), shape, parent)
        if state.overlay:
            ids = dict.fromkeys((*ids, *(id for id, row in state.written(table) if row[shape.parent.key] == parent)))
        return [(id, row) for id in ids if (row := state.row(table, id)) is not None]

    def _ids_under(self, where: At, shape: TableShape, parent: str) -> dict[str, int]:
        """The ids of rows of the seed with their numbers, which are asked for again and again."""
        key = (where, shape.name, parent)
        if key in self._ids:
            return self._ids[key]
        ids: dict[str, int] = {}
        assert shape.parent is not None
        n = shape.parent.number(where, parent)
        if n is not None and shape.table.most:
            first = n * shape.table.most
            ids = {shape.id(where, first + k): first + k for k in range(shape.under(where, n))}
        numbers = self._numbers.setdefault((where, shape.name), {})
        numbers |= ids
        self._ids[key] = ids
        if len(self._ids) > PARENTS:
            self._ids.clear()
            self._numbers.clear()
        return ids


def satisfies(
    row: Row,
    wanted: Sequence[ColumnTest],
    details: Mapping[str, Any] = {},
    found: Found = {},  # noqa: B006
    *,
    strict: bool = False,
) -> bool:
    return all(c.holds(row[c.column], c.ref.value(details, found), strict=strict) for c in wanted)
