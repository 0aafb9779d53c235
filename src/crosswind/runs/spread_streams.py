"""Streams on a cluster: each stream is played whole in one process, and this one alone writes the folder.

The episodes of a stream depend on each other, so a stream is the smallest part; a process that dies under one plays it
again from where the folder has it. What comes back is the records of a local run.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from crosswind.base.errors import CrosswindError
from crosswind.episodes.brief import Told
from crosswind.episodes.career import CareerPlan
from crosswind.episodes.record import Record
from crosswind.episodes.stream import Plan, StreamPlan
from crosswind.models.notes import with_memory
from crosswind.models.source import AgentSource
from crosswind.models.spec import open_agent
from crosswind.runs.runner import Crash, Limits, Progress, Ran, Watch
from crosswind.runs.store import EPISODES, Manifest, Store, as_line
from crosswind.runs.streams import play_streams, stream_manifest


@dataclass(frozen=True, slots=True)
class StreamPart:
    """One stream, in values that another process can be given."""

    plan: str  # as JSON
    career: bool  # or a stream of releases
    agent: str
    memory: str
    notes_size: int
    ending: str
    seed: int
    streams: int
    frozen: bool
    domain: str = ""
    number: int = 0
    past: tuple[bytes, ...] = ()  # lines of its episodes so far

    def source(self) -> AgentSource:
        return with_memory(open_agent(self.agent, None, self.ending), self.memory, self.notes_size)

    def manifest(self, plan: Plan, source: AgentSource) -> Manifest:
        return stream_manifest(
            *(plan, source), seed=self.seed, streams=self.streams, frozen=self.frozen, limits=Limits()
        )

    def read_plan(self) -> Plan:
        kind: type[CareerPlan | StreamPlan] = CareerPlan if self.career else StreamPlan
        return kind.model_validate_json(self.plan)


@dataclass(frozen=True, slots=True)
class PlayedPart:
    """What came of it."""

    lines: tuple[bytes, ...]  # of the episodes that are new
    stopped: str = ""
    broken: bool = False
    crash: str = ""


def play_part(part: StreamPart) -> PlayedPart:
    """Play one stream to its end."""
    plan, source, crash = part.read_plan(), part.source(), ""
    stopped, broken = "", False
    with tempfile.TemporaryDirectory(prefix="crosswind-stream-") as scratch:
        folder = Path(scratch) / "run"
        with Store(folder, sealed=0) as store:
            store.begin(part.manifest(plan, source))
        (folder / EPISODES).write_bytes(b"".join(part.past))

        async def play() -> Ran:
            try:
                return await play_streams(
                    *(plan, source, folder),
                    seed=part.seed,
                    streams=part.streams,
                    frozen=part.frozen,
                    only=(part.domain, part.number),
                )
            finally:
                await source.aclose()

        try:
            ran = asyncio.run(play())
            stopped, broken = ran.stopped, ran.broken
        except Crash as error:
            crash = str(error)
        lines = (folder / EPISODES).read_bytes().splitlines(keepends=True)
    return PlayedPart(tuple(lines[len(part.past) :]), stopped, broken, crash)


def spread_streams(
    mapped: Callable[[Callable[[StreamPart], PlayedPart], Iterable[StreamPart]], Iterator[PlayedPart]],
    whole: StreamPart,
    folder: Path | str,
    watch: Watch | None = None,
) -> Ran:
    """Play all streams of a plan, each somewhere else; `whole` says what they have in common."""
    plan, source = whole.read_plan(), whole.source()
    with Store(folder, sealed=0) as store:
        wanted = whole.manifest(plan, source)
        manifest, past = store.begin(wanted), dict[tuple[str, int], list[bytes]]()
        progress = Progress(total=wanted.planned or 0)

        def noted(record: Told) -> None:
            progress.add(record)
            assert isinstance(record, Record)
            past.setdefault((record.domain, record.trial), []).append(as_line(record))

        progress.before = len(store.resume(noted))
        every = ((domain, number) for number in range(whole.streams) for domain in plan.where())
        left = [one for one in every if len(past.get(one, ())) < plan.episodes]
        parts = [part_of(whole, domain, number, past.get((domain, number), ())) for domain, number in left]
        stopped, broken, why = "", False, "it was interrupted"
        try:
            for played in mapped(play_part, parts):
                for line in played.lines:
                    record = Record.model_validate_json(line)
                    store.append(record)
                    progress.add(record)
                    progress.done += 1
                store.sync()
                if watch:
                    watch.show(progress)
                if played.crash:
                    raise CrosswindError(f"an agent or crosswind raised in a stream: {played.crash}")
                stopped, broken = stopped or played.stopped, broken or played.broken
            why = stopped
        finally:
            with suppress(CrosswindError):
                manifest = store.write(manifest, state="stopped" if why else "finished", why=why)
        return Ran(manifest, progress, stopped, broken, store.cut)


def part_of(whole: StreamPart, domain: str, number: int, past: Iterable[bytes]) -> StreamPart:
    """One stream of all."""
    same = {name: getattr(whole, name) for name in StreamPart.__slots__}
    return StreamPart(**{**same, "domain": domain, "number": number, "past": tuple(past)})
