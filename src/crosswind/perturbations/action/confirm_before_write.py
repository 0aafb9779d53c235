"""A write is described first and happens when it is repeated with its confirmation."""

from __future__ import annotations

from random import Random
from typing import Literal, Self

from crosswind.flow import token
from crosswind.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.types import Flow, ToolCall, ToolResult, Tools, failed

PARAMS = ("confirm", "confirmation", "confirm_with", "ack")


@perturbation
class ConfirmBeforeWrite(Perturbation):
    """The first call of a write changes nothing and returns a confirmation to repeat it with."""

    kind: Literal["confirm_before_write"] = "confirm_before_write"
    axis, tier, rank = "action", "reasoning", "protocol"
    severities = (
        "How many writing tools on the way ask for it: 1, 2, 3, then all writing tools; at 5 the docs do not say so."
    )
    tools: tuple[str, ...]
    param: str
    salt: int
    told: bool

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        writes = [name for name in dict.fromkeys(scene.path) if scene.tools[name].writes]
        if not writes:
            return None
        if severity >= 4:
            chosen = [name for name, spec in scene.tools.items() if spec.writes]
        else:
            chosen = rng.sample(writes, min(len(writes), severity))
        free = [p for p in PARAMS if all(p not in scene.tools[name].params for name in chosen)]
        if not free:
            return None
        return cls(tools=tuple(sorted(chosen)), param=rng.choice(free), salt=rng.randrange(10**6), told=severity < 5)

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        says = f" Call it twice: the first call returns what to pass as {self.param}." if self.told else ""
        return tuple(
            t.with_param(self.param, "string").but(doc=t.doc + says) if t.name in self.tools else t for t in tools
        )

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        if call.tool not in self.tools:
            return (yield call)
        memo.fire()
        inner = call.without(self.param)
        right = token(self.salt, inner.tool, sorted(inner.args.items()))
        if self.param not in call.args:
            return ToolResult({"done": False, self.param: right, "next": f"repeat the call with {self.param}"})
        if call.args[self.param] != right:
            return failed("refused", f"This {self.param} belongs to another call; leave it out to get one.")
        return (yield inner)

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        if call.tool not in self.tools:
            return (yield call)
        first = yield call
        if first.error:
            return first
        return (yield call.having(**{self.param: first.content[self.param]}))
