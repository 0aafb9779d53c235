"""Paired outcomes and an allowed drop: pass, fail, or inconclusive with the number of pairs that would decide.

Pure functions of outcomes, so that a simulation can ask them many times. docs/gate.md says why the rule is as it is.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from statistics import NormalDist
from typing import Literal

from crosswind.base.errors import CrosswindError
from crosswind.core.types import Model
from crosswind.metrics.stats import tango, tango_score, wilson

Word = Literal["pass", "fail", "inconclusive"]
WITHIN = 0.95  # confidence that a fall is within the allowance, to pass
BEYOND = 0.80  # confidence that it is beyond the allowance, to fail,
SURELY = 0.99  # and that there is one at all
POWER = 0.80  # chance with which `needed_n` pairs decide
LARGE = 1_000_000  # pairs; more are as good as never
_NORMAL = NormalDist()


class Decision(Model):
    """What paired outcomes say about an allowed drop."""

    verdict: Word
    n: int  # pairs
    tasks: int  # different tasks among them
    before: float  # success rate of the first of each pair,
    after: float  # and of the second
    delta: float  # after minus before: a fall is negative
    low: float  # with 95 % confidence it is not lower,
    high: float  # and with 80 % not higher
    broke: int  # passed before, failed after
    fixed: int
    p_fall: float  # exact chance of so large a fall in an agent that did not fall
    p_beyond: float  # chance of so large a fall where the true one is just what is allowed
    p_within: float  # chance of so small a one there
    needed_n: int | None = None  # of an inconclusive one: pairs that would decide; None where no number would


def verdict_of(p_fall: float, p_beyond: float, p_within: float, within: float, surely: float) -> Word:
    """Fail what surely fell and is likely beyond the allowance; pass what is within it."""
    if p_fall <= 1 - surely and p_beyond <= 1 - BEYOND:
        return "fail"
    return "pass" if p_within <= 1 - within else "inconclusive"


def decide(
    before: Sequence[bool],
    after: Sequence[bool],
    max_drop: float,
    *,
    tasks: Sequence[Hashable] | None = None,
    shared: Sequence[Hashable] | None = None,
    confidence: float = WITHIN,
    surely: float = SURELY,
) -> Decision:
    """Is the success rate of `after` more than `max_drop` below that of `before`?

    The two lists are paired: the same task clean and shifted or, beside a baseline, the same episode then and now.
    `tasks` names the task of each pair where several pairs have the same, `shared` the first episode of each pair
    where several pairs share it (one clean episode beside several shifted ones). `confidence` is the one needed to
    pass; with `surely` there must be a fall at all before anything fails.
    """
    if len({len(before), *(len(of) for of in (after, tasks, shared) if of is not None)}) > 1:
        raise CrosswindError(f"outcomes come in pairs; got {len(before)} before and {len(after)} after")
    _sound(max_drop, confidence)
    if not before:
        return _nothing(max_drop, confidence)
    n = len(before)
    falls = [int(b) - int(a) for b, a in zip(before, after, strict=True)]
    broke, fixed = falls.count(1), falls.count(-1)
    sums = list(_sums(falls, tasks).values())
    effect = _design_effect(falls, sums)
    b, c, size = broke / effect, fixed / effect, n / effect
    score = _score(b, c, size, max_drop)
    (p_fall, far), p_beyond = _no_fall(before, after, shared), 1 - _NORMAL.cdf(score)
    p_within = max(_NORMAL.cdf(score), _unseen(max_drop, len(sums)) if broke >= fixed else 0.0)
    verdict = verdict_of(p_fall, p_beyond, p_within, confidence, surely)
    return Decision(
        verdict=verdict,
        n=n,
        tasks=len(sums),
        before=sum(before) / n,
        after=sum(after) / n,
        delta=(fixed - broke) / n,
        low=tango(b, c, size, _two_sided(confidence)).low,
        high=tango(b, c, size, _two_sided(BEYOND)).high,
        broke=broke,
        fixed=fixed,
        p_fall=p_fall,
        p_beyond=p_beyond,
        p_within=p_within,
        needed_n=_needed(b, c, size, effect, n / len(sums), far, max_drop, confidence, surely)
        if verdict == "inconclusive"
        else None,
    )


def decide_rate(
    outcomes: Sequence[bool],
    least: float,
    *,
    tasks: Sequence[Hashable] | None = None,
    confidence: float = WITHIN,
    surely: float = SURELY,
) -> Decision:
    """Is a success rate at least `least`? Exact binomial tests, on what the outcomes are worth if they share tasks.

    `before` of the decision is `least`, so that `delta` is the distance from it.
    """
    _sound(least, confidence)
    n, passed = len(outcomes), sum(outcomes)
    if not n:
        return _nothing(least, confidence).model_copy(update={"before": least})
    rate = passed / n
    deviations = [x - rate for x in outcomes]
    sums = list(_sums(deviations, tasks).values())
    effect = _design_effect(deviations, sums)
    worth = n / effect
    size = max(1, int(worth))
    failed = max(0, size - math.ceil(passed / effect))
    p_below = _binomial_tail(failed, size, 1 - least)
    p_above = _binomial_tail(min(size, math.floor(passed / effect)), size, least)
    verdict = verdict_of(p_below, p_below, p_above, confidence, surely)
    z = _NORMAL.inv_cdf(confidence if rate > least else surely) + _NORMAL.inv_cdf(POWER)
    spread, gap = math.sqrt(max(rate * (1 - rate), least * (1 - least))), abs(rate - least)
    wanted = _whole(effect * (z * spread / gap) ** 2) if gap > 1e-9 else LARGE
    return Decision(
        verdict=verdict,
        n=n,
        tasks=len(sums),
        before=least,
        after=rate,
        delta=rate - least,
        low=wilson(rate * worth, worth, _two_sided(confidence)).low - least,
        high=wilson(rate * worth, worth, _two_sided(BEYOND)).high - least,
        broke=n - passed,
        fixed=0,
        p_fall=p_below,
        p_beyond=p_below,
        p_within=p_above,
        needed_n=max(wanted, n + 1) if verdict == "inconclusive" and wanted < LARGE else None,
    )


def _nothing(share: float, confidence: float) -> Decision:
    """The decision on no pairs at all."""
    return Decision(
        verdict="inconclusive",
        n=0,
        tasks=0,
        before=0,
        after=0,
        delta=0,
        low=-1,
        high=1,
        broke=0,
        fixed=0,
        p_fall=1,
        p_beyond=1,
        p_within=1,
        needed_n=_enough(0, 0, share, confidence, SURELY),
    )


def _sound(share: float, confidence: float) -> None:
    if not 0 <= share < 1:
        raise CrosswindError(f"{share} is no share to allow; give one from 0 to below 1, such as 0.10")
    if not 0.5 < confidence < 1:
        raise CrosswindError(f"a confidence of {confidence} decides nothing; give one between 0.5 and 1, such as 0.95")


def _two_sided(confidence: float) -> float:
    """The confidence of the interval one end of which is a bound of this confidence."""
    return 2 * confidence - 1


def _sums(values: Sequence[float], tasks: Sequence[Hashable] | None) -> dict[Hashable, float]:
    """The values of each task, added."""
    out: dict[Hashable, float] = {}
    for task, value in zip(tasks if tasks is not None else range(len(values)), values, strict=True):
        out[task] = out.get(task, 0) + value
    return out


def _design_effect(values: Sequence[float], sums: Sequence[float]) -> float:
    """How many pairs are worth one independent pair, since pairs of one task resemble each other; at least 1.

    Where all are alike nothing is known of that, and a task counts once.
    """
    n, groups = len(values), len(sums)
    mean, size = sum(values) / n, n / groups
    alone = sum((v - mean) ** 2 for v in values)
    if groups in (n, 1) or alone < 1e-12:
        return size
    together = sum((s - size * mean) ** 2 for s in sums) * groups / (groups - 1)
    return min(max(1.0, together / alone), float(n))


def _score(b: float, c: float, n: float, drop: float) -> float:
    """Tango's score for the hypothesis that the true drop is `drop`: large if the drop seen is larger."""
    return tango_score(c, b, n, drop)  # a drop is the difference the other way round


