"""Suites as tasks of Inspect, with its mock model and its stock agent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import crosswind as cw
from bench.frameworks.scripted import ScriptedEndpoint

pytest.importorskip("inspect_ai", reason="Inspect is not installed; .ci/run installs it")

from inspect_ai import eval as inspect_eval
from inspect_ai.agent import react
from inspect_ai.model import ChatMessageAssistant, ModelOutput, ModelUsage, get_model
from inspect_ai.tool import ToolCall

from crosswind.base.errors import CrosswindError
from crosswind.frameworks.inspect_logs import import_log
from crosswind.frameworks.inspect_tasks import crosswind_tools, task_of

pytestmark = [  # Inspect's own, in its event loop
    pytest.mark.filterwarnings("default::DeprecationWarning"),
    pytest.mark.filterwarnings("default::ResourceWarning"),
    pytest.mark.filterwarnings("default::pytest.PytestUnraisableExceptionWarning"),
]
SUITE = cw.Suite.model_validate_json(
    json.dumps(
        {
            "name": "midway",
            "domains": ["poi"],
            "tasks": 3,
            "conditions": [{"name": kind, "stack": [{"kind": kind}]} for kind in ("retired_midway", "envelope")],
        }
    )
)


USED = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)  # else Inspect counts, with a file it downloads


def scripted(records: Any) -> tuple[Any, set[tuple[str, ...]]]:
    """A mock model that says what an agent said in recorded episodes, and the lists of tools it was shown."""
    endpoint, menus = ScriptedEndpoint(records), set[tuple[str, ...]]()

    def reply(input: Any, tools: Any, tool_choice: Any, config: Any) -> ModelOutput:
        menus.add(tuple(sorted(tool.name for tool in tools)))
        messages = [
            {
                "role": message.role,
                "content": message.text,
                "tool_calls": [
                    {"function": {"name": call.function}} for call in getattr(message, "tool_calls", None) or ()
                ],
            }
            for message in input
        ]
        said = endpoint.answer({"messages": messages})["choices"][0]["message"]
        calls = [
            ToolCall(id=c["id"], function=c["function"]["name"], arguments=json.loads(c["function"]["arguments"]))
            for c in said.get("tool_calls", ())
        ]
        made = ChatMessageAssistant(content=said["content"], tool_calls=calls or None)
        output = ModelOutput.from_content("mock", said["content"])
        output.choices[0].message, output.usage = made, USED
        return output

    return get_model("mockllm/model", custom_outputs=reply), menus


@pytest.mark.parametrize("stock", [False, True], ids=["model", "react"])
def test_verdicts_are_those_of_a_run(stock: bool, tmp_path: Path) -> None:
    run = cw.evaluate("oracle", SUITE, seed=1, ending="finish")
    model, menus = scripted(run.records)
    agent = {"solver": react(prompt=None, tools=[crosswind_tools()], submit=False)} if stock else {}
    [log] = inspect_eval(task_of(SUITE, seed=1), model=model, display="none", log_dir=str(tmp_path), **agent)
    assert log.status == "success"
    assert len(menus) > 2, "tools must be listed again at every turn"
    found = import_log(log.location, tmp_path / "run")
    imported = {record.key: record for record in cw.load_run(tmp_path / "run").records}
    assert (found.episodes, found.without) == (len(run.records), 0)
    assert {key: record.outcome for key, record in imported.items()} == {r.key: r.outcome for r in run.records}
    assert {name for score in log.results.scores for name in score.metrics} >= {"clean", "shifted", "clean stderr"}


def test_wrong_calls_of_a_stock_agent_reach_the_world(tmp_path: Path) -> None:
    calls = iter(
        [("", {}), ("no_such_tool", {"a": 1}), ("find_places", {"city": 7}), ("finish", {"status": "maybe"})] * 99
    )

    def reply(input: Any, tools: Any, tool_choice: Any, config: Any) -> ModelOutput:
        if sum(isinstance(message, ChatMessageAssistant) for message in input) == 4:
            output = ModelOutput.from_content("mock", "I cannot do this.")
        else:
            output = ModelOutput.for_tool_call("mock", *next(calls))
        output.usage = USED
        return output

    [log] = inspect_eval(
        task_of(SUITE, seed=1, limit=1),
        model=get_model("mockllm/model", custom_outputs=reply),
        solver=react(prompt=None, tools=[crosswind_tools()], submit=False),
        display="none",
        log_dir=str(tmp_path),
    )
    assert log.samples[0].error is None, log.samples[0].error
    told = [message.text for message in log.samples[0].messages if message.role == "tool"]
    assert [json.loads(text)["error"] for text in told] == [
        "unknown_tool",
        "unknown_tool",
        "bad_arguments",
        "bad_arguments",
    ]


def test_epochs_are_trials(tmp_path: Path) -> None:
    run = cw.evaluate("oracle", SUITE, seed=1, ending="finish", trials=2, limit=4)
    model, _ = scripted(run.records)
    task = task_of(SUITE, seed=1, trials=2, limit=4)
    [log] = inspect_eval(task, model=model, display="none", log_dir=str(tmp_path), epochs=3)
    found = import_log(log.location, tmp_path / "run")
    imported = cw.load_run(tmp_path / "run")
    assert (found.episodes, found.without, len(imported.records)) == (12, 0, 12)
    assert {record.trial for record in imported.records} == set(range(6))
    expected = cw.evaluate("oracle", SUITE, seed=1, ending="finish", trials=6, limit=12)
    assert {r.key: r.outcome for r in imported.records} == {r.key: r.outcome for r in expected.records}
    assert {r.key: r.pair for r in imported.records} == {r.key: r.pair for r in expected.records}


@pytest.mark.parametrize("domains", ["poi, retail", ["poi", "retail"], ("poi,retail",)])
def test_domains_come_as_a_list_or_with_commas(domains: Any) -> None:
    samples = task_of(SUITE, domains, limit=8).dataset
    assert {sample.metadata["domain"] for sample in samples} == {"poi", "retail"}
    with pytest.raises(CrosswindError, match="no domain 'atlantis'"):
        task_of(SUITE, ["poi", "atlantis"])


def test_huge_calls_and_calls_after_the_end_get_errors(tmp_path: Path) -> None:
    calls = iter([("find_places", {"city": "x" * 300_000}), ("finish", {"status": "failed", "message": "no"})])

    def reply(input: Any, tools: Any, tool_choice: Any, config: Any) -> ModelOutput:
        found = next(calls, None)
        late = ("find_places", {"city": "Ulm"}) if len(input) < 12 else None
        wanted = found or late
        output = ModelOutput.for_tool_call("mock", *wanted) if wanted else ModelOutput.from_content("mock", "Done.")
        output.usage = USED
        return output

    [log] = inspect_eval(
        task_of(SUITE, seed=1, limit=1),
        model=get_model("mockllm/model", custom_outputs=reply),
        solver=react(prompt=None, tools=[crosswind_tools()], submit=False),
        display="none",
        log_dir=str(tmp_path),
    )
    assert log.samples[0].error is None, log.samples[0].error
    assert log.samples[0].scores, "it has a verdict"


def test_a_model_that_breaks_leaves_its_sample_unscored(tmp_path: Path) -> None:
    def reply(input: Any, tools: Any, tool_choice: Any, config: Any) -> ModelOutput:
        raise RuntimeError("the provider is gone")

    [log] = inspect_eval(
        task_of(SUITE, seed=1, limit=2),
        model=get_model("mockllm/model", custom_outputs=reply),
        display="none",
        log_dir=str(tmp_path),
        fail_on_error=False,
    )
    for sample in log.samples:
        assert sample.error is not None
        assert not sample.scores, "what infrastructure broke is not scored 0"


def test_logs_of_other_tasks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CrosswindError, match="no such file"):
        import_log(tmp_path / "none.eval", tmp_path / "run")
    (tmp_path / "broken.eval").write_bytes(b"PK nothing")
    with pytest.raises(CrosswindError, match="cannot be read"):
        import_log(tmp_path / "broken.eval", tmp_path / "run")
