"""Names, matched regardless of case, accents, spacing and markup."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

from crosswind.text.values.plain import plain_text

LONGEST_NAME = 400
SHORT_TEXT = 4000  # in which a name or an id is found sooner than a regex of it is made
_GAP = r"[\s*_`\"'-]{1,8}"
_NAME_SPLIT = re.compile(r"[\s*_`\"-]+")

_GAP_HERE = re.compile(_GAP)


@lru_cache(maxsize=4096)
def _name_words(name: str) -> tuple[str, ...]:
    """The words by which a name is looked up in plain lower-case text; none where there is nothing to look for."""
    words = [word for word in _NAME_SPLIT.split(plain_text(name).lower()) if word.strip("'")]
    if len(words) > 2 and words[0] in ("the", "dr", "dr.", "prof", "prof.", "mr", "mr.", "mrs", "mrs.", "ms", "ms."):
        words = words[1:]
    return tuple(words) if sum(map(len, words)) <= LONGEST_NAME else ()


@lru_cache(maxsize=4096)
def _name_pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    """The regex of a name in plain lower-case text."""
    pattern = _word_pattern(words[0])
    for left, right in pairwise(words):
        pattern += (_GAP if "&" not in (left, right) else _GAP.replace("1", "0")) + _word_pattern(right)
    if words[0] == "and":
        pattern = rf"(?<![^\W_]){pattern}"
    elif words[0][0].isalnum():
        # The boundary stands behind the first letter so that the search can skip to that letter.
        pattern = rf"{words[0][0]}(?<![^\W_].){pattern[1:]}"
    return re.compile(pattern + (r"(?![^\W_])" if words[-1][-1].isalnum() else ""))


def _word_pattern(word: str) -> str:
    """The regex of one word of a name: "&" is also "and", a final dot or an apostrophe may be missing."""
    if word in ("&", "and"):
        return "(?:&|and)"
    escaped = re.escape(word).replace("'", "'?")
    return escaped[:-2] + r"\.?" if word.endswith(".") and len(word) > 1 else escaped


def _word_places(low: str, words: tuple[str, ...]) -> list[tuple[int, int]]:
    """What the regex of a name finds, for words of letters and digits alone, without the time to make it."""
    found: list[tuple[int, int]] = []
    at = low.find(words[0])
    while at >= 0:
        end = at + len(words[0])
        whole = not (at and low[at - 1].isalnum())
        for word in words[1:]:
            gap = _GAP_HERE.match(low, end) if whole else None
            whole = gap is not None and low.startswith(word, gap.end())
            end = gap.end() + len(word) if gap else end
        whole = whole and not low[end : end + 1].isalnum()
        if whole:
            found.append((at, end))
        at = low.find(words[0], end if whole else at + 1)
    return found


def exact_places(low: str, name: str) -> list[tuple[int, int]]:
    """The places of a name too long for a regex, by its exact wording."""
    found: list[tuple[int, int]] = []
    at = low.find(name)
    while at >= 0:
        end = at + len(name)
        if not low[max(at - 1, 0) : at].isalnum() and not low[end : end + 1].isalnum():
            found.append((at, end))
        at = low.find(name, end)
    return found


def name_places(low: str, name: str) -> list[tuple[int, int]]:
    """The places where a name stands in plain lower-case text."""
    words = _name_words(name) if len(name) <= 4 * LONGEST_NAME else ()
    if words and len(low) <= SHORT_TEXT and "and" not in words and all(map(str.isalnum, words)):
        return _word_places(low, words)
    if words:
        return [match.span() for match in _name_pattern(words).finditer(low)]
    folded = plain_text(name).lower().strip()
    return exact_places(low, folded) if folded else []
