"""Releases: versions of a whole interface. A release is one stack, drawn once and the same for every task.

A layer is drawn with every tool counted as on the way, then certified over probes: tasks of every family. It must bite
on some of them; a task that a release does not touch is certified all the same (`certify(..., release=True)`).
`evolve` draws a chain: each release changes one thing about the one before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any

from crosswind.base.errors import CannotDraw, CannotPerturb, Unfair, UnfairTask
from crosswind.core.audit import require_fair
from crosswind.core.certify import certify
from crosswind.core.domain import Domain
from crosswind.core.drawing import DrawScene
from crosswind.core.flow import rng_for
from crosswind.core.oracle import Walks
from crosswind.core.perturbation import Layers, Perturbation, dump_layers, load_layers, place
from crosswind.core.registry import perturbations
from crosswind.core.types import Model, Split, Step

PROBES = 2  # tasks of each family that a release is certified by
BITES = 2  # probes that every layer must bite on
LOOKED = 6  # tasks that are looked at for each probe: one may be unfair by itself
CHANGES = 12  # changes that are tried before a chain is given up
Prove = Callable[[Walks], bool]  # certifies a stack over one probe; does its last layer bite there?


class Release(Model):
    """One version of an interface, as a stack over the canonical one."""

    version: int  # from 1, which is the canonical interface
    change: str = ""  # how it differs from the release before: added, again, gone or withdrawn, and the kind
    layers: tuple[dict[str, Any], ...] = ()

    @property
    def name(self) -> str:
        return f"v{self.version}"

    @property
    def stack(self) -> Layers:
        return load_layers(list(self.layers), self.name)


# ---------------------------------------------------------------- what a layer is drawn on


class ReleaseScene(DrawScene):
    """What a layer of a release may look at: the first probe, every tool, and the ways of all probes."""

    def __init__(self, probes: Sequence[Walks], taken: set[str]) -> None:
        super().__init__(probes[0])
        self.probes, self.taken = probes, taken

    @property
    def names(self) -> set[str]:
        return set(self._every) | self.taken

    @property
    def gold(self) -> list[Step]:
        return [step for walks in self.probes for step in walks.at(self.n).calls]

    @property
    def answers(self) -> bool:
        return True

    @property
    def path(self) -> list[str]:
        called = {step.call.tool for step in self.gold}
        return [name for name, tool in self.tools.items() if name in called or not tool.opaque]


def probes_of(domain: Domain, *, split: Split = "test", seed: int = 0) -> list[Walks]:
    """Tasks of every family, each with its clean walk."""
    out: list[Walks] = []
    for name in domain.families:
        found = 0
        for n in range(PROBES * LOOKED):
            try:
                walks = Walks(domain, domain.task(name, seed + n, split=split))
                certify(domain, walks.tasks[0], (), walks)
            except (CannotDraw, UnfairTask):
                continue
            out.append(walks)
            found += 1
            if found == PROBES:
                break
    if not out:
        raise CannotDraw(f"{domain.name} has no fair task to certify a release by")
    return out


def proved(walks: Walks) -> bool:
    """Certify a stack over a probe. Raises `Unfair`; returns whether the probe meets the outermost layer."""
    certify(walks.domain, walks.tasks[0], walks.layers, walks, release=True)
    return len(walks.layers) - 1 in walks.gold.session.first


# ---------------------------------------------------------------- a chain


class Chain:
    """Draws releases one after the other, each over the same probes."""

    def __init__(
        self, probes: Sequence[Walks], kinds: Mapping[str, int], prove: Prove = proved, *, announced: bool = False
    ) -> None:
        self.probes, self.kinds, self.prove, self.announced = probes, kinds, prove, announced
        self.coming: tuple[Perturbation, Perturbation] | None = None  # an announcement, and the move that it is about
        self.taken: set[str] = set()  # names of earlier releases, which never come to mean something else

    def stacked(self, layers: Layers) -> list[Walks]:
        """The probes under a stack. Raises `Unfair` if a layer breaks a law, or bites on too few of them."""
        forks = [walks.fork() for walks in self.probes]
        for layer in layers:
            for walks in forks:
                walks.add(layer)
            if sum(map(self.prove, forks)) < min(BITES, len(forks)):
                raise Unfair("bites", f"{layer.kind!r} touches too few tasks to be a release")
        return forks

    def drawn(self, kind: str, inner: Layers, rng: Random) -> Perturbation | None:
        """A layer of a kind over a stack; None if there is nothing for it to act on."""
        walks = [probe.fork() for probe in self.probes]
        for layer in inner:
            for one in walks:
                one.add(layer)
        return perturbations[kind].sample(ReleaseScene(walks, self.taken), rng, self.kinds[kind])

    def add(self, layers: Layers, kind: str, rng: Random, kept: Perturbation | None = None) -> Layers:
        """A stack with a layer of one more kind, or with a redrawn layer in the place of `kept`.

        Raises `Unfair` or `CannotPerturb`.
        """
        cls = perturbations[kind]
        others = tuple(layer for layer in layers if layer is not kept)
        inner = tuple(layer for layer in others if place(layer) <= place(cls))
        layer = self.drawn(kind, inner, rng)
        if layer is None:
            raise CannotPerturb(f"{kind} finds nothing to act on in this interface", applies=False)
        if kept is not None:
            layer = _renewed(kept, layer, rng)
        stack = (*inner, layer, *others[len(inner) :])
        self.stacked(stack)
        return stack

    def after(self, layers: Layers, rng: Random) -> tuple[str, Layers]:
        """The next stack, and how it differs. Raises `CannotPerturb` if no change is fair."""
        last: Exception | None = None
        for _ in range(CHANGES):
            for how, kind, change in self._changes(layers, rng):
                try:
                    stack = change()
                    if dump_layers(stack) != dump_layers(layers):
                        return f"{how} {kind}", stack
                except (Unfair, CannotPerturb) as cannot:
                    last = cannot
        raise CannotPerturb(f"no further release is fair over {self.probes[0].domain.name} (last: {last})")

    def _changes(self, layers: Layers, rng: Random) -> Iterator[tuple[str, str, Callable[[], Layers]]]:
        """Changes in random order; what becomes of tools that move comes before anything else."""
        moved = next((layer for layer in layers if layer.kind == "redirection"), None)
        if moved is not None and not any(layer.group == "names" for layer in layers):
            yield "gone", "redirection", partial(self._gone, layers, moved)
        if self.coming is not None and self.coming[0] in layers:
            yield "redirecting", "redirection", partial(self._redirecting, layers, *self.coming)
        if self.announced and "redirection" in self.kinds and _is_free("redirection", layers) and not self.coming:
            yield "announced", "redirection", partial(self._announcing, layers, rng)
        options: list[tuple[str, str, Callable[[], Layers]]] = [
            ("added", kind, partial(self.add, layers, kind, rng))
            for kind in self.kinds
            if _is_free(kind, layers) and not (self.announced and kind == "redirection")
        ]
        options += [
            ("again", old.kind, partial(self.add, layers, old.kind, rng, old))
            for old in layers
            if (_entries(old) or old.goal == "moved") and old.kind in self.kinds and not _is_under(old, layers)
        ]
        if len(layers) > 1:
            out = rng.choice([layer for layer in layers if not _is_under(layer, layers)])
            options.append(("withdrawn", out.kind, partial(self._without, layers, out)))
        rng.shuffle(options)
        yield from options

    def _without(self, layers: Layers, out: Perturbation) -> Layers:
        stack = tuple(layer for layer in layers if layer is not out)
        self.stacked(stack)
        return stack

    def _announcing(self, layers: Layers, rng: Random) -> Layers:
        """The descriptions of tools that will move say so; nothing else has changed yet."""
        inner = tuple(layer for layer in layers if place(layer) <= place(perturbations["redirection"]))
        move = self.drawn("redirection", inner, rng)
        if move is None:
            raise CannotPerturb("redirection finds nothing to act on in this interface", applies=False)
        self.stacked(tuple(sorted((*layers, move), key=place)))  # it must be fair when it comes
        walks = self.stacked(layers)[0]
        shown = {tool.name: tool for tool in walks.shown(len(layers), 0)}
        notice = move.announcement(shown, walks.tasks[0].split, rng)  # type: ignore[attr-defined]
        if notice is None:
            raise CannotPerturb("a tool that is to move is shown under another name already", applies=False)
        stack = tuple(sorted((*layers, notice), key=place))
        self.stacked(stack)
        self.coming = notice, move
        return stack

    def _redirecting(self, layers: Layers, notice: Perturbation, move: Perturbation) -> Layers:
        """What was announced: the old names redirect."""
        others = tuple(layer for layer in layers if layer != notice)
        stack = tuple(sorted((*others, move), key=place))
        self.stacked(stack)
        self.coming = None
        return stack

    def _gone(self, layers: Layers, moved: Perturbation) -> Layers:
        """Tools that were redirecting have their new names only."""
        names = {chain[0].old: chain[-1].new for chain in moved.moves}  # type: ignore[attr-defined]
        renamed = perturbations["semantic_rename"].model_validate({"names": names})
        others = tuple(layer for layer in layers if layer is not moved)
        stack = tuple(sorted((*others, renamed), key=place))
        self.stacked(stack)
        return stack


def _is_under(layer: Perturbation | type[Perturbation], layers: Layers) -> bool:
    """Does a layer change tools that others further out know by name? Then it cannot change without them."""
    return layer.retools and any(other.retools and place(other) > place(layer) for other in layers)


def _is_free(kind: str, layers: Layers) -> bool:
    """Can a layer of a kind be added?"""
    cls = perturbations[kind]
    if any(layer.kind == kind or (cls.group and layer.group == cls.group) for layer in layers):
        return False
    return not _is_under(cls, layers)


def _entries(layer: Perturbation) -> str:
    """The field that maps old to new, if a kind has one: part of it may change again."""
    if layer.goal != "kept":  # what the policy says of it would no longer be what holds
        return ""
    found = [name for name in type(layer).model_fields if isinstance(getattr(layer, name), dict)]
    return found[0] if len(found) == 1 else ""


def _renewed(kept: Perturbation, drawn: Perturbation, rng: Random) -> Perturbation:
    """A redrawn layer that keeps about half of what the old one had."""
    field = _entries(kept)
    if not field or type(kept) is not type(drawn):
        return drawn
    old, new = getattr(kept, field), getattr(drawn, field)
    both = [key for key in old if key in new]
    stay = set(rng.sample(both, len(both) // 2))
    return drawn.model_copy(update={field: {**old, **{k: v for k, v in new.items() if k not in stay}}})


def evolve(
    domain: Domain,
    kinds: Mapping[str, int],
    count: int,
    seed: int,
    *,
    split: Split = "test",
    probes: Sequence[Walks] | None = None,
    prove: Prove = proved,
    announced: bool = False,
) -> list[Release]:
    """A chain of releases: the canonical interface, then `count` more, each certified over probes of every family.

    `kinds` maps each kind that may be used to its severity. With `announced`, tools that will redirect say so one
    release before. Raises `CannotPerturb` where no further release is fair.
    """
    if probes is None:
        probes = probes_of(domain, split=split)
        for family in domain.families:
            require_fair(domain, family, list(kinds))
    chain = Chain(probes, kinds, prove, announced=announced)
    out = [Release(version=1)]
    layers: Layers = ()
    for version in range(2, count + 2):
        how, layers = chain.after(layers, rng_for("release", domain.name, split, seed, version))
        for walks in chain.stacked(layers)[:1]:
            chain.taken |= {tool.name for tool in walks.shown(len(layers), 0)}
        out.append(Release(version=version, change=how, layers=tuple(dump_layers(layers))))
    return out
