"""The tools of one episode as an agent written in Python holds them.

A plain function gets a `SyncToolset`, whose calls return the result. An `async def` gets a `Toolset`, whose calls are
awaited. Otherwise they are the same: `tools.find_places(city="Oslo")`, `tools["find_places"](city="Oslo")` and
`tools.call("find_places", city="Oslo")` make one call, and iterating gives the tools that are shown now.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import Any, Generic, TypeVar

from crosswind.core.types import ASK, Request, Tools, ToolSpec
from crosswind.episodes.record import Usage
from crosswind.models.parsing import clean
from crosswind.models.redact import Secrets

T = TypeVar("T")
R = TypeVar("R")  # what a call gives: text, or something to await for it
Answer = asyncio.Future[str] | Future[str]


class EpisodeOver(BaseException):
    """Raised by a tool call of a plain function whose episode has ended, so that its thread ends too."""


class CallableTool(dict[str, Any]):
    """A tool as it is shown now: the JSON schema that chat APIs take, which can also be called."""

    def __init__(self, spec: ToolSpec, call: Callable[..., Any]) -> None:
        super().__init__(spec.function())
        self._call = call

    @property
    def name(self) -> str:
        return str(self["function"]["name"])

    @property
    def description(self) -> str:
        return str(self["function"]["description"])

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON schema of the arguments."""
        found: dict[str, Any] = self["function"]["parameters"]
        return found

    def __call__(self, arguments: Any = None, /, **args: Any) -> Any:
        """Call the tool; see `Toolset.call`."""
        return self._call(self.name, arguments, **args)


def countable(*tokens: int | None) -> None:
    """Raise `ValueError` for a number of tokens that is none: prices and sums are computed with it."""
    for number in tokens:
        if number is not None and not 0 <= number < 2**53:
            raise ValueError("the number of tokens is below 0 or beyond what can be counted; report those of a request")


class _Toolset(Generic[R]):
    """What both sorts of toolset share."""

    policy: str  # what other agents get as the system message
    shown: Tools
    usage: Usage | None  # what the agent has reported by `used`; None: nothing, so that it is unknown

    def call(self, name: str, arguments: Any = None, /, **args: Any) -> R:
        raise NotImplementedError

    def ask(self, question: str) -> R:
        """Ask the user, as the tool `ask_user` does."""
        return self.call(ASK, question=question)

    def used(self, input_tokens: int, output_tokens: int, cost: float | None = None) -> None:
        """Report the tokens of a request to a model, and its cost if you know it; requests add up."""
        countable(input_tokens, output_tokens)
        one = Usage(input_tokens=input_tokens, output_tokens=output_tokens, cost=cost)
        self.usage = (self.usage or Usage()).plus(one)

    def __iter__(self) -> Iterator[CallableTool]:
        return iter([CallableTool(spec, self.call) for spec in self.shown])

    def __len__(self) -> int:
        return len(self.shown)

    def __contains__(self, name: object) -> bool:
        return any(spec.name == name for spec in self.shown)

    def __getitem__(self, name: str) -> CallableTool:
        """A tool by name. One that is not shown can be called too, and answers with an error as any unknown tool."""
        return CallableTool(next((spec for spec in self.shown if spec.name == name), ToolSpec(name, "")), self.call)

    def __getattr__(self, name: str) -> CallableTool:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def openai(self) -> list[dict[str, Any]]:
        """The tools as the `tools` of OpenAI's chat API."""
        return [dict(tool) for tool in self]

    def anthropic(self) -> list[dict[str, Any]]:
        """The tools as the `tools` of Anthropic's messages API."""
        return [{"name": t.name, "description": t.description, "input_schema": t.parameters} for t in self]


class Toolset(_Toolset[Coroutine[Any, Any, str]]):
    """The tools of one episode for an `async def` agent: calls are awaited."""

    def __init__(self, secrets: Secrets | None = None) -> None:
        self.secrets = secrets or Secrets()
        self.policy = ""
        self.shown = ()
        self.usage = None
        self.waiting: dict[str, Answer] = {}  # calls made and not answered, by id
        self.asked: asyncio.Queue[Request] = asyncio.Queue()
        self.made = 0
        self.over = False

    async def call(self, name: str, arguments: Any = None, /, **args: Any) -> str:
        """Call a tool with arguments as a dict, by keyword, or both; the result, or an error, as text."""
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.send(self.request(name, arguments, args), answer)
        return await answer

    def request(self, name: str, arguments: Any, args: dict[str, Any]) -> Request:
        """A call as it is sent, without secrets; arguments that are not a dict are sent as they are."""
        given = {**arguments, **args} if isinstance(arguments, dict) else args if arguments is None else arguments
        return Request(id="", tool=self.secrets.out_of(clean(str(name))), args=self.secrets.within(given))

    def send(self, request: Request, answer: Answer) -> None:
        """Make a call whose result goes to `answer`. To be called in the thread of the event loop."""
        if self.over:
            answer.cancel()
            return
        self.made += 1
        request = request.model_copy(update={"id": f"call_{self.made}"})
        self.waiting[request.id] = answer
        self.asked.put_nowait(request)

    def close(self) -> None:
        """The episode has ended: calls that wait, and calls made from now on, are cancelled."""
        self.over = True
        for answer in self.waiting.values():
            answer.cancel()
        self.waiting.clear()


class SyncToolset(_Toolset[str]):
    """The tools of one episode for a plain function, which runs in a thread of its own: calls give the result."""

    def __init__(self, tools: Toolset) -> None:
        self._tools, self._loop = tools, asyncio.get_running_loop()
        self.policy = tools.policy

    @property
    def shown(self) -> Tools:  # type: ignore[override]
        return self._tools.shown

    def used(self, input_tokens: int, output_tokens: int, cost: float | None = None) -> None:
        self._tools.used(input_tokens, output_tokens, cost)

    def call(self, name: str, arguments: Any = None, /, **args: Any) -> str:
        """Call a tool with arguments as a dict, by keyword, or both; the result, or an error, as text."""
        answer: Future[str] = Future()
        request = self._tools.request(name, arguments, args)
        try:
            self._loop.call_soon_threadsafe(self._tools.send, request, answer)
            return answer.result()
        except (RuntimeError, CancelledError):  # the loop is closed, or the call was cancelled
            raise EpisodeOver from None


async def in_thread(function: Callable[..., T], *args: Any) -> T:
    """Run a function in a thread of its own. Unlike those of a pool, one that hangs is in nobody's way."""
    loop, context = asyncio.get_running_loop(), contextvars.copy_context()
    done: asyncio.Future[tuple[T | None, BaseException | None]] = loop.create_future()

    def finish(result: T | None, error: BaseException | None) -> None:
        if not done.done():
            done.set_result((result, error))

    def work() -> None:
        result, error = None, None
        try:
            result = context.run(function, *args)
        except BaseException as raised:  # SystemExit too: nobody would hear of it
            error = raised
        with suppress(RuntimeError):  # the loop is closed, and nobody waits
            loop.call_soon_threadsafe(finish, result, error)

    threading.Thread(target=work, name="crosswind agent", daemon=True).start()
    result, error = await done
    if error is not None:
        raise error
    return result  # type: ignore[return-value]  # there is no error, so there is a result
