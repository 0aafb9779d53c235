"""Play scripted agents without the wrapper `adaptive:`, with it, with each part alone and with each part off.

python bench/adaptive.py --tasks 3 --seed 0 > docs/results/adaptive.md

The wrapper's memory is learnt from clean episodes of the train split, one file per domain; what is measured is the test
split, whose words no memory has seen.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from crosswind import __version__
from crosswind.adapt.learn import interface_of
from crosswind.cli.progress import RunDisplay
from crosswind.core.registry import domains
from crosswind.episodes.record import Record
from crosswind.episodes.schedule import Schedule
from crosswind.episodes.suite import Suite, suites
from crosswind.models.wrapping import PARTS, Wrapping
from crosswind.runs.baselines import _play
from crosswind.words.held_out import HELD_OUT

WRITTEN_FOR = ("envelope", "rate_limit", "tool_split")  # held out, and read by who wrote the parts
HEAD = """# The wrapper `adaptive:`

Success in %, of the tasks that can be solved / of the tasks to refuse; the suite `full`, all domains together. The
agents are scripted and repair nothing by themselves, so what is gained is the wrapper's; a model that does the same by
itself gains less. The memory is learnt from {learnt} clean episodes per domain of the train split; the tasks are of the
{split} split. Held-out kinds are marked with a star. No part was tuned on their episodes, but who
wrote the parts knew what `envelope`, `rate_limit` and `tool_split` do: only the last group says how kinds fare that
nobody had in mind.

- command: `python bench/adaptive.py --tasks {tasks} --seed {seed} --split {split} --domains {domains}`
- crosswind {version}, commit {commit}, {date}
"""


class Tallied:
    """What agents made of the episodes, by condition."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)  # condition, agent -> counts

    def add(self, record: Record, agent: str) -> None:
        count = self.found[record.condition, agent]
        count["refuse" if record.refuse else "solve"] += 1
        count["right" if record.refuse else "passed"] += record.passed
        count["calls"] += len(record.steps)
        count["false"] += not record.refuse and record.ended == "refusal"

    def of(self, agent: str, conditions: Iterable[str]) -> Counter[str]:
        return sum((self.found[condition, agent] for condition in conditions), Counter())


def rates(count: Counter[str]) -> str:
    return (
        f"{100 * count['passed'] / max(count['solve'], 1):.0f} / {100 * count['right'] / max(count['refuse'], 1):.0f}"
    )


def learnt_memory(domain: str, agent: str, tasks: int, folder: Path) -> str:
    """A file with what the agent saw in clean episodes of the train split."""
    records: list[Record] = []
    suite = Suite(name="clean", domains=(domain,), split="train", tasks=tasks)
    schedule = Schedule(suite, 0)
    _play(schedule, [agent], records.append, seed=0, total=lambda: schedule.total, watch=None, ending=None)
    path = folder / f"{domain}-{agent}.json"
    path.write_text(json.dumps(interface_of(records).dump()))
    return str(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=3, help="tasks per domain and condition (default: 3)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--split", choices=("train", "dev", "test"), default="test")
    parser.add_argument("--agents", nargs="+", default=["one_shot", "memoriser"])
    parser.add_argument("--domains", nargs="+", default=["all"])
    parser.add_argument("--learn", type=int, default=12, help="clean tasks per domain that the memory is learnt from")
    parser.add_argument("--quick", action="store_true", help="leave out the parts one by one")
    args = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    where = domains.names() if args.domains == ["all"] else args.domains
    about = {**vars(args), "domains": " ".join(args.domains), "learnt": args.learn}
    first, *_ = args.agents
    labels = {f"{sort} {agent}" for agent in args.agents for sort in ("bare", "without memory", "adaptive")}
    if not args.quick:
        labels |= {f"{sort} {part}" for part in PARTS for sort in ("alone", "without")}
    tallied = Tallied()
    with tempfile.TemporaryDirectory() as scratch:
        for domain in where:
            memory = {agent: learnt_memory(domain, agent, args.learn, Path(scratch)) for agent in args.agents}
            specs = {label: spec_of(label, first, memory) for label in labels}
            suite = suites["full"].model_copy(update={"tasks": args.tasks, "domains": (domain,), "split": args.split})
            play_all(suite, specs, args.seed, tallied)
    show(tallied, args.agents, HEAD.format(version=__version__, commit=commit, date=datetime.date.today(), **about))
    if not args.quick:
        show_parts(tallied, first)


