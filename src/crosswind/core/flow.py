"""Chain generators that ask for calls, and drive them; seeded digests and random generators.

`handle` of a layer and `perform` of its workaround have one shape. `chain` runs a stack of them where answers take time
(`Session.begin`); local stacks are nested functions, which is faster (`driven`, and `handled` in perturbation.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Generator, Sequence
from random import Random
from typing import TypeVar

from crosswind.core.types import Flow, ToolCall, ToolResult

K = TypeVar("K")
T = TypeVar("T")
StepOf = Callable[[ToolCall], Flow]
Send = Callable[[ToolCall], ToolResult]
MENU = 2000  # things, such as tools, that are remembered at a time


def chain(call: ToolCall, steps: Sequence[StepOf]) -> Flow:
    """Hand `call` to the first step; whatever it asks for goes to the rest. One frame, however many steps."""
    running: list[Flow] = []
    while True:
        if len(running) == len(steps):  # the last step asked: ask the driver
            result = yield call
        else:
            flow = steps[len(running)](call)
            try:
                call = next(flow)
                running.append(flow)
                continue
            except StopIteration as stop:
                result = stop.value
        while running:
            try:
                call = running[-1].send(result)
                break
            except StopIteration as stop:
                running.pop()
                result = stop.value
        else:
            return result


def drive(flow: Generator[ToolCall, ToolResult, T], send: Callable[[ToolCall], ToolResult]) -> T:
    """Answer a generator's calls with a function until it returns."""
    try:
        asked = next(flow)
        while True:
            asked = flow.send(send(asked))
    except StopIteration as stop:
        value: T = stop.value
        return value


def driven(step: StepOf, send: Send) -> Send:
    """Turn a generator step into a plain function; `send` answers the calls that it yields."""

    def call_through(call: ToolCall) -> ToolResult:
        return drive(step(call), send)

    return call_through


async def adrive(flow: Generator[ToolCall, ToolResult, T], send: Callable[[ToolCall], Awaitable[ToolResult]]) -> T:
    """Answer a generator's calls with a coroutine until it returns."""
    try:
        asked = next(flow)
        while True:
            asked = flow.send(await send(asked))
    except StopIteration as stop:
        value: T = stop.value
        return value


def digest(*parts: object) -> bytes:
    """Eight bytes that depend on the parts and on nothing else, in every process."""
    text = "\x1f".join(map(str, parts))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def token(*parts: object) -> str:
    """A short opaque string made of the parts."""
    return "tk" + digest(*parts).hex()[:10]


def rng_for(*parts: object) -> Random:
    """A generator of its own for each purpose, so that no draw disturbs another's stream."""
    return Random(int.from_bytes(digest(*parts), "big"))


def once_each(*, limit: int = MENU) -> Callable[[Callable[[K], T]], Callable[[K], T]]:
    """A function of something that cannot be hashed and never changes, worked out once for each object.

    A world's own tools, for one, are the same objects in all episodes.
    """

    def decorated(make: Callable[[K], T]) -> Callable[[K], T]:
        known: dict[int, tuple[K, T]] = {}  # by identity

        def of(thing: K) -> T:
            if (found := known.get(id(thing))) is None:
                if len(known) >= limit:
                    known.clear()
                found = known[id(thing)] = (thing, make(thing))  # it is held, so that it lasts
            return found[1]

        return of

    return decorated
