"""The documented order of two dependent calls is reversed."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from random import Random
from typing import Literal, Self

from crosswind.core.flow import token
from crosswind.core.perturbation import Memo, Perturbation, Scene, in_hand, perturbation
from crosswind.core.types import Flow, Step, ToolCall, ToolResult, Tools, ToolSpec, failed
from crosswind.perturbations._added_names import new_word
from crosswind.perturbations.action._links import links
from crosswind.words import banks

PARAMS = banks.own("dependency_inversion", "params")


@perturbation
class DependencyInversion(Perturbation):
    """Two dependent tools swap order: the second must be called first, for a token that the first one needs."""

    kind: Literal["dependency_inversion"] = "dependency_inversion"
    axis, tier, rank, group, plans = "action", "reasoning", "structure", "structure", True
    severities = (
        "What does not tell the new order: 1 nothing, 2 the error, 3 the error and the description of the tool that "
        "now comes first, 4 the error and the other description, 5 all three."
    )
    needs = "two writes in the solution, the second of which needs nothing from the first but what it made"
    way = "call the second tool first, and pass the token it returns to the first one"
    first: str
    second: str
    key: str
    param: str
    ticket: str
    untold: int  # of three hints
    second_doc: str
    first_doc: str
    refusal: str

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        if scene.task.changes or scene.task.events:
            return None  # a change between the two would be known too early
        given = scene.task.given
        found = [
            link
            for link, one, two in links(scene.gold, scene.tools)
            if (two.result.error is None or not scene.tools[link.first].lasting)
            and all(in_hand(v, one.call, given) for k, v in two.call.args.items() if k != link.param)
        ]  # the second can be prepared before the first has answered
        if not found:
            return None
        link = rng.choice(found)
        split = scene.task.split
        ticket = new_word(PARAMS, split, rng, scene.tools[link.first].params)
        if ticket is None:
            return None
        second_doc = banks.phrase("ticket_second", split, rng, first=link.first, ticket=ticket)
        if severity in (3, 5):
            second_doc = banks.phrase("ticket_only", split, rng, ticket=ticket)
        first_doc = ""
        if severity < 4:
            first_doc = banks.phrase("ticket_first", split, rng, second=link.second, ticket=ticket)
        refusal = banks.phrase("bad_ticket", split, rng, ticket=ticket)
        if severity == 1:
            refusal = f"{refusal} {banks.phrase('successor', split, rng, new=link.second)}"
        return cls(
            first=link.first,
            second=link.second,
            key=link.key,
            param=link.param,
            ticket=ticket,
            untold={1: 0, 2: 1, 3: 2, 4: 2, 5: 3}[severity],
            second_doc=second_doc,
            first_doc=first_doc,
            refusal=refusal,
        )

    def difficulty(self, gold: Sequence[Step], place: int) -> int:
        return super().difficulty(gold, place) + self.untold

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        def turned(tool: ToolSpec) -> ToolSpec:
            if tool.name == self.second:
                doc = f"{_without(tool.doc, self.first)} {self.second_doc}"
                return tool.without_param(self.param).replace(doc=doc, writes=False, undo=None)
            if tool.name == self.first:
                return tool.with_param(self.ticket, "string", required=True, says=self.first_doc)
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
            return failed("refused", self.refusal)
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
        """Where the second call's answer is in the first one's."""
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
        both = yield call.with_args(**{self.ticket: one.content[self.ticket]})
        if both.error:
            return both
        content = dict(both.content)
        memo.notes[str(content[self.key])] = content.pop(self.second_key)
        return ToolResult(content)


def _without(doc: str, tool: str) -> str:
    """A description without the clauses that speak of a tool which no longer comes before."""
    clauses = re.split(r"(?<=[.;]) ", doc)
    kept = [clause for clause in clauses if f"{{{tool}}}" not in clause] or clauses
    return re.sub(r";$", ".", " ".join(kept))
