"""Ranges of generated domains: which world a demonstration comes from, and that few are held at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from crosswind.authoring.generated import domain as generated
from crosswind.authoring.generated import kept
from crosswind.base.errors import CrosswindError, NotForTraining, UnknownName
from crosswind.core.registry import domains
from crosswind.train.config import TrainConfig, check
from crosswind.train.data import DataConfig, demonstration_at
from crosswind.train.worlds import FIRST, ROW, some_of, worlds_of


def config(places: str, share: float = 0.0) -> DataConfig:
    return DataConfig.model_validate({"domains": {places: 1}, "share": share}, strict=False)


def test_a_few_demonstrations_in_a_row_come_from_one_world() -> None:
    endless, some = worlds_of("generated:train-5.."), worlds_of("generated:train-0..9")
    assert endless
    assert some
    assert [endless.at(0, i) for i in (0, ROW - 1, ROW)] == [f"generated:train-{n}" for n in (5, 5, 6)]
    seen = [some.at(0, ROW * i) for i in range(200)]
    assert {*seen} == {f"generated:train-{n}" for n in range(10)}
    assert seen != [some.at(1, ROW * i) for i in range(200)]
    assert some_of(["poi", "generated:train-0..9"]) == ["poi", *(f"generated:train-{n}" for n in range(FIRST))]
    assert worlds_of("poi") is worlds_of("generated:train-5") is worlds_of("generated:train-x..y") is None


def test_demonstrations_of_a_range_depend_on_their_index_alone() -> None:
    data = config("generated:train-0..3", share=0.5)
    there = [demonstration_at(data, i) for i in range(0, 4 * ROW, 5)]
    assert [demonstration_at(data, i) for i in range(0, 4 * ROW, 5)][::-1] == there[::-1]
    assert {shown.meta["domain"] for shown in there} <= {f"generated:train-{n}" for n in range(4)}
    assert len({shown.meta["domain"] for shown in there}) > 1


def test_a_world_without_a_family_of_the_level_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = next(
        n
        for n in range(40)
        if not any(family.level == 3 for family in domains[f"generated:train-{n}"].families.values())
    )
    data = DataConfig.model_validate(
        {"domains": {f"generated:train-{lacking}..": 1}, "share": 0, "levels": [3], "max_tokens": 0}, strict=False
    )
    shown = demonstration_at(data, 0)
    assert shown.meta["level"] == 3
    assert shown.meta["domain"] != f"generated:train-{lacking}"


@pytest.mark.parametrize("places", ["generated:test-0..3", "generated:dev-0.."])
def test_worlds_of_dev_and_test_are_refused(places: str) -> None:
    with pytest.raises(NotForTraining, match="kept for measuring"):
        demonstration_at(config(places), 0)


def test_a_range_that_ends_before_it_begins_is_told() -> None:
    with pytest.raises(UnknownName, match="write the smaller number first"):
        worlds_of("generated:train-3..1")
    with pytest.raises(CrosswindError, match=r"data\.domains: the domains 'generated:train-3\.\.1' end"):
        check(TrainConfig(data=config("generated:train-3..1")))


def test_a_world_that_passed_is_not_judged_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSWIND_CACHE", str(tmp_path))
    name = "generated:train-77"
    generated._held.clear()
    first = generated.declaration(name)
    generated._held.clear()
    monkeypatch.setattr(generated, "_drawn", lambda name: pytest.fail(f"{name} was drawn again"))
    assert generated.declaration(name) == first
    generated._held.clear()
    (path,) = (tmp_path / "generated").rglob("*.z")
    path.write_bytes(b"cut")
    assert kept.recall(name) is None


def test_a_refusal_comes_with_its_solvable_twin() -> None:
    data = DataConfig.model_validate({"domains": {"poi": 1}, "share": 0.5, "twins": True}, strict=False)
    pairs = [(demonstration_at(data, i), demonstration_at(data, i + 1)) for i in range(0, 80, 2)]
    refused = [(one, other) for one, other in pairs if one.meta["ended"] == "refusal"]
    assert len(refused) > 3
    assert sum(one.meta["task"] == other.meta["task"] for one, other in refused) > len(refused) / 2
    for one, other in refused:
        if one.meta["task"] == other.meta["task"]:
            assert other.meta["ended"] == "answer"
            assert one.chat[1] == other.chat[1] or one.meta["kinds"]
