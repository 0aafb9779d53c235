"""Check what the schema of a declaration cannot say: of its tables, tools and rules."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from crosswind.authoring.yaml_domain import schema
from crosswind.base.errors import BadFile
from crosswind.base.yaml_files import Document, Place
from crosswind.core.registry import did_you_mean
from crosswind.core.state import STATUS

RESERVED = frozenset({"all", "ask_user"})  # words with a meaning of their own in an episode
_WORD = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")


class Checker:
    """Checks what a schema cannot say. The first thing that does not fit is raised with its line."""

    def __init__(self, document: Document, declared: schema.Declaration) -> None:
        self.document, self.d = document, declared

    def fail(self, place: Sequence[str | int], text: str) -> BadFile:
        return self.document.error(place, text)

    def word(self, text: str, place: Place, what: str) -> None:
        if keyword.iskeyword(text) or text in RESERVED:
            raise self.fail(
                place,
                f"{what} cannot be called {text!r}, which is reserved (as are Python's own words and "
                f"{', '.join(sorted(RESERVED))}); choose another, such as {text}_1",
            )
        if not _WORD.fullmatch(text):
            raise self.fail(
                place, f"{what} cannot be called {text!r}; use lower-case letters, digits and _, as in best_of_two"
            )

    def one_of(self, name: str, names: Iterable[str], place: Place, what: str) -> None:
        if name not in (known := sorted(names)):
            raise self.fail(
                place, f"there is no {what} {name!r}; {did_you_mean(name, known) if known else 'none is declared'}"
            )

    def parsed(self, place: Place, value: Any) -> schema.Ref:
        try:
            return schema.ref(value)
        except ValueError as error:
            raise self.fail(place, str(error)) from None

    def conditions(self, place: Place, given: Mapping[str, Any]) -> list[schema.ColumnTest]:
        try:
            return schema.conditions(given)
        except ValueError as error:
            raise self.fail(place, str(error)) from None

    def columns(self, table: str) -> dict[str, schema.Column]:
        """The columns of a table's rows: its own and, where it belongs to another, that one's key."""
        made = self.d.tables[table]
        return {**made.columns, **({self.key(made.of): schema.Column(refer=made.of)} if made.of else {})}

    def key(self, table: str) -> str:
        return self.d.tables[table].id.key

    def mentions(self, place: Place, text: str) -> None:
        for name in schema.holes(text):
            self.one_of(name, self.d.tools, place, "tool")

    def range(self, place: Place, made: schema.NumberRange) -> None:
        if made.step <= 0 or made.high < made.low + made.step:
            raise self.fail(place, "expected low < high and a step that fits between them")

    def fits(self, place: Place, column: schema.Column, value: Any, name: str) -> None:
        """Can a column hold a literal value?"""
        wrong = (
            (column.refer or (column.choice and value not in column.choice))
            or (column.number and (isinstance(value, str) or not column.number.low <= value <= column.number.high))
            or (column.date and not schema.is_date(str(value)))
            or (column.time and schema.minutes(value) is None)
        )
        if wrong:
            takes = ", ".join(column.choice) or (f"keys of {column.refer}" if column.refer else f"a {column.fill}")
            raise self.fail(place, f"{name} cannot be {value!r}; it holds {takes}")

    def literal(self, place: Place, given: schema.Ref) -> None:
        if given.detail or given.step:
            raise self.fail(place, "only a plain value can stand here")

    def sort(self, detail: str) -> str:
        """Details of one sort are read alike."""
        return schema.reader_sort(self.d, self.d.details[detail])


class TableChecks(Checker):
    """Whether the tables of a declaration fit together."""

    def run(self) -> None:
        for name, table in self.d.tables.items():
            self.table(name, table)
        for role, of in self.d.entities.items():
            self.entity(role, of)

    def entity(self, role: str, of: str) -> None:
        place, (table, _, column) = ("entities", role), of.partition(".")
        self.one_of(table, self.d.tables, place, "table")
        if column:
            self.one_of(column, self.d.tables[table].columns, place, f"column of {table}")
        made = self.d.tables[table].columns[column] if column else None
        if role == "kind" and not (made and made.choice):
            raise self.fail(place, f"{of} is not a choice column; name table.column of one")
        if role != "kind" and not (made.name if made else self.d.tables[table].id.names):
            raise self.fail(
                place, f"{of} holds no made-up names; name a column filled by name, or a table that has them"
            )

    def table(self, name: str, table: schema.YamlTable) -> None:
        place = ("tables", name)
        self.word(name, place, "a table")
        self.identity(name, table.id)
        if table.of:
            self.one_of(table.of, self.d.tables, (*place, "of"), "table")
            if table.of == name or list(self.d.tables).index(table.of) > list(self.d.tables).index(name):
                raise self.fail((*place, "of"), f"{table.of} must stand above {name}; move it up")
            if table.id.names:
                raise self.fail((*place, "id"), "only a table that belongs to no other goes by names; give a prefix")
            if table.least is not None and table.least > table.most:
                raise self.fail((*place, "least"), f"least is {table.least} and most is {table.most}; lower least")
        elif table.codes and table.one_per:
            raise self.fail((*place, "codes"), "codes are issued, so there are none at first; add one_per: 0")
        elif table.most or table.least is not None:
            raise self.fail(place, "most and least say how many rows lie under one of another table; add of: table")
        for column, filling in table.columns.items():
            self.word(column, (*place, "columns", column), "a column")
            if column in (table.id.key, self.key(table.of) if table.of else ""):
                raise self.fail(
                    (*place, "columns", column), f"{column!r} is a key of the row already; rename the column"
                )
            self.column((*place, "columns", column), column, filling)

    def identity(self, name: str, made: schema.Identity) -> None:
        place = ("tables", name, "id")
        self.word(made.key, (*place, "key"), "a key")
        if bool(made.prefix) == bool(made.names):
            raise self.fail(place, "give either prefix, as in prefix: B, or names, as in names: town")
        if made.names:
            self.one_of(made.names, schema.NAMES, (*place, "names"), "sort of names")
        for other, table in self.d.tables.items():
            if other == name:
                break
            for part in ("key", "prefix", "names"):
                mine = getattr(made, part)
                if mine and mine == getattr(table.id, part):
                    raise self.fail((*place, part), f"{mine!r} is the {part} of {other} already; choose another")
        if made.names:
            for other, table in self.d.tables.items():
                if any(c.name == made.names for c in table.columns.values()):
                    raise self.fail((*place, "names"), f"{other} has a column of such names; choose another sort")

    def column(self, place: Place, name: str, column: schema.Column) -> None:
        fills = column.fills()
        if len(fills) != 1:
            got = f"got {' and '.join(fills)}" if fills else "got none of them"
            raise self.fail(place, f"expected one of name, choice, number, date, time, refer, fixed; {got}")
        if column.name:
            self.one_of(column.name, schema.NAMES, (*place, "name"), "sort of names")
        if column.refer:
            self.one_of(column.refer, self.d.tables, (*place, "refer"), "table")
            table = self.d.tables[column.refer]
            own = self.d.tables[str(place[1])]
            if table.codes:
                if own.most if own.of else own.one_per:
                    raise self.fail((*place, "refer"), f"no code is issued at first; give {place[1]} no rows at first")
            elif (table.most == 0 or table.least == 0) if table.of else table.one_per == 0:
                raise self.fail((*place, "refer"), f"{column.refer} may hold no row to refer to; give it at least one")
        if column.choice:
            self.choice(place, column)
        elif column.words or column.weights:
            raise self.fail(place, "words and weights belong to a choice; take them out")
        if column.number:
            self.range((*place, "number"), column.number)
        elif column.unit:
            raise self.fail(place, "a unit belongs to a number; take it out")
        if column.date and not schema.is_date(column.date.first):
            raise self.fail((*place, "date", "first"), f"{column.date.first!r} is not a date; write it as 2031-05-03")
        if column.time:
            first, last = schema.minutes(column.time.first), schema.minutes(column.time.last)
            if first is None or last is None or last < first + column.time.minutes:
                raise self.fail((*place, "time"), 'expected two times of a day in quotes, as in first: "08:00"')
        if name in STATUS and not column.choice:
            raise self.fail(place, f"{name} is a column of a few values; fill it by choice")

    def choice(self, place: Place, column: schema.Column) -> None:
        if len(column.choice) < 2:
            raise self.fail((*place, "choice"), "a choice has two values or more; for one value write fixed: value")
        if column.weights and (
            len(column.weights) != len(column.choice) or min(column.weights) < 0 or not any(column.weights)
        ):
            raise self.fail((*place, "weights"), "expected one weight for each choice, 0 or more, not all of them 0")
        said: dict[str, str] = {}
        for value in column.choice:
            for text in (value, *column.words.get(value, ())):
                if not text.strip() or text.lower() in said:
                    raise self.fail((*place, "choice"), f"{text!r} stands for two choices or for none; keep one")
                said[text.lower()] = value
        for value in column.words:
            self.one_of(value, column.choice, (*place, "words", value), "choice")


class ToolChecks(Checker):
    """Whether tools and rules fit the tables."""

    def run(self) -> None:
        for name, tool in self.d.tools.items():
            self.tool(name, tool)
        for name, tool in self.d.tools.items():
            self.undo(name, tool)
        for i, rule in enumerate(self.d.rules):
            self.rule(i, rule)

    def tool(self, name: str, tool: schema.YamlTool) -> None:
        place = ("tools", name)
        self.word(name, place, "a tool")
        if len(tool.acts) != 1:
            raise self.fail(place, "expected one of look, create, change, delete with the name of a table")
        self.one_of(tool.table, self.d.tables, (*place, tool.act), "table")
        self.mentions((*place, "doc"), tool.doc)
        columns, key = self.columns(tool.table), self.key(tool.table)
        fits = {
            "look": ("by", "give"),
            "create": ("give", "row", "undo"),
            "change": ("by", "give", "set", "requires", "undo"),
            "delete": ("by", "requires"),
        }[tool.act]
        for part in ("by", "give", "row", "set", "requires", "undo"):
            if getattr(tool, part) and part not in fits:
                raise self.fail(
                    (*place, part), f"a tool that has {tool.act} takes no {part}; it takes {', '.join(fits)}"
                )
        for i, column in enumerate(tool.give):
            self.one_of(column, (key, *columns), (*place, "give", i), f"column of {tool.table}")
        for condition in self.conditions((*place, "requires"), tool.requires):
            self.one_of(condition.column, columns, (*place, "requires", condition.column), f"column of {tool.table}")
            self.literal((*place, "requires", condition.column), condition.ref)
        if tool.act == "look":
            self.look(name, tool, columns, key)
        elif tool.act == "create":
            self.created(place, tool, columns)
        else:
            if tool.by != (key,):
                raise self.fail((*place, "by"), f"a row is found by its key; write by: [{key}]")
            if tool.act == "change" and not tool.set:
                raise self.fail(place, "a change sets something; add set: {column: value}")
            for column, value in tool.set.items():
                own = self.d.tables[tool.table].columns  # a key is never changed
                self.one_of(column, own, (*place, "set", column), f"column of {tool.table}")
                self.put((*place, "set", column), tool, column, value)

    def look(self, name: str, tool: schema.YamlTool, columns: Mapping[str, schema.Column], key: str) -> None:
        place = ("tools", name)
        if not tool.give:
            raise self.fail(place, "a look-up gives something; add give: [column, ...]")
        if not tool.by:
            raise self.fail(
                place, f"rows are never searched one and all; add by: [{key}] or the key of what they are of"
            )
        for i, column in enumerate(tool.by):
            self.one_of(column, (key, *columns), (*place, "by", i), f"column of {tool.table}")
            if tool.by.index(column) != i:
                raise self.fail((*place, "by", i), f"{column!r} appears twice; keep one")
        of = self.d.tables[tool.table].of
        if key in tool.by and len(tool.by) > 1:
            raise self.fail((*place, "by"), f"{key} alone says which row; write by: [{key}]")
        if key not in tool.by and (not of or self.key(of) not in tool.by):
            needs = f"{self.key(of)} or {key}" if of else key
            raise self.fail((*place, "by"), f"rows are found through what they belong to; add {needs}")

    def created(self, place: Place, tool: schema.YamlTool, columns: Mapping[str, schema.Column]) -> None:
        if not self.d.tables[tool.table].id.prefix:
            raise self.fail(
                (*place, "create"), f"rows of {tool.table} go by names and cannot be made; give it a prefix"
            )
        for column, value in tool.row.items():
            self.one_of(column, columns, (*place, "row", column), f"column of {tool.table}")
            self.put((*place, "row", column), tool, column, value)
        lacking = [c for c, made in columns.items() if c not in tool.row and made.fixed is None]
        if lacking:
            raise self.fail(
                (*place, "row") if tool.row else place, f"a new row has no {', '.join(lacking)}; add them to row"
            )

    def put(self, place: Place, tool: schema.YamlTool, column: str, value: Any) -> None:
        """A value that a tool writes: an argument, or one that the column can hold."""
        given = self.parsed(place, value)
        if given.step:
            raise self.fail(place, f"{value!r} speaks of a step; a tool knows its arguments, as in {{{column}}}")
        if given.detail:
            self.word(given.detail, place, "an argument")
            if given.detail in tool.by:
                raise self.fail(place, f"{{{given.detail}}} says which row is meant; give the new value another name")
            return
        self.fits(place, self.columns(tool.table)[column], given.literal, column)

    def undo(self, name: str, tool: schema.YamlTool) -> None:
        if not tool.undo:
            return
        place, key = ("tools", name, "undo"), self.key(tool.table)
        self.one_of(tool.undo, self.d.tools, place, "tool")
        back = self.d.tools[tool.undo]
        if back.table != tool.table or back.act not in ("change", "delete") or schema.arguments(back) != [key]:
            raise self.fail(place, f"{tool.undo} does not take {key} alone and change or delete a row of {tool.table}")
        if key not in tool.give:
            raise self.fail(place, f"whoever undoes it needs {key}; add it to give")

    def rule(self, i: int, rule: schema.YamlRule) -> None:
        place: Place = ("rules", i)
        self.one_of(rule.table, self.d.tables, (*place, "table"), "table")
        columns = self.columns(rule.table)
        self.condition_columns((*place, "when"), rule.when, rule.table)
        if (rule.limit is None) == (not rule.must):
            raise self.fail(place, "expected either must: {column: value} or limit: number")
        if rule.limit is not None and (rule.refer or not self.d.tables[rule.table].of):
            raise self.fail(
                place, f"a limit counts the rows under one parent: {rule.table} needs of, and the rule no refer"
            )
        if rule.refer:
            self.one_of(rule.refer, columns, (*place, "refer"), f"column of {rule.table}")
            if not columns[rule.refer].refer:
                raise self.fail(
                    (*place, "refer"), f"{rule.refer} refers to no table; take refer out or fill it by refer"
                )
        must = {c: t for c, t in rule.must.items() if not self._own(rule, c, t)}
        self.condition_columns((*place, "must"), must, columns[rule.refer].refer if rule.refer else rule.table)
        for name in schema.holes(rule.say):
            self.one_of(name, (self.key(rule.table), *columns), (*place, "say"), f"column of {rule.table}")

    def _own(self, rule: schema.YamlRule, column: str, value: Any) -> bool:
        """Is a column compared with what the written row itself holds?"""
        place = ("rules", self.d.rules.index(rule), "must", column)
        own = self.parsed(place, value).detail if isinstance(value, str) else ""
        if not own:
            return False
        if not rule.refer:
            raise self.fail(place, f"{value!r} is a value of the written row itself; compare another by refer: column")
        columns = self.columns(rule.table)
        self.one_of(own, columns, place, f"column of {rule.table}")
        self.one_of(column, self.columns(columns[rule.refer].refer), place, f"column of {columns[rule.refer].refer}")
        return True

    def condition_columns(self, place: Place, given: Mapping[str, Any], table: str) -> None:
        for condition in self.conditions(place, given):
            at = (*place, condition.column)
            columns = self.columns(table)
            self.one_of(condition.column, columns, at, f"column of {table}")
            self.literal(at, condition.ref)
            self.fits(at, columns[condition.column], condition.ref.literal, condition.column)
