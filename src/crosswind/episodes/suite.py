"""A suite: which tasks agents meet under which conditions, as data.

Its conditions are recipes. Each is met by the same tasks as the clean condition, as far as it applies to them, so that
clean and shifted episodes come in pairs (`schedule.py`). The suites of the package are in `builtin_suites.py`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, PrivateAttr, model_validator

from crosswind.base.errors import BadFile, CrosswindError, UnknownName
from crosswind.base.yaml_files import Place, read
from crosswind.core.draw import SEVERITY
from crosswind.core.registry import LOADERS, Registry, did_you_mean, domains, perturbations, resolve
from crosswind.core.types import AXES, TIERS, Model, Split
from crosswind.episodes.recipe import Choice, Recipe, kinds_of, known_kinds

CLEAN = "clean"
STACKS = "stacks"  # the band of a condition of several kinds
BANDS = (CLEAN, *TIERS, STACKS)


def band_of(kinds: Sequence[str]) -> str:
    """Where an episode is counted: with the clean ones, with the tier of its one kind, or with the stacks."""
    return CLEAN if not kinds else perturbations[kinds[0]].tier if len(kinds) == 1 else STACKS


class Condition(Model):
    """How a suite perturbs tasks: a recipe with a name."""

    name: str
    stack: tuple[Choice, ...] = ()
    tasks: int | None = Field(default=None, ge=1)  # per domain; the suite's number unless given
    domains: tuple[str, ...] = ()  # the suite's unless given

    @property
    def recipe(self) -> Recipe:
        return Recipe(name=self.name, stack=self.stack)

    @property
    def severity(self) -> int | None:
        """The one severity it has."""
        found = {s for choice in self.stack for s in choice.severity}
        return found.pop() if len(found) == 1 else None

    @property
    def kind(self) -> str:
        """The one kind it consists of, or nothing."""
        kinds = self.recipe.kinds()
        return kinds[0] if len(kinds) == 1 else ""


class Asked(Model):
    """Which part of which suite: what a command gives to play it."""

    suite: str  # a name, or a file
    domains: tuple[str, ...] = ()
    tasks: int = 0
    only: tuple[str, ...] = ()
    tier: tuple[str, ...] = ()
    axis: tuple[str, ...] = ()


class Suite(Model):
    """A set of conditions over tasks of some domains."""

    name: str
    version: int | None = Field(default=None, ge=1)  # of a suite that is frozen: its episodes never change
    edition: int = Field(default=0, ge=0)  # use only kinds up to this edition of the catalogue; 0: all
    summary: str = ""
    domains: tuple[str, ...] = ()  # empty: all
    levels: tuple[int, ...] = ()  # empty: all
    split: Split = "test"
    tasks: int = Field(default=18, ge=1)  # per domain and condition
    conditions: tuple[Condition, ...] = ()
    each_of: Literal["", "train", "heldout", "all"] = ""  # a condition for each kind of a group,
    severity: int = Field(default=SEVERITY, ge=1, le=5)  # at this severity,
    severities: tuple[int, ...] = ()  # or at each of these
    balanced: bool = False  # tiers get equally many tasks, and axes within a tier
    stacks: int = Field(default=0, ge=0, le=8)  # adds one condition: random stacks of up to this many kinds

    _asked: Asked | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _sound(self) -> Self:
        names = [c.name for c in self.conditions]
        if any(not 1 <= s <= 5 for s in self.severities):
            raise ValueError("severities must be from 1 to 5")
        if any(level not in (1, 2, 3) for level in self.levels):
            raise ValueError("levels are 1, 2 and 3")
        if twice := [n for n in names if names.count(n) > 1 or n == CLEAN]:
            raise ValueError(f"the condition {twice[0]!r} comes twice; clean is always there")
        return self

    @property
    def label(self) -> str:
        """The name to cite, such as `tiers@1`."""
        return f"{self.name}@{self.version}" if self.version else self.name

    @property
    def asked(self) -> Asked | None:
        """How to ask for it; None: it is neither one by name nor one of a file, nor a part of such."""
        if self._asked is None and self.name in suites and suites[self.name] is self:
            return Asked(suite=self.label)
        return self._asked

    def _asked_by(self, asked: Asked | None) -> Self:
        """The same suite, asked for in this way."""
        suite = self.model_copy()
        suite._asked = asked
        return suite

    def _ours(self, registry: Registry[Any], names: list[str]) -> list[str]:
        """The names that count: of a frozen suite, those that the package brings."""
        return [name for name in names if not (self.version and registry.origin(name))]

    def all_conditions(self) -> list[Condition]:
        """Clean first, then those written down, then one for each kind of the group, then random stacks."""
        out = [Condition(name=CLEAN), *self.conditions]
        since = f"@{self.edition}" if self.edition else ""
        kinds = self._ours(perturbations, kinds_of(self.each_of + since)) if self.each_of else []
        share = balance(kinds, self.tasks) if self.balanced else {}
        severity = (self.severity, self.severity)
        for kind in kinds:
            for level in self.severities or (self.severity,):
                name = f"{kind}@{level}" if self.severities else kind
                choice = Choice(kind=kind, severity=(level, level))
                out.append(Condition(name=name, stack=(choice,), tasks=share.get(kind)))
        if self.stacks:
            every = kinds_of((self.each_of or "all") + since)
            stack = Choice(one_of=dict.fromkeys(every, 1.0), count=(2, self.stacks), severity=severity)
            out.append(Condition(name=f"stacks of up to {self.stacks}", stack=(stack,)))
        return out

    def where(self, condition: Condition) -> list[str]:
        return list(condition.domains or self.domains or self._ours(domains, domains.names()))

    def narrowed(
        self,
        tasks: int = 0,
        domain: str | Sequence[str] = "all",
        *,
        only: Sequence[str] = (),
        tier: Sequence[str] = (),
        axis: Sequence[str] = (),
    ) -> Suite:
        """A part of the suite: at most `tasks` tasks, these domains, and the conditions whose kinds are all named and
        of these tiers and axes. It has no version, which names the whole."""
        wanted = [] if domain == "all" else [domain] if isinstance(domain, str) else list(domain)
        if not (tasks or wanted or only or tier or axis):
            return self
        suite = self.model_copy(update={"version": None})
        if tasks:  # before kinds are chosen, whose share of the tasks is the same whether others are there or not
            fewer = [c.model_copy(update={"tasks": c.tasks and min(c.tasks, tasks)}) for c in suite.conditions]
            suite = suite.model_copy(update={"tasks": tasks, "conditions": tuple(fewer)})
        if only or tier or axis:
            suite = suite._of_kinds(only, tier, axis)
        if wanted:
            names = tuple(dict.fromkeys(domains[name].name for name in wanted))
            some = [(c, tuple(n for n in names if n in suite.where(c) or not c.domains)) for c in suite.conditions]
            kept = [c.model_copy(update={"domains": of if c.domains else ()}) for c, of in some if of]
            suite = suite.model_copy(update={"domains": names, "conditions": tuple(kept)})
            if len(suite.all_conditions()) == 1:
                told = f"the suite {suite.name!r} has no condition in the domain {', '.join(names)}"
                raise CrosswindError(f"{told}; choose another")
        given = {"domains": wanted, "only": only, "tier": tier, "axis": axis}
        changes: dict[str, Any] = {key: tuple(value) for key, value in given.items() if value}
        if tasks:
            changes["tasks"] = tasks
        return suite._asked_by(self.asked and self.asked.model_copy(update=changes))

    def _of_kinds(self, only: Sequence[str], tier: Sequence[str], axis: Sequence[str]) -> Suite:
        """The clean condition, and those whose kinds are all asked for."""
        every = self.all_conditions()[1:]
        only = [known_name("kind", name, perturbations.names()) for name in only]
        tier = [known_name("tier", name, TIERS) for name in tier]
        axis = [known_name("axis", name, AXES) for name in axis]
        has = list(dict.fromkeys(kind for c in every for kind in c.recipe.kinds()))
        for kind in only:
            if kind not in has:
                told = f"the suite {self.name!r} has no condition of {kind}"
                other = suite_with(kind)
                there = f"the suite {other} has it" if other else "no suite of ours has it"
                raise CrosswindError(f"{told}; its kinds are {', '.join(sorted(has))}; {there}")

        def asked(kind: str) -> bool:
            cls = perturbations[kind]
            return (not only or kind in only) and (not tier or cls.tier in tier) and (not axis or cls.axis in axis)

        kept = [c for c in every if all(map(asked, c.recipe.kinds()))]
        if not kept:
            asks = [f"--{name} {','.join(of)}" for name, of in (("only", only), ("tier", tier), ("axis", axis)) if of]
            raise CrosswindError(
                f"no condition of the suite {self.name!r} fits {' '.join(asks)}; leave one of them out"
            )
        changes: dict[str, Any] = {"conditions": tuple(kept), "each_of": "", "stacks": 0, "balanced": False}
        return self.model_copy(update=changes)


def balance(kinds: Sequence[str], tasks: int) -> dict[str, int]:
    """How many tasks each kind gets so that tiers, and axes within a tier, come to the same number.

    The kind of the cell with the most kinds gets `tasks`; no kind gets less than one.
    """
    cells: dict[tuple[str, str], list[str]] = {}
    for kind in kinds:
        cls = perturbations[kind]
        cells.setdefault((cls.tier, cls.axis), []).append(kind)
    tiers: dict[str, list[tuple[str, str]]] = {}
    for cell in cells:
        tiers.setdefault(cell[0], []).append(cell)
    crowd = max((len(cells[c]) * len(of_tier) for of_tier in tiers.values() for c in of_tier), default=1)
    total = tasks * crowd  # per tier
    out = {}
    for of_tier in tiers.values():
        for cell in of_tier:
            wanted = total / len(of_tier)
            for i, kind in enumerate(cells[cell]):
                done = round(wanted * i / len(cells[cell]))
                out[kind] = max(1, round(wanted * (i + 1) / len(cells[cell])) - done)
    return out


def known_name(sort: str, name: str, names: Collection[str], where: str = "") -> str:
    """The name as it is known, whether it was written with spaces, dashes or underscores; unknown ones raise."""
    plain = {re.sub(r"[ _-]+", "_", one.lower()): one for one in names}
    if (found := plain.get(re.sub(r"[ _-]+", "_", name.lower()))) is None:
        raise UnknownName(f"no {sort} {name!r}{where}; {did_you_mean(name, list(names))}")
    return found


suites: Registry[Suite] = Registry("suite", "crosswind.episodes.builtin_suites")


def suite_with(kind: str) -> str:
    """The name of a suite that has conditions of a kind, the largest if it does; empty if none does."""
    for name in dict.fromkeys(("full", *suites.names())):
        if any(kind in condition.recipe.kinds() for condition in suites[name].all_conditions()):
            return name
    return ""


def load_suite(name: str) -> Suite:
    """Load a suite by name, with or without a version (`tiers@1`), or from a YAML file."""
    known, _, version = name.rpartition("@") if name.rpartition("@")[2].isdecimal() else (name, "", "")
    if known in suites:
        if version and suites[known].version != int(version):
            has = f"this release of crosswind has {suites[known].label}"
            raise UnknownName(f"no suite {name!r}: {has}; run that, or install the release that has {name}")
        return suites[known]
    if not name.endswith((".yaml", ".yml")):
        files = [file for end in ("yaml", "yml") if Path(file := f"{name}.{end}").is_file()]
        if files:
            raise UnknownName(f"no suite {name!r}; to use the file, write {files[0]}")
        suites[name]  # says which names there are
    document = read(name)
    if isinstance(document.data, dict) and "server" in document.data:  # tasks for an MCP server
        resolve(LOADERS["files"])([Path(name)])
        return suites[str(document.data["domain"])]._asked_by(Asked(suite=name))
    suite = document.fit(Suite)
    for i, condition in enumerate(suite.conditions):
        known_kinds(document, ("conditions", i, "stack"), condition.recipe)
        if not condition.stack:
            raise document.error(("conditions", i), "has no stack; write the kinds it consists of, or leave it out")
    places: list[tuple[Place, tuple[str, ...]]] = [(("domains",), suite.domains)]
    places += [(("conditions", i, "domains"), c.domains) for i, c in enumerate(suite.conditions)]
    for place, names in places:
        for one in names:
            if one not in domains:
                raise document.error(place, f"no domain {one!r}; {domains.meant(one)}")
    if len(suite.all_conditions()) == 1:
        raise BadFile(f"{document.at(())}: the suite has no condition; give conditions, each_of or stacks")
    return suite._asked_by(Asked(suite=name))
