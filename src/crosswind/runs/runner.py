"""A run: the episodes of a suite, played by one agent, several at a time, each on the disk as soon as it is over.

Three kinds of failure are never mixed. What the agent does wrong is data, exceptions of a `python:` or `cmd:` agent
included. What a provider or a machine does wrong is tried again, then stored as an error and left out of every score.
What is wrong with crosswind itself, or with a scripted agent, raises `Crash` and stops the run. Whatever stops it,
finished episodes are safe and the next run goes on from them; a run is finished only when every episode of its plan is
on record.
"""

from __future__ import annotations

import asyncio
import platform
import time
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from crosswind.base.errors import CrosswindError, InfrastructureError, words_of_any
from crosswind.base.version import __version__
from crosswind.core.certify import Certificate
from crosswind.core.domain import JUDGE
from crosswind.core.types import Agent, Message, Tools
from crosswind.episodes.brief import Told
from crosswind.episodes.play import judge, play
from crosswind.episodes.record import Record, Usage, recorded
from crosswind.episodes.schedule import Episode, Schedule
from crosswind.episodes.suite import Suite, band_of
from crosswind.metrics.diagnosis import diagnose
from crosswind.metrics.groups import REFUSALS, Count
from crosswind.models.source import AgentSource
from crosswind.runs.command import plugin_files
from crosswind.runs.store import Manifest, Store, now

PAUSES = (1.0, 5.0)  # seconds before an episode that ended as an error is played again, as often as there are numbers
EXCEPTIONS = 5  # episodes that end with the same exception one after the other: the agent is broken, and the run stops
IN_A_ROW = 20  # episodes that end as errors one after the other: the provider is down, and the run stops
BEHIND = 64  # lines that may be written and not yet on the disk


class Crash(Exception):
    """Something is wrong with crosswind or with an agent's code, not with what the agent does."""

    def __init__(self, key: str, error: BaseException, *, by_agent: bool) -> None:
        super().__init__(f"{key}: {type(error).__name__}: {words_of_any(error)}")
        self.key, self.error, self.by_agent = key, error, by_agent


# ---------------------------------------------------------------- how it goes


@dataclass(slots=True)
class Progress:
    """How far a run is."""

    total: int = 0
    estimated: bool = False  # until all were drawn, `total` is an estimate
    before: int = 0  # episodes that an earlier run finished
    done: int = 0  # episodes that this one finished
    errors: int = 0
    trouble: str = ""  # why the last of them is one
    exceptions: int = 0  # episodes that ended because the agent's code raised
    raised: str = ""  # the last of these exceptions, with its traceback
    spent: Usage = field(default_factory=Usage)  # of all episodes of the folder
    scores: dict[str, Count] = field(default_factory=dict)  # solvable episodes by band, and tasks to refuse
    kinds: set[str] = field(default_factory=set)  # that were played

    def add(self, record: Told) -> None:
        self.spent = self.spent.plus(record.usage)
        self.kinds.update(record.kinds)
        if record.outcome == "error":
            self.errors, self.trouble = self.errors + 1, record.why
            return
        if record.ended == "exception":
            self.exceptions, self.raised = self.exceptions + 1, record.why
        count = self.scores.setdefault(REFUSALS if record.refuse else band_of(record.kinds), Count())
        count.n += 1
        count.passed += record.passed


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
    repeats: int | None = None  # failures of the same call that end an episode
    exceptions: int | None = EXCEPTIONS  # episodes in a row that end with the same exception of the agent

    def reached(self, spent: Usage) -> str:
        """Words for the budget that is used up."""
        if self.tokens is not None and spent.tokens is not None and spent.tokens >= self.tokens:
            return f"the budget of {self.tokens:,} tokens is used up ({spent.tokens:,} were used)"
        if self.cost is not None and (spent.cost or 0) >= self.cost:
            return f"the budget of {self.cost:g} is used up ({spent.cost:.4g} was spent)"
        return ""

    def void(self, spent: Usage) -> str:
        """Words for budgets that stop nothing, because what they limit is unknown."""
        given = [name for name, most in (("--max-tokens", self.tokens), ("--max-cost", self.cost)) if most is not None]
        if given and spent.tokens is None and spent.cost is None:
            return f"{' and '.join(given)} cannot stop this run: the agent does not report its tokens (docs/agents.md)"
        if self.cost is not None and spent.cost is None:
            return "--max-cost cannot stop this run: no price is known, and the agent does not report its cost"
        return ""


