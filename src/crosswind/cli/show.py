"""`crosswind show`: the episodes of a run, and one step by step."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from crosswind.base import terminal
from crosswind.base.errors import CrosswindError, UnknownName
from crosswind.cli.help import App, epilog
from crosswind.cli.options import Json, RunFolder, names_in, warn_of_damage

app = App()


@app.command(epilog=epilog("crosswind show runs/mine --outcome fail", "crosswind show runs/mine 17"))
def show(
    folder: RunFolder,
    episode: Annotated[
        str, Argument(show_default="list all", help="Number in the list, or a key or part of one.")
    ] = "",
    outcome: Annotated[
        str, Option(metavar="pass|fail|error|unjudged", help="List only episodes with this outcome.")
    ] = "",
    condition: Annotated[
        str, Option(metavar="TEXT", help="List only episodes whose condition contains this text.")
    ] = "",
    kind: Annotated[list[str], Option(metavar="KIND,...", help="List only episodes with these kinds.")] = [],  # noqa: B006
    cause: Annotated[list[str], Option(metavar="CAUSE,...", help="List only failures with these causes.")] = [],  # noqa: B006
    limit: Annotated[int, Option(min=1, help="Maximum number of lines in the list.")] = 40,
    json_: Json = False,
) -> None:
    """List the episodes of a run, or show one step by step.

    Each step is shown twice: as the agent saw it, and as it reached the simulated world. The certified solution
    follows. Marks show where the agent met a perturbation and where it went wrong.
    """
    if episode:
        _show_one(folder, episode, json_)
        return

    from crosswind.core.registry import did_you_mean
    from crosswind.episodes.suite import known_name
    from crosswind.metrics.diagnosis import CAUSES
    from crosswind.report import show as shown
    from crosswind.runs.store import open_run

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
