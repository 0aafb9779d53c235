"""What the loop takes from the alarms of `crosswind watch --json`: which to act on, and a recipe for each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from crosswind.base.errors import BadFile, CrosswindError
from crosswind.base.files import LARGEST, read_whole
from crosswind.base.yaml_files import complaint
from crosswind.core.registry import perturbations
from crosswind.episodes.recipe import Choice, Recipe
from crosswind.watch.alarms import Alarm, read_alarms


def chosen_alarms(path: Path, chosen: Sequence[int] = ()) -> list[Alarm]:
    """The alarms of a file; with `chosen`, those with these numbers, counted from 1."""
    try:
        text = read_whole(path, 4 * LARGEST, links=True).decode()
    except FileNotFoundError:
        raise BadFile(f"{path}: file not found; expected JSON lines of `crosswind watch --json`") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile(f"{path}: cannot be read as UTF-8 text ({error})") from None
    found = list(read_alarms(text.splitlines(), str(path)))
    if not found:
        raise BadFile(f"{path}: no alarm in it; there is nothing to adapt to")
    if bad := [n for n in chosen if not 1 <= n <= len(found)]:
        raise CrosswindError(f"--alarm {bad[0]}: {path} has {len(found)} alarms; give a number from 1 to {len(found)}")
    return [found[n - 1] for n in dict.fromkeys(chosen)] if chosen else found


def recipe_of(alarm: Alarm) -> Recipe | None:
    """The recipe that reproduces an alarm; None where it names neither a recipe nor a kind."""
    given = alarm.recipe
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
            raise CrosswindError(f"{alarm.label}: no perturbation {kind!r}; {perturbations.meant(kind)}")
    return recipe


def name_of(recipe: Recipe) -> str:
    """What a recipe consists of, as a name for its condition."""
    parts = []
    for choice in recipe.stack:
        low, high = choice.severity
        kinds = choice.group or "|".join(choice.weights())
        parts.append(f"{kinds}:{low if low == high else f'{low}-{high}'}")
    return "+".join(parts)
