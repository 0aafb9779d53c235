"""The proxy: tools shown perturbed, calls translated back, all else untouched; and no fault makes it hang."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from crosswind.base.errors import CannotPerturb, CrosswindError
from crosswind.core.draw import draw, parse_kind
from crosswind.core.flow import adrive, chain, rng_for
from crosswind.core.oracle import workarounds
from crosswind.core.registry import domains
from crosswind.core.session import Session
from crosswind.core.types import ToolCall, ToolError, ToolResult
from crosswind.episodes.recipe import Choice, Recipe, named, recipes
from crosswind.mcp import hiding, live, wire
from crosswind.mcp import tools as forms
from crosswind.mcp.plan import Plan
from crosswind.mcp.proxy import Discretion, Journal
from crosswind.mcp.relay import Relay
from crosswind.mcp.toolbox import ServerTools
from crosswind.mcp.upstream import Remote, ServerLink, open_channel
from crosswind.mcp.wire import BadFrame, Lines, WireError
from crosswind.runs.store import load_run
from crosswind.words import banks
from tests.fake_mcp import META, MORE, TOOLS, Shop
from tests.mcp.test_serve import Client, served

HERE = Path(__file__).resolve().parents[1]
SERVER = [sys.executable, str(HERE / "fake_mcp.py")]
Json = dict[str, Any]


# ---------------------------------------------------------------- a relay in this process


class Memory:
    """A channel to a shop."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.frames: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.got: list[Json] = []

    async def read(self) -> bytes | None:
        return await self.frames.get()

    async def write(self, frame: bytes) -> None:
        message = wire.parse(frame)
        self.got.append(message)
        answer = self.shop.answer(message)
        if answer is not None:
            self.frames.put_nowait(json.dumps(answer).encode())

    async def close(self) -> None:
        self.frames.put_nowait(None)


class Desk:
    """A client of a relay over a shop."""

    def __init__(self, plan: Plan, shop: Shop | None = None, *, modern: bool = False) -> None:
        self.shop, self.modern = shop or Shop(TOOLS), modern
        self.channel = Memory(self.shop)
        self.link = ServerLink(self.channel, self._other)
        self.said: list[str] = []
        self.relay = Relay(self, self.link, plan, self.said.append)
        self.heard: list[Json] = []
        self.waiting: dict[Any, asyncio.Future[Json]] = {}
        self.count = 0

    async def _other(self, message: Json, frame: bytes) -> None:
        await self.relay.from_server(message, frame)

    async def send(self, frame: bytes, message: Json) -> None:
        assert json.loads(frame) == message
        future = self.waiting.pop(message.get("id"), None) if "method" not in message else None
        if future is None:
            self.heard.append(message)
        else:
            future.set_result(message)

    async def __aenter__(self) -> Desk:
        self.reading = asyncio.create_task(self.link.run())
        if not self.modern:
            hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
            self.began = await self.ask("initialize", hello)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.relay.close()
        await self.channel.close()
        await self.reading

    async def ask(self, method: str, params: Json | None = None) -> Json:
        self.count += 1
        if self.modern:
            params = {**(params or {}), "_meta": {f"{META}protocolVersion": "2026-07-28"}}
        self.waiting[self.count] = asyncio.get_running_loop().create_future()
        future = self.waiting[self.count]
        await self.relay.from_client(wire.dump(wire.request(self.count, method, params)))
        return await asyncio.wait_for(future, 10)

    async def tools(self) -> dict[str, Json]:
        page = (await self.ask("tools/list"))["result"]
        listed = page["tools"]
        while "nextCursor" in page:
            page = (await self.ask("tools/list", {"cursor": page["nextCursor"]}))["result"]
            listed += page["tools"]
        return {tool["name"]: tool for tool in listed}

    async def call(self, name: str, **args: Any) -> Json:
        answer = await self.ask("tools/call", {"name": name, "arguments": args})
        result: Json = answer["result"]
        return result


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(work(), 30)

    asyncio.run(bounded())


def plan(*kinds: str, seed: int = 0) -> Plan:
    return Plan(recipe=live.without_tasks(named(kinds)), seed=seed)


def fits(value: Any, schema: Json) -> bool:
    """As much of JSON schema as the schemas here use."""
    kinds: dict[str, Any] = {
        "object": dict,
        "array": list,
        "string": str,
        "number": (int, float),
        "integer": int,
        "boolean": bool,
    }
    if "type" in schema and not isinstance(value, kinds[schema["type"]]):
        return False
    if isinstance(value, dict):
        parts = schema.get("properties", {})
        if any(name not in value for name in schema.get("required", ())):
            return False
        if schema.get("additionalProperties") is False and set(value) - set(parts):
            return False
        return all(fits(value[name], part) for name, part in parts.items() if name in value)
    return not isinstance(value, list) or all(fits(part, schema.get("items", {})) for part in value)


def told(raw: Json) -> ToolResult:
    """A result as a client that knows the way round reads it."""
    if raw.get("isError"):
        text = raw["content"][0]["text"]
        try:
            error = json.loads(text)
            return ToolResult(None, ToolError(error["error"], error["message"], error["error"] == "unavailable"))
        except (ValueError, TypeError, KeyError):
            return ToolResult(None, ToolError("server", text))
    value = forms.result_of(raw, None).content
    if isinstance(value, dict) and list(value) == ["result"] and not isinstance(value["result"], dict):
        value = value["result"]
    return ToolResult(value)


CALLS = (
    ToolCall("search_orders", {"customer_id": "C7", "status": "paid", "limit": 2}),
    ToolCall("get_customer", {"customer_id": "C8"}),
    ToolCall("create_order", {"customer_id": "C9", "item": "lamp"}),
)


@pytest.mark.parametrize("modern", [False, True])
@pytest.mark.parametrize("kind", live.applicable())
def test_calls_get_through_and_back(kind: str, modern: bool) -> None:
    """Whatever is applied to a server, calls reach it as they were and results come back, once translated."""

    async def work() -> None:
        for seed in range(2):
            for severity in (1, 3, 5):
                async with Desk(plan(f"{kind}:{severity}", seed=seed), modern=modern) as desk:
                    shown = await desk.tools()
                    session = desk.relay.session
                    assert session is not None
                    mine = Session(desk.relay.toolbox, session.layers)
                    ways = workarounds(mine)

                    async def send(call: ToolCall, desk: Desk = desk, shown: dict[str, Json] = shown) -> ToolResult:
                        for _ in range(7):
                            raw = await desk.call(call.tool, **call.args)
                            assert ("resultType" in raw) is desk.modern
                            schema = shown.get(call.tool, {}).get("outputSchema")
                            if schema is not None and not raw.get("isError"):
                                assert fits(raw["structuredContent"], schema), (call, raw, schema)
                            result = told(raw)
                            if not (result.error and result.error.retryable):
                                break
                        return result

                    for call in CALLS:
                        desk.shop.calls.clear()
                        mine.clock.nth = session.clock.nth + 1
                        back = await adrive(chain(call, ways), send)
                        reached = [c for c in desk.shop.calls if c["name"] == call.tool]
                        assert reached
                        assert all(c["arguments"] == dict(call.args) for c in reached)
                        assert len(reached) == 1 or call.tool != "create_order", "a write is done once"
                        assert back.error is None
                        assert back.content is not None
                        if call.tool == "get_customer":
                            assert back.content == {"name": "Customer C8", "city": "Ulm", "balance": 1250.75}

    run(work)


