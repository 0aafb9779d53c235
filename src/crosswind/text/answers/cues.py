"""The cues that single out one of several claimed values."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import Any

from crosswind.text.answers import request
from crosswind.text.answers.finders import EACH, LEFT_AFTER, LEFT_BEFORE
from crosswind.text.answers.reading import MARKUP, NAMED, AnswerText, Claim, Context, Kind, are_linked
from crosswind.text.sentences import spoken
from crosswind.text.values.plain import is_inside

_COPULA = re.compile(
    r"(?:\b(?:is|are|=|was|makes?|be|equals|costs?|to|at|of|pay|says)|[:=])(?:\s(?:the|hotel|only|just|then))?\s?$"
)
_BREAKDOWN = re.compile(r"[^,;.:\n]{0,40}:\s")


def distinct(claims: Iterable[Claim]) -> set[Any]:
    """The values of claims, all matching ones as one."""
    return {"expected" if claim.match else (claim.value,) for claim in claims}


def _grouped(low: str, claims: list[Claim], chosen: list[Claim]) -> list[Claim]:
    """The chosen claims with those coordinated with them."""
    starts = {claim.start for claim in chosen}
    result = list(chosen)
    for (left, right), linked in zip(pairwise(claims), are_linked(low, claims)[1:], strict=True):
        if linked and (left.start in starts) != (right.start in starts):
            result.append(right if left.start in starts else left)
            starts.add(result[-1].start)
    return result


@dataclass(slots=True)
class Rivalry:
    """The claims that compete in a text, and the request that they answer."""

    reading: AnswerText
    claims: list[Claim]
    kind: Kind
    given: AnswerText

    def single(self, chosen: list[Claim]) -> bool | None:
        """Whether the chosen claims single out the expected value; None if they single out none."""
        if not chosen:
            return None
        values = distinct(_grouped(self.reading.low, self.claims, chosen))
        return values == {"expected"} if len(values) == 1 else None

    def outside(self, claims: list[Claim]) -> list[Claim]:
        """The claims that are not asides in parentheses, or all of them if all are."""
        claims = [claim for claim in claims if not is_inside(claim.start, self.reading.parens)] or claims
        if self.kind in ("number", "money") and len(claims) > 1:
            # "14 sessions: 5 on Friday, 9 on Saturday" is one value and its breakdown.
            head = _BREAKDOWN.match(self.reading.low, claims[0].end, claims[1].start)
            end = self.reading.sentences[self.reading.sentence(claims[1].start)].end
            first = bisect_left(self.reading.numbers, claims[1].start, key=itemgetter(0))
            parts = [item for item in self.reading.numbers[first : first + 2] if item.start < end]
            return claims[:1] if head and len(parts) == 2 else claims
        return claims

    def between(self, start: int, end: int) -> list[Claim]:
        return [claim for claim in self.claims if start <= claim.start < end]

    def best(self, claims: list[Claim]) -> list[Claim]:
        """Of the claims after a cue, all if they agree, else those outside parentheses, else those after a copula."""
        for chosen in (claims, self.outside(claims)):
            if len(distinct(chosen)) == 1:
                return chosen
        copula = [claim for claim in self.outside(claims) if _COPULA.search(claim.context.before)]
        return copula if len(distinct(copula)) == 1 else []


# ---------------------------------------------------------------- starts and ends: which of two dates or times is which

_ROLE = re.compile(
    r"\b(?:(?P<start>open(?:s|ed|ing)?|start(?:s|ing)?|begin(?:s|ning)?|depart(?:s|ure|ing)?|leav(?:es?|ing)|from"
    r"|check-?\s?in"
    r"|boards?|boarding)|(?P<end>clos(?:es?|ing)|end(?:s|ing)?|finish(?:es)?|arriv(?:es?|al|ing)|until|till|to"
    r"|check-?\s?out|returns?|back|reach(?:es)?))\b"
)
_DASH = re.compile(r"\s?(?:-|–|—|to|until|till)\s?")


def roles_of(reading: AnswerText, claims: list[Claim]) -> list[str]:
    """For each claimed date or time whether it is said to be a start or an end ("" if neither)."""
    roles: list[str] = []
    for index, claim in enumerate(claims):
        previous = claims[index - 1].end if index else 0
        gap = reading.low[previous : claim.start]
        if index and len(gap) < 12 and _DASH.fullmatch(gap):
            roles[-1] = roles[-1] or "start"
            roles.append("end")
            continue
        last = ""
        sentence = reading.sentences[reading.sentence(claim.start)]
        for match in _ROLE.finditer(reading.low, max(previous, sentence.start, claim.start - 60), claim.start):
            last = match.lastgroup or ""
        roles.append(last)
    return roles


# ---------------------------------------------------------------- the cues

ANSWER = re.compile(
    r"\b(?:final\s(?:answer|result)|answer|result|solution|conclusion|my\s(?:pick|choice|recommendation))"
    r"[\"'*_`\s]{0,6}(?:\bis\b|\bare\b|=|:|–|—|\bwould\sbe\b|\bshould\sbe\b|\bremains\b)|\\boxed\{"
    r"|\b(?:correction|no,?\swait|wait,|scratch\sthat|oops|on\ssecond\sthought|i\swas\swrong|let\sme\scorrect"
    r"|(?:a|my)\smistake)\b"
)
_CONCLUSION = re.compile(
    r"\b(?:so(?!\s(?:that|far|many|much|long))|therefore|thus|hence|consequently|overall|altogether|in\stotal|in\sall"
    r"|total(?:s(?!:)|ling)?|sums?|(?:that|which)\s(?:makes|gives|leaves|means)|makes|making|giving|comes?\sto"
    r"|amounts?\sto|adds?\sup\sto|equals|leaving|in\sshort|actually)\b"
)
_WHICH_IS = re.compile(r"(?:\b(?:which|that)\s(?:is|are|equals)|\bi\.e\.,?|\bnamely|\bin\sother\swords,?|\bmake)\s?$")
_BUT_ONLY = re.compile(r"\bbut\s(?:only\s)?(?:the\s)?(?:one\sat\s)?$|\bbut\sonly$")
_HAS = re.compile(r"\s(?:one\s|slot\s)?(?:has|have|fits|works|can|offers)\b")
_TOTAL_AFTER = re.compile(
    r"(?:\s[a-z]+){0,2}\s?\(?(?:in\s(?:total|all|sum)|altogether|overall|total|all\s(?:together|in|told)|combined)\b"
)
_SUPERLATIVE = re.compile(
    r"(?<!second\s)(?<!third\s)(?<!next\s)\b(?:cheapest|earliest|latest|best|closest|nearest|fastest|quickest"
    r"|shortest|longest"
    r"|highest|lowest|largest|biggest|smallest|oldest|newest|soonest|worst|(?:most|least)\s[a-z]+|winner|wins|right"
    r"|correct|recommend(?:ed|ation)?|suggest"
    r"|pick(?:ed)?|choice|choose|chose|chosen|opt(?:ed)?\sfor|select(?:ed)?|cheaper|closer|faster|better|booked"
    r"|reserved|should\s(?:take|stay|visit|go|choose|book|pick|use)|take|beats|first|last|next"
    r"|lower|higher|greater|shorter|quicker|earlier|later|larger|smaller|bigger|longer)\b"
)
# These single out a value only where the request asks in these words.
_ASKED_ONLY = frozenset("lower higher greater shorter quicker earlier later larger smaller bigger longer".split())
_SUPERLATIVE_AFTER = re.compile(
    r"(?:'s)?(?:\s\([^)]{0,60}\))?(?:\s(?:is|are|was|were|has|have|offers|would\sbe|comes\sout|remains|being"
    r"|clearly|then|also"
    r"|by\sfar|as|therefore|thus|the|still|just|indeed|hotel|museum|one|option|with|a|your|my|our)){0,5}"
    r"\s(?:cheapest|earliest|latest|best|closest|nearest|fastest|quickest|shortest|longest|highest|lowest|largest"
    r"|biggest"
    r"|smallest|oldest|newest|soonest|worst|(?:most|least)\s[a-z]+|winner|wins|right|correct|recommended|cheaper|closer"
    r"|faster|better|beats|answer|lower|higher|greater|shorter|quicker|earlier|later|larger|smaller|bigger|longer)\b"
)
_PRONOUN = re.compile(
    r"(?:\b(?:she|he|it|they|this|that|which|one|and)\s(?:is|are|was|has|have|offers|would\sbe)"
    r"|\bmaking\s(?:it|them|her|him|this))(?:\s(?:the|a|also|clearly|thus|therefore)){0,3}\s?$"
)
_CLAUSE_END = re.compile(r"[;\n]|\.(?=\s|$)|,?\s(?:but|while|whereas|although|though|compared)\b")
_NEXT_PHRASE = re.compile(r",|\band\b")
_STRICT = re.compile(r"est\b|\bmost\b|\bleast\b|\bwinner\b")
_EQUALS = re.compile(r"=\s?$")


def by_answer(rivalry: Rivalry) -> bool | None:
    """The last explicit answer decides."""
    verdict = None
    for match in ANSWER.finditer(rivalry.reading.low):
        later = [claim for claim in rivalry.claims if match.end() <= claim.start < match.end() + 100]
        if later:
            sentence = rivalry.reading.sentences[rivalry.reading.sentence(later[0].start)]
            chosen = rivalry.best(rivalry.between(later[0].start, sentence.end)) or later[:1]
            verdict = rivalry.single(chosen) is True
    return verdict


_MOVED = re.compile(r"\b(?:moved|changed|rescheduled|postponed|shifted|transferred|switched|brought\sforward)\b")
_WHEN = re.compile(r"\bwhen\b|\bwhat\stime\b|\bwhich\s(?:date|day|time|slot)\b|\bearliest\b")
_IS_SO = re.compile(
    r"(?:\sof\s(?:them|these|those|which|the[a-z]{0,3}|her|his|its))?(?:\s[0-9]{1,4})?(?:\s(?!and\b|or\b|is\b"
    r"|are\b)[a-z]{1,12}){0,2}"
    r"\s(?:is|are|was|were)\s(?:still\s)?([a-z-]{3,20})"
)

_NOW_BEFORE = re.compile(r"\bnow\b[^,;.]{0,30}$")
_NOW_AFTER = re.compile(r"(?:(?!\b(?:and|but|to|is|was)\b)[^,;.]){0,25}\bnow\b")


def _by_now(rivalry: Rivalry) -> bool | None:
    """What is said to hold now decides over what held before."""
    return rivalry.single(
        [c for c in rivalry.claims if _NOW_BEFORE.search(c.context.before) or _NOW_AFTER.match(c.context.after)]
    )


def _by_remainder(rivalry: Rivalry) -> bool | None:
    """What is said to be left decides over what it was taken from, if the request asks for that."""
    if rivalry.kind not in ("number", "money") or not request.LEFT_ASKED.search(rivalry.given.low):
        return None
    return rivalry.single(
        [c for c in rivalry.claims if LEFT_AFTER.match(c.context.after) or LEFT_BEFORE.search(c.context.before)]
    )


def _by_question(rivalry: Rivalry) -> bool | None:
    """The word that the request asks for decides."""
    if rivalry.kind in ("date", "time"):
        asked = request.asked_roles(rivalry.given.low)
        roles = roles_of(rivalry.reading, rivalry.claims)
        if _MOVED.search(rivalry.reading.low) and "start" in roles:
            asked = ["end"]
        elif not asked and "start" in roles and "end" in roles and _WHEN.search(rivalry.given.low):
            asked = ["start"]
        chosen = [
            claim for claim, role in zip(rivalry.claims, roles, strict=True) if len(asked) == 1 and role == asked[0]
        ]
        return rivalry.single(chosen)
    if rivalry.kind == "money" and request.asks_for_one(rivalry.given.low):
        return rivalry.single([claim for claim in rivalry.claims if EACH.match(claim.context.after)])
    if rivalry.kind != "number":
        return None
    asked_states = request.states_asked_for(rivalry.given.low)
    so = [
        claim for claim in rivalry.claims if (match := _IS_SO.match(claim.context.after)) and match[1] in asked_states
    ]
    if so:
        return rivalry.single(so)
    spoken = {word for word in request.LETTERS.findall(rivalry.given.low) if len(word) > 3}
    negated = bool(_NOT.search(rivalry.given.low))
    subset = [claim for claim in rivalry.claims if _is_asked_subset(claim.context, spoken, negated)]
    if subset:
        return rivalry.single(subset)
    words = request.asked_words(rivalry.given.low)
    return rivalry.single([claim for claim in rivalry.claims if words and _is_asked(claim.context, words)])


_SUBSET = re.compile(r"\b(?:of\s(?:which|these|those|them),?(?:\s(?:only|just|exactly))?|but)\s?$")
_LEAVING = re.compile(r"\b(?:leaving|leaves)(?:\s(?:only|just|exactly|you\swith))?\s?$")
_NOT = re.compile(r"\bnot\b|n't\b|\bnon-")
_SUBSET_AFTER = re.compile(r"(?:\s[a-z]{1,12})?\sof\s(?:which|these|those|them|its|the)\b")


def _is_asked_subset(context: Context, spoken: set[str], negated: bool) -> bool:
    """Whether a number counts those of a larger set that the request asks for ("of which 4 have a rating ...")."""
    if _LEAVING.search(context.before):
        return True
    if not (_SUBSET.search(context.before) or _SUBSET_AFTER.match(context.after)):
        return False
    return negated == bool(_NOT.search(context.after)) and not spoken.isdisjoint(request.LETTERS.findall(context.after))


_PHRASE_END = re.compile(r"[.,;:()0-9]|\b(?:and|or|with|in|on|for|from|per|by|out)\b")


def _is_asked(context: Context, words: set[str]) -> bool:
    """Whether a number stands with one of the words asked for: "3 museums", "a rating of 4.6"."""
    after = _PHRASE_END.split(context.after, maxsplit=1)[0]
    if any(request.stem(word) in words for word in request.LETTERS.findall(after)[:3]):
        return True
    before = request.LETTERS.findall(re.split(r"[.,;()]", context.before)[-1])[-4:]
    if not before:
        return False
    if context.before.endswith(":"):
        return request.stem(before[-1]) in words
    return before[-1] in ("is", "of", "at", "was", "are") and any(request.stem(word) in words for word in before)


def _by_conclusion(rivalry: Rivalry) -> bool | None:
    """The last conclusion that singles out a value decides."""
    verdicts: list[tuple[int, bool]] = []
    for match in _CONCLUSION.finditer(rivalry.reading.low):
        sentence = rivalry.reading.sentences[rivalry.reading.sentence(match.start())]
        ends = sentence.end if sentence.end - match.end() > 2 else sentence.end + 40
        verdict = rivalry.single(rivalry.best(rivalry.between(match.end(), ends)))
        if verdict is not None:
            verdicts.append((match.start(), verdict))
    for claim in rivalry.claims:
        adjacent = rivalry.kind not in NAMED and _WHICH_IS.search(claim.context.before)
        only = _BUT_ONLY.search(claim.context.before) and _HAS.match(claim.context.after)
        if adjacent or only or _TOTAL_AFTER.match(claim.context.after):
            verdicts.append((claim.start, claim.match))
    return max(verdicts)[1] if verdicts else None


def _by_equation(rivalry: Rivalry) -> bool | None:
    """The result of the only equation decides."""
    return rivalry.single([claim for claim in rivalry.claims if _EQUALS.search(claim.context.before)])


def _counts(word: str, asked: set[str]) -> bool:
    """Whether a superlative or comparative says anything about the answer."""
    last = word.split()[-1]
    return last not in _ASKED_ONLY or last in asked


def _by_comparison(rivalry: Rivalry) -> bool | None:
    """The name that comes out as what the request asks for decides."""
    return rivalry.single([claim for claim in rivalry.claims if claim.better])


def _by_superlative(rivalry: Rivalry) -> bool | None:
    """What is called the cheapest, the best or the choice decides."""
    low = rivalry.reading.low
    asked = {match[0] for match in _SUPERLATIVE.finditer(rivalry.given.low)}
    found: list[tuple[str, list[Claim]]] = []
    taken: set[int] = set()
    for claim in rivalry.claims:
        after = _SUPERLATIVE_AFTER.match(low[claim.end : claim.end + 120].translate(MARKUP))
        if after is not None and rivalry.kind not in ("number", "money") and _counts(after[0], asked):
            found.append((after[0], [claim]))
            taken.add(rivalry.reading.sentence(claim.start))
    for match in _SUPERLATIVE.finditer(low):
        index = rivalry.reading.sentence(match.start())
        if index in taken or not _counts(match[0], asked):
            continue
        subject = rivalry.between(rivalry.reading.sentences[index].start, match.start())[-1:]
        if (
            rivalry.kind in NAMED
            and subject
            and _PRONOUN.search(low, max(subject[0].end, match.start() - 40), match.start())
        ):
            found.append((match[0], subject))
            continue
        limit = _clause_end(rivalry, match.end(), rivalry.reading.sentences[index].end)
        found.append((match[0], rivalry.best(rivalry.between(match.end(), limit))))
    fitting = [item for item in found if any(word in item[0] for word in asked)] or found
    verdict = rivalry.single([claim for _, chosen in fitting for claim in chosen])
    strict = [claim for word, chosen in fitting if _STRICT.search(word) for claim in chosen]
    # "Earliest: 3 May; latest: 5 May" is a choice between two, not a matter for weaker cues.
    return False if verdict is None and len(distinct(strict)) > 1 else verdict


def _clause_end(rivalry: Rivalry, start: int, limit: int) -> int:
    """Where the clause after a superlative ends; for numbers and moments the first one closes it."""
    low = rivalry.reading.low
    end = _CLAUSE_END.search(low, start, limit)
    limit = end.start() if end else limit
    first = rivalry.between(start, limit)[:1]
    if first and rivalry.kind not in NAMED:
        end = _NEXT_PHRASE.search(low, first[0].end, limit)
        return end.start() if end else limit
    return limit


def _by_emphasis(rivalry: Rivalry) -> bool | None:
    """The only emphasised value decides."""
    return rivalry.single([claim for claim in rivalry.claims if is_inside(claim.start, rivalry.reading.emphasis)])


_VARIABLE = re.compile(r"[0-9][0-9.,:]*|\b[A-Z][\w'-]*|[€$£]")


def _pattern_of(rivalry: Rivalry, index: int) -> str:
    """A sentence with names and numbers left out, to see whether sentences are of one pattern."""
    sentence = rivalry.reading.sentences[index]
    pieces, at = [], sentence.start
    for claim in rivalry.between(sentence.start, sentence.end):
        pieces.append(rivalry.reading.plain[at : claim.start])
        at = max(at, claim.end)
    pieces.append(rivalry.reading.plain[at : sentence.end])
    return " ".join(_VARIABLE.sub("#", "#".join(pieces)).translate(MARKUP).lower().split()).strip(" .!;")


# A sentence about what is not the answer: "11:00 would be too early", "the one of 15 euros is left out".
_SIDE = re.compile(
    r" (?:would|taken|left out|leave out|just|only|too|not|excluded|except|booked|full|expired|invalid|before"
    r"|after|end|ends|each|per|other|others|another|further|also|compared|comparison) "
)


def _line(rivalry: Rivalry, index: int) -> str:
    sentence = rivalry.reading.sentences[index]
    return spoken(rivalry.reading.low[sentence.start : sentence.end])


def _by_sentence(rivalry: Rivalry) -> bool | None:
    """The first sentence that holds one value decides, else the last; listings do not count."""
    holding: dict[int, list[Claim]] = {}
    for claim in rivalry.claims:
        holding.setdefault(rivalry.reading.sentence(claim.start), []).append(claim)
    patterns = {index: _pattern_of(rivalry, index) for index in holding}
    bullets = [index for index in holding if rivalry.reading.sentences[index].bullet]
    listed = set(bullets) if len(bullets) > 1 else set()
    listed |= {index for index, pattern in patterns.items() if list(patterns.values()).count(pattern) > 1}
    free = [index for index in sorted(holding) if index not in listed]
    order = (*free[:1], *free[-1:])
    if rivalry.kind in ("number", "money", "time", "date", "id"):
        order = tuple(i for i in order[::-1] if not _SIDE.search(_line(rivalry, i))) or order
    for index in order:
        verdict = rivalry.single(rivalry.outside(holding[index]))
        if verdict is not None:
            return verdict
    return None


CUES: tuple[Callable[[Rivalry], bool | None], ...] = (
    _by_now,
    _by_remainder,
    _by_question,
    _by_conclusion,
    _by_equation,
    _by_comparison,
    _by_superlative,
    _by_emphasis,
    _by_sentence,
)
