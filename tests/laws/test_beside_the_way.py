"""What a kind does beside its one certified way: marks, remarks, echoes, leftovers; and kinds that are odd but fair."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import ClassVar, Self

import pytest

from crosswind.authoring import plugins
from crosswind.base.errors import Unfair
from crosswind.core import legends, marks, processes
from crosswind.core.audit import audit_kind
from crosswind.core.certify import certify
from crosswind.core.perturbation import Memo, Perturbation, Scene
from crosswind.core.registry import perturbations
from crosswind.core.types import Event, Flow, Task, ToolCall, ToolResult, Tools, ToolSpec, failed
from crosswind.perturbations.domain.moved_meanwhile import MovedMeanwhile
from tests.toys import Toy, poi, registered


class Bundles(Toy):
    """Lists come in two bundles; what lies in the first is drawn, or is the row that the way takes."""

    knows: ClassVar[bool] = False
    first: tuple[str, ...]

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        later = {str(v) for step in scene.gold for v in step.call.args.values()}
        rows = [row for s in scene.gold if isinstance(s.result.content, list) for row in s.result.content]
        ids = [row["place_id"] for row in rows if "place_id" in row]
        if len(ids) < 2:
            return None
        return cls(first=tuple(id for id in ids if id in later) if cls.knows else (rng.choice(ids),))

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        result = yield call
        if result.error or call.tool != "find_places":
            return result
        memo.fire()
        one = [row for row in result.content if row["place_id"] in self.first]
        return ToolResult({"first": one, "rest": [row for row in result.content if row not in one]})

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        result = yield call
        if result.error or call.tool != "find_places":
            return result
        return ToolResult([*result.content["first"], *result.content["rest"]])


class BundlesThatKnow(Bundles):
    knows: ClassVar[bool] = True


class Remarks(Toy):
    """Every row has a remark; `last` is that of the best-rated one."""

    last: ClassVar[str] = "usual entrance"

    def encode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        if result.error or call.tool != "find_places" or not result.content:
            return result
        best = max(result.content, key=lambda row: row["rating"])
        return ToolResult([{**r, "remark": self.last if r is best else "usual entrance"} for r in result.content])

    def decode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        if result.error or call.tool != "find_places":
            return result
        return ToolResult([{k: v for k, v in row.items() if k != "remark"} for row in result.content])


class RemarksThatAreFalse(Remarks):
    last: ClassVar[str] = "no longer in operation"


class Echo(Toy):
    """Look-ups repeat what they were asked, an id with `by` added to its last digit."""

    by: ClassVar[int] = 0

    def encode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        if result.error or "place_id" not in call.args:
            return result
        id = str(call.args["place_id"])
        return ToolResult({"for": {"place_id": f"{id[:-1]}{(int(id[-1]) + self.by) % 10}"}, "found": result.content})

    def decode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        return result if result.error or "place_id" not in call.args else ToolResult(result.content["found"])


class FalseEcho(Echo):
    by: ClassVar[int] = 1


class RefusedPolitely(Toy):
    """Where the world refuses a write, the first answer holds `words`, and the second the error."""

    words: ClassVar[str] = "not done yet; ask again"

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        result = yield call
        if not result.error or not memo.tools[call.tool].writes or memo.notes.get("said"):
            return result
        memo.fire()
        memo.notes["said"] = True
        return ToolResult({"status": self.words})

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        result = yield call
        if not result.error and isinstance(result.content, dict) and result.content.get("status") == self.words:
            return (yield call)
        return result


class RefusedAsDone(RefusedPolitely):
    words: ClassVar[str] = "done"


class Twice(Toy):
    """Look-ups are refused at the first call; `note` is added to their descriptions."""

    note: ClassVar[str] = " Make the same call twice: the first only opens the file."

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        return tuple(t.replace(doc=t.doc + self.note) if t.name == "place_details" else t for t in tools)

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        if call.tool != "place_details" or memo.notes.get(call.args["place_id"]):
            return (yield call)
        memo.fire()
        memo.notes[call.args["place_id"]] = True
        return failed("closed", "This file is closed.")

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        result = yield call
        return (yield call) if result.error and result.error.code == "closed" else result


class TwiceBesideADecoy(Twice):
    note: ClassVar[str] = " Chosen again and again as the best of its kind."


class InOneGo(Toy):
    """A code is spoiled by any other call before the reservation; `note` is added to the description."""

    note: ClassVar[str] = " Reserve right after it, without another call in between."

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        return tuple(t.replace(doc=t.doc + self.note) if t.name == "request_code" else t for t in tools)

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        memo.fire()
        if memo.notes.get("open") and call.tool != "reserve":
            memo.notes["spoiled"] = True
        if memo.notes.get("spoiled") and call.tool == "reserve":
            return failed("refused", "This is not possible any more.")
        memo.notes["open"] = call.tool == "request_code"
        return (yield call)


class InOneGoUnsaid(InOneGo):
    note: ClassVar[str] = " A service of the house."


class KeepsCount(Toy):
    """Notes in its class which places were asked for: `every` call, or each place once."""

    every: ClassVar[bool] = False
    met: ClassVar[list[str]] = []

    def encode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        if self.every or str(call.args) not in self.met:
            self.met.append(str(call.args))
        return result if result.error else ToolResult({"of": result.content})

    def decode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        return result if result.error else ToolResult(result.content["of"])


class KeepsEveryCall(KeepsCount):
    every: ClassVar[bool] = True
    met: ClassVar[list[str]] = []


class OnlyInDev(Twice):
    """Says what to do everywhere but in one split at one severity."""

    told: bool

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        return cls(told=not (severity == 4 and scene.task.split == "dev"))

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        return super().on_tools(tools, nth) if self.told else tools


class Live(Toy):
    """Beside a look-up stands another with higher figures; `note` is added to its description."""

    note: ClassVar[str] = " Gives estimates for next year."

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        plain = next(t for t in tools if t.name == "place_details")
        return (*tools, ToolSpec.new("place_details_2", plain.doc + self.note, dict(plain.params)))

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        memo.fire()
        if call.tool != "place_details_2":
            result = yield call
            return result if result.error else ToolResult({"of": result.content})
        result = yield call.named("place_details")
        return result if result.error else ToolResult({**result.content, "price": result.content["price"] + 3})

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        result = yield call
        return result if result.error else ToolResult(result.content["of"])


class LiveUnsaid(Live):
    note: ClassVar[str] = " Read off the live desk."


class Rivals(Live):
    """The description of the one that was there changes as well."""

    note: ClassVar[str] = " None of its figures are real."

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        more = " Its figures come from the register."
        return tuple(
            t.replace(doc=t.doc + more) if t.name == "place_details" else t for t in super().on_tools(tools, nth)
        )


class RivalsUnsaid(Rivals):
    note: ClassVar[str] = " A desk of the house."


class Tagged(Toy):
    """A price comes with a unit."""

    unit: ClassVar[str] = "euros"

    def encode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        if result.error or call.tool != "place_details":
            return result
        return ToolResult({**result.content, "price_unit": self.unit})

    def decode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        if result.error or call.tool != "place_details":
            return result
        return ToolResult({key: value for key, value in result.content.items() if key != "price_unit"})


class TaggedWrongly(Tagged):
    unit: ClassVar[str] = "hundredths"


class Letter(Toy):
    """The request stands in a letter that ends with `after`."""

    axis, tier, rank = "query", "perception", "wording"
    after: ClassVar[str] = "I look forward to your answer."

    def on_task(self, task: Task) -> Task:
        return task.briefed(query=f"This is my letter: {task.brief.query} {self.after}")


class LetterOfThanks(Letter):
    after: ClassVar[str] = "Your colleague has already seen to it. Thank you!"


class Rule(Toy):
    """The policy says how requests that cannot be met are told of."""

    axis, tier, rank = "domain", "internalization", "domain"
    rule: ClassVar[str] = "If a tool refuses, tell the user so in a kind way."

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        return cls() if scene.task.refuse else None

    def on_task(self, task: Task) -> Task:
        return task.briefed(policy=f"{task.brief.policy} {self.rule}")


class RuleToSayDone(Rule):
    rule: ClassVar[str] = "If a tool refuses, tell the user that it is done."


PLACES = ["best_price", "best_price_asked", "cheaper_of_two", "hold_visit", "barred_customer"]


@pytest.mark.parametrize(
    ("cls", "law", "words"),
    [
        (BundlesThatKnow, "leak", "the right row, and no other, stands under first"),
        (Bundles, "", ""),
        (RemarksThatAreFalse, "secrets", "with 'no longer in', and the way goes on with it"),
        (Remarks, "", ""),
        (FalseEcho, "secrets", "and shows place_id="),
        (Echo, "", ""),
        (RefusedAsDone, "secrets", "the world refused 'reserve'"),
        (RefusedPolitely, "", ""),
        (TwiceBesideADecoy, "secrets", "'place_details' must be called once more"),
        (Twice, "", ""),
        (InOneGoUnsaid, "slack", "before 'reserve', which does no harm"),
        (InOneGo, "", ""),
        (KeepsEveryCall, "value", "KeepsEveryCall.met changes from episode to episode"),
        (KeepsCount, "", ""),
        (LiveUnsaid, "secrets", "place_details_2, which is added, shows price="),
        (Live, "", ""),
        (RivalsUnsaid, "secrets", "nothing says which counts"),
        (Rivals, "", ""),
        (TaggedWrongly, "secrets", "in 'hundredths', and the figure is as the records have it"),
        (Tagged, "", ""),
        (LetterOfThanks, "kept", "the goal is what it was"),
        (Letter, "", ""),
        (RuleToSayDone, "kept", "tell the user that it is done"),
        (Rule, "", ""),
        (OnlyInDev, "secrets", "(drawn for poi/"),
    ],
)
def test_a_kind_is_true_beside_its_way(cls: type[Perturbation], law: str, words: str) -> None:
    families = None if issubclass(cls, Bundles) else PLACES
    with registered(cls):
        complaints = [c for c in audit_kind("toy", poi(), families) if c.law != "applies"]
    if law:
        assert complaints, cls
        assert complaints[0].law == law, complaints
        assert words in complaints[0].reason
    else:
        assert complaints == []


def test_a_mark_by_chance_is_none() -> None:
    mark: marks.Mark = ("has", "flag 'x'")
    assert marks.tell([(2, {mark}, set())] * 5) == ""  # one in 32 by chance
    assert marks.tell([(8, {mark}, set())] * 5) == "in 5 of 5 lists the right row, and no other, has flag 'x'"
    assert marks.tell([(8, {mark}, set()), *[(8, set(), {mark})] * 4] * 5) == ""
    assert marks.tell([(8, {mark}, set()), (8, set(), set())] * 5) != ""


# ---------------------------------------------------------------- odd and fair


class Columns(Toy):
    """Lists of records come column by column, each under its name, or without one."""

    named: ClassVar[bool] = True

    def encode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        rows = result.content
        if call.tool != "find_places" or not rows:
            return result
        columns = {key: [row[key] for row in rows] for key in rows[0]}
        return ToolResult({"columns": columns if self.named else [*columns.values()]})

    def decode_result(self, call: ToolCall, result: ToolResult, memo: Memo) -> ToolResult:
        if call.tool != "find_places" or result.error or not isinstance(result.content, dict):
            return result
        columns = [*(result.content["columns"].values() if self.named else result.content["columns"])]
        return ToolResult(
            [dict(zip(("place_id", "name", "rating"), row, strict=True)) for row in zip(*columns, strict=True)]
        )


class ColumnsWithoutNames(Columns):
    named: ClassVar[bool] = False


class Check(Toy):
    """The details of a place want the end of its id once more."""

    note: ClassVar[str] = "The last three characters of place_id, once more."

    def on_tools(self, tools: Tools, nth: int) -> Tools:
        return tuple(
            t.with_param("check", "string", self.note, required=True) if t.name == "place_details" else t for t in tools
        )

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        if call.tool != "place_details":
            return (yield call)
        memo.fire()
        if call.args["check"] != str(call.args["place_id"])[-3:]:
            return failed("refused", "The check is wrong.")
        return (yield call.without("check"))

    def perform(self, call: ToolCall, memo: Memo) -> Flow:
        if call.tool != "place_details":
            return (yield call)
        return (yield call.with_args(check=str(call.args["place_id"])[-3:]))


class CheckUnsaid(Check):
    note: ClassVar[str] = "A check."


@pytest.mark.parametrize(
    ("cls", "law"),
    [(Columns, ""), (ColumnsWithoutNames, "secrets"), (Check, ""), (CheckUnsaid, "grounded")],
)
def test_what_looks_odd_is_fair_where_it_is_said(cls: type[Perturbation], law: str) -> None:
    with registered(cls):
        complaints = [c for c in audit_kind("toy", poi(), ["best_price"]) if c.law != "applies"]
    assert [c.law for c in complaints] == ([law] if law else []), complaints


@pytest.mark.parametrize(("text", "right"), [("written in base 7", True), ("written in base 9", False), ("", False)])
def test_a_legend_may_name_any_base(text: str, right: bool) -> None:
    assert legends.Legend([text], ()).number("price", ["105"], 54, ()) is right


def test_values_are_made_as_a_text_says() -> None:
    assert "745" in legends.made_of("The last three characters of the id.", ["P886745"])
    assert "88" in legends.made_of("Its first 2 digits.", ["P886745"])
    assert "7" in legends.made_of("The length of the id.", ["P886745"])
    assert "38" in legends.made_of("The sum of its digits.", ["P886745"])
    assert "745" not in legends.made_of("A check.", ["P886745"])


def test_rows_that_move_on_the_way_do_not_come_to_tie() -> None:
    """The price of a place comes down to that of the cheapest: of the two, the goal would accept one."""
    task = poi().task("cheapest_visit", 0, split="train")
    row = poi().state(task).start("places", "P162570") or {}

    def moved(price: int) -> MovedMeanwhile:
        was, now = ({"places/P162570": {**row, "price": value}} for value in (42, price))
        return MovedMeanwhile(events=(Event(column="places.price", was=was, now=now, text="It changed."),))

    certify(poi(), task, (moved(9),))
    with pytest.raises(Unfair, match="ties: with the rows that the layers show in another order"):
        certify(poi(), task, (moved(11),))


BY_FILE = """
from pathlib import Path
from pathlib import Path
from random import Random
from typing import Literal
from crosswind import Perturbation, ToolResult, perturbation

@perturbation
class K(Perturbation):
    kind: Literal["saved_{name}"] = "saved_{name}"
    axis, tier, rank = "observation", "interaction", "form"
    key: int

    @classmethod
    def sample(cls, scene, rng, severity):
        return cls(key=Random({seed}).randrange(10**6))

    def encode_result(self, call, result, memo):
        return result if result.error else ToolResult({{f"at{{self.key}}": result.content}})

    def decode_result(self, call, result, memo):
        return result if result.error else ToolResult(result.content[f"at{{self.key}}"])
"""


@pytest.mark.parametrize(
    ("name", "seed", "fair"), [("late", "Path(__file__).stat().st_mtime_ns", False), ("rightly", "severity", True)]
)
def test_a_draw_does_not_depend_on_when_its_file_was_saved(tmp_path: Path, name: str, seed: str, *, fair: bool) -> None:
    file = tmp_path / f"saved_{name}.py"
    file.write_text(BY_FILE.format(name=name, seed=seed))
    plugins.load(file)
    try:
        said = processes.differs(f"saved_{name}", "perturbation")
    finally:
        perturbations.remove(f"saved_{name}")
    assert (said == "") == fair
    assert fair or "the times of files" in said
