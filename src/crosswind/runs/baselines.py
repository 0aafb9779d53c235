"""Scripted agents whose score is known beforehand: they give the numbers of a run a scale.

What they make of the episodes of a run is stored in its folder and read back:

    baselines.jsonl    a head (`_Head`), then a record for each episode and agent, without what was said (`UNSAID`)
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from crosswind.base.files import lines_in, open_regular, replace_file
from crosswind.base.version import __version__
from crosswind.core.domain import JUDGE
from crosswind.core.draw import Drawn
from crosswind.core.registry import agents
from crosswind.core.types import Model
from crosswind.episodes.record import SCHEMA, Record, Usage
from crosswind.episodes.schedule import Episode, Schedule
from crosswind.episodes.suite import Suite
from crosswind.metrics.groups import Some
from crosswind.metrics.scores import TRIVIAL
from crosswind.models.spec import open_agent
from crosswind.runs.reading import draw_again, unplayable
from crosswind.runs.runner import Watch, Workers
from crosswind.runs.store import AnyRun, as_line

FILE = "baselines.jsonl"
PLAYED = 150  # shifted episodes on which baselines are played
NAMES = ("oracle", "memoriser", *TRIVIAL)
TELLS = {
    "oracle": "follows the certified solution: the upper bound",
    "memoriser": "replays the clean solution regardless of changes: what memorising the clean world achieves",
    "refuser": "refuses everything",
    "echo": "repeats the request",
    "idle": "does nothing",
    "guesser": "guesses from the request, without calling tools",
}
UNSAID: dict[str, Any] = {"query": "", "policy": "", "tools": (), "steps": (), "final": "", "usage": Usage()}
Known = dict[tuple[str, str], Record]  # by agent and key


@dataclass(slots=True)
class _Memory:
    """Finished episodes, handed on at once."""

    append: Callable[[Record], None]
    behind: int = 0

    def sync(self) -> None:
        pass


def _play(
    episodes: Iterable[Episode | None],
    names: Sequence[str],
    append: Callable[[Record], None],
    *,
    seed: int,
    total: Callable[[], int],
    watch: Watch | None = None,
    ending: str | None = None,
) -> None:
    """Play scripted agents; they never wait, so one worker does."""

    async def work() -> None:
        sources = [open_agent(name, ending=ending) for name in names]
        await Workers(episodes, sources, _Memory(append), seed=seed, total=total, watch=watch, diagnosing=False).run(1)

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(work())
    else:  # in a notebook
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, work()).result()


# ---------------------------------------------------------------- over a suite


@dataclass(slots=True)
class Baseline:
    """How scripted agents fared in one domain under one condition."""

    domain: str
    condition: str
    n: int
    refusals: int  # tasks whose right end is a refusal
    passed: dict[str, int]  # of the others
    right: dict[str, int]  # right refusals


def sweep(
    suite: Suite, names: Sequence[str], seed: int, watch: Watch | None = None, *, ending: str | None = None
) -> list[Baseline]:
    """Play scripted agents over a suite."""
    rows: dict[tuple[str, str], Baseline] = {}
    schedule = Schedule(suite, seed)

    def add(record: Record) -> None:
        at = (record.domain, record.condition)
        row = rows.setdefault(at, Baseline(*at, 0, 0, dict.fromkeys(names, 0), dict.fromkeys(names, 0)))
        if record.agent == names[0]:
            row.n += 1
            row.refusals += record.refuse
        (row.right if record.refuse else row.passed)[record.agent] += record.passed

    _play(schedule, names, add, seed=seed, total=lambda: schedule.total * len(names), watch=watch, ending=ending)
    return in_order(rows.values(), suite)


def in_order(rows: Iterable[Baseline], suite: Suite) -> list[Baseline]:
    """By the suite's domains, and in each by its conditions."""
    conditions = [c.name for c in suite.all_conditions()]
    where = list(dict.fromkeys(d for c in suite.all_conditions() for d in suite.where(c)))
    return sorted(rows, key=lambda row: (where.index(row.domain), conditions.index(row.condition)))


def domains_of(suite: Suite) -> list[Suite]:
    """The suite in parts, each of one domain: tasks are dealt in each domain by itself."""
    where = dict.fromkeys(d for c in suite.all_conditions() for d in suite.where(c))
    return [suite.narrowed(0, (name,)) for name in where]


def sweep_part(part: tuple[str, tuple[str, ...], int, str | None]) -> list[Baseline]:
    """Scripted agents over a suite, from values that another process can be given."""
    suite, names, seed, ending = part
    return sweep(Suite.model_validate_json(suite), names, seed, ending=ending)


def over_domains(rows: Sequence[Baseline]) -> list[Baseline]:
    """The same figures with all domains together."""
    out: dict[str, Baseline] = {}
    for row in rows:
        none = dict.fromkeys(row.passed, 0)
        one = out.setdefault(row.condition, Baseline("", row.condition, 0, 0, none, dict(none)))
        one.domain = row.domain if one.domain in ("", row.domain) else "all"
        one.n, one.refusals = one.n + row.n, one.refusals + row.refusals
        one.passed = {name: one.passed[name] + n for name, n in row.passed.items()}
        one.right = {name: one.right[name] + n for name, n in row.right.items()}
    return list(out.values())


