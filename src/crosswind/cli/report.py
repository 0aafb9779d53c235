"""`report`, `compare` and `show`: what finished runs say."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from crosswind.base import terminal
from crosswind.base.errors import CrosswindError, UnknownName
from crosswind.cli.help import App, epilog
from crosswind.cli.options import Json, Markdown, RunFolder, names_in, one_form, warn_of_damage, write_page
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
    episodes: Annotated[int, Option(min=0, max=2000, help="Episodes included on the page.")] = 48,
    baselines: Annotated[
        int | None,
        Option(
            show_default="150; 0 for tasks on an MCP server",
            min=0,
            help="Shifted episodes that scripted agents play for comparison.",
        ),
    ] = None,
) -> None:
    """Write the results of a run as one self-contained HTML page.

    The page has a verdict, drops by tier, axis, perturbation, severity and task type with intervals, causes of failure,
    costs, scripted agents for comparison, and episodes to open. Episodes of the scripted agents are stored with the run
    (baselines.jsonl) and reused. An unfinished run is reported as far as it got; unreadable lines are listed and
    skipped. With --json or --markdown, a page is written only if -o names one.
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
        write_page(out or folder / "report.html", html.page(said))
    if json_:
        terminal.print_json(said.as_json())
    elif markdown:
        print(md.report(said), end="")
    else:
        for told in filter(None, (said.verdict, said.details)):
            print(wrapped(told))
        for note in (*said.run.problems, *said.unplayed):
            print(wrapped(f"note: {note}"))
        print(f"wrote {terminal.safe(str(out or folder / 'report.html'))}")


@app.command(
    epilog=epilog("crosswind compare runs/before runs/after", "crosswind compare runs/a runs/b runs/c --markdown")
)
def compare(
    folders: Annotated[list[Path], Argument(metavar="DIR", help="Two or more runs; each is compared with the first.")],
    out: Annotated[Path, Option("-o", "--out", metavar="FILE", help="Page to write.")] = Path("compare.html"),
    json_: Json = False,
    markdown: Markdown = False,
    episodes: Annotated[int, Option(min=0, max=2000, help="Episodes included on the page.")] = 24,
    partial: Annotated[
        bool, Option("--partial", help="Compare runs that share less than half of their episodes.")
    ] = False,
) -> None:
    """Compare runs over the episodes they share.

    The result says which run is better, by how much and where, and lists episodes that one passed and the other failed.
    With three or more runs, it also gives the rank correlation of clean score and robustness.
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


@app.command(epilog=epilog("crosswind show runs/mine --outcome fail", "crosswind show runs/mine 17"))
def show(
    folder: RunFolder,
    episode: Annotated[str, Argument(show_default="list all", help="Number in the list, or (part of) a key.")] = "",
    outcome: Annotated[
        str, Option(metavar="pass|fail|error|unjudged", help="List only episodes with this outcome.")
    ] = "",
    condition: Annotated[str, Option(metavar="TEXT", help="List only conditions whose name contains this.")] = "",
    kind: Annotated[list[str], Option(metavar="KIND,...", help="List only episodes with these kinds.")] = [],  # noqa: B006
    cause: Annotated[list[str], Option(metavar="CAUSE,...", help="List only failures with these causes.")] = [],  # noqa: B006
    limit: Annotated[int, Option(min=1, help="Maximum number of lines in the list.")] = 40,
    json_: Json = False,
) -> None:
    """List the episodes of a run, or show one step by step.

    Each step is shown as the agent saw it and as the world saw it, followed by the certified solution. Marks show where
    the agent met each obstacle and where it went wrong.
    """
    from crosswind.core.registry import did_you_mean
    from crosswind.episodes.suite import known_name
    from crosswind.metrics.diagnosis import CAUSES
    from crosswind.report import show as shown
    from crosswind.runs.store import open_run

    if episode:
        _show_one(folder, episode, json_)
        return
    if outcome not in ("", "pass", "fail", "error", "unjudged"):
        raise CrosswindError(f"--outcome is {outcome!r}; expected pass, fail, error or unjudged")
    causes = [known_name("cause", name, CAUSES) for name in names_in("--cause", cause)]
    run = open_run(folder, damaged=True)
    warn_of_damage(run)
    there = dict.fromkeys(kind for one in run.told for kind in one.kinds)
    kinds = {known_name("kind", name, there, f" in {folder}") for name in names_in("--kind", kind)}
    conditions = list(dict.fromkeys(one.condition for one in run.told))
    if condition and not any(condition in name for name in conditions):
        raise UnknownName(f"no condition of {folder} contains {condition!r}; {did_you_mean(condition, conditions)}")
    chosen = [
        (n, r)
        for n, r in shown.numbered(run.told)
        if outcome in ("", r.outcome)
        and condition in r.condition
        and (not kinds or kinds.intersection(r.kinds))
        and (not causes or r.cause in causes)
    ]
    if json_:
        fields = ("key", "task_id", "condition", "outcome", "ended", "stage", "cause")
        terminal.print_json([{"number": n, **{name: getattr(r, name) for name in fields}} for n, r in chosen])
    else:
        shown.listing(terminal.console(), run, chosen, limit)
        for problem in run.problems:
            print(f"note: {terminal.safe(problem)}")


def _show_one(folder: Path, wanted: str, json_: bool) -> None:
    """Show one episode; by its number or its whole key nothing else of the run is parsed."""
    from crosswind.report import show as shown
    from crosswind.runs.reading import read
    from crosswind.runs.store import line_of, load_manifest, open_run, read_records

    load_manifest(folder)
    number = int(wanted) if wanted.isascii() and wanted.isdigit() and len(wanted) < 19 else 0
    if not number and "|" in wanted:
        at = line_of(folder, wanted)
        number = 0 if at is None else at + 1
    record = next(read_records(folder, [number - 1]), None) if number else None
    if record is None or ("|" in wanted and record.key != wanted):
        run = open_run(folder, damaged=True)
        warn_of_damage(run)
        number, found = shown.pick(run.told, wanted)
        (record,) = run.whole([found])
    if json_:
        terminal.print_json(record.model_dump(mode="json"))
    else:
        shown.episode(terminal.console(), read(record), number)
