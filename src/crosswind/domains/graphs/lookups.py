"""Graphs that end in an answer about things: a fee, a count, a comparison, a time, a ranking."""

from __future__ import annotations

from random import Random
from typing import Any, ClassVar

from crosswind.core.domain import Gathering
from crosswind.core.state import State
from crosswind.core.types import Brief, Changes, Refusal, Solution, Split, Task, ToolCall
from crosswind.domains import notes
from crosswind.domains.graphs.graph import LATEST, SPARE, STRICT, SURCHARGE, Graph, told
from crosswind.domains.layout import Slot, Thing
from crosswind.text.answers import Expected


class Lookup(Graph):
    """A graph that ends in an answer: the request can be met wherever there is one."""

    def ends(self, task: Task, start: State) -> list[Changes]:
        return [{}] if self.answer(task, start, start) else []

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        return [self.no_thing(task, state)]


class Fact(Lookup):
    """Find the best thing and read its fee."""

    level = 1
    house_rules: ClassVar[tuple[str, ...]] = (SURCHARGE,)
    roles: ClassVar[tuple[str, ...]] = ("kind", "group")
    uses: ClassVar[tuple[str, ...]] = ("search", "details")
    stands = "search > details"

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        at = self.place(rng, state)
        return at and self.stated(at[1], at[0])

    def solve(self, brief: Brief) -> Solution:
        kind, group = yield from self.gather(brief)
        thing = yield from self.top(group, kind)
        if thing is None:
            return self.nothing(group, kind)
        fee = yield from self.fee(thing[self.t.thing])
        more = int(brief.rules.get(SURCHARGE, 0))
        yield notes.total([fee], more, [thing["name"]])
        return self.say("fee", name=thing["name"], fee=fee + more)

    def ends(self, task: Task, start: State) -> list[Changes]:
        return [{}] if self.best(task, start) else []

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        thing = self.best(task, start)
        if thing is None:
            return ()
        return (self.of_best(task, start, self.fee_kind, thing.fee + int(task.brief.rules.get(SURCHARGE, 0))),)


class FactAsked(Fact):
    """The same, with the kind or the group withheld."""

    stands = "ask > search > details"

    def withhold(self, rng: Random) -> tuple[str, ...]:
        return (rng.choice(list(self._details)),)


class Tally(Fact):
    """Find the best thing and count those of its entries that reach a floor."""

    level = 1
    house_rules: ClassVar[tuple[str, ...]] = (STRICT,)
    roles: ClassVar[tuple[str, ...]] = ("kind", "group", "floor")
    uses: ClassVar[tuple[str, ...]] = ("search", "entries")
    stands = "search > entries (count)"

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        at = self.place(rng, state)
        return at and self.stated(at[1], at[0], rng.choice(self.records.floors))

    def solve(self, brief: Brief) -> Solution:
        t = self.t
        kind, group, floor = yield from self.gather(brief)
        thing = yield from self.top(group, kind)
        if thing is None:
            return self.nothing(group, kind)
        rows = yield from self.logged(thing[t.thing])
        least = floor + (STRICT in brief.rules)
        reach = [(r[t.amount], r[t.amount] >= least) for r in rows]
        yield notes.count(reach, f"more than {floor}" if STRICT in brief.rules else f"at least {floor}")
        return self.say("tally", name=thing["name"], count=sum(counts for _, counts in reach))

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        thing = self.best(task, start)
        floor = self.wanted(task, start)[2] + (STRICT in task.brief.rules)
        if thing is None:
            return ()
        count = sum(a >= floor for a in self.records.amounts(start, thing.id))
        return (self.of_best(task, start, "number", count),)


