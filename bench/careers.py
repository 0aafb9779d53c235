"""Reference agents over streams and careers, determinism, speed and memory.

python bench/careers.py agents --careers 100 --streams 20
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
from crosswind.episodes.stream import Plan, load_plan, with_changes
from crosswind.metrics.shares import StreamShare
from crosswind.metrics.streams import StreamSummary, summarise
from crosswind.models.spec import open_agent
from crosswind.runs.store import iter_records
from crosswind.runs.streams import play_streams

CAREERS = ("oracle", "memoryless", "relister", "append_only", "credulous", "forgetful", "updater")
STREAMS = ("oracle", "memoryless", "relister", "append_only", "updater", "memoriser")


def played(plan: Plan, agent: str, number: int, seed: int) -> StreamSummary:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play_streams(plan, open_agent(agent), folder, seed=seed, streams=number))
        return summarise(list(iter_records(Path(folder))))


def told(share: StreamShare) -> str:
    """A share as the table has it, in percent."""
    if share.value is None:
        return "–"
    bounds = "" if share.low is None or share.high is None else f" ({100 * share.low:.0f} to {100 * share.high:.0f})"
    return f"{100 * share.value:.1f}{bounds}"


def agents(args: argparse.Namespace) -> None:
    """How reference agents fare."""
    chosen = {"domains": tuple(args.domains)} if args.domains else {}
    if args.careers:
        plan = with_changes(load_plan("careers"), chosen)
        print("| agent | no memory | memory | superseded | contradicted | expired | chains | stale | forfeited | n |")
        for agent in CAREERS:
            found = played(plan, agent, args.careers, args.seed).career
            assert found is not None
            twists = [found.twists.get(name, StreamShare(n=0, value=None)) for name in ("superseded", "contradicted")]
            twists.append(found.twists.get("expired", StreamShare(n=0, value=None)))
            shares = (found.independent, found.dependent, *twists, found.chains, found.stale)
            row = [agent, *map(told, shares), str(found.forfeited), str(found.dependent.n)]
            print(f"| {' | '.join(row)} |", flush=True)
            near = ", ".join(f"{name}: {told(share)}" for name, share in found.distances.items())
            print(f"  by distance: {near}", flush=True)
    if args.streams:
        plan = with_changes(load_plan("evolving"), chosen)
        print("| agent | success | stability | adaptation | regret | drop | recovered |")
        for agent in STREAMS:
            one = played(plan, agent, args.streams, args.seed)
            row = [agent, told(one.success), told(one.stability), told(one.adaptation), f"{one.regret:.1f}"]
            row += ["–" if v is None else f"{100 * v:.0f}" for v in (one.drop, one.recovered)]
            print(f"| {' | '.join(row)} |", flush=True)


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
    parser.add_argument("what", choices=("agents", "speed", "memory", "determinism", "digest"))
    parser.add_argument("--careers", type=int, default=0, help="careers per domain")
    parser.add_argument("--streams", type=int, default=0, help="streams per domain")
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--plan", default="careers")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--domains", nargs="*", default=[])
    args = parser.parse_args()
    globals()[args.what](args)


if __name__ == "__main__":
    main()
