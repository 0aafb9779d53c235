"""The thirteen tools that every desk has.

`banks/desks/<domain>.yaml` names each of them, with its role (a key of `TOOLS`), its description and its options.
Parameters, footprint and behaviour follow from the table map (`Records`). A tool that only one domain has is a method
under `@tool`, as in any world, and the file has its name with the word `own`. Agents see tools in the order of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

from crosswind.base.errors import ToolFailure
from crosswind.core.types import Changes, Param, Row, ToolSpec
from crosswind.core.world import Entry, World, brief_of
from crosswind.domains.layout import Tables, Terms, Token
from crosswind.domains.records import Records
from crosswind.domains.whole_records import WholeRecords


class DeskTool:
    """One of the tools that every desk has. The options are for those roles that use them.

    Parameters, columns and effects are given by their roles in `Terms` and `Tables`; `bind` looks up their names.
    """

    role: ClassVar[str] = ""  # the name of the tool in `Terms`
    params: ClassVar[str]  # in the order in which `run` takes them
    columns: ClassVar[str] = ""  # that it reads
    effects: ClassVar[str] = ""
    lasting: ClassVar[bool] = True
    undone: ClassVar[bool] = False  # by cancelling
    shows: ClassVar[str] = ""  # the table whose columns it shows
    entry: Entry

    def __init__(
        self,
        doc: str,
        *,
        show: str = "",  # the columns that it shows in order, each as `key` or as `key=column`
        noun: str = "",  # what a row is called in errors and in the key of its id
        reads: str = "",  # further columns that it reads: of bookings, or as `table.column`
        limits: Sequence[int] = (0, 0),  # of the need
        invalid: str = "",  # said of a permit that was not issued, with {slot} and {tool} in it
        other: str = "belongs to",  # said of a slot of another thing
    ) -> None:
        self.doc, self.noun, self.reads = doc, noun, reads
        self.limits, self.invalid, self.other = limits, invalid, other
        pairs = (part.partition("=") for part in show.split())
        self.show = tuple((key, column or key) for key, _, column in pairs)

    def run(self, world: DeskWorld, *args: Any) -> Any:
        raise NotImplementedError

    def bind(self, name: str, world: type[DeskWorld]) -> None:
        """Settle what the tool is called, and what it takes, reads and writes in a world."""
        self.name, self.records, self.tables, self.t = name, world.records, world.records.tables, world.terms
        names = [getattr(self.t, param) for param in self.params.split()]
        effects = frozenset(filter(None, map(self.effect, self.effects.split())))
        undo = (self.t.cancel, self.t.booking) if self.undone else None
        params = {param: self.param(param) for param in names}
        spec = ToolSpec(name, self.doc, params, bool(effects), undo, self.lasting, ids=frozenset({name}))
        columns = [
            *map(self.column, self.columns.split()),
            *(f"{getattr(self.tables, self.shows)}.{column}" for _, column in self.show if self.shows),
            *(column if "." in column else f"{self.tables.bookings}.{column}" for column in self.reads.split()),
        ]
        self.entry = Entry(spec, _by_name(self.run, names), frozenset(columns), effects)

    def param(self, name: str) -> Param:
        """What a parameter of that name takes, in all of the tools."""
        t, means, enum = self.t, self.records.means, tuple[str, ...]()
        if name == t.kind:
            enum = self.records.kind_names
        elif name == t.means and not isinstance(means, Token):
            enum = means
        return Param("integer" if name == t.need else "string", "YYYY-MM-DD" if name == t.date else "", True, enum)

    def column(self, spot: str) -> str:
        """`things.kind` as this desk calls it: `places.category`."""
        table, _, column = spot.partition(".")
        return f"{getattr(self.tables, table)}.{self.tables.room if column == 'room' else getattr(self.t, column)}"

    def effect(self, name: str) -> str:
        """An effect in the words of this desk; empty where it has no such effect."""
        tables, table = self.tables, name.rstrip("+-")
        if table != name:
            has = tables.means_attached if name == "attached+" else getattr(tables, table)
            return f"{getattr(tables, table)}{name[-1]}" if has else ""
        if name == "bookings.means" and tables.means_attached:
            return ""
        spot, _, value = name.partition("=")
        return f"{self.column(spot)}={getattr(self.t, value)}" if value else self.column(spot)

    def shown(self, row: Row) -> Row:
        return {key: row[column] for key, column in self.show}


def _by_name(run: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """A function of a world that takes its arguments by these names. Most tools take one or two: these are fast."""
    match names:
        case [one]:
            return lambda world, **args: run(world, args[one])
        case [one, two]:
            return lambda world, **args: run(world, args[one], args[two])
        case _:
            return lambda world, **args: run(world, *(args[name] for name in names))


class SearchTool(DeskTool):
    """Things of a kind in a group, with scores."""

    role, params = "search", "group kind"
    columns = "things.name things.kind things.score"

    def run(self, world: DeskWorld, group: str, kind: str) -> list[Row]:
        key, score, column, table, state = self.t.thing, self.t.score, self.t.kind, self.tables.things, world.state
        return [
            {key: id, "name": row["name"], score: row[score]}
            for id in world.group(group)
            if (row := state.row(table, id)) and row[column] == kind
        ]


class DetailsTool(DeskTool):
    """A thing by its id."""

    role, params, shows = "details", "thing", "things"

    def run(self, world: DeskWorld, thing: str) -> Row:
        return self.shown(world.thing(thing))


class RecordTool(DeskTool):
    """A person by their id: what a rule such as "the record wins" points to."""

    role, params, shows = "record", "who", "people"

    def run(self, world: DeskWorld, who: str) -> Row:
        return self.shown(world.person(who))


class EntriesTool(DeskTool):
    """The entries of a thing; with their ids where they have a noun."""

    role, params, shows = "entries", "thing", "entries"

    def run(self, world: DeskWorld, thing: str) -> list[Row]:
        world.thing(thing)
        found, show = self.records.entries(world.state, thing), self.show
        rows: list[Row] = [{key: row[column] for key, column in show} for _, row in found]
        key = f"{self.noun}_id"
        return [{key: id, **row} for (id, _), row in zip(found, rows, strict=True)] if self.noun else rows


class OutlookTool(DeskTool):
    """A figure of a group on a date."""

    role, params, shows = "outlook", "group date", "outlook"

    def run(self, world: DeskWorld, group: str, date: str) -> Row:
        world.group(group)
        return self.shown(world.found(self.tables.outlook, f"{group}|{world.day(date)}", self.noun))


class DistanceTool(DeskTool):
    """How far one thing is from another."""

    role, params, columns = "distance", "source target", "distance.far"

    def run(self, world: DeskWorld, source: str, target: str) -> Row:
        world.thing(source)
        world.thing(target)
        row = world.found(self.tables.distance, self.records.pair(source, target), self.noun)
        return {self.t.far: row[self.t.far]}


class ApartTool(DeskTool):
    """The same, as the difference of a column of the two things."""

    role, params, shows = "distance", "source target", "things"

    def run(self, world: DeskWorld, source: str, target: str) -> Row:
        one, two = self.shown(world.thing(source)), self.shown(world.thing(target))
        return {self.t.far: sum(abs(one[key] - two[key]) for key in one)}


class SlotsTool(DeskTool):
    """The slots of a thing on a date, with the room they have left."""

    role, params = "slots", "thing date"
    columns = "slots.time slots.room bookings.slot bookings.need bookings.status"

    def run(self, world: DeskWorld, thing: str, date: str) -> list[Row]:
        records, t, state, room = self.records, self.t, world.state, self.tables.room
        world.thing(thing)
        out: list[Row] = []
        for id in records.slots_of(state, thing, world.day(date)):
            row = world.slot(id)
            out.append({t.slot: id, "time": row["time"], t.room: records.left(state, id, row[room])})
        return out


class WholeSlotsTool(SlotsTool):
    """The same where slots are taken whole."""

    columns = "slots.time slots.room bookings.slot bookings.status"


class BookingsTool(DeskTool):
    """What a person holds."""

    role, params = "bookings", "who"
    columns = "bookings.slot bookings.who bookings.need bookings.status slots.thing slots.date slots.time"

    def run(self, world: DeskWorld, who: str) -> list[Row]:
        world.person(who)
        return [world.shown(id) for id in self.records.bookings_of(world.state, who)]


class PermitTool(DeskTool):
    """Issue the code that a person needs for a slot."""

    role, params, effects, lasting = "permit", "slot who", "permits+", False

    def run(self, world: DeskWorld, slot: str, who: str) -> Row:
        world.slot(slot)
        world.person(who)
        code = self.records.permit(slot, who)
        world.state.put(self.tables.permits, f"{slot}|{who}", {self.t.code: code})
        return {self.t.code: code}

    def check(self, world: DeskWorld, slot: str, who: str, code: str) -> None:
        """Refuse a code that was not issued for a slot and a person."""
        issued = world.state.row(self.tables.permits, f"{slot}|{who}")
        if issued is None or issued[self.t.code] != code:
            raise ToolFailure("refused", self.invalid.format(slot=slot, tool=f"{{{self.name}}}"))


class HoldTool(DeskTool):
    """Hold a slot."""

    role, params, undone = "hold", "slot who need code", True
    columns, effects = "permits.code bookings.slot bookings.who", "bookings+ bookings.status=held"

    def run(self, world: DeskWorld, slot: str, who: str, need: int, code: str) -> Row:
        t, records = self.t, self.records
        world.within(t.need, need, *self.limits)
        world.slot(slot)
        world.permits.check(world, slot, who, code)
        id = records.new_id(world.state, slot, who)
        world.state.put(self.tables.bookings, id, records.new_row(slot, who, need))
        return {t.booking: id, t.status: t.held}


class SettleTool(DeskTool):
    """Settle what is held."""

    role, params, undone = "settle", "booking means", True
    columns, effects = "bookings.status", "bookings.status=settled bookings.means attached+"

    def run(self, world: DeskWorld, booking: str, means: str) -> Row:
        t, records = self.t, self.records
        row = world.booking(booking)
        if row[t.status] != t.held:
            raise ToolFailure("conflict", f"{world.said_of(booking)} is {row[t.status]}, not {t.held}.")
        if isinstance(records.means, Token) and not records.means.is_like(means):
            text = f"'{t.means}' must look like {records.means.example}, got {brief_of(means)}"
            raise ToolFailure("bad_arguments", text)
        world.put(records.settled(booking, row, means))
        return {t.booking: booking, t.receipt: records.receipt(booking, means), t.status: t.settled}


class CancelTool(DeskTool):
    """Cancel a booking, with what is attached to it."""

    role, params = "cancel", "booking"
    columns, effects = "bookings.status", "bookings.status=cancelled bookings.means attached-"

    def run(self, world: DeskWorld, booking: str) -> Row:
        world.live(booking, " already")
        world.put(self.records.ended(world.state, booking))
        return {self.t.booking: booking, self.t.status: self.t.cancelled}


class MoveTool(DeskTool):
    """Move a booking to another slot of the same thing."""

    role, params = "move", "booking slot code"
    columns = "bookings.status bookings.slot bookings.who permits.code slots.thing"
    effects = "bookings.slot"

    def run(self, world: DeskWorld, booking: str, slot: str, code: str) -> Row:
        t, records = self.t, self.records
        row = world.live(booking)
        new, old = world.slot(slot), world.slot(row[t.slot])
        if new[t.thing] != old[t.thing]:
            noun = f"{records.slot_noun.capitalize()} {slot}"
            raise ToolFailure("conflict", f"{noun} {self.other} another {records.thing_noun}.")
        world.permits.check(world, slot, row[t.who], code)
        world.state.put(self.tables.bookings, booking, {**row, t.slot: slot})
        return {t.booking: booking, t.slot: slot}


TOOLS: Mapping[str, type[DeskTool]] = {
    **{
        tool.role: tool
        for tool in (
            *(SearchTool, DetailsTool, RecordTool, EntriesTool, OutlookTool, DistanceTool, SlotsTool),
            *(BookingsTool, PermitTool, HoldTool, SettleTool, CancelTool, MoveTool),
        )
    },
    "apart": ApartTool,
    "whole_slots": WholeSlotsTool,
}


OWN = "own"  # says of a tool that it is a method of the world


def _made(role: str, **options: Any) -> DeskTool:
    return TOOLS[role](**options)


class Refusals(NamedTuple):
    """Why a booking is refused, with {who} and {slot} in the texts."""

    barred: str  # the person may not book
    permit: str  # none was issued
    full: str  # the slot has not enough room


class DeskWorld(World):
    """The world of a desk. Its tools and the words of refusals are those of the file that its records were read from."""

    records: ClassVar[Records]
    tables: ClassVar[Tables]
    terms: ClassVar[Terms]  # those of the records, with the tools
    record_tool: ClassVar[str]
    permits: ClassVar[PermitTool]
    refusals: ClassVar[Refusals]

    def __init_subclass__(cls) -> None:
        declared = cls.records.declared["world"]
        shared = {name: _made(**options) for name, options in declared["tools"].items() if options != OWN}
        named = {part.role: name for name, part in shared.items()}
        cls.record_tool, cls.refusals = named.pop("record"), Refusals(**declared["refusals"])
        t = cls.terms = replace(cls.records.terms, **named)
        for name, part in shared.items():
            part.bind(name, cls)
            setattr(cls, name, part)
        tables = cls.tables = cls.records.tables
        cls.invariants = (
            *(f"{tables.bookings}.{column}" for column in (t.slot, t.who, t.need, t.status)),
            *(f"{tables.slots}.{column}" for column in (tables.room, t.thing)),
            f"{tables.people}.{tables.standing}",
            f"{tables.permits}.{t.code}",
            *declared.get("watched", ()),  # columns that `broken` looks at besides those of every desk
        )
        cls.entries = {name: getattr(cls, name).entry for name in declared["tools"]}
        cls.specs = tuple(entry.spec for entry in cls.entries.values())
        cls.permits = next(part for part in shared.values() if isinstance(part, PermitTool))

    # -- invariants

    def broken(self) -> str | None:
        state, records, t, tables = self.state, self.records, self.terms, self.tables
        for id, row in state.written(tables.bookings):
            before = state.start(tables.bookings, id)
            if row[t.status] == t.cancelled or (before is not None and before[t.slot] == row[t.slot]):
                continue
            slot, person = state.row(tables.slots, row[t.slot]), state.row(tables.people, row[t.who])
            if slot is None or state.row(tables.things, slot[t.thing]) is None:
                return f"there is no {records.slot_noun} {row[t.slot]}"
            if person is None or person[tables.standing] != tables.good:
                return self.refusals.barred.format(who=row[t.who])
            if state.row(tables.permits, f"{row[t.slot]}|{row[t.who]}") is None:
                return self.refusals.permit.format(who=row[t.who], slot=row[t.slot])
            if why := self.overfull(row, slot) or self.forbidden(row, slot, person):
                return why
        return None

    def overfull(self, row: Row, slot: Row) -> str | None:
        """Why a booking does not fit into its slot, or None."""
        t, records, room = self.terms, self.records, slot[self.records.tables.room]
        if not isinstance(records, WholeRecords):
            fits = records.left(self.state, row[t.slot], room) >= 0
        elif (fits := row[t.need] <= room) and len(records.takers(self.state, row[t.slot])) > 1:
            return f"{records.slot_noun} {row[t.slot]} is taken"
        return None if fits else self.refusals.full.format(slot=row[t.slot])

    def forbidden(self, row: Row, slot: Row, person: Row) -> str | None:
        """Why a booking that fits is not allowed, or None."""
        return None

    # -- parts of tools

    def thing(self, id: str) -> Row:
        return self.found(self.tables.things, id, self.records.thing_noun)

    def slot(self, id: str) -> Row:
        return self.found(self.tables.slots, id, self.records.slot_noun)

    def person(self, id: str) -> Row:
        return self.found(self.tables.people, id, self.records.person_noun)

    def booking(self, id: str) -> Row:
        return self.found(self.tables.bookings, id, self.records.booking_noun)

    def group(self, group: str) -> list[str]:
        """The things of a group, for a tool that cannot do without it."""
        ids = self.records.things_in(self.state, group)
        if ids is None:
            raise ToolFailure("not_found", f"There is no {self.terms.group} {brief_of(group)}.")
        return ids

    def live(self, id: str, already: str = "") -> Row:
        """A booking that can still be cancelled or moved."""
        row, cancelled = self.booking(id), self.terms.cancelled
        if row[self.terms.status] == cancelled:
            raise ToolFailure("conflict", f"{self.said_of(id)} is {cancelled.replace('_', ' ')}{already}.")
        return row

    def said_of(self, booking: str) -> str:
        return f"{self.records.booking_noun.capitalize()} {booking}"

    def within(self, name: str, value: int, least: int, most: int) -> None:
        if not least <= value <= most:
            text = f"'{name}' must be from {least} to {most}, got {brief_of(str(value))}"
            raise ToolFailure("bad_arguments", text)

    def put(self, changes: Changes) -> None:
        for (table, id), row in changes.items():
            self.state.put(table, id, row)

    def shown(self, id: str) -> Row:
        """A booking as its list shows it."""
        t, row = self.terms, self.booking(id)
        slot = self.slot(row[t.slot])
        return {
            t.booking: id,
            t.thing: slot[t.thing],
            "date": slot["date"],
            "time": slot["time"],
            t.need: row[t.need],
            t.status: row[t.status],
        }
