"""What a session needs of whatever answers calls: a list of tools, and an answer to each call."""

from __future__ import annotations

from typing import Protocol

from crosswind.core.types import ToolCall, ToolResult, Tools, ToolSpec


class Toolbox(Protocol):
    """Tools and whoever answers for them: a world in this process, or a server elsewhere."""

    @property
    def specs(self) -> Tools:
        """The tools, in the order in which they are listed."""
        ...

    @property
    def writes(self) -> int:
        """The number of calls so far that wrote something."""
        ...

    @property
    def remote(self) -> bool:
        """Do answers take time? Then `ask` gives them, and not `call`."""
        ...

    @property
    def foreign(self) -> bool:
        """Are names and texts somebody else's? Then a session takes both as they are.

        A text may hold braces that mention no tool, and without layers every call is passed on.
        """
        ...

    def check(self, call: ToolCall, spec: ToolSpec | None) -> ToolResult | None:
        """The error for a call that a tool does not take as it is shown; None where the call can be made."""
        ...

    def call(self, call: ToolCall) -> ToolResult:
        """Answer at once."""
        ...

    async def ask(self, call: ToolCall) -> ToolResult:
        """Answer in due time. Raises `InfrastructureError` where whoever should answer fails."""
        ...
