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
from crosswind.episodes.schedule import Schedule
from crosswind.study import bundle as carrying
from crosswind.study import outcomes
from crosswind.study import runner as running
from crosswind.study.definition import Study, load_study, severity_of
from crosswind.study.job import ArmJob, Budget, folder_of
from crosswind.study.results import between, impossible, read_arms
from crosswind.study.tables import change as changed
from crosswind.train.config import merged

ROOT = Path(__file__).parents[2]
FRAGILITY = ROOT / "studies" / "fragility"  # a study that is large enough to try things on


# ---------------------------------------------------------------- the definition


def test_what_changes_no_weight_makes_no_other_arm() -> None:
    study = load_study(FRAGILITY)
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
    study = load_study(FRAGILITY)
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
    options: dict[str, Any], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crosswind.base.extras.TRAINING", ())
    monkeypatch.setattr(ArmJob, "go", lambda *_, **__: pytest.fail("an arm was begun"))
    with pytest.raises(CrosswindError, match=told):
        commands.run(FRAGILITY, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_options_are_tried_under_names_of_their_own() -> None:
    study = load_study(FRAGILITY)
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
        ("shares=0.4", "x", r"^--set shares=0.4: shares: .*expected one of the keys model"),
        ("data.share=0.4", "a/b", r"^--tag 'a/b': got 'paft-a/b'; .*give another tag"),
        ("data.share=0.4", "0.5", r"^--tag '0.5': the arm 'paft-0.5' comes twice; give another tag"),
    ],
)
def test_a_change_that_does_not_fit_is_told_with_its_place(change: str, tag: str, told: str) -> None:
    with pytest.raises(CrosswindError, match=told):
        commands._changed(load_study(FRAGILITY), ["paft"], [change], tag)


def test_severities_of_a_range_are_found_again(tmp_path: Path) -> None:
    from crosswind.core.types import Trajectory, Verdict
    from crosswind.episodes.record import Usage, recorded

    study = load_study(FRAGILITY)
    seen = set()
    for episode in Schedule(study.dev, 0, limit=80):
        if episode is None or not episode.drawn.layers:
            continue
        drawn = episode.drawn
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
        record = recorded(episode, trajectory, Verdict(outcome="fail"), seed=0, usage=Usage())
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
        (("{steps: 800,", "{steps: many,"), r"yaml:21: steps: got 'many'; .* \(the arm 'static'\)$"),
        (("{steps: 800,", "{steps: .nan,"), r"yaml:21: steps: got nan; .* \(the arm 'static'\)$"),
        (("{steps: 800,", "{stepz: 800,"), r"yaml:21: stepz: .*expected one of the keys model"),
        (("{steps: 800,", "{seed: 1, steps: 800,"), "seed is set by the study"),
        (("share: 0.3", "share: 7"), r"yaml:31: data.share: got 7; .* \(the arm 'paft'\)$"),
        (("recipe: mixed", "recipe: unseen"), r"yaml:31: data.recipe: .* is held out.* \(the arm 'paft'\)$"),
        (("method: sft", "method: grpo"), "accumulate is not for grpo"),
        (("poi: 1}, max_tokens: 2560", "poi: 1}, share: 0.5"), r"data.share is 0.5, but sft learns from clean"),
        (("start: static-200", "start: base"), "'rl-brief' starts from 'base', which has no adapter"),
        (("start: static-200", "start: static-full"), "which has no adapter"),
        (("    method: sft\n", ""), "the arm 'static' trains nothing, but says how; give a method"),
        (("seeds: [0, 1, 2]", "seeds: [-1]"), "seeds.0: got -1; expected at least"),
        (("seeds: [0, 1, 2]", f"seeds: [{10**30}]"), r"seeds.0: got 10+; expected at most"),
        (("seeds: [0, 1, 2]", "seeds: [0, 0]"), "the seeds 0, 0 have one twice"),
    ],
)
def test_a_bad_definition_is_refused(tmp_path: Path, change: tuple[str, str], told: str) -> None:
    text = (FRAGILITY / "definition.yaml").read_text()
    assert change[0] in text
    path = tmp_path / "study.yaml"
    path.write_text(text.replace(*change, 1))
    with pytest.raises(BadFile, match=told):
        load_study(path)


