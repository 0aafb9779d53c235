"""The user changes one detail of the request while the agent works."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal, Self

from crosswind.core.perturbation import Perturbation, Scene, perturbation
from crosswind.core.types import Change, Step, Task
from crosswind.perturbations.query._changes import calls_before, while_it_can_be_changed
from crosswind.words import banks


@perturbation
class ChangedMind(Perturbation):
    """The user changes a detail after a tool was called, or at the latest when the agent is about to finish."""

    kind: Literal["changed_mind"] = "changed_mind"
    axis, tier, rank, goal, receipt_source = "query", "interaction", "query", "moved", "change"
    severities = (
        "How late the change comes, from after the first call (1) to after the last one that can be undone (5)."
    )
    needs = "a request that can be met, and a stated detail whose change leads to another outcome"
    way = "note the change, undo what no longer fits, and meet the request in its latest form"
    key: str
    value: str | int
    after: str
    words: str

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        task, family = scene.task, scene.family
        if task.refuse or task.changes or task.events:
            return None
        calls = while_it_can_be_changed(scene)
        keys = [key for key in task.brief.stated if key not in task.brief.rules]
        if not calls or not keys:
            return None
        key = rng.choice(keys)
        value = family.alternative(task, key, rng)
        if value is None:
            return None
        after = calls[min(len(calls) - 1, round((severity - 1) / 4 * (len(calls) - 1)))]
        words = banks.phrase("change_of_mind", task.split, rng, label=family.details[key].label, value=value)
        return cls(key=key, value=value, after=after, words=words)

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        return 1 + calls_before(self.after, gold)

    def on_task(self, task: Task) -> Task:
        change = Change(after=self.after, stated={self.key: self.value}, words=self.words)
        return task.replace(changes=(*task.changes, change))
