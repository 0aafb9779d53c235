"""Play the episodes of a run on a Ray cluster.

Actors deal, draw and certify, each some domains (`far_draws.py`), and play. The driver puts their turns in the order of
the suite, counts, stops and alone writes the store. An episode is played where it was drawn, unless that actor has too
much to do or died: another one walks the certified way again, from the JSON of its layers, and plays nothing if that is
not the one that was certified. An episode whose actor died has the next actor for itself; if those die too, the agent
kills them, and the episode ends as an exception of it.

A message costs Ray about as much as a scripted agent needs for an episode, so episodes travel several at a time
(`Outbox`). For agents that wait for a model the ends of a link wait for company only as long as nobody notices.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any

from crosswind.base.errors import AgentException, CrosswindError, InfrastructureError, Unfair
from crosswind.base.version import __version__
from crosswind.core.domain import JUDGE
from crosswind.core.draw import Drawn
from crosswind.core.types import Agent, Message, Tools
from crosswind.episodes.brief import Brief
from crosswind.episodes.schedule import Episode, Schedule
from crosswind.models.source import AgentSettings, AgentSource
from crosswind.models.spec import open_agent
from crosswind.runs.far_draws import FarEpisode, FarTurn, Gone, RecentDraws, Seat, Sent, Table, far_episodes, retraced
from crosswind.runs.ray_map import ATTEMPTS, PLUGINS, connect, find_modules
from crosswind.runs.runner import PAUSES, Crash, play_episode, wait_for_us
from crosswind.runs.store import as_line

START = 120.0  # seconds for the first actor to start
AHEAD = 128  # episodes that an actor of an agent that never waits has ready while it plays one
TOGETHER = 32  # episodes in a message
BRIEFLY, LONG = 0.01, 0.25  # seconds in which they gather, for agents that wait for a model and for those that never do
SLACK = 4  # more episodes that an actor may have than another, to play those that it drew itself


def _playing(source: AgentSource) -> dict[str, Any]:
    """What must be the same wherever episodes of a run are played."""
    return {"crosswind": __version__, "judge": JUDGE, "the agent's code": source.settings.get("code", "")}


class Outbox:
    """Episodes on their way to the other end of a link: those of a moment go together."""

    def __init__(self, at_a_time: int) -> None:
        self.moment = LONG if at_a_time == 1 else BRIEFLY
        self.episodes: list[tuple[int, Any]] = []  # each with its number
        self.some, self.enough = asyncio.Event(), asyncio.Event()

    def put(self, number: int, episode: Any) -> None:
        self.episodes.append((number, episode))
        self.some.set()
        if len(self.episodes) >= TOGETHER:
            self.enough.set()

    async def take(self) -> list[tuple[int, Any]]:
        """At least one of them."""
        await self.some.wait()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.enough.wait(), self.moment)
        self.some.clear()
        self.enough.clear()
        taken, self.episodes = self.episodes, []
        return taken


class Actor:
    """One process on the cluster. It finds the modules and plug-ins of the driver; keys come from its node."""

    def __init__(
        self,
        path: Sequence[str],
        plugins: str,
        agent: str,
        settings: dict[str, Any],
        ending: str,
        seed: int,
        seconds: float | None,
        repeats: int | None,
        pauses: Sequence[float],
        at_a_time: int,
    ) -> None:
        find_modules(path, plugins)
        self.source = open_agent(agent, AgentSettings.model_validate(settings), ending)
        self.timed: dict[str, Any] = {}
        self.play = partial(play_episode, seed=seed, seconds=seconds, repeats=repeats, pauses=pauses, timed=self.timed)
        self.tables: dict[str, Table] = {}  # by domain
        self.drawn = RecentDraws()
        self.free = asyncio.Semaphore(at_a_time)
        self.under_way: set[asyncio.Task[None]] = set()
        self.finished = Outbox(at_a_time)

    async def ready(self) -> dict[str, Any]:
        """What plays here, once the actor has started."""
        return _playing(self.source)

    async def deal(
        self, domain: str, most: int, seat: Seat | None
    ) -> tuple[list[FarTurn], tuple[Gone, ...] | None, str]:
        """The next turns in a domain; those that gave up after them if there are no more, and an error's words.

        A seat begins a table, or goes on with one where another actor stopped.
        """
        turns: list[FarTurn] = []
        try:
            if seat is not None:
                self.tables[domain] = Table(domain, seat, self.drawn)
            while len(turns) < most:
                await asyncio.sleep(0)  # episodes under way have their turn
                began = time.monotonic()
                turn = self.tables[domain].turn()
                wait_for_us(self.timed, time.monotonic() - began)
                if turn is not None:
                    turns.append(turn)
        except StopIteration as over:
            return turns, over.value, ""
        except Exception as error:  # as words: not every exception survives the way
            told = str(error) if isinstance(error, CrosswindError) else f"{type(error).__name__}: {error}"
            return turns, None, told
        return turns, None, ""

    async def submit(self, episodes: Sequence[tuple[int, Sent]]) -> None:
        """Take episodes, each with a number, and play them in their order."""
        for number, episode in episodes:
            task = asyncio.create_task(self._finish(number, episode))
            self.under_way.add(task)
            task.add_done_callback(self.under_way.discard)

    async def collect(self) -> list[tuple[int, Any]]:
        """What was finished since this was last asked: at least one episode."""
        return await self.finished.take()

    async def _finish(self, number: int, sent: Sent) -> None:
        """Play an episode; whatever is raised goes to the driver, as data: not every exception survives the way."""
        async with self.free:
            try:
                way, condition, severity, trial = sent
                drawn = self.drawn.find(way)
                episode = Episode(condition, drawn.base.id, drawn, severity, trial)
                record = await self.play(episode, self.source)
                self.timed.pop(episode.key, None)
                found: Any = (as_line(record), Brief.of(record))
            except Crash as crash:
                found = {"crash": f"{type(crash.error).__name__}: {crash.error}", "by_agent": crash.by_agent}
            except Unfair as unfair:
                found = {"error": f"{unfair}; every node needs the same crosswind and the same plug-ins"}
            except CrosswindError as error:
                found = {"error": str(error)}
            except BaseException as error:
                found = {"crash": f"{type(error).__name__}: {error}", "by_agent": False}
        self.finished.put(number, found)


class _Gone:
    """An agent that killed every process it played in: as its source, and in its one turn."""

    resumes = False

    def __init__(self, source: AgentSource, why: str) -> None:
        self.name, self.ending, self.settings, self.price = source.name, source.ending, source.settings, source.price
        self.concurrency, self.why = source.concurrency, why

    def make(self, drawn: Drawn) -> Agent:
        return self

    async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
        raise AgentException(self.why)

    async def aclose(self) -> None:
        pass


class ActorDied(Exception):
    """The process that played an episode is gone."""


class Link:
    """The driver's end of an actor."""

    def __init__(self, actor: Any, at_a_time: int) -> None:
        self.actor = actor
        self.taken = False  # one episode has it for itself
        self.alive = True
        self.under_way: dict[int, asyncio.Future[Any]] = {}
        self.numbers = count()
        self.to_send = Outbox(at_a_time)

    async def play(self, episode: Sent) -> Any:
        """What an episode comes to; raises `ActorDied`."""
        if not self.alive:
            raise ActorDied
        number, self.under_way[number] = next(self.numbers), (future := asyncio.get_running_loop().create_future())
        self.to_send.put(number, episode)
        try:
            return await future
        finally:
            self.under_way.pop(number, None)

    async def carry(self) -> None:
        """Carry episodes there and back until the actor is dead."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._send())
                group.create_task(self._receive())
        except* Exception:  # an actor that cannot be reached is as good as dead, whatever Ray says about it
            pass
        finally:
            self.alive = False
            for future in self.under_way.values():
                if not future.done():
                    future.set_exception(ActorDied())

    async def _send(self) -> None:
        while True:
            await self.actor.submit.remote(await self.to_send.take())

    async def _receive(self) -> None:
        while True:
            for number, found in await self.actor.collect.remote():
                future = self.under_way.get(number)
                if future is not None and not future.done():
                    future.set_result(found)


class RayPlayer:
    """The actors of a run. Use it as an asynchronous context manager."""

    def __init__(
        self,
        agent: str,
        settings: AgentSettings,
        ending: str = "",
        *,
        seed: int = 0,
        seconds: float | None = None,
        repeats: int | None = None,
        pauses: Sequence[float] = PAUSES,
        address: str = "",
        actors: int = 0,
        gpus: float = 0,
        concurrency: int = 0,
    ) -> None:
        self.ray, self.own = connect(address)
        self.wanted = actors or max(1, int(self.ray.cluster_resources().get("CPU", 1)))
        self.source = open_agent(agent, settings, ending)
        each = max(1, -(-concurrency // self.wanted)) if concurrency else self.source.concurrency
        self.concurrency = concurrency or self.wanted * (each if each > 1 else each + AHEAD)
        self.each = each
        self.given = (agent, settings.model_dump(), ending, seed, seconds, repeats, tuple(pauses), each)
        self.seed = seed
        self.options = {"num_cpus": 1, "num_gpus": gpus}
        self.links: list[Link] = []  # to the actors that answer
        self.slack = SLACK if each > 1 else TOGETHER
        self.running: set[asyncio.Task[None]] = set()
        self.starting = 0
        self.lost = 0  # actors that died
        self.why = ""  # the last one failed to start
        self.changed = asyncio.Event()

    async def __aenter__(self) -> RayPlayer:
        for _ in range(self.wanted):
            self._start()
        await self.some_actor()
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self.running:
            task.cancel()
        await asyncio.gather(*self.running, return_exceptions=True)
        for link in self.links:
            self.ray.kill(link.actor)
        await self.source.aclose()
        if self.own:
            self.ray.shutdown()

    def drawn(self, schedule: Schedule) -> AsyncIterator[FarEpisode]:
        """The episodes of a schedule in its order, drawn by the actors."""
        return far_episodes(schedule, self)

    async def play(self, episode: FarEpisode) -> tuple[bytes, Brief]:
        """Play an episode where it was drawn, or on the actor with the fewest; if that one dies, on one of its own."""
        sent = (episode.way, episode.condition, episode.severity, episode.trial)
        for attempt in range(ATTEMPTS):
            link = await (self._own_actor() if attempt else self.some_actor(episode.where))
            try:
                found = await link.play(sent)
            except ActorDied:
                continue
            finally:
                if attempt:
                    link.taken = False
                self.changed.set()
            if isinstance(found, tuple):
                return found
            if "crash" in found:
                raise Crash(episode.key, RuntimeError(found["crash"]), by_agent=found["by_agent"])
            raise CrosswindError(found["error"])
        why = f"{ATTEMPTS} processes died while they played it, {ATTEMPTS - 1} of them with nothing else to play"
        gone = _Gone(self.source, f"ProcessDied: {why}; see the logs of Ray")
        drawn = retraced(episode.way)
        here = Episode(episode.condition, drawn.base.id, drawn, episode.severity, episode.trial)
        record = await play_episode(here, gone, seed=self.seed)
        return as_line(record), Brief.of(record)

    async def _own_actor(self) -> Link:
        """An actor that plays nothing else, so that whoever kills it is known, and kills nobody else's episode."""
        while True:
            link = await self.some_actor()
            link.taken = True
            try:
                while link.under_way and link.alive:
                    self.changed.clear()
                    await self.changed.wait()
            except asyncio.CancelledError:
                link.taken = False
                raise
            if link.alive:
                return link

    async def some_actor(self, home: Link | None = None) -> Link:
        """The actor with the fewest episodes; where it makes little difference, this one."""
        async with asyncio.timeout(None if self.links else START) as clock:
            try:
                while not (free := [link for link in self.links if not link.taken]):
                    self.changed.clear()
                    if not self.starting and not self.links:
                        raise CrosswindError(f"no actor starts on the Ray cluster: {self.why}")
                    await self.changed.wait()
            except asyncio.CancelledError:
                if clock.expired():
                    has = self.ray.available_resources()
                    raise InfrastructureError(
                        f"no actor started within {START:g} s; the cluster has free: {has}"
                    ) from None
                raise
        least = min(free, key=lambda link: len(link.under_way))
        if home in free and len(home.under_way) <= len(least.under_way) + self.slack:
            return home
        return least

    def _start(self) -> None:
        """Start an actor; it gets episodes once it answers, wherever the cluster has room for it."""
        plugins = os.environ.get(PLUGINS, "")
        made = self.ray.remote(Actor).options(**self.options).remote([os.getcwd(), *sys.path], plugins, *self.given)
        self.starting += 1
        task = asyncio.ensure_future(self._run(Link(made, self.each)))
        self.running.add(task)
        task.add_done_callback(self.running.discard)

    async def _run(self, link: Link) -> None:
        """Give an actor episodes for as long as it lives, and start another when it dies."""
        try:
            there = await link.actor.ready.remote()
            if unlike := [
                f"{what} is {there.get(what)!r} there and {ours!r} here"
                for what, ours in _playing(self.source).items()
                if there.get(what) != ours
            ]:
                self.why = (
                    f"a node has other code than this process: {'; '.join(unlike)}; install the same on every node"
                )
                self.ray.kill(link.actor)
                return
        except self.ray.exceptions.RayError as error:
            self.why = str(error).strip().splitlines()[-1]
            return
        finally:
            self.starting -= 1
            self.changed.set()
        self.links.append(link)
        self.changed.set()
        try:
            await link.carry()
        finally:
            self.changed.set()
        self.links.remove(link)
        self.lost += 1
        self._start()
