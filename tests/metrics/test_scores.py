"""Scores of runs whose figures are known: scripted agents, and records made up for the purpose."""

from __future__ import annotations

import asyncio
import json
from functools import lru_cache

import pytest

from crosswind.core.registry import agents, perturbations
from crosswind.core.types import AXES, TIERS, Receipt
from crosswind.episodes.play import judge, play
from crosswind.episodes.recipe import Choice
from crosswind.episodes.record import Outcome, Record, Usage, recorded
from crosswind.episodes.schedule import Episode, episodes, key_of, pair_of
from crosswind.episodes.suite import CLEAN, Condition, Suite, suites
from crosswind.metrics import (
    GROUPINGS,
    Averages,
    By,
    Drop,
    Measures,
    Summary,
    averaged,
    cell,
    clean_and_robust,
    drops,
    grouped,
    measure,
    paired_difference,
    pairs,
    pass_hat_k,
    summary,
    wilson,
)

KINDS = ("transient_error", "lost_acknowledgement", "rate_limit", "injected_instruction", "fatal_error", "paraphrase")
FAULTS = Suite(
    name="faults",
    domains=("retail", "poi"),
    tasks=5,
    conditions=tuple(Condition(name=k, stack=(Choice(kind=k, severity=(2, 2)),)) for k in KINDS),
)


@lru_cache
def drawn(suite: str) -> list[Episode]:
    return list(episodes(FAULTS if suite == "faults" else suites[suite], 0))


@lru_cache
def run_of(agent: str, suite: str = "faults") -> list[Record]:
    async def all_of_them() -> list[Record]:
        out = []
        for episode in drawn(suite):
            played = await play(episode.drawn, agents[agent](episode.drawn), agent)
            out.append(recorded(episode, played, judge(played), seed=0, usage=Usage()))
        return out

    return asyncio.run(all_of_them())


@lru_cache
def summary_of(agent: str, suite: str = "faults") -> Summary:
    return summary(run_of(agent, suite))


def line(
    task: str,
    passed: bool | None,
    kind: str = "",
    *,
    trial: int = 0,
    severity: int | None = 3,
    seen: bool = True,
    agent: str = "made up",
    level: int = 1,
) -> Record:
    """A record that has an outcome and nothing else of interest; None is an error of the infrastructure."""
    outcome: Outcome = "error" if passed is None else "pass" if passed else "fail"
    condition = kind or CLEAN
    return Record(
        key=key_of(task, condition, trial),
        pair=pair_of(task, trial),
        task_id=task,
        domain="toy",
        family="toy",
        level=level,
        seed=0,
        trial=trial,
        condition=condition,
        severity=severity if kind else None,
        layers=tuple({"kind": k} for k in kind.split("+")) if kind else (),
        agent=agent,
        outcome=outcome,
        ended="error" if passed is None else "answer",
        refuse=False,
        query="",
        policy="",
        tools=(),
        steps=(),
        final="",
        why="the provider went away" if passed is None else "",
        receipts=tuple(Receipt(kind=k, fired=True, step=0, seen=seen) for k in kind.split("+")) if kind else (),
        stage=None if passed else "understanding",
        cause=None if passed else "wrong tool",
    )


def only(found: dict[str, Drop]) -> Drop:
    (one,) = found.values()
    return one


# ---------------------------------------------------------------- pairs and groups


def test_pairs_are_of_one_task_and_trial() -> None:
    records = [
        line("a", True),
        line("a", False, "typos"),
        line("a", True, "typos", trial=1),  # has no clean counterpart
        line("b", None),
        line("b", True, "typos"),  # its counterpart is an error
        line("c", True),
        line("c", None, "typos"),
        line("d", False, "paraphrase"),
        line("d", True),  # the order does not matter
    ]
    found = pairs(records)
    assert [(clean.key, shifted.key) for clean, shifted in found] == [
        ("a|clean|0", "a|typos|0"),
        ("d|clean|0", "d|paraphrase|0"),
    ]
    excluded = summary(records, measures=False).excluded
    assert (excluded.episodes, excluded.pairs, excluded.unpaired) == (2, 2, 1)
    assert excluded.reasons == {"the provider went away": 2}


