"""Does the closed loop win back what a release costs? Five streams, each agent with and without adaptation.

    python bench/adapt_loop.py --out runs/loop --processes 5 --budget-minutes 9
    python bench/adapt_loop.py --out runs/loop --table
    python bench/adapt_loop.py --out /tmp/try --agents one_shot --way wrapper --quick

Each stream gets a release that breaks all agents. An agent plays usual episodes and those after the release. `watch`
reads the log, as a file that holds what a production log has, and the loop reads its alarms: neither sees the stream,
its releases or layers. The candidate and a model trained from scratch then play the episodes after the release. Both
also play the usual episodes, and kinds that agents knew before, to show what was forgotten.

Rerun the command to resume: every step that is done has a file of its own, what takes long resumes within a step. With
`--budget-minutes` it stops in time. `--table` shows what there is. `--save DIR` copies results, without weights.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from crosswind.adapt import ways
from crosswind.adapt.alarms import chosen_alarms, recipe_of
from crosswind.adapt.learn import interface_of
from crosswind.adapt.loop import Loop, LoopStopped
from crosswind.adapt.plan import AdaptPlan, worlds
from crosswind.adapt.registry import AgentRegistry
from crosswind.base.errors import CrosswindError, Unfair
from crosswind.base.files import replace_file
from crosswind.episodes.recipe import named
from crosswind.episodes.record import Record
from crosswind.episodes.schedule import Episode, Schedule
from crosswind.episodes.stream import StreamPlan, Timeline
from crosswind.episodes.suite import Condition, Suite
from crosswind.models.source import AgentSource
from crosswind.models.spec import open_agent
from crosswind.runs.runner import PAUSES, Limits, Workers, manifest_of
from crosswind.runs.store import Store, load_run

KINDS = (  # that a stream tries for its release; the last two lists are of kinds that are held out from training
    ("service_hours:3", "verification_code:5", "lost_acknowledgement:3"),
    ("late_approval:3", "tool_merge:3", "confirm_before_write:3"),
    ("amended_rules:3", "rule_change:3", "price_moves:3", "tool_added:3"),
    ("envelope:3", "missing_values:3", "foreign_interface:3"),
    ("parameter_format:3", "tool_split:3", "semantic_trap:3", "conflicting_sources:3"),
)
KNOWN = ("semantic_rename:3", "key_rename:3", "format_switch:3", "transient_error:3", "paraphrase:3")
PROMOTED, RETRAINED = "promoted", "retrained"


class OutOfTime(Exception):
    """The budget is spent; the same command goes on."""


class Budget:
    """How long this process may still work."""

    def __init__(self, minutes: float) -> None:
        self.end = time.monotonic() + 60 * minutes if minutes else None

    @property
    def limits(self) -> Limits:
        if self.end is None:
            return Limits()
        if (left := self.end - time.monotonic()) < 10:
            raise OutOfTime
        return Limits(deadline=left)


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def write(path: Path, data: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, (json.dumps(data, indent=1) + "\n").encode())


@contextmanager
def timed(path: Path) -> Iterator[None]:
    """Add the seconds to those that were spent on the same before, also where it is stopped."""
    began = time.monotonic()
    try:
        yield
    finally:
        write(path, (read(path) if path.exists() else 0.0) + time.monotonic() - began)


# ---------------------------------------------------------------- playing


class Player:
    """Plays episodes into folders, or what is left of them. Models stay loaded until `close`."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.sources: dict[str, AgentSource] = {}
        self.runner = asyncio.Runner()

    def close(self) -> None:
        """Let go of the models."""
        for source in self.sources.values():
            self.runner.run(source.aclose())
        self.sources.clear()

    def play(self, spec: str, folder: Path, suite: Suite, episodes: Callable[[], Iterator[Episode | None]]) -> None:
        limits = self.budget.limits
        source = self.sources.get(spec) or self.sources.setdefault(spec, open_agent(spec))
        with Store(folder) as store:
            wanted = manifest_of(suite, source, seed=0, trials=1, limit=None, limits=Limits())
            store.begin(wanted)
            done = store.resume(lambda told: None)
            left = (one for one in episodes() if one is None or one.key not in done)
            workers = Workers(left, [source], store, seed=0, limits=limits, pauses=PAUSES)
            self.runner.run(workers.run(source.concurrency))
            if workers.stopped:
                if workers.broken:
                    raise CrosswindError(f"{folder}: {workers.stopped}")
                raise OutOfTime
            store.write(wanted, state="finished", why="")

    def stream(self, spec: str, folder: Path, timeline: Timeline, numbers: Sequence[int]) -> list[Record]:
        """These episodes of a stream, in their order. Agents here remember nothing, so the order of play is free."""
        if not (folder / "done.json").exists():
            suite = Suite(name=f"stream-{timeline.number}", summary=f"{numbers[0]} to {numbers[-1]}")
            self.play(spec, folder, suite, lambda: (timeline.episode(n, ()) for n in numbers))
            write(folder / "done.json", len(numbers))
        return sorted(load_run(folder).records, key=lambda record: record.mark.number if record.mark else 0)

    def known(self, spec: str, folder: Path, domain: str, tasks: int) -> list[Record]:
        """Tasks under kinds that agents may know from their training."""
        if not (folder / "done.json").exists():
            conditions = tuple(Condition(name=name, stack=named([name]).stack) for name in KNOWN)
            suite = Suite(name="known", domains=(domain,), split="test", tasks=tasks, conditions=conditions)
            self.play(spec, folder, suite, lambda: iter(Schedule(suite, 1)))
            write(folder / "done.json", tasks)
        return [record for record in load_run(folder).records if not record.clean]


