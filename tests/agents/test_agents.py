"""The scripted agents are the scale of every table: what each passes is known beforehand."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest

from crosswind.core.registry import agents, domains, perturbations
from crosswind.core.types import TIERS
from crosswind.episodes.schedule import episodes
from crosswind.episodes.suite import CLEAN, balance, suites
from crosswind.runs.baselines import Baseline, over_domains, sweep
from crosswind.words.held_out import HELD_OUT, kinds_by

NAMES = [
    "oracle",
    "idle",
    "echo",
    "refuser",
    "guesser",
    "memoriser",
    "retrier",
    "one_shot",
    "by_name",
    "by_description",
    "obedient",
]


@pytest.fixture(scope="module")
def rows() -> dict[tuple[str, str], Baseline]:
    suite = suites["full"].model_copy(update={"tasks": 6})
    return {(r.domain, r.condition): r for r in sweep(suite, NAMES, 3)}


@pytest.fixture(scope="module")
def over(rows: dict[tuple[str, str], Baseline]) -> dict[str, Baseline]:
    return {row.condition: row for row in over_domains(list(rows.values()))}


def solvable(row: Baseline) -> int:
    return row.n - row.refusals


@pytest.mark.slow
def test_every_condition_was_played(rows: dict[tuple[str, str], Baseline]) -> None:
    conditions = (CLEAN, "stacks of up to 5", *kinds_by(1))  # `full` is frozen
    assert set(rows) == {(d, c) for d in domains.names() for c in conditions}
    assert all(r.n == 6 for r in rows.values() if r.condition != CLEAN)
    remembering = {"append_only", "credulous", "forgetful", "memoryless", "relister", "updater"}  # played in streams
    assert {*NAMES, *remembering} == set(agents.names())


@pytest.mark.slow
def test_oracle_passes_all_idle_none_and_refuser_the_refusals(rows: dict[tuple[str, str], Baseline]) -> None:
    for row in rows.values():
        assert (row.passed["oracle"], row.right["oracle"]) == (solvable(row), row.refusals)
        assert (row.passed["idle"], row.right["idle"]) == (0, 0)
        assert row.passed["echo"] == 0
        assert (row.passed["refuser"], row.right["refuser"]) == (0, row.refusals)


@pytest.mark.parametrize("name", ["quick", "tiers", "original", "heldout"])
def test_the_same_in_every_suite(name: str) -> None:
    suite = suites[name]
    suite = suite.model_copy(update={"tasks": min(suite.tasks, 4)})
    for row in sweep(suite, ["oracle", "idle", "refuser"], 1):
        assert row.passed == {"oracle": solvable(row), "idle": 0, "refuser": 0}, row
        assert row.right == {"oracle": row.refusals, "idle": 0, "refuser": row.refusals}, row


@pytest.mark.slow
def test_memoriser_passes_clean_and_falls_under_renaming(over: dict[str, Baseline]) -> None:
    assert over[CLEAN].passed["memoriser"] == solvable(over[CLEAN])
    for kind in ("semantic_rename", "identity_erasure", "name_noise", "foreign_interface"):
        assert over[kind].passed["memoriser"] == 0


@pytest.mark.slow
def test_retrying_helps_before_the_write_and_harms_after_it(over: dict[str, Baseline]) -> None:
    assert over[CLEAN].passed["retrier"] == over[CLEAN].passed["one_shot"] == solvable(over[CLEAN])
    before, after = over["transient_error"], over["lost_acknowledgement"]
    assert before.passed["retrier"] == solvable(before)
    assert before.passed["one_shot"] == 0
    assert after.passed["retrier"] <= 0.2 * after.n


@pytest.mark.slow
def test_obeying_what_a_result_says_is_collateral_damage(over: dict[str, Baseline]) -> None:
    assert over[CLEAN].passed["obedient"] == solvable(over[CLEAN])
    assert over["injected_instruction"].passed["obedient"] == 0


@pytest.mark.slow
def test_names_mislead_and_descriptions_do_not(over: dict[str, Baseline]) -> None:
    trap, erased = over["semantic_trap"], over["identity_erasure"]
    for agent in ("by_name", "by_description"):
        assert over[CLEAN].passed[agent] == solvable(over[CLEAN])
    assert trap.passed["by_name"] == 0
    assert trap.passed["by_description"] == solvable(trap)
    assert erased.passed["by_description"] == solvable(erased)
    renamed = over["semantic_rename"]
    assert renamed.passed["by_name"] >= 0.75 * solvable(renamed)  # other words for the same it does understand


# ---------------------------------------------------------------- suites


def test_quick_is_short() -> None:
    made = list(episodes(suites["quick"], 0))
    assert 12 <= len(made) <= 24
    assert {e.drawn.domain.families[e.drawn.base.family].level for e in made} == {1}


def test_tiers_are_balanced_over_tiers_and_axes_and_use_no_held_out_kind() -> None:
    kinds = [c.kind for c in suites["tiers"].all_conditions() if c.stack]
    assert not HELD_OUT & set(kinds)
    share = balance(kinds, 3)
    tiers = Counter[str]()
    cells = Counter[tuple[str, str]]()
    for kind, tasks in share.items():
        cls = perturbations[kind]
        tiers[cls.tier] += tasks
        cells[cls.tier, cls.axis] += tasks
    assert set(tiers) == set(TIERS)
    assert max(tiers.values()) - min(tiers.values()) <= 2
    for tier in TIERS:
        counts = [n for (t, _), n in cells.items() if t == tier]
        assert max(counts) - min(counts) <= 2


def test_levels_and_families_are_mixed_in_every_tier_and_every_beginning() -> None:
    made = list(islice(episodes(suites["tiers"], 0), 500))
    for part in (made[:200], made):
        levels: dict[str, Counter[int]] = {}
        for episode in part:
            if layers := episode.drawn.layers:
                family = episode.drawn.domain.families[episode.drawn.base.family]
                levels.setdefault(layers[0].tier, Counter())[family.level] += 1
        for tier in ("perception", "interaction", "internalization"):
            assert max(levels[tier].values()) - min(levels[tier].values()) <= 8, (tier, levels[tier])
        assert all(levels["reasoning"][level] >= 5 for level in (1, 2, 3))  # some of its kinds need several writes
        tasks = Counter(episode.task_id for episode in part if episode.drawn.layers)
        assert max(tasks.values()) <= len(part) / 20  # no few tasks carry the whole
    assert len({e.task_id for e in made if e.condition == CLEAN}) == len({e.task_id for e in made})


def test_severities_of_a_kind_meet_the_same_tasks() -> None:
    suite = suites["doses"].model_copy(update={"domains": ("poi",)})
    met: dict[str, set[str]] = {}
    for episode in episodes(suite, 0):
        if episode.condition.startswith("semantic_rename@"):
            met.setdefault(episode.condition, set()).add(episode.task_id)
    assert len(met) == 5
    assert len({frozenset(pairs) for pairs in met.values()}) == 1


def test_heldout_has_only_held_out_kinds_and_original_the_scenarios_of_the_study() -> None:
    assert {c.kind for c in suites["heldout"].all_conditions() if c.stack} == HELD_OUT & {*kinds_by(1)}
    original = [c for c in suites["original"].all_conditions() if c.stack]
    assert {d for c in original for d in suites["original"].where(c)} == {"poi", "medical"}
    assert {c.kind for c in original} <= set(perturbations.names())
    for name in suites.names():
        assert suites[name].split == "test"


def test_pairs_share_task_and_seed() -> None:
    made = list(episodes(suites["heldout"].model_copy(update={"tasks": 2, "domains": ("poi",)}), 5))
    clean = {e.task_id: e.drawn for e in made if e.condition == CLEAN}
    for episode in made:
        assert clean[episode.task_id].base == episode.drawn.base
        assert (episode.condition == CLEAN) == (not episode.drawn.layers)
    assert [e.drawn.layers for e in episodes(suites["quick"], 1)] == [
        e.drawn.layers for e in episodes(suites["quick"], 1)
    ]
