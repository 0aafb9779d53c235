"""Put other lines in the place of all lines of a run, file by file, and keep the run as it was beside it.

No file is written into: each is replaced by a whole one that is on the disk. What interrupts this leaves every episode
in one place that counts, with its old line or its new one, and the same call again does the rest. Nothing in the folder
is taken for ours because of its name: links are refused, and what is made is new.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from crosswind.base.files import open_regular, sync_folder, synced_file
from crosswind.episodes.record import Record
from crosswind.runs.lines import whole
from crosswind.runs.segments import SEGMENTS, Segment, drop_packed, pack, place, segments
from crosswind.runs.store import EPISODES, Store, as_line, last_records, unwritable

PIECE = 1 << 20  # bytes that are copied at once


def rewrite(store: Store, change: Callable[[Record], Record]) -> Path:
    """Give every episode of a run the line of what `change` makes of it; the backup, a file or a folder."""
    folder, path = store.folder, store.path
    fresh, parts = path.with_name(EPISODES + ".new"), segments(folder)
    try:
        backup = _keep(folder, path, parts)
        try:
            for part in parts:
                pack(part, (as_line(change(record)) for record in _records(part)))
            with synced_file(fresh) as out:
                for record in last_records(folder):
                    out.write(as_line(change(record)))
            for part in parts:
                place(part)
            fresh.replace(path)
            sync_folder(folder)
        finally:
            fresh.unlink(missing_ok=True)
            for part in parts:
                drop_packed(part)
    except OSError as error:
        raise unwritable(folder, error) from None
    return backup


def _records(part: Segment) -> Iterator[Record]:
    return (whole(Record.model_validate_json, part.path, n, line) for n, line in enumerate(part.lines(), 1))


def _keep(folder: Path, path: Path, parts: list[Segment]) -> Path:
    """A copy of all lines under a name that nothing has yet."""
    backup = path.with_name(f"{EPISODES}.{datetime.now(UTC).strftime('%Y%m%d-%H%M%S-%f')}")
    if not parts:
        _copy(path, backup)
        return backup
    backup.mkdir(mode=0o700)  # fails where there is anything
    (backup / SEGMENTS).mkdir(mode=0o700)
    _copy(path, backup / EPISODES)
    for part in parts:
        for one in (part.path, part.index):
            if one.exists():
                _copy(one, backup / SEGMENTS / one.name)
    sync_folder(backup / SEGMENTS)
    sync_folder(backup)
    return backup


def _copy(source: Path, target: Path) -> None:
    with open_regular(source) as file, synced_file(target, os.O_EXCL) as out:
        while piece := file.read(PIECE):
            out.write(piece)