@pytest.mark.parametrize("kind", ["semantic_rename:5", "identity_erasure:5", "foreign_interface:5", "name_noise:5"])
def test_no_hidden_name_is_shown(kind: str) -> None:
    async def work() -> None:
        async with Desk(plan(kind, "parameter_rename:5") if "foreign" not in kind else plan(kind)) as desk:
            shown = await desk.tools()
            text = json.dumps(list(shown.values()))
            hidden = [tool["name"] for tool in TOOLS if tool["name"] not in shown]
            assert "get_customer" in hidden
            for name in (*hidden, "Search Orders", "Customer Id"):
                assert not re.search(rf"(?<![\w-]){name}(?![\w-])", text)
            spec = next(t for t in desk.relay.session.tools() if "get_customer" in t.ids)  # type: ignore[union-attr]
            args = {name: "" for name, param in spec.params.items() if param.required}
            raw = await desk.call(spec.name, **args)
            assert raw["isError"]
            assert not re.search(r"(?<![\w-])get_customer(?![\w-])", raw["content"][0]["text"])
            old = await desk.call("get_customer", customer_id="C1")
            assert old["isError"], "an old name works no more"

    run(work)


NUMBERS: list[Json] = [
    {
        "name": "list_orders",
        "description": "List orders. Leave page_number out unless max_results is given. Use the 'path' parameter, or "
        "`path`, for a path; a path is long.\n\nArgs:\n    path: where they lie\n    status: of the order",
        "inputSchema": {
            "type": "object",
            "properties": {
                "max_results": {"type": "integer", "description": "Not with page_number."},
                "page_number": {"type": "integer"},
                "path": {"type": "string"},
                "status": {"type": "string"},
            },
        },
    }
]


class Complaining(Shop):
    """A server whose errors name parameters: a text that it is told to say."""

    says = ""

    def _call(self, params: Json) -> Json | None:
        self.calls.append(params)
        return {"content": [{"type": "text", "text": self.says}], "isError": True}


def test_parameters_of_one_type_are_told_apart() -> None:
    """Two numbers have the same made-up value; neither is taken for the other."""

    async def work() -> None:
        for kinds in (["parameter_rename:5"], ["parameter_rename:5", "parameter_format:5"]):
            for seed in range(4):
                shop = Complaining(NUMBERS)
                async with Desk(plan(*kinds, seed=seed), shop) as desk:
                    tool = (await desk.tools())["list_orders"]
                    most, page, path, status = tool["inputSchema"]["properties"]
                    assert len({most, page, path, status, "max_results", "page_number", "path"}) == 7
                    doc = tool["description"]
                    assert f"Leave {page} out unless {most} is given." in doc
                    assert f"Use the '{path}' parameter, or `{path}`, for a path; a path is long." in doc
                    assert f"\n    {path}: where they lie\n    {status}: of the order" in doc
                    assert tool["inputSchema"]["properties"][most]["description"].startswith(f"Not with {page}")
                    shop.says = "max_results must be positive; page_number is fine; no path /a/path/x in this path"
                    said = (await desk.call("list_orders"))["content"][0]["text"]
                    assert said == f"{most} must be positive; {page} is fine; no path /a/path/x in this path"
                    shop.says = "Cannot specify both path and status parameters"
                    said = (await desk.call("list_orders"))["content"][0]["text"]
                    assert said == f"Cannot specify both {path} and {status} parameters"

    run(work)


@pytest.mark.parametrize(
    ("text", "becomes"),
    [("'head' and \"head\" and `head`", "'TOP' and \"TOP\" and `TOP`"),
     ("The head of the file, and a head/tail.", "The head of the file, and a head/tail."),
     ("the head argument", "the TOP argument"), ("heads of arguments", "heads of arguments"),
     ("missing parameter: head", "missing parameter: TOP"), ("bad arguments head, tail", "bad arguments TOP, END"),
     ("neither tail, path nor head parameters", "neither END, path nor TOP parameters"),
     ("required property 'head'", "required property 'TOP'"), ("head=3, /x?head=3", "TOP=3, /x?head=3"),
     ("data/head must be number", "data/TOP must be number"), ("/srv/head/tail.txt", "/srv/head/tail.txt"),
     ("1 error\nhead\n  Too large", "1 error\nTOP\n  Too large"), ("failed: head must be 1", "failed: TOP must be 1"),
     ('[{"path": ["head"], "head": 1}]', '[{"path": ["TOP"], "head": 1}]'),
     ("use `fetch`, the fetch tool, to fetch it", "use `GET`, the GET tool, to fetch it"),
     ("max_count", "MOST"), ("max_counts", "max_counts")],
)  # fmt: skip
def test_a_plain_word_is_replaced_where_it_is_a_name(text: str, becomes: str) -> None:
    tools, params = {"fetch": "GET"}, {"head": "TOP", "tail": "END", "max_count": "MOST"}
    assert hiding.renamed(text, tools, params) == becomes


def test_a_parameter_without_description_keeps_its_sense() -> None:
    """Words of a stranger's server are only replaced by such as do in every sense, and else are left alone."""
    journeys = {"trip", "ride", "transit", "passage", "voyage", "journey", "route"}
    words = ("path", "head", "tail", "page_number", "order", "value", "context", "input", "command", "language")
    for seed in range(30):
        for word in words:
            new = banks.key_name("mcp", word, "test", Random(seed), set())
            if word in ("head", "tail", "order", "context", "input"):
                assert new is None
            elif word == "path":
                assert new is not None
                assert not journeys & set(new.split("_"))
                assert "path" in new or "location" in new
            elif word == "page_number":
                assert new is not None
                assert new.startswith("page_")
    for word, lists in banks.data("common")["interface"].items():
        assert all(banks.lemma(word) != banks.lemma(entry) for split in lists.values() for entry in split), word


def test_a_hidden_parameter_is_not_in_errors() -> None:
    async def work() -> None:
        async with Desk(plan("parameter_rename:5")) as desk:
            shown = await desk.tools()
            *others, limit = shown["search_orders"]["inputSchema"]["properties"]
            assert "limit" not in (*others, limit)
            raw = await desk.call("search_orders", **{others[0]: "C1", limit: 1000})
            assert raw["content"][0]["text"] == f"1 error for search_orders\n{limit}\n  Too large"

    run(work)


