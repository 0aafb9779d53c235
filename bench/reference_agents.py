"""Reference agents over careers and streams, as many as fit into some minutes; the next call adds more.

    python bench/reference_agents.py careers --out runs/reference --number 100 --minutes 5
    python bench/reference_agents.py evolving --out runs/reference --number 20 --minutes 5
    python bench/reference_agents.py careers --out runs/reference --number 0
    python bench/reference_agents.py careers --out runs/more --first 80 --number 100 --domains poi retail

A file of the folder holds the episodes of one agent without their texts and steps, a line each. Stream k is played
with the seed k. All agents play it before the next one begins, and one that not all of them have is not counted. The
table is printed at the end, with `--number 0` alone.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from crosswind.core.domain import NO_BRIEF
from crosswind.core.types import Task
from crosswind.episodes.record import Record
from crosswind.episodes.stream import Plan, load_plan, with_changes
from crosswind.metrics.shares import StreamShare
from crosswind.metrics.streams import summarise
from crosswind.models.spec import open_agent
from crosswind.runs.store import iter_records
from crosswind.runs.streams import play_streams

AGENTS = {
    "careers": ("oracle", "updater", "credulous", "forgetful", "append_only", "memoryless", "relister"),
    "evolving": ("oracle", "memoryless", "updater", "append_only", "relister", "memoriser"),
}
NOTHING = Task(id="", domain="", family="", brief=NO_BRIEF, seed=0, size=0)


def stripped(record: Record, number: int) -> Record:
    """What the figures need of an episode."""
    mark = record.mark
    assert mark is not None
    if mark.career is not None:
        recall = mark.career.recall.model_copy(update={"told": (), "policy": ""})
        mark = mark.model_copy(update={"career": mark.career.model_copy(update={"task": NOTHING, "recall": recall})})
    bare = {"query": "", "policy": "", "final": "", "tools": (), "steps": (), "layers": (), "checks": ()}
    return record.model_copy(update={**bare, "trial": number, "mark": mark.model_copy(update={"memory": None})})


def file_of(folder: Path, plan: str, agent: str) -> Path:
    return folder / f"{plan}-{agent}.jsonl.gz"


def stored(path: Path) -> Iterator[Record]:
    if path.exists():
        with gzip.open(path, "rt") as lines:
            yield from map(Record.model_validate_json, lines)


def play(plan: Plan, agent: str, seed: int) -> list[Record]:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play_streams(plan, open_agent(agent), folder, seed=seed))
        return [stripped(record, seed) for record in iter_records(Path(folder))]


def more(plan: Plan, folder: Path, seeds: Iterable[int], minutes: float) -> None:
    """Play what is missing of the streams of these seeds in each domain until the processor has worked for so long."""
    done = {a: {(r.domain, r.trial) for r in stored(file_of(folder, plan.name, a))} for a in AGENTS[plan.name]}
    for seed in seeds:
        for domain in plan.where():
            for agent, has in done.items():
                if (domain, seed) in has:
                    continue
                if time.process_time() > 60 * minutes:
                    return
                lines = [
                    r.model_dump_json() + "\n" for r in play(with_changes(plan, {"domains": (domain,)}), agent, seed)
                ]
                with gzip.open(file_of(folder, plan.name, agent), "at") as file:
                    file.write("".join(lines))


def table(plan: Plan, folder: Path) -> None:
    agents = AGENTS[plan.name]
    found = {agent: list(stored(file_of(folder, plan.name, agent))) for agent in agents}
    common = set.intersection(*({(r.domain, r.trial) for r in records} for records in found.values()))
    per = sorted(sum(domain == name for domain, _ in common) for name in plan.where())
    print(f"{len(common)} streams, {per[0]} to {per[-1]} in each domain")
    for agent, records in found.items():
        one = summarise([r for r in records if (r.domain, r.trial) in common])
        row = [agent, told(one.success), f"{one.regret:.1f}"]
        if (career := one.career) is not None:
            twists = [
                career.twists.get(t, StreamShare(n=0, value=None)) for t in ("superseded", "contradicted", "expired")
            ]
            row += [told(career.independent), told(career.dependent), *map(told, twists)]
            row += [told(career.chains), told(career.stale), str(career.forfeited), str(career.dependent.n)]
            near = f"distance: {', '.join(f'{d}: {told(s)}' for d, s in career.distances.items())}"
        else:
            row += [told(one.stability), told(one.adaptation)]
            row += ["–" if v is None else f"{100 * v:.0f}" for v in (one.drop, one.recovered)]
            row += ["–" if one.recovery is None else f"{one.recovery:.1f}"]
            near = f"after k: {', '.join(f'{k}: {told(s)}' for k, s in one.shots.items())}"
        print(f"| {' | '.join(row)} |\n  {near}")


def told(share: StreamShare) -> str:
    """A share as the table has it, in percent."""
    if share.value is None:
        return "–"
    bounds = "" if share.low is None or share.high is None else f" ({100 * share.low:.0f} to {100 * share.high:.0f})"
    return f"{100 * share.value:.1f}{bounds}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", choices=AGENTS)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--number", type=int, default=0, help="streams per domain, one for each seed")
    parser.add_argument("--first", type=int, default=0, help="seed of the first; --number is one past the last")
    parser.add_argument("--domains", nargs="*", default=[], help="play in these alone")
    parser.add_argument("--minutes", type=float, default=10, help="of the processor")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    plan = with_changes(load_plan(args.plan), {"domains": tuple(args.domains)})
    more(plan, args.out, range(args.first, args.number), args.minutes)
    table(plan, args.out)


if __name__ == "__main__":
    main()
