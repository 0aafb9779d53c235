"""Runs beside each other: the episodes that they share, compared pair by pair, as data, as a page and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crosswind.base.errors import CrosswindError
from crosswind.base.version import __version__
from crosswind.episodes.record import Record
from crosswind.metrics import Drop, Summary, clean_and_robust, holm, summary
from crosswind.metrics.scores import By, CleanAndRobust, Pair, drop, grouped
from crosswind.report import charts, parts, words
from crosswind.report import markdown as md
from crosswind.report.episode import View, select, view
from crosswind.report.markup import Markup, clipped, join, tag
from crosswind.report.parts import lead, table
from crosswind.runs.store import Run

GROUPS: tuple[By, ...] = ("tier", "cell", "kind", "condition", "severity", "domain", "level", "family")


@dataclass(frozen=True, slots=True)
class Versus:
    """A run beside the first: a `Drop` here has the first run as clean and this one as shifted."""

    name: str
    every: Drop  # over all shared episodes
    clean: Drop | None
    shifted: Drop | None
    groups: dict[By, dict[str, Drop]]  # of the shifted ones
    unshared: int  # episodes that only one of the two has, or that are an error in one
    other: int  # episodes of one key that are not the same
    opened: tuple[tuple[View, View], ...]  # episodes in which one passed and the other failed


@dataclass(frozen=True, slots=True)
class Comparison:
    runs: dict[str, Run]
    summaries: dict[str, Summary]
    versus: tuple[Versus, ...]
    ranks: CleanAndRobust | None  # of three runs or more

    @property
    def first(self) -> str:
        return next(iter(self.runs))

    @property
    def verdict(self) -> str:
        """What the comparison shows, a sentence for each run after the first."""
        return " ".join(_sentence(self, one) for one in self.versus)

    def as_json(self) -> dict[str, Any]:
        """Everything but the episodes."""
        return {
            "verdict": self.verdict,
            "runs": {
                name: {
                    "folder": str(self.runs[name].folder),
                    "agent": self.runs[name].manifest.agent,
                    "clean": found.clean.model_dump(mode="json"),
                    "shifted": found.shifted.model_dump(mode="json"),
                    "drop": _dumped(found.drop),
                    "causes": found.causes,
                    "usage": found.usage.model_dump(mode="json"),
                    "problems": self.runs[name].problems,
                }
                for name, found in self.summaries.items()
            },
            "versus": {
                one.name: {
                    "all": _dumped(one.every),
                    "clean": _dumped(one.clean),
                    "shifted": _dumped(one.shifted),
                    "groups": {by: {n: _dumped(d) for n, d in of.items()} for by, of in one.groups.items()},
                    "unshared": one.unshared,
                    "other": one.other,
                }
                for one in self.versus
            },
            "clean_and_robust": self.ranks.model_dump(mode="json") if self.ranks else None,
        }


def _dumped(found: Drop | None) -> dict[str, Any] | None:
    """A change between runs; the first is `clean` in a `Drop` and `first` here."""
    if found is None:
        return None
    data = found.model_dump(mode="json", exclude={"exposed"})
    return {"first": data.pop("clean"), "second": data.pop("shifted"), **data}


# ---------------------------------------------------------------- as data


def comparison(runs: Sequence[Run], *, opened: int = 24) -> Comparison:
    """Compare each run with the first over the episodes that both have."""
    named = dict(zip(_names(runs), runs, strict=True))
    first, *others = named
    versus: list[Versus] = []
    for name in others:
        found = _versus(name, named[first], named[name], opened)
        if found is None:
            raise CrosswindError(
                f"{named[first].folder} and {named[name].folder} share no episode; runs are compared when they have "
                "the same suite and seed"
            )
        versus.append(found)
    summaries = {name: summary(run.records, measures=False) for name, run in named.items()}
    falls = {name: found.drop for name, found in summaries.items() if found.drop}
    return Comparison(named, summaries, tuple(versus), clean_and_robust(falls) if len(falls) > 2 else None)


def _names(runs: Sequence[Run]) -> list[str]:
    """What each run is called: its agent, and its folder or a number where that does not tell it apart."""
    agents = [run.manifest.agent for run in runs]
    out: list[str] = []
    for run, agent in zip(runs, agents, strict=True):
        name = agent if agents.count(agent) == 1 else f"{agent} ({run.folder.name})"
        out.append(name if name not in out else f"{name} #{len(out) + 1}")
    return out


def _versus(name: str, first: Run, second: Run, opened: int) -> Versus | None:
    theirs = {r.key: r for r in first.records if r.judged}
    ours = {r.key: r for r in second.records if r.judged}
    shared = [(theirs[key], record) for key, record in ours.items() if key in theirs]
    same = [(a, b) for a, b in shared if a.layers == b.layers]
    every = drop("all", same)
    if every is None:
        return None
    clean, shifted = [(a, b) for a, b in same if b.clean], [(a, b) for a, b in same if not b.clean]
    before = {b.key: a for a, b in same}
    groups: dict[By, dict[str, Drop]] = {}
    for by in GROUPS:
        found = {n: drop(n, [(before[r.key], r) for r in of]) for n, of in grouped((b for _, b in same), by).items()}
        groups[by] = _adjusted({n: d for n, d in found.items() if d})
    keys = {r.key for r in first.records} | {r.key for r in second.records}
    return Versus(
        name=name,
        every=every,
        clean=drop("clean", clean),
        shifted=drop("shifted", shifted),
        groups=groups,
        unshared=len(keys) - len(shared),
        other=len(shared) - len(same),
        opened=tuple((view(before[r.key]), view(r)) for r in _changed(same, opened)),
    )


def _changed(pairs: Sequence[Pair], limit: int) -> list[Record]:
    """Episodes that one passed and the other failed; those that broke first."""
    broke = select([b for a, b in pairs if a.passed and not b.passed], limit)
    fixed = select([b for a, b in pairs if b.passed and not a.passed], limit)
    broke = broke[: limit - min(limit // 3, len(fixed))]
    return [*broke, *fixed[: limit - len(broke)]]


def _adjusted(found: Mapping[str, Drop]) -> dict[str, Drop]:
    ps = holm([one.p for one in found.values()])
    return {
        name: one.model_copy(update={"p_holm": p, "exposed": None})
        for (name, one), p in zip(found.items(), ps, strict=True)
    }


def _sentence(said: Comparison, one: Versus) -> str:
    every = one.every
    start = (
        f"Over {words.many(every.pairs, 'shared episode')} of {words.many(every.tasks, 'task')} {one.name} solves "
        f"{words.percent(every.shifted)} and {said.first} {words.percent(every.clean)}"
    )
    bounds = f"{words.points(every.delta)} points, {words.SURE} {words.span(every.low, every.high)}"
    if not words.clear(every):
        told = f"no clear difference ({bounds})"
    else:
        told = f"{one.name} is {'better' if every.delta > 0 else 'worse'} ({bounds})"
    return f"{start}: {told}{_falls(said, one)}."


def _falls(said: Comparison, one: Versus) -> str:
    ours, theirs = said.summaries[one.name].drop, said.summaries[said.first].drop
    if not ours or not theirs:
        return ""
    falls = f"{words.points(ours.delta)} points, {said.first} by {words.points(theirs.delta)}"
    return f"; in the open world it changes by {falls}"


# ---------------------------------------------------------------- as a page


def page(said: Comparison) -> str:
    """The whole page."""
    sections: list[tuple[str, str, Markup]] = [("runs", "The runs", _runs(said))]
    for i, one in enumerate(said.versus):
        more = f": {clipped(one.name, 60)}" if len(said.versus) > 1 else ""
        names = (clipped(said.first, 40), clipped(one.name, 40))
        sections.append((f"tiers{i}", f"Tier by axis{more}", _tiers(one, names)))
        sections.append((f"kinds{i}", f"Each condition{more}", _kinds(one, names)))
        sections.append((f"tasks{i}", f"Kinds of task{more}", _tasks(one, names)))
        if one.opened:
            sections.append((f"episodes{i}", f"Episodes that differ{more}", _episodes(one, names)))
    header = join(
        tag("div", "crosswind", class_="mark"),
        tag("p", " · ".join(clipped(name, 100) for name in said.runs), class_="facts"),
        tag("h1", clipped(said.verdict, 1200)),
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
        if one.unshared:
            yield f"{words.many(one.unshared, 'episode')} of {said.first} or {one.name} have no partner that counts"
        if one.other:
            yield f"{words.many(one.other, 'episode')} of one key have other obstacles in {one.name}, and are left out"


def _tiles(said: Comparison) -> Iterator[tuple[str, str, str, str]]:
    for one in said.versus:
        for name, found in (("all", one.every), ("clean world", one.clean), ("open world", one.shifted)):
            if found:
                under = f"{words.span(found.low, found.high)}, {words.pairs(found)}"
                colour = charts.sign_class(found.delta, words.clear(found))
                yield f"{clipped(one.name, 40)}, {name}, points", words.points(found.delta), under, colour


def _runs(said: Comparison) -> Markup:
    rows = [
        (
            clipped(name, 100),
            words.percent(found.clean.rate),
            words.percent(found.shifted.rate),
            f"{words.points(found.drop.delta)} ({words.span(found.drop.low, found.drop.high)})" if found.drop else "–",
            f"{found.episodes:,}",
            words.number(found.usage.cost),
        )
        for name, found in said.summaries.items()
    ]
    causes = list(dict.fromkeys(cause for found in said.summaries.values() for cause in found.causes))
    why = [(c, *(str(f.causes.get(c, 0)) for f in said.summaries.values())) for c in causes]
    names = [clipped(name, 60) for name in said.runs]
    return join(
        lead("Each run over its own episodes; what follows is over shared ones."),
        table(("", "clean", "shifted", "change", "episodes", "cost"), rows),
        _ranks(said.ranks) if said.ranks else None,
        (tag("h3", "Why they fail"), table(("cause", *names), why)) if why else None,
    )


def _ranks(ranks: CleanAndRobust) -> Markup:
    told = [
        f"{what}: {words.number(found.rho)} ({words.chance(found.p)})"
        for what, found in (("with the change", ranks.delta), ("with the share of solved tasks kept", ranks.kept))
        if found.rho is not None
    ]
    text = "; ".join(told) or "not defined, since one side does not vary"
    return tag("p", f"Rank correlation of the clean score over {ranks.delta.n} agents, {text}.", class_="note")


def _tiers(one: Versus, names: tuple[str, str]) -> Markup:
    rows = {"": [(found.name, "", found) for found in one.groups["tier"].values()]}
    return join(
        lead(f"Points by which {names[1]} is above {names[0]} in the same shifted episodes."),
        parts.heat(one.groups["cell"]),
        tag("h3", "Tiers"),
        parts.changes(rows, names),
    )


def _kinds(one: Versus, names: tuple[str, str]) -> Markup:
    found = sorted(one.groups["condition"].values(), key=lambda d: (d.delta, d.high, d.name))
    return join(
        lead(f"Filled points are more than chance after Holm's correction for {len(found)} comparisons."),
        parts.changes({"": [(clipped(d.name, 80), "", d) for d in found]}, names),
    )


def _tasks(one: Versus, names: tuple[str, str]) -> Markup:
    return parts.grouped_changes(one.groups, (("severity", "Severity", "severity "), *parts.TASKS), names)


def _episodes(one: Versus, names: tuple[str, str]) -> Markup:
    shown = parts.fitting(_both(a, b, names) for a, b in one.opened)
    changed = one.every.broke + one.every.fixed
    return join(lead(f"{len(shown)} of the {words.many(changed, 'episode')} that only one of the two solved."), shown)


def _both(a: View, b: View, names: tuple[str, str]) -> Markup:
    way = f"{names[0]} passed, {names[1]} failed" if a.record.passed else f"{names[1]} passed, {names[0]} failed"
    heading = tag("h3", way, " ", tag("small", clipped(b.record.key, 160)))
    return join(heading, parts.episode(a, by=names[0]), parts.episode(b, by=names[1]))


# ---------------------------------------------------------------- as Markdown


def markdown(said: Comparison) -> str:
    """The comparison without its episodes."""
    rows = [
        [md.literal(name), words.percent(s.clean.rate), words.percent(s.shifted.rate), md.change(s.drop)]
        for name, s in said.summaries.items()
    ]
    out = [
        "## crosswind: comparison",
        md.literal(said.verdict, 1500),
        *(f"> Note: {md.literal(told, 400)}" for told in notes(said)),
        md.table(["run", "clean", "shifted", "change"], rows),
    ]
    for one in said.versus:
        out.append(f"### {md.literal(one.name)} beside {md.literal(said.first)}")
        sides = {"clean": one.clean, "shifted": one.shifted}
        out.append(md.worst({n: d for n, d in sides.items() if d}, "first", "second"))
        if one.groups["cell"]:
            out.append(md.heat(one.groups["cell"]))
        if one.groups["condition"]:
            out.append(md.worst(one.groups["condition"], "first", "second"))
    return "\n\n".join(out) + "\n"
