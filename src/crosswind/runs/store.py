"""The folder of a run: a manifest, one line for each finished episode, and a lock that dies with its owner.

    run.json               what is run, written atomically; `Manifest`
    episodes.jsonl         one line of JSON for each finished episode, on the disk before it counts; `Record`
    lock                   held while a run writes here
    episodes.jsonl.torn    lines that a crash left half written, cut off and kept
    retried.jsonl          episodes that ended as errors of the infrastructure and were played again
    baselines.jsonl        what scripted agents make of some of the episodes; `baselines.py`
    sessions/              of a proxy: sessions under way, and those that a killed one left; `proxy_sessions.py`

A crash can tear the last line and nothing else, so a torn last line is expected and any other bad line is an error;
who only looks at a run may leave it out.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shlex
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError
from pydantic_core import PydanticSerializationError

from crosswind.base.errors import BadFile, CrosswindError
from crosswind.base.files import append_file, replace_file, sync_folder, synced_file
from crosswind.core.types import Ending, Model
from crosswind.episodes.play import plain
from crosswind.episodes.record import SCHEMA, Record
from crosswind.runs.proxy_sessions import interrupted_sessions, is_same_session

MANIFEST, EPISODES, LOCK, TORN, RETRIED = "run.json", "episodes.jsonl", "lock", "episodes.jsonl.torn", "retried.jsonl"
SHOWN = 5  # differences that a message lists


class CannotStore(CrosswindError):
    """An episode could not be written: the disk is full or gone. What was written before is safe."""


class Locked(CrosswindError):
    """Another process is writing to the folder."""


class Manifest(Model):
    """What a run is, and how far it came."""

    schema_version: int = SCHEMA
    created: str  # times are UTC, as ISO 8601
    updated: str
    crosswind: str  # version
    judge: str  # version of the verifier
    python: str
    suite: dict[str, Any]  # the whole of it
    conditions: tuple[str, ...]  # by name; `each_of` depends on what is installed
    seed: int
    trials: int = 1
    limit: int | None = None  # of episodes
    shard: str = ""  # I/N: the Ith of N parts, which `crosswind merge` puts together
    agent: str  # the spec, without secrets
    settings: dict[str, Any] = Field(default_factory=dict)  # of the agent
    ending: Ending = "words"  # how agents end an episode; runs of earlier versions knew words only
    episode_timeout: float | None = None
    max_repeats: int | None = None  # failures or equal results of a call that end an episode; None: no limit
    state: Literal["running", "finished", "stopped"] = "running"
    why: str = ""  # it stopped
    planned: int | None = None  # episodes in all; known when all were drawn

    @property
    def name(self) -> str:
        """The suite's, with its version."""
        name, version = str(self.suite.get("name", "")), self.suite.get("version")
        return f"{name}@{version}" if version else name


# what makes two runs one: a folder holds episodes of one configuration only
SAME = (
    *("crosswind", "judge", "suite", "conditions", "seed", "trials", "shard"),
    *("agent", "settings", "ending", "episode_timeout", "max_repeats"),
)


@dataclass(slots=True)
class StoredRun:
    """What a folder holds. An unfinished run is as readable as a finished one."""

    folder: Path
    manifest: Manifest
    records: list[Record]
    problems: list[str] = field(default_factory=list)  # what a reader should know, each a sentence

    @property
    def lacks(self) -> str:
        """Why it is not whole, in words; nothing where it is."""
        return shortfall(self.manifest, len(self.records))


def shortfall(manifest: Manifest, there: int) -> str:
    """Why a run with this many episodes is not whole, in words; nothing where it is."""
    if manifest.state != "finished":
        return f"the run is not finished ({manifest.why or manifest.state})"
    if manifest.planned is not None and there < manifest.planned:
        return f"{manifest.planned - there} of its {manifest.planned} episodes are missing from {EPISODES}"
    return ""


