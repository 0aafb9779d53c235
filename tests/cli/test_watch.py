"""`crosswind watch` as a user types it: output, files, exit statuses."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from crosswind.base.errors import CrosswindError
from crosswind.cli.app import app
from crosswind.cli.watch import _line
from crosswind.core.registry import perturbations
from crosswind.episodes.stream import load_suite
from crosswind.episodes.suite import suite_with
from crosswind.watch import watcher
from crosswind.watch.alarms import read_alarms
from crosswind.watch.wording import lines_of


def line(n: int, tool: str, *, error: bool = False) -> str:
    schema = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
    result: dict[str, Any] = (
        {"error": {"code": "unknown_tool", "text": "No."}} if error else {"content": [{"id": n % 3}]}
    )
    return json.dumps(
        {
            "key": f"e{n}",
            "query": f"Find {n}.",
            "policy": "",
            "tools": [{"function": {"name": tool, "description": "Find it.", "parameters": schema}}],
            "steps": [{"call": {"tool": "find", "args": {"q": str(n)}}, "result": result, "heard": []}],
            "final": "Done.",
        }
    )


@pytest.fixture
def logs(tmp_path: Path) -> tuple[str, str, str]:
    """A reference, an unchanged log, and one in which the tool has another name."""
    paths = [tmp_path / name for name in ("reference.jsonl", "same.jsonl", "renamed.jsonl")]
    paths[0].write_text("\n".join(line(n, "find") for n in range(60)))
    paths[1].write_text("\n".join(line(n, "find") for n in range(60, 90)))
    paths[2].write_text("\n".join(line(n, "locate", error=True) for n in range(60, 90)))
    return str(paths[0]), str(paths[1]), str(paths[2])


def watch(*args: str) -> Any:
    return CliRunner().invoke(app, ["watch", *args, "--no-progress"])


def test_an_unchanged_log_exits_with_0(logs: tuple[str, str, str]) -> None:
    done = watch(logs[1], "--reference", logs[0])
    assert done.exit_code == 0
    assert "0 alarms" in done.stdout
    assert "1,000 episodes or more on average" in done.stdout


def test_an_alarm_that_costs_exits_with_1_and_says_what_changed(logs: tuple[str, str, str], tmp_path: Path) -> None:
    page, events = tmp_path / "page.html", tmp_path / "events.jsonl"
    done = watch(logs[2], "--reference", logs[0], "--page", str(page), "--events", str(events))
    assert done.exit_code == 1
    assert "ALARM: semantic_rename:1 on find" in done.stdout
    assert "semantic_rename" in page.read_text()
    assert "<script" not in page.read_text()
    (event,) = map(json.loads, events.read_text().splitlines())
    record = event["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0]
    found = {one["key"]: one["value"] for one in record["attributes"]}
    assert found["crosswind.shift.kind"] == {"stringValue": "semantic_rename"}
    assert record["eventName"] == "crosswind.watch.alarm"


def test_json_lines_are_alarms_and_nothing_else(logs: tuple[str, str, str]) -> None:
    done = watch(logs[2], "--reference", logs[0], "--json")
    (alarm,) = read_alarms(done.stdout.splitlines())
    assert len(done.stdout.splitlines()) == 1
    assert alarm.shift is not None
    assert alarm.shift.layer == {"kind": "semantic_rename", "names": {"find": "locate"}}


def test_a_harmless_change_exits_with_4(logs: tuple[str, str, str], tmp_path: Path) -> None:
    reworded = tmp_path / "reworded.jsonl"
    reworded.write_text("\n".join(line(n, "find").replace("Find it.", "Look it up.") for n in range(60, 90)))
    done = watch(str(reworded), "--reference", logs[0])
    assert done.exit_code == 4
    assert "change: description_rewrite" in done.stdout


def test_the_first_episodes_may_be_the_reference(logs: tuple[str, str, str], tmp_path: Path) -> None:
    both = tmp_path / "both.jsonl"
    both.write_text("\n".join(Path(one).read_text() for one in (logs[0], logs[2])))
    assert watch(str(both), "--reference", "60").exit_code == 1


def test_a_mistake_is_said_in_a_line(logs: tuple[str, str, str]) -> None:
    done = watch("nowhere", "--reference", logs[0])
    assert isinstance(done.exception, CrosswindError)
    assert re.search(r"no such file or folder; expected a run folder", str(done.exception))


def test_episodes_of_a_reference_that_are_not_learned_from_are_not_watched_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "MOST", 40)
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join([*(line(n, "find") for n in range(60)), line(60, "locate", error=True)]))
    done = watch(str(path), "--reference", "60", "--json")
    (alarm,) = map(json.loads, done.stdout.splitlines())
    assert (alarm["at"], alarm["episodes"]) == (0, ["e60"])


@pytest.mark.parametrize("number", ["99999999999999999999999", "٢", "²"])
def test_a_strange_number_of_reference_episodes_is_no_bug(number: str, logs: tuple[str, str, str]) -> None:
    done = watch(logs[1], "--reference", number)
    assert isinstance(done.exception, CrosswindError)


def test_a_reference_that_leaves_nothing_to_watch_is_an_error(logs: tuple[str, str, str]) -> None:
    done = watch(logs[0], "--reference", "500")
    assert isinstance(done.exception, CrosswindError)
    assert str(done.exception).endswith("has 60 episodes, so none is left to watch after a reference of 500")


def test_the_command_of_an_alarm_works_for_every_kind(logs: tuple[str, str, str]) -> None:
    done = watch(logs[2], "--reference", logs[0])
    found = re.search(r"crosswind (run .*) --agent SPEC", done.stdout)
    assert found is not None
    (alarm,) = read_alarms(watch(logs[2], "--reference", logs[0], "--json").stdout.splitlines())
    assert alarm.shift is not None
    for kind in perturbations.names():
        shift = alarm.shift.model_copy(update={"kind": kind})
        if not suite_with(kind):
            continue  # it is in no suite, and no command is printed
        words = dict(lines_of(alarm.model_copy(update={"shift": shift})))["reproduce"].split()
        assert words[:2] == ["crosswind", "run"]
        load_suite(words[2]).narrowed(0, "all", only=[words[words.index("--only") + 1]])
    told = CliRunner().invoke(app, [*found[1].split(), "--agent", "oracle", "--dry-run", "--limit", "2"])
    assert told.exit_code == 0, told.output


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_told(logs: tuple[str, str, str]) -> None:
    done = watch(logs[2], "--reference", logs[0], "--events", "/dev/full")
    assert isinstance(done.exception, CrosswindError)
    assert "/dev/full: cannot be written (No space left on device)" in str(done.exception)


def test_one_alarm_is_told_as_one() -> None:
    told: Any = SimpleNamespace
    assert _line(told(count=1, levels={}, pending=None), 1) == "1 episode, 1 alarm"
    assert _line(told(count=2, levels={}, pending=None), 0) == "2 episodes, 0 alarms"
