"""Step 4: whether a sentence states an inability, of which kind, and whether it counts."""

from __future__ import annotations

import re
from typing import Literal

from crosswind.text.speech.denial import BAR, BARRING, DENIAL, DENYING, HEADING, HEADLINE
from crosswind.text.speech.request import OFFER
from crosswind.text.speech.sentences import Sentence
from crosswind.text.speech.shortage import FILLED, FULL, LOSING, LOST
from crosswind.text.speech.success import clause_start
from crosswind.text.speech.vocabulary import LY, NUMBER, START, any_of, either, gap, word_set

_REASON = re.compile(r" (?:because|since|as|given) ")
_COUNTED = re.compile(START + r"(?:\d{1,6}|one|two|three|four|five|some|several|many|most) (?:of|out of) ")
_Kind = Literal["full", "plain", "lost"]
# The first that fits is the kind of a sentence.
_INABILITIES: tuple[tuple[_Kind, frozenset[str], re.Pattern[str]], ...] = (
    ("full", FILLED, FULL),
    ("plain", DENYING, DENIAL),
    ("plain", BARRING, BAR),
    ("plain", HEADING, HEADLINE),
    ("lost", LOSING, LOST),
)
_OBSTRUCTED = word_set(
    "unavailable not no taken occupied full already expired frozen blocked discontinued exceeds exceed insufficient"
)
_MILD = re.compile(
    rf" (?:(?:is|are|was|were|be|has|have) {LY}(?:unavailable|not available|no longer available|taken|occupied|full"
    r"|already (?:taken|booked|reserved|occupied|full)|expired|frozen|blocked|discontinued)"
    r"|exceeds?|insufficient|not enough (?:funds|money|balance|seats|stock|credit)) "
)
# A cause that leaves nothing to be done, if the message says nothing else.
_CAUSE = re.compile(
    rf"{START}(?!{gap(5)}card )(?:{gap(5)}(?:account|access|engineer|buyer|user|organi[sz]er|file|files) {gap(2)}"
    rf"(?:is|are|has been|was) {LY}(?:blocked|frozen|suspended|inactive|confidential|not active|not in good standing)"
    rf"|{gap(5)}{NUMBER.strip()} {gap(2)}"  # a number alone may be what was to be frozen
    rf"(?:is|are|has been|was) {LY}(?:blocked|suspended|inactive|confidential|not active|not in good standing)) "
    r"(?:for transfers |at present |at the moment )?\|"
)
_REGRET = re.compile(
    r" (?:(?:sorry|apologi[sz]e|apologies)"
    r"(?! about | to hear | for (?:the|my|any) (?:delay|confusion|wait|mistake|error))"
    r"|unfortunately|afraid|regret|regrettably|sadly|regretfully) "
)
_ENDED = r"(?:cancell?ed|recalled|rolled back) "
NONE_ENDED = re.compile(rf" (?:no|nothing|none) {gap(5)}(?:was|were|is|are|has been|have been) {_ENDED}")
_REMARK = re.compile(r" (?:note that|please note|be aware|keep in mind|remember that|mind that) ")
_ASIDE = any_of(
    r" (?:at first|initially|first (?:attempt|try|call|time|one|request)|for a moment) ",
    # A value that is reported.
    # What a total leaves out.
    rf" cancell?ed {gap(5)}not (?:added|included|counted) ",
    # What is the most or the least of all.
    rf" no {gap(8)}(?:less|more|fewer|[a-z]{{2,12}}er) {gap(4)}than ",
    r" incidents? (?:has|have|was|were) not (?:yet )?(?:been )?resolved (?!because |since )",
    rf" no (?:earlier|sooner|nearer|closer|cheaper) {gap(8)}, so (?!{gap(5)}(?:not|nothing|no|cannot) )",
    rf" {_ENDED}, so (?:the (?:total|sum)|all|every|it|they|that) ",
    # What was to wait.
    r" , (?:just )?as (?:you )?(?:requested|asked|wanted|wished|instructed|agreed|told) ",
    rf" (?:is|was|been) (?:also )?(?:placed|prepared|staged|scheduled|entered|made|reserved|held) "
    rf"(?:{gap(8)})(?:and|but|,) {gap(3)}not {gap(1)}(?:paid|signed|launched|sent|invited|charged) \|",
    rf" (?:status|state|title|subject|message|error|reply) {gap(6)}(?:is|was|reads|says) : ",
)
_YES_NO = re.compile(START + r"(?:yes|no) , ")
_SELF = re.compile(r" (?:i|we|that|this) ")
_I = re.compile(r" (?:i|we) ")
_NEXT = re.compile(rf" (?:first|next|earliest|nearest|soonest) {gap(6)}(?:is|are) ")
RESULT = any_of(
    rf" (?:costs?|charges|price|fee|fees|total|sum|first|earliest|next) {gap(6)}\d",
    r" is (?:the )?"
    rf"{either('cheap(?:er|est)|clos(?:er|est)|near(?:er|est)|quick(?:er|est)|fast(?:er|est)|low(?:er|est)')}",
)


def inability_kind(sentence: Sentence, position: int) -> _Kind | None:
    """The kind of inability that the sentence states, if any (step 4)."""
    text, words, _ = sentence
    for kind, signs, pattern in _INABILITIES:
        found = None if signs.isdisjoint(words) else pattern.search(text)
        if found and not (kind != "plain" and _is_elsewhere(text, found)):
            return kind if _counts(text, position) else None
    return None


def _is_elsewhere(text: str, found: re.Match[str]) -> bool:
    """Whether another thing is full or lost: "Alda, since Kairo is sold out", "two of the shows are full"."""
    return bool(_COUNTED.match(text) or _REASON.search(text, clause_start(text, found), found.end()))


def names_next_free(sentences: list[Sentence]) -> bool:
    """Step 6e: whether a message about free places, said without regret, goes on to the next that is free."""
    texts = [sentence.text for sentence in sentences]
    return any(map(_NEXT.search, texts)) and not any(map(_REGRET.search, texts)) and not any(map(_I.search, texts))


def _counts(text: str, position: int) -> bool:
    """Whether an inability in this sentence would be one of the task."""
    if _ASIDE.search(text):
        return False
    if _YES_NO.match(text):
        return _SELF.search(text) is not None
    # A remark that opens the message is no remark.
    return not (position and _REMARK.search(text) and not _I.search(text))


def is_mild(sentences: list[Sentence], asks: list[str]) -> bool:
    if sentences and all(_CAUSE.match(sentence.text) for sentence in sentences):
        return True
    if not any(not _OBSTRUCTED.isdisjoint(words) and _MILD.search(text) for text, words, _ in sentences):
        return False
    return any(_REGRET.search(sentence.text) for sentence in sentences) or any(map(OFFER.search, asks))
