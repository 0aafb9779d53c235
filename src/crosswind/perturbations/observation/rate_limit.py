"""A few calls in a row, and then a pause."""

from __future__ import annotations

from random import Random
from typing import Literal, Self

from crosswind.core.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.core.types import Flow, ToolCall, ToolResult, Tools, ToolSpec, failed
from crosswind.perturbations._added_names import new_tool
from crosswind.words import banks

WAITS = banks.own("rate_limit", "waits")
TRIES = 6  # of one call


@perturbation
class RateLimit(Perturbation):
    """After several calls in a row, the next is rejected without effect until a waiting tool has been called."""

    kind: Literal["rate_limit"] = "rate_limit"
    axis, tier, rank = "observation", "interaction", "fault"
    severities = (
        "Rejections that the solution meets: 1, 2, 3, 4, 5, or as many as there are with one call at a time; at 5 one "
        "must wait twice."
    )
    needs = "at least two calls in the solution"
    way = "call the waiting tool, then repeat the rejected call"
    allowed: int  # calls in a row
    waits: int  # needed after a refusal
    wait: str
    doc: str
    text: str

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        calls = len(scene.gold)
        if calls < 2:
            return None
        allowed = calls - 1
        while allowed > 1 and (calls - 1) // allowed < severity:
            allowed -= 1
        split = scene.task.split
        wait = new_tool(WAITS, split, rng, scene.names)
        doc, text = banks.phrase("wait_doc", split, rng), banks.phrase("rate_limited", split, rng, wait=wait)
        return cls(allowed=allowed, waits=2 if severity == 5 else 1, wait=wait, doc=doc, text=text)

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        return (*tools, ToolSpec.new(self.wait, self.doc))

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        notes = memo.notes
        if call.tool == self.wait:
            notes["waited"] = notes.get("waited", 0) + 1
            if notes["waited"] < self.waits:
                memo.fire()
                return ToolResult({"ready": False})
            notes["calls"] = 0
            return ToolResult({"ready": True})
        if notes.get("calls", 0) >= self.allowed:
            notes["waited"] = 0
            memo.fire()
            return failed("rate_limited", self.text)
        notes["calls"] = notes.get("calls", 0) + 1
        return (yield call)

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        result = yield call
        for _ in range(TRIES):  # a call that fails for another reason counts as well
            if result.error is None or result.error.code != "rate_limited":
                break
            waited = yield ToolCall(self.wait)
            while waited.error is None and not waited.content["ready"]:
                waited = yield ToolCall(self.wait)
            if waited.error:
                return waited
            result = yield call
        return result
