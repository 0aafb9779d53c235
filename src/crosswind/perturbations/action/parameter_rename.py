"""Parameters of tools get other names."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal, Self

from crosswind.core.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.core.types import Step, ToolCall, ToolError, ToolResult, Tools
from crosswind.perturbations.action._renaming import besides, own, share
from crosswind.words import banks


@perturbation
class ParameterRename(Perturbation):
    """Parameters go by other names that mean the same, in each tool for itself; the old names are gone."""

    kind: Literal["parameter_rename"] = "parameter_rename"
    axis, tier, rank, group = "action", "perception", "vocabulary", "parameters"
    severities = (
        "Tools on the way with other parameters: 1 one, 2 half, 3 all, 4 also half of the other tools, 5 all tools."
    )
    needs = "a parameter on the way for which a bank or the lexicon has another name"
    way = "fill in the parameters shown, by what they mean"
    params: dict[str, dict[str, str]]  # tool further in -> parameter further in -> parameter shown

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        domain, split = scene.domain.name, scene.task.split
        params: dict[str, dict[str, str]] = {}
        for name in share(scene, rng, severity):
            spec = scene.tools[name]
            taken = set(spec.params)
            renamed: dict[str, str] = {}
            for param in own(scene, spec):
                new = banks.key_name(domain, param, split, rng, taken)
                if new is not None:
                    renamed[param] = new
                    taken.add(new)
            if renamed:
                params[name] = renamed
        return cls(params=params) if params else None

    def hurdles(self, gold: Sequence[Step], place: int) -> int:
        """Calls with other parameters, and some more where tools that are not needed have others too."""
        used = {step.call.tool for step in gold if place in step.fired}
        return super().hurdles(gold, place) + besides(len(self.params), len(used))

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        out = []
        for tool in tools:
            renamed = self.params.get(tool.name)
            if renamed is None:
                out.append(tool)
            else:
                out.append(tool.but(params={renamed.get(k, k): p for k, p in tool.params.items()}))
        return tuple(out)

    def encode_call(self, call: ToolCall) -> ToolCall:
        renamed = self.params.get(call.tool)
        return call if renamed is None else ToolCall(call.tool, {renamed.get(k, k): v for k, v in call.args.items()})

    def decode_call(self, call: ToolCall) -> ToolCall:
        renamed = self.params.get(call.tool)
        if renamed is None:
            return call
        back = {new: old for old, new in renamed.items()}
        return ToolCall(call.tool, {back.get(k, k): v for k, v in call.args.items()})

    def encode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        """What an error says of a parameter, it says by the name shown."""
        renamed = self.params.get(call.tool)
        if renamed is None or result.error is None or "'" not in result.error.text:
            return result
        text = result.error.text
        for old, new in renamed.items():
            text = text.replace(f"'{old}'", f"'{new}'")
        return ToolResult(None, ToolError(result.error.code, text, result.error.retryable))

    def decode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        renamed = self.params.get(call.tool)
        if renamed is None or result.error is None or "'" not in result.error.text:
            return result
        text = result.error.text
        for old, new in renamed.items():
            text = text.replace(f"'{new}'", f"'{old}'")
        return ToolResult(None, ToolError(result.error.code, text, result.error.retryable))