def spec_of(label: str, first: str, memory: dict[str, str]) -> str:
    """The spec of an agent with its wrapper, by what it is called here."""
    sort, _, name = label.rpartition(" ")
    if sort == "bare":
        return name
    if sort in ("without memory", "adaptive"):
        return Wrapping(memory=memory[name] if sort == "adaptive" else "").around(name)
    parts = tuple(part for part in PARTS if (part == name) == (sort == "alone"))
    return Wrapping(parts=parts, memory=memory[first]).around(first)


def play_all(suite: Suite, specs: dict[str, str], seed: int, tallied: Tallied) -> None:
    label_of = {spec: label for label, spec in specs.items()}
    schedule = Schedule(suite, seed)

    def add(record: Record) -> None:
        tallied.add(record, label_of[record.agent])

    total = len(specs)
    _play(schedule, [*label_of], add, seed=seed, total=lambda: schedule.total * total, watch=RunDisplay(), ending=None)


def show(tallied: Tallied, agents: Sequence[str], head: str) -> None:
    print(head)
    columns = [f"{sort} {agent}" for agent in agents for sort in ("bare", "without memory", "adaptive")]
    print("| condition | tasks |", " | ".join(f"`{name}`" for name in columns), "|")
    print("| --- | --- |", "--- | " * len(columns))
    conditions = list(dict.fromkeys(condition for condition, _ in tallied.found))
    groups = {
        "all": conditions,
        "shifted, trained kinds": [c for c in conditions if c not in HELD_OUT and c != "clean"],
        "shifted, held-out kinds": [c for c in conditions if c in HELD_OUT],
        "held-out kinds unknown to the authors of the parts": [
            c for c in conditions if c in HELD_OUT and c not in WRITTEN_FOR
        ],
    }
    for condition in conditions:
        n = tallied.found[condition, columns[0]]
        name = f"{condition} \\*" if condition in HELD_OUT else condition
        cells = " | ".join(rates(tallied.found[condition, column]) for column in columns)
        print(f"| {name} | {n['solve'] + n['refuse']} |", cells, "|")
    for group, members in groups.items():
        n = tallied.of(columns[0], members)
        cells = " | ".join(rates(tallied.of(column, members)) for column in columns)
        print(f"| **{group}** | {n['solve'] + n['refuse']} |", cells, "|")
    print("\n| | calls per episode | false refusals |\n| --- | --- | --- |")
    for column in columns:
        count = tallied.of(column, conditions)
        every = count["solve"] + count["refuse"]
        print(f"| `{column}` | {count['calls'] / every:.2f} | {100 * count['false'] / count['solve']:.0f} % |")


def show_parts(tallied: Tallied, first: str) -> None:
    conditions = list(dict.fromkeys(condition for condition, _ in tallied.found))
    print(f"\n## Parts\n\n`{first}` over all conditions, and the conditions that a part moves by ten points or more.\n")
    print("| parts | success | calls | better | worse |\n| --- | --- | --- | --- | --- |")
    for base, sort in ((f"bare {first}", "alone"), (f"adaptive {first}", "without")):
        for label in (base, *(f"{sort} {part}" for part in PARTS)):
            moved = {}
            for condition in conditions:
                was, now = tallied.found[condition, base], tallied.found[condition, label]
                moved[condition] = (now["passed"] - was["passed"]) / max(was["solve"], 1)
            up, down = ([c for c, d in moved.items() if sign * d >= 0.1] for sign in (1, -1))
            count = tallied.of(label, conditions)
            calls = count["calls"] / (count["solve"] + count["refuse"])
            print(f"| {label} | {rates(count)} | {calls:.2f} | {', '.join(up)} | {', '.join(down)} |")


if __name__ == "__main__":
    main()