def _no_fall(before: Sequence[bool], after: Sequence[bool], shared: Sequence[Hashable] | None) -> tuple[float, float]:
    """The exact chance of so large a fall if nothing had changed, and how many standard deviations it is from none.

    If nothing had changed, the first episode would be any one of those it is compared with: of the successes among
    them all, it has its share of the chance to be one. With one pair to each this is McNemar's exact test.
    """
    if shared is None:
        broke = sum(b and not a for b, a in zip(before, after, strict=True))
        moved = sum(b != a for b, a in zip(before, after, strict=True))
        return _binomial_tail(broke, moved, 0.5), (2 * broke - moved) / math.sqrt(moved) if moved else 0.0
    blocks: dict[Hashable, list[int]] = {}  # first passed, how many are compared with it, how many of those passed
    for one, b, a in zip(shared, before, after, strict=True):
        block = blocks.setdefault(one, [int(b), 0, 0])
        block[1] += 1
        block[2] += a
    chances, seen, spread = [1.0], 0, 0.0  # chances: of what the first episodes that pass add up to
    for first, others, passed in blocks.values():
        size, share = others + 1, (first + passed) / (others + 1)
        if not 0 < share < 1:
            continue
        gap = [0.0] * size
        no, yes = [c * (1 - share) for c in chances], [c * share for c in chances]
        chances = [a + b for a, b in zip(no + gap, gap + yes, strict=True)]
        seen += size * first
        spread += size**2 * share * (1 - share)
    falls = sum(before) - sum(after)
    return min(1.0, math.fsum(chances[seen:])), falls / math.sqrt(spread) if spread else 0.0


