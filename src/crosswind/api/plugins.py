"""Plug-ins from Python."""

from __future__ import annotations

import os

from crosswind.authoring import plugins


def load_plugin(path: str | os.PathLike[str]) -> plugins.Plugin:
    """Load a Python file that registers domains, perturbations or agents, or a domain in YAML.

    >>> import crosswind as cw
    >>> cw.load_plugin("examples/library.yaml").added
    (('domain', 'library'),)

    What it adds is in `domains`, `perturbations` and `agents` from then on. A file is loaded once.
    """
    return plugins.load(os.fspath(path))
