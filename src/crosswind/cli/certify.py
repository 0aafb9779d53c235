"""`crosswind certify`: whether tasks are fair, and how often each kind of perturbation can be drawn fairly."""

from __future__ import annotations

import time
from typing import Annotated, Any

from typer import Exit, Option

from crosswind.base import terminal
from crosswind.base.errors import UnknownName
from crosswind.cli.exits import FAILED
from crosswind.cli.help import App, epilog
from crosswind.cli.options import Address, Executor, Json, Seed
from crosswind.cli.progress import Display

EPILOG = epilog(
    "crosswind certify --domain poi --count 5",
    "crosswind certify --plugin fleet.py --domain fleet --family best_van --clean",
    exits={0: "every task is fair", FAILED: "some task is unfair, with or without a perturbation"},
)
UNFAIR = "the task itself is unfair, without any perturbation"
app = App()


@app.command(epilog=EPILOG)
def certify(
    domain: Annotated[str, Option(help="Domain, or all.")] = "all",
    family: Annotated[str, Option(help="Task family, or all.")] = "all",
    perturb: Annotated[str, Option(metavar="KIND", help="Kind of perturbation, or all.")] = "all",
    clean: Annotated[bool, Option("--clean", help="Certify clean tasks only.")] = False,
    count: Annotated[int, Option(min=1, help="Tasks to certify per kind and domain.")] = 20,
    seed: Seed = 0,
    severity: Annotated[int, Option(min=1, max=5, help="Severity of the perturbations.")] = 3,
    executor: Executor = "local",
    address: Address = "",
    json_: Json = False,
) -> None:
    """Prove that tasks are fair, both clean and perturbed.

    A task is certified by replaying its solution, or by a proof that refusing it is correct. A perturbation that would
    make a task unfair is rejected, with the reason, and sampled again.
    """
    from crosswind.core.registry import did_you_mean, domains, perturbations
    from crosswind.episodes.survey import survey_clean, survey_part
    from crosswind.runs.ray_map import mapper

    mapped = mapper(executor, address)
    names = domains.names() if domain == "all" else [domains[domain].name]
    kinds = perturbations.names() if perturb == "all" else [perturb]
    for kind in kinds:
        perturbations[kind]
    families = () if family == "all" else (family,)
    if families:
        known = [f for name in names for f in domains[name].families]
        names = [name for name in names if family in domains[name].families]
        if not names:
            raise UnknownName(f"no family {family!r}; {did_you_mean(family, sorted(set(known)))}")
    began = time.perf_counter()
    with Display("certifying", quiet=json_) as display:
        tasks = survey_clean(names, families, progress=display.say)
        unfair = [row["where"] for row in tasks if not row["fair"]]
        rows: list[dict[str, Any]] = []
        if not clean:
            parts = [
                (name, kind, count, seed, severity, tuple(families), tuple(unfair)) for name in names for kind in kinds
            ]
            for (name, kind, *_), found in zip(parts, mapped(survey_part, parts), strict=True):
                display.say(name, kind)
                rows += found
    reasons: dict[str, int] = {}
    for row in rows:
        for reason, n in row["reasons"].items():
            reasons[reason] = reasons.get(reason, 0) + n
    data = {
        "fair": not unfair and not any(row["failed"] for row in rows),
        "clean": tasks,
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
        for name in names:
            _show(name, [r for r in tasks if r["domain"] == name], [r for r in rows if r["domain"] == name], severity)
        fair = sum(row["fair"] for row in tasks)
        print(
            f"{fair} of {len(tasks)} families are fair without a perturbation; {data['certified']} certified, "
            f"{data['refused']} "
            f"refused, {data['not_applicable']} not applicable in {data['seconds']:.1f} s"
        )
    if not data["fair"]:
        raise Exit(FAILED)


def _show(name: str, tasks: list[dict[str, Any]], rows: list[dict[str, Any]], severity: int) -> None:
    if tasks:
        print(f"{name}: the tasks themselves")
        print("\n".join(clean_lines(tasks)))
    if rows:
        print(f"{name}: under each kind, severity {severity}")
        print("\n".join(line for row in rows for line in kind_lines(row)))


def clean_lines(tasks: list[dict[str, Any]]) -> list[str]:
    """A line for each family, and for each tool that is at fault."""
    out = []
    for row in tasks:
        said = (
            f"{row['tasks']} task{'s' * (row['tasks'] != 1)} certified"
            if row["fair"]
            else f"{UNFAIR}: {row['law']}: {row['reason']}"
        )
        if "/" not in row["where"]:
            said = f"{row['law']}: {row['reason']}"
        out.append(
            terminal.marked("yes" if row["fair"] else "no", row["where"].partition("/")[2] or row["where"], said)
        )
    return out


def kind_lines(row: dict[str, Any]) -> list[str]:
    """What came of a kind, with the reasons of refusals below it."""
    from crosswind.episodes.reasons import why_not

    if not row["applies"]:
        return [terminal.marked("none", row["kind"], f"does not apply: {why_not(row['why_not'])}")]
    said = f"{row['certified']} certified" + (f", {row['refused']} refused" if row["refused"] else "")
    if row["failed"]:
        said += f"; {row['failed']} tasks without a fair draw"
    lines = [terminal.marked("no" if row["failed"] else "yes", row["kind"], said)]
    return lines + [terminal.marked("", "", f"{n} x {reason}") for reason, n in row["reasons"].items()]
