"""What streams add up to: success over time, what each change costs, and how soon an agent recovers.

Regret counts failures: on the same episodes the oracle passes all. Intervals resample whole streams, because the
episodes of one stream depend on each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from crosswind.core.types import Model
from crosswind.episodes.record import Record
from crosswind.metrics.stats import Interval, resampled, sums_by

WINDOW = 10  # episodes before and after a change that are compared
SLACK = 0.1  # an agent has recovered when it is back at its level before the first change, less this
SHOTS = (0, 1, 2, 5, 10, 20)  # episodes under a release before the one that counts; each stands for up to the next


class StreamShare(Model):
    """A share of episodes that passed, with its interval over streams; None where there are no such episodes."""

    n: int
    value: float | None
    low: float | None = None
    high: float | None = None


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
    tokens: tuple[float, ...]  # per episode, for each release in order


def summarise(records: Sequence[Record]) -> StreamSummary:
    """The figures of a run of streams; errors of the infrastructure count nowhere."""
    streams: dict[tuple[str, int], list[Record]] = {}
    for record in records:
        if record.mark is not None and record.judged:
            streams.setdefault((record.domain, record.trial), []).append(record)
    drops, times = list[float](), list[int | None]()
    for stream in streams.values():
        stream.sort(key=lambda record: _number(record))
        starts = [i for i, (a, b) in enumerate(pairwise(stream), 1) if _version(b) > max(map(_version, stream[:i]))]
        for start, end in pairwise([*starts, len(stream)]):
            before, usual = (_mean(stream[max(0, at - WINDOW) : at]) for at in (start, starts[0]))
            drops.append(_mean(stream[start : min(start + WINDOW, end)]) - before)
            times.append(_recovery(stream[start:end], usual))
    back = [time for time in times if time is not None]
    shots = {str(k): _share(streams, _after(k, more)) for k, more in pairwise([*SHOTS, 10**9])}
    longest = max(map(len, streams.values()), default=0)
    every = [record for stream in streams.values() for record in stream]
    return StreamSummary(
        streams=len(streams),
        episodes=len(every),
        success=_share(streams, lambda stream, i: True),
        regret=sum(not record.passed for record in every) / max(1, len(streams)),
        stability=_share(streams, lambda stream, i: _version(stream[i]) > 1 and not _touched(stream[i])),
        adaptation=_share(streams, lambda stream, i: _touched(stream[i])),
        drop=sum(drops) / len(drops) if drops else None,
        recovery=sum(back) / len(back) if back else None,
        recovered=len(back) / len(times) if times else None,
        shots={k: share for k, share in shots.items() if share.n},
        curve=tuple(_mean([s[i] for s in streams.values() if i < len(s)]) for i in range(longest)),
        tokens=tuple(_tokens(every, v) for v in sorted(set(map(_version, every)))),
    )


def _touched(record: Record) -> bool:
    return record.mark is not None and record.mark.touched


def _number(record: Record) -> int:
    return record.mark.number if record.mark else 0


def _version(record: Record) -> int:
    return record.mark.version if record.mark else 1


def _mean(records: Sequence[Record]) -> float:
    return sum(record.passed for record in records) / len(records) if records else 0.0


def _recovery(after: Sequence[Record], level: float) -> int | None:
    """Episodes until a window is back at a level; None if that does not happen before the next change."""
    for k in range(max(1, len(after) - WINDOW + 1)):
        if _mean(after[k : k + WINDOW]) >= level - SLACK:
            return k
    return None


def _after(low: int, high: int) -> Callable[[Sequence[Record], int], bool]:
    def holds(stream: Sequence[Record], i: int) -> bool:
        met = sum(_version(record) == _version(stream[i]) for record in stream[:i])
        return _version(stream[i]) > 1 and low <= met < high

    return holds


def _tokens(records: Sequence[Record], version: int) -> float:
    used = [r.usage.input_tokens + r.usage.output_tokens for r in records if _version(r) == version]
    return sum(used) / len(used)


def _share(
    streams: dict[tuple[str, int], list[Record]], counts: Callable[[Sequence[Record], int], bool]
) -> StreamShare:
    found = [
        (key, float(record.passed))
        for key, stream in streams.items()
        for i, record in enumerate(stream)
        if counts(stream, i)
    ]
    if not found:
        return StreamShare(n=0, value=None)
    value = sum(passed for _, passed in found) / len(found)
    among = {key for key, _ in found}
    bounds = resampled(sums_by(found)) if len(among) > 1 else Interval(0.0, 1.0)
    return StreamShare(n=len(found), value=value, low=bounds.low, high=bounds.high)
