"""Registries: things by name."""

from __future__ import annotations

import pytest

from crosswind.base.errors import UnknownName
from crosswind.core.registry import domains


def test_a_thing_is_found_by_its_name_and_an_object_is_told_so() -> None:
    assert [domains[name] for name in domains.names()] == list(domains)
    thing = next(iter(domains))
    assert thing not in domains
    with pytest.raises(UnknownName, match=r"domains are found by name.*names\(\)"):
        domains[thing]  # type: ignore[index]
