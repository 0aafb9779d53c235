"""Episodes over MCP: what a client sees of one, how it is reached, and agents that are commands."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from crosswind.base.errors import CrosswindError
from crosswind.cli import serve
from crosswind.core.draw import Drawn, draw
from crosswind.core.registry import domains, perturbations
from crosswind.core.session import Session
from crosswind.core.types import FINISH, SAY, Finish, ToolCall, Trajectory
from crosswind.episodes.play import judge, play, result_text
from crosswind.episodes.recipe import Choice
from crosswind.episodes.record import Record
from crosswind.episodes.schedule import Episode, under
from crosswind.episodes.suite import Condition, Suite
from crosswind.mcp import command, http_server, wire
from crosswind.mcp.command import ANSWER, CommandAgents
from crosswind.mcp.http_server import HttpServer
from crosswind.mcp.serve import USER, EpisodeServer, Served, is_error, serve_lines
from crosswind.mcp.wire import BODY, HANDSHAKE, MODERN, VERSION_KEY, Lines
from crosswind.models.source import AgentSettings
from crosswind.models.spec import open_agent
from crosswind.runs.runner import Limits, play_episode, run
from crosswind.runs.store import load_run
from examples.scripted_model import next_words

ROOT = Path(__file__).parents[2]
POI = domains["poi"]
CLI = (sys.executable, "-c", "from crosswind.cli.app import main; main()")


def drawn_of(*kinds: str, family: str = "book_visit", seed: int = 3) -> Drawn:
    return draw(POI, POI.task(family, seed), kinds, 0)


class Client:
    """A client without a wire."""

    def __init__(self, desk: EpisodeServer) -> None:
        self.desk, self.n = desk, 0
        self.told: list[dict[str, Any]] = []
        self.frames: list[bytes] = []
        desk.listen(self.told.append)

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        self.n += 1
        message = {"jsonrpc": "2.0", "id": self.n, "method": method, "params": params or {}}
        answer = await self.desk.respond(message, self.told.append)
        assert answer is not None
        assert answer["id"] == self.n
        self.frames.append(wire.dump(answer))
        return answer

    async def call(self, name: str, arguments: Any = None) -> dict[str, Any]:
        answer = await self.ask("tools/call", {"name": name, "arguments": arguments or {}})
        result: dict[str, Any] = answer["result"]
        return result

    async def tools(self) -> list[str]:
        return [tool["name"] for tool in (await self.ask("tools/list"))["result"]["tools"]]


def served(drawn: Drawn, act: Callable[[Client], Awaitable[None]]) -> Trajectory:
    """An episode whose agent is a client that does something and leaves."""

    async def main() -> Trajectory:
        ready: asyncio.Future[EpisodeServer] = asyncio.get_running_loop().create_future()
        source = Served(ready.set_result)
        playing = asyncio.ensure_future(play(drawn, source.make(drawn), source.name, ending=source.ending))
        acting = asyncio.ensure_future(act(Client(await ready)))
        await asyncio.wait({playing, acting}, return_when=asyncio.FIRST_COMPLETED)
        if acting.done():
            acting.result()  # what it raised
            source.leave()
        trajectory = await playing
        source.end()
        await acting
        return trajectory

    return asyncio.run(asyncio.wait_for(main(), 30))


# ---------------------------------------------------------------- what a client sees


@pytest.mark.parametrize("kind", ["", *perturbations.names()])
def test_the_certified_way_leads_through_the_server(kind: str) -> None:
    """Every obstacle is the same over MCP: the oracle's own calls, made by a client, end in a pass."""
    condition = Condition(name=kind or "clean", stack=(Choice(kind=kind),) if kind else ())
    found = (POI.task(family, seed) for seed in range(3) for family in POI.families)
    drawn = next(d for task in found if (d := under(POI, condition, task, 0)))
    gold = drawn.certificate.gold

    async def act(client: Client) -> None:
        for step in gold.steps:
            if step.call.tool == SAY:
                await client.call(FINISH, {"status": "done", "message": step.call.args["text"]})
            else:
                await client.call(step.call.tool, dict(step.call.args))
        await client.call(FINISH, gold.finish.args())

    trajectory = served(drawn, act)
    assert judge(trajectory, POI).outcome == "pass"
    assert all(r.fired and r.seen for r in trajectory.receipts)


