"""A family of tasks made of a declaration: its solution, what is right, and its draws."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, ClassVar

from crosswind.authoring.yaml_domain.domain import DeclaredDomain
from crosswind.authoring.yaml_domain.rows import TableShape, at, satisfies
from crosswind.authoring.yaml_domain.schema import (
    Column,
    ColumnTest,
    Ref,
    YamlStep,
    YamlTool,
    conditions,
    filled,
    holes,
    is_many,
    ref,
)
from crosswind.authoring.yaml_domain.world import new_id
from crosswind.core.domain import Family
from crosswind.core.state import State
from crosswind.core.types import Brief, Changes, Refusal, Row, Solution, Split, Task, ToolCall
from crosswind.domains import notes
from crosswind.text import answers
from crosswind.text.answers import Expected

FOLLOWED = 16  # ways through worlds without edits that a family remembers


@dataclass(slots=True)
class FollowedSteps:
    """How far a declaration was followed over the rows of a state."""

    state: State  # with what was written so far
    found: dict[str, dict[str, Any]] = field(default_factory=dict)  # step -> row and key
    rivals: dict[str, list[Row]] = field(default_factory=dict)  # step -> the rows that were not taken
    taken: dict[str, list[str]] = field(default_factory=dict)  # step -> ids of the rows that could be taken

    def fork(self) -> FollowedSteps:
        state = _fresh(self.state)
        state.overlay = dict(self.state.overlay)
        return FollowedSteps(state, dict(self.found), dict(self.rivals), dict(self.taken))


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
        self.args = [{name: ref(value) for name, value in step.args.items()} for step in self.steps]
        self.named_steps = {step.step: step for step in self.steps}
        self._tools = {step.step: self._source(step) for step in self.steps}
        self._many = {s.step: bool(s.among) or is_many(domain.declared, self._tools[s.step]) for s in self.steps}
        self._followed: OrderedDict[Any, FollowedSteps | None] = OrderedDict()

    def _source(self, step: YamlStep) -> YamlTool:
        while step.among:
            step = self.named_steps[step.among[0]]
        return self.domain.declared.tools[step.call]

    def tool(self, step: YamlStep) -> YamlTool:
        """The tool that gives a step its rows."""
        return self._tools[step.step]

    def many(self, step: YamlStep) -> bool:
        return self._many[step.step]

    def shape(self, step: YamlStep) -> TableShape:
        """The table of a step's rows."""
        return self.domain.shapes[self._tools[step.step].table]

    def known_rules(self) -> Iterator[str]:
        """Rules of the house that change what is right: floors of a count, and euros that are reported."""
        counted = [where for step, where in zip(self.steps, self.where, strict=True) if step.count]
        if any(test.test == "at_least" and test.ref.detail for where in counted for test in where):
            yield "strict"
        if any(self._column(ref(value)).unit for value in self.kind.expect):
            yield "surcharge"

    def _column(self, wanted: Ref) -> Column:
        """The column that a result shows; a plain number for a count."""
        step = self.named_steps[wanted.step]
        return self.shape(step).columns.get(step.sum or wanted.key, Column())

    def _charged(self, found: Mapping[str, Mapping[str, Any]], rules: Mapping[str, str]) -> dict[str, dict[str, Any]]:
        """What is reported: euros with what the house adds."""
        out = {step: dict(values) for step, values in found.items()}
        for wanted in map(ref, self.kind.expect if "surcharge" in rules else ()):
            if wanted.step in out and self._column(wanted).unit:
                out[wanted.step][wanted.key] = found[wanted.step][wanted.key] + int(rules["surcharge"])
        return out

    def named(self) -> Iterator[str]:
        """Columns that requests speak of."""
        for step, where in zip(self.steps, self.where, strict=True):
            table, shape = self.tool(step).table, self.shape(step)
            if self.many(step):
                columns = [a for a, value in step.args.items() if ref(value).detail and a in shape.table.columns]
                columns += [c.column for c in where if c.ref.detail and c.test == "="]
                yield from (f"{table}.{column}" for column in columns)

    # -- the solution

    def takes(self) -> Mapping[str, str]:
        out: dict[str, str] = {}
        for step in self.steps:
            if not step.among:
                tool = self.tool(step)
                part = f"{'search' if self.many(step) else tool.act} {tool.table.replace('_', ' ')}"
                out.setdefault(part, step.call)
        return out

    def withhold(self, rng: Random) -> tuple[str, ...]:
        return (rng.choice(self.kind.withhold),) if self.kind.withhold else ()

    def solve(self, brief: Brief) -> Solution:
        details = dict(zip(self.details, (yield from self.all(brief, *self.details)), strict=True))
        found: dict[str, Mapping[str, Any]] = {}
        for step, where, given in zip(self.steps, self.where, self.args, strict=True):
            if step.among:
                content: Any = [found[name] for name in step.among]
            else:
                args = {name: value.value(details, found) for name, value in given.items()}
                content = (yield ToolCall(step.call, args)).content
            if not self.many(step):
                found[step.step] = content
                continue
            strict = step.count and "strict" in brief.rules
            rows = [row for row in content if satisfies(row, where, details, found, strict=strict)]
            key = self.shape(step).key
            if where and not step.among:
                marks = [(_looked_at(row, key, where), row in rows) for row in content]
                yield notes.count(marks) if step.count else notes.fitting(marks)
            if figure := _figure(rows, step):
                if step.sum:
                    yield notes.total([row[step.sum] for row in rows], None, [str(row[key]) for row in rows])
                elif not where:
                    yield notes.count([(row[key], True) for row in rows])
                found[step.step] = figure
                continue
            if not rows:
                return Refusal(filled(step.none, details, found))
            found[step.step] = _best(rows, step)[0]
            if column := step.max or step.min:
                values = {str(row[key]): row[column] for row in rows}
                yield notes.choice(values, str(found[step.step][key]), "most" if step.max else "least")
        return filled(self.kind.answer, details, self._charged(found, brief.rules))

    # -- what is right, from the rows

    def ends(self, task: Task, start: State) -> list[Changes]:
        way = self.follow(self.settled(task, start), start, strict="strict" in task.brief.rules)
        return [way.state.changes()] if way else []

    def conceivable_ends(self, task: Task, start: State) -> list[Changes]:
        """Whichever rows a step might have taken if they stood otherwise."""
        details = self.settled(task, start)
        if all(self.tool(step).act == "look" for step in self.steps):
            return [{}]
        ways = [FollowedSteps(_fresh(start))]
        for i in range(len(self.steps)):
            ways = [further for way in ways for further in self._hoped(way, i, details)]
        out = {repr(sorted(changes.items())): changes for way in ways if (changes := way.state.changes())}
        return list(out.values())

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        rules = task.brief.rules
        way = self.follow(self.settled(task, start), start, strict="strict" in rules)
        if way is None:
            return ()
        way = replace(way, found=self._charged(way.found, rules))
        return tuple(self._expected(ref(value), way, end) for value in self.kind.expect)

    def follow(self, details: Mapping[str, Any], start: State, *, strict: bool = False) -> FollowedSteps | None:
        """Follow the steps over rows; None where one cannot be done, or where a tie leaves it open.

        What comes back is remembered, so nobody may change it.
        """
        key = _key(start, details, strict=strict)
        if key in self._followed:
            return self._followed[key]
        way = FollowedSteps(_fresh(start))
        done = all(self._taken(way, i, details, strict=strict) for i in range(len(self.steps)))
        self._remember(key, way if done else None)
        return way if done else None

    def _remember(self, key: object, way: FollowedSteps | None) -> None:
        if key is None:
            return
        if way is not None:
            way.state.cache = {}  # else the rows of many worlds would be held
        self._followed[key] = way
        if len(self._followed) > FOLLOWED:
            self._followed.popitem(last=False)

    def _taken(self, way: FollowedSteps, i: int, details: Mapping[str, Any], *, strict: bool = False) -> bool:
        step = self.steps[i]
        tool, shape = self.tool(step), self.shape(step)
        args = {name: value.value(details, way.found) for name, value in self.args[i].items()}
        if not self.many(step):
            return self._done(way, step, args) and (tool.act == "look" or self.domain.legal(way.state))
        rows = self._under(way, step, args)
        if rows is None:
            return False
        tests = [(c, c.ref.value(details, way.found)) for c in self.where[i]]
        wanted = [*args.items()]
        strictly = strict and step.count
        fit = [
            made
            for made in ({**row, shape.key: id} for id, row in rows)
            if all(made[a] == value for a, value in wanted)
            and all(c.holds(made[c.column], value, strict=strictly) for c, value in tests)
        ]
        way.taken[step.step] = [row[shape.key] for row in fit]
        if figure := _figure(fit, step):
            way.found[step.step] = figure
            return True
        best = _best(fit, step) if fit else []
        if len(best) != 1:
            return False
        way.found[step.step] = dict(best[0])
        way.rivals[step.step] = [row for row in fit if row is not best[0]]
        return True

    def _under(self, way: FollowedSteps, step: YamlStep, args: Mapping[str, Any]) -> list[tuple[str, Row]] | None:
        """The rows among which a look-up finds its own; None where what they belong to does not exist."""
        shape = self.shape(step)
        if step.among:
            return [(way.found[name][shape.key], way.found[name]) for name in step.among]
        assert shape.parent is not None
        parent = args[shape.parent.key]
        if way.state.row(shape.parent.name, parent) is None:
            return None
        return self.domain.shapes.under(way.state, shape.name, parent)

    def _done(self, way: FollowedSteps, step: YamlStep, args: Mapping[str, Any], *, strict: bool = True) -> bool:
        """Do what a tool does to one row, if it can be done."""
        tool, shape = self.tool(step), self.shape(step)
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
            if old is None or (strict and not satisfies(old, tool.required)):
                return False
            row = {**old, **{c.column: c.ref.literal for c in tool.required if c.test == "="}}
            if tool.act == "change":
                row |= {c: ref(value).value(args, {}) for c, value in tool.set.items()}
            if tool.act != "look":
                state.put(table, id, None if tool.act == "delete" else row)
        way.found[step.step] = {**row, shape.key: id}
        way.taken[step.step] = [id]
        return True

    def _hoped(self, way: FollowedSteps, i: int, details: Mapping[str, Any]) -> Iterator[FollowedSteps]:
        """All ways on from here, whatever the rows say."""
        step = self.steps[i]
        args = {name: value.value(details, way.found) for name, value in self.args[i].items()}
        if not self.many(step):
            if self._done(way, step, args, strict=False):
                yield way
            return
        rows = self._under(way, step, args) or []
        if figure := _figure([row for _, row in rows], step):
            way.found[step.step] = figure
            yield way
            return
        key = self.shape(step).key
        for id, row in rows:
            further = way.fork()
            further.found[step.step] = {**row, key: id}
            yield further

    def _expected(self, wanted: Ref, way: FollowedSteps, end: State) -> Expected:
        step = self.named_steps[wanted.step]
        tool, shape = self.tool(step), self.shape(step)
        value = way.found[wanted.step][wanted.key]
        if step.count:
            return Expected("number", value, unit="count")
        if step.sum:
            return Expected("money" if self._column(wanted).unit else "number", value)
        if wanted.key == shape.key:
            if tool.act == "create":
                value = self._made(end, shape, way.found[wanted.step])
            return Expected("name" if shape.namer else "id", value)
        column, row = shape.columns[wanted.key], way.found[wanted.step]
        kinds: dict[str, answers.Kind] = {
            "name": "name",
            "choice": "choice",
            "date": "date",
            "time": "time",
            "refer": "id",
        }
        kind: answers.Kind = kinds.get(column.fill, "number" if column.type != "string" else "name")
        if column.unit == "euros":
            kind = "money"
        elif column.refer and self.domain.shapes[column.refer].namer:
            kind = "name"
        others: tuple[str, ...] = tuple(c for c in column.choice if c != value)
        if column.name:
            others = tuple(row[wanted.key] for row in way.rivals.get(wanted.step, ()))
        passed_over = [r for s in self.steps if self.tool(s).table == tool.table for r in way.rivals.get(s.step, ())]
        about = tuple(word for word in self._told(shape, [row]) if word != value)
        rivals = tuple(word for word in self._told(shape, passed_over) if word not in (value, *about))
        return Expected(kind, value, others, about=about, rivals=rivals)

    def _told(self, shape: TableShape, rows: Iterable[Row]) -> tuple[str, ...]:
        """The ids and names by which a message may speak of rows."""
        columns = [shape.key, *(name for name, column in shape.columns.items() if column.name)]
        return tuple(str(row[name]) for row in rows for name in columns if name in row)

    def _made(self, end: State, shape: TableShape, row: Row) -> str:
        """The id under which a row was made in the end; what became of it later does not matter."""
        new = [(id, made) for id, made in end.written(shape.name) if end.start(shape.name, id) is None]
        live = [id for id, made in new if not self.domain.void(shape.name, made)]
        same = [id for id in live if all((end.row(shape.name, id) or {}).get(c) == row[c] for c in shape.columns)]
        return (same or live or ["none"])[0]

    # -- draws

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        """Details that are met by rows: what a look-up compares with is taken from a row that it could find."""
        details: dict[str, Any] = {}
        way = FollowedSteps(_fresh(state))
        for i in range(len(self.steps)):
            self._bind(details, way, i, rng)
            if any(value is None for value in details.values()) or not self._taken(way, i, details):
                return None
        for key in self.details:
            alike = [k for k in self.details if self.details[k].read is self.details[key].read]
            if len({details[k] for k in alike}) < len(alike):
                return None
        self._remember(_key(state, details), way)
        return {key: details[key] for key in self.details}

    def _bind(self, details: dict[str, Any], way: FollowedSteps, i: int, rng: Random) -> None:
        """Give values to the details that a step is the first to use."""
        step, where, at_ = self.steps[i], self.where[i], at(way.state)
        shape = self.shape(step)
        equal: dict[str, Ref] = {}
        if self.many(step) and not step.among:
            assert shape.parent is not None
            equal = {a: ref(value) for a, value in step.args.items() if a != shape.parent.key}
            equal |= {c.column: c.ref for c in where if c.test == "="}
        by_row = {c: r.detail for c, r in equal.items() if r.detail and r.detail not in details}
        every = (*(ref(value) for value in step.args.values()), *(c.ref for c in where))
        for key in dict.fromkeys(r.detail for r in every if r.detail):
            if key not in details and key not in by_row.values():
                details[key] = self.domain.sample_value(key, rng, at_)
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
                table = self.tool(self.named_steps[made.step]).table
            ids = way.taken[made.step] if made.step else [ref(made.id).value(details, way.found)]
            rows = {id: row for id in ids if (row := state.start(table, id)) is not None}
            out.append({f"{table}/{id}": None if made.gone else {**row, **made.set} for id, row in rows.items()})
        return [edits for edits in out if edits]


def _key(start: State, details: Mapping[str, Any], *, strict: bool = False) -> object:
    """What a way depends on; None where rows were edited."""
    return None if start.edits else (at(start), strict, *sorted(details.items()))


def _figure(rows: Sequence[Row], step: YamlStep) -> dict[str, Any]:
    """The number that a step makes of rows; empty where it takes one of them."""
    if step.count:
        return {"count": len(rows)}
    if step.sum:
        total = sum(row[step.sum] for row in rows)
        return {"sum": total if isinstance(total, int) else round(total, 6)}
    return {}


def _looked_at(row: Row, key: str, where: Sequence[ColumnTest]) -> str:
    """A row by its key and by what is looked at in it."""
    return " ".join(str(part) for part in (row[key], *(row[test.column] for test in where)))


def _best(rows: Sequence[Row], step: YamlStep) -> list[Row]:
    """The rows that a pick leaves: one, unless there is a tie."""
    if step.only:
        return list(rows)
    key = step.max or step.min
    top = (max if step.max else min)(row[key] for row in rows)
    return [row for row in rows if row[key] == top]
