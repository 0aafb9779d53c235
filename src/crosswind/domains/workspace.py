"""A workplace with teams, colleagues and their calendars, files, mail, meetings and invitations.

A colleague belongs to one team and has one role. A meeting takes a free slot of a colleague's calendar whole, needs a
passcode that another tool issues and an organiser whose account is active, and stays tentative until its invitation is
sent. A mail may carry a file; a file can be shared unless it is confidential. All names and numbers are made up from
the world's seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date as Date
from datetime import timedelta
from functools import lru_cache
from random import Random
from typing import Any, ClassVar

from crosswind.base.errors import ToolFailure
from crosswind.core.domain import Detail, Gathering, edit, read_choice, read_counts, read_ids, shifted_number
from crosswind.core.flow import digest
from crosswind.core.names import Namer, Numbering, dates_from, made_of, unused
from crosswind.core.registry import domains
from crosswind.core.types import Brief, Changes, Refusal, Row, Solution, Split, Task, ToolCall
from crosswind.core.world import Derive, State, World, brief_of, tool
from crosswind.domains import graphs, notes
from crosswind.domains.graphs import Booking, Desk, Slot, Terms, Thing
from crosswind.text import values
from crosswind.text.answers import Expected

ROLES: dict[str, tuple[str, ...]] = {  # with other words for them
    "accountant": ("bookkeeper",),
    "analyst": (),
    "designer": (),
    "developer": ("programmer",),
    "editor": (),
    "lawyer": ("attorney",),
    "recruiter": (),
    "translator": (),
}
TOPICS = (
    *("audit", "branding", "budget", "contract", "hiring", "launch"),
    *("offsite", "onboarding", "pricing", "roadmap", "security", "survey"),
)
TITLES = ("draft", "handbook", "minutes", "plan", "proposal", "report", "slides", "summary")
SEATS = (3, 4, 6, 8, 10, 12)  # of the rooms that slots come with
NINE, APART = 540, 90  # minutes: when slots begin, and from one to the next
PER_TEAM, DAYS, SLOTS, HELD, FILES, MAILS = 24, 10, 5, 5, 7, 9
ATTACHED = 3  # only the first files of a colleague go round by mail; everybody has as many
SPREAD = 20_000_161  # prime, 11 beyond a multiple of DAYS * SLOTS: a user's meetings lie on different days

TEAM = Namer((("crew", "pod", "guild", "squad"), ("corps", "cell", "bureau"), ("troupe", "unit", "studio", "loft")), 19)
CONTACT = Namer(
    (("croft", "garth", "hurst", "combe"), ("thorpe", "shaw", "stead"), ("gaard", "holm", "nagh", "brook")), 61
)
USER = Namer((("ling", "kamp", "pelt", "dahl"), ("tzky", "loch", "bury"), ("gast", "rath", "mond", "quell")), 67)
CONTACT_ID, USER_ID = Numbering("CON", 6), Numbering("USR", 6)
SLOT_ID, MEETING_ID = Numbering("CAL", 8), Numbering("MTG", 7)
FILE_ID, MAIL_ID = Numbering("FIL", 7), Numbering("EML", 7)


def calendar(seed: int) -> list[str]:
    """The dates for which calendars are open."""
    return dates_from(2033, 3, 7, seed * 17 % 280, DAYS)


def clock(j: int, late: int) -> str:
    """The time of the j-th slot of a day, some quarters of an hour late."""
    hour, minute = divmod(NINE + APART * j + 15 * late, 60)
    return f"{hour:02d}:{minute:02d}"


def contacts_of(size: int) -> int:
    return max(1, size // PER_TEAM) * PER_TEAM


def slot_of(seed: int, size: int, n: int) -> int:
    """The slot that the seed gives to its n-th meeting; no two get the same."""
    return (n * SPREAD + seed * 31) % (contacts_of(size) * DAYS * SLOTS)


def in_slot(seed: int, size: int, slot: int) -> int:
    """Which of the seed's meetings lies in a slot, if it exists at all."""
    slots = contacts_of(size) * DAYS * SLOTS
    return (slot - seed * 31) * _back(slots) % slots


@lru_cache(maxsize=64)
def _back(slots: int) -> int:
    return pow(SPREAD, -1, slots)


