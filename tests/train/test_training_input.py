"""What a training says when it is stopped, which values it refuses, and what it makes of domains and passes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from crosswind.base.errors import BadFile
from crosswind.cli import app as cli
from crosswind.train.config import DomainStage, GrpoConfig, TrainConfig, load
from crosswind.train.data import DataConfig

FRAGILITY = str(Path(__file__).parents[2] / "studies" / "fragility")
AGAIN = "stopped; rerun the command to resume from the last checkpoint, or to start over if there is none yet\n"


# ---------------------------------------------------------------- stopped by Ctrl-C


def interrupted(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *args: str) -> tuple[object, str]:
    """The exit status of a command, and what it says on stderr."""
    monkeypatch.setattr(sys, "argv", ["crosswind", *args])
    with pytest.raises(SystemExit) as left:
        cli.main()
    return left.value.code, capsys.readouterr().err


@pytest.mark.parametrize("args", [["sft"], ["paft"], ["grpo"], ["queue", "sft:a.yaml", "paft:b.yaml"]])
def test_a_training_that_is_stopped_says_how_it_goes_on(
    args: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("peft")
    from crosswind.train import run

    monkeypatch.chdir(tmp_path)
    for name in ("a.yaml", "b.yaml"):
        Path(name).write_text("steps: 2\n")
    monkeypatch.setattr(run, "train", interrupted)
    assert said(monkeypatch, capsys, "train", *args, "--out", "out") == (130, AGAIN)


def test_a_study_that_is_stopped_says_how_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("peft")
    from crosswind.study import runner as study

    monkeypatch.setattr(study, "run", interrupted)
    told = "stopped; run the same command to resume; finished arms are skipped\n"
    assert said(monkeypatch, capsys, "study", "run", FRAGILITY, "--out", str(tmp_path)) == (130, told)


def test_other_commands_that_are_stopped_say_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("crosswind.cli.catalog.everything", interrupted)
    assert said(monkeypatch, capsys, "catalog") == (130, "stopped\n")


# the signal comes from within, at a step after the first checkpoint
STOPPED = """
import os, signal, sys
from crosswind.cli.app import main
from crosswind.cli.train import Shown
told = Shown.__call__
def stop(self, update):
    told(self, update)
    if update.step == 3:
        os.kill(os.getpid(), signal.SIGINT)
Shown.__call__ = stop
main()
"""


@pytest.mark.usefixtures("heeds_interrupts")
@pytest.mark.filterwarnings("default")
def test_a_training_goes_on_after_the_signal(tmp_path: Path) -> None:
    pytest.importorskip("peft")
    from tests import tiny

    base = tiny.save(tmp_path / "base", hidden=32)
    args = ["train", "sft", "--out", str(tmp_path / "out")]
    small = {"model": base, "device": "cpu", "steps": 4, "batch": 2, "buffer": 1, "save_every": 2, "log_every": 1}
    for key, value in {**small, "data.max_tokens": 0, "data.levels": "[1]"}.items():
        args += ["--set", f"{key}={value}"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", STOPPED, *args], capture_output=True, text=True, env=env)
    assert done.returncode == 130, done.stderr[-2000:]
    assert done.stderr.endswith(AGAIN)
    assert "Traceback" not in done.stderr
    again = CliRunner().invoke(cli.app, [*args, "--json"])
    assert again.exit_code == 0, again.output[-2000:]
    assert '"resumed": 2' in again.stdout


# ---------------------------------------------------------------- values that are refused


@pytest.mark.parametrize(
    "text",
    [
        "lora.alpha: 1.0e+300",
        "lora.rank: 100000000000000000000",
        "lr: 1.0e+300",
        "clip: 1.0e+300",
        "weight_decay: 1.0e+300",
        "adaptive.cap: 1.0e+300",
        "adaptive.margin: 1.0e+300",
    ],
)
def test_a_value_beyond_all_reason_is_refused_in_a_line(text: str, tmp_path: Path) -> None:
    refused(text, r"at most (1000000000|65536|1); fix this line", TrainConfig, tmp_path)


@pytest.mark.parametrize("name", ["temperature", "beta", "lr", "clip", "lora.alpha"])
def test_reinforcement_refuses_it_too(name: str, tmp_path: Path) -> None:
    refused(f"{name}: 1.0e+300", "at most 1000000000; fix this line", GrpoConfig, tmp_path)


@pytest.mark.parametrize("value", [".inf", "-.inf", ".nan"])
@pytest.mark.parametrize(
    "name",
    ["adaptive.cap", "adaptive.margin", "adaptive.pull", "data.share", "data.slips", "data.domains.poi", "lora.alpha"],
)
def test_what_is_not_finite_is_refused_in_every_part(name: str, value: str, tmp_path: Path) -> None:
    refused(f"{name}: {value}", "expected a finite number; fix this line", TrainConfig, tmp_path)


def test_what_is_not_finite_is_refused_in_lists_of_parts(tmp_path: Path) -> None:
    for text in (
        "stages: [{steps: 1, domains: {poi: .inf}}]",
        "data: {curriculum: [{start: 0, severity: 1}, {start: .nan, severity: 2}]}",
    ):
        path = tmp_path / "train.yaml"
        path.write_text(text)
        with pytest.raises(BadFile, match=r"train.yaml:1: .*got (inf|nan); expected a finite number"):
            load(path)


def refused(text: str, told: str, kind: type[TrainConfig], folder: Path) -> None:
    """A file with one option, whose parts are written out, is refused with the option's line and name."""
    *outer, last = text.split(": ")[0].split(".")
    lines = [f"{'  ' * depth}{part}:" for depth, part in enumerate(outer)]
    lines.append(f"{'  ' * len(outer)}{last}: {text.split(': ')[1]}")
    path = folder / "train.yaml"
    path.write_text("\n".join(lines) + "\n")
    place = re.escape(".".join((*outer, last)))
    with pytest.raises(BadFile, match=rf"train.yaml:{len(lines)}: {place}: got [^\n]+; [^\n]*{told}$"):
        load(path, (), kind)


