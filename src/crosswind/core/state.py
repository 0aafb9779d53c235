"""The rows of a world: writes over edits over what earlier episodes left over what the seed gives.

A fenced state raises when a running tool reads a column or has an effect that it does not declare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, TypeVar, cast

from crosswind.base.errors import Unfair
from crosswind.core.types import Changes, Key, Row, Split

Derive = Callable[[str, str], "Row | None"]
T = TypeVar("T")

MISSING: Any = object()
STATUS = frozenset({"status", "state", "standing"})  # columns whose values are declared one by one as effects


class Carried(dict[Key, "Row | None"]):
    """The rows that earlier episodes left. They never change, so what follows from them is worked out once."""

    __slots__ = ("indexes", "tables")

    def __init__(self, rows: Mapping[Key, Row | None]) -> None:
        super().__init__(rows)
        self.tables: dict[str, list[tuple[str, Row]]] = {}  # rows that are still there, by table
        for (table, id), row in rows.items():
            if row is not None:
                self.tables.setdefault(table, []).append((id, row))
        self.indexes: dict[object, dict[Any, list[str]]] = {}

    def index(
        self, world: object, table: str, column: str, seeded: Callable[[Key], Row | None]
    ) -> dict[Any, list[str]]:
        """Ids of a table by the values that a column has, or had before any episode, in the order of writing."""
        key = world, table, column
        if key not in self.indexes:
            found: dict[Any, list[str]] = {}
            for id, row in self.tables.get(table, ()):
                for held in dict.fromkeys((row[column], (seeded((table, id)) or row)[column])):
                    found.setdefault(held, []).append(id)
            self.indexes[key] = found
        return self.indexes[key]


NOTHING_CARRIED = Carried({})


class State:
    """Rows of a world: writes over edits over what the seed gives. Rows are never changed in place."""

    __slots__ = (
        *("cache", "carried", "derive", "edits", "effects", "journal", "overlay"),
        *("reads", "seed", "seen", "size", "split", "told", "touched"),
    )

    def __init__(
        self,
        derive: Derive,
        edits: Mapping[Key, Row | None] | None = None,
        cache: dict[Key, Any] | None = None,
        *,
        seed: int = 0,
        size: int = 0,
        split: Split = "test",
        carried: Carried = NOTHING_CARRIED,
    ) -> None:
        self.derive, self.seed, self.size, self.split = derive, seed, size, split
        self.carried = carried  # what earlier episodes left, below any edit
        self.edits: Mapping[Key, Row | None] = {**carried, **edits} if edits and carried else edits or carried
        self.overlay: Changes = {}
        self.cache: dict[Key, Any] = {} if cache is None else cache
        self.journal: list[tuple[Key, Any]] = []  # what to put back if the running call fails
        self.touched: set[Key] = set()  # edited rows that were looked at
        self.seen: set[Key] | None = None  # every row that was looked at, while somebody records
        self.told: list[tuple[str, Any]] = []  # tools that worked and what they gave, while somebody records
        self.reads: frozenset[str] | None = None  # the running tool's declared columns (None: no tool is running)
        self.effects: frozenset[str] = frozenset()  # and effects, which a fenced state enforces

    def row(self, table: str, id: str) -> Row | None:
        key = (table, id)
        if self.seen is not None:
            self.seen.add(key)
        if self.overlay and key in self.overlay:
            return self.overlay[key]
        known = self.cache.get(key, MISSING)
        if known is MISSING or (self.edits and key in self.edits):
            return self.start(table, id)
        found: Row | None = known  # most rows; `start` would find the same
        return found

    def start(self, table: str, id: str) -> Row | None:
        """The row as it was before anything was written."""
        key = (table, id)
        if key in self.edits:
            self.touched.add(key)
            return self.edits[key]
        return self._derived(key)

    def put(self, table: str, id: str, row: Row | None) -> None:
        key = (table, id)
        self.journal.append((key, self.overlay.get(key, MISSING)))
        self.overlay[key] = row

    def rollback(self) -> None:
        for key, old in reversed(self.journal):
            if old is MISSING:
                del self.overlay[key]
            else:
                self.overlay[key] = old
        self.journal = []

    def shows(self, content: Any) -> Any:
        """What a tool returns, as an agent may see it."""
        return content

    def written(self, table: str) -> list[tuple[str, Row]]:
        """Rows of a table that were written and are still there, in the order of writing."""
        if not self.overlay:
            return []
        return [(key[1], row) for key, row in self.overlay.items() if key[0] == table and row is not None]

    def later(self, table: str, column: str, value: Any) -> Sequence[tuple[str, Row]]:
        """Rows of a table that earlier episodes left or that were written, as they are now.

        Of those that earlier episodes left, only rows whose column has this value now, or had it before any episode.
        """
        if not self.carried:
            return self.written(table) if self.overlay else ()
        if self.edits is self.carried:
            self._look(table, column)
            world = self.seed, self.size, self.split
            ids = self.carried.index(world, table, column, self._derived).get(value, [])
        else:
            ids = [key[1] for key in self.carried if key[0] == table]
        if self.overlay:
            ids = [*dict.fromkeys((*ids, *(key[1] for key in self.overlay if key[0] == table)))]
        rows = ((id, self._now((table, id))) for id in ids)
        return [(id, row) for id, row in rows if row is not None]

    def _look(self, table: str, column: str) -> None:
        """A running tool looks for rows by a column."""

    def _now(self, key: Key) -> Row | None:
        return self.overlay[key] if key in self.overlay else self.edits[key]

    def seeded(self, table: str, id: str) -> Row | None:
        """The row before any earlier episode."""
        return self._derived((table, id)) if (table, id) in self.carried else self.start(table, id)

    def derived(self, table: str, id: str) -> Row | None:
        """The row as the seed gives it."""
        return self._derived((table, id))

    def _derived(self, key: Key) -> Row | None:
        row = self.cache.get(key, MISSING)
        if row is MISSING:
            row = self.cache[key] = self.derive(*key)
        found: Row | None = row
        return found

    def changes(self) -> Changes:
        """What differs from the start."""
        return {key: row for key, row in self.overlay.items() if row != self.start(*key)}

    def unchanged(self, key: object, work_out: Callable[[], tuple[T, frozenset[Key]]]) -> T | None:
        """What follows from rows that are as the seed gives them, worked out once for each world, with those rows.

        None: one of them was edited or written, or somebody records what is looked at.
        """
        if not isinstance(self.cache, DerivedRows) or self.seen is not None or self.reads is not None:
            return None
        known = self.cache.known
        if key not in known:
            known[key] = work_out()
        found, rows = known[key]
        unchanged = self.edits.keys().isdisjoint(rows) and self.overlay.keys().isdisjoint(rows)
        return cast(T, found) if unchanged else None


class Undeclared(Unfair):
    """A tool reads a column or has an effect that it does not declare."""

    def __init__(self, what: str, tool: str = "") -> None:
        super().__init__("footprint", f"{f'tool {tool!r}' if tool else 'a tool'} {what}")
        self.what = what


_SCALARS = frozenset({str, int, float, bool, type(None)})


class _Unread:
    """The value of an undeclared column. It may be put back where it was in a copy of its row, and nothing else."""

    __slots__ = ("column", "held")

    def __init__(self, column: str, held: Any = MISSING) -> None:
        self.column, self.held = column, held  # held for rows that were written: they are compared with what they were

    def look(self, *_: object) -> Any:
        raise Undeclared(f"reads {self.column}, which its `reads` do not declare")

    def __eq__(self, other: object) -> bool:
        if type(other) is _Unread and other.column == self.column:  # where rows are compared as a whole
            return bool(self.held == other.held)
        return bool(self.look())

    __lt__ = __le__ = __gt__ = __ge__ = __hash__ = __bool__ = __str__ = __repr__ = __format__ = look
    __len__ = __iter__ = __getitem__ = __contains__ = __call__ = __int__ = __float__ = __index__ = look
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __mod__ = look
    __abs__ = __neg__ = __round__ = __floordiv__ = __rfloordiv__ = __and__ = __or__ = __getattr__ = look


@lru_cache(maxsize=4096)
def _mask(reads: frozenset[str], table: str, columns: tuple[str, ...]) -> Row:
    """The undeclared columns among these."""
    return {c: _Unread(f"{table}.{c}") for c in columns if f"{table}.{c}" not in reads}


def _fenced(row: Row | None, table: str, reads: frozenset[str]) -> Row | None:
    """A row that was written or edited as a tool with these `reads` may look at it."""
    if row is None:
        return row
    mask = _mask(reads, table, tuple(row))
    return {**row, **{c: _Unread(unread.column, row[c]) for c, unread in mask.items()}}


class DerivedRows(dict[Key, Any]):
    """The rows that a seed gives, as far as they were asked for. They never change, so fenced copies are kept too."""

    __slots__ = ("copies", "fenced", "known")

    def __init__(self) -> None:
        super().__init__()
        # fenced copies of rows that episodes left in this world, by identity; the row is held, so that it lasts
        self.copies: dict[tuple[frozenset[str], str], dict[int, tuple[Row, Row | None]]] = {}
        self.known: dict[object, tuple[Any, frozenset[Key]]] = {}  # what follows from some of them, and which
        self.fenced: dict[frozenset[str], dict[Key, Row]] = {}  # by what the tool declares


class FencedState(State):
    """A state that raises `Undeclared` when a running tool reads a column or has an effect that it does not declare.

    Outside of calls it is an ordinary state. Every walk of the oracle runs in one.
    """

    __slots__ = ("_cache", "_derive", "_fenced", "_reads", "_rows")

    @property
    def derive(self) -> Derive:
        return cast(Derive, self._past("derive"))

    @derive.setter
    def derive(self, derive: Derive) -> None:
        self._derive = derive

    @property
    def cache(self) -> dict[Key, Any]:
        return cast("dict[Key, Any]", self._past("cache"))

    @cache.setter
    def cache(self, cache: dict[Key, Any]) -> None:
        self._cache = cache
        self._fenced = cache.fenced if isinstance(cache, DerivedRows) else {}

    def _past(self, name: str) -> Any:
        if self.reads is not None:
            raise Undeclared(f"reads rows past `state.row` (by `state.{name}`)")
        return getattr(self, f"_{name}")

    @property
    def reads(self) -> frozenset[str] | None:
        return self._reads

    @reads.setter
    def reads(self, reads: frozenset[str] | None) -> None:
        self._reads = reads
        self._rows = None if reads is None else self._fenced.setdefault(reads, {})

    def row(self, table: str, id: str) -> Row | None:
        key = (table, id)
        if self.seen is not None:
            self.seen.add(key)
        if self.overlay and key in self.overlay:
            row, reads = self.overlay[key], self._reads
            return row if reads is None else _fenced(row, table, reads)
        if self._rows is not None and not (self.edits and key in self.edits):
            known: Row | None = self._rows.get(key, MISSING)
            if known is not MISSING:
                return known  # most rows; `start` would find the same
        return self.start(table, id)

    def start(self, table: str, id: str) -> Row | None:
        key, reads = (table, id), self._reads
        if self.edits and key in self.edits:
            self.touched.add(key)
            return self._edited(key)
        row = self._derived(key)
        if reads is None or self._rows is None or row is None:
            return row
        if self.overlay and key in self.overlay:
            return _fenced(row, table, reads)
        if key not in self._rows:
            self._rows[key] = {**row, **_mask(reads, table, tuple(row))}
        return self._rows[key]

    def _derived(self, key: Key) -> Row | None:
        row = self._cache.get(key, MISSING)
        if row is MISSING:
            row = self._cache[key] = self._derive(*key)
        found: Row | None = row
        return found

    def put(self, table: str, id: str, row: Row | None) -> None:
        if self.reads is not None:
            old = self.overlay[table, id] if (table, id) in self.overlay else self._held((table, id))
            row = None if row is None else {c: self._put(f"{table}.{c}", c, value, old) for c, value in row.items()}
            if undeclared := unmet(effects(table, old, row), self.effects):
                raise Undeclared(f"writes {', '.join(sorted(undeclared))}, which its `writes` do not declare")
        super().put(table, id, row)

    def _held(self, key: Key) -> Row | None:
        return self.edits[key] if key in self.edits else self._derived(key)

    def _look(self, table: str, column: str) -> None:
        if self._reads is not None and f"{table}.{column}" not in self._reads and table in self.carried.tables:
            _Unread(f"{table}.{column}").look()

    def _now(self, key: Key) -> Row | None:
        if self._reads is not None and key not in self.overlay:
            return self._edited(key)
        row = super()._now(key)
        return row if self._reads is None else _fenced(row, key[0], self._reads)

    def _edited(self, key: Key) -> Row | None:
        """An edited row as the running tool may look at it."""
        row, reads = self.edits[key], self._reads
        if reads is None or row is None:
            return row
        if self.edits is not self.carried or not isinstance(self._cache, DerivedRows):
            return _fenced(row, key[0], reads)
        copies = self._cache.copies.setdefault((reads, key[0]), {})
        if (copy := copies.get(id(row))) is None:
            copy = copies[id(row)] = row, _fenced(row, key[0], reads)
        return copy[1]

    def seeded(self, table: str, id: str) -> Row | None:
        row = super().seeded(table, id)
        carried = self._reads is not None and (table, id) in self.carried
        return _fenced(row, table, self._reads or frozenset()) if carried else row

    def _put(self, name: str, column: str, value: Any, old: Row | None) -> Any:
        if type(value) is not _Unread:
            return value
        if value.column != name or old is None or column not in old:
            value.look()
        return old[column] if old else None

    def written(self, table: str) -> list[tuple[str, Row]]:
        rows, reads = super().written(table), self.reads
        return rows if reads is None else [(id, _fenced(row, table, reads) or {}) for id, row in rows]

    def shows(self, content: Any) -> Any:
        """What a tool returns, as plain data. Raises `Undeclared` for a copy that holds an undeclared column."""
        kind = type(content)
        if kind in _SCALARS:
            return content
        if kind is _Unread:
            raise Undeclared(f"shows {content.column}, which its `reads` do not declare")
        shows = self.shows
        rows = kind is list and {dict}.issuperset(map(type, content))
        if rows and _SCALARS.issuperset(map(type, chain.from_iterable(map(dict.values, content)))):
            return content  # as most tools return them
        if kind is dict:
            if _SCALARS.issuperset(map(type, content.values())):
                return content
            return {key: shows(value) for key, value in content.items()}
        return [shows(value) for value in content] if isinstance(content, (list, tuple)) else content


def effects(table: str, old: Row | None, new: Row | None) -> set[str]:
    """What a write does, in the words tools declare: `t+`, `t-`, `t.column`, `t.status=value`."""
    if new is None:
        return {f"{table}-"} if old is not None else set()
    out = {f"{table}+"} if old is None else set()
    for column, value in new.items():
        if old is not None and old.get(column) == value:
            continue
        if column in STATUS:
            out.add(f"{table}.{column}={value}")
        elif old is not None:
            out.add(f"{table}.{column}")
    return out


def unmet(needed: Iterable[str], declared: frozenset[str]) -> set[str]:
    """Effects that no declaration covers; `t.status` covers all its values."""
    return {e for e in needed if e not in declared and e.split("=")[0] not in declared}


# ---------------------------------------------------------------- arguments
