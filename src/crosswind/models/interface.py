"""The interface that an agent knows: its tools and the shapes of their results, learnt from a time when all went well.

It is learnt from what the agent was shown and answered, never from a world: from the records of a run, from the log of
a proxy, or from the episodes of a stream. Against it, tools and results of today are matched by what they say of
themselves: descriptions, parameters, types, order and the look of values.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crosswind.base.errors import BadFile
from crosswind.base.files import read_whole
from crosswind.core.types import Param, Tools, ToolSpec

MOST_TOOLS, MOST_KEYS = 400, 80  # what a memory holds
FITS, AHEAD = 0.45, 0.05  # how alike two tools must be, and by how much more than the next
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
READS = frozenset(
    "browse check count describe display fetch find get inspect list look lookup query read retrieve search see show"
    " view".split()
)
LOOKS = {  # of a text, the first that fits
    "date": re.compile(r"\d{4}-\d\d-\d\d"),
    "moment": re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*"),
    "time": re.compile(r"\d\d?:\d\d(:\d\d)?"),
    "number": re.compile(r"-?\d+([.,]\d+)?"),
    "code": re.compile(r"[A-Za-z]{1,5}[-_]?\d[\w-]*|(?=\w*\d)[\w-]{6,}"),
    "word": re.compile(r"[A-Za-z_]+"),
}


def words_of(text: str) -> set[str]:
    """The words of a name or a sentence, without common endings."""
    return {re.sub(r"(?<=\w{3})(es|s|ed|ing)$", "", word.lower()) for word in WORD.findall(text)}


def look_of(value: Any) -> str:
    """What sort of value this is, by its type and, of a text, by its look."""
    if isinstance(value, str):
        return next((name for name, look in LOOKS.items() if look.fullmatch(value)), "text")
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "list" if isinstance(value, list) else "object" if isinstance(value, Mapping) else "nothing"


def may_write(name: str, tools: Tools) -> bool:
    """Could calling a tool change something, by what its name and its description begin with?"""
    doc = next((tool.doc for tool in tools if tool.name == name), "")
    return not any(WORD.findall(text)[:1] and _begins(text) in READS for text in (name, doc))


def _begins(text: str) -> str:
    first = WORD.findall(text)[0].lower()
    return first if first in READS else re.sub(r"(es|s)$", "", first)


@dataclass(slots=True)
class ResultShape:
    """What a tool answers: a list of records or one record, and the keys of a record with the looks of their values."""

    many: bool
    keys: dict[str, list[str]] = field(default_factory=dict)  # in order
    texts: set[str] = field(default_factory=set)  # keys whose values are text, even where it looks like a number

    def learn(self, row: Mapping[str, Any]) -> None:
        for key, value in row.items():
            if key in self.keys or len(self.keys) < MOST_KEYS:
                looks = self.keys.setdefault(key, [])
                if value is not None and (look := look_of(value)) not in looks:
                    looks.append(look)
                if isinstance(value, str):
                    self.texts.add(key)


@dataclass(slots=True)
class KnownTool:
    """A tool as the agent knows it."""

    spec: ToolSpec
    shape: ResultShape | None = None  # None: it never answered with records


class KnownInterface:
    """What an agent knows of its tools."""

    def __init__(self) -> None:
        self.tools: dict[str, KnownTool] = {}

    def __bool__(self) -> bool:
        return bool(self.tools)

    # -- learning

    def meet(self, tools: Iterable[ToolSpec]) -> None:
        """Remember tools that were not known."""
        for tool in tools:
            if tool.name not in self.tools and len(self.tools) < MOST_TOOLS:
                self.tools[tool.name] = KnownTool(plain_spec(tool))

    def answered(self, name: str, content: Any) -> None:
        """Remember the shape of a result that is no error."""
        known = self.tools.get(name)
        if known is None:
            return
        rows = content if isinstance(content, list) else [content]
        if not all(isinstance(row, Mapping) for row in rows):
            return
        if known.shape is None:
            known.shape = ResultShape(isinstance(content, list))
        if known.shape.many is isinstance(content, list):
            for row in rows[:20]:
                known.shape.learn(row)

    # -- matching

    def matches(self, tools: Tools) -> dict[str, str]:
        """Known tools that are shown no longer -> the tool shown now that is most like each, one to one."""
        gone = [known.spec for name, known in self.tools.items() if all(tool.name != name for tool in tools)]
        fresh = [tool for tool in tools if tool.name not in self.tools]
        if not gone or not fresh:
            return {}
        rare = _rarity([*gone, *fresh])
        scores = {(old.name, new.name): _likeness(old, new, rare) for old in gone for new in fresh}
        found: dict[str, str] = {}
        taken: set[str] = set()
        for (old, new), score in sorted(scores.items(), key=lambda item: (-item[1], item[0])):
            if score < FITS:
                break
            if old in found or new in taken:
                continue
            rivals = [s for (o, n), s in scores.items() if o == old and n != new and n not in taken]
            if rivals and score - max(rivals) < AHEAD and may_write(old, (self.tools[old].spec,)):
                continue  # of two that read, the second completes the first
            found[old] = new
            taken.add(new)
        return found

    # -- files

    def dump(self) -> dict[str, Any]:
        """The interface as JSON."""
        return {
            "tools": {
                name: {
                    "description": known.spec.doc,
                    "parameters": {
                        key: {"type": p.type, "description": p.doc, "required": p.required, "enum": list(p.enum)}
                        for key, p in known.spec.params.items()
                    },
                    "result": None
                    if known.shape is None
                    else {"many": known.shape.many, "keys": known.shape.keys, "texts": sorted(known.shape.texts)},
                }
                for name, known in self.tools.items()
            }
        }

    @classmethod
    def load(cls, data: Any, where: str = "the memory") -> KnownInterface:
        """The interface out of JSON."""
        out = cls()
        try:
            for name, about in data["tools"].items():
                params = {
                    key: Param(p["type"], p["description"], p["required"], tuple(p["enum"]))
                    for key, p in about["parameters"].items()
                }
                shape = about["result"] and ResultShape(
                    bool(about["result"]["many"]),
                    {key: list(looks) for key, looks in about["result"]["keys"].items()},
                    set(about["result"]["texts"]),
                )
                out.tools[str(name)] = KnownTool(ToolSpec(str(name), str(about["description"]), params), shape or None)
        except (KeyError, TypeError, AttributeError, ValueError):
            raise BadFile(f"{where}: not an interface; write one with `crosswind adapt learn`") from None
        return out


def read_interface(path: str) -> KnownInterface:
    """The interface in a file that `crosswind adapt learn` wrote."""
    try:
        data = json.loads(read_whole(Path(path), links=True))
    except OSError as error:
        raise BadFile(f"{path}: cannot be read ({error.strerror}); write it with `crosswind adapt learn`") from None
    except (ValueError, RecursionError):
        raise BadFile(f"{path}: not JSON; write it with `crosswind adapt learn`") from None
    return KnownInterface.load(data, path)


def plain_spec(tool: ToolSpec) -> ToolSpec:
    """A tool without what an agent is never shown."""
    return ToolSpec(tool.name, tool.doc, tool.params)


# ---------------------------------------------------------------- likeness


def _rarity(tools: Sequence[ToolSpec]) -> dict[str, float]:
    """How much each word tells, the more the fewer tools have it."""
    counts = Counter(word for tool in tools for word in _said(tool))
    return {word: math.log(1 + len(tools) / count) for word, count in counts.items()}


def _said(tool: ToolSpec) -> set[str]:
    docs = " ".join(param.doc for param in tool.params.values())
    return words_of(f"{tool.name} {tool.doc} {docs} {' '.join(tool.params)}")


def _likeness(old: ToolSpec, new: ToolSpec, rare: Mapping[str, float]) -> float:
    """From 0 to 1: how much two tools say the same of themselves."""
    a, b = _said(old), _said(new)
    every = sum(rare[word] for word in a | b)
    by_words = sum(rare[word] for word in a & b) / every if every else 0.0
    pairs = len(matched_params(old.params, new.params))
    most = max(len(old.params), len(new.params))
    by_params = pairs / most if most else 1.0
    first, second = words_of(old.doc), words_of(new.doc)
    by_doc = 2 * len(first & second) / max(len(first) + len(second), 1)
    return 0.35 * by_words + 0.35 * by_params + 0.3 * by_doc


def matched_params(old: Mapping[str, Param], new: Mapping[str, Param]) -> dict[str, str]:
    """Parameters of a known tool -> those of the tool shown that take the same; unsure ones are left out."""
    found = {name: name for name in old if name in new}
    gone = [name for name in old if name not in new]
    fresh = [name for name in new if name not in old]
    if len(gone) == len(fresh) and all(
        old[a].type == new[b].type and old[a].required == new[b].required for a, b in zip(gone, fresh, strict=True)
    ):
        alike = [_param_likeness(a, old[a], b, new[b]) for a, b in zip(gone, fresh, strict=True)]
        crossed = [
            _param_likeness(a, old[a], b, new[b]) for n, a in enumerate(gone) for m, b in enumerate(fresh) if n != m
        ]
        if not crossed or sum(alike) / len(alike) >= sum(crossed) / len(crossed):
            return found | dict(zip(gone, fresh, strict=True))  # the order is kept
    scores = {(a, b): _param_likeness(a, old[a], b, new[b]) for a in gone for b in fresh if old[a].type == new[b].type}
    for (a, b), score in sorted(scores.items(), key=lambda item: (-item[1], item[0])):
        if score > 0 and a not in found and b not in found.values():
            found[a] = b
    return found


def _param_likeness(a: str, old: Param, b: str, new: Param) -> float:
    first, second = words_of(f"{a} {old.doc}"), words_of(f"{b} {new.doc}")
    same = len(first & second) / max(len(first | second), 1)
    return same + 0.3 * (bool(old.enum) and set(old.enum) == set(new.enum))
