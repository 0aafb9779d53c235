"""`adaptive:SPEC`: any agent behind a wrapper that spares it changes of the environment, as far as it can.

    adaptive:openai:MODEL                  with all parts
    adaptive:off=retry,tell:openai:MODEL   without some
    adaptive:only=names:embedded:static    with one

The wrapper sees what the agent sees: the conversation and the tools shown. The agent sees the conversation as the
wrapper tells it, in which its calls bear the names it gave them. Calls that the wrapper repeats take steps of the
episode, and calls that it sends back to the agent cost a reply; neither is free, and both are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from crosswind.base.errors import CrosswindError
from crosswind.core.draw import Drawn
from crosswind.core.types import Agent, Message, Request, Tools
from crosswind.core.world import bad_arguments
from crosswind.models import repairs
from crosswind.models.source import AgentSettings, WrappedAgent
from crosswind.models.spec import open_agent

PARTS = {
    "names": "calls of unknown tools go to the one shown that fits them",
    "arguments": "arguments get the keys, types and spellings that the tool shown takes",
    "check": "calls that the tool shown would refuse come back to the agent, with what it takes, before they are made",
    "retry": "calls that failed for a passing reason are made again, up to three times",
    "verify": "after a write whose outcome is not known the agent is told to look before it repeats it",
    "results": "results in tables, XML or wrappers are handed on as plain JSON",
    "stuck": "an agent that makes the same call again with the same result is told so",
    "tell": "the agent is told when the list of tools changes during an episode",
}
TRIES = 3  # of a call that fails for a passing reason, after the first
ASKS = 2  # replies in place of one that cannot work
SAME = 2  # times that a call may bring the same result before the agent is told


@dataclass
class Sent:
    """A call on its way: as the agent wrote it, and as it was made."""

    asked: Request
    made: Request
    tries: int = 0


class AdaptiveAgent(WrappedAgent):
    """One episode of an agent behind the wrapper."""

    def __init__(self, inner: Agent, parts: frozenset[str]) -> None:
        super().__init__(inner)
        self.parts = parts
        self.view: list[Message] = []  # the conversation as the agent sees it
        self.held: list[Message] = []  # what waits for calls that are made again
        self.sent: list[Sent] = []
        self.seen = self.again = 0
        self.shown: Tools = ()
        self.results: Counter[tuple[str, str]] = Counter()  # how often a call brought a result
        self.last: dict[str, str] = {}  # call -> its last result

    async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
        news, self.seen = [m for m in chat[self.seen :] if m.role != "assistant"], len(chat)
        answers = {m.request_id: m.content for m in news if m.role == "tool"}
        repeated = []
        for sent in self.sent:
            if sent.made.id not in answers:
                continue  # the episode ended first, or it has been handed on
            if self._may_repeat(sent, answers[sent.made.id], tools):
                self.again += 1
                sent.tries += 1
                sent.made = sent.made.model_copy(update={"id": f"again_{self.again}"})
                repeated.append(sent)
            else:
                self.held.append(self._handed_on(sent, answers[sent.made.id], tools))
        self.held += [m for m in news if m.role != "tool"]
        self.sent = repeated
        if repeated:
            return Message(role="assistant", requests=tuple(sent.made for sent in repeated))
        self.view += self.held
        self.held = []
        self._tell(tools)
        return await self._asked(tools)

    # -- results

    def _may_repeat(self, sent: Sent, text: str, tools: Tools) -> bool:
        error = repairs.error_in(text)
        if "retry" not in self.parts or not repairs.PASSING.search(error) or sent.tries >= TRIES:
            return False
        return not (repairs.UNCERTAIN.search(error) and repairs.may_write(sent.made.tool, tools))

    def _handed_on(self, sent: Sent, text: str, tools: Tools) -> Message:
        """A result as the agent reads it."""
        call = _key(sent.made)
        self.results[call, text] += 1
        self.last[call] = text
        error = repairs.error_in(text)
        if not error and "results" in self.parts:
            text = repairs.plain_result(text)
        if "verify" in self.parts and repairs.UNCERTAIN.search(error) and repairs.may_write(sent.made.tool, tools):
            text = repairs.noted(text, "It may have been done all the same: look whether it was before you repeat it.")
        return Message(role="tool", content=text, request_id=sent.asked.id)

    def _tell(self, tools: Tools) -> None:
        change = repairs.changed_tools(self.shown, tools) if self.shown and "tell" in self.parts else ""
        self.shown = tools
        if change:
            self._note(change)

    def _note(self, note: str) -> None:
        last = self.view[-1]
        self.view[-1] = last.model_copy(update={"content": repairs.noted(last.content, note)})

    # -- calls

    async def _asked(self, tools: Tools) -> Message:
        """What the agent says, with its calls put right; asked again where they cannot work."""
        for asks in range(ASKS + 1):
            said = await self.inner.reply(self.view, tools)
            self.view.append(said)
            if not said.requests:
                return said
            sent = [Sent(request, self._made(request, tools)) for request in said.requests]
            wrong = {} if asks == ASKS else {s.asked.id: w for s in sent if (w := self._objection(s.made, tools))}
            if not wrong:
                break
            for one in sent:  # none of them is made
                text = wrong.get(one.asked.id, "Not made, because another call of this message cannot work.")
                self.view.append(Message(role="tool", content=_refused(text), request_id=one.asked.id))
        self.sent = sent
        return said.model_copy(update={"requests": tuple(one.made for one in sent)})

    def _made(self, request: Request, tools: Tools) -> Request:
        name, args = request.tool, request.args
        shown = {tool.name: tool for tool in tools}
        if "names" in self.parts and name not in shown:
            name = repairs.tool_for(name, args, tools) or name
        if "arguments" in self.parts and name in shown:
            args = repairs.arguments_for(args, shown[name].params)
        return request.model_copy(update={"tool": name, "args": args})

    def _objection(self, request: Request, tools: Tools) -> str:
        """Why a call should not be made as it is; empty where nothing speaks against it."""
        tool = next((tool for tool in tools if tool.name == request.tool), None)
        if "check" in self.parts:
            if tool is None:
                names = ", ".join(tool.name for tool in tools)
                return f"There is no tool {request.tool[:64]!r}. The tools are: {names}."
            if bad := bad_arguments(tool.params, request.args):
                return f"{bad}. The tool is {repairs.signature(tool)}."
        call = _key(request)
        if "stuck" in self.parts and self.results[call, self.last.get(call, "")] >= SAME:
            return "The same call was made before and brought the same result. Do something else, or end."
        return ""


def _key(request: Request) -> str:
    return f"{request.tool} {request.args!r}"


def _refused(text: str) -> str:
    return repairs.noted('{"error": "not_made", "message": ""}', text)


class AdaptiveAgents:
    """The source of agents behind the wrapper."""

    resumes = False

    def __init__(self, spec: str, settings: AgentSettings) -> None:
        chosen, spec = _chosen(spec)
        self.parts = frozenset(chosen)
        self.inner = open_agent(spec, settings)
        which = "" if len(chosen) == len(PARTS) else f"only={','.join(chosen)}:"
        self.name = f"adaptive:{which}{self.inner.name}"
        self.price, self.concurrency, self.ending = self.inner.price, self.inner.concurrency, self.inner.ending
        self.settings: dict[str, Any] = {**self.inner.settings, "parts": chosen}

    def make(self, drawn: Drawn) -> AdaptiveAgent:
        return AdaptiveAgent(self.inner.make(drawn), self.parts)

    async def aclose(self) -> None:
        await self.inner.aclose()


def _chosen(spec: str) -> tuple[list[str], str]:
    """The parts that a spec switches on, and the spec of the agent behind."""
    option, _, rest = spec.partition(":")
    word, equals, names = option.partition("=")
    if not equals or word not in ("only", "off"):
        return list(PARTS), spec
    given = [name.strip() for name in names.split(",") if name.strip()]
    if unknown := [name for name in given if name not in PARTS]:
        raise CrosswindError(f"adaptive has no part {unknown[0]!r}; its parts are {', '.join(PARTS)}")
    if not rest:
        raise CrosswindError(
            f"adaptive:{spec} names no agent; expected adaptive:{option}:SPEC, as adaptive:{option}:retrier"
        )
    return [name for name in PARTS if (name in given) == (word == "only")], rest
