"""The request leaves out details that the user gives when asked."""

from __future__ import annotations

from random import Random
from typing import Literal, Self

from crosswind.core.perturbation import Perturbation, Scene, perturbation
from crosswind.core.types import Task
from crosswind.perturbations.query._details import dropped, removable_details, replaced
from crosswind.words import banks, wording

OMITTED = 0.8  # how often a detail that can be left out without a trace is
GAPS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6}


@perturbation
class Underspecified(Perturbation):
    """The request leaves out details; the user gives them when asked."""

    kind: Literal["underspecified"] = "underspecified"
    axis, tier, rank, group, counts = "query", "perception", "query", "gaps", "gaps"
    severities = "How many details are left out: 1, 2, 3, 4, all that can be (as far as the request has them)."
    needs = "a detail that appears in the request once and is the only one of its kind"
    way = "ask the user for what is missing"
    gaps: dict[str, str]  # detail -> the vague words that stand in its place; "": it is not mentioned at all

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        details, split = scene.family.details, scene.task.split
        lone = removable_details(scene)
        keys = rng.sample(lone, min(len(lone), GAPS[severity]))
        gaps: dict[str, str] = {}
        for key in sorted(keys):
            value = scene.task.brief.stated[key]
            words = banks.phrase("vague", split, rng, label=details[key].label)
            if value in scene.domain.kinds():
                words = details[key].vague  # stands after "the best" and the like
            elif rng.random() < OMITTED and dropped(str(value), scene.task.brief.query) != scene.task.brief.query:
                words = ""
            if wording.keeps((now := replaced(scene.task, gaps | {key: words})).brief.query, scene.family, now):
                gaps[key] = words
        return cls(gaps=gaps) if gaps else None

    def on_task(self, task: Task) -> Task:
        return replaced(task, self.gaps)
