"""The diagnosis names planted flaws, from the trajectory and the certified way alone."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from crosswind.agents._scripted import Reciter, lines_of
from crosswind.base.errors import CannotPerturb
from crosswind.core.draw import Drawn, draw
from crosswind.core.flow import rng_for
from crosswind.core.oracle import walk
from crosswind.core.registry import agents, domains, perturbations
from crosswind.core.types import TIERS, Flow, Message, Request, ToolCall, Trajectory
from crosswind.episodes.play import Opening, judge, play
from crosswind.episodes.recipe import Choice
from crosswind.episodes.record import Record, Usage, recorded
from crosswind.episodes.schedule import Episode, episodes
from crosswind.episodes.suite import Condition, Suite, suites
from crosswind.metrics.diagnosis import (
    CAUSES,
    EXCEPTION,
    PRIORITY,
    STAGES,
    TIMED_OUT,
    UNDETERMINED,
    Diagnosis,
    diagnose,
    divergences,
)
from crosswind.metrics.diagnosis.case import Case
from crosswind.metrics.diagnosis.repair import CHANNELS, EXPECTED, Repair, agreement, channel_of, repair, repaired
from tests.flawed.catalogue import FLAWED
from tests.flawed.limits import FalseSuccess
from tests.flawed.walker import effective_writes

SINGLE = [n for n in sorted(FLAWED) if n.startswith("flaw_") and not n.startswith("flaw_two_")]
RARE = ("flaw_fabricates_details", "flaw_unsafe_retry", "flaw_obeys_injections")  # few episodes bring them out
Failure = tuple[str, Episode, Record, Diagnosis]


def recorded_play(episode: Episode, agent: Any, name: str) -> Record:
    trajectory = asyncio.run(play(episode.drawn, agent, name))
    return recorded(episode, trajectory, judge(trajectory), seed=0, usage=Usage())


def drawn_for(domain: str, family: str, *kinds: str, seed: int = 3) -> Episode:
    box = domains[domain]
    for n in range(seed, seed + 30):
        task = box.task(family, n)
        try:
            return Episode("+".join(kinds), task.id, draw(box, task, kinds, 0))
        except CannotPerturb:
            continue
    raise AssertionError(f"{kinds} apply to no task of {family}")


@pytest.fixture(scope="module")
def failures() -> list[Failure]:
    """Every failure of the agents with one flaw, over a slice of every domain and kind."""
    wide = Suite(name="planted", each_of="all", tasks=1, stacks=3)
    lost = Condition(name="lost", stack=(Choice(kind="lost_acknowledgement"),))
    deep = Suite(name="lost", conditions=(lost,), tasks=10, levels=(2,), domains=("poi", "retail"))
    found = [(episode, SINGLE) for episode in episodes(wide, 21)]
    found += [(episode, ["flaw_unsafe_retry"]) for episode in episodes(deep, 3) if episode.condition == "lost"]
    out = []
    for place, (episode, names) in enumerate(found):
        for name in names:
            if name in RARE or rng_for("pick", place, name).random() < 0.15:
                record = recorded_play(episode, FLAWED[name](episode.drawn), name)
                if record.outcome == "fail":
                    out.append((name, episode, record, diagnose(record, episode.drawn.certificate)))
    return out


def planted(name: str) -> tuple[str, str]:
    return FLAWED[name].stage, FLAWED[name].cause


def test_every_cause_is_planted_and_every_planted_one_documented() -> None:
    assert {planted(n)[1] for n in SINGLE} == set(CAUSES) - {EXCEPTION, TIMED_OUT, UNDETERMINED}
    assert {planted(n)[0] for n in SINGLE} == set(STAGES) - {UNDETERMINED}
    assert not set(STAGES) & set(TIERS)  # one word, one meaning
    assert set(EXPECTED) == set(CAUSES) - {EXCEPTION, UNDETERMINED}


def test_planted_flaws_are_named(failures: list[Failure]) -> None:
    """The confusion matrix: at least 95 % on its diagonal, and no flaw mistaken for another as a rule."""
    matrix = Counter((planted(name), (said.stage, said.cause)) for name, _, _, said in failures)
    right = sum(n for (was, said), n in matrix.items() if was == said)
    wrong = {pair: n for pair, n in matrix.items() if pair[0] != pair[1]}
    assert sum(matrix.values()) >= 300
    assert {name for name, *_ in failures} == set(SINGLE)
    assert right / sum(matrix.values()) >= 0.95, wrong
    for name in SINGLE:
        of = [said for n, _, _, said in failures if n == name]
        if len(of) >= 8:
            assert sum((s.stage, s.cause) == planted(name) for s in of) / len(of) >= 0.85, name


def test_a_diagnosis_points_at_a_step_and_says_why(failures: list[Failure]) -> None:
    for _, _, record, said in failures:
        assert said.stage in STAGES
        assert said.cause in CAUSES
        assert 1 <= said.step <= len(record.steps) + 1
        assert said.why


def test_labels_and_names_change_nothing(failures: list[Failure], monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiers and axes shuffled, agents and conditions renamed: the same stages and causes."""
    rng = rng_for("labels")
    for cls in perturbations:
        monkeypatch.setattr(cls, "tier", rng.choice(TIERS))
        monkeypatch.setattr(cls, "axis", rng.choice(("query", "action", "observation", "domain")))
    for _, episode, record, said in failures[::7]:
        other = record.model_copy(
            update={"agent": "someone", "condition": "x", "key": "k", "receipts": (), "severity": 5}
        )
        assert diagnose(other, episode.drawn.certificate) == said


