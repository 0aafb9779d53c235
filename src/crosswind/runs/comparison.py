"""Runs beside each other: the episodes that they share, compared pair by pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crosswind.base.errors import CrosswindError
from crosswind.episodes.record import Record
from crosswind.metrics.groups import By
from crosswind.metrics.scores import CleanAndRobust, Drop, Pair, Summary, clean_and_robust, drop, grouped_drops, summary
from crosswind.runs.analysis import select
from crosswind.runs.reading import Reading, read_both
from crosswind.runs.store import StoredRun

GROUPS: tuple[By, ...] = ("tier", "cell", "kind", "condition", "severity", "domain", "level", "family")


@dataclass(frozen=True, slots=True)
class Contrast:
    """A run beside the first: a `Drop` here has the first run as clean and this one as shifted."""

    name: str
    every: Drop  # over all shared episodes
    clean: Drop | None
    shifted: Drop | None
    groups: dict[By, dict[str, Drop]]  # of the shifted ones
    unshared: int  # episodes that only one of the two has, or that are an error in one
    other: int  # episodes of one key that are not the same
    opened: tuple[tuple[Reading, Reading], ...]  # episodes in which one passed and the other failed


@dataclass(frozen=True, slots=True)
class Comparison:
    runs: dict[str, StoredRun]
    summaries: dict[str, Summary]
    versus: tuple[Contrast, ...]
    ranks: CleanAndRobust | None  # of three runs or more

    @property
    def first(self) -> str:
        return next(iter(self.runs))


def compare(runs: Sequence[StoredRun], *, opened: int = 24) -> Comparison:
    """Compare each run with the first over the episodes that both have."""
    named = dict(zip(_names(runs), runs, strict=True))
    first, *others = named
    versus: list[Contrast] = []
    for name in others:
        found = _versus(name, named[first], named[name], opened)
        if found is None:
            raise CrosswindError(
                f"{named[first].folder} and {named[name].folder} share no episode; runs are compared when they have "
                "the same suite and seed"
            )
        versus.append(found)
    summaries = {name: summary(run.records, measures=False, by=()) for name, run in named.items()}
    falls = {name: found.drop for name, found in summaries.items() if found.drop}
    return Comparison(named, summaries, tuple(versus), clean_and_robust(falls) if len(falls) > 2 else None)


def _names(runs: Sequence[StoredRun]) -> list[str]:
    """What each run is called: its agent, and its folder or a number where that does not tell it apart."""
    agents = [run.manifest.agent for run in runs]
    out: list[str] = []
    for run, agent in zip(runs, agents, strict=True):
        name = agent if agents.count(agent) == 1 else f"{agent} ({run.folder.name})"
        out.append(name if name not in out else f"{name} #{len(out) + 1}")
    return out


def _versus(name: str, first: StoredRun, second: StoredRun, opened: int) -> Contrast | None:
    theirs = {r.key: r for r in first.records if r.judged}
    ours = {r.key: r for r in second.records if r.judged}
    shared = [(theirs[key], record) for key, record in ours.items() if key in theirs]
    same = [(a, b) for a, b in shared if a.layers == b.layers]
    every = drop("all", same)
    if every is None:
        return None
    clean, shifted = [(a, b) for a, b in same if b.clean], [(a, b) for a, b in same if not b.clean]
    before = {b.key: a for a, b in same}
    groups: dict[By, dict[str, Drop]] = {}
    for by in GROUPS:  # what was seen in the second run says nothing of the first
        found = grouped_drops(same, by)
        groups[by] = {name: one.model_copy(update={"exposed": None}) for name, one in found.items()}
    keys = {r.key for r in first.records} | {r.key for r in second.records}
    return Contrast(
        name=name,
        every=every,
        clean=drop("clean", clean),
        shifted=drop("shifted", shifted),
        groups=groups,
        unshared=len(keys) - len(shared),
        other=len(shared) - len(same),
        opened=tuple(read_both(before[r.key], r) for r in _changed(same, opened)),
    )


def _changed(pairs: Sequence[Pair], limit: int) -> list[Record]:
    """Episodes that one passed and the other failed; those that broke first."""
    broke = select([b for a, b in pairs if a.passed and not b.passed], limit)
    fixed = select([b for a, b in pairs if b.passed and not a.passed], limit)
    broke = broke[: limit - min(limit // 3, len(fixed))]
    return [*broke, *fixed[: limit - len(broke)]]
