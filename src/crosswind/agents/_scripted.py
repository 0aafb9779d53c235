"""Common parts of scripted agents; not an agent itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from crosswind.core.finish import FINISH_SPEC
from crosswind.core.oracle import Walk
from crosswind.core.registry import agents
from crosswind.core.types import FINISH, SAY, Finish, Message, Refusal, Request, ToolCall, Tools

A = TypeVar("A", bound=type)


def agent(name: str) -> Callable[[A], A]:
    """Register a scripted agent: a class that is made of the draw it plays in."""

    def add(cls: A) -> A:
        agents.add(name, cls)
        return cls

    return add


def requesting(call: ToolCall, n: int, said: str = "") -> Message:
    """A message that makes one call."""
    request = Request(id=f"call_{n}", tool=call.tool, args=dict(call.args))
    return Message(role="assistant", content=said, requests=(request,))


class Reciter:
    """Says what it was given to say, whatever is answered."""

    def __init__(self, lines: Iterable[Message], walk: Walk | None = None) -> None:
        self.lines: Iterator[Message] = iter(lines)
        self.last = Message(role="assistant")
        self.walk = walk  # whose end the last line is

    async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
        self.last = next(self.lines, self.last)
        return self.closing(self.last.content, tools) if self.walk and not self.last.requests else self.last

    def closing(self, words: str, tools: Tools) -> Message:
        """What ends an episode: words, or a call of `finish` where that is offered."""
        if self.walk is None or FINISH_SPEC not in tools:
            return Message(role="assistant", content=words)
        end = self.walk.finish if words == self.walk.final else Finish(status="done", message=words)
        return requesting(ToolCall(FINISH, end.args()), 0)


def lines_of(walk: Walk) -> Iterator[Message]:
    """A walk as messages. One through a world that is made up is not to be walked in another."""
    if walk.session.world.made_up:
        yield Message(role="assistant", content=Refusal("nobody has written down how this is done").text)
        return
    for n, step in enumerate(walk.steps):
        if step.call.tool == SAY:
            yield Message(role="assistant", content=step.call.args["text"])
        else:
            yield requesting(step.call, n)
    yield Message(role="assistant", content=walk.final)
