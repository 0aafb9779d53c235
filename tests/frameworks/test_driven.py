"""Episodes driven from outside: the same replies give the same record as a run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import crosswind as cw
from bench.frameworks.scripted import replies_of
from crosswind.base.errors import CrosswindError
from crosswind.core.types import Message, Request
from crosswind.episodes.schedule import Episode
from crosswind.episodes.ticket import Ticket
from crosswind.frameworks.driven import DrivenEpisode, ToolCalls
from crosswind.frameworks.requested import EpisodeRequest
from crosswind.words import held_out

VOLATILE = {"agent", "usage"}


def message(reply: tuple[str, list[tuple[str, str, Any]]]) -> Message:
    words, calls = reply
    return Message(
        role="assistant",
        content=words,
        requests=tuple(Request(id=id, tool=tool, args=args) for id, tool, args in calls),
    )


async def driven(ticket: Ticket, replies: list[Any]) -> tuple[cw.Record, list[set[str]]]:
    episode, menus = DrivenEpisode(ticket.episode(), seed=1), []
    turn = await episode.begin()
    for reply in replies:
        assert turn is not None
        menus.append({spec.name for spec in turn.tools})
        turn = await episode.reply(message(reply))
    assert turn is None
    assert episode.record is not None
    return episode.record, menus


@pytest.mark.parametrize("agent", ["oracle", "retrier", "refuser"])
@pytest.mark.parametrize("perturb", [[], ["retired_midway"], ["changed_mind"]])
def test_the_same_replies_give_the_same_record(agent: str, perturb: list[str]) -> None:
    drawn = cw.draw("poi", "hold_visit", perturb, seed=1)
    played = cw.play(agent, drawn, seed=1, ending="finish")
    ticket = Ticket.of(Episode(played.condition, drawn.base.id, drawn))
    again, menus = asyncio.run(driven(Ticket.read(ticket.model_dump(mode="json")), replies_of(played)))
    assert again.model_dump(exclude=VOLATILE) == played.model_dump(exclude=VOLATILE)
    if perturb == ["retired_midway"] and agent == "oracle":
        assert any(menu != menus[0] for menu in menus), "the tools must be listed again at every turn"


def test_an_episode_that_is_over_takes_no_more_replies() -> None:
    async def late() -> None:
        episode = DrivenEpisode(EpisodeRequest(domain="poi", seed=1).episode())
        await episode.begin()
        assert await episode.reply(Message(role="assistant", content="I cannot do this.")) is None
        with pytest.raises(CrosswindError, match="not waiting for a reply"):
            await episode.reply(Message(role="assistant", content="Hello?"))
        with pytest.raises(CrosswindError, match="begun already"):
            await episode.begin()

    asyncio.run(late())


def test_a_fault_of_infrastructure_has_no_verdict() -> None:
    async def broken() -> cw.Record:
        episode = DrivenEpisode(EpisodeRequest(domain="poi", seed=1).episode())
        await episode.begin()
        return await episode.fail("the provider is gone")

    record = asyncio.run(broken())
    assert (record.outcome, record.judged, record.why) == ("error", False, "the provider is gone")


def test_calls_one_by_one_and_after_the_end() -> None:
    async def play() -> tuple[str, str, cw.Record]:
        calls = ToolCalls(DrivenEpisode(EpisodeRequest(domain="poi", seed=1).episode()))
        await calls.begin()
        first = await calls.call("no_such_tool", {})
        record = await calls.end("I cannot do this.")
        return first, await calls.call("no_such_tool", {}), record

    first, late, record = asyncio.run(play())
    assert "unknown_tool" in first
    assert "over" in late
    assert (record.outcome, len(record.steps)) == ("fail", 1)


def test_requests_are_the_draws_of_a_run() -> None:
    run = cw.evaluate("idle", "quick", domain="poi", limit=5)
    for number, record in enumerate(run.records):
        episode = EpisodeRequest.read({"suite": "quick", "domain": "poi", "number": number}).episode()
        assert episode.key == record.key
        assert [layer.model_dump(mode="json") for layer in episode.drawn.layers] == list(record.layers)


def test_a_recipe_gives_no_held_out_kind() -> None:
    kinds = set()
    for seed in range(12):
        drawn = EpisodeRequest(domain="poi", recipe="mixed", split="train", seed=seed).episode().drawn
        kinds |= {layer.kind for layer in drawn.layers}
        assert drawn.base.split == "train"
    assert kinds
    assert not kinds & set(held_out.HELD_OUT)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({}, "expected"),
        ({"suite": "quick", "ticket": {"domain": "poi", "condition": "clean", "task_id": "x"}}, "expected"),
        ({"domain": "poy"}, "poi"),
        ({"domain": "poi", "family": "hold_visits"}, "hold_visit"),
        ({"domain": "poi", "perturb": ["semantic_renam"]}, "semantic_rename"),
        ({"domain": "poi", "perturb": "semantic_rename"}, "perturb"),
        ({"suite": "quick", "domain": "poi", "number": 49_999}, "episodes"),
        ({"domain": "poi", "seed": -1}, "seed"),
        ({"domain": "poi", "colour": 1}, "colour"),
    ],
)
def test_bad_requests_are_named(data: dict[str, Any], said: str) -> None:
    with pytest.raises(CrosswindError, match=said):
        EpisodeRequest.read(data).episode()
