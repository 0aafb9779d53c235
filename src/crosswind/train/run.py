"""Run one training by its configuration, new or resumed: plain, in stages, in adaptive rounds, or by reinforcement."""

from __future__ import annotations

import atexit
import os
from pathlib import Path

import torch

from crosswind.base.errors import CrosswindError
from crosswind.train.adaptive import train_adaptively
from crosswind.train.config import GrpoConfig, Method, TrainConfig, check, for_method
from crosswind.train.model import prepare, started
from crosswind.train.progress import Progress
from crosswind.train.sft import Result, Stretch, begin, claimed, end, finish
from crosswind.train.sizing import check_memory, sized
from crosswind.train.stages import measured_once, train_stages


def train(
    config: TrainConfig, out: Path | str | None = None, *, method: Method = "paft", progress: Progress | None = None
) -> Result:
    """Train by a configuration into a folder, or resume an earlier run of the same configuration.

    Nothing is kept outside of the folder and the result, so that one process can train many configurations in turn.
    """
    config = sized(started(for_method(config, method)))
    check(config)
    check_memory(config)
    if int(os.environ.get("WORLD_SIZE") or 1) > 1:
        if config.stages or config.adaptive or config.evaluate:
            raise CrosswindError(
                "stages, adaptive and evaluate measure in between and run in one process; use one device"
            )
        if os.environ.get("ACCELERATE_USE_FSDP", "").lower() == "true":
            raise CrosswindError(
                "training on several devices copies the model, and FSDP would shard it, which cannot be stored; "
                "launch with examples/train/eight_gpus.yaml, an adapter and checkpointing: true"
            )
        atexit.register(_part)
    if not (out or config.out):
        raise CrosswindError("no folder to write to; give --out, or out in the configuration")
    folder = Path(out or config.out)
    if found := begin(folder, config, method):
        return found
    with claimed(folder):
        if method == "grpo":
            from crosswind.train.grpo import reinforce

            assert isinstance(config, GrpoConfig)
            result = reinforce(config, folder, progress)
        elif config.stages:
            result = train_stages(config, folder, method, progress, train)
        elif config.adaptive:
            result = train_adaptively(config, folder, progress)
        else:
            trained = Stretch(prepare(config), config, folder, config.data, config.steps, progress).go()
            result = finish(trained, method)
            if config.evaluate:
                result = measured_once(config, folder, result, progress)
        return end(folder, config, result)


def _part() -> None:
    """Close what the processes of one training talk through; left open, some abort when they end."""
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
