"""Agents of one's own: functions, objects and classes, the tools they hold, and what becomes of their mistakes."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import crosswind as cw
from crosswind.base.errors import CrosswindError
from crosswind.episodes.record import Usage
from crosswind.models.spec import open_agent
from crosswind.runs.store import as_line

SHRUG = "I am sorry, I cannot do this."


def shrug(query: str, tools: cw.SyncToolset) -> str:
    return SHRUG


# ---------------------------------------------------------------- agents


async def shrug_later(query: str, tools: cw.Toolset) -> str:
    await asyncio.sleep(0)
    return SHRUG


class Shrugger:
    def reply(self, chat: Sequence[cw.Message], tools: cw.Tools) -> str:
        return SHRUG


class AsyncShrugger:
    async def reply(self, chat: Sequence[cw.Message], tools: cw.Tools) -> cw.Message:
        return cw.Message(role="assistant", content=SHRUG)


class OfTheDraw(Shrugger):
    def __init__(self, drawn: cw.Drawn) -> None:
        assert drawn.certificate.proof


class Called:
    """Counts within one episode."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, query: str, tools: cw.SyncToolset) -> str:
        self.calls += 1
        assert self.calls == 1
        return SHRUG


AGENTS = {
    "a plain function": shrug,
    "an async function": shrug_later,
    "a lambda": lambda query, tools: SHRUG,
    "an object": Shrugger(),
    "a class": Shrugger,
    "an async object": AsyncShrugger(),
    "an async class": AsyncShrugger,
    "a class of the draw": OfTheDraw,
    "a class that is called": Called,
}


@pytest.mark.parametrize("sort", AGENTS)
def test_an_agent_may_be_anything_that_answers(sort: str) -> None:
    run = cw.evaluate(AGENTS[sort], "quick", limit=4)
    assert [r.final for r in run] == [SHRUG] * 4
    assert run.manifest.agent.startswith("python:tests")


