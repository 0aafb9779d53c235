"""Names, matched regardless of case, accents, spacing and markup; and ids.

An id is a token that holds both letters and digits and is not a number with its unit ("35min").
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

from crosswind.text.values.plain import BLANK, DIGIT, Found, plain_text

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


# ---------------------------------------------------------------- ids

_TOKEN = re.compile(
    r"[^\W_](?<![^\W_].)(?<![^\W_][-_].)(?:(?<=[0-9])|(?=[a-z_-]{0,40}[0-9]))"
    r"[^\W_]{0,127}(?:[-_][^\W_]{1,128}){0,12}(?![^\W_])(?![-_][^\W_])"
)
_TOKEN_MARK = re.compile(r"[0-9](?:(?<=[^\W0-9ª].)|(?<=-.)|(?=[^\W0-9ª])|(?=-))")  # where an id may be
_TOKEN_HEAD = re.compile(r"[^\W_][\w-]{0,64}$")
_RUN = re.compile(r"[\w-]*")
_NO_ID = re.compile(
    r"[0-9]+(?:[-_][0-9]+)*[½¼¾]?"
    r"|[0-9]+-?(?:st|nd|rd|th|s|h|hrs?|hours?|m|mins?|minutes?|secs?|d|days?|nights?|weeks?|km|kms|mi|miles?|cm|mm|ft"
    r"|kgs?|g|lbs?|l|ml|kb|mb|gb|tb|kw|kwh|w|v|hz|c|f|x|k|am|pm|eur|euros?|usd|chf|gbp|pp|pax|px|pts?|p|stars?"
    r"|k?m[2²])|[0-9]+(?:-[a-z]+)+|[0-9]+[hx][0-9]+(?:m|min)?|x[0-9]+"
    r"|(?:mid|pre|post|top|under|over|non|plus|early|late|the|day|and|or|to|eur|usd|chf|gbp)-?[0-9]+"
)
WIDE_TOKEN = re.compile(
    r"[^\W_](?<![^\W_].)(?<![^\W_][-_].)[^\W_]{0,127}(?:[-_][^\W_]{1,128}){0,12}(?![^\W_])(?![-_][^\W_])"
)


def find_ids(plain: str, clockless: str) -> list[Found]:
    """The id tokens of a text whose dates and times are blanked in `clockless`."""
    found: list[Found] = []
    at = 0
    for mark in _TOKEN_MARK.finditer(clockless):
        if mark.start() < at:
            continue
        head = _TOKEN_HEAD.search(clockless, max(at, mark.start() - 64), mark.end())
        run = _RUN.match(clockless, mark.start())
        at = run.end() if run else mark.end()
        for match in _TOKEN.finditer(clockless, head.start() if head else mark.start(), at):
            token = match[0]
            if DIGIT.search(token) and not token.isdigit() and BLANK not in token and not _NO_ID.fullmatch(token):
                found.append(Found(match.start(), match.end(), plain[match.start() : match.end()]))
    return found


# What stands around an id that is a whole token.
_ID_BEFORE = re.compile(r"(?<![^\W_])(?<![^\W_][-_])(?<!\w\.)")
_ID_AFTER = re.compile(r"(?![^\W_])(?![-_][^\W_])(?!\.[0-9])")


@lru_cache(maxsize=4096)
def _id_pattern(value: str) -> re.Pattern[str]:
    """The regex of an id as a whole token in lower-case text."""
    return re.compile(_ID_BEFORE.pattern + re.escape(value) + _ID_AFTER.pattern)


def id_places(low: str, value: str) -> list[tuple[int, int]]:
    folded = plain_text(value).lower().strip()
    if not folded or folded not in low:
        return []
    if len(folded) > LONGEST_NAME:
        return exact_places(low, folded)
    if len(low) > SHORT_TEXT:
        return [match.span() for match in _id_pattern(folded).finditer(low)]
    found, at = list[tuple[int, int]](), low.find(folded)
    while at >= 0:
        end = at + len(folded)
        whole = _ID_BEFORE.match(low, at) and _ID_AFTER.match(low, end)
        if whole:
            found.append((at, end))
        at = low.find(folded, end if whole else at + 1)
    return found
