"""What of another split than train a stack holds: the test of what may be trained on, whatever it was drawn from."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from crosswind.base.errors import NotForTraining
from crosswind.core.perturbation import Layers
from crosswind.core.types import SPLITS
from crosswind.words import banks
from crosswind.words.dealing import layer_words


def check_words(layers: Layers, domain: str) -> None:
    """Refuse a stack that holds a word or a wording of the banks which belongs to another split than train."""
    words = layer_words()
    own, others = frozenset(words["train"]), frozenset(words["dev"] | words["test"])
    for layer in layers:
        if layer.goal == "refuse":
            continue  # what is in rows is not a word of a bank
        for text in banks.every_text(layer.model_dump(mode="json", exclude={"kind"})):
            if found := foreign(domain, text, own, others):
                raise NotForTraining(
                    f"{layer.kind!r} holds {text!r}, of which {found!r} is held out; draw it on a train task"
                )


def foreign(domain: str, text: str, own: frozenset[str] = frozenset(), others: frozenset[str] = frozenset()) -> str:
    """The part of a text that only the dev or test split could have given; empty where there is none.

    `own` are words of the train split that are not in the banks, `others` those of the other splits.
    """
    known, words, pieces = _foreign(domain, own)
    words |= frozenset(map(banks.lemma, others)) - known
    if re.fullmatch(r"\w+/\S+|[A-Za-z]+-\d+", text):
        return ""  # where a record stands, or the id of one
    if " " not in text.strip():
        parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", text)
        plain = [part for part in parts if len(part) > 1]  # without marks such as v2
        if _made_of(parts, known) or _made_of(plain, known):
            return ""
        runs = [parts[i : i + n] for n in (1, 2, 3) for i in range(len(parts) - n + 1)]
        return next((" ".join(run) for run in runs if banks.lemma("_".join(run)) in words), "")
    whole = banks.lemma(text)
    return next((piece for piece in pieces if piece in whole), "")


@lru_cache(maxsize=16)
def _foreign(domain: str, own: frozenset[str]) -> tuple[frozenset[str], frozenset[str], tuple[str, ...]]:
    """What names of the train split are made of; what only others are made of, and longer pieces of text of theirs."""
    words: dict[str, set[str]] = {split: set() for split in SPLITS}
    ours = [
        *banks.data(domain).get("tools", ()),
        *banks.data(domain).get("keys", ()),
        *banks.PREFIXES,
        *banks.SUFFIXES,
        *own,
    ]
    texts: dict[str, set[str]] = {split: set() for split in SPLITS}

    def gather(value: Any, name: str) -> None:
        if isinstance(value, Mapping) and set(value) == set(SPLITS):
            for split in SPLITS:
                for text in banks.every_text(value[split]):
                    pieces = re.split(r"[{\[][^}\]]*[}\]]|[\[\]]", text)
                    if split == "train":  # with its optional parts, too
                        pieces += re.split(r"\{[^}]*\}", re.sub(r"[\[\]]", "", text))
                    texts[split] |= {p for piece in pieces if len(p := banks.lemma(piece)) >= 20}
                    if name in ("words", "actions", "qualifiers", "fields", "endings"):
                        words[split].add(banks.lemma(text))
                    if split == "train":
                        ours.append(text)
        elif isinstance(value, Mapping):
            for key, part in value.items():
                gather(part, name or key)

    for source in ("common", domain):
        gather({k: v for k, v in banks.data(source).items() if k != "lexicon"}, "")
    requests = (Path(banks.__file__).parents[1] / "data" / "requests").glob(f"{domain}.json")
    shared = [banks.lemma(text) for path in requests for text in banks.every_text(json.loads(path.read_text("utf-8")))]
    train = "\n".join([*texts["train"], *shared])  # requests as families word them belong to every split
    other = words["dev"] | words["test"]
    pieces = sorted(t for t in texts["dev"] | texts["test"] if t not in train)
    known = frozenset(banks.lemma(name) for name in ours)
    return known, frozenset(other - known), tuple(pieces)


def _made_of(parts: Sequence[str], known: frozenset[str]) -> bool:
    """Can a name be put together from known ones?"""
    reached = {0}
    for i in range(len(parts)):
        if i in reached:
            reached |= {j for j in range(i + 1, len(parts) + 1) if banks.lemma("_".join(parts[i:j])) in known}
    return len(parts) in reached