@pytest.mark.parametrize("modern", [False, True])
def test_nothing_is_changed_without_a_recipe(modern: bool) -> None:
    async def work() -> None:
        shop = Shop()
        async with Desk(Plan(), shop, modern=modern) as desk:
            assert await desk.tools() == {tool["name"]: tool for tool in (*TOOLS, *MORE)}
            for name in ("see_picture", "read_note"):
                expected = shop.answer({"id": 1, "method": "tools/call", "params": {"name": name}})
                assert expected is not None
                more = {"resultType": "complete"} if modern else {}
                assert await desk.call(name) == {**expected["result"], **more}
            assert "error" in await desk.ask("tools/call", {"name": "nothing"})
            assert (await desk.ask("prompts/list"))["result"]["prompts"] == []
            assert (await desk.ask("nothing/like/it"))["error"]["code"] == -32601

    run(work)


def test_pictures_come_along_and_braces_stay() -> None:
    async def work() -> None:
        async with Desk(plan("envelope:1"), Shop()) as desk:
            shown = await desk.tools()
            assert "{braces}" in shown["read_note"]["description"]
            raw = await desk.call("see_picture")
            assert [block["type"] for block in raw["content"]] == ["text", "image"]
            assert json.loads(raw["content"][0]["text"]) != "A tree."

    run(work)


@pytest.mark.parametrize("modern", [False, True])
def test_a_tool_retires_with_the_right_notice(modern: bool) -> None:
    changed = "notifications/tools/list_changed"

    async def work() -> None:
        async with Desk(plan("retired_midway:1"), modern=modern) as desk:
            if modern:
                meta = {f"{META}protocolVersion": "2026-07-28"}
                params = {"notifications": {"toolsListChanged": True}, "_meta": meta}
                await desk.relay.from_client(wire.dump(wire.request("listen-1", "subscriptions/listen", params)))
                await asyncio.sleep(0.05)
                assert [m["method"] for m in desk.heard] == ["notifications/subscriptions/acknowledged"]
            else:
                assert desk.began["result"]["capabilities"]["tools"]["listChanged"] is True
            before = await desk.tools()
            for _ in range(8):
                await desk.call("get_customer", customer_id="C1")
            notices = [m for m in desk.heard if m["method"] == changed]
            assert len(notices) == 1
            if modern:
                assert notices[0]["params"]["_meta"][f"{META}subscriptionId"] == "listen-1"
            assert set(await desk.tools()) != set(before)

    run(work)


def test_calls_at_the_same_time_do_not_mix() -> None:
    async def work() -> None:
        async with Desk(plan("semantic_rename:5", "verification_code:3", "envelope:2")) as desk:
            await desk.tools()
            name = next(t.name for t in desk.relay.session.tools() if "get_customer" in t.ids)  # type: ignore[union-attr]
            raws = await asyncio.gather(*(desk.call(name, customer_id=f"C{n}") for n in range(60)))
            for n, raw in enumerate(raws):
                assert f'Customer C{n}"' in raw["content"][0]["text"]
            assert len(desk.relay.session.steps) == 60  # type: ignore[union-attr]

    run(work)


