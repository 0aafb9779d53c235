"""Careers as they are played: reference agents land where theory puts them, and a kill changes nothing."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest

from crosswind.base.errors import CrosswindError
from crosswind.core.registry import domains
from crosswind.core.types import Message, Request, Tools
from crosswind.episodes.career import Career, CareerPlan
from crosswind.episodes.play import judge
from crosswind.episodes.record import Record, redrawn, trajectory_of
from crosswind.episodes.stream import load_plan, with_changes
from crosswind.metrics.careers import CareerSummary, need_of, summarise_careers
from crosswind.metrics.streams import summarise
from crosswind.models.notes import with_memory
from crosswind.models.spec import open_agent
from crosswind.report.streams import sentence
from crosswind.runs.store import EPISODES, iter_records
from crosswind.runs.streams import check_replay, play_streams

SHORT = CareerPlan(name="short", domains=("poi",), episodes=30, distances=(20, 15, 10, 5, 4, 3, 2))


def played(folder: Path, agent: object, plan: CareerPlan = SHORT, memory: str = "") -> list[Record]:
    asyncio.run(play_streams(plan, with_memory(open_agent(agent), memory), folder))
    return list(iter_records(folder))


def summed(records: list[Record]) -> CareerSummary:
    found = summarise_careers(records)
    assert found is not None
    return found


def compared(record: Record) -> dict[str, object]:
    return record.model_dump(exclude={"usage"})


def test_a_memoryless_agent_fails_exactly_what_needs_memory(tmp_path: Path) -> None:
    found = summed(played(tmp_path, "memoryless"))
    assert (found.independent.value, found.dependent.value) == (1.0, 0.0)


def test_a_perfect_updater_passes_all(tmp_path: Path) -> None:
    records = played(tmp_path, "updater")
    assert all(record.passed for record in records)
    assert {type(record.mark.memory) for record in records if record.mark} == {dict}


@pytest.mark.parametrize(
    ("agent", "fails"), [("append_only", "superseded"), ("credulous", "contradicted"), ("relister", "")]
)
def test_an_agent_fails_where_its_memory_is_at_fault(tmp_path: Path, agent: str, fails: str) -> None:
    for record in played(tmp_path, agent):
        if (need := need_of(record)) is None:
            assert record.passed
        else:
            assert not record.judged or record.passed is (need.twist != fails and fails != "")


def test_a_forgetful_agent_knows_what_is_near(tmp_path: Path) -> None:
    for record in played(tmp_path, "forgetful"):
        need = need_of(record)
        assert not record.judged or record.passed is (need is None or need.distance <= 10)


def test_a_killed_career_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    whole = played(tmp_path / "whole", "append_only")
    played(tmp_path / "killed", "append_only")
    lines = (tmp_path / "killed" / EPISODES).read_bytes().splitlines(keepends=True)
    (tmp_path / "killed" / EPISODES).write_bytes(b"".join(lines[:17]) + lines[17][:50])
    assert list(map(compared, played(tmp_path / "killed", "append_only"))) == list(map(compared, whole))


def test_a_stream_that_replays_differently_is_refused() -> None:
    count = [0]

    class Hidden:
        """Keeps state past `save`."""

        def reply(self, chat: object, tools: object) -> str:
            count[0] += 1
            return f"I cannot do this, for the {count[0]}th time."

    class Honest:
        def __init__(self) -> None:
            self.count = 0

        def restore(self, state: int | None) -> None:
            self.count = state or 0

        def save(self) -> int:
            return self.count

        def reply(self, chat: object, tools: object) -> str:
            self.count += 1
            return f"I cannot do this, for the {self.count}th time."

    for plan in (SHORT, load_plan("evolving")):
        asyncio.run(check_replay(plan, open_agent(Honest)))
        with pytest.raises(CrosswindError, match="replays differently after a kill: in episode 6 of 10, final"):
            asyncio.run(check_replay(plan, open_agent(Hidden)))


def test_failures_that_make_later_tasks_impossible_are_forfeited(tmp_path: Path) -> None:
    """An agent that cancels whatever a person holds takes later tasks away from itself."""
    from tests.runs.vandal import Vandal

    records = played(tmp_path, Vandal)
    found = summed(records)
    assert found.forfeited > 0
    lost = [record for record in records if record.outcome == "unjudged"]
    assert len(lost) == found.forfeited
    assert all(record.why.startswith("forfeited: ") for record in lost)
    assert found.dependent.n + found.independent.n + found.forfeited == SHORT.episodes
    marks = [record.mark.career for record in records if record.mark and record.mark.career]
    for before, mark in pairwise(marks):  # what a forfeited episode would have told is told in the next one
        if before.forfeited:
            assert set(before.recall.told) <= set(mark.recall.told)


def test_no_request_tells_what_it_needs() -> None:
    """What a forfeited episode would have told is told in the next one, unless that is the one which needs it."""
    career = Career(with_changes(SHORT, {"distances": (1,)}), "poi", 0, 0)
    n = next(n for n in range(SHORT.episodes) if (need := career.chapter(n)[1].need) and need.distance == 1)
    need = career.chapter(n)[1].need
    assert need is not None
    career.carried = dict(career.chapter(n)[0].carried)
    assert career.episode(n).mark.career.forfeited == ""  # type: ignore[union-attr]
    career.untold = career.chapter(n - 1)[1].told
    assert need.fact in {telling.fact for telling in career.untold}
    mark = career.episode(n).mark
    assert mark is not None
    assert mark.career is not None
    assert "the request would tell" in mark.career.forfeited
    career.after(mark, {})
    assert need.fact in {telling.fact for telling in career.untold}


def test_a_record_is_judged_again_and_drawn_again(tmp_path: Path) -> None:
    for record in played(tmp_path, "memoryless"):
        if not record.judged:
            continue
        assert judge(trajectory_of(record)).outcome == record.outcome
        drawn = redrawn(record)
        assert drawn.certificate.task.brief.query == record.query
        assert drawn.certificate.task.brief.policy == record.policy


def test_a_stale_value_is_recognised(tmp_path: Path) -> None:
    found = summed(played(tmp_path, "append_only"))
    assert found.stale.value == 1.0
    assert summed(played(tmp_path / "other", "memoryless")).stale.value == 0.0


def test_frozen_careers_state_every_fact(tmp_path: Path) -> None:
    asyncio.run(play_streams(SHORT, open_agent("memoryless"), tmp_path, frozen=True))
    records = list(iter_records(tmp_path))
    assert all(record.passed for record in records)
    assert not any(map(need_of, records))
    said = sentence(summarise(records), "memoryless")
    assert said.endswith("No request needs something from an earlier one; 0 episodes forfeited.")


# ---------------------------------------------------------------- notes


class Copyist:
    """Writes what the user says into its notes, and reads them first."""

    def __init__(self) -> None:
        self.turn = 0
        self.read: list[str] = []

    def reply(self, chat: list[Message], tools: Tools) -> Message:
        assert {"read_notes", "write_notes"} <= {tool.name for tool in tools}
        self.turn += 1
        if self.turn == 1:
            return Message(role="assistant", requests=(Request(id="1", tool="read_notes", args={}),))
        if self.turn == 2:
            self.read.append(chat[-1].content)
            text = f"{len(chat[-1].content)} characters were here"
            return Message(role="assistant", requests=(Request(id="2", tool="write_notes", args={"text": text}),))
        return Message(role="assistant", content="I cannot do this.")


def test_notes_are_kept_and_are_no_steps(tmp_path: Path) -> None:
    records = played(tmp_path, Copyist, with_changes(SHORT, {"episodes": 8}), memory="notes")
    kept = [record.mark.memory for record in records if record.mark]
    assert kept[0] == "13 characters were here"
    assert len(set(kept)) == 2
    assert all(record.steps == () for record in records)
    assert records[0].agent.endswith("with notes")


def test_notes_have_a_limit(tmp_path: Path) -> None:
    class Long(Copyist):
        def reply(self, chat: list[Message], tools: Tools) -> Message:
            self.turn += 1
            if self.turn > 1:
                assert "at most 4,000 fit" in chat[-1].content
                return Message(role="assistant", content="I cannot do this.")
            args = {"text": "x" * 4001}
            return Message(role="assistant", requests=(Request(id="1", tool="write_notes", args=args),))

    records = played(tmp_path, Long, with_changes(SHORT, {"episodes": 8}), memory="notes")
    assert {record.mark.memory for record in records if record.mark} == {""}
    assert not any(record.ended == "exception" for record in records)
    with pytest.raises(CrosswindError, match="expected notes"):
        with_memory(open_agent("oracle"), "vector")


def test_notes_with_half_a_character_are_refused_and_stop_nothing(tmp_path: Path) -> None:
    """Models write lone surrogates; a run cannot store them."""

    class Half(Copyist):
        def reply(self, chat: list[Message], tools: Tools) -> Message:
            self.turn += 1
            if self.turn > 1:
                assert "send whole characters" in chat[-1].content
                return Message(role="assistant", content="I cannot do this.")
            args = {"text": "a\ud83d"}
            return Message(role="assistant", requests=(Request(id="1", tool="write_notes", args=args),))

    records = played(tmp_path, Half, with_changes(SHORT, {"episodes": 8}), memory="notes")
    assert [record.ended for record in records] == ["refusal"] * 8
    assert {record.mark.memory for record in records if record.mark} == {""}


def test_an_agent_whose_trial_is_set_by_the_run_can_have_notes(tmp_path: Path) -> None:
    trials: list[int | None] = []

    class Sampling:
        """As local models are: which trial it plays is not known before a run says so."""

        trial: int | None = None

        async def reply(self, chat: object, tools: object) -> Message:
            trials.append(self.trial)
            return Message(role="assistant", content="I cannot do this.")

    class Source:
        name, price, concurrency, ending, settings = "sampling", None, 1, "words", dict[str, object]()

        def make(self, drawn: object) -> Sampling:
            return Sampling()

        async def aclose(self) -> None: ...

    asyncio.run(play_streams(SHORT, with_memory(Source(), "notes"), tmp_path, streams=2))  # type: ignore[arg-type]
    assert set(trials) == {0, 1}


def test_an_agent_that_keeps_its_own_state_takes_no_notes(tmp_path: Path) -> None:
    with pytest.raises(CrosswindError, match="has a memory of its own"):
        asyncio.run(play_streams(SHORT, with_memory(open_agent("updater"), "notes"), tmp_path))


def test_plans_of_careers_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\ndomains: [poi]\nepisodes: 20\nfacts: [place, gross]\n")
    assert isinstance(load_plan(str(path)), CareerPlan)
    path.write_text("name: mine\nfacts: [weather]\n")
    with pytest.raises(CrosswindError, match="weather"):
        load_plan(str(path))
    assert "careers" in {load_plan("careers").name}
    assert set(load_plan("careers").where()) <= set(domains.names())
