"""Sentences of a message, without its courtesies, in the form that the patterns are written for.

A text becomes one line of lower-case words, with one space between them and a bar before, between and after the
sentences: "Sorry, I can't. Which date?" -> " | sorry , i cannot | which date ? |". Every pattern starts with a space,
which lets `re` skip from word to word; gaps are bounded and never cross a bar.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from crosswind.text.speech.vocabulary import START, any_of, word_set

_PART = 2000
_TYPOGRAPHY = {
    "\u2019": "'", "\u2018": "'", "\u02bc": "'", "\u00b4": "'", "\u201c": '"', "\u201d": '"', "\u201e": '"',
    "\u00ab": '"', "\u00bb": '"', "\uff1f": "?", "\u2026": ". ", "\u2011": "-", "\u2013": " - ", "\u2014": " - ",
    "\u2022": "*", "\u200b": "", "\u00ad": "",
}  # fmt: skip
_FOREIGN = re.compile(r"[^\x00-\x7f]")
_BLANKED = str.maketrans(dict.fromkeys('()[]{}<>*#|~=+^\\"`$%', " "))
_FENCE = re.compile(r"```[^`]{0,4000}```|`[^`\n]{1,300}`")
_CITED = re.compile(r"^[ \t]{0,3}>[^\n]{0,4000}", re.MULTILINE)
_DOUBLE = re.compile(r"\"[^\"\n]{1,600}\"")
_SINGLE = re.compile(r"'(?<!\w')(?:[^'\n]|'(?<=\w')(?=\w)){1,300}'(?!\w)")
_ONLY_QUOTED = re.compile(r"(?:quoted|final|answer|result|response|[\W_])*")
_WRAP = re.compile(r"\n(?<=[\w,]\n)(?=[a-z])")
_ITEM = re.compile(r"\n\s{0,8}(?:[-*+]|\d\d?[.)])\s")
_INNER = re.compile(r"\.(?=\w)|:(?=\d)")
_UNDERLINE = re.compile(r"(?<![^\W_])_+|_+(?![^\W_])")  # markup; the one in share_file is not
_MARKS = (*((mark, f" {mark} ") for mark in ",:.!?;"), ("\n", " ; "))
# A comma ends a sentence only before words that open a request, as in "it failed, could you check".
_COMMA = re.compile(
    r" ,(?= (?:(?:but|and|so) )?(?:please(?! [|,])|(?:could|can|would|do|did|shall|should|may) (?:you|i)) )"
)


def _spellings() -> dict[str, str]:
    """What a token stands for: contracted forms, with and without the apostrophe, and marks."""
    words = {"can't": "cannot", "cant": "cannot", "won't": "will not", "wont": "will not", "i'm": "i am", "im": "i am"}
    for verb in "could would should do does did is are was were has have had".split():
        words[verb + "n't"] = words[verb + "nt"] = verb + " not"
    for who in "i you we they he she it that there this what who where here how when which".split():
        for ending, full in (("'ve", " have"), ("'ll", " will"), ("'d", " would"), ("'re", " are"), ("'s", " is")):
            words[who + ending] = who + full
    return words | dict.fromkeys((".", "!", ";", "-", "--", "---"), "|") | {"?": "? |", "\x02": "*"}


_SPELLED = _spellings()


def read_line(text: str) -> str:
    """The text in the form that the patterns are written for."""
    text = text.strip()
    if len(text) > 2 * _PART:
        text = text[:_PART] + "\n" + text[-_PART:]
    if not text.isascii():
        text = _FOREIGN.sub(_fold, text)
    if "\n" in text:
        text = _ITEM.sub("\n\x02 ", "\n" + _WRAP.sub(" ", text))
    line = " ".join([_SPELLED.get(token, token) for token in _tokens(_unquoted(text.lower()))])
    line = f" | {line} |".replace(" can not ", " cannot ").replace("| ? |", "? |")
    for title in (" dr |", " mr |", " mrs |", " ms |", " e_g |", " i_e |"):
        line = line.replace(title, title[:-2])
    return _COMMA.sub(" |", line)


def _fold(found: re.Match[str]) -> str:
    """ASCII for another character: no word that the patterns know has any but ASCII letters."""
    mark = found[0]
    return _TYPOGRAPHY.get(mark, "x" if mark.isalnum() else " ")


def _tokens(text: str) -> list[str]:
    """Words and marks; str.replace and str.split, as they are much faster here than one regular expression."""
    if "_" in text:
        text = _UNDERLINE.sub(" ", text)
    text = _INNER.sub("_", text.translate(_BLANKED))  # "20:00" and "24.90" are words.
    for mark, apart in _MARKS:
        text = text.replace(mark, apart)
    return text.split()


def _unquoted(text: str) -> str:
    """The text without what it quotes; a message that is one quotation is the agent's own."""
    bare = text
    if "`" in bare:
        bare = _FENCE.sub(" quoted ", bare)
    if ">" in bare:
        bare = _CITED.sub(" quoted ", bare)
    if '"' in bare:
        bare = _DOUBLE.sub(" quoted ", bare)
    if "'" in bare:
        bare = _SINGLE.sub(" quoted ", bare)
    return text if bare is not text and _ONLY_QUOTED.fullmatch(bare) else bare


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
