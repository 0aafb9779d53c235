"""How often the gate is wrong, and how often it cannot tell: simulated runs of an agent that is known.

python bench/gate_power.py > docs/results/gate_power.md
python bench/gate_power.py --repetitions 200        # as few as the claim is about
"""

from __future__ import annotations

import argparse
import datetime
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from crosswind import __version__
from crosswind.core.registry import perturbations
from crosswind.core.types import TIERS
from crosswind.episodes.record import Record
from crosswind.episodes.schedule import key_of, pair_of
from crosswind.gate.decision import decide
from crosswind.gate.gate import examine, parse_rule
from crosswind.metrics.stats import wilson

HEAD = """# How often the gate is wrong

Runs of agents whose true success is known, judged by the gate. A task has a chance of its own to be solved, drawn from
a beta distribution with the mean given; *luck* is how much the outcome of one task varies from run to run: "some" is
Beta(2m, 2 - 2m), where most tasks are nearly always or nearly never solved, "much" is Beta(10m, 10 - 10m), and "all"
gives every task the same chance, the worst case for a comparison of two runs.

- command: `python bench/gate_power.py --repetitions {repetitions} --seed {seed}`
- crosswind {version}, commit {commit}, {date}; in brackets the 95 % interval of the share (Wilson)
"""
LUCK: dict[str, float | None] = {"some": 2.0, "much": 10.0, "all": None}
Outcomes = tuple[list[bool], list[bool], list[str]]


@dataclass(frozen=True, slots=True)
class Case:
    """An agent in two runs, and what the gate allows."""

    n: int  # pairs
    mean: float  # chance of success before, over tasks
    fall: float  # true difference
    most: float  # allowed drop
    luck: str
    trials: int = 1


def play(case: Case, rng: Random) -> Outcomes:
    """Outcomes of both runs, and the tasks they belong to."""
    spread = LUCK[case.luck]
    before, after, tasks = [], [], []
    for i in range(case.n // case.trials):
        first = case.mean if spread is None else rng.betavariate(spread * case.mean, spread * (1 - case.mean))
        second = first * (1 - case.fall / case.mean)
        for _ in range(case.trials):
            before.append(rng.random() < first)
            after.append(rng.random() < second)
            tasks.append(f"toy/toy/test/{i}")
    return before, after, tasks


def by_decide(case: Case, rng: Random) -> str:
    before, after, tasks = play(case, rng)
    return decide(before, after, case.most, tasks=tasks).verdict


def by_examine(case: Case, rng: Random) -> str:
    """The whole gate, with a rule for each tier and one for all; tasks fall to the tiers in turn."""
    kinds = [next(k for k in perturbations.names() if perturbations[k].tier == tier) for tier in TIERS]
    before, after, tasks = play(case, rng)
    then, now = _records(before, tasks, kinds), _records(after, tasks, kinds)
    rules = [parse_rule(f"tier={case.most}"), parse_rule(f"all={case.most}")]
    return examine(now, rules, baseline=then, min_clean=0).verdict


def _records(outcomes: Sequence[bool], tasks: Sequence[str], kinds: Sequence[str]) -> list[Record]:
    """Shifted episodes with the outcomes given and nothing else of interest."""
    seen: Counter[str] = Counter()
    out = []
    for passed, task in zip(outcomes, tasks, strict=True):
        kind, trial = kinds[int(task.rpartition("/")[2]) % len(kinds)], seen[task]
        seen[task] += 1
        out.append(
            Record(
                key=key_of(task, kind, trial),
                pair=pair_of(task, trial),
                task_id=task,
                domain="toy",
                family="toy",
                level=1,
                seed=0,
                trial=trial,
                condition=kind,
                severity=None,
                layers=({"kind": kind},),
                agent="simulated",
                outcome="pass" if passed else "fail",
                ended="answer",
                refuse=False,
                query="",
                policy="",
                tools=(),
                steps=(),
                final="",
            )
        )
    return out


def verdicts(case: Case, judge: Callable[[Case, Random], str], repetitions: int, seed: int) -> Counter[str]:
    """How often each verdict fell. Repetition i of a case is the same whatever the other cases are."""
    return Counter(judge(case, Random(f"{seed}/{case}/{i}")) for i in range(repetitions))


def share(count: int, n: int) -> str:
    low, high = wilson(count, n)
    return f"{100 * count / n:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def table(title: str, cases: Sequence[Case], judge: Callable[[Case, Random], str], repetitions: int, seed: int) -> None:
    print(f"\n## {title}\n")
    print("| pairs | trials | success | true fall | allowed | luck | fail % | pass % | inconclusive % |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for case in cases:
        found = verdicts(case, judge, repetitions, seed)
        shares = " | ".join(share(found[word], repetitions) for word in ("fail", "pass", "inconclusive"))
        print(
            f"| {case.n} | {case.trials} | {case.mean:g} | {case.fall:g} | {case.most:g} | {case.luck} | {shares} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    print(
        HEAD.format(
            repetitions=args.repetitions,
            seed=args.seed,
            version=__version__,
            commit=commit or "unknown",
            date=datetime.date.today(),
        )
    )
    means, allowed = (0.3, 0.6, 0.9), (0.0, 0.05, 0.1)
    same = [Case(100, mean, 0, most, luck) for luck in LUCK for mean in means for most in allowed]
    table("A/A: two runs of an unchanged agent", same, by_decide, args.repetitions, args.seed)
    fallen = [Case(200, mean, 0.2, most, luck) for luck in LUCK for mean in means for most in allowed]
    table("Power: a true fall of 20 points", fallen, by_decide, args.repetitions, args.seed)
    edge = [Case(n, 0.7, 0.1, 0.1, luck) for n in (50, 100, 200, 400) for luck in LUCK]
    table("At the edge: the true fall is just what is allowed", edge, by_decide, args.repetitions, args.seed)
    several = [
        Case(n, 0.6, fall, 0.1, luck, trials)
        for trials in (1, 4)
        for n, fall in ((100, 0.0), (200, 0.2), (400, 0.2))
        for luck in LUCK
    ]
    fewer = min(args.repetitions, 500)
    title = f"The whole gate: a rule for each of four tiers and one for all, against a baseline ({fewer} repetitions)"
    table(title, several, by_examine, fewer, args.seed)


if __name__ == "__main__":
    main()
