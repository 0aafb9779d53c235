"""Streams in front of a live server: releases that change from session to session, and outlive a kill."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from crosswind.base.errors import BadFile, CannotPerturb, CrosswindError
from crosswind.cli.app import app
from crosswind.episodes.stream import StreamPlan, load_plan, with_changes
from crosswind.mcp import streaming
from crosswind.mcp import tools as forms
from crosswind.mcp.streaming import LiveStream
from crosswind.report.content import content
from crosswind.runs.analysis import analyse
from crosswind.runs.store import load_run
from tests.fake_mcp import TOOLS
from tests.mcp.test_proxy import Process, call

PLAN = StreamPlan(name="live", episodes=6, releases=2, changelog="shown")
YAML = "name: live\nepisodes: 6\nreleases: 2\nchangelog: shown\n"


@pytest.fixture
def proxy() -> Iterator[Callable[..., Process]]:
    made: list[Process] = []

    def make(*flags: str) -> Process:
        made.append(Process(*flags))
        return made[-1]

    yield make
    for one in made:
        if one.process.poll() is None:
            one.process.kill()
        one.end()


def session(one: Process, *, end: bool = True) -> tuple[list[str], str]:
    """A session with one call: the names of tools that are shown, and the server's instructions."""
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    one.write({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
    told = one.read()["result"]["instructions"]
    one.write(
        {"jsonrpc": "2.0", "method": "notifications/initialized"}, {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    )
    names = [tool["name"] for tool in one.read()["result"]["tools"]]
    one.write(call(2, names[0]))
    assert "id" in one.read()
    if end:
        assert one.end() == 0
    return names, told


def test_sessions_meet_the_releases_in_turn_and_a_kill_changes_nothing(
    proxy: Callable[..., Process], tmp_path: Path
) -> None:
    plan, folder = tmp_path / "live.yaml", tmp_path / "log"
    plan.write_text(YAML)
    flags = ("--stream", str(plan), "--log", str(folder))
    met = []
    for n in range(7):
        one = proxy(*flags)
        met.append(session(one, end=n != 3))
        if n == 3:  # in the second release
            one.process.kill()
            one.end()
    names, told = [tuple(shown) for shown, _ in met], [instructions for _, instructions in met]
    assert names[0] == names[1]
    assert names[2] == names[3]
    assert names[4] == names[5] == names[6]  # the last release stays
    stacks = [release.layers for release in LiveStream(PLAN, folder).kept().releases]  # type: ignore[union-attr]
    assert len({json.dumps(stack) for stack in stacks}) == 3
    records = load_run(folder).records
    assert [(r.condition, r.mark and r.mark.number) for r in records] == [
        (f"v{v}", n) for n, v in enumerate((1, 1, 2, 2, 3, 3, 3))
    ]
    assert [r.layers for r in records] == [stacks[v] for v in (0, 0, 1, 1, 2, 2, 2)]
    assert [r.outcome for r in records] == ["unjudged"] * 3 + ["error"] + ["unjudged"] * 3
    assert told[:2] == ["Be kind."] * 2
    assert all("Release notes of version" in text for text in told[2:])
    assert all(r.policy == text for r, text in zip(records, told, strict=True))
    assert content(analyse(load_run(folder), baselines=0, opened=0)).stream is None  # nobody judged them


def test_releases_are_drawn_once_and_kept(tmp_path: Path) -> None:
    tools = forms.tools_of(TOOLS)
    one, other = LiveStream(PLAN, tmp_path, 3), LiveStream(PLAN, tmp_path / "other", 3)
    (tmp_path / "other").mkdir()
    mark = one.mark().model_copy(update={"version": 3})
    assert one.draw(tools, mark).layers == other.draw(tools, mark).layers
    kept = one.kept()
    assert kept is not None
    assert [release.version for release in kept.releases] == [1, 2, 3]
    assert kept.notices[0] == ""
    with pytest.raises(CrosswindError, match="another stream or seed"):
        LiveStream(PLAN, tmp_path, 4).kept()
    with pytest.raises(CannotPerturb, match="this server's tools"):  # no session goes on without its release
        one.draw(forms.tools_of([{"name": "other", "inputSchema": {"type": "object"}}]), mark)
    (tmp_path / streaming.FILE).write_text("{")
    with pytest.raises(BadFile, match="damaged"):
        one.kept()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"notices": []}, "there are 0 notices; expected 3"),
        ({"releases": []}, "expected the releases 1 to 3"),
        ({"releases": [{"version": n} for n in (1, 2, 7)]}, "expected the releases 1 to 3"),
        ({"releases": [{"version": n, "layers": [{"kind": "none"}] * (n == 3)} for n in (1, 2, 3)]}, "v3.*'none'"),
    ],
)
def test_releases_that_were_tampered_with_are_refused(tmp_path: Path, change: dict[str, Any], why: str) -> None:
    stream = LiveStream(PLAN, tmp_path, 3)
    stream.draw(forms.tools_of(TOOLS), stream.mark())
    path = tmp_path / streaming.FILE
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(BadFile, match=f"{streaming.FILE}: is damaged .*{why}"):
        stream.mark()


def test_what_a_live_server_cannot_have_is_refused(tmp_path: Path) -> None:
    for name, why in (("careers", "career"), ("earned", "judged on a live server"), ("drifting", "no requests")):
        with pytest.raises(CrosswindError, match=why):
            streaming.without_tasks(load_plan(name))
    with pytest.raises(CrosswindError, match="need a task"):
        streaming.without_tasks(with_changes(PLAN, {"kinds": ("rule_change:1",)}))
    nothing = [{"name": "ping", "description": "Ping.", "inputSchema": {"type": "object", "properties": {}}}]
    stream = LiveStream(with_changes(PLAN, {"kinds": ("key_rename:2",)}), tmp_path)
    with pytest.raises(CannotPerturb, match="fewer releases"):
        stream.draw(forms.tools_of(nothing), stream.mark())


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--stream", "evolving"], "needs --log"),
        (["--stream", "evolving", "--perturb", "envelope", "--log", "x"], "give one of"),
        (["--changelog", "shown"], "give --stream"),
        (["--stream", "nowhere", "--log", "x"], "nowhere"),
    ],
)
def test_a_command_that_cannot_work_is_refused(options: list[str], why: str) -> None:
    found: Any = CliRunner().invoke(app, ["proxy", *options, "--", "server"])
    assert found.exit_code != 0
    assert why in f"{found.output}{found.exception}"