def test_both_eras_are_answered() -> None:
    async def act(client: Client) -> None:
        for asked, given in (("2025-06-18", "2025-06-18"), ("1999-01-01", HANDSHAKE[-1]), (None, HANDSHAKE[-1])):
            answer = await client.ask("initialize", {"protocolVersion": asked})
            assert answer["result"]["protocolVersion"] == given
        assert answer["result"]["capabilities"]["tools"] == {"listChanged": True}
        assert "ticket desk" in answer["result"]["instructions"]
        assert USER in answer["result"]["instructions"]
        modern = {"_meta": {VERSION_KEY: MODERN}}
        answer = await client.ask("server/discover", modern)
        assert MODERN in answer["result"]["supportedVersions"]
        assert answer["result"]["resultType"] == "complete"
        listed = (await client.ask("tools/list", modern))["result"]
        assert (listed["resultType"], listed["ttlMs"], listed["cacheScope"]) == ("complete", 0, "private")
        assert "resultType" not in (await client.ask("tools/list"))["result"]
        answer = await client.ask("tools/list", {"_meta": {VERSION_KEY: "2099-01-01"}})
        assert answer["error"]["code"] == -32022
        assert MODERN in answer["error"]["data"]["supported"]

    served(drawn_of(), act)


def test_the_request_is_a_prompt_and_a_resource() -> None:
    drawn = drawn_of()

    async def act(client: Client) -> None:
        query = drawn.certificate.task.brief.query
        assert (await client.ask("prompts/list"))["result"]["prompts"][0]["name"] == "request"
        prompt = (await client.ask("prompts/get", {"name": "request"}))["result"]
        assert prompt["messages"][0]["content"]["text"] == query
        uris = [r["uri"] for r in (await client.ask("resources/list"))["result"]["resources"]]
        texts = [(await client.ask("resources/read", {"uri": uri}))["result"]["contents"][0]["text"] for uri in uris]
        assert texts[0] == query
        assert "ticket desk" in texts[1]
        assert (await client.ask("resources/read", {"uri": "file:///etc/passwd"}))["error"]["code"] == -32002
        assert (await client.ask("prompts/get", {"name": "other"}))["error"]["code"] == wire.INVALID_PARAMS
        assert (await client.ask("sampling/createMessage"))["error"]["code"] == wire.METHOD_NOT_FOUND

    served(drawn, act)


@pytest.mark.parametrize("arguments", [[1], "text", 7, {"city": {"a": [None]}}, {"city": "x" * 100_000}])
def test_calls_that_make_no_sense_are_answered_and_count(arguments: Any) -> None:
    async def act(client: Client) -> None:
        assert (await client.call("no_such_tool", arguments))["isError"] is True
        assert (await client.call("find_places", arguments))["isError"] is True
        assert (await client.call("ask_user", arguments))["isError"] is True
        assert (await client.call(FINISH, arguments))["isError"] is True
        for params in ({}, {"name": 3}):
            assert (await client.ask("tools/call", params))["error"]["code"] == wire.INVALID_PARAMS

    assert len(served(drawn_of(), act).steps) == 4


def test_tools_that_change_midway_are_announced() -> None:
    drawn = drawn_of("retired_midway")
    calls = drawn.layers[0].turns()[0]  # before the one with which they change

    async def act(client: Client) -> None:
        before = await client.tools()
        for _ in range(calls):
            await client.call("ask_user", {"question": "Which city?"})
        assert client.told == []
        assert await client.tools() == before
        await client.call("ask_user", {"question": "Which city?"})
        assert [note["method"] for note in client.told] == ["notifications/tools/list_changed"]
        assert await client.tools() != before

    served(drawn, act)


def test_a_subscription_is_acknowledged_and_told() -> None:
    drawn = drawn_of("retired_midway")
    told: list[dict[str, Any]] = []

    async def act(client: Client) -> None:
        params = {"_meta": {VERSION_KEY: MODERN}, "notifications": {"toolsListChanged": True}}
        message = {"jsonrpc": "2.0", "id": "s", "method": "subscriptions/listen", "params": params}
        listening = asyncio.ensure_future(client.desk.respond(message, told.append))
        await asyncio.sleep(0)
        for _ in range(drawn.layers[0].turns()[0] + 1):
            await client.call("ask_user", {"question": "Which city?"})
        await client.call(FINISH, {"status": "cannot", "reason": "not_found"})
        ended = await listening
        assert ended is not None
        assert ended["id"] == "s"

    served(drawn, act)
    assert [note["method"].rpartition("/")[2] for note in told] == ["acknowledged", "list_changed"]
    assert all(note["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": "s"} for note in told)


@pytest.mark.parametrize("kind", ["semantic_rename", "identity_erasure", "foreign_interface", "tool_merge"])
def test_no_hidden_name_leaks(kind: str) -> None:
    drawn = drawn_of(kind)
    gold = drawn.certificate.gold
    frames: list[bytes] = []

    async def act(client: Client) -> None:
        for method in ("initialize", "server/discover", "tools/list", "prompts/list", "resources/list"):
            await client.ask(method)
        await client.ask("resources/read", {"uri": "task://policy"})
        for step in gold.steps:
            await client.call(step.call.tool, dict(step.call.args))
        frames.extend(client.frames)

    served(drawn, act)
    hidden = {spec.name for spec in POI.world_class.specs} - set(gold.session.ever)
    words = {name for name in hidden if "_" in name}  # others are plain words, such as pay
    assert words
    assert not [name for name in words if any(name.encode() in frame for frame in frames)]


