"""What calls and answers carry besides a name, arguments and a result: ids, continuations, progress tokens."""

from __future__ import annotations

import json
from typing import Any

from crosswind.mcp import wire
from crosswind.mcp.wire import BadFrame, Message

CONTINUATION = {"requestState", "inputResponses"}  # parameters of a call that was put off before


def spoken(text: str, *, is_error: bool, modern: bool) -> Message:
    """A result in words."""
    value: Message = {"content": [{"type": "text", "text": text}], "isError": is_error}
    return {**value, "resultType": "complete"} if modern else value


def key(id: Any) -> str:
    """An id as the key of a table: 1 and "1" are two."""
    return json.dumps(id)


def as_json(response: Message) -> None:
    """Refuse an answer with numbers that JSON does not have: no layer is to meet them, nor could they be written."""
    try:
        wire.dump(response)
    except BadFrame as bad:
        raise BadFrame(f"the server's answer is {bad}") from None


def state(name: str, holder: Message) -> str:
    """What ties a call that was put off to its continuation."""
    return json.dumps([name, holder.get("requestState")], sort_keys=True)


def again(more: Message) -> Message:
    """What a further call for the same request of the client takes along: not what was meant for the first."""
    out = {key: value for key, value in more.items() if key not in CONTINUATION}
    if isinstance(meta := out.get("_meta"), dict) and "progressToken" in meta:
        out["_meta"] = {key: value for key, value in meta.items() if key != "progressToken"}
    return out
