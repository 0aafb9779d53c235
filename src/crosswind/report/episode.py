"""The steps of a stored episode side by side: what the agent saw, what the world saw, and the certified way.

Pages and the terminal show the same lines. Text in them is as it came: anyone who shows it makes it harmless.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from crosswind.core.types import FINISH, SAY
from crosswind.episodes.record import Record
from crosswind.runs.reading import Reading

STEPS = 60  # of one episode that a page shows


@dataclass(frozen=True, slots=True)
class Exchange:
    """A call and its answer, as text."""

    call: str
    result: str
    failed: bool


@dataclass(frozen=True, slots=True)
class Line:
    """One step of the agent, of the certified way, or of both side by side."""

    step: int | None  # the agent's, counted from 1
    agent: Exchange | None
    world: tuple[Exchange, ...]
    heard: tuple[str, ...]  # what the user said after it
    met: tuple[str, ...]  # kinds whose obstacle was met here
    diverges: bool  # the first step that went wrong in a way that matters
    gold_step: int | None
    gold: Exchange | None


def lines_of(reading: Reading) -> Iterator[Line]:
    """The agent's steps beside those of the certified way, equal calls in one line."""
    record, gold = reading.record, reading.gold
    diverges = reading.diagnosis.step if reading.diagnosis else None
    steps = record.steps[:STEPS]
    for i, j in _aligned([_key(s) for s in steps], [_key(s) for s in gold[:STEPS]]):
        step = None if i is None else steps[i]
        yield Line(
            step=None if i is None else i + 1,
            agent=None if step is None else exchange(step),
            world=() if step is None else tuple(exchange(inner) for inner in step["inner"]),
            heard=() if step is None else tuple(step["heard"]),
            met=() if step is None else _met(record, step["fired"]),
            diverges=i is not None and i + 1 == diverges,
            gold_step=None if j is None else j + 1,
            gold=None if j is None else exchange(gold[j]),
        )


def _aligned(ours: Sequence[str], theirs: Sequence[str]) -> Iterator[tuple[int | None, int | None]]:
    for _, a, b, c, d in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        for n in range(max(b - a, d - c)):
            yield (a + n if a + n < b else None, c + n if c + n < d else None)


def _key(step: dict[str, Any]) -> str:
    return json.dumps(step["call"], sort_keys=True)


def _met(record: Record, fired: Sequence[int]) -> tuple[str, ...]:
    kinds = record.kinds
    return tuple(kinds[i] for i in fired if 0 <= i < len(kinds))


def exchange(step: dict[str, Any]) -> Exchange:
    """A stored call and its answer as text."""
    call, result = step["call"], step["result"]
    args = call["args"]
    if call["tool"] == SAY:
        sent = f"says: {args['text'] if isinstance(args, dict) and 'text' in args else args}"
    elif isinstance(args, dict):
        sent = f"{call['tool']}({', '.join(f'{name}={_json(value)}' for name, value in args.items())})"
    else:
        sent = f"{call['tool']}({_json(args)})"
    if "error" in result:
        error = result["error"]
        return Exchange(sent, f"{error['code']}: {error['text']}" if error["text"] else str(error["code"]), True)
    content = result["content"]
    return Exchange(sent, content if isinstance(content, str) else _json(content), False)


def ending(record: Record) -> str:
    """How the agent ended an episode: its call of `finish`, or its last words."""
    if record.finish is None:
        return record.final
    return exchange({"call": {"tool": FINISH, "args": record.finish.args()}, "result": {"content": ""}}).call


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
