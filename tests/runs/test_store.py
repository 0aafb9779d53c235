"""The folder of a run: nothing finished is lost, nothing torn is kept, and every trouble has a sentence."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import resource
import stat
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from crosswind.base import files
from crosswind.base.errors import BadFile, CrosswindError
from crosswind.base.files import replace_file, write_output
from crosswind.cli.app import app
from crosswind.core.domain import JUDGE
from crosswind.core.registry import domains
from crosswind.episodes.record import Record, task_of
from crosswind.episodes.suite import suites
from crosswind.mcp.plan import Plan
from crosswind.mcp.proxy import Discretion, Journal
from crosswind.models.spec import open_agent
from crosswind.runs import proxy_sessions
from crosswind.runs.baselines import play_baselines
from crosswind.runs.runner import Limits, manifest_of, run
from crosswind.runs.store import (
    CannotStore,
    Locked,
    Manifest,
    Store,
    as_line,
    differences,
    iter_records,
    load_run,
    open_run,
)

QUICK = suites["quick"]


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    folder = tmp_path_factory.mktemp("store") / "run"
    asyncio.run(run(QUICK, open_agent("memoriser"), folder))
    return load_run(folder).records


def manifest(agent: str = "oracle", seed: int = 0) -> Manifest:
    return manifest_of(QUICK, open_agent(agent), seed=seed, trials=1, limit=None, limits=Limits())


def written(folder: Path, records: Sequence[Record]) -> Path:
    """A folder with these records; the path of their lines."""
    with Store(folder) as store:
        store.begin(manifest())
        store.resume(lambda _: None)
        for record in records:
            store.append(record)
        store.sync()
    return folder / "episodes.jsonl"


def resumed(folder: Path, *, keep_errors: bool = False) -> tuple[set[str], int]:
    """The keys that a second run would find, and how many bytes it cut off."""
    with Store(folder) as store:
        store.begin(manifest())
        return store.resume(lambda _: None, keep_errors=keep_errors), store.cut


def test_what_is_written_is_read_back(tmp_path: Path, records: list[Record]) -> None:
    written(tmp_path / "run", records)
    found = load_run(tmp_path / "run")
    assert found.records == records
    assert found.manifest.agent == "oracle"
    assert found.manifest.name == "quick@1"
    assert len(found.problems) == 1  # it is not finished
    assert "same command" in found.problems[0]


def test_files_are_for_their_owner_alone(tmp_path: Path, records: list[Record]) -> None:
    written(tmp_path / "run", records[:1])
    assert {p.name: p.stat().st_mode & 0o077 for p in (tmp_path / "run").iterdir()} == {
        "episodes.jsonl": 0,
        "lock": 0,
        "run.json": 0,
    }
    assert (tmp_path / "run").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("cut", [1, 2, 100, 4000])
def test_a_torn_last_line_is_cut_off_and_kept(tmp_path: Path, records: list[Record], cut: int) -> None:
    path = written(tmp_path / "run", records[:3])
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    before = load_run(tmp_path / "run")
    keys, bytes_cut = resumed(tmp_path / "run")
    if cut == 1:  # only the end of the line is missing: the record is whole
        assert keys == {r.key for r in records[:3]}
        assert path.read_bytes() == whole
        return
    assert [r.key for r in before.records] == [r.key for r in records[:2]]
    assert "line 3 of episodes.jsonl is torn" in before.problems[0]
    assert keys == {r.key for r in records[:2]}
    assert path.read_bytes() == b"".join(whole.splitlines(keepends=True)[:2])
    torn = (tmp_path / "run" / "episodes.jsonl.torn").read_bytes()
    assert torn == whole.splitlines(keepends=True)[2][:-cut] + b"\n"
    assert bytes_cut == len(torn) - 1


def test_zeros_that_a_power_cut_left_are_a_torn_line(tmp_path: Path, records: list[Record]) -> None:
    path = written(tmp_path / "run", records[:2])
    path.write_bytes(path.read_bytes() + b"\0" * 4096)
    assert resumed(tmp_path / "run") == ({r.key for r in records[:2]}, 4096)


@pytest.mark.parametrize("damage", [b"{", b"\0\0\0", b"null", b"{}", b"\xff\xfe", b"[" * 100_000])
def test_a_damaged_line_in_the_middle_is_named_and_nothing_touched(
    tmp_path: Path, records: list[Record], damage: bytes
) -> None:
    path = written(tmp_path / "run", records[:4])
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = damage + b"\n"
    path.write_bytes(b"".join(lines))
    for read in (load_run, resumed):
        with pytest.raises(BadFile, match=r"episodes\.jsonl:2: line 2 is damaged .* sed -i\.bak 2d"):
            read(tmp_path / "run")
    assert path.read_bytes() == b"".join(lines)


STEP = {"call": {"tool": "t", "args": {}}, "result": {"content": 1}, "inner": [], "fired": [], "heard": []}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"steps": [{}]}, "step 1 has no call"),
        ({"steps": [STEP, {**STEP, "call": "t"}]}, "step 2 has no call"),
        ({"steps": [{**STEP, "result": {"error": {"reason": "no"}}}]}, "step 1 has no call"),
        ({"steps": [{**STEP, "inner": [3]}]}, "as `inner`"),
        ({"steps": [{**STEP, "fired": ["x"]}]}, "as `fired`"),
        ({"steps": [{**STEP, "heard": [None]}]}, "as `heard`"),
        ({"layers": [{}]}, "layer 0 has no kind"),
        ({"tools": [{"function": 3}]}, "tool 0 has no name"),
        ({"steps": 7}, "steps: Input should be a valid array"),
    ],
)
def test_a_misshapen_line_is_named_by_every_reader_and_the_rest_is_shown(
    tmp_path: Path, records: list[Record], change: dict[str, Any], told: str
) -> None:
    path, run_folder = written(tmp_path / "run", records[:3]), tmp_path / "run"
    written(tmp_path / "other", records[:3])
    lines = path.read_text().splitlines()
    lines[1] = json.dumps({**json.loads(lines[1]), **change})
    path.write_text("\n".join([*lines, ""]))
    with pytest.raises(BadFile, match=re.escape(told)):
        load_run(run_folder)
    remedy = f"sed -i.bak 2d {path}"
    commands = [
        *("report --baselines 0 -o x.html", "diagnose", "show", "export --format atif -o x.jsonl", "leaderboard"),
        *("compare x.other -o y.html --partial", "gate --allow-unfinished", "gate --baseline x.other"),
        *("show --json", "diagnose --json", "gate --json", "compare x.other --json --partial", "report --json"),
    ]
    for command, *more in map(str.split, commands):
        more = [str(tmp_path / word.removeprefix("x.")) if word[:2] in ("x.", "y.") else word for word in more]
        done = CliRunner().invoke(app, [command, str(run_folder), *more])
        assert done.exit_code in ((0, 1, 3, 4) if command == "gate" else (0,)), (command, done.output, done.exception)
        (line,) = [line for line in done.stderr.splitlines() if line.startswith("warning: ") and remedy in line]
        assert told in line, command
        assert "1 of 3 lines" in line, command
        if command != "gate":
            assert done.stdout.strip(), command
        if "--json" in more:
            json.loads(done.stdout)
    for command in ("rescore", "merge"):  # they write: nothing is left out
        more = [str(tmp_path / "other"), "--out", str(tmp_path / "merged")] if command == "merge" else []
        done = CliRunner().invoke(app, [command, str(run_folder), *more])
        assert isinstance(done.exception, CrosswindError), command
        if command == "rescore":
            assert told in str(done.exception)


def test_a_diagnosis_of_hand_made_causes_shows_no_control_characters(tmp_path: Path, records: list[Record]) -> None:
    failed = next(record for record in records if record.outcome == "fail")
    hostile = failed.model_copy(update={"cause": "x\n::error::y\u202e\u2028\x1b[31m", "stage": "planning\x07"})
    written(tmp_path / "run", [hostile])
    shown = CliRunner().invoke(app, ["diagnose", str(tmp_path / "run")]).stdout
    assert "1 of 1 episodes failed" in shown
    assert not {"\u202e", "\u2028", "\x1b", "\x07"} & set(shown)
    assert not [line for line in shown.splitlines() if line.startswith("::")]


def test_an_error_of_ours_is_a_line_and_no_verdict_of_the_gate(tmp_path: Path) -> None:
    script = tmp_path / "broken.py"
    script.write_text(
        "import sys\nfrom crosswind.cli import app\nfrom crosswind.runs import store\n"
        "def broken(*_, **__): raise KeyError('shape')\nstore.open_run = broken\n"
        f"sys.argv = ['crosswind', 'gate', {str(tmp_path)!r}]\napp.main()\n"
    )
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert ended.returncode == 70
    assert len(ended.stderr.splitlines()) == 1
    assert "this is a bug in crosswind: KeyError('shape')" in ended.stderr
    stored = Path(ended.stderr.partition("traceback is in ")[2].partition(";")[0])
    assert "in broken" in stored.read_text()
    stored.unlink()


def test_who_only_looks_at_a_run_gets_it_without_its_damaged_lines(tmp_path: Path, records: list[Record]) -> None:
    path = written(tmp_path / "run", records[:4])
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([b"{\n", lines[1], b'{"key": 1}\n', b"\0\0\n", lines[3], b'{"torn']))
    found = load_run(tmp_path / "run", damaged=True)
    assert [r.key for r in found.records] == [records[1].key, records[3].key]
    torn, damaged = found.problems[:2]
    assert torn.startswith("line 6 of episodes.jsonl is torn")
    assert damaged.startswith("3 of 5 lines of episodes.jsonl cannot be read and are left out: line 1 (")
    assert "; line 3 (" in damaged
    assert "; line 4 (" in damaged


def test_the_remedy_for_a_damaged_line_works(tmp_path: Path, records: list[Record]) -> None:
    path = written(tmp_path / "a run", records[:4])
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], b"{\n", *lines[2:]]))
    with pytest.raises(BadFile) as refused:
        load_run(tmp_path / "a run")
    remedy = str(refused.value).rpartition(": ")[2]
    subprocess.run(remedy, shell=True, check=True)
    assert resumed(tmp_path / "a run")[0] == {r.key for r in (records[0], *records[2:4])}
    assert path.with_name("episodes.jsonl.bak").exists()


def test_an_episode_that_comes_twice_is_read_once_and_refused_for_writing(
    tmp_path: Path, records: list[Record]
) -> None:
    path = written(tmp_path / "run", records[:2])
    path.write_bytes(path.read_bytes() + as_line(records[0]))
    found = load_run(tmp_path / "run")
    assert len(found.records) == 2
    assert "line 3 of episodes.jsonl repeats" in found.problems[0]
    with pytest.raises(BadFile, match=r":3: repeats the episode"):
        resumed(tmp_path / "run")


def test_a_newer_schema_asks_for_a_newer_crosswind(tmp_path: Path, records: list[Record]) -> None:
    path = written(tmp_path / "run", records[:3])
    first, second, third = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + second.replace(b'"schema_version":1', b'"schema_version":9', 1) + third)
    with pytest.raises(BadFile, match="newer crosswind"):
        load_run(tmp_path / "run")


def test_a_last_line_that_is_whole_and_makes_no_sense_is_not_thrown_away(tmp_path: Path, records: list[Record]) -> None:
    path = written(tmp_path / "run", records[:1])
    path.write_bytes(path.read_bytes() + b'{"schema_version":1,"key":"from elsewhere"}\n')
    for read in (load_run, resumed):
        with pytest.raises(BadFile, match=r"episodes\.jsonl:2: line 2 is damaged"):
            read(tmp_path / "run")


def test_errors_are_taken_out_to_be_played_again_unless_kept(tmp_path: Path, records: list[Record]) -> None:
    failed = records[1].model_copy(update={"outcome": "error", "ended": "error", "why": "no answer"})
    path = written(tmp_path / "run", [records[0], failed, records[2]])
    whole = path.read_bytes()
    assert resumed(tmp_path / "run", keep_errors=True)[0] == {r.key for r in records[:3]}
    assert path.read_bytes() == whole
    assert resumed(tmp_path / "run")[0] == {records[0].key, records[2].key}
    assert [r.key for r in iter_records(tmp_path / "run")] == [records[0].key, records[2].key]
    assert (tmp_path / "run" / "retried.jsonl").read_bytes() == as_line(failed)


def test_errors_are_set_aside_once_whatever_became_of_an_earlier_attempt(tmp_path: Path, records: list[Record]) -> None:
    failed = records[1].model_copy(update={"outcome": "error", "ended": "error", "why": "no answer"})
    other = records[3].model_copy(update={"outcome": "error", "ended": "error", "why": "no answer"})
    written(tmp_path / "run", [records[0], failed, records[2]])
    retried = tmp_path / "run" / "retried.jsonl"
    half = as_line(other)[:400]
    for left in (as_line(failed) + half, half + b"\n" + as_line(failed)):  # by a disk that was full
        retried.write_bytes(left)
        with Store(tmp_path / "run") as store:
            store.begin(manifest())
            assert store.resume(lambda _: None) == {records[0].key, records[2].key}
            assert [r.key for r in store.retried()] == [failed.key]


@pytest.mark.parametrize("name", ["lock", "episodes.jsonl", "episodes.jsonl.torn"])
def test_no_link_is_followed(tmp_path: Path, records: list[Record], name: str) -> None:
    path, precious = written(tmp_path / "run", records[:2]), tmp_path / "precious"
    path.write_bytes(path.read_bytes()[:-100])
    precious.write_bytes(path.read_bytes())
    (tmp_path / "run" / name).unlink(missing_ok=True)
    (tmp_path / "run" / name).symlink_to(precious)
    before = precious.read_bytes()
    with pytest.raises(CrosswindError, match=r"cannot be written to|symbolic link"):
        resumed(tmp_path / "run")
    assert precious.read_bytes() == before


@pytest.mark.parametrize("kind", ["pipe", "link"])
@pytest.mark.parametrize("name", ["run.json", "episodes.jsonl", "segments/000001.jsonl", "baselines.jsonl"])
def test_what_is_no_file_of_a_run_is_refused(tmp_path: Path, records: list[Record], name: str, kind: str) -> None:
    folder, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    written(folder, records[:2])
    (folder / "segments").mkdir()
    if (folder / name).exists():
        (folder / name).rename(elsewhere)
    else:
        elsewhere.write_bytes(b"")
    if kind == "pipe":
        os.mkfifo(folder / name)
    else:
        (folder / name).symlink_to(elsewhere)
    said = f"{re.escape(name)}: is {'not a regular file' if kind == 'pipe' else 'a symbolic link to .*elsewhere'}"
    with pytest.raises(BadFile, match=said):
        play_baselines(open_run(folder), 0, lambda _: None) if name == "baselines.jsonl" else load_run(folder)


def test_a_lock_that_is_a_pipe_is_refused_and_waits_for_nobody(tmp_path: Path, records: list[Record]) -> None:
    written(tmp_path / "run", records[:2])
    (tmp_path / "run" / "lock").unlink()
    os.mkfifo(tmp_path / "run" / "lock")
    with pytest.raises(BadFile, match="lock: is not a regular file"):
        resumed(tmp_path / "run")


def test_a_linked_folder_of_parts_is_refused_and_a_linked_run_is_not(tmp_path: Path, records: list[Record]) -> None:
    written(tmp_path / "run", records[:2])
    (tmp_path / "short").symlink_to(tmp_path / "run")
    assert len(load_run(tmp_path / "short").records) == 2
    (tmp_path / "parts").mkdir()
    (tmp_path / "run" / "segments").symlink_to(tmp_path / "parts")
    with pytest.raises(BadFile, match="segments: is a symbolic link"):
        open_run(tmp_path / "run")


def test_a_huge_manifest_is_refused_without_being_read_whole(tmp_path: Path, records: list[Record]) -> None:
    written(tmp_path / "run", records[:1])
    os.truncate(tmp_path / "run" / "run.json", 1 << 40)
    with pytest.raises(BadFile, match="more than 16 MiB"):
        load_run(tmp_path / "run")


@pytest.mark.parametrize("name", ["episodes.jsonl", "baselines.jsonl", "sessions/1-a.jsonl", "segments/000001.jsonl"])
def test_a_line_without_an_end_is_refused_and_not_held(
    tmp_path: Path, records: list[Record], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = tmp_path / "run"
    written(folder, records[:2])
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).touch()
    os.truncate(folder / name, 1 << 40)  # takes no room, and a tar carries it
    monkeypatch.setattr(files, "LONGEST", 1 << 20)
    monkeypatch.setattr(proxy_sessions, "LONGEST", 1 << 20)
    said = rf"{re.escape(name)}.* has more than 1 MiB"
    if name.startswith("sessions"):
        assert re.search(said.replace(" has", ".*has"), load_run(folder).problems[0])
        return
    with pytest.raises(BadFile, match=said):
        play_baselines(open_run(folder), 0, lambda _: None) if name == "baselines.jsonl" else load_run(folder)
    if name == "episodes.jsonl":
        found = load_run(folder, damaged=True)
        assert "has more than 1 MiB" in found.damage
        with pytest.raises(BadFile, match=said):
            resumed(folder)


@pytest.mark.parametrize(
    "line",
    [
        '{"nth": 0, "over": true, "at": 1, "step": {"x": 1}}',
        '{"nth": 0, "over": true, "at": "nan", "step": 5}',
        '{"nth": 0, "over": true, "at": ' + "1" * 400 + ', "step": 5}',
        "[" * 200_000,
    ],
)
def test_a_session_that_no_proxy_left_is_named_and_left_alone(tmp_path: Path, records: list[Record], line: str) -> None:
    folder = tmp_path / "run"
    written(folder, records[:2])
    (folder / "sessions").mkdir()
    names = ("task_id", "domain", "condition", "agent", "policy")
    head = {**dict.fromkeys(names, "x"), "seed": 0, "layers": [], "tools": []}
    (folder / "sessions" / "1-a.jsonl").write_text(f"{json.dumps({'head': head})}\n{line}\n")
    problems = load_run(folder).problems
    assert [p for p in problems if "is no session of a proxy" in p] or len(problems) == 1
    assert len(open_run(folder).told) == 2
    journal = Journal(tmp_path / "log", Discretion("server"), Plan())
    journal.check()
    (folder / "sessions").rename(tmp_path / "log" / "sessions")
    journal.check()  # a proxy still starts
    assert (tmp_path / "log" / "sessions" / "1-a.jsonl").exists()


@pytest.mark.parametrize("seed", ["\u00b2", "9" * 5000, "1/" + "9" * 5000, "-1"])
def test_a_task_id_that_is_none_is_named(seed: str) -> None:
    with pytest.raises(BadFile, match="is not a task id"):
        task_of(domains["poi"], f"poi/best_price/test/{seed}")


def test_a_record_that_could_not_be_read_back_is_written_shorter(
    tmp_path: Path, records: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LONGEST", 100_000)
    record = next(one for one in records if one.steps and one.steps[0]["inner"])
    step = json.loads(json.dumps(record.steps[0]))
    step["call"]["args"] = step["inner"][0]["call"]["args"] = {"note": ["x" * 1000] * 30}
    long = record.model_copy(update={"steps": (step,) * 20})
    written(tmp_path / "run", [records[1], long, records[2]])
    found = load_run(tmp_path / "run").records
    assert [one.key for one in found] == [records[1].key, long.key, records[2].key]
    assert len(found[1].steps) == 20
    assert found[0] == records[1]


def test_half_a_character_does_not_stop_a_line(tmp_path: Path, records: list[Record]) -> None:
    odd = records[0].model_copy(update={"why": "half \ud800 a character"})
    written(tmp_path / "run", [odd])
    assert load_run(tmp_path / "run").records[0].why == "half \\ud800 a character"


# ---------------------------------------------------------------- who may write


def test_two_runners_on_one_folder(tmp_path: Path) -> None:
    held = rf"another run is writing here \(pid {os.getpid()} on "
    with Store(tmp_path / "run"), pytest.raises(Locked, match=held):
        Store(tmp_path / "run")
    Store(tmp_path / "run").close()


def test_a_lock_dies_with_its_owner(tmp_path: Path) -> None:
    code = "import sys, os; from crosswind.runs.store import Store; s = Store(sys.argv[1]); os.kill(os.getpid(), 9)"
    killed = subprocess.run([sys.executable, "-c", code, tmp_path / "run"], check=False)
    assert killed.returncode == -9
    Store(tmp_path / "run").close()


def test_a_changed_configuration_is_refused_with_what_changed(tmp_path: Path) -> None:
    with Store(tmp_path / "run") as store:
        store.begin(manifest())
    with Store(tmp_path / "run") as store:
        with pytest.raises(CrosswindError, match=r'agent was "oracle", now "idle"') as refused:
            store.begin(manifest("idle", seed=4))
        assert "seed was 0, now 4" in str(refused.value)
        assert "choose another --out" in str(refused.value)
        store.begin(manifest())


def test_differences_name_the_place() -> None:
    one = manifest()
    other = one.model_copy(update={"suite": {**one.suite, "tasks": 9}, "limit": 3, "created": "later"})
    assert differences(one, other) == ["suite.tasks was 4, now 9"]
    judged = one.model_copy(update={"judge": "next"})
    assert differences(one, judged) == [f'judge was "{JUDGE}", now "next"']


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "to_mother.txt").write_text("Dear mother")
    with pytest.raises(CrosswindError, match="holds other files"):
        Store(tmp_path / "letters")
    assert [p.name for p in (tmp_path / "letters").iterdir()] == ["to_mother.txt"]


def test_episodes_without_a_manifest_are_refused(tmp_path: Path, records: list[Record]) -> None:
    path = written(tmp_path / "run", records[:1])
    (tmp_path / "run" / "run.json").unlink()
    with pytest.raises(BadFile, match=r"has episodes\.jsonl and no run\.json; restore it"):
        Store(tmp_path / "run")
    assert path.stat().st_size > 0


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema_version": 1}', "[" * 100_000])
def test_a_damaged_manifest(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(BadFile, match=r"run\.json: is damaged"):
        load_run(tmp_path)


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="give the folder of a run \\(the --out of `crosswind run`\\)"):
        load_run(tmp_path / "nowhere")


# ---------------------------------------------------------------- a disk that does not play along


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CrosswindError, match=r"cannot be written to .*; choose another folder"):
        Store(tmp_path / "file" / "run")


def test_a_read_only_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(CrosswindError, match=r"Read-only file system\); choose another folder") as refused:
        Store(tmp_path / "run")
    assert not isinstance(refused.value, CannotStore)


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, records: list[Record]) -> None:
    """A real one: the system refuses the write in the middle of the third line."""
    folder = tmp_path / "run"
    path = written(folder, records[:2])
    whole = path.read_bytes()
    with Store(folder) as store:
        store.begin(manifest())
        store.resume(lambda _: None)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 1000, hard))
        try:
            with pytest.raises(CannotStore, match=r"every episode before that is safe\. Make room"):
                store.append(records[2])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert path.read_bytes() == whole
        store.append(records[2])
        store.sync()
    assert [r.key for r in load_run(folder).records] == [r.key for r in records[:3]]


def test_lines_that_the_disk_did_not_take_are_cut_off(
    tmp_path: Path, records: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    with Store(folder) as store:
        store.begin(manifest())
        store.resume(lambda _: None)
        store.append(records[0])
        store.sync()
        store.append(records[1])
        assert store.behind == 1

        def broken(fd: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", broken)
            with pytest.raises(CannotStore, match="No space left"):
                store.sync()
    assert [r.key for r in load_run(folder).records] == [records[0].key]


def test_a_file_that_does_not_fit_leaves_nothing_behind(tmp_path: Path) -> None:
    """A real full disk: the system refuses to let files grow."""
    page = tmp_path / "page.html"
    replace_file(page, b"old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(OSError, match="too large"):
            replace_file(page, b"x" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]
    assert page.read_bytes() == b"old"


def test_a_manifest_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store(tmp_path / "run") as store:
        first = store.begin(manifest())

        def broken(fd: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", broken)
            with pytest.raises(CannotStore):
                store.write(first, state="finished")
    assert load_run(tmp_path / "run").manifest == first


def test_several_put_the_same_file_in_place_at_once(tmp_path: Path) -> None:
    path = tmp_path / "file"
    texts = [bytes([65 + n]) * 20000 for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            list(pool.map(lambda text: replace_file(path, text), texts))
            assert path.read_bytes() in texts
    assert list(tmp_path.iterdir()) == [path]


def test_a_half_written_manifest_of_a_killed_run_is_no_hindrance(tmp_path: Path) -> None:
    left = tmp_path / "run.json.17-99.new"
    left.write_bytes(b"{")
    with Store(tmp_path):
        assert not left.exists()


def test_an_output_obeys_the_umask_and_keeps_the_mode_that_was_there(tmp_path: Path) -> None:
    page, shared, link = tmp_path / "page.html", tmp_path / "shared.html", tmp_path / "link.html"
    link.symlink_to(shared)
    before = os.umask(0o027)
    try:
        write_output(page, b"new")
        write_output(link, b"new")
        assert stat.S_IMODE(page.stat().st_mode) == stat.S_IMODE(shared.stat().st_mode) == 0o640
        page.chmod(0o664)
        write_output(page, b"newer")
        write_output(link, b"newer")
    finally:
        os.umask(before)
    assert stat.S_IMODE(page.stat().st_mode) == 0o664
    assert (link.is_symlink(), shared.read_bytes()) == (True, b"newer")
    write_output(link, b"ours", links=False)  # where nobody named it, as for the page in a folder of a run
    assert (link.is_symlink(), link.read_bytes(), shared.read_bytes()) == (False, b"ours", b"newer")
    assert {path.name for path in tmp_path.iterdir()} == {"page.html", "shared.html", "link.html"}


def test_whoever_finds_a_folder_locked_is_told_by_whom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = f"pid {os.getpid()} on "
    with Store(tmp_path / "run"), pytest.raises(Locked, match=told):
        Store(tmp_path / "run")
    cut = os.ftruncate

    def busy(number: int, length: int) -> None:  # the owner is in the midst of writing who it is
        with pytest.raises(Locked, match=told):
            Store(tmp_path / "run")
        cut(number, length)

    monkeypatch.setattr(os, "ftruncate", busy)
    Store(tmp_path / "run").close()
