"""Draws that actors make for the driver of a run on a cluster.

Tasks are dealt in each domain by itself, so every domain has a table at one of the actors, which deals, draws and
certifies ahead and sends turns. The driver puts those of all domains in the order of the suite and counts them as if it
had drawn them (`Schedule.played`). When an actor dies, another one sits down at its table: what the driver was told
before is dealt again without being drawn.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from crosswind.base.errors import CrosswindError
from crosswind.core.certify import fingerprint, retrace
from crosswind.core.draw import Drawn
from crosswind.core.oracle import Walk, Walks
from crosswind.core.perturbation import load_layers
from crosswind.core.registry import domains
from crosswind.episodes.record import task_of
from crosswind.episodes.schedule import DealtTurn, Schedule, TaskDealer, Want, key_of
from crosswind.episodes.suite import CLEAN, Suite

HELD = 1024  # draws that an actor keeps, of some 40 KiB each: those it announced and has not played must be among them
AGAIN = 0.1  # seconds until a table whose actor does not answer is given to another
CHUNK = 16  # turns that are asked for at a time, as soon as fewer are left than that

Way = tuple[str, str, str, str, str]  # domain, task, layers as JSON, proof, fingerprint of the certificate
Sent = tuple[Way, str, int | None, int]  # with the condition, the severity and the trial
Gone = tuple[int, dict[str, Counter[str]]]  # a condition that gave up, and why its kinds were not drawn


# ---------------------------------------------------------------- draws by name


def retraced(way: Way, clean: Walk | None = None) -> Drawn:
    """A draw of another process, walked again."""
    name, task_id, layers, proof, expected = way
    domain, stack = domains[name], load_layers(json.loads(layers), task_id)
    task = task_of(domain, task_id)
    return Drawn(domain, task, stack, retrace(domain, task, stack, proof, expected, clean))


def way_of(drawn: Drawn) -> Way:
    """What another process needs to know of a draw."""
    layers = json.dumps([layer.model_dump(mode="json") for layer in drawn.layers])
    return drawn.domain.name, drawn.base.id, layers, drawn.certificate.proof, fingerprint(drawn.certificate)


class RecentDraws:
    """The draws that an actor made or walked again lately."""

    def __init__(self) -> None:
        self.draws: OrderedDict[Way, Drawn] = OrderedDict()
        self.clean: OrderedDict[str, Walk] = OrderedDict()  # by task

    def keep(self, drawn: Drawn) -> Way:
        way = way_of(drawn)
        self._keep(way, drawn)
        return way

    def _keep(self, way: Way, drawn: Drawn) -> None:
        self.draws[way], self.clean[drawn.base.id] = drawn, drawn.certificate.clean
        for held in (self.draws, self.clean):
            if len(held) > HELD:
                held.popitem(last=False)

    def find(self, way: Way) -> Drawn:
        """A draw; one that was made elsewhere is walked again. Raises `Unfair` where its way is another here."""
        if way not in self.draws:
            clean = self.clean.get(way[1]) or Walks(domains[way[0]], task_of(domains[way[0]], way[1])).clean
            self._keep(way, retraced(way, clean))
        return self.draws[way]


# ---------------------------------------------------------------- at an actor


@dataclass(frozen=True, slots=True)
class Seat:
    """What an actor needs to deal in a domain."""

    suite: str  # as JSON
    seed: int
    trials: int
    finished: frozenset[str]  # episodes of the domain
    known: dict[tuple[int, int], bool]  # does the condition apply to the task? As far as the driver was told
    told: int  # turns that the driver has
    limited: bool  # it counts fair episodes of all shards, so that it must know which clean ones are fair


@dataclass(frozen=True, slots=True)
class FarTurn:
    """A turn, as the driver hears of it."""

    turn: DealtTurn[Way]
    clean: Way | None  # its clean draw, if that is due and fair
    met: frozenset[str]  # kinds that its condition met so far,
    whys: dict[str, Counter[str]]  # and why others were not drawn
    gone: tuple[Gone, ...]


class Table:
    """Deals in one domain and draws."""

    def __init__(self, domain: str, seat: Seat, drawn: RecentDraws) -> None:
        suite = Suite.model_validate_json(seat.suite)
        self.dealer = TaskDealer(suite, seat.seed, seat.trials, seat.finished, domain=domain, known=seat.known)
        self.turns, self.skip, self.limited, self.drawn = iter(self.dealer), seat.told, seat.limited, drawn

    def turn(self) -> FarTurn | None:
        """The next turn, or None after a draw that failed; raises `StopIteration` with those that gave up last."""
        try:
            turn = next(self.turns)
        except StopIteration:
            raise StopIteration(self._gone(self.dealer.given_up)) from None
        if turn is None:
            return None
        if self.skip:
            self.skip -= 1
            return None
        dealer, want = self.dealer, self.dealer.deal.wants[turn.want]
        wanted = turn.first and (self.limited or not dealer.is_finished(turn.task_id, CLEAN))
        clean = dealer.clean(turn) if wanted else None
        return FarTurn(
            DealtTurn(
                turn.due,
                turn.want,
                turn.task_id,
                turn.number,
                turn.refused,
                self.drawn.keep(turn.drawn) if turn.drawn else None,
                turn.first,
                turn.given_up,
            ),
            self.drawn.keep(clean) if clean else None,
            frozenset(want.met),
            want.whys,
            self._gone(turn.given_up),
        )

    def _gone(self, numbers: Sequence[int]) -> tuple[Gone, ...]:
        return tuple((n, self.dealer.deal.wants[n].whys) for n in numbers)


# ---------------------------------------------------------------- at the driver


class Actors(Protocol):
    """Who plays and draws; `cluster.RayPlayer` is one."""

    ray: Any
    links: list[Any]

    async def some_actor(self) -> Any:
        """A link to an actor, once there is one."""


@dataclass(frozen=True, slots=True)
class FarEpisode:
    """An episode that an actor drew."""

    key: str
    way: Way
    condition: str
    severity: int | None
    trial: int
    where: Any  # the link to the actor that drew it


@dataclass(slots=True, eq=False)
class _Lane:
    """The turns in one domain."""

    domain: str
    link: Any = None  # to the actor that deals
    ahead: deque[tuple[FarTurn, Any]] = field(default_factory=deque)
    known: dict[tuple[int, int], bool] = field(default_factory=dict)
    told: int = 0
    over: tuple[Gone, ...] | None = None  # there are no more
    filling: asyncio.Task[None] | None = None


Lanes: TypeAlias = Sequence[_Lane]


async def far_episodes(schedule: Schedule, player: Actors) -> AsyncIterator[FarEpisode]:
    """The episodes of a schedule in its order, drawn by the actors of a player."""
    lanes = [_Lane(name) for name in schedule.deal.tables]
    try:
        while not schedule.full:
            for lane in lanes:
                if not lane.ahead and lane.over is None:
                    _fill(lane, lanes, schedule, player)
            await asyncio.gather(*(lane.filling for lane in lanes if not lane.ahead and lane.filling is not None))
            for lane in lanes:
                if not lane.ahead and lane.over:
                    _give_up(schedule, lane.over)
                    lane.over = ()
            if not (ready := [lane for lane in lanes if lane.ahead]):
                break
            first = min(ready, key=lambda lane: lane.ahead[0][0].turn.place)
            far, where = first.ahead.popleft()
            if len(first.ahead) < CHUNK:
                _fill(first, lanes, schedule, player)
            _take(schedule, far)
            for condition, way, severity, trial in schedule.played(far.turn, lambda far=far: far.clean):  # type: ignore[misc]
                yield FarEpisode(key_of(far.turn.task_id, condition, trial), way, condition, severity, trial, where)
        schedule.whole = True
    finally:
        for lane in lanes:
            if lane.filling is not None:
                lane.filling.cancel()


def _take(schedule: Schedule, far: FarTurn) -> None:
    """Note what the dealer did."""
    _give_up(schedule, far.gone)
    want = schedule.deal.wants[far.turn.want]
    want.got, want.taken, want.met = want.got + 1, want.taken + 1, want.met | far.met
    _hear(want, far.whys)


def _give_up(schedule: Schedule, gone: Sequence[Gone]) -> None:
    for n, whys in gone:
        want = schedule.deal.wants[n]
        want.got = want.wanted
        _hear(want, whys)


def _hear(want: Want, whys: Mapping[str, Counter[str]]) -> None:
    """A table that another actor took over counts from the start again."""
    for kind, counts in whys.items():
        want.whys[kind] = want.whys.get(kind, Counter()) | counts


def _fill(lane: _Lane, lanes: Lanes, schedule: Schedule, player: Actors) -> None:
    """Ask for more turns, unless that is under way or there are none."""
    if lane.over is None and (lane.filling is None or lane.filling.done()):
        if lane.filling is not None:
            lane.filling.result()  # raises what went wrong
        lane.filling = asyncio.ensure_future(_filled(lane, lanes, schedule, player))


async def _filled(lane: _Lane, lanes: Lanes, schedule: Schedule, player: Actors) -> None:
    while True:
        link, seat = await _dealing(lane, lanes, player), None
        if link is not lane.link:
            lane.link, seat = link, _seat(lane, schedule)
        try:
            turns, over, error = await link.actor.deal.remote(lane.domain, CHUNK, seat)
        except player.ray.exceptions.RayError:  # another one takes the table over
            lane.link = None
            await asyncio.sleep(AGAIN)
            continue
        for far in turns:
            turn = far.turn
            lane.known.update({(turn.want, number): False for number in turn.refused})
            lane.known[turn.want, turn.number] = True
            lane.ahead.append((far, link))
        lane.told, lane.over = lane.told + len(turns), over
        if error:
            raise CrosswindError(error)
        return


async def _dealing(lane: _Lane, lanes: Lanes, player: Actors) -> Any:
    """The actor at the table of a domain: the one that is there, unless it is dead or another has two tables fewer."""
    while True:
        await player.some_actor()
        if there := [link for link in player.links if link.alive]:
            break
    tables = Counter(id(other.link) for other in lanes)
    least = min(there, key=lambda link: tables[id(link)])
    if lane.link in there and tables[id(lane.link)] <= tables[id(least)] + 1:
        return lane.link
    return least


def _seat(lane: _Lane, schedule: Schedule) -> Seat:
    begin = f"{lane.domain}/"
    keys: Iterator[str] = iter(schedule.finished)  # type: ignore[call-overload]
    finished = frozenset(key for key in keys if key.startswith(begin))
    suite, limited = schedule.suite.model_dump_json(), schedule.limit is not None and schedule.shard[1] > 1
    return Seat(suite, schedule.seed, schedule.trials, finished, dict(lane.known), lane.told, limited)
