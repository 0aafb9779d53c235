"""`proxy`: stand between an MCP client and an MCP server, and show its tools perturbed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Exit, Option

from crosswind.base import terminal
from crosswind.base.errors import CrosswindError
from crosswind.cli.help import App, epilog
from crosswind.cli.options import Perturb, ServerCommand, ServerUrl, Stack, read_stack

if TYPE_CHECKING:
    from crosswind.core.perturbation import Layers
    from crosswind.mcp.relay import Plan

TOKEN = "CROSSWIND_PROXY_TOKEN"
app = App()


@app.command()
def proxy(
    command: ServerCommand = None,
    recipe: Annotated[str, Option(help="A recipe by name, or a YAML file; without one nothing is changed.")] = "",
    perturb: Perturb = [],  # noqa: B006
    stack: Stack = None,
    seed: Annotated[int, Option(min=0, help="Equal seeds lay the same over the same server.")] = 0,
    log: Annotated[Path | None, Option(metavar="DIR", help="Where sessions are recorded, as a run.")] = None,
    url: ServerUrl = "",
    http: Annotated[
        int | None, Option(metavar="PORT", min=0, max=65535, help="Listen on 127.0.0.1 instead of on pipes; 0: any.")
    ] = None,
    timeout: Annotated[float, Option(min=0.1, help="Seconds that the server has for one call.")] = 300.0,
    idle: Annotated[
        float, Option(min=1.0, help="With --http: seconds after which a session that nobody uses ends.")
    ] = 1800.0,
    kinds: Annotated[bool, Option("--kinds", help="List the kinds that apply to a live server, and end.")] = False,
) -> None:
    """Stand between an MCP client and an MCP server: tools are shown perturbed, calls translated back.

    Put it before the command of the server in your client's configuration. Everything that is not a tool passes
    untouched. Kinds that need a task are refused. With --http the token that clients must send is taken from
    CROSSWIND_PROXY_TOKEN, or made up and printed.

    Exit codes: 0 the client ended the session, 2 a mistake in the command, 3 the server could not be started or
    failed, 128 + n ended by signal n.

    Examples:

      crosswind proxy --perturb semantic_rename --log runs/live -- uvx mcp-server-time

      crosswind proxy --recipe mixed --seed 7 -- npx -y @modelcontextprotocol/server-filesystem /srv/data

      crosswind proxy --recipe mild --http 8765 --url https://tools.example.org/mcp
    """
    import asyncio

    from crosswind.base.extras import extra
    from crosswind.mcp import proxy as proxies

    if kinds:
        _kinds()
        return
    if bool(command) is bool(url):
        raise CrosswindError("give the server's command after --, or --url, and not both")
    if url and not url.startswith(("http://", "https://")):
        raise CrosswindError(f"--url is {url!r}; expected an address that begins with http:// or https://")
    plan = _plan(recipe, perturb, stack, seed, timeout)
    target: list[str] | str = url or command or []
    words = url or " ".join(command or [])
    journal = proxies.Journal(log, words, plan) if log is not None else None
    if journal is not None:
        journal.check()
    if http is None:
        code = asyncio.run(proxies.serve_pipes(target, plan, journal))
    else:
        with extra("http", "--http"):
            from crosswind.mcp import proxy_http

        token = os.environ.get(TOKEN, "")
        code = asyncio.run(proxy_http.serve_http(target, plan, journal, port=http, token=token, idle=idle))
    raise Exit(code)


def _plan(recipe: str, perturb: list[str], stack: Path | None, seed: int, timeout: float) -> Plan:
    """What is laid over the server; kinds that need a task are refused."""
    from crosswind.episodes.recipe import load_recipe, named
    from crosswind.mcp import live
    from crosswind.mcp.relay import Plan

    if bool(recipe) + bool(perturb) + (stack is not None) > 1:
        raise CrosswindError("give one of --recipe, --perturb and --stack")
    if stack is not None:
        return Plan(stack=_stack(stack), seed=seed, timeout=timeout)
    if not recipe and not perturb:
        return Plan(seed=seed, timeout=timeout)
    wanted = load_recipe(recipe) if recipe else named(perturb)
    return Plan(recipe=live.without_tasks(wanted), seed=seed, timeout=timeout)


def _stack(path: Path) -> Layers:
    from crosswind.core.laws import stackable
    from crosswind.mcp import live

    layers = read_stack(path)
    if bad := [layer.kind for layer in layers if live.needs_task(layer.kind)]:
        apply = ", ".join(live.applicable())
        raise CrosswindError(f"{path}: {', '.join(bad)} need a task, and a live server has none; these apply: {apply}")
    stackable(layers)
    return layers


def _kinds() -> None:
    from crosswind.core.registry import perturbations
    from crosswind.mcp import live

    found = ((kind, live.needs_task(kind)) for kind in perturbations.names())
    rows = ([kind, "no" if why else "yes", terminal.safe(why or perturbations[kind].way)] for kind, why in found)
    terminal.print_table(["kind", "applies", "what the agent must do, or why not"], rows)
