"""Checks of tables and their columns."""

from __future__ import annotations

from crosswind.authoring.yaml_domain.checker import Checker
from crosswind.authoring.yaml_domain.schema import NAMES, Column, Identity, YamlTable, is_date, minutes
from crosswind.base.files import Place
from crosswind.core.world import STATUS


class TableChecks(Checker):
    """Whether the tables of a declaration fit together."""

    def run(self) -> None:
        for name, table in self.d.tables.items():
            self.table(name, table)

    def table(self, name: str, table: YamlTable) -> None:
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
        elif table.most or table.least is not None:
            raise self.fail(place, "most and least say how many rows lie under one of another table; add of: table")
        for column, filling in table.columns.items():
            self.word(column, (*place, "columns", column), "a column")
            if column in (table.id.key, self.key(table.of) if table.of else ""):
                raise self.fail(
                    (*place, "columns", column), f"{column!r} is a key of the row already; rename the column"
                )
            self.column((*place, "columns", column), column, filling)

    def identity(self, name: str, made: Identity) -> None:
        place = ("tables", name, "id")
        self.word(made.key, (*place, "key"), "a key")
        if bool(made.prefix) == bool(made.names):
            raise self.fail(place, "give either prefix, as in prefix: B, or names, as in names: town")
        if made.names:
            self.one_of(made.names, NAMES, (*place, "names"), "sort of names")
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

    def column(self, place: Place, name: str, column: Column) -> None:
        fills = column.fills()
        if len(fills) != 1:
            got = f"got {' and '.join(fills)}" if fills else "got none of them"
            raise self.fail(place, f"expected one of name, choice, number, date, time, refer, fixed; {got}")
        if column.name:
            self.one_of(column.name, NAMES, (*place, "name"), "sort of names")
        if column.refer:
            self.one_of(column.refer, self.d.tables, (*place, "refer"), "table")
            table = self.d.tables[column.refer]
            if (table.most == 0 or table.least == 0) if table.of else table.one_per == 0:
                raise self.fail((*place, "refer"), f"{column.refer} may hold no row to refer to; give it at least one")
        if column.choice:
            self.choice(place, column)
        elif column.words or column.weights:
            raise self.fail(place, "words and weights belong to a choice; take them out")
        if column.number:
            self.range((*place, "number"), column.number)
        elif column.unit:
            raise self.fail(place, "a unit belongs to a number; take it out")
        if column.date and not is_date(column.date.first):
            raise self.fail((*place, "date", "first"), f"{column.date.first!r} is no date; write it as 2031-05-03")
        if column.time:
            first, last = minutes(column.time.first), minutes(column.time.last)
            if first is None or last is None or last < first + column.time.minutes:
                raise self.fail((*place, "time"), 'expected two times of a day in quotes, as in first: "08:00"')
        if name in STATUS and not column.choice:
            raise self.fail(place, f"{name} is a column of a few values; fill it by choice")

    def choice(self, place: Place, column: Column) -> None:
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
