"""Task graphs that several domains share, so that transfer between them can be measured.

In each of these domains *things* of a *kind* are found in a *group*; they have a fee, a score, dated entries and slots;
a person holds a slot with a code, settles it by some means, moves it or cancels it. A domain says in its `Terms` what
all this is called there, and gives access to its rows; the graphs below hold `solve`, `ends` and `answer` once.
Two families of two domains mirror each other when they are made of one graph.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from crosswind.core.domain import Detail, Domain, Family, Gathering
from crosswind.core.types import Brief, Changes, Refusal, Row, Solution, Split, Task, ToolCall, ToolResult
from crosswind.core.world import State
from crosswind.domains import notes
from crosswind.text.answers import Expected


@dataclass(frozen=True)
class Terms:
    """What a domain calls the parts of the graphs."""

    # tools
    search: str  # (group, kind) -> things with a score
    details: str  # (thing) -> fee and more
    entries: str  # (thing) -> dated entries with an amount
    outlook: str  # (group, date) -> a figure; lower is better
    distance: str  # (source, target) -> a figure; lower is nearer
    slots: str  # (thing, date) -> slots with a time and room
    bookings: str  # (who) -> what a person holds
    permit: str  # (slot, who) -> a code
    hold: str  # (slot, who, need, code) -> a booking
    settle: str  # (booking, means) -> a receipt
    cancel: str  # (booking)
    move: str  # (booking, slot, code)
    # arguments, most of them details of requests and keys of results too
    group: str
    kind: str
    thing: str
    date: str
    who: str
    need: str
    slot: str
    booking: str
    means: str
    code: str
    source: str
    target: str
    # keys of results
    score: str
    fee: str
    amount: str
    figure: str  # of the outlook
    far: str  # of the distance
    room: str
    receipt: str
    status: str
    # other details of requests
    new_date: str = "new_date"
    other_date: str = "other_date"
    floor: str = "at_least"
    first: str = "first"
    second: str = "second"
    name: str = "name"
    time: str = "time"
    # values of the status
    held: str = "held"
    settled: str = "settled"
    cancelled: str = "cancelled"


@dataclass(frozen=True)
class Thing:
    id: str
    name: str
    score: float
    fee: int


@dataclass(frozen=True)
class Slot:
    id: str
    time: str
    room: int


@dataclass(frozen=True)
class Booking:
    id: str
    slot: str
    thing: str
    date: str
    need: int
    live: bool


class Desk(Domain):
    """A domain of things, slots and bookings. A subclass gives access to its rows, independent of its tools."""

    terms: ClassVar[Terms]
    details: Mapping[str, Detail]  # by the name in `terms`
    currency: ClassVar[bool] = True  # fees are money
    said: ClassVar[Mapping[str, str]] = {}  # the oracle's last words where the domain has others than `SAID`
    spares: ClassVar[tuple[int, ...]] = (2, 3)  # what a house rule may want left in a slot

    def things(self, state: State, group: str, kind: str) -> list[Thing]:
        """All things of a kind in a group."""
        raise NotImplementedError

    def thing(self, state: State, id: str) -> Thing | None:
        raise NotImplementedError

    def amounts(self, state: State, thing: str) -> list[int]:
        """The amounts of a thing's entries."""
        raise NotImplementedError

    def figure(self, state: State, group: str, date: str) -> int:
        raise NotImplementedError

    def far(self, state: State, source: str, target: str) -> int:
        raise NotImplementedError

    def slots(self, state: State, thing: str, date: str) -> list[Slot]:
        """A thing's slots on a date, earliest first, with the room they have now."""
        raise NotImplementedError

    def bookings(self, state: State, who: str) -> list[Booking]:
        raise NotImplementedError

    def made(self, state: State, slot: str, who: str, need: int, means: str | None) -> Changes:
        """What holding a slot, and settling it if `means` is given, leaves behind."""
        raise NotImplementedError

    def ended(self, state: State, booking: str) -> Changes:
        """What cancelling leaves behind."""
        raise NotImplementedError

    def moved(self, state: State, booking: str, slot: str) -> Changes:
        """What moving leaves behind."""
        raise NotImplementedError

    def new_bookings(self, end: State) -> list[tuple[str, str | None]]:
        """Bookings made in the episode that are still live: id and receipt."""
        raise NotImplementedError

    def someone(self, rng: Random, state: State) -> tuple[str, str]:
        """A person who may book, and the group they are at home in."""
        raise NotImplementedError

    def allowed(self, state: State, who: str) -> bool:
        """May this person book?"""
        raise NotImplementedError

    def kinds(self) -> tuple[str, ...]:
        raise NotImplementedError

    def dates(self, state: State) -> list[str]:
        raise NotImplementedError

    def means(self, rng: Random) -> str:
        raise NotImplementedError

    def needs(self, rng: Random) -> int:
        raise NotImplementedError

    def floors(self, rng: Random) -> int:
        raise NotImplementedError

    def full(self, state: State, thing: str, date: str) -> dict[str, Any]:
        """Edits after which a thing has no room on a date."""
        raise NotImplementedError

    def barred(self, state: State, who: str) -> dict[str, Any]:
        """Edits after which a person may not book."""
        raise NotImplementedError

    def emptied(self, state: State, group: str, kind: str) -> dict[str, Any]:
        """Edits after which a group has nothing of a kind."""
        raise NotImplementedError

    def lost(self, state: State, booking: str) -> dict[str, Any]:
        """Edits after which a booking does not exist."""
        raise NotImplementedError


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


