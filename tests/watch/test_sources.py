"""Readers of log formats: the same episode comes out of each, with as much as the format holds."""

from __future__ import annotations

import gzip
import json
import os
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from crosswind.base.errors import BadFile
from crosswind.episodes.suite import suites
from crosswind.models.spec import open_agent
from crosswind.runs.runner import Limits, manifest_of
from crosswind.runs.segments import segments
from crosswind.runs.store import Store
from crosswind.watch import observed
from crosswind.watch.channels import Profile
from crosswind.watch.observed import ABSENT, ObservedEpisode
from crosswind.watch.sources import opening, trajectories
from crosswind.watch.sources.opening import read_episodes
from crosswind.watch.sources.spans import QUIET, SpanReader, spans_of
from tests.gate_runs import played

TOOL = {
    "type": "function",
    "function": {
        "name": "find",
        "description": "Find rooms.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
ROWS = [{"id": "r1", "price": 12.5}]
DENIED = {"error": "denied", "message": "Not yours."}


def pairs(**found: Any) -> list[dict[str, Any]]:
    def value(one: Any) -> dict[str, Any]:
        return {"intValue": str(one)} if isinstance(one, int) else {"stringValue": one}

    return [{"key": key.replace("__", "."), "value": value(one)} for key, one in found.items()]


def otlp(*spans: dict[str, Any]) -> dict[str, Any]:
    scope = {"scopeSpans": [{"scope": {"name": "x"}, "spans": list(spans)}]}
    return {"resourceSpans": [{"resource": {"attributes": pairs(service__name="shop")}, **scope}]}


def span(
    name: str, at: int, length: int, found: list[dict[str, Any]], trace: str = "t1", **more: Any
) -> dict[str, Any]:
    times = {"startTimeUnixNano": str(10**18 + at * 10**9), "endTimeUnixNano": str(10**18 + (at + length) * 10**9)}
    return {"traceId": trace, "spanId": f"{trace}{at}", "name": name, "attributes": found, **times, **more}


MESSAGES = [
    {"role": "user", "parts": [{"type": "text", "content": "Book a room in Bonn."}]},
    {"role": "assistant", "parts": [{"type": "tool_call", "id": "a", "name": "find", "arguments": {"city": "Bonn"}}]},
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "a", "response": json.dumps(ROWS)}]},
    {"role": "assistant", "parts": [{"type": "tool_call", "id": "b", "name": "book", "arguments": {"id": "r1"}}]},
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "b", "result": json.dumps(DENIED)}]},
]
LAST = [{"role": "assistant", "parts": [{"type": "text", "content": "I cannot book it."}]}]
CHAT = pairs(
    gen_ai__operation__name="chat",
    gen_ai__provider__name="x",
    gen_ai__input__messages=json.dumps(MESSAGES),
    gen_ai__output__messages=json.dumps(LAST),
    gen_ai__tool__definitions=json.dumps([TOOL]),
    gen_ai__system_instructions=json.dumps([{"type": "text", "content": "Be kind."}]),
)
CALLS = [
    span("execute_tool find", 1, 2, pairs(gen_ai__operation__name="execute_tool", gen_ai__tool__name="find")),
    span(
        "execute_tool book",
        4,
        1,
        pairs(gen_ai__operation__name="execute_tool", gen_ai__tool__name="book", error__type="tool_error"),
    ),
]


def current(tmp: Path) -> Path:
    """The current conventions: spans of tools with their content elsewhere, as JSON lines in any order."""
    for one, id in zip(CALLS, "ab", strict=True):
        one["attributes"] = [*one["attributes"], *pairs(gen_ai__tool__call__id=id)]
    return lines(tmp / "x.jsonl", [otlp(span("chat m", 6, 1, CHAT)), otlp(*reversed(CALLS))])


