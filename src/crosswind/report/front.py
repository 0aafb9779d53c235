"""The first screen of a report: how far the agent falls, whether that is sure, where it breaks, and what to do next."""

from __future__ import annotations

from crosswind.core.registry import perturbations
from crosswind.metrics import Drop, Summary, formats
from crosswind.metrics.diagnosis import CAUSES
from crosswind.report import charts, parts
from crosswind.report.advice import Advice
from crosswind.report.content import Content
from crosswind.report.finder import drop_links, link
from crosswind.report.markup import Markup, clipped, div, join, note, small, span, tag

WORST, MISTAKES = 3, 4


def worst_of(found: Summary, stacked: frozenset[str] = frozenset()) -> list[Drop]:
    """Kinds, and conditions with several at once, that lower success: clear falls first, then the largest."""
    kinds = found.drops.get("kind", {})
    several = [drop for name, drop in found.drops.get("condition", {}).items() if name in stacked]
    falls = [drop for drop in (*kinds.values(), *several) if drop.delta < 0]
    return sorted(falls, key=lambda drop: (not drop.clear, drop.delta, drop.high, drop.name))


def stacked(said: Content) -> frozenset[str]:
    """Conditions in which several kinds meet."""
    return frozenset(one.condition for one in said.run.told if len(one.kinds) > 1)


def first_screen(said: Content) -> Markup:
    """Three cards: where it breaks, what kind of mistake, what to do next."""
    return div("front", _breaks(said), _mistakes(said.summary), _next(said))


def _breaks(said: Content) -> Markup | None:
    found, several = said.summary, stacked(said)
    if not found.drops.get("kind") and not several:
        return None
    worst = worst_of(found, several)[:WORST]
    rows = (
        tag(
            "li",
            span("figure", tag("b", formats.points(drop.delta), class_=charts.sign_class(drop.delta, drop.clear))),
            span(
                "what",
                tag("b", clipped(drop.name, 80)),
                small(" ", _kind(drop.name)),
                small(
                    f"points, {formats.span(drop.low, drop.high)}",
                    "" if drop.clear else "; may be due to chance",
                    " · ",
                    drop_links(drop, "condition" if drop.name in several else "kind"),
                ),
            ),
        )
        for drop in worst
    )
    body = tag("ol", rows) if worst else note("No perturbation lowers success in this run.")
    return div("card", tag("h2", "Where it breaks"), body, tag("a", "All perturbations, worst first", href="#kinds"))


def _kind(name: str) -> str:
    """What a kind is, in a line."""
    if name not in perturbations:
        return ""
    about = " ".join((perturbations[name].__doc__ or "").split("\n\n")[0].split())
    return f"{perturbations[name].tier}: {clipped(about, 140)}"


def _mistakes(found: Summary) -> Markup | None:
    total = sum(found.causes.values())
    if not total:
        return None
    ranked = sorted(found.causes.items(), key=lambda item: (-item[1], item[0]))
    rows = (
        tag(
            "li",
            span("figure", tag("b", formats.percent(n / total))),
            span(
                "what",
                tag("b", clipped(name, 60)),
                small(" ", CAUSES.get(name, "")),
                charts.bar(n / total),
                small(link(f"{n:,} of {formats.many(total, 'failure')}", cause=name, outcome="fail")),
            ),
        )
        for name, n in ranked[:MISTAKES]
    )
    return div("card", tag("h2", "What kind of mistake"), tag("ol", rows), tag("a", "All causes", href="#causes"))


def _next(said: Content) -> Markup | None:
    if not said.advice:
        return None
    return div("card wide", tag("h2", "What to do next"), tag("ol", map(_advice, said.advice), class_="advice"))


def _advice(one: Advice) -> Markup:
    named = [
        join(", " if nth else "", f"{what} ", _named(one, what, name), f" ({n:,})")
        for nth, (what, name, n) in enumerate(one.named)
    ]
    if one.failures:
        share = formats.percent(one.failures / one.of)
        told = f"{one.failures:,} of {formats.many(one.of, 'failure')} ({share})"
        covers = join("Covers ", link(told, **one.find), f", cause: {clipped(one.why, 60)}.")
    else:
        why = clipped(f"{one.why[:1].upper()}{one.why[1:]}", 300)
        covers = join(why, ". ", link("Show the episodes", **one.find), ". ")
    return tag(
        "li",
        tag("b", one.what, "."),
        tag("p", covers, join(" Most often: ", named, ".") if named else None),
        small("After fixing the agent, rerun these kinds:" if " --only " in one.command else "Try:"),
        parts.command(one.command),
    )


def _named(one: Advice, what: str, name: str) -> Markup:
    return link(tag("code", clipped(name, 80)), **one.find, **{what: name})
