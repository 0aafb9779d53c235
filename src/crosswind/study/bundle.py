"""Carry results elsewhere: pack them into few files, unpack them again, and collect what a report needs."""

from __future__ import annotations

import os
import re
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from crosswind.base.errors import BadFile, CrosswindError
from crosswind.base.files import open_regular, replace_file
from crosswind.models.adapters import ABOUT
from crosswind.runs.store import EPISODES, MANIFEST, SEGMENTS, episodes_in
from crosswind.study import outcomes
from crosswind.study.job import LOCK, lines_in
from crosswind.study.results import FAILED, LOG, REWARDS, read_done
from crosswind.study.runner import COPY
from crosswind.train.checkpoints import whole_ones
from crosswind.train.config import CHECKPOINTS, METRICS, ROUNDS, RUN

WEIGHTS = "adapter_model.safetensors"
PACKED = ".packed"  # ending of the folder of a compressed run
MEMBER = re.compile(rf"{re.escape(LOG)}|{re.escape(COPY)}|arms/[^/\0]+/seed-\d+/[^\0]+")
RUN_MEMBER = re.compile(rf"arms/[^/\0]+/seed-\d+/\w+{re.escape(PACKED)}/[^/\0]+")  # of a compressed run


def bundle(
    out: Path, into: Path, *, adapters: Sequence[str] = (), runs: Sequence[str] = (), trainings: Sequence[str] = ()
) -> list[Path]:
    """Pack the tables of all arms into one file; return the paths of all files.

    Named arms (ARM or ARM/SEED) get files of their own: `adapters` in half precision, `runs` with their trajectories,
    compressed, and `trainings` with their last checkpoint.
    """
    make_folder(into, "--into")
    made = [into / "results.tar"]
    small = ("*.json", "*.jsonl.xz", f"train/{RUN}", f"train/{METRICS}", f"train/{ROUNDS}", FAILED)
    with tarfile.open(made[0], "w") as tar:
        for path in (out / LOG, out / COPY, *(p for s in small for p in sorted(out.glob(f"arms/*/seed-*/{s}")))):
            # An unfinished training cannot resume without its checkpoint, and would stand in the way of a new one.
            if path.is_file() and (path.name not in (RUN, ROUNDS) or any(path.parent.glob(f"*/{ABOUT}"))):
                tar.add(path, path.relative_to(out))
    for name in adapters:
        for folder in _named(out, name, "train/adapter"):
            made.append(into / f"adapter-{_label(folder.parent.parent)}.tar")
            with tempfile.TemporaryDirectory() as scratch, tarfile.open(made[-1], "w") as tar:
                tar.add(folder.parent / RUN, (folder.parent / RUN).relative_to(out))
                tar.add(halved(folder, Path(scratch) / "adapter"), folder.relative_to(out))
    for name in runs:
        for folder in _named(out, name, "test"):
            if not all((folder / part).is_file() for part in (MANIFEST, EPISODES)):
                continue  # it has only just begun
            made.append(into / f"run-{_label(folder.parent)}.tar")
            with tempfile.TemporaryDirectory() as scratch, tarfile.open(made[-1], "w") as tar:
                packed = outcomes.pack(folder, Path(scratch) / "packed")
                tar.add(packed, f"{folder.relative_to(out)}{PACKED}")
    for name in trainings:
        for folder in _named(out, name, "train"):
            made.append(into / f"training-{_label(folder.parent)}.tar")
            with tarfile.open(made[-1], "w") as tar:
                for path in _to_resume(folder):
                    tar.add(path, path.relative_to(out))
    return made


def _label(seed: Path) -> str:
    """ARM-N of the folder ARM/seed-N."""
    return f"{seed.parent.name}-{seed.name.removeprefix('seed-')}"


