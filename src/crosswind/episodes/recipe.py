"""Recipes: distributions over stacks, as data, and the ones that the package brings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from crosswind.base.errors import UnknownName
from crosswind.base.yaml_files import Document, read
from crosswind.core.domain import Domain
from crosswind.core.draw import SEVERITY, Drawn, draw, parse_kind
from crosswind.core.flow import rng_for
from crosswind.core.registry import Registry, did_you_mean, perturbations
from crosswind.core.types import Model, Task
from crosswind.words.held_out import EDITION, HELD_OUT, kinds_by, train_kinds

Group = Literal[
    "train", "heldout", "all", "query", "action", "observation", "domain",
    "perception", "interaction", "reasoning", "internalization",
    "train@1", "heldout@1", "all@1",
]  # fmt: skip


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
    """One step of a recipe: pick one or several kinds by weight, with a probability and a range of severities."""

    kind: str = ""  # the same as `one_of` with one kind
    one_of: Annotated[dict[str, float], AfterValidator(above_zero)] = Field(default_factory=dict)  # kind -> weight
    group: Group | None = None  # all kinds of a group with equal weights; `one_of` overrides single weights
    count: tuple[int, int] = (1, 1)  # how many different kinds are taken
    chance: float = Field(default=1.0, ge=0, le=1)
    severity: Annotated[tuple[int, int], BeforeValidator(severities)] = (SEVERITY, SEVERITY)

    @field_validator("one_of", mode="before")
    @classmethod
    def _weights(cls, value: object) -> object:
        return dict.fromkeys(value, 1.0) if isinstance(value, (list, tuple)) else value

    @field_validator("count", mode="before")
    @classmethod
    def _count(cls, value: object) -> tuple[int, int]:
        return _range(value, 0, 8, "2 or 1-3")

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if bool(self.kind) == bool(self.one_of or self.group):
            raise ValueError("give either kind, or one_of, or group; with group, one_of may change its weights")
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


def kinds_of(group: str) -> list[str]:
    """The kinds of a group: train or held out, all, or those of an axis or a tier that may be trained on.

    With an edition, as in `train@1`, kinds that came later are left out.
    """
    group, _, edition = group.partition("@")
    names = kinds_by(int(edition or EDITION))
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

    def named(self) -> list[str]:
        """Every kind that each of its stacks is meant to have."""
        sure = (choice for choice in self.stack if choice.chance == 1 and choice.count[0] > 0)
        return list(dict.fromkeys(kind for choice in sure if len(choice.weights()) == 1 for kind in choice.weights()))

    def options(self) -> list[str]:
        """Every kind that it names, alone or among others; those of a group are not named."""
        return list(dict.fromkeys(k for choice in self.stack for k in (choice.one_of or [choice.kind]) if k))

    def pick(self, rng: Random) -> list[tuple[str, int]]:
        """Pick the kinds of one stack; a kind picked twice counts once."""
        picks = [p for choice in self.stack for p in choice.pick(rng)]
        return list({p[0]: p for p in picks}.values())


def one_of(*kinds: str, severity: tuple[int, int] = (SEVERITY, SEVERITY)) -> Choice:
    return Choice(one_of=dict.fromkeys(kinds, 1.0), severity=severity)


def maybe(chance: float, *kinds: str, severity: tuple[int, int] = (SEVERITY, SEVERITY)) -> Choice:
    return Choice(one_of=dict.fromkeys(kinds, 1.0), chance=chance, severity=severity)


def named(texts: Sequence[str]) -> Recipe:
    """A recipe that always has these kinds, each given as KIND or KIND:SEVERITY."""
    kinds = map(parse_kind, texts)
    return Recipe(name="+".join(texts), stack=tuple(Choice(kind=kind, severity=(n, n)) for kind, n in kinds))


def known_kinds(document: Document, place: Sequence[str | int], recipe: Recipe, *, training: bool = False) -> None:
    """Complain about kinds that do not exist, with the line; for training none is offered that is held out."""
    for i, choice in enumerate(recipe.stack):
        for kind in choice.weights():
            if kind not in perturbations:
                names = train_kinds()
                hint = did_you_mean(kind, names, few=len(names)) if training else perturbations.meant(kind)
                raise document.error((*place, i), f"no perturbation {kind!r}; {hint}")


def load_recipe(name: str, *, training: bool = False) -> Recipe:
    """A recipe by its name, or from a YAML file; for training nothing is offered that is held out."""
    if name in recipes:
        return recipes[name]
    if not name.endswith((".yaml", ".yml")):
        names = [n for n in recipes.names() if not (training and HELD_OUT.intersection(recipes[n].kinds()))]
        raise UnknownName(f"no recipe {name!r}; {did_you_mean(name, names)}")
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


def follow(domain: Domain, task: Task, recipe: Recipe, seed: int) -> Drawn:
    """Draw one certified stack from a recipe; kinds that do not apply are left out and listed in `left_out`."""
    return draw(domain, task, recipe.pick(rng_for("recipe", seed, task.id)), seed, strict=False)


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
    Recipe(name="mild", summary="One train kind, severity 1 or 2.", stack=(Choice(group="train@1", severity=(1, 2)),)),
    Recipe(
        name="mixed",
        summary="One to three train kinds, severities 1 to 4.",
        stack=(Choice(group="train@1", one_of=SELDOM, count=(1, 3), severity=(1, 4)),),
    ),
    Recipe(
        name="hard",
        summary="Two to five train kinds, severities 3 to 5.",
        stack=(Choice(group="train@1", count=(2, 5), severity=(3, 5)),),
    ),
    Recipe(
        name="wide",
        summary="A train kind or two, and many other names besides; severities 1 to 5.",
        stack=(
            Choice(group="train@1", one_of=SELDOM, count=(1, 2), severity=(1, 5)),
            maybe(0.3, "semantic_rename", "identity_erasure", "name_noise", severity=(3, 5)),
            maybe(0.3, "parameter_rename", severity=(3, 5)),
            maybe(0.3, "key_rename", severity=(3, 5)),
            maybe(0.3, "description_rewrite", severity=(3, 5)),
            maybe(0.15, "entity_reskin", severity=(3, 5)),
        ),
    ),
    Recipe(
        name="midway",
        summary="A train kind that changes things while an agent works or takes simulated time; severities 1 to 4.",
        stack=(
            one_of(
                *("several_changes", "follow_up", "tool_added", "gone_meanwhile"),
                *("deadline", "service_hours", "late_approval"),
                severity=(1, 4),
            ),
        ),
    ),
    Recipe(
        name="unseen",
        summary="One to three held-out kinds, severities 1 to 4; never for training.",
        stack=(Choice(group="heldout@1", count=(1, 3), severity=(1, 4)),),
    ),
):
    recipes.add(_recipe.name, _recipe)