def best(things: list[Thing]) -> Thing | None:
    """The thing with the highest score, the first of several."""
    return max(things, key=lambda t: t.score, default=None)


Rows = Generator[ToolCall, ToolResult, list[Row]]


class Graph(Family):
    """A family over a desk. `roles` are the details that a request has; one that `Terms` lacks goes by its own name."""

    domain: Desk
    roles: ClassVar[tuple[str, ...]]
    uses: ClassVar[tuple[str, ...]] = ()  # the tools that a request takes, in the order of their first calls
    stands: ClassVar[str] = ""  # the graph in words, for the table of mirrors

    def __init_subclass__(cls) -> None:
        if "uses" not in vars(cls) and not {"solve", "choose", "finish"}.isdisjoint(vars(cls)):
            cls.uses = ()  # it goes a way of its own

    @property
    def t(self) -> Terms:
        return self.domain.terms

    @property
    def details(self) -> Mapping[str, Detail]:  # type: ignore[override]
        return self._details

    def bind(self, domain: Desk) -> Graph:
        self.domain = domain
        self._details = {getattr(domain.terms, role, role): domain.details[role] for role in self.roles}
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
        rows = (yield ToolCall(t.bookings, {t.who: who})).content
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

    def fitting(
        self, state: State, thing: str, date: str, need: int, rules: Mapping[str, str] = NO_RULES
    ) -> Slot | None:
        fit = [s for s in self.domain.slots(state, thing, date) if s.room - int(rules.get(SPARE, 0)) >= need]
        return (max if LATEST in rules else min)(fit, key=lambda s: s.time, default=None)

    def told_fee(self, value: int) -> Expected:
        return Expected("money" if self.domain.currency else "number", value)

    def receipt(self, end: State) -> tuple[Expected, ...]:
        made = self.domain.new_bookings(end)
        return (Expected("id", (made[0][1] if made else None) or "none"),)

    # -- parts of draws

    def place(self, rng: Random, state: State, least: int = 2, most: int = 9) -> tuple[str, str, list[Thing]] | None:
        """A group and a kind with a clear best thing."""
        _, group = self.domain.someone(rng, state)
        kind = rng.choice(self.domain.kinds())
        things = self.domain.things(state, group, kind)
        scores = sorted((t.score for t in things), reverse=True)
        if not least <= len(things) <= most or scores[0] == scores[1] or len({t.name for t in things}) < len(things):
            return None
        return group, kind, things

    def stated(self, *values: Any) -> dict[str, Any]:
        return dict(zip(self._details, values, strict=True))

    def no_thing(self, task: Task, state: State) -> dict[str, Any]:
        settled = self.settled(task, state)
        return self.domain.emptied(state, settled[self.t.group], settled[self.t.kind])


