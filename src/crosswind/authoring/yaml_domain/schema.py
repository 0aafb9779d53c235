"""What a YAML domain may say: the models of a file and its parts, its references, and what follows from them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date as Date
from functools import cached_property, lru_cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

_DETAIL = re.compile(r"\{(\w*)\}")
STEP = re.compile(r"\$(\w+)\.(\w+)")
_REFERENCE = re.compile(rf"{_DETAIL.pattern}|{STEP.pattern}")


@dataclass(frozen=True, slots=True)
class Ref:
    """A value in a file: `{detail}`, `$step.key`, or what is there."""

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
    """Take a value apart; a text that mixes references with words is not a value."""
    if not isinstance(value, str):
        return Ref(literal=value)
    if whole := _DETAIL.fullmatch(value):
        return Ref(detail=whole[1])
    if whole := STEP.fullmatch(value):
        return Ref(step=whole[1], key=whole[2])
    if "{" in value or "$" in value:
        raise ValueError(f"{value!r} is not a reference; write {{detail}}, $step.key or a plain value")
    return Ref(literal=value)


Test = Literal["=", "at_least", "at_most"]


@dataclass(frozen=True, slots=True)
class ColumnTest:
    column: str
    test: Test
    ref: Ref

    def holds(self, have: Any, want: Any, *, strict: bool = False) -> bool:
        """Does a value pass? With `strict`, one that only just reaches a bound does not."""
        if self.test == "=":
            return bool(have == want)
        return bool(have > want if self.test == "at_least" else have < want) or (have == want and not strict)


def conditions(given: Mapping[str, Any]) -> list[ColumnTest]:
    """`{status: out, rating: {at_least: 4}}` taken apart."""
    out = []
    for column, value in given.items():
        tests: Mapping[Any, Any] = value if isinstance(value, dict) else {"=": value}
        for test, bound in tests.items():
            if test not in ("=", "at_least", "at_most") or isinstance(bound, (dict, list)) or bound is None:
                raise ValueError(
                    f"{column} is compared with {value!r}; write a value, at_least: value or at_most: value"
                )
            out.append(ColumnTest(column, test, ref(bound)))
    return out


def holes(text: str) -> list[str]:
    """The {details} of a text, in order."""
    return _DETAIL.findall(text)


def without_holes(text: str) -> str:
    """The words of a text alone."""
    return _DETAIL.sub(" ", text)


def filled(text: str, details: Mapping[str, Any], found: Mapping[str, Mapping[str, Any]]) -> str:
    """A text with its references put in."""
    return _REFERENCE.sub(lambda m: str(found[m[2]][m[3]] if m[2] else details[m[1]]), text)


# ---------------------------------------------------------------- the parts of a file

# Endings of made-up names by what they name: those of train, dev and test.
NAMES: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "town": (("ville", "ton", "burg", "stad"), ("port", "ford", "mouth"), ("dale", "haven", "wick", "mere")),
    "person": (("son", "berg", "ski", "man"), ("ley", "dez", "rup"), ("sen", "ova", "etti", "was")),
    "work": (("ria", "nis", "dor", "lux"), ("tam", "quay", "ros"), ("vane", "lith", "mar", "zel")),
    "firm": (("corp", "tec", "plan", "werk"), ("soft", "line", "trade"), ("gro", "sys", "nova", "hold")),
}
Scalar = str | int | float


class Part(BaseModel):
    """A part of a file: closed to unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class NumberRange(Part):
    low: int | float
    high: int | float
    step: int | float = 1


class DateRange(Part):
    first: str
    days: int = Field(ge=2, le=3000)


class TimeRange(Part):
    first: str
    last: str
    minutes: int = Field(default=15, ge=1, le=720)


class Column(Part):
    """How a column is filled: exactly one of name, choice, number, date, time, refer and fixed."""

    name: str = ""
    choice: tuple[str, ...] = ()
    words: dict[str, tuple[str, ...]] = {}  # other words for a choice
    weights: tuple[int, ...] = ()  # how often each choice is drawn; 0: by writes and obstacles alone
    number: NumberRange | None = None
    unit: Literal["", "euros"] = ""
    date: DateRange | None = None
    time: TimeRange | None = None
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


class YamlTable(Part):
    id: Identity
    of: str = ""  # the table whose rows these belong to
    most: int = Field(default=0, ge=0, le=100)  # rows under each of those
    least: int | None = Field(default=None, ge=0)
    one_per: int = Field(default=1, ge=0)  # without `of`: one row per this many entities of the world; 0: none at first
    codes: bool = False  # issued for what they hold: the same again for the same, and of no consequence by themselves
    columns: dict[str, Column]


