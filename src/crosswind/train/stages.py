"""Training over several domains: measured before and after each stage, with the whole matrix R[stage, domain] kept.

A mixture is one stage with several domains; sequential training has a stage for each. Every stage is a run of its own
in a folder of its own, with its own schedule, and goes on from the adapter before it. What is measured is stored as
ordinary runs (`crosswind report` reads them), and the matrices and what follows from them are in `train.json`.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from crosswind.base.errors import CrosswindError
from crosswind.base.files import replace_file
from crosswind.core.types import Split
from crosswind.episodes.recipe import Choice
from crosswind.episodes.record import Record
from crosswind.episodes.suite import Condition, Suite
from crosswind.models.adapters import ABOUT
from crosswind.models.source import AgentSettings
from crosswind.runs.store import iter_records
from crosswind.train.config import Evaluation, Method, TrainConfig
from crosswind.train.model import about
from crosswind.train.progress import Progress, play_suite
from crosswind.train.sft import Result, story
from crosswind.train.transfer import Matrix, transfer
from crosswind.train.worlds import some_of
from crosswind.words.held_out import train_kinds

MEASURED = "measured"  # the folder of the runs that measure


def suite_of(how: Evaluation, domains: Sequence[str], *, split: Split, kinds: Iterable[str] = ()) -> Suite:
    """Clean tasks of some domains, and tasks under each of some train kinds."""
    level = (how.severity, how.severity)
    return Suite(
        name="between",
        summary="What a model in training is measured on.",
        domains=tuple(domains),
        levels=how.levels,
        split=split,
        tasks=how.clean,
        conditions=tuple(
            Condition(name=kind, stack=(Choice(kind=kind, severity=level),), tasks=how.tasks)
            for kind in kinds or how.kinds or train_kinds()
        ),
    )


def agent_of(model: str, adapter: str = "") -> str:
    """The spec of a model in training."""
    return f"hf:{model}+{adapter}" if adapter else f"hf:{model}"


def measure(
    agent: str,
    suite: Suite,
    folder: Path,
    *,
    seed: int,
    max_tokens: int,
    slots: int | None,
    progress: Progress | None,
    doing: str,
) -> list[Record]:
    """Play a suite with a local model into a folder; what is there already is not played again."""

    playing = play_suite(
        agent,
        suite,
        folder,
        AgentSettings(max_tokens=max_tokens),
        name=doing.removeprefix("measuring "),
        about={},
        slots=slots,
        doing=doing,
        progress=progress,
        seed=seed,
        concurrency=slots,
    )
    ran = asyncio.run(playing)
    if ran.broken or ran.stopped:
        raise CrosswindError(f"{folder}: the model could not be measured: {ran.stopped or ran.progress.trouble}")
    return [record for record in iter_records(folder) if record.judged]


def shares(records: Sequence[Record], names: Sequence[str], *, clean: bool) -> tuple[float | None, ...]:
    """Success by domain, of the clean or of the shifted episodes."""
    out: list[float | None] = []
    for name in names:
        some = [record.passed for record in records if record.domain == name and record.clean is clean]
        out.append(sum(some) / len(some) if some else None)
    return tuple(out)


class _Matrices:
    """The matrices of a run, row by row, as they are measured."""

    def __init__(self, config: TrainConfig, folder: Path, progress: Progress | None) -> None:
        assert config.evaluate
        self.config, self.how, self.folder, self.progress = config, config.evaluate, folder, progress
        self.names = list(dict.fromkeys((*config.domains(), *self.how.domains)))
        self.clean: list[tuple[float | None, ...]] = []
        self.shifted: list[tuple[float | None, ...]] = []

    def add(self, stage: int, adapter: str) -> None:
        """Measure the model after a stage; stage 0 is before training."""
        suite = suite_of(self.how, self.names, split=self.how.split)
        model = adapter if self.config.full and adapter else self.config.model
        records = measure(
            agent_of(model, "" if self.config.full else adapter),
            suite,
            self.folder / MEASURED / f"stage-{stage}",
            seed=self.config.data.seed,
            max_tokens=self.how.max_tokens,
            slots=self.config.slots,
            progress=self.progress,
            doing=f"measuring after stage {stage}" if stage else "measuring before training",
        )
        self.clean.append(shares(records, self.names, clean=True))
        self.shifted.append(shares(records, self.names, clean=False))

    def told(self, trained: Sequence[Sequence[str]]) -> dict[str, Any]:
        """Both matrices and what follows from them, as JSON."""
        out: dict[str, Any] = {}
        for name, rows in (("clean", self.clean), ("shifted", self.shifted)):
            matrix = Matrix(domains=tuple(self.names), trained=tuple(map(tuple, trained)), rows=tuple(rows))
            out[name] = {"matrix": matrix.model_dump(mode="json"), **transfer(matrix).model_dump(mode="json")}
        return out


def measured_once(config: TrainConfig, folder: Path, result: Result, progress: Progress | None) -> Result:
    """A run of one stage, with the matrix of before and after."""
    matrices = _Matrices(config, folder, progress)
    matrices.add(0, config.start)
    matrices.add(1, result.adapter)
    return with_extra(config, result, {"transfer": matrices.told([config.domains()])})


def train_stages(
    config: TrainConfig, folder: Path, method: Method, progress: Progress | None, train: Callable[..., Result]
) -> Result:
    """Sequential training: each stage in a folder of its own, on top of the one before; `train` makes one stage."""
    matrices = _Matrices(config, folder, progress) if config.evaluate else None
    if matrices:
        matrices.add(0, config.start)
    adapter, results = config.start, list[Result]()
    for n, stage in enumerate(config.stages, 1):
        data = config.data.model_copy(update={"domains": stage.domains})
        alone = {"data": data, "steps": stage.steps, "stages": (), "evaluate": None, "start": adapter}
        results.append(train(config.model_copy(update=alone), folder / f"stage-{n}", method=method, progress=progress))
        adapter = results[-1].adapter
        if matrices:
            matrices.add(n, adapter)
    last = results[-1]
    final = copied(Path(adapter), folder / "adapter")
    result = last.model_copy(
        update={
            "out": str(folder),
            "adapter": str(final),
            **{name: sum(getattr(r, name) for r in results) for name in SUMMED},
        }
    )
    extra: dict[str, Any] = {"stages": [{"domains": s.domains, "steps": s.steps} for s in config.stages]}
    if matrices:
        extra["transfer"] = matrices.told([some_of(stage.domains) for stage in config.stages])
    return with_extra(config, result, extra)


def copied(source: Path, final: Path) -> Path:
    """A copy of a folder that is there as a whole or not at all."""
    half = final.with_name(f"{final.name}.new")
    shutil.rmtree(half, ignore_errors=True)
    shutil.copytree(source, half)
    shutil.rmtree(final, ignore_errors=True)
    return half.rename(final)


SUMMED = ("steps", "seconds", "tokens", "learnt", "demonstrations", "perturbed")


def with_extra(config: TrainConfig, result: Result, extra: dict[str, Any]) -> Result:
    """A result with more to tell, here and beside the adapter."""
    result = result.model_copy(update={"extra": {**result.extra, **extra}})
    told = {**about(result.adapter), **story(config, result)}
    replace_file(Path(result.adapter) / ABOUT, json.dumps(told, indent=1, ensure_ascii=False).encode())
    return result
