"""The same entities and meaning behind the interface of another vendor."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal, Self

from crosswind.core.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.core.types import Step, ToolCall, ToolResult, Tools, ToolSpec
from crosswind.perturbations._describing import described
from crosswind.perturbations.action._renaming import renamed, reverse
from crosswind.perturbations.observation._rows import renamed_keys
from crosswind.words import banks

# house styles: (vendor prefix, style of tools, style of parameters and keys, where a result lies)
VENDORS = (
    ("Nx", "pascal", "pascal", "NxReply"),
    ("orb", "kebab", "camel", "payload"),
    ("ZQ", "upper", "upper", "ZQ_OUT"),
    ("hx", "camel", "camel", "hxBody"),
    ("Kora", "pascal", "snake", "kora_result"),
)


@perturbation
class ForeignInterface(Perturbation):
    """Tools, parameters, result keys and descriptions are those of another vendor, in one consistent style."""

    kind: Literal["foreign_interface"] = "foreign_interface"
    axis, tier, rank, group = "domain", "internalization", "vocabulary", "names"
    severities = (
        "What is foreign: 1 tool names, 2 also parameters, 3 also keys of results, 4 also descriptions, 5 also the "
        "frame around results."
    )
    needs = "a tool in the solution for which a bank or the lexicon has another name"
    way = "learn names, parameters and keys from what is shown"
    names: dict[str, str]  # tool further in -> shown
    params: dict[str, dict[str, str]]  # tool further in -> its parameters
    keys: dict[str, str]
    docs: dict[str, str]
    frame: str

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        domain, split = scene.domain.name, scene.task.split
        prefix, tool_style, key_style, frame = rng.choice(VENDORS)
        taken, names = scene.names, {}
        for name, spec in scene.tools.items():
            new = None if spec.opaque else banks.tool_name(domain, spec, split, rng, taken, tool_style)
            if new is None:
                continue
            names[name] = _branded(prefix, new, tool_style)
            if names[name] in taken or len(names[name]) > 64:
                return None
            taken.add(names[name])
        if not set(names) & set(scene.path):
            return None
        keys: dict[str, str] = {}
        used: set[str] = set()
        for key in banks.data(domain).get("keys", {}):
            if new := banks.key_name(domain, key, split, rng, used, key_style):
                keys[key] = new
                used.add(new)
        params = {n: {p: keys[p] for p in scene.tools[n].params if p in keys} for n in names} if severity >= 2 else {}
        docs = {}
        if severity >= 4:
            for name in names:
                if doc := described(scene, scene.tools[name], rng):
                    docs[name] = doc
        return cls(
            names=names,
            params={n: p for n, p in params.items() if p},
            keys=keys if severity >= 3 else {},
            docs=docs,
            frame=frame if severity == 5 else "",
        )

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        """Each thing that is foreign, at each call that meets it."""
        sorts = 1 + bool(self.params) + bool(self.keys) + bool(self.docs) + bool(self.frame)
        return sorts * super().difficulty(gold, place)

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        return tuple(self._foreign(tool) if tool.name in self.names else tool for tool in tools)

    def _foreign(self, tool: ToolSpec) -> ToolSpec:
        params = renamed(tool.params, self.params.get(tool.name, {}))
        return tool.replace(name=self.names[tool.name], params=params, doc=self.docs.get(tool.name, tool.doc))

    def encode_call(self, call: ToolCall) -> ToolCall:
        if call.tool not in self.names:
            return call
        return ToolCall(self.names[call.tool], renamed(call.args, self.params.get(call.tool, {})))

    def decode_call(self, call: ToolCall) -> ToolCall:
        for inner, shown in self.names.items():
            if shown == call.tool:
                return ToolCall(inner, renamed(call.args, reverse(self.params.get(inner, {}))))
        return call

    def encode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        if result.error or call.tool not in self.names or not (self.keys or self.frame):
            return result
        content = renamed_keys(result.content, self.keys)
        return ToolResult({self.frame: content} if self.frame else content)

    def decode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        if result.error or call.tool not in self.names or not (self.keys or self.frame):
            return result
        content = result.content[self.frame] if self.frame else result.content
        return ToolResult(renamed_keys(content, reverse(self.keys)))


def _branded(prefix: str, name: str, style: str) -> str:
    if style == "pascal":
        return prefix + name
    if style == "camel":
        return prefix + name[0].upper() + name[1:]
    return prefix + ("-" if style == "kebab" else "_") + name
