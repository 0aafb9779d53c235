"""How fast demonstrations are made, how long they are, and that their number costs no memory.

Four parts:
  same    in how many episodes a row holds the tokens that a model is given in an evaluation; needs --tokenizer
  speed   demonstrations/s beside certified draws/s of the same recipe, in turns (A B A B ...), as a ratio
  length  tokens of a demonstration under a model's tokenizer, and how near the estimate is; needs --tokenizer
  memory  the most memory that `crosswind data` held after this many demonstrations

A draw is a task of the split train drawn and a stack on it certified; a demonstration is that, the conversation, its
length and a line of JSON, with whatever had to be drawn again because it was too long or no kind applied; "none left
out" is without a limit to the length. Seconds are those of the processor. Every figure of `speed` is the median over
the rounds, with the least and the greatest.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import fmean, median

from crosswind import __version__
from crosswind.agents.oracle import Oracle
from crosswind.base.errors import CannotPerturb
from crosswind.cli.data import spread
from crosswind.core.draw import Drawn, draw
from crosswind.core.flow import rng_for
from crosswind.core.registry import domains
from crosswind.core.types import Message, Tools
from crosswind.episodes.play import play
from crosswind.episodes.recipe import load_recipe
from crosswind.episodes.schedule import tasks
from crosswind.models.prompts import Conversation, Script, script_of, spoken
from crosswind.train.data import DataConfig, Measure, demonstration_at, estimate, stream
from crosswind.train.formats import line, written
from crosswind.train.rows import Row, demonstration, rows, tokens

PARTS = ("same", "speed", "length", "memory")
CASES = {"clean": ("mixed", 0.0), "mixed, share 0.3": ("mixed", 0.3), "mixed": ("mixed", 1.0), "hard": ("hard", 1.0)}
WINDOW, ENDLESS = 2048, 10**6  # tokens
EXAMPLES = """examples:
  python bench/data.py --parts speed
  python bench/data.py --tokenizer embedded --json figures.json
  python bench/data.py --rounds 1 --count 40 --sizes 100 200    a look whether it runs; the figures mean little
