"""`crosswind compare`: runs over the episodes that they share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from crosswind.base import terminal
from crosswind.base.errors import CrosswindError
from crosswind.cli.help import App, epilog
from crosswind.cli.options import Json, Markdown, one_form, warn_of_damage, write_page
from crosswind.cli.progress import Display

app = App()


@app.command(
    epilog=epilog("crosswind compare runs/before runs/after", "crosswind compare runs/a runs/b runs/c --markdown")
)
def compare(
    folders: Annotated[list[Path], Argument(metavar="DIR", help="Two or more runs; each is compared with the first.")],
    out: Annotated[Path, Option("-o", "--out", metavar="FILE", help="Page to write.")] = Path("compare.html"),
    json_: Json = False,
    markdown: Markdown = False,
    episodes: Annotated[int, Option(min=0, max=2000, help="Number of episodes to include on the page.")] = 24,
    partial: Annotated[
        bool, Option("--partial", help="Allow runs that share less than half of their episodes.")
    ] = False,
) -> None:
    """Compare runs over the episodes they share.

    The page says which run is better, by how much and where, and lists episodes that one passed and the other failed.
    With three or more runs, it also gives the rank correlation between clean score and robustness.
    """
    from crosswind.report import compare as pairs
    from crosswind.report.table import wrapped
    from crosswind.runs.comparison import compare as compare_runs
    from crosswind.runs.store import open_run

    one_form(json_, markdown)
    if len(folders) < 2:
        raise CrosswindError(f"{len(folders)} run given; `crosswind compare` takes two or more folders")
    with Display("reading", quiet=json_ or markdown) as display:
        display.say(*map(str, folders))
        runs = [open_run(folder, damaged=True) for folder in folders]
        said = compare_runs(runs, opened=episodes, partial=partial)
    warn_of_damage(*runs)
    if json_:
        terminal.print_json(pairs.as_json(said))
    elif markdown:
        print(pairs.markdown(said), end="")
    else:
        write_page(out, pairs.page(said))
        for told in filter(None, (pairs.verdict(said), pairs.details(said))):
            print(wrapped(told))
        for note in pairs.notes(said):
            print(wrapped(f"note: {note}"))
        print(f"wrote {terminal.safe(str(out))}")
