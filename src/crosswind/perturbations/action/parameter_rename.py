"""Parameters of tools get other names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Literal, Self

from crosswind.core.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.core.types import Step, ToolCall, ToolError, ToolResult, Tools
from crosswind.perturbations.action._renaming import extra_difficulty, own, renamed, reverse, share
from crosswind.words import banks


@perturbation
class ParameterRename(Perturbation):
    """Parameters are renamed to synonyms, separately in each tool; the old names no longer work."""

    kind: Literal["parameter_rename"] = "parameter_rename"
    axis, tier, rank, group = "action", "perception", "vocabulary", "parameters"
    severities = (
        "Tools in the solution with renamed parameters: 1 one, 2 half, 3 all, 4 also half of the other tools, 5 all "
        "tools."
    )
    needs = "a parameter in the solution for which a bank or the lexicon has another name"
    way = "fill in the parameters shown, by their meaning"
    params: dict[str, dict[str, str]]  # tool further in -> parameter further in -> parameter shown

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        domain, split = scene.domain.name, scene.task.split
        params: dict[str, dict[str, str]] = {}
        for name in share(scene, rng, severity):
            spec = scene.tools[name]
            taken = set(spec.params)
            names: dict[str, str] = {}
            for param in own(scene, spec):
                if new := banks.key_name(domain, param, split, rng, taken):
                    names[param] = new
                    taken.add(new)
            if names:
                params[name] = names
        return cls(params=params) if params else None

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        """Calls with other parameters, and some more where tools that are not needed have others too."""
        used = {step.call.tool for step in gold if place in step.fired}
        return super().difficulty(gold, place) + extra_difficulty(len(self.params), len(used))

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        return tuple(
            t.replace(params=renamed(t.params, self.params[t.name])) if t.name in self.params else t for t in tools
        )

    def encode_call(self, call: ToolCall) -> ToolCall:
        names = self.params.get(call.tool)
        return call if names is None else ToolCall(call.tool, renamed(call.args, names))

    def decode_call(self, call: ToolCall) -> ToolCall:
        names = self.params.get(call.tool)
        return call if names is None else ToolCall(call.tool, renamed(call.args, reverse(names)))

    def encode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        """What an error says of a parameter, it says by the name shown."""
        return _said(result, self.params.get(call.tool, {}))

    def decode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        return _said(result, reverse(self.params.get(call.tool, {})))


def _said(result: ToolResult, names: Mapping[str, str]) -> ToolResult:
    """An error that speaks of parameters by other names."""
    if not names or result.error is None or "'" not in result.error.text:
        return result
    text = result.error.text
    for old, new in names.items():
        text = text.replace(f"'{old}'", f"'{new}'")
    return ToolResult(None, ToolError(result.error.code, text, result.error.retryable))
