"""`crosswind proxy`: relays between clients and a server, over pipes or HTTP, and what they leave behind.

One client session is one episode. Its record is in the run format; since there was no task, it has no verdict.
It is written when the session ends; until then `proxy_sessions.py` keeps its data, should this process be killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosswind.base.errors import CrosswindError
from crosswind.base.version import __version__
from crosswind.core.domain import JUDGE
from crosswind.core.perturbation import Layers, dump_layers
from crosswind.core.session import OpenCall, Session
from crosswind.core.types import Receipt, Step, ToolError, ToolResult
from crosswind.episodes.brief import Told
from crosswind.episodes.play import clip, plain, step_data
from crosswind.episodes.record import Record
from crosswind.episodes.suite import CLEAN
from crosswind.mcp import live, wire
from crosswind.mcp.live import DOMAIN
from crosswind.mcp.plan import Plan
from crosswind.mcp.relay import UNANSWERED, PlanFailure, Relay
from crosswind.mcp.upstream import ServerLink, open_channel
from crosswind.mcp.wire import BadFrame, Channel, Message, WireError
from crosswind.models.redact import Secrets, environment, passwords, shown_command, strip_credentials
from crosswind.runs import proxy_sessions
from crosswind.runs.proxy_sessions import Interrupted, SessionHead, SessionLog
from crosswind.runs.store import Locked, Manifest, Store, now

CLOSED, MISTAKE, SERVER_FAILED = 0, 2, 3  # exit codes; 128 + n: ended by a signal
FAREWELL = 0.3  # seconds for the last answer to be written, before we end on our own account
IDLE = 1800.0  # seconds after which a session over HTTP that nobody uses ends
SYNC = 5.0  # seconds until what was noted of a session is put on the disk
PATIENCE = 20.0  # seconds to wait for another proxy that is writing to the same folder

Say = Callable[[str], None]


def say(text: str) -> None:
    """A line on standard error, where clients show or keep what servers say."""
    print(f"crosswind: {text}", file=sys.stderr, flush=True)


class Discretion:
    """How a server is named, and what must not be repeated of what was given for it and is in our environment.

    The frames between client and server stay as they are. Whatever we say, and whatever we write, goes through here.
    """

    def __init__(self, target: Sequence[str] | str) -> None:
        if isinstance(target, str):
            self.server, given = strip_credentials(target), passwords(target)
        else:
            self.server, given = shown_command(target)
        self.secrets = Secrets(*given, *environment())

    def say(self, text: str) -> None:
        """A line on standard error without secrets."""
        say(self.secrets.out_of(text))


# ---------------------------------------------------------------- the record


@dataclass(slots=True)
class Journal:
    """Where finished sessions are recorded, in the run format. Several proxies may write to one folder in turn."""

    folder: Path
    server: Discretion
    plan: Plan

    def step(self, step: Step) -> dict[str, Any]:
        """A step as it is written."""
        data: dict[str, Any] = self.server.secrets.within(step_data(step))
        return data

    def _manifest(self) -> Manifest:
        recipe = self.plan.recipe
        stack = dump_layers(self.plan.stack) if self.plan.stack is not None else None
        stream = self.plan.stream.plan if self.plan.stream is not None else None
        return Manifest(
            created=now(),
            updated=now(),
            crosswind=__version__,
            judge=JUDGE,
            python=sys.version.split()[0],
            suite={
                "name": "proxy",
                "server": self.server.server,
                "recipe": recipe.model_dump(mode="json") if recipe else None,
                "stack": stack,
                **({"stream": stream.model_dump(mode="json")} if stream else {}),
            },
            conditions=stream.conditions(frozen=False) if stream else (self.condition,),
            seed=self.plan.seed,
            agent="a client of the proxy",
        )

    @property
    def condition(self) -> str:
        if not self.plan.perturbs:
            return CLEAN
        return (self.plan.recipe.name if self.plan.recipe else "") or "stack"

    def laid(self, layers: Layers) -> str:
        """The condition of a session, by what lies over its server."""
        recipe = self.plan.recipe
        return live.condition(recipe, layers) if recipe is not None and recipe.name else self.condition

    def check(self) -> None:
        """See that the folder can be written to, before anything is started; record what killed proxies left there."""
        with self._open() as store:
            store.begin(self._manifest())
            problems: list[str] = []
            if found := proxy_sessions.interrupted_sessions(self.folder, problems):
                self._recover(store, found)
        for problem in problems:
            self.server.say(problem)

    def _open(self) -> Store:
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return Store(self.folder, sealed=0)  # sessions are compared whole
            except Locked:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def head(self, relay: Relay) -> SessionHead:
        """What is known of a session when its first tool is called."""
        assert relay.session is not None
        secrets = self.server.secrets
        return SessionHead(
            task_id=f"{DOMAIN}/{_word(self.server.server)}",
            domain=DOMAIN,
            seed=self.plan.seed,
            condition=f"v{relay.mark.version}" if relay.mark else self.laid(relay.session.layers),
            layers=tuple(map(plain, dump_layers(relay.session.layers))),
            agent=clip(secrets.out_of(relay.client)) or "unknown",
            policy=clip(secrets.out_of(relay.instructions)),
            tools=tuple(plain(secrets.within(_function(tool))) for tool in relay.first_shown),
            mark=relay.mark,
        )

    def add(
        self,
        head: SessionHead,
        notes: SessionLog | None,
        later: Sequence[proxy_sessions.Data],
        receipts: Sequence[Receipt],
        seconds: float,
        why: str,
    ) -> None:
        """Record a session: the calls that were noted, and `later` ones that could not be."""
        with self._open() as store:
            manifest = store.begin(self._manifest())
            trial = self._recover(store, proxy_sessions.interrupted_sessions(self.folder))
            try:
                steps = [*(notes.steps() if notes is not None else ()), *later]
            except OSError as error:
                raise CrosswindError(f"its calls cannot be read back ({error.strerror})") from None
            why = self.server.secrets.out_of(why)
            record = head.record(trial, steps, receipts, seconds=seconds, why=why)
            if notes is not None:
                with contextlib.suppress(OSError):  # then a crash right now might have it recorded twice
                    notes.end(record.key, seconds=record.usage.seconds, why=why)
            store.append(record)
            store.sync()
            store.write(manifest, state="finished")

    def _recover(self, store: Store, found: list[Interrupted]) -> int:
        """Record what killed proxies left, each once; gives the number of episodes."""
        marked: dict[str, Record | None] = {session.key: None for session in found}

        def note(record: Told) -> None:
            if record.key in marked and isinstance(record, Record):
                marked[record.key] = record

        count = len(store.resume(note, keep_errors=True))
        for session in found:
            record, there = session.record(count), marked[session.key]
            try:
                if there is None or not proxy_sessions.is_same_session(record, there):
                    session.mark(record.key)
                    store.append(record)
                    store.sync()
                    count += 1
                session.path.unlink(missing_ok=True)
            except OSError as error:
                raise CrosswindError(f"{session.path}: cannot be made into a record ({error.strerror})") from None
        return count


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


class Keeper:
    """Keeps a session on the disk while it is under way, and records it at its end. A full disk disturbs no call."""

    def __init__(self, journal: Journal, relay: Relay, tell: Say, clock: Callable[[], float]) -> None:
        self.journal, self.relay, self.tell, self.clock = journal, relay, tell, clock
        self.head: SessionHead | None = None  # since the first call
        self.notes: SessionLog | None = None
        self.later: list[proxy_sessions.Data] = []  # calls that are over and could not be noted
        self._failed = False  # no more is noted
        self._to_come: asyncio.TimerHandle | None = None  # when the notes are put on the disk

    def note(self, session: Session, opened: OpenCall, over: bool) -> None:
        """Keep a call that is `over`, or one that is about to ask the server, as one that is never answered."""
        if self._failed and not over:
            return
        if over:
            step = session.steps[-1]
        else:
            assert opened.asked is not None
            lost = ToolResult(None, ToolError(UNANSWERED, proxy_sessions.KILLED))
            inner = (*opened.inner, (opened.asked, lost))
            step = Step(opened.call, lost, inner, tuple(sorted(set(opened.fired))))
        data: proxy_sessions.Data | None = None
        try:
            self.head = self.head or self.journal.head(self.relay)
            data = self.journal.step(step)
            if not self._failed:
                self.notes = self.notes or SessionLog(self.journal.folder, self.head)
                self.notes.note(opened.nth, data, session.receipts(), at=self.clock(), over=over)
        except (OSError, ValueError, RecursionError) as error:  # no reason to fail a call
            why = error.strerror if isinstance(error, OSError) else type(error).__name__
            self.tell(f"the session cannot be kept while it is under way ({why}); it is recorded at its end")
            self._failed = True
        if self._failed:
            self.later += [data] if over and data is not None else []
        elif self._to_come is None:
            self._to_come = asyncio.get_running_loop().call_later(SYNC, self._sync)

    def _sync(self) -> None:
        """Have the notes put on the disk, by a thread: a call does not wait for that."""
        self._to_come = None
        if self.notes is not None:
            asyncio.get_running_loop().run_in_executor(None, _put_on_disk, self.notes.copy())

    async def close(self, why: str) -> None:
        """Record the session; one without a call of a tool is none."""
        if self._to_come is not None:
            self._to_come.cancel()
        session, head = self.relay.session, self.head
        if session is None or head is None or not session.taken:
            return
        try:
            said = (self.notes, self.later, session.receipts(), self.clock(), why)
            await asyncio.to_thread(self.journal.add, head, *said)
        except CrosswindError as error:
            self.tell(f"the session could not be recorded: {error}")
            if self.notes is not None:
                what = "its first calls, before that, are" if self._failed else "it is"
                self.tell(f"{what} kept in {self.notes.path}; the next proxy with this --log records it")
                self.notes.close()
        else:
            if self.notes is not None:
                self.notes.discard()


def _put_on_disk(descriptor: int) -> None:
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


# ---------------------------------------------------------------- one connection


class Connection:
    """A relay with its server: opened for one client, closed with it, recorded at the end."""

    def __init__(
        self,
        target: Sequence[str] | str,
        plan: Plan,
        journal: Journal | None,
        tell: Say = say,
        failure: PlanFailure | None = None,
    ) -> None:
        self.target, self.plan, self.journal, self.tell = target, plan, journal, tell
        self.failure = failure or PlanFailure()
        self.channel: Channel | None = None
        self.began = time.monotonic()
        self.watch: asyncio.Task[None] | None = None  # for the end of the server, where nobody waits for it
        self.keeper: Keeper | None = None

    async def open(self, front: Any) -> None:
        """Start the server. Raises `WireError` where it cannot be."""
        self.channel = await open_channel(self.target)
        self.link = ServerLink(self.channel, self._from_server, self.tell)
        self.relay = Relay(front, self.link, self.plan, self.tell, self.failure)
        if self.plan.stream is not None:
            self.relay.mark = await asyncio.to_thread(self.plan.stream.mark)
        if self.journal is not None:
            self.keeper = Keeper(self.journal, self.relay, self.tell, lambda: time.monotonic() - self.began)
        self.relay.note = self._note
        self.reading = asyncio.create_task(self.link.run())

    def _note(self, session: Session, opened: OpenCall, over: bool) -> None:
        """Keep a call on the disk, if anywhere: a session may last for days."""
        if self.keeper is not None:
            self.keeper.note(session, opened, over)
        if over:
            session.forget()

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
        if self.keeper is not None:
            await self.keeper.close(why)
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
    stop, number = stopped()
    pipes, say = await wire.own_pipes(), Discretion(target).say
    front, connection = PipeFront(pipes), Connection(target, plan, journal, say)
    try:
        await connection.open(front)
    except WireError as error:
        say(str(error))
        return SERVER_FAILED
    client = asyncio.create_task(_read_client(pipes, connection.relay))
    failure = connection.failure
    events = [asyncio.create_task(event.wait()) for event in (stop, front.broken, failure.told)]
    waits = {client, connection.reading, *events}
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    failed = connection.reading.done() and not client.done() and not stop.is_set() and not failure.why
    if client.done() and not front.broken.is_set():  # it has said all it wants to say; what it asked is still answered
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(connection.relay.drain(), wire.GRACE)
    for task in waits - {connection.reading}:
        task.cancel()
    await asyncio.gather(*(waits - {connection.reading}), return_exceptions=True)
    channel = connection.channel
    await connection.close(failed=failed)
    await pipes.close()
    if failure.why:
        say(failure.why)
        return MISTAKE
    if failed:
        say(connection.link.ended)
        return SERVER_FAILED
    if number:
        return 128 + number[0]
    if isinstance(channel, wire.Child) and channel.never_ran:  # the client left before anybody noticed
        say(f"the server {channel.ended}")
        return SERVER_FAILED
    return CLOSED


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


def stopped() -> tuple[asyncio.Event, list[int]]:
    """An event that is set when we are asked to end, and by which signal."""
    event, number = asyncio.Event(), list[int]()

    def ask(by: int) -> None:
        number.append(by)
        event.set()

    loop = asyncio.get_running_loop()
    for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(one, ask, int(one))
    return event, number
