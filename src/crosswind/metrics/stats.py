"""Statistics of paired outcomes: differences, intervals, tests, and how many pairs they take.

Everything here works on plain numbers and knows nothing of episodes; `scores.py` brings the two together. The formulas
and the reasons for them are in docs/statistics.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import permutations
from math import comb, erfc, lgamma, log, sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from crosswind.core.types import Model

RESAMPLES = 10_000
CONFIDENCE = 0.95
EXACT = 2000  # changed pairs or tasks, beyond which tests and their power are taken from approximations
ORDERS = 8  # up to this many values, a rank correlation is compared with every order of them


Sums = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


class Interval(NamedTuple):
    """Two bounds."""

    low: float
    high: float


class PairedDifference(Model):
    """What a shift did to paired outcomes."""

    n: int  # pairs
    tasks: int  # different ones
    clean: float  # share passed
    shifted: float
    delta: float  # shifted minus clean
    low: float
    high: float
    p: float  # exact, two-sided, by tasks; McNemar's where each task has one pair
    broke: int  # passed clean, failed shifted
    fixed: int  # failed clean, passed shifted


class PassHatK(Model):
    """The chance that k trials of a task all pass, averaged over tasks."""

    k: int
    tasks: int
    value: float
    low: float
    high: float


class Correlation(Model):
    """A rank correlation; `rho` is None where one of the two sides does not vary."""

    n: int
    rho: float | None
    p: float | None


# ---------------------------------------------------------------- one share


def wilson(k: float, n: float, confidence: float = CONFIDENCE) -> Interval:
    """The score interval of a share, `k` of `n`; from 0 to 1 where nothing was seen."""
    if n < 0 or not 0 <= k <= n:
        raise ValueError(f"{k} of {n} is not a share; expected 0 <= k <= n")
    if n == 0:
        return Interval(0.0, 1.0)
    z = _z(confidence)
    share, weight = k / n, z * z / n
    middle = (share + weight / 2) / (1 + weight)
    half = z * sqrt(share * (1 - share) / n + weight / (4 * n)) / (1 + weight)
    return Interval(0.0 if k == 0 else max(0.0, middle - half), 1.0 if k == n else min(1.0, middle + half))


def _z(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1; got {confidence}")
    return NormalDist().inv_cdf(0.5 + confidence / 2)


def worth(values: Sequence[float], tasks: Sequence[Hashable] | None = None) -> float:
    """How many independent outcomes the given ones are worth: at least the number of tasks, at most their own.

    The design effect: the variance of the mean with tasks as clusters over its variance with independent outcomes.
    Where all outcomes are alike nothing is known of that, and a task counts once.
    """
    n = len(values)
    if tasks is None or not n:
        return float(n)
    mean = sum(values) / n
    sums = _deviations(values, mean, tasks)
    m, alone = len(sums), n * mean * (1 - mean)
    if m == n or alone < 1e-12:
        return float(m)
    together = sum(gap * gap for gap in sums.values()) * m / (m - 1) if m > 1 else alone * n
    return max(float(m), n / max(1.0, together / alone))


def _deviations(values: Sequence[float], mean: float, tasks: Sequence[Hashable]) -> dict[Hashable, float]:
    """By task, how far its outcomes are from the mean, added."""
    out: dict[Hashable, float] = {}
    for task, value in zip(tasks, values, strict=True):
        out[task] = out.get(task, 0.0) + value - mean
    return out


def share_interval(
    outcomes: Sequence[bool], tasks: Sequence[Hashable] | None = None, confidence: float = CONFIDENCE
) -> Interval:
    """The score interval of a share of outcomes, which count for what they tell beyond others of their task."""
    if not outcomes:
        return Interval(0.0, 1.0)
    size = worth(outcomes, tasks)
    return wilson(sum(outcomes) / len(outcomes) * size, size, confidence)


# ---------------------------------------------------------------- pairs


def paired_difference(
    clean: Sequence[bool],
    shifted: Sequence[bool],
    *,
    tasks: Sequence[Hashable] | None = None,
    confidence: float = CONFIDENCE,
) -> PairedDifference:
    """The difference of two lists of outcomes that belong together one by one.

    `tasks` names the task of each pair where several pairs have the same; otherwise each pair is independent.
    """
    ids: Sequence[Hashable] = range(len(clean)) if tasks is None else tasks
    low, high = paired_interval(clean, shifted, tasks=ids, confidence=confidence)
    n = len(clean)
    nets: Counter[Hashable] = Counter()
    for task, c, s in zip(ids, clean, shifted, strict=True):
        nets[task] += int(s) - int(c)
    broke = sum(bool(c) and not s for c, s in zip(clean, shifted, strict=True))
    fixed = sum(bool(s) and not c for c, s in zip(clean, shifted, strict=True))
    return PairedDifference(
        n=n,
        tasks=len(nets),
        clean=sum(map(bool, clean)) / n,
        shifted=sum(map(bool, shifted)) / n,
        delta=(fixed - broke) / n,
        low=low,
        high=high,
        p=flipped(nets.values()),
        broke=broke,
        fixed=fixed,
    )


def paired_interval(
    clean: Sequence[bool],
    shifted: Sequence[bool],
    *,
    tasks: Sequence[Hashable] | None = None,
    confidence: float = CONFIDENCE,
) -> Interval:
    """The interval of a paired difference: Newcombe's square-and-add method, with tasks as clusters.

    The score intervals of the two shares, each over what its outcomes are worth, are put together by the correlation
    of the two. So one clean episode that is in several pairs counts once, and an interval has a width even where
    every outcome is alike. It always holds the change of tasks too rare to be among so many.
    """
    if len(clean) != len(shifted):
        raise ValueError(f"{len(clean)} clean and {len(shifted)} shifted outcomes do not make pairs")
    n = len(clean)
    if not n:
        raise ValueError("there are no pairs to compare")
    ids: Sequence[Hashable] = range(n) if tasks is None else tasks
    before, after = sum(clean) / n, sum(shifted) / n
    one, other = _deviations(clean, before, ids), _deviations(shifted, after, ids)
    both = sum(gap * other[task] for task, gap in one.items())
    if both > 0:  # Newcombe's correction: so few pairs cannot show that they always agree
        both = max(0.0, both - sum(size * size for size in Counter(ids).values()) / (2 * len(one)))
    spread = sqrt(sum(gap * gap for gap in one.values()) * sum(gap * gap for gap in other.values()))
    linked = both / spread if spread > 1e-12 else 0.0
    (l1, u1), (l2, u2) = (share_interval(of, ids, confidence) for of in (clean, shifted))

    def reach(a: float, b: float) -> float:
        return sqrt(max(0.0, a * a + b * b - 2 * linked * a * b))

    delta, unseen = after - before, 1 - ((1 - confidence) / 2) ** (1 / len(one))
    low, high = delta - reach(after - l2, u1 - before), delta + reach(u2 - after, before - l1)
    return Interval(
        max(-1.0, min(low, -unseen) if delta <= 0 else low), min(1.0, max(high, unseen) if delta >= 0 else high)
    )


def mcnemar(broke: int, fixed: int) -> float:
    """The exact two-sided p-value that as many changes split as unevenly by the toss of a coin."""
    if broke < 0 or fixed < 0:
        raise ValueError(f"numbers of pairs are not negative: {broke}, {fixed}")
    n, fewer = broke + fixed, min(broke, fixed)
    if n > EXACT:
        return min(1.0, 2 * float(_binomial(np.arange(fewer + 1), n, 0.5).sum()))
    term = total = 1
    for i in range(fewer):
        term = term * (n - i) // (i + 1)
        total += term
    return min(1.0, 2 * total / (1 << n))


def flipped(nets: Iterable[int]) -> float:
    """The exact two-sided p-value that tasks add up to so much, if each could as well have changed the other way.

    `nets` holds what each task gained. Where no task has more than one pair this is McNemar's test.
    """
    moved = [net for net in nets if net]
    if all(abs(net) == 1 for net in moved):
        return mcnemar(moved.count(-1), moved.count(1))
    most, seen = sum(map(abs, moved)), abs(sum(moved))
    if len(moved) > EXACT:  # sums lie two apart, so that half the way to the next one belongs to each
        return erfc(max(0, seen - 1) / sqrt(2 * sum(net * net for net in moved)))
    chances = np.zeros(2 * most + 1)  # of each sum from -most to most
    chances[most] = 1.0
    for net in moved:
        chances = (np.roll(chances, net) + np.roll(chances, -net)) / 2  # never wraps: most is out of reach till the end
    return min(1.0, float(chances[: most - seen + 1].sum() + chances[most + seen :].sum()))


def resampled(
    clusters: Mapping[tuple[float, ...], int],
    figure: Callable[[Sums], Sums] = lambda sums: sums[:, 0] / sums[:, 1],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> Interval:
    """The bootstrap's percentile interval of a figure whose observations come in clusters, by default of a mean.

    A cluster is what it adds to some sums, (sum, size) for a mean, and comes with the number of clusters that are like
    it. Drawing clusters with replacement is drawing how often each sort of cluster comes up, which is a multinomial
    draw: the same, and much faster. `figure` takes a row of sums for each resample.
    """
    _z(confidence)
    sorts = sorted(sort for sort, count in clusters.items() if count)
    if not sorts:
        raise ValueError("there is nothing to resample")
    counts = np.array([clusters[sort] for sort in sorts])
    values = np.array(sorts, dtype=float)
    total = int(counts.sum())
    drawn = np.random.default_rng(seed).multinomial(total, counts / total, size=resamples) @ values
    tail = (1 - confidence) / 2
    low, high = np.quantile(figure(drawn), [tail, 1 - tail], method="inverted_cdf")
    return Interval(float(low), float(high))


# ---------------------------------------------------------------- several tests, several trials


def holm(ps: Sequence[float]) -> list[float]:
    """p-values adjusted for being several, in the order given (Holm's step-down procedure)."""
    if bad := [p for p in ps if not 0 <= p <= 1]:
        raise ValueError(f"{bad[0]} is not a p-value; expected a number from 0 to 1")
    out, least = [0.0] * len(ps), 0.0
    for rank, i in enumerate(sorted(range(len(ps)), key=lambda i: ps[i])):
        least = max(least, min(1.0, (len(ps) - rank) * ps[i]))
        out[i] = least
    return out


def pass_hat_k(
    trials: Mapping[str, Sequence[bool]],
    k: int,
    *,
    clusters: Mapping[str, str] | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> PassHatK:
    """The chance that `k` trials of a task all pass: C(passed, k) / C(trials, k), averaged over tasks.

    The interval resamples tasks, each with all of its trials; with `clusters`, what a task belongs to.
    """
    if k < 1:
        raise ValueError(f"k is {k}; at least one trial is needed")
    if not trials:
        raise ValueError("there are no tasks")
    for task, outcomes in trials.items():
        if len(outcomes) < k:
            raise ValueError(f"{task!r} has {len(outcomes)} trials, which is fewer than k = {k}")
    shares = {task: comb(sum(map(bool, of)), k) / comb(len(of), k) for task, of in trials.items()}
    together = clusters or {}
    low, high = resampled(
        sums_by((together.get(task, task), share) for task, share in shares.items()),
        seed=seed,
        resamples=resamples,
        confidence=confidence,
    )
    return PassHatK(k=k, tasks=len(shares), value=sum(shares.values()) / len(shares), low=low, high=high)


# ---------------------------------------------------------------- how many pairs it takes


def power(n: int, delta: float, *, noise: float = 0.1, alpha: float = 0.05) -> float:
    """The chance that the exact McNemar test notices a true difference among `n` pairs.

    `noise` is the share of pairs that would change without any effect, half of them each way; the effect comes on top.
    """
    delta = abs(delta)
    more, fewer = noise / 2 + delta, noise / 2
    changed = more + fewer
    if n < 0 or not 0 <= noise <= 1 or not 0 < alpha < 1:
        raise ValueError(f"inconsistent arguments: n = {n}, noise = {noise}, alpha = {alpha}")
    if changed > 1 + 1e-12:
        raise ValueError(f"a difference of {delta} with {noise} of noise would change more pairs than there are")
    if n == 0 or changed == 0:
        return 0.0
    changed = min(1.0, changed)
    if n * changed > EXACT:
        z, deviation = _z(1 - alpha), sqrt(changed - delta**2)
        return NormalDist().cdf((delta * sqrt(n) - z * sqrt(changed)) / deviation) if deviation else 1.0
    spread = 6 * sqrt(n * changed * (1 - changed)) + 2
    numbers = np.arange(max(0, int(n * changed - spread)), min(n, int(n * changed + spread) + 1) + 1)
    weights = _binomial(numbers, n, changed)
    out = 0.0
    for m, weight in zip(numbers.tolist(), weights.tolist(), strict=True):
        edge = _edge(m, alpha)
        if edge >= 0:
            up, down = np.arange(m - edge, m + 1), np.arange(edge + 1)
            share = more / (more + fewer)
            out += weight * float(_binomial(up, m, share).sum() + _binomial(down, m, share).sum())
    return min(1.0, out)


def minimum_detectable_effect(n: int, *, noise: float = 0.1, power: float = 0.8, alpha: float = 0.05) -> float | None:
    """The smallest true difference that `n` pairs show with the power asked for; None where none would be."""
    if not 0 < power < 1:
        raise ValueError(f"power must be between 0 and 1; got {power}")
    low, high = 0.0, 1 - noise
    if _power(n, high, noise=noise, alpha=alpha) < power:
        return None
    while high - low > 1e-4:
        middle = (low + high) / 2
        if _power(n, middle, noise=noise, alpha=alpha) < power:
            low = middle
        else:
            high = middle
    return high


def pairs_needed(
    delta: float, *, noise: float = 0.1, power: float = 0.8, alpha: float = 0.05, most: int = 100_000
) -> int | None:
    """How many pairs show a true difference with the power asked for; None where more than `most` would be needed."""
    if not 0 < power < 1:
        raise ValueError(f"power must be between 0 and 1; got {power}")
    if delta == 0:
        return None
    low, high = 0, 1
    while _power(high, delta, noise=noise, alpha=alpha) < power:
        low, high = high, high * 2
        if low >= most:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        if _power(middle, delta, noise=noise, alpha=alpha) < power:
            low = middle
        else:
            high = middle
    return high


_power = power  # by a name that the keyword does not hide


def _binomial(
    k: np.ndarray[tuple[int], np.dtype[np.int64]], n: int, p: float
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The chances of `k` hits in `n`."""
    if p <= 0 or p >= 1:
        return np.asarray(k == (n if p >= 1 else 0), dtype=float)
    logs = _log_factorials(1 << max(10, n.bit_length()))
    return np.asarray(np.exp(logs[n] - logs[k] - logs[n - k] + k * log(p) + (n - k) * log(1 - p)))


@lru_cache(maxsize=4)
def _log_factorials(size: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([lgamma(i + 1) for i in range(size + 1)])


@lru_cache(maxsize=100_000)
def _edge(m: int, alpha: float) -> int:
    """The most that the rarer way may count among `m` changes for the test to reject; -1 where it never does."""
    term = total = 1
    limit = (int(alpha * 2**53) << m) >> 54
    if total > limit:
        return -1
    for i in range(m):
        term = term * (m - i) // (i + 1)
        total += term
        if total > limit:
            return i
    return m


# ---------------------------------------------------------------- ranks


def ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; equal values share the mean of theirs."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    out, start = [0.0] * len(values), 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and values[order[end + 1]] == values[order[start]]:
            end += 1
        for i in order[start : end + 1]:
            out[i] = (start + end) / 2 + 1
        start = end + 1
    return out


def spearman(x: Sequence[float], y: Sequence[float], *, seed: int = 0, resamples: int = RESAMPLES) -> Correlation:
    """The rank correlation of two lists, ties included, with a two-sided permutation test.

    Up to eight values are compared with every order of them, more with a sample of orders.
    """
    if len(x) != len(y):
        raise ValueError(f"{len(x)} and {len(y)} values do not make pairs")
    n = len(x)
    a, b = (np.array(ranks(v)) - (n + 1) / 2 for v in (x, y))
    size = float(np.sqrt((a @ a) * (b @ b)))
    if n < 2 or size == 0:
        return Correlation(n=n, rho=None, p=None)
    rho = float(a @ b) / size
    if n <= ORDERS:
        orders = np.array(list(permutations(range(n))))
        others = b[orders] @ a / size
        p = float((np.abs(others) >= abs(rho) - 1e-9).mean())
    else:
        rng = np.random.default_rng(seed)
        others = rng.permuted(np.tile(b, (resamples, 1)), axis=1) @ a / size
        p = float((1 + (np.abs(others) >= abs(rho) - 1e-9).sum()) / (1 + resamples))
    return Correlation(n=n, rho=max(-1.0, min(1.0, rho)), p=p)


def sums_by(values: Iterable[tuple[Hashable, float]]) -> Counter[tuple[float, ...]]:
    """Observations of clusters, as `resampled` takes them."""
    sums: dict[Hashable, tuple[float, int]] = {}
    for cluster, value in values:
        total, size = sums.get(cluster, (0, 0))
        sums[cluster] = (total + value, size + 1)
    return Counter(sums.values())
