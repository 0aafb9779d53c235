"""How much a catalogue of tools adds to a call, and how well its tools are found: python bench/tool_catalogue.py

For each size, tasks of every domain are drawn with `tool_catalogue`; the certified calls are replayed through a session
and the clean ones through another. Reported are the mean time of a call with what an agent is shown after it, what a
call costs more than a clean one, the bytes of the list of tools, and how many draws found every tool by words of the
request.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Sequence

from crosswind.base.errors import CannotPerturb
from crosswind.core.drawing import Drawn, draw_unaudited
from crosswind.core.perturbation import Perturbation
from crosswind.core.registry import domains
from crosswind.core.session import Session
from crosswind.core.types import SAY, Task, ToolCall

SIZES = {1: 100, 2: 200, 3: 400, 4: 700, 5: 1000}
REPEATS = 5


def seconds(drawn: Drawn, task: Task, layers: Sequence[Perturbation], calls: Sequence[ToolCall]) -> tuple[float, float]:
    """The least time of opening a session, and of a call in it with the list that is shown after it."""
    opened, made = [], []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        session = Session.of(drawn.domain, task, layers)
        session.tools()
        middle = time.perf_counter()
        for call in calls:
            session.call(call)
            session.tools()
        opened.append(middle - begin)
        made.append((time.perf_counter() - middle) / len(calls))
    return min(opened), min(made)


def calls_of(steps: Sequence[object]) -> list[ToolCall]:
    return [step.call for step in steps if step.call.tool != SAY]  # type: ignore[attr-defined]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=24, help="tasks of each domain and size")
    given = parser.parse_args()
    print(
        f"Python {platform.python_version()}, {given.tasks} tasks of each of {len(domains.names())} domains, seed 0.\n"
    )
    print("| tools besides | all found by words of the request | opening, ms | call, ms | more than clean, ms | "
          "95th percentile, ms | list shown, bytes |")  # fmt: skip
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for severity, size in SIZES.items():
        rows, more, made, tried, shown = [], [], 0, 0, []
        for domain in domains:
            if domain.hosted or not domain.grounds:
                continue
            names = list(domain.families)
            for n in range(given.tasks):
                tried += 1
                task = domain.task(names[n % len(names)], n)
                try:
                    drawn = draw_unaudited(domain, task, ["tool_catalogue"], 0, severity=severity)
                except CannotPerturb:
                    continue
                made += 1
                gold, clean = drawn.certificate.gold, drawn.certificate.clean
                with_it = seconds(drawn, drawn.certificate.task, drawn.layers, calls_of(gold.steps))
                without = seconds(drawn, task, (), calls_of(clean.steps))
                rows.append(with_it)
                more.append(with_it[1] - without[1])
                shown.append(len(json.dumps([tool.function() for tool in gold.session.tools()])))
        opening, call = (1e3 * statistics.mean(row[i] for row in rows) for i in (0, 1))
        extra, most = 1e3 * statistics.mean(more), 1e3 * statistics.quantiles(more, n=20)[-1]
        print(
            f"| {size:,} | {made} of {tried} | {opening:.2f} | {call:.2f} | {extra:.2f} | {most:.2f} | "
            f"{statistics.mean(shown):,.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
