"""What a YAML domain may say, and whether what it says fits together.

Nothing here acts: `read` gives a declaration in which every table, column, tool, detail and step that is spoken of
exists, or a `BadFile` with the line and the remedy. `yaml_domain.py` makes a domain of it.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date as Date
from functools import cached_property, lru_cache
from math import prod
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from crosswind.base import files
from crosswind.base.errors import BadFile
from crosswind.base.files import Document, Place
from crosswind.core.registry import near
from crosswind.core.world import STATUS

# Endings of made-up names by what they name: those of train, dev and test.
NAMES: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "town": (("ville", "ton", "burg", "stad"), ("port", "ford", "mouth"), ("dale", "haven", "wick", "mere")),
    "person": (("son", "berg", "ski", "man"), ("ley", "dez", "rup"), ("sen", "ova", "etti", "was")),
    "work": (("ria", "nis", "dor", "lux"), ("tam", "quay", "ros"), ("vane", "lith", "mar", "zel")),
    "firm": (("corp", "tec", "plan", "werk"), ("soft", "line", "trade"), ("gro", "sys", "nova", "hold")),
}
HOPES = 2000  # ends that a refusal proof may have to rule out

_WORD = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_DETAIL = re.compile(r"\{(\w*)\}")
_STEP = re.compile(r"\$(\w+)\.(\w+)")
Scalar = str | int | float


# ---------------------------------------------------------------- what stands in a file


class Part(BaseModel):
    """A part of a file: closed to unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Range(Part):
    low: int | float
    high: int | float
    step: int | float = 1


class Days(Part):
    first: str
    days: int = Field(ge=2, le=3000)


class Clock(Part):
    first: str
    last: str
    minutes: int = Field(default=15, ge=1, le=720)


class Column(Part):
    """How a column is filled: exactly one of name, choice, number, date, time, refer and fixed."""

    name: str = ""
    choice: tuple[str, ...] = ()
    words: dict[str, tuple[str, ...]] = {}  # other words for a choice
    weights: tuple[int, ...] = ()  # how often each choice is drawn; 0: by writes and obstacles alone
    number: Range | None = None
    unit: Literal["", "euros"] = ""
    date: Days | None = None
    time: Clock | None = None
    refer: str = ""
    fixed: Scalar | None = None

    @property
    def fill(self) -> str:
        """Which of them it is."""
        return self.fills()[0]

    def fills(self) -> list[str]:
        given = ("name", "choice", "number", "date", "time", "refer")
        return [*(f for f in given if getattr(self, f)), *(["fixed"] if self.fixed is not None else [])]

    @property
    def type(self) -> str:
        """What JSON calls its values."""
        if self.number:
            return "integer" if self.whole else "number"
        return {int: "integer", float: "number"}.get(type(self.fixed), "string")

    @property
    def whole(self) -> bool:
        return self.number is not None and all(
            isinstance(v, int) for v in (self.number.low, self.number.high, self.number.step)
        )

    @property
    def drawn(self) -> tuple[str, ...]:
        """The choices that rows may have from the start."""
        weights = self.weights or (1,) * len(self.choice)
        return tuple(c for c, w in zip(self.choice, weights, strict=True) if w)


class Identity(Part):
    """What a row goes by: `key` names it in arguments and results; a number with a prefix, or a made-up name."""

    key: str
    prefix: str = Field(default="", pattern=r"^(|[A-Z]{1,3})$")
    names: str = ""


class Table(Part):
    id: Identity
    of: str = ""  # the table whose rows these belong to
    most: int = Field(default=0, ge=0, le=100)  # rows under each of those
    least: int | None = Field(default=None, ge=0)
    one_per: int = Field(default=1, ge=0)  # without `of`: one row per so many entities of the world; 0: none at first
    columns: dict[str, Column]


class Tool(Part):
    """Exactly one of look, create, change and delete names the table."""

    doc: str
    look: str = ""
    create: str = ""
    change: str = ""
    delete: str = ""
    by: tuple[str, ...] = ()
    give: tuple[str, ...] = ()
    row: dict[str, Scalar] = {}  # of a created row
    set: dict[str, Scalar] = {}  # in a changed row
    requires: dict[str, Any] = {}  # what a changed or deleted row must be like before
    undo: str = ""

    @cached_property
    def required(self) -> list[Condition]:
        return conditions(self.requires)

    @property
    def acts(self) -> list[str]:
        return [act for act in ("look", "create", "change", "delete") if getattr(self, act)]

    @property
    def act(self) -> str:
        return self.acts[0]

    @property
    def table(self) -> str:
        return str(getattr(self, self.act))


