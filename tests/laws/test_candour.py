"""What an agent may find beside the certified way is true: rows, look-ups that nobody needs, advice, other splits."""

from __future__ import annotations

from random import Random
from typing import Any, ClassVar, Self

import pytest

from crosswind.base.errors import Unfair
from crosswind.core import promises
from crosswind.core.audit import audit_domain, audit_kind
from crosswind.core.footprints import look_ups
from crosswind.core.oracle import Walks
from crosswind.core.perturbation import Memo, Perturbation, Scene
from crosswind.core.types import Flow, ToolCall, ToolResult, failed
from tests.laws.test_broken_domains import Load
from tests.laws.test_broken_domains import load as load
from tests.toys import Toy, poi, registered


class OneRowMore(Toy):
    """A search holds one row more, which is no place; the solution knows which."""

    own: ClassVar[dict[str, Any]] = {}

    def encode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        if result.error or call.tool != "find_places":
            return result
        return ToolResult([*result.content, {**result.content[-1], "place_id": "P000001", **self.own}])

    def decode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        if result.error or call.tool != "find_places":
            return result
        return ToolResult([row for row in result.content if row["place_id"] != "P000001"])


class OneRowMoreAndMarked(OneRowMore):
    own: ClassVar[dict[str, Any]] = {"note": "advertisement"}


class Framed(Toy):
    """Results stand in a frame; figures of tools that the way does not need are others by `shift`."""

    shift: ClassVar[int] = 0
    path: tuple[str, ...]

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        return cls(path=tuple(sorted(set(scene.path))))

    def encode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        if result.error:
            return result
        return ToolResult({"reply": result.content if call.tool in self.path else moved(result.content, self.shift)})

    def decode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        return result if result.error else ToolResult(result.content["reply"])


class FramedAndWrongElsewhere(Framed):
    shift: ClassVar[int] = 1


def moved(content: Any, by: int) -> Any:
    if isinstance(content, dict):
        return {key: moved(value, by) for key, value in content.items()}
    if isinstance(content, list):
        return [moved(value, by) for value in content]
    return content + by if isinstance(content, (int, float)) and not isinstance(content, bool) else content


class FailsOnce(Toy):
    """The first call fails, and the same call works."""

    text: ClassVar[str] = "The line is busy. Try again."

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        if memo.notes.setdefault("left", True):
            memo.notes["left"] = False
            memo.fire()
            return failed("busy", self.text)
        return (yield call)

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        result = yield call
        return (yield call) if result.error and result.error.code == "busy" else result


class FailsForGood(FailsOnce):
    text: ClassVar[str] = "This service was closed for good. Do not try again."


class ShiftedInTraining(Toy):
    """Figures are others in training, by what nobody is told; elsewhere results stand in a frame alone."""

    by: int

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        return cls(by=rng.choice((3, 5, 8)) if scene.task.split == "train" else 0)

    def encode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        return result if result.error else ToolResult({"reply": moved(result.content, self.by)})

    def decode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        return result if result.error else ToolResult(moved(result.content["reply"], -self.by))


@pytest.mark.parametrize(
    ("cls", "words"),
    [
        (OneRowMore, "of them: nothing tells that"),
        (OneRowMoreAndMarked, None),
        (FramedAndWrongElsewhere, "off the way"),
        (Framed, None),
        (FailsForGood, "'for good'"),
        (FailsOnce, None),
        (ShiftedInTraining, "would mean"),
    ],
)
def test_what_stands_beside_the_way_is_true(cls: type[Perturbation], words: str | None) -> None:
    with registered(cls):
        complaints = audit_kind("toy", poi(), ["best_price"])
    assert (words is None) == (complaints == []), complaints
    assert words is None or (complaints[0].law == "secrets" and words in complaints[0].reason)


# ---------------------------------------------------------------- domains

