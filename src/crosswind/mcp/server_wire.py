"""How clients reach an episode: lines over pipes and sockets, and streamable HTTP on this machine alone.

Over HTTP an episode is known by a token in its path (`/TOKEN/mcp`) or in an Authorization header: whoever does not have
the token gets 401, whatever they ask for.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable
from typing import Protocol

from crosswind.mcp import wire
from crosswind.mcp.http_server import HOST, LINGER, STREAM, Answered, HttpRequest, LocalServer, Peer
from crosswind.mcp.wire import LISTEN, BadFrame, Lines, Message, WireError

ALIVE = 15.0  # seconds between signs of life on a stream

Send = Callable[[Message], None]


class Responder(Protocol):
    """Whoever answers messages; `serve.EpisodeServer` is one."""

    over: asyncio.Event

    async def respond(self, message: Message, send: Send) -> Message | None: ...

    def listen(self, send: Send) -> Callable[[], None]: ...


# ---------------------------------------------------------------- lines


async def serve_lines(server: Responder, lines: Lines) -> None:
    """Answer a client until it leaves. Requests are answered as they are done, not in their order."""
    out: asyncio.Queue[Message | None] = asyncio.Queue()
    stop: Callable[[], None] | None = None

    async def write() -> None:
        while (message := await out.get()) is not None:
            await lines.write(wire.dump(message))

    async def answer(message: Message) -> None:
        if (response := await server.respond(message, out.put_nowait)) is not None:
            out.put_nowait(response)

    writing = asyncio.ensure_future(write())
    answering: set[asyncio.Task[None]] = set()
    lasting: set[asyncio.Task[None]] = set()  # subscriptions
    try:
        while not writing.done():
            try:
                frame = await lines.read()
                if frame is None:
                    break
                message = wire.parse(frame)
            except BadFrame as bad:
                out.put_nowait(wire.failure(None, bad.code, str(bad)))
                continue
            if message.get("method") == "initialize" and stop is None:
                stop = server.listen(out.put_nowait)
            task = asyncio.ensure_future(answer(message))
            kept = lasting if message.get("method") == LISTEN else answering
            kept.add(task)
            task.add_done_callback(kept.discard)
            await asyncio.sleep(0)  # calls start in the order in which they came
        if answering:
            await asyncio.wait(answering, timeout=LINGER)
    finally:
        if stop:
            stop()
        for task in (*answering, *lasting):
            task.cancel()
        await asyncio.gather(*answering, *lasting, return_exceptions=True)
        out.put_nowait(None)
        with contextlib.suppress(WireError):
            await writing
        await lines.close()


# ---------------------------------------------------------------- HTTP


class HttpServer(LocalServer):
    """Episodes by their tokens, behind one port of this machine."""

    def __init__(self) -> None:
        super().__init__()
        self.servers: dict[str, Responder] = {}

    def add(self, server: Responder) -> str:
        """Serve an episode; its address."""
        token = secrets.token_urlsafe(24)
        self.servers[token] = server
        return f"http://{HOST}:{self.port}/{token}/mcp"

    def remove(self, url: str) -> None:
        self.servers.pop(url.split("/")[3], None)

    def admitted(self, request: HttpRequest) -> Responder:
        """The episode that a request may reach."""
        parts = request.path.partition("?")[0].strip("/").split("/")
        server = self.servers.get(parts[0] if len(parts) == 2 else request.bearer)
        if server is None:
            raise Answered(401, "no episode has this token; it is part of the address, or goes in a Bearer header")
        if parts[-1] != "mcp":
            raise Answered(404, "the address ends in /mcp")
        return server

    async def respond(self, peer: Peer, request: HttpRequest, message: Message | None) -> bool:
        server = self.admitted(request)
        if request.method == "DELETE":  # a client's session; the episode stays
            peer.answer(200)
            return True
        if message is None and STREAM not in request.headers.get("accept", ""):
            raise Answered(406, f"a GET must accept {STREAM}")
        if message is None or (message.get("method") == LISTEN and "id" in message):
            await _stream(peer, server, message)
            return False
        response = await server.respond(message, lambda _: None)
        more = {"Mcp-Session-Id": secrets.token_hex(16)} if message.get("method") == "initialize" else {}
        peer.answer(202 if response is None else 200, response, more)
        return True


async def _stream(peer: Peer, server: Responder, message: Message | None) -> None:
    """Events until the episode or the client's interest ends: a subscription's, or those of a session."""
    out: asyncio.Queue[Message | None] = asyncio.Queue()
    peer.begin_stream()
    stop = server.listen(out.put_nowait) if message is None else None

    async def answer() -> None:
        if message is None:
            await server.over.wait()
        elif (response := await server.respond(message, out.put_nowait)) is not None:
            out.put_nowait(response)
        out.put_nowait(None)

    answering = asyncio.ensure_future(answer())
    try:
        async with peer.leaving(out):
            await peer.stream(out, alive=ALIVE)
    finally:
        if stop:
            stop()
        answering.cancel()
        await asyncio.gather(answering, return_exceptions=True)