"""


def say(text: str) -> None:
    """Progress, for anyone who waits."""
    print(text, file=sys.stderr, flush=True)


def table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    rule = ["---" if n < 2 else "---:" for n in range(len(head))]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *body))


def told(figures: Sequence[float], form: str = "{:,.0f}") -> str:
    middle, least, most = (form.format(f(figures)) for f in (median, min, max))
    return f"{middle} ({least} to {most})"


# ---------------------------------------------------------------- the same tokens


class Watched:
    """The oracle, with what a model in its place would have been given."""

    def __init__(self, drawn: Drawn, script: Script) -> None:
        self.oracle, self.talk = Oracle(drawn), Conversation(script)
        self.thinks = (message for message in demonstration(drawn).chat if message.role == "assistant")
        self.prompts: list[list[int]] = []

    async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
        self.prompts.append(self.talk.update(chat, tools))
        message = await self.oracle.reply(chat, tools)
        self.talk.wrote(self.talk.script.agent(spoken(next(self.thinks))))
        return message


def same(script: Script, count: int) -> dict[str, int]:
    """Episodes of every domain: clean, by recipe, and with menus and minds that change midway."""
    found = Counter[str]()
    for name in domains.names():
        say(f"same: {name}")
        domain = domains[name]
        for n, task in enumerate(islice(tasks(domain, 5, split="train"), -(-count // len(domains.names())))):
            recipe = load_recipe("hard" if n % 2 else "mixed")
            picks: Sequence[str | tuple[str, int]] = recipe.pick(rng_for("same", n)) if n % 4 else ()
            picks = ("retired_midway", "changed_mind") if n % 8 == 1 else picks
            try:
                drawn = draw(domain, task, picks, n, strict=False)
            except CannotPerturb:
                continue
            agent = Watched(drawn, script)
            asyncio.run(play(drawn, agent, "watched"))
            told: list[list[int]] = []
            for row in rows(demonstration(drawn)):
                ids, mask = tokens(row, script)
                told += [ids[:i] for i in range(1, len(ids)) if mask[i] and not mask[i - 1]]
            found += Counter(episodes=1, turns=len(told), perturbed=bool(drawn.layers))
            found["menus that changed"] += len(rows(demonstration(drawn))) > 1
            found["episodes that differ"] += told != agent.prompts
    return dict(found)


# ---------------------------------------------------------------- speed


def rate(work: Callable[[], int]) -> float:
    """What a piece of work makes in a second, caches cold."""
    for module in [m for name, m in sys.modules.items() if name.split(".")[0] == "crosswind"]:
        for thing in list(vars(module).values()):
            if callable(clear := getattr(thing, "cache_clear", None)):
                clear()
    gc.collect()
    began = time.process_time()
    made = work()
    return made / (time.process_time() - began)


def draws(config: DataConfig, count: int) -> int:
    """Certified draws as the core makes them: tasks of all families under stacks of the recipe, or under none."""
    recipe, made = config.followed(), 0
    for n in range(count):
        rng = rng_for("bench", n)
        domain = domains[next(iter(config.domains))]
        task = domain.task(rng.choice(list(domain.families)), rng.getrandbits(31), split="train")
        picks = recipe.pick(rng) if rng.random() < config.share else ()
        try:
            draw(domain, task, picks, n, strict=False)
        except CannotPerturb:
            continue
        made += 1
    return made


def demonstrations(config: DataConfig, count: int, measure: Measure) -> int:
    """Demonstrations as `crosswind data` makes them, up to the line of JSON."""
    for n in range(count):
        for row in written(demonstration_at(config, n, measure=measure), "trl"):
            line(row)
    return count


def speed(names: Sequence[str], count: int, rounds: int, exact: Measure | None) -> list[dict[str, object]]:
    measures: dict[str, tuple[Measure, int]] = {
        "demonstrations": (estimate, WINDOW),
        "none left out": (estimate, ENDLESS),
    }
    if exact:
        measures["counted in tokens"] = (exact, WINDOW)
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    for nth in range(rounds):
        say(f"speed: round {nth + 1} of {rounds}")
        for name in names:
            for label, (recipe, share) in CASES.items():
                config = DataConfig(domains={name: 1.0}, recipe=recipe, share=share)
                here = found.setdefault((name, label), {what: [] for what in ("draws", *measures)})
                here["draws"].append(rate(partial(draws, config, count)))
                for what, (measure, longest) in measures.items():
                    bounded = config.model_copy(update={"max_tokens": longest})
                    here[what].append(rate(partial(demonstrations, bounded, count, measure)))
    out: list[dict[str, object]] = []
    for (name, label), here in found.items():
        ratios = {
            f"{what}, ratio": [a / b for a, b in zip(here[what], here["draws"], strict=True)] for what in measures
        }
        out.append({"domain": name, "case": label, **here, **ratios})
    return out


def show_speed(figures: Sequence[dict[str, object]]) -> str:
    heads = [key for key in figures[0] if key not in ("domain", "case")]
    body = []
    for one in figures:
        cells = [told(one[k], "{:.2f}" if k.endswith(", ratio") else "{:,.0f}") for k in heads]  # type: ignore[arg-type]
        body.append([str(one["domain"]), str(one["case"]), *cells])
    return table(["domain", "case", *(h if h.endswith(", ratio") else f"{h}/s" for h in heads)], body)


# ---------------------------------------------------------------- length


def length(names: Sequence[str], count: int, exact: Measure) -> list[dict[str, object]]:
    out: list[dict[str, object]] = []
    for name in names:
        for label, (recipe, share) in CASES.items():
            say(f"length: {name}, {label}")
            config = DataConfig(domains={name: 1.0}, recipe=recipe, share=share, max_tokens=0, seed=1)
            lengths: Counter[int] = Counter()
            errors: list[float] = []
            turns: list[int] = []
            for _, shown in zip(range(count), stream(config), strict=False):
                for row in rows(shown):
                    real = exact(row)
                    lengths[real] += 1
                    errors.append(estimate(row) / real - 1)
                    turns.append(len(shown.turns))
            over = sum(n for size, n in lengths.items() if size > WINDOW) / lengths.total()
            errors.sort()
            out.append(
                {
                    "domain": name,
                    "case": label,
                    "demonstrations": lengths.total(),
                    "turns": round(fmean(turns), 1),
                    **spread(lengths),
                    f"over {WINDOW}": f"{100 * over:.1f} %",
                    "estimate": f"{100 * median(errors):+.1f} % ({100 * errors[0]:+.1f} to {100 * errors[-1]:+.1f})",
                }
            )
    return out


# ---------------------------------------------------------------- memory

CHILD = """\
import json, resource, sys
from crosswind.cli.app import app
try:
    app(sys.argv[1:])
