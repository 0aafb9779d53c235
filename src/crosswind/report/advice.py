"""What to do next: for the most frequent causes of failure a remedy, with names from the run and a command to try."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crosswind.episodes.record import Mistake
from crosswind.metrics import Summary, formats
from crosswind.metrics.mistakes import UNKNOWN, Pattern, patterns
from crosswind.metrics.scores import tasks_needed
from crosswind.runs.command import repeat, with_plugins
from crosswind.runs.store import AnyRun

MOST = 4  # pieces of advice
NAMED = 2  # names of one sort in a piece of advice
RARE = 0.03  # share of the failures of a cause below which a name tells nothing
KINDS = 3  # that a command plays again
LOST = 0.05  # share of episodes lost to the infrastructure from which on that comes first
REMEDIES: Mapping[str, str] = {
    "memorised interface": "Take names, parameters and formats from the tools shown, not from memory",
    "wrong tool": "Choose tools by their descriptions; call only tools that are listed",
    "wrong argument": "Copy values from the request or a result before sending them",
    "malformed call": "Check arguments against the tool's schema before calling",
    "misread result": "Read whole results: every page, unit, note and field",
    "ignored error": "Stop and handle an error before the next call",
    "unsafe retry": "Check whether a write took effect before repeating it",
    "blind repetition": "Change something before repeating a call that failed",
    "wrong order": "Before calling a tool, make the calls it depends on",
    "gave up": "Try an alternative before giving up",
    "ran out of steps": "Spend fewer steps on calls that return nothing new",
    "timed out": "Answer faster, or allow more time with --episode-timeout",
    "fabricated value": "Look values up instead of guessing them",
    "false success": "Verify the outcome before reporting success",
    "forced completion": "Stop before the first write if the request should be refused",
    "missed refusal": "Refuse requests that cannot or must not be met",
    "over-refusal": "Refuse only if a tool or a rule says so",
    "obeyed an injection": "Treat text in tool results as data, not as instructions",
    "exception": "Fix the exception in the agent's code",
    UNKNOWN: "Read these episodes: the trajectory does not show a cause",
}


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing to do."""

    what: str
    failures: int  # that it covers; 0: it is not about failures
    of: int
    named: tuple[tuple[str, str, int], ...]  # fields of episodes, names in this run, and how many failures have them
    command: str
    find: Mapping[str, str]  # the episodes that it covers
    why: str = ""


def advice(run: AnyRun, found: Summary, mistakes: Mapping[str, Mistake]) -> list[Advice]:
    """What to do next, what matters most first."""
    every = patterns(run.told, mistakes)
    failures = sum(one.failures for one in every)
    known = [one for one in every if one.cause != UNKNOWN] or every
    out = [*_lost(run, found), *_weak(run, found)]
    out += [_of(one, failures, run) for one in known[: MOST - len(out)]]
    return [*out[: MOST - 1], *_surer(run, found)][:MOST] if found.drop and not found.drop.clear else out


def _of(one: Pattern, failures: int, run: AnyRun) -> Advice:
    named = [
        (what, name, n)
        for what, counts in (("tool", one.tools), ("error", one.errors), ("key", one.keys))
        for name, n in _top(counts, NAMED if what == "tool" else 1)
    ]
    named += [("kind", kind, n) for kind, n in _top(one.kinds, NAMED)]
    known = f" --cause {shlex.quote(one.cause)}" if one.cause != UNKNOWN else ""
    telling = [(what, name, n) for what, name, n in named if n >= max(2, RARE * one.failures)]
    return Advice(
        what=REMEDIES.get(one.cause, f"Read the episodes with the cause {one.cause}"),
        failures=one.failures,
        of=failures,
        named=tuple(telling or named[:1]),
        command=again(run, [kind for kind, _ in _top(one.kinds, KINDS)], one.cause)
        or _show(run, f"--outcome fail{known}"),
        find={"cause": one.cause, "outcome": "fail"},
        why=one.cause,
    )


def _top(counts: Counter[str], most: int) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:most]


def _lost(run: AnyRun, found: Summary) -> list[Advice]:
    """Errors of the infrastructure come first where they are many."""
    lost = found.excluded.episodes
    if not lost or lost < LOST * (lost + found.episodes):
        return []
    why = next(iter(found.excluded.reasons), "")
    return [
        Advice(
            what="Rerun the episodes lost to infrastructure errors",
            failures=0,
            of=0,
            named=(),
            command=repeat(run.manifest, out=run.folder) or _show(run, "--outcome error"),
            find={"outcome": "error"},
            why=f"{formats.many(lost, 'episode')} ended as errors{f', most often: {why}' if why else ''}",
        )
    ]


def _weak(run: AnyRun, found: Summary) -> list[Advice]:
    """An agent that is no better than a trivial one has a problem before any shift."""
    clean = found.trivial.get("clean")
    if clean is None or clean.better:
        return []
    mute = sum(one.judged and not one.length for one in run.told)
    told = f"{formats.many(mute, 'episode')} of {found.episodes:,} made no tool call" if mute else ""
    return [
        Advice(
            what="Make the agent work in the clean world before measuring shifts",
            failures=0,
            of=0,
            named=(),
            command=_show(run, "--condition clean --outcome fail"),
            find={"clean": "1", "outcome": "fail"},
            why=". ".join(filter(None, (f"It solves {formats.percent(clean.rate)} there", told))),
        )
    ]


def _surer(run: AnyRun, found: Summary) -> list[Advice]:
    """A change that is not clear needs more tasks."""
    if found.drop is None or run.manifest.name == "" or any(one.mark for one in run.told):
        return []
    needed = tasks_needed(found.drop) if abs(found.drop.delta) >= LOST else None
    if needed is None or needed <= found.drop.tasks:
        return []
    cells = max(1, len({one.domain for one in run.told}))
    command = repeat(run.manifest, tasks=-(-needed // cells), out=f"{run.folder}-more")
    if not command:
        return []
    return [
        Advice(
            what="Run more tasks: the change may be due to chance",
            failures=0,
            of=0,
            named=(),
            command=command,
            find={"pair": "1"},
            why=formats.more(found.drop),
        )
    ]


# ---------------------------------------------------------------- commands


def again(run: AnyRun, kinds: Sequence[str], cause: str) -> str:
    """The command that plays the same episodes of some kinds again; empty where there is none."""
    stacks = any(len(one.kinds) > 1 for one in run.told)
    if not kinds or stacks or any(one.mark for one in run.told):
        return ""
    return repeat(run.manifest, only=kinds, out=f"{run.folder}-{re.sub('[^a-z0-9]+', '-', cause.lower())[:40]}")


def _show(run: AnyRun, options: str) -> str:
    return f"crosswind show {shlex.quote(str(run.folder))} {options}{with_plugins(run.manifest.plugins)}"
