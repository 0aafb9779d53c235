"""Streamable HTTP for the clients of a proxy.

It listens on this machine alone and lets nobody in without the token.
A session of the older era begins with `initialize` and goes by its header; a client of the newer one has no session,
so its episode goes by the address: /mcp, or /mcp/NAME for one of its own. Clients leave without a word, so an episode
that nobody uses for a while ends; where all places are taken the one that was left alone longest ends before that.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import re
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import ClientDisconnect

from crosswind.base.errors import CrosswindError
from crosswind.mcp import wire
from crosswind.mcp.http_server import Answered, HttpRequest, LocalServer
from crosswind.mcp.plan import Plan
from crosswind.mcp.proxy import FAREWELL, IDLE, MISTAKE, SERVER_FAILED, Connection, Discretion, Journal, say, stopped
from crosswind.mcp.relay import PlanFailure
from crosswind.mcp.schema import record
from crosswind.mcp.wire import CANCELLED, SUBSCRIPTION_KEY, UPSTREAM_GONE, Message, WireError

SESSIONS = 32  # at a time
YIELDS = 30.0  # seconds after which an episode that nobody uses makes room for another
START = 0.5  # seconds after which a server that was started and still runs is taken to stay
BACKLOG = 1000  # messages that wait for a client to ask for them
WAITING = wire.LIMIT  # bytes of messages that wait for the clients of an episode, and as many that none asked for yet
READING = 5.0  # seconds for a client to read something of them, before the one with the most is cut off
_PATH = re.compile(r"/mcp(?:/([A-Za-z0-9_.-]{1,64}))?/?")


class Waiting:
    """What waits for the clients of an episode, in bytes."""

    def __init__(self) -> None:
        self.held = 0
        self.read = asyncio.Event()


class Outgoing(asyncio.Queue[Message | None]):
    """What is on the way to a client."""

    def __init__(self, waiting: Waiting) -> None:
        super().__init__()
        self.waiting, self.held = waiting, 0
        self.cut = asyncio.Event()
        self._sizes: deque[int] = deque()

    def add(self, message: Message, size: int = 0) -> None:
        """Put a message of some size; after the client is cut off nothing is kept."""
        if not self.cut.is_set():
            self._count(size)
            self._sizes.append(size)
            self.put_nowait(message)

    async def get(self) -> Message | None:
        message = await super().get()
        if message is not None:
            self._count(-self._sizes.popleft())
            self.waiting.read.set()
        return message

    def cut_off(self) -> None:
        """Keep nothing for this client any more."""
        self.cut.set()
        while not self.empty():
            self.get_nowait()
        self._count(-sum(self._sizes))
        self._sizes.clear()
        self.put_nowait(None)

    def _count(self, size: int) -> None:
        self.held += size
        self.waiting.held += size

    async def through(self, work: Coroutine[Any, Any, None]) -> None:
        """Write what comes to the client. Raises `ClientDisconnect` once it is cut off."""
        tasks = [asyncio.ensure_future(work), asyncio.ensure_future(self.cut.wait())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if not tasks[0].done():
                raise ClientDisconnect
            tasks[0].result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@dataclass(slots=True)
class Stream:
    """A request of a client that is not answered yet, with what is on the way to it."""

    id: Any  # as the client has it
    out: Outgoing
    token: Any = None  # the client's for progress


class NoRoom(WireError):
    """All places for episodes are taken."""


class ClientEpisode:
    """One client's session: a connection to the server, and the streams on which its messages go back."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.opened: asyncio.Future[None] | None = None
        self.streams: dict[str, Stream] = {}
        self.outboxes: list[Outgoing] = []  # that clients read from
        self.waiting = Waiting()
        self.listening: Outgoing | None = None
        self.backlog: deque[tuple[Message, int]] = deque()
        self._sending = asyncio.Lock()  # in order
        self._count = 0
        self._used = time.monotonic()
        self._users: list[asyncio.Task[None]] = []  # each done when its client has left

    @contextlib.asynccontextmanager
    async def in_use(
        self, request: HttpRequest, out: asyncio.Queue[Message | None] | None = None
    ) -> AsyncIterator[None]:
        """While a client waits for something; `out` gets None if it leaves."""
        async with request.leaving(out) as left:
            self._users.append(left)
            try:
                yield
            finally:
                self._users.remove(left)
                self._used = time.monotonic()

    @property
    def idle(self) -> float:
        """Seconds since a client used it; a request whose client is gone is no use."""
        if self.opened is None or not self.opened.done() or any(not left.done() for left in self._users):
            return 0.0
        return time.monotonic() - self._used

    async def open(self) -> None:
        """Start the server, once."""
        if self.opened is None:
            self.opened = asyncio.ensure_future(self.connection.open(self))
        self._used = time.monotonic()
        await asyncio.shield(self.opened)

    def begin(self, message: Message) -> tuple[str, Stream]:
        """Give a request an id of ours: clients without sessions share a connection, and all of them count from 1."""
        self._count += 1
        key = f"h{self._count}"
        stream = Stream(message["id"], Outgoing(self.waiting))
        message["id"] = key
        meta = record(record(message.get("params")).get("_meta"))
        if "progressToken" in meta:
            stream.token, meta["progressToken"] = meta["progressToken"], key
        self.streams[key] = stream
        return key, stream

    async def notify(self, message: Message) -> None:
        """Hand on a message that is not answered."""
        params: Any = message.get("params")
        key: Any = None
        if message.get("method") == CANCELLED and isinstance(params, dict):
            id = params.get("requestId")
            found = (k for k, s in reversed(self.streams.items()) if s.id == id and type(s.id) is type(id))
            key = params["requestId"] = next(found, id)
        await self.connection.relay.from_client(wire.dump(message))
        if isinstance(key, str) and (stream := self.streams.pop(key, None)) is not None:
            stream.out.put_nowait(None)  # no answer will come

    async def send(self, frame: bytes, message: Message) -> None:
        """Put a message for the client on the stream where it belongs, as soon as there is room.

        A client that does not read is cut off to make room.
        """
        async with self._sending:
            await self._room(len(frame))
            self._put(message, len(frame))

    def _put(self, message: Message, size: int) -> None:
        if "method" not in message:
            stream = self.streams.pop(str(message["id"]), None)
            if stream is not None:
                stream.out.add({**message, "id": stream.id}, size)
                stream.out.put_nowait(None)
            return
        params = record(message.get("params"))
        if (stream := self.streams.get(str(params.get("progressToken")))) is not None:
            stream.out.add({**message, "params": {**params, "progressToken": stream.token}}, size)
            return
        meta = record(params.get("_meta"))
        if (stream := self.streams.get(str(meta.get(SUBSCRIPTION_KEY)))) is not None:
            meta = {**meta, SUBSCRIPTION_KEY: stream.id}
            stream.out.add({**message, "params": {**params, "_meta": meta}}, size)
            return
        if self.listening is not None:
            self.listening.add(message, size)
        elif self.streams:
            next(reversed(self.streams.values())).out.add(message, size)
        else:
            self.backlog.append((message, size))
            while len(self.backlog) > BACKLOG or (
                len(self.backlog) > 1 and sum(size for _, size in self.backlog) > WAITING
            ):
                self.backlog.popleft()

    async def _room(self, size: int) -> None:
        """Wait for the clients to read; the one for whom most is held is cut off where they do not."""
        end = asyncio.get_running_loop().time() + READING
        while self.outboxes and self.waiting.held and self.waiting.held + size > WAITING:
            self.waiting.read.clear()
            try:
                async with asyncio.timeout_at(end):
                    await self.waiting.read.wait()
            except TimeoutError:
                max(self.outboxes, key=lambda out: out.held).cut_off()

    @contextlib.contextmanager
    def kept(self, out: Outgoing) -> Iterator[None]:
        """While a client may read from this; what it leaves goes with it."""
        self.outboxes.append(out)
        try:
            yield
        finally:
            self.outboxes.remove(out)
            out.cut_off()

    async def over(self, why: str) -> None:
        """The server is gone: nobody is left waiting."""
        for stream in self.streams.values():
            stream.out.add(wire.failure(stream.id, UPSTREAM_GONE, why))
            stream.out.put_nowait(None)
        self.streams.clear()
        if self.listening is not None:
            self.listening.put_nowait(None)


