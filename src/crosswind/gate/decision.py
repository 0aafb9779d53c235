"""Paired outcomes and an allowed drop: pass, fail, or inconclusive with the number of pairs that would decide.

One rule: the interval of the change is compared with the allowance. Wholly within it passes, wholly beyond it fails,
and one that holds the allowance is inconclusive. Pure functions of outcomes, so that a simulation can ask them many
times. docs/gate.md says why the levels are as they are.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from statistics import NormalDist
from typing import Any, Literal

from crosswind.base.errors import CrosswindError
from crosswind.core.types import Model
from crosswind.metrics.stats import paired_interval, share_interval

Word = Literal["pass", "fail", "inconclusive"]
LEVEL = 0.95  # confidence of the lower bound, and of the upper bounds of all checks together
POWER = 0.80  # chance with which `needed_n` pairs decide
LARGE = 1_000_000  # pairs; more are as good as never
_NORMAL = NormalDist()


class Decision(Model):
    """What outcomes say about a limit: the interval decides."""

    verdict: Word
    n: int  # pairs, or episodes of a rate
    tasks: int  # different tasks among them
    before: float | None  # success rate of the first of each pair; None for a rate
    after: float  # and of the second; of a rate, the rate
    delta: float  # after minus before, so that a fall is negative; of a rate, its distance from the limit
    low: float  # the interval of delta: a lower bound of 95 % confidence,
    high: float  # and an upper bound of `level`
    level: float  # 95 % for all checks of the gate together
    broke: int | None  # passed before, failed after; None for a rate
    fixed: int | None
    needed_n: int | None = None  # of an inconclusive one: pairs that would decide; None where no number would


def decide(
    before: Sequence[bool],
    after: Sequence[bool],
    max_drop: float,
    *,
    tasks: Sequence[Hashable] | None = None,
    checks: int = 1,
) -> Decision:
    """Is the success rate of `after` more than `max_drop` below that of `before`?

    The two lists are paired: the same task clean and shifted or, beside a baseline, the same episode then and now.
    `tasks` names the task of each pair where several pairs have the same, `checks` the number of checks that share
    the risk of failing wrongly.
    """
    _check_share(max_drop)
    least = math.log(1 - LEVEL) / math.log1p(-max_drop) if max_drop > 1e-9 else math.inf
    return _paired(before, after, -max_drop, least, tasks, checks)


def decide_gain(
    before: Sequence[bool],
    after: Sequence[bool],
    min_gain: float,
    *,
    tasks: Sequence[Hashable] | None = None,
    checks: int = 1,
) -> Decision:
    """Is the success rate of `after` at least `min_gain` above that of `before`? The lists are paired."""
    _check_share(min_gain)
    return _paired(before, after, min_gain, 0.0, tasks, checks)


def _paired(
    before: Sequence[bool],
    after: Sequence[bool],
    limit: float,
    least: float,
    tasks: Sequence[Hashable] | None,
    checks: int,
) -> Decision:
    if len({len(before), len(after), *([] if tasks is None else [len(tasks)])}) > 1:
        raise CrosswindError(f"outcomes come in pairs; got {len(before)} before and {len(after)} after")
    n, ids = len(before), range(len(before)) if tasks is None else tasks
    nets: Counter[Hashable] = Counter()
    for task, b, a in zip(ids, before, after, strict=True):
        nets[task] += int(a) - int(b)
    low, high = _bounds(checks, lambda confidence: paired_interval(before, after, tasks=ids, confidence=confidence), n)
    delta = sum(nets.values()) / n if n else 0.0
    sizes = Counter(ids)
    spread = math.sqrt(sum((net - sizes[task] * delta) ** 2 for task, net in nets.items())) / n if n else 0.0
    return _decision(
        n=n,
        tasks=len(nets),
        before=sum(before) / n if n else 0.0,
        after=sum(after) / n if n else 0.0,
        delta=delta,
        bounds=(low, high),
        limit=limit,
        spread=spread,
        least=least,
        checks=checks,
        broke=sum(b and not a for b, a in zip(before, after, strict=True)),
        fixed=sum(a and not b for b, a in zip(before, after, strict=True)),
    )


def decide_rate(
    outcomes: Sequence[bool], least: float, *, tasks: Sequence[Hashable] | None = None, checks: int = 1
) -> Decision:
    """Is a success rate at least `least`? `delta` of the decision is the distance from it."""
    _check_share(least)
    return decide_against(outcomes, least, tasks=tasks, checks=checks)


def decide_against(
    outcomes: Sequence[bool], least: float, *, tasks: Sequence[Hashable] | None = None, checks: int = 1
) -> Decision:
    """The same next to a share that others reached. It may be 1, which no number of tasks can show to be reached."""
    n, passed = len(outcomes), sum(outcomes)
    ids: Sequence[Hashable] = range(n) if tasks is None else tasks
    low, high = _bounds(checks, lambda confidence: share_interval(outcomes, ids, confidence), n)
    rate, different = passed / n if n else 0.0, len(set(ids))
    z = _NORMAL.inv_cdf(LEVEL)
    return _decision(
        n=n,
        tasks=different,
        before=None,
        after=rate,
        delta=rate - least if n else 0.0,
        bounds=(low - least, high - least) if n else (low, high),
        limit=0.0,
        spread=math.sqrt(rate * (1 - rate) / different) if n else 0.0,
        least=z * z * least / (1 - least) if least < 1 else math.inf,
        checks=checks,
        broke=None,
        fixed=None,
    )


def _bounds(checks: int, interval: Callable[[float], tuple[float, float]], n: int) -> tuple[float, float]:
    """A lower bound of 95 % confidence, and an upper one that holds for all checks together."""
    return (interval(2 * LEVEL - 1)[0], interval(2 * _upper(checks) - 1)[1]) if n else (-1.0, 1.0)


def _upper(checks: int) -> float:
    return 1 - (1 - LEVEL) / max(1, checks)


def _decision(
    *,
    n: int,
    tasks: int,
    delta: float,
    bounds: tuple[float, float],
    limit: float,
    spread: float,
    least: float,
    checks: int,
    **shares: Any,
) -> Decision:
    """The verdict. `spread` is the standard error of delta, `least` the tasks without which nothing passes."""
    low, high = bounds
    verdict: Word = "inconclusive" if not n else "fail" if high < limit else "pass" if low >= limit else "inconclusive"
    wanted, gap, each = math.inf, delta - limit if n else 1.0, n / tasks if n else 1.0
    if abs(gap) > 1e-9:
        z = _NORMAL.inv_cdf(LEVEL if gap > 0 else _upper(checks)) + _NORMAL.inv_cdf(POWER)
        fewest = each * math.ceil(min(least, 2 * LARGE) - 1e-9) if gap > 0 else 0.0
        wanted = max(n * (z * spread / gap) ** 2, n + 1, fewest)
    return Decision(
        verdict=verdict,
        n=n,
        tasks=tasks,
        delta=delta,
        low=low,
        high=high,
        level=_upper(checks),
        needed_n=math.ceil(wanted - 1e-9) if verdict == "inconclusive" and wanted <= LARGE else None,
        **shares,
    )


def _check_share(share: float) -> None:
    if not 0 <= share < 1:
        raise CrosswindError(f"{share} is not a valid share; expected a number from 0 to below 1, such as 0.10")
