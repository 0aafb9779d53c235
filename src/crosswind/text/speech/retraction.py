"""Step 6b: what the agent did and then took back."""

from __future__ import annotations

import re

from crosswind.text.speech.sentences import Sentence
from crosswind.text.speech.success import tells_success
from crosswind.text.speech.vocabulary import DONE_BY_ME, LY, PLACE, any_of, gap, word_set

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
    rf"(?:so|therefore|hence|and|,) (?:i|we) {gap(1)}{_WITHDRAWN}(?!{gap(8)}and {gap(1)}{DONE_BY_ME})",
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
    rf" released (?:it|them|the {gap(1)}(?:hold|{PLACE}))",
    rf" {_WITHDRAWN}{gap(6)}so (?:no|nothing|there is no) ",
    r" (?:reverted|reversed) ",
    r" (?:was|were|is|has been|been) (?:undone|withdrawn) ",
    # "recalled the transfer I had prepared", "the staged deployment was rolled back"
    rf" {_WITHDRAWN}{gap(3)}(?:(?:i|we) (?:had|have) {LY}{DONE_BY_ME}|(?:was|were|had been) {LY}{DONE_BY_ME})",
    rf" {_EARLIER}{gap(2)}(?:was|were|is|has been) {_WITHDRAWN}",
    rf" {_WITHDRAWN}(?:the|that|this|my|its) {_EARLIER}",
)
_WRONG = re.compile(
    r" (?:fail|fails|failed|failing|failure|declined|rejected|refused|refuses|denied|an error|errors|lapsed|barred|down"
    r"|unavailable|without success|fell through|out of (?:service|order|action)|gone|missing|suspended|frozen|blocked"
    r"|(?:no longer|not) (?:works?|working|available|allowed|permitted)|not exist) "
)
_INSTEAD = re.compile(r" (?:instead|receipt) ")


def took_back(sentences: list[Sentence]) -> bool:
    """Step 6b: whether the agent took back what it had done, and did nothing after it."""
    undone = [n for n, sentence in enumerate(sentences) if _takes_back(sentence, sentences)]
    return bool(undone) and not any(map(tells_success, sentences[undone[-1] + 1 :]))


def _takes_back(sentence: Sentence, sentences: list[Sentence]) -> bool:
    """Whether the sentence takes back something; `sentences` are all of the message."""
    text, words, _ = sentence
    if _UNDOING.isdisjoint(words) or _INSTEAD.search(text):
        return False
    if _UNDONE.search(text):
        return True
    return _TAKEN_BACK.search(text) is not None and any(_WRONG.search(other.text) for other in sentences)
