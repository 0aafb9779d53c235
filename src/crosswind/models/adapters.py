"""Adapters by name: those that come with the package and those that training made, in the form an engine needs.

`static` and `paft` are in the package as one GGUF file each, with a card. llama.cpp takes them as they are; for
transformers they are turned into PEFT's folder once and kept in the user's cache. A folder that training wrote goes the
other way. Nothing is fetched.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import get_args

from crosswind.base.errors import CrosswindError
from crosswind.models import weights
from crosswind.models.native import Protocol

FOLDER = Path(__file__).parent.parent / "data" / "adapters"
FILE = "adapter.gguf"
ABOUT = "crosswind.json"  # beside what was trained here
PEFT = "adapter_config.json"
SHIPPED = ("static", "paft")


def shipped() -> list[str]:
    """The adapters that are in the package."""
    return [name for name in SHIPPED if (FOLDER / name / FILE).is_file()]


def found(name: str) -> Path:
    """The file or the folder that a name stands for: a shipped adapter, a GGUF file, or a folder that holds either."""
    if name in SHIPPED:
        if name not in shipped():
            raise CrosswindError(f"the adapter {name!r} is not part of this installation; give the folder of one")
        return FOLDER / name / FILE
    path = Path(name)
    if path.suffix == ".gguf" and path.is_file():
        return path
    if (path / PEFT).is_file():
        return path
    if (path / FILE).is_file():
        return path / FILE
    known = ", ".join(shipped()) or "none"
    raise CrosswindError(
        f"{name}: no adapter found; give a .gguf file, a folder with {PEFT}, or one of the package ({known})"
    )


def taught(about: Path) -> Protocol:
    """The protocol that a training here taught; `text` where nothing says."""
    try:
        told = json.loads(about.read_text(encoding="utf-8"))["recipe"].get("protocol", "text")
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return "text"
    return next((known for known in get_args(Protocol) if known == told), "text")


def digest(path: Path) -> str:
    """The SHA-256 of an adapter's weights."""
    if path.is_dir():
        path = next(iter(sorted(path.glob("adapter_model.*"))), path / PEFT)
    return weights.digest(path)


def as_gguf(name: str) -> Path:
    """An adapter of the embedded model as a GGUF file."""
    path = found(name)
    if path.is_file():
        return path

    def make(into: Path) -> None:
        from crosswind.models.lora_gguf import convert

        into.mkdir()
        convert(path, weights.fetch(lambda _: None), into / FILE)

    return _kept(digest(path), make) / FILE


def as_folder(name: str) -> Path:
    """An adapter of the embedded model as a PEFT folder."""
    path = found(name)
    if path.is_dir():
        return path

    def make(into: Path) -> None:
        from crosswind.models.lora_gguf import restore

        restore(path, weights.fetch(lambda _: None), into)

    return _kept(digest(path), make)


def _kept(key: str, make: Callable[[Path], None]) -> Path:
    """A folder in the cache, made if it is not there; it is there whole or not at all."""
    place = weights.cache_folder() / "adapters" / key[:24]
    if place.is_dir():
        return place
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent, prefix="making-") as scratch:
            make(Path(scratch) / "made")
            try:
                os.replace(Path(scratch) / "made", place)
            except OSError:
                if not place.is_dir():  # another process may have been faster
                    raise
                shutil.rmtree(Path(scratch) / "made", ignore_errors=True)
    except OSError as error:
        raise CrosswindError(f"the adapter could not be cached in {place.parent}: {error}") from None
    return place
