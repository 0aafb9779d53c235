"""Lines of episodes: written, and read back: whole, torn at the end of a file, or damaged, which an error names."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from crosswind.base import files
from crosswind.base.errors import BadFile
from crosswind.base.files import lines_in, open_regular
from crosswind.episodes.brief import Brief
from crosswind.episodes.play import plain, shorter
from crosswind.episodes.record import Record
from crosswind.runs.manifest import EPISODES, SHOWN, brief_error, known_schema

ROOMS = (50_000, 5_000, 500)  # characters of the arguments or the result of a call in a record that is too long
MOST = 1000  # lines that one command takes out
LATER = ("input_charged", "output_charged", "currency")  # of what an episode cost: written where they say something

T = TypeVar("T", Record, Brief)


@contextmanager
def lenient(damaged: list[str] | None, where: str = "") -> Iterator[None]:
    """Name what is damaged among others, if they are kept."""
    try:
        yield
    except BadFile as error:
        if damaged is None:
            raise
        damaged.append(where or str(error))


def lines_of(
    path: Path, parse: Callable[[bytes], T], damaged: list[str] | None = None
) -> Iterator[tuple[int, T | None, bytes]]:
    """Line number, what it says, and the bytes of each line; a torn last line says nothing."""
    try:
        file = open_regular(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise BadFile(f"{path}: cannot be read ({error.strerror}); check its permissions") from None
    with file:
        lines = enumerate(lines_in(file, path), 1)
        while True:
            try:
                number, line = next(lines)
            except StopIteration:
                return
            except BadFile as error:  # where it ends, or whether, is unknown
                if damaged is None:
                    raise
                damaged.append(str(error))
                return
            try:
                found = parse(line)
            except ValidationError as error:
                if not _is_json(line) and not file.peek(1):
                    yield number, None, line
                    return
                told = _damaged(path, number, line, error)
                if damaged is None:
                    raise told from None
                damaged.append(f"line {number} ({brief_error(error)})")
                continue
            if isinstance(found, Record):
                known_schema(found.schema_version, f"{path}:{number}")
            yield number, found, line


class Once:
    """Which episodes of a run were read: one that comes again, in this file or another, is left out.

    A copy of a run that was made while a part was closed has its lines in two files.
    """

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._again: dict[str, tuple[int, str, int]] = {}  # by file: the first line, its key, and how many there are

    def is_new(self, key: str, file: str, line: int) -> bool:
        if key not in self._seen:
            self._seen.add(key)
            return True
        first, its_key, many = self._again.get(file, (line, key, 0))
        self._again[file] = (first, its_key, many + 1)
        return False

    def told(self) -> Iterator[str]:
        """What was left out, in a sentence for each file."""
        for file, (line, key, many) in self._again.items():
            if many == 1:
                yield f"line {line} of {file} repeats the episode {key!r} and is left out"
            else:
                yield f"{many:,} lines of {file} repeat episodes, such as {key!r}, and are left out"


def whole(parse: Callable[[bytes], T], path: Path, number: int, line: bytes) -> T:
    """What a line says that must be whole."""
    try:
        return parse(line)
    except ValidationError as error:
        raise _damaged(path, number, line, error) from None


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _damaged(path: Path, number: int, line: bytes, error: ValidationError) -> BadFile:
    if _is_json(line) and isinstance(data := json.loads(line), dict):
        known_schema(data.get("schema_version"), f"{path}:{number}")
    told = f"{path}:{number}: line {number} is damaged ({brief_error(error)}); the other lines are intact"
    told += ". Restore it from a copy"
    if path.name != EPISODES:
        return BadFile(f"{told}, or move this file and its index away and let `crosswind run` play its episodes again")
    again = "remove it and let `crosswind run` play that episode again"
    return BadFile(f"{told}, or {again}: {removal_command(path, number)}")


def repeated(path: Path, number: int, key: str, before: set[str]) -> BadFile:
    """A line repeats an episode that was read `before` it: what to do about all such lines of its file."""
    every = [(n, found.key) for n, found, _ in lines_of(path, Brief.read, []) if found is not None]
    here = {one for n, one in every if n < number}
    sealed = before - here
    told = f"{path}:{number}: repeats the episode {key!r}"
    if every and all(one in sealed for _, one in every):
        away = f"mv {shlex.quote(str(path))} {shlex.quote(f'{path}.repeated')}"
        return BadFile(
            f"{told}; all its {len(every):,} lines are in the parts too, as in a copy that was made while the run went "
            f"on: take the file away ({away}), then give the same command again"
        )
    known, again = set(sealed), list[int]()
    for n, one in every:
        if one in known:
            again.append(n)
        known.add(one)
    few = again[:MOST]
    lines = "one of the two lines" if len(again) == 1 else f"the {len(again):,} lines that repeat others"
    more = f" (the first {MOST:,}; then try again)" if len(few) < len(again) else ""
    return BadFile(f"{told}; take {lines} out{more}: {removal_command(path, *few)}")


def left_out(folder: Path, lost: Sequence[str], there: int) -> str:
    """What was lost of a run and what to do about it, in a sentence; nothing where nothing was."""
    if not lost:
        return ""
    few = [*lost[:SHOWN], *([f"{len(lost) - SHOWN} more"] if len(lost) > SHOWN else [])]
    said = f"{len(lost)} of {len(lost) + there} lines of {EPISODES} cannot be read and are left out: {'; '.join(few)}"
    numbers = [int(found[1]) for one in lost if (found := re.match(r"line (\d+) \(", one))]
    said += ". Restore them from a copy"
    if numbers:
        command = removal_command(folder / EPISODES, *numbers[:MOST])
        said += f", or remove them and let `crosswind run` play their episodes again: {command}"
    return said


def removal_command(path: Path, *numbers: int) -> str:
    """A command that takes lines out and leaves a copy."""
    lines = "d;".join(map(str, numbers))
    return f"sed -i.bak {lines + 'd' if len(numbers) == 1 else shlex.quote(lines + 'd')} {shlex.quote(str(path))}"


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
        leave_out: dict[str, Any] = {name: True for name in ("finish", "mark") if getattr(record, name) is None}
        leave_out["usage"] = {name for name in LATER if not getattr(record.usage, name)}  # as earlier versions wrote
        return record.model_dump_json(exclude=leave_out).encode() + b"\n"
    except (PydanticSerializationError, UnicodeEncodeError):  # half a character in a text that nobody clipped
        return json.dumps(plain(record.model_dump()), ensure_ascii=False).encode() + b"\n"
