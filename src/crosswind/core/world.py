"""A canonical world: rows derived on demand from a seed, an overlay of writes, and tools that are plain methods.

No perturbation touches this code. A world answers malformed calls with errors, rolls back a write that breaks an
invariant, and never raises for what a caller sent.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date as Date
from functools import lru_cache
from itertools import chain
from typing import Any, ClassVar, TypeVar, cast, get_type_hints

from crosswind.base.errors import CrosswindError, InfrastructureError, ToolFailure, Unfair
from crosswind.core.blame import is_ours, words_of
from crosswind.core.types import (
    CHANGED,
    Change,
    Changes,
    Event,
    Key,
    Param,
    Row,
    Split,
    ToolCall,
    ToolResult,
    Tools,
    ToolSpec,
    failed,
)

Derive = Callable[[str, str], "Row | None"]
F = TypeVar("F", bound=Callable[..., Any])

MISSING: Any = object()
STATUS = frozenset({"status", "state", "standing"})  # columns whose values are declared one by one as effects


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
        carried: Mapping[Key, Row | None] | None = None,
    ) -> None:
        self.derive, self.seed, self.size, self.split = derive, seed, size, split
        self.carried: Mapping[Key, Row | None] = carried or {}  # what earlier episodes left, below any edit
        self.edits: Mapping[Key, Row | None] = {**self.carried, **(edits or {})} if carried else edits or {}
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

    def later(self, table: str) -> list[tuple[str, Row]]:
        """Rows of a table that earlier episodes left or that were written, as they are now."""
        if not self.carried:
            return self.written(table)
        ids = dict.fromkeys(key[1] for key in (*self.carried, *self.overlay) if key[0] == table)
        rows = ((id, self._now((table, id))) for id in ids)
        return [(id, row) for id, row in rows if row is not None]

    def _now(self, key: Key) -> Row | None:
        return self.overlay[key] if key in self.overlay else self.edits[key]

    def seeded(self, table: str, id: str) -> Row | None:
        """The row before any earlier episode."""
        return self._derived((table, id)) if (table, id) in self.carried else self.start(table, id)

    def _derived(self, key: Key) -> Row | None:
        row = self.cache.get(key, MISSING)
        if row is MISSING:
            row = self.cache[key] = self.derive(*key)
        found: Row | None = row
        return found

    def changes(self) -> Changes:
        """What differs from the start."""
        return {key: row for key, row in self.overlay.items() if row != self.start(*key)}


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

    __slots__ = ("fenced",)

    def __init__(self) -> None:
        super().__init__()
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
            return self.edits[key] if reads is None else _fenced(self.edits[key], table, reads)
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

    def _now(self, key: Key) -> Row | None:
        row = super()._now(key)
        return row if self._reads is None else _fenced(row, key[0], self._reads)

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

JSON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict,),
}
_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null", list: "array"}


def kind_of(value: object) -> str:
    """What JSON calls the type of a value."""
    return _NAMES.get(type(value), "object")


def brief_of(value: object, limit: int = 60) -> str:
    """A value as an error message may quote it: one line, never long."""
    text = value if isinstance(value, str) else kind_of(value)
    text = text[: limit + 1].encode("ascii", "backslashreplace").decode()
    return repr(text if len(text) <= limit else text[:limit] + "...")


def bad_arguments(params: Mapping[str, Param], args: object) -> str | None:
    """Why a real API would reject these arguments, or None."""
    if type(args) is not dict and not isinstance(args, Mapping):
        return f"arguments must be an object, got {kind_of(args)}"
    for name, value in args.items():
        param = params.get(name)
        if param is None:
            takes = ", ".join(params) or "no arguments"
            return f"unexpected argument {brief_of(name)}; this tool takes: {takes}"
        if type(value) is str and param.type == "string" and not param.enum:
            continue  # most arguments, and nothing more to ask of them
        if not isinstance(value, JSON_TYPES.get(param.type, (object,))) or (
            isinstance(value, bool) and param.type in ("integer", "number")
        ):
            return f"{name!r} must be {_article(param.type)}, got {kind_of(value)}"
        if isinstance(value, float) and not math.isfinite(value):
            return f"{name!r} must be a finite number"
        if isinstance(value, int) and abs(value) >= 2**63:
            return f"{name!r} must be a number of at most 64 bits"
        if param.enum and value not in param.enum:
            return f"{name!r} must be one of {', '.join(param.enum)}; got {brief_of(value)}"
    if len(args) < len(params):
        for name, param in params.items():
            if param.required and name not in args:
                return f"missing required argument {name!r}"
    return None


def refused(call: ToolCall, spec: ToolSpec | None) -> ToolResult | None:
    """The error for a call of an unknown tool or with wrong arguments; None if the call can be made."""
    if spec is None:
        return failed("unknown_tool", f"There is no tool {brief_of(call.tool)}.")
    bad = bad_arguments(spec.params, call.args) if spec.listed else None
    return failed("bad_arguments", bad) if bad else None


def _article(type_: str) -> str:
    return f"an {type_}" if type_[0] in "aio" else f"a {type_}"


# ---------------------------------------------------------------- tools


@dataclass(frozen=True, slots=True)
class Entry:
    """A canonical tool: what is shown of it, its code, and the footprint that refusal proofs rest on."""

    spec: ToolSpec
    run: Callable[..., Any]
    reads: frozenset[str]  # "table.column"
    effects: frozenset[str]  # "table+", "table-", "table.column", "table.status=value"


def tool(
    *,
    reads: Sequence[str] = (),
    writes: Sequence[str] = (),
    undo: tuple[str, str] | None = None,
    lasting: bool = True,
    docs: Mapping[str, str] | None = None,
    enums: Mapping[str, Sequence[str]] | None = None,
) -> Callable[[F], F]:
    """Declare a method to be a tool: its columns ("places.name,city"), its effects, what undoes it, its arguments."""

    def mark(fn: F) -> F:
        hints = get_type_hints(fn)
        types = {str: "string", int: "integer", float: "number", bool: "boolean"}
        names = list(inspect.signature(fn).parameters)[1:]
        if untyped := [name for name in names if hints.get(name) not in types]:
            raise TypeError(f"the tool {fn.__name__!r} needs a type for {untyped[0]!r}: str, int, float or bool")
        if unknown := sorted({*(docs or {}), *(enums or {})} - {*names}):
            raise TypeError(f"the tool {fn.__name__!r} has no parameter {unknown[0]!r}; it has {', '.join(names)}")
        params = {
            name: Param(
                types[hints[name]],
                (docs or {}).get(name, ""),
                parameter.default is parameter.empty,
                tuple((enums or {}).get(name, ())),
            )
            for name, parameter in list(inspect.signature(fn).parameters.items())[1:]
        }
        name, doc = fn.__name__, inspect.cleandoc(fn.__doc__ or "")
        spec = ToolSpec(name, doc, params, bool(writes), undo, lasting, ids=frozenset({name}))
        columns = frozenset(f"{t}.{c}" for t, _, cs in (r.partition(".") for r in reads) for c in cs.split(","))
        fn.entry = Entry(spec, fn, columns, frozenset(writes))  # type: ignore[attr-defined]
        return fn

    return mark


class World:
    """One domain's state and tools: a toolbox. A subclass writes its tools as methods under `@tool`."""

    entries: ClassVar[dict[str, Entry]] = {}
    specs: Tools = ()  # a world whose tools depend on the task has its own
    invariants: ClassVar[tuple[str, ...]] = ()  # columns that `broken` looks at; a refused write shows them
    remote: ClassVar[bool] = False  # an agent's calls are answered by `ask`, which takes time, and not by `call`
    foreign: ClassVar[bool] = False  # names and texts of tools are somebody else's
    made_up: ClassVar[bool] = False  # what it answers is invented, so that a way through it leads nowhere else

    def __init_subclass__(cls) -> None:
        cls.entries = {n: f.entry for n, f in vars(cls).items() if hasattr(f, "entry")}
        cls.specs = tuple(entry.spec for entry in cls.entries.values())

    def __init__(self, state: State, blocked: Mapping[str, str] | None = None) -> None:
        self.state, self.blocked = state, blocked or {}
        self.writes = 0  # calls that wrote something
        self.events: list[Event] = []  # still to happen,
        self.happened: list[Event] = []  # those that have,
        self.unread: list[Event] = []  # and those since which nobody has read what they changed
        self.watching = False

    def await_events(self, events: Sequence[Event]) -> None:
        """Begin with the rows as they are before some events."""
        self.watching, self.events = True, list(events)
        for event in reversed(events):
            self._lay(event.was)

    def _lay(self, rows: Mapping[str, Row]) -> None:
        self.state.edits = {**self.state.edits, **{_place(key): row for key, row in rows.items()}}

    def _read(self, entry: Entry) -> None:
        """A reading tool has shown what it shows: rows that it looked at are known as they are, and may change now."""
        touched = {f"{table}/{id}" for table, id in self.state.touched}

        def looked(event: Event) -> bool:
            return event.column in entry.reads and not touched.isdisjoint(event.now)

        self.unread = [event for event in self.unread if not looked(event)]
        if self.writes:
            return  # somebody who has begun to write is no longer forestalled
        event = next(filter(looked, self.events), None)
        if event is not None:
            self.events.remove(event)
            self.happened.append(event)
            self.unread.append(event)
            self._lay(event.now)

    def hear(self, change: Change, said: str) -> None:
        """The user speaks of their own accord; `said` is what the agent said before. Nothing here changes by that."""

    async def open(self) -> None:
        """An agent is about to act here. A world in this process has nothing to prepare."""

    async def close(self) -> None:
        """The agent is done."""

    def check(self, call: ToolCall, spec: ToolSpec | None) -> ToolResult | None:
        """The error for a call that does not fit its tool as shown."""
        return refused(call, spec)

    async def ask(self, call: ToolCall) -> ToolResult:
        """Answer a call of an agent; raises `InfrastructureError` where the one who should answer fails."""
        return self.call(call)

    def again(self, call: ToolCall, result: ToolResult) -> None:
        """Make a call of a stored episode once more; `result` is what it was answered there."""
        self.call(call)

    def broken(self) -> str | None:
        """Words for the first invariant that what was written breaks."""
        return None

    def found(self, table: str, id: str, called: str) -> Row:
        """A row, for a tool that cannot do without it."""
        row = self.state.row(table, id)
        if row is None:
            raise ToolFailure("not_found", f"There is no {called} {brief_of(id)}.")
        return row

    def day(self, text: str) -> str:
        """A date as tools take it."""
        try:
            right = Date.fromisoformat(text).isoformat() == text
        except ValueError:
            right = False
        if not right:
            raise ToolFailure("bad_arguments", f"'date' must look like 2031-05-03, got {brief_of(text)}")
        return text

    def tools(self) -> Tools:
        return self.specs

    def call(self, call: ToolCall) -> ToolResult:
        entry = self.entries.get(call.tool)
        if entry is None:
            return failed("unknown_tool", f"There is no tool {brief_of(call.tool)}.")
        if call.tool in self.blocked:
            return failed("unavailable", f"{{{call.tool}}} {self.blocked[call.tool]}.")
        if bad := bad_arguments(entry.spec.params, call.args):
            return failed("bad_arguments", bad)
        state = self.state
        if self.watching:
            if entry.effects and self.unread:
                return failed(CHANGED, self.unread.pop(0).text)  # once: anyone who repeats it unread is on their own
            state.touched.clear()
        state.reads, state.effects, state.journal = entry.reads, entry.effects, []
        try:
            content = entry.run(self, **call.args)
            if state.journal:
                state.reads = entry.reads.union(self.invariants)
                if broken := self.broken():
                    raise ToolFailure("refused", broken)
                self.writes += 1
                state.journal = []
            shown = ToolResult(state.shows(content))
            if self.watching and not entry.effects:
                self._read(entry)
            return shown
        except ToolFailure as failure:
            state.rollback()
            return failed(failure.code, failure.text)
        except Undeclared as undeclared:
            raise Undeclared(undeclared.what, call.tool) from None
        except (CrosswindError, InfrastructureError):
            raise
        except Exception as error:
            if is_ours(error):
                raise
            raise Unfair("code", words_of(error, f"tool {call.tool!r}")) from error
        finally:
            state.reads = None


def _place(key: str) -> Key:
    table, _, id = key.partition("/")
    return table, id
