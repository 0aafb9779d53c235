"""The closed loop: reproduce an alarm, make a candidate, test it again, gate it, promote it or not.

Every stage stores its result as one file when it is done, and what takes long resumes within a stage: runs by episode,
training by checkpoint. So a loop that is killed at any point goes on with the same command, and ends the same.

    plan.json                    the options
    notes.md, train/, runs/dev-* candidates
    candidate.json               the one to test
    measured-N/reproduce.json    what the shift costs the agent in use, at N tasks
    measured-N/retest.json, gate.json, done.json, runs/
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import Field, ValidationError

from crosswind.adapt.plan import AdaptPlan
from crosswind.adapt.registry import AgentRegistry, PassCount, Scores, Version
from crosswind.adapt.ways import Candidate, candidate
from crosswind.base.errors import BadFile, CrosswindError, InfrastructureError
from crosswind.base.files import LARGEST, exclusive_lock, read_whole, replace_file
from crosswind.core.types import Model
from crosswind.episodes.record import Record
from crosswind.episodes.suite import Suite
from crosswind.gate.gate import Outcome, examine
from crosswind.models.spec import open_agent
from crosswind.runs import runner
from crosswind.runs.baselines import trivial_of
from crosswind.runs.store import load_run

PLAN, DONE = "plan.json", "done.json"
GROWS = ("tasks",)  # what may be raised after an inconclusive gate
Word = Literal["promoted", "refused", "inconclusive", "harmless", "no candidate"]
EXITS: dict[Word, int] = {
    "promoted": 0,
    "harmless": 0,
    "refused": 1,
    "no candidate": 1,
    "inconclusive": 4,
}


class LoopStopped(Exception):
    """A run was stopped before its end; the same command goes on."""


class Reproduced(Model):
    """What the shift costs the agent in use."""

    lost: dict[str, float]  # new world -> success lost beside the clean one
    scores: Scores

    @property
    def most(self) -> float:
        return max(self.lost.values(), default=0.0)


class Retested(Model):
    """What the candidate makes of the same episodes."""

    scores: Scores


class AdaptDone(Model):
    """How an adaptation ended."""

    outcome: Word
    says: str
    version: int | None = None  # of the registry, if one was registered
    parent: int
    scores: Scores = Field(default_factory=dict)
    parent_scores: Scores = Field(default_factory=dict)


M = TypeVar("M", bound=Model)


@dataclass
class Loop:
    """One adaptation in its folder."""

    plan: AdaptPlan
    registry: AgentRegistry
    out: Path
    tell: Callable[[str], None] = print
    watch: runner.Watch | None = None
    limits: runner.Limits = field(default_factory=runner.Limits)

    @property
    def measured(self) -> Path:
        return self.out / f"measured-{self.plan.tasks}"

    def run(self) -> AdaptDone:
        """Go through the stages, from the first that is not done."""
        with self._claimed():
            current = self.registry.version(self.plan.parent)
            found = self._stage(self.measured / "reproduce.json", Reproduced, self._reproduce)
            if found.most < max(self.plan.min_gain, 1e-9):
                return self._end("harmless", _harmless(found, self.plan), found)
            made = self._stage(self.out / "candidate.json", Candidate, lambda: self._candidate(current))
            if not made.spec:
                return self._end("no candidate", f"No candidate: {made.why}.", found)
            tested = self._stage(self.measured / "retest.json", Retested, lambda: self._retest(made))
            outcome = self._stage(self.measured / "gate.json", Outcome, self._gate)
            return self._decide(made, found, tested, outcome)

    # -- stages

    def _reproduce(self) -> Reproduced:
        self.tell(f"reproducing {len(self.plan.new)} shifts with the agent in use (version {self.plan.parent})")
        records = self._play(self.plan.suite("test"), self.plan.agent, self.measured / "runs" / "current")
        return Reproduced(lost=self.plan.lost(records), scores=scores_of(records))

    def _candidate(self, current: Version) -> Candidate:
        self.tell(f"making a candidate: {self.plan.way}")

        def play(suite: Suite, spec: str, name: str) -> list[Record]:
            return self._play(suite, spec, self.out / "runs" / name)

        return candidate(self.plan, self.registry, current, self.out, play, self.tell)

    def _retest(self, made: Candidate) -> Retested:
        self.tell(f"testing the candidate: {made.why}")
        records = self._play(self.plan.suite("test"), made.resolved(), self.measured / "runs" / "candidate")
        return Retested(scores=scores_of(records))

    def _gate(self) -> Outcome:
        runs = [load_run(self.measured / "runs" / name) for name in ("candidate", "current")]
        rules, gains = self.plan.rules()
        outcome = examine(
            runs[0].records,
            rules,
            baseline=runs[1].records,
            min_clean=0.0,
            gains=gains,
            max_refusal_drop=self.plan.max_refusal_drop,
            unfinished=[f"{one.folder}: {one.lacks}" for one in runs if one.lacks],
            trivial=trivial_of(runs[0]),
        )
        if outcome.verdict == "infrastructure":
            raise LoopStopped(str(outcome))
        return outcome

    def _decide(self, made: Candidate, found: Reproduced, tested: Retested, outcome: Outcome) -> AdaptDone:
        if outcome.verdict == "inconclusive":
            more = f"Rerun with more than --tasks {self.plan.tasks}; what was trained or chosen is kept."
            return self._end("inconclusive", f"{outcome}\n{more}", found, tested)
        version = self.registry.add(
            made.spec,
            {name: Path(path) for name, path in made.files.items()},
            key=self._key(),
            parent=self.plan.parent,
            way=self.plan.way,
            recipes=self.plan.new,
            alarms=tuple(alarm.label for alarm in self.plan.alarms),
            scores=tested.scores,
            parent_scores=found.scores,
            verdict=outcome.verdict,
            reason=f"{made.why}. {outcome.says}",
        )
        if outcome.verdict == "fail":
            return self._end("refused", str(outcome), found, tested, version.number)
        self.registry.promote(version.number, expected=self.plan.parent)
        return self._end("promoted", outcome.says, found, tested, version.number)

    def _end(
        self, outcome: Word, says: str, found: Reproduced, tested: Retested | None = None, version: int | None = None
    ) -> AdaptDone:
        done = AdaptDone(
            outcome=outcome,
            says=says,
            version=version,
            parent=self.plan.parent,
            scores=tested.scores if tested else {},
            parent_scores=found.scores,
        )
        _write(self.measured / DONE, done)
        return done

    # -- what is kept

    def _stage(self, path: Path, model: type[M], make: Callable[[], M]) -> M:
        """The result of a stage: stored, or made and stored."""
        if path.exists():
            return _read(path, model)
        made = make()
        _write(path, made)
        return made

    def _play(self, suite: Suite, spec: str, folder: Path) -> list[Record]:
        """Play a suite, or the rest of it."""

        async def played() -> runner.Ran:
            source = open_agent(spec)
            try:
                return await runner.run(
                    suite, source, folder, seed=self.plan.seed, limits=self.limits, watch=self.watch
                )
            finally:
                await source.aclose()

        try:
            ran = asyncio.run(played())
        except InfrastructureError as error:
            raise LoopStopped(str(error)) from None
        except runner.Crash as crash:
            whose = "the agent's code" if crash.by_agent else "crosswind"
            raise LoopStopped(f"{whose} raised {type(crash.error).__name__} in the episode {crash.key!r}") from crash
        if ran.stopped or ran.broken:
            raise LoopStopped(ran.stopped or "every episode ended as an error of the infrastructure")
        return load_run(folder).records

    def _key(self) -> str:
        text = json.dumps([self.plan.model_dump(mode="json"), str(self.out.resolve())], sort_keys=True)
        return sha256(text.encode()).hexdigest()[:24]

    @contextmanager
    def _claimed(self) -> Iterator[None]:
        """Hold the folder, which belongs to one plan."""
        try:
            self.measured.mkdir(parents=True, exist_ok=True)
            with exclusive_lock(self.out / ".lock") as held:
                if not held:
                    raise CrosswindError(f"{self.out}: another process is adapting there; wait for it, or give --out")
                self._same_plan()
                yield
        except OSError as error:
            raise CrosswindError(f"{error.filename or self.out}: cannot be written ({error.strerror})") from None

    def _same_plan(self) -> None:
        path = self.out / PLAN
        if not path.exists():
            _write(path, self.plan)
            return
        was, now = (one.model_dump(mode="json") for one in (read_plan(self.out), self.plan))
        changed = [name for name in now if was[name] != now[name] and name not in GROWS]
        if changed:
            raise CrosswindError(
                f"{self.out}: holds an adaptation with another {', '.join(changed)}; give the same options to "
                "resume it, or another --out"
            )
        for done in sorted(self.out.glob(f"measured-*/{DONE}")):
            if done.parent != self.measured and (ended := _read(done, AdaptDone)).outcome != "inconclusive":
                raise CrosswindError(
                    f"{self.out}: ended already ({ended.outcome}) at {done.parent.name}; other --tasks are for "
                    "inconclusive ones. Give another --out"
                )


def read_plan(out: Path) -> AdaptPlan:
    """The plan of an adaptation that has begun."""
    return _read(out / PLAN, AdaptPlan)


def parent_of(out: Path, registry: AgentRegistry) -> Version:
    """The version that an adaptation starts from: the one in use, or, of one that has begun, the one it began with."""
    if (out / PLAN).exists():
        return registry.version(read_plan(out).parent)
    current = registry.current()
    if current is None:
        raise CrosswindError(f"{registry.folder}: no version in use; start with `crosswind adapt start SPEC`")
    return current


def scores_of(records: list[Record]) -> Scores:
    """Solvable tasks by condition, and all tasks to refuse together."""
    groups: dict[str, list[bool]] = {}
    for record in records:
        if record.judged:
            groups.setdefault("refusals" if record.refuse else record.condition, []).append(record.passed)
    return {name: PassCount(n=len(found), passed=sum(found)) for name, found in groups.items()}


def _harmless(found: Reproduced, plan: AdaptPlan) -> str:
    if not found.lost:
        return "Nothing to adapt to: no task of these domains meets the shift. Give other --domain or --new."
    told = ", ".join(f"{name.removeprefix('new/')} {100 * lost:.0f}" for name, lost in found.lost.items())
    return (
        f"Nothing to adapt to: reproduced, the shift costs the agent in use fewer than {100 * plan.min_gain:g} points "
        f"({told})."
    )


def _write(path: Path, value: Model) -> None:
    replace_file(path, (value.model_dump_json(indent=1) + "\n").encode())


def _read(path: Path, model: type[M]) -> M:
    try:
        return model.model_validate_json(read_whole(path, 4 * LARGEST, links=True))
    except (OSError, UnicodeDecodeError, ValidationError):
        raise BadFile(f"{path}: damaged; delete it, and the same command makes it again") from None