class Rule(Part):
    """What must hold for every row of a table that is written and then is like `when`."""

    table: str
    when: dict[str, Any] = {}
    refer: str = ""  # the row that this column refers to, else the row itself,
    must: dict[str, Any] = {}  # must be like this
    limit: int | None = Field(default=None, ge=0)  # or: so many such rows at most under one parent
    say: str

    @cached_property
    def applies(self) -> list[Condition]:
        return conditions(self.when)

    @cached_property
    def demands(self) -> list[Condition]:
        return conditions(self.must)


class Request(Part):
    """A detail that requests state: an id of a table, a value of a column, or a whole number."""

    of: str = ""
    number: Range | None = None
    label: str = ""
    ask: str = ""
    words: tuple[str, ...] = ()
    vague: str = ""
    record: str = ""  # tool.key: where else it stands


class Step(Part):
    """One call of a solution, and which of the rows it gives is taken."""

    step: str
    call: str
    args: dict[str, Scalar] = {}
    where: dict[str, Any] = {}
    max: str = ""
    min: str = ""
    only: bool = False
    count: bool = False
    none: str = "nothing was found"

    @property
    def picks(self) -> list[str]:
        return [p for p in ("max", "min", "only", "count") if getattr(self, p)]


class Obstacle(Part):
    """Edits that make a request impossible: of one row, or of all rows that a step could take."""

    table: str = ""
    id: str = ""
    step: str = ""
    set: dict[str, Scalar] = {}
    gone: bool = False