def success(records: Sequence[Record]) -> float:
    """Share of solvable tasks that passed."""
    judged = [record.passed for record in records if record.judged and not record.refuse]
    return sum(judged) / max(1, len(judged))


# ---------------------------------------------------------------- one stream


class Stream:
    """One stream in its folder, with all agents."""

    def __init__(self, args: argparse.Namespace, number: int, budget: Budget) -> None:
        self.args, self.number, self.budget = args, number, budget
        self.folder = args.out / f"stream-{number}"
        self.player = Player(budget)
        self.half = args.reference + args.before
        self.all = 2 * self.half

    def timeline(self, kind: str) -> Timeline:
        plan = StreamPlan(name="loop", domains=(self.args.domain,), episodes=self.all, releases=1, kinds=(kind,))
        return plan.timeline(self.args.domain, self.args.seed, self.number)

    def run(self) -> None:
        kind = self.found()
        if not kind:
            return
        timeline = self.timeline(kind)
        for agent in self.args.agents:
            self.adapted(agent, timeline)
        if self.args.full_steps:
            self.retrained(timeline)

    # -- the release

    def found(self) -> str:
        """The first kind whose release costs every agent enough; of none does, nothing."""
        path = self.folder / "release.json"
        tried: list[dict[str, Any]] = read(path) if path.exists() else []
        for kind in self.args.kinds or KINDS[self.number % len(KINDS)]:
            row = next((one for one in tried if one["kind"] == kind), None)
            if row is None:
                row = {"kind": kind, **self.tried(kind)}
                write(path, tried := [*tried, row])
            if row["lost"] and min(row["lost"].values()) >= self.args.least:
                return kind
        print(f"stream {self.number}: no release of these kinds costs every agent {100 * self.args.least:g} points")
        return ""

    def tried(self, kind: str) -> dict[str, Any]:
        """What a release of a kind costs each agent, over the first episodes after it and as many usual ones."""
        try:
            timeline = self.timeline(kind)
        except (CrosswindError, Unfair) as error:
            return {"lost": {}, "why": str(error)}
        lost = {}
        for agent in self.args.agents:
            folder = self.folder / "probes" / plain(agent)
            usual = self.player.stream(agent, folder / "usual", timeline, range(self.args.probes))
            numbers = range(self.half, self.half + self.args.probes)
            shifted = self.player.stream(agent, folder / plain(kind), timeline, numbers)
            lost[agent] = success(usual) - success(shifted)
            if lost[agent] < self.args.least:
                break
        return {"lost": lost}

    # -- one agent

    def adapted(self, agent: str, timeline: Timeline) -> None:
        """Log, alarms, the loop, and the episodes after it."""
        folder = self.folder / plain(agent)
        if (folder / "result.json").exists():
            return
        live = self.player.stream(agent, folder / "live", timeline, range(self.all))
        at = self.watched(folder, live)
        after = range(min(self.all - 1, self.half + (at["named"] if at else 0)), self.all)
        result: dict[str, Any] = {
            "agent": agent,
            "before": success(live[self.args.reference : self.half]),
            "usual": success(live[: self.half]),
            "during": success(live[self.half : after[0]]),
            "unadapted": success(live[after[0] :]),
            "after": [after[0], self.all],
            "alarm": at,
            "known": success(self.player.known(agent, folder / "known", self.args.domain, self.args.known)),
            "outcome": "no alarm that names a kind",
        }
        if at:
            self.player.close()
            with timed(folder / "loop-seconds.json"):
                done, spec, candidate = self.looped(agent, folder)
            result |= {"outcome": done.outcome, "says": done.says, "version": done.version}
            result["scores"] = {
                name: [one.passed / one.n, done.scores[name].passed / done.scores[name].n]
                for name, one in done.parent_scores.items()
                if name in done.scores
            }
            if candidate:  # what the gate made of it aside
                result["candidate"] = self.measured(candidate, folder / "candidate", timeline, after)
            result[PROMOTED] = spec != agent
            result["seconds"] = read(folder / "loop-seconds.json")
            runs = (folder / "loop").rglob("episodes.jsonl")
            result["episodes"] = sum(path.read_bytes().count(b"\n") for path in runs)
        write(folder / "result.json", result)

    def measured(self, spec: str, folder: Path, timeline: Timeline, after: range) -> dict[str, float]:
        """An agent after the release, in usual episodes, and under kinds known from before."""
        return {
            "after": success(self.player.stream(spec, folder / "after", timeline, after)),
            "usual": success(self.player.stream(spec, folder / "usual", timeline, range(self.half))),
            "known": success(self.player.known(spec, folder / "known", self.args.domain, self.args.known)),
        }

    def watched(self, folder: Path, live: Sequence[Record]) -> dict[str, Any] | None:
        """Write the log that production would have and have it watched; where the first useful alarm came."""
        log, alarms = folder / "log.jsonl", folder / "alarms.jsonl"
        if not alarms.exists():
            replace_file(log, "".join(json.dumps(logged(record)) + "\n" for record in live).encode())
            command = ["watch", str(log), "--reference", str(self.args.reference), "--json"]
            done = subprocess.run([sys.executable, "-m", "crosswind", *command], capture_output=True, text=True)
            if done.returncode not in (0, 1, 4):
                raise CrosswindError(done.stderr.strip())
            replace_file(alarms, done.stdout.encode())
        if not alarms.read_text():
            return None
        every = chosen_alarms(alarms)
        start = self.args.before  # of the release, in watched episodes
        useful = [alarm for alarm in every if alarm.at >= start and recipe_of(alarm) is not None]
        if not useful:
            return None
        first = useful[0]
        return {
            "false": sum(alarm.at < start for alarm in every),
            "number": every.index(first) + 1,
            "delay": first.at - start,
            "named": min(self.half, first.at - start + int(first.evidence.get("episodes_read", 1))),
            "kind": first.shift.kind if first.shift else "",
            "severity": first.shift.severity if first.shift else 0,
        }

    def looped(self, agent: str, folder: Path) -> tuple[Any, str, str]:
        """The closed loop: how it ended, the agent in use, and the candidate."""
        args = self.args
        registry = AgentRegistry(folder / "registry")
        version = registry.current() or registry.start(agent)
        if (folder / "loop" / "plan.json").exists():
            version = registry.version(read(folder / "loop" / "plan.json")["parent"])
        alarms = chosen_alarms(folder / "alarms.jsonl", [self.watched(folder, ())["number"]])  # type: ignore[index]
        new, old = worlds(alarms, [], registry, version, [])
        memory = ""
        if args.way == "wrapper":  # what the agent knew before: its log
            memory = str(folder / "memory.json")
            write(Path(memory), interface_of(load_run(folder / "live").records, args.reference).dump())
        plan = AdaptPlan(
            agent=registry.spec(version),
            parent=version.number,
            way=args.way,
            alarms=tuple(alarms),
            new=new,
            old=old,
            domains=(args.domain,),
            memory=memory,
            train=training_options(args, args.steps) if args.way == "train" else {},
            tasks=args.tasks,
            dev_tasks=args.dev_tasks,
            seed=args.seed,
            max_forget=args.max_forget,
            min_gain=args.min_gain,
            max_refusal_drop=args.max_refusal_drop,
        )
        told = f"stream {self.number}, {agent}"
        loop = Loop(plan, registry, folder / "loop", tell=lambda text: print(f"{told}: {text}", flush=True))
        loop.limits = self.budget.limits
        done = loop.run()
        current = registry.current()
        made = folder / "loop" / "candidate.json"
        candidate = ways.Candidate.model_validate_json(made.read_text()) if made.exists() else ways.Candidate()
        return done, registry.spec(current) if current else agent, candidate.resolved() if candidate.spec else ""

    # -- training from scratch

    def retrained(self, timeline: Timeline) -> None:
        """Train the base model on every train kind and on the kinds of the alarm, and measure it after the release."""
        path = self.folder / RETRAINED / "result.json"
        results = [self.folder / plain(agent) / "result.json" for agent in self.args.agents]
        named_so = [one["alarm"] for one in map(read, results) if one["alarm"]]
        if path.exists() or not named_so:
            return
        self.player.close()
        self.budget.limits  # noqa: B018 raises where no time is left
        from crosswind.adapt.plan import SHARE
        from crosswind.train.config import fitted
        from crosswind.train.run import train
        from crosswind.words.held_out import train_kinds

        weights = dict.fromkeys(train_kinds(), 1.0)
        for alarm in named_so:
            for kind in ways.trainable(alarm["kind"]):
                weights[kind] = len(weights) / 4
        stack = [{"one_of": weights, "severity": [1, 5]}]
        options = training_options(self.args, self.args.full_steps)
        data = {
            "domains": {self.args.domain: 1.0}, "share": SHARE, **options.pop("data", {}),
            "recipe": {"name": "anew", "stack": stack},
        }  # fmt: skip
        whole = {"seed": self.args.seed, "model": self.args.base, **options, "data": data}
        print(f"stream {self.number}: training from scratch, {whole['steps']} steps", flush=True)
        with timed(path.parent / "seconds.json"):
            made = train(fitted(whole, [], "paft"), path.parent / "train", method="paft")
        after = range(min(read(one)["after"][0] for one in results), self.all)
        found = self.measured(f"hf:{self.args.base}+{made.adapter}", path.parent, timeline, after)
        write(path, {**found, "seconds": read(path.parent / "seconds.json"), "steps": whole["steps"]})


