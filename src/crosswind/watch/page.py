"""A watched log as a page: a time line of every channel with the alarms on it, then each alarm in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crosswind.base.version import __version__
from crosswind.metrics import formats
from crosswind.report import parts
from crosswind.report.markup import Markup, div, join, lead, note, tag
from crosswind.watch.alarms import Alarm
from crosswind.watch.wording import headline, lines_of

BINS = 60  # columns of the time line


class History:
    """How high each channel's detector stood over the log, in a bounded number of columns."""

    def __init__(self) -> None:
        self.per = 1  # episodes in a column
        self.columns: list[dict[str, float]] = []
        self.count = 0

    def add(self, levels: Mapping[str, float]) -> None:
        """Take the levels after an episode, each as a share of its threshold."""
        place = self.count // self.per
        self.count += 1
        if place >= 2 * BINS:
            self.columns = [_higher(a, b) for a, b in zip(self.columns[::2], self.columns[1::2], strict=False)]
            self.per *= 2
            place = (self.count - 1) // self.per
        while len(self.columns) <= place:
            self.columns.append({})
        self.columns[place] = _higher(self.columns[place], levels)


def _higher(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    return {name: max(one.get(name, 0.0), other.get(name, 0.0)) for name in {**one, **other}}


def page(source: str, alarms: Sequence[Alarm], history: History, guarantee: str) -> str:
    """The whole page."""
    kinds = [alarm.shift.kind for alarm in alarms if alarm.shift is not None]
    title = f"Watch: {source}"
    told = formats.many(len(alarms), "alarm") if alarms else "No alarm"
    header = join(
        tag("h1", title),
        lead(f"{told} in {formats.many(history.count, 'episode')}" + (f": {', '.join(kinds)}." if kinds else ".")),
    )
    sections = [
        ("time", "Time line", _timeline(alarms, history)),
        (
            "alarms",
            "Alarms",
            join(*(_alarm(n, alarm) for n, alarm in enumerate(alarms, 1))) if alarms else note("None."),
        ),
        ("rate", "False alarms", lead(guarantee)),
    ]
    return parts.frame(title, header, sections, tag("p", f"crosswind {__version__}"))


def _timeline(alarms: Sequence[Alarm], history: History) -> Markup:
    """A row for each channel that ever stirred, a column for some episodes; darker is nearer to an alarm."""
    names = sorted({name for column in history.columns for name, level in column.items() if level > 0.01})
    names += [name for name in dict.fromkeys(alarm.channel for alarm in alarms) if name not in names]
    if not names:
        return note("No channel came near its threshold.")
    marked = {(alarm.channel, alarm.at // history.per): n for n, alarm in enumerate(alarms, 1)}
    rows = []
    for name in names:
        cells = []
        for place, column in enumerate(history.columns):
            level = min(1.0, column.get(name, 0.0))
            number = marked.get((name, place))
            heat = parts.HEATS if number else round(parts.HEATS * level)
            cells.append(tag("td", str(number) if number else "", class_=f"down h{heat}" if heat else None))
        rows.append(tag("tr", tag("th", name, scope="row"), cells))
    caption = tag("caption", f"Each column is {formats.many(history.per, 'episode')}. Numbers are alarms.")
    return div("scroll", tag("table", caption, tag("tbody", rows), class_="timeline"))


def _alarm(number: int, alarm: Alarm) -> Markup:
    rows = (tag("tr", tag("th", name, scope="row"), tag("td", text)) for name, text in lines_of(alarm))
    return join(tag("h3", f"{number}. {headline(alarm)}"), div("scroll", tag("table", tag("tbody", rows))))
