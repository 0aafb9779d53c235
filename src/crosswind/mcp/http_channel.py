"""A server behind a URL: streamable HTTP as a channel, with nothing but the standard library.

Each message is a request of its own. What comes back, as JSON or as a stream of events, is put in one queue, so that
whoever reads sees the same messages as from a process. The newer era wants parts of a message repeated in headers.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from crosswind.base.version import __version__
from crosswind.mcp import wire
from crosswind.mcp.http_server import JSON, STREAM
from crosswind.mcp.schema import record
from crosswind.mcp.wire import CANCELLED, LIMIT, UPSTREAM_GONE, VERSION_KEY, BadFrame, Message, WireError

HEAD = 2**16  # bytes of a response's head
CONNECT = 20.0  # seconds
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}  # whose parameter stands in a header
_SAFE = re.compile(r"[\x20-\x7e]*")


class HttpChannel:
    """A channel to a server behind a URL: each message is a request, and what comes back is put in one queue."""

    def __init__(self, url: str, *, headers: Mapping[str, str] | None = None) -> None:
        parts = urlsplit(url)
        self.host, self.tls = parts.hostname or "", parts.scheme == "https"
        self.port = parts.port or (443 if self.tls else 80)
        self.path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self.netloc = parts.netloc.rpartition("@")[2]
        self.headers = dict(headers or {})
        self.session = ""
        self.version = ""  # of the protocol, once both sides agreed on one
        self._in: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._posts: dict[str, asyncio.Task[None]] = {}
        self._others: set[asyncio.Task[None]] = set()
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._params: dict[str, dict[str, str]] = {}  # of tools: parameters that stand in headers
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
            with contextlib.suppress(WireError, TimeoutError, OSError):
                async with asyncio.timeout(wire.GRACE), contextlib.aclosing(self._exchange("DELETE", b"", {})) as parts:
                    async for _ in parts:
                        pass
        for _, writer in self._idle:
            writer.close()
        self._in.put_nowait(None)

    async def _post(self, message: Message, frame: bytes) -> None:
        id = message.get("id") if "method" in message else None
        answered = id is None
        try:
            async with contextlib.aclosing(self._exchange("POST", frame, self._about(message))) as parts:
                async for part in parts:
                    answered = self._take(part, id) or answered
        except (WireError, OSError, TimeoutError, ssl.SSLError) as error:
            if id is None:
                raise WireError(f"the server at {self.netloc} cannot be reached: {error}") from None
            self._fail(id, f"the server at {self.netloc} failed: {str(error) or type(error).__name__}")
            return
        if not answered:
            self._fail(id, f"the server at {self.netloc} ended its answer without a response")

    def _fail(self, id: Any, text: str) -> None:
        self._in.put_nowait(wire.dump(wire.failure(id, UPSTREAM_GONE, text)))

    def _take(self, part: bytes, id: Any) -> bool:
        """Take a message from the server; is it the answer to a request?"""
        try:
            message = wire.parse(part)
        except BadFrame:
            self._in.put_nowait(part)  # whoever reads finds out
            return False
        if "method" not in message:
            asked = self._asked.pop(json.dumps(message["id"]), "")
            result = message.get("result")
            if asked == "initialize" and isinstance(result, dict):
                self.version = str(result.get("protocolVersion") or "")
            elif asked == "tools/list" and isinstance(result, dict):
                self._learn(result.get("tools"))
        self._in.put_nowait(part)
        return "method" not in message and message["id"] == id

    def _learn(self, tools: Any) -> None:
        """See which parameters of tools stand in headers."""
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
        out = {"MCP-Protocol-Version": version, "Mcp-Method": method}
        if isinstance(named := params.get(NAMED.get(method, "")), str):
            out["Mcp-Name"] = _field(named)
        if method == "tools/call":
            for param, header in self._params.get(str(params.get("name")), {}).items():
                value = record(params.get("arguments")).get(param)
                if isinstance(value, bool):
                    out[f"Mcp-Param-{header}"] = "true" if value else "false"
                elif isinstance(value, (str, int, float)):
                    out[f"Mcp-Param-{header}"] = _field(str(value))
        return out

    async def _listen(self) -> None:
        """What the server says of its own accord, where it offers that."""
        with contextlib.suppress(WireError, OSError, TimeoutError, ssl.SSLError):
            async with contextlib.aclosing(self._exchange("GET", b"", {})) as parts:
                async for part in parts:
                    self._take(part, None)

    # -- HTTP

    async def _exchange(self, method: str, body: bytes, about: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        """Make a request; gives the messages in what comes back."""
        reader, writer = await self._connection()
        whole = False
        try:
            writer.write(self._head(method, body, about) + body)
            await writer.drain()
            status, headers = await _response_head(reader)
            self.session = headers.get("mcp-session-id", self.session)
            kind = headers.get("content-type", "").partition(";")[0].strip().lower()
            parts = _body(reader, headers, status)
            if status == 200 and kind == STREAM:
                async for event in _events(parts):
                    yield event
            else:
                text = b"".join([part async for part in parts])
                if method == "POST" and status != 202:
                    if kind != JSON or not text.strip() or (status >= 400 and not _answers(text)):
                        raise WireError(f"HTTP {status} {text[:200].decode('utf-8', 'replace')}".strip())
                    yield text
            whole = True
        finally:
            if whole and headers.get("connection", "").lower() != "close" and "close" not in headers:
                self._idle.append((reader, writer))
            else:
                writer.close()

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        while self._idle:
            reader, writer = self._idle.pop()
            if not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.close()
        context = ssl.create_default_context() if self.tls else None
        async with asyncio.timeout(CONNECT):
            return await asyncio.open_connection(self.host, self.port, ssl=context, limit=HEAD)

    def _head(self, method: str, body: bytes, about: Mapping[str, str]) -> bytes:
        headers = {
            "Host": self.netloc,
            "User-Agent": f"crosswind/{__version__}",
            "Accept": STREAM if method == "GET" else f"{JSON}, {STREAM}",
            **({"Content-Type": JSON, "Content-Length": str(len(body))} if method == "POST" else {}),
            **({"Mcp-Session-Id": self.session} if self.session else {}),
            **({"MCP-Protocol-Version": self.version} if self.version else {}),
            **about,
            **self.headers,
        }
        lines = [f"{method} {self.path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        return "\r\n".join(lines).encode("latin-1", "replace")


def _answers(text: bytes) -> bool:
    """Is it the answer to a request, and not only words about why there is none?"""
    try:
        message = wire.parse(text)
    except BadFrame:
        return False
    return "method" not in message and message["id"] is not None


def _field(value: str) -> str:
    """A value as a header carries it."""
    if _SAFE.fullmatch(value) and value == value.strip() and not value.startswith("=?base64?"):
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


async def _response_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        raise WireError("the connection was closed before the answer") from None
    except asyncio.LimitOverrunError:
        raise WireError("the head of the answer is too long") from None
    first, *lines = head.decode("latin-1").split("\r\n")[:-2]
    parts = first.split(" ", 2)
    if len(parts) < 2 or not parts[0].startswith("HTTP/1.") or not parts[1].isdigit():
        raise WireError("the answer is not HTTP/1.1")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    return int(parts[1]), headers


async def _body(reader: asyncio.StreamReader, headers: dict[str, str], status: int) -> AsyncIterator[bytes]:
    """The pieces of a body as they come."""
    if status in (202, 204) and "transfer-encoding" not in headers and "content-length" not in headers:
        return
    taken = 0
    try:
        if headers.get("transfer-encoding", "").lower() == "chunked":
            while size := int((await reader.readuntil(b"\r\n")).partition(b";")[0].strip() or b"x", 16):
                if size > LIMIT:
                    raise WireError(f"a chunk of more than {LIMIT} bytes")
                yield (await reader.readexactly(size + 2))[:-2]
            await reader.readuntil(b"\r\n")
        elif "content-length" in headers:
            length = int(headers["content-length"])
            if length > LIMIT:
                raise WireError(f"an answer of more than {LIMIT} bytes")
            while taken < length and (data := await reader.read(min(wire.CHUNK, length - taken))):
                taken += len(data)
                yield data
            if taken < length:
                raise WireError("the answer is not complete")
        else:
            headers["close"] = ""  # its end is that of the connection
            while data := await reader.read(wire.CHUNK):
                yield data
    except (ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        raise WireError("the answer is not complete") from None


async def _events(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The data of server-sent events."""
    buffer, data = bytearray(), list[bytes]()
    async for part in parts:
        buffer += part
        if len(buffer) + sum(map(len, data)) > LIMIT:
            raise WireError(f"an event of more than {LIMIT} bytes")
        *lines, rest = bytes(buffer).replace(b"\r\n", b"\n").split(b"\n")
        buffer = bytearray(rest)
        for line in lines:
            if line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
            elif not line.strip() and data:
                if joined := b"\n".join(data).strip():
                    yield joined
                data = []