def test_all_that_is_added_is_the_same_with_and_without_obstacles() -> None:
    said: list[Any] = []

    async def act(client: Client) -> None:
        answer = (await client.ask("initialize"))["result"]
        names = await client.tools()
        said.append((answer["serverInfo"], answer["instructions"], answer["capabilities"], names[-2:]))

    served(drawn_of(), act)
    served(drawn_of("transient_error"), act)
    assert said[0] == said[1]
    assert "crosswind" not in json.dumps(said[0])


def test_the_user_is_heard_and_answers_the_last_words() -> None:
    drawn = drawn_of("changed_mind")
    gold = drawn.certificate.gold
    change = drawn.certificate.task.changes[0]
    heard: list[dict[str, Any]] = []

    async def act(client: Client) -> None:
        for step in gold.steps:
            heard.append(await client.call(step.call.tool, dict(step.call.args)))
            if step.heard:
                return

    served(drawn, act)
    assert heard[-1]["content"][-1]["text"] == f"The user says: {change.words}"
    assert not any("The user says" in text["text"] for result in heard for text in result["content"][:1])

    async def end_at_once(client: Client) -> None:
        result = await client.call(FINISH, {"status": "done", "answer": [{"kind": "id", "value": "T1234567"}]})
        assert result["content"] == [{"type": "text", "text": f"The user says: {change.words}"}]
        result = await client.call(FINISH, {"status": "done", "message": "It is done."})
        assert "over" in result["content"][0]["text"]
        assert (await client.call("ask_user", {"question": "Which city?"}))["isError"] is True

    assert served(drawn, end_at_once).finish == Finish(status="done", message="It is done.")


def test_errors_are_marked_as_such() -> None:
    assert is_error('{"error": "refused", "message": "no"}')
    assert not is_error('{"error": "refused", "message": "no", "id": 3}')
    assert not is_error('{"error": broken')
    assert not is_error("error")


def test_the_budget_ends_the_episode_for_the_client_too() -> None:
    drawn = drawn_of()
    answers: list[dict[str, Any]] = []

    async def act(client: Client) -> None:
        while not answers or "over" not in answers[-1]["content"][0]["text"]:
            answers.append(await client.call("ask_user", {"question": "Which city?"}))

    trajectory = served(drawn, act)
    assert trajectory.ended == "budget"
    assert len(trajectory.steps) == drawn.certificate.budget


# ---------------------------------------------------------------- how it is reached


class Echo:
    """A server that answers with what it was asked."""

    def __init__(self) -> None:
        self.over = asyncio.Event()
        self.listeners: list[Any] = []

    async def respond(self, message: dict[str, Any], send: Any) -> dict[str, Any] | None:
        return wire.result(message["id"], {"method": message["method"]}) if "id" in message else None

    def listen(self, send: Any) -> Callable[[], None]:
        self.listeners.append(send)
        return lambda: self.listeners.remove(send)


