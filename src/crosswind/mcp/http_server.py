"""HTTP/1.1 for clients on this machine, as much of it as streamable HTTP needs.

A server listens on 127.0.0.1 and takes only requests that name this machine as their host and come from no page of
another origin. A subclass of `LocalServer` decides who else may come in, and answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, NamedTuple

from crosswind.base.version import __version__
from crosswind.mcp import wire
from crosswind.mcp.wire import BadFrame, Message

HOST = "127.0.0.1"
HEAD = 2**15  # bytes of a request's head
BODY = 4 * 2**20  # bytes of a request's body, and of a line
IDLE = 300.0  # seconds that a connection may stay open with nothing asked
LINGER = 2.0  # seconds that answers may take once the client has sent its last, or be on the way to one that sends
STREAM, JSON = "text/event-stream", "application/json"
ONCE = ("host", "content-length", "origin", "authorization")
_REQUEST_LINE = re.compile(r"([A-Z]+) (/\S*) HTTP/1\.([01])")
_HEXADECIMAL = re.compile(rb"[0-9A-Fa-f]{1,8}")
WORDS = {
    200: "OK", 202: "Accepted", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found",
    405: "Method Not Allowed", 406: "Not Acceptable", 411: "Length Required", 413: "Content Too Large",
    415: "Unsupported Media Type", 431: "Request Header Fields Too Large", 503: "Service Unavailable",
}  # fmt: skip


class HttpRequest(NamedTuple):
    """A request as it came; names of headers in small letters."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    last: bool  # the connection ends after it

    @property
    def bearer(self) -> str:
        """The token in its Authorization header, if there is one."""
        kind, _, token = self.headers.get("authorization", "").partition(" ")
        return token.strip() if kind.lower() == "bearer" else ""


class Answered(Exception):
    """A request that is answered with a status and no more; the connection ends."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Peer:
    """A client at the other end of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def request(self, check: Callable[[HttpRequest], object], limit: int) -> HttpRequest | None:
        """The next request, or None at the end of the connection.

        `check` is shown its head and raises `Answered` for one that may not come in, before its body is read.
        """
        async with asyncio.timeout(IDLE):
            try:
                head = await self.reader.readuntil(b"\r\n\r\n")
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
            request = HttpRequest(matched[1], matched[2], headers, b"", last)
            check(request)
            return request._replace(body=await self._body(headers, limit))

    async def _body(self, headers: dict[str, str], limit: int) -> bytes:
        too_large = Answered(413, f"the body of a request may have {limit} bytes")
        if "transfer-encoding" in headers:
            if headers["transfer-encoding"].lower() != "chunked" or "content-length" in headers:
                raise Answered(400, "the length of the body is ambiguous")
            body = bytearray()
            while True:
                size = (await self.reader.readuntil(b"\r\n")).partition(b";")[0].strip()
                if not _HEXADECIMAL.fullmatch(size):
                    raise Answered(400, "a chunk has no size")
                if len(body) + int(size, 16) > limit:
                    raise too_large
                body += (await self.reader.readexactly(int(size, 16) + 2))[:-2]
                if not int(size, 16):
                    return bytes(body)
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit():
            raise Answered(411, "the length of the body is no number")
        if len(length) > 9 or int(length) > limit:
            raise too_large
        return await self.reader.readexactly(int(length))

    def head(self, status: int, headers: Mapping[str, Any]) -> None:
        """Write the head of an answer; a body may follow."""
        head = [f"HTTP/1.1 {status} {WORDS[status]}", f"Server: crosswind/{__version__}"]
        head += [f"{name}: {value}" for name, value in headers.items()]
        self.writer.write("\r\n".join([*head, "", ""]).encode("latin-1"))

    def answer(
        self, status: int, message: Message | None = None, more: Mapping[str, str] | None = None, *, last: bool = False
    ) -> None:
        """Write a whole answer; after the `last` one the connection ends."""
        body = b"" if message is None else wire.dump(message)
        headers: dict[str, Any] = {"Content-Length": len(body), **(more or {})}
        if body:
            headers["Content-Type"] = JSON
        if status == 405:
            headers["Allow"] = "GET, POST, DELETE"
        if last:
            headers["Connection"] = "close"
        self.head(status, headers)
        self.writer.write(body)

    async def refuse(self, answered: Answered) -> None:
        """Answer a request that was not read to its end.

        Let pass what the client still sends for a while: a connection that is closed before loses the answer.
        """
        self.answer(answered.status, wire.failure(None, wire.INVALID_REQUEST, str(answered)), last=True)
        with contextlib.suppress(ConnectionError, OSError, TimeoutError):
            async with asyncio.timeout(LINGER):
                self.writer.write_eof()
                while await self.reader.read(2**16):
                    pass

    def begin_stream(self, more: Mapping[str, str] | None = None) -> None:
        """Write the head of a stream of events, which ends with the connection."""
        self.head(200, {"Content-Type": STREAM, "Cache-Control": "no-cache", "Connection": "close", **(more or {})})

    async def stream(self, out: asyncio.Queue[Message | None], *, alive: float | None = None) -> None:
        """Write events until there comes None; with `alive`, write a sign of life after so many seconds of silence."""
        while True:
            try:
                event = await asyncio.wait_for(out.get(), alive)
            except TimeoutError:
                self.writer.write(b": alive\n\n")
                await self.writer.drain()
            else:
                if event is None:
                    return
                await self.event(event)

    async def event(self, message: Message) -> None:
        self.writer.write(b"event: message\ndata: " + wire.dump(message) + b"\n\n")
        await self.writer.drain()

    @contextlib.asynccontextmanager
    async def leaving(self, out: asyncio.Queue[Message | None]) -> AsyncIterator[asyncio.Task[bytes]]:
        """A task that is done when the client leaves, or sends more; `out` then gets None."""
        task = asyncio.create_task(self.reader.read(1))
        task.add_done_callback(lambda _: out.put_nowait(None))
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


