"""`learn`: look at an MCP server, draft tasks for it, and see later whether its interface drifted."""

from __future__ import annotations

import fnmatch
import os
import re
import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Exit, Option

from crosswind.base import terminal
from crosswind.base.errors import CrosswindError
from crosswind.cli.exits import FAILED, STOPPED
from crosswind.cli.help import App, epilog
from crosswind.cli.options import Force, Json, ServerCommand, ServerUrl

if TYPE_CHECKING:
    from crosswind.mcp.drift import Drift
    from crosswind.mcp.running import Server
    from crosswind.mcp.snapshots import Snapshot

app = App()


@app.command(
    epilog=epilog(
        "crosswind learn -- uvx mcp-server-time",
        "crosswind learn --folder ./files -- npx -y @modelcontextprotocol/server-filesystem {folder}",
        "crosswind learn --check time_tasks.snapshot.json -- uvx mcp-server-time",
        "crosswind learn --check time_tasks.snapshot.json --ignore description --breaking -- uvx mcp-server-time",
        "crosswind learn --check time_tasks.snapshot.json --update -- uvx mcp-server-time",
        "crosswind learn --history time_tasks.snapshot.json",
        exits={0: "done, or nothing changed", FAILED: "the interface changed", STOPPED: "the server failed"},
    )
)
def learn(
    command: ServerCommand = None,
    url: ServerUrl = "",
    out: Annotated[
        Path | None, Option(metavar="FILE", show_default="NAME_tasks.yaml", help="File for the draft.")
    ] = None,
    name: Annotated[str, Option(show_default="the server's", help="Name of the domain.")] = "",
    folder: Annotated[
        Path | None, Option(metavar="DIR", help="Folder with files for the server; it works on a fresh copy.")
    ] = None,
    check: Annotated[
        Path | None, Option(metavar="SNAPSHOT", help="List changes since this snapshot; write nothing.")
    ] = None,
    update: Annotated[
        bool, Option("--update", help="With --check: also update the snapshot, and add the changes to its history.")
    ] = False,
    ignore: Annotated[
        list[str] | None,
        Option(
            metavar="TYPE[:NAME]",
            help="With --check: ignore changes of this type, or only those to NAME; * matches anything; repeatable.",
        ),
    ] = None,
    breaking: Annotated[
        bool, Option("--breaking", help="With --check: report only changes that may break a client.")
    ] = False,
    history: Annotated[
        Path | None, Option(metavar="SNAPSHOT", help="List what each update of this snapshot changed; start no server.")
    ] = None,
    timeout: Annotated[float, Option(min=0.1, help="Time limit for the server to start and list its tools.")] = 30.0,
    force: Force = False,
    json_: Json = False,
) -> None:
    """Draft tasks for your MCP server, and save a snapshot of its interface.

    The draft has one task for each tool, with placeholders to fill in. No tool is called. With
    --check, the server is compared with an earlier snapshot: tools, parameters, keys of results, hints, prompts,
    resources and instructions. Each change is marked as breaking or compatible for clients.

    The server runs in a fresh copy of --folder, or in an empty folder, so give absolute paths in its command. {folder}
    in the command is replaced by the path of that copy.
    """
    from crosswind.mcp.learn import look
    from crosswind.mcp.wire import WireError

    if history is not None:
        _tell_history(history, json_=json_)
        return
    if check is None and (update or ignore or breaking):
        raise CrosswindError("--update, --ignore and --breaking need --check SNAPSHOT")
    if bool(command) is bool(url):
        raise CrosswindError("give --url, or the server's command after --")
    server = _server(command or [], url, folder, timeout)
    was = None
    if check is not None:
        from crosswind.mcp.snapshots import read_snapshot

        was = read_snapshot(check)
        _known_sorts(ignore or [])
    try:
        found, _ = look(server, Path.cwd())
    except WireError as error:
        print(f"error: {terminal.safe(str(error))}", file=sys.stderr)
        raise Exit(STOPPED) from None
    if was is not None and check is not None:
        _compare(was, found, ignore or [], check if update else None, breaking=breaking, json_=json_)
    else:
        _write(found, server, name, out, force=force, json_=json_)


def _server(command: list[str], url: str, folder: Path | None, timeout: float) -> Server:
    from pydantic import ValidationError

    from crosswind.mcp.running import Server

    if folder is not None and not folder.is_dir():
        raise CrosswindError(f"--folder {folder}: folder not found")
    try:
        return Server(command=tuple(command), url=url, folder=str(folder or ""), start_timeout=timeout)
    except ValidationError as error:
        raise CrosswindError(str(error.errors()[0]["msg"]).removeprefix("Value error, ")) from None


