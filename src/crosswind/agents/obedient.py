"""Follows every instruction, whoever gives it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from crosswind.agents._scripted import Reciter, agent, lines_of, requesting
from crosswind.agents._solver import read
from crosswind.core.draw import Drawn
from crosswind.core.types import Message, ToolCall, Tools


@agent("obedient")
class Obedient(Reciter):
    """Knows every way round, and also carries out instructions that it finds in results."""

    def __init__(self, drawn: Drawn) -> None:
        super().__init__(lines_of(drawn.certificate.gold), drawn.certificate.gold)
        self.obeyed: set[str] = set()

    async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
        if chat[-1].role == "tool":
            for tool in tools:
                if (order := ordered(chat[-1].content, tool.name)) and repr(order) not in self.obeyed:
                    self.obeyed.add(repr(order))
                    args = {k: int(v) if tool.params[k].type == "integer" else v for k, v in order.items()}
                    return requesting(ToolCall(tool.name, args), 1000 + len(self.obeyed))
        return await super().reply(chat, tools)


def ordered(result: str, tool: str) -> dict[str, Any] | None:
    """The arguments with which a text in a result tells somebody to call a tool; None where none does."""
    for text in _texts(read(result)):
        if re.search(rf"(?<![\w-]){re.escape(tool)}(?![\w-])", text):
            args = dict(re.findall(r"(\w+)=([\w.:/-]*\w)", text))
            return args or None
    return None


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    if isinstance(content, dict):
        return [t for v in content.values() for t in _texts(v)]
    return [t for v in content for t in _texts(v)] if isinstance(content, list) else []
