"""The documented order of two dependent calls is reversed."""

from __future__ import annotations

import json
from random import Random
from typing import Literal, Self

from crosswind.flow import token
from crosswind.perturbation import Memo, Perturbation, Scene, in_hand, perturbation
from crosswind.perturbations.action._links import links
from crosswind.types import Flow, ToolCall, ToolResult, Tools, ToolSpec, failed

PARAMS = ("token", "ticket", "draft", "reference", "handle")


@perturbation
class DependencyInversion(Perturbation):
    """What came second comes first: it gives a token that the former first one needs, and takes effect there."""

    kind: Literal["dependency_inversion"] = "dependency_inversion"
    axis, tier, rank, group, plans = "action", "reasoning", "structure", "structure", True
    severities = "How much is said: 1-2 both docs and the error name the way, 3-4 both docs, 5 one doc only."
    first: str
    second: str
    key: str
    param: str
    ticket: str
    hints: int

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        if scene.task.changes:
            return None  # a change between the two would be known too early
        given = scene.task.given
        found = [
            link
            for link, one, two in links(scene.gold, scene.tools)
            if all(in_hand(v, one.call, given) for k, v in two.call.args.items() if k != link.param)
        ]  # the second can be prepared before the first has answered
        if not found:
            return None
        link = rng.choice(found)
        hints = {1: 3, 2: 3, 3: 2, 4: 2, 5: 1}[severity]
        ticket = rng.choice([p for p in PARAMS if p not in scene.tools[link.first].params])
        return cls(first=link.first, second=link.second, key=link.key, param=link.param, ticket=ticket, hints=hints)

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        def turned(tool: ToolSpec) -> ToolSpec:
            if tool.name == self.second:
                doc = (
                    f"{tool.doc} Comes before {{{self.first}}}: returns a {self.ticket} for it and takes effect there."
                )
                if self.hints < 2:
                    doc = f"{tool.doc} Returns a {self.ticket}."
                return tool.without_param(self.param).but(doc=doc, writes=False, undo=None)
            if tool.name == self.first:
                doc = f"{tool.doc} Needs the {self.ticket} that {{{self.second}}} returns."
                return tool.with_param(self.ticket, "string", required=True).but(doc=doc)
            return tool

        return tuple(map(turned, tools))

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        notes = memo.notes
        if call.tool == self.second:
            memo.fire()
            ticket = token(self.kind, sorted(call.args.items()), memo.nth)
            notes[ticket] = dict(call.args)
            return ToolResult({self.ticket: ticket})
        if call.tool != self.first:
            return (yield call)
        memo.fire()
        ticket = call.args[self.ticket]
        if ticket not in notes:
            way = f"; {{{self.second}}} gives one" if self.hints > 2 else ""
            return failed("refused", f"Unknown {self.ticket}{way}.")
        inner = call.without(self.ticket)
        at = "held " + json.dumps(inner.args, sort_keys=True)
        if at not in notes:  # a half-done pair is taken up again, not repeated
            one = yield inner
            if one.error:
                return one
            notes[at] = one.content
        one_made = notes[at]
        two = yield ToolCall(self.second, {**notes[ticket], self.param: one_made[self.key]})
        if two.error:
            return two
        del notes[at], notes[ticket]
        return ToolResult({**one_made, self.second_key: two.content})

    @property
    def second_key(self) -> str:
        """Where the second call's answer stands in the first one's."""
        return "then"

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        if call.tool == self.second:
            seen = memo.notes.pop(str(call.args[self.param]), None)
            if seen is None:
                return failed("unavailable", f"{{{self.second}}} was not done in time")
            return ToolResult(seen)
        if call.tool != self.first:
            return (yield call)
        then = memo.ahead(self.second, call)
        if then is None:
            return failed("unavailable", "there is nothing to begin with")
        one = yield then.without(self.param)
        if one.error:
            return one
        both = yield call.having(**{self.ticket: one.content[self.ticket]})
        if both.error:
            return both
        content = dict(both.content)
        memo.notes[str(content[self.key])] = content.pop(self.second_key)
        return ToolResult(content)
