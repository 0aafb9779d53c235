"""What is kept of an arm's test for good: a row for each episode, without the words that were said.

A row has the episode's name, how it ended and why, and what `metrics.measure` found; every table and plot of a study
follows from rows. What is lost are trajectories: calls, results and texts, and with them judging and diagnosing again
and the page of an episode. `pack` keeps those as well, compressed; the store is where both come from.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import multiprocessing
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from crosswind.base.errors import BadFile, CrosswindError
from crosswind.base.files import open_regular, replace_file, synced_file
from crosswind.core.types import Receipt
from crosswind.episodes.record import Record, Usage
from crosswind.episodes.schedule import key_of, pair_of
from crosswind.episodes.suite import Suite
from crosswind.metrics.measures import Measures, measure, turns
from crosswind.runs.store import EPISODES, MANIFEST, iter_records, load_manifest, raw_lines
from crosswind.study.definition import severity_of

SCHEMA = 1
PACKED = EPISODES + ".xz"
MEASURED = tuple(name for name in Measures.model_fields if name != "refuse")
COLUMNS = (
    *("task", "condition", "kinds", "severity", "level", "outcome", "ended", "refuse", "exposed", "stage", "cause"),
    *("turns", "read", "written", *MEASURED),
)
PIECE = 8 << 20  # bytes that are compressed as one stream
SWELLS = 500  # times that a packed run may grow; real ones grow about twentyfold
LONGEST = 1 << 20  # bytes of a row of a table
MANY = 400  # episodes from which on other processes help


class OutcomeRow(NamedTuple):
    """A record without its trajectory, and what was measured in it."""

    record: Record
    measures: Measures | None  # None: an error of the infrastructure


# ---------------------------------------------------------------- from a run


def tabulated(folder: Path, path: Path, about: dict[str, Any], *, processes: int = 1) -> int:
    """Write the rows of a run; how many there are comes back."""
    manifest = load_manifest(folder)
    suite = Suite.model_validate_json(json.dumps(manifest.suite))
    records = list(iter_records(folder))
    head = {
        "schema": SCHEMA,
        "crosswind": manifest.crosswind,
        "judge": manifest.judge,
        "suite": manifest.name,
        "seed_of_tasks": manifest.seed,
        **about,
        "columns": COLUMNS,
    }
    if processes > 1 and len(records) >= MANY:
        context = multiprocessing.get_context("spawn")  # a process with a GPU in use cannot be forked
        with ProcessPoolExecutor(processes, mp_context=context) as pool:
            found = list(pool.map(_measured, records, chunksize=64))
    else:
        found = [_measured(record) for record in records]
    rows = sorted((_row(suite, record, taken) for record, taken in zip(records, found, strict=True)), key=str)
    lines = [json.dumps(one, separators=(",", ":")) for one in (head, *rows)]
    replace_file(path, lzma.compress("\n".join(lines).encode() + b"\n", preset=6))
    return len(rows)


def _measured(record: Record) -> Measures | None:
    return measure(record) if record.outcome != "error" else None


def _row(suite: Suite, record: Record, taken: Measures | None) -> list[Any]:
    values = taken.model_dump() if taken else {}
    rounded = (round(v, 4) if isinstance(v, float) else int(v) if isinstance(v, bool) else v for v in values.values())
    measured = dict(zip(values, rounded, strict=True))
    return [
        record.task_id,
        record.condition,
        "+".join(record.kinds),
        severity_of(suite, record),
        record.level,
        record.outcome,
        record.ended,
        int(record.refuse),
        int(record.exposed),
        record.stage,
        record.cause,
        turns(record),
        record.usage.input_tokens,
        record.usage.output_tokens,
        *(measured.get(name) for name in MEASURED),
    ]


# ---------------------------------------------------------------- and back


def read(path: Path, agent: str, trial: int) -> tuple[dict[str, Any], list[OutcomeRow]]:
    """The rows of a file, and what stands at its head. Rows of several seeds differ in `trial`."""
    try:
        with open_regular(path, links=True) as file, lzma.open(file) as table:
            lines = map(_parsed, io.BytesIO(b"".join(_bounded(table, path))))
        head: dict[str, Any] = next(lines, {})
        if head["schema"] != SCHEMA or tuple(head["columns"]) != COLUMNS:
            raise BadFile(f"{path}: was written by another version of crosswind; create it again from the run's folder")
        return head, [_restored(row, agent, trial, int(head["seed_of_tasks"])) for row in lines]
    except (
        OSError,
        EOFError,
        RecursionError,
        lzma.LZMAError,
        ValueError,
        KeyError,
        IndexError,
        TypeError,
        AttributeError,
    ) as error:
        why = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise BadFile(
            f"{path}: cannot be read as a table of outcomes ({why}); restore it, or run the arm again"
        ) from None


def _parsed(line: bytes) -> Any:
    if len(line) > LONGEST:
        raise ValueError(f"a line of over {LONGEST >> 20} MiB")
    return json.loads(line)


@cache
def _receipt(kind: str, seen: bool) -> Receipt:
    """One object for equal receipts: tables have hundreds of thousands of rows and a few dozen kinds."""
    return Receipt(kind=kind, fired=seen, step=None, seen=seen)


def _restored(row: Sequence[Any], agent: str, trial: int, seed: int) -> OutcomeRow:
    named = dict(zip(COLUMNS, row, strict=True))
    task, kinds = str(named["task"]), [kind for kind in named["kinds"].split("+") if kind]
    seen = bool(named["exposed"])
    record = Record(
        key=key_of(task, named["condition"], trial),
        pair=pair_of(task, trial),
        task_id=task,
        domain=task.split("/")[0],
        family=task.split("/")[1],
        level=named["level"],
        seed=seed,
        trial=trial,
        condition=named["condition"],
        severity=named["severity"],
        layers=tuple({"kind": kind} for kind in kinds),
        agent=agent,
        outcome=named["outcome"],
        ended=named["ended"],
        refuse=bool(named["refuse"]),
        query="",
        policy="",
        tools=(),
        steps=(),
        final="",
        receipts=tuple(_receipt(kind, seen) for kind in kinds),
        stage=named["stage"],
        cause=named["cause"],
        usage=Usage(input_tokens=named["read"], output_tokens=named["written"], requests=named["turns"]),
    )
    if named["outcome"] == "error":
        return OutcomeRow(record, None)
    values = {name: named[name] for name in MEASURED}
    for name in ("refused", "fault", "recovered", "false_success", "wrong_answer"):
        values[name] = bool(values[name])
    if values["resumed"] is not None:
        values["resumed"] = bool(values["resumed"])
    if values["exploration"] is not None:
        values["exploration"] = float(values["exploration"])
    return OutcomeRow(record, Measures(refuse=record.refuse, **values))


# ---------------------------------------------------------------- whole runs, compressed


def pack(folder: Path, into: Path) -> Path:
    """A finished run with its trajectories in as little room as it takes; `unpack` gives the folder back."""
    into.mkdir(parents=True, exist_ok=True)
    replace_file(into / MANIFEST, (folder / MANIFEST).read_bytes())
    with ThreadPoolExecutor() as pool:  # the library lets go of the interpreter; streams one after the other are one
        pressed = pool.map(lambda piece: lzma.compress(piece, preset=6), _pieces(folder))
        replace_file(into / PACKED, b"".join(pressed) or lzma.compress(b""))
    return into


def _pieces(folder: Path) -> Iterator[bytes]:
    held, size = list[bytes](), 0
    for line in raw_lines(folder):
        held.append(line)
        size += len(line)
        if size >= PIECE:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)


def unpack(folder: Path, into: Path) -> Path:
    """The folder of a run as it was packed."""
    for part in (PACKED, MANIFEST):
        if not (folder / part).is_file():
            raise CrosswindError(
                f"{folder}: has no {part}, which `crosswind study pack` puts there; pack the run again"
            )
    into.mkdir(parents=True, exist_ok=True)
    with lzma.open(folder / PACKED) as packed, synced_file(into / EPISODES) as out:
        try:
            out.writelines(_bounded(packed, folder / PACKED))
        except (EOFError, lzma.LZMAError) as error:
            if (folder / PACKED).stat().st_size:  # an empty file: nothing was played yet
                told = f"{folder / PACKED}: not what `crosswind study pack` wrote ({error}); pack the run again"
                raise CrosswindError(told) from None
    replace_file(into / MANIFEST, (folder / MANIFEST).read_bytes())
    return into


def _bounded(packed: lzma.LZMAFile, path: Path) -> Iterator[bytes]:
    """What a compressed file holds, in pieces. Raises where it is far more than we would ever write."""
    size, most = 0, PIECE + SWELLS * path.stat().st_size
    while piece := packed.read(PIECE):
        size += len(piece)
        if size > most:
            raise CrosswindError(
                f"{path}: holds more than {SWELLS} times its size, which no run does; it is not unpacked"
            )
        yield piece


def played(rows: Iterable[OutcomeRow]) -> str:
    """A name for the episodes of a table, however they ended."""
    every = sorted(f"{r.task_id}|{r.condition}|{'+'.join(r.kinds)}|{r.severity}" for r, _ in rows)
    return hashlib.sha256("\n".join(every).encode()).hexdigest()[:16]


def passed(rows: Iterable[OutcomeRow]) -> tuple[int, int]:
    """How many episodes were scored, and how many of them succeeded."""
    kept = [row.record for row in rows if row.record.outcome != "error"]
    return len(kept), sum(record.passed for record in kept)
