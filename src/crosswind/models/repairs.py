"""What can be put right in a call or a result without a model: by the tools shown, by errors, by common conventions.

Nothing here knows a perturbation, a domain or its words. A repair is made where one reading fits and no other does as
well; anything else is left as it is.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple
from xml.etree import ElementTree

from crosswind.core.types import Param, Request, Tools, ToolSpec
from crosswind.core.world import JSON_TYPES, bad_arguments
from crosswind.models.interface import words_of

NEAR = 0.7  # what a key with a word in common counts for, beside one that is the same
SIGNS = 3  # of a parameter that takes the next page
FITS, AHEAD = 0.5, 0.1  # how well a tool must fit a call, and by how much better than the next
PAYLOAD = frozenset(
    "body content contents data items output payload record records response result results rows".split()
)
AROUND = frozenset(
    "code count error errors message meta metadata ok size status success timestamp total version".split()
)
PASSING = re.compile(
    r"rate.?limit|too many|quota|tim(ed|e) ?out|unavailable|temporar|transient|busy|overload|try again|retry"
    r"|again later|connection|gateway|\b(429|50[0234])\b",
    re.IGNORECASE,
)
UNCERTAIN = re.compile(
    r"tim(ed|e) ?out|connection|gateway|no (response|answer|reply)|unknown (state|outcome)", re.IGNORECASE
)


# ---------------------------------------------------------------- calls


def tool_for(name: str, args: Any, tools: Tools) -> str:
    """The tool shown that a call of an unknown one must mean; empty where none stands out."""
    if not isinstance(args, Mapping):
        return ""
    ranked = sorted(((_fit(name, args, tool), tool.name) for tool in tools), reverse=True)
    if not ranked or ranked[0][0] < FITS or (len(ranked) > 1 and ranked[0][0] - ranked[1][0] < AHEAD):
        return ""
    return ranked[0][1]


def _fit(name: str, args: Mapping[str, Any], tool: ToolSpec) -> float:
    """From 0 to 1: how much a call says the same as a tool, by its arguments and by the words of its name."""
    required = {key for key, param in tool.params.items() if param.required}
    keys = set(args)
    lacking = [words_of(key) for key in required - keys]
    near = 0  # keys that share a word with one that the tool lacks
    for key in keys - set(tool.params):
        if found := next((words for words in lacking if words & words_of(key)), None):
            lacking.remove(found)
            near += 1
    alike = len(keys & set(tool.params)) + NEAR * near
    by_arguments = alike / max(len(keys | required) - near, 1) if keys or required else 0.5
    wanted = words_of(name)
    by_words = len(wanted & words_of(f"{tool.name} {tool.doc}")) / max(len(wanted), 1)
    return 0.6 * by_arguments + 0.4 * by_words


def arguments_for(args: Any, params: Mapping[str, Param]) -> Any:
    """Arguments as a tool takes them: keys that it does not know under those it lacks, values as their types ask."""
    if not isinstance(args, Mapping) or bad_arguments(params, args) is None:
        return args
    out = {key: converted(value, params[key]) for key, value in args.items() if key in params}
    strange = {key: value for key, value in args.items() if key not in params}
    open_ = {key: param for key, param in params.items() if key not in out}
    lacking = [key for key, param in open_.items() if param.required]
    for key, value in strange.items():
        fits = [name for name in open_ if name not in out and _takes(open_[name], value)]
        ranked = sorted(((_closeness(key, name, open_[name]), name in lacking, name) for name in fits), reverse=True)
        alone = [name for name in lacking if name in fits and name not in out]
        if ranked and ranked[0][0] > 0 and (len(ranked) == 1 or ranked[0][:2] > ranked[1][:2]):
            out[ranked[0][2]] = converted(value, open_[ranked[0][2]])
        elif len(alone) == 1:
            out[alone[0]] = converted(value, open_[alone[0]])
    return out if bad_arguments(params, out) is None else args


def _takes(param: Param, value: Any) -> bool:
    return bad_arguments({"value": param}, {"value": converted(value, param)}) is None


def _closeness(key: str, name: str, param: Param) -> float:
    wanted = words_of(key)
    return 2 * len(wanted & words_of(name)) / max(len(wanted), 1) + len(wanted & words_of(param.doc)) / max(
        len(wanted), 1
    )


def converted(value: Any, param: Param) -> Any:
    """A value in the type and the spelling that a parameter asks for, where there is no doubt."""
    if param.enum and value not in param.enum and isinstance(value, str):
        same = [choice for choice in param.enum if words_of(str(choice)) == words_of(value)]
        return same[0] if len(same) == 1 else value
    if isinstance(value, JSON_TYPES.get(param.type, (object,))) and not isinstance(value, bool):
        return value
    if param.type == "string" and isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value) if abs(value) < 2**63 else value
    if param.type in ("integer", "number") and isinstance(value, str):
        if re.fullmatch(r"-?\d{1,15}", value.strip()):
            return int(value)
        if param.type == "number" and re.fullmatch(r"-?\d{1,15}\.\d+", value.strip()):
            return float(value)
    if param.type == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if param.type == "boolean" and isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if param.type == "array" and isinstance(value, (str, int, float)):
        return [value]
    return value


# ---------------------------------------------------------------- results


def as_data(text: str) -> Any:
    """A result as data; the text itself where it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def error_in(text: str) -> str:
    """The words of an error that a result reports; empty where it reports none."""
    data = as_data(text)
    if not isinstance(data, Mapping) or not data.get("error"):
        return ""
    return " ".join(str(value) for value in data.values() if isinstance(value, (str, int)))


