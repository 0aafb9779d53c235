"""Fine-tuning with a tiny model: what is learnt, what is refused, and that a killed run ends as an unbroken one."""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft")
pytestmark = pytest.mark.filterwarnings("default")  # of the packages that train

from crosswind.base.errors import BadFile, CrosswindError  # noqa: E402
from crosswind.core.domain import Domain  # noqa: E402
from crosswind.core.draw import draw  # noqa: E402
from crosswind.episodes.recipe import Choice, Recipe  # noqa: E402
from crosswind.episodes.record import Record  # noqa: E402
from crosswind.models.loading import merged  # noqa: E402
from crosswind.models.prompts import script_of, spoken  # noqa: E402
from crosswind.train import adaptive, sft, stages  # noqa: E402
from crosswind.train.batches import Buffers, Feed, as_tensors, collate  # noqa: E402
from crosswind.train.config import Adaptive, GrpoConfig, TrainConfig, for_method, load  # noqa: E402
from crosswind.train.data import DataConfig, demonstration_at  # noqa: E402
from crosswind.train.model import about, adapted, all_folded, load_base, prepare  # noqa: E402
from crosswind.train.progress import Halt, Update  # noqa: E402
from crosswind.train.rows import demonstration, rows, tokens  # noqa: E402
from crosswind.train.run import train  # noqa: E402
from crosswind.train.sft import Stretch, gathered  # noqa: E402
from crosswind.train.transfer import Matrix, transfer  # noqa: E402
from crosswind.words.held_out import HELD_OUT  # noqa: E402
from tests import tiny  # noqa: E402

RENAMED = Recipe(stack=(Choice(kind="semantic_rename"),))


@pytest.fixture(scope="module", autouse=True)
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Domain]:
    with tiny.shelf(tmp_path_factory.mktemp("domain")) as domain:
        yield domain