def test_errors_count_nowhere() -> None:
    records = [line("a", True), line("a", False, "typos"), line("b", True), line("b", None, "typos")]
    found = summary(records, measures=False)
    assert found.episodes == 3
    assert (found.clean.n, found.shifted.n) == (1, 1)  # over pairs
    assert found.drop
    assert found.drop.pairs == 1


def test_groups_are_those_of_the_layers_and_the_task() -> None:
    records = [line("a", True)]
    records += [line("a", True, kind) for kind in ("typos", "transient_error", "unsolvable", "typos+transient_error")]
    names = {by: list(drops(records, by)) for by in GROUPINGS}
    assert names["all"] == ["all"]
    assert names["condition"] == ["typos", "transient_error", "unsolvable", "typos+transient_error"]
    assert names["kind"] == ["typos", "transient_error", "unsolvable"]  # a stack has no one kind
    assert names["tier"] == [t for t in TIERS if t in {perturbations[k].tier for k in names["kind"]}]
    assert names["published"] == ["perception", "interaction", "internalization"]
    assert names["axis"] == [a for a in AXES if a in {perturbations[k].axis for k in names["kind"]}]
    assert set(names["cell"]) == {f"{perturbations[k].tier} x {perturbations[k].axis}" for k in names["kind"]}
    assert names["family"] == ["toy/toy"]
    assert (names["level"], names["domain"], names["severity"]) == (["1"], ["toy"], ["3"])
    assert names["kind@severity"] == ["typos@3", "transient_error@3", "unsolvable@3"]
    assert drops(records, "all")["all"].pairs == 4
    with pytest.raises(ValueError, match="groupings are all, condition"):
        grouped(records, "colour")  # type: ignore[arg-type]


def test_severities_and_levels_come_in_order() -> None:
    records = [line(str(s), True, level=4 - s) for s in (3, 1, 2)]
    records += [line(str(s), s == 1, "typos", severity=s, level=4 - s) for s in (3, 1, 2)]
    assert list(drops(records, "severity")) == ["1", "2", "3"]
    assert list(drops(records, "level")) == ["1", "2", "3"]
    found = summary(records, measures=False)
    assert found.mild is not None
    assert found.mild == found.drops["severity"]["1"]
    assert found.mild.delta == 0


# ---------------------------------------------------------------- drops


def test_with_one_pair_per_task_a_drop_is_the_paired_difference() -> None:
    clean = [True] * 60 + [False] * 40
    shifted = [True] * 30 + [False] * 30 + [True] * 8 + [False] * 32
    records = [line(f"t{i}", passed) for i, passed in enumerate(clean)]
    records += [line(f"t{i}", passed, "typos") for i, passed in enumerate(shifted)]
    one, plain = only(drops(records, "kind")), paired_difference(clean, shifted)
    for name in ("clean", "shifted", "delta", "low", "high", "p", "broke", "fixed"):
        assert getattr(one, name) == pytest.approx(getattr(plain, name)), name
    assert (one.pairs, one.tasks, one.p_holm, one.kept) == (100, 100, one.p, 0.5)
    assert one.exposed == one.model_copy(update={"exposed": None})


def test_pairs_of_one_task_that_agree_count_once() -> None:
    """Four trials that agree are worth one."""
    single = [line(f"t{i}", True) for i in range(40)]
    single += [line(f"t{i}", i % 2 == 0, "typos") for i in range(40)]
    fourfold = [line(f"t{i}", True, trial=t) for i in range(40) for t in range(4)]
    fourfold += [line(f"t{i}", i % 2 == 0, "typos", trial=t) for i in range(40) for t in range(4)]
    few, many = only(drops(single, "all")), only(drops(fourfold, "all"))
    assert (few.delta, many.delta) == (-0.5, -0.5)
    assert (many.pairs, many.tasks) == (160, 40)
    assert (many.low, many.high) == pytest.approx((few.low, few.high), abs=0.02)
    assert many.p == pytest.approx(few.p)
    apart = paired_difference([True] * 160, [i % 2 == 0 for i in range(160)])
    assert apart.high - apart.low < 0.6 * (many.high - many.low)


