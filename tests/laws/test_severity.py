"""Severity means something: there are more single obstacles at 5 than at 3 than at 1, and they cost success."""

from __future__ import annotations

import asyncio
from functools import cache
from itertools import islice

import pytest

from crosswind.base.errors import CannotPerturb
from crosswind.core.draw import Drawn, draw
from crosswind.core.oracle import Walk, walk
from crosswind.core.registry import domains, perturbations
from crosswind.core.types import Task
from crosswind.episodes.play import judge, play
from crosswind.episodes.schedule import tasks
from tests.stumbler import Stumbler

pytestmark = pytest.mark.slow

PLACES = ("poi", "retail")
LOOKED = 40


@cache
def looked_at(name: str) -> list[tuple[Task, Walk]]:
    """The tasks that every kind meets at every severity, each with its clean way."""
    return [(task, walk(domains[name], task)) for task in islice(tasks(domains[name], 900), LOOKED)]


def draws(kind: str, severity: int) -> list[Drawn]:
    """The same tasks at every severity, as far as the kind applies."""
    out = []
    for name in PLACES:
        for task, clean in looked_at(name):
            try:
                out.append(draw(domains[name], task, [kind], 5, severity=severity, clean=clean))
            except CannotPerturb as cannot:
                if cannot.applies:
                    raise
    return out


@pytest.mark.parametrize("kind", perturbations.names())
def test_more_severe_means_more_obstacles_and_fewer_passes(kind: str) -> None:
    means, failed = [], []
    for severity in (1, 3, 5):
        drawn = draws(kind, severity)
        assert len(drawn) >= 12, f"{kind} applies to {len(drawn)} of {len(PLACES) * LOOKED} tasks"
        difficulty = [d.layers[0].difficulty(d.certificate.gold.steps, 0) for d in drawn]
        assert min(difficulty) >= 1
        means.append(sum(difficulty) / len(difficulty))
        passed = [judge(asyncio.run(play(d, Stumbler(d), "stumbler"))).outcome == "pass" for d in drawn]
        failed.append(1 - sum(passed) / len(passed))
    assert means[0] < means[1] < means[2]
    assert failed[0] < failed[2]
