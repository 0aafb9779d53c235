"""The report on a study: tables and plots from the stored outcomes of its arms. An arm that is not there is missing.

Every figure is computed from rows (`train.outcomes`) by `crosswind.metrics`. Seeds of an arm are pooled; intervals
resample tasks, each with all its episodes of all seeds, so that seeds of one task do not count as news of their own.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

from crosswind.base.errors import BadFile
from crosswind.core.registry import perturbations
from crosswind.core.types import TIERS
from crosswind.episodes.record import Record
from crosswind.metrics import (
    Averages,
    By,
    Cell,
    Correlation,
    Drop,
    Measures,
    averaged,
    cell,
    clean_and_robust,
    drop,
    drops,
    grouped,
)
from crosswind.report import words
from crosswind.report.markdown import literal, table
from crosswind.study import outcomes, plots
from crosswind.study.definition import Arm, Part, suite_of
from crosswind.study.definition import Study as Definition
from crosswind.study.findings import Finding, asked, findings
from crosswind.study.runner import FAILED, LOG, REWARDS, Done, read_done, read_rows

SUITES = ("original", "tiers", "heldout", "medical")
SAID = {
    "original": "scenarios of the original study, severity 3, on poi; four of its kinds were never trained",
    "tiers": "train kinds in test words, severities 1 to 4, on poi",
    "heldout": "kinds never trained, severities 1 to 4, on poi",
    "medical": "both, in a domain never trained",
}
MISSING = "missing"
HEART = ("base", "static", "paft")
# what is drawn over what: arms with their place, as its logarithm where each is a multiple of the last, and its mark
CURVES: dict[str, tuple[str, dict[str, tuple[float, str]]]] = {
    "steps": (
        "steps of static fine-tuning",
        {"static-100": (-1.0, "100"), "static-200": (0, "200"), "static-400": (1, "400"), "static": (2, "800")}
        | {"static-3200": (4, "3,200")},
    ),
    "data": (
        "demonstrations of static fine-tuning, in 800 steps",
        {"static-6k": (0, "6,050"), "static-24k": (2, "24,200"), "static": (3, "25,600, each once")},
    ),
    "share": (
        "share of perturbed demonstrations",
        {"static": (0, "0"), "paft-0.1": (0.1, "0.1"), "paft-0.2": (0.2, "0.2"), "paft": (0.3, "0.3")}
        | {"paft-0.5": (0.5, "0.5")},
    ),
}
SHORT = {  # suites as plots name them
    "original": "the original scenarios",
    "tiers": "trained kinds, new words",
    "heldout": "kinds never trained",
}
BEST = "PAFT is the arm {best} here: of those that were tried on dev and tested, it passed most episodes on dev."


class Pool:
    """The outcomes of one arm, its seeds together."""

    def __init__(self, arm: Arm, done: Sequence[Done], rows: Iterable[outcomes.Row]) -> None:
        self.arm, self.done = arm, sorted(done, key=lambda one: one.seed)
        self.records: list[Record] = []
        self.measures: dict[str, Measures] = {}
        for record, measures in rows:
            if measures is not None:  # errors of the infrastructure count nowhere
                self.records.append(record)
                self.measures[record.key] = measures

    @property
    def name(self) -> str:
        return self.arm.name

    @property
    def seeds(self) -> list[int]:
        return [one.seed for one in self.done]

    @cached_property
    def clean(self) -> list[Record]:
        return [record for record in self.records if record.clean]

    def of(self, suite: str, *, keep: Callable[[Record], bool] = lambda _: True) -> list[Record]:
        """The shifted episodes of a suite, those that are to be kept."""
        return [r for r in self.records if not r.clean and suite in ("", suite_of(r.condition)) and keep(r)]

    def drop(self, suite: str, keep: Callable[[Record], bool] = lambda _: True) -> Drop | None:
        """What shifts of a suite did, over the pairs that are to be kept."""
        return drops([*self.clean, *self.of(suite, keep=keep)], "all").get("all")

    def drops(self, suite: str, by: By) -> dict[str, Drop]:
        return drops([*self.clean, *self.of(suite)], by)

    @cached_property
    def cells(self) -> dict[str, dict[str, Drop]]:
        """By suite and tier."""
        return {suite: self.drops(suite, "tier") for suite in SUITES}

    def tier(self, suite: str, tier: str) -> Drop | None:
        return self.cells[suite].get(tier)

    def solved(self, domain: str) -> Cell:
        """Clean accuracy."""
        return cell(record for record in self.clean if record.domain == domain)

    def study(self, records: Iterable[Record]) -> Averages:
        return averaged(records, self.measures)

    def refusals(self, suite: str, keep: Callable[[Record], bool] = lambda _: True) -> Cell:
        """Of the episodes that a shift made impossible: those that were refused."""
        return _share((self.measures[r.key].refused, r) for r in self.of(suite, keep=impossible) if keep(r))

    def false_refusals(self, suite: str) -> Cell:
        """Of the shifted episodes that can be solved: those that were refused."""
        return _share((self.measures[r.key].refused, r) for r in self.of(suite) if not r.refuse)

    def clean_refusals(self, domain: str) -> Cell:
        """Of the clean episodes that can be solved, in a domain or in all: those that were refused."""
        some = [r for r in self.clean if domain in ("", r.domain)]
        return _share((self.measures[r.key].refused, r) for r in some if not r.refuse)

    def seed(self, seed: int) -> Pool:
        """One seed alone."""
        rows = [outcomes.Row(r, self.measures[r.key]) for r in self.records if r.trial == seed]
        return Pool(self.arm, [one for one in self.done if one.seed == seed], rows)


def impossible(record: Record) -> bool:
    """Was the task taken away by a shift? Tasks that cannot be done in clean worlds either are another matter."""
    return record.refuse and any(perturbations[kind].goal == "refuse" for kind in record.kinds)


def _share(found: Iterable[tuple[bool, Record]]) -> Cell:
    return cell(r.model_copy(update={"outcome": "pass" if yes else "fail"}) for yes, r in found)


def between(one: Pool, other: Pool, suite: str, keep: Callable[[Record], bool] = lambda _: True) -> Drop | None:
    """What the second arm does better or worse than the first, in the very same episodes; seeds are matched if equal.

    Without a suite: in clean episodes. `keep`: those that count.
    """

    def named(pool: Pool) -> list[Record]:
        return pool.of(suite, keep=keep) if suite else [record for record in pool.clean if keep(record)]

    base: dict[tuple[str, str, tuple[str, ...]], dict[int, Record]] = {}
    for record in named(one):
        base.setdefault((record.task_id, record.condition, record.kinds), {})[record.trial] = record
    found = []
    for record in named(other):
        if seeds := base.get((record.task_id, record.condition, record.kinds)):
            found.append((seeds.get(record.trial) or seeds[min(seeds)], record))
    return drop(f"{one.name} to {other.name}", found)


# ---------------------------------------------------------------- what is there


def pools(study: Definition, folder: Path, part: Part = "test") -> dict[str, Pool]:
    """The arms that are there, in the order of the definition; arms that it does not have come last."""
    found: dict[str, list[tuple[Done, list[outcomes.Row]]]] = {}
    for path in sorted(folder.glob(f"arms/*/seed-*/{part}.json")):
        done = read_done(path)
        found.setdefault(done.arm, []).append((done, read_rows(path, done)))
    order = [*(name for name in study.by_name if name in found), *(n for n in found if n not in study.by_name)]
    out = {}
    for name in order:
        first = found[name][0][0]
        arm = study.by_name.get(name) or Arm.model_validate(
            {"name": name, "wave": first.wave, "about": first.about, "method": first.method}
        )
        out[name] = Pool(arm, [done for done, _ in found[name]], [row for _, rows in found[name] for row in rows])
    return out


def write(study: Definition, folder: Path, into: Path) -> list[Path]:
    """Write study.md, study_details.md and the plots; the paths come back."""
    found = pools(study, folder)
    dev = pools(study, folder, "dev")
    if not found and not dev:
        raise BadFile(f"{folder}: holds no finished arm (arms/ARM/seed-N/test.json); run `crosswind study fragility`")
    try:
        into.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadFile(f"{into}: cannot be written ({error.strerror}); choose another --into") from None
    pictures = drawn(study, found, best_paft(found, dev))
    pages = {
        "study.md": page(study, found, dev, folder, sorted(pictures)),
        "study_details.md": details(study, found),
        **{f"study_{name}.svg": text for name, text in pictures.items()},
    }
    for name, text in pages.items():
        (into / name).write_text(text, encoding="utf-8")
    for old in into.glob("study_*.svg"):
        if old.name not in pages:
            old.unlink()  # of arms that are no longer there
    return [into / name for name in pages]


# ---------------------------------------------------------------- the page


def page(study: Definition, found: dict[str, Pool], dev: dict[str, Pool], folder: Path, plotted: Sequence[str]) -> str:
    """The main page."""
    there = sum(_has(found, arm.name, seed) for arm, seed in study.queue())
    former = sum(len(pool.done) for pool in found.values()) - there
    absent = [f"{arm.name} (seed {seed})" for arm, seed in study.queue() if not _has(found, arm.name, seed)]
    out = [
        f"# The {study.name} study",
        f"{study.summary} Made by `crosswind study report` from the stored episodes; docs/study.md explains suites, "
        "arms and figures. Changes are in percentage points, shifted minus clean on the same tasks, with 95 % "
        "intervals that resample tasks. Bold ones are clear; where a row has the four tiers of a suite, after Holm's "
        "correction over them.",
        f"{words.many(there, 'result')} of {len(study.queue())} are there, and {former} beside them, "
        "of former commits or of an arm run again. "
        + (f"Missing: {', '.join(absent)}." if absent else "Nothing is missing."),
        *_broken(folder),
        *_warnings(study, found, folder),
    ]
    best = best_paft(found, dev)
    claims, wanted = findings(found), asked(found, best)
    if "passed" in plotted:
        out += ["## In short", "![episodes passed, by suite](study_passed.svg)", _marks(claims, wanted)]
    out.append("## Accuracy and its change")
    for suite in SUITES:
        out += [f"### {suite}: {SAID[suite]}", _changes(study, found, suite)]
    out += ["## In the same episodes as static", _against(study, found)]
    out += ["## Reinforcement, beside what it started from", _reinforced(found, folder)]
    out += ["## Each seed by itself", _by_seed(found)]
    out += ["## Refusals", _refusals(study, found)]
    out += ["## How they play, under train kinds in test words", _playing(study, found)]
    out += ["## At severity 1", _mild(study, found)]
    out += ["## Kind by kind, on poi", _kinds(found, best)]
    out += ["## Does the clean score predict robustness?", _correlation(found)]
    out += ["## The findings of the original study", _findings(claims)]
    out += ["## What was asked of the arms", BEST.format(best=literal(best)), _findings(wanted)]
    if rest := [name for name in plotted if name != "passed"]:
        out += ["## Plots", *(f"![{name.replace('_', ' ')}](study_{name}.svg)" for name in rest)]
    out += ["## Choices, on the dev split", _dev(dev)]
    out += ["## Every evaluation on the test split", _log(folder)]
    out += ["## What was trained", _trained(study, found)]
    return "\n\n".join(out) + "\n"


def best_paft(found: dict[str, Pool], dev: dict[str, Pool]) -> str:
    """Of the PAFT arms that were tested, the one that passed most on dev; those of former commits do not count."""
    tried = [p.name for p in dev.values() if p.arm.method == "paft" and not p.arm.at and p.name in found]
    return max(tried, key=lambda name: cell(dev[name].records).rate or 0.0, default="paft")


def _has(found: dict[str, Pool], arm: str, seed: int) -> bool:
    return arm in found and seed in found[arm].seeds


def _broken(folder: Path) -> list[str]:
    """Arms that failed when they were last run here, and why."""
    out = []
    for path in sorted(folder.glob(f"arms/*/seed-*/{FAILED}")):
        last = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:] or ["unknown"]
        out.append(f"> Failed: {path.parent.parent.name} (seed {path.parent.name[5:]}): {literal(last[0], 300)}.")
    return out


def _warnings(study: Definition, found: dict[str, Pool], folder: Path) -> list[str]:
    wanted = study.suite_hash("test")
    odd = sorted({f"{p.name}/seed-{d.seed}" for p in found.values() for d in p.done if d.suite_hash != wanted})
    out = [f"> Note: tested by another definition of the suites than the present one: {', '.join(odd)}."] if odd else []
    others = [
        f"{literal(pool.name)}/seed-{done.seed} ({literal(told, 200)})"
        for pool in found.values()
        if pool.name in study.by_name and not pool.arm.at
        for done in pool.done
        if (told := study.another(pool.arm, done.seed, done.config, done.config_hash))
    ]
    if others:
        out.append(f"> Note: trained by another configuration than the present one: {', '.join(others)}.")
    dealt = {done.episodes_hash for pool in found.values() for done in pool.done}
    if len(dealt) > 1:
        out.append("> Note: not all arms played the same episodes; comparisons of arms take those that both played.")
    codes = {done.code for pool in found.values() for done in pool.done}
    if len(codes) > 1:
        told = "; the log at the end tells which" if _lines(folder / LOG) else ""
        out.append(f"> Note: results were made by {len(codes)} versions of the code{told}.")
    return out


def _rows(
    study: Definition, found: dict[str, Pool], row: Callable[[Pool], Sequence[str]], width: int, *, all_: bool = False
) -> list[list[str]]:
    """A row for each arm that is there; with `all_` also for those that are not, which say so."""
    names = [name for name in study.by_name if all_ or name in found]
    names += [name for name in found if name not in study.by_name]
    return [
        [literal(name), *(row(found[name]) if name in found else [MISSING, *["–"] * (width - 1)])] for name in names
    ]


def changed(one: Drop | None) -> str:
    """A change with its interval."""
    if one is None:
        return "–"
    mark = "**" if words.clear(one) else ""
    return f"{mark}{words.points(one.delta)}{mark} ({words.span(one.low, one.high)})"


def share(one: Cell) -> str:
    return "–" if one.rate is None else f"{100 * one.rate:.1f} ({100 * one.low:.0f} to {100 * one.high:.0f}; {one.n})"


def _changes(study: Definition, found: dict[str, Pool], suite: str) -> str:
    domain = "medical" if suite == "medical" else "poi"

    def row(pool: Pool) -> list[str]:
        cells = [pool.tier(suite, tier) for tier in TIERS]
        n = sum(one.pairs for one in cells if one)
        return [str(len(pool.seeds)), share(pool.solved(domain)), *map(changed, cells), str(n)]

    heads = ["arm", "seeds", "clean, %", *TIERS, "pairs"]
    return table(heads, _rows(study, found, row, len(heads) - 1, all_=True))


def _against(study: Definition, found: dict[str, Pool]) -> str:
    if "static" not in found:
        return "static is missing."
    base = found["static"]

    def row(pool: Pool) -> list[str]:
        clean = (between(base, pool, "", partial(_in, domain)) for domain in ("poi", "medical"))
        return [changed(one) for one in (*clean, *(between(base, pool, suite) for suite in SUITES))]

    some = {name: pool for name, pool in found.items() if name != "static"}
    heads = ["arm", "clean poi", "clean medical", *SUITES]
    rows = [one for one in _rows(study, some, row, len(heads) - 1) if one[0] != "static"]
    told = "Share of episodes passed, minus that of static, in points. Each comparison stands by itself."
    return f"{told}\n\n{table(heads, rows)}"


def _reinforced(found: dict[str, Pool], folder: Path) -> str:
    """What reinforcement did to the arm that it started from, and perturbed worlds to reinforcement."""
    arms = [pool for pool in found.values() if pool.arm.method == "grpo"]
    pairs = [(found[pool.arm.start], pool) for pool in arms if pool.arm.start in found]
    pairs += [(found[plain], pool) for pool in arms if (plain := pool.name.removesuffix("-perturbed")) in found]
    rows = []
    for one, other in pairs:
        if one is other:
            continue
        sides: tuple[Callable[[Record], bool], ...] = (lambda _: True, lambda r: not r.refuse, impossible)
        changes = [between(one, other, suite, side) for suite in ("tiers", "heldout") for side in sides]
        wrong = [pool.false_refusals("tiers").rate for pool in (one, other)]
        rows.append(
            [f"{literal(one.name)} to {literal(other.name)}"]
            + [changed(change) for change in (between(one, other, "", lambda r: _in("poi", r)), *changes)]
            + [" to ".join(words.percent(rate) for rate in wrong)]
        )
    heads = ["from, to", "clean on poi", "tiers", "that can be solved", "that a shift made impossible"]
    heads += ["heldout", "that can be solved", "that a shift made impossible", "false refusals on tiers"]
    told = [table(heads, rows)] if rows else []
    if lines := [line for pool in arms for line in _rewards(pool, folder)]:
        told += [
            "Reward in training, a mean over the first and over the last quarter of the steps, and greedy success "
            "before and after, on draws of the train split that were not trained on.",
            table(["arm", "seed", "reward", "in clean groups", "in perturbed ones", "signal", "greedy success"], lines),
        ]
    return "\n\n".join(told) or "No arm of GRPO is there."


def _rewards(pool: Pool, folder: Path) -> list[list[str]]:
    out = []
    for done in pool.done:
        lines = _lines(folder / "arms" / pool.name / f"seed-{done.seed}" / REWARDS)
        extra = (done.train or {}).get("extra", {})
        greedy = [
            f"{where} {words.percent(before)} to {words.percent(extra.get('greedy_after', {}).get(where))}"
            for where, before in extra.get("greedy_before", {}).items()
        ]
        figures = [_ends(lines, name) for name in ("reward", "clean", "perturbed", "signal")]
        out.append([literal(pool.name), str(done.seed), *figures, "; ".join(greedy) or "–"])
    return out


def _ends(lines: Sequence[dict[str, Any]], name: str) -> str:
    """A figure's mean over the first and over the last quarter of some lines."""
    part = max(1, len(lines) // 4)
    means = [[v for one in some if isinstance(v := one.get(name), float)] for some in (lines[:part], lines[-part:])]
    return " to ".join(f"{fmean(some):.2f}" for some in means) if all(means) else "–"


def _in(domain: str, record: Record) -> bool:
    return record.domain == domain


def _by_seed(found: dict[str, Pool]) -> str:
    rows = []
    for pool in found.values():
        for seed in pool.seeds:
            one = pool.seed(seed)
            line = [literal(pool.name), str(seed), share(one.solved("poi"))]
            line += [changed(one.tier("tiers", tier)) for tier in TIERS]
            rows.append([*line, *(changed(one.drop(suite)) for suite in ("original", "heldout", "medical"))])
    heads = ["arm", "seed", "clean, %", *(f"tiers: {tier}" for tier in TIERS), "original", "heldout", "medical"]
    return table(heads, rows)


def _kinds(found: dict[str, Pool], best: str) -> str:
    """What arms passed under each kind, those that the best PAFT arm passed least of first, and why it failed."""
    names = [name for name in dict.fromkeys((*HEART, best)) if name in found]
    rows: list[tuple[tuple[int, float], list[str]]] = []
    last = names[-1] if names else ""
    for suite in ("tiers", "heldout"):
        split = {name: grouped(found[name].of(suite), "kind") for name in names}
        for kind in sorted({kind for some in split.values() for kind in some}):
            cells = {name: cell(split[name].get(kind, ())) for name in names}
            causes = Counter(r.cause or "unknown" for r in split[last].get(kind, ()) if not r.passed)
            told = ", ".join(f"{cause} {n}" for cause, n in causes.most_common(2))
            rate = cells[last].rate
            line = [suite, perturbations[kind].tier, literal(kind), *map(share, cells.values()), told or "–"]
            rows.append(((SUITES.index(suite), 1.0 if rate is None else rate), line))
    heads = ["suite", "tier", "kind", *map(literal, names), f"why {literal(last)} failed, mostly"]
    told = "Episodes passed, in %. Those that the last arm passed least of come first."
    return f"{told}\n\n{table(heads, [line for _, line in sorted(rows, key=lambda one: one[0])])}"


def _refusals(study: Definition, found: dict[str, Pool]) -> str:
    def row(pool: Pool) -> list[str]:
        right = [share(pool.refusals(suite)) for suite in SUITES]
        clean = [share(pool.clean_refusals(domain)) for domain in ("poi", "medical")]
        return [*right, *clean, *(share(pool.false_refusals(suite)) for suite in SUITES)]

    false = ("clean poi", "clean medical", *SUITES)
    heads = ["arm", *(f"right: {suite}" for suite in SUITES), *(f"false: {where}" for where in false)]
    told = "Right: of episodes that a shift made impossible, those refused, in %. False: of those that can be solved."
    return f"{told}\n\n{table(heads, _rows(study, found, row, len(heads) - 1))}"


def _playing(study: Definition, found: dict[str, Pool]) -> str:
    out = []
    figures: tuple[tuple[str, Callable[[Averages], str]], ...] = (
        ("Tool error rate, % of calls", lambda s: words.percent(s.tool_error_rate)),
        ("Errors of the agent's own making, % of calls", lambda s: words.percent(s.own_error_rate)),
        ("Exploration, 0 to 1", lambda s: words.number(s.exploration)),
        ("Tool-chain length (on the certified way)", lambda s: _chain(s)),
    )
    for title, told in figures:

        def row(pool: Pool, told: Callable[[Averages], str] = told) -> list[str]:
            by_tier = [pool.of("tiers", keep=lambda r, tier=tier: r.tier == tier) for tier in TIERS]  # type: ignore[misc]
            clean = [r for r in pool.clean if r.domain == "poi"]
            return [told(pool.study(clean)), *(told(pool.study(some)) for some in by_tier)]

        out.append(f"{title}:\n\n{table(['arm', 'clean', *TIERS], _rows(study, found, row, 1 + len(TIERS)))}")
    return "\n\n".join(out)


def _chain(one: Averages) -> str:
    return f"{words.number(one.chain_length, 1)} ({words.number(one.gold_chain_length, 1)})"


def _mild(study: Definition, found: dict[str, Pool]) -> str:
    def row(pool: Pool) -> list[str]:
        out = []
        for suite in ("tiers", "heldout"):
            for tier in TIERS:
                out.append(changed(pool.drop(suite, lambda r, tier=tier: r.severity == 1 and r.tier == tier)))  # type: ignore[misc]
        return out

    heads = ["arm", *(f"{suite}: {tier}" for suite in ("tiers", "heldout") for tier in TIERS)]
    return table(heads, _rows(study, found, row, len(heads) - 1))


def _correlation(found: dict[str, Pool]) -> str:
    now = [pool for pool in found.values() if not pool.arm.at]
    places: dict[str, Callable[[Record], bool]] = {
        "all suites": lambda _: True,
        "all suites on poi": lambda r: r.domain == "poi",
        **{suite: lambda r, s=suite: suite_of(r.condition) == s for suite in SUITES},  # type: ignore[misc]
    }
    rows = []
    for place, keep in places.items():
        both = clean_and_robust({pool.name: one for pool in now if (one := pool.drop("", keep))})
        rows.append([place, str(both.kept.n), _rho(both.delta), _rho(both.kept)])
    every = {name: one for name, pool in found.items() if (one := pool.drop(""))}
    arms = [
        [literal(name), words.percent(clean), words.points(delta), words.percent(kept)]
        for name, (clean, delta, kept) in clean_and_robust(every).agents.items()
    ]
    told = (
        "Rank correlation of the clean score with the change, and with the share of solved tasks that stay solved, "
        "over arms that are not of former commits. p takes arms as independent, which those of one study hardly are."
    )
    return "\n\n".join(
        [
            told,
            table(["pairs", "arms", "with the change", "with the share kept"], rows),
            table(["arm", "clean", "change over all suites", "kept"], arms),
        ]
    )


def _rho(found: Correlation) -> str:
    return "cannot be told" if found.rho is None else f"{found.rho:+.2f} ({words.chance(found.p)})"


def _marks(claims: Sequence[Finding], wanted: Sequence[Finding]) -> str:
    """How many claims have which mark."""
    told = []
    for some in (claims, wanted):
        counts = Counter(one.mark for one in some)
        told.append(", ".join(f"{count} {mark}" for mark, count in counts.most_common()))
    return (
        f"Of {len(claims)} [findings of the original study](#the-findings-of-the-original-study): {told[0]}. Of "
        f"{len(wanted)} things [asked of the arms](#what-was-asked-of-the-arms): {told[1]}."
    )


def _findings(some: Sequence[Finding]) -> str:
    rows = [[literal(one.claim, 400), f"**{one.mark}**", one.numbers, literal(one.rule, 400)] for one in some]
    return table(["claim", "mark", "our numbers", "rule"], rows)


def _dev(dev: dict[str, Pool]) -> str:
    rows = []
    for pool in dev.values():
        by_tier = pool.drops("", "tier")
        rows.append(
            [
                literal(pool.name),
                ", ".join(map(str, pool.seeds)),
                share(pool.solved("poi")),
                *(changed(by_tier.get(tier)) for tier in TIERS),
                share(pool.refusals("")),
                share(pool.false_refusals("")),
            ]
        )
    if not rows:
        return "No evaluation on the dev split is stored here."
    return table(["arm", "seeds", "clean, %", *TIERS, "right refusals", "false refusals"], rows)


def _lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a file of lines of JSON; none if there is no such file."""
    out = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else ():
        try:
            one = json.loads(line)
        except ValueError:
            one = None
        if not isinstance(one, dict):
            raise BadFile(f"{path}: {line[:60]!r} is no line of JSON; take it out, or restore the file") from None
        out.append(one)
    return out


def _log(folder: Path) -> str:
    names = ("when", "event", "arm", "seed", "commit", "code", "config", "suite", "about")
    rows = [[literal(str(one.get(name, "")), 400) for name in names] for one in _lines(folder / LOG)]
    heads = ["when", "event", "arm", "seed", "commit", "code", "configuration", "suites", "remark"]
    return table(heads, rows) if rows else "There is no log."


def _trained(study: Definition, found: dict[str, Pool]) -> str:
    def row(pool: Pool) -> list[str]:
        first = pool.done[0]
        train = first.train or {}
        return [
            literal(pool.arm.about),
            pool.arm.method or "–",
            ", ".join(map(str, pool.seeds)),
            str(train.get("steps", "–")),
            f"{train['demonstrations']:,}" if train.get("demonstrations") else "–",
            ", ".join(f"{what} {words.duration(seconds)}" for what, seconds in first.spent.items()),
        ]

    heads = ["arm", "about", "method", "seeds", "steps", "demonstrations", "time of the first seed"]
    return table(heads, _rows(study, found, row, len(heads) - 1, all_=True))


# ---------------------------------------------------------------- details


def details(study: Definition, found: dict[str, Pool]) -> str:
    """Every arm by axis, family, level, kind and severity."""
    out = [
        f"# The {study.name} study: details",
        "By arm and suite: accuracy clean and shifted, the change with its interval, and how the shifted episodes were "
        "played. Refused: of those that a shift made impossible; false: of those that can be solved.",
    ]
    groupings: tuple[By, ...] = ("axis", "level", "severity", "family", "kind")
    for pool, suite in product(found.values(), SUITES):
        out.append(f"## {literal(pool.name)}: {suite}")
        for by in groupings:
            changes = pool.drops(suite, by)
            groups = grouped(pool.of(suite), by)
            rows = []
            for name, one in changes.items():
                some, played = groups[name], pool.study(groups[name])
                right = _share((pool.measures[r.key].refused, r) for r in some if impossible(r))
                rows.append(
                    [
                        literal(name),
                        str(one.pairs),
                        words.percent(one.clean),
                        words.percent(one.shifted),
                        changed(one),
                        words.percent(played.tool_error_rate),
                        words.number(played.exploration),
                        words.number(played.chain_length, 1),
                        words.percent(right.rate),
                        words.percent(played.false_refusal_rate),
                    ]
                )
            heads = [by, "pairs", "clean", "shifted", "change", "tool errors", "exploration", "chain"]
            out.append(table([*heads, "refused", "false"], rows))
    return "\n\n".join(out) + "\n"


# ---------------------------------------------------------------- plots


def _bar(one: Cell) -> tuple[float, float, float] | None:
    return None if one.rate is None else (one.rate, one.low, one.high)


def drawn(study: Definition, found: dict[str, Pool], best: str) -> dict[str, str]:
    """The plots that can be made of what is there, by name; `best` is the arm that stands for PAFT."""
    out: dict[str, str] = {}
    if not found:
        return out
    names = {"base": "as it is", "static": "static", "paft": "PAFT", best: f"best PAFT tested: {best}"}
    shown = [found.get(name) for name in names]
    groups: list[plots.Forest] = [("clean", [_bar(pool.solved("poi")) if pool else None for pool in shown])]
    for suite, told in SHORT.items():
        groups.append((told, [_bar(cell(pool.of(suite))) if pool else None for pool in shown]))
    sides: dict[str, Callable[[Record], bool]] = {
        "can be solved": lambda r: not r.refuse,
        "refusing is right": lambda r: r.refuse,
    }
    for told, side in sides.items():
        among = [_bar(cell(pool.of("medical", keep=side))) if pool else None for pool in shown]
        groups.append((f"another domain, {told}", among))
    out["passed"] = plots.bars("Episodes passed", list(names.values()), groups)
    for suite in SUITES:
        rows = []
        for name in study.by_name:
            pool = found.get(name)
            values = [
                (one.delta, one.low, one.high) if pool and (one := pool.tier(suite, tier)) else None for tier in TIERS
            ]
            if pool or name in HEART:
                rows.append((name, values))
        out[f"{suite}"] = plots.forest(f"Change under {suite}, points", TIERS, rows)
    for name, (across, arms) in CURVES.items():
        there = {arm: place for arm, (place, _) in arms.items() if arm in found}
        if len(there) < 2:
            continue
        marks = {place: mark for arm, (place, mark) in arms.items() if arm in found}
        series: dict[str, list[plots.Point]] = {}
        for suite in SUITES:
            changes = ((place, found[arm].drop(suite)) for arm, place in there.items())
            series[suite] = [(place, one.delta, one.low, one.high) for place, one in changes if one]
        out[name] = plots.curve(f"Change by {across}, points", across, marks, series)
    points = {
        name: (one.clean, one.shifted)
        for name, pool in found.items()
        if (one := pool.drop("")) and pool.solved("poi").n
    }
    if len(points) > 1:
        out["clean_and_robust"] = plots.scatter("Clean and shifted accuracy, all suites", "clean", "shifted", points)
    return out
