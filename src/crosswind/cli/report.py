"""`report`, `compare` and `show`: what finished runs say."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from crosswind.base import terminal
from crosswind.base.errors import CrosswindError
from crosswind.cli.help import App, epilog
from crosswind.cli.options import Json, RunFolder
from crosswind.cli.progress import Display

Markdown = Annotated[bool, Option("--markdown", help="Print Markdown and nothing else.")]
app = App()


@app.command()
def report(
    folder: RunFolder,
    out: Annotated[Path | None, Option("-o", "--out", help="The page to write; by default DIR/report.html.")] = None,
    json_: Json = False,
    markdown: Markdown = False,
    episodes: Annotated[int, Option(min=0, max=2000, help="Episodes to open on the page.")] = 48,
    baselines: Annotated[
        int | None,
        Option(
            show_default=False,
            min=0,
            help="Shifted episodes to play scripted agents on, for scale; 0: none. 150 unless given, and none where "
            "that starts an MCP server.",
        ),
    ] = None,
) -> None:
    """Write what a run shows as one HTML page that needs nothing else; or print it as JSON or Markdown.

    The verdict in a sentence, changes by tier, axis, perturbation, severity and kind of task with their intervals,
    causes of failure, costs, scripted agents for scale, and episodes to open. What the scripted agents played is stored
    with the run (baselines.jsonl) and used again. An unfinished run is reported as far as
    it came, and lines that cannot be read are named and left out. With --json or --markdown a page is written only
    where -o names one.

    Examples:

      crosswind report runs/mine

      crosswind report runs/mine -o mine.html --episodes 100

      crosswind report runs/mine --markdown >> "$GITHUB_STEP_SUMMARY"
    """
    from crosswind.report import html
    from crosswind.report import markdown as md
    from crosswind.report.content import content
    from crosswind.runs.analysis import analyse
    from crosswind.runs.store import load_run

    _one_form(json_, markdown)
    quiet = json_ or markdown
    page_wanted = out is not None or not quiet
    with Display("reading", quiet=quiet) as display:
        display.say(str(folder))
        run = load_run(folder, damaged=True)
        found = analyse(run, baselines=baselines, opened=episodes if page_wanted else 0)
        said = content(found)
    if found.baselines.unsaved:
        told = f"warning: {found.baselines.unsaved}; the baselines are in this report and are not stored with the run"
        print(terminal.safe(told), file=sys.stderr)
    if page_wanted:
        _write(out or folder / "report.html", html.page(said))
    if json_:
        terminal.print_json(said.as_json())
    elif markdown:
        print(md.report(said), end="")
    else:
        print(terminal.safe(said.verdict))
        for note in (*said.run.problems, *said.unplayed):
            print(f"note: {terminal.safe(note)}")
        print(f"wrote {terminal.safe(str(out or folder / 'report.html'))}")


@app.command()
def compare(
    folders: Annotated[list[Path], Argument(help="Two or more folders of runs; the first is compared with.")],
    out: Annotated[Path, Option("-o", "--out", help="The page to write.")] = Path("compare.html"),
    json_: Json = False,
    markdown: Markdown = False,
    episodes: Annotated[int, Option(min=0, max=2000, help="Episodes to open on the page.")] = 24,
) -> None:
    """Compare runs over the episodes that they share, pair by pair.

    Which is better, by how much, where, and in which episodes one passed and the other failed. With three runs or
    more, each is compared with the first, and the rank correlation of clean score and robustness is given.

    Examples:

      crosswind compare runs/before runs/after

      crosswind compare runs/a runs/b runs/c --markdown
    """
    from crosswind.report import compare as pairs
    from crosswind.runs.comparison import compare as compare_runs
    from crosswind.runs.store import load_run

    _one_form(json_, markdown)
    if len(folders) < 2:
        raise CrosswindError(f"{len(folders)} run given; `crosswind compare` takes two or more folders")
    with Display("reading", quiet=json_ or markdown) as display:
        display.say(*map(str, folders))
        said = compare_runs([load_run(folder, damaged=True) for folder in folders], opened=episodes)
    if json_:
        terminal.print_json(pairs.as_json(said))
    elif markdown:
        print(pairs.markdown(said), end="")
    else:
        _write(out, pairs.page(said))
        print(terminal.safe(pairs.verdict(said)))
        for note in pairs.notes(said):
            print(f"note: {terminal.safe(note)}")
        print(f"wrote {terminal.safe(str(out))}")


@app.command()
def show(
    folder: RunFolder,
    episode: Annotated[str, Argument(help="A number from the list, a key, or a part of one.")] = "",
    outcome: Annotated[str, Option(help="List only these: pass, fail, error or unjudged.")] = "",
    condition: Annotated[str, Option(help="List only conditions that have this in their name.")] = "",
    cause: Annotated[str, Option(help="List only failures with this in their cause.")] = "",
    limit: Annotated[int, Option(min=1, help="Lines of the list.")] = 40,
    json_: Json = False,
) -> None:
    """List the episodes of a run, or show one: what the agent saw, what the world saw, and the certified way.

    The step at which things went wrong is marked, and so is where each obstacle was met.

    Examples:

      crosswind show runs/mine --outcome fail

      crosswind show runs/mine 17
    """
    from crosswind.report import show as shown
    from crosswind.runs.reading import read
    from crosswind.runs.store import load_run

    if outcome not in ("", "pass", "fail", "error", "unjudged"):
        raise CrosswindError(f"--outcome is {outcome!r}; expected pass, fail, error or unjudged")
    run = load_run(folder, damaged=True)
    if episode:
        number, record = shown.pick(run.records, episode)
        if json_:
            terminal.print_json(record.model_dump(mode="json"))
        else:
            shown.episode(terminal.console(), read(record), number)
        return
    chosen = [
        (n, r)
        for n, r in enumerate(run.records, 1)
        if outcome in ("", r.outcome)
        and condition in r.condition
        and cause.replace(" ", "_") in (r.cause or "").replace(" ", "_")
    ]
    if json_:
        fields = {"key", "task_id", "condition", "outcome", "ended", "stage", "cause"}
        terminal.print_json([{"number": n, **r.model_dump(mode="json", include=fields)} for n, r in chosen])
    else:
        shown.listing(terminal.console(), run, chosen, limit)
        for problem in run.problems:
            print(f"note: {terminal.safe(problem)}")


def _one_form(json_: bool, markdown: bool) -> None:
    if json_ and markdown:
        raise CrosswindError("--json and --markdown both say what to print; give one of them")


def _write(path: Path, page: str) -> None:
    """Put a page in place, whole or not at all."""
    from crosswind.base.files import replace_file

    try:
        replace_file(path, page.encode())
    except OSError as error:
        raise CrosswindError(f"{path}: cannot be written ({error.strerror}); choose another file with -o") from None
