"""Names to things: one class, three instances. Looking up a wrong name says which right ones are near."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from crosswind.errors import UnknownName

if TYPE_CHECKING:
    from crosswind.domain import Domain
    from crosswind.perturbation import Perturbation

T = TypeVar("T")


def near(name: str, names: list[str]) -> str:
    """Words for what somebody may have meant."""
    close = difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(names)}"


class Registry(Generic[T]):
    """Things of one sort by name; the modules that hold ours are imported when first asked for."""

    def __init__(self, sort: str, package: str) -> None:
        self.sort, self.package = sort, package
        self._things: dict[str, T] = {}
        self._loaded = False

    def add(self, name: str, thing: T) -> None:
        if name in self._things and self._things[name] is not thing:
            raise ValueError(f"two {self.sort}s are named {name!r}")
        self._things[name] = thing

    def remove(self, name: str) -> None:
        del self._things[name]

    def names(self) -> list[str]:
        self._load()
        return sorted(self._things)

    def __getitem__(self, name: str) -> T:
        self._load()
        if name not in self._things:
            raise UnknownName(f"no {self.sort} {name!r}; {near(name, self.names())}")
        return self._things[name]

    def __contains__(self, name: object) -> bool:
        self._load()
        return name in self._things

    def __iter__(self) -> Iterator[T]:
        return (self[name] for name in self.names())

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True
        package = importlib.import_module(self.package)
        for module in pkgutil.walk_packages(package.__path__, f"{self.package}."):
            importlib.import_module(module.name)


domains: Registry[Domain] = Registry("domain", "crosswind.domains")
perturbations: Registry[type[Perturbation]] = Registry("perturbation", "crosswind.perturbations")
agents: Registry[Any] = Registry("agent", "crosswind.agents")
