"""When the user may still speak up, and in which words; not a perturbation itself."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from crosswind.base.errors import Unfair
from crosswind.core.oracle import walk
from crosswind.core.perturbation import Scene
from crosswind.core.types import Refusal, Split, Step, Task
from crosswind.words import banks


def while_it_can_be_changed(scene: Scene) -> list[str]:
    """The canonical calls after which a change still comes in time, for an agent that works in any order.

    A write that cannot be taken back may come as soon as what it needs is known, so the change comes at the latest with
    the call that shows it.
    """
    specs = {spec.name: spec for spec in scene.domain.world_class.specs}
    made = [inner for step in scene.gold for inner in step.inner]
    final = next((call for call, _ in made if specs[call.tool].final), None)
    if final is None:
        return [call.tool for call, _ in made]
    needed = {v for v in final.args.values() if isinstance(v, str) and v not in scene.task.given}
    shown = next((i for i, (_, result) in enumerate(made) if needed & _strings(result.content)), -1)
    return [call.tool for call, _ in made[: shown + 1]]


def has_final_write(scene: Scene) -> bool:
    """Does the way hold a write that cannot be taken back?"""
    specs = {spec.name: spec for spec in scene.domain.world_class.specs}
    return any(specs[call.tool].final for step in scene.gold for call, _ in step.inner)


def calls_before(after: str, gold: Sequence[Step]) -> int:
    """How many calls of the way come before a change: all that was done by then has to be thought over."""
    made = [call.tool for step in gold for call, _ in step.inner]
    return made.index(after) if after in made else len(made)


def can_be_met(scene: Scene, task: Task) -> bool:
    """Does the solution meet a request, as the user turns it? Costs a walk on the canonical interface."""
    domain = scene.domain
    family, start = domain.family(task), domain.state(task)
    if not family.ends(task, start):
        return False
    try:
        there = walk(domain, task)
    except Unfair:
        return False
    if isinstance(there.end, Refusal):
        return False
    return family.goal(task, start, there.session.world.state, there.final)


def _strings(content: Any) -> set[str]:
    if isinstance(content, dict):
        content = list(content.values())
    if isinstance(content, list):
        return set[str]().union(*map(_strings, content))
    return {content} if isinstance(content, str) else set()


def wording(kind: str, table: str, split: Split, rng: Random, **holes: Any) -> str:
    """A text of a kind's own: one head and one tail of its table, with values in the holes."""
    text = " ".join(rng.choice(part) for part in banks.own(kind, table)[split])
    return text.format_map(holes)
