"""Alarms as the loop reads them: the JSON lines of `crosswind watch --json`, or a file in the same form.

Only what the loop needs is read; fields that are not known here are ignored, so that older and newer files work.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, ValidationError

from crosswind.base.errors import BadFile, CrosswindError
from crosswind.base.yaml_files import complaint
from crosswind.core.registry import did_you_mean, perturbations
from crosswind.core.types import Model
from crosswind.episodes.recipe import Choice, Recipe, recipes

SHORT = 200  # characters of a file's line that an error repeats


class GivenShift(Model):
    """What changed, as far as the alarm names it."""

    model_config = ConfigDict(extra="ignore", strict=False)
    kind: str
    axis: str = ""
    severity: int = Field(default=3, ge=1, le=5)
    tools: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    layer: dict[str, Any] | None = None
    confidence: float = Field(default=1.0, ge=0, le=1)


class GivenAlarm(Model):
    """One alarm."""

    model_config = ConfigDict(extra="ignore", strict=False)
    type: Literal["alarm"] = "alarm"
    channel: str
    at: int
    since: int | None = None
    shift: GivenShift | None = None
    recipe: dict[str, Any] | str | None = None
    predicted_loss: float | None = None

    @property
    def label(self) -> str:
        """A few words for tables and reasons."""
        kind = self.shift.kind if self.shift else "unnamed shift"
        return f"{kind} on {self.channel} at episode {self.at}"


def read_alarms(path: Path, chosen: Sequence[int] = ()) -> list[GivenAlarm]:
    """The alarms of a file; with `chosen`, those with these numbers, counted from 1."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BadFile(f"{path}: file not found; expected JSON lines of `crosswind watch --json`") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile(f"{path}: cannot be read as UTF-8 text ({error})") from None
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            raise BadFile(f"{path}:{number}: not JSON; expected one alarm per line: {line[:SHORT]!r}") from None
        if not isinstance(data, dict) or data.get("type") != "alarm":
            continue  # progress and summaries of the same command
        try:
            found.append(GivenAlarm.model_validate(data))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise BadFile(
                f"{path}:{number}: {place}: {complaint(first)}; expected an alarm of `crosswind watch`"
            ) from None
    if not found:
        raise BadFile(f"{path}: no alarm in it; there is nothing to adapt to")
    if bad := [n for n in chosen if not 1 <= n <= len(found)]:
        raise CrosswindError(f"--alarm {bad[0]}: {path} has {len(found)} alarms; give a number from 1 to {len(found)}")
    return [found[n - 1] for n in dict.fromkeys(chosen)] if chosen else found


def recipe_of(alarm: GivenAlarm) -> Recipe | None:
    """The recipe that reproduces an alarm; None where it names neither a recipe nor a kind."""
    given = alarm.recipe
    if isinstance(given, str):
        if given not in recipes:
            raise CrosswindError(f"{alarm.label}: no recipe {given!r}; {did_you_mean(given, recipes.names())}")
        return recipes[given]
    if given is not None:
        try:
            recipe = Recipe.model_validate(given, strict=False)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise BadFile(f"{alarm.label}: recipe.{place}: {complaint(first)}") from None
    elif alarm.shift is not None:
        level = alarm.shift.severity
        recipe = Recipe(stack=(Choice(kind=alarm.shift.kind, severity=(level, level)),))
    else:
        return None
    for kind in recipe.kinds():
        if kind not in perturbations:
            raise CrosswindError(
                f"{alarm.label}: no perturbation {kind!r}; {did_you_mean(kind, perturbations.names())}"
            )
    return recipe


def name_of(recipe: Recipe) -> str:
    """What a recipe consists of, as a name for its condition."""
    parts = []
    for choice in recipe.stack:
        low, high = choice.severity
        kinds = choice.group or "|".join(choice.weights())
        parts.append(f"{kinds}:{low if low == high else f'{low}-{high}'}")
    return "+".join(parts)