def test_specs_take_the_same_things(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"own_{os.getpid()}"
    plain = "def plain(query, tools):\n    return 'no'\n"
    code = plain + "class Own:\n    def reply(self, chat, tools):\n        return 'no'\n"
    (tmp_path / f"{name}.py").write_text(f"{code}\nmade = Own()\n")
    monkeypatch.chdir(tmp_path)
    for thing in ("plain", "Own", "made"):
        assert cw.play(f"python:{name}:{thing}").final == "no"
    assert cw.evaluate("oracle", limit=2).manifest.agent == "oracle"


class NoReply:
    pass


class NeedsMuch:
    def __init__(self, model: str, key: str) -> None: ...

    def reply(self, chat: Any, tools: Any) -> str:
        return SHRUG


def returns_nothing(query: str, tools: Any) -> None: ...


def forgets_to_await(query: str, tools: Any) -> Any:
    return shrug_later(query, tools)


@pytest.mark.parametrize(
    ("agent", "told"),
    [
        (3, "int, which is not an agent; expected a function `agent.query, tools.`"),
        (None, "NoneType, which is not an agent"),
        (lambda query: "", r"takes \(query\) and is called with \(query, tools\); expected a function"),
        (NoReply, "is a class without a method reply; expected"),
        (NoReply(), "NoReply, which is not an agent"),
        (NeedsMuch, r"is a class that needs \(model: 'str', key: 'str'\).*; a class makes one agent per episode"),
        ("orcale", "did you mean oracle"),
    ],
)
def test_what_is_no_agent_is_refused_with_what_to_do(agent: Any, told: str) -> None:
    with pytest.raises(CrosswindError, match=told):
        cw.play(agent)


class WrongReply:
    def reply(self, chat: Any, tools: Any) -> Any:
        return {"role": "assistant"}


class BrokenClass(WrongReply):
    def __init__(self) -> None:
        raise ValueError("no model")


@pytest.mark.parametrize(
    ("agent", "told"),
    [
        (returns_nothing, "returned None; is a `return` missing.* expected the final answer: done"),
        (lambda query, tools: 3, "returned int; expected the final answer: done"),
        (forgets_to_await, "returned something to await from a plain function; write `async def`"),
        (WrongReply, "reply returned dict; expected the answer as a str, done"),
        (BrokenClass, "ValueError: no model"),
    ],
)
def test_a_result_that_is_no_answer_is_an_exception_with_what_to_do(agent: Any, told: str) -> None:
    episode = cw.play(agent)
    assert (episode.ended, episode.outcome) == ("exception", "fail")
    assert re.search(told, episode.why)


def broken(query: str, tools: cw.SyncToolset) -> str:
    empty: dict[str, str] = {}
    return empty["a key"]


class BrokenReply:
    async def reply(self, chat: Any, tools: Any) -> str:
        return broken("", tools)


@pytest.mark.parametrize("agent", [broken, BrokenReply], ids=["function", "class"])
def test_an_exception_of_the_agent_is_counted_and_shown(agent: Any) -> None:
    run = cw.evaluate(agent, "quick", limit=3, concurrency=1)
    assert [(r.outcome, r.ended, r.cause) for r in run] == [("fail", "exception", "exception")] * 3
    assert "raised an exception 3 times" in str(run)
    assert 'return empty["a key"]' in str(run)
    assert "python_agent.py" not in str(run)
    assert "KeyError" in run._repr_html_()


class Broken:
    """An agent whose attribute raises."""

    def reply(self, chat: Any, tools: Any) -> Any:
        return "Nothing."


class BrokenUsage(Broken):
    @property
    def usage(self) -> Any:
        raise KeyError("usage")


class EndlessUsage(Broken):
    usage = Usage(input_tokens=10**400, output_tokens=1)


def endless_usage(query: str, tools: Any) -> str:
    tools.used(10**400, 1)
    return "Nothing."


class BrokenTrial(Broken):
    @property
    def trial(self) -> int:
        raise KeyError("trial")


class Lazy(Broken):
    def __getattr__(self, name: str) -> Any:
        raise KeyError(name)


class Interrupting(Broken):
    def __init__(self) -> None:
        raise KeyboardInterrupt


def interrupting(query: str, tools: Any) -> str:
    raise KeyboardInterrupt


async def interrupting_later(query: str, tools: Any) -> str:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    "agent",
    [BrokenUsage, EndlessUsage, endless_usage, BrokenTrial, Lazy, Interrupting, interrupting, interrupting_later],
    ids=lambda one: one.__name__,
)
def test_what_an_attribute_raises_and_an_interrupt_of_its_own_are_the_agents(agent: Any) -> None:
    run = cw.evaluate(agent, "quick", limit=2, concurrency=1)
    assert [(r.outcome, r.ended) for r in run] == [("fail", "exception")] * 2


class Text(str):
    """A str whose methods raise."""

    def encode(self, *_: Any) -> bytes:
        raise ValueError

    def isascii(self) -> bool:
        return False


def test_a_text_of_a_class_of_its_own_is_text() -> None:
    def agent(query: str, tools: Any) -> str:
        tools.call(next(iter(tools)).name, {Text("key"): Text("value")})
        return Text("It is done.")

    run = cw.evaluate(agent, "quick", limit=1)
    assert [r.final for r in run] == ["It is done."]


def test_a_call_is_stored_bounded_however_much_is_in_it() -> None:
    def agent(query: str, tools: Any) -> str:
        tools.call("finish", {"status": "done", "answer": [{"kind": "money", "value": "9" * 5000}] * 1000})
        tools.call("finish", {"status": "done", "answer": list(range(10**6)), **{str(n): n for n in range(10**5)}})
        return "It is done."

    (record,) = cw.evaluate(agent, "quick", limit=1)
    assert len(as_line(record)) < 4 << 20


