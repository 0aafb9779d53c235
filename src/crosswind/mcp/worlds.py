"""Toolboxes of tasks for a server: one for agents, one for the oracle, and one that is made up.

What counts as their state is the calls that reached the server and what they were answered; the server's own state is
never looked at. So a stored episode is judged without a server.
"""

from __future__ import annotations

import json
import re
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from crosswind.base.errors import CrosswindError, InfrastructureError, Unfair
from crosswind.benchmarks.given import OutsideState, tool_class
from crosswind.core.flow import digest
from crosswind.core.session import MENTION
from crosswind.core.types import Solution, ToolCall, ToolError, ToolResult, ToolSpec, failed
from crosswind.core.world import World, bad_arguments, brief_of
from crosswind.mcp import isolation
from crosswind.mcp.conditions import Made
from crosswind.mcp.running import Running, Server, blocking
from crosswind.mcp.tools import Example, Tool, mentioning, named_arguments
from crosswind.mcp.wire import WireError


class ServerFailed(CrosswindError, InfrastructureError):
    """A server failed where no episode was under way that could end as an error: while golds were tried."""


def plain_braces(text: str, names: Mapping[str, object]) -> str:
    """A text of a server in which tools are spoken of as {id}; its own braces are set apart, to be no mention."""
    marked = mentioning(text, [name for name in names if not re.fullmatch(r"[a-z]+", name)])
    return MENTION.sub(lambda found: found[0] if found[1] in names else f"{{ {found[1]} }}", marked)


