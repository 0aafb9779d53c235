"""The request leaves out details that the user gives when asked."""

from __future__ import annotations

from random import Random
from typing import Literal, Self

from crosswind.perturbation import Perturbation, Scene, perturbation
from crosswind.types import Task


@perturbation
class Underspecified(Perturbation):
    """The request leaves out details; the user gives them when asked."""

    kind: Literal["underspecified"] = "underspecified"
    axis, tier, rank = "query", "perception", "query"
    severities = "How many details are left out: 1, 1, 2, 2, 3 (as far as the request has them)."
    gaps: dict[str, str]  # detail -> the vague words that stand in its place

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        task, details = scene.task, scene.family.details
        brief = task.brief
        literal = [k for k, v in brief.stated.items() if k not in brief.rules and brief.query.count(str(v)) == 1]
        # of two details of one kind neither can be left out: the other could be taken for it
        lone = [k for k in literal if sum(details[k].read is d.read for d in details.values()) == 1]
        if not lone:
            return None
        keys = rng.sample(lone, min(len(lone), (severity + 1) // 2))
        return cls(gaps={key: details[key].vague for key in sorted(keys)})

    def on_task(self, task: Task) -> Task:
        brief = task.brief
        query, stated = brief.query, dict(brief.stated)
        withheld = dict(task.withheld)
        for key, vague in self.gaps.items():
            withheld[key] = stated.pop(key)
            query = query.replace(str(withheld[key]), vague)
        return task.but(withheld=withheld).briefed(query=query, stated=stated)
