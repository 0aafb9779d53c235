"""Runs a study: arms are trained and tested one after the other, each stored as it ends, and what is there is kept.

    DIR/study.yaml.json                  the definition that was run
    DIR/test_log.jsonl                   every evaluation on the test split, when it began and when it ended
    DIR/arms/ARM/seed-N/train/           the folder of the training, with the adapter
    DIR/arms/ARM/seed-N/test/            the run: every episode with its trajectory
    DIR/arms/ARM/seed-N/test.jsonl.xz    the same as a table; all that a report needs
    DIR/arms/ARM/seed-N/test.json        what was done; there once the arm is finished
    DIR/arms/ARM/seed-N/spent.json       seconds, from which it is told what fits into a budget

A finished arm is skipped, a half-trained one goes on from its last checkpoint and a half-tested one from its last
episode. Several processes may share a folder: an arm that one of them works at is left alone by the others.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import importlib
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from crosswind.base.errors import BadFile, CrosswindError
from crosswind.base.files import Document, complaint
from crosswind.base.version import __version__
from crosswind.core.types import Model
from crosswind.episodes.suite import Suite
from crosswind.models.base import AgentSettings, AgentSource
from crosswind.models.loading import ABOUT
from crosswind.models.spec import open_agent
from crosswind.runs.runner import Limits, Watch
from crosswind.runs.runner import run as play_suite
from crosswind.runs.store import EPISODES, MANIFEST, alone, append_file, load_manifest, now, replace_file
from crosswind.study import outcomes
from crosswind.study.definition import Arm, Name, Part, Study, Wave
from crosswind.train.checkpoints import whole_ones
from crosswind.train.config import CHECKPOINTS, METRICS, ROUNDS, RUN, Halt, Method, for_method, kind_of

if TYPE_CHECKING:
    from crosswind.runs.runner import Progress as RunProgress
    from crosswind.train.sft import Progress, Update

LOG, DEFINITION, SPENT, LOCK, FAILED = "test_log.jsonl", "study.yaml.json", "spent.json", "lock", "failed.txt"
REWARDS = f"train/{METRICS}"  # of reinforcement, kept with its results
WEIGHTS = "adapter_model.safetensors"
MARGIN = 8.0  # seconds that are kept free at the end of a budget, for writing
SLACK = 1.15  # by how much an arm may be slower than those before it
UNKNOWN = 60.0  # seconds that must be left to begin what was never measured, or what may end in part
SECONDS = TypeAdapter(dict[str, float])
Tell = Callable[[str], None]


class OutOfTime(Halt):
    """The budget is used up; what was done is stored, and the same command goes on from it."""


class Done(Model):
    """What was done for one arm and seed."""

    study: str
    arm: Name
    wave: Wave
    about: str
    method: Method | None
    seed: int
    part: Part
    config: dict[str, Any]  # the options of the training, as written down
    config_hash: str
    suite_hash: str
    episodes_hash: str = ""  # of the episodes played: equal definitions can still deal other tasks in another version
    commit: str  # of the repository; empty where there is none
    code: str  # a digest of the package
    crosswind: str
    ended: str
    episodes: int
    passed: int
    scored: int
    train: dict[str, Any] | None  # what the training told
    spent: dict[str, float]  # seconds


def read_done(path: Path) -> Done:
    """What a file says was done: for the arm, the seed and the part of its place."""
    try:
        done = Done.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        why = error.strerror if isinstance(error, OSError) else complaint(error.errors()[0])
        raise BadFile(
            f"{path}: is no result of a study ({why}); take that folder away, and run the arm again"
        ) from None
    told = f"{done.arm}/seed-{done.seed}/{done.part}.json"
    if path.parts[-3:] != tuple(told.split("/")):
        raise BadFile(f"{path}: is the result of {told}; put it there, or take it away")
    return done


def read_rows(path: Path, done: Done) -> list[outcomes.Row]:
    """The rows of the table beside a result: all that it tells of, and of nothing else."""
    table = path.with_name(f"{done.part}.jsonl.xz")
    head, rows = outcomes.read(table, done.arm, done.seed)
    own = {"seed": done.seed, "part": done.part}  # arms were renamed now and then
    wrong = [f"its {name} is {head.get(name)!r}" for name, value in own.items() if head.get(name) != value]
    scored, passed = outcomes.passed(rows)
    if (len(rows), scored, passed) != (done.episodes, done.scored, done.passed):
        wrong.append(
            f"of {len(rows)} episodes {scored} are scored and {passed} passed, where {path.name} has "
            f"{done.episodes}, {done.scored} and {done.passed}"
        )
    if done.episodes_hash and outcomes.played(rows) != done.episodes_hash:
        wrong.append("its episodes are others")
    if wrong:
        raise BadFile(f"{table}: is not the table of {path} ({wrong[0]}); restore it, or run the arm again")
    return rows


@dataclass
class Clock:
    """A budget of seconds; None: no end."""

    budget: float | None = None
    began: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        if self.budget is None:
            return float("inf")
        return self.budget - MARGIN - (time.monotonic() - self.began)


@dataclass
class Report:
    """How a call ended: arms by what became of them."""

    finished: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)  # finished by an earlier call
    left: dict[str, str] = field(default_factory=dict)  # not begun or not finished, and why
    failed: dict[str, str] = field(default_factory=dict)
    stopped: str = ""


# ---------------------------------------------------------------- one arm


class Job:
    """One arm from one seed, in its folder."""

    def __init__(self, study: Study, arm: Arm, seed: int, out: Path, part: Part) -> None:
        self.study, self.arm, self.seed, self.out, self.part = study, arm, seed, out, part
        self.name = f"{arm.name}/seed-{seed}"
        self.folder = folder_of(out, arm.name, seed)
        self.training, self.run = self.folder / "train", self.folder / part
        self.config_hash = study.config_hash(arm, seed)
        self.suite_hash = study.suite_hash(part)

    @property
    def suite(self) -> Suite:
        return self.study.suite(self.part)

    @property
    def table(self) -> Path:
        return self.folder / f"{self.part}.jsonl.xz"

    def done(self) -> Done | None:
        """What is on record, if it is of this very definition; of another one it is refused."""
        path = self.folder / f"{self.part}.json"
        if not path.is_file() or not self.table.is_file():
            return None
        found = read_done(path)
        other = self.study.another(self.arm, self.seed, found.config, found.config_hash)
        if found.suite_hash != self.suite_hash:
            other = "its suites were others"
        if other:
            raise CrosswindError(
                f"{self.folder} was finished under another definition of the study ({other}); choose another "
                "--out, or take that folder away"
            )
        return found

    def spent(self) -> dict[str, float]:
        path = self.folder / SPENT
        if not path.is_file():
            return {}
        try:
            return SECONDS.validate_json(path.read_bytes())
        except (OSError, ValidationError):
            raise BadFile(f"{path}: is damaged; take it away, and give the same command again") from None

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        """Count seconds, also of what is broken off."""
        began, spent = time.monotonic(), self.spent()
        try:
            yield
        finally:
            spent[what] = round(spent.get(what, 0.0) + time.monotonic() - began, 2)
            replace_file(self.folder / SPENT, json.dumps(spent).encode())

    @contextmanager
    def locked(self) -> Iterator[bool]:
        """The folder for this process alone; False: another one has it."""
        with alone(self.folder / LOCK) as ours:
            yield ours

    # -- training

    def config(self) -> Any:
        """The configuration of the training; one that its method does not take is refused."""
        options: dict[str, Any] = self.study.options(self.arm, self.seed)
        if self.arm.start:
            options["start"] = os.path.relpath(self.started())
        document = Document(options, {}, self.name)
        assert self.arm.method
        return for_method(document.fit(kind_of(self.arm.method)), self.arm.method, self.name)

    def waits(self, *, begun: bool) -> bool:
        """Is the arm that this one starts from not trained, and another process's work just now, or not begun?"""
        if not self.arm.start:
            return False
        first = Job(self.study, self.study.by_name[self.arm.start], self.seed, self.out, self.part)
        if not begun:
            return not first.trained()
        with first.locked() as ours:
            return not ours and not first.trained()

    def started(self) -> Path:
        """The adapter that this arm goes on from."""
        path = folder_of(self.out, self.arm.start, self.seed) / "train" / "adapter"
        if not (path / "adapter_config.json").is_file():
            raise CrosswindError(
                f"{self.name} starts from {self.arm.start}, whose adapter is not at {path}; unpack it here, or train "
                f"it with --arms {self.arm.start} --only-train"
            )
        return path

    def train(self, clock: Clock, slots: int | None, progress: Progress | None) -> dict[str, Any]:
        """Train, or go on, or take what was trained."""

        def heard(update: Update) -> None:
            if progress:
                progress(update)
            if clock.left <= 0:
                how = "trained up to step" if update.doing == "training" else f"{update.doing}:"
                raise OutOfTime(f"{self.name} is {how} {update.step} of {update.steps}")

        config = self.config()
        if slots:
            config = config.model_copy(update={"slots": min(slots, config.slots or slots)})
        if self.arm.method == "grpo":
            result = importlib.import_module("crosswind.train.grpo").run(config, self.training, progress=heard)
        else:
            from crosswind.train.run import train

            assert self.arm.method
            result = train(config, self.training, method=self.arm.method, progress=heard)
        told: dict[str, Any] = result.model_dump(mode="json", exclude={"out", "adapter"})
        return told

    def agent(self) -> str:
        """The trained model as a spec."""
        if self.arm.method is None:
            return f"hf:{self.study.model}"
        if (self.training / "model").is_dir():
            return f"hf:{self.training / 'model'}"
        return f"hf:{self.study.model}+{self.training / 'adapter'}"

    # -- testing

    def test(self, clock: Clock, *, slots: int | None, concurrency: int | None, commit: str, progress: Any) -> None:
        """Play all suites of the part in one batch into one run."""
        self._log("begins", commit)

        async def go() -> str:
            source = open_agent(self.agent(), AgentSettings(max_tokens=self.study.max_tokens, protocol="text"))
            self._named(source)
            if slots:
                source.slots = slots  # type: ignore[attr-defined]
            deadline = None if clock.budget is None else max(1.0, clock.left)
            watch: Watch | None = _Told(self.part, progress) if progress else None
            try:
                ran = await play_suite(
                    self.suite,
                    source,
                    self.run,
                    seed=self.study.seed(self.part),
                    limits=Limits(deadline=deadline),
                    concurrency=min(concurrency, slots) if concurrency and slots else concurrency or slots,
                    watch=watch,
                )
            finally:
                await source.aclose()
            if ran.broken:
                raise CrosswindError(f"{self.name} could not be tested: {ran.stopped or ran.progress.trouble}")
            return ran.stopped

        if stopped := asyncio.run(go()):
            raise OutOfTime(f"{self.name} is tested in part: {stopped}")
        self._log("ended", commit)

    def _named(self, source: AgentSource) -> None:
        """Let records say which arm played rather than where its files lie, so that a folder may be moved."""
        source.name = f"{self.study.name}:{self.name}"
        kept = {key: value for key, value in source.settings.items() if key not in ("model", "adapter")}
        source.settings = {**kept, "model": Path(self.study.model).name, "config": self.config_hash}

    def _log(self, event: str, commit: str) -> None:
        line = {
            "when": now(),
            "event": event,
            "part": self.part,
            "arm": self.arm.name,
            "seed": self.seed,
            "commit": commit,
            "code": code(),
            "config": self.config_hash,
            "suite": self.suite_hash,
        }
        if self.part == "test":
            append_file(self.out / LOG, (json.dumps(line) + "\n").encode())

    # -- all of it

    def learn(self, clock: Clock, *, slots: int | None, progress: Any) -> dict[str, Any] | None:
        """Train what is left of it; nothing is told of an arm that is tested as it is."""
        (self.folder / FAILED).unlink(missing_ok=True)
        if self.arm.method is None:
            return None
        with self.timed("train"):
            told = self.train(clock, slots, progress)
        _free()
        return told

    def go(self, clock: Clock, *, slots: int | None, concurrency: int | None, commit: str, progress: Any) -> Done:
        """Train and test what is left of it, and note that it is finished."""
        told = self.learn(clock, slots=slots, progress=progress)
        with self.timed(self.part):
            self.test(clock, slots=slots, concurrency=concurrency, commit=commit, progress=progress)
        _free()
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
            commit=commit,
            code=code(),
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
        """Is there nothing to train, or nothing any more?"""
        return self.arm.method is None or any((self.training / name / ABOUT).is_file() for name in ("adapter", "model"))

    def steps_left(self) -> tuple[int, int]:
        """Steps that are not trained yet, and all of them."""
        if self.arm.method is None:
            return 0, 0
        every = int(self.arm.train.get("steps", kind_of(self.arm.method).model_fields["steps"].default))
        if self.trained():
            return 0, every
        return every - max(whole_ones(self.training / CHECKPOINTS), default=0), every

    def episodes_left(self) -> int:
        """Episodes that are not played yet, as far as one can tell."""
        every = sum((c.tasks or self.suite.tasks) * len(self.suite.where(c)) for c in self.suite.all_conditions())
        if (self.run / MANIFEST).is_file():
            every = load_manifest(self.run).planned or every
        return max(0, every - max(0, _episodes(self.run)))


