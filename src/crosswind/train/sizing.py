"""What follows from the size of a model, before its weights are loaded: defaults that suit it, and memory it takes."""

from __future__ import annotations

import os
import warnings
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import torch

from crosswind.base.errors import CrosswindError
from crosswind.models.loading import place_of
from crosswind.models.spec import EMBEDDED
from crosswind.train.config import GRPO_SHARE, GrpoConfig, TrainConfig
from crosswind.train.model import device_of, in_bf16

C = TypeVar("C", bound=TrainConfig)
SMALL = 300_000_000  # parameters up to which the defaults of the file hold
LARGE = 1_000_000_000  # from which nothing is folded
FAR = 4.0  # times the usual learning rate that are worth a warning
ACTIVATIONS = 34  # bytes that a layer keeps for each token and unit of width, in half precision
GIB = 2**30


class Size(NamedTuple):
    """How large a model is."""

    parameters: int
    width: int
    layers: int
    vocabulary: int


@lru_cache(maxsize=8)
def size_of(name: str) -> Size | None:
    """The size of a model by its configuration, without its weights; None if it cannot be told."""
    if name == EMBEDDED:
        return Size(134_515_008, 576, 30, 49_152)
    from transformers import AutoConfig, AutoModelForCausalLM

    try:
        where = place_of(name)
        config = AutoConfig.from_pretrained(where.path, **where.options)
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config)
    except Exception:  # loading says what is wrong with it
        return None
    text = config.get_text_config()
    count = sum(p.numel() for p in {id(p): p for p in model.parameters()}.values())
    return Size(count, int(text.hidden_size), int(text.num_hidden_layers), int(text.vocab_size))


def sized(config: C) -> C:
    """The configuration with the defaults for a model of this size, where nothing was given."""
    size = size_of(config.model)
    if size is None:
        return config
    grpo, big = isinstance(config, GrpoConfig), size.parameters > LARGE
    if config.lora.fold and big and not config.full and "fold" in config.lora.model_fields_set:
        warnings.warn(
            "lora.fold keeps two more copies of the weights, which above 1B costs more than it gains", stacklevel=2
        )
    if size.parameters <= SMALL:
        usual = type(config)(full=config.full).rate
    else:
        usual = (2e-5 if config.full else 2e-4) if big else (5e-5 if config.full else 5e-4)
        usual *= GRPO_SHARE if grpo else 1.0
    if config.lr is not None and config.lr > FAR * usual:
        warnings.warn(
            f"lr is {config.lr:g}; a model of {size.parameters / 1e6:,.0f}M parameters usually takes about {usual:g}",
            stacklevel=2,
        )
    if size.parameters <= SMALL:
        return config
    changes: dict[str, Any] = {} if config.lr is not None else {"lr": usual}
    if "max_tokens" not in config.data.model_fields_set:
        changes["data"] = config.data.model_copy(update={"max_tokens": 4096})
    if big and "fold" not in config.lora.model_fields_set:
        changes["lora"] = config.lora.model_copy(update={"fold": False})
    if isinstance(config, GrpoConfig):
        for name, value in (("max_new", 512), ("window", 4096)):
            changes |= {} if name in config.model_fields_set else {name: value}
    return config.model_copy(update=changes)


def needed(config: TrainConfig, size: Size) -> dict[str, int]:
    """Bytes that a training takes at the least, by what they are for: with one row of the longest kind at a time."""
    half = in_bf16(config)
    if config.full:
        weights, trained = 4 * size.parameters, size.parameters
    else:
        copies = 3 if config.lora.fold else 1
        weights = copies * (2 if half else 4) * size.parameters
        trained = 14 * size.layers * config.lora.rank * size.width  # seven matrices of a layer, two sides of each
    if isinstance(config, GrpoConfig):
        weights += (2 if half else 4) * size.parameters  # of the engine
    row = (config.window if isinstance(config, GrpoConfig) else config.data.max_tokens) or 2048
    kept = 1 if config.checkpointing else size.layers  # layers whose activations are there at a time
    activations = row * size.width * (ACTIVATIONS * kept + 2 * size.layers) * (1 if half else 2)
    scores = row // 5 * size.vocabulary * 4 * 2  # about one token in five is learnt
    return {"weights": weights, "gradients and AdamW": 12 * trained, "one row": activations + scores}


def check_memory(config: TrainConfig) -> None:
    """Refuse a training for which memory cannot do, and say what would help."""
    size = size_of(config.model)
    there = free_memory(device_of(config))
    if size is None or there is None:
        return
    parts = needed(config, size)
    if sum(parts.values()) <= there:
        return
    told = ", ".join(f"{what} {value / GIB:,.1f}" for what, value in parts.items())
    advice = [] if config.checkpointing else ["checkpointing: true"]
    advice += ["an adapter instead of full: true"] if config.full else []
    advice += ["lora.fold: false"] if not config.full and config.lora.fold else []
    advice += ["a smaller " + ("window" if isinstance(config, GrpoConfig) else "data.max_tokens"), "a smaller model"]
    raise CrosswindError(
        f"{config.model}: training takes at least {sum(parts.values()) / GIB:,.1f} GiB ({told}), and "
        f"{device_of(config)} has {there / GIB:,.1f} GiB free; try {', '.join(advice[:-1])} or {advice[-1]}"
    )


def free_memory(device: str) -> int | None:
    """Bytes that are free on a device; None if it cannot be told."""
    if device == "cuda":
        return int(torch.cuda.mem_get_info(int(os.environ.get("LOCAL_RANK") or 0))[0])
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            lines = dict(line.split(":", 1) for line in file)
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError, IndexError):
        return None
