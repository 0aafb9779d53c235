"""The laws of careers: what a request needs was told and still holds, and only memory can tell it."""

from __future__ import annotations

from functools import cache

import pytest

from crosswind.base.errors import CannotDraw, Unfair
from crosswind.core.certify import certify
from crosswind.core.domain import SIZE, Domain
from crosswind.core.flow import rng_for
from crosswind.core.memory import Belief, Recall, Telling, complete, shown
from crosswind.core.registry import domains
from crosswind.core.session import Session
from crosswind.core.state import Undeclared
from crosswind.core.types import ASK, Task, ToolCall
from crosswind.episodes.career import Career, CareerPlan
from crosswind.episodes.career_laws import depends, judge_career
from crosswind.episodes.facts import FACTS, facts_of

OURS = CareerPlan(name="ours").where()
Chapters = list[tuple[Task, Recall]]


@cache
def career(domain: str) -> Career:
    made = Career(CareerPlan(name="test", episodes=30, distances=(20, 10, 5, 4, 3, 2)), domain, 1, 0)
    made.chapter(29)
    return made


def chapters(domain: str = "retail") -> tuple[Domain, Chapters]:
    made = career(domain)
    return made.domain, list(made.chapters)


def changed(found: Chapters, n: int, **update: object) -> Chapters:
    task, recall = found[n]
    return [*found[:n], (task, recall.model_copy(update=update)), *found[n + 1 :]]


def needing(found: Chapters, *, write: bool = False) -> int:
    """An episode that needs a detail."""
    return next(n for n, (_, recall) in enumerate(found) if recall.need and recall.need.key)


@pytest.mark.parametrize("domain", OURS)
def test_every_career_keeps_the_laws(domain: str) -> None:
    here, found = chapters(domain)
    judge_career(here, found)
    needs = [recall.need for _, recall in found if recall.need]
    assert len({need.fact for need in needs}) >= 5
    assert all(need.distance >= 1 for need in needs)


@pytest.mark.parametrize("domain", OURS)
def test_every_domain_has_eight_families_of_dependency(domain: str) -> None:
    found = domains[domain]
    assert len(facts_of(found)) >= 8  # type: ignore[arg-type]
    assert {fact.sort for fact in facts_of(found)} == {fact.sort for fact in FACTS}  # type: ignore[arg-type]


def off(monkeypatch: pytest.MonkeyPatch, law: str) -> None:
    """Go on as if there were no such law: what it refuses must pass then, so that nothing else refuses it."""
    monkeypatch.setattr(f"crosswind.episodes.career_laws.{law}", lambda *_: None)


def test_a_fact_that_was_never_told_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    domain, found = chapters()
    n = needing(found)
    need = found[n][1].need
    assert need is not None
    silent = [(t, r.model_copy(update={"told": tuple(x for x in r.told if x.fact != need.fact)})) for t, r in found]
    with pytest.raises(Unfair, match="never told"):
        judge_career(domain, silent)
    off(monkeypatch, "told")
    judge_career(domain, silent)


def test_a_fact_that_was_superseded_is_refused() -> None:
    domain, found = chapters()
    n = needing(found)
    need = found[n][1].need
    assert need is not None
    later = Telling(fact=need.fact, value=need.rival, words="It has changed.")
    with pytest.raises(Unfair, match="by what was told"):
        judge_career(domain, changed(found, n - 1, told=(*found[n - 1][1].told, later)))


def test_words_that_do_not_give_the_fact_are_refused() -> None:
    domain, found = chapters()
    need = found[needing(found)][1].need
    assert need is not None
    mute = [
        (t, r.model_copy(update={"told": tuple(x.model_copy(update={"words": "Remember it."}) for x in r.told)}))
        for t, r in found
    ]
    with pytest.raises(Unfair, match="does not give"):
        judge_career(domain, mute)


