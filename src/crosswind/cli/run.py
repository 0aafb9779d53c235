"""`crosswind run` plays a suite with an agent into a folder; `crosswind rescore` judges such a folder anew."""

from __future__ import annotations

import re
import signal
import sys
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crosswind.base import terminal

if TYPE_CHECKING:
    from crosswind.episodes.record import Record
    from crosswind.episodes.suite import Suite
    from crosswind.metrics import Drop
    from crosswind.models.base import AgentSource
    from crosswind.runs.runner import Limits, Progress, Ran

STOPPED, BUG = 3, 70  # exit codes: the infrastructure stopped the run; something is wrong with the code
PLAIN = 5.0  # seconds between two lines where there is no terminal
DRAWN = 2000  # episodes that a dry run draws at most, for each trial
WEIGHED = 300  # of these, whose tokens it counts
CHARACTERS = 4  # in a token, roughly

RUN_EPILOG = """Examples:

crosswind run quick --agent oracle

crosswind run tiers --agent openai:gpt-5-mini --out runs/mini --concurrency 16 --max-cost 5

crosswind run tiers --agent openai:qwen3@http://localhost:8000/v1 --dry-run

crosswind run my_suite.yaml --agent python:my_agent:agent --trials 4 --episode-timeout 120

The same command with the same --out continues a run that was stopped or killed. The exit status says nothing about the
score (that is `crosswind gate`): 0 done or stopped by a budget, 2 something to mend in the command, 3 the provider or
the disk stopped it, 70 a bug, 130 interrupted."""


def register(app: typer.Typer) -> None:
    app.command(epilog=RUN_EPILOG)(run)
    app.command(epilog="Example: crosswind rescore runs/mini")(rescore)


# ---------------------------------------------------------------- run


def from_config(ctx: typer.Context, path: Path | None) -> Path | None:
    """Let a configuration stand for the options that are not given."""
    if path is not None:
        from crosswind.cli.config import load_config

        ctx.default_map = {**(ctx.default_map or {}), **load_config(path).options()}
    return path


def run(
    suite: Annotated[str, typer.Argument(help="A suite (see `crosswind catalog`) or a YAML file with one.")],
    agent: Annotated[str, typer.Option(help="Who plays: a scripted agent, openai:MODEL@URL, python:MODULE:NAME, ...")],
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            is_eager=True,
            callback=from_config,
            help="What is not given here is taken from this file; `crosswind init` writes one.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The folder to write; by default a new one under runs/.")] = None,
    concurrency: Annotated[
        int, typer.Option(show_default=False, min=0, max=1024, help="Episodes at a time; 0: as suits the agent.")
    ] = 0,
    limit: Annotated[
        int, typer.Option(show_default=False, min=0, help="At most so many episodes in all; 0: the whole suite.")
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Equal seeds give equal tasks and stacks.")] = 0,
    trials: Annotated[int, typer.Option(min=1, help="How often each episode is played.")] = 1,
    tasks: Annotated[
        int, typer.Option(show_default=False, min=0, help="Tasks per domain and condition; 0: as the suite says.")
    ] = 0,
    domain: Annotated[str, typer.Option(help="One domain, or all that the suite has.")] = "all",
    episode_timeout: Annotated[
        float,
        typer.Option(
            show_default=False, min=0, help="Seconds for one episode, after which it has failed; 0: any time."
        ),
    ] = 0,
    deadline: Annotated[
        float, typer.Option(show_default=False, min=0, help="Seconds for this run, after which it stops; 0: any.")
    ] = 0,
    max_tokens: Annotated[
        int, typer.Option(show_default=False, min=0, help="Stop once the run has used so many tokens; 0: any.")
    ] = 0,
    max_cost: Annotated[
        float, typer.Option(show_default=False, min=0, help="Stop once the run has cost so much; 0: any.")
    ] = 0,
    keep_errors: Annotated[
        bool, typer.Option("--keep-errors", help="Do not play again what ended as an error earlier.")
    ] = False,
    reply_tokens: Annotated[
        int | None,
        typer.Option(
            show_default=False, min=1, help="Tokens of one reply of a model; by default 1024, fewer in process."
        ),
    ] = None,
    temperature: Annotated[float | None, typer.Option(min=0, help="Of a model; by default as it comes.")] = None,
    protocol: Annotated[str, typer.Option(help="How a model calls tools: auto, native or text.")] = "auto",
    context: Annotated[
        int, typer.Option(show_default=False, min=0, help="Window of a model in process, in tokens; 0: its own.")
    ] = 0,
    request_timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for one request to a provider.")] = 120,
    price_in: Annotated[float | None, typer.Option(min=0, help="Price of a million input tokens.")] = None,
    price_out: Annotated[float | None, typer.Option(min=0, help="Price of a million output tokens.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how much it would be.")] = False,
    progress: Annotated[bool, typer.Option(help="Show how it goes.")] = True,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
) -> None:
    """Play a suite with an agent, each episode on the disk as soon as it is over; a second time, continue."""
    from crosswind.api.evaluate import narrowed
    from crosswind.base.errors import CrosswindError
    from crosswind.episodes.suite import load_suite
    from crosswind.models.base import AgentSettings
    from crosswind.models.spec import open_agent
    from crosswind.runs.runner import Limits

    if protocol not in ("auto", "native", "text"):
        raise CrosswindError(f"--protocol is {protocol!r}; expected auto, native or text")
    chosen = narrowed(load_suite(suite), tasks, domain)
    settings = AgentSettings.model_validate(
        {
            "max_tokens": reply_tokens,
            "temperature": temperature,
            "protocol": protocol,
            "context": context,
            "timeout": request_timeout,
            "price_in": price_in,
            "price_out": price_out,
        }
    )
    source = open_agent(agent, settings)
    if max_cost and source.price is None:
        raise CrosswindError(f"--max-cost: no price is known for {source.name}; give --price-in and --price-out")
    if dry_run:
        forecast(chosen, source, seed=seed, trials=trials, limit=limit or None, json_=json_)
        return
    limits = Limits(
        episode=episode_timeout or None, deadline=deadline or None, tokens=max_tokens or None, cost=max_cost or None
    )
    folder = out or Path("runs") / folder_name(chosen.name, source.name)
    given = {
        "seed": seed,
        "trials": trials,
        "limit": limit or None,
        "concurrency": concurrency or None,
        "keep_errors": keep_errors,
    }
    ran = _guarded(chosen, source, folder, limits, given, quiet=json_ or not progress)
    _conclude(ran, folder, json_=json_)


