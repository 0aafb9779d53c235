"""Calls that the world had to see and never saw."""

from __future__ import annotations

from collections.abc import Sequence

from crosswind.core.types import ToolCall
from crosswind.metrics.diagnosis.case import SCHEMA, Case
from crosswind.metrics.diagnosis.divergences import rejected, stopped, unasked, wrong_arguments, wrong_tool, wrong_value
from crosswind.metrics.diagnosis.ending import out_of_steps
from crosswind.metrics.diagnosis.evidence import Act, Divergence, leaves


def never_made(case: Case) -> Divergence | None:
    if not case.missing:
        return None
    call = case.missing[0]
    attempts = case.attempts(call)
    if case.refused and attempts and case.is_aside(attempts[0], call) and not unasked(case, attempts[0]):
        attempts = []  # an aside
    if case.record.ended == "budget":
        ways = case.ways_to(call)
        attempts = [a for a in attempts if a.error and (a.code in SCHEMA or case.is_exact(a, call, ways))]
        return attempted(case, call, attempts) if attempts else out_of_steps(case)
    if attempts:
        return attempted(case, call, attempts)
    return skipped(case, call)


def attempted(case: Case, call: ToolCall, attempts: Sequence[Act]) -> Divergence | None:
    """Why an attempt at a call came to nothing."""
    failed = [a for a in attempts if a.error]
    act = next((a for a in failed if a.error and not a.error.get("retryable")), (*failed, attempts[0])[0])
    ways = case.ways_to(call)
    exact = case.is_exact(act, call, ways)
    tool = next((c for c, _, _ in act.inner if c.tool == call.tool), None)
    if tool is not None and tool != call:
        return wrong_arguments(case, act, tool, call)
    if act.code in SCHEMA and not exact:
        return rejected(case, act, call)
    if exact:
        before = case.direct[: case.direct.index(call)]
        late = [c for c in before if (case.first_done(c) or case.end) > act.n]
        if act.error and late and not act.error.get("retryable"):
            made_up = [v for v in leaves(dict(act.call.args)) if not case.sources(v, act.n)]
            if made_up and case.first_done(late[0]) is None:
                why = f"{made_up[0]!r} stands nowhere that the agent could see: {late[0].tool} was never called"
                return Divergence(act.n, "fabricated value", "reasoning", why)
            why = f"{act.call.tool} was called before {late[0].tool}, on which it depends"
            return Divergence(act.n, "wrong order", "reasoning", why)
        return response(case, act, call)
    meant = next((step for step in ways if step.call.tool == act.call.tool), None)
    if meant is not None:
        for key in sorted(set(act.call.args) & set(meant.call.args)):
            if act.call.args[key] != meant.call.args[key]:
                return wrong_value(case, act, key, act.call.args[key], meant.call.args[key], None)
        return response(case, act, call)
    return wrong_tool(case, act, call)


def response(case: Case, act: Act, call: ToolCall) -> Divergence:
    """The call was right, and what came back was not what was wanted: what did the agent make of it?"""
    name = act.call.tool
    if act.error is None:
        if case.refused and act.n == len(case.acts):
            return stopped(case, f"it refused after {name}, with nothing in its way")
        why = f"{name} answered without doing it, and that was taken for done"
        return Divergence(act.n, "misread result", "interaction", why)
    later = case.acts[act.n :]
    again = [a for a in later if a.call == act.call]
    if len(again) >= 2 and all(a.error for a in again) and not act.error.get("retryable"):
        why = f"{name} failed with {act.code!r} and was repeated {len(again)} times as it was"
        return Divergence(act.n, "blind repetition", "interaction", why)
    last = again[-1].n if again else act.n
    ahead = [(c, case.ways_to(c)) for c in case.missing if c != call]
    went_on = any(case.is_exact(a, c, ways) for a in case.acts[last:] for c, ways in ahead)
    if case.record.ended == "budget":
        return out_of_steps(case)
    if (case.refused or not case.record.final.strip()) and not went_on:
        return Divergence(last, "gave up", "interaction", f"{name} failed with {act.code!r}, and that was the end")
    return Divergence(act.n, "ignored error", "interaction", f"{name} failed with {act.code!r}, and it went on")


def skipped(case: Case, call: ToolCall) -> Divergence | None:
    after = case.missing[1:]
    for later in after:
        for act in case.attempts(later):
            if not act.error and not act.inner:
                continue
            made = next((c for c, _, _ in act.inner if c.tool == later.tool), None)
            if made is not None and made != later:
                return wrong_arguments(case, act, made, later)
            if act.error:
                return attempted(case, later, [act])
    if case.refused or not case.record.final.strip():
        return stopped(case, f"it refused before {call.tool}, with nothing in its way")
    lost = next((a for a in case.acts if a.error and (a is case.acts[-1] or not case.recovered(a))), None)
    lost = lost or case.open_error()
    if lost is not None:
        why = f"{lost.call.tool} failed with {lost.code!r}, and it went on"
        if lost.code in SCHEMA:
            return rejected(case, lost, None)
        return Divergence(lost.n, "ignored error", "interaction", why)
    if any(case.writes(c.tool) for c in case.missing):
        what = next(c for c in case.missing if case.writes(c.tool))
        why = f"the final message reports success, and {what.tool} was never called"
        return Divergence(case.end, "false success", "internalization", why)
    claims = [v for v in case.claims() if "request" not in case.sources(v, case.end)]
    if claims and all(case.composed(v) for v in claims):
        why = f"the final message says {claims[0]!r}, which was read, without {call.tool}, which is to be called too"
        return Divergence(case.end, "misread result", "interaction", why)
    if told := [*(v for v in claims if not case.composed(v)), *case.claims(), *case.named()]:
        why = f"the final message says {told[0]!r}, and {call.tool}, which would tell, was not called for it"
        return Divergence(case.end, "fabricated value", "reasoning", why)
    why = f"the final message reports success, and {call.tool} was never called"
    return Divergence(case.end, "false success", "internalization", why)
