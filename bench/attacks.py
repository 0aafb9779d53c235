"""Whether `crosswind check` refuses broken domains and unfair perturbations, and accepts fair ones that look odd.

    python bench/attacks.py bench/attacks/*.tar.xz [--errors]

The plug-ins were written by outside authors from the documentation alone, without sight of the laws. Each archive holds
plug-ins and a manifest that says of each which group it belongs to and what is wrong with it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

SECONDS = 600  # for one plug-in


def check(path: Path, cache: Path) -> tuple[int | None, str]:
    """The exit status of `crosswind check`, and what it refuses."""
    env = {**os.environ, "CROSSWIND_CACHE": str(cache), "COLUMNS": "200", "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "crosswind", "check", str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=env)
    except subprocess.TimeoutExpired:
        return None, "no answer in time"
    told = [line.strip() for line in (done.stdout + done.stderr).splitlines()]
    return done.returncode, " | ".join(line for line in told if line.startswith(("NO", "error")))[:400]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archives", nargs="+", type=Path)
    parser.add_argument("--errors", action="store_true", help="show only what is judged wrongly")
    args = parser.parse_args()
    right, every = Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory() as scratch:
        for archive in args.archives:
            folder = Path(scratch) / archive.name.partition(".")[0]
            with tarfile.open(archive) as tar:
                tar.extractall(folder, filter="data")
            entries: list[dict[str, Any]] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                found = pool.map(lambda entry: check(folder / entry["file"], folder / "cache"), entries)  # noqa: B023
                for entry, (status, told) in zip(entries, found, strict=True):
                    good = status == (0 if entry["group"] == "fair" else 1)
                    every[entry["group"]] += 1
                    right[entry["group"]] += good
                    if not (good and args.errors):
                        print(f"{'ok ' if good else 'BAD'} {folder.name}/{entry['file']} ({entry['flaw']}) {told}")
    for group, n in every.items():
        print(f"{group}: {right[group]} of {n} judged rightly")


if __name__ == "__main__":
    main()
