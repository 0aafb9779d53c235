"""A policy in tokens for other people's trainers: a tiny tokenizer, and replies that a scripted agent gave before."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import crosswind as cw
from bench.frameworks.scripted import replies_of

_SPEC = importlib.util.spec_from_file_location("crosswind_tiny", Path(__file__).parents[2] / "tests" / "tiny.py")
assert _SPEC is not None
assert _SPEC.loader is not None
tiny: Any = importlib.util.module_from_spec(_SPEC)  # by its path: verl installs a package of the name `tests`
sys.modules[_SPEC.name] = tiny
_SPEC.loader.exec_module(tiny)

HERMES = """\
{%- for message in messages %}
{%- if loop.first and message.role == 'system' %}
{{- '<|im_start|>system\\n' + message.content }}
{%- if tools %}{{- '\\n# Tools' }}{% for tool in tools %}{{- '\\n' + (tool | tojson) }}{% endfor %}{% endif %}
{{- '<|im_end|>\\n' }}
{%- elif message.role == 'assistant' %}
{{- '<|im_start|>assistant\\n' + (message.content or '') }}
{%- for call in message.tool_calls or [] %}
{{- '<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
{{- (call.function.arguments | tojson) + '}\\n' }}
{{- '</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- elif message.role == 'tool' %}
{{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
{%- else %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{% endif %}"""
ASSISTANT = "<|im_start|>assistant"


def tokenizer(template: str = HERMES) -> Any:
    made = tiny.tokenizer("poi")
    made.chat_template = template
    made.model_max_length = 1 << 20
    return made


class ScriptedPolicy:
    """Says in tokens what an agent said in recorded episodes, which are played in this order, one after the other."""

    def __init__(self, tok: Any, records: Iterable[cw.Record], *, times: int = 1) -> None:
        self.tok, self.asked, self.lists = tok, 0, list[int]()
        self.left = [record for record in records for _ in range(times)][::-1]
        self.replies: list[str] = []  # of the episode under way

    def __call__(self, prompt: Sequence[int]) -> list[int]:
        """The reply to a prompt; it ends with the end of a turn. A prompt without a reply in it begins an episode."""
        self.asked += 1
        nth = self.tok.decode(list(prompt), skip_special_tokens=False).count(ASSISTANT) - 1
        if not nth:
            self.replies = said_in(self.left.pop()) if self.left else []
        said = self.replies[nth] if nth < len(self.replies) else "I do not know."
        return [*self.tok.encode(said, add_special_tokens=False), self.tok.eos_token_id]


def said_in(record: cw.Record) -> list[str]:
    """The agent's messages of an episode, as a model writes them."""
    return [_text(words, calls) for words, calls in replies_of(record)]


def _text(words: str, calls: Sequence[tuple[str, str, Any]]) -> str:
    blocks = (json.dumps({"name": tool, "arguments": args}, ensure_ascii=False) for _, tool, args in calls)
    return words + "".join(f"<tool_call>\n{block}\n</tool_call>" for block in blocks)
