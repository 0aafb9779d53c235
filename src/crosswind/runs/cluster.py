"""Play the episodes of a run on a Ray cluster.

The driver draws, certifies, counts, stops and alone writes the store. Actors play: each walks the certified way again,
from the JSON of its layers, and plays nothing if that is not the driver's. An episode whose actor died goes to another
actor, which it has for itself; if those die too, the agent kills them, and the episode ends as an exception of it.

A message costs Ray about as much as a scripted agent needs for an episode, so episodes travel several at a time
(`Outbox`). For agents that wait for a model the ends of a link wait for company only as long as nobody notices.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache, partial
from itertools import count
from typing import Any

from crosswind.base.errors import AgentException, CrosswindError, InfrastructureError, Unfair
from crosswind.base.version import __version__
from crosswind.core.certify import fingerprint, retrace
from crosswind.core.domain import JUDGE
from crosswind.core.draw import Drawn
from crosswind.core.oracle import Walk, Walks
from crosswind.core.perturbation import load_layers
from crosswind.core.registry import domains
from crosswind.core.types import Agent, Message, Tools
from crosswind.episodes.brief import Brief
from crosswind.episodes.record import task_of
from crosswind.episodes.schedule import Episode
from crosswind.models.source import AgentSettings, AgentSource
from crosswind.models.spec import open_agent
from crosswind.runs.ray_map import ATTEMPTS, PLUGINS, connect, find_modules
from crosswind.runs.runner import PAUSES, Crash, play_episode
from crosswind.runs.store import as_line

START = 120.0  # seconds for the first actor to start
AHEAD = 128  # episodes that an actor of an agent that never waits has ready while it plays one
TOGETHER = 32  # episodes in a message
BRIEFLY, LONG = 0.01, 0.25  # seconds in which they gather, for agents that wait for a model and for those that never do
SLACK = 4  # more episodes that an actor may have than another, to play a task whose clean walk it knows
RECENT = 64  # draws that an actor keeps: the trials of one draw follow each other, and so do the draws over one task

Way = tuple[str, str, str, str, str]  # domain, task, layers as JSON, proof, fingerprint of the certificate
Sent = tuple[Way, str, int | None, int]  # with the condition, the severity and the trial


@lru_cache(RECENT)
def _clean(domain: str, task_id: str) -> Walk:
    return Walks(domains[domain], task_of(domains[domain], task_id)).clean


@lru_cache(RECENT)
def _retraced(way: Way) -> Drawn:
    name, task_id, layers, proof, expected = way
    domain, stack = domains[name], load_layers(json.loads(layers), task_id)
    task, clean = task_of(domain, task_id), _clean(name, task_id)
    return Drawn(domain, task, stack, retrace(domain, task, stack, proof, expected, clean))


def _way(drawn: Drawn) -> Way:
    """What an actor needs to know of a draw."""
    layers = json.dumps([layer.model_dump(mode="json") for layer in drawn.layers])
    return drawn.domain.name, drawn.base.id, layers, drawn.certificate.proof, fingerprint(drawn.certificate)


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
        self.play = partial(play_episode, seed=seed, seconds=seconds, repeats=repeats, pauses=pauses)
        self.free = asyncio.Semaphore(at_a_time)
        self.under_way: set[asyncio.Task[None]] = set()
        self.finished = Outbox(at_a_time)

    async def ready(self) -> dict[str, Any]:
        """What plays here, once the actor has started."""
        return _playing(self.source)

    async def submit(self, episodes: Sequence[tuple[int, Sent]]) -> None:
        """Take episodes, each with a number, and play them in their order."""
        for number, episode in episodes:
            task = asyncio.create_task(self._finish(number, episode))
            self.under_way.add(task)
            task.add_done_callback(self.under_way.discard)

    async def collect(self) -> list[tuple[int, Any]]:
        """What was finished since this was last asked: at least one episode."""
        return await self.finished.take()

    async def _finish(self, number: int, episode: Sent) -> None:
        """Play an episode; whatever is raised goes to the driver, as data: not every exception survives the way."""
        async with self.free:
            try:
                way, condition, severity, trial = episode
                drawn = _retraced(way)
                record = await self.play(Episode(condition, drawn.base.id, drawn, severity, trial), self.source)
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


class _ActorDied(Exception):
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
        """What an episode comes to; raises `_ActorDied`."""
        if not self.alive:
            raise _ActorDied
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
                    future.set_exception(_ActorDied())

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
        self.homes: OrderedDict[str, Link] = OrderedDict()  # task -> where it was played last
        self.last: tuple[Drawn, Way] | None = None
        self.running: set[asyncio.Task[None]] = set()
        self.starting = 0
        self.lost = 0  # actors that died
        self.why = ""  # the last one failed to start
        self.changed = asyncio.Event()

    async def __aenter__(self) -> RayPlayer:
        for _ in range(self.wanted):
            self._start()
        await self._some_actor()
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

    async def play(self, episode: Episode) -> tuple[bytes, Brief]:
        """Play an episode on the actor with the fewest, and again on one of its own if that one dies."""
        sent = (self._way_of(episode.drawn), episode.condition, episode.severity, episode.trial)
        for attempt in range(ATTEMPTS):
            link = await (self._own_actor() if attempt else self._some_actor(episode.task_id))
            try:
                found = await link.play(sent)
            except _ActorDied:
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
        record = await play_episode(episode, gone, seed=self.seed)
        return as_line(record), Brief.of(record)

    def _way_of(self, drawn: Drawn) -> Way:
        """The way of a draw, worked out once for its trials, which come one after the other."""
        if self.last is None or self.last[0] is not drawn:
            self.last = (drawn, _way(drawn))
        return self.last[1]

    async def _own_actor(self) -> Link:
        """An actor that plays nothing else, so that whoever kills it is known, and kills nobody else's episode."""
        while True:
            link = await self._some_actor()
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

    async def _some_actor(self, task_id: str = "") -> Link:
        """The actor with the fewest episodes; where it makes no difference, the one that has played this task."""
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
        home = self.homes.pop(task_id, least)
        if home not in free or len(home.under_way) > len(least.under_way) + SLACK:
            home = least
        self.homes[task_id] = home
        if len(self.homes) > RECENT:
            self.homes.popitem(last=False)
        return home

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