def _known_sorts(rules: list[str]) -> None:
    """Refuse rules that could never apply."""
    from typing import get_args

    from crosswind.core.registry import did_you_mean
    from crosswind.mcp.drift import Sort

    for rule in rules:
        sort = rule.partition(":")[0]
        if not any(fnmatch.fnmatchcase(known, sort) for known in get_args(Sort)):
            known = list(get_args(Sort))
            raise CrosswindError(f"--ignore {rule}: there is no type of change {sort!r}; {did_you_mean(sort, known)}")


def _compare(
    was: Snapshot, found: Snapshot, ignore: list[str], update: Path | None, *, breaking: bool, json_: bool
) -> None:
    from crosswind.base.files import write_output
    from crosswind.mcp.snapshots import compared, updated

    every = compared(was, found)
    changes = [change for change in every if not change.ignored(ignore) and (change.breaking or not breaking)]
    if update is not None:
        anew = updated(was, found, every, date.today().isoformat())
        try:
            write_output(update, (anew.model_dump_json(indent=1) + "\n").encode())
        except OSError as error:
            raise CrosswindError(f"{update}: cannot be written ({error.strerror})") from None
    if json_:
        terminal.print_json(
            {
                "was": was.hash,
                "now": found.hash,
                "version": {"was": was.version, "now": found.version},
                "passed_over": len(every) - len(changes),
                "updated": update is not None,
                "drift": [change.model_dump(mode="json") for change in changes],
            }
        )
    else:
        console = terminal.console()
        for change in changes:
            console.print(terminal.safe(_line(change)))
        from crosswind.metrics.formats import many

        tools = many(len(found.tools), "tool")
        passed = f" ({len(every) - len(changes)} ignored)" if len(every) > len(changes) else ""
        broken = sum(change.breaking for change in changes)
        console.print(
            f"{many(len(changes), 'change')} in {tools}, {broken} of them breaking{passed}."
            if changes
            else f"No change in {tools}{passed}."
        )
        if update is not None:
            console.print(f"wrote {update}: a snapshot of the present interface")
    if changes and update is None:
        raise Exit(FAILED)


def _line(change: Drift) -> str:
    return f"{'BREAKING  ' if change.breaking else 'compatible'} {change.sort}: {change.words}"


def _tell_history(path: Path, *, json_: bool) -> None:
    """What changed at each update of a snapshot."""
    from crosswind.mcp.snapshots import read_snapshot

    found = read_snapshot(path)
    if json_:
        terminal.print_json([step.model_dump(mode="json") for step in found.history])
        return
    console = terminal.console()
    for step in found.history:
        console.print(terminal.safe(f"{step.date}, version {step.version or 'unknown'}:"))
        for change in step.drift:
            console.print(terminal.safe(f"  {_line(change)}"))
    if not found.history:
        console.print("No change is recorded: the snapshot was never updated, or nothing had changed.")


def _write(found: Snapshot, server: Server, name: str, out: Path | None, *, force: bool, json_: bool) -> None:
    from crosswind.mcp.learn import draft

    if not found.tools:
        raise CrosswindError("the server has no tools; there is nothing to draft")
    domain = name or _word(found.name or found.server)
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", domain):
        raise CrosswindError(f"--name {domain!r}: expected a short name in snake_case")
    path = out or Path(f"{domain}_tasks.yaml")
    taken = path.with_suffix(".snapshot.json")
    existing = [one for one in (path, taken) if one.exists()]
    if existing and not force:
        raise CrosswindError(f"{existing[0]} already exists; choose another --out, or pass --force to overwrite it")
    if server.folder:
        server = server.model_copy(update={"folder": os.path.relpath(server.folder, path.parent)})
    try:
        path.write_text(draft(found, server, domain, taken.name), encoding="utf-8")
        taken.write_text(found.model_dump_json(indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise CrosswindError(f"{error.filename}: cannot be written ({error.strerror})") from None
    if json_:
        terminal.print_json({"tasks": str(path), "snapshot": str(taken), "tools": len(found.tools), "hash": found.hash})
        return
    console = terminal.console()
    console.print(f"wrote {path}: a draft with {len(found.tools)} tasks; fill in the marked places")
    console.print(f"wrote {taken}: a snapshot of the interface; compare with it later by --check {taken}")


def _word(text: str) -> str:
    """A name for a domain out of what a server calls itself."""
    word = re.sub(r"[^a-z0-9]+", "_", text.lower().rsplit("/", 1)[-1]).strip("_")
    word = re.sub(r"^(?:mcp_(?:server_)?|server_)|_(?:mcp|server)$", "", word)[:40].strip("_")
    return word if word[:1].isalpha() else f"server_{word}"[:40].strip("_")