def test_a_task_under_many_conditions_is_one_task_over_all() -> None:
    kinds = perturbations.names()[:10]
    records = [line(f"t{i}", True) for i in range(6)]
    records += [line(f"t{i}", i > 0, kind) for i in range(6) for kind in kinds]
    over_all = only(drops(records, "all"))
    assert (over_all.pairs, over_all.tasks, over_all.broke) == (60, 6, 10)
    assert over_all.p == 1  # one task alone proves nothing
    assert over_all.low < -0.25


def test_exposed_pairs_are_counted_beside_all() -> None:
    records = [line(f"t{i}", True) for i in range(30)]
    records += [line(f"t{i}", i >= 15, "typos", seen=i < 20) for i in range(30)]
    one = only(drops(records, "tier"))
    assert one.exposed
    assert (one.pairs, one.delta) == (30, -0.5)
    assert (one.exposed.pairs, one.exposed.delta) == (20, -0.75)
    unseen = [line("a", True), line("a", True, "typos", seen=False)]
    assert only(drops(unseen, "all")).exposed is None


def test_p_values_are_adjusted_within_a_grouping() -> None:
    records = [line(f"t{i}", True) for i in range(30)]
    for n, kind in enumerate(("typos", "paraphrase", "transient_error")):
        records += [line(f"t{i}", i >= 6 * n, kind) for i in range(30)]
    found = drops(records, "condition")
    assert [one.p for one in found.values()] == pytest.approx([1, 2 / 2**6, 2 / 2**12])
    assert [one.p_holm for one in found.values()] == pytest.approx([1, 4 / 2**6, 6 / 2**12])
    assert {one.tests for one in found.values()} == {3}
    exposed = [one.exposed for one in found.values()]
    assert [one and one.p_holm for one in exposed] == pytest.approx([1, 4 / 2**6, 6 / 2**12])


# ---------------------------------------------------------------- shares


def test_a_share_has_wilsons_interval() -> None:
    one = cell([line(f"t{i}", i < 7) for i in range(10)])
    assert (one.n, one.passed, one.rate) == (10, 7, 0.7)
    assert (one.low, one.high) == pytest.approx(wilson(7, 10))
    empty = cell([line("t", None)])
    assert (empty.n, empty.rate, empty.low, empty.high) == (0, None, 0, 1)


def test_trials_that_agree_make_no_share_more_certain() -> None:
    once = cell([line(f"t{i}", i < 14) for i in range(20)])
    agreeing = cell([line(f"t{i}", i < 14, trial=t) for i in range(20) for t in range(5)])
    differing = cell([line(f"t{i}", t != i % 3, trial=t) for i in range(20) for t in range(3)])
    assert agreeing.n == 100
    assert (agreeing.low, agreeing.high) == pytest.approx((once.low, once.high), abs=0.02)
    assert (differing.low, differing.high) == pytest.approx(wilson(differing.passed, 60))
    certain = cell([line(f"t{i}", True, trial=t) for i in range(20) for t in range(5)])
    assert certain.low == pytest.approx(wilson(20, 20).low)


def test_pass_hat_k_of_a_run() -> None:
    clean = {f"t{i}": [t < i for t in range(3)] for i in range(4)}
    records = [line(task, passed, trial=t) for task, of in clean.items() for t, passed in enumerate(of)]
    records += [line(task, passed, "typos", trial=t) for task, of in clean.items() for t, passed in enumerate(of)]
    records[-1] = records[-1].model_copy(update={"outcome": "error"})
    found = summary(records, measures=False)
    assert found.trials == 3
    assert [one.value for one in found.pass_hat_k["clean"]] == [pass_hat_k(clean, k).value for k in (1, 2, 3)]
    assert [one.tasks for one in found.pass_hat_k["shifted"]] == [3, 3, 3]  # the one with an error is left out
    assert summary([], measures=False).pass_hat_k == {"clean": (), "shifted": ()}


# ---------------------------------------------------------------- the study's metrics and ours


def shifted_study(agent: str, kind: str) -> Averages:
    return summary_of(agent).studies["condition"][kind]


