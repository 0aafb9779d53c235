"""Whether a text commits to every expected value."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter
from typing import Any

from crosswind.text.answers.cues import ANSWER, CUES, Rivalry, by_answer, roles_of
from crosswind.text.answers.finders import FINDERS, candidate_places
from crosswind.text.answers.judgement import judge_claims
from crosswind.text.answers.reading import NAMED, AnswerText, Claim, Expected, Kind, start_of
from crosswind.text.answers.request import asked_roles
from crosswind.text.values.numbers import is_close
from crosswind.text.values.plain import plain_text
from crosswind.text.values.reading import number_of


def is_paired(reading: AnswerText, expected: Sequence[Expected], given: AnswerText) -> bool:
    """Whether names and the values listed after them occur in matching order."""
    pairs = [
        (left, right)
        for left, right in pairwise(expected)
        if left.kind in NAMED and right.kind not in NAMED and right.kind != "yesno"
    ]
    for kind in {right.kind for _, right in pairs}:
        same = [pair for pair in pairs if pair[1].kind == kind]
        if (
            len(same) > 1
            and len({str(right.value) for _, right in same}) == len(same)
            and not _in_order(reading, same, given)
        ):
            return False
    return True


def _in_order(reading: AnswerText, pairs: Sequence[tuple[Expected, Expected]], given: AnswerText) -> bool:
    """Whether the first mentions of the names are in the order of the first mentions of their values."""
    return _order(reading, [left for left, _ in pairs], given) == _order(reading, [right for _, right in pairs], given)


def _order(reading: AnswerText, expected: Sequence[Expected], given: AnswerText) -> list[int]:
    """The indices of expected values by first mention."""
    firsts = []
    for index, item in enumerate(expected):
        found = [claim.start for claim in FINDERS[item.kind](reading, item, given) if claim.match]
        firsts.append((min(found, default=0), index))
    return [index for _, index in sorted(firsts)]


def is_assigned(reading: AnswerText, expected: Sequence[Expected], given: AnswerText) -> bool:
    """Whether a start and an end that the request asks for are not given the other way round."""
    asked = asked_roles(given.low)
    for kind in ("time", "date"):
        wanted = [item for item in expected if item.kind == kind]
        if len(asked) != 2 or len(wanted) != 2:
            continue
        for item, role in zip(wanted, asked, strict=True):
            claims = FINDERS[kind](reading, item, given)
            said = {said for claim, said in zip(claims, roles_of(reading, claims), strict=True) if claim.match and said}
            if said and role not in said:
                return False
    return True


# ---------------------------------------------------------------- yes and no

_YES_NO = re.compile(
    r"(?P<both>\byes\s(?:and|or)\sno\b|\byes\s?/\s?no\b)"
    r"|(?P<not>(?:\bnot|n't)\s(?:quite\s|entirely\s|really\s)?)?\b(?:(?P<yes>yes|yep|yeah|yup|affirmative|(?:true"
    r"|correct|right)(?=\s*(?:[.,!;:}\])*\"'–—-]|$|that\b|\n)))|(?P<no>nope|nah|(?:false|incorrect"
    r"|wrong)(?=\s*(?:[.,!;:}\])*\"'–—-]|$|that\b|\n))"
    r"|(?P<bare>no(?![\w'-]))))(?![a-z])"
)
_NO_AFTER = re.compile(
    r"\s*[*_\"'`]{0,3}\s*(?:[.,!;:}(\])–—-]|$|\n|it\b|there\b|you\b|the\b|they\b|he\b|she\b|that\b|this\b|i\b"
    r"|we\b|not\b)"
)
_UNSURE = re.compile(
    r"\b(?:not\s(?:sure|certain)|unsure|uncertain|maybe|perhaps|possibly|probably|do\snot\sknow|don't\sknow|unclear"
    r"|(?:cannot|can't|could\snot|couldn't)\s(?:say|tell|confirm|determine|verify))\b"
)


def _polarity(match: re.Match[str], low: str) -> bool | None:
    """Whether a match says yes or no; None if it says neither."""
    if match["both"]:
        return None
    if match["bare"] and not _NO_AFTER.match(low, match.end("bare")):
        return None
    return bool(match["yes"]) != bool(match["not"])


def answers_yes_no(reading: AnswerText, value: Any) -> bool:
    """Whether a text answers a yes-or-no question as expected."""
    if isinstance(value, str):
        value = value.strip().lower() in ("yes", "true")
    low = reading.low
    unsure = {reading.sentence(match.start()) for match in _UNSURE.finditer(low)}
    verdicts: list[tuple[int, bool]] = []
    for match in _YES_NO.finditer(low):
        index = reading.sentence(match.start())
        polarity = _polarity(match, low)
        if polarity is not None and index not in unsure and not reading.sentences[index].question:
            verdicts.append((match.start(), polarity))
    for cue in ANSWER.finditer(low):
        at = bisect_left(verdicts, cue.end(), key=itemgetter(0))
        if at < len(verdicts) and verdicts[at][0] - cue.end() < 12:
            return verdicts[at][1] is bool(value)
    if not verdicts or any(reading.sentences[index].start < verdicts[0][0] for index in unsure):
        return False
    return verdicts[0][1] is bool(value)


# ---------------------------------------------------------------- the decision

MOST_CLAIMS = 200


def _echoes(claim: Claim, kind: Kind, given: AnswerText, expected: Expected) -> bool:
    """Whether a claim only repeats a value of the request."""
    if kind == "choice" or not given.low:
        return False
    if kind in NAMED:
        return bool(candidate_places(given, str(claim.value), kind)) and not candidate_places(
            given, str(expected.value), kind
        )
    if kind in ("number", "money"):
        return round(claim.value, 6) in given.quantities
    found = given.times if kind == "time" else given.dates(int(str(claim.value)[:4]))
    return any(item.value == claim.value for item in found)


def _is_allied(claim: Claim, expected: Expected, allies: Sequence[Expected]) -> bool:
    """Whether a claim is the value of another expected one."""
    for ally in allies:
        if ally.kind in NAMED:
            if expected.kind in NAMED and plain_text(str(ally.value)).lower() == plain_text(str(claim.value)).lower():
                return True
        elif ally.kind in ("number", "money"):
            wanted = number_of(ally.value)
            if isinstance(claim.value, float) and wanted is not None and is_close(claim.value, wanted, ally.tolerance):
                return True
        elif ally.kind == expected.kind and str(ally.value)[:10] == str(claim.value):
            return True
    return False


def _is_stated(reading: AnswerText, expected: Expected, allies: Sequence[Expected], given: AnswerText) -> bool:
    """Whether a text commits to one expected value."""
    if expected.kind == "yesno":
        return answers_yes_no(reading, expected.value)
    own, rivals = _claimed(reading, expected, allies, given)
    rivals = [rival for rival in rivals if not rival.dismissed]
    if not own or (all(claim.soft for claim in own) and any(not rival.soft for rival in rivals)):
        return False
    if any(claim.words or not claim.soft for claim in own):
        rivals = [rival for rival in rivals if not rival.soft]
    return not rivals or _is_committed(reading, expected.kind, own, rivals, given)


@lru_cache(maxsize=8)
def _read(text: str) -> AnswerText:
    """A reading, kept while the same message is asked what it states and what it contradicts."""
    return AnswerText(text)


def contradicts(text: str, facts: Sequence[Expected], *, given: str = "") -> list[Expected]:
    """The facts that a text states otherwise: it commits to values of their kind, and to none that is right."""
    reading, request = _read(text), _read(given)
    return [fact for fact in facts if _is_contradicted(reading, fact, request)]


def _is_contradicted(reading: AnswerText, fact: Expected, given: AnswerText) -> bool:
    if fact.kind == "money" and not reading.moneys:
        return False
    if all(claim.match for claim in FINDERS[fact.kind](reading, fact, given)):
        return False  # nothing else of its kind is said
    own, rivals = _claimed(reading, fact, (), given)
    firm = [rival for rival in rivals if not (rival.soft or rival.alternative)]
    if fact.kind != "id":  # "R3968912 is cancelled" dismisses nothing
        firm = [rival for rival in firm if not rival.dismissed]
    if own and firm and fact.kind == "name":
        return not _is_committed(reading, fact.kind, own, firm, given)
    if own or not firm:
        return False
    return not any(_claimed(reading, replace(fact, value=value), (), given)[0] for value in fact.alike)


def _claimed(
    reading: AnswerText, expected: Expected, allies: Sequence[Expected], given: AnswerText
) -> tuple[list[Claim], list[Claim]]:
    """The claims of a text that it stands by: those of the expected value, and those of others."""
    names = [ally for ally in allies if ally.kind == "name"]
    if len(names) == 1 and not expected.about:
        expected = replace(expected, about=(str(names[0].value),), rivals=names[0].others)
    found = FINDERS[expected.kind](reading, expected, given)
    if len(found) > MOST_CLAIMS:
        found = found[: MOST_CLAIMS // 2] + found[-MOST_CLAIMS // 2 :]
    claims = judge_claims(reading, found, expected, allies, given.low) if found else []
    claims = [claim for claim in claims if not claim.dropped]
    rivals = [
        claim
        for claim in claims
        if not (claim.match or claim.approximate)
        and (claim.now or not _echoes(claim, expected.kind, given, expected))
        and not _is_allied(claim, expected, allies)
    ]
    return [claim for claim in claims if claim.match and not claim.approximate and not claim.alternative], rivals


# A text that takes something back: of several values the last counts.
_SIGNAL = re.compile(
    r" (?:correction|corrected|correcting|sorry|apologi\w+|mistake|mistaken|wrong|outdated|obsolete|superseded"
    r"|supersedes"
    r"|replaced|withdrawn|rescinded|revoked|void|no longer valid|not (?:believe|trust|endorse)|misread|typo"
    r"|slip|realised"
    r"|realized|scratch|ignore|disregard|recount\w*|recalculat\w+|on second thought|i was wrong|stale"
    r"|out of date|expired|draft|final|erratum|hmm|duplicates?|noticed|double entry|then i saw|i saw that"
    r"|since been|look(?:ed|ing)? again|a leftover|in error|retract|take back|took back|withdraw|instead of) "
)


def _is_committed(reading: AnswerText, kind: Kind, own: list[Claim], rivals: list[Claim], given: AnswerText) -> bool:
    """Whether the cues of a text single out the expected value among its rivals."""
    rivalry = Rivalry(reading, sorted(own + rivals, key=start_of), kind, given)
    if _SIGNAL.search(reading.spoken):
        last = rivalry.single(rivalry.outside(rivalry.claims)[-1:])
        if last is not None:
            return last
    verdict = by_answer(rivalry)
    if verdict is not None or any(rival.alternative and rival.start > own[0].start for rival in rivals):
        return bool(verdict)
    if any(rival.alternative for rival in rivals):
        rivals = [rival for rival in rivals if not rival.alternative]
        return not rivals or _is_committed(reading, kind, own, rivals, given)
    for cue in CUES:
        verdict = cue(rivalry)
        if verdict is not None:
            return verdict
    return False


def states(text: str, expected: Sequence[Expected], *, given: str = "") -> bool:
    """Whether a text commits to every expected value; docs/answers.md has the rule."""
    reading, request = _read(text), _read(given)
    for index, item in enumerate(expected):
        allies = (*expected[:index], *expected[index + 1 :])
        if not _is_stated(reading, item, allies, request):
            return False
    if len(expected) < 2:
        return True
    return is_paired(reading, expected, request) and is_assigned(reading, expected, request)
