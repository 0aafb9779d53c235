"""Models of transformers: from a folder, a name, a GGUF file or the embedded weights, an adapter merged into them."""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from crosswind.base.errors import CrosswindError
from crosswind.models import adapters, weights
from crosswind.models.adapters import ABOUT
from crosswind.models.remote import sdk
from crosswind.models.spec import EMBEDDED

WANTED = f"give a model's folder, a .gguf file, {EMBEDDED!r} or a name that transformers knows"
NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")  # what transformers would look up elsewhere; the rest is a path

LOW_RANK = re.compile(r"\.lora_[AB]\.\w+\.weight$|\.lora_embedding_[AB]\.\w+$")  # all that a plain adapter trains


class Loaded(NamedTuple):
    """A model with its tokenizer."""

    model: Any
    tokenizer: Any


class Place(NamedTuple):
    """Where a model's files lie, as transformers takes it."""

    path: str
    gguf: str | None = None

    @property
    def options(self) -> dict[str, Any]:
        return {"gguf_file": self.gguf} if self.gguf else {}


def place_of(name: str) -> Place:
    """The files that `embedded`, a folder, a GGUF file or a name stands for."""
    if name == EMBEDDED:
        path = weights.fetch()
        return Place(str(path.parent), path.name)
    path = Path(name)
    if path.suffix == ".gguf":
        if not path.is_file():
            raise CrosswindError(f"{name}: no such file; {WANTED}")
        return Place(str(path.parent), path.name)
    if path.is_file():
        raise CrosswindError(f"{name}: this is a file, and no .gguf file; {WANTED}")
    if not name or not (path.exists() or NAME.fullmatch(name)):
        raise CrosswindError(f"{name or repr(name)}: no such file or folder; {WANTED}")
    if path.is_dir() and not (path / "config.json").is_file():
        found = sorted(p.name for p in path.glob("*.gguf"))
        if len(found) == 1:
            return Place(name, found[0])
        raise CrosswindError(f"{name}: no model found (no config.json); {WANTED}")
    return Place(name)


def told(error: Exception) -> str:
    """An error of transformers on one line, cut where it grows long."""
    words = " ".join(str(error).split())
    return words.rstrip(".") if len(words) <= 300 else words[:297] + "..."


@contextmanager
def without_progress_bars() -> Iterator[None]:
    """No bars of transformers' own while a model is loaded or stored."""
    logging = sdk("transformers", "train").utils.logging
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


@without_progress_bars()
def load(name: str, dtype: Any) -> Loaded:
    """A causal language model and its tokenizer; what is neither is refused in one line."""
    transformers = sdk("transformers", "train")
    broken = sdk("safetensors", "train").SafetensorError
    where = place_of(name)
    if where.gguf:
        sdk("gguf", "train")
    try:
        described = transformers.AutoConfig.from_pretrained(where.path, **where.options)
        kinds = list(getattr(described, "architectures", None) or ())
        names = transformers.models.auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values()
        if getattr(described, "is_encoder_decoder", False) or (kinds and not set(kinds) & set(names)):
            what = kinds[0] if kinds else described.model_type
            raise CrosswindError(f"{name}: {what} not a causal language model; give one, such as a Llama or a Qwen")
        tokenizer = transformers.AutoTokenizer.from_pretrained(where.path, **where.options)
        model = transformers.AutoModelForCausalLM.from_pretrained(where.path, dtype=dtype, **where.options)
    except (OSError, ValueError, KeyError, ImportError, RuntimeError, broken) as error:
        raise CrosswindError(f"{name}: cannot be loaded as a causal language model: {told(error)}; {WANTED}") from None
    _sound(name, model, tokenizer)
    if hasattr(model.config, "quantization_config"):  # of the GGUF file; the weights were unpacked
        del model.config.quantization_config
        model.is_quantized, model.hf_quantizer = False, None  # or it would refuse to change its dtype
    return Loaded(model, tokenizer)