def test_a_request_that_states_the_fact_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    domain, found = chapters()
    n = needing(found)
    need = found[n][1].need
    assert need is not None
    blurted = changed(found, n, need=need.model_copy(update={"known": str(need.value)}))
    with pytest.raises(Unfair, match="unspoken"):
        judge_career(domain, blurted)
    off(monkeypatch, "unspoken")
    judge_career(domain, blurted)


def test_a_fact_that_leaks_into_a_later_result_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    domain, found = chapters()
    for n, (task, recall) in enumerate(found):
        need = recall.need
        if need is None or not career("retail").domain.family(task).level > 1:
            continue
        again = [*found[: n + 1], (task, recall.model_copy(update={"told": ()}))]  # the fact is needed once more
        left = [depends_on_rows(domain, t, r) for t, r in (found[n],)]
        if left[0]:
            with pytest.raises(Unfair, match="twin"):
                judge_career(domain, again)
            off(monkeypatch, "twin")
            judge_career(domain, again)
            return
    raise AssertionError("no episode of this career writes what it was told")


def depends_on_rows(domain: Domain, task: Task, recall: Recall) -> bool:
    need = recall.need
    assert need is not None
    family, state = domain.family(task), domain.state(task)
    return family.ends(task, state) != family.ends(complete(task, need, need.rival), state)


def test_a_request_that_ends_the_same_either_way_is_refused() -> None:
    domain, found = chapters()
    task, recall = found[needing(found)]
    assert recall.need is not None
    with pytest.raises(Unfair, match="depends"):
        depends(domain, task, recall.need.model_copy(update={"rival": recall.need.value}))


def test_the_user_does_not_repeat_what_was_told() -> None:
    domain, found = chapters()
    task, recall = found[needing(found)]
    assert recall.need is not None
    session = Session.of(domain, shown(task, recall))
    question = domain.family(task).details[recall.need.key].question
    answer = session.call(ToolCall(ASK, {"question": question})).content
    assert str(recall.need.value) not in answer
    assert "earlier conversation" in answer


def test_the_latest_word_of_somebody_to_be_believed_holds() -> None:
    def tell(value: str, by: str = "user", how: str = "set") -> Telling:
        return Telling.model_validate({"fact": "place", "value": value, "words": "", "by": by, "how": how})

    told = [tell("a"), tell("b"), tell("c", by="hearsay"), tell("d", how="meanwhile")]
    assert Belief(told).value("place") == "d"
    assert Belief([*told, tell("d", how="over")]).value("place") == "b"
    assert Belief().value("place") is None


def test_what_an_episode_left_is_there_in_the_next() -> None:
    """Rows that were carried are listed, take room, and count as the start of the next episode."""
    made = career("poi")
    domain = made.domain
    for task, _ in made.chapters:
        state = domain.state(task)
        assert state.changes() == {}
        new = [key for key in state.carried if key[0] == domain.records.tables.bookings]
        for _, id in new:
            row = state.row("x", "y") or state.carried[domain.records.tables.bookings, id]
            assert row is not None
            assert id in domain.records.bookings_of(state, row[domain.terms.who])
            if state.seeded(domain.records.tables.bookings, id) is None and row[domain.terms.status] != "cancelled":
                before = domain.records.left(domain.state(task.replace(carried={})), row[domain.terms.slot], 10)
                assert domain.records.left(state, row[domain.terms.slot], 10) < before
        if new:
            return
    raise AssertionError("nothing was booked in this career")


