"""Any agent written in Python: a function, an object or a class of your own.

    def agent(query, tools) -> str | Finish            a plain function; runs in a thread of its own
    async def agent(query, tools) -> str | Finish      the same; shares the event loop with other episodes
    reply(chat, tools) -> Message | str | Finish       a method, plain or async, of an object or of a class
    class Agent                                        makes one agent per episode, called with nothing or the draw

A function owns its loop. It sees what every other agent sees: the tools as they are shown now, results as text, the
user's words. Its calls are turned inside out into the replies that `play` asks for. `tools` is described in `toolset`.

- results are text, errors too, such as `{"error": "unknown_tool", "message": "..."}`. If the user says something
  meanwhile, it follows the result;
- `tools.used(input_tokens, output_tokens)` reports what a request to a model took; otherwise the tokens are unknown;
- what the function returns ends the episode: `done(...)` or `cannot(...)` as a typed ending, a str in words. A call of
  the tool `finish` ends it, too. If the user answers (it was a question, or the user has a change of mind), the
  function is called once more, with the conversation so far as the query.

An exception is the agent's failure and ends the episode (`AgentException`), `SystemExit`, a task that was cancelled and
a result of a wrong type included, except for failures of a provider (`InfrastructureError`, timeouts, connections, and
exceptions of the SDKs).
"""

from __future__ import annotations

import asyncio
import copy
import importlib
import inspect
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from crosswind.base.errors import AgentException, CrosswindError, InfrastructureError, words_of_any
from crosswind.core.draw import Drawn
from crosswind.core.finish import FINISH_SPEC
from crosswind.core.types import FINISH, Agent, Ending, Finish, Message, Request, Tools
from crosswind.episodes.record import UNKNOWN, Usage
from crosswind.models.parsing import clean
from crosswind.models.redact import Secrets, environment
from crosswind.models.source import AgentSettings, Price, code_digest
from crosswind.models.toolset import SyncToolset, Toolset, countable, in_thread

PROVIDERS = ("openai", "anthropic", "httpx", "httpx2", "httpcore", "httpcore2", "aiohttp", "requests", "urllib3")
KEPT = 20_000  # characters at either end of what an exception says
HEARD = "\n\nThe user says: "
EXPECTED = (
    "expected a function `agent(query, tools)`, plain or `async def`, or an object or a class with a method "
    "`reply(chat, tools)`"
)


class PythonAgent:
    """One episode of a function."""

    def __init__(self, source: PythonAgents) -> None:
        self.source, self.tools = source, Toolset(source.secrets)
        self.memory = source.agent  # who keeps state over a stream
        self.turns = 0
        self.running: asyncio.Task[str | Finish] | None = None

    @property
    def usage(self) -> Usage:
        """What the function has reported; without a report its tokens are unknown."""
        return (self.source.reported(self.tools) or UNKNOWN).plus(Usage(requests=self.turns))

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
        self.turns += 1
        return Message(role="assistant", requests=tuple(requests))

    def _answer(self, chat: Sequence[Message]) -> None:
        """Hand the results to the one who waits for them, the user's words with the last of them."""
        last = max(i for i, m in enumerate(chat) if m.role == "assistant")
        results = [m for m in chat[last:] if m.role == "tool"]
        ends = {request.id for request in chat[last].requests if request.tool == FINISH}
        heard = "".join(HEARD + m.content for m in chat[last:] if m.role == "user")
        for i, message in enumerate(results):
            waiting = self.tools.waiting.pop(message.request_id, None)
            if waiting is not None and not waiting.done():
                if message.request_id in ends and not message.content.startswith('{"error": '):
                    waiting.set_result(HEARD.lstrip() + message.content)  # a change of mind
                    continue
                waiting.set_result(message.content + (heard if i == len(results) - 1 else ""))

    def _finished(self) -> Message:
        assert self.running is not None
        done, self.running = self.running, None  # if the user has an answer, it is called once more
        self.turns += 1
        if done.cancelled():  # not by us: anyone who cancels an episode does not come back for its result
            raise AgentException("CancelledError: the agent cancelled its own task")
        return self.source.ended(done.result(), self.tools.shown)

    def __del__(self) -> None:
        if self.running is not None and not self.running.done() and not self.running.get_loop().is_closed():
            self.running.cancel()


