"""How clients reach an episode: lines over pipes and sockets, and streamable HTTP on this machine alone.

The HTTP server speaks as much of HTTP/1.1 as the protocol needs. It listens on 127.0.0.1, takes only requests that
name this machine as their host and come from no page of another origin, and knows an episode by a token in its path
(`/TOKEN/mcp`) or in an Authorization header: whoever does not have the token gets 401, whatever they ask for.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from crosswind.base.version import __version__
from crosswind.mcp import wire
from crosswind.mcp.wire import BadFrame, Lines, Message, WireError

HOST = "127.0.0.1"
HEAD = 2**15  # bytes of a request's head
BODY = 4 * 2**20  # bytes of a request's body, and of a line
IDLE = 300.0  # seconds that a connection may stay open with nothing asked
LINGER = 2.0  # seconds that answers may take once the client has sent its last, or be on the way to one that sends
ALIVE = 15.0  # seconds between signs of life on a stream
STREAM, JSON = "text/event-stream", "application/json"
ONCE = ("host", "content-length", "origin", "authorization")
LISTEN = "subscriptions/listen"
_REQUEST_LINE = re.compile(r"([A-Z]+) (/\S*) HTTP/1\.([01])")
_HEXADECIMAL = re.compile(rb"[0-9A-Fa-f]{1,8}")
WORDS = {
    200: "OK", 202: "Accepted", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found",
    405: "Method Not Allowed", 406: "Not Acceptable", 411: "Length Required", 413: "Content Too Large",
    415: "Unsupported Media Type", 431: "Request Header Fields Too Large", 503: "Service Unavailable",
}  # fmt: skip

Send = Callable[[Message], None]


class Server(Protocol):
    """Whoever answers messages; `serve.Desk` is one."""

    over: asyncio.Event

    async def respond(self, message: Message, send: Send) -> Message | None: ...

    def listen(self, send: Send) -> Callable[[], None]: ...


# ---------------------------------------------------------------- lines


async def serve_lines(server: Server, lines: Lines) -> None:
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


class Request(NamedTuple):
    """A request as it came; names of headers in small letters."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    last: bool  # the connection ends after it


class Answered(Exception):
    """A request that is answered with a status and no more; the connection ends."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class HttpServer:
    """Episodes by their tokens, behind one port of this machine."""

    def __init__(self) -> None:
        self.servers: dict[str, Server] = {}
        self.port = 0
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def start(self, port: int = 0) -> None:
        """Listen; 0 takes a port that is free."""
        self._server = await asyncio.start_server(self._connected, HOST, port, limit=HEAD)
        self.port = self._server.sockets[0].getsockname()[1]

    def add(self, server: Server) -> str:
        """Serve an episode; its address."""
        token = secrets.token_urlsafe(24)
        self.servers[token] = server
        return f"http://{HOST}:{self.port}/{token}/mcp"

    def remove(self, url: str) -> None:
        self.servers.pop(url.split("/")[3], None)

    async def aclose(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            while True:
                request = await read_request(reader, self._known)
                if request is None:
                    break
                server = self._known(request)
                if not await self._answer(server, request, reader, writer) or request.last:
                    break
        except Answered as answered:
            await refuse(reader, writer, answered)
        except (ConnectionError, TimeoutError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client left, or we do
        finally:
            self._open.discard(task)
            with contextlib.suppress(ConnectionError, RuntimeError):
                writer.close()

    def _known(self, request: Request) -> Server:
        """The episode that a request may reach."""
        admit(request, self.port)
        parts = request.path.partition("?")[0].strip("/").split("/")
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if len(parts) == 2:
            token = parts[0]
        elif kind.lower() != "bearer":
            token = ""
        server = self.servers.get(token.strip())
        if server is None:
            raise Answered(401, "no episode has this token; it is part of the address, or goes in a Bearer header")
        if parts[-1] != "mcp":
            raise Answered(404, "the address ends in /mcp")
        return server

    async def _answer(
        self, server: Server, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Answer a request; may another one follow on this connection?"""
        if request.method == "POST":
            if not request.headers.get("content-type", "").lower().startswith(JSON):
                raise Answered(415, f"expected {JSON}")
            try:
                message = wire.parse(request.body)
            except BadFrame as bad:
                write_answer(writer, 400, wire.dump(wire.failure(None, bad.code, str(bad))))
                return True
            if message.get("method") == LISTEN and "id" in message:
                await _stream(writer, reader, server, message)
                return False
            response = await server.respond(message, lambda _: None)
            more = {"Mcp-Session-Id": secrets.token_hex(16)} if message.get("method") == "initialize" else {}
            write_answer(
                writer, 202 if response is None else 200, b"" if response is None else wire.dump(response), more
            )
            await writer.drain()
            return True
        if request.method == "GET":
            if STREAM not in request.headers.get("accept", ""):
                raise Answered(406, f"a GET must accept {STREAM}")
            await _stream(writer, reader, server, None)
            return False
        if request.method == "DELETE":  # a client's session; the episode stays
            write_answer(writer, 200, b"")
            return True
        raise Answered(405, "expected GET, POST or DELETE")


