"""How often the interval of the score holds the true score: simulated agents whose chances are known.

python bench/score_coverage.py > docs/results/score_coverage.md
"""

from __future__ import annotations

import argparse
import datetime
import subprocess
from itertools import product
from random import Random

from crosswind import __version__
from crosswind.core.types import Ended
from crosswind.episodes.record import Record
from crosswind.metrics.scores import LITTLE, score
from crosswind.metrics.stats import wilson

HEAD = """# How often the interval of the score holds the true score

Agents whose chances are known play shifted episodes: on a solvable task they succeed with chance S, else they refuse
falsely or answer wrongly; a task to refuse is refused with chance R. With a spread, each task has chances of its own
(Beta(10m, 10 - 10m)), and is played in several trials. The interval claims 95 %.

- command: `python bench/score_coverage.py --repetitions {repetitions} --seed {seed}`
- crosswind {version}, commit {commit}, {date}; in brackets the 95 % interval of the share (Wilson)

| solvable tasks | tasks to refuse | trials | S | F | R | true score | held by the interval, % | mean width |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"""
SPREAD = 10.0


def episode(task: int, trial: int, *, refuse: bool, outcome: bool, ended: Ended) -> Record:
    """A shifted episode with this outcome and nothing else of interest."""
    name = f"toy/{'refuse' if refuse else 'solve'}/test/{task}"
    return Record(
        key=f"{name}/{trial}",
        pair=f"{name}/{trial}",
        task_id=name,
        domain="toy",
        family="toy",
        level=1,
        seed=0,
        trial=trial,
        condition="typos",
        severity=None,
        layers=({"kind": "typos"},),
        agent="simulated",
        outcome="pass" if outcome else "fail",
        ended=ended,
        refuse=refuse,
        query="",
        policy="",
        tools=(),
        steps=(),
        final="",
    )


def played(counts: tuple[int, int, int], chances: tuple[float, float, float], rng: Random) -> list[Record]:
    solvable, to_refuse, trials = counts
    succeeds, refuses_falsely, refuses = chances

    def own(mean: float) -> float:
        varies = trials > 1 and 0 < mean < 1
        return rng.betavariate(SPREAD * mean, SPREAD * (1 - mean)) if varies else mean

    out = []
    for task in range(solvable):
        chance = own(succeeds)
        for trial in range(trials):
            passed = rng.random() < chance
            gives_up = not passed and rng.random() < refuses_falsely / (1 - succeeds)
            ended: Ended = "refusal" if gives_up else "answer"
            out.append(episode(task, trial, refuse=False, outcome=passed, ended=ended))
    for task in range(to_refuse):
        chance = own(refuses)
        for trial in range(trials):
            right = rng.random() < chance
            out.append(episode(task, trial, refuse=True, outcome=right, ended="refusal" if right else "answer"))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    about = {"version": __version__, "commit": commit.stdout.strip() or "unknown", "date": datetime.date.today()}
    print(HEAD.format(repetitions=args.repetitions, seed=args.seed, **about))
    agents = [(0.1, 0.1, 0.3), (0.3, 0.3, 0.8), (0.6, 0.1, 0.5), (0.9, 0.02, 0.9), (0.98, 0.01, 0.98)]
    for counts, chances in product([(40, 0, 1), (40, 10, 1), (150, 40, 1), (50, 15, 3), (600, 150, 1)], agents):
        succeeds, false, right = chances
        true = (succeeds - LITTLE) / (1 - LITTLE) * ((1 + right - false) / 2 if counts[1] else 1)
        held, width = 0, 0.0
        for n in range(args.repetitions):
            found = score(played(counts, chances, Random(f"{args.seed}/{counts}/{chances}/{n}")))
            assert found is not None
            held += found.low <= true <= found.high
            width += found.high - found.low
        low, high = (100 * bound for bound in wilson(held, args.repetitions))
        figures = [*counts, succeeds, false, right if counts[1] else "–", f"{true:.2f}"]
        share = f"{100 * held / args.repetitions:.1f} [{low:.1f}, {high:.1f}]"
        print("| " + " | ".join(map(str, [*figures, share, f"{width / args.repetitions:.2f}"])) + " |", flush=True)


if __name__ == "__main__":
    main()
