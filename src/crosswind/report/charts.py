"""Small pictures in SVG: forest rows, bars, curves over severities and over time.

Places are given in percent, so that a picture stretches to the width it gets and its text keeps its size. Colours are
classes of the style sheet.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

from crosswind.metrics.formats import MINUS
from crosswind.report.markup import Markup, join, tag

STEP = 0.25  # between the lines of a scale of changes


class ChangeScale:
    """A scale of changes from the lowest to the highest that is shown, zero and whole steps included."""

    def __init__(self, values: Sequence[float]) -> None:
        self.low = math.floor(min([*values, -STEP]) / STEP - 1e-9) * STEP
        self.high = math.ceil(max([*values, 0.0]) / STEP - 1e-9) * STEP + (0.08 if max([*values, 0.0]) <= 0 else 0)
        self.low = max(self.low, -1.0) - 0.02
        self.high = min(self.high, 1.02)

    def at(self, value: float) -> str:
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return f"{2 + 96 * share:.2f}%"

    @property
    def marks(self) -> list[float]:
        return [n * STEP for n in range(-4, 5) if self.low <= n * STEP <= self.high]


def sign_class(delta: float, clear: bool) -> str:
    """The class of a change: a fall, a rise, or nothing clear."""
    return "even" if not clear or delta == 0 else "fall" if delta < 0 else "rise"


def axis(scale: ChangeScale) -> Markup:
    """The numbers over a column of forest rows."""
    every = [m for m in scale.marks if len(scale.marks) <= 6 or round(m / STEP) % 2 == 0]
    texts = [
        tag(
            "text",
            f"{MINUS if m < 0 else '+' if m > 0 else ''}{abs(100 * m):.0f}",
            x=scale.at(m),
            y="1.4em",
            text_anchor="middle",
        )
        for m in every
    ]
    return tag("svg", texts, aria_hidden="true", height=22)


def forest(scale: ChangeScale, delta: float, low: float, high: float, *, clear: bool) -> Markup:
    """A point with its interval on a scale of changes."""
    colour = f"fill-{sign_class(delta, clear)}"
    lines = [
        tag("line", x1=scale.at(m), x2=scale.at(m), y1="0", y2="100%", class_="zero" if m == 0 else "grid")
        for m in scale.marks
    ]
    whisker = tag("line", x1=scale.at(low), x2=scale.at(high), y1="50%", y2="50%", class_=f"whisker {colour}")
    dot = tag("circle", cx=scale.at(delta), cy="50%", r=5, class_=colour)
    return tag("svg", lines, whisker, dot, aria_hidden="true")


def bar(share: float, kind: str = "") -> Markup:
    """A bar that fills a share of its track."""
    width = f"{100 * min(max(share, 0.0), 1.0):.2f}%"
    track = tag("rect", x="0", y="15%", width="100%", height="70%", rx=3, class_="track")
    filled = tag("rect", x="0", y="15%", width=width, height="70%", rx=3, class_=f"bar {kind}".strip())
    return tag("svg", track, filled, aria_hidden="true")


def _share_grid() -> list[Markup]:
    """Horizontal lines at shares from 0 to 1, with their numbers."""
    y, parts = _share_at, list[Markup]()
    for mark in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(tag("line", x1="6%", x2="100%", y1=y(mark), y2=y(mark), class_="grid"))
        parts.append(
            tag("text", f"{100 * mark:.0f} %", x="5%", y=y(mark), text_anchor="end", dominant_baseline="middle")
        )
    return parts


def _share_at(share: float) -> str:
    return f"{4 + 82 * (1 - share):.2f}%"


def timeline(points: Sequence[float], changes: Mapping[str, float], dotted: Sequence[float] = ()) -> Markup:
    """A curve of shares over positions from 0, and another one dotted; `changes` are marked by name."""

    def x(at: float) -> str:
        return f"{8 + 90 * at / max(1, len(points) - 1):.2f}%"

    parts = _share_grid()
    for name, at in changes.items():
        parts.append(tag("line", x1=x(at), x2=x(at), y1="4%", y2="86%", class_="reach", stroke_dasharray="5 4"))
        parts.append(tag("text", name, x=x(at), y="98%", text_anchor="middle"))
    for curve, dashes in ((dotted, {"stroke_dasharray": "1 4", "stroke_linecap": "round"}), (points, {})):
        for i, (from_, to) in enumerate(pairwise(curve)):
            ends = {"x1": x(i), "x2": x(i + 1), "y1": _share_at(from_), "y2": _share_at(to)}
            parts.append(tag("line", class_="line", **ends, **dashes))
    told = ", ".join(f"{name} from episode {at + 1:.0f}" for name, at in changes.items())
    return tag(
        "svg", join(*parts), class_="dose", role="img", aria_label=f"Success over time. Changes: {told or 'none'}"
    )


def dose(points: Sequence[tuple[int, float, float, float]], clean: float) -> Markup:
    """A curve of shares over severities, each with its interval; `clean` is the level without any perturbation."""

    def x(severity: int) -> str:
        return f"{8 + 90 * (severity - 1) / 4:.2f}%"

    y = _share_at
    parts = _share_grid()
    parts.append(tag("line", x1="6%", x2="100%", y1=y(clean), y2=y(clean), class_="reach", stroke_dasharray="5 4"))
    parts.append(tag("text", f"clean {100 * clean:.0f} %", x="100%", y=y(clean), dy="-.5em", text_anchor="end"))
    for (a, from_, *_), (b, to, *_) in pairwise(points):
        parts.append(tag("line", x1=x(a), x2=x(b), y1=y(from_), y2=y(to), class_="line"))
    for severity, share, low, high in points:
        parts.append(tag("line", x1=x(severity), x2=x(severity), y1=y(low), y2=y(high), class_="reach"))
        parts.append(tag("circle", cx=x(severity), cy=y(share), r=5, class_="dot"))
        parts.append(tag("text", str(severity), x=x(severity), y="98%", text_anchor="middle"))
    told = ", ".join(f"severity {s}: {100 * share:.0f} %" for s, share, *_ in points)
    return tag("svg", join(*parts), class_="dose", role="img", aria_label=f"Success by severity. {told}")
