"""How many kinds work as releases, and how fast stream episodes are drawn beside single draws.

python bench/streams.py
"""

from __future__ import annotations

import time
from contextlib import suppress

from crosswind.base.errors import CannotPerturb, Unfair
from crosswind.core.draw import draw, parse_kind
from crosswind.core.flow import rng_for
from crosswind.core.registry import domains, perturbations
from crosswind.core.release import Chain, probes_of
from crosswind.episodes.stream import Timeline, plans

TRIES, EPISODES = 3, 120


def kinds() -> None:
    """For each kind the domains in which it was drawn as a release, at severity 3."""
    probes = {name: probes_of(domains[name]) for name in domains.names()}
    for kind in perturbations.names():
        works, why = [], ""
        for name, tasks in probes.items():
            for attempt in range(TRIES):
                try:
                    Chain(tasks, {kind: 3}).add((), kind, rng_for("bench", attempt, kind))
                    works.append(name)
                    break
                except (Unfair, CannotPerturb) as cannot:
                    why = str(cannot)
        print(
            f"| {kind} | {perturbations[kind].axis} | {len(works)} | {why[:110] if len(works) < len(probes) else ''} |"
        )


def speed() -> None:
    """Episodes of `evolving` drawn per second, and single draws of the same kinds over the same tasks."""
    for name in domains.names():
        timeline = Timeline(plans["evolving"], name, 0, 0)
        began = time.perf_counter()
        made = [timeline.episode(n, ()) for n in range(EPISODES)]
        stream = EPISODES / (time.perf_counter() - began)
        severity = dict(map(parse_kind, plans["evolving"].kinds))
        began, count = time.perf_counter(), 0
        for episode in made:
            wanted = [(layer.kind, severity.get(layer.kind, 2)) for layer in episode.drawn.layers]
            base = episode.drawn.base
            task = timeline.domain.task(base.family, base.seed, size=base.size, split=base.split)
            with suppress(CannotPerturb):  # a draw that finds nothing fair is not counted
                draw(timeline.domain, task, wanted, 0, strict=False)
                count += 1
        single = count / (time.perf_counter() - began)
        print(f"| {name} | {stream:.0f} | {single:.0f} | {stream / single:.2f} |")


if __name__ == "__main__":
    kinds()
    speed()
