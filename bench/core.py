"""How fast the core is on one core of one machine: certified draws, and an agent's calls through the layers.

Four parts, each in every domain that is registered:
  stacks  draws/s and calls/s under stacks of five kinds, over as many tasks of each level
  sizes   the same with a thousand, ten thousand and a hundred thousand entities in the world
  layers  the same with none to eight layers, on tasks to which all eight kinds apply
  bfcl    calls/s beside the gold replay of bfcl-eval, in turns (A B A B ...), as a ratio

Every figure is the median over the rounds, with the least and the greatest. Each round measures every case once, so a
busy minute touches all of them. Seconds are those of the processor: nothing here waits, so on a quiet machine they are
those of the clock. docs/bench.md tells more.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import subprocess
import sys
import time
import venv
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from itertools import count, islice
from pathlib import Path
from statistics import fmean, median
from typing import Any

from crosswind import __version__
from crosswind.base.errors import CannotPerturb
from crosswind.core.domain import SIZE, Domain
from crosswind.core.draw import Drawn, draw
from crosswind.core.registry import domains
from crosswind.core.session import Session
from crosswind.core.types import SAY, Task

PARTS = ("stacks", "sizes", "layers", "bfcl")
STACKS = {
    "none": (),
    "mild": ("underspecified", "paged_results", "transient_error", "semantic_rename", "format_switch"),
    "hard": ("changed_mind", "dependency_inversion", "confirm_before_write", "lost_acknowledgement", "format_switch"),
    "deep": ("underspecified", "dependency_inversion", "confirm_before_write", "lost_acknowledgement", "format_switch"),
}
EIGHT = (
    *("underspecified", "dependency_inversion", "paged_results", "confirm_before_write"),
    *("transient_error", "lost_acknowledgement", "semantic_rename", "format_switch"),
)
SIZES = (1_000, 10_000, 100_000)
BFCL = ("bfcl-eval==2026.3.23", "mpmath==1.3.0")  # all that its multi-turn APIs import; the rest is for models
CALLS = 2_500  # calls in one measurement at least

EXAMPLES = """examples:
  python bench/core.py                             everything; some minutes
  python bench/core.py --parts stacks --domains poi
  python bench/core.py --rounds 1 --tasks 12       a look whether it runs; the figures mean little
  python bench/core.py --json figures.json         the table, and every round's figure in a file
