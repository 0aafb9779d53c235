"""Verdicts of audits, remembered by a hash of the code that they judge: in memory, and in the user's cache folder.

A verdict is found only under the very code that it was made for. A file that cannot be read is made again.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parent.parent
JUDGED = ("base", "text", "core", "words", "domains", "perturbations", "authoring", "data")  # decide what is fair
SHIPPED = PACKAGE / "data" / "audited.txt"
VARIABLE = "CROSSWIND_CACHE"


def folder() -> Path:
    """Where verdicts are kept; `CROSSWIND_CACHE` moves it."""
    if moved := os.environ.get(VARIABLE, ""):
        return Path(moved) / "audits"
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "crosswind" / "audits"


def _digest(*parts: bytes) -> str:
    made = hashlib.blake2b(digest_size=20)
    for part in parts:
        made.update(len(part).to_bytes(8, "big") + part)
    return made.hexdigest()


@lru_cache(maxsize=1)
def our_code() -> str:
    """A hash of the laws and of all that this package brings for them to judge."""
    files = sorted(f for room in JUDGED for f in (PACKAGE / room).rglob("*") if f.suffix in (".py", ".json"))
    files += sorted((PACKAGE / "data" / "generated").glob("*.txt"))
    return _digest(*(part for f in files for part in (str(f.relative_to(PACKAGE)).encode(), f.read_bytes())))


@lru_cache(maxsize=1)
def shipped() -> str:
    """The code of ours that was audited before it was shipped (`python -m crosswind.core.audit`)."""
    try:
        return SHIPPED.read_text("utf-8").strip()
    except OSError:
        return ""


def code_of(thing: type, origin: str) -> str | None:
    """A hash of the code behind a class, the modules next to it included; None: nobody can tell what its code is."""
    if not origin and thing.__module__.startswith("crosswind."):
        return our_code()
    files = {Path(origin)} if origin and Path(origin).is_file() else set()
    files |= {bank for file in files for bank in file.parent.glob("*.bank.yaml")}  # words that a plug-in brings
    for cls in thing.__mro__:
        module = sys.modules.get(cls.__module__)
        file = getattr(module, "__file__", None)
        if cls is object or cls.__module__ in ("builtins", "abc", "typing", "collections.abc"):
            continue
        if file is None or not Path(file).is_file():
            return None
        if Path(file).is_relative_to(PACKAGE) or "pydantic" in cls.__module__:
            continue
        top = cls.__module__.partition(".")[0]
        files.add(Path(file))
        for name, other in list(sys.modules.items()):
            beside = getattr(other, "__file__", None)
            if beside and (name.partition(".")[0] == top or Path(beside).parent == Path(file).parent):
                files.add(Path(beside))
    try:
        return _digest(our_code().encode(), *(f.read_bytes() for f in sorted(files) if f.is_file()))
    except OSError:
        return None


def recall(key: str) -> list[Any] | None:
    """The verdict that is kept under a key, if there is one that can be read."""
    try:
        kept = json.loads((folder() / f"{key}.json").read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(kept, dict) or kept.get("key") != key or not isinstance(kept.get("complaints"), list):
        return None
    found: list[Any] = kept["complaints"]
    right = all(isinstance(one, list) and len(one) == 3 and all(isinstance(s, str) for s in one) for one in found)
    return found if right and kept.get("check") == _digest(json.dumps([key, found]).encode()) else None


def keep(key: str, complaints: list[Any]) -> None:
    """Keep a verdict. Where the folder cannot be written, it is made again next time."""
    data = {"key": key, "complaints": complaints, "check": _digest(json.dumps([key, complaints]).encode())}
    try:
        folder().mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder(), suffix=".tmp")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(data, file)
            os.replace(name, folder() / f"{key}.json")
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError:
        return


def key_of(*parts: str) -> str:
    return _digest(*(part.encode() for part in parts))
