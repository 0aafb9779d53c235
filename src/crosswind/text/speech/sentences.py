"""Sentences of a message, without its courtesies."""

from __future__ import annotations

import re
from typing import NamedTuple

from crosswind.text.speech.lines import read_line
from crosswind.text.speech.vocabulary import START, any_of, word_set

_COURTEOUS = word_set(
    "anything something else further any hesitate free hope help helps helped answer answers more let assistance shall"
    " thanks thank regards cheers enjoy have welcome great perfect"
)
_COURTESY = any_of(
    r" (?:anything|something|what|how|who|where) (?:else|more|further) ",
    r" any (?:other|further|additional|questions|changes|concerns|more [^ |]+) ",
    r" (?:further|more|additional) (?:assistance|help|questions|support|requests) ",
    r" help you (?:any )?further ",
    r" (?:anything|something) (?:that )?(?:you would like|you want|you need|i can) ",
    r" (?:like|want) (?:any |some )?more (?:details|information|info) ",
    r" feel free ",
    r" shall we (?:call|leave|wrap) ",
    r" do not hesitate ",
    r" (?:hope|does|did|if) (?:this|that|it) (?:helps?|helped|answers?|answered) ",
    r" let (?:me|us) know (?:if|should|in case|when|whenever) (?:you|there|anything|something) ",
)
_INVITING = re.compile(r" (?:\?|if|let|feel|happy|glad|hesitate|hope|should) ")
_THANKS = re.compile(
    START + r"(?:many |kind |best )?(?:thanks|thank you|regards|cheers|enjoy|have a|you are welcome|great|perfect) "
)
# What makes a sentence with a courtesy in it more than that.
_MORE_BEFORE = re.compile(r" (?:which|what|when|where|who|and|or) ")
_MORE_AFTER = re.compile(r" (?:or (?:should|shall|can|may) i|proceed|go ahead|continue|before i) ")


class Sentence(NamedTuple):
    text: str  # " | which date ? |"
    words: list[str]
    asked: bool  # It ends in a question mark.


def sentences_of(text: str) -> list[Sentence]:
    """The message, cut into sentences, without its courtesies."""
    sentences = []
    for part in read_line(text).split("|"):
        words = part.split()
        if words:
            sentences.append(Sentence(f" |{part}|", words, words[-1] == "?"))
    return [sentence for sentence in sentences if not _is_courtesy(sentence)]


def _is_courtesy(sentence: Sentence) -> bool:
    text = sentence.text
    if _COURTEOUS.isdisjoint(sentence.words):
        return False
    if not sentence.asked and _THANKS.match(text):
        return True
    found = _COURTESY.search(text)
    if not found or not _INVITING.search(text):
        return False
    return not (_MORE_BEFORE.search(text, 0, found.start() + 1) or _MORE_AFTER.search(text))
