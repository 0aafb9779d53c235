"""The tables that a report can show. The definition of a study names them in `report.sections` as `make`.

Each takes the results and the section, whose options (`arms`, `suites`, `reference`, ...) it may use.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from crosswind.base.errors import BadFile
from crosswind.core.registry import perturbations
from crosswind.core.types import TIERS
from crosswind.episodes.record import Record
from crosswind.metrics import Averages, Cell, Correlation, Drop, cell, clean_and_robust, formats, grouped, score
from crosswind.report.markdown import literal, table
from crosswind.study.definition import Section, suite_of
from crosswind.study.findings import MISSING
from crosswind.study.results import (
    ALWAYS,
    LOG,
    REWARDS,
    ArmResults,
    Keep,
    Results,
    between,
    impossible,
    is_trained,
    solvable,
)

Make = Callable[[Results, Section], str]
HIGH = 0.95  # clean success from which on arms are compared by themselves


def change(one: Drop | None) -> str:
    """A change with its interval; bold if it is clear."""
    if one is None:
        return "–"
    mark = "**" if one.clear else ""
    return f"{mark}{formats.points(one.delta)}{mark} ({formats.span(one.low, one.high)})"


def share(one: Cell) -> str:
    """A share in percent with its interval and the number of episodes."""
    return formats.share(one).replace(formats.PERCENT, "")


def _rows(
    results: Results,
    row: Callable[[ArmResults], Sequence[str]],
    width: int = 0,
    except_for: str = "",
    *,
    refusing: bool = False,
) -> list[list[str]]:
    """A row for each arm that has results; with a width, also for each that has none, which says so.

    With `refusing`, the first row is that of an agent that refuses everything.
    """
    found = results.arms
    names = [name for name in results.study.by_name if name in found or width]
    names += [name for name in found if name not in results.study.by_name]
    first = [[ALWAYS, *row(next(iter(found.values())).refusing)]] if refusing and found else []
    return first + [
        [literal(name), *(row(found[name]) if name in found else [MISSING, *["–"] * (width - 1)])]
        for name in names
        if name != except_for
    ]


def _suites(results: Results, section: Section) -> list[str]:
    return list(section.suites or results.study.suites)


def _domains(results: Results) -> list[str]:
    """Every domain of the test, in the order of its suites."""
    return list(dict.fromkeys(name for names in results.study.suites.values() for name in names))


# ---------------------------------------------------------------- accuracy


def changes(results: Results, section: Section) -> str:
    """By suite: clean accuracy and the change in every tier, all arms; trained kinds and others apart."""
    out = [
        "Of tasks that can be solved, clean and shifted. Refusals have a table of their own, and the score puts both "
        "together. The first row is an agent that refuses everything; it follows from the tasks."
    ]
    for suite in _suites(results, section):
        about = results.study.report.suites.get(suite, "")
        out.append(f"### {suite}{': ' if about else ''}{about}")
        for label, keep in _kinds_apart(results, suite).items():

            def row(arm: ArmResults, suite: str = suite, keep: Keep = keep) -> list[str]:
                found = arm.drops(suite, "tier", keep)
                pairs = sum(one.pairs for one in found.values())
                clean = share(arm.solved(*results.study.suites[suite]))
                shifted = share(cell(r for r in arm.of(suite, keep=keep) if solvable(r)))
                one = score(arm.of(suite, keep=keep))
                changed = [change(found.get(tier)) for tier in TIERS]
                number = "–" if one is None else f"{one.value:.2f}"
                return [str(len(arm.seeds)), clean, shifted, *changed, str(pairs), number]

            heads = ["arm", "seeds", "clean, %", "shifted, %", *TIERS, "pairs", "score"]
            rows = _rows(results, row, len(heads) - 1, refusing=True)
            out += [f"{label}:" if label else "", table(heads, rows)]
    return "\n\n".join(filter(None, out))


def _kinds_apart(results: Results, suite: str) -> dict[str, Keep]:
    """The episodes of a suite by whether their kinds may be trained, with headings where it has both sorts."""
    some = next(iter(results.arms.values())).of(suite) if results.arms else []
    sorts = {is_trained(record) for record in some}
    if len(sorts) < 2:
        return {"": lambda _: True}
    return {"Kinds that were trained": is_trained, "Kinds never trained": lambda r: not is_trained(r)}


def against(results: Results, section: Section) -> str:
    """Paired differences to the reference arm, in the same episodes."""
    if section.reference not in results.arms:
        return f"{section.reference or 'The reference arm'} is missing."
    base, suites, domains = results.arms[section.reference], _suites(results, section), _domains(results)

    def row(arm: ArmResults) -> list[str]:
        clean = (between(base, arm, "", lambda r, d=domain: solvable(r) and r.domain == d) for domain in domains)  # type: ignore[misc]
        shifted = (between(base, arm, suite) for suite in suites)
        right = (between(base, arm, suite, impossible) for suite in suites)
        return [change(one) for one in (*clean, *shifted, *right)]

    heads = ["arm", *(f"clean {domain}" for domain in domains), *suites, *(f"refusals: {suite}" for suite in suites)]
    told = (
        f"Share of solvable episodes passed, minus that of {base.name}, in points, and the same of right refusals. "
        "Each comparison stands by itself: no p-value is adjusted."
    )
    return f"{told}\n\n{table(heads, _rows(results, row, except_for=base.name, refusing=True))}"


def starts(results: Results, section: Section) -> str:
    """Arms next to the arm that they started from, further pairs, and the rewards of reinforcement."""
    found, suites = results.arms, _suites(results, section)
    first = suites[0]
    on = results.study.suites[first]
    pairs = [(found[arm.arm.start], arm) for arm in found.values() if arm.arm.start in found]
    pairs += [(found[one], found[other]) for one, other in section.pairs if one in found and other in found]
    sides: tuple[Keep, ...] = (solvable, impossible)
    rows = []
    for one, other in pairs:
        compared = [between(one, other, "", lambda r: solvable(r) and r.domain in on)]
        compared += [between(one, other, suite, side) for suite in suites for side in sides]
        wrong = (formats.percent(arm.false_refusals(first).rate) for arm in (one, other))
        rows.append([f"{literal(one.name)} to {literal(other.name)}", *map(change, compared), " to ".join(wrong)])
    heads = ["from, to", f"clean on {', '.join(on)}"]
    for suite in suites:
        heads += [f"{suite}, solvable", f"{suite}, made impossible"]
    told = [table([*heads, f"false refusals on {first}"], rows)] if rows else []
    if lines := [line for arm in found.values() if arm.arm.method == "grpo" for line in _rewards(arm, results.folder)]:
        told += [
            "Reward in training, a mean over the first and over the last quarter of the steps, and greedy success "
            "before and after, on draws of the train split that were not trained on.",
            table(["arm", "seed", "reward", "in clean groups", "in perturbed ones", "signal", "greedy success"], lines),
        ]
    return "\n\n".join(told) or "No arm that starts from another is there."


def _rewards(arm: ArmResults, folder: Path) -> list[list[str]]:
    out = []
    for done in arm.done:
        lines = json_lines(folder / "arms" / arm.name / f"seed-{done.seed}" / REWARDS)
        extra = (done.train or {}).get("extra", {})
        greedy = [
            f"{where} {formats.percent(before)} to {formats.percent(extra.get('greedy_after', {}).get(where))}"
            for where, before in extra.get("greedy_before", {}).items()
        ]
        figures = [first_and_last(lines, name) for name in ("reward", "clean", "perturbed", "signal")]
        out.append([literal(arm.name), str(done.seed), *figures, "; ".join(greedy) or "–"])
    return out


def first_and_last(lines: Sequence[Mapping[str, Any]], name: str) -> str:
    """The mean of a figure over the first and over the last quarter of some lines."""
    part = max(1, len(lines) // 4)
    means = [[v for one in some if isinstance(v := one.get(name), float)] for some in (lines[:part], lines[-part:])]
    return " to ".join(f"{fmean(some):.2f}" for some in means) if all(means) else "–"


def seeds(results: Results, section: Section) -> str:
    """Every seed alone: the tiers of the first suite, and the other suites as a whole."""
    first, *others = _suites(results, section)
    rows = []
    for arm in results.arms.values():
        for seed in arm.seeds:
            one = arm.seed(seed)
            line = [literal(arm.name), str(seed), share(one.solved(*results.study.suites[first]))]
            line += [change(one.tier(first, tier)) for tier in TIERS]
            rows.append([*line, *(change(one.drop(suite)) for suite in others)])
    return table(["arm", "seed", "clean, %", *(f"{first}: {tier}" for tier in TIERS), *others], rows)


def severity(results: Results, section: Section) -> str:
    """The change in every tier at one severity."""
    suites = _suites(results, section)

    def row(arm: ArmResults) -> list[str]:
        out = []
        for suite in suites:
            some = {t: lambda r, t=t: r.severity == section.severity and r.tier == t for t in TIERS}
            out += [change(arm.drop(suite, keep)) for keep in some.values()]
        return out

    return table(["arm", *(f"{suite}: {tier}" for suite in suites for tier in TIERS)], _rows(results, row))


def kinds(results: Results, section: Section) -> str:
    """What some arms passed under each kind, the worst kinds of the last arm first, and why it failed there.

    Episodes to refuse are a row of their own.
    """
    names = [name for name in section.arms or results.arms if name in results.arms]
    rows: list[tuple[tuple[int, float], list[str]]] = []
    last = names[-1] if names else ""
    for place, suite in enumerate(_suites(results, section)):
        split = {
            (name, refuse): grouped(results.arms[name].of(suite, keep=lambda r, no=refuse: r.refuse == no), "kind")  # type: ignore[misc]
            for name in names
            for refuse in (False, True)
        }
        for kind, refuse in sorted({(kind, at[1]) for at, some in split.items() for kind in some}):
            cells = {name: cell(split[name, refuse].get(kind, ())) for name in names}
            causes = Counter(r.cause or "unknown" for r in split[last, refuse].get(kind, ()) if not r.passed)
            told = ", ".join(f"{cause} {n}" for cause, n in causes.most_common(2))
            rate = cells[last].rate
            shown = f"{literal(kind)}{', to refuse' if refuse else ''}"
            line = [suite, perturbations[kind].tier, shown, *map(share, cells.values()), told or "–"]
            rows.append(((place, 1.0 if rate is None else rate), line))
    heads = ["suite", "tier", "kind", *map(literal, names), f"why {literal(last)} failed, mostly"]
    told = "Episodes passed, in %. Those that the last arm passed least of come first."
    return f"{told}\n\n{table(heads, [line for _, line in sorted(rows, key=lambda one: one[0])])}"


# ---------------------------------------------------------------- refusals, and how arms play


def refusals(results: Results, section: Section) -> str:
    """Right and false refusals, by suite and by whether kinds were trained."""
    suites, domains = _suites(results, section), _domains(results)
    places = {
        f"{suite}{f' ({label.lower()})' if label else ''}": (suite, keep)
        for suite in suites
        for label, keep in _kinds_apart(results, suite).items()
    }

    def right(arm: ArmResults) -> list[str]:
        clean = (arm.clean_refusals(domain).right for domain in domains)
        return [share(one) for one in (*clean, *(arm.refusals(suite, keep) for suite, keep in places.values()))]

    def false(arm: ArmResults) -> list[str]:
        clean = (arm.clean_refusals(domain).false for domain in domains)
        return [share(one) for one in (*clean, *(arm.false_refusals(suite, keep) for suite, keep in places.values()))]

    heads = ["arm", *(f"clean {domain}" for domain in domains), *places]
    return "\n\n".join(
        [
            "Right refusals, in %: of clean tasks that cannot be done, and of shifted ones that a shift made "
            "impossible. Who refuses everything is always right here:",
            table(heads, _rows(results, right, refusing=True)),
            "False refusals, in %: of tasks that can be solved. Who refuses everything is always wrong here:",
            table(heads, _rows(results, false, refusing=True)),
        ]
    )


PLAYED: tuple[tuple[str, Callable[[Averages], str]], ...] = (
    ("Tool error rate, % of calls", lambda s: formats.percent(s.tool_error_rate)),
    ("Errors of the agent's own making, % of calls", lambda s: formats.percent(s.own_error_rate)),
    ("Exploration, 0 to 1", lambda s: formats.number(s.exploration)),
    (
        "Tool-chain length (on the certified way)",
        lambda s: f"{formats.number(s.chain_length, 1)} ({formats.number(s.gold_chain_length, 1)})",
    ),
)


def playing(results: Results, section: Section) -> str:
    """Errors, exploration and length of the tool chain, clean and in every tier of the first suite."""
    suite = _suites(results, section)[0]
    out = []
    for title, told in PLAYED:

        def row(arm: ArmResults, told: Callable[[Averages], str] = told) -> list[str]:
            some = [[r for r in arm.clean if r.domain in results.study.suites[suite]]]
            some += [arm.of(suite, keep=lambda r, tier=tier: r.tier == tier) for tier in TIERS]  # type: ignore[misc]
            return [told(arm.averages(records)) for records in some]

        out.append(f"{title}:\n\n{table(['arm', 'clean', *TIERS], _rows(results, row))}")
    return "\n\n".join(out)


def correlation(results: Results, section: Section) -> str:
    """Does the clean score predict robustness? Over all suites, in some domains, and by suite."""
    now = [arm for arm in results.arms.values() if not arm.arm.at]
    places: dict[str, Callable[[Record], bool]] = {
        "all suites": lambda _: True,
        **{f"all suites on {domain}": lambda r, d=domain: r.domain == d for domain in section.domains},  # type: ignore[misc]
        **{suite: lambda r, s=suite: suite_of(r.condition) == s for suite in _suites(results, section)},  # type: ignore[misc]
    }
    rows = []
    for place, keep in places.items():
        found = {arm.name: one for arm in now if (one := arm.drop("", keep))}
        for label, some in (
            ("", found),
            (f", above {formats.percent(HIGH)} clean", {n: d for n, d in found.items() if d.clean > HIGH}),
        ):
            both = clean_and_robust(some)
            rows.append([place + label, str(len(some)), _rho(both.shifted), _rho(both.delta), _rho(both.kept)])
    every = {name: one for name, arm in results.arms.items() if (one := arm.drop(""))}
    arms = [
        [literal(name), *map(formats.percent, (clean, shifted)), formats.points(delta), formats.percent(kept)]
        for name, (clean, shifted, delta, kept) in clean_and_robust(every).agents.items()
    ]
    told = (
        "Rank correlation of clean success with shifted success, with the change, and with the share of solved tasks "
        "that stay solved, on solvable tasks, over arms that are not of former commits. Who solves more has more to "
        "lose, so the first is drawn upwards and the second downwards; arms that solve nearly everything clean are "
        "shown by themselves. p is not adjusted, and takes arms as independent, which those of one study hardly are."
    )
    heads = ["arm", "clean", "shifted", "change over all suites", "kept"]
    return "\n\n".join(
        [
            told,
            table(["pairs", "arms", "with shifted success", "with the change", "with the share kept"], rows),
            table(heads, arms),
        ]
    )


def _rho(found: Correlation) -> str:
    return "cannot be told" if found.rho is None else f"{found.rho:+.2f} ({formats.chance(found.p)})"


# ---------------------------------------------------------------- how results came about


def dev(results: Results, _: Section) -> str:
    """Every result on the dev split."""
    domains = results.study.dev.domains
    rows = []
    for arm in results.dev.values():
        by_tier = arm.drops("", "tier")
        clean = share(arm.solved(*(domains or {r.domain for r in arm.clean})))
        line = [literal(arm.name), ", ".join(map(str, arm.seeds)), clean]
        line += [change(by_tier.get(tier)) for tier in TIERS]
        rows.append([*line, share(arm.refusals("")), share(arm.false_refusals(""))])
    if not rows:
        return "No evaluation on the dev split is stored here."
    return table(["arm", "seeds", "clean, %", *TIERS, "right refusals", "false refusals"], rows)


def json_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a file of JSON lines; none without a file."""
    out = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else ():
        try:
            one = json.loads(line)
        except ValueError:
            one = None
        if not isinstance(one, dict):
            raise BadFile(f"{path}: {line[:60]!r} is not a line of JSON; remove it, or restore the file") from None
        out.append(one)
    return out