LENT = ("(((_, id), row),) = loan(self.state", 'self.__dict__["lent"] = 1\n        (((_, id), row),) = loan(self.state')
RECORD = 'return {"standing": self.found("members", member_id, "member")["standing"]}'
NOTED = (LENT, (RECORD, RECORD.replace("}", ', "lent": self.__dict__.get("lent", 0)}')))
WRONG = (('return {"loan_id": id, "status": "out"}', 'return {"loan_id": id, "status": "queued"}'),)


@pytest.mark.parametrize(
    ("edits", "law", "words"),
    [
        (NOTED, "footprint", "what another tool noted elsewhere"),
        (WRONG, "secrets", "says status='queued' and has written 'out'"),
    ],
)
def test_a_tool_shows_the_rows_as_they_stand(
    load: Load, edits: tuple[tuple[str, str], ...], law: str, words: str
) -> None:
    assert any(c.law == law and words in c.reason for c in audit_domain(load(*edits)))


def test_a_value_of_before_a_write_is_stale(load: Load) -> None:
    bar = ('self.state.put("loans", id, row)', 'self.state.put("loans", id, row)\n        self.spend(member_id)')
    spend = (
        '    @tool(reads=["loans.status"]',
        '    def spend(self, member_id):\n        row = self.state.row("members", member_id)\n'
        '        self.state.put("members", member_id, {**row, "standing": "busy"})\n\n    @tool(reads=["loans.status"]',
    )
    fresh = (
        bar, spend,
        ('"loans.status=out"]', '"loans.status=out", "members.standing"]'),
        ('["standing"] != "good"', '["standing"] not in ("good", "busy")'),
        ('reads=[], writes', 'reads=["members.standing"], writes'),
    )  # fmt: skip
    stale = (RECORD, 'return {"standing": self.state.start("members", member_id)["standing"]}')
    for edits, words in (((*fresh, stale), "standing='good'"), (fresh, "")):
        domain = load(*edits)
        tasks = [domain.task("lend_best", n) for n in range(3)]
        before = ("member_record", "member_id")
        found = look_ups(domain, tasks[0], Walks(domain, tasks[0]).clean.calls)
        assert any(call.tool == before[0] and call.args[before[1]] for call in found)
        if words:
            with pytest.raises(Unfair, match=words):
                promises.as_rows_stand(domain, tasks)
        else:
            promises.as_rows_stand(domain, tasks)


@pytest.mark.parametrize(
    ("note", "words"),
    [
        ("Id, such as IT-12.", "'IT-12' as an example"),
        ("Id, such as T000012.", ""),
        ("Id, as in a letter.", ""),
    ],
)
def test_an_example_in_a_note_has_the_form_that_is_sent(load: Load, note: str, words: str) -> None:
    read = '@tool(reads=["items.kind,fee,shed"]'
    found = audit_domain(load((read, f'{read}, docs={{"item_id": "{note}"}}')), ["best_fee"])
    assert [c for c in found if c.law == "mentions" and words in c.reason] if words else found == []


@pytest.mark.parametrize(("limit", "fair"), [("at most 2", False), ("at most 4", True), ("no fewer than 5", False)])
def test_what_is_sent_keeps_to_the_limit_that_a_note_names(load: Load, limit: str, *, fair: bool) -> None:
    domain = load(
        (
            "def lend_item(self, item_id: str, member_id: str)",
            "def lend_item(self, item_id: str, member_id: str, weeks: int)",
        ),
        ('undo=("return_item", "loan_id"))', f'undo=("return_item", "loan_id"), docs={{"weeks": "Weeks, {limit}."}})'),
        (
            '{"item_id": item, "member_id": member_id})).content',
            '{"item_id": item, "member_id": member_id, "weeks": 3})).content',
        ),
    )
    task = domain.task("lend_best", 0)
    walked = [(task, Walks(domain, task).clean)]
    if fair:
        promises.as_described(walked)
    else:
        with pytest.raises(Unfair, match=limit):
            promises.as_described(walked)
