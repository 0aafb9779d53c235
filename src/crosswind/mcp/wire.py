"""Frames of the model context protocol: JSON-RPC messages, one on a line, over pipes.

A channel carries frames as bytes and looks into none of them, so it serves every revision of the protocol. Frames are
bounded in size, processes end with their group, and anyone who reads learns why there is no more to read.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import selectors
import shutil
import signal
import stat
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Protocol

from crosswind.base.errors import CrosswindError, InfrastructureError
from crosswind.base.process_guard import ProcessGuard

LIMIT = 16 * 2**20  # bytes of one frame
BODY = 4 * 2**20  # bytes of one frame, and of a body over HTTP, where an episode is served
CHUNK = 2**16
ENDING = 0.5  # seconds for a process that reads no more to end, so that it can be said how
GRACE = 2.0  # seconds that a process has to end after its input did, and again after it was asked to
GUARD = ProcessGuard(0.3)  # kills servers if this process is killed; seconds they have to see the end of their input
PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
UPSTREAM_GONE = -32000  # the server behind a proxy is not there any more
HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")  # revisions that begin with `initialize`
MODERN = "2026-07-28"  # the first that does not: each request says its revision
META = "io.modelcontextprotocol/"  # before the protocol's own keys of `_meta`
VERSION_KEY, SUBSCRIPTION_KEY, CLIENT_KEY = f"{META}protocolVersion", f"{META}subscriptionId", f"{META}clientInfo"
LISTEN, ACKNOWLEDGED = "subscriptions/listen", "notifications/subscriptions/acknowledged"
STREAM, JSON = "text/event-stream", "application/json"  # types of content over HTTP
LIST_CHANGED, CANCELLED = "notifications/tools/list_changed", "notifications/cancelled"
INITIALIZED = "notifications/initialized"  # the client is ready

Message = dict[str, Any]


class WireError(InfrastructureError):
    """The other side broke the connection or the framing."""


class BadFrame(WireError):
    """A frame that is not a message; the next one may be. `code` is what JSON-RPC calls it."""

    def __init__(self, text: str, code: int = PARSE_ERROR) -> None:
        super().__init__(text)
        self.code = code


class Channel(Protocol):
    """Frames in both directions. `read` gives None at the end and raises `BadFrame` for a frame that is none."""

    async def read(self) -> bytes | None: ...
    async def write(self, frame: bytes) -> None: ...
    async def close(self) -> None: ...


# ---------------------------------------------------------------- messages


def parse(frame: bytes, *, lenient: bool = False) -> Message:
    """The message in a frame. Raises `BadFrame` where there is none; NaN and infinities pass if `lenient`."""
    try:
        message = json.loads(frame, parse_constant=None if lenient else _no_constant)
    except (ValueError, RecursionError) as error:
        raise BadFrame(f"not JSON: {str(error)[:120]}") from None
    if not isinstance(message, dict):
        what = "a batch, which no revision in use has" if isinstance(message, list) else type(message).__name__
        raise BadFrame(f"expected a JSON-RPC message, got {what}", INVALID_REQUEST)
    if message.get("jsonrpc") != "2.0" or not (isinstance(message.get("method"), str) or _answers(message)):
        raise BadFrame("expected a JSON-RPC 2.0 request, notification or response", INVALID_REQUEST)
    id = message.get("id", 0)
    told = isinstance(id, (str, int)) or (isinstance(id, float) and math.isfinite(id))
    if isinstance(id, bool) or not (told or (id is None and "method" not in message)):
        raise BadFrame("the id of a message is a text or a number", INVALID_REQUEST)
    return message


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no value of JSON")


def _answers(message: Message) -> bool:
    return "method" not in message and "id" in message and ("result" in message) is not ("error" in message)


def dump(message: Mapping[str, Any]) -> bytes:
    """A message as a frame: one line, without the end of it. Raises `BadFrame` for numbers that JSON does not have."""
    try:
        return json.dumps(message, ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode()
    except ValueError:
        raise BadFrame("not JSON: it holds NaN or an infinite number") from None


def request(id: str | int, method: str, params: Mapping[str, Any] | None = None) -> Message:
    """A request."""
    return {"jsonrpc": "2.0", "id": id, "method": method, **({} if params is None else {"params": dict(params)})}


def notification(method: str, params: Mapping[str, Any] | None = None) -> Message:
    """A message that is not answered."""
    return {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": dict(params)})}


def result(id: Any, value: Mapping[str, Any]) -> Message:
    """The answer to a request."""
    return {"jsonrpc": "2.0", "id": id, "result": dict(value)}


def failure(id: Any, code: int, text: str) -> Message:
    """The answer to a request that failed as a request."""
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}}


# ---------------------------------------------------------------- lines


class Lines:
    """A channel of lines over two streams."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, limit: int = LIMIT) -> None:
        self.reader, self.writer, self.limit = reader, writer, limit
        self._buffer = bytearray()
        self._looked = 0  # bytes of the buffer that hold no end of a line
        self._ended = False
        self._over = False  # in a line that is too long, and was complained of

    async def read(self) -> bytes | None:
        if self._over:
            await self._skip()
        while True:
            at = self._buffer.find(b"\n", self._looked)
            if at >= 0:
                line = bytes(self._buffer[:at]).strip()
                del self._buffer[: at + 1]
                self._looked = 0
                if len(line) > self.limit:
                    raise self._too_long()
                if line:
                    return line
                continue
            if len(self._buffer) > self.limit:  # said at once: anyone who sends it may never end it
                self._over = True
                raise self._too_long()
            self._looked = len(self._buffer)
            if self._ended:
                return None  # half a line at the end is nobody's message
            if not await self._more():
                self._ended = True

    async def _more(self) -> bool:
        try:
            data = await self.reader.read(CHUNK)
        except (ConnectionError, OSError):
            data = b""
        self._buffer += data
        return bool(data)

    async def _skip(self) -> None:
        """Forget a line that is too long, to its end."""
        while True:
            at = self._buffer.find(b"\n")
            if at >= 0:
                del self._buffer[: at + 1]
                break
            self._buffer.clear()
            if not await self._more():
                self._ended = True
                break
        self._looked, self._over = 0, False

    def _too_long(self) -> BadFrame:
        return BadFrame(f"a frame of more than {self.limit} bytes", INVALID_REQUEST)

    async def write(self, frame: bytes) -> None:
        try:
            self.writer.write(frame + b"\n")
            await self.writer.drain()
        except (ConnectionError, OSError, RuntimeError) as error:
            raise WireError(f"the other side does not read any more ({type(error).__name__})") from None

    async def close(self) -> None:
        with contextlib.suppress(ConnectionError, OSError, RuntimeError):
            self.writer.close()


