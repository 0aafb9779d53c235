"""The user changes their mind several times, and in the end takes one change back."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Literal, Self

from crosswind.core.perturbation import Perturbation, Scene, perturbation
from crosswind.core.types import Change, Model, Step, Task
from crosswind.perturbations.query._changes import calls_before, has_final_write, while_it_can_be_changed, wording
from crosswind.words import banks

COUNT = {1: 3, 2: 3, 3: 4, 4: 5, 5: 6}
TRIES = 8


class Voiced(Model):
    """What the user says, and after which canonical tool."""

    key: str
    value: str | int
    after: str
    words: str


@perturbation
class SeveralChanges(Perturbation):
    """The user changes several details while the agent works, and takes back the last change but one."""

    kind: Literal["several_changes"] = "several_changes"
    axis, tier, rank, goal, receipt_source = "query", "interaction", "query", "moved", "change"
    severities = (
        "How often the user speaks up: 3, 3, 4, 5, 6 times, the last time to take a change back; 1 begins after the "
        "first call, 5 as late as it can still be undone."
    )
    needs = "a request that can be met, and stated details whose changes lead to another outcome"
    way = "remember the latest value of each detail, undo what no longer fits, and meet the final request"
    said: tuple[Voiced, ...]

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        task, family = scene.task, scene.family
        if task.refuse or task.changes or task.events:
            return None
        calls = while_it_can_be_changed(scene)
        keys = [key for key in task.brief.stated if key not in task.brief.rules]
        if not calls or not keys:
            return None
        start = round((severity - 1) / 4 * (len(calls) - 1))
        late = [calls[start]] if has_final_write(scene) else calls[start:]
        for _ in range(TRIES):
            course = _course(scene, keys, COUNT[severity], rng)
            if course is not None:
                break
        else:
            return None
        said = []
        for i, (key, value, back) in enumerate(course):
            holes = {"label": family.details[key].label, "value": value}
            words = (
                wording("several_changes", "back", task.split, rng, **holes)
                if back
                else banks.phrase("change_of_mind", task.split, rng, **holes)
            )
            after = late[min(len(late) - 1, i)]  # the same call for all where a write is for good
            said.append(Voiced(key=key, value=value, after=after, words=words))
        return cls(said=tuple(said))

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        return len(self.said) + calls_before(self.said[0].after, gold)

    def on_task(self, task: Task) -> Task:
        changes = (Change(after=s.after, stated={s.key: s.value}, words=s.words) for s in self.said)
        return task.replace(changes=(*task.changes, *changes))


def _course(scene: Scene, keys: Sequence[str], count: int, rng: Random) -> list[tuple[str, Any, bool]] | None:
    """Changes of details, the last of which takes one back; None if they lead to the end that was right before."""
    task, family = scene.task, scene.family
    now, out, before = dict(task.brief.stated), list[tuple[str, Any, bool]](), list[tuple[str, Any]]()
    for _ in range(count - 1):
        key = rng.choice(list(keys))
        value = family.alternative(task.briefed(stated=now), key, rng)
        if value is None:
            return None
        before.append((key, now[key]))
        now[key] = value
        out.append((key, value, False))
    key, value = before[-1]  # back to what stood before the last change
    now[key] = value
    out.append((key, value, True))
    moved = task.briefed(stated=now)
    state = scene.domain.state(moved)
    if not family.ends(moved, state) or family.right(moved, state) == family.right(task, state):
        return None
    return out
