"""The words that models are given, all in one place.

A model with native tool calls is given the policy as the domain has it, and nothing else. A model without is told of
its tools in few words and writes its calls as `<tool_call>{...}</tool_call>`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from crosswind.types import Message, Param, Request, Tools, ToolSpec

OPEN, CLOSE = "<tool_call>", "</tool_call>"
RULES = """\
To use a tool, write only this, with the tool's name and its arguments as JSON:
<tool_call>{"name": "TOOL", "arguments": {"KEY": "VALUE"}}</tool_call>
The answer comes back as <tool_response>. Use ids and values exactly as they were given to you. When you know enough, \
write the final answer in plain words, without a tool call."""


def signature(tool: ToolSpec) -> str:
    """A tool in one line: name, arguments (those with ? may be left out), and what it does."""
    params = ", ".join(f"{name}{'' if p.required else '?'}{_type(p)}" for name, p in tool.params.items())
    return f"{tool.name}({params}): {tool.doc}"


def _type(param: Param) -> str:
    if param.enum:
        out = "|".join(param.enum)
    elif param.type == "string" and not param.doc:
        return ""
    else:
        out = param.type
    return f": {out} ({param.doc})" if param.doc else f": {out}"


def with_tools(policy: str, tools: Tools) -> str:
    """The system message of a model that writes its calls as text."""
    listed = "\n".join(f"- {signature(tool)}" for tool in tools)
    return f"{policy}\n\nTools (arguments are strings unless marked):\n{listed}\n\n{RULES}".strip()


def call_text(request: Request) -> str:
    """A call as the text protocol writes it."""
    args = request.args
    if isinstance(args, str):
        return f"{OPEN}{args[:2000]}{CLOSE}"  # as it came: it was no JSON
    return f"{OPEN}{json.dumps({'name': request.tool, 'arguments': args}, ensure_ascii=False, default=str)}{CLOSE}"


def as_text(chat: Sequence[Message], tools: Tools) -> list[dict[str, Any]]:
    """The conversation for a model without native tools: roles and plain content, results as the user's turns."""
    out: list[dict[str, Any]] = []
    for message in chat:
        if message.role == "system":
            role, content = "system", with_tools(message.content, tools)
        elif message.role == "tool":
            role, content = "user", f"<tool_response>{message.content}</tool_response>"
        elif message.role == "assistant":
            calls = (call_text(r) for r in message.requests)
            role, content = "assistant", "\n".join(part for part in (message.content, *calls) if part)
        else:
            role, content = "user", message.content
        if out and out[-1]["role"] == role == "user":
            out[-1]["content"] += f"\n{content}"
        else:
            out.append({"role": role, "content": content})
    return out


def chatml(messages: Sequence[dict[str, Any]]) -> str:
    """Messages as ChatML, ready for the assistant's turn."""
    turns = (f"<|im_start|>{m['role']}\n{_inert(m['content'])}<|im_end|>\n" for m in messages)
    return "".join(turns) + "<|im_start|>assistant\n"


def _inert(text: str) -> str:
    """Text that cannot end its own turn."""
    return text.replace("<|im_", "<| im_")
