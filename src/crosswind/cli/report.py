"""`crosswind report`: what a finished run says, as a page, Markdown or JSON."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from typer import Option

from crosswind.base import terminal
from crosswind.cli.help import App, epilog
from crosswind.cli.options import Json, Markdown, RunFolder, one_form, warn_of_damage, write_page
from crosswind.cli.progress import Display

app = App()


@app.command(
    epilog=epilog(
        "crosswind report runs/mine",
        "crosswind report runs/mine -o mine.html --episodes 100",
        'crosswind report runs/mine --markdown >> "$GITHUB_STEP_SUMMARY"',
    )
)
def report(
    folder: RunFolder,
    out: Annotated[
        Path | None, Option("-o", "--out", metavar="FILE", show_default="DIR/report.html", help="Page to write.")
    ] = None,
    json_: Json = False,
    markdown: Markdown = False,
    episodes: Annotated[int, Option(min=0, max=2000, help="Number of episodes to include on the page.")] = 48,
    baselines: Annotated[
        int | None,
        Option(
            show_default="150; 0 for tasks on an MCP server",
            min=0,
            help="Number of shifted episodes that the scripted agents play for comparison.",
        ),
    ] = None,
) -> None:
    """Write the results of a run as one self-contained HTML page.

    The page has a verdict; drops by tier, axis, perturbation, severity and task type, with intervals; causes of
    failure; costs; scripted agents for comparison; and episode transcripts. Episodes of the scripted agents are stored
    with the run (baselines.jsonl) and reused. The report of an unfinished run covers the episodes so far; unreadable
    lines are listed and skipped. With --json or --markdown, a page is written only if -o names one.
    """
    from crosswind.report import html
    from crosswind.report import markdown as md
    from crosswind.report.content import content
    from crosswind.report.table import wrapped
    from crosswind.runs.analysis import analyse
    from crosswind.runs.store import open_run

    one_form(json_, markdown)
    quiet = json_ or markdown
    page_wanted = out is not None or not quiet
    with Display("reading", quiet=quiet) as display:
        display.say(str(folder))
        run = open_run(folder, damaged=True)
        found = analyse(run, baselines=baselines, opened=episodes if page_wanted else 0)
        said = content(found)
    warn_of_damage(run)
    if found.baselines.unsaved:
        told = f"warning: {found.baselines.unsaved}; the baselines are in this report and are not stored with the run"
        print(terminal.safe(told), file=sys.stderr)
    if page_wanted:
        write_page(out or folder / "report.html", html.page(said), links=out is not None)
    if json_:
        terminal.print_json(said.as_json())
    elif markdown:
        print(md.report(said), end="")
    else:
        for told in filter(None, (said.verdict, said.details)):
            print(wrapped(told))
        for note in (*said.run.problems, *said.unplayed):
            if note != run.damage:  # which the warning said
                print(wrapped(f"note: {note}"))
        print(f"wrote {terminal.safe(str(out or folder / 'report.html'))}")
