"""Results arrive wrapped up, in the manner of some vendor."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any, Literal, Self

from crosswind.core.flow import digest
from crosswind.core.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.core.types import Step, ToolCall, ToolResult
from crosswind.words import banks

Wrap = Literal["pairs", "numbered", "columns", "nest", "text", "frame"]

# what vendors call these parts
PARTS = "status ok payload about inner item count columns cells name value".split()
VENDORS = banks.own("envelope", "vendors")


@perturbation
class Envelope(Perturbation):
    """Results are wrapped: in a status object, nested, as JSON in a string, or with lists and records split up."""

    kind: Literal["envelope"] = "envelope"
    axis, tier, rank, group = "observation", "interaction", "form", "form"
    severities = (
        "1 a frame with a status, 2 also one level deeper, 3 also lists as numbered keys or as a table, 4 also JSON "
        "in a string, 5 also records as lists of names and values."
    )
    needs = "a tool in the solution"
    way = "unwrap the results"
    release_note = (
        "Results are wrapped: framed by a status, nested, as JSON in a string, lists and records taken apart."
    )
    wraps: tuple[Wrap, ...]  # from the inside out
    parts: dict[str, str]

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        if not scene.answers:
            return None
        lists: Wrap = "numbered" if severity == 5 else rng.choice(("numbered", "columns"))
        wraps: tuple[Wrap, ...] = ("pairs", lists, "nest", "text", "frame")
        chosen: dict[int, tuple[Wrap, ...]] = {1: wraps[4:], 2: ("nest", "frame"), 3: (lists, "nest", "frame")}
        vendor = rng.choice(VENDORS[scene.task.split])
        return cls(wraps=chosen.get(severity, wraps[5 - severity :]), parts=dict(zip(PARTS, vendor, strict=True)))

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        """Each way of wrapping that is met."""
        met: set[Wrap] = set()
        for step in gold:
            if place in step.fired and isinstance(step.result.content, dict):
                self._opened(step.result.content, met)
        return len(met)

    def encode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        if result.error:
            return result
        content = result.content
        for wrap in self.wraps:
            content = self._wrapped(content, wrap, digest(call.tool, memo.nth))
        return ToolResult(content)

    def decode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        return result if result.error else ToolResult(self._opened(result.content, set()))

    def _wrapped(self, content: Any, wrap: Wrap, salt: bytes) -> Any:
        part = self.parts
        if wrap == "pairs":
            if isinstance(content, list) and all(isinstance(row, dict) and row for row in content):
                return [self._pairs(row) for row in content]
            return self._pairs(content) if isinstance(content, dict) and content else content
        if wrap == "numbered" and isinstance(content, list):
            items = {f"{part['item']}_{i}": row for i, row in enumerate(content, 1)}
            return {part["count"]: len(content), **items}
        if wrap == "columns" and isinstance(content, list) and _is_table(content):
            return {part["columns"]: list(content[0]), part["cells"]: [list(row.values()) for row in content]}
        if wrap == "nest":
            return {part["inner"]: content}
        if wrap == "text":
            return json.dumps(content)
        if wrap == "frame":
            about = {"version": f"{1 + salt[0] % 4}.{salt[1] % 10}", "trace": salt[2:6].hex()}
            return {part["status"]: part["ok"], part["payload"]: content, part["about"]: about}
        return content

    def _opened(self, content: Any, met: set[Wrap]) -> Any:
        """What was wrapped; which ways of wrapping were met is added to `met`."""
        part = self.parts
        for wrap in reversed(self.wraps):
            before = content
            if wrap == "frame":
                content = content[part["payload"]]
            elif wrap == "text":
                content = json.loads(content)
            elif wrap == "nest":
                content = content[part["inner"]]
            elif wrap == "numbered" and isinstance(content, dict):
                content = self._unnumbered(content)
            elif wrap == "columns" and isinstance(content, dict) and set(content) == {part["columns"], part["cells"]}:
                head = content[part["columns"]]
                content = [dict(zip(head, row, strict=True)) for row in content[part["cells"]]]
            elif wrap == "pairs" and isinstance(content, list) and content:
                content = self._unpaired(content)
            if content is not before:
                met.add(wrap)
        return content

    def _unnumbered(self, content: dict[str, Any]) -> Any:
        names = [f"{self.parts['item']}_{i}" for i in range(1, len(content))]
        return [content[name] for name in names] if set(content) == {self.parts["count"], *names} else content

    def _pairs(self, record: dict[str, Any]) -> list[dict[str, Any]]:
        return [{self.parts["name"]: key, self.parts["value"]: value} for key, value in record.items()]

    def _unpaired(self, content: list[Any]) -> Any:
        name, value = self.parts["name"], self.parts["value"]
        if all(isinstance(pair, dict) and set(pair) == {name, value} for pair in content):
            return {pair[name]: pair[value] for pair in content}
        if all(isinstance(row, list) and row for row in content):
            return [self._unpaired(row) for row in content]
        return content


def _is_table(rows: list[Any]) -> bool:
    """Are they records with the same keys?"""
    return bool(rows) and all(isinstance(row, dict) and list(row) == list(rows[0]) for row in rows)
