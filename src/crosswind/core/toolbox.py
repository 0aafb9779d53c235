"""The protocol between a session and whatever answers its calls: a list of tools, and an answer to each call."""

from __future__ import annotations

from typing import Protocol

from crosswind.core.types import ToolCall, ToolResult, Tools, ToolSpec


class Toolbox(Protocol):
    """Tools that answer calls: a world in this process, or a remote server."""

    @property
    def specs(self) -> Tools:
        """The tools, in the order of the listing."""
        ...

    @property
    def writes(self) -> int:
        """The number of calls so far that wrote something."""
        ...

    @property
    def remote(self) -> bool:
        """Do answers take time? Then agents' calls go to `ask`, not to `call`."""
        ...

    @property
    def foreign(self) -> bool:
        """Are the names and texts of the tools somebody else's? Then a session takes them as they are.

        Texts may have braces that mention no tool, and a session without layers passes every call on.
        """
        ...

    def check(self, call: ToolCall, spec: ToolSpec | None) -> ToolResult | None:
        """The error for a call that does not fit its tool as shown; None if the call can be made."""
        ...

    def call(self, call: ToolCall) -> ToolResult:
        """Answer at once."""
        ...

    async def ask(self, call: ToolCall) -> ToolResult:
        """Answer in due time. Raises `InfrastructureError` if no answer can be had."""
        ...