class HttpFront(LocalServer):
    """Clients over HTTP, each session with a server of its own."""

    limit = wire.LIMIT

    def __init__(
        self,
        connect: Callable[[], Connection],
        token: str,
        say: Callable[[str], None],
        *,
        idle: float = IDLE,
        yields: float = YIELDS,
    ) -> None:
        super().__init__()
        self.connect, self.token, self.say = connect, token, say
        self.idle, self.yields = idle, min(idle, yields)
        self.episodes: dict[str, ClientEpisode] = {}
        self.failed = 0  # sessions that ended because their server did
        self.ready: ClientEpisode | None = None  # whose server runs, and whose client is still to come
        self._ending: set[asyncio.Task[None]] = set()  # episodes that are on their way out

    async def start(self, port: int = 0) -> None:
        """Start a server for the first client and listen; port 0 takes one that is free.

        Clients limit how long they wait for an answer, and a server may take longer to start. The first client, with a
        session or without, finds it running. Raises `WireError` where it cannot be started.
        """
        await self._make_ready()
        await super().start(port)
        self.keep(asyncio.create_task(self._end_idle()))

    async def _end_idle(self) -> None:
        """End episodes that nobody uses any more."""
        while True:
            await asyncio.sleep(min(self.idle / 4, 15.0))
            for key, episode in list(self.episodes.items()):
                if episode.idle >= self.idle:
                    self._let_go(key, f"nobody used a session for {self.idle:g} seconds")

    def _let_go(self, key: str, why: str) -> None:
        """End an episode that its client has left, and let nobody wait for that."""
        self.say(f"{why}; it is ended")
        self._part(self.episodes.pop(key), failed=False)

    async def aclose(self) -> None:
        """End all sessions."""
        await super().aclose()
        for key in list(self.episodes):
            self._part(self.episodes.pop(key), failed=False)
        await asyncio.gather(*self._ending)
        if self.ready is not None:
            await self.ready.connection.close()

    async def _make_ready(self) -> None:
        """Start a server that nobody has asked for yet. It is asked nothing: the first message settles the era."""
        episode = ClientEpisode(self.connect())
        await episode.open()
        connection = episode.connection
        if not isinstance(connection.target, str):  # one behind a URL runs already
            await asyncio.wait({connection.reading}, timeout=START)
        if connection.link.ended:
            await connection.close()
            raise WireError(connection.link.ended)
        self.ready = episode

    def _taken(self) -> ClientEpisode:
        """An episode for a client: the one that is ready and still runs, else a new one."""
        ready, self.ready = self.ready, None
        if ready is not None and not ready.connection.reading.done():
            ready.connection.began = time.monotonic()
            return ready
        return ClientEpisode(self.connect())

    async def _end(self, key: str, *, failed: bool) -> None:
        """End an episode. Anyone who waits for that may be cancelled; it is not."""
        if (episode := self.episodes.pop(key, None)) is not None:
            await asyncio.shield(self._part(episode, failed=failed))

    def _part(self, episode: ClientEpisode, *, failed: bool) -> asyncio.Task[None]:
        """Have an episode closed and recorded."""

        async def close() -> None:
            connection = episode.connection
            if episode.opened is None:
                return
            with contextlib.suppress(WireError):
                await episode.opened
            if connection.channel is None:  # its server could not be started
                return
            if failed:
                self.failed += 1
                self.say(connection.link.ended)
            await connection.close(failed=failed)
            await episode.over(connection.link.ended or "the session is over")

        task = asyncio.create_task(close())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task

    def admitted(self, request: HttpRequest) -> str:
        """The name of an episode in the address."""
        if not request.bearer or not hmac.compare_digest(request.bearer.encode(), self.token.encode()):
            raise Answered(401, "send the token of this proxy: Authorization: Bearer TOKEN")
        path = _PATH.fullmatch(request.scope["path"])
        if path is None:
            raise Answered(404, "the address is /mcp, or /mcp/NAME for an episode of its own")
        return path[1] or ""

    async def respond(self, request: HttpRequest, message: Message | None) -> None:
        name, session = self.admitted(request), request.headers.get("mcp-session-id")
        if message is not None:
            await self._post(request, message, name, session)
            return
        if session is None:
            raise Answered(405, "only a session has a stream or an end; it begins with initialize")
        episode = self.episodes.get(session)
        if episode is None:
            raise Answered(404, "no such session; it has ended")
        if request.method == "DELETE":
            await self._end(session, failed=False)
            await request.answer(200)
        else:
            await self._listen(episode, request)

    async def _post(self, request: HttpRequest, message: Message, name: str, session: str | None) -> None:
        headers: dict[str, str] = {}
        if session is None and message.get("method") == "initialize":
            session = secrets.token_urlsafe(18)
            headers = {"Mcp-Session-Id": session}
        elif session is not None and session not in self.episodes:
            raise Answered(404, "no such session; it has ended")
        try:
            episode = await self._episode(session or f"/{name}")
        except WireError as error:
            self.say(str(error))
            status = 503 if isinstance(error, NoRoom) else 200
            await request.answer(status, wire.failure(message.get("id"), UPSTREAM_GONE, str(error)))
            return
        if "method" in message and "id" in message:
            await self._hand_on(episode, request, message, headers, lasting=session is not None)
            return
        async with episode.in_use(request):
            await episode.notify(message)
            await request.answer(202)

    async def _hand_on(
        self, episode: ClientEpisode, request: HttpRequest, message: Message, headers: dict[str, str], *, lasting: bool
    ) -> None:
        """Hand a request to the episode's server, and its answer back; a broken line ends no `lasting` one."""
        key, stream = episode.begin(message)
        relay = episode.connection.relay
        try:
            with episode.kept(stream.out):
                async with episode.in_use(request, None if lasting else stream.out):
                    await relay.from_client(wire.dump(message))
                    first = await stream.out.get()
                    if first is not None and "method" not in first:  # the answer, and all there is to say
                        await stream.out.through(request.answer(200, first, headers))
                    else:  # a stream that ends with it
                        if first is None:  # another message cancelled the request: nothing is to come
                            stream.out.put_nowait(None)
                        await stream.out.through(request.events(stream.out, headers, first=first))
        finally:
            if episode.streams.pop(key, None) is not None and not lasting:
                cancelled = wire.notification(CANCELLED, {"requestId": key})
                await asyncio.shield(relay.from_client(wire.dump(cancelled)))

    async def _episode(self, key: str) -> ClientEpisode:
        episode = self.episodes.get(key)
        if episode is None:
            if len(self.episodes) >= SESSIONS:
                self._make_room()
            episode = self.episodes[key] = self._taken()
        try:
            await episode.open()
        except WireError:
            self.episodes.pop(key, None)
            raise
        if episode.connection.watch is None:
            episode.connection.watch = self._watch(key, episode)
        return episode

    def _make_room(self) -> None:
        """End the episode that was left alone longest. Raises `NoRoom` where all are in use."""
        key = max(self.episodes, key=lambda key: self.episodes[key].idle)
        seconds = self.episodes[key].idle
        if seconds < self.yields:
            raise NoRoom(f"{SESSIONS} sessions are open and in use; end one of them, or try again later")
        self._let_go(key, f"{SESSIONS} sessions are open, and nobody used one for {seconds:.0f} seconds")

    def _watch(self, key: str, episode: ClientEpisode) -> asyncio.Task[None]:
        async def watch() -> None:
            await asyncio.wait({episode.connection.reading})
            if self.episodes.get(key) is episode:
                await self._end(key, failed=True)

        task = asyncio.create_task(watch())
        self.keep(task)
        return task

    async def _listen(self, episode: ClientEpisode, request: HttpRequest) -> None:
        """The stream of a session: what the server says of its own accord."""
        out = Outgoing(episode.waiting)
        while episode.backlog:
            out.add(*episode.backlog.popleft())
        before, episode.listening = episode.listening, out
        if before is not None:
            before.put_nowait(None)
        try:
            with episode.kept(out):
                async with episode.in_use(request, out):
                    await out.through(request.events(out))
        finally:
            if episode.listening is out:
                episode.listening = None


