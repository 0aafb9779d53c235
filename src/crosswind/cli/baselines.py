"""`crosswind baselines`: the scripted agents over a suite."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from typer import Option, Typer

from crosswind.base import terminal
from crosswind.cli.options import Json, Seed, SuiteName
from crosswind.cli.progress import RunDisplay

if TYPE_CHECKING:
    from crosswind.runs.baselines import Baseline

app = Typer()


@app.command()
def baselines(
    suite: SuiteName = "tiers",
    tasks: Annotated[
        int | None, Option(min=1, help="Tasks per domain and perturbation; the suite's own unless given.")
    ] = None,
    seed: Seed = 0,
    domain: Annotated[str, Option(help="A domain, or all that the suite has.")] = "all",
    markdown: Annotated[bool, Option(help="Print the table as Markdown.")] = False,
    json_: Json = False,
) -> None:
    """Play the scripted agents over a suite, and print how they fare under each perturbation."""
    from crosswind.core.registry import agents, domains
    from crosswind.episodes.suite import load_suite
    from crosswind.runs.baselines import over_domains, sweep

    names = ["oracle", "retrier", "memoriser", "refuser", "idle"]
    for name in names:
        agents[name]
    chosen = load_suite(suite)
    if tasks:
        chosen = chosen.model_copy(update={"tasks": tasks})
    if domain != "all":
        chosen = chosen.model_copy(update={"domains": (domains[domain].name,)})
    began = time.perf_counter()
    with RunDisplay(quiet=json_, scores=False) as display:
        rows = sweep(chosen, names, seed, display)
    seconds = time.perf_counter() - began
    if json_:
        terminal.print_json({"rows": [asdict(r) for r in rows], "suite": chosen.name, "seed": seed})
    elif markdown:
        print(as_markdown(over_domains(rows), names))
    else:
        _show_sweep(over_domains(rows), names, seconds)


def _cells(row: Baseline, names: list[str]) -> list[str]:
    shares = [f"{100 * row.passed[name] / row.n:.0f}" for name in names]
    return [row.domain, row.condition, str(row.n), f"{100 * row.refusals / row.n:.0f}", *shares]


HEADS = ["domain", "condition", "tasks", "to refuse %"]


def _show_sweep(rows: list[Baseline], names: list[str], seconds: float) -> None:
    console = terminal.console()
    table = terminal.table_of(*HEADS, *names)
    for row in rows:
        table.add_row(*_cells(row, names))
    console.print(table)
    episodes = sum(r.n for r in rows) * len(names)
    console.print(
        "Success in % of the tasks. oracle: walks the certified way; retrier: solves, repeating failed calls;\n"
        "memoriser: replays the clean run; refuser: refuses; idle: does nothing.\n"
        f"{episodes} episodes in {seconds:.1f} s. Look at one:\n"
        "  crosswind play --domain poi --seed 9 --perturb semantic_rename --agent memoriser"
    )


def as_markdown(rows: list[Baseline], names: list[str]) -> str:
    heads = [*HEADS, *names]
    lines = [heads, ["---"] * len(heads), *(_cells(row, names) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
