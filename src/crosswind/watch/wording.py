"""Alarms in words, for the terminal and the page."""

from __future__ import annotations

from typing import Any

from crosswind.core.registry import perturbations
from crosswind.episodes.suite import Asked, suite_with
from crosswind.metrics import formats
from crosswind.runs.command import asked_for, plugin_files
from crosswind.watch.alarms import Alarm

NAMES = {
    "tools_renamed": "tools renamed",
    "tools_added": "tools added",
    "tools_removed": "tools removed",
    "parameters_renamed": "parameters renamed",
    "parameters_added": "parameters added",
    "parameters_removed": "parameters removed",
    "parameters_changed": "parameters with another schema",
    "descriptions_changed": "descriptions changed",
    "descriptions_with_other_facts": "… that state other facts",
    "result_schemas_changed": "another schema of results",
    "errors_more_frequent": "errors more frequent, share of episodes",
    "tools_failing": "tools failing more often",
    "policy_sentences_added": "sentences added to the policy",
    "numbers_scaled": "numbers scaled by a factor",
}


def headline(alarm: Alarm) -> str:
    """What an alarm says in one line."""
    shift = alarm.shift
    where = f"since about episode {alarm.since}, seen in {alarm.channel} at {alarm.at}"
    if shift is None:
        return f"something changed {where}; no perturbation explains it"
    tools = f" on {', '.join(shift.tools[:4])}" + (", ..." if len(shift.tools) > 4 else "") if shift.tools else ""
    sure = formats.percent(shift.confidence)
    return f"{shift.kind}:{shift.severity}{tools} {where}; confidence {sure}, {alarm.evidence.get('impact', '')}"


def lines_of(alarm: Alarm) -> list[tuple[str, str]]:
    """What an alarm says in full, as names and texts."""
    out: list[tuple[str, str]] = []
    shift = alarm.shift
    if shift is not None:
        meaning = (perturbations[shift.kind].__doc__ or "").strip().partition("\n")[0]
        out.append(("meaning", meaning))
        out.append(("axis", shift.axis))
        if shift.keys:
            out.append(("keys", ", ".join(shift.keys)))
        if shift.alternatives:
            others = (f"{one.kind} {formats.percent(one.confidence)}" for one in shift.alternatives)
            out.append(("or else", ", ".join(others)))
        if suite := suite_with(shift.kind):
            out.append(("reproduce", asked_for(Asked(suite=suite, only=(shift.kind,)), "SPEC", plugins=plugin_files())))
    for name, value in dict(alarm.evidence.get("changes", {})).items():
        if name in NAMES:
            out.append((NAMES[name], _told(value)))
    for name, cost in dict(alarm.evidence.get("cost", {})).items():
        rise = f"{cost['before']:.2f} to {cost['after']:.2f} per episode"
        out.append((name, rise + ("" if cost["clear"] else " (may be chance)")))
    if alarm.predicted_loss is not None:
        out.append(("predicted loss", f"{formats.points(-alarm.predicted_loss)} points of success"))
    out.append(("episodes", ", ".join(alarm.episodes[:6]) + (" ..." if len(alarm.episodes) > 6 else "")))
    return out


def _told(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{key} -> {_told(one)}" for key, one in value.items())
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
