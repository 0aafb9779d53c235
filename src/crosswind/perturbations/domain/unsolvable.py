"""The request cannot be met in this world: refusing is right."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Literal, Self

from crosswind.core.domain import Family
from crosswind.core.perturbation import Perturbation, Scene, perturbation
from crosswind.core.types import Step, Task


@perturbation
class Unsolvable(Perturbation):
    """Nothing is left, the user is not allowed, or the item does not exist: the request must be refused."""

    kind: Literal["unsolvable"] = "unsolvable"
    axis, tier, rank, goal, group = "domain", "internalization", "domain", "refuse", "refusal"
    severities = "How late it can be found out: 1 after the fewest calls, 5 the latest."
    needs = "a change of the world after which the request provably cannot be met"
    way = "find out that it cannot be done, leave nothing changed, and refuse"
    edits: dict[str, dict[str, Any] | None]

    @classmethod
    def fits(cls, family: Family) -> bool:
        return not family.refusal

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        task = scene.task
        if task.refuse:
            return None
        options = [o for o in scene.family.obstacles(task, scene.domain.state(task), rng) if o]
        if not options:
            return None
        rng.shuffle(options)
        options.sort(key=lambda edits: scene.lasts(task.replace(obstacle=edits)))
        at = round((severity - 1) / 4 * (len(options) - 1))
        nearest = sorted(range(len(options)), key=lambda i: abs(i - at))
        return next((cls(edits=options[i]) for i in nearest if scene.provable(task.replace(obstacle=options[i]))), None)

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        """Every call that still works is a reason to go on."""
        return len(gold)

    def on_task(self, task: Task) -> Task:
        return task.replace(obstacle={**task.obstacle, **self.edits})
