"""The report of a study: pages and plots from the stored outcomes of its arms. Arms without results are missing.

Every figure is computed from rows (`study.outcomes`) by `crosswind.metrics`.
"""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path
from typing import Any

from crosswind.base.errors import BadFile, UnknownName
from crosswind.core.registry import did_you_mean
from crosswind.core.types import TIERS
from crosswind.metrics import By, cell, formats, grouped
from crosswind.report.markdown import literal, table
from crosswind.study import plots
from crosswind.study.definition import Arm, Curve, Study
from crosswind.study.findings import Findings
from crosswind.study.results import FAILED, LOG, ArmResults, Results, impossible, load_results, solvable
from crosswind.study.tables import TABLES, change, json_lines

PAGE, DETAILS, PLOTS = "report.md", "report_details.md", "plots"
GROUPINGS: tuple[By, ...] = ("axis", "level", "severity", "family", "kind")


def write(study: Study, folder: Path, into: Path, own: Findings | None = None) -> list[Path]:
    """Write the pages and plots of the results in a folder; return their paths."""
    own = own or Findings()
    known = [*TABLES, *own.sections, PLOTS]
    for section in study.report.sections:
        if section.make not in known:
            raise UnknownName(f"the report has no table {section.make!r}; {did_you_mean(section.make, known)}")
    results = load_results(study, folder)
    if not results.arms and not results.dev:
        raise BadFile(f"{folder}: has no finished arm (arms/ARM/seed-N/test.json); run some with `crosswind study run`")
    try:
        into.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadFile(f"{into}: cannot be written ({error.strerror}); choose another --into") from None
    drawn = draw(results)
    pictures = {**drawn, **{name: plot(results) for name, plot in own.plots.items()}} if results.arms else {}
    pages = {
        PAGE: page(results, own, sorted(drawn)),
        DETAILS: details(results),
        **{f"report_{name}.svg": text for name, text in pictures.items()},
    }
    for name, text in pages.items():
        (into / name).write_text(text, encoding="utf-8")
    for old in into.glob("report_*.svg"):
        if old.name not in pages:
            old.unlink()  # of arms that are no longer there
    return [into / name for name in pages]


# ---------------------------------------------------------------- the page


def page(results: Results, own: Findings, drawn: list[str]) -> str:
    """The main page."""
    study, found = results.study, results.arms
    queue = study.queue()
    absent = [f"{a.name} (seed {n})" for a, n in queue if a.name not in found or n not in found[a.name].seeds]
    there = len(queue) - len(absent)
    former = sum(len(arm.done) for arm in found.values()) - there
    out = [
        f"# The {study.name} study",
        f"{study.summary} Made by `crosswind study report` from the stored episodes; docs/study.md explains suites, "
        "arms and figures. Changes are in percentage points, shifted minus clean on the same tasks that can be solved, "
        "each with a 95 % interval of its own that goes by tasks. Bold ones are clear; where a row has the tiers of a "
        "suite, also after Holm's adjustment over them.",
        f"{formats.many(there, 'result')} of {len(queue)} are there, and {former} beside them, "
        "of former commits or of an arm run again. "
        + (f"Missing: {', '.join(absent)}." if absent else "Nothing is missing."),
        *_failures(results.folder),
        *_warnings(results),
    ]
    for section in study.report.sections:
        if section.make == PLOTS:
            made = "\n\n".join(f"![{name.replace('_', ' ')}](report_{name}.svg)" for name in drawn)
        elif section.make in own.sections:
            made = own.sections[section.make](results)
        else:
            made = TABLES[section.make](results, section)
        if made:
            out += [f"## {section.title}", made]
    return "\n\n".join(out) + "\n"


def _failures(folder: Path) -> list[str]:
    """Arms that failed when they were last run, and why."""
    out = []
    for path in sorted(folder.glob(f"arms/*/seed-*/{FAILED}")):
        last = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:] or ["unknown"]
        out.append(f"> Failed: {path.parent.parent.name} (seed {path.parent.name[5:]}): {literal(last[0], 300)}.")
    return out


def _warnings(results: Results) -> list[str]:
    """What results differ in that should be alike."""
    study, every = results.study, [(arm, done) for arm in results.arms.values() for done in arm.done]
    wanted, out = study.suite_hash("test"), []
    if odd := sorted({f"{arm.name}/seed-{done.seed}" for arm, done in every if done.suite_hash != wanted}):
        out.append(f"> Note: tested by another definition of the suites than the present one: {', '.join(odd)}.")
    others = [
        f"{literal(arm.name)}/seed-{done.seed} ({literal(told, 200)})"
        for arm, done in every
        if arm.name in study.by_name and not arm.arm.at
        if (told := study.another(arm.arm, done.seed, done.config, done.config_hash))
    ]
    if others:
        out.append(f"> Note: trained by another configuration than the present one: {', '.join(others)}.")
    if len({done.episodes_hash for _, done in every}) > 1:
        out.append("> Note: not all arms played the same episodes; comparisons of arms take those that both played.")
    codes = {done.code for _, done in every}
    if len(codes) > 1:
        told = "; the log at the end tells which" if json_lines(results.folder / LOG) else ""
        out.append(f"> Note: results were made by {len(codes)} versions of the code{told}.")
    return out