def _query(chat: Sequence[Message]) -> str:
    """The request, or the conversation so far where the function has had its say before."""
    ends = {
        r.id for m in chat for r in m.requests if r.tool == FINISH
    }  # what came back from those was said by the user
    said = [("You" if m.role == "assistant" else "User", m.content) for m in chat if m.content and _is_talk(m, ends)]
    return said[0][1] if len(said) == 1 else "\n\n".join(f"{who}: {words}" for who, words in said)


def _is_talk(message: Message, ends: set[str]) -> bool:
    return message.role in ("user", "assistant") or message.request_id in ends


class ReplyingAgent:
    """One episode of an object with `reply`."""

    def __init__(self, source: PythonAgents, made: Any, *, own: bool) -> None:
        self.source, self.made, self.own = source, made, own
        self.memory = made  # who keeps state over a stream
        self.broken: BaseException | None = None  # what an attribute raised

    async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
        if self.broken is not None:
            self.source.failed(self.broken)
        try:
            said = await _called(self.made.reply, chat, tools)
        except BaseException as error:
            self.source.failed(error)
        name, secrets = f"{self.source.name}.reply", self.source.secrets
        if isinstance(said, (str, Finish)):
            return self.source.ended(said, tools)
        if not isinstance(said, Message) or said.role != "assistant":
            what = f"a message of the {said.role}" if isinstance(said, Message) else _returned(said)
            raise AgentException(
                f"TypeError: {name} returned {what}; expected the answer as a str, done(...) or cannot(...), or "
                "Message(role='assistant', ...) with the answer in `content` or calls in `requests`"
            )
        requests = tuple(
            Request(id=r.id, tool=secrets.out_of(clean(r.tool)), args=secrets.within(r.args)) for r in said.requests
        )
        return Message(role="assistant", content=secrets.out_of(clean(said.content)), requests=requests)

    @property
    def usage(self) -> Usage:
        """What the agent says it used, if it is of this episode alone."""
        if not self.own:
            return UNKNOWN
        try:
            found = getattr(self.made, "usage", None)
            if isinstance(found, Usage):
                countable(found.input_tokens, found.output_tokens)
        except BaseException as error:
            self.source.failed(error)
        return found if isinstance(found, Usage) else UNKNOWN

    @property
    def trial(self) -> int:
        """Which repetition of its task the episode is."""
        try:
            return int(getattr(self.made, "trial", 0))
        except (Exception, SystemExit) as error:  # told when the agent is asked
            self.broken = error
            return 0

    @trial.setter
    def trial(self, number: int) -> None:
        try:
            if self.own and hasattr(self.made, "trial"):
                self.made.trial = number
        except (Exception, SystemExit) as error:
            self.broken = error


class BrokenAgent:
    """One episode of a class that raised when it was to make the agent."""

    def __init__(self, source: PythonAgents, error: BaseException) -> None:
        self.source, self.error = source, error

    async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
        self.source.failed(self.error)


