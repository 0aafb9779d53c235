"""`crosswind demo`: the whole way once, with a small model that runs in process."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from crosswind.base import terminal
from crosswind.cli.help import App, epilog
from crosswind.cli.options import Seed, SuiteName

BESIDE = ["oracle", "retrier", "memoriser", "refuser"]  # whose scores are known beforehand
LITTLE = 0.1  # a clean score below which a fall means nothing
HANDFUL = 5  # episodes that the trained adapters play: a clean one, and one of every tier
RESULTS = "studies/fragility/report.md"
app = App()


@app.command(epilog=epilog("crosswind demo", "crosswind demo --agent retrier --out runs/demo-retrier"))
def demo(
    agent: Annotated[str, Option(help="Who plays; `embedded` needs no key and no server.")] = "embedded",
    suite: SuiteName = "quick",
    out: Annotated[Path, Option(help="The folder of the run; a second time, the run is continued.")] = Path(
        "runs/demo"
    ),
    seed: Seed = 0,
) -> None:
    """Run a small model over a short suite, write the report, and show scripted agents beside it for scale.

    Where trained adapters are part of the installation, they play the first episodes too, and are compared with it.
    """
    from crosswind.cli.baselines import shares
    from crosswind.cli.report import report
    from crosswind.cli.run import run
    from crosswind.episodes.suite import load_suite
    from crosswind.models import adapters
    from crosswind.runs.baselines import over_domains, sweep
    from crosswind.runs.store import load_run

    run(suite=suite, agent=agent, out=out, seed=seed)
    console = terminal.console()
    records = load_run(out).records
    clean = [record.passed for record in records if record.clean and record.judged and not record.refuse]
    if clean and sum(clean) / len(clean) <= LITTLE:
        console.print(
            f"{agent} solves {sum(clean)} of {len(clean)} clean tasks: next to nothing, so its fall says nothing. "
            "It shows how a run works; point crosswind at an agent of yours to learn something.",
            style="bold yellow",
        )
    rows = over_domains(sweep(load_suite(suite), BESIDE, seed))
    cells = ([row.condition, str(row.n), *shares(row, BESIDE)] for row in rows)
    terminal.print_table(["scripted agents, solved / rightly refused in %", "episodes", *BESIDE], cells)
    report(out)
    trained = adapters.shipped() if agent == "embedded" else []
    runs = {agent: out}
    for name in trained:
        runs[f"{agent}:{name}"] = out.with_name(f"{out.name}-{name}")
        console.print(f"the first {HANDFUL} of them with the adapter {name}, some minutes:")
        run(suite=suite, agent=f"{agent}:{name}", out=runs[f"{agent}:{name}"], seed=seed, limit=HANDFUL)
    if trained:
        _compare(runs)


def _compare(runs: dict[str, Path]) -> None:
    """The same episodes, agent by agent."""
    from crosswind.runs.store import load_run

    console = terminal.console()
    found = {name: {record.key: record for record in load_run(path).records} for name, path in runs.items()}
    shared = set.intersection(*(set(records) for records in found.values()))
    table = terminal.table_of(f"solvable ones of the same {len(shared)} episodes", "clean", "shifted")
    for name, records in found.items():
        cells = []
        for clean in (True, False):
            some = [r.passed for r in map(records.__getitem__, shared) if r.clean == clean and not r.refuse]
            cells.append(f"{sum(some)} of {len(some)}")
        table.add_row(name, *cells)
    console.print(table)
    console.print(
        f"static was trained on clean demonstrations, paft on perturbed ones besides. So few episodes prove nothing: "
        f"{RESULTS} has thousands, in words, kinds and a domain that neither was trained on."
    )
