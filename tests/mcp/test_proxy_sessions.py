"""How sessions of the proxy end: by a kill, a cancellation, a client that leaves without a word; and what is left."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from crosswind.base.process_guard import ProcessGuard
from crosswind.core.types import Receipt, Step
from crosswind.mcp import proxy_http, wire
from crosswind.mcp.plan import Plan
from crosswind.mcp.proxy import Connection, Discretion, Journal, Keeper
from crosswind.mcp.proxy_http import HttpFront
from crosswind.runs import proxy_sessions
from crosswind.runs.store import EPISODES, CannotStore, Store, load_run
from tests.fake_mcp import TOOLS, Shop
from tests.mcp.test_proxy import HELLO, PING, SERVER, Desk, Http, Json, Process, call, plan, run


def until(wanted: Callable[[], Any], seconds: float = 20.0) -> Any:
    """Wait for something to be so."""
    end = time.monotonic() + seconds
    while not (found := wanted()):
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.02)
    return found


async def until_(wanted: Callable[[], Any], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not wanted():
        assert time.monotonic() < end, "it did not come to that"
        await asyncio.sleep(0.02)


def servers(of: int) -> list[int]:
    """The servers that a process started."""
    found = subprocess.run(["pgrep", "-P", str(of), "-f", "fake_mcp"], capture_output=True, check=False)
    return [int(pid) for pid in found.stdout.split()]


def running(group: int) -> bool:
    found = subprocess.run(["pgrep", "-g", str(group), "-r", "R,S,D"], capture_output=True, check=False)
    return bool(found.stdout.split())


def written(folder: Path) -> int:
    """Episodes in the file, each a whole line."""
    path = folder / EPISODES
    return sum(json.loads(line) is not None for line in path.read_text().splitlines()) if path.exists() else 0


def notes(folder: Path) -> list[Path]:
    return list((folder / proxy_sessions.FOLDER).iterdir()) if (folder / proxy_sessions.FOLDER).exists() else []


@pytest.fixture
def proxy() -> Iterator[Callable[..., Process]]:
    made: list[Process] = []

    def make(*flags: str, **more: Any) -> Process:
        made.append(Process(*flags, **more))
        return made[-1]

    yield make
    for one in made:
        if one.process.poll() is None:
            one.process.kill()
        one.end()


# ---------------------------------------------------------------- what is written


@pytest.mark.parametrize("kinds", [(), ("semantic_rename:3",)])
def test_no_secret_is_written_or_said(
    tmp_path: Path, kinds: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the environment, of the command, of the address: the client gets what the server says as it is."""
    keys = {"environment": "envkey-0123456789", "command": "cmdkey-0123456789", "name": "C-envkey-0123456789"}
    monkeypatch.setenv("SERVICE_TOKEN", keys["environment"])
    target = Discretion(["env", f"API_TOKEN={keys['command']}", "server", f"--password={keys['command']}"])

    async def work() -> None:
        shop = Shop()
        shop.tools[0] = {**shop.tools[0], "description": f"Give {keys['command']}."}
        async with Desk(plan(*kinds) if kinds else Plan(), shop) as desk:
            journal = Journal(tmp_path / "log", target, desk.relay.plan)
            journal.check()
            keeper = Keeper(journal, desk.relay, target.say, lambda: 1.0)
            desk.relay.note = keeper.note
            shown = await desk.tools()
            name, tool = next((n, t) for n, t in shown.items() if len(t["inputSchema"]["properties"]) == 1)
            param = next(iter(tool["inputSchema"]["properties"]))
            answer = await desk.call(name, **{param: keys["name"]})
            assert keys["environment"] in json.dumps(answer)
            assert keys["environment"] not in notes(tmp_path / "log")[0].read_text()
            await keeper.close(f"it was given {keys['command']}")
            target.say(f"the server at {keys['command']} says {keys['environment']}")

    run(work)
    whole = "".join(path.read_text() for path in (tmp_path / "log").rglob("*") if path.is_file())
    assert len(load_run(tmp_path / "log").records) == 1
    assert "[hidden]" in whole
    assert not [key for key in keys.values() if key in whole + capsys.readouterr().err]
    url = Discretion("http://bob:hunter2secret@127.0.0.1:9/mcp?token=qsecret123456")
    assert url.server == "http://127.0.0.1:9/mcp"
    assert url.secrets.out_of("hunter2secret qsecret123456") == "[hidden] [hidden]"


