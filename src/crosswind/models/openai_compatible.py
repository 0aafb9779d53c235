"""Any server that speaks OpenAI's chat completions: OpenAI, vLLM, SGLang, Ollama, llama.cpp, LM Studio and gateways."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from crosswind.core.types import Message, Request, Tools
from crosswind.episodes.play import plain
from crosswind.models.remote import RemoteModel, Said, count

UNREAD = 2000  # characters of arguments that are not JSON, as the model is shown them again


class OpenAICompatible(RemoteModel):
    provider = package = "openai"
    home = "https://api.openai.com/v1"
    variable = "OPENAI_API_KEY"
    client = "AsyncOpenAI"

    def body(self, chat: Sequence[Message], tools: Tools) -> dict[str, Any]:
        messages = [_message(m) for m in chat if m.content or m.role != "system"]
        return self.text_body(messages) | {"tools": [tool.function() for tool in tools]}

    def text_body(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        longest = "max_completion_tokens" if self.url == self.home else "max_tokens"
        out = {"model": self.model, "messages": messages, longest: self.max_tokens}
        return out if self.limits.temperature is None else out | {"temperature": self.limits.temperature}

    def sender(self, client: Any) -> Any:
        return client.chat.completions.with_streaming_response.create

    def read(self, data: Any) -> Said | None:
        try:
            message = data["choices"][0]["message"]
            text = message.get("content") or message.get("refusal") or ""
            calls = [
                (call.get("id"), call["function"].get("name"), call["function"].get("arguments"))
                for call in message.get("tool_calls") or ()
            ]
        except (LookupError, TypeError, AttributeError):
            return None
        if isinstance(text, list):  # in parts
            texts = [part.get("text") for part in text if isinstance(part, dict)]
            text = "".join(part for part in texts if isinstance(part, str))
        if not isinstance(text, str):
            return None
        used = data.get("usage")
        used = used if isinstance(used, dict) else {}
        return Said(text, calls, count(used.get("prompt_tokens")), count(used.get("completion_tokens")))


def _message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.request_id, "content": message.content}
    out: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.requests:
        out["tool_calls"] = [
            {"id": r.id, "type": "function", "function": {"name": name_of(r), "arguments": json.dumps(args_of(r))}}
            for r in message.requests
        ]
    return out


def name_of(request: Request) -> str:
    """The name of a tool as every provider takes it back, even one that does not exist."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", request.tool)[:64] or "unknown"


def args_of(request: Request) -> dict[str, Any]:
    """Arguments as every provider takes them back: an object, even for what was none."""
    if isinstance(request.args, dict):
        bounded: dict[str, Any] = plain(request.args)
        return bounded
    text = request.args if isinstance(request.args, str) else json.dumps(request.args, default=str)
    return {"not_an_object": text[:UNREAD]}
