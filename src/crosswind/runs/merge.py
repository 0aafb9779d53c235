"""Put the shards of a run together: the episodes are those that one machine would have played."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from crosswind.base.errors import BadFile, CrosswindError
from crosswind.base.files import append_file, lines_in, open_regular, real_folder, sync_folder
from crosswind.runs.manifest import shard_of
from crosswind.runs.segments import INDEX
from crosswind.runs.store import (
    MANIFEST,
    RETRIED,
    SEGMENTS,
    SHOWN,
    Manifest,
    Store,
    differences,
    iter_briefs,
    iter_records,
    load_manifest,
    now,
    shortfall,
)


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge wrote."""

    folder: Path
    shards: int
    episodes: int


def merge(folders: Sequence[Path | str], out: Path | str) -> Merged:
    """Write all episodes of the shards of one run into a new folder.

    Refuses, and leaves nothing behind, if a shard is missing, unfinished, damaged or given twice, if configurations
    differ, if a shard holds episodes of another run, or if two shards hold the same episode.
    """
    out, shards = Path(out), [(Path(folder), load_manifest(folder)) for folder in folders]
    if (out / MANIFEST).exists():
        raise CrosswindError(f"{out}: already holds a run; choose a new folder as --out")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise CrosswindError(f"{out}: already exists and is not empty; choose a new folder as --out")
    for folder, _ in shards:
        if out.resolve().is_relative_to(folder.resolve()):
            raise CrosswindError(f"{out}: is inside the shard {folder}; merge into a folder outside of the shards")
    _check(shards)
    owners: dict[str, Path] = {}
    for folder, manifest in shards:
        problems: list[str] = []
        before = len(owners)
        for brief in iter_briefs(folder, problems):
            if (brief.agent, brief.seed) != (manifest.agent, manifest.seed):
                raise CrosswindError(
                    f"{folder}: {brief.key!r} was played by {brief.agent!r} with seed {brief.seed}, not in this run by "
                    f"{manifest.agent!r} with {manifest.seed}; run the shard again into a new folder, then merge"
                )
            if brief.key in owners:
                raise CrosswindError(
                    f"{folder} and {owners[brief.key]} both hold the episode {brief.key!r}; play one of them again "
                    "into a new folder, then merge"
                )
            owners[brief.key] = folder
        if lacks := shortfall(manifest, len(owners) - before) or "".join(problems[:1]):
            raise CrosswindError(f"{folder}: {lacks}; rerun its command, then merge")
    fresh = out.with_name(f".{out.name}.merging")  # what a refusal or a crash leaves half written is never at `out`
    if real_folder(fresh).exists():
        Store(fresh).close()  # raises `Locked` where another merge is writing
        shutil.rmtree(fresh, ignore_errors=True)
    try:
        _write(shards, owners, fresh)
        _put(fresh, out)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return Merged(out, len(shards), len(owners))


def _write(shards: Sequence[tuple[Path, Manifest]], owners: Mapping[str, Path], fresh: Path) -> None:
    """Write the episodes, whose keys the indexes gave."""
    left = dict(owners)
    with Store(fresh) as store:
        whole = shards[0][1].model_copy(
            update={"shard": "", "created": now(), "planned": len(owners), "state": "running", "why": ""}
        )
        store.begin(whole)
        store.resume(lambda _: None)
        for folder, _ in shards:
            for record in iter_records(folder):
                if left.pop(record.key, None) != folder:
                    raise BadFile(
                        f"{folder / SEGMENTS}: no index names the episode {record.key!r} that a line holds; delete the "
                        f"files *{INDEX}: they are made again"
                    )
                store.append(record)
            if (retried := folder / RETRIED).exists():  # they count nowhere, but they cost something
                with open_regular(retried) as lines:
                    for line in lines_in(lines, retried):
                        append_file(fresh / RETRIED, line)
        if left:
            key, folder = next(iter(left.items()))
            raise BadFile(f"{folder}: lacks {len(left)} of its episodes, such as {key!r}; restore it from a copy")
        store.sync()
        store.write(whole, state="finished")


def _put(fresh: Path, out: Path) -> None:
    """Give a complete run its place."""
    try:
        fresh.rename(out)
        sync_folder(out.parent)
    except OSError as error:
        raise CrosswindError(
            f"{out}: cannot be written to ({error.strerror}); choose a new folder as --out, or fix its permissions"
        ) from None


def _check(shards: Sequence[tuple[Path, Manifest]]) -> None:
    """Refuse what is not a complete set of shards of one run."""
    first, reference = shards[0]
    seen: dict[int, Path] = {}
    whole = shard_of(reference.shard)[1] if reference.shard else 0
    for folder, manifest in shards:
        if not manifest.shard:
            raise CrosswindError(
                f"{folder}: is a complete run, not a shard; expected folders of `crosswind run --shard`"
            )
        same = manifest.model_copy(update={"shard": reference.shard})
        changed = differences(reference, same)
        if manifest.limit != reference.limit:
            changed.append(f"limit was {reference.limit}, now {manifest.limit}")
        if changed:
            raise CrosswindError(f"{first} and {folder} are not shards of the same run: {'; '.join(changed[:SHOWN])}")
        number, count = shard_of(manifest.shard)
        if count != whole:
            raise CrosswindError(f"{first} is shard {reference.shard} and {folder} is shard {manifest.shard}")
        if number in seen:
            raise CrosswindError(f"{seen[number]} and {folder} are both shard {manifest.shard}; give each shard once")
        seen[number] = folder
    if missing := whole - len(seen):
        few = [f"{n}/{whole}" for n in islice((n for n in range(1, whole + 1) if n not in seen), SHOWN)]
        more = f" and {missing - SHOWN} more" if missing > SHOWN else ""
        raise CrosswindError(f"missing shards: {', '.join(few)}{more}; run them with --shard, and give all folders")
