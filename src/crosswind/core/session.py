"""A toolbox as an agent meets it: through layers, with a user to ask, both sides of every step recorded.

`Session(toolbox, layers)` wraps any toolbox. `Session.of(domain, task, layers)` is the session of a task: its toolbox
is a world, and it has a user. Arguments are checked against the tools as shown, so no malformed call reaches a layer.

`call` works where the toolbox answers at once. Otherwise `begin` opens a call, `resume` takes each answer and `finish`
records the call; several calls may be open at a time. `acall` does all three for one call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from typing import Self

from crosswind.base.errors import CrosswindError, Unfair
from crosswind.core import entity_names
from crosswind.core.domain import Domain
from crosswind.core.finish import FINISH_SPEC, OVER
from crosswind.core.finish import read as read_finish
from crosswind.core.flow import Send, StepOf, chain, once_each
from crosswind.core.perturbation import Clock, Memo, Perturbation, handled
from crosswind.core.toolbox import Toolbox
from crosswind.core.types import (
    ASK,
    FINISH,
    SAY,
    Change,
    Ending,
    Finish,
    Flow,
    Param,
    Receipt,
    Step,
    Task,
    ToolCall,
    ToolError,
    ToolResult,
    Tools,
    ToolSpec,
    failed,
)
from crosswind.core.user import User
from crosswind.core.world import World, bad_arguments

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
MENTION = re.compile(r"\{([\w-]+)\}")
ASK_SPEC = ToolSpec(ASK, "Ask the user for a missing detail.", {"question": Param("string")}, opaque=True)
Exchange = tuple[ToolCall, ToolResult]  # a call that reached the toolbox, and its answer


@lru_cache(maxsize=4096)
def _is_name(text: str) -> bool:
    """Do providers take a text as the name of a tool?"""
    return NAME.fullmatch(text) is not None


@once_each()
def _saying(tool: ToolSpec) -> Callable[[str], ToolSpec]:
    """A tool with other descriptions, the same object in all episodes that show the same."""
    return lru_cache(maxsize=16)(lambda doc: tool.replace(doc=doc))


@dataclass(slots=True)
class OpenCall:
    """A call under way. Several may be, so each keeps its own place on the clock they share."""

    call: ToolCall
    nth: int
    flow: Flow | None = None
    asked: ToolCall | None = None  # what the toolbox is to answer now
    result: ToolResult | None = None  # once the layers are done
    inner: list[Exchange] = field(default_factory=list)
    fired: list[int] = field(default_factory=list)


class Session:
    """A toolbox seen through a stack of layers, with a user if there is a task."""

    user: User  # this and the next three: only if there is a task
    task: Task
    domain: Domain
    world: World

    def __init__(
        self,
        toolbox: Toolbox,
        layers: Sequence[Perturbation] = (),
        user: User | None = None,
        *,
        ending: Ending = "words",
    ) -> None:
        self.toolbox, self.layers, self._user = toolbox, tuple(layers), user
        self.ending = ending
        self.finished: Finish | None = None  # how the agent ended it by the tool
        if user is not None:
            self.user, self.task, self.domain, self.world = user, user.task, user.domain, user.world
        self.clock = Clock(toolbox)
        self.memos = [Memo(self.clock, i) for i in range(len(self.layers))]
        self.steps: list[Step] = []
        self.forgotten = 0  # steps that are not kept any more
        self.dangling: list[str] = []  # tools that a shown text spoke of and that were not shown
        self.first: dict[int, int] = {}  # layer -> the step at which it first fired
        self.moments = frozenset(n for layer in self.layers for n in layer.turns())
        self.inner: list[Exchange] = []  # what the call under way became on the toolbox's side
        self.send: Send = _recording(toolbox.call, self.inner)
        for layer, memo in zip(self.layers, self.memos, strict=True):
            if not layer.is_passthrough:
                self.send = handled(layer, memo, self.send)
        self.speaks = any(layer.speaks for layer in self.layers)
        self.rows = [i for i, layer in enumerate(self.layers) if layer.receipt_source == "rows" and user is not None]
        self.specs: dict[str, ToolSpec] = {}
        self.ever: dict[str, ToolSpec] = {}  # every tool that was listed at some time,
        self.since: dict[str, int] = {}  # and the number of steps before it first was
        self.ids: frozenset[str] = frozenset()  # what texts may call tools by, shown at some time
        self._shown: Tools | None = None
        self.show(0)
        if ending == "finish" and FINISH in self.specs:
            raise CrosswindError(
                f"a tool here is called {FINISH!r}, the name of the tool that ends an episode; use --ending words"
            )
        for i, layer in enumerate(self.layers):
            if layer.receipt_source == "query":
                self.first[i] = 0

    @classmethod
    def of(
        cls,
        domain: Domain,
        task: Task,
        layers: Sequence[Perturbation] = (),
        *,
        ending: Ending = "words",
        fenced: bool = False,
    ) -> Self:
        """The session of a task, which is given as the layers leave it."""
        user = User(domain, task, domain.world(task, fenced=fenced))
        return cls(user.world, layers, user, ending=ending)

    # -- what is shown

    def query(self) -> str:
        """The request as the user says it."""
        return entity_names.shown(self.task, self.task.brief.query)

    def policy(self) -> str:
        return self.render(self.task.brief.policy)

    def show(self, nth: int) -> None:
        """Show the tools as they are at the nth call.

        Raises `Unfair` if the layers cannot show them; then everything stays as it was.
        """
        before = [memo.tools for memo in self.memos]
        try:
            self._show(nth)
        except Unfair:
            for memo, tools in zip(self.memos, before, strict=True):
                memo.tools = tools
            raise

    def _show(self, nth: int) -> None:
        tools = self.toolbox.specs
        mine = named = {t.name: t for t in tools}
        inner, met = list[dict[str, ToolSpec]](), list[int]()
        for i, layer in enumerate(self.layers):
            inner.append(named)
            if layer.retools:
                outer = layer.on_tools(tools, nth)
                self.memos[i].tools = named
                outer = layer.lists(outer, self.memos[i])
                if layer.receipt_source == "tools" and outer != tools:
                    met.append(i)
                tools, named = outer, {t.name: t for t in outer}
        if len(named) != len(tools):
            twice = sorted(t.name for t in tools if sum(o.name == t.name for o in tools) > 1)
            raise Unfair("names", f"two tools are called {twice[0]!r}")
        for name in (ASK, FINISH):
            if name in named and name not in mine:
                raise Unfair("names", f"a layer calls a tool {name!r}, the name of one that every episode has")
        for name in named.keys() - mine.keys() if self.toolbox.foreign else named:
            if not _is_name(name):
                raise Unfair(
                    "names", f"no provider takes {name!r} for a tool's name; letters, digits, _ and - are taken"
                )
        for memo, seen in zip(self.memos, inner, strict=True):
            memo.tools = seen
        for i in met:
            self.first.setdefault(i, self.taken + bool(nth))  # at the start, or with the call under way
        self.specs, self.shown_at, self._shown = named, nth, None
        listed = {t.name: t for t in tools if t.listed}
        self.ever |= listed
        for name in listed.keys() - self.since.keys():
            self.since[name] = self.taken + (self.clock.nth >= 0)
        if self.toolbox.foreign:
            self.ids = self.ids.union(*(t.ids for t in tools))

    def _reveal(self) -> None:
        """Show the tools again, because a layer lists others now."""
        self.clock.revealed = False
        self.refresh()

    def refresh(self) -> None:
        """Show the tools again, because the toolbox has other ones now. Raises `Unfair`, as `show` does."""
        self.show(max(0, self.clock.nth))

    def tools(self) -> Tools:
        """The tools as an agent is shown them now; last `ask_user`, if there is a user, and `finish`."""
        if self._shown is None:
            listed = (
                t if "{" not in t.doc else _saying(t)(self.render(t.doc)) for t in self.specs.values() if t.listed
            )
            own = () if self._user is None else (ASK_SPEC, FINISH_SPEC) if self.ending == "finish" else (ASK_SPEC,)
            self._shown = (*listed, *own)
        return self._shown

    def render(self, text: str) -> str:
        """Put the names shown now in the place of {ids}."""
        return MENTION.sub(self._name, text) if "{" in text else text

    def _name(self, mention: re.Match[str]) -> str:
        if self.toolbox.foreign and mention[1] not in self.ids:
            return mention[0]  # the toolbox's own braces, which mention no tool
        named = [t.name for t in self.specs.values() if t.listed and mention[1] in t.ids]
        if not named:
            retired = any(mention[1] in t.ids for t in self.specs.values())
            if not retired:
                self.dangling.append(mention[1])
        return " and ".join(named) or mention[1]

    # -- what an agent does

    def call(self, call: ToolCall) -> ToolResult:
        """Make a call. Whatever was sent, this returns a result and never raises."""
        self.inner.clear()
        result = self._opened(call)
        result = self.send(call) if result is None else result
        if self.clock.revealed:
            self._reveal()
        result = self._rendered(result)
        self._record(call, result, tuple(self.inner), self.clock.fired)
        return result

    async def acall(self, call: ToolCall) -> ToolResult:
        """Make a call of any toolbox. Raises `InfrastructureError` if a remote one fails."""
        if not self.toolbox.remote:
            return self.call(call)
        opened = self.begin(call)
        while opened.asked is not None:
            self.resume(opened, await self.toolbox.ask(opened.asked))
        return self.close_call(opened)

    def begin(self, call: ToolCall) -> OpenCall:
        """Open a call. If `asked` is set, pass the toolbox's answer to it to `resume`; else the call has its result."""
        result = self._opened(call)
        opened = OpenCall(call, self.clock.nth)
        if result is None:
            opened.flow = chain(call, self._handlers)
            self._advance(opened, None)
        else:
            opened.result = self._rendered(result)
        return opened

    def resume(self, opened: OpenCall, answer: ToolResult) -> None:
        """Pass the toolbox's answer to the layers. They ask for more, or the call has its result."""
        assert opened.asked is not None
        asked, opened.asked = opened.asked, None
        opened.inner.append((asked, answer))
        self._advance(opened, answer)

    def close_call(self, opened: OpenCall, result: ToolResult | None = None) -> ToolResult:
        """Record a call; pass `result` if the agent gets another one than the layers gave."""
        result = opened.result if result is None else result
        assert result is not None
        self._record(opened.call, result, tuple(opened.inner), opened.fired)
        return result

    @cached_property
    def _handlers(self) -> Sequence[StepOf]:
        pairs = zip(self.layers, self.memos, strict=True)
        return [partial(layer.handle, memo=memo) for layer, memo in pairs if not layer.is_passthrough][::-1]

    def _advance(self, opened: OpenCall, answer: ToolResult | None) -> None:
        """Run the layers until they ask or are done. Generators do not wait, so no other call can interleave."""
        assert opened.flow is not None
        clock, before = self.clock, self.clock.nth
        clock.nth, clock.fired = opened.nth, opened.fired
        try:
            opened.asked = next(opened.flow) if answer is None else opened.flow.send(answer)
        except StopIteration as stop:
            if clock.revealed:
                self._reveal()
            own = self.toolbox.foreign and bool(opened.inner) and stop.value is opened.inner[-1][1]
            opened.result = stop.value if own else self._rendered(stop.value)  # what a server says mentions no {ids}
        finally:
            clock.nth, clock.fired = max(before, opened.nth), []

    def _opened(self, call: ToolCall) -> ToolResult | None:
        """Open a step. Returns the answer to a call that no layer is asked about."""
        clock = self.clock
        clock.nth += 1
        if clock.nth in self.moments:
            self.show(clock.nth)
        clock.fired = []
        if self.rows:
            self.world.state.touched.clear()
        if call.tool == ASK and self._user is not None:
            bad = bad_arguments(ASK_SPEC.params, call.args)
            return failed("bad_arguments", bad) if bad else ToolResult(self._user.answer(call.args["question"]))
        if call.tool == FINISH and self.ending == "finish" and self._user is not None:
            return self._end_by_tool(call.args)
        spec = self.specs.get(call.tool) if isinstance(call.tool, str) else None
        if spec is None and self.toolbox.foreign and not self.layers:
            return None
        return self.toolbox.check(call, spec)

    def _end_by_tool(self, args: object) -> ToolResult:
        """End the episode, unless the arguments are wrong or the user has changed their mind."""
        try:
            end = read_finish(args)
        except ValueError as bad:
            return failed("bad_arguments", str(bad))
        if self.user.pending and (end.status == "done" or not self.domain.family(self.task).typed):
            return ToolResult(entity_names.shown(self.task, self._voice(end.text).words))
        self.finished = end
        return ToolResult(OVER)

    def _rendered(self, result: ToolResult) -> ToolResult:
        """A result with the names shown now; the same object if it mentions none."""
        error = result.error
        if error is not None and "{" in error.text:
            return replace(result, error=ToolError(error.code, self.render(error.text), error.retryable))
        if self.speaks and error is None:
            spoken = entity_names.through(result.content, self.render)
            return result if spoken == result.content else ToolResult(spoken)
        return result

    def say(self, text: str) -> str | None:
        """Speak to the user in plain words; None when there is no more to say and the episode is over."""
        user = self._user
        if user is None:
            raise LookupError("a session without a task has no user to speak to")
        said = user.understood(text)
        reply: str | None = None
        if said == "question":
            reply = user.answer(text)
        elif said == "answer" and user.pending:
            reply = entity_names.shown(user.task, self._voice(text).words)
        self.steps.append(Step(ToolCall(SAY, {"text": text}), ToolResult(reply)))
        return reply

    def _voice(self, said: str = "") -> Change:
        """The user changes the request, or goes on to the next."""
        tools = self.toolbox.specs
        change = self.user.change(said)
        if self.toolbox.specs is not tools:
            self.refresh()
        for i, layer in enumerate(self.layers):
            if layer.receipt_source == "change":
                self.first.setdefault(i, self.taken + 1)
        return change

    # -- the record

    @property
    def taken(self) -> int:
        """How many steps there were."""
        return self.forgotten + len(self.steps)

    def forget(self) -> None:
        """Keep none of the steps so far; they count on. For a session that lasts, whose steps are kept elsewhere."""
        self.forgotten += len(self.steps)
        self.steps.clear()

    def _record(self, call: ToolCall, result: ToolResult, inner: tuple[Exchange, ...], fired: list[int]) -> None:
        heard: tuple[str, ...] = ()
        user = self._user
        if user is not None and user.pending:
            worked = {c.tool for c, r in inner if r.error is None}
            while user.pending and user.pending[0].after in worked:
                heard = (*heard, entity_names.shown(user.task, self._voice().words))
        for i in self.rows:
            if i not in self.first and self._met_rows(inner):
                fired.append(i)
        places = tuple(sorted(set(fired))) if fired else ()
        if call.tool == SAY:  # among the steps this name stands for words, and only for them
            call = replace(call, tool="say")
        self.steps.append(Step(call, result, inner, places, heard))
        for i in places:
            self.first.setdefault(i, self.taken)

    def _met_rows(self, inner: tuple[Exchange, ...]) -> bool:
        """Did a call look at what an obstacle changed, or want a tool that is blocked?"""
        if any(call.tool in self.task.blocked for call, _ in inner):
            return True
        touched = [key for key in self.world.state.touched if f"{key[0]}/{key[1]}" in self.task.obstacle]
        if not touched:
            return False
        entries = [self.world.entries[call.tool] for call, _ in inner if call.tool in self.world.entries]
        looked = frozenset[str]().union(*(e.reads for e in entries))
        if any(e.effects for e in entries):
            looked = looked.union(self.world.invariants)
        below = self.domain.state(self.task.unobstructed())
        for table, id in touched:
            row, was = self.task.obstacle[f"{table}/{id}"], below.start(table, id)
            if row is None or was is None or any(f"{table}.{c}" in looked for c in row if row[c] != was.get(c)):
                return True
        return False

    def receipts(self, seen: int | None = None) -> tuple[Receipt, ...]:
        """What became of each obstacle. `seen` is the last step after which the agent had a turn.

        By default that is the step before the last, because nobody may have read the last result.
        """
        seen = self.taken - 1 if seen is None else seen
        return tuple(
            Receipt(
                kind=layer.kind,
                fired=i in self.first,
                step=self.first.get(i),
                seen=i in self.first and self.first[i] <= seen,
            )
            for i, layer in enumerate(self.layers)
        )


def _recording(send: Send, inner: list[Exchange]) -> Send:
    """`send` that notes down each call and its answer."""

    def recorded(call: ToolCall) -> ToolResult:
        result = send(call)
        inner.append((call, result))
        return result

    return recorded