"""


def say(text: str) -> None:
    """Progress, for anyone who waits."""
    print(text, file=sys.stderr, flush=True)


# ---------------------------------------------------------------- what is measured


@dataclass(slots=True)
class Case:
    """Tasks under a stack, with their draws made once, and the figures of each round."""

    part: str
    domain: Domain
    label: str
    kinds: tuple[str, ...]
    tasks: list[Task]
    draws: list[Drawn] = field(default_factory=list)
    figures: dict[str, list[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.draws = [drawn for task in self.tasks if (drawn := attempt(self.domain, task, self.kinds))]
        for drawn in self.draws:
            session = new_session(drawn)
            replay(session, drawn)
            if [step.result for step in session.steps] != [step.result for step in drawn.certificate.gold.steps]:
                raise SystemExit(f"{drawn.base.id}: replaying the gold calls does not give the gold results")

    @property
    def levels(self) -> list[int]:
        """How many tasks of level 1, of level 2, of level 3."""
        found = Counter(self.domain.family(task).level for task in self.tasks)
        return [found[level] for level in sorted({family.level for family in self.domain.families.values()})]

    @property
    def layers(self) -> float:
        """Layers in a stack, on the average: kinds that do not apply to a task are left out."""
        return fmean(len(drawn.layers) for drawn in self.draws) if self.draws else 0.0

    @property
    def steps(self) -> float:
        """Gold steps, on the average."""
        return fmean(len(drawn.certificate.gold.steps) for drawn in self.draws) if self.draws else 0.0

    @property
    def calls(self) -> int:
        """Tool calls in one replay of all golds."""
        return sum(step.call.tool != SAY for drawn in self.draws for step in drawn.certificate.gold.steps)

    def measure(self, name: str) -> None:
        """One round of one figure."""
        self.figures.setdefault(name, []).append(MEASURES[name](self))


def attempt(domain: Domain, task: Task, kinds: Sequence[str]) -> Drawn | None:
    """A certified stack of those kinds that apply, or None where no fair draw was found."""
    try:
        return draw(domain, task, kinds, task.seed, strict=False)
    except CannotPerturb:
        return None


def mixed(domain: Domain, *, size: int = SIZE) -> Iterator[Task]:
    """Tasks without end: the levels in turn, in each level its families in turn, each in a world of its own."""
    families: dict[int, list[str]] = {}
    for family in domain.families.values():
        families.setdefault(family.level, []).append(family.name)
    levels = [families[level] for level in sorted(families)]
    for seed in count():
        turn, level = divmod(seed, len(levels))
        yield domain.task(levels[level][turn % len(levels[level])], seed, size=size)


def all_apply(domain: Domain, kinds: Sequence[str], wanted: int) -> list[Task]:
    """The first tasks to which every kind applies, out of at most six times as many."""
    looked = islice(mixed(domain), 6 * wanted)
    found = (t for t in looked if (drawn := attempt(domain, t, kinds)) and len(drawn.layers) == len(kinds))
    return list(islice(found, wanted))


def new_session(drawn: Drawn) -> Session:
    return Session.of(drawn.domain, drawn.certificate.task, drawn.layers)


def replay(session: Session, drawn: Drawn) -> None:
    """Do what the oracle did, as an agent would: its calls, and its words to the user."""
    for step in drawn.certificate.gold.steps:
        if step.call.tool == SAY:
            session.say(step.call.args["text"])
        else:
            session.call(step.call)


def replay_all(sessions: Iterable[Session], draws: Sequence[Drawn]) -> None:
    for session, drawn in zip(sessions, draws, strict=True):
        replay(session, drawn)


# ---------------------------------------------------------------- with a clock


def cold() -> None:
    """Forget every derived row, name and reading of a text that crosswind keeps."""
    for module in [m for name, m in sys.modules.items() if name.split(".")[0] == "crosswind"]:
        for thing in list(vars(module).values()):
            if callable(clear := getattr(thing, "cache_clear", None)):
                clear()
    gc.collect()


def seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def draws_alone(case: Case) -> float:
    """Certified draws per second on tasks drawn beforehand, each in a world that nobody has looked at."""

    def work() -> None:
        for task in case.tasks:
            attempt(case.domain, task, case.kinds)

    cold()
    return len(case.draws) / seconds(work)


def draws_with_tasks(case: Case) -> float:
    """The same, and the drawing of the tasks."""

    def work() -> None:
        for task in case.tasks:
            again = case.domain.task(task.family, task.seed, size=task.size)
            attempt(case.domain, again, case.kinds)

    cold()
    return len(case.draws) / seconds(work)


def calls_alone(case: Case) -> float:
    """Gold calls per second through sessions built beforehand, in worlds whose rows are known, as after a draw."""

    def one_pass() -> float:
        cold()
        pairs = [(new_session(drawn), new_session(drawn)) for drawn in case.draws]  # the two share their rows
        replay_all((first for first, _ in pairs), case.draws)
        sessions = [second for _, second in pairs]
        gc.collect()
        return seconds(lambda: replay_all(sessions, case.draws))

    return calls_in(case, one_pass)


def calls_with_rows(case: Case) -> float:
    """The same in worlds that nobody has looked at: rows are derived as they are called for."""

    def one_pass() -> float:
        cold()
        sessions = [new_session(drawn) for drawn in case.draws]
        return seconds(lambda: replay_all(sessions, case.draws))

    return calls_in(case, one_pass)


def calls_with_sessions(case: Case) -> float:
    """The same, and the building of the sessions: everything from nothing."""

    def one_pass() -> float:
        cold()
        return seconds(lambda: replay_all(map(new_session, case.draws), case.draws))

    return calls_in(case, one_pass)


def calls_in(case: Case, one_pass: Callable[[], float]) -> float:
    """Calls per second over as many replays of all golds as make enough calls to be timed."""
    passes = -(-CALLS // case.calls)
    return passes * case.calls / sum(one_pass() for _ in range(passes))


READY, WHOLE = "calls/s", "calls/s + rows + session"
MEASURES: dict[str, Callable[[Case], float]] = {
    "draws/s": draws_alone,
    "draws/s + task": draws_with_tasks,
    READY: calls_alone,
    "calls/s + rows": calls_with_rows,
    WHOLE: calls_with_sessions,
}


# ---------------------------------------------------------------- the parts


def stack_cases(domain: Domain, tasks: int) -> Iterator[Case]:
    even = list(islice(mixed(domain), tasks))
    for name in ("mild", "hard", "deep"):
        yield Case("stacks", domain, f"{name}, all tasks", STACKS[name], even)
        yield Case("stacks", domain, f"{name}, all five apply", STACKS[name], all_apply(domain, STACKS[name], tasks))


def size_cases(domain: Domain, tasks: int) -> Iterator[Case]:
    for size in SIZES:
        even = list(islice(mixed(domain, size=size), tasks))
        yield Case("sizes", domain, f"mild, {size:,} entities", STACKS["mild"], even)


def layer_cases(domain: Domain, tasks: int) -> Iterator[Case]:
    found = all_apply(domain, EIGHT, tasks)
    for n in range(len(EIGHT) + 1):
        yield Case("layers", domain, f"{n} layers" if n != 1 else "1 layer", EIGHT[:n], found)


def bfcl_cases(domain: Domain, tasks: int) -> Iterator[Case]:
    even = list(islice(mixed(domain), tasks))
    for name in ("none", "mild", "hard"):
        yield Case("bfcl", domain, name, STACKS[name], even)


def cases_of(part: Callable[[Domain, int], Iterator[Case]], names: Iterable[str], tasks: int) -> list[Case]:
    return [case for name in names for case in part(domains[name], tasks)]


def settle() -> None:
    """Keep what was drawn out of the garbage collector's rounds, where it would weigh on whatever is timed."""
    gc.collect()
    gc.freeze()


