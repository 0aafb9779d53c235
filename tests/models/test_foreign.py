"""Models, templates, adapters and checkpoints that nobody here made, or that something happened to."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("peft")
import torch
from safetensors.torch import save_file

from crosswind.base.errors import CrosswindError
from crosswind.models.engine import stops_of
from crosswind.models.hf import HuggingFace
from crosswind.models.loading import load, merged, with_adapter
from crosswind.models.prompts import end_of
from crosswind.models.source import AgentSettings
from crosswind.train.model import about, load_base
from crosswind.train.run import train
from tests import tiny
from tests.train.test_train import config, gpt2, weights

OWN = "{% for m in messages %}<turn>{{ m.role }}\n{{ m.content }}<end_turn>\n{% endfor %}"
OWN += "{% if add_generation_prompt %}<turn>assistant\n{% endif %}"
PLAIN = "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no') }}{% endif %}"
PLAIN += "{{ m.role }}: {{ m.content }}{% if m.role == 'assistant' %} <end_turn>{% endif %}\n{% endfor %}"


@pytest.fixture(scope="module", autouse=True)
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with tiny.shelf(tmp_path_factory.mktemp("shelf")) as domain:
        yield domain


@pytest.fixture(scope="module")
def base(shelf: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save(tmp_path_factory.mktemp("base"), "shelf")


@pytest.fixture(scope="module")
def adapter(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(train(config(base, steps=1), tmp_path_factory.mktemp("trained")).adapter)


def own(folder: Path, template: str) -> Path:
    """A model whose turns end with a token of its template's, which nothing else names as an end."""
    tok = tiny.tokenizer("shelf")
    tok.add_special_tokens({"additional_special_tokens": ["<turn>", "<end_turn>"]})
    tok.chat_template = template
    tiny.model(tok).save_pretrained(folder)
    tok.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("template", [OWN, PLAIN])
def test_a_reply_ends_where_the_template_ends_the_turn(template: str, tmp_path: Path) -> None:
    model, tok = load(str(own(tmp_path, template)), torch.float32)
    end = tok.convert_tokens_to_ids("<end_turn>")
    assert end not in (tok.eos_token_id, model.config.eos_token_id)
    assert end_of(tok) == end
    assert {end, tok.eos_token_id} <= stops_of(model, tok).tokens


def test_a_template_that_says_nothing_of_ends_has_none(tmp_path: Path) -> None:
    tok = load(str(own(tmp_path, "{% for m in messages %}{{ m.content }}\n{% endfor %}")), torch.float32).tokenizer
    assert end_of(tok) is None
    tok.chat_template = "{{ raise_exception('never') }}"
    assert end_of(tok) is None


def test_what_it_learnt_is_where_it_stops(tmp_path: Path) -> None:
    """A model that always writes the end of a turn would go on for ever, if that were not known as one."""
    source = HuggingFace(str(own(tmp_path, OWN)), AgentSettings(max_tokens=40, protocol="text"))
    engine = source._load()
    try:
        end = source.tokenizer.convert_tokens_to_ids("<end_turn>")
        words = torch.zeros_like(engine.model.get_input_embeddings().weight)
        words[7], words[end] = 1.0, 2.0
        engine.load_weights(
            [("model.embed_tokens.weight", words)]
            + [(name, p * 0) for name, p in engine.model.named_parameters() if "o_proj" in name or "down_proj" in name]
        )
        assert engine.submit([5, 6, 7], key=0, max_new=40, temperature=0.0).result().ids == [end]
    finally:
        engine.close()


def test_a_tokenizer_without_ends_and_padding_trains(tmp_path: Path) -> None:
    folder = own(tmp_path / "base", OWN)
    tok = load(str(folder), torch.float32).tokenizer
    tok.eos_token = tok.pad_token = tok.bos_token = None
    tok.save_pretrained(folder)
    assert load_base(str(folder)).tokenizer.pad_token == "<end_turn>"
    assert train(config(folder, steps=1), tmp_path / "out").steps == 1


def test_weights_and_tokenizers_are_looked_at_before_a_model_plays(base: Path, tmp_path: Path) -> None:
    model, tok = load(str(base), torch.float32)
    tok.add_tokens([f"word{n}" for n in range(9)])
    tok.save_pretrained(tmp_path)
    model.save_pretrained(tmp_path)
    with pytest.raises(CrosswindError, match=r"the tokenizer has \d+ tokens and the model knows \d+; put"):
        load(str(tmp_path), torch.float32)
    model.model.norm.weight.data[3] = float("inf")
    model.save_pretrained(tmp_path)
    tiny.tokenizer("shelf").save_pretrained(tmp_path)
    with pytest.raises(CrosswindError, match=r"weights of the model are NaN or infinite \(model.norm.weight\)"):
        load(str(tmp_path), torch.float32)


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        ("cut", "cannot be loaded as an adapter of this model: "),
        ("kind", "cannot be loaded as an adapter of this model: "),
        ("wide", r"the adapter belongs to another model \(width 64 instead of 32\); give"),
        ("wide, unsaid", "cannot be loaded as an adapter of this model: .*size mismatch"),
        ("deep", r"the adapter belongs to another model \(layers 2 instead of 3\); give"),
        ("flat", r"the adapter belongs to another model \(layers 2 instead of 1\); give"),
        ("flat, unsaid", r"the adapter belongs to another model: 14 of its matrices have no place in it; give"),
        ("half", r"the adapter belongs to another model: 14 places stay empty; give"),
        ("gpt2", r"another model \(family llama instead of gpt2, layers 2 instead of 1, width 64"),
    ],
)
def test_an_adapter_that_is_damaged_or_another_models_is_refused_in_a_line(
    base: Path, adapter: Path, tmp_path: Path, harm: str, told: str
) -> None:
    here, model = tmp_path / "adapter", base
    shutil.copytree(adapter, here)
    if harm == "cut":
        path = here / "adapter_model.safetensors"
        path.write_bytes(path.read_bytes()[:-100])
    elif harm == "kind":
        described = json.loads((here / "adapter_config.json").read_text())
        (here / "adapter_config.json").write_text(json.dumps({**described, "peft_type": "CHARM"}))
    elif harm == "half":
        some = {name: value for name, value in weights(str(here)).items() if "layers.0." in name}
        save_file(some, here / "adapter_model.safetensors")
    elif harm == "gpt2":
        model = gpt2(tmp_path / "model", positions=2048)
    else:
        sizes: dict[str, Any] = {"wide": {"hidden": 32}, "deep": {"layers": 3}}.get(harm.split(",")[0], {"layers": 1})
        model = tiny.save(tmp_path / "model", "shelf", **sizes)
    if "unsaid" in harm:  # of PEFT alone
        (here / "crosswind.json").unlink()
    with pytest.raises(CrosswindError, match=told) as raised:
        with_adapter(load(str(model), torch.float32).model, str(here))
    assert "\n" not in str(raised.value)
    with pytest.raises(CrosswindError, match=f"^start: .*(?:{told})") as raised:
        train(config(model, steps=1, start=str(here)), tmp_path / "out")
    assert "\n" not in str(raised.value)


