"""Tools and results as the protocol writes them, and as layers see them: the maps between the two.

A layer sees a tool as a `ToolSpec` and a result as plain JSON. What no layer touched is handed on as it came. What one
touched is rewritten, and whatever could give a hidden name away (titles, marks of the server) is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crosswind.core.entity_names import through
from crosswind.core.types import Param, ToolError, ToolResult, ToolSpec
from crosswind.core.world import JSON_TYPES
from crosswind.episodes.play import result_text
from crosswind.mcp.hiding import PLAIN_WORD, untitled
from crosswind.mcp.schema import Json, record, referred

ANY = "any"  # the type of a parameter whose schema has no single one
SERVER = "server"  # the code of an error that the server's tool gave
PROTOCOL = "protocol"  # the code of an error that the server answered the request itself with
UNSAID = ("title", "description", "type", "enum", "x-mcp-header")  # keywords that `Param` has otherwise, or not at all
DEPTH = 8  # of made-up values
ROWS = 3  # of made-up lists
KEY_OF_ID = re.compile(r"(?:^|[._])id$|Id$")

Example = tuple[str, Json, Any]  # a made-up call and its result: a tool, arguments, content


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool of a server: as it was listed, and as layers see it."""

    raw: Json
    spec: ToolSpec
    open: bool  # takes arguments that its schema does not name
    wraps: bool  # its structured results hold the value under "result"

    @property
    def output(self) -> Json | None:
        schema = self.raw.get("outputSchema")
        return schema if isinstance(schema, dict) else None


# ---------------------------------------------------------------- from the server


def tools_of(listed: Sequence[Any]) -> dict[str, Tool]:
    """The tools of a listing by name; entries that are none are left out, as clients could not call them."""
    raws = [raw for raw in listed if isinstance(raw, dict) and isinstance(raw.get("name"), str) and raw["name"]]
    names = {raw["name"] for raw in raws if not PLAIN_WORD.fullmatch(raw["name"])}
    return {raw["name"]: _tool(raw, names) for raw in raws}


def _tool(raw: Json, names: set[str]) -> Tool:
    schema = record(raw.get("inputSchema"))
    required = schema.get("required")
    required = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    params = {name: _param(record(part), name in required) for name, part in record(schema.get("properties")).items()}
    hints = record(raw.get("annotations"))
    writes = hints.get("readOnlyHint") is not True  # what the protocol takes for granted where nothing is said
    doc = raw.get("description")
    spec = ToolSpec(
        raw["name"],
        mentioning(doc if isinstance(doc, str) else "", names),
        params,
        writes,
        lasting=hints.get("idempotentHint") is not True,
        ids=frozenset({raw["name"]}),
    )
    more = schema.get("additionalProperties")
    output = record(raw.get("outputSchema"))
    wraps = list(output.get("properties") or ()) == ["result"] and output.get("required") == ["result"]
    return Tool(raw, spec, isinstance(more, dict) or more is True, wraps)


def _param(schema: Json, required: bool) -> Param:
    kind, enum, doc = schema.get("type"), schema.get("enum"), schema.get("description")
    extra = {key: value for key, value in schema.items() if key not in UNSAID}
    known = isinstance(kind, str) and kind in JSON_TYPES
    if not known and kind is not None:
        extra["type"] = kind
    choices = isinstance(enum, list) and bool(enum) and all(isinstance(choice, str) for choice in enum)
    if isinstance(enum, list) and not choices:
        extra["enum"] = enum
    return Param(
        str(kind) if known else ANY,
        doc if isinstance(doc, str) else "",
        required,
        tuple(enum) if choices and isinstance(enum, list) else (),
        extra,
    )


def mentioning(text: str, names: Iterable[str]) -> str:
    """A text in which tools are spoken of as {id}, so that their shown names can take its place."""
    found = sorted((name for name in names if name in text), key=len, reverse=True)
    if not found:
        return text
    return re.sub(rf"(?<![\w{{-])(?:{'|'.join(map(re.escape, found))})(?![\w}}-])", lambda m: f"{{{m[0]}}}", text)


