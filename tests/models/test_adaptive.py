"""The wrapper that repairs an agent's calls: what each part does, and what it leaves alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from crosswind.base.errors import CrosswindError
from crosswind.core.types import Message, Param, Request, Tools, ToolSpec
from crosswind.models import repairs
from crosswind.models.adaptive import AdaptiveAgent, AdaptiveAgents
from crosswind.models.source import AgentSettings
from crosswind.models.wrapping import PARTS

FIND = ToolSpec(
    "find_flights", "Find flights from one city to another.", {"origin": Param("string"), "day": Param("string")}
)
BOOK = ToolSpec("book_seat", "Book a seat on a flight.", {"flight": Param("string"), "seats": Param("integer")})


class Scripted:
    """An agent that makes given calls, one per turn, and keeps what it was told."""

    def __init__(self, *calls: tuple[str, dict[str, Any]]) -> None:
        self.calls, self.heard, self.made = list(calls), list[str](), 0

    async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
        self.heard = [m.content for m in chat if m.role == "tool"]
        if self.made == len(self.calls):
            return Message(role="assistant", content="done")
        tool, args = self.calls[self.made]
        self.made += 1
        return Message(role="assistant", requests=(Request(id=f"c{self.made}", tool=tool, args=args),))


def played(
    agent: Scripted, results: Sequence[Any], *, parts: frozenset[str] = frozenset(PARTS), tools: Tools = (FIND, BOOK)
) -> list[tuple[str, Any]]:
    """The calls that an environment sees which answers with the given results in turn."""

    async def main() -> list[tuple[str, Any]]:
        wrapped, chat, calls, left = (
            AdaptiveAgent(agent, parts),
            [Message(role="user", content="go")],
            [],
            list(results),
        )
        while (said := await wrapped.reply(chat, tools)).requests:
            chat.append(said)
            for request in said.requests:
                calls.append((request.tool, request.args))
                chat.append(Message(role="tool", content=json.dumps(left.pop(0)), request_id=request.id))
        return calls

    return asyncio.run(main())


def test_a_renamed_tool_and_a_renamed_key_are_found() -> None:
    agent = Scripted(("search_flights", {"from_origin": "Oslo", "day": "2026-05-01"}))
    assert played(agent, [[]]) == [("find_flights", {"origin": "Oslo", "day": "2026-05-01"})]


def test_a_call_that_fits_two_tools_goes_to_neither() -> None:
    twins = tuple(ToolSpec(name, "Handle a flight.", {"flight": Param("string")}) for name in ("north", "south"))
    assert repairs.tool_for("west", {"flight": "F1"}, twins) == ""


def test_values_take_the_type_asked_for() -> None:
    assert repairs.arguments_for({"flight": "F1", "seats": "2"}, BOOK.params) == {"flight": "F1", "seats": 2}
    assert repairs.arguments_for({"flight": "F1", "seats": "two"}, BOOK.params) == {"flight": "F1", "seats": "two"}


def test_a_call_that_cannot_work_comes_back_before_it_is_made() -> None:
    agent = Scripted(("book_seat", {"flight": "F1"}), ("book_seat", {"flight": "F1", "seats": 1}))
    assert played(agent, [{"ok": True}]) == [("book_seat", {"flight": "F1", "seats": 1})]
    assert "book_seat(flight: string, seats: integer)" in agent.heard[0]


BUSY = {"error": "unavailable", "message": "The service is busy, try again."}
LOST = {"error": "timeout", "message": "The request timed out."}


def test_a_passing_error_is_met_by_repeating_at_most_three_times() -> None:
    call = ("book_seat", {"flight": "F1", "seats": 1})
    agent = Scripted(call)
    assert played(agent, [BUSY, BUSY, {"ok": True}]) == [call] * 3
    assert agent.heard == ['{"ok": true}']
    assert len(played(Scripted(call), [BUSY] * 9)) == 4


def test_a_write_of_unknown_outcome_is_not_repeated() -> None:
    write, read = ("book_seat", {"flight": "F1", "seats": 1}), ("find_flights", {"origin": "Oslo", "day": "x"})
    agent = Scripted(write)
    assert played(agent, [LOST]) == [write]
    assert "may have been done" in agent.heard[0]
    assert played(Scripted(read), [LOST, []]) == [read, read]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("id,price\nF1,30\nF2,40", [{"id": "F1", "price": 30}, {"id": "F2", "price": 40}]),
        ("| id | price |\n|---|---|\n| F1 | 30 |", [{"id": "F1", "price": 30}]),
        ("<r><f><id>F1</id></f><f><id>F2</id></f></r>", [{"id": "F1"}, {"id": "F2"}]),
        ('{"status": "ok", "data": {"id": "F1"}}', {"id": "F1"}),
        ('{"data": [1], "price": 3}', {"data": [1], "price": 3}),
        ("No flights, sorry.", None),
        ('<!DOCTYPE r [<!ENTITY a "aa">]><r>&a;</r>', None),
    ],
)
def test_results_are_read_where_their_form_is_known(text: str, plain: Any) -> None:
    found = json.dumps(repairs.unwrapped_result(repairs.read_result(text)))
    assert json.loads(found) == (text if plain is None else plain)


def test_a_part_that_is_off_does_nothing() -> None:
    agent = Scripted(("search_flights", {"origin": "Oslo", "day": "x"}))
    assert played(agent, [BUSY], parts=frozenset()) == [("search_flights", {"origin": "Oslo", "day": "x"})]


@pytest.mark.parametrize(
    ("spec", "told"),
    [("only=luck:oracle", "adaptive has no part 'luck'"), ("off=retry:", "names no agent")],
)
def test_bad_specs_are_told(spec: str, told: str) -> None:
    with pytest.raises(CrosswindError, match=told):
        AdaptiveAgents(spec, AgentSettings())


def test_parts_are_named_in_the_settings() -> None:
    source = AdaptiveAgents("off=retry,tell:one_shot", AgentSettings())
    assert source.settings["parts"] == [part for part in PARTS if part not in ("retry", "tell")]
    assert AdaptiveAgents("one_shot", AgentSettings()).name == "adaptive:one_shot"
