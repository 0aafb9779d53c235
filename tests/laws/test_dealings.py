"""What layers do behind the back of an agent is refused: silent parts, limits, denials; said openly it is fair."""

from __future__ import annotations

from random import Random
from typing import Any, ClassVar, Self

import pytest

from crosswind.core.audit import audit_kind
from crosswind.core.perturbation import Memo, Perturbation, Scene
from crosswind.core.types import Flow, Param, Task, ToolCall, ToolResult, Tools, failed
from tests.toys import Toy, poi, registered


class Says(Toy):
    """Adds a sentence to the descriptions of some tools."""

    says: ClassVar[dict[str, str]] = {}

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        return tuple(t.replace(doc=f"{t.doc} {self.says[t.name]}") if t.name in self.says else t for t in tools)


class InPairs(Says):
    """A list comes two rows at a time: each time the call is made, the next two."""

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        result = yield call
        if call.tool != "find_places" or result.error:
            return result
        memo.fire()
        key = repr(sorted(call.args.items()))
        first = memo.notes.get(key, 0)
        memo.notes[key] = first + 2 if first < len(result.content) else 0
        return ToolResult(result.content[first : first + 2])

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        if call.tool != "find_places":
            return (yield call)
        rows: list[Any] = []
        while (part := (yield call)).error is None and part.content:
            rows += part.content
        return part if part.error else ToolResult(rows)


class InPairsAndSaid(InPairs):
    says: ClassVar[dict[str, str]] = {
        "find_places": "Gives two rows; the same call again gives more, until none is left."
    }


class ClosesSoon(Says):
    """A few calls after the shortest way nothing answers; results stand in a frame."""

    last: int

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        return cls(last=len(scene.gold) + 2)

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        if memo.nth >= self.last:
            return failed("closed", "Nothing more can be done today.")
        result = yield call
        if result.error:
            return result
        memo.fire()
        return ToolResult({"reply": result.content})

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        result = yield call
        return result if result.error else ToolResult(result.content["reply"])


class ClosesSoonAndSaid(ClosesSoon):
    def on_task(self, task: Task) -> Task:
        return task.briefed(policy=f"{task.brief.policy} Only {self.last} calls are allowed for one request.")


class LostAnswer(Toy):
    """A reservation is made, and the answer to it is an error."""

    text: ClassVar[str] = "No answer came in time."

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        able = any(s.call.tool == "reserve" and not s.result.error for s in scene.gold)
        return cls() if able and "list_reservations" in scene.tools else None

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        result = yield call
        if call.tool != "reserve" or result.error or memo.notes.get("done"):
            return result
        memo.notes["done"] = True
        memo.fire()
        return failed("unclear", self.text)

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        if call.tool != "reserve":
            return (yield call)
        look = ToolCall("list_reservations", {"customer_id": call.args["customer_id"]})
        before = yield look
        result = yield call
        if before.error or result.error is None or result.error.code != "unclear":
            return result
        known = [row["reservation_id"] for row in before.content]
        made = [row for row in (yield look).content if row["reservation_id"] not in known]
        return ToolResult({key: made[0][key] for key in ("reservation_id", "status")}) if made else result


class FalseDenial(LostAnswer):
    text: ClassVar[str] = "The reservation was not made."


class Crossed(Says):
    """Two parameters of a tool mean each other."""

    says: ClassVar[dict[str, str]] = {"list_slots": "Arguments are checked with care."}

    def swapped(self, call: ToolCall) -> ToolCall:
        if call.tool != "list_slots" or not {"place_id", "date"} <= call.args.keys():
            return call
        return call.with_args(place_id=call.args["date"], date=call.args["place_id"])

    def encode_call(self, call: ToolCall) -> ToolCall:
        return self.swapped(call)

    def decode_call(self, call: ToolCall) -> ToolCall:
        return self.swapped(call)


class CrossedAndSaid(Crossed):
    says: ClassVar[dict[str, str]] = {
        "list_slots": "By an old mistake, date takes the place_id and place_id takes the date."
    }


class Tax(Toy):
    """The policy speaks of tax, and nothing else changes."""

    axis, tier, rank = "query", "reasoning", "query"
    receipt_source: ClassVar[Any] = "query"
    words: ClassVar[str] = "Prices are gross: deduct 19 percent of tax before you tell a customer what something costs."

    def on_task(self, task: Task) -> Task:
        return task.briefed(policy=f"{task.brief.policy} {self.words}")


class TaxIncluded(Tax):
    words: ClassVar[str] = "Prices are gross, with a tax of 19 percent in them, as customers know."


class Companion(Tax):
    """The user asks for something more, and the goal knows nothing of it."""

    def on_task(self, task: Task) -> Task:
        return task.briefed(query=f"{task.brief.query} {self.more}")

    more: ClassVar[str] = "A friend comes along, so please count that in on top of it."


class CompanionInPassing(Companion):
    more: ClassVar[str] = "A friend of mine was there last year and liked it."


class Rehearsed(Toy):
    """Cancelling wants to be told whether it is a rehearsal."""

    note: ClassVar[str] = "With 'yes' nothing is done and the call is only checked; with 'no' it is carried out."

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        return cls() if "cancel_reservation" in scene.path else None

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        param = Param("string", self.note, True, ("yes", "no"))
        return tuple(
            t.replace(params={**t.params, "rehearsal": param}) if t.name == "cancel_reservation" else t for t in tools
        )

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        if call.tool != "cancel_reservation":
            return (yield call)
        memo.fire()
        if call.args["rehearsal"] != "no":
            return ToolResult({"reservation_id": call.args["reservation_id"], "status": "rehearsed"})
        return (yield call.without("rehearsal"))

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        return (yield call.with_args(rehearsal="no") if call.tool == "cancel_reservation" else call)


class RehearsedUnexplained(Rehearsed):
    note: ClassVar[str] = "The rehearsal."


UNFAIR: list[tuple[type[Perturbation], str, str]] = [
    (InPairs, "secrets", "that there is more to come"),
    (ClosesSoon, "slack", "nothing shown sets a limit"),
    (FalseDenial, "secrets", "'reserve' was done"),
    (Crossed, "secrets", "no text shown for it speaks of both"),
    (Tax, "kept", "deduct 19 percent"),
    (Companion, "kept", "count that in"),
    (RehearsedUnexplained, "grounded", "'yes' as well"),
]
FAIR: list[type[Perturbation]] = [
    InPairsAndSaid,
    ClosesSoonAndSaid,
    LostAnswer,
    CrossedAndSaid,
    TaxIncluded,
    CompanionInPassing,
    Rehearsed,
]


@pytest.mark.parametrize(("kind", "law", "words"), UNFAIR, ids=lambda x: getattr(x, "__name__", ""))
def test_what_is_done_behind_the_back_is_refused(kind: type[Perturbation], law: str, words: str) -> None:
    with registered(kind):
        complaints = audit_kind("toy", poi())
    assert [c.law for c in complaints] == [law], list(map(str, complaints))
    assert words in complaints[0].reason


@pytest.mark.parametrize("kind", FAIR, ids=lambda kind: kind.__name__)
def test_what_is_said_openly_is_fair(kind: type[Perturbation]) -> None:
    with registered(kind):
        assert audit_kind("toy", poi()) == []
