"""What all task graphs are made of: parts of solutions, of goals and of draws, over the records of a desk."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

from crosswind.core.domain import Detail, Family, Gathering
from crosswind.core.state import State
from crosswind.core.types import Brief, Refusal, Row, Task, ToolCall, ToolResult
from crosswind.domains import notes
from crosswind.domains.layout import Booking, Slot, Terms, Thing
from crosswind.domains.records import Records
from crosswind.text.answers import Expected, Kind

if TYPE_CHECKING:
    from crosswind.domains.desk import Desk

# what the oracle says in the end
SAID: Mapping[str, str] = {
    "fee": "{name} costs {fee} euros.",
    "tally": "{name} has {count}.",
    "less": "{name} is cheaper.",
    "held": "Held for {time}: {booking}.",
    "done": "Done for {time}: {receipt}.",
    "cancelled": "{booking} is cancelled.",
    "moved": "Moved to {date} at {time}.",
    "total": "The total is {total} euros.",
    "left": "Done; {count} are booked now.",
    "none": "nothing is booked on {date}",
}

# rules of the house that a policy may have, by their names in `Brief.rules`
LATEST = "latest"  # the latest slot that fits stands in for the earliest
SPARE = "spare"  # so much more than the need must be left in a slot
SURCHARGE = "surcharge"  # so much is added to every fee that is reported
STRICT = "strict"  # what only just reaches a floor does not count
NO_RULES: Mapping[str, str] = {}


Rows = Generator[ToolCall, ToolResult, list[Row]]


def told(*things: Thing | None) -> tuple[str, ...]:
    """The names and ids by which a message may speak of things."""
    return tuple(word for thing in things if thing for word in (thing.name, thing.id))


class Graph(Family):
    """A family over a desk. `roles` are the details that a request has; one that `Terms` lacks goes by its own name."""

    domain: Desk
    records: Records
    t: Terms
    roles: ClassVar[tuple[str, ...]]
    uses: ClassVar[tuple[str, ...]] = ()  # the tools that a request takes, in the order of their first calls
    stands: ClassVar[str] = ""  # the graph in words, for the table of mirrors
    graph: ClassVar[type[Graph] | None] = None  # the graph that families of other domains are made of, too

    def __init_subclass__(cls) -> None:
        if "uses" not in vars(cls) and not {"solve", "choose", "finish"}.isdisjoint(vars(cls)):
            cls.uses = ()  # it goes a way of its own

    @classmethod
    def family(cls, name: str, doc: str, **attributes: Any) -> type[Graph]:
        """A family over this graph as it is, which mirrors those of other domains."""
        body = {"name": name, "__doc__": doc, "graph": cls, **attributes}
        return type("".join(map(str.capitalize, name.split("_"))), (cls,), body)

    @property
    def details(self) -> Mapping[str, Detail]:  # type: ignore[override]
        return self._details

    def bind(self, domain: Desk) -> Graph:
        self.domain, self.records, self.t = domain, domain.records, domain.terms
        keys = {role: domain.keys.get(role) or getattr(self.t, role, role) for role in self.roles}
        self._details = {key: domain.details[role] for role, key in keys.items()}
        if not self.queries:
            self.queries = domain.requests.sentences(self.name, self._details)  # type: ignore[misc]
        return self

    def takes(self) -> Mapping[str, str]:
        return {role: getattr(self.t, role) for role in self.uses}

    # -- parts of solutions

    def say(self, what: str, **values: Any) -> str:
        return self.domain.said.get(what, SAID[what]).format_map(values)

    def gather(self, brief: Brief) -> Generator[ToolCall, ToolResult, list[Any]]:
        return (yield from self.all(brief, *self._details))

    def found(self, group: str, kind: str) -> Rows:
        t = self.t
        rows: list[Row] = (yield ToolCall(t.search, {t.group: group, t.kind: kind})).content
        return rows

    def top(self, group: str, kind: str) -> Generator[ToolCall, ToolResult, Row | None]:
        rows = yield from self.found(group, kind)
        thing = max(rows, key=lambda r: float(r[self.t.score]), default=None)
        if thing is not None:
            scores = {r[self.t.thing]: r[self.t.score] for r in rows}
            yield notes.choice(scores, thing[self.t.thing], "most")
        return thing

    def fee(self, thing: str) -> Gathering:
        t = self.t
        return (yield ToolCall(t.details, {t.thing: thing})).content[t.fee]

    def fees(self, rows: list[Row]) -> Generator[ToolCall, ToolResult, dict[str, Any]]:
        """What each of the things found costs."""
        fees = {}
        for row in rows:
            fees[row[self.t.thing]] = yield from self.fee(row[self.t.thing])
        return fees

    def logged(self, thing: str) -> Rows:
        """The entries of a thing."""
        rows: list[Row] = (yield ToolCall(self.t.entries, {self.t.thing: thing})).content
        return rows

    def booked(self, who: str) -> Rows:
        """What a person holds or held."""
        rows: list[Row] = (yield ToolCall(self.t.bookings, {self.t.who: who})).content
        return rows

    def calmer(self, group: str, dates: Sequence[str]) -> Generator[ToolCall, ToolResult, str]:
        """The date with the lowest figure."""
        t, figures = self.t, {}
        for date in dates:
            figures[date] = (yield ToolCall(t.outlook, {t.group: group, t.date: date})).content[t.figure]
        calmest = min(figures, key=lambda d: figures[d])
        yield notes.choice(figures, calmest, "least")
        return calmest

    def earliest(
        self, thing: str, date: str, need: int, rules: Mapping[str, str] = NO_RULES
    ) -> Generator[ToolCall, ToolResult, Row | None]:
        """The earliest slot that fits, or the one that the rules of the house put in its place."""
        t = self.t
        rows = (yield ToolCall(t.slots, {t.thing: thing, t.date: date})).content
        spare = int(rules.get(SPARE, 0))
        fit = [r for r in rows if r[t.room] >= need + spare]
        slot = (max if LATEST in rules else min)(fit, key=lambda r: str(r[t.time]), default=None)
        last = None if slot is None else f"{slot[t.time]} {slot[t.slot]}"
        gone = [(str(r[t.time]), r[t.room]) for r in rows]
        yield notes.first_fit(gone, need, spare, latest=LATEST in rules, last=last)
        return slot

    def permit(self, slot: str, who: str) -> Gathering:
        t = self.t
        return (yield ToolCall(t.permit, {t.slot: slot, t.who: who})).content[t.code]

    def hold(self, slot: str, who: str, need: int) -> Gathering:
        t = self.t
        code = yield from self.permit(slot, who)
        made = yield ToolCall(t.hold, {t.slot: slot, t.who: who, t.need: need, t.code: code})
        return made.content[t.booking]

    def settle(self, booking: str, means: str) -> Gathering:
        t = self.t
        return (yield ToolCall(t.settle, {t.booking: booking, t.means: means})).content[t.receipt]

    def held_on(self, who: str, date: str) -> Generator[ToolCall, ToolResult, Row | None]:
        t = self.t
        rows = yield from self.booked(who)
        held = next((r for r in rows if r[t.date] == date and r[t.status] != t.cancelled), None)
        marks = [(f"{r[t.date]} {r[t.status]}" if r[t.date] == date else r[t.date], r is held) for r in rows]
        last = None if held is None else " ".join(str(held[k]) for k in (t.booking, t.thing, t.need) if k in held)
        yield notes.pick(marks, last)
        return held

    def nothing(self, group: str, kind: str) -> Refusal:
        return Refusal(f"there is no {kind} in {group}")

    def no_room(self, date: str) -> Refusal:
        return Refusal(f"nothing that fits is left on {date}")

    # -- parts of goals

    def wanted(self, task: Task, start: State) -> list[Any]:
        """The details in the order of `roles`."""
        settled = self.settled(task, start)
        return [settled[key] for key in self._details]

    def things(self, task: Task, start: State) -> list[Thing]:
        """The things of the kind and in the group that the request names."""
        settled = self.settled(task, start)
        return self.records.things(start, settled[self.t.group], settled[self.t.kind])

    def best(self, task: Task, start: State) -> Thing | None:
        """The one of them with the highest score, the first of several."""
        return max(self.things(task, start), key=lambda t: t.score, default=None)

    def fitting(
        self, state: State, thing: str, date: str, need: int, rules: Mapping[str, str] = NO_RULES
    ) -> Slot | None:
        fit = [s for s in self.records.slots(state, thing, date) if s.room - int(rules.get(SPARE, 0)) >= need]
        return (max if LATEST in rules else min)(fit, key=lambda s: s.time, default=None)

    def of_best(self, task: Task, start: State, kind: Kind, value: Any) -> Expected:
        """A value that is said of the best of the things."""
        best = self.best(task, start)
        others = [t for t in self.things(task, start) if t != best]
        unit = "count" if kind == "number" else ""
        return Expected(kind, value, about=told(best), rivals=told(*others), unit=unit)

    @property
    def fee_kind(self) -> Kind:
        return "money" if self.domain.currency else "number"

    def other_bookings(self, state: State, booking: Booking) -> tuple[str, ...]:
        """What else the owner of a booking holds or held."""
        row = state.row(self.domain.records.tables.bookings, booking.id) or {}
        held = self.records.bookings(state, row.get(self.t.who, ""))
        return tuple(b.id for b in held if b.id != booking.id)

    def receipt(self, end: State) -> tuple[Expected, ...]:
        made = self.records.new_bookings(end)
        return (Expected("id", (made[0][1] if made else None) or "none"),)

    # -- parts of draws

    def candidates(self, state: State, who: str, pinned: Mapping[str, Any]) -> Sequence[Booking] | None:
        """What a person holds and a request with these details may be about; None: it is about something else."""
        return None

    def is_hopeless(self, state: State, pinned: Mapping[str, Any]) -> bool:
        who, date = pinned.get(self.t.who), pinned.get(self.t.date)
        held = None if who is None else self.candidates(state, who, pinned)
        return held is not None and not any(date in (None, booking.date) for booking in held)

    def place(self, rng: Random, state: State, least: int = 2, most: int = 9) -> tuple[str, str, list[Thing]] | None:
        """A group and a kind with a clear best thing."""
        _, group = self.records.someone(rng, state)
        kind = rng.choice(self.records.kind_names)
        things = self.records.things(state, group, kind)
        scores = sorted((t.score for t in things), reverse=True)
        if not least <= len(things) <= most or scores[0] == scores[1] or len({t.name for t in things}) < len(things):
            return None
        return group, kind, things

    def stated(self, *values: Any) -> dict[str, Any]:
        return dict(zip(self._details, values, strict=True))

    def no_thing(self, task: Task, state: State) -> dict[str, Any]:
        settled = self.settled(task, state)
        return self.records.emptied(state, settled[self.t.group], settled[self.t.kind])
