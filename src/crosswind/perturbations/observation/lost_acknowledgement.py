"""A write happens and its answer is lost; repeating it is the mistake."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Literal, Self

from crosswind.core.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.core.types import Flow, Step, ToolCall, ToolResult, Tools, ToolSpec, failed
from crosswind.perturbations._added_names import new_tool
from crosswind.words import banks

LOGS = banks.own("lost_acknowledgement", "logs")
LOOKS = 3  # at the log, for one lost answer


@perturbation
class LostAcknowledgement(Perturbation):
    """The first writes of a tool happen but return no answer; a request log shows what became of them."""

    kind: Literal["lost_acknowledgement"] = "lost_acknowledgement"
    axis, tier, rank, speaks = "observation", "interaction", "fault", True
    severities = (
        "Writing tools in the solution that lose answers: 1, 2, all; from 4 on the error does not name the log, and "
        "at 5 the log shows a request only when it is asked again."
    )
    needs = "a tool in the solution that writes"
    way = "check the request log before repeating a write"
    tools: tuple[str, ...]
    log: str
    doc: str
    text: str
    hint: str  # the sentence that names the log; empty where nobody does
    late: bool  # a new entry is first shown without its outcome

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        writes = [name for name in dict.fromkeys(scene.path) if scene.tools[name].writes]
        if scene.task.refuse:  # on the way to a refusal some writes never happen
            canonical = {spec.name for spec in scene.domain.world_class.specs if spec.writes}
            done = {step.call.tool for step in scene.gold if _wrote(step, canonical)}
            writes = [name for name in writes if name in done]
        grave = [name for name in writes if _repeats_badly(scene, name)]
        if not grave:
            return None
        split = scene.task.split
        count = min(len(writes), severity if severity < 3 else len(writes))
        rng.shuffle(grave)
        rest = [name for name in writes if name not in grave]
        log = new_tool(LOGS, split, rng, scene.names)
        return cls(
            tools=tuple(sorted((grave + rng.sample(rest, len(rest)))[:count])),
            log=log,
            doc=banks.phrase("log_doc", split, rng),
            text=banks.phrase("timeout", split, rng),
            hint=banks.phrase("log_hint", split, rng, log=log) if severity < 4 else "",
            late=severity == 5,
        )

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        """Each lost answer, once more where nobody says who knows, and each look that comes too early."""
        met = [step for step in gold if place in step.fired]
        return len(met) + (0 if self.hint else sum(step.result.error is not None for step in met))

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        return (*tools, ToolSpec.new(self.log, self.doc))

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        log: list[dict[str, Any]] = memo.notes.setdefault("log", [])
        if call.tool == self.log:
            return ToolResult([self._told(entry, memo) for entry in log])
        before = memo.writes
        result = yield call
        if call.tool not in self.tools or memo.writes == before or result.error:
            return result
        tool = f"{{{call.tool}}}"
        lost = all(entry["tool"] != tool for entry in log)
        log.append({"tool": tool, "arguments": dict(call.args), "answer": result.content, "hidden": self.late and lost})
        if not lost:
            return result
        memo.fire()
        return failed("timeout", f"{self.text} {self.hint}".rstrip())

    def _told(self, entry: dict[str, Any], memo: Memo) -> dict[str, Any]:
        """An entry as the log shows it; `done` is null as long as it does not know."""
        if entry["hidden"]:
            entry["hidden"] = False
            memo.fire()
            return {"tool": entry["tool"], "arguments": entry["arguments"], "done": None, "answer": None}
        return {"tool": entry["tool"], "arguments": entry["arguments"], "done": True, "answer": entry["answer"]}

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        result = yield call
        if call.tool not in self.tools or result.error is None or result.error.code != "timeout":
            return result
        for _ in range(LOOKS):
            log = yield ToolCall(self.log)
            if log.error:
                return log
            mine = [entry for entry in log.content if entry["arguments"] == call.args]
            if mine and mine[-1]["done"]:
                return ToolResult(mine[-1]["answer"])
        return failed("unavailable", "the log does not tell what became of the request")


def _wrote(step: Step, canonical: set[str]) -> bool:
    """Did something happen in the world at this step, and was it answered?"""
    return step.result.error is None and any(c.tool in canonical and r.error is None for c, r in step.inner)


def _repeats_badly(scene: Scene, name: str) -> bool:
    """Does a write make something or change a state, so that doing it twice is a mistake?"""
    entries = scene.domain.world_class.entries
    made = [entries[i] for i in scene.tools[name].ids if i in entries]
    return not made or any(e.spec.lasting and any(x.endswith("+") or "=" in x for x in e.effects) for e in made)