async def exchange(port: int, data: bytes, *, half: bool = False) -> bytes:
    """Send bytes and read until the server closes, or for a while."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    if half:
        writer.write_eof()
    try:
        return await asyncio.wait_for(reader.read(), 5)
    finally:
        writer.close()


def http(path: str, body: bytes = b"", *, method: str = "POST", **headers: str) -> bytes:
    given = {"Host": "127.0.0.1:PORT", "Content-Type": "application/json", "Content-Length": str(len(body))}
    given |= {"Connection": "close"} | {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body


PING = wire.dump(wire.request(1, "ping"))


@pytest.mark.parametrize(
    ("status", "request_"),
    [
        (200, http("/TOKEN/mcp", PING)),
        (200, http("/mcp", PING, Authorization="Bearer TOKEN")),
        (200, http("/TOKEN/mcp", PING, Origin="http://127.0.0.1:PORT")),
        (200, http("/TOKEN/mcp", method="DELETE")),
        (202, http("/TOKEN/mcp", wire.dump(wire.notification("notifications/initialized")))),
        (400, http("/TOKEN/mcp", b"{")),
        (400, http("/TOKEN/mcp", b"[" * 100_000)),
        (400, http("/TOKEN/mcp", b"[]")),
        (400, b"NONSENSE\r\n\r\n"),
        (400, http("/TOKEN/mcp", PING, Content_Length="-1")),
        (400, http("/TOKEN/mcp", PING, Content_Length="9" * 5000)),
        (400, http("/TOKEN/mcp", PING, Transfer_Encoding="chunked")),
        (400, http("/TOKEN/mcp", PING).replace(b"Host:", b"Host: a\r\nHost:")),
        (401, http("/mcp", PING)),
        (401, http("/wrong/mcp", PING)),
        (401, http("/", PING, Authorization="Basic TOKEN")),
        (403, http("/TOKEN/mcp", PING, Host="evil.example:PORT")),
        (403, http("/TOKEN/mcp", PING, Origin="http://evil.example")),
        (403, http("/TOKEN/mcp", PING, Origin="null")),
        (404, http("/TOKEN/other", PING)),
        (405, http("/TOKEN/mcp", method="OPTIONS")),
        (406, http("/TOKEN/mcp", method="GET")),
        (413, http("/TOKEN/mcp", PING, Content_Length=str(BODY + 1))),
        (415, http("/TOKEN/mcp", PING, Content_Type="text/plain")),
        (431, http("/TOKEN/mcp", PING, X_Long="x" * 40_000)),
    ],
)
def test_http_takes_only_what_it_should(status: int, request_: bytes) -> None:
    async def main() -> bytes:
        server = HttpServer()
        await server.start()
        token = server.add(Echo()).split("/")[3].encode()
        port = str(server.port).encode()
        answer = await exchange(server.port, request_.replace(b"TOKEN", token).replace(b"PORT", port))
        await server.aclose()
        return answer

    assert asyncio.run(main()).startswith(f"HTTP/1.1 {status} ".encode())


def test_http_listens_on_this_machine_alone_and_forgets_episodes() -> None:
    async def main() -> None:
        server = HttpServer()
        await server.start()
        assert server._server is not None
        assert server._server.sockets[0].getsockname()[0] == "127.0.0.1"
        url = server.add(Echo())
        request = http(url.partition(str(server.port))[2], PING).replace(b"PORT", str(server.port).encode())
        assert b"200 OK" in await exchange(server.port, request)
        server.remove(url)
        assert b"401 " in await exchange(server.port, request)
        await server.aclose()

    asyncio.run(main())


def test_chunks_and_several_requests_on_one_connection() -> None:
    async def main() -> bytes:
        server = HttpServer()
        await server.start()
        path = server.add(Echo()).partition(str(server.port))[2]
        first = http(path, PING, Connection="keep-alive")
        chunked = http(path, b"", Transfer_Encoding="chunked").replace(b"Content-Length: 0\r\n", b"")
        chunked += b"5\r\n" + PING[:5] + b"\r\n" + f"{len(PING) - 5:x}".encode() + b"\r\n" + PING[5:] + b"\r\n0\r\n\r\n"
        answer = await exchange(server.port, (first + chunked).replace(b"PORT", str(server.port).encode()))
        await server.aclose()
        return answer

    assert asyncio.run(main()).count(b'{"method":"ping"}') == 2


def test_slow_and_broken_clients_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "IDLE", 0.3)
    monkeypatch.setattr(http_server, "LINGER", 0.5)
    said: list[Any] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))
        server = HttpServer()
        await server.start()
        path = server.add(Echo()).partition(str(server.port))[2]
        port = str(server.port).encode()
        request = http(path, PING, Connection="keep-alive").replace(b"PORT", port)
        assert await exchange(server.port, b"") == b""
        assert await exchange(server.port, request[:40]) == b""
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        for byte in request:  # one at a time, for longer than a head may take
            if writer.is_closing() or reader.at_eof():
                break
            writer.write(bytes([byte]))
            await asyncio.sleep(0.01)
        assert await reader.read() == b""
        writer.close()
        assert b" 408 " in (await exchange(server.port, request[:-5])).splitlines()[0]
        chunked = http("/wrong/mcp", b"", Transfer_Encoding="chunked").replace(b"Content-Length: 0\r\n", b"")
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(chunked.replace(b"PORT", port))
        assert b" 401 " in await reader.readline()
        writer.write(b"this is no chunk\r\n" * 9)
        await asyncio.wait_for(reader.read(), 5)
        writer.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        for _ in range(2):  # a client that is there may ask again
            writer.write(request)
            assert b"200 OK" in await reader.readuntil(b"ping")
        await server.aclose()
        assert b"HTTP" not in await reader.read()
        writer.close()

    asyncio.run(asyncio.wait_for(main(), 20))
    assert not said


def test_streams_tell_of_changes_and_end_with_the_episode() -> None:
    async def main() -> bytes:
        server, echo = HttpServer(), Echo()
        await server.start()
        path = server.add(echo).partition(str(server.port))[2]
        request = http(path, method="GET", Accept="text/event-stream").replace(b"PORT", str(server.port).encode())
        streaming = asyncio.ensure_future(exchange(server.port, request))
        while not echo.listeners:
            await asyncio.sleep(0.01)
        echo.listeners[0](wire.notification("notifications/tools/list_changed"))
        echo.over.set()
        answer = await streaming
        assert echo.listeners == []
        echo.over.clear()
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(request)
        await reader.readuntil(b"\r\n\r\n")
        writer.close()  # a client that leaves
        while echo.listeners:
            await asyncio.sleep(0.01)
        await server.aclose()
        return answer

    answer = asyncio.run(asyncio.wait_for(main(), 20))
    assert b"text/event-stream" in answer
    assert b'data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n' in answer


def test_bad_lines_are_answered_and_the_rest_goes_on() -> None:
    async def main() -> list[dict[str, Any]]:
        ends = asyncio.get_running_loop().create_future()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await serve_lines(Echo(), Lines(reader, writer, limit=1000))
            ends.set_result(None)

        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        lines = [b"nonsense", b"[]", b"\xff", b'{"jsonrpc":"2.0","id":[],"method":"x"}', b"x" * 5000, PING]
        data = b"\n".join(lines) + b"\n"
        answer = await exchange(server.sockets[0].getsockname()[1], data, half=True)
        await ends
        server.close()
        return [json.loads(line) for line in answer.splitlines()]

    answers = asyncio.run(asyncio.wait_for(main(), 20))
    assert [a.get("error", {}).get("code") for a in answers] == [-32700, -32600, -32700, -32600, -32600, None]


def test_serve_over_standard_input(tmp_path: Path) -> None:
    """A whole episode: listed, perturbed, ended by its answer, judged and stored."""
    messages = [
        wire.request(1, "initialize", {"protocolVersion": "2025-06-18"}),
        wire.notification("notifications/initialized"),
        wire.request(2, "tools/list"),
        wire.request(3, "tools/call", {"name": FINISH, "arguments": {"status": "done", "message": "I do not know."}}),
    ]
    out = tmp_path / "run"
    options = ("--domain", "poi", "--task-seed", "3", "--perturb", "semantic_rename:2", "--out", str(out))
    said = subprocess.run(
        [*CLI, "serve", "mcp", *options],
        input=b"".join(wire.dump(m) + b"\n" for m in messages),
        capture_output=True,
        timeout=120,
        check=True,
    )
    answers = [json.loads(line) for line in said.stdout.splitlines()]
    assert [a["id"] for a in answers] == [1, 2, 3]
    assert "final_answer" not in str(answers[1])
    assert b"request: Which theatre" in said.stderr
    assert b"verdict: fail" in said.stderr
    assert b"semantic_rename" not in said.stdout
    record = load_run(out).records[0]
    assert (record.outcome, record.agent, record.kinds) == ("fail", "mcp", ("semantic_rename",))
    assert record.final == "I do not know."


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"perturb": ["nonsense"]}, "no perturbation"),
        ({"perturb": ["typos:9"]}, "1 to 5"),
        ({"family": "nonsense"}, "no family"),
        ({"recipe": "nonsense"}, "no recipe"),
        ({"recipe": "mild", "perturb": ["typos"]}, "both"),
    ],
)
def test_serve_refuses_what_it_cannot_draw(given: dict[str, Any], complaint: str) -> None:
    options: dict[str, Any] = {"task_seed": 0, "family": "", "perturb": [], "recipe": "", "seed": 0}
    with pytest.raises(CrosswindError, match=complaint):
        serve.mcp(domain="poi", **(options | given))


# ---------------------------------------------------------------- agents that are commands

AGENT = f"""
import json, os, subprocess, sys, time, urllib.request
sys.path.insert(0, {str(ROOT / "examples")!r})

