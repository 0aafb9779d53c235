"""The registry: nothing is promoted without a pass, rollback is one call, and damage loses nothing."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from crosswind.adapt.registry import LARGEST, AgentRegistry, _write
from crosswind.base.errors import BadFile, CrosswindError


@pytest.fixture
def registry(tmp_path: Path) -> AgentRegistry:
    found = AgentRegistry(tmp_path / "registry")
    found.start("one_shot")
    return found


def test_versions_come_into_use_by_a_pass_and_go_by_a_rollback(registry: AgentRegistry) -> None:
    two = registry.add("retrier", parent=1, verdict="pass", reason="better")
    registry.promote(two.number)
    three = registry.add("oracle", parent=2, verdict="pass")
    registry.promote(three.number)
    registry.promote(three.number)  # again: nothing happens
    assert [e.sort for e in registry.events()] == ["start", "promote", "promote"]
    assert registry.rollback(reason="worse").number == 2
    assert registry.rollback().number == 1
    with pytest.raises(CrosswindError, match="no earlier version"):
        registry.rollback()
    assert [one.number for one in registry.lineage(three)] == [3, 2, 1]


def test_a_rollback_may_skip_versions(registry: AgentRegistry) -> None:
    for parent, spec in ((1, "retrier"), (2, "oracle")):
        registry.promote(registry.add(spec, parent=parent, verdict="pass").number)
    assert registry.rollback(to=1).number == 1
    with pytest.raises(CrosswindError, match="no earlier version"):
        registry.rollback()


@pytest.mark.parametrize("verdict", ["fail", "inconclusive", "infrastructure", ""])
def test_nothing_is_promoted_without_a_pass(registry: AgentRegistry, verdict: str) -> None:
    two = registry.add("retrier", parent=1, verdict=verdict)
    with pytest.raises(CrosswindError, match="not pass"):
        registry.promote(two.number)
    assert registry.spec(registry.current() or two) == "one_shot"


def test_a_pass_against_a_version_that_is_no_longer_in_use_does_not_count(registry: AgentRegistry) -> None:
    registry.promote(registry.add("retrier", parent=1, verdict="pass").number)
    late = registry.add("oracle", parent=1, verdict="pass")
    with pytest.raises(CrosswindError, match="compared with version 1, and version 2 is in use"):
        registry.promote(late.number)


def test_the_same_key_is_registered_once(registry: AgentRegistry) -> None:
    one = registry.add("retrier", key="k", parent=1)
    assert registry.add("retrier", key="k", parent=1) == one
    assert len(registry.versions()) == 2


def test_files_are_kept_and_checked(registry: AgentRegistry, tmp_path: Path) -> None:
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_model.bin").write_bytes(b"weights")
    made = registry.add("embedded:{adapter}", {"adapter": adapter}, parent=1, verdict="pass")
    (adapter / "adapter_model.bin").unlink()  # the registry has its own
    path = Path(registry.spec(made).removeprefix("embedded:"))
    assert (path / "adapter_model.bin").read_bytes() == b"weights"
    (path / "adapter_model.bin").write_bytes(b"others")
    with pytest.raises(BadFile, match="not what it was"):
        registry.promote(made.number)
    assert (registry.current() or made).number == 1


@pytest.mark.parametrize("damage", ["", "{", '{"number": 2}', "edited"])
def test_a_damaged_version_is_named_and_kept(registry: AgentRegistry, damage: str) -> None:
    registry.add("retrier", parent=1, verdict="fail")
    path = registry.folder / "versions" / "0002.json"
    text = path.read_text().replace('"fail"', '"pass"') if damage == "edited" else damage
    path.write_text(text)
    with pytest.raises(BadFile, match=r"0002\.json: damaged"):
        registry.promote(2)
    assert "0002.json" in registry.damaged()[0]
    assert (registry.current() or registry.version(2)).number == 1
    assert registry.add("oracle", parent=1).number == 3  # the damaged one is not written over
    assert path.read_text() == text


def test_a_damaged_or_lost_event_stops_changes_and_loses_nothing(registry: AgentRegistry) -> None:
    registry.promote(registry.add("retrier", parent=1, verdict="pass").number)
    three = registry.add("oracle", parent=2, verdict="pass")
    path = registry.folder / "events" / "0001.json"
    text = path.read_text()
    path.write_text("not json")
    for change in (registry.rollback, lambda: registry.promote(three.number), registry.current):
        with pytest.raises(BadFile, match=r"0001\.json: damaged"):
            change()
    path.unlink()
    with pytest.raises(BadFile, match=r"0001\.json is missing"):
        registry.rollback()
    assert len(registry.versions()) == 3
    path.write_text(text)  # from a backup
    assert registry.promote(three.number).number == 3


def test_an_entry_of_another_number_is_damage(registry: AgentRegistry) -> None:
    path = registry.folder / "versions"
    (path / "0002.json").write_text((path / "0001.json").read_text())
    with pytest.raises(BadFile, match="holds number 1"):
        registry.version(2)


def test_writers_take_turns(registry: AgentRegistry) -> None:
    threads = [threading.Thread(target=registry.add, args=("retrier",), kwargs={"parent": 1}) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.number for one in registry.versions()] == [*range(1, 10)]
    assert json.loads((registry.folder / "versions" / "0009.json").read_text())["number"] == 9


def test_a_spec_with_a_password_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CrosswindError, match="keys come from the environment"):
        AgentRegistry(tmp_path).start("openai:m@https://me:secret@example.org/v1")
    assert not (tmp_path / "versions").exists()


@pytest.mark.parametrize("parent", [1, 2])
def test_a_lineage_without_end_is_damage(registry: AgentRegistry, parent: int) -> None:
    registry.add("retrier", parent=1)
    _write(registry.folder / "versions" / "0001.json", registry.version(1).model_copy(update={"parent": parent}))
    with pytest.raises(BadFile, match=rf"0001\.json: descends from version {parent}, which is not an earlier one"):
        registry.lineage(registry.version(2))
    assert "0001.json" in registry.damaged()[0]


@pytest.mark.parametrize("kind", ["pipe", "device", "large"])
def test_an_entry_that_never_ends_is_damage(registry: AgentRegistry, kind: str) -> None:
    path = registry.folder / "versions" / "0002.json"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.write_bytes(b" " * (LARGEST + 1))
    with pytest.raises(BadFile, match="over 4 MiB" if kind == "large" else "not a regular file"):
        registry.version(2)
    assert "0002.json" in registry.damaged()[0]
    assert [one.number for one in registry.versions()] == [1]


@pytest.mark.parametrize("spec", ["python:x:y \x1b]0;title\x07", "one_shot\n::error::forged", "one_shot\n"])
def test_a_spec_with_control_characters_is_refused(tmp_path: Path, spec: str) -> None:
    for register in (AgentRegistry(tmp_path).add, AgentRegistry(tmp_path).start):
        with pytest.raises(CrosswindError, match="control characters or line breaks"):
            register(spec)
    assert not (tmp_path / "versions").exists()


@pytest.mark.parametrize("place", ["/", "files/../../adapter", "../adapter", "files"])
def test_a_file_outside_the_registry_is_not_read(
    registry: AgentRegistry, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crosswind.adapt.registry.digest", lambda path: pytest.fail(f"{path} was read"))
    version = registry.version(1).model_copy(update={"files": {"adapter": place}})
    with pytest.raises(BadFile, match=r"the adapter of version 1 is at .*, outside the registry"):
        registry.files(version)
