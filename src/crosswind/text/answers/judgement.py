"""Judge each claim: whether an occurrence is claimed, only approximate, one of several or dismissed."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from operator import itemgetter
from typing import NamedTuple

from crosswind.text.answers.moods import NO_MOOD, Moods
from crosswind.text.answers.reading import (
    BETWEEN,
    EQUALS_AFTER,
    MARKUP,
    NAMED,
    AnswerText,
    Claim,
    Context,
    Expected,
    Kind,
    join_claims,
    start_of,
)
from crosswind.text.answers.request import HOURS_ASKED, ORDER

_FEE = r"(?:fees?|prices?|costs?|charges?|rates?|tickets?|ticket\sprices?|amount|entry|admission)"
_PAYING = r"(?:costs?|cost\syou|costs\syou|charg(?:es?|ing)|asks?(?:\sfor)?|pays?|paying|priced)"
_WAY = r"(?:time|wait|trip|travel|way|journey|ride|route|distance|drive|walk|travel\stime)"
# What may be compared, each in its two senses: little and much.
_SENSES = (
    (
        re.compile(
            rf"\b(?:cheap(?:er|est)|(?:less|least|lower|lowest)(?:\s|-)(?:expensive|costly|pric(?:ed|ey))"
            rf"|more\saffordable"
            rf"|most\saffordable|(?:lower|lowest|smaller|smallest)\s(?:[a-z]{{3,12}}\s)?{_FEE}"
            rf"|{_PAYING}\s(?:(?:a\sbit|much|far|slightly|even|the)\s)?(?:less|least)|less\sthan(?=\s<)"
            rf"|{_FEE}\s(?:[^.;,<>]{{0,20}}\s)?(?:is|are|was)\s(?:the\s|slightly\s|much\s)?(?:lower|lowest"
            rf"|smaller|less))\b"
        ),
        re.compile(
            rf"\b(?:pric(?:ier|iest)|dear(?:er|est)|costl(?:ier|iest)|(?:more|most|higher|highest)(?:\s"
            rf"|-)(?:expensive|costly"
            rf"|pric(?:ed|ey))|(?:higher|highest|bigger|larger|greater)\s(?:[a-z]{{3,12}}\s)?{_FEE}"
            rf"|{_PAYING}\s(?:(?:a\sbit|much|far|slightly|even|the)\s)?(?:more|most)|more\sthan(?=\s<)"
            rf"|{_FEE}\s(?:[^.;,<>]{{0,20}}\s)?(?:is|are|was)\s(?:the\s|slightly\s|much\s)?(?:higher|highest"
            rf"|greater|more))\b"
        ),
    ),
    (
        re.compile(
            rf"\b(?:clos(?:er|est)|near(?:er|est)|quick(?:er|est)|fast(?:er|est)|soon(?:er|est)|short(?:er|est)"
            rf"|earli(?:er|est)"
            rf"|(?:least|less)\s(?:travel\s)?{_WAY})\b"
        ),
        re.compile(
            rf"\b(?:farther|farthest|furthest|further(?=\s(?:away|off|from|than|to)\b|[.,;!]|$)|slow(?:er|est)|latest"
            rf"|(?<!no\s)(?<!open\s)long(?:er|est)|(?:more|most)\s(?:distant|remote)|(?:more"
            rf"|most)\s(?:travel\s)?{_WAY})\b"
        ),
    ),
)
_SENSE_OF_RANK = re.compile(r"\b(?:rat(?:ing|ed)|scor(?:e|ed)|slot|opening|appointment|reservation)\b")
_NOT_SO = re.compile(
    r"(?:\b(?:not|no|never|hardly|neither|nor)|n't)(?:\s(?:the|a|any|much|be|have|really|necessarily)){0,2}\s?$"
)
_THAN = re.compile(
    r"[^.;,<>]{0,30}?\bthan\s(?:(?:that|the|those|at|with|for|in|of|by|going|to|fee|price|hotel|museum|one"
    r"|ones)\s){0,4}"
    r"[\"'*_`]{0,3}(?=<)"
)
_THAN_OTHER = re.compile(r"[^.;,<>]{0,30}?\bthan\b")
_THE_ONE = re.compile(
    r"(?:\s(?:one|option|choice|place|hotel|of\sthe\s(?:two|pair|four|three)|fee|price|to\s(?:reach|get\sto)"
    r"|away)){0,3}"
    r"\s?(?::|\bis\b|\bwould\sbe\b|\bbelongs\sto\b|\bis\scharged\sby\b|\bgoes\sto\b)\s?(?:the\s"
    r"|that\sof\s)?[\"'*_`]{0,3}(?=<)"
)
_AT = re.compile(r"(?:\s(?:one|it))?\s(?:at|by|with|for|in|to)\s(?:the\s)?[\"'*_`]{0,3}(?=<)")
_CLAUSE = re.compile(r"[;\n]|\.(?=\s)|,?\s(?:but|while|whereas|although|though)\s(?=[^.;]{0,30}<)")
_IT = re.compile(
    r"(?:^|[.;,\n]\s?|\b(?:and|but|so|because)\s)(?:it|she|he|they|(?:this|that)(?:\sone)?)(?:'s)?\s[^.;,<>]{0,25}$"
)


class ComparedNames(NamedTuple):
    """Where the claims stand that a text calls the better or the worse ones in the sense of the request."""

    better: frozenset[int] = frozenset()
    worse: frozenset[int] = frozenset()
    unnamed: frozenset[int] = frozenset()  # worse than something that the text leaves unnamed
    lost: frozenset[str] = frozenset()  # the names that only come out worse, wherever they stand


NO_COMPARISON = ComparedNames()


def _asked_senses(given: str) -> tuple[re.Pattern[str], re.Pattern[str]] | None:
    """The patterns of the sense that a request asks for and of its opposite; None if it asks for none or both."""
    found = []
    for little, much in _SENSES:
        for asked, opposite in ((little, much), (much, little)):
            if any(not _SENSE_OF_RANK.match(given, match.end() + 1) for match in asked.finditer(given)):
                found.append((asked, opposite))
    return found[0] if len(found) == 1 else None


def compare(reading: AnswerText, claims: Sequence[Claim], two: bool, given: str) -> ComparedNames:
    """What the comparatives and superlatives of a text say about the claimed names, of which there may be two."""
    senses = _asked_senses(given) if claims else None
    if senses is None:
        return NO_COMPARISON
    marked = _marked(reading.low, claims)
    better: set[int] = set()
    worse: set[int] = set()
    unnamed: set[int] = set()
    for pattern, chosen, beaten in ((senses[0], better, worse), (senses[1], worse, better)):
        for match in pattern.finditer(marked):
            sentence = reading.sentences[reading.sentence(match.start())]
            if sentence.question:
                continue
            if _NOT_SO.search(marked, max(sentence.start, match.start() - 30), match.start()):
                denied = _compared_one(marked, claims, sentence.start, match.start(), match.end())
                worse.update([denied] if denied is not None and beaten is worse else [])
                continue
            start = match.end() - 5 if match[0].endswith(" than") else match.end()
            subject = _compared_one(marked, claims, sentence.start, match.start(), match.end())
            than = _THAN.match(marked, start)
            if subject is not None:
                chosen.add(subject)
                if beaten is better and not _THAN_OTHER.match(marked, start):
                    unnamed.add(subject)
            if than and (two or beaten is worse):
                beaten.add(than.end())
    won = {claim.value for claim in claims if claim.start in better - worse}
    lost = {claim.value for claim in claims if claim.start in worse} - won
    return ComparedNames(frozenset(better - worse), frozenset(worse), frozenset(unnamed), frozenset(lost))


def _marked(low: str, claims: Sequence[Claim]) -> str:
    """The text with each claimed name overwritten by "<<<>" or the like, same length."""
    pieces: list[str] = []
    at = 0
    for claim in claims:
        pieces += (low[at : claim.start].replace("<", " ").replace(">", " "), "<" * (claim.end - claim.start - 1), ">")
        at = claim.end
    pieces.append(low[at:].replace("<", " ").replace(">", " "))
    return "".join(pieces).replace("<'s", "<  ").replace(">'s", ">  ")


def _compared_one(marked: str, claims: Sequence[Claim], floor: int, start: int, end: int) -> int | None:
    """Where the claim stands that a comparative between `start` and `end` is about."""
    floor = max(floor, start - 300)
    after = _THE_ONE.match(marked, end) if marked[max(0, start - 4) : start] == "the " else None
    if after:
        return after.end()
    index = bisect_left(claims, start, key=start_of)
    breaks = [match.end() for match in _CLAUSE.finditer(marked, floor, start)]
    lowest = max([floor, *breaks])
    for claim in reversed(claims[max(0, index - 4) : index]):
        if claim.start < lowest:
            break
        if not COMPARED.search(marked, max(lowest, claim.start - 40), claim.start):
            return claim.start
    after = _AT.match(marked, end)
    if after:
        return after.end()
    if index and _IT.search(marked, max(0, lowest - 2, start - 40), start):
        return claims[index - 1].start
    return None


COMPARED = re.compile(
    r"\b(?:than|compared\s(?:to|with)|versus|vs\.?|unlike)(?![a-z])"
    r"(?:(?!\b(?:and|but|so|is|are|costs?|at|with|for|which|or)\b)[^,;.]){0,40}$"
)


# ---------------------------------------------------------------- the judgement

_BEATEN = re.compile(
    r"(?:\b(?:over|ahead\sof|before|beats?|beating|outranks|undercuts?|outscores?|edges\sout|outperforms?"
    r"|surpasses|followed\s(?:closely\s)?by|against|next\sto|near|behind"
    r"|replaces|replacing|replaced|cancell?ed|formerly|previously)|\b(?:against|vs\.?|versus"
    r"|to)\s[0-9.]{1,6}\sfor)(?:\s(?:the|hotel|museum)){0,2}\s?$"
)
_APPROXIMATE = re.compile(
    r"(?:\b(?:(?<!something\s)(?<!anything\s)(?<!question\s)(?<!asked\s)about|around|approximately|approx\.?"
    r"|roughly|circa|ca\.?|nearly|almost|close\sto|at\s(?:least|most)"
    r"|(?<!adds\s)(?<!add\s)(?<!sums\s)(?<!comes\s)(?<!come\s)up\sto"
    r"|over|under|above|below|as\s(?:much|many|few|little)\sas|upwards\sof|exceeds|starting\s(?:at|from)|minimum\sof"
    r"|maximum\sof|(?:min|max)\.?|some|estimated?(?:\s(?:at|to\sbe))?|shortly\s(?:after|before)|just\s(?:after"
    r"|before|under|over))(?:\s(?:a|the|total|of)){0,3}|[~≈<>≥≤])\s?$"
)
_BOUND = re.compile(r"\b(?:after|before|(?:later|earlier)\sthan|prior\sto)(?:\s(?:the|on|at))?\s?$")
_FROM = re.compile(r"\bfrom\s?$")
_HOURS = re.compile(r"\b(?:opens?|opened|closes?|(?:opening|closing)\s(?:time|hour)s?)\b[^.;,\n0-9]{0,25}$")
_TAIL_HEDGE = re.compile(
    r"(?:\+(?!\s?[0-9(€$])|-?ish\b|\s?(?:euros?|minutes?|hours?|[a-z]{1,12})?,?\s(?:or\s(?:so|more|less|fewer"
    r"|under|over|later"
    r"|earlier|thereabouts)|at\s(?:least|most)(?=\s?(?:[.,;:!)]|$))|give\sor\stake|approximately|approx|roughly)\b)"
)
_DISMISSED = re.compile(
    r"(?:(?!\b(?:and|but|while)\b)[^.;,]){0,20}?\b(?:is|are|was|were|looks|seems|costs?|has|have|asks?|charges?"
    r"|would\sbe)\s"
    r"(?:already\s|also\s|currently\s|completely\s|both\s|all\s|slightly\s|much\s|a\sbit\s|far\s|even\s|the\s)?"
    r"(?P<word>fully\sbooked|full|closed|sold\sout|unavailable|too\s[a-z]+|more|pricier|dearer|slower|farther"
    r"|further|worse"
    r"|cancelled|excluded|not|no|later|higher|second|third|next)\b|\s(?:does\snot|do\snot|doesn't|don't|cannot"
    r"|can't|did\snot)\b"
)
_WHOLE = re.compile(
    r"(?:\bout\sof(?:\s(?:the|a\spossible))?|\bof\s(?:the|those|these|all|its|their|our|your|her|his|my)"
    r"|\bamong(?:\s(?:the"
    r"|all|those))?|\bfrom\samong|[0-9]\sof|%\sof|^\W*of|\bscale\sof"
    r"|(?:^\W*(?:out\s)?|\b(?:left|remains?)\s)of\s(?:the|its|their|your"
    r"|an?)(?:\s[a-z]+){1,3}\sof)(?:\s(?:total|top|available|only|all)){0,2}\s?$"
)
_SLASHED = re.compile(r"[0-9]\s?/\s?$")
_CONCEDED = re.compile(r"^\W*(?:while|although|though|even\sthough|despite|whereas)\b[^,;.]*$")
_OPENERS = " \t\"'_([{€$£~"


def context_of(reading: AnswerText, start: int, end: int, previous: int) -> Context:
    """The context of a span; what comes before ends at the previous claim."""
    sentence = reading.sentences[reading.sentence(start)]
    before = reading.low[max(sentence.start, previous, start - 90) : start].translate(MARKUP)
    after = reading.low[end : min(max(sentence.end, end), end + 60)].translate(MARKUP)
    bare = before.rstrip(" (*€$")
    tilde = "~" if bare.endswith("~") and not bare.endswith("~~") else ""
    before = before.rstrip(_OPENERS)
    before = before[:-4] if before.endswith(" eur") else before
    return Context(before.replace("\n", " ") + tilde, after.lstrip("\"'_").rstrip("\n"))


def judge_claims(
    reading: AnswerText, claims: list[Claim], expected: Expected, allies: Sequence[Expected], given: str
) -> list[Claim]:
    """The claims with everything that the text says about each."""
    moods = Moods(reading, claims, expected, given).judge()
    kinds = {moods[claim.start].about for claim in claims if claim.match and claim.start in moods}
    elsewhere = "b" in kinds and "a" not in kinds  # said of another thing once, it is so everywhere
    judged: list[Claim] = []
    ranged = expected.kind in ("date", "time") and any(ally.kind == expected.kind for ally in allies)
    ranked = expected.kind in NAMED and not any(ally.kind in NAMED for ally in allies) and not ORDER.search(given)
    comparison = compare(reading, claims, len(expected.others) == 1, given) if ranked else NO_COMPARISON
    named = expected.kind in NAMED
    timed = expected.kind == "time"
    slots = timed and not HOURS_ASKED.search(given)
    for index, claim in enumerate(claims):
        previous = claims[index - 1].end if index else 0
        context = context_of(reading, claim.start, claim.end, previous)
        mood = moods.get(claim.start, NO_MOOD)
        judged.append(
            replace(
                claim,
                context=context,
                now=mood.now,
                soft=claim.soft or mood.reported,
                dropped=mood.void
                or mood.about == "b"
                or (elsewhere and claim.match)
                or (not mood.earliest and _is_dropped(reading, claim, context, expected.kind, given, comparison))
                or (ranked and _is_later(reading, claim, context, previous)),
                better=claim.start in comparison.better,
                approximate=not named and not mood.earliest and _is_approximate(context, expected),
                alternative=mood.hedged and not (ranged and bool(BETWEEN.search(context.before + " "))),
                dismissed=bool(_CONCEDED.search(context.before))
                or ((named or timed) and _is_dismissed(context, given))
                or (slots and bool(_HOURS.search(context.before))),
            )
        )
    join_claims(reading.low, judged, expected.kind, ranged)
    judged = [replace(claim, dropped=True) if claim.value in comparison.lost else claim for claim in judged]
    if comparison.unnamed and len(expected.others) == 1 and not any(claim.match for claim in claims):
        # "Kairo is more expensive" names the other of two.
        judged += [replace(claim, match=True, dropped=False) for claim in judged if claim.start in comparison.unnamed]
    return judged


_LATER_BEFORE = re.compile(
    r"(?:[,;]\s?(?:and\s)?(?:then|next|second|third|lastly|finally|after\s(?:that|which|him|her|it))|\b(?:2nd"
    r"|3rd|[4-9]th))"
    r"(?:\s(?:comes|is|by|would\sbe|place))?[:,]?\s?$"
)
_LATER_AFTER = re.compile(
    r"(?:\s\([^()]{0,60}\))?\s(?:comes\s|is\s|would\sbe\s|follows\s)?(?:in\s)?(?:second|third|fourth|next|last)"
    r"(?=\s?(?:[.,;!)]|$|and\b|place\b))"
)


def _is_later(reading: AnswerText, claim: Claim, context: Context, previous: int) -> bool:
    """Whether a name comes only after another in the order that a sentence gives."""
    if not previous or reading.sentence(previous - 1) != reading.sentence(claim.start):
        return False
    return bool(_LATER_BEFORE.search(context.before) or _LATER_AFTER.match(context.after))


def _is_dropped(
    reading: AnswerText, claim: Claim, context: Context, kind: Kind, given: str, comparison: ComparedNames
) -> bool:
    """Whether an occurrence is not claimed: asked, negated, compared with, looked at, an operand, a whole."""
    before = context.before
    if reading.sentences[reading.sentence(claim.start)].question:
        return True
    if claim.start in comparison.worse or (COMPARED.search(before) and claim.start not in comparison.better):
        return True
    if kind in NAMED:
        return bool(_BEATEN.search(before))
    if kind in ("number", "money"):
        return _is_part(reading, claim, context)
    return False


def _is_part(reading: AnswerText, claim: Claim, context: Context) -> bool:
    """Whether a number is a list number, an operand, an intermediate result or the whole of a part."""
    if claim.start in reading.numbering or _WHOLE.search(context.before):
        return True
    places, last = reading.operands
    first = bisect_left(reading.numbers, claim.start, key=itemgetter(0))
    covered = takewhile(lambda item: item.start < claim.end, reading.numbers[first : first + 4])
    if any(item.start in places or last.get(item.value, -1) > item.start for item in covered):
        return True
    before = reading.low[max(0, claim.start - 6) : claim.start]
    return bool(_SLASHED.search(before)) and not EQUALS_AFTER.match(reading.low, claim.end)


def _is_approximate(context: Context, expected: Expected) -> bool:
    """Whether a number, amount, date or time is only bounded or estimated."""
    if expected.tolerance > 0:
        return False
    if _APPROXIMATE.search(context.before) or _TAIL_HEDGE.match(context.after):
        return True
    if expected.kind in ("number", "money"):
        return bool(_FROM.search(context.before))
    return bool(_BOUND.search(context.before))


def _is_dismissed(context: Context, given: str) -> bool:
    """Whether a text speaks against a named thing, in words that the request did not ask for."""
    found = _DISMISSED.match(context.after)
    if found is None:
        return False
    word = found["word"] or "not"
    return word not in given and not (word == "not" and "n't" in given)
