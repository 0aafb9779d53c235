"""How episodes were played: the original study's metrics, and ours.

`measure` looks at one stored episode beside its gold, which is walked again unless it is given; `averaged` puts many
together.
The formulas, and the reasons for them, are in docs/statistics.md. No measure looks at the name of an agent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from crosswind.core.domain import Domain
from crosswind.core.oracle import Walk, Walks
from crosswind.core.perturbation import load_layers
from crosswind.core.registry import domains, perturbations
from crosswind.core.types import TALK, Model, Task, ToolCall, ToolSpec
from crosswind.episodes.brief import Brief, Told
from crosswind.episodes.play import step_data
from crosswind.episodes.record import Record, Usage, base_task

Steps = Sequence[Mapping[str, Any]]
Specs = Mapping[str, ToolSpec]


class Measures(Model):
    """What one episode shows in addition to its outcome."""

    calls: int  # of tools, without questions to the user
    gold_calls: int  # the same on the certified way
    questions: int
    errors: int  # calls answered by an error
    own_errors: int  # those that neither an obstacle nor the world forced on the agent
    exploration: float | None  # between 0 and 1; None where nothing was to be looked at
    refused: bool
    refuse: bool  # was that right?
    fault: bool  # a fault was met
    recovered: bool  # and the episode passed
    resumed: bool | None  # the call after the first fault was the certified one; None where the two cannot be compared
    collateral: int  # rows changed that no right end changes
    duplicates: int  # writes made again though the first one stood
    false_success: bool  # ended as if the request were met, and it was not
    wrong_answer: bool  # of these: the world is as it should be, the words are not


class Averages(Model):
    """Averages over some episodes. A rate is None where nothing could have counted towards it."""

    episodes: int
    accuracy: float | None  # of the episodes that could be solved
    tool_error_rate: float | None  # of calls
    own_error_rate: float | None  # of calls
    exploration: float | None
    chain_length: float | None  # calls per episode
    gold_chain_length: float | None
    questions: float | None  # per episode
    right_refusal_rate: float | None  # of the episodes to refuse: refused, and nothing done wrong
    false_refusal_rate: float | None  # of the episodes that could be solved
    faults: int  # episodes that met one
    recovery_rate: float | None  # of those: passed
    resumed_rate: float | None  # of those that can be compared: made the right call next
    collateral_writes: float | None  # per episode
    duplicate_writes: float | None
    false_success_rate: float | None
    wrong_answer_rate: float | None
    turns: float | None  # per episode, like all below
    input_tokens: float | None
    output_tokens: float | None
    seconds: float | None
    cost: float | None  # of the episodes with a price


# ---------------------------------------------------------------- gold, walked again


class Gold(NamedTuple):
    """The certified way of a stored episode."""

    task: Task  # as the layers leave it
    walk: Walk


def walk_gold(record: Record) -> Gold:
    """Walk the certified way of a stored episode; no law is checked again."""
    walks = Walks(domains[record.domain], base_task(record))
    for layer in load_layers(list(record.layers), record.key):
        walks.add(layer)
    return Gold(walks.shifted, walks.gold)


# ---------------------------------------------------------------- one episode


def measure(record: Record, known: Gold | None = None) -> Measures:
    """Look at one episode beside its gold, which is walked unless it is known."""
    domain = domains[record.domain]
    task, gold = known or walk_gold(record)
    specs = {tool: entry.spec for tool, entry in domain.world_class.entries.items()}
    golden = [step_data(step) for step in gold.steps]
    faults = [i for i, kind in enumerate(record.kinds) if perturbations[kind].rank == "fault"]
    forced = {_complaint(step) for step in golden if _is_error(step)}
    own = [
        step
        for step in _calls(record.steps)
        if _is_error(step) and _complaint(step) not in forced and not _is_injected(step, faults)
    ]
    met = [r.step for i, r in enumerate(record.receipts) if i in faults and r.fired and r.seen and r.step]
    firsts = [gold.session.first[i] for i in faults if i in gold.session.first]
    wrong = {check.name for check in record.checks if not check.passed}
    claimed = record.outcome == "fail" and record.ended == "answer" and bool(record.final.strip())
    return Measures(
        calls=len(_calls(record.steps)),
        gold_calls=len(_calls(golden)),
        questions=len(record.steps) - len(_calls(record.steps)),
        errors=sum(map(_is_error, _calls(record.steps))),
        own_errors=len(own),
        exploration=explored(record.steps, golden, specs, own),
        refused=record.ended == "refusal",
        refuse=record.refuse,
        fault=bool(met),
        recovered=bool(met) and record.passed,
        resumed=_resumed(record.steps, min(met), golden, min(firsts)) if met and firsts else None,
        collateral=_collateral(record, task, domain),
        duplicates=_duplicates(record.steps, specs),
        false_success=claimed,
        wrong_answer=claimed and wrong == {"answer"},
    )


def explored(steps: Steps, gold: Steps, specs: Specs, own: Steps = ()) -> float | None:
    """The active exploration score of one episode: min(1, looks / looks of the certified way) x looks / (looks + idle).

    Only what comes before the first lasting write counts. A look is a step that shows something not shown before; idle
    are steps that show the same again, beyond those that the certified way needs, and errors of the agent's own making.
    """
    looks, idle = _looks(steps, specs, own)
    wanted, needed = _looks(gold, specs, ())
    idle = max(0, idle - needed)
    if not looks and not idle:
        return 0.0 if wanted else None
    return min(1.0, looks / wanted if wanted else 1.0) * looks / (looks + idle)


def _looks(steps: Steps, specs: Specs, own: Steps) -> tuple[int, int]:
    shown: set[str] = set()
    looks = idle = 0
    for step in steps:
        if any(_is_write(inner, specs) for inner in step["inner"]):
            break
        call, result = step["call"], step["result"]
        what = _text([result] if call["tool"] in TALK else [call, result])
        if what in shown or any(step is one for one in own):
            idle += 1
        elif not _is_error(step):
            looks += 1
        shown.add(what)
    return looks, idle


def _resumed(steps: Steps, at: int, gold: Steps, gold_at: int) -> bool | None:
    """Did the agent go on after a fault as the certified way does? Steps are counted from 1."""
    hit, gold_hit = steps[at - 1], gold[gold_at - 1]
    if hit["call"]["tool"] != gold_hit["call"]["tool"]:
        return None
    after, gold_after = steps[at : at + 1], gold[gold_at : gold_at + 1]
    if not after or not gold_after:
        return not after and not gold_after
    call, gold_call = after[0]["call"], gold_after[0]["call"]
    repeats = call == hit["call"], gold_call == gold_hit["call"]
    return bool(call["tool"] == gold_call["tool"] and repeats[0] == repeats[1])


def _collateral(record: Record, task: Task, domain: Domain) -> int:
    world = domain.world(task)
    for step in record.steps:
        for inner in step["inner"]:
            world.call(ToolCall(inner["call"]["tool"], inner["call"]["args"]))
    changed = domain.normalise(world.state).keys()
    if not changed:
        return 0
    ends = [] if task.refuse else domain.family(task).ends(task, domain.state(task))
    return min((len(changed - domain.normal(task, end).keys()) for end in ends), default=len(changed))


def _duplicates(steps: Steps, specs: Specs) -> int:
    standing: list[tuple[str, Any]] = []  # writes, each with the call that would take it back
    count = 0
    for step in steps:
        for inner in step["inner"]:
            call, spec = inner["call"], specs.get(inner["call"]["tool"])
            if spec is None or _is_error(inner):
                continue
            standing = [one for one in standing if one[1] != call]
            if _is_write(inner, specs):
                made = _text(call)
                count += any(one[0] == made for one in standing)
                content, back = inner["result"].get("content"), None
                if spec.undo and isinstance(content, dict):
                    back = {"tool": spec.undo[0], "args": {spec.undo[1]: content.get(spec.undo[1])}}
                standing.append((made, back))
    return count


def _calls(steps: Steps) -> list[Mapping[str, Any]]:
    return [step for step in steps if step["call"]["tool"] not in TALK]


def _is_error(step: Mapping[str, Any]) -> bool:
    return "error" in step["result"]


def _is_injected(step: Mapping[str, Any], faults: Sequence[int]) -> bool:
    """Is an error the work of an obstacle: a fault, or a tool that never works here?"""
    blocked = any(inner["result"].get("error", {}).get("code") == "unavailable" for inner in step["inner"])
    return bool(step["result"]["error"]["retryable"]) or blocked or any(i in faults for i in step["fired"])


def _is_write(inner: Mapping[str, Any], specs: Specs) -> bool:
    """Did a world-side call write something that lasts?"""
    spec = specs.get(inner["call"]["tool"])
    return spec is not None and spec.writes and spec.lasting and not _is_error(inner)


def _complaint(step: Mapping[str, Any]) -> tuple[str, str]:
    return str(step["call"]["tool"]), str(step["result"]["error"]["code"])


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


# ---------------------------------------------------------------- many


def averaged(records: Iterable[Told], measures: Mapping[str, Measures] | None = None) -> Averages:
    """Averages over episodes; those that ended as errors of the infrastructure are passed over.

    `measures` are those already taken, by the records' keys. A brief cannot be measured: where it has none it counts
    towards what needs none.
    """
    played = [record for record in records if record.judged]
    known = measures or {}
    found = (known.get(r.key) or (measure(r) if isinstance(r, Record) else None) for r in played)
    taken = [one for one in found if one is not None]
    calls = sum(m.calls for m in taken)
    hit = [m for m in taken if m.fault]

    def per_episode(value: Callable[[Measures], float]) -> float | None:
        return _mean([value(m) for m in taken])

    return Averages(
        episodes=len(played),
        accuracy=_mean([r.passed for r in played if not r.refuse]),
        tool_error_rate=sum(m.errors for m in taken) / calls if calls else None,
        own_error_rate=sum(m.own_errors for m in taken) / calls if calls else None,
        exploration=_mean([m.exploration for m in taken if m.exploration is not None]),
        chain_length=per_episode(lambda m: m.calls),
        gold_chain_length=per_episode(lambda m: m.gold_calls),
        questions=per_episode(lambda m: m.questions),
        right_refusal_rate=_mean([r.passed for r in played if r.refuse]),
        false_refusal_rate=_mean([m.refused for m in taken if not m.refuse]),
        faults=len(hit),
        recovery_rate=_mean([m.recovered for m in hit]),
        resumed_rate=_mean([m.resumed for m in hit if m.resumed is not None]),
        collateral_writes=per_episode(lambda m: m.collateral),
        duplicate_writes=per_episode(lambda m: m.duplicates),
        false_success_rate=per_episode(lambda m: m.false_success),
        wrong_answer_rate=per_episode(lambda m: m.wrong_answer),
        turns=_mean([turns(r) for r in played]),
        input_tokens=_mean([n for r in played if (n := spent(r).input_tokens) is not None]),
        output_tokens=_mean([n for r in played if (n := spent(r).output_tokens) is not None]),
        seconds=_mean([spent(r).seconds for r in played]),
        cost=_mean([cost for r in played if (cost := spent(r).cost) is not None]),
    )


def spent(record: Told) -> Usage | Brief:
    """What has the fields of an episode's usage: briefs have them themselves, and of many none is made."""
    return record if isinstance(record, Brief) else record.usage


def turns(record: Told) -> int:
    """Turns of the agent: its requests to a model, or where none were counted its steps and its final message."""
    return spent(record).requests or record.length + (record.ended != "budget")


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