@dataclass(slots=True)
class Ran:
    """What became of a run."""

    manifest: Manifest
    progress: Progress
    stopped: str = ""  # why it stopped before its end, in words
    broken: bool = False  # the infrastructure stopped it, or every episode ended as an error
    cut: int = 0  # bytes of a torn line that were cut off
    budget: bool = False  # tokens or cost stopped it
    raising: bool = False  # the same exception of the agent, again and again; it stopped the run, unless that was over

    @property
    def left(self) -> int:
        return max(0, self.progress.total - self.progress.before - self.progress.done)


# ---------------------------------------------------------------- one episode


class _Timed:
    """An agent with a deadline; remembers what came out of it."""

    def __init__(self, agent: Agent, seconds: float | None) -> None:
        self.agent, self.seconds = agent, seconds
        self.until: float | None = None  # the clock starts with the first request
        self.clock: asyncio.Timeout | None = None  # of the request under way
        self.late = False
        self.error: BaseException | None = None

    async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
        if self.until is None and self.seconds is not None:
            self.until = asyncio.get_running_loop().time() + self.seconds
        try:
            async with asyncio.timeout_at(self.until) as clock:
                self.clock = clock
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

    def wait_for_us(self, seconds: float) -> None:
        """Put the deadline off by a time in which nothing could be heard, because this process did something else."""
        if self.until is not None:
            self.until += seconds
            if self.clock is not None and not self.clock.expired():
                with suppress(RuntimeError):  # it is over, and another has not begun
                    self.clock.reschedule(self.until)

    @property
    def usage(self) -> Usage:
        found = getattr(self.agent, "usage", None)
        return found if isinstance(found, Usage) else Usage()

    @property
    def worth_retrying(self) -> bool:
        return not self.late and getattr(self.error, "retryable", True) is not False


async def play_episode(
    episode: Episode,
    source: AgentSource,
    *,
    seed: int,
    seconds: float | None = None,
    repeats: int | None = None,
    pauses: Sequence[float] = (),
    diagnosing: bool = True,
    timed: dict[str, _Timed] | None = None,
) -> Record:
    """Play an episode to its end and judge it; play it again after each pause if the infrastructure fails.

    An episode that takes too long ends as one that is out of budget: the agent's failure, on record as far as it came.
    The agent is in `timed` as long as it is played, for its deadline to be put off.
    """
    drawn, usage = episode.drawn, Usage()
    began = time.perf_counter()
    for pause in (*pauses, None):
        agent: _Timed | None = None
        try:
            agent = _Timed(made := source.make(drawn), seconds)
            if hasattr(made, "trial"):
                made.trial = episode.trial
            if timed is not None:
                timed[episode.key] = agent
            trajectory = await play(drawn, agent, source.name, ending=source.ending, repeats=repeats)
        except CrosswindError:
            raise
        except (Exception, SystemExit) as error:
            raise Crash(episode.key, error, by_agent=agent is None or agent.error is error) from error
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
    try:
        verdict = judge(trajectory, drawn.domain)
        record = recorded(episode, trajectory, verdict, seed=seed, usage=usage)
        return diagnosed(record, drawn.certificate) if diagnosing else record
    except Exception as error:
        raise Crash(episode.key, error, by_agent=False) from error


def wait_for_us(timed: Mapping[str, _Timed], seconds: float) -> None:
    """Put off the deadlines of agents that nobody could hear for a time."""
    for agent in timed.values():
        agent.wait_for_us(seconds)


def diagnosed(record: Record, gold: Certificate) -> Record:
    """A failed episode with the stage and the cause of its failure."""
    if record.outcome != "fail":
        return record
    found = diagnose(record, gold)
    return record.model_copy(update={"stage": found.stage, "cause": found.cause, "mistake": found.mistake})


# ---------------------------------------------------------------- many


def manifest_of(
    suite: Suite,
    source: AgentSource,
    *,
    seed: int,
    trials: int,
    limit: int | None,
    limits: Limits,
    shard: tuple[int, int] = (1, 1),
) -> Manifest:
    """What is about to be run."""
    return Manifest(
        created=now(),
        updated=now(),
        crosswind=__version__,
        judge=JUDGE,
        python=platform.python_version(),
        suite=suite.model_dump(mode="json"),
        asked=suite.asked,
        plugins=plugin_files(),
        conditions=tuple(c.name for c in suite.all_conditions()),
        seed=seed,
        trials=trials,
        limit=limit,
        shard=f"{shard[0]}/{shard[1]}" if shard[1] > 1 else "",
        agent=source.name,
        settings=source.settings,
        ending=source.ending,
        episode_timeout=limits.episode,
        max_repeats=limits.repeats,
    )


class Sink(Protocol):
    """Where finished episodes go."""

    @property
    def behind(self) -> int:
        """Records that were appended and are not yet safe."""

    def append(self, record: Record) -> None: ...

    def sync(self) -> None:
        """Make everything safe that was appended; called in a thread."""


