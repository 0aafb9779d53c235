"""What was wrong with one call, one value, or the point at which the agent stopped."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

from crosswind.core import entity_names
from crosswind.core.types import ASK, TALK, ToolCall, ToolSpec
from crosswind.core.world import bad_arguments
from crosswind.metrics.diagnosis.case import SCHEMA, Case
from crosswind.metrics.diagnosis.evidence import Act, Divergence, alike, leaves


def rejected(case: Case, act: Act, call: ToolCall | None) -> Divergence:
    """A call that the interface shown does not take."""
    name = act.call.tool
    spec = case.shown.get(name)
    if act.code == "unknown_tool":
        if name in case.canonical:
            why = f"{name} is the usual name of a tool and is not shown here"
            return Divergence(act.n, "memorised interface", "understanding", why)
        return Divergence(act.n, "wrong tool", "understanding", f"no tool {name!r} ever existed")
    meaning = next((case.canonical[i].spec for i in sorted(spec.ids) if i in case.canonical), None) if spec else None
    aims = {c.tool for c in case.direct} if case.missing else set()
    if call is not None and spec is not None and not spec.ids & aims and not case.gold_uses(name):
        return wrong_tool(case, act, call)
    if meaning is not None and bad_arguments(meaning.params, act.call.args) is None:
        if call is not None and (first := case.prerequisite(act, call)):
            why = f"{name} was called before {first}, which returns what {name} needs here"
            return Divergence(act.n, "wrong order", "planning", why)
        why = f"{name} takes these arguments in the clean interface, but not in the one shown"
        return Divergence(act.n, "memorised interface", "understanding", why)
    if call is not None and spec is not None and (found := off_list(case, act, spec, call)):
        return found
    return Divergence(act.n, "malformed call", "understanding", f"{name}: {act.text}")


def off_list(case: Case, act: Act, spec: ToolSpec, call: ToolCall) -> Divergence | None:
    """A call whose form is right, and one of whose values is none of those that may be chosen from."""
    free = {key: replace(param, enum=()) for key, param in spec.params.items()}
    meant = next((step.call for step in case.ways_to(call) if step.call.tool == act.call.tool), None)
    if meant is None or bad_arguments(free, act.call.args) is not None:
        return None
    for key, value in act.call.args.items():
        if spec.params[key].enum and value not in spec.params[key].enum and key in meant.args:
            return wrong_value(case, act, key, value, meant.args[key], None)
    return None


def wrong_tool(case: Case, act: Act, call: ToolCall | None) -> Divergence:
    """A tool that does something else."""
    name = act.call.tool
    right = sorted({s.call.tool for s in case.ways_to(call)}) if call is not None else []
    told = next((n for n in right if n in case.record.policy), None)
    stage = "planning" if told and told not in case.domain.policy else "understanding"
    why = f"{name} was called" + (f" instead of {right[0]}" if right else ", although nothing asked for it")
    return Divergence(act.n, "wrong tool", stage, why)


def wrong_arguments(case: Case, act: Act, made: ToolCall, meant: ToolCall) -> Divergence | None:
    """A call with other arguments than it should have."""
    if found := unasked(case, act):
        return found
    for key, right in meant.args.items():
        if (used := made.args.get(key)) != right and case.is_ruled_out(used):
            why = f"{act.call.tool}({key}={used!r}) goes by the request, where the policy puts {right!r} in its place"
            return Divergence(act.n, "wrong argument", "planning", why)
    if case.lawless is not None and any(made == c for s in case.lawless.steps for c, _ in s.inner):
        why = f"the {made.tool} call ignores a rule in this policy"
        return Divergence(act.n, "misread result", "planning", why)
    if found := exchanged(case, act, made, meant):
        return found
    for key, right in meant.args.items():
        if made.args.get(key) != right:
            return wrong_value(case, act, key, made.args.get(key), right, meant)
    return None


def exchanged(case: Case, act: Act, made: ToolCall, meant: ToolCall) -> Divergence | None:
    """Two values of a call in each other's place, wherever they come from."""
    keys = [key for key, right in meant.args.items() if made.args.get(key) != right]
    for one, other in itertools.combinations(keys, 2):
        if made.args.get(one) == meant.args[other] and made.args.get(other) == meant.args[one]:
            known = case.sources(meant.args[one], act.n) - {"tools"}
            why = f"{act.call.tool} has {one}={made.args[one]!r} and {other}={made.args[other]!r}, which are swapped"
            return Divergence(act.n, "wrong argument", case.channel(known), why)
    return None


def unasked(case: Case, act: Act) -> Divergence | None:
    """Did the agent act on a detail that the user had to be asked for, without asking?"""
    asked = [str(step.result.content) for step in case.gold if step.call.tool == ASK]
    told = [a.text for a in case.acts[: act.n - 1] if a.call.tool in TALK]
    for key, value in case.task.withheld.items():
        if any(case.shows(value, text) for text in asked) and not any(case.shows(value, text) for text in told):
            guesses = [
                v for v in case.family.details[key].read(entity_names.plain(case.task, case.record.query)) if v != value
            ]
            if any(v in c.args.values() for v in guesses for c, _, _ in act.inner):
                why = f"the request leaves {key} open, and the agent did not ask the user which one is meant"
                return Divergence(act.n, "wrong argument", "understanding", why)
            why = f"{act.call.tool} was called with a {key} that the agent never asked the user for"
            return Divergence(act.n, "fabricated value", "understanding", why)
    return None


