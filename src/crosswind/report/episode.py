"""One stored episode laid out for a reader: what the agent saw, what the world saw, and the certified way beside them.

Pages and the terminal show the same view; text in it is as it came, and whoever shows it makes it harmless.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from crosswind.base.errors import CrosswindError
from crosswind.core.certify import Certificate
from crosswind.core.types import SAY
from crosswind.episodes.play import step_data
from crosswind.episodes.record import Record, certificate
from crosswind.metrics.diagnosis import Diagnosis, diagnose
from crosswind.report.outside import outside

STEPS = 60  # of one episode that a page shows
SHARED = (
    "The certified way is not walked again: the server runs on behind a url and nothing resets it, so the calls of the "
    "gold would reach it once more."
)


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


@dataclass(frozen=True, slots=True)
class View:
    """A stored episode with everything that is shown of it."""

    record: Record
    lines: tuple[Line, ...]
    gold_final: str
    proof: str  # how the certificate shows that the task is fair, or that refusing is right
    diagnosis: Diagnosis | None  # of a failed episode
    missing: str  # why there is no certified way to compare with

    @property
    def final_diverges(self) -> bool:
        """Every step was fine, and the last words were not."""
        return self.diagnosis is not None and (self.diagnosis.step or 0) > len(self.record.steps)

    @property
    def at_start(self) -> tuple[str, ...]:
        """Kinds that were met before the first call: in the request, or in the tools shown."""
        return tuple(r.kind for r in self.record.receipts if r.fired and r.step == 0)


def view(record: Record) -> View:
    """A stored episode beside the certified way, which is drawn again."""
    certified: Certificate | None = None
    missing = ""
    try:
        if outside(record.domain) == "shared":
            missing = SHARED
        else:
            certified = certificate(record)
    except CrosswindError as error:
        missing = f"The certified way cannot be drawn again here: {error}"
    gold = [] if certified is None else [step_data(step) for step in certified.gold.steps]
    found = diagnose(record, certified) if record.outcome == "fail" and certified is not None else None
    return View(
        record=record,
        lines=tuple(_lines(record, gold, found.step if found else None)),
        gold_final="" if certified is None else certified.gold.final,
        proof="" if certified is None else certified.proof,
        diagnosis=found,
        missing=missing,
    )


def _lines(record: Record, gold: Sequence[dict[str, Any]], diverges: int | None) -> Iterator[Line]:
    """The agent's steps beside those of the certified way, equal calls in one line."""
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


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


# ---------------------------------------------------------------- which ones


def select(records: Sequence[Record], limit: int) -> list[Record]:
    """Episodes worth opening: failures first, one for each cause and kind before a second of any, then others.

    Among failures those come first whose clean episode passed. A fifth of `limit`, and what the failures leave, goes
    to errors and to episodes that passed.
    """
    clean = {r.pair: r.passed for r in records if r.clean}
    failures = sorted((r for r in records if r.outcome == "fail"), key=lambda r: (r.clean, not clean.get(r.pair)))
    errors = _spread([r for r in records if r.outcome == "error"])
    passed = sorted((r for r in records if r.passed), key=lambda r: r.clean)
    others = [*errors[: max(1, limit // 10)], *_spread(passed)]
    taken = _spread(failures)[: limit - min(limit // 5, len(others))]
    return [*taken, *others[: limit - len(taken)]]


def _spread(records: Sequence[Record]) -> list[Record]:
    """The same, the first of each cause and condition before the second of any."""
    nth: dict[tuple[str | None, str], int] = {}
    placed: list[tuple[int, int]] = []
    for i, record in enumerate(records):
        at = (record.cause, record.condition.partition("@")[0])
        nth[at] = nth.get(at, 0) + 1
        placed.append((nth[at], i))
    return [records[i] for _, i in sorted(placed)]
