"""A service is down for some simulated time and comes back."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal, Self

from crosswind.core.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.core.types import Flow, Step, ToolCall, Tools, failed
from crosswind.perturbations._time import UNTIL, clock, wait_spec, waited, waiting
from crosswind.perturbations.query._changes import wording

DOWN = {1: 1, 2: 1, 3: 2, 4: 2, 5: 3}  # tools
MINUTES = {1: 8, 2: 12, 3: 20, 4: 30, 5: 45}
CLOSED = "closed"


@perturbation
class ServiceHours(Perturbation):
    """Needed tools do not answer before a certain time; each call takes a minute, and another tool can wait."""

    kind: Literal["service_hours"] = "service_hours"
    axis, tier, rank, group = "observation", "interaction", "fault", "time"
    severities = (
        "Tools in the solution that are down: 1, 1, 2, 2, 3, for 8 to 45 minutes; from 4 on the error no longer says "
        "until when, and only the description does."
    )
    needs = "a tool in the solution"
    way = "use the waiting tool until the service opens, then make the call"
    until: dict[str, int]  # tool -> the minute at which it is back
    wait: str
    wait_doc: str
    errors: dict[str, str]
    docs: dict[str, str]

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        split, first = scene.task.split, dict[str, int]()
        for i, step in enumerate(scene.gold):
            if step.call.tool in scene.tools:
                first.setdefault(step.call.tool, i)
        if not first:
            return None
        chosen = sorted(rng.sample(list(first), min(len(first), DOWN[severity])), key=lambda name: first[name])
        until, at = dict[str, int](), 0
        for name in chosen:
            at = max(at, first[name] + len(scene.task.withheld)) + MINUTES[severity] + rng.randrange(3)
            until[name] = at
        wait, doc = waiting(split, rng, scene.names)
        told = severity < 4
        texts = {
            n: wording("service_hours", "told" if told else "untold", split, rng, end=clock(m))
            for n, m in until.items()
        }
        docs = {} if told else {n: wording("service_hours", "docs", split, rng, end=clock(m)) for n, m in until.items()}
        return cls(until=until, wait=wait, wait_doc=doc, errors=texts, docs=docs)

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        """Each tool that is down, and each of which the error does not say until when."""
        return len(self.until) + len(self.docs) + max(self.until.values()) // 15

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        shown = [t.replace(doc=f"{t.doc} {self.docs[t.name]}".strip()) if t.name in self.docs else t for t in tools]
        return (*shown, wait_spec(self.wait, self.wait_doc))

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        if call.tool == self.wait:
            return waited(call, memo)
        if memo.now < self.until.get(call.tool, 0):
            memo.fire()
            return failed(CLOSED, self.errors[call.tool])
        return (yield call)

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        result = yield call
        for _ in range(2):
            if call.tool not in self.until or result.error is None or result.error.code != CLOSED:
                break
            passed = yield ToolCall(self.wait, {UNTIL: clock(self.until[call.tool])})
            if passed.error:
                return passed
            result = yield call
        return result
