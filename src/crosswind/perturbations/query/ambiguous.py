"""The request leaves open which of several values is meant."""

from __future__ import annotations

from random import Random
from typing import Any, Literal, Self

from crosswind.core.perturbation import Perturbation, Scene, perturbation
from crosswind.core.types import Task
from crosswind.perturbations.query._details import removable_details, replaced
from crosswind.words import banks

# severity -> (details left open, values named for each)
MEANT = {1: (1, 2), 2: (1, 3), 3: (2, 3), 4: (3, 3), 5: (3, 4)}


@perturbation
class Ambiguous(Perturbation):
    """A detail could be any of several values; the user says which one when asked."""

    kind: Literal["ambiguous"] = "ambiguous"
    axis, tier, rank, group, counts = "query", "perception", "query", "gaps", "others"
    severities = "Details left open x values named for each: 1x2, 1x3, 2x3, 3x3, 3x4 (as far as the request has them)."
    needs = "a detail that appears in the request once and is the only one of its kind"
    way = "ask the user which of the values is meant"
    gaps: dict[str, str]  # detail -> the words that stand in its place
    others: int  # values named that are not meant

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        count, named = MEANT[severity]
        keys = removable_details(scene)
        rng.shuffle(keys)
        gaps: dict[str, str] = {}
        others = 0
        for key in sorted(keys[:count]):
            found = _others(scene, key, rng, named - 1)
            if not found:
                continue
            values = [*map(str, found), str(scene.task.brief.stated[key])]
            rng.shuffle(values)
            first = ", ".join(values[:-1])
            gaps[key] = banks.phrase("either", scene.task.split, rng, a=first, b=values[-1])
            others += len(found)
        return cls(gaps=gaps, others=others) if gaps else None

    def on_task(self, task: Task) -> Task:
        return replaced(task, self.gaps)


def _others(scene: Scene, key: str, rng: Random, count: int) -> list[Any]:
    """Other values that the detail might have had."""
    task, state = scene.task, scene.domain.state(scene.task)
    out: list[Any] = []
    for _ in range(40):
        proposed = scene.family.propose(rng, state, task.split)
        if proposed and proposed[key] not in (*out, task.brief.stated[key]):
            out.append(proposed[key])
        if len(out) == count:
            break
    return out
