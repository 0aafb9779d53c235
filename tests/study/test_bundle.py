"""Bundles from elsewhere: damaged or hostile ones are refused before anything is written, and nothing is lost."""

from __future__ import annotations

import errno
import io
import json
import lzma
import os
import tarfile
from pathlib import Path

import pytest

from crosswind.base.errors import CrosswindError
from crosswind.study import outcomes
from crosswind.study.bundle import unbundle
from crosswind.study.results import LOG
from crosswind.study.runner import COPY


def archive(path: Path, *members: tuple[str, bytes]) -> Path:
    with tarfile.open(path, "w") as tar:
        for name, data in members:
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize(
    "name",
    [
        "arms/a/seed-1/../../../../...packed/run.json",
        "arms/a/seed-1/...packed/run.json",
        "arms/a/seed-0/../../../notes.packed/z",
        f"arms/a/seed-1/../../../{LOG}",
        "arms/../seed-1/x.json",
        "arms/a/seed-1/./x.json",
        "arms/a/seed-1//x.json",
        "arms/a/seed-1/deep/test.packed/run.json",
        "arms/a/seed-1/test.packed",
    ],
)
def test_a_name_that_leads_elsewhere_is_refused_before_anything_is_written(tmp_path: Path, name: str) -> None:
    own = {
        "run.json": b"mine",
        "segments/000001.jsonl": b"mine",
        f"out/{LOG}": b'{"own": 1}\n',
        "out/notes.packed/mine.txt": b"mine",
    }
    for path, data in own.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    packed = lzma.compress(b"{}\n")
    bad = archive(
        tmp_path / "bad.tar", (COPY, b"{}"), (name, b"{}"), (f"{Path(name).parent}/episodes.jsonl.xz", packed)
    )
    with pytest.raises(CrosswindError, match="never makes"):
        unbundle([bad], tmp_path / "out")
    bad.unlink()
    assert contents(tmp_path) == own


def test_a_longer_run_is_kept_however_the_other_is_packed(tmp_path: Path) -> None:
    run = tmp_path / "out/arms/a/seed-0/test"
    run.mkdir(parents=True)
    own = {"run.json": b"own", "episodes.jsonl": b"1\n2\n"}
    for name, data in own.items():
        (run / name).write_bytes(data)
    at = "arms/a/seed-0/test"
    for nth, members in enumerate(
        (
            [(f"{at}/episodes.jsonl", b"x\n")],
            [(f"{at}/run.json", b"theirs"), (f"{at}/episodes.jsonl", b"x\ny\n")],
            [(f"{at}/run.json", b"theirs")],
            [(f"{at}.packed/run.json", b"theirs"), (f"{at}.packed/episodes.jsonl.xz", lzma.compress(b"x\ny\n"))],
        )
    ):
        unbundle([archive(tmp_path / f"{nth}.tar", *members)], tmp_path / "out")
        assert contents(run) == own
    nested = archive(
        tmp_path / "nested.tar", ("arms/a/seed-0/episodes.jsonl", b"x\n"), (f"{at}/episodes.jsonl", b"x\n")
    )
    with pytest.raises(CrosswindError, match="a run inside another"):
        unbundle([nested], tmp_path / "out")
    longer = [(f"{at}/run.json", b"theirs"), (f"{at}/episodes.jsonl", b"x\ny\nz\n")]
    unbundle([archive(tmp_path / "longer.tar", *longer)], tmp_path / "out")
    assert contents(tmp_path / "out") == dict(longer)


def test_a_packed_run_replaces_a_shorter_one_with_sealed_parts(tmp_path: Path) -> None:
    run = tmp_path / "out/arms/a/seed-0/test"
    (run / "segments").mkdir(parents=True)
    (run / "segments/000001.jsonl").write_bytes(b"1\n")
    (run / "episodes.jsonl").write_bytes(b"2\n")
    at = "arms/a/seed-0/test.packed"
    members = [(f"{at}/run.json", b"{}"), (f"{at}/episodes.jsonl.xz", lzma.compress(b"1\n2\n3\n"))]
    unbundle([archive(tmp_path / "run.tar", *members)], tmp_path / "out")
    assert contents(run) == {"run.json": b"{}", "episodes.jsonl": b"1\n2\n3\n"}


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    own = tmp_path / "out/arms/a/seed-0/test.json"
    own.parent.mkdir(parents=True)
    own.write_bytes(b"mine")
    bundle = archive(tmp_path / "some.tar", ("arms/a/seed-0/test.json", b"theirs"))
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CrosswindError, match=r"cannot be unpacked \(No space left on device\)"):
        unbundle([bundle], tmp_path / "out")
    assert contents(tmp_path / "out") == {"arms/a/seed-0/test.json": b"mine"}


def test_a_damaged_bundle_is_refused(tmp_path: Path) -> None:
    whole = archive(
        tmp_path / "whole.tar", *((f"arms/a/seed-{n}/test.json", json.dumps(n).encode() * 600) for n in (0, 1))
    ).read_bytes()
    second = 512 + 1024
    flipped = bytearray(whole)
    flipped[second + 10] ^= 1
    entry = tarfile.TarInfo("arms/a/seed-0/test.json")
    entry.size = -512
    negative = entry.tobuf(tarfile.GNU_FORMAT) + bytes(1024)
    damaged = {"never": negative, "the end is missing": whole[:second], "or it is damaged": bytes(flipped)}
    for told, data in damaged.items():
        (tmp_path / "damaged.tar").write_bytes(data)
        with pytest.raises(CrosswindError, match=rf"damaged.tar.*({told}|or it is damaged)"):
            unbundle([tmp_path / "damaged.tar"], tmp_path / "out")
        assert contents(tmp_path / "out") == {}
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CrosswindError, match="not a regular file"):
        unbundle([tmp_path / "pipe"], tmp_path / "out")


def test_a_table_that_swells_is_refused(tmp_path: Path) -> None:
    bomb = tmp_path / "test.jsonl.xz"
    bomb.write_bytes(lzma.compress(bytes(64 << 20), preset=1))
    with pytest.raises(CrosswindError, match=r"test.jsonl.xz: holds more than 500 times its size"):
        outcomes.read(bomb, "agent", 0)
    for data, told in (
        (lzma.compress(b"[" + b"{}," * (1 << 19)), "a line of over 1 MiB"),
        (lzma.compress(b"{}")[:30], ""),
    ):
        bomb.write_bytes(data)
        with pytest.raises(CrosswindError, match=rf"cannot be read as a table of outcomes \(.*{told}"):
            outcomes.read(bomb, "agent", 0)
    bomb.unlink()
    os.mkfifo(bomb)
    with pytest.raises(CrosswindError, match="not a regular file"):
        outcomes.read(bomb, "agent", 0)
