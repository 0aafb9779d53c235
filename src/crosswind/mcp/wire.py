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
import re
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
UPSTREAM_GONE = -32000  # the server behind a proxy is gone, or its answer cannot be read
HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")  # revisions that begin with `initialize`
MODERN = "2026-07-28"  # the first that does not: each request says its revision
META = "io.modelcontextprotocol/"  # before the protocol's own keys of `_meta`
VERSION_KEY, SUBSCRIPTION_KEY, CLIENT_KEY = f"{META}protocolVersion", f"{META}subscriptionId", f"{META}clientInfo"
LISTEN, ACKNOWLEDGED = "subscriptions/listen", "notifications/subscriptions/acknowledged"
STREAM, JSON = "text/event-stream", "application/json"  # types of content over HTTP
LIST_CHANGED, CANCELLED = "notifications/tools/list_changed", "notifications/cancelled"
INITIALIZED = "notifications/initialized"  # the client is ready
LOST = {"crosswind": "no answer of the server's"}  # data of failures that we report in its place
EDGE = 2**11  # bytes at either end of an unreadable frame that are searched for its id
_SCALAR = rb"""("(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]{0,40}|true|false|null)"""
_MEMBER = re.compile(rb"""\s*"(\w+)"\s*:\s*""" + _SCALAR + rb"?", re.ASCII | re.DOTALL)
_MORE = re.compile(rb"\s*[,}]")
_TAIL = re.compile(rb"""(?:[,{]\s*"\w+"\s*:\s*""" + _SCALAR + rb"""\s*)+\}\s*\Z""", re.ASCII | re.DOTALL)

Message = dict[str, Any]


class WireError(InfrastructureError):
    """The other side broke the connection or the framing."""


class BadFrame(WireError):
    """A frame that is not a message; the next one may be. `code` is what JSON-RPC calls it.

    `beyond` says that it may be valid JSON which this parser cannot hold: too deep, or an integer of too many digits.
    """

    def __init__(self, text: str, code: int = PARSE_ERROR, *, beyond: bool = False) -> None:
        super().__init__(text)
        self.code, self.beyond = code, beyond


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
    except RecursionError:
        raise BadFrame("JSON that nests too deeply to be read", beyond=True) from None
    except ValueError as error:
        if "integer string conversion" in str(error):
            raise BadFrame(f"a number of more than {sys.get_int_max_str_digits()} digits", beyond=True) from None
        raise BadFrame(f"not JSON: {str(error)[:120]}") from None
    if not isinstance(message, dict):
        what = "a batch, which no revision in use has" if isinstance(message, list) else type(message).__name__
        raise BadFrame(f"expected a JSON-RPC message, got {what}", INVALID_REQUEST)
    if message.get("jsonrpc") != "2.0" or not (isinstance(message.get("method"), str) or _answers(message)):
        raise BadFrame("expected a JSON-RPC 2.0 request, notification or response", INVALID_REQUEST)
    id = message.get("id", 0)
    told = isinstance(id, (str, int)) or (isinstance(id, float) and math.isfinite(id))
    if isinstance(id, bool) or not (told or (id is None and "method" not in message)):
        raise BadFrame("the message id must be a string or a number", INVALID_REQUEST)
    return message


def instead(frame: bytes, bad: BadFrame) -> Message | None:
    """The failure to hand on for an answer that cannot be read, so that nobody waits for it.

    None if the frame is no answer: a notification, a request, noise. Raises `WireError` where the frame may answer any
    request, since its id is at neither end.
    """
    shown = _members_at_ends(frame)
    if "method" in shown or not shown.keys() & {"jsonrpc", "result", "error"}:
        return None
    id = shown.get("id")
    if isinstance(id, (str, int)) and not isinstance(id, bool):
        return lost(id, f"the server's answer cannot be read: {bad}")
    if bad.beyond:
        raise WireError(f"the server sent {bad}; which request it answers cannot be told")
    return None


def _members_at_ends(frame: bytes) -> dict[str, Any]:
    """Members of the object in a frame before its first object or list, with its name, and after the last one.

    Both ends are short, so that this takes no time whatever is between them.
    """
    if not frame.startswith(b"{"):
        return {}
    found: list[tuple[bytes, bytes | None]] = []
    head, at = frame[:EDGE], 1
    while (member := _MEMBER.match(head, at)) is not None:
        more = _MORE.match(head, member.end())
        found.append((member[1], member[2] if more else None))
        if more is None:
            break
        at = more.end()
    if (tail := _TAIL.search(frame[-EDGE:])) is not None:
        found += [(member[1], member[2]) for member in _MEMBER.finditer(tail[0], 1)]
    out: dict[str, Any] = {}
    for name, value in found:
        with contextlib.suppress(ValueError):
            out[name.decode()] = None if value is None else json.loads(value)
    return out


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


def lost(id: Any, text: str) -> Message:
    """The failure of a request whose answer never reached us; marked, so that it is not taken for the server's own."""
    return {"jsonrpc": "2.0", "id": id, "error": {"code": UPSTREAM_GONE, "message": text, "data": LOST}}


def why_lost(response: Message) -> str:
    """What `lost` said; empty for any other answer."""
    error = response.get("error")
    return str(error.get("message")) if isinstance(error, dict) and error.get("data") == LOST else ""


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
        return how if self._spoke else f"{how} before it sent a message"

    @property
    def never_ran(self) -> bool:
        """Did the process fail by itself before it sent a message?"""
        return not self._spoke and (self.process.returncode or 0) > 0

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
