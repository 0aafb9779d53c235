"""Each law refuses a layer that breaks it, gives the reason in words, and nothing else is wrong with that layer."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from crosswind.base.errors import CannotPerturb, Unfair
from crosswind.core import laws
from crosswind.core.audit import audit_kind, examine
from crosswind.core.certify import certify
from crosswind.core.draw import Drawn, draw
from crosswind.core.oracle import walk
from crosswind.core.perturbation import Perturbation
from crosswind.core.state import State
from crosswind.core.types import Changes, Task
from crosswind.perturbations.action.semantic_rename import SemanticRename
from crosswind.perturbations.observation.transient_error import TransientError
from crosswind.perturbations.query.underspecified import Underspecified
from tests import toys
from tests.toys import poi, registered, task

Checks = Callable[..., None]


def refused(task: Task, *layers: Perturbation) -> Unfair:
    with pytest.raises(Unfair) as caught:
        certify(poi(), task, layers)
    return caught.value


def examined(task: Task, *layers: Perturbation) -> Unfair | None:
    """What the laws that an audit looks at say of layers which every draw's laws let pass."""
    try:
        examine(Drawn(poi(), task, layers, certify(poi(), task, layers)))
    except Unfair as unfair:
        return unfair
    return None


def _city_with(task: Task) -> str:
    """Another city of the same world that has a place of the same category."""
    family, state = poi().family(task), poi().state(task)
    for seed in range(50):
        other = family.propose(Random(seed), state, task.split)
        if other and other["category"] == task.brief.stated["category"] and other["city"] != task.brief.stated["city"]:
            return str(other["city"])
    raise AssertionError("no other city found")


CASES: list[tuple[str, str, Callable[[Task], Perturbation], str, list[str]]] = [
    # law, family, layer, words in the reason, functions of `laws` that must be off for it to pass
    ("kept", "best_price", lambda t: toys.ChangesMeaning(old=t.wanted["city"], new=_city_with(t)), "meaning", ["kept"]),
    ("stated", "best_price", lambda t: toys.AddsRival(other=_city_with(t)), "exactly one value", ["stated"]),
    ("grounded", "best_price", lambda t: toys.SecretPin(), "pin", ["grounded"]),
    ("bites", "best_price", lambda t: toys.Elsewhere(), "never meets", ["bites"]),
    ("cues", "best_price", lambda t: toys.Nameless(docs="gone"), "nothing true tells", ["cues"]),
    ("cues", "best_price", lambda t: toys.Nameless(docs="swapped"), "is taken for", ["cues"]),
    ("mentions", "best_price", lambda t: toys.SpeaksOf(about="{ghost}"), "ghost", ["mentions"]),
    (
        "mentions",
        "best_price",
        lambda t: toys.SpeaksOf(about="find_places", names={"find_places": "spots"}),
        "gives away 'find_places'",
        ["mentions"],
    ),
]


@pytest.mark.parametrize(
    ("law", "family", "layer", "words", "off"), CASES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)]
)
def test_a_bad_layer_is_refused_for_one_law(
    monkeypatch: pytest.MonkeyPatch,
    law: str,
    family: str,
    layer: Callable[[Task], Perturbation],
    words: str,
    off: list[str],
) -> None:
    given = task(family)
    bad = layer(given)
    unfair = refused(given, bad)
    assert unfair.law == law
    assert words in unfair.reason
    for name in off:
        monkeypatch.setattr(laws, name, lambda *_, **__: None)
    certify(poi(), given, (bad,))  # no other law is broken


DEEP: list[tuple[str, str, Callable[[Task], Perturbation], str, str]] = [
    ("value", "best_price", lambda t: toys.RemembersElsewhere(), "outside its notes", "value"),
    ("value", "best_price", lambda t: toys.NotesThatAreNotJson(), "not JSON", "value"),
    ("round trip", "best_price", lambda t: toys.LopsidedNames(), "weather", "round_trip"),
    ("closed", "best_price", lambda t: toys.OpenTomb(), "still works", "closed"),
    ("twin", "best_price", lambda t: toys.HoldsTheAnswer(best=best_place(t)), "holds the answer", "twin"),
]


