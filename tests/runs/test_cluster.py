"""A run on a Ray cluster: the records of a local run, also when an actor dies. Needs the extra `ray`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from crosswind.base.errors import CrosswindError
from crosswind.episodes.brief import Brief
from crosswind.episodes.suite import suites
from crosswind.models.source import AgentSettings
from crosswind.models.spec import open_agent
from crosswind.runs.runner import run
from crosswind.runs.store import load_run

pytestmark = pytest.mark.filterwarnings("default")  # of Ray


def lines(folder: Path) -> dict[str, dict[str, Any]]:
    found = [record.model_dump(mode="json") for record in load_run(folder).records]
    return {one["key"]: {**one, "usage": {**one["usage"], "seconds": 0}} for one in found}


def test_a_cluster_plays_the_run_and_loses_nothing(tmp_path: Path) -> None:
    ray = pytest.importorskip("ray")
    from crosswind.runs.cluster import RayPlayer

    class Watch:
        """Kills the first actor when a third of the episodes are done."""

        player: RayPlayer | None = None

        def show(self, progress: Any) -> None:
            if self.player is not None and progress.done >= 20:
                ray.kill(self.player.links[0].actor)
                self.player = None

    async def on_ray() -> int:
        watch = Watch()
        async with RayPlayer("retrier", AgentSettings(), actors=2, concurrency=8) as player:
            watch.player = player
            await run(
                *(suites["tiers"], open_agent("retrier"), tmp_path / "ray"),
                limit=60,
                concurrency=8,
                watch=watch,
                player=player,
            )
            return player.lost

    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        assert asyncio.run(on_ray()) == 1
    finally:
        ray.shutdown()
    asyncio.run(run(suites["tiers"], open_agent("retrier"), tmp_path / "local", limit=60))
    assert lines(tmp_path / "ray") == lines(tmp_path / "local")


def test_an_agent_that_kills_its_process_fails_that_episode_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = pytest.importorskip("ray")
    from crosswind.runs import cluster
    from crosswind.runs.cluster import RayPlayer

    monkeypatch.setattr(cluster, "ATTEMPTS", 2)  # each takes seconds
    code = "import os\ndef killer(query, tools):\n    if {!r} == query:\n        os._exit(3)\n    return 'no'\n"
    asyncio.run(run(suites["quick"], open_agent("idle"), tmp_path / "first", limit=6))
    fatal = load_run(tmp_path / "first").records[-1]
    (tmp_path / "deadly_agent.py").write_text(code.format(fatal.query))
    monkeypatch.chdir(tmp_path)
    agent = "python:deadly_agent:killer"

    async def on_ray() -> None:
        async with RayPlayer(agent, AgentSettings(), actors=1, concurrency=6) as player:
            source = open_agent(agent)
            await run(suites["quick"], source, tmp_path / "ray", limit=6, concurrency=6, player=player)

    ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False)
    try:
        asyncio.run(on_ray())
    finally:
        ray.shutdown()
    records = load_run(tmp_path / "ray").records
    assert len(records) == 6
    assert [r.key for r in records if r.ended == "exception"] == [fatal.key]
    assert all("ProcessDied" in r.why for r in records if r.ended == "exception")


def test_without_ray_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from crosswind.runs.cluster import RayPlayer

    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(CrosswindError, match=r"pip install .*\[ray\]'"):
        RayPlayer("oracle", AgentSettings())


def test_an_actor_plays_only_what_was_certified_here() -> None:
    from crosswind.episodes.schedule import Schedule
    from crosswind.runs.cluster import Actor
    from crosswind.runs.far_draws import way_of

    episode = next(e for e in Schedule(suites["tiers"], 0) if e is not None and e.drawn.layers)
    name, task_id, layers, proof, expected = way_of(episode.drawn)
    forged = (name, task_id, layers, proof, "0" * len(expected))
    ways = [way_of(episode.drawn), forged, (name, task_id, "[]", proof, expected)]

    async def played() -> dict[int, Any]:
        settings = AgentSettings().model_dump()
        actor = Actor([], "", "oracle", settings, "", 0, None, None, (), 2)
        await actor.submit([(n, (way, episode.condition, episode.severity, 0)) for n, way in enumerate(ways)])
        found: dict[int, Any] = {}
        while len(found) < len(ways):
            found |= dict(await actor.collect())
        return found

    whole, *others = (found for _, found in sorted(asyncio.run(played()).items()))
    line, brief = whole
    assert (brief.key, brief.outcome) == (episode.key, "pass")
    assert Brief.read(line).row() == brief.row()
    for other in others:
        assert "another here than where it was certified; every node needs the same" in other["error"]


def test_a_node_with_another_version_gets_no_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    from crosswind.runs import cluster

    class Remote:
        """What Ray makes of a method, without Ray."""

        def __init__(self, answer: Any) -> None:
            self.answer = answer

        async def remote(self) -> Any:
            return self.answer

    class Old:
        ready = Remote({"crosswind": "0.0.1", "judge": "1", "the agent's code": ""})

    class Ray:
        class exceptions:
            RayError = KeyError

        class Class:
            def options(self, **_: Any) -> Any:
                return self

            def remote(self, *_: Any) -> Any:
                return Old()

        def remote(self, _: type) -> Any:
            return self.Class()

        def cluster_resources(self) -> dict[str, float]:
            return {"CPU": 1}

        def kill(self, _: Any) -> None:
            killed.append(1)

    killed: list[int] = []
    monkeypatch.setattr(cluster, "connect", lambda _: (Ray(), False))

    async def opened() -> None:
        async with cluster.RayPlayer("oracle", AgentSettings()):
            pass

    with pytest.raises(CrosswindError, match=r"crosswind is '0\.0\.1' there and .* install the same on every node"):
        asyncio.run(opened())
    assert killed
