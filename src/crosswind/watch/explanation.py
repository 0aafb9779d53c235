"""A kind that may be behind a change, with how well it fits and its value where that could be told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from crosswind.core.perturbation import Perturbation
from crosswind.core.registry import perturbations
from crosswind.watch.differences import respelt
from crosswind.watch.observed import Listing, spec_of


@dataclass(frozen=True, slots=True)
class Explanation:
    """One explanation of a change."""

    kind: str
    fit: float  # from 0 to 1
    severity: int = 3
    tools: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    layer: dict[str, Any] | None = None
    is_proved: bool = False  # the layer makes the list after the change out of the one before


def layer_of(kind: str, **fields: Any) -> tuple[dict[str, Any] | None, Perturbation | None]:
    """A fitted perturbation as JSON and as a value; nothing where the fields do not make one."""
    try:
        layer = perturbations[kind].model_validate({"kind": kind, **fields}, strict=False)
    except ValidationError:
        return None, None
    return layer.model_dump(mode="json"), layer


def explains(layer: Perturbation | None, before: Listing, after: Listing, names: Mapping[str, str]) -> bool:
    """Does a layer make one list of tools out of another, order apart? `names` are the new names that texts use."""
    if layer is None or not before:
        return False
    specs = tuple(spec_of(replace(tool, doc=respelt(tool.doc, names))) for tool in before)
    made = {tool.name: tool.function() for tool in layer.on_tools(specs, 0) if tool.listed}
    there = {spec.name: spec.function() for spec in map(spec_of, after)}
    return made == there


def share_severity(changed: int, tools: int, called: int) -> int:
    """The severity of kinds that take one tool, half of them, all on the way, and others too."""
    if changed <= 1:
        return 1
    share = changed / max(1, tools)
    if share >= 0.95:
        return 5
    if share > 0.72:
        return 4
    return 3 if changed >= max(called, 2) else 2


def nearest(value: float, steps: Mapping[int, float]) -> int:
    """The severity whose figure is nearest to a value."""
    return min(steps, key=lambda severity: abs(steps[severity] - value))


def best(found: Iterable[Explanation]) -> list[Explanation]:
    """One hypothesis for each kind, the best first."""
    out: dict[str, Explanation] = {}
    for one in found:
        if one.fit > 0 and (one.kind not in out or out[one.kind].fit < one.fit):
            out[one.kind] = one
    return sorted(out.values(), key=lambda one: (-one.fit, one.kind))
