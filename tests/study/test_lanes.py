"""The script that works at a study in several processes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

LANES = Path(__file__).parents[2] / "examples" / "train" / "lanes"
STUDY = "studies/fragility"
FAKE = """#!/usr/bin/env bash
echo "$*" >>"$SAID"
echo "memory: $PYTORCH_ALLOC_CONF"
while [[ $# -gt 0 ]]; do
    case $1 in --arms) arm=$2 ;; --seeds) seed=$2 ;; --out) out=$2 ;; --only-train) train=yes ;; esac
    shift
done
[[ -n ${arm:-} ]] || exit 0
adapter=$out/arms/$arm/seed-$seed/train/adapter
mkdir -p "$adapter" && touch "$adapter/crosswind.json"
[[ -n ${train:-} ]] || mkdir -p "$out/arms/$arm/seed-$seed/test"
[[ $arm != static || -n ${train:-} ]] || touch "$out/arms/$arm/seed-$seed/test.json"
[[ $arm != rl ]] || exit 1  # one that fails
[[ $arm != paft-wide ]] || echo "left: $arm/seed-$seed: another process works at it"
[[ $arm != paft-full || $(grep -c "arms $arm " "$SAID") -gt 1 ]] || exit 1  # one that fails once
[[ $arm != static-full ]] || { touch "$out/arms/$arm/seed-$seed/test.json"; exit 1; }  # that another process finishes
[[ $arm != static-6k ]] || { echo "left: no time"; [[ $(grep -c "arms $arm " "$SAID") -lt 2 ]] || sleep 5; }
"""


def lanes(folder: Path, *args: str, **env: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    fake, said = folder / "fake", folder / "said"
    fake.write_text(FAKE)
    fake.chmod(0o755)
    said.touch()
    environment = {**os.environ, "CROSSWIND": str(fake), "SAID": str(said), **env}
    done = subprocess.run(
        [str(LANES), STUDY, str(folder / "out"), *args], env=environment, capture_output=True, text=True, timeout=60
    )
    return done, said.read_text().splitlines()


def test_lists_are_worked_off_and_packed(tmp_path: Path) -> None:
    done, said = lanes(
        tmp_path, "600", "static@0:dev rl@1", "paft@2:train", PACK=str(tmp_path / "pack"), SLOTS="7", PAUSE="0"
    )
    assert (done.returncode, done.stderr.split(";")[0]) == (1, "failed: rl@1")
    *runs, pack = said
    shown = [" ".join(w for w in run.split() if w not in ("study", "run", STUDY)) for run in runs]
    for arm, seed, way in (("static", 0, "--dev "), ("static", 0, ""), ("rl", 1, ""), ("paft", 2, "--only-train ")):
        wanted = f"--arms {arm} --seeds {seed} --out {tmp_path}/out {way}"
        wanted += "--partial --slots 7 --concurrency 7 --budget-minutes "
        found = [run for run in shown if run.startswith(wanted)]
        times = 4 if arm == "rl" else 2  # once by its own process, and once by the one that helps; what fails, again
        assert len(found) == times, (wanted, shown)
        assert 9.8 < float(found[0].removeprefix(wanted)) <= 10
    assert "memory: expandable_segments:True" in (tmp_path / "out" / "lane-0.log").read_text()
    assert pack.startswith(f"study pack {tmp_path}/out --into {tmp_path}/pack --adapters ")
    named = pack.split()
    assert set(named[named.index("--adapters") + 1].split(",")) == {"static/0", "rl/1", "paft/2"}
    assert named[named.index("--runs") + 1] == "rl/1"  # the one that is not finished


def test_what_failed_once_and_what_others_left_is_tried_again(tmp_path: Path) -> None:
    done, said = lanes(tmp_path, "63", "paft-full@0 static@0", PAUSE="1")
    assert (done.returncode, done.stderr) == (0, "")
    assert [run.split()[4] for run in said] == ["paft-full", "static", "paft-full"]
    _, said = lanes(tmp_path, "63", "paft-wide@0", PAUSE="1")
    assert 1 < len(said[3:]) < 5  # until time is up


def test_a_failure_is_told_though_time_ran_out_and_what_another_finished_is_none(tmp_path: Path) -> None:
    done, said = lanes(tmp_path, "64", "static-6k@0 rl@0", PAUSE="1")  # a second round has no time for the second
    assert [run.split()[4] for run in said] == ["static-6k", "rl", "static-6k"]
    assert (done.returncode, done.stderr.split(";")[0]) == (1, "failed: rl@0"), said
    done, said = lanes(tmp_path, "62", "static-full@0", PAUSE="0")
    assert (done.returncode, done.stderr) == (0, ""), said


def test_nothing_is_begun_when_time_is_up(tmp_path: Path) -> None:
    done, said = lanes(tmp_path, "60", "static@0")
    assert (done.returncode, said) == (0, [])


@pytest.mark.parametrize("args", [("600",), ("soon", "static@0"), ("600", "static"), ("600", "static@0:tset")])
def test_lists_that_say_nothing_are_refused(tmp_path: Path, args: tuple[str, ...]) -> None:
    done, said = lanes(tmp_path, *args)
    assert (done.returncode, said) == (2, [])
    assert "ARM@SEEDS" in done.stderr or "STUDY FOLDER SECONDS LIST" in done.stderr
