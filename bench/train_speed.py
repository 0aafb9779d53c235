"""How fast fine-tuning runs, and what costs: the same demonstrations under several ways to train.

    python bench/train_speed.py --model embedded --steps 40 --json train_speed.json
    python bench/train_speed.py --model models/smollm2 --variants plain,gathered,compile --batch 32

Each variant trains for some steps in a folder that is thrown away. The first steps, in which workers start and kernels
are compiled, are not counted. Printed per variant: tokens per second without and with padding, the share of padding,
the share of time in which the device waited for data, the peak of memory, the seconds before the first counted step,
and the loss at the end, by which a variant that computes something else would show.
"""

from __future__ import annotations

import argparse
import gc
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import PrinterCallback, TrainerCallback

from crosswind.base.errors import CrosswindError
from crosswind.models.loading import Loaded
from crosswind.train import sft
from crosswind.train.batches import Buffers, Feed
from crosswind.train.config import TrainConfig
from crosswind.train.data import demonstration_at
from crosswind.train.model import fused, lora_layers, prepare
from crosswind.train.rows import rows, tokens

Tweak = Callable[[Any], None]


def cast(model: Any) -> None:
    """PEFT's own way: activations are copied to the adapter's dtype."""
    for layer in lora_layers(model):
        layer.cast_input_dtype_enabled = True


def in_bf16(model: Any) -> None:
    """The adapter, and with it the states of the optimiser, in bf16."""
    for parameter in model.parameters():
        if parameter.requires_grad and parameter.device.type != "cpu":
            parameter.data = parameter.data.bfloat16()


def static(model: Any) -> None:
    """A compilation for every shape."""
    torch._dynamo.config.recompile_limit = 64
    for module in model.modules():
        if type(module).__name__.endswith("DecoderLayer"):
            module.compile(dynamic=False)


VARIANTS: dict[str, tuple[str, dict[str, Any], Tweak | None]] = {
    "data": ("only the data, as fast as the workers make it", {}, None),
    "plain": ("the trainer of transformers as it comes: its loss, an attention mask, PEFT's casts", {}, cast),
    "ungrouped": ("as gathered, rows in the order they are drawn", {"buffer": 1}, None),
    "gathered": ("as `crosswind train` does it", {}, None),
    "cast": ("with PEFT's casts", {}, cast),
    "bf16": ("the adapter in bf16", {}, in_bf16),
    "fold": ("the adapter added to the weights before each product", {"lora": {"fold": True}}, None),
    "liger": ("with liger-kernel's norms, rotations and gates", {"kernels": "liger"}, None),
    "one-pass": ("the same, in one pass", {"kernels": "liger", "accumulate": 1}, None),
    "compile": ("compiled layers, one compilation for all lengths", {"compile": True}, None),
    "static": ("compiled layers, a compilation for every length, padded to 256", {"pad_to": 256}, static),
    "fold+compile": ("both", {"lora": {"fold": True}, "compile": True}, None),
    "full": ("all parameters", {"full": True}, None),
    "full+compile": ("all parameters, compiled layers", {"full": True, "compile": True}, None),
}
DEFAULT = "data,plain,gathered,cast,fold,compile,fold+compile"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="embedded", help="embedded, a folder or a .gguf file")
    parser.add_argument("--variants", default=DEFAULT, help=f"of {', '.join(VARIANTS)}")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--warm", type=int, default=10, help="steps at the start that are not counted")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--accumulate", type=int, default=1, help="passes per step")
    parser.add_argument("--domain", default="poi")
    parser.add_argument("--share", type=float, default=0.3)
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--json", type=Path, default=None, help="write the figures here")
    given = parser.parse_args()
    found: list[dict[str, Any]] = []
    for name in given.variants.split(","):
        if name not in VARIANTS:
            parser.error(f"no variant {name!r}; there are {', '.join(VARIANTS)}")
        found.append(measured(name, given))
        print(told(found[-1]), flush=True)
        if given.json:
            given.json.write_text(json.dumps(found, indent=1))


def told(row: dict[str, Any]) -> str:
    if "error" in row:
        return f"{row['variant']:14} {row['error']}"
    return (
        f"{row['variant']:14} {row['real_per_second']:>10,.0f} tok/s real {row['padded_per_second']:>10,.0f} padded  "
        f"padding {100 * row['padding']:4.1f} %  waited {100 * row['waited']:4.1f} %  peak {row['memory_gib']:6.1f} GiB"
        f"  start {row['start_s']:5.1f} s  loss {row['loss'] if row['loss'] is not None else float('nan'):.4f}"
    )


