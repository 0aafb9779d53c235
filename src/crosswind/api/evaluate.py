"""Run an agent over a suite from Python."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from functools import partial, wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from pydantic import ValidationError

from crosswind.api.arguments import above_zero, at_least, naming_arguments
from crosswind.api.run import Run
from crosswind.base.errors import CrosswindError
from crosswind.base.yaml_files import complaint
from crosswind.core.registry import did_you_mean
from crosswind.core.types import Ending
from crosswind.episodes.schedule import require_applicable
from crosswind.episodes.stream import load_suite
from crosswind.episodes.suite import Suite
from crosswind.models.source import AgentSettings, AgentSource, has_cost
from crosswind.models.spec import open_agent
from crosswind.runs import runner, store
from crosswind.runs.store import StoredRun

P = ParamSpec("P")
T = TypeVar("T")
Told = Callable[[int, int], object]  # told how many episodes are done, and of how many


# ---------------------------------------------------------------- event loops


def blocking(main: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """A plain function with the parameters and the documentation of a coroutine function."""

    takes = inspect.signature(main)

    @wraps(main)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            takes.bind(*args, **kwargs)
        except TypeError as error:
            near = [hint for name in kwargs if name not in takes.parameters if (hint := _meant(name, takes.parameters))]
            raise TypeError(f"{run.__name__}(): {error}{near[0] if near else ''}") from None
        return _run_in_loop(lambda: main(*args, **kwargs))

    run.__name__ = run.__qualname__ = main.__name__.removeprefix("a")
    return run


def _meant(name: str, known: Iterable[str]) -> str:
    hint = did_you_mean(name, list(known))
    return f"; {hint}" if hint.endswith("?") else ""


def _run_in_loop(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end, in a thread of its own where an event loop is running here, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(main())
    done: Future[T] = Future()
    begun: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any] | None]] = Future()

    async def noted() -> T:
        begun.set_result((asyncio.get_running_loop(), asyncio.current_task()))
        return await main()

    def work() -> None:
        try:
            done.set_result(asyncio.run(noted()))
        except BaseException as error:
            done.set_exception(error)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,), name="crosswind", daemon=True)
    thread.start()
    try:
        return done.result()
    except BaseException:
        if not done.done():  # interrupted here: end what runs there, so that finished episodes are safe
            loop, task = begun.result()
            if task is not None:
                loop.call_soon_threadsafe(task.cancel)
            thread.join()
        raise


# ---------------------------------------------------------------- evaluate


@naming_arguments
async def aevaluate(
    agent: object,
    suite: str | os.PathLike[str] | Suite = "quick",
    *,
    seed: int = 0,
    trials: int = 1,
    domain: str | Sequence[str] | None = None,
    only: Sequence[str] = (),
    tier: Sequence[str] = (),
    axis: Sequence[str] = (),
    tasks: int | None = None,
    limit: int | None = None,
    out: str | os.PathLike[str] | None = None,
    concurrency: int | None = None,
    settings: AgentSettings | Mapping[str, Any] | None = None,
    ending: Ending | None = None,
    episode_timeout: float | None = None,
    max_cost: float | None = None,
    progress: Told | None = None,
) -> Run:
    """Run an agent over a suite and return the run.

    >>> import crosswind as cw
    >>> def agent(query, tools):
    ...     return "I am sorry, I cannot do this."
    >>> run = cw.evaluate(agent, "quick", limit=4)
    >>> len(run), [episode.outcome for episode in run]
    (4, ['fail', 'fail', 'fail', 'fail'])

    `aevaluate` does the same in a running event loop:

    >>> import asyncio
    >>> asyncio.run(cw.aevaluate("oracle", limit=2))
    <Run of oracle on quick@1: 2 episodes, clean 100 %, shifted 100 %>

    `agent` is a function `agent(query, tools)`, plain or async, that returns `done(...)`, `cannot(...)` or a str; an
    object with `reply(chat, tools)`; a class that makes one per episode; or a spec such as "oracle" or
    "openai:MODEL@URL". `suite` is a name, a YAML file or a `Suite`.

    Works in a script and in a notebook. In a notebook, an async agent runs in an event loop of its own; use
    `await aevaluate(...)` to stay in the notebook's.

    Args:
        seed: Equal seeds give equal tasks and perturbations.
        trials: How often each episode is played.
        domain: Play one domain of the suite, or some.
        only, tier, axis: Play only the conditions of these kinds, tiers and axes, given as lists.
        tasks: Tasks per domain and condition (default: the suite's).
        limit: Stop after this many episodes.
        out: Folder for the run. If it holds a run of the same agent and suite, that run is resumed. By default the
            run is in a temporary folder, which is deleted with the `Run`.
        concurrency: Episodes at a time (default: the agent's; 8 for your own). Plain functions run in one thread per
            episode: pass 1 if yours must not run twice at once.
        settings: Options of a model named by a spec, such as {"temperature": 0}.
        ending: How the agent ends an episode: "finish" (by a typed call; default of models behind an endpoint, commands
            and your own code) or "words" (default of local models and scripted agents).
        episode_timeout: Seconds for one episode. An agent that takes longer has failed.
        max_cost: Stop when the run has cost this much.
        progress: Called after each episode with the number of finished and of all episodes.

    An exception in your agent counts as a failed episode. `print(run)` shows how many there were and the last
    traceback. Five episodes in a row with the same exception stop the run.
    """
    at_least(1, trials=trials, tasks=tasks, limit=limit, concurrency=concurrency)
    at_least(0, seed=seed)
    above_zero(episode_timeout=episode_timeout, max_cost=max_cost)
    chosen = suite if isinstance(suite, Suite) else load_suite(_named(suite))
    chosen = chosen.narrowed(tasks or 0, domain or "all", only=only, tier=tier, axis=axis)
    if only:
        require_applicable(chosen, seed)
    source = open_agent(agent, agent_settings(settings), ending)
    if max_cost is not None and not has_cost(source):
        raise CrosswindError(
            f"max_cost is {max_cost:g}, but no price is known for {source.name}; "
            "give settings={'price_in': ..., 'price_out': ...}, per million tokens"
        )
    play = partial(
        runner.run,
        chosen,
        source,
        seed=seed,
        trials=trials,
        limit=limit,
        concurrency=concurrency,
        limits=runner.Limits(episode=episode_timeout, cost=max_cost),
        watch=watching(progress),
    )
    return await stored_run(Run, play, source, out)


evaluate = blocking(aevaluate)


async def stored_run(
    sort: Callable[[StoredRun], T],
    play: Callable[..., Awaitable[object]],
    source: AgentSource,
    out: str | os.PathLike[str] | None,
) -> T:
    """What `play` left in its `folder`, which is deleted with the run unless `out` names it. Closes the source."""
    folder = Path(tempfile.mkdtemp(prefix="crosswind-") if out is None else out)
    with ExitStack() as cleanup:
        if out is None:
            cleanup.callback(shutil.rmtree, folder, ignore_errors=True)
        try:
            await play(folder=folder)
        finally:
            await source.aclose()
        run = sort(store.load_run(folder))
        weakref.finalize(run, cleanup.pop_all().close)
    return run


def _named(suite: object) -> str:
    """The name or the file of a suite."""
    if not isinstance(suite, str | os.PathLike):
        raise CrosswindError(
            f"suite is a {type(suite).__name__}; expected the name of a suite, a YAML file, or a Suite "
            "(cw.Suite(name=..., domains=...))"
        )
    return os.fspath(suite)


def agent_settings(given: AgentSettings | Mapping[str, Any] | None) -> AgentSettings:
    """Settings of a model, from a mapping too."""
    if isinstance(given, AgentSettings):
        return given
    try:
        return AgentSettings.model_validate(dict(given or {}))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        known = ", ".join(AgentSettings.model_fields)
        raise CrosswindError(f"settings: {place}: {complaint(first)}; the settings are {known}") from None


def watching(progress: Told | None) -> runner.Watch | None:
    """What tells a function how far a run is."""
    return _Watch(progress) if progress else None


class _Watch:
    """Tells a function how far a run is."""

    def __init__(self, tell: Told) -> None:
        self.tell, self.told = tell, -1

    def show(self, progress: runner.Progress) -> None:
        done = progress.before + progress.done
        if done != self.told:
            self.told = done
            self.tell(done, progress.total)