def training_options(args: argparse.Namespace, steps: int) -> dict[str, Any]:
    """Options of a training as the loop takes them; --set goes before all."""
    from crosswind.train.config import load

    usual = [f"steps={steps}", "save_every=25", *([f"workers={args.workers}"] if args.workers >= 0 else [])]
    return load(None, [*usual, *args.set]).model_dump(mode="json", exclude_unset=True)


def plain(text: str) -> str:
    """A spec or kind as the name of a folder."""
    return "".join(ch if ch.isalnum() else "-" for ch in text).strip("-")[-60:]


def logged(record: Record) -> dict[str, Any]:
    """An episode as a production log has it: no layers, no verdict, nothing of the world's side."""
    data = record.model_dump(mode="json")
    steps = [{name: step[name] for name in ("call", "result", "heard") if name in step} for step in data["steps"]]
    keep = ("agent", "domain", "query", "policy", "tools", "final", "usage")
    number = record.mark.number if record.mark else 0
    return {"key": f"episode {number}", **{name: data[name] for name in keep}, "steps": steps}


# ---------------------------------------------------------------- results


def table(out: Path) -> Iterator[str]:
    """One row for each stream and agent."""
    heads = (
        "stream", "agent", "release", "named", "delay", "before", "during", "not adapted", "candidate", "anew",
        "loss recovered", "usual: was, is, anew", "known: was, is, anew", "gate", "episodes of the loop",
        "minutes: loop, anew",
    )  # fmt: skip
    yield "| " + " | ".join(heads) + " |"
    yield "|---" * len(heads) + "|"
    for folder in sorted(out.glob("stream-*")):
        path = folder / "release.json"
        release = read(path)[-1]["kind"] if path.exists() else ""
        anew = folder / RETRAINED / "result.json"
        full = read(anew) if anew.exists() else {}
        for result in sorted(folder.glob("*/result.json")):
            if result == anew:
                continue
            found = read(result)
            made, at = found.get("candidate") or {}, found["alarm"] or {}
            loss = found["before"] - found["unadapted"]
            regained = (made["after"] - found["unadapted"]) / loss if made and loss > 0 else None
            cells = [
                folder.name.removeprefix("stream-"), found["agent"], release,
                f"{at['kind']}:{at['severity']}" if at else "–", str(at.get("delay", "–")),
                percent(found["before"]), percent(found["during"]), percent(found["unadapted"]),
                percent(made.get("after")), percent(full.get("after")), percent(regained),
                *(
                    f"{percent(found[name])}, {percent(made.get(name))}, {percent(full.get(name))}"
                    for name in ("usual", "known")
                ),
                found["outcome"], str(found.get("episodes", "–")),
                f"{minutes(found.get('seconds'))}, {minutes(full.get('seconds'))}",
            ]  # fmt: skip
            yield "| " + " | ".join(cells) + " |"


def percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f}"


def minutes(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds / 60:.1f}"


def save(out: Path, to: Path) -> None:
    """Copy results, alarms, plans and logs of the registry, and no weights or episodes."""
    for path in [*out.rglob("*.json"), *out.rglob("alarms.jsonl")]:
        if "checkpoints" not in path.parts and "files" not in path.parts and path.stat().st_size < 2**20:
            target = to / path.relative_to(out)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)


def spread(args: argparse.Namespace) -> int:
    """A process for each stream, as many at a time as asked; all are ended when the budget is spent."""
    end = time.monotonic() + 60 * args.budget_minutes if args.budget_minutes else None
    waiting, running, failed = list(args.streams), dict[int, subprocess.Popen[bytes]](), 0
    own = list(sys.argv[1:])
    try:
        while waiting or running:
            left = (end - time.monotonic()) / 60 if end else 0.0
            while waiting and len(running) < args.processes and (end is None or left > 0.2):
                number = waiting.pop(0)
                more = ["--only", str(number), *(["--budget-minutes", f"{left:.2f}"] if end else [])]
                running[number] = subprocess.Popen([sys.executable, __file__, *own, *more])
            time.sleep(0.2)
            for number, child in list(running.items()):
                if child.poll() is not None:
                    failed += child.returncode not in (0, 3)
                    del running[number]
            if end and left <= 0:
                return 3
    finally:
        for child in running.values():
            child.terminate()
        last = time.monotonic() + 15
        for child in running.values():
            with suppress(subprocess.TimeoutExpired):
                child.wait(max(0.1, last - time.monotonic()))
            child.kill()
    return 1 if failed else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--agents", nargs="+", default=["hf:embedded+static", "hf:embedded+paft"])
    parser.add_argument("--streams", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--only", type=int, help=argparse.SUPPRESS)  # the stream of a child
    parser.add_argument("--kinds", nargs="+", default=[], help="for the release of each stream (default: five lists)")
    parser.add_argument("--domain", default="poi")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--way", choices=["train", "wrapper", "notes"], default="train")
    parser.add_argument("--base", default="embedded", help="model that is trained from scratch")
    parser.add_argument("--steps", type=int, default=150, help="of the targeted training")
    parser.add_argument("--full-steps", type=int, default=400, help="of the training from scratch; 0: none")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="options of both trainings")
    parser.add_argument("--workers", type=int, default=3, help="of a training, to make data; -1: as it finds best")
    parser.add_argument("--reference", type=int, default=100, help="usual episodes that watch learns from")
    parser.add_argument("--before", type=int, default=40, help="usual episodes after those")
    parser.add_argument("--probes", type=int, default=24, help="episodes to find out what a release costs")
    parser.add_argument("--least", type=float, default=0.15, help="success that a release must cost every agent")
    parser.add_argument("--tasks", type=int, default=150, help="of the gate, per condition")
    parser.add_argument("--dev-tasks", type=int, default=18)
    parser.add_argument("--known", type=int, default=24, help="tasks per kind known from before")
    parser.add_argument("--max-forget", type=float, default=0.05)
    parser.add_argument("--min-gain", type=float, default=0.05)
    parser.add_argument("--max-refusal-drop", type=float, default=0.15)
    parser.add_argument("--slots", type=int, default=96, help="episodes of a model at a time")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--budget-minutes", type=float, default=0.0)
    parser.add_argument("--quick", action="store_true", help="few episodes and loose rules, to try the script")
    parser.add_argument("--table", action="store_true", help="only show what there is")
    parser.add_argument("--save", type=Path, help="copy results there at the end")
    args = parser.parse_args()
    if args.quick:
        few = {"reference": 30, "before": 10, "probes": 6, "tasks": 8, "dev_tasks": 3, "known": 1, "max_forget": 0.6}
        vars(args).update(few, min_gain=0.02, max_refusal_drop=0.9)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))  # which asyncio ends in order
    code = 0
    if not args.table:
        from crosswind.models import hf

        hf.TOGETHER = hf.HuggingFace.slots = args.slots  # several models share a device
        try:
            code = spread(args) if args.processes > 1 and args.only is None else alone(args)
        except KeyboardInterrupt:
            print("stopped; the same command goes on", file=sys.stderr)
            code = 3
    if args.only is None:
        print("\n".join(table(args.out)))
        if args.save:
            save(args.out, args.save)
    sys.exit(code)


def alone(args: argparse.Namespace) -> int:
    """Play the streams one after the other in this process."""
    budget = Budget(args.budget_minutes)
    failed = 0
    for number in args.streams if args.only is None else [args.only]:
        stream = Stream(args, number, budget)
        try:
            stream.run()
        except OutOfTime:
            print("out of time; the same command goes on", flush=True)
            return 3
        except (CrosswindError, LoopStopped, RuntimeError) as error:
            late = budget.end is not None and time.monotonic() > budget.end - 10
            print(f"stream {number}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            if late:
                return 3
            failed += 1
        finally:
            stream.player.close()
            stream.player.runner.close()
    return 1 if failed else 0


if __name__ == "__main__":
    main()
