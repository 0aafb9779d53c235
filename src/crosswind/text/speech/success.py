"""Whether a message tells or states a success, and whether the agent took it back."""

from __future__ import annotations

import re

from crosswind.text.speech import words as v
from crosswind.text.speech.sentences import Utterance
from crosswind.text.speech.words import any_of, either, gap, word_set

_BY_ME = any_of(
    rf" (?:i|we) (?:{gap(8)}and (?:then |also )?"
    rf"|(?:(?:have|{v.ANY_LY}|already|also|both|then|now|instead|just) ){{0,3}})"
    rf"{v.DONE_BY_ME}(?!sure |nothing |no |none |neither |nobody |that |there |with |on |off |it is |it can)"
    # "I made three attempts" and "I created a ticket" are work, but not the task's.
    rf"(?!(?:an?|another|several|two|three|many|some|repeated|multiple|\d{{1,3}}) {gap(2)}(?:attempts?|tickets?|note"
    r"|escalation|calls?|tries|search|requests?) )",
    rf"{v.START}(?:{v.TASK}|{v.PLACE}){v.DONE}(?!by )",  # "Booking confirmed: ..."
    # "Held: ...", "Booked and paid"
    rf"{v.START}(?:(?:ok|okay|all|,) ){{0,2}}{v.LY}{v.DONE_BY_ME}(?=(?:[:,|]|for|at|on|to|as|under|and|with|now|it"
    rf"|[a-z]?\d) ?)",
    r" (?:i|we) (?:(?:then|instead) )?took (?=\d|the (?!liberty|time ))",
    rf"{v.START}(?:the )?(?:{v.TASK})?{v.NUMBER}(?:is|has been) (?:now )?(?:prepared|staged|scheduled|entered) "
    rf"(?:for|at|in|as|on|,|\||{v.ANY_LY} )",
    # "is prepared as TF1234567", "the page is out: PG0012345"
    rf" (?:is|are|was|were|been|and|,) (?:{v.DONE}|{either(v.STEPS + '|paid|frozen|open|out|live')})"
    rf"(?:{gap(5)}(?:as|under|number|id|reference|:|,|is|and) )?{v.NUMBER}"
    r"(?!(?:is|was|can|cannot|could|has|does|did|lacks) )",
)
_SUCCESS = any_of(
    rf" (?:now|successfully) {v.DONE}",
    r" went through (?!your |the |all |every |each |my )",
    r" (?:succeeded|worked|success|successful|successfully) ",
    r" all (?:set|done) ",
    v.START + r"(?:(?:ok|okay|,) ){0,2}done ",
    rf" (?:i|we) (?:was|were) {v.LY}able to ",
    r" (?:i|we) (?:have )?managed to ",
    r" (?:is|are) (?:yours|in place) ",
    r" so you (?:can|may) ",
    rf" so {gap(3)}(?:is|are) (?:now )?(?:at|on|for) \d",
    rf" (?:your|the) new {v.TASK}{gap(3)}(?:is|are) (?!not )",
    r" (?:is|are) on (?:its|their|the) way ",
    rf" receipts? {gap(4)}{v.ID}(?!(?:is|was|can|cannot|could|has|does|did) )",
    rf" (?:release|link|message)(?: id| number| no)? (?:: |is )?{v.NUMBER}(?!(?:is|was|can|cannot|could|has|does"
    rf"|did) )",
    rf"{v.START}{v.NUMBER}is (?:now )?(?:at|for) \d",
    rf" {v.PLACE}(?:is|are) on hold ",
    r" (?:healthy|back|running|working|up|online|available) again ",
)
_SUCCEEDING = word_set(
    "now through succeeded worked success successful successfully set done able managed yours so place again way"
    " receipt receipts hold new release link message at for"
)
_STATED = re.compile(rf" (?:is|are|was|were|has been|have been|got) (?:also |both )?{v.DONE}(?!by )")
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
_LED_ON = any_of(BUT.pattern, rf" so {gap(4)}(?:is|are) (?:now )?{v.DONE}")
_HENCE = re.compile(
    rf" (?:so|therefore|thus|hence|means|reason|consequently|result) {gap(4)}(?:cannot|not|no|unable|nothing) "
)


def success_outweighs(sentences: list[Utterance], blocked: int) -> bool:
    """Whether a success outweighs the inability in the sentence with the number `blocked`."""
    if any(map(tells_success, sentences)):
        return True
    if _HENCE.search(sentences[blocked].text):
        return False
    # "The order was placed in May and can't be changed" tells how things stand, not what was done.
    return any(
        states_success(sentence) and not _PAST.search(sentence.text) and (n != blocked or _LED_ON.search(sentence.text))
        for n, sentence in enumerate(sentences)
    )


