"""Which kinds of perturbation are held out, and what may go into training data. The one place that says so."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from crosswind.base.errors import NotForTraining, UnknownName
from crosswind.core.registry import did_you_mean, perturbations

if TYPE_CHECKING:
    from crosswind.core.draw import Drawn

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
    """Refuse a draw as training data: of a held-out kind, of another split than train, or of a generated domain that
    is kept for dev or test.

    Layers that were drawn on a train task hold train words by construction.
    """
    check_kinds(layer.kind for layer in drawn.layers)
    if drawn.base.split != "train":
        raise NotForTraining(
            f"{drawn.base.id} is a task of the split {drawn.base.split!r}; training data is made of 'train' alone"
        )
    if drawn.base.domain.startswith(("generated:dev-", "generated:test-")):
        raise NotForTraining(
            f"{drawn.base.domain} is kept for measuring; train on domains of the split train, as in generated:train-17"
        )