@pytest.fixture(scope="module")
def base(shelf: Domain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save(tmp_path_factory.mktemp("base"), "shelf", hidden=64)


def config(base: Path, **more: Any) -> TrainConfig:
    data = {"domains": {"shelf": 1.0}, "share": 0.5, "recipe": RENAMED, **more.pop("data", {})}
    usual = {"model": str(base), "steps": 6, "batch": 4, "buffer": 2, "log_every": 1, "save_every": 2, "pad_to": 16}
    return TrainConfig.model_validate({**usual, "device": "cpu", **more, "data": data}, strict=False)


# ---------------------------------------------------------------- what is learnt


def test_targets_are_exactly_the_agents_turns(base: Path) -> None:
    tok = tiny.tokenizer("shelf")
    data = config(base).data
    shown = [demonstration_at(data, n) for n in range(4)]
    batch = collate([tokens(row, tok) for one in shown for row in rows(one)], tok.pad_token_id, 16)
    assert (batch.ids.ravel()[batch.places + 1] == batch.targets).all()
    script = script_of(tok)
    said = [script.inert(spoken(m)) for one in shown for m in one.chat if m.role == "assistant"]
    assert tok.decode(batch.targets) == "".join(text + tiny.END for text in said)


def test_the_loss_is_that_of_all_logits_under_a_padding_mask(base: Path) -> None:
    model, tok = load_base(str(base))
    some = [tokens(rows(demonstration_at(config(base).data, n))[0], tok) for n in range(3)]
    batch = as_tensors(collate(some, tok.pad_token_id, 64))
    with gathered(model, batch["places"]):
        found = torch.nn.functional.cross_entropy(model(batch["input_ids"]).logits, batch["labels"])
    labels = torch.full_like(batch["input_ids"], -100)
    for n, row in enumerate(some):
        kept = [i if m else -100 for i, m in zip(row.ids, row.mask, strict=True)]
        labels[n, : len(kept)] = torch.tensor(kept)
    mask = (torch.arange(labels.shape[1]) < torch.tensor([[len(row.ids)] for row in some])).long()
    wanted = model(batch["input_ids"], attention_mask=mask, labels=labels).loss
    assert abs(found.item() - wanted.item()) < 1e-5


def test_a_step_is_scaled_by_what_is_learnt_in_all_its_passes(base: Path, tmp_path: Path) -> None:
    wanted = config(base, accumulate=2)
    trainer = Stretch(prepare(wanted), wanted, tmp_path, wanted.data, 1, None).trainer(0)
    passes = list(trainer.feed)
    assert len(passes) == 2
    counted = super(sft.Gathering, trainer)._get_num_items_in_batch(passes, torch.device("cpu"))
    assert trainer._get_num_items_in_batch(passes, torch.device("cpu")) == int(counted) > 2


def test_a_folded_adapter_computes_the_same(base: Path) -> None:
    outputs, gradients = [], []
    for fold in (False, True):
        model = adapted(load_base(str(base)).model, config(base, lora={"fold": fold}))
        assert all_folded(model) is fold
        for name, weight in model.named_parameters():
            if "lora_B" in name:
                weight.data.copy_(torch.linspace(-0.02, 0.02, weight.numel()).view_as(weight))
        logits = model(torch.arange(40)[None]).logits
        logits.square().mean().backward()
        outputs.append(logits.detach())
        gradients.append(next(p.grad for n, p in model.named_parameters() if "lora_A" in n))
    assert torch.allclose(*outputs, atol=1e-5)
    assert torch.allclose(*gradients, atol=1e-6)


def gpt2(folder: Path, positions: int = 512) -> Path:
    """A model whose layers are not `nn.Linear` and whose positions are learnt."""
    from transformers import GPT2Config, GPT2LMHeadModel

    tok = tiny.tokenizer("shelf")
    torch.manual_seed(0)
    sizes = {"n_embd": 32, "n_layer": 1, "n_head": 2, "n_positions": positions}
    GPT2LMHeadModel(GPT2Config(vocab_size=len(tok), bos_token_id=1, eos_token_id=2, **sizes)).save_pretrained(folder)
    tok.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("targets", ["all-linear", ["attn.c_proj"]])
def test_layers_that_are_no_plain_linear_ones_are_left_unfolded(targets: Any, tmp_path: Path) -> None:
    base = gpt2(tmp_path)
    wanted = load_base(str(base)).model.eval()(torch.arange(40)[None]).logits
    model = adapted(load_base(str(base)).model, config(base, lora={"targets": targets})).eval()
    assert not all_folded(model)
    assert torch.allclose(model(torch.arange(40)[None]).logits, wanted, atol=1e-5)  # the adapter is 0
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            weight.data.copy_(torch.linspace(-0.1, 0.1, weight.numel()).view_as(weight))
    other = load_base(str(base)).model.eval()
    other.load_state_dict(dict(merged(model)), strict=False)  # as GRPO hands it to the engine
    found = other(torch.arange(40)[None]).logits
    assert torch.allclose(model(torch.arange(40)[None]).logits, found, atol=1e-5)
    assert not torch.allclose(found, wanted, atol=1e-2)


@pytest.mark.parametrize("more", [{"use_dora": True}, {"lora_bias": True}, {"modules_to_save": ["norm"]}])
def test_what_a_start_has_beside_two_matrices_is_kept_and_is_not_for_grpo(
    base: Path, tmp_path: Path, more: dict[str, Any]
) -> None:
    from peft import LoraConfig, get_peft_model

    model = load_base(str(base)).model
    for layer in model.model.layers:  # a bias of an adapter needs one next to it
        layer.mlp.up_proj.bias = torch.nn.Parameter(torch.zeros(layer.mlp.up_proj.out_features))
    before = copy.deepcopy(model)
    made = get_peft_model(model, LoraConfig(r=4, target_modules=["up_proj"], task_type="CAUSAL_LM", **more)).eval()
    torch.manual_seed(0)
    for name, weight in made.named_parameters():
        if "lora_" in name or "modules_to_save" in name:
            weight.data.add_(torch.randn_like(weight) * 0.1)
    made.save_pretrained(tmp_path)
    wanted = made(torch.arange(40)[None]).logits
    found = adapted(before, config(base, start=str(tmp_path), lora={"rank": 4, "alpha": 8})).eval()
    assert torch.allclose(found(torch.arange(40)[None]).logits, wanted, atol=1e-5)
    with pytest.raises(CrosswindError, match="which cannot be merged while it is trained; start from one without"):
        dict(merged(found))


def test_an_adapter_on_embeddings_trains_and_one_on_the_output_is_refused(tmp_path: Path) -> None:
    base = gpt2(tmp_path / "tied")
    for targets in (["wte"], ["lm_head"]):
        with pytest.raises(CrosswindError, match="is the output layer or shares its weights"):
            adapted(load_base(str(base)).model, config(base, lora={"targets": targets}))
    with pytest.raises(CrosswindError, match=r"^lora.targets: got '\*\(', which is not a pattern \(nothing to repeat"):
        adapted(load_base(str(base)).model, config(base, lora={"targets": "*("}))
    model = load_base(str(base)).model
    wanted = model.eval()(torch.arange(40)[None]).logits
    found = adapted(model, config(base, lora={"targets": ["wpe"]})).eval()
    assert torch.allclose(found(torch.arange(40)[None]).logits, wanted, atol=1e-5)
    assert [name for name, _ in merged(found)] == ["transformer.wpe.weight"]


def test_batches_depend_on_their_number_alone(base: Path) -> None:
    tok = tiny.tokenizer("shelf")
    wanted = config(base)

    def batches(start: int, workers: int) -> list[Any]:
        buffers = Buffers(wanted.data, tok, wanted, 100, micro=4)
        return [batch["input_ids"] for batch in Feed(buffers, start=start, stop=6, workers=workers)]

    alone = batches(0, 0)
    assert len(alone) == 6
    for other in (batches(3, 0), batches(3, 2)):
        assert all(torch.equal(a, b) for a, b in zip(alone[3:], other, strict=True))


def test_only_train_words_and_train_kinds_come_in(base: Path) -> None:
    data = DataConfig(domains={"poi": 1.0, "retail": 1.0}, share=1.0, levels=(1,))
    for index in range(12):
        meta = demonstration_at(data, index).meta
        assert meta["split"] == "train"
        assert not HELD_OUT & set(meta["kinds"])


def test_paft_beats_static_on_a_renaming_in_words_never_trained(base: Path, shelf: Domain, tmp_path: Path) -> None:
    loss = {}
    for method, share in (("sft", 0.0), ("paft", 0.7)):
        wanted = config(
            base, full=True, lr=5e-3, steps=40, batch=8, buffer=4, log_every=40, save_every=40,
            data={"share": share, "fixed": 256, "reasons": False},
        )  # fmt: skip
        result = train(wanted, tmp_path / method, method=method)  # type: ignore[arg-type]
        model, tok = load_base(result.adapter)
        for name, kinds in (("clean", ()), ("renamed", ("semantic_rename",))):
            some = [draw(shelf, shelf.task("colour_of", 10**6 + n, split="test"), kinds, n) for n in range(16)]
            batch = as_tensors(
                collate([tokens(rows(demonstration(one, reasons=False))[0], tok) for one in some], 0, 16)
            )
            with torch.no_grad(), gathered(model, batch["places"]):
                found = torch.nn.functional.cross_entropy(model(batch["input_ids"]).logits, batch["labels"])
            loss[method, name] = float(found)
    assert loss["paft", "renamed"] < loss["sft", "renamed"] - 0.5
    assert loss["paft", "clean"] < loss["sft", "clean"] + 0.5


# ---------------------------------------------------------------- going on


KILLED = """
import os, signal, sys
from pathlib import Path
from tests import tiny
from tests.train.test_train import config
from crosswind.train.run import train

def die(update):
    if update.step == 5:
        os.kill(os.getpid(), signal.SIGKILL)

with tiny.shelf(Path(sys.argv[3])):
    train(config(Path(sys.argv[1]), **eval(sys.argv[4])), sys.argv[2], progress=die)
"""


def weights(folder: str) -> dict[str, Any]:
    from peft import load_peft_weights

    found: dict[str, Any] = load_peft_weights(folder, device="cpu")
    return found


def test_a_killed_run_ends_with_the_weights_of_an_unbroken_one(
    base: Path, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    more = {
        "steps": 7,
        "accumulate": 2,
        "data": {"curriculum": [{"start": 0, "severity": 1}, {"start": 0.5, "severity": 4}]},
    }
    whole = train(config(base, **more), tmp_path / "whole")
    command = [sys.executable, "-c", KILLED, str(base), str(tmp_path / "killed"), str(tmp_path), repr(more)]
    path = os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == -signal.SIGKILL, done.stderr[-2000:]
    (tmp_path / "killed" / "checkpoints" / "checkpoint-6").mkdir()  # as if it was killed while it wrote this one
    result = train(config(base, **more), tmp_path / "killed")
    assert result.resumed == 4
    assert not any("gone or cut" in str(warning.message) for warning in recwarn)  # nothing whole was lost
    before, after = weights(whole.adapter), weights(result.adapter)
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert (result.demonstrations, result.tokens) == (whole.demonstrations, whole.tokens)
    lines = [json.loads(line) for line in (tmp_path / "killed" / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(1, 8))


def test_a_run_that_is_told_to_stop_is_saved_where_it_stopped(base: Path, tmp_path: Path) -> None:
    def enough(update: Update) -> None:
        if update.step == 3:
            raise Halt

    whole = train(config(base, save_every=100), tmp_path / "whole")
    with pytest.raises(Halt):
        train(config(base, save_every=100), tmp_path / "halted", progress=enough)
    result = train(config(base, save_every=100), tmp_path / "halted")
    assert result.resumed == 3
    before, after = weights(whole.adapter), weights(result.adapter)
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert result.demonstrations == whole.demonstrations


TWO = """
import os, shutil, sys
from pathlib import Path
import torch
from tests import tiny
from tests.train import test_train
base, out, scratch = map(Path, sys.argv[1:])
with tiny.shelf(scratch):
    test_train.train(test_train.config(base), out)
    torch.distributed.barrier()
    if os.environ["RANK"] == "0":
        shutil.copytree(out, scratch / "unbroken")
        for gone in ("adapter", "checkpoints/checkpoint-6"):
            shutil.rmtree(out / gone)
    torch.distributed.barrier()
    test_train.train(test_train.config(base), out)
"""


def test_two_processes_train_on_what_one_would(base: Path, tmp_path: Path) -> None:
    alone = train(config(base), tmp_path / "alone")
    (tmp_path / "two.py").write_text(TWO)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])}
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command = [*launch, str(tmp_path / "two.py"), str(base), str(tmp_path / "both"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    told, again = (json.loads((tmp_path / n / "train.json").read_text())["result"] for n in ("unbroken", "both"))
    assert told["demonstrations"] == alone.demonstrations
    assert (told["tokens"], told["learnt"]) == (alone.tokens, alone.learnt)
    assert told["loss"] == pytest.approx(alone.loss, rel=0.05)
    assert (told["resumed"], again["resumed"]) == (None, 4)
    unbroken, resumed = (weights(str(tmp_path / name / "adapter")) for name in ("unbroken", "both"))
    assert all(torch.equal(unbroken[name], resumed[name]) for name in unbroken)


def test_a_finished_run_is_not_trained_again_and_another_recipe_is_refused(base: Path, tmp_path: Path) -> None:
    told: list[Update] = []
    first = train(config(base), tmp_path, progress=told.append)
    assert told[-1].step == 6
    told.clear()
    assert train(config(base, log_every=3), tmp_path, progress=told.append) == first
    assert not told
    story = about(first.adapter)
    assert story["seed"] == 0
    assert story["recipe"]["data"]["recipe"]["stack"][0]["one_of"] == {"semantic_rename": 1.0}
    assert story["versions"]["torch"]
    assert str(base) not in json.dumps(json.loads((Path(first.adapter) / "adapter_config.json").read_text()))
    why = r"a different recipe \(data.share was 0.5, now 0.4\); choose another --out"
    with pytest.raises(CrosswindError, match=why):
        train(config(base, data={"share": 0.4}), tmp_path)


def test_out_of_memory_names_the_batch_to_try(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(sft.Gathering, "compute_loss", full)
    for batch, accumulate, passes, fewer in ((4, 1, 2, 2), (3, 1, 3, 1), (12, 4, 12, 4), (6, 2, 6, 2)):
        ways = rf"accumulate: {passes} .*stays {batch}\) or batch: {fewer} "
        wanted = rf"{batch // accumulate} rows .* resumes this run, or {ways}"
        folder = tmp_path / f"{batch}-{accumulate}"
        with pytest.raises(CrosswindError, match=wanted):
            train(config(base, batch=batch, accumulate=accumulate), folder)
        for told in ({"batch": batch, "accumulate": passes}, {"batch": fewer, "accumulate": accumulate}):
            config(base, **told)  # what is told can be done
    with pytest.raises(CrosswindError, match="out of memory"):  # and with this the run goes on
        train(config(base, batch=6, accumulate=2, checkpointing=True), folder)
    with pytest.raises(CrosswindError, match=r"1 rows .* try a smaller data.max_tokens \(now 2048\) with another"):
        train(config(base, batch=1, checkpointing=True), tmp_path / "one")


def test_weights_that_are_no_numbers_are_not_stored(base: Path, tmp_path: Path) -> None:
    wild = config(base, steps=5, log_every=10, lr=1e9, weight_decay=1e3)  # no line of metrics sees it
    for _ in range(2):
        with pytest.raises(CrosswindError, match=r"weights became NaN or infinite .*lower lr"):
            train(wild, tmp_path)
    assert not (tmp_path / "adapter").exists()


def test_a_model_that_does_not_fit_is_told_of_before_the_first_step(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        torch.empty(2**60)  # as torch says it

    monkeypatch.setattr("peft.get_peft_model", full)
    with pytest.raises(CrosswindError, match=r"out of memory before the first step; take .*rank \(it is 65,536\)"):
        train(config(base, lora={"rank": 65536}), tmp_path)


def test_a_folder_in_which_another_process_trains_is_left_alone(base: Path, tmp_path: Path) -> None:
    from crosswind.base.files import exclusive_lock

    with exclusive_lock(tmp_path / "lock"), pytest.raises(CrosswindError, match="another process is training here"):
        train(config(base), tmp_path)
    assert train(config(base), tmp_path).steps == 6


def test_a_checkpoint_of_another_recipe_is_refused(base: Path, tmp_path: Path) -> None:
    train(config(base, steps=2), tmp_path / "one")
    shutil.copytree(tmp_path / "one" / "checkpoints", tmp_path / "other" / "checkpoints")
    with pytest.raises(CrosswindError, match=r"checkpoint of another recipe \(seed was 0, now 7; data.seed .* --out"):
        train(config(base, steps=2, seed=7), tmp_path / "other")


def test_weights_that_are_gone_are_made_again(base: Path, tmp_path: Path) -> None:
    first = train(config(base, steps=2), tmp_path)
    before = weights(first.adapter)
    (Path(first.adapter) / "adapter_model.safetensors").unlink()
    again = train(config(base, steps=2), tmp_path)
    after = weights(again.adapter)
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_an_adapter_to_go_on_from_decides_what_it_is(base: Path, tmp_path: Path) -> None:
    first = train(config(base, steps=1, lora={"rank": 4}), tmp_path / "first")
    with pytest.raises(CrosswindError, match=r"lora.rank is 8, but start goes on from an adapter whose rank is 4"):
        train(config(base, steps=1, start=first.adapter, lora={"rank": 8}), tmp_path / "second")
    second = train(config(base, steps=1, start=first.adapter), tmp_path / "second")
    assert about(second.adapter)["recipe"]["lora"]["rank"] == 4


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_demonstrations_are_counted_as_they_are_trained_on(base: Path, tmp_path: Path, steps: int) -> None:
    assert train(config(base, steps=steps, batch=4, buffer=2), tmp_path).demonstrations == 4 * steps


def test_one_that_fails_does_not_stop_the_queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from crosswind.cli import train as command
    from crosswind.cli.app import app

    begun = []

    def one(method: str, path: Path, *_: Any, **__: Any) -> None:
        begun.append(path.name)
        raise IndexError("out of range") if path.name == "a.yaml" else CrosswindError("refused")

    monkeypatch.setattr(command, "one", one)
    done = CliRunner().invoke(app, ["train", "queue", "sft:a.yaml", "paft:b.yaml", "--out", str(tmp_path)])
    assert (done.exit_code, begun) == (1, ["a.yaml", "b.yaml"])
    assert "error: sft:a.yaml: IndexError: out of range" in done.output


def test_a_disk_that_is_full_is_told_of_and_other_trouble_is_not_taken_for_it(tmp_path: Path) -> None:
    import errno

    from safetensors import SafetensorError

    from crosswind.cli.train import written

    full = SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")
    saved = RuntimeError("[enforce fail at inline_container.cc:664] . unexpected pos 2112 vs 2002")
    for error in (OSError(errno.ENOSPC, "No space left on device"), full, saved):
        told = r"(No space left on device|unexpected pos).*make room, and give the same command"
        with pytest.raises(CrosswindError, match=told), written(tmp_path):
            raise error
    odd = (RuntimeError("I/O error of another sort"), ValueError("unexpected pos"))
    for other in (SafetensorError("Error while deserializing header"), FileNotFoundError(errno.ENOENT, "gone"), *odd):
        with pytest.raises(type(other)), written(tmp_path):
            raise other


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("steps: 5\ndata:\n  share: 1.5\n", r"train.yaml:3: data.share: got 1.5; .*at most 1"),
        ("steps: -1\n", r"train.yaml:1: steps: got -1; .*at least 1"),
        ("model: x\ndata:\n  recipe: unseen\n", r"train.yaml:3: data.recipe: .* is held out"),
        ("data:\n  share: 0\n  recipe: unseen\n", r"train.yaml:3: data.recipe: .* is held out"),
        ("batch: 4\nsteps: true\n", r"train.yaml:2: steps: got yes or no; expected a number"),
        ("data:\n  share: yes\n", r"train.yaml:2: data.share: got yes or no; expected a number"),
        (
            "stages:\n- {steps: 1, domains: {poi: 1}}\n- {steps: on, domains: {poi: 1}}\n",
            r"train.yaml:3: stages.1.steps: got",
        ),
        ("steps: 5\nlr: .inf\n", r"train.yaml:2: lr: got inf; .*finite"),
        ("lora:\n  alpha: .inf\n", r"train.yaml:2: lora.alpha: got inf; .*finite"),
        ("steps: 5\nlearning_rate: 1\n", r"train.yaml:2: learning_rate: .*expected one of the keys model"),
        ("data:\n  domains: {pio: 1}\n", r"train.yaml:2: data.domains: no domain 'pio'.*poi"),
        ("steps: 5\nbatch: 5\naccumulate: 2\n", r"train.yaml:2: batch is 5 and accumulate 2"),
        (
            "steps: 3\nadaptive: {rounds: 4}\n",
            r"train.yaml:1: steps is 3 and adaptive.rounds 4; every round needs a step",
        ),
        ("steps: 5\nbatch: 100000000000000000000\n", r"train.yaml:2: batch: got 1\d+; .*at most 65536"),
        ("buffer: 10000000000000\n", r"train.yaml:1: buffer: got 1\d+; .*at most 1024"),
        ("pad_to: 1000000000\n", r"train.yaml:1: pad_to: got 1\d+; .*at most 65536"),
        ("evaluate:\n  split: test\n", r"train.yaml:2: evaluate.split: got 'test'; .*'train' or 'dev'"),
        ("data:\n  families: [nothing]\n", r"train.yaml:\d: data: no family 'nothing'"),
        (
            "data:\n  curriculum:\n  - {start: 0, severity: low}\n",
            r"train.yaml:3: data.curriculum.0.severity: got 'low'; expected 1 to 5",
        ),
        (
            "stages:\n- {steps: 1, domains: {poi: -1}}\n",
            r"train.yaml:2: stages.0.domains: the weight of 'poi' is -1; expected a number above 0",
        ),
    ],
)
def test_a_bad_file_is_told_with_its_line(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "train.yaml"
    path.write_text(text)
    with pytest.raises(BadFile, match=told):
        load(path)


def test_changes_on_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "train.yaml"
    path.write_text("steps: 5\ndata:\n  share: 0.2\n")
    found = load(path, ["data.share=0.5", "lora.rank=4", "seed=3"])
    assert (found.data.share, found.lora.rank, found.steps, found.data.seed) == (0.5, 4, 5, 3)
    assert load(None, ["seed=3", "data.seed=4"]).data.seed == 4
    with pytest.raises(BadFile, match=r"--set data.share=7: data.share: got 7; "):
        load(path, ["data.share=7"])
    for value, told in (
        ("[{start: 0, severity: low}]", r"data.curriculum.0.severity: got 'low'; expected 1 to 5"),
        ("[{start: 0.5, severity: 1}]", r"data.curriculum: the stages start at 0.5; expected 0 first"),
    ):
        with pytest.raises(BadFile, match=rf"^--set data.curriculum={re.escape(value)}: {told}"):
            load(path, [f"data.curriculum={value}"])
    with pytest.raises(BadFile, match=r"^--set data.curriculum.0.start=1: data.curriculum: got .* expected a list"):
        load(path, ["data.curriculum.0.start=1"])
    why = "batch is 5 and accumulate 2; batch must be divisible by accumulate"
    with pytest.raises(BadFile, match=f"^--set batch=5 --set accumulate=2: {why}"):
        load(None, ["batch=5", "accumulate=2"])
    with pytest.raises(CrosswindError, match="expected KEY=VALUE"):
        load(path, ["data.share"])
    with pytest.raises(BadFile, match="sft learns from clean demonstrations alone"):
        for_method(load(path), "sft")
    assert for_method(load(None), "sft").data.share == 0


def test_a_run_that_is_refused_on_loading_leaves_its_folder_free(base: Path, tmp_path: Path) -> None:
    from transformers import BertConfig

    encoder, out = tmp_path / "encoder", tmp_path / "out"
    BertConfig(architectures=["BertForMaskedLM"], hidden_size=8, num_attention_heads=2).save_pretrained(encoder)
    with pytest.raises(CrosswindError, match="not a causal language model"):
        train(config(encoder), out)
    assert train(config(base), out).steps == 6  # and not refused as a different recipe
    with pytest.raises(CrosswindError, match="a different recipe"):
        train(config(encoder), out)
    assert train(config(base), out).steps == 6


def test_what_is_no_causal_model_or_has_no_template_is_refused(base: Path, tmp_path: Path) -> None:
    from transformers import BertConfig, PreTrainedTokenizerFast

    BertConfig(architectures=["BertForMaskedLM"], hidden_size=8, num_attention_heads=2).save_pretrained(tmp_path)
    with pytest.raises(CrosswindError, match="BertForMaskedLM not a causal language model"):
        load_base(str(tmp_path))
    with pytest.raises(CrosswindError, match="no model found"):
        load_base(str(tmp_path.parent))
    from tokenizers import Tokenizer, models

    bare = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()), eos_token="</s>")
    other = tmp_path / "other"
    tiny.model(tiny.tokenizer("shelf")).save_pretrained(other)
    bare.save_pretrained(other)
    with pytest.raises(CrosswindError, match="no chat template"):
        load_base(str(other))
    small = tmp_path / "small"
    tok = tiny.tokenizer("shelf")
    few = tiny.model(tok)
    few.resize_token_embeddings(8)
    few.save_pretrained(small)
    tok.save_pretrained(small)
    with pytest.raises(CrosswindError, match=r"the tokenizer has \d+ tokens and the model knows 8"):
        load_base(str(small))


def test_rows_longer_than_the_positions_a_model_has_learnt_are_refused(tmp_path: Path) -> None:
    base = gpt2(tmp_path / "base", positions=520)
    for longest, full in ((0, False), (2048, True), (519, False)):
        told = rf"rows may have {longest or 'any'} .* has only 520 positions; set data.max_tokens to 512 or less"
        with pytest.raises(CrosswindError, match=told):
            train(config(base, full=full, data={"max_tokens": longest}), tmp_path / "out")
    with pytest.raises(CrosswindError, match=r"set pad_to to 1 and data.max_tokens to 520 or less"):
        prepare(config(base, pad_to=1024))
    with pytest.raises(CrosswindError, match=r"rows may have 520 tokens \(window\).*; set window to 512 or less"):
        prepare(GrpoConfig(model=str(base)))
    prepare(GrpoConfig(model=str(base), window=512))
    assert not (tmp_path / "out" / "train.json").exists()
    assert train(config(base, steps=1, data={"max_tokens": 512}), tmp_path / "out").steps == 1


def test_weights_of_a_model_that_are_no_numbers_are_told_of(base: Path, tmp_path: Path) -> None:
    model, tok = load_base(str(base))
    model.model.layers[1].mlp.up_proj.weight.data[0, 0] = float("nan")
    model.save_pretrained(tmp_path)
    tok.save_pretrained(tmp_path)
    with pytest.raises(CrosswindError, match=r"weights of the model are NaN or infinite \(model.layers.1.mlp.up_proj"):
        load_base(str(tmp_path))


@pytest.mark.parametrize("text", ['{"step": ', "[1]", '{"recipe": [], "totals": {}}'])
def test_a_damaged_note_of_a_checkpoint_is_told_in_a_line(base: Path, tmp_path: Path, text: str) -> None:
    train(config(base, steps=2), tmp_path)
    (tmp_path / "train.json").unlink()
    (tmp_path / "checkpoints" / "checkpoint-2" / "crosswind.json").write_text(text)
    with pytest.raises(BadFile, match=r"crosswind.json: is damaged; take .*checkpoint-2 away, and the run goes on"):
        train(config(base, steps=2), tmp_path)
    (tmp_path / "train.json").write_text('{"method": "paft", "recipe": []}')
    with pytest.raises(BadFile, match=r"train.json: is damaged"):
        train(config(base, steps=2), tmp_path)
    (tmp_path / "rounds.json").write_text(text)
    with pytest.raises(BadFile, match=r"rounds.json: is damaged"):
        adaptive._sound(tmp_path, config(base, adaptive={"rounds": 2}))


def test_a_model_that_is_not_there_takes_no_folder(base: Path, tmp_path: Path) -> None:
    """Or the same command with the right model would be refused, since the folder held another recipe."""
    with pytest.raises(CrosswindError, match="model: /nowhere/model: no such file or folder; give a"):
        train(config(Path("/nowhere/model")), tmp_path / "out")
    assert not (tmp_path / "out").exists()


# ---------------------------------------------------------------- stages and rounds


def test_what_follows_from_a_matrix() -> None:
    matrix = Matrix(
        domains=("a", "b", "c"),
        trained=(("a",), ("b",), ("a",)),
        rows=((0.1, 0.2, 0.3), (0.9, 0.4, 0.3), (0.6, 0.8, 0.2), (0.7, 0.5, None)),
    )
    found = transfer(matrix)
    assert found.by_domain["a"] == pytest.approx({"forgetting": 0.2, "backward": -0.2})
    assert found.by_domain["b"] == pytest.approx({"forgetting": 0.3, "backward": -0.3, "forward": 0.2})
    assert found.by_domain["c"] == {}
    assert found.forgetting == pytest.approx(0.25)
    assert found.carried is None
    alone = transfer(Matrix(domains=("a", "b"), trained=(("a",),), rows=((0.1, 0.2), (0.9, 0.4))))
    assert alone.carried == pytest.approx(0.2)
    assert alone.forgetting is alone.forward is None
    with pytest.raises(CrosswindError, match="expected one row before training"):
        transfer(Matrix(domains=("a",), trained=(("a",),), rows=((0.1,),)))


def record(kind: str, n: int, passed: bool, cause: str = "", domain: str = "shelf") -> Record:
    layers = ({"kind": kind},) if kind != "clean" else ()
    return Record(
        key=f"{domain}/{kind}/{n}", pair=str(n), task_id=str(n), domain=domain, family="colour_of", level=1, seed=0,
        trial=0, condition=kind, severity=3, layers=layers, agent="x", outcome="pass" if passed else "fail",
        ended="answer", refuse=False, query="", policy="", tools=(), steps=(), final="", cause=cause or None,
    )  # fmt: skip


def test_weights_move_to_where_it_breaks() -> None:
    kinds = ["semantic_rename", "key_rename", "transient_error", "typos"]
    some = [record(kind, n, kind != "key_rename", "misread result") for kind in kinds for n in range(8)]
    pushed = adaptive.pressure(some, kinds)
    assert pushed["key_rename"] > pushed["transient_error"] > pushed["typos"] == pushed["semantic_rename"]
    how = Adaptive()
    even = dict.fromkeys(kinds, 0.25)
    moved = adaptive.moved(even, pushed, even, how)
    assert sum(moved.values()) == pytest.approx(1)
    assert moved["key_rename"] > 0.4
    recipe = adaptive.reweighted(Recipe(stack=(Choice(group="train", count=(1, 2)),)), moved)
    assert recipe.stack[0].weights() == moved
    assert recipe.stack[0].count == (1, 2)
    first = {"a": 0.4, "b": 0.3, "c": 0.2, "d": 0.1}
    least, most = ({k: by * w for k, w in first.items()} for by in (0.25, 2))
    held = adaptive.held({"a": 0.97, "b": 0.01, "c": 0.01, "d": 0.01}, least, most)
    assert sum(held.values()) == pytest.approx(1)
    assert all(least[k] <= w <= most[k] + 1e-9 for k, w in held.items())


def test_what_a_recipe_picks_more_often_stays_so_unless_it_is_learnt() -> None:
    first = {"rule_change": 0.6, "key_rename": 0.2, "typos": 0.2}
    alike = dict.fromkeys(first, 0.3)
    assert adaptive.moved(first, alike, first, Adaptive()) == pytest.approx(first)
    failing = alike | {"rule_change": 0.6}
    once = adaptive.moved(first, failing, first, Adaptive())
    assert once["rule_change"] > first["rule_change"]
    assert adaptive.moved(once, failing, first, Adaptive())["rule_change"] > once["rule_change"]
    assert adaptive.moved(first, alike | {"rule_change": 0.03}, first, Adaptive())["rule_change"] < 0.4
    tight = Adaptive(pull=1, floor=0.5, cap=1.5)
    assert adaptive.moved(first, alike | {"typos": 9.0}, first, tight)["typos"] == pytest.approx(0.3)
    assert adaptive.moved(first, alike | {"rule_change": 0.01}, first, tight)["rule_change"] >= 0.3


def test_a_checkpoint_of_another_recipe_is_not_taken_away(base: Path, tmp_path: Path) -> None:
    train(config(base, steps=4, save_every=4), tmp_path)
    (tmp_path / "train.json").unlink()
    with pytest.raises(CrosswindError, match="is a checkpoint of another recipe"):
        train(config(base, steps=2, lr=1e-4), tmp_path)
    assert [path.name for path in tmp_path.glob("checkpoints/*")] == ["checkpoint-4"]


def test_one_of_several_processes_tells(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from crosswind.cli.train import show

    result = sft.Result(
        method="paft", out="o", adapter="o/adapter", full=False, steps=1, loss=1.0, seconds=1.0, tokens=1, learnt=1,
        demonstrations=1, perturbed=0,
    )  # fmt: skip
    for world, rank, said in (("2", "1", False), ("2", "0", True), ("1", "1", True), ("", "", True)):
        monkeypatch.setenv("WORLD_SIZE", world)
        monkeypatch.setenv("RANK", rank)
        show(result, False)
        assert bool(capsys.readouterr().out) is said


def test_rounds_stop_when_nothing_improves(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def measured(agent: str, suite: Any, folder: Path, **_: Any) -> list[Record]:
        asked.append(f"{suite.split} {folder.parent.name}")
        assert {c.name for c in suite.conditions} == {"semantic_rename", "key_rename"}
        better = len(asked) == 2
        return [record(k, n, n < 4 + 3 * better or k == "semantic_rename") for k in kinds for n in range(8)]

    kinds = ("semantic_rename", "key_rename")
    monkeypatch.setattr(adaptive, "measure", measured)
    recipe = Recipe(stack=(Choice(one_of=dict.fromkeys(kinds, 1.0)),))
    wanted = config(base, steps=8, adaptive={"rounds": 4}, data={"recipe": recipe})
    result = train(wanted, tmp_path)
    rounds = result.extra["rounds"]
    assert asked == ["train 1", "train 2", "train 3"]
    assert result.extra["best_round"] == 2
    assert "did not rise" in result.extra["stopped"]
    assert [r["until"] for r in rounds] == [2, 4, 6]
    assert rounds[1]["weights"]["key_rename"] > 0.5 > rounds[1]["weights"]["semantic_rename"]
    assert torch.equal(
        *(next(iter(weights(str(p)).values())) for p in (tmp_path / "adapter", tmp_path / "rounds/2/adapter"))
    )


KINDS = ("semantic_rename", "key_rename")


@pytest.fixture
def rounds(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[TrainConfig, list[str]]:
    """A training in four rounds that get better, and the numbers of those measured, with + if gone on with."""
    asked: list[str] = []

    def measured(agent: str, suite: Any, folder: Path, **_: Any) -> list[Record]:
        assert suite.levels == (1,)
        asked.append(folder.parent.name + "+" * folder.exists())
        folder.mkdir(exist_ok=True)
        if asked[:2] + asked[-1:] == ["1", "2", "3"] and folder.parents[2].name == "broken":
            raise Halt("killed")
        got = int(folder.parent.name) + 1
        return [record(k, n, n < got or k == "semantic_rename") for k in KINDS for n in range(8)]

    monkeypatch.setattr(adaptive, "measure", measured)
    recipe = Recipe(stack=(Choice(one_of=dict.fromkeys(KINDS, 1.0)),))
    data = {"recipe": recipe, "levels": [1]}
    return config(base, steps=8, save_every=1, keep=9, adaptive={"rounds": 4}, data=data), asked


def test_rounds_go_on_where_they_stopped_and_end_the_same(
    rounds: tuple[TrainConfig, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted, asked = rounds
    picked: list[dict[str, float]] = []

    def watched(*args: Any) -> Any:
        picked.append(args[3].recipe.stack[0].weights())
        return sft.Stretch(*args)

    monkeypatch.setattr(adaptive, "Stretch", watched)
    whole = train(wanted, tmp_path / "whole")
    assert asked == ["1", "2", "3", "4"]
    ended = whole.extra["rounds"]
    assert ended[1]["weights"]["key_rename"] > ended[0]["weights"]["key_rename"]
    for some, told in zip(picked, ended, strict=True):  # what is told is what was trained with
        assert {kind: w / sum(some.values()) for kind, w in some.items()} == pytest.approx(told["weights"])
    for gone in ("adapter", "checkpoints"):  # all rounds are there
        shutil.rmtree(tmp_path / "whole" / gone)
    whole = train(wanted, tmp_path / "whole")
    assert len(asked) == 4
    asked.clear()
    with pytest.raises(Halt):
        train(wanted, tmp_path / "broken")
    assert asked == ["1", "2", "3"]
    early = [f"checkpoints/checkpoint-{n}" for n in range(1, 5)]
    left = (
        (["rounds/2/result.json"], 1),
        (["rounds/2/result.json", *early], 0),
        (["rounds/1/adapter/adapter_model.safetensors"], 0),
        (["rounds"], 0),
        (["checkpoints"], 0),
    )
    for lost, sound in left:
        shutil.copytree(tmp_path / "broken", tmp_path / "copy")
        for one in lost:
            at = tmp_path / "copy" / one
            shutil.rmtree(at) if at.is_dir() else at.unlink()
        with pytest.warns(UserWarning, match=f"the run {'goes on after round 1' if sound else 'starts over'}"):
            assert len(adaptive._sound(tmp_path / "copy", wanted)) == sound
        shutil.rmtree(tmp_path / "copy")
    asked.clear()
    (tmp_path / "broken").rename(tmp_path / "moved")
    shutil.copytree(tmp_path / "moved", tmp_path / "copy")
    (tmp_path / "copy" / "rounds.json").unlink()
    shutil.rmtree(tmp_path / "copy" / "checkpoints" / "checkpoint-1")
    shutil.rmtree(tmp_path / "copy" / "checkpoints" / "checkpoint-2")
    for folder, measured in (("moved", ["3+", "4"]), ("copy", ["1", "2", "3", "4"])):
        asked.clear()
        result = train(wanted, tmp_path / folder)
        assert asked == measured
        assert result.extra["rounds"] == ended
        assert result.loss == whole.loss
        for n in (1, 3, 4):
            before, after = (weights(str(tmp_path / name / f"rounds/{n}/adapter")) for name in ("whole", folder))
            assert all(torch.equal(before[name], after[name]) for name in before), (folder, n)
        assert {path.name for path in tmp_path.glob(f"{folder}/checkpoints/*")} >= {"checkpoint-8"}


def test_rounds_of_another_rule_are_not_gone_on_with(rounds: tuple[TrainConfig, list[str]], tmp_path: Path) -> None:
    assert sft.begin(tmp_path, rounds[0], "paft") is sft.begin(tmp_path, rounds[0], "paft") is None
    run = json.loads((tmp_path / "train.json").read_text())
    del run["recipe"]["adaptive"]["rule"]
    (tmp_path / "train.json").write_text(json.dumps(run))
    with pytest.raises(CrosswindError, match=r"a different recipe \(adaptive.rule was null, now 2\)"):
        train(rounds[0], tmp_path)


def test_the_first_round_picks_as_the_recipe_does() -> None:
    data = DataConfig(domains={"poi": 1.0}, recipe="wide")
    first = adaptive.first_weights(data)
    recipe = data.followed()
    same = adaptive.reweighted(recipe, dict.fromkeys(first, 1.0))

    def picks(of: Recipe) -> list[Any]:
        rng = Random(0)
        return [choice.pick(rng) for _ in range(5000) for choice in of.stack]

    assert picks(same) == picks(recipe)
    picked = Counter(kind for some in picks(recipe) for kind, _ in some)
    for kind in ("rule_change", "parameter_rename", "typos"):
        assert first[kind] == pytest.approx(picked[kind] / picked.total(), abs=0.01)
    more = adaptive.reweighted(recipe, dict.fromkeys(first, 1.0) | {"rule_change": 3.0})
    assert [c.chance for c in more.stack] == [c.chance for c in recipe.stack]
    assert more.stack[0].weights()["rule_change"] == 3 * recipe.stack[0].weights()["rule_change"]
    assert [c.weights() for c in more.stack[1:]] == [c.weights() for c in recipe.stack[1:]]
    rare = adaptive.reweighted(recipe, dict.fromkeys(first, 1.0) | {"parameter_rename": 2.0, "entity_reskin": 9.0})
    assert [c.chance for c in rare.stack] == pytest.approx([1.0, 0.3, 0.6, 0.3, 0.3, 1.0])
    less = adaptive.reweighted(recipe, dict.fromkeys(first, 1.0) | {"rule_change": 0.1})
    assert less.stack[0].chance == 1.0  # what is always made stays so, or fewer would be perturbed
    half = Recipe(stack=(Choice(one_of={"parameter_rename": 1, "typos": 9}), Choice(kind="key_rename", count=(1, 3))))
    off = data.model_copy(update={"recipe": half, "groups": ("symbols",)})
    assert adaptive.first_weights(off) == pytest.approx({"parameter_rename": 0.5, "key_rename": 0.5})
    seldom = Recipe(stack=(Choice(kind="typos", chance=0.0), Choice(kind="key_rename")))
    assert adaptive.first_weights(data.model_copy(update={"recipe": seldom})) == {"key_rename": 1.0}
    never = Recipe(stack=(Choice(kind="typos", chance=0.0),))
    with pytest.raises(CrosswindError, match="picks no enabled kind"):
        adaptive.first_weights(data.model_copy(update={"recipe": never}))


def test_a_kind_that_could_not_be_measured_is_taken_for_a_usual_one() -> None:
    some = [record(kind, n, n > 2) for kind in ("typos", "key_rename") for n in range(8)]
    pushed = adaptive.pressure(some, ["typos", "key_rename", "tool_merge"])
    assert pushed["tool_merge"] == pytest.approx(pushed["typos"]) == pushed["key_rename"]


@pytest.mark.parametrize("name", ["kinds", "domains"])
def test_rounds_are_measured_on_what_they_train_on(base: Path, tmp_path: Path, name: str) -> None:
    some = {"kinds": ["typos"], "domains": ["poi"]}[name]
    with pytest.raises(CrosswindError, match=f"evaluate.{name}: rounds are measured on the {name} they train on"):
        train(config(base, adaptive={"rounds": 2}, evaluate={name: some}), tmp_path / "out")
    assert not (tmp_path / "out" / "train.json").exists()


def test_stages_keep_the_whole_matrix(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passes = iter((1, 6, 4))

    def measured(agent: str, suite: Any, folder: Path, **more: Any) -> list[Record]:
        assert suite.split == "dev"
        assert more["slots"] == 5
        some = next(passes)
        names = ("shelf", "poi")
        return [record("clean", n, n < (some if d == "shelf" else 8 - some), domain=d) for d in names for n in range(8)]

    monkeypatch.setattr(stages, "measure", measured)
    wanted = config(
        base, steps=4, slots=5, evaluate={"domains": ["poi"]}, data={"levels": [1], "share": 0.0},
        stages=[{"domains": {"shelf": 1}, "steps": 2}, {"domains": {"poi": 1}, "steps": 2}],
    )  # fmt: skip
    result = train(wanted, tmp_path, method="sft")
    clean = result.extra["transfer"]["clean"]
    assert clean["matrix"]["rows"] == [[0.125, 0.875], [0.75, 0.25], [0.5, 0.5]]
    assert clean["forgetting"] == pytest.approx(0.25)
    assert clean["forward"] == pytest.approx(-0.625)
    assert about(result.adapter)["metrics"]["extra"]["transfer"]["clean"]["backward"] == pytest.approx(-0.25)
    assert result.steps == 4
