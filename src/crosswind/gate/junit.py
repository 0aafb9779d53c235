"""The gate as JUnit XML, for CI systems.

Names and words from models and tools are hostile here as everywhere: what XML cannot hold is replaced.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from crosswind.base import terminal
from crosswind.base.version import __version__
from crosswind.gate.gate import Outcome, RuleResult

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


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