def test_the_certificate_may_be_drawn_again(failures: list[Failure]) -> None:
    for _, _, record, said in failures[::60]:
        assert diagnose(Record.model_validate_json(record.model_dump_json())) == said


def test_only_failures_have_a_cause() -> None:
    episode = next(episodes(suites["quick"], 0))
    record = recorded_play(episode, agents["oracle"](episode.drawn), "oracle")
    with pytest.raises(ValueError, match="only failed"):
        diagnose(record, episode.drawn.certificate)


def test_two_flaws_give_the_first_that_matters() -> None:
    """Of an agent with two flaws one of the two is named, and nothing else."""
    suite = Suite(name="two", each_of="all", tasks=1, domains=("poi",))
    allowed = {
        "flaw_two_memorised_and_misread": {"memorised interface", "misread result"},
        "flaw_two_order_and_refusal": {"wrong order", "over-refusal"},
        "flaw_two_retry_and_success": {"unsafe retry", "false success"},
    }
    said: Counter[bool] = Counter()
    for episode in episodes(suite, 4):
        for name, causes in allowed.items():
            record = recorded_play(episode, FLAWED[name](episode.drawn), name)
            if record.outcome == "fail":
                said[diagnose(record, episode.drawn.certificate).cause in causes] += 1
    assert said[True] / sum(said.values()) >= 0.95


# ---------------------------------------------------------------- flaws written down by hand


class Bent(Reciter):
    """The certified way with its lines changed."""

    def __init__(self, drawn: Drawn, *lines: Message) -> None:
        super().__init__(lines)


def gold(episode: Episode) -> list[Message]:
    return list(lines_of(episode.drawn.certificate.gold))


def named(episode: Episode, lines: list[Message]) -> tuple[str, str]:
    record = recorded_play(episode, Bent(episode.drawn, *lines), "bent")
    assert record.outcome == "fail"
    said = diagnose(record, episode.drawn.certificate)
    return said.stage, said.cause


def say(text: str) -> Message:
    return Message(role="assistant", content=text)


def call(tool: str, args: Any) -> Message:
    return Message(role="assistant", requests=(Request(id="c", tool=tool, args=args),))


def bent_args(line: Message, **args: Any) -> Message:
    request = line.requests[0]
    return call(request.tool, {**request.args, **args})


def test_refusing_at_once_is_over_refusal() -> None:
    assert named(drawn_for("poi", "best_price"), [say("I cannot help with this.")]) == (
        "self-assessment",
        "over-refusal",
    )


def test_an_invented_figure_and_a_garbled_one() -> None:
    episode = drawn_for("poi", "best_price")
    lines = gold(episode)
    assert named(episode, [*lines[:-1], say("It costs 4871 euros.")])[1] == "fabricated value"
    fee = int("".join(c for c in lines[-1].content if c.isdigit()))
    assert named(episode, [*lines[:-1], say(f"It costs {fee + 1} euros.")]) == ("feedback", "misread result")


def test_an_answer_without_looking_is_fabricated() -> None:
    episode = drawn_for("poi", "best_price")
    assert named(episode, [say("It costs 12 euros.")]) == ("planning", "fabricated value")


def test_a_made_up_id_is_made_up_however_often_it_is_tried() -> None:
    """That an error says it back does not make it one that was read."""
    episode = drawn_for("poi", "best_price")
    tool = "place_details"
    for often in (1, 2, 3):
        lines = [*[call(tool, {"place_id": "P000000"})] * often, say("Done.")]
        assert named(episode, lines) == ("planning", "fabricated value")