@pytest.mark.parametrize("domain", OURS)
def test_what_is_worked_out_once_is_what_the_rows_say(domain: str) -> None:
    """Bookings and free room come the same from shortcuts as from the rows, wherever episodes have left something."""
    made = career(domain)
    records, t = made.domain.records, made.domain.terms
    task = made.chapters[-1][0]
    left = made.domain.state(task).carried.tables[records.tables.bookings]
    kept = {row[t.who] for _, row in left}
    people = [*made.people, *kept, *(records.someone(rng_for("person", n), made.state)[0] for n in range(40))]
    for who in people:
        state, watched = made.domain.state(task), made.domain.state(task)
        watched.seen = set()  # no shortcut while somebody records
        assert [*records.bookings(state, who)] == [*records.bookings(watched, who)]
        for booking in records.bookings(state, who):
            rows = made.domain.state(task.replace(edits={f"{records.tables.bookings}/none": None}))  # nor here
            assert records.left(state, booking.slot, 10) == records.left(rows, booking.slot, 10)
    for n in range(records.groups(task.size)):
        group, state, watched = records.group(task, n), made.domain.state(task), made.domain.state(task)
        watched.seen = set()
        for kind in records.kind_names:
            assert records.things(state, group, kind) == records.things(watched, group, kind)
    assert made.domain.state(task).row(records.tables.bookings, left[0][0]) == left[0][1]


@pytest.mark.parametrize("domain", OURS)
def test_what_is_written_over_what_was_left_is_found(domain: str) -> None:
    """Rows that an episode writes count where they stand now, also those that an earlier one left."""
    made = career(domain)
    records, t = made.domain.records, made.domain.terms
    task, table = made.chapters[-1][0], records.tables.bookings
    (old, row), other = made.domain.state(task).carried.tables[table][-1], made.people[0]
    slots = [row[t.slot], next(b.slot for who in made.people for b in records.bookings(made.state, who))]
    found = []
    for edits in ({}, {f"{table}/none": None}):  # with edits, no index is used
        state = made.domain.state(task.replace(edits=edits))
        state.put(table, "new", {**row, t.who: other, t.slot: slots[1]})
        state.put(table, old, {**row, t.slot: slots[1]})
        left = [records.left(state, slot, 10) for slot in slots]
        ids = [records.new_id(state, slot, who) for slot in slots for who in (other, row[t.who])]
        found.append((left, ids, [records.bookings(state, who) for who in (other, row[t.who])]))
    assert found[0] == found[1]


def test_a_tool_cannot_look_for_rows_by_a_column_that_it_does_not_declare() -> None:
    made = career("retail")
    task, t, table = made.chapters[-1][0], made.domain.terms, made.domain.records.tables.bookings
    state = made.domain.state(task, fenced=True)
    slot = state.carried.tables[table][0][1][t.slot]
    state.reads = frozenset({f"{table}.{t.slot}"})
    assert state.later(table, t.slot, slot)
    state.reads = frozenset({f"{table}.{t.who}"})
    with pytest.raises(Undeclared, match=f"reads {table}.{t.slot}"):
        state.later(table, t.slot, slot)


@pytest.mark.parametrize("domain", OURS)
def test_a_request_that_is_called_hopeless_is_not_found_either(domain: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = career(domain)
    carried = made.chapters[-1][0].carried
    found = 0
    for family in made.domain.families.values():
        blank = family.blank(made.world, SIZE, "test").replace(carried=carried)
        state = made.domain.state(blank)
        for who in made.people:
            pinned = {made.domain.terms.who: who}
            if family.refusal or not family.is_hopeless(state, pinned):
                continue
            found += 1
            monkeypatch.setattr(type(family), "is_hopeless", lambda *_: False)
            with pytest.raises(CannotDraw):
                family.proposed(rng_for(domain, family.name, who), blank, pinned)
            monkeypatch.undo()
    if domain == "retail":
        assert found


def test_a_draw_that_ends_the_same_either_way_costs_no_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    certified: list[str] = []

    def counted(domain: Domain, task: Task) -> object:
        certified.append(task.id)
        return certify(domain, task)

    monkeypatch.setattr("crosswind.episodes.career_laws.certify", counted)
    domain, found = chapters()
    task, recall = found[needing(found)]
    assert recall.need is not None
    with pytest.raises(Unfair, match="ends the same"):
        depends(domain, task, recall.need.model_copy(update={"rival": recall.need.value}))
    assert not certified
    depends(domain, task, recall.need)
    assert certified == [task.id]
