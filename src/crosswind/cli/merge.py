"""`crosswind merge`: put the shards of a run together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from crosswind.base import terminal
from crosswind.cli.help import App, epilog
from crosswind.cli.options import Json

app = App()

EPILOG = epilog(
    "crosswind run tiers --agent openai:gpt-5-mini --shard 1/2 --out runs/a",
    "crosswind run tiers --agent openai:gpt-5-mini --shard 2/2 --out runs/b",
    "crosswind merge runs/a runs/b --out runs/mini",
    notes="The shards may be played on different machines.",
)


@app.command(epilog=EPILOG)
def merge(
    folders: Annotated[list[Path], Argument(help="The folders of all shards of one run.")],
    out: Annotated[Path, Option(help="Folder for the whole run; it must be new.")],
    json_: Json = False,
) -> None:
    """Merge the shards of a run into one folder. All shards must be there, finished, and of the same configuration."""
    from crosswind.runs.merge import merge as put_together

    found = put_together(folders, out)
    if json_:
        terminal.print_json({"folder": str(found.folder), "shards": found.shards, "episodes": found.episodes})
    else:
        terminal.console().print(f"merged {found.episodes} episodes of {found.shards} shards into {found.folder}")
