"""Tasks for a server: the file, the worlds behind it, episodes through the runner, and `crosswind learn`."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError
from typer.testing import CliRunner

from crosswind.agents._scripted import requesting
from crosswind.authoring import plugins
from crosswind.base.errors import BadFile, CrosswindError
from crosswind.cli.app import app
from crosswind.core.certify import certify
from crosswind.core.draw import draw
from crosswind.core.registry import agents, domains
from crosswind.core.types import ToolCall, ToolResult, failed
from crosswind.episodes.play import judge, play
from crosswind.episodes.record import Record
from crosswind.episodes.suite import suites
from crosswind.mcp import drift, isolation, schema, snapshots, tasks
from crosswind.mcp.conditions import CallRule, Made, Must, Take, filled, in_order, references
from crosswind.mcp.learn import draft, look
from crosswind.mcp.running import Running, Server
from crosswind.mcp.wire import WireError
from crosswind.mcp.worlds import ServerFailed
from crosswind.models.source import AgentSettings
from crosswind.models.spec import open_agent
from crosswind.runs import runner
from crosswind.runs.store import iter_records

SHOP = [sys.executable, str(Path(__file__).parents[1] / "fake_mcp.py")]

# a server of files: reads and writes in its folder, says how often it was started, and has faults of its own
NOTES = """
import json, os, sys, time
fault = sys.argv[1] if len(sys.argv) > 1 else ""
with open(os.environ["STARTS"], "a") as starts:
    starts.write("x")
count = os.path.getsize(os.environ["STARTS"])
text = {"type": "string"}
def tool(name, doc, params, **more):
    schema = {"type": "object", "properties": {p: text for p in params}, "required": list(params)}
    return {"name": name, "description": doc, "inputSchema": schema, **more}
TOOLS = [
    tool("list_notes", "List the notes.", [], annotations={"readOnlyHint": True}),
    tool("read_note", "Read a note; list_notes tells which there are. See {manual}.", ["path"],
         annotations={"readOnlyHint": True}),
    tool("write_note", "Write a note.", ["path", "text"]),
    tool("see_variable", "A variable of the environment.", ["name"], annotations={"readOnlyHint": True}),
]
if fault == "output":
    TOOLS[0]["outputSchema"] = {"type": "object", "properties": {"notes": {"type": "array"}}, "required": ["notes"]}
if fault == "twice":
    TOOLS.append(TOOLS[0])
if fault == "no schema":
    TOOLS[0]["inputSchema"] = {"type": "object", "properties": {}, "required": ["what"]}
if fault == "changes" and count > 3:
    TOOLS[2]["name"] = "put_note"
if fault == "sleeps":
    time.sleep(60)
looks = 0
def run(name, args):
    global looks
    if name == "list_notes":
        looks += 1
        others = count if fault == "shares" else max(0, count - 6) if fault == "shares later" else 0
        more = ["look-%d" % looks] if fault == "counts" else ["other-%d" % n for n in range(others)]
        return json.dumps(sorted(os.listdir(".")) + more)
    if name == "see_variable":
        return os.environ.get(args["name"], "unset")
    path = args["path"]
    if name == "read_note":
        return open(path).read()
    with open(path, "w") as file:
        file.write(args["text"])
    return "written to " + os.path.abspath(path)
for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params") or {}
    if "id" not in message:
        continue
    if method == "tools/call" and fault == "mute":
        continue
    if method == "tools/call" and fault == "chatter":
        note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x" * 1000}}
        while True:
            print(json.dumps(note), flush=True)
    if method == "initialize":
        value = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "mcp-notes",
                 "version": "7"}}
    elif method == "tools/list":
        value = {"tools": TOOLS}
    elif method == "tools/call":
        if fault == "dies":
            print("the disk is full", file=sys.stderr, flush=True)
            os._exit(4)
        try:
            value = {"content": [{"type": "text", "text": run(params["name"], params.get("arguments") or {})}]}
            if fault == "output":
                value["structuredContent"] = {"notes": "none"}
        except OSError as error:
            value = {"content": [{"type": "text", "text": f"{error.strerror}: {error.filename}"}], "isError": True}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": value}), flush=True)
"""

FILE = """
domain: notebook
server:
  command: [{python}, {server}, {fault}]
  folder: notes
  shown_as: /desk/notes
  env: {{STARTS: {starts}, COLOUR: green, WHERE: "{{folder}}"}}
  setup: ["cp first.txt second.txt"]
  start_timeout: {start}
  call_timeout: {call}
kinds: {kinds}
severity: 1
tasks:
  - name: read_it
    query: What does the note /desk/notes/first.txt say?
    answer: [buy milk]
    calls: [{{tool: read_note, args: {{path: /desk/notes/first.txt}}}}]
    nothing_else: true
    gold:
      - {{call: list_notes, take: {{name: "0"}}}}
      - {{call: read_note, args: {{path: /desk/notes/$name}}, take: {{text: {{matches: "(.+)"}}}}}}
    says: "It says: $text."
  - name: write_it
    query: Write "call Ann" into the note third.txt and tell me where it lies.
    answer: [/desk/notes/third.txt]
    calls:
      - {{tool: write_note, args: {{text: {{contains: call ann}}}}, times: 1}}
      - {{tool: write_note, args: {{path: {{contains: first}}}}, times: never, named: harm}}
    nothing_else: true
    gold:
      - {{call: write_note, args: {{path: third.txt, text: call Ann}}, take: {{where: {{matches: "to (.+)"}}}}}}
    says: It lies at $where.
