"""What `crosswind run` prints in the end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer import Exit

from crosswind.base import terminal

if TYPE_CHECKING:
    from crosswind.episodes.record import Record
    from crosswind.metrics import Drop
    from crosswind.runs.runner import Ran

STOPPED = 3  # exit code: the infrastructure stopped the run


def conclude(ran: Ran, folder: Path, *, json_: bool) -> None:
    """What came out, and what to do next."""
    progress = ran.progress
    drops = tier_drops(folder)
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
                "scores": {name: {"n": c.n, "passed": c.passed} for name, c in progress.scores.items()},
                "drops": {name: drop.model_dump(mode="json") for name, drop in drops.items()},
                "usage": progress.spent.model_dump(mode="json"),
            }
        )
    else:
        _show(ran, drops, folder)
    if ran.broken:
        raise Exit(STOPPED)


def tier_drops(folder: Path) -> dict[str, Drop]:
    """The drop per tier, and over all pairs."""
    from crosswind.metrics import drops
    from crosswind.runs.store import iter_records

    shared: dict[Any, Any] = {}
    light = [_light(record, shared) for record in iter_records(folder)]
    return {**drops(light, "tier"), **drops(light, "all")}


def _light(record: Record, shared: dict[Any, Any]) -> Record:
    """A record without what only a reader of the episode needs; what is equal to that of others is shared."""
    same = ("domain", "family", "condition", "agent", "outcome", "ended", "receipts")
    unlike = ("key", "pair", "task_id", "level", "seed", "trial", "severity", "refuse")
    one = {name: shared.setdefault(value, value) for name in same if (value := getattr(record, name)) is not None}
    layers = shared.setdefault(record.kinds, tuple({"kind": kind} for kind in record.kinds))
    fields = shared.setdefault(None, set(type(record).model_fields))
    return type(record).model_construct(fields, **one, **{n: getattr(record, n) for n in unlike}, layers=layers)


def _show(ran: Ran, drops: dict[str, Drop], folder: Path) -> None:
    from crosswind.report.table import HEADS, TOTAL, score_rows

    console, progress = terminal.console(), ran.progress
    table = terminal.table_of(*HEADS)
    for row in score_rows(progress.scores, drops):
        table.add_row(*row, style="bold" if row[0] == TOTAL else "")
    console.print(table)
    if "all" in drops:
        console.print(
            "Each shifted episode is paired with the clean episode of the same task. Intervals resample tasks, because "
            "pairs of one task are correlated."
        )
    tokens = progress.spent.input_tokens + progress.spent.output_tokens
    cost = f", cost {progress.spent.cost:.4g}" if progress.spent.cost else ""
    console.print(f"{progress.before + progress.done} episodes ({progress.done} now); {tokens:,} tokens{cost}.")
    if not progress.scores and progress.errors:
        console.print("Nothing could be scored.", style="bold red")
    if progress.errors:
        console.print(
            f"{progress.errors} ended as errors of the infrastructure and count nowhere (the last: "
            f"{terminal.short(progress.trouble, 300)}); the same command with --out {folder} plays them again.",
            style="yellow",
        )
    if ran.cut:
        console.print(f"A line torn by a crash was cut off and kept in {folder}/episodes.jsonl.torn.", style="yellow")
    if ran.stopped:
        larger = "a larger budget and " if ran.budget else ""
        console.print(
            f"Stopped: {terminal.short(ran.stopped, 400)}; about {ran.left} episodes are left. The same command with "
            f"{larger}--out {folder} continues.",
            style="yellow",
        )
    console.print(f"Next: crosswind report {folder}")