def test_done_without_the_last_write_is_false_success() -> None:
    episode = drawn_for("poi", "cancel_visit")
    lines = gold(episode)
    assert named(episode, [*lines[:-2], lines[-1]]) == ("self-assessment", "false success")


def test_a_tool_that_nobody_offered_is_the_wrong_tool() -> None:
    episode = drawn_for("retail", "best_unit_price")
    lines = [call("search_everything", {"q": "x"}), say("Done.")]
    assert named(episode, lines) == ("understanding", "wrong tool")


@pytest.mark.parametrize("args", ["not an object", {}, {"city": 7}, [1], None])
def test_arguments_that_no_interface_takes_are_malformed(args: Any) -> None:
    episode = drawn_for("poi", "best_price")
    assert named(episode, [call("find_places", args), say("Done.")]) == ("understanding", "malformed call")


def test_a_wrong_number_from_the_request_is_a_wrong_argument() -> None:
    episode = drawn_for("poi", "hold_visit")
    lines = gold(episode)
    place = next(i for i, m in enumerate(lines) if m.requests and "seats" in m.requests[0].args)
    seats = lines[place].requests[0].args["seats"]
    assert named(episode, [*lines[:place], bent_args(lines[place], seats=seats - 1 or 2), *lines[place + 1 :]]) == (
        "understanding",
        "wrong argument",
    )


def test_the_same_read_again_and_again_is_blind_repetition() -> None:
    episode = drawn_for("poi", "best_price")
    assert named(episode, [gold(episode)[0]] * 60) == ("feedback", "blind repetition")


def test_each_step_many_times_runs_out_of_steps() -> None:
    episode = drawn_for("poi", "cheaper_of_two")
    assert named(episode, [line for line in gold(episode)[:-1] for _ in range(6)]) == ("planning", "ran out of steps")


def test_stopping_at_an_error_that_has_a_way_round_is_giving_up() -> None:
    episode = drawn_for("banking", "best_payee_fee", "transient_error")
    at = next(i for i, s in enumerate(episode.drawn.certificate.gold.steps) if s.result.error)
    assert named(episode, [*gold(episode)[: at + 1], say("Sorry, I can't do that.")]) == ("feedback", "gave up")


def test_saying_done_where_refusing_is_right() -> None:
    episode = drawn_for("poi", "best_price", "unsolvable")
    assert named(episode, [*gold(episode)[:-1], say("Done.")]) == ("self-assessment", "missed refusal")


@pytest.mark.parametrize("read", [False, True], ids=["at once", "after reading"])
def test_a_refusal_that_does_not_count_is_told_as_one(read: bool) -> None:
    episode = drawn_for("poi", "best_price", "unsolvable")
    before = gold(episode)[:-1] if read else []
    wrong = call("finish", {"status": "cannot", "reason": "not_allowed", "message": "I cannot do this."})
    said = {}
    for how, end in (("reason", wrong), ("words", say("I cannot do this: there is no such place."))):
        lines = iter([*before, end])
        agent = Reciter(lines)
        trajectory = asyncio.run(play(episode.drawn, agent, how, ending="finish"))
        record = recorded(episode, trajectory, judge(trajectory), seed=0, usage=Usage())
        assert (record.outcome, record.ended) == ("fail", "refusal")
        said[how] = diagnose(record, episode.drawn.certificate)
    assert said["reason"].cause == ("misread result" if read else "missed refusal")
    assert "refused with the reason not_allowed, where the facts support" in said["reason"].why
    assert said["words"].cause == "missed refusal"
    assert 'refused in words; a refusal must be given by finish(status="cannot", reason=...)' in said["words"].why


def test_recovered_detours_do_not_count() -> None:
    """A wrong name, a malformed call and a look elsewhere come first; the last write left out is what matters."""
    episode = drawn_for("poi", "cancel_visit")
    lines = gold(episode)
    first = lines[0].requests[0]
    detours = [
        call("no_such_tool", {}),
        call(first.tool, {}),
        call("weather", {"city": "Nowhere", "date": "2031-01-01"}),
    ]
    assert named(episode, [*detours, *lines[:-2], lines[-1]]) == ("self-assessment", "false success")


