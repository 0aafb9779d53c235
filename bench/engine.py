"""How fast a local model is evaluated: whole episodes by the runner, thousands of them at a time.

    python bench/engine.py --model embedded --episodes 4000 --slots 1024 --json out.json
    python bench/engine.py --model DIR --forced oracle       the oracle's words, token by token, through the model
    python bench/engine.py --model DIR --host                what the host alone can do: the same without the model
    python bench/engine.py --model DIR --processes 4         the same run by four processes on one device

With `--forced oracle` each turn of the oracle is written by the model token by token, whatever it would have written
itself: so an untrained model gives the throughput of a good one, and every episode must succeed. `--check` compares
replies with `generate` of transformers, and the kernel with plain torch, before anything is timed.

One process plays on one core. With `--processes` each has its share of the episodes and of the slots; they begin
together, and the figures are those of all.

The floor of a step of writing is the time to read the weights once, and the keys and values of all conversations in
the batch, at the speed at which this device copies memory. docs/local_models.md has figures.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import subprocess
import sys
import tempfile
import time
from concurrent.futures import Future
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

import torch

from crosswind import __version__
from crosswind.agents._scripted import lines_of
from crosswind.core.draw import Drawn
from crosswind.episodes import schedule
from crosswind.episodes.suite import Suite, suites
from crosswind.models import prompts
from crosswind.models.engine import Completion, Engine
from crosswind.models.hf import HuggingFace, HuggingFaceAgent
from crosswind.models.loading import load, with_adapter
from crosswind.models.source import AgentSettings
from crosswind.runs import runner


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# ---------------------------------------------------------------- agents


class Instant:
    """An engine that has written as soon as it is asked: what is left is the host's work."""

    window, slots = 1 << 20, 0

    def submit(self, ids: list[int], *, forced: list[int], **_: Any) -> Future[Completion]:
        future: Future[Completion] = Future()
        future.set_result(Completion(forced, [0.0] * len(forced), "stop"))
        return future

    def release(self, key: object) -> None:
        pass

    def close(self) -> None:
        pass


class Source(HuggingFace):
    """Agents of the model; with `forced`, each says what the oracle says."""

    def __init__(self, spec: str, settings: AgentSettings, args: argparse.Namespace) -> None:
        super().__init__(spec, settings)
        self.args = args
        self.slots = args.slots

    def make(self, drawn: Drawn) -> HuggingFaceAgent:
        if self.engine is None:
            self.engine = self._load()
        key = next(self._numbers)
        if self.args.forced or self.args.host:
            return Forced(self, self.engine, key, drawn)
        return HuggingFaceAgent(self, self.engine, key, (key, ""))

    def _load(self) -> Engine:
        if not self.args.host:
            return super()._load()
        _, self.tokenizer = load(self.path, torch.float32)
        self.script = prompts.script_of(self.tokenizer)
        made: Any = Instant()
        return made  # type: ignore[no-any-return]


class Forced(HuggingFaceAgent):
    """Writes the oracle's words."""

    def __init__(self, source: HuggingFace, engine: Engine, key: int, drawn: Drawn) -> None:
        super().__init__(source, engine, key, None)
        self.lines = lines_of(drawn.certificate.gold)

    def submit(self, ids: list[int]) -> Future[Completion]:
        if self.source.script is None:
            raise SystemExit("--forced needs a model that is given tools as text")
        words = self.source.script.agent(prompts.spoken(next(self.lines)))
        return self.engine.submit(ids, key=self.key, max_new=len(words), forced=words)


