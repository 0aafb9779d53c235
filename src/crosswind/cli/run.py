"""`crosswind run`: play a suite with an agent into a folder."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Coroutine
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Context, Exit, Option

from crosswind.base import terminal
from crosswind.base.errors import CrosswindError, InfrastructureError, words_of_any
from crosswind.base.files import replace_file
from crosswind.cli.dry_run import forecast
from crosswind.cli.exits import BUG, INTERRUPTED, STOPPED
from crosswind.cli.help import App, epilog
from crosswind.cli.options import Ending, Json, Seed, names_in
from crosswind.cli.progress import RunDisplay
from crosswind.cli.run_outcome import conclude

if TYPE_CHECKING:
    from crosswind.models.source import AgentSource
    from crosswind.runs.cluster import RayPlayer
    from crosswind.runs.runner import Ran

GRACE = 2.0  # seconds that tasks of an agent have to end once the run is over

RUN_EPILOG = epilog(
    "crosswind run quick --agent oracle",
    "crosswind run tiers --agent openai:gpt-5-mini --out runs/mini --concurrency 16 --max-cost 5",
    "crosswind run tiers --agent openai:qwen3@http://localhost:8000/v1 --dry-run",
    "crosswind run my_suite.yaml --agent python:my_agent:agent --trials 4 --episode-timeout 120",
    notes="The exit status does not depend on the score; use `crosswind gate` for a verdict.",
    exits={
        0: "done, or stopped by a budget",
        STOPPED: "stopped by the provider or the disk",
        BUG: "a bug in the agent or in crosswind",
    },
)
Unlimited = partial(Option, show_default=False, min=0)  # 0 stands for no limit, or for what the suite or agent has

app = App()


# ---------------------------------------------------------------- run


def from_config(ctx: Context, path: Path | None) -> Path | None:
    """Take options that are not given from a configuration file."""
    if path is not None:
        from crosswind.cli.config import load_config

        ctx.default_map = {**(ctx.default_map or {}), **load_config(path).options()}
    return path


@app.command(epilog=RUN_EPILOG)
@terminal.reserve_stdout()
def run(
    suite: Annotated[str, Argument(help="Suite name (see `crosswind catalog`) or YAML file.")],
    agent: Annotated[str, Option(help="Agent, such as openai:MODEL@URL or python:MODULE:NAME (docs/agents.md).")],
    config: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            is_eager=True,
            callback=from_config,
            help="File with defaults for these options; `crosswind init` writes one.",
        ),
    ] = None,
    out: Annotated[
        Path | None, Option(metavar="DIR", show_default="a new one under runs/", help="Folder of the run.")
    ] = None,
    concurrency: Annotated[
        int, Unlimited(max=1024, help="Episodes to play at the same time; 0: the agent's default.")
    ] = 0,
    limit: Annotated[int, Unlimited(help="Stop after this many episodes; 0: the whole suite.")] = 0,
    seed: Seed = 0,
    trials: Annotated[int, Option(min=1, help="Number of times to play each episode.")] = 1,
    shard: Annotated[
        str, Option(metavar="I/N", help="Play the Ith of N parts; combine them with `crosswind merge`.")
    ] = "",
    tasks: Annotated[
        int,
        Unlimited(help="Tasks per domain and condition (clean, or one set of perturbations); 0: the suite's number."),
    ] = 0,
    domain: Annotated[list[str], Option(metavar="NAME,...", help="Only these domains; repeatable.")] = [],  # noqa: B006
    only: Annotated[list[str], Option(metavar="KIND,...", help="Only these kinds of perturbation; repeatable.")] = [],  # noqa: B006
    tier: Annotated[
        list[str],
        Option(
            metavar="TIER,...",
            help="Only perturbations of these tiers: perception, interaction, reasoning or internalization.",
        ),
    ] = [],  # noqa: B006
    axis: Annotated[
        list[str],
        Option(metavar="AXIS,...", help="Only perturbations on these axes: query, action, observation or domain."),
    ] = [],  # noqa: B006
    episode_timeout: Annotated[
        float, Unlimited(help="Seconds after which an unfinished episode fails; 0: no limit.")
    ] = 0,
    max_repeats: Annotated[
        int,
        Unlimited(
            help="End an episode once the same call has failed this many times, or returned the same result this many "
            "times in a row; 0: never."
        ),
    ] = 0,
    deadline: Annotated[float, Unlimited(help="Seconds after which the run stops; 0: no limit.")] = 0,
    max_tokens: Annotated[int, Unlimited(help="Stop once the run has used this many tokens; 0: no limit.")] = 0,
    max_cost: Annotated[float, Unlimited(help="Stop once the run has cost this much, in --currency; 0: no limit.")] = 0,
    max_exceptions: Annotated[
        int,
        Unlimited(
            help="Stop once the same exception has ended this many episodes in a row, across at least two tasks; 0: "
            "never."
        ),
    ] = 5,
    keep_errors: Annotated[
        bool, Option("--keep-errors", help="When resuming, do not retry episodes that ended as errors.")
    ] = False,
    reply_tokens: Annotated[
        int | None,
        Option(show_default="1024; fewer for in-process models", min=1, help="Maximum tokens per reply of a model."),
    ] = None,
    temperature: Annotated[
        float | None, Option(min=0, show_default="the provider's", help="Sampling temperature.")
    ] = None,
    ending: Ending = "",
    protocol: Annotated[
        str,
        Option(
            metavar="auto|native|text|quoted",
            help="How a model calls tools. native: the provider's tool calling; text: calls written as text; quoted: "
            "text with names in quotation marks.",
        ),
    ] = "auto",
    context: Annotated[
        int, Unlimited(help="Context length of an in-process model, in tokens; 0: the model's own.")
    ] = 0,
    request_timeout: Annotated[float, Option(min=0.1, help="Time limit for one request to a provider.")] = 120,
    price_in: Annotated[float | None, Option(min=0, help="Price per million input tokens.")] = None,
    price_out: Annotated[float | None, Option(min=0, help="Price per million output tokens.")] = None,
    currency: Annotated[str, Option(metavar="CODE", help="Currency of the prices.")] = "USD",
    executor: Annotated[str, Option(metavar="local|ray", help="Run in this process, or on a Ray cluster.")] = "local",
    address: Annotated[str, Option(show_default="a cluster on this machine", help="Address of a Ray cluster.")] = "",
    actors: Annotated[int, Unlimited(help="Ray actors; 0: one for each CPU of the cluster.")] = 0,
    actor_gpus: Annotated[float, Unlimited(help="GPUs for each Ray actor.")] = 0,
    dry_run: Annotated[bool, Option("--dry-run", help="Estimate episodes, tokens and cost; run nothing.")] = False,
    progress: Annotated[bool, Option(help="Show progress.")] = True,
    json_: Json = False,
) -> None:
    """Run an agent over a suite. Episodes are saved as they finish; rerun the command to resume."""
    from crosswind.core.registry import agents
    from crosswind.episodes.schedule import require_applicable
    from crosswind.episodes.stream import load_suite
    from crosswind.models.source import AgentSettings, has_cost
    from crosswind.models.spec import open_agent
    from crosswind.runs import runner

    if protocol not in ("auto", "native", "text", "quoted"):
        raise CrosswindError(f"--protocol is {protocol!r}; expected auto, native, text or quoted")
    if executor not in ("local", "ray"):
        raise CrosswindError(f"--executor is {executor!r}; expected local or ray")
    part = parse_shard(shard)
    chosen = load_suite(suite).narrowed(
        tasks,
        names_in("--domain", domain) or "all",
        only=names_in("--only", only),
        tier=names_in("--tier", tier),
        axis=names_in("--axis", axis),
    )
    if names_in("--only", only):
        require_applicable(chosen, seed)
    settings = AgentSettings.model_validate(
        {
            "max_tokens": reply_tokens,
            "temperature": temperature,
            "protocol": protocol,
            "context": context,
            "timeout": request_timeout,
            "price_in": price_in,
            "price_out": price_out,
            "currency": currency,
            "offline": dry_run,
        }
    )
    source = open_agent(agent, settings, ending)
    if agent in agents:  # scripted
        given = {"reply-tokens": reply_tokens, "temperature": temperature, "context": context or None}
        for name, value in (*given.items(), ("protocol", None if protocol == "auto" else protocol)):
            if value is not None:
                raise CrosswindError(f"--{name} is {value}, and {agent} is a scripted agent, which has no model")
    if max_cost and not has_cost(source):
        raise CrosswindError(f"--max-cost: no price is known for {source.name}; give --price-in and --price-out")
    if dry_run:
        together = concurrency or source.concurrency
        forecast(
            chosen,
            source,
            seed=seed,
            trials=trials,
            limit=limit or None,
            concurrency=together,
            json_=json_,
            out=out,
        )
        return
    limits = runner.Limits(
        episode=episode_timeout or None,
        repeats=max_repeats or None,
        deadline=deadline or None,
        tokens=max_tokens or None,
        cost=max_cost or None,
        exceptions=max_exceptions or None,
    )
    folder = out or Path("runs") / folder_name(chosen.name, source.name)
    play = partial(
        runner.run,
        chosen,
        source,
        folder,
        seed=seed,
        trials=trials,
        limit=limit or None,
        shard=part,
        limits=limits,
        concurrency=concurrency or None,
        keep_errors=keep_errors,
        watch=RunDisplay(quiet=json_ or not progress),
    )
    if executor == "ray":
        from crosswind.runs.cluster import RayPlayer

        on_ray = partial(
            RayPlayer,
            agent,
            settings,
            ending,
            seed=seed,
            seconds=limits.episode,
            repeats=limits.repeats,
            address=address,
            actors=actors,
            gpus=actor_gpus,
            concurrency=concurrency,
        )
        play = partial(_on_ray, on_ray, play, watch=play.keywords["watch"])
    ran = guarded(play, source, folder, json_=json_)
    try:
        conclude(ran, folder, json_=json_)
    except KeyboardInterrupt:
        told = f"stopped while the summary was computed; every episode is in {folder}. Next: crosswind report {folder}"
        print(told, file=sys.stderr)
        raise Exit(INTERRUPTED) from None


async def _on_ray(make: partial[RayPlayer], play: partial[Coroutine[Any, Any, Ran]], *, watch: RunDisplay) -> Ran:
    """Run on a Ray cluster."""
    async with make() as player:
        return await play(concurrency=player.concurrency, player=player, watch=watch)


def parse_shard(text: str) -> tuple[int, int]:
    """`I/N` as two numbers; an empty text means the whole run."""
    from crosswind.runs.manifest import shard_of

    try:
        return shard_of(text or "1/1")
    except ValueError as error:
        raise CrosswindError(f"--shard {error}") from None


def folder_name(suite: str, agent: str) -> str:
    """A name for a new folder, of letters that every file system takes."""
    parts = [
        re.sub(r"\.\.+|[^A-Za-z0-9._]+", "-", part).strip("-.")[:40] or "run" for part in (Path(suite).stem, agent)
    ]
    return "-".join((*parts, datetime.now().strftime("%Y%m%d-%H%M%S")))


def guarded(play: partial[Coroutine[Any, Any, Ran]], source: AgentSource, folder: Path, *, json_: bool = False) -> Ran:
    """Run it; whatever stops it comes out as a line and an exit code."""
    import asyncio

    from crosswind.runs.runner import Crash
    from crosswind.runs.store import CannotStore, episodes_in

    here = Path.cwd()
    try:
        with play.keywords["watch"]:
            return asyncio.run(_run(play, source))
    except (CannotStore, InfrastructureError) as error:
        raise _ended(str(error), STOPPED) from None
    except Crash as crash:
        raise _ended(_crash_text(crash, folder), BUG) from None
    except SystemExit as left:  # out of a task that an agent started on its own
        gone = Crash("one that was under way", left, by_agent=True)
        raise _ended(_crash_text(gone, folder), BUG) from None
    except (KeyboardInterrupt, asyncio.CancelledError):
        if json_:
            there = max(0, episodes_in(folder))
            terminal.print_json(
                {"folder": str(folder), "state": "stopped", "stopped": "it was interrupted", "episodes": there}
            )
        print(
            f"stopped; finished episodes are in {folder}. To resume, rerun the command with --out {folder}",
            file=sys.stderr,
        )
        raise Exit(INTERRUPTED) from None
    finally:
        os.chdir(here)  # an agent may have gone elsewhere


def _ended(text: str, code: int) -> Exit:
    print(f"error: {terminal.one_line(text)}", file=sys.stderr)
    return Exit(code)


async def _run(play: partial[Coroutine[Any, Any, Ran]], source: AgentSource) -> Ran:
    import asyncio

    asyncio.get_running_loop().set_exception_handler(lambda _, about: _warn_unhandled(about))
    task = asyncio.current_task()
    if task is not None:
        for one in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(one) == signal.SIG_IGN:  # as `nohup` wants it
                continue
            with suppress(ValueError, NotImplementedError, RuntimeError):  # only where this is the main thread
                asyncio.get_running_loop().add_signal_handler(one, task.cancel)
    try:
        return await play()
    finally:
        await source.aclose()
        await _leave_behind()


async def _leave_behind() -> None:
    """End what agents left running; what swallows its cancellation is not waited for, as `asyncio.run` would."""
    import asyncio

    others = asyncio.all_tasks() - {asyncio.current_task()}
    for other in others:
        other.cancel()
    if others:
        _, stuck = await asyncio.wait(others, timeout=GRACE)
        for task in stuck:
            asyncio.tasks._unregister_task(task)
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(task))  # never closed: that would be swallowed as well, forever
        if stuck:
            warnings.warn(
                f"{len(stuck)} tasks of the agent ignore that they were cancelled and are left behind; a bare "
                "`except:` around an `await` does that",
                stacklevel=1,
            )


def _warn_unhandled(about: dict[str, Any]) -> None:
    """Warn in one line of an exception that nobody awaits, such as in a task that an agent left behind."""
    error = about.get("exception")
    told = about.get("message", "") if error is None else f"{type(error).__name__}: {words_of_any(error)}"
    warnings.warn(f"unhandled exception in a background task: {_scrubbed(told)[:300]}", stacklevel=1)


def _scrubbed(text: str) -> str:
    """Text out of an agent's code, without the keys of the environment."""
    from crosswind.models.redact import Secrets, environment

    return Secrets(*environment()).scrub(text)


def _crash_text(crash: Any, folder: Path) -> str:
    """What happened, for anyone who reports it. The places in the code go to a file, without any values."""
    places = traceback.extract_tb(crash.error.__traceback__)
    frames = "".join(f"{place.filename}:{place.lineno} in {place.name}\n" for place in places)
    path = folder / "crash.txt"
    with suppress(OSError):
        replace_file(path, f"{crash.key}\n{frames}{type(crash.error).__name__}\n".encode("utf-8", "replace"))
    whose = "the agent's code raised" if crash.by_agent else "a bug in crosswind raised"
    told = f"{type(crash.error).__name__}: {_scrubbed(str(crash.error))}"
    return (
        f"in the episode {crash.key!r} {whose} {told}. The stack is in {path}. "
        "Finished episodes are kept; rerun the command to resume"
    )
