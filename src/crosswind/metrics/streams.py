"""What streams add up to: success over time, what each change costs, and how soon an agent recovers.

Regret counts failures: on the same episodes the oracle passes all. Intervals resample whole streams, because the
episodes of one stream depend on each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from crosswind.core.types import Model
from crosswind.episodes.brief import Told
from crosswind.metrics.careers import CareerSummary, summarise_careers
from crosswind.metrics.shares import Stream, StreamShare, share

WINDOW = 10  # episodes before and after a change that are compared
SLACK = 0.1  # an agent has recovered when it is back at its level before the first change, less this
SHOTS = (0, 1, 2, 5, 10, 20)  # episodes under a release before the one that counts; each stands for up to the next


class StreamSummary(Model):
    """The figures of the streams of a run."""

    streams: int
    episodes: int
    success: StreamShare
    regret: float  # failures of a stream, on average
    stability: StreamShare  # after the first change, where the way is as on the canonical interface
    adaptation: StreamShare  # where it is not
    drop: float | None  # success in the window after a change less that before it, averaged over changes
    recovery: float | None  # episodes until success is back, averaged over the changes after which it came back
    recovered: float | None  # share of changes after which it did before the next one
    shots: dict[str, StreamShare]  # success by the number of episodes met under the release
    curve: tuple[float, ...]  # success by position in the stream, over streams
    releases: dict[str, StreamShare]  # success by release
    changes: dict[str, float]  # where each release but the first is met first, averaged over streams
    tokens: tuple[float | None, ...]  # per episode, for each release in order
    career: CareerSummary | None = None


def summarise(records: Sequence[Told]) -> StreamSummary:
    """The figures of a run of streams; errors of the infrastructure count nowhere."""
    streams = streams_of(records)
    drops, times, firsts = list[float](), list[int | None](), dict[int, list[int]]()
    for stream in streams.values():
        for change in changes_of(stream):
            firsts.setdefault(change.version, []).append(change.number)
            drops.append(change.drop)
            times.append(change.recovery)
    back = [time for time in times if time is not None]
    every = [(key, *one) for key, stream in streams.items() for one in _counted(stream)]
    versions = sorted({_version(record) for _, record, _ in every})
    shots = {
        str(k): _share((key, r) for key, r, met in every if _version(r) > 1 and k <= met < more)
        for k, more in pairwise([*SHOTS, 10**9])
    }
    longest = max(map(len, streams.values()), default=0)
    return StreamSummary(
        streams=len(streams),
        episodes=len(every),
        success=_share((key, r) for key, r, _ in every),
        regret=sum(not r.passed for _, r, _ in every) / max(1, len(streams)),
        stability=_share((key, r) for key, r, _ in every if stable(r)),
        adaptation=_share((key, r) for key, r, _ in every if _touched(r)),
        drop=sum(drops) / len(drops) if drops else None,
        recovery=sum(back) / len(back) if back else None,
        recovered=len(back) / len(times) if times else None,
        shots={k: share for k, share in shots.items() if share.n},
        curve=tuple(_mean([s[i] for s in streams.values() if i < len(s)]) for i in range(longest)),
        releases={f"v{v}": _share((key, r) for key, r, _ in every if _version(r) == v) for v in versions},
        changes={f"v{v}": sum(at) / len(at) for v, at in sorted(firsts.items())},
        tokens=tuple(_tokens([r for _, r, _ in every if _version(r) == v]) for v in versions),
        career=summarise_careers(records),
    )


class ReleaseChange(NamedTuple):
    """What a release cost where it was met first."""

    version: int
    number: int  # of the episode
    drop: float  # success in the window after it less that before it
    recovery: int | None  # episodes until success is back; None if that does not happen before the next change


def streams_of(records: Iterable[Told]) -> dict[Stream, list[Told]]:
    """The judged episodes of each stream, in order."""
    streams: dict[Stream, list[Told]] = {}
    for record in records:
        if record.mark is not None and record.judged:
            streams.setdefault((record.domain, record.trial), []).append(record)
    for stream in streams.values():
        stream.sort(key=_number)
    return streams


def changes_of(stream: Sequence[Told]) -> Iterator[ReleaseChange]:
    """The changes of one stream, in order."""
    highest = list(accumulate(map(_version, stream), max))
    starts = [i for i, (a, b) in enumerate(pairwise(highest), 1) if b > a]
    for start, end in pairwise([*starts, len(stream)]):
        before, usual = (_mean(stream[max(0, at - WINDOW) : at]) for at in (start, starts[0]))
        drop = _mean(stream[start : min(start + WINDOW, end)]) - before
        yield ReleaseChange(highest[start], _number(stream[start]), drop, _recovery(stream[start:end], usual))


def stable(record: Told) -> bool:
    """Did an episode come after the first change, and go the way of the canonical interface?"""
    return _version(record) > 1 and not _touched(record)


def _touched(record: Told) -> bool:
    return record.mark is not None and record.mark.touched


def _number(record: Told) -> int:
    return record.mark.number if record.mark else 0


def _version(record: Told) -> int:
    return record.mark.version if record.mark else 1


def _mean(records: Sequence[Told]) -> float:
    return sum(record.passed for record in records) / len(records) if records else 0.0


def _recovery(after: Sequence[Told], level: float) -> int | None:
    """Episodes until a window is back at a level; None if that does not happen before the next change."""
    for k in range(max(1, len(after) - WINDOW + 1)):
        if _mean(after[k : k + WINDOW]) >= level - SLACK:
            return k
    return None


def _counted(stream: Sequence[Told]) -> Iterator[tuple[Told, int]]:
    """Each episode, and how many before it met the same release."""
    met: Counter[int] = Counter()
    for record in stream:
        yield record, met[_version(record)]
        met[_version(record)] += 1


def _tokens(records: Sequence[Told]) -> float | None:
    known = [tokens for r in records if (tokens := r.usage.tokens) is not None]
    return sum(known) / len(known) if known else None


def _share(episodes: Iterable[tuple[Stream, Told]]) -> StreamShare:
    return share((stream, float(record.passed)) for stream, record in episodes)
