"""Proofs that no is the right answer. No proof, no refusal task.

For every end that could meet the request, one of three must hold in the world as it is: the end is *illegal* (it breaks
an invariant that the world enforces on every write), *unwritable* (it needs an effect that no working tool has), or the
agent is *blind* (another world, which no working tool can tell from this one, has another right end).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product
from typing import Any

from crosswind.base.errors import Unfair
from crosswind.core.domain import Domain, words_for
from crosswind.core.footprints import collect, fitting
from crosswind.core.oracle import walk
from crosswind.core.state import effects, unmet
from crosswind.core.types import Changes, Key, Refusal, Task, ToolCall
from crosswind.core.world import Entry

TRIES = 24
WRITES = 60  # writes off the way that are tried to refute a proof


def prove(domain: Domain, task: Task) -> str:
    """Why the request cannot be met once all has happened that happens, or `Unfair`."""
    task = task.replace(events=())
    family = domain.family(task)
    open_task = task.unobstructed()
    seen: set[Key] = set()
    open_walk = walk(domain, open_task, seen=seen)
    start = domain.state(open_task)
    if isinstance(open_walk.end, Refusal):
        raise Unfair("refusal", "the request cannot be met even where nothing stands in its way")
    if not family.goal(open_task, start, open_walk.session.world.state, open_walk.final):
        raise Unfair("refusal", "where nothing stands in its way, the oracle's end does not meet the goal")
    if not task.blocked and family.ends(task, domain.state(task)):
        raise Unfair("refusal", "the request can still be met: an end is left")
    working = {n: e for n, e in domain.world_class.entries.items() if n not in task.blocked}
    reasons = []
    for end in family.conceivable_ends(open_task, start):
        reason = unwritable(domain, task, end, working) or illegal(domain, task, end)
        if reason is None:
            return blind(domain, task, seen, working)
        reasons.append(reason)
    if not reasons:
        raise Unfair("refusal", "the family names no end that could be hoped for")
    first, *others = sorted(set(reasons))
    return first + (f" (and for {len(others)} other ends alike)" if others else "")


def illegal(domain: Domain, task: Task, end: Changes) -> str | None:
    """The end breaks an invariant."""
    if not end:
        return None
    world = domain.world(task)
    world.state.overlay.update(end)
    broken = world.broken()
    return f"illegal: {broken}" if broken else None


def unwritable(domain: Domain, task: Task, end: Changes, working: dict[str, Entry]) -> str | None:
    """The end needs an effect that no working tool has."""
    state = domain.state(task)
    needed = set().union(*(effects(table, state.start(table, id), row) for (table, id), row in end.items()))
    able = frozenset().union(*(entry.effects for entry in working.values()))
    lost = unmet(needed, able)
    return f"unwritable: no working tool does {', '.join(sorted(lost))}" if lost else None


def blind(domain: Domain, task: Task, seen: set[Key], working: dict[str, Entry]) -> str:
    """A world that no working tool can tell from this one has another right end."""
    other = indistinct(domain, task, seen, working)
    if other is None:
        raise Unfair("refusal", "not proved: the end is legal, writable and can be found out")
    hidden = sorted({key.split("/")[0] for key in other.edits if other.edits[key] != task.edits.get(key)})
    where = ", ".join(hidden)
    return f"blind: it cannot be found out, since the right answer depends on {where}, which no working tool shows"


def indistinct(domain: Domain, task: Task, seen: set[Key], working: dict[str, Entry]) -> Task | None:
    """The request in a world that looks the same to every working tool and has another right end; None: none found."""
    family, open_task = domain.family(task), task.unobstructed()
    visible = frozenset().union(*(e.reads for e in working.values()), domain.world_class.invariants)
    covered = set(task.obstacle)  # whole rows lie under the obstacle, so nobody sees what is below
    start = domain.state(open_task)
    rows = seen | {(t, i) for t, _, i in (key.partition("/") for key in covered)}
    here = [domain.normal(open_task, end) for end in family.ends(open_task, start)]
    said = family.answer(open_task, start, start)
    for salt in range(TRIES):

        def moves(table: str, id: str, column: str, names: bool = salt % 2 == 0) -> bool:
            if f"{table}.{column}" in domain.named and not names:
                return False
            return f"{table}/{id}" in covered or f"{table}.{column}" not in visible

        other = domain.varied(open_task, rows, moves, ("blind", salt))
        state = domain.state(other)
        ends = [domain.normal(other, end) for end in family.ends(other, state)]
        if ends and (not any(end in here for end in ends) or family.answer(other, state, state) != said):
            return other.replace(obstacle=task.obstacle, blocked=task.blocked)
    return None


# ---------------------------------------------------------------- refutation, once for each family


def unrefuted(domain: Domain, task: Task) -> None:
    """Refusal: no end that is proved out of reach is reached by a detour that does not count as a change.

    `World.broken` and `normalise` are the author's. Tried are writes that `normalise` passes over, before the way that
    leads to the end where nothing stands in it; and other writing tools in the place of those on that way.
    """
    try:
        if prove(domain, task).startswith("blind"):
            return
    except Unfair:
        return  # no such task is ever drawn
    family, open_task = domain.family(task), task.unobstructed()
    start = domain.state(open_task)
    ends = [normal for end in family.conceivable_ends(open_task, start) if (normal := domain.normal(open_task, end))]
    if not ends:
        return
    open_walk = walk(domain, open_task)
    pool: dict[str, dict[Any, None]] = {}
    collect(pool, task, open_walk.steps)
    for key in task.obstacle:
        pool.setdefault(key.partition("/")[0], {})[key.partition("/")[2]] = None
    way = [inner for step in open_walk.steps for inner, _ in step.inner]
    for tried in _detours(domain, task, way, pool):
        world = domain.world(task)
        for call in tried:
            world.call(call)
        if domain.normalise(world.state) in ends:
            off = [call for call in tried if call not in way]
            calls = ", ".join(f"{c.tool}({', '.join(f'{k}={v!r}' for k, v in c.args.items())})" for c in off)
            raise Unfair(
                "refusal",
                f"{words_for(domain.normalise(world.state))} is proved out of reach, but {calls} on the way "
                "reaches it: enforce the rule for that tool as well, or let `normalise` keep what it changes",
            )


def _detours(
    domain: Domain, task: Task, way: list[ToolCall], pool: dict[str, dict[Any, None]]
) -> Iterator[list[ToolCall]]:
    """Ways to the end with a write that is not on the way, as sequences of calls."""
    tools = {n: e for n, e in domain.world_class.entries.items() if e.spec.writes and n not in task.blocked}
    options = [call for name, entry in tools.items() for call in _options(name, entry, pool)]
    free = []
    for call in options:
        world = domain.world(task)
        if world.call(call).error is None and world.state.changes() and not domain.normalise(world.state):
            free.append(call)
            yield [call, *way]
    if len(free) > 1:
        yield [*free, *way]
        yield [*free[::-1], *way]
    for n, step in enumerate(way):
        if step.tool not in domain.world_class.entries or not domain.world_class.entries[step.tool].spec.writes:
            continue
        own: dict[str, dict[Any, None]] = {**pool, **{name: {value: None} for name, value in step.args.items()}}
        for name, entry in tools.items():
            for other in _options(name, entry, own) if name != step.tool else ():
                yield [*way[:n], other, *way[n + 1 :]]


def _options(name: str, entry: Entry, pool: dict[str, dict[Any, None]]) -> list[ToolCall]:
    choices = [[(p, v) for v in fitting(p, q.type, q.enum, pool)] for p, q in entry.spec.params.items()]
    return [ToolCall(name, dict(args)) for args in islice(product(*choices), WRITES)]
