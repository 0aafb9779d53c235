"""Two obstacles at once against each alone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from crosswind.episodes.record import Record
from crosswind.episodes.suite import suites
from crosswind.metrics.interactions import interactions
from crosswind.models.spec import open_agent
from crosswind.report.content import content
from crosswind.report.html import page
from crosswind.report.markdown import report
from crosswind.runs.analysis import analyse
from crosswind.runs.runner import run
from crosswind.runs.store import load_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("run")
    kinds = ("semantic_rename", "transient_error")
    suite = suites["interactions"].narrowed(6, "poi")
    chosen = [c for c in suite.conditions if set(c.name.split(" + ")) <= set(kinds)]
    asyncio.run(run(suite.model_copy(update={"conditions": tuple(chosen)}), open_agent("retrier"), found))
    return found


def with_outcomes(records: list[Record], passed: dict[tuple[str, ...], float]) -> list[Record]:
    """The same episodes, of which a share passes by what lies over them."""
    out, seen = [], dict[tuple[str, ...], int]()
    for record in sorted(records, key=lambda r: r.pair):
        kinds = tuple(sorted(record.kinds))
        n = seen[kinds] = seen.get(kinds, -1) + 1
        out.append(record.model_copy(update={"outcome": "pass" if n < passed[kinds] * 6 else "fail"}))
    return out


def test_losses_that_add_up_do_not_interact(folder: Path) -> None:
    records = load_run(folder).records
    a, b = ("semantic_rename",), ("transient_error",)
    (one,) = interactions(with_outcomes(records, {(): 1, a: 0.5, b: 5 / 6, (*a, *b): 1 / 3}))
    assert (one.kinds, one.tiers, one.n) == ((*a, *b), ("perception", "interaction"), 6)
    assert one.value == pytest.approx(0.0)
    assert one.independent == pytest.approx(5 / 12)
    (worse,) = interactions(with_outcomes(records, {(): 1, a: 0.5, b: 5 / 6, (*a, *b): 0}))
    assert worse.value == pytest.approx(-1 / 3)
    assert worse.low <= worse.value <= worse.high
    assert interactions([record for record in records if record.kinds != a]) == []


def test_a_report_shows_interactions(folder: Path) -> None:
    said = content(analyse(load_run(folder), baselines=0, opened=0))
    assert [one.kinds for one in said.interactions] == [("semantic_rename", "transient_error")]
    assert said.as_json()["interactions"][0]["n"] == 6
    assert "if independent" in page(said)
    assert "semantic_rename + transient_error" in report(said)