except SystemExit as stop:
    if stop.code: raise
print(json.dumps(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
"""


def memory(sizes: Sequence[int]) -> list[dict[str, object]]:
    out: list[dict[str, object]] = []
    unit = 1024 * (1024 if sys.platform == "darwin" else 1)
    for size in sizes:
        say(f"memory: {size:,} demonstrations")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "rows.jsonl"
            command = [sys.executable, "-c", CHILD, "data", "--count", str(size), "--out", str(file)]
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            out.append(
                {
                    "demonstrations": f"{size:,}",
                    "most memory, MB": round(int(done.stdout.splitlines()[-1]) * 1024 / unit / 1024),
                    "file, MB": round(file.stat().st_size / 1e6),
                    "processor seconds": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime),
                }
            )
    return out


def counted(script: Script, row: Row) -> int:
    return len(tokens(row, script).ids)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--domains", nargs="+", default=["poi", "medical"], metavar="NAME")
    parser.add_argument("--rounds", type=int, default=5, help="of the part speed")
    parser.add_argument("--count", type=int, default=300, help="draws in a round, and demonstrations that are measured")
    parser.add_argument("--episodes", type=int, default=420, help="of the part same")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 20_000], help="of the part memory")
    parser.add_argument("--tokenizer", default="", help="embedded, or a model's folder; needs the extra train")
    parser.add_argument("--json", type=Path, help="a file for all figures")
    args = parser.parse_args()
    exact: Measure | None = None
    script: Script | None = None
    if args.tokenizer:
        from transformers import AutoTokenizer

        from crosswind.models.loading import place_of

        where = place_of(args.tokenizer)
        script = script_of(AutoTokenizer.from_pretrained(where.path, **where.options))
        exact = partial(counted, script)
    elif wanting := [part for part in ("same", "length") if part in args.parts]:
        say(f"{' and '.join(wanting)}: left out, for want of --tokenizer")
    load = " ".join(f"{x:.1f}" for x in os.getloadavg())
    print(
        f"crosswind {__version__}, {date.today().isoformat()}, {platform.python_implementation()} "
        f"{platform.python_version()}, {os.cpu_count()} cores, one used; load at start {load}"
    )
    data: dict[str, object] = {}
    if "same" in args.parts and script:
        data["same"] = seen = same(script, args.episodes)
        print("\n" + ", ".join(f"{what}: {n}" for what, n in seen.items()))
    if "speed" in args.parts:
        data["speed"] = figures = speed(args.domains, args.count, args.rounds, exact)
        print(f"\n{args.rounds} rounds of {args.count}\n\n{show_speed(figures)}")
    if "length" in args.parts and exact:
        data["length"] = found = length(args.domains, args.count, exact)
        print("\n" + table(list(found[0]), [[str(v) for v in one.values()] for one in found]))
    if "memory" in args.parts:
        data["memory"] = held = memory(args.sizes)
        print("\n" + table(list(held[0]), [[str(v) for v in one.values()] for one in held]))
    if args.json:
        args.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
