"""The scores of a run as a table: `crosswind run` prints it when it ends, and so does `print(run)`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from io import StringIO

from rich.console import Console

from crosswind.base import terminal
from crosswind.episodes.suite import BANDS
from crosswind.metrics import Drop
from crosswind.metrics.groups import Count

WIDTH = 140
CHANGE = ("pairs", "tasks", "clean %", "shifted %", "change in points (95 %)")
HEADS = ("tier", "episodes", "passed %", *CHANGE)
TOTAL = "all shifted"


def score_rows(scores: Mapping[str, Count], drops: Mapping[str, Drop]) -> list[list[str]]:
    """One row each for the clean episodes, the tiers and the stacks; the last sums up all shifted ones."""
    rows = []
    for band in BANDS:
        count, drop = scores.get(band), drops.get(band)
        if count:
            cells = change_cells(drop) if drop else [""] * len(CHANGE)
            rows.append([band, str(count.n), f"{100 * count.passed / count.n:.0f}", *cells])
    if total := drops.get("all"):
        rows.append([TOTAL, "", "", *change_cells(total)])
    return rows


def change_cells(drop: Drop) -> list[str]:
    """The cells below `CHANGE`."""
    span = f"{100 * drop.delta:+.0f} ({100 * drop.low:+.0f} to {100 * drop.high:+.0f})"
    return [str(drop.pairs), str(drop.tasks), f"{100 * drop.clean:.0f}", f"{100 * drop.shifted:.0f}", span]


def as_text(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as plain text."""
    table = terminal.table_of(*heads)
    for row in rows:
        table.add_row(*map(terminal.safe, row))
    return printed(lambda console: console.print(table))


def printed(show: Callable[[Console], None]) -> str:
    """What is shown on a console, as plain text."""
    out = StringIO()
    show(Console(file=out, width=WIDTH, markup=False, highlight=False, emoji=False, color_system=None))
    return out.getvalue()
