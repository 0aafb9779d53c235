"""TRL's rollout loop, unchanged, gives a scripted policy the rewards of a run. Needs TRL, OpenEnv and torch."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

for name in ("trl", "openenv", "torch", "datasets"):
    pytest.importorskip(name, reason=f"{name} is not installed; docs/trl.md")
SCRIPT = Path(__file__).parents[2] / "bench/frameworks/trl_rollouts.py"


def test_tools_that_are_retired_midway_give_the_reward_of_a_run() -> None:
    command = [sys.executable, str(SCRIPT), "--suite", "full", "--only", "retired_midway", "--limit", "4"]
    done = subprocess.run([*command, "--agents", "oracle"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "4 groups of 2, 4 with the verdict of the run as the reward of all their rows, 4 whose" in done.stdout
    assert not re.search(r"\b0 groups with rows that fork", done.stdout), done.stdout