def older(tmp: Path) -> Path:
    """Numbered attributes, as OpenLLMetry wrote them."""
    function = TOOL["function"]
    assert isinstance(function, dict)
    found = pairs(
        gen_ai__system="x",
        llm__request__functions__0__name="find",
        llm__request__functions__0__description="Find rooms.",
        llm__request__functions__0__parameters=json.dumps(function["parameters"]),
        gen_ai__prompt__0__role="system",
        gen_ai__prompt__0__content="Be kind.",
        gen_ai__prompt__1__role="user",
        gen_ai__prompt__1__content="Book a room in Bonn.",
        gen_ai__prompt__2__role="assistant",
        gen_ai__prompt__2__tool_calls__0__name="find",
        gen_ai__prompt__2__tool_calls__0__id="a",
        gen_ai__prompt__2__tool_calls__0__arguments='{"city": "Bonn"}',
        gen_ai__prompt__3__role="tool",
        gen_ai__prompt__3__tool_call_id="a",
        gen_ai__prompt__3__content=json.dumps(ROWS),
        gen_ai__prompt__4__role="assistant",
        gen_ai__prompt__4__tool_calls__0__name="book",
        gen_ai__prompt__4__tool_calls__0__id="b",
        gen_ai__prompt__4__tool_calls__0__arguments='{"id": "r1"}',
        gen_ai__prompt__5__role="tool",
        gen_ai__prompt__5__tool_call_id="b",
        gen_ai__prompt__5__content=json.dumps(DENIED),
        gen_ai__completion__0__role="assistant",
        gen_ai__completion__0__content="I cannot book it.",
    )
    return lines(tmp / "old.json", [otlp(span("openai.chat", 1, 1, found))])


def openinference(tmp: Path) -> Path:
    """Flat attributes of single spans, as Phoenix stores them."""

    def one(kind: str, name: str, at: int, **found: Any) -> dict[str, Any]:
        return {
            "name": name,
            "context": {"trace_id": "t1", "span_id": f"s{at}"},
            "start_time": f"2026-11-19T00:00:0{at}+00:00",
            "end_time": f"2026-11-19T00:00:0{at + 1}+00:00",
            "status_code": "OK",
            "attributes": {
                "openinference": {"span": {"kind": kind}},
                **{key.replace("__", "."): value for key, value in found.items()},
            },
        }

    chat = {
        "llm.input_messages": [
            {"message": {"role": "system", "content": "Be kind."}},
            {"message": {"role": "user", "content": "Book a room in Bonn."}},
        ],
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "I cannot book it.",
        "llm.tools": [{"tool": {"json_schema": json.dumps(TOOL)}}],
    }
    spans = [
        one("TOOL", "find", 1, tool__name="find", tool__parameters='{"city": "Bonn"}', output__value=json.dumps(ROWS)),
        one("TOOL", "book", 3, tool__name="book", tool__parameters='{"id": "r1"}', output__value=json.dumps(DENIED)),
        one("LLM", "ChatCompletion", 5, **chat),
    ]
    return lines(tmp / "phoenix.jsonl", spans)


def atif(tmp: Path) -> Path:
    def call(id: str, name: str, args: Any, content: Any) -> dict[str, Any]:
        return {
            "source": "agent",
            "message": "",
            "tool_calls": [{"tool_call_id": id, "function_name": name, "arguments": args}],
            "observation": {"results": [{"source_call_id": id, "content": json.dumps(content)}]},
        }

    data = {
        "schema_version": "ATIF-v1.7",
        "session_id": "s",
        "agent": {"name": "a", "version": "1", "tool_definitions": [TOOL]},
        "steps": [
            {"source": "system", "message": "Be kind."},
            {"source": "user", "message": "Book a room in Bonn."},
            call("a", "find", {"city": "Bonn"}, ROWS),
            call("b", "book", {"id": "r1"}, DENIED),
            {"source": "agent", "message": "I cannot book it."},
        ],
    }
    path = tmp / "t.json"
    path.write_text(json.dumps(data, indent=1))
    return path


