"""Seeded draws of certified stacks: one stack from named kinds, or from a recipe, a distribution over stacks.

Layers are drawn from the world outwards, each on what those before it leave, each from a generator of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from crosswind import laws, refusal
from crosswind.certify import Certificate, Walk, Walks, certify, walk
from crosswind.domain import Domain, Family
from crosswind.errors import CannotPerturb, Unfair, UnknownName
from crosswind.files import Document, read
from crosswind.flow import rng_for
from crosswind.perturbation import SEVERITIES, Layers, Perturbation, place
from crosswind.registry import Registry, near, perturbations
from crosswind.splits import HELD_OUT, train_kinds
from crosswind.types import ASK, SAY, Model, Step, Task, ToolSpec

ATTEMPTS = 4
SEVERITY = 3
Group = Literal[
    "train", "heldout", "all", "query", "action", "observation", "domain",
    "perception", "interaction", "reasoning", "internalization",
]  # fmt: skip


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

    @cached_property
    def _every(self) -> dict[str, ToolSpec]:
        """Every tool of the episode by name, as it is when it first appears."""
        moments = sorted({0, *(n for layer in self.walks.layers[: self.n] if layer.retools for n in layer.turns())})
        out: dict[str, ToolSpec] = {}
        for nth in moments:
            for tool in self.walks.shown(self.n, nth):
                out.setdefault(tool.name, tool)
        return out

    @cached_property
    def tools(self) -> Mapping[str, ToolSpec]:
        return {name: tool for name, tool in self._every.items() if tool.listed}

    @property
    def names(self) -> set[str]:
        return set(self._every)

    @property
    def _latest(self) -> int:
        """The last walk made so far that leads the same way."""
        latest = max((n for n in self.walks.made if n <= self.n), default=0)
        if self.walks.tasks[latest] is not self.task or any(layer.turns() for layer in self.walks.layers[latest:]):
            return self.n  # another request, or tools that come and go, may lead another way
        return latest

    @property
    def answers(self) -> bool:
        return _answered(self.walks.at(self._latest).calls) or _answered(self.gold)

    @property
    def path(self) -> list[str]:
        latest = self._latest
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


def _answered(steps: list[Step]) -> bool:
    return any(step.result.error is None and step.result.content for step in steps)


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
        why = f"{kind} finds nothing to bite on in {task.id}" + (f": it needs {cls.needs}" if cls.needs else "")
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


def _range(value: object, least: int, most: int, such: str) -> tuple[int, int]:
    """A number, or a range of them such as 2-4 or [2, 4], as its two ends."""
    ends: object = value
    if isinstance(value, int):
        ends = (value, value)
    elif isinstance(value, str) and (found := re.fullmatch(r"(\d+)(?:\s*-\s*(\d+))?", value.strip())):
        ends = (int(found[1]), int(found[2] or found[1]))
    match ends:
        case (int(low), int(high)) if least <= low <= high <= most:
            return (low, high)
    raise ValueError(f"got {value!r}; expected {least} to {most}, such as {such}")


def severities(value: object) -> tuple[int, int]:
    """A severity, or a range of them."""
    return _range(value, 1, 5, "3 or 2-4")


LARGE = 1e9  # of a weight, a rate or a scale: more is a slip of the pen


def above_zero(weights: dict[str, float]) -> dict[str, float]:
    """Weights to choose by; others than numbers above 0, and not so large that their sum is none, are refused."""
    for name, weight in weights.items():
        if not 0 < weight <= LARGE:
            raise ValueError(f"the weight of {name!r} is {weight:g}; expected a number above 0 and up to {LARGE:g}")
    return weights


class Choice(Model):
    """One place in a stack: with a chance, one of some kinds (or several) by weight, at a severity from a range."""

    kind: str = ""  # the same as `one_of` with one kind
    one_of: dict[str, float] = Field(default_factory=dict)  # kind -> weight
    group: Group | None = None  # all kinds of a group, weighed alike but for those that `one_of` names besides
    count: tuple[int, int] = (1, 1)  # how many different kinds are taken
    chance: float = Field(default=1.0, ge=0, le=1)
    severity: tuple[int, int] = (SEVERITY, SEVERITY)

    @field_validator("one_of", mode="before")
    @classmethod
    def _weights(cls, value: object) -> object:
        return dict.fromkeys(value, 1.0) if isinstance(value, (list, tuple)) else value

    @field_validator("one_of")
    @classmethod
    def _above_zero(cls, value: dict[str, float]) -> dict[str, float]:
        return above_zero(value)

    @field_validator("severity", mode="before")
    @classmethod
    def _severities(cls, value: object) -> tuple[int, int]:
        return severities(value)

    @field_validator("count", mode="before")
    @classmethod
    def _count(cls, value: object) -> tuple[int, int]:
        return _range(value, 0, 8, "2 or 1-3")

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if bool(self.kind) == bool(self.one_of or self.group):
            raise ValueError("give kind, or one_of, or a group, whose weights one_of may change")
        return self

    def weights(self) -> dict[str, float]:
        """The kinds to choose from."""
        if self.group is not None:
            return {**dict.fromkeys(kinds_of(self.group), 1.0), **self.one_of}
        return self.one_of or {self.kind: 1.0}

    def pick(self, rng: Random) -> list[tuple[str, int]]:
        skip, left = rng.random() >= self.chance, self.weights()
        out = []
        for _ in range(min(rng.randint(*self.count), len(left))):
            kind = rng.choices(list(left), list(left.values()))[0]
            left = {k: w for k, w in left.items() if k != kind}
            out.append((kind, rng.randint(*self.severity)))
        return [] if skip else out


def kinds_of(group: Group) -> list[str]:
    """The kinds of a group: train or held out, all, or those of an axis or a tier that may be trained on."""
    names = perturbations.names()
    if group == "all":
        return names
    if group == "heldout":
        return [k for k in names if k in HELD_OUT]
    train = [k for k in names if k not in HELD_OUT]
    return train if group == "train" else [k for k in train if group in (perturbations[k].axis, perturbations[k].tier)]


class Recipe(Model):
    """A distribution over stacks, as data."""

    name: str = ""
    summary: str = ""
    stack: tuple[Choice, ...]

    def kinds(self) -> list[str]:
        """Every kind that it may give."""
        return list(dict.fromkeys(k for choice in self.stack for k in choice.weights()))

    def pick(self, rng: Random) -> list[tuple[str, int]]:
        """The kinds of one stack; a kind picked twice counts once."""
        picks = [p for choice in self.stack for p in choice.pick(rng)]
        return list({p[0]: p for p in picks}.values())


def one_of(*kinds: str, severity: tuple[int, int] = (SEVERITY, SEVERITY)) -> Choice:
    return Choice(one_of=dict.fromkeys(kinds, 1.0), severity=severity)


def maybe(chance: float, *kinds: str, severity: tuple[int, int] = (SEVERITY, SEVERITY)) -> Choice:
    return Choice(one_of=dict.fromkeys(kinds, 1.0), chance=chance, severity=severity)


def known_kinds(document: Document, place: Sequence[str | int], recipe: Recipe, *, training: bool = False) -> None:
    """Complain about kinds that do not exist, with the line; for training none is offered that is held out."""
    for i, choice in enumerate(recipe.stack):
        for kind in choice.weights():
            if kind not in perturbations:
                names = train_kinds() if training else perturbations.names()
                raise document.error((*place, i), f"no perturbation {kind!r}; {near(kind, names)}")


def load_recipe(name: str, *, training: bool = False) -> Recipe:
    """A recipe by its name, or from a YAML file; for training nothing is offered that is held out."""
    if name in recipes:
        return recipes[name]
    if not name.endswith((".yaml", ".yml")):
        names = [n for n in recipes.names() if not (training and HELD_OUT.intersection(recipes[n].kinds()))]
        raise UnknownName(f"no recipe {name!r}; {near(name, names)}")
    document = read(name)
    recipe = document.fit(Recipe)
    if not recipe.stack:
        raise document.error(("stack",), "is empty; name at least one kind, as in docs/suites.md")
    known_kinds(document, ("stack",), recipe, training=training)
    return recipe


def random_kinds(rng: Random, most: int, kinds: Sequence[str] | None = None) -> list[str]:
    """Up to `most` different kinds."""
    names = list(kinds or perturbations.names())
    return rng.sample(names, rng.randint(1, min(most, len(names))))


def follow(domain: Domain, task: Task, recipe: Recipe, seed: int, clean: Walk | None = None) -> Drawn:
    """One certified stack as a recipe has it; a kind that finds nothing to bite on is left out, and said so."""
    return draw(domain, task, recipe.pick(rng_for("recipe", seed, task.id)), seed, strict=False, clean=clean)


# ---------------------------------------------------------------- ours

SELDOM = {  # train kinds that few tasks admit, or that models learn last, are picked more often
    "conflicting_information": 2.0,
    "rule_change": 3.0,
    "tool_merge": 2.0,
    "dependency_inversion": 2.5,
    "confirm_before_write": 2.0,
    "lost_acknowledgement": 2.5,
    "verification_code": 2.0,
    "missing_tool": 1.2,
}
recipes: Registry[Recipe] = Registry("recipe", "crosswind.domains")
for _recipe in (
    Recipe(name="mild", summary="One train kind, severity 1 or 2.", stack=(Choice(group="train", severity=(1, 2)),)),
    Recipe(
        name="mixed",
        summary="One to three train kinds, severities 1 to 4.",
        stack=(Choice(group="train", one_of=SELDOM, count=(1, 3), severity=(1, 4)),),
    ),
    Recipe(
        name="hard",
        summary="Two to five train kinds, severities 3 to 5.",
        stack=(Choice(group="train", count=(2, 5), severity=(3, 5)),),
    ),
    Recipe(
        name="wide",
        summary="A train kind or two, and many other names besides; severities 1 to 5.",
        stack=(
            Choice(group="train", one_of=SELDOM, count=(1, 2), severity=(1, 5)),
            maybe(0.3, "semantic_rename", "identity_erasure", "name_noise", severity=(3, 5)),
            maybe(0.3, "parameter_rename", severity=(3, 5)),
            maybe(0.3, "key_rename", severity=(3, 5)),
            maybe(0.3, "description_rewrite", severity=(3, 5)),
            maybe(0.15, "entity_reskin", severity=(3, 5)),
        ),
    ),
    Recipe(
        name="unseen",
        summary="One to three held-out kinds, severities 1 to 4; never for training.",
        stack=(Choice(group="heldout", count=(1, 3), severity=(1, 4)),),
    ),
):
    recipes.add(_recipe.name, _recipe)
