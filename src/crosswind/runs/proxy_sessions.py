"""The log of a proxy's session while it lasts, and what a killed proxy left.

    sessions/NAME.jsonl    one session: a head, and a line for each call that goes to the server and each that is over

The proxy whose session it is holds the file locked, and the lock dies with its owner: a file that nobody holds was left
by a proxy that was killed, and is made into the record that it could not write. A call that was under way is part of
it, with a result that says so. Lines are written as things happen and are safe from the end of the process at once;
they are put on the disk, against the end of the machine, a little later.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import math
import os
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError

from crosswind.base.errors import BadFile
from crosswind.base.files import LONGEST, open_regular
from crosswind.core.types import Model, Receipt
from crosswind.episodes.record import UNKNOWN, Record, Usage
from crosswind.episodes.schedule import StreamMark, key_of, pair_of
from crosswind.runs.manifest import brief_error

FOLDER = "sessions"
KILLED = "the proxy was killed before the session ended"
Data = dict[str, Any]


class SessionHead(Model):
    """What is known of a session when its first tool is called."""

    task_id: str
    domain: str
    seed: int
    condition: str
    layers: tuple[Data, ...]
    agent: str
    policy: str
    tools: tuple[Data, ...]
    mark: StreamMark | None = None  # in a stream

    def record(
        self, trial: int, steps: Sequence[Data], receipts: Sequence[Receipt], *, seconds: float, why: str
    ) -> Record:
        """The session as an episode. There was no task, so there is no verdict; `why` is of an error."""
        return Record(
            key=key_of(self.task_id, self.condition, trial),
            pair=pair_of(self.task_id, trial),
            task_id=self.task_id,
            domain=self.domain,
            family="live",
            level=0,
            seed=self.seed,
            trial=trial,
            condition=self.condition,
            severity=None,
            layers=self.layers,
            agent=self.agent,
            outcome="error" if why else "unjudged",
            ended="error" if why else "closed",
            refuse=False,
            query="",
            policy=self.policy,
            tools=self.tools,
            steps=tuple(steps),
            final="",
            why=why,
            receipts=tuple(receipts),
            mark=self.mark,
            usage=UNKNOWN.plus(Usage(requests=len(steps), seconds=round(seconds, 3))),
        )


# ---------------------------------------------------------------- writing


class SessionLog:
    """The file of a session, for the proxy whose session it is. Raises `OSError`."""

    def __init__(self, folder: Path, head: SessionHead) -> None:
        folder = folder / FOLDER
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.is_symlink():
            raise OSError(errno.ELOOP, "it is a link, which is not followed", str(folder))
        self.path = folder / f"{time.time_ns()}-{secrets.token_hex(4)}.jsonl"
        fresh = self.path.with_suffix(".new")
        self._fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._write({"head": head.model_dump(mode="json")})
            fresh.rename(self.path)  # anyone who looks for files that nobody holds finds none without lock and head
        except BaseException:
            self.close()
            fresh.unlink(missing_ok=True)
            raise
        self._told: tuple[Receipt, ...] = ()

    def note(self, nth: int, step: Data, receipts: tuple[Receipt, ...], *, at: float, over: bool) -> None:
        """A call, `at` some second of the session: over, or under way and as it is should we be killed now."""
        data: Data = {"nth": nth, "over": over, "at": round(at, 3), "step": step}
        if receipts != self._told:
            data["receipts"] = [receipt.model_dump() for receipt in receipts]
            self._told = receipts
        self._write(data)

    def steps(self) -> list[Data]:
        """The calls that were noted and are over. Read back, since a session may last for days."""
        with open_regular(self.path) as file:
            return [entry["step"] for entry in _entries(file) if entry.get("over")]

    def end(self, key: str, *, seconds: float, why: str) -> None:
        """The session is over and about to be recorded under a key."""
        self._write({"end": key, "at": seconds, "why": why}, before=b"\n")  # what came before may be torn

    def _write(self, data: Data, before: bytes = b"") -> None:
        line = before + json.dumps(data, separators=(",", ":")).encode() + b"\n"
        written = os.write(self._fd, line)
        while written < len(line):
            written += os.write(self._fd, line[written:])

    def copy(self) -> int:
        """A descriptor of the file for anyone who puts it on the disk, who closes it."""
        return os.dup(self._fd)

    def close(self) -> None:
        """Let go of the file; it stays, and is recorded by the next proxy."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def discard(self) -> None:
        """The session is recorded."""
        self.path.unlink(missing_ok=True)
        self.close()


