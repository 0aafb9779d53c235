"""`crosswind proxy`: relays between clients and a server, over pipes or HTTP, and what they leave behind.

One client session is one episode. Its record stands in the run format; since there was no task, it has no verdict.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosswind import __version__
from crosswind.domain import JUDGE
from crosswind.errors import CrosswindError
from crosswind.mcp import wire
from crosswind.mcp.live import DOMAIN
from crosswind.mcp.relay import Plan, Relay
from crosswind.mcp.upstream import Link, open_channel
from crosswind.mcp.wire import BadFrame, Channel, Message, WireError
from crosswind.perturbation import dump_layers
from crosswind.play import step_data
from crosswind.record import CLEAN, Record, Usage, key_of, pair_of
from crosswind.store import Locked, Manifest, Store, now

CLOSED, SERVER_FAILED = 0, 3  # exit codes; 2 is a mistake in the command, 128 + n a signal
PATIENCE = 20.0  # seconds to wait for another proxy that is writing to the same folder

Say = Callable[[str], None]


def say(text: str) -> None:
    """A line on standard error, where clients show or keep what servers say."""
    print(f"crosswind: {text}", file=sys.stderr, flush=True)


# ---------------------------------------------------------------- the record


@dataclass(slots=True)
class Journal:
    """Where finished sessions are recorded, in the run format. Several proxies may write to one folder in turn."""

    folder: Path
    target: str  # the server, in words
    plan: Plan

    def _manifest(self) -> Manifest:
        recipe = self.plan.recipe
        stack = dump_layers(self.plan.stack) if self.plan.stack is not None else None
        return Manifest(
            created=now(),
            updated=now(),
            crosswind=__version__,
            judge=JUDGE,
            python=sys.version.split()[0],
            suite={
                "name": "proxy",
                "server": self.target,
                "recipe": recipe.model_dump(mode="json") if recipe else None,
                "stack": stack,
            },
            conditions=(self.condition,),
            seed=self.plan.seed,
            agent="a client of the proxy",
        )

    @property
    def condition(self) -> str:
        if not self.plan.perturbs:
            return CLEAN
        return (self.plan.recipe.name if self.plan.recipe else "") or "stack"

    def check(self) -> None:
        """See that the folder can be written to, before anything is started."""
        with self._open() as store:
            store.begin(self._manifest())

    def _open(self) -> Store:
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return Store(self.folder)
            except Locked:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def add(self, relay: Relay, seconds: float, why: str) -> None:
        """Record a session; one without a call of a tool is none."""
        session = relay.session
        if session is None or not session.steps:
            return
        with self._open() as store:
            manifest = store.begin(self._manifest())
            trial = len(store.resume(lambda _: None, keep_errors=True))
            store.append(self._record(relay, trial, seconds, why))
            store.sync()
            store.write(manifest, state="finished")

    def _record(self, relay: Relay, trial: int, seconds: float, why: str) -> Record:
        session = relay.session
        assert session is not None
        task = f"{DOMAIN}/{_word(self.target)}"
        return Record(
            key=key_of(task, self.condition, trial),
            pair=pair_of(task, trial),
            task_id=task,
            domain=DOMAIN,
            family="live",
            level=0,
            seed=self.plan.seed,
            trial=trial,
            condition=self.condition,
            severity=None,
            layers=tuple(dump_layers(session.layers)),
            agent=relay.client or "unknown",
            outcome="error" if why else "unjudged",
            ended="error" if why else "closed",
            refuse=False,
            query="",
            policy=relay.instructions,
            tools=tuple(_function(tool) for tool in relay.first_shown),
            steps=tuple(step_data(step) for step in session.steps),
            final="",
            why=why,
            receipts=session.receipts(),
            usage=Usage(requests=len(session.steps), seconds=round(seconds, 3)),
        )


def _word(target: str) -> str:
    """A server's name for keys: the last part of its command or address."""
    last = target.split()[0].rstrip("/").rsplit("/", 1)[-1] if target.split() else "server"
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in last) or "server"


def _function(tool: Message) -> dict[str, Any]:
    """A shown tool as records have them."""
    parameters = tool.get("inputSchema")
    return {
        "type": "function",
        "function": {"name": tool["name"], "description": tool.get("description", ""), "parameters": parameters},
    }


# ---------------------------------------------------------------- one connection


