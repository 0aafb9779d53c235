"""Packages that come with an extra of crosswind."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager

from crosswind.base.errors import CrosswindError

TRAINING = ("torch", "transformers", "peft", "accelerate")  # what trains models


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


def need_packages(what: str, *packages: str) -> None:
    """Raise if one of these packages is not installed; by default those that train models."""
    for package in packages or TRAINING:
        if importlib.util.find_spec(package) is None:
            raise CrosswindError(f"{what} needs the package {package!r}; pip install 'crosswind[train]'")
