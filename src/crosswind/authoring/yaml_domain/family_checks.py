"""Checks of details and families."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import prod

from crosswind.authoring.yaml_domain import schema
from crosswind.authoring.yaml_domain.checks import Checker
from crosswind.base.yaml_files import Place

PICKS = "max, min, only, count, sum"
_BRACED = re.compile(rf"\{{({schema.STEP.pattern})\}}")
HOPES = 2000  # ends that a refusal proof may have to rule out


def _refs(kind: schema.YamlFamily) -> Iterator[tuple[Place, schema.Ref]]:
    """All references of a family's steps, with their places in the family."""
    for i, step in enumerate(kind.steps):
        for name, value in step.args.items():
            yield ("steps", i, "args", name), schema.ref(value)
        for condition in schema.conditions(step.where):
            yield ("steps", i, "where", condition.column), condition.ref


def _chooses(step: schema.YamlStep) -> bool:
    return bool(step.max or step.min or step.only)


class FamilyChecks(Checker):
    """Whether details and families fit the tables and tools."""

    def run(self) -> None:
        for name, detail in self.d.details.items():
            self.detail(name, detail)
        for name, kind in self.d.families.items():
            self.family(name, kind)
        self.mentions(("policy",), self.d.policy)
        for name in self.d.details:
            if not any(name in schema.holes(kind.queries[0]) for kind in self.d.families.values()):
                raise self.fail(("details", name), "no family uses this detail; use it in a family or take it out")

    def detail(self, name: str, detail: schema.YamlDetail) -> None:
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
                        (*place, "of"), f"{column} is not a column of names, choices, dates, times or whole numbers"
                    )
        if detail.record:
            self.record((*place, "record"), detail)

    def record(self, place: Place, detail: schema.YamlDetail) -> None:
        tool, _, key = detail.record.partition(".")
        self.one_of(tool, self.d.tools, place, "tool")
        made = self.d.tools[tool]
        if made.act != "look" or made.by != (self.key(made.table),) or key not in made.give or key == made.by[0]:
            raise self.fail(place, "expected tool.key of a look-up by a key alone that gives this key")
        self.one_of(made.by[0], self.d.details, place, "detail")

    def family(self, name: str, kind: schema.YamlFamily) -> None:
        place = ("families", name)
        self.word(name, place, "a family")
        found: dict[str, schema.YamlStep] = {}
        for i, step in enumerate(kind.steps):
            self.step((*place, "steps", i), step, found)
            found[step.step] = step
        self.queries(place, kind)
        details = schema.holes(kind.queries[0])
        self.text((*place, "answer"), kind.answer, details, found)
        for i, value in enumerate(kind.expect):
            given = self.parsed((*place, "expect", i), value)
            if not given.step:
                raise self.fail((*place, "expect", i), f"{value!r} is not a result; write $step.key")
            self.result((*place, "expect", i), given, found)
        writes = [step for step in kind.steps if step.call and self.d.tools[step.call].act != "look"]
        if not writes and not kind.expect:
            raise self.fail(place, "nothing is changed and nothing expected, so doing nothing would pass; add expect")
        ends = prod(self._choices(step) for step in kind.steps if _chooses(step))
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

    def _choices(self, step: schema.YamlStep) -> int:
        return len(step.among) or max(1, self.d.tables[self.d.tools[step.call].table].most)

    def _source(self, step: schema.YamlStep, found: Mapping[str, schema.YamlStep]) -> schema.YamlTool:
        """The tool that gives a step its rows."""
        while step.among:
            step = found[step.among[0]]
        return self.d.tools[step.call]

    def among(self, place: Place, step: schema.YamlStep, found: Mapping[str, schema.YamlStep]) -> None:
        """A comparison of rows that earlier steps gave."""
        for i, name in enumerate(step.among):
            self.one_of(name, found, (*place, "among", i), "earlier step")
            if found[name].count or found[name].sum:
                raise self.fail((*place, "among", i), f"{name} gives a number; name a step that gives a row")
        tools = [self._source(found[name], found) for name in step.among]
        if len(tools) < 2 or len({tool.table for tool in tools}) > 1:
            raise self.fail((*place, "among"), "expected two or more steps that give rows of one table")
        if step.call or step.args or step.where or step.picks not in (["max"], ["min"], ["sum"]):
            raise self.fail(place, "a comparison calls nothing: keep among and one of max, min, sum")
        for column in filter(None, (step.max, step.min, step.sum)):
            for tool in tools:
                self.one_of(column, tool.give, (*place, step.picks[0]), "key that all of them give")

    def step(self, place: Place, step: schema.YamlStep, found: Mapping[str, schema.YamlStep]) -> None:
        self.word(step.step, (*place, "step"), "a step")
        if step.step in found:
            raise self.fail((*place, "step"), f"a step above is called {step.step!r} too; rename one")
        if step.among:
            self.among(place, step, found)
            return
        self.one_of(step.call, self.d.tools, (*place, "call"), "tool")
        tool = self.d.tools[step.call]
        wanted = schema.arguments(tool)
        for name in step.args:
            self.one_of(name, wanted, (*place, "args", name), f"argument of {step.call}")
        if lacking := [name for name in wanted if name not in step.args]:
            raise self.fail((*place, "args") if step.args else place, f"{step.call} needs {', '.join(lacking)}; add it")
        for name, value in step.args.items():
            given = self.parsed((*place, "args", name), value)
            self.known((*place, "args", name), given, found)
            self.argument((*place, "args", name), given, schema.argument_column(self.d, tool, name), found)
        many = schema.is_many(self.d, tool)
        if not many and (step.where or step.picks):
            raise self.fail(place, f"{step.call} gives one row; take out {', '.join(step.picks or ['where'])}")
        if many and len(step.picks) != 1:
            raise self.fail(place, f"{step.call} returns a list; choose one row with one of {PICKS}")
        for condition in self.conditions((*place, "where"), step.where):
            at = (*place, "where", condition.column)
            self.one_of(condition.column, tool.give, at, f"key that {step.call} gives")
            self.known(at, condition.ref, found)
        for column in filter(None, (step.max, step.min, step.sum)):
            at = (*place, step.picks[0])
            self.one_of(column, tool.give, at, f"key that {step.call} gives")
            if step.sum and self.columns(tool.table).get(column, schema.Column()).type == "string":
                raise self.fail(at, f"{column} holds no numbers; name a column that does")
        self.text((*place, "none"), step.none, list(self.d.details), found)

    def argument(
        self, place: Place, given: schema.Ref, column: schema.Column, found: Mapping[str, schema.YamlStep]
    ) -> None:
        """Can what a step hands over be what the tool takes? Looks at keys and plain values."""
        if not given.detail and not given.step:
            self.fits(place, column, given.literal, str(place[-1]))
        elif column.refer:
            if given.detail:
                sort = schema.reader_sort(self.d, self.d.details[given.detail])
            else:
                table = self._source(found[given.step], found).table
                own = given.key == self.key(table)
                sort = f"id of {table if own else self.columns(table).get(given.key, schema.Column()).refer}"
            if sort != f"id of {column.refer}":
                raise self.fail(
                    place, f"{place[-1]} must be the {self.key(column.refer)} of {column.refer}; this is not one"
                )

    def known(self, place: Place, given: schema.Ref, found: Mapping[str, schema.YamlStep]) -> None:
        if given.detail:
            self.one_of(given.detail, self.d.details, place, "detail")
        if given.step:
            self.result(place, given, found)

    def result(self, place: Place, given: schema.Ref, found: Mapping[str, schema.YamlStep]) -> None:
        self.one_of(given.step, found, place, "earlier step")
        step = found[given.step]
        keys = ("count",) if step.count else ("sum",) if step.sum else self._source(step, found).give
        self.one_of(given.key, keys, place, f"key that the step {given.step} gives")

    def text(self, place: Place, text: str, details: Sequence[str], found: Mapping[str, schema.YamlStep]) -> None:
        for name in schema.holes(text):
            self.one_of(name, details, place, "detail")
        if found_in := _BRACED.search(text):
            raise self.fail(place, f"{found_in[0]} has braces, which are for details; write {found_in[1]}")
        if set("{}") & set(schema.without_holes(text)):
            raise self.fail(place, "a brace is left over; details are written as {detail}, results as $step.key")
        for step, key in schema.STEP.findall(text):
            self.result(place, schema.Ref(step=step, key=key), found)

    def queries(self, place: Place, kind: schema.YamlFamily) -> None:
        used = dict.fromkeys(given.detail for _, given in _refs(kind) if given.detail)
        first = schema.holes(kind.queries[0])
        for i, query in enumerate(kind.queries):
            at = (*place, "queries", i)
            said = schema.holes(query)
            if set("{}") & set(schema.without_holes(query)):
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

    def obstacle(
        self, place: Place, made: schema.YamlObstacle, details: Sequence[str], found: Mapping[str, schema.YamlStep]
    ) -> None:
        if bool(made.step) == bool(made.table) or bool(made.table) != bool(made.id) or bool(made.set) == made.gone:
            raise self.fail(
                place, "expected step: name, or table: name and id: reference; and set: {...} or gone: true"
            )
        table = made.table
        if made.step:
            self.one_of(made.step, found, (*place, "step"), "step")
            tool = self._source(found[made.step], found)
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
