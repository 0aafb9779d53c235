"""What a kind costs this agent, from runs that it played before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from crosswind.metrics import scores
from crosswind.runs.store import iter_records

LEAST = 5  # pairs of one kind


class Losses:
    """The drop of success under each kind, by severity where that was played."""

    def __init__(self, folders: Iterable[Path]) -> None:
        found: dict[tuple[str, int | None], list[scores.Pair]] = defaultdict(list)
        for folder in folders:
            for pair in scores.pairs(iter_records(folder)):
                shifted = pair[1]
                if len(shifted.kinds) == 1:
                    found[shifted.kinds[0], None].append(pair)
                    if shifted.severity is not None:
                        found[shifted.kinds[0], shifted.severity].append(pair)
        self.losses = {
            key: round(-drop.delta, 4)
            for key, pairs in found.items()
            if len(pairs) >= LEAST and (drop := scores.drop(key[0], pairs)) is not None
        }

    def of(self, kind: str, severity: int) -> float | None:
        """Points of success (0 to 1) that the agent loses; None where it was not played."""
        return self.losses.get((kind, severity), self.losses.get((kind, None)))
