"""The scripted agents are the scale of every table: what each passes is known beforehand."""

from __future__ import annotations

import pytest

from crosswind.registry import agents, domains, perturbations
from crosswind.suite import CLEAN, STACK, Row, suites, sweep

NAMES = ["oracle", "idle", "refuser", "memoriser", "retrier"]


@pytest.fixture(scope="module")
def rows() -> dict[tuple[str, str], Row]:
    suite = suites["sweep"].model_copy(update={"tasks": 36})
    return {(r.domain, r.condition): r for r in sweep(suite, NAMES, 3)}


def test_every_condition_was_played(rows: dict[tuple[str, str], Row]) -> None:
    assert set(rows) == {(d, c) for d in domains.names() for c in (CLEAN, STACK, *perturbations.names())}
    assert all(r.n == 36 for r in rows.values())
    assert set(NAMES) <= set(agents.names())


def test_oracle_passes_all_idle_none_and_refuser_the_refusals(rows: dict[tuple[str, str], Row]) -> None:
    for row in rows.values():
        assert row.passed["oracle"] == row.n
        assert row.passed["idle"] == 0
        assert row.passed["refuser"] == row.refusals
    assert all(rows[d, CLEAN].refusals == 6 for d in domains.names())  # three of eighteen families


def test_memoriser_passes_clean_and_falls_under_renaming(rows: dict[tuple[str, str], Row]) -> None:
    for domain in domains.names():
        assert rows[domain, CLEAN].passed["memoriser"] == 36
        assert rows[domain, "semantic_rename"].passed["memoriser"] == 0
        assert rows[domain, "identity_erasure"].passed["memoriser"] == 0


def test_retrying_helps_before_the_write_and_harms_after_it(rows: dict[tuple[str, str], Row]) -> None:
    for domain in domains.names():
        assert rows[domain, CLEAN].passed["retrier"] == 36
        assert rows[domain, "transient_error"].passed["retrier"] == 36
        lost = rows[domain, "lost_acknowledgement"]
        assert lost.passed["retrier"] <= 0.5 * lost.n
