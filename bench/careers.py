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


def speed(args: argparse.Namespace) -> None:
    """Episodes of a career drawn and certified per second, and single clean draws of as many tasks."""
    plan = load_plan("careers")
    for name in args.domains or plan.where():
        career = plan.timeline(name, args.seed, 0)
        began = time.process_time()
        for n in range(plan.episodes):
            episode = career.episode(n, ())
            assert episode.mark is not None
            career.after(episode.mark, episode.drawn.certificate.gold.session.world.state.changes())
        ours = plan.episodes / (time.process_time() - began)
        domain = domains[name]
        began = time.process_time()
        families = [family for family in domain.families if not domain.families[family].refusal]
        for n in range(plan.episodes):
            draw(domain, domain.task(families[n % len(families)], args.seed + n), (), 0)
        single = plan.episodes / (time.process_time() - began)
        print(f"| {name} | {ours:.0f} | {single:.0f} | {ours / single:.2f} |", flush=True)


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
    parser.add_argument("what", choices=("speed", "memory", "determinism", "digest"))
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--plan", default="careers")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--domains", nargs="*", default=[])
    args = parser.parse_args()
    globals()[args.what](args)


if __name__ == "__main__":
    main()
