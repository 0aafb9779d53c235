"""The rows of a desk: which table and column plays which role, how rows come from the seed, and what writes leave.

A desk is a domain of *things* of a *kind* in *groups*. Things have *entries* and *slots*; a *person* holds a *booking*
of a slot with a *permit* and settles it by some *means*. A domain subclasses `Records` (or `WholeRecords` in
`whole_records.py`, where a booking takes its slot whole) for the few tables and columns that only it has; its table
map is `banks/desks/<domain>.yaml`. Tools (`domains/tools.py`), task graphs (`domains/graphs`) and verifiers all read
rows through this one class.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import Any, Self

from crosswind.base.errors import BadFile
from crosswind.core.domain import edit, shifted_number
from crosswind.core.flow import digest
from crosswind.core.names import Namer, Numbering, dates_from, made_of, unused
from crosswind.core.state import Derive, State
from crosswind.core.types import Changes, Key, Row, Split, Task
from crosswind.domains import layout
from crosswind.domains.layout import DAYS, HELD, PER_GROUP, SLOTS, Booking, Seed, SeedLike, Slot, Thing, Token
from crosswind.words.banks import fixed


class Records:
    """The rows of a desk whose slots are taken by amounts: seats, units, euros."""

    terms: layout.Terms
    tables: layout.Tables
    names: layout.Names
    ids: layout.Ids
    kinds: layout.Kinds  # of things
    means: Token | tuple[str, ...]  # what bookings are settled by: made up, or one of a few
    needs: Sequence[int]  # what requests need
    floors: Sequence[int]  # from what amount on requests count entries
    calendar: tuple[int, int, int, int, int]  # year, month and day; days later per seed; less than so many
    clock: layout.Hours | layout.Minutes
    rooms: tuple[int, ...]  # of slots
    room_step: int = 1
    columns: layout.Columns  # of rows that come from one hash
    ranges: Mapping[str, layout.Range] = {}  # "table.column" of further numbers that vary
    permit_ids: tuple[str, int]  # prefix and digits of permits
    receipt_ids: tuple[str, int, str]  # of receipts, with the word that they are hashed with
    verb: str  # the word that ids of new bookings are hashed with
    owned: str  # the word that the number of a person's bookings is hashed with
    lapse: int  # one in N people may not book; 0: everybody may
    odds: tuple[int, int] = (8, 2)  # one in N bookings is cancelled, one in N only held
    directed: bool = False  # the distance depends on the direction
    least_entries: int = 2

    def __init__(self, declared: Mapping[str, Any], where: str) -> None:
        self.declared = declared
        for name, made in declared["records"].items():
            try:
                setattr(self, name, layout.MAKERS.get(name, fixed)(made))
            except (TypeError, ValueError, KeyError) as error:
                raise BadFile(f"{where}: records.{name}: {error}; compare it with the other desks") from None
        t, tables = self.terms, self.tables
        self.thing_noun, self.slot_noun, self.person_noun, self.booking_noun = (
            key.removesuffix("_id") for key in (t.thing, t.slot, t.who, t.booking)
        )
        self.kind_names = tuple(self.kinds)
        self.amount = tables.amount or t.amount
        room = next(room for room in self.rooms if room), max(self.rooms), self.room_step
        self.moves: dict[str, layout.Range] = {f"{tables.slots}.{tables.room}": room, **self.ranges}
        for table, columns in self.columns.items():
            self.moves |= {f"{table}.{name}": column.range for name, column in columns.items() if column.range}
        self.makers: dict[str, layout.Maker] = {
            tables.things: self.thing_row,
            tables.slots: self.slot_row,
            tables.people: self.person_row,
            tables.bookings: self.booking_row,
            tables.entries: self.entry_row,
            tables.outlook: self.outlook_row,
            tables.distance: self.distance_row,
            **self.own_tables(),
        }
        self.readers = {
            table: {name: column.reader() for name, column in columns.items()}
            for table, columns in self.columns.items()
        }
        kind = layout.Text(0, words=self.kind_names).reader()
        self._thing_readers = ((t.kind, kind), *self.readers[tables.things].items())
        self._need: Any = self.readers.get(tables.bookings, {}).get(t.need)
        self._hashed = {table: layout.singular(table) for table in (tables.entries, tables.outlook, tables.distance)}
        self.derive = lru_cache(maxsize=256)(self._deriving)
        self._things_in = lru_cache(maxsize=4096)(self._found_in)
        self._group_name = lru_cache(maxsize=4096)(self.names.group.name)  # all things of a group ask for it

    @classmethod
    def packaged(cls, domain: str) -> Self:
        """Those of a domain of this package."""
        return cls(*layout.packaged("desks", domain))

    # -- rows from the seed

    def own_tables(self) -> dict[str, layout.Maker]:
        """Tables that only this domain has, with the functions that give their rows."""
        return {}

    def _deriving(self, seed: int, size: int, split: Split) -> Derive:
        """Any row of a world, made from its seed alone."""
        at, makers = self.seeded(seed, size, split), self.makers

        def row(table: str, id: str) -> Row | None:
            make = makers.get(table)
            return make(at, id) if make else None

        return row

    def seeded(self, seed: int, size: int, split: Split) -> Seed:
        return Seed(seed, size, split, self.groups(size) * PER_GROUP, self.calendar_of(seed))

    def drawn(self, table: str, h: bytes) -> Row:
        """The columns of a row that come from its hash."""
        return {name: read(h) for name, read in self.readers[table].items()}

    def groups(self, size: int) -> int:
        return max(1, size // PER_GROUP)

    def group(self, at: SeedLike, n: int) -> str:
        return self._group_name(at.split, at.seed, n)

    def dates(self, at: SeedLike) -> list[str]:
        """The dates on which a world has slots."""
        return self.calendar_of(at.seed)

    def calendar_of(self, seed: int) -> list[str]:
        year, month, day, step, span = self.calendar
        return dates_from(year, month, day, seed * step % span, DAYS)

    def thing_number(self, at: Seed, id: str) -> int | None:
        n = self.ids.thing.number(at.split, at.seed, id)
        return None if n is None or n >= at.things else n

    def thing_row(self, at: Seed, id: str) -> Row | None:
        n = self.thing_number(at, id)
        if n is None:
            return None
        split, seed = at.split, at.seed
        h = digest(split, seed, self.thing_noun, n)
        row: dict[str, Any] = {"name": self.names.thing.name(split, seed, n)}
        row[self.terms.group] = self._group_name(split, seed, n // PER_GROUP)
        for name, read in self._thing_readers:
            row[name] = read(h)
        return row

    def slot_row(self, at: Seed, id: str) -> Row | None:
        n = self.ids.slot.number(at.split, at.seed, id)
        return None if n is None or n >= at.things * DAYS * SLOTS else self.slot_at(at, n)

    def slot_at(self, at: Seed, n: int) -> Row:
        """The n-th slot of a world."""
        day, j = divmod(n, SLOTS)
        thing, d = divmod(day, DAYS)
        h = digest(at.split, at.seed, self.slot_noun, *self.slot_key(n, thing, d, j))
        rooms = self.rooms_of(at, n)
        return {
            self.terms.thing: self.ids.thing.id(at.split, at.seed, thing),
            "date": at.dates[d],
            "time": self.clock.time(j, h),
            self.tables.room: rooms[h[self.clock.used] % len(rooms)],
        }

    def slot_key(self, n: int, thing: int, d: int, j: int) -> tuple[int, ...]:
        """What the n-th slot is hashed with: the thing, the day and the place in the day."""
        return thing, d, j

    def rooms_of(self, at: SeedLike, n: int) -> tuple[int, ...]:
        """Room that the n-th slot may have."""
        return self.rooms

    def person_row(self, at: Seed, id: str) -> Row | None:
        n = self.ids.person.number(at.split, at.seed, id)
        if n is None or n >= at.size:
            return None
        return self.person(at, n, digest(at.split, at.seed, self.person_noun, n))

    def person(self, at: Seed, n: int, h: bytes) -> Row:
        tables = self.tables
        return {
            tables.person: self.names.person.name(at.split, at.seed, n),
            tables.home: self.group(at, layout.number(h[:4]) % self.groups(at.size)),
            tables.standing: tables.good if not self.lapse or h[4] % self.lapse else tables.barred,
        }

    def booking_row(self, at: Seed, id: str) -> Row | None:
        n = self.ids.booking.number(at.split, at.seed, id)
        if n is None or n >= at.size * HELD:
            return None
        owner, k = divmod(n, HELD)
        h = digest(at.split, at.seed, self.owned, owner)
        return None if k >= self.held(h) else self.booked(at, owner, k, h)

    def held(self, h: bytes) -> int:
        """How many bookings the seed gives a person, whose hash is `h`."""
        return 2 + h[0] % (HELD - 1)

    def booked(self, at: Seed, owner: int, k: int, h: bytes) -> Row:
        """The k-th booking of a person, whose hash is `h`."""
        g = digest(at.split, at.seed, self.booking_noun, owner, k)
        thing = layout.number(g[:4]) % at.things
        slot = (thing * DAYS + (h[1] + 3 * k) % DAYS) * SLOTS + g[4] % SLOTS
        return self.filled(at, owner, slot, self._need(g), self.dealt(k, g[6]), layout.number(g[6:8]))

    def dealt(self, k: int, dice: int) -> str:
        """The status of a person's k-th booking; the first one is never cancelled."""
        cancelled, held = self.odds
        if k and dice % cancelled == 0:
            return self.terms.cancelled
        return self.terms.settled if dice % held else self.terms.held

    def filled(self, at: SeedLike, owner: int, slot: int, need: int, status: str, means: int) -> Row:
        """A booking of the seed as a row."""
        t = self.terms
        row = {
            t.who: self.ids.person.id(at.split, at.seed, owner),
            t.slot: self.ids.slot.id(at.split, at.seed, slot),
            t.need: need,
            t.status: status,
        }
        if isinstance(self.means, Token):
            row[t.means] = self.means.of(means) if status == t.settled else ""
        return row

    def entry_row(self, at: Seed, id: str) -> Row | None:
        thing, _, k = id.partition("#")
        if self.thing_number(at, thing) is None:
            return None
        return self.drawn(self.tables.entries, digest(at.split, at.seed, self._hashed[self.tables.entries], thing, k))

    def outlook_row(self, at: Seed, id: str) -> Row | None:
        return self.drawn(self.tables.outlook, digest(at.split, at.seed, self._hashed[self.tables.outlook], id))

    def distance_row(self, at: Seed, id: str) -> Row | None:
        return self.drawn(self.tables.distance, digest(at.split, at.seed, self._hashed[self.tables.distance], id))

    # -- what belongs to what

    def things_in(self, at: SeedLike, group: str) -> list[str] | None:
        """The things of a group, or None where there is no such group."""
        return self._things_in(at.split, at.seed, at.size, group)

    def _found_in(self, split: Split, seed: int, size: int, group: str) -> list[str] | None:
        n = self.names.group.number(split, seed, group)
        if n is None or n >= self.groups(size):
            return None
        return [self.ids.thing.id(split, seed, n * PER_GROUP + k) for k in range(PER_GROUP)]

    def slots_of(self, at: SeedLike, thing: str, date: str) -> list[str]:
        n, dates = self.ids.thing.number(at.split, at.seed, thing), self.dates(at)
        if n is None or date not in dates:
            return []
        first = (n * DAYS + dates.index(date)) * SLOTS
        return [self.ids.slot.id(at.split, at.seed, first + j) for j in range(SLOTS)]

    def bookings_of(self, state: State, who: str) -> list[str]:
        """What a person holds, first what the seed gives."""
        table = self.tables.bookings
        ids = self.numbered(state, who, self.ids.person, self.ids.booking, HELD)
        ids = [id for id in ids if state.row(table, id) is not None]
        new = (id for id, row in state.later(table, self.terms.who, who) if row[self.terms.who] == who)
        return [*ids, *(id for id in new if id not in ids)]

    def numbered(self, at: SeedLike, owner: str, owners: Numbering, ids: Numbering, count: int) -> list[str]:
        """The ids that follow from the number of their owner."""
        n = owners.number(at.split, at.seed, owner)
        return [] if n is None else [ids.id(at.split, at.seed, n * count + k) for k in range(count)]

    def entries_of(self, state: State, thing: str) -> list[str]:
        count = self.least_entries + digest(self.tables.entries, thing)[0] % 7
        return [f"{thing}#{k}" for k in range(count)]

    def pair(self, source: str, target: str) -> str:
        """The id of the row that holds a distance."""
        return "|".join((source, target) if self.directed else sorted((source, target)))

    def left(self, state: State, slot: str, room: int) -> int:
        """Room left: that of the row counts what the seed booked, so only later bookings move it."""
        t, table = self.terms, self.tables.bookings
        for id, row in state.later(table, t.slot, slot):
            before = state.seeded(table, id)
            if before is not None and before[t.slot] == slot and before[t.status] != t.cancelled:
                room += before[t.need]
            if row[t.slot] == slot and row[t.status] != t.cancelled:
                room -= row[t.need]
        return room

    # -- numbers that stand for what they are made of

    def new_id(self, state: State, slot: str, who: str) -> str:
        """The id of a new booking, made of what is booked and of how often it was before."""
        t, table, ids = self.terms, self.tables.bookings, self.ids.booking
        times = sum((row[t.slot], row[t.who]) == (slot, who) for _, row in state.later(table, t.slot, slot))
        return unused(
            lambda id: state.row(table, id) is not None, ids.prefix, ids.digits, self.verb, slot, who, times=times
        )

    def permit(self, slot: str, who: str) -> str:
        return made_of(*self.permit_ids, self.terms.code, slot, who)

    def receipt(self, booking: str, means: str) -> str:
        return made_of(*self.receipt_ids, booking, means)

    # -- rows for the graphs

    def things(self, state: State, group: str, kind: str) -> list[Thing]:
        """All things of a kind in a group."""
        known = state.unchanged(("things", group), lambda: self._seeded_things(state, group))
        if known is not None:
            return list(known.get(kind, ()))
        rows = ((id, state.row(self.tables.things, id)) for id in self.things_in(state, group) or ())
        return [self._thing(id, row) for id, row in rows if row and row[self.terms.kind] == kind]

    def _seeded_things(self, state: State, group: str) -> tuple[dict[str, list[Thing]], frozenset[Key]]:
        """The things that the seed gives a group by their kinds, and the rows that say so."""
        table, out, ids = self.tables.things, dict[str, list[Thing]](), self.things_in(state, group) or ()
        for id in ids:
            if row := state.derived(table, id):
                out.setdefault(row[self.terms.kind], []).append(self._thing(id, row))
        return out, frozenset((table, id) for id in ids)

    def _thing(self, id: str, row: Row) -> Thing:
        return Thing(id, row["name"], row[self.terms.score], row[self.terms.fee])

    def one(self, state: State, id: str) -> Thing | None:
        """A thing by its id."""
        row = state.row(self.tables.things, id)
        return self._thing(id, row) if row else None

    def entries(self, state: State, thing: str) -> list[tuple[str, Row]]:
        """A thing's entries, with their ids."""
        table = self.tables.entries
        return [(id, row) for id in self.entries_of(state, thing) if (row := state.row(table, id))]

    def amounts(self, state: State, thing: str) -> list[int]:
        """The amounts of a thing's entries."""
        return [row[self.amount] for _, row in self.entries(state, thing)]

    def figure(self, state: State, group: str, date: str) -> int:
        row = state.row(self.tables.outlook, f"{group}|{date}")
        return int(row[self.terms.figure]) if row else 0

    def far(self, state: State, source: str, target: str) -> int:
        row = state.row(self.tables.distance, self.pair(source, target))
        return int(row[self.terms.far]) if row else 0

    def slots(self, state: State, thing: str, date: str) -> list[Slot]:
        """A thing's slots on a date, earliest first, with the room they have now."""
        table, room = self.tables.slots, self.tables.room
        made = [
            Slot(id, row["time"], self.left(state, id, row[room]))
            for id in self.slots_of(state, thing, date)
            if (row := state.row(table, id))
        ]
        return sorted(made, key=lambda s: s.time)

    def bookings(self, state: State, who: str) -> Sequence[Booking]:
        """What a person holds or held."""
        t = self.terms
        if all(row[t.who] != who for _, row in state.later(self.tables.bookings, t.who, who)):
            held = state.unchanged(("bookings", who), lambda: self._seeded_bookings(state, who))
            if held is not None:
                return held
        tables = self.tables
        out = []
        for id in self.bookings_of(state, who):
            row = state.row(tables.bookings, id)
            slot = row and state.row(tables.slots, row[t.slot])
            if row and slot:
                live = row[t.status] != t.cancelled
                out.append(Booking(id, row[t.slot], slot[t.thing], slot["date"], row[t.need], live))
        return out

    def _seeded_bookings(self, world: SeedLike, who: str) -> tuple[list[Booking], frozenset[Key]]:
        """What the seed lets a person hold, and the rows that say so; many people are looked at to find a request."""
        t, tables, at = self.terms, self.tables, self.seeded(world.seed, world.size, world.split)
        split, seed, owner = at.split, at.seed, self.ids.person.number(at.split, at.seed, who)
        if owner is None or owner >= at.size:
            return [], frozenset()
        ids = [self.ids.booking.id(split, seed, owner * HELD + k) for k in range(HELD)]
        h, out = digest(split, seed, self.owned, owner), []
        for k in range(self.held(h)):
            row = self.booked(at, owner, k, h)
            thing, day = divmod((self.ids.slot.number(split, seed, row[t.slot]) or 0) // SLOTS, DAYS)
            place = row[t.slot], self.ids.thing.id(split, seed, thing), at.dates[day]
            out.append(Booking(ids[k], *place, row[t.need], row[t.status] != t.cancelled))
        return out, frozenset((*((tables.bookings, id) for id in ids), *((tables.slots, one.slot) for one in out)))

    def live(self, state: State, who: str) -> list[Booking]:
        """What a person holds."""
        return [b for b in self.bookings(state, who) if b.live]

    def live_on(self, state: State, who: str, date: str) -> Booking | None:
        """What a person holds on a date."""
        return next((b for b in self.bookings(state, who) if b.live and b.date == date), None)

    def someone(self, rng: Random, state: State) -> tuple[str, str]:
        """A person who may book, and the group they are at home in."""
        tables, n = self.tables, rng.randrange(state.size)
        for step in range(state.size):  # the next one who may
            id = self.ids.person.id(state.split, state.seed, (n + step) % state.size)
            row = state.row(tables.people, id)
            if row and (not self.lapse or row[tables.standing] == tables.good):
                return id, row[tables.home]
        return self.ids.person.id(state.split, state.seed, n), self.group(state, 0)

    def allowed(self, state: State, who: str) -> bool:
        """May this person book?"""
        row = state.row(self.tables.people, who)
        return row is not None and bool(row[self.tables.standing] == self.tables.good)

    def some_means(self, rng: Random) -> str:
        means = self.means
        return means.of(rng.randrange(10**means.digits)) if isinstance(means, Token) else rng.choice(means)

    # -- what writes leave behind

    def new_row(self, slot: str, who: str, need: int, means: str = "") -> Row:
        """A new booking; settled if means are given."""
        t = self.terms
        row = {t.who: who, t.slot: slot, t.need: need, t.status: t.settled if means else t.held}
        return row if self.tables.means_attached else {**row, t.means: means}

    def made(self, state: State, slot: str, who: str, need: int, means: str | None) -> Changes:
        """What holding a slot, and settling it if `means` is given, leaves behind."""
        tables, id = self.tables, self.new_id(state, slot, who)
        out: Changes = {(tables.bookings, id): self.new_row(slot, who, need, means or ""), **self.issued(slot, who)}
        if means and tables.means_attached:
            out[tables.attached, id] = {self.terms.means: means}
        return out

    def issued(self, slot: str, who: str) -> Changes:
        """What asking for a permit leaves behind."""
        return {(self.tables.permits, f"{slot}|{who}"): {self.terms.code: self.permit(slot, who)}}

    def settled(self, booking: str, row: Row, means: str) -> Changes:
        """What settling a booking leaves behind."""
        t, tables = self.terms, self.tables
        row = {**row, t.status: t.settled}
        if tables.means_attached:
            return {(tables.bookings, booking): row, (tables.attached, booking): {t.means: means}}
        return {(tables.bookings, booking): {**row, t.means: means}}

    def ended(self, state: State, booking: str) -> Changes:
        """What cancelling leaves behind."""
        t, tables = self.terms, self.tables
        row = dict(state.row(tables.bookings, booking) or {})
        row[t.status] = t.cancelled
        if not tables.means_attached:
            row[t.means] = ""
        out: Changes = {(tables.bookings, booking): row}
        if tables.attached and state.row(tables.attached, booking):
            out[tables.attached, booking] = None
        return out

    def moved(self, state: State, booking: str, slot: str) -> Changes:
        """What moving leaves behind."""
        row = state.row(self.tables.bookings, booking) or {}
        moved: Changes = {(self.tables.bookings, booking): {**row, self.terms.slot: slot}}
        return {**moved, **self.issued(slot, row[self.terms.who])}

    def new_bookings(self, end: State) -> list[tuple[str, str | None]]:
        """Bookings made in the episode that are still live: id and receipt."""
        t, tables = self.terms, self.tables
        out: list[tuple[str, str | None]] = []
        for id, row in end.written(tables.bookings):
            if end.start(tables.bookings, id) is None and row[t.status] != t.cancelled:
                holder = (end.row(tables.attached, id) or {}) if tables.means_attached else row
                means = holder.get(t.means)
                out.append((id, self.receipt(id, means) if means else None))
        return out

    # -- obstacles, as edits

    def edited(self, state: State, table: str, ids: Iterable[str], **changes: Any) -> dict[str, Any]:
        """The same edit of several rows."""
        out: dict[str, Any] = {}
        for id in ids:
            out |= edit(table, id, state.row(table, id) or {}, **changes)
        return out

    def full(self, state: State, thing: str, date: str) -> dict[str, Any]:
        """Edits after which a thing has no room on a date."""
        return self.edited(state, self.tables.slots, self.slots_of(state, thing, date), **{self.tables.room: 0})

    def barred(self, state: State, who: str) -> dict[str, Any]:
        """Edits after which a person may not book."""
        return self.edited(state, self.tables.people, [who], **{self.tables.standing: self.tables.barred})

    def emptied(self, state: State, group: str, kind: str) -> dict[str, Any]:
        """Edits after which a group has nothing of a kind."""
        other = self.kind_names[(self.kind_names.index(kind) + 1) % len(self.kind_names)]
        ids = [thing.id for thing in self.things(state, group, kind)]
        return self.edited(state, self.tables.things, ids, **{self.terms.kind: other})

    def lost(self, state: State, *bookings: str) -> dict[str, Any]:
        """Edits after which bookings do not exist."""
        out: dict[str, Any] = {}
        for id in bookings:
            out[f"{self.tables.bookings}/{id}"] = None
            if self.tables.attached and state.row(self.tables.attached, id):
                out[f"{self.tables.attached}/{id}"] = None
        return out

    # -- for verdicts and proofs

    def normalise(self, state: State) -> Changes:
        """The changes that matter: without permits, and new bookings by their content."""
        t, tables, changes = self.terms, self.tables, state.changes()
        names: dict[str, str] = {}  # of new bookings; empty where they are cancelled again
        for (table, id), row in changes.items():
            if table == tables.bookings and row is not None and state.start(table, id) is None:
                name = f"new {row[t.slot]} {row[t.who]}" if row[t.status] != t.cancelled else ""
                while name and name in names.values():
                    name += " again"
                names[id] = name
        out: Changes = {}
        for (table, id), row in changes.items():
            name = names.get(id, id) if table in (tables.bookings, tables.attached) else id
            if table != tables.permits and name:
                out[table, name] = row
        return out

    def vary(self, task: Task, table: str, column: str, value: Any, salt: object) -> Any:
        """Another value that a column might hold; the same one where it must not move."""
        tables, spot = self.tables, f"{table}.{column}"
        if spot in self.moves:
            full = spot == f"{tables.slots}.{tables.room}" and not value
            return value if full else shifted_number(value, (table, column, salt), *self.moves[spot])
        if spot == f"{tables.things}.name":
            return self.renamed(task, self.names.thing, value, salt)
        if spot == f"{tables.slots}.time":
            return self.clock.moved(value, salt)
        if spot == f"{tables.bookings}.{self.terms.slot}":
            return self.elsewhere(task, value, salt)
        return self.vary_own(task, spot, value, salt)

    def vary_own(self, task: Task, spot: str, value: Any, salt: object) -> Any:
        """The same for columns that are not numbers and that only this domain has; `spot` is `table.column`."""
        return value

    def renamed(self, at: SeedLike, namer: Namer, name: str, salt: object) -> str:
        """Another name of the same sort."""
        n, last = namer.number(at.split, at.seed, name) or 0, namer.capacity(at.split) - 1
        return namer.name(at.split, at.seed, shifted_number(n, salt, 0, last, 1))

    def elsewhere(self, at: SeedLike, slot: str, salt: object) -> str:
        """The same slot of the same day, of another thing."""
        thing, rest = divmod(self.ids.slot.number(at.split, at.seed, slot) or 0, DAYS * SLOTS)
        thing = shifted_number(thing, salt, 0, self.groups(at.size) * PER_GROUP - 1, 1)
        return self.ids.slot.id(at.split, at.seed, thing * DAYS * SLOTS + rest)
