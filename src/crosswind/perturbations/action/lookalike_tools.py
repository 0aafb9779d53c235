"""Near-duplicates of tools that do something else, told apart by their descriptions."""

from __future__ import annotations

from random import Random
from typing import Any, Literal, Self

from crosswind.core.flow import digest
from crosswind.core.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.core.types import Flow, Model, ToolCall, ToolResult, Tools
from crosswind.perturbations.action.distractor_tools import mixed
from crosswind.words import banks

EACH = {1: (1, 1), 2: (2, 1), 3: (3, 1), 4: (9, 1), 5: (9, 2)}  # severity -> (tools on the way, twins of each)


class Twin(Model):
    """A tool that looks like another."""

    name: str
    of: str
    doc: str
    at: float


@perturbation
class LookalikeTools(Perturbation):
    """Tools are added with names almost like those needed; their descriptions say that they do something else."""

    kind: Literal["lookalike_tools"] = "lookalike_tools"
    axis, tier, rank, receipt_source, counts = "action", "perception", "structure", "tools", "twins"
    severities = "Tools in the solution that have a near-duplicate: 1, 2, 3, all, all with two each."
    needs = "a tool in the solution"
    way = "read the descriptions, and call the tool that does what is wanted"
    twins: tuple[Twin, ...]

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        count, each = EACH[severity]
        path = [n for n in dict.fromkeys(scene.path) if len(n) < 44]
        taken, twins = scene.names, []
        for name in rng.sample(path, min(count, len(path))):
            spec = scene.tools[name]
            ways = banks.data("common")["lookalikes"]["writes" if spec.writes else "reads"][scene.task.split]
            for way in rng.sample(ways, each):
                new = banks.styled([name, way["affix"]], "snake") if rng.random() < 0.7 else f"{way['affix']}_{name}"
                if new in taken:
                    continue
                taken.add(new)
                doc = f"{spec.doc} {way['doc']}"
                twins.append(Twin(name=new, of=name, doc=doc, at=round(rng.random(), 3)))
        return cls(twins=tuple(twins)) if twins else None

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        by_name = {tool.name: tool for tool in tools}
        more = []
        for twin in self.twins:
            if like := by_name.get(twin.of):
                cues = like.cues - {"params"}
                spec = like.replace(name=twin.name, doc=twin.doc, writes=False, undo=None, opaque=True, cues=cues)
                more.append((twin.at, spec.replace(ids=frozenset({twin.name}))))
        return mixed(tools, more)

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        twin = next((t for t in self.twins if t.name == call.tool), None)
        if twin is None:
            return (yield call)
        spec = memo.tools.get(twin.of)
        if spec is not None and spec.writes:  # it looks done, and nothing is
            return ToolResult({"done": True, "reference": "X" + digest(twin.name, call.args).hex()[:8]})
        result = yield call.named(twin.of)
        return result if result.error else ToolResult(_other(result.content, twin.name))


def _other(content: Any, salt: str) -> Any:
    """Content of the same shape whose figures are those of another place or time."""
    if isinstance(content, dict):
        return {k: _other(v, f"{salt}.{k}") for k, v in content.items()}
    if isinstance(content, list):
        return [_other(v, f"{salt}.{i}") for i, v in enumerate(content)]
    if isinstance(content, bool) or not isinstance(content, (int, float)):
        return content
    moved = content + 1 + digest(salt, content)[0] % 7
    return round(moved, 2) if isinstance(moved, float) else moved
