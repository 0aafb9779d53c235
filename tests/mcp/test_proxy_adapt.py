"""`crosswind proxy --adapt`: a client that was built for yesterday's server gets through to today's."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from crosswind.cli.app import app
from crosswind.core.types import ToolCall
from crosswind.mcp.plan import Adapting, Plan
from crosswind.mcp.tools import tools_of
from crosswind.models.interface import KnownInterface
from crosswind.models.wrapping import PARTS
from tests.fake_mcp import TOOLS, Shop
from tests.mcp.test_proxy import Desk, plan, run, told

RECORD = {"name": "Customer C8", "city": "Ulm", "balance": 1250.75}
CALLS = (
    ToolCall("search_orders", {"customer_id": "C8", "status": "open"}),
    ToolCall("get_customer", {"customer_id": "C8"}),
)


def memory() -> Any:
    """What a client knows of the shop as it was."""
    known = KnownInterface()
    known.meet(tool.spec for tool in tools_of(TOOLS).values())

    async def work() -> None:
        async with Desk(Plan()) as desk:
            for call in CALLS:
                known.answered(call.tool, told(await desk.call(call.tool, **call.args)).content)

    run(work)
    return known.dump()


MEMORY = memory()


def adapting(plan: Plan, *parts: str) -> Plan:
    return replace(plan, adapt=Adapting(frozenset(parts or PARTS), MEMORY))


@pytest.mark.parametrize(
    "kind",
    ["semantic_rename:5", "parameter_rename:5", "name_noise:5", "key_rename:5", "paged_results:5", "transient_error:5"],
)
@pytest.mark.parametrize("modern", [False, True])
def test_a_client_of_yesterday_gets_todays_answers(kind: str, modern: bool) -> None:
    async def work() -> None:
        async with Desk(adapting(plan(kind)), modern=modern) as desk:
            await desk.tools()
            for call in CALLS:
                raw = await desk.call(call.tool, **call.args)
                assert not raw.get("isError"), raw
                assert ("resultType" in raw) is modern
                found = told(raw).content
                assert found == RECORD if call.tool == "get_customer" else len(found) == 3
            reached = [call for call in desk.shop.calls if call["name"] == "get_customer"]
            assert reached[-1]["arguments"] == {"customer_id": "C8"}
        async with Desk(plan(kind), modern=modern) as desk:  # the same without it goes wrong
            raws = [await desk.call(call.tool, **call.args) for call in CALLS]
            right = [told(raw).content for raw in raws if not raw.get("isError")]
            assert len(right) < 2 or RECORD not in right or len(right[0]) != 3

    run(work)


def test_what_needs_no_repair_passes_as_it_is() -> None:
    async def work() -> None:
        async with Desk(Plan()) as desk, Desk(adapting(Plan())) as other:
            for call in CALLS:
                assert await desk.call(call.tool, **call.args) == await other.call(call.tool, **call.args)
            assert desk.shop.calls == other.shop.calls

    run(work)


def test_a_call_that_cannot_work_is_not_made() -> None:
    async def work() -> None:
        async with Desk(adapting(Plan())) as desk:
            raw = await desk.call("get_customer", wrong={"a": 1})
            assert raw["isError"]
            assert "customer_id" in raw["content"][0]["text"]
            assert not desk.shop.calls

    run(work)


def test_a_write_is_never_repeated_where_its_outcome_is_unknown() -> None:
    class Lossy(Shop):
        def _call(self, params: dict[str, Any]) -> dict[str, Any] | None:
            super()._call(params)
            return {"content": [{"type": "text", "text": "Gateway timed out."}], "isError": True}

    async def work() -> None:
        async with Desk(adapting(Plan()), Lossy(TOOLS)) as desk:
            raw = await desk.call("create_order", customer_id="C8", item="tea")
            assert raw["isError"]
            assert "look whether" in raw["content"][0]["text"]
            assert desk.shop.made == 1
            await desk.call("get_customer", customer_id="C8")
            assert sum(call["name"] == "get_customer" for call in desk.shop.calls) == 4

    run(work)


def test_calls_that_the_proxy_makes_are_on_record() -> None:
    async def work() -> None:
        async with Desk(adapting(plan("transient_error:5"))) as desk:
            for call in CALLS:
                await desk.call(call.tool, **call.args)
            session = desk.relay.session
            assert session is not None
            assert len(session.steps) > len(CALLS)

    run(work)


@pytest.mark.parametrize(
    ("args", "told_"),
    [
        (["--parts", "names"], "--parts need --adapt"),
        (["--adapt", "--parts", "luck"], "no part 'luck'"),
        (["--adapt", "--memory", "missing.json"], "adapt learn"),
    ],
)
def test_bad_options_are_told(args: list[str], told_: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["proxy", *args, "--url", "http://localhost:9/mcp"])
    assert told_ in str(done.exception)
    path = tmp_path / "memory.json"
    path.write_text(json.dumps({"tools": 3}))
    done = CliRunner().invoke(app, ["proxy", "--adapt", "--memory", str(path), "--url", "http://localhost:9/mcp"])
    assert "not an interface" in str(done.exception)