# ---------------------------------------------------------------- the proxy over HTTP


async def serve_http(
    target: Sequence[str] | str,
    plan: Plan,
    journal: Journal | None,
    *,
    port: int,
    token: str = "",
    idle: float = IDLE,
) -> int:
    """Let clients come over HTTP on this machine until we are asked to end. Gives the exit code."""
    stop, number = stopped()
    secret = token or secrets.token_urlsafe(24)
    failure, tell = PlanFailure(), Discretion(target).say
    front = HttpFront(lambda: Connection(target, plan, journal, tell, failure), secret, tell, idle=idle)
    try:
        await front.start(port)
    except WireError as error:
        tell(str(error))
        return SERVER_FAILED
    except OSError as error:
        raise CrosswindError(f"cannot listen on port {port}: {error.strerror or error}") from None
    say(f"listening on http://127.0.0.1:{front.port}/mcp")
    if not token:
        say(f"clients send the header Authorization: Bearer {secret}")
    events = [asyncio.create_task(event.wait()) for event in (stop, failure.told)]
    await asyncio.wait(events, return_when=asyncio.FIRST_COMPLETED)
    if failure.why:
        await asyncio.sleep(FAREWELL)
    for event in events:
        event.cancel()
    await front.aclose()
    if failure.why:
        tell(failure.why)
        return MISTAKE
    if front.failed:
        return SERVER_FAILED
    return 128 + number[0]
