"""What severity means: how often an agent fails that gets past each single obstacle nine times in ten.

python -m bench.severity --tasks 40 > docs/results/severity.md      (writes docs/results/severity.svg as well)
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from crosswind import __version__
from crosswind.base.errors import CannotPerturb
from crosswind.core.draw import draw
from crosswind.core.perturbation import SEVERITIES
from crosswind.core.registry import domains, perturbations
from crosswind.core.types import TIERS
from crosswind.episodes.play import judge, play
from crosswind.episodes.schedule import tasks
from crosswind.words.held_out import HELD_OUT
from tests.stumbler import COPES, Stumbler

PLOT = Path(__file__).parent.parent / "docs" / "results" / "severity.svg"
HEAD = """# What severity means

The agent `stumbler` knows every way round and gets past each single obstacle with probability {copes}; it never reads
the severity. It fails the more often the more obstacles there are, so its failures show if severity counts. A single
obstacle is what a kind's `difficulty` counts: a call that meets the layer, a wrong word, an added tool, a missing hint.
Each cell: failures in % of {n} or fewer certified draws over all domains, and the mean number of obstacles.

- command: `python -m bench.severity --tasks {tasks} --seed {seed}`
- crosswind {version}, commit {commit}, {date}

![Failures by severity](severity.svg)

| kind | tier | 1 | 2 | 3 | 4 | 5 | rises |
| --- | --- | --- | --- | --- | --- | --- | --- |"""


@dataclass(slots=True)
class Cell:
    draws: int = 0
    failed: int = 0
    difficulty: int = 0

    @property
    def rate(self) -> float:
        return 100 * self.failed / self.draws if self.draws else 0.0

    @property
    def mean(self) -> float:
        return self.difficulty / self.draws if self.draws else 0.0


async def measure(kind: str, severity: int, count: int, seed: int) -> Cell:
    """The same tasks at every severity, `count` in each domain."""
    cell = Cell()
    for name in domains.names():
        domain = domains[name]
        for looked, task in enumerate(tasks(domain, seed)):
            if looked == count:
                break
            try:
                drawn = draw(domain, task, [kind], seed, severity=severity)
            except CannotPerturb:
                continue
            cell.draws += 1
            cell.difficulty += drawn.layers[0].difficulty(drawn.certificate.gold.steps, 0)
            trajectory = await play(drawn, Stumbler(drawn), "stumbler")
            cell.failed += judge(trajectory, domain).outcome != "pass"
    return cell


def plot(figures: dict[str, list[Cell]]) -> str:
    """Small multiples, one per kind, ordered by tier."""
    wide, high, columns = 150, 92, 8
    kinds = sorted(figures, key=lambda k: (TIERS.index(perturbations[k].tier), k))
    rows = -(-len(kinds) // columns)
    colours = dict(zip(TIERS, ("#2a6f97", "#c8553d", "#588157", "#7b2d8b"), strict=True))
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{columns * wide + 20}" height="{rows * high + 60}" '
        'font-family="system-ui, sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
        '<text x="12" y="20" font-size="15">Failures (%) of an agent that copes with each obstacle nine times in ten, '
        "by severity 1 to 5</text>",
    ]
    for i, tier in enumerate(TIERS):
        out.append(f'<rect x="{12 + 150 * i}" y="30" width="10" height="10" fill="{colours[tier]}"/>')
        out.append(f'<text x="{26 + 150 * i}" y="39">{tier}</text>')
    for n, kind in enumerate(kinds):
        x, y = 12 + n % columns * wide, 52 + n // columns * high
        cells = figures[kind]
        colour = colours[perturbations[kind].tier]
        at = [(x + 8 + 28 * i, y + 70 - 0.52 * cell.rate) for i, cell in enumerate(cells)]
        out.append(f'<text x="{x}" y="{y + 12}">{kind}{" *" if kind in HELD_OUT else ""}</text>')
        out.append(f'<line x1="{x}" y1="{y + 70}" x2="{x + 128}" y2="{y + 70}" stroke="#bbb"/>')
        out.append(f'<line x1="{x}" y1="{y + 18}" x2="{x + 128}" y2="{y + 18}" stroke="#eee"/>')
        points = " ".join(f"{px:.1f},{py:.1f}" for px, py in at)
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="2.5" fill="{colour}"/>' for px, py in at]
        out.append(f'<text x="{at[0][0] - 6:.1f}" y="{at[0][1] - 5:.1f}" fill="#555">{cells[0].rate:.0f}</text>')
        out.append(f'<text x="{at[-1][0] - 6:.1f}" y="{at[-1][1] - 5:.1f}" fill="#555">{cells[-1].rate:.0f}</text>')
    out.append(f'<text x="12" y="{rows * high + 54}" fill="#555">* held out from training</text></svg>')
    return "\n".join(out) + "\n"


def rises(cells: list[Cell]) -> str:
    """Whether obstacles and failures rise from the first severity to the last, and whether they do at every step."""
    means, rates = [cell.mean for cell in cells], [cell.rate for cell in cells]
    if not (means[0] < means[-1] and rates[0] < rates[-1]):
        return "NO"
    steps = [what for what, row in (("obstacles", means), ("failures", rates)) if all(a < b for a, b in pairwise(row))]
    return f"yes; at every step: {' and '.join(steps)}" if steps else "yes"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=40, help="tasks looked at in each domain (default: 40)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", action="append", help="only this kind; may be repeated")
    args = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    figures: dict[str, list[Cell]] = {}
    for kind in args.kind or perturbations.names():
        print("measuring", kind, file=sys.stderr)
        figures[kind] = [asyncio.run(measure(kind, s, args.tasks, args.seed)) for s in SEVERITIES]
    most = max(cell.draws for cells in figures.values() for cell in cells)
    facts = {"copes": COPES, "n": most, "tasks": args.tasks, "seed": args.seed, "version": __version__}
    print(HEAD.format(**facts, commit=commit or "unknown", date=datetime.date.today().isoformat()))
    for kind, cells in figures.items():
        row = " | ".join(f"{c.rate:.0f} ({c.mean:.1f})" for c in cells)
        held = " (held out)" if kind in HELD_OUT else ""
        print(f"| {kind}{held} | {perturbations[kind].tier} | {row} | {rises(cells)} |")
    if not args.kind:
        PLOT.write_text(plot(figures), encoding="utf-8")


if __name__ == "__main__":
    main()
