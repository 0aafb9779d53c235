"""Words and templates of generated domains, each in one of train, dev and test.

The files in `data/generated` hold sections of lines. A line of `nouns.txt` is a concept: words that mean about the
same. Its words are dealt to the splits one by one, so a domain of any split can speak of any concept, in words of its
own. Lines of `choices.txt` are dealt whole, sections of `phrases.txt` say whose they are. A word that the package's
banks hold keeps its split.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from itertools import product
from random import Random

from crosswind.core.flow import digest
from crosswind.core.types import SPLITS, Split
from crosswind.words import banks
from crosswind.words.dealing import Dealer, settled_words

PARTS: tuple[Split, ...] = ("train", "train", "dev", "test")  # structures: half of them are for training
LEAST = 2  # words of a concept that every split needs: one to go by, and one to be renamed to
INVENTED = (0, 0.5, 1)  # shares of the words in a train world that are in no dictionary; one share a world
ONSETS = (*"bcdfghjklmnprstvwz", *"bcdfgklmnprstv", *"br cl cr dr fl gr pl sk st tr".split())
VOWELS = (*"aaeeiioou", "ai", "ea", "oo")
CODAS = (*"dgklmnnprrt", *"ld mb nd nk rd rn st".split())


@dataclass(frozen=True, slots=True)
class Concept:
    """Words that mean about the same, by split."""

    name: str
    words: Mapping[Split, Sequence[str]]
    fits: frozenset[str] = frozenset()  # what a thing is, or what a column suits
    span: tuple[int | float, int | float] = (0, 0)  # the smallest and largest value
    most: tuple[str, ...] = ()  # how people say the largest and the smallest; words for training only

    def lemmas(self) -> set[str]:
        return {banks.lemma(word) for words in self.words.values() for word in words}

    def invented(self, rng: Random) -> Concept:
        """The same concept in words that nobody knows, so that they can only be copied. How people say its largest
        and smallest would give away what it is."""
        words: list[str] = []
        while len(words) < LEAST * len(SPLITS):
            word = invented_word(rng)
            words += [word] if word not in words else []
        dealt = {split: words[i * LEAST : (i + 1) * LEAST] for i, split in enumerate(SPLITS)}
        return replace(self, words=dealt, most=())


@dataclass(frozen=True, slots=True)
class Lexicon:
    """All sections, dealt."""

    concepts: Mapping[str, Sequence[Concept]]
    choices: Mapping[str, Mapping[Split, Sequence[tuple[str, ...]]]]
    phrases: Mapping[str, Mapping[Split, Sequence[str]]]


def _sections(name: str) -> Iterator[tuple[str, str]]:
    """(section, line) of a file, in order."""
    section = ""
    for line in files("crosswind").joinpath("data", "generated", f"{name}.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            yield section, line


def invented_word(rng: Random) -> str:
    """A word of two or three syllables that is in no bank and hardly ever comes twice."""
    while True:
        parts = [rng.choice(ONSETS) + rng.choice(VOWELS) for _ in range(rng.choice((2, 2, 3)))]
        inner = rng.choice(("", "", *CODAS[:10]))
        word: str = inner.join(parts[:2]) + "".join(parts[2:]) + rng.choice(CODAS)
        if word not in _known():
            return word


@lru_cache(maxsize=1)
def _known() -> frozenset[str]:
    """All words of the lexicon and of the package's banks."""
    ours = (word for found in lexicon().concepts.values() for concept in found for word in concept.lemmas())
    return frozenset((*ours, *settled_words()))


def _dealt(name: str) -> dict[str, dict[Split, list[str]]]:
    """Lines of a file by section and split; a line is known by its every character."""
    dealer = Dealer(f"generated {name}", 7)
    dealer.said = lambda line: line.encode().hex()
    lines: dict[str, list[str]] = {}
    for section, line in _sections(name):
        lines.setdefault(section, []).append(line)
    for section, entries in lines.items():
        dealer.add((section,), entries)
    return {section: {s: dealt[s] for s in SPLITS} for (section,), dealt in dealer.deal().items()}


@lru_cache(maxsize=1)
def lexicon() -> Lexicon:
    """The lexicon, read once."""
    dealer = Dealer("generated words", 7)
    dealer.pinned = settled_words()
    notes: dict[tuple[str, str], list[str]] = {}
    for section, line in _sections("nouns"):
        words, *more = line.split("|")
        first = words.split()[0]
        notes[section, first] = more
        dealer.add((section, first), words.split())
    concepts: dict[str, list[Concept]] = {}
    for (section, first), dealt in dealer.deal().items():
        if all(len(dealt[s]) >= LEAST for s in SPLITS):
            made = Concept(f"{section}_{first}", {s: dealt[s] for s in SPLITS}, *_noted(*notes[section, first]))
            concepts.setdefault(section, []).append(made)
    choices = {
        section: {s: [tuple(line.split()) for line in lines] for s, lines in by_split.items()}
        for section, by_split in _dealt("choices").items()
    }
    phrases: dict[str, dict[Split, list[str]]] = {}
    for section, line in _sections("phrases"):
        kind, _, split = section.partition(" ")
        by_split = phrases.setdefault(kind, {s: [] for s in SPLITS})
        by_split[next(s for s in SPLITS if s == split)] += _spelled_out(line)
    return Lexicon(concepts, choices, phrases)


def _noted(
    fits: str = "", span: str = "", most: str = ""
) -> tuple[frozenset[str], tuple[int | float, int | float], tuple[str, ...]]:
    """What a line says of a concept besides its words."""
    low, high = [float(n) if "." in n else int(n) for n in span.split()] or (0, 0)
    return frozenset(fits.split()), (low, high), tuple(spoken(word) for word in most.split())


def _spelled_out(line: str) -> list[str]:
    """A line with each choice of <this|that> made in every way."""
    parts = [part.split("|") if i % 2 else [part] for i, part in enumerate(re.split("[<>]", line))]
    return ["".join(chosen) for chosen in product(*parts)]


def part_of(structure: object) -> Split:
    """The one split whose domains may have a structure."""
    return PARTS[digest("structure", structure)[0] % len(PARTS)]


def spoken(word: str) -> str:
    """A word as people say it."""
    return word.replace("_", " ")


def plural(word: str) -> str:
    return banks.plural(spoken(word))


def a(word: str) -> str:
    """A word with its article."""
    return f"{'an' if re.match('[aeio]|u(?!ni|s|t)|hour', word) else 'a'} {word}"


class Voice:
    """The words of one split, and the phrases that one speaker of it has settled on."""

    def __init__(self, split: Split, rng: Random) -> None:
        self.split, self.rng = split, rng
        self._settled: dict[str, str] = {}

    def phrase(self, kind: str, /, **holes: str) -> str:
        """A template of a kind, filled in; a speaker keeps to one of them."""
        if kind not in self._settled:
            self._settled[kind] = self.template(kind)
        return filled(self._settled[kind], holes)

    def template(self, kind: str) -> str:
        """A template of a kind; another one each time."""
        return self.rng.choice(lexicon().phrases[kind][self.split])


def filled(template: str, holes: Mapping[str, str | Callable[[], str]]) -> str:
    """A template with its holes filled, from left to right: what is said first is said in full."""

    def fill(found: re.Match[str]) -> str:
        value = holes[found[1]]
        return value if isinstance(value, str) else value()

    return re.sub(r"\{(\w+)\}", fill, template)


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]
