"""Requests in words: an expression said by a speaker, who mentions each thing once in full and then refers back."""

from __future__ import annotations

from typing import Any

from crosswind.authoring.generated.chains import (
    Act,
    Best,
    Better,
    Compiled,
    Create,
    Dated,
    Entity,
    Figure,
    Follow,
    Given,
    Redate,
    Rows,
    Tell,
    Value,
    parts,
)
from crosswind.authoring.generated.lexicon import Voice, a, plural, spoken
from crosswind.authoring.generated.tables import RedrawNeeded, TableDraft


class Speaker:
    """Says one request, in one voice."""

    def __init__(self, compiled: Compiled, voice: Voice) -> None:
        self.compiled, self.voice = compiled, voice
        self.interface = compiled.interface
        self.mentioned: set[Any] = set()

    def core(self) -> str:
        """The request as an order, beginning in lower case and without a full stop."""
        request, said = self.compiled.request, ""
        for act in request.acts:
            said = self.voice.phrase("and_act", act=said, other=self._act(act)) if said else self._act(act)
        if request.values:
            values = " and ".join([self._value(value) for value in request.values])
            said = self.voice.phrase("and_tell" if said else "tell", act=said, values=values)
        return said

    def query(self) -> str:
        said = self.voice.phrase("wish", core=self.core())
        return f"{said[0].upper()}{said[1:]}{'?' if said.startswith(('would', 'could')) else '.'}"

    def answer(self) -> str:
        """The final message, with references to results."""
        said = [self.voice.phrase("done", noun=noun, id=ref) for noun, ref in self.compiled.made]
        told = []
        for value, ref in zip(self.compiled.request.values, self.compiled.values, strict=True):
            column = spoken(value.column) if value.column else plural(self._of(value.rows).noun)  # type: ignore[union-attr]
            unit = " euros" if self._is_money(value) else ""
            told.append(self.voice.phrase("answer_part", column=column, value=f"{ref}{unit}"))
        if told:
            said.append(self.voice.phrase("answer", values="; ".join(told)))
        return " ".join(said)

    def _is_money(self, value: Value) -> bool:
        table = self._of(value.source if isinstance(value, Tell) else value.rows)
        return value.column in table.columns and table.columns[value.column].sort == "money"

    def _of(self, node: Any) -> TableDraft:
        return self.interface.tables[node.table]

    # -- phrases

    def entity(self, entity: Entity) -> str:
        noun = self._of(entity).noun
        if entity in self.mentioned:
            alike = {e for e in parts(self.compiled.request) if getattr(e, "table", "") == entity.table and e != entity}
            if any(not isinstance(e, Rows | Figure | Tell) for e in alike):
                raise RedrawNeeded(f"{noun} would be ambiguous")
            return self.voice.phrase("again", noun=noun)
        said = self._first(entity, noun)
        self.mentioned.add(entity)
        return said

    def _first(self, entity: Entity, noun: str) -> str:
        match entity:
            case Given():
                return self.voice.phrase("given", noun=noun, id=f"{{{self.compiled.given(entity)}}}")
            case Follow():
                return self.voice.phrase("follow", column=spoken(entity.column), np=self.entity(entity.source))
            case Best():
                most = self.voice.phrase("highest" if entity.way == "max" else "lowest")
                return self.voice.phrase("best", head=self._head(entity.rows), most=most, column=spoken(entity.column))
            case Dated():
                holes = {"column": spoken(entity.column), "date": f"{{{entity.column}}}"}
                return self.voice.phrase("dated", head=self._head(entity.rows), **holes)
            case Better():
                more = self.voice.phrase("higher" if entity.way == "max" else "lower")
                both = {"a": self.entity(entity.first), "b": self.entity(entity.second)}
                return self.voice.phrase("among", **both, more=more, column=spoken(entity.column))
        raise RedrawNeeded(f"{noun} was not mentioned before")

    def _head(self, rows: Rows, *, many: bool = False) -> str:
        """The rows that are meant, without an article."""
        table = self._of(rows)
        said = plural(table.noun) if many else table.noun
        if rows.kind:
            said = self.voice.phrase("head", noun=said, column=spoken(rows.kind), kind=f"{{{rows.kind}}}")
        said += " " + self.voice.phrase("under", np=self.entity(rows.parent))
        if rows.flag:
            value = table.columns[rows.flag].fill["choice"][0]
            said += " " + self.voice.phrase("flag", value=spoken(value), column=spoken(rows.flag))
        if rows.floor:
            said += " " + self.voice.phrase("floor", column=spoken(rows.floor), n=f"{{{rows.floor}_0}}")
        return said

    def _value(self, value: Value) -> str:
        if isinstance(value, Tell):
            return self.voice.phrase("value", column=spoken(value.column), np=self.entity(value.source))
        heads = self._head(value.rows, many=True)
        return self.voice.phrase("sum" if value.column else "count", column=spoken(value.column), heads=heads)

    def _act(self, act: Act) -> str:
        table = self._of(act)
        date = table.of_sort("date")[0].name
        new = {"value": f"{{{date}_1}}", "column": spoken(date)}
        if isinstance(act, Create):
            parent = self.entity(act.parent)
            about = {"value": self.entity(act.about), "column": self._of(act.about).noun}
            said = f"{self.voice.phrase('part', **about)} and {self.voice.phrase('part', **new)}"
            self.mentioned.add(act)
            verb = self.interface.verbs["create"]
            return self.voice.phrase("create", verb=verb, a_noun=a(table.noun), parent=parent, parts=said)
        record = self.entity(act.record)
        if isinstance(act, Redate):
            return self.voice.phrase("change", verb=self.interface.verbs["change"], np=record, **new)
        return self.voice.phrase("close", verb=self.interface.verbs["close"], np=record)
