"""The gate as Markdown, for the summary page of a CI system, and the cells of its table.

Nothing in the Markdown is markup but ours. `cli/gate.py` writes the file.
"""

from __future__ import annotations

import re

from crosswind.gate.gate import TRIVIAL_RULE, Outcome, RuleResult
from crosswind.gate.junit import xml_text
from crosswind.metrics import formats

_MARKUP = re.compile(r"([\\`*_{}\[\]()<>#+!|~$&:-])")
_MENTION = re.compile(r"(?<!\w)@")
LIMIT = 500_000  # characters of Markdown; GitHub drops a summary above a mebibyte


def plain(text: str) -> str:
    """Text from elsewhere, shown in Markdown literally: one line, no markup, nobody called."""
    one_line = " ".join(xml_text(text).split())
    return _MENTION.sub("(at)", _MARKUP.sub(lambda m: f"&#{ord(m[1])};", one_line))


def markdown(outcome: Outcome) -> str:
    """The outcome as Markdown: the verdict, a table of the checks, and the episodes that broke."""
    mark = {"pass": "✅", "fail": "❌", "inconclusive": "⚠️", "infrastructure": "🔌"}
    heads = ("check", "before", "after", "change or rate", "pairs", "tasks", "limit", "verdict")
    lines = [
        f"### {mark[outcome.verdict]} crosswind gate: {outcome.verdict}",
        "",
        plain(outcome.says),
        "",
        f"agent {plain(outcome.agent)}"
        + (f", baseline {plain(outcome.baseline)}" if outcome.baseline else ", clean against shifted")
        + f"; {outcome.episodes} episodes, {outcome.errors} lost to infrastructure",
        "",
        f"| {' | '.join(heads)} |",
        f"|{' --- |' * len(heads)}",
    ]
    lines += [f"| {' | '.join(row)} |" for row in map(_row, outcome.findings)]
    lines += ["", plain(levels(outcome))] if outcome.findings else []
    lines += [f"\n> {plain(note)}" for note in outcome.notes]
    for finding in outcome.findings:
        if finding.broken:
            lines += ["", f"<details><summary>{plain(finding.group)}: episodes that broke</summary>", ""]
            lines += [f"- {plain(b.key)}: {plain(b.stage or '?')}, {plain(b.cause or '?')}" for b in finding.broken]
            lines += ["", "</details>"]
    text = "\n".join(lines) + "\n"
    return text if len(text) <= LIMIT else text[:LIMIT].rsplit("\n", 1)[0] + "\n\n(cut)\n"


def cells(finding: RuleResult) -> list[str]:
    """A finding as the cells of a table, as plain text."""
    d = finding.decision
    rule = finding.rule.split("=")[0]
    shown = finding.rule == TRIVIAL_RULE or finding.is_rate or finding.group in finding.rule
    name = finding.label if shown else f"{rule}: {finding.group}"
    word: str = finding.verdict
    if word == "inconclusive":
        word += f": {finding.wanted}" if d.needed_n else " (at the limit)"
    return [
        name,
        "" if d.before is None else formats.percent(d.before),
        formats.percent(d.after) if d.n else "–",
        finding.change,
        str(d.n),
        str(d.tasks),
        finding.allowed,
        word,
    ]


def levels(outcome: Outcome) -> str:
    """What the intervals of the table are."""
    sharing = sum(finding.rule != TRIVIAL_RULE for finding in outcome.findings)
    if sharing <= 1:
        return "Brackets hold the two bounds that decide, each at 95 %."
    each = f"{100 * outcome.findings[0].decision.level:.3g} %"
    return (
        f"Brackets hold the two bounds that decide: the lower at 95 %, the upper at {each}, so that those of all "
        f"{sharing} rules hold together at 95 % (Bonferroni)."
    )


def _row(finding: RuleResult) -> list[str]:
    row = [plain(cell) for cell in cells(finding)]
    return [*row[:-1], f"**{row[-1]}**"]
