"""The scores of a run as a table: `crosswind run` prints it when it ends, and so does `print(run)`."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from io import StringIO

from rich.console import Console

from crosswind.base import terminal
from crosswind.core.types import TIERS
from crosswind.metrics import Drop, RefusalShares, Summary, formats

CHANGE = ("pairs", "tasks", "clean %", "shifted %", "change in points (95 %)")
HEADS = ("tier", *CHANGE, "right refusals", "false refusals")
TOTAL = "all shifted"


def legend(found: Summary) -> str:
    """What the columns count."""
    shares = (*found.refusals.values(), *found.refused["tier"].values())
    wrong = any(one.wrong.passed for one in shares)
    wrongly = "; wrongly: refused for a wrong reason or none, or with something left changed" if wrong else ""
    return (
        "Success counts solvable tasks only. Each shifted episode is paired with the clean episode of its task. Right "
        f"refusals: share of the tasks that should be refused{wrongly}. False refusals: share of the solvable tasks."
    )


def score_rows(found: Summary) -> list[list[str]]:
    """One row for each tier and the last for all shifted episodes: success on solvable tasks, and refusals beside."""
    tiers = [(tier, found.drops["tier"].get(tier), found.refused["tier"].get(tier)) for tier in TIERS]
    rows = [("clean", None, found.refusals["clean"]), *tiers, (TOTAL, found.drop, found.refusals["shifted"])]
    return [
        [name, *(change_cells(drop) if drop else [""] * len(CHANGE)), *refusal_cells(refusals)]
        for name, drop, refusals in rows
        if drop or (refusals and refusals.right.n + refusals.false.n)
    ]


def change_cells(drop: Drop) -> list[str]:
    """The cells below `CHANGE`."""
    span = f"{formats.points(drop.delta)} ({formats.span(drop.low, drop.high)})"
    shares = [formats.percent(share).removesuffix(formats.PERCENT) for share in (drop.clean, drop.shifted)]
    return [str(drop.pairs), str(drop.tasks), *shares, span]


def refusal_cells(found: RefusalShares | None) -> list[str]:
    """Shares of right and false refusals, each with the number of episodes."""
    if found is None:
        return ["", ""]
    right, false = (f"{formats.percent(c.rate)} of {c.n}" if c.n else "" for c in (found.right, found.false))
    return [right + formats.wrongly(found), false]


def as_text(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as plain text."""
    table = terminal.table_of(*heads)
    for row in rows:
        table.add_row(*map(terminal.safe, row))
    return printed(lambda console: console.print(terminal.fitted(table)))


def wrapped(text: str) -> str:
    """Prose, made safe and broken between words at the width of the terminal; its own line breaks stay."""
    wide, lines = terminal.columns(), terminal.safe(text).splitlines()
    return "\n".join(textwrap.fill(line, wide, break_long_words=False, break_on_hyphens=False) for line in lines)


def printed(show: Callable[[Console], None]) -> str:
    """What is shown on a console, as plain text."""
    out = StringIO()
    show(Console(file=out, width=terminal.columns(), markup=False, highlight=False, emoji=False, color_system=None))
    return out.getvalue()
