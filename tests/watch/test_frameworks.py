"""Traces of other frameworks, as their own instrumentation wrote them (`bench/framework_traces.py`)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from crosswind.cli.app import app
from crosswind.watch.observed import ABSENT
from crosswind.watch.sources.opening import read_episodes
from tests.watch.test_sources import lines, otlp, pairs, span

TRACES = Path(__file__).parent / "traces"
USUAL = 24  # episodes of the longest trace before a tool gets another name


@pytest.mark.parametrize("framework", ["openai_agents", "pydantic_ai", "langchain"])
def test_what_an_agent_was_asked_called_and_answered_is_read(framework: str) -> None:
    second = list(read_episodes(TRACES / f"{framework}.jsonl.gz"))[1]
    assert second.source == "desk"
    assert second.query == "I need a room in Lyon for 2 guests."
    assert second.policy == "Find a room and say what it costs."
    assert [(call.tool, call.args, call.error) for call in second.calls] == [
        ("find_rooms", {"city": "Lyon", "guests": 2}, None),
        ("room_price", {"room_id": "R12"}, "not_available"),
    ]
    rows = second.calls[0].result
    assert rows[2] == {"room_id": "R12", "beds": 4, "stars": 3}
    assert second.calls[1].text == "R12 is taken."
    assert all(call.seconds is not None and call.seconds > 0 for call in second.calls)
    assert second.final == "R12 is taken."
    tools = second.listing or second.described
    assert [tool.name for tool in tools] == ["find_rooms", "room_price"]
    assert tools[1].doc.startswith("Price of a room for one night.")
    assert set(tools[0].params) == {"city", "guests"}


def test_a_tool_with_another_name_is_named_though_the_trace_has_no_list_of_tools() -> None:
    trace = TRACES / "openai_agents.jsonl.gz"
    assert all(episode.listing is None for episode in read_episodes(trace))
    done = CliRunner().invoke(app, ["watch", str(trace), "--reference", str(USUAL), "--json", "--no-progress"])
    (alarm,) = map(json.loads, done.stdout.splitlines())
    assert alarm["shift"]["kind"] == "semantic_rename"
    assert alarm["evidence"]["changes"]["tools_renamed"] == {"room_price": "quote_stay"}
    assert "tools_removed" not in alarm["evidence"]["changes"]
    assert 0 <= alarm["at"] < 12
    assert done.exit_code == 4


def test_content_that_was_hidden_is_absent(tmp_path: Path) -> None:
    tool = pairs(
        openinference__span__kind="TOOL", tool__name="find", input__value="__REDACTED__", output__value="__REDACTED__"
    )
    asked = pairs(
        gen_ai__operation__name="chat",
        gen_ai__input__messages=json.dumps(
            [
                {"role": "user", "parts": [{"type": "text"}]},
                {"role": "assistant", "parts": [{"type": "tool_call", "id": "a", "name": "find"}]},
                {"role": "tool", "parts": [{"type": "tool_call_response", "id": "a", "name": "find"}]},
            ]
        ),
    )
    spans = [span("find", 1, 1, tool), span("chat", 2, 1, asked)]
    (found,) = read_episodes(lines(tmp_path / "hidden.jsonl", [otlp(*spans)]))
    assert [(call.tool, call.args, call.result) for call in found.calls] == [("find", None, ABSENT)]
    assert found.query is None


def test_a_failed_tool_message_is_an_error(tmp_path: Path) -> None:
    output = {"type": "tool", "data": {"content": "No such room.", "status": "error"}}
    tool = pairs(
        openinference__span__kind="TOOL", tool__name="find", input__value="R1", output__value=json.dumps(output)
    )
    (found,) = read_episodes(lines(tmp_path / "failed.jsonl", [otlp(span("find", 1, 1, tool))]))
    assert [(call.error, call.text, call.args) for call in found.calls] == [("error", "No such room.", "R1")]