class Watch:
    """Looks on, to leave out the beginning and the end of a run, when the batch is not full."""

    def __init__(self, source: Source) -> None:
        self.source, self.seen = source, list[tuple[float, int, int]]()

    def show(self, progress: runner.Progress) -> None:
        engine = self.source.engine
        written = engine.stats.written if isinstance(engine, Engine) else 0
        self.seen.append((time.perf_counter(), progress.done, written))

    def middle(self, total: int) -> tuple[float, float]:
        """Episodes and tokens a second between the fifth and the last fifth of the episodes."""
        inside = [one for one in self.seen if 0.2 * total <= one[1] <= 0.8 * total]
        if len(inside) < 2 or inside[-1][0] == inside[0][0]:
            return 0.0, 0.0
        seconds = inside[-1][0] - inside[0][0]
        return (inside[-1][1] - inside[0][1]) / seconds, (inside[-1][2] - inside[0][2]) / seconds


# ---------------------------------------------------------------- parts


def suite_of(args: argparse.Namespace) -> Suite:
    if args.suite:
        suite = suites[args.suite]
        return suite.model_copy(update={"domains": (args.suite_domain,), "tasks": args.episodes})
    return Suite(name="bench", domains=(args.suite_domain,), tasks=args.episodes)


def bandwidth(device: Any) -> float:
    """Bytes a second that this device reads and writes when it copies memory."""
    n = 2**31 if device.type == "cuda" else 2**26
    one, other = (torch.zeros(n, dtype=torch.uint8, device=device) for _ in range(2))
    for _ in range(3):
        other.copy_(one)
    wait(device)
    began = time.perf_counter()
    for _ in range(10):
        other.copy_(one)
    wait(device)
    return 20 * n / (time.perf_counter() - began)


def wait(device: Any) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def check(args: argparse.Namespace) -> dict[str, Any]:
    """Greedy replies of the engine against `generate`, and of the kernel against plain torch, on ragged prompts."""
    cuda = torch.cuda.is_available()
    model, tokenizer = load(args.model, torch.bfloat16 if cuda else torch.float32)
    model = (with_adapter(model, args.adapter) if args.adapter else model).to("cuda" if cuda else "cpu").eval()
    text = prompts.with_tools("Find what is asked for.", ()) + " The museum costs 12 euros and opens at nine." * 20
    ids = tokenizer.encode(text, add_special_tokens=False)
    asked = [ids[: 10 + 37 * i] for i in range(12)]
    whole = []
    for one in asked:
        tokens = torch.tensor([one], device=model.device)
        with torch.no_grad():
            out = model.generate(
                tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=32, do_sample=False, pad_token_id=0
            )
        whole.append(out[0, len(one) :].tolist())
    found: dict[str, Any] = {}
    scores: dict[str, list[list[float]]] = {}
    for name, kernel in (("kernel", None), ("torch", False)):
        if name == "kernel" and not cuda:
            continue
        engine = Engine(model, tokenizer, slots=16, window=1024, kernel=kernel, graphs=not args.no_graphs)
        done = [
            engine.submit(one, key=i, max_new=len(said), forced=said)
            for i, (one, said) in enumerate(zip(asked, whole, strict=True))
        ]
        scores[name] = [future.result().logprobs for future in done]
        free = [engine.submit(one, key=i, max_new=32) for i, one in enumerate(asked)]
        replies = [future.result().ids for future in free]
        found[f"{name}: is the kernel"] = engine.kernel
        found[f"{name}: replies equal to generate"] = sum(a == b[: len(a)] for a, b in zip(replies, whole, strict=True))
        engine.close()
    exact = [exact_scores(model, one, said) for one, said in zip(asked, whole, strict=True)]
    for name, some in scores.items():
        found[f"{name}: greatest difference of a log-probability to a whole forward pass"] = max(
            abs(x - y) for a, b in zip(some, exact, strict=True) for x, y in zip(a, b, strict=False)
        )
    return found


def exact_scores(model: Any, ids: list[int], said: list[int]) -> list[float]:
    with torch.no_grad():
        logits = model(torch.tensor([ids + said], device=model.device)).logits[0, len(ids) - 1 : -1].float()
    chosen = torch.tensor(said, device=model.device)
    found: list[float] = logits.log_softmax(-1).gather(1, chosen[:, None])[:, 0].tolist()
    return found


