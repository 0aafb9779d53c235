"""What a report on a run says, as data: the summary, the verdict in words, a scale, and the episodes to open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from crosswind.metrics import Summary, summary
from crosswind.report import formats
from crosswind.runs.analysis import Analysis
from crosswind.runs.baselines import Baselines
from crosswind.runs.reading import Reading
from crosswind.runs.store import StoredRun

LITTLE = 0.05  # a clean score below which there is nothing to lose


@dataclass(frozen=True, slots=True)
class Scale:
    """The run's agent and the baselines on the same episodes."""

    summaries: dict[str, Summary]  # by name of the agent, the run's first
    pairs: int
    of: int  # pairs that the run has


@dataclass(frozen=True, slots=True)
class Content:
    run: StoredRun
    summary: Summary
    verdict: str
    scale: Scale | None  # None where there are no baselines
    readings: tuple[Reading, ...]  # episodes to open
    unplayed: tuple[str, ...] = ()  # why there are no baselines, for each domain that has none

    def as_json(self) -> dict[str, Any]:
        """Everything but the episodes."""
        manifest = self.run.manifest
        return {
            "verdict": self.verdict,
            "agent": manifest.agent,
            "suite": manifest.name,
            "seed": manifest.seed,
            "problems": self.run.problems,
            "summary": self.summary.model_dump(mode="json"),
            "baselines": {name: _short(s) for name, s in self.scale.summaries.items()} if self.scale else {},
            "without_baselines": self.unplayed,
        }


def _short(found: Summary) -> dict[str, Any]:
    drop = found.drop.model_dump(mode="json") if found.drop else None
    return {"clean": found.clean.model_dump(), "shifted": found.shifted.model_dump(), "drop": drop}


def content(found: Analysis) -> Content:
    """What the report on a run says."""
    agent, beside = found.run.manifest.agent, found.baselines
    return Content(
        run=found.run,
        summary=found.summary,
        verdict=verdict(found.summary, agent),
        scale=scale(beside, found.summary, agent) if beside.sample else None,
        readings=found.readings,
        unplayed=beside.unplayed,
    )


def scale(beside: Baselines, found: Summary, agent: str) -> Scale:
    """The figures of a run and of its baselines over the same episodes."""
    ours = summary(beside.sample, measures=False, by=())
    others = {name: summary(some, measures=False, by=()) for name, some in beside.played.items() if name != agent}
    return Scale({agent: ours, **others}, ours.drop.pairs if ours.drop else 0, found.drop.pairs if found.drop else 0)


# ---------------------------------------------------------------- in words


def verdict(found: Summary, agent: str) -> str:
    """What the run shows, in one sentence."""
    drop = found.drop
    if not found.overall.n:
        return f"{agent} has no finished episode that counts, so there is nothing to say yet."
    if drop is None:
        passed = f"{found.overall.passed} of {formats.many(found.overall.n, 'episode')}"
        return f"{agent} passed {passed}; no task was played both clean and shifted, so nothing is known of a fall."
    if drop.clean <= LITTLE:
        return (
            f"{agent} solves next to nothing even in the clean world ({found.clean.passed} of "
            f"{formats.many(found.clean.n, 'clean episode')}), so there is nothing to lose and no fall to measure yet."
        )
    start = f"{agent} solves {formats.percent(drop.clean)} of its tasks in the clean world"
    if not formats.clear(drop):
        gap = (
            f"a difference of {formats.points(drop.delta)} points that may be chance" if drop.delta else "no difference"
        )
        return (
            f"{start} and {formats.percent(drop.shifted)} of the same tasks in the open world, {gap} "
            f"({formats.SURE} {formats.span(drop.low, drop.high)}, {formats.pairs(drop)}){_could(found)}."
        )
    size = f"{100 * abs(drop.delta):.0f} points"
    low, high = sorted((100 * abs(drop.low), 100 * abs(drop.high)))
    bounds = f"{formats.SURE} {low:.0f} to {high:.0f}"
    if drop.delta > 0:
        return f"{start} and {formats.percent(drop.shifted)} in the open world, a rise of {size} ({bounds})."
    return (
        f"{start} but {formats.percent(drop.shifted)} of the same tasks in the open world, a fall of {size} "
        f"({bounds}){_where(found)}."
    )


def _could(found: Summary) -> str:
    if found.detectable is None:
        return "; so few tasks cannot tell"
    return f"; so many tasks show one of {100 * found.detectable:.0f} points four times in five"


def _where(found: Summary) -> str:
    tiers = [d for d in found.drops.get("tier", {}).values() if formats.clear(d) and d.delta < 0]
    worst = min(tiers, key=lambda d: d.delta, default=None)
    out = f"; it falls furthest in {worst.name} ({formats.points(worst.delta)})" if worst and len(tiers) > 1 else ""
    named = {cause: n for cause, n in found.causes.items() if cause and cause != "undetermined"}
    if named:
        cause = max(named, key=lambda c: named[c])
        out += f"{', and' if out else ';'} fails most often by {cause}"
    return out
