"""Tests of the study: its definition, running arms, stopping and going on, and the report."""

from __future__ import annotations

import io
import json
import lzma
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crosswind.base.errors import BadFile, CrosswindError
from crosswind.cli import study as commands
from crosswind.core.registry import perturbations
from crosswind.core.types import TIERS
from crosswind.episodes.recipe import kinds_of
from crosswind.episodes.suite import ORIGINAL
from crosswind.runs.runner import Plan
from crosswind.study import outcomes
from crosswind.study import runner as running
from crosswind.study.definition import Study, load_study, severity_of, suite_of
from crosswind.study.report import best_paft, between, changed, pools
from crosswind.train.config import merged
from crosswind.words.splits import HELD_OUT

ROOT = Path(__file__).parent.parent


# ---------------------------------------------------------------- the definition


def test_the_arms_of_the_study() -> None:
    study = load_study()
    waves = {wave: [arm.name for arm in study.arms if arm.wave == wave] for wave in "ABC"}
    assert waves["A"] == ["base", "static", "paft"]
    assert {"static-200", "static-400", "static-3200", "static-24k", "paft-0.1", "paft-0.5", "paft-full"} <= {
        *waves["B"]
    }
    clean = {"rl", "rl-brief", "rl-early"}
    assert {*clean, *(f"{name}-perturbed" for name in clean), "paft-rl", "adaptive", "adaptive-even"} == {*waves["C"]}
    for name in clean:
        one, other = study.arm(name), study.arm(f"{name}-perturbed")
        assert (one.start, one.seeds) == (other.start, other.seeds)  # they differ in what they play in
        assert {**other.train, "data": one.train["data"]} == one.train
    assert study.seeds_of(study.arm("paft")) == study.seeds_of(study.arm("adaptive")) == (0, 1, 2)
    assert study.arm("paft-0.1").train["data"] == {**study.arm("paft").train["data"], "share": 0.1}
    assert study.arm("paft-0.1").method == "paft"
    hashes = {study.config_hash(arm, seed) for arm, seed in study.queue()}
    assert len(hashes) == len(study.queue())


def test_stored_results_are_of_the_arms_as_they_are_now() -> None:
    from crosswind.study.runner import read_done

    study = load_study()
    stored = sorted((ROOT / "docs/results/study/arms").glob("*/seed-*/*.json"))
    assert stored
    for done in map(read_done, stored):
        arm = study.arm(done.arm)
        assert done.suite_hash == study.suite_hash(done.part)
        assert arm.at or not study.another(arm, done.seed, done.config, done.config_hash), done.arm


def test_what_changes_no_weight_makes_no_other_arm() -> None:
    study = load_study()
    static, grpo, base = (study.arm(name) for name in ("static", "rl-brief", "base"))

    def another(arm: Any, **over: Any) -> str:
        return study.another(arm, 0, merged(study.told(arm, 0), over), "of then")

    assert another(static, workers=9, log_every=1) == ""
    assert another(static, lora={"rank": 16}) == ""  # the default, said aloud
    assert another(static, lora={"rank": 8}) == "lora.rank was 8, now 16"
    assert another(static, data={"gone": 1}).startswith("data.")  # an option that there is no more
    assert another(base, model="other") == "the model was other, now embedded"
    assert another(grpo, copies=4) == "copies was 4, now 8"
    assert "static-200, which it starts from, was another" in another(grpo, micro=64)