class WritesAndLeavesOut(FalseSuccess):
    """Makes a write that nobody asked for, first of all, and leaves out the last that was."""

    begun = False

    def wish(self, call: ToolCall) -> Flow:
        if not self.begun:
            self.begun = True
            own = {c.tool for c, _ in self.plan}
            assert any(self.through(w).error is None for w in effective_writes(self) if w.tool not in own)
        return (yield from super().wish(call))


def test_of_two_things_that_matter_the_earlier_step_counts() -> None:
    episode = drawn_for("poi", "book_visit")
    record = recorded_play(episode, WritesAndLeavesOut(episode.drawn), "two")
    said = diagnose(record, episode.drawn.certificate)
    assert (said.cause, said.step) == ("wrong tool", 1)


def refused_after(episode: Episode, *more: Message) -> tuple[str, str]:
    """The certified way up to its first error, some more, and words that say that it could not."""
    at = next(i for i, s in enumerate(episode.drawn.certificate.gold.steps) if s.result.error)
    return named(episode, [*gold(episode)[: at + 1], *more, say("Sorry, I was not able to finish this.")])


@pytest.mark.parametrize("kind", ["transient_error", "lost_acknowledgement"])
def test_asking_or_looking_elsewhere_before_giving_up_is_still_giving_up(kind: str) -> None:
    episode = drawn_for("poi", "book_visit", kind)
    elsewhere = call("find_places", {"city": "Nowhere", "category": "castle"})
    assert refused_after(episode, elsewhere) == ("feedback", "gave up")
    assert refused_after(episode, call("ask_user", {"question": "What now?"})) == ("feedback", "gave up")


@pytest.mark.parametrize("kind", ["transient_error", "lost_acknowledgement"])
def test_an_error_passed_over_comes_before_a_false_report(kind: str) -> None:
    episode = drawn_for("poi", "book_visit", kind)
    at = next(i for i, s in enumerate(episode.drawn.certificate.gold.steps) if s.result.error)
    lines = [*gold(episode)[: at + 1], call("ask_user", {"question": "Anything else?"}), say("All of it is done.")]
    assert named(episode, lines) == ("feedback", "ignored error")


def test_a_call_that_rests_on_a_write_never_made_is_made_up() -> None:
    """The id that a write would have given stands nowhere; were the write made later, it would be the wrong order."""
    episode = drawn_for("poi", "book_visit")
    lines = gold(episode)
    skipped = next(i for i, m in enumerate(lines) if m.requests and m.requests[0].tool == "reserve")
    assert named(episode, [*lines[:skipped], *lines[skipped + 1 :]]) == ("planning", "fabricated value")
    turned = [*lines[:skipped], lines[skipped + 1], lines[skipped], *lines[skipped + 2 :]]
    assert named(episode, turned) == ("planning", "wrong order")


def test_the_sum_of_a_part_is_misread_and_another_figure_made_up() -> None:
    episode = drawn_for("poi", "total_price")
    steps = episode.drawn.certificate.gold.steps
    prices = [s.result.content["price"] for s in steps if s.call.tool == "place_details"]
    assert len(prices) > 1
    without = [m for m, s in zip(gold(episode), steps, strict=False)][:-1]
    assert named(episode, [*without, say(f"The total is {sum(prices[:-1])} euros.")])[1] == "misread result"
    assert named(episode, [*without, say("The total is 98317 euros.")])[1] == "fabricated value"


def test_a_given_value_in_the_wrong_place_is_a_wrong_argument_though_the_list_has_it_not() -> None:
    episode = drawn_for("poi", "best_price")
    first = gold(episode)[0].requests[0]
    swapped = {"city": first.args["category"], "category": first.args["city"]}
    assert named(episode, [call("find_places", swapped), say("Done.")]) == ("understanding", "wrong argument")


def test_refusing_because_something_is_not_there_that_was_read_is_misreading() -> None:
    episode = drawn_for("poi", "cancel_visit")
    date = episode.drawn.base.brief.stated["date"]
    lines = [gold(episode)[0], say(f"I cannot do this: no reservation is planned on {date}.")]
    assert named(episode, lines) == ("feedback", "misread result")


@pytest.mark.parametrize("name", [name for name in sorted(FLAWED) if name.startswith("reported_")])
def test_misreadings_that_were_reported_are_none_any_more(name: str) -> None:
    lost = Condition(name="lost", stack=(Choice(kind="lost_acknowledgement"),))
    shaky = Condition(name="shaky", stack=(Choice(kind="transient_error"),))
    disputed = Condition(name="disputed", stack=(Choice(kind="conflicting_information"),))
    suite = Suite(name="reported", conditions=(lost, shaky, disputed), tasks=5, domains=("poi", "banking"))
    flawed, said = FLAWED[name], Counter[tuple[str, str]]()
    for episode in episodes(suite, 3):
        record = recorded_play(episode, flawed(episode.drawn), name)
        if record.outcome == "fail":
            found = diagnose(record, episode.drawn.certificate)
            said[found.stage, found.cause] += 1
    assert sum(said.values()) >= 4
    assert said[flawed.stage, flawed.cause] / sum(said.values()) >= 0.9, said


