"""A model of transformers in this process: `hf:<path or name>[+<adapter>]`. A plain loop, one request at a time.

The tokenizer's chat template is used where there is one. If it knows tools, they are given natively; otherwise as text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from crosswind.errors import CrosswindError
from crosswind.models import prompts
from crosswind.models.openai_compatible import args_of, name_of
from crosswind.models.parsing import clean, parse
from crosswind.models.remote import sdk
from crosswind.models.spec import AgentSettings, Price
from crosswind.recipe import Drawn
from crosswind.record import Usage
from crosswind.types import Message, Request, Tools

TOKENS = 512  # of one reply, unless the settings say
WINDOW = 32_768  # where the model's configuration does not tell its own


class HuggingFace:
    """A model and its tokenizer; loaded when the first agent is made."""

    concurrency = 1
    resumes = True

    def __init__(self, rest: str, settings: AgentSettings) -> None:
        path, _, adapter = rest.partition("+")
        if not path:
            raise CrosswindError(f"hf:{rest}: expected hf:PATH or hf:PATH+ADAPTER")
        for package in ("torch", "transformers", *(["peft"] if adapter else [])):
            sdk(package, "train")
        self.name, self.path, self.adapter = f"hf:{rest}", path, adapter
        self.price: Price | None = settings.price(Price(0.0, 0.0))
        self.max_tokens = settings.max_tokens or TOKENS
        self.limits = settings
        self.settings: dict[str, Any] = {
            "model": path,
            "adapter": adapter,
            "max_tokens": self.max_tokens,
            "context": settings.context,
            "temperature": settings.temperature or 0.0,
            "protocol": settings.protocol,
            "seed": settings.seed,
        }
        self._model: Any = None
        self._tokenizer: Any = None
        self._thread = ThreadPoolExecutor(1, "hf")

    def make(self, drawn: Drawn) -> HuggingFaceAgent:
        if self._model is None:
            self._load()
        return HuggingFaceAgent(self)

    async def aclose(self) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)
        self._model = self._tokenizer = None

    def _load(self) -> None:
        torch, transformers = sdk("torch", "train"), sdk("transformers", "train")
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(self.path)
            model = transformers.AutoModelForCausalLM.from_pretrained(self.path, dtype="auto")
            if self.adapter:
                model = sdk("peft", "train").PeftModel.from_pretrained(model, self.adapter)
        except (OSError, ValueError) as error:
            raise CrosswindError(f"{self.name}: cannot be loaded: {str(error)[:300]}") from None
        torch.manual_seed(self.limits.seed)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        self._model, self._tokenizer = model.to(device).eval(), tokenizer

    @property
    def native(self) -> bool:
        if self.limits.protocol != "auto":
            return self.limits.protocol == "native"
        return "tools" in str(self._tokenizer.chat_template or "")

    @property
    def window(self) -> int:
        return self.limits.context or int(getattr(self._model.config, "max_position_embeddings", 0) or WINDOW)

    def tokens_of(self, chat: Sequence[Message], tools: Tools) -> Any:
        """The prompt as tokens."""
        if not self._tokenizer.chat_template:
            return self._tokenizer(prompts.chatml(prompts.as_text(chat, tools)), return_tensors="pt").input_ids
        messages = [_message(m) for m in chat] if self.native else prompts.as_text(chat, tools)
        return self._tokenizer.apply_chat_template(
            messages,
            tools=[tool.function() for tool in tools] if self.native else None,
            add_generation_prompt=True,
            return_tensors="pt",
            return_dict=True,
        ).input_ids

    def write(self, tokens: Any) -> tuple[str, int]:
        """What the model writes after a prompt, and in how many tokens."""
        torch = sdk("torch", "train")
        heat = self.limits.temperature or 0.0
        how: dict[str, Any] = {"do_sample": True, "temperature": heat} if heat else {"do_sample": False}
        tokens = tokens.to(self._model.device)
        with torch.no_grad():
            out = self._model.generate(
                tokens,
                attention_mask=torch.ones_like(tokens),
                max_new_tokens=self.max_tokens,
                pad_token_id=self._tokenizer.pad_token_id or self._tokenizer.eos_token_id,
                stop_strings=[prompts.CLOSE, "<|im_end|>"],
                tokenizer=self._tokenizer,
                **how,
            )
        written = out[0, tokens.shape[1] :]
        text = self._tokenizer.decode(written, skip_special_tokens=True)
        return text.removesuffix("<|im_end|>"), len(written)

    async def answer(self, chat: Sequence[Message], tools: Tools) -> tuple[str, int, int] | None:
        """What the model writes, and the tokens read and written; None for a conversation too long for it."""
        tokens = self.tokens_of(chat, tools)
        if tokens.shape[1] + self.max_tokens > self.window:
            return None
        text, n = await asyncio.get_running_loop().run_in_executor(self._thread, self.write, tokens)
        return text, int(tokens.shape[1]), n


class HuggingFaceAgent:
    """One episode's agent."""

    def __init__(self, source: HuggingFace) -> None:
        self.source, self.usage, self.calls = source, Usage(), 0

    async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
        written = await self.source.answer(chat, tools)
        if written is None:
            return Message(role="assistant")  # it has no more to say
        price = self.source.price
        self.usage = self.usage.plus(
            Usage(
                input_tokens=written[1],
                output_tokens=written[2],
                requests=1,
                cost=price.of(*written[1:]) if price else None,
            )
        )
        text, calls = parse(clean(written[0]))
        first, self.calls = self.calls, self.calls + len(calls)
        requests = (Request(id=f"call_{first + i}", tool=c.tool, args=c.args) for i, c in enumerate(calls))
        return Message(role="assistant", content=text, requests=tuple(requests))


def _message(message: Message) -> dict[str, Any]:
    """A message as chat templates take it: arguments are objects."""
    out: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.requests:
        out["tool_calls"] = [
            {"type": "function", "function": {"name": name_of(r), "arguments": args_of(r)}} for r in message.requests
        ]
    return out