@pytest.mark.parametrize(
    ("report", "told"),
    [
        ({"suites": {"tierz": ""}}, "the report names the suite 'tierz'; did you mean tiers"),
        ({"sections": [{"title": "x", "make": "against", "reference": "statik"}]}, "names the arm 'statik'; did you"),
        ({"sections": [{"title": "x", "make": "starts", "pairs": [["base", "rlx"]]}]}, "names the arm 'rlx'"),
        ({"curves": {"c": {"title": "x", "option": "steps", "arms": ["base", "paftt"]}}}, "names the arm 'paftt'"),
        ({"plots": ["pie"]}, "got 'pie'"),
    ],
)
def test_a_report_of_what_is_not_there_is_refused(report: dict[str, Any], told: str, tmp_path: Path) -> None:
    path = tmp_path / "definition.yaml"
    places = {part: {**MINI[part], "domains": ["poi"]} for part in ("dev", "test")}
    plain = [{"name": name} for name in ("base", "static", "paft", "rl")]
    path.write_text(json.dumps({**MINI, **places, "model": "embedded", "arms": plain, "report": report}))
    with pytest.raises(BadFile, match=told):
        load_study(tmp_path)
    with pytest.raises(BadFile, match=r"has no definition\.yaml"):
        load_study(tmp_path.parent)


def test_a_table_that_is_not_there_and_findings_that_break_are_refused(tmp_path: Path) -> None:
    from crosswind.study import report
    from crosswind.study.definition import Section
    from crosswind.study.findings import load_findings

    study = load_study(FRAGILITY)
    plan = study.report.model_copy(update={"sections": (Section(title="x", make="change"),)})
    odd = study.model_copy(update={"report": plan})
    with pytest.raises(CrosswindError, match="the report has no table 'change'; did you mean changes"):
        report.write(odd, FRAGILITY / "results", tmp_path)
    (tmp_path / "findings.py").write_text("SECTIONS = {1 / 0: print}")
    with pytest.raises(BadFile, match=r"findings.py: cannot be loaded \(ZeroDivisionError"):
        load_findings(tmp_path)
    assert load_findings(tmp_path / "nowhere").sections == {}


def test_a_definition_is_read_without_what_trains() -> None:
    code = (
        "import sys; from crosswind.study.definition import load_study\n"
        "load_study(sys.argv[1]); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(FRAGILITY)], capture_output=True, text=True, check=True)
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
    "report": {
        "suites": {"tiers": "kinds that were trained"},
        "plots": ["forest", "heat", "scatter"],
        "curves": {"share": {"title": "share", "option": "data.share", "arms": ["static", "paft"]}},
        "sections": [
            {"title": "Findings", "make": "claims"},
            {"title": "Accuracy", "make": "changes"},
            {"title": "Beside base", "make": "against", "reference": "base"},
            {"title": "Reinforcement", "make": "starts"},
            {"title": "Seeds", "make": "seeds"},
            {"title": "Refusals", "make": "refusals"},
            {"title": "Playing", "make": "playing"},
            {"title": "Mild", "make": "severity"},
            {"title": "Kinds", "make": "kinds", "arms": ["base", "static"]},
            {"title": "Prediction", "make": "correlation", "domains": ["shelf"]},
            {"title": "Plots", "make": "plots"},
            {"title": "Dev", "make": "dev"},
            {"title": "Log", "make": "log"},
            {"title": "Trained", "make": "trained"},
        ],
    },
}
FINDINGS = """
from crosswind.study.findings import Hypothesis, count_marks, judge_hypotheses, marks_table

def solves(results):
    rate = results.clean("static", "shelf")
    return "met" if rate > 2 else "not met", f"{rate:.3f}"

CLAIMS = (
    Hypothesis("Static solves all", "more than all", solves),
    Hypothesis("PAFT loses nothing", "no change", lambda r: ("met", str(r.tier("paft", "tiers", "perception")))),
)

def claims(results):
    judged = judge_hypotheses(CLAIMS, results)
    return f"Marks: {count_marks(judged)}.\\n\\n{marks_table(judged)}"

SECTIONS = {"claims": claims}
PLOTS = {"own": lambda results: f"<svg>{len(results.arms)}</svg>"}
"""


