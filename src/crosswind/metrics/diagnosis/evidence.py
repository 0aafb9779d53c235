"""An episode taken apart: what the agent did and was shown, what reached the world, and what should have happened.

The diagnosis asks its questions of this. Nothing here looks at the kinds or tiers of layers, nor at names of agents.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from crosswind.base.errors import Unfair
from crosswind.core import entity_names, turns
from crosswind.core.certify import Certificate
from crosswind.core.domain import Domain
from crosswind.core.oracle import Walk, walk
from crosswind.core.registry import domains
from crosswind.core.types import FINISH, SAY, TALK, Changes, Step, Task, ToolCall, ToolResult, ToolSpec, failed
from crosswind.core.world import World
from crosswind.episodes.record import Record
from crosswind.text import speech, values

NEAR = 0.75  # from this likeness on, a value is another one garbled
_EMPTY = re.compile(  # words that come with empty hands
    r"\b(?:sorry|apolog(?:y|ies|i[sz]e)|unfortunately|regret|(?:do|did|could)(?: not|n[\u2019']t) (?:know|say|tell)"
    r"|no idea|not sure|(?:try|contact|come back)\b.*|(?:an?|the|some|any) (?:error|problem|failure|timeout|issue)"
    r"|went wrong|(?:is|was|were) (?:down|unavailable|not available)|failed|fails)\b",
    re.IGNORECASE,
)
_DONE = re.compile(
    r"\b(?:nevertheless|but|however|still|(?:is|are|has been|have been|was|were) (?:now )?(?:booked|done|set|placed"
    r"|sent|made|confirmed|cancelled|changed|updated|reserved|ordered|scheduled))\b",
    re.IGNORECASE,
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True, slots=True)
class Act:
    """A step of the trajectory: what the agent did, what it was shown, and what reached the world."""

    n: int
    call: ToolCall
    content: Any
    error: Mapping[str, Any] | None
    inner: tuple[tuple[ToolCall, bool, Any], ...]  # call, did it work, content
    heard: tuple[str, ...]

    @property
    def code(self) -> str:
        return str(self.error["code"]) if self.error else ""

    @property
    def text(self) -> str:
        """What the agent was shown."""
        if self.error:
            return str(self.error["text"])
        return self.content if isinstance(self.content, str) else json.dumps(self.content, ensure_ascii=False)

    @property
    def worked(self) -> list[ToolCall]:
        return [call for call, ok, _ in self.inner if ok]

    def repeat_in(self, world: World) -> None:
        """Make the calls that reached the world again in another one."""
        for call, worked, content in self.inner:
            world.again(call, ToolResult(content) if worked else failed("failed"))


def acts_of(steps: Sequence[Mapping[str, Any]]) -> list[Act]:
    out = []
    for n, step in enumerate(steps, 1):
        call, result = step["call"], step["result"]
        args = call["args"] if isinstance(call["args"], dict) else {"(arguments)": call["args"]}
        inner = tuple(
            (ToolCall(i["call"]["tool"], i["call"]["args"]), "error" not in i["result"], i["result"].get("content"))
            for i in step["inner"]
        )
        made = ToolCall(call["tool"] if isinstance(call["tool"], str) else str(call["tool"]), args)
        out.append(Act(n, made, result.get("content"), result.get("error"), inner, tuple(step["heard"])))
    return out


@dataclass(frozen=True, slots=True)
class Divergence:
    """Something that went wrong at a step."""

    step: int
    cause: str
    stage: str
    why: str


def leaves(content: Any) -> Iterable[Any]:
    if isinstance(content, dict):
        for value in content.values():
            yield from leaves(value)
    elif isinstance(content, (list, tuple)):
        for value in content:
            yield from leaves(value)
    elif content is not None and not isinstance(content, bool) and content != "":
        yield content


def likeness(one: Any, other: Any) -> float:
    """How much a value looks like another, from 0 to 1."""
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return 1.0 if abs(one - other) <= max(10, abs(other) / 2) else 0.0
    left, right = str(one)[:80].lower(), str(other)[:80].lower()
    if _DATE.fullmatch(left) and _DATE.fullmatch(right):
        return 1.0
    return difflib.SequenceMatcher(None, left, right).ratio()


def alike(one: Any, other: Any) -> bool:
    """Is one value the other, garbled?"""
    return likeness(one, other) >= NEAR


def covers(shown: Any, content: Any) -> bool:
    """Does a result show what the world answered in the world's own form, whatever else it shows?"""
    if isinstance(content, dict):
        return isinstance(shown, dict) and all(k in shown and covers(shown[k], v) for k, v in content.items())
    if isinstance(content, list):
        if not isinstance(shown, list) or len(shown) != len(content):
            return False
        return all(covers(s, c) for s, c in zip(shown, content, strict=True))
    return bool(shown == content)


