"""Flaws in the plan: what comes when, what is looked up, and how long it may take."""

from __future__ import annotations

from typing import Any

from crosswind.core.types import Flow, ToolCall, ToolResult
from tests.flawed.walker import Ends, Flawed, flaw


@flaw("flaw_wrong_order")
class WrongOrder(Flawed):
    """Makes a call before the one that it depends on."""

    stage, cause = "planning", "wrong order"
    turned = False
    early: tuple[ToolCall, ToolResult] | None = None  # a call that worked before its turn

    def wish(self, call: ToolCall) -> Flow:
        if self.early and self.early[0] == call:
            return self.early[1]
        calls = [c for c, _ in self.plan]
        after = calls[calls.index(call) + 1] if call in calls[:-1] else None
        if (
            after
            and not self.planned
            and not self.turned
            and self.walker.specs[call.tool].writes
            and self.writes(after.tool)
        ):
            self.turned = True
            early = yield after
            if early.error:
                result = yield call
                if result.error is None:
                    raise Ends(self.certificate.gold.final)
                return result
            self.early = after, early
        return (yield call)


@flaw("flaw_dawdles")
class Dawdles(Flawed):
    """Looks at one thing after another that nobody asked about, until its steps are used up."""

    stage, cause = "planning", "ran out of steps"
    strayed = False

    def sent(self, call: ToolCall) -> ToolResult:
        if not self.planned and not self.strayed and self.rng.random() < 0.5:
            self.strayed = True
            for aside in self.other_reads():
                if len(self.session.steps) > self.certificate.budget:
                    break
                self.through(aside)
        return super().sent(call)


@flaw("flaw_fabricates")
class Fabricates(Flawed):
    """Makes up what it should look up: the code that a write needs, or the figure that the answer rests on."""

    stage, cause = "planning", "fabricated value"

    def wish(self, call: ToolCall) -> Flow:
        found = next((r.content for c, r in self.plan if c == call), None)
        last = call == self.plan[-1][0] if self.plan else False
        spec = self.walker.specs[call.tool]
        if (
            isinstance(found, dict)
            and not self.planned
            and ((spec.writes and not spec.lasting) or (last and not spec.writes))
        ):
            return ToolResult(made_up(found))
        return (yield call)


@flaw("flaw_fabricates_details")
class FabricatesDetails(Flawed):
    """Makes up a detail that it should ask the user for."""

    stage, cause = "understanding", "fabricated value"

    def asked(self, detail: str) -> Any:
        family = self.drawn.domain.family(self.task)
        known = self.task.briefed(stated=self.task.wanted).replace(withheld={}, changes=())
        other = family.alternative(known, detail, self.rng)
        return super().asked(detail) if other is None or str(other) in self.task.brief.query else other


def made_up(content: dict[str, Any]) -> dict[str, Any]:
    """Values of the same kinds that nobody ever gave."""
    return {
        k: v + 137 if isinstance(v, (int, float)) and not isinstance(v, bool) else f"QX{len(str(v))}7Z31"
        for k, v in content.items()
    }
