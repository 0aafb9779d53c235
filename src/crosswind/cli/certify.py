"""`crosswind certify`: how often each kind of perturbation can be drawn fairly."""

from __future__ import annotations

import time
from typing import Annotated

from typer import Exit, Option, Typer

from crosswind.base import terminal
from crosswind.cli.options import Json, Seed
from crosswind.cli.progress import Display

app = Typer()


@app.command()
def certify(
    domain: Annotated[str, Option(help="A domain, or all.")] = "all",
    perturb: Annotated[str, Option(help="A kind of perturbation, or all.")] = "all",
    count: Annotated[int, Option(min=1, help="Certified draws wanted per kind and domain.")] = 20,
    seed: Seed = 0,
    severity: Annotated[int, Option(min=1, max=5, help="How strong the perturbations are.")] = 3,
    deep: Annotated[bool, Option(help="Check also the laws that do not depend on the draw.")] = False,
    json_: Json = False,
) -> None:
    """Draw perturbed tasks and certify each: solvable by replay, or refusable by proof.

    A draw that breaks a law is refused with the reason and drawn again; a kind that finds nothing to bite on in
    a task is counted apart. Exits with 1 if a kind has no certified draw in a domain where it applies.
    """
    from crosswind.core.registry import domains, perturbations
    from crosswind.episodes.survey import survey

    names = domains.names() if domain == "all" else [domains[domain].name]
    kinds = perturbations.names() if perturb == "all" else [perturb]
    for kind in kinds:
        perturbations[kind]
    began = time.perf_counter()
    with Display("certifying", quiet=json_) as display:
        rows = survey(names, kinds, count, seed, severity, deep=deep, progress=display.say)
    reasons: dict[str, int] = {}
    for row in rows:
        for reason, n in row["reasons"].items():
            reasons[reason] = reasons.get(reason, 0) + n
    data = {
        "certified": sum(r["certified"] for r in rows),
        "refused": sum(r["refused"] for r in rows),
        "not_applicable": sum(r["not_applicable"] for r in rows),
        "reasons": reasons,
        "rows": rows,
        "count": count,
        "seed": seed,
        "severity": severity,
        "seconds": round(time.perf_counter() - began, 3),
    }
    if json_:
        terminal.print_json(data)
    else:
        table = terminal.table_of("domain", "kind", "certified", "refused", "n/a", "most frequent reason")
        for row in rows:
            worst = max(row["reasons"], key=lambda r: row["reasons"][r], default="")
            table.add_row(
                row["domain"], row["kind"], *(str(row[k]) for k in ("certified", "refused", "not_applicable")), worst
            )
        console = terminal.console()
        console.print(table)
        console.print(
            f"{data['certified']} certified, {data['refused']} refused, {data['not_applicable']} not applicable "
            f"in {data['seconds']:.1f} s"
        )
    if any(r["certified"] == 0 and r["applies"] for r in rows):
        raise Exit(1)