def strings(content: Any) -> list[str]:
    return [v for v in leaves(content) if isinstance(v, str)]


class Evidence:
    """One episode beside the certified way."""

    def __init__(self, record: Record, certificate: Certificate) -> None:
        self.record, self.certificate = record, certificate
        self.task: Task = certificate.task
        self.domain: Domain = domains[record.domain]
        self.family = self.domain.family(self.task)
        self.acts = acts_of(record.steps)
        self.gold: list[Step] = certificate.gold.steps
        self.shown: dict[str, ToolSpec] = {**certificate.gold.session.ever}
        self.canonical = self.domain.world_class.entries
        self.end = len(self.acts) + 1
        self.said = ""
        if record.finish is not None:
            self.said = "refusal" if record.ended == "refusal" else "answer"
        elif record.final.strip():
            self.said = speech.classify(record.final)
        self.refused = record.ended == "refusal" or (
            record.ended == "answer" and (self.said == "refusal" or self.is_empty_handed)
        )

    @cached_property
    def is_empty_handed(self) -> bool:
        """Does the final message claim nothing: only apologise, tell of trouble or say that it does not know?"""
        if self.record.finish is not None and self.record.finish.answer:
            return False
        told = [part for part in re.split(r"[.;!?]+(?:\s+|$)", self.record.final) if part.strip()]
        return bool(told) and all(_EMPTY.search(part) and not _DONE.search(part) for part in told)

    # -- what should have happened

    @cached_property
    def wanted(self) -> Task:
        """The request as the user has put it by the end, with every detail stated."""
        heard = tuple(
            change
            for change in self.task.changes
            if any(self._said(entity_names.shown(self.task, change.words), act) for act in self.acts)
        )
        last = turns.requests(self.task.replace(changes=heard))[-1]
        return last.briefed(stated={**last.brief.stated, **last.withheld}, vague={}).replace(withheld={})

    @cached_property
    def first_wanted(self) -> Task:
        """The request before any change of mind, with every detail stated."""
        stated = {**self.task.brief.stated, **self.task.withheld}
        return self.task.briefed(stated=stated, vague={}).replace(withheld={}, changes=())

    @staticmethod
    def _said(words: str, act: Act) -> bool:
        return words in act.heard or act.content == words

    @cached_property
    def direct(self) -> list[ToolCall]:
        """The calls that the world must see: those of the shortest way to the request as it is in the end."""
        return self.shortest(self.wanted)

    def shortest(self, task: Task) -> list[ToolCall]:
        """The canonical calls of the shortest way to a request."""
        try:
            steps = walk(self.domain, task).steps
        except Unfair:
            steps = self.gold
        calls = [call for step in steps for call, result in step.inner if result.error is None]
        return [call for i, call in enumerate(calls) if call not in calls[:i]]

    @cached_property
    def lawless(self) -> Walk | None:
        """The same request where the policy has no rule; None where it has none here."""
        if not self.task.brief.rules:
            return None
        try:
            return walk(self.domain, self.wanted.briefed(rules={}))
        except Unfair:
            return None

    def writes(self, tool: str) -> bool:
        entry = self.canonical.get(tool)
        return entry is not None and entry.spec.writes and entry.spec.lasting

    def ways_to(self, call: ToolCall) -> list[Step]:
        """The gold steps that make a canonical call, and those with the same arguments that lead up to it."""
        making = [step for step in self.gold if any(c == call for c, _ in step.inner)]
        return [step for step in self.gold if step in making or any(self._leads(step, way.call) for way in making)]

    @staticmethod
    def _leads(step: Step, way: ToolCall) -> bool:
        """Does a gold step that does nothing itself ask for the same as another, at another name or without a code?"""
        call = step.call
        if step.result.error is not None and call.args and call.args == way.args:
            return True
        return not step.inner and call.tool == way.tool and all(way.args.get(k) == v for k, v in call.args.items())

    def aliases(self, call: ToolCall) -> set[str]:
        """The names under which the tool of a canonical call was shown at some time."""
        return {name for name, spec in self.shown.items() if call.tool in spec.ids}

    # -- what did happen

    def first_done(self, call: ToolCall) -> int | None:
        """The step at which a canonical call worked."""
        return next((act.n for act in self.acts if call in act.worked), None)

    def too_early(self) -> tuple[Act, ToolCall] | None:
        """A read that was made for the last time before a write which the way makes first, and that told otherwise."""
        way = [(call, result.content) for step in self.gold for call, result in step.inner if result.error is None]
        for n, (call, told) in enumerate(way):
            read = next((act for act in reversed(self.acts) if call in act.worked), None)
            if read is None or self.writes(call.tool) or any(call == later for later, _ in way[n + 1 :]):
                continue
            late = [w for w, _ in way[:n] if self.writes(w.tool) and (self.first_done(w) or 0) > read.n]
            if late and told not in [content for made, ok, content in read.inner if ok and made == call]:
                return read, late[-1]
        return None

    @cached_property
    def missing(self) -> list[ToolCall]:
        return [call for call in self.direct if self.first_done(call) is None]

    @cached_property
    def extras(self) -> list[tuple[Act, list[ToolCall]]]:
        """The steps that left something changed in the end which should not be, with their calls that worked."""
        world = self.domain.world(self.task)
        ends = [] if self.task.refuse else self.family.ends(self.task, self.domain.state(self.task))
        normal = [self.domain.normal(self.task, end) for end in ends]
        right = min(normal or [{}], key=lambda end: len(self._apart(self._final, end)))
        wrong = self._apart(self._final, right)
        out = []
        before: Changes = {}
        for act in self.acts:
            act.repeat_in(world)
            if any(self.canonical[c.tool].spec.writes for c in act.worked if c.tool in self.canonical):
                after = self.domain.normalise(world.state)
                if any(key in after and key not in before for key in wrong) or any(
                    after.get(key) == row and before.get(key) != row for key, row in wrong.items()
                ):
                    out.append((act, act.worked))
                before = after
        return out

    @cached_property
    def _final(self) -> Changes:
        world = self.domain.world(self.task)
        for act in self.acts:
            act.repeat_in(world)
        return self.domain.normalise(world.state)

    @staticmethod
    def _apart(one: Changes, other: Changes) -> Changes:
        return {key: row for key, row in one.items() if key not in other or other[key] != row}

    # -- figures

    def composed(self, value: Any) -> bool:
        """Is a figure one that was read, or the sum of those that one tool gave in one place?"""
        if "results" in self.sources(value, self.end):
            return True
        sums: dict[tuple[str, str], float] = {}
        seen: list[ToolCall] = []
        for act in self.acts:
            for call, ok, content in act.inner:
                if ok and call not in seen:
                    seen.append(call)
                    for row in content if isinstance(content, list) else [content]:
                        for key, one in row.items() if isinstance(row, dict) else ():
                            if isinstance(one, (int, float)) and not isinstance(one, bool):
                                sums[call.tool, key] = sums.get((call.tool, key), 0) + one
        return isinstance(value, (int, float)) and any(abs(value - total) < 0.005 for total in sums.values())

    def compared(self, one: Any, other: Any, before: int) -> bool:
        """Did the way lead over the same question about both values, and did the agent ask it of both?"""
        asked = [(call.tool, key, v) for call in self.direct for key, v in call.args.items() if self.done(call, before)]
        return any((tool, key, other) in asked for tool, key, v in asked if v == one)

    def done(self, call: ToolCall, before: int) -> bool:
        return (self.first_done(call) or self.end) < before

    # -- who said what, and when

    def sources(self, value: Any, before: int) -> set[str]:
        """Where a value stood that the agent could see before a step: request, policy, tools, results or words.

        What the agent sent itself comes from nowhere when an error says it back.
        """
        forms = [value, entity_names.shown(self.task, value)] if isinstance(value, str) else [value]
        out = set()
        for where, text in self._texts(before, forms):
            if where not in out and any(self.stands(form, text) for form in forms):
                out.add(where)
        return out

    def _texts(self, before: int, forms: Sequence[Any]) -> Iterable[tuple[str, str]]:
        yield "request", self.record.query
        yield "policy", self.record.policy
        for tool in self.record.tools:
            yield "tools", json.dumps(tool, ensure_ascii=False)
        for act in self.acts:
            if act.n >= before:
                break
            asked = act.call.tool in TALK
            if asked or not (act.error and any(sent in forms for sent in leaves(dict(act.call.args)))):
                yield ("request" if asked else "results"), act.text
            for words in act.heard:
                yield "words", words
            if act.call.tool in (SAY, FINISH) and isinstance(act.content, str):
                yield "words", act.content

    @staticmethod
    def stands(value: Any, text: str) -> bool:
        if isinstance(value, str) and len(value) > 3 and not value.isdigit():
            return value.lower() in text.lower() or values.shown(value, text)
        return re.search(rf"(?<![\w.]){re.escape(str(value))}(?![\w]|\.\d)", text) is not None or values.shown(
            value, text
        )
