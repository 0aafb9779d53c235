"""Failures by what they have in common: the cause, and the tools, errors, parameters and kinds it comes with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from crosswind.episodes.brief import Told
from crosswind.episodes.record import Mistake

UNKNOWN = "undetermined"


@dataclass(slots=True)
class Pattern:
    """The failures of one cause."""

    cause: str
    failures: int = 0
    clean: int = 0  # of these, in the clean world
    tools: Counter[str] = field(default_factory=Counter)  # of the failures whose mistake is known
    errors: Counter[str] = field(default_factory=Counter)
    keys: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)  # of the shifted ones


def patterns(told: Iterable[Told], mistakes: Mapping[str, Mistake]) -> list[Pattern]:
    """The causes of failure, the most frequent first; `mistakes` says by key what an episode went wrong with."""
    out: dict[str, Pattern] = {}
    for one in told:
        if one.outcome != "fail":
            continue
        cause = one.cause or UNKNOWN
        found = out.setdefault(cause, Pattern(cause))
        found.failures += 1
        found.clean += one.clean
        found.kinds.update(one.kinds)
        if (mistake := mistakes.get(one.key)) is not None:
            for counts, name in ((found.tools, mistake.tool), (found.errors, mistake.error), (found.keys, mistake.key)):
                if name:
                    counts[name] += 1
    return sorted(out.values(), key=lambda found: (-found.failures, found.cause))