class LocalServer:
    """A server on a port of this machine. A subclass admits requests and answers them."""

    limit = BODY

    def __init__(self) -> None:
        self.port = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[Any]] = set()  # end with the server

    async def start(self, port: int = 0) -> None:
        """Listen; port 0 takes one that is free."""
        self._server = await asyncio.start_server(self._connected, HOST, port, limit=HEAD)
        self.port = self._server.sockets[0].getsockname()[1]

    async def aclose(self) -> None:
        """Listen no more, and end all connections."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def keep(self, task: asyncio.Task[Any]) -> None:
        """Remember a task until it is done; it ends with the server."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def admitted(self, request: HttpRequest) -> Any:
        """What a request leads to. Raises `Answered` for one that may not come in."""
        raise NotImplementedError

    async def respond(self, peer: Peer, request: HttpRequest, message: Message | None) -> bool:
        """Answer a request, whose `message` is what was posted; may another one follow on this connection?"""
        raise NotImplementedError

    def _check(self, request: HttpRequest) -> None:
        """Refuse a request that names another host, or comes from a page of another origin, or is not admitted."""
        names = {f"{name}:{self.port}" for name in (HOST, "localhost")}
        if request.headers.get("host") not in names:
            raise Answered(403, "the Host header does not name this server")
        origin = request.headers.get("origin")
        if origin is not None and origin not in {f"http://{name}" for name in names}:
            raise Answered(403, "requests of other origins are not taken")
        self.admitted(request)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.keep(task)
        peer = Peer(reader, writer)
        try:
            while (request := await peer.request(self._check, self.limit)) is not None:
                if not await self._answer(peer, request) or request.last:
                    break
                await writer.drain()
        except Answered as answered:
            await peer.refuse(answered)
        except (ConnectionError, TimeoutError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client left, or we do
        finally:
            with contextlib.suppress(ConnectionError, RuntimeError):
                writer.close()

    async def _answer(self, peer: Peer, request: HttpRequest) -> bool:
        if request.method not in ("GET", "POST", "DELETE"):
            raise Answered(405, "expected GET, POST or DELETE")
        if request.method != "POST":
            return await self.respond(peer, request, None)
        if not request.headers.get("content-type", "").lower().startswith(JSON):
            raise Answered(415, f"expected {JSON}")
        try:
            message = wire.parse(request.body)
        except BadFrame as bad:
            peer.answer(400, wire.failure(None, bad.code, str(bad)))
            return True
        return await self.respond(peer, request, message)
