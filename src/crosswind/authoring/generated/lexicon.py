"""Words and templates of generated domains, each in one of train, dev and test.

The files in `data/generated` hold sections of lines. A line of `nouns.txt` is a concept: words that mean about the
same. Its words are dealt to the splits one by one, so a domain of any split can speak of any concept, in words of its
own. Lines of `choices.txt` and `phrases.txt` are dealt whole. A word that the package's banks hold keeps its split.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from random import Random

from crosswind.core.flow import digest
from crosswind.core.types import SPLITS, Split
from crosswind.words import banks
from crosswind.words.dealing import Dealer, settled_words

PARTS: tuple[Split, ...] = ("train", "train", "dev", "test")  # structures: half of them are for training
LEAST = 2  # words of a concept that every split needs: one to go by, and one to be renamed to


@dataclass(frozen=True, slots=True)
class Concept:
    """Words that mean about the same, by split."""

    name: str
    words: Mapping[Split, Sequence[str]]

    def lemmas(self) -> set[str]:
        return {banks.lemma(word) for words in self.words.values() for word in words}


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
    for section, line in _sections("nouns"):
        dealer.add((section, line.split()[0]), line.split())
    concepts: dict[str, list[Concept]] = {}
    for (section, first), dealt in dealer.deal().items():
        if all(len(dealt[s]) >= LEAST for s in SPLITS):
            concepts.setdefault(section, []).append(Concept(f"{section}_{first}", {s: dealt[s] for s in SPLITS}))
    choices = {
        section: {s: [tuple(line.split()) for line in lines] for s, lines in by_split.items()}
        for section, by_split in _dealt("choices").items()
    }
    return Lexicon(concepts, choices, _dealt("phrases"))


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
    return f"{'an' if word[0] in 'aeio' else 'a'} {word}"


class Voice:
    """The words of one split, and the phrases that one speaker of it has settled on."""

    def __init__(self, split: Split, rng: Random) -> None:
        self.split, self.rng = split, rng
        self._settled: dict[str, str] = {}

    def phrase(self, kind: str, /, **holes: str) -> str:
        """A template of a kind, filled in; a speaker keeps to one of them."""
        if kind not in self._settled:
            self._settled[kind] = self.rng.choice(lexicon().phrases[kind][self.split])
        text = self._settled[kind]
        for hole, value in holes.items():
            text = text.replace(f"{{{hole}}}", value)
        return text
