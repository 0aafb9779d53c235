"""Servers that mean harm: lists without end, floods, and headers that cannot be sent."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from crosswind.mcp import hiding, http_channel, relay, upstream, wire
from crosswind.mcp.plan import Plan
from crosswind.mcp.upstream import ServerLink
from crosswind.mcp.wire import Message, WireError
from tests.fake_mcp import Json, Shop
from tests.mcp.test_proxy import Desk, Process, plan, run


class Pages:
    """A server that lists the same page again and again."""

    def __init__(self, page: list[Any]) -> None:
        self.page, self.asked = page, 0
        self.frames: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def read(self) -> bytes | None:
        return await self.frames.get()

    async def write(self, frame: bytes) -> None:
        self.asked += 1
        page = {"tools": self.page, "nextCursor": str(self.asked)}
        self.frames.put_nowait(wire.dump(wire.result(wire.parse(frame)["id"], page)))

    async def close(self) -> None:
        self.frames.put_nowait(None)


async def nobody(_: Message, __: bytes) -> None:
    """Nobody is there for what answers no request."""


@pytest.mark.parametrize(
    ("page", "says", "pages"),
    [([{}] * 8_000, "more than 20,000 tools", 3), (["x" * 2**20] * 12, "larger than 64 MiB", 6)],
)
def test_a_list_is_bounded_over_all_its_pages(page: list[Any], says: str, pages: int) -> None:
    async def work() -> None:
        channel = Pages(page)
        link = ServerLink(channel, nobody)
        reading = asyncio.create_task(link.run())
        with pytest.raises(WireError, match=says):
            await link.listing()
        assert channel.asked == pages
        await channel.close()
        await reading

    assert upstream.LISTED == 64 * 2**20
    run(work)


class NullErrors(Shop):
    """A server whose error to a call is null."""

    def answer(self, message: Json) -> Json | None:
        if message.get("method") == "tools/call":
            return {"jsonrpc": "2.0", "id": message["id"], "error": None}
        return super().answer(message)


@pytest.mark.parametrize("kinds", [(), ("semantic_rename:3",)])
def test_an_error_that_is_null_is_passed_on(kinds: tuple[str, ...]) -> None:
    async def work() -> None:
        async with Desk(plan(*kinds) if kinds else Plan(), NullErrors()) as desk:
            shown = await desk.tools()
            name, tool = next((n, t) for n, t in shown.items() if len(t["inputSchema"]["properties"]) == 1)
            args = dict.fromkeys(tool["inputSchema"]["properties"], "C1")
            answer = await desk.ask("tools/call", {"name": name, "arguments": args})
            assert {key: value for key, value in answer.items() if key != "id"} == {"jsonrpc": "2.0", "error": None}
            assert not [said for said in desk.said if "internal" in said]

    run(work)


class Introduced(Shop):
    """A server with instructions that never lists its tools."""

    def answer(self, message: Json) -> Json | None:
        if message.get("method") == "tools/list":
            return None
        answer = super().answer(message)
        if answer and message.get("method") == "initialize":
            answer["result"]["instructions"] = "Be kind."
        return answer


def test_a_flood_before_the_instructions_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "PATIENCE", 600.0)
    monkeypatch.setattr(wire, "LIMIT", 1 << 20)
    said = wire.notification("notifications/message", {"level": "info", "data": "x" * 60_000})

    async def work() -> None:
        desk = Desk(plan("semantic_rename:3"), Introduced())
        began = asyncio.create_task(desk.__aenter__())
        while desk.relay._held is None:
            await asyncio.sleep(0.01)
        for _ in range(100):
            await desk.relay.from_server(said, wire.dump(said))
            held = desk.relay._held or []
            assert sum(len(frame) for frame, _ in held) <= 2 << 20
            await asyncio.sleep(0)
        await asyncio.wait_for(began, 10)
        assert desk.began["result"]["instructions"] == "Be kind."
        assert desk.heard.count(said) == 100
        await desk.__aexit__()

    run(work)


# ---------------------------------------------------------------- behind a URL

Answer = Callable[[Json, asyncio.StreamWriter], Awaitable[None]]


def answer_of(value: Json, *headers: str) -> bytes:
    body = json.dumps(value).encode()
    head = ["HTTP/1.1 200 OK", "Content-Type: application/json", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*head, "", ""]).encode("latin-1") + body


@contextlib.asynccontextmanager
async def server(answer: Answer) -> AsyncIterator[str]:
    """A server behind a URL; `answer` writes the answer to a message, or to a GET, which is an empty one."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            length = int(head.partition("content-length: ")[2].partition("\r\n")[0] or 0)
            asked = json.loads(await reader.readexactly(length) or b"{}")
            if "id" in asked or not asked:
                await answer(asked, writer)
            else:
                writer.write(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/mcp"


NAMES = {"search": "find"}
SHAPES = ["search {a, }", "search x{\n}", "search x{\n}search must", "search {tool }", "search ({ }", "search tool{ }(",
          "search param{ }(", "search{ }x", "{search is }", '"path": [{"search" }', "search {`a` and }", "{search (}",
          "search{, search} parameters", "search { }\n{ }\n", "{search, search and }", "search {a=}",
          "search {a/b, }"]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_names_are_hidden_in_time_that_grows_with_the_text(shape: str) -> None:
    """A quarter of a megabyte; time that grew with the square of it would be hours."""
    text = re.sub(r"\{([^}]*)\}", lambda part: part[1] * (2**18 // len(part[1])), shape)
    began = time.process_time()
    hiding.renamed(text, NAMES, {})
    hiding.renamed(text, {}, NAMES)
    assert time.process_time() - began < 6


def test_a_flood_is_not_kept_but_waits_until_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_channel, "WAITING", 2**20, raising=False)
    said = wire.dump(wire.notification("notifications/message", {"level": "info", "data": "x" * 60_000}))
    sent = 0

    async def flood(_: Json, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        while sent < 2**27:
            writer.write(b"data: " + said + b"\n\n")
            sent += len(said)
            await writer.drain()

    async def stalled() -> int:
        before = -1
        while before != sent:
            before = sent
            await asyncio.sleep(0.5)
        return sent

    async def work() -> None:
        async with server(flood) as url:
            channel = await upstream.open_channel(url)
            await channel.write(wire.dump(wire.notification("notifications/initialized")))
            await asyncio.sleep(0.5)
            first = await stalled()
            assert 0 < first < 2**25
            for _ in range(200):
                assert await channel.read() == said
            assert first < await stalled() < 2**26
            await channel.close()

    run(work)


REVISION = "2025-06-18"
HELLO = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


@pytest.mark.parametrize(
    ("revision", "header", "says"),
    [
        ("2025-06-18\u00e9", "", "its revision of the protocol is"),
        ("2025-06-18\r\nX-Evil: 1", "", "its revision of the protocol is"),
        (REVISION, "Mcp-Session-Id: caf\u00e9", "its session is"),
        (REVISION, "Mcp-Session-Id: a b", "its session is"),
    ],
)
def test_what_no_header_can_hold_is_refused(revision: str, header: str, says: str) -> None:
    async def answer(asked: Json, writer: asyncio.StreamWriter) -> None:
        about = {
            "protocolVersion": revision,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "e", "version": "1"},
        }
        value = about if asked.get("method") == "initialize" else {"tools": []}
        writer.write(answer_of(wire.result(asked.get("id"), value), *filter(None, [header])))

    def use(url: str) -> None:
        one = Process("--url", url, server=[])
        try:
            one.write(wire.request(1, "initialize", HELLO))
            answered = one.read()
            assert answered["id"] == 1
            assert says in answered["error"]["message"]
            assert one.process.wait(20) == 3
        finally:
            one.process.kill()
            one.end()
        assert says in one.said

    async def work() -> None:
        async with server(answer) as url:
            await asyncio.to_thread(use, url)

    run(work)


@pytest.mark.parametrize(
    ("header", "name", "value", "says"),
    [
        ("caf\u00e9", "find", "x", "which is not a valid header name"),
        ("a: b\r\nX-Evil", "find", "x", "which is not a valid header name"),
        ("Query", "find", "\ud800", "cannot be sent in a header"),
        ("Query", "fi\ud800", "x", "cannot be sent in a header"),
    ],
)
def test_a_call_whose_headers_cannot_be_sent_is_answered(header: str, name: str, value: str, says: str) -> None:
    properties = {"q": {"type": "string", "x-mcp-header": header}}
    tool = {"name": name, "inputSchema": {"type": "object", "properties": properties}}

    async def answer(asked: Json, writer: asyncio.StreamWriter) -> None:
        writer.write(answer_of(wire.result(asked.get("id"), {"tools": [tool]})))

    async def work() -> None:
        meta = {"_meta": {wire.VERSION_KEY: wire.MODERN}}
        async with server(answer) as url:
            channel = await upstream.open_channel(url)
            await channel.write(wire.dump(wire.request(1, "tools/list", meta)))
            assert wire.parse(await channel.read() or b"")["id"] == 1
            for id, text in ((2, value), (3, value)):
                call = {"name": name, "arguments": {"q": text}, **meta}
                await channel.write(wire.dump(wire.request(id, "tools/call", call)))
                lost = wire.parse(await channel.read() or b"")
                assert lost["id"] == id
                assert says in wire.why_lost(lost)
            await channel.close()

    run(work)
