"""Play AgentDojo's user tasks with scripted agents: clean, with calls that fail at first, with answers that get lost.

The agents make the calls of the ground truth and differ in what they do about an error. One gives up the call, one
repeats it once, one looks first whether it was done after all. Every verdict is that of the task's utility function;
exposure is the share of episodes in which the obstacle fired and the agent had a turn after it. Prints the page
docs/results/agentdojo.md.

    python bench/agentdojo.py --out docs/results/agentdojo.md
"""

from __future__ import annotations

import argparse
import asyncio
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path

from crosswind.agents._solver import Solver, read
from crosswind.base.errors import CannotPerturb
from crosswind.benchmarks.agentdojo import VERSION, Agentdojo, load
from crosswind.core.draw import Drawn, draw
from crosswind.core.types import Message, Task, ToolCall, ToolResult, Tools
from crosswind.episodes.play import judge, play

HERE = Path(__file__).resolve().parent
CONDITIONS = (
    ("clean", ()),
    ("transient_error", ("transient_error",)),
    ("lost_acknowledgement", ("lost_acknowledgement",)),
)


class Hasty(Solver):
    """Takes an error for an answer and goes on."""


class Retrying(Solver):
    """Repeats a call that failed, once."""

    repeats = 1


class Checking(Retrying):
    """The same, but where an error speaks of another tool, it asks that first whether the call was done."""

    shown: Tools = ()
    doubted: ToolCall | None = None  # while the other tool is asked

    async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
        self.shown = tools
        return await super().reply(chat, tools)

    def _next(self, last: Message) -> ToolCall:
        content = read(last.content) if last.role == "tool" else None
        if self.doubted is not None:
            call, self.doubted = self.doubted, None
            done = [e for e in content or () if isinstance(e, dict) and e["arguments"] == call.args and e["done"]]
            return self.flow.send(ToolResult(done[-1]["answer"])) if done else call
        if self.call and isinstance(content, dict) and set(content) == {"error", "message"}:
            named = [tool.name for tool in self.shown if tool.name in content["message"]]
            if named:
                self.doubted = self.call
                return ToolCall(named[0])
        return super()._next(last)


AGENTS = {"goes on": Hasty, "retries once": Retrying, "checks, then repeats": Checking}


@dataclass(slots=True)
class Tally:
    """How one agent fared under one condition."""

    applies: int = 0
    passed: int = 0  # of all tasks: where the condition does not apply, the clean episode counts
    passed_there: int = 0  # of those to which it applies
    exposed: int = 0


def drawn_for(domain: Agentdojo, task: Task, kinds: Sequence[str], seed: int) -> Drawn:
    """A task under a condition, or as it is where that does not apply."""
    try:
        return draw(domain, task, kinds, seed, severity=1)
    except CannotPerturb as cannot:
        if cannot.applies:
            raise
        return draw(domain, task, (), seed)


async def measure(domain: Agentdojo, tasks: Sequence[Task], seed: int) -> dict[tuple[str, str], Tally]:
    out: dict[tuple[str, str], Tally] = {}
    for condition, kinds in CONDITIONS:
        for task in tasks:
            drawn = drawn_for(domain, task, kinds, seed)
            for name, agent in AGENTS.items():
                tally = out.setdefault((condition, name), Tally())
                trajectory = await play(drawn, agent(drawn), name)
                passed = judge(trajectory, domain).outcome == "pass"
                tally.passed += passed
                if drawn.layers:
                    tally.applies += 1
                    tally.passed_there += passed
                    tally.exposed += all(r.fired and r.seen for r in trajectory.receipts)
    return out


def idle(domain: Agentdojo, tasks: Sequence[Task]) -> list[str]:
    """Tasks that pass when nothing is done and nothing said."""
    return [task.id for task in tasks if domain.judge(task, domain.state(task), "").outcome == "pass"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the page here as well")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    sys.path = [path for path in sys.path if Path(path).resolve() != HERE]  # this file has the package's name
    began = time.perf_counter()
    domain = load()
    tasks = [domain.task(name, n) for name, family in domain.families.items() for n in range(len(family.golds))]
    found = asyncio.run(measure(domain, tasks, given.seed))
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout
    rows = []
    for (condition, name), tally in found.items():
        there = f"{tally.passed_there} of {tally.applies}" if tally.applies else ""
        exposed = f"{tally.exposed} of {tally.applies}" if tally.applies else ""
        rows.append(f"| {condition} | {name} | {tally.passed} of {len(tasks)} | {there} | {exposed} |")
    free = idle(domain, tasks)
    sizes = ", ".join(f"{len(family.golds)} in `{name}`" for name, family in domain.families.items())
    page = f"""# AgentDojo under failing calls and lost answers

Written by `python bench/agentdojo.py --seed {given.seed}` on {date.today():%-d %B %Y}, at commit
{commit.strip() or "unknown"}; agentdojo {version("agentdojo")}, its benchmark {VERSION}, Python
{platform.python_version()}, {time.perf_counter() - began:.0f} s in one process. How the benchmark becomes a domain:
[benchmarks.md](../benchmarks.md).

{len(tasks)} user tasks: {sizes}.

Severity 1, one draw for each task. The agents make the calls of the ground truth and say its output; they differ in
what they do about an error. Verdicts are those of the tasks' utility functions. Where a condition does not apply to a
task (no call there writes anything that must not be done twice), its clean episode counts in the third column; the
fourth has only the tasks to which it applies. Exposed: the obstacle fired and the agent had a turn after it.

| condition | agent | passed | passed where it applies | exposed |
|---|---|---|---|---|
{chr(10).join(rows)}

An agent that does nothing and says nothing passes {len(free)} of {len(tasks)} tasks by their utility functions
({", ".join(f"`{one}`" for one in free) or "none"}): for these, passing says little.

The agent that goes on loses nothing by a lost answer, since the write was done and the next call of the ground truth
needs no result; that is a property of recorded solutions. Some utility functions let a second identical write pass.
"""
    print(page)
    if given.out:
        given.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
