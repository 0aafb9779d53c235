"""Sealed parts of a large run: lines that will not change any more, compressed, each part with an index.

    segments/000001.jsonl.xz    episodes in the order in which they ended, in blocks that can be read alone (`xzcat`)
    segments/000001.index.xz    a head (`Head`), then the brief of each episode as a row of JSON
    segments/000002.jsonl       a part that was closed and is not compressed yet; beside it the other two do not count

A part is closed by giving the file of episodes this name, and compressed afterwards: at no moment are its episodes in
two places that count, or in none. An index that is missing or belongs to other lines is made again from the lines.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path

from pydantic import ValidationError

from crosswind.base.errors import BadFile
from crosswind.base.files import LONGEST, lines_in, open_regular, real_folder, sync_folder, synced_file
from crosswind.core.types import Model
from crosswind.episodes.brief import COLUMNS, Brief, as_row

SEGMENTS, LINES, PACKED, INDEX = "segments", ".jsonl", ".jsonl.xz", ".index.xz"
SEALED = 10_000  # episodes of a part
BLOCK = 256  # episodes that are compressed together
PRESET = 1  # of xz: its window of a block holds what lines share, and more effort gains little
CHUNK = 1 << 20  # bytes that are read or unpacked at once
ROW = 1 << 22  # bytes of a row of an index
LEAST = 16  # bytes that an episode takes, compressed; what names more of them in less is none of ours
MEMORY = 1 << 26  # bytes that unpacking may take


class Head(Model):
    """What an index is of."""

    schema_version: int = 1
    episodes: int
    errors: int  # of the infrastructure among them
    size: int  # of the file of lines, in bytes
    blocks: tuple[int, ...]  # where in it each block begins
    block: int  # episodes in each but the last
    columns: tuple[str, ...] = COLUMNS

    @property
    def sound(self) -> bool:
        """Can it be what we wrote? The sender of a run may have written it."""
        if self.block < 1 or not 0 <= self.errors <= self.episodes <= self.size // LEAST:
            return False
        if len(self.blocks) != -(-self.episodes // self.block):
            return False
        places = (*self.blocks, self.size)
        return places[0] == 0 and all(one < end for one, end in pairwise(places))


@dataclass(frozen=True, slots=True)
class Segment:
    """A sealed part of a run."""

    path: Path  # of its lines

    @property
    def packed(self) -> bool:
        return self.path.name.endswith(PACKED)

    @property
    def index(self) -> Path:
        return self.path.with_name(self.path.name.partition(".")[0] + INDEX)

    def lines(self, start: int = 0) -> Iterator[bytes]:
        """Its lines, from a block on that begins at this byte."""
        try:
            if self.packed:
                yield from _unpacked(self.path, start)
            else:
                with open_regular(self.path) as file:
                    yield from lines_in(file, self.path)
        except (OSError, EOFError, lzma.LZMAError) as error:
            raise BadFile(
                f"{self.path}: cannot be read ({error}); restore it from a copy, or move it and {self.index.name} away "
                "and let `crosswind run` play its episodes again"
            ) from None

    def head(self) -> Head | None:
        """What its index says, if there is one for these lines."""
        if not self.packed:
            return None
        with suppress(OSError, EOFError, lzma.LZMAError, ValidationError, StopIteration):
            head = Head.model_validate_json(next(_unpacked(self.index, longest=ROW)))
            if (head.size, head.columns) == (self.path.stat().st_size, COLUMNS) and head.sound:
                return head
        return None

    def count(self) -> int:
        """How many episodes it has."""
        head = self.head()
        return head.episodes if head else sum(1 for _ in self.lines())

    def briefs(self, first: int, shared: dict[object, object]) -> Iterator[Brief]:
        """The briefs of its episodes, of which the first is the `first` line of the run."""
        head = self.head()
        if head is None:
            for at, line in enumerate(self.lines(), first):
                yield brief_of(line, f"{self.path}:{at - first + 1}", at)
            return
        try:
            end = first
            for end, row in enumerate(islice(_unpacked(self.index, longest=ROW), 1, head.episodes + 2), first + 1):
                if end > first + head.episodes:
                    break
                yield Brief.from_row(json.loads(row), shared, end - 1)
            if end != first + head.episodes:
                raise ValueError(f"it has not the {head.episodes} rows that it states")
        except (EOFError, OSError, lzma.LZMAError, ValueError, TypeError, RecursionError) as error:
            raise BadFile(
                f"{self.index}: is damaged ({error}); delete it: it is made again from the episodes"
            ) from None

    def find(self, key: str) -> int | None:
        """The number, from 0, of the episode with this key, if its index tells; rows of other tasks are not parsed."""
        if (head := self.head()) is None:
            return next((n for n, line in enumerate(self.lines()) if tells_of(line, key)), None)
        task = task_in(key)
        for number, row in enumerate(islice(_unpacked(self.index, longest=ROW), 1, head.episodes + 1)):
            if task in row and Brief.from_row(json.loads(row), {}, number).key == key:
                return number
        return None

    def at(self, numbers: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        """Some of its lines by number, from 0 and in order, each with its number; only their blocks are unpacked."""
        head, now = self.head(), -1
        lines: Iterator[bytes] = iter(())
        for number in numbers:
            block = number // head.block if head else 0
            if now < 0 or (head and now // head.block < block):
                lines = self.lines(head.blocks[block] if head else 0)
                now = block * head.block if head else 0
            for line in lines:
                now += 1
                if now > number:
                    yield number, line
                    break


def segments(folder: Path) -> list[Segment]:
    """The sealed parts of a run in their order."""
    found: dict[str, Segment] = {}
    for path in sorted(
        real_folder(folder / SEGMENTS).glob("[0-9]*" + LINES + "*")
    ):  # the plain file of a part comes first
        stem, _, ending = path.name.partition(".")
        if f".{ending}" in (LINES, PACKED):
            found.setdefault(stem, Segment(path))
    return [found[stem] for stem in sorted(found)]


def task_in(key: str) -> bytes:
    """What a line or a row holds whose episode has this key."""
    return json.dumps(key.partition("|")[0])[1:-1].encode()


def tells_of(line: bytes, key: str) -> bool:
    """Is it the line of the episode with this key?"""
    return task_in(key) in line and Brief.read(line).key == key


def brief_of(line: bytes, where: str, at: int) -> Brief:
    """The brief of a line that must be whole."""
    try:
        return Brief.read(line, at)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise BadFile(f"{where}: the line is damaged ({place}: {first['msg']}); restore it from a copy") from None


def close(folder: Path, lines: Path) -> Segment:
    """Make a file of lines the next part of a run; it must be on the disk."""
    parts = folder / SEGMENTS
    parts.mkdir(mode=0o700, exist_ok=True)
    taken = [int(part.path.name.partition(".")[0]) for part in segments(folder)]
    path = parts / f"{max(taken, default=0) + 1:06d}{LINES}"
    lines.rename(path)
    for changed in (parts, folder):
        sync_folder(changed)
    return Segment(path)


def seal(part: Segment, lines: Iterable[bytes] | None = None) -> Segment:
    """Compress a part and index it; `lines` take the place of its own. When this raises, nothing has changed."""
    try:
        pack(part, lines)
        return place(part)
    finally:
        drop_packed(part)


def pack(part: Segment, lines: Iterable[bytes] | None = None) -> None:
    """Compress a part, or the `lines` that are to take the place of its own, beside it: `place` makes that count."""
    rows, blocks, errors, size, count = [], [], 0, 0, 0
    fresh, fresh_index = _fresh(part)
    with synced_file(fresh) as out:
        every = iter(part.lines() if lines is None else lines)
        while block := list(islice(every, BLOCK)):
            whole = [line if line.endswith(b"\n") else line + b"\n" for line in block]
            for line in whole:
                brief = brief_of(line, f"{part.path}:{count + 1}", count)
                rows.append(as_row(brief))
                errors, count = errors + (brief.outcome == "error"), count + 1
            blocks.append(size)
            size += out.write(lzma.compress(b"".join(whole), preset=PRESET))
    head = Head(episodes=count, errors=errors, size=size, blocks=tuple(blocks), block=BLOCK)
    with synced_file(fresh_index) as out:
        out.write(lzma.compress(head.model_dump_json().encode() + b"\n" + b"".join(rows), preset=PRESET))


def place(part: Segment) -> Segment:
    """Let what was packed count."""
    packed = part.path.with_name(part.path.name.partition(".")[0] + PACKED)
    fresh, fresh_index = _fresh(part)
    fresh_index.replace(part.index)
    fresh.replace(packed)
    sync_folder(packed.parent)
    if not part.packed:
        part.path.unlink()
    return Segment(packed)


def drop_packed(part: Segment) -> None:
    """Take away what was packed and does not count."""
    for path in _fresh(part):
        path.unlink(missing_ok=True)


def _fresh(part: Segment) -> tuple[Path, Path]:
    """Where a part is packed, and its index."""
    stem = part.path.name.partition(".")[0]
    return part.path.with_name(f"{stem}.jsonl.new"), part.path.with_name(f"{stem}.index.new")


def _unpacked(path: Path, start: int = 0, longest: int = LONGEST) -> Iterator[bytes]:
    """The lines of a compressed file, unpacked little by little."""
    with open_regular(path) as file:
        file.seek(start)
        stream, rest = lzma.LZMADecompressor(lzma.FORMAT_XZ, MEMORY), b""
        while True:
            if stream.eof:
                raw = stream.unused_data or file.read(CHUNK)
                if not raw:
                    break
                stream = lzma.LZMADecompressor(lzma.FORMAT_XZ, MEMORY)
            else:
                raw = file.read(CHUNK) if stream.needs_input else b""
                if stream.needs_input and not raw:
                    raise EOFError("it ends early")
            *lines, rest = (rest + stream.decompress(raw, CHUNK)).split(b"\n")
            for line in lines:
                yield line + b"\n"
            if len(rest) > longest:
                raise EOFError(f"a line has more than {longest >> 20} MiB")
        if rest:
            yield rest