class PythonAgents:
    """Agents made of something in Python, given as it is or by MODULE:NAME; the current folder is looked in first."""

    price: Price | None
    agent: Any = None
    secrets = Secrets()
    concurrency = 8
    ending: Ending = "finish"
    resumes = False  # the loop is its own
    reports_cost = True  # if it wants to

    def __init__(self, agent: object, settings: AgentSettings) -> None:
        called = agent if isinstance(agent, str) else _name_of(agent)
        self.name = f"python:{called}"
        self.price = settings.price()
        self.settings: dict[str, Any] = {"callable": called}
        self.secrets = Secrets(*environment())
        self.agent = _load(agent) if isinstance(agent, str) else agent
        _check(self.agent, self.name if isinstance(agent, str) or _module_of(agent) else f"the agent {agent!r:.60}")
        if files := _files_of(agent.partition(":")[0] if isinstance(agent, str) else _module_of(agent)):
            self.settings["code"] = code_digest(files)

    def make(self, drawn: Drawn) -> Agent:
        """A class makes one agent per episode; a function or an object serves them all."""
        made, own = self.agent, isinstance(self.agent, type)
        try:
            if own:
                made = self.agent() if _takes(self.agent) else self.agent(drawn)
        except BaseException as error:
            if _is_stop(error):
                raise
            return BrokenAgent(self, error)
        if callable(getattr(made, "reply", None)):
            return ReplyingAgent(self, made, own=own)
        source = copy.copy(self)
        source.agent = made
        return PythonAgent(source)

    async def aclose(self) -> None:
        pass

    def reported(self, tools: Toolset) -> Usage | None:
        """What the agent of an episode has reported of its tokens so far."""
        return tools.usage

    def ended(self, said: str | Finish, shown: Tools) -> Message:
        """The message that ends an episode, or a turn of it."""
        if isinstance(said, str):
            return Message(role="assistant", content=self.secrets.out_of(clean(said)))
        words = self.secrets.out_of(clean(said.text))
        if FINISH_SPEC not in shown:
            return Message(role="assistant", content=words)
        request = Request(id=FINISH, tool=FINISH, args=self.secrets.within(said.args()))
        return Message(role="assistant", content=words, requests=(request,))

    async def run(self, query: str, tools: Toolset) -> str | Finish:
        """One call of the function, with its failures told apart."""
        plain = not _is_async(self.agent)
        try:
            text = await _called(self.agent, query, SyncToolset(tools) if plain else tools)
        except asyncio.CancelledError:
            if plain:
                tools.close()
            raise
        except BaseException as error:
            self.failed(error)
        if not isinstance(text, (str, Finish)):
            raise AgentException(
                f"TypeError: {self.name} returned {_returned(text)}; expected the final answer: done(...), "
                "cannot(...) or a str. Return what to say to the user, or '' for nothing"
            )
        return text

    def failed(self, error: BaseException) -> NoReturn:
        """Tell apart what an agent's code raised: ours and the provider's is raised again, the rest is its failure."""
        if isinstance(error, (CrosswindError, asyncio.CancelledError)) or _is_closing(error) or _is_stop(error):
            raise error
        if isinstance(error, InfrastructureError):
            error.args = (self.secrets.scrub(_cut(words_of_any(error))),)
            raise error
        told = self.secrets.scrub(f"{type(error).__name__}: {_cut(words_of_any(error))}")[:300]
        if isinstance(error, OSError) or str(type(error).__module__).split(".")[0] in PROVIDERS:
            raise InfrastructureError(f"{self.name}: {told}") from None
        raise AgentException(told, self.secrets.scrub(_traceback(error))) from None


# ---------------------------------------------------------------- what an agent can be


def _is_async(function: Any) -> bool:
    called = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)


async def _called(function: Callable[..., Any], *args: Any) -> Any:
    """What a function gives: one that blocks gets a thread."""
    return await function(*args) if _is_async(function) else await in_thread(function, *args)


def _returned(value: object) -> str:
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        return "something to await from a plain function; write `async def`"
    return "None; is a `return` missing?" if value is None else type(value).__name__


def _takes(function: Any, *args: object) -> bool:
    """Can it be called with this many arguments? True where that cannot be told."""
    try:
        inspect.signature(function).bind(*args)
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def _check(agent: Any, name: str) -> None:
    """Refuse what can be no agent."""
    made = isinstance(agent, type)
    own = (None,) if made else ()  # the `self` of a method
    if made and not (_takes(agent) or _takes(agent, None)):
        raise CrosswindError(
            f"{name} is a class that needs {inspect.signature(agent)}; a class makes one agent per episode and is "
            "called with nothing or with the draw: give the others defaults, or pass an object instead"
        )
    method = "reply" if callable(getattr(agent, "reply", None)) else "__call__" if made else ""
    if method == "__call__" and not any(method in vars(base) for base in agent.__mro__[:-1]):
        raise CrosswindError(f"{name} is a class without a method reply; {EXPECTED}")
    if not callable(agent) and not method:
        raise CrosswindError(f"{name} is {type(agent).__name__}, which is not an agent; {EXPECTED}")
    called = getattr(agent, method) if method else agent
    if not _takes(called, *own, None, None):
        wanted = "(chat, tools)" if method == "reply" else "(query, tools)"
        raise CrosswindError(f"{name} takes {inspect.signature(called)} and is called with {wanted}; {EXPECTED}")


