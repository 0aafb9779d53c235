"""How often a kind of perturbation can be drawn fairly: certified, refused with reasons, or not applicable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from crosswind.base.errors import CannotPerturb, Unfair
from crosswind.core.domain import Domain
from crosswind.core.draw import draw
from crosswind.core.registry import domains
from crosswind.episodes.schedule import tasks

Progress = Callable[..., None]


def survey(
    names: Sequence[str],
    kinds: Sequence[str],
    count: int,
    seed: int,
    severity: int,
    *,
    deep: bool = False,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """One row per domain and kind, with `count` certified draws wanted in each."""
    rows = []
    for name in names:
        for kind in kinds:
            if progress:
                progress(name, kind)
            rows.append(_row(domains[name], kind, count, seed, severity, deep))
    return rows


def _row(domain: Domain, kind: str, count: int, seed: int, severity: int, deep: bool) -> dict[str, Any]:
    certified = refused = not_applicable = failed = 0
    reasons = Counter[str]()

    def note(unfair: Unfair | CannotPerturb) -> None:
        reason = unfair.reason if isinstance(unfair, Unfair) else str(unfair)
        reasons[f"{unfair.law}: {reason}"[:200]] += 1

    for looked, task in enumerate(tasks(domain, seed)):
        if certified == count or looked >= 10 * (count + len(domain.families)):
            break
        try:
            drawn = draw(domain, task, [kind], seed, severity=severity, deep=deep)
        except CannotPerturb as cannot:
            if cannot.applies:
                failed += 1
                refused += 1
                note(cannot)
            else:
                not_applicable += 1
            continue
        certified += 1
        refused += len(drawn.refused)
        for unfair in drawn.refused:
            note(unfair)
    return {
        "domain": domain.name,
        "kind": kind,
        "applies": certified + failed > 0,
        "certified": certified,
        "refused": refused,
        "not_applicable": not_applicable,
        "reasons": dict(reasons),
    }