class _Told:
    """Tells of a run's progress as of a training's."""

    def __init__(self, part: str, progress: Progress) -> None:
        self.part, self.progress = part, progress

    def show(self, progress: RunProgress) -> None:
        from crosswind.train.sft import Update

        self.progress(Update(f"playing {self.part}", progress.before + progress.done, progress.total))


def folder_of(out: Path, arm: str, seed: int) -> Path:
    return out / "arms" / arm / f"seed-{seed}"


def _free() -> None:
    """Give back what the last model took."""
    gc.collect()
    torch = importlib.import_module("torch")
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


# ---------------------------------------------------------------- what fits


class Pace:
    """How long things took here so far, from what finished arms tell."""

    def __init__(self, out: Path, part: Part) -> None:
        self.step: dict[tuple[object, bool, bool], float] = {}
        self.any_step = 0.0
        self.episode = 0.0
        for path in sorted(out.glob(f"arms/*/seed-*/{part}.json")):
            self.learn(read_done(path))

    def learn(self, done: Done) -> None:
        steps = int((done.train or {}).get("steps") or 0)
        if steps and (seconds := done.spent.get("train")):
            key = _sort(done.method, done.config)
            self.step[key] = max(self.step.get(key, 0.0), seconds / steps)
            self.any_step = max(self.any_step, self.step[key])
        if done.episodes and (seconds := done.spent.get(done.part)):
            seconds += done.spent.get("table", 0.0)
            self.episode = max(self.episode, seconds / done.episodes)

    def needs(self, job: Job, *, test: bool = True) -> float | None:
        """Seconds that an arm will take; None where nothing like it was ever measured."""
        steps, _ = job.steps_left()
        per_step = self.step.get(_sort(job.arm.method, job.arm.train)) if steps else 0.0
        if per_step is None and job.arm.method != "grpo":
            per_step = self.any_step or None
        if per_step is None or (test and not self.episode):
            return None
        return SLACK * (steps * per_step + (job.episodes_left() * self.episode if test else 0.0))


