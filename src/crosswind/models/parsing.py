"""Tool calls out of text. Models write them in many ways; whatever came, this returns and never raises.

What cannot be read becomes a call whose arguments are the text as it stood, so that the session answers it with an
error, as a real API would.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any, NamedTuple

LONGEST = 1_000_000  # characters of arguments that are read; longer ones are cut and count as no JSON
LITERAL = 20_000  # characters that are tried as Python
_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.S)
_BLOCK = re.compile(r"<tool_call>(.*?)(?:</tool_call>|(?=<tool_call>)|\Z)", re.S)
_FENCE = re.compile(r"```[\w-]*[ \t]*\n?(.*?)(?:```|\Z)", re.S)
_NAME = re.compile(r"""["'](?:name|tool|function)["']\s*:\s*["']([^"'\n]{1,200})["']""")
_CALLED = re.compile(r"\s*([A-Za-z_][\w.-]*)\s*\(")
_TRAILING = re.compile(r",\s*([}\]])")
_NAMES = ("name", "tool", "function", "tool_name")
_ARGS = ("arguments", "args", "parameters", "input")


class Call(NamedTuple):
    tool: str
    args: Any


def clean(text: object) -> str:
    """Text that can be stored and sent: a string without halves of characters."""
    if not isinstance(text, str):
        return ""
    text = str.__str__(text)  # a subclass may do anything in its methods
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def arguments(raw: object) -> Any:
    """The arguments of a call as a provider sends them: an object, or text that should hold one."""
    if not isinstance(raw, str):
        return {} if raw is None else raw
    if not raw.strip():
        return {}
    if len(raw) > LONGEST:
        return raw[:LONGEST]
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return raw


def spoken_aloud(text: str) -> str:
    """What a model wrote without what it only thought."""
    return _THOUGHT.sub("", text).strip() if "<think>" in text else text


def parse(text: str) -> tuple[str, list[Call]]:
    """What a model wrote, as what it says and the calls it makes."""
    text = spoken_aloud(text).strip()
    if "<tool_call>" in text:
        calls = [call for body in _BLOCK.findall(text) for call in _calls(body)]
        return _BLOCK.sub("", text).replace("</tool_call>", "").strip(), calls
    for whole in (text, *(m[1] for m in _FENCE.finditer(text))):
        found = _objects(whole[:LONGEST].strip()) if whole.lstrip()[:1] in ("{", "[") else None
        if found and all(_is_call(one) for one in found):
            said = "" if whole is text else text[: text.index("```")].strip()
            return said, [_call(one) for one in found]
    return text, []


def _calls(body: str) -> list[Call]:
    """The calls in one block."""
    if fenced := _FENCE.search(body):
        body = fenced[1]
    body = body.strip()
    if len(body) <= LONGEST:
        found = _objects(body)
        if found and all(isinstance(one, dict) for one in found):
            return [_call(one) for one in found]
        if written := _as_function(body):
            return [written]
    name = _NAME.search(body[:LITERAL]) or _CALLED.match(body[:LITERAL])
    return [Call(clean(name[1]) if name else "", body[:LONGEST])]


def _objects(text: str) -> list[Any] | None:
    """One JSON value after the other, or a list of them; failing that, the same as Python writes it."""
    out: list[Any] = []
    decoder, at = json.JSONDecoder(), 0
    try:
        while at < len(text):
            value, at = decoder.raw_decode(text, at)
            out += value if isinstance(value, list) else [value]
            while at < len(text) and text[at] in " \t\r\n,;":
                at += 1
        return out
    except (ValueError, RecursionError):
        pass
    if out and not text[at:].lstrip().startswith(("{", "[")):
        return out  # what follows is chatter, not a broken call
    value = _literal(text)
    return None if value is None else value if isinstance(value, list) else [value]


def _literal(text: str) -> Any:
    """A value with single quotes, Python's constants or trailing commas; None if it is none."""
    if len(text) > LITERAL:
        return None
    for form in (text, _TRAILING.sub(r"\1", text)):
        for read in (json.loads, ast.literal_eval):
            try:
                return read(form)
            except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
                continue
    return None


def _as_function(text: str) -> Call | None:
    """A call written as `tool(key="value")`."""
    if len(text) > LITERAL or not _CALLED.match(text):
        return None
    try:
        node = ast.parse(text, mode="eval").body
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.args:
            return Call(node.func.id, {k.arg: ast.literal_eval(k.value) for k in node.keywords if k.arg})
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        pass
    return None


def _is_call(value: Any) -> bool:
    """Does a bare object mean to be a call?"""
    if not isinstance(value, dict):
        return False
    value = value["function"] if isinstance(value.get("function"), dict) else value
    return any(isinstance(value.get(k), str) for k in _NAMES) and any(k in value for k in _ARGS)


def _call(value: dict[str, Any]) -> Call:
    inner = value["function"] if isinstance(value.get("function"), dict) else value
    tool = next((inner[k] for k in _NAMES if isinstance(inner.get(k), str)), "")
    raw = next((inner[k] for k in _ARGS if k in inner), None)
    if raw is None:
        raw = {k: v for k, v in inner.items() if k not in (*_NAMES, "id", "type")}
    return Call(clean(tool), arguments(raw))
