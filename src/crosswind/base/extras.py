"""Packages that come with an extra of crosswind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from crosswind.base.errors import CrosswindError


@contextmanager
def extra(name: str, purpose: str) -> Iterator[None]:
    """Import inside this context what an extra installs; says how to get it where it is missing."""
    try:
        yield
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if package == "crosswind":
            raise
        text = f"{purpose} needs the package {package!r}; pip install 'crosswind[{name}]'"
        raise CrosswindError(text) from None
