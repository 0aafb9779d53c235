"""Many episodes: which tasks under which conditions, and how agents fare in them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from crosswind.certify import Walk
from crosswind.domain import SIZE, Domain
from crosswind.errors import CannotPerturb
from crosswind.flow import rng_for
from crosswind.play import judge, play
from crosswind.recipe import SEVERITY, Drawn, draw, random_kinds
from crosswind.registry import Registry, agents, domains, perturbations
from crosswind.types import Model, Split, Task

CLEAN, STACK = "clean", "stack"  # conditions beside the kinds


class Suite(Model):
    """A set of conditions over domains; `kinds` empty means all that are registered."""

    name: str
    summary: str
    domains: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    severity: int = SEVERITY
    tasks: int = 18  # per domain and condition
    stacks: int = 4  # the most kinds in a random stack; 0: no such condition
    split: Split = "test"

    def conditions(self) -> list[str]:
        return [CLEAN, *(self.kinds or perturbations.names()), *([STACK] if self.stacks else [])]


suites: Registry[Suite] = Registry("suite", "crosswind.domains")
suites.add(
    "sweep", Suite(name="sweep", summary="Every perturbation and random stacks of up to four, over all domains.")
)


def tasks(domain: Domain, seed: int, *, split: Split = "test", size: int = SIZE) -> Iterator[Task]:
    """Tasks of a domain without end, each family in turn."""
    names = list(domain.families)
    n = 0
    while True:
        yield domain.task(names[n % len(names)], seed + n, split=split, size=size)
        n += 1


def drawn_for(
    domain: Domain, condition: str, suite: Suite, task: Task, seed: int, clean: Walk | None = None
) -> Drawn | None:
    """A task under a condition, or None where the condition does not apply to it."""
    if condition == CLEAN:
        return draw(domain, task, (), seed, clean=clean)
    if condition == STACK:
        kinds = random_kinds(rng_for("stack", seed, task.id), suite.stacks)
        made = draw(domain, task, kinds, seed, severity=suite.severity, strict=False, clean=clean)
        return made if made.layers else None
    try:
        return draw(domain, task, [condition], seed, severity=suite.severity, clean=clean)
    except CannotPerturb as cannot:
        if cannot.applies:
            raise
        return None


@dataclass(slots=True)
class Row:
    """How the agents fared in one domain under one condition."""

    domain: str
    condition: str
    n: int
    refusals: int  # tasks whose right end is a refusal
    passed: dict[str, int]


Progress = Callable[[str, str], None]


def sweep(suite: Suite, names: Sequence[str], seed: int, progress: Progress | None = None) -> list[Row]:
    """Play agents over a suite. The tasks of all conditions are the first ones to which each applies."""
    rows = []
    for name in suite.domains or domains.names():
        for condition in suite.conditions():
            if progress:
                progress(name, condition)
            if row := _row(domains[name], condition, suite, names, seed):
                rows.append(row)
    return rows


def _row(domain: Domain, condition: str, suite: Suite, names: Sequence[str], seed: int) -> Row | None:
    row = Row(domain.name, condition, 0, 0, dict.fromkeys(names, 0))

    async def episodes() -> None:
        for looked, task in enumerate(tasks(domain, seed, split=suite.split)):
            if row.n == suite.tasks or looked == 10 * suite.tasks + 100:
                return
            drawn = drawn_for(domain, condition, suite, task, seed)
            if drawn is None:
                continue
            row.n += 1
            row.refusals += drawn.certificate.task.refuse
            for name in names:
                trajectory = await play(drawn, agents[name](drawn), name)
                row.passed[name] += judge(trajectory, domain).outcome == "pass"

    asyncio.run(episodes())
    return row if row.n else None