class LocalShop:
    """The shop as a toolbox in this process."""

    remote, foreign = False, True

    def __init__(self, shop: Shop) -> None:
        self.shop, self.server = shop, ServerTools(forms.tools_of(shop.tools), self._never)
        self.specs, self.check = self.server.specs, self.server.check

    async def _never(self, call: ToolCall, more: Json) -> Json:
        raise AssertionError("it answers at once")

    @property
    def writes(self) -> int:
        return self.server.writes

    def call(self, call: ToolCall) -> ToolResult:
        params = {"name": call.tool, "arguments": dict(call.args)}
        answer = self.shop.answer({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        assert answer is not None
        return self.server.answer(call, answer)

    async def ask(self, call: ToolCall) -> ToolResult:
        return self.call(call)


@pytest.mark.parametrize("kind", ["", *live.applicable()])
def test_a_server_elsewhere_and_a_toolbox_here_are_met_alike(kind: str) -> None:
    """The proxy has the session that everybody has: the same layers give the same, wherever the tools are."""

    async def work() -> None:
        tools = [tool for tool in TOOLS + MORE if tool["name"] != "slow_call"]
        for seed, severity in enumerate((1, 3, 5)):
            asked = [f"{kind}:{severity}"] if kind else []
            kinds = [parse_kind(text) for text in asked]
            layers = live.draw(forms.tools_of(tools), kinds, seed).layers  # none of a kind that does not apply here
            async with Desk(Plan(stack=layers), Shop(tools)) as desk:
                shown = await desk.tools()
                there = await desk.relay._known({})
                assert type(there) is Session
                here = Session(LocalShop(Shop(tools)), there.layers)
                for _ in range(2):
                    assert [spec.name for spec in here.tools()] == [spec.name for spec in there.tools()]
                    for name, tool in shown.items():
                        args = {
                            k: v for k, v in (forms.example(tool["inputSchema"], name) or {}).items() if v is not None
                        }
                        await desk.call(name, **args)
                        here.call(ToolCall(name, args))
                    await desk.ask("tools/call", {"name": "no_such_tool", "arguments": {}})
                    here.call(ToolCall("no_such_tool", {}))
                assert here.steps == there.steps
                assert here.receipts() == there.receipts()
                assert here.toolbox.writes == there.toolbox.writes >= (not layers)

    run(work)


@pytest.mark.parametrize("kinds", [[], ["envelope:3"], ["semantic_rename:5", "transient_error:5"]])
def test_a_server_may_have_a_tool_by_the_name_that_asks_users(kinds: list[str]) -> None:
    """In an episode `ask_user` is ours; behind a proxy it is a tool as any other."""

    class Help(Shop):
        def _call(self, params: Json) -> Json | None:
            return {"content": [{"type": "text", "text": json.dumps(params["arguments"])}]}

    async def work() -> None:
        schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
        tools = [*TOOLS, {"name": "ask_user", "description": "Ask somebody.", "inputSchema": schema}]
        async with Desk(plan(*kinds) if kinds else Plan(), Help(tools)) as desk:
            assert len(await desk.tools()) == len(tools)
            session = await desk.relay._known({})
            name = next(spec.name for spec in session.tools() if "ask_user" in spec.ids)
            for _ in range(8):
                raw = await desk.call(name, text="Anybody there?")
                if not raw.get("isError"):
                    break
            assert "Anybody there?" in raw["content"][0]["text"]

    run(work)


def test_the_same_seed_lays_the_same_stack() -> None:
    tools = forms.tools_of([*TOOLS, *MORE])
    recipe = live.without_tasks(recipes["hard"])
    for seed in range(6):
        one, two = live.follow(tools, recipe, seed), live.follow(tools, recipe, seed)
        assert one.layers == two.layers
    assert len({str(live.follow(tools, recipe, seed).layers) for seed in range(6)}) > 1


def test_a_server_that_changes_its_tools() -> None:
    async def work() -> None:
        async with Desk(plan("name_noise:5")) as desk:
            before = await desk.tools()
            desk.shop.tools = [*TOOLS, {"name": "newcomer", "inputSchema": {"type": "object", "properties": {}}}]
            note = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
            desk.channel.frames.put_nowait(json.dumps(note).encode())
            await asyncio.sleep(0.05)
            assert desk.heard == [note]
            assert set(await desk.tools()) == {*before, "newcomer"}

    run(work)


def test_new_tools_that_do_not_go_with_the_layers_change_nothing() -> None:
    async def work() -> None:
        async with Desk(plan("semantic_rename:5")) as desk:
            before = await desk.tools()
            session = desk.relay.session
            assert session is not None
            taken = next(t.name for t in session.tools() if "get_customer" in t.ids and t.name != "get_customer")
            inner = [dict(memo.tools) for memo in session.memos]
            desk.shop.tools = [*TOOLS, {"name": taken, "description": "New.", "inputSchema": {"type": "object"}}]
            note = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
            desk.channel.frames.put_nowait(json.dumps(note).encode())
            await asyncio.sleep(0.05)
            assert await desk.tools() == before
            assert any("the old ones stay" in said for said in desk.said)
            assert set(desk.relay.toolbox.tools) == {tool["name"] for tool in TOOLS}
            assert [dict(memo.tools) for memo in session.memos] == inner
            args = dict.fromkeys(before[taken]["inputSchema"]["properties"], "C1")
            assert "Customer C1" in (await desk.call(taken, **args))["content"][0]["text"]

    run(work)


@pytest.mark.parametrize("kinds", [[], ["envelope:1"]])
def test_a_text_without_text_is_passed_on(kinds: list[str]) -> None:
    class Odd(Shop):
        def _call(self, params: Json) -> Json | None:
            return {"content": [{"type": "text"}, {"type": "text", "text": "a"}]}

    async def work() -> None:
        async with Desk(plan(*kinds) if kinds else Plan(), Odd(TOOLS)) as desk:
            await desk.tools()
            content = (await desk.call("get_customer", customer_id="C1"))["content"]
            assert {"type": "text"} in content
            assert any("a" in block.get("text", "") for block in content)
            assert not desk.said or "internal error" not in " ".join(desk.said)

    run(work)


def test_receipts_say_at_which_step_and_whether_the_client_went_on() -> None:
    async def work() -> None:
        async with Desk(plan("transient_error:5", "envelope:1", "semantic_rename:5")) as desk:
            await desk.tools()
            session = desk.relay.session
            assert session is not None
            name = next(t.name for t in session.tools() if "get_customer" in t.ids)
            by_kind: Callable[[], Json] = lambda: {r.kind: (r.fired, r.step, r.seen) for r in session.receipts()}  # noqa: E731
            assert by_kind()["semantic_rename"] == (True, 0, False), "shown, and nobody has acted on it yet"
            assert by_kind()["transient_error"] == (False, None, False)
            first: dict[str, int] = {}
            for n in range(1, 9):
                args = {"customer_id": "C1"}
                raw = await desk.call(name, **args)
                first.setdefault("transient_error" if raw.get("isError") else "envelope", n)
                for kind, step in first.items():
                    assert by_kind()[kind] == (True, step, step < n), (kind, n)
                assert by_kind()["semantic_rename"] == (True, 0, True)
            assert set(first) == {"transient_error", "envelope"}

    run(work)


def test_receipts_of_served_episodes_say_the_same() -> None:
    """An obstacle at the last step that there may be is met, and seen by nobody; one call later it was seen."""
    domain = domains["poi"]
    drawn = draw(domain, domain.task(next(iter(domain.families)), 0), [("transient_error", 5)], 0)
    met = next(n for n, step in enumerate(drawn.certificate.gold.steps, 1) if step.fired)

    for count, budget, expected in (
        (met, met, (True, met, False)),
        (met + 1, met + 1, (True, met, True)),
        (met - 1, met + 1, (False, None, False)),
    ):

        async def act(client: Client, count: int = count) -> None:
            await client.tools()
            for step in drawn.certificate.gold.steps[:count]:
                await client.call(step.call.tool, dict(step.call.args))

        bounded = replace(drawn, certificate=replace(drawn.certificate, budget=budget))
        trajectory = served(bounded, act)
        assert len(trajectory.steps) == count
        assert [(r.fired, r.step, r.seen) for r in trajectory.receipts] == [expected]


def test_a_call_that_needs_more_goes_on_where_it_was() -> None:
    """The newer era puts a call off until the client has answered; layers meet it once."""

    class Asking(Shop):
        def _call(self, params: Json) -> Json | None:
            if "requestState" not in params:
                return {"resultType": "input_required", "requestState": "s1", "inputRequests": {}}
            return super()._call(params)

    async def work() -> None:
        async with Desk(plan("verification_code:5"), Asking(TOOLS), modern=True) as desk:
            shown = await desk.tools()
            issuer = next(name for name in shown if name not in {tool["name"] for tool in TOOLS})
            code = json.loads((await desk.call(issuer))["content"][0]["text"])
            args = {"customer_id": "C1", "item": "lamp", **code}
            first = await desk.call("create_order", **args)
            assert first["resultType"] == "input_required"
            again = await desk.ask("tools/call", {"name": "create_order", "arguments": args, "requestState": "s1"})
            assert again["result"]["structuredContent"]["order_id"] == "O101"

    run(work)


def test_mutilated_frames_do_no_harm() -> None:
    """Frames with bytes changed, cut or doubled, from both sides; the relay still answers."""
    rng = Random(0)

    def mutilated(frame: bytes) -> bytes:
        data = bytearray(frame)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(data) + 1)
            piece = bytes(rng.choices(b'{}[]",:0123456789truenl\\ \xff', k=rng.randint(0, 4)))
            data[at : at + rng.randint(0, 6)] = piece
        return bytes(data).replace(b"\n", b" ") or b"x"

    async def work() -> None:
        async with Desk(plan("semantic_rename:5", "verification_code:5", "rate_limit:2", "envelope:4")) as desk:
            shown = list(await desk.tools())
            for n in range(600):
                name = rng.choice([*shown, "get_customer"])
                frame = json.dumps(call(10_000 + n, name, customer_id="C1", item="lamp")).encode()
                await desk.relay.from_client(mutilated(frame))
                if n % 3 == 0:
                    answer = json.dumps({"jsonrpc": "2.0", "id": n, "result": {"content": []}}).encode()
                    desk.channel.frames.put_nowait(mutilated(answer))
            await asyncio.wait_for(desk.relay.settle(), 10)
            assert (await desk.ask("ping"))["result"] == {}
            assert not [said for said in desk.said if "internal error" in said]

    run(work)


# ---------------------------------------------------------------- kinds, recipes, frames


def test_kinds_that_need_a_task_are_refused() -> None:
    for kind in ("paraphrase", "unsolvable", "changed_mind", "tool_merge", "dependency_inversion"):
        assert live.needs_task(kind)
        with pytest.raises(CrosswindError, match=r"These can: .*semantic_rename"):
            live.without_tasks(named([kind]))
    with pytest.raises(CrosswindError, match="no kind of the group 'query'"):
        live.without_tasks(Recipe(stack=(Choice(group="query"),)))
    assert set(live.without_tasks(recipes["mixed"]).kinds()) < set(recipes["mixed"].kinds())
    for bad in ("no_such_kind", "envelope:9"):
        with pytest.raises(CrosswindError):
            named([bad])


def test_results_of_every_shape() -> None:
    tool = forms.tools_of(TOOLS)["search_orders"]
    assert forms.result_of({"content": [], "structuredContent": {"result": [1]}}, tool).content == [1]
    assert forms.result_of({"content": [{"type": "text", "text": "[1, 2]"}]}, None).content == [1, 2]
    assert forms.result_of({"content": [{"type": "text", "text": "{no"}]}, None).content == "{no"
    two = [{"type": "text", "text": '{"a": 1}'}, {"type": "text", "text": '{"a": 2}'}]
    assert forms.result_of({"content": two}, None).content == [{"a": 1}, {"a": 2}]
    assert forms.result_of({"content": "odd"}, None).content is None
    odd: Json = {"content": [{"type": "text"}, {"type": "text", "text": 5}, 7, None, {"type": "text", "text": "a"}]}
    result = forms.result_of(odd, None)
    assert result.content == "a"
    assert forms.answer(result, [odd], structured=False)["content"][1:] == [
        {"type": "text"},
        {"type": "text", "text": 5},
    ]
    assert forms.result_of({"content": two[:1], "isError": True}, None).error is not None
    assert forms.tools_of([None, {"name": 3}, {"name": "x", "inputSchema": 4}]).keys() == {"x"}


def lines_of(data: bytes, limit: int) -> list[bytes | str]:
    async def work() -> list[bytes | str]:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        lines, out = Lines(reader, None, limit=limit), list[bytes | str]()  # type: ignore[arg-type]
        while True:
            try:
                frame = await lines.read()
            except BadFrame as bad:
                out.append(str(bad))
                continue
            if frame is None:
                return out
            out.append(frame)

    return asyncio.run(work())


def test_frames_are_bounded_and_the_next_one_is_read() -> None:
    long = "a frame of more than 10 bytes"
    assert lines_of(b"one\n\n" + b"x" * 200_000 + b"\ntwo\r\nhalf", 10) == [b"one", long, b"two"]
    assert lines_of(b"x" * 11 + b"\nok\n", 10) == [long, b"ok"]
    assert lines_of(b"x" * 50, 10) == [long]


def test_a_frame_that_never_ends_is_refused_at_the_limit() -> None:
    async def work() -> None:
        reader = asyncio.StreamReader()
        lines = Lines(reader, None, limit=10)  # type: ignore[arg-type]
        reader.feed_data(b"one\n" + b"x" * 11)
        assert await lines.read() == b"one"
        with pytest.raises(BadFrame, match="more than 10 bytes"):
            await asyncio.wait_for(lines.read(), 5)  # nobody waits for its end
        reader.feed_data(b"x" * 200 + b"\ntwo\n")
        assert await lines.read() == b"two"

    run(work)


@pytest.mark.parametrize(
    "frame",
    [b"{", b"[]", b"3", b"{}", b'{"jsonrpc":"2.0"}', b'{"jsonrpc":"2.0","id":true,"method":"a"}', b"[" * 100_000,
     b'{"jsonrpc":"2.0","id":NaN,"method":"a"}', b'{"jsonrpc":"2.0","id":1e400,"method":"a"}',
     b'{"jsonrpc":"2.0","id":null,"method":"a"}', b'{"jsonrpc":"2.0","id":1,"result":1,"error":2}', b"\xff\xfe"],
)  # fmt: skip
def test_what_is_no_message(frame: bytes) -> None:
    with pytest.raises(BadFrame):
        wire.parse(frame)


def test_numbers_that_json_does_not_have_are_parse_errors() -> None:
    class Odd(Shop):
        def _call(self, params: Json) -> Json | None:
            return {"content": [], "structuredContent": {"balance": float("inf")}}

    async def work() -> None:
        async with Desk(plan("envelope:3"), Odd()) as desk:
            await desk.relay.from_client(b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":NaN}}')
            assert desk.heard.pop()["error"]["code"] == wire.PARSE_ERROR
            for balance in (1, float("1e999")):
                params = {"name": "get_customer", "arguments": {"customer_id": "C1", "balance": balance}}
                frame = json.dumps(wire.request(8, "tools/call", params)).replace("Infinity", "1e999")
                await desk.relay.from_client(frame.encode())
                while not desk.heard:
                    await asyncio.sleep(0.01)
                assert desk.heard.pop()["error"]["code"] == wire.PARSE_ERROR
        async with Http() as http:
            status, _, text = await http.post(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":-Infinity}}')
            assert (status, json.loads(text)["error"]["code"]) == (400, wire.PARSE_ERROR)

    run(work)


# ---------------------------------------------------------------- the process


class Process:
    """`crosswind proxy` as a client starts it."""

    def __init__(self, *flags: str, fault: str = "", server: list[str] | None = None) -> None:
        command = [*(SERVER if server is None else server), *(["--fault", fault] if fault else [])]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "crosswind.cli.app", "proxy", *flags, "--", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        self.frames: queue.Queue[Json | None] = queue.Queue()
        self.errors: list[str] = []
        self.threads = [threading.Thread(target=self._read), threading.Thread(target=self._hear)]
        for thread in self.threads:
            thread.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.frames.put(json.loads(line))
        self.frames.put(None)

    def _hear(self) -> None:
        assert self.process.stderr
        self.errors += [line.decode() for line in self.process.stderr]

    def write(self, *frames: Json | bytes) -> None:
        assert self.process.stdin
        for frame in frames:
            self.process.stdin.write((frame if isinstance(frame, bytes) else json.dumps(frame).encode()) + b"\n")
        self.process.stdin.flush()

    def read(self) -> Json:
        frame = self.frames.get(timeout=30)
        assert frame is not None, self.errors
        return frame

    def begin(self) -> None:
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        self.write({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
        assert self.read()["id"] == 0
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def end(self) -> int:
        """Close the client's side and wait; the exit code."""
        assert self.process.stdin
        self.process.stdin.close()
        code = self.process.wait(30)
        for thread in self.threads:
            thread.join(10)
        assert self.process.stdout
        assert self.process.stderr
        self.process.stdout.close()
        self.process.stderr.close()
        return code

    @property
    def said(self) -> str:
        return "".join(self.errors)


@pytest.fixture
def proxy() -> Iterator[Callable[..., Process]]:
    made: list[Process] = []

    def make(*flags: str, **more: Any) -> Process:
        made.append(Process(*flags, **more))
        return made[-1]

    yield make
    for one in made:
        if one.process.poll() is None:
            one.process.kill()
        with contextlib.suppress(BrokenPipeError):
            one.end()  # pipes that a failed test left open would make a later test fail


def call(id: int, name: str, **args: Any) -> Json:
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": args}}


def test_a_session_leaves_its_record(proxy: Callable[..., Process], tmp_path: Path) -> None:
    folder = tmp_path / "log"
    for n in range(2):
        one = proxy("--perturb", "semantic_rename:5", "--perturb", "transient_error:1", "--log", str(folder))
        one.begin()
        one.write({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, call(2, "get_customer", customer_id="C1"))
        shown = [tool["name"] for tool in one.read()["result"]["tools"]]
        assert one.read()["result"]["isError"]
        one.write(call(3, shown[0], customer_id="C1"), call(4, shown[0], customer_id="C1"))
        one.read()
        one.read()
        assert one.end() == 0, one.said
        found = load_run(folder)
        assert len(found.records) == n + 1
    record = found.records[-1]
    assert (record.outcome, record.ended, record.agent) == ("unjudged", "closed", "t 1")
    assert record.kinds == ("transient_error", "semantic_rename")
    assert [receipt.kind for receipt in record.receipts] == list(record.kinds)
    assert record.receipts[1].fired
    assert record.steps[0]["result"]["error"]["code"] == "unknown_tool"
    assert found.records[0].layers == record.layers, "the same seed"
    assert record.steps[1]["inner"] or record.steps[2]["inner"]
    for command in ("show", "diagnose", "report"):
        flags = ["--baselines", "0"] if command == "report" else []
        done = subprocess.run(
            [sys.executable, "-m", "crosswind.cli.app", command, str(folder), *flags],
            capture_output=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=False,
        )
        assert done.returncode == 0, done.stderr


def test_malformed_and_huge_frames_are_answered(proxy: Callable[..., Process]) -> None:
    one = proxy("--perturb", "name_noise")
    one.begin()
    one.write(b"garbage", b"[1,2]", b'{"jsonrpc":"1.0"}', b'{"jsonrpc":"2.0","id":{},"method":"ping"}')
    one.write(*(b'{"jsonrpc":"2.0","id":%s,"method":"tools/list"}' % id for id in (b"NaN", b"1e400", b"-Infinity")))
    codes = [-32700, -32600, -32600, -32600, -32700, -32600, -32700]  # 1e400 is JSON, though no id
    assert [one.read()["error"]["code"] for _ in range(7)] == codes
    one.write(b'{"jsonrpc":"2.0","id":5,"method":"ping","params":"' + b"x" * (17 * 2**20) + b'"}')
    assert "more than" in one.read()["error"]["message"]
    one.write(call(6, "nobody"), {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": 3}})
    assert {one.read()["id"] for _ in range(2)} == {6, 7}
    one.write({"jsonrpc": "2.0", "id": 8, "method": "ping"})
    assert one.read() == {"jsonrpc": "2.0", "id": 8, "result": {}}
    assert one.end() == 0


def test_interleaved_ids_and_cancellation(proxy: Callable[..., Process]) -> None:
    one = proxy(fault="slow")
    one.begin()
    one.write({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    one.read()
    one.write(*(call(n, "get_customer", customer_id=f"C{n}") for n in (5, 3, 4)))
    got = [one.read() for _ in range(3)]
    assert all(f"C{m['id']}" in m["result"]["content"][0]["text"] for m in got)
    one.write(call(9, "slow_call"))
    one.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}})
    began = time.monotonic()
    assert one.end() == 0
    assert time.monotonic() - began < 15
    rest = []
    while (frame := one.frames.get(timeout=5)) is not None:
        rest.append(frame)
    assert not rest, "a cancelled call is not answered"


@pytest.mark.parametrize(
    ("fault", "says"),
    [("dies", "exit code 9"), ("huge", "more than"), ("no end", "more than"),
     ("flood", "lines that are not MCP messages"), ("lies", "no list of tools"), ("endless", "does not end")],
)  # fmt: skip
def test_a_server_that_fails(proxy: Callable[..., Process], tmp_path: Path, fault: str, says: str) -> None:
    one = proxy("--perturb", "name_noise:1", "--log", str(tmp_path / "log"), fault=fault)
    one.begin()
    one.write(call(1, "get_customer", customer_id="C1"), call(2, "search_orders", customer_id="C1"))
    answers = [one.read() for _ in range(2)]
    assert {m["id"] for m in answers} == {1, 2}
    assert any(says in m["error"]["message"] for m in answers if "error" in m), answers
    if fault in ("lies", "endless"):  # it speaks, and what it says is of no use
        assert one.end() == 0
        return
    assert one.process.wait(30) == 3
    assert one.end() == 3
    assert says in one.said
    if fault == "dies":
        assert [r.outcome for r in load_run(tmp_path / "log").records] == ["error"]


def test_a_server_that_cannot_be_started(proxy: Callable[..., Process]) -> None:
    one = proxy(server=["/no/such/command"])
    assert one.process.wait(30) == 3
    assert one.end() == 3
    assert "no such command" in one.said
    other = proxy(fault="no start")
    assert other.process.wait(30) == 3
    assert other.end() == 3
    assert "exit code 7 before it sent a message" in other.said


def test_a_slow_server_gives_an_error_in_time(proxy: Callable[..., Process]) -> None:
    one = proxy("--timeout", "0.5", fault="slow")
    one.begin()
    one.write(call(1, "slow_call"))
    assert "within 0.5 seconds" in one.read()["error"]["message"]
    one.end()


@pytest.mark.parametrize("how", ["leaves", "terminated"])
@pytest.mark.parametrize("fault", ["child", "deaf"])
def test_no_process_is_left(proxy: Callable[..., Process], fault: str, how: str) -> None:
    one = proxy(fault=fault)
    one.begin()
    group = int(
        subprocess.run(
            ["pgrep", "-P", str(one.process.pid), "-f", "fake_mcp"], capture_output=True, check=True
        ).stdout.split()[0]
    )
    if how == "terminated":
        one.process.send_signal(signal.SIGTERM)
        assert one.process.wait(30) == 128 + signal.SIGTERM
        one.end()
    else:
        assert one.end() == 0
    for _ in range(50):
        if not subprocess.run(["pgrep", "-g", str(group)], capture_output=True, check=False).stdout.split():
            return
        time.sleep(0.1)
    raise AssertionError("a process outlived the proxy")


def test_noise_on_the_servers_output_is_passed_over(proxy: Callable[..., Process]) -> None:
    one = proxy(fault="noise")
    one.begin()
    one.write(call(1, "get_customer", customer_id="C1"))
    assert "Customer C1" in one.read()["result"]["content"][0]["text"]
    assert one.end() == 0
    assert "not an MCP message" in one.said


@pytest.mark.parametrize(
    ("flags", "says"),
    [(["--perturb", "paraphrase"], "These can: "), (["--perturb", "nonsense"], "no perturbation"),
     (["--recipe", "mild", "--perturb", "envelope"], "give one of"),
     (["--url", "ftp://x"], "give --url, or the server")],
)  # fmt: skip
def test_mistakes_in_the_command(proxy: Callable[..., Process], flags: list[str], says: str) -> None:
    one = proxy(*flags)
    assert one.process.wait(30) == 2
    assert one.end() == 2
    assert says in one.said


POOR: list[Json] = [{"name": "go", "description": "Goes.", "inputSchema": {"type": "object", "properties": {}}}]
POOR_SERVER = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(HERE)!r}); import fake_mcp as f\n"
               f"f.TOOLS[:], f.MORE[:] = {POOR!r}, []; f.main()"]  # fmt: skip


def listed(id: int) -> Json:
    return {"jsonrpc": "2.0", "id": id, "method": "tools/list"}


def test_a_kind_that_cannot_be_laid_is_refused(proxy: Callable[..., Process], tmp_path: Path) -> None:
    one = proxy("--perturb", "parameter_rename", "--log", str(tmp_path / "log"), server=POOR_SERVER)
    one.begin()
    one.write(listed(1))
    assert "parameter_rename does not apply" in one.read()["error"]["message"]
    assert one.process.wait(30) == 2
    assert one.end() == 2
    assert "nothing can be applied to the 1 tools of this server" in one.said
    assert not load_run(tmp_path / "log").records


def test_of_several_kinds_those_that_lie_are_on_record(proxy: Callable[..., Process], tmp_path: Path) -> None:
    flags = ["--perturb", "parameter_rename:2", "--perturb", "transient_error:1"]
    one = proxy(*flags, "--log", str(tmp_path / "log"), server=POOR_SERVER)
    one.begin()
    one.write(listed(1), call(2, "go"))
    assert {one.read()["id"], one.read()["id"]} == {1, 2}
    assert one.end() == 0
    assert "NOT APPLIED: parameter_rename does not apply to mcp: it needs a parameter" in one.said
    (record,) = load_run(tmp_path / "log").records
    assert (record.condition, record.kinds) == ("transient_error:1", ("transient_error",))


def test_a_recipe_is_drawn_again_until_something_lies() -> None:
    tools = forms.tools_of(POOR)
    recipe = Recipe(name="r", stack=(Choice(one_of={"parameter_rename": 30.0, "key_rename": 30.0, "envelope": 4.0}),))
    picks = [recipe.pick(rng_for("recipe", seed, "mcp"))[0][0] for seed in range(6)]
    assert "envelope" not in picks, "at first none of them can be laid"
    drawn = [live.follow(tools, recipe, seed) for seed in range(6)]
    assert all([layer.kind for layer in one.layers] == ["envelope"] for one in drawn)
    assert [one.layers for one in drawn] == [live.follow(tools, recipe, seed).layers for seed in range(6)]
    maybe = Recipe(name="m", stack=(Choice(kind="envelope", chance=0.3),))
    assert all(live.follow(tools, maybe, seed).layers for seed in range(6))
    with pytest.raises(CannotPerturb, match="parameter_rename does not apply"):
        live.follow(tools, Recipe(name="n", stack=(Choice(kind="parameter_rename"),)), 0)
    with pytest.raises(CannotPerturb, match="it picks no kind"):
        live.follow(tools, Recipe(name="e", stack=()), 0)
    assert live.condition(recipe, drawn[0].layers) == "r"


def test_a_stack_of_another_server_is_refused() -> None:
    drawn = live.follow(forms.tools_of(TOOLS), named(["semantic_rename:5"]), 0)
    assert Plan(stack=drawn.layers).draw(forms.tools_of(TOOLS)).layers == drawn.layers
    with pytest.raises(CannotPerturb, match="changes nothing"):
        Plan(stack=drawn.layers).draw(forms.tools_of(POOR))


@pytest.mark.parametrize("what", ["envelope", "parameter_rename"])
def test_http_ends_where_nothing_can_be_laid(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        command = [
            sys.executable,
            "-m",
            "crosswind.cli.app",
            "proxy",
            "--perturb",
            what,
            "--http",
            "0",
            "--",
            *POOR_SERVER,
        ]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "CROSSWIND_PROXY_TOKEN": "secret"}
        process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE, env=env)
        try:
            assert process.stderr
            port = re.search(r"127.0.0.1:(\d+)", (await process.stderr.readline()).decode())
            assert port
            remote = Remote(await open_channel(f"http://127.0.0.1:{port[1]}/mcp"))
            if what == "envelope":
                async with remote:
                    assert list(remote.listed) == ["go"]
                return
            with pytest.raises(WireError, match="does not apply"):
                await remote.__aenter__()
            assert await asyncio.wait_for(process.wait(), 20) == 2
        finally:
            if process.returncode is None:
                process.terminate()
                await process.wait()

    monkeypatch.setenv("CROSSWIND_SERVER_TOKEN", "secret")
    run(work)


def test_learning_from_a_command_that_ends_at_once() -> None:
    done = crosswind("learn", "--", "false")
    assert done.returncode != 0
    assert "the server ended with exit code 1 before it sent a message" in done.stderr


def test_learning_from_an_address_where_nothing_listens() -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{one.getsockname()[1]}/mcp"
        done = crosswind("learn", "--url", url)
    assert done.returncode == 3
    assert "refused" not in done.stderr.partition("(")[0]
    assert "cannot connect" in done.stderr
    assert "is it running?" in done.stderr


def test_a_server_that_fails_before_a_client_that_leaves_at_once_has_read_anything() -> None:
    done = crosswind("proxy", "--", sys.executable, "/nowhere/server.py", stdin=subprocess.DEVNULL)
    assert done.returncode == 3
    assert "the server ended with exit code 2 before it sent a message" in done.stderr


def crosswind(*args: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """The command line, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "crosswind.cli.app", *args],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
        text=True,
        **more,
    )


# ---------------------------------------------------------------- HTTP


class Http:
    """The proxy over HTTP, in this process."""

    def __init__(self, *kinds: str) -> None:
        self.kinds = kinds

    async def __aenter__(self) -> Http:
        from crosswind.mcp.proxy import Connection
        from crosswind.mcp.proxy_http import HttpFront

        wanted = plan(*self.kinds) if self.kinds else Plan()
        self.front = HttpFront(lambda: Connection(SERVER, wanted, None, lambda _: None), "secret", lambda _: None)
        await self.front.start(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.front.aclose()

    async def post(
        self, message: Any, *, method: str = "POST", path: str = "/mcp", **headers: str
    ) -> tuple[int, Json, str]:
        """Status, headers and body."""
        host, port = "127.0.0.1", self.front.port
        reader, writer = await asyncio.open_connection(host, port)
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        all_headers = {
            "Host": f"{host}:{port}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Authorization": "Bearer secret",
            "Connection": "close",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        lines = [f"{method} {path} HTTP/1.1", *(f"{k}: {v}" for k, v in all_headers.items() if v)]
        writer.write("\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body)
        head, _, rest = (await asyncio.wait_for(reader.read(), 20)).partition(b"\r\n\r\n")
        writer.close()
        first, *fields = head.decode().split("\r\n")
        named = [field.split(": ", 1) for field in fields]
        got = {name.lower(): value for name, value in named}
        if got.get("transfer-encoding") == "chunked":
            parts, rest = rest, b""
            while size := int((parts.partition(b"\r\n"))[0], 16):
                parts = parts.partition(b"\r\n")[2]
                rest, parts = rest + parts[:size], parts[size + 2 :]
        return int(first.split()[1]), got, rest.decode()


PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}


def test_http_lets_nobody_in_without_the_token() -> None:
    async def work() -> None:
        async with Http() as http:
            assert (await http.post(PING, Authorization=""))[0] == 401
            assert (await http.post(PING, Authorization="Bearer wrong"))[0] == 401
            assert (await http.post(PING, Host="evil.example.org"))[0] == 403
            assert (await http.post(PING, Origin="https://evil.example.org"))[0] == 403
            assert (await http.post(PING, path="/other"))[0] == 404
            assert (await http.post(PING, Content_Type="text/plain"))[0] == 415
            assert (await http.post(b"garbage"))[0] == 400
            assert (await http.post(PING, Mcp_Session_Id="unknown"))[0] == 404
            assert (await http.post(b"", method="GET"))[0] == 405
            assert not http.front.episodes, "nothing was started for any of them"
            assert http.front._server is not None
            assert all(s.getsockname()[0] == "127.0.0.1" for s in http.front._server.sockets)
            same = await http.post(PING, Origin=f"http://127.0.0.1:{http.front.port}")
            assert same[0] == 200

    run(work)


def test_http_sessions_are_episodes_of_their_own() -> None:
    async def work() -> None:
        async with Http("semantic_rename:5", "retired_midway:1") as http:
            _, one, text = await http.post(HELLO)
            assert json.loads(text)["result"]["capabilities"]["tools"]["listChanged"] is True
            _, two, _ = await http.post(HELLO)
            session = one["mcp-session-id"]
            assert session != two["mcp-session-id"]
            note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            assert (await http.post(note, Mcp_Session_Id=session))[0] == 202
            ask = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
            sessions = list(http.front.episodes)
            listed = [json.loads((await http.post(ask, Mcp_Session_Id=key))[2])["result"]["tools"] for key in sessions]
            assert listed[0] == listed[1], "one seed, one stack"
            seen = ""
            for _ in range(8):
                seen += (await http.post(call(2, "nobody"), Mcp_Session_Id=sessions[0]))[2]
            assert seen.count("tools/list_changed") == 1, "the notice comes on the stream of the call"
            assert (await http.post(b"", method="DELETE", Mcp_Session_Id=sessions[0]))[0] == 200
            assert (await http.post(ask, Mcp_Session_Id=sessions[0]))[0] == 404
            assert (await http.post(ask, Mcp_Session_Id=sessions[1]))[0] == 200

    run(work)


def test_http_without_sessions_goes_by_the_address() -> None:
    async def work() -> None:
        meta = {f"{META}protocolVersion": "2026-07-28"}
        async with Http("transient_error:1") as http:
            asks = [{**call(1, "get_customer", customer_id=f"C{n}")} for n in range(5)]
            for ask in asks:
                ask["params"]["_meta"] = meta
            first = json.loads((await http.post(asks[0], path="/mcp/a"))[2])
            await asyncio.gather(*(http.post(ask, path="/mcp/a") for ask in asks))
            answers = await asyncio.gather(*(http.post(ask, path="/mcp/b") for ask in asks))
            for n, (status, _, text) in enumerate(answers):
                message = json.loads(text)
                assert (status, message["id"]) == (200, 1), "ids of different clients do not mix"
                assert f"C{n}" in text or message["result"]["isError"]
            assert set(http.front.episodes) == {"/a", "/b"}
            assert first["result"]["resultType"] == "complete"

    run(work)


def test_a_server_behind_http_is_a_toolbox() -> None:
    """The proxy's own HTTP side, seen by our own HTTP client; and the same server over pipes."""

    async def work() -> None:
        async with Remote(await open_channel(SERVER)) as remote:
            assert list(remote.listed)[:2] == ["search_orders", "get_customer"]
            result = await remote.call(ToolCall("get_customer", {"customer_id": "C1"}))
            assert result.content["city"] == "Ulm"
            assert (await remote.call(ToolCall("nobody"))).error is not None
        async with Http() as http:
            os.environ["CROSSWIND_SERVER_TOKEN"] = "secret"
            try:
                async with Remote(await open_channel(f"http://127.0.0.1:{http.front.port}/mcp")) as remote:
                    result = await remote.call(ToolCall("get_customer", {"customer_id": "C1"}))
                    assert result.content["city"] == "Ulm"
                assert not http.front.episodes, "the session was ended"
            finally:
                del os.environ["CROSSWIND_SERVER_TOKEN"]
            with pytest.raises(WireError, match="401"):
                async with Remote(await open_channel(f"http://127.0.0.1:{http.front.port}/mcp")):
                    pass
        with pytest.raises(WireError, match="sends back what it is sent"):
            async with Remote(await open_channel(["cat"])):
                pass
        with pytest.raises(WireError, match="cannot connect"):
            async with Remote(await open_channel("http://127.0.0.1:9/mcp")):
                pass

    run(work)


@pytest.mark.parametrize("fault", ["dies", "mute list", "lies"])
def test_a_remote_that_fails_is_infrastructure(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosswind.mcp.upstream.ServerLink.exchange.__kwdefaults__", {"timeout": 1.0})

    async def work() -> None:
        with pytest.raises(WireError):
            async with Remote(await open_channel([*SERVER, "--fault", fault])) as remote:
                await remote.call(ToolCall("get_customer", {"customer_id": "C1"}))

    run(work)


def test_a_journal_refuses_another_run(tmp_path: Path) -> None:
    Journal(tmp_path / "log", Discretion("a server"), plan("envelope")).check()
    Journal(tmp_path / "log", Discretion("a server"), plan("envelope")).check()
    with pytest.raises(CrosswindError, match="a different configuration"):
        Journal(tmp_path / "log", Discretion("a server"), plan("name_noise")).check()
