"""Operations: cloud regions with services, change windows, deployments, incidents, latencies and an on-call rota.

A service belongs to one region. A deployment takes replicas in a change window, needs a sign-off that another tool
issues and an engineer whose access is active, and is staged until a build is launched. An open incident is paged to the
engineer who is on call in its region. All names and numbers are made up from the world's seed.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from random import Random
from typing import Any, ClassVar

from crosswind.base.errors import ToolFailure
from crosswind.core.domain import Gathering, Reader, shifted_number
from crosswind.core.flow import digest
from crosswind.core.names import Numbering, made_of
from crosswind.core.registry import domains
from crosswind.core.state import State
from crosswind.core.types import Brief, Changes, Refusal, Row, Solution, Split, Task, ToolCall, ToolResult
from crosswind.core.world import tool
from crosswind.domains import graphs, layout, notes, tools
from crosswind.domains.desk import Desk, ids_of
from crosswind.domains.layout import Seed, SeedLike, Thing
from crosswind.domains.records import Records
from crosswind.text.answers import Expected

SEVERITIES = ("minor", "major", "critical")
INCIDENTS = 8  # of a service at most
INCIDENT_ID = Numbering("INC", 7)


class OperationsRecords(Records):
    def access(self, at: SeedLike, n: int) -> str:
        return "active" if digest(at.split, at.seed, "access", n)[0] % self.lapse else "suspended"

    def person(self, at: Seed, n: int, h: bytes) -> Row:
        return {
            "name": self.names.person.name(at.split, at.seed, n),
            "home_region": self.group(at, n % self.groups(at.size)),
            "access": self.access(at, n),
        }

    def entry_row(self, at: Seed, id: str) -> Row | None:
        n = INCIDENT_ID.number(at.split, at.seed, id)
        if n is None or n >= at.things * INCIDENTS:
            return None
        h = digest(at.split, at.seed, "incident", n)
        return {
            "service_id": self.ids.thing.id(at.split, at.seed, n // INCIDENTS),
            "severity": SEVERITIES[h[0] % len(SEVERITIES)],
            "opened": layout.days_after(at.dates[0], -1 - h[1] % 60),
            "minutes": 4 + (h[2] * 256 + h[3]) % 237,
            "status": "open" if h[4] % 2 else "resolved",
        }

    def entries_of(self, state: State, thing: str) -> list[str]:
        count = 2 + digest("incidents", thing)[0] % (INCIDENTS - 1)
        return self.numbered(state, thing, self.ids.thing, INCIDENT_ID, INCIDENTS)[:count]

    def own_tables(self) -> dict[str, layout.Maker]:
        return {"rota": self.rota}

    def rota(self, at: Seed, id: str) -> Row | None:
        region, _, _ = id.partition("|")
        regions = self.groups(at.size)
        n = self.names.group.number(at.split, at.seed, region)
        if n is None or n >= regions:
            return None
        per = at.size // regions  # engineers at home in a region
        first = layout.number(digest(at.split, at.seed, "rota", id)[:4]) % per
        turns = (n + regions * ((first + step) % per) for step in range(per))
        on_call = next((m for m in turns if self.access(at, m) == "active"), n)
        return {"engineer_id": self.ids.person.id(at.split, at.seed, on_call)}

    def vary_own(self, task: Task, spot: str, value: Any, salt: object) -> Any:
        match spot:
            case "engineers.name":
                return self.renamed(task, self.names.person, value, salt)
            case "rota.engineer_id":  # another one at home in the region
                regions, ids = self.groups(task.size), self.ids.person
                turn, region = divmod(ids.number(task.split, task.seed, value) or 0, regions)
                moved = shifted_number(turn, salt, 0, task.size // regions - 1, 1)
                return ids.id(task.split, task.seed, moved * regions + region)
            case "incidents.status":
                return ("open", "resolved")[digest("vary", salt)[0] % 2]
        return value

    # -- incidents and the engineer on call

    def still_open(self, state: State, services: Iterable[str]) -> list[tuple[str, Row]]:
        """The open incidents of some services."""
        logs = (entry for service in services for entry in self.entries(state, service))
        return [(id, row) for id, row in logs if row["status"] == "open"]

    def on_duty(self, state: State, region: str, date: str) -> str | None:
        """The engineer who is on call."""
        row = state.row("rota", f"{region}|{date}")
        return str(row["engineer_id"]) if row else None

    def page_id(self, incident: str, engineer: str, date: str) -> str:
        return made_of("PG", 7, "page", incident, engineer, date)

    def paged(self, state: State, incident: str, engineer: str, date: str) -> Changes:
        """What paging leaves behind."""
        row = state.row("incidents", incident) or {}
        page = {"incident_id": incident, "engineer_id": engineer, "date": date}
        return {
            ("pages", self.page_id(incident, engineer, date)): page,
            ("incidents", incident): {**row, "status": "paged"},
        }

    def unmanned(self, region: str, date: str) -> dict[str, Any]:
        """Edits after which nobody is on call."""
        return {f"rota/{region}|{date}": None}

    def closed(self, state: State, services: Iterable[str]) -> dict[str, Any]:
        """Edits after which some services have no open incident."""
        ids = [id for id, _ in self.still_open(state, services)]
        return self.edited(state, "incidents", ids, status="resolved")


class OperationsWorld(tools.DeskWorld):
    records: ClassVar[OperationsRecords] = OperationsRecords.packaged("operations")

    @tool(reads=["rota.engineer_id"], docs={"date": "YYYY-MM-DD"})
    def on_call(self, region: str, date: str) -> Row:
        """Who is on call in a region on a date."""
        self.group(region)
        engineer = self.records.on_duty(self.state, region, self.day(date))
        if engineer is None:
            raise ToolFailure("not_found", f"Nobody is on call in {region} on {date}.")
        return {"engineer_id": engineer}

    @tool(reads=["incidents.status"], writes=["pages+", "incidents.status=paged"])
    def page_engineer(self, incident_id: str, engineer_id: str, date: str) -> Row:
        """Page the engineer whom {on_call} gives about an open incident."""
        row = self.found("incidents", incident_id, "incident")
        self.person(engineer_id)
        if row["status"] != "open":
            raise ToolFailure("conflict", f"Incident {incident_id} is {row['status']}, not open.")
        self.put(self.records.paged(self.state, incident_id, engineer_id, self.day(date)))
        id = self.records.page_id(incident_id, engineer_id, date)
        return {"page_id": id, "incident_id": incident_id, "status": "paged"}

    def broken(self) -> str | None:
        return super().broken() or self._broken_page()

    def _broken_page(self) -> str | None:
        state, records = self.state, self.records
        for _, row in state.written("pages"):
            incident, engineer, date = row["incident_id"], row["engineer_id"], row["date"]
            before = state.start("incidents", incident)
            if before is None or before["status"] != "open":
                return f"incident {incident} is not open"
            service = state.row("services", before["service_id"])
            if not service or records.on_duty(state, service["region"], date) != engineer:
                return f"engineer {engineer} is not on call for {incident} on {date}"
            if not records.allowed(state, engineer):
                return f"engineer {engineer} has no active access"
        return None


# ---------------------------------------------------------------- families of its own


class Duty(graphs.Graph):
    """A family around incidents and the engineer on call."""

    records: OperationsRecords

    def on_call(self, region: str, date: str) -> Gathering:
        return (yield ToolCall("on_call", {"region": region, "date": date})).content["engineer_id"]

    def page(self, incident: str, region: str, date: str) -> Solution:
        engineer = yield from self.on_call(region, date)
        args = {"incident_id": incident, "engineer_id": engineer, "date": date}
        made = yield ToolCall("page_engineer", args)
        return f"The page is out: {made.content['page_id']}."

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        return (Expected("id", next((id for id, _ in end.written("pages")), "none")),)


class OnCallName(Duty, graphs.Lookup):
    """The name of the engineer who is on call."""

    name, level = "on_call_name", 1
    roles = ("group", "date")
    stands = "rota > record"

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        return self.stated(self.records.someone(rng, state)[1], rng.choice(self.records.dates(state)))

    def solve(self, brief: Brief) -> Solution:
        region, date = yield from self.gather(brief)
        engineer = yield from self.on_call(region, date)
        record = (yield ToolCall("engineer_record", {"engineer_id": engineer})).content
        return f"{record['name']} is on call."

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        id = self.records.on_duty(start, *self.wanted(task, start))
        engineer = start.row("engineers", id) if id else None
        return (Expected("name", engineer["name"]),) if engineer else ()

    def facts(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        """Anyone who is on call in the region on another day is not the one."""
        region, _ = self.wanted(task, start)
        ids = {id for date in self.records.dates(start) if (id := self.records.on_duty(start, region, date))}
        rows = [row for id in sorted(ids) if (row := start.row("engineers", id))]
        answer = self.answer(task, start, end)
        return tuple(
            Expected("name", e.value, tuple(row["name"] for row in rows if row["name"] != e.value)) for e in answer
        )

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        return [self.records.unmanned(*self.wanted(task, state))]


class MostDowntime(graphs.Ranked):
    """The service of a type with the most minutes of downtime over all its incidents."""

    name = "most_downtime"
    stands = "search > entries, for each (greatest sum)"
    order, reply = "most", "{name} has had the most downtime."

    def worth(self, state: State, thing: str, *more: Any) -> Any:
        return sum(self.records.amounts(state, thing))

    def measure(self, thing: str, *more: Any) -> Gathering:
        minutes = [row[self.t.amount] for row in (yield from self.logged(thing))]
        yield notes.total(minutes)
        return sum(minutes)


class PageOnDuty(Duty):
    """Page whoever is on call about a given incident."""

    name, level = "page_on_duty", 1
    roles = ("group", "date", "incident")
    stands = "rota > page"

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        region = self.records.someone(rng, state)[1]
        service = rng.choice(self.records.things_in(state, region) or [""])
        still = [id for id, _ in self.records.still_open(state, [service])]
        return self.stated(region, rng.choice(self.records.dates(state)), rng.choice(still)) if still else None

    def solve(self, brief: Brief) -> Solution:
        region, date, incident = yield from self.gather(brief)
        return (yield from self.page(incident, region, date))

    def ends(self, task: Task, start: State) -> list[Changes]:
        region, date, incident = self.wanted(task, start)
        row, engineer = start.row("incidents", incident), self.records.on_duty(start, region, date)
        service = row and start.row("services", row["service_id"])
        if not row or row["status"] != "open" or not service or service["region"] != region:
            return []
        if engineer is None or not self.records.allowed(start, engineer):
            return []
        return [self.records.paged(start, incident, engineer, date)]

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        region, date, incident = self.wanted(task, state)
        engineer = self.records.on_duty(state, region, date)
        if engineer is None or state.row("incidents", incident) is None:
            return []
        return [
            self.records.unmanned(region, date),
            self.records.barred(state, engineer),
            self.records.edited(state, "incidents", [incident], status="resolved"),
        ]


class PageWeakest(Duty):
    """Page whoever is on call about the longest open incident of the service with the worst health."""

    name, level = "page_weakest", 2
    roles = ("kind", "group", "date")
    stands = "search > entries (longest open) > rota > page"
    fewest: ClassVar[int] = 2

    def looked_at(self, things: list[Thing]) -> list[str]:
        """The things whose incidents count."""
        return [min(things, key=lambda t: t.score).id] if things else []

    def picked(self, rows: list[Row]) -> Generator[ToolCall, ToolResult, list[Row]]:
        """The same of search results."""
        t = self.t
        weakest = min(rows, key=lambda r: float(r[t.score]))
        yield notes.choice({r[t.thing]: r[t.score] for r in rows}, weakest[t.thing], "least")
        return [weakest]

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        at = self.place(rng, state, self.fewest)
        if at is None:
            return None
        scores = sorted(t.score for t in at[2])
        open_for = sorted(row["minutes"] for _, row in self.records.still_open(state, self.looked_at(at[2])))
        if scores[0] == scores[1] or not open_for or open_for[-1:] == open_for[-2:-1]:
            return None
        return self.stated(at[1], at[0], rng.choice(self.records.dates(state)))

    def solve(self, brief: Brief) -> Solution:
        t = self.t
        kind, group, date = yield from self.gather(brief)
        rows = yield from self.found(group, kind)
        if not rows:
            return self.nothing(group, kind)
        still: list[Row] = []
        for row in (yield from self.picked(rows)):
            logged = yield from self.logged(row[t.thing])
            still += [r for r in logged if r[t.status] == "open"]
        if not still:
            return Refusal("no such incident is open")
        longest = max(still, key=lambda r: int(r[t.amount]))["incident_id"]
        yield notes.choice({r["incident_id"]: r[t.amount] for r in still}, longest, "most")
        return (yield from self.page(longest, group, date))

    def at(self, task: Task, start: State) -> tuple[list[str], str, str | None]:
        """The services of the request whose incidents count, its date, and who is on call then."""
        _, group, date = self.wanted(task, start)
        services = self.looked_at(self.things(task, start))
        return services, date, self.records.on_duty(start, group, date)

    def ends(self, task: Task, start: State) -> list[Changes]:
        services, date, engineer = self.at(task, start)
        still = self.records.still_open(start, services)
        if not still or engineer is None or not self.records.allowed(start, engineer):
            return []
        return [self.records.paged(start, max(still, key=lambda entry: entry[1]["minutes"])[0], engineer, date)]

    def conceivable_ends(self, task: Task, start: State) -> list[Changes]:
        """Any of the incidents might have been the longest that is open."""
        services, date, engineer = self.at(task, start)
        logs = [id for service in services for id, _ in self.records.entries(start, service)] if engineer else []
        return [self.records.paged(start, id, engineer or "", date) for id in logs]

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        services, date, engineer = self.at(task, state)
        return [
            self.no_thing(task, state),
            self.records.closed(state, services),
            self.records.unmanned(self.settled(task, state)[self.t.group], date),
            *([self.records.barred(state, engineer)] if engineer else []),
        ]


class PageLongest(PageWeakest):
    """Page whoever is on call about the longest open incident of all services of a type."""

    name, level = "page_longest", 3
    stands = "search > entries, for each (longest open) > rota > page"
    fewest: ClassVar[int] = 4

    def looked_at(self, things: list[Thing]) -> list[str]:
        return [thing.id for thing in things]

    def picked(self, rows: list[Row]) -> Generator[ToolCall, ToolResult, list[Row]]:
        yield from ()
        return rows

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        """A region without services of the type is left out: their incidents stay, so no proof would hold."""
        return super().obstacles(task, state, rng)[1:]


class PageSuspended(PageWeakest):
    """Page about an incident where the access of the engineer on call is suspended: to be refused."""

    name = "page_suspended"
    refusal = True
    stands = "search > entries (longest open) > rota > page (refused) > refuse"

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        _, _, engineer = self.at(task, state)
        return [self.records.barred(state, engineer)] if engineer else []


# ---------------------------------------------------------------- the domain


class Operations(Desk):
    name = "operations"
    summary = "Regions, services, change windows, deployments, incidents, latencies and an on-call rota."
    world_class = OperationsWorld
    own_details: ClassVar[Mapping[str, Reader]] = {"incident": ids_of(INCIDENT_ID)}
    keys: ClassVar[Mapping[str, str]] = {"incident": "incident_id"}
    own = (OnCallName, PageOnDuty, MostDowntime, PageWeakest, PageSuspended, PageLongest)


OPERATIONS = Operations()
domains.add(OPERATIONS.name, OPERATIONS)
