"""Answers of a server that our parser cannot read: whoever waits is told at once, and for any size in little time."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from crosswind.core.types import ToolCall
from crosswind.mcp import wire
from crosswind.mcp.plan import Plan
from crosswind.mcp.upstream import Remote, open_channel
from crosswind.mcp.wire import BadFrame, WireError
from tests.fake_mcp import Shop
from tests.mcp.test_proxy import Desk, plan, run

Json = dict[str, Any]
DEEP = b'{"content":[{"type":"text","text":",\\"id\\":7}"}],"structuredContent":%s}' % (b"[" * 10**5 + b"]" * 10**5)
LONG = b'{"content":[],"structuredContent":{"n":%s}}' % (b"7" * 10**5)
BODIES = {"deep": DEEP, "long": LONG, "broken": b'{"content":[{"text":"a "quoted" word"}]}', "cut": b'{"content":['}
SHAPES = {
    "first": b'{"jsonrpc":"2.0","id":%(id)s,"result":%(body)s}',
    "spaced": b'{ "id" : %(id)s , "jsonrpc" : "2.0" , "result" : %(body)s }',
    "last": b'{"result":%(body)s,"jsonrpc":"2.0","id":%(id)s}',
    "error": b'{"error":{"code":1,"message":"m","data":%(body)s},"id":%(id)s,"jsonrpc":"2.0"}',
}


def frame(shape: str, body: str, id: Any) -> bytes:
    return SHAPES[shape] % {b"id": json.dumps(id).encode(), b"body": BODIES[body]}


class Unread(Desk):
    """A client of a relay over a shop whose answers to calls are frames made by `made`."""

    def __init__(self, plan: Plan, made: Callable[[Any], bytes]) -> None:
        super().__init__(plan, Shop())
        plain = self.channel.write

        async def write(frame: bytes) -> None:
            message = wire.parse(frame)
            if message.get("method") in ("tools/call", "resources/read"):
                self.channel.frames.put_nowait(made(message["id"]))
            else:
                await plain(frame)

        self.channel.write = write  # type: ignore[method-assign]


@pytest.mark.parametrize("kinds", [(), ("semantic_rename:5",)], ids=["clean", "perturbed"])
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("shape", SHAPES)
def test_an_answer_that_cannot_be_read_fails_its_call_at_once(shape: str, body: str, kinds: tuple[str, ...]) -> None:
    async def work() -> None:
        async with Unread(plan(*kinds) if kinds else Plan(), lambda id: frame(shape, body, id)) as desk:
            name = next(iter(await desk.tools()))
            for method, params in (("tools/call", {"name": name, "arguments": {}}), ("resources/read", {"uri": "x:y"})):
                answer = await asyncio.wait_for(desk.ask(method, params), 5)
                assert answer["error"]["code"] == wire.UPSTREAM_GONE
                assert "cannot be read" in answer["error"]["message"]
            assert (await desk.ask("ping"))["result"] == {}, "the server is still there"
            session = desk.relay.session
            assert session is not None
            assert [step.result.error.code for step in session.steps if step.result.error] == ["infrastructure"]

    run(work)


def test_an_unreadable_answer_without_an_id_at_its_ends_ends_the_session() -> None:
    hidden = b'{"jsonrpc":"2.0","result":%s,"id":7,"more":%s}' % (DEEP, b"[1]")

    async def work() -> None:
        async with Unread(Plan(), lambda _: hidden) as desk:
            asked = asyncio.ensure_future(desk.ask("tools/call", {"name": "get_customer", "arguments": {}}))
            await asyncio.wait_for(desk.reading, 5)
            assert "cannot be told" in desk.link.ended
            await desk.relay.settle()
            assert "nests too deeply" in (await asked)["error"]["message"]

    run(work)


@pytest.mark.parametrize(
    "noise",
    [
        b'{"jsonrpc":"2.0","method":"notifications/message","params":%s}' % DEEP,
        b'{"params":%s,"method":"notifications/message","jsonrpc":"2.0"}' % DEEP,
        b'{"level":"info","id":3,"at":%s}' % DEEP,
        b"{'jsonrpc': '2.0', 'id': 3}",
        b"[" * 10**5,
        b'{"id":3,"message":"starting"}',
    ],
)
def test_what_is_no_answer_fails_no_call(noise: bytes) -> None:
    with pytest.raises(BadFrame) as caught:
        wire.parse(noise)
    assert wire.instead(noise, caught.value) is None


@pytest.mark.parametrize(
    ("frame", "id"),
    [
        (b'{"jsonrpc":"2.0","id":"a\\u0062","result":{},"error":{}}', "ab"),
        (b'{"jsonrpc":"2.0","id":4}', 4),
        (b'{"id":4,"result":{}}', 4),
        (b'{"result":{"a":"x","id":9},"jsonrpc":"2.0","id":"q\\"}","x":null', None),
        (b'{"jsonrpc":"2.0","result":{"text":",\\"id\\":5}"},"id":6} ', 6),
        (b'{"jsonrpc":"2.0","id":true,"result":1,"error":2}', None),
    ],
)
def test_the_id_is_that_of_the_frame_and_of_nothing_within(frame: bytes, id: Any) -> None:
    failed = wire.instead(frame, BadFrame("why"))
    assert (None if failed is None else failed["id"]) == id


@pytest.mark.parametrize(
    "unit", [b"[", b'{"id":1,', b'"', b'\\"', b',"a":1', b"1", b"{", b' "', b',"a":"', b"e", b',"id":"\\'], ids=repr
)
def test_any_frame_is_looked_through_in_little_time(unit: bytes) -> None:
    size = wire.LIMIT // len(unit)
    for frame in (unit * size, b'{"jsonrpc":"2.0","result":' + unit * size, b'{"a":1' + unit * size + b"}"):
        began = time.process_time()
        with contextlib.suppress(WireError):
            wire.instead(frame, BadFrame("why", beyond=True))
        assert time.process_time() - began < 0.2, unit


async def over_http(body: bytes, *, stream: bool) -> None:
    """Ask a server behind a URL that answers calls with `body` and leaves the stream open."""
    held = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length: ")[2].partition("\r\n")[0] or 0)
        asked = json.loads(await reader.readexactly(length) or b"{}")
        if asked.get("method") == "tools/call":
            answer = body.replace(b'"ID"', json.dumps(asked["id"]).encode())
            if stream:
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: " + answer + b"\n\n")
                await writer.drain()
                await held.wait()
            else:
                kind = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                writer.write(kind % len(answer) + answer)
        elif "id" in asked:
            answer = json.dumps(Shop().answer(asked)).encode()
            kind = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
            writer.write(kind % len(answer) + answer)
        else:
            writer.write(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with Remote(await open_channel(f"http://127.0.0.1:{port}/mcp")) as remote:
            try:
                await asyncio.wait_for(remote.call(ToolCall("get_customer", {"customer_id": "C1"})), 5)
            finally:
                held.set()


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "json"])
@pytest.mark.parametrize("body", ["deep", "long", "broken"])
@pytest.mark.parametrize("shape", [*SHAPES, "hidden"])
def test_over_http_as_over_pipes(shape: str, body: str, stream: bool) -> None:
    if shape == "hidden":
        if body == "broken" and stream:
            pytest.skip("noise on a stream: the answer may still come")
        made = b'{"jsonrpc":"2.0","result":%s,"id":"ID","more":[1]}' % BODIES[body]
    else:
        made = frame(shape, body, "ID")

    async def work() -> None:
        with pytest.raises(WireError, match=r"cannot be read|without a response"):
            await over_http(made, stream=stream)

    run(work)
