"""Models of transformers: from a folder, a name, a GGUF file or the embedded weights, an adapter merged into them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from crosswind.errors import CrosswindError
from crosswind.models import adapters, weights
from crosswind.models.remote import sdk

EMBEDDED = "embedded"
ABOUT = "crosswind.json"  # beside what was trained here
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
        path = weights.fetch(lambda text: print(text, file=sys.stderr, flush=True))
        return Place(str(path.parent), path.name)
    path = Path(name)
    if path.suffix == ".gguf":
        if not path.is_file():
            raise CrosswindError(f"{name}: there is no such file; {WANTED}")
        return Place(str(path.parent), path.name)
    if path.is_file():
        raise CrosswindError(f"{name}: this is a file, and no .gguf file; {WANTED}")
    if not name or not (path.exists() or NAME.fullmatch(name)):
        raise CrosswindError(f"{name or repr(name)}: there is no such file or folder; {WANTED}")
    if path.is_dir() and not (path / "config.json").is_file():
        found = sorted(p.name for p in path.glob("*.gguf"))
        if len(found) == 1:
            return Place(name, found[0])
        raise CrosswindError(f"{name}: no model lies here (no config.json); {WANTED}")
    return Place(name)


def told(error: Exception) -> str:
    """An error of transformers on one line, cut where it grows long."""
    words = " ".join(str(error).split())
    return words.rstrip(".") if len(words) <= 300 else words[:297] + "..."


def load(name: str, dtype: Any) -> Loaded:
    """A causal language model and its tokenizer; what is neither is refused in one line."""
    transformers = sdk("transformers", "train")
    broken = sdk("safetensors", "train").SafetensorError
    where = place_of(name)
    if where.gguf:
        sdk("gguf", "train")
    bar = transformers.utils.logging.is_progress_bar_enabled()
    transformers.utils.logging.disable_progress_bar()
    try:
        described = transformers.AutoConfig.from_pretrained(where.path, **where.options)
        kinds = list(getattr(described, "architectures", None) or ())
        names = transformers.models.auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values()
        if getattr(described, "is_encoder_decoder", False) or (kinds and not set(kinds) & set(names)):
            what = kinds[0] if kinds else described.model_type
            raise CrosswindError(f"{name}: {what} is no causal language model; give one, such as a Llama or a Qwen")
        tokenizer = transformers.AutoTokenizer.from_pretrained(where.path, **where.options)
        model = transformers.AutoModelForCausalLM.from_pretrained(where.path, dtype=dtype, **where.options)
    except (OSError, ValueError, KeyError, ImportError, RuntimeError, broken) as error:
        raise CrosswindError(f"{name}: cannot be loaded as a causal language model: {told(error)}; {WANTED}") from None
    finally:
        if bar:
            transformers.utils.logging.enable_progress_bar()
    if hasattr(model.config, "quantization_config"):  # of the GGUF file; the weights were unpacked
        del model.config.quantization_config
        model.is_quantized, model.hf_quantizer = False, None  # or it would refuse to change its dtype
    return Loaded(model, tokenizer)


def with_adapter(model: Any, folder: str) -> Any:
    """The model with a low-rank adapter merged into its weights, in fp32; the dtype stays as it was."""
    peft = sdk("peft", "train")
    dtype = model.dtype
    if folder in adapters.SHIPPED or folder.endswith(".gguf"):
        folder = str(adapters.as_folder(folder))
    try:
        return peft.PeftModel.from_pretrained(model.float(), folder).merge_and_unload().to(dtype)
    except (OSError, ValueError, RuntimeError) as error:
        raise CrosswindError(f"{folder}: cannot be loaded as an adapter of this model: {told(error)}") from None


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
            weight = layer.get_base_layer().weight.detach().float()
            for adapter in layer.active_adapters:
                weight = weight + layer.get_delta_weight(adapter).detach().float()
            yield f"{name}.weight", weight
