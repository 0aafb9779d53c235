"""Figures as people read them, one rounding and one wording everywhere: whole percents and whole points."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from crosswind.episodes.record import Usage
    from crosswind.metrics.scores import Cell, Drop, NetScore, RefusalShares, Triviality

MINUS = "\N{MINUS SIGN}"
PERCENT = "\N{NO-BREAK SPACE}%"
SURE = f"95{PERCENT} interval"
TRIVIAL = "no better than an agent that does nothing, echoes the request, refuses everything or guesses"
RIGHTLY = (
    "A refusal is right only if it gives the right reason and leaves nothing changed. Where the tool finish is "
    "offered, "
    'the agent must refuse with finish(status="cannot", reason=...), because plain text gives no reason.'
)
NARROW = 0.10  # an interval within so much of zero says that there is no larger change


def percent(share: float | None) -> str:
    """A share of one, in percent."""
    return "–" if share is None else f"{100 * share:.0f}{PERCENT}"


def sides(change: Drop) -> tuple[str, str]:
    """The shares before and after a change; with a decimal where whole percents would not add up to its points."""
    both = (change.clean, change.shifted)
    if round(100 * both[1]) - round(100 * both[0]) == round(100 * change.delta):
        return percent(both[0]), percent(both[1])
    before, after = (f"{100 * share:.1f}{PERCENT}" for share in both)
    return before, after


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
    from crosswind.metrics.scores import tasks_needed
    from crosswind.metrics.stats import minimum_detectable_effect

    needed = tasks_needed(change) if abs(change.delta) >= 0.02 else None
    if needed is not None:
        return f"about {max(needed, change.tasks + 1):,} tasks would be enough to detect a change of this size"
    least = minimum_detectable_effect(change.tasks)
    if least is None:
        return "too few tasks to rule out a change"
    return f"with {many(change.tasks, 'task')}, only a change of {100 * least:.0f} points or more can be detected"


def brief(change: Drop) -> str:
    """What a change amounts to, by one rule: a fall, a rise, no larger change than so much, or too little to tell."""
    size = f"a {'fall' if change.delta < 0 else 'rise'} of {points(abs(change.delta)).lstrip('+')} points"
    if change.clear:
        return size
    if (widest := max(-change.low, change.high)) <= NARROW:
        return f"no change of more than {100 * widest:.0f} points"
    return f"{size}, which may be due to chance" if change.delta else "no change seen"


def too_few(change: Drop) -> bool:
    """Are its tasks too few to show any change, however large?"""
    from crosswind.metrics.stats import minimum_detectable_effect

    return minimum_detectable_effect(change.tasks) is None


def certainty(change: Drop) -> str:
    """Whether a change is more than chance, in a sentence."""
    seen = f"{pairs(change)}, {SURE} {span(change.low, change.high)} points"
    if change.clear:
        return f"This change is statistically significant: {seen}, {adjusted(change)}."
    if (widest := max(-change.low, change.high)) <= NARROW:
        return f"A change of more than {100 * widest:.0f} points is ruled out: {seen}."
    few = ""
    if change.low > 0 or change.high < 0:
        few = f"; although the interval excludes zero, {many(change.tasks, 'task')} are too few for the exact test"
    no = "This change may be due to chance" if change.delta else "A change may have been missed"
    return f"{no}: {seen}, {adjusted(change)}{few}; {more(change)}."


def share(found: Cell) -> str:
    """A share with its interval and what it is of."""
    return "–" if found.rate is None else f"{percent(found.rate)} ({range_of(found.low, found.high)}; {found.n:,})"


def refused(found: RefusalShares) -> str:
    """What became of the episodes to refuse where some refusals were wrong."""
    every, right = found.right.passed + found.wrong.passed, found.right.passed
    if every == found.right.n == 1:
        return f"refuses the only episode that should be refused, {'correctly' if right else 'but wrongly'}"
    of = f"all {every:,}" if every == found.right.n else f"{every:,} of the"
    left = f"{found.right.n:,} " if every < found.right.n else ""
    return f"refuses {of} {left}episode{'s' * (found.right.n != 1)} that should be refused, {right:,} of them correctly"


def wrongly(found: RefusalShares) -> str:
    """What stands behind a share of right refusals where others were wrong; empty where none was."""
    return f", {found.wrong.passed:,} wrongly" if found.wrong.passed else ""


def meaning_of_wrongly(shown: Iterable[RefusalShares]) -> str:
    """What `wrongly` counts, as a sentence to append; empty where nothing shown has it."""
    if not any(map(wrongly, shown)):
        return ""
    return " Wrongly means with a wrong reason or none, or with a change left in place."


def score(found: NetScore | None) -> str:
    """The one number, with its interval."""
    return "–" if found is None else f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f})"


def no_better(found: Triviality) -> str:
    """By which figures an agent is no better than a trivial one, in a sentence."""
    best = (
        f"the scripted agent {found.agent} solves {percent(found.reached)}"
        if found.reached
        else "trivial agents solve none"
    )
    bound = f"its one-sided 95{PERCENT} lower bound, now {percent(found.low)},"
    needed = f"must exceed {percent(found.bar)}" if found.bar < 1 else f"would have to exceed 100{PERCENT}"
    return (
        f"No better than a trivial agent: it solves {percent(found.rate)} of {many(found.tasks, 'task')}, and {best}. "
        f"To count as better, {bound} {needed}."
    )


def many(n: int, one: str) -> str:
    """A number of things."""
    return f"{n:,} {one}{'s' * (n != 1)}"


def pairs(change: Drop) -> str:
    """What a change was seen in: pairs, and the tasks they are of, which is what makes it sure."""
    return f"{many(change.pairs, 'pair')} from {many(change.tasks, 'task')}"


def number(value: float | None, digits: int = 2) -> str:
    """A plain number."""
    return "–" if value is None else f"{value:,.{digits}f}".replace("-", MINUS)


def money(usage: Usage) -> str:
    """What episodes cost, with the currency where it is known."""
    if usage.cost is None:
        return number(None)
    return f"{usage.about}{number(usage.cost)} {usage.currency}".strip()


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
