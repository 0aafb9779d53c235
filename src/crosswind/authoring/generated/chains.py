"""Chains of calls, drawn as expressions over the tables of a domain: what is found, followed, compared, told, written.

An expression has a shape: the expression without the names in it. A shape belongs to train, dev or test, so no two
splits share one. `Compiled` turns an expression into the steps of a declared family.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal

from crosswind.authoring.generated.lexicon import part_of
from crosswind.authoring.generated.tables import Interface, RedrawNeeded, TableDraft
from crosswind.core.types import Split

TRIES = 120  # requests that are drawn for each call a chain may have, until one fits; many structures have none
MOST_PICKS = 2  # of a chain that writes: each multiplies the ends that a refusal proof must rule out


# ---------------------------------------------------------------- expressions


@dataclass(frozen=True, slots=True)
class Given:
    """A row that the request names."""

    table: str
    nth: int = 1


@dataclass(frozen=True, slots=True)
class Follow:
    """The row that a column of another row leads to."""

    table: str
    source: Entity
    column: str


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a table under a parent, perhaps of one kind, in one state, or from a stated value on."""

    table: str
    parent: Entity
    kind: str = ""
    flag: str = ""
    floor: str = ""


@dataclass(frozen=True, slots=True)
class Best:
    """The row with the largest or smallest value of a column."""

    table: str
    rows: Rows
    way: Literal["max", "min"]
    column: str


@dataclass(frozen=True, slots=True)
class Dated:
    """The only row with a stated date."""

    table: str
    rows: Rows
    column: str


@dataclass(frozen=True, slots=True)
class Better:
    """Of two rows the one with the larger or smaller value of a column."""

    table: str
    first: Entity
    second: Entity
    way: Literal["max", "min"]
    column: str


@dataclass(frozen=True, slots=True)
class Create:
    """A new record."""

    table: str
    parent: Entity
    about: Entity


@dataclass(frozen=True, slots=True)
class Redate:
    """Another date for a record."""

    table: str
    record: Entity


@dataclass(frozen=True, slots=True)
class Close:
    """A record that is taken back."""

    table: str
    record: Entity


@dataclass(frozen=True, slots=True)
class Tell:
    """A value of a row."""

    source: Entity
    column: str


@dataclass(frozen=True, slots=True)
class Figure:
    """The number of rows, or the total of a column."""

    rows: Rows
    column: str = ""  # empty: count


Act = Create | Redate | Close
Entity = Given | Follow | Best | Dated | Better | Create
Value = Tell | Figure


@dataclass(frozen=True, slots=True)
class DraftRequest:
    """What a family asks for: writes, then values to be told."""

    acts: tuple[Act, ...]
    values: tuple[Value, ...]


# What holds other expressions.
INSIDE: Mapping[type, tuple[str, ...]] = {
    DraftRequest: ("acts", "values"),
    Given: (),
    Follow: ("source",),
    Rows: ("parent",),
    Best: ("rows",),
    Dated: ("rows",),
    Better: ("first", "second"),
    Create: ("parent", "about"),
    Redate: ("record",),
    Close: ("record",),
    Tell: ("source",),
    Figure: ("rows",),
}


def parts(node: Any) -> list[Any]:
    """Every expression inside one, itself included."""
    out = [node]
    for name in INSIDE[type(node)]:
        value = getattr(node, name)
        for part in value if isinstance(value, tuple) else (value,):
            out += parts(part)
    return out


def shape(request: DraftRequest, interface: Interface) -> str:
    """A request without its names: what refers to what, and which primitives are used in which order."""
    known: dict[Any, int] = {}

    def of(node: Any) -> str:
        if node in known:
            return f"#{known[node]}"
        inside = []
        for name in node.__slots__:
            value = getattr(node, name)
            if hasattr(value, "__slots__"):
                inside.append(of(value))
            elif isinstance(value, tuple):
                inside += [of(one) for one in value]
            elif name in ("kind", "flag", "floor") and value:
                inside.append(name)
            elif isinstance(node, Figure) and name == "column":
                inside.append("sum" if value else "count")
        known[node] = len(known)
        role = interface.tables[node.table].role if isinstance(node, Given | Create) else ""
        coded = isinstance(node, Create) and bool(interface.tables[node.table].code)
        return f"{type(node).__name__}{'*' if coded else ''} {role}({' '.join(inside)})"

    return of(request)


# ---------------------------------------------------------------- drawing


