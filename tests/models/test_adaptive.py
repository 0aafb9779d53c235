"""The wrapper that repairs an agent's calls: what each part does, and what it leaves alone."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from crosswind.base.errors import CrosswindError
from crosswind.core.types import Message, Param, Request, Tools, ToolSpec
from crosswind.models import repairs, shapes
from crosswind.models.adaptive import AdaptiveAgent, AdaptiveAgents
from crosswind.models.interface import KnownInterface, ResultShape, read_interface
from crosswind.models.shapes import in_shape
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
    agent: Scripted,
    results: Sequence[Any],
    *,
    parts: frozenset[str] = frozenset(PARTS),
    tools: Tools = (FIND, BOOK),
    known: KnownInterface | None = None,
) -> list[tuple[str, Any]]:
    """The calls that an environment sees which answers with the given results in turn."""

    async def main() -> list[tuple[str, Any]]:
        wrapped, chat, calls, left = (
            AdaptiveAgent(agent, parts, known),
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


# ---------------------------------------------------------------- with a memory of the interface

ROWS = [
    {"flight_id": "F1", "price": 30, "leaves": "08:10"},
    {"flight_id": "F2", "price": 44, "leaves": "09:00"},
]
SEAT = {"seat_id": "S9", "row": 4}


def interface() -> KnownInterface:
    known = KnownInterface()
    known.meet((FIND, BOOK))
    known.answered("find_flights", ROWS)
    known.answered("book_seat", SEAT)
    return known


def told(
    calls: list[tuple[str, dict[str, Any]]], results: list[Any], tools: Tools, *, off: str = ""
) -> tuple[list[tuple[str, Any]], list[Any]]:
    """The calls that are made, and the results as the agent reads them."""
    agent = Scripted(*calls)
    made = played(agent, results, tools=tools, known=interface(), parts=frozenset(PARTS) - {off})
    return made, [json.loads(text) for text in agent.heard]


ASKED = ("find_flights", {"origin": "Oslo", "day": "x"})


def test_a_tool_with_another_name_is_known_by_what_it_says() -> None:
    renamed = ToolSpec(
        "tool_7", "Find flights from one city to another.", {"place": Param("string"), "date": Param("string")}
    )
    made, heard = told([ASKED], [ROWS], (BOOK, renamed))
    assert made == [("tool_7", {"place": "Oslo", "date": "x"})]
    assert heard == [ROWS]


@pytest.mark.parametrize(
    "shown",
    [
        {"ok": True, "box": {"inner": ROWS}},
        {"status": "fine", "box": json.dumps({"inner": ROWS}), "about": {"trace": "ab12"}},
        {"n": 2, "row_1": ROWS[0], "row_2": ROWS[1]},
        {"head": list(ROWS[0]), "cells": [list(row.values()) for row in ROWS]},
        [[{"k": key, "v": value} for key, value in row.items()] for row in ROWS],
        [{"vluchtnummer": r["flight_id"], "prijs": r["price"], "vertrek": r["leaves"]} for r in ROWS],
        [{"leaves": r["leaves"], "id_of_flight": r["flight_id"], "price": r["price"], "more": 1} for r in ROWS],
    ],
)
def test_results_come_back_in_the_shape_that_is_known(shown: Any) -> None:
    _, (heard,) = told([ASKED], [shown], (FIND, BOOK))
    assert [{key: row[key] for key in ROWS[0]} for row in heard] == ROWS


@pytest.mark.parametrize(
    "other", ["none today", 5, {"error": "no_such_city", "message": "Nothing."}, {"a": [1, 2]}, []]
)
def test_results_of_no_known_shape_stay_as_they_are(other: Any) -> None:
    shape = ResultShape(True)
    for row in ROWS:
        shape.learn(row)
    assert in_shape(other, shape) == other


def test_pages_are_read_to_the_end_and_endless_ones_are_not() -> None:
    paged = FIND.with_param("page", "integer", "The last next_page.")
    pages = [{"rows": ROWS[:1], "next_page": 1}, {"rows": ROWS[1:], "next_page": None}]
    made, heard = told([ASKED], pages, (paged, BOOK))
    assert made == [ASKED, (ASKED[0], {**ASKED[1], "page": 1})]
    assert heard == [ROWS]
    made, heard = told([ASKED], pages, (paged, BOOK), off="pages")
    assert len(made) == 1
    assert heard == pages[:1]  # that there is more is not hidden
    endless = [{"rows": ROWS[:1], "next_page": 1}] * 5
    assert len(told([ASKED], endless, (paged, BOOK))[0]) == 2


def test_an_error_that_names_a_successor_is_followed() -> None:
    successor = FIND.replace(name="flights_v2")
    moved = {"error": "gone", "message": "Moved for good: flights_v2 does it now."}
    made, heard = told([ASKED], [moved, ROWS], (FIND, BOOK, successor))
    assert [name for name, _ in made] == ["find_flights", "flights_v2"]
    assert heard == [ROWS]
    assert len(told([ASKED], [moved], (FIND, BOOK, successor), off="redirect")[0]) == 1


def test_a_tool_that_waits_is_called_before_a_call_is_repeated() -> None:
    pause = ToolSpec("pause", "Wait a moment.", {})
    busy = {"error": "rate_limited", "message": "Too many calls; call pause first."}
    made, heard = told([ASKED], [busy, {"ready": True}, ROWS], (FIND, BOOK, pause))
    assert [name for name, _ in made] == ["find_flights", "pause", "find_flights"]
    assert heard == [ROWS]


def test_a_missing_argument_is_fetched_from_the_new_tool_that_gives_it() -> None:
    issuer = ToolSpec("new_pin", "Gives a pin for book_seat.", {})
    locked = BOOK.with_param("pin", "string", required=True)
    call = ("book_seat", {"flight": "F1", "seats": 1})
    made, heard = told([call], [{"pin": "77"}, SEAT], (FIND, locked, issuer))
    assert made == [("new_pin", {}), ("book_seat", {**call[1], "pin": "77"})]
    assert heard == [SEAT]


def test_the_halves_of_a_result_are_put_together() -> None:
    halves = [FIND.replace(name=name) for name in ("find_flights_a", "find_flights_b")]
    first = [{"flight_id": r["flight_id"], "price": r["price"]} for r in ROWS]
    second = [{"flight_id": r["flight_id"], "leaves": r["leaves"]} for r in reversed(ROWS)]
    made, heard = told([ASKED], [first, second], (BOOK, *halves))
    assert len(made) == 2
    assert heard == [ROWS]


def test_a_reading_tool_that_is_gone_is_answered_from_what_was_seen() -> None:
    details = ToolSpec("show_flight", "Show a flight.", {"flight_id": Param("string")})
    about = {"aircraft": "B7", "seats": 90}
    known = interface()
    known.meet((details,))
    known.answered("show_flight", about)
    agent = Scripted(ASKED, ("show_flight", {"flight_id": "F2"}))
    rows = [{**row, "info": about} for row in ROWS]
    assert played(agent, [rows], known=known) == [ASKED]
    assert json.loads(agent.heard[1]) == about


def test_an_error_about_order_says_which_tools_come_before() -> None:
    early = {"error": "refused", "message": "A seat must be held before it is booked."}
    hold = ToolSpec("hold_seat", "Hold a seat before it is booked.", {"flight": Param("string")})
    _, (heard,) = told([("book_seat", {"flight": "F1", "seats": 1})], [early], (FIND, BOOK, hold))
    assert "hold_seat(flight: string)" in heard["message"]


def test_what_one_episode_taught_is_there_in_the_next() -> None:
    first = AdaptiveAgent(Scripted(ASKED), frozenset(PARTS))

    async def main() -> None:
        chat = [Message(role="user", content="go")]
        said = await first.reply(chat, (FIND, BOOK))
        chat += [said, Message(role="tool", content=json.dumps(ROWS), request_id=said.requests[0].id)]
        await first.reply(chat, (FIND, BOOK))

    asyncio.run(main())
    second = AdaptiveAgent(Scripted(ASKED), frozenset(PARTS))
    second.restore(json.loads(json.dumps(first.save())))
    assert second.known.tools["find_flights"].shape == interface().tools["find_flights"].shape
    renamed = FIND.replace(name="tool_7")  # and the next one uses it
    said = asyncio.run(second.reply([Message(role="user", content="go")], (BOOK, renamed)))
    assert said.requests[0].tool == "tool_7"
    assert "tool_7" not in json.dumps(second.save())
    without = AdaptiveAgent(Scripted(ASKED), frozenset(PARTS) - {"notes"})
    without.restore(first.save())
    assert not without.known


def test_notes_are_told_at_the_start(tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    path.write_text("Prices are in cents now.")
    source = AdaptiveAgents(f"only=notes:notes={path}:one_shot", AgentSettings())
    assert source.name == f"adaptive:only=notes:notes={path}:one_shot"
    agent = Scripted()
    wrapped = AdaptiveAgent(agent, source.parts, None, source.notes)
    asyncio.run(wrapped.reply([Message(role="system", content="Be kind."), Message(role="user", content="go")], ()))
    assert "Prices are in cents" in wrapped.view[0].content


@pytest.mark.parametrize("text", ["{", "[]", '{"tools": {"a": {}}}'])
def test_a_damaged_memory_is_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "memory.json"
    path.write_text(text)
    with pytest.raises(CrosswindError, match="adapt learn"):
        AdaptiveAgents(f"memory={path}:one_shot", AgentSettings())
    path.write_text(json.dumps(interface().dump()))
    assert read_interface(str(path)).dump() == interface().dump()


def test_keys_without_an_end_take_no_time_and_break_nothing() -> None:
    began = time.process_time()
    assert shapes._numbered({"1" * 40_000 + "x": "a", "item_" + "9" * 5000: "b"}) is None
    assert time.process_time() - began < 1
    assert shapes._numbered({"item_1": "a", "item_2": "b"}) == ["a", "b"]
