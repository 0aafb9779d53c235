"""A write is described first and happens when it is repeated with its confirmation."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal, Self

from crosswind.core.flow import token
from crosswind.core.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.core.types import Flow, Step, ToolCall, ToolResult, Tools, failed
from crosswind.perturbations._added_names import new_word
from crosswind.words import banks

PARAMS = banks.own("confirm_before_write", "params")


@perturbation
class ConfirmBeforeWrite(Perturbation):
    """The first call of a writing tool changes nothing; it returns a confirmation to repeat the call with."""

    kind: Literal["confirm_before_write"] = "confirm_before_write"
    axis, tier, rank = "action", "reasoning", "protocol"
    severities = (
        "Writing tools in the solution that ask for it: 1, 2, 3, all of them; at 5 all, and the descriptions do not "
        "say so."
    )
    needs = "a tool in the solution that writes"
    way = "repeat the write with the confirmation that its first call returned"
    tools: tuple[str, ...]
    param: str
    salt: int
    doc: str  # empty where the description says nothing
    following: str
    refusal: str

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        writes = [name for name in dict.fromkeys(scene.path) if scene.tools[name].writes]
        if not writes:
            return None
        chosen = writes if severity >= 4 else rng.sample(writes, min(len(writes), severity))
        split = scene.task.split
        param = new_word(PARAMS, split, rng, {p for name in chosen for p in scene.tools[name].params})
        if param is None:
            return None
        return cls(
            tools=tuple(sorted(chosen)),
            param=param,
            salt=rng.randrange(10**6),
            doc=banks.phrase("confirm_doc", split, rng, param=param) if severity < 5 else "",
            following=banks.phrase("confirm_next", split, rng, param=param),
            refusal=banks.phrase("bad_confirmation", split, rng, param=param),
        )

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        return (1 + (not self.doc)) * super().difficulty(gold, place)

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        return tuple(t.with_param(self.param, "string", says=self.doc) if t.name in self.tools else t for t in tools)

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        if call.tool not in self.tools:
            return (yield call)
        memo.fire()
        inner = call.without(self.param)
        right = token(self.salt, inner.tool, sorted(inner.args.items()))
        if self.param not in call.args:
            return ToolResult({"done": False, self.param: right, "next": self.following})
        if call.args[self.param] != right:
            return failed("refused", self.refusal)
        return (yield inner)

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        if call.tool not in self.tools:
            return (yield call)
        first = yield call
        if first.error:
            return first
        return (yield call.with_args(**{self.param: first.content[self.param]}))