def folder_name(suite: str, agent: str) -> str:
    """A name for a new folder, of letters that every file system takes."""
    parts = [
        re.sub(r"\.\.+|[^A-Za-z0-9._]+", "-", part).strip("-.")[:40] or "run" for part in (Path(suite).stem, agent)
    ]
    return "-".join((*parts, datetime.now().strftime("%Y%m%d-%H%M%S")))


def _guarded(
    suite: Suite, source: AgentSource, folder: Path, limits: Limits, given: dict[str, Any], *, quiet: bool
) -> Ran:
    """Run it; whatever stops it comes out as a line and an exit code."""
    import asyncio

    from crosswind.base.errors import InfrastructureError
    from crosswind.runs.runner import Crash
    from crosswind.runs.store import CannotStore

    watch = Display(quiet)
    try:
        with watch:
            return asyncio.run(_run(suite, source, folder, limits, given, watch))
    except (CannotStore, InfrastructureError) as error:
        print(f"error: {terminal.safe(str(error))}", file=sys.stderr)
        raise typer.Exit(STOPPED) from None
    except Crash as crash:
        print(f"error: {terminal.safe(_crash_text(crash, folder))}", file=sys.stderr)
        raise typer.Exit(BUG) from None
    except SystemExit as left:  # out of a task that an agent started on its own
        gone = Crash("one that was under way", left, by_agent=True)
        print(f"error: {terminal.safe(_crash_text(gone, folder))}", file=sys.stderr)
        raise typer.Exit(BUG) from None
    except (KeyboardInterrupt, asyncio.CancelledError):
        print(
            f"stopped; every finished episode is in {folder}. The same command with --out {folder} continues it",
            file=sys.stderr,
        )
        raise typer.Exit(130) from None


async def _run(
    suite: Suite, source: AgentSource, folder: Path, limits: Limits, given: dict[str, Any], watch: Display
) -> Ran:
    import asyncio

    from crosswind.runs import runner

    asyncio.get_running_loop().set_exception_handler(lambda _, about: _left_alone(about))
    task = asyncio.current_task()
    if task is not None:
        with suppress(ValueError, NotImplementedError, RuntimeError):  # only where this is the main thread
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        return await runner.run(suite, source, folder, limits=limits, watch=watch, **given)
    finally:
        await source.aclose()


def _left_alone(about: dict[str, Any]) -> None:
    """Tell in one line of what broke where nobody waits for it, such as in a task that an agent left behind."""
    error = about.get("exception")
    told = about.get("message", "") if error is None else f"{type(error).__name__}: {error}"
    warnings.warn(f"something that was left alone broke: {_scrubbed(told)[:300]}", stacklevel=1)


