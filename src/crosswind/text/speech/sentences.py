"""Sentences of a message in the spoken form, without its courtesies and what it quotes."""

from __future__ import annotations

import re
from typing import NamedTuple

from crosswind.text.sentences import sentences_of, spoken
from crosswind.text.speech.words import START, any_of, word_set

_PART = 2000
_THOUGHTS = "</think>"
_FENCE = re.compile(r"```[^`]{0,4000}```|`[^`\n]{1,300}`")
_CITED = re.compile(r"^[ \t]{0,3}>[^\n]{0,4000}", re.MULTILINE)
_DOUBLE = re.compile(r"\"[^\"\n]{1,600}\"")
_SINGLE = re.compile(r"'(?<!\w')(?:[^'\n]|'(?<=\w')(?=\w)){1,300}'(?!\w)")
_ONLY_QUOTED = re.compile(r"(?:quoted|final|answer|result|response|[\W_])*", re.IGNORECASE)
_WRAP = re.compile(r"\n(?<=[^\n]{40}[\w,]\n)(?=[a-z])")
_QUOTES = str.maketrans({"\u2019": "'", "\u2018": "'", "\u02bc": "'", "\u00b4": "'", "\u201c": '"', "\u201d": '"',
                         "\u201e": '"', "\u00ab": '"', "\u00bb": '"', "\uff1f": "?", "\u2026": ". ",
                         "\u2022": "*"})  # fmt: skip
# A dash, or a comma before words that open a request, ends a sentence as well: "it failed, could you check".
_BREAK = re.compile(
    r" - | ,(?= (?:(?:but|and|so) )?(?:please(?! [?,]| $)|(?:could|can|would|do|did|shall|should|may) (?:you|i)) )"
)


def own_words(text: str) -> str:
    """The text without thoughts and without what it quotes; a message that is one quotation is the agent's own."""
    text = text[max(0, text.rfind(_THOUGHTS)) :].removeprefix(_THOUGHTS).strip()
    if len(text) > 2 * _PART:
        text = text[:_PART] + "\n" + text[-_PART:]
    bare = text = text.translate(_QUOTES)
    for mark, pattern in (("`", _FENCE), (">", _CITED), ('"', _DOUBLE), ("'", _SINGLE)):
        if mark in bare:
            bare = pattern.sub(" quoted ", bare)
    text = text if bare is not text and _ONLY_QUOTED.fullmatch(bare) else bare
    return _WRAP.sub(" ", text) if "\n" in text else text


# ---------------------------------------------------------------- sentences

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


class Utterance(NamedTuple):
    text: str  # " | which date ? |"
    words: list[str]
    asked: bool  # It ends in a question mark.


def sentences_in(text: str) -> list[Utterance]:
    """The message, cut into sentences, without its courtesies."""
    sentences = []
    own = own_words(text)
    for found in sentences_of(own, own.lower()):
        item = "* " if found.bullet else ""
        line = spoken(own[found.start : found.end]).replace(" ( ", " ").replace(" ) ", " ")
        for part in _BREAK.split(
            line.rstrip(" .!;").lstrip(" ;-") + " "
            if not found.bullet
            else line.rstrip(" .!;").lstrip(" ;-1234567890.)") + " "
        ):
            words = (item + part).replace(" . ", " ").replace(" ! ", " ").replace(" ; ", " ").split()
            if words:
                sentences.append(Utterance(f" | {' '.join(words)} |", words, words[-1] == "?"))
    return [sentence for sentence in sentences if not _is_courtesy(sentence)]


def _is_courtesy(sentence: Utterance) -> bool:
    text = sentence.text
    if _COURTEOUS.isdisjoint(sentence.words):
        return False
    if not sentence.asked and _THANKS.match(text):
        return True
    found = _COURTESY.search(text)
    if not found or not _INVITING.search(text):
        return False
    return not (_MORE_BEFORE.search(text, 0, found.start() + 1) or _MORE_AFTER.search(text))
