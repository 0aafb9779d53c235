"""Graphs that begin with what a person holds: cancel it, move it, add it up, replace it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, ClassVar

from crosswind.core.state import State
from crosswind.core.types import Brief, Changes, Refusal, Solution, Split, Task, ToolCall
from crosswind.domains import notes
from crosswind.domains.graphs.booking import Book
from crosswind.domains.graphs.graph import LATEST, SPARE, SURCHARGE, Graph, told
from crosswind.domains.layout import Booking, Slot, Thing
from crosswind.text.answers import Expected


class Cancel(Graph):
    """Cancel what a person holds on a date."""

    level = 1
    roles: ClassVar[tuple[str, ...]] = ("who", "date")
    uses: ClassVar[tuple[str, ...]] = ("bookings", "cancel")
    stands = "bookings > cancel"

    def live(self, rng: Random, state: State) -> tuple[str, list[Booking]]:
        who, _ = self.records.someone(rng, state)
        return who, self.records.live(state, who)

    def candidates(self, state: State, who: str, pinned: Mapping[str, Any]) -> Sequence[Booking] | None:
        return self.records.live(state, who)

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        who, live = self.live(rng, state)
        return self.stated(who, rng.choice(live).date) if live else None

    def solve(self, brief: Brief) -> Solution:
        t = self.t
        who, date = yield from self.gather(brief)
        held = yield from self.held_on(who, date)
        if held is None:
            return Refusal(self.say("none", date=date))
        yield ToolCall(t.cancel, {t.booking: held[t.booking]})
        return self.say("cancelled", booking=held[t.booking])

    def booking(self, task: Task, start: State) -> Booking | None:
        settled = self.settled(task, start)
        return self.records.live_on(start, settled[self.t.who], settled[self.t.date])

    def ends(self, task: Task, start: State) -> list[Changes]:
        held = self.booking(task, start)
        return [self.records.ended(start, held.id)] if held else []

    def facts(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        held = self.booking(task, start) if self.t.date in self._details else None
        return (Expected("id", held.id, self.other_bookings(start, held)),) if held else ()

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        held = self.booking(task, state)
        return [self.records.lost(state, held.id)] if held else []


class Shift(Cancel):
    """Move what a person holds on a date to the earliest slot of another date."""

    level = 2
    house_rules: ClassVar[tuple[str, ...]] = (LATEST, SPARE)
    roles: ClassVar[tuple[str, ...]] = ("who", "date", "new_date")
    uses: ClassVar[tuple[str, ...]] = ("bookings", "slots", "permit", "move")
    stands = "bookings > slots > permit > move"

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        who, live = self.live(rng, state)
        if not live:
            return None
        old = rng.choice(live).date
        return self.stated(who, old, rng.choice([d for d in self.records.dates(state) if d != old]))

    def solve(self, brief: Brief) -> Solution:
        t = self.t
        who, date, new_date = yield from self.gather(brief)
        held = yield from self.held_on(who, date)
        if held is None:
            return Refusal(self.say("none", date=date))
        slot = yield from self.earliest(held[t.thing], new_date, held[t.need], brief.rules)
        if slot is None:
            return self.no_room(new_date)
        code = yield from self.permit(slot[t.slot], who)
        yield ToolCall(t.move, {t.booking: held[t.booking], t.slot: slot[t.slot], t.code: code})
        return self.say("moved", date=new_date, time=slot[t.time])

    def fits(self, task: Task, start: State) -> tuple[Booking, Slot] | None:
        held = self.booking(task, start)
        if held is None:
            return None
        slot = self.fitting(start, held.thing, self.settled(task, start)[self.t.new_date], held.need, task.brief.rules)
        return (held, slot) if slot else None

    def ends(self, task: Task, start: State) -> list[Changes]:
        fits = self.fits(task, start)
        return [self.records.moved(start, fits[0].id, fits[1].id)] if fits else []

    def conceivable_ends(self, task: Task, start: State) -> list[Changes]:
        held = self.booking(task, start)
        new_date = self.settled(task, start)[self.t.new_date]
        slots = self.records.slots(start, held.thing, new_date) if held else []
        return [self.records.moved(start, held.id, slot.id) for slot in slots if held]

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        fits = self.fits(task, start)
        if fits is None:
            return ()
        held, slot = fits
        about = (held.id, *told(self.records.one(start, held.thing)))
        return (Expected("time", slot.time, about=about, rivals=self.other_bookings(start, held)),)

    def facts(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        date = self.settled(task, start)[self.t.new_date]
        return (*super().facts(task, start, end), Expected("date", date))

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        held = self.booking(task, state)
        if held is None:
            return []
        new_date = self.settled(task, state)[self.t.new_date]
        return [self.records.lost(state, held.id), self.records.full(state, held.thing, new_date)]


class Total(Cancel):
    """Add up the fees of all that a person holds."""

    level = 2
    house_rules: ClassVar[tuple[str, ...]] = (SURCHARGE,)
    roles: ClassVar[tuple[str, ...]] = ("who",)
    uses: ClassVar[tuple[str, ...]] = ("bookings", "details")
    stands = "bookings > details, for each (sum)"

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        who, live = self.live(rng, state)
        return self.stated(who) if len(live) >= 3 and len({b.thing for b in live}) == len(live) else None

    def solve(self, brief: Brief) -> Solution:
        t = self.t
        (who,) = yield from self.gather(brief)
        rows = yield from self.booked(who)
        live = [row for row in rows if row[t.status] != t.cancelled]
        if not live:
            return Refusal(f"{who} has nothing booked")
        things = [row[t.thing] for row in live]
        if len(live) < len(rows):
            yield notes.note("without what is cancelled", " ".join(things))
        fees = []
        for thing in things:
            fees.append((yield from self.fee(thing)))
        more = int(brief.rules.get(SURCHARGE, 0))
        yield notes.total(fees, more, things)
        return self.say("total", total=sum(fees) + more * len(fees))

    def live_of(self, task: Task, start: State) -> list[Booking]:
        return self.records.live(start, self.settled(task, start)[self.t.who])

    def ends(self, task: Task, start: State) -> list[Changes]:
        return [{}] if self.live_of(task, start) else []

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        things = [self.records.one(start, b.thing) for b in self.live_of(task, start)]
        more = int(task.brief.rules.get(SURCHARGE, 0))
        return (Expected(self.fee_kind, sum(t.fee + more for t in things if t), unit="count"),)

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        held = self.live_of(task, state)
        return [self.records.lost(state, *(b.id for b in held))] if held else []


class Rebook(Book):
    """Settle a slot of the best thing in the place of what is held on a date, and look at what is held then."""

    level = 3
    uses: ClassVar[tuple[str, ...]] = ("bookings", "search", "slots", "permit", "hold", "settle", "cancel")
    stands = "bookings > search > slots > permit > hold > settle > cancel > bookings (count)"
    roles: ClassVar[tuple[str, ...]] = ("who", "date", "kind", "group", "new_date", "need", "means")

    def candidates(self, state: State, who: str, pinned: Mapping[str, Any]) -> Sequence[Booking] | None:
        return self.records.live(state, who)

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        at = self.place(rng, state)
        who, _ = self.records.someone(rng, state)
        live = self.records.live(state, who)
        if at is None or not live:
            return None
        old = rng.choice(live).date
        new = rng.choice([d for d in self.records.dates(state) if d != old])
        return self.stated(who, old, at[1], at[0], new, rng.choice(self.records.needs), self.records.some_means(rng))

    def solve(self, brief: Brief) -> Solution:
        t = self.t
        who, date, kind, group, new_date, need, means = yield from self.gather(brief)
        held = yield from self.held_on(who, date)
        if held is None:
            return Refusal(self.say("none", date=date))
        slot = yield from self.choose(kind, group, new_date, need, brief.rules)
        if isinstance(slot, Refusal):
            return slot
        booking = yield from self.hold(slot[t.slot], who, need)
        yield from self.settle(booking, means)
        yield ToolCall(t.cancel, {t.booking: held[t.booking]})
        rows = yield from self.booked(who)
        live = [(r[t.status], r[t.status] != t.cancelled) for r in rows]
        yield notes.count(live)
        return self.say("left", count=sum(counts for _, counts in live))

    def target(self, task: Task, start: State) -> tuple[Thing, str] | None:
        thing = self.best(task, start)
        return (thing, self.settled(task, start)[self.t.new_date]) if thing and self.old(task, start) else None

    def old(self, task: Task, start: State) -> Booking | None:
        settled = self.settled(task, start)
        return self.records.live_on(start, settled[self.t.who], settled[self.t.date])

    def both(self, task: Task, start: State, ends: list[Changes]) -> list[Changes]:
        old = self.old(task, start)
        return [{**end, **self.records.ended(start, old.id)} for end in ends] if old else []

    def ends(self, task: Task, start: State) -> list[Changes]:
        return self.both(task, start, super().ends(task, start))

    def conceivable_ends(self, task: Task, start: State) -> list[Changes]:
        return self.both(task, start, super().conceivable_ends(task, start))

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        who = self.settled(task, start)[self.t.who]
        return (Expected("number", len(self.records.live(end, who)), unit="count"),)

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        old = self.old(task, state)
        return [*super().obstacles(task, state, rng), *([self.records.lost(state, old.id)] if old else [])]