class ServerWorld(World):
    """Tools of a server, and a ledger of what was called. A subclass says who answers."""

    def __init__(self, tools: Mapping[str, Tool], specs: Mapping[str, ToolSpec], blocked: Mapping[str, str]) -> None:
        super().__init__(OutsideState(self), blocked)
        self.listed, self.known, self.specs = tools, specs, tuple(specs.values())
        self.ledger: list[Made] = []

    def refused(self, call: ToolCall) -> ToolResult | None:
        """The answer to a call that never reaches the server."""
        spec = self.known.get(call.tool)
        if spec is None:
            return failed("unknown_tool", f"There is no tool {brief_of(call.tool)}.")
        if call.tool in self.blocked:
            return failed("unavailable", f"{{{call.tool}}} {self.blocked[call.tool]}.")
        bad = bad_arguments(spec.params, named_arguments(call.args, spec, self.listed))
        return failed("bad_arguments", bad) if bad else None

    def note(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """Put a call on the ledger; what comes back is its result as layers are to see it."""
        self.ledger.append(Made(call, result))
        if result.error is None:
            self.writes += self.known[call.tool].writes if call.tool in self.known else 0
            return result
        error = result.error
        return ToolResult(None, ToolError(error.code, plain_braces(error.text, self.known), error.retryable))

    def again(self, call: ToolCall, result: ToolResult) -> None:
        if self.refused(call) is None:
            self.note(call, result)


class LiveWorld(ServerWorld):
    """The world an agent acts in: a server of its own, from `open` to `close`. Unopened, it only keeps the ledger."""

    remote: ClassVar[bool] = True

    def __init__(
        self,
        tools: Mapping[str, Tool],
        specs: Mapping[str, ToolSpec],
        blocked: Mapping[str, str],
        running: Running,
        known: str,
        tape: Tape | None = None,
    ) -> None:
        super().__init__(tools, specs, blocked)
        self.running, self.fingerprint, self.opened = running, known, False
        self.tape, self.at = tape, b""  # what the same calls were answered when golds were played

    async def open(self) -> None:
        from crosswind.mcp.drift import drifted
        from crosswind.mcp.snapshots import fingerprint

        remote = await self.running.start()
        self.opened = True
        if fingerprint(remote.raw) != self.fingerprint:
            changes = drifted([tool.raw for tool in self.listed.values()], remote.raw)
            what = "; ".join(change.words for change in changes[:3]) or "in details"
            raise WireError(f"the server lists other tools than when the run began: {what}")

    async def close(self) -> None:
        self.opened = False
        await self.running.close()

    async def ask(self, call: ToolCall) -> ToolResult:
        if (refused := self.refused(call)) is not None:
            return refused
        result = await self.running.call(call)
        self.at = Tape.key(self.at, call)
        if self.tape is not None and (recorded := self.tape.answers.get(self.at)) is not None:
            isolation.mismatch(self.tape.server, call, recorded, result)
        return self.note(call, result)

    def call(self, call: ToolCall) -> ToolResult:
        if self.opened:
            raise CrosswindError("an episode on a live server cannot be resumed midway; play it from the start")
        refused = self.refused(call)
        return refused if refused is not None else self.note(call, ToolResult())


# ---------------------------------------------------------------- for the oracle


class Tape:
    """What a server answered to golds, by all the calls before. So each gold is played to a real server once.

    At most one server is kept running for what is not on the tape; it ends with the tape, or with this process.
    """

    def __init__(self, server: Server, base: Path) -> None:
        self.server, self.base = server, base
        self.answers: dict[bytes, ToolResult] = {}
        self._stand: list[tuple[bytes, Running]] = []  # the one that runs, and how far it was taken
        self._end = weakref.finalize(self, _end, self._stand)

    def answer(self, at: bytes, made: list[ToolCall], call: ToolCall) -> tuple[bytes, ToolResult]:
        """The answer to a call after others, and the mark of the place after it."""
        key = self.key(at, call)
        if key not in self.answers:
            try:
                running = self._at(at, made)
                self.answers[key] = blocking(lambda: running.call(call))
                self._stand[:] = [(key, running)]
            except WireError as error:
                self.stop()
                raise ServerFailed(f"the server failed while a gold was tried: {error}") from None
        return key, self.answers[key]

    @staticmethod
    def key(at: bytes, call: ToolCall) -> bytes:
        """The mark of the place after a call."""
        return digest(at.hex(), call.tool, json.dumps(dict(call.args), sort_keys=True, default=str))

    def played(self, calls: Sequence[ToolCall]) -> list[tuple[ToolCall, ToolResult]]:
        """Calls from the start, with their answers as they stand on the tape."""
        out, at = [], b""
        for call in calls:
            at = self.key(at, call)
            out.append((call, self.answers[at]))
        return out

    def _at(self, at: bytes, made: list[ToolCall]) -> Running:
        """A server that has seen these calls and no others."""
        if self._stand and self._stand[0][0] == at:
            return self._stand[0][1]
        self.stop()
        running = Running(self.server, self.base)
        blocking(running.start)
        self._stand[:] = [(b"", running)]
        for call in made:
            blocking(lambda call=call: running.call(call))  # type: ignore[misc]
        return running

    def stop(self) -> None:
        """End the server that is kept running."""
        _end(self._stand)


def _end(stand: list[tuple[bytes, Running]]) -> None:
    while stand:
        blocking(stand.pop()[1].close)


class TapedWorld(ServerWorld):
    """The world a gold is walked in: answers come from the tape, and from a server where it has none."""

    def __init__(
        self, tools: Mapping[str, Tool], specs: Mapping[str, ToolSpec], blocked: Mapping[str, str], tape: Tape
    ) -> None:
        super().__init__(tools, specs, blocked)
        self.tape, self.at = tape, b""
        self.made: list[ToolCall] = []

    def call(self, call: ToolCall) -> ToolResult:
        if (refused := self.refused(call)) is not None:
            return refused
        self.at, result = self.tape.answer(self.at, self.made, call)
        self.made.append(call)
        return self.note(call, result)


class RehearsedWorld(ServerWorld):
    """A world without a server, for tasks without a gold: every tool answers a made-up value that fits its schema."""

    made_up: ClassVar[bool] = True

    def __init__(
        self,
        tools: Mapping[str, Tool],
        specs: Mapping[str, ToolSpec],
        blocked: Mapping[str, str],
        examples: Sequence[Example],
    ) -> None:
        super().__init__(tools, specs, blocked)
        self.contents = {name: content for name, _, content in examples}

    def call(self, call: ToolCall) -> ToolResult:
        refused = self.refused(call)
        return refused if refused is not None else self.note(call, ToolResult(self.contents[call.tool]))


def rehearse(examples: Sequence[Example]) -> Solution:
    """Call every tool once in a rehearsed world. Raises `Unfair` if a result does not come back unchanged."""
    for name, args, content in examples:
        result: ToolResult = yield ToolCall(name, args)
        if result.content != content:
            raise Unfair("replay", f"{name!r}: its result does not come back as it was")
    return "Done."


def entries_class(specs: Mapping[str, ToolSpec]) -> type[World]:
    """A world class with a server's tools, for layers to inspect; the tools cannot be run."""
    # a write that is not said to be safe to repeat makes something each time, for all that is known
    made = (frozenset({f"{name}+"} if spec.writes and spec.lasting else ()) for name, spec in specs.items())
    return tool_class(zip(specs.values(), made, strict=True))
