"""The WebSocket server for OpenEnv, with a plain client, and with OpenEnv's own where it is installed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import crosswind as cw
from bench.frameworks.scripted import replies_of
from crosswind.base.errors import CrosswindError

pytest.importorskip("websockets", reason="needs the extra openenv")
pytest.importorskip("uvicorn", reason="needs the extra openenv")

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from crosswind.frameworks.openenv_server import LARGEST, OpenEnvServer


@asynccontextmanager
async def serving(**options: Any) -> AsyncIterator[OpenEnvServer]:
    server = OpenEnvServer(**options)
    task = asyncio.ensure_future(server.serve())
    while not server.server.started:
        await asyncio.sleep(0.01)
    try:
        yield server
    finally:
        server.server.should_exit = True
        await task


async def asked(socket: ClientConnection, message: Any) -> dict[str, Any]:
    await socket.send(message if isinstance(message, (str, bytes)) else json.dumps(message))
    answer: dict[str, Any] = json.loads(await socket.recv())
    return answer


def connected(talk: Callable[[ClientConnection], Coroutine[Any, Any, None]], **options: Any) -> None:
    async def run() -> None:
        async with serving(**options) as server, connect(f"ws://127.0.0.1:{server.port}/ws", max_size=None) as socket:
            await talk(socket)

    asyncio.run(run())


def action(reply: tuple[str, list[tuple[str, str, Any]]]) -> dict[str, Any]:
    words, calls = reply
    return {"text": words, "calls": [{"id": id, "tool": tool, "args": args} for id, tool, args in calls]}


@pytest.mark.parametrize("agent", ["oracle", "refuser"])
def test_an_episode_ends_with_the_verdict_of_a_run(agent: str) -> None:
    request = {"domain": "poi", "family": "hold_visit", "perturb": ["retired_midway"], "seed": 1}
    played = cw.play(agent, cw.draw("poi", "hold_visit", ["retired_midway"], seed=1), ending="finish")

    async def talk(socket: ClientConnection) -> None:
        answer = await asked(socket, {"type": "reset", "data": request})
        menus = [{tool["function"]["name"] for tool in answer["data"]["observation"]["tools"]}]
        for reply in replies_of(played):
            answer = await asked(socket, {"type": "step", "data": action(reply)})
            assert answer["type"] == "observation"
            menus.append({tool["function"]["name"] for tool in answer["data"]["observation"]["tools"]})
        assert answer["data"]["done"] is True
        assert answer["data"]["reward"] == float(played.passed)
        assert answer["data"]["metadata"]["outcome"] == played.outcome
        if agent == "oracle":
            assert any(menu and menu != menus[0] for menu in menus)
        late = await asked(socket, {"type": "step", "data": {"text": "?"}})
        assert (late["type"], late["data"]["code"]) == ("error", "EXECUTION_ERROR")
        state = await asked(socket, {"type": "state"})
        assert state["data"]["step_count"] == len(replies_of(played))

    connected(talk)


BAD = [
    ("not json", "INVALID_JSON"),
    ('{"type": "reset", "data": {"seed": NaN}}', "INVALID_JSON"),
    (b"\x00\x01", "INVALID_JSON"),
    ("[" * 5000, "INVALID_JSON"),
    ({"type": "mcp"}, "UNKNOWN_TYPE"),
    ([1, 2], "UNKNOWN_TYPE"),
    ({"type": "reset", "data": []}, "VALIDATION_ERROR"),
    ({"type": "reset", "data": {"domain": "atlantis"}}, "VALIDATION_ERROR"),
    ({"type": "reset", "data": {"suite": "quick", "domain": "poi,atlantis"}}, "VALIDATION_ERROR"),
    ({"type": "reset", "data": {"suite": "quick", "trials": 10**6}}, "VALIDATION_ERROR"),
    ({"type": "reset", "data": {"suite": "quick", "number": 10**6}}, "VALIDATION_ERROR"),
    ({"type": "step", "data": {"text": "hello"}}, "EXECUTION_ERROR"),
]


def test_messages_that_make_no_sense_get_errors_and_the_connection_stays() -> None:
    async def talk(socket: ClientConnection) -> None:
        for message, code in BAD:
            answer = await asked(socket, message)
            assert (answer["type"], answer["data"]["code"]) == ("error", code), message
        await asked(socket, {"type": "reset", "data": {"domain": "poi", "seed": 1}})
        wrongs: list[dict[str, Any]] = [{"calls": "find"}, {"calls": [{"args": {}}]}, {"text": 3}, {"colour": "red"}]
        for data in wrongs:
            answer = await asked(socket, {"type": "step", "data": data})
            assert answer["data"]["code"] == "VALIDATION_ERROR", data
        wrong = {"calls": [{"id": "1", "tool": "find_places", "args": "no object"}]}
        answer = await asked(socket, {"type": "step", "data": wrong})
        assert "bad_arguments" in answer["data"]["observation"]["messages"][0]["content"]

    connected(talk)


def test_clients_name_no_files_of_the_server(tmp_path: Path) -> None:
    (tmp_path / "there.yaml").write_text("name: there\n")
    domain = {"domain": "poi", "split": "train"}

    async def talk(socket: ClientConnection) -> None:
        said = set()
        for name in (f"{tmp_path}/there.yaml", f"{tmp_path}/gone.yaml", f"{tmp_path}/\0.yaml"):
            for asking in ({"suite": name}, {"recipe": name, **domain}):
                answer = await asked(socket, {"type": "reset", "data": asking})
                assert answer["data"]["code"] == "VALIDATION_ERROR"
                said.add(answer["data"]["message"].replace(repr(name), "it").partition(";")[0])
        assert said == {"no suite it", "no recipe it"}
        for asking in ({"suite": "quick@1"}, {"recipe": "mild", **domain}):
            assert (await asked(socket, {"type": "reset", "data": asking}))["type"] == "observation"

    connected(talk)


def test_a_long_draw_holds_up_no_other_session() -> None:
    """Neither its steps nor its resets, which take turns with the draws."""

    async def run() -> None:
        async with serving() as server:
            url = f"ws://127.0.0.1:{server.port}/ws"
            async with connect(url) as slow, connect(url) as other:
                await slow.send(json.dumps({"type": "reset", "data": {"suite": "quick", "number": 9, "seed": 77}}))
                waiting = asyncio.ensure_future(slow.recv())
                answer = await asked(other, {"type": "reset", "data": {"domain": "poi", "seed": 1}})
                assert answer["type"] == "observation"
                answer = await asked(other, {"type": "step", "data": {"text": "That is it."}})
                assert answer["data"]["done"] is True
                assert not waiting.done()
                assert json.loads(await waiting)["type"] == "observation"

    asyncio.run(run())


def test_steps_without_waiting_and_after_the_end() -> None:
    async def talk(socket: ClientConnection) -> None:
        await asked(socket, {"type": "reset", "data": {"domain": "poi", "seed": 1}})
        call = {"type": "step", "data": {"calls": [{"id": "1", "tool": "find_places", "args": {}}]}}
        for _ in range(2):
            await socket.send(json.dumps(call))
        answers = [json.loads(await socket.recv()) for _ in range(2)]
        assert [answer["type"] for answer in answers] == ["observation", "observation"]  # one after the other
        assert (await asked(socket, {"type": "state"}))["data"]["step_count"] == 2
        ended = await asked(socket, {"type": "step", "data": {"text": "That is it."}})
        assert (ended["data"]["done"], ended["data"]["reward"]) == (True, 0.0)
        for _ in range(2):
            late = await asked(socket, call)
            assert (late["type"], late["data"]["code"]) == ("error", "EXECUTION_ERROR")
            assert "send reset" in late["data"]["message"]
        again = await asked(socket, {"type": "reset", "data": {"domain": "poi", "seed": 1}})
        assert again["data"]["done"] is False

    connected(talk)


def test_huge_messages_and_silence_close_the_connection() -> None:
    async def talk(socket: ClientConnection) -> None:
        await socket.send("x" * (LARGEST + 1))
        with pytest.raises(ConnectionClosed):
            await socket.recv()

    async def silent(socket: ClientConnection) -> None:
        assert json.loads(await socket.recv())["data"]["code"] == "SESSION_ERROR"
        with pytest.raises(ConnectionClosed):
            await socket.recv()

    connected(talk)
    connected(silent, idle=0.05)


def test_a_client_that_leaves_frees_its_place() -> None:
    async def run() -> None:
        async with serving(sessions=1) as server:
            url = f"ws://127.0.0.1:{server.port}/ws"
            async with connect(url) as first:
                await asked(first, {"type": "reset", "data": {"domain": "poi", "seed": 1}})
                async with connect(url) as second:
                    assert json.loads(await second.recv())["data"]["code"] == "CAPACITY_REACHED"
                first.transport.abort()
            for _ in range(200):
                if server.open == 0:
                    break
                await asyncio.sleep(0.01)
            async with connect(url) as third:
                answer = await asked(third, {"type": "reset", "data": {"domain": "poi", "seed": 1}})
                assert answer["type"] == "observation"

    asyncio.run(run())


def test_beyond_this_machine_a_token_is_needed() -> None:
    with pytest.raises(CrosswindError, match="token"):
        OpenEnvServer(host="0.0.0.0")

    async def run() -> None:
        async with serving(token="open-sesame") as server:
            url = f"ws://127.0.0.1:{server.port}/ws"
            for address in (url, f"{url}?token=wrong"):
                with pytest.raises(InvalidStatus):
                    await connect(address)
            bearer = {"Authorization": "Bearer open-sesame"}
            for address, headers in ((url, bearer), (f"{url}?token=open-sesame", {})):
                async with connect(address, additional_headers=headers) as socket:
                    assert (await asked(socket, {"type": "state"}))["type"] == "state"
        async with serving() as server:
            with pytest.raises(InvalidStatus):
                await connect(f"ws://127.0.0.1:{server.port}/ws", origin="http://elsewhere.example")

    asyncio.run(run())


def test_openenvs_own_client_and_harness() -> None:
    pytest.importorskip("openenv", reason="OpenEnv is not installed; .ci/run installs it")
    from openenv.core.generic_client import GenericEnvClient
    from openenv.core.harness import HarnessRunLimits, MCPHarnessAdapter, ModelStepResult
    from openenv.core.llm_client import LLMResponse, ToolCall

    from crosswind.frameworks.openenv_session import CrosswindHarness, CrosswindSessions

    request = {"domain": "poi", "family": "hold_visit", "perturb": ["retired_midway"], "seed": 1}
    played = cw.play("oracle", cw.draw("poi", "hold_visit", ["retired_midway"], seed=1), ending="finish")

    async def over_the_wire() -> float:
        async with serving() as server, GenericEnvClient(base_url=f"http://127.0.0.1:{server.port}") as client:
            result = await client.reset(**request)
            for reply in replies_of(played):
                result = await client.step(action(reply))
            return float(result.reward)

    assert asyncio.run(over_the_wire()) == float(played.passed)
    for harness in (MCPHarnessAdapter(), CrosswindHarness()):
        session, replies = CrosswindSessions().create(request), iter(replies_of(played))
        menus: set[tuple[str, ...]] = set()

        def sample(
            messages: Any, tools: Any, sampling: Any, replies: Any = replies, menus: Any = menus
        ) -> ModelStepResult:
            menus.add(tuple(sorted(tool.name for tool in tools)))
            words, calls = next(replies)
            made = [ToolCall(id=id, name=tool, args=args) for id, tool, args in calls]
            return ModelStepResult(response=LLMResponse(content=words, tool_calls=made))

        rollout = harness.run_white_box(sample, session, HarnessRunLimits(max_turns=40))
        assert session.verify(rollout.messages).env_reward == float(played.passed)
        assert len(menus) == 2, "the tool that is retired midway must be gone for the harness"
        session.close()
