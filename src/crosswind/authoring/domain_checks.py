"""What a domain in Python lacks before anything is drawn from it: missing parts, wrong types, holes without details."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from string import Formatter
from typing import Any

from crosswind.core.domain import Detail, Domain, Family
from crosswind.core.world import World

HOOKS = {
    "propose": "the details of a request, or None",
    "solve": "a generator that makes the calls and returns the answer",
    "ends": "the changes that meet the request, from the rows",
}


def relative_path(path: str) -> str:
    """A path as seen from the current folder, if it is in it."""
    return path.removeprefix(os.getcwd() + os.sep)


def place(thing: Any) -> str:
    """FILE:LINE of a class or function."""
    try:
        return f"{relative_path(str(inspect.getsourcefile(thing)))}:{inspect.getsourcelines(thing)[1]}"
    except (OSError, TypeError):
        return getattr(thing, "__qualname__", "?")


def problems(domain: Domain) -> Iterator[str]:
    """Each thing that is wrong with a domain as it was registered, with its place."""
    at, name = place(type(domain)), domain.name
    for part, what in (("summary", "one line about it"), ("policy", "what an agent is told")):
        if not isinstance(getattr(domain, part, None), str):
            yield f"{at}: the domain {name!r} has no `{part}`; add it, {what}"
    world = getattr(domain, "world_class", None)
    if not (isinstance(world, type) and issubclass(world, World)):
        yield f"{at}: the domain {name!r} has no `world_class`; name your subclass of World there"
    elif not world.specs:
        yield f"{place(world)}: {world.__name__} has no tools; write its methods under @tool(...)"
    if type(domain).derive is Domain.derive:
        yield f"{at}: the domain {name!r} has no `derive(seed, size, split)`; add it, it gives any row of a world"
    families = getattr(domain, "families", None)
    if not isinstance(families, dict) or not families:
        yield f"{at}: the domain {name!r} has no families; set self.families = {{family.name: family}} in __init__"
        return
    for key, family in families.items():
        if not isinstance(family, Family):
            yield f"{at}: the family {key!r} of {name} is {type(family).__name__}; expected an object of a Family class"
            continue
        yield from _family(domain, key, family)


def _family(domain: Domain, key: str, family: Family) -> Iterator[str]:
    cls, own = type(family), f"the family {domain.name}/{key}"
    at = place(cls)
    if getattr(family, "name", None) != key:
        yield f"{at}: {own} calls itself {getattr(family, 'name', None)!r}; use one name"
    if getattr(family, "domain", None) is not domain:
        yield f"{at}: {own} has no `domain`; set self.domain = domain in __init__"
    if getattr(family, "level", None) not in (1, 2, 3):
        yield f"{at}: {own} has the level {getattr(family, 'level', None)!r}; expected 1, 2 or 3"
    draws = cls.draw is not Family.draw
    for hook, what in HOOKS.items():
        if getattr(cls, hook) is getattr(Family, hook) and not (draws and hook == "propose"):
            yield f"{at}: {own} has no `{hook}`; add it: {what}"
    if not inspect.isgeneratorfunction(cls.solve):
        yield f"{place(cls.solve)}: `solve` of {own} makes no call; write result = yield ToolCall(tool, args)"
    if family.refusal and cls.obstacles is Family.obstacles:
        yield f"{at}: {own} is to be refused and has no `obstacles`; add what makes it impossible"
    details = getattr(family, "details", None)
    if not isinstance(details, dict) or not all(isinstance(d, Detail) for d in details.values()):
        yield f"{at}: {own} has no `details`; expected a dict of Detail, empty where requests state nothing"
        details = None
    queries: object = family.queries
    if not isinstance(queries, (tuple, list)) or (not queries and not draws):
        got = "one text" if isinstance(queries, str) else "nothing" if not queries else type(queries).__name__
        yield f'{at}: {own} has {got} in `queries`; expected a tuple of texts, as in ("...",)'
    elif details is not None:
        yield from _holes(at, own, family)


def _holes(at: str, own: str, family: Family) -> Iterator[str]:
    """Holes of queries that no detail fills."""
    known = ", ".join(family.details) or "none"
    for query in family.queries:
        try:
            holes = [hole for _, hole, _, _ in Formatter().parse(query) if hole is not None]
        except ValueError as error:
            yield f"{at}: {own} has a query that cannot be filled in ({error}): {query!r}"
            continue
        for hole in holes:
            if hole not in family.details:
                yield f"{at}: {own} has {{{hole}}} in a query, which is not one of its details ({known}): {query!r}"
