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
        *("goal_switch", "tool_catalogue", "unlisted_tools", "moved_meanwhile"),
    }
)
# Kinds that came after the first 44. Suites and recipes that are frozen hold those of their own edition alone.
LATER = {
    "several_changes": 2, "follow_up": 2, "goal_switch": 2, "tool_added": 2, "tool_catalogue": 2, "unlisted_tools": 2,
    "moved_meanwhile": 2, "deadline": 2, "late_approval": 2, "gone_meanwhile": 2, "service_hours": 2,
    "better_tool": 2, "amended_rules": 2, "taken_at": 2, "closed_today": 2, "price_moves": 2,
}  # fmt: skip
EDITION = 2  # the latest


def kinds_by(edition: int = EDITION) -> list[str]:
    """The kinds that there are up to an edition of the catalogue."""
    return [kind for kind in perturbations.names() if LATER.get(kind, 1) <= edition]


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
            raise UnknownName(f"no perturbation {kind!r}; {did_you_mean(kind, train_kinds(), few=len(train_kinds()))}")
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
