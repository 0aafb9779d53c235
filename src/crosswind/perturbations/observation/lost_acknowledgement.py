"""A write happens and its answer is lost; repeating it is the mistake."""

from __future__ import annotations

from random import Random
from typing import Literal, Self

from crosswind.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.types import Flow, Step, ToolCall, ToolResult, Tools, ToolSpec, failed

LOGS = ("request_log", "call_history", "recent_requests", "audit_trail")


@perturbation
class LostAcknowledgement(Perturbation):
    """The first writes through a tool happen without an answer; a request log tells what became of them."""

    kind: Literal["lost_acknowledgement"] = "lost_acknowledgement"
    axis, tier, rank = "observation", "interaction", "fault"
    severities = (
        "Writing tools on the way that lose answers: 1, 1, 2, 2, all; from 4 on the error does not name the log."
    )
    tools: tuple[str, ...]
    log: str
    told: bool

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        writes = [name for name in dict.fromkeys(scene.path) if scene.tools[name].writes]
        if scene.task.refuse:  # on the way to a refusal some writes never happen
            canonical = {spec.name for spec in scene.domain.world_class.specs if spec.writes}
            done = {step.call.tool for step in scene.gold if _wrote(step, canonical)}
            writes = [name for name in writes if name in done]
        if not writes:
            return None
        count = len(writes) if severity == 5 else (severity + 1) // 2
        log = rng.choice([name for name in LOGS if name not in scene.tools])
        return cls(tools=tuple(sorted(rng.sample(writes, min(count, len(writes))))), log=log, told=severity < 4)

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        doc = "What became of your last requests that change something: tool, arguments, whether done, and the answer."
        return (*tools, ToolSpec.new(self.log, doc))

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        if call.tool == self.log:
            return ToolResult(list(memo.notes.get("log", [])))
        before = memo.writes
        result = yield call
        if call.tool not in self.tools or memo.writes == before or result.error:
            return result
        log = memo.notes.setdefault("log", [])
        lost = all(entry["tool"] != call.tool for entry in log)
        log.append({"tool": call.tool, "arguments": dict(call.args), "done": True, "answer": result.content})
        if not lost:
            return result
        memo.fire()
        way = f" {{{self.log}}} tells." if self.told else ""
        return failed("timeout", f"No answer in time. The request may or may not have been carried out.{way}")

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        result = yield call
        if call.tool not in self.tools or result.error is None or result.error.code != "timeout":
            return result
        log = yield ToolCall(self.log)
        if log.error:
            return log
        last = log.content[-1]
        if last["arguments"] != call.args:
            return failed("unavailable", "the log does not tell what became of the request")
        return ToolResult(last["answer"])


def _wrote(step: Step, canonical: set[str]) -> bool:
    """Did something happen in the world at this step, and was it answered?"""
    return step.result.error is None and any(c.tool in canonical and r.error is None for c, r in step.inner)
