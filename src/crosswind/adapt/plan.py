"""One adaptation as data: its options, the suites that reproduce its alarms, and how many episodes it takes."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from crosswind.adapt.alarms import name_of, recipe_of
from crosswind.adapt.registry import AgentRegistry, Version, Way
from crosswind.base.errors import CrosswindError
from crosswind.core.registry import perturbations
from crosswind.core.types import Model
from crosswind.episodes.recipe import Choice, Recipe
from crosswind.episodes.record import Record
from crosswind.episodes.schedule import Schedule
from crosswind.episodes.suite import CLEAN, Condition, Suite
from crosswind.gate.gate import Rule
from crosswind.metrics.scores import drop, pairs
from crosswind.watch.alarms import Alarm
from crosswind.words.held_out import train_kinds

OLD, NEW = "old", "new"
REFUSALS = "refusals"  # the old world whose tasks are to be refused: an agent that adapts must still say no
STEPS = 200  # of a targeted training, unless its configuration says otherwise
SHARE = 0.6  # of its demonstrations that are perturbed; the others are the clean old world
REPLAY = 1 / 3  # of the perturbed ones, from old worlds, where there are any


class AdaptPlan(Model):
    """Everything that the result depends on. A folder resumes only with the plan that it began with."""

    agent: str  # the spec of the version in use
    parent: int
    way: Way
    alarms: tuple[Alarm, ...]
    new: tuple[Recipe, ...]  # worlds that the alarms report
    old: tuple[Recipe, ...]  # worlds that the agent was adapted to before, and those named with --old
    domains: tuple[str, ...]
    parts: tuple[str, ...] = ()  # of the wrapper; empty: chosen on the dev split
    memory: str = ""  # of the wrapper: what the agent knew
    train: dict[str, Any] = Field(default_factory=dict)  # the training's configuration
    tasks: int = Field(ge=1)  # per domain and condition, of the test split
    dev_tasks: int = Field(ge=1)  # the same, of the dev split, to choose between candidates
    seed: int = Field(ge=0)
    max_forget: float = Field(ge=0, lt=1)  # allowed drop in the old worlds
    min_gain: float = Field(ge=0, lt=1)  # rise required in the new ones
    max_refusal_drop: float = Field(ge=0, lt=1)

    def suite(self, split: Literal["dev", "test"]) -> Suite:
        """The old worlds and the new ones, over the same tasks."""
        conditions = [
            Condition(name=f"{side}/{name_of(recipe)}", stack=recipe.stack)
            for side, recipes in ((OLD, self.old), (NEW, self.new))
            for recipe in recipes
        ]
        conditions.append(Condition(name=f"{OLD}/{REFUSALS}", stack=refusing().stack))
        return Suite(
            name="adapt",
            domains=self.domains,
            split=split,
            tasks=self.tasks if split == "test" else self.dev_tasks,
            conditions=tuple(conditions),
        )

    def rules(self) -> tuple[list[Rule], list[Rule]]:
        """Drops that old worlds may show, and rises that new ones must."""
        kept = [c for c in self.conditions(OLD) if c.name != f"{OLD}/{REFUSALS}"]
        old = [Rule(by="condition", name=c.name, most=self.max_forget) for c in kept]
        new = [Rule(by="condition", name=c.name, most=self.min_gain) for c in self.conditions(NEW)]
        return [Rule(by=CLEAN, most=self.max_forget), *old], new

    def conditions(self, side: str) -> list[Condition]:
        return [c for c in self.suite("test").conditions if c.name.startswith(f"{side}/")]

    def episodes(self, split: Literal["dev", "test"]) -> int:
        """How many episodes one agent plays, at most: tasks that a kind does not apply to are left out."""
        return Schedule(self.suite(split), self.seed).total

    def lost(self, records: list[Record]) -> dict[str, float]:
        """Success lost in each new world beside the clean ones; a world without a pair is left out."""
        out = {}
        for condition in self.conditions(NEW):
            some = [r for r in records if r.clean or r.condition == condition.name]
            change = drop(condition.name, pairs(some))
            if change is not None:
                out[condition.name] = -change.delta
        return out


def refusing() -> Recipe:
    """Tasks that cannot be solved, so that right refusals are measured in every adaptation."""
    kinds = [kind for kind in train_kinds() if perturbations[kind].goal == "refuse"]
    return Recipe(name=REFUSALS, stack=(Choice(one_of=dict.fromkeys(kinds, 1.0)),))


def worlds(
    alarms: list[Alarm],
    extra_new: list[Recipe],
    registry: AgentRegistry,
    current: Version,
    extra_old: list[Recipe],
) -> tuple[tuple[Recipe, ...], tuple[Recipe, ...]]:
    """New worlds out of alarms, and old ones out of the lineage of the version in use; each once."""
    reported = [recipe for alarm in alarms if (recipe := recipe_of(alarm)) is not None]
    new = {name_of(recipe): recipe for recipe in (*reported, *extra_new)}
    if not new:
        raise CrosswindError(
            "no alarm here names a kind or a recipe, so there is nothing to reproduce; give --new KIND[:SEVERITY] "
            "with the kind that comes closest"
        )
    before = [recipe for version in registry.lineage(current) for recipe in version.recipes]
    old = {name_of(recipe): recipe for recipe in (*before, *extra_old)}
    return tuple(new.values()), tuple(recipe for name, recipe in old.items() if name not in new)
