"""Run a study: train and test its arms one after the other. Each arm is stored as it ends, and finished ones are kept.

    DIR/study.yaml.json                  the definition that was run
    DIR/test_log.jsonl                   every evaluation on the test split, when it began and when it ended
    DIR/arms/ARM/seed-N/train/           the folder of the training, with the adapter
    DIR/arms/ARM/seed-N/test/            the run: every episode with its trajectory
    DIR/arms/ARM/seed-N/test.jsonl.xz    the same as a table; all that a report needs
    DIR/arms/ARM/seed-N/test.json        what was done; written when the arm is finished
    DIR/arms/ARM/seed-N/spent.json       seconds, to estimate what fits into a budget

Finished arms are skipped; a training resumes from its last checkpoint and a test from its last episode. Several
processes can share a folder: each skips the arms that another one works on.
"""

from __future__ import annotations

import subprocess
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crosswind.base.errors import CrosswindError
from crosswind.base.files import replace_file
from crosswind.study.definition import Part, Study
from crosswind.study.job import ArmJob, Budget, Means, OutOfTime, free_memory
from crosswind.study.results import FAILED, Done, read_done
from crosswind.train.progress import Progress

COPY = "study.yaml.json"
SLACK = 1.15  # how much slower an arm may be than those before it
UNKNOWN = 60.0  # seconds that must be left to begin what was never measured, or what may end in part
Tell = Callable[[str], None]


@dataclass
class StudyRun:
    """How a call ended: arms by what became of them."""

    finished: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)  # finished by an earlier call
    left: dict[str, str] = field(default_factory=dict)  # not begun or not finished, and why
    failed: dict[str, str] = field(default_factory=dict)
    stopped: str = ""


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
) -> StudyRun:
    """Run arms of a study into a folder. An arm that fails is reported and noted, and the others go on.

    With `minutes`, nothing begins that will not fit, unless `partial`: then the last arm stops when time is up. With
    `only_train`, arms are trained and not tested, even those that have results but no adapter. An arm that is not
    named is trained and not tested if a named one starts from it.
    """
    means = Means(
        Budget(None if minutes is None else 60 * minutes),
        slots,
        concurrency,
        commit_of() if commit is None else commit,
        progress,
    )
    report = StudyRun()
    jobs = [ArmJob(study, arm, seed, out, part) for arm, seed in study.queue(arms, seeds)]
    for job in jobs:
        job.done()  # a result of another definition is an error before anything is written
    try:
        out.mkdir(parents=True, exist_ok=True)
        replace_file(out / COPY, study.model_dump_json(indent=1).encode() + b"\n")
    except OSError as error:
        raise CrosswindError(f"{out}: cannot be written ({error.strerror}); choose another --out") from None
    for job in jobs:
        with job.locked() as ours:
            if not ours:
                report.left[job.name] = "another process works on it"
            elif _one(job, report, means, partial, only_train, bool(arms) and job.arm.name not in arms, tell):
                break
    for job in jobs:
        if job.name not in (*report.finished, *report.before, *report.failed):
            report.left.setdefault(job.name, "the budget was used up before")
    return report


def _one(
    job: ArmJob, report: StudyRun, means: Means, partial: bool, only_train: bool, unasked: bool, tell: Tell
) -> bool:
    """Run one job and note how it ended; True if time is up."""
    trained = job.trained()
    # One whose results are there, but not its adapter, is not trained again unasked: the weights could differ.
    if trained if only_train else job.done() and not (unasked and trained):
        report.before.append(job.name)
        return False
    needs = Pace(job.out, job.part).needs(job, test=not (only_train or unasked))
    if why := _not_now(job, report, means, UNKNOWN if needs is None else needs, partial):
        report.left[job.name] = why
        return False
    tell(f"{job.name}: {'about ' + format(needs, '.0f') + ' s' if needs is not None else 'begins'}")
    try:
        if only_train or unasked:
            job.learn(means)  # also of one that is trained: its recipe is checked
            (report.before if trained else report.finished).append(job.name)
            return False
        done = job.go(means)
    except OutOfTime as over:
        report.stopped = f"{over}; run the same command to resume"
        report.left[job.name] = str(over)
        return True
    except Exception as error:
        told = str(error) if isinstance(error, CrosswindError) else f"{type(error).__name__}: {error}"
        report.failed[job.name] = told
        replace_file(job.folder / FAILED, traceback.format_exc().encode())
        tell(f"{job.name}: failed: {told}")
        free_memory()
        return False
    report.finished.append(job.name)
    tell(f"{job.name}: {done.passed} of {done.scored} episodes passed; seconds: {done.spent}")
    return False


def _not_now(job: ArmJob, report: StudyRun, means: Means, least: float, partial: bool) -> str:
    """Why a job is left for later; empty if it is not."""
    left, first = means.budget.left, f"{job.arm.start}/seed-{job.seed}"
    if left < (min(least, UNKNOWN) if partial else least):
        return f"{max(0, left):.0f} s are left, and it takes about {least:.0f}"
    if first in report.failed:
        return f"{first}, which it starts from, failed"
    if job.waits(begun=first not in report.left):
        return f"{first}, which it starts from, is not trained yet"
    return ""


class Pace:
    """How long a step and an episode took so far, from the results of finished arms."""

    def __init__(self, out: Path, part: Part) -> None:
        self.step: dict[tuple[object, bool, bool], float] = {}
        self.episode = 0.0
        for path in sorted(out.glob(f"arms/*/seed-*/{part}.json")):
            self._learn(read_done(path))

    def _learn(self, done: Done) -> None:
        steps = int((done.train or {}).get("steps") or 0)
        if steps and (seconds := done.spent.get("train")):
            key = _sort(done.method, done.config)
            self.step[key] = max(self.step.get(key, 0.0), seconds / steps)
        if done.episodes and (seconds := done.spent.get(done.part)):
            seconds += done.spent.get("table", 0.0)
            self.episode = max(self.episode, seconds / done.episodes)

    def needs(self, job: ArmJob, *, test: bool = True) -> float | None:
        """Seconds that an arm will take; None if nothing like it was measured yet."""
        steps = job.steps_left()
        per_step = self.step.get(_sort(job.arm.method, job.arm.train)) if steps else 0.0
        if per_step is None and job.arm.method != "grpo":
            per_step = max(self.step.values(), default=None)
        if per_step is None or (test and not self.episode):
            return None
        return SLACK * (steps * per_step + (job.episodes_left() * self.episode if test else 0.0))


def _sort(method: object, options: dict[str, Any]) -> tuple[object, bool, bool]:
    return "sft" if method == "paft" else method, bool(options.get("full")), bool(options.get("adaptive"))


def commit_of() -> str:
    """The commit of the repository that this package is in; empty without one."""
    try:
        asked = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=12", "HEAD"]
        found = subprocess.run(asked, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return found.stdout.strip() if found.returncode == 0 else ""
