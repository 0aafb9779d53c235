"""`crosswind rescore`: judge the episodes of a stored run again."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from typer import Option

from crosswind.base import terminal
from crosswind.cli.help import App, epilog
from crosswind.cli.options import Json, RunFolder
from crosswind.cli.progress import Display

app = App()


@app.command(epilog=epilog("crosswind rescore runs/mini", "crosswind rescore runs/mini --write"))
def rescore(
    folder: RunFolder,
    write: Annotated[bool, Option("--write", help="Store the new verdicts; the old file is kept as a backup.")] = False,
    json_: Json = False,
) -> None:
    """Judge the stored episodes of a run again with the current verifier, and list what changed."""
    from crosswind.runs.rescore import rescore as judge_again

    with Display("judging", quiet=json_) as display:
        found = judge_again(folder, write=write, tell=display.say)
    if json_:
        terminal.print_json(
            {
                "folder": str(folder),
                "episodes": found.episodes,
                "judged_by": found.judges,
                "judge": found.judge,
                "changed": [asdict(one) for one in found.changed],
                "backup": found.backup,
            }
        )
        return
    console = terminal.console()
    before = ", ".join(f"{n} by version {judge or 'unknown'}" for judge, n in found.judges.items())
    console.print(f"{found.episodes} episodes were judged: {before or 'none'}; now by version {found.judge}.")
    if found.changed:
        rows = (
            [str(len(some)), *sort, terminal.short(some[0].key, 60), terminal.short(some[0].why, 120)]
            for sort, some in found.sorts().items()
        )
        heads = ["episodes", "sort", "was", "now", "checks that changed", "for example", "why"]
        terminal.print_table(heads, rows)
    console.print(f"{len(found.changed)} verdicts changed.")
    if found.backup:
        console.print(f"Written. The old file is kept as {found.backup}.")
    elif found.changed:
        console.print("Nothing was written; --write stores the new verdicts and keeps the old file as a backup.")