def load_run(folder: Path | str, *, damaged: bool = False) -> StoredRun:
    """Read the folder of a run. Raises `BadFile` where it is none, or where a line before the last is damaged.

    With `damaged` such lines are left out, and named among the problems.
    """
    folder = Path(folder)
    manifest = load_manifest(folder)
    problems: list[str] = []
    lost: list[str] = []
    left = interrupted_sessions(folder)  # before the records: what a proxy records meanwhile is in both
    records = list(iter_records(folder, problems, lost if damaged else None))
    if lost:
        few = [*lost[:SHOWN], *([f"{len(lost) - SHOWN} more"] if len(lost) > SHOWN else [])]
        of = f"{len(lost)} of {len(lost) + len(records)} lines of {EPISODES}"
        problems.append(f"{of} cannot be read and are left out: {'; '.join(few)}")
    written = tuple(records)
    for session in left:
        record = session.record(len(records))
        if not any(is_same_session(record, other) for other in written):
            records.append(record)
    if cut := len(records) - len(written):
        what = f"{cut} sessions were" if cut > 1 else "1 session was"
        problems.append(f"{what} cut short: a proxy was killed; the next one that logs here completes the record")
    if manifest.state != "finished":
        of = f" of {manifest.planned}" if manifest.planned else ""
        problems.append(f"the run is not finished ({len(records)}{of} episodes); the same command continues it")
    run = StoredRun(folder, manifest, records, problems)
    if manifest.state == "finished" and run.lacks:
        problems.append(f"{run.lacks}; the same command plays them again")
    return run


def iter_records(
    folder: Path | str, problems: list[str] | None = None, damaged: list[str] | None = None
) -> Iterator[Record]:
    """The finished episodes of a run one after the other, each once; `problems` collects what is odd.

    A damaged line raises `BadFile`, or is named in `damaged`.
    """
    path, seen = Path(folder) / EPISODES, set[str]()
    for number, record, _ in _lines(path, damaged):
        if record is None:
            if problems is not None:
                problems.append(f"line {number} of {path.name} is torn and left out; its episode is not finished")
        elif record.key in seen:
            if problems is not None:
                problems.append(f"line {number} of {path.name} repeats the episode {record.key!r} and is left out")
        else:
            seen.add(record.key)
            yield record


def load_manifest(folder: Path | str) -> Manifest:
    path = Path(folder) / MANIFEST
    try:
        text = path.read_bytes()
    except OSError as error:
        hint = "expected the folder that `crosswind run` wrote (its --out)"
        raise BadFile(f"{path}: cannot be read ({error.strerror}); {hint}") from None
    try:
        data = json.loads(text)
        if isinstance(data, dict):
            _known_schema(data.get("schema_version"), str(path))
        return Manifest.model_validate_json(text)
    except (ValueError, RecursionError) as error:
        raise BadFile(f"{path}: is damaged ({_brief(error)}); restore it, or run again into another folder") from None


def _known_schema(version: object, where: str) -> None:
    if isinstance(version, int) and version > SCHEMA:
        raise BadFile(f"{where}: was written by a newer crosswind (schema {version}, known: {SCHEMA}); upgrade it")


