"""Footprints of a domain's tools: each is exercised, and what it reads and writes is compared with its declaration.

Refusal proofs rest on footprints, so a wrong one refuses the domain.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any

from crosswind.base.errors import Unfair
from crosswind.core.declarations import wrong_declarations
from crosswind.core.domain import Domain, words_for
from crosswind.core.flow import rng_for
from crosswind.core.oracle import walk
from crosswind.core.state import MISSING, STATUS
from crosswind.core.types import Changes, Key, Row, Step, Task, ToolCall, ToolResult
from crosswind.core.world import Entry, World

TRIES = 40  # calls that are tried until a tool answers
ANSWERS = 3  # answers of a tool that are looked at
WORDS = 8  # different words at most in a column whose words are tried one by one
LOOKS = 8  # calls of a look-up with values that fit
VARIANTS = 24  # worlds with another word in a row that a call is tried in

Found = tuple[str, str]  # the tool, and what is wrong


def exercise(domain: Domain, tasks: Iterable[Task]) -> list[Found]:
    """Call every tool in fenced worlds with values from walks; what is wrong with the footprints."""
    out: dict[Found, None] = dict.fromkeys(wrong_declarations(domain.world_class))
    walks: list[tuple[Task, list[Step]]] = []
    columns: dict[str, set[str]] = {}
    halted = False
    pool: dict[str, dict[Any, None]] = {}
    for task in tasks:
        seen: set[Key] = set()
        steps: list[Step] = []
        try:
            made = walk(domain, task, seen=seen)
            _note(columns, made.session.world, seen)
            steps = made.steps
        except Unfair as unfair:
            if unfair.law == "footprint":
                halted = True
                out["", unfair.reason] = None  # anything else is the business of the task's own certificate
        walks.append((task, steps))
        collect(pool, task, steps)
    entries = domain.world_class.entries
    held = _known_values(domain, [task for task, _ in walks])
    for name, entry in entries.items():
        error, answered = "", 0
        good: tuple[Task, ToolCall] | None = None
        barred: list[tuple[World, ToolCall, set[Key], str]] = []
        for task, world, call in islice(tries(domain, walks, name, entry, pool), TRIES):
            seen = set()
            world.state.seen = seen
            before = domain.normalise(world.state) if entry.spec.undo else {}
            try:
                result = world.call(call)
            except Unfair as unfair:
                out[name, unfair.reason] = None
                answered = 1
                break
            _note(columns, world, seen)
            if result.error is None:
                answered += 1
                good = good or (task, call)
                if why := _left_by_undo(domain, world, entry, result, before):
                    out[name, why] = None
                if hidden := _reads_more(domain, task, call, entry, result, seen):
                    out[name, f"tool {name!r} reads {hidden}, which its `reads` do not declare"] = None
                if why := _remembers(domain, task, world, call, entry, result, seen):
                    out[name, why] = None
                for why, _ in _otherwise(world, call, seen, held):
                    if why:
                        out[name, why] = None
                if answered == ANSWERS:
                    break
            else:
                error = result.error.text
                barred.append((world, call, seen, error))
        for world, call, seen, words in barred if not answered else ():
            told = {key: {*known, *re.findall(r"\w+", words)} for key, known in held.items()}
            for why, works in _otherwise(world, call, seen, told):
                answered += works
                if why:
                    out[name, why] = None
        if not answered and not halted:  # else the walks hold too few values
            out[
                name, f"tool {name!r} could not be exercised: no call with values from the walks succeeds ({error})"
            ] = None
        if good and (why := _fails_on_odd_arguments(domain, entry, *good)):
            out[name, why] = None
    return [*out, *(() if halted else _missing(domain, columns))]


def _fails_on_odd_arguments(domain: Domain, entry: Entry, task: Task, call: ToolCall) -> str:
    """Why a tool raises, or breaks its declaration, for arguments that its schema allows."""
    for args in _odd_arguments(entry, call.args):
        try:
            domain.world(task, fenced=True).call(ToolCall(call.tool, args))
        except Unfair as unfair:
            sent = ", ".join(f"{k}={v!r}" for k, v in args.items() if call.args.get(k, MISSING) != v)
            return f"{unfair.reason}; called with {sent or 'an optional argument left out'}"
    return ""


def _odd_arguments(entry: Entry, args: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A call that succeeds with one argument changed: every listed value, and values that a tool may refuse."""
    for name, param in entry.spec.params.items():
        odd: dict[str, tuple[Any, ...]] = {
            "string": ("", "no such thing", "X0000000", "2031-02-30"),
            "integer": (0, -1, 10**6),
            "number": (0.0, -1.5, 1e9),
            "boolean": (True, False),
        }
        for value in param.enum or odd.get(param.type, ()):
            yield {**args, name: value}
        if not param.required:
            yield {k: v for k, v in args.items() if k != name}


