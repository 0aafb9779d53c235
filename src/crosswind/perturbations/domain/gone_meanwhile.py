"""Somebody else takes what the request needs after the agent has seen it: refusing is right then."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Literal, Self

from crosswind.base.errors import Unfair
from crosswind.core.domain import Family
from crosswind.core.oracle import walk
from crosswind.core.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.core.types import CHANGED, Event, Flow, Refusal, Step, Task, ToolCall
from crosswind.perturbations.query._changes import wording


@perturbation
class GoneMeanwhile(Perturbation):
    """Somebody else makes the request impossible before the agent's first write, so it must be refused."""

    kind: Literal["gone_meanwhile"] = "gone_meanwhile"
    axis, tier, rank, goal, group = "domain", "internalization", "domain", "refuse", "refusal"
    receipt_source = "calls"
    severities = "How late the change can be noticed: 1 after the fewest calls, 5 the latest."
    needs = "a row that is read before the first write, and after whose change the request provably cannot be met"
    way = "reread the data before writing, notice that the request is impossible, leave nothing changed, and refuse"
    event: Event

    @classmethod
    def fits(cls, family: Family) -> bool:
        return not family.refusal

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        task, domain = scene.task, scene.domain
        if task.refuse or task.changes or task.events or task.entity_names:
            return None
        state = domain.state(task)
        read = {c for entry in domain.world_class.entries.values() if not entry.effects for c in entry.reads}
        text = wording("moved_meanwhile", "texts", task.split, rng)
        found: list[tuple[int, Self]] = []
        for edits in scene.family.obstacles(task, state, rng):
            was = {key: dict(state.row(*key.split("/", 1)) or {}) for key in edits}
            if not all(was.values()) or not all(edits.values()):
                continue  # rows that come or go are nothing that a tool has shown before
            now = {key: dict(row or {}) for key, row in edits.items()}
            for column in _columns(was, now, read):
                layer = cls(event=Event(column=column, was=was, now=now, text=text))
                if (steps := _met(scene, layer.on_task(task))) and scene.provable(task.replace(obstacle=edits)):
                    found.append((steps, layer))
        found.sort(key=lambda pair: pair[0])
        place = (severity - 1) / 4 * (len(found) - 1)  # between two that there are, chance decides
        return found[int(place) + (rng.random() < place % 1)][1] if found else None

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        """Every call that still works is a reason to go on."""
        return len(gold)

    def on_task(self, task: Task) -> Task:
        obstacle = {**task.obstacle, **self.event.now}
        return task.replace(events=(*task.events, self.event), obstacle=obstacle)

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        result = yield call
        if result.error and result.error.code == CHANGED:
            memo.fire()
        return result


def _columns(was: dict[str, dict[str, Any]], now: dict[str, dict[str, Any]], read: set[str]) -> list[str]:
    """The columns that change and that a tool shows, as "table.column"."""
    changed = {f"{key.split('/', 1)[0]}.{c}" for key, row in now.items() for c in row if row[c] != was[key].get(c)}
    return sorted(changed & read)


def _met(scene: Scene, task: Task) -> int:
    """The steps of the way that meets the change and ends in a refusal; 0: it does not."""
    try:
        there = walk(scene.domain, task)
    except Unfair:
        return 0
    turned = any(step.result.error and step.result.error.code == CHANGED for step in there.steps)
    return len(there.steps) if turned and isinstance(there.end, Refusal) and not there.changes else 0
