"""Whether a text commits to every expected value."""

from __future__ import annotations

from collections.abc import Sequence

from crosswind.text.answers.claims import NAMED, Claim, Expected, Kind, start_of
from crosswind.text.answers.cues import CUES, by_answer
from crosswind.text.answers.finders import FINDERS
from crosswind.text.answers.judgement import judge_claims
from crosswind.text.answers.lists import is_assigned, is_paired
from crosswind.text.answers.names import candidate_places
from crosswind.text.answers.reading import AnswerText
from crosswind.text.answers.rivalry import Rivalry
from crosswind.text.answers.yes_no import answers_yes_no
from crosswind.text.values.number import is_close
from crosswind.text.values.plain import plain_text
from crosswind.text.values.reading import number_of

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
    found = FINDERS[expected.kind](reading, expected, given)
    if len(found) > MOST_CLAIMS:
        found = found[: MOST_CLAIMS // 2] + found[-MOST_CLAIMS // 2 :]
    claims = judge_claims(reading, found, expected, allies, given.low)
    claims = [claim for claim in claims if not claim.dropped]
    rivals = [
        claim
        for claim in claims
        if not (claim.match or claim.approximate or claim.dismissed)
        and not _echoes(claim, expected.kind, given, expected)
        and not _is_allied(claim, expected, allies)
    ]
    own = [claim for claim in claims if claim.match and not claim.approximate and not claim.alternative]
    if not own or (all(claim.soft for claim in own) and any(not rival.soft for rival in rivals)):
        return False
    if any(claim.words or not claim.soft for claim in own):
        rivals = [rival for rival in rivals if not rival.soft]
    return not rivals or _is_committed(reading, expected.kind, own, rivals, given)


def _is_committed(reading: AnswerText, kind: Kind, own: list[Claim], rivals: list[Claim], given: AnswerText) -> bool:
    """Whether the cues of a text single out the expected value among its rivals."""
    rivalry = Rivalry(reading, sorted(own + rivals, key=start_of), kind, given)
    verdict = by_answer(rivalry)
    if verdict is not None or any(rival.alternative for rival in rivals):
        return bool(verdict)
    for cue in CUES:
        verdict = cue(rivalry)
        if verdict is not None:
            return verdict
    return False


def states(text: str, expected: Sequence[Expected], *, given: str = "") -> bool:
    """Whether a text commits to every expected value; the package's docstring has the rule."""
    reading, request = AnswerText(text), AnswerText(given)
    for index, item in enumerate(expected):
        allies = (*expected[:index], *expected[index + 1 :])
        if not _is_stated(reading, item, allies, request):
            return False
    if len(expected) < 2:
        return True
    return is_paired(reading, expected, request) and is_assigned(reading, expected, request)
