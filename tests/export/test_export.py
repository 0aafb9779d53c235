"""Exports: Inspect's log and Harbor's trajectories, from stored lines alone."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from crosswind.base.errors import CrosswindError
from crosswind.cli.app import app
from crosswind.episodes.record import Record
from crosswind.export.turns import slug
from crosswind.export.write import export
from crosswind.runs.store import load_run
from tests.gate_runs import HOSTILE, folder_of, played

AGENT_STEP = {"step_id", "source", "message", "tool_calls", "observation", "extra"}


def hostile() -> list[Record]:
    words = dict.fromkeys(("final", "query", "policy"), HOSTILE)
    return [r.model_copy(update={**words, "condition": f"../../{HOSTILE}{r.condition}"}) for r in played("memoriser")]


@pytest.fixture(params=["memoriser", "idle", "hostile", "error"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "hostile":
        return folder_of(tmp_path / "run", hostile())
    if request.param == "error":
        lost = {"outcome": "error", "ended": "error", "why": "the provider was gone", "final": ""}
        return folder_of(tmp_path / "run", [r.model_copy(update=lost) for r in played("oracle")])
    return folder_of(tmp_path / "run", played(request.param))


def members(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return {name: json.loads(archive.read(name)) for name in archive.namelist()}


# ---------------------------------------------------------------- Inspect


def test_inspect_log_has_all_episodes(folder: Path, tmp_path: Path) -> None:
    path, count = export(folder, "inspect", tmp_path / "out" / "run.eval")
    held = members(path)
    samples = {name: data for name, data in held.items() if name.startswith("samples/")}
    assert count == len(samples) == len(held["summaries.json"]) == len(played("oracle"))
    assert held["_journal/start.json"]["version"] == held["header.json"]["version"] == 2
    for name, sample in samples.items():
        assert name == f"samples/{sample['id']}_epoch_{sample['epoch']}.json"
        assert re.fullmatch(r"[A-Za-z0-9._-]+", sample["id"])
        assert ("error" in sample) != ("scores" in sample)
        calls = [c["id"] for m in sample["messages"] for c in m.get("tool_calls", ())]
        assert calls == [m["tool_call_id"] for m in sample["messages"] if m["role"] == "tool"]
    header = held["header.json"]
    scored = header["results"]["scores"][0]
    assert scored["scored_samples"] + scored["unscored_samples"] == count
    assert header["eval"]["dataset"]["sample_ids"] == [s["id"] for s in held["summaries.json"]]


def test_inspect_scores_are_ours(tmp_path: Path) -> None:
    records = played("memoriser")
    path, _ = export(folder_of(tmp_path / "run", records), "inspect", tmp_path / "run.eval")
    held = members(path)
    values = [s["scores"]["crosswind"]["value"] for s in held["summaries.json"]]
    assert values == ["C" if r.passed else "I" for r in records]
    metrics = held["header.json"]["results"]["scores"][0]["metrics"]
    clean = [r.passed for r in records if r.clean]
    assert metrics["clean"]["value"] == sum(clean) / len(clean)


def test_equal_runs_give_equal_bytes(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "run", played("memoriser"))
    first, _ = export(folder, "inspect", tmp_path / "a.eval")
    second, _ = export(folder, "inspect", tmp_path / "b.eval")
    assert first.read_bytes() == second.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.eval", "b.eval", "run"]  # and no half-written file


def test_inspect_reads_it(folder: Path, tmp_path: Path) -> None:
    log = pytest.importorskip("inspect_ai.log")
    path, count = export(folder, "inspect", tmp_path / "run.eval")
    read = log.read_eval_log(str(path))
    assert (read.status, len(read.samples)) == ("success", count)


# ---------------------------------------------------------------- ATIF


def check_trajectory(trajectory: dict[str, Any]) -> None:
    """The rules of the format that a consumer relies on."""
    assert trajectory["schema_version"] == "ATIF-v1.7"
    assert [s["step_id"] for s in trajectory["steps"]] == list(range(1, len(trajectory["steps"]) + 1))
    assert trajectory["final_metrics"]["total_steps"] == len(trajectory["steps"])
    for step in trajectory["steps"]:
        assert isinstance(step["message"], str)
        assert step["source"] in ("system", "user", "agent")
        assert set(step) <= (AGENT_STEP if step["source"] == "agent" else {"step_id", "source", "message"})
        ids = {call["tool_call_id"] for call in step.get("tool_calls", ())}
        assert all(isinstance(call["arguments"], dict) for call in step.get("tool_calls", ()))
        assert all(r["source_call_id"] in ids for r in step.get("observation", {"results": ()})["results"])
    assert all(tool["type"] == "function" for tool in trajectory["agent"]["tool_definitions"])


def test_atif_in_its_three_shapes(folder: Path, tmp_path: Path) -> None:
    lines, count = export(folder, "atif", tmp_path / "run.jsonl")
    listed, _ = export(folder, "atif", tmp_path / "run.json")
    files, _ = export(folder, "atif", tmp_path / "many")
    trajectories = [json.loads(line) for line in lines.read_bytes().split(b"\n")[:-1]]
    assert len(trajectories) == count == len(played("oracle"))
    assert json.loads(listed.read_bytes()) == trajectories
    for trajectory in trajectories:
        check_trajectory(trajectory)
        name = trajectory["trajectory_id"]
        assert json.loads((files / f"{name}.json").read_bytes()) == trajectory
    assert len(list(files.iterdir())) == count


def test_the_world_side_stands_beside_the_agents(tmp_path: Path) -> None:
    records = played("oracle")
    path, _ = export(folder_of(tmp_path / "run", records), "atif", tmp_path / "run.jsonl")
    for record, line in zip(records, path.read_text().splitlines(), strict=True):
        steps = [s for s in json.loads(line)["steps"] if "tool_calls" in s]
        stored = [s for s in record.steps if s["call"]["tool"] != "(say)"]
        assert [s["tool_calls"][0]["function_name"] for s in steps] == [s["call"]["tool"] for s in stored]
        assert [s["extra"]["world"] for s in steps] == [list(s["inner"]) for s in stored]


def test_odd_arguments_are_kept(tmp_path: Path) -> None:
    record = played("oracle")[0]
    odd = {**record.steps[0], "call": {"tool": "find", "args": "not an object"}}
    said = {"call": {"tool": "(say)", "args": {"text": "Which?"}}, "result": {"content": "That one."}}
    steps = (odd, {**odd, **said, "inner": [], "heard": ["And hurry."]})
    folder = folder_of(tmp_path / "run", [record.model_copy(update={"steps": steps})])
    path, _ = export(folder, "atif", tmp_path / "one.json", episode=record.key)
    trajectory = json.loads(path.read_bytes())
    check_trajectory(trajectory)
    call, words, reply, more = trajectory["steps"][-5:-1]
    assert call["tool_calls"][0]["arguments"] == {"(not an object)": "not an object"}
    assert [s["message"] for s in (words, reply, more)] == ["Which?", "That one.", "And hurry."]
    export(folder, "inspect", tmp_path / "one.eval")


# ---------------------------------------------------------------- the command


def test_the_command(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "run", played("oracle"))
    done = CliRunner().invoke(app, ["export", str(folder), "--format", "inspect"])
    assert done.exit_code == 0
    assert (folder / "inspect.eval").is_file()
    assert CliRunner().invoke(app, ["export", str(folder), "--format", "csv"]).exit_code == 2


def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "run", played("oracle"))
    with pytest.raises(CrosswindError, match=r"ends in \.eval"):
        export(folder, "inspect", tmp_path / "run.zip")
    with pytest.raises(CrosswindError, match="no episode"):
        export(folder, "atif", tmp_path / "one.json", episode="nothing")
    (tmp_path / "file").write_text("")
    with pytest.raises(CrosswindError, match="cannot be written"):
        export(folder, "inspect", tmp_path / "file" / "run.eval")
    with pytest.raises(CrosswindError, match="give the folder of a run"):
        export(tmp_path, "atif", tmp_path / "out")


def test_names_of_files_are_harmless_and_different() -> None:
    keys = ["../../etc/passwd", "..", "", "a|b", "a-b", "a/b", HOSTILE, "x" * 500]
    slugs = [slug(key) for key in keys]
    assert len(set(slugs)) == len(keys)
    for name in slugs:
        assert re.fullmatch(r"[A-Za-z0-9._-]{1,100}", name)
        assert not name.startswith(".")


def test_a_table_has_a_row_for_each_episode_and_loses_nothing(folder: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path, count = export(folder, "parquet", tmp_path / "run.parquet")
    rows = parquet.read_table(path).to_pylist()
    records = load_run(folder).records
    assert count == len(rows) == len(records)
    for row, record in zip(rows, records, strict=True):
        whole = record.model_dump(mode="json")
        same = ("key", "pair", "task_id", "condition", "outcome", "ended", "level", "seed", "refuse", "passed")
        assert [row[name] for name in same] == [getattr(record, name) for name in same]
        for name in ("steps", "layers", "tools", "receipts", "checks"):
            assert json.loads(row[name]) == whole[name]
        assert (row["kinds"], row["seconds"]) == (list(record.kinds), record.usage.seconds)
        assert row["final"].encode("utf-8", "strict") == record.final.encode("utf-8", "backslashreplace")


def test_a_table_needs_its_ending_and_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = folder_of(tmp_path / "run", played("idle"))
    with pytest.raises(CrosswindError, match=r"give a name that ends in \.parquet"):
        export(run, "parquet", tmp_path / "run.csv")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(CrosswindError, match=r"pip install .*\[parquet\]'"):
        export(run, "parquet", tmp_path / "run.parquet")
