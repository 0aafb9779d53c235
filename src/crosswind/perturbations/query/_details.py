"""Details of a request that can be taken out of its words; not a perturbation itself."""

from __future__ import annotations

import re
from collections.abc import Mapping

from crosswind.perturbation import Scene
from crosswind.types import Task


def alone(scene: Scene) -> list[str]:
    """Stated details that stand in the query once, literally, and are the only ones of their kind.

    Of two details of one kind neither can be left out: the other could be taken for it.
    """
    brief, details = scene.task.brief, scene.family.details
    literal = [k for k, v in brief.stated.items() if k not in brief.rules and brief.query.count(str(v)) == 1]
    return [k for k in literal if sum(details[k].read is d.read for d in details.values()) == 1]


def replaced(task: Task, gaps: Mapping[str, str]) -> Task:
    """The request with words in the place of details, which the user now keeps to themselves."""
    query, stated, withheld = task.brief.query, dict(task.brief.stated), dict(task.withheld)
    for key, words in gaps.items():
        withheld[key] = stated.pop(key)
        query = _put(words, str(withheld[key]), query)
    vague = {**task.brief.vague, **gaps}
    return task.but(withheld=withheld).briefed(query=query[:1].upper() + query[1:], stated=stated, vague=vague)


def _put(words: str, value: str, query: str) -> str:
    """Words in the place of a value; a unit that they name already is not said twice, as in "3 seats"."""
    found = re.search(rf"{re.escape(value)}( \w+)?", query)
    assert found is not None
    unit = found[1] or ""
    gone = value + unit if value.isdigit() and unit.strip() in words.split() else value
    return query.replace(gone, words)