def _to_resume(training: Path) -> Iterator[Path]:
    """The files of a training without checkpoints before the last complete one."""
    whole = whole_ones(training / CHECKPOINTS)
    last = whole[max(whole)] if whole else None
    for path in sorted(training.rglob("*")):
        inside = path.relative_to(training).parts
        if path.is_file() and path.name != LOCK and (inside[0] != CHECKPOINTS or last in path.parents):
            yield path


def _named(out: Path, name: str, inside: str) -> list[Path]:
    arm, _, seed = name.partition("/")
    found = sorted(out.glob(f"arms/{arm}/seed-{seed or '*'}/{inside}"))
    if not found:
        raise CrosswindError(f"{out} has nothing at arms/{arm}/seed-{seed or '*'}/{inside}")
    return found


def halved(folder: Path, into: Path) -> Path:
    """Copy an adapter with its weights in half precision."""
    from safetensors.torch import load_file, save_file

    into.mkdir(parents=True)
    for path in folder.iterdir():
        if path.name != WEIGHTS and path.is_file():
            (into / path.name).write_bytes(path.read_bytes())
    weights = {name: value.half() for name, value in load_file(folder / WEIGHTS).items()}
    save_file(weights, into / WEIGHTS, metadata={"format": "pt"})
    return into


def unbundle(files: Sequence[Path], out: Path) -> None:
    """Put packed files back into the folder of a study. Logs are merged, each line once.

    A run that is there and has at least as many episodes as the packed one is kept. Nothing of a file is written before
    the whole file was checked.
    """
    make_folder(out, "--out")
    for file in files:
        try:
            # As `bundle` writes it: one that is compressed may hold any amount.
            with open_regular(file, links=True) as raw, tarfile.open(fileobj=raw, mode="r:") as tar:
                members = _checked(tar, raw, file, out)
                with tempfile.TemporaryDirectory(dir=out, prefix=".unpacking-") as scratch:
                    _unpack(tar, members, file, out, Path(scratch))
        except (
            tarfile.TarError,
            ValueError,
            OverflowError,
        ):  # the last two: of fields that are no number, or too large
            raise CrosswindError(f"{file}: not a file that `crosswind study pack` made, or it is damaged") from None
        except OSError as error:
            raise CrosswindError(f"{file}: cannot be unpacked ({error.strerror or error})") from None