def post(url, method, params):
    body = json.dumps({{"jsonrpc": "2.0", "id": 1, "method": method, "params": params}}).encode()
    request = urllib.request.Request(url, body, {{"Content-Type": "application/json"}})
    return json.load(urllib.request.build_opener(urllib.request.ProxyHandler({{}})).open(request))["result"]

class Pipe:
    def __init__(self, config):
        entry = json.load(open(config))["mcpServers"]["tools"]
        self.child = subprocess.Popen([entry["command"], *entry["args"]], stdin=-1, stdout=-1, env={{}})

    def __call__(self, method, params):
        frame = {{"jsonrpc": "2.0", "id": 1, "method": method, "params": params}}
        self.child.stdin.write(json.dumps(frame).encode() + b"\\n")
        self.child.stdin.flush()
        return json.loads(self.child.stdout.readline())["result"]

def solve(ask, query):
    from scripted_model import GiveUp, solve
    way = solve(query)
    try:
        call = next(way)
        while True:
            result = ask("tools/call", {{"name": call[0], "arguments": call[1]}})
            text = result["content"][0]["text"]
            if result["isError"]:
                return "I cannot do this: " + text
            call = way.send(json.loads(text) if text[:1] in "[{{" else text)
    except StopIteration as stop:
        return stop.value
    except GiveUp as reason:
        return f"I cannot do this: {{reason}}."

def call(url):
    post(url, "tools/call", {{"name": "ask_user", "arguments": {{"question": "Which city?"}}}})

