"""A workplace with teams, colleagues and their calendars, files, mail, meetings and invitations.

A colleague belongs to one team and has one role. A meeting takes a free slot of a colleague's calendar whole, needs a
passcode that another tool issues and an organiser whose account is active, and stays tentative until its invitation is
sent. A mail may carry a file; a file can be shared unless it is confidential. All names and numbers are made up from
the world's seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, ClassVar

from crosswind.base.errors import ToolFailure
from crosswind.core.domain import Gathering, Reader, read_choice, shifted_number
from crosswind.core.flow import digest
from crosswind.core.names import Numbering, made_of
from crosswind.core.registry import domains
from crosswind.core.state import State
from crosswind.core.types import Brief, Changes, Refusal, Row, Solution, Split, Task, ToolCall
from crosswind.core.world import brief_of, tool
from crosswind.domains import graphs, layout, notes, tools
from crosswind.domains.desk import Desk, ids_of
from crosswind.domains.layout import DAYS, HELD, PER_GROUP, SLOTS, Seed, SeedLike, Thing
from crosswind.domains.whole_records import WholeRecords
from crosswind.text.answers import Expected

TOPICS = (
    *("audit", "branding", "budget", "contract", "hiring", "launch"),
    *("offsite", "onboarding", "pricing", "roadmap", "security", "survey"),
)
FILES, MAILS = 7, 9  # of a colleague and of a user, at most
ATTACHED = 3  # only the first files of a colleague go round by mail; everybody has as many
SPREAD = 20_000_161  # prime, 11 beyond a multiple of DAYS * SLOTS: a user's meetings lie on different days
CONTACT_ID, FILE_ID, MAIL_ID = Numbering("CON", 6), Numbering("FIL", 7), Numbering("EML", 7)


class WorkspaceRecords(WholeRecords):
    # -- which slot the seed's meetings take

    def slot_of(self, at: SeedLike, n: int) -> int:
        return (n * SPREAD + at.seed * 31) % (self.groups(at.size) * PER_GROUP * DAYS * SLOTS)

    def taker(self, at: SeedLike, slot: int) -> int | None:
        slots = self.groups(at.size) * PER_GROUP * DAYS * SLOTS
        n = (slot - at.seed * 31) * layout.inverse(SPREAD, slots) % slots
        return n if n < at.size * HELD else None

    def need_of(self, g: bytes, room: int) -> int:
        return 2 + g[0] % (room - 1)

    # -- columns

    def slot_key(self, n: int, thing: int, d: int, j: int) -> tuple[int, ...]:
        return (n,)

    def far(self, state: State, source: str, target: str) -> int:
        one, two = state.row("contacts", source), state.row("contacts", target)
        return abs(int(one["offset"]) - int(two["offset"])) if one and two else 0

    def own_tables(self) -> dict[str, layout.Maker]:
        return {"mails": self.mail}

    def entry_row(self, at: Seed, id: str) -> Row | None:
        n = FILE_ID.number(at.split, at.seed, id)
        if n is None or n >= at.things * FILES:
            return None
        owner, k = divmod(n, FILES)
        if k >= ATTACHED + digest(at.split, at.seed, "files", owner)[0] % (FILES - ATTACHED + 1):
            return None
        h = digest(at.split, at.seed, "file", n)
        return {
            "owner_id": CONTACT_ID.id(at.split, at.seed, owner),
            **self.drawn("files", h),
            "access": "open" if h[3] % 9 else "confidential",
        }

    def mail(self, at: Seed, id: str) -> Row | None:
        n = MAIL_ID.number(at.split, at.seed, id)
        if n is None or n >= at.size * MAILS:
            return None
        owner, k = divmod(n, MAILS)
        h = digest(at.split, at.seed, "mails", owner)
        if k >= MAILS - h[0] % 5:
            return None
        g = digest(at.split, at.seed, "mail", n)
        user = self.ids.person.id(at.split, at.seed, owner)
        home = self.names.group.number(at.split, at.seed, (self.person_row(at, user) or {})["home_team"]) or 0
        sender = home * PER_GROUP + (h[1] + 7 * (g[0] % 4)) % PER_GROUP  # one of four in the home team
        return {
            "user_id": user,
            "sender_id": CONTACT_ID.id(at.split, at.seed, sender),
            "topic": TOPICS[(h[2] + 5 * k) % len(TOPICS)],  # no two mails to a user are about the same
            "date": layout.days_after("2033-01-01", g[1] % 60),
            "status": "unread" if g[2] % 2 else "read",
            "file_id": FILE_ID.id(at.split, at.seed, sender * FILES + g[3] % ATTACHED) if g[4] % 4 else "",
        }

    def vary_own(self, task: Task, spot: str, value: Any, salt: object) -> Any:
        split, seed = task.split, task.seed
        match spot:
            case "mails.topic":
                return TOPICS[shifted_number(TOPICS.index(value), salt, 0, len(TOPICS) - 1, 1)]
            case "mails.status":
                return ("unread", "read")[digest("vary", salt)[0] % 2]
            case "mails.sender_id":  # another member of the same team
                team, k = divmod(CONTACT_ID.number(split, seed, value) or 0, PER_GROUP)
                return CONTACT_ID.id(split, seed, team * PER_GROUP + shifted_number(k, salt, 0, PER_GROUP - 1, 1))
            case "mails.file_id" if value:  # another file of the same owner
                owner, k = divmod(FILE_ID.number(split, seed, value) or 0, FILES)
                return FILE_ID.id(split, seed, owner * FILES + shifted_number(k, salt, 0, ATTACHED - 1, 1))
        return value

    # -- mail and files

    def entries_of(self, state: State, thing: str) -> list[str]:
        """The files that a colleague owns."""
        ids = self.numbered(state, thing, CONTACT_ID, FILE_ID, FILES)
        return [id for id in ids if state.row("files", id) is not None]

    def mails(self, state: State, user: str) -> list[tuple[str, Row]]:
        """The mails in a user's inbox."""
        ids = self.numbered(state, user, self.ids.person, MAIL_ID, MAILS)
        return [(id, row) for id in ids if (row := state.row("mails", id)) is not None]

    def link(self, file: str) -> str:
        return made_of("LNK", 7, "link", file)

    def shared(self, file: str, reader: str) -> Changes:
        """What sharing a file leaves behind."""
        return {("shares", f"{file}|{reader}"): {"link": self.link(file)}}

    def not_shared(self, state: State, file: str, reader: str) -> str | None:
        """Why a file may not be shared with somebody, or None."""
        row = state.row("files", file)
        if row is None:
            return f"there is no file {brief_of(file)}"
        if state.row("contacts", reader) is None:
            return f"there is no contact {brief_of(reader)}"
        if row["access"] != "open":
            return f"file {file} is {row['access']}"
        return f"file {file} belongs to {reader}" if row["owner_id"] == reader else None

    def longest(self, state: State, owner: str) -> str:
        pages = {id: row["pages"] for id, row in self.entries(state, owner)}
        return max(pages, key=lambda id: pages[id])

    def has_longest(self, state: State, owner: str) -> bool:
        """Is one file of a colleague longer than all others?"""
        pages = sorted(self.amounts(state, owner))
        return pages[-1] > pages[-2]

    def sealed(self, state: State, files: list[str]) -> dict[str, Any]:
        """Edits after which files may not be shared."""
        return self.edited(state, "files", files, access="confidential")


