"""Episodes behind a WebSocket that speaks OpenEnv's protocol: reset, step, state and close.

    {"type": "reset", "data": {"suite": "tiers", "number": 12, "seed": 0}}             any request of `requested`
    {"type": "step",  "data": {"text": "", "calls": [{"id": "1", "tool": "find_places", "args": {...}}]}}

Every observation has the messages that are new and the tools as they are shown now. The reward comes with the last one:
1 or 0 by the judge, and none for what infrastructure broke. Each connection plays one episode at a time.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from pydantic import Field, ValidationError
from starlette.applications import Starlette
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect
from uvicorn import Config, Server
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from crosswind.base.errors import CrosswindError
from crosswind.base.version import __version__
from crosswind.core.types import Ending, Message, Model
from crosswind.core.types import Request as ToolRequest
from crosswind.episodes.record import Record
from crosswind.episodes.schedule import Episode
from crosswind.frameworks.driven import AgentTurn, DrivenEpisode, chat_message
from crosswind.frameworks.requested import EpisodeRequest
from crosswind.runs.runner import Crash

LOOPBACK = ("127.0.0.1", "localhost", "::1")
LARGEST = 2**20  # bytes of one message
IDLE = 600.0  # seconds without a message until a connection is closed
SESSIONS = 1000


class ToolUse(Model):
    """One call."""

    id: str = ""
    tool: str
    args: Any = Field(default_factory=dict)


class Action(Model):
    """A reply of the agent: calls, or words to the user, which end the episode unless the user answers."""

    text: str = ""
    calls: tuple[ToolUse, ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict)  # not read

    def message(self) -> Message:
        requests = (ToolRequest(id=c.id or f"call_{i}", tool=c.tool, args=c.args) for i, c in enumerate(self.calls))
        return Message(role="assistant", content=self.text, requests=tuple(requests))


class BadMessage(Exception):
    """A message that is answered with an error; the episode stays as it was."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class Environment:
    """The episode of one connection."""

    def __init__(self, ending: Ending, drawer: Executor) -> None:
        self.ending, self.drawer = ending, drawer
        self.driven: DrivenEpisode | None = None
        self.turn: AgentTurn | None = None
        self.id, self.steps = "", 0

    async def reset(self, data: dict[str, Any]) -> dict[str, Any]:
        named = data.pop("episode_id", None)
        request = EpisodeRequest.read(data).from_outside()
        episode = await self._drawn(request)
        await self.aclose()
        self.id, self.steps = str(named or episode.key), 0
        self.driven = DrivenEpisode(episode, name="openenv", seed=request.seed, ending=self.ending)
        self.turn = await self.driven.begin()
        return self._observed()

    async def _drawn(self, request: EpisodeRequest) -> Episode:
        """The episode, drawn beside the sessions; the thread serves resets in turn, an episode of their suites each."""
        drawing, loop = request.drawing(), asyncio.get_running_loop()
        while True:
            if (episode := await loop.run_in_executor(self.drawer, next, drawing)) is not None:
                return episode

    async def step(self, data: dict[str, Any]) -> dict[str, Any]:
        if self.driven is None:
            raise BadMessage("EXECUTION_ERROR", "no episode is open; send reset first")
        if self.turn is None:
            raise BadMessage("EXECUTION_ERROR", "the episode is over; send reset to open another")
        try:
            action = Action.model_validate_json(json.dumps(data))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"]))
            raise BadMessage(
                "VALIDATION_ERROR", f"{place}: {first['msg']}; expected {{text}} or {{calls: [{{id, tool, args}}]}}"
            ) from None
        self.steps += 1
        self.turn = await self.driven.reply(action.message())
        return self._observed()

    @property
    def state(self) -> dict[str, Any]:
        return {"episode_id": self.id or None, "step_count": self.steps, "done": self.turn is None}

    async def aclose(self) -> None:
        if self.driven is not None:
            await self.driven.aclose()
        self.driven = self.turn = None

    def _observed(self) -> dict[str, Any]:
        assert self.driven is not None
        turn, record = self.turn, self.driven.record
        observation: dict[str, Any] = {
            "messages": [chat_message(message) for message in turn.new] if turn else [],
            "tools": [spec.function() for spec in turn.tools] if turn else [],
            "metadata": {"episode": self.driven.episode.key, **(_verdict(record) if record else {})},
        }
        reward = float(record.passed) if record is not None and record.judged else None
        return {
            "observation": observation,
            "reward": reward,
            "done": turn is None,
            "metadata": observation["metadata"],
        }


def _verdict(record: Record) -> dict[str, Any]:
    return {
        "outcome": record.outcome,
        "masked": not record.judged,  # infrastructure failed: no sample to learn from
        "condition": record.condition,
        "refuse": record.refuse,
        "exposed": record.exposed,
        "cause": record.cause,
        "steps": len(record.steps),
    }


