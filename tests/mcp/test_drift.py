"""Drift of a server's interface: what is paired and how surely, what breaks clients, what is passed over and kept."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from crosswind.base.errors import CrosswindError
from crosswind.cli.app import app
from crosswind.mcp import drift, snapshots

Json = dict[str, Any]


def tool(name: str, doc: str, required: tuple[str, ...] = (), **params: Json) -> Json:
    schema = {"type": "object", "properties": params, "required": list(required)}
    return {"name": name, "description": doc, "inputSchema": schema}


def text(doc: str = "", **more: Any) -> Json:
    return {"type": "string", **({"description": doc} if doc else {}), **more}


def words(was: Json, now: Json) -> list[str]:
    return [change.what for change in drift.drifted([was], [now])]


def test_parameters_are_paired_by_what_is_said_of_them_and_not_by_the_alphabet() -> None:
    was = tool("send", "Send.", a=text("Who gets it."), b=text("What it says."))
    now = tool("send", "Send.", x=text("What it says."), y=text("Who gets it."))
    found = drift.drifted([was], [now])
    assert [change.what.partition(" (")[0] for change in found] == [
        "the parameter a is called y now",
        "the parameter b is called x now",
    ]
    assert all(change.confidence is not None and 0.6 <= change.confidence < 1 for change in found)
    assert all("% sure" in change.what for change in found)


def test_where_nothing_tells_candidates_apart_none_is_named() -> None:
    was = tool("send", "Send.", a=text(), b=text())
    now = tool("send", "Send.", x=text(), y=text())
    assert words(was, now) == [
        "the parameter a is gone",
        "the parameter b is gone",
        "the optional parameter x is new",
        "the optional parameter y is new",
    ]


def test_tools_are_paired_though_a_parameter_changed() -> None:
    doc = "Search the orders of a customer by date."
    was = tool("search_orders", doc, customer=text(), date=text())
    now = [tool("orders_search", doc, customer=text(), day=text()), tool("ping", "See whether it is there.")]
    found = drift.drifted([was], now)
    assert [(change.sort, change.tool) for change in found if change.sort in ("renamed", "added", "removed")] == [
        ("added", "ping"),
        ("renamed", "search_orders"),
    ]


def test_a_description_that_is_the_same_is_not_said_to_differ() -> None:
    was = tool("send", "Send.", a=text("Who gets it.", title="A"))
    now = tool("send", "Send.", recipient=text("Who gets it.", title="Recipient"))
    assert [change.sort for change in drift.drifted([was], [now])] == ["parameter"]


def gives(**keys: Any) -> Json:
    rows = {"type": "array", "items": {"type": "object", "properties": keys, "required": ["id"]}}
    return {**tool("list", "List."), "outputSchema": {"type": "object", "properties": {"rows": rows}}}


def test_keys_of_results_are_named_with_their_place() -> None:
    was = gives(id=text(), price=text("What it costs."))
    now = gives(id={"type": "integer"}, cost=text("What it costs."))
    assert [what.partition(" (")[0] for what in words(was, now)] == [
        "the key rows[].price is called rows[].cost now",
        'the key rows[].id was {"type": "string"} and is {"type": "integer"}',
    ]


BASE = tool("a", "Does it.", ("x",), x=text(enum=["p", "q"]), n={"type": "integer", "maximum": 5})


@pytest.mark.parametrize(
    ("was", "now", "breaking"),
    [
        (BASE, {**BASE, "description": "Does that."}, [False]),
        (BASE, tool("a", "Does it.", ("x",), x=text(enum=["p", "q", "r"]), n=BASE["inputSchema"]["properties"]["n"]),
         [False]),
        (BASE, tool("a", "Does it.", ("x",), x=text(enum=["p"]), n=BASE["inputSchema"]["properties"]["n"]), [True]),
        (BASE, tool("a", "Does it.", (), x=text(enum=["p", "q"]), n={"type": "number", "maximum": 9}), [False, False]),
        (BASE, tool("a", "Does it.", ("x", "n"), x=text(enum=["p", "q"]), n={"type": "integer", "maximum": 4}),
         [True, True]),
        (BASE, tool("a", "Does it.", ("x",), x=text(enum=["p", "q"])), [True]),
        ({**BASE, "annotations": {"readOnlyHint": True}}, BASE, [True]),
        (BASE, {**BASE, "annotations": {"readOnlyHint": True}}, [False]),
        (BASE, {**BASE, "annotations": {"idempotentHint": False}}, [False]),
        (gives(id=text()), gives(id=text(), more=text()), [False]),
        (gives(id=text(), more=text()), gives(id=text()), [True]),
        (gives(id=text()), tool("list", "List."), [True]),
    ],
)  # fmt: skip
def test_a_change_says_whether_it_may_break_a_client(was: Json, now: Json, breaking: list[bool]) -> None:
    assert [change.breaking for change in drift.drifted([was], [now])] == breaking


def taken(**more: Any) -> snapshots.Snapshot:
    about = {"serverInfo": {"name": "s", "version": "1"}, "instructions": more.pop("instructions", "Be kind.")}
    return snapshots.snapshot("s", about, [BASE], more.get("prompts", ()), more.get("resources", ()))


def test_prompts_resources_and_instructions_are_compared() -> None:
    asked: Json = {"name": "sum_up", "description": "Sum up.", "arguments": [{"name": "topic"}]}
    lies: Json = {"uri": "file:///a", "name": "a", "mimeType": "text/plain"}
    was = taken(prompts=[asked, {"name": "old"}], resources=[lies])
    now = taken(
        prompts=[{**asked, "arguments": [{"name": "topic", "required": True}]}],
        resources=[{**lies, "mimeType": "text/html"}, {"uriTemplate": "file:///{x}", "name": "t"}],
        instructions="Be brief.",
    )
    assert [(c.sort, c.tool, c.breaking) for c in snapshots.compared(was, now)] == [
        ("prompt", "old", True),
        ("prompt", "sum_up", True),
        ("resource", "file:///a", True),
        ("resource", "file:///{x}", False),
        ("instructions", "the server", False),
    ]
    older = was.model_copy(update={"prompts": None, "resources": None, "instructions": None})
    assert snapshots.compared(older, now) == [], "an older snapshot knows none of these"


SERVER = """
import json, sys
what = json.loads(sys.argv[1])
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    about = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "prompts": {}, "resources": {}},
             "serverInfo": {"name": "s", "version": what["version"]}, "instructions": what.get("instructions", "")}
    lists = {"initialize": about, "tools/list": {"tools": what["tools"]}, "prompts/list": {"prompts": what["prompts"]},
             "resources/list": {"resources": []}}
    value = lists.get(message["method"])
    said = {"error": {"code": -32601, "message": "none"}} if value is None else {"result": value}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}), flush=True)
