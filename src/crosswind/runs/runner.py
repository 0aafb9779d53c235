"""A run: the episodes of a suite, played by one agent, several at a time, each on the disk as soon as it is over.

Three kinds of failure are never mixed. What the agent does wrong is data. What a provider or a machine does wrong is
tried again, then stored as an error and left out of every score. What is wrong with crosswind or with an agent's own
code raises `Crash` and stops the run. Whatever stops it, finished episodes are safe and the next run goes on from them;
a run is finished only when every episode of its plan is on record.
"""

from __future__ import annotations

import asyncio
import platform
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from crosswind.base.errors import CannotPerturb, CrosswindError, InfrastructureError
from crosswind.base.version import __version__
from crosswind.core import skin
from crosswind.core.certify import Certificate
from crosswind.core.domain import JUDGE, Domain
from crosswind.core.draw import Drawn, draw
from crosswind.core.oracle import Walk
from crosswind.core.perturbation import load_layers
from crosswind.core.registry import domains
from crosswind.core.types import TIERS, Agent, Message, Task, Tools
from crosswind.episodes.play import clip, judge, play
from crosswind.episodes.record import Record, Usage, base_task, certificate, key_of, recorded, trajectory_of
from crosswind.episodes.suite import CLEAN, STACKS, Condition, Deal, Episode, Suite, Want, under
from crosswind.runs.store import Manifest, Store, iter_records, load_manifest, now

if TYPE_CHECKING:
    from crosswind.models.base import AgentSource

PAUSES = (1.0, 5.0)  # seconds before an episode that ended as an error is played again; so many times more
IN_A_ROW = 20  # episodes that end as errors one after the other: the provider is down, and the run stops
RECENT = 128  # tasks that are kept with their clean walks
BEHIND = 64  # lines that may be written and not yet on the disk


class Crash(Exception):
    """Something is wrong with crosswind or with an agent's code, not with what the agent does."""

    def __init__(self, key: str, error: BaseException, *, by_agent: bool) -> None:
        super().__init__(f"{key}: {type(error).__name__}: {error}")
        self.key, self.error, self.by_agent = key, error, by_agent


# ---------------------------------------------------------------- what is to be played


@dataclass(frozen=True, slots=True)
class Job:
    """One episode to be played."""

    episode: Episode
    trial: int
    key: str


class _Tasks:
    """The tasks of a suite by domain and number, those of late kept, with the oracle's clean walk once it is known."""

    def __init__(self, deal: Deal) -> None:
        self.deal = deal
        self.recent: OrderedDict[tuple[str, int], tuple[Task, list[Walk]]] = OrderedDict()

    def nth(self, name: str, n: int) -> tuple[Task, list[Walk]]:
        """The task of a number in the deck of a domain."""
        found = self.recent.pop((name, n), None) or (self.deal.tables[name].deck.task(n), [])
        self.recent[name, n] = found
        if len(self.recent) > RECENT:
            self.recent.popitem(last=False)
        return found


