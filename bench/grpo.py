"""Where the time of a GRPO step goes, and what the same step costs in TRL's trainer.

    python bench/grpo.py examples/train/grpo.yaml --set start=runs/static/adapter --steps 4
    python bench/grpo.py examples/train/grpo.yaml --forced --steps 4          any model, no adapter needed
    python bench/grpo.py CONFIG --steps 4 --trl                               the same groups through TRL as well
    python bench/grpo.py --tiny --steps 4 --trl --rows 32                     a tiny model on a CPU, made here

With `--forced` every episode says what the oracle says, and of each group every other one is told that it failed: so
all rows are learnt from, as many and as long as they would be with a good model, which is the most that a step can
cost. The first step is printed apart: it captures graphs and warms libraries up.

`--trl` trains the same model from the same start with TRL's GRPOTrainer and a `rollout_func` that plays through the
same engine: one update per step, the same rewards. It needs
`pip install trl datasets`. docs/results/grpo_choice.md has figures.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from crosswind import __version__
from crosswind.agents._scripted import lines_of
from crosswind.core.draw import Drawn
from crosswind.models import prompts
from crosswind.models.engine import Completion
from crosswind.train.config import GrpoConfig, load
from crosswind.train.data import demonstration_at
from crosswind.train.grpo import FRESH, Training
from crosswind.train.rollouts import Group, Player, Players, Seed, play_groups


class Forced(Player):
    """Writes the oracle's words."""

    lines: Any

    def submit(self, ids: list[int]) -> Future[Completion]:
        assert self.source.script
        words = self.source.script.agent(prompts.spoken(next(self.lines)))
        written = self.engine.submit(ids, key=self.key, max_new=len(words), forced=words, temperature=1.0)
        self.turns.append((ids, written))
        return written


class ForcedPlayers(Players):
    def player(self, drawn: Drawn, seed: Seed) -> Player:
        assert self.engine
        made = Forced(self, self.engine, next(self._numbers), seed)
        made.lines = lines_of(drawn.certificate.gold)
        return made


class Alternating(Training):
    """Every other episode of a group is told that it failed."""

    def play(self) -> list[Group]:
        groups = super().play()
        assert all(one.passed for group in groups for one in group.rollouts), "the oracle's words failed"
        return [
            Group(g.index, g.kinds, [replace(r, reward=float(n % 2)) for n, r in enumerate(g.rollouts)]) for g in groups
        ]


def ours(config: GrpoConfig, steps: int, forced: bool) -> list[dict[str, Any]]:
    """This many steps of our own loop; a line of metrics for each."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        training = (Alternating if forced else Training)(config, Path(folder))
        if forced:
            training.players = ForcedPlayers(
                training.engine, training.tokenizer, temperature=config.temperature, max_tokens=config.max_new
            )
        try:
            training.sync()
            print(f"- ready after {time.perf_counter() - began:.1f} s", flush=True)
            lines = []
            for _ in range(steps):
                began, used = time.perf_counter(), time.process_time()
                line = training.advance()
                lines.append({**line, "total": time.perf_counter() - began, "cpu": time.process_time() - used})
                print(json.dumps(lines[-1]), flush=True)
            return lines
        finally:
            training.close()


# ---------------------------------------------------------------- TRL, glue and all


def in_trl(config: GrpoConfig, steps: int, rows: int) -> list[dict[str, Any]]:
    """This many steps of TRL's GRPOTrainer; `rows` are computed at a time."""
    from datasets import Dataset
    from transformers import PrinterCallback, TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    with tempfile.TemporaryDirectory() as folder:
        own = Training(config, Path(folder))  # for its model, its engine and its way to hand over weights
        spent: list[float] = []
        lost = 0

        def rollout(asked: list[str], trainer: Any) -> dict[str, Any]:
            nonlocal lost
            began = time.perf_counter()
            own.sync()
            indices = list(dict.fromkeys(map(int, asked)))
            groups = play_groups(
                own.players,
                indices,
                lambda index: demonstration_at(config.data, index).drawn,
                copies=config.copies,
                seed=("grpo", config.seed, trainer.state.global_step),
            )
            episodes = [one for group in groups for one in group.rollouts]
            lost += sum(len(one.rows) - 1 for one in episodes if one.rows)  # a prompt has one completion
            last = [one.rows[-1] for one in episodes]
            firsts = [row.mask.index(1) for row in last]
            known = [iter(row.logprobs) for row in last]
            out = {
                "prompt_ids": [row.ids[:n] for row, n in zip(last, firsts, strict=True)],
                "completion_ids": [row.ids[n:] for row, n in zip(last, firsts, strict=True)],
                "env_mask": [row.mask[n:] for row, n in zip(last, firsts, strict=True)],
                "logprobs": [
                    [next(of) if m else 0.0 for m in row.mask[n:]]
                    for row, n, of in zip(last, firsts, known, strict=True)
                ],
                "env_reward": [one.reward for one in episodes],
            }
            spent.append(time.perf_counter() - began)
            return out

        def rewarded(env_reward: Sequence[float | None], **_: Any) -> list[float | None]:
            return list(env_reward)

        count = config.groups * config.copies
        args = GRPOConfig(
            output_dir=folder,
            max_steps=steps,
            per_device_train_batch_size=rows,
            gradient_accumulation_steps=count // rows,
            num_generations=config.copies,
            learning_rate=config.rate,
            lr_scheduler_type="constant",
            max_grad_norm=config.clip,
            temperature=config.temperature,
            epsilon=config.epsilon,
            beta=config.beta,
            scale_rewards="group" if config.scale == "std" else "none",
            loss_type="dapo",
            max_completion_length=config.window,
            shuffle_dataset=False,
            gradient_checkpointing=config.checkpointing,
            bf16=own.bf16,
            use_cpu=own.device == "cpu",
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            seed=config.seed,
        )
        lines: list[dict[str, Any]] = []
        laps = [(0.0, 0.0)]

        class Watching(TrainerCallback):  # type: ignore[misc]
            def on_step_end(self, *_: Any, **__: Any) -> None:
                laps.append((time.perf_counter(), time.process_time()))

            def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any], **_: Any) -> None:
                if "reward" in logs:
                    lines.append({name: logs.get(name) for name in ("reward", "loss", "grad_norm", "entropy")})

        indices = [str(FRESH + n) for n in range(steps * config.groups)]
        trainer = GRPOTrainer(
            model=own.model,
            args=args,
            train_dataset=Dataset.from_dict({"prompt": indices}),
            processing_class=own.tokenizer,
            reward_funcs=rewarded,
            rollout_func=rollout,
            callbacks=[Watching()],
        )
        trainer.remove_callback(PrinterCallback)
        laps[0] = time.perf_counter(), time.process_time()
        try:
            trainer.train()
        finally:
            own.close()
    for n, line in enumerate(lines):
        total, cpu = (after - before for before, after in zip(laps[n], laps[n + 1], strict=True))
        line |= {
            "total": total,
            "cpu": cpu,
            "seconds": {"rollout": spent[n], "learning": total - spent[n]},
            "rows lost": lost,
        }
        print(json.dumps(line), flush=True)
    return lines


