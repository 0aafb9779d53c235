"""Ending an episode by the typed tool `finish`, as agents and anyone who reads their runs see it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

import crosswind as cw
from crosswind.core.draw import Drawn, draw
from crosswind.core.endings import causes
from crosswind.core.finish import FINISH_SPEC
from crosswind.core.registry import domains
from crosswind.core.session import Session
from crosswind.core.types import FINISH, SAY, Message, Request, ToolCall, Tools, Trajectory, Verdict
from crosswind.core.world import bad_arguments
from crosswind.episodes.play import judge, play
from crosswind.runs.rescore import rescore
from crosswind.runs.store import EPISODES

POI = domains["poi"]


def drawn_of(family: str, *kinds: str, seed: int = 3) -> Drawn:
    return draw(POI, POI.task(family, seed), kinds, 0)


class Scripted:
    """The certified way, then what it was given to do; a plain text is said, anything else goes to `finish`."""

    def __init__(self, drawn: Drawn, *ends: Any) -> None:
        steps = [step.call for step in drawn.certificate.gold.steps if step.call.tool not in (SAY, FINISH)]
        self.calls: list[Any] = [*steps, *(end if isinstance(end, str) else ToolCall(FINISH, end) for end in ends)]
        self.chat: Sequence[Message] = ()

    async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
        self.chat = chat
        call = self.calls.pop(0) if self.calls else "I have nothing more to say."
        if isinstance(call, str):
            return Message(role="assistant", content=call)
        requests = (Request(id=f"call_{len(chat)}", tool=call.tool, args=call.args),)
        return Message(role="assistant", requests=requests)


def ended(drawn: Drawn, *ends: Any) -> tuple[Trajectory, Verdict]:
    trajectory = asyncio.run(play(drawn, Scripted(drawn, *ends), "scripted", ending="finish"))
    return trajectory, judge(trajectory, POI)


def failed(verdict: Verdict) -> list[str]:
    return [check.name for check in verdict.checks if not check.passed]


# ---------------------------------------------------------------- what is shown


@pytest.mark.parametrize(
    "kinds", [(), ("semantic_rename",), ("foreign_interface",), ("missing_tool",), ("schema_noise",)]
)
def test_the_schema_is_the_same_everywhere(kinds: tuple[str, ...]) -> None:
    certificate = drawn_of("book_visit", *kinds).certificate
    by_finish = Session.of(POI, certificate.task, certificate.layers, ending="finish").tools()
    in_words = Session.of(POI, certificate.task, certificate.layers).tools()
    assert by_finish == (*in_words, FINISH_SPEC)


@pytest.mark.parametrize("domain", ["poi", "workspace", "banking", "retail", "medical", "operations"])
def test_the_oracle_passes_with_either_ending(domain: str) -> None:
    for family in domains[domain].families:
        drawn = cw.draw(domain, family, seed=7)
        for ending in ("finish", "words"):
            episode = cw.play("oracle", drawn, ending=ending)
            assert episode.passed, (family, ending, episode.checks)
            assert episode.ending == ending
            assert (episode.finish is not None) == (ending == "finish")


# ---------------------------------------------------------------- what is right

PRICE = drawn_of("best_price")
VALUE: Any = PRICE.domain.family(PRICE.base).answer(PRICE.base, POI.state(PRICE.base), POI.state(PRICE.base))[0]
NAME, ID, RIVAL = VALUE.about[0], VALUE.about[1], VALUE.rivals[0]
MONEY = {"kind": "money", "value": VALUE.value, "unit": "EUR"}


@pytest.mark.parametrize(
    ("answer", "passes"),
    [
        ([MONEY], True),
        ([{**MONEY, "value": f"{VALUE.value}.00", "unit": "euros", "about": f"{NAME} ({ID})"}], True),
        ([{**MONEY, "unit": None}, {"kind": "name", "value": NAME.upper()}, {"kind": "id", "value": ID}], True),
        ([{**MONEY, "about": f"the best museum, {NAME}"}], True),
        ([], False),
        ([{**MONEY, "value": VALUE.value + 1}], False),
        ([{**MONEY, "unit": "USD"}], False),
        ([{"kind": "number", "value": VALUE.value}], False),
        ([{**MONEY, "about": RIVAL}], False),
        ([{**MONEY, "about": "Zorblax"}], False),
        ([MONEY, {**MONEY, "value": VALUE.value + 1}], False),
        ([MONEY, {"kind": "name", "value": RIVAL}], False),
        ([MONEY, {"kind": "time", "value": "03:07"}], False),
    ],
)
def test_values_are_compared_by_type_unit_and_entity(answer: list[dict[str, Any]], passes: bool) -> None:
    _, verdict = ended(PRICE, {"status": "done", "answer": answer})
    assert failed(verdict) == ([] if passes else ["answer"])


@pytest.mark.parametrize(
    ("value", "unit", "passes"),
    [
        (53, "EUR per ticket", True),
        ("€53", "euros", True),
        (5300, "cents", True),
        ("5300 cents of a euro", "", True),
        (53, "cents", False),
        ("53 ct", "", False),
        (53, "usd", False),
        ("CA$53", "", False),
        (53, "US dollars", False),
        (53, "thousand EUR", False),
        (53, "kEUR", False),
        (53, "bananas", False),
        (53, "EUR per banana", False),
    ],
)
def test_money_is_in_its_currency(value: Any, unit: str, passes: bool) -> None:
    assert (VALUE.value, VALUE.about[0]) == (53, "Malkuzel")
    _, verdict = ended(PRICE, {"status": "done", "answer": [{"kind": "money", "value": value, "unit": unit}]})
    assert failed(verdict) == ([] if passes else ["answer"])


@pytest.mark.parametrize("value", ["not 53", "under 53", "<53", "53 or more", "53?", "≥53", "about 53", "53-60"])
def test_a_number_with_other_words_is_an_error(value: str) -> None:
    trajectory, _ = ended(PRICE, {"status": "done", "answer": [{**MONEY, "value": value}]})
    assert "nothing but its unit or currency" in trajectory.steps[-1]["result"]["error"]["text"]
    assert trajectory.finish is None


@pytest.mark.parametrize(
    ("about", "passes"),
    [
        *((text, True) for text in ("Entry fee", "Admission", "Booking reference", "the highest-rated museum")),
        *((text, True) for text in ("Adult ticket", "Kelzewick", f"museum {ID}")),
        *((text, False) for text in (f"not {NAME}", f"all museums except {NAME}", "the second-best museum")),
        *((text, False) for text in ("the lowest-rated museum", RIVAL.lower(), "P0000001")),
    ],
)
def test_about_names_the_right_thing_or_nothing_in_particular(about: str, passes: bool) -> None:
    _, verdict = ended(PRICE, {"status": "done", "answer": [{**MONEY, "about": about}]})
    assert failed(verdict) == ([] if passes else ["answer"])


HELD, MOVED, TOTAL = ("id", "R0982146"), ("time", "08:30"), ("money", 64)


@pytest.mark.parametrize(
    ("family", "entries", "passes"),
    [
        *(
            ("hold_visit", [("id", text)], True)
            for text in ("Reservation R0982146", "R-0982146", "booking no. r0982146")
        ),
        *(("hold_visit", [("id", text)], False) for text in ("R0982147", "not R0982146", "R0982146 or R0982147")),
        *(("hold_visit", [HELD, one], True) for one in (("choice", "Booked"), ("choice", "held"), ("number", 2))),
        ("hold_visit", [HELD, ("yes_no", False, "paid")], True),
        ("hold_visit", [HELD, ("yes_no", True, "paid")], False),
        ("hold_visit", [HELD, ("choice", "paid")], False),
        ("hold_visit", [HELD, ("money", 2)], False),  # seats
        ("cancel_visit", [("choice", "canceled")], True),
        ("move_visit", [MOVED, ("choice", "moved"), ("date", "2031-02-11", "old date")], True),
        ("move_visit", [MOVED, ("date", "2031-02-12", "old date")], False),
        ("move_visit", [MOVED, ("date", "2031-02-11")], False),
        ("total_price", [TOTAL, ("name", "Torkulith"), ("money", 10, "Torkulith")], True),
        ("total_price", [TOTAL, ("money", 10, "Perdilith")], False),
    ],
)
def test_what_else_is_reported_must_not_be_false(family: str, entries: list[Any], passes: bool) -> None:
    answer = [dict(zip(("kind", "value", "about"), one, strict=False)) for one in entries]
    _, verdict = ended(drawn_of(family), {"status": "done", "answer": answer})
    assert failed(verdict) == ([] if passes else ["answer"])


@pytest.mark.parametrize(
    "path",
    "poi/swap_visit workspace/swap_meeting banking/replace_payment retail/swap_purchase medical/swap_consultation "
    "operations/replace_change".split(),
)
def test_numbers_that_the_policy_asks_for_may_be_reported(path: str) -> None:
    domain = domains[path.partition("/")[0]]
    drawn = cw.draw(*path.split("/"), seed=3)
    gold, made = drawn.certificate.gold, list[str]()
    for step in gold.steps:
        if domain.world_class.entries[step.call.tool].effects:
            made += [value for value in step.result.content.values() if any(c.isdigit() for c in value)]
    assert len(made) > 3
    right = [value.model_dump() for value in gold.finish.answer]
    for ids, passes in ((made, True), ([made[0][:-1] + "x"], False)):
        answer = [*right, *({"kind": "id", "value": id} for id in ids)]
        trajectory = asyncio.run(
            play(drawn, Scripted(drawn, {"status": "done", "answer": answer}), "a", ending="finish")
        )
        assert (judge(trajectory, domain).outcome == "pass") == passes


def test_words_in_the_message_do_not_count_as_values() -> None:
    trajectory, verdict = ended(PRICE, {"status": "done", "message": PRICE.certificate.gold.final})
    assert failed(verdict) == ["answer"]
    assert trajectory.final == PRICE.certificate.gold.final


@pytest.mark.parametrize(
    ("family", "kinds", "right"),
    [
        ("sold_out", (), {"none_available"}),
        ("barred_customer", (), {"not_allowed"}),
        ("best_price", ("unsolvable",), {"not_found", "none_available"}),
        ("cancel_visit", ("missing_tool",), {"tool_unavailable"}),
        ("best_price", ("fatal_error",), {"tool_unavailable", "information_missing"}),
    ],
)
def test_the_cause_of_a_refusal_is_compared_with_the_facts(
    family: str, kinds: tuple[str, ...], right: set[str]
) -> None:
    drawn = drawn_of(family, *kinds)
    for reason in ("not_found", "none_available", "not_allowed", "tool_unavailable", "information_missing"):
        trajectory, verdict = ended(drawn, {"status": "cannot", "reason": reason})
        assert trajectory.ended == "refusal"
        assert failed(verdict) == ([] if reason in right else ["reason"]), reason
    assert "refused" in failed(ended(drawn, {"status": "done"})[1])


def test_a_total_of_nothing_is_honest() -> None:
    drawn = drawn_of("total_price", "unsolvable")
    for value, passes in ((0, True), (5, False)):
        _, verdict = ended(drawn, {"status": "done", "answer": [{"kind": "money", "value": value}]})
        assert (verdict.outcome == "pass") == passes
    assert ended(drawn, {"status": "cannot", "reason": "none_available"})[1].outcome == "pass"


def test_figures_that_are_only_looked_for_are_not_found_rather_than_forbidden() -> None:
    retail = domains["retail"]
    task = retail.task("restock_date", 3)
    some = retail.family(task).obstacles(task, retail.state(task), Random(1))
    few = next(o for o in some if any(key.startswith("shipments/") for key in o))
    assert causes(retail, task.replace(obstacle=few)) == ["not_found", "none_available"]


def test_a_refusal_in_words_gives_no_cause() -> None:
    drawn = drawn_of("sold_out")
    trajectory, verdict = ended(drawn, "I cannot do this: the moon is full.")
    assert failed(verdict) == ["reason"]
    assert trajectory.ended == "refusal"
    assert cw.play(lambda query, tools: "I cannot do this.", drawn, ending="words").passed


def test_an_episode_without_an_end_has_no_final_message() -> None:
    [check] = [check for check in ended(PRICE, "")[1].checks if check.name == "finished"]
    assert check.why == "there is no final message"


def test_a_refusal_where_the_task_can_be_done_fails() -> None:
    assert "finished" in failed(ended(PRICE, {"status": "cannot", "reason": "not_found"})[1])


# ---------------------------------------------------------------- how it goes on


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        ([1], "must be an object"),
        ({"status": "finished"}, "must be one of done, cannot"),
        ({"status": "cannot"}, "missing argument 'reason'"),
        ({"status": "done", "answer": [{"kind": "date", "value": "17.02.2031"}]}, "a date such as 2031-05-03"),
        ({"status": "done", "answer": [{"kind": "number", "value": "44,5"}]}, "a number such as 12"),
        ({"status": "done", "answer": [{"kind": "price", "value": 3}]}, "'answer[0].kind' must be one of"),
        ({"status": "done", "answer": [{"kind": "number", "value": 10**400}]}, "a number such as 12"),
        ({"status": "done", "answer": [{"kind": "money", "value": -(10**400)}]}, "a number such as 12"),
        ({"status": "done", "answer": [{"kind": "number", "value": float("nan")}]}, "a number such as 12"),
        ({"status": "done", "answer": [{"kind": "number", "value": float("inf")}]}, "a number such as 12"),
        ({"status": "done", "answer": [{"kind": "id", "value": 10**5000}]}, "must be a id of at most"),
    ],
)
def test_bad_arguments_are_an_error_and_the_episode_goes_on(args: Any, complaint: str) -> None:
    trajectory, verdict = ended(PRICE, args, {"status": "done", "answer": [MONEY]})
    step = trajectory.steps[-1]
    assert step["call"]["tool"] == FINISH
    assert complaint in step["result"]["error"]["text"]
    assert verdict.outcome == "pass"
    again, _ = ended(PRICE, *[args] * 50)
    assert (again.ended, len(again.steps)) == ("budget", again.budget)


@pytest.mark.parametrize(("args", "kind"), [((1,), "array"), ({1}, "set"), (None, "null"), (object, "type")])
def test_arguments_that_are_no_object_are_named_by_their_type(args: object, kind: str) -> None:
    assert bad_arguments({}, args) == f"arguments must be an object, got {kind}"


def test_a_change_of_mind_is_the_result_of_finish() -> None:
    drawn = drawn_of("hold_visit", "changed_mind")
    change = drawn.certificate.task.changes[0].words

    agent = Scripted(drawn)
    agent.calls = [ToolCall(FINISH, {"status": "done"}), ToolCall(FINISH, {"status": "done"})]
    trajectory = asyncio.run(play(drawn, agent, "hasty", ending="finish"))
    assert agent.chat[3] == Message(role="tool", content=change, request_id="call_2")
    assert [step["result"]["content"] for step in trajectory.steps] == [change]
    assert trajectory.receipts[0].seen
    assert cw.play("oracle", drawn, ending="finish").passed


def test_calls_after_finish_in_one_message_are_not_made() -> None:
    drawn = drawn_of("cancel_visit")
    [*before, cancel] = [step.call for step in drawn.certificate.gold.steps]

    class Parallel(Scripted):
        async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
            if self.calls:
                return await super().reply(chat, tools)
            calls = [ToolCall(FINISH, {"status": "done"}), cancel]
            return Message(
                role="assistant", requests=tuple(Request(id=c.tool, tool=c.tool, args=c.args) for c in calls)
            )

    agent = Parallel(drawn)
    agent.calls = list(before)
    trajectory = asyncio.run(play(drawn, agent, "parallel", ending="finish"))
    assert len(trajectory.steps) == len(before)
    assert failed(judge(trajectory, POI)) == ["state"]


def test_words_without_a_call_end_it_as_words() -> None:
    trajectory, verdict = ended(PRICE, PRICE.certificate.gold.final)
    assert (trajectory.finish, verdict.outcome) == (None, "pass")


def test_a_tool_of_that_name_is_refused() -> None:
    class Taken(cw.World):
        @cw.tool()
        def finish(self) -> str:
            """Something else."""
            return ""

    user = Session.of(POI, PRICE.base).user
    with pytest.raises(cw.CrosswindError, match="--ending words"):
        Session(Taken(POI.state(PRICE.base)), (), user, ending="finish")


# ---------------------------------------------------------------- Python code


def test_a_function_may_return_either() -> None:
    def typed(query: str, tools: Any) -> cw.Finish:
        found = tools.find_places(**PRICE.certificate.gold.steps[0].call.args)
        assert NAME in found
        return cw.done(money=VALUE.value, unit="EUR", about=NAME)

    def called(query: str, tools: Any) -> str:
        tools.finish(status="done", answer=[MONEY])
        raise AssertionError("the episode is over")

    for agent in (typed, called):
        episode = cw.play(agent, PRICE)
        assert episode.passed
        assert episode.finish is not None
    assert cw.play(typed, PRICE, ending="words").passed
    assert cw.play(lambda query, tools: f"{NAME} costs {VALUE.value} euros.", PRICE).passed
    refused = cw.play(lambda query, tools: cw.cannot("not_allowed"), drawn_of("barred_customer"))
    assert refused.passed


def test_a_function_is_called_again_when_the_user_changes_the_request() -> None:
    drawn = drawn_of("hold_visit", "changed_mind")
    asked: list[str] = []

    def agent(query: str, tools: Any) -> cw.Finish:
        asked.append(query)
        return cw.done(message="I held it.")

    cw.play(agent, drawn)
    assert asked[1].endswith(f"You: I held it.\n\nUser: {drawn.certificate.task.changes[0].words}")


def test_a_value_that_is_not_of_its_kind_is_refused_in_python() -> None:
    with pytest.raises(ValueError, match="a date such as"):
        cw.done(date="tomorrow")
    with pytest.raises(ValueError, match="no keyword 'price'; there are: name, id, choice"):
        cw.done(price=3)
    with pytest.raises(ValueError, match="must be one of"):
        cw.cannot("tired")  # type: ignore[arg-type]


# ---------------------------------------------------------------- runs


def test_the_ending_is_part_of_a_run(tmp_path: Path) -> None:
    by_finish = cw.evaluate("oracle", "quick", limit=4, ending="finish", out=tmp_path / "finish")
    in_words = cw.evaluate("oracle", "quick", limit=4, out=tmp_path / "words")
    assert (by_finish.manifest.ending, in_words.manifest.ending) == ("finish", "words")
    with pytest.raises(cw.CrosswindError, match='ending was "finish", now "words"'):
        cw.evaluate("oracle", "quick", limit=4, ending="words", out=tmp_path / "finish")
    with pytest.raises(cw.CrosswindError, match="same ending can be compared"):
        cw.compare(by_finish, in_words)
    with pytest.raises(cw.CrosswindError, match="same ending can be compared"):
        by_finish.gate(0.5, baseline=in_words)
    with pytest.raises(cw.CrosswindError, match="expected finish or words"):
        cw.evaluate("oracle", "quick", ending="shout")  # type: ignore[arg-type]


def test_lines_of_runs_in_words_are_as_before(tmp_path: Path) -> None:
    cw.evaluate("oracle", "quick", limit=4, out=tmp_path)
    lines = (tmp_path / EPISODES).read_text(encoding="utf-8")
    assert '"finish"' not in lines
    assert rescore(tmp_path).changed == []


def test_rescore_says_what_sort_of_episode_changed_and_why(tmp_path: Path) -> None:
    cw.evaluate("oracle", "quick", limit=4, ending="finish", out=tmp_path)
    path = tmp_path / EPISODES
    lines = path.read_text(encoding="utf-8").replace('"kind":"money","value":', '"kind":"money","value":1')
    path.write_text(lines, encoding="utf-8")
    [((sort, was, now, checks), some)] = rescore(tmp_path).sorts().items()
    assert (sort, was, now, checks) == ("to solve, answer by finish", "pass", "fail", "answer")
    assert "not reported" in some[0].why
