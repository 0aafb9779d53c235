"""A finished episode as one line of JSON (the manifest of a run is in `runs/manifest.py`).

Everything that is reported later (metrics, diagnoses, pages) is computed from these lines and from the certificate,
which is drawn again from the task and its layers.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator

from crosswind.base.errors import BadFile
from crosswind.core import entity_names
from crosswind.core.certify import Certificate, certify
from crosswind.core.domain import SIZE, Domain
from crosswind.core.draw import Drawn
from crosswind.core.finish import FINISH_SPEC
from crosswind.core.memory import shown
from crosswind.core.perturbation import load_layers
from crosswind.core.registry import domains, perturbations
from crosswind.core.types import (
    SPLITS,
    Axis,
    Check,
    Ended,
    Ending,
    Finish,
    Model,
    Receipt,
    Split,
    Task,
    Tier,
    Trajectory,
    Verdict,
)
from crosswind.episodes.career import recalled
from crosswind.episodes.schedule import Episode, StreamMark, pair_of
from crosswind.episodes.stream import noticed

SCHEMA = 1
FORMER_STAGES = {  # they had the names of tiers
    "perception": "understanding",
    "interaction": "feedback",
    "reasoning": "planning",
    "internalization": "self-assessment",
}
Stage = Annotated[str, BeforeValidator(lambda name: FORMER_STAGES.get(name, name))]  # of `metrics.diagnosis.STAGES`
Outcome = Literal["pass", "fail", "error", "unjudged"]  # unjudged: a session without a task; counts nowhere


class Mistake(Model):
    """What a failed episode went wrong with first: where, and with which tool, error and key of this episode."""

    step: int  # from 1; one more than there are steps where the final message is what went wrong
    tool: str = ""  # as the agent called it; where it never called one, the tool of the call that is missing
    error: str = ""  # code of the error that the call got
    key: str = ""  # parameter that the tool does not take, lacks, or got with another value
    why: str = ""  # in words


class Usage(Model):
    """What an episode cost."""

    input_tokens: int | None = 0  # None: unknown, as for agents that do not report theirs
    output_tokens: int | None = 0
    requests: int = 0  # turns of the model
    retries: int = 0  # of requests that the provider failed
    seconds: float = 0.0
    cost: float | None = None  # in the currency of the price list; None where no price is known
    input_charged: int | None = None  # where tokens are unknown: those reported, and an estimate of the others by text
    output_charged: int | None = None  # the same; budgets count these, and the cost is theirs
    currency: str = ""  # of the cost; empty where it is not known

    def plus(self, other: Usage) -> Usage:
        cost = None if self.cost is None and other.cost is None else (self.cost or 0) + (other.cost or 0)
        read, said = _sum(self.input_tokens, other.input_tokens), _sum(self.output_tokens, other.output_tokens)
        charged = [one + two for one, two in zip(self.charged, other.charged, strict=True)]
        return Usage(
            input_tokens=read,
            output_tokens=said,
            input_charged=(charged[0] or None) if read is None else None,
            output_charged=(charged[1] or None) if said is None else None,
            requests=self.requests + other.requests,
            retries=self.retries + other.retries,
            seconds=self.seconds + other.seconds,
            cost=cost,
            currency=self.currency or other.currency,
        )

    @property
    def tokens(self) -> int | None:
        """Tokens in and out; None where they are unknown."""
        return _sum(self.input_tokens, self.output_tokens)

    @property
    def charged(self) -> tuple[int, int]:
        """Tokens in and out as budgets count them: estimated where they are unknown."""
        read = self.input_charged if self.input_tokens is None else self.input_tokens
        said = self.output_charged if self.output_tokens is None else self.output_tokens
        return read or 0, said or 0

    @property
    def about(self) -> str:
        """The word before a cost that holds an estimate."""
        return "about " if self.tokens is None else ""

    @property
    def in_words(self) -> str:
        """The tokens, and the cost where it is known."""
        tokens = "tokens unknown" if self.tokens is None else f"{self.tokens:,} tokens"
        if self.tokens is None and any(self.charged):
            tokens += f" (budgets count about {sum(self.charged):,})"
        return tokens + (f", cost {self.about}{self.cost:.4g} {self.currency}".rstrip() if self.cost else "")


def _sum(one: int | None, other: int | None) -> int | None:
    """A sum with an unknown part is unknown."""
    return None if one is None or other is None else one + other


UNKNOWN = Usage(input_tokens=None, output_tokens=None)  # of an agent that reports no tokens


# A line may have been written by hand. What its readers rely on is checked once, when it is read.


def _named_kinds(layers: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
    for nth, layer in enumerate(layers):
        if not isinstance(layer.get("kind"), str):
            raise ValueError(f"layer {nth} has no kind; expected the name of a perturbation")
    return layers


def _named_tools(tools: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
    for nth, tool in enumerate(tools):
        function = tool.get("function")
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise ValueError(f"tool {nth} has no name; expected a function with a name, as chat APIs take it")
    return tools


def _whole_steps(steps: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
    for nth, step in enumerate(steps, 1):
        inner, fired, heard = step.get("inner"), step.get("fired"), step.get("heard")
        if not _is_call(step):
            raise ValueError(f"step {nth} has no call with its tool and arguments, or no result with content or error")
        if not isinstance(inner, list) or not all(isinstance(each, dict) and _is_call(each) for each in inner):
            raise ValueError(f"step {nth}: expected a list of calls with their results as `inner`")
        if not isinstance(fired, list) or not all(type(each) is int for each in fired):
            raise ValueError(f"step {nth}: expected a list of the numbers of layers as `fired`")
        if not isinstance(heard, list) or not all(isinstance(each, str) for each in heard):
            raise ValueError(f"step {nth}: expected a list of texts as `heard`")
    return steps


def _is_call(step: dict[str, Any]) -> bool:
    """Has it a call and a result, in the shape of `step_data`?"""
    call, result = step.get("call"), step.get("result")
    if not isinstance(call, dict) or not isinstance(call.get("tool"), str) or "args" not in call:
        return False
    if not isinstance(result, dict) or ("error" in result) == ("content" in result):
        return False
    if "content" in result:
        return True
    error = result["error"]
    if not isinstance(error, dict) or not {"code", "text"} <= error.keys() <= {"code", "text", "retryable"}:
        return False
    return isinstance(error["code"], str) and isinstance(error["text"], str)


class Played:
    """What a record and its brief tell alike, of their outcome and their kinds."""

    __slots__ = ()
    if TYPE_CHECKING:

        @property
        def outcome(self) -> Outcome: ...
        @property
        def kinds(self) -> tuple[str, ...]: ...

    @property
    def passed(self) -> bool:
        return self.outcome == "pass"

    @property
    def judged(self) -> bool:
        """Has it a verdict? Errors of the infrastructure have none, nor have sessions without a task."""
        return self.outcome in ("pass", "fail")

    @property
    def clean(self) -> bool:
        return not self.kinds

    @property
    def tier(self) -> Tier | None:
        """Of a single kind."""
        return perturbations[self.kinds[0]].tier if len(self.kinds) == 1 else None

    @property
    def axis(self) -> Axis | None:
        return perturbations[self.kinds[0]].axis if len(self.kinds) == 1 else None


class Record(Played, Model):
    """One finished episode, as a line of `episodes.jsonl`."""

    schema_version: int = SCHEMA
    key: str  # identifies the episode in its run: task, condition and trial
    pair: str  # shared by the clean and the shifted episodes of one task and trial
    task_id: str
    domain: str
    family: str
    level: int
    seed: int  # of the draw
    trial: int
    condition: str  # "clean", a kind, or another name that the suite has
    severity: int | None  # of a condition with one severity
    layers: Annotated[tuple[dict[str, Any], ...], AfterValidator(_named_kinds)]
    agent: str
    outcome: Outcome
    ended: Ended
    refuse: bool  # was refusing right?
    query: str  # as the user said it
    policy: str
    tools: Annotated[tuple[dict[str, Any], ...], AfterValidator(_named_tools)]  # as first shown
    steps: Annotated[tuple[dict[str, Any], ...], AfterValidator(_whole_steps)]
    final: str
    finish: Finish | None = None  # the typed ending; None where the agent ended in words
    why: str = ""  # of an error or an exception, which has its traceback from the second line on
    receipts: tuple[Receipt, ...] = ()
    checks: tuple[Check, ...] = ()
    judge: str = ""  # version of the verifier
    gold_steps: int = 0
    budget: int = 0
    stage: Stage | None = None  # where a failed episode broke,
    cause: str | None = None  # and how
    mistake: Mistake | None = None  # with what
    usage: Usage = Usage()
    mark: StreamMark | None = None  # of an episode in a stream

    def __repr__(self) -> str:
        how = f", {self.cause}" if self.cause else ""
        return f"<Record {self.key}: {self.outcome}{how}, {len(self.steps)} steps>"

    def __str__(self) -> str:
        return repr(self)

    @property
    def ending(self) -> Ending:
        """How the agent was to end it: by the tool, if that was shown."""
        shown = [tool.get("function", {}) for tool in self.tools]
        return "finish" if FINISH_SPEC.function()["function"] in shown else "words"

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(str(layer["kind"]) for layer in self.layers)

    @property
    def length(self) -> int:
        """How many steps it took."""
        return len(self.steps)

    @property
    def draw(self) -> str:
        """Which draw of its layers this is: equal for equal layers."""
        return draw_of(self.layers)

    @property
    def exposed(self) -> bool:
        """Every obstacle fired and was seen."""
        return all(r.fired and r.seen for r in self.receipts)


def draw_of(layers: Sequence[dict[str, Any]]) -> str:
    """A short name for layers as JSON."""
    if not layers:
        return ""
    return hashlib.blake2b(json.dumps(layers, sort_keys=True).encode(), digest_size=6).hexdigest()


_PLAYED = tuple(Trajectory.model_fields.keys() - {"task", "schema_version"})  # what a record takes over as it is


def _placed(episode: Episode, task: Task) -> dict[str, Any]:
    """Which episode of a run a record is of."""
    return {
        "key": episode.key,
        "pair": pair_of(episode.task_id, episode.trial),
        "task_id": episode.task_id,
        "domain": task.domain,
        "family": task.family,
        "level": episode.drawn.domain.family(task).level,
        "trial": episode.trial,
        "condition": episode.condition,
    }


def recorded(episode: Episode, trajectory: Trajectory, verdict: Verdict, *, seed: int, usage: Usage) -> Record:
    """A played and judged episode as a line."""
    task = trajectory.task
    return Record(
        **_placed(episode, task),
        seed=seed,
        severity=episode.severity,
        outcome=verdict.outcome,
        refuse=task.refuse,
        query=entity_names.shown(task, task.brief.query),
        checks=verdict.checks,
        judge=verdict.judge,
        usage=usage,
        mark=episode.mark,
        **{name: getattr(trajectory, name) for name in _PLAYED},
    )


def forfeited(episode: Episode, agent: str, seed: int) -> Record:
    """An episode of a career that cannot be played, because of what this agent did before. It counts apart."""
    drawn, career = episode.drawn, episode.mark.career if episode.mark else None
    task = drawn.certificate.task
    return Record(
        **_placed(episode, task),
        seed=seed,
        severity=None,
        layers=(),
        agent=agent,
        outcome="unjudged",
        ended="closed",
        refuse=task.refuse,
        query=task.brief.query,
        policy=task.brief.policy,
        tools=(),
        steps=(),
        final="",
        why=f"forfeited: {career.forfeited if career else ''}",
        mark=episode.mark,
    )


# ---------------------------------------------------------------- back from the record


def base_task(record: Record) -> Task:
    """The task before any layer, drawn again from its id; of a career the complete one."""
    if record.mark is not None and record.mark.career is not None:
        return record.mark.career.task
    return task_of(domains[record.domain], record.task_id)


_WHOLE = re.compile(r"[0-9]{1,18}")


@lru_cache(maxsize=512)
def task_of(domain: Domain, task_id: str) -> Task:
    """The clean and the shifted episodes of a task share it, so that recent ones are kept."""
    parts = task_id.split("/")
    if len(parts) not in (4, 5) or parts[2] not in SPLITS or not all(map(_WHOLE.fullmatch, parts[3:])):
        raise BadFile(f"{task_id!r} is not a task id; expected domain/family/split/seed")
    split: Split = parts[2]
    size = int(parts[4]) if len(parts) == 5 else SIZE
    return domain.task(parts[1], int(parts[3]), size=size, split=split)


def certificate(record: Record) -> Certificate:
    """The certificate of a stored episode, made again: the gold to compare with."""
    return redrawn(record).certificate


def redrawn(record: Record) -> Drawn:
    """A stored episode as something that can be played again."""
    if record.mark is None:
        return redraw(record.domain, record.task_id, record.layers, record.key)
    domain = domains[record.domain]
    if record.mark.career is not None:
        return recalled(domain, base_task(record), record.mark.career.recall)
    return noticed(domain, base_task(record), load_layers(list(record.layers), record.key), record.mark.notice)


def redraw(domain_name: str, task_id: str, layers: Sequence[dict[str, Any]], key: str) -> Drawn:
    """A draw from the id of its task and the JSON of its layers, certified again."""
    domain = domains[domain_name]
    base, stack = task_of(domain, task_id), load_layers(list(layers), key)
    return Drawn(domain, base, stack, certify(domain, base, stack))


def trajectory_of(record: Record) -> Trajectory:
    """The stored episode as the verifier takes it, with the task as the layers left it."""
    task = base_task(record)
    if record.mark is not None and record.mark.career is not None:
        task = shown(task, record.mark.career.recall)
    for layer in load_layers(list(record.layers), record.key):
        task = layer.on_task(task)
    return Trajectory(task=task, **{name: getattr(record, name) for name in _PLAYED})