class Connection:
    """A relay with its server: opened for one client, closed with it, recorded at the end."""

    def __init__(self, target: Sequence[str] | str, plan: Plan, journal: Journal | None, tell: Say = say) -> None:
        self.target, self.plan, self.journal, self.tell = target, plan, journal, tell
        self.channel: Channel | None = None
        self.began = time.monotonic()
        self.watch: asyncio.Task[None] | None = None  # for the end of the server, where nobody waits for it

    async def open(self, front: Any) -> None:
        """Start the server. Raises `WireError` where it cannot be."""
        self.channel = await open_channel(self.target)
        self.link = Link(self.channel, self._from_server, self.tell)
        self.relay = Relay(front, self.link, self.plan, self.tell)
        self.reading = asyncio.create_task(self.link.run())

    async def _from_server(self, message: Message, frame: bytes) -> None:
        await self.relay.from_server(message, frame)

    async def close(self, *, failed: bool = False) -> None:
        """End the session: answer or drop what is under way, end the server, write the record."""
        if self.channel is None:
            return
        channel, self.channel = self.channel, None
        why = self.link.ended if failed else ""
        if failed:
            with contextlib.suppress(WireError):
                await self.relay.settle()
                await self.relay.gone()
        await self.relay.close()
        await channel.close()
        self.reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.reading
        if self.journal is not None:
            try:
                self.journal.add(self.relay, time.monotonic() - self.began, why)
            except CrosswindError as error:
                self.tell(f"the session could not be recorded: {error}")
        for receipt in self.relay.session.receipts() if self.relay.session else ():
            where = f"first met at step {receipt.step}" if receipt.fired else "never met"
            self.tell(f"{receipt.kind}: {where}")


# ---------------------------------------------------------------- over pipes


class PipeFront:
    """The client on our own standard input and output."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.broken = asyncio.Event()

    async def send(self, frame: bytes, _: Message) -> None:
        try:
            await self.channel.write(frame)
        except WireError:
            self.broken.set()


async def serve_pipes(target: Sequence[str] | str, plan: Plan, journal: Journal | None) -> int:
    """Stand between the client that started us and a server, until one of them ends. Gives the exit code."""
    stop, number = _stopped()
    try:
        pipes = await wire.own_pipes()
    except ValueError:
        raise CrosswindError("standard input and output must be pipes, as a client makes them") from None
    front, connection = PipeFront(pipes), Connection(target, plan, journal)
    try:
        await connection.open(front)
    except WireError as error:
        say(str(error))
        return SERVER_FAILED
    client = asyncio.create_task(_read_client(pipes, connection.relay))
    waits = {client, connection.reading, asyncio.create_task(stop.wait()), asyncio.create_task(front.broken.wait())}
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    failed = connection.reading.done() and not client.done() and not stop.is_set()
    if client.done() and not front.broken.is_set():  # it has said all it wants to say; what it asked is still answered
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(connection.relay.drain(), wire.GRACE)
    for task in waits - {connection.reading}:
        task.cancel()
    await asyncio.gather(*(waits - {connection.reading}), return_exceptions=True)
    await connection.close(failed=failed)
    await pipes.close()
    if failed:
        say(connection.link.ended)
        return SERVER_FAILED
    return 128 + number[0] if number else CLOSED


async def _read_client(pipes: Channel, relay: Relay) -> None:
    """Hand on what the client sends, until it sends no more."""
    while True:
        try:
            frame = await pipes.read()
        except BadFrame as bad:
            message = wire.failure(None, bad.code, str(bad))
            await relay.front.send(wire.dump(message), message)
            continue
        if frame is None:
            return
        await relay.from_client(frame)


async def serve_http(
    target: Sequence[str] | str, plan: Plan, journal: Journal | None, *, port: int, token: str = ""
) -> int:
    """Let clients come over HTTP on this machine until we are asked to end. Gives the exit code."""
    from crosswind.mcp.http import HttpFront

    stop, number = _stopped()
    secret = token or secrets.token_urlsafe(24)
    front = HttpFront(lambda: Connection(target, plan, journal), secret, say)
    try:
        await front.start(port)
    except WireError as error:
        say(str(error))
        return SERVER_FAILED
    except OSError as error:
        raise CrosswindError(f"cannot listen on port {port}: {error.strerror or error}") from None
    say(f"listening on http://127.0.0.1:{front.port}/mcp")
    if not token:
        say(f"clients send the header Authorization: Bearer {secret}")
    await stop.wait()
    await front.close()
    if front.failed:
        return SERVER_FAILED
    return CLOSED if number[0] == signal.SIGINT else 128 + number[0]


def _stopped() -> tuple[asyncio.Event, list[int]]:
    """An event that is set when we are asked to end, and by which signal."""
    event, number = asyncio.Event(), list[int]()

    def ask(by: int) -> None:
        number.append(by)
        event.set()

    loop = asyncio.get_running_loop()
    for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(one, ask, int(one))
    return event, number
