"""A canonical world: rows (`state.py`), and tools that are plain methods.

No perturbation touches this code. A world answers malformed calls with errors, rolls back a write that breaks an
invariant, and never raises for what a caller sent.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date as Date
from typing import Any, ClassVar, TypeVar, get_type_hints

from crosswind.base.errors import CrosswindError, InfrastructureError, ToolFailure, Unfair
from crosswind.core.blame import is_ours, words_of
from crosswind.core.state import State, Undeclared
from crosswind.core.types import (
    CHANGED,
    Change,
    Event,
    Key,
    Param,
    Row,
    ToolCall,
    ToolResult,
    Tools,
    ToolSpec,
    failed,
)

F = TypeVar("F", bound=Callable[..., Any])

JSON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict,),
}
_NAMES = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
    list: "array",
    tuple: "array",
}


def kind_of(value: object) -> str:
    """What JSON calls the type of a value."""
    return _NAMES.get(type(value)) or ("object" if isinstance(value, Mapping) else type(value).__name__)


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
