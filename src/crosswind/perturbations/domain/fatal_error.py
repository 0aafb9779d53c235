"""A tool that the request needs is broken for good: stopping and saying so is right."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal, Self

from crosswind.core.perturbation import Perturbation, Scene, perturbation
from crosswind.core.types import Step, Task
from crosswind.perturbations.domain._blocking import needed
from crosswind.words import banks


@perturbation
class FatalError(Perturbation):
    """A tool that the request needs fails permanently, and says so; the request must be refused."""

    kind: Literal["fatal_error"] = "fatal_error"
    axis, tier, rank, goal, group = "domain", "internalization", "domain", "refuse", "refusal"
    severities = "Which tool in the solution is broken, from the first (1) to the last (5)."
    needs = "a tool in the solution without which the request provably cannot be met"
    way = "stop, leave nothing changed, and say that it cannot be done"
    tool: str
    text: str

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        text = banks.phrase("disabled", scene.task.split, rng).rstrip(".")
        name = needed(scene, rng, severity, text, silent=False)
        return cls(tool=name, text=text) if name else None

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        """Every call that still works is a reason to go on."""
        return len(gold)

    def on_task(self, task: Task) -> Task:
        return task.replace(blocked={**task.blocked, self.tool: self.text})