def _scrubbed(text: str) -> str:
    """Text out of an agent's code, without the keys of the environment."""
    import os

    from crosswind.models.python_agent import KEYS
    from crosswind.models.redact import Secrets

    return Secrets(*(os.environ.get(name) for name in KEYS)).scrub(text)


def _crash_text(crash: Any, folder: Path) -> str:
    """What happened, for whoever reports it. The places in the code go to a file, without any values."""
    import traceback

    places = traceback.extract_tb(crash.error.__traceback__)
    frames = "".join(f"{place.filename}:{place.lineno} in {place.name}\n" for place in places)
    path = folder / "crash.txt"
    with suppress(OSError):
        path.write_text(f"{crash.key}\n{frames}{type(crash.error).__name__}\n", encoding="utf-8")
    whose = "the agent's code raised" if crash.by_agent else "this is a bug in crosswind:"
    told = f"{type(crash.error).__name__}: {_scrubbed(str(crash.error))}"
    return (
        f"in the episode {crash.key!r} {whose} {told}; where is in {path}. "
        "Every finished episode is safe, and the same command continues"
    )


def _conclude(ran: Ran, folder: Path, *, json_: bool) -> None:
    """What came out, and what to do next."""
    progress = ran.progress
    drops = tier_drops(folder)
    if json_:
        terminal.print_json(
            {
                "folder": str(folder),
                "state": ran.manifest.state,
                "stopped": ran.stopped,
                "episodes": progress.before + progress.done,
                "played": progress.done,
                "left": ran.left,
                "errors": progress.errors,
                "trouble": progress.trouble,
                "scores": {name: {"n": c.n, "passed": c.passed} for name, c in progress.scores.items()},
                "drops": {name: drop.model_dump(mode="json") for name, drop in drops.items()},
                "usage": progress.spent.model_dump(mode="json"),
            }
        )
    else:
        _show(ran, drops, folder)
    if ran.broken:
        raise typer.Exit(STOPPED)


def tier_drops(folder: Path) -> dict[str, Drop]:
    """The drop per tier, and over all pairs."""
    from crosswind.metrics import drops
    from crosswind.runs.store import iter_records

    shared: dict[Any, Any] = {}
    light = [_light(record, shared) for record in iter_records(folder)]
    return {**drops(light, "tier"), **drops(light, "all")}


def _light(record: Record, shared: dict[Any, Any]) -> Record:
    """A record without what only a reader of the episode needs; what is equal to that of others is shared."""
    same = ("domain", "family", "condition", "agent", "outcome", "ended", "receipts")
    unlike = ("key", "pair", "task_id", "level", "seed", "trial", "severity", "refuse")
    one = {name: shared.setdefault(value, value) for name in same if (value := getattr(record, name)) is not None}
    layers = shared.setdefault(record.kinds, tuple({"kind": kind} for kind in record.kinds))
    fields = shared.setdefault(None, set(type(record).model_fields))
    return type(record).model_construct(fields, **one, **{n: getattr(record, n) for n in unlike}, layers=layers)


def _show(ran: Ran, drops: dict[str, Drop], folder: Path) -> None:
    from crosswind.report.table import HEADS, TOTAL, score_rows

    console, progress = terminal.console(), ran.progress
    table = terminal.table_of(*HEADS)
    for row in score_rows(progress.scores, drops):
        table.add_row(*row, style="bold" if row[0] == TOTAL else "")
    console.print(table)
    if "all" in drops:
        console.print(
            "A pair is a shifted episode beside the clean one of its task, which counts in as many pairs as its task "
            "has; pairs of one task tell much the same, so that the interval goes by tasks."
        )
    tokens = progress.spent.input_tokens + progress.spent.output_tokens
    cost = f", cost {progress.spent.cost:.4g}" if progress.spent.cost else ""
    console.print(f"{progress.before + progress.done} episodes ({progress.done} now); {tokens:,} tokens{cost}.")
    if not progress.scores and progress.errors:
        console.print("Nothing could be scored.", style="bold red")
    if progress.errors:
        console.print(
            f"{progress.errors} ended as errors of the infrastructure and count nowhere (the last: "
            f"{terminal.short(progress.trouble, 300)}); the same command with --out {folder} plays them again.",
            style="yellow",
        )
    if ran.refused:
        console.print(f"{len(ran.refused)} draws found no fair stack and were passed over.", style="yellow")
    if ran.cut:
        console.print(f"A line torn by a crash was cut off and kept in {folder}/episodes.jsonl.torn.", style="yellow")
    if ran.stopped:
        larger = "a larger budget and " if ran.budget else ""
        console.print(
            f"Stopped: {terminal.short(ran.stopped, 400)}; about {ran.left} episodes are left. The same command with "
            f"{larger}--out {folder} continues.",
            style="yellow",
        )
    console.print(f"Next: crosswind report {folder}")


