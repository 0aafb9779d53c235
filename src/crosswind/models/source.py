"""Where the agents of a run come from: one source for the run, one agent for each episode."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from pydantic import Field

from crosswind.core.draw import Drawn
from crosswind.core.types import Agent, Ending, Message, Model, Request
from crosswind.episodes.record import Usage
from crosswind.models.parsing import parse


class Price(NamedTuple):
    """What a million tokens cost."""

    input: float
    output: float
    currency: str = "USD"

    def of(self, input_tokens: int | None, output_tokens: int | None) -> float | None:
        """What this many tokens cost; None where they are unknown."""
        if input_tokens is None or output_tokens is None:
            return None
        return (self.input * input_tokens + self.output * output_tokens) / 1e6


def used(price: Price | None, input_tokens: int | None, output_tokens: int | None) -> Usage:
    """What one request used, its cost included where the price is known."""
    cost = price.of(input_tokens, output_tokens) if price else None
    return Usage(input_tokens=input_tokens, output_tokens=output_tokens, requests=1, cost=cost)


def code_digest(files: Iterable[Path]) -> str:
    """What stands for the code of an agent among its settings, so that a resumed run notices a change."""
    digest = sha256()
    for path in sorted(files):
        digest.update(f"{path.name}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


class LocalAgent:
    """One episode's agent on a model in this process, whose calls are read out of its text."""

    def __init__(self, price: Price | None) -> None:
        self.price, self.usage, self.calls = price, Usage(), 0

    def said(self, written: str, input_tokens: int, output_tokens: int) -> Message:
        """What the model wrote as a message; its tokens are counted."""
        self.usage = self.usage.plus(used(self.price, input_tokens, output_tokens))
        text, calls = parse(written)
        first, self.calls = self.calls, self.calls + len(calls)
        requests = (Request(id=f"call_{first + i}", tool=c.tool, args=c.args) for i, c in enumerate(calls))
        return Message(role="assistant", content=text, requests=tuple(requests))


class WrappedAgent:
    """An agent around another one, whose usage and trial are its own."""

    def __init__(self, inner: Agent) -> None:
        self.inner = inner

    @property
    def usage(self) -> Usage:
        used = getattr(self.inner, "usage", None)
        return used if isinstance(used, Usage) else Usage()

    @property
    def trial(self) -> int:
        return getattr(self.inner, "trial", None) or 0  # None: no run has set it yet

    @trial.setter
    def trial(self, number: int) -> None:
        self.inner.trial = number  # type: ignore[attr-defined]


class AgentSettings(Model):
    """Settings of agents that use a model; scripted agents ignore them."""

    max_tokens: int | None = Field(default=None, ge=1)  # of one reply; None: 1024 for a provider, 160 to 512 in process
    temperature: float | None = Field(default=None, ge=0)  # None: as the provider has it; in process: 0
    seed: int = 0  # of sampling in process, and of the jitter between attempts
    protocol: Literal["auto", "native", "text", "quoted"] = (
        "auto"  # how tools are called; auto: natively where that works
    )
    constrain: Literal["", "menu", "seen"] = ""  # restrict a local model's calls to the tools shown; `constrained:`
    context: int = Field(default=0, ge=0)  # tokens of the window of a model in process; 0: as the model has it
    timeout: float = Field(default=120.0, gt=0)  # seconds for one request, from sending to the last byte
    attempts: int = Field(default=5, ge=1)  # at one request
    patience: float = Field(default=300.0, gt=0)  # seconds for one request with all its attempts and waits
    backoff: float = Field(default=0.5, ge=0)  # seconds before the second attempt; doubled for each further one
    longest_wait: float = Field(
        default=60.0, ge=0
    )  # most seconds between two attempts, even if Retry-After asks for more
    price_in: float | None = Field(default=None, ge=0)  # per million tokens; None: not known
    price_out: float | None = Field(default=None, ge=0)
    currency: str = "USD"  # of the prices
    offline: bool = False  # no request will be made, as in a dry run, so no key is needed

    def price(self, usual: Price | None = None) -> Price | None:
        """The price given, or else the usual one."""
        if self.price_in is None and self.price_out is None:
            return usual
        base = usual or Price(0.0, 0.0)
        return Price(
            base.input if self.price_in is None else self.price_in,
            base.output if self.price_out is None else self.price_out,
            self.currency,
        )


def has_cost(source: AgentSource) -> bool:
    """May the cost of its agents be known: from a price, or because they can report it?"""
    return source.price is not None or bool(getattr(source, "reports_cost", False))


class AgentSource(Protocol):
    """Where the agents of a run come from: one agent for each episode, one source for all.

    An agent may have an attribute `usage`, a `record.Usage` that grows as it works, its cost included where the
    price is known; its tokens are None where the agent does not know them. Out of `reply` comes an
    `InfrastructureError` when the provider fails, and a `CrosswindError` when the user must fix something first (a key,
    the name of a model). It may have an attribute `trial` too, which a run sets to the number of the trial before the
    first reply: anyone who samples with a seed makes trials differ by it.

    In a stream an agent may remember: `save()` returns its state as JSON after an episode, and `restore(state)` gets it
    before the next one, None before the first. An attribute `memory` names another object that does both.
    """

    name: str  # the spec without secrets
    price: Price | None
    settings: dict[str, Any]  # what the answers may depend on, as JSON and without secrets
    concurrency: int  # suggested
    ending: Ending  # how its agents end an episode, unless a run says otherwise
    resumes: bool  # can its agents take up a conversation that has begun?

    def make(self, drawn: Drawn) -> Agent: ...

    async def aclose(self) -> None: ...
