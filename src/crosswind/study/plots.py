"""Plots as SVG files of their own: forests of changes, curves, points. Plain elements, no style sheet, no dependency.

They are read on white and on dark pages, so every plot has its own white ground.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise

INK, GREY, GRID = "#1f2933", "#52606d", "#d9e2ec"
COLOURS = ("#2f6fb0", "#c1432e", "#3a8a4d", "#8a5fb0", "#b8860b", "#3d8c8c")
Point = tuple[float, float, float, float]  # x, y, and the interval of y
Forest = tuple[str, Sequence[tuple[float, float, float] | None]]  # a name, and by series: value, low, high


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12, colour: str = INK) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}" '
        f'font-family="system-ui, sans-serif">{escape(text)}</text>'
    )


def _line(x1: float, y1: float, x2: float, y2: float, colour: str = GRID, width: float = 1.0) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width:g}"/>'


def _dot(x: float, y: float, colour: str, title: str = "") -> str:
    told = f"<title>{escape(title)}</title>" if title else ""
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}">{told}</circle>'


def _page(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" aria-label="{escape(title)}">'
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>'
        f"{_text(12, 22, title, size=14)}{''.join(parts)}</svg>\n"
    )


def _legend(names: Sequence[str], x: float, y: float) -> str:
    out, at = [], x
    for name, colour in zip(names, COLOURS, strict=False):
        out.append(_dot(at, y - 4, colour) + _text(at + 8, y, name, colour=GREY))
        at += 26 + 7 * len(name)
    return "".join(out)


def forest(title: str, series: Sequence[str], rows: Sequence[Forest], *, low: float = -1.0, high: float = 0.25) -> str:
    """Changes with their intervals, a row for each name and a colour for each series."""
    left, right, top, step = 170.0, 640.0, 78.0, 14.0 * max(1, len(series)) + 8
    height = top + step * len(rows) + 30

    def x(value: float) -> float:
        return left + (right - left) * (min(max(value, low), high) - low) / (high - low)

    parts, mark = [_legend(series, left, 42)], low
    while mark <= high + 1e-9:
        parts.append(_line(x(mark), top - 8, x(mark), height - 26, GREY if abs(mark) < 1e-9 else GRID))
        for at in (top - 14, height - 10):  # rows may be many
            told = f"{100 * mark:+.0f}" if mark else "0"
            parts.append(_text(x(mark), at, told, anchor="middle", size=11, colour=GREY))
        mark += 0.25
    for i, (name, values) in enumerate(rows):
        at = top + i * step
        parts.append(_text(left - 10, at + step / 2, name, anchor="end"))
        for n, value in enumerate(values):
            y, colour = at + 8 + 14 * n, COLOURS[n % len(COLOURS)]
            if value is None:
                parts.append(_text(left + 4, y + 4, "missing", size=10, colour=GREY))
                continue
            middle, lower, upper = value
            parts.append(_line(x(lower), y, x(upper), y, colour, 2))
            parts.append(_dot(x(middle), y, colour, f"{100 * middle:+.1f} ({100 * lower:+.1f} to {100 * upper:+.1f})"))
    return _page(right + 24, height, title, parts)


def bars(title: str, series: Sequence[str], rows: Sequence[Forest]) -> str:
    """Shares with their intervals, a group of bars for each name and a colour for each series."""
    left, right, top, bar = 250.0, 640.0, 62.0, 17.0
    step = bar * max(1, len(series)) + 16
    height = top + step * len(rows) + 24

    def x(value: float) -> float:
        return left + (right - left) * value

    parts = [_legend(series, left, 42)]
    for n in range(5):
        parts.append(_line(x(n / 4), top - 8, x(n / 4), height - 26))
        parts.append(_text(x(n / 4), height - 10, f"{25 * n} %", anchor="middle", size=11, colour=GREY))
    for i, (name, values) in enumerate(rows):
        at = top + i * step
        parts.append(_text(left - 12, at + (step - 16) / 2 + 4, name, anchor="end"))
        for n, value in enumerate(values):
            y, colour = at + bar * n, COLOURS[n % len(COLOURS)]
            if value is None:
                parts.append(_text(left + 4, y + 12, "missing", size=10, colour=GREY))
                continue
            middle, lower, upper = value
            size = f'width="{x(middle) - left:.1f}" height="{bar - 3:.1f}"'
            parts.append(f'<rect x="{left:.1f}" y="{y:.1f}" {size} fill="{colour}"/>')
            parts.append(_line(x(lower), y + bar / 2 - 1.5, x(upper), y + bar / 2 - 1.5, INK))
            parts.append(_text(x(upper) + 6, y + 11, f"{100 * middle:.0f} %", size=11, colour=GREY))
    return _page(right + 54, height, title, parts)


def heat(title: str, heads: Sequence[str], rows: Mapping[str, Sequence[float | None]]) -> str:
    """Shares as a table of coloured cells, from red over white to blue."""
    left, top, wide, high = 170.0, 150.0, 34.0, 22.0
    parts = []
    for n, head in enumerate(heads):
        x, y = left + wide * (n + 0.6), top - 8
        parts.append(f'<g transform="rotate(-55 {x:.1f} {y:.1f})">{_text(x, y, head, size=11, colour=GREY)}</g>')
    for i, (name, values) in enumerate(rows.items()):
        y = top + high * i
        parts.append(_text(left - 10, y + 15, name, anchor="end"))
        for n, value in enumerate(values):
            if value is None:
                continue
            strength, base = abs(2 * value - 1), (47, 111, 176) if value > 0.5 else (193, 67, 46)
            colour = "#" + "".join(f"{round(255 - strength * (255 - part)):02x}" for part in base)
            x = left + wide * n
            parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide - 2}" height="{high - 2}" fill="{colour}"/>')
            ink = "#ffffff" if strength > 0.6 else INK
            parts.append(_text(x + wide / 2 - 1, y + 15, f"{100 * value:.0f}", anchor="middle", size=11, colour=ink))
    return _page(left + wide * len(heads) + 80, top + high * len(rows) + 16, title, parts)


def curve(title: str, across: str, marks: Mapping[float, str], series: Mapping[str, Sequence[Point]]) -> str:
    """Values over places, some of which are marked; y in steps of 20 points, from below the lowest to 0 or above."""
    left, right, top, bottom = 70.0, 640.0, 60.0, 300.0
    every = [bound for points in series.values() for point in points for bound in (point[2], point[3])]
    low, high = math.floor(5 * min([*every, -0.2])) / 5, math.ceil(5 * max([*every, 0.0])) / 5
    first, last = min(marks), max(marks)

    def x(place: float) -> float:
        return left + 30 + (right - left - 60) * (place - first) / (last - first or 1)

    def y(value: float) -> float:
        return bottom - (bottom - top) * (value - low) / (high - low)

    parts = [_legend(list(series), left, 42)]
    for n in range(round(5 * low), round(5 * high) + 1):
        parts.append(_line(left, y(n / 5), right, y(n / 5), GREY if n == 0 else GRID))
        told = f"{20 * n:+d}" if n else "0"
        parts.append(_text(left - 8, y(n / 5) + 4, told, anchor="end", size=11, colour=GREY))
    for place, mark in marks.items():
        within = min(x(place), right + 20 - 3.3 * len(mark))  # half of what its letters take, roughly
        parts.append(_text(within, bottom + 20, mark, anchor="middle", colour=GREY))
    parts.append(_text((left + right) / 2, bottom + 40, across, anchor="middle", colour=GREY))
    for (_, points), colour in zip(series.items(), COLOURS, strict=False):
        for one, other in pairwise(points):
            parts.append(_line(x(one[0]), y(one[1]), x(other[0]), y(other[1]), colour, 1.5))
        for place, value, lower, upper in points:
            parts.append(_line(x(place), y(lower), x(place), y(upper), colour))
            parts.append(_dot(x(place), y(value), colour, f"{100 * value:+.1f}"))
    return _page(right + 24, bottom + 52, title, parts)


def scatter(title: str, across: str, up: str, points: Mapping[str, tuple[float, float]]) -> str:
    """Named points between 0 and 1 in both directions."""
    left, right, top, bottom = 70, 560, 50, 470

    def x(value: float) -> float:
        return left + (right - left) * value

    def y(value: float) -> float:
        return bottom - (bottom - top) * value

    parts = []
    for n in range(5):
        parts += [_line(left, y(n / 4), right, y(n / 4)), _line(x(n / 4), top, x(n / 4), bottom)]
        parts.append(_text(left - 8, y(n / 4) + 4, f"{25 * n} %", anchor="end", size=11, colour=GREY))
        parts.append(_text(x(n / 4), bottom + 18, f"{25 * n} %", anchor="middle", size=11, colour=GREY))
    parts.append(_text((left + right) / 2, bottom + 38, across, anchor="middle", colour=GREY))
    parts.append(_text(left, top - 8, up, colour=GREY))
    taken = [(x(a) - 5, y(b) - 5, x(a) + 5, y(b) + 5) for a, b in points.values()]  # boxes that no name may cover
    for name, (a, b) in sorted(points.items(), key=lambda one: -one[1][1]):
        parts.append(_dot(x(a), y(b), COLOURS[0], name))
        places = [(side, 12 * n) for n in (0, 1, -1, 2, -2, 3, -3, 4, -4, 6, -6, 8, -8) for side in (1, -1)]
        for side, down in places:
            width, at = 5.8 * len(name), x(a) + side * (7 if not down else 16)
            box = (min(at, at + side * width), y(b) + down - 6, max(at, at + side * width), y(b) + down + 5)
            if left < box[0] and box[2] < right + 36 and not any(_meet(box, other) for other in taken):
                break
        taken.append(box)
        if down:
            parts.append(_line(x(a), y(b), at - 2 * side, y(b) + down, GREY, 0.6))
        anchor = "start" if side > 0 else "end"
        parts.append(_text(at, y(b) + down + 4, name, anchor=anchor, size=10, colour=GREY))
    return _page(right + 40, bottom + 52, title, parts)


def _meet(one: Sequence[float], other: Sequence[float]) -> bool:
    """Do two boxes overlap?"""
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
