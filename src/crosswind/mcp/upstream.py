"""A remote server: a peer that answers requests, and a client of its tools.

`ServerLink` is for a proxy: it sends requests of its own and hands on everything else. `Remote` is for a program that
uses a server's tools: it shakes hands by itself, in the manner of either era of the protocol.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Self

from crosswind.base.extras import extra
from crosswind.base.version import __version__
from crosswind.core.types import ToolCall, ToolError, ToolResult
from crosswind.mcp import schema, wire
from crosswind.mcp.tools import PROTOCOL, Tool, result_of, tools_of
from crosswind.mcp.wire import BadFrame, Channel, Child, Message, WireError

TOKEN = "CROSSWIND_SERVER_TOKEN"  # the variable with the token that a server behind a URL wants
TIMEOUT = 60.0  # seconds for anything that is not a call of a tool
CALL_TIMEOUT = 300.0
PAGES = 200  # of a list of tools
ENTRIES = 20_000  # of a list, over all pages
LISTED = 64 * 2**20  # bytes of all its pages
NOISE = 1000  # frames that are none, after which a server is taken for one that does not speak the protocol
# what a server may list besides tools: the capability, the request, and the key of the answer
LISTS = (
    ("prompts", "prompts/list", "prompts"),
    ("resources", "resources/list", "resources"),
    ("resources", "resources/templates/list", "resourceTemplates"),
)

Other = Callable[[Message, bytes], Awaitable[None]]


async def open_channel(
    target: Sequence[str] | str,
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stderr: IO[bytes] | None = None,
) -> Channel:
    """A channel to a server: a command to start, or the URL of one that runs."""
    if isinstance(target, str):
        with extra("http", "a server behind a URL"):
            from crosswind.mcp.http_channel import HttpChannel

        token = os.environ.get(TOKEN, "")
        return HttpChannel(target, headers={"Authorization": f"Bearer {token}"} if token else {})
    return await Child.start(target, env=env, cwd=cwd, stderr=stderr)


class ServerLink:
    """A server on a channel. Answers to our own requests go to the one who asked, everything else to `other`."""

    def __init__(self, channel: Channel, other: Other, complain: Callable[[str], None] = lambda _: None) -> None:
        self.channel, self.other, self.complain = channel, other, complain
        self.ended = ""  # why there is no more to come, once there is not
        self._mark, self._count = secrets.token_hex(4), 0  # ids that no client has
        self._waiting: dict[str, asyncio.Future[tuple[Message, int]]] = {}

    async def run(self) -> None:
        """Read until the server ends."""
        noise = 0
        try:
            while (frame := await self.channel.read()) is not None:
                try:
                    message = wire.parse(frame, lenient=True)  # to be handed on as it came
                except BadFrame as bad:
                    noise += 1
                    if noise <= 3:
                        self.complain(f"the server wrote something that is not an MCP message ({bad})")
                    if noise > NOISE:
                        raise WireError(f"the server wrote {noise} lines that are not MCP messages") from None
                    if (failed := wire.instead(frame, bad)) is None:
                        continue
                    message, frame = failed, wire.dump(failed)
                waiting = None
                if "method" not in message and isinstance(message["id"], str):
                    waiting = self._waiting.pop(message["id"], None)
                if waiting is None:
                    if "method" in message or not str(message["id"]).startswith(f"crosswind-{self._mark}-"):
                        await self.other(message, frame)  # a late answer to one of ours is nobody's
                elif not waiting.done():
                    waiting.set_result((message, len(frame)))
            self.ended = await self._how()
        except BadFrame as bad:
            self.ended = f"the server sent {bad}"
        except WireError as error:
            self.ended = str(error)
        finally:
            self.ended = self.ended or "the connection to the server was closed"
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(WireError(self.ended))
            self._waiting.clear()

    async def _how(self) -> str:
        if not isinstance(self.channel, Child):
            return "the server closed the connection"
        await self.channel.wait(0.5)
        return f"the server {self.channel.ended or 'closed its output'}"

    async def send(self, message: Mapping[str, Any]) -> None:
        await self.channel.write(wire.dump(message))

    async def request(
        self, method: str, params: Mapping[str, Any] | None = None, *, timeout: float = TIMEOUT
    ) -> Message:
        """Ask something and give the whole answer. Raises `WireError` where none comes."""
        return (await self.exchange(method, params, timeout=timeout))[0]

    async def exchange(
        self, method: str, params: Mapping[str, Any] | None = None, *, timeout: float = TIMEOUT
    ) -> tuple[Message, int]:
        """The same, with the bytes of the answer."""
        if self.ended:
            raise WireError(self.ended)
        self._count += 1
        id = f"crosswind-{self._mark}-{self._count}"
        future: asyncio.Future[tuple[Message, int]] = asyncio.get_running_loop().create_future()
        self._waiting[id] = future
        sent = False
        try:
            async with asyncio.timeout(timeout):
                await self.send(wire.request(id, method, params))  # a server that reads nothing takes no request
                sent = True
                return await future
        except TimeoutError:
            if sent:
                await self._cancel(id, "timeout")
            raise WireError(f"the server did not answer {method} within {timeout:g} seconds") from None
        except asyncio.CancelledError:
            if sent:
                await asyncio.shield(self._cancel(id, "cancelled by the client"))
            raise
        finally:
            self._waiting.pop(id, None)

    async def _cancel(self, id: str, why: str) -> None:
        with contextlib.suppress(WireError):
            await self.send(wire.notification(wire.CANCELLED, {"requestId": id, "reason": why}))

    async def listing(
        self, meta: Mapping[str, Any] | None = None, method: str = "tools/list", key: str = "tools"
    ) -> tuple[list[Any], Message]:
        """All tools, and the first answer without them; an error is given as it came, with no tools.

        Other lists are had by their `method` and the `key` under which they stand.
        """
        listed: list[Any] = []
        first: Message = {}
        cursor: Any = None
        seen: set[str] = set()
        total = 0
        for _ in range(PAGES):
            params = {**({"_meta": dict(meta)} if meta else {}), **({} if cursor is None else {"cursor": cursor})}
            response, size = await self.exchange(method, params)
            total += size
            page = response.get("result")
            if "error" in response:
                return [], response
            if not isinstance(page, dict) or not isinstance(page.get(key), list):
                raise WireError(f"the server answered {method} with something that is no list of {key}")
            if len(listed) + len(page[key]) > ENTRIES:
                raise WireError(f"the server lists more than {ENTRIES:,} {key}, which is too many")
            if total > LISTED:
                raise WireError(f"the server's list of {key} is larger than {LISTED // 2**20} MiB, which is too large")
            first = first or page
            listed += page[key]
            cursor = page.get("nextCursor")
            if cursor is None:
                return listed, {k: v for k, v in first.items() if k not in (key, "nextCursor")}
            if str(cursor) in seen:
                break
            seen.add(str(cursor))
        raise WireError(f"the server's list of {key} does not end")


class Remote:
    """A client of the tools of a server on a channel, for a program. Use it as a context.

    With `strict` a server that does not keep to its own schemas counts as one that fails.
    """

    def __init__(self, channel: Channel, *, timeout: float = CALL_TIMEOUT, strict: bool = False) -> None:
        self.channel, self.link = channel, ServerLink(channel, self._other)
        self.timeout, self.strict = timeout, strict
        self.listed: dict[str, Tool] = {}
        self.raw: list[Any] = []  # the same as it came
        self.about: Message = {}  # what the server said of itself
        self._meta: Message = {}
        self._echoes = False  # it asked us to be the server

    async def __aenter__(self) -> Self:
        self._reading = asyncio.create_task(self.link.run())
        try:
            await self._greet()
            await self._list()
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the connection, and the process where there is one."""
        await self.channel.close()
        self._reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reading

    async def _greet(self) -> None:
        """Begin in the older manner, which servers of both eras know; else in the newer one."""
        who = {"name": "crosswind", "version": __version__}
        hello = {"protocolVersion": wire.HANDSHAKE[-1], "capabilities": {}, "clientInfo": who}
        response = await self.link.request("initialize", hello)
        if isinstance(response.get("result"), dict):
            self.about = response["result"]
            await self.link.send(wire.notification("notifications/initialized"))
            return
        self._meta = {wire.VERSION_KEY: wire.MODERN, wire.CLIENT_KEY: who, f"{wire.META}clientCapabilities": {}}
        again = await self.link.request("server/discover", {"_meta": self._meta})
        if not isinstance(again.get("result"), dict):
            if self._echoes:
                raise WireError("it sends back what it is sent, so it is not an MCP server; give the command of one")
            if unreached := wire.why_lost(response):
                raise WireError(unreached)
            raise WireError(f"the server rejected the handshake: {_words(response)}")
        self.about = again["result"]

    async def _list(self) -> None:
        listed, page = await self.link.listing(self._meta)
        if "error" in page:
            raise WireError(f"the server does not list its tools: {_words(page)}")
        if self.strict and (bad := schema.bad_listing(listed)):
            raise WireError(f"the server's list of tools cannot be used: {bad}")
        self.raw = listed
        self.listed = tools_of(listed)

    async def besides(self) -> tuple[list[Any], list[Any]]:
        """Prompts and resources, with templates of resources, as far as the server offers and lists them."""
        offered = schema.record(self.about.get("capabilities"))
        found: dict[str, list[Any]] = {}
        for capability, method, key in LISTS:
            if isinstance(offered.get(capability), dict):
                found.setdefault(capability, []).extend((await self.link.listing(self._meta, method, key))[0])
        return found.get("prompts", []), found.get("resources", [])

    async def call(self, call: ToolCall) -> ToolResult:
        """Call a tool. A tool's error is a result; a server that is gone or does not answer raises `WireError`."""
        params: Message = {"name": call.tool, "arguments": dict(call.args)}
        if self._meta:
            params["_meta"] = self._meta
        response = await self.link.request("tools/call", params, timeout=self.timeout)
        if "error" in response:
            if isinstance(response["error"], dict) and response["error"].get("code") == wire.UPSTREAM_GONE:
                raise WireError(_words(response))
            return ToolResult(None, ToolError(PROTOCOL, _words(response)))
        value = response["result"]
        if not isinstance(value, dict):
            raise WireError("the server's answer to tools/call is not a valid result")
        if value.get("resultType", "complete") != "complete":
            raise WireError(f"the server wants more before it answers ({value['resultType']}), which is not supported")
        tool = self.listed.get(call.tool)
        if self.strict and tool is not None and (bad := schema.lie(value, tool.output)):
            raise WireError(f"the server's answer to {call.tool} does not fit the schema that it lists: {bad}")
        return result_of(value, tool)

    async def _other(self, message: Message, _: bytes) -> None:
        """Answer what a server may ask of a client; we offer nothing but being there."""
        if "method" in message and "id" in message:
            self._echoes |= message["method"] == "initialize"
            if message["method"] == "ping":
                await self.link.send(wire.result(message["id"], {}))
            else:
                await self.link.send(wire.failure(message["id"], wire.METHOD_NOT_FOUND, "not offered by this client"))


def _words(response: Message) -> str:
    error = response.get("error")
    return str(error.get("message", error)) if isinstance(error, dict) else str(error)
