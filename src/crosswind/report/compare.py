"""Runs beside each other, as a page, as Markdown and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from crosswind.base.version import __version__
from crosswind.metrics import formats
from crosswind.metrics.scores import CleanAndRobust, Drop
from crosswind.metrics.together import COMMON
from crosswind.report import markdown as md
from crosswind.report import parts, streams
from crosswind.report.markup import Markup, clipped, div, join, lead, note, small, tag
from crosswind.report.parts import table
from crosswind.runs.comparison import Comparison, Contrast
from crosswind.runs.reading import Reading

# ---------------------------------------------------------------- in words


def verdict(said: Comparison) -> str:
    """What the comparison shows: success first, then refusals, for each run after the first."""
    return " ".join(filter(None, (headline(said), refusals(said))))


def headline(said: Comparison) -> str:
    """Success on solvable tasks, a sentence for each run after the first."""
    return " ".join(filter(None, (*(_sentence(said, one) for one in said.versus), _weak(said))))


def refusals(said: Comparison) -> str:
    """Right refusals, wrong ones where there are any, and false ones where the difference is clear."""
    out = []
    for one in said.versus:
        for what, found in (("right refusals", one.right), ("false refusals", one.false)):
            if one.main and found and (what == "right refusals" or found.clear):
                shares = " against ".join(reversed(formats.sides(found)))
                out.append(f"{what.capitalize()}: {shares}, {formats.brief(found)}.")
    for name, summary in said.summaries.items():
        refused = summary.refusals["shifted"]
        if refused.wrong.passed:
            out.append(f"{name} {formats.refused(refused)}.")
    return " ".join(out)


def _sentence(said: Comparison, one: Contrast) -> str:
    if one.stream is not None:
        return streams.difference(one.stream, said.first, one.name)
    little = ""
    if one.common < COMMON:
        total = one.shared + one.unshared + one.other
        little = (
            f"{one.name} and {said.first} share only {one.shared:,} of {formats.many(total, 'episode')}, so this says "
            "little about the runs as a whole. "
        )
    main = one.main
    if main is None:
        return f"{little}{one.name} and {said.first} share no solvable episode, so their success cannot be compared."
    if not main.clear and formats.too_few(main) and not main.delta:
        world = "perturbed" if one.shifted else "clean"
        return (
            f"{little}{one.name} and {said.first} share {formats.pairs(main)}, all {world}: too little was played to "
            "compare them."
        )
    better = f"{one.name} is {'better' if main.delta > 0 else 'worse'}, " if main.clear else ""
    world = "in the open world" if one.shifted else "in the clean world"
    before, after = formats.sides(main)
    return (
        f"{little}On the solvable tasks that both played {world}, {one.name} solves {after} "
        f"and {said.first} {before}: {better}{formats.brief(main)}."
    )


def _weak(said: Comparison) -> str:
    """Which runs are no better than trivial ones, in one sentence; empty where there is none."""
    solvable = [one.name for one in said.versus if one.main and one.stream is None]
    told = [said.first, *solvable] if solvable else []
    weak = [name for name in told if (c := said.summaries[name].trivial.get("clean")) and not c.better]
    return f"{' and '.join(weak)} {'is' if len(weak) == 1 else 'are'} {formats.TRIVIAL}." if weak else ""


def details(said: Comparison) -> str:
    """What the verdict rests on, a line each: how sure a difference is, and by which figures a run is no better."""
    out = []
    for one in said.versus:
        named = (("success", one.main), ("right refusals", one.right), ("false refusals", one.false))
        for what, found in named if one.main and one.stream is None else ():
            if found and (what != "false refusals" or found.clear):
                out.append(f"{one.name}, {what}: {formats.certainty(found)}")
    for name, summary in said.summaries.items():
        if (clean := summary.trivial.get("clean")) and not clean.better:
            out.append(f"{name}: {formats.no_better(clean)}")
    if any(found.refusals["shifted"].wrong.passed for found in said.summaries.values()):
        out.append(formats.RIGHTLY)
    return "\n".join(out)


# ---------------------------------------------------------------- as JSON


def as_json(said: Comparison) -> dict[str, Any]:
    """Everything but the episodes."""
    return {
        "verdict": verdict(said),
        "details": details(said),
        "runs": {
            name: {
                "folder": str(said.runs[name].folder),
                "agent": said.runs[name].manifest.agent,
                "clean": found.clean.model_dump(mode="json"),
                "shifted": found.shifted.model_dump(mode="json"),
                "drop": found.drop.model_dump(mode="json") if found.drop else None,
                **found.model_dump(mode="json", include={"refusals", "score", "trivial"}),
                "causes": found.causes,
                "usage": found.usage.model_dump(mode="json"),
                "problems": said.runs[name].problems,
            }
            for name, found in said.summaries.items()
        },
        "versus": {
            one.name: {
                **{side: _dumped(getattr(one, side)) for side in ("clean", "shifted", "right", "false")},
                "groups": {by: {n: _dumped(d) for n, d in of.items()} for by, of in one.groups.items()},
                "shared": one.shared,
                "unshared": one.unshared,
                "other": one.other,
                "stream": one.stream.model_dump(mode="json") if one.stream else None,
            }
            for one in said.versus
        },
        "clean_and_robust": said.ranks.model_dump(mode="json") if said.ranks else None,
    }


def _dumped(found: Drop | None) -> dict[str, Any] | None:
    """A change between runs; the first is `clean` in a `Drop` and `first` here."""
    if found is None:
        return None
    data = found.model_dump(mode="json", exclude={"exposed"})
    return {"first": data.pop("clean"), "second": data.pop("shifted"), **data}


# ---------------------------------------------------------------- as a page


def page(said: Comparison) -> str:
    """The whole page."""
    sections: list[tuple[str, str, Markup]] = [("runs", "The runs", _runs(said))]
    for i, one in enumerate(said.versus):
        more = f": {clipped(one.name, 60)}" if len(said.versus) > 1 else ""
        names = (clipped(said.first, 40), clipped(one.name, 40))
        if one.stream:
            sections.append((f"stream{i}", f"Success over time{more}", streams.both(one.stream, names)))
        sections.append((f"tiers{i}", f"Tier by axis{more}", _tiers(one, names)))
        sections.append((f"kinds{i}", f"Each condition{more}", _kinds(one, names)))
        sections.append((f"tasks{i}", f"Kinds of task{more}", _tasks(one, names)))
        if one.opened:
            sections.append((f"episodes{i}", f"Episodes that differ{more}", _episodes(one, names)))
    header = join(
        div("mark", "crosswind"),
        tag("p", " · ".join(clipped(name, 100) for name in said.runs), class_="facts"),
        tag("h1", clipped(headline(said), 1200)),
        lead(clipped(refusals(said), 1200)) if refusals(said) else None,
        note(clipped(details(said), 2500)) if details(said) else None,
        parts.tiles(_tiles(said)),
        (tag("p", f"Note: {told}.", class_="warn") for told in notes(said)),
    )
    footer = tag("p", f"Compared by crosswind {__version__}. Episodes are paired by task, condition and trial.")
    return parts.frame("crosswind: comparison", header, sections, footer)


def notes(said: Comparison) -> Iterator[str]:
    """What a reader should know of the comparison."""
    for name, run in said.runs.items():
        yield from (f"{name}: {problem}" for problem in run.problems)
    for one in said.versus:
        if one.stream:
            continue  # paired by position, so keys do not matter
        if one.unshared:
            alone = formats.many(one.unshared, "episode")
            yield f"{alone} of {said.first} or {one.name} have no scored counterpart in the other run"
        if one.other:
            other = formats.many(one.other, "episode")
            yield f"{other} with the same key have different perturbations in {one.name}, and are left out"


def _tiles(said: Comparison) -> Iterator[parts.Tile]:
    for one in said.versus:
        named = (("clean world", one.clean), ("open world", one.shifted), ("right refusals", one.right))
        for name, found in named:
            if found:
                yield parts.tile(f"{clipped(one.name, 40)}, {name}", found)
        if one.false:
            yield parts.tile(f"{clipped(one.name, 40)}, false refusals", one.false, fewer_is_better=True)


def _runs(said: Comparison) -> Markup:
    rows = [
        (
            clipped(name, 100),
            formats.percent(found.clean.rate),
            formats.percent(found.shifted.rate),
            f"{formats.points(found.drop.delta)} ({formats.span(found.drop.low, found.drop.high)})"
            if found.drop
            else "–",
            formats.percent(found.refusals["shifted"].right.rate) + formats.wrongly(found.refusals["shifted"]),
            formats.percent(found.refusals["shifted"].false.rate),
            formats.score(found.score),
            f"{found.episodes:,}",
            formats.money(found.usage),
        )
        for name, found in said.summaries.items()
    ]
    causes = list(dict.fromkeys(cause for found in said.summaries.values() for cause in found.causes))
    why = [(c, *(str(f.causes.get(c, 0)) for f in said.summaries.values())) for c in causes]
    names = [clipped(name, 60) for name in said.runs]
    return join(
        lead(
            "All figures on this page cover the episodes that all runs share. Success counts solvable tasks. An agent "
            f"that always refuses has 100{formats.PERCENT} of right and of false refusals."
        ),
        table(("", "clean", "shifted", "change", "right refusals", "false", "score", "episodes", "cost"), rows),
        _ranks(said.ranks) if said.ranks else None,
        (tag("h3", "Why they fail"), table(("cause", *names), why)) if why else None,
    )


def _ranks(ranks: CleanAndRobust) -> Markup:
    told = [
        f"{what}: {formats.number(found.rho)} ({formats.chance(found.p)})"
        for what, found in (
            ("with shifted success", ranks.shifted),
            ("with the change", ranks.delta),
            ("with the share of solved tasks kept", ranks.kept),
        )
        if found.rho is not None
    ]
    text = "; ".join(told) or "not defined, since one side does not vary"
    return note(f"Rank correlation of the clean score over {ranks.delta.n} agents, {text}.")


def _tiers(one: Contrast, names: tuple[str, str]) -> Markup:
    rows = {"": [(found.name, "", found) for found in one.groups["tier"].values()]}
    return join(
        lead(
            f"Success of {names[1]} minus that of {names[0]}, in points, on the same solvable shifted episodes. "
            f"{parts.method(one.groups['cell'], 'cell')}"
        ),
        parts.heat(one.groups["cell"]),
        tag("h3", "Tiers"),
        parts.changes(rows, names),
    )


def _kinds(one: Contrast, names: tuple[str, str]) -> Markup:
    found = parts.worst_first(one.groups["condition"].values())
    return join(
        lead(
            f"{parts.method(one.groups['condition'], 'condition')} Filled markers are significant by both interval "
            "and test."
        ),
        parts.changes({"": [(clipped(d.name, 80), "", d) for d in found]}, names),
    )


def _tasks(one: Contrast, names: tuple[str, str]) -> Markup:
    return parts.grouped_changes(one.groups, (("severity", "Severity", "severity "), *parts.TASKS), names)


def _episodes(one: Contrast, names: tuple[str, str]) -> Markup:
    shown = parts.fitting(_both(a, b, names) for a, b in one.opened)
    return join(
        lead(f"{len(shown)} of the {formats.many(one.changed, 'episode')} that only one of the two runs solved."), shown
    )


def _both(a: Reading, b: Reading, names: tuple[str, str]) -> Markup:
    way = f"{names[0]} passed, {names[1]} failed" if a.record.passed else f"{names[1]} passed, {names[0]} failed"
    heading = tag("h3", way, " ", small(clipped(b.record.key, 160)))
    return join(heading, parts.episode(a, by=names[0]), parts.episode(b, by=names[1]))


# ---------------------------------------------------------------- as Markdown


def markdown(said: Comparison) -> str:
    """The comparison without its episodes."""
    out = [
        "## crosswind: comparison",
        md.literal(verdict(said), 1500),
        *([md.literal(details(said), 2500)] if details(said) else []),
        *(f"> Note: {md.literal(told, 400)}" for told in notes(said)),
        md.scores("run", said.summaries),
    ]
    for one in said.versus:
        out.append(f"### {md.literal(one.name)} against {md.literal(said.first)}")
        if one.stream:
            out.append(md.table(streams.DIFFERENCE, streams.differences(one.stream)))
        sides = {"clean": one.clean, "shifted": one.shifted, "right refusals": one.right, "false refusals": one.false}
        out.append(md.worst({n: d for n, d in sides.items() if d}, "first", "second"))
        if one.groups["cell"]:
            out.append(md.heat(one.groups["cell"]))
        if one.groups["condition"]:
            out.append(md.worst(one.groups["condition"], "first", "second"))
    return "\n\n".join(out) + "\n"