def test_an_exception_with_a_huge_message_is_stored_shortened_and_at_once() -> None:
    def loud(query: str, tools: cw.SyncToolset) -> str:
        raise ValueError("head " + "x" * 50_000_000 + " tail")

    def unreachable(query: str, tools: cw.SyncToolset) -> str:
        raise OSError("x" * 50_000_000)

    began = time.process_time()
    run = cw.evaluate(loud, "quick", limit=3)
    assert [(r.ended, len(r.why) < 100_000) for r in run] == [("exception", True)] * 3
    assert "ValueError: head xxx" in run.records[0].why
    episode = cw.play(unreachable)
    assert (episode.outcome, len(episode.why) < 100_000) == ("error", True)
    assert time.process_time() - began < 30


def test_a_provider_that_fails_is_no_failure_of_the_agent() -> None:
    def offline(query: str, tools: cw.SyncToolset) -> str:
        raise ConnectionResetError("gone")

    episode = cw.play(offline)
    assert (episode.outcome, "gone" in episode.why) == ("error", True)


# ---------------------------------------------------------------- tools


def first_call(drawn: cw.Drawn) -> cw.ToolCall:
    return drawn.certificate.gold.steps[0].call


def test_plain_functions_call_tools_by_name() -> None:
    drawn = cw.draw("poi", "best_price", seed=1)
    gold, seen = first_call(drawn), list[Any]()

    def agent(query: str, tools: cw.SyncToolset) -> str:
        seen.append([(tool.name, tool.description, tool.parameters["type"]) for tool in tools])
        seen.append((len(tools), gold.tool in tools, "nope" in tools, bool(tools.policy)))
        results = [
            tools[gold.tool](**gold.args),
            tools.call(gold.tool, dict(gold.args)),
            tools.call(gold.tool, **gold.args),
        ]
        results.append(getattr(tools, gold.tool)(dict(gold.args)))
        assert len(set(results)) == 1
        seen.append(tools.nope(city=1))
        seen.append(tools.openai()[0])
        seen.append(tools.anthropic()[0])
        return "Which city?" if "You:" not in query else SHRUG

    episode = cw.play(agent, drawn)
    names = [tool["function"]["name"] for tool in episode.tools]
    assert [name for name, _, _ in seen[0]] == names
    assert seen[1] == (len(names), True, False, True)
    assert "unknown_tool" in seen[2]
    assert seen[3] == episode.tools[0]
    assert set(seen[4]) == {"name", "description", "input_schema"}
    assert [step["call"]["tool"] for step in episode.steps[:5]] == [gold.tool] * 4 + ["nope"]


def test_async_functions_await_the_same_calls() -> None:
    drawn = cw.draw("poi", "best_price", seed=1)
    gold = first_call(drawn)

    async def agent(query: str, tools: cw.Toolset) -> str:
        one, two = await asyncio.gather(tools[gold.tool](**gold.args), tools.call(gold.tool, **gold.args))
        return SHRUG if one == two else ""

    assert cw.play(agent, drawn).final == SHRUG


def reports(query: str, tools: cw.SyncToolset) -> str:
    tools.used(1000, 20)
    tools.used(500, 5, cost=0.5)
    return SHRUG


async def reports_later(query: str, tools: cw.Toolset) -> str:
    tools.used(1500, 25, cost=0.5)
    return SHRUG


class Reporter(Shrugger):
    def __init__(self) -> None:
        self.usage = cw.Usage(input_tokens=1500, output_tokens=25, cost=0.5)


@pytest.mark.parametrize("agent", [reports, reports_later, Reporter])
def test_tokens_that_an_agent_reports_are_counted(agent: Any) -> None:
    run = cw.evaluate(agent, "quick", tasks=1, limit=2)
    assert {r.usage.tokens for r in run.records} == {1525}
    assert "3,050 tokens, cost 1." in str(run)


def test_a_cost_that_an_agent_reports_is_limited() -> None:
    run = cw.evaluate(reports, "quick", max_cost=1, concurrency=1)
    assert sum(r.usage.cost or 0 for r in run.records) == 1
    assert len(run) == 2


