"""How many kinds work as releases, and how fast stream episodes are drawn beside single draws.

python bench/streams.py kinds
python bench/streams.py speed
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress

from crosswind.base.errors import CannotDraw, CannotPerturb, Unfair
from crosswind.core.draw import draw, parse_kind
from crosswind.core.flow import rng_for
from crosswind.core.oracle import Walks
from crosswind.core.registry import domains, perturbations
from crosswind.core.release import Chain, probes_of
from crosswind.episodes.stream import StreamPlan, Timeline

TRIES, SEVERITY, EPISODES = 3, 3, 120
EVOLVING = StreamPlan(name="evolving")


def why_not(probes: Sequence[Walks], kind: str) -> str:
    """Why no draw of a kind is fair as a release over these tasks; empty where one is."""
    why = ""
    for attempt in range(TRIES):
        try:
            Chain(probes, {kind: SEVERITY}).add((), kind, rng_for("bench", attempt, kind))
        except (Unfair, CannotPerturb) as cannot:
            why = str(cannot)
        else:
            return ""
    return why


def kinds() -> None:
    """For each kind the domains in which it was drawn as a release; docs/streams.md has the table."""
    probes = {name: probes_of(domains[name]) for name in domains.names()}
    for kind in perturbations.names():
        found = {name: why_not(tasks, kind) for name, tasks in probes.items()}
        works = [name for name, why in found.items() if not why]
        print(f"| {kind} | {', '.join(works) or 'none'} | {next(filter(None, found.values()), '')[:110]} |", flush=True)


def speed() -> None:
    """Episodes of `evolving` drawn per second of the processor, and single draws of the same kinds over its tasks.

    Each side runs in a process of its own: the one that comes second would find the rows of the worlds made.
    """
    for name in domains.names():
        rates = []
        for side in ("stream", "single"):
            done = subprocess.run([sys.executable, __file__, side, name], capture_output=True, text=True, check=True)
            rates.append([float(rate) for rate in done.stdout.split()])
        ratios = [ours / theirs for ours, theirs in zip(*rates, strict=True)]
        print(f"| {name} | {rates[0][0]:.0f} | {rates[1][0]:.0f} | {ratios[0]:.2f} | {ratios[1]:.2f} |", flush=True)


def stream(timeline: Timeline) -> int:
    """Draw the episodes of a stream; how many there are."""
    for n in range(EPISODES):
        timeline.episode(n, ())
    return EPISODES


def single(timeline: Timeline) -> int:
    """Draw the same tasks with stacks of their own; how many were fair."""
    severity, count = dict(map(parse_kind, EVOLVING.kinds)), 0
    for n in range(EPISODES):
        stack = timeline.stacks[EVOLVING.version(n, ())]
        wanted = [(layer.kind, severity.get(layer.kind, 2)) for layer in stack]
        with suppress(CannotDraw, CannotPerturb):  # a draw that finds nothing fair is not counted
            draw(timeline.domain, timeline.decks[0].task(n), wanted, 0, strict=False)
            count += 1
    return count


def rates(side: str, name: str) -> None:
    """Draws per second of one side, first with no row of the worlds made, then with all."""
    timeline = Timeline(EVOLVING, name, 0, 0)
    draw(timeline.domain, timeline.decks[0].task(EPISODES), list(map(parse_kind, EVOLVING.kinds)), 0, strict=False)
    for _ in range(2):
        began = time.process_time()
        count = stream(timeline) if side == "stream" else single(timeline)
        print(count / (time.process_time() - began))


if __name__ == "__main__":
    if sys.argv[1:2] == ["kinds"]:
        kinds()
    elif sys.argv[1:2] == ["speed"]:
        speed()
    else:
        rates(*sys.argv[1:3])
