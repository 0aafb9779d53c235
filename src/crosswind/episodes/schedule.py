"""The episodes of a suite in order: tasks are dealt to conditions; an episode is drawn, and so certified, on demand."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import count
from math import ceil
from typing import Any, Generic, TypeVar

from crosswind.base.errors import BadFile, CannotPerturb, CrosswindError
from crosswind.core.domain import SIZE, Domain
from crosswind.core.draw import Drawn, draw
from crosswind.core.flow import rng_for
from crosswind.core.memory import Recall
from crosswind.core.oracle import Walk
from crosswind.core.registry import domains
from crosswind.core.types import Model, Split, Task
from crosswind.episodes.reasons import reason_of, why_not
from crosswind.episodes.suite import CLEAN, Condition, Suite, band_of

LOOKED = 12  # tasks that are looked at for each one wanted, before a condition is taken not to apply
SHARED = 4  # shifted episodes for each task and clean episode
NOT_CHOSEN = "chance chose others of its one_of; play more tasks, or give it a condition of its own"
RECENT = 128  # tasks that are kept with their clean walks


# ---------------------------------------------------------------- tasks


class Deck:
    """The tasks of a domain by number: levels in turn, and the families of a level in turn.

    A domain that has an order of its own (`nth`), and an end, keeps them.
    """

    def __init__(
        self, domain: Domain, seed: int, *, split: Split = "test", size: int = SIZE, levels: Sequence[int] = ()
    ) -> None:
        self.domain, self.seed, self.split, self.size, self.within = domain, seed, split, size, tuple(levels)
        self._own: list[str] | None = None  # the families of its tasks in the domain's own order
        if type(domain).nth is not Domain.nth:
            self._own = []
            while task := self._nth(len(self._own)):
                self._own.append(task.family)
        found: dict[int, list[str]] = {}
        for name, family in domain.families.items():
            if not levels or family.level in levels:
                found.setdefault(family.level, []).append(name)
        if not found:
            raise BadFile(f"{domain.name} has no family of level {', '.join(map(str, levels))}; levels are 1, 2 and 3")
        self.levels = sorted(found)
        self.families = [found[level] for level in self.levels]

    @property
    def end(self) -> int | None:
        """How many tasks there are; None: without end."""
        return None if self._own is None else len(self._own)

    @property
    def round(self) -> int:
        """How many tasks it takes for every family to have come."""
        return len(self.levels) * max(map(len, self.families)) if self._own is None else len(self._own)

    def place(self, n: int) -> tuple[int, int]:
        """Which level, and which family of it, has a number."""
        if self._own is not None:
            level = self.levels.index(self.domain.families[self._own[n]].level)
            return level, self.families[level].index(self._own[n])
        level = n % len(self.levels)
        return level, n // len(self.levels) % len(self.families[level])

    def task(self, n: int) -> Task:
        task = None if self._own is None else self._nth(n)
        level, family = self.place(n)
        name = self.families[level][family]
        return task or self.domain.task(name, self.seed + n, split=self.split, size=self.size)

    def _nth(self, n: int) -> Task | None:
        return self.domain.nth(n, self.seed, split=self.split, size=self.size, levels=self.within)


def tasks(
    domain: Domain, seed: int, *, split: Split = "test", size: int = SIZE, levels: Sequence[int] = ()
) -> Iterator[Task]:
    """Yield the tasks of a domain: levels alternate, and so do the families of a level."""
    deck = Deck(domain, seed, split=split, size=size, levels=levels)
    return map(deck.task, count() if deck.end is None else range(deck.end))


# ---------------------------------------------------------------- dealing


@dataclass(slots=True)
class Want:
    """What a condition wants of a domain, and how far it came."""

    condition: Condition
    domain: str
    wanted: int
    band: str  # the tier of the one kind, or clean, or stacks
    kind: str  # if it comes in several conditions, which then take the same tasks
    turn: float = 0.0  # its place among the conditions of its band in the domain, from 0 to 1
    got: int = 0
    seen: int = 0  # tasks that were looked at
    looked: set[int] = field(default_factory=set)  # those of them that are in the present window
    window: range = range(0)  # the numbers that are open to it
    levels: Counter[int] = field(default_factory=Counter)  # how often it took each level,
    tried: Counter[int] = field(default_factory=Counter)  # and looked at each
    taken: int = 0  # tasks that it took; `got` counts those it gave up as well
    met: set[str] = field(default_factory=set)  # kinds that were drawn
    whys: dict[str, Counter[str]] = field(default_factory=dict)  # kind -> why it was not drawn, and how often

    def has_met(self, kind: str) -> bool:
        """Was the kind drawn? What an earlier run drew is not drawn again; a kind of such stacks counts as drawn."""
        return kind in self.met or (self.taken > 0 and (self.condition.kind != "" or kind not in self.whys))

    @property
    def due(self) -> float:
        """When its next episode comes: from 0 at the start of the suite to 1 at its end."""
        return (self.got + self.turn) / self.wanted


@dataclass(slots=True)
class _Table:
    """A domain at which tasks are dealt: its deck, and who had what."""

    deck: Deck
    shared: int  # this many tasks are open to all conditions before any takes a further one
    turn: int  # where it begins among levels and families
    levels: Counter[tuple[str, int]] = field(default_factory=Counter)  # (band, level) -> how often
    families: Counter[tuple[str, int, int]] = field(default_factory=Counter)  # the same for families
    uses: Counter[tuple[str, int]] = field(default_factory=Counter)  # the same for the tasks that are shared
    chosen: set[tuple[str, int]] = field(default_factory=set)  # tasks of the kinds that come in several conditions
    paired: bytearray = field(default_factory=bytearray)  # by number of a task: was it taken?


class Deal:
    """Which condition comes next, and which task it meets.

    Conditions, tiers and domains advance together. A condition takes the task whose level it has had least often, then
    the one whose level, family and number the conditions of its tier in this domain have had least often, then one that
    has a clean episode already. So levels and families are mixed alike in every condition, in every tier and in every
    beginning of the suite, as far as conditions apply to them; and tiers meet the same tasks. Conditions of one and the
    same kind, at several severities say, take the same tasks.

    Tasks are shared: a domain opens one for every `SHARED` shifted episodes, at least as many as a condition wants and
    at most one round of its families; more only where a condition finds too few that it applies to.
    """

    def __init__(self, suite: Suite, seed: int) -> None:
        conditions = suite.all_conditions()
        kinds = Counter(condition.kind for condition in conditions if condition.kind)
        self.wants: list[Want] = []
        for condition in conditions:
            kind = condition.kind
            band = band_of(condition.recipe.kinds())
            for name in suite.where(condition):
                wanted = condition.tasks or suite.tasks
                self.wants.append(Want(condition, name, wanted, band, kind if kinds[kind] > 1 else ""))
        self.bands = list(dict.fromkeys(want.band for want in self.wants))
        alike = Counter((want.domain, want.band) for want in self.wants)
        before = Counter[tuple[str, str]]()
        for want in self.wants:
            want.turn = before[want.domain, want.band] / alike[want.domain, want.band]
            before[want.domain, want.band] += 1
        # the place among ours, so that nothing depends on what else is loaded, or on a domain's being in the list
        ours = [name for name in domains.names() if not domains.origin(name)]
        self.tables: dict[str, _Table] = {}
        for name in dict.fromkeys(want.domain for want in self.wants):
            deck = Deck(domains[name], seed, split=suite.split, levels=suite.levels)
            here = [want for want in self.wants if want.domain == name]
            shifted = sum(want.wanted for want in here if want.condition.stack)
            most = max(ceil(shifted / SHARED), *(want.wanted for want in here))
            whole = ceil(most / len(deck.levels)) * len(deck.levels)
            self.tables[name] = _Table(deck, min(deck.round, whole), bisect_left(ours, name))

    def turns(self, domain: str = "") -> Iterator[tuple[float, int]]:
        """When each turn comes, and the number of the condition that has it: the order of the suite.

        The caller goes through what is offered to the condition and takes the first task that fits. Nothing in one
        domain depends on another, so the turns of all domains are those of each, sorted.
        """
        heap = [(want.due, n) for n, want in enumerate(self.wants) if domain in ("", want.domain)]
        heapify(heap)
        while heap:
            due, n = heappop(heap)
            want = self.wants[n]
            yield due, n
            if want.got < want.wanted:
                heappush(heap, (want.due, n))

    def offers(self, want: Want) -> Iterator[int]:
        """Numbers of tasks for a condition to look at, until one is taken; none when it has looked at enough."""
        table, before = self.tables[want.domain], want.got
        while want.got == before:
            if len(want.looked) == len(want.window):
                start, end = want.window.stop, table.deck.end
                stop = start + (table.deck.round if start else table.shared)
                want.window = range(start, stop if end is None else min(stop, end))
                want.looked.clear()
            if not want.window or want.seen == LOOKED * want.wanted + 60:
                want.got = want.wanted  # it looked at enough, or at all there are
                return
            number = min((n for n in want.window if n not in want.looked), key=lambda n: self._rank(table, want, n))
            want.looked.add(number)
            want.seen += 1
            want.tried[table.deck.place(number)[0]] += 1
            yield number

    def _rank(self, table: _Table, want: Want, number: int) -> tuple[int, ...]:
        """What speaks against a task: the least comes first."""
        if not want.condition.stack:
            return (number,)
        (level, family), band = table.deck.place(number), want.band
        levels, families = len(table.deck.levels), len(table.deck.families[level])
        return (
            want.kind != "" and (want.kind, number) not in table.chosen,
            want.levels[level],
            want.tried[level],
            table.levels[band, level],
            (level - table.turn - self.bands.index(band)) % levels,
            table.families[band, level, family],
            table.uses[band, number],
            number >= len(table.paired) or not table.paired[number],
            (family - table.turn) % families,
            number,
        )

    def take(self, want: Want, number: int) -> bool:
        """A condition takes a task; is it the first to take it, so that its clean episode is due?"""
        table, band = self.tables[want.domain], want.band
        level, family = table.deck.place(number)
        want.got += 1
        want.taken += 1
        want.levels[level] += 1
        table.levels[band, level] += 1
        table.families[band, level, family] += 1
        if number < table.shared:
            table.uses[band, number] += 1
        if want.kind:
            table.chosen.add((want.kind, number))
        table.paired.extend(bytes(max(0, number + 1 - len(table.paired))))
        first, table.paired[number] = not table.paired[number], True
        return first


# ---------------------------------------------------------------- episodes


def key_of(task_id: str, condition: str, trial: int) -> str:
    """Which episode of a run this is."""
    return f"{task_id}|{condition}|{trial}"


def pair_of(task_id: str, trial: int) -> str:
    """What the clean and the shifted episodes of one task and trial share."""
    return f"{task_id}|{trial}"


class CareerMark(Model):
    """How an episode belongs to a career (`career.py`)."""

    task: Task  # complete, and with the state that the agent left before it
    recall: Recall  # what is told in passing, and what it takes to remember
    forfeited: str = ""  # why it could not be played in that state
    stale: bool = False  # it failed, and would have passed had the rival of the fact been in force; set by runs/streams


class StreamMark(Model):
    """Where in a stream an episode stands (`stream.py`)."""

    number: int  # of the episode in its stream, from 0
    version: int  # of the release, from 1
    touched: bool = False  # the certified way differs from that of the canonical interface
    notice: str = ""  # the changelog, as the policy shows it
    memory: Any = None  # what the agent keeps after the episode, as JSON
    career: CareerMark | None = None


@dataclass(frozen=True, slots=True)
class Episode:
    """A task under a condition, to be played."""

    condition: str
    task_id: str  # of the task before any layer, which its clean episode shares
    drawn: Drawn
    severity: int | None = None  # where the condition has one
    trial: int = 0
    mark: StreamMark | None = None  # of an episode in a stream

    @property
    def key(self) -> str:
        return key_of(self.task_id, self.condition, self.trial)


def under(
    domain: Domain, condition: Condition, task: Task, seed: int, clean: Walk | None = None, *, want: Want | None = None
) -> Drawn | None:
    """A task under a condition, or None where the condition does not apply to it or finds no fair draw.

    A `want` is told which kinds were drawn, and why others were not.
    """
    picks = condition.recipe.pick(rng_for("suite", seed, condition.name, task.id))
    try:
        drawn = draw(domain, task, picks, seed, strict=len(condition.recipe.kinds()) == 1, clean=clean)
    except CannotPerturb as cannot:
        if cannot.at_fault == "code":
            raise  # a plug-in or domain that no episode may use
        if want:
            for kind, _ in picks:
                want.whys.setdefault(kind, Counter())[reason_of(cannot, task)] += 1
        return None
    if want:
        want.met |= {layer.kind for layer in drawn.layers}
        for why in drawn.left_out:  # each begins with its kind
            want.whys.setdefault(why.split(" ")[0], Counter())[reason_of(CannotPerturb(why), task)] += 1
    return drawn if drawn.layers or not condition.stack else None


@dataclass(slots=True)
class _Recent:
    """A task that was dealt lately, with the oracle's clean walk once it is known."""

    task: Task
    clean: Walk | None = None