class Chains:
    """Draws requests over the tables of a domain."""

    def __init__(self, interface: Interface, rng: Random) -> None:
        self.interface, self.rng = interface, rng
        self.tables = interface.tables
        self.pool: list[Entity] = []  # rows that the request speaks of so far

    def draw(self, split: Split, calls: range, goal: str, taken: set[str]) -> tuple[DraftRequest, Compiled]:
        """A request whose shape belongs to a split and is not taken, met in a number of calls."""
        for _ in range(TRIES * max(calls)):
            self.pool = []
            try:
                request = self._request(goal, max(calls))
                every = parts(request)
                if sum(isinstance(p, (Best, Dated)) for p in every) > (MOST_PICKS if request.acts else 3):
                    continue
                rows = [p for p in every if isinstance(p, Rows)]
                if _twice([r.kind for r in rows]) or _twice([r.floor for r in rows]):
                    continue  # a request states each detail once
                if len({p.way for p in every if isinstance(p, (Best, Better))}) > 1:
                    continue  # most and least in one sentence are easily taken for each other
                made = shape(request, self.interface)
                if made in taken or part_of(made) != split:
                    continue
                compiled = Compiled(self.interface, request)
            except RedrawNeeded:
                continue
            if compiled.calls in calls:
                taken.add(made)
                return request, compiled
        raise RedrawNeeded(f"no {goal} of {calls} calls")

    def _request(self, goal: str, longest: int) -> DraftRequest:
        depth = 1 if longest <= 3 else 2 if longest <= 6 else 3
        acts: list[Act] = []
        if goal in ("write", "coded"):
            acts.append(self._act(depth, coded=goal == "coded"))
            if depth > 1 and self.rng.random() < 0.35:
                acts.append(self._act(depth - 1, coded=False))
        told = self.rng.randint(0, depth) if acts else self.rng.randint(1, depth)
        values = [self._value(depth, goal) for _ in range(told)]
        if len({*values}) < len(values) or len({act.table for act in acts}) < len(acts):
            raise RedrawNeeded("the same is asked twice")
        return DraftRequest(tuple(acts), tuple(values))

    def _entity(self, table: str, depth: int) -> Entity:
        known = [entity for entity in self.pool if entity.table == table]
        if known and self.rng.random() < 0.6:
            return self.rng.choice(known)
        made = self.tables[table]
        ways = [self._given]
        if depth > 0:
            ways += [self._follow] * 2 * any(c.refer == table for t in self.tables.values() for c in self._links(t))
            ways += [self._pick] * 2 * (bool(made.of) and not made.code and made.role != "record")
            ways += [self._better] * bool(made.of_sort("number") and depth > 1)
        if made.role == "record":
            ways = [self._dated]
        found = self.rng.choice(ways)(table, depth)
        self.pool.append(found)
        return found

    def _links(self, table: TableDraft) -> list[Any]:
        return [c for c in table.of_sort("refer") if table.role not in ("record", "code")]

    def _given(self, table: str, depth: int) -> Entity:
        nth = 1 + sum(isinstance(e, Given) and e.table == table for e in self.pool)
        if nth > 2:
            raise RedrawNeeded("three of one sort")
        return Given(table, nth)

    def _follow(self, table: str, depth: int) -> Entity:
        sources = [(t.name, c.name) for t in self.tables.values() for c in self._links(t) if c.refer == table]
        source, column = self.rng.choice(sources)
        return Follow(table, self._entity(source, depth - 1), column)

    def rows(self, table: str, depth: int, *, floor: bool = False) -> Rows:
        made = self.tables[table]
        parent = self._entity(made.of, depth - 1)
        kind = made.of_sort("kind")[0].name if "list_by" in made.tools else ""
        if kind and "list" in made.tools and self.rng.random() < 0.4:
            kind = ""
        flag = made.of_sort("flag")[0].name if self.rng.random() < 0.4 else ""
        numbers = [c for c in made.of_sort("number") if isinstance(c.fill["number"]["low"], int)]
        at_least = self.rng.choice(numbers).name if floor and numbers and self.rng.random() < 0.6 else ""
        return Rows(table, parent, kind, flag, at_least)

    def _pick(self, table: str, depth: int) -> Entity:
        rows = self.rows(table, depth)
        listed = [c.name for c in self.tables[table].of_sort("number", "money") if c.name in self._shown(rows)]
        return Best(table, rows, self.rng.choice(("max", "min")), self.rng.choice(listed))

    def _dated(self, table: str, depth: int) -> Entity:
        made = self.tables[table]
        if made.code or any(isinstance(e, Dated) for e in self.pool):
            raise RedrawNeeded("no records to choose from")
        rows = Rows(table, self._entity(made.of, depth - 1), flag=made.of_sort("status")[0].name)
        return Dated(table, rows, made.of_sort("date")[0].name)

    def _better(self, table: str, depth: int) -> Entity:
        first, second = self._entity(table, depth - 1), self._entity(table, depth - 1)
        if first == second:
            raise RedrawNeeded("compared with itself")
        way: Literal["max", "min"] = self.rng.choice(("max", "min"))
        return Better(table, first, second, way, self.rng.choice(self.tables[table].of_sort("number")).name)

    def _act(self, depth: int, *, coded: bool) -> Act:
        records = [t for t in self.tables.values() if t.role == "record" and bool(t.code) == coded]
        if not records:
            raise RedrawNeeded("no such record")
        table = self.rng.choice(records)
        way = "create" if coded else self.rng.choice(("create", "create", "change", "close"))
        if way == "create":
            (_, about), *_ = [(c, t) for c, t in self.interface.links(table) if t != table.of]
            made = Create(table.name, self._entity(table.of, depth), self._entity(about, depth))
            self.pool.append(made)
            return made
        record = self._entity(table.name, depth)
        if isinstance(record, Create):
            raise RedrawNeeded("a record that was only just made")
        return Redate(table.name, record) if way == "change" else Close(table.name, record)

    def _value(self, depth: int, goal: str) -> Value:
        made = [e for e in self.pool if isinstance(e, Create)]
        if made and self.rng.random() < 0.3:  # look at what was written
            return Tell(made[-1], self.tables[made[-1].table].of_sort("status")[0].name)
        lists = [t for t in self.tables.values() if t.role in ("thing", "subthing")]
        if goal == "figure" or self.rng.random() < 0.25:
            table = self.rng.choice(lists)
            if self.rng.random() < 0.6 or goal == "figure":
                return Figure(self.rows(table.name, depth, floor=True))
            rows = self.rows(table.name, depth)
            shown = [c for c in table.of_sort("number", "money") if c.name in self._shown(rows)]
            return Figure(rows, self.rng.choice(shown).name)
        tables = [t for t in self.tables.values() if t.of_sort("money", "number", "time") and t.role != "person"]
        money = [t for t in tables if t.of_sort("money")]
        table = self.rng.choice(money if goal == "money" else tables)
        column = self.rng.choice(
            table.of_sort("money") if goal == "money" else table.of_sort("money", "number", "time")
        )
        return Tell(self._entity(table.name, depth), column.name)

    def _shown(self, rows: Rows) -> list[str]:
        return shown(self.interface, rows)


