"""HTTP for clients on this machine: starlette reads a request and writes the answer, uvicorn serves.

A server listens on 127.0.0.1 and accepts only requests that name this machine as their host and come from no page of
another origin. A subclass of `LocalServer` decides who else may come in, and answers. `HttpServer` offers episodes,
each known by a token in its path (`/TOKEN/mcp`) or in an Authorization header: without one the answer is always 401.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from typing import Any

import h11
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from crosswind.mcp import wire
from crosswind.mcp.serve import LINGER, Responder
from crosswind.mcp.wire import BODY, JSON, LISTEN, STREAM, BadFrame, Message

HOST = "127.0.0.1"
HEAD = 2**15  # bytes of a request's head
IDLE = 300  # seconds for the head of a request to come in, and for its body
ALIVE = 15.0  # seconds between signs of life on a stream
ONCE = (b"host", b"origin", b"authorization")  # headers that may not come twice
METHODS = ("GET", "POST", "DELETE")


class Answered(Exception):
    """A request that is answered with a status and no more; the connection ends."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class TimedConnection(H11Protocol):  # type: ignore[misc]
    """A connection whose client has `IDLE` seconds to send the head of a request; uvicorn waits for it forever."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.timeout_keep_alive_task = self.loop.call_later(IDLE, self.timeout_keep_alive_handler)

    def data_received(self, data: bytes) -> None:
        self.conn.receive_data(data)
        self.handle_events()  # stops the clock at the end of a head

    def send_400_response(self, msg: str) -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:  # an answer is on its way already
            self.transport.close()


class HttpRequest(Request):  # type: ignore[misc]
    """A request, and the ways to answer it."""

    def __init__(self, scope: Any, receive: Any, send: Any) -> None:
        super().__init__(scope, receive)
        self.send, self.read = send, False

    @property
    def bearer(self) -> str:
        """The token in its Authorization header, if there is one."""
        kind, _, token = self.headers.get("authorization", "").partition(" ")
        return token.strip() if kind.lower() == "bearer" else ""

    async def content(self, limit: int) -> bytes:
        """The body. Raises `Answered` if it is too large or too slow."""
        body, too_large = bytearray(), Answered(413, f"the body of a request may have {limit} bytes")
        if int(self.headers.get("content-length", 0)) > limit:
            raise too_large
        try:
            async with asyncio.timeout(IDLE):
                async for part in self.stream():
                    body += part
                    if len(body) > limit:
                        raise too_large
        except TimeoutError:
            raise Answered(408, f"the body of a request may take {IDLE} seconds") from None
        self.read = True
        return bytes(body)

    async def answer(
        self, status: int, message: Message | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        """Answer with a message, or with the status alone."""
        body = b"" if message is None else wire.dump(message)
        await Response(body, status, headers, JSON if body else None)(self.scope, self.receive, self.send)

    async def refuse(self, answered: Answered) -> None:
        """Answer a request that may not have been read to its end.

        Let pass what the client still sends for a while: a connection that is closed before loses the answer.
        """
        headers = {"Connection": "close", "Allow": ", ".join(METHODS)}
        body = wire.dump(wire.failure(None, wire.INVALID_REQUEST, str(answered)))
        await self._begin(answered.status, {**headers, "Content-Type": JSON, "Content-Length": str(len(body))})
        await self._part(body)
        if not self.read:
            with contextlib.suppress(ClientDisconnect, TimeoutError):
                async with asyncio.timeout(LINGER):
                    async for _ in self.stream():
                        pass
        await self._part(b"", more=False)

    async def events(
        self,
        out: asyncio.Queue[Message | None],
        headers: Mapping[str, str] | None = None,
        *,
        first: Message | None = None,
        alive: float | None = None,
    ) -> None:
        """Answer with events, `first` and then those of a queue until None; comment on `alive` seconds of silence."""
        await self._begin(200, {"Content-Type": STREAM, "Cache-Control": "no-cache", **(headers or {})})
        event = first
        while event is not None or (event := await _next(out, alive)) is not None:
            await self._part(b"event: message\ndata: " + wire.dump(event) + b"\n\n" if event else b": alive\n\n")
            event = None
        await self._part(b"", more=False)

    async def _begin(self, status: int, headers: Mapping[str, str]) -> None:
        raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        await self.send({"type": "http.response.start", "status": status, "headers": raw})

    async def _part(self, body: bytes, *, more: bool = True) -> None:
        await self.send({"type": "http.response.body", "body": body, "more_body": more})

    @contextlib.asynccontextmanager
    async def leaving(self, out: asyncio.Queue[Message | None] | None = None) -> AsyncIterator[asyncio.Task[None]]:
        """A task that is done when the client leaves; `out` then gets None."""

        async def left() -> None:
            while (await self.receive())["type"] != "http.disconnect":
                pass

        task = asyncio.create_task(left())
        if out is not None:
            task.add_done_callback(lambda _: out.put_nowait(None))
        try:
            yield task
        finally:
            task.cancel()


async def _next(out: asyncio.Queue[Message | None], seconds: float | None) -> Message | None:
    """The next message; an empty one after this many seconds."""
    try:
        return await asyncio.wait_for(out.get(), seconds)
    except TimeoutError:
        return {}


class LocalServer:
    """A server on a port of this machine. A subclass admits requests and answers them."""

    limit = BODY

    def __init__(self) -> None:
        self.port = 0
        self._server: asyncio.Server | None = None
        self._state = ServerState()
        self._tasks: set[asyncio.Task[Any]] = set()  # end with the server

    async def start(self, port: int = 0) -> None:
        """Listen; port 0 takes one that is free."""
        config = Config(
            self,
            http=TimedConnection,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            log_level="critical",
            access_log=False,
            proxy_headers=False,
            timeout_keep_alive=IDLE,
            h11_max_incomplete_event_size=2 * HEAD,
        )
        config.load()
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: TimedConnection(config, self._state, {}), HOST, port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def aclose(self) -> None:
        """Listen no more, and end all connections."""
        if self._server is not None:
            self._server.close()
        tasks = [*self._tasks, *self._state.tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for connection in list(self._state.connections):
            connection.transport.close()

    def keep(self, task: asyncio.Task[Any]) -> None:
        """Remember a task until it is done; it ends with the server."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def admitted(self, request: HttpRequest) -> Any:
        """What a request leads to. Raises `Answered` for one that may not come in."""
        raise NotImplementedError

    async def respond(self, request: HttpRequest, message: Message | None) -> None:
        """Answer a request, whose `message` is what was posted."""
        raise NotImplementedError

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = HttpRequest(scope, receive, send)
        try:
            self._check(request)
            posted = request.method == "POST"
            await self.respond(request, wire.parse(await request.content(self.limit)) if posted else None)
        except BadFrame as bad:
            await request.answer(400, wire.failure(None, bad.code, str(bad)))
        except Answered as answered:
            await request.refuse(answered)
        except ClientDisconnect:
            pass
        except Exception as error:  # ours: uvicorn would answer 500 and keep it to itself
            context = {"message": "unhandled exception while answering a request", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
            raise

    def _check(self, request: HttpRequest) -> None:
        """Raise `Answered` for a request whose body is not worth reading."""
        headers = request.headers.raw
        if sum(len(name) + len(value) + 4 for name, value in headers) > HEAD:
            raise Answered(431, f"the head of a request may have {HEAD} bytes")
        count = Counter(name for name, _ in headers)
        if any(count[name] > 1 for name in ONCE):
            raise Answered(400, "a header comes twice")
        if count[b"transfer-encoding"] and count[b"content-length"]:
            raise Answered(400, "the length of the body is ambiguous")
        names = {f"{name}:{self.port}" for name in (HOST, "localhost")}
        if request.headers.get("host") not in names:
            raise Answered(403, "the Host header does not name this server")
        origin = request.headers.get("origin")
        if origin is not None and origin not in {f"http://{name}" for name in names}:
            raise Answered(403, "requests from other origins are rejected")
        self.admitted(request)
        if request.method not in METHODS:
            raise Answered(405, "expected GET, POST or DELETE")
        if request.method == "POST" and not request.headers.get("content-type", "").lower().startswith(JSON):
            raise Answered(415, f"expected {JSON}")


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
        parts = request.scope["path"].strip("/").split("/")
        server = self.servers.get(parts[0] if len(parts) == 2 else request.bearer)
        if server is None:
            raise Answered(401, "no episode has this token; it is part of the address, or goes in a Bearer header")
        if parts[-1] != "mcp":
            raise Answered(404, "the address ends in /mcp")
        return server

    async def respond(self, request: HttpRequest, message: Message | None) -> None:
        server = self.admitted(request)
        if request.method == "DELETE":  # a client's session; the episode stays
            await request.answer(200)
        elif message is None and STREAM not in request.headers.get("accept", ""):
            raise Answered(406, f"a GET must accept {STREAM}")
        elif message is None or (message.get("method") == LISTEN and "id" in message):
            await _stream(request, server, message)
        else:
            response = await server.respond(message, lambda _: None)
            begins = message.get("method") == "initialize"
            more = {"Mcp-Session-Id": secrets.token_hex(16)} if begins else None
            await request.answer(202 if response is None else 200, response, more)


async def _stream(request: HttpRequest, server: Responder, message: Message | None) -> None:
    """Events until the episode or the client's interest ends: a subscription's, or those of a session."""
    out: asyncio.Queue[Message | None] = asyncio.Queue()
    stop = server.listen(out.put_nowait) if message is None else None

    async def answer() -> None:
        if message is None:
            await server.over.wait()
        elif (response := await server.respond(message, out.put_nowait)) is not None:
            out.put_nowait(response)
        out.put_nowait(None)

    answering = asyncio.ensure_future(answer())
    try:
        async with request.leaving(out):
            await request.events(out, alive=ALIVE)
    finally:
        if stop:
            stop()
        answering.cancel()
        await asyncio.gather(answering, return_exceptions=True)
