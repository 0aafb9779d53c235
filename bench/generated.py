"""Certify generated domains under random stacks, and let agents that know nothing play them.

    python bench/generated.py --domains 2000 --first 50000 --workers 16

Of each domain some tasks are drawn under no layer and under random stacks of up to four kinds. The oracle must pass
every one; `idle`, `echo` and `refuser` must pass no task that can be solved. Draws are timed beside those of the six
domains of the package, in the processor's seconds of one process, with every domain drawn before.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from crosswind.base.errors import CannotDraw, CannotPerturb
from crosswind.core.draw import Drawn, draw
from crosswind.core.flow import rng_for
from crosswind.core.registry import agents, domains, perturbations
from crosswind.core.types import SPLITS, Split
from crosswind.episodes.play import judge, play

AGENTS = ("oracle", "idle", "echo", "refuser")


def stacked(name: str, n: int, most: int) -> Drawn | None:
    """A task of a domain under a random stack, the first of every few under none."""
    domain, rng = domains[name], rng_for("bench generated", name, n)
    family = rng.choice([*domain.families])
    kinds = rng.sample(perturbations.names(), rng.randint(1, most)) if n % 4 else []
    try:
        split: Split = next((s for s in SPLITS if f":{s}-" in name), "test")
        task = domain.task(family, rng.getrandbits(31), split=split)
        return draw(domain, task, [(kind, rng.randint(1, 5)) for kind in kinds], n)
    except (CannotDraw, CannotPerturb):
        return None


def certified(name: str, tasks: int, most: int) -> Counter[str]:
    """What came of a domain: draws, and episodes passed by each agent, tasks to solve and to refuse apart."""
    out: Counter[str] = Counter(domains=1)
    began = time.perf_counter()
    domains[name]
    out["milliseconds to draw domains"] += round(1000 * (time.perf_counter() - began))
    for family in domains[name].declared.families.values():  # type: ignore[attr-defined]
        out[f"families of {sum(bool(step.call) for step in family.steps):2} calls"] += 1
    for n in range(tasks):
        drawn = stacked(name, n, most)
        if drawn is None:
            out["no fair draw"] += 1
            continue
        sort = "refuse" if drawn.certificate.task.refuse else "solve"
        out[f"draws to {sort}"] += 1
        out[f"stacks of {len(drawn.layers)}"] += 1
        for agent in AGENTS:
            trajectory = asyncio.run(play(drawn, agents[agent](drawn), agent))
            out[f"{agent} passed, to {sort}"] += judge(trajectory).outcome == "pass"
    return out


def speed(names: list[str], draws: int) -> float:
    """Clean and perturbed draws per second."""
    for name in names:
        stacked(name, 1, 2)
    began, made = time.process_time(), 0
    for n in range(draws):
        made += stacked(names[n % len(names)], n, 2) is not None
    return made / (time.process_time() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--domains", type=int, default=60, help="how many, spread over the three splits")
    parser.add_argument("--first", type=int, default=50_000, help="the first seed")
    parser.add_argument("--tasks", type=int, default=12, help="of each domain")
    parser.add_argument("--most", type=int, default=4, help="kinds in a stack")
    parser.add_argument("--speed", type=int, default=200, help="draws to time; 0: none")
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args()
    names = [f"generated:{SPLITS[n % 3]}-{args.first + n // 3}" for n in range(args.domains)]
    total: Counter[str] = Counter()
    if args.workers > 1:
        with ProcessPoolExecutor(args.workers) as pool:
            for one in pool.map(certified, names, [args.tasks] * len(names), [args.most] * len(names)):
                total += one
    else:
        for name in names:
            total += certified(name, args.tasks, args.most)
    told: dict[str, object] = dict(sorted(total.items()))
    if args.speed:
        generated, ours = speed(names[:12], args.speed), speed(domains.names(), args.speed)
        told["draws per second"] = {"generated": round(generated), "ours": round(ours), "ratio": generated / ours}
    print(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
