"""Lists arrive in pages."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Literal, Self

from crosswind.core.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.core.types import Flow, Step, ToolCall, ToolResult, Tools
from crosswind.perturbations._added_names import Three, new_set
from crosswind.words import banks

STYLES = banks.own("paged_results", "styles")  # parameter, key of the rows, key of the next page


@perturbation
class PagedResults(Perturbation):
    """Tools that return lists return one page at a time, with a pointer to the next one."""

    kind: Literal["paged_results"] = "paged_results"
    axis, tier, rank = "observation", "interaction", "protocol"
    severities = (
        "Pages that must be requested after the first: 1, 2, 3, 4, 5, or as many as there are with one row per page."
    )
    needs = "a list of more than one row in the solution"
    way = "request the next page until there are no more"
    tools: tuple[str, ...]
    size: int
    style: Three
    doc: str

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        shown = scene.tools
        lists = [(s.call.tool, len(s.result.content)) for s in scene.gold if isinstance(s.result.content, list)]
        lists = [(name, rows) for name, rows in lists if rows > 1 and name in shown]
        if not lists:
            return None
        size = max(rows for _, rows in lists) - 1
        while size > 1 and sum((rows - 1) // size for _, rows in lists) < severity:
            size -= 1
        tools = tuple(sorted({name for name, rows in lists if rows > size}))
        style = new_set(STYLES, scene.task.split, rng)
        param, _, following = style
        if any(param in shown[name].params for name in tools):
            return None
        doc = banks.phrase("page_doc", scene.task.split, rng, size=size, following=following, param=param)
        return cls(tools=tools, size=size, style=style, doc=doc)

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        """Each page that must be asked for after a first one."""
        pages = [[call for call, _ in step.inner] for step in gold if place in step.fired]
        lists = [page for i, page in enumerate(pages) if page not in pages[:i]]
        return len(pages) - len(lists)

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        return tuple(
            t.with_param(self.style[0], "integer", says=self.doc) if t.name in self.tools else t for t in tools
        )

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
            result = yield call.with_args(**{param: start})
            if result.error:
                return result
            out += result.content[rows]
        return ToolResult(out)