@pytest.mark.parametrize("kinds", [(), ("semantic_rename:3",)])
def test_half_a_character_in_a_listing_fails_no_call(tmp_path: Path, kinds: tuple[str, ...]) -> None:
    async def work() -> None:
        shop = Shop()
        shop.tools.append({"name": "odd\ud800", "description": "\ud800", "inputSchema": {"type": "object"}})
        async with Desk(plan(*kinds) if kinds else Plan(), shop) as desk:
            journal = Journal(tmp_path / "log", Discretion("a"), desk.relay.plan)
            journal.check()
            keeper = Keeper(journal, desk.relay, lambda _: None, lambda: 1.0)
            desk.relay.note = keeper.note
            shown = await desk.tools()
            name, tool = next((n, t) for n, t in shown.items() if len(t["inputSchema"]["properties"]) == 1)
            await desk.call(name, **dict.fromkeys(tool["inputSchema"]["properties"], "C1"))
            assert notes(tmp_path / "log")
            await keeper.close("")

    run(work)
    assert len(load_run(tmp_path / "log").records) == 1


# ---------------------------------------------------------------- clients that do not read


def test_a_client_that_does_not_read_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy_http, "WAITING", 1 << 20)
    monkeypatch.setattr(proxy_http, "READING", 0.05)
    said = wire.notification("notifications/message", {"data": "x" * 60_000})

    async def work() -> None:
        async with Sessions() as http:
            session = await http.begin()
            episode = http.front.episodes[session]
            async with http.asked(session, "GET"):
                await until_(lambda: episode.listening is not None)
                for _ in range(200):
                    await episode.send(wire.dump(said), said)
                    assert episode.waiting.held <= 1 << 20
                await until_(lambda: episode.listening is None)
            assert episode.waiting.held == 0
            for _ in range(200):  # nobody listens
                await episode.send(wire.dump(said), said)
            assert sum(size for _, size in episode.backlog) <= 1 << 20
            assert (await http.post(PING, Mcp_Session_Id=session))[0] == 200

    run(work)


def test_a_client_that_reads_gets_all_of_a_flood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy_http, "WAITING", 1 << 20)
    said = wire.notification("notifications/message", {"data": "x" * 60_000})

    async def work() -> None:
        async with Sessions() as http:
            session = await http.begin()
            episode = http.front.episodes[session]
            out = proxy_http.Outgoing(episode.waiting)
            episode.listening = out
            with episode.kept(out):
                sending = asyncio.gather(*(episode.send(wire.dump(said), {**said, "n": n}) for n in range(100)))
                got = [(await out.get() or {})["n"] for _ in range(100)]
                await sending
            assert got == list(range(100))

    run(work)


# ---------------------------------------------------------------- killed