class WorkspaceWorld(tools.DeskWorld):
    records: ClassVar[WorkspaceRecords] = WorkspaceRecords.packaged("workspace")

    @tool(reads=["mails.sender_id,topic,date,status,file_id"])
    def list_mails(self, user_id: str) -> list[Row]:
        """A user's inbox: sender, topic, attached file, read or unread."""
        self.person(user_id)
        columns = ("sender_id", "topic", "date", "status", "file_id")
        return [{"mail_id": id, **{c: row[c] for c in columns}} for id, row in self.records.mails(self.state, user_id)]

    @tool(reads=[], writes=["shares+"])
    def share_file(self, file_id: str, reader_id: str) -> Row:
        """Give a contact, the reader, access to a file; returns its link."""
        self.found("files", file_id, "file")
        self.thing(reader_id)
        if self.state.row("shares", f"{file_id}|{reader_id}") is not None:
            raise ToolFailure("conflict", f"File {file_id} is shared with {reader_id} already.")
        self.put(self.records.shared(file_id, reader_id))
        return {"file_id": file_id, "link": self.records.link(file_id)}

    def broken(self) -> str | None:
        if why := super().broken():
            return why
        pairs = (id.partition("|") for id, _ in self.state.written("shares"))
        found = (self.records.not_shared(self.state, file, reader) for file, _, reader in pairs)
        return next((why for why in found if why), None)


# ---------------------------------------------------------------- families of its own


