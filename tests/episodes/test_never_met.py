"""A kind that is asked for and applies to no task is named with the reason, and never dropped without a word."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import crosswind as cw
from crosswind.authoring import yaml_domain
from crosswind.cli.app import app
from crosswind.core.registry import domains
from crosswind.episodes.schedule import NOT_CHOSEN
from crosswind.episodes.survey import survey
from tests.tiny import SHELF

WRITES = "lost_acknowledgement"  # it needs a tool that writes, and the shelf has none
SUITE = f"""\
name: mine
domains: [shelf]
tasks: 2
conditions:
  - {{name: known, stack: [{{kind: format_switch}}]}}
  - {{name: unknown, stack: [{{kind: {WRITES}}}]}}
  - {{name: both, stack: [{{kind: format_switch}}, {{kind: {WRITES}}}]}}
"""


@pytest.fixture
def suite(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "shelf.yaml").write_text(SHELF)
    (tmp_path / "mine.yaml").write_text(SUITE)
    domain = yaml_domain.load(tmp_path / "shelf.yaml")
    domains.add(domain.name, domain)
    yield str(tmp_path / "mine.yaml")
    domains.remove(domain.name)


def _reason() -> str:
    [row] = survey(["shelf"], [WRITES], 1, 0, 3)
    [told] = row["why_not"]
    return str(told).split(": ", 1)[1]


def test_a_run_names_kinds_that_no_task_met(suite: str, tmp_path: Path) -> None:
    run = [*("run", suite, "--agent", "oracle", "--out", str(tmp_path / "out"), "--no-progress")]
    told = " ".join(CliRunner().invoke(app, run).output.split())
    assert f"{WRITES} was never played: {_reason()}." in told
    assert "format_switch was never played" not in told
    again = json.loads(CliRunner().invoke(app, [*run, "--json"]).stdout)  # nothing is left to play
    assert again["never_played"] == {WRITES: _reason()}
    assert cw.load_run(tmp_path / "out").problems == [f"{WRITES} was never played: {_reason()}"]


def test_only_a_kind_that_applies(suite: str, tmp_path: Path) -> None:
    run = [*("run", suite, "--agent", "oracle", "--out", str(tmp_path / "out"), "--only")]
    refused = CliRunner().invoke(app, [*run, WRITES]).exception
    assert isinstance(refused, cw.CrosswindError)
    assert f"{WRITES} applies to no task of the suite 'mine': {_reason()}" in str(refused)
    assert not (tmp_path / "out").exists()
    with pytest.raises(cw.CrosswindError, match=f"{WRITES} applies to no task of the suite 'mine'"):
        cw.evaluate("oracle", suite, only=[WRITES])
    assert len(cw.evaluate("oracle", suite, only=["format_switch"])) == 4


def test_kinds_of_a_choice_that_were_never_played_are_named(suite: str, tmp_path: Path) -> None:
    choices = f"""\
name: choices
domains: [shelf]
tasks: 6
conditions:
  - {{name: either, stack: [{{one_of: {{format_switch: 1, {WRITES}: 1, key_rename: 1.0e-9}}}}]}}
  - {{name: any, stack: [{{group: train}}]}}
"""
    (tmp_path / "choices.yaml").write_text(choices)
    run = [*("run", str(tmp_path / "choices.yaml"), "--agent", "oracle", "--out", str(tmp_path / "out"), "--json")]
    done = CliRunner().invoke(app, run)
    played = {kind for record in cw.load_run(tmp_path / "out") for kind in record.kinds}
    told = json.loads(done.stdout)["never_played"]
    expected = {WRITES: _reason(), **({} if "key_rename" in played else {"key_rename": NOT_CHOSEN})}
    assert told == expected, "kinds of a group were not asked for by name"
    assert json.loads(CliRunner().invoke(app, run).stdout)["never_played"] == expected
    report = CliRunner().invoke(app, ["report", str(tmp_path / "out"), "--baselines", "0", "-o", str(tmp_path / "x")])
    assert f"{WRITES} was never played" in " ".join(report.output.split())
