"""What it costs to read a large run: time, processor time and peak memory of every reader, each in its own process.

    python bench/readers.py RUN [OTHER] --out DIR [--only report,show]

RUN is the folder of a run, such as that of `crosswind run tiers --tasks 400 --limit 50000 --agent retrier`. OTHER, if
given, is what it is compared with; `--vary` writes one first: RUN with every fifth verdict turned round.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from large_run import measured  # type: ignore[import-not-found]  # beside this file

from crosswind.runs.store import Store, iter_briefs, iter_records, load_manifest

TURNED = {"pass": "fail", "fail": "pass"}


def vary(folder: Path, other: Path) -> None:
    """A run like another, with every fifth verdict turned round."""
    with Store(other) as store:
        manifest = store.begin(load_manifest(folder).model_copy(update={"agent": "varied"}))
        store.resume(lambda _: None)
        for n, record in enumerate(iter_records(folder)):
            turned = {"outcome": TURNED.get(record.outcome, record.outcome)} if n % 5 == 0 else {}
            store.append(record.model_copy(update={"agent": "varied", **turned}))
            if n % 64 == 63:
                store.sync()
        store.sync()
        store.write(manifest, state="finished")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("other", type=Path, nargs="?")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--vary", action="store_true", help="write OTHER from RUN first")
    parser.add_argument("--only", default="", help="readers to measure, with commas between")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    if asked.vary and asked.other:
        vary(asked.run, asked.other)
    run, other, out = str(asked.run), str(asked.other), asked.out
    briefs = list(iter_briefs(asked.run))
    middle = briefs[len(briefs) // 2]
    commands = {
        "show a list": ["show", run, "--outcome", "fail"],
        "show by number": ["show", run, str(middle.at + 1)],
        "show by key": ["show", run, middle.key],
        "gate": ["gate", run, "--max-drop", "tier=0.10"],
        "diagnose": ["diagnose", run],
        "report": ["report", run, "-o", str(out / "report.html")],
        "report again": ["report", run, "-o", str(out / "report.html")],
        "export atif": ["export", run, "--format", "atif", "-o", str(out / "run.jsonl")],
        "export inspect": ["export", run, "--format", "inspect", "-o", str(out / "run.eval")],
    }
    if asked.other:
        commands["compare"] = ["compare", run, other, "-o", str(out / "compare.html")]
        commands["leaderboard"] = ["leaderboard", run, other, "-o", str(out / "leaderboard.html")]
    print(f"{len(briefs):,} episodes")
    print("| what | seconds | CPU s | peak MiB | status | last line |\n|---|---:|---:|---:|---:|---|", flush=True)
    for name, command in commands.items():
        if not asked.only or name.split()[0] in asked.only.split(","):
            measured(name, sys.executable, "-m", "crosswind", *command)


if __name__ == "__main__":
    main()
