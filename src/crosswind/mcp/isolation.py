"""Do episodes of a server share anything? Golds are played again on fresh servers, and answers must be the same."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from crosswind.core.types import ToolCall, ToolResult, ToolSpec
from crosswind.mcp.running import Running, Server, blocking
from crosswind.mcp.wire import WireError

SHOWN = 120  # characters of an answer that a message repeats
# what changes by itself: times, dates with times, durations, long numbers and random ids
BY_ITSELF = (
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?",
    r"\b\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?\b",
    r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b",
    r"\b\d+(?:\.\d+)? ?(?:ms|seconds|milliseconds|s)\b",
    r"\b\d{10,}(?:\.\d+)?\b",
    r"0x[0-9a-f]{6,}",
)
ADVICE = (
    "The server keeps something outside its folder, so every episode would see what others left. Have it keep its "
    'files in the copy, with {folder} in command or env (such as env: {DATA_FILE: "{folder}/data.json"}), or empty '
    "them in setup. What changes by itself, such as a random id, is listed as a pattern in varies"
)


def differs(was: ToolResult, now: ToolResult, varies: Sequence[str] = ()) -> str:
    """How two answers differ, apart from what changes by itself; empty where they do not."""
    one, other = _fixed(was, varies), _fixed(now, varies)
    if one == other:
        return ""
    at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    start = max(0, at - SHOWN // 2)
    return f"{_cut(one, start)!r} became {_cut(other, start)!r}"


def _cut(text: str, start: int) -> str:
    return ("..." if start else "") + text[start : start + SHOWN] + ("..." if len(text) > start + SHOWN else "")


def _fixed(result: ToolResult, varies: Sequence[str]) -> str:
    error = result.error
    text = error.text if error is not None else _text(result.content)
    for pattern in (*varies, *BY_ITSELF):
        text = re.sub(pattern, "~", text)
    return f"error: {text}" if error is not None else text


def _text(content: object) -> str:
    return content if isinstance(content, str) else json.dumps(content, sort_keys=True, ensure_ascii=False)


Played = Sequence[tuple[ToolCall, ToolResult]]


def shared(server: Server, running: Running, played: Played) -> str:
    """How a fresh server answers calls otherwise than they were answered before; empty where it does not."""
    return blocking(lambda: _again(server, running, played))


async def _again(server: Server, running: Running, played: Played) -> str:
    await running.start()
    try:
        for call, was in played:
            if found := differs(was, await running.call(call), server.varies):
                return f"{call.tool} answered otherwise on another fresh server: {found}"
        return ""
    finally:
        await running.close()


def counting(server: Server, running: Running, played: Played, specs: Mapping[str, ToolSpec]) -> str:
    """Which tool that is marked as read-only changes what comes later when it is called twice; empty if none does."""
    return blocking(lambda: _twice(server, running, played, specs))


async def _twice(server: Server, running: Running, played: Played, specs: Mapping[str, ToolSpec]) -> str:
    doubled = ""
    await running.start()
    try:
        for call, was in played:
            found = differs(was, await running.call(call), server.varies)
            if found:
                return f"{doubled} was called twice, and {call.tool} answered otherwise: {found}"
            if not specs[call.tool].writes:
                doubled = call.tool
                if found := differs(was, await running.call(call), server.varies):
                    return f"{doubled} answered otherwise when it was called again: {found}"
        return ""
    finally:
        await running.close()


def mismatch(server: Server, call: ToolCall, was: ToolResult, now: ToolResult) -> None:
    """Raise `WireError` where an answer is another than after the same calls when the golds were played."""
    if found := differs(was, now, server.varies):
        raise WireError(
            f"{call.tool} answered otherwise than after the same calls when the golds were played: {found}. {ADVICE}"
        )
