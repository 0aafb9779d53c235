"""Find out what a path holds, and read it: a folder of a run, a file of JSON or JSON lines, an archive, or stdin."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from crosswind.base.errors import BadFile
from crosswind.base.files import open_regular
from crosswind.runs.segments import segments
from crosswind.watch.observed import Data, ObservedEpisode, parsed
from crosswind.watch.sources import listings, runs, trajectories
from crosswind.watch.sources.spans import SpanReader, is_span, spans_of

FORMATS = (
    "a run folder, OTLP-JSON or OpenInference spans, ATIF trajectories, an Inspect log, or tools/list snapshots as JSON"
)
LARGEST = 512 * 2**20  # bytes of a file that is one JSON document, or of a line; larger logs come as JSON lines
POLL = 1.0  # seconds between looks at a followed log
Wait = Callable[[], bool]  # waits for more lines; False: nobody wants to wait any longer


def pause() -> bool:
    time.sleep(POLL)
    return True


def read_episodes(path: Path | str, *, follow: Wait | None = None) -> Iterator[ObservedEpisode]:
    """The episodes of a log in the order in which they ended. With `follow`, wait for more at its end."""
    if str(path) == "-":
        yield from _of_lines(_numbered(sys.stdin.buffer, "stdin", None), "stdin", follow)
        return
    path = Path(path)
    if not path.exists():
        raise BadFile(f"{path}: no such file or folder; expected {FORMATS}")
    if path.is_dir():
        yield from _of_folder(path, follow)
    elif path.suffix == ".eval":
        yield from trajectories.inspect_archive(path)
    else:
        yield from _of_file(path, follow)


def _of_folder(path: Path, follow: Wait | None) -> Iterator[ObservedEpisode]:
    if runs.is_run(path):
        seen = set[str]()
        for episode in _of_run(path, follow):  # a copy of a run may hold lines in two of its files
            if not episode.id or episode.id not in seen:
                seen.add(episode.id)
                yield episode
        yield from runs.open_sessions(path)
        return
    files = sorted(p for p in path.iterdir() if p.suffix in (".json", ".jsonl", ".eval") or p.name.endswith(".json.gz"))
    if not files:
        raise BadFile(f"{path}: contains no log; expected {FORMATS}")
    for file in files:
        yield from read_episodes(file)


def _of_run(path: Path, follow: Wait | None) -> Iterator[ObservedEpisode]:
    for part in segments(path):  # of a large run
        yield from _of_lines(enumerate(part.lines(), 1), str(part.path), None)
    file = path / runs.EPISODES
    if follow is not None and not file.exists():
        while not file.exists() and follow():
            pass
    if file.exists():
        open_regular(file).close()  # else nothing of a run is read: a link, or a pipe that never ends
        yield from _of_file(file, follow)


def _of_file(path: Path, follow: Wait | None) -> Iterator[ObservedEpisode]:
    try:
        with _opened(path) as file:
            head = file.peek(1 << 16)[: 1 << 16].lstrip() if isinstance(file, io.BufferedReader) else b""
            if _is_lines(path, head) or (follow is not None and not head):
                reopen = _Reopened(path) if follow is not None and path.suffix != ".gz" else None
                yield from _of_lines(_numbered(file, str(path), follow, reopen), str(path), follow)
                return
            text = file.read(LARGEST + 1)
            if len(text) > LARGEST:
                raise BadFile(
                    f"{path}: one JSON document over {LARGEST >> 20} MiB; write the log as JSON lines instead"
                )
            document = parsed(text, str(path))
    except (OSError, EOFError) as error:
        raise BadFile(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from None
    except (ValueError, RecursionError) as error:
        raise BadFile(f"{path}: is not JSON ({error}); expected {FORMATS}") from None
    yield from of_document(document, str(path))


def _opened(path: Path) -> IO[bytes]:
    file = open_regular(path, links=True)  # a pipe or a device could be waited for without end
    if path.suffix == ".gz":
        file.close()
        return io.BufferedReader(gzip.open(path, "rb"), 1 << 20)
    return io.BufferedReader(file.detach(), 1 << 20)


def _is_lines(path: Path, head: bytes) -> bool:
    """Is it JSON lines? By its name, or because the first line is a whole document and more follows."""
    if path.name.removesuffix(".gz").endswith((".jsonl", ".ndjson")):
        return True
    first, newline, rest = head.partition(b"\n")
    if not newline or not rest.strip() or not first.startswith(b"{"):
        return False
    try:
        json.loads(first)
    except ValueError:
        return False
    return True


class _Reopened:
    """Notices that a followed log was rotated or cut: another file has its name, or it is shorter than was read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, file: IO[bytes]) -> IO[bytes] | None:
        """The file to go on with, from its start; None where it is still the same one."""
        try:
            now = self.path.stat()
        except OSError:
            return None  # moved away, and its successor is not there yet
        was = os.fstat(file.fileno())
        if (now.st_dev, now.st_ino) != (was.st_dev, was.st_ino):
            return _opened(self.path)
        if now.st_size < file.tell():
            file.seek(0)
            return file
        return None


