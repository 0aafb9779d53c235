"""What `crosswind watch` prints: alarms as JSON lines. Whoever acts on an alarm reads it back with `read_alarms`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from pydantic import Field, ValidationError

from crosswind.base.errors import BadFile
from crosswind.core.types import Axis, Model


class Alternative(Model):
    """Another kind that would explain the same evidence."""

    kind: str
    confidence: float = Field(ge=0, le=1)


class NamedShift(Model):
    """What changed, as a perturbation: the kind, and its value where it could be fitted."""

    axis: Axis
    kind: str
    severity: int = Field(ge=1, le=5)
    tools: tuple[str, ...] = ()  # as they were called before the change; tools that are new by their new names
    keys: tuple[str, ...] = ()  # parameters of calls or keys of results
    layer: dict[str, Any] | None = None  # a perturbation as JSON; None where the log does not determine it
    confidence: float = Field(ge=0, le=1)
    alternatives: tuple[Alternative, ...] = ()


class Alarm(Model):
    """One detected change."""

    type: Literal["alarm"] = "alarm"
    channel: str
    at: int  # index of the episode at which the test decided, from 0 over the watched episodes
    since: int  # estimated index of the first episode after the change
    evidence: dict[str, Any] = Field(default_factory=dict)
    shift: NamedShift | None = None  # None: something changed, and no perturbation explains it
    recipe: dict[str, Any] | None = None  # as `crosswind proxy --recipe` reads it from a file
    predicted_loss: float | None = None  # success points (0 to 1) that this agent loses under the kind
    episodes: tuple[str, ...] = ()  # ids of the episodes that showed it

    @property
    def is_costly(self) -> bool:
        """Did the agent pay for the change, as far as a log without verdicts shows it?"""
        return self.shift is None or bool(self.evidence.get("impact", "").startswith("costs"))

    @property
    def label(self) -> str:
        """A few words for tables and reasons."""
        kind = self.shift.kind if self.shift else "unnamed shift"
        return f"{kind} on {self.channel} at episode {self.at}"

    @property
    def line(self) -> str:
        """The alarm as one line of JSON."""
        return json.dumps(self.model_dump(mode="json"), ensure_ascii=False, separators=(",", ":"))


def recipe_of(kind: str, severity: int, summary: str = "") -> dict[str, Any]:
    """A recipe that reproduces one kind, in the form of a recipe file."""
    return {"name": f"watch-{kind}", "summary": summary, "stack": [{"kind": kind, "severity": severity}]}


def read_alarms(lines: Iterable[str], name: str = "the alarms") -> Iterator[Alarm]:
    """The alarms among JSON lines of `crosswind watch --json`; lines of other types are skipped."""
    for nth, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
            if isinstance(data, dict) and data.get("type") == "alarm":
                yield Alarm.model_validate_json(line)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise BadFile(
                f"{name}, line {nth}: not an alarm ({place}: {first['msg']}); write it with watch --json"
            ) from None
        except (ValueError, RecursionError):
            raise BadFile(f"{name}, line {nth}: not JSON; expected the output of `crosswind watch --json`") from None
