"""Leaderboards: who is first, what is refused, and a page that says it with intervals."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from crosswind.base.errors import CrosswindError
from crosswind.cli.leaderboard import app
from crosswind.metrics import summary
from crosswind.report import leaderboard as board
from crosswind.runs.ranking import Leaderboard, leaderboard
from tests.report.test_report import Reader, played, run_of

AGENTS = ("by_name", "oracle", "refuser")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    root = tmp_path_factory.mktemp("runs")
    for name in AGENTS:
        run_of(played(name), root / name)
    return [root / name for name in AGENTS]


@pytest.fixture(scope="module")
def said(folders: list[Path]) -> Leaderboard:
    return leaderboard(folders)


def test_runs_are_ranked_with_scripted_agents_for_reference(said: Leaderboard) -> None:
    assert [one.name for one in said.runs] == ["oracle", "by_name", "refuser"]
    for one in said.runs:
        alone = summary(played(one.name), measures=False, by=("tier",))
        assert (one.summary.clean, one.summary.shifted, one.summary.drop) == (alone.clean, alone.shifted, alone.drop)
    assert {"idle", "echo", "refuser", "guesser"} <= {one.name for one in said.entries if one.reference}
    rates = [one.summary.shifted.rate or 0 for one in said.entries]
    assert rates == sorted(rates, reverse=True)


def test_the_page_sorts_and_has_every_interval(said: Leaderboard) -> None:
    page = Reader(board.page(said))
    rows = [a for name, a in page.elements if name == "tr" and a.get("class") == "reference"]
    assert len(rows) == len(said.entries) - len(said.runs)
    values = [a["data-v"] for name, a in page.elements if name == "td" and "data-v" in a]
    assert len(values) == len(said.entries) * (len(board.HEADS) - 1)
    assert page.names().count("button") == len(board.HEADS)
    cell = said.runs[1].summary.shifted
    assert f"{100 * cell.low:.0f} to {100 * cell.high:.0f}" in page.text


def test_runs_that_do_not_compare_are_refused(folders: list[Path], tmp_path: Path) -> None:
    run_of(played("by_name"), tmp_path / "other", suite="tiers")
    with pytest.raises(CrosswindError, match="differ in their suite: quick and tiers"):
        leaderboard([folders[0], tmp_path / "other"])
    run = run_of(played("by_name"), tmp_path / "old")
    (tmp_path / "old" / "run.json").write_text(run.manifest.model_copy(update={"judge": "0"}).model_dump_json())
    with pytest.raises(CrosswindError, match=r"version of the verifier: 1 and 0.*crosswind rescore"):
        leaderboard([folders[0], tmp_path / "old"])
    with pytest.raises(CrosswindError, match="given twice"):
        leaderboard([folders[0], folders[0]])


def test_the_command_prints_a_table_json_or_markdown(folders: list[Path], tmp_path: Path) -> None:
    def ran(*more: str) -> str:
        done = CliRunner().invoke(app, [*map(str, folders), *more])
        assert done.exit_code == 0, done.output
        return done.output

    assert "oracle solves the largest share in the open world: " in ran("-o", str(tmp_path / "b.html"))
    said = leaderboard(folders)
    shifted = said.runs[0].summary.shifted.model_copy(update={"passed": 0})
    lost = replace(said.runs[0], summary=said.runs[0].summary.model_copy(update={"shifted": shifted}))
    told = board.sentence(replace(said, entries=(lost,)))
    assert told.endswith("oracle solves no task in the open world.")
    assert board.sentence(replace(said, entries=tuple(said.runs[:1]))).endswith("%) in the open world.")
    assert (tmp_path / "b.html").exists()
    assert json.loads(ran("--json"))["entries"][0]["agent"] == "oracle"
    assert "| oracle |" in ran("--markdown")
