"""A live MCP server as a toolbox."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from crosswind.base.errors import CrosswindError
from crosswind.core.types import Param, ToolCall, ToolError, ToolResult, Tools, ToolSpec
from crosswind.core.world import refused
from crosswind.mcp.tools import PROTOCOL, Tool, named_arguments, result_of
from crosswind.mcp.wire import Message, WireError, why_lost

AskServer = Callable[[ToolCall, Message], Awaitable[Message]]  # takes a call and further parameters; whole response


@dataclass(frozen=True, slots=True)
class Origin:
    """What a shown tool has of a tool of the server, be it that tool or one that stands in its place."""

    params: Mapping[str, Param]  # by the names shown, as the server lists them
    hidden: frozenset[str]  # names of the server that are not shown


Origins = Mapping[str, Origin]  # by the names of shown tools


def check(
    tools: Mapping[str, Tool], call: ToolCall, spec: ToolSpec | None, origins: Origins = MappingProxyType({})
) -> ToolResult | None:
    """The error for a call that no server could be asked, because a layer cannot translate it.

    Whatever a layer left as it is goes to the server, which judges it as it does without layers: values of its own
    form, arguments that it does not list, and required ones that are missing. What layers brought or wrote in another
    form is checked, and so is that no hidden name is used.
    """
    if spec is None:
        return refused(call, spec)
    own = tools.get(spec.name)
    if own is not None and own.spec is spec:
        return None
    origin = origins.get(spec.name)
    if origin is None or not isinstance(call.args, Mapping):
        return refused(ToolCall(call.tool, named_arguments(call.args, spec, tools)), spec)
    left = {name for name, param in origin.params.items() if _alike(param, spec.params[name])}
    known = spec.replace(params={name: param for name, param in spec.params.items() if name not in left})
    args = {name: value for name, value in call.args.items() if name in known.params}
    if origin.hidden & call.args.keys():
        return refused(ToolCall(call.tool, call.args), spec)
    return refused(ToolCall(call.tool, args), known)


def _alike(one: Param, other: Param) -> bool:
    return (one.type, one.enum) == (other.type, other.enum)


class ServerTools:
    """The tools of a live server. Several calls may be under way at once."""

    remote: ClassVar[bool] = True
    foreign: ClassVar[bool] = True

    def __init__(self, tools: Mapping[str, Tool], request: AskServer) -> None:
        self.request, self.writes = request, 0
        self.origins: Callable[[], Origins] = dict  # of the parameters of the session that shows these tools
        self.renew(tools)

    def renew(self, tools: Mapping[str, Tool]) -> None:
        """Replace the tools, because the server lists other ones."""
        self.tools = dict(tools)
        self.specs: Tools = tuple(tool.spec for tool in tools.values())

    def check(self, call: ToolCall, spec: ToolSpec | None) -> ToolResult | None:
        return check(self.tools, call, spec, self.origins())

    def call(self, call: ToolCall) -> ToolResult:
        raise CrosswindError("a live server answers asynchronously; use `ask`")

    async def ask(self, call: ToolCall) -> ToolResult:
        return self.answer(call, await self.request(call, {}))

    def answer(self, call: ToolCall, response: Message) -> ToolResult:
        """A response as layers see it. Raises `WireError` if it is malformed or was lost."""
        if why := why_lost(response):
            raise WireError(why)
        if "error" in response:
            error = response["error"]
            text = str(error.get("message", "")) if isinstance(error, dict) else str(error)
            return ToolResult(None, ToolError(PROTOCOL, text))
        value = response.get("result")
        if not isinstance(value, dict):
            raise WireError("the server's answer to tools/call is not a valid result")
        tool = self.tools.get(call.tool)
        result = result_of(value, tool)
        if result.error is None and tool is not None and tool.spec.writes:
            self.writes += 1
        return result
