"""A leaderboard as a page whose table sorts by any column, as Markdown, as JSON and as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from crosswind.base.version import __version__
from crosswind.metrics import formats
from crosswind.metrics.scores import Cell, Summary
from crosswind.report import markdown as md
from crosswind.report import parts
from crosswind.report.markup import Markup, clipped, div, join, lead, note, small, tag
from crosswind.runs.ranking import Leaderboard, LeaderboardRow

HEADS = ("agent", "score", "clean", "shifted", "change", "right refusals", "false refusals", "episodes", "cost")


def sentence(said: Leaderboard) -> str:
    """Which run is first, and whether that is more than chance."""
    first, *others = said.runs
    cell = first.summary.shifted
    rate = f"{formats.percent(cell.rate)} ({formats.range_of(cell.low, cell.high)})"
    out = f"{formats.many(len(said.runs), 'run')} of {said.suite}. "
    if not cell.passed:
        return out + ("No run solves any task" if others else f"{first.name} solves no task") + " in the open world."
    if not others:
        return f"{out}{first.name} solves {rate} in the open world."
    out += f"{first.name} solves the largest share in the open world: {rate}."
    close = [one.name for one in others if one.summary.shifted.n and one.summary.shifted.high >= cell.low]
    if close:
        few = ", ".join(close[:3]) + (f" and {len(close) - 3} more" if len(close) > 3 else "")
        out += f" Its interval overlaps with that of {few}; use crosswind compare to test the difference."
    return out


def cells(one: LeaderboardRow) -> list[tuple[str, str, float | None]]:
    """Figure, what stands under it, and the value to sort by, for each column after the agent."""
    found = one.summary
    change, cost = found.drop, found.usage.cost
    refusals = found.refusals["shifted"]
    bounds = f"{found.score.low:.2f} to {found.score.high:.2f}" if found.score else ""
    return [
        (f"{found.score.value:.2f}" if found.score else "–", bounds, found.score.value if found.score else None),
        _share(found.clean),
        _share(found.shifted),
        (
            formats.points(change.delta if change else None),
            formats.span(change.low, change.high) if change else "",
            change.delta if change else None,
        ),
        _share(refusals.right, formats.wrongly(refusals)),
        _share(refusals.false),
        (f"{found.episodes:,}", formats.many(found.tasks, "task"), found.episodes),
        (formats.money(found.usage), "", cost),
    ]


def _share(cell: Cell, more: str = "") -> tuple[str, str, float | None]:
    under = f"{formats.range_of(cell.low, cell.high)}{more}" if cell.n else ""
    return formats.percent(cell.rate), under, cell.rate


def rows(said: Leaderboard) -> list[list[str]]:
    """The table in plain text, under `HEADS`."""
    return [[_name(one), *(_joined(*cell[:2]) for cell in cells(one))] for one in said.entries]


def _name(one: LeaderboardRow) -> str:
    return f"({one.name}, scripted)" if one.reference else one.name


def _joined(figure: str, under: str) -> str:
    return f"{figure} ({under})" if under else figure


def as_json(said: Leaderboard) -> dict[str, Any]:
    """All figures, best first."""
    return {
        "suite": said.suite,
        "notes": said.notes,
        "entries": [
            {
                "agent": one.name,
                "folder": one.folder or None,
                "seed": one.seed,
                "reference": one.reference,
                **_figures(one.summary),
            }
            for one in said.entries
        ],
    }


def _figures(found: Summary) -> dict[str, Any]:
    wanted = {"score", "clean", "shifted", "drop", "refusals", "episodes", "tasks", "usage", "trivial"}
    return found.model_dump(mode="json", include=wanted)


def markdown(said: Leaderboard) -> str:
    """The table for a pull request or a README."""
    body = md.table(list(HEADS), [[md.literal(cell) for cell in row] for row in rows(said)])
    notes = [f"> Note: {md.literal(told, 400)}" for told in said.notes]
    return (
        "\n\n".join([f"## crosswind: {md.literal(said.suite)}", md.literal(sentence(said), 800), body, *notes]) + "\n"
    )


# ---------------------------------------------------------------- as a page


def page(said: Leaderboard) -> str:
    """The whole page; its table sorts by the column whose heading is chosen."""
    header = join(
        div("mark", "crosswind"),
        tag("p", f"suite {said.suite} · {formats.many(len(said.runs), 'run')}", class_="facts"),
        tag("h1", clipped(sentence(said), 600)),
        (tag("p", f"Note: {told}.", class_="warn") for told in said.notes),
    )
    footer = tag("p", f"Leaderboard by crosswind {__version__}. Intervals are 95{formats.PERCENT}.")
    return parts.frame(
        f"crosswind: {clipped(said.suite, 80)}",
        header,
        [("table", "Leaderboard", _table(said))],
        footer,
        script="sorting.js",
    )


def _table(said: Leaderboard) -> Markup:
    top = tag("tr", (_head(name, nth) for nth, name in enumerate(HEADS)))
    body = (
        tag("tr", tag("td", _agent(one)), _cells(one), class_="reference" if one.reference else None)
        for one in said.entries
    )
    return join(
        lead(
            "Clean, shifted and change count solvable tasks only; refusals have their own columns. The score is 0 for "
            "agents that do nothing, echo, refuse everything or guess, and 1 for the oracle. Click a heading to sort."
        ),
        tag("table", tag("thead", top), tag("tbody", body), class_="ranks", id="ranks"),
        note("Grey rows are scripted agents, which mark the lowest and the highest possible score."),
    )


def _head(name: str, nth: int) -> Markup:
    button = tag("button", name, type="button")
    return tag("th", button, scope="col", class_="num" if nth else None, aria_sort="descending" if nth == 3 else None)


def _agent(one: LeaderboardRow) -> Iterator[Markup]:
    yield tag("b", clipped(one.name, 100))
    yield small("scripted agent" if one.reference else clipped(one.folder, 200))


def _cells(one: LeaderboardRow) -> Iterator[Markup]:
    for (figure, under, value), head in zip(cells(one), HEADS[1:], strict=True):
        order = "" if value is None else f"{value:.6f}"
        yield tag("td", tag("b", figure), small(under) if under else None, class_="num", data_v=order, data_head=head)