def details(results: Results) -> str:
    """Every arm by axis, level, severity, family and kind."""
    out = [
        f"# The {results.study.name} study: details",
        "By arm and suite: accuracy clean and shifted on solvable tasks, the change with its interval, and how the "
        "shifted episodes were played. Refused: of those that a shift made impossible; false: of those that can be "
        "solved. Who refuses everything has 0 % accuracy and 100 % in both.",
    ]
    for arm, suite in product(results.arms.values(), results.study.suites):
        out.append(f"## {literal(arm.name)}: {suite}")
        out += [_details(arm, suite, by) for by in GROUPINGS]
    return "\n\n".join(out) + "\n"


def _details(arm: ArmResults, suite: str, by: By) -> str:
    groups = grouped(arm.of(suite), by)
    changed, rows = arm.drops(suite, by), []
    for name, some in groups.items():
        played, one = arm.averages(some), changed.get(name)
        shares = [formats.percent(x) for x in (one.clean, one.shifted)] if one else ["–", "–"]
        line = [literal(name), str(one.pairs if one else 0), *shares, change(one)]
        line += [formats.percent(played.tool_error_rate), formats.number(played.exploration)]
        line += [formats.number(played.chain_length, 1), formats.percent(cell(filter(impossible, some)).rate)]
        rows.append([*line, formats.percent(played.false_refusal_rate)])
    heads = [by, "pairs", "clean", "shifted", "change", "tool errors", "exploration", "chain", "refused", "false"]
    return table(heads, rows)


# ---------------------------------------------------------------- plots


def draw(results: Results) -> dict[str, str]:
    """The plots that the definition asks for and the results allow, by name."""
    out: dict[str, str] = {}
    study, found = results.study, results.arms
    for suite in study.suites if found else ():
        if "forest" in study.report.plots:
            out[suite] = _forest(results, suite)
        if "heat" in study.report.plots:
            out[f"{suite}_kinds"] = _heat(results, suite)
    for name, curve in study.report.curves.items():
        if sum(arm in found for arm in curve.arms) > 1:
            out[name] = _curve(results, curve)
    points = {name: (one.clean, one.shifted) for name, arm in found.items() if (one := arm.drop("")) and arm.clean}
    if "scatter" in study.report.plots and len(points) > 1:
        out["clean_and_robust"] = plots.scatter("Clean and shifted accuracy, all suites", "clean", "shifted", points)
    return out


def _ordered(results: Results) -> list[ArmResults]:
    return [results.arms[name] for name in results.study.by_name if name in results.arms]


def _forest(results: Results, suite: str) -> str:
    rows = []
    for arm in _ordered(results):
        cells = (arm.tier(suite, tier) for tier in TIERS)
        rows.append((arm.name, [(one.delta, one.low, one.high) if one else None for one in cells]))
    return plots.forest(f"Change under {suite}, points", TIERS, rows)


def _heat(results: Results, suite: str) -> str:
    """Arms by kinds: the share of episodes passed."""
    split = {arm.name: grouped(arm.of(suite, keep=solvable), "kind") for arm in _ordered(results)}
    kinds = sorted({kind for some in split.values() for kind in some})
    rows = {name: [cell(some.get(kind, ())).rate for kind in kinds] for name, some in split.items()}
    return plots.heat(f"Episodes passed under {suite}, %", kinds, rows)


def _curve(results: Results, curve: Curve) -> str:
    there = {name: _place(results.study.by_name[name], curve) for name in curve.arms if name in results.arms}
    series: dict[str, list[plots.Point]] = {}
    for suite in results.study.suites:
        changes = ((place, results.arms[name].drop(suite)) for name, (place, _) in there.items())
        series[suite] = [(place, one.delta, one.low, one.high) for place, one in changes if one]
    return plots.curve(f"Change by {curve.title}, points", curve.title, dict(there.values()), series)


def _place(arm: Arm, curve: Curve) -> tuple[float, str]:
    """Where an arm is on a curve, and its label: the value of the option, zero unless the arm sets it."""
    value: Any = arm.train
    for key in curve.option.split("."):
        value = value.get(key, 0) if isinstance(value, dict) else 0
    place, label = curve.at.get(arm.name) or (value, f"{value:,}" if isinstance(value, int | float) else str(value))
    if not isinstance(place, int | float) or (curve.log and place <= 0):
        raise BadFile(f"the curve {curve.title!r}: {curve.option} of {arm.name} is {place!r}; place it with `at`")
    return (math.log2(place) if curve.log else float(place)), label
