"""Runs beside each other: the episodes that they share, compared pair by pair."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

from crosswind.base.errors import CrosswindError
from crosswind.episodes.brief import Told
from crosswind.metrics.groups import By
from crosswind.metrics.scores import (
    CleanAndRobust,
    Drop,
    Summary,
    clean_and_robust,
    drop,
    grouped_drops,
    refused,
    sides,
    summary,
)
from crosswind.metrics.streams import StreamPairs, paired
from crosswind.metrics.together import COMMON, little_in_common, same_ending, same_judge
from crosswind.runs.analysis import select
from crosswind.runs.baselines import trivial_of
from crosswind.runs.reading import Reading, read_both
from crosswind.runs.store import AnyRun

GROUPS: tuple[By, ...] = ("tier", "cell", "kind", "condition", "severity", "domain", "level", "family")


@dataclass(frozen=True, slots=True)
class Contrast:
    """A run beside the first: a `Drop` here has the first run as clean and this one as shifted.

    Tasks that can be solved and tasks to refuse are compared apart. Episodes are counted as in a `Summary`: success
    over solvable pairs, in which a clean episode comes once for each shifted one, and refusals over shifted episodes.
    """

    name: str
    clean: Drop | None  # success on solvable tasks
    shifted: Drop | None
    right: Drop | None  # right refusals of tasks to refuse
    false: Drop | None  # refusals of solvable tasks: fewer are better
    groups: dict[By, dict[str, Drop]]  # of the solvable shifted ones
    shared: int  # episodes that are compared
    unshared: int  # episodes that not all runs have, or that are an error in one
    other: int  # episodes of one key that are not the same
    changed: int  # episodes in which one passed and the other failed
    opened: tuple[tuple[Reading, Reading], ...]  # some of them
    stream: StreamPairs | None = None  # of runs of streams

    @property
    def main(self) -> Drop | None:
        """The comparison that the verdict is about: solvable tasks, shifted where there are any."""
        return self.shifted or self.clean

    @property
    def common(self) -> float:
        """The share of all episodes of the two runs that is compared."""
        return self.shared / (self.shared + self.unshared + self.other)


@dataclass(frozen=True, slots=True)
class Comparison:
    runs: dict[str, AnyRun]
    summaries: dict[str, Summary]
    versus: tuple[Contrast, ...]
    ranks: CleanAndRobust | None  # of three runs or more

    @property
    def first(self) -> str:
        return next(iter(self.runs))


def compare(runs: Sequence[AnyRun], *, opened: int = 24, partial: bool = False) -> Comparison:
    """Compare each run with the first over the episodes that all of them have.

    Runs with little in common are refused, unless the comparison may be a `partial` one, and so are runs judged by
    different verifiers.
    """
    same_ending(*runs)
    named = dict(zip(_names(runs), runs, strict=True))
    shared = _shared(runs)
    if not shared:
        counts = " and ".join(f"{run.folder} ({len(run.told):,})" for run in runs)
        raise CrosswindError(
            f"{counts} have no episode in common; runs can be compared if they have the same suite and seed"
        )
    same_judge(r for run in runs for r in run.told if r.key in shared)
    played = {name: [r for r in run.told if r.key in shared] for name, run in named.items()}
    first, *others = named
    versus = [_versus(name, named[first], named[name], shared, opened) for name in others]
    if not partial and not all(one.stream for one in versus):  # streams are paired by position
        _refuse_strangers(first, versus)
    summaries = {
        name: summary(played[name], measures=False, by=(), trivial=trivial_of(run)) for name, run in named.items()
    }
    falls = {name: found.drop for name, found in summaries.items() if found.drop}
    return Comparison(named, summaries, tuple(versus), clean_and_robust(falls) if len(falls) > 2 else None)


def _refuse_strangers(first: str, versus: Sequence[Contrast]) -> None:
    """A comparison of few of the episodes says nothing of the runs."""
    for one in versus:
        if one.common < COMMON:
            raise little_in_common(one.name, first, one.shared, one.shared + one.unshared + one.other)


def _names(runs: Sequence[AnyRun]) -> list[str]:
    """What each run is called: its agent, and its folder or a number where that does not tell it apart."""
    agents = [run.manifest.agent for run in runs]
    out: list[str] = []
    for run, agent in zip(runs, agents, strict=True):
        name = agent if agents.count(agent) == 1 else f"{agent} ({run.folder.name})"
        out.append(name if name not in out else f"{name} #{len(out) + 1}")
    return out


def _shared(runs: Sequence[AnyRun]) -> set[str]:
    """Keys of the episodes that count and are the same in all runs."""
    every = [{r.key: r.draw for r in run.told if r.judged} for run in runs]
    return {key for key, draw in every[0].items() if all(one.get(key) == draw for one in every[1:])}


def _versus(name: str, first: AnyRun, second: AnyRun, shared: Container[str], opened: int) -> Contrast:
    before = {r.key: r for r in first.told if r.key in shared}
    same = [(before[r.key], r) for r in second.told if r.key in shared]
    theirs = {r.key: r.draw for r in first.told if r.judged}
    other = sum(r.judged and r.key in theirs and theirs[r.key] != r.draw for r in second.told)
    chosen = _changed(same, opened)
    counted = {side: [(before[r.key], r) for r in of] for side, of in sides(b for _, b in same).items()}
    beyond = [(a, b) for a, b in same if not b.clean] or same
    groups: dict[By, dict[str, Drop]] = {}
    for by in GROUPS:  # what was seen in the second run says nothing of the first
        found = grouped_drops(counted["shifted"], by)
        groups[by] = {name: one.model_copy(update={"exposed": None}) for name, one in found.items()}
    keys = {r.key for r in first.told} | {r.key for r in second.told}
    return Contrast(
        name=name,
        clean=drop("clean", counted["clean"]),
        shifted=drop("shifted", counted["shifted"]),
        right=drop("right refusals", [(a, b) for a, b in beyond if b.refuse]),
        false=drop("false refusals", [(a, b) for a, b in beyond if not b.refuse], refused),
        groups=groups,
        shared=len(same),
        unshared=len(keys) - len(same) - other,
        other=other,
        changed=sum(a.passed != b.passed for a, b in same),
        opened=tuple(map(read_both, first.whole(before[r.key] for r in chosen), second.whole(chosen))),
        stream=paired(first.told, second.told),
    )


def _changed(pairs: Sequence[tuple[Told, Told]], limit: int) -> list[Told]:
    """Episodes that one passed and the other failed; those that broke first."""
    broke = select([b for a, b in pairs if a.passed and not b.passed], limit)
    fixed = select([b for a, b in pairs if b.passed and not a.passed], limit)
    broke = broke[: limit - min(limit // 3, len(fixed))]
    return [*broke, *fixed[: limit - len(broke)]]