def best_place(task: Task) -> str:
    rows = walk(poi(), task).calls[0].result.content
    return str(max(rows, key=lambda r: r["rating"])["place_id"])


@pytest.mark.parametrize(
    ("law", "family", "layer", "words", "off"), DEEP, ids=[f"{c[0]}-{i}" for i, c in enumerate(DEEP)]
)
def test_an_audit_refuses_for_one_law(
    monkeypatch: pytest.MonkeyPatch, law: str, family: str, layer: Callable[[Task], Perturbation], words: str, off: str
) -> None:
    given = task(family)
    bad = layer(given)
    with registered(type(bad)):
        certify(poi(), given, (bad,))  # what each draw checks does not see it
        unfair = examined(given, bad)
        assert unfair is not None
        assert unfair.law == law
        assert words in unfair.reason
        monkeypatch.setattr(laws, off, lambda *_: None)
        again = examined(given, bad)
        assert again is None or again.law == "secrets"  # anyone who holds the answer keeps a secret as well


def test_bites_refuses_a_layer_that_changes_nothing() -> None:
    unfair = refused(task("best_price"), toys.DoesNothing())
    assert unfair.law == "bites"
    assert "changes nothing" in unfair.reason


def test_kept_is_checked_beside_a_layer_that_moves() -> None:
    """A layer that moves the request is not a cover for one that says it does not."""
    given = task("hold_visit")
    moved = draw(poi(), given, ["changed_mind"], 1).layers[0]
    assert moved.model_dump()["key"] != "city"  # it moves something else
    swap = toys.ChangesMeaning(old=given.wanted["city"], new=_city_with(given))
    assert refused(given, swap, moved).law == "kept"


def test_refusal_refuses_an_oracle_that_gave_up_early() -> None:
    """Where refusing is right anyway, a layer that breaks every call is still unfair."""
    unfair = refused(task("sold_out"), toys.FailsAlways())
    assert unfair.law == "refusal"
    assert "before it could know" in unfair.reason


def test_value_refuses_a_layer_that_writes_into_the_task() -> None:
    with registered(toys.WritesIntoTask):
        complaints = audit_kind("toy", poi())
    assert [c.law for c in complaints] == ["value"]
    assert "changes the task" in complaints[0].reason


def test_stated_refuses_a_value_lost_in_rewording() -> None:
    unfair = refused(task("best_price"), toys.LosesValue())
    assert unfair.law == "stated"
    assert "city" in unfair.reason


def test_stated_refuses_a_withheld_value_that_the_query_gives() -> None:
    given = task("best_price")
    city = given.wanted["city"]
    leaky = given.briefed(stated={"category": given.wanted["category"]}).replace(withheld={"city": city})
    unfair = refused(leaky)
    assert unfair.law == "stated"
    assert "city is withheld, but the query gives it" in unfair.reason


def test_names_must_be_such_as_providers_take() -> None:
    given = task("best_price")
    assert "two tools are called 'pay'" in refused(given, SemanticRename(names={"find_places": "pay"})).reason
    for name in ("", "{x}", "a b", "x" * 65):
        assert refused(given, SemanticRename(names={"find_places": name})).law == "names"


def test_a_layer_that_does_not_fit_the_task_is_refused() -> None:
    unfair = refused(task("best_price"), Underspecified(gaps={"nope": "something"}))
    assert unfair.law == "value"
    assert "does not fit" in unfair.reason


def test_a_change_of_mind_comes_in_time_for_any_order_of_work() -> None:
    """Where a write cannot be taken back, the change is voiced with what the write needs to know."""
    met = set()
    for seed in range(40):
        for family in ("swap_visit", "cancel_visit", "move_visit"):
            drawn = draw(poi(), poi().task(family, seed), ["changed_mind"], seed, severity=5, strict=False)
            if drawn.layers:
                met.add(drawn.certificate.task.changes[0].after)
    assert met == {"list_reservations"}


