"""Registries of domains, perturbations and agents by name. A wrong name gets suggestions.

Things from outside the package (`authoring/plugins.py`) are listed with ours, and the registry knows their origin.

This is the one module that names modules of later rooms: `LOADERS` and the packages given to registries are strings,
imported when a name is first asked for.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from crosswind.base.errors import CrosswindError, UnknownName

if TYPE_CHECKING:
    from crosswind.core.domain import Domain
    from crosswind.core.perturbation import Perturbation

T = TypeVar("T")
LOADERS = {
    "announced": "crosswind.authoring.plugins:load_announced",  # what distributions and CROSSWIND_PLUGINS announce
    "plugin": "crosswind.authoring.plugins:load",  # a file, in a process that was started to compare
    "files": "crosswind.authoring.plugins:share",  # files that are named on the way, such as tasks for a server
    "domain:agentdojo": "crosswind.benchmarks.agentdojo:load",  # other people's benchmarks: in no suite unless named
    "domain:bfcl": "crosswind.benchmarks.bfcl:load",
    "domain:generated:": "crosswind.authoring.generated:load",  # made of their names, as in generated:train-17
    "agent:openai": "crosswind.models.openai_compatible:OpenAICompatible",  # agents by spec: their sources
    "agent:anthropic": "crosswind.models.anthropic:Anthropic",
    "agent:python": "crosswind.models.python_agent:PythonAgents",
    "agent:cmd": "crosswind.mcp.command:CommandAgents",
    "agent:hf": "crosswind.models.hf:HuggingFace",
    "agent:embedded": "crosswind.models.embedded:Embedded",
    "agent:constrained": "crosswind.models.constrained:open_constrained",
    "agent:adaptive": "crosswind.models.adaptive:AdaptiveAgents",
}
ALIKE = 0.65  # likeness from which on a name is suggested
SHORTEST = 4  # characters of a part of a name that is taken for the whole
FEW = 20  # names that are listed
TOPICS = {  # sorts of things that `crosswind catalog` lists, and its topic
    "domain": "domains",
    "perturbation": "kinds",
    "suite": "suites",
    "stream": "streams",
    "agent": "agents",
    "recipe": "recipes",
}
_sources = [""]  # where what is being added comes from, the innermost last; empty: from this package


def resolve(path: str) -> Any:
    """What MODULE:NAME stands for; the module is imported now."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


@contextmanager
def adding_from(where: str) -> Iterator[None]:
    """Whatever is added meanwhile comes from there."""
    _sources.append(where)
    try:
        yield
    finally:
        _sources.pop()


def did_you_mean(name: str, names: list[str], listing: str = "", few: int = FEW) -> str:
    """Suggest the names that are about as close as the closest one; without any, list the known ones.

    Of more than `few`, only the first are listed; `listing` is a command that lists them all.
    """
    likeness = {known: _likeness(name.lower(), known.lower()) for known in names}
    best = max(likeness.values(), default=0.0)
    close = sorted((k for k in names if likeness[k] >= ALIKE and likeness[k] > best - 0.15), key=lambda k: -likeness[k])
    if close:
        *others, last = close[:3]
        return f"did you mean {', '.join(others)}{' or ' if others else ''}{last}?"
    if len(names) <= few:
        return f"known: {', '.join(names)}"
    return f"`{listing}` lists all {len(names)}" if listing else f"known: {', '.join(names[:few])}, ..."


