"""Proofs that refusing is right, and a search that tries to refute each of them."""

from __future__ import annotations

from functools import cache
from random import Random

import pytest

from crosswind.base.errors import CannotPerturb, Unfair
from crosswind.core import refusal_proofs
from crosswind.core.domain import Domain
from crosswind.core.draw import draw
from crosswind.core.oracle import walk
from crosswind.core.registry import domains
from crosswind.core.types import Key, Task
from tests.laws.search import Search

SEEDS = range(2)
KINDS = ("unsolvable", "missing_tool")


@cache
def refusals(domain: Domain, kind: str) -> list[Task]:
    """Tasks of every family that a kind turned into refusals; several tests look at the same ones."""
    out = []
    for name in domain.families:
        for seed in SEEDS:
            try:
                out.append(draw(domain, domain.task(name, seed), [kind], seed, severity=1 + seed * 4).certificate.task)
            except CannotPerturb:
                continue
    return out


def native(domain: Domain) -> list[Task]:
    return [domain.task(f.name, seed) for f in domain.families.values() if f.refusal for seed in SEEDS]


def refute(domain: Domain, task: Task) -> str:
    """Why the proof does not hold, or nothing."""
    proof = refusal_proofs.prove(domain, task)
    if not proof.startswith("blind"):
        conceivable_ends = domain.family(task).conceivable_ends(task.unobstructed(), domain.state(task.unobstructed()))
        return "a search reached the end" if Search(domain, task).reaches(conceivable_ends) else ""
    seen: set[Key] = set()
    walk(domain, task.unobstructed(), seen=seen)
    working = {n: e for n, e in domain.world_class.entries.items() if n not in task.blocked}
    other = refusal_proofs.indistinct(domain, task, seen, working)
    assert other is not None
    return tells_apart(domain, task, other)


def tells_apart(domain: Domain, one: Task, two: Task) -> str:
    """The first call that answers differently in two worlds."""
    search, world = Search(domain, one), domain.world(two)
    for call, result in search.reads():
        if world.call(call) != result:
            return f"{call} tells the worlds apart"
    return ""


@pytest.mark.parametrize("name", domains.names())
@pytest.mark.parametrize("kind", KINDS)
def test_no_search_refutes_a_proof(name: str, kind: str) -> None:
    domain = domains[name]
    tasks = refusals(domain, kind)
    assert len(tasks) >= 12
    for n, task in enumerate(tasks):
        if n % 4 in (0, 3):  # of two neighbouring families one draw each, weak and strong: a search takes seconds
            assert not refute(domain, task), task.id


@pytest.mark.parametrize("name", domains.names())
def test_no_search_refutes_a_refusal_family(name: str) -> None:
    domain = domains[name]
    for task in native(domain):
        assert not refute(domain, task), task.id


@pytest.mark.parametrize("name", domains.names())
def test_the_search_is_able(name: str) -> None:
    """Where nothing stands in the way the same search reaches the end, and tells such worlds apart."""
    domain = domains[name]
    reached, told = [], []
    for task in (*refusals(domain, "unsolvable"), *refusals(domain, "missing_tool")):
        wish = task.unobstructed()
        proof = refusal_proofs.prove(domain, task)
        if not proof.startswith("blind"):
            reached.append(Search(domain, wish).reaches(domain.family(wish).ends(wish, domain.state(wish))))
        else:
            seen: set[Key] = set()
            walk(domain, wish, seen=seen)
            working = {n: e for n, e in domain.world_class.entries.items() if n not in task.blocked}
            other = refusal_proofs.indistinct(domain, task, seen, working)
            assert other is not None
            told.append(bool(tells_apart(domain, wish, other.unobstructed())))
    assert len(reached) >= 6
    assert sum(reached) >= 0.8 * len(reached)
    assert len(told) >= 6
    assert sum(told) >= 0.8 * len(told)


@pytest.mark.parametrize("name", domains.names())
def test_each_way_of_proving_is_used(name: str) -> None:
    domain = domains[name]
    tasks = [*refusals(domain, "unsolvable"), *refusals(domain, "missing_tool"), *native(domain)]
    ways = {refusal_proofs.prove(domain, task).split(":")[0] for task in tasks}
    assert ways == {"illegal", "unwritable", "blind"}


@pytest.mark.parametrize("name", domains.names())
def test_nearly_every_obstacle_is_provable(name: str) -> None:
    """Now and then no other world is found in which the end would be another; such a draw is refused."""
    domain = domains[name]
    proved = []
    for family in domain.families.values():
        for seed in range(8):
            task = domain.task(family.name, seed).unobstructed()
            for edits in family.obstacles(task, domain.state(task), Random(seed)):
                try:
                    proved.append(bool(refusal_proofs.prove(domain, task.replace(obstacle=edits))))
                except Unfair:
                    proved.append(False)
    assert sum(proved) >= 0.95 * len(proved)
