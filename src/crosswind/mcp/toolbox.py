"""A live MCP server as a toolbox."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import ClassVar

from crosswind.base.errors import CrosswindError
from crosswind.core.types import ToolCall, ToolError, ToolResult, Tools, ToolSpec
from crosswind.core.world import refused
from crosswind.mcp.tools import PROTOCOL, Tool, named_arguments, result_of
from crosswind.mcp.wire import Message, WireError

AskServer = Callable[[ToolCall, Message], Awaitable[Message]]  # takes a call and further parameters; whole response


def check(tools: Mapping[str, Tool], call: ToolCall, spec: ToolSpec | None) -> ToolResult | None:
    """The error for a call that does not fit a server's tool as shown. A tool that no layer changed takes any call."""
    if spec is not None:
        if (own := tools.get(spec.name)) is not None and own.spec is spec:
            return None
        call = ToolCall(call.tool, named_arguments(call.args, spec, tools))
    return refused(call, spec)


class ServerTools:
    """The tools of a live server. Several calls may be under way at once."""

    remote: ClassVar[bool] = True
    foreign: ClassVar[bool] = True

    def __init__(self, tools: Mapping[str, Tool], request: AskServer) -> None:
        self.request, self.writes = request, 0
        self.renew(tools)

    def renew(self, tools: Mapping[str, Tool]) -> None:
        """Replace the tools, because the server lists other ones."""
        self.tools = dict(tools)
        self.specs: Tools = tuple(tool.spec for tool in tools.values())

    def check(self, call: ToolCall, spec: ToolSpec | None) -> ToolResult | None:
        return check(self.tools, call, spec)

    def call(self, call: ToolCall) -> ToolResult:
        raise CrosswindError("a live server does not answer at once; use `ask`")

    async def ask(self, call: ToolCall) -> ToolResult:
        return self.answer(call, await self.request(call, {}))

    def answer(self, call: ToolCall, response: Message) -> ToolResult:
        """A response as layers see it. Raises `WireError` if it is malformed."""
        if "error" in response:
            error = response["error"]
            text = str(error.get("message", "")) if isinstance(error, dict) else str(error)
            return ToolResult(None, ToolError(PROTOCOL, text))
        value = response.get("result")
        if not isinstance(value, dict):
            raise WireError("the server answered tools/call with something that is no result")
        tool = self.tools.get(call.tool)
        result = result_of(value, tool)
        if result.error is None and tool is not None and tool.spec.writes:
            self.writes += 1
        return result
