"""A model with and without adapter and notes, over streams and careers: shares with intervals, and curves.

    python bench/stream_models.py --out runs/models --streams 5
    python bench/stream_models.py --agents hf:MODEL hf:MODEL+ADAPTER --out runs/models --streams 5
    python bench/stream_models.py --plans evolving --domain poi --episodes 3 --releases 1 --out /tmp/try

Each agent plays each plan three times: with no memory, with notes, and with nothing to remember (`--frozen`), where the
interface never changes and every fact is stated. The same command goes on where it was stopped. With `--table` nothing
is played; what there is so far is shown.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path

from crosswind.base.errors import CrosswindError
from crosswind.episodes.record import Record
from crosswind.episodes.stream import load_plan, with_changes
from crosswind.metrics.shares import StreamShare, share
from crosswind.metrics.streams import StreamSummary, summarise
from crosswind.models.notes import with_memory
from crosswind.models.source import AgentSource
from crosswind.models.spec import open_agent
from crosswind.report.streams import smoothed
from crosswind.runs.store import iter_records
from crosswind.runs.streams import play_streams

WAYS = {"": ("", False), "notes": ("notes", False), "nothing to remember": ("", True)}  # memory, and frozen


def told(share: StreamShare) -> str:
    """A share as the table has it, in percent."""
    if share.value is None:
        return "–"
    bounds = "" if share.low is None or share.high is None else f" ({100 * share.low:.0f} to {100 * share.high:.0f})"
    return f"{100 * share.value:.1f}{bounds} of {share.n}"


def folder_of(args: argparse.Namespace, name: str, agent: str, way: str) -> Path:
    """Where the run of one cell of the table is."""
    cell = "-".join(part for part in (name, agent.replace(":", "-").replace("/", "-"), way) if part)
    return Path(args.out / cell.replace(" ", "-"))


async def play_all(args: argparse.Namespace, agent: str) -> None:
    """Play all cells of an agent. They share its model, so that a GPU writes for all of them in one batch."""
    source = open_agent(agent)
    cells = [(name, way) for name in args.plans for way in args.ways]
    try:
        if source.concurrency > 1:
            await asyncio.gather(*(play(args, source, name, agent, way) for name, way in cells))
        else:
            for name, way in cells:
                await play(args, source, name, agent, way)
    finally:
        await source.aclose()


async def play(args: argparse.Namespace, model: AgentSource, name: str, agent: str, way: str) -> None:
    """Play one cell of the table, or what is left of it."""
    plan = load_plan(name)
    wanted = {"domains": (args.domain,) if args.domain else None, "episodes": args.episodes, "releases": args.releases}
    known = type(plan).model_fields
    plan = with_changes(plan, {field: value for field, value in wanted.items() if value and field in known})
    memory, frozen = WAYS[way]
    source, folder = with_memory(model, memory), folder_of(args, name, agent, way)
    together = args.together or source.concurrency
    ran = await play_streams(
        plan, source, folder, seed=args.seed, streams=args.streams, frozen=frozen, concurrency=together
    )
    if ran.stopped:
        print(f"stopped: {ran.stopped}; the same command goes on", flush=True)


def blocks(records: list[Record], count: int = 10) -> str:
    """Success over the course of the streams, in this many blocks of episodes, with intervals over streams."""
    played = [(r, r.mark.number) for r in records if r.mark is not None and r.judged]
    size = -(-(1 + max(number for _, number in played)) // count)
    cells = []
    for first in range(0, count * size, size):
        here = [r for r, number in played if first <= number < first + size]
        cells.append(told(share(((r.domain, r.trial), float(r.passed)) for r in here)).partition(" of ")[0])
    return " | ".join(cells)


def row(agent: str, way: str, found: StreamSummary) -> str:
    """One line of the table: the same columns for streams and careers."""
    if (career := found.career) is not None:
        cells = [told(career.independent), told(career.dependent), told(career.chains), told(career.stale)]
        cells.append(f"{career.forfeited} forfeited")
    else:
        cells = [told(found.stability), told(found.adaptation)]
        cells += ["–" if v is None else f"{100 * v:.0f}" for v in (found.drop, found.recovered)]
        cells.append(f"regret {found.regret:.1f}")
    return f"| {agent} | {way or 'no memory'} | {told(found.success)} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", nargs="+", default=["embedded", "embedded:paft"])
    parser.add_argument("--plans", nargs="+", default=["evolving", "careers"])
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--domain", default="")
    parser.add_argument("--streams", type=int, default=1, help="per domain")
    parser.add_argument("--episodes", type=int, default=0)
    parser.add_argument("--releases", type=int, default=0)
    parser.add_argument("--together", type=int, default=0, help="streams at a time; 0: what the agent suggests")
    parser.add_argument(
        "--slots", type=int, default=0, help="conversations of a model on the GPU; 0: what it has room for"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--table", action="store_true")
    args = parser.parse_args()
    if args.slots:  # several processes share a device
        from crosswind.models import hf

        hf.TOGETHER = hf.HuggingFace.slots = args.slots
    curves = {}
    for agent in [] if args.table else args.agents:
        asyncio.run(play_all(args, agent))
    for name in args.plans:
        for agent in args.agents:
            for way in args.ways:
                folder = folder_of(args, name, agent, way)
                if records := list(iter_records(folder)) if folder.exists() else []:
                    found = summarise(records)
                    curves[folder.name] = [round(point, 3) for point in smoothed(found.curve)]
                    print(row(agent, way, found), flush=True)
                    print(f"|   over time | {blocks(records)} |", flush=True)
    (args.out / "curves.json").write_text(json.dumps(curves, indent=1) + "\n")


if __name__ == "__main__":
    try:
        main()
    except CrosswindError as error:  # such as a model that is not installed here
        sys.exit(f"error: {error}")
