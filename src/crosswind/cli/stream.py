"""`crosswind stream`: run an agent over an interface that keeps changing, or over a career."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Annotated

from typer import Argument, Exit, Option

from crosswind.base import terminal
from crosswind.cli.exits import BUG, STOPPED
from crosswind.cli.help import App, epilog
from crosswind.cli.options import Address, Ending, Executor, Json, Seed
from crosswind.cli.progress import RunDisplay
from crosswind.cli.run import folder_name, guarded

app = App()
EPILOG = epilog(
    "crosswind stream evolving --agent updater --domain poi",
    "crosswind stream evolving --agent python:my_agent:Agent --streams 5 --changelog shown --out runs/evolving",
    "crosswind stream evolving --agent python:my_agent:Agent --frozen",
    "crosswind stream careers --agent openai:MODEL@URL --memory notes --streams 5",
    notes="Rerun the command with the same --out to resume a stream that was stopped or killed.",
    exits={STOPPED: "stopped by the provider or the disk", BUG: "a bug in the agent or in crosswind"},
)


@app.command(epilog=EPILOG)
@terminal.reserve_stdout()
def stream(
    plan: Annotated[
        str,
        Argument(
            help="evolving, gradual, recurring, cascading, earned, lifecycle, drifting, careers (docs/streams.md), or "
            "a YAML file."
        ),
    ],
    agent: Annotated[str, Option(help="Agent, as for `crosswind run --agent`.")],
    out: Annotated[
        Path | None, Option(metavar="DIR", show_default="a new one under runs/", help="Folder of the run.")
    ] = None,
    streams: Annotated[int, Option(min=1, help="Streams per domain, each with its own releases.")] = 1,
    episodes: Annotated[int, Option(min=0, show_default=False, help="Episodes per stream; 0: the plan's number.")] = 0,
    domain: Annotated[str, Option(help="Run in this domain only.")] = "all",
    changelog: Annotated[
        str,
        Option(
            metavar="hidden|shown|wrong",
            show_default="the plan's",
            help="Whether the policy contains release notes, and whether they are right.",
        ),
    ] = "",
    frozen: Annotated[
        bool,
        Option(
            "--frozen",
            help="For comparison: never change the interface; in careers, state each fact where it is needed.",
        ),
    ] = False,
    memory: Annotated[
        str, Option(metavar="notes", show_default="the agent's own", help="Give the agent tools to keep notes.")
    ] = "",
    notes_size: Annotated[int, Option(min=1, max=50_000, help="With --memory: maximum length of the notes.")] = 4_000,
    check: Annotated[
        bool,
        Option(
            "--check",
            help="Play 10 episodes without storing them, to check that a restarted agent behaves the same; then exit.",
        ),
    ] = False,
    concurrency: Annotated[int, Option(min=1, max=1024, help="Streams to run at the same time.")] = 1,
    seed: Seed = 0,
    ending: Ending = "",
    executor: Executor = "local",
    address: Address = "",
    progress: Annotated[bool, Option(help="Show progress.")] = True,
    json_: Json = False,
) -> None:
    """Run an agent over a stream of episodes in which the interface changes or facts must be remembered.

    In most plans, each release changes the interface again. In careers, later requests rely on facts that earlier
    ones stated. Rerun the command to resume.
    """
    from crosswind.core.registry import domains
    from crosswind.episodes.career import CareerPlan
    from crosswind.episodes.stream import load_plan, with_changes
    from crosswind.metrics.streams import summarise
    from crosswind.models.notes import with_memory
    from crosswind.models.spec import open_agent
    from crosswind.report import streams as streams_report
    from crosswind.runs.ray_map import mapper
    from crosswind.runs.spread_streams import StreamPart, spread_streams
    from crosswind.runs.store import iter_records
    from crosswind.runs.streams import check_replay, play_streams

    mapped = mapper(executor, address)
    changes: dict[str, object] = {"episodes": episodes} if episodes else {}
    if domain != "all":
        domains[domain]  # says which names there are
        changes["domains"] = (domain,)
    if changelog:
        changes["changelog"] = changelog
    chosen = with_changes(load_plan(plan), changes)
    source = with_memory(open_agent(agent, None, ending), memory, notes_size)
    if check:
        asyncio.run(check_replay(chosen, source, seed=seed))
        print(f"{terminal.safe(source.name)} plays the same after a restart")
        return
    folder = out or Path("runs") / folder_name(chosen.name, source.name)
    watch = RunDisplay(quiet=json_ or not progress)
    if executor == "local":
        play = partial(play_streams, chosen, source, folder, seed=seed, streams=streams, frozen=frozen, watch=watch)
        play = partial(play, concurrency=concurrency)
        ran = guarded(play, source, folder)
    else:
        text = chosen.model_dump_json()
        whole = StreamPart(
            text, isinstance(chosen, CareerPlan), agent, memory, notes_size, ending, seed, streams, frozen, "", 0, ()
        )
        with watch:
            ran = spread_streams(mapped, whole, folder, watch)
    found = summarise(list(iter_records(folder)))
    if json_:
        data = {"folder": str(folder), "state": ran.manifest.state, "stopped": ran.stopped}
        terminal.print_json({**data, **found.model_dump(mode="json")})
    else:
        terminal.print_table(list(streams_report.HEADS), streams_report.rows(found))
        print(terminal.safe(streams_report.sentence(found, source.name)))
        print(f"regret: {found.regret:.1f} failures per stream of {chosen.episodes} episodes; the oracle has none")
        print(f"{'stopped: ' + ran.stopped if ran.stopped else 'finished'}; every episode is in {folder}")
    if ran.broken:
        raise Exit(STOPPED)