def wrong_value(case: Case, act: Act, key: str, wrong: Any, right: Any, meant: ToolCall | None) -> Divergence | None:
    """Where a wrong value came from, and where the right one stood."""
    name = f"{act.call.tool}({key}={wrong!r})"
    if isinstance(wrong, (dict, list)) and not isinstance(right, (dict, list)):
        return Divergence(act.n, "malformed call", "understanding", f"{name} is not a plain value")
    of_wrong, of_right = case.sources(wrong, act.n), case.sources(right, act.n)
    known = of_right - {"tools"}
    slip = [v for v in case.task.given if not known and not of_wrong and alike(wrong, v)]
    if slip:
        why = f"{name} looks like {slip[0]!r}"
        return Divergence(act.n, "wrong argument", "understanding", why)
    if (
        not known
        and "request" in of_wrong
        and (late := next((a.n for a in case.acts if a.n >= act.n and case.voiced(right, a)), None))
    ):
        if case.refused and all(a.call.tool in TALK for a in case.acts[late:]):
            return stopped(case, f"it refused before it took up {right!r}")
        why = f"{name} was not corrected after the user asked for {right!r}"
        return Divergence(late, "wrong argument", "feedback", why)
    if not of_wrong - {"tools"} and not (of_wrong and known):
        if known and alike(wrong, right):
            why = f"{name} should have been {right!r}"
            return Divergence(act.n, "wrong argument", case.channel(known), why)
        why = f"{name} appears nowhere that the agent could see"
        asked = any(s.call.tool == ASK and case.stands(right, str(s.result.content)) for s in case.gold)
        stage = case.channel(known) if known else ("understanding" if asked else "planning")
        return Divergence(act.n, "fabricated value", stage, why)
    if meant is not None and case.compared(wrong, right, act.n):
        why = f"{name} was used, although what the agent had read points to {right!r}"
        return Divergence(act.n, "misread result", "feedback", why)
    if "request" in known or "policy" in known:
        return Divergence(act.n, "wrong argument", case.channel(known), f"{name} should have been {right!r}")
    if "results" in of_wrong:
        return misread(case, act.n, name, right)
    if "results" in known and case.is_ruled_out(wrong):
        why = f"{name} was copied from the request, although the records say {right!r}"
        return Divergence(act.n, "wrong argument", "planning", why)
    if not known and not any(s.call.tool == ASK for s in case.gold):
        why = f"{name} should have been {right!r}, which nothing shows where it had to come from"
        return Divergence(act.n, "undetermined", "undetermined", why)
    stage = case.channel(known) if known else "understanding"
    return Divergence(act.n, "wrong argument", stage, f"{name} should have been {right!r}")


def misread(case: Case, before: int, name: str, right: Any) -> Divergence:
    """A value taken from results wrongly: from the wrong source, from a part of the whole, or at random."""
    for act in case.acts[: before - 1]:
        truth = [v for _, ok, content in act.inner if ok for v in leaves(content)]
        if act.error or not truth or case.truthful(truth, act.inner):
            continue
        used = {step.call.tool for step in case.gold if [c for c, _ in step.inner] == [c for c, _, _ in act.inner]}
        made = [c for c, _, _ in act.inner]
        honest = {s.call.tool for s in case.gold if [c for c, _ in s.inner] == made and case._tells(truth, [s])}
        if act.call.tool not in (honest or used):
            call = made[0]
            told = next((n for n in sorted(honest) if n in case.record.policy), None)
            stage = "planning" if told else "understanding"
            return Divergence(act.n, "wrong tool", stage, f"{act.call.tool} does not tell what {call.tool} tells")
        why = f"{name} was taken from a result of {act.call.tool} that was outdated or incomplete"
        return Divergence(act.n, "misread result", "feedback", why)
    said = f"{name}, where the results give {right!r}"
    if before == case.end:
        said = f"{name} does not say what the results show: {right!r}"
    return Divergence(before, "misread result", "feedback", said)


def stopped(case: Case, why: str) -> Divergence:
    """It refused what can be done, or fell silent: at what?"""
    acts = [act for act in case.acts if act.call.tool not in TALK]
    last = acts[-1] if acts else None
    if last is not None and last.code in SCHEMA:
        return rejected(case, last, case.missing[0] if case.missing else None)
    if (error := case.open_error()) is not None:
        stop = f"{error.call.tool} failed with {error.code!r}, and the agent did nothing about it"
        return Divergence(error.n, "gave up", "feedback", stop)
    last = next((act for act in reversed(acts) if case.is_on_the_way(act)), last)
    if last is not None and last.worked and (found := unasked(case, last)):
        return found
    if case.acts and (words := [act for act in case.acts[last.n - 1 if last else 0 :] if act.heard]):
        return Divergence(
            words[-1].n, "gave up", "feedback", "the user changed the request, and the agent stopped there"
        )
    if (there := case.denied()) is not None:
        why = f"the agent refused because there is no {there}, although a result it read has one"
        return Divergence(case.end, "misread result", "feedback", why)
    if last is not None and len(last.worked) == 1 and not case.is_usual(last):
        stop = f"{last.call.tool} answered in an unusual format, and the agent stopped there"
        return Divergence(last.n, "gave up", "feedback", stop)
    if last is not None and case.halfway(last):
        stop = f"{last.call.tool} needs another step to take effect, and the agent stopped there"
        return Divergence(last.n, "gave up", "feedback", stop)
    if not case.record.final.strip():
        return Divergence(case.end, "gave up", "feedback", "it stopped without a word")
    return Divergence(case.end, "over-refusal", "self-assessment", why)
