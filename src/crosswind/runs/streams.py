"""Play streams: one episode after the other, with an agent that may remember (`episodes/stream.py` draws them).

An agent that has `save()` and `restore(state)` keeps its state over a stream. The state is JSON. It is stored in the
line of the episode after which it was saved and handed to `restore` before the next one, so that a stream that was
killed goes on as if nothing had happened. The conversation is emptied between episodes.
"""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from crosswind.base.errors import BadFile, CrosswindError
from crosswind.core.draw import Drawn
from crosswind.core.memory import complete, shown
from crosswind.core.types import Agent
from crosswind.episodes.brief import Told
from crosswind.episodes.career import Career, CareerPlan
from crosswind.episodes.play import judge, replayed
from crosswind.episodes.record import Record, forfeited, trajectory_of
from crosswind.episodes.schedule import CareerMark, Episode
from crosswind.episodes.stream import Plan, StreamPlan, Timeline, with_changes
from crosswind.episodes.suite import Suite
from crosswind.models.source import AgentSource
from crosswind.runs.runner import PAUSES, Limits, Progress, Ran, Watch, Workers, manifest_of
from crosswind.runs.store import EPISODES, Manifest, Store, iter_records

LARGEST = 100_000  # characters of what an agent keeps, as JSON
DEEPEST = 50  # levels of nesting in it


class RememberingSource:
    """A source whose agents are handed what the one before them saved."""

    resumes = False

    def __init__(self, source: AgentSource) -> None:
        self.source = source
        self.name, self.price, self.settings = source.name, source.price, source.settings
        self.concurrency, self.ending = 1, source.ending
        self.state: Any = None
        self.last: Any = None
        self.beside: Sequence[RememberingSource] = ()  # of the streams that are played at the same time

    def make(self, drawn: Drawn) -> Agent:
        made = self.source.make(drawn)
        self.last = getattr(made, "memory", made)
        if callable(getattr(self.last, "restore", None)):
            if any(other.last is self.last for other in self.beside if other is not self):
                raise CrosswindError(
                    f"{self.name} is one object with a memory, which cannot be in several streams at a time; give its "
                    "class or a function that makes one, or play one stream at a time"
                )
            self.last.restore(json.loads(json.dumps(self.state)))
        return made

    def saved(self) -> Any:
        """What the agent keeps of the episode that is over."""
        if not callable(getattr(self.last, "save", None)):
            return None
        state = self.last.save()
        if wrong := not_json(state):
            raise CrosswindError(f"save() of {self.name} returned {wrong}; expected JSON")
        text = json.dumps(state, ensure_ascii=False)
        if len(text) > LARGEST:
            raise CrosswindError(
                f"save() of {self.name} returned {len(text):,} characters of JSON; expected at most {LARGEST:,}"
            )
        return json.loads(text)  # a copy, which the agent cannot change later

    async def aclose(self) -> None:
        await self.source.aclose()


def not_json(value: Any, at: str = "the top", depth: int = 0) -> str:
    """What JSON would lose of a value and where, such as "a set at 'seen'"; empty if it keeps all. Tuples become
    arrays."""
    if value is None or isinstance(value, bool):
        return ""
    if depth > DEEPEST:
        return f"more than {DEEPEST} levels of nesting at {at[:200]}"
    if isinstance(value, str):
        return (
            "" if value.isascii() or value.encode("utf-8", "ignore").decode() == value else f"half a character at {at}"
        )
    if isinstance(value, int):
        return "" if abs(value) < 2**63 else f"an integer of {value.bit_length()} bits at {at}"
    if isinstance(value, float):
        return "" if math.isfinite(value) else f"the number {value} at {at}"
    here = "" if not depth else at
    if isinstance(value, dict):
        for key, entry in value.items():
            if not isinstance(key, str):
                return f"a key that is {_a(key)}, {str(key)[:40]}, at {at}"
            if wrong := not_json(key, f"the key {key!a:.60}") or not_json(entry, f"{here}[{key!a:.60}]", depth + 1):
                return wrong
        return ""
    if isinstance(value, (list, tuple)):
        every = (not_json(entry, f"{here}[{n}]", depth + 1) for n, entry in enumerate(value))
        return next(filter(None, every), "")
    return f"{_a(value)} at {at}"


def _a(value: object) -> str:
    """The type of a value with its article."""
    name = type(value).__name__
    return f"an {name}" if name[0] in "aeiouAEIOU" else f"a {name}"


