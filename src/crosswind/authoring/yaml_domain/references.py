"""References in a file, `{detail}` and `$step.key`, and the conditions that use them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

_DETAIL = re.compile(r"\{(\w*)\}")
STEP = re.compile(r"\$(\w+)\.(\w+)")


@dataclass(frozen=True, slots=True)
class Ref:
    """A value in a file: `{detail}`, `$step.key`, or what stands there."""

    detail: str = ""  # of a request, or an argument of a tool
    step: str = ""
    key: str = ""
    literal: Any = None

    def value(self, details: Mapping[str, Any], found: Mapping[str, Mapping[str, Any]]) -> Any:
        if self.detail:
            return details[self.detail]
        return found[self.step][self.key] if self.step else self.literal


@lru_cache(maxsize=4096, typed=True)
def ref(value: Any) -> Ref:
    """Take a value apart; a text that mixes references with words is no value."""
    if not isinstance(value, str):
        return Ref(literal=value)
    if whole := _DETAIL.fullmatch(value):
        return Ref(detail=whole[1])
    if whole := STEP.fullmatch(value):
        return Ref(step=whole[1], key=whole[2])
    if "{" in value or "$" in value:
        raise ValueError(f"{value!r} is no reference; write {{detail}}, $step.key or a plain value")
    return Ref(literal=value)


Test = Literal["=", "at_least", "at_most"]


@dataclass(frozen=True, slots=True)
class ColumnTest:
    column: str
    test: Test
    ref: Ref

    def holds(self, have: Any, want: Any) -> bool:
        if self.test == "=":
            return bool(have == want)
        return bool(have >= want) if self.test == "at_least" else bool(have <= want)


def conditions(given: Mapping[str, Any]) -> list[ColumnTest]:
    """`{status: out, rating: {at_least: 4}}` taken apart."""
    out = []
    for column, value in given.items():
        tests: Mapping[Any, Any] = value if isinstance(value, dict) else {"=": value}
        for test, bound in tests.items():
            if test not in ("=", "at_least", "at_most") or isinstance(bound, (dict, list)) or bound is None:
                raise ValueError(
                    f"{column} is compared with {value!r}; write a value, at_least: value or at_most: value"
                )
            out.append(ColumnTest(column, test, ref(bound)))
    return out


def holes(text: str) -> list[str]:
    """The {details} of a text, in order."""
    return _DETAIL.findall(text)


def without_holes(text: str) -> str:
    """The words of a text alone."""
    return _DETAIL.sub(" ", text)


def filled(text: str, details: Mapping[str, Any], found: Mapping[str, Mapping[str, Any]]) -> str:
    """A text with its references put in."""
    text = STEP.sub(lambda m: str(found[m[1]][m[2]]), text)
    return _DETAIL.sub(lambda m: str(details[m[1]]), text)
