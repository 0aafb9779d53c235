"""Hospitals with departments and clinicians, openings, insurance approvals, appointments, lab orders and referrals.

A clinician belongs to one department of one hospital. An appointment takes an opening whole, needs an approval that
another tool issues and a patient whose cover is active, and may carry one lab order. All names and numbers are made up
from the world's seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date as Date
from datetime import timedelta
from functools import lru_cache
from random import Random
from typing import Any, ClassVar

from crosswind.base.errors import ToolFailure
from crosswind.core.domain import Detail, edit, read_choice, read_counts, read_ids, shifted_number
from crosswind.core.flow import digest
from crosswind.core.names import Namer, Numbering, dates_from, made_of, unused
from crosswind.core.registry import domains
from crosswind.core.types import Changes, Row, Split, Task
from crosswind.core.world import Derive, State, World, brief_of, tool
from crosswind.domains import graphs
from crosswind.domains.graphs import Booking, Desk, Slot, Terms, Thing
from crosswind.text import values

DEPARTMENTS: dict[str, tuple[str, ...]] = {  # with other words for them
    "cardiology": ("heart",),
    "dermatology": ("skin",),
    "neurology": ("brain",),
    "oncology": ("cancer",),
    "ophthalmology": ("eye",),
    "psychiatry": (),
    "surgery": (),
    "urology": (),
}
PANELS = ("lipid", "thyroid", "glucose", "iron", "liver", "kidney")
DRUGS = ("alvorin", "brenizol", "cortapan", "dexalim", "flumetin", "lorvasid", "pentaril", "sumoxan")
LENGTHS = (10, 15, 20, 30, 45, 60)  # of openings, in minutes
EIGHT, APART = 480, 105  # minutes: when openings begin, and from one to the next
PER_HOSPITAL, DAYS, OPENINGS, HELD = 24, 10, 5, 5
SPREAD = 15_485_863  # prime: the seed's appointments lie on different days of different clinicians

HOSPITAL = Namer((("med", "cure", "heal", "sana"), ("clinic", "well", "spital"), ("aid", "ward", "care", "vita")), 7)
CLINICIAN = Namer((("ison", "elle", "ard", "oux"), ("ino", "esku", "inen"), ("ander", "olli", "ewicz", "ulf")), 23)
PATIENT = Namer((("by", "quist", "ham", "ides"), ("gren", "aert", "czyk"), ("yan", "shvili", "enko", "ica")), 43)
CLINICIAN_ID, PATIENT_ID = Numbering("D", 6), Numbering("N", 6)
OPENING_ID, APPOINTMENT_ID = Numbering("Q", 8), Numbering("A", 7)


def calendar(seed: int) -> list[str]:
    """The dates on which a world has openings."""
    return dates_from(2032, 2, 2, seed * 13 % 310, DAYS)


def clock(j: int, late: int) -> str:
    """The time of the j-th opening of a day, some quarters of an hour late."""
    hour, minute = divmod(EIGHT + APART * j + 15 * late, 60)
    return f"{hour:02d}:{minute:02d}"


def hospitals_of(size: int) -> int:
    return max(1, size // PER_HOSPITAL)


def day_of(seed: int, size: int, n: int) -> int:
    """The day of a clinician on which the seed puts its n-th appointment; no two fall on one."""
    return (n * SPREAD + seed * 31) % (hospitals_of(size) * PER_HOSPITAL * DAYS)


def on_day(seed: int, size: int, day: int) -> int:
    """Which of the seed's appointments falls on a day of a clinician, if it exists at all."""
    days = hospitals_of(size) * PER_HOSPITAL * DAYS
    return (day - seed * 31) * pow(SPREAD, -1, days) % days


@lru_cache(maxsize=16384)
def kept_on(split: Split, seed: int, day: int) -> int:
    """Which opening of a clinician's day the seed's appointment takes."""
    return digest(split, seed, "kept", day)[0] % OPENINGS


