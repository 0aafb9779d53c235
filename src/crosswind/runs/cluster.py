"""Play the episodes of a run on a Ray cluster.

The driver draws, counts, stops and alone writes the store. Actors play: each draws an episode again from the JSON of
its layers, so that the certificate is checked where it is used. An episode whose actor died goes to another actor,
which it has for itself; if those die too, the agent kills them, and the episode ends as an exception of the agent.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from typing import Any

from crosswind.base.errors import AgentException, CrosswindError, InfrastructureError
from crosswind.core.draw import Drawn
from crosswind.core.types import Agent, Message, Tools
from crosswind.episodes.record import Record, redraw
from crosswind.episodes.schedule import Episode
from crosswind.models.source import AgentSettings, AgentSource
from crosswind.models.spec import open_agent
from crosswind.runs.ray_map import ATTEMPTS, PLUGINS, connect, find_modules
from crosswind.runs.runner import PAUSES, Crash, play_episode
from crosswind.runs.store import as_line

START = 120.0  # seconds for the first actor to start


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
    ) -> None:
        find_modules(path, plugins)
        self.source = open_agent(agent, AgentSettings.model_validate(settings), ending)
        self.seed, self.pauses = seed, pauses
        self.seconds, self.repeats = seconds, repeats

    async def ready(self) -> None:
        """Answer once the actor has started."""

    async def play(
        self, domain: str, condition: str, task_id: str, layers: list[Any], severity: int | None, trial: int
    ) -> Any:
        """The line of a finished episode, or what to raise: exceptions of ours do not survive every transport."""
        key = f"{task_id}|{condition}|{trial}"
        try:
            episode = Episode(condition, task_id, redraw(domain, task_id, layers, key), severity, trial)
            return as_line(
                await play_episode(
                    episode,
                    self.source,
                    seed=self.seed,
                    seconds=self.seconds,
                    repeats=self.repeats,
                    pauses=self.pauses,
                )
            )
        except Crash as crash:
            return {"crash": f"{type(crash.error).__name__}: {crash.error}", "by_agent": crash.by_agent}
        except CrosswindError as error:
            return {"error": str(error)}


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
        episodes_each: int = 1,
    ) -> None:
        self.ray, self.own = connect(address)
        self.wanted = actors or max(1, int(self.ray.cluster_resources().get("CPU", 1)))
        self.given = (agent, settings.model_dump(), ending, seed, seconds, repeats, tuple(pauses))
        self.options = {"num_cpus": 1, "num_gpus": gpus, "max_concurrency": max(2, 2 * episodes_each)}
        self.load: dict[Any, int] = {}  # actors that answer -> episodes under way
        self.taken: set[Any] = set()  # those of them that one episode has for itself
        self.starting: set[asyncio.Task[None]] = set()
        self.lost = 0  # actors that died
        self.why = ""  # the last one failed to start
        self.changed = asyncio.Event()

    async def __aenter__(self) -> RayPlayer:
        for _ in range(self.wanted):
            self._start()
        await self._some_actor()
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self.starting:
            task.cancel()
        await asyncio.gather(*self.starting, return_exceptions=True)
        for actor in self.load:
            self.ray.kill(actor)
        if self.own:
            self.ray.shutdown()

    async def play(self, episode: Episode) -> Record:
        """Play an episode on the actor with the fewest, and again on one of its own if that one dies."""
        drawn = episode.drawn
        layers = [layer.model_dump(mode="json") for layer in drawn.layers]
        for attempt in range(ATTEMPTS):
            actor = await (self._own_actor() if attempt else self._some_actor())
            self.load[actor] += 1
            try:
                found = await actor.play.remote(
                    drawn.domain.name, episode.condition, episode.task_id, layers, episode.severity, episode.trial
                )
            except (self.ray.exceptions.RayActorError, self.ray.exceptions.ObjectLostError):
                if self.load.pop(actor, None) is not None:
                    self.lost += 1
                    self._start()
                continue
            finally:
                if actor in self.load:
                    self.load[actor] -= 1
                if attempt:
                    self.taken.discard(actor)
                self.changed.set()
            if isinstance(found, bytes):
                return Record.model_validate_json(found)
            if "crash" in found:
                raise Crash(episode.key, RuntimeError(found["crash"]), by_agent=found["by_agent"])
            raise CrosswindError(found["error"])
        agent, settings, ending, seed = self.given[:4]
        why = f"{ATTEMPTS} processes died while they played it, {ATTEMPTS - 1} of them with nothing else to play"
        source = open_agent(agent, AgentSettings.model_validate(settings), ending)
        return await play_episode(episode, _Gone(source, f"ProcessDied: {why}; see the logs of Ray"), seed=seed)

    async def _own_actor(self) -> Any:
        """An actor that plays nothing else, so that whoever kills it is known, and kills nobody else's episode."""
        while True:
            actor = await self._some_actor()
            self.taken.add(actor)
            try:
                while self.load.get(actor):
                    self.changed.clear()
                    await self.changed.wait()
            except asyncio.CancelledError:
                self.taken.discard(actor)
                raise
            if actor in self.load:
                return actor
            self.taken.discard(actor)

    async def _some_actor(self) -> Any:
        async with asyncio.timeout(None if self.load else START) as clock:
            try:
                while not (free := [actor for actor in self.load if actor not in self.taken]):
                    self.changed.clear()
                    if not self.starting and not self.load:
                        raise CrosswindError(f"no actor starts on the Ray cluster: {self.why}")
                    await self.changed.wait()
            except asyncio.CancelledError:
                if clock.expired():
                    free = self.ray.available_resources()
                    raise InfrastructureError(
                        f"no actor started within {START:g} s; the cluster has free: {free}"
                    ) from None
                raise
        return min(free, key=lambda actor: self.load[actor])

    def _start(self) -> None:
        """Start an actor; it gets episodes once it answers, wherever the cluster has room for it."""
        plugins = os.environ.get(PLUGINS, "")
        made = self.ray.remote(Actor).options(**self.options).remote([os.getcwd(), *sys.path], plugins, *self.given)

        async def wait() -> None:
            try:
                await made.ready.remote()
                self.load[made] = 0
            except self.ray.exceptions.RayError as error:
                self.why = str(error).strip().splitlines()[-1]
            finally:
                self.starting.discard(task)
                self.changed.set()

        task = asyncio.ensure_future(wait())
        self.starting.add(task)