@pytest.mark.parametrize("domain", ["poi", "operations"])
def test_a_change_of_mind_that_is_not_taken_up_is_a_wrong_argument_where_it_was_said(domain: str) -> None:
    """Whether the new value goes into a call, decides over what is chosen, or only over the answer."""
    said: Counter[tuple[str, str]] = Counter()
    for family in domains[domain].families:
        try:
            episode = drawn_for(domain, family, "changed_mind")
        except AssertionError:
            continue
        lines = list(lines_of(walk(domains[domain], episode.drawn.base.briefed())))
        record = recorded_play(episode, Bent(episode.drawn, *lines, lines[-1]), "bent")
        if record.outcome == "fail":
            found = diagnose(record, episode.drawn.certificate)
            words = episode.drawn.certificate.task.changes[0].words
            told = next(n for n, step in enumerate(record.steps, 1) if words in str([step["heard"], step["result"]]))
            said[found.stage, found.cause] += 1
            assert found.step == told, (family, found)
    assert set(said) == {("feedback", "wrong argument")}
    assert sum(said.values()) > 8


def test_a_policy_is_blamed_for_the_detail_that_its_rule_is_about_alone() -> None:
    for family in ("hold_visit", "book_visit"):
        ruled = drawn_for("poi", family, "conflicting_information")
        lines, brief = gold(ruled), ruled.drawn.certificate.task.brief
        detail = next(iter(brief.rules))
        value = brief.stated[detail]
        nth = next(i for i, m in enumerate(lines) if m.requests and detail in m.requests[0].args)
        wrong = bent_args(lines[nth], **{detail: value})
        assert named(ruled, [*lines[:nth], wrong, say("All done.")])[0] == "planning"
        for kind in ("conflicting_information", "rule_change"):
            try:
                episode = drawn_for("poi", family, kind)
            except AssertionError:
                continue
            lines = gold(episode)
            nth = next(i for i, m in enumerate(lines) if m.requests and "slot_id" in m.requests[0].args)
            card = next(str(v) for k, v in episode.drawn.base.brief.stated.items() if k not in brief.rules)
            wrong = bent_args(lines[nth], slot_id=card)
            assert named(episode, [*lines[:nth], wrong, wrong, say("All done.")]) == ("feedback", "wrong argument")


def test_divergences_are_ordered_by_step_and_then_by_what_did_the_harm() -> None:
    assert set(PRIORITY) == set(CAUSES) - {EXCEPTION}
    lost = Condition(name="lost", stack=(Choice(kind="lost_acknowledgement"),))
    lists = []
    for episode in episodes(Suite(name="lost", conditions=(lost,), tasks=8, levels=(2,), domains=("poi",)), 3):
        name = "reported_retries_then_gives_up"
        record = recorded_play(episode, FLAWED[name](episode.drawn), name)
        if record.outcome == "fail":
            lists.append(divergences(Case(record, episode.drawn.certificate)))
    for found in lists:
        places = [(one.step, PRIORITY.index(one.cause)) for one in found]
        assert places == sorted(places)
        assert all(one.why for one in found)
    assert any([one.cause for one in found] == ["unsafe retry", "gave up"] for found in lists)


def test_hostile_trajectories_are_diagnosed_too() -> None:
    episode = drawn_for("poi", "book_visit", "semantic_rename", "transient_error")
    deep: Any = "x"
    for _ in range(40):
        deep = {"a": [deep]}
    odd = ["\x00\x1b[2J", "a" * 50_000, "{find_places}", "]]>", ""]
    lines = [call(tool, {"q": value, tool[:9]: deep}) for tool in (*odd, "reserve") for value in (1e308, -1, None, odd)]
    record = recorded_play(episode, Bent(episode.drawn, *lines, say("\u202e" + "z" * 30_000)), "odd")
    said = diagnose(record, episode.drawn.certificate)
    assert said.cause in CAUSES
    assert json.loads(said.model_dump_json())


# ---------------------------------------------------------------- repair


