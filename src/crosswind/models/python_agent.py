"""Any agent as a Python callable: `async def agent(query, tools) -> str`.

The callable owns its loop. It sees what every other agent sees: the tools as they are shown now, results as text, the
user's words. Its calls are turned inside out into the replies that `play` asks for.

- `for tool in tools` gives the tools shown now, each as the JSON schema that chat APIs take;
- `await tools.call(name, arguments)` gives the result as text; errors too are text, such as
  `{"error": "unknown_tool", "message": "..."}`. If the user says something meanwhile, it stands below the result;
- `await tools.ask(question)` asks the user, as the tool `ask_user` does;
- `tools.policy` is the policy, which other agents get as the system message;
- what it returns is said to the user. If the user answers (it was a question, or the user has a change of mind), the
  callable is called once more, with the conversation so far as the query.

Whatever the callable raises is the agent's failure and ends the episode without an answer, `SystemExit` and a task that
was cancelled included, except for what tells of a provider (`InfrastructureError`, timeouts, connections, and
exceptions of the SDKs).
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import os
import sys
import warnings
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from crosswind.base.errors import CrosswindError, InfrastructureError
from crosswind.core.draw import Drawn
from crosswind.core.types import ASK, Message, Request, Tools
from crosswind.episodes.record import Usage
from crosswind.models.base import AgentSettings, Price
from crosswind.models.parsing import clean
from crosswind.models.redact import Secrets
from crosswind.models.remote import OURS, ModelWarning

PROVIDERS = ("openai", "anthropic", "httpx", "httpx2", "httpcore", "httpcore2", "aiohttp", "requests", "urllib3")
HEARD = "\n\nThe user says: "
KEYS = (OURS, "OPENAI_API_KEY", "ANTHROPIC_API_KEY")
Callee = Callable[[str, "Toolset"], Awaitable[str]]


class Toolset:
    """The tools of one episode, as the callable is handed them."""

    def __init__(self, secrets: Secrets | None = None) -> None:
        self.secrets = secrets or Secrets()
        self.policy = ""
        self.shown: Tools = ()
        self.waiting: dict[str, asyncio.Future[str]] = {}  # calls made and not answered, by id
        self.asked: asyncio.Queue[Request] = asyncio.Queue()
        self.made = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter([tool.function() for tool in self.shown])

    def __len__(self) -> int:
        return len(self.shown)

    async def call(self, name: str, arguments: Any = None) -> str:
        """Call a tool; the result as text."""
        self.made += 1
        tool, args = self.secrets.out_of(clean(str(name))), {} if arguments is None else self.secrets.within(arguments)
        request = Request(id=f"call_{self.made}", tool=tool, args=args)
        answer = asyncio.get_running_loop().create_future()
        self.waiting[request.id] = answer
        self.asked.put_nowait(request)
        text: str = await answer
        return text

    async def ask(self, question: str) -> str:
        """Ask the user."""
        return await self.call(ASK, {"question": question})


class PythonAgent:
    """One episode of a callable."""

    def __init__(self, source: PythonAgents) -> None:
        self.source, self.tools = source, Toolset(source.secrets)
        self.usage = Usage()
        self.running: asyncio.Task[str] | None = None

    async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
        self.tools.shown = tools
        if self.running is None:
            self.tools.policy = "\n\n".join(m.content for m in chat if m.role == "system")
            self.running = asyncio.ensure_future(self.source.run(_query(chat), self.tools))
        else:
            self._answer(chat)
        asked = asyncio.ensure_future(self.tools.asked.get())
        try:
            await asyncio.wait({asked, self.running}, return_when=asyncio.FIRST_COMPLETED)
            if not asked.done():
                return self._finished()
            requests = [asked.result()]
        finally:
            asked.cancel()
        await asyncio.sleep(0)  # calls made side by side come in one message
        while not self.tools.asked.empty():
            requests.append(self.tools.asked.get_nowait())
        self.usage = self.usage.plus(Usage(requests=1))
        return Message(role="assistant", requests=tuple(requests))

    def _answer(self, chat: Sequence[Message]) -> None:
        """Hand the results to whoever waits for them, the user's words with the last of them."""
        last = max(i for i, m in enumerate(chat) if m.role == "assistant")
        results = [m for m in chat[last:] if m.role == "tool"]
        heard = "".join(HEARD + m.content for m in chat[last:] if m.role == "user")
        for i, message in enumerate(results):
            waiting = self.tools.waiting.pop(message.request_id, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(message.content + (heard if i == len(results) - 1 else ""))

    def _finished(self) -> Message:
        assert self.running is not None
        done, self.running = self.running, None  # if the user has an answer, it is called once more
        self.usage = self.usage.plus(Usage(requests=1))
        if done.cancelled():  # not by us: whoever cancels an episode does not come back for its result
            blame(self.source.name, "CancelledError")
            return Message(role="assistant")
        return Message(role="assistant", content=self.source.secrets.out_of(done.result()))

    def __del__(self) -> None:
        if self.running is not None and not self.running.done() and not self.running.get_loop().is_closed():
            self.running.cancel()


def _query(chat: Sequence[Message]) -> str:
    """The request, or the conversation so far where the callable has had its say before."""
    said = [m for m in chat if m.role in ("user", "assistant") and m.content]
    if len(said) == 1:
        return said[0].content
    return "\n\n".join(f"{'User' if m.role == 'user' else 'You'}: {m.content}" for m in said)


def blame(name: str, told: str) -> None:
    """Tell the user that an agent's code broke, which counts as a failure of the agent."""
    warnings.warn(ModelWarning(f"{name} raised {told}; counted as the agent's failure"), stacklevel=2)


class PythonAgents:
    """A callable found by its module and name; the current folder is looked in first."""

    price: Price | None
    secrets = Secrets()
    concurrency = 8
    resumes = False  # the loop is its own

    def __init__(self, rest: str, settings: AgentSettings) -> None:
        self.name = f"python:{rest}"
        self.price = settings.price()
        self.settings: dict[str, Any] = {"callable": rest}
        self.callee = _load(rest)
        self.secrets = Secrets(*(os.environ.get(name) for name in KEYS))

    def make(self, drawn: Drawn) -> PythonAgent:
        return PythonAgent(self)

    async def aclose(self) -> None:
        pass

    async def run(self, query: str, tools: Toolset) -> str:
        """One call of the callable, with its failures told apart."""
        try:
            text = await self.callee(query, tools)
        except (CrosswindError, asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
            raise
        except InfrastructureError as error:
            error.args = (self.secrets.scrub(str(error)),)
            raise
        except BaseException as error:  # SystemExit too: it would end the run, and as if all were well
            told = self.secrets.scrub(f"{type(error).__name__}: {error}")[:300]
            if isinstance(error, (OSError, TimeoutError)) or type(error).__module__.split(".")[0] in PROVIDERS:
                raise InfrastructureError(f"{self.name}: {told}") from None
            blame(self.name, told)
            return ""
        if not isinstance(text, str):
            raise CrosswindError(f"{self.name} returned {type(text).__name__}; expected the final text, a str")
        return clean(text)


def _load(rest: str) -> Callee:
    module, colon, name = rest.partition(":")
    if not colon or not module or not name:
        raise CrosswindError(f"python:{rest}: expected python:MODULE:CALLABLE, such as python:my_agent:agent")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        thing: Any = importlib.import_module(module)
        for part in name.split("."):
            thing = getattr(thing, part)
    except ModuleNotFoundError as error:
        what = f"no module {module!r} here or installed" if error.name == module else f"{module} needs {error.name!r}"
        raise CrosswindError(f"python:{rest}: {what}") from None
    except AttributeError:
        raise CrosswindError(f"python:{rest}: {module} has no {name!r}") from None
    except (Exception, SystemExit) as error:
        raise CrosswindError(f"python:{rest}: importing {module} failed: {type(error).__name__}: {error}") from None
    called = thing if inspect.isroutine(thing) else getattr(thing, "__call__", None)  # noqa: B004
    if not inspect.iscoroutinefunction(called):
        raise CrosswindError(f"python:{rest}: {name!r} must be `async def {name}(query, tools) -> str`")
    found: Callee = thing
    return found
