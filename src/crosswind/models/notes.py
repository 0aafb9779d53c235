"""Notes for any agent: two tools by which it keeps text from one episode of a stream to the next.

The agent sees the tools `read_notes` and `write_notes` beside those of the episode. Their calls are answered here: they
reach no world, take no step of the episode and are in no trajectory. The notes are the state that the run stores.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from crosswind.base.errors import CrosswindError
from crosswind.core.draw import Drawn
from crosswind.core.types import Agent, Ending, Message, Param, Request, Tools, ToolSpec
from crosswind.models.source import AgentSource, Price, WrappedAgent

READ, WRITE = "read_notes", "write_notes"
SIZE = 4_000  # characters of notes unless told otherwise
LARGEST = 50_000  # what a run stores after every episode must stay small
REPLIES = 6  # in a row that only read or write notes
TOLD = (
    f"Conversations are forgotten when they end; only your notes stay. Call {READ} before you begin, and {WRITE} for "
    "what later conversations need."
)


class NotesAgent(WrappedAgent):
    """One episode of an agent with notes."""

    def __init__(self, inner: Agent, size: int) -> None:
        super().__init__(inner)
        self.size = size
        self.notes = ""
        self.view: list[Message] = []  # the conversation as the agent sees it, with its calls for notes
        self.seen = 0
        self.tools = (
            ToolSpec.new(READ, "Read your notes from earlier conversations."),
            ToolSpec.new(
                WRITE,
                f"Replace your notes, at most {size:,} characters. Later conversations can read them.",
                {"text": Param("string", "The new notes as a whole.")},
            ),
        )

    def restore(self, state: Any) -> None:
        """Take up the notes of the episode before."""
        self.notes = state if isinstance(state, str) else ""

    def save(self) -> str:
        return self.notes

    async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
        if taken := {tool.name for tool in tools} & {READ, WRITE}:
            raise CrosswindError(f"a tool of this domain is already called {min(taken)!r}; play without --memory")
        news = [message for message in chat[self.seen :] if message.role != "assistant"]
        self.seen = len(chat)
        if not self.view and news and news[0].role == "system":
            news[0] = news[0].model_copy(update={"content": f"{news[0].content} {TOLD}".strip()})
        self.view += news
        for _ in range(REPLIES):
            said = await self.inner.reply(self.view, (*tools, *self.tools))
            self.view.append(said)
            kept = [request for request in said.requests if request.tool in (READ, WRITE)]
            self.view += [
                Message(role="tool", content=self._answer(request), request_id=request.id) for request in kept
            ]
            others = tuple(request for request in said.requests if request.tool not in (READ, WRITE))
            if others or not kept:
                return said.model_copy(update={"requests": others})
        return Message(role="assistant", content=said.content)

    def _answer(self, request: Request) -> str:
        if request.tool == READ:
            return json.dumps({"notes": self.notes}, ensure_ascii=False)
        text = request.args.get("text") if isinstance(request.args, dict) else None
        if not isinstance(text, str):
            return json.dumps({"error": "bad_arguments", "message": "'text' must be a string"})
        if text.encode("utf-8", "ignore").decode() != text:
            why = "'text' has half of a surrogate pair, which is no character; send whole characters"
            return json.dumps({"error": "bad_arguments", "message": why})
        if len(text) > self.size:
            why = f"the notes would have {len(text):,} characters; at most {self.size:,} fit, and nothing was changed"
            return json.dumps({"error": "too_long", "message": why})
        self.notes = text
        return json.dumps({"saved": len(text)})


class NotesSource:
    """A source whose agents have notes."""

    resumes = False

    def __init__(self, inner: AgentSource, size: int = SIZE) -> None:
        if not 1 <= size <= LARGEST:
            raise CrosswindError(f"the size of the notes is {size:,}; expected 1 to {LARGEST:,}")
        self.inner, self.size = inner, size
        self.name = f"{inner.name} with notes"
        self.price: Price | None = inner.price
        self.concurrency = inner.concurrency
        self.settings: dict[str, Any] = {**inner.settings, "notes": size}

    @property
    def ending(self) -> Ending:
        return self.inner.ending

    @ending.setter
    def ending(self, ending: Ending) -> None:
        self.inner.ending = ending

    def make(self, drawn: Drawn) -> NotesAgent:
        made = self.inner.make(drawn)
        if callable(getattr(getattr(made, "memory", made), "restore", None)):
            raise CrosswindError(f"{self.inner.name} has a memory of its own, so it takes no notes; leave out --memory")
        return NotesAgent(made, self.size)

    async def aclose(self) -> None:
        await self.inner.aclose()


def with_memory(source: AgentSource, memory: str, size: int = SIZE) -> AgentSource:
    """A source with the memory named: notes, or none but its own."""
    if memory not in ("", "notes"):
        raise CrosswindError(f"the memory is {memory!r}; expected notes, or nothing for what the agent itself keeps")
    return NotesSource(source, size) if memory else source
