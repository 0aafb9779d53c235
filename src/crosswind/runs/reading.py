"""Stored episodes beside their gold, which is walked once for each: what measures, diagnoses and pages are made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from crosswind.base.errors import CrosswindError
from crosswind.core.draw import Drawn
from crosswind.core.registry import domains
from crosswind.episodes.play import step_data
from crosswind.episodes.record import Mistake, Record, redrawn
from crosswind.metrics.diagnosis import Diagnosis, diagnose
from crosswind.metrics.measures import Gold, Measures, measure

Hosting = Literal["", "started", "shared"]


def hosting_of(domain: str) -> Hosting:
    """Where the worlds of a domain live: here, on a server started for each, or on one that all share."""
    return domains[domain].hosted if domain in domains and domains.origin(domain) else ""


def is_walkable(domain: str) -> bool:
    """May the certified ways of a domain be walked again?"""
    return domain in domains and hosting_of(domain) != "shared"


def unplayable(names: Iterable[str], asked: bool) -> dict[str, str]:
    """The domains in which scripted agents are not played, and why."""
    out = {}
    for name in names:
        hosting = hosting_of(name)
        if name not in domains:
            out[name] = (
                f"No scripted agents are played in {name}, and no certified solution is shown: the domain is not "
                "loaded "
                "here. crosswind --plugin FILE report DIR loads it."
            )
        elif hosting == "shared":
            out[name] = (
                f"No scripted agents are played in {name}, asked for or not: its server runs on behind a url and "
                "nothing resets it, so what they write would stay."
            )
        elif hosting and not asked:
            out[name] = (
                f"No scripted agents are played in {name}: each of their episodes would start its server again. "
                "--baselines N plays them on N shifted episodes."
            )
    return out


# ---------------------------------------------------------------- readings

PROXIED = "mcp"  # the domain of what a proxy recorded
SHARED = (
    "The certified solution is not replayed: the server runs on behind a url and nothing resets it, so the calls of "
    "the "
    "gold would reach it once more."
)


@dataclass(frozen=True, slots=True)
class Reading:
    """A stored episode beside its certified way."""

    record: Record
    gold: tuple[dict[str, Any], ...] = ()  # the steps of the certified way, in the form of `record.steps`
    gold_final: str = ""
    proof: str = ""  # how the certificate shows that the task is fair, or that refusing is right
    diagnosis: Diagnosis | None = None  # of a failed episode
    missing: str = ""  # why there is no certified way to compare with

    @property
    def final_diverges(self) -> bool:
        """Every step was fine, and the last words were not."""
        return self.diagnosis is not None and (self.diagnosis.step or 0) > len(self.record.steps)

    @property
    def at_start(self) -> tuple[str, ...]:
        """Kinds that were met before the first call: in the request, or in the tools shown."""
        return tuple(r.kind for r in self.record.receipts if r.fired and r.step == 0)


def draw_again(record: Record) -> tuple[Drawn | None, str]:
    """A stored episode with its certificate, or why it cannot be certified again."""
    if record.domain not in domains and record.domain == PROXIED:
        return (
            None,
            "There is no certified solution to compare with: a proxy recorded the session of a client's own task.",
        )
    try:
        if hosting_of(record.domain) == "shared":
            return None, SHARED
        return redrawn(record), ""
    except CrosswindError as error:
        return None, f"The certified solution cannot be regenerated here: {error}"


def read(record: Record) -> Reading:
    """Read a stored episode beside its certified way."""
    return beside(record, *draw_again(record))


def read_both(one: Record, other: Record) -> tuple[Reading, Reading]:
    """Read the same episode of two runs beside its one certified way."""
    drawn, missing = draw_again(one)
    return beside(one, drawn, missing), beside(other, drawn, missing)


def beside(record: Record, drawn: Drawn | None, missing: str = "") -> Reading:
    """An episode beside its certificate, where there is one."""
    if drawn is None:
        return Reading(record, missing=missing)
    certificate = drawn.certificate
    return Reading(
        record,
        gold=tuple(step_data(step) for step in certificate.gold.steps),
        gold_final=certificate.gold.final,
        proof=certificate.proof,
        diagnosis=diagnose(record, certificate) if record.outcome == "fail" else None,
    )


class Reader:
    """Reads the episodes of one run. Nothing but the results is kept: a walk holds a whole world."""

    def __init__(self, opened: Iterable[str], explained: Iterable[str], measured: Iterable[str]) -> None:
        self.opened, self.explained, self.measured = frozenset(opened), frozenset(explained), frozenset(measured)
        self.mistakes: dict[str, Mistake] = {}
        self.measures: dict[str, Measures] = {}
        self.readings: dict[str, Reading] = {}

    def read_and_redraw(self, record: Record) -> Drawn | None:
        """Keep what the report shows of an episode, and draw it again; None where it can no longer be certified."""
        drawn, missing = draw_again(record)
        if record.key in self.opened or record.key in self.explained:
            found = beside(record, drawn, missing)
            if record.key in self.opened:
                self.readings[record.key] = found
            if record.key in self.explained and found.diagnosis:
                self.mistakes[record.key] = found.diagnosis.mistake
        if drawn is not None:
            self._measure(record, Gold(drawn.certificate.task, drawn.certificate.gold))
        return drawn

    def read(self, record: Record) -> None:
        """Read an episode, unless that has been done."""
        shown = record.key not in self.opened or record.key in self.readings
        if not shown or (record.key in self.explained and record.key not in self.mistakes):
            self.read_and_redraw(record)
        self._measure(record)

    def _measure(self, record: Record, known: Gold | None = None) -> None:
        if record.key in self.measured and record.judged and record.key not in self.measures:
            self.measures[record.key] = measure(record, known)
