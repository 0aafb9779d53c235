"""The rows of a desk on which a booking takes its slot whole."""

from __future__ import annotations

from typing import Any

from crosswind.core.domain import shifted_number
from crosswind.core.flow import digest
from crosswind.core.state import State
from crosswind.core.types import Row, Task
from crosswind.domains.layout import DAYS, HELD, SLOTS, Seed, SeedLike, number
from crosswind.domains.records import Records


class WholeRecords(Records):
    """The rows of a desk on which a booking takes its slot whole: the need is compared, and not subtracted.

    The seed gives each of its bookings a slot of its own; a domain says which, and the other way round.
    """

    shortest: tuple[int, int]  # the least need of a booking, and its step

    def slot_of(self, at: SeedLike, n: int) -> int:
        """The number of the slot that the seed gives to its n-th booking; no two get the same."""
        raise NotImplementedError

    def taker(self, at: SeedLike, slot: int) -> int | None:
        """Which of the seed's bookings has a slot, if it exists at all."""
        raise NotImplementedError

    def need_of(self, g: bytes, room: int) -> int:
        """How much a booking of the seed takes of its slot's room."""
        raise NotImplementedError

    def rooms_of(self, at: SeedLike, n: int) -> tuple[int, ...]:
        return (0, 0, *self.rooms) if self.taker(at, n) is None else self.rooms

    def booked(self, at: Seed, owner: int, k: int, h: bytes) -> Row:
        n = owner * HELD + k
        g, slot = digest(at.split, at.seed, self.booking_noun, n), self.slot_of(at, n)
        need = self.need_of(g, self.slot_at(at, slot)[self.tables.room])
        return self.filled(at, owner, slot, need, self.dealt(k, g[1]), number(g[2:4]))

    def takers(self, state: State, slot: str) -> list[str]:
        """The live bookings that take a slot: never more than one in a sound world."""
        t, bookings = self.terms, self.tables.bookings
        ids: dict[str, None] = {}
        if state.edits or state.overlay:
            edited = ((id, row) for (table, id), row in state.edits.items() if table == bookings and row is not None)
            ids = dict.fromkeys(id for id, row in (*edited, *state.written(bookings)) if row[t.slot] == slot)
        n = self.ids.slot.number(state.split, state.seed, slot)
        if n is not None and (taker := self.taker(state, n)) is not None:
            ids[self.ids.booking.id(state.split, state.seed, taker)] = None
        if not ids:
            return []
        found = ((id, state.row(bookings, id)) for id in ids)
        return [id for id, row in found if row and row[t.slot] == slot and row[t.status] != t.cancelled]

    def left(self, state: State, slot: str, room: int) -> int:
        """The room of a slot, or none once it is taken."""
        return 0 if self.takers(state, slot) else room

    def vary(self, task: Task, table: str, column: str, value: Any, salt: object) -> Any:
        if (table, column) == (self.tables.bookings, self.terms.need):  # never more than the slot has
            least, step = self.shortest
            return shifted_number(value, salt, least, value, step) if value > least else value
        return super().vary(task, table, column, value, salt)

    def elsewhere(self, at: SeedLike, slot: str, salt: object) -> str:
        """A slot on the same date with the most room, which nothing the seed gives takes."""
        day = (self.ids.slot.number(at.split, at.seed, slot) or 0) // SLOTS
        thing, d = divmod(day, DAYS)
        seed = self.seeded(at.seed, at.size, at.split)
        start = shifted_number(thing, salt, 0, seed.things - 1, 1)
        for step in range(seed.things):
            first = ((start + step) % seed.things * DAYS + d) * SLOTS
            for n in range(first, first + SLOTS):
                if self.taker(at, n) is None and self.slot_at(seed, n)[self.tables.room] == self.rooms[-1]:
                    return self.ids.slot.id(at.split, at.seed, n)
        return slot