class Fact(Graph):
    """Find the best thing and read its fee."""

    level = 1
    house: ClassVar[tuple[str, ...]] = (SURCHARGE,)
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

    def target(self, task: Task, start: State) -> Thing | None:
        kind, group, *_ = self.wanted(task, start)
        return best(self.domain.things(start, group, kind))

    def ends(self, task: Task, start: State) -> list[Changes]:
        return [{}] if self.target(task, start) else []

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        thing = self.target(task, start)
        return (self.told_fee(thing.fee + int(task.brief.rules.get(SURCHARGE, 0))),) if thing else ()

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        return [self.no_thing(task, state)]


class FactAsked(Fact):
    """The same, with the kind or the group withheld."""

    stands = "ask > search > details"

    def withhold(self, rng: Random) -> tuple[str, ...]:
        return (rng.choice(list(self._details)),)


class Tally(Fact):
    """Find the best thing and count those of its entries that reach a floor."""

    level = 1
    house: ClassVar[tuple[str, ...]] = (STRICT,)
    roles: ClassVar[tuple[str, ...]] = ("kind", "group", "floor")
    uses: ClassVar[tuple[str, ...]] = ("search", "entries")
    stands = "search > entries (count)"

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        at = self.place(rng, state)
        return at and self.stated(at[1], at[0], self.domain.floors(rng))

    def solve(self, brief: Brief) -> Solution:
        t = self.t
        kind, group, floor = yield from self.gather(brief)
        thing = yield from self.top(group, kind)
        if thing is None:
            return self.nothing(group, kind)
        rows = (yield ToolCall(t.entries, {t.thing: thing[t.thing]})).content
        least = floor + (STRICT in brief.rules)
        reach = [(r[t.amount], r[t.amount] >= least) for r in rows]
        yield notes.count(reach, f"more than {floor}" if STRICT in brief.rules else f"at least {floor}")
        return self.say("tally", name=thing["name"], count=sum(counts for _, counts in reach))

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        thing = self.target(task, start)
        floor = self.wanted(task, start)[2] + (STRICT in task.brief.rules)
        return (Expected("number", sum(a >= floor for a in self.domain.amounts(start, thing.id))),) if thing else ()


class Versus(Graph):
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
        kind, group, *names = self.wanted(task, start)
        return [t for t in self.domain.things(start, group, kind) if t.name in names]

    def ends(self, task: Task, start: State) -> list[Changes]:
        pair = self.pair(task, start)
        return [{}] if len(pair) == 2 and pair[0].fee != pair[1].fee else []

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        pair = sorted(self.pair(task, start), key=lambda t: t.fee)
        return (Expected("name", pair[0].name, others=(pair[1].name,)),) if len(pair) == 2 else ()

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        return [self.no_thing(task, state)]


class NextSlot(Fact):
    """Find the best thing and its earliest slot that fits."""

    level = 1
    house: ClassVar[tuple[str, ...]] = (LATEST, SPARE)
    roles: ClassVar[tuple[str, ...]] = ("kind", "group", "date", "need")
    uses: ClassVar[tuple[str, ...]] = ("search", "slots")
    stands = "search > slots (earliest that fits)"

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        at = self.place(rng, state)
        date, need = rng.choice(self.domain.dates(state)), self.domain.needs(rng)
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
        thing = self.target(task, start)
        _, _, date, need = self.wanted(task, start)[:4]
        return self.fitting(start, thing.id, date, need, task.brief.rules) if thing else None

    def ends(self, task: Task, start: State) -> list[Changes]:
        return [{}] if self.slot(task, start) else []

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        slot = self.slot(task, start)
        return (Expected("time", slot.time),) if slot else ()

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        thing = self.target(task, state)
        return [
            self.no_thing(task, state),
            *([self.domain.full(state, thing.id, self.wanted(task, state)[2])] if thing else []),
        ]


