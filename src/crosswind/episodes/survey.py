"""Whether the tasks of a domain are fair, and how often a kind of perturbation can be drawn fairly over them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import count as numbers
from typing import Any

from crosswind.base.errors import CannotPerturb
from crosswind.core.audit import TASKS, audit_domain, is_auditable
from crosswind.core.domain import Domain
from crosswind.core.draw import draw
from crosswind.core.registry import domains
from crosswind.core.types import Task
from crosswind.episodes.reasons import reason_of
from crosswind.episodes.schedule import tasks

Progress = Callable[..., None]
UNJUDGED = ("code", "task")  # laws whose breach leaves the tools unjudged: something raises, or there is no task


def survey_clean(
    names: Sequence[str], families: Sequence[str] = (), *, progress: Progress | None = None
) -> list[dict[str, Any]]:
    """One row per family, without any perturbation, with what is unfair about it; and one for each unfair tool."""
    rows: list[dict[str, Any]] = []
    for name in names:
        if not is_auditable(domains[name]):
            continue  # golds of other people and tools of servers are judged as they come
        if progress:
            progress(name, "by itself")
        found = audit_domain(domains[name], families or None)
        if any(c.law in UNJUDGED for c in found):  # tools that raise, or are never reached, cannot be judged
            found = [c for c in found if c.law != "footprint" or "/" in c.where]
        rows += [_clean_row(name, c.where, c.law, c.reason) for c in found]
        fair = [f"{name}/{f}" for f in families or domains[name].families]
        rows += [_clean_row(name, where) for where in fair if where not in {c.where for c in found}]
    return rows


def _clean_row(domain: str, where: str, law: str = "", reason: str = "") -> dict[str, Any]:
    return {"domain": domain, "where": where, "fair": not law, "tasks": TASKS, "law": law, "reason": reason}


def survey(
    names: Sequence[str],
    kinds: Sequence[str],
    count: int,
    seed: int,
    severity: int,
    *,
    families: Sequence[str] = (),
    without: Collection[str] = (),
    looks: int = 10,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """One row per domain and kind, with `count` certified draws wanted in each.

    `families` limits which are drawn from; `without` leaves out what is unfair by itself: DOMAIN/FAMILY, or all of a
    domain where it is DOMAIN or DOMAIN.TOOL. `looks` says how long tasks
    are looked at for which a kind does not apply: this many for each one wanted, and for each family.
    """
    rows = []
    for name in names:
        domain = domains[name]
        some = [f for f in families or domain.families if f"{name}/{f}" not in without]
        unfair = any(where.split(".")[0] == name for where in without)
        for kind in kinds if some and not unfair else ():
            if progress:
                progress(name, kind)
            rows.append(_row(domain, some, kind, count, seed, severity, looks))
    return rows


def survey_part(part: tuple[str, str, int, int, int, tuple[str, ...], tuple[str, ...]]) -> list[dict[str, Any]]:
    """One kind in one domain, from values that another process can be given; no row where it cannot be drawn."""
    name, kind, count, seed, severity, families, without = part
    return survey([name], [kind], count, seed, severity, families=families, without=without)


def _tasks(domain: Domain, families: Sequence[str], seed: int) -> Iterator[Task]:
    """Tasks of each family in turn; in the domain's own order if it has one."""
    if type(domain).nth is not Domain.nth:
        return (task for task in tasks(domain, seed) if task.family in families)
    return (domain.task(families[n % len(families)], seed + n) for n in numbers())


def _row(
    domain: Domain, families: Sequence[str], kind: str, count: int, seed: int, severity: int, looks: int
) -> dict[str, Any]:
    certified = refused = not_applicable = failed = 0
    reasons, why_not, where, laws = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for looked, task in enumerate(_tasks(domain, families, seed)):
        if certified == count or looked >= looks * (count + len(families)):
            break
        try:
            drawn = draw(domain, task, [kind], seed, severity=severity)
        except CannotPerturb as cannot:
            if cannot.applies:
                failed += 1
                refused += 1
                reasons[reason_of(cannot, task)] += 1
                laws[cannot.law] += 1
            else:
                not_applicable += 1
                why_not[reason_of(cannot, task)] += 1
            continue
        certified += 1
        where[task.family] += 1
        refused += len(drawn.refused)
        reasons.update(reason_of(unfair, task) for unfair in drawn.refused)
    return {
        "domain": domain.name,
        "kind": kind,
        "applies": certified + failed > 0,
        "certified": certified,
        "refused": refused,
        "failed": failed,
        "not_applicable": not_applicable,
        "families": dict(where),
        "laws": dict(laws.most_common()),  # that the draws broke which failed
        "reasons": dict(reasons.most_common()),
        "why_not": dict(why_not.most_common()),
    }