def tells_success(sentence: Utterance) -> bool:
    """Whether a text claims success."""
    words = sentence.words
    if not v.DOING.isdisjoint(words) and _holds(_BY_ME, sentence):
        return True
    return not _SUCCEEDING.isdisjoint(words) and _holds(_SUCCESS, sentence)


def states_success(sentence: Utterance) -> bool:
    """Whether success is stated."""
    return not v.DOING.isdisjoint(sentence.words) and _holds(_STATED, sentence)


def _holds(report: re.Pattern[str], sentence: Utterance) -> bool:
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


# ---------------------------------------------------------------- what the agent did and then took back

# Undone: the agent took back what it had done.
_UNDOING = word_set(
    "again back undid undone reverted reversed before hold released go way cancelled canceled recalled withdrawn"
    " withdrew removed"
)
_WITHDRAWN = r"(?:cancell?ed|recalled|withdrawn|withdrew|rolled back|removed|undone|reversed|reverted) "
_EARLIER = r"(?:staged|prepared|placed|tentative|unpaid|unsigned|pending|new) "
_UNDONE = any_of(
    r" (?:cancell?ed|removed|deleted|undone|reversed|dropped|recalled|withdrew|withdrawn|took)"
    r" (?:(?!and |but |, )[^ |]++ ){0,7}again ",
    r" (?:i|we) (?:have )?(?:undid|undone) ",
    # "I couldn't sign it, so I recalled it", "I removed the staged deployment since it could not be launched"
    rf" {_WITHDRAWN}(?:the|that|this|my|its) {_EARLIER}{gap(4)}(?:since|because|as) {gap(4)}(?:could not|cannot) ",
    rf" (?:cannot|could not|unable to|failed|fails|failing|refused|rejected|denied|broken) {gap(10)}"
    rf"(?:so|therefore|hence|and|,) (?:i|we) {gap(1)}{_WITHDRAWN}(?!{gap(8)}and {gap(1)}{v.DONE_BY_ME})",
    rf" (?:is|are|was|were|stays?|remains?|left) {gap(3)}(?:as|where|how|what) (?:it|they|things) (?:is|was|were)"
    rf" before ",
    r" the way (?:it|they|things) (?:was|were) ",
    rf" back (?:to|in) (?:its|the|their|how) {gap(2)}(?:original|was|were|previous) ",
)
# These too, if something went wrong: "I gave the seats back because the payment failed".
_TAKEN_BACK = any_of(
    rf" (?:cancell?ed|removed|dropped) (?:the|that|this|my) {gap(1)}hold ",
    rf" (?:gave|given|rolled|taken|took|put|set) {gap(4)}back ",
    rf" let {gap(3)}go ",
    rf" released (?:it|them|the {gap(1)}(?:hold|{v.PLACE}))",
    rf" {_WITHDRAWN}{gap(6)}so (?:no|nothing|there is no) ",
    r" (?:reverted|reversed) ",
    r" (?:was|were|is|has been|been) (?:undone|withdrawn) ",
    # "recalled the transfer I had prepared", "the staged deployment was rolled back"
    rf" {_WITHDRAWN}{gap(3)}(?:(?:i|we) (?:had|have) {v.LY}{v.DONE_BY_ME}|(?:was|were|had been) {v.LY}{v.DONE_BY_ME})",
    rf" {_EARLIER}{gap(2)}(?:was|were|is|has been) {_WITHDRAWN}",
    rf" {_WITHDRAWN}(?:the|that|this|my|its) {_EARLIER}",
)
_WRONG = re.compile(
    r" (?:fail|fails|failed|failing|failure|declined|rejected|refused|refuses|denied|an error|errors|lapsed|barred|down"
    r"|unavailable|without success|fell through|out of (?:service|order|action)|gone|missing|suspended|frozen|blocked"
    r"|(?:no longer|not) (?:works?|working|available|allowed|permitted)|not exist) "
)
_INSTEAD = re.compile(r" (?:instead|receipt) ")


def took_back(sentences: list[Utterance]) -> bool:
    """Whether the agent took back what it had done, and did nothing after it."""
    undone = [n for n, sentence in enumerate(sentences) if _takes_back(sentence, sentences)]
    return bool(undone) and not any(map(tells_success, sentences[undone[-1] + 1 :]))


def _takes_back(sentence: Utterance, sentences: list[Utterance]) -> bool:
    """Whether the sentence takes back something; `sentences` are all of the message."""
    text, words, _ = sentence
    if _UNDOING.isdisjoint(words) or _INSTEAD.search(text):
        return False
    if _UNDONE.search(text):
        return True
    return _TAKEN_BACK.search(text) is not None and any(_WRONG.search(other.text) for other in sentences)
