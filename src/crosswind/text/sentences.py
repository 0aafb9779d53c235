"""Sentences of a message in a plain form, and what each clause commits its speaker to.

`spoken` turns a text into lower-case words with one space between, contractions spelled out, markup gone and marks as
words of their own: "It isn't **12**, I think." -> " it is not 12 , i think . ". All patterns of this room that read
meaning (moods here, acts in `speech`, what is said of a value in `answers`) are written for that form: they start and
end with a space, which lets `re` skip from word to word, and their gaps are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

LONGEST = 20_000

# ---------------------------------------------------------------- the plain form

_TYPOGRAPHY = {
    "\u2019": "'", "\u2018": "'", "\u02bc": "'", "\u00b4": "'", "\u201c": '"', "\u201d": '"', "\u201e": '"',
    "\u00ab": '"', "\u00bb": '"', "\uff1f": "?", "\u2026": ". ", "\u2011": "-", "\u2013": " - ", "\u2014": " - ",
    "\u2022": "*", "\u200b": "", "\u00ad": "", "\u2192": " to ", "\u20ac": " ", "\u2713": " done ", "\u2714": " done ",
    "\U0001f947": " first ", "\U0001f948": " second ", "\U0001f949": " third ", "\U0001f3c6": " winner ",
    "\u2705": " done ", "\u274c": " no ", "\u274e": " no ", "\u2717": " no ", "\u2718": " no ", "\u26d4": " no ",
}  # fmt: skip
_FOREIGN = re.compile(r"[^\x00-\x7f]")
_BLANKED = str.maketrans(dict.fromkeys('[]{}<>*#~=+^\\"`$%|', " "))
_INNER = re.compile(r"\.(?=\w)|:(?=\d)")
_UNDERLINE = re.compile(r"(?<![^\W_])_+|_+(?![^\W_])")  # markup; the one in share_file is not
_MARKS = (*((mark, f" {mark} ") for mark in ",:.!?;()"), ("\n", " ; "))


def _spellings() -> dict[str, str]:
    """What a token stands for: contracted forms, with and without the apostrophe."""
    words = {"can't": "cannot", "cant": "cannot", "won't": "will not", "wont": "will not", "i'm": "i am", "im": "i am"}
    words |= {
        "that'd": "that would",
        "let's": "let us",
        "--": "-",
        "---": "-",
        "shan't": "shall not",
        "ain't": "is not",
        "cannae": "cannot",
    }
    for verb in "could would should do does did is are was were has have had need must might".split():
        words[verb + "n't"] = words[verb + "nt"] = words[verb + "nae"] = verb + " not"
    for who in "i you we they he she it that there this what who where here how when which today".split():
        for ending, full in (("'ve", " have"), ("'ll", " will"), ("'d", " would"), ("'re", " are"), ("'s", " is")):
            words[who + ending] = who + full
    return words


_SPELLED = _spellings()


def _fold(found: re.Match[str]) -> str:
    """ASCII for another character: no word that the patterns know has any but ASCII letters."""
    mark = found[0]
    return _TYPOGRAPHY.get(mark, "x" if mark.isalnum() else " ")


@lru_cache(maxsize=1024)
def spoken(text: str) -> str:
    """The text in the form that the patterns are written for."""
    if not text.isascii():
        text = _FOREIGN.sub(_fold, text)
    text = text.lower()
    if "_" in text:
        text = _UNDERLINE.sub(" ", text)
    text = _INNER.sub("_", text.translate(_BLANKED))  # "20:00" and "24.90" are words
    for mark, apart in _MARKS:
        if mark in text:
            text = text.replace(mark, apart)
    line = " ".join([_SPELLED.get(token, token) for token in text.split()])
    return f" {line} ".replace(" can not ", " cannot ")


# ---------------------------------------------------------------- sentences

_BREAK = re.compile(r"[.!?]{1,8}[\"')\]*_`]{0,4}(?=\s|$)|;(?=\s|$)|\n+")
_NO_BREAK = re.compile(
    r"(?:\b(?:approx|ca|e\.g|i\.e|no|nr|st|dr|mr|mrs|ms|vs|incl|excl)|^\s*[#>*(-]{0,3}\s{0,4}[0-9]{1,3})$"
)
_HALF_DAY = re.compile(r"\b[ap]\.m$")
_BULLET = re.compile(r"[ \t]{0,12}(?:[-*+>|–—]\s|\||[0-9]{1,3}[.)]\s|\(?[a-z0-9]\)\s|#{1,6}\s)")


class Sentence(NamedTuple):
    """A sentence or line of a text."""

    start: int
    end: int
    question: bool
    bullet: bool


def sentences_of(plain: str, low: str) -> Iterator[Sentence]:
    """The sentences of a text; every line ends one."""
    start = 0
    for match in _BREAK.finditer(low):
        if match[0][0] == ".":
            before = low[max(start, match.start() - 12) : match.start()]
            if _NO_BREAK.search(before):
                continue
            if _HALF_DAY.search(before) and not plain[match.end() : match.end() + 2].strip().isupper():
                continue
        yield _sentence(low, start, match.end(), "?" in match[0])
        start = match.end()
    if low[start:].strip() or start == 0:
        yield _sentence(low, start, len(low), False)


def _sentence(low: str, start: int, end: int, question: bool) -> Sentence:
    line = start == 0 or low[start - 1] == "\n" or low[start : start + 1] == "\n"
    return Sentence(start, end, question, line and bool(_BULLET.match(low, start)))


# ---------------------------------------------------------------- clauses and their moods

# A segment is what one condition rules, a clause what one hedge does.
SEGMENT = re.compile(r" (?:;|\.|-|\(|\)|but|however|yet|whereas|while|although|though|otherwise|and (?=if ))(?= )")
_SUBJECT = (
    r"(?:i|it|we|you|they|he|she|this|that|there|the|your|my|its|which|who|now|please|no|here|today"
    r"|[a-z]{1,4}\d{4,}|&a|&b|an? [a-z]+ (?:which|that))"
)
CLAUSE = re.compile(
    rf" (?:;|\.|-|\(|\)|but|however|yet|whereas|while|although|though|otherwise|because|so(?! far )|, and"
    rf"|,(?= (?:(?:so|then|or) )?{_SUBJECT} )|and(?= {_SUBJECT} ))(?= )"
)
# On a condition: not a wish of the user ("if you need more") and not a question ("I checked if").
CONDITION = re.compile(
    r" (?:(?:once|as soon as)(?= (?:it|they|you|the|that|this|we|i|someone|somebody|he|she) )|unless|assuming"
    r"|presuming|presumably|provided|providing|supposing|suppose|in case|as long as|so long as"
    r"|on (?:the )?condition|contingent on|depending on|in the event|on the (?:assumption|premise"
    r"|understanding)|(?<!even )(?<!as )"
    r"(?<!what )(?<!check )(?<!checked )(?<!see )(?<!know )(?<!tell )(?<!sure )(?<!say )"
    r"(?<!confirm )(?<!asked )(?<!wonder )"
    r"(?<!surprised )if (?!not for |you (?:need|want|were wondering|wonder|care|are curious|would|have|like"
    r"|wish|prefer|are|do not|ask|decide|plan)|needed|necessary|desired|anything|so |not ,|i may))"
    r"|^ (?:; )?(?:should|were|had) (?!(?:you|i) (?:need|want|wish|like|have|prefer) )(?:the|it|this|that"
    r"|these|those|my|our|your|nothing|no|&|i |[a-z]+s ) ?"
)
# Not certain: what the speaker thinks possible, expects, remembers or was told.
HEDGE = re.compile(
    r" (?:maybe|perhaps|possibly|probably|presumably|supposedly|allegedly|reportedly|potentially|conceivably"
    r"|hopefully|seems?|appears?|looks? like|with (?:some|any|a bit of|a little) luck|optimistic(?:ally)?"
    r"|money's on|when i last (?:looked|checked|saw)|days ago|prob|coin toss|toss-up|gamble|expectation"
    r"|remains to be seen|disagree|my money is on|lean(?:ing)?(?: more)? towards?|bet|betting|wager"
    r"|likely|seemingly|apparently|theoretically|normally|usually|typically|generally|ordinarily|tentatively"
    r"|purportedly"
    r"|in theory|in principle|as a rule"
    r"|(?:may|could|might|ought to|is supposed to|is said to|must) (?:well |also |still |then )?(?:be|have"
    r"|cost|take|start|come|amount|run|charge"
    r"|ask|begin|end|total|lie)|might|i (?:would |can only |could only |only |am |just )?(?:guess|guessing"
    r"|suppose|assume|assuming|suspect|imagine"
    r"|reckon|estimate|expect|would say|vaguely recall|seem to remember|seem to recall)|(?:reckons?|recalls?"
    r"|estimates?d?|guess(?:es|ed)?|hunch|estimated|estimation|guesswork|ballpark|rumou?rs?|hearsay"
    r"|extrapolat\w+|speculat\w+|gut|approximation|placeholder|conjecture)|(?:my|best|educated|wild|rough) guess"
    r"|not (?:\w+ )?(?:sure|certain|confident|positive)|unsure|uncertain|(?:hard|difficult"
    r"|impossible) to (?:say|tell)|if memory serves|let us (?:say|hope|assume)|at least it was"
    r"|in the (?:region|neighbou?rhood|vicinity|ballpark) of|give or take|i (?:would|should|could) (?:imagine"
    r"|put it|think|guess|have thought|expect)|so i (?:believe|hear)|might be out of date"
    r"|from memory|off the top of my head|unverified|unconfirmed|unchecked|would think|people say|word is"
    r"|i (?:have )?heard|told me|by the sound of it"
    r"|not looked up|cannot (?:say|tell) which|either|not (?:yet )?(?:verified|confirmed|checked)"
    r"|without (?:having )?(?:check|look|verif|open|quer)\w+"
    r"|would be surprised|would not (?:be surprised|rule out)|tends? to|as far as i (?:know|can tell|remember"
    r"|recall)|to my knowledge|last i (?:heard|checked|looked|knew)) "
)


def segments(line: str) -> Iterator[str]:
    """The segments of a spoken sentence."""
    return _cut(line, SEGMENT)


def clauses(line: str) -> Iterator[str]:
    """The clauses of a segment."""
    return _cut(line, CLAUSE)


def _cut(line: str, cut: re.Pattern[str]) -> Iterator[str]:
    at = 0
    for match in (*cut.finditer(line), None):
        part = line[at : match.start()] if match else line[at:]
        if part.strip():
            yield f" {part.strip()} "
        at = match.end() if match else at
