"""The baseline agents over every domain and perturbation, and what stale gold is still worth, as a page of results.

python bench/baselines.py --tasks 216 > docs/results/baselines.md
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import subprocess

from crosswind import __version__
from crosswind.agents.memoriser import Memoriser
from crosswind.cli.baselines import as_markdown
from crosswind.cli.progress import RunDisplay
from crosswind.core.domain import Domain
from crosswind.core.draw import Drawn
from crosswind.core.registry import domains, perturbations
from crosswind.core.types import ToolSpec
from crosswind.episodes.play import judge, play
from crosswind.episodes.recipe import Choice
from crosswind.episodes.schedule import tasks, under
from crosswind.episodes.suite import Condition, suites
from crosswind.runs.baselines import sweep

AGENTS = ["oracle", "retrier", "one_shot", "obedient", "by_name", "by_description", "memoriser", "refuser", "idle"]
HEAD = """# The baseline agents

Success in %, of the tasks that can be solved / of the tasks to refuse, an even mix of the families of a domain,
severity {severity}; each condition takes the first tasks it applies to. The last condition is random stacks of up to
five kinds.

What must hold: the oracle passes all, idle none, the refuser exactly the tasks whose right end is a refusal, the
memoriser all clean and under renaming only refusals; `lost_acknowledgement` beats the retrier, `transient_error`
one_shot, `injected_instruction` the obedient, `semantic_trap` by_name, and `identity_erasure` leaves by_description
unharmed.

- command: `python bench/baselines.py --tasks {tasks} --seed {seed}`
- crosswind {version}, commit {commit}, {date}
"""
STALE = """
## Stale gold

The clean calls, sent to the perturbed session. Counted are draws in which a tool on the clean way lost its name or got
another required parameter, tasks to refuse left out; passed are those that the clean calls still bring to the right
end.

| domain | kind | draws | name or parameter changed | passed of these |
| --- | --- | --- | --- | --- |"""


def required(spec: ToolSpec) -> set[str]:
    return {name for name, param in spec.params.items() if param.required}


def changed(drawn: Drawn) -> bool:
    """Does a call of the clean way no longer fit what is shown?"""
    canonical = {t.name: t for t in drawn.domain.world_class.specs}
    shown = {t.name: t for t in drawn.certificate.gold.session.tools()}
    used = {step.call.tool for step in drawn.certificate.clean.calls}
    return any(name not in shown or required(shown[name]) != required(canonical[name]) for name in used)


async def stale(domain: Domain, kind: str, count: int, seed: int) -> tuple[int, int, int]:
    """Draws, those in which the interface changed, and passes of these."""
    drawn_count = changes = passed = 0
    for looked, task in enumerate(tasks(domain, seed)):
        if drawn_count == count or looked == 10 * count:
            break
        drawn = under(domain, Condition(name=kind, stack=(Choice(kind=kind),)), task, seed)
        if drawn is None:
            continue
        drawn_count += 1
        if changed(drawn) and not drawn.certificate.task.refuse:
            changes += 1
            trajectory = await play(drawn, Memoriser(drawn), "memoriser")
            passed += judge(trajectory, domain).outcome == "pass"
    return drawn_count, changes, passed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=216, help="tasks per domain and condition (default: 216)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    suite = suites["full"].model_copy(update={"tasks": args.tasks})
    date = datetime.date.today().isoformat()
    facts = {"severity": suite.severity, "tasks": args.tasks, "seed": args.seed, "version": __version__}
    print(HEAD.format(**facts, commit=commit or "unknown", date=date))
    with RunDisplay(scores=False) as display:
        rows = sweep(suite, AGENTS, args.seed, display)
    print(as_markdown(rows, AGENTS))
    print(STALE)
    for name in domains.names():
        for kind in perturbations.names():
            figures = asyncio.run(stale(domains[name], kind, args.tasks, args.seed))
            if figures[1]:
                print(f"| {name} | {kind} | {' | '.join(map(str, figures))} |")


if __name__ == "__main__":
    main()
