"""Step 5: whether a message tells or states a success."""

from __future__ import annotations

import re

from crosswind.text.speech.sentences import Sentence
from crosswind.text.speech.vocabulary import (
    ANY_LY,
    DOING,
    DONE,
    DONE_BY_ME,
    ID,
    LY,
    NUMBER,
    PLACE,
    START,
    STEPS,
    TASK,
    any_of,
    either,
    gap,
    word_set,
)

_BY_ME = any_of(
    rf" (?:i|we) (?:{gap(8)}and (?:then |also )?"
    rf"|(?:(?:have|{ANY_LY}|already|also|both|then|now|instead|just) ){{0,3}})"
    rf"{DONE_BY_ME}(?!sure |nothing |no |none |neither |nobody |that |there |with |on |off |it is |it can)"
    # "I made three attempts" and "I created a ticket" are work, but not the task's.
    rf"(?!(?:an?|another|several|two|three|many|some|repeated|multiple|\d{{1,3}}) {gap(2)}(?:attempts?|tickets?|note"
    r"|escalation|calls?|tries|search|requests?) )",
    rf"{START}(?:{TASK}|{PLACE}){DONE}(?!by )",  # "Booking confirmed: ..."
    # "Held: ...", "Booked and paid"
    rf"{START}(?:(?:ok|okay|all|,) ){{0,2}}{LY}{DONE_BY_ME}(?=(?:[:,|]|for|at|on|to|as|under|and|with|now|it"
    rf"|[a-z]?\d) ?)",
    r" (?:i|we) (?:(?:then|instead) )?took (?=\d|the (?!liberty|time ))",
    rf"{START}(?:the )?(?:{TASK})?{NUMBER}(?:is|has been) (?:now )?(?:prepared|staged|scheduled|entered) "
    rf"(?:for|at|in|as|on|,|\||{ANY_LY} )",
    # "is prepared as TF1234567", "the page is out: PG0012345"
    rf" (?:is|are|was|were|been|and|,) (?:{DONE}|{either(STEPS + '|paid|frozen|open|out|live')})"
    rf"(?:{gap(5)}(?:as|under|number|id|reference|:|,|is|and) )?{NUMBER}"
    r"(?!(?:is|was|can|cannot|could|has|does|did|lacks) )",
)
_SUCCESS = any_of(
    rf" (?:now|successfully) {DONE}",
    r" went through (?!your |the |all |every |each |my )",
    r" (?:succeeded|worked|success|successful|successfully) ",
    r" all (?:set|done) ",
    START + r"(?:(?:ok|okay|,) ){0,2}done ",
    rf" (?:i|we) (?:was|were) {LY}able to ",
    r" (?:i|we) (?:have )?managed to ",
    r" (?:is|are) (?:yours|in place) ",
    r" so you (?:can|may) ",
    rf" so {gap(3)}(?:is|are) (?:now )?(?:at|on|for) \d",
    rf" (?:your|the) new {TASK}{gap(3)}(?:is|are) (?!not )",
    r" (?:is|are) on (?:its|their|the) way ",
    rf" receipts? {gap(4)}{ID}(?!(?:is|was|can|cannot|could|has|does|did) )",
    rf" (?:release|link|message)(?: id| number| no)? (?:: |is )?{NUMBER}(?!(?:is|was|can|cannot|could|has|does|did) )",
    rf"{START}{NUMBER}is (?:now )?(?:at|for) \d",
    rf" {PLACE}(?:is|are) on hold ",
    r" (?:healthy|back|running|working|up|online|available) again ",
)
_SUCCEEDING = word_set(
    "now through succeeded worked success successful successfully set done able managed yours so place again way"
    " receipt receipts hold new release link message at for"
)
_STATED = re.compile(rf" (?:is|are|was|were|has been|have been|got) (?:also |both )?{DONE}(?!by )")
# Before a report, in its own part of the sentence: it is denied, or on a condition, or a reason.
_DENIED = re.compile(
    r" (?:no|not|nothing|none|never|neither|without|if|once|unless|until|because|since|as|when|before|cannot|whether"
    r"|would|should) "
)
_PAST = re.compile(
    r" (?:ago|yesterday|already|last|earlier|previously|in (?:january|february|march|april|may|june|july|august"
    r"|september|october|november|december)) "
)
BUT = re.compile(r" (?:but|however|still|instead) ")
_LED_ON = any_of(BUT.pattern, rf" so {gap(4)}(?:is|are) (?:now )?{DONE}")
_HENCE = re.compile(
    rf" (?:so|therefore|thus|hence|means|reason|consequently|result) {gap(4)}(?:cannot|not|no|unable|nothing) "
)


def success_outweighs(sentences: list[Sentence], blocked: int) -> bool:
    """Step 6d: whether a success outweighs the inability in the sentence with the number `blocked`."""
    if any(map(tells_success, sentences)):
        return True
    if _HENCE.search(sentences[blocked].text):
        return False
    # "The order was placed in May and can't be changed" tells how things stand, not what was done.
    return any(
        states_success(sentence) and not _PAST.search(sentence.text) and (n != blocked or _LED_ON.search(sentence.text))
        for n, sentence in enumerate(sentences)
    )


def tells_success(sentence: Sentence) -> bool:
    """Whether success is told (step 5)."""
    words = sentence.words
    if not DOING.isdisjoint(words) and _holds(_BY_ME, sentence):
        return True
    return not _SUCCEEDING.isdisjoint(words) and _holds(_SUCCESS, sentence)


def states_success(sentence: Sentence) -> bool:
    """Whether success is stated (step 5)."""
    return not DOING.isdisjoint(sentence.words) and _holds(_STATED, sentence)


def _holds(report: re.Pattern[str], sentence: Sentence) -> bool:
    """Whether the sentence has the report, and neither denies it nor makes it a condition."""
    text = sentence.text
    for found in () if sentence.asked else report.finditer(text):
        if not _DENIED.search(text, clause_start(text, found), found.end()):
            return True
    return False


def clause_start(text: str, found: re.Match[str]) -> int:
    """Where the part of the sentence starts that has the match."""
    end = found.start() + 1
    start = 0
    for cut in (" , ", " but ", " and ", " so ", " : "):
        if cut in text:
            start = max(start, text.rfind(cut, 0, end))
    return start