async def _again(name: str, drawn: Drawn, opening: Opening | None) -> Trajectory:
    return await play(drawn, FLAWED[name](drawn), name, opening)


def repaired_by(name: str, episode: Episode) -> Repair:
    record = recorded_play(episode, FLAWED[name](episode.drawn), name)
    said = diagnose(record, episode.drawn.certificate)
    record = record.model_copy(update={"stage": said.stage, "cause": said.cause})
    return asyncio.run(repair(record, lambda drawn, opening: _again(name, drawn, opening)))


def test_every_layer_has_a_channel() -> None:
    assert {channel_of(cls) for cls in perturbations} == set(CHANNELS)  # type: ignore[arg-type]


def test_the_repair_that_helps_bears_the_cause_out() -> None:
    episode = drawn_for("poi", "best_price", "semantic_rename", "transient_error")
    memorised = repaired_by("flaw_memorised_interface", episode)
    assert memorised.again
    assert memorised.helped == ("tools",)
    assert memorised.useless == ("observations",)
    assert memorised.confirmed
    quitter = repaired_by("flaw_gives_up", episode)
    assert quitter.helped == ("observations",)
    assert quitter.confirmed
    total = agreement([memorised, quitter])
    assert (total.agree, total.disagree, total.steady) == (2, 0, 2)


def test_a_flaw_that_no_layer_brings_out_is_not_repaired() -> None:
    episode = drawn_for("poi", "cancel_visit", "semantic_rename")
    said = repaired_by("flaw_false_success", episode)
    assert said.helped == ()
    assert said.confirmed is None
    assert repaired(episode.drawn, "rules") is None


class Resumer:
    """Reads what to do next off the conversation alone: the certified calls in their order, and no after any error."""

    def __init__(self, drawn: Drawn, begun: list[int]) -> None:
        self.gold, self.begun = drawn.certificate.gold, begun

    async def reply(self, chat: Any, tools: Any) -> Message:
        results = [m.content for m in chat if m.role == "tool"]
        self.begun.append(len(results))
        if any(text.startswith('{"error"') for text in results):
            return Message(role="assistant", content="I am sorry, I cannot do that: the service failed.")
        if len(results) == len(self.gold.steps):
            return Message(role="assistant", content=self.gold.final)
        call = self.gold.steps[len(results)].call
        return Message(
            role="assistant", requests=(Request(id=f"r{len(results)}", tool=call.tool, args=dict(call.args)),)
        )


def test_a_repair_begins_at_the_point_of_failure() -> None:
    """What was done before stays done, in the words of the layers that are left; only what follows is played."""
    episode = drawn_for("poi", "book_visit", "semantic_rename", "transient_error", seed=0)
    first = next(i for i, s in enumerate(episode.drawn.certificate.gold.steps) if s.result.error)
    assert first >= 2
    record = recorded_play(episode, Resumer(episode.drawn, []), "resumer")
    said = diagnose(record, episode.drawn.certificate)
    assert (record.outcome, said.cause) == ("fail", "gave up")
    begun: list[int] = []

    async def again(drawn: Drawn, opening: Opening | None) -> Trajectory:
        seen: list[int] = []
        out = await play(drawn, Resumer(drawn, seen), "resumer", opening)
        begun.append(seen[0])
        return out

    named = record.model_copy(update={"stage": said.stage, "cause": said.cause})
    done = asyncio.run(repair(named, again, upto=said.step, resumes=True))
    assert begun[0] == 0  # unrepaired, it is played from the start
    assert begun[-1] == first  # what went well before the error is not played again
    assert done.again
    assert "observations" in done.helped
    assert "observations" in done.resumed
    assert done.confirmed


# ---------------------------------------------------------------- the command


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    from typer.testing import CliRunner

    from crosswind.cli.app import app

    out = tmp_path / "run"
    done = CliRunner().invoke(app, ["run", "quick", "--agent", "memoriser", "--out", str(out)])
    assert done.exit_code == 0, done.output
    return out


def test_the_command_prints_causes_and_repairs(folder: Path) -> None:
    from typer.testing import CliRunner

    from crosswind.cli.app import app

    shown = CliRunner().invoke(app, ["diagnose", str(folder)])
    assert shown.exit_code == 0
    assert "memorised interface" in shown.output
    data = json.loads(CliRunner().invoke(app, ["diagnose", str(folder), "--repair", "--json"]).stdout)
    assert sum(data["causes"].values()) == len(data["episodes"]) == len(data["repairs"])
    assert data["agreement"]["disagree"] == 0
    assert data["agreement"]["agree"] > 0
