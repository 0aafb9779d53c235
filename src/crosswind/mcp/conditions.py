"""What must be true of a final message and of the calls that reached a server: conditions that people write in YAML.

A condition is decided on the text or the arguments as they are. Nothing here asks a model, and nothing calls a server.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from crosswind.core.entity_names import through
from crosswind.core.types import Model, ToolCall, ToolResult
from crosswind.text import answers, speech
from crosswind.text.answers import Expected, Kind

LONGEST = 20_000  # characters of a text that are looked at
STATED: Mapping[str, Kind] = {k: k for k in ("number", "money", "date", "time", "name", "id", "yesno")}


class Must(Model):
    """One condition on a text or a value: exactly one of these keys, `tolerance` beside `number` and `money`."""

    contains: str | int | float | None = None  # this text, whatever the case
    matches: str | None = None  # a regular expression, anywhere
    equals: Any = None  # the whole, apart from space around it
    number: int | float | None = None  # a text that commits to the number
    money: int | float | str | None = None  # and so on, as answers of built-in tasks are read
    date: str | None = None
    time: str | None = None
    name: str | None = None
    id: str | None = None
    yesno: bool | None = None
    tolerance: float = Field(default=0.0, ge=0)
    speech: Literal["answer", "refusal", "question"] | None = None  # what sort of message it is
    any_of: tuple[Must, ...] | None = None
    all_of: tuple[Must, ...] | None = None
    none_of: tuple[Must, ...] | None = None

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: object) -> object:
        """A text alone is one to be contained."""
        return {"contains": value} if isinstance(value, (str, int, float)) and not isinstance(value, bool) else value

    @model_validator(mode="after")
    def _sound(self) -> Self:
        given = self.model_fields_set - {"tolerance"}
        if len(given) != 1:
            raise ValueError(f"give exactly one of {', '.join(n for n in type(self).model_fields if n != 'tolerance')}")
        if "tolerance" in self.model_fields_set and not given & {"number", "money"}:
            raise ValueError("tolerance goes with number or money")
        if self.matches is not None:
            _compiled(self.matches)
        if any(one == () for one in (self.any_of, self.all_of, self.none_of)):
            raise ValueError("a list of conditions must not be empty")
        return self

    @property
    def key(self) -> str:
        """Which condition it is."""
        return next(iter(self.model_fields_set - {"tolerance"}))

    def holds(self, value: Any, given: str = "") -> bool:
        """Is it true of a value? `given` is the request, whose words say what a number counts."""
        key, wanted = self.key, getattr(self, self.key)
        text = (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))[:LONGEST]
        match key:
            case "contains":
                return _folded(str(wanted)) in _folded(text)
            case "matches":
                return re.search(wanted, text, re.MULTILINE) is not None
            case "equals":
                return _same(value.strip() if isinstance(value, str) else value, wanted)
            case "speech":
                return bool(text.strip()) and speech.classify(text) == wanted
            case "any_of":
                return any(one.holds(value, given) for one in wanted)
            case "all_of":
                return all(one.holds(value, given) for one in wanted)
            case "none_of":
                return not any(one.holds(value, given) for one in wanted)
        return answers.states(text, [Expected(STATED[key], wanted, tolerance=self.tolerance)], given=given)

    @property
    def words(self) -> str:
        """The condition in words."""
        key, wanted = self.key, getattr(self, self.key)
        if isinstance(wanted, tuple):
            return f"{key.replace('_', ' ')} ({'; '.join(one.words for one in wanted)})"
        return f"{key} {wanted!r}"


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(f"matches is not a regular expression: {error}") from None


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _same(value: Any, wanted: Any) -> bool:
    """Equality of JSON: 1 and 1.0 are the same, 1 and true are not."""
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    if isinstance(wanted, str) and isinstance(value, str):
        return value == wanted.strip()
    if isinstance(value, Mapping) and isinstance(wanted, Mapping):
        return value.keys() == wanted.keys() and all(_same(value[k], wanted[k]) for k in value)
    if isinstance(value, (list, tuple)) and isinstance(wanted, (list, tuple)):
        return len(value) == len(wanted) and all(map(_same, value, wanted))
    return bool(value == wanted)


# ---------------------------------------------------------------- calls


@dataclass(frozen=True, slots=True)
class Made:
    """A call that reached a server, and what it was answered."""

    call: ToolCall
    result: ToolResult


class CallRule(Model):
    """Calls that must have happened, or must not: of one tool, with some arguments, so and so often."""

    tool: str
    args: dict[str, Must] = Field(default_factory=dict)  # of arguments that are not named anything may be true
    times: tuple[int, int | None] = (1, None)  # from, to; written as 2, "1-3", "2+" or never
    named: str = ""  # how `order` calls it, where the tool's name does not do

    @field_validator("args", mode="before")
    @classmethod
    def _values(cls, value: object) -> object:
        """A plain value is one to be equal to."""
        if not isinstance(value, dict):
            return value
        return {k: v if isinstance(v, (dict, Must)) else Must(equals=v) for k, v in value.items()}

    @field_validator("times", mode="before")
    @classmethod
    def _range(cls, value: object) -> object:
        if isinstance(value, int) and not isinstance(value, bool):
            return (value, value)
        if value == "never":
            return (0, 0)
        if isinstance(value, str) and (found := re.fullmatch(r"(\d+)\s*(?:\+|-\s*(\d+))", value)):
            return (int(found[1]), int(found[2]) if found[2] else None)
        if isinstance(value, (tuple, list)) and len(value) == 2:
            return tuple(value)
        raise ValueError('times is written as 2, "1-3", "2+" or never')

    @model_validator(mode="after")
    def _sound(self) -> Self:
        low, high = self.times
        if low < 0 or (high is not None and high < low):
            raise ValueError("times must run from a smaller number to a larger one")
        return self

    @property
    def label(self) -> str:
        return self.named or self.tool

    def fits(self, made: Made) -> bool:
        """Is a call of this rule? One that the server answered with an error counts only where there is to be none."""
        if made.call.tool != self.tool or (made.result.error is not None and self.times != (0, 0)):
            return False
        return all(name in made.call.args and must.holds(made.call.args[name]) for name, must in self.args.items())

    def check(self, ledger: Sequence[Made]) -> tuple[bool, str]:
        """Did it happen as often as it must, and how often it did."""
        count = sum(self.fits(made) for made in ledger)
        low, high = self.times
        span = f"{low} or more" if high is None else str(low) if low == high else f"{low} to {high}"
        about = ", ".join(f"{name} {must.words}" for name, must in self.args.items())
        what = f"{self.tool}({about})" if about else self.tool
        return low <= count and (high is None or count <= high), f"{what}: {count} times; to be {span}"


def in_order(rules: Sequence[CallRule], ledger: Sequence[Made]) -> bool:
    """Are there calls of these rules, one after the other?"""
    at = iter(ledger)
    return all(any(rule.fits(made) for made in at) for rule in rules)


# ---------------------------------------------------------------- values out of results


class Take(Model):
    """A value out of a result: what lies at a path, and in that text what a pattern's first group matches."""

    at: str = ""  # such as "rows.0.id"; empty: the whole
    matches: str = ""

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: object) -> object:
        return {"at": value} if isinstance(value, str) else value

    @field_validator("matches")
    @classmethod
    def _pattern(cls, value: str) -> str:
        if value and _compiled(value).groups != 1:
            raise ValueError(
                "matches needs exactly one capture group, in parentheses; what the group matches is the value"
            )
        return value

    def of(self, content: Any) -> Any:
        """Raises `ValueError` where there is no such value."""
        found = content
        for part in filter(None, self.at.split(".")):
            try:
                found = found[int(part)] if isinstance(found, list) else found[part]
            except (KeyError, IndexError, TypeError, ValueError):
                raise ValueError(f"the result has no {self.at!r}") from None
        if not self.matches:
            return found
        text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
        matched = re.search(self.matches, text, re.MULTILINE)
        if matched is None:
            raise ValueError(f"the result has nothing that matches {self.matches!r}")
        return matched[1]


_REFERENCE = re.compile(r"\$(?:\$|([A-Za-z_]\w*))")


def references(value: Any) -> set[str]:
    """Names that `$name` in a value refers to."""
    if isinstance(value, str):
        return {name for name in _REFERENCE.findall(value) if name}
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ()
    return set().union(*map(references, parts))


def filled(value: Any, taken: Mapping[str, Any]) -> Any:
    """A value with what was taken in the place of `$name`; `$$` is a dollar sign.

    A name that is all of its text gives what was taken as it is, be it a number or a list.
    """

    def fill(text: str) -> Any:
        if (whole := _REFERENCE.fullmatch(text)) is not None and whole[1]:
            return taken[whole[1]]
        return _REFERENCE.sub(lambda found: str(taken[found[1]]) if found[1] else "$", text)

    return through(value, fill)
