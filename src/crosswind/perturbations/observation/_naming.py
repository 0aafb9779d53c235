"""Names for what layers add: tools, parameters and keys in the words of a split; not a perturbation itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from random import Random

from crosswind import banks
from crosswind.types import Split

Pairs = Mapping[Split, tuple[Sequence[str], Sequence[str]]]  # what it does, and with what
Words = Mapping[Split, Sequence[str]]


def new_tool(words: Pairs, split: Split, rng: Random, taken: Collection[str]) -> str:
    """A name for a tool, different from all in `taken`."""
    actions, things = words[split]
    name = banks.styled([rng.choice(actions), rng.choice(things)], rng.choice(banks.STYLES))
    base, n = name, 1
    while name in taken:
        n += 1
        name = f"{base}_{n}"
    return name


def new_word(words: Words, split: Split, rng: Random, taken: Collection[str]) -> str | None:
    """A name for a parameter or a key, different from all in `taken`; None where there is none."""
    free = [word for word in words[split] if word not in taken]
    return rng.choice(free) if free else None
