"""Says the request back."""

from __future__ import annotations

from collections.abc import Sequence

from crosswind.agents._scripted import agent
from crosswind.core.draw import Drawn
from crosswind.core.types import Message, Tools


@agent("echo")
class Echo:
    """Says the request back, whatever is answered: right only where the request gives its answer away."""

    def __init__(self, drawn: Drawn) -> None: ...

    async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
        said = next((one.content for one in chat if one.role == "user"), "")
        return Message(role="assistant", content=said)
