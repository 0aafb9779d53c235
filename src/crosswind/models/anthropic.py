"""Anthropic's messages API, or a server that speaks it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crosswind.core.types import Message, Tools
from crosswind.models.openai_compatible import args_of, name_of
from crosswind.models.remote import RemoteModel, Said, count

SILENCE = "(nothing)"  # the API takes no empty text


class Anthropic(RemoteModel):
    provider = package = "anthropic"
    home = "https://api.anthropic.com"
    variable = "ANTHROPIC_API_KEY"
    client = "AsyncAnthropic"

    def body(self, chat: Sequence[Message], tools: Tools) -> dict[str, Any]:
        functions = [tool.function()["function"] for tool in tools]
        shown = [
            {"name": f["name"], "description": f["description"], "input_schema": f["parameters"]} for f in functions
        ]
        out = self._with({"tools": shown}, [(m.role, _blocks(m)) for m in chat if m.role != "system"])
        system = "\n\n".join(m.content for m in chat if m.role == "system" and m.content)
        return out | {"system": system} if system else out

    def text_body(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        turns = [(m["role"], [_text(m["content"])]) for m in messages if m["role"] != "system"]
        return self._with({"system": "\n\n".join(m["content"] for m in messages if m["role"] == "system")}, turns)

    def _with(self, more: dict[str, Any], turns: list[tuple[str, list[dict[str, Any]]]]) -> dict[str, Any]:
        """A request; what comes after another of the same role is joined to it, as the API wants."""
        messages: list[dict[str, Any]] = []
        for role, blocks in turns:
            role = "user" if role == "tool" else role
            if messages and messages[-1]["role"] == role:
                messages[-1]["content"] += blocks
            else:
                messages.append({"role": role, "content": list(blocks)})
        out = {"model": self.model, "messages": messages, "max_tokens": self.max_tokens, **more}
        if self.limits.temperature is not None:
            out["extra_body"] = {"temperature": self.limits.temperature}
        return out

    def sender(self, client: Any) -> Any:
        return client.messages.with_streaming_response.create

    def read(self, data: Any) -> Said | None:
        blocks = data.get("content") if isinstance(data, dict) else None
        if not isinstance(blocks, list) or not all(isinstance(b, dict) for b in blocks):
            return None
        used = data.get("usage")
        texts = [b["text"] for b in blocks if b.get("type") == "text" and isinstance(b.get("text"), str)]
        calls = [(b.get("id"), b.get("name"), b.get("input")) for b in blocks if b.get("type") == "tool_use"]
        used = used if isinstance(used, dict) else {}
        parts = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        read = [n for part in parts if (n := count(used.get(part))) is not None]
        return Said("\n".join(texts), calls, sum(read) if read else None, count(used.get("output_tokens")))


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text if text.strip() else SILENCE}


def _blocks(message: Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        return [{"type": "tool_result", "tool_use_id": message.request_id, "content": message.content or SILENCE}]
    calls = [{"type": "tool_use", "id": r.id, "name": name_of(r), "input": args_of(r)} for r in message.requests]
    return [_text(message.content), *calls] if message.content.strip() or not calls else calls
