"""Reference scores: what scripted agents and finished runs score on frozen suites, as a Markdown table.

python bench/reference_scores.py --suites tiers heldout original --agents oracle memoriser retrier refuser
python bench/reference_scores.py --suites tiers --agents --runs runs/static runs/paft
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path

from crosswind.cli.run_outcome import scores
from crosswind.core.types import TIERS
from crosswind.episodes.suite import load_suite
from crosswind.metrics import formats
from crosswind.metrics.scores import Drop, Summary
from crosswind.models.spec import open_agent
from crosswind.runs import runner
from crosswind.runs.store import load_manifest

HEADS = ("suite", "agent", "clean", "shifted", *TIERS, "right refusals", "false refusals", "score")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suites", nargs="*", default=["tiers", "heldout", "original"])
    parser.add_argument("--agents", nargs="*", default=["oracle", "memoriser", "retrier", "refuser"])
    parser.add_argument("--runs", nargs="*", type=Path, default=[], help="folders of finished runs")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(f"| {' | '.join(HEADS)} |\n|{' --- |' * len(HEADS)}", flush=True)
    with tempfile.TemporaryDirectory() as work:
        for suite in given.suites:
            for agent in given.agents:
                folder = Path(work) / f"{suite}-{agent}"
                asyncio.run(runner.run(load_suite(suite), open_agent(agent), folder, seed=given.seed))
                print(row(folder), flush=True)
    for folder in given.runs:
        print(row(folder), flush=True)


def row(folder: Path) -> str:
    found, manifest = scores(folder), load_manifest(folder)
    drops = found.drops["tier"]
    cells = [manifest.name, manifest.agent, *success(found), *(change(drops.get(tier)) for tier in TIERS)]
    return f"| {' | '.join([*cells, *refusals(found), score(found)])} |"


def success(found: Summary) -> tuple[str, str]:
    return formats.percent(found.clean.rate), formats.percent(found.shifted.rate)


def change(drop: Drop | None) -> str:
    return f"{formats.points(drop.delta)} ({formats.span(drop.low, drop.high)})" if drop else "–"


def refusals(found: Summary) -> tuple[str, str]:
    shifted = found.refusals["shifted"]
    return formats.percent(shifted.right.rate), formats.percent(shifted.false.rate)


def score(found: Summary) -> str:
    return f"{found.score.value:.2f}" if found.score else "–"


if __name__ == "__main__":
    main()
