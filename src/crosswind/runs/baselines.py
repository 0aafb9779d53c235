"""Agents whose score is known beforehand, played on the episodes of a run: they give its numbers a scale."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from crosswind.base.errors import CrosswindError
from crosswind.core.registry import agents
from crosswind.episodes.play import play
from crosswind.episodes.record import Record, Usage, recorded, redrawn
from crosswind.episodes.suite import Episode

NAMES = ("oracle", "memoriser", "refuser")
TELLS = {
    "oracle": "walks the certified way: what can be reached",
    "memoriser": "replays the clean way whatever it meets: what knowing the clean world by heart is worth",
    "refuser": "refuses everything: what saying no is worth",
}


def sample(records: Sequence[Record], limit: int) -> list[Record]:
    """Pairs of a run spread evenly over it: shifted episodes with their clean ones, at most `limit` of the former."""
    trial = min((r.trial for r in records), default=0)
    first = [r for r in records if r.trial == trial and r.judged]
    clean = {r.pair: r for r in first if r.clean}
    shifted = sorted((r for r in first if not r.clean and r.pair in clean), key=lambda r: r.key)
    if len(shifted) > limit:
        shifted = [shifted[i * len(shifted) // limit] for i in range(limit)]
    return [*{r.pair: clean[r.pair] for r in shifted}.values(), *shifted]


def baselines(records: Sequence[Record], names: Sequence[str] = NAMES) -> dict[str, list[Record]]:
    """What scripted agents make of the same episodes; one that cannot be drawn again is left out for all of them."""
    out: dict[str, list[Record]] = {name: [] for name in names}

    async def run() -> None:
        for record in records:
            try:
                drawn = redrawn(record)
            except CrosswindError:
                continue
            episode = Episode(record.condition, record.task_id, drawn, record.severity)
            for name in names:
                trajectory = await play(drawn, agents[name](drawn), name)
                out[name].append(
                    recorded(
                        episode, trajectory, seed=record.seed, trial=record.trial, usage=Usage(), query=record.query
                    )
                )

    asyncio.run(run())
    return out
