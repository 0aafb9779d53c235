"""The request is typed in haste or taken down by a dictation."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from random import Random
from typing import Literal, Self

from crosswind.core.perturbation import Perturbation, Scene, perturbation
from crosswind.core.types import Split, Task
from crosswind.words import banks, wording

SLIPS = {1: 1, 2: 2, 3: 4, 4: 6, 5: 9}
ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
BESIDE = {c: row[max(0, i - 1) : i] + row[i + 1 : i + 2] for row in ROWS for i, c in enumerate(row)}
Slip = Callable[[str, Random], str]


def _neighbour(word: str, rng: Random) -> str:
    i = rng.randrange(1, len(word))
    return word[:i] + rng.choice(BESIDE.get(word[i].lower(), word[i])) + word[i + 1 :]


def _doubled(word: str, rng: Random) -> str:
    i = rng.randrange(1, len(word))
    return word[:i] + word[i] + word[i:]


def _dropped(word: str, rng: Random) -> str:
    i = rng.randrange(1, len(word))
    return word[:i] + word[i + 1 :]


def _early_blank(word: str, rng: Random) -> str:
    return word[:-1] + " " + word[-1]


def _swapped(word: str, rng: Random) -> str:
    i = rng.randrange(1, len(word) - 1)
    return word[:i] + word[i + 1] + word[i] + word[i + 2 :]


def _vowel(word: str, rng: Random) -> str:
    places = [i for i, c in enumerate(word) if i and c in "aeiou"]
    if not places:
        return word
    i = rng.choice(places)
    return word[:i] + rng.choice("aeiou".replace(word[i], "")) + word[i + 1 :]


# how hands slip on a keyboard: each split has ways of its own
TYPING: Mapping[Split, tuple[Slip, ...]] = {
    "train": (_neighbour, _doubled),
    "dev": (_dropped, _early_blank),
    "test": (_swapped, _vowel),
}


@perturbation
class Typos(Perturbation):
    """Words of the request are misspelled, as by typing or dictation errors; values stay intact."""

    kind: Literal["typos"] = "typos"
    axis, tier, rank, counts = "query", "perception", "noise", "slips"
    severities = "How many words are wrong: 1, 2, 4, 6, 9, as far as there are ordinary words."
    needs = "an ordinary word of four letters or more in the request"
    way = "read misspelled words as they were meant"
    slips: dict[str, str]  # a word -> what replaces it

    @classmethod
    def sample(cls, scene: Scene, rng: Random, severity: int) -> Self | None:
        task = scene.task
        values = (*task.brief.stated.values(), *task.withheld.values(), *task.brief.vague.values())
        protected = {w.lower() for v in values for w in re.findall(r"[^\W\d_]+", str(v))}
        words = list(dict.fromkeys(re.findall(r"(?<![\w-])[a-z]{4,}(?![\w'-])", task.brief.query)))
        words = [w for w in words if w not in protected]
        heard = banks.data("common")["homophones"][task.split]
        dictated = rng.random() < 0.5 and any(w in heard for w in words)
        rng.shuffle(words)
        if dictated:
            words.sort(key=lambda w: w not in heard)
        slips: dict[str, str] = {}
        for word in words:
            if len(slips) == SLIPS[severity]:
                break
            wrong = heard[word] if dictated and word in heard else rng.choice(TYPING[task.split])(word, rng)
            said = replaced(task.brief.query, slips | {word: wrong})
            if wrong != word and wording.keeps(said, scene.family, task):
                slips[word] = wrong
        return cls(slips=slips) if slips else None

    def on_task(self, task: Task) -> Task:
        return task.briefed(query=replaced(task.brief.query, self.slips))


def replaced(text: str, slips: Mapping[str, str]) -> str:
    """A text with whole words exchanged."""
    return re.sub(r"(?<![\w-])[a-z]{4,}(?![\w'-])", lambda m: slips.get(m[0], m[0]), text)
