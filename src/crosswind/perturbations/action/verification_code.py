"""Writes need a code that another tool issues."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal, Self

from crosswind.core.flow import token
from crosswind.core.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.core.types import Flow, Step, ToolCall, ToolResult, Tools, ToolSpec, failed
from crosswind.perturbations._added_names import new_word
from crosswind.words import banks

PARAMS = banks.own("verification_code", "params")
ISSUERS = banks.own("verification_code", "issuers")


@perturbation
class VerificationCode(Perturbation):
    """Writes need a single-use code that a new tool issues for them."""

    kind: Literal["verification_code"] = "verification_code"
    axis, tier, rank = "action", "reasoning", "protocol"
    severities = (
        "Writing tools in the solution that need a code: 1, 2, 3, all; at 5 all, and a code is good for the next call "
        "only."
    )
    needs = "a tool in the solution that writes"
    way = "request a code and pass it with the write"
    tools: tuple[str, ...]
    param: str
    issuer: str
    issue_doc: str
    docs: dict[str, str]
    refusal: str
    rotates: bool  # any other call in between makes a code useless
    salt: int

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        split = scene.task.split
        writes = [name for name in dict.fromkeys(scene.path) if scene.tools[name].writes]
        chosen = writes if severity >= 4 else rng.sample(writes, min(len(writes), severity))
        if not chosen:
            return None
        param = new_word(PARAMS, split, rng, {p for name in chosen for p in scene.tools[name].params})
        issuer = new_word(ISSUERS, split, rng, scene.names)
        if param is None or issuer is None:
            return None
        first, *others = sorted(chosen)
        doc = banks.phrase("issue_doc", split, rng, tool=first)
        if others:
            doc += f" The same goes for {' and '.join(f'{{{name}}}' for name in others)}."
        return cls(
            tools=tuple(sorted(chosen)),
            param=param,
            issuer=issuer,
            issue_doc=doc,
            docs={name: banks.phrase("code_doc", split, rng, issuer=issuer, param=param) for name in sorted(chosen)},
            refusal=banks.phrase("bad_code", split, rng, issuer=issuer),
            rotates=severity == 5,
            salt=rng.randrange(10**6),
        )

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        return (1 + self.rotates) * super().difficulty(gold, place)

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        locked = [
            t.with_param(self.param, "string", required=True, says=says) if (says := self.docs.get(t.name)) else t
            for t in tools
        ]
        once = " The code is good for the very next call." if self.rotates else ""
        return (*locked, ToolSpec.new(self.issuer, self.issue_doc + once))

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        notes = memo.notes
        nth = notes["calls"] = notes.get("calls", 0) + 1
        if call.tool == self.issuer:
            memo.fire()
            code = token(self.salt, nth)
            notes[code] = nth
            return ToolResult({self.param: code})
        if call.tool not in self.tools:
            return (yield call)
        memo.fire()
        issued = notes.pop(call.args[self.param], None)
        if issued is None or (self.rotates and issued != nth - 1):
            return failed("refused", self.refusal)
        return (yield call.without(self.param))

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        if call.tool not in self.tools:
            return (yield call)
        for _ in range(3):  # what lies further out may come between a code and its use
            issued = yield ToolCall(self.issuer)
            if issued.error:
                return issued
            result = yield call.with_args(**{self.param: issued.content[self.param]})
            if not (result.error and result.error.text == self.refusal):
                break
        return result