"""


def learn(*args: str | Path) -> Any:
    return CliRunner().invoke(app, ["learn", *map(str, args)])


def test_a_snapshot_is_taken_anew_and_keeps_its_history(tmp_path: Path) -> None:
    script, out = tmp_path / "server.py", tmp_path / "s.yaml"
    script.write_text(SERVER)
    kept = tmp_path / "s.snapshot.json"

    def server(version: str, tools: list[Json]) -> list[str]:
        what = json.dumps({"version": version, "tools": tools, "prompts": [{"name": "p" + version}]})
        return ["--", sys.executable, str(script), what]

    assert learn("--out", out, "--name", "s", *server("1", [BASE])).exit_code == 0
    other = {**BASE, "description": "Does that."}
    check = ("--check", kept)
    found = learn(*check, *server("2", [other]))
    assert found.exit_code == 1
    assert "compatible description: a: the description was" in found.output
    assert "BREAKING   prompt: p1:" in found.output
    assert "3 changes in 1 tool, 1 of them breaking." in found.output
    passed = learn(*check, "--ignore", "prompt:p*", "--ignore", "desc*", *server("2", [other]))
    assert (passed.exit_code, passed.output) == (0, "No change in 1 tool (3 ignored).\n")
    assert learn(*check, "--breaking", "--ignore", "prompt", *server("2", [other])).exit_code == 0
    unknown = learn(*check, "--ignore", "promt", *server("2", [other]))
    assert isinstance(unknown.exception, CrosswindError)
    assert "did you mean prompt" in str(unknown.exception)
    assert learn(*check, "--update", *server("2", [other])).exit_code == 0
    assert learn(*check, *server("2", [other])).exit_code == 0
    assert learn(*check, "--update", *server("3", [])).exit_code == 0
    told = learn("--history", kept).output
    assert (
        told.index("version 2") < told.index("the description was") < told.index("version 3") < told.index("a: is gone")
    )
    assert len(json.loads(learn("--history", kept, "--json").output)) == 2
    assert "need --check SNAPSHOT" in str(learn("--update", *server("3", [])).exception)


def test_a_server_that_is_started_elsewhere_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path works where one stands, and not in the folder that the server is started in."""
    (tmp_path / "server.py").write_text(SERVER)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["learn", "--", sys.executable, "server.py", "{}"])
    assert result.exit_code == 3
    assert "can't open file" in result.output
    assert "/work/server.py" not in result.output.replace(next(iter(_folders(result.output))) + "/server.py", "")
    assert "It ran in an empty temporary folder" in result.output
    assert f"give its absolute path, {tmp_path / 'server.py'}" in result.output


def _folders(said: str) -> list[str]:
    return [part.rstrip(",") for part in said.replace("(", " ").split() if part.rstrip(",").endswith("/work")]
