"""Kinds that show in errors, in the policy, in requests and in what the user says; no list of tools is needed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import mean

from crosswind.core.types import FINISH
from crosswind.watch.channels import refused, sentences, words
from crosswind.watch.differences import Differences, failures
from crosswind.watch.explanation import Explanation, layer_of, nearest
from crosswind.watch.lexicon import (
    CLOCK,
    EITHER,
    FINAL,
    GONE,
    LATE,
    LIMITED,
    MOVED,
    PENDING,
    REFUSED,
    SHUT,
    STALE,
    TIMEOUT,
    TRANSIENT,
    VALUE,
)
from crosswind.watch.observed import ObservedEpisode


def named_by_talk(found: Differences) -> Iterator[Explanation]:
    """Everything that errors, the policy and the talk would fit."""
    yield from _errors(found)
    yield from _policy(found)
    if found.before.queries and found.after.queries:
        yield from _requests(found)
    yield from _midway(found)
    yield from _endings(found)


# ---------------------------------------------------------------- errors


def _errors(found: Differences) -> Iterator[Explanation]:
    errors = found.new_errors
    if not errors:
        if _calls_unlisted(found):
            yield Explanation("retired_midway", 0.75, 2, tuple(found.failing))
        return
    healed, tries = found.recovered
    failing = tuple(found.failing)
    n, same = max(1, len(failing)), not found.tools.is_any
    plain = 0.0 if same else -0.25
    for code, share in errors.items():
        told = f"{code} {' '.join(found.after.texts.get(code, ()))}"
        weight = 0.1 * min(1.0, share)
        places = [nth for nth, call in failures(found.after.episodes) if call.error == code]
        late = mean(places) if places else 0.0
        unlisted = _calls_unlisted(found)
        stale = bool(STALE.search(told))
        again = bool(TRANSIENT.search(told)) and not FINAL.search(told)
        final = bool(FINAL.search(told)) or (found.lasting > 0.6 and healed < 0.15 and not again)
        if (TRANSIENT.search(told) or healed > 0.6) and not stale:
            fit = 0.55 + 0.2 * bool(TRANSIENT.search(told)) + 0.12 * healed + weight + plain - 0.35 * final
            severity = nearest(n * max(1.0, tries), {1: 1, 2: 2, 3: 4, 4: 6, 5: 9})
            text = next(iter(sorted(found.after.texts.get(code, {""}))), "")
            layer = (
                layer_of("transient_error", tools=failing, times=max(1, round(tries)), text=text)[0]
                if failing
                else None
            )
            yield Explanation("transient_error", fit - 0.3 * bool(found.later), severity, failing, (), layer)
            yield Explanation(
                "unlisted_tools", fit - 0.2 + 0.4 * bool(found.later) - 0.1 * (late < 1), min(5, n), failing
            )
        if healed < 0.2 and same and not stale:
            doomed = _always_fail(found, code)
            known = found.before.codes[code] / found.before.n > 0.04
            fit = 0.4 + 0.15 * doomed + 0.25 * final + 0.15 * (found.refusals > 0.1) - 0.3 * (known or again)
            layer = (
                layer_of("fatal_error", tool=failing[0], text=next(iter(found.after.texts[code]), ""))[0]
                if failing and found.after.texts[code]
                else None
            )
            yield Explanation("fatal_error", fit, 3, failing, (), layer)
        if stale:
            gave_up = _gave_up(found, code)
            yield Explanation("moved_meanwhile", 0.85 + weight - 0.35 * (gave_up > 0.5) + plain, 2, failing)
            yield Explanation("gone_meanwhile", 0.52 + weight + 0.35 * (gave_up > 0.5) + plain, 3, failing)
        if LIMITED.search(code):
            yield Explanation("rate_limit", 0.7 + weight - plain, 2, failing)
        if TIMEOUT.search(told):
            yield Explanation("lost_acknowledgement", 0.55 + weight - plain, min(3, n), failing)
        if MOVED.search(told):
            yield Explanation("redirection", 0.5 + weight, min(5, n), failing)
        if GONE.search(code) or unlisted:
            fit = 0.5 + 0.2 * bool(GONE.search(told)) + 0.15 * unlisted + 0.1 * bool(found.later) + weight + plain
            yield Explanation("retired_midway", fit - 0.3 * (late < 1), min(5, n), failing)
        if PENDING.search(told):
            yield Explanation("late_approval", 0.6 + weight - plain, min(5, n), failing)
        if SHUT.search(told):
            yield Explanation("service_hours", 0.45 + weight - plain, min(5, n), failing)
        if LATE.search(code) and found.added_policy:
            yield Explanation("deadline", 0.85 + weight, 3, failing)
        if REFUSED.search(told) and not found.before.listing:
            yield Explanation("verification_code", 0.3 + weight, 3, failing)
            yield Explanation("confirm_before_write", 0.3 + weight, 3, failing)


def _always_fail(found: Differences, code: str) -> float:
    """Of the tools that fail with a code: the share whose every call fails."""
    tools = {tool for tool, each in found.after.errors if each == code}
    worked = {call.tool for episode in found.after.episodes for call in episode.work if call.error is None}
    return len(tools - worked) / len(tools) if tools else 0.0


def _gave_up(found: Differences, code: str) -> float:
    """Of the episodes in which a call failed with a code: the share that the agent ended by declining."""
    met = [e for e in found.after.episodes if any(call.error == code for call in e.work)]
    return sum(_declined(e) for e in met) / len(met) if met else 0.0


def _calls_unlisted(found: Differences) -> bool:
    """Do calls of tools succeed that the first list did not show?"""
    shown = {tool.name for tool in found.after.listing or ()}
    return bool(shown) and any(
        call.tool not in shown and call.error is None for e in found.after.episodes for call in e.work
    )


# ---------------------------------------------------------------- policy


def _policy(found: Differences) -> Iterator[Explanation]:
    added = found.added_policy
    if not added or found.after.share(lambda e: e.policy) == 0:
        return
    per = found.after.mean(lambda e: len([s for s in sentences(e.policy or "") if s not in found.before.policy]))
    rules = nearest(per, {1: 1, 2: 2, 4: 3, 5: 4})
    clock = sum(bool(CLOCK.search(one)) for one in added) / len(added)
    tools = [t.name for t in found.after.listing or ()]
    mentions = any(name in one for name in tools for one in added)
    listed = found.tools.is_any
    yield Explanation(
        "rule_change", 0.72 - 0.35 * (clock > 0.5) - 0.3 * listed - 0.15 * mentions - 0.1 * (per < 1.2), rules
    )
    yield Explanation("deadline", 0.5 + 0.35 * (clock > 0.5) - 0.3 * listed, 3)
    record = any(re.search(r"record|on file|registered|stored|system|account", one, re.I) for one in added)
    yield Explanation(
        "conflicting_information", 0.5 + 0.15 * record * (1 + (per < 1.6)) - 0.3 * listed - 0.2 * (clock > 0.5), 1
    )
    if not listed:
        yield Explanation("tool_added", 0.35 + 0.3 * bool(found.later), 2)


# ---------------------------------------------------------------- requests


@dataclass
class _Wording:
    """How requests are put, on average. Sentences with a value are the core of a request, others stand around it."""

    new: float  # share of words in the core that are not in use
    around: float  # sentences without a value
    values: float
    small: float  # share of words in the core that are small and in use
    slips: float  # words that are a slip away from one in use
    choices: float  # requests that name several values for one detail
    unknown: float  # words in the core that are not in use

    @classmethod
    def of(cls, texts: Sequence[str], usual: Counter[str], own: int) -> _Wording:
        """`own`: how often a word may stand in these texts themselves and still count as new."""
        common = {word for word, n in usual.items() if n > own}
        small = {word for word in common if len(word) <= 4}
        rows = []
        for text in texts:
            core = " ".join(one for one in sentences(text) if VALUE.search(one)) or text
            said = words(core)
            rows.append(
                (
                    sum(w not in common for w in said) / max(1, len(said)),
                    sum(not VALUE.search(one) for one in sentences(text)),
                    len(VALUE.findall(text)),
                    sum(w in small for w in said) / max(1, len(said)),
                    _misspelt(core, common),
                    bool(EITHER.search(text)),
                    sum(w not in common for w in said),
                )
            )
        return cls(*(mean(column) for column in zip(*rows, strict=True)))


def _requests(found: Differences) -> Iterator[Explanation]:
    """Requests that are put otherwise."""
    usual = Counter(word for text in found.before.queries for word in set(words(text)))
    was = _Wording.of(found.before.queries, usual, 1)
    now = _Wording.of(found.after.queries, usual, 0)
    calm = 0.35 * (found.heard > 0.2) + 0.35 * found.tools.is_any + 0.2 * bool(found.new_errors)
    calm += 0.4 * bool(found.added_policy)
    new, around = now.new - was.new, now.around - was.around
    slips, small = now.slips - was.slips, was.small - now.small
    asked = found.asked > 0.35
    open_ = 0.3 * asked
    slipping = slips / max(0.5, now.unknown - was.unknown)
    if slips > 0.4:
        fit = 0.35 + 0.5 * min(1.0, slipping) + 0.03 * min(3.0, slips) - calm - 0.3 * (around > 0.8) - open_
        yield Explanation("typos", fit, nearest(slips, {1: 1, 2: 2, 3: 4, 4: 6, 5: 9}))
    cut = min(1.0, max(0.0, (small - 0.1) / 0.12))
    if small > 0.1:
        severity = nearest(small, {1: 0.12, 2: 0.18, 3: 0.25, 4: 0.3, 5: 0.35})
        yield Explanation(
            "terse_query", 0.4 + 0.5 * cut - calm - 0.3 * (around > 0.8) - open_ - 0.2 * (slips > 1.5), severity
        )
    if around > 0.4:
        fit = 0.5 + 0.4 * min(1.0, around) - calm - min(0.5, 3 * max(0.0, new - 0.06)) - open_
        yield Explanation("verbose_query", fit, nearest(around, {1: 1, 2: 2, 3: 4, 4: 6, 5: 9}))
    if new > 0.05:
        fit = 0.4 + 0.5 * min(1.0, new / 0.25) - calm - 0.35 * cut - 0.3 * (slipping > 0.6) - open_
        yield Explanation("paraphrase", fit, nearest(around, {1: 0.2, 2: 0.8, 3: 1.2, 4: 2.2, 5: 3.2}))
    if asked or now.choices - was.choices > 0.3:
        values, choices = now.values - was.values, now.choices - was.choices
        several = 0.25 * (values > 0.3) + 0.25 * min(1.0, max(0.0, choices))
        heard = 0.3 * (found.heard > 0.2)
        yield Explanation("ambiguous", 0.48 + several + 0.1 * asked - heard, 1 if found.asked < 1.4 else 3)
        fewer = 0.2 * (values < -0.1) + 0.1 * (choices < 0.2)
        severity = max(1, min(5, round(found.asked)))
        yield Explanation("underspecified", 0.62 * asked + fewer - heard - 0.5 * several, severity)


def _misspelt(text: str, common: set[str]) -> int:
    """Words that are not in use and a slip away from one that is."""
    return sum(w not in common and len(w) > 2 and _is_slip(w, common) for w in words(text))


def _is_slip(word: str, common: set[str]) -> bool:
    for nth in range(len(word)):
        if word[:nth] + word[nth + 1 :] in common and len(word) > 3:
            return True
        swapped = word[:nth] + word[nth + 1 : nth + 2] + word[nth] + word[nth + 2 :]
        if swapped != word and swapped in common:
            return True
        for letter in "abcdefghijklmnopqrstuvwxyz":
            if len(word) > 3 and word[:nth] + letter + word[nth + 1 :] in common:
                return True
            if word[:nth] + letter + word[nth:] in common:
                return True
    return False


# ---------------------------------------------------------------- what the user says midway, and endings


def _midway(found: Differences) -> Iterator[Explanation]:
    """The user speaks up unasked."""
    more = found.change(lambda e: len(e.heard) + max(0, len(e.replies) - len(e.said)))
    replied = found.change(lambda e: len(e.replies))
    if more < 0.2 and replied < 0.2:
        return
    per = found.after.mean(lambda e: len(e.heard) or None)
    heard = found.heard
    steps = found.steps
    size = mean([len(words(t)) for e in found.after.episodes for t in e.heard] or [0])
    asked_first = found.asked > 0.2 and heard < 0.2
    often = heard > 0.1 and found.after.share(lambda e: len(e.heard) > 1) > 0.25 * found.after.share(lambda e: e.heard)
    fit = 0.5 + 0.42 * often - 0.4 * (heard < 0.1)
    yield Explanation("several_changes", fit, nearest(per, {1: 3, 3: 4, 4: 5, 5: 6}))
    once = heard > 0.2 and not often
    yield Explanation("changed_mind", 0.5 + 0.3 * once - 0.25 * asked_first - 0.25 * (size > 18), 3)
    long = min(1.0, max(0.0, size - 10) / 10)
    yield Explanation("goal_switch", 0.35 + 0.55 * once * long + 0.05 * (steps > 1) - 0.25 * asked_first, 3)
    follow = found.change(lambda e: len(e.replies))
    yield Explanation(
        "follow_up",
        0.32 + 0.35 * (follow > found.asked + 0.3) + 0.2 * (steps > 1.5) - 0.3 * (heard > 0.5),
        max(1, min(5, round(follow))),
    )


def _endings(found: Differences) -> Iterator[Explanation]:
    """More refusals, and nothing else to see."""
    declined = found.change(lambda e: float(_declined(e)) if e.final is not None else None)
    if declined < 0.2:
        return
    quiet = not found.tools.is_any and not found.added_policy
    fit = 0.45 + 0.4 * min(1.0, declined) - 0.25 * (not quiet) - 0.15 * bool(found.new_errors)
    yield Explanation("unsolvable", fit, 3)
    yield Explanation("gone_meanwhile", 0.3 + 0.25 * declined - 0.25 * (not quiet), 3)


def _declined(episode: ObservedEpisode) -> bool:
    ended = [call.args for call in episode.calls if call.tool == FINISH and isinstance(call.args, dict)]
    return bool(refused(episode)) or any(args.get("status") == "cannot" for args in ended)