class YamlTool(Part):
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
    def required(self) -> list[ColumnTest]:
        return conditions(self.requires)

    @cached_property
    def acts(self) -> list[str]:
        return [act for act in ("look", "create", "change", "delete") if getattr(self, act)]

    @cached_property
    def act(self) -> str:
        return self.acts[0]

    @cached_property
    def table(self) -> str:
        return str(getattr(self, self.act))


class YamlRule(Part):
    """What must hold for every row of a table that is written and then is like `when`."""

    table: str
    when: dict[str, Any] = {}
    refer: str = ""  # the row that this column refers to, else the row itself,
    must: dict[str, Any] = {}  # must be like this; {column} is what the written row holds there
    limit: int | None = Field(default=None, ge=0)  # or: this many such rows at most under one parent
    say: str

    @cached_property
    def applies(self) -> list[ColumnTest]:
        return conditions(self.when)

    @cached_property
    def demands(self) -> list[ColumnTest]:
        return conditions(self.must)


class YamlDetail(Part):
    """A detail that requests state: an id of a table, a value of a column, or a whole number."""

    of: str = ""
    number: NumberRange | None = None
    label: str = ""
    ask: str = ""
    words: tuple[str, ...] = ()
    vague: str = ""
    record: str = ""  # tool.key: where else it stands


class YamlStep(Part):
    """One call of a solution, or a comparison of what earlier ones gave, and which of the rows is taken."""

    step: str
    call: str = ""
    among: tuple[str, ...] = ()  # instead of a call: the rows that these steps gave
    args: dict[str, Scalar] = {}
    where: dict[str, Any] = {}
    max: str = ""
    min: str = ""
    only: bool = False
    count: bool = False
    sum: str = ""
    none: str = "nothing was found"

    @property
    def picks(self) -> list[str]:
        return [p for p in ("max", "min", "only", "count", "sum") if getattr(self, p)]


class YamlObstacle(Part):
    """Edits that make a request impossible: of one row, or of all rows that a step could take."""

    table: str = ""
    id: str = ""
    step: str = ""
    set: dict[str, Scalar] = {}
    gone: bool = False


class YamlFamily(Part):
    """A family of tasks."""

    about: str
    level: int = Field(ge=1, le=3)
    queries: tuple[str, ...] = Field(min_length=1)
    steps: tuple[YamlStep, ...] = Field(min_length=1)
    answer: str
    expect: tuple[str, ...] = ()
    withhold: tuple[str, ...] = ()
    obstacles: tuple[YamlObstacle, ...] = ()
    refusal: bool = False


class Declaration(Part):
    """A whole file."""

    domain: str
    summary: str
    policy: str
    entities: dict[
        Literal["kind", "thing", "group", "person"], str
    ] = {}  # a table, or table.column: what plays the role
    tables: dict[str, YamlTable] = Field(min_length=1)
    tools: dict[str, YamlTool] = Field(min_length=1)
    rules: tuple[YamlRule, ...] = ()
    details: dict[str, YamlDetail] = {}
    families: dict[str, YamlFamily] = Field(min_length=1)


def is_many(declared: Declaration, tool: YamlTool) -> bool:
    """Does a tool give a list of rows?"""
    return tool.act == "look" and declared.tables[tool.table].id.key not in tool.by


def arguments(tool: YamlTool) -> list[str]:
    """The arguments of a tool, in order."""
    written = (ref(value).detail for value in (*tool.row.values(), *tool.set.values()))
    return list(dict.fromkeys((*tool.by, *(name for name in written if name))))


def argument_column(declared: Declaration, tool: YamlTool, argument: str) -> Column:
    """The column that an argument speaks of."""
    table = declared.tables[tool.table]
    for column, value in (*tool.row.items(), *tool.set.items()):
        if ref(value).detail == argument:
            argument = column
            break
    if argument == table.id.key:
        return Column(refer=tool.table)
    return table.columns.get(argument, Column(refer=table.of))


def reader_sort(declared: Declaration, detail: YamlDetail) -> str:
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


def is_date(text: str) -> bool:
    try:
        return Date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def minutes(text: Any) -> int | None:
    """A time of the day such as 08:30 in minutes; None where it is none."""
    found = re.fullmatch(r"([01]\d|2[0-3]):([0-5]\d)", text) if isinstance(text, str) else None
    return int(found[1]) * 60 + int(found[2]) if found else None
