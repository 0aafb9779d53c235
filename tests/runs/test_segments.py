"""Sealed parts of a run: read as before, resumed exactly, and whole after a crash at any moment."""

from __future__ import annotations

import asyncio
import contextlib
import json
import lzma
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from crosswind.base.errors import BadFile, CrosswindError
from crosswind.cli.app import app
from crosswind.episodes.brief import Brief
from crosswind.episodes.record import Record
from crosswind.episodes.suite import suites
from crosswind.models.spec import open_agent
from crosswind.runs import segments, store
from crosswind.runs.merge import merge
from crosswind.runs.rescore import rescore
from crosswind.runs.runner import Limits, manifest_of, run
from crosswind.runs.segments import Segment
from crosswind.runs.store import (
    CannotStore,
    Manifest,
    Store,
    as_line,
    episodes_in,
    iter_briefs,
    iter_records,
    line_of,
    load_run,
    open_run,
    raw_lines,
    read_records,
)
from crosswind.watch.sources.opening import read_episodes

QUICK = suites["quick"]
PART = 6  # episodes of a part here


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    folder = tmp_path_factory.mktemp("segments") / "run"
    asyncio.run(run(QUICK, open_agent("memoriser"), folder))
    return load_run(folder).records


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "BLOCK", 4)


def manifest() -> Manifest:
    return manifest_of(QUICK, open_agent("oracle"), seed=0, trials=1, limit=None, limits=Limits())


def written(folder: Path, records: list[Record], *, sealed: int = PART, finished: bool = False) -> Path:
    with Store(folder, sealed=sealed) as open_store:
        begun = open_store.begin(manifest())
        open_store.resume(lambda _: None)
        for record in records:
            open_store.append(record)
        open_store.sync()
        if finished:
            open_store.write(begun, state="finished")
    return folder


def keys_of(folder: Path, *, keep_errors: bool = False) -> set[str]:
    with Store(folder, sealed=PART) as open_store:
        open_store.begin(manifest())
        return open_store.resume(lambda _: None, keep_errors=keep_errors)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "segments").iterdir())


def test_a_run_in_parts_is_read_like_one_in_a_single_file(tmp_path: Path, records: list[Record]) -> None:
    plain, parts = written(tmp_path / "plain", records, sealed=0), written(tmp_path / "parts", records)
    assert len(records) // PART == 3
    assert names(parts) == [f"00000{n}.{end}" for n in (1, 2, 3) for end in ("index.xz", "jsonl.xz")]
    assert not (plain / "segments").exists()
    assert list(iter_records(parts)) == list(iter_records(plain)) == records
    assert list(raw_lines(parts)) == list(raw_lines(plain)) == [as_line(record) for record in records]
    assert [brief.row() for brief in iter_briefs(parts)] == [brief.row() for brief in iter_briefs(plain)]
    assert load_run(parts).records == records
    assert episodes_in(parts) == episodes_in(plain) == len(records)
    assert lzma.decompress((parts / "segments" / "000001.jsonl.xz").read_bytes()) == b"".join(
        map(as_line, records[:PART])
    )


def test_a_brief_says_of_an_episode_what_its_record_says(tmp_path: Path, records: list[Record]) -> None:
    said = ("key", "pair", "tier", "axis", "kinds", "exposed", "passed", "judged", "clean", "usage", "outcome", "ended")
    for n, (brief, record) in enumerate(zip(iter_briefs(written(tmp_path / "run", records)), records, strict=True)):
        assert brief.at == n
        assert brief.row() == Brief.of(record).row()
        assert [getattr(brief, name) for name in said] == [getattr(record, name) for name in said]
        assert (brief.length, brief.draw) == (len(record.steps), record.draw)