def inspect(tmp: Path) -> Path:
    def asked(id: str, name: str, args: Any) -> dict[str, Any]:
        call = {"id": id, "function": name, "arguments": args, "type": "function"}
        return {"role": "assistant", "content": "", "tool_calls": [call]}

    sample = {
        "id": 1,
        "epoch": 1,
        "input": "Book a room in Bonn.",
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "Book a room in Bonn."},
            asked("a", "find", {"city": "Bonn"}),
            {"role": "tool", "tool_call_id": "a", "function": "find", "content": json.dumps(ROWS)},
            asked("b", "book", {"id": "r1"}),
            {"role": "tool", "tool_call_id": "b", "content": json.dumps(DENIED), "error": {"type": "unknown"}},
            {"role": "assistant", "content": [{"type": "text", "text": "I cannot book it."}]},
        ],
        "events": [{"event": "model", "tools": [TOOL["function"]]}],
    }
    path = tmp / "log.json"
    path.write_text(json.dumps({"version": 2, "eval": {"task": "t", "model": "m"}, "samples": [sample]}))
    return path


def lines(path: Path, data: list[Any]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in data))
    return path


@pytest.mark.parametrize("write", [current, older, openinference, atif, inspect])
def test_the_same_episode_comes_out_of_every_format(write: Callable[[Path], Path], tmp_path: Path) -> None:
    (found,) = read_episodes(write(tmp_path))
    assert (found.query, found.policy, found.final) == ("Book a room in Bonn.", "Be kind.", "I cannot book it.")
    assert found.listing is not None
    assert [(tool.name, tool.doc, set(tool.required)) for tool in found.listing] == [("find", "Find rooms.", {"city"})]
    first, second = found.calls
    assert (first.tool, first.args, first.result, first.error) == ("find", {"city": "Bonn"}, ROWS, None)
    assert (second.tool, second.args, second.error) == ("book", {"id": "r1"}, "denied")
    assert second.result is ABSENT


def test_times_come_from_the_spans_of_tools(tmp_path: Path) -> None:
    (found,) = read_episodes(current(tmp_path))
    assert [call.seconds for call in found.calls] == [2.0, 1.0]
    assert found.source == "shop"


def test_without_content_names_order_errors_and_times_remain(tmp_path: Path) -> None:
    bare = [{**one, "attributes": [a for a in one["attributes"] if a["key"] != "gen_ai.tool.call.id"]} for one in CALLS]
    (found,) = read_episodes(lines(tmp_path / "bare.jsonl", [otlp(*bare)]))
    assert [(c.tool, c.args, c.result, c.error) for c in found.calls] == [
        ("find", None, ABSENT, None),
        ("book", None, ABSENT, "tool_error"),
    ]
    assert found.query is None
    assert found.listing is None


def test_memory_is_bounded_by_the_episodes_held_open() -> None:
    reader, out = SpanReader(held=3), list[ObservedEpisode]()
    for n in range(50):
        call = span("execute_tool find", n, 1, pairs(gen_ai__operation__name="execute_tool"), trace=f"t{n}")
        out += reader.add(spans_of(otlp(call), "x"))
        assert len(reader.groups) <= 3
    out += reader.end()
    assert [episode.id for episode in out] == [f"t{n}" for n in range(50)]


