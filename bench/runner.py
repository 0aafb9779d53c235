"""What running costs beside playing: processor time for each episode, memory, and what kills do to a run.

Three parts:
  overhead  5,000 scripted episodes of two turns and one tool: the runner's processor time for each, that is a run less
            the bare playing and judging of the same episodes; in turns with Inspect AI's mock model on a like task
  memory    resident memory as a run grows to 50,000 episodes
  kills     a run that is killed (SIGKILL) at thirty random moments and goes on each time: what is lost or repeated

Seconds are those of the processor. docs/evaluate.md tells more, and has the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import venv
from collections import Counter
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

from crosswind import __version__
from crosswind.agents._scripted import Reciter, lines_of
from crosswind.core.draw import Drawn
from crosswind.core.types import Agent, Ending, Message
from crosswind.episodes.play import judge, play
from crosswind.episodes.schedule import episodes
from crosswind.episodes.suite import Suite
from crosswind.models.source import Price
from crosswind.runs import runner
from crosswind.runs.store import load_run

PARTS = ("overhead", "memory", "kills")
INSPECT = "inspect-ai==0.3.285"

# A like task for Inspect: two turns, one tool, a scorer that looks at the answer. The usage is given, since its mock
# model otherwise counts tokens with a table that it downloads.
THEIRS = '''
import json, sys, tempfile, time
from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageTool, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import tool

@tool
def price():
    async def execute(place: str):
        """Price of a ticket.

        Args:
            place: Which place.
        """
        return "12.50"
    return execute

def policy(input, tools, tool_choice, config):
    if isinstance(input[-1], ChatMessageTool):
        out = ModelOutput.from_content("m", f"It costs {input[-1].text}.")
    else:
        out = ModelOutput.for_tool_call("m", "price", {"place": "museum"})
    out.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15)
    return out

def one(n, **more):
    samples = [Sample(input=f"What does the museum cost? ({i})", target="12.50") for i in range(n)]
    task = Task(dataset=MemoryDataset(samples), solver=[use_tools(price()), generate()], scorer=includes())
    with tempfile.TemporaryDirectory() as logs:
        model = get_model("mockllm/model", custom_outputs=policy)
        began = time.process_time()
        log = eval(task, model=model, display="none", log_dir=logs, **more)[0]
        took = time.process_time() - began
    assert log.status == "success" and log.results.scores[0].metrics["accuracy"].value == 1.0, log.status
    return 1000 * took / n

one(20)
for line in sys.stdin:
    n = int(line)
    print(json.dumps({"default": one(n), "least logging": one(n, log_samples=False, log_realtime=False)}), flush=True)
'''


def say(text: str) -> None:
    """Progress, for anyone who waits."""
    print(text, file=sys.stderr, flush=True)


# ---------------------------------------------------------------- agents


class OneCall(Reciter):
    """Makes the first call of the certified way, then says its end: two turns and one tool."""

    def __init__(self, drawn: Drawn) -> None:
        lines = list(lines_of(drawn.certificate.gold))
        super().__init__([*lines[:1], lines[-1]])


class Source:
    """Agents for a run."""

    price: Price | None = None
    concurrency = 1
    ending: Ending = "words"
    resumes = False

    def __init__(self, name: str, pause: float = 0.0, log: Path | None = None) -> None:
        self.name, self.pause, self.log = name, pause, log
        self.settings: dict[str, Any] = {}

    def make(self, drawn: Drawn) -> Agent:
        if self.log is None:
            return OneCall(drawn)
        return Slow(drawn, self.pause, self.log)

    async def aclose(self) -> None:
        pass


class Slow(Reciter):
    """Walks the certified way with a little wait at each turn, and writes down that it began."""

    def __init__(self, drawn: Drawn, pause: float, log: Path) -> None:
        super().__init__(lines_of(drawn.certificate.gold))
        self.pause = pause
        with log.open("a") as file:
            file.write(f"{drawn.base.id} {[layer.kind for layer in drawn.layers]}\n")

    async def reply(self, chat: Any, tools: Any) -> Message:
        await asyncio.sleep(self.pause)
        return await super().reply(chat, tools)


def suite_of(n: int) -> Suite:
    """This many clean episodes whose requests take no write."""
    return Suite(name="bench", domains=("poi",), levels=(1,), tasks=n)


# ---------------------------------------------------------------- overhead


def bare(n: int, seed: int) -> float:
    """Milliseconds for each episode: drawn, played and judged, and nothing more."""

    async def work() -> None:
        for episode in episodes(suite_of(n), seed):
            drawn = episode.drawn
            judge(await play(drawn, OneCall(drawn), "bench"), drawn.domain)

    began = time.process_time()
    asyncio.run(work())
    return 1000 * (time.process_time() - began) / n


def whole(n: int, seed: int) -> float:
    """The same by the runner."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        ran = asyncio.run(runner.run(suite_of(n), Source("bench"), Path(folder) / "run", seed=seed))
        took = time.process_time() - began
        counts = ran.progress.scores["clean"]
    if (counts.n, ran.progress.errors) != (n, 0):
        raise SystemExit(f"{counts.n} of {n} episodes were scored")
    return 1000 * took / n