def _binomial_tail(k: int, n: int, p: float) -> float:
    """P(X >= k) of a binomial."""
    if k <= 0:
        return 1.0
    if p in (0.0, 1.0):
        return p
    logs = math.log(p), math.log(1 - p)
    top = math.lgamma(n + 1)
    terms = (
        math.exp(top - math.lgamma(i + 1) - math.lgamma(n - i + 1) + i * logs[0] + (n - i) * logs[1])
        for i in range(k, n + 1)
    )
    return min(1.0, math.fsum(terms))


def _unseen(max_drop: float, tasks: int) -> float:
    """The chance of not a single broken task where the true drop is the one allowed, and takes tasks as a whole."""
    return float((1 - max_drop) ** tasks)


def _needed(
    b: float,
    c: float,
    n: float,
    effect: float,
    per_task: float,
    far: float,
    max_drop: float,
    confidence: float,
    surely: float,
) -> int | None:
    """Pairs at which the rates seen would decide, with a chance of 80 %; as many to a task as now."""
    drop = (b - c) / n
    gap = abs(drop - max_drop)
    if gap < 1e-9:
        return None
    spread, power = math.sqrt(max(0.0, (b + c) / n - drop**2)), _NORMAL.inv_cdf(POWER)
    wanted = effect * ((_NORMAL.inv_cdf(confidence if drop < max_drop else BEYOND) + power) * spread / gap) ** 2
    if 0 <= drop < max_drop:
        wanted = max(wanted, per_task * _tasks_to_pass(max_drop, confidence))
    elif drop > max_drop and far > 0:
        wanted = max(wanted, effect * n * ((_NORMAL.inv_cdf(surely) + power) / far) ** 2)
    least = _enough(b / n, c / n, max_drop, confidence, surely)
    if least is None or wanted > LARGE:
        return None
    return _whole(max(wanted, effect * least, effect * n + 1))


def _tasks_to_pass(max_drop: float, confidence: float) -> float:
    """The fewest tasks with which anything can pass."""
    return math.ceil(math.log(1 - confidence) / math.log1p(-max_drop) - 1e-9) if max_drop > 1e-9 else math.inf


def _enough(b: float, c: float, max_drop: float, confidence: float, surely: float) -> int | None:
    """The smallest number of pairs, at given shares of broken and fixed ones, that gives a verdict at all."""

    def decides(size: int) -> bool:
        score = _score(b * size, c * size, size, max_drop)
        within = max(_NORMAL.cdf(score), _unseen(max_drop, size) if b >= c else 0.0)
        fall = _sign(b * size, c * size)
        return verdict_of(fall, 1 - _NORMAL.cdf(score), within, confidence, surely) != "inconclusive"

    size = 1
    while not decides(size):
        size *= 2
        if size > LARGE:
            return None
    low, high = size // 2, size
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if decides(middle) else (middle, high)
    return high


def _sign(b: float, c: float) -> float:
    """The chance of so many broken among those that moved, if broken and fixed were alike; by the normal for many."""
    moved = b + c
    if moved > 400:
        return 1 - _NORMAL.cdf((b - c) / math.sqrt(moved))
    return _binomial_tail(math.floor(b), math.floor(moved), 0.5)


def _whole(number: float) -> int:
    return math.ceil(min(number, 10 * LARGE) - 1e-9)