def _lines(path: Path, damaged: list[str] | None = None) -> Iterator[tuple[int, Record | None, bytes]]:
    """Line number, record and bytes of each line; a torn last line has no record."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    except OSError as error:
        raise BadFile(f"{path}: cannot be read ({error.strerror}); check its permissions") from None
    with file:
        for number, line in enumerate(file, 1):
            try:
                record = Record.model_validate_json(line)
            except ValidationError as error:
                if not _is_json(line) and not file.peek(1):
                    yield number, None, line
                    return
                found = _damaged(path, number, line, error)
                if damaged is None:
                    raise found from None
                damaged.append(f"line {number} ({_brief(error)})")
                continue
            _known_schema(record.schema_version, f"{path}:{number}")
            yield number, record, line


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _damaged(path: Path, number: int, line: bytes, error: ValidationError) -> BadFile:
    if _is_json(line) and isinstance(data := json.loads(line), dict):
        _known_schema(data.get("schema_version"), f"{path}:{number}")
    return BadFile(
        f"{path}:{number}: the line is damaged ({_brief(error)}); all other lines are untouched. Restore it from a "
        f"copy, or take it out and let `crosswind run` play that episode again: {_removal_command(path, number)}"
    )


def _removal_command(path: Path, number: int) -> str:
    """A command that takes a line out and leaves a copy."""
    return f"sed -i.bak {number}d {shlex.quote(str(path))}"


def _brief(error: Exception) -> str:
    """The first complaint, without the text complained of."""
    if isinstance(error, ValidationError):
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"]))
        said = first["msg"].removeprefix("Value error, ")
        return f"{place}: {said}" if place else said
    return str(error)


# ---------------------------------------------------------------- writing


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def as_line(record: Record) -> bytes:
    """A record as its line."""
    try:
        leave_out = {name for name in ("finish", "mark") if getattr(record, name) is None}  # as earlier versions wrote
        return record.model_dump_json(exclude=leave_out).encode() + b"\n"
    except (PydanticSerializationError, UnicodeEncodeError):  # half a character in a text that nobody clipped
        return json.dumps(plain(record.model_dump()), ensure_ascii=False).encode() + b"\n"


class Store:
    """A folder that a run writes to, locked for as long as it is open."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self.path = self.folder / EPISODES
        self.backup: Path | None = None  # of lines that others took the place of
        self.cut = 0  # bytes of a torn line that were cut off
        self._written = self._safe = 0  # lines written, and lines that are on the disk
        self._size = self._synced = 0  # bytes
        self._failed = False
        self._lines = -1  # descriptor of the episodes, once they are open
        if self.folder.is_dir() and not (self.folder / MANIFEST).exists():
            half = {path.name for path in self.folder.glob(f"{MANIFEST}.*.new")}
            others = sorted(p.name for p in self.folder.iterdir() if p.name not in {LOCK, *half})
            if EPISODES in others:
                raise BadFile(f"{self.folder}: has {EPISODES} and no {MANIFEST}; restore it, or choose another --out")
            if others:
                raise CrosswindError(
                    f"{self.folder}: holds other files ({others[0]}, ...); choose a new folder as --out"
                )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise _unwritable(self.folder, error) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            held = os.read(self._lock, 200).decode("utf-8", "replace").strip()
            os.close(self._lock)
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise _unwritable(self.folder, error) from None
            raise Locked(
                f"{self.folder}: another run is writing here ({held or 'unknown'}); wait for it, stop it, or choose "
                "another --out. The lock goes with its owner: there is no file to delete"
            ) from None
        for left in self.folder.glob(f"{MANIFEST}.*.new"):
            left.unlink(missing_ok=True)  # of a run that was killed
        with suppress(OSError):  # only words for anyone who finds it locked
            os.ftruncate(self._lock, 0)
            os.write(self._lock, f"pid {os.getpid()} on {socket.gethostname()} since {now()}".encode())

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the folder back. What the disk did not take is cut off, since it may be there in part."""
        if self._failed:
            with suppress(OSError):
                os.ftruncate(self._lines, self._synced)
        for fd in (self._lines, self._lock):
            if fd >= 0:
                os.close(fd)
        self._lines = self._lock = -1

    # -- the manifest

    def begin(self, manifest: Manifest) -> Manifest:
        """Start a run here or continue it; another configuration than before is refused."""
        if (self.folder / MANIFEST).exists():
            before = load_manifest(self.folder)
            if changed := differences(before, manifest):
                more = f" and {len(changed) - SHOWN} more" if len(changed) > SHOWN else ""
                hint = (
                    f"judge it again (crosswind rescore {self.folder} --write), "
                    if before.judge != manifest.judge
                    else ""
                )
                raise CrosswindError(
                    f"{self.folder}: holds a run with another configuration: {'; '.join(changed[:SHOWN])}{more}. "
                    f"To resume it, {hint}use the settings of that run; otherwise choose another --out"
                )
            manifest = manifest.model_copy(update={"created": before.created, "planned": before.planned})
        return self.write(manifest)

    def write(self, manifest: Manifest, **changes: Any) -> Manifest:
        """Put the manifest in place, whole or not at all."""
        manifest = manifest.model_copy(update={**changes, "updated": now()})
        try:
            replace_file(self.folder / MANIFEST, (manifest.model_dump_json(indent=1) + "\n").encode())
        except OSError as error:
            raise _unwritable(self.folder, error) from None
        return manifest

    # -- the episodes

    def resume(self, each: Callable[[Record], None], *, keep_errors: bool = False) -> set[str]:
        """Open the episodes for writing and give the keys of those that are finished.

        A torn last line is cut off and kept aside. Errors of the infrastructure are taken out, to be played again,
        unless they are to be kept. `each` is told of every record that stays.
        """
        keys: set[str] = set()
        errors, torn, at = False, b"", 0
        for number, record, line in _lines(self.path):
            if record is None:
                torn = line
                break
            if record.key in keys:
                raise BadFile(
                    f"{self.path}:{number}: repeats the episode {record.key!r}; take one of the two lines out: "
                    f"{_removal_command(self.path, number)}"
                )
            at += len(line)
            if record.outcome == "error" and not keep_errors:
                errors = True
            else:
                keys.add(record.key)
                each(record)
        try:
            if torn:
                append_file(self.folder / TORN, torn + b"\n")
                with synced_file(self.path, 0) as file:
                    file.truncate(at)
                self.cut = len(torn)
            if errors:
                self._set_aside()
            self._open()
        except OSError as error:
            raise _unwritable(self.folder, error) from None
        return keys

    def _set_aside(self) -> None:
        """Move the errors to a file of their own. Each file is replaced whole, the errors first: an interruption in
        between leaves them in both, and the next attempt adds no line twice."""
        fresh, retried = self.path.with_name(EPISODES + ".new"), self.folder / RETRIED
        before = [line for _, _, line in _lines(retried, []) if line.endswith(b"\n")]
        known, errors = set(before), bytearray()
        with synced_file(fresh) as kept:
            for _, record, line in _lines(self.path):
                whole = line if line.endswith(b"\n") else line + b"\n"
                if record is not None and record.outcome != "error":
                    kept.write(whole)
                elif record is not None and whole not in known:
                    errors += whole
        replace_file(retried, b"".join(before) + errors)
        fresh.replace(self.path)
        sync_folder(self.folder)

    def retried(self) -> Iterator[Record]:
        """The errors that were set aside: they count nowhere, but they cost something."""
        return (record for _, record, _ in _lines(self.folder / RETRIED, []) if record)

    def _open(self) -> None:
        self._lines = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        self._size = os.fstat(self._lines).st_size
        if self._size and os.pread(self._lines, 1, self._size - 1) != b"\n":  # a whole record, torn at its very end
            os.write(self._lines, b"\n")
            self._size += 1
        os.fsync(self._lines)
        self._synced = self._size
        sync_folder(self.folder)

    def append(self, record: Record) -> None:
        """Write a finished episode; when this raises, no part of it is left. A crash of this process cannot undo it."""
        line = as_line(record)
        try:
            written = os.write(self._lines, line)
            while written < len(line):
                written += os.write(self._lines, line[written:])
        except OSError as error:
            with suppress(OSError):  # if this fails too, a torn line stays, and is cut off when the run goes on
                os.ftruncate(self._lines, self._size)
            raise self._full(error) from None
        self._size += len(line)
        self._written += 1

    @property
    def behind(self) -> int:
        """Lines that are written and may not be on the disk yet."""
        return self._written - self._safe

    def sync(self) -> None:
        """See to it that what was written is on the disk, whatever happens to the machine. May run in a thread."""
        size, lines = self._size, self._written
        try:
            os.fsync(self._lines)
        except OSError as error:
            self._failed = True
            raise self._full(error) from None
        self._synced, self._safe = size, lines

    def _full(self, error: OSError) -> CannotStore:
        return CannotStore(
            f"{self.path}: cannot be written to ({error.strerror}); every episode before that is safe. Make room, "
            "then give the same command to continue"
        )

    @contextmanager
    def rewriting(self) -> Iterator[Callable[[Record], None]]:
        """Put other lines in the place of all; the file as it was stays next to it (`backup`)."""
        fresh = self.path.with_name(EPISODES + ".new")
        stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
        self.backup = self.path.with_name(f"{EPISODES}.{stamp}")
        try:
            with synced_file(fresh) as file:
                yield lambda record: file.writelines((as_line(record),))
            shutil.copy2(self.path, self.backup)
            fresh.replace(self.path)
            sync_folder(self.folder)
        except OSError as error:
            raise _unwritable(self.folder, error) from None
        finally:
            fresh.unlink(missing_ok=True)


def same_ending(*runs: StoredRun) -> None:
    """Refuse runs that end episodes in different ways: what differs could be the way of judging."""
    first = runs[0]
    for other in runs[1:]:
        if other.manifest.ending != first.manifest.ending:
            raise CrosswindError(
                f"{first.folder} ended episodes by {first.manifest.ending} and {other.folder} by "
                f"{other.manifest.ending}; only runs with the same ending can be compared. Play one of them again "
                f"with --ending {first.manifest.ending} or {other.manifest.ending}"
            )


def differences(before: Manifest, after: Manifest) -> list[str]:
    """How two configurations differ, in words."""
    old, new = before.model_dump(mode="json", include=set(SAME)), after.model_dump(mode="json", include=set(SAME))
    return [line for name in SAME for line in _differ(name, old[name], new[name])]


def _differ(name: str, old: Any, new: Any) -> Iterator[str]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys((*old, *new)):
            yield from _differ(f"{name}.{key}", old.get(key), new.get(key))
    elif old != new:
        code = name == "settings.code"
        yield "the agent's code has changed" if code else f"{name} was {_cut(old)}, now {_cut(new)}"


def _cut(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


def _unwritable(folder: Path, error: OSError) -> CrosswindError:
    what = f"{folder}: cannot be written to ({error.strerror})"
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
        return CannotStore(f"{what}; every finished episode is safe. Make room, then give the same command again")
    return CrosswindError(f"{what}; choose another folder as --out, or fix its permissions")
