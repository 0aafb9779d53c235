"""Registries: things by name."""

from __future__ import annotations

import subprocess
import sys

import pytest

from crosswind.base.errors import UnknownName
from crosswind.core.registry import domains


def test_a_thing_is_found_by_its_name_and_an_object_is_told_so() -> None:
    assert [domains[name] for name in domains.names()] == list(domains)
    thing = next(iter(domains))
    assert thing not in domains
    with pytest.raises(UnknownName, match=r"domains are found by name.*names\(\)"):
        domains[thing]  # type: ignore[index]


def test_one_name_loads_its_module_alone() -> None:
    code = (
        "import sys; from crosswind.core.registry import domains, perturbations\n"
        "assert perturbations['semantic_rename'].__name__ == 'SemanticRename' and 'poi' in domains\n"
        "assert domains.origin('poi') == '' and 'nowhere' not in domains and not perturbations.loaded\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "crosswind.perturbations.action.semantic_rename" in loaded
    assert "crosswind.perturbations.action.retired_midway" not in loaded
