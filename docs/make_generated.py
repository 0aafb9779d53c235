"""Measure generated domains for docs/results/generated.md: `python docs/make_generated.py COUNT FIRST_SEED`."""

from __future__ import annotations

import sys
import time
from collections import Counter

from crosswind.authoring.checkup import check_domain
from crosswind.authoring.generated.domain import drawn, load
from crosswind.authoring.generated.tables import RedrawNeeded
from crosswind.core.registry import perturbations
from crosswind.core.types import SPLITS


def main(count: int, first_seed: int) -> None:
    first, seconds, lengths, tools = Counter[str](), 0.0, Counter[int](), list[int]()
    names = [f"generated:{split}-{seed}" for split in SPLITS for seed in range(first_seed, first_seed + count)]
    for name in names:
        try:
            drawn(name, 0)
            first["first draw passes"] += 1
        except RedrawNeeded as error:
            first[str(error).partition(": ")[2].partition(":")[0]] += 1
        start = time.perf_counter()
        domain = load(name)
        seconds += time.perf_counter() - start
        tools.append(len(domain.world_class.specs))
        for family in domain.declared.families.values():  # type: ignore[attr-defined]
            lengths[sum(bool(step.call) for step in family.steps)] += 1
    print(f"{len(names)} domains, {seconds / len(names):.2f} s each, {min(tools)} to {max(tools)} tools")
    print("first draws:", dict(first.most_common()))
    print("families by calls:", dict(sorted(lengths.items())))
    applies, passed = Counter[str](), 0
    judged = [f"generated:{split}-{seed}" for split in SPLITS for seed in range(first_seed, first_seed + 4)]
    for name in judged:
        found = check_domain(name, lambda *_: None)
        passed += found.passed
        refused = {line.name for line in found.lines if line.mark in ("no", "none")}
        kinds = [kind for kind in perturbations.names() if kind not in refused]
        applies.update(kinds)
        wrong = [f"{line.name}: {line.text}" for line in found.lines if line.mark == "no"]
        print(name, len(kinds), "of", len(perturbations.names()), "kinds apply", *wrong, flush=True)
    print(f"{passed} of {len(judged)} pass `crosswind check`")
    rare = {kind: applies[kind] for kind in perturbations.names() if applies[kind] < len(judged)}
    print(f"kinds that do not apply to all {len(judged)}:", rare)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
