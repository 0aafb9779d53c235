"""Write a run in the format of another tool: an Inspect AI log, Harbor trajectories (ATIF), or a Parquet table.

All are written from the stored lines alone, one episode after the other, without the other tool. What the agent saw
is the conversation; what the world saw is added as metadata. A message with several calls was stored as several steps,
and is exported as several turns.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from crosswind.base.errors import CrosswindError
from crosswind.episodes.record import Record
from crosswind.export.atif import atif, write_trajectories
from crosswind.export.inspect import write_log
from crosswind.export.parquet import write_table
from crosswind.runs.store import iter_records, load_manifest

Format = Literal["inspect", "atif", "parquet"]


def export(
    folder: Path | str,
    form: Format,
    out: Path | None = None,
    *,
    episode: str | None = None,
    damaged: list[str] | None = None,
) -> tuple[Path, int]:
    """Write a run in another format; gives the path and the number of episodes.

    Damaged lines raise `BadFile`, or are left out and named in `damaged`.
    """
    folder = Path(folder)
    manifest = load_manifest(folder)
    records = iter_records(folder, None, damaged)
    if episode is not None:
        records = _only(records, episode)
    if form == "inspect":
        path = out or folder / "inspect.eval"
        if path.suffix != ".eval":
            raise CrosswindError(
                f"{path}: Inspect recognises logs by their extension; choose a name that ends in .eval"
            )
        return path, write_log(path, manifest, records)
    if form == "parquet":
        path = out or folder / "run.parquet"
        return path, write_table(path, records)
    path = out or folder / "atif"
    trajectories = (atif(record, manifest) for record in records)
    return path, write_trajectories(path, trajectories, single=episode is not None)


def _only(records: Iterator[Record], key: str) -> Iterator[Record]:
    for record in records:
        if record.key == key:
            yield record
            return
    raise CrosswindError(f"the run has no episode {key!r}; `crosswind show DIR` lists them")