def test_a_folder_named_like_one_of_the_package_is_the_folder(
    base: Path, adapter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(adapter, tmp_path / "static")
    monkeypatch.chdir(tmp_path)
    assert train(config(base, steps=1, start="./static"), tmp_path / "out").steps == 1  # the package's does not fit


def test_an_adapter_that_cannot_be_merged_is_refused(base: Path, tmp_path: Path) -> None:
    from peft import PromptTuningConfig, get_peft_model

    wanted = PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=2)
    get_peft_model(load(str(base), torch.float32).model, wanted).save_pretrained(tmp_path)
    with pytest.raises(CrosswindError, match=r"is an adapter that cannot be merged \(.*PROMPT_TUNING\); give"):
        with_adapter(load(str(base), torch.float32).model, str(tmp_path))


def test_the_sort_of_its_model_stands_in_an_adapter(base: Path, adapter: Path, tmp_path: Path) -> None:
    sort = {"family": "llama", "layers": 2, "width": 64}
    assert about(adapter)["sort"] == sort
    assert with_adapter(load(str(base), torch.float32).model, str(adapter))
    shutil.copytree(adapter, tmp_path / "other")
    (tmp_path / "other" / "crosswind.json").write_text(
        json.dumps({**about(adapter), "sort": {**sort, "family": "qwen2"}})
    )
    with pytest.raises(CrosswindError, match=r"another model \(family qwen2 instead of llama\); give"):
        with_adapter(load(str(base), torch.float32).model, str(tmp_path / "other"))


def test_layers_of_several_weights_cannot_be_merged_while_they_are_trained(base: Path) -> None:
    from crosswind.train.model import adapted

    model = adapted(load_base(str(base)).model, config(base))
    layer = model.get_base_model().model.layers[0].mlp.up_proj
    layer.base_layer = torch.nn.Identity()
    with pytest.raises(CrosswindError, match=r"changes model.layers.0.mlp.up_proj \(Identity\), which has several"):
        dict(merged(model))


def test_a_path_may_have_a_plus(base: Path, adapter: Path, tmp_path: Path) -> None:
    place = tmp_path / "a+b model"
    shutil.copytree(base, place)
    for spec, parts in (
        (str(place), (str(place), "")),
        (f"{place}+{adapter}", (str(place), str(adapter))),
        (f"{base}+{adapter}", (str(base), str(adapter))),
        ("embedded+static", ("embedded", "static")),
    ):
        source = HuggingFace(spec, AgentSettings())
        assert (source.path, source.adapter) == parts


def test_training_with_soft_caps_says_that_it_cannot_be_played(tmp_path: Path) -> None:
    from transformers import Gemma2Config, Gemma2ForCausalLM

    tok = tiny.tokenizer("shelf")
    sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "head_dim": 16}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1}
    Gemma2ForCausalLM(Gemma2Config(vocab_size=len(tok), **sizes, **heads)).save_pretrained(tmp_path)
    tok.save_pretrained(tmp_path)
    with pytest.warns(UserWarning, match="'softcap' in their attention can be trained here, but not played"):
        load_base(str(tmp_path))


# ---------------------------------------------------------------- checkpoints


@pytest.mark.parametrize("name", ["optimizer.pt", "scheduler.pt", "adapter_model.safetensors", "trainer_state.json"])
@pytest.mark.parametrize("gone", [True, False])
def test_a_checkpoint_that_lost_files_is_left_for_the_one_before(
    base: Path, tmp_path: Path, name: str, gone: bool
) -> None:
    whole = train(config(base, steps=6, save_every=2, keep=3), tmp_path / "out")
    before = weights(whole.adapter)
    (tmp_path / "out" / "train.json").unlink()
    shutil.rmtree(tmp_path / "out" / "adapter")
    path = tmp_path / "out" / "checkpoints" / "checkpoint-6" / name
    if gone:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-7])
    kept = tmp_path / "out" / "checkpoints" / "checkpoint-6.mine"
    kept.mkdir()
    with pytest.warns(UserWarning, match=r"checkpoint-6: files of it are gone or cut; the run goes on from step 4"):
        again = train(config(base, steps=6, save_every=2, keep=3), tmp_path / "out")
    assert again.resumed == 4
    after = weights(again.adapter)
    assert all(torch.equal(before[key], after[key]) for key in before)
    assert kept.is_dir()
