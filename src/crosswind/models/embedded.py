"""A small model in this process: SmolLM2-135M-Instruct by xllamacpp. No key, and no network after the first time.

`embedded` is the model as it is, `embedded:static` and `embedded:paft` have an adapter that comes with the package, and
`embedded:PATH` one that training made. It has no native tool calls: tools are described in few words and called as
text. One request at a time; the time of an episode is that of the machine.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import secrets
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from crosswind.base.errors import CrosswindError, InfrastructureError
from crosswind.base.extras import install
from crosswind.base.version import installed
from crosswind.core.draw import Drawn
from crosswind.core.types import Ending, Message, Tools
from crosswind.models import adapters, prompts, weights
from crosswind.models.constrained import Menus
from crosswind.models.parsing import clean
from crosswind.models.source import AgentSettings, LocalAgent, Price
from crosswind.models.spec import EMBEDDED

WINDOW = 8192  # tokens that the model was trained with
TOKENS, TRAINED = 160, 256  # of one reply, unless the settings say; adapters write their working down
THREADS = 8  # at most
PACKAGE = "xllamacpp"


class Embedded:
    """The embedded model; it is loaded when the first agent is made."""

    concurrency = 1
    ending: Ending = "words"  # small models are trained on words
    resumes = True

    def __init__(self, adapter: str, settings: AgentSettings) -> None:
        if importlib.util.find_spec(PACKAGE) is None:
            raise CrosswindError(f"the embedded model needs the package {PACKAGE!r}; {install('local')}")
        self.name = f"{EMBEDDED}:{adapter}" if adapter else EMBEDDED
        self.adapter = adapter
        self.quoted = bool(adapter) and _protocol(adapter) == "quoted"
        self.price: Price | None = settings.price(Price(0.0, 0.0))
        self.window = settings.context or WINDOW
        self.max_tokens = settings.max_tokens or (TRAINED if adapter else TOKENS)
        self.temperature = settings.temperature or 0.0
        self.seed = settings.seed
        self.settings: dict[str, Any] = {
            "model": weights.MODEL,
            "sha256": weights.SHA256,
            PACKAGE: installed(PACKAGE),
            "context": self.window,
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "seed": self.seed,
        }
        if adapter:
            self.settings |= {"adapter": adapters.digest(adapters.found(adapter))}
        if settings.constrain == "seen":
            raise CrosswindError(
                f"constrained:seen:{self.name}: llama.cpp cannot hold values to the conversation; "
                f"use constrained:{self.name}, or constrained:seen:hf:{EMBEDDED}{'+' if adapter else ''}{adapter}"
            )
        self.menus = Menus(seen=False) if settings.constrain else None
        if settings.constrain:
            self.settings["constrained"] = settings.constrain
        self._server: Any = None
        self._thread = ThreadPoolExecutor(1, "embedded")

    def make(self, drawn: Drawn) -> EmbeddedAgent:
        if self._server is None:
            path = str(weights.fetch())
            self._server = serve(path, self.window, adapter=str(adapters.as_gguf(self.adapter)) if self.adapter else "")
        return EmbeddedAgent(self)

    async def aclose(self) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)
        self._server = None

    async def complete(self, prompt: str, trial: int = 0, grammar: str = "") -> dict[str, Any]:
        """What the model writes after a prompt; a dict with `error` where it cannot."""
        body = {
            "prompt": prompt,
            "n_predict": self.max_tokens,
            "temperature": self.temperature,
            "seed": self.seed + trial,
            "stop": [prompts.CLOSE],
            "cache_prompt": True,
        }
        if grammar:
            body["grammar"] = grammar
        loop = asyncio.get_running_loop()
        answer: dict[str, Any] = await loop.run_in_executor(self._thread, self._server.handle_completions, body)
        return answer


class EmbeddedAgent(LocalAgent):
    """One episode's agent."""

    trial = 0  # set by a run

    def __init__(self, source: Embedded) -> None:
        super().__init__(source.price)
        self.source = source
        self.wrote: dict[int, Message] = {}  # by place in the chat: its own turns as it wrote them, thoughts and all

    async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
        own = [self.wrote.get(i, message) for i, message in enumerate(chat)]
        menus = self.source.menus
        grammar = menus.grammar(tools).gbnf() if menus else ""
        answer = await self.source.complete(
            prompts.chatml(prompts.as_text(own, tools, quoted=self.source.quoted)), self.trial, grammar
        )
        if "choices" not in answer:
            told = str(answer.get("error", answer))[:300]
            if "context" in told or "exceed" in told:
                return Message(role="assistant")  # the conversation is too long for the model: it has no more to say
            raise InfrastructureError(f"{self.source.name}: the model could not be run: {told}")
        written = clean(answer["choices"][0]["text"])
        if prompts.OPEN in written and prompts.CLOSE not in written:
            written += prompts.CLOSE  # at which it stopped
        self.wrote[len(chat)] = Message(role="assistant", content=written)
        used = answer["usage"]
        return self.said(written, used["prompt_tokens"], used["completion_tokens"])


def _protocol(adapter: str) -> str:
    """How an adapter was taught to call tools."""
    path = adapters.found(adapter)
    return adapters.taught((path if path.is_dir() else path.parent) / adapters.ABOUT)


def serve(path: str, window: int, *, slots: int = 1, key: str = "", alias: str = "", adapter: str = "") -> Any:
    """A server of llama.cpp in this process. It listens on loopback, at a free port, to the one who has the key."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx, params.n_parallel = window * slots, slots
    params.verbosity = -1
    params.api_keys = [key or secrets.token_hex(16)]
    if alias:
        params.model_alias = {alias}
    if adapter:
        params.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(adapter, 1.0)]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for cpu in (params.cpuparams, params.cpuparams_batch):
        # One core is left alone: the threads wait for each other at every step, so that a single one which has to
        # share its core makes all of them many times slower.
        cpu.n_threads = max(1, min(cores - 1, THREADS))
        cpu.poll = 0
    try:
        return xllamacpp.Server(params)
    except Exception as error:
        beside = f" with the adapter {adapter}" if adapter else ""
        raise CrosswindError(f"the embedded model could not be loaded from {path}{beside}: {error}") from None