def result_of(raw: Json, tool: Tool | None) -> ToolResult:
    """A result as layers see it."""
    texts = [block["text"] for block in _blocks(raw) if _is_text(block)]
    if raw.get("isError") is True:
        return ToolResult(None, ToolError(SERVER, "\n".join(texts)))
    structured = raw.get("structuredContent")
    if structured is not None:
        if tool is not None and tool.wraps and isinstance(structured, dict) and list(structured) == ["result"]:
            structured = structured["result"]
        return ToolResult(structured)
    values = [_value(text) for text in texts]
    if len(values) == 1:
        return ToolResult(values[0])
    if values and all(isinstance(value, dict) for value in values):
        return ToolResult(values)  # a list, as some servers write it: one block for each item
    return ToolResult("\n".join(texts) if texts else None)


def _blocks(raw: Json) -> list[Json]:
    blocks = raw.get("content")
    return [block for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []


def _is_text(block: Json) -> bool:
    """Is a block of a result a text? One that says so and holds none is passed on as it came."""
    return block.get("type") == "text" and isinstance(block.get("text"), str)


def _value(text: str) -> Any:
    """A text as the JSON it is, if it is a record or a list."""
    if text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


# ---------------------------------------------------------------- to the client


def shown(spec: ToolSpec, tools: Mapping[str, Tool], doc: str, outline: Json | None) -> Json:
    """A tool as the client is shown it; `outline` is the schema of its results, if it has one."""
    of = [tools[id] for id in sorted(spec.ids) if id in tools]
    if len(of) == 1 and of[0].spec is spec and doc == (of[0].raw.get("description") or ""):
        raw = {key: value for key, value in of[0].raw.items() if key not in ("outputSchema", "execution")}
        return raw if outline is None else {**raw, "outputSchema": outline}
    schema: Json = {"type": "object", "properties": {name: _schema(param) for name, param in spec.params.items()}}
    if required := [name for name, param in spec.params.items() if param.required]:
        schema["required"] = required
    for tool in of:
        theirs = record(tool.raw.get("inputSchema"))
        for key in ("$schema", "$defs", "definitions"):
            if isinstance(theirs.get(key), dict):
                schema[key] = {**schema.get(key, {}), **untitled(theirs[key], names=True)}
            elif key in theirs:
                schema[key] = theirs[key]
        if len(of) == 1 and "additionalProperties" in theirs:
            schema["additionalProperties"] = theirs["additionalProperties"]
    out: Json = {"name": spec.name, "description": doc, "inputSchema": schema}
    if len(of) == 1 and isinstance(hints := of[0].raw.get("annotations"), dict) and spec.writes == of[0].spec.writes:
        out["annotations"] = {key: value for key, value in hints.items() if key != "title"}
    return out if outline is None else {**out, "outputSchema": untitled(outline)}


def _schema(param: Param) -> Json:
    schema: Json = untitled(param.schema())
    if param.type == ANY and "type" not in param.extra:
        del schema["type"]
    return schema


def outlined(value: Any) -> Json:
    """A schema that names the keys of a value, nested as they nest, and demands nothing of them."""
    if isinstance(value, dict):
        return {"properties": {str(key): outlined(part) for key, part in value.items()}}
    if isinstance(value, list) and value and isinstance(value[0], (dict, list)):
        return {"items": outlined(value[0])}
    return {}


def answer(result: ToolResult, inner: Sequence[Json], *, structured: bool) -> Json:
    """A result that a layer touched or gave, as the client gets it; `inner` are those that the server gave for it.

    With `structured` it has structured content, since the tool was listed with a schema. Pictures and other things
    that are not text are added as they came.
    """
    if result.error is not None:
        text = result.error.text if result.error.code in (SERVER, PROTOCOL) else result_text(result)
        return {"content": [{"type": "text", "text": text}], "isError": True}
    value = result.content
    blocks: list[Json] = [] if value is None else [{"type": "text", "text": result_text(result)}]
    blocks += [block for raw in inner for block in _blocks(raw) if not _is_text(block)]
    out: Json = {"content": blocks, "isError": False}
    if structured:
        out["structuredContent"] = value if isinstance(value, dict) else {"result": value}
    return out


def reworded(response: Json, said: str, text: str, clean: Callable[[str], str]) -> Json:
    """The server's answer with an error that said `said` and is to say `text`; all else of it stays as it came.

    Texts go through `clean` one by one, unless a layer changed more of them than names.
    """
    raw = response.get("result")
    if "error" in response:
        error = through(response["error"], clean)
        return {**response, "error": {**error, "message": text} if isinstance(error, dict) else error}
    assert isinstance(raw, dict)
    out = {key: through(value, clean) for key, value in raw.items()}
    if clean(said) != text:
        first = next((block for block in _blocks(raw) if _is_text(block)), {"type": "text"})
        out["content"] = [{**first, "text": text}, *(block for block in _blocks(out) if not _is_text(block))]
    return {**response, "result": out}


# ---------------------------------------------------------------- made-up values


def example(schema: Any, name: str = "value", *, result: bool = False) -> Any:
    """A value that fits a schema as far as its types go, for trying layers out; it is never sent to a server."""
    return _example(schema, record(schema), name, result, 0)


def _example(schema: Any, root: Json, name: str, result: bool, depth: int) -> Any:
    if not isinstance(schema, dict) or depth > DEPTH:
        return None
    if isinstance(ref := schema.get("$ref"), str):
        return _example(referred(ref, root), root, name, result, depth + 1)
    if "const" in schema:
        return schema["const"]
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        parts = schema.get(key)
        if isinstance(parts, list) and parts:
            kept = [part for part in parts if not (isinstance(part, dict) and part.get("type") == "null")]
            return _example((kept or parts)[0], root, name, result, depth + 1)
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), None)
    if kind == "object" or "properties" in schema:
        parts = record(schema.get("properties")).items()
        return {key: _example(part, root, f"{name}.{key}", result, depth + 1) for key, part in parts}
    if kind == "array":
        count = ROWS if result else 1
        rows = [_example(schema.get("items"), root, f"{name}.{i}", result, depth + 1) for i in range(count)]
        return [row for row in rows if row is not None]
    return _scalar(kind, schema, name, result)


