"""Checks of tools and rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crosswind.authoring.yaml_domain.checker import Checker
from crosswind.authoring.yaml_domain.references import holes
from crosswind.authoring.yaml_domain.schema import Column, YamlRule, YamlTool, arguments
from crosswind.base.files import Place


class ToolChecks(Checker):
    """Whether tools and rules fit the tables."""

    def run(self) -> None:
        for name, tool in self.d.tools.items():
            self.tool(name, tool)
        for name, tool in self.d.tools.items():
            self.undo(name, tool)
        for i, rule in enumerate(self.d.rules):
            self.rule(i, rule)

    def tool(self, name: str, tool: YamlTool) -> None:
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

    def look(self, name: str, tool: YamlTool, columns: Mapping[str, Column], key: str) -> None:
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

    def created(self, place: Place, tool: YamlTool, columns: Mapping[str, Column]) -> None:
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

    def put(self, place: Place, tool: YamlTool, column: str, value: Any) -> None:
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

    def undo(self, name: str, tool: YamlTool) -> None:
        if not tool.undo:
            return
        place, key = ("tools", name, "undo"), self.key(tool.table)
        self.one_of(tool.undo, self.d.tools, place, "tool")
        back = self.d.tools[tool.undo]
        if back.table != tool.table or back.act not in ("change", "delete") or arguments(back) != [key]:
            raise self.fail(place, f"{tool.undo} does not take {key} alone and change or delete a row of {tool.table}")
        if key not in tool.give:
            raise self.fail(place, f"whoever undoes it needs {key}; add it to give")

    def rule(self, i: int, rule: YamlRule) -> None:
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
