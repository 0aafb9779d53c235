"""Draw one certified stack of named kinds over a task, once the domain, the family and the kinds were audited."""

from __future__ import annotations

from collections.abc import Iterable

from crosswind.core.audit import require_fair
from crosswind.core.domain import Domain
from crosswind.core.drawing import ATTEMPTS, SEVERITY, Drawn, DrawScene, draw_unaudited, extend, outwards, parse_kind
from crosswind.core.oracle import Walk
from crosswind.core.types import Task

__all__ = ["ATTEMPTS", "SEVERITY", "DrawScene", "Drawn", "draw", "extend", "outwards", "parse_kind"]


def draw(
    domain: Domain,
    task: Task,
    kinds: Iterable[str | tuple[str, int]],
    seed: int,
    *,
    severity: int = SEVERITY,
    strict: bool = True,
    clean: Walk | None = None,
) -> Drawn:
    """One certified stack of the kinds named, each with its own severity if given as a pair.

    With `strict`, a kind that finds nothing to change is an error; otherwise it is left out, and the result says so.
    Raises `CannotPerturb`, whose `at_fault` says whether the draw, the task or the code of a plug-in is to blame.
    """
    wanted = [(k, severity) if isinstance(k, str) else k for k in kinds]
    require_fair(domain, task.family, [kind for kind, _ in wanted])
    return draw_unaudited(domain, task, wanted, seed, strict=strict, clean=clean)