# ---------------------------------------------------------------- what killed proxies left


@dataclass(slots=True)
class Interrupted:
    """A session whose proxy was killed."""

    path: Path
    head: SessionHead
    steps: list[Data] = field(default_factory=list)
    receipts: tuple[Receipt, ...] = ()
    seconds: float = 0.0
    key: str = ""  # under which it was about to be recorded
    why: str = KILLED

    @classmethod
    def read(cls, path: Path, lines: Iterable[bytes]) -> Self | None:
        """What the lines of a file say; None where they say nothing that a record could be made of."""
        found: Self | None = None
        under_way: dict[int, Data] = {}
        for entry in _entries(lines):
            try:
                if found is None:
                    found = cls(path, SessionHead.model_validate(entry["head"], strict=False))
                    continue
                seconds = float(entry["at"])
                found.seconds = seconds if math.isfinite(seconds) else found.seconds
                if "end" in entry:
                    found.key, found.why = str(entry["end"]), str(entry["why"])
                    continue
                if "receipts" in entry:
                    found.receipts = tuple(Receipt.model_validate(one) for one in entry["receipts"])
                under_way.pop(entry["nth"], None)
                if entry["over"]:
                    found.steps.append(entry["step"])
                else:
                    under_way[entry["nth"]] = entry["step"]
            except (ValueError, KeyError, TypeError, OverflowError, RecursionError):  # no line of ours
                continue
        if found is not None:
            found.steps += under_way.values()
        return found if found is not None and found.steps else None

    def record(self, trial: int) -> Record:
        """The session as an episode."""
        return self.head.record(trial, self.steps, self.receipts, seconds=self.seconds, why=self.why)

    def mark(self, key: str) -> None:
        """It is about to be recorded under a key; should that be cut short as well, it is not recorded twice."""
        entry = {"end": key, "at": self.seconds, "why": self.why}
        with os.fdopen(os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW), "ab") as file:
            file.write(b"\n" + json.dumps(entry).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())


def _entries(lines: Iterable[bytes]) -> Iterator[Data]:
    """What was written, without lines that are torn, in the middle of what did not happen any more."""
    for line in lines:
        with contextlib.suppress(ValueError, RecursionError):
            entry = json.loads(line)
            if isinstance(entry, dict):
                yield entry


def interrupted_sessions(folder: Path, problems: list[str] | None = None) -> list[Interrupted]:
    """The sessions in a run's folder whose proxy was killed, the oldest first.

    A file that no proxy can have left is named in `problems` and left alone.
    """
    out: list[Interrupted] = []
    if (folder / FOLDER).is_symlink():
        return out
    for path in sorted((folder / FOLDER).glob("*.jsonl")):
        with contextlib.suppress(OSError, BadFile), open_regular(path) as file:  # gone meanwhile, or not ours to read
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # an error where a proxy holds it
            why = f"it has more than {LONGEST >> 20} MiB" if os.fstat(file.fileno()).st_size > LONGEST else ""
            try:
                if not why and (found := Interrupted.read(path, file)) is not None:
                    found.record(0)
                    out.append(found)
            except ValidationError as error:
                why = brief_error(error)
            if why and problems is not None:
                problems.append(f"{path} is no session of a proxy and is left out ({why}); move it away")
    return out


def is_same_session(one: Record, other: Record) -> bool:
    """Are two records of one session? Their keys may differ."""
    return (one.agent, one.steps, one.usage, one.why) == (other.agent, other.steps, other.usage, other.why)
