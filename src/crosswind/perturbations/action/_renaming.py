"""What renamings of tools have in common; not a perturbation itself."""

from __future__ import annotations

from typing import ClassVar

from crosswind.perturbation import Perturbation
from crosswind.types import ToolCall, Tools


class Renaming(Perturbation):
    """Tools under other names, consistently."""

    axis, rank, group = "action", "vocabulary", "names"
    lost: ClassVar[frozenset[str]] = frozenset()  # cues that no longer tell the truth
    names: dict[str, str]  # the name further in -> the name shown

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        return tuple(
            t.but(name=self.names[t.name], cues=t.cues - self.lost) if t.name in self.names else t for t in tools
        )

    def encode_call(self, call: ToolCall) -> ToolCall:
        name = self.names.get(call.tool)
        return call if name is None else call.named(name)

    def decode_call(self, call: ToolCall) -> ToolCall:
        for inner, shown in self.names.items():
            if shown == call.tool:
                return call.named(inner)
        return call