class Plan:
    """The episodes of a suite, those of `suite.episodes` in their order, drawn when they are called for.

    However far a run comes, what was played is a fair part of the whole (`suite.Deal`), and the clean episode of a task
    comes before its shifted ones. Nothing is held but the tasks of late.
    """

    def __init__(
        self, suite: Suite, seed: int, *, trials: int = 1, limit: int | None = None, finished: Container[str] = ()
    ) -> None:
        self.suite, self.seed, self.trials, self.limit, self.finished = suite, seed, trials, limit, finished
        self.planned = 0  # so far, finished ones included
        self.whole = False  # all were drawn
        self.refused: list[str] = []  # draws for which no fair stack was found, and why
        self._deal = Deal(suite, seed)
        self._tasks = _Tasks(self._deal)

    @property
    def total(self) -> int:
        """How many episodes there are; an estimate until all were drawn."""
        if self.whole:
            return self.planned
        more = sum(want.wanted - want.got for want in self._deal.wants) * self.trials
        return self.planned + more if self.limit is None else min(self.limit, self.planned + more)

    @property
    def _full(self) -> bool:
        return self.limit is not None and self.planned >= self.limit

    def __iter__(self) -> Iterator[Job | None]:
        """Jobs that are not finished. None is a moment to let others work: something was drawn for nothing."""
        for want in self._deal:
            if self._full:
                break
            yield from self._next(want)
        self.whole = True

    def _next(self, want: Want) -> Iterator[Job | None]:
        """The next task to which a condition applies, under it; before it the clean episode, if that is missing."""
        domain, condition = domains[want.domain], want.condition
        for number in self._deal.offers(want):
            task, walk = self._tasks.nth(want.domain, number)
            keys = [key_of(task.id, condition.name, trial) for trial in range(self.trials)]
            drawn: Drawn | None = None
            if condition.stack and not all(key in self.finished for key in keys):
                drawn = self._drawn(domain, condition, task, walk)
                if drawn is None:
                    yield None
                    continue
            if self._deal.take(want, number):
                yield from self._clean(domain, task, walk)
            for trial, key in enumerate(keys if condition.stack else ()):
                if self._count(key) and drawn:
                    yield Job(Episode(condition.name, task.id, drawn, condition.severity), trial, key)

    def _clean(self, domain: Domain, task: Task, walk: list[Walk]) -> Iterator[Job]:
        drawn: Drawn | None = None
        for trial in range(self.trials):
            if self._count(key := key_of(task.id, CLEAN, trial)):
                drawn = drawn or draw(domain, task, (), self.seed, clean=walk[0] if walk else None)
                walk[:] = [drawn.certificate.clean]
                yield Job(Episode(CLEAN, task.id, drawn), trial, key)

    def _count(self, key: str) -> bool:
        """Count an episode; is it still to be played?"""
        if self._full:
            return False
        self.planned += 1
        return key not in self.finished

    def _drawn(self, domain: Domain, condition: Condition, task: Task, walk: list[Walk]) -> Drawn | None:
        try:
            drawn = under(domain, condition, task, self.seed, walk[0] if walk else None)
        except CannotPerturb as cannot:
            self.refused.append(str(cannot))
            return None
        if drawn:
            walk[:] = [drawn.certificate.clean]
        return drawn


# ---------------------------------------------------------------- how it goes


@dataclass(slots=True)
class Count:
    """Episodes of a sort that were scored, and how many of them succeeded."""

    n: int = 0
    passed: int = 0


@dataclass(slots=True)
class Progress:
    """How far a run is."""

    total: int = 0  # an estimate until all were drawn
    before: int = 0  # episodes that an earlier run finished
    done: int = 0  # episodes that this one finished
    errors: int = 0
    trouble: str = ""  # why the last of them is one
    spent: Usage = field(default_factory=Usage)  # of all episodes of the folder
    scores: dict[str, Count] = field(default_factory=dict)  # clean, the tiers, stacks

    def add(self, record: Record) -> None:
        self.spent = self.spent.plus(record.usage)
        if record.outcome == "error":
            self.errors, self.trouble = self.errors + 1, record.why
            return
        count = self.scores.setdefault(sort_of(record), Count())
        count.n += 1
        count.passed += record.passed


SORTS = (CLEAN, *TIERS, STACKS)


def sort_of(record: Record) -> str:
    """Where an episode is counted: with the clean ones, with a tier, or with the stacks."""
    return CLEAN if record.clean else record.tier or STACKS