def test_a_killed_proxy_leaves_its_record_and_no_server(proxy: Callable[..., Process], tmp_path: Path) -> None:
    folder = tmp_path / "log"
    flags = ("--perturb", "semantic_rename:5", "--log", str(folder))
    one = proxy(*flags, fault="deaf")
    one.begin()
    one.write({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    shown = [tool["name"] for tool in one.read()["result"]["tools"]]
    one.write(call(2, shown[1], customer_id="C1"), call(3, shown[1], customer_id="C2"))
    for _ in range(2):
        assert "result" in one.read()
    one.write(call(4, shown[-1]))  # takes long
    until(lambda: '"over":false' in notes(folder)[0].read_text().splitlines()[-1])
    (group,) = servers(one.process.pid)
    assert running(group)
    assert not load_run(folder).records, "the session is under way"
    one.process.kill()
    assert one.end() == -signal.SIGKILL
    until(lambda: not running(group))

    found = load_run(folder)
    (record,) = found.records
    assert any("cut short" in problem for problem in found.problems)
    assert (record.outcome, record.ended, record.agent) == ("error", "error", "t 1")
    assert "killed" in record.why
    assert [step["call"]["tool"] for step in record.steps] == [shown[1], shown[1], shown[-1]]
    assert record.steps[0]["inner"][0]["result"]["content"]["name"] == "Customer C1"
    assert record.steps[2]["result"]["error"]["code"] == "unanswered"
    assert record.steps[2]["inner"][0]["call"]["tool"] == "slow_call", "the server got it"
    assert record.kinds == ("semantic_rename",)
    assert [(r.kind, r.fired) for r in record.receipts] == [("semantic_rename", True)]
    assert record.usage.requests == 3
    assert written(folder) == 0

    for _ in range(2):
        again = proxy(*flags, fault="deaf")
        again.begin()
        again.process.kill()  # with no call made, nothing is left of it
        again.end()
        assert written(folder) == 1, "recorded by the next proxy, once"
        assert not notes(folder)
        assert load_run(folder).records == [record]


def test_a_proxy_killed_over_http_leaves_its_records(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    with over_http("--log", str(folder), fault="deaf") as (process, port):
        kept = []
        for n in range(2):
            status, headers, _ = post(port, HELLO)
            assert status == 200
            kept.append(headers["mcp-session-id"])
            answer = post(port, call(2, "get_customer", customer_id=f"C{n}"), Mcp_Session_Id=kept[-1])
            assert f"Customer C{n}" in answer[2]
        groups = servers(process.pid)
        assert len(groups) == 2
        process.kill()
        process.wait(10)
        until(lambda: not any(running(group) for group in groups))
    assert sorted(r.steps[0]["call"]["args"]["customer_id"] for r in load_run(folder).records) == ["C0", "C1"]


def test_a_guard_ends_what_is_left_and_is_started_again() -> None:
    sleeps = [sys.executable, "-c", "import time; time.sleep(600)"]
    guard = ProcessGuard()
    guard.start()
    left, kept = (subprocess.Popen(sleeps, start_new_session=True) for _ in range(2))
    try:
        guard.watch(left.pid)
        guard.watch(kept.pid)
        guard.forget(kept.pid)
        assert guard._process is not None
        guard._process.kill()
        guard._process.wait(10)
        guard.forget(0)
        guard.start()
        guard.close()
        assert left.wait(10) == -signal.SIGKILL
        assert kept.poll() is None
    finally:
        for one in (left, kept):
            one.kill()
            one.wait(10)
        assert guard._process is None


HEAD = proxy_sessions.SessionHead(
    task_id="mcp/a",
    domain="mcp",
    seed=0,
    condition="clean",
    layers=(),
    agent="t 1",
    policy="",
    tools=(),
)


def step(tool: str) -> Json:
    return {"call": {"tool": tool, "args": {}}, "result": {"content": 1}, "inner": [], "fired": [], "heard": []}


def noted(folder: Path) -> proxy_sessions.SessionLog:
    """A session with one call that is over, one under way and one that is torn."""
    made = proxy_sessions.SessionLog(folder, HEAD)
    receipts = (Receipt(kind="envelope", fired=True, step=1, seen=False),)
    made.note(1, step("under way"), (), at=0.5, over=False)
    made.note(2, step("soon over"), receipts, at=0.7, over=False)
    made.note(2, step("over"), receipts, at=1.5, over=True)
    os.write(made._fd, b'{"nth":3,"over":false,"at":2.0,"step":{"cal')
    return made


def test_what_is_left_is_recorded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "log"
    journal = Journal(folder, Discretion("a"), Plan())
    journal.check()
    held = noted(folder)
    journal.check()
    assert written(folder) == 0, "somebody holds it"
    held.close()
    append = Store.append

    def full(store: Store, record: Any) -> None:
        raise CannotStore("full")

    def cut(store: Store, record: Any) -> None:
        append(store, record)
        raise CannotStore("killed right then")

    for broken, there in ((full, 0), (cut, 1)):
        monkeypatch.setattr(Store, "append", broken)
        with pytest.raises(CannotStore):
            journal.check()
        assert (written(folder), len(notes(folder))) == (there, 1)
        assert [r.why for r in load_run(folder).records] == [proxy_sessions.KILLED]
    monkeypatch.undo()
    journal.check()
    assert (written(folder), notes(folder)) == (1, [])
    (record,) = load_run(folder).records
    assert [step["call"]["tool"] for step in record.steps] == ["over", "under way"]
    assert (record.usage.seconds, record.receipts[0].kind) == (1.5, "envelope")

    noted(folder).close()
    noted(folder).close()
    journal.check()
    assert written(folder) == 3, "equal sessions are sessions all the same"
    assert len({record.key for record in load_run(folder).records}) == 3


def test_a_file_without_a_session_does_no_harm(tmp_path: Path) -> None:
    journal = Journal(tmp_path, Discretion("a"), Plan())
    journal.check()
    (tmp_path / proxy_sessions.FOLDER).mkdir()
    for name, text in (("a", ""), ("b", '{"nth":1}'), ("c", json.dumps({"head": HEAD.model_dump()}))):
        (tmp_path / proxy_sessions.FOLDER / f"{name}.jsonl").write_text(text)
    journal.check()
    assert not load_run(tmp_path).records


def test_a_session_that_cannot_be_kept_is_recorded_at_its_end(proxy: Callable[..., Process], tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    Journal(tmp_path / "log", Discretion(SERVER), Plan()).check()
    (tmp_path / "log" / proxy_sessions.FOLDER).write_text("in the way")
    one = proxy("--log", str(tmp_path / "log"))
    one.begin()
    one.write(call(1, "get_customer", customer_id="C1"), call(2, "get_customer", customer_id="C2"))
    assert "result" in one.read()
    assert "result" in one.read()
    assert one.end() == 0
    assert one.said.count("cannot be kept") == 1
    assert [len(record.steps) for record in load_run(tmp_path / "log").records] == [2]


# ---------------------------------------------------------------- calls without an answer


class Silent(Shop):
    """Never answers a slow call."""

    def answer(self, message: Json) -> Json | None:
        if message.get("method") == "tools/call" and message["params"]["name"] == "slow_call":
            return None
        return super().answer(message)


def test_a_cancelled_call_is_cancelled_at_the_server_and_on_record() -> None:
    async def work() -> None:
        async with Desk(plan("envelope:1"), Silent()) as desk:
            await desk.tools()
            await desk.relay.from_client(wire.dump(call(70, "slow_call")))
            await until_(lambda: desk.channel.got[-1].get("params", {}).get("name") == "slow_call")
            asked = desk.channel.got[-1]["id"]
            cancelled = wire.notification("notifications/cancelled", {"requestId": 70})
            await desk.relay.from_client(wire.dump(cancelled))
            await until_(lambda: desk.channel.got[-1].get("method") == "notifications/cancelled")
            assert desk.channel.got[-1]["params"]["requestId"] == asked
            late = {"jsonrpc": "2.0", "id": asked, "result": {"content": []}}
            desk.channel.frames.put_nowait(json.dumps(late).encode())
            assert (await desk.ask("ping"))["result"] == {}, "the session goes on"
            assert not desk.heard, "a cancelled call is not answered"
            session = desk.relay.session
            assert session is not None
            (one,) = session.steps
            assert one.result.error is not None
            assert one.result.error.code == "cancelled"
            assert [inner.tool for inner, _ in one.inner] == ["slow_call"]
            await desk.relay.from_client(wire.dump(call(71, "slow_call")))
            await until_(lambda: desk.channel.got[-1].get("params", {}).get("name") == "slow_call")
            await desk.relay.close()
            codes = [step.result.error.code for step in session.steps if step.result.error]
            assert codes == ["cancelled", "unanswered"]

    run(work)


def test_a_call_that_was_put_off_is_on_record() -> None:
    class Asking(Shop):
        def _call(self, params: Json) -> Json | None:
            return {"resultType": "input_required", "requestState": "s1", "inputRequests": {}}

    async def work() -> None:
        async with Desk(Plan(), Asking(TOOLS), modern=True) as desk:
            assert (await desk.call("get_customer", customer_id="C1"))["resultType"] == "input_required"
            session = desk.relay.session
            assert session is not None
            assert not session.steps
            await desk.relay.close()
            assert [step.result.error.code for step in session.steps if step.result.error] == ["unanswered"]

    run(work)


def test_a_call_cancelled_at_once_never_happened() -> None:
    async def work() -> None:
        async with Desk(Plan(), Silent()) as desk:
            await desk.tools()
            before = len(desk.channel.got)
            await desk.relay.from_client(wire.dump(call(70, "slow_call")))
            await desk.relay.from_client(wire.dump(wire.notification("notifications/cancelled", {"requestId": 70})))
            assert (await desk.ask("ping"))["result"] == {}
            assert [m["method"] for m in desk.channel.got[before:]] == ["ping"]

    run(work)


@pytest.mark.parametrize("how", ["cancelled", "unanswered"])
def test_a_session_with_no_answer_leaves_a_record(proxy: Callable[..., Process], tmp_path: Path, how: str) -> None:
    one = proxy("--log", str(tmp_path / "log"), fault="slow")
    one.begin()
    one.write({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    one.read()
    one.write(call(2, "slow_call"))
    until(lambda: notes(tmp_path / "log"))
    if how == "cancelled":
        one.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}})
        until(lambda: '"over":true' in notes(tmp_path / "log")[0].read_text())
    assert one.end() == 0
    (record,) = load_run(tmp_path / "log").records
    assert (record.outcome, record.ended) == ("unjudged", "closed")
    assert [step["result"]["error"]["code"] for step in record.steps] == [how]
    assert record.steps[0]["inner"][0]["call"]["tool"] == "slow_call"
    assert not notes(tmp_path / "log")


# ---------------------------------------------------------------- HTTP


class Sessions(Http):
    """The proxy over HTTP, with a record and with times of its own."""

    def __init__(self, folder: Path | None = None, *, fault: str = "", **times: float) -> None:
        super().__init__()
        self.folder, self.times = folder, times
        self.server = [*SERVER, *(["--fault", fault] if fault else [])]
        self.said: list[str] = []

    async def __aenter__(self) -> Sessions:
        journal = Journal(self.folder, Discretion("a"), Plan()) if self.folder else None
        if journal is not None:
            journal.check()
        self.front = HttpFront(
            lambda: Connection(self.server, Plan(), journal, self.said.append), "secret", self.said.append, **self.times
        )
        await self.front.start(0)
        return self

    async def begin(self) -> str:
        """A new session."""
        status, headers, text = await self.post(HELLO)
        assert status == 200, text
        name: str = headers["mcp-session-id"]
        return name

    @contextlib.asynccontextmanager
    async def asked(self, session: str, method: str, body: bytes = b"") -> AsyncIterator[None]:
        """A request under way whose client leaves without waiting for the answer."""
        _, writer = await asyncio.open_connection("127.0.0.1", self.front.port)
        head = f"{method} /mcp HTTP/1.1\r\nHost: 127.0.0.1:{self.front.port}\r\nAuthorization: Bearer secret\r\n"
        head += f"Mcp-Session-Id: {session}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        try:
            yield
        finally:
            writer.close()
            await writer.wait_closed()


class over_http:
    """`crosswind proxy --http` as a process, and its port."""

    def __init__(self, *flags: str, fault: str = "") -> None:
        command = [*SERVER, *(["--fault", fault] if fault else [])]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "crosswind.cli.app", "proxy", "--http", "0", *flags, "--", *command],
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "CROSSWIND_PROXY_TOKEN": "secret"},
        )

    def __enter__(self) -> tuple[subprocess.Popen[bytes], int]:
        assert self.process.stderr
        for line in self.process.stderr:
            if b"listening on" in line:
                return self.process, int(line.decode().rpartition(":")[2].partition("/")[0])
        raise AssertionError("it does not listen")

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        assert self.process.stderr
        self.process.stderr.close()


