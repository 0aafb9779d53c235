"""Play agents without the wrapper `adaptive:`, with it, with each part alone and with each part off.

    python bench/adaptive.py --tasks 3 --seed 0 > docs/results/adaptive.md
    python bench/adaptive.py --agents hf:embedded+static hf:embedded+paft hf:embedded --domains poi --tasks 6 \\
        --parts-of hf:embedded+static hf:embedded+paft --streams 5 --out runs/adaptive --budget-minutes 9

The wrapper's memory is learnt from clean episodes of the train split, one file per domain; what is measured is the test
split, whose words no memory has seen. With `--streams` the first agents play streams too, where the memory is learnt on
the way. All wrappers of a model share it, so that all of them play at a time. With `--out` every episode is kept, and
the same command goes on where it was stopped; `--table` only shows what there is.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from crosswind import __version__
from crosswind.adapt.learn import interface_of
from crosswind.base.files import replace_file
from crosswind.core.registry import domains
from crosswind.episodes.record import Record
from crosswind.episodes.schedule import Schedule
from crosswind.episodes.stream import load_plan, with_changes
from crosswind.episodes.suite import Suite, suites
from crosswind.metrics.shares import StreamShare
from crosswind.metrics.streams import summarise
from crosswind.models.source import AgentSource
from crosswind.models.spec import open_agent
from crosswind.models.wrapping import PARTS, PREFIX, Wrapping
from crosswind.runs.runner import Limits, Workers
from crosswind.runs.store import iter_records
from crosswind.runs.streams import play_streams
from crosswind.words.held_out import HELD_OUT

WRITTEN_FOR = ("envelope", "rate_limit", "tool_split")  # held out, and read by who wrote the parts
SORTS = ("bare", "without memory", "adaptive")
HEAD = """# The wrapper `adaptive:`

Success in %, of the tasks that can be solved / of the tasks to refuse; the suite `{suite}`. Scripted agents repair
nothing by themselves, so what is gained is the wrapper's; a model that does the same by itself gains less. The memory
is learnt from {learnt} clean episodes per domain of the train split; the tasks are of the {split} split. Held-out kinds
are marked with a star. No part was tuned on their episodes, but who wrote the parts knew what `envelope`, `rate_limit`
and `tool_split` do: only the last group says how kinds fare that nobody had in mind.