def _sound(name: str, model: Any, tokenizer: Any) -> None:
    """Refuse a tokenizer that is not the model's, and weights that are not numbers."""
    torch = sdk("torch", "train")
    words, known = len(tokenizer), int(model.get_input_embeddings().weight.shape[0])
    if words > known:
        raise CrosswindError(
            f"{name}: the tokenizer has {words} tokens and the model knows {known}; put the model's own tokenizer there"
        )
    plain = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
    for part, weight in model.named_parameters():
        if weight.dtype not in plain or not weight.numel():
            continue
        if not all(map(torch.isfinite, torch.aminmax(weight.detach()))):  # much faster than to ask each of them
            raise CrosswindError(f"{name}: weights of the model are NaN or infinite ({part}); replace the damaged file")


def with_adapter(model: Any, folder: str) -> Any:
    """The model with a low-rank adapter merged into its weights, in fp32; the dtype stays as it was."""
    dtype = model.dtype
    return attached(model.float(), folder).merge_and_unload().to(dtype)


def attached(model: Any, name: str, *, trainable: bool = False) -> Any:
    """The model with an adapter beside its weights: a folder, a GGUF file, or one of the package.

    PEFT leaves out what does not fit and goes on; an adapter of another model is refused here.
    """
    peft = sdk("peft", "train")
    broken = sdk("safetensors", "train").SafetensorError
    here = name in adapters.SHIPPED or os.path.exists(name)
    folder = str(adapters.as_folder(name)) if here else name  # or a name that PEFT knows
    this, made = sort_of(model), _made_for(folder)
    if some := [f"{key} {made[key]} instead of {this[key]}" for key in this if made.get(key, this[key]) != this[key]]:
        which = f"the adapter belongs to another model ({', '.join(some)})"
        raise CrosswindError(f"{name}: {which}; give the one it is of")
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Found missing adapter keys")  # told below
            wrapped = peft.PeftModel.from_pretrained(model, folder, is_trainable=trainable)
            left = wrapped.load_adapter(folder, "default", is_trainable=trainable)  # again, to hear what had no place
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, broken) as error:
        if isinstance(error, sdk("torch", "train").OutOfMemoryError) or "can't allocate memory" in str(error):
            raise
        raise CrosswindError(f"{name}: cannot be loaded as an adapter of this model: {told(error)}") from None
    if not hasattr(wrapped, "merge_and_unload"):
        kind = wrapped.peft_config["default"].peft_type
        raise CrosswindError(f"{name}: is an adapter that cannot be merged ({kind}); give a low-rank one")
    if left.missing_keys or left.unexpected_keys:
        lost = f"{len(left.unexpected_keys)} of its matrices have no place in it" if left.unexpected_keys else ""
        bare = f"{len(left.missing_keys)} places stay empty" if left.missing_keys else ""
        raise CrosswindError(
            f"{name}: the adapter belongs to another model: {' and '.join(filter(None, (lost, bare)))}; "
            "give the model that it was made for, or another adapter"
        )
    return wrapped


def sort_of(model: Any) -> dict[str, Any]:
    """What sort of model it is; adapters go with one sort."""
    config = model.config.get_text_config()
    names = {"layers": "num_hidden_layers", "width": "hidden_size"}
    return {"family": config.model_type, **{key: getattr(config, name, None) for key, name in names.items()}}


def _made_for(folder: str) -> dict[str, Any]:
    """The sort of model that an adapter which was trained here says it was made for."""
    try:
        found = json.loads((Path(folder) / ABOUT).read_text(encoding="utf-8"))["sort"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def merged(model: Any) -> Iterator[tuple[str, Any]]:
    """The weights that an adapter under training changes, as they are with it, by their names in the base model."""
    from peft.tuners.lora import LoraLayer

    for name, parameter in model.named_parameters():
        if parameter.requires_grad and not LOW_RANK.search(name):
            raise CrosswindError(
                f"the adapter trains {name}, which cannot be merged while it is trained; start from one without DoRA, "
                "biases and whole modules"
            )
    for name, layer in model.get_base_model().named_modules():
        if isinstance(layer, LoraLayer):
            base = layer.get_base_layer()
            if not hasattr(base, "weight"):
                raise CrosswindError(
                    f"the adapter changes {name} ({type(base).__name__}), which has several weights and cannot be "
                    "merged while it is trained; name other modules in lora.targets"
                )
            weight = base.weight.detach().float()
            for adapter in layer.active_adapters:
                weight = weight + layer.get_delta_weight(adapter).detach().float()
            yield f"{name}.weight", weight