@pytest.fixture(scope="module")
def definition(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    pytest.importorskip("torch")
    pytest.importorskip("peft")
    from tests import tiny

    folder = tmp_path_factory.mktemp("mini")
    with tiny.shelf(folder):
        model = tiny.save(folder / "model", "shelf", hidden=32)
        path = folder / "definition.yaml"
        path.write_text(json.dumps({**MINI, "model": str(model)}))
        (folder / "findings.py").write_text(FINDINGS)
        yield folder


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


def write(study: Study, out: Path, into: Path) -> list[Path]:
    """The report, with a section of its own that says nothing."""
    from crosswind.study import report
    from crosswind.study.findings import Findings

    return report.write(study, out, into, Findings({"claims": lambda _: ""}))


def test_arms_are_trained_tested_stored_and_reported(mini: Study, definition: Path, ran: Path, tmp_path: Path) -> None:
    from crosswind.report.markdown import literal
    from crosswind.runs.store import load_run
    from crosswind.study import report
    from crosswind.study.findings import load_findings

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

    old = tmp_path / "docs" / "report_share.svg"
    old.parent.mkdir()
    old.write_text("of arms that were there once")
    pages = report.write(mini, out, old.parent, load_findings(definition))
    assert not old.exists()
    plots = {path.stem for path in pages if path.suffix == ".svg"}
    assert plots == {
        *(f"report_{suite}{ending}" for suite in ("tiers", "heldout") for ending in ("", "_kinds")),
        *("report_own", "report_clean_and_robust"),  # no curve: only one of its arms is there
    }
    assert (old.parent / "report_own.svg").read_text() == "<svg>2</svg>"
    text = pages[0].read_text()
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == [
        section.title for section in mini.report.sections
    ]
    assert "| paft | missing |" in text
    assert "c0ffee" in text
    assert "Marks: 1 not met, 1 missing." in text
    solved = [row.record.passed for row in rows if row.record.clean]
    assert f"| **not met** | {sum(solved) / len(solved):.3f} |" in text
    assert "| **missing** | not there: paft |" in text
    of_tiers = [row.record for row in rows if row.record.condition.startswith("tiers/")]
    kind = next(record for record in of_tiers if not record.refuse).kinds[0]
    some = [record for record in of_tiers if record.kinds == (kind,) and not record.refuse]
    line = next(line for line in text.splitlines() if line.startswith("| tiers |") and f"| {literal(kind)} |" in line)
    passed = 100 * sum(record.passed for record in some) / len(some)
    assert line.split(" | ")[4].startswith(f"{passed:.0f} (")  # after base
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
    results, training = carrying.bundle(out, tmp_path / "packed", trainings=["static"])
    assert training.name == "training-static-0.tar"
    with tarfile.open(results) as one, tarfile.open(training) as other:
        assert "arms/static/seed-0/train/train.json" not in one.getnames()  # it could not go on there
        assert {name.split("/")[5] for name in other.getnames() if "checkpoint-" in name} == {"checkpoint-2"}
    there = tmp_path / "there"
    carrying.unbundle([results, training], there)
    for place in (out, there):
        done = go(mini, place, arms=["static"])
        assert done.finished == ["static/seed-0"], (done, *(p.read_text() for p in place.rglob("failed.txt")))
        assert json.loads((place / "arms/static/seed-0/test.json").read_text())["train"]["resumed"] >= 2
        weights = [load_file(p / "arms/static/seed-0/train/adapter/adapter_model.safetensors") for p in (place, ran)]
        assert all((weights[0][name] == weights[1][name]).all() for name in weights[1])
    told = (there / "arms/static/seed-0/train/metrics.jsonl").read_bytes()
    carrying.unbundle([training], there)  # what is further there stays
    assert (there / "arms/static/seed-0/train/metrics.jsonl").read_bytes() == told


def test_a_budget_stops_cleanly_and_the_rest_follows(mini: Study, tmp_path: Path, monkeypatch: Any) -> None:
    out = tmp_path / "out"
    short = go(mini, out, arms=["base", "static"], minutes=0.5)  # nothing was ever measured: a minute must be left
    assert not short.finished
    assert set(short.left) == {"base/seed-0", "static/seed-0"}

    monkeypatch.setattr(running, "UNKNOWN", 0.0)
    lefts = iter([100.0] * 4)
    monkeypatch.setattr(Budget, "left", property(lambda self: next(lefts, -1.0)))
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
    from crosswind.train import rollouts

    turn = iter(range(1000))
    monkeypatch.setattr(rollouts, "reward", lambda *_: float(next(turn) % 2))  # so that there is a signal
    out = tmp_path / "out"
    shutil.copytree(ran, out)
    left = iter([60.0] * 3)  # seconds; then time runs out in the midst of the training
    with monkeypatch.context() as patched:
        patched.setattr(Budget, "left", property(lambda _: next(left, 0.0)))
        stopped = go(mini, out, arms=["rl"], minutes=1.0, partial=True)
    assert not stopped.finished
    assert not stopped.failed
    assert "is trained up to step" in str(stopped.stopped)
    done = go(mini, out, arms=["rl"])
    assert (done.finished, done.failed) == (["rl/seed-0"], {})
    told = json.loads((out / "arms" / "rl" / "seed-0" / "test.json").read_text())
    assert told["train"]["resumed"]
    assert told["train"]["steps"] == 3

    carrying.collect(out, tmp_path / "kept")  # with what the report tells of reinforcement
    assert {path.parent.parent.parent.name for path in tmp_path.glob("kept/arms/*/*/train/metrics.jsonl")} == {"rl"}
    lines = [json.loads(line) for line in (out / "arms/rl/seed-0/train/metrics.jsonl").read_text().splitlines()]
    text = write(mini, tmp_path / "kept", tmp_path / "docs")[0].read_text()
    part = text.split("## Reinforcement")[1].split("## ")[0]
    assert f"| rl | 0 | {lines[0]['reward']:.2f} to {lines[-1]['reward']:.2f} |" in part
    found = read_arms(mini, out)
    row = next(line for line in part.splitlines() if line.startswith("| static to rl |")).split(" | ")
    assert row[2] == changed(between(found["static"], found["rl"], "tiers"))
    assert row[3] == changed(between(found["static"], found["rl"], "tiers", impossible))


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
        patched.setattr("crosswind.study.job.ArmJob.test", lambda *_, **__: pytest.fail("it was tested"))
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
        patched.setattr(Budget, "left", property(lambda _: -1.0 if measured.is_dir() else 100.0))
        stopped = go(mini, out, arms=["adaptive"], minutes=5.0, partial=True)
    assert (stopped.finished, stopped.failed) == ([], {})
    assert re.search(r"is measuring round 1: \d+ of \d+", stopped.stopped), stopped
    (out / "arms/adaptive/seed-0/train/rounds.json").write_text("[]")
    carrying.bundle(out, tmp_path / "packed")
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
    carrying.bundle(out, tmp_path / "packed")
    with tarfile.open(tmp_path / "packed" / "results.tar") as tar:
        assert "arms/adaptive/seed-0/train/rounds.json" in tar.getnames()


@pytest.mark.parametrize("text", ['{"train": ', "[]", '{"train": "long"}'])
def test_seconds_that_are_damaged_are_told_of_before_anything_is_trained(
    mini: Study, tmp_path: Path, monkeypatch: Any, text: str
) -> None:
    monkeypatch.setattr(ArmJob, "train", lambda *_: pytest.fail("it was trained"))
    path = folder_of(tmp_path, "static", 0) / "spent.json"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    told = go(mini, tmp_path, arms=["static"]).failed["static/seed-0"]
    assert told == f"{path}: is damaged; remove it and run the same command again"


def test_one_that_fails_leaves_the_others(mini: Study, tmp_path: Path, monkeypatch: Any) -> None:
    def broken(self: Any, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no such luck")

    out = tmp_path / "out"
    monkeypatch.setattr(ArmJob, "train", broken)
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


def test_results_are_carried_and_collected(mini: Study, ran: Path, tmp_path: Path) -> None:
    from crosswind.runs.store import load_run
    from crosswind.study.bundle import bundle, collect, unbundle

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
    with pytest.raises(CrosswindError, match="not a file that `crosswind study pack` made"):
        unbundle([tmp_path / "file"], there)
    for act in (lambda p: unbundle(files, p), lambda p: bundle(ran, p), lambda p: collect(ran, p)):
        with pytest.raises(CrosswindError, match="cannot be created"):
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
    [
        ("arms/base/seed-0/test.json", "{}", "not a result of a study"),
        ("test_log.jsonl", '{"when"', "not a line of JSON"),
    ],
)
def test_damaged_results_are_told_of(mini: Study, ran: Path, tmp_path: Path, path: str, text: str, told: str) -> None:
    out = tmp_path / "out"
    shutil.copytree(ran, out)
    (out / path).write_text(text)
    with pytest.raises(BadFile, match=told):
        write(mini, out, tmp_path / "docs")
    (tmp_path / "file").write_text("")
    with pytest.raises(BadFile, match="cannot be written"):
        write(mini, ran, tmp_path / "file" / "docs")


def test_arms_are_compared_in_the_same_episodes(tmp_path: Path) -> None:
    for arm in ("static", "paft-plain"):  # reading all 28 takes ten times as long
        shutil.copytree(FRAGILITY / "results" / "arms" / arm, tmp_path / "arms" / arm)
    found = read_arms(load_study(FRAGILITY), tmp_path)
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
    from crosswind.study.tables import first_and_last

    lines: list[dict[str, Any]] = [{"reward": n / 10, "perturbed": None} for n in range(9)]
    assert first_and_last(lines, "reward") == "0.05 to 0.75"
    assert first_and_last(lines[:3], "reward") == "0.00 to 0.20"
    assert first_and_last(lines, "perturbed") == first_and_last([], "reward") == "–"
    assert first_and_last([{"perturbed": None}, *lines[1:2], {"perturbed": 0.5}, *lines[:5]], "perturbed") == "–"


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
    from crosswind.study.bundle import unbundle
    from crosswind.study.results import LOG

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
    with pytest.raises(CrosswindError, match="not a file that `crosswind study pack` made"):
        unbundle([good, tmp_path / "bad.tar"], out)
    assert (out / LOG).read_text().splitlines() == ['{"own": 1}', '{"theirs": 1}']
    half = packed("half.tar", **{"arms__a__seed-0__test.packed__run.json": b"{}"})
    with pytest.raises(CrosswindError, match=r"test.packed: has no episodes.jsonl.xz.*pack the run again"):
        unbundle([half], out)
    assert not list(out.rglob("*.packed"))


def test_an_arm_of_another_configuration_is_named_in_the_report(mini: Study, ran: Path, tmp_path: Path) -> None:
    out = shutil.copytree(ran, tmp_path / "out")
    said = "trained by another configuration than the present one"
    write(mini, out, tmp_path / "report")
    assert said not in (tmp_path / "report" / "report.md").read_text()
    path = out / "arms" / "static" / "seed-0" / "test.json"
    done = json.loads(path.read_text())
    path.write_text(json.dumps({**done, "config": {**done["config"], "batch": 99}, "config_hash": "of then"}))
    write(mini, out, tmp_path / "report")
    assert f"{said}: static/seed-0 (batch was 99, now " in (tmp_path / "report" / "report.md").read_text()


def test_a_report_leads_to_the_log_only_if_there_is_one(mini: Study, ran: Path, tmp_path: Path) -> None:
    out = shutil.copytree(ran, tmp_path / "out")
    path = out / "arms" / "static" / "seed-0" / "test.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "code": "0" * 16}))
    for there in (True, False):
        if not there:
            (out / "test_log.jsonl").unlink()
        write(mini, out, tmp_path / "report")
        told = (tmp_path / "report" / "report.md").read_text()
        assert ("made by 2 versions of the code; the log at the end tells which.\n" in told) is there
        assert ("made by 2 versions of the code.\n" in told) is not there
        assert ("There is no log." in told) is not there


def test_damaged_results_are_told_in_a_line(mini: Study, ran: Path, tmp_path: Path) -> None:
    from crosswind.study.bundle import bundle, collect
    from crosswind.study.results import LOG

    out = shutil.copytree(ran, tmp_path / "out")
    (out / LOG).write_bytes(b"[]\n")
    with pytest.raises(CrosswindError, match=r"'\[\]' is not a line of JSON"):
        write(mini, out, tmp_path / "report")
    (out / LOG).write_bytes(b"\xff\n")
    with pytest.raises(CrosswindError, match="is not a line of JSON"):
        write(mini, out, tmp_path / "report")
    folder = out / "arms" / "static" / "seed-0"
    (folder / "test" / "run.json").unlink()
    assert [path.name for path in bundle(out, tmp_path / "packed", runs=["static"])] == ["results.tar"]
    (folder / "test.jsonl.xz").unlink()
    with pytest.raises(CrosswindError, match=r"test.jsonl.xz: is missing; remove .* and run the arm again"):
        collect(out, tmp_path / "kept")
    (out / "arms" / "base" / "seed-0" / "test.json").write_text('{"study": ')
    with pytest.raises(CrosswindError, match="not a result of a study"):
        go(mini, out, arms=["base"])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"seed": 1}, r"static/seed-0/test.json: holds the result of static/seed-1/test.json; move it there, or"),
        ({"arm": "base"}, r"static/seed-0/test.json: holds the result of base/seed-0/test.json"),
        ({"part": "dev"}, r"holds the result of static/seed-0/dev.json"),
        ({"arm": "../x <b>"}, r"not a result of a study \(got '../x <b>'; string should match"),
        ({"wave": "A/B"}, r"not a result of a study \(got 'A/B'; "),
        ({"episodes": 99}, r"test.jsonl.xz: does not match .*test.json \(of \d+ episodes .* has 99, "),
    ],
)
def test_a_result_in_the_place_of_another_is_refused(
    mini: Study, ran: Path, tmp_path: Path, change: dict[str, Any], told: str
) -> None:
    out = shutil.copytree(ran, tmp_path / "out")
    path = out / "arms" / "static" / "seed-0" / "test.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(BadFile, match=told) as refused:
        read_arms(mini, out)
    assert "\n" not in str(refused.value)


