"""What a log says of one episode, whatever format it was in. Content is optional: a log may hold names and times alone.

A field that a log does not have is `None` (or `ABSENT` for results, where None is a value), which is not the same as
empty.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from crosswind.base.errors import BadFile
from crosswind.core.types import ASK, FINISH, Param, ToolSpec
from crosswind.mcp.schema import record

Data = dict[str, Any]


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()
SMALL = 1 << 20  # bytes of a document that is parsed without a look at its size in memory
ROOM = 1 << 30  # bytes of memory that one document may take
SIZES = {b"{": 200, b"[": 64, b",": 64}  # bytes of memory for each; those inside strings count, as JSON may be in them
TALKING = frozenset({ASK, FINISH})


@dataclass(frozen=True, slots=True)
class ListedTool:
    """A tool as the agent was shown it."""

    name: str
    doc: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)  # name -> JSON schema
    required: frozenset[str] = frozenset()
    has_schema: bool = True  # False: the log gives the name alone
    output: Any = None  # the schema of its results, where it has one

    @property
    def shape(self) -> str:
        """All that is said about the tool, as text to compare."""
        return json.dumps([self.name, self.doc, self.params, sorted(self.required), self.output], sort_keys=True)


Listing = tuple[ListedTool, ...]


@dataclass(slots=True)
class ObservedCall:
    """One call of a tool."""

    tool: str
    args: Any = None  # None: not in the log
    result: Any = ABSENT
    error: str | None = None  # a code or the type of an error; None: no error
    text: str = ""  # of the error
    seconds: float | None = None


@dataclass(slots=True)
class ObservedEpisode:
    """One episode: a conversation, a session of a client, or a snapshot of a listing."""

    id: str
    source: str = ""
    agent: str = ""
    start: float = 0.0  # seconds since the epoch; 0: unknown
    query: str | None = None
    policy: str | None = None
    listing: Listing | None = None  # the tools first shown
    later: list[Listing] = field(default_factory=list)  # lists shown afterwards that differ
    described: Listing = ()  # without a list: tools that were called and that the log describes
    calls: list[ObservedCall] = field(default_factory=list)
    said: list[str] = field(default_factory=list)  # what the agent wrote before the end
    heard: list[str] = field(default_factory=list)  # what the user said unasked, after the request
    replies: list[str] = field(default_factory=list)  # what the user answered
    final: str | None = None
    seconds: float | None = None
    turns: int | None = None  # replies of the model
    failed: str = ""  # the error that ended the episode
    is_snapshot: bool = False

    @property
    def work(self) -> list[ObservedCall]:
        """Calls other than those that talk to the user."""
        return [call for call in self.calls if call.tool not in TALKING]


@contextmanager
def damage(where: str, what: str) -> Iterator[None]:
    """Report what cannot be read because it is not of the shape that its format has as one line."""
    try:
        yield
    except (TypeError, AttributeError, ValueError, LookupError, ArithmeticError, RecursionError) as error:
        raise BadFile(f"{where}: is a damaged {what} ({type(error).__name__}); restore it or remove it") from None


def listed(tools: Any) -> Listing | None:
    """A list of tools in the shape of chat APIs, MCP or plain names; None if it is not a list."""
    if isinstance(tools, Mapping):
        tools = list(tools.values())
    if not isinstance(tools, Sequence) or isinstance(tools, str):
        return None
    return tuple(tool for one in tools if (tool := listed_tool(one)) is not None)


def listed_tool(one: Any) -> ListedTool | None:
    """One tool from whatever describes it; None if it has no name."""
    if isinstance(one, str):
        try:
            one = json.loads(one)
        except ValueError:
            return ListedTool(one, has_schema=False) if one else None
    if not isinstance(one, dict):
        return None
    if isinstance(one.get("tool"), dict) or "tool.json_schema" in one:  # OpenInference
        one = record(loaded(one.get("tool.json_schema") or one["tool"].get("json_schema")))
    inner: Data = record(one.get("function")) or one
    name = inner.get("name")
    if not isinstance(name, str) or not name:
        return None
    schema: Any = next((inner[k] for k in ("parameters", "inputSchema", "input_schema") if k in inner), None)
    if isinstance(schema, str):
        schema = loaded(schema)
    known, schema = isinstance(schema, dict), record(schema)
    required = schema.get("required")
    return ListedTool(
        name=name,
        doc=str(inner.get("description") or inner.get("title") or ""),
        params=record(schema.get("properties")),
        required=frozenset(map(str, required)) if isinstance(required, list) else frozenset(),
        has_schema=known,
        output=inner.get("outputSchema"),
    )


def parsed(text: bytes, where: str) -> Any:
    """One JSON document. Raises `BadFile` for one that would fill the memory, ValueError where it is not JSON."""
    if len(text) > SMALL and len(text) + sum(size * text.count(sign) for sign, size in SIZES.items()) > ROOM:
        raise BadFile(
            f"{where}: one JSON document that takes over {ROOM >> 20} MiB of memory; write the log as JSON lines, a "
            "record per line"
        )
    return json.loads(text)


def loaded(text: Any) -> Any:
    """JSON where a text is JSON, else the text."""
    if not isinstance(text, str):
        return text
    if text[:1] in '{["-0123456789tfn':
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text


def spec_of(tool: ListedTool) -> ToolSpec:
    """A listed tool as perturbations take it, to apply a fitted one to the list before the change."""
    params = {}
    for name, schema in tool.params.items():
        schema = dict(record(schema))
        kind, doc, enum = schema.pop("type", "string"), schema.pop("description", ""), schema.pop("enum", ())
        params[name] = Param(str(kind), str(doc), name in tool.required, tuple(map(str, enum)), schema)
    return ToolSpec(tool.name, tool.doc, params, ids=frozenset({tool.name}))


def schemas(tool: ListedTool) -> dict[str, Any]:
    """The parameters without what is only said about them."""
    return {name: bare(schema) for name, schema in tool.params.items()}


def bare(schema: Any) -> Any:
    """A schema without descriptions and titles."""
    if isinstance(schema, dict):
        return {k: bare(v) for k, v in schema.items() if k not in ("title", "description")}
    return [bare(part) for part in schema] if isinstance(schema, list) else schema


def failure_in(content: Any) -> tuple[str, str] | None:
    """The code and text of an error that stands in the content of a result, as an agent reads it."""
    if isinstance(content, str):
        content = loaded(content) if content[:1] == "{" else content
    if not isinstance(content, dict) or not content.get("error"):
        return None
    error, text = content["error"], content.get("message", "")
    if isinstance(error, dict):
        return str(error.get("code") or error.get("type") or "error"), str(error.get("message") or text)
    if set(content) <= {"error", "message", "code", "status", "retryable", "detail", "details"}:
        return (
            (str(content.get("code") or error), str(text or error)) if isinstance(error, str) else ("error", str(text))
        )
    return None


def records(content: Any) -> Iterator[Data]:
    """The records of a result: itself, the rows of a list, or those inside."""
    if isinstance(content, dict):
        yield content
    elif isinstance(content, list):
        for one in content:
            yield from records(one)
