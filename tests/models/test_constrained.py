"""Decoding held to the menu: what is barred, what never is, and that every call is one that the tools take."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from crosswind.base.errors import CrosswindError  # noqa: E402
from crosswind.core.types import Message, Param, ToolSpec  # noqa: E402
from crosswind.core.world import bad_arguments  # noqa: E402
from crosswind.models.constrained import DONE, Constraint, Menus  # noqa: E402
from crosswind.models.engine import Engine  # noqa: E402
from crosswind.models.parsing import parse  # noqa: E402
from crosswind.models.prompts import CLOSE, OPEN  # noqa: E402
from crosswind.models.source import AgentSettings  # noqa: E402
from crosswind.models.spec import open_agent  # noqa: E402
from tests import tiny  # noqa: E402
from tests.models.test_engine import lively  # noqa: E402

FIND = ToolSpec(
    "find_places",
    "Places of a city.",
    {
        "city": Param("string"),
        "kind": Param("string", enum=("museum", "mall", "park")),
        "most": Param("integer", required=False),
        "open": Param("boolean", required=False),
        "near": Param("array", required=False),
        "price": Param("number", required=False),
    },
)
GET = ToolSpec("get_place", "One place.", {"place_id": Param("string")})
NOW = ToolSpec("get_places_now", "What is open.", {})
TOOLS = (FIND, GET, NOW)
CHAT = (
    Message(role="system", content="Help with places."),
    Message(role="user", content='Which museum of New Oslo is "open"?'),
    Message(role="tool", content='{"id":"P-0412","city":"New Oslo"}'),
)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return tiny.tokenizer()


def rule(tokenizer: Any, *, seen: bool = False) -> Constraint:
    return Menus(seen=seen).rule(CHAT, TOOLS, tokenizer)


def first_barred(rule: Constraint, tokenizer: Any, text: str) -> str | None:
    """What is left of a text from the first token on that may not be written."""
    ids = tokenizer.encode(text, add_special_tokens=False)
    for n, token in enumerate(ids):
        barred = rule.barred()
        if barred is not None and barred[token]:
            return str(tokenizer.decode(ids[n:]))
        rule.wrote(token)
    return None


GOOD = (
    '{"name":"get_place","arguments":{"place_id":"P-0412"}}',
    '\n{"name": "get_place", "arguments": {"place_id": "P-0412"}}\n',
    '{"name":"get_places_now","arguments":{}}',
    '{"name":"find_places","arguments":{"kind":"mall","city":"New Oslo"}}',
    '{"name":"find_places","arguments":{"city":"Oslo","kind":"museum","most":20,"open":false,"price":-0.5}}',
    '{"name":"find_places","arguments":{"city":"Oslo","kind":"park","near":["a",{"b":[1]}],"most":0}}',
)
BAD = {  # a call, and what may not be written of it
    '{"name":"get_plac","arguments"': '","arguments"',
    '{"name":"find_places","arguments":{"town":': "town",
    '{"name":"find_places","arguments":{"city":"Oslo"}': "}",
    '{"name":"find_places","arguments":{"city":"Oslo","kind":"shop"': "shop",
    '{"name":"find_places","arguments":{"city":"Oslo","city"': 'city"',
    '{"name":"find_places","arguments":{"most":"3"': '"3"',
    '{"name":"find_places","arguments":{"most":1.5': ".5",
    '{"name":"find_places","arguments":{"most":01': "1",
    '{"tool"': 'tool"',
}


@pytest.mark.parametrize("call", GOOD)
def test_what_the_tools_take_may_be_written(tokenizer: Any, call: str) -> None:
    held = rule(tokenizer)
    assert first_barred(held, tokenizer, f"I look it up. {OPEN}{call}{CLOSE}") is None
    assert DONE in held.state
    _, (made,) = parse(f"{OPEN}{call}{CLOSE}")
    assert bad_arguments({t.name: t for t in TOOLS}[made.tool].params, made.args) is None


@pytest.mark.parametrize("call", BAD)
def test_what_they_do_not_take_is_barred_where_it_goes_wrong(tokenizer: Any, call: str) -> None:
    left = first_barred(rule(tokenizer), tokenizer, OPEN + call)
    assert left is not None, call
    assert BAD[call] in left, left
    assert len(left) <= len(BAD[call]) + 8, left  # what goes before it in one token at the most


def test_words_are_free_and_so_is_what_only_looks_like_a_call(tokenizer: Any) -> None:
    assert first_barred(rule(tokenizer), tokenizer, '<think>a < b, <tool> {"name":"x"}</think>It costs "12".') is None


def test_copied_values_stand_in_the_conversation_as_whole_words(tokenizer: Any) -> None:
    def left(value: str) -> str | None:
        text = f'{OPEN}{{"name":"get_place","arguments":{{"place_id":"{value}"}}}}'
        return first_barred(rule(tokenizer, seen=True), tokenizer, text)

    for value in ("P-0412", "New Oslo", "Oslo", "museum of New Oslo"):
        assert left(value) is None
    for value in ("P-0413", "New Os", "slo", "Berlin"):
        assert left(value) is not None


@pytest.mark.parametrize("heat", [0.0, 1.5])
@pytest.mark.parametrize("seen", [False, True])
def test_a_model_that_writes_at_random_makes_only_calls_that_the_tools_take(
    tokenizer: Any, heat: float, seen: bool
) -> None:
    opening = tokenizer.encode(OPEN, add_special_tokens=False)
    prompt = tokenizer.encode("text", add_special_tokens=False)
    engine = Engine(lively(tokenizer), tokenizer, slots=6, window=512)
    menus = Menus(seen=seen)
    try:
        held = [
            engine.submit(
                prompt, key=n, max_new=300, temperature=heat, seed=n, forced=opening,
                rule=menus.rule(CHAT, TOOLS, tokenizer),
            )
            for n in range(8)
        ]  # fmt: skip
        free = engine.submit(prompt, key="free", max_new=40, temperature=heat, seed=0, forced=opening)
        replies = [tokenizer.decode(one.result(60).ids) for one in held if one.result(60).ended == "stop"]
        alone = tokenizer.decode(free.result(60).ids)
    finally:
        engine.close()
    assert len(replies) >= (2 if heat else 0)  # a greedy one may go on in a value until its end
    for reply in replies:
        _, (call,) = parse(reply)
        assert call.tool in {tool.name for tool in TOOLS}, reply
        params = next(tool.params for tool in TOOLS if tool.name == call.tool)
        assert bad_arguments(params, call.args) is None, reply
        if seen:
            words = "\n".join(message.content for message in CHAT)
            assert all(value in words for value in call.args.values() if isinstance(value, str)), reply
    assert not alone.startswith(OPEN + '{"name"')  # an unruled one in the same batch writes what it likes


def test_a_rule_that_bars_nothing_changes_nothing(tokenizer: Any) -> None:
    prompts = [tokenizer.encode(text, add_special_tokens=False) for text in ("one place", "two places and more")]
    written = []
    for menus in (None, Menus(seen=False)):
        engine = Engine(lively(tokenizer), tokenizer, slots=4, window=256)
        try:
            rules = [menus.rule(CHAT, TOOLS, tokenizer) if menus else None for _ in prompts]
            pairs = zip(prompts, rules, strict=True)
            futures = [engine.submit(p, key=n, max_new=20, rule=r) for n, (p, r) in enumerate(pairs)]
            written.append([future.result(60) for future in futures])
        finally:
            engine.close()
    assert written[0] == written[1]


@pytest.fixture
def folder(tmp_path: Path, tokenizer: Any) -> Iterator[Path]:
    yield tiny.save(tmp_path / "model")
    shutil.rmtree(tmp_path / "model")


def test_it_is_an_option_of_the_spec_and_part_of_what_a_run_is(folder: Path) -> None:
    plain, menu = open_agent(f"hf:{folder}"), open_agent(f"constrained:hf:{folder}")
    seen = open_agent(f"constrained:seen:hf:{folder}", AgentSettings(seed=3))
    assert menu.name == f"constrained:{plain.name}"
    assert seen.name == f"constrained:seen:{plain.name}"
    assert menu.settings == {**plain.settings, "constrained": "menu"}
    assert seen.settings == {**plain.settings, "seed": 3, "constrained": "seen"}
    assert open_agent(f"adaptive:constrained:hf:{folder}").settings["constrained"] == "menu"


def test_agents_elsewhere_cannot_be_held(folder: Path) -> None:
    with pytest.raises(CrosswindError, match="only in-process models"):
        open_agent("constrained:openai:gpt")


def test_the_grammar_for_llama_defines_what_it_names_and_holds_the_menu() -> None:
    grammar = Menus(seen=False).grammar(TOOLS)
    lines = dict(line.split(" ::= ", 1) for line in grammar.gbnf().splitlines())
    used = {word for rule in lines.values() for word in _names(rule)}
    assert used <= set(lines)  # nothing is named that is not there
    assert set(lines) - used == {"root"} | ({"value", "integer", "boolean", "array", "object", "number"} - used)
    assert json.dumps("museum") in lines["value-0-1"].replace('\\"', '"')


def _names(rule: str) -> set[str]:
    bare = re.sub(r'"(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]', " ", rule)
    return set(re.findall(r"[a-z]+(?:-\d+)*", bare))
