"""A server for one episode: a fresh copy of its folder, the process in it, and its tools to be called.

Requests, records and golds must not depend on where the copy lies, so the folder has one name towards agents: it is
put in its place in every call, and taken out of every answer. Whatever goes wrong here raises `WireError`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Coroutine
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, Self, TypeVar

from pydantic import ConfigDict, Field, field_validator, model_validator

from crosswind.core.entity_names import through
from crosswind.core.types import Model, ToolCall, ToolError, ToolResult
from crosswind.mcp.upstream import Remote, open_channel
from crosswind.mcp.wire import WireError

T = TypeVar("T")
FOLDER = "{folder}"  # in commands and variables: where the copy lies
# what a server is given of our environment unless the file names more; keys of providers are not among it
INHERITED = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER", "SYSTEMROOT")
WORDS = 400  # characters of a server's last words that a message repeats


class Server(Model):
    """How a server is reached: a command to start for every episode, or the URL of one that runs."""

    model_config = ConfigDict(strict=False, coerce_numbers_to_str=True)  # YAML reads some texts as numbers

    command: tuple[str, ...] = ()
    url: str = ""
    env: dict[str, str] = Field(default_factory=dict)
    inherit: tuple[str, ...] = ()  # variables of ours that it gets besides the usual ones
    folder: str = ""  # copied fresh for every episode; relative to the file
    shown_as: str = "/work"  # what the copy is called in requests, calls and results
    setup: tuple[tuple[str, ...], ...] = ()  # commands that are run in the copy before the server starts
    varies: tuple[str, ...] = ()  # patterns of what answers hold that changes by itself
    writes: tuple[str, ...] = ()  # tools that write although they are marked as read-only
    start_timeout: float = Field(default=30.0, gt=0)  # seconds to start and to list the tools, and for the setup
    call_timeout: float = Field(default=60.0, gt=0)

    @field_validator("command", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return shlex.split(value) if isinstance(value, str) else value

    @field_validator("setup", mode="before")
    @classmethod
    def _each(cls, value: object) -> object:
        return [cls._split(one) for one in value] if isinstance(value, (list, tuple)) else value

    @field_validator("shown_as")
    @classmethod
    def _absolute(cls, value: str) -> str:
        if not re.fullmatch(r"(/[\w.-]+)+", value):
            raise ValueError(f"shown_as is {value!r}; expected a path such as /srv/repo")
        return value

    @field_validator("varies")
    @classmethod
    def _patterns(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in value:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"varies: {pattern!r} is not a regular expression: {error}") from None
        return value

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if bool(self.command) is bool(self.url):
            raise ValueError("give the server's command or its url, and not both")
        if self.url and not self.url.startswith(("http://", "https://")):
            raise ValueError(f"the url is {self.url!r}; expected an address that begins with http:// or https://")
        if self.url and (self.env or self.inherit or self.folder or self.setup):
            raise ValueError("a server behind a url is not started here: env, inherit, folder and setup need a command")
        if any(not one for one in self.setup):
            raise ValueError("a command of the setup is empty")
        return self

    @property
    def words(self) -> str:
        """The server in one line."""
        return self.url or shlex.join(self.command)


class Running:
    """A server that runs, and the folder it works in; both are gone once it is closed."""

    def __init__(self, server: Server, base: Path) -> None:
        self.server, self.base = server, base
        self.root: Path | None = None
        self.remote: Remote | None = None
        self._errors: IO[bytes] | None = None
        self._shown = re.compile(rf"(?<![\w.-]){re.escape(server.shown_as)}(?![\w-])")

    @property
    def folder(self) -> Path:
        assert self.root is not None
        return self.root / "work"

    async def start(self) -> Remote:
        """Make the folder, start the server and list its tools."""
        server, target, env = self.server, self.server.url or list(self.server.command), None
        try:
            if isinstance(target, list):
                await asyncio.to_thread(self._prepare)
                target, env = [part.replace(FOLDER, str(self.folder)) for part in target], self._environment()
            async with asyncio.timeout(server.start_timeout):
                cwd = self.folder if self.root else None
                channel = await open_channel(target, env=env, cwd=cwd, stderr=self._errors)
                self.remote = await Remote(channel, timeout=server.call_timeout, strict=True).__aenter__()
        except BaseException as error:
            said = self._last_words(plain=True) + self._where()
            await self.close()
            if isinstance(error, TimeoutError):
                raise WireError(f"the server was not ready within {server.start_timeout:g} seconds{said}") from None
            if isinstance(error, WireError):
                why = str(error)  # may end in a question
                raise WireError(why + (said.removeprefix(".") if why.endswith("?") else said)) from None
            raise
        return self.remote

    def _environment(self) -> dict[str, str]:
        ours = {name: os.environ[name] for name in (*INHERITED, *self.server.inherit) if name in os.environ}
        return ours | {name: value.replace(FOLDER, str(self.folder)) for name, value in self.server.env.items()}

    def _prepare(self) -> None:
        """Copy the folder and run the setup in it."""
        server = self.server
        self.root = Path(tempfile.mkdtemp(prefix="crosswind-server-")).resolve()
        self._errors = (self.root / "stderr").open("w+b")
        try:
            if server.folder:
                shutil.copytree(self.base / server.folder, self.folder, symlinks=True)
            else:
                self.folder.mkdir()
        except (OSError, shutil.Error) as error:
            raise WireError(f"the folder {server.folder!r} cannot be copied: {error}") from None
        for command in server.setup:
            made = [part.replace(FOLDER, str(self.folder)) for part in command]
            try:
                subprocess.run(
                    made,
                    cwd=self.folder,
                    env=self._environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=self._errors,
                    timeout=server.start_timeout,
                    check=True,
                )
            except (OSError, subprocess.SubprocessError) as error:
                raise WireError(f"the setup {shlex.join(command)!r} failed: {error}") from None

    def _where(self) -> str:
        """Where the server was started, if it was, and what of its command may have been meant to lie elsewhere."""
        if self.root is None:
            return ""
        copy = f"a copy of {self.server.folder}" if self.server.folder else "an empty temporary folder"
        said = f". It ran in {copy} ({self.folder}, now deleted)"
        lost = [part for part in self.server.command if not os.path.isabs(part) and self._is_ours(part)]
        if lost:
            said += (
                f". {lost[0]} is in {self.base}, not there: give its absolute path, {(self.base / lost[0]).absolute()}"
            )
        return said

    def _is_ours(self, part: str) -> bool:
        """Is a part of the command a file beside us, and none in the folder?"""
        with contextlib.suppress(OSError, ValueError):
            return (self.base / part).is_file() and not (self.folder / part).exists()
        return False

    def _last_words(self, *, plain: bool = False) -> str:
        """The end of what the server wrote on its standard error, for a message; `plain` with paths as they are."""
        if self._errors is None or self._errors.closed:
            return ""
        with contextlib.suppress(OSError):
            size = self._errors.seek(0, os.SEEK_END)
            self._errors.seek(max(0, size - WORDS))
            said = self._errors.read().decode("utf-8", "replace").strip()
            return f"; its last words: {said if plain else self._back(said)}" if said else ""
        return ""

    async def call(self, call: ToolCall) -> ToolResult:
        """Call a tool, with the folder as agents know it."""
        assert self.remote is not None
        args = call.args
        if self.root is not None:
            args = through(dict(args), lambda text: self._shown.sub(lambda _: str(self.folder), text))
        try:
            result = await self.remote.call(ToolCall(call.tool, args))
        except WireError as error:
            raise WireError(f"{call.tool}: {error}{self._last_words()}") from None
        if result.error is not None:
            error_ = result.error
            return ToolResult(None, ToolError(error_.code, self._back(error_.text), error_.retryable))
        return ToolResult(through(result.content, self._back))

    def _back(self, text: str) -> str:
        return text if self.root is None else text.replace(str(self.folder), self.server.shown_as)

    async def close(self) -> None:
        """End the server and remove its folder."""
        remote, self.remote = self.remote, None
        if remote is not None:
            await remote.aclose()
        if self._errors is not None:
            self._errors.close()
        if self.root is not None:
            try:
                await asyncio.to_thread(shutil.rmtree, self.root, ignore_errors=True)
            except RuntimeError:  # this process is ending, and starts no more threads
                shutil.rmtree(self.root, ignore_errors=True)


# ---------------------------------------------------------------- from code that does not wait


def looked_at(server: Server, base: Path) -> Remote:
    """A server's interface: it is started, asked for its tools, and ended."""
    return whole_interface(server, base, besides=False)[0]


def whole_interface(server: Server, base: Path, *, besides: bool = True) -> tuple[Remote, list[Any], list[Any]]:
    """The same, with the prompts and resources that it lists."""

    async def look() -> tuple[Remote, list[Any], list[Any]]:
        running = Running(server, base)
        remote = await running.start()
        try:
            async with asyncio.timeout(server.start_timeout):
                return remote, *(await remote.besides() if besides else ([], []))
        except TimeoutError:
            late = f"the server did not list its prompts and resources within {server.start_timeout:g} seconds"
            raise WireError(late) from None
        finally:
            await running.close()

    return blocking(look)


@lru_cache(maxsize=1)
def _aside() -> asyncio.AbstractEventLoop:
    """A loop in a thread of its own."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="crosswind-servers", daemon=True).start()
    return loop


def blocking(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Do something asynchronous in that thread, and wait for it here."""
    return asyncio.run_coroutine_threadsafe(work(), _aside()).result()
