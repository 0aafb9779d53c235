"""Parts that pages share: the frame, rows of changes, heat tables, and episodes to open."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources

from crosswind.base.version import __version__
from crosswind.core.types import AXES, TIERS
from crosswind.metrics import By, Drop
from crosswind.report import charts, words
from crosswind.report.episode import STEPS, Exchange, Line, lines_of
from crosswind.report.markup import Markup, Pieces, clipped, join, style, tag
from crosswind.runs.reading import Reading

SHOWN = 1_500  # characters of one text in an episode
BYTES = 8_000_000  # of episodes on a page
HEATS = 9  # steps of colour
MANY = 16  # groups beyond which a grouping is folded
TASKS: tuple[tuple[By, str, str], ...] = (
    ("domain", "Domain", ""),
    ("level", "Level", "level "),
    ("family", "Family", ""),
)


# ---------------------------------------------------------------- the frame


def frame(title: str, header: Markup, sections: Sequence[tuple[str, str, Markup]], footer: Markup) -> str:
    """A whole page; a section is an anchor, a heading and what stands under it."""
    css = resources.files("crosswind.report").joinpath("style.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", name="generator", content=f"crosswind {__version__}"),
        tag("title", title),
        style(css),
    )
    links = tag("nav", (tag("a", heading, href=f"#{anchor}") for anchor, heading, _ in sections), aria_label="Sections")
    body = tag(
        "body",
        tag("header", header, links),
        tag("main", (tag("section", tag("h2", h), inner, id=anchor) for anchor, h, inner in sections)),
        tag("footer", footer),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en').html}\n"


def lead(*pieces: Pieces) -> Markup:
    return tag("p", *pieces, class_="lead")


def tiles(entries: Iterable[tuple[str, str, str, str]]) -> Markup:
    """Key figures: a name, the figure, a line under it, and the class of the figure."""
    return tag(
        "dl",
        (
            tag(
                "div",
                tag("dt", name),
                tag("dd", figure, class_=f"big {colour}".strip()),
                tag("dd", tag("small", under)),
            )
            for name, figure, under, colour in entries
        ),
        class_="tiles",
    )


def table(heads: Sequence[str], rows: Iterable[Sequence[Pieces]]) -> Markup:
    """A plain table; every column but the first holds numbers."""
    top = tag("tr", (tag("th", h, scope="col", class_="num" if i else None) for i, h in enumerate(heads)))
    body = (tag("tr", (tag("td", cell, class_="num" if i else None) for i, cell in enumerate(row))) for row in rows)
    return tag("div", tag("table", tag("thead", top), tag("tbody", body)), class_="scroll")


# ---------------------------------------------------------------- changes


def changes(groups: Mapping[str, Sequence[tuple[str, str, Drop]]], names: tuple[str, str]) -> Markup:
    """Changes as a forest plot, in groups with headings: name, a line under it, and the change."""
    drops = [drop for group in groups.values() for *_, drop in group]
    if not drops:
        return tag("p", "Nothing to show: no pairs of episodes.", class_="note")
    scale = charts.Scale([edge for drop in drops for edge in (drop.low, drop.high)])
    first, second = names
    top = tag(
        "div",
        tag("span"),
        tag("span", charts.axis(scale), class_="plot"),
        tag("span", f"points, {words.SURE}", class_="value"),
        tag("span", f"{first} to {second}", class_="more"),
        class_="axis",
    )
    rows: list[Markup] = []
    for heading, group in groups.items():
        if heading:
            rows.append(tag("li", heading, class_="head"))
        rows += [_change(name, under, drop, scale) for name, under, drop in group]
    return tag("div", top, tag("ul", rows, class_="rows"), class_="rows")


def _change(name: str, under: str, drop: Drop, scale: charts.Scale) -> Markup:
    colour = charts.sign_class(drop.delta, words.clear(drop))
    return tag(
        "li",
        tag("span", name, tag("small", under) if under else None, class_="name"),
        tag("span", charts.forest(scale, drop.delta, drop.low, drop.high, clear=words.clear(drop)), class_="plot"),
        tag(
            "span",
            tag("b", words.points(drop.delta), class_=colour),
            tag("small", words.span(drop.low, drop.high)),
            class_="value",
        ),
        tag(
            "span",
            f"{words.percent(drop.clean)} to {words.percent(drop.shifted)}",
            tag("small", f"{words.pairs(drop)}, {words.chance(drop.p_holm)}"),
            class_="value more",
        ),
    )


def under(drop: Drop, axis: str = "") -> str:
    """The line under a name: the axis, and the change over pairs whose obstacle was seen, where that differs."""
    seen = drop.exposed
    told = f"where seen: {words.points(seen.delta)} ({words.pairs(seen)})" if seen and seen.pairs < drop.pairs else ""
    return " · ".join(filter(None, (axis, told)))


def grouped_changes(
    drops: Mapping[By, Mapping[str, Drop]], which: Sequence[tuple[By, str, str]], names: tuple[str, str]
) -> Markup:
    """Changes by several groupings: the grouping, its heading, and what goes before the name of a group.

    A grouping with many groups is folded.
    """
    groups = {
        heading: [(clipped(f"{before}{d.name}", 80), under(d), d) for d in drops.get(by, {}).values()]
        for by, heading, before in which
    }
    folded = {heading: rows for heading, rows in groups.items() if len(rows) > MANY}
    return join(
        changes({heading: rows for heading, rows in groups.items() if rows and heading not in folded}, names),
        (
            tag(
                "details",
                tag("summary", f"{heading} ({len(rows)})"),
                tag("div", changes({"": rows}, names), class_="inside"),
            )
            for heading, rows in folded.items()
        ),
    )


def heat_cell(drop: Drop | None) -> Markup:
    """One cell of a heat table."""
    if drop is None or not drop.pairs:
        return tag("td", tag("span", "–", aria_hidden="true"), tag("span", "no pairs", class_="hidden"), class_="none")
    strength = min(HEATS, max(1, round(abs(drop.delta) * HEATS)))
    colour = "" if round(100 * drop.delta) == 0 else f"h{strength} {'down' if drop.delta < 0 else 'up'}"
    return tag(
        "td",
        tag("b", words.points(drop.delta)),
        tag("small", words.span(drop.low, drop.high)),
        tag("small", words.pairs(drop)),
        class_=colour or None,
    )


def heat(cells: Mapping[str, Drop]) -> Markup:
    """Tier by axis; `cells` are named as `drops(..., "cell")` names them."""
    top = tag("tr", tag("td"), (tag("th", axis, scope="col") for axis in AXES))
    body = (
        tag("tr", tag("th", tier, scope="row"), (heat_cell(cells.get(f"{tier} x {axis}")) for axis in AXES))
        for tier in TIERS
    )
    return tag("table", tag("thead", top), tag("tbody", body), class_="heat")


# ---------------------------------------------------------------- episodes


def episode(shown: Reading, *, by: str = "", open_: bool = False) -> Markup:
    """One episode to open: what the agent saw beside what the world saw, and the certified way."""
    record = shown.record
    cause = record.cause or (shown.diagnosis.cause if shown.diagnosis else None)
    top = tag(
        "summary",
        tag("span", record.outcome, class_=f"chip {record.outcome}"),
        tag("b", by or clipped(record.condition, 80)),
        tag("span", cause, class_="fall small") if cause and record.outcome == "fail" else None,
        tag("span", clipped(record.task_id, 120), class_="small task"),
        tag("span", words.many(len(record.steps), "step"), class_="small"),
    )
    return tag("details", top, tag("div", _inside(shown), class_="inside"), open=open_)


def fitting(pieces: Iterable[Markup]) -> list[Markup]:
    """Episodes from the first on, as long as a page does not get too large."""
    out: list[Markup] = []
    room = BYTES
    for piece in pieces:
        room -= len(piece.html.encode())
        if room < 0:
            break
        out.append(piece)
    return out


def _inside(shown: Reading) -> Markup:
    record, found = shown.record, shown.diagnosis
    parts: list[Pieces] = [_said("The user", record.query, shown.at_start)]
    if record.refuse:
        parts.append(tag("p", f"Refusing is right here: {shown.proof or 'the task cannot be done'}.", class_="note"))
    if record.layers:
        parts.append(_folded("Obstacles", [json.dumps(layer, ensure_ascii=False) for layer in record.layers]))
    if record.policy:
        parts.append(_folded("Policy", [record.policy]))
    parts.append(_folded(f"Tools as first shown ({len(record.tools)})", [_tool(t) for t in record.tools]))
    if found is not None:
        told = f"{found.cause}, {found.stage}: {clipped(found.why, SHOWN)}"
        where = f" (step {found.step})" if found.step is not None and found.step <= len(record.steps) else ""
        before = f" (The run recorded: {clipped(record.cause, 60)}.)" if record.cause not in (None, found.cause) else ""
        parts.append(tag("p", tag("b", "Where it went wrong: "), told, where, tag("small", before)))
    parts.append(_steps(lines_of(shown)))
    if len(record.steps) > STEPS:
        parts.append(tag("p", f"The first {STEPS} of {len(record.steps)} steps.", class_="note"))
    parts.append(_said("The agent, at the end", record.final or "(says nothing)", wrong=shown.final_diverges))
    if shown.gold_final:
        parts.append(_said("The certified way ends with", shown.gold_final))
    if shown.missing:
        parts.append(tag("p", clipped(shown.missing, SHOWN), class_="note"))
    if record.why:
        blamed = "The infrastructure failed: " if record.outcome == "error" else "Why it ended: "
        parts.append(tag("p", blamed, clipped(record.why, SHOWN), class_="note"))
    checks = [
        f"{'✓' if c.passed else '✗'} {c.name}{': ' + clipped(c.why, SHOWN) if c.why else ''}" for c in record.checks
    ]
    budget = f"{record.gold_steps} steps certified, {record.budget} allowed"
    parts.append(tag("p", f"Ended: {record.ended}; {budget}. ", "; ".join(checks), class_="note text"))
    parts.append(tag("p", "key ", tag("code", clipped(record.key, 300)), class_="note"))
    return join(*parts)


def _said(who: str, text: str, met: Sequence[str] = (), *, wrong: bool = False) -> Markup:
    chips = [tag("span", f"obstacle: {kind}", class_="chip met") for kind in met]
    mark = tag("span", "first divergence", class_="chip turn") if wrong else None
    return tag(
        "div",
        tag("span", who, " ", chips, mark, class_="small"),
        tag("div", clipped(text, 2 * SHOWN), class_="text"),
        class_="say wrong" if wrong else "say",
    )


def _folded(name: str, texts: Iterable[str]) -> Markup:
    inner = (tag("div", clipped(text, SHOWN), class_="text call") for text in texts)
    return tag("details", tag("summary", name), tag("div", inner, class_="inside"))


def _tool(tool: Mapping[str, object]) -> str:
    function = tool.get("function", tool)
    if not isinstance(function, Mapping):
        return str(function)
    parameters = function.get("parameters")
    held = parameters.get("properties") if isinstance(parameters, Mapping) else None
    names = ", ".join(map(str, held)) if isinstance(held, Mapping) else ""
    return f"{function.get('name')}({names}): {function.get('description')}"


def _steps(lines: Iterable[Line]) -> Markup:
    heads = ("", "what the agent saw", "what the world saw", "the certified way")
    top = tag("div", (tag("div", h) for h in heads), class_="step heads")
    return tag("div", top, map(_step, lines), class_="steps")


def _step(line: Line) -> Markup:
    flags = [tag("span", "first divergence", class_="chip turn")] if line.diverges else []
    flags += [tag("span", f"obstacle: {kind}", class_="chip met") for kind in line.met]
    heard = [tag("div", f"user: {clipped(text, SHOWN)}", class_="text") for text in line.heard]
    return tag(
        "div",
        tag("div", line.step if line.step is not None else "", class_="nth"),
        tag("div", flags, class_="flags") if flags else None,
        _side("agent", "agent", [line.agent] if line.agent else [], heard),
        _side("world", "world", line.world, []),
        _side("gold", f"certified way, step {line.gold_step}", [line.gold] if line.gold else [], []),
        class_="step wrong" if line.diverges else "step",
    )


def _side(side: str, label: str, exchanges: Sequence[Exchange], more: Sequence[Markup]) -> Markup:
    parts = [
        (
            tag("div", clipped(one.call, SHOWN), class_="call text"),
            tag("div", clipped(one.result, SHOWN), class_="reply text error" if one.failed else "reply text"),
        )
        for one in exchanges
    ]
    return tag("div", tag("div", label, class_="label"), parts, more, class_=side if parts or more else f"{side} empty")
