"""What must not be repeated: keys, and names and passwords in addresses."""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit

HIDDEN = "[hidden]"
SHORTEST = 6  # characters; anything shorter would blot out innocent text
_KEYS = re.compile(r"\b(?:sk|pk|rk|gsk|hf|xai|key)[-_][A-Za-z0-9_-]{16,}")
_HEADERS = re.compile(
    r"""((?:authorization|api[-_]?key|x-api-key)["']?\s*[:=]\s*["']?(?:bearer\s+|basic\s+)?)[^\s"',}]+""", re.I
)
_BEARER = re.compile(r"(\bbearer\s+)[^\s\"',}]{6,}", re.I)
_USERINFO = re.compile(r"(?<=://)[^/\s@'\"]*@")


class Secrets:
    """Values that are taken out of every text; printing it shows none of them."""

    __slots__ = ("_values",)

    def __init__(self, *values: str | None) -> None:
        self._values = sorted({v for v in values if v and len(v) >= SHORTEST}, key=len, reverse=True)

    def out_of(self, text: str) -> str:
        """Text without the values themselves."""
        for value in self._values:
            text = text.replace(value, HIDDEN)
        return text

    def scrub(self, text: str) -> str:
        """Text for an error or a log: without the values, and without what looks like any key."""
        text = _KEYS.sub(HIDDEN, self.out_of(text))
        text = _BEARER.sub(rf"\g<1>{HIDDEN}", _HEADERS.sub(rf"\g<1>{HIDDEN}", text))
        return _USERINFO.sub("", text)


def bare(url: str) -> str:
    """An address without user, password, query and fragment; other text without what looks like a key."""
    if "://" not in url:
        return Secrets().scrub(url)
    try:
        head, _, tail = url.partition("://")
        parts = urlsplit(f"x://{tail}")
        host = parts.netloc.rpartition("@")[2]
        return Secrets().scrub(head) + urlunsplit(("x", host, parts.path, "", ""))[1:]
    except ValueError:
        return Secrets().scrub(url)


def passwords(url: str) -> list[str]:
    """The secrets that an address holds."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return []
    user = parts.netloc.rpartition("@")[0]
    return [part for part in (user, parts.password or "", parts.query) if part]
