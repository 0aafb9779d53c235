"""A run: what is played, what becomes of each kind of failure, and what is left when it is stopped."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from typer.testing import CliRunner

from crosswind.base.errors import AgentException, CrosswindError, InfrastructureError
from crosswind.cli import dry_run
from crosswind.cli.app import app as cli
from crosswind.cli.dry_run import Forecast
from crosswind.cli.progress import RunDisplay
from crosswind.cli.run import folder_name
from crosswind.core import domain as domain_module
from crosswind.core.domain import JUDGE
from crosswind.core.draw import Drawn
from crosswind.core.perturbation import dump_layers
from crosswind.core.registry import agents, perturbations
from crosswind.core.types import Agent, Ending, Message, Request, Tools
from crosswind.episodes.record import Usage
from crosswind.episodes.schedule import Episode, Schedule, episodes, under
from crosswind.episodes.suite import Suite, suites
from crosswind.metrics.diagnosis import CAUSES, UNDETERMINED
from crosswind.metrics.stats import flipped
from crosswind.models import spec
from crosswind.models.retry import Fault, persist
from crosswind.models.source import AgentSettings, Price
from crosswind.models.spec import open_agent
from crosswind.report.advice import REMEDIES
from crosswind.runs import runner
from crosswind.runs.rescore import rescore
from crosswind.runs.runner import Crash, Limits, Progress, Ran, run
from crosswind.runs.store import Locked, load_run

QUICK = suites["quick"]
ROOT = Path(__file__).parents[2]


class Source:
    """Oracles, made one after the other by a function that may make something else."""

    price: Price | None = Price(1.0, 10.0)
    concurrency = 4
    ending: Ending = "words"
    resumes = False

    def __init__(self, change: Any = None) -> None:
        self.name, self.change = "double", change
        self.settings: dict[str, Any] = {}
        self.made: list[str] = []

    def make(self, drawn: Drawn) -> Agent:
        self.made.append(drawn.base.id)
        oracle: Agent = agents["oracle"](drawn)
        return Double(oracle, self.change, len(self.made))

    async def aclose(self) -> None:
        pass


class Double:
    """An agent to which something happens at its turns."""

    def __init__(self, inner: Agent, change: Any, nth: int) -> None:
        self.inner, self.change, self.nth, self.turn = inner, change, nth, 0
        self.usage = Usage()

    async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
        self.turn += 1
        self.usage = self.usage.plus(Usage(input_tokens=100, output_tokens=10, requests=1))
        if self.change:
            await self.change(self.nth, self.turn)
        return await self.inner.reply(chat, tools)


def played(folder: Path, source: Any = None, suite: Suite = QUICK, **given: Any) -> Ran:
    given.setdefault("pauses", (0.0, 0.0))
    return asyncio.run(run(suite, source or Source(), folder, **given))


def drawn(schedule: Schedule) -> list[Episode]:
    return [episode for episode in schedule if episode is not None]


# ---------------------------------------------------------------- what is played


@pytest.mark.parametrize(
    "suite",
    [
        QUICK,
        suites["heldout"].model_copy(update={"domains": ("poi", "banking"), "tasks": 2}),
        suites["original"].model_copy(update={"tasks": 1}),
        suites["tiers"].model_copy(update={"domains": ("retail",), "tasks": 1}),
    ],
    ids=lambda suite: suite.name,
)
def test_a_schedule_holds_the_episodes_of_the_suite(suite: Suite) -> None:
    schedule = Schedule(suite, 3)
    found = drawn(schedule)
    assert schedule.total == schedule.planned == len(found) == len({episode.key for episode in found})
    conditions = {condition.name: condition for condition in suite.all_conditions()}
    assert {episode.condition for episode in found} == set(conditions)
    for episode in found:
        condition, here = conditions[episode.condition], episode.drawn
        alone = under(here.domain, condition, here.base, 3)  # nothing is shared with other episodes of its task
        assert alone is not None
        assert (dump_layers(alone.layers), condition.severity) == (dump_layers(here.layers), episode.severity)
    assert [episode.key for episode in episodes(suite, 3)] == [episode.key for episode in found]


def test_whatever_was_played_so_far_is_paired() -> None:
    found = drawn(Schedule(suites["heldout"], 0, limit=60))
    assert len(found) == 60
    clean = [episode.task_id for episode in found if episode.condition == "clean"]
    for n, episode in enumerate(found):
        assert any(before.task_id == episode.task_id for before in found[: n + 1] if before.task_id in clean)
    assert len({episode.drawn.domain.name for episode in found}) > 1
    fewer = drawn(Schedule(suites["heldout"], 0, limit=20))
    assert [episode.key for episode in fewer] == [episode.key for episode in found[:20]]


def test_a_part_of_a_balanced_suite_is_balanced() -> None:
    found = [episode.drawn for episode in drawn(Schedule(suites["tiers"], 0, limit=200))]
    tiers = Counter(one.layers[0].tier for one in found if one.layers)
    names = Counter(one.domain.name for one in found)
    assert max(tiers.values()) - min(tiers.values()) <= 8
    assert max(names.values()) - min(names.values()) <= 3


def test_what_is_finished_is_not_drawn_again() -> None:
    every = [episode.key for episode in drawn(Schedule(QUICK, 0, trials=2))]
    assert len(every) == len(set(every)) == 40
    schedule = Schedule(QUICK, 0, trials=2, finished=set(every[:33]))
    assert [episode.key for episode in drawn(schedule)] == every[33:]
    assert schedule.planned == 40
    assert drawn(Schedule(QUICK, 0, trials=2, finished=set(every))) == []
    assert drawn(Schedule(QUICK, 0, trials=2, limit=30, finished=set(every[:33]))) == []


def test_trials_repeat_an_episode() -> None:
    found = drawn(Schedule(QUICK, 0, trials=3, limit=6))
    assert [episode.trial for episode in found] == [0, 1, 2, 0, 1, 2]
    assert found[0].drawn is found[2].drawn
    assert found[0].drawn is not found[3].drawn
    assert len({episode.key.rpartition("|")[0] for episode in found}) == 2


def test_a_narrowed_suite() -> None:
    original = suites["original"].narrowed(1, "medical")
    assert {c.name for c in original.conditions} >= {"medical: ambiguous"}
    assert original.domains == ("medical",)
    assert {episode.drawn.domain.name for episode in drawn(Schedule(original, 0))} == {"medical"}
    assert QUICK.narrowed(2, "all").tasks == 2
    with pytest.raises(CrosswindError, match="no domain 'pou'"):
        QUICK.narrowed(0, "pou")


def test_a_suite_is_narrowed_to_kinds_tiers_axes_and_several_domains() -> None:
    tiers = suites["tiers"]
    some = tiers.narrowed(domain=["poi", "retail"], only=["semantic-rename", "transient_error"])
    assert [c.name for c in some.all_conditions()] == ["clean", "semantic_rename", "transient_error"]
    assert some.where(some.all_conditions()[1]) == ["poi", "retail"]
    whole = {c.name: c for c in tiers.all_conditions()}
    assert some.conditions == (whole["semantic_rename"], whole["transient_error"])  # with as many tasks as in the whole
    for one, other in ((tiers.narrowed(tier=["reasoning"]), "tier"), (tiers.narrowed(axis=["action"]), "axis")):
        kinds = [perturbations[c.kind] for c in one.conditions]
        assert {getattr(kind, other) for kind in kinds} in ({"reasoning"}, {"action"})
        assert len(kinds) > 1
    both = tiers.narrowed(tier=["reasoning"], axis=["action"])
    assert {(perturbations[c.kind].tier, perturbations[c.kind].axis) for c in both.conditions} == {
        ("reasoning", "action")
    }


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"only": ["semantic_renam"]}, "no kind 'semantic_renam'; did you mean semantic_rename"),
        ({"tier": ["reasonin"]}, "no tier 'reasonin'; did you mean reasoning"),
        ({"axis": ["tools"]}, "no axis 'tools'; known: query, action"),
        ({"only": ["semantic_rename"], "tier": ["reasoning"]}, "fits --only semantic_rename --tier reasoning"),
        ({"only": ["rule_change"]}, "'quick' has no condition of rule_change; its kinds are "),
        ({"domain": ["poi", "poe"]}, "no domain 'poe'; did you mean poi"),
    ],
)
def test_what_a_suite_cannot_be_narrowed_to_is_told(given: dict[str, Any], told: str) -> None:
    with pytest.raises(CrosswindError, match=re.escape(told)):
        QUICK.narrowed(**given)


def test_a_run_of_less(tmp_path: Path, crosswind: Callable[..., str]) -> None:
    some = (
        "--only",
        "semantic_rename,transient_error",
        "--domain",
        "poi,retail",
        "--domain",
        "medical",
        "--tasks",
        "1",
    )
    crosswind("run", "tiers", "--agent", "retrier", "--out", tmp_path / "run", *some)
    records = load_run(tmp_path / "run").records
    assert {r.condition for r in records} == {"clean", "semantic_rename", "transient_error"}
    assert {r.domain for r in records} == {"poi", "retail", "medical"}
    listed = json.loads(crosswind("show", tmp_path / "run", "--kind", "transient_error", "--json"))
    assert {row["condition"] for row in listed} == {"transient_error"}
    assert "did you mean transient_error" in crosswind("show", tmp_path / "run", "--kind", "transient_eror", code=2)
    assert "did you mean gave up" in crosswind("show", tmp_path / "run", "--cause", "gave-upp", code=2)
    missed = ("show", tmp_path / "run", "--condition")
    assert "did you mean semantic_rename" in crosswind(*missed, "semantic_rname", code=2)
    assert "; known: clean, semantic_rename, transient_error" in crosswind(*missed, "semantc", code=2)
    shown = crosswind("show", tmp_path / "run", "--cause", "over_refusal,unsafe retry", "--kind", "transient_error")
    assert "0 of " in shown or "over-refusal" in shown


def test_names_of_folders_are_harmless() -> None:
    name = folder_name("../../etc/passwd", "openai:x\x1b[2J/../y@http://user:pw@host/v1")
    assert "/" not in name
    assert "\x1b" not in name
    assert ".." not in name


# ---------------------------------------------------------------- one run


def test_a_run_leaves_a_line_for_each_episode(tmp_path: Path) -> None:
    ran = played(tmp_path / "run")
    found = load_run(tmp_path / "run")
    assert (ran.manifest.state, ran.manifest.planned, ran.stopped, ran.broken) == ("finished", 20, "", False)
    assert found.manifest == ran.manifest
    assert found.problems == []
    assert len(found.records) == ran.progress.done == 20
    assert all(record.passed and record.agent == "double" for record in found.records)
    assert ran.progress.scores["clean"].passed == 4
    assert set(ran.progress.scores) == {"clean", "perception", "interaction", "reasoning", "right refusals"}
    record = found.records[0]
    assert record.usage.cost == pytest.approx(record.usage.requests * (100 * 1 + 10 * 10) / 1e6)
    assert ran.progress.spent.input_tokens == sum(r.usage.input_tokens or 0 for r in found.records)
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == ["episodes.jsonl", "lock", "run.json"]


def test_equal_seeds_give_equal_lines(tmp_path: Path) -> None:
    def lines(name: str, concurrency: int) -> list[dict[str, Any]]:
        played(tmp_path / name, open_agent("memoriser"), concurrency=concurrency)
        found = [json.loads(line) for line in (tmp_path / name / "episodes.jsonl").read_text().splitlines()]
        for line in found:
            line["usage"]["seconds"] = 0
        return sorted(found, key=lambda line: str(line["key"]))

    assert lines("one", 1) == lines("eight", 8)


def test_failed_episodes_have_a_stage_and_a_cause(tmp_path: Path) -> None:
    played(tmp_path / "run", open_agent("memoriser"))
    records = load_run(tmp_path / "run").records
    assert {r.outcome for r in records} == {"pass", "fail"}
    for record in records:
        assert bool(record.stage) == bool(record.cause) == (record.outcome == "fail")


def test_a_finished_run_plays_nothing_again(tmp_path: Path) -> None:
    played(tmp_path / "run")
    before = (tmp_path / "run" / "episodes.jsonl").read_bytes()
    source = Source()
    ran = played(tmp_path / "run", source)
    assert (ran.progress.done, ran.progress.before, source.made) == (0, 20, [])
    assert (tmp_path / "run" / "episodes.jsonl").read_bytes() == before


def test_a_limit_can_grow(tmp_path: Path) -> None:
    assert played(tmp_path / "run", limit=7).progress.done == 7
    ran = played(tmp_path / "run", limit=12)
    assert (ran.progress.before, ran.progress.done, ran.left) == (7, 5, 0)
    assert played(tmp_path / "run").progress.done == 8
    assert len(load_run(tmp_path / "run").records) == 20


def test_another_agent_is_refused(tmp_path: Path) -> None:
    played(tmp_path / "run", limit=3)
    for other in ({"source": open_agent("idle")}, {"seed": 1}, {"trials": 2}, {"limits": Limits(episode=3.0)}):
        with pytest.raises(CrosswindError, match="already holds a run with a different configuration"):
            played(tmp_path / "run", **other)
    assert len(load_run(tmp_path / "run").records) == 3


# ---------------------------------------------------------------- three kinds of failure


def test_a_fault_of_the_provider_is_played_again(tmp_path: Path) -> None:
    async def first_time(nth: int, turn: int) -> None:
        if nth == 1 and turn == 2:
            raise InfrastructureError("502")

    source = Source(first_time)
    ran = played(tmp_path / "run", source, limit=3, concurrency=1)
    record = load_run(tmp_path / "run").records[0]
    assert (len(source.made), ran.progress.errors, record.outcome) == (4, 0, "pass")
    assert record.usage.requests == 2 + 3  # what the first attempt used counts as well


def test_errors_count_nowhere_and_are_played_when_the_run_goes_on(tmp_path: Path) -> None:
    async def always(nth: int, turn: int) -> None:
        raise InfrastructureError("half a character \ud800 of an answer")

    source = Source(always)
    ran = played(tmp_path / "run", source, limit=4)
    assert ran.broken
    assert (ran.progress.errors, ran.progress.scores, len(source.made)) == (4, {}, 12)
    assert [r.outcome for r in load_run(tmp_path / "run").records] == ["error"] * 4
    kept = played(tmp_path / "run", limit=4, keep_errors=True)
    assert (kept.progress.done, kept.broken) == (0, True)
    again = played(tmp_path / "run", limit=4)
    assert (again.progress.done, again.progress.errors, again.broken) == (4, 0, False)
    assert len((tmp_path / "run" / "retried.jsonl").read_text().splitlines()) == 4
    records = load_run(tmp_path / "run").records
    assert all(record.passed for record in records)
    wasted = 4 * 3 * 100  # three attempts at each, and what they used is not forgotten
    assert again.progress.spent.input_tokens == wasted + sum(r.usage.input_tokens or 0 for r in records)


def test_a_fault_that_will_not_pass_is_not_tried_again(tmp_path: Path) -> None:
    class Final(InfrastructureError):
        retryable = False

    async def never(nth: int, turn: int) -> None:
        raise Final("no such model")

    source = Source(never)
    played(tmp_path / "run", source, limit=2)
    assert len(source.made) == 2


def test_a_provider_that_is_down_stops_the_run(tmp_path: Path) -> None:
    async def down(nth: int, turn: int) -> None:
        raise InfrastructureError("connection refused")

    ran = played(tmp_path / "run", Source(down), trials=10, concurrency=1, pauses=())
    assert ran.broken
    assert "20 episodes in a row" in ran.stopped
    assert "connection refused" in ran.stopped
    assert (ran.progress.done, ran.manifest.state) == (20, "stopped")


def test_what_the_user_must_mend_stops_the_run(tmp_path: Path) -> None:
    async def no_key(nth: int, turn: int) -> None:
        if nth == 6:
            raise CrosswindError("no key; set OPENAI_API_KEY")

    with pytest.raises(CrosswindError, match="OPENAI_API_KEY"):
        played(tmp_path / "run", Source(no_key), concurrency=1)
    assert len(load_run(tmp_path / "run").records) == 5
    assert load_run(tmp_path / "run").manifest.state == "stopped"


def test_a_bug_is_loud_and_loses_nothing(tmp_path: Path) -> None:
    async def bug(nth: int, turn: int) -> None:
        if nth == 6:
            raise ValueError("sk-secret")

    with pytest.raises(Crash) as crash:
        played(tmp_path / "run", Source(bug), concurrency=1)
    assert crash.value.by_agent
    assert crash.value.key
    assert len(load_run(tmp_path / "run").records) == 5
    assert "secret" not in (tmp_path / "run" / "run.json").read_text()


def test_a_bug_of_ours_is_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("oh")

    monkeypatch.setattr(domain_module.Domain, "judge", broken)
    with pytest.raises(Crash) as crash:
        played(tmp_path / "run")
    assert not crash.value.by_agent


def test_what_was_cancelled_inside_an_agent_is_its_failure_and_costs_no_other_episode(tmp_path: Path) -> None:
    async def now_and_then(nth: int, turn: int) -> None:
        if nth % 3 == 0:
            task = asyncio.create_task(asyncio.sleep(9))
            task.cancel()
            await task

    with pytest.warns(UserWarning, match="awaited what was cancelled"):
        ran = played(tmp_path / "run", Source(now_and_then), limit=9, concurrency=2, limits=Limits(episode=60.0))
    records = load_run(tmp_path / "run").records
    assert (ran.manifest.state, ran.left, len(records)) == ("finished", 0, 9)
    assert Counter(r.outcome for r in records) == {"pass": 6, "fail": 3}
    assert {(r.ended, r.final) for r in records if not r.passed} == {("answer", "")}


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_run_that_lost_an_episode_is_never_called_finished(tmp_path: Path, concurrency: int) -> None:
    """An agent that cancels the task it is played in takes a worker with it."""

    async def take_along(nth: int, turn: int) -> None:
        if nth == 3:
            task = asyncio.current_task()
            assert task
            task.cancel()
            await asyncio.sleep(9)

    with pytest.raises(Crash, match="CancelledError") as crash:
        played(tmp_path / "run", Source(take_along), limit=9, concurrency=concurrency)
    assert crash.value.by_agent
    assert load_run(tmp_path / "run").manifest.state == "stopped"
    ran = played(tmp_path / "run", limit=9)
    assert (ran.manifest.state, len(load_run(tmp_path / "run").records)) == ("finished", 9)


def test_an_agent_that_leaves_stops_the_run_as_a_bug_would(tmp_path: Path) -> None:
    async def leave(nth: int, turn: int) -> None:
        if nth == 3:
            raise SystemExit(0)

    with pytest.raises(Crash, match="SystemExit") as crash:
        played(tmp_path / "run", Source(leave), concurrency=1)
    assert crash.value.by_agent
    assert len(load_run(tmp_path / "run").records) == 2


def test_an_agent_is_told_its_trial_if_it_wants_to_know(tmp_path: Path) -> None:
    told: list[int] = []

    class Curious(Double):
        trial = 9

        async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
            told.append(self.trial)
            return Message(role="assistant")

    class Sources(Source):
        def make(self, drawn: Drawn) -> Agent:
            return Curious(super().make(drawn), None, 1)

    played(tmp_path / "run", Sources(), trials=3, limit=6, concurrency=1)
    assert told == [0, 1, 2, 0, 1, 2]


# ---------------------------------------------------------------- deadlines and budgets


def test_an_agent_that_is_too_slow_has_failed(tmp_path: Path) -> None:
    async def slow(nth: int, turn: int) -> None:
        if nth == 2 and turn == 2:
            await asyncio.sleep(30)

    source = Source(slow)
    played(tmp_path / "run", source, limit=4, concurrency=1, limits=Limits(episode=0.2))
    records = load_run(tmp_path / "run").records
    assert len(source.made) == 4  # and is not asked again
    late = records[1]
    assert (late.outcome, late.ended, len(late.steps)) == ("fail", "budget", 1)
    assert late.why == "the episode took more than its 0.2 seconds"
    assert (late.cause, REMEDIES["timed out"].split(",")[0]) == ("timed out", "Answer faster")
    assert [r.outcome for r in records] == ["pass", "fail", "pass", "pass"]


def test_the_summary_says_that_an_agent_timed_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "idler.py").write_text("import asyncio\nasync def agent(query, tools):\n    await asyncio.sleep(99)\n")
    monkeypatch.chdir(tmp_path)
    words = [
        "run",
        "quick",
        "--agent",
        "python:idler:agent",
        "--limit",
        "1",
        "--episode-timeout",
        "0.2",
        "--out",
        "run",
    ]
    done = CliRunner().invoke(cli, [*words, "--no-progress"])
    assert done.exit_code == 0, done.output
    told = " ".join(done.output.split())
    assert "1 episode timed out and failed" in told
    assert "crosswind show run --cause 'timed out'" in told
    assert "1 episode (1 now)" in told


class Stubborn:
    """Makes one call that fails, over and over."""

    async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
        return Message(role="assistant", requests=(Request(id="1", tool="no_such_tool", args={}),))


def test_a_call_that_keeps_failing_ends_the_episode_if_that_is_asked_for(tmp_path: Path) -> None:
    source = Source(lambda nth, turn: None)
    source.make = lambda drawn: Stubborn()  # type: ignore[method-assign]
    played(tmp_path / "stopped", source, limit=2, limits=Limits(repeats=3))
    stopped = load_run(tmp_path / "stopped")
    assert [(r.outcome, r.ended, len(r.steps)) for r in stopped.records] == [("fail", "budget", 3)] * 2
    assert {r.cause for r in stopped.records} <= set(CAUSES) - {UNDETERMINED}
    assert stopped.manifest.max_repeats == 3
    played(tmp_path / "whole", source, limit=2)
    assert all(len(r.steps) == r.budget > 3 for r in load_run(tmp_path / "whole").records)


class Forgetful:
    """Makes one call that works, over and over."""

    async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
        return Message(
            role="assistant", requests=(Request(id="1", tool="find_places", args={"city": "Oslo", "category": "zoo"}),)
        )


def test_a_call_that_keeps_returning_the_same_ends_the_episode_too(tmp_path: Path) -> None:
    source = Source(lambda nth, turn: None)
    source.make = lambda drawn: Forgetful()  # type: ignore[method-assign]
    played(tmp_path / "stopped", source, limit=1, limits=Limits(repeats=3))
    (record,) = load_run(tmp_path / "stopped").records
    assert (record.outcome, record.ended, len(record.steps)) == ("fail", "budget", 3)
    assert record.steps[0]["result"] == record.steps[2]["result"]


def test_our_own_queueing_is_not_the_agents_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws take longer than an episode may: an agent that answers at once is in time however many are waiting."""
    drawn = Schedule.__iter__

    def slowly(schedule: Schedule) -> Iterator[Episode | None]:
        for episode in drawn(schedule):
            time.sleep(0.05)
            yield episode

    async def at_once(nth: int, turn: int) -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr(Schedule, "__iter__", slowly)
    played(tmp_path / "run", Source(at_once), limit=12, concurrency=12, limits=Limits(episode=0.5))
    assert [r.outcome for r in load_run(tmp_path / "run").records] == ["pass"] * 12


