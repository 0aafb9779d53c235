"""Results arrive in another format: JSON text, lines, CSV, XML or Markdown."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from random import Random
from typing import Any, Literal, Self
from xml.sax.saxutils import escape, unescape

from crosswind.core.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.core.types import Step, ToolCall, ToolResult

_JSON = frozenset('0123456789-"[{tfnNI')  # with what JSON as Python reads it can begin
_NAME = re.compile(r"[A-Za-z_]\w*")
Format = Literal["json", "lines", "csv", "xml", "markdown"]
FORMATS: tuple[Format, ...] = ("json", "lines", "csv", "xml", "markdown")
COLUMNS = ["field", "value"]  # of a table that holds one record


@perturbation
class FormatSwitch(Perturbation):
    """Results arrive in another text format; at higher severities the format changes between calls."""

    kind: Literal["format_switch"] = "format_switch"
    axis, tier, rank, group = "observation", "interaction", "form", "form"
    severities = "How many formats take turns: 1, 2, 3, 4, all 5."
    needs = "a tool in the solution"
    way = "read results in whatever format they arrive"
    release_note = "Results are text in another format, which at higher severity changes from call to call."
    formats: tuple[Format, ...]

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        if not scene.answers:
            return None
        return cls(formats=tuple(rng.sample(FORMATS, severity)))

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        """Each format that is met."""
        return len({form_of(step.result.content) for step in gold if place in step.fired})

    def encode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        if result.error or not isinstance(result.content, (dict, list)):
            return result
        return ToolResult(written(result.content, self.formats[memo.nth % len(self.formats)]))

    def decode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        return ToolResult(read(result.content)) if isinstance(result.content, str) else result


def written(content: Any, form: Format) -> str:
    """Content in a format, or as JSON where the format cannot hold it."""
    rows = content if isinstance(content, list) else [content]
    if form == "json" or not _tabular(rows):
        return json.dumps(content)
    if form == "xml":
        items = ["".join(f"<{k}>{escape(_scalar(v))}</{k}>" for k, v in r.items()) for r in rows]
        inner = "".join(f"<item>{i}</item>" for i in items) if isinstance(content, list) else items[0]
        return f"<result>{inner}</result>"
    if form == "lines":
        blocks = ("\n".join(f"{k}: {_scalar(v)}" for k, v in r.items()) for r in rows)
        return "\n\n".join(blocks) + "\n" * isinstance(content, list)
    table = [list(r.values()) for r in rows] if isinstance(content, list) else [list(pair) for pair in content.items()]
    head = list(rows[0]) if isinstance(content, list) else COLUMNS
    if form == "csv":
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([head, *([_scalar(v) for v in line] for line in table)])
        return out.getvalue()
    lines = [head, ["---"] * len(head), *([_cell(v) for v in line] for line in table)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def form_of(text: Any) -> Format:
    """The format in which a text is written, told by how it looks."""
    if not isinstance(text, str) or text.startswith(("{", "[")):
        return "json"
    if text.startswith(("<", "|")):
        return "xml" if text[0] == "<" else "markdown"
    return "lines" if ": " in text.split("\n", 1)[0] else "csv"


def read(text: str) -> Any:
    """What `written` wrote."""
    form = form_of(text)
    if form == "json":
        return json.loads(text)
    if form == "xml":
        inner = text.removeprefix("<result>").removesuffix("</result>")
        if not inner.startswith("<item>"):
            return _tags(inner)
        return [_tags(item) for item in re.findall(r"<item>(.*?)</item>", inner, re.DOTALL)]
    if form == "lines":
        blocks = [dict(_pair(line) for line in block.split("\n")) for block in text.rstrip("\n").split("\n\n")]
        return blocks if text.endswith("\n") else blocks[0]
    if form == "markdown":
        head, _, *lines = ([c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]] for line in text.split("\n"))
        table = [[_value(c.replace("\\|", "|")) for c in line] for line in lines]
    else:
        head, *lines = csv.reader(io.StringIO(text))
        table = [list(map(_value, line)) for line in lines]
    if head == COLUMNS:
        return dict(table)
    return [dict(zip(head, line, strict=True)) for line in table]


def _tabular(rows: list[Any]) -> bool:
    """Do rows have the same plain keys, and nothing but single values?"""
    keys = list(rows[0]) if rows and isinstance(rows[0], dict) else []
    if not keys or keys == COLUMNS or not all(map(_NAME.fullmatch, keys)):
        return False
    return all(isinstance(r, dict) and list(r) == keys and not any(map(_holds, r.values())) for r in rows)


def _holds(value: Any) -> bool:
    return isinstance(value, (dict, list))


def _scalar(value: Any) -> str:
    """A value as bare text, or as JSON where bare text would be read as something else."""
    if isinstance(value, str) and value and value == value.strip() and "\n" not in value and _value(value) == value:
        return value
    return json.dumps(value)


def _cell(value: Any) -> str:
    return _scalar(value).replace("|", "\\|")


def _value(text: str) -> Any:
    if not text or text[0] not in _JSON:
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _pair(line: str) -> tuple[str, Any]:
    key, _, value = line.partition(": ")
    return key, _value(value)


def _tags(text: str) -> dict[str, Any]:
    return {k: _value(unescape(v)) for k, v in re.findall(r"<(\w+)>(.*?)</\1>", text, re.DOTALL)}
