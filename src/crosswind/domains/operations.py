"""Operations: cloud regions with services, change windows, deployments, incidents, latencies and an on-call rota.

A service belongs to one region. A deployment takes replicas in a change window, needs a sign-off that another tool
issues and an engineer whose access is active, and is staged until a build is launched. An open incident is paged to the
engineer who is on call in its region. All names and numbers are made up from the world's seed.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
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
from crosswind.core.types import Brief, Changes, Refusal, Row, Solution, Split, Task, ToolCall, ToolResult
from crosswind.core.world import Derive, State, World, brief_of, tool
from crosswind.domains import graphs, notes
from crosswind.domains.graphs import Booking, Desk, Slot, Terms, Thing
from crosswind.text import values
from crosswind.text.answers import Expected

TYPES: dict[str, tuple[str, ...]] = {  # with other words for them
    "gateway": (),
    "database": ("db",),
    "queue": (),
    "cache": (),
    "scheduler": (),
    "proxy": ("proxies",),
    "registry": ("registries",),
    "worker": (),
}
RUNTIMES = ("go", "java", "node", "python", "rust")
SEVERITIES = ("minor", "major", "critical")
PER_REGION, DAYS, WINDOWS, HELD, INCIDENTS = 24, 10, 5, 5, 8

REGION = Namer((("grid", "zone", "rack", "core"), ("mesh", "hub", "node"), ("cloud", "lattice", "shard", "farm")), 11)
SERVICE = Namer((("sync", "flow", "stash", "cast"), ("pulse", "relay", "stack"), ("forge", "beam", "link", "dock")), 37)
ENGINEER = Namer(
    (("akis", "eddin", "jord", "vik"), ("zadeh", "quin", "strand"), ("owski", "thal", "brandt", "kvist")), 53
)
SERVICE_ID, ENGINEER_ID = Numbering("SVC", 6), Numbering("ENG", 6)
WINDOW_ID, DEPLOYMENT_ID, INCIDENT_ID = Numbering("CHG", 8), Numbering("DEP", 7), Numbering("INC", 7)


def calendar(seed: int) -> list[str]:
    """The dates on which a world has change windows."""
    return dates_from(2033, 3, 7, seed * 17 % 290, DAYS)


def regions_of(size: int) -> int:
    return max(1, size // PER_REGION)


def rows(seed: int, size: int, split: Split) -> Derive:
    """Any row of a world, made from its seed alone."""
    regions = regions_of(size)
    services = regions * PER_REGION
    dates = calendar(seed)

    def service(id: str) -> Row | None:
        n = SERVICE_ID.number(split, seed, id)
        if n is None or n >= services:
            return None
        h = digest(split, seed, "service", n)
        return {
            "name": SERVICE.name(split, seed, n),
            "region": REGION.name(split, seed, n // PER_REGION),
            "service_type": tuple(TYPES)[h[0] % len(TYPES)],
            "health": round(60 + (h[1] * 256 + h[2]) % 400 / 10, 1),
            "hourly_cost": 3 + h[3] % 90,
            "runtime": RUNTIMES[h[4] % len(RUNTIMES)],
        }

    def window(id: str) -> Row | None:
        n = WINDOW_ID.number(split, seed, id)
        if n is None or n >= services * DAYS * WINDOWS:
            return None
        n, j = divmod(n, WINDOWS)
        n, d = divmod(n, DAYS)
        h = digest(split, seed, "window", n, d, j)
        return {
            "service_id": SERVICE_ID.id(split, seed, n),
            "date": dates[d],
            "time": f"{1 + 4 * j + h[0] % 4:02d}:{15 * (h[1] % 4):02d}",
            "capacity": (0, 0, 1, 3, 4, 6, 8)[h[2] % 7],
        }

    def access(n: int) -> str:
        return "active" if digest(split, seed, "access", n)[0] % 12 else "suspended"

    def engineer(id: str) -> Row | None:
        n = ENGINEER_ID.number(split, seed, id)
        if n is None or n >= size:
            return None
        return {
            "name": ENGINEER.name(split, seed, n),
            "home_region": REGION.name(split, seed, n % regions),
            "access": access(n),
        }

    def deployment(id: str) -> Row | None:
        n = DEPLOYMENT_ID.number(split, seed, id)
        if n is None or n >= size * HELD:
            return None
        owner, k = divmod(n, HELD)
        h = digest(split, seed, "deployments", owner)
        if k >= 2 + h[0] % (HELD - 1):
            return None
        g = digest(split, seed, "deployment", owner, k)
        at = int.from_bytes(g[:4], "big") % services
        number = (at * DAYS + (h[1] + 3 * k) % DAYS) * WINDOWS + g[4] % WINDOWS
        return {
            "engineer_id": ENGINEER_ID.id(split, seed, owner),
            "window_id": WINDOW_ID.id(split, seed, number),
            "replicas": 1 + g[5] % 4,
            "status": "rolled_back" if k and g[6] % 8 == 0 else "live" if g[6] % 2 else "staged",
            "build": f"build-{int.from_bytes(g[6:8], 'big') % 10000:04d}" if g[6] % 2 else "",
        }

    def incident(id: str) -> Row | None:
        n = INCIDENT_ID.number(split, seed, id)
        if n is None or n >= services * INCIDENTS:
            return None
        h = digest(split, seed, "incident", n)
        return {
            "service_id": SERVICE_ID.id(split, seed, n // INCIDENTS),
            "severity": SEVERITIES[h[0] % len(SEVERITIES)],
            "opened": (Date.fromisoformat(dates[0]) - timedelta(days=1 + h[1] % 60)).isoformat(),
            "minutes": 4 + (h[2] * 256 + h[3]) % 237,
            "status": "open" if h[4] % 2 else "resolved",
        }

    def load(id: str) -> Row | None:
        h = digest(split, seed, "load", id)
        return {"load_percent": 5 + h[0] % 95, "alerts": h[1] % 30}

    def latency(id: str) -> Row | None:
        return {"latency_ms": 1 + digest(split, seed, "latency", id)[0] % 240}

    def rota(id: str) -> Row | None:
        region, _, _ = id.partition("|")
        n = REGION.number(split, seed, region)
        if n is None or n >= regions:
            return None
        per = size // regions  # engineers at home in a region
        first = int.from_bytes(digest(split, seed, "rota", id)[:4], "big") % per
        turns = (n + regions * ((first + step) % per) for step in range(per))
        return {"engineer_id": ENGINEER_ID.id(split, seed, next((m for m in turns if access(m) == "active"), n))}

    made = {
        "services": service,
        "windows": window,
        "engineers": engineer,
        "deployments": deployment,
        "incidents": incident,
        "loads": load,
        "latencies": latency,
        "rota": rota,
    }
    return lambda table, id: made[table](id) if table in made else None


def rollout_of(deployment_id: str, build: str) -> str:
    return made_of("RO", 7, "rollout", deployment_id, build)


def signoff_of(window_id: str, engineer_id: str) -> str:
    return made_of("SO", 6, "signoff", window_id, engineer_id)


def page_of(incident_id: str, engineer_id: str, date: str) -> str:
    return made_of("PG", 7, "page", incident_id, engineer_id, date)


# ---------------------------------------------------------------- what belongs to what


def services_in(state: State, region: str) -> list[str] | None:
    """The services of a region, or None where there is no such region."""
    return _services_in(state.split, state.seed, state.size, region)


@lru_cache(maxsize=4096)
def _services_in(split: Split, seed: int, size: int, region: str) -> list[str] | None:
    n = REGION.number(split, seed, region)
    if n is None or n >= regions_of(size):
        return None
    return [SERVICE_ID.id(split, seed, n * PER_REGION + k) for k in range(PER_REGION)]


def windows_of(state: State, service_id: str, date: str) -> list[str]:
    n, dates = SERVICE_ID.number(state.split, state.seed, service_id), calendar(state.seed)
    if n is None or date not in dates:
        return []
    first = (n * DAYS + dates.index(date)) * WINDOWS
    return [WINDOW_ID.id(state.split, state.seed, first + j) for j in range(WINDOWS)]


def deployments_of(state: State, engineer_id: str) -> list[str]:
    """What an engineer has deployed, first what the seed gives."""
    n = ENGINEER_ID.number(state.split, state.seed, engineer_id)
    ids = [] if n is None else [DEPLOYMENT_ID.id(state.split, state.seed, n * HELD + k) for k in range(HELD)]
    ids = [id for id in ids if state.row("deployments", id) is not None]
    new = (id for id, row in state.written("deployments") if row["engineer_id"] == engineer_id)
    return [*ids, *(id for id in new if id not in ids)]


def incidents_of(state: State, service_id: str) -> list[str]:
    n = SERVICE_ID.number(state.split, state.seed, service_id)
    if n is None:
        return []
    count = 2 + digest("incidents", service_id)[0] % (INCIDENTS - 1)
    return [INCIDENT_ID.id(state.split, state.seed, n * INCIDENTS + k) for k in range(count)]


def new_id(state: State, window_id: str, engineer_id: str) -> str:
    """An id made of what is deployed, and of how often it was before."""
    mine = (window_id, engineer_id)
    times = sum((row["window_id"], row["engineer_id"]) == mine for _, row in state.written("deployments"))
    return unused(lambda id: state.row("deployments", id) is not None, "DEP", 7, "stage", *mine, times=times)


def hop(one: str, two: str) -> str:
    return "|".join(sorted((one, two)))


def spare(state: State, window_id: str, capacity: int) -> int:
    """Replicas free: the capacity counts what the seed deployed, so only what was written moves it."""
    for id, row in state.written("deployments"):
        before = state.start("deployments", id)
        if before is not None and before["window_id"] == window_id and before["status"] != "rolled_back":
            capacity += before["replicas"]
        if row["window_id"] == window_id and row["status"] != "rolled_back":
            capacity -= row["replicas"]
    return capacity


# ---------------------------------------------------------------- tools


class OperationsWorld(World):
    invariants = (
        "deployments.window_id",
        "deployments.engineer_id",
        "deployments.replicas",
        "deployments.status",
        "windows.capacity",
        "windows.service_id",
        "engineers.access",
        "signoffs.signoff",
        "pages.incident_id",
        "pages.engineer_id",
        "pages.date",
        "incidents.service_id",
        "incidents.status",
        "services.region",
        "rota.engineer_id",
    )

    def broken(self) -> str | None:
        return self._broken_deployment() or self._broken_page()

    def _broken_deployment(self) -> str | None:
        state = self.state
        for id, row in state.written("deployments"):
            before = state.start("deployments", id)
            if row["status"] == "rolled_back" or (before is not None and before["window_id"] == row["window_id"]):
                continue
            window_id, engineer_id = row["window_id"], row["engineer_id"]
            window = state.row("windows", window_id)
            if window is None or state.row("services", window["service_id"]) is None:
                return f"there is no window {window_id}"
            if not self._active(engineer_id):
                return f"engineer {engineer_id} has no active access"
            if state.row("signoffs", f"{window_id}|{engineer_id}") is None:
                return f"no sign-off was issued to {engineer_id} for {window_id}"
            if spare(state, window_id, window["capacity"]) < 0:
                return f"window {window_id} has not enough free replicas"
        return None

    def _broken_page(self) -> str | None:
        state = self.state
        for _, row in state.written("pages"):
            before = state.start("incidents", row["incident_id"])
            if before is None or before["status"] != "open":
                return f"incident {row['incident_id']} is not open"
            service = state.row("services", before["service_id"])
            duty = service and state.row("rota", f"{service['region']}|{row['date']}")
            if not duty or duty["engineer_id"] != row["engineer_id"]:
                return f"engineer {row['engineer_id']} is not on call for {row['incident_id']} on {row['date']}"
            if not self._active(row["engineer_id"]):
                return f"engineer {row['engineer_id']} has no active access"
        return None

    @tool(reads=["services.name,service_type,health"], enums={"service_type": tuple(TYPES)})
    def find_services(self, region: str, service_type: str) -> list[Row]:
        """Services of a type in a region, with health scores."""
        found = ((id, self.state.row("services", id)) for id in self._region(region))
        return [
            {"service_id": id, "name": row["name"], "health": row["health"]}
            for id, row in found
            if row is not None and row["service_type"] == service_type
        ]

    @tool(reads=["services.name,region,service_type,runtime,hourly_cost"])
    def service_info(self, service_id: str) -> Row:
        """A service's region, type, runtime and hourly cost in euros."""
        row = self.found("services", service_id, "service")
        return {c: row[c] for c in ("name", "region", "service_type", "runtime", "hourly_cost")}

    @tool(reads=["incidents.severity,opened,minutes,status"])
    def list_incidents(self, service_id: str) -> list[Row]:
        """A service's incidents, with minutes of downtime and status."""
        self.found("services", service_id, "service")
        found = ((id, self.state.row("incidents", id)) for id in incidents_of(self.state, service_id))
        return [
            {"incident_id": id, **{c: row[c] for c in ("severity", "opened", "minutes", "status")}}
            for id, row in found
            if row is not None
        ]

    @tool(reads=["loads.load_percent,alerts"], docs={"date": "YYYY-MM-DD"})
    def region_load(self, region: str, date: str) -> Row:
        """Load in percent and alerts of a region on a date."""
        self._region(region)
        row = self.found("loads", f"{region}|{self.day(date)}", "load")
        return {"load_percent": row["load_percent"], "alerts": row["alerts"]}

    @tool(reads=["latencies.latency_ms"])
    def service_latency(self, from_service: str, to_service: str) -> Row:
        """Milliseconds of latency between two services, by ids."""
        self.found("services", from_service, "service")
        self.found("services", to_service, "service")
        row = self.found("latencies", hop(from_service, to_service), "latency")
        return {"latency_ms": row["latency_ms"]}

    @tool(
        reads=["windows.time,capacity", "deployments.window_id,replicas,status"],
        docs={"date": "YYYY-MM-DD"},
    )
    def list_windows(self, service_id: str, date: str) -> list[Row]:
        """Change windows of a service on a date: time and free replicas."""
        self.found("services", service_id, "service")
        out: list[Row] = []
        for id in windows_of(self.state, service_id, self.day(date)):
            row = self.found("windows", id, "window")
            out.append({"window_id": id, "time": row["time"], "free": spare(self.state, id, row["capacity"])})
        return out

    @tool(reads=["engineers.name,home_region,access"])
    def engineer_record(self, engineer_id: str) -> Row:
        """Name, home region and access of an engineer."""
        row = self.found("engineers", engineer_id, "engineer")
        return {"name": row["name"], "home_region": row["home_region"], "access": row["access"]}

    @tool(reads=["deployments.window_id,replicas,status,engineer_id", "windows.service_id,date,time"])
    def list_deployments(self, engineer_id: str) -> list[Row]:
        """An engineer's deployments: service, date, replicas, status."""
        self.found("engineers", engineer_id, "engineer")
        return [self._shown(id) for id in deployments_of(self.state, engineer_id)]

    @tool(reads=[], writes=["signoffs+"], lasting=False)
    def request_signoff(self, window_id: str, engineer_id: str) -> Row:
        """Issue the sign-off an engineer needs for a window."""
        self.found("windows", window_id, "window")
        self.found("engineers", engineer_id, "engineer")
        signoff = signoff_of(window_id, engineer_id)
        self.state.put("signoffs", f"{window_id}|{engineer_id}", {"signoff": signoff})
        return {"signoff": signoff}

    @tool(
        reads=["signoffs.signoff", "deployments.window_id,engineer_id"],
        writes=["deployments+", "deployments.status=staged"],
        undo=("rollback_deployment", "deployment_id"),
    )
    def stage_deployment(self, window_id: str, engineer_id: str, replicas: int, signoff: str) -> Row:
        """Stage replicas in a window; needs a sign-off from {request_signoff}."""
        if not 1 <= replicas <= 50:
            raise ToolFailure("bad_arguments", f"'replicas' must be from 1 to 50, got {brief_of(str(replicas))}")
        self.found("windows", window_id, "window")
        self._check(window_id, engineer_id, signoff)
        id = new_id(self.state, window_id, engineer_id)
        made = {
            "engineer_id": engineer_id,
            "window_id": window_id,
            "replicas": replicas,
            "status": "staged",
            "build": "",
        }
        self.state.put("deployments", id, made)
        return {"deployment_id": id, "status": "staged"}

    @tool(
        reads=["deployments.status"],
        writes=["deployments.status=live", "deployments.build"],
        undo=("rollback_deployment", "deployment_id"),
    )
    def launch_deployment(self, deployment_id: str, build: str) -> Row:
        """Launch a build in a staged deployment."""
        row = self.found("deployments", deployment_id, "deployment")
        if row["status"] != "staged":
            raise ToolFailure("conflict", f"Deployment {deployment_id} is {row['status']}, not staged.")
        if not build.startswith("build-") or len(build) > 20:
            raise ToolFailure("bad_arguments", f"'build' must look like build-1234, got {brief_of(build)}")
        self.state.put("deployments", deployment_id, {**row, "status": "live", "build": build})
        return {"deployment_id": deployment_id, "rollout_id": rollout_of(deployment_id, build), "status": "live"}

    @tool(reads=["deployments.status"], writes=["deployments.status=rolled_back", "deployments.build"])
    def rollback_deployment(self, deployment_id: str) -> Row:
        """Roll back a deployment, staged or live."""
        row = self.found("deployments", deployment_id, "deployment")
        if row["status"] == "rolled_back":
            raise ToolFailure("conflict", f"Deployment {deployment_id} is rolled back already.")
        self.state.put("deployments", deployment_id, {**row, "status": "rolled_back", "build": ""})
        return {"deployment_id": deployment_id, "status": "rolled_back"}

    @tool(
        reads=["deployments.status,window_id,engineer_id", "signoffs.signoff", "windows.service_id"],
        writes=["deployments.window_id"],
    )
    def move_deployment(self, deployment_id: str, window_id: str, signoff: str) -> Row:
        """Move a deployment to another window of its service; needs a sign-off from {request_signoff}."""
        row = self.found("deployments", deployment_id, "deployment")
        if row["status"] == "rolled_back":
            raise ToolFailure("conflict", f"Deployment {deployment_id} is rolled back.")
        window, old = self.found("windows", window_id, "window"), self.found("windows", row["window_id"], "window")
        if window["service_id"] != old["service_id"]:
            raise ToolFailure("conflict", f"Window {window_id} belongs to another service.")
        self._check(window_id, row["engineer_id"], signoff)
        self.state.put("deployments", deployment_id, {**row, "window_id": window_id})
        return {"deployment_id": deployment_id, "window_id": window_id}

    @tool(reads=["rota.engineer_id"], docs={"date": "YYYY-MM-DD"})
    def on_call(self, region: str, date: str) -> Row:
        """Who is on call in a region on a date."""
        self._region(region)
        row = self.state.row("rota", f"{region}|{self.day(date)}")
        if row is None:
            raise ToolFailure("not_found", f"Nobody is on call in {region} on {date}.")
        return {"engineer_id": row["engineer_id"]}

    @tool(reads=["incidents.status"], writes=["pages+", "incidents.status=paged"])
    def page_engineer(self, incident_id: str, engineer_id: str, date: str) -> Row:
        """Page the engineer whom {on_call} gives about an open incident."""
        row = self.found("incidents", incident_id, "incident")
        self.found("engineers", engineer_id, "engineer")
        if row["status"] != "open":
            raise ToolFailure("conflict", f"Incident {incident_id} is {row['status']}, not open.")
        id = page_of(incident_id, engineer_id, self.day(date))
        self.state.put("pages", id, {"incident_id": incident_id, "engineer_id": engineer_id, "date": date})
        self.state.put("incidents", incident_id, {**row, "status": "paged"})
        return {"page_id": id, "incident_id": incident_id, "status": "paged"}

    # -- parts

    def _active(self, engineer_id: str) -> bool:
        row = self.state.row("engineers", engineer_id)
        return row is not None and bool(row["access"] == "active")

    def _region(self, region: str) -> list[str]:
        """The services of a region, for a tool that cannot do without it."""
        ids = services_in(self.state, region)
        if ids is None:
            raise ToolFailure("not_found", f"There is no region {brief_of(region)}.")
        return ids

    def _check(self, window_id: str, engineer_id: str, signoff: str) -> None:
        issued = self.state.row("signoffs", f"{window_id}|{engineer_id}")
        if issued is None or issued["signoff"] != signoff:
            raise ToolFailure("refused", f"This is no sign-off for {window_id}; {{request_signoff}} issues one.")

    def _shown(self, id: str) -> Row:
        row = self.found("deployments", id, "deployment")
        window = self.found("windows", row["window_id"], "window")
        return {
            "deployment_id": id,
            "service_id": window["service_id"],
            "date": window["date"],
            "time": window["time"],
            "replicas": row["replicas"],
            "status": row["status"],
        }