@pytest.mark.parametrize("suite", ["faults", "quick"])
def test_the_oracle_is_perfect_in_every_respect(suite: str) -> None:
    found = summary_of("oracle", suite)
    for study in (*found.study.values(), *(s for by in found.studies.values() for s in by.values())):
        assert study.accuracy in (1, None)
        assert study.own_error_rate == 0
        assert study.exploration in (1, None)
        assert study.chain_length == study.gold_chain_length
        assert study.false_refusal_rate in (0, None)
        assert study.right_refusal_rate in (1, None)
        assert study.recovery_rate in (1, None)
        assert study.resumed_rate in (1, None)
        assert (study.collateral_writes, study.duplicate_writes, study.false_success_rate) == (0, 0, 0)
    assert found.drop
    assert (found.drop.delta, found.drop.kept, found.drop.p) == (0, 1, 1)
    assert not found.causes


def test_faults_are_counted_where_they_were_met() -> None:
    shifted = summary_of("oracle").study["shifted"]
    met = [r for r in run_of("oracle") if r.kinds and perturbations[r.kinds[0]].rank == "fault"]
    assert shifted.faults == len(met) == 30
    assert shifted.tool_error_rate
    assert shifted.tool_error_rate > 0  # what faults answer are errors, too


def test_who_does_nothing_explores_nothing() -> None:
    idle, refuser = summary_of("idle").study["all"], summary_of("refuser").study["all"]
    for study in (idle, refuser):
        assert (study.exploration, study.chain_length, study.tool_error_rate, study.turns) == (0, 0, None, 1)
        assert (study.faults, study.recovery_rate) == (0, None)
    assert (idle.right_refusal_rate, idle.false_refusal_rate) == (0, 0)
    assert (refuser.right_refusal_rate, refuser.false_refusal_rate) == (1, 1)
    assert idle.false_success_rate == 0  # it claims nothing
    exposed = summary_of("idle").drops["condition"]["transient_error"].exposed
    assert exposed is None  # who makes no call meets no fault


def test_repeating_recovers_from_a_fault_that_says_so_and_harms_after_a_lost_answer() -> None:
    before, lost = shifted_study("retrier", "transient_error"), shifted_study("retrier", "lost_acknowledgement")
    assert (before.recovery_rate, before.resumed_rate, before.exploration) == (1, 1, 1)
    assert (before.own_error_rate, before.duplicate_writes) == (0, 0)
    assert before.tool_error_rate
    assert lost.recovery_rate is not None
    assert lost.recovery_rate < 1
    assert lost.resumed_rate == 0
    assert lost.duplicate_writes
    assert lost.collateral_writes
    once = shifted_study("one_shot", "transient_error")
    assert (once.resumed_rate, once.duplicate_writes) == (0, 0)
    assert once.accuracy is not None
    assert once.accuracy < 0.5


def test_blind_repetition_lowers_exploration() -> None:
    patient, blind = shifted_study("one_shot", "rate_limit"), shifted_study("retrier", "rate_limit")
    assert blind.exploration is not None
    assert patient.exploration is not None
    assert blind.exploration < patient.exploration < 1


def test_obeying_an_injection_is_collateral() -> None:
    harmed = shifted_study("obedient", "injected_instruction")
    assert harmed.collateral_writes
    assert harmed.collateral_writes >= 1
    assert harmed.false_success_rate == 1
    assert shifted_study("obedient", "paraphrase").collateral_writes == 0


def test_an_old_name_is_an_error_of_ones_own() -> None:
    found = summary_of("memoriser", "quick").studies["condition"]["semantic_rename"]
    assert found.own_error_rate == found.tool_error_rate
    assert found.own_error_rate
    assert found.exploration is not None
    assert found.exploration < 0.5
    assert found.false_success_rate == 1  # it says "Done."
    assert shifted_study("one_shot", "transient_error").own_error_rate == 0  # it stops at the error, and makes none