def test_a_draw_stops_the_clocks_of_episodes_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One draw may take longer than an episode; an answer that came meanwhile is not late."""
    drawn = Schedule.__iter__

    def slowly(schedule: Schedule) -> Iterator[Episode | None]:
        for n, episode in enumerate(drawn(schedule)):
            time.sleep(0.4 if n else 0)
            yield episode

    async def soon(nth: int, turn: int) -> None:
        await asyncio.sleep(0.02)

    monkeypatch.setattr(Schedule, "__iter__", slowly)
    played(tmp_path / "run", Source(soon), limit=2, concurrency=2, limits=Limits(episode=0.3))
    assert [r.outcome for r in load_run(tmp_path / "run").records] == ["pass"] * 2


def test_an_agent_that_blocks_is_noticed_afterwards(tmp_path: Path) -> None:
    async def block(nth: int, turn: int) -> None:
        time.sleep(0.06)

    played(tmp_path / "run", Source(block), limit=1, limits=Limits(episode=0.05))
    assert load_run(tmp_path / "run").records[0].ended == "budget"


class Provider:
    """Requests to a provider that answers, fails after a time, or never answers."""

    def __init__(self, *plan: str) -> None:
        self.plan, self.asked = plan, 0

    async def send(self) -> None:
        does = self.plan[min(self.asked, len(self.plan) - 1)]
        self.asked += 1
        if does == "slow":
            await asyncio.sleep(1.2)
            raise Fault("the server fails", retryable=True)
        if does != "answers":
            await asyncio.sleep(60)

    async def reply(self, nth: int, turn: int) -> None:
        limits = AgentSettings(timeout=0.2 if "dripping" in self.plan else 5.0, backoff=0.01, attempts=4)
        try:
            await persist(self.send, limits, Random(0), lambda fault: None)
        except Fault as fault:
            raise InfrastructureError(str(fault)) from None


@pytest.mark.parametrize(
    ("plan", "outcomes"),
    [
        (("dripping",), {"error"}),
        (("slow",), {"error"}),
        (("slow", "slow", "answers"), {"pass"}),  # what failed is not the agent's time
        (("mute",), {"error"}),
        (("answers", "mute"), {"fail"}),  # it answers, and is too slow at last
    ],
)
def test_a_provider_that_does_not_answer_is_not_the_agents_failure(
    plan: tuple[str, ...], outcomes: set[str], tmp_path: Path
) -> None:
    played(tmp_path / "run", Source(Provider(*plan).reply), limit=1, concurrency=1, limits=Limits(episode=2.0))
    assert {r.outcome for r in load_run(tmp_path / "run").records} == outcomes


def test_a_timeout_of_the_agents_own_is_not_the_deadline(tmp_path: Path) -> None:
    async def own(nth: int, turn: int) -> None:
        raise TimeoutError

    with pytest.raises(Crash):
        played(tmp_path / "run", Source(own), limit=1, limits=Limits(episode=9.0))


def test_a_deadline_stops_the_run_and_drops_what_is_under_way(tmp_path: Path) -> None:
    async def later(nth: int, turn: int) -> None:
        if nth > 5:
            await asyncio.sleep(30)

    ran = played(tmp_path / "run", Source(later), limits=Limits(deadline=0.5))
    assert not ran.broken
    assert ran.stopped == "the deadline of 0.5 seconds has passed"
    done = len(load_run(tmp_path / "run").records)
    assert done == ran.progress.done == 20 - ran.left
    assert played(tmp_path / "run").progress.done == 20 - done


@pytest.mark.parametrize("limits", [Limits(tokens=1000), Limits(cost=0.002)], ids=["tokens", "cost"])
def test_a_budget_counts_for_the_whole_folder(tmp_path: Path, limits: Limits) -> None:
    ran = played(tmp_path / "run", limits=limits, concurrency=1)
    assert "is used up" in ran.stopped
    assert not ran.broken
    assert 0 < ran.progress.done < 20
    again = played(tmp_path / "run", limits=limits)
    assert (again.progress.done, again.manifest.state, again.budget) == (0, "stopped", True)
    assert played(tmp_path / "run").manifest.state == "finished"


class Sparing(Source):
    """Says nothing of the tokens of one reply in three."""

    def make(self, drawn: Drawn) -> Agent:
        double = super().make(drawn)
        assert isinstance(double, Double)

        before = [Usage()]

        async def hush(nth: int, turn: int) -> None:
            if turn % 3 == 1:
                double.usage = before[0].plus(Usage(input_tokens=None, output_tokens=None, requests=1))
            before[0] = double.usage

        double.change = hush
        return double


def test_a_budget_counts_replies_without_usage(tmp_path: Path) -> None:
    most = Limits(tokens=5000)
    with pytest.warns(UserWarning, match="--max-tokens counts an estimate of those"):
        ran = played(tmp_path / "run", Sparing(), limits=most, concurrency=1)
    assert re.search(r"the budget of 5,000 tokens is used up \(about \d,\d{3} were used\)", ran.stopped)
    assert 0 < ran.progress.done < 20
    assert ran.progress.spent.tokens is None
    assert sum(ran.progress.spent.charged) >= 5000
    for record in load_run(tmp_path / "run").records:
        assert record.usage.charged[0] > 100 * record.usage.requests
        assert record.usage.cost == pytest.approx(Price(1, 10).of(*record.usage.charged))
    again = played(tmp_path / "run", Sparing(), limits=most)  # what is stored counts as well
    assert (again.progress.done, again.budget) == (0, True)


def test_other_prices_are_refused(tmp_path: Path) -> None:
    played(tmp_path / "run", limit=2)
    dearer, euros = Source(), Source()
    dearer.price, euros.price = Price(2, 20), Price(1, 10, "EUR")
    for source, told in ((dearer, r"price.input was 1.0, now 2"), (euros, 'price.currency was "USD", now "EUR"')):
        with pytest.raises(CrosswindError, match=told):
            played(tmp_path / "run", source, limit=4)
    assert {r.usage.currency for r in load_run(tmp_path / "run").records} == {"USD"}
    path = tmp_path / "run" / "run.json"
    earlier = {name: value for name, value in json.loads(path.read_text()).items() if name != "price"}
    path.write_text(json.dumps(earlier))  # as a version wrote it that did not store prices
    assert played(tmp_path / "run", dearer, limit=3).progress.done == 1
    assert played(tmp_path / "run", dearer, limit=3).progress.spent.in_words.endswith(" USD")


def test_whoever_looks_on_is_told(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    class Watch:
        def show(self, progress: Progress) -> None:
            seen.append((progress.done, progress.total))

    played(tmp_path / "run", watch=Watch())
    assert seen[-1] == (20, 20)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


# ---------------------------------------------------------------- kills


def test_kills_lose_and_repeat_nothing(tmp_path: Path) -> None:
    """The whole of it, with thirty kills, is `bench/runner.py`."""
    out = tmp_path / "figures.json"
    command = [sys.executable, "bench/runner.py", "--parts", "kills", "--kills", "8", "--seed", str(os.getpid())]
    subprocess.run([*command, "--json", out], cwd=ROOT, check=True, capture_output=True, timeout=120)
    found = json.loads(out.read_text())["kills"]
    assert (found["kills"], found["exit"], found["problems"]) == (8, 0, [])
    assert (found["lost"], found["unknown"], found["duplicated"]) == (0, 0, 0)
    assert found["begun"] <= found["most_begun"]


# ---------------------------------------------------------------- judging anew


def test_rescoring_says_what_changed_and_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "run"
    played(folder, open_agent("memoriser"))
    before = load_run(folder)
    same = rescore(folder)
    assert (same.episodes, same.judges, same.changed, same.backup) == (20, {JUDGE: 20}, [], "")

    real = domain_module.Domain.judge

    def strict(*args: Any) -> Any:
        """A verifier that takes nothing for granted."""
        return real(*args).model_copy(update={"outcome": "fail", "judge": "next"})

    monkeypatch.setattr(domain_module.Domain, "judge", strict)
    changed = rescore(folder, write=True)
    passed = {r.key for r in before.records if r.passed}
    assert {one.key for one in changed.changed} == passed
    after = load_run(folder)
    assert {r.judge for r in after.records} == {"next"}
    assert not any(r.passed for r in after.records)
    assert [json.loads(line)["judge"] for line in Path(changed.backup).read_text().splitlines()] == [JUDGE] * 20
    assert rescore(folder).judges == {"next": 20}


def test_errors_are_not_judged_anew(tmp_path: Path) -> None:
    async def always(nth: int, turn: int) -> None:
        raise InfrastructureError("502")

    played(tmp_path / "run", Source(always), limit=2)
    found = rescore(tmp_path / "run", write=True)
    assert (found.episodes, found.changed) == (2, [])
    assert [r.outcome for r in load_run(tmp_path / "run").records] == ["error", "error"]


# ---------------------------------------------------------------- the command

PLUGIN = """
import asyncio
from crosswind.agents.oracle import Oracle
from crosswind.core.registry import agents

