"""Files that appear under their name only when they are complete."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from crosswind.base.errors import CrosswindError


def json_bytes(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


@contextmanager
def complete_file(path: Path) -> Iterator[IO[bytes]]:
    """A file that appears under its name when it is whole."""
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            yield file
        os.replace(part, path)
    except OSError as error:
        raise CrosswindError(f"{path} cannot be written ({error.strerror}); choose another path with -o") from None
    finally:
        with suppress(OSError):
            part.unlink()
