"""Seeded draws of certified stacks: one stack from named kinds, or from a recipe, a distribution over stacks.

Layers are drawn from the world outwards, each on what those before it leave, each from a generator of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from pydantic import Field

from crosswind import laws, refusal
from crosswind.certify import Certificate, Walk, Walks, certify, walk
from crosswind.domain import Domain, Family
from crosswind.errors import CannotPerturb, Unfair
from crosswind.flow import rng_for
from crosswind.perturbation import SEVERITIES, Layers, Perturbation, place
from crosswind.registry import perturbations
from crosswind.types import ASK, SAY, Model, Step, Task, ToolSpec

ATTEMPTS = 4
SEVERITY = 3


@dataclass(frozen=True, slots=True)
class Drawn:
    """A certified stack over a task."""

    domain: Domain
    base: Task
    layers: Layers
    certificate: Certificate
    left_out: tuple[str, ...] = ()  # kinds that found nothing to bite on or do not stack, with the reason
    refused: tuple[Unfair, ...] = ()  # draws before this one that broke a law
    walks: int = 0  # the oracle's walks it took


class DrawScene:
    """What a layer may look at when it is drawn (see `perturbation.Scene`)."""

    def __init__(self, walks: Walks) -> None:
        self.walks, self.n = walks, len(walks.layers)

    @property
    def domain(self) -> Domain:
        return self.walks.domain

    @property
    def task(self) -> Task:
        return self.walks.tasks[self.n]

    @property
    def family(self) -> Family:
        return self.domain.family(self.task)

    @property
    def gold(self) -> list[Step]:
        return self.walks.at(self.n).calls

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        made = self.walks.made.get(self.n)
        if made:
            return {t.name: t for t in made.session.specs.values() if t.listed}
        tools = self.domain.world_class.specs
        for layer in self.walks.layers:
            if layer.retools:
                tools = layer.on_tools(tools, 0)
        return {t.name: t for t in tools if t.listed}

    @property
    def names(self) -> set[str]:
        moments = {0, *(n for layer in self.walks.layers for n in layer.turns())}
        out: set[str] = set()
        for nth in moments:
            tools = self.domain.world_class.specs
            for layer in self.walks.layers:
                tools = layer.on_tools(tools, nth)
            out |= {t.name for t in tools}
        return out

    @property
    def path(self) -> list[str]:
        latest = max((n for n in self.walks.made if n <= self.n), default=0)
        if self.walks.tasks[latest] is not self.task or any(layer.turns() for layer in self.walks.layers[latest:]):
            latest = self.n  # another request, or tools that come and go, may lead another way
        session = self.walks.at(latest).session
        called = dict.fromkeys(step.call.tool for step in session.steps if step.call.tool not in (ASK, SAY))
        shown = self.tools
        if latest == self.n:
            return [name for name in called if name in shown]
        order = dict.fromkeys(session.specs[name].ids for name in called if name in session.specs)
        return [tool.name for ids in order for tool in shown.values() if tool.ids & ids]

    def lasts(self, task: Task) -> int:
        return len(walk(self.domain, task).steps)

    def provable(self, task: Task) -> bool:
        try:
            laws.refused(walk(self.domain, task))
            refusal.prove(self.domain, task)
        except Unfair:
            return False
        return True


@dataclass(slots=True)
class _Attempt:
    walks: Walks
    left_out: list[str] = field(default_factory=list)


def draw(
    domain: Domain,
    task: Task,
    kinds: Iterable[str | tuple[str, int]],
    seed: int,
    *,
    severity: int = SEVERITY,
    strict: bool = True,
    deep: bool = False,
    clean: Walk | None = None,
) -> Drawn:
    """One certified stack of the kinds named, each with its own severity if given as a pair.

    With `strict`, a kind that finds nothing to bite on is an error; otherwise it is left out, and said so.
    """
    wanted = [(k, severity) if isinstance(k, str) else k for k in kinds]
    wanted.sort(key=lambda ks: place(perturbations[ks[0]]))
    refused: list[Unfair] = []
    for attempt in range(ATTEMPTS):
        walks = Walks(domain, task, clean, snapshot=deep)
        try:
            left_out = _stack(walks, wanted, (seed, attempt), strict=strict, deep=deep)
            certificate = certify(domain, task, walks.layers, walks, deep=deep)
        except Unfair as unfair:
            refused.append(unfair)
            clean = walks.made.get(0)
            continue
        return Drawn(domain, task, walks.layers, certificate, tuple(left_out), tuple(refused), walks.count)
    names = ", ".join(kind for kind, _ in wanted)
    last = refused[-1]
    raise CannotPerturb(
        f"no fair draw of {names} for {task.id} in {ATTEMPTS} attempts (last: {last}); "
        "lower the severity, or leave a kind out",
        law=last.law,
    )


def _stack(
    walks: Walks, wanted: Sequence[tuple[str, int]], salt: tuple[int, int], *, strict: bool, deep: bool
) -> list[str]:
    """Draw the layers one after the other; what comes back was left out."""
    groups: set[str] = set()
    out: list[str] = []
    seed, attempt = salt
    task = walks.tasks[0]
    for kind, severity in wanted:
        cls = perturbations[kind]
        if severity not in SEVERITIES:
            raise CannotPerturb(f"severity of {kind} is {severity}; expected 1 to 5", applies=False)
        layer: Perturbation | None = None
        why = f"{kind} finds nothing to bite on in {task.id}"
        if cls.group and cls.group in groups:
            why = f"{kind} does not stack with another of the group {cls.group!r}: leave one of them out"
        else:
            parts = ("draw", seed, task.id, kind, attempt)
            layer = cls.sample(DrawScene(walks), rng_for(*parts), severity)
            if deep and layer is not None:
                laws.seeded(layer, cls.sample(DrawScene(walks), rng_for(*parts), severity))
        if layer is None:
            if strict:
                raise CannotPerturb(why, applies=False)
            out.append(why)
            continue
        groups |= {cls.group} - {""}
        walks.add(layer)
    return out


# ---------------------------------------------------------------- recipes


class Choice(Model):
    """One place in a stack: with a probability, one of some kinds by weight, at a severity from a range."""

    one_of: dict[str, float]
    chance: float = Field(default=1.0, ge=0, le=1)
    severity: tuple[int, int] = (SEVERITY, SEVERITY)

    def pick(self, rng: Random) -> tuple[str, int] | None:
        skip, kind = rng.random() >= self.chance, rng.choices(list(self.one_of), list(self.one_of.values()))[0]
        severity = rng.randint(*self.severity)
        return None if skip else (kind, severity)


class Recipe(Model):
    """A distribution over stacks, as data."""

    choices: tuple[Choice, ...]

    def pick(self, rng: Random) -> list[tuple[str, int]]:
        """The kinds of one stack; a kind picked twice counts once."""
        picks = [choice.pick(rng) for choice in self.choices]
        return list({p[0]: p for p in picks if p}.values())


def one_of(*kinds: str, severity: tuple[int, int] = (SEVERITY, SEVERITY)) -> Choice:
    return Choice(one_of=dict.fromkeys(kinds, 1.0), severity=severity)


def maybe(chance: float, *kinds: str, severity: tuple[int, int] = (SEVERITY, SEVERITY)) -> Choice:
    return Choice(one_of=dict.fromkeys(kinds, 1.0), chance=chance, severity=severity)


def random_kinds(rng: Random, most: int, kinds: Sequence[str] | None = None) -> list[str]:
    """Up to `most` different kinds."""
    names = list(kinds or perturbations.names())
    return rng.sample(names, rng.randint(1, min(most, len(names))))


def follow(domain: Domain, task: Task, recipe: Recipe, seed: int) -> Drawn:
    """One certified stack as a recipe has it; a kind that finds nothing to bite on is left out, and said so."""
    return draw(domain, task, recipe.pick(rng_for("recipe", seed, task.id)), seed, strict=False)
