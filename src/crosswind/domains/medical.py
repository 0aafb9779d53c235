"""Hospitals with departments and clinicians, openings, insurance approvals, appointments, lab orders and referrals.

A clinician belongs to one department of one hospital. An appointment takes an opening whole, needs an approval that
another tool issues and a patient whose cover is active, and may carry one lab order. All names and numbers are made up
from the world's seed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

from crosswind.core.flow import digest
from crosswind.core.names import Numbering
from crosswind.core.registry import domains
from crosswind.core.types import Row, Split
from crosswind.domains import layout, tools
from crosswind.domains.desk import Desk
from crosswind.domains.layout import DAYS, HELD, PER_GROUP, SLOTS, Seed, SeedLike
from crosswind.domains.records import WholeRecords
from crosswind.domains.requests import Requests
from crosswind.domains.tools import DeskWorld, Refusals

PANELS = ("lipid", "thyroid", "glucose", "iron", "liver", "kidney")
DRUGS = ("alvorin", "brenizol", "cortapan", "dexalim", "flumetin", "lorvasid", "pentaril", "sumoxan")
SPREAD = 15_485_863  # prime: the seed's appointments lie on different days of different clinicians


@lru_cache(maxsize=16384)
def kept_on(split: Split, seed: int, day: int) -> int:
    """Which opening of a clinician's day the seed's appointment takes."""
    return digest(split, seed, "kept", day)[0] % SLOTS


class MedicalRecords(WholeRecords):
    terms = layout.Terms(
        group="hospital", kind="department", thing="clinician_id", who="patient_id", need="minutes", slot="opening_id",
        booking="appointment_id", means="panel", code="approval", source="from_clinician", target="to_clinician",
        score="score", fee="fee", amount="units", figure="wait_minutes", far="days", room="minutes",
        receipt="order_no", held="booked", settled="ordered",
    )  # fmt: skip
    tables = layout.Tables(
        things="clinicians", slots="openings", people="patients", bookings="appointments", permits="approvals",
        entries="prescriptions", outlook="wards", distance="referrals", attached="lab_orders", means_attached=True,
        room="minutes", home="home_hospital", standing="cover", good="active", barred="lapsed",
    )  # fmt: skip
    names = layout.Names(
        group=layout.named("med cure heal sana", "clinic well spital", "aid ward care vita", 7),
        thing=layout.named("ison elle ard oux", "ino esku inen", "ander olli ewicz ulf", 23),
        person=layout.named("by quist ham ides", "gren aert czyk", "yan shvili enko ica", 43),
    )
    ids = layout.Ids(
        thing=Numbering("D", 6), slot=Numbering("Q", 8), person=Numbering("N", 6), booking=Numbering("A", 7)
    )
    kinds = layout.choices(
        "cardiology/heart dermatology/skin neurology/brain oncology/cancer ophthalmology/eye psychiatry surgery urology"
    )
    means = PANELS
    needs, floors = (10, 15, 20, 25, 30, 40), (14, 20, 28, 35, 42, 50, 56)
    calendar = (2032, 2, 2, 13, 310)
    clock = layout.Minutes(480, 105, step=15, late=4)
    rooms, room_step = (10, 15, 20, 30, 45, 60), 5
    shortest = (5, 5)
    permit_ids, receipt_ids = ("V", 6), ("L", 7, "order")
    verb, owned = "book", "appointments"
    lapse = 12
    directed = True
    columns: ClassVar[layout.Columns] = {
        "clinicians": {
            "score": layout.Score(1, 901, digits=2, most=10.0),
            "fee": layout.Number(3, 20, 180),
            "starts": layout.Text(4, "07:%02d", 0, 4, 15),
            "ends": layout.Text(5, "%d:00", 17, 3),
        },
        "prescriptions": {
            "drug": layout.Text(0, words=DRUGS),
            "units": layout.Number(1, 7, 12, 7),
            "date": layout.Text(2, after="2031-01-01"),
        },
        "wards": {"wait_minutes": layout.Number(0, 5, 24, 5), "beds_free": layout.Number(1, 0, 40, fixed=True)},
        "referrals": {"days": layout.Number(0, 1, 60)},
    }

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
        return {"panel": PANELS[digest(at.split, at.seed, "panel", id)[0] % len(PANELS)]}


class MedicalWorld(DeskWorld):
    records = MedicalRecords()
    refusals = Refusals(
        barred="patient {who} has no active cover",
        permit="no approval was issued to {who} for {slot}",
        full="opening {slot} is not long enough",
    )

    find_clinicians = tools.SearchTool("Clinicians of a department, with patient scores.")
    clinician_profile = tools.DetailsTool(
        "A clinician's hospital, department, hours, fee in euros.", show="name hospital department starts ends fee"
    )
    list_prescriptions = tools.EntriesTool("Drugs a clinician prescribed: units and date.", show="drug units date")
    ward_load = tools.OutlookTool(
        "A hospital's wait in minutes and free beds on a date.", show="wait_minutes beds_free", noun="load"
    )
    referral_days = tools.DistanceTool("Days a referral takes, by clinician ids.", noun="referral")
    list_openings = tools.WholeSlotsTool("A clinician's openings on a date: time and minutes, 0 if taken.")
    patient_chart = tools.RecordTool("A patient's home hospital, plan and cover.", show="name home_hospital plan cover")
    list_appointments = tools.BookingsTool("A patient's appointments and their status.")
    request_approval = tools.PermitTool(
        "Issue the insurance approval for an opening.", invalid="This is no approval for {slot}; {tool} issues one."
    )
    book_appointment = tools.HoldTool("Book an opening; needs approval from {request_approval}.", limits=(5, 240))
    order_lab = tools.SettleTool("Order a lab panel for a booked appointment.")
    cancel_appointment = tools.CancelTool("Cancel an appointment and its lab order.")
    move_appointment = tools.MoveTool(
        "Move to another opening of the same clinician; needs approval from {request_approval}."
    )


class Medical(Desk):
    name = "medical"
    summary = "Hospitals, clinicians, openings, insurance approvals, appointments, lab orders and referrals."
    world_class = MedicalWorld
    requests = Requests.packaged("medical")


MEDICAL = Medical()
domains.add(MEDICAL.name, MEDICAL)
