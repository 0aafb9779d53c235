"""`crosswind serve`: an episode as an MCP server, for an agent started by hand, or any number of them for OpenEnv."""

from __future__ import annotations

import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

from typer import Option

from crosswind.base import terminal
from crosswind.base.errors import CannotPerturb, CrosswindError
from crosswind.cli.help import App, epilog
from crosswind.cli.options import DomainName, Ending, Family, Perturb

if TYPE_CHECKING:
    from collections.abc import Callable

    from crosswind.core.draw import Drawn
    from crosswind.core.types import Trajectory, Verdict

LINGER = 0.5  # seconds for the last answer to reach the client
PATIENCE = 10.0  # seconds for a client to close its side after the episode

MCP_EPILOG = epilog(
    "crosswind serve mcp --domain poi --task-seed 3 --http",
    "crosswind serve mcp --domain poi --task-seed 3 --perturb semantic_rename:4 --out runs/mine",
    notes="docs/serve.md shows a client's configuration. To evaluate an agent over many episodes, use `crosswind run "
    "SUITE --agent 'cmd:...'`.",
)
OPENENV_EPILOG = epilog(
    "crosswind serve openenv --port 8000",
    "crosswind serve openenv --host 0.0.0.0 --port 8000 --token SECRET",
    notes="docs/openenv.md describes requests, actions and observations.",
)
app = App(name="serve", no_args_is_help=True, help="Serve episodes to agents in other processes.")


@app.command(epilog=MCP_EPILOG)
def mcp(
    domain: DomainName,
    task_seed: Annotated[int, Option(min=0, help="Seed of the task; the same seed gives the same task.")] = 0,
    family: Family = "",
    perturb: Perturb = [],  # noqa: B006
    recipe: Annotated[str, Option(help="Recipe name or YAML file, instead of --perturb.")] = "",
    seed: Annotated[int, Option(min=0, help="Seed of the perturbations.")] = 0,
    http: Annotated[bool, Option("--http", help="Serve streamable HTTP on 127.0.0.1 instead of stdio.")] = False,
    port: Annotated[int, Option(metavar="PORT", min=0, max=65535, help="Port for --http; 0: any free port.")] = 0,
    out: Annotated[
        Path | None, Option(metavar="DIR", help="Store the episode in this folder, for `show` and `diagnose`.")
    ] = None,
) -> None:
    """Serve one episode over MCP, then judge the outcome.

    The request and the policy are printed (to stderr unless --http is given) and offered as the prompt `request`, as
    the resources task://request and task://policy, and as the server's instructions. The agent asks the user with the
    tool ask_user and ends the episode with the tool finish. The episode also ends when the client disconnects or has
    used up its calls.
    """
    import asyncio

    drawn = _drawn(domain, task_seed, family, perturb, recipe, seed)
    told = sys.stdout if http else sys.stderr

    def conclude(trajectory: Trajectory) -> None:
        from crosswind.episodes.play import judge

        verdict = judge(trajectory, drawn.domain)
        _conclude(drawn, trajectory, verdict, told)
        if out is not None:
            _store(drawn, trajectory, verdict, seed, out)
            print(f"Next: crosswind show {terminal.safe(str(out))}", file=told, flush=True)

    asyncio.run(_serve(drawn, told, port if http else None, conclude))


