"""Values are missing from results, and another tool has them."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Literal, Self

from crosswind.core.flow import digest
from crosswind.core.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.core.types import Flow, Model, Param, Step, ToolCall, ToolResult, Tools, ToolSpec, failed
from crosswind.perturbations._added_names import new_tool, new_word
from crosswind.perturbations.observation._rows import Record, mapped, records
from crosswind.perturbations.observation._shapes import on_the_way
from crosswind.words import banks

LOOKUPS = banks.own("missing_values", "lookups")
PARAMS = banks.own("missing_values", "params")
NOTES = banks.own("missing_values", "notes")  # on the parameter
AMOUNT = {1: (1, 1, 1), 2: (1, 2, 1), 3: (2, 2, 2), 4: (9, 3, 2), 5: (9, 5, 3)}  # tools, records of a result, fields


class Gap(Model):
    """What is missing from the results of one tool."""

    id: str  # a key of each record, or the parameter that names the only one
    rows: bool
    fields: tuple[str, ...]


@perturbation
class MissingValues(Perturbation):
    """Some values in results are null; another tool looks them up for a record."""

    kind: Literal["missing_values"] = "missing_values"
    axis, tier, rank = "observation", "interaction", "protocol"
    severities = (
        "Tools in the solution with gaps, records of each result that have some, and fields: 1x1x1, 1x2x1, 2x2x2, all "
        "x3x2, all x5x3."
    )
    needs = "a reading tool in the solution whose records have an id"
    way = "look up missing values with the tool that has them"
    gaps: dict[str, Gap]
    most: int  # records of a result
    lookup: str
    param: str
    note: str
    doc: str
    says: str
    salt: int

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        way, split = on_the_way(scene), scene.task.split
        known = [name for name, shape in way.items() if shape.id and shape.facts and not scene.tools[name].writes]
        tools, most, fields = AMOUNT[severity]
        gaps = {}
        for name in rng.sample(known, min(len(known), tools)):
            shape = way[name]
            of = shape.figures or shape.facts
            gaps[name] = Gap(id=shape.id, rows=shape.rows, fields=tuple(rng.sample(of, min(fields, len(of)))))
        param = new_word(PARAMS, split, rng, ())
        if not gaps or param is None:
            return None
        lookup = new_tool(LOOKUPS, split, rng, scene.names)
        return cls(
            gaps=gaps,
            most=most,
            lookup=lookup,
            param=param,
            note=rng.choice(NOTES[split]),
            doc=banks.phrase("lookup_doc", split, rng),
            says=banks.phrase("null_doc", split, rng, tool=lookup),
            salt=rng.randrange(10**6),
        )

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        """Each record that must be asked for; such a call asks nothing further in."""
        return sum(place in step.fired and not step.inner for step in gold)

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        told = (t.replace(doc=f"{t.doc} {self.says}") if t.name in self.gaps else t for t in tools)
        return (*told, ToolSpec.new(self.lookup, self.doc, {self.param: Param("string", self.note)}))

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        if call.tool == self.lookup:
            memo.fire()
            known = memo.notes.get(call.args[self.param])
            return ToolResult(dict(known)) if known else failed("not_found", "Nothing is missing there.")
        result = yield call
        gap = self.gaps.get(call.tool)
        if gap is None or result.error:
            return result
        there = _named(result.content, gap, call)
        emptied: dict[str, Record] = {}
        for id in sorted(there, key=lambda id: digest(self.salt, id))[: self.most]:
            missing = {key: there[id][key] for key in gap.fields if there[id].get(key) is not None}
            if missing:
                memo.notes[id] = {**memo.notes.get(id, {}), **missing}
                emptied[id] = {**there[id], **dict.fromkeys(missing)}
        if not emptied:
            return result
        memo.fire()
        return ToolResult(_replaced(result.content, gap, emptied))

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        result = yield call
        gap = self.gaps.get(call.tool)
        if gap is None or result.error:
            return result
        filled: dict[str, Record] = {}
        for id, record in _named(result.content, gap, call).items():
            empty = [key for key in gap.fields if key in record and record[key] is None]
            if empty:
                answer = yield ToolCall(self.lookup, {self.param: id})
                if answer.error:
                    return answer
                filled[id] = {**record, **{key: answer.content.get(key) for key in empty}}
        return ToolResult(_replaced(result.content, gap, filled)) if filled else result


def _named(content: Any, gap: Gap, call: ToolCall) -> dict[str, Record]:
    """The records that may have a gap, by their ids; one that is there twice is left out."""
    if not gap.rows:
        id = call.args.get(gap.id)
        return {id: content} if isinstance(id, str) and isinstance(content, dict) else {}
    found = [(record[gap.id], record) for record in records(content) if isinstance(record.get(gap.id), str)]
    ids = [id for id, _ in found]
    return {id: record for id, record in found if ids.count(id) == 1}


def _replaced(content: Any, gap: Gap, new: dict[str, Record]) -> Any:
    """Content with other records in the place of those with their ids."""
    if not gap.rows:
        return next(iter(new.values()))

    def change(record: Record) -> Record:
        id = record.get(gap.id)
        return new.get(id, record) if isinstance(id, str) else record

    return mapped(content, change)
