"""Is an adapter the same in both engines? Plays the same episodes under transformers and under llama.cpp.

    python bench/adapters.py runs/study/arms/paft/seed-0/train/adapter --write docs/results/adapters.md
    python bench/adapters.py static paft --episodes 100

Of each adapter the first tool call of every episode is compared, and the number of successes. It is taken to be the
same if the calls agree in at least 95 of 100 episodes and the successes differ by at most 3 of 100. llama.cpp computes
with quantised weights and activations, so that single tokens may differ. Exits with 1 where an adapter is not the same.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from crosswind.models.embedded import Embedded
from crosswind.models.hf import HuggingFace
from crosswind.models.spec import AgentSettings, AgentSource
from crosswind.play import judge, play
from crosswind.recipe import Drawn
from crosswind.runner import Plan
from crosswind.train.arms import load_study

SAME, APART = 0.95, 0.03
TOKENS = 160  # of one reply, on both sides


class Played(NamedTuple):
    """What an engine made of an episode."""

    first: str  # its first call
    passed: bool


class Compared(NamedTuple):
    """Two engines over the same episodes."""

    adapter: str
    episodes: int
    calls: int  # first calls that are the same
    both: int  # outcomes that are the same
    passed: tuple[int, int]
    seconds: tuple[float, float]

    @property
    def same(self) -> bool:
        return self.calls >= SAME * self.episodes and abs(self.passed[0] - self.passed[1]) <= APART * self.episodes


def episodes(count: int, seed: int) -> list[Drawn]:
    """Clean and perturbed episodes of the dev suite, as they come."""
    study = load_study()
    return [job.episode.drawn for job in Plan(study.dev, seed, limit=count) if job is not None]


async def played(source: AgentSource, drawn: Sequence[Drawn]) -> list[Played]:
    """Play all episodes, as many at a time as the engine likes."""
    turns = asyncio.Semaphore(source.concurrency)

    async def one(episode: Drawn) -> Played:
        async with turns:
            trajectory = await play(episode, source.make(episode), source.name)
        calls = [step["call"] for step in trajectory.steps]
        first = json.dumps({"tool": calls[0]["tool"], "args": calls[0]["args"]}, sort_keys=True) if calls else ""
        return Played(first, judge(trajectory, episode.domain).outcome == "pass")

    try:
        return list(await asyncio.gather(*map(one, drawn)))
    finally:
        await source.aclose()


def compared(adapter: str, drawn: Sequence[Drawn]) -> Compared:
    """Play with both engines."""
    settings = AgentSettings(max_tokens=TOKENS, protocol="text")
    found: list[list[Played]] = []
    seconds: list[float] = []
    for source in (HuggingFace(f"embedded+{adapter}", settings), Embedded(settings, adapter)):
        began = time.perf_counter()
        found.append(asyncio.run(played(source, drawn)))
        seconds.append(time.perf_counter() - began)
    pairs = list(zip(*found, strict=True))
    return Compared(
        adapter=Path(adapter).name if adapter not in ("static", "paft") else adapter,
        episodes=len(drawn),
        calls=sum(one.first == other.first for one, other in pairs),
        both=sum(one.passed == other.passed for one, other in pairs),
        passed=(sum(one.passed for one, _ in pairs), sum(other.passed for _, other in pairs)),
        seconds=(seconds[0], seconds[1]),
    )


def page(some: Sequence[Compared], seed: int) -> str:
    """The result as a table."""
    lines = [
        "# The shipped adapters in both engines",
        "",
        f"Made by `python bench/adapters.py`, dev episodes of poi, clean and perturbed, seed {seed}, greedy.",
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
    parser.add_argument("--write", type=Path, help="a file for the table")
    options: Any = parser.parse_args()
    drawn = episodes(options.episodes, options.seed)
    some = []
    for adapter in options.adapters:
        some.append(compared(adapter, drawn))
        print(some[-1], flush=True)
    text = page(some, options.seed)
    print(text)
    if options.write:
        options.write.write_text(text, encoding="utf-8")
    return 0 if all(one.same for one in some) else 1


if __name__ == "__main__":
    sys.exit(main())
