"""Tests of adapters as GGUF files: the order of rows, both ways, refusals, and the same words from both engines."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosswind.base.errors import CrosswindError
from crosswind.models import adapters, lora_gguf, weights

pytest.importorskip("gguf")
pytest.importorskip("torch")
pytest.importorskip("peft")

HEADS, KEYS, HIDDEN, LAYERS, RANK = 4, 2, 64, 2, 4


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """The head of a GGUF model: all that a conversion looks at."""
    import gguf

    path = tmp_path / "base.gguf"
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEYS)
    writer.add_tensor("token_embd.weight", np.zeros((2, HIDDEN), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def adapter(folder: Path, model: Any, *, rank: int = RANK, size: float = 0.02, targets: Any = "all-linear") -> Path:
    """An adapter whose weights are random, both halves of them."""
    import torch
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(0)
    config = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=targets, task_type="CAUSAL_LM")
    wrapped = get_peft_model(model, config)
    for name, value in wrapped.named_parameters():
        if "lora_B" in name:
            value.data.normal_(0, size)
    wrapped.peft_config["default"].base_model_name_or_path = ""
    wrapped.save_pretrained(str(folder), save_embedding_layers=False)
    return folder


@pytest.fixture
def tiny_adapter(tmp_path: Path) -> Path:
    from tests import tiny

    return adapter(tmp_path / "adapter", tiny.model(tiny.tokenizer("poi", 400), hidden=HIDDEN, layers=LAYERS))


def test_the_order_of_rows_is_that_of_the_other_engine() -> None:
    """What transformers does when it reads a GGUF undoes what we do when we write one."""
    rows = np.arange(HIDDEN * 3).reshape(HIDDEN, 3)
    ours = lora_gguf.permuted(rows, HEADS)
    width = HIDDEN // HEADS // 2
    theirs = ours.reshape(HEADS, width, 2, 3).swapaxes(2, 1).reshape(HIDDEN, 3)  # as transformers reads a Llama
    assert (theirs == rows).all()
    assert (lora_gguf.restored(ours, HEADS) == rows).all()
    assert not (ours == rows).all()
    b, a = np.random.default_rng(0).normal(size=(HIDDEN, RANK)), np.random.default_rng(1).normal(size=(RANK, 7))
    assert np.allclose(lora_gguf.permuted(b @ a, HEADS), lora_gguf.permuted(b, HEADS) @ a)


def test_an_adapter_comes_back_as_it_was(base: Path, tiny_adapter: Path, tmp_path: Path) -> None:
    import gguf
    from safetensors.numpy import load_file

    path = lora_gguf.convert(tiny_adapter, base, tmp_path / "adapter.gguf", name="test")
    reader = gguf.GGUFReader(str(path))
    assert reader.get_field("general.type").contents() == "adapter"
    assert reader.get_field("adapter.lora.alpha").contents() == 2 * RANK
    assert len(reader.tensors) == LAYERS * 7 * 2
    shapes = {tensor.name: tuple(tensor.shape) for tensor in reader.tensors}
    assert shapes["blk.0.attn_k.weight.lora_a"] == (HIDDEN, RANK)
    assert shapes["blk.0.attn_k.weight.lora_b"] == (RANK, HIDDEN // 2)
    folder = lora_gguf.restore(path, base, tmp_path / "again")
    before, after = (load_file(p / "adapter_model.safetensors") for p in (tiny_adapter, folder))
    assert set(before) == set(after)
    for name, value in before.items():
        assert np.array_equal(value.astype(np.float16), after[name]), name
    told = json.loads((folder / "adapter_config.json").read_text())
    assert (told["r"], told["lora_alpha"]) == (RANK, 2 * RANK)


def test_a_restored_adapter_loads(base: Path, tiny_adapter: Path, tmp_path: Path) -> None:
    import torch

    from crosswind.models.loading import with_adapter
    from tests import tiny

    path = lora_gguf.convert(tiny_adapter, base, tmp_path / "adapter.gguf")
    folder = lora_gguf.restore(path, base, tmp_path / "again")
    tok = tiny.tokenizer("poi", 400)
    ids = torch.arange(3, 20)[None]
    logits = []
    for one in (tiny_adapter, folder):
        model = with_adapter(tiny.model(tok, hidden=HIDDEN, layers=LAYERS), str(one)).eval()
        with torch.no_grad():
            logits.append(model(ids).logits)
    assert torch.allclose(logits[0], logits[1], atol=2e-2)
    assert not torch.allclose(logits[0], tiny.model(tok, hidden=HIDDEN, layers=LAYERS).eval()(ids).logits, atol=2e-2)


def test_what_cannot_be_converted_is_refused(base: Path, tiny_adapter: Path, tmp_path: Path) -> None:
    with pytest.raises(CrosswindError, match="holds no adapter"):
        lora_gguf.convert(tmp_path, base, tmp_path / "x.gguf")
    with pytest.raises(CrosswindError, match="no adapter found"):
        adapters.found(str(tmp_path))
    config = tiny_adapter / "adapter_config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "use_dora": True}))
    with pytest.raises(CrosswindError, match="not a plain LoRA adapter"):
        lora_gguf.convert(tiny_adapter, base, tmp_path / "x.gguf")


def test_an_adapter_is_converted_once(
    base: Path, tiny_adapter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(weights, "fetch", lambda *_: base)
    path = adapters.as_gguf(str(tiny_adapter))
    stamp = path.stat().st_mtime_ns
    assert adapters.as_gguf(str(tiny_adapter)) == path
    assert path.stat().st_mtime_ns == stamp
    assert adapters.as_folder(str(tiny_adapter)) == tiny_adapter
    assert (adapters.as_folder(str(path)) / "adapter_config.json").is_file()


@pytest.mark.skipif(
    not weights.weights_file().is_file() or importlib.util.find_spec("xllamacpp") is None,
    reason="needs the embedded weights in the cache, and xllamacpp",
)
def test_both_engines_write_the_same_with_an_adapter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A random adapter on the queries and keys of the real model, large enough to change what it writes."""
    import torch
    from peft import PeftModel

    from crosswind.models.embedded import serve
    from crosswind.models.loading import load

    folder = adapter(
        tmp_path / "a", load("embedded", torch.float32).model, rank=8, size=0.25, targets=["q_proj", "k_proj"]
    )
    model, tok = load("embedded", torch.float32)
    model = PeftModel.from_pretrained(model, str(folder)).eval()
    right = lora_gguf.convert(folder, weights.weights_file(), tmp_path / "right.gguf")
    monkeypatch.setattr(lora_gguf, "permuted", lambda rows, heads: rows)
    wrong = lora_gguf.convert(folder, weights.weights_file(), tmp_path / "wrong.gguf")
    texts = (
        "The opposite of hot is",
        "To be or not to be,",
        "Roses are red, violets are",
        "My name is John and I work as a",
    )
    ours = []
    for text in texts:
        ids = tok(text, return_tensors="pt").input_ids
        with torch.no_grad():
            out = model.generate(input_ids=ids, max_new_tokens=6, do_sample=False, pad_token_id=0)
        ours.append(tok.decode(out[0, ids.shape[1] :], skip_special_tokens=True))

    def same(path: Path) -> int:
        server = serve(str(weights.weights_file()), 512, adapter=str(path))
        bodies = ({"prompt": text, "n_predict": 6, "temperature": 0.0} for text in texts)
        theirs = [server.handle_completions(body)["choices"][0]["text"] for body in bodies]
        return sum(a == b for a, b in zip(ours, theirs, strict=True))

    assert same(right) >= 3
    assert same(wrong) <= 1


def test_an_agent_with_an_adapter_says_which(tiny_adapter: Path) -> None:
    pytest.importorskip("xllamacpp")
    from crosswind.models.embedded import Embedded
    from crosswind.models.source import AgentSettings

    source = Embedded(str(tiny_adapter), AgentSettings())
    assert source.name == f"embedded:{tiny_adapter}"
    assert len(source.settings["adapter"]) == 64
    asyncio.run(source.aclose())
    with pytest.raises(CrosswindError, match="no adapter found"):
        Embedded("nothing", AgentSettings())
