"""The folder of a run: a manifest, one line for each finished episode, and a lock that ends with its owner.

    run.json               what is run, written atomically; `Manifest`
    episodes.jsonl         one line of JSON for each finished episode, on the disk before it counts; `Record`
    segments/              of a large run: earlier lines, compressed, 10,000 to a part with an index; `segments.py`
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
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from lzma import LZMAError
from pathlib import Path
from typing import Any

from pydantic_core import PydanticSerializationError

from crosswind.base import files
from crosswind.base.errors import BadFile, CrosswindError
from crosswind.base.files import append_file, lines_in, open_regular, regular, replace_file, sync_folder, synced_file
from crosswind.episodes.brief import Brief, Told
from crosswind.episodes.play import plain, shorter
from crosswind.episodes.record import Record
from crosswind.runs.lines import T, left_out, lenient, lines_of, removal_command, whole
from crosswind.runs.manifest import CODE_CHANGED
from crosswind.runs.manifest import EPISODES as EPISODES
from crosswind.runs.manifest import MANIFEST as MANIFEST
from crosswind.runs.manifest import SHOWN as SHOWN
from crosswind.runs.manifest import Manifest as Manifest
from crosswind.runs.manifest import differences as differences
from crosswind.runs.manifest import load_manifest as load_manifest
from crosswind.runs.manifest import now as now
from crosswind.runs.manifest import shortfall as shortfall
from crosswind.runs.proxy_sessions import interrupted_sessions, is_same_session
from crosswind.runs.segments import INDEX, SEALED, Segment, close, seal, segments, tells_of
from crosswind.runs.segments import SEGMENTS as SEGMENTS

ROOMS = (50_000, 5_000, 500)  # characters of the arguments or the result of a call in a record that is too long
LOCK, TORN, RETRIED = "lock", "episodes.jsonl.torn", "retried.jsonl"


class CannotStore(CrosswindError):
    """An episode could not be written: the disk is full or gone. What was written before is safe."""


class Locked(CrosswindError):
    """Another process is writing to the folder."""


@dataclass(slots=True)
class StoredRun:
    """What a folder holds. An unfinished run is as readable as a finished one."""

    folder: Path
    manifest: Manifest
    records: list[Record]
    problems: list[str] = field(default_factory=list)  # what a reader should know, each a sentence
    damage: str = ""  # the one about damaged lines, with what to do

    @property
    def lacks(self) -> str:
        """Why it is not whole, in words; nothing where it is."""
        return shortfall(self.manifest, len(self.records))

    @property
    def told(self) -> Sequence[Told]:
        """How its episodes ended."""
        return self.records

    def whole(self, some: Iterable[Told]) -> list[Record]:
        """The records of some of its episodes."""
        return list(self.each(some))

    def each(self, some: Iterable[Told]) -> Iterator[Record]:
        """The same one after the other."""
        return (one for one in some if isinstance(one, Record))


@dataclass(slots=True)
class BriefRun:
    """The same without what was said and done, which stays on the disk: a run of any size."""

    folder: Path
    manifest: Manifest
    told: list[Told]  # briefs, and whole records of what has no line yet
    problems: list[str] = field(default_factory=list)
    damage: str = ""

    @property
    def lacks(self) -> str:
        """Why it is not whole, in words; nothing where it is."""
        return shortfall(self.manifest, len(self.told))

    def whole(self, some: Iterable[Told]) -> list[Record]:
        """The records of some of its episodes, in the order given."""
        asked = list(some)
        found = {record.key: record for record in self.each(asked)}
        return [found[one.key] for one in asked]

    def each(self, some: Iterable[Told]) -> Iterator[Record]:
        """The same one after the other, in the order of the run: no more than one is in memory."""
        asked = list(some)
        expected = {one.key for one in asked}
        briefs = [one for one in asked if isinstance(one, Brief)]
        for record in read_records(self.folder, (one.at for one in briefs)):
            if record.key not in expected:
                said = f"an index names other episodes than its lines hold, such as {record.key!r}"
                raise BadFile(f"{self.folder / SEGMENTS}: {said}; delete the files *{INDEX}: they are made again")
            yield record
        yield from (one for one in asked if isinstance(one, Record))


AnyRun = StoredRun | BriefRun


def load_run(folder: Path | str, *, damaged: bool = False) -> StoredRun:
    """Read the folder of a run. Raises `BadFile` where it is none, or where a line before the last is damaged.

    With `damaged` such lines are left out, and named among the problems.
    """
    manifest, records, problems, damage = _loaded(Path(folder), iter_records, damaged)
    whole = [record for record in records if isinstance(record, Record)]
    return StoredRun(Path(folder), manifest, whole, problems, damage)


def open_run(folder: Path | str, *, damaged: bool = False) -> BriefRun:
    """The same, of a run of any size: its episodes stay on the disk until they are asked for."""
    return BriefRun(Path(folder), *_loaded(Path(folder), iter_briefs, damaged))


def _loaded(
    folder: Path, read: Callable[[Path, list[str], list[str] | None], Iterator[Told]], damaged: bool
) -> tuple[Manifest, list[Told], list[str], str]:
    manifest = load_manifest(folder)
    problems: list[str] = []
    lost: list[str] = []
    left = interrupted_sessions(folder, problems)  # before the records: what a proxy records meanwhile is in both
    told = list(read(folder, problems, lost if damaged else None))
    if damage := left_out(folder, lost, len(told)):
        problems.append(damage)
    written = len(told)
    known = list(iter_records(folder, None, [])) if left else []
    for session in left:
        record = session.record(len(told))
        if not any(is_same_session(record, other) for other in known):
            told.append(record)
    if cut := len(told) - written:
        what = f"{cut} sessions were" if cut > 1 else "1 session was"
        problems.append(f"{what} cut short: a proxy was killed; the next one that logs here completes the record")
    problems += (f"{kind} was never played: {why}" for kind, why in manifest.never_met.items())
    if manifest.state != "finished":
        of = (
            f"{len(told)} of {manifest.planned} episodes"
            if manifest.planned
            else f"{len(told)} episode{'s' * (len(told) != 1)}"
        )
        goes_on = "a proxy may add to it" if manifest.of_proxy else "the same command with the same agent continues it"
        problems.append(f"the run is not finished ({of}); {goes_on}")
    elif lacks := shortfall(manifest, len(told)):
        problems.append(f"{lacks}; the same command plays them again")
    return manifest, told, problems, damage


def iter_records(
    folder: Path | str, problems: list[str] | None = None, damaged: list[str] | None = None
) -> Iterator[Record]:
    """The finished episodes of a run one after the other, each once; `problems` collects what is odd.

    A damaged line raises `BadFile`, or is named in `damaged`.
    """
    for part in segments(Path(folder)):
        with lenient(damaged):
            for number, line in enumerate(part.lines(), 1):
                with lenient(damaged, f"line {number} of {part.path.name}"):
                    yield whole(Record.model_validate_json, part.path, number, line)
    yield from last_records(Path(folder), problems, damaged)


def last_records(folder: Path, problems: list[str] | None = None, damaged: list[str] | None = None) -> Iterator[Record]:
    """Those of them that are in no sealed part."""
    return (record for _, record in _last(folder, problems, damaged, Record.model_validate_json))


def iter_briefs(
    folder: Path | str, problems: list[str] | None = None, damaged: list[str] | None = None
) -> Iterator[Brief]:
    """The same without what was said and done: fast, and small enough to hold a million at once.

    Sealed parts are read from their index. `Brief.at` is what `read_records` finds the episode by.
    """
    shared: dict[Any, Any] = {}
    seen = set[int]()
    first = 0
    for part in segments(Path(folder)):
        with lenient(damaged):
            for brief in part.briefs(first, shared):
                if (mark := hash(brief.key)) in seen:
                    raise _twice(Path(folder), part, brief.key)
                seen.add(mark)
                yield brief
        first += part.count()
    for number, brief in _last(Path(folder), problems, damaged, Brief.read):
        brief.at = first + number - 1
        yield brief


def _twice(folder: Path, part: Segment, key: str) -> BadFile:
    return BadFile(f"{part.path}: repeats the episode {key!r}; restore {folder / SEGMENTS} from a copy")


def read_records(folder: Path | str, lines: Iterable[int]) -> Iterator[Record]:
    """Some episodes of a run by their line (`Brief.at`), in the order of the run; little else is read."""
    wanted, first, path = sorted(set(lines)), 0, Path(folder) / EPISODES
    for part in segments(Path(folder)):
        count = part.count()
        here = [at - first for at in wanted if first <= at < first + count]
        for number, line in part.at(here):
            yield whole(Record.model_validate_json, part.path, number + 1, line)
        first += count
    left = {at - first for at in wanted if at >= first}
    if left and path.exists():
        with open_regular(path) as file:
            for number, line in enumerate(islice(lines_in(file, path), max(left) + 1)):
                if number in left:
                    yield whole(Record.model_validate_json, path, number + 1, line)


def line_of(folder: Path | str, key: str) -> int | None:
    """The line (`Brief.at`) of the episode with exactly this key; None where a look at every brief must tell."""
    first, path = 0, Path(folder) / EPISODES
    with suppress(BadFile, OSError, EOFError, LZMAError, ValueError, TypeError, RecursionError):
        for part in segments(Path(folder)):
            if (at := part.find(key)) is not None:
                return first + at
            first += part.count()
        with open_regular(path) as file:
            return next((first + n for n, line in enumerate(lines_in(file, path)) if tells_of(line, key)), None)
    return None


def episodes_in(folder: Path | str) -> int:
    """How many episodes a folder holds, by its lines; -1 where it has no file for them."""
    path = Path(folder) / EPISODES
    if not path.exists():
        return -1
    with open_regular(path) as file:
        last = sum(piece.count(b"\n") for piece in iter(lambda: file.read(1 << 20), b""))
    return last + sum(part.count() for part in segments(Path(folder)))


def raw_lines(folder: Path | str) -> Iterator[bytes]:
    """The lines of a run as they are."""
    for part in segments(Path(folder)):
        yield from part.lines()
    with open_regular(path := Path(folder) / EPISODES) as file:
        yield from lines_in(file, path)


def _last(
    folder: Path, problems: list[str] | None, damaged: list[str] | None, parse: Callable[[bytes], T]
) -> Iterator[tuple[int, T]]:
    """What the lines that are not sealed say, each episode once, with the numbers of the lines."""
    path, seen = folder / EPISODES, set[str]()
    for number, found, _ in lines_of(path, parse, damaged):
        if found is None:
            if problems is not None:
                problems.append(f"line {number} of {path.name} is torn and left out; its episode is not finished")
        elif found.key in seen:
            if problems is not None:
                problems.append(f"line {number} of {path.name} repeats the episode {found.key!r} and is left out")
        else:
            seen.add(found.key)
            yield number, found


# ---------------------------------------------------------------- writing


def as_line(record: Record) -> bytes:
    """A record as its line, with less of what is in its calls and results where the line could not be read back."""
    line = _dumped(record)
    for room in ROOMS:
        if len(line) <= files.LONGEST:
            break
        line = _dumped(record.model_copy(update={"steps": tuple(shorter(step, room) for step in record.steps)}))
    return line


def _dumped(record: Record) -> bytes:
    try:
        leave_out = {name for name in ("finish", "mark") if getattr(record, name) is None}  # as earlier versions wrote
        return record.model_dump_json(exclude=leave_out).encode() + b"\n"
    except (PydanticSerializationError, UnicodeEncodeError):  # half a character in a text that nobody clipped
        return json.dumps(plain(record.model_dump()), ensure_ascii=False).encode() + b"\n"


class Store:
    """A folder that a run writes to, locked for as long as it is open.

    Each time `sealed` lines were written they become a part of their own, which is compressed. 0: never, as for runs
    whose writers look at whole records when they continue.
    """

    def __init__(self, folder: Path | str, *, sealed: int = SEALED) -> None:
        self.folder, self.sealed = Path(folder).absolute(), sealed  # an agent may change the working directory
        self.path = self.folder / EPISODES
        self.cut = 0  # bytes of a torn line that were cut off
        self._written = self._safe = 0  # lines written, and lines that are on the disk
        self._size = self._synced = 0  # bytes
        self._failed = False
        self._lines = -1  # descriptor of the episodes, once they are open
        self._last = 0  # lines that are not sealed
        self._closed: list[Segment] = []  # parts to compress
        self._swapping, self._sealing = threading.Lock(), threading.Lock()
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
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            self.folder.mkdir(mode=0o700, exist_ok=True)
            self._lock = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
            regular(self._lock, self.folder / LOCK)
        except OSError as error:
            raise unwritable(self.folder, error) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            held = os.read(self._lock, 200).decode("utf-8", "replace").strip()
            os.close(self._lock)
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise unwritable(self.folder, error) from None
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
                hint = "restore its old code and " if CODE_CHANGED in changed else ""
                if before.judge != manifest.judge:
                    hint = f"judge it again (crosswind rescore {self.folder} --write), {hint}"
                raise CrosswindError(
                    f"{self.folder}: holds a run with another configuration: {'; '.join(changed[:SHOWN])}{more}. "
                    f"To resume it, {hint}use the settings of that run; otherwise choose another --out"
                )
            kept = {name: getattr(before, name) for name in ("created", "planned", "never_met")}
            manifest = manifest.model_copy(update=kept)
        return self.write(manifest)

    def write(self, manifest: Manifest, **changes: Any) -> Manifest:
        """Put the manifest in place, whole or not at all."""
        manifest = manifest.model_copy(update={**changes, "updated": now()})
        try:
            replace_file(self.folder / MANIFEST, (manifest.model_dump_json(indent=1) + "\n").encode())
        except OSError as error:
            raise unwritable(self.folder, error) from None
        return manifest

    # -- the episodes

    def resume(self, each: Callable[[Told], None], *, keep_errors: bool = False) -> set[str]:
        """Open the episodes for writing and give the keys of those that are finished.

        A torn last line is cut off and kept aside. Errors of the infrastructure are taken out, to be played again,
        unless they are to be kept. `each` is told of every episode that stays: of its record, or of its brief where it
        is sealed.
        """
        keys: set[str] = set()
        errors, torn, at = False, b"", 0
        parts = self._resume_sealed(keys, each, keep_errors)
        for number, record, line in lines_of(self.path, Record.model_validate_json):
            if record is None:
                torn = line
                break
            if record.key in keys:
                raise BadFile(
                    f"{self.path}:{number}: repeats the episode {record.key!r}; take one of the two lines out: "
                    f"{removal_command(self.path, number)}"
                )
            at += len(line)
            if record.outcome == "error" and not keep_errors:
                errors = True
            else:
                keys.add(record.key)
                self._last += 1
                each(record)
        try:
            if torn:
                append_file(self.folder / TORN, torn + b"\n")
                with synced_file(self.path, 0) as file:
                    file.truncate(at)
                self.cut = len(torn)
            if errors or parts:
                self._set_aside(parts)
            self._open()
        except OSError as error:
            raise unwritable(self.folder, error) from None
        return keys

    def _resume_sealed(self, keys: set[str], each: Callable[[Told], None], keep_errors: bool) -> list[Segment]:
        """Note the keys of sealed parts; gives those that hold errors to be taken out."""
        dirty, shared = [], dict[Any, Any]()
        for part in segments(self.folder):
            whole, before = self._sealed_now(part), len(keys)
            errors = 0
            for brief in whole.briefs(before, shared):
                if brief.outcome == "error" and not keep_errors:
                    errors += 1
                elif brief.key in keys:
                    raise _twice(self.folder, whole, brief.key)
                else:
                    keys.add(brief.key)
                    each(brief)
            dirty += [whole] if errors else []
        return dirty

    def _sealed_now(self, part: Segment) -> Segment:
        """A part that was closed before a crash, compressed; one whose index is gone, indexed."""
        try:
            return part if part.head() else seal(part)
        except OSError:  # it is read as it is
            return part

    def _set_aside(self, parts: Sequence[Segment]) -> None:
        """Move the errors to a file of their own. Each file is replaced whole, the errors first: an interruption in
        between leaves them in both, and the next attempt adds no line twice."""
        fresh, retried = self.path.with_name(EPISODES + ".new"), self.folder / RETRIED
        before = [line for _, _, line in lines_of(retried, Record.model_validate_json, []) if line.endswith(b"\n")]
        known, errors = set(before), bytearray()
        for part in parts:
            for line in part.lines():
                if line not in known and Brief.read(line).outcome == "error":
                    errors += line
        with synced_file(fresh) as kept:
            for _, record, line in lines_of(self.path, Record.model_validate_json):
                whole = line if line.endswith(b"\n") else line + b"\n"
                if record is not None and record.outcome != "error":
                    kept.write(whole)
                elif record is not None and whole not in known:
                    errors += whole
        replace_file(retried, b"".join(before) + errors)
        for part in parts:
            seal(part, (line for line in part.lines() if Brief.read(line).outcome != "error"))
        fresh.replace(self.path)
        sync_folder(self.folder)

    def retried(self) -> Iterator[Record]:
        """The errors that were set aside: they count nowhere, but they cost something."""
        lines = lines_of(self.folder / RETRIED, Record.model_validate_json, [])
        return (record for _, record, _ in lines if record)

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
        self.append_line(as_line(record))

    def append_line(self, line: bytes) -> None:
        """The same of an episode that is a line already."""
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
        self._last += 1
        if self.sealed and self._last >= self.sealed:
            self._close_part()

    def _close_part(self) -> None:
        """Make the lines so far a part of their own; `sync` compresses it, or this call where that does not keep up."""
        try:
            with self._swapping:
                os.fsync(self._lines)
                part = close(self.folder, self.path)
                os.close(self._lines)
                self._open()
                self._safe, self._last = self._written, 0
        except OSError as error:
            raise self._full(error) from None
        self._closed.append(part)
        if len(self._closed) > 1:
            self._seal_parts()

    def _seal_parts(self) -> None:
        """Compress the parts that were closed. Where the disk is full they stay as they are, for a later run."""
        with self._sealing, suppress(OSError):
            while self._closed:
                seal(self._closed.pop())

    @property
    def behind(self) -> int:
        """Lines that are written and may not be on the disk yet."""
        return self._written - self._safe

    def sync(self) -> None:
        """See to it that what was written is on the disk, whatever happens to the machine. May run in a thread."""
        try:
            with self._swapping:
                size, lines = self._size, self._written
                os.fsync(self._lines)
                self._synced, self._safe = size, lines
        except OSError as error:
            self._failed = True
            raise self._full(error) from None
        self._seal_parts()

    def _full(self, error: OSError) -> CannotStore:
        return CannotStore(
            f"{self.path}: cannot be written to ({error.strerror}); every episode before that is safe. Make room, "
            "then give the same command to continue"
        )


def same_ending(*runs: AnyRun) -> None:
    """Refuse runs that end episodes in different ways: what differs could be the way of judging."""
    first = runs[0]
    for other in runs[1:]:
        if other.manifest.ending != first.manifest.ending:
            raise CrosswindError(
                f"{first.folder} ended episodes by {first.manifest.ending} and {other.folder} by "
                f"{other.manifest.ending}; only runs with the same ending can be compared. Play one of them again "
                f"with --ending {first.manifest.ending} or {other.manifest.ending}"
            )


def unwritable(folder: Path, error: OSError) -> CrosswindError:
    """The error for a folder that cannot be written to."""
    what = f"{folder}: cannot be written to ({error.strerror})"
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
        return CannotStore(f"{what}; every finished episode is safe. Make room, then give the same command again")
    return CrosswindError(f"{what}; choose another folder as --out, or fix its permissions")
