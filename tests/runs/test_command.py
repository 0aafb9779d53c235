"""A suggested command plays the episodes of the run that it is suggested for."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from crosswind.cli.app import app
from crosswind.episodes.stream import load_suite, plans
from crosswind.episodes.suite import Suite
from crosswind.models.spec import open_agent
from crosswind.runs.command import repeat
from crosswind.runs.manifest import Manifest, load_manifest
from crosswind.runs.runner import Limits, manifest_of
from crosswind.runs.store import iter_records
from crosswind.runs.streams import stream_manifest

ROOT = Path(__file__).parents[2]


def manifest(suite: Suite) -> Manifest:
    return manifest_of(suite, open_agent("echo"), seed=3, trials=1, limit=None, limits=Limits())


def keys(folder: Path) -> list[str]:
    return sorted(record.key for record in iter_records(folder))


@pytest.mark.parametrize(
    "options",
    [
        "--domain poi --tasks 1 --tier perception --axis action --seed 3",
        "--domain poi,retail --only typos --trials 2 --max-repeats 4 --episode-timeout 60",
        "--domain poi --tasks 2 --axis query --limit 5 --shard 1/2",
    ],
)
def test_the_command_of_a_run_plays_the_same_episodes(options: str, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    said = CliRunner().invoke(app, ["run", "tiers", "--agent", "echo", *options.split(), "--out", str(first)])
    assert said.exit_code == 0, said.output
    words = shlex.split(repeat(load_manifest(first), out=second))
    assert words[:3] == ["crosswind", "run", "tiers@2"]
    said = CliRunner().invoke(app, words[1:])
    assert said.exit_code == 0, said.output
    assert keys(first) == keys(second)
    before, after = load_manifest(first), load_manifest(second)
    assert before.model_dump(exclude={"created", "updated"}) == after.model_dump(exclude={"created", "updated"})


@pytest.mark.parametrize("tasks", [0, 1, 7])
def test_kinds_chosen_of_a_run_are_played_on_its_tasks(tasks: int) -> None:
    """Fewer kinds have no larger share of the tasks, and no smaller one."""
    whole = load_suite("tiers").narrowed(tasks, "poi")
    some = whole.narrowed(only=["typos", "transient_error"])
    assert some.asked is not None
    again = load_suite(some.asked.suite).narrowed(
        some.asked.tasks, some.asked.domains, only=some.asked.only, tier=some.asked.tier, axis=some.asked.axis
    )
    played = {condition.name: condition.tasks for condition in whole.all_conditions()}
    assert {c.name: c.tasks for c in again.all_conditions()} == {c: played[c] for c in ("clean", *some.asked.only)}


def test_files_are_in_the_command(tmp_path: Path) -> None:
    plugin = os.path.relpath(ROOT / "examples" / "library.yaml")
    played = [sys.executable, "-m", "crosswind", "run", "tiers", "--plugin", plugin, "--domain", "library"]
    played += ["--agent", "oracle", "--tasks", "1", "--only", "typos", "--out", str(tmp_path / "first")]
    done = subprocess.run(played, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"Next: crosswind report {tmp_path / 'first'} --plugin {plugin}" in done.stdout
    again = shlex.split(repeat(load_manifest(tmp_path / "first"), out=tmp_path / "second"))
    assert again[-2:] == ["--plugin", plugin]
    done = subprocess.run([sys.executable, "-m", *again], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert keys(tmp_path / "first") == keys(tmp_path / "second")


def test_a_suite_of_a_file_is_named_by_its_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("name: mine\ndomains: [poi]\ntasks: 1\nconditions:\n  - name: a\n    stack: [{kind: typos}]\n")
    words = shlex.split(repeat(manifest(load_suite(str(file)).narrowed(tasks=1))))
    assert words[2] == str(file)
    assert words[words.index("--tasks") + 1] == "1"


def test_no_command_is_better_than_another_experiment() -> None:
    own = Suite(name="tiers", each_of="train", tasks=2, domains=("poi",))
    assert repeat(manifest(own)) == ""
    assert repeat(manifest(own.narrowed(tasks=1))) == ""
    earlier = manifest(load_suite("tiers").narrowed(tasks=1)).model_copy(update={"asked": None})
    assert repeat(earlier) == ""
    whole = manifest(load_suite("tiers")).model_copy(update={"asked": None})
    assert repeat(whole) == "crosswind run tiers@2 --agent echo --seed 3"


def test_streams_are_repeated_with_their_options() -> None:
    plan = plans["evolving"].model_copy(update={"episodes": 30, "domains": ("poi",), "changelog": "shown"})
    source = open_agent("echo")
    made = stream_manifest(plan, source, seed=2, streams=3, frozen=True, limits=Limits())
    wanted = "--agent echo --episodes 30 --domain poi --changelog shown --frozen --seed 2 --streams 3"
    assert repeat(made) == f"crosswind stream evolving {wanted}"
    other = stream_manifest(
        plan.model_copy(update={"releases": 3}), source, seed=2, streams=3, frozen=False, limits=Limits()
    )
    assert repeat(other) == ""