def test_an_arm_that_another_starts_from_comes_first() -> None:
    study = load_study()
    assert [(arm.name, seed) for arm, seed in study.queue(["paft-rl"], [1])] == [("paft", 1), ("paft-rl", 1)]
    assert [(arm.name, seed) for arm, seed in study.queue(["base", "static"], [1])] == [("base", 0), ("static", 1)]
    with pytest.raises(CrosswindError, match="no arm 'pfat'"):
        study.queue(["pfat"])
    assert [(arm.name, seed) for arm, seed in study.queue(["paft"], [99])] == [("paft", 99)]  # named, it runs any seed
    with pytest.raises(CrosswindError, match="no arm has one of the seeds 99; they have 0, 1, 2"):
        study.queue((), [99])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"arms": ""}, "--arms '' names no arm; give some of base, static, paft, "),
        ({"arms": ","}, "--arms ',' names no arm"),
        ({"seeds": ""}, "--seeds '': expected numbers from 0 to"),
        ({"arms": "paft", "seeds": "-1"}, "--seeds '-1': expected numbers from 0 to"),
        ({"arms": "paft", "seeds": "9" * 23}, "expected numbers from 0 to"),
        ({"arms": "paft", "seeds": "9" * 5000}, "expected numbers from 0 to"),
        ({"seeds": "99"}, "no arm has one of the seeds 99"),
    ],
)
def test_arms_and_seeds_that_name_nothing_are_refused(
    options: dict[str, str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "NEEDED", ())
    monkeypatch.setattr(running.Job, "go", lambda *_, **__: pytest.fail("an arm was begun"))
    with pytest.raises(CrosswindError, match=told):
        commands.fragility(tmp_path / "out", **options)  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


def test_options_are_tried_under_names_of_their_own() -> None:
    study = load_study()
    changed, names = commands._changed(study, ["paft", "base"], ["data.share=0.4"], "share-0.4")
    assert names == ["paft-share-0.4", "base-share-0.4"]
    assert changed.arm(names[0]).train["data"] == {**study.arm("paft").train["data"], "share": 0.4}
    for arm, seed in study.queue():  # the others stay what they are
        assert changed.config_hash(changed.arm(arm.name), seed) == study.config_hash(arm, seed)
    assert changed.suite_hash("dev") == study.suite_hash("dev")


@pytest.mark.parametrize(
    ("change", "tag", "told"),
    [
        ("data.curriculum=[{start: 0, severity: low}]", "x", r"^--set .*: data.curriculum.0.severity: got 'low'; exp"),
        ("data.curriculum=[{start: 1, severity: 2}]", "x", r"^--set .*: data.curriculum: the stages start at 1.0; exp"),
        ("data.share=7", "x", r"^--set data.share=7: data.share: got 7; "),
        ("shares=0.4", "x", r"^--set shares=0.4: shares: .*the keys here are: model"),
        ("data.share=0.4", "a/b", r"^--tag 'a/b': got 'paft-a/b'; .*give another tag"),
        ("data.share=0.4", "0.5", r"^--tag '0.5': the arm 'paft-0.5' comes twice; give another tag"),
    ],
)
def test_a_change_that_does_not_fit_is_told_with_its_place(change: str, tag: str, told: str) -> None:
    with pytest.raises(CrosswindError, match=told):
        commands._changed(load_study(), ["paft"], [change], tag)


def test_every_arm_has_options_that_its_method_takes() -> None:
    from crosswind.train.config import TrainConfig, check, for_method

    study = load_study()
    for arm, seed in study.queue():
        if arm.method in ("sft", "paft"):
            check(for_method(TrainConfig.model_validate(study.options(arm, seed), strict=False), arm.method))


def test_arms_of_reinforcement_have_options_that_it_takes() -> None:
    pytest.importorskip("trl")
    from crosswind.train.config import GrpoConfig

    study = load_study()
    for arm, seed in study.queue():
        if arm.method == "grpo":
            config = GrpoConfig.model_validate(study.options(arm, seed), strict=False)
            assert bool(config.data.share) == arm.name.endswith(("perturbed", "paft-rl"))
            assert arm.start
            assert arm.train["steps"] == config.steps  # written down: a budget reckons with it


def test_the_suites_have_the_kinds_that_their_names_say() -> None:
    study = load_study()
    groups = {
        "original": set(ORIGINAL),
        "tiers": {*kinds_of("train")},
        "heldout": HELD_OUT,
        "dev": {*kinds_of("train")},
    }
    for condition in (*study.dev.conditions, *study.test.conditions):
        suite, tier, *more = condition.name.split("/")
        group = groups[{"trained": "tiers", "heldout": "heldout"}[more[0]] if more else suite]
        assert set(condition.recipe.kinds()) == {kind for kind in group if perturbations[kind].tier == tier}
    cells: dict[tuple[str, str], int] = {}
    for condition in study.test.conditions:
        cell = suite_of(condition.name), condition.name.split("/")[1]
        cells[cell] = cells.get(cell, 0) + (condition.tasks or 0)
    assert cells == {(suite, tier): 300 for suite in ("original", "tiers", "heldout", "medical") for tier in TIERS}


def test_severities_of_a_range_are_found_again(tmp_path: Path) -> None:
    from crosswind.core.types import Trajectory
    from crosswind.episodes.record import Usage, recorded

    study = load_study()
    seen = set()
    for job in Plan(study.dev, 0, limit=80):
        if job is None or not job.episode.drawn.layers:
            continue
        drawn = job.episode.drawn
        trajectory = Trajectory(
            task=drawn.certificate.task,
            layers=tuple(layer.model_dump(mode="json") for layer in drawn.layers),
            agent="nobody",
            policy="",
            tools=(),
            steps=(),
            final="",
            ended="answer",
            receipts=(),
            gold_steps=1,
            budget=1,
        )
        record = recorded(job.episode, trajectory, seed=0, trial=0, usage=Usage(), query="")
        severity = severity_of(study.dev, record)
        assert severity in (1, 2, 3, 4)
        seen.add(severity)
    assert seen == {1, 2, 3, 4}


def test_options_are_merged_part_by_part() -> None:
    base = {"steps": 1, "data": {"share": 0.3, "domains": {"poi": 1}}}
    assert merged(base, {"data": {"domains": {"retail": 1}}}) == {
        "steps": 1,
        "data": {"share": 0.3, "domains": {"retail": 1}},
    }


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("name: static\n", "name: base\n"), "comes twice"),
        (("like: static,", "like: nothing,"), "does not come before"),
        (("split: dev", "split: test"), "the suite dev has the split dev"),
        (("paraphrase: 1, ", "paraphrase: 1, terse_query: 1, "), "is held out"),
        (("{steps: 800,", "{steps: many,"), r"yaml:20: steps: got 'many'; .* \(the arm 'static'\)$"),
        (("{steps: 800,", "{steps: .nan,"), r"yaml:20: steps: got nan; .* \(the arm 'static'\)$"),
        (("{steps: 800,", "{stepz: 800,"), r"yaml:20: stepz: .*the keys here are: model"),
        (("{steps: 800,", "{seed: 1, steps: 800,"), "seed is the study's to say"),
        (("share: 0.3", "share: 7"), r"yaml:30: data.share: got 7; .* \(the arm 'paft'\)$"),
        (("recipe: mixed", "recipe: unseen"), r"yaml:30: data.recipe: .* is held out.* \(the arm 'paft'\)$"),
        (("method: sft", "method: grpo"), "accumulate is not for grpo"),
        (("poi: 1}, max_tokens: 2560", "poi: 1}, share: 0.5"), r"data.share is 0.5, but sft learns from clean"),
        (("start: static-200", "start: base"), "'rl-brief' starts from 'base', which has no adapter"),
        (("start: static-200", "start: static-full"), "which has no adapter"),
        (("    method: sft\n", ""), "the arm 'static' trains nothing, but says how; give a method"),
        (("seeds: [0, 1, 2]", "seeds: [-1]"), "seeds.0: got -1; input should be greater"),
        (("seeds: [0, 1, 2]", f"seeds: [{10**30}]"), r"seeds.0: got 10+; input should be less"),
        (("seeds: [0, 1, 2]", "seeds: [0, 0]"), "the seeds 0, 0 have one twice"),
    ],
)
def test_a_bad_definition_is_refused(tmp_path: Path, change: tuple[str, str], told: str) -> None:
    from crosswind.study.definition import FOLDER

    text = (FOLDER / "fragility.yaml").read_text()
    assert change[0] in text
    path = tmp_path / "study.yaml"
    path.write_text(text.replace(*change, 1))
    with pytest.raises(BadFile, match=told):
        load_study(path)


def test_a_definition_is_read_without_what_trains() -> None:
    code = "import sys; from crosswind.study.definition import load_study; load_study(); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


# ---------------------------------------------------------------- a study in miniature

