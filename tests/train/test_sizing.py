"""Defaults that follow the size of a model, and memory that is known not to do before anything is loaded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("peft")
pytestmark = pytest.mark.filterwarnings("default")  # of the packages that train

from crosswind.base.errors import CrosswindError  # noqa: E402
from crosswind.train import sizing  # noqa: E402
from crosswind.train.config import GrpoConfig, TrainConfig, load  # noqa: E402
from crosswind.train.run import train  # noqa: E402
from crosswind.train.sizing import GIB, Size, check_memory, needed, size_of, sized  # noqa: E402
from tests import tiny  # noqa: E402

SEVEN = Size(7_600_000_000, 3584, 28, 152_064)
HALF = Size(494_000_000, 896, 24, 151_936)
EXAMPLES = Path(__file__).parents[2] / "examples" / "train"


@pytest.fixture
def as_large(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lets every model be of some size, and the machine have so much memory."""

    def be(size: Size | None, gib: float = 1000.0) -> None:
        monkeypatch.setattr(sizing, "size_of", lambda name: size)
        monkeypatch.setattr(sizing, "free_memory", lambda device: int(gib * GIB))

    return be


def test_the_size_is_that_of_the_weights(tmp_path: Path) -> None:
    folder = tiny.save(tmp_path, hidden=32)
    model = tiny.model(tiny.tokenizer(), hidden=32)
    found = size_of(str(folder))
    assert found == Size(sum(p.numel() for p in model.parameters()), 32, 2, tiny.VOCABULARY)
    assert size_of(str(tmp_path / "nothing")) is None


def test_defaults_follow_the_size_and_what_was_given_stays(as_large: Any) -> None:
    as_large(size_of("embedded"))
    assert sized(TrainConfig()) == TrainConfig()  # so that recipes stored before are still the same
    as_large(HALF)
    half = sized(TrainConfig())
    assert (half.rate, half.data.max_tokens, half.lora.fold) == (5e-4, 4096, True)
    as_large(SEVEN)
    seven, full, rl = sized(TrainConfig()), sized(TrainConfig(full=True)), sized(GrpoConfig())
    assert (seven.rate, seven.data.max_tokens, seven.lora.fold) == (2e-4, 4096, False)
    assert full.rate == 2e-5
    assert rl.rate == pytest.approx(2e-5)
    assert (rl.max_new, rl.window, rl.lora.fold) == (512, 4096, False)
    given = GrpoConfig.model_validate(
        {"lr": 1e-5, "max_new": 64, "window": 512, "data": {"max_tokens": 900}}, strict=False
    )
    kept = sized(given)
    assert (kept.lr, kept.max_new, kept.window, kept.data.max_tokens) == (1e-5, 64, 512, 900)


def test_what_suits_a_small_model_only_is_warned_of(as_large: Any) -> None:
    as_large(SEVEN)
    with pytest.warns(UserWarning, match="lr is 0.002; a model of 7,600M parameters usually takes about 0.0002"):
        sized(TrainConfig(lr=2e-3))
    with pytest.warns(UserWarning, match=r"lora.fold keeps two more copies"):
        assert sized(TrainConfig.model_validate({"lora": {"fold": True}})).lora.fold
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sized(TrainConfig(lr=3e-4))


def test_memory_that_cannot_do_is_told_with_what_would_help(as_large: Any, tmp_path: Path) -> None:
    as_large(SEVEN, gib=80)
    wanted = TrainConfig.model_validate({"full": True, "device": "cpu"})
    with pytest.raises(
        CrosswindError, match=r"takes at least 1\d\d\.\d GiB .*try checkpointing: true, an adapter"
    ) as told:
        check_memory(wanted)
    assert "cpu has 80.0 GiB free" in str(told.value)
    adapter = sized(TrainConfig(device="cpu", checkpointing=True))
    check_memory(adapter)  # and that would do
    with pytest.raises(CrosswindError, match="at least"):
        train(
            wanted.model_copy(update={"data": wanted.data.model_copy(update={"share": 0.0})}),
            tmp_path / "run",
            method="sft",
        )
    assert not (tmp_path / "run").exists()
    more = needed(adapter.model_copy(update={"checkpointing": False}), SEVEN)
    assert more["one row"] > 5 * needed(adapter, SEVEN)["one row"]


def test_sharding_is_refused_rather_than_stored_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    folder = tiny.save(tmp_path / "model", hidden=32)
    wanted = TrainConfig.model_validate({"model": str(folder), "device": "cpu", "data": {"share": 0.0}})
    with pytest.raises(CrosswindError, match="FSDP would shard it"):
        train(wanted, tmp_path / "run", method="sft")


def test_the_recipe_for_eight_gpus_trains_a_tiny_model_on_two_processes(tmp_path: Path) -> None:
    """The same command as for 7B with another model, on CPUs, in the model's own way of calling tools."""
    from tests.models.test_native import PLAIN

    folder = tiny.save(tmp_path / "model", hidden=32)
    tok = tiny.tokenizer()
    tok.chat_template = PLAIN
    tok.save_pretrained(folder)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]  # as accelerate does
    command = [
        *launch, "-m", "crosswind", "train", "paft", str(EXAMPLES / "seven_b.yaml"),
        "--set", f"model={folder}", "--set", "steps=2", "--set", "batch=4", "--set", "accumulate=2",
        "--set", "buffer=1", "--set", "data.levels=[1]", "--set", "data.max_tokens=16384",
        "--out", str(tmp_path / "run"),
    ]  # fmt: skip
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "run" / "adapter" / "adapter_model.safetensors").is_file()
    told = json.loads((tmp_path / "run" / "train.json").read_text())["result"]
    assert told["demonstrations"] == 2 * 4  # of both processes


def test_accelerate_reads_the_file_for_eight_gpus() -> None:
    from accelerate.commands.config.config_args import load_config_from_file

    found = load_config_from_file(str(EXAMPLES / "eight_gpus.yaml"))
    assert (found.num_processes, str(found.distributed_type)) == (8, "DistributedType.MULTI_GPU")


@pytest.mark.parametrize("name", ["grpo_open.yaml", "seven_b.yaml"])
def test_examples_can_be_read(name: str) -> None:
    found = load(EXAMPLES / name, (), GrpoConfig if "grpo" in name else TrainConfig)
    assert found.data.recipe == "mixed"