class Hold(Graph):
    """Hold the best thing's earliest slot that fits."""

    level = 2
    house: ClassVar[tuple[str, ...]] = (LATEST, SPARE)
    uses: ClassVar[tuple[str, ...]] = ("search", "slots", "permit", "hold")
    stands = "search > slots > permit > hold"
    roles: ClassVar[tuple[str, ...]] = ("kind", "group", "date", "need", "who")

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        at = self.place(rng, state)
        date, need = rng.choice(self.domain.dates(state)), self.domain.needs(rng)
        who = self.domain.someone(rng, state)[0]
        return at and self.stated(at[1], at[0], date, need, who)

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
        kind, group, date, *_ = self.wanted(task, start)
        thing = best(self.domain.things(start, group, kind))
        return (thing, date) if thing else None

    def party(self, task: Task, start: State) -> tuple[int, str, str | None]:
        """Need, person and means of the request."""
        settled = self.settled(task, start)
        return settled[self.t.need], settled[self.t.who], settled.get(self.t.means)

    def ends(self, task: Task, start: State) -> list[Changes]:
        at = self.target(task, start)
        need, who, means = self.party(task, start)
        slot = self.fitting(start, at[0].id, at[1], need, task.brief.rules) if at else None
        if slot is None or not self.domain.allowed(start, who):
            return []
        return [self.domain.made(start, slot.id, who, need, means)]

    def hopes(self, task: Task, start: State) -> list[Changes]:
        """Any slot of the day might have been the earliest that fits."""
        at = self.target(task, start)
        need, who, means = self.party(task, start)
        slots = self.domain.slots(start, at[0].id, at[1]) if at else []
        return [self.domain.made(start, slot.id, who, need, means) for slot in slots]

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        made = self.domain.new_bookings(end)
        return (Expected("id", made[0][0] if made else "none"),)

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        at = self.target(task, state)
        if at is None:
            return []
        _, who, _ = self.party(task, state)
        return [self.domain.full(state, at[0].id, at[1]), self.domain.barred(state, who), self.no_thing(task, state)]


class HoldAsked(Hold):
    """The same, with the date or the need withheld."""

    stands = "ask > search > slots > permit > hold"

    def withhold(self, rng: Random) -> tuple[str, ...]:
        return (rng.choice((self.t.date, self.t.need)),)


class Book(Hold):
    """Hold the best thing's earliest slot that fits, and settle it."""

    level = 2
    uses: ClassVar[tuple[str, ...]] = ("search", "slots", "permit", "hold", "settle")
    stands = "search > slots > permit > hold > settle"
    roles: ClassVar[tuple[str, ...]] = ("kind", "group", "date", "need", "who", "means")

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        at = self.place(rng, state)
        date, need = rng.choice(self.domain.dates(state)), self.domain.needs(rng)
        who = self.domain.someone(rng, state)[0]
        return at and self.stated(at[1], at[0], date, need, who, self.domain.means(rng))

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
        return [self.domain.full(state, at[0].id, at[1])] if at else []


class Barred(Book):
    """The person may not book: to be refused, and found out on the way."""

    level = 2
    refusal = True
    stands = "search > slots > permit > hold (refused) > refuse"

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        return [self.domain.barred(state, self.party(task, state)[1])]


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
        date, need = rng.choice(self.domain.dates(state)), self.domain.needs(rng)
        who = self.domain.someone(rng, state)[0]
        return None if fees[0] == fees[1] else self.stated(at[1], at[0], date, need, who, self.domain.means(rng))

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
        kind, group, date, *_ = self.wanted(task, start)
        thing = min(self.domain.things(start, group, kind), key=lambda t: t.fee, default=None)
        return (thing, date) if thing else None


class ThriftBarred(Thrift):
    """The same for a person who may not book: to be refused, and found out late."""

    level = 3
    refusal = True
    stands = "search > details, for each > slots > permit > hold (refused) > refuse"

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        stated = super().propose(rng, state, split)
        if stated is None:
            return None
        things = self.domain.things(state, stated[self.t.group], stated[self.t.kind])
        return stated if len(things) >= 3 else None

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        return [self.domain.barred(state, self.party(task, state)[1])]


