"""`bench/adapt_loop.py`: it runs from a stream to a table, resumes, and hands the loop nothing of the stream."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from crosswind.adapt import loop
from tests import tiny

PLACE = Path(__file__).parents[2] / "bench" / "adapt_loop.py"
QUICK = ("--way", "wrapper", "--quick", "--full-steps", "0", "--streams", "0", "--kinds", "semantic_rename:3")


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    spec = importlib.util.spec_from_file_location("adapt_loop", PLACE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "adapt_loop", module)
    spec.loader.exec_module(module)
    from crosswind.models import hf

    with monkeypatch.context() as patch:
        patch.setattr(hf, "TOGETHER", hf.TOGETHER)  # put back what the script sets
        patch.setattr(hf.HuggingFace, "slots", None)
        patch.setattr(hf, "TOKENS", 8)  # of a reply: a tiny model has nothing to say
        patch.setattr("signal.signal", lambda *_: None)
        yield module


@pytest.fixture
def run(bench: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    def ran(*args: str) -> int:
        monkeypatch.setattr(sys, "argv", ["adapt_loop.py", *args])
        with pytest.raises(SystemExit) as done:
            bench.main()
        return int(done.value.code or 0)

    return ran


def result(out: Path, agent: str = "one-shot") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "stream-0" / agent / "result.json").read_text())
    return {name: value for name, value in found.items() if name != "seconds"}


def told_nothing_of_the_stream(log: Path) -> None:
    """A log has what production has: no layers, no verdicts, no releases."""
    lines = log.read_text().splitlines()
    fields = {name for line in lines for name in json.loads(line)}
    assert fields == {"key", "agent", "domain", "query", "policy", "tools", "final", "usage", "steps"}
    parts = {name for line in lines for step in json.loads(line)["steps"] for name in step}
    assert parts <= {"call", "result", "heard"}
    assert "semantic_rename" not in "".join(lines)
    assert [json.loads(line)["key"] for line in lines] == [f"episode {n}" for n in range(len(lines))]


def test_a_stream_is_broken_watched_and_adapted_to_and_a_stopped_run_goes_on(
    bench: Any,
    run: Callable[..., int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert run("--out", str(whole), "--agents", "one_shot", *QUICK, "--save", str(tmp_path / "kept")) == 0
    found = result(whole)
    assert found["outcome"] == "promoted"
    assert found["before"] > 0.9
    assert found["unadapted"] < 0.2
    assert found["candidate"]["after"] > 0.9
    assert found["candidate"]["usual"] > 0.9
    assert found["alarm"]["kind"] == "semantic_rename"
    assert found["episodes"] > 20
    assert "| 0 | one_shot | semantic_rename:3 |" in capsys.readouterr().out
    assert (tmp_path / "kept" / "stream-0" / "one-shot" / "result.json").exists()
    assert not list((tmp_path / "kept").rglob("episodes.jsonl"))

    told_nothing_of_the_stream(whole / "stream-0" / "one-shot" / "log.jsonl")
    for step in ("watched", "looped", "measured"):  # stopped before each of these, and each time resumed

        def stops(*_: Any, **__: Any) -> Any:
            raise bench.OutOfTime

        with monkeypatch.context() as patch:
            patch.setattr(bench.Stream, step, stops)
            assert run("--out", str(cut), "--agents", "one_shot", *QUICK) == 3
    assert run("--out", str(cut), "--agents", "one_shot", *QUICK) == 0
    assert result(cut) == found


def test_a_spent_budget_stops_at_once_and_a_kind_without_a_loss_is_passed_over(
    run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--out", str(tmp_path), "--agents", "one_shot", *QUICK, "--budget-minutes", "0.01") == 3
    mild = [*QUICK[:-1], "description_rewrite:1"]
    assert run("--out", str(tmp_path), "--agents", "one_shot", *mild) == 0
    assert "no release of these kinds costs every agent" in capsys.readouterr().out


@pytest.mark.filterwarnings("default")
def test_a_model_is_trained_by_the_loop_and_anew_and_both_are_measured(
    run: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("peft")
    reproduce = loop.Loop._reproduce

    def hurts(self: loop.Loop) -> loop.Reproduced:
        """A model of random weights never was any good, so no shift can cost it anything."""
        found = reproduce(self)
        return found.model_copy(update={"lost": dict.fromkeys(found.lost, 0.5)})

    monkeypatch.setattr(loop.Loop, "_reproduce", hurts)
    with tiny.shelf(tmp_path):
        base = tiny.save(tmp_path / "base", "shelf", hidden=64)
        small = ("batch=2", "buffer=1", "log_every=1", "pad_to=16", "device=cpu", "workers=0")
        code = run(
            *("--out", str(tmp_path / "out"), "--agents", f"hf:{base}", "--base", str(base), "--domain", "shelf"),
            *("--streams", "0", "--kinds", "semantic_rename:3", "--least", "-1", "--slots", "4", "--reference", "20"),
            *("--before", "1", "--probes", "1", "--tasks", "2", "--known", "1", "--max-forget", "0.6"),
            *("--full-steps", "2", "--steps", "2", "--set", *small),
        )
        assert code == 0, capsys.readouterr().err
    (path,) = (tmp_path / "out" / "stream-0").glob("*base/result.json")
    found = json.loads(path.read_text())
    assert found["outcome"] in ("refused", "inconclusive")
    assert set(found["candidate"]) == {"after", "usual", "known"}
    assert "2 steps on 4 demonstrations" in (path.parent / "loop" / "candidate.json").read_text()
    anew = json.loads((tmp_path / "out" / "stream-0" / "retrained" / "result.json").read_text())
    assert anew["steps"] == 2
    assert anew["seconds"] > 0
