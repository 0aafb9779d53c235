"""Small doubles for tests: layers that break one law each, and short ways to tasks and draws."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from crosswind.core.domain import Domain
from crosswind.core.perturbation import Memo, Perturbation, Rank, Scene, check_class
from crosswind.core.registry import domains, perturbations
from crosswind.core.types import Axis, Flow, Task, Tier, ToolCall, ToolResult, Tools, ToolSpec, failed


def poi() -> Domain:
    return domains["poi"]


def task(family: str, seed: int = 3) -> Task:
    return poi().task(family, seed)


@contextmanager
def registered(*classes: type[Perturbation]) -> Iterator[None]:
    """Kinds that are known for the length of a test."""
    names = [cls.model_fields["kind"].default for cls in classes]
    for name, cls in zip(names, classes, strict=True):
        perturbations.add(name, check_class(cls))
    try:
        yield
    finally:
        for name in names:
            perturbations.remove(name)


class Toy(Perturbation):
    """An observation layer at the edge, unless it says otherwise."""

    kind: Literal["toy"] = "toy"
    axis: ClassVar[Axis] = "observation"
    tier: ClassVar[Tier] = "interaction"
    rank: ClassVar[Rank] = "form"
    goal: ClassVar[Literal["kept", "moved", "refuse"]] = "kept"

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        return cls()


class DropsField(Toy):
    """Hides the ratings and gives them back to nobody."""

    def encode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        if call.tool != "find_places" or result.error:
            return result
        return ToolResult([{k: v for k, v in row.items() if k != "rating"} for row in result.content])


class ChangesMeaning(Toy):
    """Asks for another city, and says that the goal is kept."""

    axis, tier, rank = "query", "perception", "query"
    old: str
    new: str

    def on_task(self, task: Task) -> Task:
        brief = task.brief
        return task.briefed(query=brief.query.replace(self.old, self.new), stated={**brief.stated, "city": self.new})


class DoesNothing(Toy):
    """Hands the task on as it came."""

    axis, tier, rank = "query", "perception", "query"

    def on_task(self, task: Task) -> Task:
        return task


class WritesIntoTask(Toy):
    """Notes something in the task it was handed, and wraps results so as to bite."""

    def on_task(self, task: Task) -> Task:
        task.edits["notes/1"] = {"seen": True}
        return task

    def encode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        return result if result.error else ToolResult({"of": result.content})

    def decode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        return result if result.error else ToolResult(result.content["of"])


class FailsAlways(Toy):
    """Lets nothing through."""

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        memo.fire()
        yield from ()
        return failed("broken", "Nothing works today.")


class AddsRival(Toy):
    """Names another city in the query, so that it no longer says which is meant."""

    axis, tier, rank = "query", "perception", "query"
    other: str

    def on_task(self, task: Task) -> Task:
        return task.briefed(query=f"{task.brief.query} I once lived in {self.other}.")


class LosesValue(Toy):
    """Rewords the query and loses the city on the way."""

    axis, tier, rank = "query", "perception", "query"

    def on_task(self, task: Task) -> Task:
        return task.briefed(query=task.brief.query.replace(task.brief.stated["city"], "the capital"))


class SecretPin(Toy):
    """Wants a number that nobody was shown."""

    axis, tier, rank = "action", "reasoning", "protocol"

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        return tuple(t.with_param("pin", "string", required=True) if t.name == "find_places" else t for t in tools)

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        if call.tool == "find_places":
            memo.fire()
        return (yield call.without("pin"))

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        return (yield call.with_args(pin="9173") if call.tool == "find_places" else call)


class RemembersElsewhere(Toy):
    """Counts in the class what it should count in its notes."""

    seen: ClassVar[list[int]] = []

    def encode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        self.seen.append(1)
        return result if result.error else ToolResult({"n": len(self.seen), "of": result.content})

    def decode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        return result if result.error else ToolResult(result.content["of"])


class NotesThatAreNotJson(Toy):
    """Keeps a set in its notes."""

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        memo.notes.setdefault("seen", set()).add(call.tool)
        memo.fire()
        result = yield call
        return result if result.error else ToolResult({"of": result.content})

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        result = yield call
        return result if result.error else ToolResult(result.content["of"])


class Unseeded(Toy):
    """Draws from the generator that everybody shares."""

    width: int

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        return cls(width=random.randrange(10**9))

    def encode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        return result if result.error else ToolResult({"width": self.width, "of": result.content})

    def decode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        return result if result.error else ToolResult(result.content["of"])


class LopsidedNames(Toy):
    """Shows `weather` as `sky`, and takes `sky` for `travel_time`; the way leads over `find_places` alone."""

    axis, tier, rank = "action", "perception", "vocabulary"
    names: dict[str, str] = Field(default={"weather": "sky", "find_places": "spots"})

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        return tuple(t.replace(name=self.names.get(t.name, t.name)) for t in tools)

    def encode_call(self, call: ToolCall) -> ToolCall:
        return call.named(self.names.get(call.tool, call.tool))

    def decode_call(self, call: ToolCall) -> ToolCall:
        back = {"sky": "travel_time", "spots": "find_places"}
        return call.named(back.get(call.tool, call.tool))


class OpenTomb(Toy):
    """Takes `find_places` off the list, and still answers to it."""

    axis, tier, rank = "action", "interaction", "fault"

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        out: list[ToolSpec] = []
        for tool in tools:
            out += [tool.replace(listed=False), tool.made("spots")] if tool.name == "find_places" else [tool]
        return tuple(out)

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        if call.tool == "spots":
            memo.fire()
        return (yield call.named("find_places") if call.tool == "spots" else call)

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        return (yield call.named("spots") if call.tool == "find_places" else call)


class Elsewhere(Toy):
    """Stands where the way never leads."""

    def encode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        return ToolResult({"of": result.content}) if call.tool == "weather" else result

    def decode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        return ToolResult(result.content["of"]) if call.tool == "weather" else result


class Nameless(Toy):
    """Names without meaning; `docs` says what becomes of the descriptions."""

    axis, tier, rank = "action", "perception", "vocabulary"
    docs: Literal["gone", "swapped"]

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        by = {t.name: t for t in tools}
        swap = {"find_places": by["place_details"].doc, "place_details": by["find_places"].doc}
        out = []
        for i, tool in enumerate(tools):
            doc = "Does something." if self.docs == "gone" else swap.get(tool.name, tool.doc)
            out.append(tool.replace(name=f"t{i}", doc=doc, cues=frozenset({"doc"})))
        return tuple(out)

    def encode_call(self, call: ToolCall) -> ToolCall:
        return call.named(f"t{[s.name for s in poi().world_class.specs].index(call.tool)}")

    def decode_call(self, call: ToolCall) -> ToolCall:
        return call.named(poi().world_class.specs[int(call.tool[1:])].name)


class Endless(Toy):
    """Wants to be asked two hundred times."""

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        memo.fire()
        memo.notes["n"] = memo.notes.get("n", 0) + 1
        return (yield call) if memo.notes["n"] > 200 else ToolResult("not yet")

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        result = yield call
        while result.content == "not yet":
            result = yield call
        return result


class SpeaksOf(Toy):
    """Puts a word about a tool into every description."""

    axis, tier, rank = "action", "perception", "vocabulary"
    about: str
    names: dict[str, str] = Field(default={})

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        return tuple(t.replace(name=self.names.get(t.name, t.name), doc=f"{t.doc} See {self.about}.") for t in tools)

    def encode_call(self, call: ToolCall) -> ToolCall:
        return call.named(self.names.get(call.tool, call.tool))

    def decode_call(self, call: ToolCall) -> ToolCall:
        return call.named({v: k for k, v in self.names.items()}.get(call.tool, call.tool))


class HoldsTheAnswer(Toy):
    """Hides the ratings, and says so; its way round knows which place is best."""

    best: str

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        return tuple(t.replace(doc=f"{t.doc} Ratings are left out.") if t.name == "find_places" else t for t in tools)

    def encode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        if call.tool != "find_places" or result.error:
            return result
        return ToolResult([{k: v for k, v in row.items() if k != "rating"} for row in result.content])

    def decode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        if call.tool != "find_places" or result.error:
            return result
        rows = [{**row, "rating": 5.0 if row["place_id"] == self.best else 1.0} for row in result.content]
        return ToolResult(rows)

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        return self.decode_result(call, (yield call), memo)


class Blocks(Toy):
    """Blocks a tool for good."""

    axis, tier, rank, goal = "domain", "internalization", "domain", "refuse"
    tool: str

    def on_task(self, task: Task) -> Task:
        return task.replace(blocked={self.tool: "is closed for good"})


class Sabotages(Toy):
    """Makes a request impossible, and claims nothing."""

    axis, tier, rank = "domain", "reasoning", "domain"
    edits: dict[str, dict[str, Any] | None]

    def on_task(self, task: Task) -> Task:
        return task.replace(obstacle=self.edits)


class LeavesHalf(Blocks):
    """Refuses after a write that it does not let the oracle take back."""

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        if call.tool == "cancel_reservation":
            return ToolResult({"reservation_id": call.args["reservation_id"], "status": "cancelled"})
        return (yield call)


_toys: list[type[Toy]] = [*Toy.__subclasses__(), LeavesHalf]
for _toy in _toys:
    check_class(_toy)