def test_a_snapshot_of_learn_and_an_answer_of_a_server_are_listings(tmp_path: Path) -> None:
    tool = {"name": "find", "description": "Find rooms.", "inputSchema": {"type": "object", "properties": {}}}
    for nth, data in enumerate(
        [{"tools": [tool], "hash": "x"}, {"jsonrpc": "2.0", "result": {"tools": [tool]}}, [tool]]
    ):
        path = tmp_path / f"{nth}.json"
        path.write_text(json.dumps(data))
        (found,) = read_episodes(path)
        assert found.is_snapshot
        assert found.listing is not None
        assert found.listing[0].name == "find"


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.jsonl", '{"resourceSpans": [{"scopeSpans": [{"spans": [3]}]}]}\n', "damaged span"),
        ("a.jsonl", "{\n{}\n", "line 1: is not JSON"),
        ("a.json", "[1, 2", "not JSON"),
        ("a.json", '{"hello": 1}', "no known format"),
        ("a.eval", "PK", "log of Inspect"),
        ("a.jsonl", '{"steps": [{}], "query": "", "tools": [], "final": ""}\n', "damaged episode"),
    ],
)
def test_a_broken_file_is_one_clear_line(name: str, text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(BadFile, match=says) as error:
        list(read_episodes(path))
    assert "\n" not in str(error.value)
    assert str(tmp_path) in str(error.value)


@pytest.mark.parametrize("write", [current, older, openinference, atif, inspect])
def test_a_field_of_another_shape_is_one_clear_line_or_ignored(write: Callable[[Path], Path], tmp_path: Path) -> None:
    """Every part of every format is put in the place of something else."""

    def spoilt(data: Any, strange: Any) -> Iterator[Any]:
        inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
        for key, value in inner:
            for other in (strange, *spoilt(value, strange)):
                copied = data.copy()
                copied[key] = other
                yield copied

    path = write(tmp_path)
    docs = [json.loads(path.read_text())] if path.suffix == ".json" else read_lines(path)
    values: list[Any] = [None, 3, 10**400, float("nan"), "x", [3], {"a": [{}]}]
    for strange in values:
        for nth, document in enumerate(docs):
            for changed in spoilt(document, strange):
                every = [*docs[:nth], changed, *docs[nth + 1 :]]
                path.write_text("\n".join(map(json.dumps, every)))
                try:
                    found = list(read_episodes(path))
                except BadFile as error:
                    assert "\n" not in str(error)  # noqa: PT017
                else:
                    profile = Profile.of(found)
                    assert all(profile.scores(episode) is not None for episode in found)


def read_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def call_line(trace: str) -> str:
    call = span("execute_tool find", 1, 1, pairs(gen_ai__operation__name="execute_tool"), trace=trace)
    return json.dumps(otlp(call)) + "\n"


def test_a_followed_log_is_read_on_after_it_was_rotated_cut_or_was_empty(tmp_path: Path) -> None:
    path = tmp_path / "live.log"
    path.write_text("")

    def rotate() -> None:
        with path.open("a") as file:
            file.write(call_line("t2") + call_line("torn")[:30])
        path.rename(tmp_path / "live.log.1")

    steps: Iterator[Callable[[], object]] = iter(
        [
            lambda: path.write_text(call_line("t1")),
            rotate,
            lambda: None,  # the successor is not there yet
            lambda: path.write_text(call_line("t3") + call_line("t4")),
            lambda: path.write_text(""),  # cut
            lambda: path.write_text(call_line("t5")),
        ]
    )

    def more() -> bool:
        step = next(steps, None)
        if step is not None:
            step()
        return step is not None

    found = [episode.id for episode in read_episodes(path, follow=more)]
    assert found == ["t1", "t2", "t3", "t4", "t5"]


def test_an_episode_of_a_followed_log_is_over_when_it_was_quiet_for_long() -> None:
    now = 0.0
    reader = SpanReader(clock=lambda: now)

    def calls(at: int, trace: str) -> list[ObservedEpisode]:
        call = span("execute_tool find", at, 1, pairs(gen_ai__operation__name="execute_tool"), trace=trace)
        return list(reader.add(spans_of(otlp(call), "x")))

    assert calls(1, "slow") == []
    now = QUIET / 2
    assert list(reader.idle()) == []
    assert calls(2, "other") == calls(3, "slow") == []
    now = QUIET * 1.4
    assert list(reader.idle()) == []
    now = QUIET * 1.5
    (other, slow) = reader.idle()
    assert (other.id, slow.id, len(slow.calls)) == ("other", "slow", 2)


def test_sealed_parts_of_a_large_run_are_read_too(tmp_path: Path) -> None:
    records = [record for record in played("oracle") if record.clean]
    with Store(tmp_path, sealed=2) as store:
        store.begin(manifest_of(suites["quick"], open_agent("oracle"), seed=0, trials=1, limit=None, limits=Limits()))
        store.resume(lambda _: None)
        for record in records[:5]:
            store.append(record)
            store.sync()
    assert len(segments(tmp_path)) == 2
    assert [episode.id for episode in read_episodes(tmp_path)] == [record.key for record in records[:5]]


def test_a_line_without_end_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "LARGEST", 1000)
    for name, says in (("x.jsonl", "line 1: over 0 MiB"), ("x.json", "one JSON document over 0 MiB")):
        path = tmp_path / name
        path.write_text('{"a": "' + "x" * 5000)
        with pytest.raises(BadFile, match=says):
            list(read_episodes(path))
        packed = tmp_path / f"{name}.gz"
        packed.write_bytes(gzip.compress(path.read_bytes()))
        with pytest.raises(BadFile, match=says):
            list(read_episodes(packed))


