"""Any agent as a command: started once for each episode, with the episode's tools as an MCP server.

    cmd:my-agent --mcp-config {config} {query}

The command is split as a shell would split it and started without one; what is in braces is put in afterwards, so
no text of a task can become another argument. The tools are behind an address on this machine that one episode alone
knows. The command ends the episode by the tool `finish`, or by what it prints, which is then said to the user; if the
user has an answer to that, the command is started once more with the conversation so far as the query. The world's
state decides over success; what the command prints of its calls is not looked at.

A command with the placeholder {usage} may write its tokens to that file: `{"input_tokens": 1200, "output_tokens": 80}`,
with `"cost"` if it knows it. Otherwise its tokens are unknown.

A command that fails before its first tool call is taken to be broken: an error of the infrastructure, played again.
One that fails later has failed as an agent. Exit code 75 tells of a provider or a machine, whenever it comes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import stat
import sys
import tempfile
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import WeakKeyDictionary

from pydantic import BaseModel, Field, ValidationError

from crosswind.base.errors import AgentException, CrosswindError, InfrastructureError
from crosswind.base.extras import extra
from crosswind.base.process_guard import ProcessGuard
from crosswind.core.draw import Drawn
from crosswind.core.registry import did_you_mean
from crosswind.core.types import Finish, Message, Tools
from crosswind.episodes.record import Usage
from crosswind.mcp import bridge
from crosswind.mcp.serve import NAME, EpisodeServer, serve_lines
from crosswind.mcp.wire import BODY, Lines, signal_group
from crosswind.models.parsing import clean
from crosswind.models.python_agent import PythonAgent, PythonAgents
from crosswind.models.redact import Secrets, environment
from crosswind.models.source import AgentSettings, Price, code_digest
from crosswind.models.toolset import Toolset

if TYPE_CHECKING:
    from crosswind.mcp.http_server import HttpServer

ANSWER = 20_000  # bytes of an answer, the last ones
COMPLAINT = 2_000  # bytes of standard error, the last ones
SCRIPT = 2**20  # bytes of a file that a command names, below which it counts as the agent's code
GRACE = 2.0  # seconds between asking a process to end and ending it
DRAIN = 1.0  # seconds in which what a process has printed must come in after its end
BROKEN = 75  # the exit code for a provider or a machine that failed: EX_TEMPFAIL of sysexits.h
URL_VARIABLE = "CROSSWIND_MCP_URL"
PLACES = ("query", "query_file", "policy", "policy_file", "prompt", "url", "config", "stdio_config", "out", "usage")
SPOKEN = {"query", "query_file", "prompt"}  # without one of them, the prompt goes to standard input
_PLACE = re.compile(r"\{([a-z_]+)\}")


class Reported(BaseModel):
    """What a command says of its tokens; other keys are ignored."""

    input_tokens: int = Field(ge=0, lt=2**53)
    output_tokens: int = Field(ge=0, lt=2**53)
    cost: float | None = Field(default=None, ge=0)


class Tail(asyncio.Protocol):
    """The end of what a process prints, however much it prints."""

    def __init__(self, limit: int) -> None:
        self.limit, self.kept = limit, bytearray()
        self.done = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self.kept += data
        del self.kept[: -self.limit]

    def connection_lost(self, _: Exception | None) -> None:
        self.done.set()

    @property
    def text(self) -> str:
        return clean(self.kept.decode("utf-8", "replace")).strip()


class CommandAgent(PythonAgent):
    """One episode of a command. Its process ends with the agent, and as soon as the episode is given up."""

    async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
        try:
            return await super().reply(chat, tools)
        except BaseException:
            if self.running is not None:
                self.running.cancel()
            raise


class CommandAgents(PythonAgents):
    """Agents that are processes; see the top of the module."""

    concurrency = 4

    def __init__(self, rest: str, settings: AgentSettings) -> None:
        self.secrets = Secrets(*environment())
        self.name = f"cmd:{self.secrets.scrub(rest)}"
        self.price: Price | None = settings.price()
        self.settings: dict[str, Any] = {"command": self.secrets.scrub(rest), "silence": settings.timeout}
        self.template = _template(rest)
        files = {
            Path(part) for part in (shutil.which(self.template[0]) or "", *self.template[1:]) if os.path.isfile(part)
        }
        if scripts := {path for path in files if path.stat().st_size < SCRIPT}:
            self.settings["code"] = code_digest(scripts)
        self.places = {place for part in self.template for place in _PLACE.findall(part)}
        self.timeout = settings.timeout
        self.running: set[asyncio.Task[Any]] = set()
        self.reports: WeakKeyDictionary[Toolset, Path] = WeakKeyDictionary()  # files to which {usage} leads
        self.http: HttpServer | None = None
        try:
            with extra("http", "a command that reaches its tools over HTTP"):
                from crosswind.mcp.http_server import HttpServer

            self.http = HttpServer()
        except CrosswindError:
            if "stdio_config" not in self.places or self.places & {"url", "config"}:
                raise
        self.guard = ProcessGuard()
        self.starting = asyncio.Lock()

    def make(self, drawn: Drawn) -> CommandAgent:
        return CommandAgent(self)

    async def aclose(self) -> None:
        """End what still runs."""
        for task in list(self.running):
            task.cancel()
        await asyncio.gather(*self.running, return_exceptions=True)
        if self.http is not None:
            await self.http.aclose()
        self.guard.close()

    async def run(self, query: str, tools: Toolset) -> str | Finish:
        """One start of the command, to its end; its failures told apart."""
        task = asyncio.current_task()
        assert task is not None
        self.running.add(task)
        try:
            async with self.starting:
                await self._ready()
            episode = EpisodeServer(tools, query)
            url = self.http.add(episode) if self.http else ""
            with tempfile.TemporaryDirectory(prefix="crosswind-", ignore_cleanup_errors=True) as folder:
                try:
                    return await self._run(episode, url, Path(folder))
                finally:
                    episode.close()
                    if self.http:
                        self.http.remove(url)
        except OSError as error:
            raise InfrastructureError(f"{self.name[:80]} cannot be started: {error}") from None
        finally:
            self.running.discard(task)

    async def _ready(self) -> None:
        """Start the server of this run, and the guard that outlives it, with the first command."""
        if self.http and not self.http.port:
            await self.http.start()
        self.guard.start()

    async def _run(self, episode: EpisodeServer, url: str, folder: Path) -> str:
        out = folder / "answer.txt"
        sockets = None
        if "usage" in self.places:
            self.reports[episode.tools] = folder / "usage.json"
        if "stdio_config" in self.places:
            sockets = await asyncio.start_unix_server(
                lambda reader, writer: serve_lines(episode, Lines(reader, writer, limit=BODY)),
                folder / "s",
                limit=2**16,
            )
        try:
            command = self._filled(episode, url, folder, out)
            with (folder / "prompt.txt").open("rb") as prompt:
                stdin = asyncio.subprocess.DEVNULL if self.places & SPOKEN else prompt.fileno()
                code, printed, complaint = await self._process(command, stdin, episode, url)
        finally:
            if sockets is not None:
                sockets.close()
            self.reported(episode.tools)
            self.reports.pop(episode.tools, None)
        if code != 0:
            self._failed(code, episode.tools.made, complaint)
        return _read(out) if "out" in self.places else printed

    def _filled(self, episode: EpisodeServer, url: str, folder: Path, out: Path) -> list[str]:
        """The command of one episode; files that it names are there."""
        policy = episode.briefing
        texts = {"query": episode.query, "policy": policy, "prompt": f"{policy}\n\n{episode.query}"}
        stdio = {"command": sys.executable, "args": ["-I", str(bridge.__file__), str(folder / "s")]}
        configs = {"mcp": {"type": "http", "url": url}, "mcp-stdio": stdio}
        files = {f"{name}.txt": text for name, text in texts.items()}
        files |= {f"{n}.json": json.dumps({"mcpServers": {NAME: entry}}, indent=1) for n, entry in configs.items()}
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        values = {
            **texts,
            "query_file": str(folder / "query.txt"),
            "policy_file": str(folder / "policy.txt"),
            "config": str(folder / "mcp.json"),
            "stdio_config": str(folder / "mcp-stdio.json"),
            "url": url,
            "out": str(out),
            "usage": str(folder / "usage.json"),
        }
        return [_PLACE.sub(lambda found: values[found[1]].replace("\0", ""), part) for part in self.template]

    async def _process(
        self, command: list[str], stdin: int, episode: EpisodeServer, url: str
    ) -> tuple[int | None, str, str]:
        """Run a command to its end: its exit code (None: it fell silent), what it printed, what it complained of."""
        loop = asyncio.get_running_loop()
        printed, complaint = Tail(ANSWER), Tail(COMPLAINT)
        pipes, ends = [], []
        for tail in (printed, complaint):
            reading, writing = os.pipe()
            ends.append(writing)
            pipe = os.fdopen(reading, "rb", buffering=0)
            pipes.append((await loop.connect_read_pipe(partial(_same, tail), pipe))[0])
        try:
            try:
                process = await asyncio.create_subprocess_exec(
                    *command,
                    stdin=stdin,
                    stdout=ends[0],
                    stderr=ends[1],
                    env={**os.environ, **({URL_VARIABLE: url} if url else {})},
                    start_new_session=True,
                )
            finally:
                for end in ends:
                    os.close(end)
            self.guard.watch(process.pid)
            try:
                try:
                    code = await self._wait(process, episode)
                except asyncio.CancelledError:
                    if episode.ending:  # it ended the episode: let it hear so, and leave by itself
                        episode.close()
                        with contextlib.suppress(TimeoutError):
                            async with asyncio.timeout(GRACE):
                                await process.wait()
                    raise
                if code is not None:
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(DRAIN):  # a process that left the group may hold them open
                            await printed.done.wait()
                            await complaint.done.wait()
            finally:
                await _end(process)
                self.guard.forget(process.pid)
        finally:
            for transport in pipes:
                transport.close()
        return code, printed.text, complaint.text

    async def _wait(self, process: asyncio.subprocess.Process, episode: EpisodeServer) -> int | None:
        """The exit code; None when nothing was heard of the agent for as long as one request may take."""
        loop = asyncio.get_running_loop()
        ended = asyncio.ensure_future(process.wait())
        try:
            while not ended.done():
                left = episode.heard + self.timeout - loop.time()
                if left <= 0:
                    return None
                await asyncio.wait({ended}, timeout=left)
            return ended.result()
        finally:
            ended.cancel()

    def reported(self, tools: Toolset) -> Usage | None:
        """What a command has reported so far; what it has written to {usage} is taken over."""
        if (path := self.reports.get(tools)) and (written := _read(path)):
            try:
                found = Reported.model_validate_json(written)
            except ValidationError:
                told = (
                    f"a command wrote {self.secrets.scrub(written[:80])!r} to {{usage}}, so that its tokens are unknown"
                )
                warnings.warn(f'{told}; expected such as {{"input_tokens": 1200, "output_tokens": 80}}', stacklevel=1)
            else:
                tools.used(found.input_tokens, found.output_tokens, found.cost)
            del self.reports[tools]
        return tools.usage

    def _failed(self, code: int | None, calls: int, complaint: str) -> NoReturn:
        """Raise what says whose failure it is."""
        if code is None:
            how = f"called nothing and did not end for {self.timeout:g} seconds"
        elif code < 0:
            how = f"was killed by signal {-code}"
        else:
            how = f"ended with exit code {code}"
        complaint = self.secrets.scrub(complaint)
        text = complaint[-300:].replace("\n", " ")
        if code in (BROKEN, -signal.SIGKILL, -signal.SIGTERM) or not calls:
            raise InfrastructureError(f"{self.name[:80]} {how}" + (f" ({text})" if text else ""))
        raise AgentException(f"the command {how}: {complaint.rpartition(chr(10))[2][:300]}".rstrip(": "), complaint)


def _same(tail: Tail) -> Tail:
    return tail


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a process and its group: asked first, then made to."""
    try:
        if process.returncode is None and signal_group(process.pid, signal.SIGTERM):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(GRACE):
                    await process.wait()
    finally:
        signal_group(process.pid, signal.SIGKILL)  # the group may outlive its first process
    await process.wait()


def _read(path: Path) -> str:
    """The end of the file that the agent wrote its answer to; nothing where it wrote none, or something else."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    with open(file, "rb") as opened:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            return ""
        opened.seek(max(0, found.st_size - ANSWER))
        return clean(opened.read(ANSWER).decode("utf-8", "replace")).strip()


def _template(rest: str) -> list[str]:
    """A command taken apart. Raises `CrosswindError` for one that cannot work."""
    try:
        parts = shlex.split(rest)
    except ValueError as error:
        raise CrosswindError(f"cmd:{rest}: cannot be split as a command line ({error})") from None
    if not parts:
        raise CrosswindError("cmd: no command given; expected one such as cmd:my-agent --mcp-config {config} {query}")
    for place in (place for part in parts for place in _PLACE.findall(part)):
        if place not in PLACES:
            raise CrosswindError(f"cmd: has the placeholder {{{place}}}; {did_you_mean(place, list(PLACES))}")
    if shutil.which(parts[0]) is None:
        raise CrosswindError(f"cmd: no command {parts[0]!r} here or on the PATH")
    return parts