class Outing(Book):
    """Settle a slot on the better of two dates."""

    level = 3
    uses: ClassVar[tuple[str, ...]] = ("outlook", "search", "slots", "permit", "hold", "settle")
    stands = "outlook > outlook > search > slots > permit > hold > settle"
    roles: ClassVar[tuple[str, ...]] = ("kind", "group", "date", "other_date", "need", "who", "means")

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        at = self.place(rng, state)
        one, two = rng.sample(self.domain.dates(state), 2)
        if at is None or self.domain.figure(state, at[0], one) == self.domain.figure(state, at[0], two):
            return None
        who = self.domain.someone(rng, state)[0]
        return self.stated(at[1], at[0], one, two, self.domain.needs(rng), who, self.domain.means(rng))

    def solve(self, brief: Brief) -> Solution:
        kind, group, one, two, need, who, means = yield from self.gather(brief)
        date = yield from self.calmer(group, (one, two))
        slot = yield from self.choose(kind, group, date, need, brief.rules)
        if isinstance(slot, Refusal):
            return slot
        return (yield from self.finish(slot, who, need, means))

    def target(self, task: Task, start: State) -> tuple[Thing, str] | None:
        kind, group, one, two, *_ = self.wanted(task, start)
        thing = best(self.domain.things(start, group, kind))
        date = min((one, two), key=lambda d: self.domain.figure(start, group, d))
        return (thing, date) if thing else None


class Cancel(Graph):
    """Cancel what a person holds on a date."""

    level = 1
    roles: ClassVar[tuple[str, ...]] = ("who", "date")
    uses: ClassVar[tuple[str, ...]] = ("bookings", "cancel")
    stands = "bookings > cancel"

    def live(self, rng: Random, state: State) -> tuple[str, list[Booking]]:
        who, _ = self.domain.someone(rng, state)
        return who, [b for b in self.domain.bookings(state, who) if b.live]

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
        held = self.domain.bookings(start, settled[self.t.who])
        return next((b for b in held if b.live and b.date == settled[self.t.date]), None)

    def ends(self, task: Task, start: State) -> list[Changes]:
        held = self.booking(task, start)
        return [self.domain.ended(start, held.id)] if held else []

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        held = self.booking(task, state)
        return [self.domain.lost(state, held.id)] if held else []


class Shift(Cancel):
    """Move what a person holds on a date to the earliest slot of another date."""

    level = 2
    house: ClassVar[tuple[str, ...]] = (LATEST, SPARE)
    roles: ClassVar[tuple[str, ...]] = ("who", "date", "new_date")
    uses: ClassVar[tuple[str, ...]] = ("bookings", "slots", "permit", "move")
    stands = "bookings > slots > permit > move"

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        who, live = self.live(rng, state)
        if not live:
            return None
        old = rng.choice(live).date
        return self.stated(who, old, rng.choice([d for d in self.domain.dates(state) if d != old]))

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
        return [self.domain.moved(start, fits[0].id, fits[1].id)] if fits else []

    def hopes(self, task: Task, start: State) -> list[Changes]:
        held = self.booking(task, start)
        new_date = self.settled(task, start)[self.t.new_date]
        slots = self.domain.slots(start, held.thing, new_date) if held else []
        return [self.domain.moved(start, held.id, slot.id) for slot in slots if held]

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        fits = self.fits(task, start)
        return (Expected("time", fits[1].time),) if fits else ()

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        held = self.booking(task, state)
        if held is None:
            return []
        new_date = self.settled(task, state)[self.t.new_date]
        return [self.domain.lost(state, held.id), self.domain.full(state, held.thing, new_date)]


class Total(Cancel):
    """Add up the fees of all that a person holds."""

    level = 2
    house: ClassVar[tuple[str, ...]] = (SURCHARGE,)
    roles: ClassVar[tuple[str, ...]] = ("who",)
    uses: ClassVar[tuple[str, ...]] = ("bookings", "details")
    stands = "bookings > details, for each (sum)"

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        who, live = self.live(rng, state)
        return self.stated(who) if len(live) >= 3 and len({b.thing for b in live}) == len(live) else None

    def solve(self, brief: Brief) -> Solution:
        t = self.t
        (who,) = yield from self.gather(brief)
        rows = (yield ToolCall(t.bookings, {t.who: who})).content
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
        return [b for b in self.domain.bookings(start, self.settled(task, start)[self.t.who]) if b.live]

    def ends(self, task: Task, start: State) -> list[Changes]:
        return [{}] if self.live_of(task, start) else []

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        things = [self.domain.thing(start, b.thing) for b in self.live_of(task, start)]
        more = int(task.brief.rules.get(SURCHARGE, 0))
        return (self.told_fee(sum(t.fee + more for t in things if t)),)

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        held = self.live_of(task, state)
        return [{k: row for b in held for k, row in self.domain.lost(state, b.id).items()}] if held else []


