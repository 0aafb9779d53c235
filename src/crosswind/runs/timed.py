"""An agent with a deadline, whose requests are charged to the budgets even where it does not report its tokens."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Sequence
from contextlib import suppress

from crosswind.base.errors import InfrastructureError
from crosswind.core.types import Agent, Message, Tools
from crosswind.episodes.record import Usage
from crosswind.models.retry import PROVIDER, ProviderClock
from crosswind.models.source import tokens_of


class TimedAgent:
    """An agent with a deadline; remembers what came out of it."""

    def __init__(self, agent: Agent, seconds: float | None) -> None:
        self.agent, self.seconds = agent, seconds
        self.until: float | None = None  # the clock starts with the first request
        self.clock: asyncio.Timeout | None = None  # of the request under way
        self.late = False
        self.error: BaseException | None = None
        self.provider = ProviderClock(self.wait_for_us)
        self.charged = self.last = (0, 0)  # tokens in and out, and how many of them the agent had reported

    async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
        if self.until is None and self.seconds is not None:
            self.until = asyncio.get_running_loop().time() + self.seconds
        message: Message | None = None
        try:
            async with asyncio.timeout_at(self.until) as clock:
                self.clock = clock
                PROVIDER.set(self.provider)  # of this task: it plays one episode at a time
                message = await self.agent.reply(chat, tools)
        except asyncio.CancelledError:
            worker = asyncio.current_task()
            if worker is None or worker.cancelling():
                raise  # the run is being stopped
            warnings.warn("an agent awaited what was cancelled, and said nothing; that is its failure", stacklevel=1)
            return Message(role="assistant")
        except (Exception, SystemExit) as error:
            self.error = error
            if not clock.expired():
                raise
        else:
            if self.until is None or asyncio.get_running_loop().time() < self.until:
                return message
        finally:
            self._weigh(chat, tools, message)
        self.late = True
        whose = ", in which the provider answered nothing" if self.provider.dead else ""
        raise InfrastructureError(f"the episode took more than its {self.seconds:g} seconds{whose}")

    def wait_for_us(self, seconds: float) -> None:
        """Put the deadline off by a time in which nothing could be heard, because this process did something else."""
        if self.until is not None:
            self.until += seconds
            if self.clock is not None and not self.clock.expired():
                with suppress(RuntimeError):  # it is over, and another has not begun
                    self.clock.reschedule(self.until)

    @property
    def usage(self) -> Usage:
        """What the agent reports; what it does not know is charged by what was said."""
        found = self._reported
        read, said = (c + now - last for c, now, last in zip(self.charged, found.charged, self.last, strict=True))
        charged = {"input_charged": None if found.input_tokens is not None else read}
        charged |= {"output_charged": None if found.output_tokens is not None else said}
        return found.model_copy(update=charged)

    @property
    def _reported(self) -> Usage:
        found = getattr(self.agent, "usage", None)
        return found if isinstance(found, Usage) else Usage()

    def _weigh(self, chat: Sequence[Message], tools: Tools, message: Message | None) -> None:
        """Charge a request: by what the agent reports, else by its text."""
        found = self._reported
        read, said = (now - last for now, last in zip(found.charged, self.last, strict=True))
        if found.input_tokens is None and read <= 0:
            read = tokens_of([[m.model_dump() for m in chat], [tool.function() for tool in tools]])
        if found.output_tokens is None and said <= 0 and message is not None:
            said = tokens_of(message.model_dump())
        self.charged, self.last = (self.charged[0] + read, self.charged[1] + said), found.charged

    @property
    def worth_retrying(self) -> bool:
        return not self.late and getattr(self.error, "retryable", True) is not False
