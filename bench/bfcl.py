"""Replay the golds of BFCL's multi-turn part through every action perturbation and let its own checker judge.

For each kind and severity every gold is drawn anew (`recipe.draw`), walked through the layer and judged by the
checker of bfcl-eval on the calls that reached its APIs. The stale gold is the recorded one, sent as it stands to the
perturbed interface: what an agent does that learnt the interface by heart. Prints the tables of docs/results/bfcl.md.

    python bench/bfcl.py --out docs/results/bfcl.md
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import time
from collections import Counter
from datetime import date
from importlib.metadata import version
from pathlib import Path

from crosswind import speech
from crosswind.benchmarks.bfcl import Bfcl, load
from crosswind.benchmarks.borrowed import BorrowedFamily
from crosswind.certify import Walk, certify
from crosswind.domain import Domain
from crosswind.errors import CannotPerturb, Unfair
from crosswind.perturbation import Layers
from crosswind.recipe import Drawn, draw
from crosswind.registry import perturbations
from crosswind.session import Session
from crosswind.types import Task, ToolCall, ToolSpec, Verdict

HEAD = [
    *("kind", "severity", "applies to", "re-derived: pass", "does not apply", "refused"),
    *("stale: pass", "stale, all calls changed: pass", "s"),
]
TURNS = [
    *("category", "such turns", "of them with gold calls", "the gold says"),
    *("recognised with what the gold says", "with a claim that all is done"),
]


def stale(drawn: Drawn) -> bool:
    """Does the recorded gold, sent as it stands, still pass where the layers are?"""
    return verdict_on(drawn.domain, drawn.certificate.task, drawn.certificate.layers).outcome == "pass"


def verdict_on(domain: Domain, task: Task, layers: Layers = (), instead: str = "") -> Verdict:
    """The verdict on the recorded gold; `instead` is said in turns that are to be refused or asked about."""
    family, session = domain.family(task), Session(domain, task, layers)
    assert isinstance(family, BorrowedFamily)
    gold = family.gold
    for n, calls in enumerate(gold.calls):
        for call in calls:
            session.call(call)
        if n + 1 < len(gold.calls):
            session.say(instead if instead and n in gold.hold else gold.says[n])
    return domain.judge(task, session.world.state, gold.says[-1])


def all_new(drawn: Drawn) -> bool:
    """Does every call of the gold go by another name, or with other parameters, than it was recorded with?"""
    shown = drawn.certificate.gold.session.ever
    return all(_outdated(step.call, shown.get(step.call.tool)) for step in drawn.certificate.clean.calls)


def _outdated(call: ToolCall, spec: ToolSpec | None) -> bool:
    if spec is None or not set(call.args) <= set(spec.params):
        return True
    return any(param.required and name not in call.args for name, param in spec.params.items())


def one_kind(
    domain: Bfcl, kind: str, severity: int, tasks: list[Task], cleans: dict[str, Walk], seed: int
) -> list[str]:
    """A row of the table: how the golds fare under one kind."""
    began, count, why = time.perf_counter(), Counter[str](), Counter[str]()
    for task in tasks:
        try:
            drawn = draw(domain, task, [kind], seed, severity=severity, clean=cleans[task.id])
        except CannotPerturb as cannot:
            count["refused" if cannot.applies else "does not apply"] += 1
            why[cannot.law] += cannot.applies
            continue
        count["applies"] += 1
        gold = drawn.certificate.gold
        verdict = domain.judge(drawn.certificate.task, gold.session.world.state, gold.final)
        count["passes"] += verdict.outcome == "pass"
        passes = stale(drawn)
        count["stale"] += passes
        if all_new(drawn):
            count["all new"] += 1
            count["stale where all new"] += passes
    seconds = time.perf_counter() - began
    refused = str(count["refused"]) + (f" ({', '.join(law for law in why if why[law])})" if count["refused"] else "")
    return [
        f"`{kind}`",
        str(severity),
        str(count["applies"]),
        f"{count['passes']} of {count['applies']}",
        str(count["does not apply"]),
        refused,
        f"{count['stale']} of {count['applies']}",
        f"{count['stale where all new']} of {count['all new']}",
        f"{seconds:.0f}",
    ]


def clean_walks(domain: Bfcl, tasks: list[Task]) -> tuple[dict[str, Walk], float, list[str]]:
    """The golds through a session without layers, certified."""
    began, walks, failures = time.perf_counter(), {}, []
    for task in tasks:
        try:
            walks[task.id] = certify(domain, task).gold
        except Unfair as unfair:
            failures.append(f"{task.id}: {unfair}")
    return walks, time.perf_counter() - began, failures


def held_back(domain: Bfcl, tasks: list[Task]) -> list[list[str]]:
    """Turns to refuse or ask: how many there are, and what becomes of a gold that talks past them."""
    rows = []
    for name, family in domain.families.items():
        turns = [(task, turn) for task in tasks if task.family == name for turn in family.golds[task.seed].hold]
        said = Counter(speech.classify(family.golds[task.seed].says[turn]) for task, turn in turns)
        called = sum(bool(family.golds[task.seed].calls[turn]) for task, turn in turns)
        recognised = sum(_recognised(domain, task) for task, _ in turns)
        missed = sum(_recognised(domain, task, "All of it is done.") for task, _ in turns)
        rows.append(
            [
                f"`{name}`",
                str(len(turns)),
                str(called),
                ", ".join(f"{n} {how}" for how, n in sorted(said.items())) or "none",
                f"{recognised} of {len(turns)}",
                f"{missed} of {len(turns)}",
            ]
        )
    return rows


def _recognised(domain: Bfcl, task: Task, instead: str = "") -> bool:
    """Does the check of such turns pass?"""
    return all(check.passed for check in verdict_on(domain, task, instead=instead).checks if check.name[:5] == "turn ")


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the page here as well")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--severities", type=int, nargs="+", default=[3])
    parser.add_argument("--every", type=int, default=1, help="look at every so many tasks")
    parser.add_argument(
        "--kinds", nargs="+", help="only these; by default all of the axis action, and foreign_interface"
    )
    given = parser.parse_args()
    began = time.perf_counter()
    domain = load()
    loaded = time.perf_counter() - began
    tasks = [domain.task(name, n) for name, f in domain.families.items() for n in range(0, len(f.golds), given.every)]
    cleans, seconds, failures = clean_walks(domain, tasks)
    calls = sum(len(walk.calls) for walk in cleans.values())
    kinds = given.kinds or [k for k in perturbations.names() if perturbations[k].axis == "action"] + [
        "foreign_interface"
    ]
    rows = []
    for kind in kinds:
        for severity in given.severities:
            rows.append(one_kind(domain, kind, severity, tasks, cleans, given.seed))
            print(json.dumps(rows[-1]), flush=True)
    taken = time.perf_counter() - began
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout
    page = f"""# BFCL under action perturbations