def _module_of(thing: object) -> str:
    with suppress(Exception):  # what a lazy proxy raises
        name = thing.__name__ if isinstance(thing, ModuleType) else getattr(thing, "__module__", "")
        return name if isinstance(name, str) else ""
    return ""


def _name_of(agent: object) -> str:
    return f"{_module_of(agent) or '?'}:{getattr(agent, '__qualname__', type(agent).__qualname__)}"


def _files_of(name: str) -> set[Path]:
    """The file of an agent's module, and those of the modules in its folder that it uses; none in a notebook."""
    found: set[Path] = set()
    names, root = [name], Path(getattr(sys.modules.get(name), "__file__", None) or ".").parent
    for each in names:
        module = sys.modules.get(each)
        file = Path(getattr(module, "__file__", None) or ".")
        inside = file.is_relative_to(root) and "site-packages" not in file.relative_to(root).parts
        if file.is_file() and file not in found and inside:
            found.add(file)
            names += filter(None, map(_module_of, list(vars(module).values())))
    return found


def _is_closing(error: BaseException) -> bool:
    """Is it how Python closes a coroutine of ours, and nothing that an agent raised? It then begins in our frame."""
    at = error.__traceback__
    return isinstance(error, GeneratorExit) and (at is None or at.tb_next is None)


def _is_stop(error: BaseException) -> bool:
    """Is it the user's Ctrl-C, and not the same exception raised by an agent? No signal reaches code in a thread, and
    where a loop runs in a program of ours the first one cancels tasks and raises nothing."""
    if not isinstance(error, KeyboardInterrupt):
        return False
    if signal.getsignal(signal.SIGINT) in (signal.default_int_handler, None):
        return True
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def _traceback(error: BaseException) -> str:
    """The traceback of an agent's exception, from the agent's code on."""
    at = error.__traceback__
    ours = (__file__, in_thread.__code__.co_filename)
    while at is not None and at.tb_next is not None and at.tb_frame.f_code.co_filename in ours:
        at = at.tb_next
    return _cut("".join(traceback.format_exception(type(error), error, at)))


def _cut(text: str) -> str:
    """Text with both its ends: a message may have any length, and all of it would be searched for keys."""
    if len(text) <= 2 * KEPT:
        return text
    return f"{text[:KEPT]}\n[{len(text) - 2 * KEPT:,} characters are left out]\n{text[-KEPT:]}"


def _load(rest: str) -> Any:
    module, colon, name = rest.partition(":")
    if not colon or not module or not name:
        raise CrosswindError(f"python:{rest}: expected python:MODULE:NAME, such as python:my_agent:agent")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        thing: Any = importlib.import_module(module)
        for part in name.split("."):
            thing = getattr(thing, part)
    except ModuleNotFoundError as error:
        what = f"{module} needs the module {error.name!r}, which is not installed"
        if error.name == module:
            what = (
                f"no module {module!r} in the current folder or installed; run the command in the folder of {module}.py"
            )
        raise CrosswindError(f"python:{rest}: {what}") from None
    except AttributeError:
        raise CrosswindError(
            f"python:{rest}: the module {module} has no attribute {name!r}; expected python:MODULE:NAME"
        ) from None
    except (Exception, SystemExit) as error:
        raise CrosswindError(f"python:{rest}: importing {module} failed: {type(error).__name__}: {error}") from None
    return thing
