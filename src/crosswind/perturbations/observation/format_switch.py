"""Results arrive in another format: JSON text, lines, CSV, XML or Markdown."""

from __future__ import annotations

import csv
import io
import json
import re
from random import Random
from typing import Any, Literal, Self
from xml.sax.saxutils import escape, unescape

from crosswind.perturbation import Memo, Perturbation, Scene, perturbation
from crosswind.types import ToolCall, ToolResult

_JSON = frozenset('0123456789-"[{tfnNI')  # with what JSON as Python reads it can begin
Format = Literal["json", "lines", "csv", "xml", "markdown"]
FORMATS: tuple[Format, ...] = ("json", "lines", "csv", "xml", "markdown")


@perturbation
class FormatSwitch(Perturbation):
    """Results are text in another format; at high severity the format changes from call to call."""

    kind: Literal["format_switch"] = "format_switch"
    axis, tier, rank, group = "observation", "interaction", "form", "form"
    severities = "1 JSON text, 2 one other format, 3 two formats in turn, 4 three, 5 all five."
    formats: tuple[Format, ...]

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        if not scene.path:
            return None
        if severity == 1:
            return cls(formats=("json",))
        others = [f for f in FORMATS if f != "json"]
        if severity == 2:
            return cls(formats=(rng.choice(others),))
        return cls(formats=tuple(rng.sample(FORMATS, {3: 2, 4: 3, 5: 5}[severity])))

    def encode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        if result.error or not isinstance(result.content, (dict, list)):
            return result
        return ToolResult(written(result.content, self.formats[memo.nth % len(self.formats)]))

    def decode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        return ToolResult(read(result.content)) if isinstance(result.content, str) else result


def written(content: Any, form: Format) -> str:
    """Content in a format, or as JSON where the format cannot hold it."""
    rows = content if isinstance(content, list) else [content]
    flat = bool(rows) and all(isinstance(r, dict) and _flat(r) and list(r) == list(rows[0]) for r in rows)
    if form == "json" or not flat or not rows[0]:
        return json.dumps(content)
    if form == "xml":
        items = ["".join(f"<{k}>{escape(_scalar(v))}</{k}>" for k, v in r.items()) for r in rows]
        inner = "".join(f"<item>{i}</item>" for i in items) if isinstance(content, list) else items[0]
        return f"<result>{inner}</result>"
    if isinstance(content, dict):
        return "\n".join(f"{k}: {_scalar(v)}" for k, v in content.items())
    if form == "csv":
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(rows[0])
        writer.writerows([_scalar(v) for v in r.values()] for r in rows)
        return out.getvalue()
    if form == "markdown":
        lines = [list(rows[0]), ["---"] * len(rows[0]), *([_cell(v) for v in r.values()] for r in rows)]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return "\n\n".join("\n".join(f"{k}: {_scalar(v)}" for k, v in r.items()) for r in rows) + "\n"


def read(text: str) -> Any:
    """What `written` wrote, told by how it looks."""
    if text.startswith(("{", "[")):
        return json.loads(text)
    if text.startswith("<"):
        inner = text.removeprefix("<result>").removesuffix("</result>")
        if not inner.startswith("<item>"):
            return _tags(inner)
        return [_tags(item) for item in re.findall(r"<item>(.*?)</item>", inner, re.DOTALL)]
    if text.startswith("|"):
        head, _, *lines = ([c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]] for line in text.split("\n"))
        return [dict(zip(head, (_value(c.replace("\\|", "|")) for c in line), strict=True)) for line in lines]
    first = text.split("\n", 1)[0]
    if ": " in first:
        blocks = [dict(_pair(line) for line in block.split("\n")) for block in text.rstrip("\n").split("\n\n")]
        return blocks if text.endswith("\n") else blocks[0]
    head, *lines = csv.reader(io.StringIO(text))
    return [dict(zip(head, map(_value, line), strict=True)) for line in lines]


def _flat(row: dict[str, Any]) -> bool:
    return all(not isinstance(v, (dict, list)) for v in row.values()) and all(
        re.fullmatch(r"[A-Za-z_]\w*", k) for k in row
    )


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