Written by `python bench/bfcl.py --seed {given.seed} --severities {" ".join(map(str, given.severities))}` on
{date.today().isoformat()}, on top of commit {commit.strip() or "unknown"}; bfcl-eval {version("bfcl-eval")}, Python
{platform.python_version()}, one process. How the benchmark becomes a domain: [benchmarks.md](../benchmarks.md).

## Clean

{len(cleans)} of {len(tasks)} golds pass its own checker through a session without layers, certified, with
{calls:,} calls in {seconds:.1f} s; loading the benchmark and finding out which tools write took {loaded:.1f} s.
{"Not certified: " + "; ".join(failures) if failures else ""}
## Re-derived and stale

Each gold is drawn with one layer, replayed through it and judged by the checker of bfcl-eval ("re-derived"). "Refused"
draws broke a law in four attempts, which is named; the kind is then not used on the task. "Stale" is the recorded gold
sent as it stands. The last but one column counts only the tasks in which the layer changes the name or the parameters
of every call of the gold. Seconds include drawing, walking, certifying and judging both.

A draw is only made if its re-derived gold passes the checker (law `goal`), so the fourth column repeats the third and a
failure would stand under "refused", as `goal`.

{table(HEAD, rows)}

The whole took {taken / 60:.1f} minutes.

## Turns to refuse or to ask

In `multi_turn_miss_func` a function is missing until a turn brings it, in `multi_turn_miss_param` a detail until a turn
gives it. The turn before is to be refused or asked about. The checker of bfcl-eval looks at no words and passes over
such turns (what is changed there shows in the next). We mark them, and the verdict says what the agent's words there
were taken for; the outcome stays that of bfcl-eval.

{table(TURNS, held_back(domain, tasks))}
"""
    print(page)
    if given.out:
        given.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