@pytest.mark.parametrize("agent", [shrug, shrug_later, Shrugger])
def test_tokens_that_nobody_reports_are_unknown(agent: Any) -> None:
    with pytest.warns(UserWarning, match="--max-cost counts an estimate of those, at 4 characters a token"):
        run = cw.evaluate(agent, "quick", tasks=1, limit=2, max_cost=9, settings={"price_in": 1, "price_out": 1})
    assert len(run) == 2
    assert {r.usage.tokens for r in run.records} == {None}
    about = sum(sum(r.usage.charged) for r in run.records)
    assert about > 400  # the tools alone are longer
    assert sum(r.usage.cost or 0 for r in run.records) == pytest.approx(about / 1e6)
    assert f"; tokens unknown (budgets count about {about:,}), cost about " in str(run)
    assert run.to_frame()["tokens"].isna().all()


class Forgetful(Shrugger):
    """Reports what it used, except once."""

    def __init__(self) -> None:
        self.usage = cw.Usage()

    def reply(self, chat: Any, tools: Any) -> str:
        known = 500 if len(chat) > 3 else None
        self.usage = self.usage.plus(cw.Usage(input_tokens=1000, output_tokens=known, requests=1))
        return super().reply(chat, tools)


@pytest.mark.parametrize("agent", [shrug, Shrugger, Forgetful])
def test_a_budget_stops_agents_that_do_not_report_everything(agent: Any) -> None:
    with pytest.warns(UserWarning, match="did not report the tokens of every request"):
        run = cw.evaluate(
            agent, "quick", max_cost=0.001, concurrency=1, settings={"price_in": 1, "price_out": 1, "currency": "EUR"}
        )
    assert len(run) < 20
    assert "is used up (about 0.00" in run.manifest.why
    assert " EUR was spent" in run.manifest.why


def test_a_tool_list_that_changes_midway_is_seen() -> None:
    drawn = next(
        made for seed in range(20) if (made := cw.draw("poi", "", ["retired_midway:5"], seed=seed, strict=False)).layers
    )
    lists = []

    def agent(query: str, tools: cw.SyncToolset) -> str:
        for step in drawn.certificate.gold.steps:
            lists.append([tool.name for tool in tools])
            tools.call(step.call.tool, dict(step.call.args))
        lists.append([tool.name for tool in tools])
        return SHRUG

    cw.play(agent, drawn)
    assert lists[0] != lists[-1]


def agent_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "crosswind agent"]


def settles(is_true: Callable[[], bool]) -> bool:
    """Does something become true within a few seconds? For threads that end on their own."""
    end = time.monotonic() + 5
    while not is_true() and time.monotonic() < end:
        gc.collect()
        time.sleep(0.01)
    return is_true()


def test_a_plain_function_that_never_ends_is_stopped_by_the_budget() -> None:
    caught = []

    def endless(query: str, tools: cw.SyncToolset) -> str:
        while True:
            try:
                tools.weather()
            except Exception as error:
                caught.append(error)

    episode = cw.play(endless)
    assert episode.ended == "budget"
    assert settles(lambda: not agent_threads())
    assert not caught


def test_a_plain_function_that_blocks_holds_up_nobody() -> None:
    """Eight episodes that each wait for the others: they run at the same time."""
    together = threading.Barrier(4, timeout=30)

    def waits(query: str, tools: cw.SyncToolset) -> str:
        together.wait()
        return SHRUG

    run = cw.evaluate(waits, "quick", limit=4, concurrency=4)
    assert [r.final for r in run] == [SHRUG] * 4


def test_a_plain_function_that_hangs_is_given_up() -> None:
    release = threading.Event()

    def hangs(query: str, tools: cw.SyncToolset) -> str:
        release.wait(30)
        return SHRUG

    episode = cw.play(hangs, episode_timeout=0.05)
    assert (episode.outcome, episode.ended) == ("fail", "budget")
    release.set()
    assert settles(lambda: not agent_threads())


@pytest.mark.parametrize("spec", ["mine.py", "./mine.py:agent", "python:mine.py:agent", "python:mine.py"])
def test_a_file_as_a_spec_is_told_the_spec_that_was_meant(
    spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("def helper():\n    pass\n\n\ndef agent(query, tools):\n    return ''\n")
    with pytest.raises(CrosswindError, match=r"write python:mine:agent$"):
        open_agent(spec)