def post(port: int, message: Json, **headers: str) -> tuple[int, Json, str]:
    http = Http()
    http.front = type("Front", (), {"port": port})()
    return asyncio.run(http.post(message, **headers))


def test_a_session_that_nobody_uses_ends_and_is_recorded(tmp_path: Path) -> None:
    async def work() -> None:
        async with Sessions(tmp_path / "log", idle=0.6) as http:
            left, used = await http.begin(), await http.begin()
            ask = call(2, "get_customer", customer_id="C1")
            assert "Customer C1" in (await http.post(ask, Mcp_Session_Id=left))[2]
            pids = {key: http.front.episodes[key].connection.channel.process.pid for key in (left, used)}  # type: ignore[union-attr]
            async with http.asked(used, "GET"):
                await until_(lambda: left not in http.front.episodes)
                assert used in http.front.episodes, "a client that listens is there"
                assert (await http.post(ask, Mcp_Session_Id=left))[0] == 404
                await until_(lambda: not running(pids[left]))
                assert running(pids[used])
            await until_(lambda: written(tmp_path / "log"))
            (record,) = load_run(tmp_path / "log").records
            assert (record.outcome, record.ended, len(record.steps)) == ("unjudged", "closed", 1)
            assert any("nobody used" in said for said in http.said)
        assert written(tmp_path / "log") == 1, "no call, no record"

    run(work)


