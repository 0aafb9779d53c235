"""Many episodes: which tasks under which conditions, and how agents fare in them.

A suite is data. Its conditions are recipes; each is met by the same tasks as the clean condition, as far as it applies
to them, so that clean and shifted episodes come in pairs.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import count
from math import ceil
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from crosswind.base.errors import BadFile, CannotPerturb
from crosswind.base.files import Place, read
from crosswind.core.domain import SIZE, Domain
from crosswind.core.draw import SEVERITY, Drawn, draw
from crosswind.core.flow import rng_for
from crosswind.core.oracle import Walk
from crosswind.core.registry import LOADERS, Registry, agents, domains, near, perturbations, resolve
from crosswind.core.types import Model, Split, Task
from crosswind.episodes.play import judge, play
from crosswind.episodes.recipe import Choice, Recipe, kinds_of, known_kinds

CLEAN = "clean"
STACKS = "stacks"  # the sort of a condition of several kinds
Progress = Callable[[str, str], None]
LOOKED = 12  # tasks that are looked at for each one wanted, before a condition is taken not to apply
SHARED = 4  # shifted episodes for each task and clean episode


class Condition(Model):
    """One way in which the world differs: a recipe with a name."""

    name: str
    stack: tuple[Choice, ...] = ()
    tasks: int | None = Field(default=None, ge=1)  # per domain; the suite's number unless given
    domains: tuple[str, ...] = ()  # the suite's unless given

    @property
    def recipe(self) -> Recipe:
        return Recipe(name=self.name, stack=self.stack)

    @property
    def severity(self) -> int | None:
        """The one severity it has."""
        found = {s for choice in self.stack for s in choice.severity}
        return found.pop() if len(found) == 1 else None

    @property
    def kind(self) -> str:
        """The one kind it consists of, or nothing."""
        kinds = self.recipe.kinds()
        return kinds[0] if len(kinds) == 1 else ""


class Suite(Model):
    """A set of conditions over tasks of some domains."""

    name: str
    summary: str = ""
    domains: tuple[str, ...] = ()  # empty: all
    levels: tuple[int, ...] = ()  # empty: all
    split: Split = "test"
    tasks: int = Field(default=18, ge=1)  # per domain and condition
    conditions: tuple[Condition, ...] = ()
    each_of: Literal["", "train", "heldout", "all"] = ""  # a condition for each kind of a group,
    severity: int = Field(default=SEVERITY, ge=1, le=5)  # at this severity,
    severities: tuple[int, ...] = ()  # or at each of these
    balanced: bool = False  # tiers get equally many tasks, and axes within a tier
    stacks: int = Field(default=0, ge=0, le=8)  # one more condition: random stacks of up to so many kinds

    @model_validator(mode="after")
    def _sound(self) -> Self:
        names = [c.name for c in self.conditions]
        if any(not 1 <= s <= 5 for s in self.severities):
            raise ValueError("severities must be from 1 to 5")
        if any(level not in (1, 2, 3) for level in self.levels):
            raise ValueError("levels are 1, 2 and 3")
        if twice := [n for n in names if names.count(n) > 1 or n == CLEAN]:
            raise ValueError(f"the condition {twice[0]!r} comes twice; clean is always there")
        return self

    def all_conditions(self) -> list[Condition]:
        """Clean first, then those written down, then one for each kind of the group, then random stacks."""
        out = [Condition(name=CLEAN), *self.conditions]
        kinds = kinds_of(self.each_of) if self.each_of else []
        share = balance(kinds, self.tasks) if self.balanced else {}
        severity = (self.severity, self.severity)
        for kind in kinds:
            for level in self.severities or (self.severity,):
                name = f"{kind}@{level}" if self.severities else kind
                choice = Choice(kind=kind, severity=(level, level))
                out.append(Condition(name=name, stack=(choice,), tasks=share.get(kind)))
        if self.stacks:
            group = self.each_of or "all"
            stack = Choice(group=group, count=(2, self.stacks), severity=severity)
            out.append(Condition(name=f"stacks of up to {self.stacks}", stack=(stack,)))
        return out

    def where(self, condition: Condition) -> list[str]:
        return list(condition.domains or self.domains or domains.names())


def balance(kinds: Sequence[str], tasks: int) -> dict[str, int]:
    """How many tasks each kind gets so that tiers, and axes within a tier, come to the same number.

    The kind of the cell with the most kinds gets `tasks`; no kind gets less than one.
    """
    cells: dict[tuple[str, str], list[str]] = {}
    for kind in kinds:
        cls = perturbations[kind]
        cells.setdefault((cls.tier, cls.axis), []).append(kind)
    tiers: dict[str, list[tuple[str, str]]] = {}
    for cell in cells:
        tiers.setdefault(cell[0], []).append(cell)
    crowd = max((len(cells[c]) * len(of_tier) for of_tier in tiers.values() for c in of_tier), default=1)
    total = tasks * crowd  # per tier
    out = {}
    for of_tier in tiers.values():
        for cell in of_tier:
            wanted = total / len(of_tier)
            for i, kind in enumerate(cells[cell]):
                done = round(wanted * i / len(cells[cell]))
                out[kind] = max(1, round(wanted * (i + 1) / len(cells[cell])) - done)
    return out


def load_suite(name: str) -> Suite:
    """A suite by its name, or from a YAML file."""
    if name in suites:
        return suites[name]
    if not name.endswith((".yaml", ".yml")):
        suites[name]  # says which names there are
    document = read(name)
    if isinstance(document.data, dict) and "server" in document.data:  # tasks for an MCP server
        resolve(LOADERS["files"])([Path(name)])
        return suites[str(document.data["domain"])]
    suite = document.fit(Suite)
    for i, condition in enumerate(suite.conditions):
        known_kinds(document, ("conditions", i, "stack"), condition.recipe)
        if not condition.stack:
            raise document.error(("conditions", i), "has no stack; write the kinds it consists of, or leave it out")
    places: list[tuple[Place, tuple[str, ...]]] = [(("domains",), suite.domains)]
    places += [(("conditions", i, "domains"), c.domains) for i, c in enumerate(suite.conditions)]
    for place, names in places:
        for one in names:
            if one not in domains:
                raise document.error(place, f"no domain {one!r}; {near(one, domains.names())}")
    if len(suite.all_conditions()) == 1:
        raise BadFile(f"{document.at(())}: the suite has no condition; give conditions, each_of or stacks")
    return suite


# ---------------------------------------------------------------- episodes


class Deck:
    """The tasks of a domain by number: levels in turn, and the families of a level in turn.

    A domain that has an order of its own (`nth`), and an end, keeps them.
    """

    def __init__(
        self, domain: Domain, seed: int, *, split: Split = "test", size: int = SIZE, levels: Sequence[int] = ()
    ) -> None:
        self.domain, self.seed, self.split, self.size, self.within = domain, seed, split, size, tuple(levels)
        self._own: list[str] | None = None  # the families of its tasks in the domain's own order
        if type(domain).nth is not Domain.nth:
            self._own = []
            while task := self._nth(len(self._own)):
                self._own.append(task.family)
        found: dict[int, list[str]] = {}
        for name, family in domain.families.items():
            if not levels or family.level in levels:
                found.setdefault(family.level, []).append(name)
        if not found:
            raise BadFile(f"{domain.name} has no family of level {', '.join(map(str, levels))}; levels are 1, 2 and 3")
        self.levels = sorted(found)
        self.families = [found[level] for level in self.levels]

    @property
    def end(self) -> int | None:
        """How many tasks there are; None: without end."""
        return None if self._own is None else len(self._own)

    @property
    def round(self) -> int:
        """How many tasks it takes for every family to have come."""
        return len(self.levels) * max(map(len, self.families)) if self._own is None else len(self._own)

    def place(self, n: int) -> tuple[int, int]:
        """Which level, and which family of it, has a number."""
        if self._own is not None:
            level = self.levels.index(self.domain.families[self._own[n]].level)
            return level, self.families[level].index(self._own[n])
        level = n % len(self.levels)
        return level, n // len(self.levels) % len(self.families[level])

    def task(self, n: int) -> Task:
        task = None if self._own is None else self._nth(n)
        level, family = self.place(n)
        name = self.families[level][family]
        return task or self.domain.task(name, self.seed + n, split=self.split, size=self.size)

    def _nth(self, n: int) -> Task | None:
        return self.domain.nth(n, self.seed, split=self.split, size=self.size, levels=self.within)


def tasks(
    domain: Domain, seed: int, *, split: Split = "test", size: int = SIZE, levels: Sequence[int] = ()
) -> Iterator[Task]:
    """Tasks of a domain, as many as there are: levels in turn, and the families of a level in turn."""
    deck = Deck(domain, seed, split=split, size=size, levels=levels)
    return map(deck.task, count() if deck.end is None else range(deck.end))


@dataclass(slots=True)
class Want:
    """What a condition wants of a domain, and how far it came."""

    condition: Condition
    domain: str
    wanted: int
    sort: str  # the tier of the one kind, or clean, or stacks
    kind: str  # if it comes in several conditions, which then take the same tasks
    turn: float = 0.0  # its place among the conditions of its sort in the domain, from 0 to 1
    got: int = 0
    seen: int = 0  # tasks that were looked at
    looked: set[int] = field(default_factory=set)  # those of them that lie in the present window
    window: range = range(0)  # the numbers that are open to it
    levels: Counter[int] = field(default_factory=Counter)  # how often it took each level,
    tried: Counter[int] = field(default_factory=Counter)  # and looked at each

    @property
    def due(self) -> float:
        """When its next episode comes: from 0 at the start of the suite to 1 at its end."""
        return (self.got + self.turn) / self.wanted


@dataclass(slots=True)
class _Table:
    """A domain at which tasks are dealt: its deck, and who had what."""

    deck: Deck
    shared: int  # so many tasks are open to all conditions before any takes a further one
    turn: int  # where it begins among levels and families
    levels: Counter[tuple[str, int]] = field(default_factory=Counter)  # (sort of condition, level) -> how often
    families: Counter[tuple[str, int, int]] = field(default_factory=Counter)  # the same for families
    uses: Counter[tuple[str, int]] = field(default_factory=Counter)  # the same for the tasks that are shared
    chosen: set[tuple[str, int]] = field(default_factory=set)  # tasks of the kinds that come in several conditions
    paired: bytearray = field(default_factory=bytearray)  # by number of a task: was it taken?


class Deal:
    """Which condition comes next, and which task it meets.

    Conditions, tiers and domains advance together. A condition takes the task whose level it has had least often, then
    the one whose level, family and number the conditions of its tier in this domain have had least often, then one that
    has a clean episode already. So levels and families are mixed alike in every condition, in every tier and in every
    beginning of the suite, as far as conditions apply to them; and tiers meet the same tasks. Conditions of one and the
    same kind, at several severities say, take the same tasks.

    Tasks are shared: a domain opens one for every `SHARED` shifted episodes, at least as many as a condition wants and
    at most one round of its families; more only where a condition finds too few that it applies to.
    """

    def __init__(self, suite: Suite, seed: int) -> None:
        conditions = suite.all_conditions()
        kinds = Counter(condition.kind for condition in conditions if condition.kind)
        self.wants: list[Want] = []
        for condition in conditions:
            kind = condition.kind
            sort = perturbations[kind].tier if kind else STACKS if condition.stack else CLEAN
            for name in suite.where(condition):
                wanted = condition.tasks or suite.tasks
                self.wants.append(Want(condition, name, wanted, sort, kind if kinds[kind] > 1 else ""))
        self.sorts = list(dict.fromkeys(want.sort for want in self.wants))
        alike = Counter((want.domain, want.sort) for want in self.wants)
        before = Counter[tuple[str, str]]()
        for want in self.wants:
            want.turn = before[want.domain, want.sort] / alike[want.domain, want.sort]
            before[want.domain, want.sort] += 1
        # the place among ours, so that nothing depends on what else is loaded, or on a domain's being in the list
        ours = [name for name in domains.names() if not domains.origin(name)]
        self.tables: dict[str, _Table] = {}
        for name in dict.fromkeys(want.domain for want in self.wants):
            deck = Deck(domains[name], seed, split=suite.split, levels=suite.levels)
            here = [want for want in self.wants if want.domain == name]
            shifted = sum(want.wanted for want in here if want.condition.stack)
            most = max(ceil(shifted / SHARED), *(want.wanted for want in here))
            whole = ceil(most / len(deck.levels)) * len(deck.levels)
            self.tables[name] = _Table(deck, min(deck.round, whole), bisect_left(ours, name))

    def __iter__(self) -> Iterator[Want]:
        """Whose turn it is. It is to look at what is offered, and take the first that it applies to."""
        heap = [(want.due, n) for n, want in enumerate(self.wants)]
        heapify(heap)
        while heap:
            _, n = heappop(heap)
            want = self.wants[n]
            yield want
            if want.got < want.wanted:
                heappush(heap, (want.due, n))

    def offers(self, want: Want) -> Iterator[int]:
        """Numbers of tasks for a condition to look at, until one is taken; none when it has looked at enough."""
        table, before = self.tables[want.domain], want.got
        while want.got == before:
            if len(want.looked) == len(want.window):
                start, end = want.window.stop, table.deck.end
                stop = start + (table.deck.round if start else table.shared)
                want.window = range(start, stop if end is None else min(stop, end))
                want.looked.clear()
            if not want.window or want.seen == LOOKED * want.wanted + 60:
                want.got = want.wanted  # it looked at enough, or at all there are
                return
            number = min((n for n in want.window if n not in want.looked), key=lambda n: self._rank(table, want, n))
            want.looked.add(number)
            want.seen += 1
            want.tried[table.deck.place(number)[0]] += 1
            yield number

    def _rank(self, table: _Table, want: Want, number: int) -> tuple[int, ...]:
        """What speaks against a task: the least comes first."""
        if not want.condition.stack:
            return (number,)
        (level, family), sort = table.deck.place(number), want.sort
        levels, families = len(table.deck.levels), len(table.deck.families[level])
        return (
            want.kind != "" and (want.kind, number) not in table.chosen,
            want.levels[level],
            want.tried[level],
            table.levels[sort, level],
            (level - table.turn - self.sorts.index(sort)) % levels,
            table.families[sort, level, family],
            table.uses[sort, number],
            number >= len(table.paired) or not table.paired[number],
            (family - table.turn) % families,
            number,
        )

    def take(self, want: Want, number: int) -> bool:
        """A condition takes a task; is it the first to take it, so that its clean episode is due?"""
        table, sort = self.tables[want.domain], want.sort
        level, family = table.deck.place(number)
        want.got += 1
        want.levels[level] += 1
        table.levels[sort, level] += 1
        table.families[sort, level, family] += 1
        if number < table.shared:
            table.uses[sort, number] += 1
        if want.kind:
            table.chosen.add((want.kind, number))
        table.paired.extend(bytes(max(0, number + 1 - len(table.paired))))
        first, table.paired[number] = not table.paired[number], True
        return first


@dataclass(frozen=True, slots=True)
class Episode:
    """A task under a condition; `pair` is the task that its clean episode shares."""

    condition: str
    pair: str
    drawn: Drawn
    severity: int | None = None  # where the condition has one


def under(domain: Domain, condition: Condition, task: Task, seed: int, clean: Walk | None = None) -> Drawn | None:
    """A task under a condition, or None where the condition does not apply to it or finds no fair draw."""
    picks = condition.recipe.pick(rng_for("suite", seed, condition.name, task.id))
    try:
        drawn = draw(domain, task, picks, seed, strict=len(condition.recipe.kinds()) == 1, clean=clean)
    except CannotPerturb:
        return None
    return drawn if drawn.layers or not condition.stack else None


def episodes(suite: Suite, seed: int, progress: Progress | None = None) -> Iterator[Episode]:
    """All episodes of a suite, in order. The clean episode of a task comes right before its first shifted one."""
    deal = Deal(suite, seed)
    for want in deal:
        condition, domain, deck = want.condition, domains[want.domain], deal.tables[want.domain].deck
        if progress:
            progress(want.domain, condition.name)
        for number in deal.offers(want):
            task = deck.task(number)
            drawn = under(domain, condition, task, seed) if condition.stack else None
            if condition.stack and drawn is None:
                continue
            if deal.take(want, number):
                yield Episode(CLEAN, task.id, draw(domain, task, (), seed))
            if drawn:
                yield Episode(condition.name, task.id, drawn, condition.severity)


@dataclass(slots=True)
class Row:
    """How the agents fared in one domain under one condition."""

    domain: str
    condition: str
    n: int
    refusals: int  # tasks whose right end is a refusal
    passed: dict[str, int]


def sweep(suite: Suite, names: Sequence[str], seed: int, progress: Progress | None = None) -> list[Row]:
    """Play scripted agents over a suite."""
    rows: dict[tuple[str, str], Row] = {}

    async def run() -> None:
        for episode in episodes(suite, seed, progress):
            domain = episode.drawn.domain
            at = (domain.name, episode.condition)
            row = rows.setdefault(at, Row(*at, 0, 0, dict.fromkeys(names, 0)))
            row.n += 1
            row.refusals += episode.drawn.certificate.task.refuse
            for name in names:
                trajectory = await play(episode.drawn, agents[name](episode.drawn), name)
                row.passed[name] += judge(trajectory, domain).outcome == "pass"

    asyncio.run(run())
    conditions = [c.name for c in suite.all_conditions()]
    where = list(dict.fromkeys(d for c in suite.all_conditions() for d in suite.where(c)))
    return sorted(rows.values(), key=lambda row: (where.index(row.domain), conditions.index(row.condition)))


def over_domains(rows: Sequence[Row]) -> list[Row]:
    """The same figures with all domains together."""
    out: dict[str, Row] = {}
    for row in rows:
        one = out.setdefault(row.condition, Row("", row.condition, 0, 0, dict.fromkeys(row.passed, 0)))
        one.domain = row.domain if one.domain in ("", row.domain) else "all"
        one.n, one.refusals = one.n + row.n, one.refusals + row.refusals
        one.passed = {name: one.passed[name] + n for name, n in row.passed.items()}
    return list(out.values())


# ---------------------------------------------------------------- ours

suites: Registry[Suite] = Registry("suite", "crosswind.domains")


def _one(*kinds: str, severity: int = SEVERITY, where: tuple[str, ...] = ()) -> tuple[Condition, ...]:
    levels = (severity, severity)
    return tuple(Condition(name=k, stack=(Choice(kind=k, severity=levels),), domains=where) for k in kinds)


# the scenarios of the study that named the four axes and tiers; medical is the domain that its agents had not seen
ORIGINAL = (
    *("ambiguous", "underspecified", "verbose_query", "name_noise", "semantic_rename", "distractor_tools"),
    *("identity_erasure", "semantic_trap", "schema_noise", "parameter_rename"),
    *("missing_values", "format_switch", "transient_error", "redirection"),
    *("tool_merge", "tool_split", "dependency_inversion", "rule_change", "verification_code"),
    *("conflicting_information", "unsolvable", "fatal_error"),
)
# kinds that need no more of a domain than tools, results and a recorded solution, for benchmarks of other people
BORROWED = (
    *("verbose_query", "name_noise", "semantic_rename", "identity_erasure", "parameter_rename", "schema_noise"),
    *("distractor_tools", "lookalike_tools", "tool_split", "retired_midway", "confirm_before_write"),
    *("verification_code", "foreign_interface", "envelope", "format_switch", "key_rename", "rate_limit"),
    *("redirection", "transient_error", "lost_acknowledgement"),
)
for _suite in (
    Suite(
        name="quick",
        summary="At most 24 short episodes: one kind of each tier on four tasks, for a small local model.",
        domains=("poi",),
        levels=(1,),
        tasks=4,
        conditions=_one("semantic_rename", "format_switch", "tool_merge", "unsolvable", severity=2),
    ),
    Suite(
        name="tiers",
        summary="The kinds that training may use, in test words, balanced over tiers and axes.",
        each_of="train",
        balanced=True,
        tasks=3,
    ),
    Suite(
        name="original",
        summary="The scenarios of the original study on poi, and medical as the domain not seen.",
        domains=("poi",),
        tasks=18,
        conditions=(
            *_one(*ORIGINAL),
            *(Condition(name=f"medical: {k}", stack=(Choice(kind=k),), domains=("medical",)) for k in ORIGINAL),
        ),
    ),
    Suite(name="heldout", summary="Only kinds that training never uses, in test words.", each_of="heldout", tasks=9),
    Suite(
        name="doses",
        summary="The kinds that training may use at every severity, few tasks each.",
        each_of="train",
        severities=(1, 2, 3, 4, 5),
        domains=("poi", "retail"),
        tasks=4,
    ),
    Suite(
        name="bfcl",
        summary="Multi-turn tasks of the Berkeley Function Calling Leaderboard (package bfcl-eval), by its checker.",
        domains=("bfcl",),
        tasks=40,
        conditions=_one(*BORROWED),
    ),
    Suite(
        name="agentdojo",
        summary="The user tasks of AgentDojo (package agentdojo), judged by their utility functions.",
        domains=("agentdojo",),
        tasks=97,
        conditions=_one(*BORROWED, severity=1),
    ),
    Suite(
        name="full",
        summary="Every kind in every domain, and random stacks of up to five.",
        each_of="all",
        tasks=18,
        stacks=5,
    ),
):
    suites.add(_suite.name, _suite)
