"""Common parts of agents that work out the task themselves; not an agent itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from crosswind.agents._scripted import requesting
from crosswind.base.errors import ToolFailed
from crosswind.core import entity_names
from crosswind.core.domain import recover
from crosswind.core.draw import Drawn
from crosswind.core.types import ASK, NOTE, SAY, Message, Refusal, ToolCall, ToolResult, Tools


class Solver:
    """Solves the task as on the clean interface. A subclass says how often to repeat a call, and which tool to use."""

    repeats = 0  # of a call that failed

    def __init__(self, drawn: Drawn) -> None:
        self.drawn = drawn
        self.task = drawn.certificate.task
        self.family = drawn.domain.family(self.task)
        self.flow = self.family.solve(self.task.brief)
        self.call: ToolCall | None = None
        self.about = ""  # the detail asked for
        self.repeated = self.count = 0

    def named(self, call: ToolCall, tools: Tools) -> ToolCall:
        """The call as this agent makes it with the tools shown."""
        return call

    async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
        try:
            call = self._next(chat[-1])
            while call.tool == NOTE:  # it keeps its working to itself
                call = next(self.flow)
            return self._request(call, tools)
        except StopIteration as stop:
            end: str | Refusal = stop.value
            return Message(role="assistant", content=end.text if isinstance(end, Refusal) else end)
        except (ToolFailed, LookupError, TypeError, AttributeError, ValueError) as lost:
            return Message(role="assistant", content=Refusal(f"something went wrong ({type(lost).__name__})").text)

    def _next(self, last: Message) -> ToolCall:
        """The call to make after the last message."""
        if self.call is None or last.role != "tool":
            return next(self.flow)
        content = read(last.content)
        if isinstance(content, dict) and set(content) == {"error", "message"}:
            if self.repeated < self.repeats:
                self.repeated += 1
                return self.call
            return self.flow.throw(ToolFailed(content["error"], content["message"]))
        if self.about:
            found = recover(entity_names.plain(self.task, last.content), self.family.details, [self.about])
            content = found[self.about]
        return self.flow.send(ToolResult(content))

    def _request(self, call: ToolCall, tools: Tools) -> Message:
        if call is not self.call:
            self.call, self.repeated = call, 0
        self.count += 1
        self.about = ""
        if call.tool == SAY:
            return Message(role="assistant", content=call.args["text"])
        if call.tool == ASK:
            self.about = call.args["about"]
            return requesting(ToolCall(ASK, {"question": self.family.details[self.about].question}), self.count)
        return requesting(self.named(call, tools), self.count)


def read(text: str) -> Any:
    """A result as data, or as text where it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return text