class _Past:
    """What is known of each stream so far, and where its records go."""

    def __init__(self, store: Store, plan: Plan) -> None:
        self.store, self.lasts = store, isinstance(plan, CareerPlan)
        self.playing: dict[tuple[str, int], RememberingSource] = {}
        self.passed: dict[tuple[str, int], list[bool]] = defaultdict(list)
        self.last: dict[tuple[str, int], Record] = {}

    def note(self, record: Record) -> None:
        if record.mark is not None and record.outcome != "error":
            self.passed[record.domain, record.trial].append(record.passed)
            self.last[record.domain, record.trial] = record

    def resume(self, record: Record) -> None:
        """Note a stored record, which must follow the one before it in its stream."""
        mark, wanted = record.mark, len(self.passed[record.domain, record.trial])
        if mark is not None and (mark.career is not None) != self.lasts:
            mark = None
        if record.outcome != "error" and (mark is None or mark.number != wanted):
            found = "one without its place in it" if mark is None else f"episode {mark.number + 1}"
            raise BadFile(
                f"{self.store.path}: {record.domain}, stream {record.trial + 1}: expected episode {wanted + 1}, got "
                f"{found}. Later episodes depend on earlier ones: restore the file from a copy, or play elsewhere"
            )
        self.note(record)

    def memory(self, stream: tuple[str, int]) -> Any:
        """What the agent keeps of a stream so far."""
        last = self.last.get(stream)
        return last.mark.memory if last and last.mark else None

    @property
    def behind(self) -> int:
        return self.store.behind

    def append(self, record: Record) -> None:
        if record.mark is not None and record.outcome != "error":
            stream = record.domain, record.trial
            kept = self.playing[stream].saved() if record.judged else self.memory(stream)
            mark = record.mark.model_copy(update={"memory": kept, "career": _judged_stale(record)})
            record = record.model_copy(update={"mark": mark})
        self.note(record)
        self.store.append(record)

    def sync(self) -> None:
        self.store.sync()


class Lane(NamedTuple):
    """One stream that is being played."""

    episodes: Iterator[Episode]
    source: RememberingSource


class _Streams(Workers):
    """Workers that each take one stream after the other and play it to its end."""

    def __init__(self, lanes: Iterator[Lane], is_done: Callable[[], bool], sink: _Past, **options: Any) -> None:
        super().__init__((), (), sink, **options)
        self.lanes, self.is_done = lanes, is_done
        self.sources_at_work: list[RememberingSource] = []

    async def work(self) -> None:
        for lane in self.lanes:
            lane.source.beside = self.sources_at_work
            self.sources_at_work.append(lane.source)
            if not await self.take(lane.episodes, [lane.source]):
                return
            self.sources_at_work.remove(lane.source)
        self.whole = self.is_done()

    async def _nothing_left(self) -> bool:
        return self.is_done()


def _judged_stale(record: Record) -> CareerMark | None:
    """Did a failed episode go by what no longer holds, or never did? It is judged as if that were in force."""
    career = record.mark.career if record.mark else None
    if career is None or career.recall.need is None or record.outcome != "fail":
        return career
    need = career.recall.need
    task = complete(career.task, need, need.rival)
    recall = career.recall.model_copy(update={"need": need.model_copy(update={"value": need.rival})})
    verdict = judge(trajectory_of(record).model_copy(update={"task": shown(task, recall)}))
    return career.model_copy(update={"stale": verdict.outcome == "pass"})


def _follow(timeline: Timeline | Career, last: Record | None) -> None:
    """Let a timeline take up what the last episode left in the world."""
    if last is None or last.mark is None or last.mark.career is None:
        return
    changes = replayed(trajectory_of(last), timeline.domain).state.changes() if last.judged else {}
    timeline.after(last.mark, changes)


def stream_manifest(
    plan: Plan, source: AgentSource, *, seed: int, streams: int, frozen: bool, limits: Limits
) -> Manifest:
    """What a run of streams is."""
    made = manifest_of(Suite(name=plan.name), source, seed=seed, trials=streams, limit=None, limits=limits)
    return made.model_copy(
        update={
            "asked": None,
            "suite": {**plan.model_dump(mode="json"), "frozen": frozen},
            "conditions": plan.conditions(frozen),
            "planned": plan.episodes * streams * len(plan.where()),
        }
    )


