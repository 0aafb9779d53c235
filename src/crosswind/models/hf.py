"""Models of transformers in this process: `hf:<model>[+<adapter>]`. Many episodes are played at a time.

The model is a folder, a name, a GGUF file or `embedded`. If its chat template knows tools, they are given natively,
unless it was trained here; otherwise as text. `models.engine` writes all replies together.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import warnings
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosswind.base.errors import CrosswindError
from crosswind.core.draw import Drawn
from crosswind.core.perturbation import dump_layers
from crosswind.core.types import Ending, Message, Tools
from crosswind.models import adapters, prompts
from crosswind.models.adapters import ABOUT
from crosswind.models.constrained import Constraint, Menus
from crosswind.models.loading import load, with_adapter
from crosswind.models.native import Protocol, script_for
from crosswind.models.openai_compatible import args_of, name_of
from crosswind.models.parsing import clean
from crosswind.models.remote import sdk
from crosswind.models.source import AgentSettings, LocalAgent, Price

if TYPE_CHECKING:
    from crosswind.models.engine import Completion, Engine

TOKENS = 512  # of one reply, unless the settings say
TOGETHER = 1024  # episodes played at a time on a GPU
ON_CPU = 16


class HuggingFace:
    """A model and its tokenizer; loaded when the first agent is made."""

    ending: Ending = "words"
    resumes = True
    slots: int | None = None  # conversations that are kept on the device; None: as many as there is room for

    def __init__(self, rest: str, settings: AgentSettings) -> None:
        path, adapter = model_and_adapter(rest)
        if not path:
            raise CrosswindError(f"hf:{rest}: expected hf:PATH or hf:PATH+ADAPTER")
        if adapter and "/" not in adapter:
            adapters.found(adapter)  # says what there is; a name with a stroke may be one that PEFT knows
        for package in ("transformers", *(["peft"] if adapter else [])):
            sdk(package, "train")
        self.device = "cuda" if sdk("torch", "train").cuda.is_available() else "cpu"
        self.concurrency = TOGETHER if self.device == "cuda" else ON_CPU
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
        if settings.constrain:
            self.settings["constrained"] = settings.constrain
        self.menus = Menus(seen=settings.constrain == "seen") if settings.constrain else None
        self.engine: Engine | None = None
        self._failed: CrosswindError | None = None
        self.tokenizer: Any = None
        self.script: prompts.Script | None = None
        self._warned = False
        self._numbers = itertools.count()
        self._played: Counter[str] = Counter()

    def make(self, drawn: Drawn) -> HuggingFaceAgent:
        if self._failed is not None:
            raise self._failed.with_traceback(None)  # many episodes begin at a time: one attempt at loading is enough
        if self.engine is None:
            try:
                self.engine = self._load()
            except CrosswindError as error:
                self._failed = error
                raise
        seed: tuple[int, str] | None = None
        if self.limits.temperature:
            episode = json.dumps([drawn.base.id, dump_layers(drawn.layers)], sort_keys=True)
            self._played[episode] += 1
            seed = self._played[episode] - 1, episode  # trials of one episode differ
        return HuggingFaceAgent(self, self.engine, next(self._numbers), seed)

    async def aclose(self) -> None:
        if self.engine is not None:
            await asyncio.to_thread(self.engine.close)
        self.engine = self.tokenizer = None

    def _load(self) -> Engine:
        from crosswind.models.engine import Engine

        torch = sdk("torch", "train")
        half = self.device == "cuda" and torch.cuda.is_bf16_supported()
        model, self.tokenizer = load(self.path, torch.bfloat16 if half else torch.float32)
        if self.adapter:
            model = with_adapter(model, self.adapter)
        try:
            self.script = script_for(self.tokenizer, self.protocol, self.path)
        except CrosswindError:
            self.script = None  # a template that must be written whole at every turn, or none
        return Engine(
            model,
            self.tokenizer,
            slots=self.slots or (self.concurrency if self.device == "cpu" else None),
            window=self.limits.context or None,
            device=self.device,
            seed=self.limits.seed,
        )

    @property
    def protocol(self) -> Protocol:
        """How tools are given. What was trained here knows them in the way that training taught."""
        if self.limits.protocol != "auto":
            return self.limits.protocol
        for folder in filter(None, (self.adapter, self.path)):
            if (Path(folder) / ABOUT).is_file():
                return adapters.taught(Path(folder) / ABOUT)
        return "native" if not self.adapter and "tools" in str(self.tokenizer.chat_template or "") else "text"

    @property
    def native(self) -> bool:
        """Are tools given in the model's own way?"""
        return self.protocol == "native"

    def tokens_of(self, chat: Sequence[Message], tools: Tools) -> list[int]:
        """The prompt as tokens, made as a whole."""
        if not self.tokenizer.chat_template:
            text = prompts.chatml(self._as_text(chat, tools))
            return list(self.tokenizer.encode(text, add_special_tokens=False))
        messages = [_message(m) for m in chat] if self.native else self._as_text(chat, tools)
        try:
            ids = self.tokenizer.apply_chat_template(
                messages,
                tools=[tool.function() for tool in tools] if self.native else None,
                add_generation_prompt=True,
                return_dict=True,
            ).input_ids
        except Exception as error:  # whatever a template raises
            raise prompts.bad_template(self.path, error) from None
        return list(ids)

    def _as_text(self, chat: Sequence[Message], tools: Tools) -> list[dict[str, Any]]:
        return prompts.as_text(chat, tools, quoted=self.protocol == "quoted")

    def warn_once(self, tokens: int, window: int) -> None:
        """Say that a model cannot even read the beginning of an episode."""
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"{self.name}: an episode begins with {tokens} tokens, and the window has {window}: nothing is written "
                "there, and it fails; take a model with a longer window, or raise --context if it was given",
                stacklevel=2,
            )

    def text_of(self, ids: list[int]) -> str:
        """What tokens say, without those that are not text."""
        backend = getattr(self.tokenizer, "backend_tokenizer", None) or self.tokenizer
        return str(backend.decode(ids, skip_special_tokens=True)).removesuffix("<|im_end|>")