def run(title: str, cases: Sequence[Case], rounds: int) -> None:
    """Each round measures every figure of every case once."""
    settle()
    for n in range(rounds):
        say(f"{title}: round {n + 1} of {rounds}")
        for case in cases:
            for name in MEASURES if case.draws else ():
                case.measure(name)


# ---------------------------------------------------------------- bfcl-eval


def bfcl_python(folder: Path) -> Path | None:
    """The interpreter of an environment that holds bfcl-eval, made on first use; None where that is impossible."""
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    check = [str(python), "-I", "-c", "import bfcl_eval, mpmath"]
    if python.exists() and subprocess.run(check, capture_output=True).returncode == 0:
        return python
    say(f"bfcl: installing {' and '.join(BFCL)} into an environment of their own")
    try:
        venv.create(folder, with_pip=True, clear=(folder / "pyvenv.cfg").exists())
        install = ("-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", *BFCL)
        subprocess.run([str(python), *install], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        say(f"bfcl: left out, since it cannot be installed: {last_line(error)}")
        return None
    return python


def last_line(error: Exception) -> str:
    """The last thing that a failed command said, or what went wrong without one."""
    return str(getattr(error, "stderr", None) or error).strip().splitlines()[-1]


BESIDE = (  # ours, theirs, what the ratio is called, what theirs took
    (READY, "bfcl calls/s", "ratio", "seconds_built"),
    (WHOLE, "bfcl calls/s + instances", "ratio, all included", "seconds"),
)


def run_beside_bfcl(cases: Sequence[Case], rounds: int, python: Path) -> dict[str, int]:
    """Measure ours, theirs, ours, theirs; what comes back says how much theirs is."""
    runner = Path(__file__).with_name("bfcl_replay.py")
    counts: dict[str, int] = {}
    settle()
    for n in range(rounds):
        say(f"bfcl: round {n + 1} of {rounds}")
        for case in cases:
            for name in (READY, WHOLE):
                case.measure(name)
            output = subprocess.run([python, "-I", runner], check=True, capture_output=True, text=True).stdout
            figures = json.loads(output)
            counts = {key: figures[key] for key in ("golds", "calls", "raised")}
            for ours, theirs, ratio, took in BESIDE:
                rate = figures["calls"] / figures[took]
                case.figures.setdefault(theirs, []).append(rate)
                case.figures.setdefault(ratio, []).append(case.figures[ours][-1] / rate)
    return counts


# ---------------------------------------------------------------- the report


def cpu_model() -> str:
    """What the processor calls itself, as far as the system tells."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


@dataclass(frozen=True, slots=True)
class Setting:
    """What the figures depend on beside the code."""

    crosswind: str
    date: str
    python: str
    cpu: str
    cores: int
    load_at_start: tuple[float, ...]
    rounds: int
    tasks: int

    def line(self) -> str:
        load = " ".join(f"{x:.2f}" for x in self.load_at_start) or "unknown"
        return (
            f"crosswind {self.crosswind}, {self.date}, {self.python}, {self.cpu} ({self.cores} cores, one used); "
            f"load at start {load}; {self.tasks} tasks, median (min to max) of {self.rounds} rounds"
        )


def setting(rounds: int, tasks: int) -> Setting:
    load = os.getloadavg() if hasattr(os, "getloadavg") else ()
    python = f"{platform.python_implementation()} {platform.python_version()}"
    today = date.today().isoformat()
    return Setting(__version__, today, python, cpu_model(), os.cpu_count() or 1, load, rounds, tasks)


def shown(figures: Sequence[float]) -> str:
    """A median with its range, in as many digits as mean something."""
    if not figures:
        return "no such task"
    form = "{:,.0f}" if median(figures) >= 20 else "{:.2f}"
    middle, least, most = (form.format(x) for x in (median(figures), min(figures), max(figures)))
    return f"{middle} ({least} to {most})"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown; all columns but the first two hold figures."""
    rule = ["---" if i < 2 else "---:" for i in range(len(head))]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))


