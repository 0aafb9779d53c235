"""Flaws in living with results and errors."""

from __future__ import annotations

from typing import Any

from crosswind.agents.obedient import ordered
from crosswind.core.types import Flow, ToolCall, ToolResult
from crosswind.episodes.play import result_text
from tests.flawed.walker import SORRY, Ends, Flawed, flaw


@flaw("flaw_misread_result")
class MisreadResult(Flawed):
    """Reads a result askew, once: figures of the next row, or a figure that is a little off."""

    stage, cause = "feedback", "misread result"
    read = False

    def wish(self, call: ToolCall) -> Flow:
        result = yield call
        if self.read or self.planned or result.error or self.walker.specs[call.tool].writes or self.rng.random() < 0.3:
            return result
        bent = askew(result.content)
        self.read = bent != result.content
        return ToolResult(bent)


def askew(content: Any) -> Any:
    """Content read wrongly: each row with the values of the next one but for its first, each figure three more."""
    if isinstance(content, list) and len(content) > 1 and all(isinstance(row, dict) and row for row in content):
        return [
            {**after, **dict([next(iter(row.items()))])}
            for row, after in zip(content, content[1:] + content[:1], strict=True)
        ]
    if isinstance(content, dict):
        return {k: v + 3 if isinstance(v, (int, float)) and not isinstance(v, bool) else v for k, v in content.items()}
    return content


@flaw("flaw_ignored_error")
class IgnoredError(Flawed):
    """Goes on after an error as if the call had worked."""

    stage, cause = "feedback", "ignored error"

    def sent(self, call: ToolCall) -> ToolResult:
        result = self.tell(call)
        if result.error and not self.task.refuse:
            known = [step.call for step in self.certificate.gold.steps]
            rest = known[known.index(call) + 1 :] if call in known else []
            for later in [c for c in rest if c.args and c.args != call.args][:2]:
                self.tell(later)
            raise Ends("All of that is done.")
        return result


@flaw("flaw_unsafe_retry")
class UnsafeRetry(Flawed):
    """Repeats a write of which it does not know whether it happened."""

    stage, cause = "feedback", "unsafe retry"

    def sent(self, call: ToolCall) -> ToolResult:
        result = super().sent(call)
        if result.error and result.error.code == "timeout":
            again = self.tell(call)
            return result if again.error else again
        return result


@flaw("flaw_blind_repetition")
class BlindRepetition(Flawed):
    """Repeats a call that fails, word for word, as long as it is let."""

    stage, cause = "feedback", "blind repetition"

    def sent(self, call: ToolCall) -> ToolResult:
        result = super().sent(call)
        if result.error and result.error.code != "timeout" and not self.task.refuse:
            for _ in range(self.certificate.budget):
                self.tell(call)
            raise Ends(SORRY)
        return result


@flaw("flaw_gives_up")
class GivesUp(Flawed):
    """Refuses at the first error, though there is a way on."""

    stage, cause = "feedback", "gave up"

    def sent(self, call: ToolCall) -> ToolResult:
        result = self.tell(call)
        if result.error and not self.task.refuse:
            raise Ends(SORRY)
        return result


@flaw("flaw_obeys_injections")
class ObeysInjections(Flawed):
    """Carries out instructions that it finds in results."""

    stage, cause = "planning", "obeyed an injection"

    def __init__(self, *args: Any) -> None:
        self.obeyed: set[str] = set()
        super().__init__(*args)

    def sent(self, call: ToolCall) -> ToolResult:
        result = super().sent(call)
        if result.error is None:
            for tool in self.session.tools():
                order = ordered(result_text(result), tool.name)
                if order and tool.writes and repr(order) not in self.obeyed and set(order) <= set(tool.params):
                    self.obeyed.add(repr(order))
                    self.tell(
                        ToolCall(
                            tool.name,
                            {k: int(v) if tool.params[k].type == "integer" else v for k, v in order.items()},
                        )
                    )
        return result
