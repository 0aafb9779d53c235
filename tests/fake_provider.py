"""A provider that misbehaves on demand: an HTTP server on loopback, in a thread, that follows a plan.

Each request is answered by the next `Answer` of the plan, the last one over and over. `{auth}` in a body is replaced by
whatever the client sent to authenticate itself, as careless servers do in their errors, and `{sent}` by the path and
the credentials, as they came and decoded.
"""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any
from urllib.parse import unquote


@dataclass(frozen=True)
class Answer:
    """What is sent back, and how it goes wrong."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    kind: str = "application/json"
    stall: float | None = None  # seconds to wait after the first half of the body
    cut: bool = False  # close the connection after the first half


def completion(text: str = "", *calls: tuple[str, str], ids: tuple[str, ...] = ()) -> Answer:
    """A chat completion of OpenAI's shape; calls are (tool, arguments as text)."""
    made = [
        {"id": ids[i] if i < len(ids) else f"c{i}", "type": "function", "function": {"name": tool, "arguments": args}}
        for i, (tool, args) in enumerate(calls)
    ]
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if made:
        message["tool_calls"] = made
    return reply({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": USED})


USED = {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010}


def blocks(*content: dict[str, Any]) -> Answer:
    """A message of Anthropic's shape."""
    return reply({"type": "message", "content": list(content), "usage": {"input_tokens": 1000, "output_tokens": 10}})


def reply(data: Any, **more: Any) -> Answer:
    return Answer(json.dumps(data).encode(), **more)


def failing(status: int, text: str = "no, {auth}", **headers: str) -> Answer:
    """An error status whose text repeats the key."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return reply({"error": {"message": text, "type": "error"}}, status=status, headers=sent)


class FakeProvider:
    """The server; a context manager. `requests` are the bodies received, `auth` what came to authenticate."""

    def __init__(self, *plan: Answer) -> None:
        self.plan = list(plan)
        self.requests: list[dict[str, Any]] = []
        self.auth: list[str] = []
        self.paths: list[str] = []
        self.port = 0
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> FakeProvider:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        self._tasks: set[asyncio.Task[Any] | None] = set()
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, limit=2**26)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in self._tasks:
            if task:
                task.cancel()
        await asyncio.gather(*(t for t in self._tasks if t), return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.add(asyncio.current_task())
        try:
            while await self._exchange(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer; False when the connection is at its end."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        sent = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(sent.get("content-length", 0)))
        auth = sent.get("authorization", "") + sent.get("x-api-key", "")
        if head[0].startswith("GET"):
            answer = reply({"object": "list", "data": [{"id": "fake", "object": "model"}]})
        else:
            self.requests.append(json.loads(body))
            self.auth.append(auth)
            self.paths.append(head[0].split(" ")[1])
            answer = self.plan.pop(0) if len(self.plan) > 1 else self.plan[0]
        payload = answer.body.replace(b"{auth}", auth.encode()).replace(b"{sent}", _sent(head[0], auth).encode())
        lines = [f"HTTP/1.1 {answer.status} X", f"content-type: {answer.kind}", f"content-length: {len(payload)}"]
        lines += [f"{name}: {value}" for name, value in answer.headers.items()]
        half = len(payload) // 2
        writer.write("\r\n".join([*lines, "", ""]).encode() + payload[:half])
        await writer.drain()
        if answer.cut:
            return False
        if answer.stall is not None:
            await asyncio.sleep(answer.stall)
        writer.write(payload[half:])
        await writer.drain()
        return True


def _sent(line: str, auth: str) -> str:
    """The request line and the credentials, as they came and decoded."""
    word = auth.rpartition(" ")[2]
    plain = base64.b64decode(word).decode() if auth.startswith("Basic ") else ""
    return f"{line} {unquote(line)} {auth} {word} {plain} {plain.partition(':')[2]}"
