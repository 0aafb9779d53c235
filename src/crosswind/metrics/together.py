"""What two runs must have in common to be judged beside each other, by `compare` and by `gate`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

from crosswind.base.errors import CrosswindError
from crosswind.episodes.brief import Told

COMMON = 0.5  # of the episodes of two runs; with less in common, they say little of each other


class Stored(Protocol):
    """What is asked of a run in a folder."""

    @property
    def folder(self) -> Path: ...
    @property
    def manifest(self) -> Any: ...


def same_ending(*runs: Stored) -> None:
    """Refuse runs that end episodes in different ways: what differs could be the way of judging."""
    first = runs[0]
    for other in runs[1:]:
        if other.manifest.ending != first.manifest.ending:
            raise CrosswindError(
                f"{first.folder} ended episodes by {first.manifest.ending} and {other.folder} by "
                f"{other.manifest.ending}; only runs with the same ending can be compared. Play one of them again "
                f"with --ending {first.manifest.ending} or {other.manifest.ending}"
            )


def same_judge(records: Iterable[Told]) -> None:
    """Refuse episodes that were judged by different verifiers: what differs could be the verifier."""
    judges = {one.judge for one in records if one.judged}
    if len(judges) > 1:
        raise CrosswindError(
            f"the runs were judged by different verifiers ({', '.join(sorted(judges))}); "
            "bring all of them to the present one with: crosswind rescore DIR --write"
        )


def little_in_common(one: str, other: str, shared: int, total: int) -> CrosswindError:
    """Why two runs are not judged beside each other."""
    return CrosswindError(
        f"{one} and {other} share only {shared:,} of {total:,} episodes, so a comparison says little "
        "about the whole runs. Give runs of the same suite and seed, finish the shorter one, or compare what "
        "they share with --partial"
    )