@pytest.mark.parametrize("kept", [True, False], ids=["logged", "alone"])
def test_a_session_that_lasts_keeps_no_call_in_memory(tmp_path: Path, kept: bool) -> None:
    names = [f"C{n}" for n in range(30)]

    def steps() -> list[Step]:
        return [one for one in gc.get_objects() if type(one) is Step and one.call.tool == "get_customer"]

    before = steps()  # what earlier tests left; held, so that no other object can have their place in memory

    async def work() -> None:
        async with Sessions(tmp_path / "log" if kept else None) as http:
            session = await http.begin()
            for n, name in enumerate(names, 2):
                answer = await http.post(call(n, "get_customer", customer_id=name), Mcp_Session_Id=session)
                assert f"Customer {name}" in answer[2]
            live = http.front.episodes[session].connection.relay.session
            assert live is not None
            assert (live.taken, live.steps) == (len(names), [])
            assert not {*map(id, steps())} - {*map(id, before)}

    run(work)
    if kept:
        (record,) = load_run(tmp_path / "log").records
        assert [step["call"]["args"]["customer_id"] for step in record.steps] == names
        assert all(name in json.dumps(step["result"]) for name, step in zip(names, record.steps, strict=True))
        assert record.usage.requests == len(names)


def test_calls_after_the_disk_was_full_are_recorded_with_those_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note, noted_so_far = proxy_sessions.SessionLog.note, list[int]()

    def full(self: Any, *args: Any, **given: Any) -> None:
        noted_so_far.append(1)
        if len(noted_so_far) == 4:  # when the second call is over
            os.write(self._fd, b'{"nth":1,"over":tr')
            raise OSError(28, "No space left on device")
        note(self, *args, **given)

    monkeypatch.setattr(proxy_sessions.SessionLog, "note", full)

    async def work() -> None:
        async with Sessions(tmp_path / "log") as http:
            session = await http.begin()
            for n in range(2, 6):
                await http.post(call(n, "get_customer", customer_id=f"C{n}"), Mcp_Session_Id=session)
            assert sum("cannot be kept" in said for said in http.said) == 1

    run(work)
    (record,) = load_run(tmp_path / "log").records
    assert [step["call"]["args"]["customer_id"] for step in record.steps] == ["C2", "C3", "C4", "C5"]


