"""What is measured of each episode, against a profile learnt from a clean period.

A channel gives a score that is high where an episode is odd. Novelty counts what the profile has never seen: a field
of a result, an error, a word. Figures are compared as they are, once for high and once for low. A channel whose content
a log does not have gives no score.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from statistics import median
from typing import Any

from crosswind.core.types import ASK
from crosswind.text import speech
from crosswind.watch.observed import ABSENT, ObservedCall, ObservedEpisode

Token = tuple[str, ...]
_WORD = re.compile(r"[A-Za-z][a-z']+|[a-z]+")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
MOST = 400  # values of one result that are looked at
DEEP = 8  # levels of one
LARGEST = 1e100  # of numbers that are compared
ARGUMENT_CODES = re.compile(
    r"invalid|argument|param|schema|valid|missing|unknown_tool|no_such|bad_|400|422|-32602", re.I
)


def words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def sentences(text: str) -> list[str]:
    return [one.strip() for one in _SENTENCE.split(text) if one.strip()]


@lru_cache(maxsize=4096)
def format_of(text: str) -> str:
    """How a value is written: letters as a, digits as 9, repeats of letters once. Free text has no format."""
    if len(text) > 32 or text.count(" ") > 3:
        return "text"
    out = re.sub(r"[0-9]", "9", text)
    out = re.sub(r"[^\W\d_]+", "a", out)
    return out if "9" in out else "word" if " " not in out.strip() else "text"


@dataclass(slots=True)
class Leaf:
    """A value in a result, with the path of keys to it; rows of a list share their path."""

    path: str
    value: Any


def leaves(content: Any, most: int = MOST) -> list[Leaf]:
    """The values of a result; containers stand for themselves too."""
    out: list[Leaf] = []
    stack: list[tuple[str, Any, int]] = [("", content, 0)]
    while stack and len(out) < most:
        path, value, depth = stack.pop()
        out.append(Leaf(path, value))
        if depth < DEEP and isinstance(value, dict):
            stack += [(f"{path}.{key}", one, depth + 1) for key, one in value.items()]
        elif depth < DEEP and isinstance(value, list):
            stack += [(f"{path}[]", one, depth + 1) for one in value[:20]]
    return out


def type_of(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if value is None:
        return "null"
    if isinstance(value, (int, float)) and not abs(value) < LARGEST:  # infinite, or no number
        return "other"
    return {str: "str", int: "num", float: "num", dict: "obj", list: "list"}.get(type(value), "other")


def results(episode: ObservedEpisode) -> Iterable[ObservedCall]:
    return (call for call in episode.work if call.result is not ABSENT and call.error is None)


# ---------------------------------------------------------------- tokens and figures of one episode


def shape_tokens(episode: ObservedEpisode) -> set[Token]:
    """Paths and types in results, by tool."""
    return {(call.tool, leaf.path, type_of(leaf.value)) for call in results(episode) for leaf in leaves(call.result)}


def format_tokens(episode: ObservedEpisode) -> set[Token]:
    """How values are written, by tool and path."""
    out: set[Token] = set()
    for call in results(episode):
        for leaf in leaves(call.result):
            if isinstance(leaf.value, str) and (form := format_of(leaf.value)) != "text":
                out.add((call.tool, leaf.path, form))
    return out


def error_tokens(episode: ObservedEpisode) -> set[Token]:
    return {(call.tool, call.error) for call in episode.work if call.error}


def called_tokens(episode: ObservedEpisode) -> set[Token]:
    """Tools that answered."""
    return {(call.tool,) for call in episode.work if not call.error}


def order_tokens(episode: ObservedEpisode) -> set[Token]:
    """Tools that follow each other, and whether the first one failed."""
    names = ["(start)", *(f"{call.tool}{'!' if call.error else ''}" for call in episode.calls), "(end)"]
    return set(pairwise(names))


def policy_tokens(episode: ObservedEpisode) -> set[Token]:
    return {(one,) for one in sentences(episode.policy or "")}


def listing_tokens(episode: ObservedEpisode) -> set[Token]:
    """Tools shown, in whole; a tool that is no longer shown is a token of its own in `Profile.novelty`."""
    lists = [episode.listing or (), *episode.later]
    return {(tool.name, tool.shape) for one in lists for tool in one}


def repeats(episode: ObservedEpisode) -> int:
    """Calls that were made before in the same way."""
    seen: Counter[str] = Counter()
    for call in episode.work:
        seen[f"{call.tool} {call.args!r}" if call.args is not None else f"{call.tool} {call.error}"] += 1
    if all(call.args is None for call in episode.work):  # without content only a repeat after an error shows
        calls = episode.work
        return sum(a.tool == b.tool and a.error is not None for a, b in pairwise(calls))
    return sum(n - 1 for n in seen.values())


def refused(episode: ObservedEpisode) -> float | None:
    if episode.final is None:
        return None
    return float(speech.classify(episode.final) == "refusal")


def questions(episode: ObservedEpisode) -> float:
    return float(len(episode.said) or sum(call.tool == ASK for call in episode.calls))


def argument_errors(episode: ObservedEpisode) -> int:
    return sum(call.error is not None and bool(ARGUMENT_CODES.search(call.error)) for call in episode.work)


Tokens = Callable[[ObservedEpisode], set[Token]]
NOVELTIES: dict[str, Tokens] = {
    "listing": listing_tokens,
    "policy": policy_tokens,
    "error codes": error_tokens,
    "tools called": called_tokens,
    "result shapes": shape_tokens,
    "value formats": format_tokens,
    "order of calls": order_tokens,
}


@dataclass
class Profile:
    """What is usual, learnt from a clean period."""

    known: dict[str, set[Token]] = field(default_factory=lambda: {name: set() for name in NOVELTIES})
    words: Counter[str] = field(default_factory=Counter)
    ranges: dict[Token, tuple[float, float, float]] = field(default_factory=dict)  # low, high, width
    seconds: dict[str, float] = field(default_factory=dict)  # of a tool's call, the median
    always: frozenset[str] = frozenset()  # tools that every listing had

    @classmethod
    def of(cls, episodes: Sequence[ObservedEpisode]) -> Profile:
        out = cls()
        numbers: dict[Token, list[float]] = defaultdict(list)
        times: dict[str, list[float]] = defaultdict(list)
        names: set[str] | None = None
        for episode in episodes:
            for name, tokens in NOVELTIES.items():
                out.known[name] |= tokens(episode)
            out.words.update(set(words(episode.query or "")))
            for call in results(episode):
                for key, value in numbers_of(call):
                    numbers[key].append(value)
            for call in episode.work:
                if call.seconds is not None:
                    times[call.tool].append(call.seconds)
            if episode.listing is not None:
                shown = {tool.name for tool in episode.listing}
                names = shown if names is None else names & shown
        for key, values in numbers.items():
            if len(values) >= 5:
                low, high = min(values), max(values)
                out.ranges[key] = (low, high, max(high - low, 0.05 * abs(high), 1e-9))
        out.seconds = {tool: median(values) for tool, values in times.items()}
        out.always = frozenset(names or ())
        return out

    def absorb(self, episode: ObservedEpisode) -> None:
        """Take what an episode has as known from now on."""
        for name, tokens in NOVELTIES.items():
            self.known[name] |= tokens(episode)
        self.words.update(set(words(episode.query or "")))
        for call in results(episode):
            for key, value in numbers_of(call):
                low, high, _ = self.ranges.get(key, (value, value, 0.0))
                low, high = min(low, value), max(high, value)
                self.ranges[key] = (low, high, max(high - low, 0.05 * abs(high), 1e-9))
        if episode.listing is not None:
            self.always &= {tool.name for tool in episode.listing}

    # ------------------------------------------------------------ scores

    def scores(self, episode: ObservedEpisode) -> dict[str, float]:
        """The score of each channel that the episode has the content for; high is odd."""
        out: dict[str, float] = {}
        calls = episode.work
        if episode.listing is not None:
            gone = self.always - {tool.name for tool in episode.listing}
            out["listing"] = float(len(listing_tokens(episode) - self.known["listing"]) + len(gone))
        if episode.is_snapshot:
            return out
        if episode.policy is not None:
            out["policy"] = float(len(policy_tokens(episode) - self.known["policy"]))
        out["error codes"] = float(len(error_tokens(episode) - self.known["error codes"]))
        out["tools called"] = float(len(called_tokens(episode) - self.known["tools called"]))
        out["errors"] = float(sum(call.error is not None for call in calls))
        out["argument errors"] = float(argument_errors(episode))
        if any(call.result is not ABSENT for call in calls):
            out["result shapes"] = float(len(shape_tokens(episode) - self.known["result shapes"]))
            out["value formats"] = float(len(format_tokens(episode) - self.known["value formats"]))
            out["value ranges"] = self._outside(episode)
        transitions = order_tokens(episode)
        out["order of calls"] = len(transitions - self.known["order of calls"]) / max(1, len(transitions))
        out["repeated calls"] = float(repeats(episode))
        out["steps, more"] = float(len(calls))
        out["steps, fewer"] = -float(len(calls))
        out["questions"] = questions(episode)
        out["interruptions"] = float(len(episode.heard))
        refusal = refused(episode)
        if refusal is not None:
            out["refusals"] = refusal
        if episode.query:
            said = words(episode.query)
            out["request words"] = sum(word not in self.words for word in set(said)) / max(1, len(set(said)))
            out["request length, longer"] = float(len(episode.query))
            out["request length, shorter"] = -float(len(episode.query))
            out["request style"] = style(episode.query)
        slow = [
            math.log(max(call.seconds, 1e-6) / max(self.seconds[call.tool], 1e-6))
            for call in calls
            if call.seconds is not None and call.tool in self.seconds
        ]
        if slow:
            out["latency"] = sum(slow) / len(slow)
        return out

    def _outside(self, episode: ObservedEpisode) -> float:
        """How far numbers are out of their range, in widths of it."""
        total = 0.0
        for call in results(episode):
            for key, value in numbers_of(call):
                if (known := self.ranges.get(key)) is not None:
                    low, high, width = known
                    total += min(10.0, max(low - value, value - high, 0.0) / width)
        return total


def style(query: str) -> float:
    """The share of short function words that a request lacks: cut-down requests have few."""
    said = words(query)
    return 1 - sum(len(word) <= 3 for word in said) / max(1, len(said))


def numbers_of(call: ObservedCall) -> Iterable[tuple[Token, float]]:
    for leaf in leaves(call.result):
        if type_of(leaf.value) == "num":
            yield (call.tool, leaf.path), float(leaf.value)


STREAMS = (
    *(
        "listing",
        "policy",
        "error codes",
        "errors",
        "argument errors",
        "tools called",
        "result shapes",
        "value formats",
    ),
    *("value ranges", "order of calls", "repeated calls", "steps, more", "steps, fewer", "questions", "interruptions"),
    *("refusals", "request words", "request length, longer", "request length, shorter", "request style", "latency"),
)
"""The channels, all of which share the false alarm rate."""
COSTS = ("errors", "argument errors", "repeated calls", "steps, more", "refusals", "questions")
"""Channels that are a cost to the agent, as far as a log without verdicts shows it."""
