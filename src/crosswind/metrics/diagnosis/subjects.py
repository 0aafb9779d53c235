"""What a mistake was made with: the tool, the error it got, and the parameter, as they are called in the episode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crosswind.core.types import FINISH, SAY
from crosswind.metrics.diagnosis.case import SCHEMA, Case
from crosswind.metrics.diagnosis.evidence import Act, Divergence

LONGEST = 80  # characters of a name


def went_wrong_with(case: Case, found: Divergence) -> tuple[str, str, str]:
    """Tool, error code and parameter of a divergence; empty where there is none.

    At a step it is what was called there. In a final message it is what was left undone: the last call on the way that
    got an error and was not made good, or else the first call of the certified way that is missing.
    """
    act = case.acts[found.step - 1] if found.step <= len(case.acts) else case.open_error()
    if act is not None and act.call.tool not in (SAY, FINISH):
        return act.call.tool[:LONGEST], act.code[:LONGEST], _parameter(case, act)[:LONGEST]
    missing = next((call.tool for call in case.missing), "")
    shown = next(iter(sorted(name for name, spec in case.shown.items() if missing in spec.ids)), missing)
    return shown[:LONGEST], "", ""


def _parameter(case: Case, act: Act) -> str:
    """The first parameter that is not as it should be: one the tool does not have, one it needs, or another value."""
    takes, needs = _parameters(case.record.tools, act.call.tool)
    if act.code in SCHEMA:
        odd = [*(name for name in act.call.args if name not in takes), *(n for n in needs if n not in act.call.args)]
        if takes and odd:
            return odd[0]
    for step in case.gold:
        if step.call.tool == act.call.tool and set(step.call.args) == set(act.call.args):
            if other := [name for name, value in act.call.args.items() if step.call.args[name] != value]:
                return other[0] if len(other) == 1 else ""
            break
    return ""


def _parameters(tools: tuple[Mapping[str, Any], ...], name: str) -> tuple[list[str], list[str]]:
    """The parameters that a tool takes as first shown, and those it needs."""
    for tool in tools:
        function = tool["function"]
        if function["name"] == name:
            schema = function.get("parameters")
            held = schema if isinstance(schema, Mapping) else {}
            takes, needs = held.get("properties"), held.get("required")
            return list(takes) if isinstance(takes, Mapping) else [], list(needs) if isinstance(needs, list) else []
    return [], []
