"""What a report on a run says, as data: the summary, the verdict in words, a scale, and the
episodes to open, as `runs/analysis.py` chose them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from crosswind.episodes.record import Mistake
from crosswind.metrics import Summary, summary
from crosswind.metrics.interactions import Interaction, interactions
from crosswind.metrics.scores import pairs
from crosswind.metrics.streams import StreamSummary
from crosswind.report import streams
from crosswind.report.advice import Advice, advice
from crosswind.report.verdict import details, verdict
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
