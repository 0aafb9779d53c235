"""A world as an agent meets it: through layers, with a user to ask, both sides of every step on record.

The session checks arguments against what was shown, so that no malformed call reaches a layer. `flow` is the same
for a local world and a remote one; `call` drives it on the session's own world.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial

from crosswind.base.errors import Unfair
from crosswind.core import skin, user
from crosswind.core.domain import Domain
from crosswind.core.flow import Send, chain, once_each
from crosswind.core.perturbation import Clock, Memo, Perturbation, handled
from crosswind.core.types import (
    ASK,
    SAY,
    Change,
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
from crosswind.core.world import bad_arguments, brief_of

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
MENTION = re.compile(r"\{([\w-]+)\}")
ASK_SPEC = ToolSpec(ASK, "Ask the user for a missing detail.", {"question": Param("string")}, opaque=True)


def refused(call: ToolCall, spec: ToolSpec | None) -> ToolResult | None:
    """The answer to a call of no tool, or with arguments that the tool does not take; None for one that can be made."""
    if spec is None:
        return failed("unknown_tool", f"There is no tool {brief_of(call.tool)}.")
    bad = bad_arguments(spec.params, call.args) if spec.listed else None
    return failed("bad_arguments", bad) if bad else None


@once_each
def _saying(tool: ToolSpec) -> Callable[[str], ToolSpec]:
    """A tool with other descriptions, the same object in all episodes that show the same."""
    return lru_cache(maxsize=16)(lambda doc: tool.but(doc=doc))


class Session:
    """One episode's world seen through a stack of layers; `task` is as the layers left it."""

    def __init__(self, domain: Domain, task: Task, layers: Sequence[Perturbation] = ()) -> None:
        self.domain, self.task, self.layers = domain, task, tuple(layers)
        self.world = domain.world(task)
        self.details = domain.family(task).details
        self.clock = Clock(self.world)
        self.memos = [Memo(self.clock, i) for i in range(len(self.layers))]
        self.steps: list[Step] = []
        self.pending = list(task.changes)
        self.said: list[Change] = []  # changes the user has voiced and nobody has taken note of
        self.changed: dict[str, object] = {}
        self.dangling: list[str] = []  # tools that a shown text spoke of and that were not shown
        self.first: dict[int, int] = {}  # layer -> the step at which it first fired
        self.moments = frozenset(n for layer in self.layers for n in layer.turns())
        self.inner: list[tuple[ToolCall, ToolResult]] = []  # what the call under way became on the world's side
        self.send: Send = _recording(self.world.call, self.inner)
        for layer, memo in zip(self.layers, self.memos, strict=True):
            if not layer.quiet:
                self.send = handled(layer, memo, self.send)
        self.speaks = any(layer.speaks for layer in self.layers)
        self.rows = [i for i, layer in enumerate(self.layers) if layer.meets == "rows"]
        self.specs: dict[str, ToolSpec] = {}
        self.ever: dict[str, ToolSpec] = {}  # every tool that was listed at some time
        self._shown: Tools | None = None
        self._show(0)
        for i, layer in enumerate(self.layers):
            if layer.meets == "query":
                self.first[i] = 0

    # -- what is shown

    def _show(self, nth: int) -> None:
        tools: Tools = self.world.specs
        named = {t.name: t for t in tools}
        for i, (layer, memo) in enumerate(zip(self.layers, self.memos, strict=True)):
            memo.tools = named
            if layer.retools:
                outer = layer.on_tools(tools, nth)
                if layer.meets == "tools" and outer != tools:
                    self.first.setdefault(i, len(self.steps) + bool(nth))  # at the start, or with the call under way
                tools, named = outer, {t.name: t for t in outer}
        self.specs = named
        self.ever |= {t.name: t for t in tools if t.listed}
        if len(self.specs) != len(tools):
            twice = sorted(t.name for t in tools if sum(o.name == t.name for o in tools) > 1)
            raise Unfair("names", f"two tools are called {twice[0]!r}")
        for name in self.specs:
            if not NAME.fullmatch(name):
                raise Unfair(
                    "names", f"no provider takes {name!r} for a tool's name; letters, digits, _ and - are taken"
                )
        self._shown = None

    def tools(self) -> Tools:
        """The tools as an agent is shown them now, `ask_user` last."""
        if self._shown is None:
            listed = (
                t if "{" not in t.doc else _saying(t)(self.render(t.doc)) for t in self.specs.values() if t.listed
            )
            self._shown = (*listed, ASK_SPEC)
        return self._shown

    def query(self) -> str:
        """The request as the user says it."""
        return skin.shown(self.task, self.task.brief.query)

    def policy(self) -> str:
        return self.render(self.task.brief.policy)

    def render(self, text: str) -> str:
        """Put the names shown now in the place of {ids}."""
        return MENTION.sub(self._name, text) if "{" in text else text

    def _name(self, mention: re.Match[str]) -> str:
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
        result = self._begun(call)
        return self._ended(call, self.send(call) if result is None else result, self.inner)

    def flow(self, call: ToolCall) -> Flow:
        """The same as a generator that asks for world-side calls, for a world elsewhere."""
        result, inner = self._begun(call), list[tuple[ToolCall, ToolResult]]()
        if result is None:
            pairs = zip(self.layers, self.memos, strict=True)
            flow = chain(call, [partial(layer.handle, memo=memo) for layer, memo in pairs if not layer.quiet][::-1])
            try:
                asked = next(flow)
                while True:
                    answer = yield asked
                    inner.append((asked, answer))
                    asked = flow.send(answer)
            except StopIteration as stop:
                result = stop.value
        return self._ended(call, result, inner)

    def _begun(self, call: ToolCall) -> ToolResult | None:
        """Open a step; what comes back is the answer to a call that no layer is asked about."""
        clock = self.clock
        clock.nth += 1
        if clock.nth in self.moments:
            self._show(clock.nth)
        clock.fired = []
        self.world.state.touched.clear()
        spec = self.specs.get(call.tool) if isinstance(call.tool, str) else None
        if call.tool == ASK:
            return self._asked(call)
        return refused(call, spec)

    def _ended(self, call: ToolCall, result: ToolResult, inner: Sequence[tuple[ToolCall, ToolResult]]) -> ToolResult:
        """Close a step: put in the names shown, and record both sides."""
        error = result.error
        if error is not None and "{" in error.text:
            result = replace(result, error=ToolError(error.code, self.render(error.text), error.retryable))
        elif self.speaks and error is None:
            result = ToolResult(skin.through(result.content, self.render))
        self._record(call, result, tuple(inner))
        return result

    def say(self, text: str) -> str | None:
        """Speak to the user in plain words; None when there is no more to say and the episode is over."""
        said = self.domain.family(self.task).understood(self.task, text)
        reply: str | None = None
        if said == "question":
            reply = self._answered(text)
        elif said == "answer" and self.pending:
            reply = skin.shown(self.task, self._voice(text).words)
        self.steps.append(Step(ToolCall(SAY, {"text": text}), ToolResult(reply)))
        return reply

    def _asked(self, call: ToolCall) -> ToolResult:
        if bad := bad_arguments(ASK_SPEC.params, call.args):
            return failed("bad_arguments", bad)
        return ToolResult(self._answered(call.args["question"]))

    def _answered(self, question: str) -> str:
        question = skin.plain(self.task, question[:4000])
        return skin.shown(self.task, user.answer(question, self.task, self.details, self.changed))

    def _voice(self, said: str = "") -> Change:
        """The user changes the request, or goes on to the next."""
        change, tools = self.pending.pop(0), self.world.specs
        self.world.hear(change, said)
        if self.world.specs is not tools:
            self._show(max(0, self.clock.nth))
        self.said.append(change)
        self.changed |= change.stated
        for i, layer in enumerate(self.layers):
            if layer.meets == "change":
                self.first.setdefault(i, len(self.steps) + 1)
        return change

    # -- the record

    def _record(self, call: ToolCall, result: ToolResult, inner: tuple[tuple[ToolCall, ToolResult], ...]) -> None:
        heard: tuple[str, ...] = ()
        if self.pending and any(c.tool == self.pending[0].after and r.error is None for c, r in inner):
            heard = (skin.shown(self.task, self._voice().words),)
        for i in self.rows:
            if i not in self.first and self._met_rows(inner):
                self.clock.fired.append(i)
        fired = tuple(sorted(set(self.clock.fired))) if self.clock.fired else ()
        if call.tool == SAY:  # among the steps this name stands for words, and only for them
            call = replace(call, tool="say")
        self.steps.append(Step(call, result, inner, fired, heard))
        for i in fired:
            self.first.setdefault(i, len(self.steps))

    def _met_rows(self, inner: tuple[tuple[ToolCall, ToolResult], ...]) -> bool:
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
        below = self.domain.state(self.task.wish())
        for table, id in touched:
            row, was = self.task.obstacle[f"{table}/{id}"], below.start(table, id)
            if row is None or was is None or any(f"{table}.{c}" in looked for c in row if row[c] != was.get(c)):
                return True
        return False

    def receipts(self, seen: int) -> tuple[Receipt, ...]:
        """What became of each obstacle; the agent has had a turn after the step `seen`, and after all before it."""
        return tuple(
            Receipt(
                kind=layer.kind,
                fired=i in self.first,
                step=self.first.get(i),
                seen=i in self.first and self.first[i] <= seen,
            )
            for i, layer in enumerate(self.layers)
        )


def _recording(send: Send, inner: list[tuple[ToolCall, ToolResult]]) -> Send:
    """`send` that notes down each call and its answer."""

    def recorded(call: ToolCall) -> ToolResult:
        result = send(call)
        inner.append((call, result))
        return result

    return recorded
