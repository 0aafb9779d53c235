"""Models to train: a base from a folder, a GGUF file or the embedded weights, an adapter on it, and how it is stored.

A frozen base is kept in bf16 on a GPU; what is trained stays in fp32, and so do the states of the optimiser. Products
run in bf16 by autocast. On a CPU everything is fp32.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from crosswind.base.errors import CrosswindError
from crosswind.base.files import replace_file
from crosswind.base.version import __version__, installed
from crosswind.models.adapters import ABOUT, as_folder
from crosswind.models.loading import Loaded, attached, load, place_of, sort_of, without_progress_bars
from crosswind.models.native import Protocol, script_for
from crosswind.train.config import C, GrpoConfig, TrainConfig

PACKAGES = ("torch", "transformers", "peft", "accelerate", "liger-kernel")


def device_of(config: TrainConfig) -> str:
    if config.device == "cuda" and not torch.cuda.is_available():
        raise CrosswindError("device is cuda, but torch finds no GPU; set device to auto or cpu")
    if config.device != "auto":
        return config.device
    return "cuda" if torch.cuda.is_available() else "cpu"


def in_bf16(config: TrainConfig) -> bool:
    """Do products run in bf16?"""
    device = device_of(config)
    if config.dtype == "bf16" and device == "cpu":
        raise CrosswindError("dtype is bf16, but a CPU trains in fp32; set dtype to auto")
    if device == "cuda" and config.dtype != "fp32" and not torch.cuda.is_bf16_supported():
        if config.dtype == "bf16":
            raise CrosswindError("dtype is bf16, but this GPU does not support it; set dtype to fp32")
        return False
    return device == "cuda" and config.dtype != "fp32"


def load_base(name: str, dtype: Any = torch.float32, protocol: Protocol = "text") -> Loaded:
    """A causal language model to train, and its tokenizer; what is neither is refused in one line."""
    model, tokenizer = load(name, dtype)
    if place_of(name).gguf:  # the weights were unpacked and train like any; the trainer would refuse them as quantised
        model.is_quantized, model.hf_quantizer = False, None
    end = script_for(tokenizer, protocol, name).end  # says so if there is no template that serves
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.convert_ids_to_tokens(end)
    if getattr(model.config, "attn_logit_softcapping", None) is not None:
        warnings.warn(
            f"{name}: models with 'softcap' in their attention can be trained here, but not played as hf: or by grpo",
            stacklevel=2,
        )
    model.config.use_cache = False
    return Loaded(model, tokenizer)


@contextmanager
def enough_memory(otherwise: Callable[[], CrosswindError]) -> Iterator[None]:
    """Raise what `otherwise` returns where the memory of a device or of the machine runs out."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        full = isinstance(error, torch.OutOfMemoryError | MemoryError) or "allocate memory" in str(error)
        if not full:
            raise
        raise otherwise() from error


def prepare(config: TrainConfig) -> Loaded:
    """The model of a configuration, ready to train: with its adapter, or with all parameters free."""

    def too_large() -> CrosswindError:
        smaller = "a smaller model" if config.full else f"a smaller model or lora.rank (it is {config.lora.rank:,})"
        return CrosswindError(f"out of memory before the first step; take {smaller}")

    with enough_memory(too_large):
        frozen = torch.bfloat16 if in_bf16(config) and not config.full else torch.float32
        model, tokenizer = load_base(config.model, frozen, config.protocol)
        _long_enough(model, config)
        if config.full:
            return Loaded(model.requires_grad_(True), tokenizer)
        return Loaded(adapted(model, config), tokenizer)


