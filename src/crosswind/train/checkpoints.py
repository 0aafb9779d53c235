"""Checkpoints of a training run: what marks one as whole, which ones are, and what becomes of the others."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

from crosswind.base.errors import BadFile, CrosswindError
from crosswind.base.files import replace_file
from crosswind.models.adapters import ABOUT
from crosswind.train.config import TrainConfig, another

# others write their states just now, the note is written last, and a card is for people
_NOT_SEALED = ("rng_state_", ABOUT, "README")


def seal(folder: Path, told: dict[str, Any], keep: int) -> None:
    """Say in a checkpoint that it is whole, once all of it is on the disk, and how large its files are.

    Only this many of the whole ones are kept, the last.
    """
    sizes = {}
    for path in sorted(folder.iterdir()):
        if path.is_file() and not path.name.startswith(_NOT_SEALED):
            with path.open("rb") as file:
                os.fsync(file.fileno())
            sizes[path.name] = path.stat().st_size
    replace_file(folder / ABOUT, json.dumps({**told, "files": sizes}).encode())
    whole = whole_ones(folder.parent)
    for old in sorted(whole)[:-keep]:
        shutil.rmtree(whole[old], ignore_errors=True)


def whole_ones(folder: Path) -> dict[int, Path]:
    """The checkpoints that were written to their end and have all of their files, by step."""
    return {step: path for step, path in _numbered(folder).items() if _is_whole(path)}


def clear(folder: Path) -> None:
    """Take away the checkpoints that are not whole: half written when a run was killed, or damaged since."""
    whole = whole_ones(folder)
    for step, path in _numbered(folder).items():
        if step in whole:
            continue
        if (path / ABOUT).is_file():
            then = f"goes on from step {max(whole)}" if whole else "starts over"
            warnings.warn(f"{path}: files of it are gone or cut; the run {then}", stacklevel=2)
        shutil.rmtree(path, ignore_errors=True)


def _numbered(folder: Path) -> dict[int, Path]:
    names = ((path, path.name.removeprefix("checkpoint-")) for path in folder.glob("checkpoint-*"))
    return {int(number): path for path, number in names if number.isdecimal()}


def _is_whole(folder: Path) -> bool:
    try:
        told = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        sizes = told.get("files", {}).items()
        return all((folder / name).is_file() and (folder / name).stat().st_size == size for name, size in sizes)
    except FileNotFoundError:
        return False
    except (OSError, ValueError, AttributeError):
        return True  # the note is damaged, and `of_checkpoint` says so


def of_checkpoint(folder: Path, config: TrainConfig) -> dict[str, Any]:
    """What a checkpoint says of itself; one of another recipe is refused."""
    told: Any = None
    with suppress(OSError, ValueError):
        told = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    if not isinstance(told, dict) or not all(isinstance(told.get(name), dict) for name in ("recipe", "totals")):
        raise BadFile(
            f"{folder / ABOUT}: is damaged; take {folder} away, and the run goes on from the checkpoint before it"
        )
    if other := another(told["recipe"], config):
        raise CrosswindError(
            f"{folder} is a checkpoint of another recipe ({other}); choose another --out, or take {folder.parent} away"
        )
    return told
