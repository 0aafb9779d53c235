"""`bench/adaptive.py` counts the same whether or not it was stopped on the way."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

PLACE = Path(__file__).parents[2] / "bench" / "adaptive.py"
QUICK = ("--agents", "one_shot", "retrier", "--domains", "poi", "--tasks", "1", "--suite", "heldout", "--quick")


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    spec = importlib.util.spec_from_file_location("wrapper_bench", PLACE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "wrapper_bench", module)
    spec.loader.exec_module(module)
    from crosswind.models import hf

    with monkeypatch.context() as patch:
        patch.setattr(hf, "TOGETHER", hf.TOGETHER)  # put back what the script sets
        yield module


@pytest.fixture
def run(bench: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    def ran(out: Path, *args: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["adaptive.py", *QUICK, "--out", str(out), *args])
        with pytest.raises(SystemExit) as done:
            bench.main()
        printed = capsys.readouterr().out
        return int(done.value.code or 0), printed.partition("| condition |")[2]

    return ran


def test_a_stopped_run_goes_on_and_counts_the_same(
    bench: Any, run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, whole = run(tmp_path / "whole", "--streams", "1", "--episodes", "12")
    assert code == 0
    assert "`adaptive retrier`" in whole
    assert "| `retrier` | without notes |" in whole
    keep, count = bench.Tallied.append, 0

    def stops(self: Any, record: Any) -> None:
        nonlocal count
        count += 1
        if count == 20:  # between the agents of an episode
            raise bench.OutOfTime
        keep(self, record)

    cut = tmp_path / "cut"
    with monkeypatch.context() as patch:
        patch.setattr(bench.Tallied, "append", stops)
        assert run(cut)[0] == 3
    with (cut / "episodes.jsonl").open("a") as file:
        file.write('{"key": "to')  # torn
    assert run(cut, "--budget-minutes", "0.01")[0] == 3
    assert run(cut, "--streams", "1", "--episodes", "12") == (0, whole)
    assert run(cut, "--streams", "1", "--episodes", "12", "--table") == (0, whole)


def test_wrappers_of_one_agent_share_it(bench: Any, tmp_path: Path) -> None:
    args = bench.argparse.Namespace(budget_minutes=0.0, domains=["poi"])
    made = bench.Bench(args, tmp_path)
    one, other = (made.source(spec) for spec in ("adaptive:off=tell:retrier", "adaptive:only=names:retrier"))
    assert one.inner is other.inner is made.source("retrier")
    made.close()