def test_drops_of_scripted_agents_are_known() -> None:
    memoriser = summary_of("memoriser", "quick")
    assert memoriser.clean.rate == 1
    assert memoriser.drops["kind"]["semantic_rename"].delta == -1
    assert memoriser.drops["tier"]["perception"].broke == 4
    assert "internalization" not in memoriser.drops["tier"]  # all of it is to be refused
    assert memoriser.refused["tier"]["internalization"].right.rate == 0
    refuser = summary_of("refuser", "quick")
    assert "unsolvable" not in refuser.drops["kind"]
    assert refuser.drops["kind"]["semantic_rename"].delta == 0


def test_measures_do_not_depend_on_the_agents_name() -> None:
    for record in run_of("retrier")[:20]:
        assert measure(record.model_copy(update={"agent": "oracle"})) == measure(record)


def test_taken_measures_are_used() -> None:
    records = run_of("retrier", "quick")
    taken = {record.key: measure(record) for record in records}
    assert averaged(records, taken) == averaged(records)
    assert all(isinstance(one, Measures) for one in taken.values())
    assert averaged([]).accuracy is None
    assert averaged([line("t", None)]).episodes == 0


def test_tokens_and_cost_are_averaged_and_added() -> None:
    usage = Usage(input_tokens=100, output_tokens=10, requests=3, seconds=0.5, cost=0.25)
    records = [r.model_copy(update={"usage": usage}) for r in run_of("oracle", "quick")]
    found = summary(records)
    study = found.study["all"]
    assert (study.input_tokens, study.output_tokens, study.turns, study.cost) == (100, 10, 3, 0.25)
    assert found.usage.requests == 3 * len(records)
    assert found.usage.cost == pytest.approx(0.25 * len(records))


# ---------------------------------------------------------------- the summary, and several agents


@pytest.mark.parametrize("agent", ["oracle", "memoriser", "refuser", "idle"])
def test_a_summary_is_json_and_comes_back(agent: str) -> None:
    found = summary_of(agent, "quick")
    text = json.dumps(found.model_dump(mode="json"), allow_nan=False)
    assert Summary.model_validate_json(text) == found
    assert set(found.drops) == set(found.cells) == set(found.studies) == set(GROUPINGS)


def test_groups_add_up() -> None:
    found = summary_of("memoriser")
    sums: dict[By, int] = {by: sum(one.pairs for one in found.drops[by].values()) for by in GROUPINGS}
    assert found.drop
    assert set(sums.values()) == {found.drop.pairs}  # every condition has one kind and one severity
    assert found.shifted.n == found.drop.pairs == sum(one.n for one in found.cells["condition"].values())
    pairs_left = found.drop.pairs + found.excluded.to_refuse
    assert pairs_left == sum(not r.clean for r in run_of("memoriser"))


def test_a_summary_without_measures_or_episodes() -> None:
    lean = summary(run_of("memoriser", "quick"), measures=False)
    assert (lean.study, lean.studies) == ({}, {})
    assert lean.drop == summary_of("memoriser", "quick").drop
    empty = summary([])
    assert (empty.episodes, empty.drop, empty.clean.rate, empty.score, empty.trivial) == (0, None, None, None, {})


def test_causes_are_counted() -> None:
    found = summary([line("a", True), line("a", False, "typos"), line("b", False)], measures=False)
    assert found.stages == {"understanding": 2}
    assert found.causes == {"wrong tool": 2}
    assert found.agents == ("made up",)


def test_clean_score_and_robustness_over_agents() -> None:
    """Agent a solves a tenths of the tasks clean, and half of these shifted; the last solves nothing."""
    named = {}
    for able in (8, 6, 4, 2, 0):
        records = [line(f"t{i}", i < able) for i in range(10)]
        records += [line(f"t{i}", i < able // 2, "typos") for i in range(10)]
        named[str(able)] = only(drops(records, "all"))
    found = clean_and_robust(named)
    assert (found.delta.n, found.delta.rho) == (5, -1)  # who has more can lose more
    assert found.delta.p == pytest.approx(2 / 120)
    assert (found.kept.n, found.kept.rho) == (4, None)  # all keep half, and who solves nothing keeps nothing
    assert (found.shifted.n, found.shifted.rho) == (5, 1)
    assert found.agents["8"] == (0.8, 0.4, -0.4, 0.5)
    assert list(found.agents["0"]) == [0, 0, 0, None]
    assert clean_and_robust({}).delta.rho is None