@app.command(epilog=OPENENV_EPILOG)
def openenv(
    host: Annotated[str, Option(metavar="HOST", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Option(metavar="PORT", min=0, max=65535, help="Port; 0: any free port.")] = 8000,
    token: Annotated[
        str,
        Option(envvar="CROSSWIND_TOKEN", help="Token that clients must send; required unless --host is localhost."),
    ] = "",
    sessions: Annotated[int, Option(metavar="N", min=1, help="Maximum number of simultaneous connections.")] = 1000,
    idle: Annotated[float, Option(min=1, help="Close a connection after this many idle seconds.")] = 600.0,
    ending: Ending = "",
) -> None:
    """Serve episodes over a WebSocket that speaks OpenEnv's protocol.

    Each connection plays its own episodes, from any suite or domain. Observations contain the current tools. The
    judge's verdict is the reward.
    """
    import asyncio

    from crosswind.base.extras import extra

    with extra("openenv", "serve openenv"):
        from crosswind.frameworks.openenv_server import OpenEnvServer

    server = OpenEnvServer(
        host=host,
        port=port,
        token=token,
        sessions=sessions,
        idle=idle,
        ending="words" if ending == "words" else "finish",
    )

    async def serve() -> None:
        serving = asyncio.ensure_future(server.serve())
        while not server.server.started and not serving.done():
            await asyncio.sleep(0.02)
        if server.server.started:
            print(f"serving ws://{host}:{server.port}/ws; stop with Ctrl-C", flush=True)
        await serving

    try:
        asyncio.run(serve())
    except SystemExit:
        raise CrosswindError(f"cannot listen on {host}:{port}; is the port taken? Choose another --port") from None


def _drawn(domain: str, task_seed: int, family: str, perturb: list[str], recipe: str, seed: int) -> Drawn:
    from crosswind.api.episode import task_of
    from crosswind.core.draw import draw, parse_kind
    from crosswind.core.registry import domains
    from crosswind.episodes.recipe import follow, load_recipe

    if recipe and perturb:
        raise CrosswindError("--recipe and --perturb both say what to perturb; give one of them")
    here = domains[domain]
    task = task_of(here, family, task_seed)
    try:
        if recipe:
            return follow(here, task, load_recipe(recipe), seed)
        return draw(here, task, [parse_kind(text) for text in perturb], seed)
    except CannotPerturb as cannot:
        raise CrosswindError(f"{cannot}; try another --task-seed or --family") from None


async def _serve(drawn: Drawn, told: TextIO, port: int | None, conclude: Callable[[Trajectory], None]) -> None:
    """Play the episode with the one who connects, over HTTP where there is a port, and conclude it when it is over."""
    import asyncio

    from crosswind.base.extras import extra
    from crosswind.episodes.play import play
    from crosswind.mcp.serve import EpisodeServer, Served, serve_lines
    from crosswind.mcp.wire import own_pipes

    ready: asyncio.Future[EpisodeServer] = asyncio.get_running_loop().create_future()
    source, server = Served(ready.set_result), None
    if port is not None:
        with extra("http", "--http"):
            from crosswind.mcp.http_server import HttpServer

        server = HttpServer()
    playing = asyncio.ensure_future(play(drawn, source.make(drawn), source.name, ending=source.ending))
    episode, asked = await ready, asyncio.Event()

    def leave() -> None:
        asked.set()
        source.leave()

    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(ValueError, NotImplementedError, RuntimeError):
            asyncio.get_running_loop().add_signal_handler(number, leave)
    briefing, query = terminal.safe(episode.briefing), terminal.safe(episode.query)
    print(f"policy:  {briefing}\n\nrequest: {query}\n", file=told, flush=True)
    try:
        if server is not None:
            await server.start(port or 0)
            print(f"server:  {server.add(episode)}", file=told, flush=True)
            conclude(await playing)
            source.end()
            await asyncio.sleep(LINGER)
            return
        serving = asyncio.ensure_future(serve_lines(episode, await own_pipes()))
        await asyncio.wait({serving, playing}, return_when=asyncio.FIRST_COMPLETED)
        source.leave()
        conclude(await playing)
        source.end()
        ended = asyncio.ensure_future(asked.wait())
        await asyncio.wait({serving, ended}, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({serving}, timeout=LINGER)
        for task in (serving, ended):
            task.cancel()
        await asyncio.gather(serving, ended, return_exceptions=True)
    finally:
        playing.cancel()
        if server is not None:
            await server.aclose()


def _conclude(drawn: Drawn, trajectory: Trajectory, verdict: Verdict, told: TextIO) -> None:
    kinds = ", ".join(layer.kind for layer in drawn.layers) or "none"
    print(f"ended:   {terminal.safe(trajectory.final) or '(no answer)'}", file=told)
    print(f"verdict: {verdict.outcome} after {len(trajectory.steps)} steps; obstacles: {kinds}", file=told)
    for check in verdict.checks:
        if not check.passed:
            print(f"  {check.name}: {terminal.safe(check.why)}", file=told)


def _store(drawn: Drawn, trajectory: Trajectory, verdict: Verdict, seed: int, out: Path) -> None:
    """A run with this one episode."""
    from crosswind.episodes.recipe import Choice
    from crosswind.episodes.record import UNKNOWN, recorded
    from crosswind.episodes.schedule import Episode
    from crosswind.episodes.suite import CLEAN, Condition, Suite
    from crosswind.mcp.serve import Served
    from crosswind.runs.runner import Limits, diagnosed, manifest_of
    from crosswind.runs.store import Store

    kinds = tuple(layer.kind for layer in drawn.layers)
    condition = Condition(name=" + ".join(kinds) or CLEAN, stack=tuple(Choice(kind=kind) for kind in kinds))
    suite = Suite(name="served", domains=(drawn.domain.name,), tasks=1, conditions=(condition,) if kinds else ())
    episode = Episode(condition.name, drawn.base.id, drawn)
    record = recorded(episode, trajectory, verdict, seed=seed, usage=UNKNOWN)
    source = Served(lambda _: None)
    with Store(out) as store:
        manifest = store.begin(manifest_of(suite, source, seed=seed, trials=1, limit=1, limits=Limits()))
        store.resume(lambda _: None)
        store.append(diagnosed(record, drawn.certificate))
        store.sync()
        store.write(manifest, state="finished", planned=1)