- command: `python bench/adaptive.py {command}`
- crosswind {version}, commit {commit}, {date}
"""


class OutOfTime(Exception):
    """The budget is spent; the same command goes on."""


class Tallied:
    """What agents made of the episodes, by condition; kept in a file."""

    behind = 0

    def __init__(self, path: Path, label_of: dict[str, str]) -> None:
        self.path, self.label_of = path, label_of
        self.found: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)  # condition, label -> counts
        self.done: dict[str, set[str]] = defaultdict(set)  # key -> labels
        if path.exists():
            whole, _, torn = path.read_bytes().rpartition(b"\n")
            if torn:
                replace_file(path, whole + b"\n" if whole else b"")
            for line in whole.splitlines():
                self.count(json.loads(line))

    def count(self, line: dict[str, Any]) -> None:
        key = f"{line['domain']} {line['key']}"
        if line["label"] in self.done[key]:
            return  # played again, because the run was stopped between the agents of an episode
        self.done[key].add(line["label"])
        self.found[line["condition"], line["label"]].update(line["counts"])

    def append(self, record: Record) -> None:
        if not record.judged:
            return
        counts = {
            "refuse" if record.refuse else "solve": 1,
            "right" if record.refuse else "passed": int(record.passed),
            "calls": len(record.steps),
            "false": int(not record.refuse and record.ended == "refusal"),
            "read": record.usage.input_tokens or 0,
            "written": record.usage.output_tokens or 0,
        }
        line = {"key": record.key, "domain": record.domain, "condition": record.condition, "counts": counts}
        line["label"] = self.label_of[record.agent]
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        self.count(line)

    def sync(self) -> None:
        """Lines are written as they come."""

    def of(self, agent: str, conditions: Iterable[str]) -> Counter[str]:
        return sum((self.found[condition, agent] for condition in conditions), Counter())


def rates(count: Counter[str]) -> str:
    return (
        f"{100 * count['passed'] / max(count['solve'], 1):.0f} / {100 * count['right'] / max(count['refuse'], 1):.0f}"
    )


class Bench:
    """Everything that is played, with models that are loaded once."""

    def __init__(self, args: argparse.Namespace, out: Path) -> None:
        self.args, self.out = args, out
        self.end = time.monotonic() + 60 * args.budget_minutes if args.budget_minutes else None
        self.sources: dict[str, AgentSource] = {}
        self.runner = asyncio.Runner()
        self.where = domains.names() if args.domains == ["all"] else args.domains

    @property
    def limits(self) -> Limits:
        if self.end is None:
            return Limits()
        if (left := self.end - time.monotonic()) < 5:
            raise OutOfTime
        return Limits(deadline=left)

    def source(self, spec: str) -> AgentSource:
        """The agent of a spec; wrappers of one model share it."""
        if spec in self.sources:
            return self.sources[spec]
        made = open_agent(spec)
        if spec.startswith(PREFIX):
            wrapper: Any = made
            wrapper.inner = self.source(wrapper.inner.name)
        else:
            self.sources[spec] = made
        return made

    def close(self) -> None:
        for source in self.sources.values():
            self.runner.run(source.aclose())
        self.runner.close()

    def labels(self) -> list[str]:
        """Every agent, as it is and behind each wrapper."""
        out = [f"{sort} {agent}" for agent in self.args.agents for sort in SORTS]
        for agent in self.parted():
            out += [f"{sort} {part} {agent}" for sort in ("alone", "without") for part in PARTS]
        return out

    def parted(self) -> list[str]:
        """Agents whose wrapper is taken apart."""
        return [] if self.args.quick else self.args.parts_of or self.args.agents[:1]

    def played(self, schedule: Schedule, sources: Sequence[AgentSource], sink: Any, what: str) -> None:
        """Play episodes with all of the agents."""
        limits = self.limits
        workers = Workers(schedule, sources, sink, seed=self.args.seed, limits=limits, diagnosing=False)
        began = time.monotonic()
        self.runner.run(workers.run(sources[0].concurrency))
        print(
            f"{what}: {workers.progress.done} episodes, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True
        )
        if workers.stopped:
            raise OutOfTime(workers.stopped)

    def memory(self, domain: str, agent: str) -> Path:
        """A file with what the agent saw in clean episodes of the train split."""
        path = self.out / f"memory-{domain}-{plain(agent)}.json"
        if not path.exists():
            found: list[Record] = []
            schedule = Schedule(Suite(name="clean", domains=(domain,), split="train", tasks=self.args.learn), 0)
            self.played(schedule, [self.source(agent)], Memory(found), f"memory of {agent} in {domain}")
            replace_file(path, json.dumps(interface_of(found).dump()).encode())
        return path

    def suite(self, domain: str) -> Suite:
        given = {"tasks": self.args.tasks, "domains": (domain,), "split": self.args.split}
        return suites[self.args.suite].model_copy(update=given)

    def play(self) -> None:
        """All episodes of the suite, domain by domain, and the streams."""
        for domain in self.where:
            for agent in self.args.agents:
                labels = [label for label in self.labels() if label.endswith(f" {agent}")]
                specs = {spec_of(label, agent, str(self.memory(domain, agent))): label for label in labels}
                sources = [self.source(spec) for spec in specs]
                names = dict(zip((source.name for source in sources), specs.values(), strict=True))
                tallied = Tallied(self.out / "episodes.jsonl", names)
                every = set(labels)
                here = {
                    key.partition(" ")[2]
                    for key, done in tallied.done.items()
                    if every <= done and key.startswith(f"{domain} ")
                }
                schedule = Schedule(self.suite(domain), self.args.seed, finished=here)
                self.played(schedule, sources, tallied, f"{agent} in {domain}")
        if self.args.streams:
            self.runner.run(self.play_streams())

    # -- streams

    def cells(self) -> Iterator[tuple[str, str, str, Path]]:
        """Agent, sort, spec and folder of every run of streams."""
        for agent in self.args.agents:
            for sort in STREAMED:
                parts = tuple(part for part in PARTS if part != "notes" or sort == "adaptive")
                spec = agent if sort == "bare" else Wrapping(parts=parts).around(agent)
                for number in range(self.args.streams):
                    yield agent, sort, spec, self.out / "streams" / f"{plain(agent)}-{plain(sort)}-{number}"

    async def play_streams(self) -> None:
        """All streams at a time: in each, episodes follow one another."""
        limits = self.limits
        rows = [(spec, folder, domain) for _, _, spec, folder in self.cells() for domain in self.where]

        async def one(spec: str, folder: Path, domain: str) -> bool:
            plan = load_plan("evolving")
            plan = with_changes(
                plan, {"domains": (domain,), **({"episodes": self.args.episodes} if self.args.episodes else {})}
            )
            number = int(folder.name.rpartition("-")[2])
            ran = await play_streams(
                plan, self.source(spec), folder / domain, seed=self.args.seed + number, streams=1, limits=limits
            )
            return not ran.stopped

        if not all(await asyncio.gather(*(one(*row) for row in rows))):
            raise OutOfTime


STREAMED = ("bare", "without notes", "adaptive")


class Memory:
    """Records as they come."""

    behind = 0

    def __init__(self, found: list[Record]) -> None:
        self.append = found.append

    def sync(self) -> None:
        """Nothing is written."""


def plain(text: str) -> str:
    return "".join(ch if ch.isalnum() else "-" for ch in text).strip("-")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=3, help="tasks per domain and condition (default: 3)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--split", choices=("train", "dev", "test"), default="test")
    parser.add_argument("--suite", default="full", help="tiers, heldout or full (default)")
    parser.add_argument("--agents", nargs="+", default=["one_shot", "memoriser"])
    parser.add_argument("--domains", nargs="+", default=["all"])
    parser.add_argument("--learn", type=int, default=12, help="clean tasks per domain that the memory is learnt from")
    parser.add_argument("--quick", action="store_true", help="leave out the parts one by one")
    parser.add_argument("--parts-of", nargs="+", default=[], help="agents to take apart (default: the first)")
    parser.add_argument("--streams", type=int, default=0, help="streams of `evolving` per agent and domain")
    parser.add_argument("--episodes", type=int, default=0, help="of a stream; 0: 120")
    parser.add_argument("--slots", type=int, default=512, help="episodes of a model at a time, on a GPU")
    parser.add_argument("--out", type=Path, help="folder to keep all in, and to go on from")
    parser.add_argument("--budget-minutes", type=float, default=0.0)
    parser.add_argument("--table", action="store_true", help="only show what there is in --out")
    args = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    code = 0
    with ExitStack() as stack:
        out = args.out or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        out.mkdir(parents=True, exist_ok=True)
        bench = Bench(args, out)
        if not args.table:
            from crosswind.models import hf

            hf.TOGETHER = hf.HuggingFace.slots = args.slots
            try:
                bench.play()
            except OutOfTime:
                print("out of time; the same command goes on", file=sys.stderr)
                code = 3
            finally:
                bench.close()
        about = {**vars(args), "learnt": args.learn, "command": " ".join(sys.argv[1:])}
        head = HEAD.format(version=__version__, commit=commit, date=datetime.date.today(), **about)
        tallied = Tallied(out / "episodes.jsonl", {})
        if tallied.found:
            show(tallied, args.agents, head)
            for agent in bench.parted():
                show_parts(tallied, agent)
        if args.streams:
            show_streams(bench)
    sys.exit(code)


def spec_of(label: str, agent: str, memory: str) -> str:
    """The spec of an agent with its wrapper, by what it is called here."""
    sort = label.removesuffix(f" {agent}")
    if sort == "bare":
        return agent
    if sort in SORTS:
        return Wrapping(memory=memory if sort == "adaptive" else "").around(agent)
    which, _, name = sort.partition(" ")
    parts = tuple(part for part in PARTS if (part == name) == (which == "alone"))
    return Wrapping(parts=parts, memory=memory).around(agent)


def share_text(share: StreamShare) -> str:
    if share.value is None:
        return "–"
    bounds = "" if share.low is None or share.high is None else f" ({100 * share.low:.0f} to {100 * share.high:.0f})"
    return f"{100 * share.value:.0f}{bounds} of {share.n}"


def show_streams(bench: Bench) -> None:
    """Success in streams, with the memory learnt on the way."""
    print(
        "\n## Streams\n\n| agent | | all episodes | touched by a release | untouched |\n| --- | --- | --- | --- | --- |"
    )
    found: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for agent, sort, _, folder in bench.cells():
        for domain in bench.where:
            if (folder / domain).exists():
                # streams of one agent are told apart by their numbers
                number = int(folder.name.rpartition("-")[2])
                found[agent, sort] += [r.model_copy(update={"trial": number}) for r in iter_records(folder / domain)]
    for (agent, sort), records in found.items():
        if records:
            told = summarise(records)
            cells = (told.success, told.adaptation, told.stability)
            print(f"| `{agent}` | {sort} |", " | ".join(map(share_text, cells)), "|")


def show(tallied: Tallied, agents: Sequence[str], head: str) -> None:
    print(head)
    columns = [f"{sort} {agent}" for agent in agents for sort in SORTS]
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
    print("\n| | calls per episode | false refusals | tokens read | written |\n| --- | --- | --- | --- | --- |")
    for column in columns:
        count = tallied.of(column, conditions)
        every = max(count["solve"] + count["refuse"], 1)
        tokens = f"{count['read'] / every:.0f} | {count['written'] / every:.0f}" if count["read"] else "– | –"
        false = f"{100 * count['false'] / max(count['solve'], 1):.0f} %"
        print(f"| `{column}` | {count['calls'] / every:.2f} | {false} | {tokens} |")


def show_parts(tallied: Tallied, first: str) -> None:
    conditions = list(dict.fromkeys(condition for condition, _ in tallied.found))
    print(f"\n## Parts\n\n`{first}` over all conditions, and the conditions that a part moves by ten points or more.\n")
    print("| parts | success | calls | better | worse |\n| --- | --- | --- | --- | --- |")
    for base, sort in ((f"bare {first}", "alone"), (f"adaptive {first}", "without")):
        for label in (base, *(f"{sort} {part} {first}" for part in PARTS)):
            moved = {}
            for condition in conditions:
                was, now = tallied.found[condition, base], tallied.found[condition, label]
                moved[condition] = (now["passed"] - was["passed"]) / max(was["solve"], 1)
            up, down = ([c for c, d in moved.items() if sign * d >= 0.1] for sign in (1, -1))
            count = tallied.of(label, conditions)
            calls = count["calls"] / max(count["solve"] + count["refuse"], 1)
            name = label if label == base else label.removesuffix(f" {first}")
            print(f"| {name} | {rates(count)} | {calls:.2f} | {', '.join(up)} | {', '.join(down)} |")


if __name__ == "__main__":
    main()
