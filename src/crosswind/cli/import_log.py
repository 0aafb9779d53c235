"""`crosswind import`: make runs of the logs of other frameworks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from crosswind.base import terminal
from crosswind.cli.help import App, epilog
from crosswind.cli.options import Json

app = App()

EPILOG = epilog(
    "inspect eval crosswind/quick --model openai/gpt-5-mini",
    "crosswind import logs/2026-11-18_crosswind-quick.eval --out runs/inspect",
    "crosswind report runs/inspect",
)


@app.command("import", epilog=EPILOG)
def import_log(
    log: Annotated[Path, Argument(help="An Inspect log (.eval or .json) of a crosswind task.")],
    out: Annotated[Path, Option(help="Folder for the run; it must be new.")],
    json_: Json = False,
) -> None:
    """Turn an Inspect log of a crosswind task into a run, for report, gate, compare and diagnose."""
    from crosswind.frameworks.inspect_logs import import_log as take_over

    found = take_over(log, out)
    if json_:
        terminal.print_json({"folder": str(found.folder), "episodes": found.episodes, "without_episode": found.without})
        return
    left = f" {found.without} samples without an episode are left out." if found.without else ""
    terminal.console().print(f"{found.episodes} episodes are in {found.folder}.{left}")
