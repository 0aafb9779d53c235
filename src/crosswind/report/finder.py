"""All episodes of a run in a page, to be searched and filtered by a script of this package (`finder.js`).

The page holds them as columns of numbers into lists of names, about 50 bytes for each episode. Links of the page name a
filter (`find`): what a figure counts and what its link finds are the same episodes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

from crosswind.core.registry import perturbations
from crosswind.episodes.record import Mistake
from crosswind.metrics import formats
from crosswind.metrics.groups import PUBLISHED, By
from crosswind.metrics.mistakes import UNKNOWN
from crosswind.metrics.scores import Drop, pairs
from crosswind.report.markup import Markup, Pieces, clipped, data, div, join, note, span, tag
from crosswind.report.show import numbered
from crosswind.runs.store import AnyRun

REFUSE, CLEAN_SIDE, PAIR, BROKE, FIXED = 1, 2, 4, 8, 16  # bits of an episode
ORDERS = {"worst": "broken by a perturbation first", "run": "order of the run", "long": "most steps first"}
OUTCOMES = ("fail", "pass", "error", "unjudged")
WORDS = 200  # characters of one text


def link(text: Pieces, **filters: object) -> Markup:
    """A link to the episodes that a filter finds."""
    given = {name.rstrip("_"): value for name, value in filters.items() if value not in (None, "")}
    return tag("a", text, href="#find", class_="find", data_find=urlencode({k: str(v) for k, v in given.items()}))


def of_group(by: By, name: str) -> dict[str, str] | None:
    """The filter that finds the shifted episodes of a group; None where there is none."""
    if by == "kind":
        return {"only": name}
    if by == "cell":
        tier, _, axis = name.partition(" x ")
        return {"tier": tier, "axis": axis}
    if by == "kind@severity":
        kind, _, severity = name.rpartition("@")
        return {"only": kind, "severity": severity}
    return {} if by == "all" else {by: name}


def drop_links(drop: Drop, by: By) -> Markup:
    """The episodes behind a change: those that broke, those that were fixed, and all of its pairs."""
    group = of_group(by, drop.name) or {}
    shown: list[Pieces] = []
    if drop.broke:
        shown += [link(f"{formats.many(drop.broke, 'episode')} broke", **group, broke=1)]
    if drop.fixed:
        shown += [", " if shown else "", link(f"{formats.many(drop.fixed, 'episode')} fixed", **group, fixed=1)]
    return span("links", shown, " · " if shown else "", link(f"show all {drop.pairs:,} pairs", **group, pair=1))


class _Names:
    """Values in the order in which they came, each with a number."""

    def __init__(self) -> None:
        self.at: dict[Hashable, int] = {}

    def __call__(self, value: Hashable) -> int:
        return self.at.setdefault(value, len(self.at))


def columns(run: AnyRun, mistakes: Mapping[str, Mistake], opened: Iterable[str]) -> dict[str, Any]:
    """The episodes as data for the script."""
    names = {
        name: _Names() for name in ("family", "condition", "kinds", "ended", "cause", "stage", "tool", "error", "key")
    }
    names["why"] = _Names()
    found = pairs(run.told)
    marks: dict[int, int] = {}
    for clean, shifted in found:
        marks[id(clean)] = marks.get(id(clean), 0) | CLEAN_SIDE
        change = BROKE if clean.passed and not shifted.passed else FIXED if shifted.passed and not clean.passed else 0
        marks[id(shifted)] = PAIR | change
    shown = set(opened)
    rows: dict[str, list[Any]] = {name: [] for name in (*names, "n", "task", "outcome", "severity", "steps", "bits")}
    at_hand: list[int] = []
    several = any(one.trial for one in run.told)
    for n, one in numbered(run.told):
        failed, mistake = one.outcome == "fail", mistakes.get(one.key)
        rest = one.task_id.removeprefix(f"{one.domain}/{one.family}/")
        told = {
            "family": (one.domain, one.family, one.level),
            "condition": one.condition,
            "kinds": one.kinds,
            "ended": one.ended,
            "cause": (one.cause or UNKNOWN) if failed else "",
            "stage": (one.stage or UNKNOWN) if failed else "",
            "tool": mistake.tool if mistake else "",
            "error": mistake.error if mistake else "",
            "key": mistake.key if mistake else "",
            "why": clipped(mistake.why if mistake else one.why.partition("\n")[0], WORDS),
        }
        for name, value in told.items():
            rows[name].append(names[name](value))
        rows["n"].append(n)
        rows["task"].append(f"{rest} #{one.trial}" if several else rest)
        rows["outcome"].append(OUTCOMES.index(one.outcome))
        rows["severity"].append(one.severity or 0)
        rows["steps"].append(one.length)
        rows["bits"].append(marks.get(id(one), 0) | (REFUSE if one.refuse else 0))
        if one.key in shown:
            at_hand.append(n)
    listed: dict[str, list[Any]] = {name: list(some.at) for name, some in names.items()}
    listed["kinds"] = [_of_kinds(kinds) for kinds in listed["kinds"]]
    return {"folder": str(run.folder), "names": listed, "rows": rows, "opened": at_hand, "outcomes": OUTCOMES}


def _of_kinds(kinds: tuple[str, ...]) -> list[Any]:
    """Kinds with their tier, axis and published tier, which several at once have not."""
    if len(kinds) != 1 or kinds[0] not in perturbations:
        return [kinds, "", "", ""]
    one = perturbations[kinds[0]]
    return [kinds, one.tier, one.axis, PUBLISHED.get(kinds[0], one.tier)]


def section(run: AnyRun, mistakes: Mapping[str, Mistake], opened: Iterable[str]) -> Markup:
    """The controls and the place of the list; the script fills it."""
    held = columns(run, mistakes, opened)
    names = held["names"]
    kinds = sorted({kind for kinds, *_ in names["kinds"] for kind in kinds})
    families = sorted({f"{domain}/{family}" for domain, family, _ in names["family"]})
    choices = (
        ("outcome", [name for name in OUTCOMES if any(OUTCOMES[n] == name for n in held["rows"]["outcome"])]),
        ("kind", kinds),
        ("cause", sorted(filter(None, names["cause"]))),
        ("family", families),
    )
    return join(
        tag("noscript", note("This list needs JavaScript. In a terminal: crosswind show DIR --outcome fail.")),
        div(
            "controls",
            tag(
                "label",
                "search",
                tag("input", type="search", id="find-text", placeholder="task, cause, tool, error, key, words"),
            ),
            (_choice(name, values) for name, values in choices),
            tag(
                "label",
                "order",
                tag("select", (tag("option", told, value=name) for name, told in ORDERS.items()), id="find-order"),
            ),
        ),
        div("found", tag("p", id="find-count", aria_live="polite"), tag("p", id="find-chips")),
        tag("ul", id="find-list"),
        tag("button", "Show more", id="find-more", type="button", hidden=True),
        data("find-data", held),
    )


def _choice(name: str, values: Iterable[str]) -> Markup:
    options = [tag("option", "any", value=""), *(tag("option", clipped(v, 80), value=v) for v in values)]
    return tag("label", name, tag("select", options, id=f"find-{name}"))
