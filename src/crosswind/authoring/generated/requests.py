"""Requests in words: a chain said in clauses, each of which speaks of one thing and then refers back to it.

A thing that is hard to name ("the owner of the heaviest crate at the depot Norville") is looked for in a clause of its
own before it is used. Whatever was mentioned is called "it", "that crate" or "the second crate" from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
)
from crosswind.authoring.generated.lexicon import Voice, a, capital, filled, plural, spoken
from crosswind.authoring.generated.tables import RedrawNeeded, TableDraft


class Speaker:
    """Says one request, once, in one voice; details that are `plain` are said without a noun."""

    def __init__(self, compiled: Compiled, voice: Voice, plain: Sequence[str] = ()) -> None:
        self.compiled, self.voice, self.plain = compiled, voice, plain
        self.interface, self.rng = compiled.interface, voice.rng
        self.mentioned: list[Entity] = []
        self.focus: Entity | None = None  # what "it" would be taken for
        self.clauses: list[str] = []
        self.asked = False  # is the last clause a question?

    def core(self) -> str:
        """The request as an order, beginning in lower case and without a full stop."""
        self._chain(questions=False)
        return self._text(first="{core}").rstrip(".")

    def query(self) -> str:
        """The request as a message."""
        before = [f"{capital(self.voice.template('opener'))}."] if self.rng.random() < 0.25 else []
        first = next(iter(self.compiled.request.acts), None)
        if isinstance(first, Create) and self.rng.random() < 0.4:
            person = self._roles(first)[0]
            if isinstance(person, Given):
                before.append(f"{capital(self._say('motive', person=lambda: self.np(person)))}.")
                self.focus = person
        self._chain(questions=True)
        after = [f"{capital(self.voice.template('closer'))}."] if self.rng.random() < 0.15 else []
        return " ".join([*before, capital(self._text(first=self.voice.template("order"))), *after])

    # -- clauses

    def _chain(self, *, questions: bool) -> None:
        request = self.compiled.request
        for act in request.acts:
            self._act(act)
        together = self.rng.random() < 0.6
        for values in [request.values] if together else [(value,) for value in request.values]:
            if values:
                self._tell(values, question=questions and values[-1] is request.values[-1] and self.rng.random() < 0.35)

    def _tell(self, values: Sequence[Value], *, question: bool) -> None:
        for value in values:
            if isinstance(value, Tell):
                self._settle(value.source, self._patience())
            else:
                self._settle(value.rows.parent, 0)
        self.asked = question and len(values) == 1
        if not self.asked:
            self.clauses.append(self._say("tell", values=lambda: _joined([self._value(v) for v in values])))
        elif isinstance(values[0], Figure) and not values[0].column:
            self.clauses.append(self._rows("ask_count", values[0].rows))
        else:
            self.clauses.append(self._say("ask", value=lambda: self._value(values[0])))

    def _text(self, first: str) -> str:
        """The clauses as sentences. The first is put in a frame."""
        out: list[str] = []
        clauses = list(self.clauses)
        asked = clauses.pop() if self.asked else ""
        while clauses:
            said = clauses.pop(0)
            if clauses and ". " not in said + clauses[0] and ":" not in first and self.rng.random() < 0.4:
                said = self._say("joined", said=said, core=clauses.pop(0))
            said, stop, rest = said.partition(". ")
            framed = (first if not out else self.voice.template("next")).replace("{core}", said)
            ended = framed if framed.endswith("?") else f"{framed}."
            out.append(f"{ended} {rest}." if stop else ended)
        if asked:
            out.append(f"{asked}?")
        return " ".join([out[0], *map(capital, out[1:])])

    def _say(self, kind: str, /, **holes: str | Callable[[], str]) -> str:
        return filled(self.voice.template(kind), holes)

    def _patience(self) -> int:
        """How many relations may be said in one go."""
        return self.rng.choice((0, 1, 1, 2))

    def _settle(self, entity: Entity, most: int) -> None:
        """Look for an entity in clauses of its own, where it takes too many words."""
        if self._depth(entity) == 0:
            return
        for source in self._sources(entity):
            self._settle(source, 1 if isinstance(entity, Better) else min(most, 1) * isinstance(entity, Follow))
        if isinstance(entity, Better):
            first, second = entity.first, entity.second
            both: dict[str, Callable[[], str]] = {"a": lambda: self.np(first), "b": lambda: self.np(second)}
            self.clauses.append(self._say(f"compare_{entity.way}", **both, column=spoken(entity.column)))
        elif self._depth(entity) > most:
            self.clauses.append(self._say("setup", np=lambda: self._first(entity)))
        else:
            return
        self.mentioned.append(entity)
        self.focus = None if isinstance(entity, Better) else entity

    def _depth(self, entity: Entity) -> int:
        if entity in self.mentioned or isinstance(entity, Given | Create):
            return 0
        return 1 + max(self._depth(source) for source in self._sources(entity))

    def _sources(self, entity: Entity) -> list[Entity]:
        match entity:
            case Follow():
                return [entity.source]
            case Best() | Dated():
                return [entity.rows.parent]
            case Better():
                return [entity.first, entity.second]
        return []

    def _roles(self, act: Create) -> tuple[Entity, Entity]:
        """The person that a new record is for, and the thing that it is about."""
        by_person = self._of(act.parent).role == "person"
        return (act.parent, act.about) if by_person else (act.about, act.parent)

    def _act(self, act: Act) -> None:
        table = self._of(act)
        date = table.of_sort("date")[0].name
        new = {"date": f"{{{date}_1}}", "column": spoken(date)}
        if isinstance(act, Create):
            person, thing = self._roles(act)
            for one in (thing, person):
                self._settle(one, self._patience())
            template = self.voice.template("create")
            later = template.endswith("{when}") and self.rng.random() < 0.3
            holes: dict[str, Any] = {"verb": self._verb("create"), "a_noun": a(table.noun)}
            holes |= {"person": lambda: self.np(person, it=True), "thing": lambda: self.np(thing, it=True)}
            holes["when"] = lambda: self._say("when", **new)
            said = filled(template.removesuffix(", {when}") if later else template, holes)
            self.clauses.append(f"{said}. {capital(self._say('when_after', **new))}" if later else said)
            self.mentioned.append(act)
            self.focus = act
            return
        self._settle(act.record, self._patience())
        kind = "change" if isinstance(act, Redate) else "close"
        template = self.voice.template(kind)
        np: Callable[[], str] = lambda: self.np(act.record, it=" of {np}" not in template)  # noqa: E731
        self.clauses.append(filled(template, {"verb": self._verb(kind), "np": np, **new}))
        self.focus = act.record

    def _verb(self, act: str) -> str:
        return self.voice.phrase(f"{act}_verb")

    # -- phrases

    def np(self, entity: Entity, *, it: bool = False) -> str:
        """An entity: in full at first, and then by a word that refers back to it."""
        if entity not in self.mentioned:
            said = self._first(entity)
            self.mentioned.append(entity)
            return said
        if it and entity == self.focus and self.rng.random() < 0.7:
            return "them" if self._of(entity).role == "person" else "it"
        return self._again(entity)

    def _label(self, entity: Entity) -> str:
        return spoken(entity.column) if isinstance(entity, Follow) else self._of(entity).noun

    def _again(self, entity: Entity) -> str:
        noun = self._label(entity)
        alike = [e for e in self.mentioned if self._label(e) == noun]
        if len(alike) == 1:
            return self._say("again", noun=noun)
        if len([e for e in alike if type(e) is type(entity)]) == 1 and isinstance(entity, Create | Better | Best):
            kind = {Create: "new", Better: "chosen", Best: "found"}[type(entity)]
            return self._say(kind, noun=noun)
        if all(isinstance(e, Given) for e in alike[:2]) and entity in alike[:2]:
            return self._say("first" if entity == alike[0] else "second", noun=noun)
        raise RedrawNeeded(f"{noun} would be ambiguous")

    def _first(self, entity: Entity) -> str:
        match entity:
            case Given():
                key = self.compiled.given(entity)
                if key in self.plain:
                    return f"{{{key}}}"
                named = bool(self._of(entity).named)
                return self._say("called" if named else "given", noun=self._of(entity).noun, id=f"{{{key}}}")
            case Follow():
                return self._owned("follow", entity.column, entity.source)
            case Best():
                return self._best(entity)
            case Dated():
                holes = {"column": spoken(entity.column), "date": f"{{{entity.column}}}"}
                return self._rows("dated", entity.rows, **holes)
        raise RedrawNeeded(f"{self._label(entity)} was not mentioned before")

    def _best(self, entity: Best) -> str:
        column = self._of(entity).columns[entity.column]
        most = column.concept.most if column.concept else ()
        others = [c.concept.most for c in self._of(entity).columns.values() if c.concept and c is not column]
        word = most[entity.way == "min"] if most else ""
        clear = word and not any(word in other for other in others) and self.voice.split == "train"
        if clear and self.rng.random() < 0.7:
            return self._rows("superlative", entity.rows, sup=word)
        return self._rows(f"best_{entity.way}", entity.rows, column=spoken(entity.column))

    def _owned(self, kind: str, column: str, source: Entity) -> str:
        """A column of a row, or the row that it leads to."""
        if source == self.focus and self.rng.random() < 0.75:
            return self._say("theirs" if self._of(source).role == "person" else "own", column=spoken(column))
        return self._say(kind, column=spoken(column), np=lambda: self.np(source))

    def _rows(self, kind: str, rows: Rows, **holes: str) -> str:
        """A phrase about some rows of a table under a parent."""

        def head(*, many: bool) -> str:
            table = self._of(rows)
            said = plural(table.noun) if many else table.noun
            if rows.kind:
                said = self._say("kind", noun=said, column=spoken(rows.kind), kind=f"{{{rows.kind}}}")
            if rows.flag:
                value = spoken(table.columns[rows.flag].fill["choice"][0])
                said = self._say("flag", head=said, value=value)
            return said

        def under() -> str:
            role = self._of(rows.parent).role
            if rows.parent == self.focus and role == "place" and self.rng.random() < 0.5:
                said = "there"
            else:
                where = f"at_{role}" if role in ("place", "firm") else "at_other"
                said = self._say(where, np=lambda: self.np(rows.parent))
            if rows.floor:
                words = {"column": spoken(rows.floor), "a_column": a(spoken(rows.floor)), "n": f"{{{rows.floor}_0}}"}
                said += " " + self._say("floor", **words)
            return said

        lazy = {"head": lambda: head(many=False), "heads": lambda: head(many=True), "under": under}
        return filled(self.voice.template(kind), {**holes, **lazy})

    def _value(self, value: Value) -> str:
        if isinstance(value, Tell):
            said = self._owned("value", value.column, value.source)
            self.focus = value.source
            return said
        self.focus = None
        return self._rows("sum" if value.column else "count", value.rows, column=spoken(value.column))

    def _of(self, node: Any) -> TableDraft:
        return self.interface.tables[node.table]

    # -- the answer

    def answer(self) -> str:
        """The final message, with references to results."""
        said = []
        for act, (noun, ref) in zip(self.compiled.request.acts, self.compiled.made, strict=True):
            kind = {Create: "done_create", Redate: "done_change"}.get(type(act), "done_close")
            column = spoken(self._of(act).of_sort("date")[0].name)
            said.append(self._say(kind, noun=noun, id=ref, column=column))
        columns = [value.column for value in self.compiled.request.values]
        told = []
        for value, ref in zip(self.compiled.request.values, self.compiled.values, strict=True):
            unit = " euros" if self._is_money(value) else ""
            if isinstance(value, Tell):
                column = spoken(value.column)
                if columns.count(value.column) > 1:
                    column += f" of the {self._label(value.source)}"
            else:
                column = f"total {spoken(value.column)}" if value.column else plural(self._of(value.rows).noun)
            kind = "answer_part" if value.column else "answer_count"
            told.append(self._say(kind, column=column, value=f"{ref}{unit}"))
        if told:
            said.append(capital(self._say("answer", values=_joined(told))))
        return " ".join(said)

    def _is_money(self, value: Value) -> bool:
        table = self._of(value.source if isinstance(value, Tell) else value.rows)
        return value.column in table.columns and table.columns[value.column].sort == "money"


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
