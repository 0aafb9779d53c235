"""Parts of a work done elsewhere give the results of doing them here. A cluster needs the extra `ray`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from crosswind.base.errors import CrosswindError
from crosswind.episodes.stream import StreamPlan, with_changes
from crosswind.episodes.suite import suites
from crosswind.models.spec import open_agent
from crosswind.runs.baselines import domains_of, in_order, sweep, sweep_part
from crosswind.runs.ray_map import mapper, ray_map
from crosswind.runs.spread_streams import StreamPart, play_part, spread_streams
from crosswind.runs.store import iter_records, load_manifest
from crosswind.runs.streams import play_streams

PLAN = with_changes(
    StreamPlan(name="evolving", summary="Releases."), {"releases": 1, "episodes": 6, "domains": ("poi", "medical")}
)
WHOLE = StreamPart(PLAN.model_dump_json(), False, "updater", "", 4000, "", 0, 2, False)


def lines(folder: Path) -> dict[str, Any]:
    found = [record.model_dump(mode="json") for record in iter_records(folder)]
    return {one["key"]: {**one, "usage": {**one["usage"], "seconds": 0}} for one in found}


def test_where_work_is_done_is_local_or_ray() -> None:
    assert list(mapper("local", "")(str, [1, 2])) == ["1", "2"]
    with pytest.raises(CrosswindError, match="--executor is 'slurm'; expected local or ray"):
        mapper("slurm", "")


def test_a_suite_swept_domain_by_domain_gives_the_rows_of_one_sweep() -> None:
    suite = suites["quick"].narrowed(0, ("poi", "medical"))
    parts = [(one.model_dump_json(), ("oracle", "refuser"), 3, None) for one in domains_of(suite)]
    assert len(parts) == 2
    apart = in_order((row for part in parts for row in sweep_part(part)), suite)
    assert apart == sweep(suite, ("oracle", "refuser"), 3)


def test_streams_played_apart_give_the_records_of_one_run(tmp_path: Path) -> None:
    import asyncio

    asyncio.run(play_streams(PLAN, open_agent("updater"), tmp_path / "one", streams=2))
    handed: list[tuple[str, int]] = []

    def mapped(work: Callable[[StreamPart], Any], parts: Any) -> Iterator[Any]:
        for part in parts:
            handed.append((part.domain, part.number))
            yield work(part)

    ran = spread_streams(mapped, WHOLE, tmp_path / "apart")
    assert (ran.manifest.state, ran.stopped) == ("finished", "")
    assert handed == [("poi", 0), ("medical", 0), ("poi", 1), ("medical", 1)]
    assert lines(tmp_path / "apart") == lines(tmp_path / "one")
    assert load_manifest(tmp_path / "apart").planned == 24


def test_streams_that_were_cut_short_go_on_where_the_folder_has_them(tmp_path: Path) -> None:
    spread_streams(map, WHOLE, tmp_path / "whole")
    spread_streams(map, WHOLE, tmp_path / "cut")
    path = tmp_path / "cut" / "episodes.jsonl"
    kept = path.read_bytes().splitlines(keepends=True)[:9]  # a whole stream, and half of the next one
    path.write_bytes(b"".join(kept))
    past: list[int] = []

    def mapped(work: Callable[[StreamPart], Any], parts: Any) -> Iterator[Any]:
        for part in parts:
            past.append(len(part.past))
            yield play_part(part)

    ran = spread_streams(mapped, WHOLE, tmp_path / "cut")
    assert past == [3, 0, 0]
    assert (ran.progress.before, ran.progress.done) == (9, 15)
    assert lines(tmp_path / "cut") == lines(tmp_path / "whole")


def test_what_breaks_in_a_stream_stops_the_run_and_keeps_the_rest(tmp_path: Path) -> None:
    from crosswind.runs.spread_streams import PlayedPart

    def mapped(work: Callable[[StreamPart], Any], parts: Any) -> Iterator[Any]:
        first, *_ = parts
        yield play_part(first)
        yield PlayedPart((), crash="KeyError: 'shape'")

    with pytest.raises(CrosswindError, match="raised in a stream: KeyError: 'shape'"):
        spread_streams(mapped, WHOLE, tmp_path / "run")
    assert load_manifest(tmp_path / "run").state == "stopped"
    assert len(list(iter_records(tmp_path / "run"))) == 6


def failing(job: int) -> int:
    if job == 3:
        raise CrosswindError("the third one is wrong")
    return job


@pytest.mark.filterwarnings("default")  # of Ray
def test_a_cluster_gives_results_in_order_and_errors_in_words() -> None:
    ray = pytest.importorskip("ray")
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        assert list(ray_map(abs, range(-9, 0))) == list(range(9, 0, -1))
        with pytest.raises(CrosswindError, match="the third one is wrong"):
            list(ray_map(failing, range(5)))
        parts = [(suites["quick"].narrowed(0, ("poi",)).model_dump_json(), ("oracle",), 0, None)]
        assert list(ray_map(sweep_part, parts)) == [sweep_part(parts[0])]
    finally:
        ray.shutdown()


def test_certificates_and_demonstrations_come_out_alike(tmp_path: Path, crosswind: Callable[..., str]) -> None:
    from crosswind.cli.data import _demonstrate
    from crosswind.train.data import DataConfig

    one = (DataConfig(seed=4).model_dump_json(), 0, 6, "openai", "native", "")
    parts = [(one[0], at, 2, *one[3:]) for at in (0, 2, 4)]
    assert [made for part in parts for made in _demonstrate(part)] == _demonstrate(one)  # type: ignore[arg-type]
    for command in ("certify --domain poi --perturb typos --count 1", "data --count 1", "baselines --suite quick"):
        assert "expected local or ray" in crosswind(*command.split(), "--executor", "slurm", code=2)