def test_replay_refuses_a_loss_of_information() -> None:
    unfair = refused(task("best_price"), toys.DropsField())
    assert unfair.law == "replay"
    assert "rating" in unfair.reason


def test_budget_refuses_an_endless_way_round() -> None:
    unfair = refused(task("best_price"), toys.Endless())
    assert unfair.law == "budget"
    assert "steps" in unfair.reason


def test_seeded_refuses_a_shared_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    with registered(toys.Unseeded):
        with pytest.raises(CannotPerturb, match="seeded: 'toy' drawn twice"):
            draw(poi(), task("best_price"), ["toy"], 0)
        monkeypatch.setattr(laws, "seeded", lambda *_: None)
        assert audit_kind("toy", poi()) == []


def test_order_refuses_ranks_in_disorder_and_two_of_a_kind() -> None:
    rename = SemanticRename(names={"find_places": "spots"})
    fault = TransientError(tools=("find_places",), times=1, text="Try again.")
    given = task("best_price")
    certify(poi(), given, (fault, rename))
    assert refused(given, rename, fault).law == "order"
    assert "does not stack" in refused(given, rename, rename).reason


def test_goal_is_judged_without_the_oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    """A family whose rows say another end than its solution is refused, whatever the layers."""
    given = task("hold_visit")
    family = poi().family(given)
    right = type(family).ends

    def wrong(task: Task, start: State) -> list[Changes]:
        end = right(family, task, start)[0]
        return [{key: {**row, "seats": 49} if row and "seats" in row else row for key, row in end.items()}]

    monkeypatch.setattr(family, "ends", wrong)
    unfair = refused(given)
    assert unfair.law == "goal"
    assert "state" in unfair.reason


def test_goal_refuses_last_words_that_the_user_would_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    family = type(poi().families["best_price"])
    monkeypatch.setattr(family, "understood", lambda self, task, text: "question")
    asked = refused(task("best_price"))
    assert asked.law == "goal"
    assert "takes the oracle's last words for a question" in asked.reason
    monkeypatch.setattr(family, "understood", lambda self, task, text: "answer")
    assert certify(poi(), task("best_price")).proof == "replay"


def test_the_goal_does_not_call_solve(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_solve(*_: object) -> None:
        raise AssertionError("the goal called solve")

    for domain in (poi(),):
        for name, family in domain.families.items():
            given = domain.task(name, 1)
            gold = walk(domain, given)
            monkeypatch.setattr(type(family), "solve", no_solve)
            assert domain.judge(given, gold.session.world.state, gold.final).outcome == "pass"


def test_idle_refuses_what_nobody_need_do(monkeypatch: pytest.MonkeyPatch) -> None:
    given = task("best_price")
    monkeypatch.setattr(poi().family(given), "answer", lambda *_: ())
    unfair = refused(given)
    assert unfair.law == "idle"


def test_refusals_need_a_proof_a_claim_and_clean_hands() -> None:
    unproved = refused(task("earliest_slot"), toys.Blocks(tool="list_slots"))
    assert unproved.law == "refusal"
    assert "not proved" in unproved.reason

    given = task("hold_visit")
    edits = poi().family(given).obstacles(given, poi().state(given), Random(0))[0]
    unclaimed = refused(given, toys.Sabotages(edits=edits))
    assert unclaimed.law == "refusal"
    assert "does not claim" in unclaimed.reason

    half = refused(task("book_visit"), toys.LeavesHalf(tool="pay"))
    assert half.law == "refusal"
    assert "left something behind" in half.reason
    certify(poi(), task("book_visit"), (toys.Blocks(tool="pay"),))

    useless = refused(task("book_visit"), toys.Blocks(tool="weather"))
    assert useless.law == "refusal"
    assert "should be refused" in useless.reason
