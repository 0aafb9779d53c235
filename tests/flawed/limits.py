"""Flaws in knowing what can be done and what was done."""

from __future__ import annotations

from crosswind.core.oracle import walk
from crosswind.core.types import Flow, Refusal, ToolCall
from tests.flawed.walker import SORRY, Ends, Flawed, effective_writes, flaw


@flaw("flaw_false_success")
class FalseSuccess(Flawed):
    """Leaves out the last write and reports it as done."""

    stage, cause = "self-assessment", "false success"

    def wish(self, call: ToolCall) -> Flow:
        lasting = [c for c, _ in self.plan if self.writes(c.tool)]
        if lasting and call == lasting[-1] and not self.task.refuse:
            raise Ends(self.certificate.gold.final)
        return (yield call)


@flaw("flaw_over_refusal")
class OverRefusal(Flawed):
    """Refuses what can be done, with nothing in its way."""

    stage, cause = "self-assessment", "over-refusal"

    def wish(self, call: ToolCall) -> Flow:
        steps = self.session.steps
        odd = any(s.result.error or s.heard or [r.content for _, r in s.inner] != [s.result.content] for s in steps)
        if not self.task.refuse and not odd and self.rng.random() < 0.4:
            raise Ends("I am sorry, but I am not able to help with that.")
        return (yield from super().wish(call))


@flaw("flaw_missed_refusal")
class MissedRefusal(Flawed):
    """Says that it is done where it has found out that it cannot be."""

    stage, cause = "self-assessment", "missed refusal"

    def ended(self, end: str | Refusal) -> str | Refusal:
        if isinstance(end, Refusal):
            return walk(self.drawn.domain, self.task.unobstructed()).final if self.rng.random() < 0.5 else "Done."
        return end


@flaw("flaw_forced_completion")
class ForcedCompletion(Flawed):
    """Does something else instead where the request cannot be met, and reports success."""

    stage, cause = "self-assessment", "forced completion"

    def ended(self, end: str | Refusal) -> str | Refusal:
        if isinstance(end, Refusal):
            for call in effective_writes(self):
                if self.through(call).error is None:
                    raise Ends("Done. I have arranged it.")
            raise Ends(SORRY)
        return end