def overhead(episodes: int, rounds: int, samples: int, python: Path | None) -> dict[str, list[float]]:
    """Milliseconds for each episode, by round. Many short rounds: a busy machine then disturbs all figures alike."""
    figures: dict[str, list[float]] = {name: [] for name in ("bare", "run", "overhead")}
    theirs = _started(python) if python else None
    n = episodes // rounds
    whole(50, 0)  # imports what a run needs and playing does not
    for i in range(rounds):
        seed = 1_000_000 + 100_000 * i
        bare(n, seed)  # derives the names and rows that both then find
        first, second = (bare, whole) if i % 2 else (whole, bare)
        took = {first.__name__: first(n, seed), second.__name__: second(n, seed)}
        figures["bare"].append(took["bare"])
        figures["run"].append(took["whole"])
        figures["overhead"].append(took["whole"] - took["bare"])
        if theirs:
            for name, ms in _asked(theirs, samples).items():
                figures.setdefault(f"Inspect, {name}", []).append(ms)
                figures.setdefault(f"Inspect, {name} / run", []).append(ms / took["whole"])
        say(f"overhead: round {i + 1} of {rounds}: {figures['overhead'][-1]:.3f} ms")
    if theirs and theirs.stdin:
        theirs.stdin.close()
        theirs.wait()
    return figures


