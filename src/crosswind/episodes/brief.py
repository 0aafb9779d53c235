"""What figures, rules and lists need of a finished episode, in a twentieth of the space that its record takes.

A `Brief` has the names of a `Record`, so that what counts episodes takes either (`Told`). It lacks what was said and
done: who shows an episode, or looks into its steps, reads its record (`runs/store.py`, `read_records`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from crosswind.episodes.record import Mistake, Outcome, Played, Record, Usage
from crosswind.episodes.schedule import StreamMark, key_of, pair_of


@dataclass(slots=True, eq=False)
class Brief(Played):
    """One finished episode without what was said and done in it."""

    task_id: str
    condition: str
    trial: int
    domain: str
    family: str
    level: int
    seed: int
    severity: int | None
    kinds: tuple[str, ...]
    draw: str  # which draw of its layers it is
    agent: str
    outcome: Outcome
    ended: str
    refuse: bool
    exposed: bool  # every obstacle fired and was seen
    judge: str
    stage: str | None
    cause: str | None
    why: str
    length: int  # steps
    gold_steps: int
    budget: int
    input_tokens: int | None
    output_tokens: int | None
    requests: int
    retries: int
    seconds: float
    cost: float | None
    input_charged: int | None = None
    output_charged: int | None = None
    currency: str = ""
    at_fault: tuple[int, str, str, str, str] | None = None  # the fields of its mistake
    own_key: str = ""  # where it is not made of task, condition and trial
    mark: StreamMark | None = None
    at: int = -1  # its line in the run, from 0; -1: it has none

    @classmethod
    def of(cls, record: Record, at: int = -1) -> Brief:
        """The brief of a whole record."""
        own = "" if record.key == key_of(record.task_id, record.condition, record.trial) else record.key
        usage = {name: getattr(record.usage, name) for name in Usage.model_fields}
        same = {name: getattr(record, name) for name in _SAME}
        mistake = record.mistake
        fault = (mistake.step, mistake.tool, mistake.error, mistake.key, mistake.why) if mistake else None
        return cls(**same, **usage, at_fault=fault, own_key=own, at=at)

    @classmethod
    def read(cls, line: bytes | str, at: int = -1) -> Brief:
        """The brief of a record's line, which is checked whole: every reader finds the same lines damaged."""
        return cls.of(Record.model_validate_json(line), at)

    @classmethod
    def from_row(cls, row: Sequence[Any], shared: dict[Any, Any], at: int) -> Brief:
        """A brief from its row in an index; values that many have are held once, in `shared`."""
        values = [shared.setdefault(v, v) if type(v) is str and name in _OFTEN else v for name, v in _NAMED(row)]
        kinds = tuple(values[_KINDS])
        values[_KINDS] = shared.setdefault(kinds, kinds)
        if values[_AT_FAULT]:
            values[_AT_FAULT] = tuple(shared.setdefault(v, v) for v in values[_AT_FAULT])
        brief = cls(*values)
        brief.at = at
        return brief

    def row(self) -> list[Any]:
        return [getattr(self, name) for name in COLUMNS]

    @property
    def key(self) -> str:
        return self.own_key or key_of(self.task_id, self.condition, self.trial)

    @property
    def pair(self) -> str:
        return pair_of(self.task_id, self.trial)

    @property
    def mistake(self) -> Mistake | None:
        """What it went wrong with first."""
        if self.at_fault is None:
            return None
        return Mistake(**dict(zip(Mistake.model_fields, self.at_fault, strict=True)))  # type: ignore[arg-type]

    @property
    def usage(self) -> Usage:
        """What it cost."""
        return Usage(**{name: getattr(self, name) for name in Usage.model_fields})


Told: TypeAlias = Record | Brief  # whatever says how an episode ended

COLUMNS = tuple(name for name in Brief.__slots__ if name not in ("mark", "at"))  # of a row in an index
_KINDS, _AT_FAULT = COLUMNS.index("kinds"), COLUMNS.index("at_fault")
_OFTEN = frozenset(
    ("task_id", "condition", "domain", "family", "draw", "agent", "outcome", "ended", "judge", "stage", "cause", "why")
)


def _NAMED(row: Sequence[Any]) -> zip[tuple[str, Any]]:
    return zip(COLUMNS, row, strict=True)


_SAME = (
    *("task_id", "condition", "trial", "domain", "family", "level", "seed", "severity", "kinds", "agent", "outcome"),
    *("ended", "refuse", "judge", "stage", "cause", "why", "gold_steps", "budget", "mark", "length", "exposed", "draw"),
)


def as_row(brief: Brief) -> bytes:
    """A brief as a line of an index."""
    return json.dumps(brief.row(), separators=(",", ":")).encode() + b"\n"
