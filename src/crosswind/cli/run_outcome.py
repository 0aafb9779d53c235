"""What `crosswind run` prints at the end."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from typer import Exit

from crosswind.base import terminal
from crosswind.cli.exits import BUG, STOPPED

if TYPE_CHECKING:
    from crosswind.metrics import Summary
    from crosswind.runs.runner import Ran


def conclude(ran: Ran, folder: Path, *, json_: bool) -> None:
    """What came out, and what to do next."""
    from crosswind.report.verdict import details, verdict

    progress = ran.progress
    found = scores(folder)
    if json_:
        terminal.print_json(
            {
                "folder": str(folder),
                "state": ran.manifest.state,
                "stopped": ran.stopped,
                "episodes": progress.before + progress.done,
                "played": progress.done,
                "left": ran.left,
                "errors": progress.errors,
                "trouble": progress.trouble,
                "never_played": ran.manifest.never_met,
                "exceptions": progress.exceptions,
                "raised": progress.raised,
                "scores": {name: {"n": c.n, "passed": c.passed} for name, c in progress.scores.items()},
                "verdict": verdict(found, ran.manifest.agent),
                "details": details(found),
                "drops": {
                    name: drop.model_dump(mode="json")
                    for name, drop in {**found.drops["tier"], **found.drops["all"]}.items()
                },
                **found.model_dump(mode="json", include={"clean", "shifted", "refusals", "score", "trivial"}),
                "usage": progress.spent.model_dump(mode="json"),
            }
        )
    else:
        _show(ran, found, folder)
    if ran.raising:
        raise Exit(BUG)
    if ran.broken:
        raise Exit(STOPPED)


def scores(folder: Path) -> Summary:
    """The figures of a run, by tier. Trivial agents are played on a sample of it."""
    from crosswind.metrics import summary
    from crosswind.runs.baselines import trivial_of
    from crosswind.runs.store import open_run

    run = open_run(folder)
    return summary(run.told, measures=False, by=("tier",), trivial=trivial_of(run))


def _show(ran: Ran, found: Summary, folder: Path) -> None:
    from crosswind.metrics import formats
    from crosswind.metrics.diagnosis import TIMED_OUT
    from crosswind.report.table import HEADS, TOTAL, legend, score_rows
    from crosswind.report.verdict import details, verdict
    from crosswind.runs.command import plugin_files, with_plugins

    console, progress = terminal.console(), ran.progress
    raising = bool(progress.exceptions) and progress.exceptions == progress.done and not progress.before
    table = terminal.table_of(*HEADS)
    rows = score_rows(found)
    for row in rows:
        table.add_row(*row, style="bold" if row[0] == TOTAL else "")
    if rows and not raising:
        console.print(terminal.fitted(table))
    if found.drop and not raising:
        console.print(legend(found))
    if found.episodes and not raising:
        console.print(terminal.safe(verdict(found, ran.manifest.agent)), style="bold", highlight=False, markup=False)
        if more := details(found):
            console.print(terminal.safe(more))
    console.print(
        f"{formats.many(progress.before + progress.done, 'episode')} ({progress.done} now); {progress.spent.in_words}."
    )
    for kind, why in ran.manifest.never_met.items():
        console.print(terminal.safe(f"{kind} was never played: {why}."), style="yellow", markup=False, highlight=False)
    if not progress.scores and progress.errors:
        console.print("No episode could be scored.", style="bold red")
    if progress.errors:
        last = f" (the last: {terminal.short(progress.trouble, 300)})" if progress.trouble not in ran.stopped else ""
        console.print(
            f"{formats.many(progress.errors, 'episode')} ended in infrastructure errors and are not scored"
            f"{last}. To retry them, rerun with --out {folder}.",
            style="yellow",
        )
    if late := found.causes.get(TIMED_OUT):
        console.print(
            f"{formats.many(late, 'episode')} timed out and failed: the agent took longer than --episode-timeout. List "
            f"them: crosswind show {folder} --cause {shlex.quote(TIMED_OUT)}",
            style="yellow",
        )
    if progress.exceptions:
        console.print(
            f"{formats.many(progress.exceptions, 'episode')} failed because the agent's code raised an exception. The "
            "last one:",
            style="yellow",
        )
        console.print(terminal.safe(progress.raised), style="yellow")
        console.print(f"List them: crosswind show {folder} --cause exception", style="yellow")
    if ran.cut:
        console.print(
            f"An incomplete line, left by a crash, was moved to {folder}/episodes.jsonl.torn.", style="yellow"
        )
    if ran.stopped:
        larger = "a larger budget and " if ran.budget else ""
        go_on = f"To resume, rerun the command with {larger}--out {folder}."
        if ran.raising:
            go_on = (
                f"Run a changed agent with a new --out. To resume with the same agent, rerun with --out {folder}. With "
                "--max-exceptions 0, exceptions never stop a run."
            )
        told = terminal.short(ran.stopped, 400)
        left = f"About {formats.many(ran.left, 'episode')} left. " if ran.left else ""
        console.print(f"Stopped: {told}. {left}{go_on}", style="yellow")
    again = f"crosswind report {shlex.quote(str(folder))}{with_plugins(plugin_files())}"
    if not found.episodes and progress.errors:
        again = f"crosswind doctor {shlex.quote(ran.manifest.agent)}"
    console.print(terminal.one_line(f"Next: {again}"), soft_wrap=True)