def _started(python: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([python, "-c", THEIRS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _asked(theirs: subprocess.Popen[str], samples: int) -> dict[str, float]:
    assert theirs.stdin
    assert theirs.stdout
    theirs.stdin.write(f"{samples}\n")
    theirs.stdin.flush()
    found: dict[str, float] = json.loads(theirs.stdout.readline())
    return found


def inspect_python(folder: Path) -> Path | None:
    """An interpreter that has Inspect, made if it is not there; None where that is impossible."""
    python = folder / "bin" / "python"
    if not python.exists():
        say(f"overhead: installing {INSPECT} into {folder}")
        try:
            venv.create(folder, with_pip=True)
            subprocess.run([python, "-m", "pip", "install", "-q", INSPECT], check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            say(f"overhead: {INSPECT} could not be installed ({error}); its figures are left out")
            return None
    return python


# ---------------------------------------------------------------- memory


def resident() -> float:
    """Megabytes that this process holds now."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


class Gauge:
    """Looks at the memory every N episodes."""

    def __init__(self, every: int) -> None:
        self.every, self.seen = every, dict[int, float]()

    def show(self, progress: runner.Progress) -> None:
        if progress.done % self.every == 0 and progress.done not in self.seen and progress.done:
            self.seen[progress.done] = resident()
            say(f"memory: {progress.done:,} episodes, {self.seen[progress.done]:.0f} MB")


def memory(episodes: int) -> dict[int, float]:
    """Megabytes by episodes so far."""
    gauge = Gauge(max(1, episodes // 10))
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(runner.run(suite_of(episodes), Source("bench"), Path(folder) / "run", watch=gauge))
    return gauge.seen


# ---------------------------------------------------------------- kills


def kills(times: int, seed: int, concurrency: int = 8) -> dict[str, Any]:
    """Kill a run at random moments until it was killed often enough, let it end, and count."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as base:
        folder, log = Path(base) / "run", Path(base) / "began.txt"
        wanted = {episode.key for episode in episodes(_killed_suite(times), seed)}
        killed = starts = 0
        while True:
            starts += 1
            child = os.fork()
            if child == 0:
                _play_on(folder, log, times, seed, concurrency)
            if killed < times:
                time.sleep(rng.uniform(0.0, 0.25))
                os.kill(child, signal.SIGKILL)
                killed += 1
            _, status = os.waitpid(child, 0)
            if not os.WIFSIGNALED(status):
                break
        run = load_run(folder)
        keys = [record.key for record in run.records]
        lines = (folder / "episodes.jsonl").read_bytes().count(b"\n")
        began = len(log.read_text().splitlines())
        torn = folder / "episodes.jsonl.torn"
        return {
            "kills": killed,
            "starts": starts,
            "episodes": len(wanted),
            "exit": os.WEXITSTATUS(status),
            "lost": len(wanted - set(keys)),
            "unknown": len(set(keys) - wanted),
            "duplicated": sum(n - 1 for n in Counter(keys).values()) + lines - len(keys),
            "begun": began,
            "most_begun": len(wanted) + killed * concurrency,
            "torn": torn.read_bytes().count(b"\n") if torn.exists() else 0,
            "problems": run.problems,
        }


def _killed_suite(times: int) -> Suite:
    """This many episodes that a run outlasts its kills."""
    from crosswind.episodes.suite import suites

    return suites["quick"].model_copy(update={"tasks": 16 * times})


def _play_on(folder: Path, log: Path, times: int, seed: int, concurrency: int) -> None:
    """In the child: run, or go on."""
    try:
        source = Source("slow", 0.002, log)
        asyncio.run(runner.run(_killed_suite(times), source, folder, seed=seed, concurrency=concurrency))
        os._exit(0)
    except BaseException as error:
        say(f"kills: {type(error).__name__}: {error}")
        os._exit(1)


# ---------------------------------------------------------------- the command


def shown(figures: dict[str, list[float]]) -> Iterator[str]:
    yield "| figure | median | least | greatest |\n| --- | ---: | ---: | ---: |"
    for name, rounds in figures.items():
        unit = "" if "/" in name else " ms"
        yield f"| {name} | {median(rounds):.3g}{unit} | {min(rounds):.3g}{unit} | {max(rounds):.3g}{unit} |"


def arguments() -> argparse.Namespace:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "crosswind"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="what to do (default: all)")
    parser.add_argument("--episodes", type=int, default=5_000, help="of the part overhead (default: 5000)")
    parser.add_argument("--rounds", type=int, default=20, help="of the part overhead (default: 20)")
    parser.add_argument("--samples", type=int, default=50, help="of Inspect in each round (default: 50)")
    parser.add_argument("--grow", type=int, default=50_000, help="episodes of the part memory (default: 50000)")
    parser.add_argument("--kills", type=int, default=30, help="of the part kills (default: 30)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments of the kills")
    parser.add_argument("--no-inspect", action="store_true", help="leave Inspect out")
    parser.add_argument("--inspect-env", type=Path, default=cache / INSPECT, help="its environment, made if missing")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there as well")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    cores = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.2f}"
    print(f"crosswind {__version__}, {date.today()}, CPython {platform.python_version()}, {cores}", flush=True)
    data: dict[str, Any] = {}
    if "overhead" in args.parts:
        python = None if args.no_inspect else inspect_python(args.inspect_env)
        data["overhead"] = overhead(args.episodes, args.rounds, args.samples, python)
        print("\n## overhead: processor time for each episode\n", *shown(data["overhead"]), sep="\n", flush=True)
    if "memory" in args.parts:
        data["memory"] = memory(args.grow)
        rows = [f"| {n:,} | {mb:.0f} |" for n, mb in data["memory"].items()]
        print("\n## memory\n\n| episodes | MB |\n| ---: | ---: |", *rows, sep="\n", flush=True)
    if "kills" in args.parts:
        data["kills"] = kills(args.kills, args.seed)
        print("\n## kills\n", *(f"- {name}: {value}" for name, value in data["kills"].items()), sep="\n", flush=True)
    if args.json:
        args.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
