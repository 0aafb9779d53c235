"""What the tools of a domain return, as far as clean solutions meet it; not a perturbation itself.

A layer that is drawn must know which tools on the way have numbers, times or rows to bite on. Asking each time would
cost a walk, and what a canonical tool returns does not change from task to task, so it is looked up once per domain.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from crosswind.core.domain import Domain
from crosswind.core.oracle import walk
from crosswind.core.perturbation import Scene
from crosswind.core.types import ToolSpec
from crosswind.perturbations.observation._rows import is_date, is_id, is_number, is_time, records

SEEDS = (0, 1)  # of the tasks that are looked at, in each family


@dataclass(frozen=True, slots=True)
class Shape:
    """What a canonical tool returns."""

    id: str  # a key, or else a parameter, whose value tells a record from the others; empty where none does
    rows: bool  # the id is a key of each row
    figures: tuple[str, ...]  # keys of numbers and times of day
    facts: tuple[str, ...]  # keys of all values that are not ids, figures first


@lru_cache(maxsize=32)
def shapes(domain: Domain) -> dict[str, Shape]:
    """The shapes of all canonical tools that clean solutions call."""
    found: dict[str, list[Any]] = {}
    for family in domain.families:
        for seed in SEEDS:
            for step in walk(domain, domain.task(family, seed)).calls:
                if isinstance(step.result.content, (dict, list)) and step.result.content:
                    found.setdefault(step.call.tool, []).append(step.result.content)
    return {name: _shape(domain.world_class.entries[name].spec, contents) for name, contents in found.items()}


def _shape(spec: ToolSpec, contents: list[Any]) -> Shape:
    rows = [record for content in contents for record in records(content)]
    keys = list(dict.fromkeys(key for row in rows for key in row))
    values = {key: [row[key] for row in rows if key in row and row[key] not in (None, "")] for key in keys}
    figures = [key for key in keys if values[key] and all(is_number(v) or is_time(v) for v in values[key])]
    facts = [key for key in keys if not any(isinstance(v, (dict, list)) or is_id(v) for v in values[key])]
    lists = [content for content in contents if isinstance(content, list)]
    id = next((key for key in keys if lists and all(_tells_apart(key, content) for content in lists)), "")
    sole = next(iter(spec.params)) if len(spec.params) == 1 else ""
    return Shape(
        id=id if lists else sole,
        rows=bool(lists),
        figures=tuple(figures),
        facts=tuple(sorted(facts, key=lambda key: key not in figures)),
    )


def _tells_apart(key: str, rows: list[Any]) -> bool:
    ids = [row.get(key) for row in rows if isinstance(row, dict)]
    return all(map(is_id, ids)) and len(set(ids)) == len(rows)


def sort_of(value: Any) -> str:
    """Which sort of value it is that people write in different ways; empty: none."""
    if isinstance(value, float) or (is_number(value) and abs(value) >= 1000):
        return "number"
    return "date" if is_date(value) else "time" if is_time(value) else ""


def sorts_of(content: Any) -> set[str]:
    """The sorts of the values in some content."""
    if isinstance(content, (dict, list)):
        parts = content.values() if isinstance(content, dict) else content
        return set().union(*map(sorts_of, parts))
    sort = sort_of(content)
    return {sort} if sort else set()


def shape_of(domain: Domain, spec: ToolSpec) -> Shape | None:
    """The shape of a shown tool; None where it stands for no canonical tool, or for several."""
    known = shapes(domain)
    found = [id for id in spec.ids if id in known]
    return known[found[0]] if len(found) == 1 and not spec.opaque else None


def answered(scene: Scene) -> list[str]:
    """Tools on the way that answer with something."""
    if not scene.task.refuse:
        return scene.path
    # on the way to a refusal some come back empty, or with an error
    return list(dict.fromkeys(s.call.tool for s in scene.gold if s.result.error is None and s.result.content))


def on_the_way(scene: Scene) -> dict[str, Shape]:
    """Those of them whose results have a known shape, by the names shown."""
    shown = scene.tools
    found = ((name, shape_of(scene.domain, shown[name])) for name in dict.fromkeys(answered(scene)) if name in shown)
    return {name: shape for name, shape in found if shape}


def reading(scene: Scene) -> dict[str, Shape]:
    """Those of them that write nothing and give figures."""
    shown = scene.tools
    return {name: shape for name, shape in on_the_way(scene).items() if shape.figures and not shown[name].writes}
