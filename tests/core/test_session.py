"""What an agent meets: the tools shown, the user, changes of mind, receipts, both sides of every step."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from crosswind.agents.oracle import Oracle
from crosswind.base.errors import InfrastructureError
from crosswind.core.draw import Drawn, draw
from crosswind.core.oracle import walk
from crosswind.core.perturbation import Memo, check_class
from crosswind.core.session import Session
from crosswind.core.types import ASK, SAY, Flow, Message, Request, ToolCall, ToolResult, Tools, failed
from crosswind.core.user import User
from crosswind.core.world import World
from crosswind.episodes.play import judge, play, result_text
from crosswind.perturbations.action.retired_midway import RetiredMidway
from crosswind.perturbations.observation.transient_error import TransientError
from tests.toys import Toy, poi, task


def test_tools_are_shown_as_functions_and_ask_user_is_among_them() -> None:
    session = Session.of(poi(), task("best_price"))
    names = [tool.function()["function"]["name"] for tool in session.tools()]
    assert names[-1] == ASK
    assert "find_places" in names
    assert all("{" not in tool.doc for tool in session.tools())


def test_docs_speak_of_tools_by_the_name_shown() -> None:
    drawn = draw(poi(), task("hold_visit"), [("semantic_rename", 4)], 1)
    session = drawn.certificate.gold.session
    shown = {next(iter(t.ids & {"reserve", "request_code"}), ""): t for t in session.tools()}
    assert shown["request_code"].name != "request_code"
    assert shown["request_code"].name in shown["reserve"].doc


class Asks:
    """Asks for what is missing, in one of the two ways, and then walks the way with what it heard."""

    def __init__(self, drawn: Drawn, words: bool) -> None:
        self.gold = [s for s in drawn.certificate.gold.steps if s.call.tool != ASK]
        self.final, self.words = drawn.certificate.gold.final, words
        self.question = next(s.call.args["question"] for s in drawn.certificate.gold.steps if s.call.tool == ASK)
        self.heard = ""

    async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
        if len(chat) == 2:
            if self.words:
                return Message(role="assistant", content=f"Before I go on: {self.question}")
            return Message(role="assistant", requests=(Request(id="1", tool=ASK, args={"question": self.question}),))
        self.heard = self.heard or chat[-1].content
        if not self.gold:
            return Message(role="assistant", content=self.final)
        call = self.gold.pop(0).call
        return Message(role="assistant", requests=(Request(id="2", tool=call.tool, args=dict(call.args)),))


@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize("family", ["best_price_asked", "hold_visit_asked"])
def test_a_withheld_detail_is_given_when_asked_by_tool_or_in_words(family: str, words: bool) -> None:
    for seed in range(4):
        drawn = draw(poi(), task(family, seed), (), 0)
        agent = Asks(drawn, words)
        trajectory = asyncio.run(play(drawn, agent, "asks"))
        (value,) = drawn.base.withheld.values()
        assert str(value) in agent.heard
        assert judge(trajectory).outcome == "pass"


def test_the_user_answers_by_words_and_repeats_what_was_said() -> None:
    given = task("hold_visit_asked")
    session = Session.of(poi(), given)
    (key, value) = next(iter(given.withheld.items()))
    question = {"date": "What day would suit you?", "seats": "How many people are coming?"}[key]
    assert str(value) in str(session.call(ToolCall(ASK, {"question": question})).content)
    assert str(value) in str(session.say("Could you give me the missing details?"))
    assert given.brief.stated["city"] in str(session.say("Which city did you say?"))
    plain = Session.of(poi(), task("hold_visit"))
    assert plain.call(ToolCall(ASK, {"question": "Do you like jazz?"})).content == "I have nothing to add to that."
    assert session.call(ToolCall(ASK, {"wrong": 1})).error is not None


def test_an_offer_is_an_answer_where_nothing_was_to_be_written() -> None:
    offer = "The price is 12 euros. Shall I book it for you?"
    assert Session.of(poi(), task("best_price")).say(offer) is None
    assert Session.of(poi(), task("hold_visit")).say(offer) == "Yes, please do what I asked for."


def test_a_changed_mind_is_voiced_after_its_tool_or_at_the_end() -> None:
    drawn = draw(poi(), task("hold_visit"), ["changed_mind"], 2, severity=1)
    change = drawn.certificate.task.changes[0]
    session = Session.of(poi(), drawn.certificate.task, drawn.layers)
    first = next(s.call for s in drawn.certificate.gold.calls if s.call.tool == change.after)
    session.call(first)
    assert session.steps[-1].heard == (change.words,)
    assert session.say("All done: R1234567.") is None

    waits = Session.of(poi(), drawn.certificate.task, drawn.layers)
    assert waits.say("All done: R1234567.") == change.words
    assert waits.say("All done: R1234567.") is None
    asked = str(waits.say(f"Which {poi().family(drawn.base).details[next(iter(change.stated))].label} was that again?"))
    assert str(next(iter(change.stated.values()))) in asked


def test_both_sides_of_a_step_are_recorded() -> None:
    drawn = draw(poi(), task("book_visit"), [("semantic_rename", 4), "format_switch", "transient_error"], 1)
    steps = drawn.certificate.gold.steps
    canonical = {t.name for t in poi().world_class.specs}
    for step in steps:
        assert step.call.tool not in canonical
        assert all(call.tool in canonical for call, _ in step.inner)
    assert any(step.result.error and not step.inner for step in steps)  # failed before it reached the world
    assert any(
        isinstance(step.result.content, str) and isinstance(step.inner[0][1].content, list)
        for step in steps
        if step.inner
    )


class Calls:
    """Makes given calls, one a turn, and stops."""

    def __init__(self, calls: list[ToolCall]) -> None:
        self.calls = calls

    async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
        if not self.calls:
            return Message(role="assistant", content="Done.")
        call = self.calls.pop(0)
        return Message(role="assistant", requests=(Request(id="1", tool=call.tool, args=dict(call.args)),))


def test_receipts_tell_fired_from_seen_and_from_never_met() -> None:
    given = task("book_visit")
    faults = TransientError(tools=("pay",), times=1, text="Try again.")
    from crosswind.core.certify import certify

    drawn = Drawn(poi(), given, (faults,), certify(poi(), given, (faults,)))
    gold = [s.call for s in drawn.certificate.gold.calls]

    never = asyncio.run(play(drawn, Calls(gold[:2]), "calls")).receipts[0]
    assert (never.fired, never.step, never.seen) == (False, None, False)
    met = asyncio.run(play(drawn, Calls(list(gold)), "calls")).receipts[0]
    assert (met.fired, met.step, met.seen) == (True, 5, True)

    class GivesUp(Calls):
        async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
            if not self.calls:
                raise InfrastructureError("provider is gone")
            return await super().reply(chat, tools)

    unseen = asyncio.run(play(drawn, GivesUp(gold[:5]), "calls"))
    assert unseen.ended == "error"
    assert judge(unseen).outcome == "error"
    assert unseen.receipts[0].fired
    assert unseen.receipts[0].seen  # it had a turn, in which its provider failed


def test_a_retired_tool_leaves_the_list_while_the_agent_works() -> None:
    given = task("book_visit")
    hints = {"slot_finder": "Use {slot_finder}."}
    layer = RetiredMidway(successors={"list_slots": "slot_finder"}, at=1, text="Retired.", hints=hints)
    session = Session.of(poi(), given, (layer,))
    before = {t.name for t in session.tools()}
    calls = [s.call for s in draw(poi(), given, (), 0).certificate.gold.calls]
    session.call(calls[0])
    gone = session.call(calls[1])
    assert gone.error is not None
    assert "slot_finder" in gone.error.text
    after = {t.name for t in session.tools()}
    assert "list_slots" in before - after
    assert "slot_finder" in after - before
    assert session.call(calls[1].named("slot_finder")).error is None


def test_an_agent_that_never_stops_runs_out_of_its_budget() -> None:
    drawn = draw(poi(), task("best_price"), (), 0)

    class Chatters:
        async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
            return Message(role="assistant", content="Which city do you mean?")

    trajectory = asyncio.run(play(drawn, Chatters(), "chatters"))
    assert trajectory.ended == "budget"
    assert len(trajectory.steps) == trajectory.budget
    assert judge(trajectory).outcome == "fail"


def test_errors_read_like_those_of_an_api() -> None:
    session = Session.of(poi(), task("best_price"))
    cases = {
        "There is no tool 'find_place'.": ToolCall("find_place", {}),
        "missing required argument 'city'": ToolCall("find_places", {"category": "zoo"}),
        "unexpected argument 'town'": ToolCall("find_places", {"town": "x", "category": "zoo"}),
        "'city' must be a string, got integer": ToolCall("find_places", {"city": 3, "category": "zoo"}),
        "'category' must be one of museum": ToolCall("find_places", {"city": "x", "category": "bar"}),
        "There is no city 'Nowhere'.": ToolCall("find_places", {"city": "Nowhere", "category": "zoo"}),
        "There is no place": ToolCall("place_details", {"place_id": "P1"}),
    }
    for words, call in cases.items():
        assert words in result_text(session.call(call))


def test_a_refusal_that_leaves_something_behind_fails() -> None:
    given = task("barred_customer").unobstructed()
    gold = draw(poi(), given, (), 0).certificate.gold
    barred = task("barred_customer")
    assert poi().judge(barred, poi().world(barred).state, "I cannot do this: the customer is barred.").outcome == "pass"
    verdict = poi().judge(barred, gold.session.world.state, "I cannot do this: the customer is barred.")
    assert [c.name for c in verdict.checks if not c.passed] == ["untouched"]


def test_the_user_gives_what_is_withheld_first() -> None:
    given = task("hold_visit_asked")
    (key, value) = next(iter(given.withheld.items()))
    session = Session.of(poi(), given)
    both = f"For the city and the {'date' if key == 'date' else 'number of seats'}: what shall it be?"
    reply = str(session.call(ToolCall(ASK, {"question": both})).content)
    assert str(value) in reply
    assert given.brief.stated["city"] not in reply


def test_an_obstacle_met_with_the_last_call_is_fired_and_not_seen() -> None:
    from crosswind.core.certify import certify

    given = task("best_price")
    layer = TransientError(tools=("find_places",), times=3, text="Try again.")
    drawn = Drawn(poi(), given, (layer,), certify(poi(), given, (layer,)))
    call = drawn.certificate.gold.calls[0].call

    class AllAtOnce:
        async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
            calls = [Request(id=str(i), tool="weather", args={}) for i in range(drawn.certificate.budget - 1)]
            return Message(role="assistant", requests=(*calls, Request(id="x", tool=call.tool, args=dict(call.args))))

    trajectory = asyncio.run(play(drawn, AllAtOnce(), "all at once"))
    assert trajectory.ended == "budget"
    assert trajectory.receipts[0].fired
    assert not trajectory.receipts[0].seen


class Elsewhere:
    """A world whose answers take time."""

    remote, foreign = True, False

    def __init__(self, world: World) -> None:
        self.world, self.specs, self.check, self.call = world, world.specs, world.check, world.call

    @property
    def writes(self) -> int:
        return self.world.writes

    async def ask(self, call: ToolCall) -> ToolResult:
        await asyncio.sleep(0)
        return self.world.call(call)


def test_the_same_session_serves_a_world_elsewhere() -> None:
    drawn = draw(poi(), task("book_visit"), ["semantic_rename", "transient_error"], 1)
    here, given = drawn.certificate.gold, drawn.certificate.task
    user = User(poi(), given, poi().world(given))
    session = Session(Elsewhere(user.world), drawn.layers, user)

    async def all_calls() -> list[ToolResult]:
        return [await session.acall(step.call) for step in here.calls]

    assert asyncio.run(all_calls()) == [step.result for step in here.calls]
    assert session.steps == here.steps


@check_class
class LosesNth(Toy):
    """Loses the answer to one call, which it tells by its number."""

    lost: int

    def handle(self, call: ToolCall, memo: Memo) -> Flow:
        result = yield call
        if memo.nth != self.lost:
            return result
        memo.fire()
        return failed("lost")


def test_calls_under_way_at_once_keep_their_places_on_the_clock() -> None:
    """Calls are numbered as they are begun, in whatever order they are answered."""
    given = task("best_price")
    user = User(poi(), given, poi().world(given))
    session = Session(Elsewhere(user.world), (LosesNth(lost=1),), user)
    call = walk(poi(), given).calls[0].call
    opened = [session.begin(call) for _ in range(3)]
    for one in (opened[2], opened[0], opened[1]):
        assert one.asked == call
        session.resume(one, user.world.call(one.asked))
        session.close_call(one)
    assert [step.fired for step in session.steps] == [(), (), (0,)]
    assert [step.result.error is not None for step in session.steps] == [False, False, True]
    assert [receipt.step for receipt in session.receipts()] == [3]
    assert session.clock.nth == 2


def test_whoever_plays_meets_a_session_and_one_without_a_task_has_no_user() -> None:
    met: list[Session] = []
    drawn = draw(poi(), task("best_price"), [], 1)
    asyncio.run(play(drawn, Oracle(drawn), "oracle", opening=lambda session, _: met.append(session)))
    assert [type(session) for session in met] == [Session]
    assert type(drawn.certificate.gold.session) is Session
    bare = Session(poi().world(drawn.base))
    assert [tool.name for tool in bare.tools()] == [tool.name for tool in met[0].tools() if tool.name != ASK]
    with pytest.raises(LookupError, match="without a task"):
        bare.say("Hello?")


def test_a_call_by_the_name_that_words_have_among_the_steps_is_a_call() -> None:
    """Steps hold what was said under a name of its own; an agent that calls a tool of that name says nothing by it."""

    class Says:
        async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
            return Message(role="assistant", requests=(Request(id="x", tool=SAY, args=["no text"]),))

    trajectory = asyncio.run(play(draw(poi(), task("best_price"), [], 1), Says(), "says"))
    assert {step["call"]["tool"] for step in trajectory.steps} == {"say"}
    assert judge(trajectory).outcome == "fail"