class Slow(Oracle):
    async def reply(self, chat, tools):
        await asyncio.sleep(0.05)
        return await super().reply(chat, tools)

class Stuck(Oracle):
    made = 0

    async def reply(self, chat, tools):
        Stuck.made += 1
        await asyncio.sleep(0 if Stuck.made < 20 else 60)
        return await super().reply(chat, tools)

class Buggy(Oracle):
    async def reply(self, chat, tools):
        raise ValueError("hostile \\x1b[2J text")

agents.add("slow", Slow)
agents.add("stuck", Stuck)
agents.add("buggy", Buggy)
"""


def command(folder: Path, agent: str, *given: str) -> list[str]:
    """The same in a process of its own, with the agents above."""
    (folder / "plugin.py").write_text(PLUGIN)
    start = [sys.executable, "-m", "crosswind.cli.app", "--plugin", str(folder / "plugin.py"), "run", "quick"]
    return [*start, "--agent", agent, "--out", str(folder / "run"), *given]


def test_the_command_runs_continues_and_refuses(tmp_path: Path, crosswind: Callable[..., str]) -> None:
    given = ("run", "quick", "--agent", "memoriser", "--out", tmp_path / "run")
    shown = crosswind(*given, "--limit", "8")
    assert "perception" in shown
    assert "change in points" in shown
    assert "tasks" in shown
    assert f"crosswind report {tmp_path / 'run'}" in shown.replace("\n", "")
    data = json.loads(crosswind(*given, "--json"))
    assert (data["state"], data["episodes"], data["played"], data["errors"]) == ("finished", 20, 12, 0)
    assert data["drops"]["all"]["pairs"] == 12  # and four tasks to refuse
    refused = crosswind(*given, "--seed", "2", code=2)
    assert refused.startswith("error: ")
    assert "seed was 0, now 2" in refused
    assert "0 verdicts changed" in crosswind("rescore", tmp_path / "run")
    assert json.loads(crosswind("rescore", tmp_path / "run", "--write", "--json"))["backup"] == ""
    assert "expected auto, native, text or quoted" in crosswind(*given, "--protocol", "smoke", code=2)
    assert "every episode" not in crosswind(*given, "--deadline", "100")


def test_the_command_where_nothing_can_be_scored(
    tmp_path: Path, crosswind: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def down(nth: int, turn: int) -> None:
        raise InfrastructureError("\x1b[2Jconnection refused")

    monkeypatch.setattr(spec, "open_agent", lambda *_: Source(down))
    monkeypatch.setattr(runner, "PAUSES", ())
    assert crosswind("run", "quick", "--agent", "down", "--out", tmp_path / "run", "--limit", "3", code=3) == ""
    assert [r.outcome for r in load_run(tmp_path / "run").records] == ["error"] * 3


def test_the_command_on_a_full_disk(
    tmp_path: Path, crosswind: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real one: the system refuses to let files grow."""
    given = ("run", "quick", "--agent", "oracle", "--out", tmp_path / "run")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, hard))
    try:
        told = crosswind(*given, code=3)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "File too large" in told
    assert "give the same command to continue" in told
    before = len(load_run(tmp_path / "run").records)
    assert 0 < before < 20
    assert json.loads(crosswind(*given, "--json"))["played"] == 20 - before