def rows(seed: int, size: int, split: Split) -> Derive:
    """Any row of a world, made from its seed alone."""
    clinicians = hospitals_of(size) * PER_HOSPITAL
    dates = calendar(seed)

    def clinician(id: str) -> Row | None:
        n = CLINICIAN_ID.number(split, seed, id)
        if n is None or n >= clinicians:
            return None
        h = digest(split, seed, "clinician", n)
        return {
            "name": CLINICIAN.name(split, seed, n),
            "hospital": HOSPITAL.name(split, seed, n // PER_HOSPITAL),
            "department": tuple(DEPARTMENTS)[h[0] % len(DEPARTMENTS)],
            "score": round(1 + (h[1] * 256 + h[2]) % 901 / 100, 2),
            "fee": 20 + h[3] % 180,
            "starts": f"07:{15 * (h[4] % 4):02d}",
            "ends": f"{17 + h[5] % 3}:00",
        }

    def opening(id: str) -> Row | None:
        n = OPENING_ID.number(split, seed, id)
        if n is None or n >= clinicians * DAYS * OPENINGS:
            return None
        day, j = divmod(n, OPENINGS)
        at, d = divmod(day, DAYS)
        h = digest(split, seed, "opening", day, j)
        lengths = LENGTHS if j == kept_on(split, seed, day) else (0, 0, *LENGTHS)  # 0: given away at the front desk
        return {
            "clinician_id": CLINICIAN_ID.id(split, seed, at),
            "date": dates[d],
            "time": clock(j, h[0] % 4),
            "minutes": lengths[h[1] % len(lengths)],
        }

    def patient(id: str) -> Row | None:
        n = PATIENT_ID.number(split, seed, id)
        if n is None or n >= size:
            return None
        h = digest(split, seed, "patient", n)
        home = day_of(seed, size, n * HELD) // DAYS // PER_HOSPITAL  # where they have their first appointment
        return {
            "name": PATIENT.name(split, seed, n),
            "home_hospital": HOSPITAL.name(split, seed, home),
            "plan": ("basic", "family", "plus")[h[0] % 3],
            "cover": "active" if h[1] % 12 else "lapsed",
        }

    def appointment(id: str) -> Row | None:
        n = APPOINTMENT_ID.number(split, seed, id)
        if n is None or n >= size * HELD:
            return None
        owner, k = divmod(n, HELD)
        if k >= 2 + digest(split, seed, "appointments", owner)[0] % (HELD - 1):
            return None
        g = digest(split, seed, "appointment", n)
        day = day_of(seed, size, n)
        opening_id = OPENING_ID.id(split, seed, day * OPENINGS + kept_on(split, seed, day))
        return {
            "patient_id": PATIENT_ID.id(split, seed, owner),
            "opening_id": opening_id,
            "minutes": (opening(opening_id) or {})["minutes"] - 5 * (g[0] % 2),
            "status": "cancelled" if k and g[1] % 8 == 0 else "ordered" if g[1] % 2 else "booked",
        }

    def lab_order(id: str) -> Row | None:
        row = appointment(id)
        if row is None or row["status"] != "ordered":
            return None
        return {"panel": PANELS[digest(split, seed, "panel", id)[0] % len(PANELS)]}

    def prescription(id: str) -> Row | None:
        clinician_id, _, k = id.partition("#")
        if clinician(clinician_id) is None:
            return None
        h = digest(split, seed, "prescription", clinician_id, k)
        written = Date(2031, 1, 1) + timedelta(days=h[2])
        return {"drug": DRUGS[h[0] % len(DRUGS)], "units": 7 + 7 * (h[1] % 12), "date": written.isoformat()}

    def ward(id: str) -> Row | None:
        h = digest(split, seed, "ward", id)
        return {"wait_minutes": 5 + 5 * (h[0] % 24), "beds_free": h[1] % 40}

    def referral(id: str) -> Row | None:
        return {"days": 1 + digest(split, seed, "referral", id)[0] % 60}

    made = {
        "clinicians": clinician,
        "openings": opening,
        "patients": patient,
        "appointments": appointment,
        "lab_orders": lab_order,
        "prescriptions": prescription,
        "wards": ward,
        "referrals": referral,
    }
    return lambda table, id: made[table](id) if table in made else None


def order_of(appointment_id: str, panel: str) -> str:
    return made_of("L", 7, "order", appointment_id, panel)


def approval_of(opening_id: str, patient_id: str) -> str:
    return made_of("V", 6, "approval", opening_id, patient_id)


# ---------------------------------------------------------------- what belongs to what


def clinicians_in(state: State, hospital: str) -> list[str] | None:
    """The clinicians of a hospital, or None where there is no such hospital."""
    return _clinicians_in(state.split, state.seed, state.size, hospital)


@lru_cache(maxsize=4096)
def _clinicians_in(split: Split, seed: int, size: int, hospital: str) -> list[str] | None:
    n = HOSPITAL.number(split, seed, hospital)
    if n is None or n >= hospitals_of(size):
        return None
    return [CLINICIAN_ID.id(split, seed, n * PER_HOSPITAL + k) for k in range(PER_HOSPITAL)]


def openings_of(state: State, clinician_id: str, date: str) -> list[str]:
    n, dates = CLINICIAN_ID.number(state.split, state.seed, clinician_id), calendar(state.seed)
    if n is None or date not in dates:
        return []
    first = (n * DAYS + dates.index(date)) * OPENINGS
    return [OPENING_ID.id(state.split, state.seed, first + j) for j in range(OPENINGS)]


def appointments_of(state: State, patient_id: str) -> list[str]:
    """What a patient has booked, first what the seed gives."""
    n = PATIENT_ID.number(state.split, state.seed, patient_id)
    ids = [] if n is None else [APPOINTMENT_ID.id(state.split, state.seed, n * HELD + k) for k in range(HELD)]
    ids = [id for id in ids if state.row("appointments", id) is not None]
    new = (id for id, row in state.written("appointments") if row["patient_id"] == patient_id)
    return [*ids, *(id for id in new if id not in ids)]


def prescriptions_of(clinician_id: str) -> list[str]:
    return [f"{clinician_id}#{k}" for k in range(2 + digest("prescriptions", clinician_id)[0] % 7)]


def takers(state: State, opening_id: str) -> list[str]:
    """The live appointments that take an opening: never more than one in a sound world."""
    ids: dict[str, None] = {}
    if state.edits or state.overlay:
        edited = ((id, row) for (table, id), row in state.edits.items() if table == "appointments" and row is not None)
        rows = (*edited, *state.written("appointments"))
        ids = dict.fromkeys(id for id, row in rows if row["opening_id"] == opening_id)
    n = OPENING_ID.number(state.split, state.seed, opening_id)
    if n is not None:
        day, j = divmod(n, OPENINGS)
        if j == kept_on(state.split, state.seed, day):
            ids[APPOINTMENT_ID.id(state.split, state.seed, on_day(state.seed, state.size, day))] = None
    if not ids:
        return []
    found = ((id, state.row("appointments", id)) for id in ids)
    return [id for id, row in found if row and row["opening_id"] == opening_id and row["status"] != "cancelled"]


def free(state: State, opening_id: str, minutes: int) -> int:
    """Minutes of an opening that can be booked: its length, or none once somebody has it."""
    return 0 if takers(state, opening_id) else minutes


def new_id(state: State, opening_id: str, patient_id: str) -> str:
    """An id made of what is booked, and of how often it was before."""
    mine = (opening_id, patient_id)
    times = sum((row["opening_id"], row["patient_id"]) == mine for _, row in state.written("appointments"))
    return unused(lambda id: state.row("appointments", id) is not None, "A", 7, "book", *mine, times=times)


# ---------------------------------------------------------------- tools


class MedicalWorld(World):
    invariants = (
        "appointments.opening_id",
        "appointments.patient_id",
        "appointments.minutes",
        "appointments.status",
        "openings.minutes",
        "openings.clinician_id",
        "patients.cover",
        "approvals.approval",
    )

    def broken(self) -> str | None:
        state = self.state
        for id, row in state.written("appointments"):
            before = state.start("appointments", id)
            if row["status"] == "cancelled" or (before is not None and before["opening_id"] == row["opening_id"]):
                continue
            opening_id, patient_id = row["opening_id"], row["patient_id"]
            opening, patient = state.row("openings", opening_id), state.row("patients", patient_id)
            if opening is None or state.row("clinicians", opening["clinician_id"]) is None:
                return f"there is no opening {opening_id}"
            if patient is None or patient["cover"] != "active":
                return f"patient {patient_id} has no active cover"
            if state.row("approvals", f"{opening_id}|{patient_id}") is None:
                return f"no approval was issued to {patient_id} for {opening_id}"
            if row["minutes"] > opening["minutes"]:
                return f"opening {opening_id} is not long enough"
            if len(takers(state, opening_id)) > 1:
                return f"opening {opening_id} is taken"
        return None

    @tool(reads=["clinicians.name,department,score"], enums={"department": tuple(DEPARTMENTS)})
    def find_clinicians(self, hospital: str, department: str) -> list[Row]:
        """Clinicians of a department, with patient scores."""
        ids = clinicians_in(self.state, hospital)
        if ids is None:
            raise ToolFailure("not_found", f"There is no hospital {brief_of(hospital)}.")
        found = ((id, self.state.row("clinicians", id)) for id in ids)
        return [
            {"clinician_id": id, "name": row["name"], "score": row["score"]}
            for id, row in found
            if row is not None and row["department"] == department
        ]

    @tool(reads=["clinicians.name,hospital,department,starts,ends,fee"])
    def clinician_profile(self, clinician_id: str) -> Row:
        """A clinician's hospital, department, hours, fee in euros."""
        row = self.found("clinicians", clinician_id, "clinician")
        return {c: row[c] for c in ("name", "hospital", "department", "starts", "ends", "fee")}

    @tool(reads=["prescriptions.drug,units,date"])
    def list_prescriptions(self, clinician_id: str) -> list[Row]:
        """Drugs a clinician prescribed: units and date."""
        self.found("clinicians", clinician_id, "clinician")
        found = (self.state.row("prescriptions", id) for id in prescriptions_of(clinician_id))
        return [{c: row[c] for c in ("drug", "units", "date")} for row in found if row is not None]

    @tool(reads=["wards.wait_minutes,beds_free"], docs={"date": "YYYY-MM-DD"})
    def ward_load(self, hospital: str, date: str) -> Row:
        """A hospital's wait in minutes and free beds on a date."""
        if clinicians_in(self.state, hospital) is None:
            raise ToolFailure("not_found", f"There is no hospital {brief_of(hospital)}.")
        row = self.found("wards", f"{hospital}|{self.day(date)}", "load")
        return {"wait_minutes": row["wait_minutes"], "beds_free": row["beds_free"]}

    @tool(reads=["referrals.days"])
    def referral_days(self, from_clinician: str, to_clinician: str) -> Row:
        """Days a referral takes, by clinician ids."""
        self.found("clinicians", from_clinician, "clinician")
        self.found("clinicians", to_clinician, "clinician")
        row = self.found("referrals", f"{from_clinician}|{to_clinician}", "referral")
        return {"days": row["days"]}

    @tool(
        reads=["openings.time,minutes", "appointments.opening_id,status"],
        docs={"date": "YYYY-MM-DD"},
    )
    def list_openings(self, clinician_id: str, date: str) -> list[Row]:
        """A clinician's openings on a date: time and minutes, 0 if taken."""
        self.found("clinicians", clinician_id, "clinician")
        out: list[Row] = []
        for id in openings_of(self.state, clinician_id, self.day(date)):
            row = self.found("openings", id, "opening")
            out.append({"opening_id": id, "time": row["time"], "minutes": free(self.state, id, row["minutes"])})
        return out

    @tool(reads=["patients.name,home_hospital,plan,cover"])
    def patient_chart(self, patient_id: str) -> Row:
        """A patient's home hospital, plan and cover."""
        row = self.found("patients", patient_id, "patient")
        return {c: row[c] for c in ("name", "home_hospital", "plan", "cover")}

    @tool(reads=["appointments.opening_id,patient_id,minutes,status", "openings.clinician_id,date,time"])
    def list_appointments(self, patient_id: str) -> list[Row]:
        """A patient's appointments and their status."""
        self.found("patients", patient_id, "patient")
        return [self._shown(id) for id in appointments_of(self.state, patient_id)]

    @tool(reads=[], writes=["approvals+"], lasting=False)
    def request_approval(self, opening_id: str, patient_id: str) -> Row:
        """Issue the insurance approval for an opening."""
        self.found("openings", opening_id, "opening")
        self.found("patients", patient_id, "patient")
        approval = approval_of(opening_id, patient_id)
        self.state.put("approvals", f"{opening_id}|{patient_id}", {"approval": approval})
        return {"approval": approval}

    @tool(
        reads=["approvals.approval", "appointments.opening_id,patient_id"],
        writes=["appointments+", "appointments.status=booked"],
        undo=("cancel_appointment", "appointment_id"),
    )
    def book_appointment(self, opening_id: str, patient_id: str, minutes: int, approval: str) -> Row:
        """Book an opening; needs approval from {request_approval}."""
        if not 5 <= minutes <= 240:
            raise ToolFailure("bad_arguments", f"'minutes' must be from 5 to 240, got {brief_of(str(minutes))}")
        self.found("openings", opening_id, "opening")
        self._check(opening_id, patient_id, approval)
        id = new_id(self.state, opening_id, patient_id)
        made = {"patient_id": patient_id, "opening_id": opening_id, "minutes": minutes, "status": "booked"}
        self.state.put("appointments", id, made)
        return {"appointment_id": id, "status": "booked"}

    @tool(
        reads=["appointments.status"],
        writes=["appointments.status=ordered", "lab_orders+"],
        undo=("cancel_appointment", "appointment_id"),
        enums={"panel": PANELS},
    )
    def order_lab(self, appointment_id: str, panel: str) -> Row:
        """Order a lab panel for a booked appointment."""
        row = self.found("appointments", appointment_id, "appointment")
        if row["status"] != "booked":
            raise ToolFailure("conflict", f"Appointment {appointment_id} is {row['status']}, not booked.")
        self.state.put("appointments", appointment_id, {**row, "status": "ordered"})
        self.state.put("lab_orders", appointment_id, {"panel": panel})
        return {"appointment_id": appointment_id, "order_no": order_of(appointment_id, panel), "status": "ordered"}

    @tool(reads=["appointments.status"], writes=["appointments.status=cancelled", "lab_orders-"])
    def cancel_appointment(self, appointment_id: str) -> Row:
        """Cancel an appointment and its lab order."""
        row = self.found("appointments", appointment_id, "appointment")
        if row["status"] == "cancelled":
            raise ToolFailure("conflict", f"Appointment {appointment_id} is cancelled already.")
        self.state.put("appointments", appointment_id, {**row, "status": "cancelled"})
        if self.state.row("lab_orders", appointment_id) is not None:
            self.state.put("lab_orders", appointment_id, None)
        return {"appointment_id": appointment_id, "status": "cancelled"}

    @tool(
        reads=["appointments.status,opening_id,patient_id", "approvals.approval", "openings.clinician_id"],
        writes=["appointments.opening_id"],
    )
    def move_appointment(self, appointment_id: str, opening_id: str, approval: str) -> Row:
        """Move to another opening of the same clinician; needs approval from {request_approval}."""
        row = self.found("appointments", appointment_id, "appointment")
        if row["status"] == "cancelled":
            raise ToolFailure("conflict", f"Appointment {appointment_id} is cancelled.")
        opening, old = (
            self.found("openings", opening_id, "opening"),
            self.found("openings", row["opening_id"], "opening"),
        )
        if opening["clinician_id"] != old["clinician_id"]:
            raise ToolFailure("conflict", f"Opening {opening_id} belongs to another clinician.")
        self._check(opening_id, row["patient_id"], approval)
        self.state.put("appointments", appointment_id, {**row, "opening_id": opening_id})
        return {"appointment_id": appointment_id, "opening_id": opening_id}

    # -- parts

    def _check(self, opening_id: str, patient_id: str, approval: str) -> None:
        issued = self.state.row("approvals", f"{opening_id}|{patient_id}")
        if issued is None or issued["approval"] != approval:
            raise ToolFailure("refused", f"This is no approval for {opening_id}; {{request_approval}} issues one.")

    def _shown(self, id: str) -> Row:
        row = self.found("appointments", id, "appointment")
        opening = self.found("openings", row["opening_id"], "opening")
        return {
            "appointment_id": id,
            "clinician_id": opening["clinician_id"],
            "date": opening["date"],
            "time": opening["time"],
            "minutes": row["minutes"],
            "status": row["status"],
        }


# ---------------------------------------------------------------- the domain

_PATIENT, _CLINICIAN = read_ids("N", 6), read_ids("D", 6)
_HOSPITAL, _NAME = HOSPITAL.find, CLINICIAN.find
_DEPARTMENT, _PANEL = read_choice(DEPARTMENTS), read_choice(dict.fromkeys(PANELS, ()))


class Medical(Desk):
    name = "medical"
    summary = "Hospitals, clinicians, openings, insurance approvals, appointments, lab orders and referrals."
    world_class = MedicalWorld
    named = frozenset({"clinicians.name"})
    namers: ClassVar[Mapping[str, Namer]] = {"group": HOSPITAL, "thing": CLINICIAN, "person": PATIENT}
    said: ClassVar[Mapping[str, str]] = {"held": "Booked for {time}: {booking}."}
    policy = (
        "You work at the appointment desk of some hospitals. Do what the user asks with the tools, and nothing else. "
        "Ask when a detail is missing. Tell the user what they asked for; for an appointment its number, for a lab order "
        "the order number, for a move the new time. If it cannot be done, leave nothing changed and say so."
    )
    terms = Terms(
        search="find_clinicians", details="clinician_profile", entries="list_prescriptions", outlook="ward_load",
        distance="referral_days", slots="list_openings", bookings="list_appointments", permit="request_approval",
        hold="book_appointment", settle="order_lab", cancel="cancel_appointment", move="move_appointment",
        group="hospital", kind="department", thing="clinician_id", date="date", who="patient_id", need="minutes",
        slot="opening_id", booking="appointment_id", means="panel", code="approval",
        source="from_clinician", target="to_clinician",
        score="score", fee="fee", amount="units", figure="wait_minutes", far="days", room="minutes",
        receipt="order_no", status="status", held="booked", settled="ordered",
    )  # fmt: skip
    details: Mapping[str, Detail] = {
        "group": Detail(
            "hospital", "Which hospital?", _HOSPITAL, ("hospital", "clinic", "where", "site", "location"), "a hospital I will name",
            record=("patient_chart", "patient_id", "home_hospital"), column=("patients", "home_hospital"),
        ),
        "kind": Detail(
            "department", "Which department?", _DEPARTMENT,
            ("department", "specialty", "speciality", "specialist", "field", "discipline", "kind", *DEPARTMENTS), "a certain department",
        ),
        "date": Detail("date", "On which date?", values.dates, ("date", "day", "when", "time"), "a day I have in mind"),
        "new_date": Detail("new date", "To which date?", values.dates, ("new", "date", "day", "when"), "another day"),
        "other_date": Detail("other date", "Which other date?", values.dates, ("other", "date", "day"), "another day"),
        "need": Detail(
            "number of minutes", "How many minutes?", read_counts,
            ("minute", "long", "length", "duration", "many", "much", "number"), "a few",
        ),
        "floor": Detail(
            "least number of units", "How many units at least?", read_counts,
            ("unit", "least", "many", "number", "minimum", "threshold"), "a few",
        ),
        "who": Detail("patient id", "What is the patient id?", _PATIENT, ("patient", "id", "who", "whom", "whose", "name"), "someone"),
        "means": Detail("lab panel", "Which lab panel?", _PANEL, ("panel", "lab", "test", "blood"), "usual"),
        "source": Detail(
            "referring clinician", "Which clinician refers you?", _CLINICIAN,
            ("refer", "referring", "from", "clinician"), "my own clinician",
        ),
        "first": Detail("first clinician", "Who is the first clinician?", _NAME, ("first", "clinician"), "somebody"),
        "second": Detail("second clinician", "Who is the second clinician?", _NAME, ("second", "clinician"), "another"),
    }  # fmt: skip

    def __init__(self) -> None:
        made: list[graphs.Graph] = [family().bind(self) for family in FAMILIES]
        self.families = {family.name: family for family in made}

    def derive(self, seed: int, size: int, split: Split) -> Derive:
        return rows(seed, size, split)

    def normalise(self, state: State) -> Changes:
        out: Changes = {}
        for (table, id), row in state.changes().items():
            if table == "approvals":
                continue
            if table in ("appointments", "lab_orders") and state.start("appointments", id) is None:
                made = state.overlay.get(("appointments", id))
                if made is None or made["status"] == "cancelled":
                    continue
                id = f"new {made['opening_id']} {made['patient_id']}"  # an opening is taken once: no two are alike
            out[table, id] = row
        return out

    def vary(self, task: Task, table: str, column: str, value: Any, salt: object) -> Any:
        if (table, column) == ("clinicians", "name"):
            n = CLINICIAN.number(task.split, task.seed, value) or 0
            last = CLINICIAN.capacity(task.split) - 1
            return CLINICIAN.name(task.split, task.seed, shifted_number(n, salt, 0, last, 1))
        if (table, column) == ("openings", "time"):  # by quarters of an hour, so that openings stay apart
            j, late = divmod(60 * int(value[:2]) + int(value[3:]) - EIGHT, APART)
            return clock(j, shifted_number(late // 15, salt, 0, 3, 1))
        if (table, column) == ("appointments", "opening_id"):
            return self.elsewhere(task, value, salt)
        if (table, column) == ("appointments", "minutes"):  # never longer than its opening
            return shifted_number(value, salt, 5, value, 5) if value > 5 else value
        moves = {
            "clinicians.score": (1.0, 10.0, 0.01),
            "clinicians.fee": (20, 199, 1),
            "prescriptions.units": (7, 84, 7),
            "wards.wait_minutes": (5, 120, 5),
            "referrals.days": (1, 60, 1),
            "openings.minutes": (10, 60, 5),
        }.get(f"{table}.{column}")
        if moves is None or (table == "openings" and not value):
            return value
        return shifted_number(value, (table, column, salt), *moves)

    def elsewhere(self, task: Task, opening_id: str, salt: object) -> str:
        """An opening on the same date that is of full length, and that nothing the seed gives takes."""
        split, seed = task.split, task.seed
        row = self.derive(seed, task.size, split)
        n = OPENING_ID.number(split, seed, opening_id) or 0
        at, d = divmod(n // OPENINGS, DAYS)
        clinicians = hospitals_of(task.size) * PER_HOSPITAL
        start = shifted_number(at, salt, 0, clinicians - 1, 1)
        for step in range(clinicians):
            day = (start + step) % clinicians * DAYS + d
            for j in range(OPENINGS):
                id = OPENING_ID.id(split, seed, day * OPENINGS + j)
                if j != kept_on(split, seed, day) and (row("openings", id) or {})["minutes"] == LENGTHS[-1]:
                    return id
        return opening_id

    # -- rows for the graphs

    def things(self, state: State, group: str, kind: str) -> list[Thing]:
        found = ((id, state.row("clinicians", id)) for id in clinicians_in(state, group) or ())
        return [
            Thing(id, row["name"], row["score"], row["fee"]) for id, row in found if row and row["department"] == kind
        ]

    def thing(self, state: State, id: str) -> Thing | None:
        row = state.row("clinicians", id)
        return Thing(id, row["name"], row["score"], row["fee"]) if row else None

    def amounts(self, state: State, thing: str) -> list[int]:
        return [row["units"] for id in prescriptions_of(thing) if (row := state.row("prescriptions", id))]

    def figure(self, state: State, group: str, date: str) -> int:
        row = state.row("wards", f"{group}|{date}")
        return int(row["wait_minutes"]) if row else 0

    def far(self, state: State, source: str, target: str) -> int:
        row = state.row("referrals", f"{source}|{target}")
        return int(row["days"]) if row else 0

    def slots(self, state: State, thing: str, date: str) -> list[Slot]:
        found = ((id, state.row("openings", id)) for id in openings_of(state, thing, date))
        made = [Slot(id, row["time"], free(state, id, row["minutes"])) for id, row in found if row]
        return sorted(made, key=lambda s: s.time)

    def bookings(self, state: State, who: str) -> list[Booking]:
        out = []
        for id in appointments_of(state, who):
            row = state.row("appointments", id)
            opening = row and state.row("openings", row["opening_id"])
            if row and opening:
                live = row["status"] != "cancelled"
                made = Booking(id, row["opening_id"], opening["clinician_id"], opening["date"], row["minutes"], live)
                out.append(made)
        return out

    def made(self, state: State, slot: str, who: str, need: int, means: str | None) -> Changes:
        id, status = new_id(state, slot, who), "ordered" if means else "booked"
        out: Changes = {
            ("appointments", id): {"patient_id": who, "opening_id": slot, "minutes": need, "status": status},
            ("approvals", f"{slot}|{who}"): {"approval": approval_of(slot, who)},
        }
        return {**out, ("lab_orders", id): {"panel": means}} if means else out

    def ended(self, state: State, booking: str) -> Changes:
        row = state.row("appointments", booking) or {}
        out: Changes = {("appointments", booking): {**row, "status": "cancelled"}}
        return {**out, ("lab_orders", booking): None} if state.row("lab_orders", booking) else out

    def moved(self, state: State, booking: str, slot: str) -> Changes:
        row = state.row("appointments", booking) or {}
        who = row["patient_id"]
        return {
            ("appointments", booking): {**row, "opening_id": slot},
            ("approvals", f"{slot}|{who}"): {"approval": approval_of(slot, who)},
        }

    def new_bookings(self, end: State) -> list[tuple[str, str | None]]:
        out: list[tuple[str, str | None]] = []
        for id, row in end.written("appointments"):
            if end.start("appointments", id) is None and row["status"] != "cancelled":
                order = end.row("lab_orders", id)
                out.append((id, order_of(id, order["panel"]) if order else None))
        return out

    def someone(self, rng: Random, state: State) -> tuple[str, str]:
        n = rng.randrange(state.size)
        for step in range(state.size):  # the next one whose cover is active
            id = PATIENT_ID.id(state.split, state.seed, (n + step) % state.size)
            row = state.row("patients", id)
            if row and row["cover"] == "active":
                return id, row["home_hospital"]
        return PATIENT_ID.id(state.split, state.seed, n), HOSPITAL.name(state.split, state.seed, 0)

    def allowed(self, state: State, who: str) -> bool:
        row = state.row("patients", who)
        return row is not None and row["cover"] == "active"

    def kinds(self) -> tuple[str, ...]:
        return tuple(DEPARTMENTS)

    def dates(self, state: State) -> list[str]:
        return calendar(state.seed)

    def means(self, rng: Random) -> str:
        return rng.choice(PANELS)

    def needs(self, rng: Random) -> int:
        return rng.choice((10, 15, 20, 25, 30, 40))

    def floors(self, rng: Random) -> int:
        return rng.choice((14, 20, 28, 35, 42, 50, 56))

    def full(self, state: State, thing: str, date: str) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for id in openings_of(state, thing, date):
            out |= edit("openings", id, state.row("openings", id) or {}, minutes=0)
        return out

    def barred(self, state: State, who: str) -> dict[str, Any]:
        return edit("patients", who, state.row("patients", who) or {}, cover="lapsed")

    def emptied(self, state: State, group: str, kind: str) -> dict[str, Any]:
        names = tuple(DEPARTMENTS)
        other = names[(names.index(kind) + 1) % len(names)]
        out: dict[str, Any] = {}
        for thing in self.things(state, group, kind):
            out |= edit("clinicians", thing.id, state.row("clinicians", thing.id) or {}, department=other)
        return out

    def lost(self, state: State, booking: str) -> dict[str, Any]:
        order: dict[str, Any] = {f"lab_orders/{booking}": None} if state.row("lab_orders", booking) else {}
        return {f"appointments/{booking}": None, **order}


# ---------------------------------------------------------------- families


class BestFee(graphs.Fact):
    """The fee of the best-scored clinician."""

    name = "best_fee"
    queries = (
        "What does the best-scored clinician in {department} at {hospital} charge?",
        "How much is a consultation in {department} at {hospital} with the clinician patients score highest?",
        "I would like to see whoever has the top score in {department} at {hospital}. What is the fee?",
        "At {hospital}, what fee does the highest-scored clinician of {department} ask for?",
        "Find the clinician in {department} with the best patient score at {hospital} and tell me the fee.",
    )


class BestFeeAsked(graphs.FactAsked):
    """The fee of the best-scored clinician; the user leaves out the hospital or the department."""

    name = "best_fee_asked"
    queries = (
        "What does the best-scored clinician in {department} at {hospital} charge?",
        "How much is a consultation with the highest-scored clinician in {department} at {hospital}?",
        "Please tell me the fee of the clinician with the top patient score in {department} at {hospital}.",
        "I have to know the fee before I go to {hospital}: what does the best-scored clinician of {department} ask "
        "for?",
    )


class PrescriptionCount(graphs.Tally):
    """How many prescriptions of the best-scored clinician reach a number of units."""

    name = "prescription_count"
    queries = (
        "How many prescriptions of at least {at_least} units has the best-scored clinician in {department} at "
        "{hospital} written?",
        "Count the prescriptions of {at_least} units or more by the highest-scored clinician in {department} at "
        "{hospital}.",
        "Look up the clinician with the top patient score in {department} at {hospital}: how many of their "
        "prescriptions are for {at_least} units or more?",
        "We audit {hospital}. For the best-scored clinician of {department}, tell me the number of prescriptions "
        "that reach {at_least} units.",
    )


class CheaperOfClinicians(graphs.Versus):
    """Which of two named clinicians asks for the lower fee."""

    name = "cheaper_clinician"
    queries = (
        "Which clinician in {department} at {hospital} is cheaper, {first} or {second}?",
        "I was told to see {first} or {second} in {department} at {hospital}. Whose fee is lower?",
        "Compare the fees in {department} at {hospital}: does {first} or {second} charge less?",
        "My insurance pays little. In {department} at {hospital}, is {first} or {second} the cheaper clinician?",
    )


class EarliestOpening(graphs.NextSlot):
    """The earliest opening of the best-scored clinician that is long enough."""

    name = "earliest_opening"
    queries = (
        "When is the earliest opening of at least {minutes} minutes with the best-scored clinician in {department} "
        "at {hospital} on {date}?",
        "On {date}, at what time can the highest-scored clinician in {department} at {hospital} first spare "
        "{minutes} minutes?",
        "I need {minutes} minutes with the clinician who has the top patient score in {department} at {hospital}. "
        "What is the first time on {date} that is long enough?",
        "Find the first opening on {date} that lasts {minutes} minutes or more, for {department} at {hospital}, with "
        "the best-scored clinician there.",
    )


class CancelConsultation(graphs.Cancel):
    """Cancel the appointment on a date."""

    name = "cancel_consultation"
    queries = (
        "Cancel the appointment of patient {patient_id} on {date}.",
        "{patient_id} can't come on {date}. Please cancel that appointment.",
        "I am {patient_id}. Call off my consultation on {date}.",
        "Please take {patient_id} off the schedule for {date}; the appointment is no longer needed.",
    )


class BookConsultation(graphs.Hold):
    """Book the best-scored clinician."""

    name = "book_consultation"
    queries = (
        "Book {minutes} minutes with the best-scored clinician in {department} at {hospital} on {date} for patient "
        "{patient_id}, as early as possible.",
        "For {patient_id}: the earliest appointment of {minutes} minutes on {date} with the clinician who has the "
        "top score in {department} at {hospital}, please.",
        "{patient_id} has to be seen for {minutes} minutes in {department} at {hospital} on {date}. Book the first "
        "opening that is long enough with the highest-scored clinician.",
        "On {date}, get {patient_id} in for {minutes} minutes with the best clinician by patient score in "
        "{department} at {hospital}, in the earliest opening that fits. No lab work.",
    )


class BookConsultationAsked(graphs.HoldAsked):
    """Book the best-scored clinician; the user leaves out the date or the number of minutes."""

    name = "book_consultation_asked"
    queries = (
        "Book {minutes} minutes with the best-scored clinician in {department} at {hospital} on {date} for patient "
        "{patient_id}, as early as possible.",
        "{patient_id} needs {minutes} minutes with the highest-scored clinician in {department} at {hospital} on "
        "{date}. Book the earliest opening that is long enough.",
        "Please make an appointment for {patient_id} at {hospital}: {department}, {minutes} minutes, on {date}, with "
        "whoever has the top patient score, in the first opening that fits.",
        "On {date} I want {patient_id} to be seen in {department} at {hospital} for {minutes} minutes, by the "
        "clinician with the best score and as early as possible.",
    )


class LabVisit(graphs.Book):
    """Book the best-scored clinician and order a lab panel."""

    name = "lab_visit"
    queries = (
        "Book {minutes} minutes with the best-scored clinician in {department} at {hospital} on {date} for "
        "{patient_id}, earliest opening, and order the {panel} panel for it.",
        "{patient_id} wants the first opening with room for {minutes} minutes on {date} with the highest-scored "
        "clinician in {department} at {hospital}; add the {panel} panel.",
        "Please order the {panel} panel with a new appointment for {patient_id}: {department} at {hospital}, the "
        "clinician with the top patient score, {date}, {minutes} minutes, as early as possible.",
        "On {date}, patient {patient_id} should see the best clinician by score in {department} at {hospital} for "
        "{minutes} minutes, in the earliest opening that fits. Have the {panel} panel ordered too.",
    )


class FullyBooked(graphs.Full):
    """Book a clinician and order a lab panel on a day without openings: to be refused."""

    name = "fully_booked"
    queries = LabVisit.queries


class LapsedCover(graphs.Barred):
    """Book a clinician and order a lab panel for a patient without cover: to be refused."""

    name = "lapsed_cover"
    queries = LabVisit.queries


class CheapestLabVisit(graphs.Thrift):
    """Book the clinician with the lowest fee and order a lab panel."""

    name = "cheapest_lab_visit"
    queries = (
        "Book {minutes} minutes with the clinician who has the lowest fee in {department} at {hospital} on {date} "
        "for {patient_id}, earliest opening, and order the {panel} panel for it.",
        "Money is short for {patient_id}: take the cheapest clinician in {department} at {hospital} on {date}, the "
        "first opening with room for {minutes} minutes, and add the {panel} panel.",
        "Find out who charges least in {department} at {hospital}. Then book {patient_id} in on {date} for {minutes} "
        "minutes, as early as possible, with the {panel} panel ordered.",
        "Please order the {panel} panel with a new appointment for {patient_id}: {department} at {hospital}, the "
        "least expensive clinician, {date}, {minutes} minutes, in the earliest opening that fits.",
    )


class CheapestLabVisitLapsed(graphs.ThriftBarred):
    """Book the clinician with the lowest fee for a patient without cover: to be refused."""

    name = "cheapest_lab_visit_lapsed"
    queries = CheapestLabVisit.queries


class CalmerDay(graphs.Outing):
    """Book and order a lab panel on the day with the shorter wait."""

    name = "calmer_day"
    queries = (
        "Book {minutes} minutes with the best-scored clinician in {department} at {hospital} on {date} or "
        "{other_date}, whichever has the shorter wait, for {patient_id}; earliest opening, and order the {panel} "
        "panel.",
        "Check the ward load of {hospital}: on the calmer of {date} and {other_date}, by waiting minutes, get "
        "{patient_id} in with the highest-scored clinician of {department} for {minutes} minutes, as early as "
        "possible, with the {panel} panel ordered.",
        "{patient_id} can come on {date} or {other_date}. Take the day with the lower wait at {hospital}, book the "
        "first opening with room for {minutes} minutes with the top-scored clinician in {department}, and add the "
        "{panel} panel.",
        "The {panel} panel and an appointment, please, for {patient_id}: {department} at {hospital}, {date} or "
        "{other_date} depending on when the ward wait is shorter, {minutes} minutes with the clinician patients "
        "score highest, earliest opening that fits.",
    )


class MoveConsultation(graphs.Shift):
    """Move an appointment to another date."""

    name = "move_consultation"
    queries = (
        "Move the appointment of {patient_id} on {date} to {new_date}, earliest opening that is long enough.",
        "{patient_id} can't make it on {date}. Please reschedule that appointment to {new_date} with the same "
        "clinician, as early as possible.",
        "I am {patient_id}. Shift my consultation from {date} to the first opening that fits on {new_date}.",
        "Change the appointment that patient {patient_id} has on {date}: it should be on {new_date}, same length, at "
        "the earliest time the clinician can offer.",
    )


class TotalFees(graphs.Total):
    """The sum of fees over a patient's appointments."""

    name = "total_fees"
    queries = (
        "Add up the fees of all clinicians that patient {patient_id} has appointments with (leave out what is "
        "cancelled).",
        "What do the appointments of {patient_id} cost in total, going by each clinician's fee and not counting "
        "cancelled ones?",
        "For {patient_id}: sum the clinician's fee over every appointment that is not cancelled.",
        "{patient_id} wants to know what to set aside. How much are the fees together for the appointments that "
        "still stand?",
    )


class QuickestReferral(graphs.Closest):
    """The clinician of a department to whom a referral takes the fewest days."""

    name = "quickest_referral"
    queries = (
        "To which clinician in {department} at {hospital} does a referral from {from_clinician} take the fewest days?",
        "{from_clinician} is referring me to {department} at {hospital}. Which clinician there would take me soonest?",
        "Find the clinician in {department} at {hospital} with the shortest referral time from {from_clinician}.",
        "I am a patient of {from_clinician}. Who in {department} at {hospital} can be reached by referral in the "
        "least time?",
    )


class SwapConsultation(graphs.Rebook):
    """Replace an appointment by another with a lab panel, and say how many are left."""

    name = "swap_consultation"
    queries = (
        "{patient_id} wants to swap: cancel the appointment on {date} and book the best-scored clinician in "
        "{department} at {hospital} on {new_date} instead, {minutes} minutes, earliest opening, with the {panel} "
        "panel ordered. How many appointments are not cancelled then?",
        "Instead of the consultation on {date}, {patient_id} should see the highest-scored clinician of {department} "
        "at {hospital} on {new_date}: {minutes} minutes as early as possible, add the {panel} panel, and cancel the "
        "old appointment. Then tell me the number of appointments that still stand.",
        "For {patient_id}: replace what is booked on {date} by the top-scored clinician in {department} at "
        "{hospital} on {new_date} (first opening with room for {minutes} minutes, {panel} panel). Afterwards, how many "
        "appointments are left that are not cancelled?",
        "Please drop the appointment {patient_id} has on {date}. In its place comes {new_date} with the clinician "
        "patients score highest in {department} at {hospital}, for {minutes} minutes in the earliest opening that "
        "fits, and the {panel} panel. How many live appointments does that make?",
    )


FAMILIES: tuple[type[graphs.Graph], ...] = (
    BestFee, BestFeeAsked, PrescriptionCount, CheaperOfClinicians, EarliestOpening, CancelConsultation, FullyBooked,
    BookConsultation, BookConsultationAsked, LabVisit, MoveConsultation, TotalFees, QuickestReferral, LapsedCover,
    CheapestLabVisit, CalmerDay, SwapConsultation, CheapestLabVisitLapsed,
)  # fmt: skip

MEDICAL = Medical()
domains.add(MEDICAL.name, MEDICAL)
