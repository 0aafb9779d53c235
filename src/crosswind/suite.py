"""Many episodes: which tasks under which conditions, and how agents fare in them.

A suite is data. Its conditions are recipes; each is met by the same tasks as the clean condition, as far as it applies
to them, so that clean and shifted episodes come in pairs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Self

from pydantic import Field, model_validator

from crosswind.certify import Walk
from crosswind.domain import SIZE, Domain
from crosswind.errors import BadFile, CannotPerturb
from crosswind.files import Place, read
from crosswind.flow import rng_for
from crosswind.play import judge, play
from crosswind.recipe import SEVERITY, Choice, Drawn, Recipe, draw, kinds_of, known_kinds
from crosswind.registry import Registry, agents, domains, near, perturbations
from crosswind.types import Model, Split, Task

CLEAN = "clean"
Progress = Callable[[str, str], None]
LOOKED = 12  # tasks that are looked at for each one wanted, before a condition is taken not to apply


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


def tasks(
    domain: Domain, seed: int, *, split: Split = "test", size: int = SIZE, levels: Sequence[int] = ()
) -> Iterator[Task]:
    """Tasks of a domain without end, each family in turn."""
    names = [n for n, f in domain.families.items() if not levels or f.level in levels]
    if not names:
        raise BadFile(f"{domain.name} has no family of level {', '.join(map(str, levels))}; levels are 1, 2 and 3")
    n = 0
    while True:
        yield domain.task(names[n % len(names)], seed + n, split=split, size=size)
        n += 1


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
    """All episodes of a suite, in order. The clean condition holds every task that another condition has."""
    conditions = suite.all_conditions()
    for name in dict.fromkeys(d for c in conditions for d in suite.where(c)):
        domain = domains[name]
        paired: dict[str, Task] = {}
        shifted: list[Episode] = []
        for condition in conditions:
            if name not in suite.where(condition):
                continue
            if progress:
                progress(name, condition.name)
            wanted = condition.tasks or suite.tasks
            got = 0
            for looked, task in enumerate(tasks(domain, seed, split=suite.split, levels=suite.levels)):
                if got == wanted or looked == LOOKED * wanted + 60:
                    break
                if not condition.stack:
                    paired.setdefault(task.id, task)
                    got += 1
                elif drawn := under(domain, condition, task, seed):
                    paired.setdefault(task.id, task)
                    shifted.append(Episode(condition.name, task.id, drawn, condition.severity))
                    got += 1
        for id, task in paired.items():
            yield Episode(CLEAN, id, draw(domain, task, (), seed))
        yield from shifted


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
    return list(rows.values())


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
        name="full",
        summary="Every kind in every domain, and random stacks of up to five.",
        each_of="all",
        tasks=18,
        stacks=5,
    ),
):
    suites.add(_suite.name, _suite)
