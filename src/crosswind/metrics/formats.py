"""Figures as people read them, one rounding and one wording everywhere: whole percents and whole points."""

from __future__ import annotations

from crosswind.metrics.scores import Cell, Drop, NetScore, Triviality, tasks_needed
from crosswind.metrics.stats import minimum_detectable_effect

MINUS = "\N{MINUS SIGN}"
PERCENT = "\N{NO-BREAK SPACE}%"
SURE = f"95{PERCENT} interval"
TRIVIAL_AGENT = "an agent that does nothing, echoes the request, refuses everything or guesses"
NARROW = 0.10  # an interval within so much of zero says that there is no larger change


def percent(share: float | None) -> str:
    """A share of one, in percent."""
    return "–" if share is None else f"{100 * share:.0f}{PERCENT}"


def points(delta: float | None, limit: float | None = None) -> str:
    """A change in percentage points, with its sign; with a decimal where it would look like the limit otherwise."""
    if delta is None:
        return "–"
    digits = int(limit is not None and delta != limit and round(100 * delta) == round(100 * limit))
    rounded = round(100 * delta, digits)
    return "0" if rounded == 0 else f"{'+' if rounded > 0 else MINUS}{abs(rounded):.{digits}f}"


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


def adjusted(change: Drop) -> str:
    """The p-value of a change, and what it is adjusted for."""
    tests = _tests(change)
    return f"{chance(change.p_holm)} ({tests})" if tests else chance(change.p_holm)


def _tests(change: Drop) -> str:
    return f"Holm, {change.tests} tests" if change.tests > 1 else ""


def more(change: Drop) -> str:
    """What so few tasks leave open: how many would show a change of this size, or which change they show."""
    needed = tasks_needed(change) if abs(change.delta) >= 0.02 else None
    if needed is not None:
        return f"about {max(needed, change.tasks + 1):,} tasks would show a change of this size"
    least = minimum_detectable_effect(change.tasks)
    if least is None:
        return "too few tasks to rule out a change"
    return f"{many(change.tasks, 'task')} would show a change of {100 * least:.0f} points or more"


def wording(change: Drop) -> str:
    """What a change amounts to, by one rule: a fall, a rise, no larger change than so much, or too little to tell."""
    bounds = f"{SURE} {span(change.low, change.high)}, {pairs(change)}"
    if change.clear:
        return (
            f"a {'fall' if change.delta < 0 else 'rise'} of {points(abs(change.delta)).lstrip('+')} points ({bounds})"
        )
    widest = max(-change.low, change.high)
    if widest <= NARROW:
        return f"no change of more than {100 * widest:.0f} points ({bounds})"
    if not change.delta:
        return f"no change seen ({bounds}; {more(change)})"
    few = f"{many(change.tasks, 'task')} are too few" if change.low > 0 or change.high < 0 else ""
    said = f"a change of {points(change.delta)} points, not clear: the exact test gives {chance(change.p_holm)}"
    return f"{said} ({'; '.join(filter(None, (_tests(change), few, bounds, more(change))))})"


def share(found: Cell) -> str:
    """A share with its interval and what it is of."""
    return "–" if found.rate is None else f"{percent(found.rate)} ({range_of(found.low, found.high)}; {found.n:,})"


def score(found: NetScore | None) -> str:
    """The one number, with its interval."""
    return "–" if found is None else f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f})"


def trivial(found: Triviality) -> str:
    """What an agent that is no better than a trivial one amounts to."""
    reached = f"{found.agent} {percent(found.reached)}; " if found.reached else ""
    wanted = f"more than {percent(found.bar)} is needed" if found.bar < 1 else "only more tasks can tell them apart"
    return (
        f"no better than {TRIVIAL_AGENT} "
        f"(solved {percent(found.rate)} of {many(found.tasks, 'task')}, 95{PERCENT} lower bound {percent(found.low)}; "
        f"{reached}{wanted})"
    )


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
