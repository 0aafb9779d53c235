"""A write needs an approval that arrives only some simulated time after it was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal, Self

from crosswind.core.flow import digest
from crosswind.core.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.core.types import Flow, Step, ToolCall, Tools, failed
from crosswind.perturbations._time import UNTIL, clock, time_in, wait_spec, waited, waiting
from crosswind.perturbations.query._changes import wording

TOOLS = {1: 1, 2: 1, 3: 2, 4: 3, 5: 4}
MINUTES = {1: 5, 2: 10, 3: 20, 4: 40, 5: 60}
PENDING = "pending"


@perturbation
class LateApproval(Perturbation):
    """The first call of a writing tool requests an approval; the same call works once it is granted."""

    kind: Literal["late_approval"] = "late_approval"
    axis, tier, rank, group = "observation", "interaction", "fault", "time"
    severities = (
        "Writing tools in the solution that need an approval: 1, 1, 2, 3, 4, each after 5, 10, 20, 40, 60 minutes."
    )
    needs = "a tool in the solution that writes"
    way = "use the waiting tool until approval is granted, then repeat the call"
    tools: tuple[str, ...]
    minutes: int
    wait: str
    wait_doc: str
    text: str

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        split = scene.task.split
        writes = [name for name in dict.fromkeys(scene.path) if scene.tools[name].writes]
        if not writes:
            return None
        wait, doc = waiting(split, rng, scene.names)
        return cls(
            tools=tuple(sorted(rng.sample(writes, min(len(writes), TOOLS[severity])))),
            minutes=MINUTES[severity],
            wait=wait,
            wait_doc=doc,
            text=wording("late_approval", "pending", split, rng, due="<due>"),
        )

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        """Each call that must wait, and each ten minutes."""
        return super().difficulty(gold, place) + self.minutes // 10

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        return (*tools, wait_spec(self.wait, self.wait_doc))

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        if call.tool == self.wait:
            return waited(call, memo)
        if call.tool not in self.tools:
            return (yield call)
        key = digest(call.tool, sorted(call.args.items(), key=lambda pair: pair[0])).hex()
        due = memo.notes.setdefault(key, memo.now + self.minutes)
        if memo.now < due:
            memo.fire()
            return failed(PENDING, self.text.replace("<due>", clock(due)))
        return (yield call)

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        result = yield call
        for _ in range(2):
            if call.tool not in self.tools or result.error is None or result.error.code != PENDING:
                break
            passed = yield ToolCall(self.wait, {UNTIL: time_in(result.error.text)})
            if passed.error:
                return passed
            result = yield call
        return result