def _long_enough(model: Any, config: TrainConfig) -> None:
    """Refuse rows that are longer than a model with learnt positions can read."""
    known = learnt_positions(model)
    if not known:
        return
    option, longest = "data.max_tokens", config.data.max_tokens
    if isinstance(config, GrpoConfig):  # the engine keeps to what the model has; padding comes after it
        option, longest = "window", min(config.window, known)
    if not longest or -(-longest // config.pad_to) * config.pad_to > known:
        fits = known // config.pad_to * config.pad_to
        advice = f"set {option} to {fits} or less" if fits else f"set pad_to to 1 and {option} to {known} or less"
        raise CrosswindError(
            f"rows may have {longest or 'any number of'} tokens ({option}), padded to a multiple of {config.pad_to}, "
            f"but {config.model} has only {known} positions; {advice}, or take another model"
        )


def learnt_positions(model: Any) -> int:
    """How many positions a model has learnt one by one; 0 if it computes them and there is no end to them."""
    known = int(getattr(model.config, "max_position_embeddings", 0) or 0)
    words = model.get_input_embeddings()
    tables = (m.num_embeddings for m in model.modules() if isinstance(m, torch.nn.Embedding) and m is not words)
    return known if known and any(known <= size <= known + 2 for size in tables) else 0  # some leave two out


def started(config: C) -> C:
    """The configuration with what the adapter that it goes on from decides; options that say otherwise are refused."""
    if not config.start:
        return config
    try:
        path = as_folder(config.start) / "adapter_config.json"
    except CrosswindError as error:
        raise CrosswindError(f"start: {error}") from None
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        own = {"rank": int(held["r"]), "alpha": float(held["lora_alpha"]), "dropout": float(held["lora_dropout"])}
    except (OSError, ValueError, KeyError, TypeError):
        raise CrosswindError(f"start: {path} is damaged; give another adapter's folder") from None
    for name, value in own.items():
        if name in config.lora.model_fields_set and getattr(config.lora, name) != value:
            raise CrosswindError(
                f"lora.{name} is {getattr(config.lora, name)}, but start goes on from an adapter whose {name} is "
                f"{value}; leave lora.{name} out, or start"
            )
    return config.model_copy(update={"lora": config.lora.model_copy(update=own)})


def adapted(model: Any, config: TrainConfig) -> Any:
    """A model with an adapter to train: a fresh one whose weights follow from the seed, or the one to go on from."""
    from peft import LoraConfig, get_peft_model

    lora = config.lora
    if config.start:
        try:
            wrapped = attached(model, config.start, trainable=True)
        except CrosswindError as error:
            raise CrosswindError(f"start: {error}") from None
    else:
        targets = lora.targets if isinstance(lora.targets, str) else list(lora.targets)
        wanted = LoraConfig(
            r=lora.rank,
            lora_alpha=lora.alpha,
            lora_dropout=lora.dropout,
            target_modules=targets,
            bias="none",
            task_type="CAUSAL_LM",
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            try:
                wrapped = get_peft_model(model, wanted)
            except re.error as error:
                raise CrosswindError(
                    f"lora.targets: got {lora.targets!r}, which is not a pattern ({error}); give names of modules in a "
                    "list, or all-linear"
                ) from None
            except ValueError as error:
                raise CrosswindError(f"lora.targets: {' '.join(str(error).split())[:300]}") from None
    _not_the_output(wrapped, "start" if config.start else "lora.targets")
    wrapped.peft_config["default"].base_model_name_or_path = ""  # PEFT would look for it on the network at every save
    for parameter in wrapped.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.float()
    plain = [layer for layer in lora_layers(wrapped) if is_plain(layer)]
    for layer in plain:
        # The activations would otherwise be copied to fp32 for the adapter and back to bf16 by autocast.
        layer.cast_input_dtype_enabled = False
    if lora.fold:
        if lora.dropout:
            raise CrosswindError("lora.fold and lora.dropout do not go together; set one of them to its default")
        dtype = torch.bfloat16 if in_bf16(config) else torch.float32
        wrapped.register_forward_pre_hook(Folded(plain, dtype))
    return wrapped


def _not_the_output(model: Any, option: str) -> None:
    """Refuse an adapter on the output layer, or on weights that it shares: merged, it would be another model."""
    head = model.get_output_embeddings()
    weight = getattr(head, "base_layer", head).weight
    for name, layer in model.get_base_model().named_modules():
        if getattr(getattr(layer, "base_layer", None), "weight", None) is weight:
            raise CrosswindError(
                f"{option}: {name} is the output layer or shares its weights, which cannot be adapted; name other "
                "modules, or all-linear"
            )


def lora_layers(model: Any) -> list[Any]:
    from peft.tuners.lora import LoraLayer

    return [module for module in model.modules() if isinstance(module, LoraLayer)]


def is_plain(layer: Any) -> bool:
    """Does a layer compute x (W + s B A)? What has other weights, such as a magnitude, or lies otherwise does not."""
    from peft.tuners.lora import Linear

    own, base = isinstance(layer, Linear), type(layer.base_layer) is torch.nn.Linear
    return own and base and not layer.lora_variant and not any(layer.lora_bias.values())


def all_folded(model: Any) -> bool:
    """Is every layer with an adapter folded? Such layers compute in their own precision, and need no autocast."""
    layers = lora_layers(model)
    return bool(layers) and all(isinstance(vars(layer).get("forward"), partial) for layer in layers)


class Folded:
    """Plain linear layers that compute x (W + s B A) in one product instead of x W + s (x A) B in three.

    The sums are made once for each pass, for all layers of one shape together: layer by layer they would be a dozen
    small steps for each of some two hundred layers, and a GPU would wait for the host.
    """

    def __init__(self, layers: Sequence[Any], dtype: Any) -> None:
        self.dtype = dtype
        self.groups: dict[tuple[Any, ...], list[Any]] = {}
        for layer in layers:
            (name,) = layer.active_adapters
            shape = (*layer.base_layer.weight.shape, layer.lora_A[name].weight.shape[0], layer.scaling[name])
            self.groups.setdefault(shape, []).append(layer)
            layer.forward = partial(self.product, layer)
        self.bases: dict[tuple[Any, ...], Any] = {}

    def __call__(self, *_: Any) -> None:
        """Sum up the weights for a pass."""
        for shape, layers in self.groups.items():
            (name,) = layers[0].active_adapters
            device = layers[0].base_layer.weight.device
            if shape not in self.bases or self.bases[shape].device != device:
                self.bases[shape] = torch.stack([layer.base_layer.weight.detach() for layer in layers])
            a = torch.stack([layer.lora_A[name].weight for layer in layers])
            b = torch.stack([layer.lora_B[name].weight for layer in layers])
            with torch.autocast(device.type, enabled=False):
                summed = torch.baddbmm(self.bases[shape].float(), b, a, alpha=shape[-1]).to(self.dtype)
            for layer, weight in zip(layers, summed.unbind(), strict=True):
                layer.summed = weight

    def product(self, layer: Any, x: Any, *_: Any, **__: Any) -> Any:
        bias = layer.base_layer.bias
        return F.linear(x.to(self.dtype), layer.summed, None if bias is None else bias.to(self.dtype))


@contextmanager
def fused(model: Any, config: TrainConfig) -> Iterator[None]:
    """Train with the fused kernels of liger-kernel for norms, rotations and gates, where they are wanted and there.

    They take the places of functions in transformers' own module of that architecture; those are put back afterwards.
    """
    wanted = config.kernels == "liger" or (
        config.kernels == "auto" and device_of(config) == "cuda" and find_spec("liger_kernel") is not None
    )
    if not wanted:
        yield
        return
    if find_spec("liger_kernel") is None:
        raise CrosswindError("kernels is liger, but the package liger-kernel is not installed; pip install it, or auto")
    if device_of(config) == "cpu":
        raise CrosswindError("kernels is liger, which runs on a GPU; set kernels to auto")
    from liger_kernel.transformers import _apply_liger_kernel_to_instance

    inner = model.get_base_model() if hasattr(model, "get_base_model") else model
    names = vars(sys.modules[type(inner).__module__])
    before = dict(names)
    _apply_liger_kernel_to_instance(model=inner, cross_entropy=False, fused_linear_cross_entropy=False)
    try:
        yield
    finally:
        names.update(before)


# ---------------------------------------------------------------- storing


def versions() -> dict[str, str]:
    """What a run was made with."""
    others = {package: found for package in PACKAGES if (found := installed(package))}
    return {"crosswind": __version__, "python": platform.python_version(), **others}


def save(model: Any, tokenizer: Any, folder: Path, about: dict[str, Any]) -> Path:
    """Store an adapter, or a whole model, with what it was made of; the folder is there whole or not at all."""
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and not torch.isfinite(parameter).all():
            raise CrosswindError(
                f"trained weights became NaN or infinite ({name}), so nothing is stored; lower lr, with another --out"
            )
    fresh = folder.with_name(folder.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    with without_progress_bars():
        if adapters := getattr(model, "peft_config", None):
            adapters["default"].base_model_name_or_path = about["base"]  # a name, not a place on this machine
            model.save_pretrained(str(fresh), save_embedding_layers=False)
            adapters["default"].base_model_name_or_path = ""
            (fresh / "README.md").unlink(missing_ok=True)  # an empty card; what there is to say is in crosswind.json
        else:
            model.save_pretrained(str(fresh))
            tokenizer.save_pretrained(str(fresh))
    about = {**about, "sort": sort_of(model)}
    replace_file(fresh / ABOUT, json.dumps(about, indent=1, ensure_ascii=False).encode())
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(fresh, folder)
    return folder


def about(folder: Path | str) -> dict[str, Any]:
    """What a stored adapter was made of."""
    path = Path(folder) / ABOUT
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise CrosswindError(f"{path}: missing or unreadable; expected an adapter made by crosswind") from None
    return found