class Watch(Protocol):
    """Somebody who looks on; told of each episode and about once a second."""

    def show(self, progress: Progress) -> None: ...


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop. None: never."""

    episode: float | None = None  # seconds for one episode; the agent is too slow, which is a failure
    deadline: float | None = None  # seconds for this run; episodes under way are dropped, and played when it goes on
    tokens: int | None = None  # of the whole folder, earlier runs included; episodes under way end
    cost: float | None = None  # the same

    def reached(self, spent: Usage) -> str:
        """Words for the budget that is used up."""
        tokens = spent.input_tokens + spent.output_tokens
        if self.tokens is not None and tokens >= self.tokens:
            return f"the budget of {self.tokens:,} tokens is used up ({tokens:,} were used)"
        if self.cost is not None and (spent.cost or 0) >= self.cost:
            return f"the budget of {self.cost:g} is used up ({spent.cost:.4g} was spent)"
        return ""


@dataclass(slots=True)
class Ran:
    """What became of a run."""

    manifest: Manifest
    progress: Progress
    stopped: str = ""  # why it stopped before its end, in words
    broken: bool = False  # the infrastructure stopped it, or every episode ended as an error
    cut: int = 0  # bytes of a torn line that were cut off
    refused: tuple[str, ...] = ()  # draws for which no fair stack was found
    budget: bool = False  # tokens or cost stopped it

    @property
    def left(self) -> int:
        return max(0, self.progress.total - self.progress.before - self.progress.done)


# ---------------------------------------------------------------- one episode


class _Timed:
    """An agent with a deadline; remembers what came out of it."""

    def __init__(self, agent: Agent, seconds: float | None) -> None:
        self.agent, self.seconds = agent, seconds
        self.until = None if seconds is None else asyncio.get_running_loop().time() + seconds
        self.late = False
        self.error: BaseException | None = None

    async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
        try:
            async with asyncio.timeout_at(self.until) as clock:
                message = await self.agent.reply(chat, tools)
        except asyncio.CancelledError:
            worker = asyncio.current_task()
            if worker is None or worker.cancelling():
                raise  # the run is being stopped
            warnings.warn("an agent awaited what was cancelled, and said nothing; that is its failure", stacklevel=1)
            return Message(role="assistant")
        except (Exception, SystemExit) as error:
            self.error = error
            if not clock.expired():
                raise
        else:
            if self.until is None or asyncio.get_running_loop().time() < self.until:
                return message
        self.late = True
        raise InfrastructureError(f"the episode took more than its {self.seconds:g} seconds")

    @property
    def usage(self) -> Usage:
        found = getattr(self.agent, "usage", None)
        return found if isinstance(found, Usage) else Usage()

    @property
    def worth_retrying(self) -> bool:
        return not self.late and getattr(self.error, "retryable", True) is not False


async def play_job(
    job: Job, source: AgentSource, *, seed: int, seconds: float | None, pauses: Sequence[float]
) -> Record:
    """Play an episode to its end and judge it; what the infrastructure breaks is played again after each pause.

    An episode that takes too long ends as one that is out of budget: the agent's failure, on record as far as it came.
    """
    drawn, usage = job.episode.drawn, Usage()
    began = time.perf_counter()
    for pause in (*pauses, None):
        agent: _Timed | None = None
        try:
            agent = _Timed(made := source.make(drawn), seconds)
            if hasattr(made, "trial"):
                made.trial = job.trial
            trajectory = await play(drawn, agent, source.name)
        except CrosswindError:
            raise
        except (Exception, SystemExit) as error:
            raise Crash(job.key, error, by_agent=agent is None or agent.error is error) from error
        usage = usage.plus(agent.usage)
        if agent.late:
            trajectory = trajectory.model_copy(update={"ended": "budget"})
        if trajectory.ended != "error" or pause is None or not agent.worth_retrying:
            break
        await asyncio.sleep(pause)
    cost = usage.cost
    if cost is None and source.price is not None:
        cost = source.price.of(usage.input_tokens, usage.output_tokens)
    usage = usage.model_copy(update={"cost": cost, "seconds": round(time.perf_counter() - began, 6)})
    if trajectory.why:
        trajectory = trajectory.model_copy(update={"why": clip(trajectory.why)})
    query = skin.shown(trajectory.task, trajectory.task.brief.query)
    try:
        record = recorded(job.episode, trajectory, seed=seed, trial=job.trial, usage=usage, query=query)
        return diagnosed(record, drawn.certificate)
    except Exception as error:
        raise Crash(job.key, error, by_agent=False) from error


def diagnosed(record: Record, gold: Certificate) -> Record:
    """A failed episode with the stage and the cause of its failure."""
    if record.outcome != "fail":
        return record
    from crosswind.metrics.diagnosis import diagnose

    found = diagnose(record, gold)
    return record.model_copy(update={"stage": found.stage, "cause": found.cause})


# ---------------------------------------------------------------- many


def manifest_of(
    suite: Suite, source: AgentSource, *, seed: int, trials: int, limit: int | None, limits: Limits
) -> Manifest:
    """What is about to be run."""
    return Manifest(
        created=now(),
        updated=now(),
        crosswind=__version__,
        judge=JUDGE,
        python=platform.python_version(),
        suite=suite.model_dump(mode="json"),
        conditions=tuple(c.name for c in suite.all_conditions()),
        seed=seed,
        trials=trials,
        limit=limit,
        agent=source.name,
        settings=source.settings,
        episode_timeout=limits.episode,
    )


class _Runner:
    """The workers of one run and what they share."""

    def __init__(self, store: Store, source: AgentSource, plan: Plan, limits: Limits, progress: Progress) -> None:
        self.store, self.source, self.plan, self.limits, self.progress = store, source, plan, limits, progress
        self.jobs = iter(plan)
        self.pauses: Sequence[float] = PAUSES
        self.watch: Watch | None = None
        self.stopped = limits.reached(progress.spent)
        self.broken = False
        self.in_a_row = 0
        self.under_way: dict[str, None] = {}  # episodes that were begun and have no line yet
        self.written, self.synced = asyncio.Event(), asyncio.Event()

    async def work(self) -> None:
        """Take one job after the other until there is none, or a reason to stop."""
        while not self.stopped:
            await asyncio.sleep(0)  # scripted agents never wait: let the others and the clock have their turn
            try:
                job = next(self.jobs)
            except StopIteration:
                return
            except CrosswindError:
                raise
            except Exception as error:
                raise Crash("the next one, while it was drawn", error, by_agent=False) from error
            if job is not None:
                self.under_way[job.key] = None
                record = await play_job(
                    job, self.source, seed=self.plan.seed, seconds=self.limits.episode, pauses=self.pauses
                )
                self.store.append(record)
                del self.under_way[job.key]
                self.finished(record)
                self.written.set()
                if self.store.behind >= BEHIND:
                    await self.synced.wait()

    async def keep_synced(self) -> None:
        """Put on the disk what was written, in a thread, and again; slow disks then take several lines at a time."""
        while True:
            await self.written.wait()
            self.written.clear()
            self.synced.clear()
            await asyncio.to_thread(self.store.sync)
            self.synced.set()

    def finished(self, record: Record) -> None:
        self.progress.add(record)
        self.progress.done += 1
        self.progress.total = self.plan.total
        self.in_a_row = self.in_a_row + 1 if record.outcome == "error" else 0
        if self.in_a_row >= IN_A_ROW:
            self.stopped = (
                f"{self.in_a_row} episodes in a row ended as errors of the infrastructure (last: {record.why})"
            )
            self.broken = True
        self.stopped = self.stopped or self.limits.reached(self.progress.spent)
        if self.watch:
            self.watch.show(self.progress)

    async def tick(self) -> None:
        """Show how it goes even while no episode ends."""
        while True:
            await asyncio.sleep(1)
            if self.watch:
                self.watch.show(self.progress)

    async def work_together(self, concurrency: int) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(self.work())

    async def run(self, concurrency: int) -> None:
        """Work until all is done, the deadline has passed or something breaks; what was written is on the disk then."""
        try:
            async with asyncio.timeout(self.limits.deadline) as clock, asyncio.TaskGroup() as group:
                others = [group.create_task(other) for other in (self.tick(), self.keep_synced())]
                await self.work_together(concurrency)
                for other in others:
                    other.cancel()
            if self.under_way or not (self.plan.whole or self.stopped):  # a worker is gone, and nobody sent it away
                lost = next(iter(self.under_way), "one that was never begun")
                raise Crash(lost, asyncio.CancelledError("the task that played it was cancelled"), by_agent=True)
        except TimeoutError:
            if not clock.expired():
                raise
            self.stopped = f"the deadline of {self.limits.deadline:g} seconds has passed"
        except BaseExceptionGroup as many:
            error: BaseException = many
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            raise error from error.__cause__
        finally:
            await asyncio.to_thread(self.store.sync)


async def run(
    suite: Suite,
    source: AgentSource,
    folder: Path | str,
    *,
    seed: int = 0,
    trials: int = 1,
    limit: int | None = None,
    concurrency: int | None = None,
    limits: Limits | None = None,
    keep_errors: bool = False,
    pauses: Sequence[float] | None = None,
    watch: Watch | None = None,
) -> Ran:
    """Play a suite into a folder, or go on where an earlier run of the same configuration stopped."""
    limits = limits or Limits()
    with Store(folder) as store:
        wanted = manifest_of(suite, source, seed=seed, trials=trials, limit=limit, limits=limits)
        manifest = store.begin(wanted)
        progress = Progress()
        finished = store.resume(progress.add, keep_errors=keep_errors)
        for record in store.retried():
            progress.spent = progress.spent.plus(record.usage)
        plan = Plan(suite, seed, trials=trials, limit=limit, finished=finished)
        progress.before, progress.total = len(finished), plan.total
        runner = _Runner(store, source, plan, limits, progress)
        runner.pauses, runner.watch = PAUSES if pauses is None else pauses, watch
        why = "it was interrupted"
        try:
            await runner.run(concurrency or source.concurrency)
            why = runner.stopped
        except Exception as error:
            why = f"{type(error).__name__}"
            raise
        finally:
            progress.total = plan.total
            planned = plan.planned if plan.whole else None
            with suppress(CrosswindError):
                manifest = store.write(manifest, state="stopped" if why else "finished", why=why, planned=planned)
        nothing = progress.errors > 0 and not progress.scores
        spent = bool(limits.reached(progress.spent))
        return Ran(manifest, progress, runner.stopped, runner.broken or nothing, store.cut, tuple(plan.refused), spent)


# ---------------------------------------------------------------- judging anew


@dataclass(slots=True)
class Rescored:
    """What came of judging a run anew."""

    judge: str  # version of the verifier now
    episodes: int = 0
    judges: dict[str, int] = field(default_factory=dict)  # version -> episodes that it had judged
    changed: list[tuple[str, str, str]] = field(default_factory=list)  # key, outcome before, outcome now
    backup: str = ""  # where the file went, if another took its place


def rescored(folder: Path | str, *, write: bool = False, tell: Callable[[str], None] | None = None) -> Rescored:
    """Judge the stored trajectories of a run with the present verifier; with `write`, put the verdicts in place."""
    manifest, out = load_manifest(folder), Rescored(JUDGE)
    for record in iter_records(folder):
        _judged_anew(record, out)
        if tell:
            tell(f"{out.episodes} episodes")
    if write and (out.changed or set(out.judges) - {JUDGE}):
        with Store(folder) as store, store.rewriting() as put:
            again = Rescored(JUDGE)
            for record in iter_records(folder):
                put(_judged_anew(record, again))
            out = again
            out.backup = str(store.backup)
            store.write(manifest, judge=JUDGE)
    return out


def _judged_anew(record: Record, out: Rescored) -> Record:
    out.episodes += 1
    if record.outcome == "error":
        return record
    out.judges[record.judge] = out.judges.get(record.judge, 0) + 1
    domain = domains[record.domain]
    task = base_task(record, domain)
    for layer in load_layers(list(record.layers), record.key):
        task = layer.on_task(task)
    verdict = judge(trajectory_of(record, task), domain)
    fresh = {"outcome": verdict.outcome, "checks": verdict.checks, "judge": verdict.judge}
    if verdict.outcome == record.outcome:
        return record.model_copy(update=fresh)
    out.changed.append((record.key, record.outcome, verdict.outcome))
    return diagnosed(record.model_copy(update={**fresh, "stage": None, "cause": None}), certificate(record))
