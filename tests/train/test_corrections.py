"""Corrections: an agent that errs in known ways, and what the oracle makes of it."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from crosswind.agents._scripted import Reciter, lines_of, requesting
from crosswind.base.errors import CrosswindError, NotForTraining
from crosswind.core.draw import Drawn, draw
from crosswind.core.registry import domains
from crosswind.core.types import Message, ToolCall
from crosswind.episodes.play import judge, play
from crosswind.episodes.record import Record, Usage, recorded
from crosswind.episodes.schedule import Episode
from crosswind.train.corrections import Correction, balanced, corrected
from crosswind.train.data import DataConfig, demonstration_at
from crosswind.train.rows import Demonstration, legible, rows
from tests.cli.test_cli import crosswind

SUITE = """\
name: played
split: train
tasks: 6
domains: [poi, medical, retail, "generated:train-1"]
conditions:
  - {name: mixed, stack: [{group: train, severity: 1-3, count: [1, 2]}]}
"""
Err = Callable[[list[Message]], list[Message]]


def wrong_key(lines: list[Message]) -> list[Message]:
    """The second call has a parameter that no tool takes, and the agent gives up."""
    request = lines[1].requests[0]
    return [lines[0], requesting(ToolCall(request.tool, {**request.args, "extra": 1}), 1), said("I give up.")]


def stops(lines: list[Message]) -> list[Message]:
    return [*lines[:1], said("Done.")]


def looks_elsewhere(lines: list[Message]) -> list[Message]:
    """A look-up that works and that nothing needs, then the end."""
    call = ToolCall("find_places", {"city": lines[0].requests[0].args["city"], "category": "zoo"})
    return [lines[0], requesting(call, 1), said("Done.")]


def said(text: str) -> Message:
    return Message(role="assistant", content=text)


def played(drawn: Drawn, err: Err) -> Record:
    lines = err([*lines_of(drawn.certificate.gold)])
    trajectory = asyncio.run(play(drawn, Reciter(lines), "errs"))
    return recorded(Episode("played", drawn.base.id, drawn), trajectory, judge(trajectory), seed=0, usage=Usage())


def task(family: str = "best_price", seed: int = 3, *kinds: str) -> Drawn:
    here = domains["poi"]
    return draw(here, here.task(family, seed, split="train"), list(kinds), seed)


def correction(record: Record) -> tuple[Correction | None, Counter[str]]:
    counts: Counter[str] = Counter()
    return corrected(record, counts), counts


def calls(shown: Demonstration, *, learnt: bool) -> list[ToolCall]:
    return [
        ToolCall(request.tool, request.args)
        for at in shown.turns
        for request in shown.chat[at].requests
        if (at not in shown.slipped) is learnt
    ]


def gold_calls(drawn: Drawn) -> list[ToolCall]:
    return [step.call for step in drawn.certificate.gold.steps]


@pytest.mark.parametrize(
    ("err", "sort", "before"), [(wrong_key, "refused", 2), (stops, "ended", 1), (looks_elsewhere, "accepted", 2)]
)
def test_the_oracle_goes_on_after_the_mistake_and_asks_nothing_twice(err: Err, sort: str, before: int) -> None:
    drawn = task()
    found, counts = correction(played(drawn, err))
    assert found
    assert (found.sort, counts[f"corrections: {sort}"]) == (sort, 1)
    assert len(calls(found.shown, learnt=False)) == before
    assert calls(found.shown, learnt=True) == gold_calls(drawn)[1:]
    assert found.shown.chat[-1].content.endswith(drawn.certificate.gold.final)
    assert legible(found.shown)
    (row,) = rows(found.shown)
    assert row.learn == set(found.shown.turns) - found.shown.slipped


def test_the_plan_is_made_anew_and_the_error_is_taken_up() -> None:
    found, _ = correction(played(task(), wrong_key))
    assert found
    first = min(at for at in found.shown.turns if at not in found.shown.slipped)
    text = found.shown.chat[first].content
    assert "plan search find_places" in text
    assert "bad_arguments: place_details" in text


def test_a_wrong_write_is_taken_back_where_a_tool_does_that() -> None:
    sorts: Counter[str] = Counter()
    for name in ("poi", "medical", "retail"):
        here = domains[name]
        for family in here.families:
            drawn = draw(here, here.task(family, 1, split="train"), (), 1)
            other = draw(here, here.task(family, 2, split="train"), (), 2)
            world = {spec.name: spec for spec in drawn.certificate.gold.session.world.specs}
            wrong = [s.call for s in other.certificate.gold.steps if s.call.tool in world and world[s.call.tool].writes]
            if not wrong or drawn.certificate.task.refuse:
                continue

            def err(lines: list[Message], wrong: list[ToolCall] = wrong) -> list[Message]:
                return [requesting(wrong[0], 0), said("Done.")]

            found, counts = correction(played(drawn, err))
            sorts.update([found.sort] if found else counts)
            if found and found.sort == "accepted" and world[wrong[0].tool].undo:
                undo = world[wrong[0].tool].undo
                assert undo
                assert calls(found.shown, learnt=True)[0].tool == undo[0]
    assert sorts["refused"] + sorts["accepted"] > 3


def test_what_passes_and_what_is_right_is_not_corrected() -> None:
    found, counts = correction(played(task(), lambda lines: lines))
    assert found is None
    assert not counts


def test_an_episode_of_another_split_is_refused() -> None:
    here = domains["poi"]
    drawn = draw(here, here.task("best_price", 3, split="test"), (), 3)
    with pytest.raises(NotForTraining):
        corrected(played(drawn, stops), Counter())


def test_one_in_three_at_least_follows_a_call_that_was_accepted() -> None:
    one, two, three = (correction(played(task(), err))[0] for err in (looks_elsewhere, wrong_key, stops))
    assert one
    assert two
    assert three
    counts: Counter[str] = Counter()
    kept = balanced([two, three, two, one, two], counts)
    assert [c.sort for c in kept] == ["refused", "ended", "accepted"]
    assert sum(counts.values()) == 2


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("played")
    (folder / "suite.yaml").write_text(SUITE)
    crosswind("run", str(folder / "suite.yaml"), "--agent", "memoriser", "--out", str(folder / "run"), "--json")
    return folder / "run"


def test_corrections_are_drawn_among_demonstrations(run: Path) -> None:
    config = DataConfig.model_validate({"corrections": {"runs": [str(run)], "share": 0.5}}, strict=False)
    made = [demonstration_at(config, i) for i in range(12)]
    assert 0 < sum("corrects" in shown.meta for shown in made) < 12
    assert [demonstration_at(config, i).chat for i in range(12)] == [shown.chat for shown in made]


def test_a_run_without_a_failure_is_told(run: Path, tmp_path: Path) -> None:
    crosswind("run", str(run.parent / "suite.yaml"), "--agent", "oracle", "--out", str(tmp_path / "run"), "--json")
    config = DataConfig.model_validate({"corrections": {"runs": [str(tmp_path / "run")], "share": 1}}, strict=False)
    with pytest.raises(CrosswindError, match="no episode failed"):
        demonstration_at(config, 0)


def test_the_corrections_of_a_run_are_written(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    crosswind("data", "--from", str(run), "--format", "openai", "--out", str(out), "--json")
    about = json.loads(Path(f"{out}.info.json").read_text())
    assert sum(about["corrections"].values()) >= about["rows"] > 0
    for line in out.read_text().splitlines():
        weights = [m.get("weight") for m in json.loads(line)["messages"] if m["role"] == "assistant"]
        assert weights[-1] != 0
    crosswind("data", "--from", str(run), "--format", "trl", "--out", str(tmp_path / "no.jsonl"), code=2)
