"""What a report on a run says, as data: the summary, the verdict in words, a scale, and the episodes to open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from crosswind.episodes.record import Mistake
from crosswind.metrics import Summary, formats, summary
from crosswind.metrics.interactions import Interaction, interactions
from crosswind.metrics.scores import pairs
from crosswind.metrics.streams import StreamSummary
from crosswind.report import streams
from crosswind.report.advice import Advice, advice
from crosswind.runs.analysis import Analysis
from crosswind.runs.baselines import Baselines
from crosswind.runs.reading import Reading
from crosswind.runs.store import AnyRun


@dataclass(frozen=True, slots=True)
class Scale:
    """The run's agent over its own episodes, and the baselines over those that they played."""

    summaries: dict[str, Summary]  # by name of the agent, the run's first
    pairs: int  # that the baselines played
    of: int  # pairs that the run has

    @property
    def sample(self) -> str:
        """What the baselines' figures are over, where that is not the whole run."""
        if self.pairs >= self.of:
            return ""
        return f"this run over all of its {self.of} pairs, the others over a sample of {self.pairs} of them"


@dataclass(frozen=True, slots=True)
class Content:
    run: AnyRun
    summary: Summary
    verdict: str
    details: str  # what it rests on
    scale: Scale | None  # None where there are no baselines
    readings: tuple[Reading, ...]  # episodes to open
    advice: tuple[Advice, ...] = ()  # what to do next
    mistakes: Mapping[str, Mistake] = field(default_factory=dict)  # what failures went wrong with, by key
    measured: int = 0  # episodes whose certified way was walked again for the measures
    stream: StreamSummary | None = None  # of a run of streams
    interactions: tuple[Interaction, ...] = ()  # of kinds that were played alone and together
    unplayed: tuple[str, ...] = ()  # why there are no baselines, for each domain that has none

    def as_json(self) -> dict[str, Any]:
        """Everything but the episodes."""
        manifest = self.run.manifest
        return {
            "verdict": self.verdict,
            "details": self.details,
            "agent": manifest.agent,
            "suite": manifest.name,
            "seed": manifest.seed,
            "problems": self.run.problems,
            "advice": [
                {"do": one.what, "why": one.why, "failures": one.failures, "of": one.of, "command": one.command}
                | {"named": [{"field": what, "name": name, "failures": n} for what, name, n in one.named]}
                for one in self.advice
            ],
            "summary": self.summary.model_dump(mode="json"),
            "stream": self.stream.model_dump(mode="json") if self.stream else None,
            "interactions": [one.model_dump(mode="json") for one in self.interactions],
            "baselines": {name: _short(s) for name, s in self.scale.summaries.items()} if self.scale else {},
            "without_baselines": self.unplayed,
        }


def _short(found: Summary) -> dict[str, Any]:
    return found.model_dump(mode="json", include={"clean", "shifted", "drop", "refusals", "score"})


def content(found: Analysis) -> Content:
    """What the report on a run says."""
    agent, beside = found.run.manifest.agent, found.baselines
    return Content(
        run=found.run,
        summary=found.summary,
        verdict=streams.sentence(found.stream, agent) if found.stream else verdict(found.summary, agent),
        details="" if found.stream else details(found.summary),
        scale=scale(beside, found.summary, agent) if beside.sample else None,
        readings=found.readings,
        advice=tuple(advice(found.run, found.summary, found.mistakes)),
        mistakes=found.mistakes,
        measured=len(found.measures),
        stream=found.stream,
        interactions=tuple(interactions(found.run.told)),
        unplayed=beside.unplayed,
    )


def scale(beside: Baselines, found: Summary, agent: str) -> Scale:
    """The figures of a run, as everywhere in its report, and of its baselines."""
    every = {name: some for name, some in beside.played.items() if name != agent}
    played = {name: summary(some, measures=False, by=(), trivial=beside.trivial) for name, some in every.items()}
    return Scale({agent: found, **played}, len(pairs(beside.sample)), found.drop.pairs if found.drop else 0)


# ---------------------------------------------------------------- in words


def verdict(found: Summary, agent: str) -> str:
    """Summarise the run in three sentences at most: success on solvable tasks, where most is lost, and refusals."""
    return " ".join(filter(None, (headline(found, agent), refusals(found))))


def headline(found: Summary, agent: str, *, brief: bool = False) -> str:
    """Success on solvable tasks: what changed, where most, and why; a brief one says only how far."""
    if not found.episodes:
        return f"{agent} has no finished episode that counts, so there is no result yet."
    clean, shifted = found.trivial.get("clean"), found.trivial.get("shifted")
    if clean and not clean.better:
        return f"{agent} is {formats.TRIVIAL}: no change can be measured."
    if found.drop is None:
        solved = " and ".join(
            f"{formats.percent(cell.rate)} of {formats.many(cell.n, f'solvable {side} episode')}"
            for side, cell in (("clean", found.clean), ("shifted", found.shifted))
            if cell.n
        )
        did = f"solves {solved}" if solved else "played no solvable task"
        return f"{agent} {did}; no solvable task was played both clean and shifted, so no change can be measured."
    change = found.drop
    out = (
        f"{agent} solves {formats.percent(change.clean)} of the solvable tasks in the clean world and "
        f"{formats.percent(change.shifted)} of them in the open world: {formats.brief(change)}."
    )
    if shifted and not shifted.better:
        return f"{out} In the open world it is {formats.TRIVIAL}."
    return out if brief else f"{out}{_where(found)}"


def refusals(found: Summary) -> str:
    """Right, wrong and false refusals, in one sentence; empty if no task should be refused."""
    shares = found.refusals["shifted"]
    if not found.episodes or not shares.right.n:
        return ""
    every = formats.many(shares.right.n, "episode")
    told = f"refuses {formats.percent(shares.right.rate)} of the {every} that should be refused"
    if shares.wrong.passed:
        told = formats.refused(shares)
    return f"It {told}, and {formats.percent(shares.false.rate)} of the solvable ones."


def details(found: Summary) -> str:
    """What the verdict rests on: whether the change is sure, by which figures it is no better, and what is refused."""
    out = []
    clean = found.trivial.get("clean")
    if clean and not clean.better:
        out.append(formats.no_better(clean))
    elif found.drop:
        out.append(formats.certainty(found.drop))
        if (shifted := found.trivial.get("shifted")) and not shifted.better:
            out.append(formats.no_better(shifted))
    shares = found.refusals["shifted"]
    if found.episodes and shares.right.n:
        out.append(f"An agent that always refuses with the right reason would have 100{formats.PERCENT} in both.")
        if shares.wrong.passed:
            out.append(formats.RIGHTLY)
    return " ".join(out)


def _where(found: Summary) -> str:
    tiers = [d for d in found.drops.get("tier", {}).values() if d.clear and d.delta < 0]
    worst = min(tiers, key=lambda d: d.delta, default=None)
    out = (
        f" The largest fall is in {worst.name} ({formats.points(worst.delta)} points)"
        if worst and len(tiers) > 1
        else ""
    )
    named = {cause: n for cause, n in found.causes.items() if cause and cause != "undetermined"}
    if named:
        cause = max(named, key=lambda c: named[c])
        out += f"{'; the' if out else ' The'} most frequent cause of failure is {cause}"
    return out and f"{out}."