def played(args: argparse.Namespace) -> dict[str, Any]:
    """Play, and what it cost."""
    settings = AgentSettings(
        max_tokens=args.reply_tokens, temperature=args.temperature, context=args.context, protocol="text"
    )
    spec = args.model + (f"+{args.adapter}" if args.adapter else "")
    source = Source(spec, settings, args)
    suite = suite_of(args)
    concurrency = args.concurrency or args.slots or source.concurrency
    began = time.perf_counter()
    first = next(iter(schedule.episodes(suite, args.seed + 1)))
    source.make(first.drawn)
    engine = source.engine
    out: dict[str, Any] = {"load_seconds": time.perf_counter() - began}
    if isinstance(engine, Engine):
        engine.prepare(hot=bool(args.temperature))
        out["prepare_seconds"] = time.perf_counter() - began - out["load_seconds"]
    watch = Watch(source)
    meet(args)
    with tempfile.TemporaryDirectory() as folder:
        began, used = time.perf_counter(), time.process_time()
        ran = asyncio.run(
            runner.run(suite, source, Path(folder) / "run", seed=args.seed, concurrency=concurrency, watch=watch)
        )
        seconds = time.perf_counter() - began
        out["ended_at"] = time.time()
        out["began_at"] = out["ended_at"] - seconds
        out["host_cpu_seconds"] = time.process_time() - used
    progress = ran.progress
    passed = sum(count.passed for count in progress.scores.values())
    episodes, tokens = watch.middle(progress.done)
    out |= {
        "episodes": progress.done, "passed": passed, "errors": progress.errors, "seconds": seconds,
        "concurrency": concurrency, "episodes_per_second": progress.done / seconds,
        "middle_episodes_per_second": episodes, "middle_tokens_per_second": tokens,
        "turns": progress.spent.requests, "prompt_tokens": progress.spent.input_tokens,
        "generated_tokens": progress.spent.output_tokens,
        "tokens_per_second": (progress.spent.output_tokens or 0) / seconds,
    }  # fmt: skip
    if isinstance(engine, Engine):
        out |= of_engine(engine, seconds)
    asyncio.run(source.aclose())
    return out


def meet(args: argparse.Namespace) -> None:
    """Wait until every process of the bench is ready."""
    if args.meet:
        where, n = Path(args.meet[0]), int(args.meet[1])
        (where / f"ready-{args.seed}").touch()
        while len(list(where.glob("ready-*"))) < n:
            time.sleep(0.02)