def _scalar(kind: Any, schema: Json, name: str, result: bool) -> Any:
    if kind == "boolean":
        return True
    if kind in ("integer", "number"):
        low = schema.get("minimum")
        if result:
            return 1234 if kind == "integer" else 1234.5
        if isinstance(low, (int, float)) and low >= 0:
            return int(low) + 3 if kind == "integer" else low + 3.5
        return -7 if kind == "integer" else -7.5  # any number may come, so a form for counts alone would not do
    if kind == "null":
        return None
    if form := {"date": "2030-11-24", "time": "17:05"}.get(str(schema.get("format"))):
        return form
    if result and KEY_OF_ID.search(name):
        return f"ID{sum(map(ord, name))}"  # another one in each row
    return "a " + re.sub(r"[^A-Za-z]+", " ", name)  # without digits: only a key says that its values tell rows apart


def examples(tools: Mapping[str, Tool]) -> list[Example]:
    """A made-up call and result for each tool."""
    out = []
    for name, tool in tools.items():
        args = record(example(tool.raw.get("inputSchema"), name))
        args = {k: v for k, v in args.items() if v is not None}
        content = example(tool.output, name, result=True) if tool.output else f"What {name} says."
        if tool.wraps and isinstance(content, dict):
            content = content["result"]
        out.append((name, args, content))
    return out


def named_arguments(args: Mapping[str, Any], spec: ToolSpec, tools: Mapping[str, Tool]) -> Mapping[str, Any]:
    """The arguments to check against a tool's schema: all of them, or only those it names if it allows others."""
    if any(tools[id].open for id in spec.ids if id in tools):
        return {name: value for name, value in args.items() if name in spec.params}
    return args
