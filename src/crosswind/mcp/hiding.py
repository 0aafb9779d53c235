"""Names that must not reach the client: in texts they become those shown, and schemas are rid of what repeats them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from crosswind.mcp.schema import Json

PLAIN_WORD = re.compile(r"[a-z]+")  # a name that may as well be a word of the language
SHORT = 6  # letters; a shorter name is looked for as a whole word, and in its own spelling only
VALUES = ("enum", "const", "default", "pattern", "format", "type", "required", "dependentRequired", "$ref", "$schema")
# ^ keywords whose texts are no prose: they say what is sent, as the server wants it
NAMED = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")  # with names for keys


# ---------------------------------------------------------------- spellings


def spellings(name: str) -> set[str]:
    """The other spellings of a name of several words, as titles and classes have them."""
    words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]
    if len(words) < 2 or sum(map(len, words)) < SHORT:
        return set()
    capitals = [word.capitalize() for word in words]
    all_ = {" ".join(capitals), "".join(capitals), words[0] + "".join(capitals[1:]), "_".join(words), "-".join(words)}
    return all_ - {name}


# ---------------------------------------------------------------- schemas


def untitled(schema: Any, *, names: bool = False) -> Any:
    """A schema without titles and other marks, which are made of the names that layers hide.

    With `names` the keys of the outermost object are names, not keywords.
    """
    if isinstance(schema, dict):
        return {
            key: untitled(value, names=not names and key in NAMED)
            for key, value in schema.items()
            if names or key not in ("title", "$id", "$comment", "$anchor") or not isinstance(value, str)
        }
    return [untitled(part) for part in schema] if isinstance(schema, list) else schema


def scrubbed(tool: Json, hidden: Iterable[str], clean: Callable[[str], str]) -> Json:
    """A shown tool without hidden names, wherever they may stand: texts, names of definitions, examples.

    What a server wants to be sent stays: names of properties within properties, and listed values.
    """
    marks = {mark for name in hidden if len(mark := _bare(name)) > 3}
    out: Json = {}
    for key, value in tool.items():
        if key in ("inputSchema", "outputSchema") and isinstance(value, dict):
            value = _neutral(value, marks)
        out[key] = value if key == "name" else _scrubbed(value, marks, clean, False)
    return out


def _scrubbed(value: Any, marks: set[str], clean: Callable[[str], str], names: bool) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_scrubbed(part, marks, clean, False) for part in value]
    if not isinstance(value, dict):
        return value
    out = {}
    for key, part in value.items():
        if not names and key in VALUES:
            out[key] = part
        elif names or not (key == "examples" and _holds(part, marks)):
            out[key] = _scrubbed(part, marks, clean, not names and key in NAMED)
    return out


def _neutral(schema: Json, marks: set[str]) -> Json:
    """A schema whose definitions are not called by hidden names."""
    names: dict[str, str] = {}
    for key in ("$defs", "definitions"):
        defs = schema.get(key)
        for name in defs if isinstance(defs, dict) else ():
            if _holds(name, marks):
                names[f"#/{key}/{name.replace('~', '~0').replace('/', '~1')}"] = f"#/{key}/part_{len(names) + 1}"
                schema = {**schema, key: {_last(names, key, one): part for one, part in schema[key].items()}}
    return _pointed(schema, names) if names else schema


def _last(names: Mapping[str, str], key: str, name: str) -> str:
    return names.get(f"#/{key}/{name.replace('~', '~0').replace('/', '~1')}", name).rsplit("/", 1)[-1]


def _pointed(value: Any, names: Mapping[str, str]) -> Any:
    """A schema whose references follow."""
    if isinstance(value, str):
        at = next((old for old in names if value == old or value.startswith(f"{old}/")), None)
        return value if at is None else names[at] + value[len(at) :]
    if isinstance(value, dict):
        return {key: _pointed(part, names) for key, part in value.items()}
    return [_pointed(part, names) for part in value] if isinstance(value, list) else value


def _holds(value: Any, marks: set[str]) -> bool:
    text = _bare(value if isinstance(value, str) else json.dumps(value))
    return any(mark in text for mark in marks)


def _bare(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


# ---------------------------------------------------------------- texts


_ITEM = r"[`'\"]?[A-Za-z_][\w-]*[`'\"]?"
_LINK = r"(?:\s*+[,/&]\s*+(?:(?:and|or)\s++)?|\s++(?:and|or|nor)\s++)"
_LIST = rf"{_ITEM}(?:{_LINK}{_ITEM})*+"
_ISSUES = re.compile(r'"path"\s*:\s*\[')  # complaints that are JSON themselves: their keys are no parameters


def renamed(
    text: str, tools: Mapping[str, str], params: Mapping[str, str] = MappingProxyType({}), shown: Iterable[str] = ()
) -> str:
    """A text in which names of tools and parameters are replaced by those shown.

    Names of tools are replaced within words as well (`get_customerArguments`), but not within one of `shown`.
    A name that may as well be a word of the language is replaced only where it clearly is the name: in quotes, beside
    the word parameter or tool, as `name=` or `data.name`, or at the head of a line or clause that is about it.
    """
    every = {**tools, **params}
    found = sorted((name for name in every if name in text), key=len, reverse=True)
    if not found:
        return text
    spans: dict[int, tuple[int, str]] = {}
    if sure := [name for name in found if not PLAIN_WORD.fullmatch(name) and (name not in tools or len(name) < SHORT)]:
        spans |= _words(text, set(sure))
    if sure := [name for name in found if not PLAIN_WORD.fullmatch(name) and name in tools and len(name) >= SHORT]:
        longer = [name for name in shown if any(one in name for one in sure)]
        spans |= {m.start(): (m.end(), m[0]) for m in re.finditer(_parts([*sure, *longer]), text) if m[0] in tools}
    if words := [name for name in found if PLAIN_WORD.fullmatch(name)]:
        spans |= _spoken_of(text, words, "tool", tools)
        spans |= _spoken_of(text, words, "param", params)
    out, at = [], 0
    for start, (end, name) in sorted(spans.items()):
        if start < at:
            continue
        out += [text[at:start], every[name]]
        at = end
    return "".join([*out, text[at:]])


def _words(text: str, names: set[str]) -> dict[int, tuple[int, str]]:
    """Where names stand as whole words: the start of each place, with its end and the name."""
    plain = {name for name in names if _WORD.fullmatch(name)}
    out = {m.start(): (m.end(), m[0]) for m in _WORD.finditer(text) if m[0] in plain} if plain else {}
    if odd := names - plain:
        out |= {m.start(): (m.end(), m[0]) for m in re.finditer(_whole(sorted(odd, key=len, reverse=True)), text)}
    return out


def _parts(names: Iterable[str]) -> str:
    """Names anywhere, the longest first."""
    return "|".join(map(re.escape, sorted(set(names), key=len, reverse=True)))


def _whole(names: Iterable[str]) -> str:
    return rf"(?<![\w-])(?:{'|'.join(map(re.escape, names))})(?![\w-])"


# Texts come from strangers, and the loop that reads them serves all clients: whatever they hold, each pattern takes
# time in proportion to their length. A list is read once, from its first item to its last, and only then is looked at
# what stands beside it.
_WORD = re.compile(r"[\w-]++")
_LISTS = re.compile(rf"(?<![\w-]){_LIST}")
_CALLED = r"(?:\s++(?:named|called))?(?:\s*+:)?\s++"
_BEFORE = {
    "tool": re.compile(rf"\b(?:tool|function)s?{_CALLED}({_LIST})"),
    "param": re.compile(rf"\b(?:(?:param(?:eter)?|arg(?:ument)?|field|key)s?|propert(?:y|ies)){_CALLED}({_LIST})"),
}
_AFTER = {
    "tool": re.compile(r"\s++(?:tool|function)\b"),
    "param": re.compile(r"\s++(?:param(?:eter)?|arg(?:ument)?)s?\b"),
}
_COLON = re.compile(r"\s*+:")


def _beside(text: str, sort: str) -> Iterator[tuple[int, int]]:
    """Where lists stand that are said to be of tools, or of parameters."""
    yield from (found.span() for found in _LISTS.finditer(text) if _AFTER[sort].match(text, found.end()))
    yield from (found.span(1) for found in _BEFORE[sort].finditer(text))


def _begins(text: str, at: int) -> bool:
    """Does a line, a clause or a bracket begin here?"""
    start = at
    while start and text[start - 1].isspace():
        start -= 1
    return not at or text[start - 1 : start] in (";", ":", "(") or "\n" in text[start:at]


def _spoken_of(text: str, words: Sequence[str], sort: str, names: Mapping[str, str]) -> dict[int, tuple[int, str]]:
    """Where words are names: the start of each place, with its end and the name."""
    some = "|".join(word for word in words if word in names)
    if not some:
        return {}
    patterns = [
        rf"(?P<quote>[`'\"])({some})(?P=quote)",
        rf"\u2018({some})\u2019|\u201c({some})\u201d",
    ]
    if sort == "param":
        patterns += [
            rf"(?m)^[ \t]*(?:[-*\u2022][ \t]*)?({some})[ \t]*+(?:\([^)\n]*+\)[ \t]*+)?(?::|=|$)",  # of a list, or alone
            rf"(?<![\w?&/.-])({some})=(?!=)",
            rf"\b(?:arguments|args|params|parameters|input|data|body|root)[./]({some})(?![\w-])",
            rf"(?P<subject>{some})\s++(?:must|is|are|was|were|cannot|can|should|may|has|needs|exceeds)\b",
        ]
    out: dict[int, tuple[int, str]] = {}
    keys = _ISSUES.search(text) is not None
    for pattern in patterns:
        for match in re.finditer(pattern, text):
            named = match.groupdict()
            if "subject" in named and not _begins(text, match.start()):
                continue
            if not (keys and match[0][0] == '"' and _COLON.match(text, match.end())):
                at = next(n for n in range(1, len(match.groups()) + 1) if match[n] and match[n] in names)
                out[match.start(at)] = (match.end(at), match[at])
    wanted = set(some.split("|"))
    for start, end in _beside(text, sort):
        out |= {start + at: (start + stop, name) for at, (stop, name) in _words(text[start:end], wanted).items()}
    return out
