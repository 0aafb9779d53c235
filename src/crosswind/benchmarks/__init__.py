"""Other people's benchmarks as domains: their worlds, their golds and their judges, under our perturbations.

Each is an extra and comes from its own package when somebody asks for it by name; nothing of it is kept here.

given.py       families and domains whose tasks are listed rather than drawn
borrowed.py    what both benchmarks need: recorded golds, footprints, judges
agentdojo.py, bfcl.py    one benchmark each
"""

from __future__ import annotations

import importlib
from types import ModuleType

from crosswind.base.errors import CrosswindError


def needed(module: str, package: str, how: str) -> ModuleType:
    """A module of a benchmark's package; where it is missing, the command that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise CrosswindError(f"the benchmark needs the package {package} ({error}); install it with: {how}") from error