def case_table(cases: Iterable[Case]) -> str:
    """One row for each case: what it is made of, and its figures."""
    head = ("domain", "case", "tasks of level 1/2/3", "layers", "gold steps", *MEASURES)
    rows = []
    for case in cases:
        levels = "/".join(map(str, case.levels))
        figures = (shown(case.figures.get(name, ())) for name in MEASURES)
        rows.append((case.domain.name, case.label, levels, f"{case.layers:.2f}", f"{case.steps:.1f}", *figures))
    return table(head, rows)


def bfcl_table(cases: Iterable[Case]) -> str:
    names = [name for ours, theirs, ratio, _ in BESIDE for name in (ours, theirs, ratio)]
    rows = ((c.domain.name, c.label, f"{c.layers:.2f}", *(shown(c.figures[n]) for n in names)) for c in cases)
    return table(("domain", "stack", "layers", *names), rows)


def as_data(case: Case) -> dict[str, Any]:
    """A case as the JSON file holds it."""
    return {
        "part": case.part,
        "domain": case.domain.name,
        "case": case.label,
        "kinds": case.kinds,
        "sizes": sorted({task.size for task in case.tasks}),
        "tasks": len(case.tasks),
        "tasks_by_level": case.levels,
        "no_fair_draw": len(case.tasks) - len(case.draws),
        "layers": round(case.layers, 3),
        "gold_steps": round(case.steps, 3),
        "gold_calls": case.calls,
        "figures": {
            name: {"median": median(rounds), "min": min(rounds), "max": max(rounds), "rounds": rounds}
            for name, rounds in case.figures.items()
        },
    }


# ---------------------------------------------------------------- the command


def arguments() -> argparse.Namespace:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "crosswind"
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="what to measure (default: all)")
    parser.add_argument("--domains", nargs="+", choices=domains.names(), default=domains.names(), help="default: all")
    parser.add_argument("--rounds", type=positive, default=5, help="measurements of each figure (default: 5)")
    parser.add_argument("--tasks", type=positive, default=120, help="tasks in each case (default: 120)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there as well")
    parser.add_argument(
        "--bfcl-env",
        type=Path,
        metavar="DIR",
        default=cache / BFCL[0],
        help="the environment for bfcl-eval, made if it is not there (default: in the user's cache)",
    )
    args = parser.parse_args()
    if args.json and not args.json.absolute().parent.is_dir():
        parser.error(f"--json {args.json}: there is no folder {args.json.parent}; make it first")
    return args


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected 1 or more, got {number}")
    return number


def main() -> None:
    args = arguments()
    where = setting(args.rounds, args.tasks)
    print(where.line(), flush=True)
    every: list[Case] = []
    theirs: dict[str, int] = {}
    makers = {"stacks": stack_cases, "sizes": size_cases, "layers": layer_cases}
    for part, maker in makers.items():
        if part in args.parts:
            say(f"{part}: drawing the tasks")
            cases = cases_of(maker, args.domains, args.tasks)
            run(part, cases, args.rounds)
            print(f"\n## {part}\n\n{case_table(cases)}", flush=True)
            every += cases
    if "bfcl" in args.parts and (python := bfcl_python(args.bfcl_env)):
        cases = cases_of(bfcl_cases, args.domains, args.tasks)
        try:
            theirs = run_beside_bfcl(cases, args.rounds, python)
            counted = f"{BFCL[0]}: {theirs['calls']:,} calls of {theirs['golds']} golds, {theirs['raised']} raised"
            print(f"\n## bfcl\n\n{counted}\n\n{bfcl_table(cases)}", flush=True)
            every += cases
        except subprocess.CalledProcessError as error:
            say(f"bfcl: left out, since its replay fails: {last_line(error)}")
    if args.json:
        data = {"setting": asdict(where), "cases": [as_data(case) for case in every], "bfcl": theirs}
        args.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
