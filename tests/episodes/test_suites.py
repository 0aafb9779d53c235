"""Suites over domains that are not ours: loaded on demand, from a plugin, from YAML. Drawn, played, told and gated."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Self

import pytest
from typer.testing import CliRunner

from crosswind.authoring import plugins
from crosswind.cli.app import app
from crosswind.core.certify import certify
from crosswind.core.perturbation import Scene
from crosswind.core.registry import domains
from crosswind.episodes.recipe import Choice
from crosswind.episodes.schedule import Deal, episodes
from crosswind.episodes.suite import CLEAN, Condition, Suite
from crosswind.runs.store import iter_records
from tests.toy_benchmark import load
from tests.toys import FailsAlways, registered

NOISE = Condition(name="name_noise", stack=(Choice(kind="name_noise"),))
ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "examples" / "library.yaml"
SIGHTS = '''\
"""The points of interest under another name."""

from crosswind.domains.poi import Poi
from crosswind.core.registry import domains


class Sights(Poi):
    name = "{name}"


domains.add("{name}", Sights())
'''


@pytest.fixture(autouse=True)
def nothing_stays(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test makes known is gone after it."""
    domains.names()
    monkeypatch.setitem(domains.on_demand, "toybench", "tests.toy_benchmark:load")
    monkeypatch.setenv(plugins.VARIABLE, "")  # which `--plugin` adds to
    monkeypatch.setattr(plugins, "_loaded", {})
    known = set(domains.names())
    yield
    for name in set(domains.names()) - known:
        domains.remove(name)


def told(*args: str) -> str:
    """What the command line prints, where all goes well."""
    result = CliRunner().invoke(app, list(args))
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def plugin_for(name: str, folder: Path) -> list[str]:
    """How the command line comes to know a domain."""
    if name == "library":
        return ["--plugin", str(LIBRARY)]
    if name == "toybench":
        return []
    path = folder / "sights.py"
    path.write_text(SIGHTS.format(name=name))
    return ["--plugin", str(path)]


@pytest.mark.parametrize("name", ["toybench", "library", "sights", "aardvark", "zoo"])
def test_a_domain_that_is_not_ours_goes_through_every_command(name: str, tmp_path: Path) -> None:
    plugin, out = plugin_for(name, tmp_path), str(tmp_path / "out")
    run = (*plugin, "run", "tiers", "--domain", name, "--agent", "oracle", "--tasks", "1")
    would = json.loads(told(*run, "--dry-run", "--json"))
    assert would["episodes"] > 8
    did = json.loads(told(*run, "--out", out, "--json"))
    assert did["episodes"] == would["episodes"]
    records = list(iter_records(Path(out)))
    assert {record.domain for record in records} == {name}
    assert {record.pair for record in records} == {record.pair for record in records if record.clean}
    assert all(record.passed for record in records)
    report = json.loads(told(*plugin, "report", out, "--json", "--baselines", "4"))
    assert report["summary"]["shifted"]["passed"] == report["summary"]["shifted"]["n"] > 0
    assert report["baselines"]["memoriser"]["clean"]["n"] > 0
    told(*plugin, "report", out, "--episodes", "3", "--baselines", "0")
    assert "Episode transcripts" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    told(*plugin, "gate", out, "--max-drop", "all=0.5")
    told(*plugin, "show", out, "1")


def test_a_benchmark_ends_where_its_tasks_do() -> None:
    suite = Suite(name="whole", domains=("toybench",), tasks=40, conditions=(NOISE,))
    found = list(episodes(suite, 3))
    assert len([e for e in found if e.condition == CLEAN]) == len(load().order()) == 16


def test_the_bench_counts_a_rederived_gold_that_fails_apart_from_tasks_without_a_bite() -> None:
    bench, domain = bench_of("bfcl"), load()
    tasks = [domain.task("orders", n) for n in range(4)]
    cleans = {task.id: certify(domain, task).gold for task in tasks}

    class Fussy(FailsAlways):
        """Lets no gold through, and finds nothing to bite on in the first task."""

        @classmethod
        def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
            return None if scene.task.seed == 0 else cls()

    with registered(Fussy):
        row, failures = bench.one_kind(domain, "toy", 3, tasks, cleans, 0)
    assert row[:5] == ["`toy`", "3", "3 of 4", "0 of 3", "0 of 3"]
    assert [one.partition(":")[0] for one in failures] == [f"`toy` at severity 3, `{task.id}`" for task in tasks[1:]]
    row, failures = bench.one_kind(domain, "name_noise", 3, tasks, cleans, 0)
    assert row[2:9] == ["4 of 4", "4 of 4", "4 of 4", "4 of 4", "none", "0 of 4", "0 of 4"]
    assert failures == []


def bench_of(name: str) -> ModuleType:
    """A script of bench/, which is not a package."""
    spec = importlib.util.spec_from_file_location(f"bench_{name}", ROOT / "bench" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_draws_of_our_domains_do_not_depend_on_what_else_is_there(tmp_path: Path) -> None:
    suite = Suite(name="some", domains=("poi", "retail", "workspace"), tasks=2, conditions=(NOISE,))
    before = [(e.condition, e.task_id, e.drawn.layers) for e in episodes(suite, 1)]
    turns = {name: table.turn for name, table in Deal(suite, 1).tables.items()}
    ours = [name for name in domains.names() if not domains.origin(name)]
    assert turns == {name: ours.index(name) for name in suite.domains}
    for name in ("aardvark", "query_bank", "zoo"):
        path = tmp_path / f"{name}.py"
        path.write_text(SIGHTS.format(name=name))
        plugins.load(path)
    assert [(e.condition, e.task_id, e.drawn.layers) for e in episodes(suite, 1)] == before
