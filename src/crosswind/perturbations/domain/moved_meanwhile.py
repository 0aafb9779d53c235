"""Somebody else changes a row after the agent has read it and before it writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from random import Random
from typing import Literal, Self

from crosswind.base.errors import Unfair
from crosswind.core import task_laws
from crosswind.core.domain import Domain, Family
from crosswind.core.oracle import Walk, walk
from crosswind.core.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.core.types import CHANGED, Event, Flow, Key, Refusal, Step, Task, ToolCall
from crosswind.perturbations.query._changes import wording

TIMES = {1: 1, 2: 1, 3: 2, 4: 2, 5: 3}
TRIES = 24  # other values of rows that are tried


@perturbation
class MovedMeanwhile(Perturbation):
    """A row that the way depends on changes once it was read; a write on the old figures is turned away."""

    kind: Literal["moved_meanwhile"] = "moved_meanwhile"
    axis, tier, rank, goal, group = "domain", "interaction", "domain", "moved", "refusal"
    receipt_source = "calls"
    severities = (
        "How often the row changes: 1, 1, 2, 2, 3 times; from 2 on the error does not say which tool to ask again."
    )
    needs = "a row that is read before the first write, and of which another value leads to another end"
    way = "read again what the write rests on, and decide anew"
    events: tuple[Event, ...]

    @classmethod
    def fits(cls, family: Family) -> bool:
        return not family.refusal

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        task = scene.task
        if task.refuse or task.changes or task.events or task.entity_names:
            return None
        text = wording("moved_meanwhile", "texts", task.split, rng)
        hint = wording("moved_meanwhile", "hints", task.split, rng) if severity == 1 else ""
        for key, column, rows in _variants(scene, rng, TIMES[severity]):
            events = tuple(
                Event(
                    column=f"{key[0]}.{column}",
                    was={f"{key[0]}/{key[1]}": was},
                    now={f"{key[0]}/{key[1]}": now},
                    text=text,
                )
                for was, now in pairwise(rows)
            )
            tool = _met(scene, cls(events=events).on_task(task), len(events))
            if tool:
                said = f"{text} {hint.replace('<tool>', f'{{{tool}}}')}".strip()
                return cls(events=tuple(e.model_copy(update={"text": said}) for e in events))
        return None

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        return len(self.events) + ("{" not in self.events[0].text)

    def on_task(self, task: Task) -> Task:
        return task.replace(events=(*task.events, *self.events))

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        result = yield call
        if result.error and result.error.code == CHANGED:
            memo.fire()
        return result


def _variants(scene: Scene, rng: Random, times: int) -> Iterator[tuple[Key, str, list[dict[str, object]]]]:
    """Rows of the way, a column of each, and the row as it is and as it comes to be; the last leads elsewhere."""
    task, domain, family = scene.task, scene.domain, scene.family
    entries = domain.world_class.entries
    read = {column for entry in entries.values() if not entry.effects for column in entry.reads}
    seen: set[Key] = set()
    walk(domain, task, seen=seen)
    state = domain.state(task)
    here = family.right(task, state)
    places = [
        (key, column)
        for key in sorted(seen)
        for column in (state.row(*key) or {})
        if f"{key[0]}.{column}" in read and f"{key[0]}.{column}" not in domain.named
    ]
    rng.shuffle(places)
    tries = 0
    for key, column in places:
        row, name = state.row(*key), f"{key[0]}/{key[1]}"
        rows = [dict(row or {})]
        for salt in range(times):
            other = domain.varied(task, [key], partial(_is, column), ("moved", salt))
            if name in other.edits and other.edits[name] not in rows:
                rows.append(dict(other.edits[name] or {}))
        if len(rows) <= times:
            continue
        moved = task.replace(edits={**task.edits, name: rows[-1]})
        there = domain.state(moved)
        if not family.ends(moved, there) or family.right(moved, there) == here:
            continue
        yield key, column, rows
        tries += 1
        if tries == TRIES:
            return


def _is(column: str, table: str, id: str, moved: str) -> bool:
    return moved == column


def _met(scene: Scene, task: Task, count: int) -> str:
    """The tool that shows the row, if the way meets this many changes and still comes to its end; otherwise nothing."""
    domain = scene.domain
    try:
        there = walk(domain, task)
    except Unfair:
        return ""
    turned = [i for i, step in enumerate(there.steps) if step.result.error and step.result.error.code == CHANGED]
    family, start = domain.family(task), domain.state(task)
    if len(turned) != count or isinstance(there.end, Refusal):
        return ""
    if not family.goal(task, start, there.session.world.state, there.final):
        return ""
    before = walk(domain, task.replace(events=()).replace(edits={**task.edits, **task.events[0].was}))
    if (_written(there, domain), there.end) == (_written(before, domain), before.end):
        return ""  # what was decided on the old figures is as good
    moved = task.replace(events=(), edits={**task.edits, **task.events[-1].now})
    try:
        task_laws.untied(domain, moved, walk(domain, moved))
    except Unfair:
        return ""  # the row came to tie with another
    column = task.events[0].column
    ids = [key.partition("/")[2] for key in task.events[0].now]
    for step in there.steps[: turned[0]]:
        for call, _ in step.inner:
            entry = domain.world_class.entries[call.tool]
            if not entry.effects and column in entry.reads and any(_shows(step, id) for id in ids):
                return call.tool
    return there.steps[turned[0] - 1].call.tool


def _written(walked: Walk, domain: Domain) -> list[ToolCall]:
    entries = domain.world_class.entries
    made = (inner for step in walked.steps for inner in step.inner)
    return [call for call, result in made if entries[call.tool].effects and result.error is None]


def _shows(step: Step, id: str) -> bool:
    return id in repr(step.result.content) or id in map(str, step.call.args.values())
