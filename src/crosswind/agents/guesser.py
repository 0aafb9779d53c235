"""Guesses the answer from the request, without calling a tool."""

from __future__ import annotations

import re
from collections.abc import Sequence

from crosswind.agents._scripted import agent, requesting
from crosswind.core.draw import Drawn
from crosswind.core.finish import FINISH_SPEC
from crosswind.core.types import FINISH, Finish, FinishValue, Message, ToolCall, Tools

CHOICE = re.compile(r"\b([A-Z]\w+),? or (?:[a-z]+ ){0,3}[A-Z]\w+")  # two names, of which one is asked for
TIME = re.compile(r"\b(?:when|what time|first time)\b", re.IGNORECASE)
NUMBER = re.compile(r"\b(?:how (?:many|much|long|far)|count|number of|total|price|costs?|fees?)\b", re.IGNORECASE)


@agent("guesser")
class Guesser:
    """Calls no tool: says the first of two names, or a usual time or number, and refuses where none is asked for."""

    def __init__(self, drawn: Drawn) -> None: ...

    async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
        guess = guess_of(next((one.content for one in chat if one.role == "user"), ""))
        words = f"It is {guess.value}." if guess else "I am sorry, but I cannot do this."
        if FINISH_SPEC not in tools:
            return Message(role="assistant", content=words)
        end = (
            Finish(status="done", answer=(guess,), message=words)
            if guess
            else Finish(status="cannot", reason="not_found", message=words)
        )
        return requesting(ToolCall(FINISH, end.args()), 0)


def guess_of(request: str) -> FinishValue | None:
    """A value of the kind that a request seems to ask for."""
    if choice := CHOICE.search(request):
        return FinishValue(kind="name", value=choice[1])
    if TIME.search(request):
        return FinishValue(kind="time", value="08:00")
    return FinishValue(kind="number", value="2") if NUMBER.search(request) else None
