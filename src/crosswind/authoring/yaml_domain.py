"""A domain that is declared in a YAML file: tables, tools, rules and families become a `Domain` like any other.

`solve` makes the declared calls and reads their results. What is right (`ends`, `answer`, `hopes`) is found without it,
by following the same declaration over the rows of a state; no tool, session or layer has a part in that. A declaration
that asks for the wrong thing is wrong on both sides, though: no law can see that.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date as Date
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any, ClassVar, NamedTuple

from crosswind.authoring.yaml_schema import (
    NAMES,
    Column,
    Condition,
    Declaration,
    Ref,
    Request,
    Rule,
    Step,
    Table,
    Tool,
    argument_column,
    arguments,
    conditions,
    filled,
    holes,
    is_many,
    minutes,
    read,
    reader_sort,
    ref,
    without_holes,
)
from crosswind.base.errors import ToolFailure
from crosswind.base.files import Document, Place
from crosswind.core import domain as domains_module
from crosswind.core.domain import Detail, Domain, Family, Reader, read_choice, read_counts, read_ids, shifted_number
from crosswind.core.flow import digest
from crosswind.core.names import Namer, Numbering, unused
from crosswind.core.types import Brief, Changes, Param, Refusal, Row, Solution, Split, Task, ToolCall, ToolSpec
from crosswind.core.world import STATUS, Derive, Entry, State, World, brief_of
from crosswind.text import values
from crosswind.text.answers import Expected, Kind

LARGEST = 300_000  # entities of a world for which ids are long enough
Found = Mapping[str, Mapping[str, Any]]  # what each step gave


def load(path: Path | str) -> Domain:
    """The domain that a file declares."""
    declared, document = read(path)
    domain = build(declared)
    for name, family in domain.families.items():
        _check_words(document, ("families", name, "queries"), family)
    return domain


def _check_words(document: Document, place: Place, family: Family) -> None:
    """Refuse words that would be taken for a detail: in a query, or in what stands in for one that is withheld."""
    texts = [((*place, i), without_holes(query)) for i, query in enumerate(family.queries)]
    texts += [(("details", key), detail.vague) for key, detail in family.details.items()]
    for at, text in texts:
        for key, detail in family.details.items():
            if found := detail.read(text):
                raise document.error(at, f"the words themselves hold {found[0]!r}, to be taken for {{{key}}}; reword")


def build(declared: Declaration) -> Domain:
    """A domain from its declaration."""
    domains_module._rows.cache_clear()  # rows of an earlier domain of this name
    shapes = Shapes(declared)
    world: type[DeclaredWorld] = type(f"{_camel(declared.domain)}World", (DeclaredWorld,), _world(declared, shapes))
    world.entries = {name: _entry(declared, shapes, name, tool) for name, tool in declared.tools.items()}
    world.specs = tuple(entry.spec for entry in world.entries.values())
    parts = {"name": declared.domain, "summary": declared.summary, "policy": declared.policy, "world_class": world}
    made: type[DeclaredDomain] = type(
        _camel(declared.domain), (DeclaredDomain,), {**parts, "__doc__": declared.summary}
    )
    return made(declared, shapes)


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


# ---------------------------------------------------------------- rows


class At(NamedTuple):
    """Which world."""

    split: Split
    seed: int
    size: int


def at(state: State) -> At:
    return At(state.split, state.seed, state.size)


def _hash(*parts: object) -> int:
    return int.from_bytes(digest(*parts), "big")


class Shape:
    """One table: which rows there are, what they go by and what they hold, each found from its number alone."""

    def __init__(self, name: str, table: Table, shapes: Mapping[str, Shape]) -> None:
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

    def some(self, at: At, chance: int) -> int | None:
        """The number of some row, by a large number from which it is drawn."""
        if not self.parent:
            return chance % self.total(at) if self.total(at) else None
        above = self.parent.some(at, chance)
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
            return shape.id(at, shape.some(at, chance) or 0)
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


class Shapes(dict[str, Shape]):
    """All tables of a domain, and look-ups over the rows of a state."""

    def __init__(self, declared: Declaration) -> None:
        super().__init__()
        for name, table in declared.tables.items():
            self[name] = Shape(name, table, self)

    def derive(self, where: At) -> Derive:
        def row(table: str, id: str) -> Row | None:
            shape = self.get(table)
            n = shape.number(where, id) if shape else None
            return shape.row(where, n) if shape and n is not None else None

        return row

    def under(self, state: State, table: str, parent: str) -> list[tuple[str, Row]]:
        """The rows that belong to one of the parent, those of the seed first."""
        shape = self[table]
        assert shape.parent is not None
        where, ids = at(state), []
        n = shape.parent.number(where, parent)
        if n is not None and shape.table.most:
            first = n * shape.table.most
            ids = [shape.id(where, first + k) for k in range(shape.under(where, n))]
        new = [id for id, row in state.written(table) if row[shape.parent.key] == parent]
        found = ((id, state.row(table, id)) for id in dict.fromkeys((*ids, *new)))
        return [(id, row) for id, row in found if row is not None]


def meets(row: Row, wanted: Sequence[Condition], details: Mapping[str, Any] = {}, found: Found = {}) -> bool:  # noqa: B006
    return all(c.holds(row[c.column], c.ref.value(details, found)) for c in wanted)


# ---------------------------------------------------------------- tools


class DeclaredWorld(World):
    """State, tools and rules of a declared domain."""

    shapes: ClassVar[Shapes]
    rules: ClassVar[tuple[Rule, ...]]
    written: ClassVar[tuple[str, ...]]  # tables that tools write

    def broken(self) -> str | None:
        return broken(self.state, self.shapes, self.rules, self.written)


def broken(state: State, shapes: Shapes, rules: Sequence[Rule], tables: Sequence[str]) -> str | None:
    """Words for the first rule that a written row breaks; whatever it refers to must exist as well."""
    for table in tables:
        shape = shapes[table]
        for id, row in state.written(table):
            if row == state.start(table, id):
                continue
            for name, column in shape.columns.items():
                if column.refer and state.row(column.refer, row[name]) is None:
                    return f"there is no {shapes[column.refer].label} {row[name]}"
            for rule in rules:
                if rule.table == table and meets(row, rule.applies) and not _keeps(state, shapes, rule, row):
                    return filled(rule.say, {shape.key: id, **{n: row[n] for n in holes(rule.say) if n in row}}, {})
    return None


def _keeps(state: State, shapes: Shapes, rule: Rule, row: Row) -> bool:
    shape = shapes[rule.table]
    if rule.limit is not None:
        assert shape.parent is not None
        alike = shapes.under(state, rule.table, row[shape.parent.key])
        return sum(meets(other, rule.applies) for _, other in alike) <= rule.limit
    other: Row | None = row
    if rule.refer:
        other = state.row(shape.columns[rule.refer].refer, row[rule.refer])
    return other is not None and meets(other, rule.demands)


def _world(declared: Declaration, shapes: Shapes) -> dict[str, Any]:
    """The body of a world class."""
    tables = tuple(dict.fromkeys(tool.table for tool in declared.tools.values() if tool.act != "look"))
    seen: set[str] = set()
    for table in tables:
        seen |= {f"{table}.{name}" for name, column in shapes[table].columns.items() if column.refer}
    for rule in declared.rules:
        other = shapes[rule.table].columns[rule.refer].refer if rule.refer else rule.table
        seen |= {
            f"{rule.table}.{name}" for name in (*rule.when, *holes(rule.say)) if name in shapes[rule.table].columns
        }
        seen |= {f"{other}.{name}" for name in rule.must}
    return {
        "shapes": shapes,
        "rules": declared.rules,
        "written": tables,
        "invariants": tuple(sorted(seen)),
        "__module__": __name__,
    }


def _entry(declared: Declaration, shapes: Shapes, name: str, tool: Tool) -> Entry:
    """What is shown of a tool, its code and its footprint."""
    shape, table = shapes[tool.table], tool.table
    params = {a: _param(argument_column(declared, tool, a)) for a in arguments(declared, tool)}
    effects: set[str] = {f"{table}+"} if tool.act == "create" else {f"{table}-"} if tool.act == "delete" else set()
    for column, value in (*tool.row.items(), *tool.set.items()):
        if column in STATUS:
            effects.add(f"{table}.{column}" if ref(value).detail else f"{table}.{column}={value}")
        elif tool.act == "change":
            effects.add(f"{table}.{column}")
    if tool.act == "create":
        effects |= {f"{table}.{column}={value}" for column, value in shape.fixed.items() if column in STATUS}
    shown = () if tool.act == "create" else (c for c in tool.give if c not in tool.set)
    columns = {c for c in (*tool.by, *tool.requires, *shown) if c in shape.columns}
    undo = (tool.undo, shape.key) if tool.undo else None
    spec = ToolSpec(name, tool.doc, params, bool(effects), undo, ids=frozenset({name}))
    run = _runner(declared, shapes, tool)
    return Entry(spec, run, frozenset(f"{table}.{c}" for c in columns), frozenset(effects))


def _param(column: Column) -> Param:
    doc = "YYYY-MM-DD" if column.date else "HH:MM" if column.time else ""
    return Param(column.type, doc, True, column.choice)


def _runner(declared: Declaration, shapes: Shapes, tool: Tool) -> Callable[..., Any]:
    """The code of a tool."""
    shape, table = shapes[tool.table], tool.table
    own = {a: argument_column(declared, tool, a) for a in arguments(declared, tool) if a not in tool.by}

    def given(id: str, row: Row) -> Row:
        return {c: id if c == shape.key else row[c] for c in tool.give}

    def look(world: World, /, **args: Any) -> Row:
        return given(args[shape.key], world.found(table, args[shape.key], shape.label))

    def search(world: World, /, **args: Any) -> list[Row]:
        assert shape.parent is not None
        parent = args.pop(shape.parent.key)
        world.found(shape.parent.name, parent, shape.parent.label)
        rows = shapes.under(world.state, table, parent)
        return [given(id, row) for id, row in rows if all(row[c] == value for c, value in args.items())]

    def create(world: World, /, **args: Any) -> Row:
        _check(world, shapes, own, args)
        row = {**shape.fixed, **{c: ref(value).value(args, {}) for c, value in tool.row.items()}}
        row = {c: row[c] for c in shape.columns}
        id = new_id(world.state, shape, row)
        world.state.put(table, id, row)
        return given(id, row)

    def write(world: World, /, **args: Any) -> Row:
        id = args[shape.key]
        row = world.found(table, id, shape.label)
        for condition in tool.required:
            if not meets(row, [condition]):
                raise ToolFailure(
                    "conflict", f"The {condition.column} of {shape.label} {id} is {row[condition.column]}."
                )
        _check(world, shapes, own, args)
        if tool.act == "delete":
            world.state.put(table, id, None)
            return {shape.key: id}
        new = {**row, **{c: ref(value).value(args, {}) for c, value in tool.set.items()}}
        world.state.put(table, id, new)
        return given(id, new)

    if tool.act == "look":
        return search if is_many(declared, tool) else look
    return create if tool.act == "create" else write


def _check(world: World, shapes: Shapes, own: Mapping[str, Column], args: Mapping[str, Any]) -> None:
    """Refuse arguments that the columns they are written to cannot hold."""
    for name, column in own.items():
        value = args[name]
        if column.refer:
            world.found(column.refer, value, shapes[column.refer].label)
        elif column.number and not column.number.low <= value <= column.number.high:
            reach = f"from {column.number.low} to {column.number.high}"
            raise ToolFailure("bad_arguments", f"{name!r} must be {reach}, got {brief_of(str(value))}")
        elif column.date and not _day(value):
            raise ToolFailure("bad_arguments", f"{name!r} must look like 2031-05-03, got {brief_of(value)}")
        elif column.time and minutes(value) is None:
            raise ToolFailure("bad_arguments", f"{name!r} must look like 08:30, got {brief_of(value)}")
        elif isinstance(value, str) and len(value) > 200:
            raise ToolFailure("bad_arguments", f"{name!r} must have at most 200 characters, got {len(value)}")


def _day(text: str) -> bool:
    try:
        return Date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def new_id(state: State, shape: Shape, row: Row) -> str:
    """An id made of what the row holds; the next one where the same was made before."""

    def taken(id: str) -> bool:
        return state.row(shape.name, id) is not None

    content = (row[c] for c in shape.columns)
    return unused(taken, shape.table.id.prefix, shape.digits, shape.name, *content, times=0)


# ---------------------------------------------------------------- the domain


class DeclaredDomain(Domain):
    """A domain made of a declaration."""

    def __init__(self, declared: Declaration, shapes: Shapes) -> None:
        self.declared, self.shapes = declared, shapes
        self.readers: dict[str, Reader] = {}
        self.details = {name: self._detail(name, made) for name, made in declared.details.items()}
        families: list[DeclaredFamily] = []
        for name, kind in declared.families.items():
            body = {"name": name, "level": kind.level, "refusal": kind.refusal, "queries": kind.queries}
            about = {
                "__doc__": kind.about,
                "stands": " > ".join(step.call for step in kind.steps),
                "__module__": __name__,
            }
            made: type[DeclaredFamily] = type(_camel(name), (DeclaredFamily,), {**body, **about})
            families.append(made(self))
        self.families = {family.name: family for family in families}
        type(self).named = frozenset(column for family in families for column in family.named())

    def derive(self, seed: int, size: int, split: Split) -> Derive:
        return self.shapes.derive(At(split, seed, size))

    def vary(self, task: Task, table: str, column: str, value: Any, salt: object) -> Any:
        where = At(task.split, task.seed, task.size)
        return self.shapes[table].varied(where, column, value, (table, column, salt))

    def normalise(self, state: State) -> Changes:
        """New rows go by what they hold; those that were taken back are dropped."""
        out: Changes = {}
        for (table, id), row in state.changes().items():
            if row is not None and state.start(table, id) is None:
                if self.void(table, row):
                    continue
                id = f"new {json.dumps(row, sort_keys=True)}"
                while (table, id) in out:
                    id += " again"
            out[table, id] = row
        return out

    def void(self, table: str, row: Row) -> bool:
        """Is a row that was made in the episode one that was taken back?"""
        for tool in self.declared.tools.values():
            if tool.act == "create" and tool.table == table and tool.undo:
                back = self.declared.tools[tool.undo].set
                if back and all(row[column] == value for column, value in back.items()):
                    return True
        return False

    def legal(self, state: State) -> bool:
        world = self.world_class
        assert issubclass(world, DeclaredWorld)
        return broken(state, self.shapes, world.rules, world.written) is None

    # -- details

    def _detail(self, name: str, made: Request) -> Detail:
        label = made.label or name.removesuffix("_id").replace("_", " ")
        words = dict.fromkeys((*made.words, *label.lower().split(), *name.split("_")))
        record, column = None, None
        if made.record:
            tool, _, key = made.record.partition(".")
            look = self.declared.tools[tool]
            record, column = (tool, look.by[0], key), (look.table, key)
        ask, vague = made.ask or f"Which {label}?", made.vague or f"a certain {label}"
        return Detail(label, ask, self._reader(made), tuple(words), vague, record, column)

    def _reader(self, made: Request) -> Reader:
        """What finds values of a detail in a text; one object for each sort."""
        sort = reader_sort(self.declared, made)
        if sort not in self.readers:
            self.readers[sort] = self._new_reader(sort, made)
        return self.readers[sort]

    def _new_reader(self, sort: str, made: Request) -> Reader:
        if sort.startswith("id of "):
            shape = self.shapes[sort.removeprefix("id of ")]
            return shape.namer.find if shape.namer else read_ids(shape.table.id.prefix, shape.digits)
        if sort.startswith("name of "):
            return Namer(NAMES[sort.removeprefix("name of ")]).find
        plain: dict[str, Reader] = {"number": read_counts, "date": values.dates, "time": values.times}
        if sort in plain:
            return plain[sort]
        table, _, name = made.of.partition(".")
        column = self.declared.tables[table].columns[name]
        return read_choice({choice: column.words.get(choice, ()) for choice in column.choice})

    def some(self, key: str, rng: Random, where: At) -> Any:
        """A value that a detail may have; None where there is none."""
        made, chance = self.declared.details[key], rng.getrandbits(60)
        if made.number:
            steps = round((made.number.high - made.number.low) / made.number.step) + 1
            return made.number.low + chance % steps * made.number.step
        table, _, name = made.of.partition(".")
        shape, column = self.shapes[table], self.declared.tables[table].columns.get(name)
        n = 0 if column and not column.name else shape.some(where, chance)  # names belong to rows, other values do not
        if n is None:
            return None
        return shape.value(where, name, column, n, chance) if column else shape.id(where, n)


# ---------------------------------------------------------------- families


@dataclass(slots=True)
class Way:
    """How far a declaration was followed over the rows of a state."""

    state: State  # with what was written so far
    found: dict[str, dict[str, Any]] = field(default_factory=dict)  # step -> row and key
    rivals: dict[str, list[Row]] = field(default_factory=dict)  # step -> the rows that were not taken
    taken: dict[str, list[str]] = field(default_factory=dict)  # step -> ids of the rows that could be taken

    def fork(self) -> Way:
        state = _fresh(self.state)
        state.overlay = dict(self.state.overlay)
        return Way(state, dict(self.found), dict(self.rivals), dict(self.taken))


def _fresh(state: State) -> State:
    """The same world before anything was written."""
    where: dict[str, Any] = {"seed": state.seed, "size": state.size, "split": state.split}
    return State(state.derive, state.edits, state.cache, **where)


class DeclaredFamily(Family):
    """A family made of a declaration."""

    stands: ClassVar[str]
    domain: DeclaredDomain

    def __init__(self, domain: DeclaredDomain) -> None:
        self.domain = domain
        self.kind = domain.declared.families[self.name]
        self.steps = self.kind.steps
        self.details = {key: domain.details[key] for key in holes(self.queries[0])}
        self.where = [conditions(step.where) for step in self.steps]

    def tool(self, step: Step) -> Tool:
        return self.domain.declared.tools[step.call]

    def many(self, step: Step) -> bool:
        return is_many(self.domain.declared, self.tool(step))

    def named(self) -> Iterator[str]:
        """Columns that requests speak of."""
        for step, where in zip(self.steps, self.where, strict=True):
            table, shape = self.tool(step).table, self.domain.shapes[self.tool(step).table]
            if self.many(step):
                columns = [a for a, value in step.args.items() if ref(value).detail and a in shape.table.columns]
                columns += [c.column for c in where if c.ref.detail and c.test == "="]
                yield from (f"{table}.{column}" for column in columns)

    # -- the solution

    def withhold(self, rng: Random) -> tuple[str, ...]:
        return (rng.choice(self.kind.withhold),) if self.kind.withhold else ()

    def solve(self, brief: Brief) -> Solution:
        details = dict(zip(self.details, (yield from self.all(brief, *self.details)), strict=True))
        found: dict[str, Mapping[str, Any]] = {}
        for step, where in zip(self.steps, self.where, strict=True):
            args = {name: ref(value).value(details, found) for name, value in step.args.items()}
            content = (yield ToolCall(step.call, args)).content
            if not self.many(step):
                found[step.step] = content
                continue
            rows = [row for row in content if meets(row, where, details, found)]
            if step.count:
                found[step.step] = {"count": len(rows)}
                continue
            if not rows:
                return Refusal(filled(step.none, details, found))
            found[step.step] = _best(rows, step)[0]
        return filled(self.kind.answer, details, found)

    # -- what is right, from the rows

    def ends(self, task: Task, start: State) -> list[Changes]:
        way = self.follow(self.settled(task, start), start)
        return [way.state.changes()] if way else []

    def hopes(self, task: Task, start: State) -> list[Changes]:
        """Whichever rows a step might have taken if they stood otherwise."""
        details = self.settled(task, start)
        if all(self.tool(step).act == "look" for step in self.steps):
            return [{}]
        ways = [Way(_fresh(start))]
        for i in range(len(self.steps)):
            ways = [further for way in ways for further in self._hoped(way, i, details)]
        out = {repr(sorted(changes.items())): changes for way in ways if (changes := way.state.changes())}
        return list(out.values())

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        way = self.follow(self.settled(task, start), start)
        return tuple(self._expected(ref(value), way, end) for value in self.kind.expect) if way else ()

    def follow(self, details: Mapping[str, Any], start: State) -> Way | None:
        """Follow the steps over rows; None where one cannot be done, or where a tie leaves it open."""
        way = Way(_fresh(start))
        return way if all(self._taken(way, i, details) for i in range(len(self.steps))) else None

    def _taken(self, way: Way, i: int, details: Mapping[str, Any]) -> bool:
        step = self.steps[i]
        tool, shape = self.tool(step), self.domain.shapes[self.tool(step).table]
        args = {name: ref(value).value(details, way.found) for name, value in step.args.items()}
        if not self.many(step):
            return self._done(way, step, args) and (tool.act == "look" or self.domain.legal(way.state))
        rows = self._under(way, step, args)
        if rows is None:
            return False
        fit = [
            {**row, shape.key: id}
            for id, row in rows
            if all(row[a] == value for a, value in args.items())
            and meets({**row, shape.key: id}, self.where[i], details, way.found)
        ]
        way.taken[step.step] = [row[shape.key] for row in fit]
        if step.count:
            way.found[step.step] = {"count": len(fit)}
            return True
        best = _best(fit, step) if fit else []
        if len(best) != 1:
            return False
        way.found[step.step] = dict(best[0])
        way.rivals[step.step] = [row for row in fit if row is not best[0]]
        return True

    def _under(self, way: Way, step: Step, args: Mapping[str, Any]) -> list[tuple[str, Row]] | None:
        """The rows among which a look-up finds its own; None where what they belong to does not exist."""
        shape = self.domain.shapes[self.tool(step).table]
        assert shape.parent is not None
        parent = args[shape.parent.key]
        if way.state.row(shape.parent.name, parent) is None:
            return None
        return self.domain.shapes.under(way.state, shape.name, parent)

    def _done(self, way: Way, step: Step, args: Mapping[str, Any], *, strict: bool = True) -> bool:
        """Do what a tool does to one row, if it can be done."""
        tool, shape = self.tool(step), self.domain.shapes[self.tool(step).table]
        state, table = way.state, shape.name
        row: dict[str, Any] | None
        if tool.act == "create":
            put = {**shape.fixed, **{c: ref(value).value(args, {}) for c, value in tool.row.items()}}
            row = {c: put[c] for c in shape.columns}
            id = new_id(state, shape, row)
            state.put(table, id, row)
        else:
            id = args[shape.key]
            old = state.row(table, id)
            if old is None or (strict and not meets(old, tool.required)):
                return False
            row = {**old, **{c.column: c.ref.literal for c in tool.required if c.test == "="}}
            if tool.act == "change":
                row |= {c: ref(value).value(args, {}) for c, value in tool.set.items()}
            if tool.act != "look":
                state.put(table, id, None if tool.act == "delete" else row)
        way.found[step.step] = {**row, shape.key: id}
        way.taken[step.step] = [id]
        return True

    def _hoped(self, way: Way, i: int, details: Mapping[str, Any]) -> Iterator[Way]:
        """All ways on from here, whatever the rows say."""
        step = self.steps[i]
        args = {name: ref(value).value(details, way.found) for name, value in step.args.items()}
        if not self.many(step):
            if self._done(way, step, args, strict=False):
                yield way
            return
        rows = self._under(way, step, args) or []
        if step.count:
            way.found[step.step] = {"count": len(rows)}
            yield way
            return
        key = self.domain.shapes[self.tool(step).table].key
        for id, row in rows:
            further = way.fork()
            further.found[step.step] = {**row, key: id}
            yield further

    def _expected(self, wanted: Ref, way: Way, end: State) -> Expected:
        step = next(s for s in self.steps if s.step == wanted.step)
        tool, shape = self.tool(step), self.domain.shapes[self.tool(step).table]
        value = way.found[wanted.step][wanted.key]
        if step.count:
            return Expected("number", value)
        if wanted.key == shape.key:
            if tool.act == "create":
                value = self._made(end, shape, way.found[wanted.step])
            return Expected("name" if shape.namer else "id", value)
        column = shape.columns[wanted.key]
        kinds: dict[str, Kind] = {"name": "name", "choice": "choice", "date": "date", "time": "time", "refer": "id"}
        kind: Kind = kinds.get(column.fill, "number" if column.type != "string" else "name")
        if column.unit == "euros":
            kind = "money"
        elif column.refer and self.domain.shapes[column.refer].namer:
            kind = "name"
        others: tuple[str, ...] = tuple(c for c in column.choice if c != value)
        if column.name:
            others = tuple(row[wanted.key] for row in way.rivals.get(wanted.step, ()))
        return Expected(kind, value, others)

    def _made(self, end: State, shape: Shape, row: Row) -> str:
        """The id under which a row was made in the end; what became of it later does not matter."""
        new = [(id, made) for id, made in end.written(shape.name) if end.start(shape.name, id) is None]
        live = [id for id, made in new if not self.domain.void(shape.name, made)]
        same = [id for id in live if all((end.row(shape.name, id) or {}).get(c) == row[c] for c in shape.columns)]
        return (same or live or ["none"])[0]

    # -- draws

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        """Details that are met by rows: what a look-up compares with is taken from a row that it could find."""
        details: dict[str, Any] = {}
        way = Way(_fresh(state))
        for i in range(len(self.steps)):
            self._bind(details, way, i, rng)
            if any(value is None for value in details.values()) or not self._taken(way, i, details):
                return None
        for key in self.details:
            alike = [k for k in self.details if self.details[k].read is self.details[key].read]
            if len({details[k] for k in alike}) < len(alike):
                return None
        return {key: details[key] for key in self.details}

    def _bind(self, details: dict[str, Any], way: Way, i: int, rng: Random) -> None:
        """Give values to the details that a step is the first to use."""
        step, where, at_ = self.steps[i], self.where[i], at(way.state)
        shape = self.domain.shapes[self.tool(step).table]
        equal: dict[str, Ref] = {}
        if self.many(step):
            assert shape.parent is not None
            equal = {a: ref(value) for a, value in step.args.items() if a != shape.parent.key}
            equal |= {c.column: c.ref for c in where if c.test == "="}
        by_row = {c: r.detail for c, r in equal.items() if r.detail and r.detail not in details}
        every = (*(ref(value) for value in step.args.values()), *(c.ref for c in where))
        for key in dict.fromkeys(r.detail for r in every if r.detail):
            if key not in details and key not in by_row.values():
                details[key] = self.domain.some(key, rng, at_)
        if not by_row:
            return
        assert shape.parent is not None
        known = {c: r for c, r in equal.items() if c not in by_row}
        parent = ref(step.args[shape.parent.key]).value(details, way.found)
        rows = [{**row, shape.key: id} for id, row in self.domain.shapes.under(way.state, shape.name, parent)]
        fit = [row for row in rows if all(row[c] == r.value(details, way.found) for c, r in known.items())]
        row = rng.choice(fit) if fit else {}
        for column, key in by_row.items():
            details.setdefault(key, row.get(column))

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, dict[str, Any] | None]]:
        details = self.settled(task, state)
        way = self.follow(details, state)
        out: list[dict[str, dict[str, Any] | None]] = []
        for made in self.kind.obstacles if way else ():
            assert way is not None
            table = made.table
            if made.step:
                table = self.tool(next(s for s in self.steps if s.step == made.step)).table
            ids = way.taken[made.step] if made.step else [ref(made.id).value(details, way.found)]
            rows = {id: row for id in ids if (row := state.start(table, id)) is not None}
            out.append({f"{table}/{id}": None if made.gone else {**row, **made.set} for id, row in rows.items()})
        return [edits for edits in out if edits]


def _best(rows: Sequence[Row], step: Step) -> list[Row]:
    """The rows that a pick leaves: one, unless there is a tie."""
    if step.only:
        return list(rows)
    key = step.max or step.min
    top = (max if step.max else min)(row[key] for row in rows)
    return [row for row in rows if row[key] == top]
