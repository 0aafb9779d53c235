"""`adaptive:SPEC`: any agent behind a wrapper that spares it changes of the environment, as far as it can.

The wrapper sees what the agent sees: the conversation and the tools shown. The agent sees the conversation as the
wrapper tells it, in which its calls bear the names it gave them. Calls that the wrapper makes besides take steps of the
episode, and calls that it sends back to the agent cost a reply; neither is free, and both are counted. Its options are
in `wrapping.py`, what it does with one call in `mender.py`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from crosswind.base.errors import BadFile, CrosswindError
from crosswind.base.files import read_whole
from crosswind.core.draw import Drawn
from crosswind.core.types import Agent, Message, Request, Tools
from crosswind.models import repairs
from crosswind.models.interface import KnownInterface, read_interface
from crosswind.models.mender import Mender, Mending
from crosswind.models.source import AgentSettings, WrappedAgent
from crosswind.models.spec import open_agent
from crosswind.models.wrapping import unwrapped

ASKS = 2  # replies in place of one that cannot work
RECALLS = 100  # messages whose calls need no tool, in one episode
LONGEST = 20_000  # characters of notes that an agent is given


@dataclass
class Sent:
    """A call of the agent on its way: its repair, and the call that was made last."""

    asked: Request
    mending: Mending
    made: Request


class AdaptiveAgent(WrappedAgent):
    """One episode of an agent behind the wrapper."""

    def __init__(
        self, inner: Agent, parts: frozenset[str], known: KnownInterface | None = None, notes: str = ""
    ) -> None:
        super().__init__(inner)
        self.parts, self.notes = parts, notes
        self.known = KnownInterface() if known is None else known
        self.mender = Mender(parts, self.known)
        self.view: list[Message] = []  # the conversation as the agent sees it
        self.held: list[Message] = []  # what waits for calls that are made besides
        self.sent: list[Sent] = []
        self.seen = self.recalled = 0
        self.shown: Tools = ()
        self.tools: Tools = ()

    # -- memory in a stream

    def restore(self, state: Any) -> None:
        """Take up what earlier episodes taught."""
        given = state if isinstance(state, dict) else {}
        if "notes" in self.parts and given.get("interface") is not None:
            taught = KnownInterface.load(given["interface"])
            for name, tool in taught.tools.items():
                self.known.tools.setdefault(name, tool)
        inner: Any = getattr(self.inner, "memory", self.inner)
        if callable(getattr(inner, "restore", None)):
            inner.restore(given.get("inner"))

    def save(self) -> Any:
        """What this episode and earlier ones taught: the first shape that each tool was known in stays."""
        inner: Any = getattr(self.inner, "memory", self.inner)
        inner_state = inner.save() if callable(getattr(inner, "save", None)) else None
        merged = KnownInterface()
        merged.tools = {**self.mender.taught.tools, **self.known.tools}
        return {"interface": merged.dump() if "notes" in self.parts else None, "inner": inner_state}

    # -- the conversation

    async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
        news, self.seen = [m for m in chat[self.seen :] if m.role != "assistant"], len(chat)
        self.tools = tools
        answers = {m.request_id: m.content for m in news if m.role == "tool"}
        going = []
        for sent in self.sent:
            if sent.made.id not in answers:
                continue  # the episode ended first
            try:
                sent.made = sent.mending.send(answers[sent.made.id])
                going.append(sent)
            except StopIteration as end:
                self.held.append(Message(role="tool", content=end.value, request_id=sent.asked.id))
        self.held += [m for m in news if m.role != "tool"]
        self.sent = going
        if going:
            return Message(role="assistant", requests=tuple(sent.made for sent in going))
        first = not self.view
        self.view += self.held
        self.held = []
        if first:
            self._begin(tools)
        self._tell(tools)
        return await self._asked(tools)

    def _begin(self, tools: Tools) -> None:
        """Tell the notes, and what changed since the interface was learnt."""
        if "notes" in self.parts and not self.known:
            self.mender.taught.meet(tools)  # the first conversation of all
        told = [self.notes.strip()[:LONGEST]] if self.notes.strip() else []
        if "tell" in self.parts and self.known:
            before = [known.spec for known in self.known.tools.values()]
            if change := repairs.changed_tools(before, tools):
                told.append(change)
        if told and self.view:
            self._note("\n".join(told), at=0)

    def _tell(self, tools: Tools) -> None:
        change = repairs.changed_tools(self.shown, tools) if self.shown and "tell" in self.parts else ""
        self.shown = tools
        if change:
            self._note(change)

    def _note(self, note: str, at: int = -1) -> None:
        message = self.view[at]
        self.view[at] = message.model_copy(update={"content": repairs.noted(message.content, note)})

    async def _asked(self, tools: Tools) -> Message:
        """What the agent says, with its calls put right; asked again where they cannot work."""
        asks = 0
        while True:
            said = await self.inner.reply(self.view, tools)
            self.view.append(said)
            if not said.requests:
                return said
            made = {request.id: self.mender.fitted(request, tools) for request in said.requests}
            wrong = (
                {} if asks == ASKS else {i: w for i, one in made.items() if (w := self.mender.objection(one, tools))}
            )
            if wrong:
                asks += 1
                for request in said.requests:  # none of them is made
                    text = wrong.get(request.id, "Not made, because another call of this message cannot work.")
                    self.view.append(Message(role="tool", content=_refused(text), request_id=request.id))
                continue
            answered = self._begun(said)
            if self.sent:
                self.held += answered
                return said.model_copy(update={"requests": tuple(one.made for one in self.sent)})
            self.view += answered  # nothing has to be asked of the tools
            self.recalled += 1
            if self.recalled > RECALLS:
                return Message(role="assistant", content=said.content)

    def _begun(self, said: Message) -> list[Message]:
        """Begin the calls of a message; gives the results of those that need no call."""
        answered, self.sent = [], []
        for request in said.requests:
            mending = self.mender.handle(request, lambda: self.tools)
            try:
                self.sent.append(Sent(request, mending, next(mending)))
            except StopIteration as end:
                answered.append(Message(role="tool", content=end.value, request_id=request.id))
        return answered


def _refused(text: str) -> str:
    return repairs.noted('{"error": "not_made", "message": ""}', text)


class AdaptiveAgents:
    """The source of agents behind the wrapper."""

    resumes = False

    def __init__(self, spec: str, settings: AgentSettings) -> None:
        wrapping, spec = unwrapped(spec)
        self.parts = frozenset(wrapping.parts)
        self.known = read_interface(wrapping.memory).dump() if wrapping.memory else None
        self.notes = _read_notes(wrapping.notes) if wrapping.notes else ""
        self.inner = open_agent(spec, settings)
        self.name = wrapping.around(self.inner.name)
        self.price, self.concurrency, self.ending = self.inner.price, self.inner.concurrency, self.inner.ending
        files = {"notes": self.notes, "memory": self.known}
        digests = {name: _digest(value) for name, value in files.items() if value}
        self.settings: dict[str, Any] = {**self.inner.settings, "parts": list(wrapping.parts), **digests}

    def make(self, drawn: Drawn) -> AdaptiveAgent:
        known = KnownInterface.load(self.known) if self.known else None
        return AdaptiveAgent(self.inner.make(drawn), self.parts, known, self.notes)

    async def aclose(self) -> None:
        await self.inner.aclose()


def _digest(value: Any) -> str:
    """What stands for a file among the settings, so that a resumed run notices a change."""
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def _read_notes(path: str) -> str:
    try:
        return read_whole(Path(path), links=True).decode().replace("\r\n", "\n")
    except OSError as error:
        raise CrosswindError(f"notes={path}: cannot be read ({error.strerror}); give a text file") from None
    except UnicodeDecodeError:
        raise BadFile(f"{path}: is not UTF-8 text; give a text file") from None