def test_a_table_that_was_cut_or_is_another_is_refused(mini: Study, ran: Path, tmp_path: Path) -> None:
    out = shutil.copytree(ran, tmp_path / "out")
    table = out / "arms" / "static" / "seed-0" / "test.jsonl.xz"
    lines = lzma.decompress(table.read_bytes()).splitlines(keepends=True)
    table.write_bytes(lzma.compress(b"".join(lines[:-1])))
    with pytest.raises(BadFile, match=rf"does not match .* \(of {len(lines) - 2} episodes .* has {len(lines) - 1}, "):
        read_arms(mini, out)
    for bad in (b"5\n", b'["a/b","c",5' + b",null" * (len(outcomes.COLUMNS) - 3) + b"]\n"):
        table.write_bytes(lzma.compress(b"".join([lines[0], bad])))
        with pytest.raises(BadFile, match="cannot be read as a table of outcomes") as refused:
            read_arms(mini, out)
        assert "\n" not in str(refused.value)
    for lines_now, told in (
        ([lines[0].replace(b'"seed":0', b'"seed":1'), *lines[1:]], "its seed is 1"),
        ([*lines[:-1], lines[-1].replace(b"shelf/colour_of/", b"shelf/another/")], "its episodes differ"),
    ):
        assert lines_now != lines
        table.write_bytes(lzma.compress(b"".join(lines_now)))
        with pytest.raises(BadFile, match=rf"static/seed-0/test.jsonl.xz: does not match .* \({told}\)"):
            read_arms(mini, out)