def together(args: argparse.Namespace) -> dict[str, Any]:
    """Several processes at once, each with its share."""
    n = args.processes
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--model", args.model, "--adapter", args.adapter]
        command += ["--suite-domain", args.suite_domain, "--suite", args.suite, "--episodes", str(args.episodes // n)]
        command += ["--context", str(args.context), "--temperature", str(args.temperature)]
        command += ["--slots", str(args.slots // n)] if args.slots else []
        command += ["--concurrency", str(args.concurrency // n)] if args.concurrency else []
        command += ["--reply-tokens", str(args.reply_tokens)] if args.reply_tokens else []
        command += ["--forced", args.forced] if args.forced else []
        command += ["--host"] if args.host else []
        files = [Path(folder) / f"{i}.json" for i in range(n)]
        seeds = [args.seed + 1_000_000 * i for i in range(n)]
        started = [
            subprocess.Popen(
                [*command, "--seed", str(seed), "--meet", folder, str(n), "--json", file], stdout=subprocess.DEVNULL
            )
            for seed, file in zip(seeds, files, strict=True)
        ]
        if any(one.wait() for one in started):
            raise SystemExit("a process of the bench failed")
        each = [json.loads(file.read_text())["played"] for file in files]
    seconds = max(one["ended_at"] for one in each) - min(one["began_at"] for one in each)
    sums = {name: sum(one[name] for one in each) for name in ("episodes", "passed", "errors", "generated_tokens")}
    rates = {
        name: sum(one[name] for one in each) for name in ("middle_episodes_per_second", "middle_tokens_per_second")
    }
    return {
        **sums, "seconds": seconds, "episodes_per_second": sums["episodes"] / seconds,
        "tokens_per_second": sums["generated_tokens"] / seconds, **rates,
        "concurrency": sum(one["concurrency"] for one in each), "each": each,
    }  # fmt: skip


def of_engine(engine: Engine, seconds: float) -> dict[str, Any]:
    """Where the time went, and how far a step is from its floor."""
    stats, model = engine.stats, engine.model
    weights = sum(p.numel() * p.element_size() for p in {id(p): p for p in model.parameters()}.values())
    speed = bandwidth(model.device)
    steps, context = max(1, stats.steps), stats.context / max(1, stats.steps)
    floor = (weights + context * engine.token_bytes) / speed
    return {
        "slots": engine.slots, "window": engine.window, "kernel": engine.kernel, "dtype": str(model.dtype),
        "stats": asdict(stats), "reading_share": stats.reading / seconds, "writing_share": stats.writing / seconds,
        "host_share": stats.host / seconds, "idle_share": stats.idle / seconds,
        "read_tokens_per_second_of_reading": stats.read / max(1e-9, stats.reading),
        "rows_per_step": stats.rows / steps, "context_per_row": stats.context / max(1, stats.rows),
        "step_ms": 1000 * stats.writing / steps, "floor_ms": 1000 * floor,
        "step_over_floor": stats.writing / steps / floor, "bandwidth_gb_per_second": speed / 1e9,
        "peak_gib": torch.cuda.max_memory_allocated() / 2**30 if model.device.type == "cuda" else None,
    }  # fmt: skip


# ---------------------------------------------------------------- the command


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="a folder, a GGUF file, a name, or embedded")
    parser.add_argument("--adapter", default="", help="folder of a LoRA adapter, merged into the weights")
    parser.add_argument("--suite-domain", default="poi", help="the domain (default: poi)")
    parser.add_argument("--suite", default="", help="a suite instead of clean episodes; --episodes are then its tasks")
    parser.add_argument("--episodes", type=int, default=4000, help="how many (default: 4000)")
    parser.add_argument(
        "--slots", type=int, default=None, help="conversations kept on the device (default: as many as fit)"
    )
    parser.add_argument("--concurrency", type=int, default=0, help="episodes at a time (default: as many as slots)")
    parser.add_argument("--context", type=int, default=0, help="tokens of a slot (default: 4096, or the model's own)")
    parser.add_argument("--reply-tokens", type=int, default=None, help="of one reply at most (default: 512)")
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--forced", choices=("oracle",), help="whose words are written, whatever the model would write")
    parser.add_argument("--host", action="store_true", help="the host's work alone, without the model")
    parser.add_argument("--processes", type=int, default=1, help="that share the work (default: 1)")
    parser.add_argument("--meet", nargs=2, help=argparse.SUPPRESS)  # a process of several: where, and how many
    parser.add_argument("--check", action="store_true", help="compare with generate first")
    parser.add_argument("--no-graphs", action="store_true", help="in --check: no CUDA graphs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there as well")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else platform.machine()
    print(f"crosswind {__version__}, {date.today()}, torch {torch.__version__}, {device}", flush=True)
    data: dict[str, Any] = {"torch": torch.__version__, "device": device, "arguments": vars(args) | {"json": None}}
    if args.check:
        data["check"] = check(args)
        print("\n## check\n", *(f"- {name}: {value}" for name, value in data["check"].items()), sep="\n", flush=True)
    if args.episodes:
        data["played"] = played(args) if args.processes == 1 else together(args)
        print("\n## played\n", *shown(data["played"]), sep="\n", flush=True)
    if args.json:
        args.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def shown(figures: dict[str, Any]) -> list[str]:
    def short(value: Any) -> str:
        return f"{value:,.4g}" if isinstance(value, float) else str(value)

    return [f"- {name}: {short(value)}" for name, value in figures.items()]


if __name__ == "__main__":
    main()
