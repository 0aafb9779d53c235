"""Is an adapter the same in both engines? Plays the same episodes under transformers and under llama.cpp.

    python bench/adapters.py runs/study/arms/paft/seed-0/train/adapter --write docs/results/adapters.md
    python bench/adapters.py static paft --episodes 100
    python bench/adapters.py static paft --played docs/results/adapters --engines transformers   # where a GPU is, say,
    python bench/adapters.py static paft --played docs/results/adapters --engines llama.cpp      # the rest elsewhere

Of each adapter the first tool call of every episode is compared, and the number of successes. It is taken to be the
same if the calls agree in at least 95 of 100 episodes and the successes differ by at most 3 of 100. llama.cpp computes
with quantised weights and activations, so that single tokens may differ. Exits with 1 where an adapter is not the same.
What was played is kept in the folder `--played` as it comes, and not played again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from crosswind.core.draw import Drawn
from crosswind.episodes.play import judge, play
from crosswind.episodes.schedule import Schedule
from crosswind.models import adapters
from crosswind.models.embedded import TRAINED, Embedded
from crosswind.models.hf import HuggingFace
from crosswind.models.source import AgentSettings, AgentSource
from crosswind.study.definition import load_study
from crosswind.study.runner import commit_of

STUDY = Path(__file__).parent.parent / "studies" / "fragility"
SAME, APART = 0.95, 0.03
ENGINES = ("transformers", "llama.cpp")


class Played(NamedTuple):
    """What an engine made of an episode."""

    first: str  # its first call
    passed: bool
    seconds: float


class Compared(NamedTuple):
    """Two engines over the same episodes."""

    adapter: str
    episodes: int
    calls: int  # first calls that are the same
    both: int  # outcomes that are the same
    passed: tuple[int, int]

    @property
    def same(self) -> bool:
        return self.calls >= SAME * self.episodes and abs(self.passed[0] - self.passed[1]) <= APART * self.episodes


def episodes(count: int, seed: int) -> list[Drawn]:
    """Clean and perturbed episodes of the dev suite, as they come."""
    study = load_study(STUDY)
    return [episode.drawn for episode in Schedule(study.dev, seed, limit=count) if episode is not None]


async def played(source: AgentSource, drawn: Sequence[Drawn], kept: Path) -> list[Played]:
    """Play the episodes that are not among those kept, as many at a time as the engine likes."""
    turns = asyncio.Semaphore(source.concurrency)
    lines = kept.read_text(encoding="utf-8").splitlines() if kept.is_file() else []
    out = {found["n"]: Played(found["first"], found["passed"], found["seconds"]) for found in map(json.loads, lines)}

    async def one(n: int, episode: Drawn) -> None:
        async with turns:
            began = time.perf_counter()
            trajectory = await play(episode, source.make(episode), source.name)
            calls = [step["call"] for step in trajectory.steps]
            first = json.dumps({"tool": calls[0]["tool"], "args": calls[0]["args"]}, sort_keys=True) if calls else ""
            passed = judge(trajectory, episode.domain).outcome == "pass"
            out[n] = Played(first, passed, time.perf_counter() - began)
            with kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"n": n, **out[n]._asdict()}) + "\n")
            print(f"\r{source.name}: {len(out)} of {len(drawn)}", end="", file=sys.stderr, flush=True)

    try:
        await asyncio.gather(*(one(n, episode) for n, episode in enumerate(drawn) if n not in out))
    finally:
        await source.aclose()
    return [out[n] for n in range(len(drawn))]


def compared(adapter: str, drawn: Sequence[Drawn], engines: Sequence[str], folder: Path, seed: int) -> Compared | None:
    """Play with the engines named; a comparison, if both have played."""
    settings = AgentSettings(max_tokens=TRAINED, protocol="text")
    mark = f"{adapters.digest(adapters.found(adapter))[:12]}-{seed}"
    found: dict[str, list[Played]] = {}
    for engine in ENGINES:
        kept = folder / f"{mark}-{engine}.jsonl"
        if engine in engines:
            hf = engine == "transformers"
            source = HuggingFace(f"embedded+{adapter}", settings) if hf else Embedded(adapter, settings)
            found[engine] = asyncio.run(played(source, drawn, kept))
    if len(found) < len(ENGINES):
        return None
    pairs = list(zip(*found.values(), strict=True))
    return Compared(
        adapter=Path(adapter).name if adapter not in adapters.SHIPPED else adapter,
        episodes=len(drawn),
        calls=sum(one.first == other.first for one, other in pairs),
        both=sum(one.passed == other.passed for one, other in pairs),
        passed=(sum(one.passed for one, _ in pairs), sum(other.passed for _, other in pairs)),
    )


def page(some: Sequence[Compared], seed: int) -> str:
    """The result as a table."""
    lines = [
        "# The shipped adapters in both engines",
        "",
        f"Made on {date.today()} at {commit_of() or 'an unknown commit'} by `python bench/adapters.py "
        f"{' '.join(one.adapter for one in some)}`: dev episodes of poi, clean and perturbed, seed {seed}, greedy. An "
        f"adapter is the same if at least {SAME:.0%} of the first calls are and the successes differ by at most "
        f"{APART:.0%}. Every episode is in `adapters/`.",
        "",
        "| adapter | episodes | first call same | outcome same | passed: transformers | passed: llama.cpp | same |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    for one in some:
        cells = (one.adapter, one.episodes, one.calls, one.both, *one.passed, "yes" if one.same else "no")
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("adapters", nargs="+", help="static, paft, a GGUF file or a folder that training wrote")
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--engines", default=",".join(ENGINES), help="which to play with; both unless given")
    parser.add_argument("--played", type=Path, help="a folder in which episodes are kept; a fresh one unless given")
    parser.add_argument("--write", type=Path, help="a file for the table")
    options: Any = parser.parse_args()
    engines = options.engines.split(",")
    if unknown := set(engines) - set(ENGINES):
        parser.error(f"no engine {', '.join(sorted(unknown))}; there are {', '.join(ENGINES)}")
    folder = options.played or Path(tempfile.mkdtemp(prefix="adapters-"))
    folder.mkdir(parents=True, exist_ok=True)
    drawn = episodes(options.episodes, options.seed)
    some = [compared(adapter, drawn, engines, folder, options.seed) for adapter in options.adapters]
    both = [one for one in some if one is not None]
    if len(both) < len(some):
        print(f"\nplayed; with the other engine's episodes in {folder} they can be compared")
        return 0
    text = page(both, options.seed)
    print(f"\n{text}")
    if options.write:
        options.write.write_text(text, encoding="utf-8")
    return 0 if all(one.same for one in both) else 1


if __name__ == "__main__":
    sys.exit(main())
