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
from crosswind.metrics.careers import CareerSummary, need_of, summarise_careers
from crosswind.metrics.shares import Stream, StreamShare, share

WINDOW = 10  # episodes before and after a change that are compared, at most: half of the shortest release
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
    window: int  # episodes before and after a change that are compared
    falls: int  # changes after which success fell by more than `SLACK`: the agent can recover from these alone
    recovery: float | None  # episodes until success is back, averaged over the falls after which it came back
    recovered: float | None  # share of falls after which it did before the next change; None where there is no fall
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
            if change.fell:
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
        window=min(map(window_of, streams.values()), default=WINDOW),
        falls=len(times),
        recovery=sum(back) / len(back) if back else None,
        recovered=len(back) / len(times) if times else None,
        shots={k: share for k, share in shots.items() if share.n},
        curve=tuple(_mean([s[i] for s in streams.values() if i < len(s)]) for i in range(longest)),
        releases={f"v{v}": _share((key, r) for key, r, _ in every if _version(r) == v) for v in versions},
        changes={f"v{v}": sum(at) / len(at) for v, at in sorted(firsts.items())},
        tokens=tuple(_tokens([r for _, r, _ in every if _version(r) == v]) for v in versions),
        career=summarise_careers(records),
    )


class StreamPairs(Model):
    """Two runs of the same streams, episode by episode; a difference is the second run less the first."""

    first: StreamShare
    second: StreamShare
    difference: StreamShare
    parts: dict[str, StreamShare]  # differences by what the episodes are
    curves: tuple[tuple[float, ...], tuple[float, ...]]  # success by position in the stream, over streams
    changes: dict[str, float]  # where each release but the first is met first


def paired(first: Sequence[Told], second: Sequence[Told]) -> StreamPairs | None:
    """Pair runs of streams by position, where the request is the same: two agents, or one with and without changes.

    None where no run is one of streams, or where they have nothing in common.
    """
    before, after = (
        {(key, _number(r)): r for key, rs in streams_of(run).items() for r in rs} for run in (first, second)
    )
    pairs = [(key, before[key, n], r) for (key, n), r in after.items() if (key, n) in before]
    pairs = [(key, a, b) for key, a, b in pairs if a.task_id == b.task_id]
    if not pairs:
        return None
    parts: dict[str, list[tuple[Stream, float]]] = {}
    for key, a, b in pairs:
        for part in _parts(a, b):
            parts.setdefault(part, []).append((key, float(b.passed) - float(a.passed)))
    longest = 1 + max(_number(b) for _, _, b in pairs)
    at = [[(a, b) for _, a, b in pairs if _number(b) == n] for n in range(longest)]
    changing = second if any(map(_is_later, second)) else first
    return StreamPairs(
        first=_share((key, a) for key, a, _ in pairs),
        second=_share((key, b) for key, _, b in pairs),
        difference=share((key, float(b.passed) - float(a.passed)) for key, a, b in pairs),
        parts={part: share(found) for part, found in sorted(parts.items())},
        curves=(_levels([[a for a, _ in some] for some in at]), _levels([[b for _, b in some] for some in at])),
        changes=summarise(changing).changes,
    )


def _parts(a: Told, b: Told) -> Iterator[str]:
    """What an episode is in either run: with changes or memory in the one, it is without them in the other."""
    if any(r.mark is not None and r.mark.career is not None for r in (a, b)):
        yield "needs what an earlier episode told" if need_of(a) or need_of(b) else "needs no memory"
        return
    version = max(_version(a), _version(b))
    yield f"release v{version}"
    if version > 1:
        yield "a release affects it" if _touched(a) or _touched(b) else "no release affects it"


def _is_later(record: Told) -> bool:
    return _version(record) > 1


class ReleaseChange(NamedTuple):
    """What a release cost where it was met first."""

    version: int
    number: int  # of the episode
    drop: float  # success in the window after it less that before it
    recovery: int | None  # episodes until success is back; None if that does not happen before the next change

    @property
    def fell(self) -> bool:
        """Is there something to recover from? Not where success is at its usual level at once."""
        return self.drop < -SLACK - 1e-9 and self.recovery != 0


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
    starts, window = _starts(stream), window_of(stream)
    for start, end in pairwise([*starts, len(stream)]):
        before, usual = (_mean(stream[max(0, at - window) : at]) for at in (start, starts[0]))
        drop = _mean(stream[start : min(start + window, end)]) - before
        back = _recovery(stream[start:end], usual, window)
        version = max(map(_version, stream[: start + 1]))
        yield ReleaseChange(version, _number(stream[start]), drop, back)


def _starts(stream: Sequence[Told]) -> list[int]:
    """The places at which a release is met first."""
    highest = list(accumulate(map(_version, stream), max))
    return [i for i, (a, b) in enumerate(pairwise(highest), 1) if b > a]


def window_of(stream: Sequence[Told]) -> int:
    """How many episodes are compared around a change: half of the shortest release, so that an agent can fall and
    come back within it. The last release, which the end of the stream may cut, does not count."""
    shortest = min((b - a for a, b in pairwise([0, *_starts(stream)])), default=2 * WINDOW)
    return max(1, min(WINDOW, shortest // 2))


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


def _levels(positions: Sequence[Sequence[Told]]) -> tuple[float, ...]:
    """The mean at each position; where nothing is known, that of the one before."""
    out: list[float] = []
    for records in positions:
        out.append(_mean(records) if records or not out else out[-1])
    return tuple(out)


def _recovery(after: Sequence[Told], level: float, window: int) -> int | None:
    """Episodes until a window is back at a level; None if that does not happen before the next change."""
    for k in range(max(1, len(after) - window + 1)):
        if _mean(after[k : k + window]) >= level - SLACK:
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
