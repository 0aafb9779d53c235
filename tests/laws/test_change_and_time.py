"""Kinds that change things midway, take simulated time, or hide tools: what is refused, and who fails by them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

import pytest

from crosswind.agents._solver import Solver
from crosswind.agents.oracle import Oracle
from crosswind.base.errors import CannotPerturb, Unfair
from crosswind.core import laws
from crosswind.core.certify import certify
from crosswind.core.drawing import Drawn, draw_unaudited
from crosswind.core.oracle import give_up
from crosswind.core.perturbation import Perturbation
from crosswind.core.registry import domains
from crosswind.core.session import Session
from crosswind.core.types import CHANGED, SAY, Message, ToolCall, Tools
from crosswind.core.world import World
from crosswind.episodes.play import judge, play
from crosswind.episodes.recipe import kinds_of
from crosswind.perturbations.action.deadline import Deadline
from crosswind.perturbations.action.price_moves import PriceMoves
from crosswind.perturbations.action.taken_at import TakenAt
from crosswind.perturbations.action.tool_catalogue import NOT_OPEN, ToolCatalogue
from crosswind.perturbations.domain.amended_rules import AmendedRules
from crosswind.perturbations.domain.closed_today import ClosedToday


def draws(kind: str, severity: int = 3, count: int = 6, *families: str) -> list[Drawn]:
    """Draws of a kind in two domains."""
    out = list[Drawn]()
    for name in ("poi", "retail"):
        found = 0
        for n in range(60):
            every = families or tuple(domains[name].families)
            family = every[n % len(every)]
            if found == count or family not in domains[name].families:
                break
            try:
                out.append(draw_unaudited(domains[name], domains[name].task(family, n), [kind], n, severity=severity))
                found += 1
            except CannotPerturb:
                continue
    assert out
    return out


def law_of(drawn: Drawn, layer: Perturbation) -> str:
    """The law that a layer breaks in the place of the one that was drawn."""
    with pytest.raises(Unfair) as caught:
        certify(drawn.domain, drawn.base, (layer,))
    return caught.value.law


def outcome(drawn: Drawn, agent: object) -> str:
    return judge(asyncio.run(play(drawn, agent, "agent"))).outcome  # type: ignore[arg-type]


def session_of(drawn: Drawn) -> Session:
    return Session.of(drawn.domain, drawn.certificate.task, drawn.layers)


# ---------------------------------------------------------------- time


def test_a_clock_without_slack_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    hasty: list[tuple[Drawn, Perturbation]] = []
    for drawn in draws("deadline", 5):
        (layer,) = drawn.layers
        assert isinstance(layer, Deadline)
        last = max(i for i, step in enumerate(drawn.certificate.gold.steps) if 0 in step.fired)
        hasty.append((drawn, layer.model_copy(update={"until": last + 1})))
        assert law_of(*hasty[-1]) == "slack"
        assert law_of(drawn, layer.model_copy(update={"until": 1})) in ("replay", "refusal")
    monkeypatch.setattr(laws, "leisurely", lambda *_: None)
    for drawn, layer in hasty:  # nothing else refuses them
        certify(drawn.domain, drawn.base, (layer,))


def test_a_deadline_is_certified_with_its_retries_and_pages() -> None:
    made = 0
    for seed in range(12):
        domain = domains["poi"]
        kinds = [("deadline", 4), ("transient_error", 4), ("paged_results", 4)]
        try:
            drawn = draw_unaudited(domain, domain.task("book_visit", seed), kinds, seed)
        except CannotPerturb:
            continue
        layer = next(one for one in drawn.layers if isinstance(one, Deadline))
        place = drawn.layers.index(layer)
        last = max(i for i, step in enumerate(drawn.certificate.gold.steps) if place in step.fired)
        assert layer.until >= 1.5 * (last + 1)
        assert len(drawn.certificate.gold.steps) > len(drawn.certificate.clean.steps)
        made += 1
    assert made >= 6


def test_who_dawdles_comes_too_late() -> None:
    for drawn in draws("deadline", 5):
        (layer,) = drawn.layers
        assert isinstance(layer, Deadline)
        session, gold = session_of(drawn), drawn.certificate.gold.calls
        read = next(step.call for step in gold if step.call.tool not in layer.tools)
        for _ in range(layer.until):
            session.call(read)
        write = next(step.call for step in gold if step.call.tool in layer.tools)
        error = session.call(write).error
        assert error is not None
        assert error.code == "too_late"


def test_who_dawdles_finds_it_taken() -> None:
    for drawn in draws("taken_at", 5):
        (layer,) = drawn.layers
        assert isinstance(layer, TakenAt)
        steps = drawn.certificate.gold.steps
        write = next(i for i, step in enumerate(steps) if layer.id in step.call.args.values() and 0 in step.fired)
        assert law_of(drawn, layer.model_copy(update={"until": write + 1})) == "slack"
        session = session_of(drawn)
        for step in steps[:write]:
            session.say(step.call.args["text"]) if step.call.tool == SAY else session.call(step.call)
        listing = next(s for s in steps[:write] if isinstance(s.result.content, list) and layer.id in repr(s.result))
        while session.clock.nth < layer.until - 1:
            assert layer.id in repr(session.call(listing.call).content)
        assert layer.id not in repr(session.call(listing.call).content)
        error = session.call(steps[write].call).error
        assert error is not None
        assert error.code == "taken"


def test_who_reads_a_price_late_reads_another() -> None:
    for drawn in draws("price_moves", 5):
        (layer,) = drawn.layers
        assert isinstance(layer, PriceMoves)
        steps = drawn.certificate.gold.calls
        shown = next(step for step in steps if 0 in step.fired)
        session = session_of(drawn)
        first = session.call(shown.call)
        while session.clock.nth < layer.until - 1:
            assert session.call(shown.call).content == first.content
        later = session.call(shown.call)
        assert later.error is None
        assert later.content != first.content
        last = max(i for i, step in enumerate(drawn.certificate.gold.steps) if 0 in step.fired)
        assert law_of(drawn, layer.model_copy(update={"until": last + 1})) == "slack"


def test_no_waiting_opens_what_is_closed_today() -> None:
    for drawn in draws("closed_today"):
        (layer,) = drawn.layers
        assert isinstance(layer, ClosedToday)
        assert drawn.certificate.proof.startswith(("unwritable", "blind", "illegal"))
        session = session_of(drawn)
        assert session.call(ToolCall(layer.wait, {"until": "23:59"})).content == {"time": "23:59"}
        tried = next(step.call for step in drawn.certificate.clean.calls if step.call.tool == layer.tool)
        error = session.call(tried).error
        assert error is not None
        assert error.code == "unavailable"


# ---------------------------------------------------------------- what a later version brings


def test_a_better_tool_makes_the_way_shorter_and_the_old_way_still_leads() -> None:
    for drawn in draws("better_tool"):
        gold, clean = drawn.certificate.gold.steps, drawn.certificate.clean.steps
        assert len(gold) < len(clean)
        names = {tool.name for tool in session_of(drawn).tools()}
        assert {step.call.tool for step in clean if step.call.tool in drawn.domain.world_class.entries} <= names
        stubborn = Solver(drawn)
        stubborn.flow = drawn.domain.family(drawn.base).solve(drawn.base.brief)
        assert outcome(drawn, stubborn) == "pass"


def test_an_earlier_version_of_a_rule_leads_elsewhere() -> None:
    for drawn in draws("amended_rules", 5):
        (layer,) = drawn.layers
        assert isinstance(layer, AmendedRules)
        dated = sorted(layer.words[:-1], key=lambda words: re.search(r"\d{4}-\d\d-\d\d", words)[0])  # type: ignore[index]
        assert len(dated) == 4
        assert layer.words[0] == dated[-1]  # not where a reader would expect the last word
        amount = next(iter(layer.rules.values()))
        assert amount == "yes" or re.search(rf"\b{amount}\b", layer.words[0])
        task, family = drawn.certificate.task, drawn.domain.family(drawn.base)
        state, here = drawn.domain.state(task), drawn.base.brief.rules
        assert family.right(task, state) != family.right(task.briefed(rules=here), state)


@pytest.mark.parametrize(("kind", "code"), [("service_hours", "closed"), ("late_approval", "pending")])
def test_asking_again_at_once_is_in_vain_and_waiting_helps(kind: str, code: str) -> None:
    for drawn in draws(kind, 3):
        steps = drawn.certificate.gold.steps
        barred = next(i for i, step in enumerate(steps) if step.result.error and step.result.error.code == code)
        session = session_of(drawn)
        for step in steps[: barred + 1]:
            session.say(step.call.args["text"]) if step.call.tool == SAY else session.call(step.call)
        again = session.call(steps[barred].call).error
        assert again is not None
        assert again.code == code
        assert session.call(steps[barred + 1].call).error is None  # it waits
        assert session.call(steps[barred].call).error is None


# ---------------------------------------------------------------- catalogues


def test_a_catalogue_in_which_the_needed_tool_cannot_be_found_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    unfindable: list[tuple[Drawn, Perturbation]] = []
    for drawn in draws("tool_catalogue"):
        (layer,) = drawn.layers
        assert isinstance(layer, ToolCatalogue)
        tool, words = next(iter(layer.words.items()))
        nothing = layer.model_copy(update={"hits": 0})
        assert law_of(drawn, nothing) == "replay"
        unsaid = layer.model_copy(update={"words": {**layer.words, tool: ("zorbification", *words)}})
        assert law_of(drawn, unsaid) == "grounded"
        unfindable.append((drawn, unsaid))
    monkeypatch.setattr(laws, "grounded", lambda *_, **__: None)
    for drawn, layer in unfindable:  # nothing else refuses them
        certify(drawn.domain, drawn.base, (layer,))


def test_words_of_a_description_that_is_not_shown_yet_do_not_count() -> None:
    found = 0
    for drawn in draws("tool_catalogue"):
        (layer,) = drawn.layers
        assert isinstance(layer, ToolCatalogue)
        tool = next(iter(layer.words))
        doc = re.findall(r"\b[a-z]{4,}\b", drawn.domain.world_class.entries[tool].spec.doc)
        session = session_of(drawn)
        shown = " ".join((session.query(), session.policy(), *(spec.doc for spec in session.tools()))).lower()
        unseen = [word for word in doc if word not in shown]
        for word in unseen:
            hidden = layer.model_copy(update={"words": {**layer.words, tool: (word, *layer.words[tool])}})
            law = law_of(drawn, hidden)
            assert law in ("grounded", "replay")  # or the word leads the search astray
            found += law == "grounded"
    assert found


def test_a_catalogue_shows_its_search_and_what_was_opened() -> None:
    for severity, size in ((1, 100), (5, 1000)):
        for drawn in draws("tool_catalogue", severity, 3):
            (layer,) = drawn.layers
            assert isinstance(layer, ToolCatalogue)
            session, gold = session_of(drawn), drawn.certificate.gold
            assert len(session.specs) >= size
            assert [tool.name for tool in session.tools()] == [layer.name, "ask_user"]
            closed = session.call(next(s.call for s in gold.calls if s.call.tool != layer.name))
            assert closed.error is not None
            assert closed.error.code == NOT_OPEN
            asked = drawn.base.brief.query.lower()
            for words in layer.words.values():
                assert all(word in asked for word in words)
            found = session.call(ToolCall(layer.name, {layer.param: list(next(iter(layer.words.values())))}))
            names = {row["tool"] for row in found.content}
            assert names <= {tool.name for tool in session.tools()}


# ---------------------------------------------------------------- rows that others change


class Blind(Solver):
    """Repeats a write that was turned away, without a look at what has changed."""

    repeats = 1


def test_repeating_a_write_on_old_figures_fails() -> None:
    made = draws("moved_meanwhile", 1)
    for drawn in made:
        turned = [s for s in drawn.certificate.gold.steps if s.result.error and s.result.error.code == CHANGED]
        assert len(turned) == 1
        assert outcome(drawn, Oracle(drawn)) == "pass"
    assert [outcome(drawn, Blind(drawn)) for drawn in made].count("pass") == 0


def test_what_did_not_happen_does_not_count() -> None:
    """Anyone who refuses before looking has met no change: there the request could have been met."""

    class Refuser(Solver):
        def __init__(self, drawn: Drawn) -> None:
            super().__init__(drawn)
            self.flow = give_up([], {}, "there is nothing left")

    for drawn in draws("gone_meanwhile"):
        assert drawn.certificate.proof != "replay"
        assert outcome(drawn, Oracle(drawn)) == "pass"
        assert outcome(drawn, Refuser(drawn)) == "fail"


def test_an_event_is_void_once_the_agent_writes() -> None:
    drawn = draws("moved_meanwhile", 1)[0]
    world: World = drawn.domain.world(drawn.certificate.task)
    (event,) = drawn.certificate.task.events
    world.writes = 1
    for step in drawn.certificate.clean.calls:
        world.call(step.call)
    assert world.events == [event]
    assert not world.happened


# ---------------------------------------------------------------- requests that turn into others


class Stubborn(Solver):
    """Meets the first request, hears nothing of what comes after, and says the same again."""

    said: Message | None = None

    async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
        message = self.said or await super().reply(chat, tools)
        self.said = None if message.requests else message
        return message


@pytest.mark.parametrize("kind", ["several_changes", "goal_switch", "follow_up"])
def test_who_does_not_listen_fails(kind: str) -> None:
    made = draws(kind)
    assert all(outcome(drawn, Oracle(drawn)) == "pass" for drawn in made)
    assert [outcome(drawn, Stubborn(drawn)) for drawn in made].count("pass") == 0


def test_the_last_of_several_changes_takes_one_back() -> None:
    for drawn in draws("several_changes", 5):
        values = [dict(drawn.base.brief.stated)]
        for change in drawn.certificate.task.changes:
            values.append({**values[-1], **change.stated})
        assert values[-1] == values[-3]
        assert values[-1] != values[0]


def test_a_follow_up_leaves_what_was_done() -> None:
    for drawn in draws("follow_up", 2, 4, "hold_visit", "order_best"):
        changes = drawn.certificate.gold.changes
        assert len(drawn.certificate.task.changes) == 2
        assert len(changes) > len(drawn.certificate.clean.changes)
        assert drawn.certificate.clean.changes.items() <= changes.items()


def test_frozen_groups_hold_the_first_kinds_alone() -> None:
    assert (len(kinds_of("train@1")), len(kinds_of("heldout@1")), len(kinds_of("all@1"))) == (32, 12, 44)
    assert {"goal_switch", "tool_catalogue", "unlisted_tools", "moved_meanwhile"} <= {*kinds_of("heldout")}
    assert set(kinds_of("all@2")) == set(kinds_of("all"))