# ---------------------------------------------------------------- how it goes


class Display:
    """Progress on stderr: a live table on a terminal, a line now and then elsewhere."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.terminal = sys.stderr.isatty() and not quiet
        self.began = self.told = time.monotonic()
        self._live: Any = None

    def __enter__(self) -> Display:
        if self.terminal:
            from rich.console import Console
            from rich.live import Live

            console = Console(stderr=True, markup=False, highlight=False, emoji=False)
            self._live = Live(console=console, auto_refresh=False, transient=True)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, progress: Progress) -> None:
        now = time.monotonic()
        if self.quiet or now - self.told < (0.1 if self.terminal else PLAIN):
            return
        self.told = now
        if self._live is None:
            print(self.line(progress), file=sys.stderr, flush=True)
        else:
            self._live.update(self.table(progress), refresh=True)

    def line(self, progress: Progress) -> str:
        """All of it in one line."""
        over, seconds = progress.before + progress.done, time.monotonic() - self.began
        rate = progress.done / seconds if seconds else 0.0
        left = f", {_span((progress.total - over) / rate)} left" if rate else ""
        errors = f", {progress.errors} errors" if progress.errors else ""
        scores = [f"{name} {share}" for name, share in _shares(progress)]
        return "; ".join([f"{over}/{progress.total} episodes, {rate:.3g}/s{left}{errors}", *scores])

    def table(self, progress: Progress) -> Any:
        from rich.console import Group
        from rich.progress_bar import ProgressBar

        over = progress.before + progress.done
        bar = ProgressBar(total=max(progress.total, over, 1), completed=over, width=60)
        return Group(self.line(progress), bar)  # in this order: nothing ends the line of a bar


def _shares(progress: Progress) -> list[tuple[str, str]]:
    from crosswind.runs.runner import SORTS

    counts = ((sort, progress.scores[sort]) for sort in SORTS if sort in progress.scores)
    return [(sort, f"{100 * c.passed / c.n:.0f} %") for sort, c in counts]


def _span(seconds: float) -> str:
    """A time to wait, in words."""
    seconds = max(0, round(seconds))
    if seconds < 90:
        return f"{seconds} s"
    minutes, hours = seconds // 60, seconds // 3600
    return f"{minutes} min" if minutes < 90 else f"{hours} h {minutes % 60} min"


# ---------------------------------------------------------------- a dry run


def forecast(suite: Suite, source: AgentSource, *, seed: int, trials: int, limit: int | None, json_: bool) -> None:
    """How much a run would be: from drawing up to so many episodes and walking the certified way through them."""
    from itertools import islice

    from crosswind.core.perturbation import Perturbation
    from crosswind.episodes.suite import CLEAN, STACKS
    from crosswind.runs.runner import SORTS, Plan

    def sort_of(layers: tuple[Perturbation, ...]) -> str:
        return CLEAN if not layers else layers[0].tier if len(layers) == 1 else STACKS

    plan = Plan(suite, seed, trials=trials, limit=limit)
    rows: dict[str, Forecast] = {}
    shifted, met = Forecast(), Forecast()  # without the clean ones, and all
    asked = told = 0
    with terminal.Status("drawing", json_) as status:
        for n, job in enumerate(islice((job for job in plan if job is not None), DRAWN * trials), 1):
            if status and n % 20 == 0:
                status(f"{n} episodes")
            if n <= WEIGHED * trials:
                one_in, one_out = _tokens(job.episode.drawn)
                asked, told = asked + one_in, told + one_out
            sort = sort_of(job.episode.drawn.layers)
            for row in (rows.setdefault(sort, Forecast()), met, *([] if sort == CLEAN else [shifted])):
                row.add(job.episode.pair)
    rows = {name: rows[name] for name in SORTS if name in rows}
    drawn, total = met.episodes, plan.total
    scale = total / drawn if drawn else 0.0
    weighed = total / min(drawn, WEIGHED * trials) if drawn else 0.0
    tokens = round(asked * weighed), round(told * weighed)
    cost = source.price.of(*tokens) if source.price else None
    smallest = {name: row.detectable for name, row in rows.items() if name != CLEAN}
    smallest["all"] = shifted.detectable
    if json_:
        terminal.print_json(
            {
                "suite": suite.name,
                "agent": source.name,
                "episodes": total,
                "exact": plan.whole,
                "by_tier": {name: round(row.episodes * scale) for name, row in rows.items()},
                "tasks": {**{name: len(row.sizes) for name, row in rows.items()}, "all": len(met.sizes)},
                "input_tokens": tokens[0],
                "output_tokens": tokens[1],
                "cost": cost,
                "detectable": smallest,
            }
        )
        return
    console = terminal.console()
    table = terminal.table_of("tier", "episodes", "tasks", "smallest drop it can show")
    for name, row in rows.items():
        shows = "" if name == CLEAN else _points(smallest[name])
        table.add_row(name, str(round(row.episodes * scale)), str(len(row.sizes)), shows)
    table.add_row("all", str(total), str(len(met.sizes)), _points(smallest["all"]), style="bold")
    console.print(table)
    about = "" if plan.whole else f", estimated from the first {drawn}, whose tasks these are"
    price = f"; cost about {cost:.4g}" if cost is not None else "; no price is known (--price-in, --price-out)"
    console.print(
        f"{total} episodes{about}. About {tokens[0]:,} input and {tokens[1]:,} output tokens on the certified way, at "
        f"{CHARACTERS} characters a token; agents that stray take more{price}.\n"
        "A drop it can show is found four times in five at the level of 5 %, if 10 % of pairs change by chance and "
        "episodes of one task tell no more than one of them.\n"
        f"Nothing was played: {source.name} was not asked."
    )


@dataclass(slots=True)
class Forecast:
    """Episodes of a sort that were drawn, by task."""

    sizes: dict[str, int] = field(default_factory=dict)  # task -> its episodes

    def add(self, task: str) -> None:
        self.sizes[task] = self.sizes.get(task, 0) + 1

    @property
    def episodes(self) -> int:
        return sum(self.sizes.values())

    @property
    def detectable(self) -> float | None:
        """The smallest drop that these show if pairs of one task are all alike.

        n pairs are then worth n^2 / (sum of the squares of the tasks' numbers of pairs) independent ones: as many as
        there are tasks where all have equally many, fewer where they have not.
        """
        from crosswind.metrics import minimum_detectable_effect

        if not self.sizes:
            return None
        worth = self.episodes**2 / sum(size**2 for size in self.sizes.values())
        return minimum_detectable_effect(int(worth + 1e-9))


def _points(share: float | None) -> str:
    return "none" if share is None else f"{100 * share:.0f} points"


def _tokens(drawn: Any) -> tuple[int, int]:
    """Tokens in and out on the certified way: the whole conversation is sent anew at every turn."""
    import json

    from crosswind.core.session import Session
    from crosswind.episodes.play import result_text

    certificate = drawn.certificate
    session = Session.of(drawn.domain, certificate.task, certificate.layers)
    tools = sum(len(json.dumps(tool.function())) for tool in session.tools())
    context = len(session.policy()) + len(session.query()) + tools
    asked, told = context, len(certificate.gold.final)
    for step in certificate.gold.steps:
        sent = len(json.dumps({"name": step.call.tool, "arguments": dict(step.call.args)}, default=str))
        context += sent + len(result_text(step.result))
        asked, told = asked + context, told + sent
    return asked // CHARACTERS, told // CHARACTERS


# ---------------------------------------------------------------- rescore


def rescore(
    folder: Annotated[Path, typer.Argument(help="The folder of a run.")],
    write: Annotated[bool, typer.Option("--write", help="Store the new verdicts; the old file is kept.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
) -> None:
    """Judge the stored episodes of a run with the verifier of this version, and say what changed."""
    from crosswind.runs.runner import rescored

    with terminal.Status("judging", json_) as status:
        found = rescored(folder, write=write, tell=status)
    if json_:
        terminal.print_json(
            {
                "folder": str(folder),
                "episodes": found.episodes,
                "judged_by": found.judges,
                "judge": found.judge,
                "changed": [{"key": key, "was": was, "now": now} for key, was, now in found.changed],
                "backup": found.backup,
            }
        )
        return
    console = terminal.console()
    before = ", ".join(f"{n} by version {judge or 'unknown'}" for judge, n in found.judges.items())
    console.print(f"{found.episodes} episodes were judged: {before or 'none'}; now by version {found.judge}.")
    if found.changed:
        table = terminal.table_of("episode", "was", "now")
        for key, was, now in found.changed[:50]:
            table.add_row(terminal.short(key, 100), was, now)
        console.print(table)
    console.print(f"{len(found.changed)} verdicts changed.")
    if found.backup:
        console.print(f"Written; the file as it was is {found.backup}.")
    elif found.changed:
        console.print("Nothing was written; --write puts the new verdicts in place and keeps the old file.")