class Filing(graphs.Graph):
    """A family around mail and files."""

    records: WorkspaceRecords
    links: ClassVar[int | None] = 1  # of shared files that are to be reported; None: of all

    # -- parts of solutions

    def longest_of(self, owner: str) -> Gathering:
        rows = (yield ToolCall("list_files", {"contact_id": owner})).content
        file = max(rows, key=lambda r: int(r["pages"]))["file_id"]
        yield notes.choice({r["file_id"]: r["pages"] for r in rows}, file, "most")
        return file

    def share(self, file: str, reader: str) -> Gathering:
        return (yield ToolCall("share_file", {"file_id": file, "reader_id": reader})).content["link"]

    # -- parts of goals

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        made = [row["link"] for _, row in end.written("shares")] or ["none"]
        return tuple(Expected("id", link) for link in made[: self.links])


class UnreadMails(Filing, graphs.Lookup):
    """How many unread mails of a user come from the most skilled colleague."""

    name, level = "unread_mails", 1
    roles = ("who", "kind", "group")
    stands = "search > mails (count of one sender)"

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        who, group = self.records.someone(rng, state)
        kind = rng.choice(self.records.kind_names)
        ranked = sorted(self.records.things(state, group, kind), key=lambda t: t.score, reverse=True)
        if len(ranked) < 2 or ranked[0].score == ranked[1].score:
            return None
        return self.stated(who, kind, group) if self.sent(state, who, ranked[0].id) else None

    def sent(self, state: State, who: str, sender: str) -> list[Row]:
        return [row for _, row in self.records.mails(state, who) if row["sender_id"] == sender]

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

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        sender = self.best(task, start)
        if sender is None:
            return ()
        mails = self.sent(start, self.wanted(task, start)[0], sender.id)
        return (self.of_best(task, start, "number", sum(m["status"] == "unread" for m in mails)),)


class ShareLongest(Filing):
    """Share the longest file of the most skilled colleague."""

    name, level = "share_longest", 1
    roles = ("kind", "group", "reader")
    stands = "search > files (longest) > share"

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        at = self.place(rng, state)
        best = at and max(at[2], key=lambda t: t.score)
        readers = self.records.things_in(state, self.records.someone(rng, state)[1])
        if not at or not best or not readers or not self.records.has_longest(state, best.id):
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

    def ends(self, task: Task, start: State) -> list[Changes]:
        owner, reader = self.best(task, start), self.wanted(task, start)[2]
        file = owner and self.records.longest(start, owner.id)
        if not file or self.records.not_shared(start, file, reader):
            return []
        return [self.records.shared(file, reader)]

    def conceivable_ends(self, task: Task, start: State) -> list[Changes]:
        """Any file of the owner might have been the longest."""
        owner, reader = self.best(task, start), self.wanted(task, start)[2]
        return [self.records.shared(file, reader) for file in self.records.entries_of(start, owner.id)] if owner else []

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        owner = self.best(task, state)
        sealed = [self.records.sealed(state, self.records.entries_of(state, owner.id))] if owner else []
        return [self.no_thing(task, state), *sealed]


class ConfidentialFile(ShareLongest):
    """Share the longest file of a colleague whose files are confidential: to be refused."""

    name = "confidential_file"
    refusal = True
    stands = "search > files (longest) > share (refused) > refuse"

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        return super().obstacles(task, state, rng)[1:]


class PassOnAttachment(Filing):
    """Share the file that came with a mail with the least busy colleague of a role."""

    name, level = "pass_on_attachment", 2
    roles = ("who", "kind", "group", "topic")
    stands = "mails > search > details, for each (least) > share"

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        at = self.place(rng, state, 2, 3)
        who, _ = self.records.someone(rng, state)
        mails = [row for _, row in self.records.mails(state, who) if row["file_id"]]
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
        return next(((id, row) for id, row in self.records.mails(start, who) if row["topic"] == topic), None)

    def readers(self, task: Task, start: State) -> list[Thing]:
        """Colleagues who may be meant, the least busy first."""
        return sorted(self.things(task, start), key=lambda t: t.fee)

    def ends(self, task: Task, start: State) -> list[Changes]:
        mail, readers = self.mail(task, start), self.readers(task, start)
        if mail is None or not readers or self.records.not_shared(start, mail[1]["file_id"], readers[0].id):
            return []
        return [self.records.shared(mail[1]["file_id"], readers[0].id)]

    def conceivable_ends(self, task: Task, start: State) -> list[Changes]:
        """Any of the colleagues might have been the least busy."""
        mail = self.mail(task, start)
        return [self.records.shared(mail[1]["file_id"], t.id) for t in self.readers(task, start)] if mail else []

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        mail = self.mail(task, state)
        if mail is None:
            return []
        sealed = self.records.sealed(state, [mail[1]["file_id"]])
        return [self.no_thing(task, state), {f"mails/{mail[0]}": None}, sealed]