async def _stream(
    writer: asyncio.StreamWriter, reader: asyncio.StreamReader, server: Server, message: Message | None
) -> None:
    """Events until the episode or the client's interest ends: a subscription's, or those of a session."""
    out: asyncio.Queue[Message | None] = asyncio.Queue()
    write_head(writer, 200, {"Content-Type": STREAM, "Cache-Control": "no-cache", "Connection": "close"})
    stop = server.listen(out.put_nowait) if message is None else None

    async def answer() -> None:
        if message is None:
            await server.over.wait()
        elif (response := await server.respond(message, out.put_nowait)) is not None:
            out.put_nowait(response)
        out.put_nowait(None)

    async def leave() -> None:
        await reader.read(1)  # a client that leaves closes its side
        out.put_nowait(None)

    tasks = [asyncio.ensure_future(answer()), asyncio.ensure_future(leave())]
    try:
        while True:
            try:
                event = await asyncio.wait_for(out.get(), ALIVE)
            except TimeoutError:
                writer.write(b": alive\n\n")
            else:
                if event is None:
                    break
                writer.write(b"event: message\ndata: " + wire.dump(event) + b"\n\n")
            await writer.drain()
    finally:
        if stop:
            stop()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def admit(request: Request, port: int) -> None:
    """Refuse a request that names another host than this machine, or comes from a page of another origin."""
    names = {f"{name}:{port}" for name in (HOST, "localhost")}
    if request.headers.get("host") not in names:
        raise Answered(403, "the Host header does not name this server")
    origin = request.headers.get("origin")
    if origin is not None and origin not in {f"http://{name}" for name in names}:
        raise Answered(403, "requests of other origins are not taken")


async def read_request(
    reader: asyncio.StreamReader, check: Callable[[Request], object], *, limit: int = BODY
) -> Request | None:
    """The next request of a connection, or None at its end.

    `check` is shown its head and raises `Answered` for one that may not come in, before anything of its body is read.
    """
    async with asyncio.timeout(IDLE):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return None
        except asyncio.LimitOverrunError:
            raise Answered(431, f"the head of a request may have {HEAD} bytes") from None
        first, *lines = head.decode("latin-1").split("\r\n")[:-2]
        matched = _REQUEST_LINE.fullmatch(first)
        if matched is None:
            raise Answered(400, "not an HTTP/1.1 request")
        headers: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            name = name.lower()
            if not colon or name != name.strip() or (name in headers and name in ONCE):
                raise Answered(400, "a header is malformed or comes twice")
            headers[name] = value.strip()
        last = matched[3] == "0" or headers.get("connection", "").lower() == "close"
        request = Request(matched[1], matched[2], headers, b"", last)
        check(request)
        return request._replace(body=await _body(reader, headers, limit))


async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answered: Answered) -> None:
    """Answer a request that was not read to its end. What the client still sends is let pass for a while: a connection
    that is closed before loses the answer."""
    body = wire.dump(wire.failure(None, wire.INVALID_REQUEST, str(answered)))
    write_answer(writer, answered.status, body, last=True)
    with contextlib.suppress(ConnectionError, OSError, TimeoutError):
        async with asyncio.timeout(LINGER):
            writer.write_eof()
            while await reader.read(2**16):
                pass


async def _body(reader: asyncio.StreamReader, headers: dict[str, str], limit: int) -> bytes:
    if "transfer-encoding" in headers:
        if headers["transfer-encoding"].lower() != "chunked" or "content-length" in headers:
            raise Answered(400, "the length of the body is ambiguous")
        body = bytearray()
        while True:
            size = (await reader.readuntil(b"\r\n")).partition(b";")[0].strip()
            if not _HEXADECIMAL.fullmatch(size):
                raise Answered(400, "a chunk has no size")
            if len(body) + int(size, 16) > limit:
                raise Answered(413, f"the body of a request may have {limit} bytes")
            body += (await reader.readexactly(int(size, 16) + 2))[:-2]
            if not int(size, 16):
                return bytes(body)
    length = headers.get("content-length", "0")
    if not length.isascii() or not length.isdigit():
        raise Answered(411, "the length of the body is no number")
    if len(length) > 9 or int(length) > limit:
        raise Answered(413, f"the body of a request may have {limit} bytes")
    return await reader.readexactly(int(length))


def write_head(writer: asyncio.StreamWriter, status: int, headers: dict[str, Any]) -> None:
    """The head of an answer; a body may follow."""
    head = [f"HTTP/1.1 {status} {WORDS[status]}", f"Server: crosswind/{__version__}"]
    head += [f"{name}: {value}" for name, value in headers.items()]
    writer.write("\r\n".join([*head, "", ""]).encode("latin-1"))


def write_answer(
    writer: asyncio.StreamWriter, status: int, body: bytes, more: dict[str, str] | None = None, *, last: bool = False
) -> None:
    """A whole answer; after the `last` one the connection ends."""
    headers: dict[str, Any] = {"Content-Length": len(body), **(more or {})}
    if body:
        headers["Content-Type"] = JSON
    if status == 405:
        headers["Allow"] = "GET, POST, DELETE"
    if last:
        headers["Connection"] = "close"
    write_head(writer, status, headers)
    writer.write(body)
