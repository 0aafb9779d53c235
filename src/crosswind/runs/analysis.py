"""Everything that a report on a run needs, computed once: figures, baselines, and episodes with their gold.

Baselines that are not stored with the run yet are played now (`baselines.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crosswind.episodes.record import Record
from crosswind.metrics.measures import Measures
from crosswind.metrics.scores import Summary, summary
from crosswind.metrics.streams import StreamSummary, summarise
from crosswind.runs.baselines import Baselines, play_baselines
from crosswind.runs.reading import Reader, Reading, is_walkable
from crosswind.runs.store import StoredRun

OPENED = 48  # episodes to open


@dataclass(frozen=True, slots=True)
class Analysis:
    """A run and what was computed from it."""

    run: StoredRun
    summary: Summary
    measures: Mapping[str, Measures]  # by key; none where a domain cannot be walked again
    readings: tuple[Reading, ...]  # the episodes to open
    baselines: Baselines
    stream: StreamSummary | None  # of a run of streams


def analyse(run: StoredRun, *, baselines: int | None = None, opened: int = OPENED) -> Analysis:
    """Work out what a run shows. Gold is walked once for each episode.

    `baselines` is the number of shifted episodes on which scripted agents are played, 150 unless given. Where a server
    is shared by all, or a domain is not loaded, nothing is played or walked, and the figures of `study` are left out.
    """
    measured = all(is_walkable(name) for name in {record.domain for record in run.records})
    chosen = select(run.records, opened)
    reader = Reader((record.key for record in chosen), measured=measured)
    played = play_baselines(run, baselines, reader.read_and_redraw)
    for record in run.records:
        reader.read(record)
    return Analysis(
        run=run,
        summary=summary(run.records, measures=reader.measures if measured else False, trivial=played.trivial),
        measures=reader.measures,
        readings=tuple(reader.readings[record.key] for record in chosen),
        baselines=played,
        stream=summarise(run.records) if any(record.mark and record.judged for record in run.records) else None,
    )


def select(records: Sequence[Record], limit: int) -> list[Record]:
    """Episodes worth opening: failures first, one for each cause and kind before a second of any, then others.

    Among failures those come first whose clean episode passed. A fifth of `limit`, and what the failures leave, goes
    to errors and to episodes that passed.
    """
    clean = {r.pair: r.passed for r in records if r.clean}
    failures = sorted((r for r in records if r.outcome == "fail"), key=lambda r: (r.clean, not clean.get(r.pair)))
    errors = _spread([r for r in records if r.outcome == "error"])
    passed = sorted((r for r in records if r.passed), key=lambda r: r.clean)
    others = [*errors[: max(1, limit // 10)], *_spread(passed)]
    taken = _spread(failures)[: limit - min(limit // 5, len(others))]
    return [*taken, *others[: limit - len(taken)]]


def _spread(records: Sequence[Record]) -> list[Record]:
    """The same, the first of each cause and condition before the second of any."""
    nth: dict[tuple[str | None, str], int] = {}
    placed: list[tuple[int, int]] = []
    for i, record in enumerate(records):
        at = (record.cause, record.condition.partition("@")[0])
        nth[at] = nth.get(at, 0) + 1
        placed.append((nth[at], i))
    return [records[i] for _, i in sorted(placed)]
