"""Kinds that show in errors, in the policy, in requests and in what the user says; no list of tools is needed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from statistics import mean

from crosswind.core.types import FINISH
from crosswind.watch.channels import words
from crosswind.watch.differences import Differences, failures
from crosswind.watch.hypothesis import Hypothesis, layer_of, nearest

TRANSIENT = re.compile(r"unavail|busy|overload|temporar|transient|retry|try again|again|50[023]|EAGAIN", re.I)
TIMEOUT = re.compile(r"time.?out|timed out|no answer|deadline|504|408", re.I)
LIMITED = re.compile(r"rate|limit|throttl|too.?many|quota|429", re.I)
MOVED = re.compile(r"moved|deprecat|redirect|renamed|replaced|301|308", re.I)
GONE = re.compile(r"gone|retired|removed|no longer|410|unknown_tool|not.?found.*tool", re.I)
STALE = re.compile(r"changed|conflict|stale|modified|precondition|version|409|412", re.I)
LATE = re.compile(r"too.?late|closed|deadline|expired|past", re.I)
PENDING = re.compile(r"pending|approv|await|review", re.I)
SHUT = re.compile(r"closed|hours|down until|opens|maintenance|not yet", re.I)
REFUSED = re.compile(r"refus|confirm|denied|forbid|token|ticket|code|40[13]", re.I)
CLOCK = re.compile(r"\b\d{1,2}[:.h]\d{2}\b")
EITHER = re.compile(r"\bor\b|\beither\b|/", re.I)


def named_by_talk(found: Differences) -> Iterator[Hypothesis]:
    """Everything that errors, the policy and the talk would fit."""
    yield from _errors(found)
    yield from _policy(found)
    if found.before.queries and found.after.queries:
        yield from _requests(found)
    yield from _midway(found)
    yield from _endings(found)


# ---------------------------------------------------------------- errors


def _errors(found: Differences) -> Iterator[Hypothesis]:
    errors = found.new_errors
    if not errors:
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
        if TRANSIENT.search(told) or healed > 0.6:
            fit = 0.55 + 0.2 * bool(TRANSIENT.search(told)) + 0.12 * healed + weight + plain
            severity = nearest(n * max(1.0, tries), {1: 1, 2: 2, 3: 4, 4: 6, 5: 9})
            text = next(iter(sorted(found.after.texts.get(code, {""}))), "")
            layer = (
                layer_of("transient_error", tools=failing, times=max(1, round(tries)), text=text)[0]
                if failing
                else None
            )
            yield Hypothesis("transient_error", fit - 0.3 * bool(found.later), severity, failing, (), layer)
            yield Hypothesis(
                "unlisted_tools", fit - 0.2 + 0.4 * bool(found.later) - 0.1 * (late < 1), min(5, n), failing
            )
        if not TRANSIENT.search(told) and healed < 0.2 and same:
            doomed = _always_fail(found, code)
            fit = 0.45 + 0.3 * doomed + 0.2 * (found.refusals > 0.1)
            layer = (
                layer_of("fatal_error", tool=failing[0], text=next(iter(found.after.texts[code]), ""))[0]
                if failing and found.after.texts[code]
                else None
            )
            yield Hypothesis("fatal_error", fit, 3, failing, (), layer)
        if STALE.search(told):
            refused = found.refusals
            yield Hypothesis("moved_meanwhile", 0.82 + weight - 0.3 * (refused > 0.3) + plain, 2, failing)
            yield Hypothesis("gone_meanwhile", 0.55 + weight + 0.35 * (refused > 0.3) + plain, 3, failing)
        if LIMITED.search(code):
            yield Hypothesis("rate_limit", 0.7 + weight - plain, 2, failing)
        if TIMEOUT.search(told):
            yield Hypothesis("lost_acknowledgement", 0.55 + weight - plain, min(3, n), failing)
        if MOVED.search(told):
            yield Hypothesis("redirection", 0.5 + weight, min(5, n), failing)
        if GONE.search(told) or unlisted:
            fit = 0.5 + 0.2 * bool(GONE.search(told)) + 0.15 * unlisted + 0.1 * bool(found.later) + weight + plain
            yield Hypothesis("retired_midway", fit - 0.3 * (late < 1), min(5, n), failing)
        if PENDING.search(told):
            yield Hypothesis("late_approval", 0.6 + weight - plain, min(5, n), failing)
        if SHUT.search(told):
            yield Hypothesis("service_hours", 0.45 + weight - plain, min(5, n), failing)
        if LATE.search(code) and found.added_policy:
            yield Hypothesis("deadline", 0.85 + weight, 3, failing)
        if REFUSED.search(told) and not found.before.listing:
            yield Hypothesis("verification_code", 0.3 + weight, 3, failing)
            yield Hypothesis("confirm_before_write", 0.3 + weight, 3, failing)


def _always_fail(found: Differences, code: str) -> float:
    """Of the tools that fail with a code: the share whose every call fails."""
    tools = {tool for tool, each in found.after.errors if each == code}
    worked = {call.tool for episode in found.after.episodes for call in episode.work if call.error is None}
    return len(tools - worked) / len(tools) if tools else 0.0


def _calls_unlisted(found: Differences) -> bool:
    """Do calls of tools succeed that the first list did not show?"""
    shown = {tool.name for tool in found.after.listing or ()}
    return bool(shown) and any(
        call.tool not in shown and call.error is None for e in found.after.episodes for call in e.work
    )


# ---------------------------------------------------------------- policy


def _policy(found: Differences) -> Iterator[Hypothesis]:
    added = found.added_policy
    if not added or found.after.share(lambda e: e.policy) == 0:
        return
    per = found.after.mean(lambda e: len([s for s in _sentences(e.policy) if s not in found.before.policy]))
    rules = nearest(per, {1: 1, 2: 2, 4: 3, 5: 4})
    clock = sum(bool(CLOCK.search(one)) for one in added) / len(added)
    tools = [t.name for t in found.after.listing or ()]
    mentions = any(name in one for name in tools for one in added)
    listed = found.tools.is_any
    yield Hypothesis(
        "rule_change", 0.72 - 0.35 * (clock > 0.5) - 0.3 * listed - 0.15 * mentions - 0.1 * (per < 1.2), rules
    )
    yield Hypothesis("deadline", 0.5 + 0.35 * (clock > 0.5) - 0.3 * listed, 3)
    record = any(re.search(r"record|on file|registered|stored|system|account", one, re.I) for one in added)
    yield Hypothesis(
        "conflicting_information", 0.5 + 0.15 * record + 0.15 * (per < 1.6) - 0.3 * listed - 0.2 * (clock > 0.5), 1
    )
    if not listed:
        yield Hypothesis("tool_added", 0.35 + 0.3 * bool(found.later), 2)


def _sentences(text: str | None) -> list[str]:
    from crosswind.watch.channels import sentences

    return sentences(text or "")


# ---------------------------------------------------------------- requests


def _requests(found: Differences) -> Iterator[Hypothesis]:
    was, now = found.before.queries, found.after.queries
    length = _median(map(len, now)) / max(1.0, _median(map(len, was)))
    counts = Counter(word for text in was for word in set(words(text)))
    common = {word for word, n in counts.items() if n > 1 or len(was) < 10}
    unknown = mean(sum(w not in common for w in words(t)) for t in now) - mean(_unseen(t, counts) for t in was)
    known_share = mean(sum(w in common for w in words(t)) / max(1, len(words(t))) for t in now)
    short = _short(now) - _short(was)
    asked = found.asked
    stops = mean(_stops(t) for t in now) - mean(_stops(t) for t in was)
    opening = _openings(now) - _openings(was)
    near = mean(_misspelt(t, common, counts) for t in now) - mean(_misspelt(t, common, counts) for t in was)
    either = mean(bool(EITHER.search(t)) for t in now) - mean(bool(EITHER.search(t)) for t in was)
    mid = found.heard > 0.2
    calm = 0.35 * mid + 0.35 * bool(found.tools.is_any) + 0.3 * (bool(found.new_errors) and not asked > 0.2)
    longer = min(1.0, max(0.0, (length - 1.15) / 0.5))
    yield Hypothesis(
        "verbose_query",
        0.45 + 0.45 * longer + 0.1 * (stops > 0.8) - calm - 0.4 * (longer == 0),
        nearest(stops, {1: 1, 2: 2, 3: 4, 4: 6, 5: 9}),
    )
    cut = min(1.0, max(0.0, -short / 0.12))
    terse = 0.4 + 0.5 * cut - calm - 0.5 * (length > 0.95) - 0.2 * (asked > 0.2)
    yield Hypothesis("terse_query", terse, 5 if stops < -0.5 else 4 if length < 0.6 else 3 if length < 0.75 else 2)
    if near > 0.4:
        yield Hypothesis(
            "typos", 0.55 + 0.12 * min(3.0, near) - calm - 0.3 * longer, nearest(near, {1: 1, 2: 2, 3: 4, 4: 6, 5: 9})
        )
    if asked > 0.2:
        yield Hypothesis("ambiguous", 0.5 + 0.45 * min(1.0, max(0.0, either)) - 0.3 * mid, 1 if asked < 1.5 else 3)
        yield Hypothesis(
            "underspecified",
            0.72 - 0.45 * min(1.0, max(0.0, either)) - 0.3 * mid + 0.1 * (length < 0.95),
            max(1, min(5, round(asked))),
        )
    elif either > 0.4:
        yield Hypothesis("ambiguous", 0.6 - calm, 2)
    other = 1 - known_share
    fit = (
        0.3
        + 0.6 * min(1.0, other / 0.25)
        - 0.35 * longer
        - 0.35 * cut * (length < 0.9)
        - calm
        - 0.2 * (near > 0.8)
        - 0.3 * (asked > 0.2)
    )
    yield Hypothesis("paraphrase", fit + 0.1 * (opening < -0.2), nearest(stops, {1: 0, 2: 1, 4: 2, 5: 3}))
    if unknown > 1.5 and not longer:
        yield Hypothesis("entity_reskin", 0.42 + 0.05 * min(4.0, unknown) - calm, 3)


def _median(values: object) -> float:
    ordered = sorted(values)  # type: ignore[call-overload]
    return float(ordered[len(ordered) // 2]) if ordered else 0.0


def _unseen(text: str, counts: Counter[str]) -> int:
    return sum(counts[w] <= 1 for w in words(text))


def _short(texts: list[str]) -> float:
    """The share of words of up to three letters, most of which only join others."""
    return mean(sum(len(w) <= 3 for w in words(t)) / max(1, len(words(t))) for t in texts)


def _stops(text: str) -> int:
    return len(re.findall(r"[.!?;](?:\s|$)", text))


def _openings(texts: list[str]) -> float:
    """How often requests begin with the same word."""
    counts = Counter((words(t) or [""])[0] for t in texts)
    return counts.most_common(1)[0][1] / max(1, len(texts))


def _misspelt(text: str, common: set[str], counts: Counter[str]) -> int:
    """Words that are a slip away from one that is common."""
    return sum(w not in common and counts[w] <= 1 and len(w) > 2 and _is_slip(w, common) for w in words(text))


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


def _midway(found: Differences) -> Iterator[Hypothesis]:
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
    yield Hypothesis(
        "several_changes", 0.5 + 0.42 * (per >= 2.2) - 0.4 * (heard < 0.2), nearest(per, {1: 3, 3: 4, 4: 5, 5: 6})
    )
    once = heard > 0.2 and per < 1.8
    yield Hypothesis("changed_mind", 0.5 + 0.3 * once - 0.25 * asked_first - 0.15 * (steps > 2), 3)
    long = min(1.0, size / 14)
    yield Hypothesis("goal_switch", 0.42 + 0.3 * once * long + 0.1 * (steps > 1) - 0.25 * asked_first, 3)
    follow = found.change(lambda e: len(e.replies))
    yield Hypothesis(
        "follow_up",
        0.42 + 0.35 * (follow > 0.3 and heard < 0.2) + 0.2 * (steps > 1.5) - 0.3 * (heard > 0.5),
        max(1, min(5, round(follow))),
    )


def _endings(found: Differences) -> Iterator[Hypothesis]:
    """More refusals, and nothing else to see."""
    declined = found.change(lambda e: float(_declined(e)) if e.final is not None else None)
    if declined < 0.2:
        return
    quiet = not found.tools.is_any and not found.added_policy
    fit = 0.45 + 0.4 * min(1.0, declined) - 0.25 * (not quiet) - 0.15 * bool(found.new_errors)
    yield Hypothesis("unsolvable", fit, 3)
    yield Hypothesis("gone_meanwhile", 0.3 + 0.25 * declined - 0.25 * (not quiet), 3)


def _declined(episode: object) -> bool:
    from crosswind.watch.channels import refused
    from crosswind.watch.observed import ObservedEpisode

    assert isinstance(episode, ObservedEpisode)
    ended = [call.args for call in episode.calls if call.tool == FINISH and isinstance(call.args, dict)]
    return bool(refused(episode)) or any(args.get("status") == "cannot" for args in ended)
