"""An episode as an MCP server: what a client calls becomes the replies that `play` asks for.

`EpisodeServer` answers the messages of both eras of the protocol (the handshake up to 2025-11-25, and 2026-07-28, which
has none) and knows nothing of pipes and sockets: `serve_lines` and `http_server.py` carry them. A client sees what
every other agent sees: the tools as they are shown now, `ask_user` among them, results as text, and what the user says.
All words it adds are the same with and without obstacles.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from typing import Any, Protocol

from crosswind.base.version import __version__
from crosswind.core.draw import Drawn
from crosswind.core.finish import FINISH_SPEC
from crosswind.core.finish import OVER as THANKS
from crosswind.core.types import FINISH, Finish, failed
from crosswind.episodes.play import result_text
from crosswind.mcp import wire
from crosswind.mcp.schema import record
from crosswind.mcp.wire import BadFrame, Lines, Message, WireError
from crosswind.models.python_agent import HEARD, PythonAgent, PythonAgents
from crosswind.models.source import Price
from crosswind.models.toolset import Toolset

UNSUPPORTED_VERSION, NO_RESOURCE = -32022, -32002
NAME = "tools"  # what clients are told the server is called; says nothing of an evaluation
LINGER = 2.0  # seconds that answers may take once the client has sent its last
REQUEST, POLICY = "task://request", "task://policy"

USER = (
    "Questions to the user go through the tool ask_user. What the user says of their own accord while you work stands "
    "below the result of a tool, after the words 'The user says:'; it comes from the user and not from the tool."
)
ENDING = f" End with the tool {FINISH}."
OVER = failed("over", "This task is over.")

Send = Callable[[Message], None]


class Responder(Protocol):
    """Anyone who answers messages; `EpisodeServer` is one."""

    over: asyncio.Event

    async def respond(self, message: Message, send: Send) -> Message | None: ...

    def listen(self, send: Send) -> Callable[[], None]: ...


def briefing(tools: Toolset) -> str:
    """The policy, how the user is reached, and how to end."""
    return f"{tools.policy}\n\n{USER}{ENDING if FINISH_SPEC in tools.shown else ''}".strip()


class Refused(Exception):
    """A request that the protocol answers with an error."""

    def __init__(self, code: int, text: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(text)
        self.code, self.text, self.data = code, text, data


class EpisodeServer:
    """One episode as a server. `tools` leads to the session."""

    def __init__(self, tools: Toolset, query: str) -> None:
        self.tools, self.query = tools, query
        self.briefing = briefing(tools)
        self.listeners: dict[int, Send] = {}  # who is told when the tools change
        self.over = asyncio.Event()
        self.calls = 0  # of tools
        self.ending = False  # a call of `finish` is under way
        self.heard = asyncio.get_running_loop().time()  # when the last message came

    # -- messages

    async def respond(self, message: Message, send: Send) -> Message | None:
        """The answer to a message, or None where it needs none; `send` leads back on the same stream meanwhile."""
        self.heard = asyncio.get_running_loop().time()
        if "method" not in message or "id" not in message:
            return None
        id, method, params = message["id"], message["method"], message.get("params")
        try:
            if params is not None and not isinstance(params, dict):
                raise Refused(wire.INVALID_PARAMS, "params must be an object")
            params = params or {}
            modern = self._era(params)
            if method == wire.LISTEN and modern:
                return await self._listen(id, params, send)
            value = await self._result(method, params)
        except Refused as refused:
            answer = wire.failure(id, refused.code, refused.text)
            if refused.data is not None:
                answer["error"]["data"] = refused.data
            return answer
        finally:
            self.heard = asyncio.get_running_loop().time()
        if modern:
            value = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **value}
        return wire.result(id, value)

    def listen(self, send: Send) -> Callable[[], None]:
        """Tell `send` of changes from now on, until what is returned is called."""
        key = max(self.listeners, default=0) + 1
        self.listeners[key] = send
        return lambda: self.listeners.pop(key, None) and None

    def close(self) -> None:
        """No more calls; streams end."""
        self.over.set()

    def _era(self, params: dict[str, Any]) -> bool:
        """Is the request of the era without a handshake?"""
        version = record(params.get("_meta")).get(wire.VERSION_KEY)
        if version is None or version in wire.HANDSHAKE:
            return False
        if version != wire.MODERN:
            supported = {"supported": [*wire.HANDSHAKE, wire.MODERN], "requested": version}
            raise Refused(UNSUPPORTED_VERSION, "unsupported protocol version", supported)
        return True

    async def _listen(self, id: Any, params: dict[str, Any], send: Send) -> Message:
        """A stream that lasts as long as the episode: acknowledged first, then a word for each change."""
        tools = record(params.get("notifications")).get("toolsListChanged") is True
        meta = {"_meta": {wire.SUBSCRIPTION_KEY: id}}
        send(
            wire.notification(wire.ACKNOWLEDGED, {"notifications": {"toolsListChanged": True} if tools else {}, **meta})
        )
        stop = self.listen(lambda note: send({**note, "params": meta})) if tools else None
        try:
            await self.over.wait()
        finally:
            if stop:
                stop()
        return wire.result(id, {"resultType": "complete", **meta})

    async def _result(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        match method:
            case "initialize":
                asked = params.get("protocolVersion")
                version = asked if asked in wire.HANDSHAKE else wire.HANDSHAKE[-1]
                return {"protocolVersion": version, **self._introduction()}
            case "server/discover":
                return {"supportedVersions": [*wire.HANDSHAKE, wire.MODERN], **self._introduction()}
            case "ping":
                return {}
            case "tools/list":
                return {"tools": self._tools()}
            case "tools/call":
                return await self._call(params)
            case "prompts/list":
                return {"prompts": [{"name": "request", "description": "What the user wants."}]}
            case "prompts/get":
                if params.get("name") != "request":
                    raise Refused(wire.INVALID_PARAMS, "there is one prompt, called request")
                return {"messages": [{"role": "user", "content": {"type": "text", "text": self.query}}]}
            case "resources/list":
                kinds = ((REQUEST, "request"), (POLICY, "policy"))
                return {"resources": [{"uri": uri, "name": name, "mimeType": "text/plain"} for uri, name in kinds]}
            case "resources/templates/list":
                return {"resourceTemplates": []}
            case "resources/read":
                uri = params.get("uri")
                if uri not in (REQUEST, POLICY):
                    raise Refused(NO_RESOURCE, "resource not found")
                text = self.query if uri == REQUEST else self.briefing
                return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": text}]}
        raise Refused(wire.METHOD_NOT_FOUND, f"no method {method[:100]!r} here")

    def _introduction(self) -> dict[str, Any]:
        return {
            "capabilities": {"tools": {"listChanged": True}, "prompts": {}, "resources": {}},
            "serverInfo": {"name": NAME, "version": __version__},
            "instructions": self.briefing,
        }

    # -- tools

    def _tools(self) -> list[dict[str, Any]]:
        functions = (spec.function()["function"] for spec in self.tools.shown)
        return [{"name": f["name"], "description": f["description"], "inputSchema": f["parameters"]} for f in functions]

    async def _call(self, params: dict[str, Any]) -> dict[str, Any]:
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str):
            raise Refused(wire.INVALID_PARAMS, "the name of the tool is missing")
        arguments = {} if arguments is None else arguments
        self.calls += 1
        if self.over.is_set():
            return said(result_text(OVER))
        before, self.ending = self.tools.shown, name == FINISH
        over = asyncio.ensure_future(self.over.wait())
        made = asyncio.ensure_future(self.tools.call(name, arguments))
        try:
            await asyncio.wait({made, over}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            over.cancel()
        if not made.done():  # the call ended the episode, the budget is used up, or somebody stopped it
            made.cancel()
            return said(THANKS if name == FINISH else result_text(OVER))
        self.ending = False
        if self.tools.shown != before:
            for send in list(self.listeners.values()):
                send(wire.notification(wire.LIST_CHANGED))
        return said(made.result())


def said(text: str) -> dict[str, Any]:
    """The result of a tool; what the user says with it is a text of its own."""
    result, heard, words = text.partition(HEARD)
    content = [{"type": "text", "text": result}]
    if heard:
        content.append({"type": "text", "text": heard.lstrip() + words})
    return {"content": content, "isError": is_error(result)}


def is_error(text: str) -> bool:
    """Is this a result as `play.result_text` writes an error?"""
    if not text.startswith('{"error": '):
        return False
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return isinstance(value, dict) and value.keys() == {"error", "message"}


# ---------------------------------------------------------------- one episode, served until its end


class Served(PythonAgents):
    """The agent at the other end of a connection. It ends the episode by the tool `finish`, or by leaving."""

    concurrency = 1

    def __init__(self, ready: Callable[[EpisodeServer], None]) -> None:
        self.name = "mcp"
        self.price: Price | None = None
        self.settings: dict[str, Any] = {}
        self.ready = ready  # told of the episode as soon as the tools are known
        self.episode: EpisodeServer | None = None
        self.gone: asyncio.Future[str] | None = None  # the client left without a word

    def make(self, drawn: Drawn) -> PythonAgent:
        return PythonAgent(self)

    async def run(self, query: str, tools: Toolset) -> str | Finish:
        """Wait until the client leaves; its calls come through the server."""
        self.gone = asyncio.get_running_loop().create_future()
        self.episode = EpisodeServer(tools, query)
        self.ready(self.episode)
        return await self.gone

    def leave(self) -> None:
        """The client is gone: it says no more."""
        if self.gone is not None and not self.gone.done():
            self.gone.set_result("")

    def end(self) -> None:
        """The episode is over: anyone who waits for an answer hears so."""
        if self.episode is not None:
            self.episode.close()


# ---------------------------------------------------------------- over lines


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
            kept = lasting if message.get("method") == wire.LISTEN else answering
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