def test_a_packed_sample_beyond_all_bounds_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", "{}")
        archive.writestr("samples/1.json", '{"input": "' + "x" * 5000 + '"}')
    assert len(list(read_episodes(path))) == 1
    monkeypatch.setattr(trajectories, "LARGEST", 1000)
    with pytest.raises(BadFile, match=r"samples/1\.json is over 0 MiB"):
        list(read_episodes(path))


@pytest.mark.parametrize("item", [b"{},", b"[],", b'{"a":{}},', b"1,"])
def test_a_document_that_would_fill_the_memory_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, item: bytes
) -> None:
    """Small on the disk and of few bytes unpacked, it is large once it is parsed; as text it would not be."""
    monkeypatch.setattr(observed, "ROOM", 16 << 20)
    plain = b"[" + item * (1 << 20) + b"{}]"
    for name, text in (("a.json.gz", plain), ("a.jsonl.gz", b'{"a":' + plain + b"}\n{}\n"), ("a.eval", plain)):
        path = tmp_path / name
        if name == "a.eval":
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("samples/1.json", text)
        else:
            path.write_bytes(gzip.compress(text, 1))
        with pytest.raises(BadFile, match=rf"{name}.*: one JSON document that takes over 16 MiB of memory"):
            list(read_episodes(path))
    (tmp_path / "large.json").write_text(json.dumps([{**otlp(*CALLS), "note": "x" * (8 << 20)}]))
    assert len(list(read_episodes(tmp_path / "large.json"))) == 1


def test_the_memory_of_a_document_is_not_underrated() -> None:
    for item in (b"{},", b"[],", b"[[]],", b'{"a":{}},', b"1.5,", b'"ab",', b'{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6},'):
        text = b"[" + item * (observed.SMALL // len(item)) + b"0]"
        tracemalloc.start()
        held = observed.parsed(text, "")
        used = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert len(held) > 1
        rated = len(text) + sum(size * text.count(sign) for sign, size in observed.SIZES.items())
        assert used < 1.25 * rated, (item, used, rated)


def test_a_followed_log_waits_for_the_rest_of_a_line(tmp_path: Path) -> None:
    path = tmp_path / "live.jsonl"
    call = json.dumps(otlp(span("execute_tool find", 1, 1, pairs(gen_ai__operation__name="execute_tool")))) + "\n"
    path.write_text(call[:40])
    parts: Iterator[str] = iter([call[40:], ""])

    def more() -> bool:
        part = next(parts, None)
        if part:
            with path.open("a") as file:
                file.write(part)
        return part is not None

    assert [episode.id for episode in read_episodes(path, follow=more)] == ["t1"]


def test_a_compressed_log_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(otlp(*CALLS)).encode() + b"\n"))
    assert len(list(read_episodes(path))) == 1


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.json.gz", "a.eval"])
@pytest.mark.parametrize("device", [False, True])
def test_a_pipe_or_a_device_is_told_and_not_waited_for(tmp_path: Path, name: str, device: bool) -> None:
    if device:
        (tmp_path / name).symlink_to("/dev/zero")
    else:
        os.mkfifo(tmp_path / name)
    for source in (tmp_path / name, tmp_path):
        with pytest.raises(BadFile, match=rf"{name}: is not a regular file"):
            list(read_episodes(source))