def _numbered(
    file: IO[bytes], name: str, follow: Wait | None, reopen: _Reopened | None = None
) -> Iterator[tuple[int, bytes]]:
    """Whole lines with their numbers. A followed log's torn last line is waited for; the empty line says so."""
    number, held = 0, b""
    with ExitStack() as later:  # files that took the place of the first one
        while True:
            line = file.readline(LARGEST)
            if not line:
                if follow is None:
                    break
                yield number, b""
                if not follow():
                    break
                if reopen is not None and (other := reopen(file)) is not None:
                    if other is not file:
                        whole, end, _ = (held + file.read(LARGEST)).rpartition(b"\n")  # what the last look missed
                        yield from enumerate((whole + end).splitlines(), number + 1)
                        later.pop_all().close()
                        later.callback(other.close)
                    file, number, held = other, 0, b""
                continue
            held += line
            if len(held) > LARGEST:
                raise BadFile(f"{name}, line {number + 1}: over {LARGEST >> 20} MiB; expected a record per line")
            if not held.endswith(b"\n") and (follow is not None or len(line) == LARGEST):
                continue
            number += 1
            yield number, held
            held = b""
        if held:
            yield number + 1, held


def _of_lines(lines: Iterator[tuple[int, bytes]], name: str, follow: Wait | None) -> Iterator[ObservedEpisode]:
    """Episodes out of JSON lines, whose format each line shows."""
    reader, session = SpanReader(), runs.SessionReader()
    torn: BadFile | None = None
    for number, line in lines:
        if follow is not None:
            yield from reader.idle()
        if not line.strip():
            continue
        if torn is not None:
            raise torn
        try:
            data = parsed(line, f"{name}, line {number}")
        except (ValueError, RecursionError):
            torn = BadFile(f"{name}, line {number}: is not JSON; repair or remove the line")
            continue  # the last line of a log that is being written may be torn
        if not isinstance(data, dict):
            raise BadFile(f"{name}, line {number}: expected a JSON object; got {type(data).__name__}")
        yield from _of_line(data, f"{name}, line {number}", reader, session)
    yield from session.end()
    yield from reader.end()


def _of_line(data: Data, where: str, reader: SpanReader, session: runs.SessionReader) -> Iterator[ObservedEpisode]:
    if is_span(data):
        yield from reader.add(spans_of(data, where))
    elif runs.is_record(data):
        yield runs.episode_of(data, where)
    elif session.takes(data):
        session.add(data, where)
    else:
        yield from of_document(data, where)


def of_document(data: Any, where: str) -> Iterator[ObservedEpisode]:
    """Episodes out of one JSON document."""
    if isinstance(data, list) and data and all(isinstance(one, dict) for one in data):
        if listings.is_listing(data):
            yield listings.snapshot_of(data, where)
            return
        reader, session = SpanReader(), runs.SessionReader()
        for nth, one in enumerate(data, 1):
            yield from _of_line(one, f"{where}, item {nth}", reader, session)
        yield from reader.end()
    elif isinstance(data, dict) and is_span(data):
        reader = SpanReader()
        yield from reader.add(spans_of(data, where))
        yield from reader.end()
    elif isinstance(data, dict) and runs.is_record(data):
        yield runs.episode_of(data, where)
    elif trajectories.is_atif(data):
        yield trajectories.atif_episode(data, where)
    elif trajectories.is_inspect(data):
        yield from trajectories.inspect_episodes(data, where)
    elif listings.is_listing(data):
        yield listings.snapshot_of(data, where)
    else:
        raise BadFile(f"{where}: is in no known format; expected {FORMATS}")