def _checked(tar: tarfile.TarFile, raw: BinaryIO, file: Path, out: Path) -> list[tarfile.TarInfo]:
    """The files in an archive that is whole and holds nothing that `bundle` never writes."""
    members, end = [], 0
    for member in tar:  # early releases of Python 3.11 lack the filters of `extractall`
        regular = member.isdir() or (member.isreg() and member.sparse is None and member.size >= 0)
        if not regular or not _is_ours(member) or not _is_inside(out / member.name, out):
            raise CrosswindError(f"{file}: holds {member.name!r}, which `crosswind study pack` never makes")
        if member.isreg():
            members.append(member)
        end = member.offset_data + -(-member.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
    # A damaged header ends the iteration without an error, and so does a file that was cut off between two members.
    raw.seek(end)
    zeros = 0
    while piece := raw.read(1 << 20):
        if piece.strip(b"\0"):
            raise tarfile.ReadError
        zeros += len(piece)
    if zeros < 2 * tarfile.BLOCKSIZE:
        raise CrosswindError(f"{file}: the end is missing, it was cut off; copy it again, or pack the study again")
    runs = _runs_in(members)
    if any(runs & {*run.parents} for run in runs):
        raise CrosswindError(f"{file}: holds a run inside another, which `crosswind study pack` never makes")
    return members


def _is_ours(member: tarfile.TarInfo) -> bool:
    name = f"{member.name}/-" if member.isdir() else member.name
    parts = name.split("/")
    packed = any(part.endswith(PACKED) for part in parts)
    return not {"", ".", ".."} & {*parts} and (RUN_MEMBER if packed else MEMBER).fullmatch(name) is not None


def _runs_in(members: Sequence[tarfile.TarInfo]) -> set[Path]:
    """The folders of runs, compressed or not."""
    paths = [Path(member.name) for member in members]
    plain = {path.parent for path in paths if path.name in (MANIFEST, EPISODES)}
    return (
        plain
        | {p.parent for p in paths if p.parent.suffix == PACKED}
        | {p.parent.parent for p in paths if p.parent.name == SEGMENTS}
    )


def _is_inside(path: Path, out: Path) -> bool:
    return path.resolve().is_relative_to(out.resolve())


def _unpack(tar: tarfile.TarFile, members: Sequence[tarfile.TarInfo], file: Path, out: Path, scratch: Path) -> None:
    """Put one file back. Runs go to `scratch` first: which one is longer shows when they are whole."""
    runs = _runs_in(members)
    for member in members:
        held = tar.extractfile(member)
        data, name = held.read() if held else b"", Path(member.name)
        target = (scratch if runs & {*name.parents} else out) / name
        if target == out / LOG:
            _merge_log(target, data)
            continue
        if target.name == METRICS and lines_in(target) > data.count(b"\n"):
            continue  # the training here is further
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_file(target, data)
        if target.name in ("dev.json", "test.json"):  # finished since; what is still broken comes after it
            (target.parent / FAILED).unlink(missing_ok=True)
    for run in sorted(runs):
        fresh, there = scratch / run, out / str(run).removesuffix(PACKED)
        if run.name.endswith(PACKED):
            try:
                fresh = outcomes.unpack(fresh, scratch / "run" / run)
            except CrosswindError as error:
                raise CrosswindError(str(error).replace(f"{scratch}/", f"{file}: ")) from None
        if not _is_inside(there, out):
            raise CrosswindError(f"{there}: is a link to elsewhere; put the folder itself in its place")
        if episodes_in(fresh) > episodes_in(there):
            _install(fresh, there, scratch / "former" / run)


def _install(fresh: Path, there: Path, former: Path) -> None:
    """Put a run in the place of one with fewer episodes, whose sealed parts go to `former`."""
    paths = sorted(path.relative_to(fresh) for path in fresh.rglob("*") if path.is_file())
    for sealed in (False, True):  # the sealed parts come last: until then no episode is lost
        if sealed and (there / SEGMENTS).exists():
            former.mkdir(parents=True)
            os.replace(there / SEGMENTS, former / SEGMENTS)
        for path in paths:
            if (path.parts[0] == SEGMENTS) is sealed:
                (there / path).parent.mkdir(parents=True, exist_ok=True)
                os.replace(fresh / path, there / path)


def _merge_log(log: Path, more: bytes) -> None:
    """Add the lines that a log does not have yet; its own are never lost."""
    lines = [*(log.read_bytes().splitlines() if log.is_file() else ()), *more.splitlines()]
    if lines:
        replace_file(log, b"".join(line + b"\n" for line in dict.fromkeys(lines)))


def make_folder(folder: Path, option: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CrosswindError(f"{folder}: cannot be created ({error.strerror}); choose another {option}") from None


def collect(out: Path, into: Path) -> int:
    """Copy what a report needs, and nothing else, to where results are kept; return how many there are."""
    count = 0
    make_folder(into, "--into")
    for path in sorted(out.glob("arms/*/seed-*/*.json")):
        if path.stem not in ("dev", "test"):
            continue
        table = path.with_name(f"{path.stem}.jsonl.xz")
        if not table.is_file():
            raise BadFile(f"{table}: is missing; remove {path} and run the arm again: it resumes from its episodes")
        target = into / path.parent.relative_to(out)
        target.mkdir(parents=True, exist_ok=True)
        for one in (table, path):
            replace_file(target / one.name, one.read_bytes())
        rewards = path.parent / REWARDS
        if read_done(path).method == "grpo" and rewards.is_file():
            (target / REWARDS).parent.mkdir(exist_ok=True)
            replace_file(target / REWARDS, rewards.read_bytes())
        count += 1
    if (out / LOG).is_file():
        _merge_log(into / LOG, (out / LOG).read_bytes())
    return count