"""
NO_GOLD = """
  - name: how_many
    query: How many notes are there?
    answer: [{number: 2}]
    calls: [{tool: list_notes}]
"""


def written(folder: Path, more: str = "", **given: Any) -> Path:
    """A file of tasks for the server of notes, with the server and its folder beside it."""
    (folder / "server.py").write_text(NOTES)
    (folder / "notes").mkdir(exist_ok=True)
    (folder / "notes" / "first.txt").write_text("buy milk\n")
    values = {"fault": "none", "kinds": "[semantic_rename]", "start": 20, "call": 20, **given}
    values |= {"python": sys.executable, "server": folder / "server.py", "starts": folder / "starts"}
    path = folder / "notes.yaml"
    path.write_text(FILE.format(**values) + more)
    return path


def starts(folder: Path) -> int:
    """How often the server of notes was started."""
    return (folder / "starts").stat().st_size if (folder / "starts").exists() else 0


@pytest.fixture(autouse=True)
def nothing_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Folders of servers go to a place of this test, and what it registers is taken back."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    monkeypatch.setenv(plugins.VARIABLE, "")  # which `--plugin` adds to
    known, suited, loaded = set(domains.names()), set(suites.names()), dict(plugins._loaded)
    yield
    for name in set(domains.names()) - known:
        domain = domains[name]
        if isinstance(domain, tasks.ServerDomain):
            domain.tape.stop()
        domains.remove(name)
    for name in set(suites.names()) - suited:
        suites.remove(name)
    plugins._loaded.clear()
    plugins._loaded.update(loaded)
    assert list(scratch.iterdir()) == []


def opened(path: Path) -> tasks.ServerDomain:
    plugins.load(path)
    domain = domains["notebook"]
    assert isinstance(domain, tasks.ServerDomain)
    return domain


def run(path: Path, agent: str, out: Path) -> list[Record]:
    """Every episode of a file, through the runner."""
    domain = opened(path)
    source = open_agent(agent, AgentSettings())
    asyncio.run(runner.run(suites[domain.name], source, out, concurrency=3, pauses=()))
    return list(iter_records(out))


# ---------------------------------------------------------------- conditions


@pytest.mark.parametrize(
    ("must", "value", "holds"),
    [
        ("milk", "Buy  MILK today.", True),
        (7, "room 17", True),
        ({"matches": r"^\d+ notes$"}, "well\n3 notes", True),
        ({"equals": "done"}, " done\n", True),
        ({"equals": 3}, 3.0, True),
        ({"equals": 1}, True, False),
        ({"equals": ["a", 1]}, ["a", 1], True),
        ({"equals": {"a": [1]}}, {"a": [2]}, False),
        ({"number": 3}, "There are 3 notes.", True),
        ({"number": 3}, "There are 13 notes.", False),
        ({"number": 3, "tolerance": 0.5}, "It comes to 3.4.", True),
        ({"time": "08:00"}, "It opens at 8 am.", True),
        ({"yesno": False}, "No, it is closed.", True),
        ({"id": "O101"}, "Order o101 is made.", True),
        ({"speech": "refusal"}, "I am sorry, I cannot do this.", True),
        ({"speech": "answer"}, "I am sorry, I cannot do this.", False),
        ({"any_of": ["milk", "bread"]}, "bread", True),
        ({"all_of": ["milk", "bread"]}, "bread", False),
        ({"none_of": ["milk", {"matches": "eggs?"}]}, "an egg", False),
        ({"contains": "b"}, ["a", "b"], True),
    ],
)
def test_a_condition_is_true_of_what_it_says(must: Any, value: Any, holds: bool) -> None:
    assert Must.model_validate(must, strict=False).holds(value) is holds


@pytest.mark.parametrize(
    "must", [{}, {"contains": "a", "equals": "b"}, {"matches": "("}, {"any_of": []}, {"equals": 1, "tolerance": 1}]
)
def test_a_condition_that_says_nothing_or_too_much_is_refused(must: Any) -> None:
    with pytest.raises(ValidationError):
        Must.model_validate(must, strict=False)


def made(tool: str, error: bool = False, **args: Any) -> Made:
    return Made(ToolCall(tool, args), failed("no") if error else ToolResult("ok"))


def test_calls_are_counted_by_tool_arguments_and_outcome() -> None:
    ledger = [made("add", n=1), made("add", error=True, n=2), made("commit", m="x"), made("add", n=3)]
    assert CallRule(tool="add").check(ledger)[0]
    assert CallRule.model_validate({"tool": "add", "times": 2}).check(ledger)[0]  # one of the three failed
    assert not CallRule.model_validate({"tool": "add", "times": "3+"}).check(ledger)[0]
    assert CallRule.model_validate({"tool": "add", "times": "1-2"}).check(ledger)[0]
    assert CallRule.model_validate({"tool": "push", "times": "never"}).check(ledger)[0]
    never = CallRule.model_validate({"tool": "add", "args": {"n": 2}, "times": "never"})
    assert not never.check(ledger)[0]  # an attempt that failed is one
    assert never.check(ledger)[1] == "add(n equals 2): 1 times; to be 0"
    assert not CallRule.model_validate({"tool": "commit", "args": {"other": 1}}).check(ledger)[0]
    add, commit = CallRule(tool="add"), CallRule(tool="commit")
    assert in_order([add, commit, add], ledger)
    assert not in_order([commit, add, add], ledger)
    for times in ("often", "3-1", True, -1):
        with pytest.raises(ValidationError):
            CallRule.model_validate({"tool": "add", "times": times})


def test_values_are_taken_out_of_results_and_put_into_later_calls() -> None:
    content = {"rows": [{"id": 7, "text": "see O12 there"}]}
    assert Take.model_validate("rows.0.id").of(content) == 7
    assert Take(at="rows.0.text", matches=r"(O\d+)").of(content) == "O12"
    assert Take(matches=r'"id": (\d)').of(content) == "7"
    for take in (Take(at="rows.1"), Take(at="rows.x"), Take(matches="(nothing)")):
        with pytest.raises(ValueError, match="the result has"):
            take.of(content)
    with pytest.raises(ValidationError):
        Take(matches="no group")
    args = {"id": "$id", "text": "$$5 for $id", "more": ["$id"]}
    assert references(args) == {"id"}
    assert filled(args, {"id": 7}) == {"id": 7, "text": "$5 for 7", "more": [7]}


@pytest.mark.parametrize(
    ("value", "against", "fault"),
    [
        ({"a": 1}, {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}, ""),
        ({"a": True}, {"properties": {"a": {"type": "integer"}}}, "a: True is not of type 'integer'"),
        ({}, {"required": ["a"]}, "the value: 'a' is a required property"),
        (
            {"b": 1},
            {"properties": {}, "additionalProperties": False},
            "the value: Additional properties are not",
        ),
        ([1, "x"], {"items": {"type": "number"}}, "[1]: 'x' is not of type 'number'"),
        (None, {"anyOf": [{"type": "string"}, {"type": "null"}]}, ""),
        (
            {"x": 1},
            {"properties": {"x": {"$ref": "#/$defs/X"}}, "$defs": {"X": {"enum": [2]}}},
            "x: 1 is not one of",
        ),
        (3, {"allOf": [{"type": "number"}, {"const": 4}]}, "the value: 4 was expected"),
        ({"a": {"b": [{}]}}, {"$ref": "#"}, ""),
        (-1, {"minimum": 0}, "the value: -1 is less than the minimum of 0"),
        ("x", {"pattern": "^(a+)+$"}, ""),
        ({"b": 1}, {"patternProperties": {"(": {}}, "additionalProperties": False}, ""),
        (1, {"$ref": "http://127.0.0.1:9/schema"}, ""),
        (1, {"type": "frob"}, ""),
        (1, {"$ref": "#/enum", "enum": [[1]]}, ""),
        ({"a": 1}, {"$ref": "#/properties", "properties": {"$schema": {"type": "string"}}}, ""),
    ],
)
def test_a_schema_is_held_against_a_value(value: Any, against: Any, fault: str) -> None:
    found = schema.misfit(value, against)
    assert found.startswith(fault)
    assert bool(found) is bool(fault)


def test_tasks_say_at_once_which_extra_they_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    with pytest.raises(CrosswindError, match=r"needs the package 'jsonschema'; pip install '.*\[mcp\]'"):
        tasks.load(written(tmp_path))


def test_references_in_a_schema_are_put_in_even_where_they_never_end() -> None:
    tree = {
        "$ref": "#/$defs/Node",
        "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
    }
    flat = json.dumps(schema.inlined(tree))
    assert "$ref" not in flat
    assert '"next"' in flat


def test_a_schema_that_grows_without_end_is_cut_or_refused() -> None:
    wide = {f"p{n}": {"$ref": "#/$defs/a"} for n in range(20)}  # 64 million nodes, six levels deep
    tree = {"type": "object", "properties": wide, "$defs": {"a": {"type": "object", "properties": wide}}}
    began = time.process_time()
    flat = schema.inlined(tree)
    assert flat["properties"]["p19"]["properties"].keys() == wide.keys()
    assert time.process_time() - began < 5
    with pytest.raises(schema.TooComplex):
        schema.inlined({"enum": ["a"] * (schema.NODES + 1)})
    with pytest.raises(schema.TooComplex):
        schema.inlined(tree, schema.Allowance(1000))


@pytest.mark.parametrize("dialect", [{}, {"$schema": "https://json-schema.org/draft/2020-12/schema"}])
def test_ways_that_double_at_each_level_are_not_all_gone(dialect: dict[str, str]) -> None:
    levels = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2, **dialect} for n in range(40)}
    doubling = {"$ref": "#/$defs/d0", "$defs": {**levels, "d40": {"type": "integer"}}}
    began = time.process_time()
    assert "too complex" in schema.misfit({"x": 1}, doubling)
    assert "too complex" in schema.misfit(1, {"enum": ["a"] * (schema.NODES + 1)})
    assert schema.misfit([{"a": 1}] * 20_000, {"uniqueItems": True, "items": {"type": "object"}}) == ""
    assert schema.misfit([1] * 20_000, {"items": {"type": "integer"}}) == ""
    assert time.process_time() - began < 20


def test_patterns_are_left_out_of_parts_in_another_dialect_too() -> None:
    part = {"$schema": "https://json-schema.org/draft/2020-12/schema", "pattern": "^(a+)+$"}
    assert schema.misfit({"x": "a" * 40 + "!"}, {"properties": {"x": part}}) == ""


# ---------------------------------------------------------------- the file


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("What does the note", "<FILL IN ...> does the note", "tasks.0.query: is still to be written"),
        ("answer: [buy milk]", "answer: []\n    calls: []", "appears twice"),
        ("domain: notebook", "domain: Note Book", "expected a short name in snake_case"),
        ("  shown_as: /desk/notes", "  shown_as: notes", "expected a path such as"),
        ("command: [", "url: 'http://x/mcp'\n  command: [", "command or its url, and not both"),
        ("/desk/notes/$name", "/desk/notes/$other", r"\$other was not taken from an earlier result"),
        ("It lies at $where", "It lies at $here", r"\$here was not taken"),
        ("kinds: [semantic_rename]", "kinds: [semantic_renam]", "did you mean semantic_rename"),
        ("name: write_it", "name: read_it", "two tasks are called 'read_it'"),
        ("name: write_it", "name: write/it", "letters, digits"),
        ("says: It lies at $where.", "", "a gold needs says"),
        ("times: 1", "times: sometimes", "times is written as"),
        ("severity: 1", "severity: 9", "severity"),
        ("named: harm", "named: harm\n    order: [nothing]", "mapping values|order speaks of|not valid YAML"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_line(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    path = written(tmp_path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(BadFile, match=complaint) as raised:
        tasks.load(path)
    assert f"{path}:" in str(raised.value)
    assert starts(tmp_path) == 0


def test_a_task_that_doing_nothing_passes_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "  - name: idle\n    query: Do nothing.\n    calls: [{tool: write_note, times: never}]\n")
    with pytest.raises(BadFile, match="an agent that does nothing passes"):
        tasks.load(path)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("{tool: read_note,", "{tool: read_notes,", "no tool 'read_notes'; did you mean read_note"),
        ("args: {path: {contains: first}}", "args: {pth: first}", "write_note has no parameter 'pth'"),
        (
            "call: write_note, args: {path: third.txt, text: call Ann}",
            "call: write_note, args: {path: 3}",
            "'text' is a required property",
        ),
        ("answer: [buy milk]", "answer: [buy bread]", "does not solve the task: goal: .*'answer'"),
        ('matches: "to (.+)"', 'matches: "at (.+)"', "does not solve the task: replay: .*nothing that matches"),
        ("/desk/notes/$name", "/desk/nowhere/$name", "does not solve the task: replay: .*No such file"),
    ],
)
def test_a_gold_is_tried_before_the_run(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    path = written(tmp_path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(BadFile, match=complaint):
        opened(path).nth(0, 0)


def test_state_that_episodes_share_is_noticed(tmp_path: Path) -> None:
    """A server that keeps something elsewhere answers the second playing of a gold otherwise."""
    path = written(tmp_path, fault="shares")
    complaint = r"yaml:\d+: .*episodes share state: list_notes answered otherwise.*other-1.*folder.*setup.*varies"
    with pytest.raises(BadFile, match=complaint):
        opened(path).nth(0, 0)
    text = path.read_text()
    path.write_text(text.replace("  folder: notes", "  folder: notes\n  varies: ['(, \"other-\\d+\")+']"))
    assert tasks.load(path).nth(0, 0) is not None


def test_a_read_only_tool_that_writes_is_noticed(tmp_path: Path) -> None:
    path = written(tmp_path, fault="counts")
    with pytest.raises(BadFile, match=r"marked as read-only writes: list_notes answered otherwise.*List it in writes"):
        opened(path).nth(0, 0)
    text = path.read_text()
    path.write_text(text.replace("  folder: notes", "  folder: notes\n  writes: [list_note]"))
    with pytest.raises(BadFile, match="no tool 'list_note'; did you mean list_notes"):
        tasks.load(path).nth(0, 0)
    path.write_text(text.replace("  folder: notes", "  folder: notes\n  writes: [list_notes]"))
    domain = tasks.load(path)
    assert domain.specs["list_notes"].writes
    with pytest.raises(BadFile, match="nothing else"):  # which the gold of a task that may only read must not do
        domain.nth(0, 0)


def test_live_answers_are_compared_with_those_of_the_gold(tmp_path: Path) -> None:
    """What comes to differ only later is an error of the episode, and not a failure of the agent."""
    records = run(written(tmp_path, fault="'shares later'"), "oracle", tmp_path / "out")
    errors = [record for record in records if record.outcome == "error"]
    assert {record.task.family if hasattr(record, "task") else record.family for record in errors} == {"read_it"}
    assert "list_notes answered otherwise than after the same calls when the golds were played" in errors[0].why
    assert not [record for record in records if record.outcome == "fail"]


@pytest.mark.parametrize(
    ("was", "now", "differs"),
    [
        ("at 2030-01-01T10:00:00Z", "at 2031-02-01T11:00:05Z", False),
        ({"id": "6fa459ea-ee8a-3ca4-894e-db77e160355e"}, {"id": "16fd2706-8baf-433b-82eb-8c7fada847da"}, False),
        ("took 12 ms", "took 3.5 ms", False),
        (["a"], ["a", "b"], True),
        ("3 notes", "4 notes", True),
        ("run x7", "run x8", False),
    ],
)
def test_answers_are_compared_without_what_changes_by_itself(was: Any, now: Any, differs: bool) -> None:
    assert bool(isolation.differs(ToolResult(was), ToolResult(now), [r"x\d"])) is differs


# ---------------------------------------------------------------- episodes


def test_a_file_is_run_clean_and_perturbed_in_pairs(tmp_path: Path) -> None:
    kinds = "[semantic_rename, parameter_rename, transient_error, lost_acknowledgement, envelope, rate_limit]"
    records = run(written(tmp_path, kinds=kinds), "oracle", tmp_path / "out")
    assert {r.outcome for r in records} == {"pass"}, [(r.key, r.why, r.checks) for r in records if not r.passed]
    conditions = {r.condition for r in records}
    assert conditions == {"clean", *kinds.strip("[]").split(", ")}
    assert {r.pair for r in records} == {"notebook/read_it/test/0|0", "notebook/write_it/test/0|0"}
    assert all(r.exposed for r in records)
    for record in records:
        if record.condition == "semantic_rename":
            called = {step["call"]["tool"] for step in record.steps}
            assert called - {inner["call"]["tool"] for step in record.steps for inner in step["inner"]}
    assert "{ manual }" in json.dumps([r.tools for r in records if r.clean])  # its own braces are no mention


def test_every_episode_has_a_fresh_copy_under_one_name(tmp_path: Path) -> None:
    path = written(tmp_path, kinds="[transient_error, semantic_rename]")
    records = run(path, "oracle", tmp_path / "out")
    answers = {json.dumps(step["inner"][-1]["result"]) for r in records for step in r.steps if step["inner"]}
    assert '{"content": "written to /desk/notes/third.txt"}' in answers
    assert '{"content": ["first.txt", "second.txt"]}' in answers  # never the third, which other episodes wrote
    assert str(tmp_path) not in "".join(answers)
    assert sorted(p.name for p in (tmp_path / "notes").iterdir()) == ["first.txt"]


def test_the_server_gets_no_variables_but_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    domain = tasks.load(written(tmp_path))

    async def look_at(*names: str) -> list[Any]:
        running = Running(domain.file.server, domain.base)
        await running.start()
        try:
            return [(await running.call(ToolCall("see_variable", {"name": name}))).content for name in names]
        finally:
            await running.close()

    seen = asyncio.run(look_at("OPENAI_API_KEY", "COLOUR", "WHERE", "PATH"))
    assert seen[:3] == ["unset", "green", "/desk/notes"]
    assert seen[3] != "unset"


def test_golds_are_played_to_a_server_once(tmp_path: Path) -> None:
    domain = opened(written(tmp_path))
    domain.nth(0, 0)
    before = starts(tmp_path)
    assert before <= 6  # to list the tools, two for each gold, and one with reads made twice
    for name in ("read_it", "write_it"):
        for kind in ("semantic_rename", "parameter_rename", "envelope", "transient_error", "redirection"):
            assert draw(domain, domain.task(name, 0), [kind], 1).certificate.proof == "replay"
    assert starts(tmp_path) == before


def test_a_stored_episode_is_judged_without_a_server(tmp_path: Path) -> None:
    domain = opened(written(tmp_path))
    drawn = draw(domain, domain.task("write_it", 0), [("lost_acknowledgement", 1)], 0)
    right = asyncio.run(play(drawn, agents["oracle"](drawn), "oracle"))
    wrong = asyncio.run(play(drawn, agents["retrier"](drawn), "retrier"))
    before = starts(tmp_path)
    assert judge(right, domain).outcome == "pass"
    verdict = judge(wrong, domain)
    assert verdict.outcome == "fail"
    assert any("write_note(text contains 'call ann'): 2 times; to be 1" in check.why for check in verdict.checks)
    assert starts(tmp_path) == before


def test_a_task_without_a_gold_is_run_and_marked(tmp_path: Path) -> None:
    path = written(tmp_path, NO_GOLD, kinds="[name_noise, verbose_query]")
    with pytest.warns(UserWarning, match="1 of 3 tasks are uncertified"):
        records = run(path, "oracle", tmp_path / "out")
    found = {(r.family, r.condition): r for r in records}
    assert ("how_many", "name_noise") in found
    assert ("how_many", "verbose_query") not in found  # needs a task whose solution is known
    for (family, _), record in found.items():
        assert any(check.name == "uncertified" for check in record.checks) is (family == "how_many")
    blind = found["how_many", "clean"]
    assert (blind.outcome, blind.steps, blind.cause) == ("fail", (), "undetermined")  # no made-up call was sent


def test_another_agent_passes_a_task_without_a_gold(tmp_path: Path) -> None:
    (tmp_path / "my_agent.py").write_text(
        textwrap.dedent("""
        async def agent(query, tools):
            found = await tools.call(tools.shown[0].name, {})
            return f"There are {found.count('.txt')} notes."
        """)
    )
    path = written(tmp_path, NO_GOLD)
    domain = opened(path)
    drawn = draw(domain, domain.task("how_many", 0), ["name_noise"], 0)
    sys.path.insert(0, str(tmp_path))
    try:
        source = open_agent("python:my_agent:agent", AgentSettings())
        trajectory = asyncio.run(play(drawn, source.make(drawn), "mine"))
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("my_agent", None)
    assert judge(trajectory, domain).outcome == "pass"
    assert trajectory.steps[0]["call"]["tool"] != "list_notes"
    assert trajectory.steps[0]["inner"][0]["call"]["tool"] == "list_notes"


def test_a_plugin_brings_the_suite_and_the_command_line_runs_it(tmp_path: Path) -> None:
    path, out = written(tmp_path), tmp_path / "out"
    result = CliRunner().invoke(
        app, ["--plugin", str(path), "run", "notebook", "--agent", "oracle", "--out", str(out), "--json"]
    )
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["scores"]["clean"] == {"n": 2, "passed": 2}
    again = CliRunner().invoke(app, ["rescore", str(out), "--json"])
    assert json.loads(again.stdout)["changed"] == []


def test_a_file_goes_through_a_dry_run_another_suite_and_the_gate(tmp_path: Path) -> None:
    path, out = written(tmp_path), tmp_path / "out"
    would = CliRunner().invoke(app, ["run", str(path), "--agent", "oracle", "--dry-run", "--json"])
    assert would.exit_code == 0, would.output
    assert json.loads(would.stdout)["episodes"] == 4
    narrow = ["--plugin", str(path), "run", "quick", "--domain", "notebook", "--tasks", "1", "--agent", "oracle"]
    wide = CliRunner().invoke(app, [*narrow, "--out", str(out), "--json"])
    assert wide.exit_code == 0, wide.output
    assert json.loads(wide.stdout)["scores"]["clean"]["passed"] > 0
    gate = CliRunner().invoke(app, ["gate", str(out), "--max-drop", "all=0.9", "--json"])
    assert gate.exit_code in (0, 4), gate.output  # so few pairs may decide nothing


def reported(path: Path, out: Path, *more: str) -> dict[str, Any]:
    """What a report says that is made in a process of its own, which knows nothing of what servers answered."""
    command = [sys.executable, "-m", "crosswind.cli.app", "--plugin", str(path), "report", str(out), *more, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_a_report_plays_no_scripted_agents_where_that_starts_a_server(tmp_path: Path) -> None:
    path, out, page = written(tmp_path, kinds="[semantic_rename, name_noise]"), tmp_path / "out", tmp_path / "page.html"
    records = run(path, "oracle", out)
    assert len(records) == 6
    before = starts(tmp_path)
    told = reported(path, out)
    assert starts(tmp_path) - before <= 3  # to list the tools, and once for each gold; never once for each episode
    assert told["baselines"] == {}
    assert told["without_baselines"][0].startswith("No scripted agents are played in notebook: each of their episodes")
    before = starts(tmp_path)
    reported(path, out, "-o", str(page))
    assert starts(tmp_path) - before <= 3
    shown = page.read_text(encoding="utf-8")
    assert "--baselines N plays them" in shown
    assert shown.count("The certified solution cannot be regenerated") == 0
    before = starts(tmp_path)
    asked = reported(path, out, "--baselines", "2")
    assert asked["without_baselines"] == []
    assert asked["baselines"]["memoriser"]["shifted"]["n"] == 2
    assert starts(tmp_path) > before + 3
    assert "No baselines" in CliRunner().invoke(app, ["report", str(out), "--markdown"]).stdout


def test_a_report_without_the_file_says_what_it_lacks(tmp_path: Path) -> None:
    path, out = written(tmp_path), tmp_path / "out"
    run(path, "oracle", out)
    before = starts(tmp_path)
    domains["notebook"].tape.stop()  # type: ignore[attr-defined]
    domains.remove("notebook")
    told = CliRunner().invoke(app, ["report", str(out)])
    assert told.exit_code == 0, told.output
    assert told.stdout.startswith("oracle solves 100")
    assert "the domain is not loaded here. crosswind --plugin FILE report DIR loads it." in " ".join(
        told.stdout.split()
    )
    assert "Nothing was measured for this run" in (out / "report.html").read_text(encoding="utf-8")
    assert starts(tmp_path) == before


# ---------------------------------------------------------------- servers that fail


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("dies", "ended with exit code 4.*the disk is full"),
        ("mute", "did not answer tools/call within 1 seconds"),
        ("chatter", "did not answer tools/call within 1 seconds"),
        ("output", "does not fit the schema that it lists: notes: 'none' is not of type 'array'"),
    ],
)
def test_a_server_that_fails_in_an_episode_is_an_error_of_the_infrastructure(
    tmp_path: Path, fault: str, why: str
) -> None:
    path = written(tmp_path, NO_GOLD, fault=fault, call=1)
    text = path.read_text()  # without golds, which would fail beforehand
    path.write_text(text[: text.index("  - name: read_it")] + NO_GOLD)
    domain = opened(path)

    class Caller:
        async def reply(self, chat: Any, tools: Any) -> Any:
            return requesting(ToolCall("list_notes", {}), len(chat))

    drawn = draw(domain, domain.task("how_many", 0), (), 0)
    began = time.monotonic()
    trajectory = asyncio.run(play(drawn, Caller(), "caller"))
    assert time.monotonic() - began < 15
    assert trajectory.ended == "error"
    assert judge(trajectory, domain).outcome == "error"
    assert re.search(why, trajectory.why, re.DOTALL), trajectory.why


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("sleeps", "not ready within 1 seconds"),
        ("twice", "'list_notes' is listed twice"),
        ("no schema", "requires what it does not have"),
    ],
)
def test_a_server_that_cannot_be_used_is_told_before_anything_is_played(tmp_path: Path, fault: str, why: str) -> None:
    domain = opened(written(tmp_path, fault=f'"{fault}"', start=1))
    began = time.monotonic()
    with pytest.raises(ServerFailed, match=why) as raised:
        domain.nth(0, 0)
    assert time.monotonic() - began < 15
    assert "notes.yaml:4" in str(raised.value)


@pytest.mark.parametrize(
    ("fault", "why"), [("dies", "exit code 4"), ("mute", "did not answer"), ("output", "does not fit")]
)
def test_a_server_that_fails_while_golds_are_tried_stops_the_run(tmp_path: Path, fault: str, why: str) -> None:
    with pytest.raises(ServerFailed, match=f"while a gold was tried: .*{why}"):
        opened(written(tmp_path, fault=fault, call=1)).nth(0, 0)


def test_a_server_that_lists_other_tools_later_is_an_error(tmp_path: Path) -> None:
    domain = opened(written(tmp_path, fault="changes"))
    drawn = draw(domain, domain.task("read_it", 0), (), 0)
    while starts(tmp_path) < 3:
        asyncio.run(play(drawn, agents["oracle"](drawn), "oracle"))
    trajectory = asyncio.run(play(drawn, agents["oracle"](drawn), "oracle"))
    assert trajectory.ended == "error"
    assert "write_note: is called put_note now" in trajectory.why


@pytest.mark.parametrize(
    ("server", "why"),
    [
        ({"command": ["no-such-command-here"]}, "no such command"),
        ({"command": [*SHOP, "--fault", "no start"]}, "exit code 7"),
        ({"command": [*SHOP, "--fault", "lies"]}, "no list of tools"),
        ({"command": [*SHOP, "--fault", "endless"]}, "does not end"),
        ({"command": [*SHOP, "--fault", "mute list"], "start_timeout": 1.0}, "not ready within 1 seconds"),
        ({"command": SHOP, "folder": "missing"}, "cannot be copied"),
        ({"command": SHOP, "setup": (("false",),)}, "the setup 'false' failed"),
        ({"url": "http://127.0.0.1:9/mcp"}, "127.0.0.1:9"),
    ],
)
def test_a_server_that_does_not_start_says_why(tmp_path: Path, server: dict[str, Any], why: str) -> None:
    async def start() -> None:
        await Running(Server.model_validate(server, strict=False), tmp_path).start()

    with pytest.raises(WireError, match=why):
        asyncio.run(start())


@pytest.mark.parametrize(
    ("fault", "why"),
    [("huge", "more than"), ("flood", "lines that are not MCP messages"), ("dies", "exit code 9")],
)
def test_a_server_that_breaks_the_pipe_is_ended(tmp_path: Path, fault: str, why: str) -> None:
    async def call() -> None:
        running = Running(Server(command=(*SHOP, "--fault", fault)), tmp_path)
        await running.start()
        try:
            await running.call(ToolCall("get_customer", {"customer_id": "C1"}))
        finally:
            await running.close()

    with pytest.raises(WireError, match=why):
        asyncio.run(call())


def _is_not_touched_by_a_report(path: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A report on a run at a url calls nobody, whatever it is asked for, and says so."""
    touched: list[Running] = []
    why = "The certified solution is not replayed: the server runs on behind a url"
    domains.remove("shop")
    suites.remove("shop")
    plugins._loaded.clear()
    with monkeypatch.context() as patch:
        patch.setattr(Running, "start", lambda running: touched.append(running))
        for more in ([], ["--baselines", "5"]):
            told = CliRunner().invoke(app, ["--plugin", str(path), "report", str(out), *more])
            assert told.exit_code == 0, told.output
            assert "note: No scripted agents are played in shop, asked for or not" in told.stdout
            page = (out / "report.html").read_text(encoding="utf-8")
            assert why in page
        shown = CliRunner().invoke(app, ["show", str(out), "1"])
        assert why in " ".join(shown.stdout.split())
    assert touched == []