class Kind(Part):
    """A family of tasks."""

    about: str
    level: int = Field(ge=1, le=3)
    queries: tuple[str, ...] = Field(min_length=1)
    steps: tuple[Step, ...] = Field(min_length=1)
    answer: str
    expect: tuple[str, ...] = ()
    withhold: tuple[str, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()
    refusal: bool = False


class Declaration(Part):
    """A whole file."""

    domain: str
    summary: str
    policy: str
    tables: dict[str, Table] = Field(min_length=1)
    tools: dict[str, Tool] = Field(min_length=1)
    rules: tuple[Rule, ...] = ()
    details: dict[str, Request] = {}
    families: dict[str, Kind] = Field(min_length=1)


# ---------------------------------------------------------------- references and conditions


@dataclass(frozen=True, slots=True)
class Ref:
    """A value in a file: `{detail}`, `$step.key`, or what stands there."""

    detail: str = ""  # of a request, or an argument of a tool
    step: str = ""
    key: str = ""
    literal: Any = None

    def value(self, details: Mapping[str, Any], found: Mapping[str, Mapping[str, Any]]) -> Any:
        if self.detail:
            return details[self.detail]
        return found[self.step][self.key] if self.step else self.literal


@lru_cache(maxsize=4096, typed=True)
def ref(value: Any) -> Ref:
    """Take a value apart; a text that mixes references with words is no value."""
    if not isinstance(value, str):
        return Ref(literal=value)
    if whole := _DETAIL.fullmatch(value):
        return Ref(detail=whole[1])
    if whole := _STEP.fullmatch(value):
        return Ref(step=whole[1], key=whole[2])
    if "{" in value or "$" in value:
        raise ValueError(f"{value!r} is no reference; write {{detail}}, $step.key or a plain value")
    return Ref(literal=value)


Test = Literal["=", "at_least", "at_most"]


@dataclass(frozen=True, slots=True)
class Condition:
    column: str
    test: Test
    ref: Ref

    def holds(self, have: Any, want: Any) -> bool:
        if self.test == "=":
            return bool(have == want)
        return bool(have >= want) if self.test == "at_least" else bool(have <= want)


def conditions(given: Mapping[str, Any]) -> list[Condition]:
    """`{status: out, rating: {at_least: 4}}` taken apart."""
    out = []
    for column, value in given.items():
        tests: Mapping[Any, Any] = value if isinstance(value, dict) else {"=": value}
        for test, bound in tests.items():
            if test not in ("=", "at_least", "at_most") or isinstance(bound, (dict, list)) or bound is None:
                raise ValueError(
                    f"{column} is compared with {value!r}; write a value, at_least: value or at_most: value"
                )
            out.append(Condition(column, test, ref(bound)))
    return out


def refs(kind: Kind) -> Iterator[tuple[Place, Ref]]:
    """All references of a family's steps, with their places in the family."""
    for i, step in enumerate(kind.steps):
        for name, value in step.args.items():
            yield ("steps", i, "args", name), ref(value)
        for condition in conditions(step.where):
            yield ("steps", i, "where", condition.column), condition.ref


def holes(text: str) -> list[str]:
    """The {details} of a text, in order."""
    return _DETAIL.findall(text)


def without_holes(text: str) -> str:
    """The words of a text alone."""
    return _DETAIL.sub(" ", text)


def filled(text: str, details: Mapping[str, Any], found: Mapping[str, Mapping[str, Any]]) -> str:
    """A text with its references put in."""
    text = _STEP.sub(lambda m: str(found[m[1]][m[2]]), text)
    return _DETAIL.sub(lambda m: str(details[m[1]]), text)


# ---------------------------------------------------------------- reading


def read(path: Path | str) -> tuple[Declaration, Document]:
    """Read and check a file; the document still knows the lines."""
    document = files.read(path)
    if not isinstance(document.data, dict):
        raise BadFile(f"{document.where}:1: expected a YAML domain; {files.expected(Declaration, ())}")
    declared = document.fit(Declaration)
    _Checks(document, declared).run()
    return declared, document


class _Checks:
    """All that a schema cannot say. The first thing that does not fit is raised with its line."""

    def __init__(self, document: Document, declared: Declaration) -> None:
        self.document, self.d = document, declared

    def fail(self, place: Sequence[str | int], text: str) -> BadFile:
        return self.document.error(place, text)

    def run(self) -> None:
        self.word(self.d.domain, ("domain",), "the domain")
        for name, table in self.d.tables.items():
            self.table(name, table)
        for name, tool in self.d.tools.items():
            self.tool(name, tool)
        for name, tool in self.d.tools.items():
            self.undo(name, tool)
        for i, rule in enumerate(self.d.rules):
            self.rule(i, rule)
        for name, detail in self.d.details.items():
            self.detail(name, detail)
        for name, kind in self.d.families.items():
            self.family(name, kind)
        self.mentions(("policy",), self.d.policy)
        for name in self.d.details:
            if not any(name in holes(kind.queries[0]) for kind in self.d.families.values()):
                raise self.fail(("details", name), "no family uses this detail; use it in a family or take it out")

    # -- parts

    def word(self, text: str, place: Place, what: str) -> None:
        if not _WORD.fullmatch(text) or keyword.iskeyword(text) or text in ("all", "ask_user"):
            raise self.fail(
                place, f"{what} cannot be called {text!r}; use lower-case letters, digits and _, as in best_of_two"
            )

    def one_of(self, name: str, names: Iterable[str], place: Place, what: str) -> None:
        if name not in (known := sorted(names)):
            raise self.fail(place, f"there is no {what} {name!r}; {near(name, known) if known else 'none is declared'}")

    def parsed(self, place: Place, value: Any) -> Ref:
        try:
            return ref(value)
        except ValueError as error:
            raise self.fail(place, str(error)) from None

    def conditions(self, place: Place, given: Mapping[str, Any]) -> list[Condition]:
        try:
            return conditions(given)
        except ValueError as error:
            raise self.fail(place, str(error)) from None

    def columns(self, table: str) -> dict[str, Column]:
        """The columns of a table's rows: its own and, where it belongs to another, that one's key."""
        made = self.d.tables[table]
        return {**self.d.tables[table].columns, **({self.key(made.of): Column(refer=made.of)} if made.of else {})}

    def key(self, table: str) -> str:
        return self.d.tables[table].id.key

    def mentions(self, place: Place, text: str) -> None:
        for name in holes(text):
            self.one_of(name, self.d.tools, place, "tool")

    # -- tables

    def table(self, name: str, table: Table) -> None:
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
        if column.date and not _is_date(column.date.first):
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

    def range(self, place: Place, made: Range) -> None:
        if made.step <= 0 or made.high < made.low + made.step:
            raise self.fail(place, "expected low < high and a step that fits between them")

    # -- tools

    def tool(self, name: str, tool: Tool) -> None:
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

    def look(self, name: str, tool: Tool, columns: Mapping[str, Column], key: str) -> None:
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
                raise self.fail((*place, "by", i), f"{column!r} stands here for the second time; keep one")
        of = self.d.tables[tool.table].of
        if key in tool.by and len(tool.by) > 1:
            raise self.fail((*place, "by"), f"{key} alone says which row; write by: [{key}]")
        if key not in tool.by and (not of or self.key(of) not in tool.by):
            needs = f"{self.key(of)} or {key}" if of else key
            raise self.fail((*place, "by"), f"rows are found through what they belong to; add {needs}")

    def created(self, place: Place, tool: Tool, columns: Mapping[str, Column]) -> None:
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

    def put(self, place: Place, tool: Tool, column: str, value: Any) -> None:
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

    def fits(self, place: Place, column: Column, value: Any, name: str) -> None:
        """Can a column hold a literal value?"""
        wrong = (
            (column.refer or (column.choice and value not in column.choice))
            or (column.number and (isinstance(value, str) or not column.number.low <= value <= column.number.high))
            or (column.date and not _is_date(str(value)))
            or (column.time and minutes(value) is None)
        )
        if wrong:
            takes = ", ".join(column.choice) or (f"keys of {column.refer}" if column.refer else f"a {column.fill}")
            raise self.fail(place, f"{name} cannot be {value!r}; it holds {takes}")

    def literal(self, place: Place, given: Ref) -> None:
        if given.detail or given.step:
            raise self.fail(place, "only a plain value can stand here")

    def undo(self, name: str, tool: Tool) -> None:
        if not tool.undo:
            return
        place, key = ("tools", name, "undo"), self.key(tool.table)
        self.one_of(tool.undo, self.d.tools, place, "tool")
        back = self.d.tools[tool.undo]
        if back.table != tool.table or back.act not in ("change", "delete") or arguments(self.d, back) != [key]:
            raise self.fail(place, f"{tool.undo} does not take {key} alone and change or delete a row of {tool.table}")
        if key not in tool.give:
            raise self.fail(place, f"whoever undoes it needs {key}; add it to give")

    # -- rules

    def rule(self, i: int, rule: Rule) -> None:
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
        self.condition_columns((*place, "must"), rule.must, columns[rule.refer].refer if rule.refer else rule.table)
        for name in holes(rule.say):
            self.one_of(name, (self.key(rule.table), *columns), (*place, "say"), f"column of {rule.table}")

    def condition_columns(self, place: Place, given: Mapping[str, Any], table: str) -> None:
        for condition in self.conditions(place, given):
            at = (*place, condition.column)
            columns = self.columns(table)
            self.one_of(condition.column, columns, at, f"column of {table}")
            self.literal(at, condition.ref)
            self.fits(at, columns[condition.column], condition.ref.literal, condition.column)

    # -- details

    def detail(self, name: str, detail: Request) -> None:
        place = ("details", name)
        self.word(name, place, "a detail")
        if bool(detail.of) == bool(detail.number):
            raise self.fail(place, "expected of: table, of: table.column or number: {low: 2, high: 5}")
        if detail.number:
            self.range((*place, "number"), detail.number)
            if any(isinstance(v, float) for v in (detail.number.low, detail.number.high, detail.number.step)):
                raise self.fail(
                    (*place, "number"), "requests state whole numbers; write low, high and step without a point"
                )
        if detail.of:
            table, dot, column = detail.of.partition(".")
            self.one_of(table, self.d.tables, (*place, "of"), "table")
            if dot:
                self.one_of(column, self.d.tables[table].columns, (*place, "of"), f"column of {table}")
                made = self.d.tables[table].columns[column]
                if made.fill == "fixed" or (made.number and not made.whole):
                    raise self.fail(
                        (*place, "of"), f"{column} is no column of names, choices, dates, times or whole numbers"
                    )
        if detail.record:
            self.record((*place, "record"), detail)

    def record(self, place: Place, detail: Request) -> None:
        tool, _, key = detail.record.partition(".")
        self.one_of(tool, self.d.tools, place, "tool")
        made = self.d.tools[tool]
        if made.act != "look" or made.by != (self.key(made.table),) or key not in made.give or key == made.by[0]:
            raise self.fail(place, "expected tool.key of a look-up by a key alone that gives this key")
        self.one_of(made.by[0], self.d.details, place, "detail")

    # -- families

    def family(self, name: str, kind: Kind) -> None:
        place = ("families", name)
        self.word(name, place, "a family")
        found: dict[str, Step] = {}
        for i, step in enumerate(kind.steps):
            self.step((*place, "steps", i), step, found)
            found[step.step] = step
        self.queries(place, kind)
        details = holes(kind.queries[0])
        self.text((*place, "answer"), kind.answer, details, found)
        for i, value in enumerate(kind.expect):
            given = self.parsed((*place, "expect", i), value)
            if not given.step:
                raise self.fail((*place, "expect", i), f"{value!r} is no result; write $step.key")
            self.result((*place, "expect", i), given, found)
        writes = [step for step in kind.steps if self.d.tools[step.call].act != "look"]
        if not writes and not kind.expect:
            raise self.fail(place, "nothing is changed and nothing expected, so doing nothing would pass; add expect")
        ends = prod(max(1, self.d.tables[self.d.tools[s.call].table].most) for s in kind.steps if _chooses(s))
        if writes and ends > HOPES:
            raise self.fail(
                place, f"{ends} ends are possible; at most {HOPES} can be ruled out: lower most or pick less"
            )
        for i, key in enumerate(kind.withhold):
            self.one_of(key, details, (*place, "withhold", i), "detail of this family")
            if [other for other in details if other != key and self.sort(other) == self.sort(key)]:
                raise self.fail(
                    (*place, "withhold", i), f"{key} cannot be told from the other detail of its sort; state it"
                )
        for i, obstacle in enumerate(kind.obstacles):
            self.obstacle((*place, "obstacles", i), obstacle, details, found)
        if kind.refusal and not kind.obstacles:
            raise self.fail(place, "a refusal needs a reason; add obstacles")

    def step(self, place: Place, step: Step, found: Mapping[str, Step]) -> None:
        self.word(step.step, (*place, "step"), "a step")
        if step.step in found:
            raise self.fail((*place, "step"), f"a step above is called {step.step!r} too; rename one")
        self.one_of(step.call, self.d.tools, (*place, "call"), "tool")
        tool = self.d.tools[step.call]
        wanted = arguments(self.d, tool)
        for name in step.args:
            self.one_of(name, wanted, (*place, "args", name), f"argument of {step.call}")
        if lacking := [name for name in wanted if name not in step.args]:
            raise self.fail((*place, "args") if step.args else place, f"{step.call} needs {', '.join(lacking)}; add it")
        for name, value in step.args.items():
            given = self.parsed((*place, "args", name), value)
            self.known((*place, "args", name), given, found)
            self.argument((*place, "args", name), given, argument_column(self.d, tool, name), found)
        many = is_many(self.d, tool)
        if not many and (step.where or step.picks):
            raise self.fail(place, f"{step.call} gives one row; take out {', '.join(step.picks or ['where'])}")
        if many and len(step.picks) != 1:
            raise self.fail(place, f"{step.call} gives a list; say which row by one of max, min, only, count")
        for condition in self.conditions((*place, "where"), step.where):
            at = (*place, "where", condition.column)
            self.one_of(condition.column, tool.give, at, f"key that {step.call} gives")
            self.known(at, condition.ref, found)
        for column in filter(None, (step.max, step.min)):
            at = (*place, "max" if step.max else "min")
            self.one_of(column, tool.give, at, f"key that {step.call} gives")
        self.text((*place, "none"), step.none, list(self.d.details), found)

    def argument(self, place: Place, given: Ref, column: Column, found: Mapping[str, Step]) -> None:
        """Can what a step hands over be what the tool takes? Looks at keys and plain values."""
        if not given.detail and not given.step:
            self.fits(place, column, given.literal, str(place[-1]))
        elif column.refer:
            if given.detail:
                sort = reader_sort(self.d, self.d.details[given.detail])
            else:
                table = self.d.tools[found[given.step].call].table
                own = given.key == self.key(table)
                sort = f"id of {table if own else self.columns(table).get(given.key, Column()).refer}"
            if sort != f"id of {column.refer}":
                raise self.fail(place, f"{place[-1]} is the {self.key(column.refer)} of {column.refer}; this is none")

    def known(self, place: Place, given: Ref, found: Mapping[str, Step]) -> None:
        if given.detail:
            self.one_of(given.detail, self.d.details, place, "detail")
        if given.step:
            self.result(place, given, found)

    def result(self, place: Place, given: Ref, found: Mapping[str, Step]) -> None:
        self.one_of(given.step, found, place, "earlier step")
        step = found[given.step]
        keys = ("count",) if step.count else self.d.tools[step.call].give
        self.one_of(given.key, keys, place, f"key that the step {given.step} gives")

    def text(self, place: Place, text: str, details: Sequence[str], found: Mapping[str, Step]) -> None:
        for name in holes(text):
            self.one_of(name, details, place, "detail")
        for step, key in _STEP.findall(text):
            self.result(place, Ref(step=step, key=key), found)

    def queries(self, place: Place, kind: Kind) -> None:
        used = dict.fromkeys(given.detail for _, given in refs(kind) if given.detail)
        first = holes(kind.queries[0])
        for i, query in enumerate(kind.queries):
            at = (*place, "queries", i)
            said = holes(query)
            if set("{}") & set(without_holes(query)):
                raise self.fail(at, "a brace is left over; details are written as {detail}, and other braces left out")
            for name in said:
                self.one_of(name, self.d.details, at, "detail")
                if name not in used:
                    raise self.fail(at, f"{{{name}}} is used by no step; use it in args or where, or take it out")
            if sorted(said) != sorted(used):
                raise self.fail(
                    at, f"a query states each detail of the steps once: {', '.join(used)}; got {', '.join(said)}"
                )
            for one in said:
                order = [n for n in said if self.sort(n) == self.sort(one)]
                if order != [n for n in first if n in order]:
                    raise self.fail(
                        at, f"{' and '.join(order)} are of one sort; keep them in the order of the first query"
                    )

    def sort(self, detail: str) -> str:
        """Details of one sort are read alike."""
        made = self.d.details[detail]
        return reader_sort(self.d, made)

    def obstacle(self, place: Place, made: Obstacle, details: Sequence[str], found: Mapping[str, Step]) -> None:
        if bool(made.step) == bool(made.table) or bool(made.table) != bool(made.id) or bool(made.set) == made.gone:
            raise self.fail(
                place, "expected step: name, or table: name and id: reference; and set: {...} or gone: true"
            )
        table = made.table
        if made.step:
            self.one_of(made.step, found, (*place, "step"), "step")
            tool = self.d.tools[found[made.step].call]
            table = tool.table
            if tool.act != "look":
                raise self.fail((*place, "step"), f"{made.step} looks nothing up; name a look-up")
        else:
            self.one_of(table, self.d.tables, (*place, "table"), "table")
            given = self.parsed((*place, "id"), made.id)
            self.known((*place, "id"), given, found)
            if given.detail:
                self.one_of(given.detail, details, (*place, "id"), "detail of this family")
        for column, value in made.set.items():
            at = (*place, "set", column)
            self.one_of(column, self.d.tables[table].columns, at, f"column of {table}")
            given = self.parsed(at, value)
            self.literal(at, given)
            self.fits(at, self.d.tables[table].columns[column], given.literal, column)


# ---------------------------------------------------------------- what follows from a declaration


def is_many(declared: Declaration, tool: Tool) -> bool:
    """Does a tool give a list of rows?"""
    return tool.act == "look" and declared.tables[tool.table].id.key not in tool.by


def arguments(declared: Declaration, tool: Tool) -> list[str]:
    """The arguments of a tool, in order."""
    written = (ref(value).detail for value in (*tool.row.values(), *tool.set.values()))
    return list(dict.fromkeys((*tool.by, *(name for name in written if name))))


def argument_column(declared: Declaration, tool: Tool, argument: str) -> Column:
    """The column that an argument speaks of."""
    table = declared.tables[tool.table]
    for column, value in (*tool.row.items(), *tool.set.items()):
        if ref(value).detail == argument:
            argument = column
            break
    if argument == table.id.key:
        return Column(refer=tool.table)
    return table.columns.get(argument, Column(refer=table.of))


def reader_sort(declared: Declaration, detail: Request) -> str:
    """What a detail is read by: two of one sort cannot be told apart."""
    if detail.number:
        return "number"
    table, _, column = detail.of.partition(".")
    if not column:
        return f"id of {table}"
    made = declared.tables[table].columns[column]
    if made.refer:
        return f"id of {made.refer}"
    if made.name:
        return f"name of {made.name}"
    return made.fill if made.fill in ("number", "date", "time") else detail.of


def _chooses(step: Step) -> bool:
    return bool(step.max or step.min or step.only)


def _is_date(text: str) -> bool:
    try:
        return Date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def minutes(text: Any) -> int | None:
    """A time of the day such as 08:30 in minutes; None where it is none."""
    found = re.fullmatch(r"([01]\d|2[0-3]):([0-5]\d)", text) if isinstance(text, str) else None
    return int(found[1]) * 60 + int(found[2]) if found else None
