"""Reports as Markdown, short enough for a pull request. Text from elsewhere cannot start markup there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from crosswind.core.types import AXES, TIERS
from crosswind.metrics import Drop, Summary, formats
from crosswind.report import interactions, streams
from crosswind.report.content import Content
from crosswind.report.markup import clipped, visible

_SPECIAL = re.compile(r"([\\`*_{}\[\]()<>#+!|~&$@:-])")
WORST = 12  # perturbations that are listed


def literal(text: str, limit: int = 200) -> str:
    """Text from elsewhere on one line, in which nothing means anything to Markdown, to HTML in it, or to a terminal."""
    return _SPECIAL.sub(r"\\\1", " ".join(clipped(visible(text), limit).split()))


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells are literal already."""
    lines = [heads, ["---"] + ["---:"] * (len(heads) - 1), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def change(drop: Drop | None) -> str:
    """A change with its interval, and what it was seen in."""
    if drop is None or not drop.pairs:
        return "–"
    mark = "**" if drop.clear else ""
    return f"{mark}{formats.points(drop.delta)}{mark} ({formats.span(drop.low, drop.high)}; {formats.pairs(drop)})"


def scores(what: str, summaries: Mapping[str, Summary]) -> str:
    """How agents or runs did, a row each."""
    rows = [
        [
            literal(name),
            *(formats.percent(cell.rate) for cell in (s.clean, s.shifted)),
            change(s.drop),
            formats.percent(s.refusals["shifted"].right.rate) + formats.wrongly(s.refusals["shifted"]),
            formats.percent(s.refusals["shifted"].false.rate),
            formats.score(s.score),
        ]
        for name, s in summaries.items()
    ]
    return table([what, "clean", "shifted", "change", "right refusals", "false refusals", "score"], rows)


def heat(cells: dict[str, Drop]) -> str:
    """Tier by axis."""
    rows = [[tier, *(change(cells.get(f"{tier} x {axis}")) for axis in AXES)] for tier in TIERS]
    return table(["", *AXES], rows)


def worst(drops: dict[str, Drop], first: str, second: str) -> str:
    """The groups that change most, the worst first."""
    chosen = sorted(drops.values(), key=lambda d: (d.delta, d.name))[:WORST]
    rows = [[literal(d.name), formats.percent(d.clean), formats.percent(d.shifted), change(d)] for d in chosen]
    return table(["", first, second, "change in points (95 %)"], rows)


def report(said: Content) -> str:
    """The report on a run, without its episodes."""
    found, manifest = said.summary, said.run.manifest
    out = [
        f"## crosswind: {literal(manifest.agent)} on {literal(manifest.name)}",
        literal(said.verdict, 800),
        *([literal(said.details, 1200)] if said.details else []),
        f"{formats.many(found.episodes, 'episode')}, {formats.many(found.tasks, 'task')}, seed {manifest.seed}. "
        "Changes are in percentage points on solvable tasks, shifted minus clean, each with its own 95 % interval; "
        "bold ones are significant, also after Holm correction over the groups of the table.",
        *(f"> Note: {literal(problem, 400)}" for problem in said.run.problems),
    ]
    if said.stream:
        out += ["### Over time", table(streams.HEADS, streams.rows(said.stream))]
    if said.scale:
        out += [
            "### For comparison, on the same episodes",
            scores("agent", said.scale.summaries),
            *([f"Pairs: {said.scale.sample}."] if said.scale.sample else []),
            "Success counts solvable pairs: a clean episode counts once for each shifted episode of its task. An "
            "agent that always refuses has 100 % of right and of false refusals.",
        ]
    if said.unplayed:
        out += ["### No baselines", *(literal(note, 400) for note in said.unplayed)]
    if found.drops.get("cell"):
        out += ["### Tier by axis", heat(found.drops["cell"])]
    if said.interactions:
        out += ["### Interactions", table(interactions.HEADS, interactions.rows(said.interactions))]
    if conditions := found.drops.get("condition"):
        of = f"The worst {WORST} of {len(conditions)} conditions" if len(conditions) > WORST else "Conditions"
        out += [f"### {of}", worst(conditions, "clean", "shifted")]
    if kinds := {n: r for n, r in found.refused.get("kind", {}).items() if r.right.n}:
        rows = [[literal(name), formats.share(one.right) + formats.wrongly(one)] for name, one in sorted(kinds.items())]
        out += ["### Right refusals", table(["kind", "refused"], rows)]
    if found.causes:
        ranked = sorted(found.causes.items(), key=lambda item: -item[1])
        total = sum(found.causes.values())
        rows = [[literal(cause), str(n), formats.percent(n / total)] for cause, n in ranked]
        out += ["### Why it fails", table(["cause", "episodes", "share"], rows)]
    if found.excluded.episodes:
        out.append(f"{formats.many(found.excluded.episodes, 'episode')} excluded because of infrastructure errors.")
    return "\n\n".join(out) + "\n"
