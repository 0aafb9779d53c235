"""`proxy`: stand between an MCP client and an MCP server, and show its tools perturbed."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Exit, Option

from crosswind.base import terminal
from crosswind.base.errors import CrosswindError
from crosswind.cli.help import App, epilog
from crosswind.cli.options import Perturb, ServerCommand, ServerUrl, Stack, names_in, read_stack

if TYPE_CHECKING:
    from crosswind.core.perturbation import Layers
    from crosswind.mcp.plan import Adapting, Plan

TOKEN = "CROSSWIND_PROXY_TOKEN"
IDLE = 1800.0  # seconds without a request that end a session
app = App()


@app.command(
    epilog=epilog(
        "crosswind proxy --perturb semantic_rename --log runs/live -- uvx mcp-server-time",
        "crosswind proxy --recipe mixed --seed 7 -- npx -y @modelcontextprotocol/server-filesystem /srv/data",
        "crosswind proxy --stream evolving --log runs/live -- uvx mcp-server-time",
        "crosswind proxy --adapt --memory memory.json -- uvx mcp-server-time",
        "crosswind proxy --recipe mild --http 8765 --url https://tools.example.org/mcp",
        exits={
            0: "the client ended the session",
            3: "the server could not be started, or failed",
            "128 + N": "ended by signal N",
        },
    )
)
def proxy(
    command: ServerCommand = None,
    recipe: Annotated[str, Option(show_default="change nothing", help="Recipe name or YAML file.")] = "",
    perturb: Perturb = [],  # noqa: B006
    stack: Stack = None,
    stream: Annotated[
        str,
        Option(
            metavar="NAME|FILE",
            show_default="the same perturbations in every session",
            help="Stream whose interface version changes between sessions; needs --log.",
        ),
    ] = "",
    changelog: Annotated[
        str,
        Option(
            metavar="hidden|shown|wrong",
            show_default="the stream's",
            help="Whether the server's instructions contain release notes, and whether they are right.",
        ),
    ] = "",
    seed: Annotated[int, Option(min=0, help="Random seed; the same seed gives the same perturbations.")] = 0,
    log: Annotated[
        Path | None, Option(metavar="DIR", help="Record the sessions in this folder, in the format of a run.")
    ] = None,
    adapt: Annotated[
        bool, Option("--adapt", help="Repair the client's calls and results, like the agent wrapper adaptive:SPEC.")
    ] = False,
    memory: Annotated[
        Path | None,
        Option(metavar="FILE", help="With --adapt: the interface that the client knows, from `adapt learn`."),
    ] = None,
    parts: Annotated[
        list[str], Option(metavar="PART,...", help="With --adapt: use only these parts of the wrapper.")
    ] = [],  # noqa: B006
    url: ServerUrl = "",
    http: Annotated[
        int | None,
        Option(metavar="PORT", min=0, max=65535, help="Serve HTTP on 127.0.0.1 instead of stdio; 0: any free port."),
    ] = None,
    timeout: Annotated[float, Option(min=0.1, help="Time limit for one call to the server.")] = 300.0,
    idle: Annotated[
        float | None,
        Option(
            min=1.0, show_default="1800", help="With --http: end a session after this many seconds without a request."
        ),
    ] = None,
    kinds: Annotated[
        bool, Option("--kinds", help="List the perturbations that work on a live server, and exit.")
    ] = False,
) -> None:
    """Perturb a real MCP server.

    The proxy sits between client and server: it shows perturbed tools and translates calls back. Put it before the
    server's command in your client's configuration. Everything except tools passes through unchanged. Perturbations
    that need a known task cannot be used; --kinds lists those that can. With --adapt, the proxy also repairs the calls
    of a client that was built for an earlier version of the server. With --http, clients must send the token in
    CROSSWIND_PROXY_TOKEN; if it is not set, a token is generated and printed.
    """
    import asyncio

    from crosswind.base.extras import extra
    from crosswind.mcp import proxy as proxies

    if kinds:
        _kinds()
        return
    if bool(command) is bool(url):
        raise CrosswindError("give --url, or the server's command after --")
    if url and not url.startswith(("http://", "https://")):
        raise CrosswindError(f"--url is {url!r}; expected an address that begins with http:// or https://")
    if idle is not None and http is None:
        raise CrosswindError("--idle ends sessions over HTTP; give --http PORT as well, or leave --idle out")
    if stream:
        plan = _streamed(stream, changelog, log, seed, timeout, alone=not (recipe or perturb or stack))
    elif changelog:
        raise CrosswindError("--changelog is for streams; give --stream as well")
    else:
        plan = _plan(recipe, perturb, stack, seed, timeout)
    plan = replace(plan, adapt=_adapting(adapt, memory, names_in("--parts", parts)))
    target: list[str] | str = url or command or []
    journal = proxies.Journal(log, proxies.Discretion(target), plan) if log is not None else None
    if journal is not None:
        journal.check()
    if http is None:
        code = asyncio.run(proxies.serve_pipes(target, plan, journal))
    else:
        with extra("http", "--http"):
            from crosswind.mcp import proxy_http

        token = os.environ.get(TOKEN, "")
        code = asyncio.run(proxy_http.serve_http(target, plan, journal, port=http, token=token, idle=idle or IDLE))
    raise Exit(code)


def _plan(recipe: str, perturb: list[str], stack: Path | None, seed: int, timeout: float) -> Plan:
    """What is applied to the server; kinds that need a task are refused."""
    from crosswind.episodes.recipe import load_recipe, named
    from crosswind.mcp import live
    from crosswind.mcp.plan import Plan

    if bool(recipe) + bool(perturb) + (stack is not None) > 1:
        raise CrosswindError("give one of --recipe, --perturb and --stack")
    if stack is not None:
        return Plan(stack=_stack(stack), seed=seed, timeout=timeout)
    if not recipe and not perturb:
        return Plan(seed=seed, timeout=timeout)
    wanted = load_recipe(recipe) if recipe else named(perturb)
    return Plan(recipe=live.without_tasks(wanted), seed=seed, timeout=timeout)


def _streamed(name: str, changelog: str, log: Path | None, seed: int, timeout: float, *, alone: bool) -> Plan:
    """Releases that change from session to session."""
    from crosswind.episodes.stream import load_plan, with_changes
    from crosswind.mcp import streaming
    from crosswind.mcp.plan import Plan

    if not alone:
        raise CrosswindError("give one of --stream, --recipe, --perturb and --stack")
    if log is None:
        raise CrosswindError("--stream needs --log DIR: the sessions recorded there say which release comes next")
    chosen = streaming.without_tasks(load_plan(name))
    if changelog:
        chosen = with_changes(chosen, {"changelog": changelog})
    return Plan(stream=streaming.LiveStream(chosen, log, seed), seed=seed, timeout=timeout)


def _adapting(adapt: bool, memory: Path | None, parts: list[str]) -> Adapting | None:
    """What the proxy repairs."""
    from crosswind.mcp.plan import Adapting
    from crosswind.models.interface import read_interface
    from crosswind.models.wrapping import PARTS

    if not adapt:
        if memory is not None or parts:
            raise CrosswindError("--memory and --parts need --adapt")
        return None
    if unknown := [part for part in parts if part not in PARTS]:
        raise CrosswindError(f"--parts: no part {unknown[0]!r}; the parts are {', '.join(PARTS)}")
    known = read_interface(str(memory)).dump() if memory is not None else None
    return Adapting(frozenset(parts or PARTS), known)


def _stack(path: Path) -> Layers:
    from crosswind.core.laws import stackable
    from crosswind.mcp import live

    layers = read_stack(path)
    if bad := [layer.kind for layer in layers if live.needs_task(layer.kind)]:
        apply = ", ".join(live.applicable())
        raise CrosswindError(
            f"{path}: {', '.join(bad)} cannot be used on a live server, which has no task. These can: {apply}"
        )
    stackable(layers)
    return layers


def _kinds() -> None:
    from crosswind.core.registry import perturbations
    from crosswind.mcp import live

    found = ((kind, live.needs_task(kind)) for kind in perturbations.names())
    rows = ([kind, "no" if why else "yes", terminal.safe(why or perturbations[kind].way)] for kind, why in found)
    terminal.print_table(["kind", "applies", "what the agent must do, or why not"], rows)
