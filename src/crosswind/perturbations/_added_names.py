"""Names for what layers add: tools, parameters and keys in the words of a split; not a perturbation itself.

A kind brings a few words of its own along for each split (`banks/layers`). A model that is trained learns such a few by
heart and does not copy a name that it never saw piece by piece. So most names that are drawn on a train task are made
of any two words of the train side, or of syllables that mean nothing; those of other tasks never are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from random import Random

from crosswind.core.types import Split
from crosswind.words import banks

Pairs = Mapping[Split, tuple[Sequence[str], Sequence[str]]]  # what it does, and with what
Words = Mapping[Split, Sequence[str]]
Three = tuple[str, str, str]
# Every syllable begins as no English word does: nothing that means something comes out, and no word of a bank.
ONSETS = ("vr", "zl", "tl", "zr", "ml", "zn", "zd", "kv", "dv", "zv", "mr", "vl")
CODAS = ("", "", *"nlrm")
OWN = 1 / 3  # share of names on train tasks that are words of the kind's own


def new_tool(words: Pairs, split: Split, rng: Random, taken: Collection[str]) -> str:
    """A name for a tool, different from all in `taken`."""
    if _made_up(split, rng):
        name = made_up(rng)
    else:
        actions, things = words[split]
        name = banks.styled([rng.choice(actions), rng.choice(things)], rng.choice(banks.STYLES))
    base, n = name, 1
    while name in taken:
        n += 1
        name = f"{base}_{n}"
    return name


def new_word(words: Words, split: Split, rng: Random, taken: Collection[str] = ()) -> str | None:
    """A name for a parameter, a key or a tool, different from all in `taken`; None where there is none."""
    free = [word for word in ([made_up(rng)] if _made_up(split, rng) else words[split]) if word not in taken]
    return rng.choice(free) if free else None


def new_set(sets: Mapping[Split, Sequence[Three]], split: Split, rng: Random) -> Three:
    """Three names that belong together."""
    if _made_up(split, rng) and len({*(made := (made_up(rng), made_up(rng), made_up(rng)))}) == 3:
        return made
    return rng.choice(sets[split])


def made_up(rng: Random) -> str:
    """A name that hardly ever comes twice: any two words of the train side, or of no language."""
    return meaningless(rng) if rng.random() < 1 / 2 else banks.any_two_words(rng)


def meaningless(rng: Random) -> str:
    """One or two words that mean nothing, such as `vrolin_tlema`."""

    def part() -> str:
        return "".join(rng.choice(ONSETS) + rng.choice("aeiou") + rng.choice(CODAS) for _ in range(rng.randint(2, 3)))

    return "_".join(part() for _ in range(rng.randint(1, 2)))


def _made_up(split: Split, rng: Random) -> bool:
    """Is a name made up? Never but on train tasks, for which alone this uses up a chance."""
    return split == "train" and rng.random() >= OWN