def test_a_server_behind_a_url_is_used_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSWIND_PROXY_TOKEN", "open-sesame")
    monkeypatch.setenv("CROSSWIND_SERVER_TOKEN", "open-sesame")
    command = [sys.executable, "-m", "crosswind.cli.app", "proxy", "--http", "0", "--", *SHOP]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as proxy:
        try:
            assert proxy.stderr is not None
            url = next(line for line in proxy.stderr if "listening" in line).split()[-1]
            found, _ = look(Server(url=url), tmp_path)
            assert {tool["name"] for tool in found.tools} >= {"search_orders", "create_order"}
            path = tmp_path / "shop.yaml"
            path.write_text(
                f"domain: shop\nserver: {{url: '{url}'}}\nkinds: [semantic_rename]\ntasks:\n  - name: city\n"
                "    query: Where does C7 live?\n    answer: [Ulm]\n    gold: [{call: get_customer, args: "
                "{customer_id: C7}, take: {city: city}}]\n    says: In $city.\n"
            )
            plugins.load(path)
            source = open_agent("oracle", AgentSettings())
            ran = asyncio.run(runner.run(suites["shop"], source, tmp_path / "out", pauses=()))
            assert (ran.progress.done, ran.progress.errors) == (2, 0)
            assert {r.outcome for r in iter_records(tmp_path / "out")} == {"pass"}
            _is_not_touched_by_a_report(path, tmp_path / "out", monkeypatch)
        finally:
            proxy.send_signal(signal.SIGINT)