def test_single_episodes_are_found_by_their_line(
    tmp_path: Path, records: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written(tmp_path / "run", records)
    assert list(read_records(folder, range(len(records)))) == records
    for some in ([0], [5, 4], [3, 4, 7, 12, 19], [18], []):
        assert list(read_records(folder, some)) == [records[n] for n in sorted(some)]
    unpacked: list[int] = []
    whole = Segment.lines

    def lines(part: Segment, start: int = 0) -> Iterator[bytes]:
        for line in whole(part, start):
            unpacked.append(start)
            yield line

    monkeypatch.setattr(Segment, "lines", lines)
    assert next(read_records(folder, [10])) == records[10]  # the fifth of its part: the first of its second block
    assert len(unpacked) == 1


def test_a_run_in_parts_goes_on_where_it_stopped(tmp_path: Path, records: list[Record]) -> None:
    folder = written(tmp_path / "run", records[:8])
    assert keys_of(folder) == {record.key for record in records[:8]}
    written(folder, records[8:])
    assert list(iter_records(folder)) == records
    assert len(names(folder)) == 6


def test_a_folder_of_an_earlier_version_goes_on_in_parts(tmp_path: Path, records: list[Record]) -> None:
    folder = written(tmp_path / "run", records[:10], sealed=0)
    written(folder, records[10:])
    assert list(iter_records(folder)) == records
    assert [part.count() for part in segments.segments(folder)] == [11, PART]


@pytest.mark.parametrize("moment", ["closed", "index", "lines"])
def test_a_crash_while_a_part_is_sealed_loses_and_doubles_nothing(
    tmp_path: Path, records: list[Record], moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"

    def crash(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    replace = Path.replace
    wanted = {"index": ".jsonl.xz", "lines": "never"}.get(moment, "")

    def replaced(path: Path, to: Path) -> Path:
        if str(to).endswith(wanted) and to.parent.name == "segments":
            raise KeyboardInterrupt
        return replace(path, to)

    with monkeypatch.context() as at:
        at.setattr(Path, "replace", replaced)
        if moment == "lines":
            at.setattr(Path, "unlink", crash)
        with pytest.raises(KeyboardInterrupt):
            written(folder, records[: PART + 1])
    assert (folder / "segments" / "000001.jsonl").exists()
    assert [brief.key for brief in iter_briefs(folder)] == [record.key for record in records[: PART + 1]]
    assert list(iter_records(folder)) == records[: PART + 1]
    assert keys_of(folder) == {record.key for record in records[: PART + 1]}
    assert names(folder) == ["000001.index.xz", "000001.jsonl.xz"]
    written(folder, records[PART + 1 :])
    assert list(iter_records(folder)) == records


def test_a_lost_or_foreign_index_is_made_again(tmp_path: Path, records: list[Record]) -> None:
    folder = written(tmp_path / "run", records)
    index, foreign = (folder / "segments" / f"00000{n}.index.xz" for n in (2, 3))
    for damage in (index.unlink, lambda: index.write_bytes(b"x"), lambda: shutil.copy(foreign, index)):
        damage()
        assert [brief.key for brief in iter_briefs(folder)] == [record.key for record in records]
        assert list(read_records(folder, [PART + 5])) == [records[PART + 5]]
    assert keys_of(folder) == {record.key for record in records}
    head = segments.segments(folder)[1].head()
    assert head is not None
    assert head.episodes == PART


def test_an_index_of_other_lines_of_the_same_size_is_named(tmp_path: Path, records: list[Record]) -> None:
    run_folder = open_run(written(tmp_path / "run", records))
    assert run_folder.whole(run_folder.told[::-1]) == records[::-1]
    other = run_folder.told[0]
    assert isinstance(other, Brief)
    other.at = 1
    with pytest.raises(BadFile, match=r"delete the files \*\.index\.xz: they are made again"):
        run_folder.whole([other])


def test_an_index_with_a_row_nested_too_deeply_is_named(tmp_path: Path, records: list[Record]) -> None:
    folder = written(tmp_path / "run", records)
    index = folder / "segments" / "000001.index.xz"
    head, *rows = lzma.decompress(index.read_bytes()).splitlines()
    index.write_bytes(lzma.compress(b"\n".join([head, b"[" * 100_000, *rows[1:]])))
    with pytest.raises(BadFile, match=r"index\.xz: is damaged .* delete it"):
        open_run(folder)


@pytest.mark.parametrize(
    "lie",
    [
        {"block": 0}, {"block": -4}, {"blocks": []}, {"blocks": [0, 0]}, {"blocks": [-5, 9]}, {"blocks": [0, 10**9]},
        {"episodes": 10**9, "block": 10**9, "blocks": [0]}, {"episodes": -1}, {"errors": 7},
    ],
)  # fmt: skip
def test_an_index_that_cannot_be_is_none(tmp_path: Path, records: list[Record], lie: dict[str, object]) -> None:
    folder = written(tmp_path / "run", records)
    index = folder / "segments" / "000001.index.xz"
    head, *rows = lzma.decompress(index.read_bytes()).splitlines(keepends=True)
    index.write_bytes(lzma.compress(json.dumps({**json.loads(head), **lie}).encode() + b"\n" + b"".join(rows)))
    assert [brief.key for brief in iter_briefs(folder)] == [record.key for record in records]
    assert list(read_records(folder, [5])) == [records[5]]
    assert line_of(folder, records[5].key) == 5
    assert episodes_in(folder) == len(records)


@pytest.mark.parametrize("times", [0, 1, 100_000])
def test_an_index_with_more_or_fewer_rows_than_it_states_is_named(
    tmp_path: Path, records: list[Record], times: int
) -> None:
    folder = written(tmp_path / "run", records)
    index = folder / "segments" / "000001.index.xz"
    head, *rows = lzma.decompress(index.read_bytes()).splitlines(keepends=True)
    more = rows[0].replace(b"best_price", b"other")
    index.write_bytes(lzma.compress(head + b"".join(rows[: PART - (not times)]) + more * times, preset=1))
    taken: list[Brief] = []
    with pytest.raises(BadFile, match=r"000001.index.xz: is damaged \(it has not the 6 rows that it states"):
        taken += iter_briefs(folder)
    assert index.stat().st_size < 100_000


def test_an_index_whose_head_or_row_has_no_end_is_none(
    tmp_path: Path, records: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written(tmp_path / "run", records)
    index = folder / "segments" / "000001.index.xz"
    head, *rows = lzma.decompress(index.read_bytes()).splitlines(keepends=True)
    endless = b"[" + b"0," * (1 << 23) + b"0]\n"
    twice = head.replace(b'"blocks":', b'"blocks":' + endless.strip() + b',"blocks":')
    index.write_bytes(lzma.compress(twice, preset=1))
    parsed: list[int] = []
    check = segments.Head.model_validate_json

    def noted(line: bytes) -> segments.Head:
        parsed.append(len(line))
        return check(line)

    monkeypatch.setattr(segments.Head, "model_validate_json", noted)
    assert [brief.key for brief in iter_briefs(folder)] == [record.key for record in records]
    assert max(parsed) < 1 << 20
    index.write_bytes(lzma.compress(head + endless + b"".join(rows[1:]), preset=1))
    with pytest.raises(BadFile, match="a line has more than 4 MiB"):
        list(iter_briefs(folder))


def test_an_episode_that_an_index_repeats_is_read_once(tmp_path: Path, records: list[Record]) -> None:
    folder = written(tmp_path / "run", records)
    index = folder / "segments" / "000001.index.xz"
    head, *rows = lzma.decompress(index.read_bytes()).splitlines(keepends=True)
    index.write_bytes(lzma.compress(head + rows[0] * PART))
    problems: list[str] = []
    found = [brief.key for brief in iter_briefs(folder, problems)]
    assert found == [record.key for record in (records[0], *records[PART:])]
    assert problems == [
        f"{PART - 1} lines of 000001.jsonl.xz repeat episodes, such as {records[0].key!r}, and are left out"
    ]
    assert problems[0] in open_run(folder).problems


def test_damaged_lines_are_an_error_or_left_out(tmp_path: Path, records: list[Record]) -> None:
    folder = written(tmp_path / "run", records)
    part = folder / "segments" / "000001.jsonl.xz"
    part.write_bytes(part.read_bytes()[:-40])
    for read in (iter_records, load_run):
        with pytest.raises(BadFile, match=r"000001\.jsonl\.xz: cannot be read .* let `crosswind run` play"):
            list(read(folder) if read is iter_records else [read(folder)])
    found = load_run(folder, damaged=True)
    assert [record.key for record in found.records][-14:] == [record.key for record in records[PART:]]
    assert "cannot be read and are left out" in found.problems[0]


def test_what_takes_too_much_memory_is_refused(tmp_path: Path, records: list[Record]) -> None:
    folder = written(tmp_path / "run", records)
    part = folder / "segments" / "000001.jsonl.xz"
    huge = {"id": lzma.FILTER_LZMA2, "preset": 9, "dict_size": 1 << 30}
    part.write_bytes(lzma.compress(b"{}\n", filters=[huge]))
    with pytest.raises(BadFile, match=r"cannot be read \(Memory usage limit"):
        list(iter_records(folder))


def test_errors_of_a_part_are_taken_out_to_be_played_again(tmp_path: Path, records: list[Record]) -> None:
    failed = [
        record.model_copy(update={"outcome": "error", "ended": "error", "why": "no answer"})
        for record in (records[2], records[9], records[19])
    ]
    by_key = {record.key: record for record in failed}
    folder = written(tmp_path / "run", [by_key.get(record.key, record) for record in records])
    whole = {record.key for record in records}
    assert keys_of(folder, keep_errors=True) == whole
    assert keys_of(folder) == whole - by_key.keys()
    assert (folder / "retried.jsonl").read_bytes() == b"".join(map(as_line, failed))
    assert [part.count() for part in segments.segments(folder)] == [PART - 1, PART - 1, PART]
    written(folder, [record for record in records if record.key in by_key])
    assert sorted(record.key for record in iter_records(folder)) == sorted(whole)


def test_an_episode_in_two_parts_is_refused_for_writing(tmp_path: Path, records: list[Record]) -> None:
    folder = written(tmp_path / "run", records)
    for end in ("jsonl.xz", "index.xz"):
        shutil.copy(folder / "segments" / f"000001.{end}", folder / "segments" / f"000009.{end}")
    with pytest.raises(BadFile, match=r"000009\.jsonl\.xz: repeats the episode"):
        keys_of(folder)


@pytest.mark.parametrize("compressed", [True, False])
def test_a_copy_made_while_a_part_was_closed_counts_no_episode_twice(
    tmp_path: Path, records: list[Record], compressed: bool
) -> None:
    folder = written(tmp_path / "run", records[:PART], sealed=0)  # the file of episodes as it was before,
    later = written(tmp_path / "later", records[: 2 * PART])  # and the parts as they were afterwards
    shutil.copytree(later / "segments", folder / "segments")
    if not compressed:
        part = folder / "segments" / "000001.jsonl"
        part.write_bytes(b"".join(map(as_line, records[:PART])))
        (folder / "segments" / "000001.jsonl.xz").unlink()
    for found in (load_run(folder), open_run(folder)):
        assert [one.key for one in found.told] == [record.key for record in records[: 2 * PART]]
        assert f"{PART} lines of episodes.jsonl repeat episodes, such as {records[0].key!r}" in found.problems[0]
    assert found.whole(found.told) == records[: 2 * PART]
    assert [episode.id for episode in read_episodes(folder)] == [record.key for record in records[: 2 * PART]]
    with pytest.raises(BadFile, match=rf"all its {PART} lines are in the parts too.*take the file away") as refused:
        keys_of(folder)
    subprocess.run(str(refused.value).partition("(")[2].partition(")")[0], shell=True, check=True)
    assert keys_of(folder) == {record.key for record in records[: 2 * PART]}


def test_a_part_that_is_there_twice_counts_once(tmp_path: Path, records: list[Record]) -> None:
    folder = written(tmp_path / "run", records[: 2 * PART])
    for end in ("jsonl.xz", "index.xz"):
        shutil.copy(folder / "segments" / f"000001.{end}", folder / "segments" / f"000003.{end}")
    for found in (load_run(folder), open_run(folder)):
        assert [one.key for one in found.told] == [record.key for record in records[: 2 * PART]]
        assert f"{PART} lines of 000003.jsonl.xz repeat episodes" in found.problems[0]


def test_lines_that_repeat_some_of_a_part_are_taken_out_by_one_command(tmp_path: Path, records: list[Record]) -> None:
    folder = written(tmp_path / "run", records[: PART + 3])
    path = folder / "episodes.jsonl"
    path.write_bytes(path.read_bytes() + b"".join(map(as_line, records[:2])))
    with pytest.raises(BadFile, match="take the 2 lines that repeat others out: ") as refused:
        keys_of(folder)
    subprocess.run(str(refused.value).rpartition("others out: ")[2], shell=True, check=True)
    assert keys_of(folder) == {record.key for record in records[: PART + 3]}


def test_no_room_for_a_new_file_when_a_part_is_closed(
    tmp_path: Path, records: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, other = os.open, tmp_path / "other"

    def full(path: str | Path, flags: int, mode: int = 0o777) -> int:
        if (tmp_path / "run" / "segments").exists() and Path(path).name == "episodes.jsonl":
            raise OSError(28, "No space left on device", str(path))
        return opened(path, flags, mode)

    with Store(tmp_path / "run", sealed=PART) as open_store:
        open_store.begin(manifest())
        open_store.resume(lambda _: None)
        monkeypatch.setattr(os, "open", full)
        for record in records[: PART - 1]:
            open_store.append(record)
        with pytest.raises(CannotStore, match="Make room"):
            open_store.append(records[PART - 1])
        number = opened(other, os.O_RDWR | os.O_CREAT)  # as anything in the process may
        os.write(number, b"not ours")
        open_store.sync()
    assert other.read_bytes() == b"not ours"
    os.close(number)
    monkeypatch.undo()
    assert keys_of(tmp_path / "run") == {record.key for record in records[:PART]}


def test_a_part_that_cannot_be_compressed_stays_as_it_is(
    tmp_path: Path, records: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> Segment:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as at:
        at.setattr(store, "seal", full)
        folder = written(tmp_path / "run", records)
    assert names(folder) == ["000001.jsonl", "000002.jsonl", "000003.jsonl"]
    assert list(iter_records(folder)) == records
    assert keys_of(folder) == {record.key for record in records}
    assert len(names(folder)) == 6


def test_runs_in_parts_are_merged_and_judged_again(
    tmp_path: Path, records: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Store.__init__, "__kwdefaults__", {"sealed": PART})
    for n in (1, 2):
        asyncio.run(run(QUICK, open_agent("memoriser"), tmp_path / f"shard{n}", shard=(n, 2)))
    assert merge([tmp_path / "shard1", tmp_path / "shard2"], tmp_path / "whole").episodes == len(records)
    assert {record.key for record in iter_records(tmp_path / "whole")} == {record.key for record in records}
    assert len(names(tmp_path / "whole")) == 6
    folder = written(tmp_path / "old", [record.model_copy(update={"judge": "0"}) for record in records])
    found = rescore(folder, write=True)
    assert [record.judge for record in iter_records(folder)] == [record.judge for record in records]
    assert {record.judge for record in iter_records(folder)} == {found.judge}
    kept = [lzma.decompress(path.read_bytes()) for path in sorted(Path(found.backup).glob("segments/*.jsonl.xz"))]
    assert b"".join(kept).count(b"\n") == 3 * PART


@pytest.mark.parametrize("moment", range(9))
def test_a_crash_while_a_run_is_judged_again_loses_and_doubles_nothing(
    tmp_path: Path, records: list[Record], moment: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written(tmp_path / "old", [record.model_copy(update={"judge": "0"}) for record in records])
    moves: list[Path] = []
    rename, replace = Path.rename, Path.replace

    def moved(path: Path, to: Path) -> Path:  # the process ends before the move, and nothing is cleared up any more
        moves.append(path)
        if len(moves) > moment:
            raise KeyboardInterrupt
        return (replace if to.exists() else rename)(path, to)

    with monkeypatch.context() as at:
        for name in ("rename", "replace"):
            at.setattr(Path, name, moved)
        at.setattr(Path, "unlink", lambda path, missing_ok=False: None)
        with contextlib.suppress(KeyboardInterrupt):
            rescore(folder, write=True)
    assert len(moves) == min(moment + 1, 8)  # index and lines of three parts, the last lines, the manifest
    expected = {record.key for record in records}
    assert sorted(record.key for record in load_run(folder).records) == sorted(expected)
    assert sorted(one.key for one in open_run(folder).told) == sorted(expected)
    rescore(folder, write=True)
    assert list(iter_records(folder)) == records
    assert list(iter_records(folder)) == [
        record for brief in iter_briefs(folder) for record in read_records(folder, [brief.at])
    ]


def test_judging_again_follows_no_link_out_of_the_folder(tmp_path: Path, records: list[Record]) -> None:
    victim = written(tmp_path / "victim", records)
    before = {path: path.read_bytes() for path in victim.rglob("*") if path.is_file()}
    folder = written(tmp_path / "sent", [record.model_copy(update={"judge": "0"}) for record in records])
    (folder / "rewritten").symlink_to(victim)
    rescore(folder, write=True)
    assert list(iter_records(folder)) == records
    (folder / "episodes.jsonl.new").symlink_to(victim / "episodes.jsonl")
    written_again = [record.model_copy(update={"judge": "0"}) for record in records[-2:]]
    (folder / "episodes.jsonl").write_bytes(b"".join(map(as_line, written_again)))
    with pytest.raises(CrosswindError, match="cannot be written to"):
        rescore(folder, write=True)
    assert {path: path.read_bytes() for path in victim.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("harm", ["torn", "flipped", "swapped"])
def test_damaged_parts_of_a_shard_are_refused_and_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    monkeypatch.setattr(Store.__init__, "__kwdefaults__", {"sealed": PART})
    shards = [tmp_path / f"shard{n}" for n in (1, 2)]
    for n, shard in enumerate(shards, 1):
        asyncio.run(run(QUICK, open_agent("memoriser"), shard, shard=(n, 2)))
    packed = next((shards[0] / "segments").glob("*.jsonl.xz"))
    whole = packed.read_bytes()
    if harm == "torn":
        packed.write_bytes(whole[:-40])
    elif harm == "flipped":
        packed.write_bytes(whole[:100] + bytes([whole[100] ^ 255]) + whole[101:])
    else:  # an index that fits by size, of other episodes
        index = next((shards[0] / "segments").glob("*.index.xz"))
        head, *rows = lzma.decompress(index.read_bytes()).splitlines(keepends=True)
        index.write_bytes(lzma.compress(head + b"".join(row.replace(b"/test/", b"/test/9") for row in rows)))
    with pytest.raises(BadFile, match=r"restore it from a copy|they are made again"):
        merge(shards, tmp_path / "whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["shard1", "shard2"]


def test_parts_are_for_their_owner_alone(tmp_path: Path, records: list[Record]) -> None:
    folder = written(tmp_path / "run", records)
    assert {path.stat().st_mode & 0o077 for path in [folder / "segments", *(folder / "segments").iterdir()]} == {0}


def test_commands_read_a_run_in_parts(
    tmp_path: Path, records: list[Record], crosswind: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = written(tmp_path / "plain", records, sealed=0, finished=True)
    parts = written(tmp_path / "parts", records, finished=True)
    for command in ("gate", "show", "diagnose"):
        codes = {"code": 1} if command == "gate" else {}
        said = [crosswind(command, folder, **codes).replace(str(folder), "") for folder in (plain, parts)]
        assert said[0] == said[1]


def test_an_episode_is_found_by_its_whole_key(tmp_path: Path, records: list[Record]) -> None:
    folder = written(tmp_path / "run", records)
    for n, record in enumerate(records):
        assert line_of(folder, record.key) == n
    assert line_of(folder, records[0].key[:-1]) is None
    assert line_of(folder, "nobody|clean|0") is None
    (folder / "segments" / "000001.index.xz").write_bytes(b"x")
    assert line_of(folder, records[1].key) == 1, "from the lines"
    (folder / "segments" / "000001.jsonl.xz").write_bytes(b"x")
    assert line_of(folder, records[1].key) is None, "what is damaged is named by those who read the run whole"


def test_showing_one_episode_parses_no_other_and_loads_no_statistics(tmp_path: Path, records: list[Record]) -> None:
    folder = written(tmp_path / "run", records)
    code = """
import sys
sys.modules["numpy"] = None
from crosswind.episodes.brief import Brief
from crosswind.runs import store
def all_of_it(*_, **__): raise AssertionError("reads the whole run")
store.open_run = all_of_it
from crosswind.cli.app import app
app(["show", sys.argv[1], sys.argv[2]], standalone_mode=False)
"""
    for wanted in ("11", records[10].key):
        command = [sys.executable, "-c", code, str(folder), wanted]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
        assert done.returncode == 0, done.stderr
        assert records[10].task_id in done.stdout


def test_a_number_beyond_a_folder_without_a_last_file_is_no_bug(tmp_path: Path, records: list[Record]) -> None:
    folder = written(tmp_path / "run", records)
    (folder / "episodes.jsonl").unlink()
    beyond = str(len(records) * 9)
    for wanted in (beyond, "9" * 5000):
        done = CliRunner().invoke(app, ["show", str(folder), wanted])
        assert isinstance(done.exception, CrosswindError), done.output
        assert "no episode" in str(done.exception)
