"""Which kinds of perturbation are held out, and what may go into training data. The one place that says so."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from crosswind.base.errors import NotForTraining, UnknownName
from crosswind.core.registry import did_you_mean, perturbations
from crosswind.core.types import SPLITS, Split
from crosswind.words.banks import every_text, foreign

if TYPE_CHECKING:
    from crosswind.core.draw import Drawn
    from crosswind.core.perturbation import Layers

HELD_OUT = frozenset(
    {
        *("terse_query", "changed_mind"),
        *("semantic_trap", "parameter_format", "retired_midway", "tool_split"),
        *("envelope", "missing_values", "rate_limit", "conflicting_sources"),
        *("foreign_interface", "fatal_error"),
    }
)


def train_kinds() -> list[str]:
    """The kinds that training data may be made with."""
    return [kind for kind in perturbations.names() if kind not in HELD_OUT]


def held_out_kinds() -> list[str]:
    """The kinds that no training data is ever made with."""
    return [kind for kind in perturbations.names() if kind in HELD_OUT]


WORD = re.compile(r"[A-Za-z][A-Za-z ,.'_-]*[a-z.]")  # a word or a sentence, as against a format or a sign


def layer_words() -> dict[Split, set[str]]:
    """Words that perturbations bring along themselves: tables in their modules that are marked by split."""
    out: dict[Split, set[str]] = {split: set() for split in SPLITS}
    for cls in perturbations:
        for table in vars(sys.modules[cls.__module__]).values():
            if isinstance(table, Mapping) and set(table) == set(SPLITS):
                for split in SPLITS:
                    out[split] |= {text for text in every_text(table[split]) if WORD.fullmatch(text)}
    return out


def check_kinds(kinds: Iterable[str]) -> None:
    """Refuse kinds that do not exist, and those that are held out from training."""
    for kind in kinds:
        if kind not in perturbations and kind not in perturbations.broken:
            raise UnknownName(f"no perturbation {kind!r}; {did_you_mean(kind, train_kinds())}")
        perturbations[kind]  # says so if it could not be loaded
        if kind in HELD_OUT:
            raise NotForTraining(
                f"{kind!r} is held out: it measures what training never saw; train on {', '.join(train_kinds())}"
            )


def check_drawn(drawn: Drawn) -> None:
    """Refuse a draw as training data: of a held-out kind, or of another split than train.

    Layers that were drawn on a train task hold train words by construction; for those that came from elsewhere, such as
    a file, there is `check_words`.
    """
    check_kinds(layer.kind for layer in drawn.layers)
    if drawn.base.split != "train":
        raise NotForTraining(
            f"{drawn.base.id} is a task of the split {drawn.base.split!r}; training data is made of 'train' alone"
        )


def check_words(layers: Layers, domain: str) -> None:
    """Refuse a stack that holds a word or a wording of the banks which belongs to another split than train."""
    words = layer_words()
    own, others = frozenset(words["train"]), frozenset(words["dev"] | words["test"])
    for layer in layers:
        if layer.goal == "refuse":
            continue  # what stands in rows is no word of a bank
        for text in every_text(layer.model_dump(mode="json", exclude={"kind"})):
            if found := foreign(domain, text, own, others):
                raise NotForTraining(
                    f"{layer.kind!r} holds {text!r}, of which {found!r} is held out; draw it on a train task"
                )
