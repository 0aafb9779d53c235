"""Two obstacles at once, in a report: a table that says whether their losses add up."""

from __future__ import annotations

from collections.abc import Sequence

from crosswind.metrics import formats
from crosswind.metrics.interactions import Interaction
from crosswind.report.markup import Markup, join, note, tag
from crosswind.report.parts import table

HEADS = ("two at once", "tiers", "clean", "first", "second", "both", "if independent", "interaction (95 %)", "n")


def rows(found: Sequence[Interaction]) -> list[list[str]]:
    """A row for each pair of kinds, under `HEADS`."""
    return [
        [
            " + ".join(one.kinds),
            " x ".join(one.tiers),
            *(formats.percent(share) for share in (one.clean, one.first, one.second, one.both, one.independent)),
            f"{formats.points(one.value)} ({formats.span(one.low, one.high)})",
            str(one.n),
        ]
        for one in found
    ]


def section(found: Sequence[Interaction]) -> Markup | None:
    """The table with its explanation; None where a run has no kinds both alone and together."""
    if not found:
        return None
    return join(
        tag("h3", "Interactions"),
        note(
            "Success on the tasks that were played clean, with each of two perturbations, and with both. The "
            "interaction is "
            "the change with both minus the changes with each, in points; below 0, one makes the other worse. Large "
            "losses cannot fully add up, so compare success with both to what independent losses would leave."
        ),
        table(HEADS, rows(found)),
    )
