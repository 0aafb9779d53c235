"""When the request is met, the user asks for the same once more with another detail."""

from __future__ import annotations

from random import Random
from typing import Literal, Self

from crosswind.core.perturbation import Perturbation, Scene, perturbation
from crosswind.core.types import Change, Model, Task
from crosswind.perturbations.query._changes import can_be_met, wording

COUNT = {1: 1, 2: 2, 3: 2, 4: 3, 5: 4}


class Added(Model):
    """A request that follows: the detail that is another, and the words."""

    key: str
    value: str | int
    words: str


@perturbation
class FollowUp(Perturbation):
    """A second request follows: the same as the first but for one detail. What was done for the first stays."""

    kind: Literal["follow_up"] = "follow_up"
    axis, tier, rank, goal, receipt_source, counts = "query", "interaction", "query", "moved", "change", "said"
    severities = "How many requests follow the first, each with one other detail: 1, 2, 2, 3, 4."
    needs = (
        "a request that can be met, and a stated detail that can be changed so that it can be met again in another way"
    )
    way = "remember the first request, leave what was done for it, and repeat it with the new detail"
    said: tuple[Added, ...]

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        task, family = scene.task, scene.family
        if task.refuse or task.changes or task.events or not family.typed:
            return None
        keys = [key for key in task.brief.stated if key not in task.brief.rules]
        rng.shuffle(keys)
        now, said, asked = dict(task.brief.stated), list[Added](), [dict(task.brief.stated)]
        state = scene.domain.state(task)
        told = [family.right(task, state)]
        for key in (keys * 4)[: 4 * COUNT[severity]]:
            value = family.alternative(task.briefed(stated=now), key, rng)
            if value is None or {**now, key: value} in asked:
                continue
            label = family.details[key].label
            words = wording("follow_up", "requests", task.split, rng, label=label, value=value)
            layer = cls(said=(*said, Added(key=key, value=value, words=words)))
            moved = layer.on_task(task)
            right = scene.domain.family(moved).right(moved, state)
            if right in told or not can_be_met(scene, moved):
                continue  # whoever says the same again would be right
            told.append(right)
            now, said = {**now, key: value}, list(layer.said)
            asked.append(now)
            if len(said) == COUNT[severity]:
                break
        return cls(said=tuple(said)) if said else None

    def on_task(self, task: Task) -> Task:
        changes = (Change(after="", stated={a.key: a.value}, words=a.words, adds=True) for a in self.said)
        return task.replace(changes=(*task.changes, *changes))
