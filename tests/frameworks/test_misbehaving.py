"""Harnesses that misbehave: what they send gets an error in words, and what others do is untouched."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from crosswind.base.errors import CrosswindError
from crosswind.core.types import Message, Request
from crosswind.episodes.schedule import Schedule
from crosswind.episodes.suite import load_suite
from crosswind.frameworks.driven import DrivenEpisode, ToolCalls
from crosswind.frameworks.requested import EpisodeRequest

POI = {"domain": "poi", "seed": 3}
WRONG: list[tuple[Any, Any]] = [
    ("no_such_tool", {}),
    ("", {}),
    ("find_places", None),
    ("find_places", "text"),
    ("find_places", [1, 2]),
    ("find_places", {"city": {"deep": [[[[]]]]}}),
    ("find_places", {"city": "x" * 300_000}),
    ("x" * 100_000, {}),
    ("find_places", {"city": "\ud800"}),
]


def opened(**request: Any) -> DrivenEpisode:
    return DrivenEpisode(EpisodeRequest.read(request or POI).episode(), seed=0)


@pytest.mark.parametrize(("name", "args"), WRONG, ids=range(len(WRONG)))
def test_wrong_calls_are_answered_and_counted(name: Any, args: Any) -> None:
    async def run() -> tuple[str, Any]:
        calls = ToolCalls(opened())
        await calls.begin()
        answer = await calls.call(name, args)
        return answer, await calls.end("I give up")

    answer, record = asyncio.run(run())
    assert json.loads(answer)["error"] in ("unknown_tool", "bad_arguments", "not_found"), answer[:200]
    assert len(answer) < 400_000
    assert (record.outcome, record.length) == ("fail", 1)


def test_two_replies_to_one_turn_are_one_reply_and_an_error() -> None:
    async def run() -> None:
        driven = opened()
        await driven.begin()
        call = Message(role="assistant", requests=(Request(id="1", tool="find_places", args={}),))
        answers = await asyncio.gather(driven.reply(call), driven.reply(call), return_exceptions=True)
        refused = [answer for answer in answers if isinstance(answer, BaseException)]
        assert len(refused) == 1
        assert isinstance(refused[0], CrosswindError)
        assert "not waiting for a reply" in str(refused[0])
        await driven.reply(Message(role="assistant", content="done"))
        assert driven.record is not None
        assert len(driven.record.steps) == 1

    asyncio.run(run())


def test_calls_side_by_side_reach_the_world_one_after_the_other() -> None:
    async def run() -> Any:
        calls = ToolCalls(opened())
        await calls.begin()
        await asyncio.gather(*(calls.call("find_places", {}) for _ in range(4)))
        return await calls.end()

    assert len(asyncio.run(run()).steps) == 4


def test_whoever_leaves_in_the_middle_leaves_nothing_behind() -> None:
    async def run() -> None:
        driven = opened()
        await driven.begin()
        await driven.aclose()
        await driven.aclose()
        assert driven.record is None
        with pytest.raises(CrosswindError, match="not waiting for a reply"):
            await driven.reply(Message(role="assistant", content="hello?"))
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(run())


def test_infrastructure_is_masked_and_never_scored_zero() -> None:
    async def run() -> Any:
        driven = opened()
        await driven.begin()
        return await driven.fail("the inference server is gone")

    record = asyncio.run(run())
    assert (record.outcome, record.judged) == ("error", False)
    assert "inference server is gone" in record.why


def test_equal_requests_share_a_draw_and_it_is_that_of_a_run() -> None:
    for number, episode in enumerate(Schedule(load_suite("quick"), 5, limit=8)):
        assert episode is not None
        group = [EpisodeRequest.read({"suite": "quick", "number": number, "seed": 5}).episode() for _ in range(3)]
        for other in group:
            assert other.key == episode.key
            assert other.drawn.layers == episode.drawn.layers
            assert other.drawn.certificate.task == episode.drawn.certificate.task


# ---------------------------------------------------------------- sessions of OpenEnv's harnesses


@pytest.fixture
def sessions() -> Any:
    pytest.importorskip("openenv", reason="OpenEnv is not installed; .ci/run installs it")
    from crosswind.frameworks import openenv_session

    return openenv_session


@pytest.mark.parametrize(("name", "args"), WRONG, ids=range(len(WRONG)))
def test_a_session_answers_wrong_calls(sessions: Any, name: Any, args: Any) -> None:
    session = sessions.CrosswindSessions(**POI).create("anything", seed=3)
    assert json.loads(session.call_tool(name, args).data)["error"]
    assert session.verify([]).env_reward == 0.0
    session.close()


def test_a_session_after_its_end_and_after_it_was_closed(sessions: Any) -> None:
    session = sessions.CrosswindSessions(**POI).create(None, seed=3)
    assert session.verify([{"role": "assistant", "content": "That is it."}]).env_reward == 0.0
    assert json.loads(session.call_tool("find_places", {}).data)["error"] == "over"
    assert session.verify([]).metrics["outcome"] == "fail"  # asked again, it says the same
    session.close()
    session.close()
    left = sessions.CrosswindSessions(**POI).create(None, seed=3)
    left.close()
    with pytest.raises(CrosswindError, match="not waiting for a reply"):
        left.call_tool("find_places", {})


def test_odd_transcripts_are_taken_as_no_words(sessions: Any) -> None:
    transcripts: list[Sequence[Any]] = [[{}], [{"role": "assistant"}], [{"role": "assistant", "content": [1]}]]
    for transcript in transcripts:
        session = sessions.CrosswindSessions(**POI).create(None, seed=3)
        assert session.verify(list(transcript)).env_reward == 0.0


def test_a_group_of_a_trainer_shares_its_draw(sessions: Any) -> None:
    factory = sessions.CrosswindSessions(domain="poi", recipe="mixed", split="train")
    group = [factory.create("row", seed=11, episode_id=str(n)) for n in range(3)]
    seen = [(one.initial_messages(), [tool.name for tool in one.list_tools()]) for one in group]
    assert seen[0] == seen[1] == seen[2]
    other = factory.create("row", seed=12)
    assert other.initial_messages() != seen[0][0]
    for one in (*group, other):
        one.close()


def test_what_infrastructure_broke_has_no_reward(sessions: Any) -> None:
    session = sessions.CrosswindSessions(**POI).create(None, seed=3)
    sessions._loop.run(session.calls.episode.fail("the world's server is gone"))
    session.calls.turn = None
    found = session.verify([])
    assert found.env_reward is None
    assert found.metrics["outcome"] == "error"
