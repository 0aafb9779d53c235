"""Hospitals with departments and clinicians, openings, insurance approvals, appointments, lab orders and referrals.

A clinician belongs to one department of one hospital. An appointment takes an opening whole, needs an approval that
another tool issues and a patient whose cover is active, and may carry one lab order. All names and numbers are made up
from the world's seed.
"""

from __future__ import annotations

from functools import lru_cache

from crosswind.core.flow import digest
from crosswind.core.registry import domains
from crosswind.core.types import Row, Split
from crosswind.domains import layout
from crosswind.domains.desk import Desk
from crosswind.domains.layout import DAYS, HELD, PER_GROUP, SLOTS, Seed, SeedLike
from crosswind.domains.tools import DeskWorld
from crosswind.domains.whole_records import WholeRecords

SPREAD = 15_485_863  # prime: the seed's appointments lie on different days of different clinicians


@lru_cache(maxsize=16384)
def kept_on(split: Split, seed: int, day: int) -> int:
    """Which opening of a clinician's day the seed's appointment takes."""
    return digest(split, seed, "kept", day)[0] % SLOTS


class MedicalRecords(WholeRecords):
    means: tuple[str, ...]  # lab panels

    # -- which opening the seed's appointments take: one a day of a clinician

    def day_of(self, at: SeedLike, n: int) -> int:
        return (n * SPREAD + at.seed * 31) % (self.groups(at.size) * PER_GROUP * DAYS)

    def slot_of(self, at: SeedLike, n: int) -> int:
        day = self.day_of(at, n)
        return day * SLOTS + kept_on(at.split, at.seed, day)

    def taker(self, at: SeedLike, slot: int) -> int | None:
        day, j = divmod(slot, SLOTS)
        if j != kept_on(at.split, at.seed, day):
            return None
        days = self.groups(at.size) * PER_GROUP * DAYS
        return (day - at.seed * 31) * layout.inverse(SPREAD, days) % days

    def need_of(self, g: bytes, room: int) -> int:
        return room - 5 * (g[0] % 2)

    # -- columns

    def slot_key(self, n: int, thing: int, d: int, j: int) -> tuple[int, ...]:
        return n // SLOTS, j

    def person(self, at: Seed, n: int, h: bytes) -> Row:
        home = self.day_of(at, n * HELD) // DAYS // PER_GROUP  # where they have their first appointment
        return {
            "name": self.names.person.name(at.split, at.seed, n),
            "home_hospital": self.group(at, home),
            "plan": ("basic", "family", "plus")[h[0] % 3],
            "cover": "active" if h[1] % self.lapse else "lapsed",
        }

    def own_tables(self) -> dict[str, layout.Maker]:
        return {"lab_orders": self.lab_order}

    def lab_order(self, at: Seed, id: str) -> Row | None:
        row = self.booking_row(at, id)
        if row is None or row["status"] != "ordered":
            return None
        return {"panel": self.means[digest(at.split, at.seed, "panel", id)[0] % len(self.means)]}


class MedicalWorld(DeskWorld):
    records = MedicalRecords.packaged("medical")


class Medical(Desk):
    name = "medical"
    summary = "Hospitals, clinicians, openings, insurance approvals, appointments, lab orders and referrals."
    world_class = MedicalWorld


MEDICAL = Medical()
domains.add(MEDICAL.name, MEDICAL)
