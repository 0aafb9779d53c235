"""Shares of episodes that passed, with intervals that resample whole streams."""

from __future__ import annotations

from collections.abc import Iterable

from crosswind.core.types import Model
from crosswind.metrics.stats import resampled, sums_by

Stream = tuple[str, int]  # domain and number


class StreamShare(Model):
    """A share of episodes that passed, with its interval over streams; None where there is nothing to tell it from."""

    n: int
    value: float | None
    low: float | None = None
    high: float | None = None


def share(found: Iterable[tuple[Stream, float]]) -> StreamShare:
    """The mean of values, each with its stream."""
    values = list(found)
    if not values:
        return StreamShare(n=0, value=None)
    mean = sum(value for _, value in values) / len(values)
    if len({stream for stream, _ in values}) == 1:
        return StreamShare(n=len(values), value=mean)
    bounds = resampled(sums_by(values))
    return StreamShare(n=len(values), value=mean, low=bounds.low, high=bounds.high)