# ---------------------------------------------------------------- learn


def learn(*args: str | Path) -> Any:
    return CliRunner().invoke(app, ["learn", *map(str, args)])


def test_a_draft_is_refused_until_it_is_filled_in(tmp_path: Path) -> None:
    out = tmp_path / "shop.yaml"
    result = learn("--out", out, "--name", "drafted", "--", *SHOP)
    assert result.exit_code == 0, result.output
    with pytest.raises(BadFile, match=r"shop.yaml:\d+: .*is still to be written"):
        tasks.load(out)
    text = out.read_text()
    names = [one["name"] for one in snapshots.read_snapshot(tmp_path / "shop.snapshot.json").tools]
    assert len(names) == 6
    assert all(f"- name: {name}" in text for name in names)
    again = learn("--out", out, "--", *SHOP)
    assert again.exit_code != 0
    assert "exists" in str(again.exception)
    data = yaml.safe_load(text)  # what a person would write in
    entry = next(t for t in data["tasks"] if t["name"] == "get_customer")
    entry |= {"query": "In which city does C7 live?", "answer": ["Ulm"], "says": "In $city."}
    entry["calls"][0]["args"] = {"customer_id": "C7"}
    entry["gold"][0] |= {"args": {"customer_id": "C7"}, "take": {"city": "city"}}
    data |= {"tasks": [entry], "kinds": ["semantic_rename"]}
    out.write_text(yaml.safe_dump(data, sort_keys=False))
    domain = tasks.load(out)
    task = domain.nth(0, 0)
    assert task is not None
    assert certify(domain, task).proof == "replay"
    domain.tape.stop()


