"""Numbers as people read them. Every number comes from `crosswind.metrics`."""

from __future__ import annotations

from crosswind.metrics import Drop

MINUS = "\N{MINUS SIGN}"
PERCENT = "\N{NO-BREAK SPACE}%"
SURE = f"95{PERCENT} interval"
ENOUGH = 0.05  # below this probability, corrected for the number of comparisons, a change counts as clear


def clear(change: Drop) -> bool:
    """Is a change more than chance, by the test corrected for the number of comparisons and by its interval?"""
    return change.p_holm < ENOUGH and (change.low > 0 or change.high < 0)


def percent(share: float | None) -> str:
    """A share of one, in percent."""
    return "–" if share is None else f"{100 * share:.0f}{PERCENT}"


def points(delta: float | None) -> str:
    """A change in percentage points, with its sign."""
    if delta is None:
        return "–"
    rounded = round(100 * delta)
    return "0" if rounded == 0 else f"{'+' if rounded > 0 else MINUS}{abs(rounded)}"


def span(low: float, high: float) -> str:
    """An interval of changes, in points."""
    return f"{points(low)} to {points(high)}"


def range_of(low: float, high: float) -> str:
    """An interval of shares, in percent."""
    return f"{100 * low:.0f} to {100 * high:.0f}{PERCENT}"


def chance(p: float | None) -> str:
    """A probability as tests report it."""
    if p is None:
        return "–"
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def many(n: int, one: str) -> str:
    """A number of things."""
    return f"{n:,} {one}{'s' * (n != 1)}"


def pairs(change: Drop) -> str:
    """What a change was seen in: pairs, and the tasks they are of, which is what makes it sure."""
    return f"{many(change.pairs, 'pair')} of {many(change.tasks, 'task')}"


def number(value: float | None, digits: int = 2) -> str:
    """A plain number."""
    return "–" if value is None else f"{value:,.{digits}f}".replace("-", MINUS)


def whole(value: float | None) -> str:
    """A number without what comes after its point."""
    return number(value, 0)


def duration(seconds: float) -> str:
    """A length of time."""
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"
