"""Replay the golds of BFCL's multi-turn part through every action perturbation and let its own checker judge.

For each kind and severity the first draw for every task is taken as it falls, before any law is asked: the gold is
walked through the layer ("re-derived") and judged by the checker of bfcl-eval on the calls that reached its APIs. Then
the laws are asked, by name, and those that break one are drawn again as a run would (`recipe.draw`). The stale gold is
the recorded one, sent as it is to the perturbed interface: what an agent does that learnt the interface by heart.
Prints the tables of docs/results/bfcl.md.

    python bench/bfcl.py --severities 1 3 5 --jobs 2 --out docs/results/bfcl.md
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path

from crosswind.base.errors import CannotPerturb, Unfair
from crosswind.benchmarks.bfcl import Bfcl, load
from crosswind.benchmarks.borrowed import BorrowedFamily
from crosswind.core.certify import certify
from crosswind.core.domain import Domain
from crosswind.core.draw import DrawScene, draw
from crosswind.core.flow import rng_for
from crosswind.core.oracle import Walk, Walks
from crosswind.core.perturbation import Layers
from crosswind.core.registry import perturbations
from crosswind.core.session import Session
from crosswind.core.types import Task, ToolCall, ToolSpec, Verdict
from crosswind.text import speech

HEAD = [
    *("kind", "severity", "applies to", "re-derived: pass", "certified", "within four draws", "laws broken"),
    *("stale: pass", "stale, all calls changed: pass", "s"),
]
TURNS = [
    *("category", "such turns", "of them with gold calls", "the gold says"),
    *("recognised with what the gold says", "with a claim that all is done"),
]


def verdict_on(domain: Domain, task: Task, layers: Layers = (), instead: str = "") -> Verdict:
    """The verdict on the recorded gold; `instead` is said in turns that are to be refused or asked about."""
    family, session = domain.family(task), Session.of(domain, task, layers)
    assert isinstance(family, BorrowedFamily)
    gold = family.gold
    for n, calls in enumerate(gold.calls):
        for call in calls:
            session.call(call)
        if n + 1 < len(gold.calls):
            session.say(instead if instead and n in gold.hold else gold.says[n])
    return domain.judge(task, session.world.state, gold.says[-1])


def all_new(gold: Walk, clean: Walk) -> bool:
    """Does every call of the gold go by another name, or with other parameters, than it was recorded with?"""
    return all(_outdated(step.call, gold.session.ever.get(step.call.tool)) for step in clean.calls)


def _outdated(call: ToolCall, spec: ToolSpec | None) -> bool:
    if spec is None or not set(call.args) <= set(spec.params):
        return True
    return any(param.required and name not in call.args for name, param in spec.params.items())


def first_draw(domain: Domain, task: Task, kind: str, severity: int, seed: int, clean: Walk) -> Walks | None:
    """The first layer that `recipe.draw` would try; no law is asked. None: the kind finds nothing to bite on."""
    walks = Walks(domain, task, clean)
    layer = perturbations[kind].sample(DrawScene(walks), rng_for("draw", seed, task.id, kind, 0), severity)
    if layer is None:
        return None
    walks.add(layer)
    return walks


def failing(domain: Domain, walks: Walks) -> str:
    """Why the gold, re-derived through the layer, fails the benchmark's checker or does not get to it; or nothing."""
    try:
        gold = walks.gold
    except Unfair as unfair:
        return str(unfair)
    verdict = domain.judge(walks.shifted, gold.session.world.state, gold.final)
    return "" if verdict.outcome == "pass" else "; ".join(check.why for check in verdict.checks if not check.passed)


def broken(domain: Domain, walks: Walks) -> str:
    """The law that a draw breaks, or nothing: then it is certified."""
    try:
        certify(domain, walks.tasks[0], walks.layers, walks)
    except Unfair as unfair:
        return unfair.law
    return ""


def one_kind(
    domain: Domain, kind: str, severity: int, tasks: list[Task], cleans: dict[str, Walk], seed: int
) -> tuple[list[str], list[str]]:
    """A row of the table, how the golds fare under one kind; and those that fail."""
    failures: list[str] = []
    began, count, laws = time.perf_counter(), Counter[str](), Counter[str]()
    for task in tasks:
        walks = first_draw(domain, task, kind, severity, seed, cleans[task.id])
        if walks is None:
            continue
        count["applies"] += 1
        if why := failing(domain, walks):
            failures.append(f"`{kind}` at severity {severity}, `{task.id}`: {' '.join(why.split())[:160]}")
        count["passes"] += not why
        law = broken(domain, walks)
        laws[law] += 1
        count["in four"] += not law or _later(domain, task, kind, severity, seed, cleans[task.id])
        stale = verdict_on(domain, walks.shifted, walks.layers).outcome == "pass"
        count["stale"] += stale
        if not why and all_new(walks.gold, cleans[task.id]):
            count["all new"] += 1
            count["stale where all new"] += stale
    seconds, applies = time.perf_counter() - began, count["applies"]
    row = [
        f"`{kind}`",
        str(severity),
        f"{applies} of {len(tasks)}",
        f"{count['passes']} of {applies}",
        f"{laws['']} of {applies}",
        f"{count['in four']} of {applies}",
        ", ".join(f"{law} {n}" for law, n in sorted(laws.items()) if law) or "none",
        f"{count['stale']} of {applies}",
        f"{count['stale where all new']} of {count['all new']}",
        f"{seconds:.0f}",
    ]
    return row, failures


