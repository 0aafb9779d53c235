"""One arm from one seed: train it, test it, and note what was done. Each step resumes where it was stopped."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import importlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from crosswind.base.errors import BadFile, CrosswindError
from crosswind.base.files import append_file, exclusive_lock, replace_file
from crosswind.base.version import __version__
from crosswind.base.yaml_files import Document
from crosswind.models.adapters import ABOUT
from crosswind.models.source import AgentSettings
from crosswind.runs.runner import Limits
from crosswind.runs.store import MANIFEST, episodes_in, load_manifest, now
from crosswind.study import outcomes
from crosswind.study.definition import Arm, Part, Study
from crosswind.study.results import FAILED, LOG, Done, read_done
from crosswind.train.checkpoints import whole_ones
from crosswind.train.config import CHECKPOINTS, for_method, kind_of
from crosswind.train.progress import Halt, Progress, Update, play_suite

SPENT, LOCK = "spent.json", "lock"
MARGIN = 8.0  # seconds kept free at the end of a budget, for writing
SECONDS = TypeAdapter(dict[str, float])


class OutOfTime(Halt):
    """The budget is used up. What was done is stored, and the same command resumes."""


@dataclass
class Budget:
    """Seconds to spend; None: no limit."""

    seconds: float | None = None
    began: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        if self.seconds is None:
            return float("inf")
        return self.seconds - MARGIN - (time.monotonic() - self.began)


@dataclass
class Means:
    """What a job runs with."""

    budget: Budget = field(default_factory=Budget)
    slots: int | None = None  # conversations kept on the device
    concurrency: int | None = None  # episodes played at a time
    commit: str = ""
    progress: Progress | None = None


class ArmJob:
    """One arm from one seed, in its folder."""

    def __init__(self, study: Study, arm: Arm, seed: int, out: Path, part: Part) -> None:
        self.study, self.arm, self.seed, self.out, self.part = study, arm, seed, out, part
        self.name = f"{arm.name}/seed-{seed}"
        self.folder = folder_of(out, arm.name, seed)
        self.training, self.run = self.folder / "train", self.folder / part
        self.table = self.folder / f"{part}.jsonl.xz"
        self.suite = study.suite(part)
        self.config_hash = study.config_hash(arm, seed)
        self.suite_hash = study.suite_hash(part)

    def done(self) -> Done | None:
        """The stored result, if any. One of another definition is an error."""
        path = self.folder / f"{self.part}.json"
        if not path.is_file() or not self.table.is_file():
            return None
        found = read_done(path)
        other = self.study.another(self.arm, self.seed, found.config, found.config_hash)
        if found.suite_hash != self.suite_hash:
            other = "its suites differ"
        if other:
            raise CrosswindError(
                f"{self.folder} was finished under another definition of the study ({other}); choose another "
                "--out, or remove that folder"
            )
        return found

    def spent(self) -> dict[str, float]:
        path = self.folder / SPENT
        if not path.is_file():
            return {}
        try:
            return SECONDS.validate_json(path.read_bytes())
        except (OSError, ValidationError):
            raise BadFile(f"{path}: is damaged; remove it and run the same command again") from None

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        """Count seconds, of interrupted work too."""
        began, spent = time.monotonic(), self.spent()
        try:
            yield
        finally:
            spent[what] = round(spent.get(what, 0.0) + time.monotonic() - began, 2)
            replace_file(self.folder / SPENT, json.dumps(spent).encode())

    def locked(self) -> AbstractContextManager[bool]:
        """The folder for this process alone; False: another process has it."""
        return exclusive_lock(self.folder / LOCK)

    # -- training

    def config(self) -> Any:
        """The configuration of the training, checked against its method."""
        assert self.arm.method
        options: dict[str, Any] = self.study.options(self.arm, self.seed)
        if self.arm.start:
            options["start"] = os.path.relpath(self.started())
        fitted = Document(options, {}, self.name).fit(kind_of(self.arm.method))
        return for_method(fitted, self.arm.method, self.name)

    def waits(self, *, begun: bool) -> bool:
        """Is the arm that this one starts from untrained, and not begun or in the hands of another process?"""
        if not self.arm.start:
            return False
        first = ArmJob(self.study, self.study.by_name[self.arm.start], self.seed, self.out, self.part)
        if not begun:
            return not first.trained()
        with first.locked() as ours:
            return not ours and not first.trained()

    def started(self) -> Path:
        """The adapter that this arm starts from."""
        path = folder_of(self.out, self.arm.start, self.seed) / "train" / "adapter"
        if not (path / "adapter_config.json").is_file():
            raise CrosswindError(
                f"{self.name} starts from {self.arm.start}, whose adapter is not at {path}; unpack it here, or train "
                f"it with --arms {self.arm.start} --only-train"
            )
        return path

    def train(self, means: Means) -> dict[str, Any]:
        """Train or resume, or return what was trained before."""
        from crosswind.train.run import train

        def heard(update: Update) -> None:
            if means.progress:
                means.progress(update)
            if means.budget.left <= 0:
                how = "trained up to step" if update.doing == "training" else f"{update.doing}:"
                raise OutOfTime(f"{self.name} is {how} {update.step} of {update.steps}")

        config = self.config()
        if means.slots:
            config = config.model_copy(update={"slots": min(means.slots, config.slots or means.slots)})
        assert self.arm.method
        result = train(config, self.training, method=self.arm.method, progress=heard)
        return result.model_dump(mode="json", exclude={"out", "adapter"})

    def learn(self, means: Means) -> dict[str, Any] | None:
        """Train what is left to train; None for an arm that is tested untrained."""
        (self.folder / FAILED).unlink(missing_ok=True)
        if self.arm.method is None:
            return None
        with self.timed("train"):
            told = self.train(means)
        free_memory()
        return told

    # -- testing

    def agent(self) -> str:
        """The trained model as an agent spec."""
        if self.arm.method is None:
            return f"hf:{self.study.model}"
        if (self.training / "model").is_dir():
            return f"hf:{self.training / 'model'}"
        return f"hf:{self.study.model}+{self.training / 'adapter'}"

    def test(self, means: Means) -> None:
        """Play all suites of the part in one batch, into one run."""
        self._log("begins", means.commit)
        slots, concurrency = means.slots, means.concurrency
        playing = play_suite(
            self.agent(),
            self.suite,
            self.run,
            AgentSettings(
                max_tokens=self.study.max_tokens, protocol=self.config().protocol if self.arm.method else "text"
            ),
            name=f"{self.study.name}:{self.name}",
            about={"model": Path(self.study.model).name, "config": self.config_hash},
            slots=slots,
            doing=f"playing {self.part}",
            progress=means.progress,
            seed=self.study.seed(self.part),
            limits=Limits(deadline=None if means.budget.seconds is None else max(1.0, means.budget.left)),
            concurrency=min(concurrency, slots) if concurrency and slots else concurrency or slots,
        )
        ran = asyncio.run(playing)
        if ran.broken:
            raise CrosswindError(f"{self.name} could not be tested: {ran.stopped or ran.progress.trouble}")
        if ran.stopped:
            raise OutOfTime(f"{self.name} is tested in part: {ran.stopped}")
        self._log("ended", means.commit)

    def _log(self, event: str, commit: str) -> None:
        line = {
            "when": now(),
            "event": event,
            "part": self.part,
            "arm": self.arm.name,
            "seed": self.seed,
            "commit": commit,
            "code": code_digest(),
            "config": self.config_hash,
            "suite": self.suite_hash,
        }
        if self.part == "test":
            append_file(self.out / LOG, (json.dumps(line) + "\n").encode())

    def go(self, means: Means) -> Done:
        """Train and test what is left, and store the result."""
        told = self.learn(means)
        with self.timed(self.part):
            self.test(means)
        free_memory()
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        with self.timed("table"):
            about = {"arm": self.arm.name, "seed": self.seed, "part": self.part, "config": self.config_hash}
            outcomes.tabulated(self.run, self.table, about, processes=min(8, cores - 1))
        _, rows = outcomes.read(self.table, self.arm.name, self.seed)
        scored, passed = outcomes.passed(rows)
        done = Done(
            study=self.study.name,
            arm=self.arm.name,
            wave=self.arm.wave,
            about=self.arm.about,
            method=self.arm.method,
            seed=self.seed,
            part=self.part,
            config=self.study.told(self.arm, self.seed),
            config_hash=self.config_hash,
            suite_hash=self.suite_hash,
            episodes_hash=outcomes.played(rows),
            commit=means.commit,
            code=code_digest(),
            crosswind=__version__,
            ended=now(),
            episodes=len(rows),
            passed=passed,
            scored=scored,
            train=told,
            spent=self.spent(),
        )
        replace_file(self.folder / f"{self.part}.json", done.model_dump_json(indent=1).encode() + b"\n")
        return done

    # -- what is left

    def trained(self) -> bool:
        """Is there nothing (left) to train?"""
        return self.arm.method is None or any((self.training / name / ABOUT).is_file() for name in ("adapter", "model"))

    def steps_left(self) -> int:
        """Steps that are not trained yet."""
        if self.arm.method is None or self.trained():
            return 0
        steps = int(self.arm.train.get("steps", kind_of(self.arm.method).model_fields["steps"].default))
        return steps - max(whole_ones(self.training / CHECKPOINTS), default=0)

    def episodes_left(self) -> int:
        """Episodes that are not played yet; an estimate until the run is planned."""
        every = sum((c.tasks or self.suite.tasks) * len(self.suite.where(c)) for c in self.suite.all_conditions())
        if (self.run / MANIFEST).is_file():
            every = load_manifest(self.run).planned or every
        return max(0, every - max(0, episodes_in(self.run)))


def folder_of(out: Path, arm: str, seed: int) -> Path:
    return out / "arms" / arm / f"seed-{seed}"


def lines_in(path: Path) -> int:
    """How many lines a file has; -1 without a file."""
    return path.read_bytes().count(b"\n") if path.is_file() else -1


def free_memory() -> None:
    """Release what the last model took."""
    gc.collect()
    torch = importlib.import_module("torch")
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


@lru_cache(maxsize=1)
def code_digest() -> str:
    """A digest of the files of the package: equal for results of the same code."""
    root, out = Path(__file__).parent.parent, hashlib.sha256()
    for path in sorted(
        p for p in root.rglob("*") if p.suffix in (".py", ".yaml", ".json") and "adapters" not in p.parts
    ):
        out.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return out.hexdigest()[:16]
