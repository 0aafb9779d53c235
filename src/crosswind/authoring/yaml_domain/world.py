"""State, tools and rules of a declared domain."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from crosswind.authoring.yaml_domain import schema
from crosswind.authoring.yaml_domain.rows import TableShape, TableShapes, satisfies
from crosswind.base.errors import ToolFailure
from crosswind.core.names import made_of, unused
from crosswind.core.state import STATUS, State
from crosswind.core.types import Param, Row, ToolSpec
from crosswind.core.world import Entry, World, brief_of


class DeclaredWorld(World):
    """State, tools and rules of a declared domain."""

    shapes: ClassVar[TableShapes]
    rules: ClassVar[tuple[schema.YamlRule, ...]]
    written: ClassVar[tuple[str, ...]]  # tables that tools write

    def broken(self) -> str | None:
        return broken(self.state, self.shapes, self.rules, self.written)


def broken(state: State, shapes: TableShapes, rules: Sequence[schema.YamlRule], tables: Sequence[str]) -> str | None:
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
                if rule.table == table and satisfies(row, rule.applies) and not _keeps(state, shapes, rule, row):
                    return schema.filled(
                        rule.say, {shape.key: id, **{n: row[n] for n in schema.holes(rule.say) if n in row}}, {}
                    )
    return None


def _keeps(state: State, shapes: TableShapes, rule: schema.YamlRule, row: Row) -> bool:
    shape = shapes[rule.table]
    if rule.limit is not None:
        assert shape.parent is not None
        alike = shapes.under(state, rule.table, row[shape.parent.key])
        return sum(satisfies(other, rule.applies) for _, other in alike) <= rule.limit
    other: Row | None = row
    if rule.refer:
        other = state.row(shape.columns[rule.refer].refer, row[rule.refer])
    return other is not None and satisfies(other, rule.demands, row)


def world_body(declared: schema.Declaration, shapes: TableShapes) -> dict[str, Any]:
    """The body of a world class."""
    tables = tuple(dict.fromkeys(tool.table for tool in declared.tools.values() if tool.act != "look"))
    seen: set[str] = set()
    for table in tables:
        seen |= {f"{table}.{name}" for name, column in shapes[table].columns.items() if column.refer}
    for rule in declared.rules:
        other = shapes[rule.table].columns[rule.refer].refer if rule.refer else rule.table
        seen |= {
            f"{rule.table}.{name}"
            for name in (*rule.when, *schema.holes(rule.say))
            if name in shapes[rule.table].columns
        }
        seen |= {f"{other}.{name}" for name in rule.must}
        seen |= {f"{rule.table}.{test.ref.detail}" for test in rule.demands if test.ref.detail}
    return {
        "shapes": shapes,
        "rules": declared.rules,
        "written": tables,
        "invariants": tuple(sorted(seen)),
        "__module__": __name__,
    }


def entry_of(declared: schema.Declaration, shapes: TableShapes, name: str, tool: schema.YamlTool) -> Entry:
    """What is shown of a tool, its code and its footprint."""
    shape, table = shapes[tool.table], tool.table
    params = {a: _param(schema.argument_column(declared, tool, a)) for a in schema.arguments(tool)}
    effects: set[str] = {f"{table}+"} if tool.act == "create" else {f"{table}-"} if tool.act == "delete" else set()
    for column, value in (*tool.row.items(), *tool.set.items()):
        if column in STATUS:
            effects.add(f"{table}.{column}" if schema.ref(value).detail else f"{table}.{column}={value}")
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


def _param(column: schema.Column) -> Param:
    doc = "YYYY-MM-DD" if column.date else "HH:MM" if column.time else ""
    return Param(column.type, doc, True, column.choice)


def _runner(declared: schema.Declaration, shapes: TableShapes, tool: schema.YamlTool) -> Callable[..., Any]:
    """The code of a tool."""
    shape, table = shapes[tool.table], tool.table
    own = {a: schema.argument_column(declared, tool, a) for a in schema.arguments(tool) if a not in tool.by}

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
        row = {**shape.fixed, **{c: schema.ref(value).value(args, {}) for c, value in tool.row.items()}}
        row = {c: row[c] for c in shape.columns}
        id = new_id(world.state, shape, row)
        world.state.put(table, id, row)
        return given(id, row)

    def write(world: World, /, **args: Any) -> Row:
        id = args[shape.key]
        row = world.found(table, id, shape.label)
        for condition in tool.required:
            if not satisfies(row, [condition]):
                raise ToolFailure(
                    "conflict", f"The {condition.column} of {shape.label} {id} is {row[condition.column]}."
                )
        _check(world, shapes, own, args)
        if tool.act == "delete":
            world.state.put(table, id, None)
            return {shape.key: id}
        new = {**row, **{c: schema.ref(value).value(args, {}) for c, value in tool.set.items()}}
        world.state.put(table, id, new)
        return given(id, new)

    if tool.act == "look":
        return search if schema.is_many(declared, tool) else look
    return create if tool.act == "create" else write


def _check(world: World, shapes: TableShapes, own: Mapping[str, schema.Column], args: Mapping[str, Any]) -> None:
    """Refuse arguments that the columns they are written to cannot hold."""
    for name, column in own.items():
        value = args[name]
        if column.refer:
            world.found(column.refer, value, shapes[column.refer].label)
        elif column.number and not column.number.low <= value <= column.number.high:
            reach = f"from {column.number.low} to {column.number.high}"
            raise ToolFailure("bad_arguments", f"{name!r} must be {reach}, got {brief_of(str(value))}")
        elif column.date and not schema.is_date(value):
            raise ToolFailure("bad_arguments", f"{name!r} must look like 2031-05-03, got {brief_of(value)}")
        elif column.time and schema.minutes(value) is None:
            raise ToolFailure("bad_arguments", f"{name!r} must look like 08:30, got {brief_of(value)}")
        elif isinstance(value, str) and len(value) > 200:
            raise ToolFailure("bad_arguments", f"{name!r} must have at most 200 characters, got {len(value)}")


def new_id(state: State, shape: TableShape, row: Row) -> str:
    """An id made of what the row holds; the next one where the same was made before."""

    def taken(id: str) -> bool:
        return state.row(shape.name, id) is not None

    content = [row[c] for c in shape.columns]
    if shape.table.codes:
        return made_of(shape.table.id.prefix, shape.digits, shape.name, *content)
    return unused(taken, shape.table.id.prefix, shape.digits, shape.name, *content, times=0)
