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
from typing import Any, ClassVar, TypeVar, get_type_hints

from crosswind.base.errors import ToolFailure
from crosswind.core.types import Change, Changes, Key, Param, Row, Split, ToolCall, ToolResult, Tools, ToolSpec, failed

Derive = Callable[[str, str], "Row | None"]
F = TypeVar("F", bound=Callable[..., Any])

MISSING: Any = object()
STATUS = frozenset({"status", "state", "standing"})  # columns whose values are declared one by one as effects


class State:
    """Rows of a world: writes over edits over what the seed gives. Rows are never changed in place."""

    __slots__ = (
        *("cache", "derive", "edits", "effects", "journal", "overlay"),
        *("reads", "seed", "seen", "size", "split", "touched"),
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
    ) -> None:
        self.derive, self.seed, self.size, self.split = derive, seed, size, split
        self.edits: Mapping[Key, Row | None] = edits or {}
        self.overlay: Changes = {}
        self.cache: dict[Key, Any] = {} if cache is None else cache
        self.journal: list[tuple[Key, Any]] = []  # what to put back if the running call fails
        self.touched: set[Key] = set()  # edited rows that were looked at
        self.seen: set[Key] | None = None  # every row that was looked at, while somebody records
        self.reads: frozenset[str] = frozenset()  # the running tool's declared columns and effects,
        self.effects: frozenset[str] = frozenset()  # which a fenced state enforces

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
        row = self.cache.get(key, MISSING)
        if row is MISSING:
            row = self.cache[key] = self.derive(table, id)
        found: Row | None = row
        return found

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

    def written(self, table: str) -> list[tuple[str, Row]]:
        """Rows of a table that were written and are still there, in the order of writing."""
        if not self.overlay:
            return []
        return [(key[1], row) for key, row in self.overlay.items() if key[0] == table and row is not None]

    def changes(self) -> Changes:
        """What differs from the start."""
        return {key: row for key, row in self.overlay.items() if row != self.start(*key)}


class _FencedRow(dict[str, Any]):
    """A row of which only declared columns may be looked at."""

    def __init__(self, row: Row, table: str, allowed: frozenset[str]) -> None:
        super().__init__(row)
        self.table, self.allowed = table, allowed

    def __getitem__(self, column: str) -> Any:
        if f"{self.table}.{column}" not in self.allowed:
            raise AssertionError(f"reads {self.table}.{column}, which is not declared")
        return super().__getitem__(column)

    def get(self, column: str, default: Any = None) -> Any:
        return self[column] if column in self else default  # noqa: SIM401


class FencedState(State):
    """A state that raises when a tool reads a column or has an effect that it did not declare. For the laws."""

    __slots__ = ()

    def row(self, table: str, id: str) -> Row | None:
        row = super().row(table, id)
        return None if row is None else _FencedRow(row, table, self.reads)

    def put(self, table: str, id: str, row: Row | None) -> None:
        plain = None if row is None else dict(row)
        undeclared = unmet(effects(table, State.row(self, table, id), plain), self.effects)
        if undeclared:
            raise AssertionError(f"has effects that are not declared: {sorted(undeclared)}")
        super().put(table, id, plain)

    def written(self, table: str) -> list[tuple[str, Row]]:
        return [(id, _FencedRow(row, table, self.reads)) for id, row in super().written(table)]


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
        """Answer a call of an agent; raises `InfrastructureError` where whoever should answer fails."""
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
        state.reads, state.effects, state.journal = entry.reads, entry.effects, []
        try:
            content = entry.run(self, **call.args)
            if state.journal:
                state.reads = entry.reads.union(self.invariants)
                if broken := self.broken():
                    raise ToolFailure("refused", broken)
                self.writes += 1
                state.journal = []
            return ToolResult(content)
        except ToolFailure as failure:
            state.rollback()
            return failed(failure.code, failure.text)
