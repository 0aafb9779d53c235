"""Benchmarks of other people as domains: golds, turns, tools that come later, verdicts. Needs their packages."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from crosswind.base.errors import CannotDraw, CrosswindError
from crosswind.benchmarks import needed
from crosswind.core.certify import certify
from crosswind.core.draw import draw
from crosswind.core.registry import agents, domains
from crosswind.core.session import Session
from crosswind.core.types import ToolCall
from crosswind.episodes.play import judge, play
from crosswind.episodes.suite import load_suite
from crosswind.models.source import AgentSettings
from crosswind.models.spec import open_agent
from crosswind.runs.runner import run
from crosswind.runs.store import iter_records

if TYPE_CHECKING:
    from crosswind.benchmarks.agentdojo import Agentdojo
    from crosswind.benchmarks.bfcl import Bfcl


def test_a_missing_package_is_one_line_with_the_command() -> None:
    with pytest.raises(CrosswindError, match=r"needs the package other .*; install it with: pip install other") as told:
        needed("no_such_benchmark", "other", "pip install other")
    assert "\n" not in str(told.value)


def test_benchmarks_are_in_no_list_until_named() -> None:
    assert not {"bfcl", "agentdojo"} & set(domains.names())
    assert "bfcl" in domains
    assert "agentdojo" in domains
    assert load_suite("bfcl").domains == ("bfcl",)


@pytest.fixture(scope="module")
def bfcl() -> Bfcl:
    pytest.importorskip("bfcl_eval")
    from crosswind.benchmarks.bfcl import load

    return load()


@pytest.fixture(scope="module")
def dojo() -> Agentdojo:
    pytest.importorskip("agentdojo")
    from crosswind.benchmarks.agentdojo import load

    return load()


@pytest.mark.parametrize("number", [0, 49, 77, 167, 173, 180])
def test_golds_pass_the_checker_and_an_idle_agent_does_not(bfcl: Bfcl, number: int) -> None:
    for family in bfcl.families:
        task = bfcl.task(family, number)
        gold = certify(bfcl, task).gold
        assert bfcl.judge(task, gold.session.world.state, gold.final).outcome == "pass"
        assert bfcl.judge(task, bfcl.state(task), "Done.").outcome == "fail"


@pytest.mark.parametrize("kind", ["identity_erasure", "parameter_rename", "verification_code", "tool_split"])
def test_bfcl_golds_are_rederived_and_stale_ones_fail(bfcl: Bfcl, kind: str) -> None:
    for family in bfcl.families:
        drawn = draw(bfcl, bfcl.task(family, 3), [kind], seed=1)
        oracle = asyncio.run(play(drawn, agents["oracle"](drawn), "oracle"))
        assert judge(oracle, bfcl).outcome == "pass"
        stale = asyncio.run(play(drawn, agents["memoriser"](drawn), "memoriser"))
        assert judge(stale, bfcl).outcome == "fail"


def test_a_missing_function_comes_with_its_turn(bfcl: Bfcl) -> None:
    task = bfcl.task("multi_turn_miss_func", 3)
    (turn, (late, *_)), *_ = bfcl.entries[task.family][3].later.items()
    session = Session.of(bfcl, task)
    for _ in range(turn):
        assert late not in [tool.name for tool in session.tools()]
        error = session.call(ToolCall(late, {"path": "."})).error
        assert error is not None
        assert error.code == "unknown_tool"
        assert session.say("I cannot do this: no tool here does it.") is not None
    assert late in [tool.name for tool in session.tools()]


def test_turns_to_refuse_or_ask_are_recognised(bfcl: Bfcl) -> None:
    for family in ("multi_turn_miss_func", "multi_turn_miss_param"):
        assert all(len(gold.hold) == 1 for gold in bfcl.families[family].golds)
        task = bfcl.task(family, 3)
        gold = bfcl.families[family].golds[3]
        for words, expected in ((None, True), ("All of it is done.", False)):
            session = Session.of(bfcl, task)
            for n, calls in enumerate(gold.calls):
                for call in calls:
                    session.call(call)
                session.say(words if words and n in gold.hold else gold.says[n])
            verdict = bfcl.judge(task, session.world.state, gold.says[-1])
            assert verdict.outcome == "pass"  # the checker of bfcl-eval reads no words
            assert verdict.checks[1].passed is expected
    assert not any(gold.hold for gold in bfcl.families["multi_turn_base"].golds)


def test_agentdojo_golds_pass_their_utility(dojo: Agentdojo) -> None:
    for family in dojo.families:
        task = dojo.task(family, 1)
        drawn = draw(dojo, task, ["transient_error", "identity_erasure"], seed=1, severity=1)
        played = asyncio.run(play(drawn, agents["oracle"](drawn), "oracle"))
        assert judge(played, dojo).outcome == "pass"
        assert all(receipt.fired and receipt.seen for receipt in played.receipts)


def test_a_lost_answer_and_a_repeated_write(dojo: Agentdojo) -> None:
    task = next(
        dojo.task("banking", n)
        for n, gold in enumerate(dojo.families["banking"].golds)
        if [call.tool for call in gold.made].count("send_money") == 1
    )
    drawn = draw(dojo, task, ["lost_acknowledgement"], seed=1, severity=1)
    assert judge(asyncio.run(play(drawn, agents["oracle"](drawn), "oracle")), dojo).outcome == "pass"
    session = Session.of(dojo, drawn.certificate.task, drawn.certificate.layers)
    money = next(call for call in dojo.families["banking"].golds[task.seed].made if call.tool == "send_money")
    assert session.call(money).error is not None
    assert session.call(money).error is None
    assert session.world.writes == 2


def test_tasks_come_to_an_end(dojo: Agentdojo) -> None:
    tasks = [dojo.nth(n, 5) for n in range(97)]
    assert len({task.id for task in tasks if task}) == 97
    assert dojo.nth(97, 5) is None
    with pytest.raises(CannotDraw, match="there are 16, from 0 on"):
        dojo.task("banking", 16)


def test_a_suite_runs_in_pairs(bfcl: Bfcl, tmp_path: Path) -> None:
    suite = load_suite("bfcl").model_copy(update={"tasks": 2})
    source = open_agent("oracle", AgentSettings())
    ran = asyncio.run(run(suite, source, tmp_path, seed=0))
    records = list(iter_records(tmp_path))
    assert ran.manifest.state == "finished"
    assert all(record.passed and record.exposed for record in records)
    clean = {record.pair for record in records if record.clean}
    assert {record.pair for record in records} == clean