def measured(name: str, given: argparse.Namespace) -> dict[str, Any]:
    """The figures of one variant; what goes wrong in it is one of them."""
    about, options, tweak = VARIANTS[name]
    config = TrainConfig.model_validate(
        {
            "model": given.model,
            "steps": given.steps,
            "batch": given.batch,
            "workers": given.workers,
            "kernels": "torch",
            "accumulate": given.accumulate,
            "log_every": 1000,
            "save_every": given.steps,
            "data": {"domains": {given.domain: 1.0}, "share": given.share},
            **options,
        }
    )
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    clock = Clock(given.warm)
    row: dict[str, Any] = {"variant": name, "about": about, "batch": given.batch, "steps": given.steps}
    try:
        with tempfile.TemporaryDirectory() as folder:
            if name == "data":
                row |= only_data(config)
            else:
                loaded = prepare(config)
                if tweak:
                    tweak(loaded.model)
                (as_it_comes if name == "plain" else ours)(loaded, config, Path(folder), clock)
                row |= clock.figures()
    except (CrosswindError, RuntimeError, ValueError, TypeError) as error:
        row["error"] = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    row["memory_gib"] = torch.cuda.max_memory_allocated() / 2**30 if torch.cuda.is_available() else 0.0
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    torch._dynamo.reset()
    return row


class Clock(TrainerCallback):  # type: ignore[misc]
    """Takes the time between the end of the warm-up and the end, with the device idle at both."""

    def __init__(self, warm: int) -> None:
        self.warm = warm
        self.feed: Any = None
        self.begun = self.start = self.end = 0.0
        self.at: tuple[int, int, float] = (0, 0, 0.0)  # real and padded tokens, and seconds waited, by then
        self.loss: float | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.begun = time.perf_counter()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step in (self.warm, state.max_steps):
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            now = time.perf_counter()
            if state.global_step == self.warm:
                self.start = now
                self.at = (self.feed.real, self.feed.padded, self.feed.waited)
            else:
                self.end = now
                self.last = (self.feed.real, self.feed.padded, self.feed.waited)

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        if logs and ("loss" in logs or "train_loss" in logs):
            self.loss = logs.get("loss", logs.get("train_loss"))

    def figures(self) -> dict[str, Any]:
        seconds = self.end - self.start
        real, padded, waited = (b - a for a, b in zip(self.at, self.last, strict=True))
        return {
            "real_per_second": real / seconds,
            "padded_per_second": padded / seconds,
            "padding": 1 - real / padded,
            "waited": waited / seconds,
            "start_s": self.start - self.begun,
            "loss": self.loss,
        }


def ours(loaded: Loaded, config: TrainConfig, folder: Path, clock: Clock) -> None:
    """Train as `crosswind train` does."""
    run = sft.Stretch(loaded, config, folder, config.data, config.steps, None)
    trainer = run.trainer(0)
    clock.feed = run.feed
    trainer.add_callback(clock)
    trainer.args.save_strategy = "no"
    with fused(loaded.model, config):
        trainer.train()


class Counted:
    """Counts what the trainer's own loader gives."""

    def __init__(self, collate: Any) -> None:
        self.collate, self.real, self.padded, self.waited = collate, 0, 0, 0.0

    def __call__(self, some: Any) -> Any:
        began = time.perf_counter()
        batch = self.collate(some)
        self.real += int(batch["attention_mask"].sum())
        self.padded += batch["input_ids"].numel()
        self.waited += time.perf_counter() - began
        return batch


def as_it_comes(loaded: Loaded, config: TrainConfig, folder: Path, clock: Clock) -> None:
    """Train with transformers' trainer as it is, on the same demonstrations, tokenised before the clock starts."""
    from transformers import DataCollatorForSeq2Seq, Trainer

    made = []
    for index in range(config.steps * config.batch):
        for row in rows(demonstration_at(config.data, index)):
            ids, mask = tokens(row, loaded.tokenizer)
            made.append({"input_ids": ids, "labels": [i if m else -100 for i, m in zip(ids, mask, strict=True)]})
    run = sft.Stretch(loaded, config, folder, config.data, config.steps, None)
    args = run.arguments()
    args.save_strategy = "no"
    clock.feed = Counted(DataCollatorForSeq2Seq(loaded.tokenizer))
    trainer = Trainer(
        model=loaded.model,
        args=args,
        train_dataset=made,
        processing_class=loaded.tokenizer,
        data_collator=clock.feed,
        callbacks=[clock],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()


def only_data(config: TrainConfig) -> dict[str, Any]:
    """How fast the workers make batches, counted from the first buffer of each on."""
    from crosswind.train.model import load_base

    buffers = Buffers(config.data, load_base(config.model).tokenizer, config, 10**9, micro=config.batch)
    workers = sft.workers(config)
    warm = config.buffer * max(1, workers)
    feed = Feed(buffers, start=0, stop=warm + 4 * warm, workers=workers)
    began = start = time.perf_counter()
    real = padded = 0
    for n, _ in enumerate(feed, 1):
        if n == warm:
            start, real, padded = time.perf_counter(), feed.real, feed.padded
    seconds = time.perf_counter() - start
    return {
        "real_per_second": (feed.real - real) / seconds,
        "padded_per_second": (feed.padded - padded) / seconds,
        "padding": 1 - feed.real / feed.padded,
        "waited": feed.waited / (time.perf_counter() - began),
        "start_s": start - began,
        "loss": None,
        "workers": workers,
    }


if __name__ == "__main__":
    main()
