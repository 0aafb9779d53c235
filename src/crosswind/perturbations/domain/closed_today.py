"""A tool that the request needs is down until tomorrow, and waiting does not help: refusing is right."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal, Self

from crosswind.core.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.core.types import Flow, Step, Task, ToolCall, Tools
from crosswind.perturbations._time import wait_spec, waited, waiting
from crosswind.perturbations.domain._blocking import needed
from crosswind.perturbations.query._changes import wording


@perturbation
class ClosedToday(Perturbation):
    """A needed tool is closed for the rest of the day, so the request cannot be met and must be refused."""

    kind: Literal["closed_today"] = "closed_today"
    axis, tier, rank, goal, group = "domain", "internalization", "domain", "refuse", "refusal"
    receipt_source = "rows"
    severities = "Which tool in the solution is closed, from the first (1) to the last (5)."
    needs = "a tool in the solution without which the request provably cannot be met"
    way = "notice that waiting does not help, leave nothing changed, and say that it cannot be done today"
    tool: str
    text: str
    notice: str
    wait: str
    wait_doc: str

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        split = scene.task.split
        text = wording("closed_today", "texts", split, rng)
        name = needed(scene, rng, severity, text, silent=False)
        if name is None:
            return None
        notice = wording("closed_today", "notices", split, rng)
        wait, doc = waiting(split, rng, scene.names)
        return cls(tool=name, text=text, notice=notice, wait=wait, wait_doc=doc)

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        """Every call that still works is a reason to go on."""
        return len(gold)

    def on_task(self, task: Task) -> Task:
        told = task.briefed(policy=f"{task.brief.policy} {self.notice}".strip())
        return told.replace(blocked={**told.blocked, self.tool: self.text})

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        return (*tools, wait_spec(self.wait, self.wait_doc))

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        if call.tool == self.wait:
            return waited(call, memo)
        return (yield call)