def test_a_dry_run_plays_nothing(tmp_path: Path, crosswind: Callable[..., str]) -> None:
    given = ("run", "quick", "--agent", "oracle", "--out", tmp_path / "run", "--dry-run", "--trials", "3")
    data = json.loads(crosswind(*given, "--json"))
    assert (data["episodes"], data["exact"], data["by_tier"]["clean"]) == (60, True, 12)
    assert data["input_tokens"] > data["output_tokens"] > 0
    assert (data["tasks"]["perception"], data["tasks"]["all"]) == (4, 4)
    assert data["detectable"]["all"] is None  # 48 pairs, but of four tasks
    shown = crosswind(*given)
    assert "60 episodes" in shown
    assert "tasks" in shown
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "flags",
    [("--trials", "100000"), ("--trials", "1" + "0" * 20), ("--tasks", "1" + "0" * 20), ("--limit", "1" + "0" * 20)],
)
def test_a_dry_run_of_any_size_draws_few_episodes(
    flags: tuple[str, ...], crosswind: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dry_run, "DRAWN", 25)
    given = ("run", "quick", "--agent", "oracle", "--dry-run")
    data = json.loads(crosswind(*given, *flags, "--json"))
    drawn, whole = Counter[str](), Schedule.__iter__

    def counted(schedule: Schedule) -> Iterator[Episode | None]:
        for one in whole(schedule):
            drawn["draws"] += 1
            yield one

    monkeypatch.setattr(Schedule, "__iter__", counted)
    assert json.loads(crosswind(*given, *flags, "--json"))["episodes"] == data["episodes"]
    assert drawn["draws"] <= 40
    once = json.loads(crosswind(*given, "--json"))
    times = int(flags[1]) if flags[0] == "--trials" else 1
    if flags[0] != "--tasks":
        assert (data["episodes"], data["by_tier"]["clean"]) == (20 * times, 4 * times)
        assert data["detectable"] == once["detectable"]
        assert data["input_tokens"] == pytest.approx(once["input_tokens"] * times)
    else:
        assert data["episodes"] > 10**20
        assert "estimated from the first 25" in " ".join(crosswind(*given, *flags).split())


