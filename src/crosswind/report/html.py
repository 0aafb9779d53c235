"""The report on a run as one page: one script of this package, nothing loaded from elsewhere, every text escaped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from crosswind.base.version import __version__
from crosswind.core.registry import perturbations
from crosswind.core.types import TIERS
from crosswind.episodes.record import Usage
from crosswind.metrics import Averages, By, Drop, PassHatK, Summary, formats
from crosswind.metrics.diagnosis import CAUSES, STAGES
from crosswind.report import charts, finder, interactions, parts, streams
from crosswind.report.content import Content, Scale
from crosswind.report.finder import drop_links, link, of_group
from crosswind.report.front import first_screen, stacked
from crosswind.report.markup import Markup, Pieces, clipped, div, join, lead, note, small, span, tag
from crosswind.report.parts import table
from crosswind.report.show import numbered
from crosswind.report.verdict import details, headline, refusals
from crosswind.runs.baselines import TELLS
from crosswind.runs.command import repeat

SIDES = ("clean", "shifted")
TIERINGS: tuple[By, ...] = ("tier", "published")
UNMEASURED = (
    "Nothing was measured for this run, because the certified solution cannot be replayed for a server behind a URL, "
    "or "
    "for a domain that is not loaded."
)
MEASURES: tuple[tuple[str, str, Callable[[float | None], str]], ...] = (
    ("calls that returned an error", "tool_error_rate", formats.percent),
    ("… caused by the agent", "own_error_rate", formats.percent),
    ("information gathering, 0 (none) to 1 (as much as the solution)", "exploration", formats.number),
    ("calls per episode", "chain_length", formats.number),
    ("… in the certified solution", "gold_chain_length", formats.number),
    ("questions to the user per episode", "questions", formats.number),
    ("right refusals, of the tasks to refuse", "right_refusal_rate", formats.percent),
    ("false refusals, of the solvable tasks", "false_refusal_rate", formats.percent),
    ("recovered after a fault", "recovery_rate", formats.percent),
    ("made the right call after a fault", "resumed_rate", formats.percent),
    ("collateral writes per episode", "collateral_writes", formats.number),
    ("duplicate writes per episode", "duplicate_writes", formats.number),
    ("claimed a success that did not happen", "false_success_rate", formats.percent),
    ("did the right thing but gave a wrong answer", "wrong_answer_rate", formats.percent),
    ("turns per episode", "turns", formats.number),
    ("input tokens per episode", "input_tokens", formats.whole),
    ("output tokens per episode", "output_tokens", formats.whole),
    ("seconds per episode", "seconds", formats.number),
)


def page(said: Content) -> str:
    """The whole page."""
    found = said.summary
    sections = [
        ("stream", "Success over time", streams.section(said.stream)) if said.stream else None,
        ("scale", "For comparison", _scale(said)) if said.scale or said.unplayed else None,
        ("kinds", "Each perturbation, worst first", _kinds(said)) if found.drops.get("condition") else None,
        ("tiers", "Tier by axis", _tiers(said)) if found.drops.get("cell") else None,
        ("refusals", "Refusals", _refusals(found)) if found.refusals["shifted"].right.n else None,
        ("doses", "Severity", _doses(found)) if found.drops.get("severity") else None,
        ("causes", "Why it fails", _causes(found)) if found.causes or found.stages else None,
        ("tasks", "Kinds of task", _tasks(found)) if found.drop else None,
        ("behaviour", "Agent behaviour", _behaviour(said)),
        ("costs", "Costs and exclusions", _costs(said)),
        ("find", "All episodes", _find(said)) if said.run.told else None,
        ("episodes", "Episode transcripts", _episodes(said)) if said.readings else None,
    ]
    agent = said.run.manifest.agent
    return parts.frame(
        f"crosswind: {clipped(agent, 80)} on {said.run.manifest.name}",
        _header(said),
        [section for section in sections if section],
        _footer(said),
        script="finder.js",
    )


def _header(said: Content) -> Markup:
    manifest, found = said.run.manifest, said.summary
    facts = [
        f"suite {manifest.name}",
        f"seed {manifest.seed}",
        formats.many(found.episodes, "episode"),
        formats.many(found.tasks, "task"),
        *([f"{found.trials} trials each"] if found.trials > 1 else []),
        manifest.created[:10],
    ]
    return join(
        div("mark", "crosswind"),
        tag("p", clipped(manifest.agent, 200), " · ", " · ".join(facts), class_="facts"),
        tag("h1", clipped(said.verdict if said.stream else headline(found, manifest.agent, brief=True), 600)),
        tag("p", refusals(found), " ", details(found), class_="lead"),
        (tag("p", f"Note: {problem}.", class_="warn") for problem in said.run.problems),
        first_screen(said),
        parts.tiles(_tiles(found)),
    )


def _tiles(found: Summary) -> Iterator[parts.Tile]:
    counted = "solvable pair" if found.drop else "solvable episode"
    worlds = (("clean world", found.clean, {"side": 1}), ("open world", found.shifted, {"pair": 1}))
    for name, cell, side in worlds:
        under = f"{formats.range_of(cell.low, cell.high)}, {formats.many(cell.n, counted)}"
        figure = link(formats.percent(cell.rate), **side) if found.drop else formats.percent(cell.rate)
        yield f"Solved, {name}", figure, under, ""
    if found.drop:
        yield parts.tile("Change", found.drop)
        if found.drop.exposed:
            yield parts.tile("Change where the agent saw the obstacle and could react", found.drop.exposed)
    if found.mild:
        yield parts.tile("Change at severity 1", found.mild)
    refusals = found.refusals["shifted"]
    if refusals.right.n:
        for name, cell in (("Right refusals", refusals.right), ("False refusals", refusals.false)):
            under = (
                f"{formats.range_of(cell.low, cell.high)}, {formats.many(cell.n, 'episode')}; always refusing gives 100"
            )
            refuse = int(name == "Right refusals")
            figure = link(formats.percent(cell.rate), judged=1, clean=0, refuse=refuse)
            yield name, figure, f"{under}{formats.PERCENT}", ""
    if found.score:
        bounds = f"{found.score.low:.2f} to {found.score.high:.2f}; trivial agents 0, oracle 1"
        yield "Score", f"{found.score.value:.2f}", bounds, ""
    usage = found.usage
    if usage.tokens:
        cost = f"total cost {formats.money(usage)}" if usage.cost is not None else "no price known"
        yield "Tokens", f"{usage.tokens / 1000:,.0f} k", cost, ""


# ---------------------------------------------------------------- sections


def _scale(said: Content) -> Markup:
    notes = (note(clipped(why, 400)) for why in said.unplayed)
    return join(_beside(said.scale) if said.scale else None, notes)


def _beside(scale: Scale) -> Markup:
    some = f": {scale.sample}" if scale.sample else ""
    rows = (
        tag(
            "li",
            span("name", tag("b", clipped(name, 60)), small(TELLS.get(name, "this run"))),
            span("plot pair", charts.bar(found.clean.rate or 0.0, "pale"), charts.bar(found.shifted.rate or 0.0)),
            span(
                "value lines",
                (
                    tag("span", tag("b", formats.percent(cell.rate)), f" {side}")
                    for side, cell in zip(SIDES, (found.clean, found.shifted), strict=True)
                ),
                small(_said_no(found)) if found.refusals["shifted"].right.n else None,
                small(f"score {found.score.value:.2f}") if found.score else None,
            ),
        )
        for name, found in scale.summaries.items()
    )
    return join(
        lead(
            f"Scripted agents on the same episodes{some}. Bars show success on solvable tasks: clean above, shifted "
            "below."
        ),
        tag("ul", rows, class_="rows bars"),
    )


def _said_no(found: Summary) -> str:
    refusals = found.refusals["shifted"]
    right = f"{formats.percent(refusals.right.rate)} of the tasks to refuse{formats.wrongly(refusals)}"
    return f"refuses {right}, and {formats.percent(refusals.false.rate)} of the solvable ones"


def _refusals(found: Summary) -> Markup:
    kinds = {name: one for name, one in found.refused["kind"].items() if one.right.n}
    rows: list[Sequence[Pieces]] = [
        (kind, link(formats.share(one.right) + formats.wrongly(one), only=kind, refuse=1, judged=1))
        for kind, one in sorted(kinds.items())
    ]
    shifted = found.refusals["shifted"]
    rows.append(("all shifted", formats.share(shifted.right) + formats.wrongly(shifted)))
    tiers = [
        (tier, link(formats.share(one.false), tier=tier, refuse=0, judged=1))
        for tier, one in found.refused["tier"].items()
        if one.false.n
    ]
    sides = [
        (f"all {side}", link(formats.share(found.refusals[side].false), clean=int(side == "clean"), refuse=0, judged=1))
        for side in SIDES
    ]
    return join(
        lead(
            "Tasks that cannot be done, whether or not a perturbation is the reason, count here and not towards "
            "success. "
            f"An agent that always refuses with the right reason has 100{formats.PERCENT} in both tables, although it "
            f"solves nothing.{formats.meaning_of_wrongly([*found.refused['kind'].values(), shifted])}"
        ),
        div(
            "two",
            tag("div", tag("h3", "Right refusals"), table(("tasks to refuse", f"refused ({formats.SURE}; n)"), rows)),
            tag(
                "div",
                tag("h3", "False refusals"),
                table(("solvable tasks", f"refused ({formats.SURE}; n)"), [*tiers, *sides]),
            ),
        ),
    )


def _tiers(said: Content) -> Markup:
    found = said.summary
    tiers, published = (
        {"": [(tier, drop_links(drop, by), drop) for tier in TIERS if (drop := found.drops[by].get(tier))]}
        for by in TIERINGS
    )
    return join(
        lead(
            "Change in points on solvable tasks with exactly one perturbation, by what the perturbation demands of the "
            f"agent (tier) and what it changes (axis). {parts.method(found.drops['cell'], 'cell')}"
        ),
        parts.heat(found.drops["cell"], _cell_links),
        tag("h3", "Tiers"),
        parts.changes(tiers, SIDES),
        tag("h3", "Tiers as published"),
        note(
            "The paper that introduced the tiers (arXiv 2607.01084) uses the same names but defines them differently, "
            "so these figures differ from those above. Its definitions: noise and changes of form (perception), "
            "interface and behaviour of the tools (interaction), incomplete or "
            "conflicting information (reasoning), memory and knowledge (internalization)."
        ),
        parts.changes(published, SIDES),
        interactions.section(said.interactions),
    )


def _cell_links(drop: Drop) -> Markup:
    return link(formats.pairs(drop), **(of_group("cell", drop.name) or {}), pair=1)


def _kinds(said: Content) -> Markup:
    found, several = said.summary, stacked(said)
    kinds = found.drops.get("kind", {})
    others = [drop for name, drop in found.drops["condition"].items() if name in several]
    rows = [
        (clipped(drop.name, 80), (_sort(drop), " ", drop_links(drop, by)), drop)
        for drop in parts.worst_first((*kinds.values(), *others))
        for by in (("condition" if drop.name in several else "kind"),)
    ]
    return join(
        lead(
            f"Markers show the change on solvable tasks, lines its interval. {parts.method(kinds, 'kind')} Filled "
            "markers are significant by both interval and test. Hollow ones may be due to chance; the text next to "
            "them "
            "says how many tasks would settle it."
        ),
        parts.changes({"": rows}, SIDES),
    )


def _sort(drop: Drop) -> str:
    """The tier and the axis of a kind, and the change where its obstacle was seen."""
    if drop.name not in perturbations:
        return parts.under(drop, "several at once")
    one = perturbations[drop.name]
    return parts.under(drop, f"{one.tier} · {one.axis}")


def _doses(found: Summary) -> Markup:
    doses = {int(name): drop for name, drop in found.drops["severity"].items() if name.isdigit()}
    if len(doses) < 2:
        only = ", ".join(map(str, doses))
        return lead(
            f"All perturbations of this run have severity {only}. The suite `doses` has each perturbation at "
            "severities 1 to 5."
        )
    cells = found.cells["severity"]
    points = [(n, cell.rate or 0.0, cell.low, cell.high) for n in sorted(doses) if (cell := cells[str(n)]).n]
    by_kind: dict[str, dict[int, Drop]] = {}
    for name, drop in found.drops.get("kind@severity", {}).items():
        kind, _, severity = name.rpartition("@")
        if severity.isdigit():
            by_kind.setdefault(kind, {})[int(severity)] = drop
    several = {kind: row for kind, row in sorted(by_kind.items()) if len(row) > 1}
    clean = found.clean.rate or 0.0
    top = tag("tr", tag("td"), (tag("th", str(n), scope="col") for n in range(1, 6)), class_="c5")
    rows = (
        tag(
            "tr",
            tag("th", kind, scope="row"),
            (parts.heat_cell(row.get(n), _dose_links) for n in range(1, 6)),
            class_="c5",
        )
        for kind, row in several.items()
    )
    return join(
        lead(f"Share of shifted episodes solved at each severity (1 is the mildest), with its {formats.SURE}."),
        charts.dose(points, clean),
        tag("h3", "Change by kind and severity"),
        tag("table", tag("thead", top), tag("tbody", rows), class_="heat dense"),
    )


def _dose_links(drop: Drop) -> Markup:
    return link(formats.pairs(drop), **(of_group("kind@severity", drop.name) or {}), pair=1)


def _causes(found: Summary) -> Markup:
    return join(
        lead("The stage says where a failed episode broke; the cause is its first uncorrected mistake."),
        div("two", _bars("Stage", "stage", found.stages, STAGES), _bars("Cause", "cause", found.causes, CAUSES)),
    )


def _bars(heading: str, field: str, counts: Mapping[str, int], meant: Mapping[str, str]) -> Markup:
    total = sum(counts.values())
    rows = (
        tag(
            "li",
            span("name", clipped(name, 60), small(meant.get(name))),
            span("plot", charts.bar(n / total, "pale" if name == "undetermined" else "")),
            span(
                "value", tag("b", link(f"{n:,}", **{field: name}, outcome="fail")), f" · {formats.percent(n / total)}"
            ),
        )
        for name, n in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    )
    return tag("div", tag("h3", heading), tag("ul", rows, class_="rows bars"))


def _tasks(found: Summary) -> Markup:
    told = (
        "The same changes by domain, level and family. The level gives the length of the clean solution: 2 to 3 calls "
        "(level 1), 4 to 6 (level 2) or 7 to 12 (level 3)."
    )
    return join(lead(told), parts.grouped_changes(found.drops, parts.TASKS, SIDES, drop_links))


def _behaviour(said: Content) -> Markup:
    found = said.summary
    again = [found.pass_hat_k.get(side, ()) for side in SIDES]
    ks = range(max(map(len, again), default=0))
    rows = [(f"{k + 1}", *(_all_pass(side[k]) if k < len(side) else "–" for side in again)) for k in ks]
    told = "Averages over clean and over shifted episodes."
    if found.study and said.measured < found.episodes:
        told += (
            f" Turns, tokens and time cover all {formats.many(found.episodes, 'episode')}; the other figures need the "
            f"certified solution and are computed over {said.measured:,} spread evenly through the run."
        )
    return join(
        lead(told if found.study else f"{told} {UNMEASURED}"),
        table(("", *SIDES), _measures(found.study)) if found.study else None,
        (tag("h3", "Share of tasks that pass in all of k trials"), table(("k", *SIDES), rows))
        if len(rows) > 1
        else None,
    )


def _all_pass(found: PassHatK) -> str:
    return f"{formats.percent(found.value)} ({formats.range_of(found.low, found.high)})"


def _measures(study: Mapping[str, Averages]) -> Iterator[Sequence[Pieces]]:
    sides = [study.get(side) for side in SIDES]
    for name, field, form in MEASURES:
        values = [getattr(one, field) if one else None for one in sides]
        if any(value is not None for value in values):
            yield (name, *map(form, values))


def _unknown(charged: int) -> str:
    """A number of tokens that nobody reported."""
    return f"unknown, about {charged:,}" if charged else "unknown"


def _costs(said: Content) -> Markup:
    found, excluded = said.summary, said.summary.excluded
    usage: Usage = found.usage
    n = max(1, found.episodes)
    rows = [
        *(
            (name, *((_unknown(charged), "") if count is None else (f"{count:,}", f"{count / n:,.0f}")))
            for name, count, charged in (
                ("input tokens", usage.input_tokens, usage.charged[0]),
                ("output tokens", usage.output_tokens, usage.charged[1]),
            )
        ),
        ("requests to the model", f"{usage.requests:,}", formats.number(usage.requests / n, 1)),
        ("requests retried", f"{usage.retries:,}", formats.number(usage.retries / n, 2)),
        ("episode time", formats.duration(usage.seconds), formats.duration(usage.seconds / n)),
        ("cost", formats.money(usage), formats.number(None if usage.cost is None else usage.cost / n, 4)),
    ]
    if not excluded.episodes:
        told = "No episode was lost to infrastructure errors."
    else:
        told = (
            f"{formats.many(excluded.episodes, 'episode')} ended in infrastructure errors and are not scored; "
            f"{formats.many(excluded.pairs, 'pair')} are incomplete because of that."
        )
    reasons = (
        tag("li", f"{count} × {clipped(reason, 300)}", class_="text") for reason, count in excluded.reasons.items()
    )
    return join(
        table(("", "total", "per episode"), rows),
        tag("h3", "Excluded episodes"),
        note(told, (" ", link("These episodes", outcome="error"), ".") if excluded.episodes else None),
        tag("ul", reasons, class_="note") if excluded.reasons else None,
        note(f"{formats.many(excluded.unpaired, 'shifted episode')} have no matching clean episode.")
        if excluded.unpaired
        else None,
    )


def _find(said: Content) -> Markup:
    return join(
        lead(
            "Every number with a link above opens this list, filtered to the episodes it counts. To see an episode "
            "step "
            "by step in a terminal, pass its number to ",
            tag("code", "crosswind show"),
            ".",
        ),
        finder.section(said.run, said.mistakes, (one.record.key for one in said.readings)),
    )


def _episodes(said: Content) -> Markup:
    opened = next((i for i, one in enumerate(said.readings) if one.record.outcome == "fail"), None)
    keys = {one.record.key for one in said.readings}
    numbers = {one.key: n for n, one in numbered(said.run.told) if one.key in keys}
    shown = parts.fitting(
        parts.episode(one, open_=i == opened, number=numbers.get(one.record.key)) for i, one in enumerate(said.readings)
    )
    every = len(said.run.told)
    told = (
        f"{len(shown)} of {formats.many(every, 'episode')}: "
        "failures first, with as many different causes and kinds as possible. "
        if len(shown) < every
        else "All episodes. "
    )
    more = (tag("code", "crosswind show"), " opens any other in the terminal.")
    return join(
        lead(
            told,
            "Each shows what the agent saw, what reached the world, and the certified solution. ",
            more if len(shown) < every else None,
        ),
        shown,
    )


def _footer(said: Content) -> Markup:
    manifest = said.run.manifest
    command = repeat(manifest)
    return join(
        (tag("h3", "Repeat this run"), parts.command(command)) if command else None,
        tag(
            "p",
            f"Played with crosswind {manifest.crosswind}, judged by verifier {manifest.judge}, reported by crosswind "
            f"{__version__}. The episodes of a pair share task, seed and trial. Intervals are 95{formats.PERCENT}, "
            "each "
            "for its group alone; p-values are exact and Holm-adjusted over the groups of a table. Episodes with "
            "infrastructure errors are excluded, never counted as failures.",
        ),
    )
