"""Every command and every file of the tutorials works, in order, as a reader would type them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
BLOCK = re.compile(r"^```(?P<language>\w+)(?: title=\"(?P<file>[\w.]+)\")?\n(?P<text>.*?)^```", re.M | re.S)


PROMISED = {  # what a page says that its commands print
    "evaluate": (
        r"memorised .{0,80}interface",
        r"solves 100 % of the solvable tasks in the clean world",
        r"and 0 % of them",
    ),
    "adapt": (  # one way from the log of a proxy to a version in use, and back
        r"30 of 30 tasks completed",
        r"0 of 12 tasks completed",
        r"3 of 3 tasks completed",
        r"ALARM: semantic_rename:5 on complete_task, list_tasks",
        r"new worlds: semantic_rename:5",
        r"Promoted: version 2 is in use",
        r"version 1 is in use again: one_shot",
    ),
    "streams": (r"updater passes \d+ % and python:my_agent:Agent 0 %",),
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_works(page: Path, tmp_path: Path) -> None:
    if page.stem == "train":
        pytest.importorskip("torch")
    if page.stem == "adapt":
        pytest.importorskip("starlette")
    shutil.copy(ROOT / "examples" / "todo_server.py", tmp_path)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    text = page.read_text(encoding="utf-8")
    found = list(BLOCK.finditer(text))
    assert len(found) == text.count("\n```") / 2, "every block names its language, and its file if it is one"
    told = ""
    for block in found:
        if block["file"]:
            (tmp_path / block["file"]).write_text(block["text"], encoding="utf-8")
            continue
        assert block["language"] == "bash"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block["text"]],
            cwd=tmp_path,
            env={**os.environ, "PATH": path, "COLUMNS": "80"},
            capture_output=True,
            text=True,
            timeout=1200,
        )
        assert done.returncode == 0, f"{block['text']}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        assert "Traceback" not in done.stderr
        told += " ".join(done.stdout.split()) + "\n"
    for promise in PROMISED.get(page.stem, ()):
        assert re.search(promise, told), told[-3000:]