class Closest(Graph):
    """Find the thing of a kind that is nearest to a given one."""

    level = 2
    roles: ClassVar[tuple[str, ...]] = ("kind", "group", "source")
    uses: ClassVar[tuple[str, ...]] = ("search", "distance")
    stands = "search > distance, for each (least)"

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        at = self.place(rng, state, 3, 5)
        if at is None:
            return None
        other = rng.choice([k for k in self.domain.kinds() if k != at[1]])
        sources = self.domain.things(state, at[0], other)
        if not sources:
            return None
        source = rng.choice(sources).id
        far = sorted(self.domain.far(state, source, t.id) for t in at[2])
        return None if far[0] == far[1] else self.stated(at[1], at[0], source)

    def solve(self, brief: Brief) -> Solution:
        t = self.t
        kind, group, source = yield from self.gather(brief)
        rows = yield from self.found(group, kind)
        if not rows:
            return self.nothing(group, kind)
        far = {}
        for row in rows:
            call = ToolCall(t.distance, {t.source: source, t.target: row[t.thing]})
            far[row[t.name]] = (yield call).content[t.far]
        closest = min(far, key=lambda name: far[name])
        yield notes.choice(far, closest, "least")
        return f"{closest} is the closest."

    def ranked(self, task: Task, start: State) -> list[str]:
        kind, group, source = self.wanted(task, start)
        things = self.domain.things(start, group, kind)
        return [t.name for t in sorted(things, key=lambda t: self.domain.far(start, source, t.id))]

    def ends(self, task: Task, start: State) -> list[Changes]:
        return [{}] if self.ranked(task, start) else []

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        ranked = self.ranked(task, start)
        return (Expected("name", ranked[0], others=tuple(ranked[1:])),) if ranked else ()

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        return [self.no_thing(task, state)]


class Rebook(Book):
    """Settle a slot of the best thing in the place of what is held on a date, and look at what is held then."""

    level = 3
    uses: ClassVar[tuple[str, ...]] = ("bookings", "search", "slots", "permit", "hold", "settle", "cancel")
    stands = "bookings > search > slots > permit > hold > settle > cancel > bookings (count)"
    roles: ClassVar[tuple[str, ...]] = ("who", "date", "kind", "group", "new_date", "need", "means")

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        at = self.place(rng, state)
        who, _ = self.domain.someone(rng, state)
        live = [b for b in self.domain.bookings(state, who) if b.live]
        if at is None or not live:
            return None
        old = rng.choice(live).date
        new = rng.choice([d for d in self.domain.dates(state) if d != old])
        return self.stated(who, old, at[1], at[0], new, self.domain.needs(rng), self.domain.means(rng))

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
        rows = (yield ToolCall(t.bookings, {t.who: who})).content
        live = [(r[t.status], r[t.status] != t.cancelled) for r in rows]
        yield notes.count(live)
        return self.say("left", count=sum(counts for _, counts in live))

    def target(self, task: Task, start: State) -> tuple[Thing, str] | None:
        settled, t = self.settled(task, start), self.t
        thing = best(self.domain.things(start, settled[t.group], settled[t.kind]))
        return (thing, settled[t.new_date]) if thing and self.old(task, start) else None

    def old(self, task: Task, start: State) -> Booking | None:
        settled = self.settled(task, start)
        held = self.domain.bookings(start, settled[self.t.who])
        return next((b for b in held if b.live and b.date == settled[self.t.date]), None)

    def both(self, task: Task, start: State, ends: list[Changes]) -> list[Changes]:
        old = self.old(task, start)
        return [{**end, **self.domain.ended(start, old.id)} for end in ends] if old else []

    def ends(self, task: Task, start: State) -> list[Changes]:
        return self.both(task, start, super().ends(task, start))

    def hopes(self, task: Task, start: State) -> list[Changes]:
        return self.both(task, start, super().hopes(task, start))

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        who = self.settled(task, start)[self.t.who]
        return (Expected("number", sum(b.live for b in self.domain.bookings(end, who))),)

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        old = self.old(task, state)
        return [*super().obstacles(task, state, rng), *([self.domain.lost(state, old.id)] if old else [])]
