"""The final message, or the lack of one."""

from __future__ import annotations

from crosswind.core import skin
from crosswind.metrics.diagnosis.case import SCHEMA, Case
from crosswind.metrics.diagnosis.divergences import misread, rejected, stopped
from crosswind.metrics.diagnosis.evidence import Divergence, alike
from crosswind.text import answers, values

MANY = 3  # calls in a row with nothing new in them are a loop


def ending(case: Case) -> Divergence | None:
    """Everything was done that had to be, and nothing else: the final message is at fault."""
    record = case.record
    if record.ended == "budget":
        return out_of_steps(case)
    used = {step.call.tool for step in case.gold}
    for act in case.acts:
        if act.code in SCHEMA and act.call.tool in used and not case.repeated(act):
            return rejected(case, act, None)
    if case.refused or not record.final.strip():
        return stopped(case, "everything was done, and it refused")
    start = case.domain.state(case.task)
    if case.lawless is not None:
        free = case.family.answer(case.wanted.briefed(rules={}), start, start)
        if free and answers.states(skin.plain(case.task, record.final), free, given=record.query):
            why = "the final message says what would be right without the rules that the policy has here"
            return Divergence(case.end, "misread result", "reasoning", why)
    claims = case.claims()
    if (error := case.open_error()) is not None:
        why = f"{error.call.tool} failed with {error.code!r}, and the final message says nothing of it"
        return Divergence(error.n, "ignored error", "interaction", why)
    if not claims and not case.named():
        return Divergence(
            case.end, "false success", "internalization", "the final message states nothing that was asked"
        )
    said = case.certificate.gold.final
    gold = [*values.ids(said), *values.numbers(said)]
    seen = [v for v in gold if "results" in case.sources(v, case.end)]
    unseen = [v for v in claims if not case.sources(v, case.end)]
    if unseen and seen and len(seen) == len(gold) and not any(alike(unseen[0], v) for v in seen):
        why = f"the final message says {unseen[0]!r}, which stands in no result"
        return Divergence(case.end, "fabricated value", "interaction", why)
    return misread(case, case.end, "the final message", case.certificate.gold.final)


def out_of_steps(case: Case) -> Divergence:
    """The steps are used up."""
    turns = 0
    for act in reversed(case.acts):
        if not any(a.call == act.call for a in case.acts[: act.n - 1]):
            break
        turns += 1
    if turns >= max(MANY, 1 + len(case.acts) // 3):
        first = case.acts[len(case.acts) - turns]
        return Divergence(
            first.n, "blind repetition", "interaction", f"the last {turns} calls had all been made before"
        )
    return Divergence(case.end, "ran out of steps", "reasoning", f"after {len(case.acts)} steps it was not done")
