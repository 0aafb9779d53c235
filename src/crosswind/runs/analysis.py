"""Everything that a report on a run needs, computed once: figures, baselines, and episodes with their gold.

Baselines that are not stored with the run yet are played now (`baselines.py`). Of a run of any size all episodes count
towards every figure but two sorts, which need the certified way of an episode and so take the time of playing it: the
measures, over `MEASURED` episodes spread evenly, and what failures went wrong with where the run did not store it, for
`EXPLAINED` of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crosswind.episodes.brief import Told
from crosswind.episodes.record import Mistake
from crosswind.metrics.groups import Some
from crosswind.metrics.measures import Measures
from crosswind.metrics.scores import Summary, summary
from crosswind.metrics.streams import StreamSummary, summarise
from crosswind.runs.baselines import Baselines, play_baselines
from crosswind.runs.reading import Reader, Reading, is_walkable
from crosswind.runs.store import AnyRun

OPENED = 48  # episodes to open
MEASURED = 1_500  # episodes whose certified way is walked again
EXPLAINED = 300  # failures that are diagnosed again, if the run has not stored what they went wrong with


@dataclass(frozen=True, slots=True)
class Analysis:
    """A run and what was computed from it."""

    run: AnyRun
    summary: Summary
    measures: Mapping[str, Measures]  # by key; none where a domain cannot be walked again
    mistakes: Mapping[str, Mistake]  # what failures went wrong with, by key, as far as that is known
    readings: tuple[Reading, ...]  # the episodes to open
    baselines: Baselines
    stream: StreamSummary | None  # of a run of streams


def analyse(run: AnyRun, *, baselines: int | None = None, opened: int = OPENED) -> Analysis:
    """Work out what a run shows. Gold is walked at most once for each episode.

    `baselines` is the number of shifted episodes on which scripted agents are played, 150 unless given. Where a server
    is shared by all, or a domain is not loaded, nothing is played or walked, and the figures of `study` are left out.
    """
    measured = all(is_walkable(name) for name in {one.domain for one in run.told})
    chosen = select(run.told, opened)
    failed = [one for one in run.told if one.outcome == "fail"]
    unknown = evenly([one for one in failed if one.mistake is None and one.cause], EXPLAINED) if measured else []
    sampled = evenly([one for one in run.told if one.judged], MEASURED) if measured else []
    reader = Reader(*({one.key for one in some} for some in (chosen, unknown, sampled)))
    played = play_baselines(run, baselines, reader.read_and_redraw)
    wanted = reader.opened | reader.explained | reader.measured
    for record in run.each(one for one in run.told if one.key in wanted):
        reader.read(record)
    return Analysis(
        run=run,
        summary=summary(run.told, measures=reader.measures if measured else False, trivial=played.trivial),
        measures=reader.measures,
        mistakes={**{one.key: one.mistake for one in failed if one.mistake is not None}, **reader.mistakes},
        readings=tuple(reader.readings[one.key] for one in chosen),
        baselines=played,
        stream=summarise(run.told) if any(one.mark and one.judged for one in run.told) else None,
    )


def evenly(records: Sequence[Some], limit: int) -> list[Some]:
    """At most `limit` of them, evenly over the whole."""
    if len(records) <= limit:
        return list(records)
    return [records[i * len(records) // limit] for i in range(limit)]


def select(records: Sequence[Told], limit: int) -> list[Told]:
    """Episodes worth opening: failures first, one for each cause and kind before a second of any, then others.

    Among failures those come first whose clean episode passed. A fifth of `limit`, and what the failures leave, goes
    to errors and to episodes that passed.
    """
    clean = {r.pair: r.passed for r in records if r.clean}
    failures = sorted((r for r in records if r.outcome == "fail"), key=lambda r: (r.clean, not clean.get(r.pair)))
    errors = _varied([r for r in records if r.outcome == "error"])
    passed = sorted((r for r in records if r.passed), key=lambda r: r.clean)
    others = [*errors[: max(1, limit // 10)], *_varied(passed)]
    taken = _varied(failures)[: limit - min(limit // 5, len(others))]
    return [*taken, *others[: limit - len(taken)]]


def _varied(records: Sequence[Told]) -> list[Told]:
    """The same records, reordered: the first of each cause and condition before the second of any."""
    nth: dict[tuple[str | None, str], int] = {}
    placed: list[tuple[int, int]] = []
    for i, record in enumerate(records):
        at = (record.cause, record.condition.partition("@")[0])
        nth[at] = nth.get(at, 0) + 1
        placed.append((nth[at], i))
    return [records[i] for _, i in sorted(placed)]
