"""A server behind a URL: streamable HTTP as a channel.

Each message is a request of its own. What comes back, as JSON or as a stream of events, is put in one queue, so that
anyone who reads sees the same messages as from a process. The newer era wants parts of a message repeated in headers.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import re
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import httpx2

from crosswind.base.version import __version__
from crosswind.mcp import wire
from crosswind.mcp.schema import record
from crosswind.mcp.wire import CANCELLED, JSON, LIMIT, STREAM, VERSION_KEY, BadFrame, Message, WireError

TIMEOUTS = httpx2.Timeout(None, connect=20.0).as_dict()  # seconds; anyone who asks bounds the rest
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}  # whose parameter is in a header
WAITING = LIMIT  # bytes of messages that wait to be read; a server that sends more waits until they are
_SAFE = re.compile(r"[\x20-\x7e]*")
_VISIBLE = re.compile(r"[\x21-\x7e]{1,1024}")  # what the protocol allows for a session
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}")  # the name of a header


class Unsendable(WireError):
    """The server wants something repeated in headers that no header can hold."""


class Inbox:
    """Messages that wait to be read, bounded by their bytes."""

    def __init__(self) -> None:
        self._frames: deque[bytes] = deque()
        self._held = 0  # bytes
        self._why: str | None = None  # no more is to come, with a reason if that is a failure
        self._changed = asyncio.Condition()

    async def put(self, frame: bytes) -> None:
        """Add a message, as soon as there is room; after the end nobody reads it."""
        async with self._changed:
            await self._changed.wait_for(
                lambda: self._why is not None or not self._frames or self._held + len(frame) <= WAITING
            )
            if self._why is not None:
                return
            self._frames.append(frame)
            self._held += len(frame)
            self._changed.notify_all()

    async def end(self, why: str = "") -> None:
        """Let no more come."""
        async with self._changed:
            self._why = self._why or why
            self._changed.notify_all()

    async def get(self) -> bytes | None:
        """The next message, or None after the last. Raises `WireError` after the last where it ended by a failure."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._frames or self._why is not None)
            if self._frames:
                frame = self._frames.popleft()
                self._held -= len(frame)
                self._changed.notify_all()
                return frame
            if self._why:
                raise WireError(self._why)
            return None


