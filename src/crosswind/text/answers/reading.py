"""An answer as text, the claims in it, and which of them belong together."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from operator import itemgetter
from typing import Any, Literal, NamedTuple

from crosswind.text.sentences import LONGEST, Sentence, sentences_of, spoken
from crosswind.text.values.plain import Found, both_ends
from crosswind.text.values.reading import TextValues, lazy

Kind = Literal["number", "money", "date", "time", "name", "id", "choice", "yesno"]


@dataclass(frozen=True, slots=True)
class Expected:
    """A value that an answer has to state, with the rivals that it must not claim instead."""

    kind: Kind
    value: Any
    others: tuple[str, ...] = ()  # for names, ids and choices: values that would be wrong
    tolerance: float = 0.0
    # Names and ids of the thing that the value is said of, of other things that it could wrongly be said of, and
    # further values that are as right. Two values are the same whatever they are said of.
    about: tuple[str, ...] = field(default=(), compare=False)
    rivals: tuple[str, ...] = field(default=(), compare=False)
    alike: tuple[Any, ...] = field(default=(), compare=False)
    unit: str = field(default="", compare=False)  # "count": the number counts things, and measures nothing


class Context(NamedTuple):
    """The text just before and after a claim, within its sentence and without markup."""

    before: str
    after: str


_NO_CONTEXT = Context("", "")


@dataclass(frozen=True, slots=True)
class Claim:
    """An occurrence of a value of the expected kind and what the text says about it."""

    start: int
    end: int
    value: Any
    match: bool
    soft: bool = False  # serves only if nothing firmer is there
    dropped: bool = False  # not claimed at all
    approximate: bool = False
    alternative: bool = False
    dismissed: bool = False  # spoken against, as far as rivals go
    words: bool = False  # a zero in words such as "none"
    better: bool = False  # what a comparison of the sense asked for is about
    now: bool = False  # said to hold now, even if the request has it too
    context: Context = _NO_CONTEXT


def start_of(claim: Claim) -> int:
    return claim.start


def claim_of(found: Found, value: Any, match: bool, soft: bool = False) -> Claim:
    return Claim(found.start, found.end, value, match, soft)


NAMED = ("name", "id", "choice")
MARKUP = str.maketrans("", "", "*`")


# ---------------------------------------------------------------- the text

_EMPHASIS = re.compile(
    r"\*\*[^*\n]{1,160}\*\*|__[^_\n]{1,160}__|\*[^*\s][^*\n]{0,80}\*|`[^`\n]{1,80}`|\"[^\"\n]{1,80}\""
)
_PAREN = re.compile(r"[(\[][^()\[\]\n]{1,200}[)\]]")
_NUMBERING = re.compile(r"^[ \t]{0,12}(?:[-*+>#]{1,3}\s{0,3})?[*_]{0,2}\(?([0-9]{1,3})[.)](?=[\s*_])", re.MULTILINE)
_TABLE_LINE = re.compile(r"^[^|\n]{0,200}\|[^|\n]{0,200}\|[^\n]{0,1000}$", re.MULTILINE)


_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z_]{0,20})\s?/?>")


def _untagged(text: str) -> str:
    """The text without tags; an answer tag becomes an answer cue, and thoughts are not part of the answer."""
    if "<" not in text:
        return text
    text = text[max(0, text.rfind("</think")) :]
    return _TAG.sub(lambda match: "\nanswer: " if match[2].lower() == "answer" and not match[1] else " ", text)


class AnswerText(TextValues):
    """An answer: its values, and what its sentences and marks say about them."""

    def __init__(self, text: str) -> None:
        super().__init__(_untagged(both_ends(text, LONGEST)))

    @lazy
    def sentences(self) -> list[Sentence]:
        return list(sentences_of(self.plain, self.low))

    @lazy
    def spoken(self) -> str:
        """All of the text in the spoken form."""
        return spoken(self.low)

    @lazy
    def _starts(self) -> list[int]:
        return [sentence.start for sentence in self.sentences]

    def sentence(self, at: int) -> int:
        """The index of the sentence that holds a place."""
        return max(0, bisect_right(self._starts, at) - 1)

    @lazy
    def emphasis(self) -> list[tuple[int, int]]:
        return [match.span() for match in _EMPHASIS.finditer(self.low)]

    @lazy
    def parens(self) -> list[tuple[int, int]]:
        return [match.span() for match in _PAREN.finditer(self.low)]

    @lazy
    def numbering(self) -> set[int]:
        """The places of list numbers; a single "12." at the start of a text is an answer, not a list."""
        found = [(match.start(1), match[1]) for match in _NUMBERING.finditer(self.low)]
        if len(found) == 1 and (found[0][1] != "1" or "\n" not in self.low.strip()):
            return set()
        return {start for start, _ in found}

    @lazy
    def _tables(self) -> list[tuple[int, int, list[str]]]:
        """The tables of a text, each with the cells of its first line."""
        found: list[tuple[int, int, list[str]]] = []
        for match in _TABLE_LINE.finditer(self.low):
            if found and found[-1][1] + 1 == match.start():
                found[-1] = (found[-1][0], match.end(), found[-1][2])
            else:
                found.append((*match.span(), match[0].split("|")))
        return found

    def column(self, at: int) -> str:
        """The head of the table column that holds a place, or nothing."""
        index = bisect_right(self._tables, at, key=itemgetter(0)) - 1
        if index < 0 or at >= self._tables[index][1]:
            return ""
        heads = self._tables[index][2]
        cell = self.low.count("|", max(0, self.low.rfind("\n", 0, at)), at)
        return heads[cell].strip() if cell < len(heads) else ""

    @lazy
    def quantities(self) -> set[float]:
        """The numbers and amounts, rounded so that equal ones can be looked up."""
        return {round(item.value, 6) for item in (*self.numbers, *self.moneys)}

    @lazy
    def operands(self) -> tuple[set[int], dict[float, int]]:
        """The places of operands, and the last place where each value is one."""
        return _operands(self.low, self.numbers)


_OPERATOR = re.compile(
    r"\s?(?:[a-z]{1,12}(?:\s[a-z]{1,12})?\s?|€|\$|\))?\s?(?:\+|\*|×|x|÷|plus|minus|times|multiplied\sby|divided\sby)"
    r"\s?(?:€|\$|\(|eur\s)?\s?"
)
_MINUS = re.compile(r"\s?(?:[a-z]{1,12}\s|€|\$)?\s?[-–/:]\s?(?:€|\$)?\s?")
EQUALS_AFTER = re.compile(r"[^\n=.;]{0,30}=")


def _operands(low: str, found: Sequence[Found]) -> tuple[set[int], dict[float, int]]:
    """The numbers that stand on either side of an operator."""
    places: set[int] = set()
    last: dict[float, int] = {}
    for left, right in pairwise(found):
        gap = low[left.end : right.start] if right.start - left.end < 40 else "."
        if _OPERATOR.fullmatch(gap) or (_MINUS.fullmatch(gap) and EQUALS_AFTER.match(low, right.end)):
            for item in (left, right):
                places.add(item.start)
                last[item.value] = item.start
    return places, last


# ---------------------------------------------------------------- claims that belong together

_ARROW = re.compile(r"-{1,2}>|=>|[→⇒➔➜⟶]")
_RANGE = re.compile(r"\s?(?:[a-z€$]{1,8}\s?)?(?:-|–|—|to|through)\s?(?:€|\$)?\s?")
BETWEEN = re.compile(r"\bbetween\s(?:the\s)?$")
_STRICTLY = re.compile(r"\s?(?:,|,?\s?(?:and|&|as\swell\sas|plus))\s?(?:the\s|also\s|hotel\s|museum\s|on\s|at\s)?")
_ALTERNATIVE = re.compile(
    r"[^.;:!?\n]{0,25}?(?:\bor|\balternatively|\bversus|\bvs\.?)\s(?:(?:maybe|perhaps|possibly|even|the|at|on"
    r"|about|around|a|just|up|to|as|much|else|hotel|by)\s){0,3}"
)
_ASIDE = re.compile(r"\s?\([^()]{0,60}\)")


def _gap(low: str, left: Claim, right: Claim) -> str:
    """What stands between two claims, without markup and asides; a dot if they are far apart."""
    if right.start - left.end > 80:
        return "."
    return _ASIDE.sub("", low[left.end : right.start].translate(MARKUP))


def are_linked(low: str, claims: Sequence[Claim]) -> list[bool]:
    """For each claim whether it is coordinated with the one before; after "and" a comma starts anew."""
    links, closed = [False], False
    for left, right in pairwise(claims):
        gap = _gap(low, left, right)
        linked = bool(_STRICTLY.fullmatch(gap.strip("\"'_"))) and not (closed and gap.strip() == ",")
        closed = linked and gap.strip() != ","
        links.append(linked)
    return links


def join_claims(low: str, claims: list[Claim], kind: Kind, ranged: bool) -> None:
    """Spread what is said of one claim to those it is joined with, in place."""
    links = are_linked(low, claims)
    for index in range(1, len(claims)):
        left, right = claims[index - 1], claims[index]
        if left.value == right.value and left.match == right.match:
            continue
        gap = _gap(low, left, right)
        if kind in ("date", "time") and not ranged and len(gap) < 40 and "\n" not in gap and _ARROW.search(gap):
            claims[index - 1] = replace(left, dropped=True)
        elif kind in ("number", "money") and _RANGE.fullmatch(gap):
            claims[index - 1], claims[index] = replace(left, approximate=True), replace(right, approximate=True)
        elif _ALTERNATIVE.fullmatch(gap.rstrip("\"'_([€$")) or (kind in NAMED and gap.strip() == "/"):
            _join_alternatives(low, claims, index)
        elif links[index]:
            between = left.alternative and bool(BETWEEN.search(low[max(0, left.start - 12) : left.start]))
            dropped = left.dropped and (kind in NAMED or "," not in gap)
            claims[index] = replace(right, dropped=right.dropped or dropped, alternative=right.alternative or between)
    for index in range(len(claims) - 1, 0, -1):
        if claims[index].dismissed and links[index]:
            claims[index - 1] = replace(claims[index - 1], dismissed=True)


def _join_alternatives(low: str, claims: list[Claim], index: int) -> None:
    """Mark two claims joined by "or", and those listed before them, as alternatives or as negated alike."""
    left, right = claims[index - 1], claims[index]
    if left.dropped:
        claims[index] = replace(right, dropped=True)
        return
    claims[index - 1], claims[index] = replace(left, alternative=True), replace(right, alternative=True)
    for at in range(index - 1, 0, -1):
        if low[claims[at - 1].end : claims[at].start].strip(" *_") != ",":
            break
        claims[at - 1] = replace(claims[at - 1], alternative=True)
