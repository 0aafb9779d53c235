"""Requests that were to be refused."""

from __future__ import annotations

from crosswind.metrics.diagnosis.case import SCHEMA, Case
from crosswind.metrics.diagnosis.divergences import rejected, wrong_arguments
from crosswind.metrics.diagnosis.ending import out_of_steps
from crosswind.metrics.diagnosis.evidence import Divergence
from crosswind.metrics.diagnosis.writes import injected, repeated_write


def to_be_refused(case: Case) -> Divergence | None:
    made = [call for act in case.acts for call, _, _ in act.inner]
    short = [call for step in case.gold for call, _ in step.inner if call not in made]
    if short and case.record.ended != "budget":  # it did not come as far as to know
        for act in case.acts:
            other = next((c for c in act.worked if c.tool == short[0].tool and c not in case.direct), None)
            if other is not None and not case.is_aside(act, short[0]):
                return wrong_arguments(case, act, other, short[0])
    if case.extras:
        act, calls = case.extras[0]
        if found := injected(case, act) or repeated_write(case, act, calls):
            return found
        names = " and ".join(dict.fromkeys(call.tool for call in calls)) or "something"
        why = f"the request cannot be met, and {names} was left behind"
        return Divergence(act.n, "forced completion", "internalization", why)
    if case.record.ended == "budget":
        return out_of_steps(case)
    for act in case.acts if short else ():
        if act.code in SCHEMA and not any(a.n > act.n and a.worked for a in case.acts):
            return rejected(case, act, None)
    why = "the request cannot be met, and the final message says nothing of it"
    return Divergence(case.end, "missed refusal", "internalization", why)