# ---------------------------------------------------------------- on the episodes of a run


@dataclass(frozen=True, slots=True)
class Baselines:
    """Scripted agents on some episodes of a run."""

    sample: tuple[Record, ...] = ()  # the run's own episodes that all of them played
    played: dict[str, list[Record]] = field(default_factory=dict)  # by agent, in the order of the sample
    trivial: dict[str, list[Record]] = field(default_factory=dict)  # all that is known of the agents of `TRIVIAL`
    unplayed: tuple[str, ...] = ()  # why there are none, for each domain that has none
    unsaved: str = ""  # why they could not be stored


def sample(records: Sequence[Some], limit: int) -> list[Some]:
    """Pairs of a run spread evenly over it: shifted episodes with their clean ones, at most `limit` of the former."""
    trial = min((r.trial for r in records), default=0)
    first = [r for r in records if r.trial == trial and r.judged]
    clean = {r.pair: r for r in first if r.clean}
    shifted = sorted((r for r in first if not r.clean and r.pair in clean), key=lambda r: r.key)
    if len(shifted) > limit:
        shifted = [shifted[i * len(shifted) // limit] for i in range(limit)]
    return [*{r.pair: clean[r.pair] for r in shifted}.values(), *shifted]


def play_baselines(run: AnyRun, limit: int | None, draw: Callable[[Record], Drawn | None]) -> Baselines:
    """Scripted agents on up to `limit` shifted episodes of a run: read back where they are stored, or else played.

    Unless a limit is given, they are not played where that starts somebody's server. `draw` certifies an episode again;
    one for which that is not possible is left out for all agents.
    """
    wanted = PLAYED if limit is None else limit
    unplayed = unplayable(sorted({r.domain for r in run.told}), limit is not None) if wanted else {}
    chosen = run.whole(sample([r for r in run.told if r.domain not in unplayed], wanted)) if wanted else []
    stored = _load(run)
    known = dict(stored)
    missing = [r for r in chosen if any((name, r.key) not in known for name in NAMES)]

    def episodes() -> Iterator[Episode]:
        for record in missing:
            if drawn := draw(record):
                yield Episode(record.condition, record.task_id, drawn, record.severity, record.trial)

    def add(record: Record) -> None:
        known[record.agent, record.key] = record.model_copy(update=UNSAID)

    if missing:
        _play(episodes(), NAMES, add, seed=missing[0].seed, total=lambda: len(missing) * len(NAMES))
    unsaved = _store(run, known) if len(known) > len(stored) else ""
    covered = tuple(r for r in chosen if all((name, r.key) in known for name in NAMES))
    played = {name: [known[name, r.key] for r in covered] for name in NAMES} if covered else {}
    trivial = {name: [r for (agent, _), r in known.items() if agent == name] for name in TRIVIAL}
    return Baselines(covered, played, trivial, tuple(unplayed.values()), unsaved)


def trivial_of(run: AnyRun) -> dict[str, list[Record]]:
    """What trivial agents make of the episodes of a run: stored, or else played on up to `PLAYED` shifted ones."""
    return play_baselines(run, None, lambda record: draw_again(record)[0]).trivial


class _Head(Model):
    """What the stored baselines are: which code played which agents on which episodes."""

    schema_version: int = SCHEMA
    crosswind: str  # version
    judge: str  # version of the verifier
    agents: dict[str, str]  # name -> digest of its source
    covers: tuple[str, ...]  # keys of episodes


def _head(covers: Iterable[str] = ()) -> _Head:
    sources = {name: Path(inspect.getfile(agents[name])).read_bytes() for name in NAMES}
    digests = {name: hashlib.sha256(source).hexdigest()[:16] for name, source in sources.items()}
    return _Head(crosswind=__version__, judge=JUDGE, agents=digests, covers=tuple(covers))


def _load(run: AnyRun) -> Known:
    """Stored baselines that still hold: by the same code, on episodes as the run has them."""
    draws = {one.key: one.draw for one in run.told}
    found: Known = {}
    try:
        with open_regular(path := run.folder / FILE) as file:
            lines = lines_in(file, path)
            if _Head.model_validate_json(next(lines, b"")).model_copy(update={"covers": ()}) != _head():
                return {}
            for line in lines:  # as many as there may be, no more are kept than the run has episodes
                record = Record.model_validate_json(line)
                if record.agent in NAMES and draws.get(record.key) == record.draw:
                    found[record.agent, record.key] = record
    except (OSError, ValueError, ValidationError):  # none yet, or damaged: they are played again
        return {}
    return found


def _store(run: AnyRun, known: Known) -> str:
    """Write the baselines beside the episodes, whole or not at all; why that failed, if it did."""
    lasting = {at: record for at, record in known.items() if record.judged}
    head = _head(dict.fromkeys(key for _, key in lasting)).model_dump_json().encode() + b"\n"
    try:
        replace_file(run.folder / FILE, head + b"".join(map(as_line, lasting.values())))
    except OSError as error:
        return f"{run.folder / FILE} cannot be written ({error.strerror})"
    return ""