MINI: dict[str, Any] = {
    "name": "mini",
    "model": "",
    "seeds": [0],
    "max_tokens": 24,
    "arms": [
        {"name": "base", "wave": "A"},
        {
            "name": "static",
            "wave": "A",
            "method": "sft",
            "train": {
                "steps": 6,
                "batch": 4,
                "lr": 0.003,
                "save_every": 2,
                "log_every": 1,
                "lora": {"rank": 4},
                "data": {"domains": {"shelf": 1}, "max_tokens": 0},
            },
        },
        {"name": "paft", "wave": "A", "like": "static", "method": "paft", "train": {"data": {"share": 0.3}}},
        {
            "name": "adaptive",
            "wave": "C",
            "like": "paft",
            "train": {"adaptive": {"rounds": 2}, "evaluate": {"tasks": 1, "max_tokens": 8}},
        },
        {
            "name": "rl",
            "wave": "C",
            "method": "grpo",
            "start": "static",
            "train": {
                "steps": 3,
                "groups": 2,
                "copies": 2,
                "max_new": 8,
                "measured": 2,
                "data": {"domains": {"shelf": 1}, "share": 0, "max_tokens": 0},
            },
        },
    ],
    "dev": {
        "name": "dev",
        "split": "dev",
        "domains": ["shelf"],
        "tasks": 2,
        "conditions": [{"name": "dev/perception", "tasks": 2, "stack": [{"kind": "semantic_rename"}]}],
    },
    "test": {
        "name": "test",
        "split": "test",
        "domains": ["shelf"],
        "tasks": 6,
        "conditions": [
            {
                "name": "tiers/perception",
                "stack": [{"one_of": {"semantic_rename": 1, "parameter_rename": 1}, "severity": [1, 4]}],
            },
            {"name": "heldout/interaction", "stack": [{"one_of": {"envelope": 1}, "severity": [1, 2]}]},
        ],
    },
}


