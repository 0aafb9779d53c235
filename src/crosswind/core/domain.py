"""A domain and its task families: draw a task, build its world, solve it, and tell that it was solved.

`solve` works as an agent does, through tools; `ends` and `answer` say what is right by looking at the rows. The two are
written apart, and the certificate checks that they agree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from crosswind.base.errors import BadFile, CannotDraw, CrosswindError, Unfair
from crosswind.core import endings, entity_names, turns
from crosswind.core.blame import blaming
from crosswind.core.declarations import wrong_declarations
from crosswind.core.endings import words_for as words_for
from crosswind.core.flow import digest, once_each, rng_for
from crosswind.core.names import Namer
from crosswind.core.registry import domains
from crosswind.core.state import NOTHING_CARRIED, Carried, Derive, DerivedRows, FencedState, State
from crosswind.core.types import (
    ASK,
    Brief,
    Changes,
    Check,
    Finish,
    Key,
    Row,
    Solution,
    Split,
    Task,
    ToolCall,
    ToolResult,
    Tools,
    Verdict,
)
from crosswind.core.world import World
from crosswind.text import answers, speech, values
from crosswind.text.answers import Expected

if TYPE_CHECKING:
    from crosswind.core.perturbation import Perturbation

JUDGE = "3"  # version of the verifier; raised whenever a verdict may come out otherwise
SIZE = 3000  # entities in a world unless told otherwise

Reader = Callable[[str], Sequence[Any]]
Gathering = Generator[ToolCall, ToolResult, Any]


# ---------------------------------------------------------------- details of a request


@dataclass(frozen=True, slots=True)
class Detail:
    """One thing that a request may state, withhold or get wrong."""

    label: str  # what people call it
    question: str  # asks for it
    read: Reader  # finds values of its kind in a text
    words: tuple[str, ...]  # by which a question about it is recognised
    vague: str  # is in the query where it is withheld
    record: tuple[str, str, str] | None = None  # (tool, argument that is a detail too, key): where else it stands
    column: tuple[str, str] | None = None  # (table, column): the same record on the world's side
    known: str = ""  # is in the query where it was told in an earlier episode of a career


def read_ids(prefix: str, digits: int) -> Reader:
    """Finds ids such as P0012345."""
    return re.compile(rf"\b{prefix}\d{{{digits}}}\b").findall


def read_choice(choices: Mapping[str, Sequence[str]]) -> Reader:
    """Finds words for one of a few choices; `choices` maps each to the other words for it."""
    word_of = {w.lower(): choice for choice, words in choices.items() for w in (choice, *words)}
    pattern = re.compile(rf"\b({'|'.join(sorted(map(re.escape, word_of), key=len, reverse=True))})s?\b", re.IGNORECASE)
    return lambda text: [word_of[m.lower()] for m in pattern.findall(text)]


def read_counts(text: str) -> list[int]:
    """Finds whole numbers."""
    return [int(n) for n in values.numbers(text) if n == int(n)]


@lru_cache(maxsize=512)
def _values(read: Reader, text: str) -> tuple[Any, ...]:
    """The different values that a reader finds; a draw reads the same few texts again and again."""
    return tuple(dict.fromkeys(read(text)))


def gives_away(text: str, details: Mapping[str, Detail], task: Task) -> str | None:
    """A withheld detail that a text gives; naming it among other values of its kind does not settle it."""
    for key, value in task.withheld.items():
        found = set(_values(details[key].read, text))
        known = {v for k, v in task.brief.stated.items() if details[k].read is details[key].read}
        if value in found and len(found - known) < 2:
            return key
    return None


def recover(text: str, details: Mapping[str, Detail], keys: Iterable[str]) -> dict[str, Any]:
    """Take the details named `keys` out of a text by their kinds alone. Those of one kind are in the order of `keys`.

    A key is missing from what comes back where the text does not hold exactly one value for each key of that kind.
    """
    wanted: dict[int, list[str]] = {}
    for key in keys:
        wanted.setdefault(id(details[key].read), []).append(key)
    out: dict[str, Any] = {}
    for group in wanted.values():
        found = _values(details[group[0]].read, text)
        if len(found) == len(group):
            out |= zip(group, found, strict=True)
    return out


# ---------------------------------------------------------------- families


class Family:
    """A kind of task. A subclass says how to draw one, how to solve it and which ends are right."""

    name: ClassVar[str]
    level: ClassVar[int]  # 1: 2-3 gold calls, 2: 4-6, 3: 7-12
    refusal: ClassVar[bool] = False
    longest_walk: int = 160  # steps that the oracle may take
    queries: ClassVar[tuple[str, ...]] = ()  # wordings with {detail} in them
    house_rules: ClassVar[tuple[str, ...]] = ()  # rules of the house that `solve` and `ends` know how to follow
    domain: Domain
    details: Mapping[str, Detail]

    # -- to be written

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        """Details of a request that may make a task in this world; None: try again."""
        raise NotImplementedError

    def solve(self, brief: Brief) -> Solution:
        """Meet the request on the canonical interface, reading only the brief and the results."""
        raise NotImplementedError

    def ends(self, task: Task, start: State) -> list[Changes]:
        """Every set of changes that meets the request; none where it cannot be met."""
        raise NotImplementedError

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        """What the final message must state."""
        return ()

    def facts(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        """What the final message may leave out, but must not state otherwise: the time of a booking, its price."""
        return ()

    def figures(self, task: Task, start: State) -> tuple[Expected, ...]:
        """Figures that no row holds and a typed ending may report, each of its thing, such as what was compared."""
        return ()

    def obstacles(self, task: Task, state: State, rng: Random) -> list[dict[str, dict[str, Any] | None]]:
        """Ways to make the request impossible, each as edits."""
        return []

    def conceivable_ends(self, task: Task, start: State) -> list[Changes]:
        """Every end that could meet the request if rows stood otherwise: what a refusal proof must rule out."""
        return self.ends(task, start)

    def is_hopeless(self, state: State, pinned: Mapping[str, Any]) -> bool:
        """Is it plain that no request with these details can be met here? Then none is looked for."""
        return False

    def takes(self) -> Mapping[str, str]:
        """The canonical tools that a request of this kind takes where nothing stands in its way, each by the part that
        it plays, in the order of their first calls; none where nobody has written them down."""
        return {}

    # -- given

    def alternative(self, task: Task, key: str, rng: Random) -> Any:
        """Another value for a detail with which the request is met in another way; None where none was found."""
        state = self.domain.state(task)
        here = self.right(task, state)
        for _ in range(30):
            other = self.propose(rng, state, task.split)
            if other is None or other[key] == task.wanted[key]:
                continue
            changed = task.briefed(stated={**task.brief.stated, key: other[key]})
            if self.ends(changed, state) and self.right(changed, state) != here:
                return other[key]
        return None

    def right(self, task: Task, state: State) -> tuple[list[Changes], list[tuple[str, Any]]]:
        """What counts as right: the ends, and the values to be told."""
        return self.ends(task, state), self.told(task, state)

    def told(self, task: Task, state: State) -> list[tuple[str, Any]]:
        """The values to be told."""
        return [(e.kind, e.value) for e in self.answer(task, state, state)]

    def withhold(self, rng: Random) -> tuple[str, ...]:
        """Details that the user keeps to themselves until asked."""
        return ()

    def detail(self, brief: Brief, key: str) -> Gathering:
        """One detail: from the records where the policy says so, else as stated, else by asking."""
        detail = self.details[key]
        if brief.rules.get(key) == "records" and detail.record:
            tool, argument, out = detail.record
            whose = yield from self.detail(brief, argument)
            return (yield ToolCall(tool, {argument: whose})).content[out]
        if key in brief.stated:
            return brief.stated[key]
        return (yield ToolCall(ASK, {"about": key})).content

    def all(self, brief: Brief, *keys: str) -> Generator[ToolCall, ToolResult, list[Any]]:
        """Several details, gathered before the first write."""
        out = []
        for key in keys:
            out.append((yield from self.detail(brief, key)))
        return out

    def settled(self, task: Task, start: State) -> dict[str, Any]:
        """The request's details as they must be understood, records included."""
        out = task.wanted
        for key, rule in task.brief.rules.items():
            detail = self.details.get(key)
            if rule == "records" and detail and detail.record and detail.column:
                row = start.row(detail.column[0], out[detail.record[1]])
                if row is not None:
                    out[key] = row[detail.column[1]]
        return out

    def draw(self, rng: Random, seed: int, size: int, split: Split) -> Task:
        """A task that can be done, or for a refusal family one that provably cannot."""
        return self.proposed(rng, self.blank(seed, size, split))

    def blank(self, seed: int, size: int, split: Split) -> Task:
        """A task of a world that asks for nothing yet."""
        domain = self.domain.name
        return Task(id="", domain=domain, family=self.name, seed=seed, size=size, split=split, brief=NO_BRIEF)

    def proposed(self, rng: Random, blank: Task, pinned: Mapping[str, Any] | None = None) -> Task:
        """A task in the world of a blank one. Details that are `pinned` have these values."""
        domain, seed, size, split = self.domain, blank.seed, blank.size, blank.split
        state = domain.state(blank)
        for _ in range(0 if pinned and self.is_hopeless(state, pinned) else 400):
            stated = self.propose(rng, state, split)
            if stated is None:
                continue
            if pinned:
                stated = {key: pinned.get(key, value) for key, value in stated.items()}
            keep = self.withhold(rng)
            wording = rng.choice(self.queries)
            said = {k: self.details[k].vague if k in keep else v for k, v in stated.items()}
            try:
                query = wording.format_map(said)
            except (KeyError, IndexError, ValueError) as error:
                reason = f"the wording {wording!r} cannot be filled in ({type(error).__name__}: {error})"
                given = f"`propose` gives {', '.join(stated)}"
                raise Unfair("code", f"{domain.name}/{self.name}: {reason}; {given}") from None
            task = blank.replace(
                id=f"{domain.name}/{self.name}/{split}/{seed}" + (f"/{size}" if size != SIZE else ""),
                brief=Brief(
                    query=query[0].upper() + query[1:],
                    stated={k: v for k, v in stated.items() if k not in keep},
                    policy=domain.policy,
                    vague={k: self.details[k].vague for k in keep},
                ),
                withheld={k: stated[k] for k in keep},
            )
            if len(self.ends(task, state)) == 0:
                continue
            if not self.refusal:
                return task
            options = self.obstacles(task, state, rng)
            if options:
                return task.replace(obstacle=rng.choice(options))
        raise CannotDraw(
            f"{domain.name}/{self.name} found no task in world {seed} of size {size}: `propose` gave no request that "
            "has an end in 400 tries; try a larger size, or let it propose more"
        )

    def goal(self, task: Task, start: State, end: State, answer: str | Finish) -> bool:
        """Was the request met? Looks at rows and the ending only; `solve` has no part in it."""
        return all(check.passed for check in self.checks(task, start, end, answer))

    @property
    def typed(self) -> bool:
        """Do the checks read typed endings? A family with checks of its own gets them as words, unless it says so."""
        return type(self).checks is Family.checks

    def checks(self, task: Task, start: State, end: State, answer: str | Finish) -> tuple[Check, ...]:
        """The parts of the goal, each with its reason."""
        if isinstance(answer, Finish):
            return endings.checks(self, task, start, end, answer)
        changes = self.domain.normalise(end)
        said, answer = self.understood(task, answer), entity_names.plain(task, answer)
        ended = f"the final message is {_a(said)}" if answer.strip() else "there is no final message"
        if task.refuse:
            return (
                Check(name="refused", passed=speech.refuses(answer), why=ended),
                Check(name="untouched", passed=not changes, why=words_for(changes)),
            )
        expected = self.answer(task, start, end)
        told = answers.states(answer, expected, given=task.brief.query)
        if told and expected and _are_same_words(answer, task.brief.query):
            told = False  # to say the request back is to claim nothing
        done = (told or said == "answer") if expected else speech.completes(answer)
        false = answers.contradicts(answer, self.facts(task, start, end), given=task.brief.query) if told else []
        wanted = ", ".join(f"{e.kind} {e.value}" for e in expected) or "nothing in particular"
        return (
            Check(
                name="finished",
                passed=done and bool(answer.strip()),
                why=ended,
            ),
            Check(name="state", passed=self.reached(task, start, changes), why=words_for(changes)),
            Check(name="answer", passed=told, why=f"to be stated: {wanted}"),
            Check(
                name="facts", passed=not false, why=", ".join(f"{e.kind} {e.value} is stated otherwise" for e in false)
            ),
        )

    def understood(self, task: Task, text: str) -> speech.Speech:
        """What a message of the agent is. An offer to do more is an answer where nothing was to be written."""
        said = speech.classify(text)
        if said == "question" and speech.offers(text) and not any(self.conceivable_ends(task, self.domain.state(task))):
            return "answer"
        return said

    def reached(self, task: Task, start: State, changes: Changes) -> bool:
        """Do normalised changes amount to one of the right ends?"""
        return any(changes == self.domain.normal(task, end) for end in self.ends(task, start))


