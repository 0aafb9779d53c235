"""An episode whose agent is somebody else's loop: read a turn, send a reply, until the episode is over.

    episode = DrivenEpisode(ticket.episode())
    turn = await episode.begin()
    while turn is not None:
        turn = await episode.reply(answer_to(turn.messages, turn.tools))
    episode.record.outcome

It is played and judged by the code that plays the episodes of a run, so the same replies give the same record.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from crosswind.base.errors import AgentException, CrosswindError, InfrastructureError
from crosswind.core.draw import Drawn
from crosswind.core.types import FINISH, Agent, Ending, Message, Request, Tools
from crosswind.episodes.record import Record, Usage
from crosswind.episodes.schedule import Episode
from crosswind.models.source import Price
from crosswind.runs.runner import play_episode

HEARD = "\n\nThe user says: "


@dataclass(frozen=True, slots=True)
class AgentTurn:
    """What the agent sees when it is to reply."""

    messages: tuple[Message, ...]  # the whole conversation
    new: tuple[Message, ...]  # what came since the agent's last reply
    tools: Tools  # as they are shown now


class _Remote:
    """The agent as the runner sees it: each of its turns waits for a reply from outside."""

    def __init__(self, driven: DrivenEpisode) -> None:
        self.driven, self.usage = driven, Usage()

    async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
        last = max((i for i, message in enumerate(chat) if message.role == "assistant"), default=-1)
        said = await self.driven.ask(AgentTurn(tuple(chat), tuple(chat[last + 1 :]), tools))
        self.usage = self.usage.plus(Usage(requests=1))
        return said


class DrivenEpisode:
    """One episode, and the source of its one agent."""

    price: Price | None = None
    concurrency = 1
    resumes = False

    def __init__(
        self,
        episode: Episode,
        *,
        name: str = "driven",
        seed: int = 0,
        ending: Ending = "finish",
        seconds: float | None = None,
    ) -> None:
        self.episode, self.name, self.seed, self.ending, self.seconds = episode, name, seed, ending, seconds
        self.settings: dict[str, Any] = {}
        self.record: Record | None = None  # once the episode is over
        self._turns: asyncio.Queue[AgentTurn] = asyncio.Queue()
        self._reply: asyncio.Future[Message] | None = None
        self._playing: asyncio.Task[Record] | None = None

    # -- the outside

    async def begin(self) -> AgentTurn | None:
        """Start the episode; its first turn."""
        if self._playing is not None:
            raise CrosswindError("the episode has begun already; make another DrivenEpisode to play it again")
        self._playing = asyncio.ensure_future(play_episode(self.episode, self, seed=self.seed, seconds=self.seconds))
        return await self._next()

    async def reply(self, message: Message) -> AgentTurn | None:
        """Send the agent's reply; the next turn, or None when the episode is over and `record` is there."""
        self._answered().set_result(message)
        return await self._next()

    async def fail(self, why: str, *, by_agent: bool = False) -> Record:
        """End the episode because something around it broke, or by an exception of the agent."""
        error = AgentException(why, why) if by_agent else InfrastructureError(why)
        self._answered().set_exception(error)
        while await self._next() is not None:
            pass
        assert self.record is not None
        return self.record

    async def aclose(self) -> None:
        """Give an episode up; nothing is recorded of it."""
        if self._playing is not None and not self._playing.done():
            self._playing.cancel()
            await asyncio.gather(self._playing, return_exceptions=True)

    # -- the inside

    def make(self, drawn: Drawn) -> Agent:
        return _Remote(self)

    async def ask(self, turn: AgentTurn) -> Message:
        """Hand a turn to the outside and wait for its reply."""
        self._reply = asyncio.get_running_loop().create_future()
        self._turns.put_nowait(turn)
        return await self._reply

    def _answered(self) -> asyncio.Future[Message]:
        reply, self._reply = self._reply, None
        if reply is None or reply.done():
            raise CrosswindError("the episode is not waiting for a reply: it is over, or has not begun")
        return reply

    async def _next(self) -> AgentTurn | None:
        assert self._playing is not None
        asked = asyncio.ensure_future(self._turns.get())
        try:
            await asyncio.wait({asked, self._playing}, return_when=asyncio.FIRST_COMPLETED)
            if asked.done():
                return asked.result()
        finally:
            asked.cancel()
        self.record = self._playing.result()
        return None


# ---------------------------------------------------------------- an agent that calls tools one by one


class ToolCalls:
    """A driven episode for agents that call tools one by one: every call is one reply."""

    def __init__(self, episode: DrivenEpisode) -> None:
        self.episode, self.made = episode, 0
        self.turn: AgentTurn | None = None
        self.passed: set[str] = set()  # ids that a framework gave to calls of tools that were not shown
        self._lock = asyncio.Lock()  # side by side, calls still reach the world one after the other

    @property
    def tools(self) -> Tools:
        """The tools as they are shown now; none once the episode is over."""
        return self.turn.tools if self.turn else ()

    async def begin(self) -> AgentTurn:
        self.turn = await self.episode.begin()
        assert self.turn is not None
        return self.turn

    async def call(self, name: str, args: Any) -> str:
        """Call a tool; its result as text, with what the user said meanwhile. After the end: an error as text."""
        async with self._lock:
            if self.turn is None:
                return json.dumps({"error": "over", "message": "This task is over."})
            self.made += 1
            request = Request(id=f"call_{self.made}", tool=name, args=args)
            self.turn = await self.episode.reply(Message(role="assistant", requests=(request,)))
            if self.turn is None:
                return "The task is over." if name == FINISH else ""
            return "".join(m.content if m.role == "tool" else HEARD + m.content for m in self.turn.new)

    async def say(self, text: str) -> str | None:
        """Speak to the user. What they answer, or None if that was the end."""
        async with self._lock:
            if self.turn is None:
                return None
            self.turn = await self.episode.reply(Message(role="assistant", content=text))
            return None if self.turn is None else "\n\n".join(message.content for message in self.turn.new)

    async def end(self, words: str = "") -> Record:
        """The record of the episode. One that has not ended yet is ended by these words."""
        while self.turn is not None:  # the user may answer; nobody listens any more
            await self.say(words)
            words = ""
        assert self.episode.record is not None
        return self.episode.record


def chat_message(message: Message) -> dict[str, Any]:
    """A message as OpenAI's chat API writes it."""
    out: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.request_id:
        out["tool_call_id"] = message.request_id
    if message.requests:
        calls = ((r.id, {"name": r.tool, "arguments": json.dumps(r.args)}) for r in message.requests)
        out["tool_calls"] = [{"id": id, "type": "function", "function": function} for id, function in calls]
    return out