def _likeness(name: str, known: str) -> float:
    """How alike two names are, from 0 to 1. A typo changes little of the length; a part of a name is close to it."""
    if len(name) >= SHORTEST and (name in known or known in name):
        return 1.0
    if abs(len(name) - len(known)) > max(1, min(len(name), len(known)) // 3):
        return 0.0
    return difflib.SequenceMatcher(None, known, name).ratio()


class Registry(Generic[T]):
    """Things of one sort by name; the modules that hold ours are imported when first asked for.

    `registry[name]` and `name in registry` take names, which `names()` lists; iterating gives the things themselves.
    """

    def __init__(self, sort: str, package: str) -> None:
        self.sort, self.package = sort, package
        self._things: dict[str, T] = {}
        self._origins: dict[str, str] = {}
        self.loaded = False
        self.check: Callable[[T], None] | None = None  # raises if a thing cannot be registered
        self.broken: dict[str, str] = {}  # names that a distribution announces and does not deliver, and why
        self.on_demand: dict[str, str] = {}  # names that are in no list until somebody asks for them, and their loaders
        self.made: dict[str, str] = {}  # beginnings of names that things are made of, and what makes them

    def add(self, name: str, thing: T) -> None:
        if name in self._things and self._things[name] is not thing:
            places = " and ".join(where or "crosswind itself" for where in (self._origins[name], _sources[-1]))
            raise CrosswindError(f"two {self.sort}s are named {name!r}, from {places}; rename one of them")
        if self.check:
            self.check(thing)
        self._origins.setdefault(name, _sources[-1])
        self._things[name] = thing

    def remove(self, name: str) -> None:
        del self._things[name], self._origins[name]

    def origin(self, name: str) -> str:
        """Where a thing comes from: a file or a distribution; empty for what the package brings."""
        self._load_one(name)
        if name not in self._origins:
            self._load()
        return self._origins.get(name, "")

    @contextmanager
    def undone_on_error(self) -> Iterator[None]:
        """What is added meanwhile is taken back if something goes wrong."""
        before = dict(self._things), dict(self._origins)
        try:
            yield
        except BaseException:
            self._things, self._origins = before
            raise

    def names(self) -> list[str]:
        self._load()
        return sorted(self._things)

    def __getitem__(self, name: str) -> T:
        if not isinstance(name, str):
            raise UnknownName(
                f"{self.sort}s are found by name, not by {type(name).__name__}; iterating gives the {self.sort}s "
                "themselves, and names() their names"
            )
        self._load_one(name)
        if name in self._things:
            return self._things[name]
        self._load()
        if name not in self._things and name in self.on_demand:
            thing: T = resolve(self.on_demand[name])()
            return thing
        if name not in self._things and (maker := self._maker(name)):
            made: T = resolve(maker)(name)
            return made
        if name not in self._things:
            if name in self.broken:
                raise UnknownName(f"the {self.sort} {name!r} could not be loaded: {self.broken[name]}")
            raise UnknownName(f"no {self.sort} {name!r}; {self.meant(name)}")
        return self._things[name]

    def meant(self, name: str) -> str:
        """What to say of an unknown name: close ones, all where they are few, or the command that lists them."""
        topic = TOPICS.get(self.sort)
        return did_you_mean(name, [*self.names(), *self.on_demand], f"crosswind catalog {topic}" if topic else "")

    def __contains__(self, name: object) -> bool:
        if isinstance(name, str):
            self._load_one(name)
            if name in self._things:
                return True
        self._load()
        return isinstance(name, str) and (name in self._things or name in self.on_demand or bool(self._maker(name)))

    def is_made(self, name: str) -> bool:
        """Is a thing of this name made from the name alone, and in no list?"""
        return name not in self._things and bool(self._maker(name))

    def _maker(self, name: str) -> str:
        """What makes a thing of its name; empty where nothing does."""
        return next((maker for start, maker in self.made.items() if name.startswith(start)), "")

    def __iter__(self) -> Iterator[T]:
        return (self[name] for name in self.names())

    def _load_one(self, name: str) -> None:
        """Import the module that is named like a thing, if there is one: all of them take a while."""
        if name in self._things or not name.isidentifier():
            return
        if not self.loaded:
            resolve(LOADERS["announced"])()  # which loads all of ours where there is something to compare with them
        if self.loaded:
            return
        package = importlib.import_module(self.package)
        for folder in map(Path, getattr(package, "__path__", ())):
            for file in (folder / f"{name}.py", *folder.glob(f"*/{name}.py")):
                if file.is_file():
                    inside = file.relative_to(folder).with_suffix("").parts
                    with adding_from(""):
                        importlib.import_module(".".join((self.package, *inside)))

    def _load(self) -> None:
        if self.loaded:
            return
        self.loaded = True
        try:
            with adding_from(""):
                package = importlib.import_module(self.package)
                for module in pkgutil.walk_packages(getattr(package, "__path__", ()), f"{self.package}."):
                    importlib.import_module(module.name)
            resolve(LOADERS["announced"])()
        except BaseException:
            self.loaded = False
            raise


domains: Registry[Domain] = Registry("domain", "crosswind.domains")
domains.on_demand = {name: LOADERS[f"domain:{name}"] for name in ("agentdojo", "bfcl")}
domains.made = {"generated:": LOADERS["domain:generated:"]}
perturbations: Registry[type[Perturbation]] = Registry("perturbation", "crosswind.perturbations")
agents: Registry[Any] = Registry("agent", "crosswind.agents")
