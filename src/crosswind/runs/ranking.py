"""Many runs of one suite in one table, the best first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from crosswind.base.errors import CrosswindError
from crosswind.metrics.scores import Summary, summary
from crosswind.runs.baselines import play_baselines
from crosswind.runs.manifest import Manifest
from crosswind.runs.reading import draw_again
from crosswind.runs.store import open_run

SAME = {"suite": "suite", "conditions": "kinds installed", "judge": "version of the verifier", "ending": "ending"}


@dataclass(frozen=True, slots=True)
class LeaderboardRow:
    """One run in a leaderboard, or one scripted agent that is there for reference."""

    name: str
    summary: Summary
    folder: str = ""  # empty for a scripted agent
    seed: int | None = None
    problems: tuple[str, ...] = ()
    damage: str = ""  # the one about damaged lines

    @property
    def reference(self) -> bool:
        return not self.folder


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """Runs of one suite with the same rules, best first, and scripted agents for reference."""

    suite: str
    entries: tuple[LeaderboardRow, ...]
    notes: tuple[str, ...] = ()

    @property
    def runs(self) -> list[LeaderboardRow]:
        return [one for one in self.entries if not one.reference]


def leaderboard(folders: Sequence[Path]) -> Leaderboard:
    """Read the runs one after the other and rank them by success on shifted episodes.

    Runs of different suites, kinds, verifiers or endings are refused: their figures do not compare.
    """
    entries: list[LeaderboardRow] = []
    heads: list[tuple[Path, Manifest]] = []
    reference: tuple[int, list[LeaderboardRow]] = (0, [])
    for folder in folders:
        if any(folder.resolve() == other.resolve() for other, _ in heads):
            raise CrosswindError(f"{folder} is given twice; name each run once")
        run = open_run(folder, damaged=True)
        for other, manifest in heads[:1]:
            _refuse_strangers(other, manifest, folder, run.manifest)
        heads.append((folder, run.manifest))
        played = play_baselines(run, None, lambda record: draw_again(record)[0])
        found = summary(run.told, measures=False, by=("tier",), trivial=played.trivial)
        problems = tuple(run.problems)
        entries.append(LeaderboardRow(run.manifest.agent, found, str(folder), run.manifest.seed, problems, run.damage))
        if len(played.sample) > reference[0]:
            scripted = {
                name: summary(some, measures=False, by=("tier",), trivial=played.trivial)
                for name, some in played.played.items()
            }
            reference = len(played.sample), [LeaderboardRow(name, one) for name, one in scripted.items()]
    named = [replace(one, name=name) for name, one in zip(_names(entries), entries, strict=True)]
    ranked = sorted([*named, *reference[1]], key=_rank)
    return Leaderboard(heads[0][1].name, tuple(ranked), tuple(_notes(heads, entries, reference[0])))


def _rank(one: LeaderboardRow) -> tuple[float, float, str]:
    cell = one.summary.shifted if one.summary.shifted.n else one.summary.clean
    return -(cell.rate or 0.0), -(one.summary.score.value if one.summary.score else 0.0), one.name


def _names(entries: Sequence[LeaderboardRow]) -> list[str]:
    """Agents, and their folders where that does not tell them apart."""
    agents = [one.name for one in entries]
    return [one.name if agents.count(one.name) == 1 else f"{one.name} ({Path(one.folder).name})" for one in entries]


def _refuse_strangers(first: Path, one: Manifest, second: Path, other: Manifest) -> None:
    for field, what in SAME.items():
        if getattr(one, field) != getattr(other, field):
            sides = f"{_value(one, field)} and {_value(other, field)}"
            told = f": {sides}" if len(sides) < 200 and _value(one, field) != _value(other, field) else ""
            raise CrosswindError(
                f"{first} and {second} differ in their {what}{told}, so their figures cannot be ranked. Give runs of "
                f"one suite with one verifier{_remedy(field, second)}"
            )


def _value(manifest: Manifest, field: str) -> str:
    return manifest.name if field == "suite" else str(getattr(manifest, field))


def _remedy(field: str, folder: Path) -> str:
    return f", or judge the older one again: crosswind rescore {folder} --write" if field == "judge" else ""


def _notes(heads: Sequence[tuple[Path, Manifest]], entries: Iterable[LeaderboardRow], sample: int) -> Iterable[str]:
    seeds = sorted({manifest.seed for _, manifest in heads})
    if len(seeds) > 1:
        yield f"seeds differ ({', '.join(map(str, seeds))}): these runs have different tasks, so use the intervals"
    versions = sorted({manifest.crosswind for _, manifest in heads})
    if len(versions) > 1:
        yield f"played with different versions of crosswind ({', '.join(versions)})"
    if sample:
        yield f"scripted agents, for reference, played a sample of {sample:,} episodes of one run"
    for one in entries:
        yield from (f"{one.folder}: {problem}" for problem in one.problems)