def log(results: Results, _: Section) -> str:
    """Every evaluation on the test split."""
    names = ("when", "event", "arm", "seed", "commit", "code", "config", "suite", "about")
    rows = [[literal(str(one.get(name, "")), 400) for name in names] for one in json_lines(results.folder / LOG)]
    heads = ["when", "event", "arm", "seed", "commit", "code", "configuration", "suites", "remark"]
    return table(heads, rows) if rows else "There is no log."


def trained(results: Results, _: Section) -> str:
    """What every arm was trained with."""

    def row(arm: ArmResults) -> list[str]:
        first = arm.done[0]
        train = first.train or {}
        return [
            literal(arm.arm.about),
            arm.arm.method or "–",
            ", ".join(map(str, arm.seeds)),
            str(train.get("steps", "–")),
            f"{train['demonstrations']:,}" if train.get("demonstrations") else "–",
            ", ".join(f"{what} {formats.duration(seconds)}" for what, seconds in first.spent.items()),
        ]

    heads = ["arm", "about", "method", "seeds", "steps", "demonstrations", "time of the first seed"]
    return table(heads, _rows(results, row, len(heads) - 1))


TABLES: dict[str, Make] = {
    make.__name__: make
    for make in (
        *(changes, against, starts, seeds, severity, kinds, refusals, playing, correlation),
        *(dev, log, trained),
    )
}