def _later(domain: Domain, task: Task, kind: str, severity: int, seed: int, clean: Walk) -> bool:
    """Is a draw certified if a few more are tried, as a run does it?"""
    try:
        draw(domain, task, [kind], seed, severity=severity, clean=clean)
    except CannotPerturb:
        return False
    return True


Wanted = tuple[str, int]  # a kind and a severity
Made = tuple[list[str], list[str]]  # a row and the failures in it
_one: Callable[[Wanted], Made]


def rows_of(wanted: list[Wanted], one: Callable[[Wanted], Made], jobs: int) -> tuple[list[list[str]], list[str]]:
    """The rows of all kinds and severities and the failures, from processes that share what was loaded."""
    global _one
    _one = one  # inherited by the processes: worlds and walks cannot be sent to them
    rows, failures = [], []
    with get_context("fork").Pool(jobs) as pool:
        for row, failed in pool.imap(_run, wanted, chunksize=1):
            rows.append(row)
            failures += failed
            print(json.dumps(row), flush=True)
    return rows, failures


def _run(wanted: Wanted) -> Made:
    return _one(wanted)


def idle_kinds(rows: list[list[str]], kinds: Sequence[str]) -> str:
    """What each kind needs of a task, where it found too little in some."""
    out = []
    for kind in kinds:
        missed = [row for row in rows if row[0] == f"`{kind}`" and len(set(row[2].split(" of "))) > 1]
        if missed:
            least = ", ".join(f"{_missing(row)} at severity {row[1]}" for row in missed)
            out.append(f"- `{kind}`: {least}. It needs {perturbations[kind].needs}.")
    return "\n".join(out) or "None."


def total(rows: list[list[str]], column: int) -> str:
    """A column of "n of m" over all rows."""
    parts = [tuple(map(int, row[column].split(" of "))) for row in rows]
    return f"{sum(n for n, _ in parts):,} of {sum(m for _, m in parts):,}"


def _missing(row: list[str]) -> int:
    applies, of = map(int, row[2].split(" of "))
    return of - applies


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
    parser.add_argument("--jobs", type=int, default=1, help="processes")
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
    wanted = [(kind, severity) for kind in kinds for severity in given.severities]
    rows, failed = rows_of(wanted, lambda one: one_kind(domain, *one, tasks, cleans, given.seed), given.jobs)
    taken = time.perf_counter() - began
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout
    page = f"""# BFCL under action perturbations

Written by `python bench/bfcl.py --seed {given.seed} --severities {" ".join(map(str, given.severities))}\
{f" --every {given.every}" if given.every > 1 else ""} --jobs {given.jobs}` on {date.today():%-d %B %Y}, at commit
{commit.strip() or "unknown"}; bfcl-eval {version("bfcl-eval")}, Python {platform.python_version()}. How the benchmark
becomes a domain: [benchmarks.md](../benchmarks.md).

## Clean

{len(cleans)} of {len(tasks)} golds pass its own checker through a session without layers, certified, with
{calls:,} calls in {seconds:.1f} s; loading the benchmark and finding out which tools write took {loaded:.1f} s.
{"Not certified: " + "; ".join(failures) if failures else ""}
## Re-derived and stale

For every task the first draw of one layer is taken as it falls, before any law is asked, so nothing here passes by
construction:

- Applies to: the kind finds something to bite on. Where it does not, the task is in no other column; why is told below.
- Re-derived: the gold walked through the layer, judged by the checker of bfcl-eval. One that does not get through, or
  that the checker fails, is missing from the first number.
- Certified: the draw keeps all our laws as well ([laws.md](../laws.md)), which are stricter than the checker; "laws
  broken" counts the others by the first law they break. A run draws up to four times before it passes over a task:
  "within four draws" is how many it then has.
- Stale: the recorded gold, sent as it stands. It passes where a layer only adds something, or changes what the gold
  does not use. The last but one column counts only the tasks in which the layer changes the name or the parameters of
  every call of the gold.

Seconds are those of one process and include drawing, walking, certifying and judging both.

{table(HEAD, rows)}

In all {total(rows, 3)} re-derived golds pass the checker, and {total(rows, 7)} stale ones.

The whole took {taken / 60:.1f} minutes with {given.jobs} processes.

### Re-derived golds that fail

{chr(10).join(f"- {one}" for one in failed) or "None."}

### Where a kind does not apply

{idle_kinds(rows, kinds)}

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
