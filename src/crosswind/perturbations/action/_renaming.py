"""What renamings of tools have in common; not a perturbation itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar, TypeVar

from crosswind.core.perturbation import Perturbation, Scene
from crosswind.core.types import Step, ToolCall, Tools, ToolSpec

T = TypeVar("T")


class Renaming(Perturbation):
    """Tools under other names, consistently."""

    axis, rank, group = "action", "vocabulary", "names"
    lost: ClassVar[frozenset[str]] = frozenset()  # cues that no longer tell the truth
    names: dict[str, str]  # the name further in -> the name shown

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        """Calls by another name, and some more where tools that are not needed have other names too."""
        used = {step.call.tool for step in gold} & set(self.names.values())
        return super().difficulty(gold, place) + extra_difficulty(len(self.names), len(used))

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        return tuple(
            t.replace(name=self.names[t.name], cues=t.cues - self.lost) if t.name in self.names else t for t in tools
        )

    def encode_call(self, call: ToolCall) -> ToolCall:
        name = self.names.get(call.tool)
        return call if name is None else call.named(name)

    def decode_call(self, call: ToolCall) -> ToolCall:
        for inner, shown in self.names.items():
            if shown == call.tool:
                return call.named(inner)
        return call


def share(scene: Scene, rng: Random, severity: int) -> list[str]:
    """Tools by severity: one on the way, half of the way, all of it, also half of the others, and all tools."""
    path = list(dict.fromkeys(scene.path))
    rng.shuffle(path)
    if severity <= 2:
        return path[: 1 if severity == 1 else max(1, round(len(path) / 2))]
    others = [name for name in scene.tools if name not in path]
    rng.shuffle(others)
    return path + others[: {3: 0, 4: len(others) // 2, 5: len(others)}[severity]]


def renamed(args: Mapping[str, T], names: Mapping[str, str]) -> dict[str, T]:
    """Arguments, or parameters, under other names."""
    return {names.get(name, name): value for name, value in args.items()}


def reverse(names: Mapping[str, str]) -> dict[str, str]:
    return {new: old for old, new in names.items()}


def extra_difficulty(changed: int, met: int) -> int:
    """Count changed tools that the solution does not need: one obstacle for every six, for they are only read."""
    return -(-max(0, changed - met) // 6)


def own(scene: Scene, spec: ToolSpec) -> list[str]:
    """Parameters that the canonical tool has; those that layers added are spoken of in texts and keep their names."""
    entries = scene.domain.world_class.entries
    canonical = {p for i in spec.ids if i in entries for p in entries[i].spec.params}
    return [p for p in spec.params if p in canonical or (not canonical and p not in spec.doc)]
