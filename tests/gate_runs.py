"""Runs for the tests of gate and export: episodes of scripted agents, kept as a run keeps them, and made-up ones."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from crosswind.core.registry import agents
from crosswind.episodes.play import judge, play
from crosswind.episodes.record import Record, Usage, recorded
from crosswind.episodes.schedule import episodes, key_of, pair_of
from crosswind.episodes.suite import suites
from crosswind.runs.store import EPISODES, MANIFEST, Manifest, as_line

WHEN = "2026-11-15T07:00:00+00:00"
HOSTILE = (
    "<script>alert(1)</script> ]]> \x00\x1b]0;pwn\x07\x1b[2J\u202e [link=http://evil]x[/link] "
    "@everyone | `x` ![i](http://evil) \ud800\ufffe"
)


@cache
def played(agent: str) -> tuple[Record, ...]:
    """The episodes of suite quick, as a scripted agent plays them."""

    async def run() -> list[Record]:
        out = []
        for episode in episodes(suites["quick"], 0):
            trajectory = await play(episode.drawn, agents[agent](episode.drawn), agent)
            usage = Usage(input_tokens=10, output_tokens=5, requests=2, seconds=0.1)
            out.append(recorded(episode, trajectory, judge(trajectory), seed=0, usage=usage))
        return out

    return tuple(asyncio.run(run()))


def made_up(
    outcomes: Iterable[tuple[bool, bool]], *, kinds: tuple[str, ...] = ("semantic_rename",), **fields: Any
) -> list[Record]:
    """A clean and a shifted episode for each pair of outcomes, of different tasks."""
    base = played("oracle")[0].model_copy(update={"layers": (), "receipts": (), **fields})
    out = []
    for nth, (clean, shifted) in enumerate(outcomes):
        kind = kinds[nth % len(kinds)]
        for condition, passed, layers in (("clean", clean, ()), (kind, shifted, ({"kind": kind},))):
            task = f"poi/find/test/{nth}"
            changes = {
                "key": key_of(task, condition, 0),
                "pair": pair_of(task, 0),
                "task_id": task,
                "condition": condition,
                "severity": 3 if layers else None,
                "layers": layers,
                "outcome": "pass" if passed else "fail",
                "stage": None if passed else "perception",
                "cause": None if passed else "wrong tool",
            }
            out.append(base.model_copy(update={**changes, **fields}))
    return out


def noisy(n: int, clean: float, shifted: float, seed: int = 0) -> list[tuple[bool, bool]]:
    rng = Random(seed)
    return [(rng.random() < clean, rng.random() < shifted) for _ in range(n)]


def folder_of(path: Path, records: Iterable[Record], **fields: Any) -> Path:
    """A folder as a run leaves it."""
    path.mkdir(parents=True)
    lines = list(records)
    manifest = Manifest(
        created=WHEN,
        updated=WHEN,
        crosswind="0.1.0",
        judge=lines[0].judge if lines else "1",
        python="3.11",
        suite={"name": "quick"},
        conditions=(),
        seed=0,
        agent=(lines[0].agent if lines else "oracle").encode("utf-8", "replace").decode(),
        **{"state": "finished", "planned": len(lines), **fields},
    )
    (path / MANIFEST).write_text(manifest.model_dump_json())
    (path / EPISODES).write_bytes(b"".join(as_line(record) for record in lines))
    return path
