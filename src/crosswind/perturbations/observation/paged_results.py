"""Lists arrive in pages."""

from __future__ import annotations

from random import Random
from typing import Any, Literal, Self

from crosswind.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.types import Flow, ToolCall, ToolResult, Tools

STYLES = (("start", "rows", "next_start"), ("cursor", "items", "next_cursor"), ("offset", "data", "next_offset"))


@perturbation
class PagedResults(Perturbation):
    """Tools that return lists give one page at a time, and where the next one begins."""

    kind: Literal["paged_results"] = "paged_results"
    axis, tier, rank = "observation", "interaction", "protocol"
    severities = "Rows on a page: 5, 4, 3, 2, 1."
    tools: tuple[str, ...]
    size: int
    style: tuple[str, str, str]  # parameter, key of the rows, key of the next page

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        size = 6 - severity
        long = [s.call.tool for s in scene.gold if isinstance(s.result.content, list) and len(s.result.content) > size]
        tools = tuple(sorted({name for name in long if name in scene.tools}))
        style = rng.choice(STYLES)
        if not tools or any(style[0] in scene.tools[name].params for name in tools):
            return None
        return cls(tools=tools, size=size, style=style)

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        param, _, following = self.style
        says = f" Gives {self.size} at a time: pass {following} as {param} for more, until it is null."
        return tuple(t.with_param(param, "integer").but(doc=t.doc + says) if t.name in self.tools else t for t in tools)

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        if call.tool not in self.tools:
            return (yield call)
        param, rows, following = self.style
        start = max(0, call.args.get(param, 0))
        result = yield call.without(param)
        if result.error or not isinstance(result.content, list):
            return result
        end = start + self.size
        if len(result.content) > self.size:
            memo.fire()
        return ToolResult({rows: result.content[start:end], following: end if end < len(result.content) else None})

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        result = yield call
        if call.tool not in self.tools or result.error:
            return result
        param, rows, following = self.style
        out: list[Any] = list(result.content[rows])
        while (start := result.content[following]) is not None:
            result = yield call.having(**{param: start})
            if result.error:
                return result
            out += result.content[rows]
        return ToolResult(out)