class Versus(Lookup):
    """Compare the fees of two things."""

    level = 1
    roles: ClassVar[tuple[str, ...]] = ("kind", "group", "first", "second")
    uses: ClassVar[tuple[str, ...]] = ("search", "details")
    stands = "search > details > details (compare)"

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        at = self.place(rng, state)
        if at is None:
            return None
        one, two = rng.sample(at[2], 2)
        return None if one.fee == two.fee else self.stated(at[1], at[0], one.name, two.name)

    def solve(self, brief: Brief) -> Solution:
        t = self.t
        kind, group, first, second = yield from self.gather(brief)
        rows = yield from self.found(group, kind)
        ids = {r[t.name]: r[t.thing] for r in rows}
        for name in (first, second):
            if name not in ids:
                return Refusal(f"there is no {kind} called {name} in {group}")
        yield notes.note(f"{first} {ids[first]}, {second} {ids[second]}")
        one = yield from self.fee(ids[first])
        two = yield from self.fee(ids[second])
        less = first if one < two else second
        yield notes.choice({first: one, second: two}, less, "least")
        return self.say("less", name=less)

    def pair(self, task: Task, start: State) -> list[Thing]:
        _, _, *names = self.wanted(task, start)
        return [t for t in self.things(task, start) if t.name in names]

    def ends(self, task: Task, start: State) -> list[Changes]:
        pair = self.pair(task, start)
        return [{}] if len(pair) == 2 and pair[0].fee != pair[1].fee else []

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        pair = sorted(self.pair(task, start), key=lambda t: t.fee)
        return (Expected("name", pair[0].name, others=(pair[1].name,)),) if len(pair) == 2 else ()

    def facts(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        pair = self.pair(task, start) if self.domain.currency else []
        names = [thing.name for thing in pair]
        return tuple(
            Expected("money", t.fee, about=told(t), rivals=tuple(n for n in names if n != t.name)) for t in pair
        )


class NextSlot(Fact):
    """Find the best thing and its earliest slot that fits."""

    level = 1
    house_rules: ClassVar[tuple[str, ...]] = (LATEST, SPARE)
    roles: ClassVar[tuple[str, ...]] = ("kind", "group", "date", "need")
    uses: ClassVar[tuple[str, ...]] = ("search", "slots")
    stands = "search > slots (earliest that fits)"

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        at = self.place(rng, state)
        date, need = rng.choice(self.records.dates(state)), rng.choice(self.records.needs)
        return at and self.stated(at[1], at[0], date, need)

    def solve(self, brief: Brief) -> Solution:
        t = self.t
        kind, group, date, need = yield from self.gather(brief)
        thing = yield from self.top(group, kind)
        if thing is None:
            return self.nothing(group, kind)
        slot = yield from self.earliest(thing[t.thing], date, need, brief.rules)
        return self.no_room(date) if slot is None else f"The time is {slot[t.time]}."

    def slot(self, task: Task, start: State) -> Slot | None:
        thing = self.best(task, start)
        _, _, date, need = self.wanted(task, start)[:4]
        return self.fitting(start, thing.id, date, need, task.brief.rules) if thing else None

    def ends(self, task: Task, start: State) -> list[Changes]:
        return [{}] if self.slot(task, start) else []

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        slot = self.slot(task, start)
        return (self.of_best(task, start, "time", slot.time),) if slot else ()

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        thing = self.best(task, state)
        return [
            self.no_thing(task, state),
            *([self.records.full(state, thing.id, self.wanted(task, state)[2])] if thing else []),
        ]


class Ranked(Lookup):
    """Name the thing of a kind that comes first in an order. A subclass says by what things are ranked."""

    level = 2
    roles: ClassVar[tuple[str, ...]] = ("kind", "group")
    order: ClassVar[str] = "least"  # what comes first; "most" for the greatest
    reply: ClassVar[str]  # the oracle's last words, with {name} in them

    def worth(self, state: State, thing: str, *more: Any) -> Any:
        """By what a thing is ranked, from the rows; `more` are further details of the request."""
        raise NotImplementedError

    def measure(self, thing: str, *more: Any) -> Gathering:
        """The same through tools."""
        raise NotImplementedError

    def further(self, rng: Random, state: State, group: str, kind: str) -> tuple[Any, ...] | None:
        """Further details of a request; None: try again."""
        return ()

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        at = self.place(rng, state, 3, 5)
        more = at and self.further(rng, state, at[0], at[1])
        if at is None or more is None:
            return None
        worths = sorted((self.worth(state, t.id, *more) for t in at[2]), reverse=self.order == "most")
        return None if worths[0] == worths[1] else self.stated(at[1], at[0], *more)

    def solve(self, brief: Brief) -> Solution:
        kind, group, *more = yield from self.gather(brief)
        rows = yield from self.found(group, kind)
        if not rows:
            return self.nothing(group, kind)
        worths = {}
        for row in rows:
            worths[row[self.t.name]] = yield from self.measure(row[self.t.thing], *more)
        first = (max if self.order == "most" else min)(worths, key=lambda name: worths[name])
        yield notes.choice(worths, first, self.order)
        return self.reply.format(name=first)

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        more = self.wanted(task, start)[2:]
        things = [(self.worth(start, t.id, *more), t.name) for t in self.things(task, start)]
        ranked = [name for _, name in sorted(things, key=lambda pair: pair[0], reverse=self.order == "most")]
        return (Expected("name", ranked[0], others=tuple(ranked[1:])),) if ranked else ()

    def figures(self, task: Task, start: State) -> tuple[Expected, ...]:
        more = self.wanted(task, start)[2:]
        things = self.things(task, start)
        return tuple(Expected("number", self.worth(start, t.id, *more), about=told(t)) for t in things)


class Closest(Ranked):
    """Find the thing of a kind that is nearest to a given one."""

    roles: ClassVar[tuple[str, ...]] = ("kind", "group", "source")
    uses: ClassVar[tuple[str, ...]] = ("search", "distance")
    stands = "search > distance, for each (least)"
    reply = "{name} is the closest."

    def further(self, rng: Random, state: State, group: str, kind: str) -> tuple[Any, ...] | None:
        other = rng.choice([k for k in self.records.kind_names if k != kind])
        sources = self.records.things(state, group, other)
        return (rng.choice(sources).id,) if sources else None

    def worth(self, state: State, thing: str, *more: Any) -> Any:
        return self.records.far(state, more[0], thing)

    def measure(self, thing: str, *more: Any) -> Gathering:
        t = self.t
        return (yield ToolCall(t.distance, {t.source: more[0], t.target: thing})).content[t.far]
