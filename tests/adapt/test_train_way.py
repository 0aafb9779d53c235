"""Targeted training as a way to adapt: from the version in use, resumed after a failure, kept in the registry."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("peft")
pytestmark = pytest.mark.filterwarnings("default")  # of the packages that train

from crosswind.adapt import ways  # noqa: E402
from crosswind.adapt.loop import Loop  # noqa: E402
from crosswind.adapt.plan import AdaptPlan  # noqa: E402
from crosswind.adapt.registry import AgentRegistry, Version  # noqa: E402
from crosswind.episodes.recipe import named  # noqa: E402
from crosswind.train.sft import Stretch  # noqa: E402
from tests import tiny  # noqa: E402

OPTIONS = {"steps": 4, "batch": 2, "buffer": 1, "save_every": 2, "log_every": 1, "pad_to": 16, "device": "cpu"}


@pytest.fixture(scope="module", autouse=True)
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with tiny.shelf(tmp_path_factory.mktemp("domain")):
        yield


@pytest.fixture(scope="module")
def base(shelf: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save(tmp_path_factory.mktemp("base"), "shelf", hidden=64)


def made(registry: AgentRegistry, version: Version, out: Path) -> ways.Candidate:
    plan = AdaptPlan(
        agent=registry.spec(version),
        parent=version.number,
        way="train",
        alarms=(),
        new=(named(["semantic_rename:3"]),),
        old=(),
        domains=("shelf",),
        train=OPTIONS,
        tasks=2,
        dev_tasks=2,
        seed=0,
        max_forget=0.5,
        min_gain=0.1,
        max_refusal_drop=0.5,
    )
    loop = Loop(plan, registry, out, tell=lambda text: None)
    out.mkdir(exist_ok=True)
    return loop._stage(out / "candidate.json", ways.Candidate, lambda: loop._candidate(version))


def test_training_goes_on_from_the_version_in_use_and_after_a_failure(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = AgentRegistry(tmp_path / "registry")
    first = registry.start(f"hf:{base}")
    out = tmp_path / "out"

    def fails(*_: Any) -> Any:
        raise RuntimeError("CUDA out of memory")

    with monkeypatch.context() as patch:
        patch.setattr(Stretch, "go", fails)
        with pytest.raises(RuntimeError, match="out of memory"):
            made(registry, first, out)
    assert not (out / "candidate.json").exists()
    assert len(registry.versions()) == 1
    candidate = made(registry, first, out)
    assert candidate.spec == f"hf:{base}+{{adapter}}"
    files = {name: Path(path) for name, path in candidate.files.items()}
    second = registry.add(candidate.spec, files, parent=1, verdict="pass", way="train")
    registry.promote(second.number)
    assert str(registry.folder) in registry.spec(second)  # the registry's own copy
    seen: list[Any] = []

    def keeps(config: Any, *_: Any, **__: Any) -> Any:
        seen.append(config)
        fails()

    with monkeypatch.context() as patch:
        patch.setattr(sys.modules["crosswind.train.run"], "train", keeps)
        with pytest.raises(RuntimeError):
            made(registry, second, tmp_path / "next")
    assert seen[0].start == registry.spec(second).partition("+")[2]
    assert seen[0].data.followed().kinds()[0] == "semantic_rename"
