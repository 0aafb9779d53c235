"""Domains that passed, kept in the user's cache folder, so that no other process draws and judges them again.

A file is found only by the same code that drew and judged it, as verdicts are (`core/verdicts.py`). One that cannot
be read is made again.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any, NamedTuple

from crosswind.base.files import replace_file
from crosswind.core import verdicts


class Kept(NamedTuple):
    """A domain as data: what it declares, and its word bank."""

    declared: dict[str, Any]
    bank: dict[str, Any]


def recall(name: str) -> Kept | None:
    """The domain of a name, if it is kept."""
    try:
        kept = json.loads(zlib.decompress(_path(name).read_bytes()))
    except (OSError, ValueError, zlib.error):
        return None
    return Kept(*kept[1:]) if isinstance(kept, list) and len(kept) == 3 and kept[0] == name else None


def keep(name: str, found: Kept) -> None:
    """Keep a domain. Where the folder cannot be written, it is made again next time."""
    try:
        _path(name).parent.mkdir(parents=True, exist_ok=True)
        replace_file(_path(name), zlib.compress(json.dumps([name, *found]).encode()))
    except OSError:
        return


def _path(name: str) -> Path:
    key = verdicts.key_of("generated", name, verdicts.our_code())
    return verdicts.folder().with_name("generated") / key[:2] / f"{key}.z"
