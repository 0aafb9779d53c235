"""Parts that pages share: the frame, rows of changes, heat tables, and episodes to open."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import resources

from crosswind.base.version import __version__
from crosswind.core.types import AXES, TIERS
from crosswind.metrics import By, Drop, formats
from crosswind.report import charts, markup
from crosswind.report.episode import STEPS, Exchange, Line, ending, lines_of
from crosswind.report.markup import Markup, Pieces, clipped, div, join, note, small, span, style, tag
from crosswind.runs.reading import Reading

SHOWN = 1_500  # characters of one text in an episode
BYTES = 8_000_000  # of episodes on a page
HEATS = 9  # steps of colour
WORTH = 0.05  # from this unclear change on, the page says how many tasks would show it
WIDE = 5  # columns that fit on a phone
MANY = 16  # groups beyond which a grouping is folded
TASKS: tuple[tuple[By, str, str], ...] = (
    ("domain", "Domain", ""),
    ("level", "Level", "level "),
    ("family", "Family", ""),
)
Tile = tuple[str, Pieces, str, str]  # a name, the figure, a line under it, and the class of the figure


# ---------------------------------------------------------------- the frame


def frame(
    title: str, header: Markup, sections: Sequence[tuple[str, str, Markup]], footer: Markup, *, script: str = ""
) -> str:
    """A whole page; a section is an anchor, a heading and what stands under it. `script` is a file of this package."""
    css, code = _file("style.css"), _file(script) if script else ""
    policy = f"default-src 'none'; style-src '{_digest(css)}'; base-uri 'none'; form-action 'none'"
    if code:
        policy += f"; script-src '{_digest(code)}'"
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
        markup.script(code) if code else None,
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en').html}\n"


def _file(name: str) -> str:
    return resources.files("crosswind.report").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def command(text: str) -> Markup:
    """A command to copy."""
    return tag("pre", tag("code", clipped(text, 600)), class_="command")


def tile(name: str, drop: Drop, *, fewer_is_better: bool = False) -> Tile:
    """A change as a key figure, coloured by whether it is good."""
    under = f"{formats.span(drop.low, drop.high)}, {formats.pairs(drop)}"
    return (
        f"{name}, points",
        formats.points(drop.delta),
        under,
        charts.sign_class(-drop.delta if fewer_is_better else drop.delta, drop.clear),
    )


def tiles(entries: Iterable[Tile]) -> Markup:
    """Key figures."""
    return tag(
        "dl",
        (
            tag("div", tag("dt", name), tag("dd", figure, class_=f"big {colour}".strip()), tag("dd", small(under)))
            for name, figure, under, colour in entries
        ),
        class_="tiles",
    )


def table(heads: Sequence[str], rows: Iterable[Sequence[Pieces]]) -> Markup:
    """A plain table; every column but the first holds numbers. A wide one stacks its cells on a phone."""
    wide = len(heads) > WIDE
    top = tag("tr", (tag("th", h, scope="col", class_="num" if i else None) for i, h in enumerate(heads)))
    body = (
        tag(
            "tr",
            (
                tag("td", cell, class_="num" if i else None, data_head=heads[i] if wide and i else None)
                for i, cell in enumerate(row)
            ),
        )
        for row in rows
    )
    return div("scroll", tag("table", tag("thead", top), tag("tbody", body), class_="ranks plain" if wide else None))


# ---------------------------------------------------------------- changes


def changes(groups: Mapping[str, Sequence[tuple[str, Pieces, Drop]]], names: tuple[str, str]) -> Markup:
    """Changes as a forest plot, in groups with headings: name, a line under it, and the change."""
    drops = [drop for group in groups.values() for *_, drop in group]
    if not drops:
        return note("Nothing to show: no pairs of episodes.")
    scale = charts.ChangeScale([edge for drop in drops for edge in (drop.low, drop.high)])
    first, second = names
    top = div(
        "axis",
        tag("span"),
        span("plot", charts.axis(scale)),
        span("value", f"points, {formats.SURE}"),
        span("more", f"{first} to {second}"),
    )
    rows: list[Markup] = []
    for heading, group in groups.items():
        if heading:
            rows.append(tag("li", heading, class_="head"))
        rows += [_change(name, under, drop, scale) for name, under, drop in group]
    return div("rows", top, tag("ul", rows, class_="rows"))


def method(drops: Mapping[str, Drop], group: str) -> str:
    """What the intervals and p-values of a table of groups are."""
    interval = f"Each {formats.SURE} is for one {group} alone"
    return f"{interval}; p-values are Holm-adjusted over {len(drops)} {group}s." if len(drops) > 1 else f"{interval}."


def _change(name: str, under: Pieces, drop: Drop, scale: charts.ChangeScale) -> Markup:
    colour = charts.sign_class(drop.delta, drop.clear)
    return tag(
        "li",
        span("name", name, small(under) if under else None),
        span("plot", charts.forest(scale, drop.delta, drop.low, drop.high, clear=drop.clear)),
        span("value", tag("b", formats.points(drop.delta), class_=colour), small(formats.span(drop.low, drop.high))),
        span(
            "value more",
            f"{formats.percent(drop.clean)} to {formats.percent(drop.shifted)}",
            small(f"{formats.pairs(drop)}, {formats.adjusted(drop)}"),
            small(formats.more(drop)) if not drop.clear and abs(drop.delta) >= WORTH else None,
        ),
    )


def worst_first(drops: Iterable[Drop]) -> list[Drop]:
    return sorted(drops, key=lambda d: (d.delta, d.high, d.name))


def under(drop: Drop, axis: str = "") -> str:
    """The line under a name: the axis, and the change over pairs whose obstacle was seen, where that differs."""
    seen = drop.exposed
    told = (
        f"where the agent saw the obstacle and could react: {formats.points(seen.delta)} ({formats.pairs(seen)})"
        if seen and seen.pairs < drop.pairs
        else ""
    )
    return " · ".join(filter(None, (axis, told)))


def grouped_changes(
    drops: Mapping[By, Mapping[str, Drop]],
    which: Sequence[tuple[By, str, str]],
    names: tuple[str, str],
    links: Callable[[Drop, By], Markup] | None = None,
) -> Markup:
    """Changes by several groupings: the grouping, its heading, and what goes before the name of a group.

    A grouping with many groups is folded. `links` leads to the episodes of a change.
    """
    groups = {
        heading: [
            (clipped(f"{before}{d.name}", 80), (under(d), " ", links(d, by)) if links else under(d), d)
            for d in drops.get(by, {}).values()
        ]
        for by, heading, before in which
    }
    folded = {heading: rows for heading, rows in groups.items() if len(rows) > MANY}
    return join(
        changes({heading: rows for heading, rows in groups.items() if rows and heading not in folded}, names),
        (
            tag("details", tag("summary", f"{heading} ({len(rows)})"), div("inside", changes({"": rows}, names)))
            for heading, rows in folded.items()
        ),
    )


def heat_cell(drop: Drop | None, links: Callable[[Drop], Markup] | None = None) -> Markup:
    """One cell of a heat table."""
    if drop is None or not drop.pairs:
        return tag("td", tag("span", "–", aria_hidden="true"), span("hidden", "no pairs"), class_="none")
    strength = min(HEATS, max(1, round(abs(drop.delta) * HEATS)))
    colour = "" if round(100 * drop.delta) == 0 else f"h{strength} {'down' if drop.delta < 0 else 'up'}"
    return tag(
        "td",
        tag("b", formats.points(drop.delta)),
        small(formats.span(drop.low, drop.high)),
        small(links(drop) if links else formats.pairs(drop)),
        class_=colour or None,
    )


def heat(cells: Mapping[str, Drop], links: Callable[[Drop], Markup] | None = None) -> Markup:
    """Tier by axis; `cells` are named as `drops(..., "cell")` names them."""
    top = tag("tr", tag("td"), (tag("th", axis, scope="col") for axis in AXES))
    body = (
        tag("tr", tag("th", tier, scope="row"), (heat_cell(cells.get(f"{tier} x {axis}"), links) for axis in AXES))
        for tier in TIERS
    )
    return tag("table", tag("thead", top), tag("tbody", body), class_="heat")


# ---------------------------------------------------------------- episodes


def episode(shown: Reading, *, by: str = "", open_: bool = False, number: int | None = None) -> Markup:
    """One episode to open: what the agent saw beside what the world saw, and the certified way."""
    record = shown.record
    cause = record.cause or (shown.diagnosis.cause if shown.diagnosis else None)
    top = tag(
        "summary",
        span(f"chip {record.outcome}", record.outcome),
        tag("b", by or clipped(record.condition, 80)),
        span("fall small", cause) if cause and record.outcome == "fail" else None,
        span("small task", clipped(record.task_id, 120)),
        span("small", formats.many(len(record.steps), "step")),
    )
    anchor = None if number is None else f"e{number}"
    return tag("details", top, div("inside", _inside(shown)), open=open_, id=anchor)


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
        parts.append(note(f"The request should be refused: {shown.proof or 'the task cannot be done'}."))
    if record.layers:
        parts.append(_folded("Obstacles", [json.dumps(layer, ensure_ascii=False) for layer in record.layers]))
    if record.policy:
        parts.append(_folded("Policy", [record.policy]))
    parts.append(_folded(f"Tools as first shown ({len(record.tools)})", [_tool(t) for t in record.tools]))
    if found is not None:
        told = f"{found.cause}, {found.stage}: {clipped(found.why, SHOWN)}"
        where = f" (step {found.step})" if found.step is not None and found.step <= len(record.steps) else ""
        before = f" (The run recorded: {clipped(record.cause, 60)}.)" if record.cause not in (None, found.cause) else ""
        parts.append(tag("p", tag("b", "Where it went wrong: "), told, where, small(before)))
    parts.append(_steps(lines_of(shown)))
    if len(record.steps) > STEPS:
        parts.append(note(f"The first {STEPS} of {len(record.steps)} steps."))
    parts.append(_said("The agent, at the end", ending(record) or "(says nothing)", wrong=shown.final_diverges))
    if shown.gold_final:
        parts.append(_said("The certified solution ends with", shown.gold_final))
    if shown.missing:
        parts.append(note(clipped(shown.missing, SHOWN)))
    if record.ended == "exception":
        parts.append(join(note("The agent's code raised:"), tag("pre", clipped(record.why, 4 * SHOWN))))
    elif record.why:
        blamed = "The infrastructure failed: " if record.outcome == "error" else "Why it ended: "
        parts.append(note(blamed, clipped(record.why, SHOWN)))
    checks = [
        f"{'✓' if c.passed else '✗'} {c.name}{': ' + clipped(c.why, SHOWN) if c.why else ''}" for c in record.checks
    ]
    budget = f"the certified solution takes {formats.many(record.gold_steps, 'step')}, {record.budget} were allowed"
    parts.append(tag("p", f"Ended: {record.ended}; {budget}. ", "; ".join(checks), class_="note text"))
    parts.append(note("key ", tag("code", clipped(record.key, 300))))
    return join(*parts)


def _said(who: str, text: str, met: Sequence[str] = (), *, wrong: bool = False) -> Markup:
    chips = [span("chip met", f"obstacle: {kind}") for kind in met]
    mark = span("chip turn", "first divergence") if wrong else None
    return div(
        "say wrong" if wrong else "say", span("small", who, " ", chips, mark), div("text", clipped(text, 2 * SHOWN))
    )


def _folded(name: str, texts: Iterable[str]) -> Markup:
    inner = (div("text call", clipped(text, SHOWN)) for text in texts)
    return tag("details", tag("summary", name), div("inside", inner))


def _tool(tool: Mapping[str, object]) -> str:
    function = tool.get("function", tool)
    if not isinstance(function, Mapping):
        return str(function)
    parameters = function.get("parameters")
    held = parameters.get("properties") if isinstance(parameters, Mapping) else None
    names = ", ".join(map(str, held)) if isinstance(held, Mapping) else ""
    return f"{function.get('name')}({names}): {function.get('description')}"


def _steps(lines: Iterable[Line]) -> Markup:
    heads = ("", "what the agent saw", "what reached the world", "the certified solution")
    top = div("step heads", (tag("div", h) for h in heads))
    return div("steps", top, map(_step, lines))


def _step(line: Line) -> Markup:
    flags = [span("chip turn", "first divergence")] if line.diverges else []
    flags += [span("chip met", f"obstacle: {kind}") for kind in line.met]
    heard = [div("text", f"user: {clipped(text, SHOWN)}") for text in line.heard]
    return div(
        "step wrong" if line.diverges else "step",
        div("nth", line.step if line.step is not None else ""),
        div("flags", flags) if flags else None,
        _sides(line, heard),
    )


def _sides(line: Line, heard: Sequence[Markup]) -> list[Markup]:
    """The three columns of a step; those that are equal are shown once, over the room of all of them."""
    agent, gold = [line.agent] if line.agent else [], [line.gold] if line.gold else []
    certified = "certified solution" if line.gold_step is None else f"certified solution, step {line.gold_step}"
    if agent and list(line.world) == agent and gold == agent:
        return [_side("agent three", f"agent, world and {certified}", agent, heard, told=True)]
    if agent and list(line.world) == agent:
        return [_side("agent two", "agent and world", agent, heard, told=True), _side("gold", certified, gold, [])]
    if gold and list(line.world) == gold:
        both = f"world and {certified}"
        return [_side("agent", "agent", agent, heard), _side("world two", both, gold, [], told=True)]
    return [
        _side("agent", "agent", agent, heard),
        _side("world", "world", line.world, []),
        _side("gold", certified, gold, []),
    ]


def _side(
    side: str, label: str, exchanges: Sequence[Exchange], more: Sequence[Markup], *, told: bool = False
) -> Markup:
    parts = [
        (
            div("call text", clipped(one.call, SHOWN)),
            div("reply text error" if one.failed else "reply text", clipped(one.result, SHOWN)),
        )
        for one in exchanges
    ]
    return div(side if parts or more else f"{side} empty", div("label told" if told else "label", label), parts, more)
