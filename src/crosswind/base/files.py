"""Files that survive a crash, replaced whole or not at all and on disk when a call returns; locks that end with us.

The lock of a run's folder is in `runs/store.py`.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from crosswind.base.errors import BadFile

LARGEST = 16 << 20  # bytes of a file that is read whole, unless another limit is given
LONGEST = 1 << 27  # bytes of a line
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # of a disk that takes no more


@contextmanager
def exclusive_lock(path: Path) -> Iterator[bool]:
    """Hold a file as a lock that others see; False: another process holds it. It ends with its owner."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with synced_file(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def open_regular(path: Path, *, links: bool = False) -> BufferedReader:
    """A file to read, if it is one. Raises `BadFile` for a pipe or a device, which could be waited for without end.

    A symbolic link is refused too, unless `links`: the one who put it there chose what is read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if links else os.O_NOFOLLOW))
    except OSError as error:
        if error.errno == errno.ELOOP and path.is_symlink():
            raise _refused_link(path) from None
        if error.errno == errno.ENXIO:  # a socket
            raise _irregular(path) from None
        raise
    regular(descriptor, path)
    return os.fdopen(descriptor, "rb")


def regular(descriptor: int, path: Path) -> None:
    """Close what was opened and raise `BadFile`, or `IsADirectoryError`, where it is no regular file."""
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise _irregular(path)


def read_whole(path: Path, most: int = LARGEST, *, links: bool = False) -> bytes:
    """What is in a file that somebody else may have made. Raises `BadFile` where that is more than `most` bytes."""
    with open_regular(path, links=links) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise BadFile(f"{path}: has more than {_size(most)}, which no such file has; restore it from a copy")
    return data


def lines_in(file: BinaryIO, where: Path) -> Iterator[bytes]:
    """The lines of a file that somebody else may have made, none of them too long to be held.

    Raises `BadFile` for one that is.
    """
    number = 0
    while line := file.readline(LONGEST + 1):
        number += 1
        if len(line) > LONGEST:
            raise BadFile(
                f"{where}:{number}: the line has more than {_size(LONGEST)}, which no line of ours has; restore the "
                "file from a copy"
            )
        yield line


def _size(most: int) -> str:
    return f"{most >> 20} MiB" if most >= 1 << 20 else f"{most} bytes"


def real_folder(path: Path) -> Path:
    """A folder to read from, or nothing yet. Raises `BadFile` for a symbolic link."""
    if path.is_symlink():
        raise _refused_link(path)
    return path


def _irregular(path: Path) -> BadFile:
    return BadFile(f"{path}: is not a regular file; expected one, not a pipe or a device: put a file in its place")


def _refused_link(path: Path) -> BadFile:
    return BadFile(
        f"{path}: is a symbolic link to {os.readlink(path)}; links in such a folder are not followed: put what it "
        "points to in its place, or take it away"
    )


@contextmanager
def synced_file(path: Path, flag: int = os.O_TRUNC, mode: int = 0o600) -> Iterator[BinaryIO]:
    """A file to write to, for its owner alone unless `mode` says more; what was written is on the disk when it closes.

    A symbolic link in its place is refused: the one who put it there chose the target.
    """
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | flag, mode), "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, data: bytes, mode: int = 0o600, *, exactly: bool = False) -> None:
    """Put a file in place, whole or not at all; of several that do so at a time, the last one's stays.

    The umask narrows the mode, unless it is to be `exactly` this one.
    """
    fresh = path.with_name(f"{path.name[:150]}.{os.getpid()}-{threading.get_ident()}.new")
    try:
        with synced_file(fresh, mode=mode) as file:
            if exactly:
                os.fchmod(file.fileno(), mode)
            file.write(data)
        fresh.replace(path)
    except OSError:
        with suppress(OSError):
            fresh.unlink()
        raise
    sync_folder(path.parent)


def write_output(path: Path, data: bytes, *, links: bool = True) -> None:
    """Write a file that a user named, whole or not at all: for those whom the umask allows, or who could read the one
    before. What is no file, and what the shell opened, is written to as it is. With `links` a symbolic link leads to
    where the file is; without, as for a name that nobody gave, the link is replaced."""
    if path.is_absolute() and path.parts[1:2] in (("dev",), ("proc",)):
        path.write_bytes(data)
        return
    try:
        found = path.stat(follow_symlinks=links)
    except FileNotFoundError:
        found = None
    where = path.resolve() if links else path
    if found is None or stat.S_ISLNK(found.st_mode):
        replace_file(where, data, 0o666)
    elif stat.S_ISREG(found.st_mode):
        replace_file(where, data, stat.S_IMODE(found.st_mode) & 0o777, exactly=True)
    else:
        path.write_bytes(data)


def append_file(path: Path, data: bytes) -> None:
    """Add to the end of a file, and see that it is on the disk."""
    with synced_file(path, os.O_APPEND) as file:
        file.write(data)


def sync_folder(folder: Path) -> None:
    """See to it that the names in a folder are on the disk."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
