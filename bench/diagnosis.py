"""How well the diagnosis names planted flaws: the confusion matrix of stages and causes over every domain and kind.

python -m bench.diagnosis --tasks 2 > docs/results/diagnosis.md
python -m bench.diagnosis --blind bench/flawed/blind.tar.xz --half sealed

The archive holds 24 agents in three batches, written by an author who saw the documented causes and none of the rules.
Half of each batch, by a hash of the names, is for looking at; the other half is for measuring alone.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import hashlib
import importlib
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from crosswind import __version__
from crosswind.episodes.play import judge, play
from crosswind.episodes.record import Record, Usage, recorded
from crosswind.episodes.schedule import Episode, episodes
from crosswind.episodes.suite import Suite
from crosswind.metrics.diagnosis import Diagnosis, diagnose
from tests.flawed.catalogue import FLAWED

Row = tuple[str, str, str, str, Diagnosis, Record]
VARIED = {  # agents whose flaws show themselves in other ways
    "varied_": "Varied agents, with the rules adjusted while looking at some of them",
    "reported_": "Agents whose flaws were reported as misread, with the rules changed while looking at them",
    "fresh_": "Varied agents written after the rules were last changed",
}


def names() -> list[str]:
    return sorted(FLAWED)


def blind(archive: Path, half: str) -> list[str]:
    """Add the agents of an archive to the catalogue: half of each of its batches, or all."""
    folder = tempfile.mkdtemp()
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    sys.path.insert(0, folder)
    found = []
    for batch in "abc":
        agents = importlib.import_module(f"blind_{batch}").AGENTS
        ordered = sorted(agents, key=lambda name: hashlib.sha1(name.encode()).hexdigest())
        for name in {"open": ordered[:4], "sealed": ordered[4:], "all": ordered}[half]:
            FLAWED[name] = agents[name]
            found.append(name)
    return found


def means(rows: list[Row]) -> str:
    """Shares of failures named as planted, as means over agents, so that no agent counts for its many failures."""
    by_agent: dict[str, list[Row]] = {}
    for row in rows:
        by_agent.setdefault(row[0], []).append(row)
    stage = [sum(r[4].stage == r[1] for r in of) / len(of) for of in by_agent.values()]
    cause = [sum((r[4].stage, r[4].cause) == (r[1], r[2]) for r in of) / len(of) for of in by_agent.values()]
    return (
        f"{len(by_agent)} agents, {len(rows)} failures. Mean over agents: stage {sum(stage) / len(stage):.3f}, "
        f"stage and cause {sum(cause) / len(cause):.3f}."
    )


def is_single(name: str) -> bool:
    return not name.startswith(("flaw_two_", *VARIED))


async def failures(found: Sequence[Episode], which: Sequence[str]) -> list[Row]:
    """Every failed episode of some agents, with what was planted and what is found."""
    out = []
    for episode in found:
        for name in which:
            flawed = FLAWED[name]
            trajectory = await play(episode.drawn, flawed(episode.drawn), name)
            record = recorded(episode, trajectory, judge(trajectory), seed=0, usage=Usage())
            if record.outcome == "fail":
                said = diagnose(record, episode.drawn.certificate)
                out.append((name, flawed.stage, flawed.cause, episode.condition, said, record))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--stacks", type=int, default=3)
    parser.add_argument("--domains", default="")
    parser.add_argument("--agents", default="")
    parser.add_argument("--wrong", type=int, default=0, help="print so many of the failures that were named otherwise")
    parser.add_argument("--blind", type=Path, help="an archive of agents to measure instead")
    parser.add_argument("--half", choices=["open", "sealed", "all"], default="all")
    given = parser.parse_args()
    suite = Suite(
        name="diagnosis",
        each_of="all",
        tasks=given.tasks,
        stacks=given.stacks,
        domains=tuple(given.domains.split(",")) if given.domains else (),
    )
    which = given.agents.split(",") if given.agents else names()
    if given.blind is not None:
        which = blind(given.blind, given.half)
    started = time.process_time()
    rows = asyncio.run(failures(list(episodes(suite, given.seed)), which))
    seconds = time.process_time() - started
    if given.blind is not None:
        print(means(rows) + "\n")
        table(rows)
        return
    report(rows, given, seconds)


def report(rows: list[Row], given: argparse.Namespace, seconds: float) -> None:
    single = [row for row in rows if is_single(row[0])]
    good = [r for r in single if (r[1], r[2]) == (r[4].stage, r[4].cause)]
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    print("# How well the diagnosis names planted flaws\n")
    print(f"- command: `python -m bench.diagnosis --tasks {given.tasks} --stacks {given.stacks} --seed {given.seed}`")
    today = datetime.date.today().isoformat()
    print(f"- crosswind {__version__}, commit {commit.stdout.strip()}, {today}, {seconds:.0f} s of CPU\n")
    share = len(good) / max(1, len(single))
    print(f"Failures of agents with one flaw: {len(single)}; stage and cause as planted: {len(good)} ({share:.1%}).\n")
    table([row for row in rows if not row[0].startswith(tuple(VARIED))])
    for start, title in VARIED.items():
        of = [row for row in rows if row[0].startswith(start)]
        right = sum((r[1], r[2]) == (r[4].stage, r[4].cause) for r in of)
        print(f"\n## {title}\n\nFailures: {len(of)}; as planted: {right} ({right / max(1, len(of)):.1%}).\n")
        table(of)
    wrong = [r for r in single if (r[1], r[2]) != (r[4].stage, r[4].cause)]
    for name, _, _, condition, said, record in wrong[: given.wrong]:
        print(f"\n{name} {record.key} {condition}: {said}")


def table(rows: list[Row]) -> None:
    print("| agent | planted | failures | named so | named otherwise |\n|---|---|---|---|---|")
    for name in sorted({r[0] for r in rows}):
        of = [r for r in rows if r[0] == name]
        right = sum((r[1], r[2]) == (r[4].stage, r[4].cause) for r in of)
        others = Counter(f"{r[4].cause} ({r[4].stage})" for r in of if (r[1], r[2]) != (r[4].stage, r[4].cause))
        told = ", ".join(f"{n} x {c}" for c, n in others.most_common(6))
        print(f"| `{name}` | {of[0][2]} ({of[0][1]}) | {len(of)} | {right / len(of):.0%} | {told} |")


if __name__ == "__main__":
    main()