def _are_same_words(one: str, other: str) -> bool:
    pairs = zip_longest(*(re.finditer(r"\w+", text.casefold()) for text in (one, other)))
    return all(a and b and a[0] == b[0] for a, b in pairs)


def _a(said: str) -> str:
    return f"an {said}" if said[0] == "a" else f"a {said}"


NO_BRIEF = Brief(query="", stated={})


class Turned(Family):
    """A request that another one takes the place of, or is added to."""

    def __init__(self, domain: Domain, task: Task) -> None:
        self.domain, self.turns = domain, turns.requests(task)
        self.first = domain.families[task.family]
        self.families = [domain.families[turn.family] for turn in self.turns]
        self.last = self.families[-1]
        self.name, self.level, self.longest_walk = self.first.name, self.first.level, self.first.longest_walk  # type: ignore[misc]
        details: dict[str, Detail] = {}
        for family in (self.first, *self.families):
            details |= family.details
        self.details: Mapping[str, Detail] = details

    @property
    def typed(self) -> bool:
        return all(family.typed for family in self.families)

    def _turns(self, task: Task) -> list[Task]:
        """The requests in the world of a task, which may be another than that which this was made for."""
        world = {"seed": task.seed, "size": task.size, "edits": task.edits, "obstacle": task.obstacle}
        return [turn.replace(**world) for turn in self.turns]

    def propose(self, rng: Random, state: State, split: Split) -> dict[str, Any] | None:
        return self.first.propose(rng, state, split)

    def solve(self, brief: Brief) -> Solution:
        return self.first.solve(brief)  # the oracle goes on with the other where it hears of it

    def ends(self, task: Task, start: State) -> list[Changes]:
        ends: list[Changes] = [{}]
        for n, (turn, family) in enumerate(zip(self._turns(task), self.families, strict=True)):
            after = [(end, self._after(turn, end) if n else start) for end in ends]
            ends = [{**end, **more} for end, state in after for more in family.ends(turn, state)]
        return ends

    def _after(self, turn: Task, end: Changes) -> State:
        state = self.domain.state(turn)
        state.overlay.update(end)
        return state

    def _last(self, task: Task, start: State, end: State) -> tuple[Task, State, State]:
        """The last request, and the states between which the agent sees to it."""
        turn = self._turns(task)[-1]
        if len(self.turns) == 1:
            return turn, start, end
        before: list[Changes] = [{}]
        for one, family in zip(self._turns(task)[:-1], self.families, strict=False):
            before = [{**b, **e} for b in before for e in family.ends(one, self._after(one, b))]
        made = next((b for b in before if all(end.overlay.get(key) == row for key, row in b.items())), before[0])
        moved = turn.replace(edits={**turn.edits, **{f"{t}/{i}": row and dict(row) for (t, i), row in made.items()}})
        later = self.domain.state(moved)
        later.overlay.update({key: row for key, row in end.overlay.items() if made.get(key) != row})
        later.seen, later.told = end.seen, end.told
        return moved, self.domain.state(moved), later

    def answer(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        return self.last.answer(*self._last(task, start, end))

    def facts(self, task: Task, start: State, end: State) -> tuple[Expected, ...]:
        return self.last.facts(*self._last(task, start, end))

    def figures(self, task: Task, start: State) -> tuple[Expected, ...]:
        return self.last.figures(*self._last(task, start, start)[:2])

    def settled(self, task: Task, start: State) -> dict[str, Any]:
        return self.last.settled(self._turns(task)[-1], start)

    def alternative(self, task: Task, key: str, rng: Random) -> Any:
        return None

    def understood(self, task: Task, text: str) -> speech.Speech:
        return self.last.understood(self._turns(task)[-1], text)

    def checks(self, task: Task, start: State, end: State, answer: str | Finish) -> tuple[Check, ...]:
        if isinstance(answer, Finish):
            return endings.checks(self, task, start, end, answer)
        return super().checks(task.briefed(query=self.turns[-1].brief.query), start, end, answer)


# ---------------------------------------------------------------- domains


@lru_cache(maxsize=128)
def _rows(domain: str, seed: int, size: int, split: Split) -> DerivedRows:
    """Derived rows never change, so all worlds of one seed share them."""
    return DerivedRows()


@once_each(limit=16)
def _carried(rows: Mapping[str, Row | None]) -> Carried:
    """What earlier episodes left, taken apart once for all states of an episode."""
    return Carried({_key(k): row for k, row in rows.items()})


class Domain:
    """A canonical world with families of tasks in it."""

    name: ClassVar[str]
    summary: ClassVar[str]
    world_class: ClassVar[type[World]]
    policy: ClassVar[str]
    hosted: Literal["", "started", "shared"] = ""  # by a server: one for each world, or one for all that nothing resets
    grounds: ClassVar[bool] = True  # clean solutions use no value that was not shown; not so in other people's golds
    namers: ClassVar[Mapping[str, Namer]] = {}  # made-up names by what they name: "thing", "group", "person"
    named: ClassVar[frozenset[str]] = frozenset()  # columns that requests speak of: another value is another request
    bank: ClassVar[Mapping[str, Any] | Path | None] = None  # other words, of a plug-in; by default the file next to it
    families: dict[str, Family]

    def derive(self, seed: int, size: int, split: Split) -> Derive:
        """The function that gives any row of a world."""
        raise NotImplementedError

    def kinds(self) -> tuple[str, ...]:
        """The kinds of things that requests speak of, if the domain has such."""
        return ()

    def normalise(self, state: State) -> Changes:
        """The changes that matter: leftovers without consequence are dropped, new rows go by their content."""
        return state.changes()

    def normal(self, task: Task, changes: Changes) -> Changes:
        """Changes as `normalise` would give them."""
        if not changes:
            return {}
        state = self.state(task)
        state.overlay.update(changes)
        return self.normalise(state)

    def vary(self, task: Task, table: str, column: str, value: Any, salt: object) -> Any:
        """Another value that the column might hold; the same one where it must not move."""
        return value

    def state(self, task: Task, *, fenced: bool = False) -> State:
        edits = {_key(k): row for k, row in (*task.edits.items(), *task.obstacle.items())}
        edits |= {_key(k): row for event in task.events for k, row in event.now.items()}
        make = FencedState if fenced else State
        cache = _rows(self.name, task.seed, task.size, task.split)
        derive = self.derive(task.seed, task.size, task.split)
        carried = _carried(task.carried) if task.carried else NOTHING_CARRIED
        return make(derive, edits, cache, seed=task.seed, size=task.size, split=task.split, carried=carried)

    def world(self, task: Task, *, fenced: bool = False) -> World:
        world = self.world_class(self.state(task, fenced=fenced), task.blocked)
        if task.events:
            world.await_events(task.events)
        return world

    def prepare(self, task: Task, layers: Sequence[Perturbation]) -> Domain:
        """Where the oracle walks: here, unless calls cost too much to be made at every draw, or nobody knows a way."""
        return self

    def tools(self, task: Task) -> Tools:
        """Every canonical tool that an episode of the task shows at some time."""
        return self.world_class.specs

    def family(self, task: Task) -> Family:
        if task.changes and turns.is_turned(task):
            return Turned(self, task)
        return self.families[task.family]

    def task(self, family: str, seed: int, *, size: int = SIZE, split: Split = "test") -> Task:
        """The task of a family that a seed stands for."""
        with blaming():
            return self.families[family].draw(rng_for("task", self.name, family, split, seed), seed, size, split)

    def nth(
        self, n: int, seed: int, *, size: int = SIZE, split: Split = "test", levels: Sequence[int] = ()
    ) -> Task | None:
        """The nth task of those that a run goes through: each family in turn, without end. None: there are no more."""
        names = [name for name, family in self.families.items() if not levels or family.level in levels]
        if not names:
            raise BadFile(f"{self.name} has no family of level {', '.join(map(str, levels))}; levels are 1, 2 and 3")
        return self.task(names[n % len(names)], seed + n, size=size, split=split)

    def judge(self, task: Task, end: State, final: str | Finish) -> Verdict:
        """Was the task done? Decided on the canonical end state and the final message or typed ending."""
        checks = self.family(task).checks(task, self.state(task), end, final)
        return Verdict(outcome="pass" if all(c.passed for c in checks) else "fail", checks=checks, judge=JUDGE)

    def varied(self, task: Task, rows: Iterable[Key], moves: Callable[[str, str, str], bool], salt: object) -> Task:
        """The same request in a world whose rows differ wherever `moves(table, id, column)`."""
        state = self.state(task)
        edits: dict[str, dict[str, Any] | None] = {}
        for table, id in sorted(rows):
            row = state.start(table, id)
            if row is None:
                continue
            new = {c: self.vary(task, table, c, v, (salt, id)) if moves(table, id, c) else v for c, v in row.items()}
            if new != row:
                edits[f"{table}/{id}"] = new
        return task.replace(edits={**task.edits, **edits})


@lru_cache(maxsize=8_192)
def _key(text: str) -> Key:
    table, _, id = text.partition("/")
    return table, id


def shifted_number(value: float, salt: object, low: float, high: float, step: float) -> Any:
    """Another number of the same range and grid."""
    steps = round((high - low) / step) + 1
    hop = 1 + int.from_bytes(digest("vary", salt)[:4], "big") % (steps - 1)
    at = (round((value - low) / step) + hop) % steps
    moved = low + at * step
    return int(moved) if isinstance(value, int) else round(moved, 6)


def edit(table: str, id: str, row: Row, **changes: Any) -> dict[str, dict[str, Any] | None]:
    """An edit of some columns of a row."""
    return {f"{table}/{id}": {**row, **changes}}


def _check(domain: Domain) -> None:
    """Refuse to register a domain whose tools are declared wrongly. What takes a world to see, the audit sees."""
    hosted = getattr(domain, "hosted", "")  # a server is asked when it is needed
    world = None if hosted else getattr(domain, "world_class", None)
    for _, why in wrong_declarations(world) if world else ():
        raise CrosswindError(f"domain {domain.name}: {why}")


domains.check = _check
