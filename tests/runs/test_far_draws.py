"""Draws that actors make for a driver: the episodes of a schedule, also when actors die. Ray itself is not needed."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import pytest

from crosswind.base.errors import CrosswindError
from crosswind.core import drawing
from crosswind.episodes.schedule import Schedule
from crosswind.episodes.suite import load_suite
from crosswind.models.source import AgentSettings
from crosswind.runs.cluster import Actor
from crosswind.runs.far_draws import far_episodes, way_of

SUITE = load_suite("tiers").narrowed(0, ("poi", "retail"))


class Lost(Exception):
    """What Ray raises where an actor is gone."""


class Remote:
    """A method of an actor as Ray gives it: values are copied on their way."""

    def __init__(self, link: Link) -> None:
        self.link = link

    async def remote(self, *given: Any) -> Any:
        self.link.calls += 1
        if not self.link.alive or self.link.calls == self.link.dies_at:
            self.link.alive = False
            raise Lost
        return pickle.loads(pickle.dumps(await self.link.there.deal(*pickle.loads(pickle.dumps(given)))))


class Link:
    def __init__(self, dies_at: int = 0) -> None:
        self.there = Actor([], "", "oracle", AgentSettings().model_dump(), "", 0, None, None, (), 1)
        self.alive, self.calls, self.dies_at = True, 0, dies_at
        self.actor = self
        self.deal = Remote(self)


class Player:
    class ray:
        class exceptions:
            RayError = Lost

    def __init__(self, *links: Link) -> None:
        self.links = list(links)

    async def some_actor(self) -> Any:
        return next(link for link in self.links if link.alive)


def far(schedule: Schedule, *links: Link) -> list[Any]:
    async def all_of() -> list[Any]:
        return [one async for one in far_episodes(schedule, Player(*links))]  # type: ignore[arg-type]

    return asyncio.run(all_of())


def told(schedule: Schedule) -> tuple[Any, ...]:
    return schedule.planned, schedule.whole, schedule.never_met, schedule.never_played


@pytest.mark.parametrize(
    ("limit", "trials", "shard", "dies_at"),
    [
        (150, 2, (1, 1), 0),
        (150, 2, (1, 1), 1),
        (150, 2, (1, 1), 4),
        (120, 1, (2, 3), 0),
        (120, 1, (2, 3), 4),
        (None, 1, (1, 2), 0),
    ],
)
def test_the_episodes_are_those_of_a_local_schedule(
    limit: int | None, trials: int, shard: tuple[int, int], dies_at: int
) -> None:
    here = Schedule(SUITE, 1, trials=trials, limit=limit, shard=shard)
    local = [one for one in here if one is not None]
    there = Schedule(SUITE, 1, trials=trials, limit=limit, shard=shard)
    found = far(there, Link(dies_at), Link())
    assert [one.key for one in found] == [one.key for one in local]
    assert [one.way for one in found] == [way_of(one.drawn) for one in local]
    assert told(there) == told(here)
    if dies_at:
        return
    half = {one.key for one in local[::2]}
    again = Schedule(SUITE, 1, trials=trials, limit=limit, shard=shard, finished=half)
    assert [one.key for one in far(again, Link())] == [one.key for one in local[1::2]]
    assert again.planned == here.planned


def test_a_table_that_is_taken_over_draws_nothing_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []
    real = drawing.draw_unaudited

    def counted(domain: Any, task: Any, kinds: Any, *given: Any, **more: Any) -> Any:
        drawn.append((task.id, tuple(kinds)))
        return real(domain, task, drawn[-1][1], *given, **more)

    monkeypatch.setattr("crosswind.core.draw.draw_unaudited", counted)
    one = SUITE.narrowed(0, ("poi",))
    far(Schedule(one, 1, limit=60), Link(dies_at=4), Link())
    assert len(drawn) > 60
    assert len(drawn) == len(set(drawn))


def test_what_goes_wrong_in_a_draw_ends_the_run_with_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("in a plug-in")

    monkeypatch.setattr("crosswind.core.draw.draw_unaudited", broken)
    with pytest.raises(CrosswindError, match="ZeroDivisionError: in a plug-in"):
        far(Schedule(SUITE, 1, limit=10), Link())
