"""Lines of episodes, read back: whole, torn at the end of a file, or damaged, which an error names with a remedy."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from crosswind.base.errors import BadFile
from crosswind.base.files import open_regular
from crosswind.episodes.brief import Brief
from crosswind.episodes.record import Record
from crosswind.runs.manifest import EPISODES, SHOWN, brief_error, known_schema

MOST = 1000  # lines that one command takes out

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
        for number, line in enumerate(file, 1):
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
