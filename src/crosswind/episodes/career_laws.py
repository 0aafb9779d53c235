"""The laws of a whole career: what a request needs was told, holds now, and can be known from memory alone."""

from __future__ import annotations

from collections.abc import Sequence

from crosswind.base.errors import Unfair
from crosswind.core.certify import certify
from crosswind.core.domain import Domain
from crosswind.core.memory import Belief, Need, Recall, Telling, Value, complete, shown
from crosswind.core.oracle import walk
from crosswind.core.state import State
from crosswind.core.types import Changes, Task

Chapter = tuple[Task, Recall]  # the complete task as the oracle comes to it


def judge_career(domain: Domain, chapters: Sequence[Chapter]) -> None:
    """Check every law on every episode that needs a fact. Raises `Unfair`."""
    for n, (_, recall) in enumerate(chapters):
        if recall.need is not None:
            judge_need(domain, chapters, n)


def judge_need(domain: Domain, chapters: Sequence[Chapter], n: int) -> None:
    """Check every law on episode `n`, which needs a fact. Raises `Unfair`."""
    task, recall = chapters[n]
    assert recall.need is not None
    rival = ends_elsewhere(domain, task, recall.need)  # most proposals that are no good fail here, so it comes first
    told(domain, chapters, n, recall.need)
    unspoken(domain, task, recall, recall.need)
    twin(domain, chapters, n, recall.need)
    certify(domain, rival)


def told(domain: Domain, chapters: Sequence[Chapter], n: int, need: Need) -> None:
    """Told: the value follows from what was shown before, and the words that told it give it."""
    heard = [telling for _, recall in chapters[:n] for telling in recall.told if telling.fact == need.fact]
    believed = Belief(heard).value(need.fact)
    if believed != need.value:
        what = "was never told" if believed is None else f"is {believed!r} by what was told"
        raise Unfair("told", f"episode {n} needs {need.fact} to be {need.value!r}, but it {what}")
    source = next(t for t in reversed(heard) if t.value == need.value and t.by != "hearsay" and t.how != "over")
    if not _gives(domain, chapters[n][0], need, source):
        raise Unfair("told", f"{source.words!r} does not give {need.fact} {need.value!r}")


def _gives(domain: Domain, task: Task, need: Need, telling: Telling) -> bool:
    if need.rule:
        clause = need.policies[str(need.value)].rstrip(".").removeprefix("The user says: ")
        return clause.lower() in telling.words.lower()
    return set(domain.family(task).details[need.key].read(telling.words)) == {need.value}


def unspoken(domain: Domain, task: Task, recall: Recall, need: Need) -> None:
    """Unspoken: the request as shown gives neither the fact nor its rival, and reads the same with either."""
    rival = complete(task, need, need.rival)
    swapped = need.model_copy(update={"value": need.rival, "rival": need.value})
    here = shown(task, recall.model_copy(update={"told": ()}))
    there = shown(rival, recall.model_copy(update={"told": (), "need": swapped}))
    if (here.brief.query, here.brief.policy) != (there.brief.query, there.brief.policy):
        raise Unfair(
            "unspoken", f"the request tells {need.fact}: {here.brief.query!r} and {there.brief.query!r} differ"
        )
    if need.key and need.value in domain.family(task).details[need.key].read(here.brief.query):
        raise Unfair("unspoken", f"the request states {need.fact} {need.value!r}: {here.brief.query!r}")


def depends(domain: Domain, task: Task, need: Need) -> None:
    """Depends: with the rival value the request can be met too, and in another way. Raises `Unfair`."""
    certify(domain, ends_elsewhere(domain, task, need))


def ends_elsewhere(domain: Domain, task: Task, need: Need) -> Task:
    """The request with the rival value, which has an end and another one. Raises `Unfair`."""
    rival = complete(task, need, need.rival)
    family, state = domain.family(task), domain.state(task)
    ends = family.ends(rival, state)
    if not ends:
        raise Unfair("depends", f"{need.fact} could not be {need.rival!r} here, so the request gives it away")
    if ends == family.ends(task, state) and family.told(rival, state) == family.told(task, state):
        raise Unfair("depends", f"with {need.fact} {need.rival!r} the request ends the same as with {need.value!r}")
    return rival


def twin(domain: Domain, chapters: Sequence[Chapter], n: int, need: Need) -> None:
    """Twin: in a career with the rival value, the world is the same until the request that needs it.

    Equal rows give equal results to every call, so only memory can tell the two careers apart.
    """
    since = max((m for m in range(n) for t in chapters[m][1].told if _sets(t, need)), default=0)
    for m in range(since + 1, n):
        task, recall = chapters[m]
        other = recall.need
        if other is None or other.fact != need.fact or other.value != need.value:
            continue
        with_rival = complete(task, other.model_copy(update={"rival": need.rival}), _value(other, need.rival))
        if _left(domain, task) != _left(domain, with_rival):
            raise Unfair("twin", f"episode {m} leaves rows that depend on {need.fact}, which later results show")


def _value(need: Need, rival: Value) -> Value:
    return rival if not need.rule or str(rival) in need.policies else need.rival


def _sets(telling: Telling, need: Need) -> bool:
    named = telling.fact == need.fact and telling.value == need.value
    return named and telling.by != "hearsay" and telling.how == "set"


def _left(domain: Domain, task: Task) -> Changes:
    state: State = walk(domain, task).session.world.state
    return state.changes()
