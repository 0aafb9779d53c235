"""A finished episode as one line of JSON (the manifest of a run is in `runs/store.py`).

Everything that is reported later (metrics, diagnoses, pages) is computed from these lines and from the certificate,
which is drawn again from the task and its layers. `recorded` judges a trajectory and makes its line.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

from crosswind.base.errors import BadFile
from crosswind.core import entity_names
from crosswind.core.certify import Certificate, certify
from crosswind.core.domain import SIZE, Domain
from crosswind.core.draw import Drawn
from crosswind.core.finish import FINISH_SPEC
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
)
from crosswind.episodes.play import judge
from crosswind.episodes.schedule import Episode, StreamMark, pair_of
from crosswind.episodes.stream import noticed

SCHEMA = 1
Outcome = Literal["pass", "fail", "error", "unjudged"]  # unjudged: a session without a task; counts nowhere


class Usage(Model):
    """What an episode cost."""

    input_tokens: int = 0
    output_tokens: int = 0
    requests: int = 0  # turns of the model
    retries: int = 0  # of requests that the provider failed
    seconds: float = 0.0
    cost: float | None = None  # in the currency of the price list; None where no price is known

    def plus(self, other: Usage) -> Usage:
        cost = None if self.cost is None and other.cost is None else (self.cost or 0) + (other.cost or 0)
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            requests=self.requests + other.requests,
            retries=self.retries + other.retries,
            seconds=self.seconds + other.seconds,
            cost=cost,
        )


class Record(Model):
    """One finished episode, as a line of `episodes.jsonl`."""

    schema_version: int = SCHEMA
    key: str  # which episode of the run this is: task, condition and trial
    pair: str  # shared by the clean and the shifted episodes of one task and trial
    task_id: str
    domain: str
    family: str
    level: int
    seed: int  # of the draw
    trial: int
    condition: str  # "clean", a kind, or another name that the suite has
    severity: int | None  # of a condition with one severity
    layers: tuple[dict[str, Any], ...]
    agent: str
    outcome: Outcome
    ended: Ended
    refuse: bool  # was refusing right?
    query: str  # as the user said it
    policy: str
    tools: tuple[dict[str, Any], ...]  # as first shown
    steps: tuple[dict[str, Any], ...]
    final: str
    finish: Finish | None = None  # the typed ending; None where the agent ended in words
    why: str = ""  # of an error or an exception, which has its traceback from the second line on
    receipts: tuple[Receipt, ...] = ()
    checks: tuple[Check, ...] = ()
    judge: str = ""  # version of the verifier
    gold_steps: int = 0
    budget: int = 0
    stage: str | None = None  # where a failed episode broke,
    cause: str | None = None  # and how
    usage: Usage = Usage()
    mark: StreamMark | None = None  # of an episode in a stream

    @property
    def passed(self) -> bool:
        return self.outcome == "pass"

    @property
    def judged(self) -> bool:
        """Has it a verdict? Errors of the infrastructure have none, nor have sessions without a task."""
        return self.outcome in ("pass", "fail")

    @property
    def ending(self) -> Ending:
        """How the agent was to end it: by the tool, if that was shown."""
        shown = [tool.get("function", {}) for tool in self.tools]
        return "finish" if FINISH_SPEC.function()["function"] in shown else "words"

    @property
    def clean(self) -> bool:
        return not self.layers

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(str(layer["kind"]) for layer in self.layers)

    @property
    def exposed(self) -> bool:
        """Every obstacle fired and was seen."""
        return all(r.fired and r.seen for r in self.receipts)

    @property
    def tier(self) -> Tier | None:
        """Of a single kind."""
        return perturbations[self.kinds[0]].tier if len(self.kinds) == 1 else None

    @property
    def axis(self) -> Axis | None:
        return perturbations[self.kinds[0]].axis if len(self.kinds) == 1 else None


_PLAYED = tuple(Trajectory.model_fields.keys() - {"task", "schema_version"})  # what a record takes over as it is


def recorded(episode: Episode, trajectory: Trajectory, *, seed: int, usage: Usage) -> Record:
    """A played episode as a line, judged."""
    task, drawn = trajectory.task, episode.drawn
    verdict = judge(trajectory, drawn.domain)
    return Record(
        key=episode.key,
        pair=pair_of(episode.task_id, episode.trial),
        task_id=episode.task_id,
        domain=task.domain,
        family=task.family,
        level=drawn.domain.family(task).level,
        seed=seed,
        trial=episode.trial,
        condition=episode.condition,
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


# ---------------------------------------------------------------- back from the record


def base_task(record: Record) -> Task:
    """The task before any layer, drawn again from its id."""
    return _task(domains[record.domain], record.task_id)


@lru_cache(maxsize=512)
def _task(domain: Domain, task_id: str) -> Task:
    """The clean and the shifted episodes of a task share it, so that recent ones are kept."""
    parts = task_id.split("/")
    if len(parts) not in (4, 5) or parts[2] not in SPLITS or not parts[3].isdigit():
        raise BadFile(f"{task_id!r} is no id of a task; expected domain/family/split/seed")
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
    return noticed(domain, base_task(record), load_layers(list(record.layers), record.key), record.mark.notice)


def redraw(domain_name: str, task_id: str, layers: Sequence[dict[str, Any]], key: str) -> Drawn:
    """A draw from the id of its task and the JSON of its layers, certified again."""
    domain = domains[domain_name]
    base, stack = _task(domain, task_id), load_layers(list(layers), key)
    return Drawn(domain, base, stack, certify(domain, base, stack))


def trajectory_of(record: Record) -> Trajectory:
    """The stored episode as the verifier takes it, with the task as the layers left it."""
    task = base_task(record)
    for layer in load_layers(list(record.layers), record.key):
        task = layer.on_task(task)
    return Trajectory(task=task, **{name: getattr(record, name) for name in _PLAYED})
