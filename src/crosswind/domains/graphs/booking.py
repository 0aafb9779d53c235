"""Graphs that hold or settle a slot of a thing, and those in which that must be refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any, ClassVar

from crosswind.core.domain import Gathering
from crosswind.core.state import State
from crosswind.core.types import Brief, Changes, Refusal, Row, Solution, Split, Task
from crosswind.domains import notes
from crosswind.domains.graphs.graph import LATEST, NO_RULES, SPARE, Graph, told
from crosswind.domains.layout import Thing
from crosswind.text.answers import Expected


class Hold(Graph):
    """Hold the best thing's earliest slot that fits."""

    level = 2
    house_rules: ClassVar[tuple[str, ...]] = (LATEST, SPARE)
    uses: ClassVar[tuple[str, ...]] = ("search", "slots", "permit", "hold")
    stands = "search > slots > permit > hold"
    roles: ClassVar[tuple[str, ...]] = ("kind", "group", "date", "need", "who")

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        at = self.place(rng, state)
        date, need = rng.choice(self.records.dates(state)), rng.choice(self.records.needs)
        who = self.records.someone(rng, state)[0]
        means = [self.records.some_means(rng)] if at and "means" in self.roles else []
        return at and self.stated(at[1], at[0], date, need, who, *means)

    def choose(self, kind: str, group: str, date: str, need: int, rules: Mapping[str, str] = NO_RULES) -> Gathering:
        """The slot to hold, or a refusal."""
        thing = yield from self.top(group, kind)
        if thing is None:
            return self.nothing(group, kind)
        slot = yield from self.earliest(thing[self.t.thing], date, need, rules)
        return self.no_room(date) if slot is None else slot

    def solve(self, brief: Brief) -> Solution:
        kind, group, date, need, who = yield from self.gather(brief)
        slot = yield from self.choose(kind, group, date, need, brief.rules)
        if isinstance(slot, Refusal):
            return slot
        booking = yield from self.hold(slot[self.t.slot], who, need)
        return self.say("held", time=slot[self.t.time], booking=booking)

    def target(self, task: Task, start: State) -> tuple[Thing, str] | None:
        """The thing to hold and the date."""
        thing = self.best(task, start)
        return (thing, self.wanted(task, start)[2]) if thing else None

    def party(self, task: Task, start: State) -> tuple[int, str, str | None]:
        """Need, person and means of the request."""
        settled = self.settled(task, start)
        return settled[self.t.need], settled[self.t.who], settled.get(self.t.means)

    def ends(self, task: Task, start: State) -> list[Changes]:
        at = self.target(task, start)
        need, who, means = self.party(task, start)
        slot = self.fitting(start, at[0].id, at[1], need, task.brief.rules) if at else None
        if slot is None or not self.records.allowed(start, who):
            return []
        return [self.records.made(start, slot.id, who, need, means)]

    def conceivable_ends(self, task: Task, start: State) -> list[Changes]:
        """Any slot of the day might have been the earliest that fits."""
        at = self.target(task, start)
        need, who, means = self.party(task, start)
        slots = self.records.slots(start, at[0].id, at[1]) if at else []
        return [self.records.made(start, slot.id, who, need, means) for slot in slots]

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        made = self.records.new_bookings(end)
        return (Expected("id", made[0][0] if made else "none"),)

    def facts(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        """Where and when the new booking is, and what it costs, by the head or in all."""
        t, tables, made = self.t, self.records.tables, self.records.new_bookings(end)
        row = end.row(tables.bookings, made[0][0]) if made else None
        slot = end.row(tables.slots, row[t.slot]) if row else None
        thing = self.records.one(end, slot[t.thing]) if slot else None
        if row is None or slot is None or thing is None:
            return ()
        others = tuple(other.name for other in self.things(task, start) if other.id != thing.id)
        facts = (
            Expected("name", thing.name, others),
            Expected("time", slot["time"]),
            Expected("date", slot["date"]),
        )
        if not self.domain.currency:
            return facts
        price = Expected("money", thing.fee, alike=(thing.fee * row[t.need], thing.fee + row[t.need], row[t.need]))
        return (*facts, replace(price, about=told(thing), rivals=others))

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        at = self.target(task, state)
        if at is None:
            return []
        _, who, _ = self.party(task, state)
        return [self.records.full(state, at[0].id, at[1]), self.records.barred(state, who), self.no_thing(task, state)]


class HoldAsked(Hold):
    """The same, with the date or the need withheld."""

    stands = "ask > search > slots > permit > hold"

    def withhold(self, rng: Random) -> tuple[str, ...]:
        return (rng.choice((self.t.date, self.t.need)),)


class Book(Hold):
    """Hold the best thing's earliest slot that fits, and settle it."""

    uses: ClassVar[tuple[str, ...]] = ("search", "slots", "permit", "hold", "settle")
    stands = "search > slots > permit > hold > settle"
    roles: ClassVar[tuple[str, ...]] = ("kind", "group", "date", "need", "who", "means")

    def solve(self, brief: Brief) -> Solution:
        kind, group, date, need, who, means = yield from self.gather(brief)
        slot = yield from self.choose(kind, group, date, need, brief.rules)
        if isinstance(slot, Refusal):
            return slot
        return (yield from self.finish(slot, who, need, means))

    def finish(self, slot: Row, who: str, need: int, means: str) -> Solution:
        booking = yield from self.hold(slot[self.t.slot], who, need)
        receipt = yield from self.settle(booking, means)
        return self.say("done", time=slot[self.t.time], receipt=receipt)

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        return self.receipt(end)


class Full(Book):
    """Nothing that fits is left: to be refused."""

    level = 1
    refusal = True
    stands = "search > slots > refuse"

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        at = self.target(task, state)
        return [self.records.full(state, at[0].id, at[1])] if at else []


class Barred(Book):
    """The person may not book: to be refused, and found out on the way."""

    refusal = True
    stands = "search > slots > permit > hold (refused) > refuse"

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        return [self.records.barred(state, self.party(task, state)[1])]


class Thrift(Book):
    """Settle a slot of the cheapest thing of a kind."""

    level = 3
    uses: ClassVar[tuple[str, ...]] = ("search", "details", "slots", "permit", "hold", "settle")
    stands = "search > details, for each > slots > permit > hold > settle"

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        at = self.place(rng, state, 2, 4)
        if at is None:
            return None
        fees = sorted(t.fee for t in at[2])
        date, need = rng.choice(self.records.dates(state)), rng.choice(self.records.needs)
        who = self.records.someone(rng, state)[0]
        return None if fees[0] == fees[1] else self.stated(at[1], at[0], date, need, who, self.records.some_means(rng))

    def choose(self, kind: str, group: str, date: str, need: int, rules: Mapping[str, str] = NO_RULES) -> Gathering:
        rows = yield from self.found(group, kind)
        if not rows:
            return self.nothing(group, kind)
        fees = yield from self.fees(rows)
        thing = min(fees, key=lambda id: fees[id])
        yield notes.choice(fees, thing, "least")
        slot = yield from self.earliest(thing, date, need, rules)
        return self.no_room(date) if slot is None else slot

    def target(self, task: Task, start: State) -> tuple[Thing, str] | None:
        thing = min(self.things(task, start), key=lambda t: t.fee, default=None)
        return (thing, self.wanted(task, start)[2]) if thing else None


class ThriftBarred(Thrift):
    """The same for a person who may not book: to be refused, and found out late."""

    refusal = True
    stands = "search > details, for each > slots > permit > hold (refused) > refuse"

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        stated = super().propose(rng, state, split)
        if stated is None:
            return None
        things = self.records.things(state, stated[self.t.group], stated[self.t.kind])
        return stated if len(things) >= 3 else None

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        return [self.records.barred(state, self.party(task, state)[1])]


class Outing(Book):
    """Settle a slot on the better of two dates."""

    level = 3
    uses: ClassVar[tuple[str, ...]] = ("outlook", "search", "slots", "permit", "hold", "settle")
    stands = "outlook > outlook > search > slots > permit > hold > settle"
    roles: ClassVar[tuple[str, ...]] = ("kind", "group", "date", "other_date", "need", "who", "means")

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        at = self.place(rng, state)
        one, two = rng.sample(self.records.dates(state), 2)
        if at is None or self.records.figure(state, at[0], one) == self.records.figure(state, at[0], two):
            return None
        who = self.records.someone(rng, state)[0]
        return self.stated(at[1], at[0], one, two, rng.choice(self.records.needs), who, self.records.some_means(rng))

    def solve(self, brief: Brief) -> Solution:
        kind, group, one, two, need, who, means = yield from self.gather(brief)
        date = yield from self.calmer(group, (one, two))
        slot = yield from self.choose(kind, group, date, need, brief.rules)
        if isinstance(slot, Refusal):
            return slot
        return (yield from self.finish(slot, who, need, means))

    def target(self, task: Task, start: State) -> tuple[Thing, str] | None:
        _, group, one, two, *_ = self.wanted(task, start)
        thing = self.best(task, start)
        date = min((one, two), key=lambda d: self.records.figure(start, group, d))
        return (thing, date) if thing else None
