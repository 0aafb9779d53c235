"""Shards of a run: together they are the run, and nothing else is merged."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from crosswind.base.errors import BadFile, CrosswindError
from crosswind.cli.run import parse_shard
from crosswind.episodes.schedule import Schedule
from crosswind.episodes.suite import suites
from crosswind.models.spec import open_agent
from crosswind.runs.merge import merge
from crosswind.runs.runner import run
from crosswind.runs.store import Store, load_run

QUICK = suites["quick"]


def lines(folder: Path) -> dict[str, dict[str, Any]]:
    """The records of a run by key, without the time that they took."""
    found = [record.model_dump(mode="json") for record in load_run(folder).records]
    return {one["key"]: {**one, "usage": {**one["usage"], "seconds": 0}} for one in found}


def played(folder: Path, shard: str = "", **given: Any) -> Path:
    asyncio.run(run(QUICK, open_agent("retrier"), folder, trials=2, shard=parse_shard(shard), **given))
    return folder


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    root = tmp_path_factory.mktemp("shards")
    return [played(root / str(n), f"{n}/3") for n in (1, 2, 3)]


def test_merged_shards_are_the_run(tmp_path: Path, shards: list[Path]) -> None:
    alone = played(tmp_path / "alone")
    found = merge(shards, tmp_path / "merged")
    assert lines(tmp_path / "merged") == lines(alone)
    assert found.episodes == 40
    assert all(load_run(folder).records for folder in shards)
    merged, local = load_run(tmp_path / "merged"), load_run(alone)
    times = {"created", "updated"}
    assert merged.manifest.model_dump(exclude=times) == local.manifest.model_dump(exclude=times)
    assert not merged.problems
    again = played(tmp_path / "merged")  # a merged run continues like any other: nothing is left to play
    assert len(lines(again)) == 40


def test_a_shard_that_was_cut_short_plays_the_rest(tmp_path: Path, shards: list[Path]) -> None:
    cut = tmp_path / "cut"
    shutil.copytree(shards[1], cut)
    path = cut / "episodes.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:5]))
    with pytest.raises(CrosswindError, match=r"are missing; a copy .*; rerun its command, then merge"):
        merge([shards[0], cut, shards[2]], tmp_path / "merged")
    played(cut, "2/3")
    assert lines(cut) == lines(shards[1])


@pytest.mark.parametrize("limit", [7, 20])
def test_a_limit_counts_the_episodes_of_all_shards(limit: int) -> None:
    suite = suites["tiers"].model_copy(update={"domains": ("poi", "retail"), "tasks": 2})
    whole = [one.key for one in Schedule(suite, 1, limit=limit) if one]
    parts = [[one.key for one in Schedule(suite, 1, limit=limit, shard=(n, 3)) if one] for n in (1, 2, 3)]
    assert sorted(whole) == sorted(key for part in parts for key in part)


def test_what_is_not_one_complete_run_is_refused(tmp_path: Path, shards: list[Path]) -> None:
    first, second, third = shards
    doubled = tmp_path / "doubled"
    shutil.copytree(third, doubled)
    with (doubled / "episodes.jsonl").open("ab") as file:
        file.write((first / "episodes.jsonl").read_bytes().splitlines(keepends=True)[0])
    stopped = tmp_path / "stopped"
    shutil.copytree(third, stopped)
    manifest = json.loads((third / "run.json").read_bytes())
    (stopped / "run.json").write_text(json.dumps({**manifest, "state": "stopped", "why": "it was interrupted"}))
    foreign = played(tmp_path / "foreign", "3/3", seed=1, limit=3)
    limited = played(tmp_path / "limited", "3/3", limit=30)
    whole = played(tmp_path / "whole", limit=1)
    halves = played(tmp_path / "halves", "2/2", limit=1)
    refused = {
        (first, third): "missing shards: 2/3",
        (first, second, second): "are both shard 2/3",
        (first, second, doubled): "both hold the episode",
        (first, second, stopped): r"not finished \(it was interrupted\)",
        (first, second, foreign): "seed was 0, now 1",
        (first, second, limited): "limit was None, now 30",
        (first, second, whole): "is a complete run",
        (halves, first): "not shards of the same run: limit",
    }
    for folders, why in refused.items():
        with pytest.raises(CrosswindError, match=why):
            merge(folders, tmp_path / "merged")
        assert not (tmp_path / "merged").exists()
    with pytest.raises(CrosswindError, match="already holds a run"):
        merge(shards, first)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("keep")
    for taken in (tmp_path / "notes", tmp_path / "notes" / "mine.txt"):
        with pytest.raises(CrosswindError, match="already exists and is not empty"):
            merge(shards, taken)
    assert (tmp_path / "notes" / "mine.txt").read_text() == "keep"
    for inside in (first / "merged", first / "a" / "b"):
        with pytest.raises(CrosswindError, match="is inside the shard"):
            merge(shards, inside)
        assert not inside.exists()


@pytest.mark.parametrize("change", [{"agent": "echo"}, {"seed": 5}])
def test_an_episode_of_another_run_is_refused(tmp_path: Path, shards: list[Path], change: dict[str, Any]) -> None:
    spliced = tmp_path / "spliced"
    shutil.copytree(shards[2], spliced)
    path = spliced / "episodes.jsonl"
    *lines, last = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([*lines, json.dumps({**json.loads(last), **change}).encode()]) + b"\n")
    with pytest.raises(CrosswindError, match="not in this run by 'retrier' with 0; run the shard again"):
        merge([*shards[:2], spliced], tmp_path / "merged")
    assert [path.name for path in tmp_path.iterdir()] == ["spliced"]


def test_a_merge_that_was_killed_leaves_nothing_in_the_way(tmp_path: Path, shards: list[Path]) -> None:
    left = tmp_path / ".merged.merging"
    shutil.copytree(shards[0], left)
    with Store(left), pytest.raises(CrosswindError, match="another run is writing here"):
        merge(shards, tmp_path / "merged")
    assert merge(shards, tmp_path / "merged").episodes == 40
    assert [path.name for path in tmp_path.iterdir()] == ["merged"]


@pytest.mark.parametrize("shard", ["3", "0/3", "4/3", "a/b", "1/9999999999", "-1/3", "1/3/3", "\u00b2/2", "3" * 999])
def test_a_manifest_with_no_shard_of_a_run_is_damaged(tmp_path: Path, shards: list[Path], shard: str) -> None:
    odd = tmp_path / "odd"
    shutil.copytree(shards[2], odd)
    manifest = json.loads((odd / "run.json").read_bytes())
    (odd / "run.json").write_text(json.dumps({**manifest, "shard": shard}))
    with pytest.raises(BadFile, match=r"odd/run\.json: is damaged \(shard: is '.*'; expected I/N") as told:
        merge([*shards[:2], odd], tmp_path / "merged")
    assert len(str(told.value)) < 400
    assert not (tmp_path / "merged").exists()


def test_many_missing_shards_are_named_in_few_words(tmp_path: Path, shards: list[Path]) -> None:
    odd = tmp_path / "odd"
    shutil.copytree(shards[2], odd)
    manifest = json.loads((odd / "run.json").read_bytes())
    (odd / "run.json").write_text(json.dumps({**manifest, "shard": "1/999999"}))
    with pytest.raises(
        CrosswindError, match=r"2/999999, .*, 6/999999 and 999993 more; run .* and give all folders"
    ) as told:
        merge([odd], tmp_path / "merged")
    assert str(told.value).startswith("missing shards: ")
    assert len(str(told.value)) < 200


@pytest.mark.parametrize("text", ["0/3", "4/3", "2", "1/0", "a/b", "-1/2"])
def test_a_shard_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(CrosswindError, match="expected I/N"):
        parse_shard(text)
