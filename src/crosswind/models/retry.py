"""The one layer that asks a provider again, bounded in attempts and in time whatever the provider does.

Waits grow, with seeded jitter. `Retry-After` is honoured up to a cap. The SDK below must not retry by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import Random
from typing import Literal, TypeVar

from crosswind.models.source import AgentSettings

T = TypeVar("T")


@dataclass(slots=True)
class ProviderClock:
    """What becomes of the requests of an episode: time in which the provider failed is none that the agent took."""

    lost: Callable[[float], None]  # told of seconds that passed in a failed attempt, or in the wait after it
    asked: int = 0  # requests
    answered: int = 0
    failing: bool = False  # the request under way has only failed so far

    @property
    def dead(self) -> bool:
        """Is the provider the one who says nothing?"""
        return self.failing or (self.asked > 0 and not self.answered)


PROVIDER: ContextVar[ProviderClock | None] = ContextVar("PROVIDER", default=None)  # of the episode that is played
Sort = Literal["", "key", "model", "quota", "tools", "context", "unreachable", "timeout", "nonsense"]
RETRYABLE = frozenset({408, 409, 425, 429})  # and all from 500 on


class Fault(Exception):
    """A request that failed; its text holds no secrets."""

    def __init__(
        self,
        text: str,
        *,
        retryable: bool = False,
        status: int | None = None,
        wait: float | None = None,
        sort: Sort = "",
    ) -> None:
        super().__init__(text)
        self.retryable, self.status, self.sort = retryable, status, sort
        self.wait = wait  # seconds that the provider asks for


def retry_after(value: str | None, now: datetime | None = None) -> float | None:
    """The seconds that a `Retry-After` header asks for, be it a number or a date; None if it is neither."""
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            when = parsedate_to_datetime(value)
        except (ValueError, OverflowError):  # no date, or one beyond what dates can hold
            return None
        when = when if when.tzinfo else when.replace(tzinfo=UTC)
        seconds = (when - (now or datetime.now(UTC))).total_seconds()
    return seconds if 0 <= seconds < float("inf") else 0.0 if seconds < 0 else None


def pause(fault: Fault, attempt: int, settings: AgentSettings, rng: Random) -> float:
    """Seconds to wait after the nth attempt."""
    if fault.wait is not None:
        return min(fault.wait, settings.longest_wait) * (1 + 0.1 * rng.random())
    return min(settings.backoff * 2.0 ** (attempt - 1), settings.longest_wait) * (0.5 + 0.5 * rng.random())


async def persist(
    send: Callable[[], Awaitable[T]],
    settings: AgentSettings,
    rng: Random,
    again: Callable[[Fault], None],
    attempts: int | None = None,
) -> T:
    """Send until an answer comes. Raises the last `Fault` when it is no use, or attempts or patience are at an end."""
    clock = asyncio.get_running_loop().time
    provider = PROVIDER.get() or ProviderClock(lambda _: None)
    provider.asked, provider.failing = provider.asked + 1, False
    end = clock() + settings.patience
    most = attempts or settings.attempts
    attempt = 0
    while True:
        attempt += 1
        began = clock()
        limit = min(settings.timeout, end - began)
        try:
            async with asyncio.timeout(limit):
                said = await send()
            provider.answered, provider.failing = provider.answered + 1, False
            return said
        except TimeoutError:
            fault = Fault(f"no whole answer within {limit:.3g} s", retryable=True, sort="timeout")
        except Fault as error:
            fault = error
        provider.failing = True
        provider.lost(clock() - began)
        if not fault.retryable:
            raise fault
        wait = pause(fault, attempt, settings, rng)
        if attempt >= most or clock() + wait >= end:
            tried = f"gave up after {attempt} attempt{'s' if attempt > 1 else ''}"
            raise Fault(f"{fault} ({tried})", retryable=True, status=fault.status, sort=fault.sort) from None
        again(fault)
        provider.lost(wait)
        await asyncio.sleep(wait)