class OpenEnvServer:
    """The server. Beyond this machine it takes no one without a token."""

    def __init__(
        self,
        *,
        host: str = LOOPBACK[0],
        port: int = 0,
        token: str = "",
        sessions: int = SESSIONS,
        idle: float = IDLE,
        ending: Ending = "finish",
    ) -> None:
        if host not in LOOPBACK and not token:
            raise CrosswindError(
                f"--host {host} listens beyond this machine, so give --token; clients send it as a Bearer header "
                "or as ?token=... in the address"
            )
        self.host, self.token, self.most, self.idle, self.ending = host, token, sessions, idle, ending
        self.open = 0
        self.drawer = ThreadPoolExecutor(1, "draws")
        self.app = Starlette(
            routes=[
                Route("/health", self.health),
                Route("/metadata", self.metadata),
                Route("/schema", self.schema),
                WebSocketRoute("/ws", self.connected),
            ]
        )
        self.server = Server(
            Config(
                self.app,
                host=host,
                port=port,
                ws=WebSocketsSansIOProtocol,
                ws_max_size=LARGEST,
                lifespan="off",
                log_config=None,
                access_log=False,
                timeout_graceful_shutdown=2,
            )
        )

    async def serve(self) -> None:
        """Serve until stopped."""
        try:
            await self.server.serve()
        finally:
            self.drawer.shutdown(wait=False, cancel_futures=True)

    @property
    def port(self) -> int:
        """The port, once it listens."""
        found: int = self.server.servers[0].sockets[0].getsockname()[1]
        return found

    # -- plain HTTP

    async def health(self, _: Request) -> JSONResponse:
        return JSONResponse({"status": "healthy"})

    async def metadata(self, request: Request) -> JSONResponse:
        if why := self._refusal(request):
            return JSONResponse({"error": why}, 403)
        about = "Certified tool-use tasks, clean and perturbed."
        return JSONResponse({"name": "crosswind", "description": about, "version": __version__})

    async def schema(self, request: Request) -> JSONResponse:
        if why := self._refusal(request):
            return JSONResponse({"error": why}, 403)
        shown = {"type": "object", "properties": {"messages": {"type": "array"}, "tools": {"type": "array"}}}
        state = {"type": "object", "properties": {"episode_id": {"type": "string"}, "step_count": {"type": "integer"}}}
        return JSONResponse({"action": Action.model_json_schema(), "observation": shown, "state": state})

    # -- episodes

    async def connected(self, socket: WebSocket) -> None:
        if why := self._refusal(socket):
            await socket.close(1008, why[:120])
            return
        await socket.accept()
        if self.open >= self.most:
            await _send(socket, "error", _error("CAPACITY_REACHED", f"{self.most} sessions are open; come back later"))
            await socket.close(1013)
            return
        self.open += 1
        environment = Environment(self.ending, self.drawer)
        try:
            await self._converse(socket, environment)
        except (WebSocketDisconnect, RuntimeError):  # it left, also in the middle of an answer
            pass
        finally:
            self.open -= 1
            await environment.aclose()

    async def _converse(self, socket: WebSocket, environment: Environment) -> None:
        while True:
            try:
                received = await asyncio.wait_for(socket.receive(), self.idle)
            except TimeoutError:
                await _send(socket, "error", _error("SESSION_ERROR", f"no message for {self.idle:g} s; closing"))
                await socket.close(1001)
                return
            if received["type"] == "websocket.disconnect":
                return
            try:
                kind, data = _parsed(received)
                if kind == "close":
                    await socket.close()
                    return
                if kind == "state":
                    await _send(socket, "state", environment.state)
                    continue
                answered = await (environment.reset(data) if kind == "reset" else environment.step(data))
                await _send(socket, "observation", answered)
            except BadMessage as bad:
                await _send(socket, "error", _error(bad.code, str(bad)))
            except CrosswindError as error:
                await _send(socket, "error", _error("VALIDATION_ERROR", str(error)))
            except Crash as crash:  # ours: the episode is lost, the connection stays
                await environment.aclose()
                await _send(socket, "error", _error("EXECUTION_ERROR", f"the episode broke: {crash}"))

    def _refusal(self, connection: HTTPConnection) -> str:
        """Why a client may not come in; nothing if it may."""
        headers = connection.headers
        if self.token:
            kind, _, given = headers.get("authorization", "").partition(" ")
            given = given.strip() if kind.lower() == "bearer" else connection.query_params.get("token", "")
            return (
                "" if secrets.compare_digest(given.encode(), self.token.encode()) else "the token is missing or wrong"
            )
        if (name := headers.get("host", "").rpartition(":")[0].strip("[]")) not in LOOPBACK:
            return f"the Host header names {name[:60]!r}, not this machine"
        origin = headers.get("origin")
        if origin is not None and origin.rpartition(":")[0] not in {f"http://{name}" for name in LOOPBACK}:
            return "pages of other origins are not let in"
        return ""


def _parsed(received: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """What a message wants, and its data."""
    text = received.get("text")
    if text is None:
        raise BadMessage("INVALID_JSON", "expected JSON as text, got bytes")
    try:
        message = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise BadMessage("INVALID_JSON", f"not JSON: {str(error)[:100]}") from None
    if not isinstance(message, dict) or message.get("type") not in ("reset", "step", "state", "close"):
        raise BadMessage("UNKNOWN_TYPE", "expected an object with type reset, step, state or close")
    data = message.get("data", {})
    if not isinstance(data, dict):
        raise BadMessage("VALIDATION_ERROR", f"data is {type(data).__name__}; expected an object")
    return message["type"], data


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _error(code: str, text: str) -> dict[str, Any]:
    return {"code": code, "message": text[:2000]}


async def _send(socket: WebSocket, kind: str, data: dict[str, Any]) -> None:
    with suppress(WebSocketDisconnect):
        await socket.send_text(json.dumps({"type": kind, "data": data}, ensure_ascii=True))
