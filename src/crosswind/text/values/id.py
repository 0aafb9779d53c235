"""Ids: tokens that hold both letters and digits and are not a number with its unit ("35min")."""

from __future__ import annotations

import re
from functools import lru_cache

from crosswind.text.values.found import BLANK, DIGIT, Found
from crosswind.text.values.name import LONGEST_NAME, SHORT_TEXT, exact_places
from crosswind.text.values.plain import plain_text

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
    r"|k?m[2²])"
    r"|[0-9]+(?:-[a-z]+)+|[0-9]+[hx][0-9]+(?:m|min)?|x[0-9]+"
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
