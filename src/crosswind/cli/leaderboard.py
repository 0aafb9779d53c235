"""`leaderboard`: many runs of one suite in one table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from crosswind.base import terminal
from crosswind.cli.help import App, epilog
from crosswind.cli.options import Json, Markdown, one_form, warn, write_page
from crosswind.cli.progress import Display

app = App()


@app.command(
    epilog=epilog(
        "crosswind leaderboard runs/a runs/b runs/c",
        "crosswind leaderboard runs/* -o leaderboard.html",
        "crosswind leaderboard runs/* --markdown",
    )
)
def leaderboard(
    folders: Annotated[list[Path], Argument(metavar="DIR...", help="Runs of the same suite.")],
    out: Annotated[
        Path | None, Option("-o", "--out", metavar="FILE", show_default="no page", help="Page to write.")
    ] = None,
    json_: Json = False,
    markdown: Markdown = False,
) -> None:
    """Rank runs of one suite by score; show clean and shifted success, the change and refusals, with intervals.

    Runs are ranked by success on solvable shifted episodes. Scripted agents are listed for reference. Runs with
    different suites, verifiers or endings cannot be ranked together. The page can be sorted by any column.
    """
    from crosswind.report import leaderboard as board
    from crosswind.report.table import as_text
    from crosswind.runs.ranking import leaderboard as rank

    one_form(json_, markdown)
    with Display("reading", quiet=json_ or markdown) as display:
        display.say(f"{len(folders)} runs")
        said = rank(folders)
    for one in said.entries:
        warn(one.damage, one.folder)
    if out:
        write_page(out, board.page(said))
    if json_:
        terminal.print_json(board.as_json(said))
    elif markdown:
        print(board.markdown(said), end="")
    else:
        print(as_text(board.HEADS, board.rows(said)), end="")
        print(terminal.safe(board.sentence(said)))
        for note in said.notes:
            print(f"note: {terminal.safe(note)}")
        if out:
            print(f"wrote {terminal.safe(str(out))}")
