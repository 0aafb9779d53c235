"""Streams: releases are fair and met unchanged, a kill changes nothing, and reference agents land where they should."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import crosswind as cw
from crosswind.api.episode import task_of
from crosswind.base.errors import BadFile, CrosswindError, Unfair
from crosswind.core.certify import certify
from crosswind.core.memory import Recall
from crosswind.core.perturbation import load_layers
from crosswind.core.registry import domains, perturbations
from crosswind.episodes.career import CareerPlan
from crosswind.episodes.record import Record, redrawn
from crosswind.episodes.schedule import CareerMark, StreamMark
from crosswind.episodes.stream import PRECEDENCE, StreamPlan, Timeline, load_plan, release_notes, with_changes
from crosswind.gate.gate import examine
from crosswind.metrics.streams import paired, summarise
from crosswind.models.spec import open_agent
from crosswind.report import compare as compared_page
from crosswind.report.content import content
from crosswind.report.html import page
from crosswind.report.markdown import report
from crosswind.report.streams import sentence
from crosswind.runs.analysis import analyse
from crosswind.runs.comparison import compare
from crosswind.runs.runner import Limits
from crosswind.runs.store import EPISODES, iter_records, load_run
from crosswind.runs.streams import play_streams

SHORT = StreamPlan(name="short", domains=("poi",), episodes=40, releases=2)
CAREER = CareerPlan(name="career", domains=("poi",), episodes=8, distances=(3, 2))
A_CAREER = CareerMark(task=domains["poi"].task("hold_visit", 0), recall=Recall())


def played(folder: Path, agent: object, plan: StreamPlan = SHORT) -> list[Record]:
    asyncio.run(play_streams(plan, open_agent(agent), folder))
    return list(iter_records(folder))


def compared(record: Record) -> dict[str, object]:
    return record.model_dump(exclude={"usage"})


def test_a_release_may_leave_a_task_untouched_and_a_draw_may_not() -> None:
    timeline = Timeline(with_changes(SHORT, {"kinds": ("transient_error:1",), "releases": 1}), "poi", 3, 0)
    untouched = 0
    for n in range(40):
        task = timeline.decks[0].task(n)
        try:
            found = certify(timeline.domain, task, timeline.stacks[1], release=True)
        except Unfair:
            continue
        if not found.gold.session.first:
            untouched += 1
            with pytest.raises(Unfair, match="bites"):
                certify(timeline.domain, task, timeline.stacks[1])
            break
    assert untouched


def test_a_killed_stream_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    whole = played(tmp_path / "whole", "updater")
    asyncio.run(play_streams(SHORT, open_agent("updater"), tmp_path / "killed", limits=Limits()))
    lines = (tmp_path / "killed" / EPISODES).read_bytes().splitlines(keepends=True)
    (tmp_path / "killed" / EPISODES).write_bytes(b"".join(lines[:23]) + lines[23][:50])
    assert list(map(compared, played(tmp_path / "killed", "updater"))) == list(map(compared, whole))


@pytest.mark.parametrize("plan", [SHORT, load_plan("careers")], ids=["releases", "career"])
def test_streams_side_by_side_are_what_they_are_in_turn(tmp_path: Path, plan: StreamPlan | CareerPlan) -> None:
    """Also after a kill: each stream is continued from its own last line."""
    plan = with_changes(plan, {"domains": ("poi", "retail"), "episodes": 12})
    agent = Noting  # keeps what it was told in each stream apart

    def records(name: str, concurrency: int) -> dict[tuple[str, int], list[dict[str, object]]]:
        asyncio.run(play_streams(plan, open_agent(agent), tmp_path / name, streams=2, concurrency=concurrency))
        out: dict[tuple[str, int], list[dict[str, object]]] = {}
        for record in iter_records(tmp_path / name):
            out.setdefault((record.domain, record.trial), []).append(compared(record))
        return out

    in_turn = records("one", 1)
    assert len(in_turn) == 4
    assert records("three", 3) == in_turn
    lines = (tmp_path / "three" / EPISODES).read_bytes().splitlines(keepends=True)
    order = [(r.domain, r.trial) for r in iter_records(tmp_path / "three")]
    assert order != sorted(order)  # they really took turns
    (tmp_path / "three" / EPISODES).write_bytes(b"".join(lines[:19]) + lines[19][:40])
    assert records("three", 3) == in_turn


class Noting:
    """Keeps how many requests it was handed; every reply takes a moment, so that others have their turn."""

    def __init__(self) -> None:
        self.count = 0

    def restore(self, state: int | None) -> None:
        self.count = state or 0

    def save(self) -> int:
        return self.count + 1

    async def reply(self, chat: object, tools: object) -> str:
        await asyncio.sleep(0)
        return f"I cannot do this, for the {self.count}th time."


def test_one_object_with_a_memory_cannot_be_in_several_streams(tmp_path: Path) -> None:
    plan = with_changes(SHORT, {"episodes": 6})
    with pytest.raises(CrosswindError, match="give its class"):
        asyncio.run(play_streams(plan, open_agent(Noting()), tmp_path / "two", streams=2, concurrency=2))
    asyncio.run(play_streams(plan, open_agent(Noting()), tmp_path / "one", streams=2))


def test_reference_agents_land_where_theory_puts_them(tmp_path: Path) -> None:
    found = {a: summarise(played(tmp_path / a, a)) for a in ("oracle", "updater", "append_only")}
    assert found["oracle"].regret == 0
    assert found["oracle"].regret < found["updater"].regret <= found["append_only"].regret
    assert all(summary.stability.value in (None, 1.0) for summary in found.values())
    records = played(tmp_path / "updater", "updater")
    learnt = [set(map(str, (r.mark.memory or {}).items())) for r in records if r.mark]
    assert all(
        r.passed or after != before for before, r, after in zip(learnt[:-1], records[1:], learnt[1:], strict=True)
    )


def in_turn(some: list[Record], outcomes: str, release: int) -> list[Record]:
    """One stream with these outcomes, p or f, in which every so many episodes a release comes."""
    return [
        r.model_copy(
            update={
                "outcome": {"p": "pass", "f": "fail"}[outcome],
                "trial": 0,
                "mark": StreamMark(number=n, version=1 + n // release),
            }
        )
        for n, (r, outcome) in enumerate(zip(some, outcomes, strict=False))
    ]


def test_recovery_counts_only_what_success_fell_from(tmp_path: Path) -> None:
    some = played(tmp_path, "oracle")
    never = summarise(in_turn(some, "f" * 11 + "p" + "f" * 28, 4))  # one success, by chance, just before a change
    assert (never.window, never.falls, never.recovered, never.recovery) == (2, 0, None, None)
    assert sentence(never, "mine").endswith("there is nothing to recover from.")
    assert "over 2 episodes" in sentence(never, "mine")
    none = sentence(summarise(in_turn(some, "f" * 40, 4)), "mine")
    assert none.endswith("It never succeeds, so there is nothing to recover from.")
    back = summarise(in_turn(some, "pppp" + "ffpp" + "pppp" + "ffff", 4))  # within a release of four, then not
    assert (back.falls, back.recovered, back.recovery) == (2, 0.5, 2.0)
    assert "50\N{NO-BREAK SPACE}% of the 2 changes after which success fell" in sentence(back, "mine")
    slow = summarise(in_turn(some, "p" * 20 + "f" * 10 + "p" * 10, 20))
    assert (slow.window, slow.falls, slow.recovered, slow.recovery) == (10, 1, 1.0, 9.0 + 0)


def test_an_object_is_handed_what_it_saved(tmp_path: Path) -> None:
    handed: list[object] = []

    class Counting:
        def __init__(self) -> None:
            self.count = 0

        def restore(self, state: object) -> None:
            handed.append(state)
            self.count = state if isinstance(state, int) else 0

        def reply(self, chat: object, tools: object) -> str:
            return "I cannot do this."

        def save(self) -> int:
            return self.count + 1

    played(tmp_path, Counting, with_changes(SHORT, {"episodes": 6}))
    assert handed == [None, 1, 2, 3, 4, 5]


TWO = with_changes(SHORT, {"episodes": 3, "releases": 1})


class Keeping:
    kept: Any = None

    def restore(self, state: Any) -> None:
        self.got = state

    def reply(self, chat: object, tools: object) -> str:
        return "I cannot do this."

    def save(self) -> Any:
        return self.kept


def test_what_an_agent_saves_comes_back_exactly(tmp_path: Path) -> None:
    kept = {"text": "e\u0301 " * 20_000, "deep": [[[[{"n": [1, -0.5, None, True]}]]]] * 3, "": {"1": 2**62}}
    made: list[Any] = []

    class Mine(Keeping):
        def __init__(self) -> None:
            self.kept = kept
            made.append(self)

    played(tmp_path, Mine, TWO)
    assert made[-1].got == kept


@pytest.mark.parametrize(
    ("keep", "says"),
    [
        ((0, 1, 2, 4, 5), "expected episode 4, got episode 5"),
        ((0, 1, 3, 2), "expected episode 3, got episode 4"),
        ((1, 2), "expected episode 1, got episode 2"),
    ],
)
def test_a_stream_with_a_gap_is_not_continued(tmp_path: Path, keep: Sequence[int], says: str) -> None:
    """What follows depends on what came before, so nothing is played on top of a gap."""
    played(tmp_path, "updater")
    path = tmp_path / EPISODES
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[n] for n in keep))
    with pytest.raises(BadFile, match=says):
        played(tmp_path, "updater")
    assert path.read_bytes() == b"".join(lines[n] for n in keep)


@pytest.mark.parametrize("plan", [SHORT, CAREER], ids=["releases", "career"])
def test_a_record_without_its_place_is_no_part_of_a_stream(tmp_path: Path, plan: StreamPlan | CareerPlan) -> None:
    asyncio.run(play_streams(plan, open_agent("oracle"), tmp_path))
    path = tmp_path / EPISODES
    lines = path.read_bytes().splitlines(keepends=True)
    record = Record.model_validate_json(lines[3])
    assert record.mark is not None
    for mark in (None, record.mark.model_copy(update={"career": None if plan is CAREER else A_CAREER})):
        unmarked = record.model_copy(update={"mark": mark}).model_dump_json() + "\n"
        path.write_bytes(b"".join(lines[:3]) + unmarked.encode())
        with pytest.raises(BadFile, match="expected episode 4, got one without its place"):
            asyncio.run(play_streams(plan, open_agent("oracle"), tmp_path))


@pytest.mark.parametrize(
    ("kept", "says"),
    [
        ({"seen": {1}}, r"save\(\) of .* returned a set at \['seen'\]; expected JSON"),
        ({"a": [{1: 2}]}, r"a key that is an int, 1, at \['a'\]\[0\]"),
        ([float("nan")], r"the number nan at \[0\]"),
        (object(), "an object at the top"),
        ("\ud800", "half a character"),
        (2**70, "71 bits"),
        ("x" * 100_001, "returned 100,003 characters of JSON; expected at most 100,000"),
    ],
)
def test_what_json_would_alter_is_not_saved(tmp_path: Path, kept: Any, says: str) -> None:
    agent = Keeping()
    agent.kept = kept
    with pytest.raises(CrosswindError, match=says):
        played(tmp_path, agent, TWO)


def test_too_few_episodes_for_the_releases_are_told_with_the_number_needed() -> None:
    with pytest.raises(CrosswindError, match="3 episodes are too few for 2 releases; expected 5 or more"):
        with_changes(SHORT, {"episodes": 3})


@pytest.mark.parametrize("changelog", ["shown", "wrong"])
def test_a_changelog_is_in_the_policy_and_the_record_can_be_drawn_again(tmp_path: Path, changelog: str) -> None:
    records = played(tmp_path, "oracle", with_changes(SHORT, {"changelog": changelog}))
    told = next(r for r in records if r.mark and r.mark.notice)
    assert told.passed
    assert told.mark is not None
    assert told.mark.notice in told.policy
    assert redrawn(told).certificate.task.brief.policy.endswith(told.mark.notice)


def test_release_notes_keep_their_words_whatever_a_docstring_says() -> None:
    """Agents read them: another wording would be another episode."""
    layers = load_layers([{"kind": "format_switch", "formats": ["xml"]}], "test")
    told = release_notes(domains["poi"], task_of(domains["poi"], "", 0), [(), layers], 1, "shown")
    words = "Results are text in another format, which at higher severity changes from call to call."
    assert told == f"Release notes of version 2: This is new: {words} {PRECEDENCE}"
    assert not (perturbations["format_switch"].__doc__ or "").startswith(words)


def test_schedules_bring_releases_when_they_say() -> None:
    def versions(schedule: str, passed: list[bool]) -> list[int]:
        plan = with_changes(SHORT, {"schedule": schedule, "releases": 2, "episodes": 60})
        return [plan.version(n, passed[:n]) for n in range(60)]

    assert versions("abrupt", []) == [0] * 20 + [1] * 20 + [2] * 20
    assert versions("recurring", []) == [v for v in (0, 1, 2, 0, 1, 2) for _ in range(10)]
    assert versions("cascading", [])[:30] == [0] * 30
    assert set(versions("gradual", [])[20:30]) == {0, 1}
    assert versions("earned", [True] * 60) == [0] * 10 + [1] * 10 + [2] * 40
    assert versions("earned", [False] * 60) == [0] * 60


def test_a_stream_that_is_run_as_a_suite_is_sent_to_its_command() -> None:
    for name in ("evolving", "careers"):
        with pytest.raises(CrosswindError, match=f"crosswind stream {name}"):
            cw.evaluate("oracle", name)
    with pytest.raises(CrosswindError, match=r"'clock' is a suite.*crosswind run clock"):
        load_plan("clock")


def test_plans_that_cannot_work_are_refused(tmp_path: Path) -> None:
    for changes, why in (
        ({"kinds": ("typos",)}, "typos changes a single request, so it cannot be part of a release"),
        ({"drift": ("envelope",)}, "axis query"),
        ({"releases": 10**6, "episodes": 10**6}, "releases: got 1000000; expected at most 1000"),
        ({"drift_share": float("nan")}, "drift_share: got nan"),
        ({"domains": ("poi", "retail", "poi")}, "domains name poi twice"),
        ({"kinds": ("envelope:1", "envelope:4")}, "kinds name envelope twice"),
    ):
        with pytest.raises(CrosswindError, match=why):
            with_changes(SHORT, changes)
    with pytest.raises(CrosswindError, match="episodes: got 1000000000; expected at most 10000"):
        with_changes(CAREER, {"episodes": 10**9})
    with pytest.raises(CrosswindError, match="no releases to tell of; leave out the changelog"):
        with_changes(CAREER, {"changelog": "shown"})
    with pytest.raises(CrosswindError, match="facts name place twice"):
        with_changes(CAREER, {"facts": ("place", "place")})
    bad = tmp_path / "bad.yaml"
    bad.write_text("name: mine\ndomains: [nowhere]\n")
    with pytest.raises(CrosswindError, match=r"bad.yaml.*nowhere"):
        load_plan(str(bad))
    assert "poi" in domains


def test_the_report_shows_success_over_time_with_its_changes(tmp_path: Path) -> None:
    played(tmp_path, "updater")
    said = content(analyse(load_run(tmp_path), baselines=0, opened=0))
    assert said.stream is not None
    assert said.stream.changes == {"v2": 14, "v3": 27}
    assert set(said.stream.releases) == {"v1", "v2", "v3"}
    assert said.stream.success.low is None  # one stream has no interval over streams
    shown = page(said)
    assert shown.count('class="reach"') == 2
    assert "crosswind stream" not in shown  # no name stands for this plan
    named = with_changes(load_plan("evolving"), {"episodes": 40, "domains": ("poi",)}).model_dump(mode="json")
    told = said.run.manifest.model_copy(update={"suite": named})
    again = page(replace(said, run=replace(said.run, manifest=told)))
    assert "crosswind stream evolving --agent updater --episodes 40 --domain poi" in again
    assert "after 2 to 4 episodes under a release" in report(said)


def test_a_stream_is_compared_with_the_same_stream_without_changes(tmp_path: Path) -> None:
    played(tmp_path / "changing", "updater")
    asyncio.run(play_streams(SHORT, open_agent("updater"), tmp_path / "calm", frozen=True))
    said = compare([load_run(tmp_path / "calm"), load_run(tmp_path / "changing")])
    (one,) = said.versus
    assert one.stream is not None
    first, second = (load_run(tmp_path / name).records for name in ("calm", "changing"))
    same = sum(a.task_id == b.task_id for a, b in zip(first, second, strict=True))
    assert one.stream.difference.n == same > 30
    assert one.stream.first.value == 1.0
    assert one.stream.parts["release v1"].value == 0.0
    assert one.stream.parts["a release affects it"].value == pytest.approx(
        min(
            value
            for part, share in one.stream.parts.items()
            if (value := share.value) is not None and "affects" in part
        )
    )
    assert (one.stream.difference.value or 0) < 0
    assert one.stream.changes == {"v2": 14, "v3": 27}
    assert "at the same positions of their streams" in compared_page.verdict(said)
    page = compared_page.page(said)
    assert 'stroke-dasharray="1 4"' in page
    assert "a release affects it" in compared_page.markdown(said)
    assert compared_page.as_json(said)["versus"][one.name]["stream"]["difference"]["n"] == same
    assert paired(first, []) is None


def test_a_gate_judges_stability_and_recovery(tmp_path: Path) -> None:
    always = examine(played(tmp_path / "oracle", "oracle"), [], min_stability=0.5, max_recovery=0)
    never = examine(played(tmp_path / "memoriser", "memoriser"), [], max_recovery=3)
    verdicts = {finding.rule: finding.verdict for finding in (*always.findings, *never.findings)}
    assert verdicts["max-recovery"] in ("fail", "inconclusive")
    assert {f.rule for f in always.findings} >= {"min-stability", "max-recovery"}
    assert all(f.verdict != "fail" for f in always.findings)
    open_ = next(f for f in always.findings if f.rule == "max-recovery")  # one stream says little
    assert open_.verdict == "inconclusive"
    assert re.search(r"over 1 stream, .*about [\d,]+ more streams? would decide", open_.says)
    assert "more streams" in always.says
    assert not any("lack a side" in note for note in always.notes)
    with pytest.raises(CrosswindError, match="judge streams"):
        examine([], [], max_recovery=3)
    asyncio.run(play_streams(CAREER, open_agent("oracle"), tmp_path / "career"))
    asyncio.run(play_streams(SHORT, open_agent("oracle"), tmp_path / "frozen", frozen=True))
    for name in ("career", "frozen"):  # more streams would decide nothing
        with pytest.raises(CrosswindError, match="never changes; leave them out"):
            examine(list(iter_records(tmp_path / name)), [], max_recovery=3)
    said = examine(list(iter_records(tmp_path / "oracle")), [], max_recovery=1)
    assert any("back 1 episode after a change" in finding.says for finding in said.findings)


def test_streams_are_played_from_python(tmp_path: Path) -> None:
    run = cw.stream("updater", SHORT, episodes=10, out=tmp_path / "run")
    assert len(run) == 10
    assert run.figures.streams == 1
    assert "updater" in str(run)
    assert len(cw.stream("updater", SHORT, episodes=10, out=tmp_path / "run")) == 10  # resumed, and played no more
    with pytest.raises(CrosswindError, match="streams is 0"):
        cw.stream("updater", SHORT, streams=0)
