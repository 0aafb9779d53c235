"""Does the catalogue slow the core? Certified draws per CPU second here and in a checkout of the core, in turns.

git worktree add /tmp/core 26f0c2a && python bench/catalogue.py --core /tmp/core > docs/results/catalogue_speed.md
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

# stacks of kinds that both have; what a kind does at a severity has changed since, so steps of gold are counted as well
STACKS = {
    "no layer": [],
    "transient_error": ["transient_error"],
    "five layers, mild": ["underspecified", "semantic_rename", "transient_error", "paged_results", "format_switch"],
    "five layers, hard": [
        *("dependency_inversion", "confirm_before_write", "lost_acknowledgement", "identity_erasure", "changed_mind")
    ],
}
CHILD = """
import json, sys, time
from crosswind.core.draw import draw
from crosswind.core.registry import domains, perturbations
kinds, count = json.loads(sys.argv[1]), int(sys.argv[2])
registered = len(perturbations.names())
out = {}
for name in ("poi", "medical"):
    domain = domains[name]
    families = list(domain.families)[:18]
    tasks = [domain.task(families[i % 18], i) for i in range(count)]
    for task in tasks[:18]:
        draw(domain, task, kinds, 1, severity=2, strict=False)
    steps, began = 0, time.process_time()
    for task in tasks:
        steps += len(draw(domain, task, kinds, 1, severity=2, strict=False).certificate.gold.steps)
    seconds = time.process_time() - began
    out[name] = [count / seconds, steps / seconds]
print(json.dumps({"registered": registered, "rates": out}))
"""
HEAD = """# Speed of the core with the whole catalogue registered

Certified draws per CPU second, and steps of gold per CPU second, {count} tasks of the eighteen mirrored families,
severity 2, in turns over {rounds} rounds; medians. A ratio is that of the two runs of one round, which the machine's
moods meet alike: their median, and in brackets the least and the greatest. The same kinds do more at the same severity
than they did in the core (`paged_results` always turns pages, for instance), so draws with layers are longer; the ratio
of steps compares like with like.

- command: `python bench/catalogue.py --core CHECKOUT --rounds {rounds} --count {count}`
- core {core}, here {here}, {date}

| domain | stack | draws/s core | draws/s here | ratio | gold steps/s core | gold steps/s here | ratio |
| --- | --- | --- | --- | --- | --- | --- | --- |"""


def rates(source: Path, kinds: list[str], count: int) -> dict[str, list[float]]:
    command = [sys.executable, "-c", CHILD, json.dumps(kinds), str(count)]
    ran = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(source / "src")}, capture_output=True, text=True, check=True
    )
    found: dict[str, list[float]] = json.loads(ran.stdout)["rates"]
    return found


def commit(source: Path) -> str:
    command = ["git", "-C", str(source), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip() or "unknown"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--core", type=Path, required=True, help="a checkout of the core, before the catalogue")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--count", type=int, default=180)
    args = parser.parse_args()
    here = Path(__file__).parent.parent
    facts = {"rounds": args.rounds, "count": args.count, "core": commit(args.core), "here": commit(here)}
    print(HEAD.format(**facts, date=datetime.date.today().isoformat()))
    for stack, kinds in STACKS.items():
        found: dict[str, list[dict[str, list[float]]]] = {"core": [], "here": []}
        for n in range(args.rounds):
            print("round", n + 1, stack, file=sys.stderr)
            for which, source in (("core", args.core), ("here", here)):
                found[which].append(rates(source, kinds, args.count))
        for domain in ("poi", "medical"):
            cells = []
            for i in (0, 1):
                sides = [[one[domain][i] for one in found[which]] for which in ("core", "here")]
                ratios = [there / before for before, there in zip(*sides, strict=True)]
                cells += [f"{statistics.median(side):.0f}" for side in sides]
                cells.append(f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
            print(f"| {domain} | {stack} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