async def own_pipes() -> Lines:
    """The channel over this process's own standard input and output. Raises `CrosswindError` if these are not pipes."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=CHUNK)
    try:
        if _silent(sys.stdin.fileno()):
            reader.feed_eof()
        else:
            await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        out = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
        transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, out)
    except ValueError:
        raise CrosswindError(
            "stdin and stdout must be pipes. Let your MCP client start this command, or use --http"
        ) from None
    return Lines(reader, asyncio.StreamWriter(transport, protocol, None, loop))


def _silent(descriptor: int) -> bool:
    """Is it a device that cannot be waited for, such as /dev/null? Then nothing will ever come from it."""
    if not stat.S_ISCHR(os.fstat(descriptor).st_mode):
        return False
    with selectors.DefaultSelector() as selector:
        try:
            selector.register(descriptor, selectors.EVENT_READ)
        except OSError:
            return True
    return False


def signal_group(group: int, number: int) -> bool:
    """Send a signal to a process group; is there one that it could be sent to?"""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


class Child:
    """A process that speaks on its standard input and output, in a group of its own, and ends with this channel."""

    def __init__(self, process: asyncio.subprocess.Process, lines: Lines) -> None:
        self.process, self.lines = process, lines
        self._closing: asyncio.Task[None] | None = None
        self._spoke = False  # has it written anything?

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stderr: IO[bytes] | None = None,
    ) -> Child:
        """Start a command. Its standard error is ours unless given. Raises `WireError` where it cannot be started."""
        if not command:
            raise WireError("no command was given")
        if shutil.which(command[0], path=(env or os.environ).get("PATH")) is None:
            raise WireError(f"cannot start {command[0]!r}: no such command; is it installed, and on the PATH?")
        try:
            GUARD.start()
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=stderr,
                cwd=cwd,
                env=None if env is None else dict(env),
                limit=CHUNK,
                start_new_session=True,
            )
        except OSError as error:
            raise WireError(f"cannot start {command[0]!r}: {error.strerror}") from None
        GUARD.watch(process.pid)
        assert process.stdin
        assert process.stdout
        return cls(process, Lines(process.stdout, process.stdin))

    async def read(self) -> bytes | None:
        frame = await self.lines.read()
        self._spoke = self._spoke or frame is not None
        return frame

    async def write(self, frame: bytes) -> None:
        try:
            await self.lines.write(frame)
        except WireError:
            if not await self.wait(ENDING):
                raise
            raise WireError(f"the server {self.ended}") from None

    @property
    def ended(self) -> str:
        """How the process ended, in words; empty while it runs."""
        code = self.process.returncode
        if code is None:
            return ""
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return how if self._spoke else f"{how} before it said anything"

    async def wait(self, seconds: float) -> bool:
        """Wait for the process to end by itself; has it?"""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.process.wait(), seconds)
        return self.process.returncode is not None

    async def close(self) -> None:
        """End the process: by the end of its input, else by asking, else by force; and whatever it started."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        await self.lines.close()
        if not await self.wait(GRACE):
            signal_group(self.process.pid, signal.SIGTERM)
            await self.wait(GRACE)
        signal_group(self.process.pid, signal.SIGKILL)  # the group may outlive its leader
        GUARD.forget(self.process.pid)
        await self.process.wait()
        transport = getattr(self.process, "_transport", None)
        if transport is not None:  # else its pipes are closed when the loop is gone, with a warning
            transport.close()
