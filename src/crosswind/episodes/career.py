"""Careers: tasks of one user in one world that persists, some of which need what was told in an earlier one.

A `CareerPlan` says, as data, how many there are and how far each fact is from its need. A `Career` is drawn along the
way of the oracle: facts are told in passing, and later requests need them (`facts.py`). When it is played, each task
starts from the state that this agent left, and is certified there; a task that has become impossible is forfeited.
`career_laws.py` judges a whole career.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random
from typing import Any, Self

from pydantic import Field, model_validator

from crosswind.base.errors import CannotDraw, CannotPerturb, CrosswindError, Unfair
from crosswind.core.certify import Certificate, certify
from crosswind.core.domain import SIZE, Domain
from crosswind.core.draw import Drawn
from crosswind.core.flow import digest, rng_for
from crosswind.core.memory import Need, Recall, Telling, Twist, Value, complete, shown
from crosswind.core.registry import domains
from crosswind.core.types import Key, Model, Row, Split, Task
from crosswind.domains.desk import Desk
from crosswind.domains.graphs import Graph
from crosswind.episodes.career_laws import depends, judge_need
from crosswind.episodes.facts import BY_NAME, CAREER, How, KnownFact, facts_of
from crosswind.episodes.schedule import CareerMark, Episode, StreamMark

DISTANCES = (50, 40, 30, 20, 16, 12, 10, 8, 6, 5, 4, 3, 2, 1)
TRIES = 40  # draws of one task
PLACES = 400  # places that are looked at for one fact
REGULARS = 3  # people whom requests are mostly about
Told = dict[int, tuple[Value, How]]
Carried = dict[str, dict[str, Any] | None]


def check_once(what: str, names: Sequence[str]) -> None:
    """Raise `ValueError` if a plan names something twice."""
    for n, name in enumerate(names):
        if name in names[:n]:
            raise ValueError(f"{what} name {name} twice; take one out")


class CareerPlan(Model):
    """The length of careers, and what agents must remember in them."""

    name: str
    summary: str = ""
    domains: tuple[str, ...] = ()  # empty: all of ours; each has careers of its own
    split: Split = "test"
    levels: tuple[int, ...] = ()  # empty: all
    episodes: int = Field(default=60, ge=8, le=10_000)
    facts: tuple[str, ...] = ()  # families of dependency; empty: all that the domain has
    distances: tuple[int, ...] = DISTANCES  # episodes from a fact to its need, dealt in turn
    twists: tuple[Twist, ...] = ("plain", "superseded", "contradicted", "expired")

    @model_validator(mode="after")
    def _sound(self) -> Self:
        check_once("domains", self.domains)
        check_once("facts", self.facts)
        for name in self.facts:
            if name not in BY_NAME:
                raise ValueError(f"no fact {name!r}; facts are {', '.join(BY_NAME)}")
        if not self.distances or min(self.distances) < 1:
            raise ValueError(f"distances are {self.distances}; expected one or more episodes each")
        if not self.twists:
            raise ValueError("twists are empty; name at least plain")
        return self

    def where(self) -> list[str]:
        return list(self.domains or (name for name in domains.names() if isinstance(domains[name], Desk)))

    def conditions(self, frozen: bool) -> tuple[str, ...]:
        """What the episodes of a run go by."""
        return ("career",)

    def timeline(self, domain: str, seed: int, number: int, *, frozen: bool = False) -> Career:
        return _drafted(self, domain, seed, number).again(frozen=frozen)


# ---------------------------------------------------------------- what is told when


@dataclass(slots=True)
class Item:
    """One fact: when its values are told, and when it is needed."""

    fact: KnownFact
    twist: Twist
    value: Value
    rival: Value
    told: Told  # number of the episode -> value and how
    at: int  # the episode that needs it
    since: int  # the episode in which the value in force was told


def _tellings(twist: Twist, at: int, since: int, value: Value, rival: Value, rng: Random) -> Told | None:
    """When what is told for a need; None where the twist has no room."""
    told: Told = {since: (value, "set")}
    between = range(since + 1, at)
    if twist == "superseded":
        if since < 1:
            return None
        told[rng.randrange(max(0, since - 20), since)] = (rival, "set")
    elif twist == "contradicted":
        if not between:
            return None
        told[rng.choice(between)] = (rival, "hearsay")
    elif twist == "expired":
        if len(between) < 2:
            return None
        first, last = sorted(rng.sample(between, 2))
        told |= {first: (rival, "meanwhile"), last: (rival, "over")}
    return told


class Career:
    """One career in one domain. `frozen`: every fact that a request needs is stated in it, for comparison."""

    def __init__(self, plan: CareerPlan, domain: str, seed: int, number: int, *, frozen: bool = False) -> None:
        found = domains[domain]
        if not isinstance(found, Desk):
            raise CrosswindError(f"{domain} has no careers: they take a domain of things, slots and bookings")
        self.plan, self.domain, self.number, self.frozen = plan, found, number, frozen
        self.salt = ("career", seed, number, domain)
        self.world = int.from_bytes(digest(*self.salt)[:3], "big")
        first = next(iter(found.families.values()))
        self.state = found.state(first.blank(self.world, SIZE, plan.split))
        rng = rng_for(*self.salt, "people")
        self.people = [found.records.someone(rng, self.state)[0] for _ in range(REGULARS)]
        self.items = self._items(rng_for(*self.salt, "items"))
        self.told = {n: self._told(n) for n in range(plan.episodes)}
        names = [n for n, f in found.families.items() if not f.refusal and (not plan.levels or f.level in plan.levels)]
        if not names:
            raise CrosswindError(f"{domain} has no tasks of level {', '.join(map(str, plan.levels))} for a career")
        self.families = rng_for(*self.salt, "families").sample(names, len(names))
        self.chapters: list[tuple[Task, Recall]] = []  # complete tasks as the oracle comes to them, drawn when needed,
        self.certificates: list[Certificate] = []  # and what proves them
        self.carried: Carried = {}  # as the agent left it
        self.untold: tuple[Telling, ...] = ()  # what forfeited episodes would have told

    def again(self, *, frozen: bool) -> Career:
        """The same career from its beginning, for another agent. What was drawn of it is drawn once."""
        other = copy(self)
        other.frozen, other.carried, other.untold = frozen, {}, ()
        return other

    # -- the plan of facts

    def _items(self, rng: Random) -> list[Item]:
        """Each fact once, then details that have a second value; in both, long distances find their places first."""
        wanted, plan = self.plan.facts, self.plan
        facts = [fact for fact in facts_of(self.domain) if not wanted or fact.name in wanted]
        rng.shuffle(facts)
        again = [fact for fact in facts if fact.role]
        distances = [d for d in plan.distances if d < plan.episodes] or [1]
        count = len(facts) + len(again)
        dealt = [distances[i % len(distances)] for i in range(count)]
        rng.shuffle(dealt)
        turn = rng.randrange(len(plan.twists))
        entries = [(fact, dealt[i], turn + i) for i, fact in enumerate((*facts, *again))]
        firsts, seconds = (
            sorted(some, key=lambda entry: -entry[1]) for some in (entries[: len(facts)], entries[len(facts) :])
        )
        out: list[Item] = []
        for fact, distance, twist in (*firsts, *seconds):
            before = next((item for item in out if item.fact is fact), None)
            if item := self._item(fact, before, distance, twist, out, rng):
                out.append(item)
        return out

    def _item(
        self, fact: KnownFact, before: Item | None, distance: int, i: int, others: list[Item], rng: Random
    ) -> Item | None:
        value, rival = fact.values(self.domain, self.state, rng)
        told_at = {n for other in others for n in other.told}
        needed_at = {other.at for other in others}
        for turn in range(PLACES):
            reach = max(1, distance - turn // 40)  # a little nearer where there is no room
            twist = self.plan.twists[(i + turn // 10) % len(self.plan.twists)]
            at = rng.randrange(reach, self.plan.episodes)
            if before is not None:
                if at - reach <= before.at:
                    continue
                first = before.told[min(before.told)][0]
                if value in (first, before.value):
                    value, _ = fact.values(self.domain, self.state, rng)
                    continue
                told: Told | None = {at - reach: (value, "set")}
                twist, rival = "superseded", first
            else:
                told = _tellings(twist, at, at - reach, value, rival, rng)
            if told is not None and at not in needed_at and told_at.isdisjoint(told):
                return Item(fact, twist, value, rival, told, at, at - reach)
        return None

    def _told(self, n: int) -> tuple[Telling, ...]:
        return tuple(
            item.fact.telling(self.domain, value, how, (*self.salt, n))
            for item in self.items
            for at, (value, how) in item.told.items()
            if at == n
        )

    # -- drawing along the way of the oracle

    def chapter(self, n: int) -> tuple[Task, Recall]:
        """The complete task of an episode as the oracle would come to it, and what it tells and needs."""
        while len(self.chapters) <= n:
            number = len(self.chapters)
            item = next((item for item in self.items if item.at == number), None)
            carried = self._left(number)
            made = item and self._needing(item, number, carried)
            certificate, need = made or (self._filler(number, carried), None)
            task = certificate.task
            if need is not None and item is not None:
                need = need.model_copy(
                    update={
                        "twist": item.twist,
                        "distance": number - item.since,
                        "distractors": self._distractors(item, number),
                    }
                )
            self.chapters.append((task, Recall(told=self.told[number], need=need, policy=CAREER)))
            self.certificates.append(certificate)
        return self.chapters[n]

    def _distractors(self, item: Item, number: int) -> int:
        """Episodes since the fact that state another value of the same detail."""
        between = [task for task, _ in self.chapters[item.since : number]]
        families = [(task, self.domain.family(task)) for task in between]
        return sum(
            key in task.brief.stated and task.brief.stated[key] != item.value
            for task, family in families
            if isinstance(family, Graph) and item.fact.fits(family) and (key := item.fact.key(family))
        )

    def _left(self, n: int) -> Carried:
        """The rows that the oracle left before an episode."""
        if not n:
            return {}
        changes = self.certificates[n - 1].gold.session.world.state.changes()
        return {**self.chapters[n - 1][0].carried, **left_by(changes)}

    def _proposed(self, family: str, n: int, turn: int, pinned: Mapping[str, Any], carried: Carried) -> Task:
        """A task of a family in the world as it was left, not yet certified. Raises `CannotDraw`."""
        made, rng = self.domain.families[family], rng_for(*self.salt, "task", n, turn)
        blank = made.blank(self.world, SIZE, self.plan.split).replace(carried=carried)
        task = made.proposed(rng, blank, pinned)
        return task.replace(id=f"{task.id}/{self.number}.{n}")

    def _filler(self, n: int, carried: Carried) -> Certificate:
        """A task that needs nothing but its request, mostly about the same few people."""
        for turn in range(TRIES):
            rng = rng_for(*self.salt, "filler", n, turn)
            who = {self.domain.terms.who: rng.choice(self.people)} if rng.random() < 0.7 and turn < 4 else {}
            with suppress(CannotDraw, Unfair):
                family = self.families[(n + turn) % len(self.families)]
                return certify(self.domain, self._proposed(family, n, turn, who, carried))
        raise CannotPerturb(f"no task of episode {n} of a career is fair in {self.domain.name}; use another seed")

    def _needing(self, item: Item, n: int, carried: Carried) -> tuple[Certificate, Need] | None:
        """A task that depends on a fact, so that its rival leads elsewhere; None if no draw is fair.

        Most draws end the same with the rival, so that is asked before anything is certified.
        """
        fact = item.fact
        names = [name for name in self.families if fact.fits(self.domain.families[name])]
        for turn in range(TRIES if names else 0):
            family = self.domain.families[names[(n + turn) % len(names)]]
            assert isinstance(family, Graph)
            rng = rng_for(*self.salt, "needing", n, turn)
            pinned: dict[str, Any] = {fact.key(family): item.value} if fact.role else {}
            if fact.role != "who" and turn < 8:
                pinned[self.domain.terms.who] = rng.choice(self.people)
            with suppress(CannotDraw, Unfair):
                drawn = self._proposed(family.name, n, turn, pinned, carried)
                need = fact.need(self.domain, drawn, item.value, item.rival, rng)
                if need is None:
                    continue
                task = complete(drawn, need, item.value)
                recall = Recall(told=self.told[n], need=need, policy=CAREER)
                judge_need(self.domain, [*self.chapters, (task, recall)], n)
                return certify(self.domain, task), need
        return None

    # -- playing

    def episode(self, n: int, passed: Sequence[bool] = ()) -> Episode:
        """Episode `n` in the state that the agent left. Where that made it impossible, it is forfeited."""
        planned, recall = self.chapter(n)
        recall = recall.model_copy(update={"told": (*self.untold, *recall.told)})
        if self.frozen:
            recall = recall.model_copy(update={"need": None})
        same = self.carried == planned.carried
        exactly = same and [*self.carried] == [*planned.carried]  # rows are listed in the order of their writing
        task = planned if exactly else planned.replace(carried=dict(self.carried))
        why = ""
        try:
            if recall.need is not None and any(telling.fact == recall.need.fact for telling in recall.told):
                raise Unfair("unspoken", f"the request would tell {recall.need.fact} itself, which nobody told before")
            drawn = recalled(self.domain, task, recall, self.certificates[n] if same else None)
            if recall.need is not None and not same:
                depends(self.domain, task, recall.need)
        except (CannotDraw, Unfair) as unfair:
            why, drawn = str(unfair), recalled(self.domain, planned, recall)
        mark = StreamMark(number=n, version=1, career=CareerMark(task=task, recall=recall, forfeited=why))
        return Episode("career", task.id, drawn, trial=self.number, mark=mark)

    def after(self, mark: StreamMark, changes: Mapping[Key, Row | None]) -> None:
        """Take up what an episode left."""
        career = mark.career
        assert career is not None
        self.carried = {**career.task.carried, **left_by(changes)}
        self.untold = career.recall.told if career.forfeited else ()


@lru_cache(maxsize=2)  # agents that are compared play one career in turn
def _drafted(plan: CareerPlan, domain: str, seed: int, number: int) -> Career:
    return Career(plan, domain, seed, number)


def left_by(changes: Mapping[Key, Row | None]) -> Carried:
    """Changes as the next task carries them."""
    return {f"{table}/{id}": None if row is None else dict(row) for (table, id), row in changes.items()}


def recalled(domain: Domain, task: Task, recall: Recall, certificate: Certificate | None = None) -> Drawn:
    """A complete task as something to play: certified as it is, and shown without the fact that it needs."""
    found = replace(certificate or certify(domain, task), task=shown(task, recall))
    gold, family = found.gold, domain.family(task)
    if found.task.brief.query != task.brief.query:  # otherwise the certificate says so already
        for check in family.checks(found.task, domain.state(task), gold.session.world.state, gold.final):
            if not check.passed:
                why = f"with what is told in passing, the oracle's end fails {check.name!r}: {check.why}"
                raise Unfair("goal", why)
    return Drawn(domain, task, (), found, recall=recall)
