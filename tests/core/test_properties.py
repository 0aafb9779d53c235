"""Whatever an agent sends, the session answers as a real API would, and the world stays whole."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from crosswind.base.errors import CannotPerturb
from crosswind.core.draw import Drawn, draw
from crosswind.core.flow import rng_for
from crosswind.core.registry import domains, perturbations
from crosswind.core.session import Session
from crosswind.core.types import Message, Request, ToolCall, Tools
from crosswind.episodes.play import judge, plain, play
from crosswind.episodes.recipe import random_kinds

SLOW = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)

deep: Any = []
for _ in range(3000):
    deep = [deep]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
odd_values = json_values | st.sampled_from(
    [
        math.nan,
        math.inf,
        -1,
        10**40,
        10**5000,
        "x" * 1_000_000,
        deep,
        "\ud800",
        "\x00",
        "'; DROP TABLE x; --",
        {},
        [],
        b"bytes",
    ]
)


@st.composite
def draws(make: st.DrawFn) -> Drawn:
    domain = domains[make(st.sampled_from(domains.names()))]
    family = make(st.sampled_from(sorted(domain.families)))
    seed = make(st.integers(0, 10**6))
    kinds = make(st.lists(st.sampled_from(perturbations.names()), max_size=4, unique=True))
    severity = make(st.integers(1, 5))
    try:
        return draw(domain, domain.task(family, seed), kinds, seed, severity=severity, strict=False)
    except CannotPerturb:  # now and then a stack breaks a law at every attempt, and is refused with the reason
        reject()


@SLOW
@given(draws())
def test_random_stacks_over_random_tasks_keep_the_laws(drawn: Drawn) -> None:
    """`draw` raises unless every law holds; the oracle passes through the session that an agent would get."""
    from crosswind.agents.oracle import Oracle

    trajectory = asyncio.run(play(drawn, Oracle(drawn), "oracle"))
    assert judge(trajectory).outcome == "pass"
    assert len(trajectory.steps) <= trajectory.budget


@SLOW
@given(draws(), st.data())
def test_no_call_raises_and_no_malformed_call_reaches_the_world(drawn: Drawn, data: st.DataObject) -> None:
    certificate = drawn.certificate
    session = Session.of(drawn.domain, certificate.task, certificate.layers)
    for _ in range(12):
        shown = session.tools()
        spec = data.draw(st.sampled_from(shown))
        how = data.draw(st.sampled_from(("odd", "typed", "missing", "extra", "unknown", "canonical", "not an object")))
        right = {name: _typed(param.type, data) for name, param in spec.params.items()}
        tool: Any = spec.name
        args: Any = right
        if how == "odd":
            args = {name: data.draw(odd_values) for name in spec.params}
        elif how == "missing":
            args = dict(list(right.items())[1:])
        elif how == "extra":
            args = {**right, data.draw(st.text(max_size=10)): data.draw(odd_values)}
        elif how == "unknown":
            tool = data.draw(odd_values)
        elif how == "canonical":
            tool = data.draw(st.sampled_from([t.name for t in drawn.domain.world_class.specs]))
        elif how == "not an object":
            args = data.draw(odd_values)
        before = dict(session.world.state.overlay)
        result = session.call(ToolCall(tool, args))
        assert (result.error is None) or (result.error.code and result.error.text)
        if result.error:
            assert len(result.error.text) < 1000
        if result.error and result.error.code in ("unknown_tool", "bad_arguments"):
            assert session.world.state.overlay == before
        assert session.world.broken() is None
        json.dumps(plain(args), allow_nan=False)
    assert session.world.broken() is None


def _typed(type_: str, data: st.DataObject) -> Any:
    return {
        "string": data.draw(st.text(max_size=20)),
        "integer": data.draw(st.integers(-5, 10**12)),
        "number": 1.5,
        "boolean": data.draw(st.booleans()),
    }.get(type_, "x")


class Fuzzer:
    """Says and calls whatever it is given."""

    def __init__(self, lines: list[Message]) -> None:
        self.lines = lines

    async def reply(self, chat: Sequence[Message], tools: Tools) -> Message:
        return self.lines.pop(0) if self.lines else Message(role="assistant", content="Done.")


TOOLS = ["find_places", "ask_user", "reserve", "(say)"]
messages = st.builds(
    lambda text, calls: Message(
        role="assistant",
        content=text,
        requests=tuple(Request(id="same", tool=tool, args=args) for tool, args in calls),
    ),
    st.text(max_size=200),
    st.lists(st.tuples(st.text(max_size=20) | st.sampled_from(TOOLS), odd_values), max_size=3),
)


@SLOW
@given(draws(), st.lists(messages, max_size=6))
def test_an_episode_with_any_agent_ends_and_is_judged(drawn: Drawn, lines: list[Message]) -> None:
    trajectory = asyncio.run(play(drawn, Fuzzer(list(lines)), "fuzzer"))
    assert trajectory.ended in ("answer", "refusal", "budget")
    stored = trajectory.model_dump_json()
    assert json.loads(stored)
    assert judge(trajectory).outcome in ("pass", "fail")


def test_a_stack_that_cannot_be_drawn_says_why() -> None:
    domain = domains["poi"]
    with pytest.raises(CannotPerturb, match="does not apply") as caught:
        draw(domain, domain.task("best_price", 0), ["confirm_before_write"], 0)
    assert not caught.value.applies
    assert 1 <= len(random_kinds(rng_for("any"), 4)) <= 4