def _sort(method: object, options: dict[str, Any]) -> tuple[object, bool, bool]:
    return "sft" if method == "paft" else method, bool(options.get("full")), bool(options.get("adaptive"))


# ---------------------------------------------------------------- many arms


def run(
    study: Study,
    out: Path,
    *,
    arms: Sequence[str] = (),
    seeds: Sequence[int] | None = None,
    part: Part = "test",
    minutes: float | None = None,
    partial: bool = False,
    only_train: bool = False,
    slots: int | None = None,
    concurrency: int | None = None,
    commit: str | None = None,
    tell: Tell = lambda _: None,
    progress: Progress | None = None,
) -> Report:
    """Run arms of a study into a folder. One that breaks is told of and written down, and the others go on.

    With `minutes` nothing is begun that will not fit, unless `partial`: then the last one stops where time runs out.
    With `only_train` arms are trained and not tested, those too whose results are there without their adapters. An arm
    that is not named, but that a named one starts from, is trained and not tested.
    """
    clock, report = Clock(None if minutes is None else 60 * minutes), Report()
    jobs = [Job(study, arm, seed, out, part) for arm, seed in study.queue(arms, seeds)]
    for job in jobs:
        job.done()  # one that was finished under another definition is told of before anything is written
    try:
        out.mkdir(parents=True, exist_ok=True)
        replace_file(out / DEFINITION, study.model_dump_json(indent=1).encode() + b"\n")
    except OSError as error:
        raise CrosswindError(f"{out}: cannot be written ({error.strerror}); choose another --out") from None
    commit = commit_of() if commit is None else commit
    for job in jobs:
        with job.locked() as ours:
            if not ours:
                report.left[job.name] = "another process works at it"
                continue
            unasked = bool(arms) and job.arm.name not in arms
            trained = job.trained()
            # One whose results are there, but not its adapter, is not made again unasked: it might come out another.
            if trained if only_train else job.done() and not (unasked and trained):
                report.before.append(job.name)
                continue
            needs = Pace(out, part).needs(job, test=not (only_train or unasked))
            least = UNKNOWN if needs is None else needs
            if clock.left < (min(least, UNKNOWN) if partial else least):
                report.left[job.name] = f"{max(0, clock.left):.0f} s are left, and it takes about {least:.0f}"
                continue
            first = f"{job.arm.start}/seed-{job.seed}"
            if first in report.failed:
                report.left[job.name] = f"{first}, which it starts from, failed"
                continue
            if job.waits(begun=first not in report.left):
                report.left[job.name] = f"{first}, which it starts from, is not trained yet"
                continue
            tell(f"{job.name}: {'about ' + format(needs, '.0f') + ' s' if needs is not None else 'begins'}")
            try:
                if only_train or unasked:
                    job.learn(clock, slots=slots, progress=progress)  # of one that is trained, it looks at the recipe
                    (report.before if trained else report.finished).append(job.name)
                    continue
                done = job.go(clock, slots=slots, concurrency=concurrency, commit=commit, progress=progress)
            except OutOfTime as over:
                report.stopped = f"{over}; the same command goes on from there"
                report.left[job.name] = str(over)
                break
            except Exception as error:
                told = str(error) if isinstance(error, CrosswindError) else f"{type(error).__name__}: {error}"
                report.failed[job.name] = told
                replace_file(job.folder / FAILED, traceback.format_exc().encode())
                tell(f"{job.name}: failed: {told}")
                _free()
                continue
            report.finished.append(job.name)
            tell(f"{job.name}: {done.passed} of {done.scored} episodes passed; seconds: {done.spent}")
    for job in jobs:
        if job.name not in (*report.finished, *report.before, *report.failed):
            report.left.setdefault(job.name, "the budget was used up before")
    return report