def _known_values(domain: Domain, tasks: Sequence[Task]) -> dict[str, set[str]]:
    """The words that a column is known to hold: in rows, in rows that obstacles edit, and by declared effects."""
    out: dict[str, set[str]] = {}

    def take(table: str, row: Mapping[str, Any] | None) -> None:
        for column, value in (row or {}).items():
            if isinstance(value, str):
                out.setdefault(f"{table}.{column}", set()).add(value)

    for task in tasks:
        state = domain.state(task)
        for (table, _), row in list(state.cache.items()):
            take(table, row)
        try:
            for obstacle in domain.family(task).obstacles(task, state, rng_for("exercise", task.id)):
                for key, row in obstacle.items():
                    take(key.partition("/")[0], row)
        except Unfair:
            continue
    for entry in domain.world_class.entries.values():
        for effect in entry.effects:
            column, equals, value = effect.partition("=")
            if equals:
                out.setdefault(column, set()).add(value)
    return {column: values for column, values in out.items() if len(values) <= WORDS}


def _otherwise(
    world: World, call: ToolCall, seen: set[Key], held: Mapping[str, set[str]]
) -> Iterator[tuple[str, bool]]:
    """Make a call once more, and where rows that it looks at hold other words or are gone: what is wrong, and does it
    work? Code that raises in a world which the author never meant is not at fault."""
    state = world.state
    tries: list[tuple[Key, Row | None]] = []
    for key in sorted(seen):
        row = state.row(*key)
        tries += [
            (key, {**(row or {}), column: other})
            for column, value in (row or {}).items()
            for other in sorted(held.get(f"{key[0]}.{column}", ()))
            if other != value
        ]
        tries += [(key, None)] if row else []
    for at in (None, *tries[:VARIANTS]):
        before = dict(state.overlay)
        if at is not None:
            state.overlay[at[0]] = at[1]
        try:
            yield "", world.call(call).error is None
        except Unfair as unfair:
            yield unfair.reason if unfair.law == "footprint" else "", False
        state.overlay.clear()
        state.overlay.update(before)


def _remembers(
    domain: Domain, task: Task, world: World, call: ToolCall, entry: Entry, result: ToolResult, seen: set[Key]
) -> str:
    """Does a tool answer from something else than rows: what it was asked before, here or in another world?"""
    name = entry.spec.name
    if entry.effects:
        return ""
    if any(world.call(call) != result for _ in range(3)):
        return f"tool {name!r} answers the same call otherwise when it is made again, though nothing was written"
    base = domain.world(task)
    looked = base.state.seen = set()
    shown = [(path, v) for path, v in _leaves(base.call(call).content) if v and v not in call.args.values()]
    if shown and entry.reads and not looked:
        return f"tool {name!r} answers without a look at any row: it remembers what it was asked in another world"
    rows = {key: row for key in seen if (row := domain.state(task).start(*key)) is not None}
    edits: dict[Key, Row | None] = {key: {c: _moved(v) for c, v in row.items()} for key, row in rows.items()}
    copied = [path for path, v in shown if any(row.get(path) == v and v != _other(v) for row in rows.values())]
    numbers = [path for path, v in shown if path in copied and isinstance(v, (int, float))]
    other = domain.world(task)
    other.state.edits = {**other.state.edits, **edits}  # above what an obstacle of the task has set
    try:
        there = other.call(call)
    except Unfair:
        return ""
    if numbers and there == result:
        return f"tool {name!r} shows the {numbers[0]} of another world: it remembers what it was asked there"
    return ""