def test_a_request_of_a_client_that_is_gone_keeps_no_session() -> None:
    async def work() -> None:
        async with Sessions(idle=0.4, fault="slow") as http:
            session = await http.begin()
            async with http.asked(session, "POST", wire.dump(call(2, "slow_call"))):
                await asyncio.sleep(0.8)
                assert session in http.front.episodes, "its client waits for an answer"
            await until_(lambda: session not in http.front.episodes)

    run(work)


def test_where_all_places_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosswind.mcp.proxy_http.SESSIONS", 2)

    async def work() -> None:
        async with Sessions(yields=0.5) as http:
            first, second = await http.begin(), await http.begin()
            status, headers, text = await http.post(HELLO)
            assert (status, json.loads(text)["error"]["code"]) == (503, wire.UPSTREAM_GONE)
            assert json.loads(text)["id"] == HELLO["id"]
            assert "2 sessions are open" in text
            assert "mcp-session-id" not in headers
            await asyncio.sleep(0.6)
            assert (await http.post(PING, Mcp_Session_Id=first))[0] == 200
            third = await http.begin()
            assert set(http.front.episodes) == {first, third}, "the one left alone longest gave way"
            assert (await http.post(PING, Mcp_Session_Id=second))[0] == 404

    run(work)


def test_a_session_ends_whole_though_the_client_leaves_meanwhile(tmp_path: Path) -> None:
    """Its end takes time where the server is deaf; neither a client that leaves nor our own end cuts it short."""

    async def work() -> None:
        async with Sessions(tmp_path / "log", fault="deaf") as http:
            session = await http.begin()
            await http.post(call(2, "get_customer", customer_id="C1"), Mcp_Session_Id=session)
            async with http.asked(session, "DELETE"):
                await until_(lambda: not http.front.episodes)
        assert [record.ended for record in load_run(tmp_path / "log").records] == ["closed"]
        assert not notes(tmp_path / "log")

    run(work)