# ---------------------------------------------------------------- the domain

_ENGINEER, _SERVICE, _BUILD = read_ids("ENG", 6), read_ids("SVC", 6), read_ids("build-", 4)
_INCIDENT, _TYPE = read_ids("INC", 7), read_choice(TYPES)
_REGION, _NAME = REGION.find, SERVICE.find


class Operations(Desk):
    name = "operations"
    summary = "Regions, services, change windows, deployments, incidents, latencies and an on-call rota."
    world_class = OperationsWorld
    named = frozenset({"services.name"})
    namers: ClassVar[Mapping[str, Namer]] = {"group": REGION, "thing": SERVICE, "person": ENGINEER}
    said: ClassVar[Mapping[str, str]] = {
        "held": "Staged for {time}: {booking}.",
        "done": "Launched for {time}: {receipt}.",
        "cancelled": "{booking} is rolled back.",
        "left": "Done; {count} deployments are planned or live now.",
        "none": "no deployment is planned on {date}",
    }
    policy = (
        "You look after changes and incidents in some cloud regions. Do what the user asks with the tools, and nothing "
        "else. Ask when a detail is missing. Tell the user what they asked for; for a staged deployment its number, for "
        "a launch the rollout number, for a move the new time, for a page its number. If it cannot be done, leave "
        "nothing changed and say so."
    )
    terms = Terms(
        search="find_services", details="service_info", entries="list_incidents", outlook="region_load",
        distance="service_latency", slots="list_windows", bookings="list_deployments", permit="request_signoff",
        hold="stage_deployment", settle="launch_deployment", cancel="rollback_deployment", move="move_deployment",
        group="region", kind="service_type", thing="service_id", date="date", who="engineer_id", need="replicas",
        slot="window_id", booking="deployment_id", means="build", code="signoff",
        source="from_service", target="to_service",
        score="health", fee="hourly_cost", amount="minutes", figure="load_percent", far="latency_ms", room="free",
        receipt="rollout_id", status="status", held="staged", settled="live", cancelled="rolled_back",
    )  # fmt: skip
    details: Mapping[str, Detail] = {
        "group": Detail(
            "region", "Which region?", _REGION, ("region", "cluster", "where", "location", "zone", "site"), "a region I will name",
            record=("engineer_record", "engineer_id", "home_region"), column=("engineers", "home_region"),
        ),
        "kind": Detail(
            "type of service", "Which type of service?", _TYPE,
            ("type", "kind", "sort", "category", *TYPES), "service of a certain type",
        ),
        "date": Detail("date", "On which date?", values.dates, ("date", "day", "when", "time"), "a day I have in mind"),
        "new_date": Detail("new date", "To which new date?", values.dates, ("new", "date", "day", "when"), "another day"),
        "other_date": Detail("other date", "Which other date?", values.dates, ("other", "date", "day"), "another day"),
        "need": Detail(
            "number of replicas", "How many replicas?", read_counts,
            ("replica", "instance", "pod", "copy", "many", "number", "count", "size", "scale"), "a few",
        ),
        "floor": Detail(
            "least number of minutes", "How many minutes at least?", read_counts,
            ("minute", "least", "long", "many", "number", "minimum", "threshold", "downtime", "duration"), "a few",
        ),
        "who": Detail(
            "engineer id", "What is the engineer id?", _ENGINEER,
            ("engineer", "id", "who", "whom", "whose", "owner", "account", "name"), "an engineer",
        ),
        "means": Detail("build", "Which build?", _BUILD, ("build", "version", "release", "artifact", "image"), "a certain build"),
        "source": Detail(
            "service to start from", "Which service do you start from?", _SERVICE,
            ("start", "from", "source", "caller", "origin"), "my own service",
        ),
        "first": Detail("first service", "Which is the first service?", _NAME, ("first", "service"), "one service"),
        "second": Detail("second service", "Which is the second service?", _NAME, ("second", "service"), "another one"),
        "incident": Detail("incident", "Which incident?", _INCIDENT, ("incident", "outage", "ticket", "alert"), "an incident"),
    }  # fmt: skip

    def __init__(self) -> None:
        made: list[graphs.Graph] = [family().bind(self) for family in FAMILIES]
        self.families = {family.name: family for family in made}

    def derive(self, seed: int, size: int, split: Split) -> Derive:
        return rows(seed, size, split)

    def normalise(self, state: State) -> Changes:
        out: Changes = {}
        for (table, id), row in state.changes().items():
            if table == "signoffs":
                continue
            if table == "deployments" and row is not None and state.start(table, id) is None:
                if row["status"] == "rolled_back":
                    continue
                id = f"new {row['window_id']} {row['engineer_id']}"
                while (table, id) in out:
                    id += " again"
            out[table, id] = row
        return out

    def vary(self, task: Task, table: str, column: str, value: Any, salt: object) -> Any:
        split, seed = task.split, task.seed
        if column == "name" and table in ("services", "engineers"):
            namer = SERVICE if table == "services" else ENGINEER
            n = namer.number(split, seed, value) or 0
            return namer.name(split, seed, shifted_number(n, salt, 0, namer.capacity(split) - 1, 1))
        if (table, column) == ("windows", "time"):
            return f"{shifted_number(int(value[:2]), salt, 1, 20, 1):02d}{value[2:]}"
        if (table, column) == ("deployments", "window_id"):  # the same window of the same day of another service
            service, rest = divmod(WINDOW_ID.number(split, seed, value) or 0, DAYS * WINDOWS)
            moved = shifted_number(service, salt, 0, regions_of(task.size) * PER_REGION - 1, 1)
            return WINDOW_ID.id(split, seed, moved * DAYS * WINDOWS + rest)
        if (table, column) == ("rota", "engineer_id"):  # another one at home in the region
            turn, region = divmod(ENGINEER_ID.number(split, seed, value) or 0, regions_of(task.size))
            moved = shifted_number(turn, salt, 0, task.size // regions_of(task.size) - 1, 1)
            return ENGINEER_ID.id(split, seed, moved * regions_of(task.size) + region)
        if (table, column) == ("incidents", "status"):
            return ("open", "resolved")[digest("vary", salt)[0] % 2]
        moves = {
            "services.health": (60.0, 99.9, 0.1),
            "services.hourly_cost": (3, 92, 1),
            "incidents.minutes": (4, 240, 1),
            "loads.load_percent": (5, 99, 1),
            "latencies.latency_ms": (1, 240, 1),
            "windows.capacity": (1, 8, 1),
            "deployments.replicas": (1, 4, 1),
        }.get(f"{table}.{column}")
        if moves is None or (column == "capacity" and not value):
            return value
        return shifted_number(value, (table, column, salt), *moves)

    # -- rows for the graphs

    def things(self, state: State, group: str, kind: str) -> list[Thing]:
        found = ((id, state.row("services", id)) for id in services_in(state, group) or ())
        return [
            Thing(id, row["name"], row["health"], row["hourly_cost"])
            for id, row in found
            if row and row["service_type"] == kind
        ]

    def thing(self, state: State, id: str) -> Thing | None:
        row = state.row("services", id)
        return Thing(id, row["name"], row["health"], row["hourly_cost"]) if row else None

    def amounts(self, state: State, thing: str) -> list[int]:
        return [row["minutes"] for _, row in self.incidents(state, thing)]

    def figure(self, state: State, group: str, date: str) -> int:
        row = state.row("loads", f"{group}|{date}")
        return int(row["load_percent"]) if row else 0

    def far(self, state: State, source: str, target: str) -> int:
        row = state.row("latencies", hop(source, target))
        return int(row["latency_ms"]) if row else 0

    def slots(self, state: State, thing: str, date: str) -> list[Slot]:
        found = ((id, state.row("windows", id)) for id in windows_of(state, thing, date))
        made = [Slot(id, row["time"], spare(state, id, row["capacity"])) for id, row in found if row]
        return sorted(made, key=lambda s: s.time)

    def bookings(self, state: State, who: str) -> list[Booking]:
        out = []
        for id in deployments_of(state, who):
            row = state.row("deployments", id)
            window = row and state.row("windows", row["window_id"])
            if row and window:
                live = row["status"] != "rolled_back"
                made = Booking(id, row["window_id"], window["service_id"], window["date"], row["replicas"], live)
                out.append(made)
        return out

    def made(self, state: State, slot: str, who: str, need: int, means: str | None) -> Changes:
        row = {
            "engineer_id": who,
            "window_id": slot,
            "replicas": need,
            "status": "live" if means else "staged",
            "build": means or "",
        }
        signoff = {"signoff": signoff_of(slot, who)}
        return {("deployments", new_id(state, slot, who)): row, ("signoffs", f"{slot}|{who}"): signoff}

    def ended(self, state: State, booking: str) -> Changes:
        row = state.row("deployments", booking) or {}
        return {("deployments", booking): {**row, "status": "rolled_back", "build": ""}}

    def moved(self, state: State, booking: str, slot: str) -> Changes:
        row = state.row("deployments", booking) or {}
        who = row["engineer_id"]
        return {
            ("deployments", booking): {**row, "window_id": slot},
            ("signoffs", f"{slot}|{who}"): {"signoff": signoff_of(slot, who)},
        }

    def new_bookings(self, end: State) -> list[tuple[str, str | None]]:
        return [
            (id, rollout_of(id, row["build"]) if row["build"] else None)
            for id, row in end.written("deployments")
            if end.start("deployments", id) is None and row["status"] != "rolled_back"
        ]

    def someone(self, rng: Random, state: State) -> tuple[str, str]:
        n = rng.randrange(state.size)
        for step in range(state.size):  # the next one whose access is active
            id = ENGINEER_ID.id(state.split, state.seed, (n + step) % state.size)
            row = state.row("engineers", id)
            if row and row["access"] == "active":
                return id, row["home_region"]
        return ENGINEER_ID.id(state.split, state.seed, n), REGION.name(state.split, state.seed, 0)

    def allowed(self, state: State, who: str) -> bool:
        row = state.row("engineers", who)
        return row is not None and row["access"] == "active"

    def kinds(self) -> tuple[str, ...]:
        return tuple(TYPES)

    def dates(self, state: State) -> list[str]:
        return calendar(state.seed)

    def means(self, rng: Random) -> str:
        return f"build-{rng.randrange(10000):04d}"

    def needs(self, rng: Random) -> int:
        return rng.randint(2, 5)

    def floors(self, rng: Random) -> int:
        return rng.choice((15, 20, 30, 45, 60, 90, 120, 150))

    def full(self, state: State, thing: str, date: str) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for id in windows_of(state, thing, date):
            out |= edit("windows", id, state.row("windows", id) or {}, capacity=0)
        return out

    def barred(self, state: State, who: str) -> dict[str, Any]:
        return edit("engineers", who, state.row("engineers", who) or {}, access="suspended")

    def emptied(self, state: State, group: str, kind: str) -> dict[str, Any]:
        names = tuple(TYPES)
        other = names[(names.index(kind) + 1) % len(names)]
        out: dict[str, Any] = {}
        for thing in self.things(state, group, kind):
            out |= edit("services", thing.id, state.row("services", thing.id) or {}, service_type=other)
        return out

    def lost(self, state: State, booking: str) -> dict[str, Any]:
        return {f"deployments/{booking}": None}

    # -- rows for the families of its own

    def incidents(self, state: State, service: str) -> list[tuple[str, Row]]:
        return [(id, row) for id in incidents_of(state, service) if (row := state.row("incidents", id))]

    def on_duty(self, state: State, region: str, date: str) -> str | None:
        """The engineer who is on call."""
        row = state.row("rota", f"{region}|{date}")
        return str(row["engineer_id"]) if row else None

    def paged(self, state: State, incident: str, engineer: str, date: str) -> Changes:
        """What paging leaves behind."""
        row = state.row("incidents", incident) or {}
        page = {"incident_id": incident, "engineer_id": engineer, "date": date}
        return {
            ("pages", page_of(incident, engineer, date)): page,
            ("incidents", incident): {**row, "status": "paged"},
        }

    def unmanned(self, region: str, date: str) -> dict[str, Any]:
        """Edits after which nobody is on call."""
        return {f"rota/{region}|{date}": None}

    def closed(self, state: State, services: list[str]) -> dict[str, Any]:
        """Edits after which some services have no open incident."""
        out: dict[str, Any] = {}
        for service in services:
            for id, row in self.incidents(state, service):
                if row["status"] == "open":
                    out |= edit("incidents", id, row, status="resolved")
        return out


# ---------------------------------------------------------------- families over the shared graphs


class HourlyCost(graphs.Fact):
    """The hourly cost of the healthiest service."""

    name = "hourly_cost"
    queries = (
        "What does the healthiest {service_type} in {region} cost per hour?",
        "How much do we pay an hour for the {service_type} with the best health score in {region}?",
        "I need the hourly running cost of the {service_type} in {region} that scores highest on health.",
        "In {region}, which hourly rate are we charged for the healthiest {service_type}?",
        "Look up the {service_type} with the top health score in {region} and tell me what it costs to run per hour.",
    )


class HourlyCostAsked(graphs.FactAsked):
    """The hourly cost of the healthiest service; the user leaves out the region or the type."""

    name = "hourly_cost_asked"
    queries = (
        "What does the healthiest {service_type} in {region} cost per hour?",
        "How much do we pay an hour for the {service_type} with the best health score in {region}?",
        "Please tell me the hourly cost of the {service_type} in {region} that scores highest on health.",
        "For the budget review: what does it cost per hour to run the healthiest {service_type} in {region}?",
    )


class OutageCount(graphs.Tally):
    """How many incidents of the healthiest service reach a number of minutes."""

    name = "outage_count"
    queries = (
        "How many incidents with at least {at_least} minutes of downtime has the healthiest {service_type} in {region} had?",
        "Count the incidents of {at_least} minutes or more at the {service_type} with the best health score in {region}.",
        "Look up the healthiest {service_type} in {region}: how many of its incidents lasted {at_least} minutes or longer?",
        "For the post-mortem of {region} I need the {service_type} that scores highest on health. How many of its "
        "incidents reached {at_least} minutes of downtime?",
    )


class CheaperService(graphs.Versus):
    """Which of two named services costs less."""

    name = "cheaper_service"
    queries = (
        "Which {service_type} in {region} is cheaper to run, {first} or {second}?",
        "We may shut down a {service_type} in {region}: {first} or {second}. Which has the lower hourly cost?",
        "Compare the hourly costs of a {service_type} in {region}: is {first} or {second} the cheaper?",
        "I have to pick a {service_type} in {region} and money matters. Does {first} or {second} cost less per hour?",
    )


class EarliestWindow(graphs.NextSlot):
    """The earliest change window of the healthiest service with enough replicas free."""

    name = "earliest_window"
    queries = (
        "When is the earliest change window with {replicas} free replicas for the healthiest {service_type} in {region} on {date}?",
        "On {date}, at what time does the {service_type} with the best health score in {region} first have {replicas} replicas free?",
        "I want to change {replicas} replicas of the healthiest {service_type} in {region}. What is the first time on {date} that has room?",
        "Find the first change window on {date} that can take {replicas} replicas, for the {service_type} in {region} "
        "that scores highest on health.",
    )


class RollBack(graphs.Cancel):
    """Roll back the deployment on a date."""

    name = "roll_back"
    queries = (
        "Roll back the deployment of engineer {engineer_id} on {date}.",
        "What {engineer_id} deployed for {date} is causing trouble. Please roll that deployment back.",
        "I am {engineer_id}. Undo my deployment of {date}.",
        "Please revert the change that {engineer_id} has planned for {date}; we no longer want it.",
    )


class StageChange(graphs.Hold):
    """Stage a deployment of the healthiest service."""

    name = "stage_change"
    queries = (
        "Stage {replicas} replicas of the healthiest {service_type} in {region} on {date} for engineer {engineer_id}, as early as possible.",
        "For {engineer_id}: stage a deployment of {replicas} replicas, without launching it, in the first window with "
        "room on {date} for the {service_type} with the best health score in {region}.",
        "Please prepare a deployment for {engineer_id} in the earliest window with {replicas} free replicas on {date}, "
        "on the {service_type} in {region} that scores highest on health. Do not launch anything yet.",
        "On {date}, stage the healthiest {service_type} in {region} with {replicas} replicas in the earliest window "
        "that fits. The engineer is {engineer_id}.",
    )


class StageChangeAsked(graphs.HoldAsked):
    """Stage a deployment of the healthiest service; the user leaves out the date or the number of replicas."""

    name = "stage_change_asked"
    queries = (
        "Stage {replicas} replicas of the healthiest {service_type} in {region} on {date} for engineer {engineer_id}, as early as possible.",
        "For {engineer_id}: stage {replicas} replicas, nothing launched, in the first window with room on {date} for the "
        "{service_type} with the best health score in {region}.",
        "Engineer {engineer_id} needs a deployment staged on {date}: {replicas} replicas, the healthiest {service_type} "
        "in {region}, earliest window that fits.",
        "Please prepare {replicas} replicas for {engineer_id} on the {service_type} in {region} that scores highest on "
        "health, on {date}, in the first window that has them free.",
    )


class LaunchBuild(graphs.Book):
    """Stage a deployment of the healthiest service and launch a build."""

    name = "launch_build"
    queries = (
        "Deploy {build} to {replicas} replicas of the healthiest {service_type} in {region} on {date} for {engineer_id}, earliest window, and launch it.",
        "Engineer {engineer_id} wants the first window with {replicas} free replicas on {date} for the {service_type} "
        "with the best health score in {region}; stage it and launch {build}.",
        "Please roll {build} out for {engineer_id}: the healthiest {service_type} in {region}, {replicas} replicas, {date}, as early as possible.",
        "On {date}, get {replicas} replicas of the {service_type} in {region} that scores highest on health into the "
        "earliest window that fits for {engineer_id}, and launch {build} there.",
    )


class WindowsFull(graphs.Full):
    """Launch a build on a day without free replicas: to be refused."""

    name = "windows_full"
    queries = LaunchBuild.queries


class SuspendedAccess(graphs.Barred):
    """Launch a build for an engineer whose access is suspended: to be refused."""

    name = "suspended_access"
    queries = LaunchBuild.queries


class CheapestLaunch(graphs.Thrift):
    """Stage a deployment of the service with the lowest cost and launch a build."""

    name = "cheapest_launch"
    queries = (
        "Deploy {build} to {replicas} replicas of the cheapest {service_type} in {region} on {date} for {engineer_id}, earliest window, and launch it.",
        "The budget is tight: for {engineer_id}, take the {service_type} with the lowest hourly cost in {region}, the "
        "first window with {replicas} free replicas on {date}, and launch {build}.",
        "Find out which {service_type} in {region} costs least per hour. Stage {replicas} replicas of it on {date} for "
        "{engineer_id} as early as possible and launch {build}.",
        "Please roll {build} out for {engineer_id}: the least expensive {service_type} in {region}, {replicas} replicas, {date}, earliest window that fits.",
    )


class CheapestLaunchSuspended(graphs.ThriftBarred):
    """Launch a build on the cheapest service for an engineer whose access is suspended: to be refused."""

    name = "cheapest_launch_suspended"
    queries = CheapestLaunch.queries


class QuieterDay(graphs.Outing):
    """Launch a build on the day with the lower load."""

    name = "quieter_day"
    queries = (
        "Deploy {build} to {replicas} replicas of the healthiest {service_type} in {region} on {date} or {other_date}, "
        "whichever has the lower expected load, for {engineer_id}; earliest window, and launch it.",
        "Check the load of {region}: on the quieter of {date} and {other_date}, stage {replicas} replicas of the "
        "{service_type} with the best health score for {engineer_id}, as early as possible, and launch {build}.",
        "{engineer_id} can deploy on {date} or {other_date}. Take the day on which {region} expects less load, put "
        "{replicas} replicas of the healthiest {service_type} into the first window with room and launch {build}.",
        "We want {build} out on {date} or {other_date}, depending on when {region} is less loaded: {replicas} replicas of "
        "the {service_type} that scores highest on health, earliest window that fits, engineer {engineer_id}.",
    )


class MoveChange(graphs.Shift):
    """Move a deployment to another date."""

    name = "move_change"
    queries = (
        "Move the deployment of {engineer_id} on {date} to {new_date}, earliest window with enough free replicas.",
        "{engineer_id} is away on {date}. Please reschedule that deployment to {new_date}, same service, as early as possible.",
        "I am {engineer_id}. Shift my deployment from {date} to the first window that fits on {new_date}.",
        "The change that {engineer_id} has on {date} must wait: put it on {new_date}, at the earliest time with room for "
        "all its replicas.",
    )


class RunningCosts(graphs.Total):
    """The sum of hourly costs over the services an engineer deploys to."""

    name = "running_costs"
    queries = (
        "Add up the hourly costs of all services that engineer {engineer_id} has deployments on (leave out what is rolled back).",
        "What do the services in {engineer_id}'s deployments cost per hour in total, not counting deployments that were rolled back?",
        "For {engineer_id}: sum the hourly cost of the service over every deployment that is staged or live.",
        "{engineer_id} has to report costs. How much per hour do the services come to together, over all deployments "
        "that are not rolled back?",
    )


class LowestLatency(graphs.Closest):
    """The service of a type with the lowest latency from a given one."""

    name = "lowest_latency"
    queries = (
        "From {from_service}, which {service_type} in {region} has the lowest latency?",
        "Our calls start at {from_service}. Which {service_type} of {region} answers them with the least latency?",
        "Find the {service_type} in {region} that is closest to {from_service} in milliseconds of latency.",
        "I want {from_service} to talk to the fastest {service_type} in {region}. Which has the shortest latency from there?",
    )


class ReplaceChange(graphs.Rebook):
    """Replace a deployment by another one that is launched, and say how many are left."""

    name = "replace_change"
    queries = (
        "{engineer_id} wants to swap: roll back the deployment on {date} and deploy the healthiest {service_type} in "
        "{region} on {new_date} instead, {replicas} replicas, earliest window, launched with {build}. How many "
        "deployments are not rolled back then?",
        "Instead of the change on {date}, {engineer_id} should deploy to the {service_type} with the best health score in "
        "{region} on {new_date}: {replicas} replicas as early as possible, launch {build}, and roll the old deployment "
        "back. Then tell me the number of deployments that are still staged or live.",
        "For {engineer_id}: replace what is deployed on {date} by the healthiest {service_type} in {region} on {new_date} "
        "(first window with {replicas} free replicas, {build}). Afterwards, how many deployments still stand?",
        "Please drop the deployment {engineer_id} has on {date}. In its place comes {new_date} with the {service_type} in "
        "{region} that scores highest on health, {replicas} replicas in the earliest window that fits, and {build} is "
        "launched. How many deployments does that leave that are not rolled back?",
    )


# ---------------------------------------------------------------- families of its own


class Duty(graphs.Graph):
    """A family around incidents and the engineer on call."""

    domain: Operations

    def on_call(self, region: str, date: str) -> Gathering:
        return (yield ToolCall("on_call", {"region": region, "date": date})).content["engineer_id"]

    def page(self, incident: str, region: str, date: str) -> Solution:
        engineer = yield from self.on_call(region, date)
        args = {"incident_id": incident, "engineer_id": engineer, "date": date}
        made = yield ToolCall("page_engineer", args)
        return f"The page is out: {made.content['page_id']}."

    def logged(self, service: str) -> graphs.Rows:
        t = self.t
        rows: list[Row] = (yield ToolCall(t.entries, {t.thing: service})).content
        return rows

    def page_id(self, end: State) -> tuple[Expected, ...]:
        return (Expected("id", next((id for id, _ in end.written("pages")), "none")),)


class OnCallName(Duty):
    """The name of the engineer who is on call."""

    name = "on_call_name"
    level = 1
    roles: ClassVar[tuple[str, ...]] = ("group", "date")
    stands = "rota > record"
    queries = (
        "Who is on call for {region} on {date}? I need the name.",
        "Give me the name of the engineer on call in {region} on {date}.",
        "On {date}, who has the pager for {region}? Please tell me the name.",
        "I have to hand {region} over on {date}. What is the on-call engineer called?",
        "Look at the rota: what is the name of whoever is on duty in {region} on {date}?",
    )

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        return self.stated(self.domain.someone(rng, state)[1], rng.choice(self.domain.dates(state)))

    def solve(self, brief: Brief) -> Solution:
        region, date = yield from self.gather(brief)
        engineer = yield from self.on_call(region, date)
        record = (yield ToolCall("engineer_record", {"engineer_id": engineer})).content
        return f"{record['name']} is on call."

    def engineer(self, task: Task, start: State) -> Row | None:
        region, date = self.wanted(task, start)
        id = self.domain.on_duty(start, region, date)
        return start.row("engineers", id) if id else None

    def ends(self, task: Task, start: State) -> list[Changes]:
        return [{}] if self.engineer(task, start) else []

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        engineer = self.engineer(task, start)
        return (Expected("name", engineer["name"]),) if engineer else ()

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        return [self.domain.unmanned(*self.wanted(task, state))]


class MostDowntime(Duty):
    """The service of a type with the most minutes of downtime over all its incidents."""

    name = "most_downtime"
    level = 2
    roles: ClassVar[tuple[str, ...]] = ("kind", "group")
    stands = "search > entries, for each (greatest sum)"
    queries = (
        "Which {service_type} in {region} has had the most downtime over all its incidents?",
        "Add up the minutes of downtime per {service_type} in {region}: which comes out worst?",
        "In {region}, what is the {service_type} called whose incidents come to the most minutes of downtime in total?",
        "We want to replace the least reliable {service_type} of {region}, going by total minutes of downtime, open "
        "incidents included. Which is it?",
    )

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        at = self.place(rng, state, 3, 5)
        if at is None:
            return None
        totals = sorted(sum(self.domain.amounts(state, thing.id)) for thing in at[2])
        return None if totals[-1] == totals[-2] else self.stated(at[1], at[0])

    def solve(self, brief: Brief) -> Solution:
        t = self.t
        kind, group = yield from self.gather(brief)
        rows = yield from self.found(group, kind)
        if not rows:
            return self.nothing(group, kind)
        totals = {}
        for row in rows:
            minutes = [r[t.amount] for r in (yield from self.logged(row[t.thing]))]
            totals[row[t.name]] = sum(minutes)
            yield notes.total(minutes)
        worst = max(totals, key=lambda name: totals[name])
        yield notes.choice(totals, worst, "most")
        return f"{worst} has had the most downtime."

    def ranked(self, task: Task, start: State) -> list[str]:
        kind, group = self.wanted(task, start)
        things = self.domain.things(start, group, kind)
        return [t.name for t in sorted(things, key=lambda t: -sum(self.domain.amounts(start, t.id)))]

    def ends(self, task: Task, start: State) -> list[Changes]:
        return [{}] if self.ranked(task, start) else []

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        ranked = self.ranked(task, start)
        return (Expected("name", ranked[0], others=tuple(ranked[1:])),) if ranked else ()

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        return [self.no_thing(task, state)]


class PageOnDuty(Duty):
    """Page whoever is on call about a given incident."""

    name = "page_on_duty"
    level = 1
    roles: ClassVar[tuple[str, ...]] = ("group", "date")
    stands = "rota > page"
    queries = (
        "Page whoever is on call in {region} on {date} about {incident_id}.",
        "{incident_id} is still open. Please page the engineer who is on duty for {region} on {date}.",
        "On {date}, get the on-call engineer of {region} out of bed for {incident_id}.",
        "I need someone on {incident_id}: find out who has the pager for {region} on {date} and page them.",
    )

    def bind(self, domain: Desk) -> graphs.Graph:
        super().bind(domain)
        self._details["incident_id"] = domain.details["incident"]
        return self

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        region = self.domain.someone(rng, state)[1]
        service = rng.choice(services_in(state, region) or [""])
        still = [id for id, row in self.domain.incidents(state, service) if row["status"] == "open"]
        return self.stated(region, rng.choice(self.domain.dates(state)), rng.choice(still)) if still else None

    def solve(self, brief: Brief) -> Solution:
        region, date, incident = yield from self.gather(brief)
        return (yield from self.page(incident, region, date))

    def ends(self, task: Task, start: State) -> list[Changes]:
        region, date, incident = self.wanted(task, start)
        row, engineer = start.row("incidents", incident), self.domain.on_duty(start, region, date)
        service = row and start.row("services", row["service_id"])
        if not row or row["status"] != "open" or not service or service["region"] != region:
            return []
        if engineer is None or not self.domain.allowed(start, engineer):
            return []
        return [self.domain.paged(start, incident, engineer, date)]

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        return self.page_id(end)

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        region, date, incident = self.wanted(task, state)
        engineer, row = self.domain.on_duty(state, region, date), state.row("incidents", incident)
        if engineer is None or row is None:
            return []
        return [
            self.domain.unmanned(region, date),
            self.domain.barred(state, engineer),
            edit("incidents", incident, row, status="resolved"),
        ]


class PageWeakest(Duty):
    """Page whoever is on call about the longest open incident of the service with the worst health."""

    name = "page_weakest"
    level = 2
    roles: ClassVar[tuple[str, ...]] = ("kind", "group", "date")
    stands = "search > entries (longest open) > rota > page"
    fewest: ClassVar[int] = 2
    queries = (
        "Take the {service_type} with the worst health score in {region} and page whoever is on call there on {date} "
        "about its longest open incident.",
        "The {service_type} in {region} that scores lowest on health worries me. Page the engineer on duty on {date} "
        "for the open incident of it with the most minutes of downtime.",
        "On {date}, page the on-call engineer of {region} about the open incident with the most downtime at the "
        "least healthy {service_type} there.",
        "Find the {service_type} with the lowest health in {region}. Of its incidents that are still open, page out the "
        "longest to whoever has the pager on {date}.",
    )

    def looked_at(self, things: list[Thing]) -> list[Thing]:
        """The things whose incidents count."""
        return [min(things, key=lambda t: t.score)] if things else []

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
        open_for = sorted(row["minutes"] for _, row in self.still_open(state, at[2]))
        if scores[0] == scores[1] or not open_for or open_for[-1:] == open_for[-2:-1]:
            return None
        return self.stated(at[1], at[0], rng.choice(self.domain.dates(state)))

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

    def logs(self, state: State, things: list[Thing]) -> list[tuple[str, Row]]:
        return [entry for thing in self.looked_at(things) for entry in self.domain.incidents(state, thing.id)]

    def still_open(self, state: State, things: list[Thing]) -> list[tuple[str, Row]]:
        return [(id, row) for id, row in self.logs(state, things) if row["status"] == "open"]

    def at(self, task: Task, start: State) -> tuple[list[Thing], str, str | None]:
        """The things of the request, its date, and who is on call then."""
        kind, group, date = self.wanted(task, start)
        return self.domain.things(start, group, kind), date, self.domain.on_duty(start, group, date)

    def ends(self, task: Task, start: State) -> list[Changes]:
        things, date, engineer = self.at(task, start)
        still = self.still_open(start, things)
        if not still or engineer is None or not self.domain.allowed(start, engineer):
            return []
        return [self.domain.paged(start, max(still, key=lambda entry: entry[1]["minutes"])[0], engineer, date)]

    def hopes(self, task: Task, start: State) -> list[Changes]:
        """Any of the incidents might have been the longest that is open."""
        things, date, engineer = self.at(task, start)
        logs = self.logs(start, things) if engineer else []
        return [self.domain.paged(start, id, engineer or "", date) for id, _ in logs]

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        return self.page_id(end)

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        things, date, engineer = self.at(task, state)
        return [
            self.no_thing(task, state),
            self.domain.closed(state, [thing.id for thing in self.looked_at(things)]),
            self.domain.unmanned(self.settled(task, state)[self.t.group], date),
            *([self.domain.barred(state, engineer)] if engineer else []),
        ]


class PageLongest(PageWeakest):
    """Page whoever is on call about the longest open incident of all services of a type."""

    name = "page_longest"
    level = 3
    stands = "search > entries, for each (longest open) > rota > page"
    fewest: ClassVar[int] = 4
    queries = (
        "Go through every {service_type} in {region} and page whoever is on call there on {date} about the open "
        "incident with the most minutes of downtime.",
        "Of all open incidents at any {service_type} in {region}, page the longest to the engineer on duty on {date}.",
        "On {date}, page the on-call engineer of {region} about the worst open incident, by minutes of downtime, that "
        "any {service_type} there has.",
        "Check the incidents of each {service_type} in {region}. Whoever has the pager on {date} should be paged about "
        "the one that is still open and has lasted longest.",
    )

    def looked_at(self, things: list[Thing]) -> list[Thing]:
        return things

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
    queries = PageWeakest.queries

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, Any]]:
        _, _, engineer = self.at(task, state)
        return [self.domain.barred(state, engineer)] if engineer else []


FAMILIES: tuple[type[graphs.Graph], ...] = (
    HourlyCost, HourlyCostAsked, OutageCount, CheaperService, EarliestWindow, RollBack, WindowsFull,
    StageChange, StageChangeAsked, LaunchBuild, MoveChange, RunningCosts, LowestLatency, SuspendedAccess,
    CheapestLaunch, QuieterDay, ReplaceChange, CheapestLaunchSuspended,
    OnCallName, PageOnDuty, MostDowntime, PageWeakest, PageSuspended, PageLongest,
)  # fmt: skip

OPERATIONS = Operations()
domains.add(OPERATIONS.name, OPERATIONS)
