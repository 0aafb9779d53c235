"""What a CI system reads of the gate: JUnit XML, and Markdown for its summary page.

Names and words from models and tools are hostile here as everywhere: what XML cannot hold is replaced, and nothing in
the Markdown is markup but ours.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from crosswind.base import terminal
from crosswind.base.version import __version__
from crosswind.gate.gate import TRIVIAL_RULE, Outcome, RuleResult
from crosswind.metrics import formats

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKUP = re.compile(r"([\\`*_{}\[\]()<>#+!|~$&:-])")
_MENTION = re.compile(r"(?<!\w)@")
LIMIT = 500_000  # characters of Markdown; GitHub drops a summary above a mebibyte


def xml_text(text: str) -> str:
    """Text as XML 1.0 can hold it, and as a terminal may show it."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", terminal.safe(text))


def junit(outcome: Outcome) -> str:
    """The outcome as JUnit XML: a test case for each check; an inconclusive one is a skipped case."""
    failures = sum(f.verdict == "fail" for f in outcome.findings)
    skipped = sum(f.verdict == "inconclusive" for f in outcome.findings)
    stopped = outcome.verdict == "infrastructure"
    counts = {
        "tests": str(len(outcome.findings) + stopped),
        "failures": str(failures),
        "errors": str(int(stopped)),
        "skipped": str(skipped),
        "time": "0",
    }
    root = ET.Element("testsuites", {"name": "crosswind", **counts})
    suite = ET.SubElement(root, "testsuite", {"name": "crosswind gate", **counts})
    properties = ET.SubElement(suite, "properties")
    facts = {
        "agent": outcome.agent,
        "baseline": outcome.baseline or "",
        "verdict": outcome.verdict,
        "episodes": str(outcome.episodes),
        "errors": str(outcome.errors),
        "crosswind": __version__,
    }
    for name, value in facts.items():
        ET.SubElement(properties, "property", {"name": name, "value": xml_text(value)})
    if stopped:
        case = ET.SubElement(suite, "testcase", {"classname": "crosswind.gate", "name": "infrastructure", "time": "0"})
        error = ET.SubElement(case, "error", {"message": xml_text(outcome.says), "type": "infrastructure"})
        error.text = xml_text("\n".join(outcome.notes))
    for finding in outcome.findings:
        _case(suite, finding)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _case(suite: ET.Element, finding: RuleResult) -> None:
    name = xml_text(f"{finding.rule}: {finding.group}")
    case = ET.SubElement(suite, "testcase", {"classname": "crosswind.gate", "name": name, "time": "0"})
    says = xml_text(finding.says)
    if finding.verdict == "fail":
        failure = ET.SubElement(case, "failure", {"message": says, "type": "drop"})
        failure.text = xml_text("\n".join([finding.says, *_episodes(finding)]))
    elif finding.verdict == "inconclusive":
        ET.SubElement(case, "skipped", {"message": says})
    ET.SubElement(case, "system-out").text = says


def _episodes(finding: RuleResult) -> list[str]:
    """A line for each episode that broke."""
    return [f"{b.key}: {b.stage or '?'}, {b.cause or '?'}; said: {b.final}" for b in finding.broken]


# ---------------------------------------------------------------- Markdown


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
        formats.percent(d.after),
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