D = TypeVar("D")  # a draw, or what stands for one that another process made


@dataclass(frozen=True, slots=True)
class DealtTurn(Generic[D]):
    """A task that a condition took."""

    due: float
    want: int  # number of the condition in the deal
    task_id: str
    number: int  # of the task in the deck
    refused: tuple[int, ...]  # numbers of the tasks before it to which the condition does not apply
    drawn: D | None  # None: it is clean, or finished, or known
    first: bool  # nobody took the task before, so its clean episode is due
    given_up: tuple[int, ...]  # numbers of the conditions that found no task since the turn before

    @property
    def place(self) -> tuple[float, int]:
        """Its place in the order of the suite."""
        return self.due, self.want


class TaskDealer:
    """Deals the tasks of a suite, or of one of its domains, and draws what is not finished. Holds recent tasks only.

    `known` says of some conditions and tasks whether the one applies to the other: these are not drawn.
    """

    def __init__(
        self,
        suite: Suite,
        seed: int,
        trials: int,
        finished: Container[str],
        *,
        domain: str = "",
        known: Mapping[tuple[int, int], bool] | None = None,
    ) -> None:
        self.seed, self.trials, self.finished, self.domain, self.known = seed, trials, finished, domain, known or {}
        self.deal = Deal(suite, seed)
        self.given_up: list[int] = []  # since the last turn
        self._recent: OrderedDict[tuple[str, int], _Recent] = OrderedDict()

    def __iter__(self) -> Iterator[DealtTurn[Drawn] | None]:
        """The turns; None after a draw that failed, so that a caller can let others work."""
        for due, n in self.deal.turns(self.domain):
            yield from self._turn(due, n)

    def _turn(self, due: float, n: int) -> Iterator[DealtTurn[Drawn] | None]:
        """The next task to which a condition applies."""
        want = self.deal.wants[n]
        domain, condition = domains[want.domain], want.condition
        refused: list[int] = []
        for number in self.deal.offers(want):
            dealt, drawn, applies = self._dealt(want.domain, number), None, self.known.get((n, number))
            if applies is None and condition.stack and not self.is_finished(dealt.task.id, condition.name):
                drawn = under(domain, condition, dealt.task, self.seed, dealt.clean, want=want)
                applies = drawn is not None
            if drawn is not None:
                dealt.clean = drawn.certificate.clean
            if applies is False:
                refused.append(number)
                yield None
                continue
            first = self.deal.take(want, number)
            gone, self.given_up = tuple(self.given_up), []
            yield DealtTurn(due, n, dealt.task.id, number, tuple(refused), drawn, first, gone)
            return
        self.given_up.append(n)

    def is_finished(self, task: str, condition: str) -> bool:
        """Are all trials of a task under a condition?"""
        return all(key_of(task, condition, trial) in self.finished for trial in range(self.trials))

    def clean(self, turn: DealtTurn[Drawn]) -> Drawn | None:
        """The task of a turn without layers; None where it is unfair by itself, such as a tie."""
        want = self.deal.wants[turn.want]
        dealt = self._dealt(want.domain, turn.number)
        try:
            drawn = draw(domains[want.domain], dealt.task, (), self.seed, clean=dealt.clean)
        except CannotPerturb as cannot:
            if cannot.at_fault == "code":
                raise
            return None
        dealt.clean = drawn.certificate.clean
        return drawn

    def _dealt(self, name: str, number: int) -> _Recent:
        """The task of a number in the deck of a domain."""
        found = self._recent.pop((name, number), None) or _Recent(self.deal.tables[name].deck.task(number))
        self._recent[name, number] = found
        if len(self._recent) > RECENT:
            self._recent.popitem(last=False)
        return found


