"""Supervised fine-tuning on demonstrations: sft on clean ones, paft on a share of perturbed ones.

The trainer is that of transformers with three things changed. Batches come from `batches.py`, made by worker processes
and found by their number, so that a run that was killed goes on with exactly the weights it would have had. The loss is
computed where something is learnt and nowhere else: hidden states are gathered before the output layer, which has a
column for every word of the vocabulary. And no attention mask is passed, since right padding needs none.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import torch
import torch.nn.functional as F
from pydantic import Field
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer import OPTIMIZER_NAME, SCHEDULER_NAME

from crosswind.base.errors import BadFile, CrosswindError
from crosswind.base.files import append_file, exclusive_lock, replace_file
from crosswind.core.types import Model
from crosswind.models import weights
from crosswind.models.adapters import ABOUT
from crosswind.models.loading import Loaded, place_of, without_progress_bars
from crosswind.models.spec import EMBEDDED
from crosswind.train.batches import Buffers, Feed, as_it_is
from crosswind.train.checkpoints import clear, of_checkpoint, seal, whole_ones
from crosswind.train.config import CHECKPOINTS, METRICS, RUN, Method, TrainConfig, another, is_main_process
from crosswind.train.data import DataConfig
from crosswind.train.model import all_folded, device_of, enough_memory, fused, in_bf16, load_base, save, versions
from crosswind.train.progress import Halt, Progress, Update

LOCK = "lock"
WORKERS = 16  # at most, unless given


class Result(Model):
    """What came of a run; stored as `train.json` in its folder, and as `crosswind.json` beside the adapter."""

    method: Method
    out: str
    adapter: str  # the folder of the adapter, or of the whole model
    full: bool
    steps: int
    loss: float | None  # of the last steps logged
    seconds: float  # of training, in this and in earlier parts of the run
    tokens: int  # that were read, padding left out
    learnt: int  # that were predicted
    demonstrations: int
    perturbed: int
    left_out: dict[str, int] = Field(default_factory=dict)  # reason -> draws
    tokens_per_second: float = 0.0
    padding: float = 0.0  # share of what the device computed
    waited: float = 0.0  # share of the time in which the device waited for data
    resumed: int | None = None  # the step from which the last part went on
    extra: dict[str, Any] = Field(default_factory=dict)  # of stages or rounds


# ---------------------------------------------------------------- the trainer with our batches


class Gathering(Trainer):  # type: ignore[misc]
    """The trainer of transformers on batches of `Feed`."""

    feed: Feed

    def get_train_dataloader(self) -> Feed:
        return self.feed

    def _prepare_inputs(self, inputs: dict[str, Any]) -> dict[str, Any]:
        # From pinned memory and without waiting, so that the host can be a pass ahead of the device.
        if self.args.device.type != "cuda":
            return dict(super()._prepare_inputs(inputs))
        return {name: value.pin_memory().to(self.args.device, non_blocking=True) for name, value in inputs.items()}

    def _get_num_items_in_batch(self, batch_samples: list[Any], device: Any) -> Any:
        if self.args.world_size > 1:
            return super()._get_num_items_in_batch(batch_samples, device)
        return sum(batch["labels"].numel() for batch in batch_samples)  # a number of the host's: nobody waits for it

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        targets = inputs["labels"]
        with gathered(self.model, inputs["places"]):
            out = model(input_ids=inputs["input_ids"], use_cache=False)
        total = F.cross_entropy(out.logits.float(), targets, reduction="sum")
        if num_items_in_batch is None:
            loss = total / targets.numel()
        else:
            loss = total / num_items_in_batch
            if self.args.average_tokens_across_devices:  # DDP takes the mean over devices, of a sum over all of them
                loss = loss * self.accelerator.num_processes
        return (loss, out) if return_outputs else loss

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if checkpoint is None or self.args.world_size == 1 or self.args.device.type != "cpu":
            super()._load_optimizer_and_scheduler(checkpoint)
            return
        # Several processes on a CPU have the device cpu:0, a place that torch.load does not know.
        for part, name in ((self.optimizer, OPTIMIZER_NAME), (self.lr_scheduler, SCHEDULER_NAME)):
            part.load_state_dict(torch.load(Path(checkpoint) / name, map_location="cpu", weights_only=True))


@contextmanager
def gathered(model: Any, places: Any) -> Iterator[None]:
    """Let the output layer see the hidden states at some places only; rows are laid end to end."""

    def pick(_: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        hidden = args[0]
        return (hidden.reshape(-1, hidden.shape[-1]).index_select(0, places), *args[1:])

    hook = model.get_output_embeddings().register_forward_pre_hook(pick)
    try:
        yield
    finally:
        hook.remove()


class _Watching(TrainerCallback):  # type: ignore[misc]
    """Writes metrics, marks whole checkpoints, tells of progress, and stops where a round ends."""

    def __init__(self, run: Stretch) -> None:
        self.run = run

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.run.clock = time.perf_counter()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        if state.global_step >= self.run.until:
            control.should_save = control.should_training_stop = True
        return control

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> Any:
        try:
            if logs and "loss" in logs:
                self.run.log(state.global_step, logs)
        except Halt as halt:
            if args.world_size > 1:
                raise  # the others would wait for this one
            self.run.halt = halt
            control.should_save = control.should_training_stop = True
        return control

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.run.mark(state.global_step)


# ---------------------------------------------------------------- one run of the trainer


class Stretch:
    """One stretch of training in a folder: from its last whole checkpoint, or from the start, to a step."""

    def __init__(
        self, loaded: Loaded, config: TrainConfig, folder: Path, data: DataConfig, until: int, progress: Progress | None
    ) -> None:
        self.model, self.tokenizer = loaded
        self.config, self.folder, self.data, self.until, self.progress = config, folder, data, until, progress
        self.checkpoints = folder / CHECKPOINTS
        self.main = is_main_process()
        self.clock, self.lap = 0.0, (0, 0.0, 0, 0)  # of the last line of metrics: step, time, tokens, padded
        self.totals: dict[str, Any] = {}  # of earlier parts of the run
        self.loss: float | None = None
        self.halt: Halt | None = None

    def go(self) -> Self:
        """Train up to the step wanted; afterwards `totals` tells what was done in all."""
        every = whole_ones(self.checkpoints)
        whole = {step: path for step, path in every.items() if step <= self.until}
        start = max(whole, default=0)
        if start:
            self.totals = of_checkpoint(whole[start], self.config)["totals"]
        ahead = [every[step] for step in every.keys() - whole]  # of a round that is made again
        for path in ahead:
            of_checkpoint(path, self.config)  # or of another recipe, which is refused
        if self.main:
            clear(self.checkpoints)
            for path in ahead:
                shutil.rmtree(path, ignore_errors=True)
            cut_metrics(self.folder / METRICS, start)
        self.resumed = start or None
        if start >= self.until:
            self._load(whole[start])
            if self.main:  # the others do not tell of it, and the file may just be cut
                lines = (self.folder / METRICS).read_bytes().splitlines() if (self.folder / METRICS).is_file() else []
                self.loss = json.loads(lines[-1]).get("loss") if lines else None
            return self
        trainer = self.trainer(start)
        try:
            with without_progress_bars(), fused(self.model, self.config), enough_memory(self._too_large):
                trainer.train(resume_from_checkpoint=str(whole[start]) if start else None)
        finally:
            trainer.accelerator.free_memory()
        if self.halt:
            raise self.halt
        return self

    def trainer(self, start: int) -> Gathering:
        config, args = self.config, self.arguments()
        world, rank = args.world_size, args.process_index
        micro, rest = divmod(config.batch, config.accumulate * world)
        if rest or not micro:
            raise CrosswindError(
                f"batch is {config.batch}, which {config.accumulate} passes on {world} devices cannot share evenly"
            )
        buffers = Buffers(self.data, self.tokenizer, config, config.steps * config.batch, micro=micro)
        passes = config.accumulate
        self.feed = Feed(
            buffers, start=start * passes, stop=self.until * passes, workers=workers(config), rank=rank, world=world
        )
        if config.compile:
            compile_layers(self.model)
        if config.checkpointing and not config.full:
            self.model.enable_input_require_grads()
        trainer = Gathering(
            model=self.model,
            args=args,
            processing_class=self.tokenizer,
            data_collator=as_it_is,
            callbacks=[_Watching(self)],
        )
        trainer.feed = self.feed
        trainer.remove_callback(PrinterCallback)
        return trainer

    def arguments(self) -> Any:
        config = self.config
        device = device_of(config)
        return TrainingArguments(
            output_dir=str(self.checkpoints),
            max_steps=config.steps,
            per_device_train_batch_size=max(1, config.batch // config.accumulate),
            gradient_accumulation_steps=config.accumulate,
            learning_rate=config.rate,
            lr_scheduler_type=config.schedule if config.schedule != "constant" else "constant_with_warmup",
            warmup_steps=round(config.warmup * config.steps),
            weight_decay=config.weight_decay,
            max_grad_norm=config.clip,
            optim="adamw_torch_fused" if device == "cuda" else "adamw_torch",
            bf16=in_bf16(config) and not all_folded(self.model),  # folded ones are in bf16 as they are
            use_cpu=device == "cpu",
            gradient_checkpointing=config.checkpointing,
            remove_unused_columns=False,
            ignore_data_skip=True,  # the feed begins where the checkpoint ends
            logging_steps=config.log_every,
            logging_nan_inf_filter=False,  # it would wait for the device at every step
            save_strategy="steps",
            save_steps=config.save_every,
            save_total_limit=None,
            seed=config.seed,
            report_to="none",
            disable_tqdm=True,
            ddp_find_unused_parameters=False,
        )

    def _load(self, checkpoint: Path) -> None:
        """The weights of a checkpoint, where nothing is left to train."""
        if self.config.full:
            self.model = load_base(str(checkpoint), protocol=self.config.protocol).model
        else:
            from peft import load_peft_weights, set_peft_model_state_dict

            set_peft_model_state_dict(self.model, load_peft_weights(str(checkpoint), device="cpu"))

    def _too_large(self) -> CrosswindError:
        config = self.config
        rows, longest = config.batch // config.accumulate, self.data.max_tokens
        told = f"out of memory with {rows} rows{f' of up to {longest} tokens' if longest else ''} in one pass"
        changes = [f"a smaller data.max_tokens (now {longest})" if longest else "a data.max_tokens"]
        if rows > 1:
            passes = next(n for n in range(2 * config.accumulate, config.batch + 1) if config.batch % n == 0)
            fewer = config.accumulate * (rows // 2)
            changes = [f"accumulate: {passes} (the batch stays {config.batch})", f"batch: {fewer}"]
        slow = "" if config.checkpointing else "checkpointing: true, which resumes this run, or "
        return CrosswindError(f"{told}; try {slow}{' or '.join(changes)} with another --out")

    # ------------------------------------------------------------ what the callback hears

    def log(self, step: int, logs: dict[str, Any]) -> None:
        """A line of metrics."""
        self.loss = float(logs["loss"])
        if not math.isfinite(self.loss):
            raise CrosswindError(f"the loss is {self.loss} at step {step}; lower lr (it is {self.config.rate:g})")
        now, feed = time.perf_counter() - self.clock, self.feed
        last = self.lap if self.lap[1] else (0, 0.0, 0, 0)
        seconds = max(now - last[1], 1e-9)
        speed = (feed.real - last[2]) / seconds
        self.lap = (step, now, feed.real, feed.padded)
        line = {
            "step": step,
            "loss": round(self.loss, 6),
            "lr": logs.get("learning_rate"),
            "grad_norm": logs.get("grad_norm"),
            "tokens_per_second": round(speed, 1),
            "padding": round(1 - (feed.real - last[2]) / max(1, feed.padded - last[3]), 4),
            "waited": round(feed.waited / max(now, 1e-9), 4),
            "seconds": round(now, 3),
        }
        if not self.main:
            return
        append_file(self.folder / METRICS, (json.dumps(line) + "\n").encode())
        if self.progress:
            begun = step - (self.resumed or 0)
            left = now / begun * (self.until - step) if begun else None
            self.progress(Update("training", step, self.config.steps, self.loss, speed, left))

    def mark(self, step: int) -> None:
        """A checkpoint is whole: say so in it, and take away those that are not kept."""
        totals = self.counted()
        if not self.main:
            return
        told = {"step": step, "recipe": self.config.recipe(), "totals": totals}
        seal(self.checkpoints / f"checkpoint-{step}", told, self.config.keep)

    def counted(self) -> dict[str, Any]:
        """What was trained on by all processes, earlier parts of the run included; each of them must ask."""
        feed, before = self.feed, self.totals
        names = ("real", "padded", "learnt", "demonstrations", "perturbed", "waited")
        mine = ({name: getattr(feed, name) for name in names}, feed.left_out)
        every = [mine]
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            every *= torch.distributed.get_world_size()
            torch.distributed.all_gather_object(every, mine)
        out: dict[str, Any] = {name: before.get(name, 0) + sum(one[name] for one, _ in every) for name in names}
        out["waited"] = before.get("waited", 0.0) + feed.waited  # of one process, as are the seconds
        out["seconds"] = before.get("seconds", 0.0) + time.perf_counter() - self.clock
        out["left_out"] = dict(sum((left for _, left in every), Counter(before.get("left_out", {}))))
        return out


def workers(config: TrainConfig) -> int:
    """Processes that make the data."""
    if config.workers is None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        found = min(WORKERS, max(1, cores - 1)) if device_of(config) == "cuda" else 0
    else:
        found = config.workers
    if found:
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # the workers are the parallelism
    return found


def compile_layers(model: Any) -> None:
    """Compile the layers of a model, all of them with one compilation for every length."""
    from transformers.modeling_layers import GradientCheckpointingLayer

    for module in model.modules():
        if isinstance(module, GradientCheckpointingLayer):
            module.compile(dynamic=True)


def cut_metrics(path: Path, step: int) -> None:
    """Take away the lines after a step: they will be written again."""
    if not path.is_file():
        return
    kept = []
    for line in path.read_bytes().splitlines(keepends=True):
        try:
            if json.loads(line)["step"] <= step:
                kept.append(line)
        except (ValueError, KeyError, TypeError):
            continue  # torn when the run was killed
    replace_file(path, b"".join(kept))


# ---------------------------------------------------------------- a whole run


def finish(run: Stretch, method: Method, *, into: Path | None = None) -> Result:
    """Store what a run trained."""
    counted = run.counted() if hasattr(run, "feed") else run.totals
    folder = (into or run.folder) / ("model" if run.config.full else "adapter")
    seconds = float(counted["seconds"])
    result = Result(
        method=method,
        out=str(run.folder),
        adapter=str(folder),
        full=run.config.full,
        steps=run.until,
        loss=run.loss,
        seconds=round(seconds, 3),
        tokens=counted["real"],
        learnt=counted["learnt"],
        demonstrations=counted["demonstrations"],
        perturbed=counted["perturbed"],
        left_out=counted["left_out"],
        tokens_per_second=round(counted["real"] / max(seconds, 1e-9), 1),
        padding=round(1 - counted["real"] / max(1, counted["padded"]), 4),
        waited=round(counted["waited"] / max(seconds, 1e-9), 4),
        resumed=run.resumed,
    )
    if run.main:
        save(run.model, run.tokenizer, folder, story(run.config, result, run.data))
    return result


def story(config: TrainConfig, result: Result, data: DataConfig | None = None) -> dict[str, Any]:
    """What is stored beside an adapter."""
    told = result.model_dump(mode="json", exclude={"out", "adapter"})
    return {
        "method": result.method,
        "base": weights.MODEL if config.model == EMBEDDED else Path(config.model).name,
        "recipe": config.recipe(),
        "data": (data or config.data).model_dump(mode="json"),
        "seed": config.seed,
        "steps": result.steps,
        "versions": versions(),
        "metrics": told,
    }


def begin(folder: Path, config: TrainConfig, method: Method) -> Result | None:
    """Claim a folder for a configuration. What comes back was trained before; another configuration is refused."""
    path = folder / RUN
    recipe = config.recipe()
    if path.is_file():
        try:
            held = json.loads(path.read_text(encoding="utf-8"))
            before = held["method"]
            other = another(held["recipe"], config) if before == method else f"method was {before}, now {method}"
        except (ValueError, KeyError, TypeError, AttributeError):
            raise BadFile(f"{path}: is damaged; remove the folder, or choose another --out") from None
        if other:
            raise CrosswindError(
                f"{folder} holds a run of another recipe ({other}); choose another --out, or remove the folder"
            )
        if held.get("result"):
            made = held["result"]
            where = str(folder / Path(made["adapter"]).relative_to(made["out"]))  # the folder may have been moved
            if holds_weights(Path(where)):
                return Result.model_validate({**made, "out": str(folder), "adapter": where})
        return None  # not finished, or what it made is gone: on from the last checkpoint
    try:
        place_of(config.model)  # before the folder is taken: with another model it would hold another recipe
    except CrosswindError as error:
        raise CrosswindError(f"model: {error}") from None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        told = {"method": method, "recipe": recipe, "versions": versions(), "result": None}
        replace_file(path, json.dumps(told, indent=1).encode())
    except OSError as error:
        raise CrosswindError(f"{folder}: cannot be written to ({error.strerror}); choose another --out") from None
    return None


def holds_weights(folder: Path) -> bool:
    """Is there what a training leaves: weights, and what they were made of?"""
    return (folder / ABOUT).is_file() and any(folder.glob("*.safetensors"))


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """A run in a folder that is its own meanwhile; one that is refused before it trained leaves it free again."""
    if not is_main_process():  # of several processes of one run the first one holds it
        yield
        return
    with exclusive_lock(folder / LOCK) as ours:
        if not ours:
            raise CrosswindError(f"{folder}: another process is training here; wait for it, or choose another --out")
        try:
            yield
        except CrosswindError:
            if not any((folder / name).exists() for name in (METRICS, CHECKPOINTS)):
                (folder / RUN).unlink(missing_ok=True)
            raise


def end(folder: Path, config: TrainConfig, result: Result) -> Result:
    """Note that a run is finished."""
    if is_main_process():
        told = {"method": result.method, "recipe": config.recipe(), "versions": versions()}
        told["result"] = result.model_dump(mode="json")
        replace_file(folder / RUN, json.dumps(told, indent=1).encode())
    return result