def test_a_snapshot_tells_what_drifted(tmp_path: Path) -> None:
    out = tmp_path / "shop.yaml"
    assert learn("--out", out, "--name", "drafted", "--", *SHOP).exit_code == 0
    taken = tmp_path / "shop.snapshot.json"
    same = learn("--check", taken, "--", *SHOP)
    assert (same.exit_code, same.output) == (0, "No change in 6 tools.\n")
    other = learn("--check", taken, "--json", "--", *SHOP[:1], "-c", "import sys; sys.exit(0)")
    assert other.exit_code == 3
    data = json.loads(taken.read_text())
    data["tools"][0]["description"] = "another"
    taken.write_text(json.dumps(data))
    assert "was edited" in str(learn("--check", taken, "--", *SHOP).exception)


def tool(name: str, doc: str = "Does it.", required: tuple[str, ...] = (), **params: Any) -> dict[str, Any]:
    properties = {k: v if isinstance(v, dict) else {"type": v} for k, v in params.items()}
    return {
        "name": name,
        "description": doc,
        "inputSchema": {"type": "object", "properties": properties, "required": list(required)},
    }


@pytest.mark.parametrize(
    ("was", "now", "words"),
    [
        (tool("a"), None, ["removed: a: is gone"]),
        (None, tool("a"), ["added: a: is new"]),
        (tool("a", x="string"), tool("b", x="string"), ["renamed: a: is called b now"]),
        (tool("a", x="string"), tool("b", "Quite unlike.", x="string"), ["removed: a: is gone", "added: b: is new"]),
        (tool("a", x="string"), tool("a", y="string"), ["parameter: a: the parameter x is called y now"]),
        (
            tool("a", x="string"),
            tool("a", x="integer"),
            ['parameter: a: the parameter x was {"type": "string"} and is'],
        ),
        (tool("a", x="string"), tool("a", x="string"), []),
        (tool("a"), tool("a", required=("x",), x="string"), ["parameter: a: the required parameter x is new"]),
        (tool("a"), tool("a", x="string"), ["parameter: a: the optional parameter x is new"]),
        (tool("a", x="string"), tool("a"), ["parameter: a: the parameter x is gone"]),
        (
            tool("a", x="string"),
            tool("a", required=("x",), x="string"),
            ["parameter: a: the parameter x is required now"],
        ),
        (tool("a"), tool("a", "Does that."), ['description: a: the description was "Does it." and is "Does that."']),
        (tool("a"), {**tool("a"), "outputSchema": {"type": "object"}}, ["result: a: the schema of its results"]),
        (
            tool("a"),
            {**tool("a"), "annotations": {"readOnlyHint": True}},
            ["annotations: a: its hint readOnlyHint was not given and is true"],
        ),
        (
            tool("a", x={"type": "string", "enum": ["p"]}),
            tool("a", x={"type": "string", "enum": ["p", "q"]}),
            ["parameter"],
        ),
    ],
)
def test_each_sort_of_drift_is_told(was: Any, now: Any, words: list[str]) -> None:
    listed = [[one] if one else [] for one in (was, now)]
    found = [f"{change.sort}: {change.words}" for change in drift.drifted(*listed)]
    assert len(found) == len(words)
    assert all(one.startswith(word) for one, word in zip(sorted(found), sorted(words), strict=True)), found
    assert (snapshots.fingerprint(listed[0]) != snapshots.fingerprint(listed[1])) is bool(words)


