"""The larger commands, one module each. A module has `register(app)` and imports what is heavy inside its commands."""

from __future__ import annotations

import importlib
import pkgutil

import typer


def register_all(app: typer.Typer) -> None:
    """Add the commands of every module here, in the order of their names."""
    for module in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        importlib.import_module(f"{__name__}.{module}").register(app)