async def play_streams(
    plan: Plan,
    source: AgentSource,
    folder: Path | str,
    *,
    seed: int = 0,
    streams: int = 1,
    frozen: bool = False,
    limits: Limits | None = None,
    pauses: Sequence[float] = PAUSES,
    watch: Watch | None = None,
    only: tuple[str, int] | None = None,
    concurrency: int = 1,
) -> Ran:
    """Play this many streams of a plan in each of its domains into a folder, or continue them.

    `concurrency` is the number of streams that are played at a time; the episodes of one always follow each other.

    An episode that ends as an error of the infrastructure stops the run: what follows depends on it. The same call
    plays it again and continues. With `frozen` the interface never changes, for comparison. `only` is the one stream to
    play, by its domain and number.
    """
    limits = limits or Limits()
    with Store(folder, sealed=0) as store:  # what agents kept is read back from whole records
        wanted = stream_manifest(plan, source, seed=seed, streams=streams, frozen=frozen, limits=limits)
        manifest = store.begin(wanted)
        progress, past = Progress(total=wanted.planned or 0), _Past(store, plan)

        def noted(record: Told) -> None:
            progress.add(record)
            assert isinstance(record, Record)
            past.resume(record)

        progress.before = len(store.resume(noted))

        def episodes(domain: str, number: int, remembering: RememberingSource) -> Iterator[Episode]:
            """What is left of one stream."""
            done = past.passed[domain, number]
            timeline = plan.timeline(domain, seed, number, frozen=frozen)
            while len(done) < plan.episodes:
                _follow(timeline, past.last.get((domain, number)))
                remembering.state = past.memory((domain, number))
                episode = timeline.episode(len(done), done)
                if episode.mark and episode.mark.career and episode.mark.career.forfeited:
                    record = forfeited(episode, source.name, seed)
                    past.append(record)
                    progress.add(record)
                    progress.done += 1
                else:
                    yield episode

        every = [(domain, number) for number in range(streams) for domain in plan.where()]
        wanted_streams = [stream for stream in every if only in (None, stream)]

        def is_done() -> bool:
            return all(len(past.passed[stream]) >= plan.episodes for stream in wanted_streams)

        def lanes() -> Iterator[Lane]:
            for stream in wanted_streams:
                if len(past.passed[stream]) < plan.episodes:
                    past.playing[stream] = remembering = RememberingSource(source)
                    yield Lane(episodes(*stream, remembering), remembering)

        workers = _Streams(
            lanes(),
            is_done,
            past,
            seed=seed,
            limits=limits,
            progress=progress,
            total=lambda: wanted.planned or 0,
            pauses=pauses,
            watch=watch,
            in_a_row=1,
        )
        why = "it was interrupted"
        try:
            await workers.run(concurrency)
            why = workers.stopped
        except Exception as error:
            why = f"{type(error).__name__}"
            raise
        finally:
            with suppress(CrosswindError):
                manifest = store.write(manifest, state="stopped" if why else "finished", why=why)
        spent = bool(limits.reached(progress.spent))
        return Ran(manifest, progress, workers.stopped, workers.broken, store.cut, spent)


CHECKED, CUT = 10, 5  # episodes that a check plays, and after which it kills


async def check_replay(plan: Plan, source: AgentSource, *, seed: int = 0) -> None:
    """Play the first episodes of a stream, as if killed after half of them, and again from there.

    Raises `CrosswindError` where the second half is not the same: the agent keeps something that `save` does not
    return, or its replies are not determined, as those of a model with a temperature.
    """
    changes: dict[str, object] = {"episodes": CHECKED, "domains": tuple(plan.where()[:1])}
    short = with_changes(plan, {**changes, "releases": 2} if isinstance(plan, StreamPlan) else changes)
    with tempfile.TemporaryDirectory() as name:
        whole, killed = Path(name, "whole"), Path(name, "killed")
        await play_streams(short, source, whole, seed=seed)
        shutil.copytree(whole, killed)
        path = killed / EPISODES
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:CUT]))
        await play_streams(short, source, killed, seed=seed)
        first, second = (list(iter_records(folder)) for folder in (whole, killed))
    for n, (a, b) in enumerate(zip(first, second, strict=True)):
        fields = [f for f in type(a).model_fields if f != "usage" and getattr(a, f) != getattr(b, f)]
        if fields:
            raise CrosswindError(
                f"{source.name} replays differently after a kill: in episode {n + 1} of {CHECKED}, {', '.join(fields)} "
                f"differ although everything up to episode {CUT} was the same. Let save() return all that the agent "
                "keeps, take it up in restore(), and set a temperature of 0 and a seed"
            )
