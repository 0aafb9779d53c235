"""Careers: determinism, speed and memory. `reference_agents.py` has how agents fare.

python bench/careers.py speed
python bench/careers.py memory --episodes 10000
python bench/careers.py determinism
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from crosswind.core.draw import draw
from crosswind.core.registry import domains
from crosswind.episodes.stream import load_plan, with_changes
from crosswind.models.spec import open_agent
from crosswind.runs.store import iter_records
from crosswind.runs.streams import play_streams

PASSES = 6  # careers, the first of which also warms the process up


def speed(args: argparse.Namespace) -> None:
    """Episodes of careers drawn and certified per second, and single clean draws, in turn so that both share the load.

    Each side runs in a process of its own. The first pass finds nothing made; the others are added up.
    """
    for name in args.domains or load_plan("careers").where():
        command = [sys.executable, __file__, "rate", "--domains", name, "--seed", str(args.seed), "--side"]
        sides = {
            side: subprocess.Popen([*command, side], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for side in ("career", "played", "single")
        }
        took: dict[str, list[float]] = {side: [] for side in sides}
        for _ in range(PASSES):
            for side, process in sides.items():
                assert process.stdin is not None
                assert process.stdout is not None
                print(file=process.stdin, flush=True)
                took[side].append(float(process.stdout.readline()))
        for process in sides.values():
            process.communicate()
        rates = {side: (PASSES - 1) / sum(times[1:]) for side, times in took.items()}
        ratios = (rates[side] / rates["single"] for side in ("career", "played"))
        cells = [*(f"{rate:.0f}" for rate in rates.values()), *(f"{ratio:.2f}" for ratio in ratios)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def rate(args: argparse.Namespace) -> None:
    """One side: for each line read, the seconds of the processor per draw."""
    plan, (name,) = load_plan("careers"), args.domains
    for number, _ in enumerate(sys.stdin):
        began = time.process_time()
        if args.side == "single":
            singles(name, plan.episodes, args.seed + number * plan.episodes)
        else:
            career = plan.timeline(name, args.seed, number)
            for n in range(plan.episodes):
                episode = career.episode(n, ())
                assert episode.mark is not None
                changes = episode.drawn.certificate.gold.session.world.state.changes()
                gone = args.side == "played" and n % 3 == 2  # this agent leaves every third request undone
                career.after(episode.mark, {} if gone else changes)
        print((time.process_time() - began) / plan.episodes, flush=True)


def singles(name: str, count: int, seed: int) -> None:
    """Single clean draws of solvable tasks."""
    domain = domains[name]
    families = [family for family in domain.families if not domain.families[family].refusal]
    for n in range(count):
        draw(domain, domain.task(families[n % len(families)], seed + n), (), 0)


def memory(args: argparse.Namespace) -> None:
    """The largest resident size while this many episodes are played one after the other."""
    plan = with_changes(load_plan(args.plan), {"domains": tuple((args.domains or ["poi"])[:1])})
    number = -(-args.episodes // plan.episodes)
    with tempfile.TemporaryDirectory() as folder:
        for part in range(1, 11):
            streams = -(-number // 10) * part
            asyncio.run(
                play_streams(plan, open_agent("updater"), f"{folder}/{part}", seed=part, streams=-(-number // 10))
            )
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            print(f"{streams * plan.episodes} episodes: {peak} MB", flush=True)


def determinism(args: argparse.Namespace) -> None:
    """The digest of a career's records under two hash seeds, each in a process of its own."""
    found = set()
    for hash_seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": hash_seed}
        command = [sys.executable, __file__, "digest", *(["--domains", *args.domains] if args.domains else [])]
        found.add(subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout)
    print("equal" if len(found) == 1 else "different", *found)


def digest(args: argparse.Namespace) -> None:
    """The digest of what one process plays."""
    plan = with_changes(load_plan("careers"), {"domains": tuple(args.domains)} if args.domains else {})
    out = hashlib.sha256()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play_streams(plan, open_agent("append_only"), folder))
        for record in iter_records(Path(folder)):
            out.update(record.model_dump_json(exclude={"usage"}).encode())
    print(out.hexdigest())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("speed", "rate", "memory", "determinism", "digest"))
    parser.add_argument("--side", default="career")
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--plan", default="careers")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--domains", nargs="*", default=[])
    args = parser.parse_args()
    globals()[args.what](args)


if __name__ == "__main__":
    main()
