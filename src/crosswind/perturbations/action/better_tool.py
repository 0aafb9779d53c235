"""A new tool does what took several calls; the old ones are still there."""

from __future__ import annotations

from typing import Literal

from crosswind.core.perturbation import perturbation
from crosswind.core.types import Tools
from crosswind.perturbations.action.tool_merge import ToolMerge


@perturbation
class BetterTool(ToolMerge):
    """A new tool does in one call what used to take several; the old tools are still listed and still work."""

    kind: Literal["better_tool"] = "better_tool"  # type: ignore[assignment]
    way = "find the tool that does more at once; the old tools take more calls"

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        shown = {t.name: t for t in tools}
        more = [
            self._whole(merge, [shown[name] for name in merge.tools])
            for merge in self.merges
            if all(name in shown for name in merge.tools)
        ]
        return (*tools, *more)
