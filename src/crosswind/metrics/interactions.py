"""Two obstacles at once against each alone: do their losses add up?

For one task, let clean, a, b and ab be success without an obstacle, with each, and with both. The interaction is
(ab - clean) - (a - clean) - (b - clean): 0 where losses add up, below where the one makes the other worse. A lost task
cannot be lost again, so two large losses add up to less; `independent` is what success would be if each obstacle left
its share of the successes whatever the other did.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from crosswind.core.registry import perturbations
from crosswind.core.types import Model
from crosswind.episodes.brief import Told
from crosswind.metrics.stats import resampled, sums_by


class Interaction(Model):
    """Two kinds over the tasks that were played in all four ways."""

    kinds: tuple[str, str]
    tiers: tuple[str, str]
    n: int  # tasks and trials
    clean: float
    first: float  # success with the first kind alone,
    second: float  # with the second,
    both: float  # and with both
    independent: float | None  # success with both, if neither knew of the other; None without clean successes
    value: float  # the interaction,
    low: float
    high: float  # and its interval over tasks


def interactions(records: Iterable[Told]) -> list[Interaction]:
    """The pairs of kinds that a run has both alone and together, by name; tasks to refuse are left out."""
    found: dict[tuple[str, ...], dict[str, Told]] = {}
    for record in records:
        if record.judged and not record.refuse and len(record.kinds) <= 2:
            found.setdefault(tuple(sorted(record.kinds)), {})[record.pair] = record
    out = []
    for kinds in sorted(found):
        if len(kinds) == 2 and all(key in found for key in ((), kinds[:1], kinds[1:])):
            four = [found[key] for key in ((), kinds[:1], kinds[1:], kinds)]
            if shared := [key for key in four[3] if all(key in one for one in four[:3])]:
                out.append(_interaction(kinds, [[one[key] for one in four] for key in sorted(shared)]))
    return out


def _interaction(kinds: tuple[str, ...], fours: Sequence[Sequence[Told]]) -> Interaction:
    passed = [[float(record.passed) for record in four] for four in fours]
    clean, first, second, both = (sum(column) / len(passed) for column in zip(*passed, strict=True))
    values = [(four[0].task_id, ab + none - a - b) for four, (none, a, b, ab) in zip(fours, passed, strict=True)]
    bounds = resampled(sums_by(values))
    return Interaction(
        kinds=(kinds[0], kinds[1]),
        tiers=(perturbations[kinds[0]].tier, perturbations[kinds[1]].tier),
        n=len(passed),
        clean=clean,
        first=first,
        second=second,
        both=both,
        independent=first * second / clean if clean else None,
        value=sum(value for _, value in values) / len(values),
        low=bounds.low,
        high=bounds.high,
    )