def test_any_number_of_trials_takes_no_memory_before_it_is_played() -> None:
    schedule = filter(None, Schedule(QUICK, 0, trials=10**15))
    assert [next(schedule).trial for _ in range(3)] == [0, 1, 2]


def test_a_dry_run_tells_what_is_left(tmp_path: Path, crosswind: Callable[..., str]) -> None:
    given = ("run", "quick", "--agent", "oracle", "--out", tmp_path / "run")
    whole = json.loads(crosswind(*given, "--dry-run", "--json"))
    crosswind(*given, "--limit", "5")
    rest = json.loads(crosswind(*given, "--dry-run", "--json"))
    assert (whole["episodes"], whole["left"], rest["episodes"], rest["left"]) == (20, 20, 20, 15)
    assert rest["input_tokens"] == pytest.approx(whole["input_tokens"] * 15 / 20, rel=0.01)
    assert "5 of 20 episodes are in" in crosswind(*given, "--dry-run")


@pytest.mark.parametrize(
    ("how", "given", "code"),
    [
        ("closed", "--limit 4 --no-progress >&-", 0),
        ("without input", "--limit 4 --no-progress --json <&-", 0),
        ("long name", f"--limit 4 --out {'d' * 300}", 2),
        ("long path", f"--limit 4 --out {'/'.join(['d' * 200] * 25)}", 2),
    ],
)
def test_odd_streams_and_names_are_no_bugs(tmp_path: Path, how: str, given: str, code: int) -> None:
    start = f"{sys.executable} -m crosswind.cli.app run quick --agent oracle --out {tmp_path / 'run'} {given}"
    done = subprocess.run(["bash", "-c", start], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == code, done.stderr
    assert "bug" not in done.stderr
    if code == 0:
        assert len(load_run(tmp_path / "run").records) == 4
    else:
        assert "File name too long" in done.stderr


def test_a_report_in_the_c_locale(tmp_path: Path) -> None:
    played(tmp_path / "run", limit=4)
    plain = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    start = [sys.executable, "-m", "crosswind.cli.app", "report", str(tmp_path / "run"), "--baselines", "0"]
    for more in ((), ("--markdown",)):
        done = subprocess.run([*start, *more], capture_output=True, env=plain, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.isascii()


def test_a_dry_run_needs_no_key_and_names_currency_and_time(
    crosswind: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CROSSWIND_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    given = ("run", "quick", "--agent", "openai:gpt-5", "--dry-run", "--price-in", "2", "--price-out", "8")
    data = json.loads(crosswind(*given, "--currency", "EUR", "--concurrency", "4", "--json"))
    assert data["cost"] == pytest.approx((2 * data["input_tokens"] + 8 * data["output_tokens"]) / 1e6)
    assert data["currency"] == "EUR"
    assert data["requests"] > data["episodes"]
    assert data["seconds"] == pytest.approx(data["requests"] * 2 / 4, abs=1)
    shown = " ".join(crosswind(*given).split())
    assert " USD" in shown
    assert "Time: about" in shown
    assert "needs a key" in crosswind("run", "quick", "--agent", "openai:gpt-5", code=2)


@pytest.mark.parametrize("sizes", [[1] * 40, [8] * 40, [12] * 10 + [1] * 30], ids=["alone", "even", "uneven"])
def test_what_a_dry_run_promises_the_analysis_delivers(sizes: list[int]) -> None:
    """Pairs of one task change all alike here: the worst case, which is what the promise is made for."""
    fall = Forecast({str(n): size for n, size in enumerate(sizes)}).detectable
    assert fall
    rng, found = Random(7), 0
    for _ in range(300):
        luck = [rng.random() for _ in sizes]
        ways = [-1 if one < 0.05 + fall else 1 if one < 0.1 + fall else 0 for one in luck]
        found += flipped(way * size for way, size in zip(ways, sizes, strict=True)) < 0.05
    assert found >= 0.74 * 300


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_it_with_a_sentence(tmp_path: Path, sent: signal.Signals) -> None:
    folder = tmp_path / "run"
    heeds = partial(signal.signal, sent, signal.SIG_DFL)  # a job in the background would not
    asked = command(tmp_path, "stuck", "--json")
    pipes = {"stderr": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(asked, **pipes, text=True, preexec_fn=heeds) as child:  # type: ignore[call-overload]
        until = time.monotonic() + 60
        while not ((folder / "episodes.jsonl").exists() and (folder / "episodes.jsonl").stat().st_size):
            assert child.poll() is None
            assert time.monotonic() < until
            time.sleep(0.02)
        with pytest.raises(Locked, match=f"pid {child.pid} "):
            played(folder)
        child.send_signal(sent)
        printed, errors = child.communicate(timeout=60)
    assert child.returncode == 130
    told = json.loads(printed)
    assert (told["folder"], told["state"]) == (str(folder), "stopped")
    assert told["episodes"] == len(load_run(folder).records)
    assert "Traceback" not in errors
    assert f"To resume, rerun the command with --out {folder}" in errors
    assert load_run(folder).manifest.state == "stopped"


def test_a_crash_is_told_without_a_traceback(tmp_path: Path) -> None:
    done = subprocess.run(command(tmp_path, "buggy"), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 70
    assert "the agent's code raised ValueError" in done.stderr
    assert "Traceback" not in done.stderr
    assert "\x1b" not in done.stderr
    told = (tmp_path / "run" / "crash.txt").read_text()
    assert "plugin.py" in told
    assert "hostile" not in told


LEAVING = """
import asyncio, sys

async def agent(query, tools):
    async def left():
        sys.exit(0)
    task = asyncio.create_task(left())
    await asyncio.sleep(9)
"""


def test_a_task_of_an_agents_own_that_leaves_is_told_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "leaving.py").write_text(LEAVING)
    start = [
        sys.executable,
        "-m",
        "crosswind.cli.app",
        "run",
        "quick",
        "--agent",
        "python:leaving:agent",
        "--out",
        "run",
    ]
    path = str(Path(runner.__file__).parents[2])
    done = subprocess.run(
        start,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert done.returncode == 70
    assert "the agent's code raised SystemExit: 0" in done.stderr
    assert "Traceback" not in done.stderr
    assert load_run(tmp_path / "run").manifest.state == "stopped"


def test_a_line_of_progress_ends_where_it_ends() -> None:
    assert RunDisplay(quiet=True).line(Progress(total=20)) == "0 of 20 episodes, 0/s"


def test_a_terminal_gets_a_live_line(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen(command(tmp_path, "slow"), stderr=theirs, stdout=subprocess.DEVNULL, env=env) as child:
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # that is how it ends on Linux
            while part := os.read(ours, 65536):
                shown += part
        assert child.wait(timeout=60) == 0
    os.close(ours)
    assert b" of about 20 episodes" in shown
    assert b"perception 100 %" in shown
    assert b"right refusals" in shown  # the last of a line that is too long for the terminal


LOUD = """
import os, subprocess
print("on import")

def agent(query, tools):
    print("from Python")
    os.write(1, b"from a library")
    subprocess.run(["echo", "from a child"])
    raise ValueError(query)
"""


def test_a_loud_and_broken_agent_is_stopped_and_its_output_kept_apart(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(LOUD)
    start = [sys.executable, "-m", "crosswind.cli.app", "run", "quick", "--agent", "python:loud:agent", "--out", "run"]
    path = str(Path(runner.__file__).parents[2])

    def go() -> subprocess.CompletedProcess[str]:
        env = os.environ | {"PYTHONPATH": path}
        return subprocess.run(
            [*start, "--json"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False, env=env
        )

    done = go()
    said = json.loads(done.stdout)
    assert (done.returncode, said["state"], said["left"] > 0) == (70, "stopped", True)
    assert "same exception of the agent (ValueError" in said["stopped"]
    assert "in agent" in said["raised"]
    assert all(words in done.stderr for words in ("on import", "from Python", "from a library", "from a child"))
    assert {(r.ended, r.outcome) for r in load_run(tmp_path / "run").records} == {("exception", "fail")}
    (tmp_path / "loud.py").write_text(LOUD + "# fixed\n")
    done = go()
    assert (done.returncode, "the agent's code has changed" in done.stderr) == (2, True)
    assert "restore its old code and use the settings of that run; otherwise choose another --out" in done.stderr
    (problem,) = load_run(tmp_path / "run").problems
    assert problem.endswith("rerun the same command to resume it")


def test_a_run_whose_last_episode_is_a_reason_to_stop_is_finished(tmp_path: Path) -> None:
    async def breaks(nth: int, turn: int) -> None:
        raise AgentException("ValueError: no")

    wanted = len(drawn(Schedule(QUICK, 0)))
    ran = played(tmp_path / "all", Source(breaks), limits=Limits(exceptions=wanted))
    assert (ran.manifest.state, ran.manifest.planned, ran.stopped, ran.raising) == ("finished", wanted, "", True)
    ran = played(tmp_path / "most", Source(breaks), limits=Limits(exceptions=wanted - 1), concurrency=1)
    assert (ran.manifest.state, ran.progress.done) == ("stopped", wanted - 1)
    assert "same exception" in ran.stopped


@pytest.mark.parametrize("together", [1, 4])
def test_no_episode_starts_once_the_same_exception_ended_enough(tmp_path: Path, together: int) -> None:
    begun = 0

    async def breaks(nth: int, turn: int) -> None:
        nonlocal begun
        begun += 1
        await asyncio.sleep(0)
        raise AgentException("ValueError: no")

    ran = played(tmp_path / "run", Source(breaks), limits=Limits(exceptions=7), concurrency=together)
    assert 7 <= ran.progress.done == begun <= 7 + together - 1
    assert ran.stopped.startswith(f"{ran.progress.done} episodes in a row ended with the same exception")
    repeated = played(tmp_path / "trials", Source(breaks), trials=8, limits=Limits(exceptions=5), concurrency=1)
    tasks = [episode.task_id for episode in drawn(Schedule(QUICK, 0, trials=8))]
    other = next(n for n, task in enumerate(tasks, 1) if task != tasks[0])
    assert repeated.progress.done == other > 8, "one task is no evidence that the agent is broken"


WAYWARD = """
import asyncio, os

async def stubborn(query, tools):
    while True:
        try:
            await asyncio.sleep(1000)
        except BaseException:
            pass

def wanders(query, tools):
    os.chdir("/")
    return "I cannot do this."

async def littering(query, tools):
    async def later():
        raise ValueError("one\\n::error::two")
    asyncio.create_task(later())
    await asyncio.sleep(0)
    return "I cannot do this."
"""


@pytest.mark.parametrize(
    ("agent", "ended", "warns"),
    [("stubborn", "budget", "ignore that they were cancelled"), ("wanders", "refusal", ""),
     ("littering", "refusal", "ValueError: one")],
)  # fmt: skip
def test_a_run_ends_whatever_its_agent_leaves_behind(tmp_path: Path, agent: str, ended: str, warns: str) -> None:
    (tmp_path / "wayward.py").write_text(WAYWARD)
    start = [sys.executable, "-m", "crosswind.cli.app", "run", "quick", "--agent", f"python:wayward:{agent}"]
    done = subprocess.run(
        [*start, "--out", "run", "--limit", "3", "--episode-timeout", "0.5", "--json", "--no-progress"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | {"PYTHONPATH": str(Path(runner.__file__).parents[2])},
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["played"] == 3
    assert [record.ended for record in load_run(tmp_path / "run").records] == [ended] * 3
    assert warns in done.stderr
    assert "Traceback" not in done.stderr
    assert not [line for line in done.stderr.splitlines() if line.startswith("::")]