class AnyEpisode(Protocol):
    """An episode to play, drawn here or by another process."""

    @property
    def key(self) -> str: ...


Upcoming: TypeAlias = Iterator[Episode | None] | AsyncIterator[AnyEpisode]


class EpisodePlayer(Protocol):
    """Anyone who draws and plays episodes in the place of this process; `cluster.RayPlayer` is one."""

    def drawn(self, schedule: Schedule) -> AsyncIterator[AnyEpisode]:
        """The episodes of a schedule in its order, each drawn elsewhere; the schedule only counts them."""

    async def play(self, episode: Any) -> tuple[bytes, Told]:
        """The line of the finished episode, and how it ended."""


class Workers:
    """Workers that play episodes, each with every agent given, into a sink."""

    def __init__(
        self,
        episodes: Iterable[Episode | None] | AsyncIterator[AnyEpisode],
        sources: Sequence[AgentSource],
        sink: Sink,
        *,
        seed: int,
        limits: Limits | None = None,
        progress: Progress | None = None,
        total: Callable[[], int] = int,  # episodes in all, as far as is known
        pauses: Sequence[float] = (),
        watch: Watch | None = None,
        diagnosing: bool = True,
        player: Callable[[AnyEpisode], Awaitable[Told]] | None = None,  # plays elsewhere, and stores what comes of it
        in_a_row: int = IN_A_ROW,
    ) -> None:
        self.player = player
        self.episodes: Upcoming = episodes if isinstance(episodes, AsyncIterator) else iter(episodes)
        self.sources, self.sink, self.seed = sources, sink, seed
        self.limits, self.progress = limits or Limits(), progress or Progress()
        self.total, self.pauses, self.watch, self.diagnosing = total, pauses, watch, diagnosing
        self.stopped = self.limits.reached(self.progress.spent)
        self.broken = False
        self.alike: list[tuple[str, str]] = []  # the last episodes, as far as one exception ended them: it, their task
        self.raising = self.warned = False
        self.in_a_row, self.most_in_a_row = 0, in_a_row
        self.whole = False  # every episode was taken
        self.under_way: dict[str, None] = {}  # episodes that were begun and have no line yet
        self.timed: dict[str, _Timed] = {}  # agents that are playing
        self.drawing = asyncio.Lock()
        self.written, self.synced = asyncio.Event(), asyncio.Event()

    async def work(self) -> None:
        """Take one episode after the other until there is none, or a reason to stop."""
        if await self.take(self.episodes, self.sources):
            self.whole = True

    async def take(self, episodes: Upcoming, sources: Sequence[AgentSource]) -> bool:
        """Play episodes as they come; whether there are no more."""
        while not self.stopped:
            try:
                async with self.drawing:  # one draw at a time: between two of them episodes under way have their turn
                    await asyncio.sleep(0)
                    episode = await self.upcoming(episodes)
            except StopAsyncIteration:
                return True
            except CrosswindError:
                raise
            except Exception as error:
                raise Crash("the next one, while it was drawn", error, by_agent=False) from error
            if episode is not None:
                for source in sources:
                    await self.play(episode, source)
        return False

    async def _nothing_left(self) -> bool:
        """Was every episode played when there came a reason to stop?"""
        if self.whole:
            return True
        with suppress(CrosswindError):
            try:
                while await self.upcoming(self.episodes) is None:
                    await asyncio.sleep(0)
            except StopAsyncIteration:
                return True
        return False

    async def upcoming(self, episodes: Upcoming) -> AnyEpisode | None:
        """The next episode. Where it is drawn here nothing else can be done meanwhile, so no deadline runs on."""
        if isinstance(episodes, AsyncIterator):
            return await anext(episodes)
        began = time.monotonic()
        try:
            return next(episodes)
        except StopIteration:
            raise StopAsyncIteration from None
        finally:
            wait_for_us(self.timed, time.monotonic() - began)

    async def play(self, episode: AnyEpisode, source: AgentSource) -> None:
        self.under_way[episode.key] = None
        if self.player is not None:
            told = await self.player(episode)
        else:
            assert isinstance(episode, Episode)
            told = record = await play_episode(
                episode,
                source,
                seed=self.seed,
                seconds=self.limits.episode,
                repeats=self.limits.repeats,
                pauses=self.pauses,
                diagnosing=self.diagnosing,
                timed=self.timed,
            )
            self.sink.append(record)
        self.timed.pop(episode.key, None)
        del self.under_way[episode.key]
        self.finished(told)
        if self.sink.behind:
            self.written.set()
        if self.sink.behind >= BEHIND:
            await self.synced.wait()

    async def keep_synced(self) -> None:
        """Put on the disk what was written, in a thread, and again; slow disks then take several lines at a time."""
        while True:
            await self.written.wait()
            self.written.clear()
            self.synced.clear()
            await asyncio.to_thread(self.sink.sync)
            self.synced.set()

    def finished(self, record: Told) -> None:
        self.progress.add(record)
        self.progress.done += 1
        self.in_a_row = self.in_a_row + 1 if record.outcome == "error" else 0
        if self.in_a_row >= self.most_in_a_row:
            what = f"{self.in_a_row} episodes in a row" if self.in_a_row > 1 else "an episode"
            self.stopped = f"{what} ended as errors of the infrastructure (last: {record.why})"
            self.broken = True
        same = [(_place_of(record.why), record.task_id)] if record.ended == "exception" else []
        self.alike = [*(one for one in self.alike if [one[0]] == [s[0] for s in same]), *same]
        tasks = len({task for _, task in self.alike})  # episodes of one task come one after the other
        if self.limits.exceptions and len(self.alike) >= self.limits.exceptions and tasks > 1:
            first = record.why.partition("\n")[0]
            self.stopped = f"{len(self.alike)} episodes in a row ended with the same exception of the agent ({first})"
            self.raising = True
        self.stopped = self.stopped or self.limits.reached(self.progress.spent)
        if not self.warned and (told := self.limits.void(self.progress.spent)):
            self.warned = True
            warnings.warn(told, stacklevel=1)
        self.show()

    def show(self) -> None:
        if self.watch:
            self.progress.total = self.total()
            self.watch.show(self.progress)

    async def tick(self) -> None:
        """Show how it goes even while no episode ends."""
        while True:
            await asyncio.sleep(1)
            self.show()

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
                if self.stopped and not (self.under_way or self.broken) and await self._nothing_left():
                    self.whole, self.stopped = True, ""
                for other in others:
                    other.cancel()
            if self.under_way or not (self.whole or self.stopped):  # a worker is gone, and nobody sent it away
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
            await asyncio.to_thread(self.sink.sync)