class HuggingFaceAgent(LocalAgent):
    """One episode's agent."""

    trial: int | None = None  # set by a run, which may be one that goes on

    def __init__(self, source: HuggingFace, engine: Engine, key: int, seed: tuple[int, str] | None) -> None:
        super().__init__(source.price)
        self.source, self.engine, self.key, self.seed = source, engine, key, seed
        self.conversation = prompts.Conversation(source.script) if source.script else None
        self.rule: Constraint | None = None  # what the next reply is held to

    def __del__(self) -> None:
        self.engine.release(self.key)  # the episode is over

    def submit(self, ids: list[int]) -> Future[Completion]:
        """Have the next turn written."""
        heat = self.source.limits.temperature or 0.0
        seed = None
        if self.seed is not None:
            nth, episode = self.seed
            seed = f"{nth if self.trial is None else self.trial} {episode}"
        return self.engine.submit(
            ids, key=self.key, max_new=self.source.max_tokens, temperature=heat, seed=seed, rule=self.rule
        )

    async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
        source = self.source
        ids = self.conversation.update(chat, tools) if self.conversation else source.tokens_of(chat, tools)
        if source.menus:
            self.rule = source.menus.rule(chat, tools, source.tokenizer)
        written = await asyncio.wrap_future(self.submit(ids))
        if not written.ids:
            if not self.usage.requests:
                source.warn_once(len(ids), self.engine.window)
            return Message(role="assistant")  # the conversation is too long for the model: it has no more to say
        if self.conversation:
            self.conversation.wrote(written.ids)
        return self.said(clean(source.text_of(written.ids)), len(ids), len(written.ids))


def model_and_adapter(rest: str) -> tuple[str, str]:
    """The model and the adapter of a spec; what lies on the disk may have a plus in its name."""
    for cut in (len(rest), *(i for i in range(len(rest) - 1, 0, -1) if rest[i] == "+")):
        if os.path.exists(rest[:cut]):
            return rest[:cut], rest[cut + 1 :]
    path, _, adapter = rest.partition("+")
    return path, adapter


def _message(message: Message) -> dict[str, Any]:
    """A message as chat templates take it: arguments are objects."""
    out: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.requests:
        out["tool_calls"] = [
            {"type": "function", "function": {"name": name_of(r), "arguments": args_of(r)}} for r in message.requests
        ]
    return out