def test_a_call_cancelled_over_http() -> None:
    async def work() -> None:
        async with Sessions(fault="slow") as http:
            session = await http.begin()
            await http.post({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, Mcp_Session_Id=session)
            waiting = asyncio.create_task(http.post(call(3, "slow_call"), Mcp_Session_Id=session))
            episode = http.front.episodes[session]
            relay, over = episode.connection.relay, list[Any]()
            relay.note = lambda live, _, done: over.extend(live.steps[-1:] if done else ())
            await until_(lambda: relay._awaited)
            cancel = wire.notification("notifications/cancelled", {"requestId": 3})
            assert (await http.post(cancel, Mcp_Session_Id=session))[0] == 202
            status, _, text = await asyncio.wait_for(waiting, 10)
            assert (status, text) == (200, ""), "the stream ends without an answer"
            await until_(lambda: over)
            assert over[0].result.error is not None
            assert over[0].result.error.code == "cancelled"

    run(work)


def test_bodies_over_http_are_as_large_as_frames() -> None:
    async def work() -> None:
        async with Http() as http:
            for size, status in ((5 * 10**6, 200), (wire.LIMIT - 100, 200), (wire.LIMIT, 413), (2 * wire.LIMIT, 413)):
                answer = await http.post({**PING, "params": {"a": "x" * size}})
                assert answer[0] == status
                message = json.loads(answer[2])
                assert "result" in message or str(wire.LIMIT) in message["error"]["message"]
            reader, writer = await asyncio.open_connection("127.0.0.1", http.front.port)
            head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{http.front.port}\r\nAuthorization: Bearer secret\r\n"
            writer.write(f"{head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
            writer.write(b"1000000\r\n" + b" " * 2**24 + b"\r\n1\r\nx\r\n")
            assert b" 413 " in (await asyncio.wait_for(reader.read(), 10)).splitlines()[0]
            writer.close()

    run(work)


@pytest.mark.parametrize(
    ("status", "head"),
    [(403, "Host: evil.example.org"), (401, "Host: 127.0.0.1:PORT"),
     (401, "Host: 127.0.0.1:PORT\r\nAuthorization: Bearer wrong")],
)  # fmt: skip
def test_nothing_is_read_of_those_who_may_not_come_in(status: int, head: str) -> None:
    async def work() -> None:
        async with Http() as http:
            reader, writer = await asyncio.open_connection("127.0.0.1", http.front.port)
            head_ = head.replace("PORT", str(http.front.port))
            writer.write(f"POST /mcp HTTP/1.1\r\n{head_}\r\nContent-Length: 4000000\r\n\r\n{{".encode())
            answer = await asyncio.wait_for(reader.read(), 5)
            assert answer.startswith(f"HTTP/1.1 {status} ".encode())
            writer.close()

    run(work)


@pytest.mark.parametrize("token", ["", "s", "secre", "secret2", "SECRET", "secret secret"])
def test_a_part_of_the_token_is_not_enough(token: str) -> None:
    async def work() -> None:
        async with Http() as http:
            assert (await http.post(PING, Authorization=f"Bearer {token}"))[0] == 401
            assert (await http.post(PING, Authorization="bearer secret"))[0] == 200

    run(work)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_proxy_over_http(number: int) -> None:
    with over_http() as (process, port):
        assert post(port, HELLO)[0] == 200
        process.send_signal(number)
        assert process.wait(20) == 128 + number


def test_no_link_and_no_pipe_among_sessions_is_opened(tmp_path: Path) -> None:
    """A folder that somebody else prepared neither hangs us nor has us write elsewhere."""
    mine = tmp_path / "mine.txt"
    mine.write_text("kept\n")
    folder = tmp_path / "log"
    (folder / "sessions").mkdir(parents=True)
    os.mkfifo(folder / "sessions" / "1.jsonl")
    (folder / "sessions" / "2.jsonl").symlink_to(mine)
    (folder / "sessions" / "3.jsonl").symlink_to("/dev/zero")
    assert proxy_sessions.interrupted_sessions(folder) == []
    other = tmp_path / "other"
    other.mkdir()
    (other / "sessions").symlink_to(tmp_path)
    given: dict[str, Any] = {"task_id": "mcp/a", "domain": "mcp", "seed": 0, "condition": "clean", "layers": ()}
    head = proxy_sessions.SessionHead(**given, agent="t", policy="", tools=())
    with pytest.raises(OSError, match="not followed"):
        proxy_sessions.SessionLog(other, head)
    assert proxy_sessions.interrupted_sessions(other) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "mine.txt", "other"]
    assert mine.read_text() == "kept\n"
