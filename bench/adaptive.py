"""Play agents without the wrapper `adaptive:`, with it, with each part alone and with each part off.

python bench/adaptive.py --tasks 4 --seed 0 > docs/results/adaptive.md
"""

from __future__ import annotations

import argparse
import datetime
import subprocess

from crosswind import __version__
from crosswind.cli.progress import RunDisplay
from crosswind.episodes.suite import suites
from crosswind.models.wrapping import PARTS
from crosswind.runs.baselines import Baseline, over_domains, sweep

HEAD = """# The wrapper `adaptive:`

Success in %, of the tasks that can be solved / of the tasks to refuse; the suite `full`, all domains together. The
agents are scripted and repair nothing by themselves, so what is gained is the wrapper's; a model that does the same by
itself gains less.

- command: `python bench/adaptive.py --tasks {tasks} --seed {seed}`
- crosswind {version}, commit {commit}, {date}
"""


def share(rows: list[Baseline], name: str) -> str:
    can, must_not = sum(r.n - r.refusals for r in rows), sum(r.refusals for r in rows)
    passed, right = sum(r.passed[name] for r in rows), sum(r.right[name] for r in rows)
    return f"{100 * passed / max(can, 1):.0f} / {100 * right / max(must_not, 1):.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=4, help="tasks per domain and condition (default: 4)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--agents", nargs="+", default=["one_shot", "memoriser"])
    args = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    suite = suites["full"].model_copy(update={"tasks": args.tasks})
    print(HEAD.format(**vars(args), version=__version__, commit=commit, date=datetime.date.today().isoformat()))
    first, *_ = args.agents
    alone = {f"{part} alone": f"adaptive:only={part}:{first}" for part in PARTS}
    without = {f"all but {part}": f"adaptive:off={part}:{first}" for part in PARTS}
    pairs = [name for agent in args.agents for name in (agent, f"adaptive:{agent}")]
    # an agent with some parts off goes by the list of those that are on
    named = {
        label: f"adaptive:only={','.join(p for p in PARTS if f'all but {p}' != label)}:{first}" for label in without
    }
    rows = over_domains(sweep(suite, [*pairs, *alone.values(), *named.values()], args.seed, RunDisplay()))
    print("| condition | tasks |", " | ".join(f"`{name}`" for name in pairs), "|")
    print("| --- | --- |", "--- | " * len(pairs))
    for row in [*rows]:
        print(f"| {row.condition} | {row.n} |", " | ".join(share([row], name) for name in pairs), "|")
    print(f"| **all** | {sum(r.n for r in rows)} |", " | ".join(share(rows, name) for name in pairs), "|")
    print(f"\n## Parts\n\n`{first}` over all conditions, and the conditions that a part moves by ten points or more.\n")
    print("| parts | success | better | worse |\n| --- | --- | --- | --- |")
    for base, labels in ((first, alone), (f"adaptive:{first}", named)):
        print(f"| {'none' if base == first else 'all'} | {share(rows, base)} | | |")
        for label, name in labels.items():
            moved = {r.condition: (r.passed[name] - r.passed[base]) / max(r.n - r.refusals, 1) for r in rows}
            up, down = ([c for c, d in moved.items() if sign * d >= 0.1] for sign in (1, -1))
            print(f"| {label} | {share(rows, name)} | {', '.join(up)} | {', '.join(down)} |")


if __name__ == "__main__":
    main()
