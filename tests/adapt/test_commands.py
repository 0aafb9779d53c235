"""`crosswind adapt` on the command line: what it prints, its exit statuses, and what it says of mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from crosswind.adapt import loop
from crosswind.adapt.registry import AgentRegistry, _write
from crosswind.cli.app import app
from tests.gate_runs import folder_of, played

SHIFT = {"axis": "action", "kind": "name_noise", "severity": 3, "confidence": 0.9}
ALARM = {"type": "alarm", "channel": "tools", "at": 4, "since": 2, "shift": SHIFT}
LOOSE = ["--max-forget", "0.5", "--min-gain", "0.05", "--max-refusal-drop", "0.6"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "alarms.jsonl").write_text(json.dumps(ALARM) + "\n")
    return tmp_path


def adapt(*args: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["adapt", *args])
    return done.exit_code, done.output + str(done.exception or "")


def data_of(text: str) -> Any:
    return json.loads(text[text.index("{") : text.rindex("}") + 1])


def run(*args: str) -> tuple[int, str]:
    usual = ["run", "alarms.jsonl", "--domain", "poi", "--tasks", "6", *LOOSE, "--no-progress"]
    return adapt(*usual, *(() if "--parts" in args else ("--parts", "names")), *args)


def test_from_start_to_rollback() -> None:
    assert adapt("start", "one_shot") == (0, "version 1 is in use: one_shot\n")
    code, said = run("--dry-run", "--json")
    plan = data_of(said)
    assert code == 0
    assert plan["new"] == ["name_noise:3"]
    assert plan["episodes"] == 2 * plan["stages"][0]["episodes"] > 0
    assert not Path("adaptations").exists()
    code, said = run()
    assert code == 0, said
    assert "Promoted: version 2 is in use" in said
    assert run()[0] == 0  # nothing is left to do
    assert adapt("current")[1] == "adaptive:only=names:one_shot\n"
    assert data_of(adapt("list", "--json")[1])["current"] == 2
    assert adapt("rollback")[1].startswith("version 1 is in use again")
    assert adapt("promote", "2")[1].startswith("version 2 is in use")


def test_the_verdict_and_the_forecast_go_to_standard_output() -> None:
    adapt("start", "one_shot")
    for args, told in ((["--dry-run"], "new worlds: name_noise:3"), ([], "Promoted: version 2 is in use")):
        usual = ["run", "alarms.jsonl", "--domain", "poi", "--tasks", "6", *LOOSE, "--no-progress", "--parts", "names"]
        assert told in CliRunner().invoke(app, ["adapt", *usual, *args]).stdout


def test_too_few_tasks_and_harmless_shifts_have_exit_statuses_of_their_own() -> None:
    adapt("start", "one_shot")
    assert run("--tasks", "1")[0] == 4
    code, said = run("--out", "other", "--parts", "retry")
    assert code == 1, said
    assert "is kept in the registry, but is not in use" in said
    assert adapt("run", "--new", "typos:1", "--domain", "poi", "--tasks", "4", "--out", "third", *LOOSE)[0] == 0
    assert adapt("current")[1] == "one_shot\n"


def test_a_training_that_fails_promotes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> Any:
        raise RuntimeError("CUDA out of memory")

    adapt("start", "one_shot")
    monkeypatch.setattr("crosswind.adapt.ways.check_trainable", lambda spec: None)
    monkeypatch.setattr(loop, "candidate", fails)
    usual = ["run", "alarms.jsonl", "--domain", "poi", "--tasks", "4", "--way", "train", *LOOSE]
    code, said = adapt(*usual)
    assert code == 3, said
    assert [event.sort for event in AgentRegistry("registry").events()] == ["start"]


def test_a_damaged_registry_is_named() -> None:
    adapt("start", "one_shot")
    Path("registry/events/0001.json").write_text("{")
    code, said = adapt("list")
    assert code == 2
    assert "one_shot" in said  # the versions are still listed
    assert "0001.json: damaged" in run()[1]


def test_an_interface_is_learnt_from_a_run(here: Path) -> None:
    folder_of(here / "runs", [record for record in played("oracle") if record.clean])
    code, said = adapt("learn", "runs", "--json")
    found = data_of(said)
    assert code == 0
    assert 0 < found["shapes"] <= found["tools"]
    text = Path("memory.json").read_text()
    ids = {step["call"]["args"].get("place_id", "") for record in played("oracle") for step in record.steps} - {""}
    assert ids
    assert not [one for one in ids if one in text]


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["run", "alarms.jsonl", "--domain", "poi", "--way", "luck"], "expected notes, wrapper, adapter or train"),
        (["run", "alarms.jsonl"], "give --domain"),
        (["run", "--domain", "poi"], "nothing to adapt to"),
        (["run", "alarms.jsonl", "--domain", "poi"], "start with `crosswind adapt start SPEC`"),
        (["run", "missing.jsonl", "--domain", "poi"], "start with"),
        (["rollback"], "no earlier version"),
        (["promote", "3"], "no version 3"),
        (["start", "one_shop"], "did you mean one_shot"),
    ],
)
def test_mistakes_are_told(args: list[str], told: str) -> None:
    code, said = adapt(*args)
    assert code != 0
    assert told in said


def test_what_a_registry_holds_is_printed_harmless() -> None:
    adapt("start", "one_shot")
    store = AgentRegistry("registry")
    evil = "one_shot \x1b]0;title\x07\x9b\n::error::forged"
    _write(store.folder / "versions/0001.json", store.version(1).model_copy(update={"spec": evil}))
    _write(store.folder / "events/0001.json", store.events()[0].model_copy(update={"reason": evil}))
    for command, lines in (("current", 1), ("list", 0)):
        status, text = adapt(command)
        assert (status, [c for c in "\x1b\x07\x9b" if c in text]) == (0, [])
        assert not [line for line in text.splitlines() if line.lstrip().startswith("::")]
        assert not lines or text.count("\n") == lines