def rows(seed: int, size: int, split: Split) -> Derive:
    """Any row of a world, made from its seed alone."""
    contacts = contacts_of(size)
    dates = calendar(seed)

    def team(n: int) -> str:
        return TEAM.name(split, seed, n % (contacts // PER_TEAM))

    def contact(id: str) -> Row | None:
        n = CONTACT_ID.number(split, seed, id)
        if n is None or n >= contacts:
            return None
        h = digest(split, seed, "contact", n)
        return {
            "name": CONTACT.name(split, seed, n),
            "team": team(n // PER_TEAM),
            "role": tuple(ROLES)[h[0] % len(ROLES)],
            "skill": round(1 + (h[1] * 256 + h[2]) % 901 / 100, 2),
            "open_tasks": 1 + h[3] % 60,
            "floor": 1 + h[4] % 20,
            "offset": h[5] % 20 - 8,
        }

    def slot(id: str) -> Row | None:
        n = SLOT_ID.number(split, seed, id)
        if n is None or n >= contacts * DAYS * SLOTS:
            return None
        day, j = divmod(n, SLOTS)
        at, d = divmod(day, DAYS)
        h = digest(split, seed, "slot", n)
        seats = SEATS if in_slot(seed, size, n) < size * HELD else (0, 0, *SEATS)  # 0: out of office
        return {
            "contact_id": CONTACT_ID.id(split, seed, at),
            "date": dates[d],
            "time": clock(j, h[0] % 4),
            "seats": seats[h[1] % len(seats)],
        }

    def user(id: str) -> Row | None:
        n = USER_ID.number(split, seed, id)
        if n is None or n >= size:
            return None
        h = digest(split, seed, "user", n)
        return {
            "name": USER.name(split, seed, n),
            "home_team": team(int.from_bytes(h[:4], "big")),
            "account": "active" if h[4] % 14 else "suspended",
        }

    def meeting(id: str) -> Row | None:
        n = MEETING_ID.number(split, seed, id)
        if n is None or n >= size * HELD:
            return None
        owner, k = divmod(n, HELD)
        if k >= 2 + digest(split, seed, "meetings", owner)[0] % (HELD - 1):
            return None
        g = digest(split, seed, "meeting", n)
        slot_id = SLOT_ID.id(split, seed, slot_of(seed, size, n))
        return {
            "user_id": USER_ID.id(split, seed, owner),
            "slot_id": slot_id,
            "attendees": 2 + g[0] % ((slot(slot_id) or {})["seats"] - 1),
            "status": "cancelled" if k and g[1] % 8 == 0 else "invited" if g[1] % 2 else "tentative",
            "mailbox": f"box-{int.from_bytes(g[2:4], 'big') % 10000:04d}" if g[1] % 2 else "",
        }

    def file(id: str) -> Row | None:
        n = FILE_ID.number(split, seed, id)
        if n is None or n >= contacts * FILES:
            return None
        owner, k = divmod(n, FILES)
        if k >= ATTACHED + digest(split, seed, "files", owner)[0] % (FILES - ATTACHED + 1):
            return None
        h = digest(split, seed, "file", n)
        return {
            "owner_id": CONTACT_ID.id(split, seed, owner),
            "title": TITLES[h[0] % len(TITLES)],
            "pages": 2 + h[1] % 70,
            "edited": (Date(2032, 1, 1) + timedelta(days=h[2])).isoformat(),
            "access": "open" if h[3] % 9 else "confidential",
        }

    def mail(id: str) -> Row | None:
        n = MAIL_ID.number(split, seed, id)
        if n is None or n >= size * MAILS:
            return None
        owner, k = divmod(n, MAILS)
        h = digest(split, seed, "mails", owner)
        if k >= MAILS - h[0] % 5:
            return None
        g = digest(split, seed, "mail", n)
        user_id = USER_ID.id(split, seed, owner)
        home = TEAM.number(split, seed, (user(user_id) or {})["home_team"]) or 0
        sender = home * PER_TEAM + (h[1] + 7 * (g[0] % 4)) % PER_TEAM  # one of four in the home team
        return {
            "user_id": user_id,
            "sender_id": CONTACT_ID.id(split, seed, sender),
            "topic": TOPICS[(h[2] + 5 * k) % len(TOPICS)],  # no two mails to a user are about the same
            "date": (Date(2033, 1, 1) + timedelta(days=g[1] % 60)).isoformat(),
            "status": "unread" if g[2] % 2 else "read",
            "file_id": FILE_ID.id(split, seed, sender * FILES + g[3] % ATTACHED) if g[4] % 4 else "",
        }

    def load(id: str) -> Row | None:
        h = digest(split, seed, "load", id)
        return {"busy_percent": 2 + h[0] % 97, "away": h[1] % 12}

    made = {
        "contacts": contact,
        "slots": slot,
        "users": user,
        "meetings": meeting,
        "files": file,
        "mails": mail,
        "loads": load,
    }
    return lambda table, id: made[table](id) if table in made else None


def message_of(meeting_id: str, mailbox: str) -> str:
    return made_of("MSG", 7, "invitation", meeting_id, mailbox)


def passcode_of(slot_id: str, user_id: str) -> str:
    return made_of("PAS", 6, "passcode", slot_id, user_id)


def link_of(file_id: str) -> str:
    return made_of("LNK", 7, "link", file_id)


# ---------------------------------------------------------------- what belongs to what


def contacts_in(state: State, team: str) -> list[str] | None:
    """The colleagues of a team, or None where there is no such team."""
    return _contacts_in(state.split, state.seed, state.size, team)


@lru_cache(maxsize=4096)
def _contacts_in(split: Split, seed: int, size: int, team: str) -> list[str] | None:
    n = TEAM.number(split, seed, team)
    if n is None or n >= contacts_of(size) // PER_TEAM:
        return None
    return [CONTACT_ID.id(split, seed, n * PER_TEAM + k) for k in range(PER_TEAM)]


def slots_of(state: State, contact_id: str, date: str) -> list[str]:
    n, dates = CONTACT_ID.number(state.split, state.seed, contact_id), calendar(state.seed)
    if n is None or date not in dates:
        return []
    first = (n * DAYS + dates.index(date)) * SLOTS
    return [SLOT_ID.id(state.split, state.seed, first + j) for j in range(SLOTS)]


def meetings_of(state: State, user_id: str) -> list[str]:
    """What a user organises, first what the seed gives."""
    n = USER_ID.number(state.split, state.seed, user_id)
    ids = [] if n is None else [MEETING_ID.id(state.split, state.seed, n * HELD + k) for k in range(HELD)]
    ids = [id for id in ids if state.row("meetings", id) is not None]
    new = (id for id, row in state.written("meetings") if row["user_id"] == user_id)
    return [*ids, *(id for id in new if id not in ids)]


def files_of(state: State, contact_id: str) -> list[str]:
    """The files that a colleague owns."""
    n = CONTACT_ID.number(state.split, state.seed, contact_id)
    ids = [] if n is None else [FILE_ID.id(state.split, state.seed, n * FILES + k) for k in range(FILES)]
    return [id for id in ids if state.row("files", id) is not None]


def mails_of(state: State, user_id: str) -> list[str]:
    """The mails in a user's inbox."""
    n = USER_ID.number(state.split, state.seed, user_id)
    ids = [] if n is None else [MAIL_ID.id(state.split, state.seed, n * MAILS + k) for k in range(MAILS)]
    return [id for id in ids if state.row("mails", id) is not None]


def takers(state: State, slot_id: str) -> list[str]:
    """The live meetings that take a slot: never more than one in a sound world."""
    edited = ((id, row) for (table, id), row in state.edits.items() if table == "meetings" and row is not None)
    ids = dict.fromkeys(id for id, row in (*edited, *state.written("meetings")) if row["slot_id"] == slot_id)
    n = SLOT_ID.number(state.split, state.seed, slot_id)
    if n is not None and (taken := in_slot(state.seed, state.size, n)) < state.size * HELD:
        ids[MEETING_ID.id(state.split, state.seed, taken)] = None
    found = ((id, state.row("meetings", id)) for id in ids)
    return [id for id, row in found if row and row["slot_id"] == slot_id and row["status"] != "cancelled"]


def free(state: State, slot_id: str, seats: int) -> int:
    """Seats that a slot offers: those of its room, or none once it is taken."""
    return 0 if takers(state, slot_id) else seats


def new_id(state: State, slot_id: str, user_id: str) -> str:
    """An id made of what is scheduled, and of how often it was before."""
    mine = (slot_id, user_id)
    times = sum((row["slot_id"], row["user_id"]) == mine for _, row in state.written("meetings"))
    return unused(lambda id: state.row("meetings", id) is not None, "MTG", 7, "schedule", *mine, times=times)


def shared(file_id: str, reader_id: str) -> Changes:
    """What sharing a file leaves behind."""
    return {("shares", f"{file_id}|{reader_id}"): {"link": link_of(file_id)}}


def not_shared(state: State, file_id: str, reader_id: str) -> str | None:
    """Why a file may not be shared with somebody, or None."""
    file = state.row("files", file_id)
    if file is None:
        return f"there is no file {brief_of(file_id)}"
    if state.row("contacts", reader_id) is None:
        return f"there is no contact {brief_of(reader_id)}"
    if file["access"] != "open":
        return f"file {file_id} is {file['access']}"
    return f"file {file_id} belongs to {reader_id}" if file["owner_id"] == reader_id else None


# ---------------------------------------------------------------- tools


class WorkspaceWorld(World):
    invariants = (
        "meetings.slot_id",
        "meetings.user_id",
        "meetings.attendees",
        "meetings.status",
        "slots.seats",
        "slots.contact_id",
        "users.account",
        "passcodes.passcode",
        "files.access",
        "files.owner_id",
    )

    def broken(self) -> str | None:
        state = self.state
        for id, row in state.written("meetings"):
            before = state.start("meetings", id)
            if row["status"] == "cancelled" or (before is not None and before["slot_id"] == row["slot_id"]):
                continue
            slot_id, user_id = row["slot_id"], row["user_id"]
            slot, user = state.row("slots", slot_id), state.row("users", user_id)
            if slot is None or state.row("contacts", slot["contact_id"]) is None:
                return f"there is no slot {slot_id}"
            if user is None or user["account"] != "active":
                return f"the account of {user_id} is suspended"
            if state.row("passcodes", f"{slot_id}|{user_id}") is None:
                return f"no passcode was issued to {user_id} for {slot_id}"
            if row["attendees"] > slot["seats"]:
                return f"the room of {slot_id} has not enough seats"
            if len(takers(state, slot_id)) > 1:
                return f"slot {slot_id} is taken"
        for id, _ in state.written("shares"):
            file_id, _, reader_id = id.partition("|")
            if why := not_shared(state, file_id, reader_id):
                return why
        return None

    @tool(reads=["contacts.name,role,skill"], enums={"role": tuple(ROLES)})
    def find_contacts(self, team: str, role: str) -> list[Row]:
        """Colleagues of one role in a team, with skill scores."""
        ids = contacts_in(self.state, team)
        if ids is None:
            raise ToolFailure("not_found", f"There is no team {brief_of(team)}.")
        found = ((id, self.state.row("contacts", id)) for id in ids)
        return [
            {"contact_id": id, "name": row["name"], "skill": row["skill"]}
            for id, row in found
            if row is not None and row["role"] == role
        ]

    @tool(reads=["contacts.name,team,open_tasks,floor"])
    def contact_card(self, contact_id: str) -> Row:
        """Name, team, office floor and number of open tasks of a contact."""
        row = self.found("contacts", contact_id, "contact")
        return {c: row[c] for c in ("name", "team", "open_tasks", "floor")}

    @tool(reads=["files.title,pages,edited,access"])
    def list_files(self, contact_id: str) -> list[Row]:
        """Files that a contact owns: title, pages, last edit, access."""
        self.found("contacts", contact_id, "contact")
        found = ((id, self.found("files", id, "file")) for id in files_of(self.state, contact_id))
        return [{"file_id": id, **{c: row[c] for c in ("title", "pages", "edited", "access")}} for id, row in found]

    @tool(reads=["mails.sender_id,topic,date,status,file_id"])
    def list_mails(self, user_id: str) -> list[Row]:
        """A user's inbox: sender, topic, attached file, read or unread."""
        self.found("users", user_id, "user")
        found = ((id, self.found("mails", id, "mail")) for id in mails_of(self.state, user_id))
        columns = ("sender_id", "topic", "date", "status", "file_id")
        return [{"mail_id": id, **{c: row[c] for c in columns}} for id, row in found]

    @tool(reads=["loads.busy_percent,away"], docs={"date": "YYYY-MM-DD"})
    def team_load(self, team: str, date: str) -> Row:
        """How busy a team is on a date in percent, and how many are away."""
        if contacts_in(self.state, team) is None:
            raise ToolFailure("not_found", f"There is no team {brief_of(team)}.")
        row = self.found("loads", f"{team}|{self.day(date)}", "load")
        return {"busy_percent": row["busy_percent"], "away": row["away"]}

    @tool(reads=["contacts.offset"])
    def time_difference(self, from_contact: str, to_contact: str) -> Row:
        """Hours between the time zones of two contacts, by their ids."""
        one = self.found("contacts", from_contact, "contact")
        two = self.found("contacts", to_contact, "contact")
        return {"hours": abs(one["offset"] - two["offset"])}

    @tool(reads=["slots.time,seats", "meetings.slot_id,status"], docs={"date": "YYYY-MM-DD"})
    def free_slots(self, contact_id: str, date: str) -> list[Row]:
        """A contact's calendar on a date: time and room seats, 0 if taken."""
        self.found("contacts", contact_id, "contact")
        out: list[Row] = []
        for id in slots_of(self.state, contact_id, self.day(date)):
            row = self.found("slots", id, "slot")
            out.append({"slot_id": id, "time": row["time"], "seats": free(self.state, id, row["seats"])})
        return out

    @tool(reads=["users.name,home_team,account"])
    def user_record(self, user_id: str) -> Row:
        """Name, home team and account of a user."""
        row = self.found("users", user_id, "user")
        return {"name": row["name"], "home_team": row["home_team"], "account": row["account"]}

    @tool(reads=["meetings.slot_id,user_id,attendees,status", "slots.contact_id,date,time"])
    def list_meetings(self, user_id: str) -> list[Row]:
        """Meetings that a user organises, with date and status."""
        self.found("users", user_id, "user")
        return [self._shown(id) for id in meetings_of(self.state, user_id)]

    @tool(reads=[], writes=["passcodes+"], lasting=False)
    def request_passcode(self, slot_id: str, user_id: str) -> Row:
        """Issue the passcode that lets a user take a slot."""
        self.found("slots", slot_id, "slot")
        self.found("users", user_id, "user")
        passcode = passcode_of(slot_id, user_id)
        self.state.put("passcodes", f"{slot_id}|{user_id}", {"passcode": passcode})
        return {"passcode": passcode}

    @tool(
        reads=["passcodes.passcode", "meetings.slot_id,user_id"],
        writes=["meetings+", "meetings.status=tentative"],
        undo=("cancel_meeting", "meeting_id"),
    )
    def schedule_meeting(self, slot_id: str, user_id: str, attendees: int, passcode: str) -> Row:
        """Enter a tentative meeting; needs a passcode from {request_passcode}."""
        if not 1 <= attendees <= 100:
            raise ToolFailure("bad_arguments", f"'attendees' must be from 1 to 100, got {brief_of(str(attendees))}")
        self.found("slots", slot_id, "slot")
        self._check(slot_id, user_id, passcode)
        id = new_id(self.state, slot_id, user_id)
        made = {"user_id": user_id, "slot_id": slot_id, "attendees": attendees, "status": "tentative", "mailbox": ""}
        self.state.put("meetings", id, made)
        return {"meeting_id": id, "status": "tentative"}

    @tool(
        reads=["meetings.status,slot_id,user_id,attendees"],
        writes=["meetings.status=invited", "meetings.mailbox"],
        undo=("cancel_meeting", "meeting_id"),
    )
    def send_invitation(self, meeting_id: str, mailbox: str) -> Row:
        """Mail out the invitation for a tentative meeting."""
        row = self.found("meetings", meeting_id, "meeting")
        if row["status"] != "tentative":
            raise ToolFailure("conflict", f"Meeting {meeting_id} is {row['status']}, not tentative.")
        if not mailbox.startswith("box-") or len(mailbox) > 20:
            raise ToolFailure("bad_arguments", f"'mailbox' must look like box-1234, got {brief_of(mailbox)}")
        self.state.put("meetings", meeting_id, {**row, "status": "invited", "mailbox": mailbox})
        return {"meeting_id": meeting_id, "message_id": message_of(meeting_id, mailbox), "status": "invited"}

    @tool(reads=["meetings.status"], writes=["meetings.status=cancelled", "meetings.mailbox"])
    def cancel_meeting(self, meeting_id: str) -> Row:
        """Call off a meeting and withdraw its invitation."""
        row = self.found("meetings", meeting_id, "meeting")
        if row["status"] == "cancelled":
            raise ToolFailure("conflict", f"Meeting {meeting_id} is cancelled already.")
        self.state.put("meetings", meeting_id, {**row, "status": "cancelled", "mailbox": ""})
        return {"meeting_id": meeting_id, "status": "cancelled"}

    @tool(
        reads=["meetings.status,slot_id,user_id,attendees", "passcodes.passcode", "slots.contact_id"],
        writes=["meetings.slot_id"],
    )
    def reschedule_meeting(self, meeting_id: str, slot_id: str, passcode: str) -> Row:
        """Move a meeting to another slot of the same contact; needs a passcode from {request_passcode}."""
        row = self.found("meetings", meeting_id, "meeting")
        if row["status"] == "cancelled":
            raise ToolFailure("conflict", f"Meeting {meeting_id} is cancelled.")
        slot, old = self.found("slots", slot_id, "slot"), self.found("slots", row["slot_id"], "slot")
        if slot["contact_id"] != old["contact_id"]:
            raise ToolFailure("conflict", f"Slot {slot_id} belongs to another contact.")
        self._check(slot_id, row["user_id"], passcode)
        self.state.put("meetings", meeting_id, {**row, "slot_id": slot_id})
        return {"meeting_id": meeting_id, "slot_id": slot_id}

    @tool(reads=[], writes=["shares+"])
    def share_file(self, file_id: str, reader_id: str) -> Row:
        """Give a contact, the reader, access to a file; returns its link."""
        self.found("files", file_id, "file")
        self.found("contacts", reader_id, "contact")
        (((table, id), row),) = shared(file_id, reader_id).items()
        if self.state.row(table, id) is not None:
            raise ToolFailure("conflict", f"File {file_id} is shared with {reader_id} already.")
        self.state.put(table, id, row)
        return {"file_id": file_id, "link": link_of(file_id)}

    # -- parts

    def _check(self, slot_id: str, user_id: str, passcode: str) -> None:
        issued = self.state.row("passcodes", f"{slot_id}|{user_id}")
        if issued is None or issued["passcode"] != passcode:
            raise ToolFailure("refused", f"This is no passcode for {slot_id}; {{request_passcode}} issues one.")

    def _shown(self, id: str) -> Row:
        row = self.found("meetings", id, "meeting")
        slot = self.found("slots", row["slot_id"], "slot")
        return {
            "meeting_id": id,
            "contact_id": slot["contact_id"],
            "date": slot["date"],
            "time": slot["time"],
            "attendees": row["attendees"],
            "status": row["status"],
        }


# ---------------------------------------------------------------- the domain

_USER, _CONTACT, _MAILBOX = read_ids("USR", 6), read_ids("CON", 6), read_ids("box-", 4)
_TEAM, _NAME = TEAM.find, CONTACT.find
_ROLE, _TOPIC = read_choice(ROLES), read_choice(dict.fromkeys(TOPICS, ()))


class Workspace(Desk):
    name = "workspace"
    summary = "Teams, colleagues, calendars, files, mail, meetings and invitations."
    world_class = WorkspaceWorld
    named = frozenset({"contacts.name", "mails.topic"})
    namers: ClassVar[Mapping[str, Namer]] = {"group": TEAM, "thing": CONTACT, "person": USER}
    currency = False
    said: ClassVar[Mapping[str, str]] = {
        "fee": "{name} has {fee} open tasks.",
        "less": "{name} has fewer open tasks.",
        "total": "The total is {total} open tasks.",
        "held": "Scheduled for {time}: {booking}.",
        "done": "Invited for {time}: {receipt}.",
        "left": "Done; {count} meetings are planned now.",
        "none": "no meeting is planned on {date}",
    }
    policy = (
        "You assist people in an office with meetings, mail and files. Do what the user asks with the tools, and "
        "nothing else. Ask when a detail is missing. Tell the user what they asked for; for a meeting its number, for "
        "an invitation the message number, for a meeting that is moved the new time, for a file that is shared its "
        "link. If it cannot be done, leave nothing changed and say so."
    )
    terms = Terms(
        search="find_contacts", details="contact_card", entries="list_files", outlook="team_load",
        distance="time_difference", slots="free_slots", bookings="list_meetings", permit="request_passcode",
        hold="schedule_meeting", settle="send_invitation", cancel="cancel_meeting", move="reschedule_meeting",
        group="team", kind="role", thing="contact_id", date="date", who="user_id", need="attendees", slot="slot_id",
        booking="meeting_id", means="mailbox", code="passcode", source="from_contact", target="to_contact",
        score="skill", fee="open_tasks", amount="pages", figure="busy_percent", far="hours", room="seats",
        receipt="message_id", status="status", held="tentative", settled="invited",
    )  # fmt: skip
    details: Mapping[str, Detail] = {
        "group": Detail(
            "team", "Which team?", _TEAM, ("team", "group", "unit", "department", "where"), "a team I will name",
            record=("user_record", "user_id", "home_team"), column=("users", "home_team"),
        ),
        "kind": Detail(
            "role", "Which role should the colleague have?", _ROLE,
            ("role", "job", "profession", "position", "title", "kind", *ROLES), "colleague of a certain role",
        ),
        "date": Detail("date", "On which date?", values.dates, ("date", "day", "when", "time"), "a day I have in mind"),
        "new_date": Detail(
            "new date", "To which new date?", values.dates, ("new", "date", "day", "when"), "another day",
        ),
        "other_date": Detail("other date", "Which other date?", values.dates, ("other", "date", "day"), "another day"),
        "need": Detail(
            "number of attendees", "How many attendees?", read_counts,
            ("attendee", "participant", "people", "person", "many", "number", "seat", "size", "big", "large"), "a few",
        ),
        "floor": Detail(
            "least number of pages", "How many pages at least?", read_counts,
            ("page", "least", "many", "number", "minimum", "threshold", "long", "length"), "a few",
        ),
        "who": Detail(
            "user id", "What is the user id?", _USER,
            ("user", "id", "who", "whom", "whose", "organiser", "organizer", "account", "inbox"), "someone",
        ),
        "means": Detail(
            "mailbox", "From which mailbox?", _MAILBOX,
            ("mailbox", "box", "from", "address", "sender"), "a mailbox of mine",
        ),
        "source": Detail(
            "contact to compare with", "To which contact should the time difference be small?", _CONTACT,
            ("contact", "compare", "from", "difference", "zone", "id"), "a colleague of mine",
        ),
        "first": Detail("first colleague", "Who is the first colleague?", _NAME, ("first", "colleague"), "somebody"),
        "second": Detail("second colleague", "Who is the second colleague?", _NAME, ("second", "colleague"), "another"),
        "topic": Detail(
            "topic", "What is the mail about?", _TOPIC,
            ("topic", "about", "subject", "matter", "mail", "which"), "a certain matter",
        ),
        "reader": Detail(
            "reader", "With which contact should the file be shared?", _CONTACT,
            ("reader", "share", "shared", "recipient", "contact", "whom", "who", "id"), "a colleague of mine",
        ),
        "owner": Detail(
            "owner of the file", "Whose file should be shared?", _CONTACT,
            ("owner", "whose", "owns", "contact", "file"), "a colleague of mine",
        ),
    }  # fmt: skip

    def __init__(self) -> None:
        made: list[graphs.Graph] = [family().bind(self) for family in FAMILIES]
        self.families = {family.name: family for family in made}

    def derive(self, seed: int, size: int, split: Split) -> Derive:
        return rows(seed, size, split)

    def normalise(self, state: State) -> Changes:
        out: Changes = {}
        for (table, id), row in state.changes().items():
            if table == "passcodes":
                continue
            if table == "meetings" and row is not None and state.start(table, id) is None:
                if row["status"] == "cancelled":
                    continue
                id = f"new {row['slot_id']} {row['user_id']}"  # a slot is taken once: no two are alike
            out[table, id] = row
        return out

    def vary(self, task: Task, table: str, column: str, value: Any, salt: object) -> Any:
        split, seed = task.split, task.seed
        match f"{table}.{column}":
            case "contacts.name":
                n, last = CONTACT.number(split, seed, value) or 0, CONTACT.capacity(split) - 1
                return CONTACT.name(split, seed, shifted_number(n, salt, 0, last, 1))
            case "mails.topic":
                return TOPICS[shifted_number(TOPICS.index(value), salt, 0, len(TOPICS) - 1, 1)]
            case "mails.status":
                return ("unread", "read")[digest("vary", salt)[0] % 2]
            case "mails.sender_id":  # another member of the same team
                team, k = divmod(CONTACT_ID.number(split, seed, value) or 0, PER_TEAM)
                return CONTACT_ID.id(split, seed, team * PER_TEAM + shifted_number(k, salt, 0, PER_TEAM - 1, 1))
            case "mails.file_id" if value:  # another file of the same owner
                owner, k = divmod(FILE_ID.number(split, seed, value) or 0, FILES)
                return FILE_ID.id(split, seed, owner * FILES + shifted_number(k, salt, 0, ATTACHED - 1, 1))
            case "slots.time":  # by quarters of an hour, so that slots stay apart
                j, late = divmod(60 * int(value[:2]) + int(value[3:]) - NINE, APART)
                return clock(j, shifted_number(late // 15, salt, 0, 3, 1))
            case "meetings.slot_id":
                return self.elsewhere(task, value, salt)
            case "meetings.attendees":  # never more than its room has seats for
                return shifted_number(value, salt, 2, value, 1) if value > 2 else value
        moves = {
            "contacts.skill": (1.0, 10.0, 0.01),
            "contacts.open_tasks": (1, 60, 1),
            "contacts.offset": (-8, 11, 1),
            "files.pages": (2, 71, 1),
            "loads.busy_percent": (2, 98, 1),
            "slots.seats": (SEATS[0], SEATS[-1], 1),
        }.get(f"{table}.{column}")
        if moves is None or (table == "slots" and not value):
            return value
        return shifted_number(value, (table, column, salt), *moves)

    def elsewhere(self, task: Task, slot_id: str, salt: object) -> str:
        """A slot on the same date with the largest room, in which the seed puts nothing."""
        split, seed, size = task.split, task.seed, task.size
        row = self.derive(seed, size, split)
        n = SLOT_ID.number(split, seed, slot_id) or 0
        at, d = divmod(n // SLOTS, DAYS)
        contacts = contacts_of(size)
        start = shifted_number(at, salt, 0, contacts - 1, 1)
        for step in range(contacts):
            first = ((start + step) % contacts * DAYS + d) * SLOTS
            for n in range(first, first + SLOTS):
                id = SLOT_ID.id(split, seed, n)
                if in_slot(seed, size, n) >= size * HELD and (row("slots", id) or {})["seats"] == SEATS[-1]:
                    return id
        return slot_id

    # -- rows for the graphs

    def things(self, state: State, group: str, kind: str) -> list[Thing]:
        found = ((id, state.row("contacts", id)) for id in contacts_in(state, group) or ())
        return [
            Thing(id, row["name"], row["skill"], row["open_tasks"]) for id, row in found if row and row["role"] == kind
        ]

    def thing(self, state: State, id: str) -> Thing | None:
        row = state.row("contacts", id)
        return Thing(id, row["name"], row["skill"], row["open_tasks"]) if row else None

    def amounts(self, state: State, thing: str) -> list[int]:
        return [row["pages"] for id in files_of(state, thing) if (row := state.row("files", id))]

    def figure(self, state: State, group: str, date: str) -> int:
        row = state.row("loads", f"{group}|{date}")
        return int(row["busy_percent"]) if row else 0

    def far(self, state: State, source: str, target: str) -> int:
        one, two = state.row("contacts", source), state.row("contacts", target)
        return abs(int(one["offset"]) - int(two["offset"])) if one and two else 0

    def slots(self, state: State, thing: str, date: str) -> list[Slot]:
        found = ((id, state.row("slots", id)) for id in slots_of(state, thing, date))
        made = [Slot(id, row["time"], free(state, id, row["seats"])) for id, row in found if row]
        return sorted(made, key=lambda s: s.time)

    def bookings(self, state: State, who: str) -> list[Booking]:
        out = []
        for id in meetings_of(state, who):
            row = state.row("meetings", id)
            slot = row and state.row("slots", row["slot_id"])
            if row and slot:
                live = row["status"] != "cancelled"
                out.append(Booking(id, row["slot_id"], slot["contact_id"], slot["date"], row["attendees"], live))
        return out

    def made(self, state: State, slot: str, who: str, need: int, means: str | None) -> Changes:
        row = {
            "user_id": who,
            "slot_id": slot,
            "attendees": need,
            "status": "invited" if means else "tentative",
            "mailbox": means or "",
        }
        passcode = {"passcode": passcode_of(slot, who)}
        return {("meetings", new_id(state, slot, who)): row, ("passcodes", f"{slot}|{who}"): passcode}

    def ended(self, state: State, booking: str) -> Changes:
        row = state.row("meetings", booking) or {}
        return {("meetings", booking): {**row, "status": "cancelled", "mailbox": ""}}

    def moved(self, state: State, booking: str, slot: str) -> Changes:
        row = state.row("meetings", booking) or {}
        who = row["user_id"]
        passcode = {"passcode": passcode_of(slot, who)}
        return {("meetings", booking): {**row, "slot_id": slot}, ("passcodes", f"{slot}|{who}"): passcode}

    def new_bookings(self, end: State) -> list[tuple[str, str | None]]:
        return [
            (id, message_of(id, row["mailbox"]) if row["mailbox"] else None)
            for id, row in end.written("meetings")
            if end.start("meetings", id) is None and row["status"] != "cancelled"
        ]

    def someone(self, rng: Random, state: State) -> tuple[str, str]:
        n = rng.randrange(state.size)
        for step in range(state.size):  # the next one whose account is active
            id = USER_ID.id(state.split, state.seed, (n + step) % state.size)
            row = state.row("users", id)
            if row and row["account"] == "active":
                return id, row["home_team"]
        return USER_ID.id(state.split, state.seed, n), TEAM.name(state.split, state.seed, 0)

    def allowed(self, state: State, who: str) -> bool:
        row = state.row("users", who)
        return row is not None and row["account"] == "active"

    def kinds(self) -> tuple[str, ...]:
        return tuple(ROLES)

    def dates(self, state: State) -> list[str]:
        return calendar(state.seed)

    def means(self, rng: Random) -> str:
        return f"box-{rng.randrange(10000):04d}"

    def needs(self, rng: Random) -> int:
        return rng.randint(2, 8)

    def floors(self, rng: Random) -> int:
        return rng.randint(8, 60)

    def full(self, state: State, thing: str, date: str) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for id in slots_of(state, thing, date):
            out |= edit("slots", id, state.row("slots", id) or {}, seats=0)
        return out

    def barred(self, state: State, who: str) -> dict[str, Any]:
        return edit("users", who, state.row("users", who) or {}, account="suspended")

    def emptied(self, state: State, group: str, kind: str) -> dict[str, Any]:
        names = tuple(ROLES)
        other = names[(names.index(kind) + 1) % len(names)]
        out: dict[str, Any] = {}
        for thing in self.things(state, group, kind):
            out |= edit("contacts", thing.id, state.row("contacts", thing.id) or {}, role=other)
        return out

    def lost(self, state: State, booking: str) -> dict[str, Any]:
        return {f"meetings/{booking}": None}


# ---------------------------------------------------------------- families of the common graphs


class OpenTasks(graphs.Fact):
    """The number of open tasks of the most skilled colleague."""

    name = "open_tasks"
    house = ()  # a surcharge on tasks means nothing
    queries = (
        "How many open tasks does the most skilled {role} in {team} have?",
        "Find the {role} with the highest skill score in {team} and tell me how many tasks they have open.",
        "What is the number of open tasks of the best {role} by skill score in {team}?",
        "I want to ask the most skilled {role} of {team} for help. How many tasks are open on their side?",
        "In {team}, how many open tasks are with the {role} who has the top skill score?",
    )


class OpenTasksAsked(graphs.FactAsked):
    """The number of open tasks of the most skilled colleague; the user leaves out the team or the role."""

    name = "open_tasks_asked"
    house = ()  # a surcharge on tasks means nothing
    queries = (
        "How many open tasks does the most skilled {role} in {team} have?",
        "Please tell me how many tasks are open with the {role} who has the highest skill score in {team}.",
        "I need to know the workload of the best {role} by skill score in {team}: how many open tasks is it?",
        "Before I write to the most skilled {role} in {team}: how many open tasks do they have?",
    )


class LongFiles(graphs.Tally):
    """How many files of the most skilled colleague reach a number of pages."""

    name = "long_files"
    queries = (
        "How many files of at least {at_least} pages does the most skilled {role} in {team} own?",
        "Count the files with {at_least} pages or more that belong to the {role} with the highest skill score in "
        "{team}.",
        "Look up the best {role} by skill score in {team}: how many of their files have {at_least} or more pages?",
        "We are cleaning up the storage of {team}. How many files reach {at_least} pages in the folder of the most "
        "skilled {role}?",
    )


class LessBusyOfTwo(graphs.Versus):
    """Which of two named colleagues has fewer open tasks."""

    name = "less_busy_of_two"
    queries = (
        "Which {role} in {team} has fewer open tasks, {first} or {second}?",
        "I could give this to {first} or to {second}, who both work as {role} in {team}. Who has fewer tasks open?",
        "Compare the open tasks of {first} and {second} in the {role} job at {team}. Whose number is lower?",
        "We need some {role} from {team} who is not too busy. Does {first} or {second} have fewer open tasks?",
    )


class EarliestMeeting(graphs.NextSlot):
    """The earliest slot of the most skilled colleague with enough seats."""

    name = "earliest_meeting"
    queries = (
        "When is the earliest slot on {date} that the most skilled {role} in {team} has for a meeting of {attendees} "
        "people?",
        "On {date}, at what time can {attendees} of us first meet the {role} with the highest skill score in {team}?",
        "Look into the calendar of the best {role} by skill score in {team}: what is the first time on {date} with "
        "{attendees} seats?",
        "There will be {attendees} attendees. What is the earliest time on {date} that works for the most skilled "
        "{role} of {team}?",
    )


class CancelMeeting(graphs.Cancel):
    """Cancel the meeting on a date."""

    name = "call_off_meeting"
    queries = (
        "Cancel the meeting that {user_id} has on {date}.",
        "{user_id} is out of the office on {date}. Please cancel that day's meeting.",
        "I am {user_id}. Call off my meeting on {date}.",
        "Please take the meeting on {date} off the calendar of {user_id}; it is no longer needed.",
    )


class TentativeMeeting(graphs.Hold):
    """Schedule a meeting with the most skilled colleague, without an invitation."""

    name = "tentative_meeting"
    queries = (
        "Schedule a tentative meeting for {attendees} people with the most skilled {role} in {team} on {date}, as "
        "early as possible. The organiser is {user_id}.",
        "For {user_id}: pencil in the earliest slot with {attendees} seats on {date} with the {role} who has the "
        "highest skill score in {team}. Don't send anything yet.",
        "{user_id} wants to meet the best {role} by skill score in {team} on {date} with {attendees} attendees. Take "
        "the first slot that is large enough; no invitation for now.",
        "On {date}, put a meeting of {attendees} into the calendar of the most skilled {role} in {team}, in the "
        "earliest slot that fits, for {user_id}. The invitation can wait.",
    )


class TentativeMeetingAsked(graphs.HoldAsked):
    """Schedule a meeting with the most skilled colleague; the user leaves out the date or the number of attendees."""

    name = "tentative_meeting_asked"
    queries = (
        "Schedule a tentative meeting for {attendees} people with the most skilled {role} in {team} on {date}, as "
        "early as possible. The organiser is {user_id}.",
        "{user_id} needs the earliest slot with {attendees} seats on {date} with the {role} who has the highest skill "
        "score in {team}. Schedule it, without an invitation.",
        "Please pencil in a meeting for {user_id} with the best {role} by skill score in {team} on {date}: "
        "{attendees} attendees, the first slot that fits.",
        "On {date} I want {user_id} and others, {attendees} people in all, to meet the most skilled {role} in {team}. "
        "Schedule the earliest slot that has room; the invitation can wait.",
    )


class InvitedMeeting(graphs.Book):
    """Schedule a meeting with the most skilled colleague and send the invitation."""

    name = "invited_meeting"
    queries = (
        "Schedule a meeting for {attendees} people with the most skilled {role} in {team} on {date}, earliest slot, "
        "organised by {user_id}, and send the invitation from {mailbox}.",
        "{user_id} wants the first slot with {attendees} seats on {date} with the {role} who has the highest skill "
        "score in {team}; mail the invitation from {mailbox}.",
        "Please set up a meeting on {date} with the best {role} by skill score in {team} for {user_id}: {attendees} "
        "attendees, as early as possible, with the invitation going out from {mailbox}.",
        "Send an invitation from {mailbox} for a new meeting of {user_id} with the most skilled {role} of {team}: on "
        "{date}, in the earliest slot that has {attendees} seats.",
    )


class CalendarFull(graphs.Full):
    """Schedule a meeting and send the invitation on a day without free slots: to be refused."""

    name = "calendar_full"
    queries = InvitedMeeting.queries


class SuspendedAccount(graphs.Barred):
    """Schedule a meeting and send the invitation for a user whose account is suspended: to be refused."""

    name = "suspended_account"
    queries = InvitedMeeting.queries


class LeastBusyMeeting(graphs.Thrift):
    """Schedule a meeting with the least busy colleague and send the invitation."""

    name = "least_busy_meeting"
    queries = (
        "Schedule a meeting for {attendees} people with the {role} who has the fewest open tasks in {team} on {date}, "
        "earliest slot, organised by {user_id}, and send the invitation from {mailbox}.",
        "Find out which {role} in {team} has the fewest open tasks. Then get {user_id} and the others, {attendees} in "
        "all, a meeting there on {date} as early as possible and mail the invitation from {mailbox}.",
        "{user_id} wants to meet the least busy {role} of {team}, going by open tasks, on {date}: first slot with "
        "{attendees} seats, invitation from {mailbox}.",
        "Please send an invitation from {mailbox} for a new meeting of {user_id} on {date} with whichever {role} in "
        "{team} has the smallest number of open tasks; {attendees} attendees, in the earliest slot that fits.",
    )


class LeastBusyMeetingSuspended(graphs.ThriftBarred):
    """Schedule a meeting with the least busy colleague for a user whose account is suspended: to be refused."""

    name = "least_busy_meeting_suspended"
    queries = LeastBusyMeeting.queries


class QuieterDay(graphs.Outing):
    """Schedule a meeting and send the invitation on the day on which the team is less busy."""

    name = "quieter_day"
    queries = (
        "Schedule a meeting for {attendees} people with the most skilled {role} in {team} on {date} or {other_date}, "
        "whichever day the team is less busy, organised by {user_id}; earliest slot, invitation from {mailbox}.",
        "Check how busy {team} is: on the quieter of {date} and {other_date}, set up a meeting of {attendees} for "
        "{user_id} with the {role} who has the highest skill score, as early as possible, and mail the invitation from "
        "{mailbox}.",
        "{user_id} can meet on {date} or {other_date}. Take the day with the lower load in {team}, schedule the first "
        "slot with {attendees} seats with the best {role} by skill score and send the invitation from {mailbox}.",
        "Please invite from {mailbox} for {user_id}: the most skilled {role} of {team}, {date} or {other_date} "
        "depending on when the team is less busy, {attendees} attendees, in the earliest slot that fits.",
    )


class MoveMeeting(graphs.Shift):
    """Move a meeting to another date."""

    name = "move_meeting"
    queries = (
        "Move the meeting that {user_id} has on {date} to {new_date}, in the earliest slot with enough seats.",
        "{user_id} can't make it on {date}. Please reschedule that meeting to {new_date} with the same colleague, as "
        "early as possible.",
        "I am {user_id}. Shift my meeting from {date} to the first slot that fits on {new_date}.",
        "Change the meeting of {user_id} on {date}: it should take place on {new_date}, with the same people, at the "
        "earliest time there is room.",
    )


class TotalTasks(graphs.Total):
    """The sum of open tasks over the colleagues that a user meets."""

    name = "total_tasks"
    house = ()  # a surcharge on tasks means nothing
    queries = (
        "Add up the open tasks of all colleagues that {user_id} has meetings with (leave out what is cancelled).",
        "How many open tasks do the colleagues whom {user_id} is going to meet have in total, not counting cancelled "
        "meetings?",
        "For {user_id}: sum the open tasks of the colleague in every meeting that is not cancelled.",
        "{user_id} wants to know how loaded the people in the coming meetings are. How many open tasks do they have "
        "together? Cancelled meetings don't count.",
    )


class NearestTimeZone(graphs.Closest):
    """The colleague of a role whose time zone is nearest to that of another."""

    name = "nearest_time_zone"
    queries = (
        "Which {role} in {team} has the smallest time difference to {from_contact}?",
        "{from_contact} needs a partner in {team}. Which {role} there is closest by time zone?",
        "Find the {role} in {team} whose time zone is the fewest hours away from that of {from_contact}.",
        "I work with {from_contact}. Who is the {role} in {team} with the least time difference to them?",
    )


class SwapMeeting(graphs.Rebook):
    """Replace a meeting by another with an invitation, and say how many are left."""

    name = "swap_meeting"
    queries = (
        "{user_id} wants to swap: cancel the meeting on {date} and schedule the most skilled {role} in {team} on "
        "{new_date} instead, {attendees} attendees, earliest slot, invitation from {mailbox}. How many meetings are "
        "not cancelled then?",
        "Instead of the meeting on {date}, {user_id} should meet the {role} with the highest skill score in {team} on "
        "{new_date}: {attendees} seats, as early as possible, mail the invitation from {mailbox}, and call off the old "
        "meeting. Then tell me the number of meetings that still stand.",
        "For {user_id}: replace the meeting on {date} by a meeting with the best {role} by skill score in {team} on "
        "{new_date} (first slot for {attendees} people, invitation from {mailbox}). Afterwards, how many meetings are "
        "left that are not cancelled?",
        "Please drop the meeting {user_id} has on {date}. In its place comes {new_date} with the most skilled {role} "
        "of {team}, {attendees} attendees in the earliest slot that fits, and an invitation from {mailbox}. How many "
        "live meetings does that make?",
    )


# ---------------------------------------------------------------- families of mail and files


class Filing(graphs.Graph):
    """A family around mail and files; `own` are details that the common graphs do not have."""

    own: ClassVar[tuple[str, ...]] = ()
    keys: ClassVar[Mapping[str, str]] = {"topic": "topic", "reader": "reader_id", "owner": "owner_id"}

    def bind(self, domain: Desk) -> graphs.Graph:
        super().bind(domain)
        self._details |= {self.keys[role]: domain.details[role] for role in self.own}
        return self

    # -- parts of solutions

    def longest_of(self, owner: str) -> Gathering:
        rows = (yield ToolCall("list_files", {"contact_id": owner})).content
        file = max(rows, key=lambda r: int(r["pages"]))["file_id"]
        yield notes.choice({r["file_id"]: r["pages"] for r in rows}, file, "most")
        return file

    def share(self, file: str, reader: str) -> Gathering:
        return (yield ToolCall("share_file", {"file_id": file, "reader_id": reader})).content["link"]

    # -- parts of goals

    def longest(self, state: State, owner: str) -> str:
        pages = {id: row["pages"] for id in files_of(state, owner) if (row := state.row("files", id))}
        return max(pages, key=lambda id: pages[id])

    def clear(self, state: State, owner: str) -> bool:
        """Is one file of a colleague longer than all others?"""
        pages = sorted(self.domain.amounts(state, owner))
        return pages[-1] > pages[-2]

    def link(self, end: State) -> Expected:
        made = end.written("shares")
        return Expected("id", made[0][1]["link"] if made else "none")

    def sealed(self, state: State, files: list[str]) -> dict[str, Any]:
        """Edits after which files may not be shared."""
        out: dict[str, Any] = {}
        for id in files:
            out |= edit("files", id, state.row("files", id) or {}, access="confidential")
        return out


class UnreadMails(Filing):
    """How many unread mails of a user come from the most skilled colleague."""

    name, level = "unread_mails", 1
    roles = ("who", "kind", "group")
    stands = "search > mails (count of one sender)"
    queries = (
        "How many unread mails does {user_id} have from the most skilled {role} in {team}?",
        "Look into the inbox of {user_id}: how many mails by the {role} with the highest skill score in {team} are "
        "still unread?",
        "I am {user_id}. How many messages from the best {role} by skill score in {team} have I not read yet?",
        "Count what {user_id} has left unread of the mails that the most skilled {role} of {team} sent.",
    )

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        who, group = self.domain.someone(rng, state)
        kind = rng.choice(self.domain.kinds())
        ranked = sorted(self.domain.things(state, group, kind), key=lambda t: t.score, reverse=True)
        if len(ranked) < 2 or ranked[0].score == ranked[1].score:
            return None
        return self.stated(who, kind, group) if self.sent(state, who, ranked[0].id) else None

    def sent(self, state: State, who: str, sender: str) -> list[Row]:
        found = (state.row("mails", id) for id in mails_of(state, who))
        return [row for row in found if row and row["sender_id"] == sender]

    def solve(self, brief: Brief) -> Solution:
        t = self.t
        who, kind, group = yield from self.gather(brief)
        sender = yield from self.top(group, kind)
        if sender is None:
            return self.nothing(group, kind)
        mails = (yield ToolCall("list_mails", {t.who: who})).content
        theirs = [(m["status"], m["status"] == "unread") for m in mails if m["sender_id"] == sender[t.thing]]
        yield notes.count(theirs, f"from {sender[t.thing]}")
        return f"{sum(counts for _, counts in theirs)} from {sender[t.name]}."

    def sender(self, task: Task, start: State) -> Thing | None:
        _, kind, group = self.wanted(task, start)
        return graphs.best(self.domain.things(start, group, kind))

    def ends(self, task: Task, start: State) -> list[Changes]:
        return [{}] if self.sender(task, start) else []

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        sender = self.sender(task, start)
        if sender is None:
            return ()
        mails = self.sent(start, self.wanted(task, start)[0], sender.id)
        return (Expected("number", sum(m["status"] == "unread" for m in mails)),)

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        return [self.no_thing(task, state)]


class ShareLongest(Filing):
    """Share the longest file of the most skilled colleague."""

    name, level = "share_longest", 1
    roles = ("kind", "group")
    own = ("reader",)
    stands = "search > files (longest) > share"
    queries = (
        "Share the longest file of the most skilled {role} in {team} with {reader_id}.",
        "{reader_id} should be able to read the file with the most pages that the {role} with the highest skill score "
        "in {team} owns. Please share it.",
        "Find the best {role} by skill score in {team} and give {reader_id} access to the longest of their files.",
        "Let {reader_id} into whichever file of the most skilled {role} of {team} has the largest number of pages.",
    )

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        at = self.place(rng, state)
        best = at and graphs.best(at[2])
        readers = contacts_in(state, self.domain.someone(rng, state)[1])
        if not at or not best or not readers or not self.clear(state, best.id):
            return None
        return self.stated(at[1], at[0], rng.choice(readers))

    def solve(self, brief: Brief) -> Solution:
        kind, group, reader = yield from self.gather(brief)
        owner = yield from self.top(group, kind)
        if owner is None:
            return self.nothing(group, kind)
        file = yield from self.longest_of(owner[self.t.thing])
        link = yield from self.share(file, reader)
        return f"Shared: {link}."

    def owned(self, task: Task, start: State) -> Thing | None:
        kind, group, _ = self.wanted(task, start)
        return graphs.best(self.domain.things(start, group, kind))

    def ends(self, task: Task, start: State) -> list[Changes]:
        owner, reader = self.owned(task, start), self.wanted(task, start)[2]
        file = owner and self.longest(start, owner.id)
        return [shared(file, reader)] if file and not not_shared(start, file, reader) else []

    def hopes(self, task: Task, start: State) -> list[Changes]:
        """Any file of the owner might have been the longest."""
        owner, reader = self.owned(task, start), self.wanted(task, start)[2]
        return [shared(file, reader) for file in files_of(start, owner.id)] if owner else []

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        return (self.link(end),)

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        owner = self.owned(task, state)
        return [self.no_thing(task, state), *([self.sealed(state, files_of(state, owner.id))] if owner else [])]


class ConfidentialFile(ShareLongest):
    """Share the longest file of a colleague whose files are confidential: to be refused."""

    name = "confidential_file"
    refusal = True
    stands = "search > files (longest) > share (refused) > refuse"

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        owner = self.owned(task, state)
        return [self.sealed(state, files_of(state, owner.id))] if owner else []


class PassOnAttachment(Filing):
    """Share the file that came with a mail with the least busy colleague of a role."""

    name, level = "pass_on_attachment", 2
    roles = ("who", "kind", "group")
    own = ("topic",)
    stands = "mails > search > details, for each (least) > share"
    queries = (
        "Take the file attached to the mail about {topic} in the inbox of {user_id} and share it with the {role} who "
        "has the fewest open tasks in {team}.",
        "{user_id} got a mail about {topic}. Share its attachment with the least busy {role} in {team}, going by open "
        "tasks.",
        "I am {user_id}. Pass on what was attached to the {topic} mail: the {role} in {team} with the smallest number "
        "of open tasks should get access to that file.",
        "Which {role} in {team} has the fewest tasks open? Share with them the file that {user_id} received in the "
        "mail about {topic}.",
    )

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        at = self.place(rng, state, 2, 3)
        who, _ = self.domain.someone(rng, state)
        mails = [row for id in mails_of(state, who) if (row := state.row("mails", id)) and row["file_id"]]
        if at is None or not mails:
            return None
        tasks = sorted(t.fee for t in at[2])
        return None if tasks[0] == tasks[1] else self.stated(who, at[1], at[0], rng.choice(mails)["topic"])

    def solve(self, brief: Brief) -> Solution:
        t = self.t
        who, kind, group, topic = yield from self.gather(brief)
        mails = (yield ToolCall("list_mails", {t.who: who})).content
        mail = next((m for m in mails if m["topic"] == topic), None)
        if mail is None:
            return Refusal(f"there is no mail about {topic}")
        rows = yield from self.found(group, kind)
        if not rows:
            return self.nothing(group, kind)
        tasks = yield from self.fees(rows)
        reader = min(tasks, key=lambda id: tasks[id])
        yield notes.choice(tasks, reader, "least")
        link = yield from self.share(mail["file_id"], reader)
        return f"Shared: {link}."

    def mail(self, task: Task, start: State) -> tuple[str, Row] | None:
        who, _, _, topic = self.wanted(task, start)
        found = ((id, row) for id in mails_of(start, who) if (row := start.row("mails", id)))
        return next(((id, row) for id, row in found if row["topic"] == topic), None)

    def readers(self, task: Task, start: State) -> list[Thing]:
        """Colleagues who may be meant, the least busy first."""
        _, kind, group, _ = self.wanted(task, start)
        return sorted(self.domain.things(start, group, kind), key=lambda t: t.fee)

    def ends(self, task: Task, start: State) -> list[Changes]:
        mail, readers = self.mail(task, start), self.readers(task, start)
        if mail is None or not readers or not_shared(start, mail[1]["file_id"], readers[0].id):
            return []
        return [shared(mail[1]["file_id"], readers[0].id)]

    def hopes(self, task: Task, start: State) -> list[Changes]:
        """Any of the colleagues might have been the least busy."""
        mail = self.mail(task, start)
        return [shared(mail[1]["file_id"], t.id) for t in self.readers(task, start)] if mail else []

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        return (self.link(end),)

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        mail = self.mail(task, state)
        if mail is None:
            return []
        return [self.no_thing(task, state), {f"mails/{mail[0]}": None}, self.sealed(state, [mail[1]["file_id"]])]


class ExchangeFiles(Filing):
    """Let two named colleagues read each other's longest file."""

    name, level = "exchange_files", 2
    roles = ("kind", "group", "first", "second")
    stands = "search > files > files (longest) > share > share"
    queries = (
        "{first} and {second}, who share the {role} job in {team}, should be able to read each other's longest file. "
        "Please set up both.",
        "In {team}, let {first} and {second}, who both work as {role}, exchange their longest files: share each with "
        "the other.",
        "For a handover between the {role} colleagues of {team}, give {first} access to the longest file of {second}, "
        "and the other way round.",
        "People will be away, so the {role} desk in {team} needs cover: {first} and {second} each need access to the "
        "file of the other that has the most pages.",
    )

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        at = self.place(rng, state)
        pair = rng.sample(at[2], 2) if at else []
        if not at or not all(self.clear(state, t.id) for t in pair):
            return None
        return self.stated(at[1], at[0], *(t.name for t in pair))

    def solve(self, brief: Brief) -> Solution:
        t = self.t
        kind, group, *names = yield from self.gather(brief)
        rows = yield from self.found(group, kind)
        ids = {r[t.name]: r[t.thing] for r in rows}
        for name in names:
            if name not in ids:
                return Refusal(f"there is no {kind} called {name} in {group}")
        one, two = (ids[name] for name in names)
        theirs = yield from self.longest_of(one)
        others = yield from self.longest_of(two)
        first = yield from self.share(theirs, two)
        second = yield from self.share(others, one)
        return f"Shared both: {first} and {second}."

    def pair(self, task: Task, start: State) -> list[str]:
        """The two colleagues by their ids, or less where there is no such colleague."""
        kind, group, *names = self.wanted(task, start)
        ids = {t.name: t.id for t in self.domain.things(start, group, kind)}
        return [ids[name] for name in names if name in ids]

    def ends(self, task: Task, start: State) -> list[Changes]:
        pair = self.pair(task, start)
        if len(pair) < 2:
            return []
        given = [(self.longest(start, owner), reader) for owner, reader in (pair, pair[::-1])]
        if any(not_shared(start, file, reader) for file, reader in given):
            return []
        return [{**shared(*given[0]), **shared(*given[1])}]

    def hopes(self, task: Task, start: State) -> list[Changes]:
        """Any file might have been its owner's longest."""
        one, two = self.pair(task, start)
        return [
            {**shared(theirs, two), **shared(others, one)}
            for theirs in files_of(start, one)
            for others in files_of(start, two)
        ]

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        made = [row["link"] for _, row in end.written("shares")] or ["none"]
        return tuple(Expected("id", link) for link in made)

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        pair = self.pair(task, state)
        sealed = [self.sealed(state, files_of(state, id)) for id in pair[:1]]  # before anything is shared
        return [self.no_thing(task, state), *sealed]


class BriefedMeeting(Filing, graphs.Book):
    """Schedule a meeting with the most skilled colleague, send the invitation and share a file with them."""

    name, level = "briefed_meeting", 3
    own = ("owner",)
    stands = "search > slots > files (longest) > permit > hold > settle > share"
    queries = (
        "Schedule a meeting for {attendees} people with the most skilled {role} in {team} on {date}, earliest slot, "
        "organised by {user_id}, send the invitation from {mailbox}, and share the longest file of {owner_id} with "
        "that colleague.",
        "{user_id} wants the first slot with {attendees} seats on {date} with the {role} who has the highest skill "
        "score in {team}; mail the invitation from {mailbox}. As reading matter, share with them the file of "
        "{owner_id} that has the most pages.",
        "The best {role} by skill score in {team} should read the longest file that {owner_id} has: share it. And set "
        "up a meeting with them on {date} for {user_id}, {attendees} attendees, as early as possible, invitation from "
        "{mailbox}.",
        "Please invite from {mailbox}: {user_id} meets the most skilled {role} of {team} on {date}, {attendees} "
        "people, in the earliest slot that fits. Give the same colleague access to the longest file owned by "
        "{owner_id}.",
    )

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        at = self.place(rng, state)
        date, need = rng.choice(self.domain.dates(state)), self.domain.needs(rng)
        who, home = self.domain.someone(rng, state)
        owner = rng.choice(contacts_in(state, home) or [""])
        if at is None or not owner or not self.clear(state, owner):
            return None
        return self.stated(at[1], at[0], date, need, who, self.domain.means(rng), owner)

    def solve(self, brief: Brief) -> Solution:
        t = self.t
        kind, group, date, need, who, means, owner = yield from self.gather(brief)
        colleague = yield from self.top(group, kind)
        if colleague is None:
            return self.nothing(group, kind)
        slot = yield from self.earliest(colleague[t.thing], date, need, brief.rules)
        if slot is None:
            return self.no_room(date)
        file = yield from self.longest_of(owner)
        meeting = yield from self.hold(slot[t.slot], who, need)
        message = yield from self.settle(meeting, means)
        link = yield from self.share(file, colleague[t.thing])
        return f"The invitation for {slot[t.time]} is {message}, the link of the file {link}."

    def read(self, task: Task, start: State, files: list[str], ends: list[Changes]) -> list[Changes]:
        """Ends of the meeting together with each of some files shared."""
        at = self.target(task, start)
        return [{**end, **shared(file, at[0].id)} for end in ends for file in files] if at else []

    def ends(self, task: Task, start: State) -> list[Changes]:
        at, file = self.target(task, start), self.longest(start, self.wanted(task, start)[-1])
        if at is None or not_shared(start, file, at[0].id):
            return []
        return self.read(task, start, [file], super().ends(task, start))

    def hopes(self, task: Task, start: State) -> list[Changes]:
        return self.read(task, start, files_of(start, self.wanted(task, start)[-1]), super().hopes(task, start))

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        return (*super().answer(task, start, end), self.link(end))

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        files = files_of(state, self.wanted(task, state)[-1])
        return [*super().obstacles(task, state, rng), self.sealed(state, files)]


FAMILIES: tuple[type[graphs.Graph], ...] = (
    OpenTasks, OpenTasksAsked, LongFiles, LessBusyOfTwo, EarliestMeeting, CancelMeeting, CalendarFull,
    TentativeMeeting, TentativeMeetingAsked, InvitedMeeting, MoveMeeting, TotalTasks, NearestTimeZone,
    SuspendedAccount, LeastBusyMeeting, QuieterDay, SwapMeeting, LeastBusyMeetingSuspended,
    UnreadMails, ShareLongest, ConfidentialFile, PassOnAttachment, ExchangeFiles, BriefedMeeting,
)  # fmt: skip

WORKSPACE = Workspace()
domains.add(WORKSPACE.name, WORKSPACE)