url = os.environ["CROSSWIND_MCP_URL"]
"""


def agent_of(tmp_path: Path, body: str, places: str = "{query}", **settings: Any) -> CommandAgents:
    """A command that is a script: what every one of them may use, and then `body`."""
    script = tmp_path / "agent.py"
    script.write_text(AGENT + body, encoding="utf-8")
    source = open_agent(f"cmd:{sys.executable} {script} {places}", AgentSettings(**settings))
    assert isinstance(source, CommandAgents)
    return source


def played(source: CommandAgents, drawn: Drawn | None = None, seconds: float | None = None) -> Record:
    drawn = drawn or drawn_of()

    async def main() -> Record:
        try:
            episode = Episode("clean", drawn.base.id, drawn)
            return await play_episode(episode, source, seed=0, seconds=seconds, pauses=(0.0,))
        finally:
            await source.aclose()

    return asyncio.run(asyncio.wait_for(main(), 60))


SOLVE = "print(solve(lambda *a: post(url, *a), sys.argv[1]))"


def test_a_command_solves_an_episode(tmp_path: Path) -> None:
    record = played(agent_of(tmp_path, SOLVE))
    assert record.outcome == "pass"
    assert len(record.steps) == record.gold_steps
    assert record.agent.startswith("cmd:")


def test_a_command_ends_by_finish_and_leaves_by_itself(tmp_path: Path) -> None:
    body = """
answer = solve(lambda *a: post(url, *a), sys.argv[1])
entry = {"kind": "id", "value": answer.rstrip(".").split()[-1]}
arguments = {"status": "done", "answer": [entry], "message": answer}
result = post(url, "tools/call", {"name": "finish", "arguments": arguments})
open("left", "w").write(result["content"][0]["text"])
print("These words come too late.")
"""
    record = played(agent_of(tmp_path, body.replace('"left"', repr(str(tmp_path / "left")))))
    assert (record.outcome, record.ended) == ("pass", "answer"), record.checks
    assert record.finish is not None
    assert (tmp_path / "left").read_text() == "The task is over. Thank you."


@pytest.mark.parametrize(
    ("places", "body"),
    [
        ("--a={query} {url}", "print(solve(lambda *a: post(sys.argv[2], *a), sys.argv[1][4:]))"),
        ("{query_file}", "print(solve(lambda *a: post(url, *a), open(sys.argv[1]).read()))"),
        ("{prompt}", "print(solve(lambda *a: post(url, *a), sys.argv[1].split('\\n')[-1]))"),
        ("", "print(solve(lambda *a: post(url, *a), sys.stdin.read().split('\\n')[-1]))"),
        ("{query} {out}", "open(sys.argv[2], 'w').write(solve(lambda *a: post(url, *a), sys.argv[1])); print('log')"),
        (
            "{query} {config}",
            "url = json.load(open(sys.argv[2]))['mcpServers']['tools']['url']; " + SOLVE,
        ),
        ("{query} {stdio_config}", "print(solve(Pipe(sys.argv[2]), sys.argv[1]))"),
        ("{query} {policy_file}", "assert 'ticket desk' in open(sys.argv[2]).read(); " + SOLVE),
        ("{query} {policy}", "assert 'ask_user' in sys.argv[2]; " + SOLVE),
    ],
)
def test_every_placeholder_is_filled(tmp_path: Path, places: str, body: str) -> None:
    assert played(agent_of(tmp_path, body, places)).outcome == "pass"


def test_a_command_reports_its_tokens_or_they_are_unknown(tmp_path: Path) -> None:
    write = 'open(sys.argv[2], "w").write(\'{"input_tokens": 900, "output_tokens": 40, "model": "m"}\'); '
    record = played(agent_of(tmp_path, write + SOLVE, "{query} {usage}"))
    usage = record.usage
    assert (usage.input_tokens, usage.output_tokens, usage.requests) == (900, 40, len(record.steps) + 1)
    by_finish = write + "post(url, 'tools/call', {'name': 'finish', 'arguments': {'status': 'cannot'}}); time.sleep(9)"
    assert played(agent_of(tmp_path, by_finish, "{query} {usage}")).usage.tokens == 940
    assert played(agent_of(tmp_path, SOLVE)).usage.tokens is None
    with pytest.warns(UserWarning, match="wrote 'many' to {usage}"):
        said = played(agent_of(tmp_path, "open(sys.argv[2], 'w').write('many'); " + SOLVE, "{query} {usage}"))
    assert said.usage.tokens is None


def test_a_question_at_the_end_starts_the_command_again(tmp_path: Path) -> None:
    body = """