def _twice(names: list[str]) -> bool:
    return any(name and names.count(name) > 1 for name in names)


def shown(interface: Interface, rows: Rows) -> list[str]:
    """What the list shows of each row."""
    tool = interface.tables[rows.table].tools["list_by" if rows.kind else "list"]
    found: list[str] = interface.tools[tool].declared["give"]
    return found


# ---------------------------------------------------------------- steps


@dataclass(slots=True)
class Compiled:
    """A request as steps, details and results of a declared family."""

    interface: Interface
    request: DraftRequest
    steps: list[dict[str, Any]] = field(default_factory=list)
    details: dict[str, dict[str, Any]] = field(default_factory=dict)
    ids: dict[Any, str] = field(default_factory=dict)  # expression -> reference to its key
    step_of: dict[Any, str] = field(default_factory=dict)
    values: list[str] = field(default_factory=list)  # references to the values in the request
    made: list[tuple[str, str]] = field(default_factory=list)  # noun and reference of each record that is written

    def __post_init__(self) -> None:
        for act in self.request.acts:
            self._act(act)
        for value in self.request.values:
            self.values.append(self._value(value))

    @property
    def calls(self) -> int:
        return sum("call" in step for step in self.steps)

    def _step(self, node: Any, **declared: Any) -> str:
        name = f"step_{len(self.steps) + 1}"
        self.steps.append({"step": name, **declared})
        self.step_of[node] = name
        return name

    def _table(self, node: Any) -> TableDraft:
        return self.interface.tables[node.table]

    def detail(self, name: str, declared: dict[str, Any]) -> str:
        self.details.setdefault(name, declared)
        return f"{{{name}}}"

    def given(self, entity: Given) -> str:
        """The name of the detail that says which row is meant."""
        return self._table(entity).key + ("" if entity.nth == 1 else f"_{entity.nth}")

    def id_of(self, entity: Entity) -> str:
        """A reference to the key of a row."""
        if entity not in self.ids:
            self.ids[entity] = self._found(entity)
        return self.ids[entity]

    def _found(self, entity: Entity) -> str:
        table = self._table(entity)
        match entity:
            case Given():
                return self.detail(self.given(entity), {"of": table.name})
            case Follow():
                return self.column(entity.source, entity.column)
            case Best():
                pick: dict[str, Any] = {entity.way: entity.column}
                return f"${self._list(entity, entity.rows, **pick)}.{table.key}"
            case Dated():
                date = self.detail(entity.column, {"of": f"{table.name}.{entity.column}"})
                return f"${self._list(entity, entity.rows, where={entity.column: date}, only=True)}.{table.key}"
            case Better():
                among = [self._row(one, entity.column) for one in (entity.first, entity.second)]
                return f"${self._step(entity, among=among, **{entity.way: entity.column})}.{table.key}"
            case Create():
                return f"${self.step_of[entity]}.{table.key}"
        raise AssertionError(entity)

    def _list(self, node: Any, rows: Rows, where: dict[str, Any] | None = None, **pick: Any) -> str:
        """A step that lists rows and takes something of them."""
        table = self._table(rows)
        args = {self.interface.tables[table.of].key: self.id_of(rows.parent)}
        if rows.kind:
            args[rows.kind] = self.detail(rows.kind, {"of": f"{table.name}.{rows.kind}"})
        tests: dict[str, Any] = dict(where or {})
        if rows.flag:
            tests[rows.flag] = table.columns[rows.flag].fill["choice"][0]
        if rows.floor:
            span = table.columns[rows.floor].fill["number"]
            low, high = span["low"], span["high"]
            low, high = low + (high - low) // 4, low + (high - low) // 2
            tests[rows.floor] = {"at_least": self.detail(f"{rows.floor}_0", {"number": {"low": low, "high": high}})}
        tool = table.tools["list_by" if rows.kind else "list"]
        return self._step(node, call=tool, args=args, **({"where": tests} if tests else {}), **pick)

    def _row(self, entity: Entity, column: str) -> str:
        """A step that gives a column of a row: the one that found it, or else a look at it."""
        id, table = self.id_of(entity), self._table(entity)
        found = entity in self.step_of and not isinstance(entity, Create)
        if found and self._shows(self.step_of[entity], column):
            return self.step_of[entity]
        if ("look", entity) not in self.step_of:
            self._step(("look", entity), call=table.tools["look"], args={table.key: id})
        return self.step_of["look", entity]

    def _shows(self, name: str, column: str) -> bool:
        """Does a step give a column, whichever row it takes?"""
        step = next(s for s in self.steps if s["step"] == name)
        if "among" in step:
            return all(self._shows(one, column) for one in step["among"])
        return column in self.interface.tools[step["call"]].declared["give"]

    def column(self, entity: Entity, column: str) -> str:
        """A reference to a column of a row."""
        return f"${self._row(entity, column)}.{column}"

    def _value(self, value: Value) -> str:
        if isinstance(value, Tell):
            return self.column(value.source, value.column)
        if value.column:
            return f"${self._list(value, value.rows, sum=value.column)}.sum"
        return f"${self._list(value, value.rows, count=True)}.count"

    def _act(self, act: Act) -> None:
        table = self._table(act)
        (date,) = table.of_sort("date")
        if isinstance(act, Create):
            args = {self.interface.tables[table.of].key: self.id_of(act.parent)}
            about = next(c for c, t in self.interface.links(table) if t != table.of)
            args[about] = self.id_of(act.about)
            if table.code:
                code = self.interface.tables[table.code]
                step = self._step(("code", act), call=code.tools["code"], args={c: args[c] for c in code.columns})
                args[code.key] = f"${step}.{code.key}"
            args[date.name] = self._new_date(table, date.name)
            step = self._step(act, call=table.tools["create"], args=args)
        elif isinstance(act, Redate):
            args = {table.key: self.id_of(act.record), date.name: self._new_date(table, date.name)}
            step = self._step(act, call=table.tools["change"], args=args)
        else:
            step = self._step(act, call=table.tools["close"], args={table.key: self.id_of(act.record)})
        self.made.append((table.noun, f"${step}.{table.key}"))

    def _new_date(self, table: TableDraft, column: str) -> str:
        """The detail for a date that is written; its name is not that of a date which is looked for."""
        return self.detail(f"{column}_1", {"of": f"{table.name}.{column}"})