def _leaves(content: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """The single values of some content, each with its key."""
    if isinstance(content, Mapping):
        for name, value in content.items():
            yield from _leaves(value, str(name))
    elif isinstance(content, (list, tuple)):
        for value in content:
            yield from _leaves(value, key)
    else:
        yield key, content


def _left_by_undo(domain: Domain, world: World, entry: Entry, result: ToolResult, before: Changes) -> str:
    """What is wrong with taking a write back, if anything is; `before` are the changes before it was made."""
    if not entry.spec.undo:
        return ""
    tool, key = entry.spec.undo
    name = entry.spec.name
    if not isinstance(result.content, dict) or key not in result.content:
        return f"tool {name!r} is undone by {tool!r} with {key!r}, which its result does not hold"
    if tool not in world.entries:
        return ""
    back = ToolCall(tool, {key: result.content[key]})
    try:
        undone = world.call(back)
        left = domain.normalise(world.state)
        world.call(back)  # whatever it says to what was undone already
    except Unfair as unfair:
        return unfair.reason
    if undone.error is not None:
        return f"tool {name!r} is undone by {tool!r}, which answers: {undone.error.text}"
    rest = {key: row for key, row in left.items() if key not in before or before[key] != row}
    return f"tool {name!r} is undone by {tool!r}, which leaves behind: {words_for(rest)}" if rest else ""


def _note(columns: dict[str, set[str]], world: World, seen: set[Key]) -> None:
    """Remember which tables and columns there are."""
    state = world.state
    for table, id in (*seen, *state.overlay):
        for row in (state.start(table, id), state.overlay.get((table, id))):
            if row is not None:
                columns.setdefault(table, set()).update(row)


def collect(pool: dict[str, dict[Any, None]], task: Task, steps: Sequence[Step]) -> None:
    """Values by the name that calls, results and the request know them by."""

    def take(name: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, one in value.items():
                take(key, one)
        elif isinstance(value, (list, tuple)):
            for one in value:
                take(name, one)
        elif value is not None:
            pool.setdefault(name, {})[value] = None

    take("", task.wanted)
    for step in steps:
        take("", dict(step.call.args))
        take("", step.result.content)


def tries(
    domain: Domain, walks: list[tuple[Task, list[Step]]], name: str, entry: Entry, pool: dict[str, dict[Any, None]]
) -> Iterator[tuple[Task, World, ToolCall]]:
    """Calls of a tool, each with a world to make it in: those of walks first, then such as may fit."""
    for task, steps in walks:
        for n, step in enumerate(steps):
            if step.call.tool == name and step.result.error is None:
                world = domain.world(task, fenced=True)
                for before in steps[:n]:
                    world.call(before.call)
                yield task, world, step.call
                break
    for task, steps in walks:
        own: dict[str, dict[Any, None]] = {}
        collect(own, task, steps)
        for held in (own, pool):  # values of this world, and if it has none, of any
            choices = [[(p, v) for v in fitting(p, q.type, q.enum, held)] for p, q in entry.spec.params.items()]
            for args in islice(product(*choices), 6):
                world = domain.world(task, fenced=True)
                yield task, world, ToolCall(name, dict(args))
                for step in steps:  # once more with what the walk leaves
                    world.call(step.call)
                yield task, world, ToolCall(name, dict(args))


def look_ups(domain: Domain, task: Task, steps: Sequence[Step]) -> Iterator[ToolCall]:
    """Calls of every tool that writes nothing: those of a walk, and others with values from it."""
    pool: dict[str, dict[Any, None]] = {}
    collect(pool, task, steps)
    for name, entry in domain.world_class.entries.items():
        if not entry.effects:
            yield from (step.call for step in steps if step.call.tool == name)
            choices = [fitting(p, q.type, q.enum, pool) for p, q in entry.spec.params.items()]
            for args in islice(product(*choices), LOOKS):
                yield ToolCall(name, dict(zip(entry.spec.params, args, strict=True)))


def fitting(name: str, type_: str, enum: tuple[str, ...], pool: dict[str, dict[Any, None]]) -> list[Any]:
    if enum:
        return list(enum)[:3]
    if type_ == "boolean":
        return [True, False]
    kinds: Any = {"string": str, "integer": int, "number": (int, float)}.get(type_, object)

    def fits(values: Iterable[Any]) -> list[Any]:
        return [v for v in values if isinstance(v, kinds) and not isinstance(v, bool)]

    found = fits(pool.get(name, ()))
    if not found:
        last = name.rpartition("_")[2]
        found = fits(v for key, held in pool.items() if key.rpartition("_")[2] == last or name in key for v in held)
    found = found or fits(v for held in pool.values() for v in held)
    return found[:4] or [{"string": "text", "integer": 1, "number": 1.0}.get(type_)]


def _reads_more(domain: Domain, task: Task, call: ToolCall, entry: Entry, result: ToolResult, seen: set[Key]) -> str:
    """An undeclared column whose value changes what a tool answers, whatever way it is read."""
    if entry.effects:
        return ""
    base = domain.world(task)
    if base.call(call) != result:
        return ""  # it depends on what was written before

    def differs(columns: set[str]) -> bool:
        state, edits = domain.state(task), dict(task.edits)
        for table, id in seen:
            row = state.start(table, id)
            if row is not None and any(f"{table}.{c}" in columns for c in row):
                edits[f"{table}/{id}"] = {c: _other(v) if f"{table}.{c}" in columns else v for c, v in row.items()}
        try:
            return domain.world(task.replace(edits=edits)).call(call) != result
        except Unfair:
            return True

    state = domain.state(task)
    rows: list[tuple[str, Row]] = [(t, row) for t, i in seen if (row := state.start(t, i)) is not None]
    hidden = {f"{t}.{c}" for t, row in rows for c in row} - entry.reads
    if not hidden or not differs(hidden):
        return ""
    return next((column for column in sorted(hidden) if differs({column})), ", ".join(sorted(hidden)))


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    return f"{value}x" if isinstance(value, str) else value


def _moved(value: Any) -> Any:
    """A value with every number in it changed."""
    if isinstance(value, Mapping):
        return {key: _moved(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_moved(one) for one in value]
    return _other(value) if isinstance(value, (int, float)) else value


def _missing(domain: Domain, columns: dict[str, set[str]]) -> list[Found]:
    """Declared tables and columns that no row has."""
    out: dict[Found, None] = {}
    declared = [(name, "reads", column) for name, e in domain.world_class.entries.items() for column in e.reads]
    for name, entry in domain.world_class.entries.items():
        declared += [(name, "writes", effect.partition("=")[0].rstrip("+-")) for effect in entry.effects]
    declared += [("", "invariants", column) for column in domain.world_class.invariants]
    for name, where, text in declared:
        table, _, column = text.partition(".")
        whose = f"tool {name!r}" if name else "the world"
        if table not in columns:
            out[name, f"{whose} declares the table {table!r} in `{where}`, and no such row was ever seen"] = None
        elif column and column not in columns[table] and column not in STATUS:
            out[name, f"{whose} declares the column {text!r} in `{where}`, and no row has it"] = None
    return list(out)