def read_result(text: str, *, expected: bool = False) -> Any:
    """A result as data: tables, XML and lines `key: value` are read; the text itself where it is none of them.

    A single line is read where a record is `expected`; else it may be a sentence.
    """
    data = as_data(text)
    if isinstance(data, str):
        found = _table(data) or _xml(data) or _lines(data, 1 if expected else 2)
        return data if found is None else found
    return data


def unwrapped_result(data: Any) -> Any:
    """What a result is about, without wrappers that only say how the request went."""
    while isinstance(data, Mapping) and (key := _payload(data)):
        data = data[key]
    return data


def _payload(data: Mapping[str, Any]) -> str:
    """The key of what a result is about, where everything else says how the request went."""
    held = [key for key, value in data.items() if isinstance(value, (Mapping, list)) and key.lower() in PAYLOAD]
    if len(held) != 1 or data.get("error"):
        return ""
    rest = [key for key in data if key != held[0]]
    return held[0] if all(words_of(key) & _AROUND for key in rest) else ""


_AROUND = frozenset(word for name in AROUND for word in words_of(name))


def _scalar(text: str) -> Any:
    data = as_data(text.strip())
    return text.strip() if isinstance(data, (Mapping, list)) else data


def _table(text: str) -> list[dict[str, Any]] | None:
    """Rows of a table in Markdown, with commas or with tabs; the first line names the columns."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    if len(lines) < 2:
        return None
    if lines[0].startswith("|"):
        cells = [
            [cell.strip() for cell in line.strip("|").split("|")]
            for line in lines
            if not re.fullmatch(r"[|:\s-]+", line)
        ]
    else:
        mark = next((mark for mark in ("\t", ",", ";") if mark in lines[0]), "")
        if not mark or ": " in lines[0]:
            return None
        cells = list(csv.reader(lines, delimiter=mark))
    head, *rows = cells
    if not rows or any(len(row) != len(head) for row in rows) or len(set(head)) != len(head):
        return None
    return [dict(zip(head, map(_scalar, row), strict=True)) for row in rows]


def _xml(text: str) -> Any:
    if not text.lstrip().startswith("<") or "<!" in text:  # no declarations: they may name entities
        return None
    try:
        return _element(ElementTree.fromstring(text.strip()))
    except ElementTree.ParseError:
        return None


def _element(node: ElementTree.Element) -> Any:
    parts = list(node)
    if not parts:
        return {**node.attrib} if node.attrib and not node.text else _scalar(node.text or "")
    tags = [part.tag for part in parts]
    if len(tags) > 1 and len(set(tags)) == 1:
        return [_element(part) for part in parts]
    return {**node.attrib, **{part.tag: _element(part) for part in parts}}


def _lines(text: str, least: int = 2) -> Any:
    """Lines `key: value` as a record; blocks of them between empty lines as a list."""
    blocks = [_block(block) for block in re.split(r"\n\s*\n", text.strip())]
    if not all(blocks) or sum(map(len, blocks)) < least:
        return None
    return blocks[0] if len(blocks) == 1 else blocks


def _block(text: str) -> dict[str, Any]:
    """Lines `key: value`; nothing where one of them is something else."""
    found = [re.fullmatch(r"[-*]?\s*([\w ]{1,40}?)\s*[:=]\s*(.+)", line) for line in text.strip().splitlines()]
    return {match[1]: _scalar(match[2]) for match in found if match} if all(found) else {}


def noted(text: str, note: str) -> str:
    """A result with a note for the agent, still JSON if it was an object."""
    data = as_data(text)
    if not isinstance(data, Mapping):
        return f"{text}\n[{note}]"
    message = data.get("message")
    added = {"message": f"{message} {note}"} if data.get("error") and isinstance(message, str) else {"note": note}
    return json.dumps({**data, **added}, ensure_ascii=False)


class Page(NamedTuple):
    """A page of a list: its rows, and what to ask for the next one."""

    rows: list[Any]
    key: str  # of the rows
    next_key: str
    following: Any  # None: it is the last
    param: str  # of the tool, that takes it


def page_in(data: Any, tool: ToolSpec, args: Mapping[str, Any], known: Collection[str] = ()) -> Page | None:
    """The page that a result is: one list beside one value that the tool takes back under a parameter of its own.

    A parameter is taken if two signs speak for it: it is new, not among the `known` ones, or descriptions or names tie
    it to the value.
    """
    if not isinstance(data, Mapping) or len(data) != 2:
        return None
    lists = [key for key, value in data.items() if isinstance(value, list)]
    if len(lists) != 1:
        return None
    (key,) = lists
    next_key = next(name for name in data if name != key)
    following = data[next_key]
    if isinstance(following, bool) or not (following is None or isinstance(following, (int, str))):
        return None
    free = [
        name
        for name, param in tool.params.items()
        if not param.required and name not in args and (following is None or _takes(param, following))
    ]
    signs = {
        name: 2 * (name not in known)
        + 2 * _mentions(tool.params[name].doc, next_key)
        + (_mentions(tool.doc, next_key) and _mentions(tool.doc, name))
        + bool(words_of(name) & words_of(next_key))
        for name in free
    }
    most = max(signs.values(), default=0)
    chosen = [name for name, sign in signs.items() if sign == most]
    if most < SIGNS or len(chosen) != 1:
        return None
    return Page(data[key], key, next_key, following or None, chosen[0])


def _mentions(text: str, name: str) -> bool:
    """Does a text have a name as a whole word?"""
    return bool(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text))


def named_in(text: str, tools: Tools) -> list[ToolSpec]:
    """The tools that a text names."""
    return [tool for tool in tools if re.search(rf"(?<![\w-]){re.escape(tool.name)}(?![\w-])", text)]


def waiting_tool(error: str, called: str, tools: Tools) -> str:
    """The tool that an error says to call before the same call again: named in it, and taking no argument."""
    named = [tool for tool in named_in(error, tools) if tool.name != called]
    free = [tool for tool in named if not any(param.required for param in tool.params.values())]
    return free[0].name if len(named) == len(free) == 1 else ""


ORDER = re.compile(r"\b(first|before|prior|must|require\w*|need\w*|missing|not (yet|been)|without)\b", re.IGNORECASE)


def precondition(error: str, request: Request, tools: Tools) -> str:
    """What an agent is told of an error about order: tools that the error names or that speak of what is missing."""
    named = [tool for tool in named_in(error, tools) if tool.name != request.tool]
    if not named and not ORDER.search(error):
        return ""
    found = named or nearest(error, tuple(tool for tool in tools if tool.name != request.tool))
    return f"Something has to come before this call. See {'; '.join(map(signature, found))}." if found else ""


def nearest(text: str, tools: Tools, most: int = 3) -> list[ToolSpec]:
    """The tools whose names and descriptions have most in common with a text."""
    wanted = words_of(text)
    ranked = sorted(
        ((len(wanted & words_of(f"{t.name} {t.doc}")), t.name, t) for t in tools), key=lambda r: (-r[0], r[1])
    )
    return [tool for score, _, tool in ranked[:most] if score]


def signature(tool: ToolSpec) -> str:
    """A tool in one line: what it takes, with a question mark behind what may be left out."""
    params = (f"{name}: {param.type}{'' if param.required else '?'}" for name, param in tool.params.items())
    return f"{tool.name}({', '.join(params)})"


def changed_tools(before: Collection[ToolSpec], now: Iterable[ToolSpec]) -> str:
    """What became of a list of tools, in a sentence; empty where nothing did."""
    old, new = {signature(tool) for tool in before}, {signature(tool) for tool in now}
    parts = [f"{word}: {', '.join(sorted(some))}" for word, some in (("new", new - old), ("gone", old - new)) if some]
    return f"The list of tools has changed; {'; '.join(parts)}." if parts else ""
