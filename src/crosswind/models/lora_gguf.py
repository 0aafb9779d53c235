"""Low-rank adapters between PEFT's folder and one GGUF file, as llama.cpp loads it beside a model.

llama.cpp turns queries and keys by other pairs of numbers than transformers does: in a GGUF of the Llama family the
rows of these two weights are in another order, head by head. An adapter's product B A changes a weight, so the rows of
B are put into that order, and A stays as it is. Scales are the same on both sides: alpha / rank.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crosswind.base.errors import CrosswindError
from crosswind.models.remote import sdk

Array = NDArray[Any]
CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
MODULES = {short: name for name, short in NAMES.items()}
_OURS = re.compile(r"base_model\.model\.model\.layers\.(\d+)\.(.+)\.lora_([AB])\.weight")
_THEIRS = re.compile(r"blk\.(\d+)\.(\w+)\.weight\.lora_([ab])")


def permuted(rows: Array, heads: int) -> Array:
    """Rows of a query or key weight in the order of a GGUF: the two halves of each head take turns."""
    width = len(rows) // heads
    return rows.reshape(heads, 2, width // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def restored(rows: Array, heads: int) -> Array:
    """The reverse of `permuted`."""
    width = len(rows) // heads
    return rows.reshape(heads, width // 2, 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


class Heads:
    """How many heads of queries and of keys a model has, as its GGUF says."""

    def __init__(self, model: Path | str) -> None:
        gguf = sdk("gguf", "train")
        try:
            reader = gguf.GGUFReader(str(model))
        except (OSError, ValueError) as error:
            raise CrosswindError(f"{model}: cannot be read as a GGUF file ({error})") from None
        self.architecture = str(_field(reader, "general.architecture"))
        if self.architecture != "llama":
            raise CrosswindError(f"{model}: is a {self.architecture!r}; only adapters of llama are converted")
        self.queries = int(_field(reader, "llama.attention.head_count"))
        self.keys = int(_field(reader, "llama.attention.head_count_kv") or self.queries)

    def of(self, short: str) -> int | None:
        """The heads by which a weight's rows are ordered; None: they are not."""
        return {"attn_q": self.queries, "attn_k": self.keys}.get(short)


def _field(reader: Any, name: str) -> Any:
    found = reader.get_field(name)
    return None if found is None else found.contents()


# ---------------------------------------------------------------- there


def convert(folder: Path | str, model: Path | str, out: Path | str, *, name: str = "") -> Path:
    """Write a PEFT adapter as a GGUF file for a model that is one; weights are stored in half precision."""
    gguf = sdk("gguf", "train")
    folder, out = Path(folder), Path(out)
    config = _config(folder)
    heads = Heads(model)
    pairs: dict[tuple[int, str], dict[str, Array]] = {}
    for key, value in _weights(folder).items():
        found = _OURS.fullmatch(key)
        short = NAMES.get(found[2]) if found else None
        if found is None or short is None:
            raise CrosswindError(f"{folder}: the adapter changes {key!r}, which a GGUF adapter cannot hold")
        pairs.setdefault((int(found[1]), short), {})[found[3]] = value
    writer = gguf.GGUFWriter(str(out), heads.architecture)
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", float(config["lora_alpha"]))
    if name:
        writer.add_name(name)
    for (layer, short), pair in sorted(pairs.items()):
        if set(pair) != {"A", "B"}:
            raise CrosswindError(f"{folder}: half of an adapter is missing at layer {layer}, {short}")
        count = heads.of(short)
        b = pair["B"] if count is None else permuted(pair["B"], count)
        for letter, value in (("a", pair["A"]), ("b", b)):
            writer.add_tensor(f"blk.{layer}.{short}.weight.lora_{letter}", np.ascontiguousarray(value, np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return out


def _config(folder: Path) -> dict[str, Any]:
    try:
        config: dict[str, Any] = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise CrosswindError(f"{folder}: holds no adapter (no {CONFIG}); give the folder that training wrote") from None
    odd = [
        key for key in ("use_dora", "use_rslora", "rank_pattern", "alpha_pattern", "modules_to_save") if config.get(key)
    ]
    if config.get("peft_type") != "LORA" or odd or config.get("bias", "none") != "none":
        what = odd[0] if odd else config.get("peft_type")
        raise CrosswindError(f"{folder}: not a plain LoRA adapter ({what}), and cannot be converted")
    return config


def _weights(folder: Path) -> dict[str, Array]:
    safetensors = sdk("safetensors.torch", "train")
    try:
        return {name: value.float().numpy() for name, value in safetensors.load_file(str(folder / WEIGHTS)).items()}
    except (OSError, ValueError) as error:
        raise CrosswindError(f"{folder}: {WEIGHTS} cannot be read ({error})") from None


# ---------------------------------------------------------------- and back


def restore(path: Path | str, model: Path | str, folder: Path | str) -> Path:
    """Write a GGUF adapter as a PEFT folder; what is in `crosswind.json` beside the file goes along."""
    gguf = sdk("gguf", "train")
    safetensors = sdk("safetensors.numpy", "train")
    path, folder = Path(path), Path(folder)
    heads = Heads(model)
    try:
        reader = gguf.GGUFReader(str(path))
        alpha = float(_field(reader, "adapter.lora.alpha"))
    except (OSError, ValueError, TypeError) as error:
        raise CrosswindError(f"{path}: cannot be read as a GGUF adapter ({error})") from None
    weights: dict[str, Array] = {}
    modules: set[str] = set()
    rank = 0
    for tensor in reader.tensors:
        found = _THEIRS.fullmatch(tensor.name)
        if found is None or found[2] not in MODULES:
            raise CrosswindError(f"{path}: has {tensor.name!r}, which does not belong to an adapter of this model")
        value = np.array(tensor.data)
        count = heads.of(found[2])
        if found[3] == "b" and count is not None:
            value = restored(value, count)
        module = MODULES[found[2]]
        modules.add(module.rpartition(".")[2])
        rank = len(value) if found[3] == "a" else rank
        weights[f"base_model.model.model.layers.{found[1]}.{module}.lora_{found[3].upper()}.weight"] = (
            np.ascontiguousarray(value)
        )
    folder.mkdir(parents=True, exist_ok=True)
    told = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "r": rank,
        "lora_alpha": alpha,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": sorted(modules),
        "base_model_name_or_path": "",
        "inference_mode": True,
    }
    (folder / CONFIG).write_text(json.dumps(told, indent=1), encoding="utf-8")
    safetensors.save_file(weights, str(folder / WEIGHTS), metadata={"format": "pt"})
    return folder
