"""How many draws are certified, how many refused and for which law: every kind alone, and random stacks.

python bench/certificates.py > docs/results/certificates.md
"""

from __future__ import annotations

import argparse
import datetime
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field

from crosswind import __version__
from crosswind.base.errors import CannotPerturb, Unfair
from crosswind.core.domain import Domain
from crosswind.core.draw import draw
from crosswind.core.flow import rng_for
from crosswind.core.perturbation import SEVERITIES
from crosswind.core.registry import domains, perturbations
from crosswind.episodes.recipe import random_kinds
from crosswind.episodes.schedule import tasks
from crosswind.words.held_out import HELD_OUT

HEAD = """# Certificates

A draw is tried up to four times; each time a law is broken counts as a refusal. A kind that finds nothing to bite on in
a task, or that does not stack with another of its group, was not fair to try and is counted apart.

- command: `python bench/certificates.py --tasks {tasks} --stacks {stacks} --seed {seed}`
- crosswind {version}, commit {commit}, {date}
"""


@dataclass(slots=True)
class Tally:
    certified: int = 0
    refused: int = 0  # draws that broke a law, of those fair to try
    dead: int = 0  # no fair draw in four attempts
    left_out: int = 0  # nothing to bite on, or excluded
    laws: Counter[str] = field(default_factory=Counter)

    @property
    def rate(self) -> float:
        tried = self.certified + self.refused
        return 100 * self.refused / tried if tried else 0.0


def alone(domain: Domain, kind: str, severity: int, count: int, seed: int, tally: Tally) -> None:
    """`count` tasks with one kind."""
    for looked, task in enumerate(tasks(domain, seed)):
        if looked == count:
            return
        try:
            refused = draw(domain, task, [kind], seed, severity=severity).refused
            tally.certified += 1
        except CannotPerturb as cannot:
            if not cannot.applies:
                tally.left_out += 1
                continue
            tally.dead += 1
            refused = (Unfair(cannot.law, ""),) * 4
        tally.refused += len(refused)
        tally.laws.update(unfair.law for unfair in refused)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=48, help="tasks per domain, kind and severity (default: 48)")
    parser.add_argument("--stacks", type=int, default=1000, help="random stacks per domain (default: 1000)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    facts = {"tasks": args.tasks, "stacks": args.stacks, "seed": args.seed, "version": __version__}
    print(HEAD.format(**facts, commit=commit or "unknown", date=datetime.date.today().isoformat()))
    print("## Every kind alone, all domains and severities\n")
    print("| kind | domains | certified | refused | without a fair draw | does not apply | refused at 3, % |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for kind in perturbations.names():
        print("alone", kind, file=sys.stderr)
        total, at_three, places = Tally(), Tally(), 0
        for name in domains.names():
            before = total.certified
            for severity in SEVERITIES:
                alone(domains[name], kind, severity, args.tasks, args.seed, total)
            alone(domains[name], kind, 3, args.tasks, args.seed + 500, at_three)
            places += total.certified > before
        held = " (held out)" if kind in HELD_OUT else ""
        row = (kind + held, places, total.certified, total.refused, total.dead, total.left_out, f"{at_three.rate:.1f}")
        print(f"| {' | '.join(map(str, row))} |")
    stacks(args.stacks, args.seed)


def stacks(count: int, seed: int) -> None:
    """Random stacks of one to five kinds at severity 3."""
    each: dict[str, Tally] = {kind: Tally() for kind in perturbations.names()}
    whole, sizes = Tally(), Counter[int]()
    for name in domains.names():
        print("stacks", name, file=sys.stderr)
        for n, task in enumerate(tasks(domains[name], seed + 10_000)):
            if n == count:
                break
            wanted = random_kinds(rng_for("certificates", seed, name, n), 5)
            refused: tuple[Unfair, ...] = ()
            try:
                drawn = draw(domains[name], task, wanted, seed, strict=False)
                kinds, refused = [layer.kind for layer in drawn.layers], drawn.refused
                sizes[len(kinds)] += 1
                whole.certified += 1
            except CannotPerturb as cannot:
                kinds, refused = wanted, (Unfair(cannot.law, ""),) * 4
                whole.dead += 1
            whole.refused += len(refused)
            whole.laws.update(unfair.law for unfair in refused)
            for kind in wanted:
                tally = each[kind]
                if kind not in kinds:
                    tally.left_out += 1
                    continue
                tally.certified += bool(kinds)
                tally.refused += len(refused)
    print(f"\n## Random stacks of up to five kinds, severity 3, {count} in each domain\n")
    laws = ", ".join(f"{law} {n}" for law, n in whole.laws.most_common()) or "none"
    shape = ", ".join(f"{n} of {size}" for size, n in sorted(sizes.items()))
    print(f"{whole.certified} certified ({shape}), {whole.dead} without a fair draw in four attempts.")
    print(f"Draws that broke a law: {whole.refused} ({whole.rate:.2f} %); by law: {laws}.\n")
    print("| kind | in stacks | left out | refused draws of stacks with it | % |")
    print("| --- | --- | --- | --- | --- |")
    for kind, tally in each.items():
        print(f"| {kind} | {tally.certified} | {tally.left_out} | {tally.refused} | {tally.rate:.2f} |")


if __name__ == "__main__":
    main()