class HttpChannel:
    """A channel to a server behind a URL: each message is a request, and what comes back is put in one queue."""

    def __init__(self, url: str, *, headers: Mapping[str, str] | None = None) -> None:
        try:
            self.url = httpx2.URL(url)
        except httpx2.InvalidURL as error:
            raise WireError(f"{url!r} is not the address of a server: {error}") from None
        self.host = self.url.netloc.decode()
        self.headers = {"User-Agent": f"crosswind/{__version__}", "Accept-Encoding": "identity", **(headers or {})}
        # without cookies, redirects and credentials of the environment, which a client would add, and a fifth faster
        self.transport = httpx2.AsyncHTTPTransport(
            limits=httpx2.Limits(max_connections=None, keepalive_expiry=5.0),
            trust_env=False,
            verify=self.url.scheme == "https",  # else certificates would be loaded for nothing
        )
        self.session = ""
        self.version = ""  # of the protocol, once both sides agreed on one
        self._in = Inbox()
        self._posts: dict[str, asyncio.Task[None]] = {}
        self._others: set[asyncio.Task[None]] = set()
        self._params: dict[str, dict[str, str]] = {}  # of tools: parameters that are in headers
        self._asked: dict[str, str] = {}  # methods of requests under way

    async def read(self) -> bytes | None:
        return await self._in.get()

    async def write(self, frame: bytes) -> None:
        message = wire.parse(frame)
        method, id = message.get("method"), message.get("id")
        if method is not None and id is not None:
            key = json.dumps(id)
            self._asked[key] = method
            task = asyncio.create_task(self._post(message, frame))
            self._posts[key] = task
            task.add_done_callback(lambda _: self._posts.pop(key, None))
            return
        if method == CANCELLED and not self.version:  # the newer era: the end of the stream says it
            wanted = json.dumps(record(message.get("params")).get("requestId"))
            if (under_way := self._posts.get(wanted)) is not None:
                under_way.cancel()
            return
        await self._post(message, frame)  # in order: what comes after it may depend on it
        if method == "notifications/initialized":
            listening = asyncio.create_task(self._listen())
            self._others.add(listening)
            listening.add_done_callback(self._others.discard)

    async def close(self) -> None:
        tasks = [*self._posts.values(), *self._others]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self.session:
            with contextlib.suppress(WireError, TimeoutError):
                async with asyncio.timeout(wire.GRACE), contextlib.aclosing(self._exchange("DELETE", b"", {})) as parts:
                    async for _ in parts:
                        pass
        await self.transport.aclose()
        await self._in.end()

    async def _post(self, message: Message, frame: bytes) -> None:
        id = message.get("id") if "method" in message else None
        answered = id is None
        try:
            async with contextlib.aclosing(self._exchange("POST", frame, self._about(message))) as parts:
                async for part in parts:
                    answered = await self._take(part, id) or answered
        except WireError as error:
            if id is None and not isinstance(error, Unsendable):
                raise WireError(f"the server at {self.host} cannot be reached: {error}") from None
            why = f"the server at {self.host} failed: {error}"
            if id is not None:
                await self._fail(id, why)
            if isinstance(error, Unsendable):
                await self._in.end(why)
            return
        if not answered:
            await self._fail(id, f"the server at {self.host} ended its answer without a response")

    async def _fail(self, id: Any, text: str) -> None:
        await self._in.put(wire.dump(wire.lost(id, text)))

    async def _take(self, part: bytes, id: Any) -> bool:
        """Take a message from the server; is it the answer to a request?"""
        try:
            message = wire.parse(part, lenient=True)
        except BadFrame as bad:
            try:
                failed = wire.instead(part, bad)
            except WireError:
                if id is None:  # nothing was asked here, so it answers nothing
                    return False
                failed = wire.lost(id, f"the server's answer cannot be read: {bad}")
            if failed is None:
                await self._in.put(part)  # anyone who reads finds out
                return False
            message, part = failed, wire.dump(failed)
        if "method" not in message:
            asked = self._asked.pop(json.dumps(message["id"]), "")
            result = message.get("result")
            if asked == "initialize" and isinstance(result, dict):
                self.version = _visible(str(result.get("protocolVersion") or ""), "revision of the protocol")
            elif asked == "tools/list" and isinstance(result, dict):
                self._learn(result.get("tools"))
        await self._in.put(part)
        return "method" not in message and message["id"] == id

    def _learn(self, tools: Any) -> None:
        """See which parameters of tools are in headers."""
        for tool in tools if isinstance(tools, list) else ():
            properties = record(record(record(tool).get("inputSchema")).get("properties"))
            marked = {name: record(part).get("x-mcp-header") for name, part in properties.items()}
            self._params[str(record(tool).get("name"))] = {n: h for n, h in marked.items() if isinstance(h, str)}

    def _about(self, message: Message) -> dict[str, str]:
        """The headers in which the newer era repeats what a message says."""
        params = record(message.get("params"))
        version = record(params.get("_meta")).get(VERSION_KEY)
        if not isinstance(version, str):
            return {}
        method = str(message.get("method"))
        for text in (version, method):
            if not _VISIBLE.fullmatch(text):
                raise WireError(f"{text[:80]!a} cannot be sent in a header; visible ASCII is expected")
        out = {"MCP-Protocol-Version": version, "Mcp-Method": method}
        if isinstance(named := params.get(NAMED.get(method, "")), str):
            out["Mcp-Name"] = _field(named)
        if method == "tools/call":
            for param, header in self._params.get(str(params.get("name")), {}).items():
                value = record(params.get("arguments")).get(param)
                if not _TOKEN.fullmatch(header):
                    raise WireError(
                        f"it wants {param[:80]!a} in a header named {header[:80]!a}, which is not a valid header name"
                    )
                if isinstance(value, bool):
                    out[f"Mcp-Param-{header}"] = "true" if value else "false"
                elif isinstance(value, (str, int, float)):
                    out[f"Mcp-Param-{header}"] = _field(str(value))
        return out

    async def _listen(self) -> None:
        """What the server says of its own accord, where it offers that."""
        with contextlib.suppress(WireError):
            async with contextlib.aclosing(self._exchange("GET", b"", {})) as parts:
                async for part in parts:
                    await self._take(part, None)

    async def _exchange(self, method: str, body: bytes, about: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        """Make a request; gives the messages in what comes back. Raises `WireError` where that is none."""
        headers = {
            **self.headers,
            "Accept": STREAM if method == "GET" else f"{JSON}, {STREAM}",
            **({"Content-Type": JSON} if method == "POST" else {}),
            **({"Mcp-Session-Id": self.session} if self.session else {}),
            **({"MCP-Protocol-Version": self.version} if self.version else {}),
            **about,
        }
        try:
            request = httpx2.Request(method, self.url, content=body, headers=headers, extensions={"timeout": TIMEOUTS})
            response = await self.transport.handle_async_request(request)
            response.request = request
            async with contextlib.aclosing(response):
                if (session := response.headers.get("mcp-session-id")) is not None:
                    self.session = _visible(session, "session")
                if "content-encoding" in response.headers:  # a few bytes of it may stand for any number
                    raise WireError("the answer is compressed, which was not asked for")
                kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
                status = response.status_code
                if status == 200 and kind == STREAM:
                    async for event in httpx2.EventSource(response, LIMIT):
                        if event.data.strip():
                            yield event.data.encode()
                    return
                text = bytearray()
                async for part in response.aiter_raw():
                    text += part
                    if len(text) > LIMIT:
                        raise WireError(f"an answer of more than {LIMIT} bytes")
                if method == "POST" and status != 202:
                    if kind != JSON or not text.strip() or (status >= 400 and not _answers(text)):
                        raise WireError(f"HTTP {status} {text[:200].decode('utf-8', 'replace')}".strip())
                    yield bytes(text)
        except httpx2.ConnectError as error:
            raise WireError(f"cannot connect ({error}); is it running?") from None
        except (httpx2.HTTPError, UnicodeError) as error:
            raise WireError(str(error) or type(error).__name__) from None


def _answers(text: bytes | bytearray) -> bool:
    """Is it the answer to a request, and not only words about why there is none?"""
    try:
        message = wire.parse(bytes(text), lenient=True)
    except BadFrame:
        return False
    return "method" not in message and message["id"] is not None


def _visible(value: str, what: str) -> str:
    """A value of the server's that later requests repeat in a header. Raises `Unsendable` where that cannot be."""
    if value and not _VISIBLE.fullmatch(value):
        raise Unsendable(f"its {what} is {value[:80]!a}; expected up to 1024 characters of visible ASCII")
    return value


def _field(value: str) -> str:
    """A value as a header carries it. Raises `WireError` where it is no text."""
    if _SAFE.fullmatch(value) and value == value.strip() and not value.startswith("=?base64?"):
        return value
    try:
        return f"=?base64?{base64.b64encode(value.encode()).decode()}?="
    except UnicodeEncodeError:
        raise WireError(f"{value[:80]!a} cannot be sent in a header") from None
