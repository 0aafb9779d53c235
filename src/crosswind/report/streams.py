"""Streams in a report: what they show in a sentence, a table of figures, and success over time."""

from __future__ import annotations

from collections.abc import Sequence

from crosswind.metrics import formats
from crosswind.metrics.careers import CareerSummary
from crosswind.metrics.shares import StreamShare
from crosswind.metrics.streams import SHOTS, SLACK, WINDOW, StreamPairs, StreamSummary
from crosswind.report import charts
from crosswind.report.markup import Markup, join, lead, note, tag
from crosswind.report.parts import table

TWISTS = {
    "plain": "left alone",
    "superseded": "superseded",
    "contradicted": "contradicted by hearsay",
    "expired": "replaced for a while",
}
HEADS = ("", "passed", "episodes", "95 % over streams")


def sentence(found: StreamSummary, agent: str) -> str:
    """What a run of streams shows."""
    of = f"{formats.many(found.episodes, 'episode')} in {formats.many(found.streams, 'stream')}"
    out = f"{agent} passes {formats.percent(found.success.value)} of {of}"
    if (career := found.career) is not None:
        if not career.dependent.n:
            forfeited = formats.many(career.forfeited, "episode")
            return f"{out}. No request needs something from an earlier one; {forfeited} forfeited."
        return (
            f"{out}: {formats.percent(career.independent.value)} of those that need no memory, and "
            f"{formats.percent(career.dependent.value)} of the {career.dependent.n} that need something from an "
            f"earlier one; {formats.many(career.forfeited, 'episode')} forfeited."
        )
    if found.drop is None:
        return f"{out}; the interface did not change."
    return (
        f"{out}. After a change, success moves by {formats.points(found.drop)} points over "
        f"{formats.many(found.window, 'episode')}. {_recovered(found)}"
    )


def _recovered(found: StreamSummary) -> str:
    """Whether the agent came back, of the changes that there was something to come back from."""
    slack = f"more than {100 * SLACK:.0f} points"
    if found.success.n and not found.success.value:
        return "It never succeeds, so there is nothing to recover from."
    if not found.falls or found.recovered is None:
        return f"Success did not fall by {slack} after any change, so there is nothing to recover from."
    back = f", on average {found.recovery:.1f} episodes later" if found.recovery is not None else ""
    fell = f"{formats.many(found.falls, 'change')} after which success fell by {slack}"
    return f"The agent recovers from {formats.percent(found.recovered)} of the {fell}{back}."


def rows(found: StreamSummary) -> list[list[str]]:
    """The figures, a row each, under `HEADS`."""
    if (career := found.career) is not None:
        return [_row(name, share) for name, share in _of_career(found, career).items() if share.n]
    shares = {
        "all episodes": found.success,
        "stability: tasks that no release touches": found.stability,
        "adaptation: tasks that a release touches": found.adaptation,
        **{f"release {name}": share for name, share in found.releases.items() if len(found.releases) > 1},
        **{f"{_shot(int(k))} under a release": share for k, share in found.shots.items()},
    }
    return [_row(name, share) for name, share in shares.items()]


def _of_career(found: StreamSummary, career: CareerSummary) -> dict[str, StreamShare]:
    return {
        "all episodes": found.success,
        "need no memory": career.independent,
        "need something from an earlier episode": career.dependent,
        **{f"told and {TWISTS[name]}": share for name, share in career.twists.items()},
        **{
            f"told {name} episode{'' if name == '1' else 's'} before": share for name, share in career.distances.items()
        },
        **{f"about {name}": share for name, share in career.facts.items()},
        "facts whose every later request passed": career.chains,
        "failures from an outdated or false value": career.stale,
    }


def _row(name: str, share: StreamShare) -> list[str]:
    bounds = "–" if share.low is None or share.high is None else formats.range_of(share.low, share.high)
    return [name, formats.percent(share.value), str(share.n), bounds]


def _shot(k: int) -> str:
    """The episodes that a shot stands for."""
    more = next((other for other in SHOTS if other > k), None)
    if more is None:
        return f"after {k} or more episodes"
    if more == k + 1:
        return f"after {formats.many(k, 'episode')}"
    return f"after {k} to {more - 1} episodes"


def section(found: StreamSummary) -> Markup:
    """Success over time with the changes marked, then the figures."""
    points = smoothed(found.curve)
    return join(
        lead(
            f"Success over the last {WINDOW} episodes, averaged over {formats.many(found.streams, 'stream')}. A dashed "
            "line marks where a release first appears."
        ),
        charts.timeline(points, found.changes),
        tag("h3", "Figures"),
        table(HEADS, rows(found)),
        note(f"Regret: {found.regret:.1f} failures per stream. The oracle has none. Intervals resample whole streams."),
        _costs(found),
    )


DIFFERENCE = ("episodes", "second less first", "pairs", "95 % over streams")


def difference(found: StreamPairs, first: str, second: str) -> str:
    """What two runs of the same streams show."""
    change = found.difference
    interval = "" if change.low is None or change.high is None else f" ({formats.span(change.low, change.high)})"
    return (
        f"Over the {formats.many(change.n, 'episode')} at equal places of their streams, {second} passes "
        f"{formats.percent(found.second.value)} and {first} {formats.percent(found.first.value)}: "
        f"{formats.points(change.value or 0.0)} points{interval}."
    )


def differences(found: StreamPairs) -> list[list[str]]:
    """Differences by what the episodes are, under `DIFFERENCE`."""
    rows = {"all": found.difference, **found.parts}
    return [[name, formats.points(s.value or 0.0), str(s.n), _bounds(s)] for name, s in rows.items()]


def _bounds(share: StreamShare) -> str:
    return "–" if share.low is None or share.high is None else formats.span(share.low, share.high)


def both(found: StreamPairs, names: tuple[str, str]) -> Markup:
    """Two curves of success over time, then the differences."""
    before, after = map(smoothed, found.curves)
    return join(
        lead(
            f"Success over the last {WINDOW} episodes: {names[1]} as a line, {names[0]} dotted. A dashed line marks "
            "where a release first appears. Episodes are paired by their position in the stream."
        ),
        charts.timeline(after, found.changes, before),
        table(DIFFERENCE, differences(found)),
        note("In points. Intervals resample whole streams; with one stream there is none."),
    )


def _costs(found: StreamSummary) -> Markup | None:
    if not any(found.tokens):
        return None
    used = [(name, formats.whole(n)) for name, n in zip(found.releases, found.tokens, strict=True)]
    return join(tag("h3", "Cost over time"), table(("release", "tokens per episode"), used))


def smoothed(curve: Sequence[float]) -> list[float]:
    """Means over the window that ends at each position, which is shorter at the beginning."""
    out = []
    for i in range(len(curve)):
        some = curve[max(0, i + 1 - WINDOW) : i + 1]
        out.append(sum(some) / len(some))
    return out