class Schedule:
    """The episodes of a suite in order, drawn when they are called for.

    However far a run comes, the episodes so far are a fair part of the whole (`Deal`), and the clean episode of a task
    comes before its shifted ones. Only recent tasks are held in memory. Finished episodes are counted, not drawn.

    With a shard `(i, n)`, only every nth task, from the ith on, is played, clean and shifted. Episodes of other shards
    are drawn all the same: which task a condition meets depends on which draws are fair.
    """

    def __init__(
        self,
        suite: Suite,
        seed: int,
        *,
        trials: int = 1,
        limit: int | None = None,
        finished: Container[str] = (),
        shard: tuple[int, int] = (1, 1),
    ) -> None:
        self.suite, self.seed, self.trials, self.limit, self.finished = suite, seed, trials, limit, finished
        self.shard = shard
        self.planned = 0  # episodes of this shard so far, finished ones included
        self.whole = False  # all were drawn
        self._counted = 0  # episodes of all shards so far
        self._owners: dict[str, int] = {}  # task -> its shard, where there are several
        self._dealer = TaskDealer(suite, seed, trials, finished)
        self.deal = self._dealer.deal

    @property
    def total(self) -> int:
        """How many episodes there are; an estimate until all were drawn."""
        if self.whole:
            return self.planned
        more = sum(want.wanted - want.got for want in self.deal.wants) * self.trials
        if self.limit is not None:
            more = min(self.limit - self._counted, more)
        return self.planned + ceil(more / self.shard[1])

    @property
    def never_met(self) -> dict[str, str]:
        """Kinds that conditions consist of and that no task met, though all were looked at, each with the reason."""
        out: dict[str, str] = {}
        asked = [(kind, want) for want in self.deal.wants for kind in want.condition.recipe.named()]
        for kind in dict.fromkeys(kind for kind, _ in asked):
            wants = [want for one, want in asked if one == kind]
            if all(want.got >= want.wanted and not want.has_met(kind) for want in wants):
                whys = sum((want.whys.get(kind, Counter()) for want in wants), Counter[str]())
                out[kind] = why_not(why for why, _ in whys.most_common())
        return out

    @property
    def never_played(self) -> dict[str, str]:
        """Kinds that conditions name, alone or in a `one_of`, and that no stack got, each with the reason."""
        out = self.never_met
        for kind in dict.fromkeys(kind for want in self.deal.wants for kind in want.condition.recipe.options()):
            wants = [want for want in self.deal.wants if kind in want.condition.recipe.options()]
            if kind in out or any(want.got < want.wanted or kind in want.met for want in wants):
                continue
            whys = sum((want.whys.get(kind, Counter()) for want in wants), Counter[str]())
            out[kind] = why_not(why for why, _ in whys.most_common()) if whys else NOT_CHOSEN
        return out

    @property
    def full(self) -> bool:
        """Has it as many episodes as it may have?"""
        return self.limit is not None and self._counted >= self.limit

    def __iter__(self) -> Iterator[Episode | None]:
        """Episodes that are not finished; None after a draw that failed, so that a caller can let others work."""
        turns = iter(self._dealer)
        while not self.full:
            try:
                turn = next(turns)
            except StopIteration:
                break
            if turn is None:
                yield None
                continue
            for condition, drawn, severity, trial in self.played(turn, partial(self._dealer.clean, turn)):
                yield Episode(condition, turn.task_id, drawn, severity, trial)
        self.whole = True

    def played(self, turn: DealtTurn[D], clean: Callable[[], D | None]) -> Iterator[tuple[str, D, int | None, int]]:
        """Condition, draw, severity and trial of each episode of a turn; before its own the clean ones, if missing."""
        if turn.first:
            unshifted: D | None = None
            for trial, due in self._due(turn.task_id, CLEAN):
                # a limit counts fair episodes of all shards
                if unshifted is None and (due or (self.limit is not None and self.shard[1] > 1)):
                    unshifted = clean()
                    if unshifted is None:  # the task is unfair by itself: it is passed over
                        self.planned -= due
                        self._counted -= 1
                        break
                if due and unshifted is not None:
                    yield CLEAN, unshifted, None, trial
        condition = self.deal.wants[turn.want].condition
        for trial, due in self._due(turn.task_id, condition.name) if condition.stack else ():
            if due and turn.drawn is not None:
                yield condition.name, turn.drawn, condition.severity, trial

    def _due(self, task: str, condition: str) -> Iterator[tuple[int, bool]]:
        """Count the trials of a task under a condition: which of them are still to be played here?"""
        return ((trial, self._count(task, key_of(task, condition, trial))) for trial in range(self.trials))

    def _uncount(self, due: bool) -> None:
        """Take an episode out that there is not: its task is unfair by itself, and is passed over."""
        self.planned -= due
        self._counted -= 1

    def _count(self, task: str, key: str) -> bool:
        """Count an episode; is it still to be played here?"""
        if self.full:
            return False
        self._counted += 1
        if self.shard[1] > 1 and self._owners.setdefault(task, len(self._owners) % self.shard[1] + 1) != self.shard[0]:
            return False
        self.planned += 1
        return key not in self.finished


def require_applicable(suite: Suite, seed: int) -> None:
    """Raise `CrosswindError`, with the reason, if a kind that a suite names applies to none of its tasks.

    The schedule itself is the judge; it goes no further than until each kind was met or given up.
    """
    left = {kind for condition in suite.all_conditions() for kind in condition.recipe.named()}
    schedule = Schedule(suite, seed)
    for episode in schedule:
        left -= {layer.kind for layer in episode.drawn.layers} if episode else set()
        if left <= schedule.never_met.keys():
            break
    if never := schedule.never_met:
        told = "; ".join(f"{kind} applies to no task of the suite {suite.name!r}: {why}" for kind, why in never.items())
        raise CrosswindError(f"{told}. Leave it out, or choose another domain")


def episodes(suite: Suite, seed: int) -> Iterator[Episode]:
    """All episodes of a suite, in the order of its schedule."""
    return (episode for episode in Schedule(suite, seed) if episode is not None)