class ExchangeFiles(Filing):
    """Let two named colleagues read each other's longest file."""

    name, level = "exchange_files", 2
    roles = ("kind", "group", "first", "second")
    stands = "search > files > files (longest) > share > share"
    links = None

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        at = self.place(rng, state)
        pair = rng.sample(at[2], 2) if at else []
        if not at or not all(self.records.has_longest(state, t.id) for t in pair):
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
        _, _, *names = self.wanted(task, start)
        ids = {t.name: t.id for t in self.things(task, start)}
        return [ids[name] for name in names if name in ids]

    def both(self, one: str, theirs: str, two: str, others: str) -> Changes:
        return {**self.records.shared(theirs, two), **self.records.shared(others, one)}

    def ends(self, task: Task, start: State) -> list[Changes]:
        pair = self.pair(task, start)
        if len(pair) < 2:
            return []
        theirs, others = (self.records.longest(start, owner) for owner in pair)
        given = ((theirs, pair[1]), (others, pair[0]))
        if any(self.records.not_shared(start, file, reader) for file, reader in given):
            return []
        return [self.both(pair[0], theirs, pair[1], others)]

    def conceivable_ends(self, task: Task, start: State) -> list[Changes]:
        """Any file might have been its owner's longest."""
        one, two = self.pair(task, start)
        files, others = self.records.entries_of(start, one), self.records.entries_of(start, two)
        return [self.both(one, file, two, other) for file in files for other in others]

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        first = self.pair(task, state)[:1]  # before anything is shared
        return [
            self.no_thing(task, state),
            *(self.records.sealed(state, self.records.entries_of(state, id)) for id in first),
        ]


class BriefedMeeting(Filing, graphs.Book):
    """Schedule a meeting with the most skilled colleague, send the invitation and share a file with them."""

    name, level = "briefed_meeting", 3
    roles = (*graphs.Book.roles, "owner")
    stands = "search > slots > files (longest) > permit > hold > settle > share"

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        at = self.place(rng, state)
        date, need = rng.choice(self.records.dates(state)), rng.choice(self.records.needs)
        who, home = self.records.someone(rng, state)
        owner = rng.choice(self.records.things_in(state, home) or [""])
        if at is None or not owner or not self.records.has_longest(state, owner):
            return None
        return self.stated(at[1], at[0], date, need, who, self.records.some_means(rng), owner)

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
        return [{**end, **self.records.shared(file, at[0].id)} for end in ends for file in files] if at else []

    def ends(self, task: Task, start: State) -> list[Changes]:
        at, file = self.target(task, start), self.records.longest(start, self.wanted(task, start)[-1])
        if at is None or self.records.not_shared(start, file, at[0].id):
            return []
        return self.read(task, start, [file], super().ends(task, start))

    def conceivable_ends(self, task: Task, start: State) -> list[Changes]:
        files = self.records.entries_of(start, self.wanted(task, start)[-1])
        return self.read(task, start, files, super().conceivable_ends(task, start))

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        return (*self.receipt(end), *super().answer(task, start, end))

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        files = self.records.entries_of(state, self.wanted(task, state)[-1])
        return [*super().obstacles(task, state, rng), self.records.sealed(state, files)]


# ---------------------------------------------------------------- the domain


class Workspace(Desk):
    name = "workspace"
    summary = "Teams, colleagues, calendars, files, mail, meetings and invitations."
    world_class = WorkspaceWorld
    named = frozenset({"mails.topic"})
    currency = False
    own_details: ClassVar[Mapping[str, Reader]] = {
        "topic": read_choice(dict.fromkeys(TOPICS, ())),
        "reader": ids_of(CONTACT_ID),
        "owner": ids_of(CONTACT_ID),
    }
    keys: ClassVar[Mapping[str, str]] = {"reader": "reader_id", "owner": "owner_id"}
    own = (UnreadMails, ShareLongest, ConfidentialFile, PassOnAttachment, ExchangeFiles, BriefedMeeting)


WORKSPACE = Workspace()
domains.add(WORKSPACE.name, WORKSPACE)