def commit_of() -> str:
    """The commit of the repository that this package lies in; empty where there is none."""
    try:
        asked = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=12", "HEAD"]
        found = subprocess.run(asked, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return found.stdout.strip() if found.returncode == 0 else ""


@lru_cache(maxsize=1)
def code() -> str:
    """A digest of the package's own files: it tells whether two results were made by the same code."""
    root, out = Path(__file__).parent.parent, hashlib.sha256()
    for path in sorted(
        p for p in root.rglob("*") if p.suffix in (".py", ".yaml", ".json") and "adapters" not in p.parts
    ):
        out.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return out.hexdigest()[:16]


# ---------------------------------------------------------------- carried elsewhere


def bundle(
    out: Path,
    into: Path,
    *,
    adapters: Sequence[str] = (),
    runs: Sequence[str] = (),
    trainings: Sequence[str] = (),
) -> list[Path]:
    """Results as few files: tables and figures of all arms, and of those named the adapter (in half precision), the run
    with its trajectories (compressed), or the training with its last checkpoint. Names are ARM or ARM/SEED."""
    _made(into, "--into")
    made = [into / "results.tar"]
    small = ("*.json", "*.jsonl.xz", f"train/{RUN}", f"train/{METRICS}", f"train/{ROUNDS}", FAILED)
    with tarfile.open(made[0], "w") as tar:
        for path in (out / LOG, out / DEFINITION, *(p for s in small for p in sorted(out.glob(f"arms/*/seed-*/{s}")))):
            # A training that is not finished cannot go on without its checkpoint, and would be in the way of another.
            if path.is_file() and (path.name not in (RUN, ROUNDS) or any(path.parent.glob(f"*/{ABOUT}"))):
                tar.add(path, path.relative_to(out))
    for name in adapters:
        for folder in _named(out, name, "train/adapter"):
            made.append(into / f"adapter-{folder.parent.parent.parent.name}-{folder.parent.parent.name[5:]}.tar")
            with tempfile.TemporaryDirectory() as scratch, tarfile.open(made[-1], "w") as tar:
                tar.add(folder.parent / "train.json", (folder.parent / "train.json").relative_to(out))
                tar.add(halved(folder, Path(scratch) / "adapter"), folder.relative_to(out))
    for name in runs:
        for folder in _named(out, name, "test"):
            if not all((folder / part).is_file() for part in (MANIFEST, EPISODES)):
                continue  # it has only just begun
            made.append(into / f"run-{folder.parent.parent.name}-{folder.parent.name[5:]}.tar")
            with tempfile.TemporaryDirectory() as scratch, tarfile.open(made[-1], "w") as tar:
                packed = outcomes.pack(folder, Path(scratch) / "packed")
                tar.add(packed, f"{folder.relative_to(out)}.packed")
    for name in trainings:
        for folder in _named(out, name, "train"):
            made.append(into / f"training-{folder.parent.parent.name}-{folder.parent.name[5:]}.tar")
            with tarfile.open(made[-1], "w") as tar:
                for path in _last_of(folder):
                    tar.add(path, path.relative_to(out))
    return made


def _last_of(training: Path) -> Iterator[Path]:
    """The files of a training, but for checkpoints before the last whole one."""
    whole = whole_ones(training / CHECKPOINTS)
    last = whole[max(whole)] if whole else None
    for path in sorted(training.rglob("*")):
        inside = path.relative_to(training).parts
        if path.is_file() and path.name != LOCK and (inside[0] != CHECKPOINTS or last in path.parents):
            yield path


def _named(out: Path, name: str, inside: str) -> list[Path]:
    arm, _, seed = name.partition("/")
    found = sorted(out.glob(f"arms/{arm}/seed-{seed or '*'}/{inside}"))
    if not found:
        raise CrosswindError(f"{out} has nothing at arms/{arm}/seed-{seed or '*'}/{inside}")
    return found


def halved(folder: Path, into: Path) -> Path:
    """A copy of an adapter with its weights in half precision."""
    from safetensors.torch import load_file, save_file

    into.mkdir(parents=True)
    for path in folder.iterdir():
        if path.name != WEIGHTS and path.is_file():
            (into / path.name).write_bytes(path.read_bytes())
    weights = {name: value.half() for name, value in load_file(folder / WEIGHTS).items()}
    save_file(weights, into / WEIGHTS, metadata={"format": "pt"})
    return into


def unbundle(files: Sequence[Path], out: Path) -> None:
    """Put bundles back into the folder of a study; lines of logs are joined, each once.

    A run that lies there and has at least as many episodes as the packed one is left as it is.
    """
    _made(out, "--out")
    runs: set[Path] = set()
    try:
        for file in files:
            _unpacked(file, out, runs)
        for packed in sorted(runs):
            with tempfile.TemporaryDirectory(dir=packed.parent) as scratch:
                fresh, there = outcomes.unpack(packed, Path(scratch) / "run"), packed.with_suffix("")
                if _episodes(fresh) > _episodes(there):
                    there.mkdir(exist_ok=True)
                    for path in fresh.iterdir():
                        os.replace(path, there / path.name)
    finally:
        for packed in runs:
            shutil.rmtree(packed, ignore_errors=True)


def _unpacked(file: Path, out: Path, runs: set[Path]) -> None:
    """Put one bundle back; folders of packed runs are added to `runs`."""
    try:
        with tarfile.open(file) as tar:
            for member in tar:  # the filters of `extractall` are missing in early releases of Python 3.11
                target, held = out / member.name, tar.extractfile(member) if member.isreg() else None
                if member.isdir():
                    continue
                if held is None or "\0" in member.name or not target.resolve().is_relative_to(out.resolve()):
                    raise CrosswindError(f"{file}: holds {member.name!r}, which `crosswind study pack` never makes")
                if target == out / LOG:
                    _join_logs(target, held.read())
                    continue
                if target.name == METRICS and _lines_of(target) > held.read().count(b"\n"):
                    continue  # the training went on here
                held.seek(0)
                target.parent.mkdir(parents=True, exist_ok=True)
                if target.parent.suffix == ".packed":
                    runs.add(target.parent)
                target.write_bytes(held.read())
                if target.name in ("dev.json", "test.json"):  # finished since; what is still broken comes after it
                    (target.parent / FAILED).unlink(missing_ok=True)
    except tarfile.TarError:
        raise CrosswindError(f"{file}: is no file that `crosswind study pack` made, or it is damaged") from None
    except OSError as error:
        raise CrosswindError(f"{file}: cannot be unpacked ({error.strerror or error})") from None


def _join_logs(log: Path, more: bytes) -> None:
    """Add the lines that a log does not have yet; none of its own is ever lost."""
    lines = [*(log.read_bytes().splitlines() if log.is_file() else ()), *more.splitlines()]
    if lines:
        replace_file(log, b"".join(line + b"\n" for line in dict.fromkeys(lines)))


def _episodes(run: Path) -> int:
    return _lines_of(run / EPISODES)


def _lines_of(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.is_file() else -1


def _made(folder: Path, option: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CrosswindError(f"{folder}: cannot be made ({error.strerror}); choose another {option}") from None


def collect(out: Path, into: Path) -> int:
    """Copy what a report needs, and nothing else, to where it is kept; how many results there are comes back."""
    count = 0
    _made(into, "--into")
    for path in sorted(out.glob("arms/*/seed-*/*.json")):
        if path.stem not in ("dev", "test"):
            continue
        table = path.with_name(f"{path.stem}.jsonl.xz")
        if not table.is_file():
            raise BadFile(f"{table}: is missing; take {path} away, and run the arm again: it goes on from its episodes")
        target = into / path.parent.relative_to(out)
        target.mkdir(parents=True, exist_ok=True)
        for one in (table, path):
            replace_file(target / one.name, one.read_bytes())
        rewards = path.parent / REWARDS
        if read_done(path).method == "grpo" and rewards.is_file():
            (target / REWARDS).parent.mkdir(exist_ok=True)
            replace_file(target / REWARDS, rewards.read_bytes())
        count += 1
    if (out / LOG).is_file():
        _join_logs(into / LOG, (out / LOG).read_bytes())
    return count
