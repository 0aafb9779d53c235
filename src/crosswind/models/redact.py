"""What must not be repeated: keys, and what addresses hold: names, passwords, values of the query.

A secret comes back in other forms than it was given in: percent-encoded or not, in Base64 (as `Authorization: Basic`
has it), escaped as JSON does. All of these are known here; text that hides a secret in another way is not seen through.
"""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote, quote_plus, unquote, unquote_plus, urlsplit, urlunsplit

HIDDEN = "[hidden]"
SHORTEST = 6  # characters; anything shorter would blot out innocent text
DEPTH = 32  # of values; a record keeps less
OPEN = frozenset({"api-version", "api_version", "version"})  # parameters of a query whose values are not secrets
WINDOW = 2**16  # characters of a long text that are looked through for an excerpt
MARGIN = 2**13  # characters at the end of those that may hold a part of a key, and are never shown
# Texts come from strangers: whatever they hold, each pattern takes time in proportion to their length.
_KEYS = re.compile(
    r"\b(?:(?:sk|pk|rk|gsk|hf|xai|key|gh[opsu]|github_pat|glpat|xox[abp])[-_][A-Za-z0-9_-]{16,}"
    r"|AIza[A-Za-z0-9_-]{30,}|AKIA[A-Z0-9]{16})"
)
# it is seen at the beginning of a word, once, whether there are dots where a JWT has them
_JWT = re.compile(
    r"(?<![A-Za-z0-9_-])(?=[A-Za-z0-9_-]++\.[A-Za-z0-9_-]{10,}+\.)"
    r"([A-Za-z0-9_-]*?)\beyJ[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]++\.[A-Za-z0-9_-]*+"
)
_SECRET = re.compile(
    r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|[_-](?:PAT|PASS|PWD|AUTH))(?:[_-]?\d{1,3})?$",
    re.I,
)  # a variable's or an option's name
_OPTION = re.compile(r"-{0,2}([A-Za-z][\w-]{0,63})(?:=(.*))?", re.S)  # of a command, or a variable for one
LEAST = 12  # characters of a variable's value that is taken for a secret because of the name
LEAST_PASSWORD = 8  # of a password in an address that is a variable's value
_HEADERS = re.compile(
    r"""((?:authorization|api[-_]?key|x-api-key)["']?\s*[:=]\s*["']?(?:bearer\s+|basic\s+)?)[^\s"',}]+""", re.I
)
_BEARER = re.compile(r"(\bbearer\s+)[^\s\"',}]{6,}", re.I)
_USERINFO = re.compile(r"(?<=://)[^/\s@'\"]*@")
_ESCAPE = re.compile(r"\\u00([2-7][0-9A-Fa-f])")  # a printable character as JSON may write it


class Secrets:
    """Values that are taken out of every text; printing it shows none of them."""

    __slots__ = ("_values",)

    def __init__(self, *values: str | None) -> None:
        given = [v for v in values if v and len(v) >= SHORTEST]
        self._values = sorted({form for v in given for form in _forms(v)}, key=len, reverse=True)

    def out_of(self, text: str) -> str:
        """Text without the values themselves."""
        for value in self._values:
            text = text.replace(value, HIDDEN)
        return text

    def within(self, value: Any, depth: int = 0) -> Any:
        """A value out of JSON without them, wherever in it they stand; what lies too deep to be stored is left."""
        if isinstance(value, str):
            return self.out_of(value)
        if depth > DEPTH or not self._values:
            return value
        if isinstance(value, list):
            return [self.within(one, depth + 1) for one in value]
        if isinstance(value, dict):
            return {self.within(name, depth + 1): self.within(one, depth + 1) for name, one in value.items()}
        return value

    def scrub(self, text: str) -> str:
        """Text for an error or a log: without the values, and without what looks like any key."""
        text = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
        text = _KEYS.sub(HIDDEN, _JWT.sub(rf"\g<1>{HIDDEN}", self.out_of(text)))
        text = _BEARER.sub(rf"\g<1>{HIDDEN}", _HEADERS.sub(rf"\g<1>{HIDDEN}", text))
        return _USERINFO.sub("", text)

    def beginning(self, text: str) -> str:
        """The same of at most `WINDOW` characters, without a part of a key where the text was cut."""
        if len(text) <= WINDOW:
            return self.scrub(text)
        return self.scrub(text[:WINDOW])[: -max([MARGIN, *map(len, self._values)])]

    def excerpt(self, text: str, limit: int) -> str:
        """The same of at most `limit` characters, on one line."""
        shown = " ".join(self.beginning(text).split())
        return f"{shown[:limit]}..." if len(text) > WINDOW or len(shown) > limit else shown


def environment() -> list[str]:
    """The values of variables that hold secrets by their names: whichever of them is given for a model, a name or an
    argument by mistake, it is hidden."""
    found = []
    for name, value in os.environ.items():
        bare = value.strip()
        if _SECRET.search(name) and len(bare) >= LEAST:
            found += [bare, value]
        elif "://" in bare and "@" in bare:
            found += [part for part in passwords(bare.partition("?")[0]) if len(part) >= LEAST_PASSWORD]
    return list(dict.fromkeys(found))


def shown_command(words: Sequence[str]) -> tuple[str, list[str]]:
    """A command without the secrets that stand in it, and these secrets: values of options and variables that are
    called so, what headers hold, passwords and values of the query of addresses."""
    shown, found = [], list[str]()
    hidden_next = False
    for word in words:
        option = _OPTION.fullmatch(word)
        if hidden_next and not word.startswith("-"):
            found.append(word)
            word = HIDDEN
        elif option and option[2] is not None and _SECRET.search(option[1]):
            found.append(option[2])
            word = f"{word[: -len(option[2]) or None]}{HIDDEN}"
        else:
            found += [word[header.end(1) : header.end()] for header in _HEADERS.finditer(word)]
            found += passwords(word[word.rfind("=", 0, word.index("://")) + 1 :]) if "://" in word else []
        hidden_next = bool(option and option[2] is None and word.startswith("-") and _SECRET.search(option[1]))
        shown.append(word)
    return Secrets(*found).scrub(" ".join(shown)), found


def strip_credentials(url: str) -> str:
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
    """The secrets that an address holds, as they are and as they are sent."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return []
    user, colon, password = parts.netloc.rpartition("@")[0].partition(":")
    out = [f"{user}:{password}", f"{unquote(user)}:{unquote(password)}"] if user or password else []
    out += [password, unquote(password)] if colon else [user, unquote(user)]
    for pair in parts.query.split("&"):
        name, equals, value = pair.partition("=")
        if name.lower() not in OPEN:
            out += [value, unquote_plus(value)] if equals else [name, unquote_plus(name)]
    return [part for part in dict.fromkeys(out) if part]


def _forms(value: str) -> Iterator[str]:
    """A secret as it may be repeated."""
    yield from (value, quote(value, safe=""), quote_plus(value), json.dumps(value)[1:-1])
    data = value.encode("utf-8", "replace")
    for code in (b64encode(data), urlsafe_b64encode(data)):
        yield from (code.decode(), code.decode().rstrip("="))
