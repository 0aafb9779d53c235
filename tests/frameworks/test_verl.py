"""verl's agent loop, unchanged, gives a scripted policy the verdicts of a run. Needs verl, in its own environment."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("verl", reason="verl is not installed; docs/verl.md")
SCRIPT = Path(__file__).parents[2] / "bench/frameworks/verl_rollouts.py"


def test_tools_that_are_retired_midway_give_the_verdict_of_a_run() -> None:
    command = [sys.executable, str(SCRIPT), "--suite", "full", "--only", "retired_midway", "--limit", "4"]
    done = subprocess.run([*command, "--agents", "oracle"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "4 rollouts, 4 with the verdict of the run, 4 whose sampled tokens are the policy's" in done.stdout
    assert not re.search(r"\b0 rollouts with tools that changed", done.stdout)
    assert "A server that is down: 0 samples" in done.stdout