def _place_of(why: str) -> str:
    """Which exception this is: its type and the places in the code, without a message, which may name the task."""
    places = [line for line in why.splitlines() if line.startswith('  File "')]
    return "\n".join([why.partition("\n")[0].partition(":")[0], *places])


async def run(
    suite: Suite,
    source: AgentSource,
    folder: Path | str,
    *,
    seed: int = 0,
    trials: int = 1,
    limit: int | None = None,
    shard: tuple[int, int] = (1, 1),
    concurrency: int | None = None,
    limits: Limits | None = None,
    keep_errors: bool = False,
    pauses: Sequence[float] | None = None,
    watch: Watch | None = None,
    player: EpisodePlayer | None = None,
) -> Ran:
    """Play a suite into a folder, or go on where an earlier run of the same configuration stopped."""
    limits = limits or Limits()
    with Store(folder) as store:
        wanted = manifest_of(suite, source, seed=seed, trials=trials, limit=limit, limits=limits, shard=shard)
        manifest = store.begin(wanted)
        progress = Progress()
        finished = store.resume(progress.add, keep_errors=keep_errors)
        for record in store.retried():
            progress.spent = progress.spent.plus(record.usage)
        schedule = Schedule(suite, seed, trials=trials, limit=limit, finished=finished, shard=shard)
        progress.before = len(finished)

        def total() -> int:
            progress.estimated = not schedule.whole
            return schedule.total

        progress.total = total()

        async def elsewhere(episode: AnyEpisode) -> Told:
            assert player is not None
            line, told = await player.play(episode)
            store.append_line(line)
            return told

        workers = Workers(
            player.drawn(schedule) if player else schedule,
            [source],
            store,
            seed=seed,
            limits=limits,
            progress=progress,
            total=total,
            pauses=PAUSES if pauses is None else pauses,
            watch=watch,
            player=elsewhere if player else None,
        )
        why = "it was interrupted"
        try:
            await workers.run(concurrency or source.concurrency)
            why = workers.stopped
        except Exception as error:
            why = f"{type(error).__name__}"
            raise
        finally:
            progress.total = total()
            planned = schedule.planned if schedule.whole else None
            with suppress(CrosswindError):
                state = "stopped" if why else "finished"
                # stacks that are finished are not drawn again, so that an earlier run may know more
                known = {**schedule.never_played, **manifest.never_met, **schedule.never_met}
                never = {kind: reason for kind, reason in known.items() if kind not in progress.kinds}
                manifest = store.write(manifest, state=state, why=why, planned=planned, never_met=never)
        nothing = progress.errors > 0 and not progress.scores
        spent = bool(limits.reached(progress.spent))
        broken = workers.broken or nothing
        return Ran(manifest, progress, workers.stopped, broken, store.cut, spent, workers.raising)