# ---------------------------------------------------------------- the command


@contextmanager
def tiny() -> Iterator[GrpoConfig]:
    """The tests' tiny model after a brief imitation of four tasks of the tests' toy domain."""
    from crosswind.train.config import TrainConfig
    from crosswind.train.run import train
    from tests import tiny as made

    torch.set_num_threads(1)
    data = {"domains": {"shelf": 1.0}, "share": 0.0, "fixed": 4}
    both = {"full": True, "device": "cpu", "pad_to": 16, "schedule": "constant", "data": data}
    with tempfile.TemporaryDirectory() as folder, made.shelf(Path(folder)):
        base = made.save(Path(folder) / "base", "shelf")
        brief = {"model": str(base), "steps": 60, "batch": 4, "buffer": 1, "save_every": 60, "lr": 5e-3}
        start = train(
            TrainConfig.model_validate({**both, **brief}, strict=False), Path(folder) / "sft", method="sft"
        ).adapter
        small = {"model": start, "groups": 4, "copies": 8, "lr": 5e-4, "warmup": 0.0, "max_new": 48, "window": 640}
        yield GrpoConfig.model_validate({**both, **small, "updates": 1}, strict=False)


def split(name: str, lines: Sequence[dict[str, Any]]) -> None:
    """The mean of each part over the steps after the first."""
    later = lines[1:] or lines
    total = fmean(line["total"] for line in later)
    print(f"\n## {name}: {total:.2f} s a step (the first took {lines[0]['total']:.2f} s)\n")
    for part in later[0]["seconds"]:
        seconds = fmean(line["seconds"][part] for line in later)
        print(f"- {part}: {seconds:.2f} s, {100 * seconds / total:.0f} %")
    for figure in (
        "cpu",
        "reward",
        "signal",
        "rows",
        "learnt",
        "length",
        "turns",
        "tokens_per_second",
        "episodes_per_second",
    ):
        if figure in later[0]:
            print(f"- {figure}: {fmean(line[figure] for line in later):,.4g}")
    if torch.cuda.is_available():
        print(f"- memory at most: {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", nargs="?", help="a YAML file; without one, the defaults")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change an option")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--forced", action="store_true", help="the oracle's words, every other episode a failure")
    parser.add_argument("--trl", action="store_true", help="the same in TRL's trainer, with one update a step")
    parser.add_argument("--tiny", action="store_true", help="a tiny model on a CPU instead of a configuration")
    parser.add_argument("--rows", type=int, default=8, help="rows that TRL computes at a time (default: 8)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there as well")
    args = parser.parse_args()
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else platform.machine()
    print(f"crosswind {__version__}, torch {torch.__version__}, {device}", flush=True)
    found: dict[str, list[dict[str, Any]]] = {}

    def measure(config: GrpoConfig) -> None:
        found["ours"] = ours(config, args.steps, args.forced)
        if args.trl:
            found["trl"] = in_trl(config, args.steps, args.rows)

    if args.tiny:
        with tiny() as config:
            measure(config)
    else:
        measure(load(args.config, [*args.set, *(["updates=1"] if args.trl else [])], GrpoConfig))
    for name, lines in found.items():
        split(name, lines)
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
