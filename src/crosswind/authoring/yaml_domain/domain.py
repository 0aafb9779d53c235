"""A domain made of a declaration."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from crosswind.authoring.yaml_domain.rows import At, TableShapes
from crosswind.authoring.yaml_domain.schema import NAMES, Declaration, YamlDetail, reader_sort
from crosswind.authoring.yaml_domain.world import DeclaredWorld, broken
from crosswind.core.domain import Detail, Domain, Reader, read_choice, read_counts, read_ids
from crosswind.core.names import Namer
from crosswind.core.state import Derive, State
from crosswind.core.types import Changes, Row, Split, Task
from crosswind.text import values


class DeclaredDomain(Domain):
    """A domain made of a declaration."""

    def __init__(self, declared: Declaration, shapes: TableShapes) -> None:
        self.declared, self.shapes = declared, shapes
        self.readers: dict[str, Reader] = {}
        self.details = {name: self._detail(name, made) for name, made in declared.details.items()}

    def derive(self, seed: int, size: int, split: Split) -> Derive:
        return self.shapes.derive(At(split, seed, size))

    def vary(self, task: Task, table: str, column: str, value: Any, salt: object) -> Any:
        where = At(task.split, task.seed, task.size)
        return self.shapes[table].varied(where, column, value, (table, column, salt))

    def kinds(self) -> tuple[str, ...]:
        table, _, column = self.declared.entities.get("kind", "").partition(".")
        return self.declared.tables[table].columns[column].choice if table else ()

    def normalise(self, state: State) -> Changes:
        """New rows go by what they hold; codes and what was taken back are dropped."""
        out: Changes = {}
        for (table, id), row in state.changes().items():
            if self.shapes[table].table.codes:
                continue
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

    def _detail(self, name: str, made: YamlDetail) -> Detail:
        label = made.label or name.removesuffix("_id").replace("_", " ")
        words = dict.fromkeys((*made.words, *label.lower().split(), *name.split("_")))
        record, column = None, None
        if made.record:
            tool, _, key = made.record.partition(".")
            look = self.declared.tools[tool]
            record, column = (tool, look.by[0], key), (look.table, key)
        ask, vague = made.ask or f"Which {label}?", made.vague or f"a certain {label}"
        return Detail(label, ask, self._reader(made), tuple(words), vague, record, column)

    def _reader(self, made: YamlDetail) -> Reader:
        """What finds values of a detail in a text; one object for each sort."""
        sort = reader_sort(self.declared, made)
        if sort not in self.readers:
            self.readers[sort] = self._new_reader(sort, made)
        return self.readers[sort]

    def _new_reader(self, sort: str, made: YamlDetail) -> Reader:
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

    def sample_value(self, key: str, rng: Random, where: At) -> Any:
        """A value that a detail may have; None where there is none."""
        made, chance = self.declared.details[key], rng.getrandbits(60)
        if made.number:
            steps = round((made.number.high - made.number.low) / made.number.step) + 1
            return made.number.low + chance % steps * made.number.step
        table, _, name = made.of.partition(".")
        shape, column = self.shapes[table], self.declared.tables[table].columns.get(name)
        # names belong to rows, other values do not
        n = 0 if column and not column.name else shape.sample_row(where, chance)
        if n is None:
            return None
        return shape.value(where, name, column, n, chance) if column else shape.id(where, n)