# ---------------------------------------------------------------- domains


def test_domains_are_named_alike_wherever_they_stand() -> None:
    names, weights = ["poi", "retail"], {"poi": 1.0, "retail": 1.0}
    assert DataConfig.model_validate({"domains": names}, strict=False).domains == weights
    assert DomainStage.model_validate({"domains": names, "steps": 1}, strict=False).domains == weights
    assert load(None, ["stages=[{steps: 1, domains: [poi]}, {steps: 2, domains: {retail: 2}}]"]).domains() == names


@pytest.mark.parametrize(
    ("domains", "told"),
    [
        ("[]", "no domain is named; give a name or more, with weights, such as {poi: 1}"),
        ("[{poi: 1}]", "got [{'poi': 1}]; expected names, or names with weights, such as {poi: 1}"),
        ("[poi, 3]", "got ['poi', 3]; expected names, or names with weights, such as {poi: 1}"),
        ("[pio]", "no domain 'pio'; did you mean poi"),
        ("{poi: 0}", "the weight of 'poi' is 0; expected a number above 0"),
        ("{poi: 1.0e+308}", "the weight of 'poi' is 1e+308; expected a number above 0 and up to 1e+09"),
    ],
)
def test_domains_are_refused_alike_wherever_they_stand(domains: str, told: str) -> None:
    for place, change in (
        ("data.domains", f"data.domains={domains}"),
        ("stages.0.domains", f"stages=[{{steps: 1, domains: {domains}}}]"),
    ):
        with pytest.raises(BadFile, match=re.escape(f"--set {change}: {place}: {told}")):
            load(None, [change])


# ---------------------------------------------------------------- what the documentation says of passes


@pytest.mark.filterwarnings("default")
def test_the_same_demonstrations_make_a_step_whatever_the_passes_if_a_buffer_is_one_pass() -> None:
    pytest.importorskip("peft")
    from crosswind.train.batches import Buffers
    from tests import tiny

    data, tok = DataConfig(share=0.0, max_tokens=0, levels=(1,)), tiny.tokenizer()

    def steps(accumulate: int, buffer: int) -> list[list[int]]:
        """What each of two steps learns, in an order of its own."""
        config = TrainConfig(batch=4, accumulate=accumulate, buffer=buffer, data=data, pad_to=1)
        buffers = Buffers(data, tok, config, total=8, micro=4 // accumulate)
        passes = [b.targets for n in range(2 * accumulate // buffer) for b in buffers[n].batches]
        return [
            sorted(int(t) for targets in passes[at : at + accumulate] for t in targets)
            for at in range(0, 2 * accumulate, accumulate)
        ]

    assert steps(1, buffer=1) == steps(2, buffer=1) == steps(4, buffer=1)
    assert steps(1, buffer=2) != steps(2, buffer=2)