def test_tasks_written_for_another_interface_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    domain = tasks.load(path)
    listed = [dict(raw) for raw in domain.raw]
    was = snapshots.snapshot("notes", {}, [raw for raw in listed if raw["name"] != "see_variable"])
    (tmp_path / "was.json").write_text(was.model_dump_json())
    path.write_text(path.read_text().replace("severity: 1", "severity: 1\nsnapshot: was.json"))
    with pytest.raises(BadFile, match="see_variable: is new"):
        opened(path).nth(0, 0)


def test_learn_says_what_is_wrong(tmp_path: Path) -> None:
    for args, words in (
        ([], "command after --"),
        (["--folder", tmp_path / "none", "--", *SHOP], "folder not found"),
        (["--url", "ftp://x"], "http://"),
        (["--check", tmp_path / "none", "--", *SHOP], "cannot be read"),
        (["--name", "No Name", "--out", tmp_path / "x.yaml", "--", *SHOP], "snake_case"),
    ):
        result = learn(*args)
        assert isinstance(result.exception, CrosswindError)
        assert words in str(result.exception)
    assert learn("--", "no-such-command-here").exit_code == 3
    assert list(tmp_path.glob("*.yaml")) == []


def test_a_draft_holds_no_line_that_yaml_would_take_otherwise(tmp_path: Path) -> None:
    listed = [
        tool(
            "odd",
            "Line\nbreak # <b>: {x} - 'quote'\u0007",
            required=("p",),
            p={"type": "string", "description": "a: b"},
        )
    ]
    text = draft(
        snapshots.snapshot("odd", {"serverInfo": {"name": "o\ndd"}}, listed), Server(command=("odd",)), "odd", "s.json"
    )
    assert yaml.safe_load(text)["tasks"][0]["name"] == "odd"
