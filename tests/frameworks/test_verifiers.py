"""The adapter for verifiers against its real classes; `.ci/run` does not install them, bench/frameworks does more."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("verifiers", reason="verifiers is not installed; pip install . packages/crosswind_vf")
httpx = pytest.importorskip("httpx")
crosswind_vf = pytest.importorskip("crosswind_vf")

pytestmark = pytest.mark.filterwarnings("default")  # of verifiers
DONE = {"role": "assistant", "content": "That is it."}
BROKEN: list[tuple[int, Any]] = [
    (500, b"overloaded"),
    (404, b""),
    (200, b"no json"),
    (200, b"[]"),
    (200, b'{"choices": []}'),
    (200, b'{"choices": [{"message": null}]}'),
    (200, b'{"choices": [{"message": {"tool_calls": [{"id": "1"}]}}]}'),
    (200, b'{"choices": [{"message": {"tool_calls": 3}}]}'),
    (200, b'{"choices": [{"message": {"content": ["x"]}}]}'),
]


def task(number: int = 0) -> Any:
    config = crosswind_vf.CrosswindConfig(suite="quick", domain="poi", num_tasks=number + 1)
    return list(crosswind_vf.CrosswindTaskset(config).load())[number]


def launched(answers: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch, number: int = 0) -> Any:
    """Play a task with an endpoint that answers so; what the harness left in the trace."""
    client = httpx.AsyncClient
    transport = httpx.MockTransport(answers)
    monkeypatch.setattr(httpx, "AsyncClient", lambda **named: client(transport=transport, **named))
    trace = SimpleNamespace(state=crosswind_vf.CrosswindState(), info={})
    harness = crosswind_vf.CrosswindHarness(crosswind_vf.CrosswindHarnessConfig())
    launch = harness.launch(SimpleNamespace(model="m"), trace, None, "http://x", "key", None, task(number).data)
    asyncio.run(launch)
    return trace


@pytest.mark.parametrize(("status", "body"), BROKEN, ids=range(len(BROKEN)))
def test_an_endpoint_that_misbehaves_is_a_fault_and_no_score(
    status: int, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(crosswind_vf.ProviderError):
        launched(lambda _: httpx.Response(status, content=body), monkeypatch)


def test_an_endpoint_that_is_gone_is_a_fault_and_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_: Any) -> Any:
        raise httpx.ConnectError("refused")

    with pytest.raises(crosswind_vf.ProviderError, match="refused"):
        launched(gone, monkeypatch)


def test_wrong_and_huge_calls_reach_the_world_which_counts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [("no_such_tool", "{}"), ("find_places", "{not json"), ("find_places", json.dumps({"city": "x" * 300_000}))]
    made = [
        {"id": str(n), "type": "function", "function": {"name": name, "arguments": args}}
        for n, (name, args) in enumerate(calls)
    ]
    said = iter([{"role": "assistant", "content": None, "tool_calls": made}, *[DONE] * 4])
    seen: list[Any] = []

    def answer(request: Any) -> Any:
        seen.append(json.loads(request.content))
        return httpx.Response(200, json={"choices": [{"message": next(said)}]})

    trace = launched(answer, monkeypatch)
    told = [json.loads(message["content"])["error"] for message in seen[1]["messages"] if message["role"] == "tool"]
    assert len(told) == 3
    assert told[0] == "unknown_tool"
    assert told[1] == "bad_arguments"
    assert (trace.state.outcome, trace.state.steps) == ("fail", 3)


def test_a_task_is_the_draw_of_a_run_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert task(3).data.ticket == task(3).data.ticket
    assert task(3).key != task(2).key


def test_by_default_an_episode_plays_in_this_process_and_needs_no_account() -> None:
    from verifiers.v1.utils.loaders import environment_class, resolve_env_config

    assert environment_class("crosswind-vf") is crosswind_vf.CrosswindEnv
    config = resolve_env_config({"taskset": {"id": "crosswind-vf", "suite": "quick"}})
    assert config.agent.runtime.type == "subprocess"
    other = resolve_env_config({"taskset": {"id": "crosswind-vf"}, "agent": {"runtime": {"type": "docker"}}})
    assert other.agent.runtime.type == "docker"