open("starts", "a").write("x")
print("Which city do you mean?" if sys.argv[1].count("User: ") < 2 else sys.argv[1].splitlines()[-1])
"""
    source = agent_of(tmp_path, body.replace('"starts"', repr(str(tmp_path / "starts"))))
    record = played(source, drawn_of(family="best_price_asked"))
    assert (tmp_path / "starts").read_text() == "xx"
    assert record.steps[0]["call"]["tool"] == SAY
    assert record.final.startswith("User: The city is ")


def test_a_command_that_fails_before_a_call_is_broken(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    record = played(agent_of(tmp_path, f"open({str(starts)!r}, 'a').write('x'); sys.exit('no key: sk-{'a' * 40}')"))
    assert (record.outcome, record.ended) == ("error", "error")
    assert "exit code 1" in record.why
    assert "no key" in record.why
    assert "aaaa" not in record.why
    assert starts.read_text() == "xx"  # it was tried again


def test_a_command_that_fails_later_has_failed(tmp_path: Path) -> None:
    record = played(agent_of(tmp_path, "call(url); print('An answer that does not count.'); 1 / 0"))
    assert (record.outcome, record.ended, record.final, len(record.steps)) == ("fail", "exception", "", 1)
    assert record.why.startswith("the command ended with exit code 1: ZeroDivisionError")
    assert "Traceback" in record.why


@pytest.mark.parametrize("how", ["sys.exit(75)", "os.kill(os.getpid(), 9)"])
def test_a_command_may_say_that_its_provider_failed(tmp_path: Path, how: str) -> None:
    assert played(agent_of(tmp_path, f"call(url); {how}")).outcome == "error"


def test_a_command_that_falls_silent_is_ended(tmp_path: Path) -> None:
    record = played(agent_of(tmp_path, "time.sleep(60)", timeout=0.5))
    assert record.outcome == "error"
    assert "did not end for 0.5 seconds" in record.why
    record = played(agent_of(tmp_path, "call(url); time.sleep(60)", timeout=4.0))
    assert (record.outcome, record.ended) == ("fail", "exception")
    assert "did not end" in record.why


def test_an_empty_answer_is_the_agents(tmp_path: Path) -> None:
    assert played(agent_of(tmp_path, "pass")).outcome == "fail"


def test_what_a_command_prints_is_bounded(tmp_path: Path) -> None:
    body = "sys.stdout.write('x' * 10_000_000 + '\\udce9nd'.encode('utf-8', 'surrogateescape').decode('latin-1'))"
    record = played(agent_of(tmp_path, body))
    assert record.final.endswith("nd")
    assert len(record.final) <= ANSWER
    record = played(agent_of(tmp_path, "os.symlink('/etc/passwd', sys.argv[1])", "{out}"))
    assert record.final == ""
    record = played(agent_of(tmp_path, "os.mkfifo(sys.argv[1])", "{out}"))
    assert record.final == ""


def gone(pid: int) -> bool:
    """Has a process ended? It may still be there as its parent's memory of it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


CHILD = "child = subprocess.Popen(['sleep', '60']); open(PIDS, 'w').write(f'{os.getpid()} {child.pid}'); "


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        ("print('done')", None),  # it leaves something behind
        ("\nwhile True: call(url)", None),  # the budget ends it
        ("call(url); time.sleep(60)", 4.0),  # the deadline does
        ("import signal; signal.signal(15, signal.SIG_IGN); call(url); time.sleep(60)", 4.0),
    ],
)
def test_no_process_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, seconds: float | None) -> None:
    monkeypatch.setattr(command, "GRACE", 0.2)
    monkeypatch.setattr(command, "DRAIN", 0.2)
    pids = tmp_path / "pids"
    record = played(agent_of(tmp_path, CHILD.replace("PIDS", repr(str(pids))) + body), seconds=seconds)
    assert record.outcome == "fail"
    for pid in map(int, pids.read_text().split()):
        wait_for(lambda pid=pid: gone(pid))  # type: ignore[misc]


def test_no_process_is_left_when_the_run_is_killed(tmp_path: Path) -> None:
    pids, script = tmp_path / "pids", tmp_path / "agent.py"
    script.write_text(AGENT + CHILD.replace("PIDS", repr(str(pids))) + "call(url); time.sleep(60)")
    agent = f"cmd:{sys.executable} {script} {{query}}"
    with subprocess.Popen(
        [*CLI, "run", "quick", "--agent", agent, "--out", str(tmp_path / "run"), "--no-progress"]
    ) as run_:
        wait_for(lambda: pids.exists() and len(pids.read_text().split()) == 2)
        run_.send_signal(signal.SIGKILL)
    for pid in map(int, pids.read_text().split()):
        wait_for(lambda pid=pid: gone(pid))  # type: ignore[misc]


def test_files_of_an_episode_are_private_and_go(tmp_path: Path) -> None:
    body = "out = os.path.dirname(sys.argv[1]); print(out, oct(os.stat(out).st_mode)[-3:])"
    folder, mode = played(agent_of(tmp_path, body, "{config}")).final.split()
    assert mode == "700"
    assert not os.path.exists(folder)
    assert not any(word in folder for word in ("poi", "book", "clean"))