@pytest.fixture(scope="module")
def definition(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    pytest.importorskip("torch")
    pytest.importorskip("trl")
    from tests import tiny

    folder = tmp_path_factory.mktemp("mini")
    with tiny.shelf(folder):
        model = tiny.save(folder / "model", "shelf", hidden=32)
        path = folder / "mini.yaml"
        path.write_text(json.dumps({**MINI, "model": str(model)}))
        yield path


@pytest.fixture(scope="module")
def mini(definition: Path) -> Study:
    return load_study(definition)


@pytest.fixture(scope="module")
def ran(mini: Study, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where two arms were trained and tested without a break, for several tests to look at."""
    out = tmp_path_factory.mktemp("ran") / "out"
    done = go(mini, out, arms=["base", "static"])
    assert done.finished == ["base/seed-0", "static/seed-0"]
    assert not done.failed
    return out


def go(study: Study, out: Path, **options: Any) -> Any:
    from crosswind.study.runner import run

    return run(study, out, commit="c0ffee", **options)


def test_arms_are_trained_tested_stored_and_reported(mini: Study, ran: Path, tmp_path: Path) -> None:
    from crosswind.report.markdown import literal
    from crosswind.runs.store import load_run
    from crosswind.study.report import write

    out = ran
    folder = out / "arms" / "static" / "seed-0"
    run = load_run(folder / "test")
    assert run.manifest.state == "finished"
    assert run.manifest.agent == "mini:static/seed-0"
    told = (folder / "test" / "run.json").read_text()
    assert str(out.parent) not in told
    assert mini.model not in told
    head, rows = outcomes.read(folder / "test.jsonl.xz", "static", 0)
    assert head["arm"] == "static"
    assert len(rows) == len(run.records) > 15
    by_key = {record.key: record for record in run.records}
    for row in rows:
        record = by_key[row.record.key]
        assert (row.record.outcome, row.record.exposed, row.record.cause, row.record.kinds, row.record.tier) == (
            record.outcome,
            record.exposed,
            record.cause,
            record.kinds,
            record.tier,
        )
    log = [json.loads(line) for line in (out / "test_log.jsonl").read_text().splitlines()]
    assert [(line["arm"], line["event"]) for line in log] == [
        (arm, event) for arm in ("base", "static") for event in ("begins", "ended")
    ]
    hashes = {json.loads((p / "test.json").read_text())["episodes_hash"] for p in (out / "arms").glob("*/seed-0")}
    assert len(hashes) == 1
    assert hashes != {""}
    again = go(mini, out, arms=["base", "static"])
    assert again.before == ["base/seed-0", "static/seed-0"]
    assert len((out / "test_log.jsonl").read_text().splitlines()) == 4

    old = tmp_path / "docs" / "study_share.svg"
    old.parent.mkdir()
    old.write_text("of arms that were there once")
    pages = write(mini, out, old.parent)
    assert not old.exists()
    text = pages[0].read_text()
    assert "paft" in text
    assert "missing" in text
    assert "c0ffee" in text
    short = text.split("## In short")[1].split("## ")[0]  # counts the marks of the tables further down
    for mark in ("missing", "reproduced", "met", "not met"):
        counted = sum(map(int, re.findall(rf"(?<!\d)(\d+) {mark}(?=[,.])", short)))
        assert counted == text.count(f"| **{mark}** |"), (mark, short)
    of_tiers = [row.record for row in rows if row.record.condition.startswith("tiers/")]
    kind = of_tiers[0].kinds[0]
    some = [record for record in of_tiers if record.kinds == (kind,)]
    line = next(line for line in text.splitlines() if line.startswith("| tiers |") and f"| {literal(kind)} |" in line)
    passed = 100 * sum(record.passed for record in some) / len(some)
    assert line.split(" | ")[4].startswith(f"{passed:.1f} (")  # after base
    assert line.split(" | ")[4].endswith(f"; {len(some)})")
    causes = [record.cause for record in some if not record.passed]
    most = max(causes, key=causes.count)
    assert f"{most} {causes.count(most)}" in line.split(" | ")[5]


def test_an_arm_goes_on_where_it_was_killed_here_and_elsewhere(
    mini: Study, ran: Path, definition: Path, tmp_path: Path
) -> None:
    """A process is killed while it trains; the next call goes on, and ends with the weights of an unbroken run."""
    from safetensors.torch import load_file

    out = tmp_path / "out"
    mark = out / "arms/static/seed-0/train/checkpoints/checkpoint-2/crosswind.json"
    script = (
        "import os, signal, sys; from pathlib import Path; from tests import tiny\n"
        "from crosswind.study.definition import load_study; from crosswind.study.runner import run\n"
        "def die(update): Path(sys.argv[4]).is_file() and os.kill(os.getpid(), signal.SIGKILL)\n"
        "with tiny.shelf(Path(sys.argv[1])):\n"
        "    run(load_study(sys.argv[2]), Path(sys.argv[3]), arms=['static'], commit='', progress=die)\n"
    )
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-c", script, *map(str, (tmp_path, definition, out, mark))]
    assert subprocess.run(command, env=env).returncode == -signal.SIGKILL
    assert mark.parent.parent.is_dir()
    assert not (out / "arms/static/seed-0/test.json").is_file()
    shutil.copytree(mark.parent, mark.parent.with_name("checkpoint-1"))
    (mark.parent.with_name("checkpoint-9")).mkdir()  # as if it was killed while it wrote this one
    (mark.parent.with_name("checkpoint-9") / "state.pt").write_bytes(b"half")
    results, training = running.bundle(out, tmp_path / "packed", trainings=["static"])
    assert training.name == "training-static-0.tar"
    with tarfile.open(results) as one, tarfile.open(training) as other:
        assert "arms/static/seed-0/train/train.json" not in one.getnames()  # it could not go on there
        assert {name.split("/")[5] for name in other.getnames() if "checkpoint-" in name} == {"checkpoint-2"}
    there = tmp_path / "there"
    running.unbundle([results, training], there)
    for place in (out, there):
        done = go(mini, place, arms=["static"])
        assert done.finished == ["static/seed-0"], (done, *(p.read_text() for p in place.rglob("failed.txt")))
        assert json.loads((place / "arms/static/seed-0/test.json").read_text())["train"]["resumed"] >= 2
        weights = [load_file(p / "arms/static/seed-0/train/adapter/adapter_model.safetensors") for p in (place, ran)]
        assert all((weights[0][name] == weights[1][name]).all() for name in weights[1])
    told = (there / "arms/static/seed-0/train/metrics.jsonl").read_bytes()
    running.unbundle([training], there)  # what is further there stays
    assert (there / "arms/static/seed-0/train/metrics.jsonl").read_bytes() == told


def test_a_budget_stops_cleanly_and_the_rest_follows(mini: Study, tmp_path: Path, monkeypatch: Any) -> None:
    out = tmp_path / "out"
    short = go(mini, out, arms=["base", "static"], minutes=0.5)  # nothing was ever measured: a minute must be left
    assert not short.finished
    assert set(short.left) == {"base/seed-0", "static/seed-0"}

    monkeypatch.setattr(running, "UNKNOWN", 0.0)
    lefts = iter([100.0] * 4)
    monkeypatch.setattr(running.Clock, "left", property(lambda self: next(lefts, -1.0)))
    part = go(mini, out, arms=["static"], minutes=5)
    assert "is trained up to step" in part.stopped
    monkeypatch.undo()

    rest = go(mini, out, arms=["static"])
    assert rest.finished == ["static/seed-0"]
    told = json.loads((out / "arms/static/seed-0/test.json").read_text())
    assert told["train"]["resumed"]
    slow = {**told, "spent": {"train": 6000.0, "test": 6000.0}}
    (out / "arms/static/seed-0/test.json").write_text(json.dumps(slow))
    late = go(mini, out, arms=["paft"], minutes=30)  # what was measured says that it will not fit
    assert "it takes about" in late.left["paft/seed-0"]
    anyway = go(mini, out, arms=["paft"], minutes=30, partial=True)
    assert anyway.finished == ["paft/seed-0"]


def test_reinforcement_goes_on_from_another_arm_and_where_it_was_stopped(
    mini: Study, ran: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    from crosswind.study import runner as module
    from crosswind.study.report import write

    turn = iter(range(1000))
    monkeypatch.setattr(
        "crosswind.train.rollouts.reward", lambda *_: float(next(turn) % 2)
    )  # so that there is a signal
    out = tmp_path / "out"
    shutil.copytree(ran, out)
    left = iter([60.0] * 3)  # seconds; then time runs out in the midst of the training
    with monkeypatch.context() as patched:
        patched.setattr(module.Clock, "left", property(lambda _: next(left, 0.0)))
        stopped = go(mini, out, arms=["rl"], minutes=1.0, partial=True)
    assert not stopped.finished
    assert not stopped.failed
    assert "is trained up to step" in str(stopped.stopped)
    done = go(mini, out, arms=["rl"])
    assert (done.finished, done.failed) == (["rl/seed-0"], {})
    told = json.loads((out / "arms" / "rl" / "seed-0" / "test.json").read_text())
    assert told["train"]["resumed"]
    assert told["train"]["steps"] == 3

    running.collect(out, tmp_path / "kept")  # with what the report tells of reinforcement
    assert {path.parent.parent.parent.name for path in tmp_path.glob("kept/arms/*/*/train/metrics.jsonl")} == {"rl"}
    lines = [json.loads(line) for line in (out / "arms/rl/seed-0/train/metrics.jsonl").read_text().splitlines()]
    text = write(mini, tmp_path / "kept", tmp_path / "docs")[0].read_text()
    part = text.split("## Reinforcement")[1].split("## ")[0]
    assert f"| rl | 0 | {lines[0]['reward']:.2f} to {lines[-1]['reward']:.2f} |" in part
    found = pools(mini, out)
    row = next(line for line in part.splitlines() if line.startswith("| static to rl |")).split(" | ")
    assert row[2] == changed(between(found["static"], found["rl"], "tiers"))
    assert row[3] == changed(between(found["static"], found["rl"], "tiers", lambda record: not record.refuse))


def test_an_arm_that_others_start_from_is_trained_again_without_a_test(
    mini: Study, ran: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    out = tmp_path / "out"
    shutil.copytree(ran, out)
    shutil.rmtree(out / "arms" / "static" / "seed-0" / "train")
    told = (out / "arms" / "static" / "seed-0" / "test.json").read_bytes()
    refused = go(mini, out, arms=["rl"])
    assert "--arms static --only-train" in refused.failed["rl/seed-0"]
    with monkeypatch.context() as patched:
        patched.setattr("crosswind.study.runner.Job.test", lambda *_, **__: pytest.fail("it was tested"))
        again = go(mini, out, arms=["static"], seeds=[0], only_train=True)
        assert again.finished == ["static/seed-0"]
        assert go(mini, out, arms=["static"], seeds=[0], only_train=True).before == ["static/seed-0"]
    assert (out / "arms" / "static" / "seed-0" / "train" / "adapter" / "adapter_config.json").is_file()
    assert (out / "arms" / "static" / "seed-0" / "test.json").read_bytes() == told


def test_an_adaptive_arm_is_trained_goes_on_and_is_tested(mini: Study, tmp_path: Path, monkeypatch: Any) -> None:
    from crosswind.models.engine import Engine

    out = tmp_path / "out"
    measured = out / "arms/adaptive/seed-0/train/rounds/1/measured"
    with monkeypatch.context() as patched:  # time runs out while it is measured between rounds
        patched.setattr(running.Clock, "left", property(lambda _: -1.0 if measured.is_dir() else 100.0))
        stopped = go(mini, out, arms=["adaptive"], minutes=5.0, partial=True)
    assert (stopped.finished, stopped.failed) == ([], {})
    assert re.search(r"is measuring round 1: \d+ of \d+", stopped.stopped), stopped
    (out / "arms/adaptive/seed-0/train/rounds.json").write_text("[]")
    running.bundle(out, tmp_path / "packed")
    with tarfile.open(tmp_path / "packed" / "results.tar") as tar:  # what is not finished is in nobody's way
        assert not [name for name in tar.getnames() if name.endswith(("train.json", "rounds.json"))]
    out = out.rename(tmp_path / "moved")  # it goes on all the same
    seen: list[int] = []
    begin = Engine.__init__

    def watched(self: Engine, *args: Any, **options: Any) -> None:
        seen.append(options["slots"])
        begin(self, *args, **options)

    monkeypatch.setattr(Engine, "__init__", watched)
    done = go(mini, out, arms=["adaptive"], slots=3)
    assert (done.finished, done.failed) == (["adaptive/seed-0"], {})
    assert set(seen) == {3}  # between rounds too: several processes share a device's memory
    assert len(seen) > 2
    told = json.loads((out / "arms" / "adaptive" / "seed-0" / "test.json").read_text())
    assert [one["number"] for one in told["train"]["extra"]["rounds"]] == [1, 2]
    assert not (arm := mini.arm("adaptive")).at
    assert not mini.another(arm, 0, told["config"], "of another time")
    former = {**told["config"], "adaptive": {"rounds": 2}}  # before there was a second rule
    assert "adaptive.rule was 1, now 2" in mini.another(arm, 0, former, "of another time")
    running.bundle(out, tmp_path / "packed")
    with tarfile.open(tmp_path / "packed" / "results.tar") as tar:
        assert "arms/adaptive/seed-0/train/rounds.json" in tar.getnames()


@pytest.mark.parametrize("text", ['{"train": ', "[]", '{"train": "long"}'])
def test_seconds_that_are_damaged_are_told_of_before_anything_is_trained(
    mini: Study, tmp_path: Path, monkeypatch: Any, text: str
) -> None:
    monkeypatch.setattr(running.Job, "train", lambda *_: pytest.fail("it was trained"))
    path = running.folder_of(tmp_path, "static", 0) / "spent.json"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    told = go(mini, tmp_path, arms=["static"]).failed["static/seed-0"]
    assert told == f"{path}: is damaged; take it away, and give the same command again"


def test_one_that_fails_leaves_the_others(mini: Study, tmp_path: Path, monkeypatch: Any) -> None:
    from crosswind.study.report import write

    def broken(self: Any, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no such luck")

    out = tmp_path / "out"
    monkeypatch.setattr(running.Job, "train", broken)
    done = go(mini, out, arms=["static", "base"])
    assert done.finished == ["base/seed-0"]
    assert "no such luck" in done.failed["static/seed-0"]
    assert "no such luck" in (out / "arms/static/seed-0/failed.txt").read_text()
    page = write(mini, out, tmp_path / "docs")[0].read_text()
    assert "> Failed: static (seed 0): RuntimeError" in page
    assert "no such luck" in page
    changed = mini.model_copy(update={"max_tokens": 25})
    with pytest.raises(CrosswindError, match="another definition"):
        go(changed, out, arms=["base"])


def test_the_arm_that_stands_for_paft_is_chosen_on_dev() -> None:
    study, folder = load_study(), ROOT / "docs" / "results" / "study"
    found, dev = pools(study, folder), pools(study, folder, "dev")
    former, plain = dev["paft-few-names"], dev["paft-plain"]
    some = {pool.name: pool for pool in (former, plain, dev["static"])}
    assert former.arm.at
    assert plain.arm.at
    plain.arm = plain.arm.model_copy(update={"at": ""})
    assert best_paft(found, some) == "paft-plain"  # those of former commits do not count
    former.arm = former.arm.model_copy(update={"at": ""})
    assert best_paft(found, some) == "paft-few-names"  # it passed more on dev
    assert best_paft({"static": found["static"]}, some) == "paft"  # nothing to choose from


@pytest.mark.parametrize(
    ("means", "mark"),
    [
        ((-0.70, -0.60, -0.55, -0.50), "reproduced"),  # eased, not healed
        ((-0.70, -0.72, -0.75, -0.80), "different"),  # it loses more
        ((-0.70, -0.60, -0.55, -0.69), "different"),  # hardly any less
        ((-0.70, -0.40, -0.20, -0.10), "not reproduced"),  # healed
        ((-0.70, -0.60, -0.30, -0.30), "different"),  # between
        ((-0.70, -0.60, -0.50, None), "missing"),
        ((-0.05, -0.60, -0.50, -0.40), "different"),  # nothing to heal
    ],
)
def test_longer_training_eases_the_loss_if_the_numbers_say_so(
    means: tuple[float | None, ...], mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from crosswind.study import findings

    arms = dict(zip(("static-200", "static-400", "static", "static-3200"), means, strict=True))

    def mean(_: Any, arm: str) -> float:
        if (found := arms.get(arm)) is None:
            raise findings.Absent(arm)
        return found

    monkeypatch.setattr(findings._Look, "mean", mean)
    claim = next(one for one in findings.findings({}) if one.claim.startswith("Longer training"))
    assert claim.mark == mark


def test_refusals_are_told_by_suite_and_kind() -> None:
    """Against the stored rows, counted here."""
    from crosswind.report import words
    from crosswind.study.findings import asked, findings

    study, folder = load_study(), ROOT / "docs" / "results" / "study"
    found = pools(study, folder)

    def share(arm: str, suite: str, kind: str) -> tuple[int, int]:
        some = [r for r in found[arm].of(suite) if r.kinds == (kind,) and r.refuse]
        return sum(found[arm].measures[r.key].refused for r in some), len(some)

    told = next(one for one in findings(found) if one.claim.startswith("PAFT refuses")).numbers
    for kind, said in (("fatal_error", "fatal_error, never trained"), ("unsolvable", "unsolvable")):
        right, n = share("paft", "original", kind)
        assert n > 100
        assert f"{said} {words.percent(right / n)}" in told
    told = next(one for one in asked(found, "paft-wide") if one.claim.startswith("PAFT refuses")).numbers
    right, n = share("paft-wide", "heldout", "fatal_error")
    assert f"on heldout {words.percent(right / n)} and " in told


def test_results_are_carried_and_collected(mini: Study, ran: Path, tmp_path: Path) -> None:
    from crosswind.runs.store import load_run
    from crosswind.study.runner import bundle, collect, unbundle

    there = tmp_path / "there"
    files = bundle(ran, tmp_path / "packed", adapters=["static/0"], runs=["static"])
    assert [file.name for file in files] == ["results.tar", "adapter-static-0.tar", "run-static-0.tar"]
    unbundle(files, there)
    assert go(mini, there, arms=["static"]).before == ["static/seed-0"]
    packed, first = (load_run(p / "arms/static/seed-0/test").records for p in (there, ran))
    assert packed == first
    assert (there / "arms/static/seed-0/train/adapter/adapter_config.json").is_file()
    kept = tmp_path / "kept"
    assert collect(there, kept) == 2
    episodes = there / "arms/static/seed-0/test/episodes.jsonl"
    episodes.write_text(episodes.read_text() + "{}\n")  # it has gone on since
    unbundle(files, there)
    assert episodes.read_text().endswith("{}\n")
    assert not list(there.rglob("*.packed"))
    (tmp_path / "file").write_text("no tar")
    with pytest.raises(CrosswindError, match="is no file that `crosswind study pack` made"):
        unbundle([tmp_path / "file"], there)
    for act in (lambda p: unbundle(files, p), lambda p: bundle(ran, p), lambda p: collect(ran, p)):
        with pytest.raises(CrosswindError, match="cannot be made"):
            act(tmp_path / "file" / "inside")
    names = [*["test.json"] * 2, *["test.jsonl.xz"] * 2, "test_log.jsonl"]
    assert sorted(p.name for p in kept.rglob("*") if p.is_file()) == names


def test_a_folder_of_another_definition_is_left_as_it_is(mini: Study, ran: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(ran, out)
    before = (out / "study.yaml.json").read_bytes()
    other = mini.model_copy(update={"max_tokens": 25})
    with pytest.raises(CrosswindError, match="another definition"):
        go(other, out, arms=["base", "paft"])
    assert (out / "study.yaml.json").read_bytes() == before
    assert not (out / "arms" / "paft").exists()


@pytest.mark.parametrize(
    ("path", "text", "told"),
    [("arms/base/seed-0/test.json", "{}", "no result of a study"), ("test_log.jsonl", '{"when"', "no line of JSON")],
)
def test_damaged_results_are_told_of(mini: Study, ran: Path, tmp_path: Path, path: str, text: str, told: str) -> None:
    from crosswind.study.report import write

    out = tmp_path / "out"
    shutil.copytree(ran, out)
    (out / path).write_text(text)
    with pytest.raises(BadFile, match=told):
        write(mini, out, tmp_path / "docs")
    (tmp_path / "file").write_text("")
    with pytest.raises(BadFile, match="cannot be written"):
        write(mini, ran, tmp_path / "file" / "docs")


def test_arms_are_compared_in_the_same_episodes() -> None:
    found = pools(load_study(), ROOT / "docs" / "results" / "study")
    static, plain = found["static"], found["paft-plain"]
    for suite in ("", "medical"):
        keep = [r for r in (plain.of(suite) if suite else plain.clean) if r.domain == "medical" and not r.refuse]
        one = between(static, plain, suite, lambda r: r.domain == "medical" and not r.refuse)
        assert one is not None
        assert one.pairs == len(keep)
        mine = {(r.task_id, r.condition): r for r in static.records if r.trial == 0}
        rate = [(r.outcome == "pass") - (mine[r.task_id, r.condition].outcome == "pass") for r in keep]
        assert one.delta == pytest.approx(sum(rate) / len(rate))


def test_curves_have_round_ticks_and_places_to_scale() -> None:
    from crosswind.study import plots

    points = [(1.0, -0.61, -0.65, -0.57), (1.2, -0.1, -0.12, -0.08), (1.5, 0.05, 0.01, 0.09)]
    drawn = plots.curve("title", "share", {1: "least", 1.2: "some", 1.5: "most"}, {"tiers": points})
    texts = {text: float(x) for x, text in re.findall(r'<text x="([0-9.]+)"[^>]*>([^<]+)</text>', drawn)}
    assert {"-80", "-60", "-40", "-20", "0", "+20"} <= texts.keys()
    assert not {"-100", "+40"} & texts.keys()
    assert (texts["least"], texts["some"], texts["most"]) == (100, 304, 610)
    drawn = plots.curve("title", "share", {1: "one", 2: "a place with a long name"}, {"tiers": points})
    [(page, name)] = re.findall(r'width="(\d+)".*x="([0-9.]+)"[^>]*>a place with a long name<', drawn)
    assert float(name) + 6 * len("a place with a long name") / 2 < float(page)  # letters are some 6 wide


def test_rewards_are_told_by_the_first_and_the_last_quarter_of_the_steps() -> None:
    from crosswind.study.report import _ends

    lines: list[dict[str, Any]] = [{"reward": n / 10, "perturbed": None} for n in range(9)]
    assert _ends(lines, "reward") == "0.05 to 0.75"
    assert _ends(lines[:3], "reward") == "0.00 to 0.20"
    assert _ends(lines, "perturbed") == _ends([], "reward") == "–"
    assert _ends([{"perturbed": None}, *lines[1:2], {"perturbed": 0.5}, *lines[:5]], "perturbed") == "–"


def test_a_run_without_an_episode_is_carried(tmp_path: Path) -> None:
    from crosswind.study import outcomes

    began, packed = tmp_path / "began", tmp_path / "packed"
    began.mkdir()
    (began / "run.json").write_text("{}")
    (began / "episodes.jsonl").touch()
    outcomes.unpack(outcomes.pack(began, packed), tmp_path / "there")
    assert (tmp_path / "there" / "episodes.jsonl").read_bytes() == b""
    assert lzma.decompress((packed / outcomes.PACKED).read_bytes()) == b""
    (packed / outcomes.PACKED).write_bytes(b"")
    outcomes.unpack(packed, tmp_path / "there")
    for damaged in (lzma.compress(b"{}\n" * 99)[:40], b"no archive"):
        (packed / outcomes.PACKED).write_bytes(damaged)
        with pytest.raises(CrosswindError, match="pack the run again"):
            outcomes.unpack(packed, tmp_path / "there")


def test_no_line_of_the_log_is_lost_whatever_comes_with_it(tmp_path: Path) -> None:
    from crosswind.study.runner import LOG, unbundle

    def packed(name: str, **members: bytes) -> Path:
        with tarfile.open(tmp_path / name, "w") as tar:
            for member, data in members.items():
                entry = tarfile.TarInfo(member.replace("__", "/"))
                entry.size = len(data)
                tar.addfile(entry, io.BytesIO(data))
        return tmp_path / name

    out = tmp_path / "study"
    out.mkdir()
    (out / LOG).write_text('{"own": 1}\n')
    (tmp_path / "bad.tar").write_text("no tar")
    good = packed("good.tar", **{LOG: b'{"theirs": 1}\n{"own": 1}\n'})
    with pytest.raises(CrosswindError, match="is no file that `crosswind study pack` made"):
        unbundle([good, tmp_path / "bad.tar"], out)
    assert (out / LOG).read_text().splitlines() == ['{"own": 1}', '{"theirs": 1}']
    half = packed("half.tar", **{"arms__a__seed-0__test.packed__run.json": b"{}"})
    with pytest.raises(CrosswindError, match=r"test.packed: has no episodes.jsonl.xz.*pack the run again"):
        unbundle([half], out)
    assert not list(out.rglob("*.packed"))


def test_an_arm_of_another_configuration_is_named_in_the_report(mini: Study, ran: Path, tmp_path: Path) -> None:
    from crosswind.study.report import write

    out = shutil.copytree(ran, tmp_path / "out")
    said = "trained by another configuration than the present one"
    write(mini, out, tmp_path / "report")
    assert said not in (tmp_path / "report" / "study.md").read_text()
    path = out / "arms" / "static" / "seed-0" / "test.json"
    done = json.loads(path.read_text())
    path.write_text(json.dumps({**done, "config": {**done["config"], "batch": 99}, "config_hash": "of then"}))
    write(mini, out, tmp_path / "report")
    assert f"{said}: static/seed-0 (batch was 99, now " in (tmp_path / "report" / "study.md").read_text()


def test_a_report_leads_to_the_log_only_if_there_is_one(mini: Study, ran: Path, tmp_path: Path) -> None:
    from crosswind.study.report import write

    out = shutil.copytree(ran, tmp_path / "out")
    path = out / "arms" / "static" / "seed-0" / "test.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "code": "0" * 16}))
    for there in (True, False):
        if not there:
            (out / "test_log.jsonl").unlink()
        write(mini, out, tmp_path / "report")
        told = (tmp_path / "report" / "study.md").read_text()
        assert ("made by 2 versions of the code; the log at the end tells which.\n" in told) is there
        assert ("made by 2 versions of the code.\n" in told) is not there
        assert ("There is no log." in told) is not there


def test_damaged_results_are_told_in_a_line(mini: Study, ran: Path, tmp_path: Path) -> None:
    from crosswind.study.report import write
    from crosswind.study.runner import LOG, bundle, collect

    out = shutil.copytree(ran, tmp_path / "out")
    (out / LOG).write_bytes(b"[]\n")
    with pytest.raises(CrosswindError, match=r"'\[\]' is no line of JSON"):
        write(mini, out, tmp_path / "report")
    (out / LOG).write_bytes(b"\xff\n")
    with pytest.raises(CrosswindError, match="is no line of JSON"):
        write(mini, out, tmp_path / "report")
    folder = out / "arms" / "static" / "seed-0"
    (folder / "test" / "run.json").unlink()
    assert [path.name for path in bundle(out, tmp_path / "packed", runs=["static"])] == ["results.tar"]
    (folder / "test.jsonl.xz").unlink()
    with pytest.raises(CrosswindError, match=r"test.jsonl.xz: is missing; take .* away"):
        collect(out, tmp_path / "kept")
    (out / "arms" / "base" / "seed-0" / "test.json").write_text('{"study": ')
    with pytest.raises(CrosswindError, match="is no result of a study"):
        go(mini, out, arms=["base"])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"seed": 1}, r"static/seed-0/test.json: is the result of static/seed-1/test.json; put it there, or"),
        ({"arm": "base"}, r"static/seed-0/test.json: is the result of base/seed-0/test.json"),
        ({"part": "dev"}, r"is the result of static/seed-0/dev.json"),
        ({"arm": "../x <b>"}, r"is no result of a study \(got '../x <b>'; string should match"),
        ({"wave": "Z"}, r"is no result of a study \(got 'Z'; "),
        ({"episodes": 99}, r"test.jsonl.xz: is not the table of .*test.json \(of \d+ episodes .* has 99, "),
    ],
)
def test_a_result_in_the_place_of_another_is_refused(
    mini: Study, ran: Path, tmp_path: Path, change: dict[str, Any], told: str
) -> None:
    out = shutil.copytree(ran, tmp_path / "out")
    path = out / "arms" / "static" / "seed-0" / "test.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(BadFile, match=told) as refused:
        pools(mini, out)
    assert "\n" not in str(refused.value)


def test_a_table_that_was_cut_or_is_another_is_refused(mini: Study, ran: Path, tmp_path: Path) -> None:
    out = shutil.copytree(ran, tmp_path / "out")
    table = out / "arms" / "static" / "seed-0" / "test.jsonl.xz"
    lines = lzma.decompress(table.read_bytes()).splitlines(keepends=True)
    table.write_bytes(lzma.compress(b"".join(lines[:-1])))
    with pytest.raises(
        BadFile, match=rf"is not the table of .* \(of {len(lines) - 2} episodes .* has {len(lines) - 1}, "
    ):
        pools(mini, out)
    for bad in (b"5\n", b'["a/b","c",5' + b",null" * (len(outcomes.COLUMNS) - 3) + b"]\n"):
        table.write_bytes(lzma.compress(b"".join([lines[0], bad])))
        with pytest.raises(BadFile, match="cannot be read as a table of outcomes") as refused:
            pools(mini, out)
        assert "\n" not in str(refused.value)
    for lines_now, told in (
        ([lines[0].replace(b'"seed":0', b'"seed":1'), *lines[1:]], "its seed is 1"),
        ([*lines[:-1], lines[-1].replace(b"shelf/colour_of/", b"shelf/another/")], "its episodes are others"),
    ):
        assert lines_now != lines
        table.write_bytes(lzma.compress(b"".join(lines_now)))
        with pytest.raises(BadFile, match=rf"static/seed-0/test.jsonl.xz: is not the table of .* \({told}\)"):
            pools(mini, out)


@pytest.mark.parametrize("name", ["../escaped", "/crosswind-escaped", "link", "arms/a\0b"])
def test_a_bundle_that_would_write_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    from crosswind.study.runner import unbundle

    with tarfile.open(tmp_path / "bad.tar", "w") as tar:
        entry = tarfile.TarInfo(name)
        if name == "link":
            entry.type, entry.linkname = tarfile.SYMTYPE, "../escaped"
        elif "\0" in name:
            entry.name, entry.pax_headers = "short", {"path": name}
        tar.addfile(entry)
    with pytest.raises(CrosswindError, match="never makes"):
        unbundle([tmp_path / "bad.tar"], tmp_path / "study")
    assert not (tmp_path / "escaped").exists()
    assert not Path("/crosswind-escaped").exists()


def test_what_failed_before_and_is_finished_now_has_not_failed(tmp_path: Path) -> None:
    from crosswind.study.runner import FAILED, unbundle

    arm = "arms/static/seed-0"
    (tmp_path / arm).mkdir(parents=True)
    (tmp_path / arm / "test.json").write_text("{}")
    (tmp_path / FAILED).write_text("no room")
    for names in (("test.json",), ("test.json", FAILED)):  # in the order in which `bundle` writes them
        with tarfile.open(tmp_path / "results.tar", "w") as tar:
            for name in names:
                tar.add(tmp_path / (name if name == FAILED else f"{arm}/{name}"), f"{arm}/{name}")
        (tmp_path / "study" / arm).mkdir(parents=True, exist_ok=True)
        (tmp_path / "study" / arm / FAILED).write_text("no room")
        unbundle([tmp_path / "results.tar"], tmp_path / "study")
        assert (tmp_path / "study" / arm / FAILED).is_file() is (FAILED in names)


def test_an_arm_waits_for_the_one_that_it_starts_from(mini: Study, tmp_path: Path) -> None:
    from crosswind.study.runner import Job

    after = mini.arm("static").model_copy(update={"name": "after", "start": "static"})
    study = Study.model_validate({**mini.model_dump(), "arms": (*mini.by_name.values(), after)})
    first = Job(study, study.arm("static"), 0, tmp_path, "test")
    with first.locked():  # as another process would
        done = go(study, tmp_path, arms=["after"])
    assert done.left == {
        "static/seed-0": "another process works at it",
        "after/seed-0": "static/seed-0, which it starts from, is not trained yet",
    }
    assert not done.failed
    assert not list(tmp_path.rglob("failed.txt"))


def test_an_arm_that_is_only_started_from_is_not_tested(mini: Study, tmp_path: Path) -> None:
    after = mini.arm("static").model_copy(update={"name": "after", "start": "static"})
    study = Study.model_validate({**mini.model_dump(), "arms": (*mini.by_name.values(), after)})
    done = go(study, tmp_path, arms=["after"], seeds=[0])
    assert (done.finished, done.failed) == (["static/seed-0", "after/seed-0"], {})
    assert [path.parts[-3] for path in tmp_path.glob("arms/*/seed-0/test.json")] == ["after"]
    assert go(study, tmp_path, arms=["after"], seeds=[0]).before == ["static/seed-0", "after/seed-0"]
    assert go(study, tmp_path, arms=["static", "after"], seeds=[0]).finished == ["static/seed-0"]
    assert (tmp_path / "arms/static/seed-0/test.json").is_file()
    for path in tmp_path.glob("arms/*/seed-0/test.json"):
        path.unlink()
    slower = {**study.arm("static").train, "lr": 0.001}  # it was trained under another definition
    first = study.arm("static").model_copy(update={"train": slower})
    others = tuple(first if arm.name == "static" else arm for arm in study.by_name.values())
    other = Study.model_validate({**study.model_dump(), "arms": others})
    refused = go(other, tmp_path, arms=["after"], seeds=[0])
    assert "another recipe (lr was 0.003, now 0.001)" in refused.failed["static/seed-0"]
    assert refused.left == {"after/seed-0": "static/seed-0, which it starts from, failed"}


def test_without_names_every_arm_is_tested_and_what_has_no_time_is_waited_for(
    mini: Study, tmp_path: Path, monkeypatch: Any
) -> None:
    from types import SimpleNamespace

    monkeypatch.setattr(running.Job, "go", lambda *_, **__: SimpleNamespace(passed=0, scored=0, spent={}))
    monkeypatch.setattr(running.Job, "learn", lambda *_, **__: pytest.fail("it is not tested"))
    assert len(go(mini, tmp_path).finished) == len(mini.queue())
    monkeypatch.setattr(running.Pace, "needs", lambda _, job, **__: 600.0 if job.arm.name == "static" else 1.0)
    short = go(mini, tmp_path, arms=["rl"], seeds=[0], minutes=2.0)
    assert "it takes about 600" in short.left["static/seed-0"]
    assert short.left["rl/seed-0"] == "static/seed-0, which it starts from, is not trained yet"
    with pytest.raises(CrosswindError, match="there is no such folder"):
        commands.arms(tmp_path / "nowhere")


def test_folders_are_shared_between_processes(mini: Study, tmp_path: Path) -> None:
    from crosswind.study.runner import Job

    out = tmp_path / "out"
    with Job(mini, mini.arm("base"), 0, out, "test").locked() as ours:
        assert ours
        assert go(mini, out, arms=["base"]).left == {"base/seed-0": "another process works at it"}


def test_an_adapter_ships_with_a_card(ran: Path, tmp_path: Path, monkeypatch: Any) -> None:
    gguf = pytest.importorskip("gguf")
    from crosswind.models import weights
    from crosswind.study.ship import ship

    path = tmp_path / "base.gguf"
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    monkeypatch.setattr(weights, "fetch", lambda _: path)
    made = ship(ran / "arms/static/seed-0", "static", tmp_path / "adapters")
    assert sorted(p.name for p in made.iterdir()) == ["README.md", "adapter.gguf", "crosswind.json"]
    card = (made / "README.md").read_text()
    assert "Arm `static`, seed 0" in card
    assert "| tiers: " in card
    with pytest.raises(CrosswindError, match="not finished"):
        ship(tmp_path, "paft", tmp_path / "adapters")


def test_the_adapters_in_the_package_are_those_of_the_stored_results() -> None:
    """Their cards tell what the stored outcomes say, PAFT's is the arm that was best on dev, and no part is missing."""
    gguf = pytest.importorskip("gguf")
    from crosswind.models import adapters
    from crosswind.study.ship import card_of

    study, stored = load_study(), Path(__file__).parent.parent / "docs/results/study"
    found = pools(study, stored)
    assert adapters.shipped() == ["static", "paft"]
    for name, arm in (("static", "static"), ("paft", best_paft(found, pools(study, stored, "dev")))):
        folder = adapters.FOLDER / name
        pool = found[arm].seed(0)
        about = json.loads((folder / "crosswind.json").read_text(encoding="utf-8"))
        card = (folder / "README.md").read_text(encoding="utf-8")
        assert card == card_of(name, pool.done[0], pool, about)
        assert f"Arm `{arm}`, seed 0" in card
        assert bool(about["recipe"]["data"]["share"]) == (name == "paft")
        tensors = {one.name for one in gguf.GGUFReader(str(folder / adapters.FILE)).tensors}
        assert len(tensors) == 30 * 7 * 2  # layers, linear maps in each, halves of a map's adapter
