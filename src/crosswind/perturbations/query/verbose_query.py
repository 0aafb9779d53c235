"""The request is buried in talk that has nothing to do with it."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal, Self

from crosswind.core.perturbation import Perturbation, Scene, perturbation
from crosswind.core.types import Step, Task
from crosswind.words import banks

ASIDES = {1: 1, 2: 2, 3: 4, 4: 6, 5: 9}


@perturbation
class VerboseQuery(Perturbation):
    """Sentences about other things surround the request."""

    kind: Literal["verbose_query"] = "verbose_query"
    axis, tier, rank = "query", "perception", "noise"
    severities = "How many sentences surround the request: 1, 2, 4, 6, 9."
    needs = "asides in the bank that reveal no detail of the request"
    way = "pick out the request, and act on nothing else"
    before: tuple[str, ...]
    after: tuple[str, ...]

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        details = scene.family.details.values()
        said = rng.sample(list(banks.entries("asides", scene.task.split)), 2 * ASIDES[severity])
        fit = [text for text in said if not any(detail.read(text) for detail in details)][: ASIDES[severity]]
        if not fit:
            return None
        at = rng.randint(0, len(fit))
        return cls(before=tuple(fit[:at]), after=tuple(fit[at:]))

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        return len(self.before) + len(self.after)

    def on_task(self, task: Task) -> Task:
        return task.briefed(query=" ".join((*self.before, task.brief.query, *self.after)))