def test_commands_run_side_by_side(tmp_path: Path) -> None:
    shifted = Condition(name="semantic_rename", tasks=2, stack=(Choice(kind="semantic_rename"),))
    suite = Suite(name="small", domains=("poi",), levels=(1,), tasks=3, conditions=(shifted,))
    source = agent_of(tmp_path, SOLVE)

    async def main() -> None:
        try:
            await run(suite, source, tmp_path / "run", concurrency=3, limits=Limits(episode=30), pauses=())
        finally:
            await source.aclose()

    asyncio.run(asyncio.wait_for(main(), 60))
    records = load_run(tmp_path / "run").records
    assert {r.outcome for r in records if r.clean} == {"pass"}
    assert not [r for r in records if r.outcome == "error"]
    assert len(records) == 5


def test_what_needs_no_http_works_without_the_extra() -> None:
    code = """
import sys
sys.modules.update(dict.fromkeys(("httpx2", "starlette", "starlette.requests", "uvicorn"), None))
from crosswind.cli.app import main
main()
"""
    commands = {
        ("proxy", "--http", "0", "--", "cat"): "--http needs the package 'starlette'; pip install '",
        ("proxy", "--url", "http://127.0.0.1:9/mcp"): "a server behind a URL needs the package 'httpx2'",
        ("serve", "mcp", "--domain", "poi", "--http"): "--http needs the package 'starlette'",
        ("doctor", "cmd:true {url}"): "over HTTP needs the package 'starlette'",
        ("proxy", "--", "cat"): "",
        ("doctor", "cmd:true {stdio_config}"): "",
    }
    for words, says in commands.items():
        done = subprocess.run(
            [sys.executable, "-c", code, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == (2 if says else 0), (words, done)
        assert says in done.stderr
        assert len(done.stderr.strip().splitlines()) == bool(says)


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("cmd:", "has nothing after the colon"),
        ("cmd: ", "no command given"),
        ("cmd:no-such-command-here {query}", "no command"),
        ("cmd:env {querry}", "query"),
        ("cmd:env 'unbalanced", "cannot be split"),
    ],
)
def test_commands_that_cannot_work_are_refused(spec: str, complaint: str) -> None:
    with pytest.raises(CrosswindError, match=complaint):
        open_agent(spec)


def test_a_commands_name_holds_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "very-secret-indeed")
    source = open_agent(f"cmd:env A=very-secret-indeed B=sk-{'b' * 30} {{query}}")
    assert "secret" not in source.name + str(source.settings)
    assert "bbbb" not in source.name + str(source.settings)


def test_nothing_in_a_task_becomes_another_argument(tmp_path: Path) -> None:
    drawn = drawn_of()
    task = drawn.certificate.task.briefed(query='a "b" $(touch x) ; {url} --flag\n`id`')
    source = agent_of(tmp_path, "print(json.dumps(sys.argv[1:]))", "-- {query} end")

    async def main() -> str:
        from crosswind.models.toolset import Toolset

        try:
            return str(await source.run(task.brief.query, Toolset()))
        finally:
            await source.aclose()

    assert json.loads(asyncio.run(main())) == ["--", task.brief.query, "end"]


# ---------------------------------------------------------------- the model of the examples


@pytest.mark.parametrize("family", [name for name, family in POI.families.items() if family.level < 3])
def test_the_scripted_model_solves_what_it_says(family: str) -> None:
    for seed in range(10):
        session = Session.of(POI, POI.task(family, seed))
        messages: list[dict[str, Any]] = [{"role": "user", "content": session.query()}]
        tools = {tool.name for tool in session.tools()}
        while not isinstance(said := next_words(messages, tools), str):
            text = result_text(session.call(ToolCall(*said)))
            wrapped = (text, [{"type": "text", "text": text}], json.dumps([{"type": "text", "text": text}]))
            messages.append({"role": "tool", "content": wrapped[len(messages) % 3]})  # as frameworks do
        assert POI.judge(session.task, session.world.state, said).outcome == "pass", session.query()


def test_the_scripted_model_gives_up_without_its_tools() -> None:
    query = POI.task("best_price", 0).brief.query
    assert "no tool find_places" in str(next_words([{"role": "user", "content": query}], {"search"}))
    messages = [{"role": "user", "content": query}, {"role": "tool", "content": '{"rows": []}'}]
    assert "I cannot" in str(next_words(messages, {"find_places"}))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_episode_over_lines_ends_when_it_is_asked_to(number: signal.Signals, tmp_path: Path) -> None:
    """Though the client keeps its side open; the verdict is said and the episode stored."""
    command = [sys.executable, "-m", "crosswind", "serve", "mcp", "--domain", "poi", "--out", str(tmp_path / "run")]
    with subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-1, text=True) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        while not process.stderr.readline().startswith("request:"):
            pass
        process.send_signal(number)
        began = time.monotonic()
        assert process.wait(30) == 0
        assert time.monotonic() - began < 8
        assert "verdict: fail" in process.stderr.read()
    assert len(load_run(tmp_path / "run").records) == 1


@pytest.mark.parametrize("command", [("serve", "mcp", "--domain", "poi"), ("proxy", "--", "cat")])
def test_a_client_that_can_never_say_anything_is_one_that_has_left(command: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "crosswind", *command],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
