"""`crosswind export`: a run for another viewer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from typer import Option

from crosswind.cli.help import App, epilog
from crosswind.cli.options import RunFolder, warn

app = App()

EXPORT_EPILOG = epilog(
    "crosswind export runs/first --format inspect -o first.eval",
    "crosswind export runs/first --format atif -o first.jsonl",
    "crosswind export runs/first --format atif -o trajectories",
    "crosswind export runs/first --format parquet -o first.parquet",
    notes="View an Inspect log with `inspect view --log-dir .`. ATIF writes one trajectory per line to a .jsonl file, "
    "or one file per episode to a folder.",
)


@app.command(epilog=EXPORT_EPILOG)
def export(
    folder: RunFolder,
    format_: Annotated[
        Literal["inspect", "atif", "parquet"],
        Option("--format", help="inspect: a log for Inspect AI; atif: Harbor trajectories; parquet: a table."),
    ],
    out: Annotated[
        Path | None,
        Option(
            *("--out", "-o"),
            metavar="PATH",
            help="File to write (.eval, .parquet; .json or .jsonl for ATIF), or a folder for ATIF.",
        ),
    ] = None,
    episode: Annotated[str | None, Option(metavar="KEY", help="Only this episode (see `crosswind show DIR`).")] = None,
) -> None:
    """Convert a run for another viewer."""
    from crosswind.export.write import export as write
    from crosswind.runs.lines import left_out

    damaged: list[str] = []
    path, count = write(folder, format_, out, episode=episode, damaged=damaged)
    warn(left_out(folder, damaged, count), folder)
    print(f"wrote {count} {'episode' if count == 1 else 'episodes'} to {path}")
