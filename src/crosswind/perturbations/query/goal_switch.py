"""The user drops the request while the agent works, and wants something else."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal, Self

from crosswind.base.errors import CannotDraw
from crosswind.core.domain import Family
from crosswind.core.perturbation import Perturbation, Scene, perturbation
from crosswind.core.types import Change, Step, Task
from crosswind.perturbations.query._changes import calls_before, can_be_met, while_it_can_be_changed, wording


@perturbation
class GoalSwitch(Perturbation):
    """The user no longer wants what they asked for, and asks for something else; what was begun must be undone."""

    kind: Literal["goal_switch"] = "goal_switch"
    axis, tier, rank, goal, receipt_source = "query", "interaction", "query", "moved", "change"
    severities = (
        "How late the user says so, from after the first call (1) to after the last one that can be undone (5)."
    )
    needs = "a request that can be met, and another kind of request in the same world"
    way = "undo what was begun, and meet the new request instead"
    to: str
    stated: dict[str, str | int]
    after: str
    words: str

    @classmethod
    def fits(cls, family: Family) -> bool:
        return not family.refusal

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        task, domain = scene.task, scene.domain
        if task.refuse or task.changes or task.events or task.brief.rules or not scene.family.typed:
            return None
        calls = while_it_can_be_changed(scene)
        if not calls:
            return None
        others = [f for f in domain.families.values() if f.name != task.family and not f.refusal and f.typed]
        rng.shuffle(others)
        after = calls[round((severity - 1) / 4 * (len(calls) - 1))]
        for family in others:
            try:
                other = family.draw(rng, task.seed, task.size, task.split)
            except CannotDraw:
                continue
            brief = other.brief
            if other.withheld or brief.rules or brief.policy != domain.policy:
                continue
            words = f"{wording('goal_switch', 'drops', task.split, rng)} {brief.query}"
            layer = cls(to=family.name, stated=brief.stated, after=after, words=words)
            if can_be_met(scene, layer.on_task(task)):
                return layer
        return None

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        return 1 + calls_before(self.after, gold)

    def on_task(self, task: Task) -> Task:
        change = Change(after=self.after, stated=dict(self.stated), words=self.words, family=self.to)
        return task.replace(changes=(*task.changes, change))
