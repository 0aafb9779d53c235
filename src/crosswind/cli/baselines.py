"""`crosswind baselines`: the scripted agents over a suite."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from typer import Option

from crosswind.base import terminal
from crosswind.cli.help import App, epilog
from crosswind.cli.options import Address, Ending, Executor, Json, Seed, SuiteName
from crosswind.cli.progress import RunDisplay

if TYPE_CHECKING:
    from crosswind.runs.baselines import Baseline

app = App()


@app.command(
    epilog=epilog(
        "crosswind baselines --suite quick",
        "crosswind baselines --suite tiers --domain poi --tasks 5 --markdown",
    )
)
def baselines(
    suite: SuiteName = "tiers",
    tasks: Annotated[
        int | None, Option(min=1, show_default="the suite's", help="Tasks per domain and perturbation.")
    ] = None,
    seed: Seed = 0,
    domain: Annotated[str, Option(help="Run in this domain only.")] = "all",
    ending: Ending = "",
    executor: Executor = "local",
    address: Address = "",
    markdown: Annotated[bool, Option("--markdown", help="Print the table as Markdown.")] = False,
    json_: Json = False,
) -> None:
    """Run the scripted agents over a suite and print their scores under each perturbation."""
    from crosswind.core.registry import agents, domains
    from crosswind.episodes.stream import load_suite
    from crosswind.runs.baselines import domains_of, in_order, over_domains, sweep, sweep_part
    from crosswind.runs.ray_map import mapper

    mapped = mapper(executor, address)
    names = ["oracle", "retrier", "memoriser", "refuser", "echo", "idle", "guesser"]
    for name in names:
        agents[name]
    chosen = load_suite(suite)
    if tasks:
        chosen = chosen.model_copy(update={"tasks": tasks})
    if domain != "all":
        chosen = chosen.model_copy(update={"domains": (domains[domain].name,)})
    began = time.perf_counter()
    with RunDisplay(quiet=json_, scores=False) as display:
        if executor == "local":
            rows = sweep(chosen, names, seed, display, ending=ending)
        else:
            parts = [(one.model_dump_json(), tuple(names), seed, ending) for one in domains_of(chosen)]
            rows = in_order((row for found in mapped(sweep_part, parts) for row in found), chosen)
    seconds = time.perf_counter() - began
    if json_:
        terminal.print_json({"rows": [asdict(r) for r in rows], "suite": chosen.name, "seed": seed})
    elif markdown:
        print(as_markdown(over_domains(rows), names))
    else:
        _show_sweep(over_domains(rows), names, seconds)


def _cells(row: Baseline, names: list[str]) -> list[str]:
    return [row.domain, row.condition, str(row.n - row.refusals), str(row.refusals), *shares(row, names)]


def shares(row: Baseline, names: list[str]) -> list[str]:
    """What each agent solves of the tasks that can be solved, and rightly refuses of the others, in percent."""
    sides = ((row.passed, row.n - row.refusals), (row.right, row.refusals))
    return [" / ".join(f"{100 * of[name] / n:.0f}" if n else "–" for of, n in sides) for name in names]


HEADS = ["domain", "condition", "solvable", "to refuse"]


def _show_sweep(rows: list[Baseline], names: list[str], seconds: float) -> None:
    terminal.print_table([*HEADS, *names], (_cells(row, names) for row in rows))
    episodes = sum(r.n for r in rows) * len(names)
    terminal.console().print(
        "Solvable tasks that are solved / tasks to refuse that are correctly refused, both in %. oracle: follows the\n"
        "certified solution; retrier: solves, repeating failed calls; memoriser: replays the clean run; refuser: "
        "refuses\n"
        "everything; echo: repeats the request; idle: does nothing; guesser: guesses without calling tools.\n"
        f"{episodes} episodes in {seconds:.1f} s. Look at one:\n"
        "  crosswind play --domain poi --seed 9 --perturb semantic_rename --agent memoriser"
    )


def as_markdown(rows: list[Baseline], names: list[str]) -> str:
    heads = [*HEADS, *names]
    lines = [heads, ["---"] * len(heads), *(_cells(row, names) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