@pytest.mark.parametrize("name", ["../escaped", "/crosswind-escaped", "link", "arms/a\0b"])
def test_a_bundle_that_would_write_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    from crosswind.study.bundle import unbundle

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


def test_a_bundle_that_swells_is_refused(tmp_path: Path) -> None:
    """Neither a compressed file, nor holes, nor a packed run of zeros fill memory or disk."""
    from crosswind.study import outcomes
    from crosswind.study.bundle import unbundle

    with tarfile.open(tmp_path / "small.tar.gz", "w:gz") as tar:
        tar.addfile(tarfile.TarInfo("study.yaml.json"))
    with pytest.raises(CrosswindError, match="not a file that `crosswind study pack` made"):
        unbundle([tmp_path / "small.tar.gz"], tmp_path / "study")
    entry = tarfile.TarInfo("study.yaml.json")
    entry.pax_headers = {"GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.map": "0,1",
                         "GNU.sparse.size": str(2**50), "GNU.sparse.name": "study.yaml.json"}  # fmt: skip
    with tarfile.open(tmp_path / "holes.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(entry)
    with pytest.raises(CrosswindError, match="never makes"):
        unbundle([tmp_path / "holes.tar"], tmp_path / "study")
    packed = tmp_path / "test.packed"
    packed.mkdir()
    (packed / outcomes.PACKED).write_bytes(lzma.compress(bytes(64 << 20), preset=1))
    (packed / "run.json").write_text("{}")
    with pytest.raises(CrosswindError, match="holds more than 500 times its size"):
        outcomes.unpack(packed, tmp_path / "run")


def test_unpacking_never_removes_the_folder_of_the_study(tmp_path: Path) -> None:
    """Its name may end like that of a packed run, and a file may be right inside it."""
    from crosswind.study.bundle import unbundle

    out = tmp_path / "study.packed"
    out.mkdir()
    (out / "mine.txt").write_text("kept")
    for name, fine in (("study.yaml.json", True), ("run.json", False)):
        (tmp_path / name).write_text("{}")
        with tarfile.open(tmp_path / "some.tar", "w") as tar:
            tar.add(tmp_path / name, name)
        if fine:
            unbundle([tmp_path / "some.tar"], out)
        else:
            with pytest.raises(CrosswindError, match=r"holds 'run.json', which `crosswind study pack` never makes"):
                unbundle([tmp_path / "some.tar"], out)
        assert (out / "mine.txt").read_text() == "kept"


def test_what_failed_before_and_is_finished_now_has_not_failed(tmp_path: Path) -> None:
    from crosswind.study.bundle import unbundle
    from crosswind.study.results import FAILED

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
    after = mini.arm("static").model_copy(update={"name": "after", "start": "static"})
    study = Study.model_validate({**mini.model_dump(), "arms": (*mini.by_name.values(), after)})
    first = ArmJob(study, study.arm("static"), 0, tmp_path, "test")
    with first.locked():  # as another process would
        done = go(study, tmp_path, arms=["after"])
    assert done.left == {
        "static/seed-0": "another process works on it",
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
    assert "a different recipe (lr was 0.003, now 0.001)" in refused.failed["static/seed-0"]
    assert refused.left == {"after/seed-0": "static/seed-0, which it starts from, failed"}


def test_without_names_every_arm_is_tested_and_what_has_no_time_is_waited_for(
    mini: Study, tmp_path: Path, monkeypatch: Any
) -> None:
    from types import SimpleNamespace

    monkeypatch.setattr(ArmJob, "go", lambda *_, **__: SimpleNamespace(passed=0, scored=0, spent={}))
    monkeypatch.setattr(ArmJob, "learn", lambda *_, **__: pytest.fail("it is not tested"))
    assert len(go(mini, tmp_path).finished) == len(mini.queue())
    monkeypatch.setattr(running.Pace, "needs", lambda _, job, **__: 600.0 if job.arm.name == "static" else 1.0)
    short = go(mini, tmp_path, arms=["rl"], seeds=[0], minutes=2.0)
    assert "it takes about 600" in short.left["static/seed-0"]
    assert short.left["rl/seed-0"] == "static/seed-0, which it starts from, is not trained yet"
    with pytest.raises(CrosswindError, match="no such folder"):
        commands.arms(FRAGILITY, tmp_path / "nowhere")


def test_folders_are_shared_between_processes(mini: Study, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with ArmJob(mini, mini.arm("base"), 0, out, "test").locked() as ours:
        assert ours
        assert go(mini, out, arms=["base"]).left == {"base/seed-0": "another process works on it"}


def test_an_adapter_ships_with_a_card(mini: Study, ran: Path, tmp_path: Path, monkeypatch: Any) -> None:
    gguf = pytest.importorskip("gguf")
    from crosswind.models import weights
    from studies.fragility.ship import ship

    path = tmp_path / "base.gguf"
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    monkeypatch.setattr(weights, "fetch", lambda *_: path)
    made = ship(ran / "arms/static/seed-0", "static", tmp_path / "adapters", mini)
    assert sorted(p.name for p in made.iterdir()) == ["README.md", "adapter.gguf", "crosswind.json"]
    card = (made / "README.md").read_text()
    assert "Arm `static`, seed 0" in card
    assert "| tiers: " in card
    with pytest.raises(CrosswindError, match="not finished"):
        ship(tmp_path, "paft", tmp_path / "adapters")
